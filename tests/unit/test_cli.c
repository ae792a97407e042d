/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables, counts with units, numbers for people, the command that was meant. */
#include "base/cli.h"
#include "base/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct values {
    struct ig_cli cli;
    const char *name;
    bool force;
    uint64_t max, rules;
};

/* Parses one command line of words separated by blanks; up to 8 words. */
static int parse(struct values *v, const char *line)
{
    static char copy[256];
    static char *words[10];
    snprintf(copy, sizeof copy, "cmd %s", line);
    int n = 0;
    char *save, *word = strtok_r(copy, " ", &save);
    for (; word && n < 9; word = strtok_r(NULL, " ", &save)) words[n++] = word;
    words[n] = NULL;
    memset(v, 0, sizeof *v);
    v->cli = (struct ig_cli){.command = "cmd", .usage = "ARG"};
    const struct ig_opt opts[] = {{"name", 'n', IG_OPT_TEXT, &v->name},
                                  {"force", 'f', IG_OPT_FLAG, &v->force},
                                  {"max-header", 0, IG_OPT_COUNT, &v->max},
                                  {"max-rules", 0, IG_OPT_COUNT, &v->rules},
                                  IG_OPT_END};
    return ig_cli_parse(&v->cli, n, words, opts, 0, 2);
}

static void options_in_every_spelling(void **state)
{
    (void)state;
    struct values v;
    assert_int_equal(parse(&v, "a --name=x -f b"), -1);
    assert_string_equal(v.name, "x");
    assert_true(v.force);
    assert_int_equal(v.cli.argc, 2);
    assert_string_equal(v.cli.argv[1], "b");

    assert_int_equal(parse(&v, "-fnx --store S -q --json"), -1);
    assert_string_equal(v.name, "x");
    assert_string_equal(v.cli.store, "S");
    assert_true(v.force && v.cli.quiet && v.cli.json);

    assert_int_equal(parse(&v, "--max-h 7 --nam y"), -1);
    assert_int_equal(v.max, 7);
    assert_string_equal(v.name, "y");

    assert_int_equal(parse(&v, "-- -f --json"), -1);
    assert_false(v.force || v.cli.json);
    assert_int_equal(v.cli.argc, 2);
}

static void wrong_options_are_usage_errors(void **state)
{
    (void)state;
    static const char *const lines[] = {"--zzz",
                                        "-z",
                                        "--max 1",
                                        "--force=1",
                                        "a -n",
                                        "--name",
                                        "a b c",
                                        "--max-header x",
                                        "--max-header 1x",
                                        "--max-header -1",
                                        "--max-header=",
                                        "--max-header 18446744073709551616",
                                        "--max-header 18446744073709552K",
                                        "--max-header 1KK"};
    struct values v;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (parse(&v, lines[i]) != 2) fail_msg("accepted: %s", lines[i]);
}

static void counts_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"007", 7},
                {"512B", 512},
                {"1K", 1000},
                {"1k", 1000},
                {"2KB", 2000},
                {"2Ki", 2048},
                {"2KiB", 2048},
                {"3M", 3000000},
                {"3MiB", 3 << 20},
                {"5G", 5000000000},
                {"1GiB", 1 << 30},
                {"1T", 1000000000000},
                {"18446744073709551615", UINT64_MAX}};
    struct values v;
    char line[64];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(line, sizeof line, "--max-header %s", good[i].text);
        assert_int_equal(parse(&v, line), -1);
        assert_int_equal(v.max, good[i].value);
    }
}

static void human_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},          {999, "999 B"},          {1000, "1.00 kB"},
                 {1005, "1.00 kB"},   {7640000000, "7.64 GB"}, {9994, "9.99 kB"},
                 {9996, "10.0 kB"},   {99960, "100 kB"},       {999499, "999 kB"},
                 {999500, "1.00 MB"}, {UINT64_MAX, "18.4 EB"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(ig_human(cases[i].bytes).s, cases[i].text);
}

static void shapes_are_cut_when_long(void **state)
{
    (void)state;
    uint64_t dims[64];
    for (size_t i = 0; i < 64; i++) dims[i] = UINT64_MAX;
    assert_string_equal(ig_shape(dims, 0).s, "[]");
    assert_string_equal(ig_shape((const uint64_t[]){2, 3}, 2).s, "[2,3]");
    assert_string_equal(ig_shape(dims, 1).s, "[18446744073709551615]");
    const struct ig_text cut = ig_shape(dims, 64);
    assert_string_equal(cut.s + strlen(cut.s) - 5, ",...]");
}

static void edits_count_a_swap_once(void **state)
{
    (void)state;
    assert_int_equal(ig_edits("", ""), 0);
    assert_int_equal(ig_edits("", "abc"), 3);
    assert_int_equal(ig_edits("verfy", "verify"), 1);
    assert_int_equal(ig_edits("exprot", "export"), 1);
    assert_int_equal(ig_edits("kitten", "sitting"), 3);
}

static void nearest_command_is_suggested(void **state)
{
    (void)state;
    static const struct ig_cmd cmds[] = {{"verify", "", NULL}, {"export", "", NULL},
                                         {"ls", "", NULL},     {"rm", "", NULL},
                                         {"rv", "", NULL},     {NULL, NULL, NULL}};
    char near[32], wide[200];
    assert_int_equal(ig_suggest(cmds, "verfy", near, sizeof near), 1);
    assert_string_equal(near, "verify");
    assert_int_equal(ig_suggest(cmds, "exp", near, sizeof near), 1);
    assert_string_equal(near, "export");
    assert_int_equal(ig_suggest(cmds, "rx", near, sizeof near), 2);
    assert_string_equal(near, "rm, rv");
    assert_int_equal(ig_suggest(cmds, "quantize", near, sizeof near), 0);
    assert_int_equal(ig_suggest(cmds, "", near, sizeof near), 0);
    memset(wide, 'v', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    assert_int_equal(ig_suggest(cmds, wide, near, sizeof near), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_in_every_spelling),
        cmocka_unit_test(wrong_options_are_usage_errors),
        cmocka_unit_test(counts_have_units),
        cmocka_unit_test(human_sizes),
        cmocka_unit_test(shapes_are_cut_when_long),
        cmocka_unit_test(edits_count_a_swap_once),
        cmocka_unit_test(nearest_command_is_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
