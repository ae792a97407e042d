/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles against the published vector: what it says, and two thousand ways to spoil it. */
#include "verify/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MUTATIONS 2000u

static const char vector_key[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEp4MiEJdFS4xabEQHanggO3elMJ1b\n"
    "fOJL/xWbrqKT/3+yuNY70cQjGE2DSfPWnE9mMo9oup1cXlvdK/mOQzX8qg==\n"
    "-----END PUBLIC KEY-----\n";

static char *text;
static size_t length;
static struct ig_key key;
static struct ig_bundle good;

static int set_up(void **state)
{
    (void)state;
    char path[] = "/tmp/test_bundle.XXXXXX";
    const char *top = getenv("srcdir");
    char *file = ig_format("%s/tests/fixtures_oms.json", top ? top : ".");
    const int fd = mkstemp(path);
    bool ok = fd >= 0 && file &&
              write(fd, vector_key, sizeof vector_key - 1) == (ssize_t)sizeof vector_key - 1;
    ok = ok && ig_key_read_public(path, &key, NULL) == INGOT_OK;
    ok = ok && ig_read_file(file, IG_BUNDLE_MOST, &text, &length, NULL) == INGOT_OK;
    ok = ok && ig_bundle_parse(text, length, "vector", &good, NULL) == INGOT_OK;
    if (fd >= 0) close(fd);
    unlink(path);
    free(file);
    return ok ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    ig_bundle_free(&good);
    ig_key_free(&key);
    free(text);
    return 0;
}

static bool accepts(const struct ig_bundle *b)
{
    bool is_good = false;
    struct ig_statement s;
    if (b->hint && strcmp(b->hint, key.hint) != 0) return false;
    if (ig_dsse_verify(&key, b->payload.data, b->payload.n, &b->sig, &is_good, NULL) != INGOT_OK ||
        !is_good)
        return false;
    if (ig_statement_parse((const char *)b->payload.data, b->payload.n, "vector", &s, NULL) !=
        INGOT_OK)
        return false;
    ig_statement_free(&s);
    return true;
}

static void the_vector_says_what_is_published(void **state)
{
    (void)state;
    struct ig_statement s;
    assert_string_equal(key.curve, "P-256");
    assert_string_equal(key.hint,
                        "d900ca6237305566df984ab8c3faee013e412449df0353542e95784ac365bc67");
    assert_string_equal(good.hint, key.hint);
    assert_int_equal(good.payload.n, 603);
    assert_true(accepts(&good));
    assert_int_equal(
        ig_statement_parse((const char *)good.payload.data, good.payload.n, "vector", &s, NULL),
        INGOT_OK);
    assert_int_equal(s.nresources, 2);
    assert_string_equal(s.resources[0].name, "config.json");
    assert_string_equal(s.resources[1].name, "sub/w.bin");
    assert_int_equal(s.nignored, 1);
    assert_string_equal(s.ignored[0], "model.sig");
    assert_false(s.has_pack);
    ig_statement_free(&s);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static bool same(const struct ig_bytes *a, const struct ig_bytes *b)
{
    return a->n == b->n && memcmp(a->data, b->data, a->n) == 0;
}

/* Replace, insert, remove or repeat up to 16 bytes somewhere; returns the new length. */
static size_t spoil(char *out, uint64_t *seed)
{
    const size_t at = next(seed) % length, n = 1 + next(seed) % 16;
    const size_t run = n < length - at ? n : length - at;
    switch (next(seed) % 4) {
    case 0:
        memcpy(out, text, length);
        out[at] = (char)(out[at] ^ (1 << next(seed) % 8));
        return length;
    case 1:
        memcpy(out, text, at);
        for (size_t i = 0; i < n; i++) out[at + i] = (char)next(seed);
        memcpy(out + at + n, text + at, length - at);
        return length + n;
    case 2:
        memcpy(out, text, at);
        memcpy(out + at, text + at + run, length - at - run);
        return length - run;
    default:
        memcpy(out, text, at + run);
        memcpy(out + at + run, text + at, length - at);
        return length + run;
    }
}

/* Only what still says the same, byte for byte, may still be good (a blank more at the end). */
static void no_mutation_is_accepted(void **state)
{
    (void)state;
    uint64_t seed = 0x1905;
    unsigned parsed = 0, unchanged = 0;
    char *copy = malloc(length + 32);
    assert_non_null(copy);
    for (unsigned i = 0; i < MUTATIONS; i++) {
        struct ig_bundle b;
        const size_t n = spoil(copy, &seed);
        if (ig_bundle_parse(copy, n, "spoilt", &b, NULL) != INGOT_OK) continue;
        parsed++;
        if (accepts(&b)) {
            assert_true(same(&b.payload, &good.payload) && same(&b.sig, &good.sig));
            assert_true(!b.hint || strcmp(b.hint, key.hint) == 0);
            unchanged++;
        }
        ig_bundle_free(&b);
    }
    free(copy);
    print_message("# %u mutations: %u still bundles, %u of them say the same\n", MUTATIONS, parsed,
                  unchanged);
    assert_true(parsed > 10); /* else the signature was never asked */
    assert_true(unchanged < 20);
}

/* The signature covers every byte of the statement, and the statement every byte of its root. */
static void every_bit_of_payload_and_signature_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < good.payload.n; i++) {
        bool is_good = true;
        good.payload.data[i] ^= (uint8_t)(1u << i % 8);
        assert_int_equal(
            ig_dsse_verify(&key, good.payload.data, good.payload.n, &good.sig, &is_good, NULL),
            INGOT_OK);
        good.payload.data[i] ^= (uint8_t)(1u << i % 8);
        assert_false(is_good);
    }
    for (size_t i = 0; i < good.sig.n; i++) {
        bool is_good = true;
        good.sig.data[i] ^= (uint8_t)(1u << i % 8);
        assert_int_equal(
            ig_dsse_verify(&key, good.payload.data, good.payload.n, &good.sig, &is_good, NULL),
            INGOT_OK);
        good.sig.data[i] ^= (uint8_t)(1u << i % 8);
        assert_false(is_good);
    }
}

