/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a model as what a signer signs. */
#include "verify/files.h"
#include "verify/sign.h"

#include <stdlib.h>
#include <string.h>

json_t *ig_signing_claims(const struct ig_pack *p, const uint8_t digest[IG_HASH])
{
    return json_pack("{s:i,s:o,s:o,s:O?}", "v", 1, "pack",
                     ig_digest_json("fsverity-sha256:", digest), "content",
                     ig_digest_json("ingot-content-v1:", p->content), "derivation",
                     json_object_get(p->manifest, "derivation"));
}

ingot_status ig_files_statement(const struct ig_files *f, const char *name, json_t *claims,
                                char **text, size_t *len, ingot_error *e)
{
    struct ig_resource *r = ig_array(f->n, sizeof *r);
    size_t n = 0;
    if (!r) return ig_no_memory(e);
    for (size_t i = 0; i < f->n; i++) {
        if (ig_never_signed(f->list[i].name)) continue;
        r[n].name = f->list[i].name;
        memcpy(r[n++].sha256, f->list[i].sha256, IG_HASH);
    }
    const ingot_status status = ig_statement_write(name, r, n, claims, text, len, e);
    free(r);
    return status;
}
