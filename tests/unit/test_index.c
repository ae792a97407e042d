/* SPDX-License-Identifier: Apache-2.0 */
/* The index is a cache: whatever happens to it, the answers are those of the packs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/gc.h"
#include "store/index_private.h"
#include "tests/unit/mini_pack.h"
#include "tests/unit/store_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const tensors[] = {"lm_head.weight", "model.embed_tokens.weight", "z"};

static void publish(const struct ig_store *s, unsigned number, uint8_t digest[IG_HASH])
{
    struct mini_pack m = {
        .tensors = tensors, .ntensors = 1 + number % 3, .source = "model.safetensors"};
    ingot_error e;
    ig_put32(m.content, number);
    ig_put32(m.sha256, number / 2); /* every second pack comes from the same file */
    if (number % 5 == 0) m.second = "twin.safetensors";
    if (mini_pack_publish(s, &m, digest, &e) != INGOT_OK) fail_msg("%s", e.message);
}

static void fill(const struct ig_store *s, unsigned n)
{
    uint8_t digest[IG_HASH];
    for (unsigned i = 0; i < n; i++) publish(s, i, digest);
}

static void load(const struct ig_store *s, struct ig_index *index)
{
    ingot_error e;
    if (ig_index_load(s, true, index, &e) != INGOT_OK) fail_msg("%s", e.message);
}

static void assert_same(const struct ig_index *a, const struct ig_index *b)
{
    assert_int_equal(a->npacks, b->npacks);
    assert_int_equal(a->norigins, b->norigins);
    for (size_t i = 0; i < a->npacks; i++) {
        struct ig_summary x = a->packs[i], y = b->packs[i];
        if (x.problem || y.problem) assert_string_equal(x.problem, y.problem);
        x.problem = y.problem = NULL;
        assert_memory_equal(x.digest, y.digest, IG_HASH);
        assert_int_equal(x.size, y.size);
        assert_int_equal(x.sec, y.sec);
        assert_int_equal(x.nsec, y.nsec);
        assert_int_equal(x.rules, y.rules);
        assert_int_equal(x.nsources, y.nsources);
        assert_int_equal(x.has_from, y.has_from);
        assert_int_equal(x.tensors, y.tensors);
        assert_int_equal(x.views, y.views);
        assert_int_equal(x.bytes, y.bytes);
        assert_memory_equal(x.dtype_tensors, y.dtype_tensors, sizeof x.dtype_tensors);
        assert_memory_equal(x.dtype_bytes, y.dtype_bytes, sizeof x.dtype_bytes);
        assert_memory_equal(x.content, y.content, IG_HASH);
        assert_memory_equal(x.from, y.from, IG_HASH);
        assert_string_equal(x.kind, y.kind);
    }
    for (size_t i = 0; i < a->norigins; i++) {
        assert_memory_equal(a->origins[i].sha256, b->origins[i].sha256, IG_HASH);
        assert_int_equal(a->origins[i].pack, b->origins[i].pack);
        assert_int_equal(a->origins[i].bytes, b->origins[i].bytes);
        assert_string_equal(a->origins[i].name, b->origins[i].name);
    }
}

static void test_fresh_index_reads_no_pack(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index read, fresh, again;
    fill(s, 11);
    assert_int_equal(ig_index_load(s, false, &read, NULL), INGOT_OK);
    assert_int_equal(read.opened, 11);
    load(s, &fresh);
    assert_int_equal(fresh.opened, 11); /* nothing was written by the first */
    load(s, &again);
    assert_int_equal(again.opened, 0);
    assert_null(again.notice);
    assert_same(&read, &fresh);
    assert_same(&read, &again);
    assert_int_equal(again.norigins, 11 + 3);
    assert_string_equal(again.packs[0].kind, "identity");
    ig_index_free(&read);
    ig_index_free(&fresh);
    ig_index_free(&again);
}

