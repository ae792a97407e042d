/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what may be one, which exclude each other, what the files may say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/folder.h"
#include "tests/unit/store_dir.h"

#include <sys/stat.h>
#include <sys/wait.h>

static const uint8_t one[IG_HASH] = {1}, two[IG_HASH] = {2};

static char *repeat(char c, size_t n)
{
    char *s = calloc(n + 1, 1);
    assert_non_null(s);
    memset(s, c, n);
    return s;
}

static void test_good_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a",         "Phi-4",   "org/model",    "a/b/c/d",
                                       "0",         "deadbee", "org/deadbeef", "deadbeef.x",
                                       "x.ingot/y", "a..b",    "a_b-c.d",      "v1.",
                                       "ingot",     "xingot",  "deadbeefg",    "a.ingots"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (ig_name_check(good[i], NULL) != INGOT_OK) fail_msg("refused: %s", good[i]);
    char *longest = repeat('x', 255);
    assert_int_equal(ig_name_check(longest, NULL), INGOT_OK);
    free(longest);
}

static void test_bad_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "/a",         "a/",
                                      "a//b",     ".a",         "a/.b",
                                      "..",       "a/../b",     "-a",
                                      "_a",       "a b",        "a:b",
                                      "a@b",      "a\\b",       "a\nb",
                                      "\xc3\xa4", "a/b/c/d/e",  "deadbeef",
                                      "DEADBEEF", "0123456789", "00000000",
                                      "m.ingot",  "a/m.ingot",  "a*",
                                      "a\x7f",    "a/-b",       "fsverity-sha256:00"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ingot_error e = {0};
        if (ig_name_check(bad[i], &e) != INGOT_ERR_USAGE) fail_msg("taken: \"%s\"", bad[i]);
        for (const char *p = e.message; *p; p++) assert_true((unsigned char)*p >= 0x20);
    }
    char *long_one = repeat('x', 256);
    assert_int_equal(ig_name_check(long_one, NULL), INGOT_ERR_USAGE);
    free(long_one);
}

static void test_write_and_read(void **state)
{
    const struct ig_store *s = *state;
    uint8_t got[IG_HASH];
    ingot_error e;
    assert_int_equal(ig_name_read(s, "org/m", got, &e), INGOT_ERR_NOT_FOUND);
    assert_int_equal(ig_name_write(s, "org/m", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_read(s, "org/m", got, &e), INGOT_OK);
    assert_memory_equal(got, one, IG_HASH);

    char *path = ig_store_path(s, "names", "org/m"), *text = NULL;
    size_t n;
    assert_int_equal(ig_read_file(path, 1000, &text, &n, &e), INGOT_OK);
    assert_string_equal(text,
                        "fsverity-sha256:"
                        "0100000000000000000000000000000000000000000000000000000000000000 org/m\n");
    free(text);
    free(path);
}

static void test_replaced_only_when_asked(void **state)
{
    const struct ig_store *s = *state;
    uint8_t got[IG_HASH];
    ingot_error e;
    assert_int_equal(ig_name_write(s, "m", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "m", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "m", two, false, &e), INGOT_ERR_EXISTS);
    assert_non_null(strstr(e.message, "\"m\""));
    assert_int_equal(ig_name_read(s, "m", got, &e), INGOT_OK);
    assert_memory_equal(got, one, IG_HASH);
    assert_int_equal(ig_name_write(s, "m", two, true, &e), INGOT_OK);
    assert_int_equal(ig_name_read(s, "m", got, &e), INGOT_OK);
    assert_memory_equal(got, two, IG_HASH);
}

static void test_case_folding(void **state)
{
    const struct ig_store *s = *state;
    ingot_error e;
    assert_int_equal(ig_name_write(s, "Org/Model", one, false, &e), INGOT_OK);
    static const char *const clashes[] = {"org/model", "Org/model", "ORG/MODEL", "oRG/Model"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(ig_name_write(s, clashes[i], one, true, &e), INGOT_ERR_EXISTS);
        assert_non_null(strstr(e.message, "only in case"));
    }
    assert_int_equal(ig_name_write(s, "org/other", one, false, &e), INGOT_OK);
}

static void test_name_is_no_folder(void **state)
{
    const struct ig_store *s = *state;
    ingot_error e;
    assert_int_equal(ig_name_write(s, "a", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "b/c", one, false, &e), INGOT_OK);
    static const char *const clashes[] = {"a/b", "A/b", "a/b/c", "b", "B", "b/c/d"};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(ig_name_write(s, clashes[i], one, true, &e), INGOT_ERR_EXISTS);
        assert_non_null(strstr(e.message, clashes[i]));
    }
    assert_int_equal(ig_name_write(s, "ab", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "b/cc", one, false, &e), INGOT_OK);
}

static void test_remove_takes_empty_folders(void **state)
{
    const struct ig_store *s = *state;
    ingot_error e;
    struct stat st;
    assert_int_equal(ig_name_write(s, "a/b/c", one, false, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "a/x", one, false, &e), INGOT_OK);
    char *ab = ig_store_path(s, "names", "a/b"), *a = ig_store_path(s, "names", "a");
    char *names = ig_store_path(s, "names", NULL);
    assert_int_equal(ig_name_remove(s, "a/b/c", &e), INGOT_OK);
    assert_int_not_equal(stat(ab, &st), 0);
    assert_int_equal(stat(a, &st), 0);
    assert_int_equal(ig_name_remove(s, "a/x", &e), INGOT_OK);
    assert_int_not_equal(stat(a, &st), 0);
    assert_int_equal(stat(names, &st), 0);
    assert_int_equal(ig_name_remove(s, "a/x", &e), INGOT_ERR_NOT_FOUND);
    /* what a killed rm leaves does not stand in the way of a name */
    assert_int_equal(mkdir(a, 0777), 0);
    assert_int_equal(ig_name_write(s, "a", one, false, &e), INGOT_OK);
    free(names);
    free(a);
    free(ab);
}

