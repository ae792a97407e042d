/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void test_escape_makes_one_printable_line(void **state)
{
    char buf[64];
    (void)state;
    assert_string_equal(ig_escape(buf, sizeof buf, "a\nb\t\"\\", 6), "a\\nb\\t\\\"\\\\");
    assert_string_equal(ig_escape(buf, sizeof buf, "\x1b[31m\x7f", 6), "\\x1b[31m\\x7f");
    assert_string_equal(ig_escape(buf, sizeof buf, "\xff\xc3", 2), "\\xff\\xc3");
    assert_string_equal(ig_escape(buf, sizeof buf, "\xc2\x9b", 2), "\\x9b"); /* a C1 control */
    assert_string_equal(ig_escape(buf, sizeof buf, "\xc3\xa9", 2), "\xc3\xa9");
    assert_string_equal(ig_escape(buf, sizeof buf, "a\0b", 3), "a\\x00b");
}

static void test_escape_cuts_whole_sequences(void **state)
{
    char buf[8];
    (void)state;
    assert_string_equal(ig_escape(buf, sizeof buf, "abcdefg", 7), "abcdefg");
    assert_string_equal(ig_escape(buf, sizeof buf, "abcdefgh", 8), "abcd...");
    assert_string_equal(ig_escape(buf, sizeof buf, "abc\xc3\xa9xyz", 8), "abc...");
    assert_string_equal(ig_escape(buf, sizeof buf, "\x01\x02\x03", 3), "\\x01...");
}

static void test_error_says_what_and_where(void **state)
{
    ingot_error e;
    (void)state;
    assert_int_equal(ig_fail_sys(&e, ENOSPC, "%s: cannot write", "f"), INGOT_ERR_NO_SPACE);
    assert_non_null(strstr(e.message, "f: cannot write"));
    assert_non_null(strstr(e.message, "ENOSPC"));
    assert_int_equal(e.sys_errno, ENOSPC);
    assert_int_equal(ig_fail_sys(&e, EIO, "x"), INGOT_ERR_IO);
    ig_at(&e, "file", "a\nb", 3);
    ig_at_offset(&e, "file", 77);
    assert_string_equal(e.file, "file");
    assert_string_equal(e.tensor, "a\\nb");
    assert_int_equal(e.offset, 77);
    assert_int_equal(ig_fail(NULL, INGOT_ERR_INPUT, "no error wanted"), INGOT_ERR_INPUT);
}

static void test_message_is_printable_whatever_it_quotes(void **state)
{
    ingot_error e;
    (void)state;
    ig_fail(&e, INGOT_ERR_INPUT, "%s: \xc3\xa9 bad", "a\nb\x1b[2J\xff\xc3");
    assert_string_equal(e.message, "a?b?[2J??: \xc3\xa9 bad");
    assert_true(ig_utf8_valid(e.message, strlen(e.message)));
    ig_fail(&e, INGOT_ERR_INPUT, "%s", "\xc2\x9b\x32J\xc2\xa0"); /* a C1 control, a space */
    assert_string_equal(e.message, "??2J\xc2\xa0");
}

static void test_long_message_is_marked(void **state)
{
    ingot_error e;
    char *long_text = malloc(10000);
    (void)state;
    memset(long_text, 'x', 9999);
    long_text[9999] = '\0';
    ig_fail(&e, INGOT_ERR_INPUT, "%s", long_text);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_string_equal(e.message + sizeof e.message - 4, "...");
    free(long_text);
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(ingot_exit_code(INGOT_OK), 0);
    assert_int_equal(ingot_exit_code(INGOT_ERR_CHECK), 1);
    assert_int_equal(ingot_exit_code(INGOT_ERR_USAGE), 2);
    assert_int_equal(ingot_exit_code(INGOT_ERR_INPUT), 3);
    assert_int_equal(ingot_exit_code(INGOT_ERR_NO_SPACE), 4);
    assert_string_equal(ingot_status_name(INGOT_ERR_PACK), "bad_pack");
    assert_string_equal(ingot_status_name((ingot_status)99), "unknown");
}

static int natural(const char *a, const char *b)
{
    const int x = ig_natural_cmp(a, strlen(a), b, strlen(b));
    const int y = ig_natural_cmp(b, strlen(b), a, strlen(a));
    assert_int_equal((x > 0) - (x < 0), (y < 0) - (y > 0));
    return (x > 0) - (x < 0);
}