static void test_packs_come_and_go(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index;
    uint8_t digest[IG_HASH];
    fill(s, 5);
    load(s, &index);
    ig_index_free(&index);
    publish(s, 5, digest);
    load(s, &index);
    assert_int_equal(index.npacks, 6);
    assert_int_equal(index.opened, 1); /* only the one it lacked */
    ig_index_free(&index);
    char *path = ig_store_pack_path(s, digest);
    assert_int_equal(unlink(path), 0);
    load(s, &index);
    assert_int_equal(index.npacks, 5);
    assert_int_equal(index.opened, 0);
    assert_null(ig_index_find(&index, digest));
    for (size_t i = 0; i < index.norigins; i++) assert_true(index.origins[i].pack < 5);
    ig_index_free(&index);
    free(path);
}

static void test_find_source(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index;
    size_t n;
    fill(s, 10);
    for (int i = 0; i < 2; i++) { /* from the packs, then from the index */
        load(s, &index);
        assert_non_null(ig_index_find_source(&index, "01000000", 8, &n));
        assert_int_equal(n, 2); /* packs 2 and 3 */
        assert_non_null(ig_index_find_source(&index, "00000000", 8, &n));
        assert_int_equal(n, 3); /* packs 0 (two files) and 1 */
        assert_null(ig_index_find_source(&index, "77777777", 8, &n));
        assert_int_equal(n, 0);
        ig_index_free(&index);
    }
}

static char *index_path(const struct ig_store *s)
{
    return ig_store_path(s, INDEX_FILE, NULL);
}

/* Load with a damaged index: a notice, the same answers, and a good index afterwards. */
static void assert_healed(const struct ig_store *s, const struct ig_index *want, bool noticed)
{
    struct ig_index index;
    load(s, &index);
    assert_same(want, &index);
    assert_int_equal(index.opened, want->npacks);
    assert_int_equal(index.notice != NULL, noticed);
    ig_index_free(&index);
    load(s, &index);
    assert_same(want, &index);
    assert_int_equal(index.opened, 0);
    assert_null(index.notice);
    ig_index_free(&index);
}

static void test_flipped_bits_anywhere(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index want;
    struct stat st;
    char *path = index_path(s);
    fill(s, 4);
    load(s, &want);
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at += at < 4096 || at >= st.st_size - 64 ? 61 : 997) {
        uint8_t byte;
        const int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= (uint8_t)(1u << (at % 8));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_healed(s, &want, true);
    }
    ig_index_free(&want);
    free(path);
}

static void test_truncated_grown_and_foreign_files(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index want;
    struct stat st;
    char *path = index_path(s);
    fill(s, 4);
    load(s, &want);
    assert_int_equal(stat(path, &st), 0);
    const off_t sizes[] = {0,
                           1,
                           4095,
                           4096,
                           4097,
                           8192,
                           st.st_size - 4096,
                           st.st_size - 1,
                           st.st_size + 1,
                           st.st_size + 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(truncate(path, sizes[i]), 0);
        assert_healed(s, &want, true);
    }
    assert_int_equal(unlink(path), 0);
    assert_healed(s, &want, false);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, (off_t)INDEX_MOST + 4096), 0); /* a hole that claims much */
    assert_healed(s, &want, true);
    ig_index_free(&want);
    free(path);
}

/* Change the seal and make its hash right again, as another version would. */
static void reseal(const char *path, unsigned offset, uint32_t value)
{
    struct stat st;
    const int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    const size_t all = (size_t)st.st_size;
    uint8_t *data = malloc(all), *seal = data + all - SEAL_BYTES, hash[16];
    assert_non_null(data);
    assert_int_equal(ig_pread(fd, path, data, all, 0, NULL), INGOT_OK);
    ig_put32(seal + offset, value);
    memset(seal + SEAL_XXH, 0, sizeof hash);
    ig_xxh128(hash, data, all);
    memcpy(seal + SEAL_XXH, hash, sizeof hash);
    assert_int_equal(ig_pwrite(fd, path, data, all, 0, NULL), INGOT_OK);
    free(data);
    close(fd);
}

