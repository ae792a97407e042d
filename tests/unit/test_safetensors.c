/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble with safetensors files, one generated file a case: what is refused must say
 * why, what is accepted must come out as it stands. */
#include "tests/unit/st_make.h"

#include "convert/st_sniff.h"

#include <stdio.h>
#include <sys/resource.h>

#define OID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POINTER "version https://git-lfs.github.com/spec/v1\noid sha256:" OID "\nsize 4977169568\n"

static void test_A01_git_lfs_pointer(void **state)
{
    char oid[65];
    uint64_t size;
    (void)state;
    assert_int_equal(ig_get64(POINTER), 2336927755350992246);
    assert_in_range(sizeof POINTER - 1, 130, 135);
    reject_bytes(POINTER, sizeof POINTER - 1, sizeof POINTER - 1,
                 "a Git-LFS pointer to it: oid sha256:" OID ", 4977169568 bytes promised");
    assert_true(ig_lfs_pointer(POINTER, sizeof POINTER - 1, oid, &size));
    assert_string_equal(oid, OID);
    assert_int_equal(size, 4977169568);
}

static void test_A01_pointer_recognised_only_where_it_is_one(void **state)
{
    static const char bare[] =
        "version https://git-lfs.github.com/spec/v1\nsize 99999999999999999999";
    char oid[65], large[2000] = POINTER;
    uint64_t size;
    (void)state;
    assert_true(ig_lfs_pointer(bare, sizeof bare - 1, oid, &size));
    assert_string_equal(oid, "");
    assert_true(size == UINT64_MAX);
    assert_true(ig_lfs_pointer("version https://git-lfs", 23, oid, &size));
    assert_int_equal(size, 0);
    assert_false(ig_lfs_pointer("version https://git-lf", 22, oid, &size));
    assert_false(ig_lfs_pointer("", 0, oid, &size));
    assert_false(ig_lfs_pointer(large, sizeof large, oid, &size));
    reject_bytes(large, sizeof large, sizeof large, "starts with the text \"version \"");
}

static void test_A03_other_formats_are_named(void **state)
{
    static const char zip[] = "PK\3\4\0\0\0\0";
    (void)state;
    reject_bytes(zip, 8, 200, "a zip archive");
    reject_bytes(zip, 8, 200, "pickles are not read, by design");
    reject_bytes(zip, 8, 70000000, "a zip archive"); /* a length of 67324752, which fits */
    for (char protocol = 2; protocol <= 5; protocol++) {
        const char pickle[] = {(char)0x80, protocol, 'c', 't', 'o', 'r', 'c', 'h'};
        reject_bytes(pickle, 8, 200, "a Python pickle; pickles are not read, by design");
        reject_bytes(pickle, 2, 200, "a Python pickle");
        reject_bytes(pickle, 2, 2000, "a Python pickle"); /* reads as 640..., which would fit */
    }
    reject_bytes("GGUF\3\0\0\0", 8, 4096, "a GGUF file");
    reject_bytes("\x89HDF\r\n\x1a\n", 8, 4096, "an HDF5 file");
    reject_bytes("\x93NUMPY\1\0", 8, 4096, "a NumPy array file");
    reject_bytes("\x1f\x8b\x08\0\0\0\0\0", 8, 4096, "a gzip file");
    reject_bytes("<!DOCTYPE html><p>Not found", 27, 27, "an HTML page");
    reject_bytes("\n <HTML><p>Not found", 20, 20, "an HTML page");
    reject_bytes("Access denied", 13, 13, "starts with the text \"Access d\"");
    reject_bytes("", 0, 0, "an empty file");
    reject_bytes("\1\2\3", 3, 3, "not a safetensors file but 3 bytes");
}

/* Header lengths whose low bytes happen to be a magic number are still lengths. */
static void test_A03_good_files_are_not_taken_for_pickles(void **state)
{
    static const uint64_t lengths[] = {0x280, 0x380, 0x480, 0x580, 0x8b1f};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct ig_st st;
        char *header = malloc(lengths[i] + 1);
        assert_non_null(header);
        memset(header, ' ', lengths[i]);
        header[lengths[i]] = '\0';
        memcpy(header + (i & 1), "{}", 2);
        accept_st(header, 0, &st);
        ig_st_free(&st);
        free(header);
    }
}

