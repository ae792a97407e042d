/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader against RFC 8259 and our stricter rules, and the canonical writer. */
#include "base/json_lex.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

struct text {
    const char *s;
    size_t n;
};
#define TEXT(literal)                \
    {                                \
        literal, sizeof(literal) - 1 \
    }

/* From a buffer of the exact size, so that a sanitizer sees any read past the end. */
static ingot_status load(const char *s, size_t n, unsigned flags, json_t **out, ingot_error *e)
{
    char *exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, s, n);
    memset(e, 0, sizeof *e);
    const ingot_status status = ig_json_load(exact, n, "dir/config.json", flags, out, e);
    free(exact);
    return status;
}

static json_t *accept_with(const char *s, size_t n, unsigned flags)
{
    ingot_error e;
    json_t *v;
    if (load(s, n, flags, &v, &e) != INGOT_OK) fail_msg("%.*s: %s", (int)n, s, e.message);
    assert_non_null(v);
    return v;
}

static json_t *accept(const char *s)
{
    return accept_with(s, strlen(s), 0);
}

static void reject_n(const char *s, size_t n, unsigned flags, const char *message)
{
    ingot_error e;
    json_t *v = (json_t *)&e;
    if (load(s, n, flags, &v, &e) == INGOT_OK) fail_msg("accepted: %.*s", (int)n, s);
    assert_null(v);
    assert_int_equal(e.status, INGOT_ERR_INPUT);
    assert_string_equal(e.file, "dir/config.json");
    assert_true(e.has_offset);
    assert_true(e.offset <= n);
    assert_null(strchr(e.message, '\n'));
    if (!strstr(e.message, message)) fail_msg("\"%s\" is not in: %s", message, e.message);
}

static void reject(const char *s, const char *message)
{
    reject_n(s, strlen(s), 0, message);
}