static void test_other_version_and_length(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index want;
    char *path = index_path(s);
    fill(s, 4);
    load(s, &want);
    for (uint32_t version = 0; version < 3; version++) {
        if (version == INDEX_VERSION) continue;
        reseal(path, SEAL_VERSION, version);
        assert_healed(s, &want, true);
    }
    reseal(path, SEAL_LENGTH, 4096);
    assert_healed(s, &want, true);
    ig_index_free(&want);
    free(path);
}

/* Whoever may write the store can make the hash right: LMDB must not see such pages. */
static void test_spoiled_pages_behind_a_right_hash(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index want, got;
    struct stat st;
    ingot_error e;
    char *path = index_path(s);
    fill(s, 4);
    load(s, &want);
    const int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    const size_t all = (size_t)st.st_size, length = all - SEAL_BYTES;
    uint8_t *data = malloc(2 * all), *spoiled = data + all, hash[16];
    size_t refused = 0, n = 0;
    assert_int_equal(ig_pread(fd, path, data, all, 0, NULL), INGOT_OK);
    for (size_t i = 0; i < length; i++) {
        if (data[i] == 0 && i % IG_PAGE > 256) continue;
        static const uint8_t flips[] = {1, 0x80, 0xff};
        memcpy(spoiled, data, all);
        spoiled[i] ^= flips[i % sizeof flips];
        memset(spoiled + length + SEAL_XXH, 0, sizeof hash);
        ig_xxh128(hash, spoiled, all);
        memcpy(spoiled + length + SEAL_XXH, hash, sizeof hash);
        assert_int_equal(ig_pwrite(fd, path, spoiled, all, 0, NULL), INGOT_OK);
        const ingot_status status = ig_index_read(s, &got, &e);
        assert_true(status == INGOT_OK || status == INGOT_ERR_PACK);
        refused += status != INGOT_OK;
        n++;
        ig_index_free(&got);
    }
    assert_true(refused > 100 && n > 1000);
    free(data);
    close(fd);
    ig_index_free(&want);
    free(path);
}

/* Text of an index goes to terminals. */
static void test_kind_that_is_no_text(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index, got;
    ingot_error e;
    fill(s, 1);
    load(s, &index);
    static const char *const kinds[] = {"\x1b[2J", "\xc2\x9b[2J", "\xff", "a\nb"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(index.packs[0].kind, sizeof index.packs[0].kind, "%s", kinds[i]);
        assert_int_equal(ig_index_write(s, &index, 0, &e), INGOT_OK);
        assert_int_equal(ig_index_read(s, &got, &e), INGOT_ERR_PACK);
    }
    /* As summaries hold it. */
    snprintf(index.packs[0].kind, sizeof index.packs[0].kind, "a\\nb");
    assert_int_equal(ig_index_write(s, &index, 0, &e), INGOT_OK);
    assert_int_equal(ig_index_read(s, &got, &e), INGOT_OK);
    ig_index_free(&got);
    ig_index_free(&index);
}

static void test_damaged_pack_is_listed(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index;
    uint8_t digest[IG_HASH];
    fill(s, 3);
    publish(s, 3, digest);
    char *path = ig_store_pack_path(s, digest);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 70000), 0);
    for (int i = 0; i < 2; i++) {
        load(s, &index);
        assert_int_equal(index.npacks, 4);
        assert_non_null(ig_index_find(&index, digest)->problem);
        assert_non_null(strstr(ig_index_find(&index, digest)->problem, path));
        assert_int_equal(index.opened, i ? 1 : 4); /* damage is never believed from the index */
        ig_index_free(&index);
    }
    publish(s, 3, digest);
    load(s, &index);
    assert_null(ig_index_find(&index, digest)->problem);
    assert_int_equal(ig_index_find(&index, digest)->tensors, 1);
    ig_index_free(&index);
    free(path);
}

