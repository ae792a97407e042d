/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of our own, signed with a key. */
#include "verify/receipt.h"

#include <stdlib.h>
#include <string.h>

ingot_status ig_seal(const struct ig_key *key, const json_t *statement, char **text, size_t *n,
                     ingot_error *e)
{
    struct ig_bundle b = {0};
    char *payload = NULL;
    if (!key) return ig_json_dump(statement, text, n, e);
    ingot_status status = ig_json_dump(statement, &payload, &b.payload.n, e);
    b.payload.data = (uint8_t *)payload;
    if (status == INGOT_OK && !(b.hint = strdup(key->hint))) status = ig_no_memory(e);
    if (status == INGOT_OK) status = ig_dsse_sign(key, b.payload.data, b.payload.n, &b.sig, e);
    if (status == INGOT_OK) status = ig_bundle_write(&b, text, n, e);
    ig_bundle_free(&b);
    return status;
}