static void test_accepts_every_form_of_rfc8259(void **state)
{
    static const struct text good[] = {
        TEXT("null"),
        TEXT(" true\n"),
        TEXT("\t\r\n false "),
        TEXT("0"),
        TEXT("-0"),
        TEXT("-1"),
        TEXT("10"),
        TEXT("1.0"),
        TEXT("-0.5"),
        TEXT("0e1"),
        TEXT("0e+1"),
        TEXT("0E-01"),
        TEXT("1e00"),
        TEXT("123.456e-7"),
        TEXT("1E22"),
        TEXT("-0.0"),
        TEXT("1e-400"),
        TEXT("9007199254740993"),
        TEXT("9223372036854775807"),
        TEXT("-9223372036854775808"),
        TEXT("123456789012345678901234567890"),
        TEXT("\"\""),
        TEXT("\"a\""),
        TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
        TEXT("\"\\u0000\""),
        TEXT("\"\\uD83D\\ude00\""),
        TEXT("\"\\ud800\\udc00\\udbff\\uDFFF\""),
        TEXT("\"\x7f\""),
        TEXT("\"\xc2\x80\""),
        TEXT("\"\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\""),
        TEXT("\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\""),
        TEXT("\"\xe2\x80\xa8\xe2\x80\xa9\""),
        TEXT("\"\\uFFFF\\uFDD0\""),
        TEXT("\"/* no comment */\""),
        TEXT("[]"),
        TEXT("[ ]"),
        TEXT("[1]"),
        TEXT("[1 ,\n2]"),
        TEXT("[[],[[]],{}]"),
        TEXT("[\"\",null,true,1.5]"),
        TEXT("{}"),
        TEXT("{ }"),
        TEXT("{\"\":0}"),
        TEXT("{\"a\":1,\"A\":2}"),
        TEXT("{\"a\" : {\"b\" : [ {} , [] ] } }"),
        TEXT("{\"\\u0000\":1,\"\":2}"),
        TEXT("{\"a\\u0000b\":1,\"a\":2,\"a\\u0000c\":3}"),
        TEXT("[0,-0,0.0,1e1]"),
        TEXT("\"NaN\""),
        TEXT("\"\xef\xbb\xbf\""),
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        json_decref(accept_with(good[i].s, good[i].n, 0));
}

static void test_rejects_everything_else(void **state)
{
    static const struct text bad[] = {
        TEXT(""),
        TEXT(" "),
        TEXT("\n\t"),
        TEXT("\0"),
        TEXT("nul"),
        TEXT("nulll"),
        TEXT("NULL"),
        TEXT("True"),
        TEXT("tru"),
        TEXT("truefalse"),
        TEXT("undefined"),
        TEXT("a"),
        TEXT("'a'"),
        /* numbers */
        TEXT("-"),
        TEXT("+1"),
        TEXT("01"),
        TEXT("-01"),
        TEXT("00"),
        TEXT("1."),
        TEXT(".5"),
        TEXT("-.5"),
        TEXT("1.e1"),
        TEXT("1e"),
        TEXT("1e+"),
        TEXT("1E-"),
        TEXT("1e1.5"),
        TEXT("1.2.3"),
        TEXT("0x10"),
        TEXT("0b1"),
        TEXT("1_000"),
        TEXT("1 2"),
        TEXT("--1"),
        TEXT("-+1"),
        TEXT("1-"),
        TEXT("1f"),
        TEXT("NaN"),
        TEXT("-NaN"),
        TEXT("nan"),
        TEXT("Infinity"),
        TEXT("-Infinity"),
        TEXT("Inf"),
        TEXT("1e400"),
        TEXT("-1e999999999999"),
        TEXT("\xef\xbc\x91"),
        /* strings */
        TEXT("\""),
        TEXT("\"a"),
        TEXT("\"\\\""),
        TEXT("\"\\"),
        TEXT("\"a\nb\""),
        TEXT("\"\t\""),
        TEXT("\"\0\""),
        TEXT("\"\x1f\""),
        TEXT("\"\\x41\""),
        TEXT("\"\\a\""),
        TEXT("\"\\'\""),
        TEXT("\"\\\0\""),
        TEXT("\"\\u\""),
        TEXT("\"\\u12\""),
        TEXT("\"\\u123g\""),
        TEXT("\"\\U0041\""),
        TEXT("\"\\u00"),
        TEXT("\"\\ud800\""),
        TEXT("\"\\udc00\""),
        TEXT("\"\\ud800\\n\""),
        TEXT("\"\\ud800\\ud800\""),
        TEXT("\"\\ud800\\u0041\""),
        TEXT("\"\\ud83d\\ude0\""),
        TEXT("\"\\udc00\\ud800\""),
        TEXT("\"\\ud800\\udc0g\""),
        TEXT("\"\\ud800\\"),
        TEXT("\"\\ud800abcdefgh\""),
        /* bytes that are not UTF-8: lone, cut, overlong, surrogate, beyond U+10FFFF */
        TEXT("\"\x80\""),
        TEXT("\"\xbf\""),
        TEXT("\"\xff\""),
        TEXT("\"\xfe\""),
        TEXT("\"\xc3\""),
        TEXT("\"\xc3("),
        TEXT("\"\xe2\x82\""),
        TEXT("\"\xe2\x82"),
        TEXT("\"\xf0\x9f\x98\""),
        TEXT("\"\xf0\x9f\x98"),
        TEXT("\"\xc0\x80\""),
        TEXT("\"\xc1\xbf\""),
        TEXT("\"\xe0\x9f\xbf\""),
        TEXT("\"\xf0\x8f\xbf\xbf\""),
        TEXT("\"\xed\xa0\x80\""),
        TEXT("\"\xed\xbf\xbf\""),
        TEXT("\"\xf4\x90\x80\x80\""),
        TEXT("\"\xf5\x80\x80\x80\""),
        TEXT("\"\xf8\x88\x80\x80\x80\""),
        TEXT("\xff"),
        TEXT("[\xe5]"),
        TEXT("{\"\xe5\":1}"),
        /* arrays */
        TEXT("["),
        TEXT("[1"),
        TEXT("[1,"),
        TEXT("[1,]"),
        TEXT("[,1]"),
        TEXT("[,]"),
        TEXT("[1,,2]"),
        TEXT("[1 2]"),
        TEXT("[1]]"),
        TEXT("]"),
        TEXT("[1}"),
        TEXT("[\"a\":1]"),
        TEXT("[1:2]"),
        TEXT("[] []"),
        TEXT("[1],"),
        TEXT("[1]x"),
        TEXT("[1]\0"),
        TEXT("[\f1]"),
        TEXT("[\v1]"),
        TEXT("[1]\xc2\xa0"),
        TEXT("[1] // end"),
        TEXT("[1 /* one */]"),
        TEXT("[1]#"),
        TEXT("[*"),
        /* objects */
        TEXT("{"),
        TEXT("{\"a\""),
        TEXT("{\"a\":"),
        TEXT("{\"a\":1"),
        TEXT("{\"a\":1,"),
        TEXT("{\"a\":1,}"),
        TEXT("{,}"),
        TEXT("{,\"a\":1}"),
        TEXT("{\"a\":1,,\"b\":2}"),
        TEXT("{\"a\" 1}"),
        TEXT("{\"a\",1}"),
        TEXT("{\"a\"::1}"),
        TEXT("{\"a\":}"),
        TEXT("{a:1}"),
        TEXT("{'a':1}"),
        TEXT("{1:1}"),
        TEXT("{null:1}"),
        TEXT("{[]:1}"),
        TEXT("{\"a\":1]"),
        TEXT("{\"a\":1 \"b\":2}"),
        TEXT("{\"a\":1}}"),
        TEXT("}"),
        TEXT("{}{}"),
        TEXT("{\"a\"}"),
        TEXT("{\"a\":\"b\"}#"),
        TEXT("{\"a\":1;\"b\":2}"),
        TEXT("\xef\xbb\xbf{}"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        reject_n(bad[i].s, bad[i].n, 0, "dir/config.json:");
}

/* Every proper prefix of a text that ends in a bracket is refused; no read past it. */
static void test_every_prefix_is_rejected(void **state)
{
    static const char whole[] =
        "{\"k\\u00e9y\":[1.5e-3,-2,true,false,null,\"\\ud83d\\ude00\xf0\x9f\x98\x80\"],\"o\":{}}";
    (void)state;
    json_decref(accept(whole));
    for (size_t n = 0; n < sizeof whole - 1; n++) reject_n(whole, n, 0, "dir/config.json:1:");
}

static void test_messages_name_file_line_column_and_what_was_expected(void **state)
{
    (void)state;
    reject("{\n  \"a\": 1,\n}",
           "dir/config.json:3:1: unexpected '}' (expected a key in double quotes)");
    reject("[1,\r\n 2,\r\n ]", "dir/config.json:3:2: unexpected ']' (expected a value)");
    reject("{\"a\" 1}", ":1:6: unexpected '1' (expected ':')");
    reject("{\"a\":1 2}", ":1:8: unexpected '2' (expected ',' or '}')");
    reject("[1 2]", ":1:4: unexpected '2' (expected ',' or ']')");
    reject("{} x", ":1:4: unexpected 'x' (expected the end of the text)");
    reject("[", ":1:2: the text ends too early (expected a value)");
    reject("[\"\xc3\xa9\xc3\xa9\" x]", ":1:7: "); /* columns count characters */
    reject("[\"abc", ":1:2: a string that does not end");
    reject("[\"a\\q\"]", ":1:4: unknown escape");
    reject("[\"a\xff\"]", ":1:4: invalid UTF-8");
    reject("[\"\\udead\"]", "lone surrogate \\udead");
    reject("[012]", ":1:2: a number with a leading zero");
    reject("[NaN]", ":1:2: NaN is no JSON number");
    reject("[1e999]", ":1:2: number out of range");
    reject_n("[\x01]", 3, 0, "unexpected byte 0x01");
}

static void test_offset_and_errors_without_a_place_to_put_them(void **state)
{
    ingot_error e;
    json_t *v;
    (void)state;
    assert_int_equal(load("{\n \"a\": tru}", 12, 0, &v, &e), INGOT_ERR_INPUT);
    assert_int_equal(e.offset, 8);
    assert_int_equal(ig_json_load("[", 1, "x", 0, &v, NULL), INGOT_ERR_INPUT);
    assert_null(v);
}

static void test_B10_trailing_comma_and_deep_nesting(void **state)
{
    const size_t deep = 100000;
    (void)state;
    char *text = malloc(deep * 6);
    assert_non_null(text);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    reject_n(text, deep * 2, 0, "dir/config.json:1:129: nested too deep (expected at most 128");
    for (size_t i = 0; i < deep; i++) memcpy(text + 5 * i, "{\"a\":", 5);
    reject_n(text, deep * 5, 0, ":1:641: nested too deep");
    memset(text, '[', 128);
    memset(text + 128, ']', 128);
    json_decref(accept_with(text, 256, 0));
    memset(text, '[', 129);
    memset(text + 129, ']', 129);
    reject_n(text, 258, 0, "nested too deep");
    free(text);
    reject("{\"vocab_size\": 320,}", ":1:20: unexpected '}'");
}

static void test_B10_nonfinite_numbers_only_when_allowed(void **state)
{
    static const char text[] = "{\"a\":[0.0, Infinity,-Infinity ,NaN],\"b\":\"NaN\"}";
    (void)state;
    reject(text, "Infinity is no JSON number");
    json_t *v = accept_with(text, sizeof text - 1, IG_JSON_NONFINITE);
    const json_t *a = json_object_get(v, "a");
    assert_false(ig_json_is_nonfinite(json_array_get(a, 0)));
    for (size_t i = 1; i < 4; i++) {
        const json_t *x = json_array_get(a, i);
        assert_true(ig_json_is_nonfinite(x));
        assert_false(json_is_number(x));
        assert_false(ig_utf8_valid(json_string_value(x), json_string_length(x)));
    }
    assert_false(ig_json_is_nonfinite(json_object_get(v, "b")));
    assert_false(ig_json_is_nonfinite(NULL));
    json_decref(v);
    static const char *const bad[] = {"+Infinity", "Inf",  "-NaN", "nan",
                                      "Infinityx", "NaN1", "-Inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        reject_n(bad[i], strlen(bad[i]), IG_JSON_NONFINITE, "dir/config.json:1:");
}

static void test_B10_byte_order_mark_only_when_allowed(void **state)
{
    static const char text[] = "\xef\xbb\xbf{\"a\":1}", again[] = "\xef\xbb\xbf\xef\xbb\xbf{}";
    (void)state;
    reject(text, ":1:1: unexpected byte 0xef");
    json_decref(accept_with(text, sizeof text - 1, IG_JSON_BOM));
    json_decref(accept_with("[]", 2, IG_JSON_BOM));
    reject_n(again, sizeof again - 1, IG_JSON_BOM, ":1:1: unexpected byte 0xef");
    reject_n(text, 3, IG_JSON_BOM, ":1:1: the text ends too early");
    reject_n(text, 2, IG_JSON_BOM, ":1:1: unexpected byte 0xef");
}

static void test_B10_numbers_keep_their_kind(void **state)
{
    (void)state;
    json_t *v = accept("[320, 320.0, 1e3, \"320\", 9223372036854775807, -9223372036854775808,"
                       " 9223372036854775808, -9223372036854775809, -0, 0.1, 1E-2]");
    assert_true(json_is_integer(json_array_get(v, 0)));
    assert_true(json_is_real(json_array_get(v, 1)));
    assert_true(json_is_real(json_array_get(v, 2)));
    assert_true(json_is_string(json_array_get(v, 3)));
    assert_true(json_integer_value(json_array_get(v, 4)) == INT64_MAX);
    assert_true(json_integer_value(json_array_get(v, 5)) == INT64_MIN);
    assert_true(json_real_value(json_array_get(v, 6)) == 9223372036854775808.0);
    assert_true(json_real_value(json_array_get(v, 7)) == -9223372036854775808.0);
    assert_true(json_is_integer(json_array_get(v, 8)));
    assert_true(json_real_value(json_array_get(v, 9)) == 0.1);
    assert_true(json_real_value(json_array_get(v, 10)) == 0.01);
    json_decref(v);
}

static void test_duplicate_keys(void **state)
{
    static const char twice[] = "{\"a\":1,\"b\":2,\"\\u0061\":[3]}";
    (void)state;
    reject(twice, ":1:14: duplicate key \"a\"");
    reject("{\"x\":{\"k\":1,\"k\":1}}", "duplicate key \"k\"");
    reject("{\"a\\u0000b\":1,\"a\\u0000b\":1}", "duplicate key \"a\\x00b\"");
    json_decref(accept("[{\"a\":1},{\"a\":1},{\"b\":{\"b\":{}}}]"));
    json_t *v = accept_with(twice, sizeof twice - 1, IG_JSON_LAST_WINS);
    assert_int_equal(json_object_size(v), 2);
    assert_int_equal(json_array_size(json_object_get(v, "a")), 1);
    json_decref(v);
}

static void test_strings_are_decoded_exactly(void **state)
{
    static const char want[] =
        "a\0b\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80";
    (void)state;
    json_t *v = accept(
        "\"a\\u0000b\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\u20ac\\ud83D\\uDe00\xf0\x9f\x98\x80\"");
    assert_int_equal(json_string_length(v), sizeof want - 1);
    assert_memory_equal(json_string_value(v), want, sizeof want - 1);
    json_decref(v);
    v = accept("{\"a\\u0000b\":1,\"a\":2}");
    assert_int_equal(json_integer_value(json_object_getn(v, "a\0b", 3)), 1);
    assert_int_equal(json_integer_value(json_object_get(v, "a")), 2);
    json_decref(v);
}

/* Write `text` in its canonical form, which must be `want`, and so must be the form of that. */
static void check_dump(const char *text, const char *want)
{
    for (int round = 0; round < 2; round++) {
        ingot_error e;
        char *out;
        size_t n;
        json_t *v = accept(round ? want : text);
        assert_int_equal(ig_json_dump(v, &out, &n, &e), INGOT_OK);
        assert_string_equal(out, want);
        assert_int_equal(n, strlen(want));
        json_decref(v);
        free(out);
    }
}

static void test_dump_is_canonical(void **state)
{
    (void)state;
    check_dump(" { \"b\" : [ 1 , { } , [ ] ] , \"a\" : null, \"\" : true } ",
               "{\"\":true,\"a\":null,\"b\":[1,{},[]]}");
    /* byte order: a prefix first, upper before lower case, U+FFFD before U+1F600 */
    check_dump(
        "{\"ab\":1,\"a\":2,\"B\":3,\"\\ud83d\\ude00\":4,\"\\ufffd\":5,\"\\u00e9\":6}",
        "{\"B\":3,\"a\":2,\"ab\":1,\"\xc3\xa9\":6,\"\xef\xbf\xbd\":5,\"\xf0\x9f\x98\x80\":4}");
    check_dump("\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\\\/\x7f\\u00e9\"",
               "\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\x7f\xc3\xa9\"");
    check_dump("[0,-0,-9223372036854775808,9223372036854775807]",
               "[0,0,-9223372036854775808,9223372036854775807]");
    check_dump("[0.5,320.0,1e-5,0.1,1e300,0.30000000000000004,5e-324]",
               "[0.5,320.0,1e-5,0.1,1e300,0.30000000000000004,4.94065645841247e-324]");
    check_dump("false", "false");
    check_dump("\"\"", "\"\"");
    check_dump("{\"a\\u0000b\":1,\"a\":2}", "{\"a\":2,\"a\\u0000b\":1}");
}

static void test_dump_refuses_what_json_cannot_say(void **state)
{
    ingot_error e;
    char *out;
    size_t n;
    (void)state;
    json_t *v = accept_with("{\"a\":[[NaN]]}", 13, IG_JSON_NONFINITE);
    assert_int_equal(ig_json_dump(v, &out, &n, &e), INGOT_ERR_INPUT);
    assert_null(out);
    json_decref(v);
    v = json_array();
    for (int i = 0; i < 128; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, v);
        v = outer;
    }
    assert_int_equal(ig_json_dump(v, &out, &n, &e), INGOT_ERR_INPUT);
    assert_non_null(strstr(e.message, "nested too deep"));
    assert_int_equal(ig_json_dump(json_array_get(v, 0), &out, &n, &e), INGOT_OK);
    assert_int_equal(n, 256);
    free(out);
    json_decref(v);
}

/* The decimal point stays a point where the host program's locale says a comma. */
static void test_numbers_do_not_depend_on_the_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    bool found = false;
    (void)state;
    for (size_t i = 0; i < 3 && !found; i++) found = setlocale(LC_NUMERIC, names[i]) != NULL;
    check_dump("[1.5,2.25e-7]", "[1.5,2.25e-7]");
    setlocale(LC_NUMERIC, "C");
    if (!found) skip();
}

/* 200,000 keys and a long string: far apart in size from the vectors, same reader. */
static void test_large_object(void **state)
{
    const size_t count = 200000;
    size_t n = 0;
    (void)state;
    char *text = malloc(count * 24 + 2);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        n += (size_t)sprintf(text + n, "%c\"token_%zu\":%zu", i ? ',' : '{', i, i);
    text[n++] = '}';
    json_t *v = accept_with(text, n, 0);
    assert_int_equal(json_object_size(v), count);
    assert_int_equal(json_integer_value(json_object_get(v, "token_199999")), 199999);
    json_decref(v);
    free(text);
}

static void test_lexer_integers(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t value;
    } cases[] = {{"0", true, 0},
                 {"18446744073709551615", true, UINT64_MAX},
                 {"18446744073709551616", false, 0},
                 {"99999999999999999999", false, 0},
                 {"100000000000000000000000", false, 0},
                 {"-0", false, 0},
                 {"-1", false, 0},
                 {"1.0", false, 0},
                 {"1e3", false, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ig_lex lx;
        enum ig_lex_event event;
        uint64_t value = 0;
        ig_lex_init(&lx, cases[i].text, strlen(cases[i].text), "x", 0, 0);
        assert_int_equal(ig_lex_next(&lx, &event, NULL), INGOT_OK);
        assert_int_equal(event, IG_LEX_NUMBER);
        assert_int_equal(ig_lex_u64(&lx, &value), cases[i].ok);
        if (cases[i].ok) assert_true(value == cases[i].value);
        assert_int_equal(ig_lex_next(&lx, &event, NULL), INGOT_OK);
        assert_int_equal(event, IG_LEX_END);
        assert_int_equal(ig_lex_next(&lx, &event, NULL), INGOT_OK);
        assert_int_equal(event, IG_LEX_END);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_every_form_of_rfc8259),
        cmocka_unit_test(test_rejects_everything_else),
        cmocka_unit_test(test_every_prefix_is_rejected),
        cmocka_unit_test(test_messages_name_file_line_column_and_what_was_expected),
        cmocka_unit_test(test_offset_and_errors_without_a_place_to_put_them),
        cmocka_unit_test(test_B10_trailing_comma_and_deep_nesting),
        cmocka_unit_test(test_B10_nonfinite_numbers_only_when_allowed),
        cmocka_unit_test(test_B10_byte_order_mark_only_when_allowed),
        cmocka_unit_test(test_B10_numbers_keep_their_kind),
        cmocka_unit_test(test_duplicate_keys),
        cmocka_unit_test(test_strings_are_decoded_exactly),
        cmocka_unit_test(test_dump_is_canonical),
        cmocka_unit_test(test_dump_refuses_what_json_cannot_say),
        cmocka_unit_test(test_numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(test_large_object),
        cmocka_unit_test(test_lexer_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