static void put_file(const struct ig_store *s, const char *name, const char *text, size_t n)
{
    char *path = ig_store_path(s, "names", name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(path);
}

#define HEX "0100000000000000000000000000000000000000000000000000000000000000"

static void test_malformed_files(void **state)
{
    const struct ig_store *s = *state;
    static const char *const texts[] = {"",
                                        "\n",
                                        HEX " m\n",
                                        "sha256:" HEX " m\n",
                                        "fsverity-sha256:" HEX "\n",
                                        "fsverity-sha256:" HEX " m",
                                        "fsverity-sha256:" HEX " m\n\n",
                                        "fsverity-sha256:" HEX "  m\n",
                                        "fsverity-sha256:" HEX " M\n",
                                        "fsverity-sha256:" HEX " other\n",
                                        "fsverity-sha256:0100 m\n",
                                        "fsverity-sha256:" HEX "00 m\n",
                                        "fsverity-sha256:" HEX " \n",
                                        "fsverity-sha256:zz" HEX " m\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint8_t got[IG_HASH];
        ingot_error e;
        put_file(s, "m", texts[i], strlen(texts[i]));
        if (ig_name_read(s, "m", got, &e) != INGOT_ERR_PACK) fail_msg("believed: %s", texts[i]);
        assert_non_null(strstr(e.message, "names/m"));
        assert_int_equal(ig_name_write(s, "m", one, false, &e), INGOT_ERR_PACK);
    }
    ingot_error e;
    char *big = repeat('x', 100000);
    uint8_t got[IG_HASH];
    put_file(s, "m", big, 100000);
    assert_int_equal(ig_name_read(s, "m", got, &e), INGOT_ERR_PACK);
    free(big);
    assert_int_equal(ig_name_write(s, "m", one, true, &e), INGOT_OK);
    assert_int_equal(ig_name_read(s, "m", got, &e), INGOT_OK);
}

static void test_list(void **state)
{
    const struct ig_store *s = *state;
    struct ig_name *names;
    size_t n;
    ingot_error e;
    static const char *const in[] = {"m-10", "m-9", "org/b", "org/a", "Z"};
    static const char *const out[] = {"Z", "bad", "copy.bak", "m-9", "m-10", "org/a", "org/b"};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ig_name_write(s, in[i], one, false, &e), INGOT_OK);
    put_file(s, "bad", "?", 1);
    put_file(s, "copy.bak", "fsverity-sha256:" HEX " copy\n", 87);
    put_file(s, ".hidden", "?", 1);
    put_file(s, "m~", "?", 1);
    char *path = ig_store_path(s, "names", "lost+found");
    assert_int_equal(mkdir(path, 0000), 0);
    free(path);
    assert_int_equal(ig_names_list(s, &names, &n, &e), INGOT_OK);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(names[i].name, out[i]);
        assert_int_equal(names[i].problem != NULL, i == 1 || i == 2);
        assert_int_equal(names[i].has_digest, i != 1);
    }
    ig_names_free(names, n);
}

static void test_nearest(void **state)
{
    const struct ig_store *s = *state;
    ingot_error e;
    static const char *const in[] = {"phi3-pocket", "microsoft/Phi-4", "llama"};
    static const struct {
        const char *wanted, *found;
    } cases[] = {{"phi3-poket", "phi3-pocket"}, {"PHI3-POCKET", "phi3-pocket"},
                 {"Phi-4", "microsoft/Phi-4"},  {"lama", "llama"},
                 {"mistral-large", NULL},       {"x", NULL}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(ig_name_write(s, in[i], one, false, &e), INGOT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *near = ig_names_nearest(s, cases[i].wanted);
        if (cases[i].found)
            assert_string_equal(near, cases[i].found);
        else
            assert_null(near);
        free(near);
    }
}

/* Two processes, two names that exclude each other: one of them gets its own. */
static void test_written_at_once(void **state)
{
    const struct ig_store *s = *state;
    static const char *const pairs[][2] = {{"x", "X"}, {"a/b", "a"}, {"c", "c"}};
    for (int i = 0; i < 60; i++) {
        const char *const *pair = pairs[i % 3];
        int status, won = 0;
        for (int k = 0; k < 2; k++)
            if (fork() == 0) _exit(ig_name_write(s, pair[k], k ? two : one, false, NULL));
        for (int k = 0; k < 2; k++) {
            assert_true(wait(&status) > 0 && WIFEXITED(status));
            assert_true(WEXITSTATUS(status) == INGOT_OK || WEXITSTATUS(status) == INGOT_ERR_EXISTS);
            won += WEXITSTATUS(status) == INGOT_OK;
        }
        assert_int_equal(won, 1);
        if (ig_name_remove(s, pair[0], NULL) != INGOT_OK)
            assert_int_equal(ig_name_remove(s, pair[1], NULL), INGOT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_names),
        cmocka_unit_test(test_bad_names),
        store_test(test_write_and_read),
        store_test(test_replaced_only_when_asked),
        store_test(test_case_folding),
        store_test(test_name_is_no_folder),
        store_test(test_remove_takes_empty_folders),
        store_test(test_malformed_files),
        store_test(test_list),
        store_test(test_nearest),
        store_test(test_written_at_once),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