/* Names of tensors, files and models of any length are values or nowhere; keys are digests. */
static void test_E01_long_names(void **state)
{
    const struct ig_store *s = *state;
    static const size_t lengths[] = {510, 511, 512, 600, 20000};
    char *longs[7];
    for (size_t i = 0; i < 5; i++) {
        longs[i] = malloc(lengths[i] + 1);
        memset(longs[i], (int)('a' + i), lengths[i]);
        longs[i][lengths[i]] = '\0';
    }
    longs[5] = strdup(longs[3]);
    longs[6] = strdup(longs[3]);
    for (size_t i = 5; i < 7; i++) memset(longs[i], 'f', 600);
    longs[6][599] = 'g';
    const char *names[7];
    for (size_t i = 0; i < 7; i++) names[i] = longs[i];
    struct mini_pack m = {names, 7, longs[2], .content = {1}};
    uint8_t digest[IG_HASH];
    struct ig_index index;
    ingot_error e;
    assert_int_equal(mini_pack_publish(s, &m, digest, &e), INGOT_OK);
    for (int i = 0; i < 2; i++) {
        load(s, &index);
        assert_int_equal(index.packs[0].tensors, 7);
        assert_string_equal(index.origins[0].name, longs[2]);
        assert_int_equal(index.opened, i == 0);
        ig_index_free(&index);
    }
    for (size_t i = 0; i < 7; i++) free(longs[i]);
}

static void test_E04_map_grows(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index want, index;
    ingot_error e;
    fill(s, 60);
    assert_int_equal(ig_index_load(s, false, &want, NULL), INGOT_OK);
    assert_int_equal(ig_index_write(s, &want, 4 * 4096, &e), INGOT_OK);
    load(s, &index);
    assert_int_equal(index.opened, 0);
    assert_same(&want, &index);
    ig_index_free(&index);
    ig_index_free(&want);
}

static void test_E04_many_models(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index many = {.npacks = 20000, .norigins = 20000}, index;
    ingot_error e;
    many.packs = ig_array(many.npacks, sizeof *many.packs);
    many.origins = ig_array(many.norigins, sizeof *many.origins);
    for (uint32_t i = 0; i < many.npacks; i++) {
        for (unsigned b = 0; b < 4; b++) many.packs[i].digest[b] = (uint8_t)(i >> (24 - 8 * b));
        memcpy(many.origins[i].sha256, many.packs[i].digest, IG_HASH);
        many.origins[i].pack = i;
        many.origins[i].name = strdup("model-00001-of-00002.safetensors");
    }
    assert_int_equal(ig_index_write(s, &many, 0, &e), INGOT_OK);
    assert_int_equal(ig_index_read(s, &index, &e), INGOT_OK);
    assert_same(&many, &index);
    ig_index_free(&index);
    ig_index_free(&many);
}

/* Readers that are killed hold nothing: the file is replaced, never edited, and does not grow. */
static void test_E06_killed_readers(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index;
    struct stat before, after;
    char *path = index_path(s);
    fill(s, 20);
    load(s, &index);
    ig_index_free(&index);
    assert_int_equal(stat(path, &before), 0);
    for (int i = 0; i < 50; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            for (;;) {
                if (ig_index_read(s, &index, NULL) != INGOT_OK) _exit(1);
                ig_index_free(&index);
            }
        }
        usleep((useconds_t)(i * 37 % 1000));
        kill(pid, SIGKILL);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(ig_index_rebuild(s, &index, NULL), INGOT_OK);
        ig_index_free(&index);
    }
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    free(path);
}

