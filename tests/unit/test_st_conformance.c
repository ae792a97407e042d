/* SPDX-License-Identifier: Apache-2.0 */
/* The public conformance material for safetensors, rebuilt from its description; and
 * the rules that only the reference's source states. */
#include "tests/unit/st_make.h"

#include <stdio.h>

#define TEST T("test", "I32", "[2,2]", 0, 16)

static void test_I_deserialization(void **state)
{
    struct ig_st st;
    (void)state;
    assert_int_equal(strlen("{" TEST "}"), 60);
    accept_st("{" TEST "}", 16, &st);
    assert_int_equal(st.count, 1);
    check_tensor(&st, 0, "test", IG_I32, 0, 16);
    assert_int_equal(st.tensors[0].rank, 2);
    assert_int_equal(st.tensors[0].shape[0], 2);
    assert_int_equal(st.tensors[0].shape[1], 2);
    ig_st_free(&st);
    ig_st_free(&st); /* an emptied one is fine */
}

static void test_I_empty_shapes_allowed(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("test", "I32", "[]", 0, 4) "}", 4, &st);
    assert_int_equal(st.tensors[0].rank, 0);
    ig_st_free(&st);
}

static void test_I_zero_sized_tensor(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{\"test\":{\"dtype\":\"I32\",\"shape\":[2,0],\"data_offsets\":[0, 0]}}", 0, &st);
    check_tensor(&st, 0, "test", IG_I32, 0, 0);
    ig_st_free(&st);
    accept_st("{" T("a", "I32", "[2,0]", 0, 0) "," T("b", "F64", "[0]", 0, 0) "}", 0, &st);
    assert_int_equal(st.count, 2);
    ig_st_free(&st);
}

static void test_I_metadata_incomplete_buffer(void **state)
{
    (void)state;
    reject_st("{" TEST "}", 16 + 34, "34 bytes beyond the last tensor");
    reject_st("{" TEST "}", 14, "first tensor affected: \"test\"");
}

static void test_I_header_too_large(void **state)
{
    char file[84] = "\x3c\0\0\0\0\xff\xff\xff{" TEST "}";
    (void)state;
    reject_bytes(file, sizeof file, sizeof file, "header of 18446742974197923900 bytes wanted");
}

static void test_I_header_too_small(void **state)
{
    (void)state;
    reject_bytes("", 0, 0, "an empty file");
}

static void test_I_invalid_header_length(void **state)
{
    (void)state;
    reject_bytes("\x3c\0\0\0\0\0\0\0", 8, 8, "header of 60 bytes wanted, the file has 8");
}

static void test_I_invalid_header_non_utf8(void **state)
{
    (void)state;
    reject_st("\xff", 0, "offset 8: unexpected byte 0xff");
}

static void test_I_invalid_header_not_json(void **state)
{
    (void)state;
    reject_st("{", 0, "offset 9: the text ends too early");
}

static void test_I_whitespace_around_the_header(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{}\r \t\n", 0, &st);
    assert_int_equal(st.count, 0);
    ig_st_free(&st);
    accept_st("\t\n{}\r ", 0, &st);
    assert_int_equal(st.count, 0);
    ig_st_free(&st);
    accept_st(
        " { \"test\" : { \"dtype\" : \"U8\" ,\n\"shape\" : [ 1 ] ,\t\"data_offsets\" : [ 0 , 1 ] "
        "} } ",
        1, &st);
    ig_st_free(&st);
    reject_st("\xef\xbb\xbf{}", 0, "unexpected byte 0xef");
    reject_st_n("{}\0", 3, 0, "unexpected byte 0x00", NULL);
    reject_st("{} {}", 0, "expected the end of the text");
}

static void test_I_invalid_info(void **state)
{
    (void)state;
    reject_st("{\"test\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0, 4]}}", 0,
              "tensor \"test\"", "hold 4 bytes, I32 [2,2] takes 16");
}

static void test_I_validation_overflow(void **state)
{
    (void)state;
    reject_st("{" T("test", "I32", "[2,18446744073709551614]", 0, 16) "}", 16, "overflows");
    reject_st("{" T("test", "I32", "[2,9223372036854775807]", 0, 16) "}", 16, "overflows");
}