#define THREE \
    T("a", "F32", "[2]", 0, 8) "," T("b", "U8", "[3]", 8, 11) "," T("c", "I8", "[1]", 11, 12)

static void test_A05_data_shorter_than_promised(void **state)
{
    static const char header[] = "{" THREE "}";
    static const struct {
        uint64_t data;
        const char *first;
    } cuts[] = {{11, "c"}, {10, "b"}, {8, "b"}, {7, "a"}, {0, "a"}};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char sizes[96], first[64];
        const size_t whole = 8 + sizeof header - 1 + 12;
        snprintf(sizes, sizeof sizes, "has %zu bytes, its header promises %zu;",
                 whole - 12 + (size_t)cuts[i].data, whole);
        snprintf(first, sizeof first, "first tensor affected: \"%s\"", cuts[i].first);
        const ingot_error e = reject_st(header, cuts[i].data, sizes, first);
        assert_string_equal(e.tensor, cuts[i].first);
        assert_true(e.has_offset);
    }
}

static void accept_padded(size_t n)
{
    static const char header[] = "{" T("w", "U8", "[1]", 0, 1) "}";
    struct ig_st st;
    char *padded = malloc(n + 1);
    assert_non_null(padded);
    memset(padded, ' ', n);
    padded[n] = '\0';
    memcpy(padded, header, sizeof header - 1);
    accept_st(padded, 1, &st);
    check_tensor(&st, 0, "w", IG_U8, 0, 1);
    ig_st_free(&st);
    free(padded);
}

static void test_A06_header_of_every_length_around_read_sizes(void **state)
{
    (void)state;
    for (size_t n = 1000; n <= 1040; n++) accept_padded(n); /* around what is sniffed at */
    for (size_t n = 4087; n <= 4097; n++) accept_padded(n);
    for (size_t n = 65527; n <= 65537; n++) accept_padded(n);
    for (size_t n = 99990; n <= 100008; n++) accept_padded(n);
    for (size_t n = 1048567; n <= 1048577; n++) accept_padded(n);
}

static void test_A06_half_a_header(void **state)
{
    static const char header[] = "{" THREE "}";
    const size_t n = sizeof header - 1;
    char *start = make_start(n, header, n), text[96];
    (void)state;
    snprintf(text, sizeof text, "header of %zu bytes wanted, the file has %zu", n, 8 + n / 2);
    reject_bytes(start, 8 + n / 2, 8 + n / 2, text);
    free(start);
}

static void test_A07_bytes_after_the_last_tensor(void **state)
{
    static const char header[] = "{" T("w", "F32", "[1]", 0, 4) "}";
    static const uint64_t extra[] = {1, 34, 70000};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, ": %d bytes beyond the last tensor", (int)extra[i]);
        const ingot_error e = reject_st(header, 4 + extra[i], text);
        assert_null(strstr(e.message, "truncated"));
        assert_int_equal(e.offset, 8 + sizeof header - 1 + 4);
    }
    reject_st("{}", 5, "5 bytes beyond the last tensor");
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void test_A09_length_that_wraps_or_is_absurd(void **state)
{
    static const uint64_t lengths[] = {UINT64_MAX,
                                       UINT64_MAX - 7,
                                       (uint64_t)1 << 63,
                                       ((uint64_t)1 << 63) - 1,
                                       (uint64_t)1 << 32,
                                       80,
                                       73};
    char file[80] = {0};
    const long before = peak_kib();
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char text[64];
        ig_put64(file, lengths[i]);
        snprintf(text, sizeof text, "header of %llu bytes wanted, the file has 80",
                 (unsigned long long)lengths[i]);
        reject_bytes(file, sizeof file, sizeof file, text);
    }
    ig_put64(file, 0);
    reject_bytes(file, sizeof file, sizeof file, "header of 0 bytes");
    ig_put64(file, 1);
    reject_bytes(file, sizeof file, sizeof file, "offset 8: unexpected byte 0x00");
    file[8] = '{';
    reject_bytes(file, sizeof file, sizeof file, "offset 9: the text ends too early");
    assert_true(peak_kib() - before < 1024);
}

