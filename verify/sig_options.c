/* SPDX-License-Identifier: Apache-2.0 */
/* Options that say whose signature is believed, and at what time; for every command that asks. */
#include "verify/report.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* "2026-11-30T12:00:00Z", "2026-11-30", or seconds since 1970 after an '@'. */
static bool read_time(const char *s, int64_t *out)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d", NULL};
    char *end;
    if (*s == '@') {
        errno = 0;
        const long long n = strtoll(s + 1, &end, 10);
        *out = n;
        return s[1] && !*end && errno == 0;
    }
    for (size_t i = 0; formats[i]; i++) {
        struct tm tm = {0};
        const char *rest = strptime(s, formats[i], &tm);
        if (!rest || *rest) continue;
        *out = (int64_t)timegm(&tm);
        return true;
    }
    return false;
}

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
    if (at && !read_time(at, &s->at))
        return ig_cli_usage(cli, "--at %s: expected a time, as 2026-11-30T12:00:00Z or 2026-11-30",
                            at);
    s->has_at = at != NULL;
    return -1;
}