static void test_natural_order(void **state)
{
    (void)state;
    assert_int_equal(natural("layer.9", "layer.10"), -1);
    assert_int_equal(natural("layer.10.a", "layer.10.b"), -1);
    assert_int_equal(natural("a", "a1"), -1);
    assert_int_equal(natural("a01", "a1"), -1); /* equal numbers: bytes decide */
    assert_int_equal(natural("a1b", "a01c"), -1);
    assert_int_equal(natural("x", "x"), 0);
    assert_int_equal(natural("99999999999999999999998", "99999999999999999999999"), -1);
}

static void test_safe_path(void **state)
{
    static const char *const good[] = {"a", "a/b", "..a", "a..", "...", "a/.b"};
    static const char *const bad[] = {"", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(ig_safe_path(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(ig_safe_path(bad[i], strlen(bad[i])));
}

static void test_utf8(void **state)
{
    static const char *const bad[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xe2\x82"};
    (void)state;
    assert_true(ig_utf8_valid("\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9", 9));
    assert_true(ig_utf8_valid("a\0b", 3));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(ig_utf8_valid(bad[i], strlen(bad[i])));
}

static void test_hex(void **state)
{
    uint8_t bytes[4];
    char text[9];
    (void)state;
    assert_true(ig_unhex(bytes, 4, "00ff7a10"));
    ig_hex(text, bytes, 4);
    assert_string_equal(text, "00ff7a10");
    assert_false(ig_unhex(bytes, 4, "00FF7a10"));
    assert_false(ig_unhex(bytes, 4, "00ff7a1"));
}

static void test_all_zero(void **state)
{
    uint8_t buf[1000] = {0};
    (void)state;
    assert_true(ig_all_zero(buf, 0));
    assert_true(ig_all_zero(buf, sizeof buf));
    for (size_t i = 0; i < sizeof buf; i += 111) {
        buf[i] = 1;
        assert_false(ig_all_zero(buf, sizeof buf));
        buf[i] = 0;
    }
}

/* fs-verity by its definition, level by level in memory. */
static void naive_digest(uint8_t out[32], const uint8_t *data, size_t n)
{
    size_t count = (n + 4095) / 4096;
    uint8_t *level = calloc(count + 1, 32), root[32] = {0};
    for (size_t i = 0; i < count; i++) {
        uint8_t page[4096] = {0};
        memcpy(page, data + i * 4096, n - i * 4096 < 4096 ? n - i * 4096 : 4096);
        ig_sha256(level + i * 32, page, 4096);
    }
    while (count > 1) {
        const size_t up = (count + 127) / 128;
        uint8_t *next = calloc(up, 32);
        for (size_t i = 0; i < up; i++) {
            uint8_t block[4096] = {0};
            const size_t left = (count - i * 128) * 32;
            memcpy(block, level + i * 4096, left < 4096 ? left : 4096);
            ig_sha256(next + i * 32, block, 4096);
        }
        free(level);
        level = next;
        count = up;
    }
    if (n) memcpy(root, level, 32);
    free(level);
    ig_verity_digest(out, n, root);
}

static void test_tree_matches_its_definition(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   4095,
                                   4096,
                                   4097,
                                   8192,
                                   127 * 4096,
                                   128 * 4096,
                                   128 * 4096 + 1,
                                   129 * 4096,
                                   256 * 4096,
                                   300 * 4096 + 17,
                                   128 * 128 * 4096,
                                   128 * 128 * 4096 + 5};
    const size_t most = 128 * 128 * 4096 + 4096;
    uint8_t *data = malloc(most), *leaves = malloc(most / 4096 * 32 + 32);
    (void)state;
    for (size_t i = 0; i < most; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const size_t n = sizes[k], count = (n + 4095) / 4096;
        uint8_t want[32], got[32];
        struct ig_tree *t = malloc(sizeof *t);
        naive_digest(want, data, n);
        ig_leaves(NULL, leaves, data, n);
        ig_tree_init(t);
        for (size_t i = 0; i < count;) { /* in uneven pieces */
            const size_t piece = count - i < 1 + i % 7 ? count - i : 1 + i % 7;
            assert_int_equal(ig_tree_add(t, leaves + i * 32, piece, NULL), INGOT_OK);
            i += piece;
        }
        assert_int_equal(ig_tree_digest(t, n, got, NULL), INGOT_OK);
        assert_memory_equal(got, want, 32);
        free(t);
    }
    free(data);
    free(leaves);
}

static void test_tree_known_digests(void **state)
{
    /* printed by `fsverity digest` for an empty file and for the five bytes "hello" */
    static const struct {
        const char *text, *hex;
    } known[] = {
        {"", "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95"},
        {"hello", "555b589c26ee43b7a2510e6c67ced9fb3190b6da6e9e683984551f5d77a763de"},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t digest[32], leaf[32] = {0};
        char hex[65];
        const size_t n = strlen(known[i].text);
        if (n) ig_leaf(leaf, known[i].text, n);
        ig_verity_digest(digest, n, leaf);
        ig_hex(hex, digest, 32);
        assert_string_equal(hex, known[i].hex);
    }
}

/* Whatever way is the fastest here, it gives libcrypto's hashes; for any number of pages, with an
 * end that is none, from any address, and again with the same state. */
static void test_leaves_side_by_side(void **state)
{
    const size_t most = 70 * 4096 + 100;
    uint8_t *data = malloc(most + 3), one[72 * 32], many[72 * 32];
    struct ig_lanes *first = ig_lanes_new(NULL), *second = ig_lanes_new(first);
    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < most + 3; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t pages = 0; pages <= 70; pages++)
        for (size_t rest = 0; rest <= 100; rest += 100) {
            const size_t n = pages * 4096 + rest, bytes = (pages + (rest > 0)) * 32;
            memset(one, 1, sizeof one);
            memset(many, 2, sizeof many);
            ig_leaves(NULL, one, data + pages % 4, n);
            ig_leaves(pages % 2 ? first : second, many, data + pages % 4, n);
            assert_memory_equal(one, many, bytes);
            assert_int_equal(many[bytes], 2); /* and nothing behind */
        }
    ig_lanes_free(first);
    ig_lanes_free(second);
    free(data);
}

/* Two streams at once are two streams: every length to a few blocks, every offset in a block. */
static void sha_of_pairs(void **state)
{
    uint8_t data[1024], a[IG_HASH], b[IG_HASH], wanted[IG_HASH];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t na = 0; na < 330; na += 3)
        for (size_t nb = 0; nb < 330; nb += 7)
            for (size_t first = 0; first < 130; first += 13) {
                struct ig_sha x, y;
                ig_sha_init(&x), ig_sha_init(&y);
                ig_sha_update(&x, data, first);
                ig_sha_update(&y, data + 500, first / 2);
                ig_sha_update_pair(&x, data + first, na, &y, data + 500 + first / 2, nb);
                ig_sha_update_pair(&y, data + 1, 65, &x, data + 2, 70);
                ig_sha_final(&x, a), ig_sha_final(&y, b);
                ig_sha_init(&x), ig_sha_init(&y);
                ig_sha_update(&x, data, first + na);
                ig_sha_update(&x, data + 2, 70);
                ig_sha_final(&x, wanted);
                assert_memory_equal(a, wanted, IG_HASH);
                ig_sha_update(&y, data + 500, first / 2 + nb);
                ig_sha_update(&y, data + 1, 65);
                ig_sha_final(&y, wanted);
                assert_memory_equal(b, wanted, IG_HASH);
            }
}

/* Counts of bits past 2^32. */
static void sha_of_long_pairs(void **state)
{
    const size_t n = (size_t)8 << 20;
    uint8_t *data = malloc(n), a[IG_HASH], b[IG_HASH];
    struct ig_sha x, y, z;
    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < n; i++) data[i] = (uint8_t)(i ^ i >> 9);
    ig_sha_init(&x), ig_sha_init(&y), ig_sha_init(&z);
    for (int i = 0; i < 70; i++) {
        ig_sha_update_pair(&x, data, n, &y, data + 1, n - 1);
        ig_sha_update(&z, data, n);
    }
    ig_sha_final(&x, a), ig_sha_final(&z, b);
    assert_memory_equal(a, b, IG_HASH);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha_of_pairs),
        cmocka_unit_test(sha_of_long_pairs),
        cmocka_unit_test(test_escape_makes_one_printable_line),
        cmocka_unit_test(test_escape_cuts_whole_sequences),
        cmocka_unit_test(test_error_says_what_and_where),
        cmocka_unit_test(test_message_is_printable_whatever_it_quotes),
        cmocka_unit_test(test_long_message_is_marked),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_natural_order),
        cmocka_unit_test(test_safe_path),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_all_zero),
        cmocka_unit_test(test_tree_matches_its_definition),
        cmocka_unit_test(test_tree_known_digests),
        cmocka_unit_test(test_leaves_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