static void test_A10_unaligned_data(void **state)
{
    static const char *const headers[] = {
        "{" T("a", "U8", "[3]", 0, 3) "," T("b", "F32", "[2]", 3, 11) "," T("c", "BF16", "[2]", 11,
                                                                            15) "}",
        "{" T("c", "BF16", "[2]", 11, 15) "," T("a", "U8", "[3]", 0, 3) "," T("b", "F32", "[2]", 3,
                                                                              11) "}",
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t pad = 0; pad < 8; pad++) {
            struct ig_st st;
            char text[400];
            snprintf(text, sizeof text, "%s%*s", headers[i], (int)pad, "");
            accept_st(text, 15, &st);
            assert_int_equal(st.count, 3);
            check_tensor(&st, 0, "a", IG_U8, 0, 3);
            check_tensor(&st, 1, "b", IG_F32, 3, 11);
            check_tensor(&st, 2, "c", IG_BF16, 11, 15);
            ig_st_free(&st);
        }
    }
}

static void test_A11_a_same_name_other_range(void **state)
{
    (void)state;
    const ingot_error e = reject_st("{" T("w", "U8", "[4]", 0, 4) "," T("w", "U8", "[4]", 4, 8) "}",
                                    8, "duplicate key \"w\"");
    assert_string_equal(e.tensor, "w");
}

static void test_A11_b_same_name_same_range(void **state)
{
    (void)state;
    reject_st("{" T("w", "U8", "[4]", 0, 4) "," T("w", "U8", "[4]", 0, 4) "}", 4,
              "duplicate key \"w\" (first at offset 9)");
}

static void test_A11_c_same_name_zero_size(void **state)
{
    (void)state;
    reject_st("{" T("w", "U8", "[0]", 0, 0) "," T("w", "U8", "[0]", 0, 0) "}", 0,
              "duplicate key \"w\"");
}

static void test_A11_d_same_name_spelled_with_an_escape(void **state)
{
    (void)state;
    reject_st("{" T("w", "U8", "[4]", 0, 4) "," T("\\u0077", "U8", "[4]", 4, 8) "}", 8,
              "duplicate key \"w\"");
    reject_st("{" T("\\u0077", "U8", "[4]", 0, 4) "," T("w", "U8", "[4]", 4, 8) "}", 8,
              "duplicate key \"w\"");
    reject_st("{" T("\\u0077", "U8", "[4]", 0, 4) "," T("\\u0077", "U8", "[4]", 4, 8) "}", 8,
              "duplicate key \"w\"");
}

static void test_A11_e_key_twice_inside_an_entry(void **state)
{
    (void)state;
    const ingot_error e = reject_st(
        "{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        "tensor \"w\": duplicate key \"dtype\"");
    assert_string_equal(e.tensor, "w");
    reject_st("{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"sh\\u0061pe\":[4]}}",
              4, "duplicate key \"shape\"");
    reject_st(
        "{\"w\":{\"data_offsets\":[0,4],\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
        "duplicate key \"data_offsets\"");
    reject_st("{\"w\":{\"x\":1,\"dtype\":\"U8\",\"shape\":[4],\"x\":1,\"data_offsets\":[0,4]}}", 4,
              "duplicate key \"x\"");
}

static void test_A11_f_metadata_twice(void **state)
{
    (void)state;
    reject_st("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate key \"__metadata__\"");
    reject_st("{\"__metadata__\":{},\"__met\\u0061data__\":{}}", 0,
              "duplicate key \"__metadata__\"");
    reject_st("{\"__metadata__\":{\"format\":\"pt\",\"format\":\"np\"}}", 0,
              "duplicate key \"format\"");
}

static void test_A12_a_same_range(void **state)
{
    (void)state;
    reject_st("{" T("k", "F32", "[2]", 0, 8) "," T("v", "F32", "[2]", 0, 8) "}", 8,
              "\"k\" (bytes 0 to 8", "\"v\" (bytes 0 to 8", "overlap");
}