static void test_readers_and_writers_at_once(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index;
    fill(s, 20);
    load(s, &index);
    ig_index_free(&index);
    const pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            if (ig_index_rebuild(s, &index, NULL) != INGOT_OK) _exit(1);
            ig_index_free(&index);
        }
    }
    for (int i = 0; i < 200; i++) {
        ingot_error e;
        if (ig_index_read(s, &index, &e) != INGOT_OK) fail_msg("%s", e.message);
        assert_int_equal(index.npacks, 20);
        ig_index_free(&index);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_E02_unwritable_is_a_notice(void **state)
{
    const struct ig_store *s = *state;
    struct ig_index index, want;
    fill(s, 3);
    assert_int_equal(ig_index_load(s, false, &want, NULL), INGOT_OK);
    char *path = index_path(s);
    assert_int_equal(mkdir(path, 0700), 0); /* also stops a superuser */
    load(s, &index);
    assert_same(&want, &index);
    assert_non_null(index.notice);
    ig_index_free(&index);
    assert_int_equal(rmdir(path), 0);
    ig_index_free(&want);
    free(path);
}

static void derive(const struct ig_store *s, uint8_t content, uint8_t from, uint8_t digest[IG_HASH])
{
    const struct mini_pack m = {
        tensors, 1, "m.safetensors", .content = {content}, .derived = from != 0, .from = {from}};
    assert_int_equal(mini_pack_publish(s, &m, digest, NULL), INGOT_OK);
}

static enum ig_gc_why why(const struct ig_gc *g, const uint8_t digest[IG_HASH])
{
    return g->packs[ig_index_find(&g->index, digest) - g->index.packs].why;
}

static void test_gc_keeps_what_is_needed(void **state)
{
    const struct ig_store *s = *state;
    uint8_t base[IG_HASH], half[IG_HASH], small[IG_HASH], stray[IG_HASH];
    struct ig_gc g;
    ingot_error e;
    derive(s, 1, 0, base);
    derive(s, 2, 1, half);
    derive(s, 3, 2, small);
    derive(s, 4, 3, stray);
    assert_int_equal(ig_gc_plan(s, false, false, &g, &e), INGOT_OK);
    assert_int_equal(why(&g, base), IG_GC_YOUNG);
    assert_int_equal(why(&g, stray), IG_GC_YOUNG);
    ig_gc_free(&g);
    assert_int_equal(ig_name_write(s, "small", small, false, &e), INGOT_OK);
    assert_int_equal(ig_gc_plan(s, true, false, &g, &e), INGOT_OK);
    assert_int_equal(why(&g, base), IG_GC_PARENT);
    assert_int_equal(why(&g, half), IG_GC_PARENT);
    assert_int_equal(why(&g, small), IG_GC_NAMED);
    assert_int_equal(why(&g, stray), IG_GC_FREE);
    assert_int_equal(ig_gc_sweep(s, &g, &e), INGOT_OK);
    ig_gc_free(&g);
    struct ig_index index;
    load(s, &index);
    assert_int_equal(index.npacks, 3);
    assert_null(ig_index_find(&index, stray));
    ig_index_free(&index);
}

static void test_gc_refuses_to_guess(void **state)
{
    const struct ig_store *s = *state;
    uint8_t base[IG_HASH], half[IG_HASH];
    struct ig_gc g;
    ingot_error e;
    derive(s, 1, 0, base);
    derive(s, 2, 1, half);
    assert_int_equal(ig_name_write(s, "half", half, false, &e), INGOT_OK);
    char *path = ig_store_pack_path(s, half), *name = ig_store_path(s, "names", "bad");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(ig_gc_plan(s, true, false, &g, &e), INGOT_ERR_PACK);
    assert_non_null(strstr(e.message, "\"half\""));
    derive(s, 2, 1, half);
    close(open(name, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(ig_gc_plan(s, true, false, &g, &e), INGOT_ERR_PACK);
    assert_non_null(strstr(e.message, "names/bad"));
    free(name);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_fresh_index_reads_no_pack),
        store_test(test_packs_come_and_go),
        store_test(test_find_source),
        store_test(test_flipped_bits_anywhere),
        store_test(test_truncated_grown_and_foreign_files),
        store_test(test_other_version_and_length),
        store_test(test_spoiled_pages_behind_a_right_hash),
        store_test(test_kind_that_is_no_text),
        store_test(test_damaged_pack_is_listed),
        store_test(test_E01_long_names),
        store_test(test_E04_map_grows),
        store_test(test_E04_many_models),
        store_test(test_E06_killed_readers),
        store_test(test_readers_and_writers_at_once),
        store_test(test_E02_unwritable_is_a_notice),
        store_test(test_gc_keeps_what_is_needed),
        store_test(test_gc_refuses_to_guess),
    };
    return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