static void test_I_json_attack(void **state)
{
    char header[2000] = "{";
    size_t n = 1;
    (void)state;
    for (int i = 0; i < 10; i++)
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"weight_%d\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                              "\"data_offsets\":[0,16]}",
                              i ? "," : "", i);
    snprintf(header + n, sizeof header - n, "}");
    reject_st(header, 16, "\"weight_0\"", "\"weight_1\"", "overlap");
}

static void test_I_empty(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{}      ", 0, &st);
    ig_st_free(&st);
    accept_st("{\"__metadata__\":{\"framework\":\"pt\"}}      ", 0, &st);
    assert_int_equal(st.count, 0);
    ig_st_free(&st);
}

static void test_I_sub_byte_types(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("attn.0", "F4", "[1,2]", 0, 1) "}    ", 1, &st);
    check_tensor(&st, 0, "attn.0", IG_F4, 0, 1);
    ig_st_free(&st);
    accept_st("{" T("a", "F6_E2M3", "[4]", 0, 3) "," T("b", "F6_E3M2", "[2,2]", 3, 6) "}", 6, &st);
    ig_st_free(&st);
    accept_st("{" T("a", "F4", "[0]", 0, 0) "}", 0, &st);
    ig_st_free(&st);
    reject_st("{" T("attn.0", "F4", "[1,3]", 0, 1) "}", 1, "F4 [1,3] takes 12 bits");
    reject_st("{" T("attn.0", "F4", "[1,3]", 0, 2) "}", 2, "F4 [1,3] takes 12 bits");
    reject_st("{" T("attn.0", "F4", "[]", 0, 1) "}", 1, "F4 [] takes 4 bits");
    reject_st("{" T("attn.0", "F4", "[1,2]", 0, 2) "}", 2, "hold 2 bytes, F4 [1,2] takes 1");
    reject_st("{" T("a", "F6_E2M3", "[3]", 0, 2) "}", 2, "takes 18 bits");
}

static void test_I_forced_alignment(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{" T("attn0", "F32", "[1,1,2,3]", 0, 24) "}       ", 24, &st);
    assert_int_equal(st.tensors[0].rank, 4);
    assert_int_equal(st.tensors[0].shape[3], 3);
    ig_st_free(&st);
}

static void test_I_every_dtype(void **state)
{
    struct ig_st st;
    (void)state;
    for (int i = 0; i < IG_DTYPES; i++) {
        char header[128];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%u]}}",
                 ig_dtypes[i].name, ig_dtypes[i].bits);
        accept_st(header, ig_dtypes[i].bits, &st);
        check_tensor(&st, 0, "t", i, 0, ig_dtypes[i].bits);
        ig_st_free(&st);
    }
    accept_st("{" T("t", "F\\u00332", "[1]", 0, 4) "}", 4, &st); /* F32, one letter escaped */
    ig_st_free(&st);
}

static void test_I_unknown_dtype(void **state)
{
    (void)state;
    reject_st("{" T("t", "F128", "[1]", 0, 16) "}", 16, "tensor \"t\": unknown dtype \"F128\"");
    reject_st("{" T("t", "f32", "[1]", 0, 4) "}", 4, "unknown dtype \"f32\"");
    reject_st("{" T("t", "", "[1]", 0, 4) "}", 4, "unknown dtype \"\"");
    reject_st("{" T("t", "F32\\u0000", "[1]", 0, 4) "}", 4, "unknown dtype \"F32\\x00\"");
    reject_st("{\"t\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
              "dtype is not a string");
    reject_st("{\"t\":{\"dtype\":null,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is not");
}

static void test_I_order_of_keys_does_not_matter(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{\"t\":{\"data_offsets\":[0,12],\"shape\":[3],\"dtype\":\"F32\"}}", 12, &st);
    check_tensor(&st, 0, "t", IG_F32, 0, 12);
    ig_st_free(&st);
    accept_st("{\"t\":{\"d\\u0061ta_offsets\":[0,12],\"shape\":[3],\"\\u0064type\":\"F32\"}}", 12,
              &st);
    ig_st_free(&st);
}