static void test_A12_b_partial_overlap(void **state)
{
    (void)state;
    const ingot_error e =
        reject_st("{" T("v", "F32", "[2]", 4, 12) "," T("k", "F32", "[2]", 0, 8) "}", 12,
                  "\"k\" (bytes 0 to 8", "\"v\" (bytes 4 to 12", "overlap");
    assert_string_equal(e.tensor, "v");
    /* not neighbours in the list: the short one in between hides nothing */
    reject_st("{" T("long", "U8", "[9]", 0, 9) "," T("in", "U8", "[1]", 2, 3) "}", 9, "\"long\"",
              "\"in\"", "overlap");
}

static void test_A12_c_hole(void **state)
{
    (void)state;
    reject_st("{" T("k", "F32", "[2]", 0, 8) "," T("v", "F32", "[2]", 16, 24) "}", 24,
              "no tensor covers bytes 8 to 16 of the data, before tensor \"v\"");
}

static void test_A12_d_first_tensor_not_at_zero(void **state)
{
    (void)state;
    reject_st("{" T("k", "F32", "[2]", 8, 16) "}", 16, "no tensor covers bytes 0 to 8", "\"k\"");
}

static void test_A12_e_begin_after_end(void **state)
{
    (void)state;
    reject_st("{" T("k", "F32", "[2]", 8, 0) "}", 8, "tensor \"k\"", "[8,0] begin after their end");
}

static void test_A12_f_end_past_the_file(void **state)
{
    (void)state;
    reject_st("{" T("k", "F32", "[2]", 0, 8) "," T("v", "F32", "[4]", 8, 24) "}", 16,
              "first tensor affected: \"v\"", "promises");
    reject_st("{" T("k", "U8", "[18446744073709551615]", 0, 18446744073709551615) "}", 16,
              "overflows", "\"k\"");
    reject_st("{" T("k", "U8", "[2305843009213693951]", 0, 2305843009213693951) "}", 16,
              "header promises 23058430092136940", "\"k\"");
    /* offsets near 2^64 whose sum with the header wraps */
    reject_st("{" T("k", "U8", "[0]", 18446744073709551615, 18446744073709551615) "}", 0,
              "no tensor covers bytes 0 to 18446744073709551615", "\"k\"");
}

static void test_A12_g_reverse_order_is_accepted(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("c", "U8", "[2]", 6, 8) "," T("b", "U8", "[4]", 2, 6) "," T("a", "U8", "[2]", 0,
                                                                                2) "}",
              8, &st);
    check_tensor(&st, 0, "a", IG_U8, 0, 2);
    check_tensor(&st, 1, "b", IG_U8, 2, 6);
    check_tensor(&st, 2, "c", IG_U8, 6, 8);
    ig_st_free(&st);
}

static void test_A13_names_that_are_refused(void **state)
{
    (void)state;
    const ingot_error e =
        reject_st("{" T("a", "U8", "[1]", 0, 1) "," T("a\\u0000b", "U8", "[1]", 1, 2) "}", 2,
                  "tensor \"a\\x00b\": NUL in a name");
    assert_string_equal(e.tensor, "a\\x00b");
    reject_st("{" T("", "U8", "[1]", 0, 1) "}", 1, "empty name");
    reject_st("{" T("x\\ud800", "U8", "[1]", 0, 1) "}", 1, "lone surrogate \\ud800");
    reject_st("{" T("x\\udc00\\ud800", "U8", "[1]", 0, 1) "}", 1, "lone surrogate \\udc00");
    reject_st("{" T("x\xff", "U8", "[1]", 0, 1) "}", 1, "offset 11: invalid UTF-8");
    reject_st("{" T("x\xed\xa0\x80", "U8", "[1]", 0, 1) "}", 1, "invalid UTF-8");
    reject_st("{" T("x\xc0\x80", "U8", "[1]", 0, 1) "}", 1, "invalid UTF-8");
    reject_st("{" T("x\ny", "U8", "[1]", 0, 1) "}", 1, "control byte 0x0a in a string");
    reject_st_n("{\"a\0b\":{}}", 10, 0, "control byte 0x00", NULL);
}

