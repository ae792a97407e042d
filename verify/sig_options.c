/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say whose signature is believed, and at what time; for every command that asks. */
#include "verify/report.h"
#include "verify/when.h"

int ig_signature_usage(const struct ig_cli *cli, struct ig_signature *s, const char *at)
{
    const bool by_roots = s->roots.file || s->roots.system;
    if ((s->key != NULL) == by_roots)
        return ig_cli_usage(cli, "give --key PUBLIC, or --certificate-chain ROOTS (or "
                                 "--system-roots), not both");
    if (at && s->tsa_roots) return ig_cli_usage(cli, "--at and --tsa-roots exclude each other");
    if ((at || s->tsa_roots) && s->key)
        return ig_cli_usage(cli,
                            "--at and --tsa-roots are for certificates; a key does not expire");
    if (at && !ig_when_read(at, &s->at))
        return ig_cli_usage(cli, "--at %s: expected a time, as 2026-11-30T12:00:00Z or 2026-11-30",
                            at);
    s->has_at = at != NULL;
    return -1;
}
