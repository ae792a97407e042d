/* SPDX-License-Identifier: Apache-2.0 */
/* What a program sees that links with libingot: ingot.h alone, through the shared library. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ingot.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/ingot-test-api-XXXXXX";
static char store[64];

static const char *model(void)
{
    static char path[1024];
    const char *srcdir = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/models/phi3-pocket", srcdir ? srcdir : ".");
    return path;
}

static int set_up(void **state)
{
    ingot_error e;
    (void)state;
    if (!mkdtemp(top)) return -1;
    snprintf(store, sizeof store, "%s/store", top);
    if (ingot_convert(store, model(), NULL, NULL, &e) != INGOT_OK) fail_msg("%s", e.message);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(top, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static void test_report_is_the_commands_json(void **state)
{
    char *report = NULL;
    (void)state;
    assert_int_equal(ingot_verify(store, "phi3-pocket", &report, NULL), INGOT_OK);
    assert_non_null(strstr(report, "\"ok\":true"));
    assert_non_null(strstr(report, "\"level\":\"full\""));
    ingot_free(report);
}

static void test_read_every_tensor(void **state)
{
    ingot_pack *p = NULL;
    ingot_error e;
    uint8_t digest[INGOT_DIGEST_BYTES];
    (void)state;
    assert_int_equal(ingot_pack_open(store, "phi3-pocket", &p, &e), INGOT_OK);
    assert_int_equal(ingot_pack_digest(p, digest), 1);
    assert_int_equal(ingot_pack_count(p), 33);
    for (uint32_t i = 0; i < ingot_pack_count(p); i++) {
        ingot_tensor t;
        assert_int_equal(ingot_pack_tensor(p, i, &t, &e), INGOT_OK);
        assert_string_equal(t.dtype, "F16");
        void *buffer = malloc(t.bytes);
        if (ingot_pack_read(p, &t, buffer, &e) != INGOT_OK) fail_msg("%s", e.message);
        free(buffer);
    }
    ingot_tensor t;
    assert_int_equal(ingot_pack_tensor(p, 33, &t, &e), INGOT_ERR_USAGE);
    assert_int_equal(ingot_pack_find(p, "nothing", &t, &e), INGOT_ERR_NOT_FOUND);
    assert_int_equal(ingot_pack_find(p, "model.norm.weight", &t, &e), INGOT_OK);
    assert_int_equal(t.rank, 1);
    assert_int_equal(t.shape[0], 288);
    ingot_pack_close(p);
    ingot_pack_close(NULL);
}

/* C08: what is read is hashed, also when the file changes after it was opened. */
static void test_C08_byte_flipped_after_open_is_caught(void **state)
{
    ingot_pack *p = NULL;
    ingot_tensor t;
    ingot_error e;
    uint8_t digest[INGOT_DIGEST_BYTES], byte = 0;
    char path[256], hex[65] = "";
    (void)state;
    assert_int_equal(ingot_pack_open(store, "phi3-pocket", &p, &e), INGOT_OK);
    ingot_pack_digest(p, digest);
    for (int i = 0; i < 32; i++) sprintf(hex + 2 * i, "%02x", digest[i]);
    snprintf(path, sizeof path, "%s/packs/%s.ingot", store, hex);
    assert_int_equal(ingot_pack_find(p, "model.norm.weight", &t, &e), INGOT_OK);
    void *buffer = malloc(t.bytes);
    assert_int_equal(chmod(path, 0644), 0);
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)t.offset + 5), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)t.offset + 5), 1);
    assert_int_equal(ingot_pack_read(p, &t, buffer, &e), INGOT_ERR_CHECK);
    assert_string_equal(e.tensor, "model.norm.weight");
    assert_int_equal(e.offset, t.offset);
    assert_int_equal(((uint8_t *)buffer)[5], 0);
    char *report = NULL;
    assert_int_equal(ingot_verify(store, "phi3-pocket", &report, &e), INGOT_ERR_CHECK);
    assert_non_null(strstr(report, "model.norm.weight"));
    ingot_free(report);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)t.offset + 5), 1);
    close(fd);
    assert_int_equal(ingot_pack_read(p, &t, buffer, &e), INGOT_OK);
    free(buffer);
    ingot_pack_close(p);
}

static void test_unknown_model_and_bad_source(void **state)
{
    ingot_pack *p = (ingot_pack *)1;
    ingot_error e;
    (void)state;
    assert_int_equal(ingot_pack_open(store, "no-such-model", &p, &e), INGOT_ERR_NOT_FOUND);
    assert_null(p);
    assert_int_not_equal(ingot_convert(store, "/nonexistent", NULL, NULL, &e), INGOT_OK);
    assert_non_null(strstr(e.message, "/nonexistent"));
    /* the same status for a caller who wants no message */
    assert_int_equal(ingot_convert(store, "/nonexistent", NULL, NULL, &e), INGOT_ERR_NOT_FOUND);
    assert_int_equal(ingot_convert(store, "/nonexistent", NULL, NULL, NULL), INGOT_ERR_NOT_FOUND);
}

static void test_export_writes_the_files_back(void **state)
{
    char folder[64], a[1200];
    struct stat st, original;
    ingot_error e;
    (void)state;
    snprintf(folder, sizeof folder, "%s/out", top);
    assert_int_equal(ingot_export(store, "phi3-pocket", folder, &e), INGOT_OK);
    assert_int_equal(ingot_export(store, "phi3-pocket", folder, &e), INGOT_ERR_EXISTS);
    snprintf(a, sizeof a, "%s/config.json", folder);
    assert_int_equal(stat(a, &st), 0);
    snprintf(a, sizeof a, "%s/config.json", model());
    assert_int_equal(stat(a, &original), 0);
    assert_int_equal(st.st_size, original.st_size);
}