static void test_A13_odd_names_are_distinct(void **state)
{
    static const char *const want[] = {"\xf0\x9f\x98\x80", "../x",     "a/b",       "n\n\x1b[31m",
                                       "__metadata___",    "\xc3\xa9", "e\xcc\x81", "a\"b\\"};
    struct ig_st st;
    (void)state;
    accept_st("{" T("\\ud83d\\ude00", "U8", "[1]", 0, 1) "," T("../x", "U8", "[1]", 1, 2) "," T(
                  "a/b", "U8", "[1]", 2,
                  3) "," T("n\\n\\u001b[31m", "U8", "[1]", 3,
                           4) "," T("__metadata___", "U8", "[1]", 4,
                                    5) "," T("\xc3\xa9", "U8", "[1]", 5,
                                             6) "," T("e\xcc\x81", "U8", "[1]", 6,
                                                      7) "," T("a\\\"b\\\\", "U8", "[1]", 7, 8) "}",
              8, &st);
    assert_int_equal(st.count, 8);
    for (size_t i = 0; i < 8; i++) check_tensor(&st, i, want[i], IG_U8, i, i + 1);
    ig_st_free(&st);
}

static void test_A13_emoji_raw_and_escaped_are_one_name(void **state)
{
    (void)state;
    reject_st(
        "{" T("\xf0\x9f\x98\x80", "U8", "[1]", 0, 1) "," T("\\ud83d\\ude00", "U8", "[1]", 1, 2) "}",
        2, "duplicate key \"\xf0\x9f\x98\x80\"");
}

static void test_A13_names_are_printed_escaped(void **state)
{
    (void)state;
    const ingot_error e =
        reject_st("{" T("n\\n\\u001b[31m", "U8", "[2]", 0, 1) "}", 1, "tensor \"n\\n\\x1b[31m\"");
    assert_string_equal(e.tensor, "n\\n\\x1b[31m");
}

static void test_A15_zero_size_first_middle_last(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("z", "F16", "[0]", 0, 0) "," T("w", "U8", "[4]", 0, 4) "}", 4, &st);
    check_tensor(&st, 0, "z", IG_F16, 0, 0);
    check_tensor(&st, 1, "w", IG_U8, 0, 4);
    ig_st_free(&st);
    accept_st("{" T("b", "U8", "[4]", 4, 8) "," T("z", "F16", "[0]", 4, 4) "," T("a", "U8", "[4]",
                                                                                 0, 4) "}",
              8, &st);
    check_tensor(&st, 1, "z", IG_F16, 4, 4);
    check_tensor(&st, 2, "b", IG_U8, 4, 8);
    ig_st_free(&st);
    accept_st("{" T("w", "U8", "[4]", 0, 4) "," T("z", "F16", "[0]", 4, 4) "}", 4, &st);
    check_tensor(&st, 1, "z", IG_F16, 4, 4);
    ig_st_free(&st);
    /* inside another tensor: refused, as the reference does */
    reject_st("{" T("w", "U8", "[4]", 0, 4) "," T("z", "F16", "[0]", 2, 2) "}", 4, "\"z\"",
              "overlap");
    reject_st("{" T("w", "U8", "[4]", 0, 4) "," T("z", "F16", "[0]", 5, 5) "}", 4, "\"z\"",
              "no tensor covers bytes 4 to 5");
}

static void test_A15_two_zero_size_at_one_offset(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("z2", "I32", "[2,0]", 0, 0) "," T("z1", "F16", "[0]", 0,
                                                      0) "," T("z", "U8", "[0]", 0, 0) "}",
              0, &st);
    check_tensor(&st, 0, "z", IG_U8, 0, 0);
    check_tensor(&st, 1, "z1", IG_F16, 0, 0);
    check_tensor(&st, 2, "z2", IG_I32, 0, 0);
    assert_int_equal(st.tensors[2].rank, 2);
    assert_int_equal(st.tensors[2].shape[0], 2);
    assert_int_equal(st.tensors[2].shape[1], 0);
    ig_st_free(&st);
}

