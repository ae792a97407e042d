/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the texts that decide about trust.  The first byte chooses: rules ('0'), an
 * endorsement ('1'), a receipt ('2').  Rules that are accepted say whom they are about; everything
 * else is refused as bad input.
 */
#include "tests/fuzz/fuzz.h"
#include "verify/receipt.h"
#include "verify/trust.h"

static void try_rules(const char *text, size_t n)
{
    struct ig_trust t = {0};
    ingot_error e;
    const ingot_status status = ig_rules_parse(text, n, "dir/some.trust", &t, &e);
    if (status != INGOT_OK) {
        check(status == INGOT_ERR_INPUT);
        check_error(&e, status);
        check(strncmp(e.message, "dir/some.trust:", 15) == 0);
    }
    for (size_t i = 0; i < t.nrules && status == INGOT_OK; i++) {
        const struct ig_rule *r = &t.rules[i];
        check(strncmp(r->where, "some.trust:", 11) == 0);
        if (r->kind == IG_RULE_DENY) {
            check(r->ndigests > 0 && !*r->fingerprint && !r->name);
            continue;
        }
        check(ig_is_hex(r->fingerprint, 2 * IG_HASH) && r->name && *r->name);
        check(ig_trust_key(&t, r) == NULL); /* there are no keys here */
    }
    ig_trust_free(&t);
}

static void try_endorsement(const char *text, size_t n)
{
    uint8_t pack[IG_HASH];
    bool is = false;
    ingot_error e;
    const ingot_status status = ig_endorsement_parse(text, n, "endorsement", &is, pack, &e);
    if (status == INGOT_OK) return;
    check(status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED);
    check_error(&e, status);
}

static void try_receipt(const char *text, size_t n)
{
    json_t *statement = NULL, *predicate = NULL;
    ingot_error e;
    const ingot_status status = ig_receipt_parse(text, n, "receipt", &statement, &predicate, &e);
    if (status != INGOT_OK) {
        check(status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED);
        check_error(&e, status);
    } else {
        check(json_is_string(json_object_get(predicate, "command")));
        check(json_is_array(json_object_get(predicate, "inputs")));
    }
    json_decref(statement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const char *text = (const char *)data + 1;
    switch (data[0] % 4) {
    case 1:
        try_endorsement(text, size - 1);
        break;
    case 2:
        try_receipt(text, size - 1);
        break;
    default:
        try_rules(text, size - 1);
    }
    return 0;
}
