/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for signature bundles and the statements in them.  The first byte chooses: a
 * bundle ('0'), a statement ('1'), base64 ('2').  What is accepted keeps its rules: one signature,
 * names that stay inside the folder and are there once, and base64 that has one spelling.
 */
#include "tests/fuzz/fuzz.h"
#include "verify/sign.h"

static void try_statement(const char *text, size_t n)
{
    struct ig_statement s;
    ingot_error e;
    const ingot_status status = ig_statement_parse(text, n, "statement", &s, &e);
    if (status != INGOT_OK) {
        check(status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED);
        check_error(&e, status);
        return;
    }
    check(s.nresources > 0 && s.subject);
    for (size_t i = 0; i < s.nresources; i++) {
        const char *name = s.resources[i].name;
        check((s.nresources == 1 && strcmp(name, ".") == 0) || ig_safe_path(name, strlen(name)));
        for (size_t k = 0; k < i && i < 50; k++) check(strcmp(name, s.resources[k].name) != 0);
    }
    ig_statement_free(&s);
}

/* What is written again is the same bundle. */
static void write_again(const struct ig_bundle *b)
{
    struct ig_bundle again;
    ingot_error e;
    char *text = NULL;
    size_t n = 0;
    if (b->nstamps || (!b->ncerts && !b->hint)) return; /* never written */
    check(ig_bundle_write(b, &text, &n, &e) == INGOT_OK);
    check(ig_bundle_parse(text, n, "again", &again, &e) == INGOT_OK);
    check(again.payload.n == b->payload.n && again.ncerts == b->ncerts);
    check(memcmp(again.payload.data, b->payload.data, b->payload.n) == 0);
    check(again.sig.n == b->sig.n && memcmp(again.sig.data, b->sig.data, b->sig.n) == 0);
    ig_bundle_free(&again);
    free(text);
}

static void try_bundle(const char *text, size_t n)
{
    struct ig_bundle b;
    ingot_error e;
    const ingot_status status = ig_bundle_parse(text, n, "bundle", &b, &e);
    if (status != INGOT_OK) {
        check(status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED);
        check_error(&e, status);
        return;
    }
    check(b.payload.n > 0 && b.sig.n > 0 && b.sig.n <= IG_SIGNATURE_MOST);
    check(b.ncerts <= IG_CHAIN_MOST && b.nstamps <= IG_CHAIN_MOST);
    try_statement((const char *)b.payload.data, b.payload.n);
    write_again(&b);
    if (b.ncerts) { /* no root is trusted: never good, whatever the certificates are */
        struct ig_key key;
        struct ig_signer who;
        const struct ig_roots none = {NULL, false};
        check(ig_chain_verify(&b, &none, "bundle", &key, &who, &e) != INGOT_OK);
    }
    ig_bundle_free(&b);
}

static void try_base64(const char *text, size_t n)
{
    struct ig_bytes b;
    if (!ig_base64_decode(text, n, &b)) return;
    char *again = ig_base64_encode(b.data, b.n);
    check(again && strlen(again) == n);
    for (size_t i = 0; i < n; i++) {
        const char c = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
        check(c == again[i]);
    }
    free(again);
    free(b.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    const char *text = (const char *)data + 1;
    switch (data[0] % 4) {
    case 1:
        try_statement(text, size - 1);
        break;
    case 2:
        try_base64(text, size - 1);
        break;
    default:
        try_bundle(text, size - 1);
    }
    return 0;
}