static void test_A15_scalar_keeps_rank_0(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("s", "F32", "[]", 0, 4) "," T("v", "F32", "[1]", 4, 8) "}", 8, &st);
    assert_int_equal(st.tensors[0].rank, 0);
    assert_non_null(st.tensors[0].shape);
    assert_int_equal(st.tensors[1].rank, 1);
    assert_int_equal(st.tensors[1].shape[0], 1);
    ig_st_free(&st);
}

static void test_A15_no_bytes_for_elements(void **state)
{
    (void)state;
    reject_st("{" T("bad", "F32", "[1]", 0, 0) "}", 0, "tensor \"bad\"", "hold 0 bytes",
              "F32 [1] takes 4");
    reject_st("{" T("bad2", "F32", "[]", 0, 0) "}", 0, "tensor \"bad2\"", "F32 [] takes 4");
    reject_st("{\"n\":{\"dtype\":\"F32\",\"shape\":[0,10]}}", 0, "tensor \"n\"", "no data_offsets");
    reject_st("{\"n\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape");
    reject_st("{\"n\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype");
    reject_st("{\"n\":{}}", 0, "no dtype");
}

static void test_A15_multiplied_from_left_to_right(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("z", "U8", "[0,9223372036854775808]", 0, 0) "}", 0, &st);
    assert_true(st.tensors[0].shape[1] == (uint64_t)1 << 63);
    ig_st_free(&st);
    reject_st("{" T("z", "U8", "[9223372036854775808,2,0]", 0, 0) "}", 0, "tensor \"z\"",
              "U8 [9223372036854775808,2,0] overflows");
    reject_st("{" T("z", "U8", "[18446744073709551616]", 0, 0) "}", 0, "shape[0] is no dimension");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A09_length_that_wraps_or_is_absurd), /* first: it measures peaks */
        cmocka_unit_test(test_A01_git_lfs_pointer),
        cmocka_unit_test(test_A01_pointer_recognised_only_where_it_is_one),
        cmocka_unit_test(test_A03_other_formats_are_named),
        cmocka_unit_test(test_A03_good_files_are_not_taken_for_pickles),
        cmocka_unit_test(test_A05_data_shorter_than_promised),
        cmocka_unit_test(test_A06_header_of_every_length_around_read_sizes),
        cmocka_unit_test(test_A06_half_a_header),
        cmocka_unit_test(test_A07_bytes_after_the_last_tensor),
        cmocka_unit_test(test_A10_unaligned_data),
        cmocka_unit_test(test_A11_a_same_name_other_range),
        cmocka_unit_test(test_A11_b_same_name_same_range),
        cmocka_unit_test(test_A11_c_same_name_zero_size),
        cmocka_unit_test(test_A11_d_same_name_spelled_with_an_escape),
        cmocka_unit_test(test_A11_e_key_twice_inside_an_entry),
        cmocka_unit_test(test_A11_f_metadata_twice),
        cmocka_unit_test(test_A12_a_same_range),
        cmocka_unit_test(test_A12_b_partial_overlap),
        cmocka_unit_test(test_A12_c_hole),
        cmocka_unit_test(test_A12_d_first_tensor_not_at_zero),
        cmocka_unit_test(test_A12_e_begin_after_end),
        cmocka_unit_test(test_A12_f_end_past_the_file),
        cmocka_unit_test(test_A12_g_reverse_order_is_accepted),
        cmocka_unit_test(test_A13_names_that_are_refused),
        cmocka_unit_test(test_A13_odd_names_are_distinct),
        cmocka_unit_test(test_A13_emoji_raw_and_escaped_are_one_name),
        cmocka_unit_test(test_A13_names_are_printed_escaped),
        cmocka_unit_test(test_A15_zero_size_first_middle_last),
        cmocka_unit_test(test_A15_two_zero_size_at_one_offset),
        cmocka_unit_test(test_A15_scalar_keeps_rank_0),
        cmocka_unit_test(test_A15_no_bytes_for_elements),
        cmocka_unit_test(test_A15_multiplied_from_left_to_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