static void test_I_unknown_keys_are_passed_over(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st(
        "{\"t\":{\"x\":{\"dtype\":[1,{\"y\":null}],\"dtype\":1.5e3},\"dtype\":\"U8\",\"shape\":[1],"
        "\"z\":[],\"data_offsets\":[0,1],\"\":\"\\ud83d\\ude00\"}}",
        1, &st);
    check_tensor(&st, 0, "t", IG_U8, 0, 1);
    ig_st_free(&st);
    reject_st("{\"t\":{\"x\":[1,],\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
              "unexpected ']'");
    reject_st("{\"t\":{\"x\":NaN,\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
              "NaN");
}

static void test_I_nesting_is_limited(void **state)
{
    const size_t deep = 100000;
    char *header = malloc(deep * 2 + 100);
    (void)state;
    assert_non_null(header);
    size_t n = (size_t)sprintf(header, "{\"t\":{\"x\":");
    memset(header + n, '[', deep);
    memset(header + n + deep, ']', deep);
    n += 2 * deep;
    n += (size_t)sprintf(header + n, ",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
    reject_st_n(header, n, 1, "nested too deep (expected at most 128", NULL);
    free(header);
}

static void test_I_shapes_that_are_no_shapes(void **state)
{
    static const char *const bad[] = {
        "[1.0]",  "[-1]",  "[1e0]",  "[-0]", "[\"1\"]",
        "[null]", "[[1]]", "[true]", "[{}]", "[18446744073709551616]"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char header[128];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"U8\",\"shape\":%s,\"data_offsets\":[0,1]}}", bad[i]);
        reject_st(header, 1, "tensor \"t\": shape[0] is no dimension");
    }
    reject_st("{\"t\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1,
              "shape is not an array");
    reject_st("{\"t\":{\"dtype\":\"U8\",\"shape\":null,\"data_offsets\":[0,1]}}", 1,
              "shape is not");
    reject_st("{\"t\":{\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]}}", 1,
              "leading zero");
}

static void test_I_offsets_that_are_no_offsets(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"[0.0,1]", "data_offsets[0] is no offset"},
               {"[0,1.0]", "data_offsets[1] is no offset"},
               {"[-1,1]", "data_offsets[0] is no offset"},
               {"[0,1e0]", "data_offsets[1] is no offset"},
               {"[0,\"1\"]", "data_offsets[1] is no offset"},
               {"[0,18446744073709551616]", "data_offsets[1] is no offset"},
               {"[]", "data_offsets[0] is no offset"},
               {"[0]", "data_offsets[1] is no offset"},
               {"[0,1,2]", "data_offsets has a third value"},
               {"{}", "data_offsets is no array"},
               {"null", "data_offsets is no array"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char header[128];
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":%s}}", bad[i].text);
        reject_st(header, 1, "tensor \"t\"", bad[i].message);
    }
}