static void write_rules(const char *folder, mode_t mode, const char *text)
{
    char file[120];
    snprintf(file, sizeof file, "%s/some.trust", folder);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(file, mode), 0);
}

/* Rules, and what they are asked about; signatures are made by the command (cli/trust.bats). */
static void test_what_no_rule_accepts_is_refused(void **state)
{
    char folder[80], *report = NULL;
    uint8_t digest[INGOT_DIGEST_BYTES];
    ingot_error e;
    (void)state;
    snprintf(folder, sizeof folder, "%s/trust", top);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(ingot_trust_check(store, "phi3-pocket", folder, digest, &report, &e),
                     INGOT_ERR_CHECK);
    assert_non_null(strstr(e.message, "none is about this model"));
    assert_null(report);
    write_rules(folder, 0600,
                "deny digest=fsverity-sha256:"
                "b377b3eca0e2cae65965a8c7107edf7e8e2a5411ea1b6e6f64b6ef41eafea6b1\n");
    assert_int_equal(ingot_trust_check(store, "phi3-pocket", folder, digest, NULL, &e),
                     INGOT_ERR_CHECK);
    assert_non_null(strstr(e.message, "some.trust:1 denies"));
    write_rules(folder, 0622, "# nothing\n");
    assert_int_equal(ingot_trust_check(store, "phi3-pocket", folder, digest, NULL, &e),
                     INGOT_ERR_INPUT);
    write_rules(folder, 0600, "allow everything\n");
    assert_int_equal(ingot_trust_check(store, "phi3-pocket", folder, digest, NULL, &e),
                     INGOT_ERR_INPUT);
    assert_int_equal(ingot_trust_check(store, "phi3-pocket", folder, digest, NULL, NULL),
                     INGOT_ERR_INPUT);
    assert_int_equal(ingot_trust_check(store, "no-such-model", NULL, digest, NULL, &e),
                     INGOT_ERR_NOT_FOUND);
}

static void test_receipt_of_a_load(void **state)
{
    char file[80], *report = NULL;
    ingot_error e;
    ingot_pack *p = NULL;
    ingot_loader *loader = NULL;
    ingot_load *load = NULL;
    ingot_receipt *r = NULL;
    const char *const arguments[] = {"test", "--of", "receipts"};
    const ingot_loader_options where = {.size = sizeof where, .device = "host"};
    const ingot_load_options what = {.size = sizeof what};
    (void)state;
    snprintf(file, sizeof file, "%s/receipt.json", top);
    const ingot_receipt_options o = {
        .size = sizeof o, .file = file, .nonce = "n-1", .arguments = arguments, .narguments = 3};
    assert_int_equal(ingot_receipt_begin(store, "test", &o, &r, &e), INGOT_OK);
    assert_int_equal(ingot_loader_open(&where, &loader, &e), INGOT_OK);
    assert_int_equal(ingot_pack_open(store, "phi3-pocket", &p, &e), INGOT_OK);
    assert_int_equal(ingot_load_start(loader, p, &what, &load, &e), INGOT_OK);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_OK);
    assert_int_equal(ingot_receipt_load(r, "phi3-pocket", load, &e), INGOT_OK);
    assert_int_equal(ingot_receipt_setting(r, "temperature", "0", &e), INGOT_OK);
    assert_int_equal(ingot_receipt_output(r, "answer", "Paris\n", 6, &e), INGOT_OK);
    assert_int_equal(access(file, F_OK), -1); /* nothing before the end */
    assert_int_equal(ingot_receipt_end(r, &e), INGOT_OK);
    ingot_receipt_free(r);
    assert_int_equal(ingot_receipt_verify(store, file, NULL, NULL, &report, &e), INGOT_OK);
    assert_non_null(strstr(report, "\"word\":\"consistent\""));
    assert_non_null(strstr(report, "\"arguments\":[\"test\",\"--of\",\"receipts\"]"));
    assert_non_null(strstr(report, "\"temperature\":\"0\""));
    assert_non_null(strstr(report, "\"verdict\":\"proven\""));
    /* A shared library is hashed apart from the program. */
    Dl_info where_is;
    assert_int_not_equal(dladdr((void *)(uintptr_t)&ingot_version, &where_is), 0);
    const bool shared = strstr(where_is.dli_fname, "libingot.so") != NULL;
    const char *library = strstr(report, "\"library\":");
    assert_non_null(library);
    assert_int_equal(strstr(library, "\"name\":\"libingot.so") != NULL, shared);
    assert_int_equal(strncmp(library, "\"library\":null", 14) == 0, !shared);
    assert_null(strstr(library, "\"sha256\":null"));
    ingot_free(report);
    /* What came out is neither an empty file nor there twice. */
    assert_int_equal(ingot_receipt_verify(store, file, NULL, "/dev/null", NULL, &e),
                     INGOT_ERR_CHECK);
    assert_int_equal(ingot_receipt_begin(store, "test", &o, &r, &e), INGOT_ERR_EXISTS);
    assert_null(r);
    ingot_load_release(load);
    ingot_loader_close(loader);
    ingot_pack_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_is_the_commands_json),
        cmocka_unit_test(test_read_every_tensor),
        cmocka_unit_test(test_C08_byte_flipped_after_open_is_caught),
        cmocka_unit_test(test_unknown_model_and_bad_source),
        cmocka_unit_test(test_export_writes_the_files_back),
        cmocka_unit_test(test_what_no_rule_accepts_is_refused),
        cmocka_unit_test(test_receipt_of_a_load),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