static void base64_has_one_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } cases[] = {{"", ""},
                 {"Zg==", "f"},
                 {"Zm8=", "fo"},
                 {"Zm9v", "foo"},
                 {"-_-_", "\xfb\xff\xbf"},
                 {"+/+/", "\xfb\xff\xbf"},
                 {"+_+_", NULL},
                 {"Zg=", NULL},
                 {"Zg", NULL},
                 {"Zh==", NULL},
                 {"Zm9=", NULL},
                 {"Z===", NULL},
                 {"====", NULL},
                 {"Zg==Zg==", NULL},
                 {"Zm9v\n", NULL},
                 {" Zm9", NULL},
                 {"Zm=v", NULL},
                 {"Zm9v====", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ig_bytes b;
        const bool ok = ig_base64_decode(cases[i].text, strlen(cases[i].text), &b);
        assert_int_equal(ok, cases[i].bytes != NULL);
        if (!ok) continue;
        assert_int_equal(b.n, strlen(cases[i].bytes));
        assert_memory_equal(b.data, cases[i].bytes, b.n);
        free(b.data);
    }
}

static void paths_are_ordered_by_component(void **state)
{
    (void)state;
    static const char *const ordered[] = {"a", "a/b", "a/b/c", "a.b", "sub/x", "sub.a", "sub0"};
    for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++)
        for (size_t k = 0; k < sizeof ordered / sizeof ordered[0]; k++) {
            const int order = ig_path_cmp(ordered[i], ordered[k]);
            assert_int_equal(order < 0, i < k);
            assert_int_equal(order > 0, i > k);
        }
    assert_true(ig_path_within("a/b", "a") && ig_path_within("a", "a"));
    assert_false(ig_path_within("ab", "a") || ig_path_within("a", "a/b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vector_says_what_is_published),
        cmocka_unit_test(no_mutation_is_accepted),
        cmocka_unit_test(every_bit_of_payload_and_signature_counts),
        cmocka_unit_test(base64_has_one_spelling),
        cmocka_unit_test(paths_are_ordered_by_component),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