static void test_I_header_is_an_object_of_objects(void **state)
{
    static const char *const bad[] = {"[]", "null", "0", "\"w\"", "[{}]"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        reject_st(bad[i], 0, "the header is no JSON object");
    reject_st("{\"t\":[\"U8\",[1],[0,1]]}", 1, "tensor \"t\": no entry");
    reject_st("{\"t\":null}", 0, "tensor \"t\": no entry");
}

static void test_I_metadata_is_an_object_of_strings(void **state)
{
    struct ig_st st;
    (void)state;
    accept_st("{\"__metadata__\":{\"framework\":\"pt\",\"\":\"\\u0000\"}," TEST "}       ", 16,
              &st);
    assert_int_equal(st.count, 1);
    ig_st_free(&st);
    accept_st("{" TEST ",\"__met\\u0061data__\":{}}", 16, &st);
    assert_int_equal(st.count, 1);
    ig_st_free(&st);
    reject_st("{\"__metadata__\":null}", 0, "__metadata__ is no object");
    reject_st("{\"__metadata__\":[]}", 0, "__metadata__ is no object");
    reject_st("{\"__metadata__\":\"pt\"}", 0, "__metadata__ is no object");
    reject_st("{\"__metadata__\":{\"n\":1}}", 0, "value of \"n\" is no string");
    reject_st("{\"__metadata__\":{\"n\":{}}}", 0, "value of \"n\" is no string");
    reject_st("{\"__metadata__\":{\"n\":null}}", 0, "value of \"n\" is no string");
    /* a tensor of that name cannot be told from it */
    reject_st("{" T("__metadata__", "U8", "[1]", 0, 1) "}", 1, "value of \"shape\" is no string");
}

static void test_I_length_overwritten(void **state)
{
    static const char header[] = "{" T("w", "F32", "[2,2]", 0, 16) "}";
    char *start = make_start(1000, header, sizeof header - 1);
    (void)state;
    reject_bytes(start, 8 + sizeof header - 1, 8 + sizeof header - 1 + 16, "header of 1000 bytes");
    free(start);
}

static void test_I_truncated_header(void **state)
{
    static const char header[] = "{" TEST "}";
    char *start = make_start(60, header, 60);
    (void)state;
    for (size_t n = 0; n < 68; n++) reject_bytes(start, n, n, "");
    free(start);
}

static void test_I_liar(void **state)
{
    (void)state;
    reject_st("{" T("liar", "F32", "[1024,1024]", 0, 4194304) "}", 1,
              "first tensor affected: \"liar\"", "the data, which has 1)");
}

/* Bytes from a pack: same parser; the caller keeps them when it fails. */
static void test_parse_takes_the_header_only_on_success(void **state)
{
    static const char header[] = "{" TEST "}";
    const size_t n = sizeof header - 1;
    struct ig_st st;
    ingot_error e;
    char *start = make_start(n, header, n);
    (void)state;
    assert_int_equal(ig_st_parse(start, n, "x", 8 + n + 15, &st, &e), INGOT_ERR_INPUT);
    assert_int_equal(ig_st_parse(start, n - 1, "x", 8 + n + 16, &st, &e), INGOT_ERR_INPUT);
    assert_int_equal(ig_st_parse(start, n, "x", 7, &st, &e), INGOT_ERR_INPUT);
    assert_int_equal(ig_st_parse(start, n, "x", 8 + n - 1, &st, NULL), INGOT_ERR_INPUT);
    assert_null(st.header);
    assert_int_equal(ig_st_parse(start, n, "x", 8 + n + 16, &st, &e), INGOT_OK);
    assert_ptr_equal(st.header, start);
    ig_st_free(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_I_deserialization),
        cmocka_unit_test(test_I_empty_shapes_allowed),
        cmocka_unit_test(test_I_zero_sized_tensor),
        cmocka_unit_test(test_I_metadata_incomplete_buffer),
        cmocka_unit_test(test_I_header_too_large),
        cmocka_unit_test(test_I_header_too_small),
        cmocka_unit_test(test_I_invalid_header_length),
        cmocka_unit_test(test_I_invalid_header_non_utf8),
        cmocka_unit_test(test_I_invalid_header_not_json),
        cmocka_unit_test(test_I_whitespace_around_the_header),
        cmocka_unit_test(test_I_invalid_info),
        cmocka_unit_test(test_I_validation_overflow),
        cmocka_unit_test(test_I_json_attack),
        cmocka_unit_test(test_I_empty),
        cmocka_unit_test(test_I_sub_byte_types),
        cmocka_unit_test(test_I_forced_alignment),
        cmocka_unit_test(test_I_every_dtype),
        cmocka_unit_test(test_I_unknown_dtype),
        cmocka_unit_test(test_I_order_of_keys_does_not_matter),
        cmocka_unit_test(test_I_unknown_keys_are_passed_over),
        cmocka_unit_test(test_I_nesting_is_limited),
        cmocka_unit_test(test_I_shapes_that_are_no_shapes),
        cmocka_unit_test(test_I_offsets_that_are_no_offsets),
        cmocka_unit_test(test_I_header_is_an_object_of_objects),
        cmocka_unit_test(test_I_metadata_is_an_object_of_strings),
        cmocka_unit_test(test_I_length_overwritten),
        cmocka_unit_test(test_I_truncated_header),
        cmocka_unit_test(test_I_liar),
        cmocka_unit_test(test_parse_takes_the_header_only_on_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
