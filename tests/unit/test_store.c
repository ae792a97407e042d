/* SPDX-License-Identifier: Apache-2.0 */
/* The folder: publishing both ways, temporaries, the lock, and what MODEL means. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/folder.h"
#include "tests/unit/mini_pack.h"
#include "tests/unit/store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const tensors[] = {"a", "b"};

static unsigned entries(const struct ig_store *s, const char *folder, const char *prefix)
{
    char *path = ig_store_path(s, folder, NULL);
    DIR *dir = opendir(path);
    unsigned n = 0;
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));)
        n += strncmp(d->d_name, prefix, strlen(prefix)) == 0 && strcmp(d->d_name, ".") != 0 &&
             strcmp(d->d_name, "..") != 0;
    closedir(dir);
    free(path);
    return n;
}

static void write_text(const struct ig_temp *t, const char *text)
{
    assert_int_equal(ig_pwrite(t->fd, "temp", text, strlen(text), 0, NULL), INGOT_OK);
}

static void assert_content(const char *path, const char *text)
{
    char *got = NULL;
    size_t n;
    struct stat st;
    assert_int_equal(ig_read_file(path, 1000, &got, &n, NULL), INGOT_OK);
    assert_string_equal(got, text);
    free(got);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0444);
    assert_int_equal(st.st_nlink, 1);
}

/* Publish, publish over it while it is open, and do not publish over it. */
static void publish_one_way(const struct ig_store *s, bool named)
{
    struct ig_temp t;
    ingot_error e;
    char *dir = ig_store_path(s, "packs", NULL), *path = ig_store_path(s, "packs", "x");
    assert_int_equal(ig_temp_open_in(dir, named, &t, &e), INGOT_OK);
    if (named) assert_non_null(t.path);
    write_text(&t, "old");
    assert_int_equal(entries(s, "packs", "x"), 0);
    assert_int_equal(ig_temp_place(&t, path, 0444, true, &e), INGOT_OK);
    assert_int_equal(t.fd, -1);
    assert_content(path, "old");

    const int reader = open(path, O_RDONLY);
    char buf[4] = "";
    assert_int_equal(ig_temp_open_in(dir, named, &t, &e), INGOT_OK);
    write_text(&t, "new");
    assert_int_equal(ig_temp_publish(s, &t, "x", &e), INGOT_OK);
    assert_content(path, "new");
    assert_int_equal(pread(reader, buf, 3, 0), 3);
    assert_string_equal(buf, "old");
    close(reader);

    assert_int_equal(ig_temp_open_in(dir, named, &t, &e), INGOT_OK);
    write_text(&t, "third");
    assert_int_equal(ig_temp_place(&t, path, 0444, false, &e), INGOT_ERR_EXISTS);
    assert_content(path, "new");
    assert_int_equal(entries(s, "packs", "."), 0);
    free(path);
    free(dir);
}

static void test_D03_publish_and_replace_while_open(void **state)
{
    publish_one_way(*state, false);
}

static void test_D03_publish_and_replace_with_named_temporaries(void **state)
{
    publish_one_way(*state, true);
}

static void test_discard_leaves_nothing(void **state)
{
    const struct ig_store *s = *state;
    struct ig_temp t;
    char *dir = ig_store_path(s, "packs", NULL);
    for (int named = 0; named < 2; named++) {
        assert_int_equal(ig_temp_open_in(dir, named, &t, NULL), INGOT_OK);
        assert_int_equal(entries(s, "packs", "."), named);
        ig_temp_discard(&t);
        assert_int_equal(entries(s, "packs", ""), 0);
        ig_temp_discard(&t);
    }
    free(dir);
}

/* A child opens a named temporary and is killed, or lives on. */
static pid_t child_with_temp(const char *dir, int *ready)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct ig_temp t;
        if (ig_temp_open_in(dir, true, &t, NULL) != INGOT_OK) _exit(1);
        if (write(ends[1], "1", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_true(pid > 0);
    char byte;
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    *ready = ends[0];
    return pid;
}

static void kill_child(pid_t pid, int fd)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
}

static void test_D04_reclaim_spares_the_living(void **state)
{
    const struct ig_store *s = *state;
    int fd;
    uint64_t files, bytes;
    char *dir = ig_store_path(s, "packs", NULL);
    const pid_t pid = child_with_temp(dir, &fd);
    ig_store_reclaim(s);
    assert_int_equal(entries(s, "packs", IG_TEMP_PREFIX), 1);
    kill_child(pid, fd);
    ig_store_reclaim_count(s, true, &files, &bytes);
    assert_int_equal(files, 1);
    assert_int_equal(entries(s, "packs", IG_TEMP_PREFIX), 1);
    ig_store_reclaim(s);
    assert_int_equal(entries(s, "packs", IG_TEMP_PREFIX), 0);
    free(dir);
}

/* Where flock means nothing, another process may take a living temporary away. */
static void test_C04_stolen_temporary_is_an_error(void **state)
{
    const struct ig_store *s = *state;
    struct ig_temp t;
    ingot_error e;
    char *dir = ig_store_path(s, "packs", NULL), *path = ig_store_path(s, "packs", "x");
    assert_int_equal(ig_temp_open_in(dir, true, &t, &e), INGOT_OK);
    write_text(&t, "mine");
    char *stolen = strdup(t.path);
    assert_int_equal(unlink(stolen), 0);
    FILE *f = fopen(stolen, "w"); /* and even put another in its place */
    assert_non_null(f);
    fclose(f);
    assert_int_equal(ig_temp_place(&t, path, 0444, true, &e), INGOT_ERR_BUSY);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(access(stolen, F_OK), 0);
    free(stolen);
    free(path);
    free(dir);
}

static void test_C04_writers_of_one_name_and_pack(void **state)
{
    const struct ig_store *s = *state;
    enum { WRITERS = 8, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            if ((pids[i] = fork()) != 0) continue;
            uint8_t digest[IG_HASH];
            const struct mini_pack m = {tensors, 2, "m.safetensors", .content = {(uint8_t)round}};
            ingot_error e;
            int lock, bad = 0;
            char name[16];
            snprintf(name, sizeof name, "n%d", round);
            bad |= ig_store_lock(s, false, &lock, &e) != INGOT_OK;
            bad |= mini_pack_publish(s, &m, digest, &e) != INGOT_OK;
            bad |= ig_name_write(s, name, digest, false, &e) != INGOT_OK;
            if (bad) fprintf(stderr, "%s\n", e.message);
            _exit(bad);
        }
        for (int i = 0; i < WRITERS; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
    }
    assert_int_equal(entries(s, "packs", ""), ROUNDS);
    assert_int_equal(entries(s, "names", ""), ROUNDS);
}

static void test_D04_file_too_large_is_an_error(void **state)
{
    const struct ig_store *s = *state;
    const pid_t pid = fork();
    if (pid == 0) {
        struct ig_temp t;
        ingot_error e;
        const struct rlimit limit = {1000, 1000};
        uint8_t big[2000] = {1};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        if (ig_temp_open(s, &t, &e) != INGOT_OK) _exit(1);
        const ingot_status status = ig_pwrite(t.fd, "pack", big, sizeof big, 0, &e);
        ig_temp_discard(&t);
        _exit(status == INGOT_ERR_NO_SPACE && strstr(e.message, "EFBIG") ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(entries(s, "packs", ""), 0);
}

static void test_E02_absent_folder_names_the_path(void **state)
{
    struct ig_store s = *(struct ig_store *)*state;
    struct ig_temp t;
    ingot_error e;
    char root[64] = "/proc/ingot-cannot-be-here";
    s.root = root;
    assert_int_not_equal(ig_temp_open(&s, &t, &e), INGOT_OK);
    assert_non_null(strstr(e.message, "/proc/ingot-cannot-be-here/packs"));
    assert_int_not_equal(ig_store_open("/proc/ingot-cannot-be-here", true, &s, &e), INGOT_OK);
    assert_non_null(strstr(e.message, "/proc/ingot-cannot-be-here"));
}

static void test_lock_excludes(void **state)
{
    const struct ig_store *s = *state;
    int one, two;
    ingot_error e;
    assert_int_equal(ig_store_lock(s, false, &one, &e), INGOT_OK);
    assert_int_equal(ig_store_lock(s, false, &two, &e), INGOT_OK);
    char *path = ig_store_path(s, "lock", NULL);
    const int other = open(path, O_RDWR);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
    close(one);
    close(two);
    assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
    free(path);
}

static void test_open_knows_its_place(void **state)
{
    const struct ig_store *own = *state;
    struct ig_store s;
    ingot_error e;
    assert_int_equal(ig_store_open("", false, &s, &e), INGOT_ERR_USAGE);
    assert_int_equal(ig_store_open("/dev/null", true, &s, &e), INGOT_ERR_USAGE);
    setenv("INGOT_STORE", own->root, 1);
    assert_int_equal(ig_store_open(NULL, false, &s, &e), INGOT_OK);
    assert_string_equal(s.root, own->root);
    ig_store_close(&s);
    setenv("INGOT_STORE", "", 1);
    setenv("XDG_DATA_HOME", "/x", 1);
    assert_int_equal(ig_store_open(NULL, false, &s, &e), INGOT_OK);
    assert_string_equal(s.root, "/x/ingot");
    ig_store_close(&s);
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    assert_int_equal(ig_store_open(NULL, false, &s, &e), INGOT_OK);
    assert_string_equal(s.root, "/h/.local/share/ingot");
    ig_store_close(&s);
    unsetenv("HOME");
    assert_int_equal(ig_store_open(NULL, false, &s, &e), INGOT_ERR_USAGE);
}

static void test_packs_are_listed_by_digest(void **state)
{
    const struct ig_store *s = *state;
    struct ig_store_file *files;
    size_t n;
    static const char *const others[] = {"x.ingot", ".tmp-1-0", "0000.ingot", "lost+found"};
    uint8_t digest[IG_HASH];
    for (uint8_t i = 0; i < 9; i++) {
        const struct mini_pack m = {tensors, 2, "m.safetensors", .content = {i}};
        assert_int_equal(mini_pack_publish(s, &m, digest, NULL), INGOT_OK);
    }
    for (size_t i = 0; i < 4; i++) {
        char *path = ig_store_path(s, "packs", others[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
        free(path);
    }
    assert_int_equal(ig_store_packs(s, &files, &n, NULL), INGOT_OK);
    assert_int_equal(n, 9);
    for (size_t i = 1; i < n; i++)
        assert_true(memcmp(files[i - 1].digest, files[i].digest, IG_HASH) < 0);
    free(files);
}

static void test_resolve(void **state)
{
    const struct ig_store *s = *state;
    const struct mini_pack m = {tensors, 2, "m.safetensors", .sha256 = {0xaa, 0xbb}};
    uint8_t digest[IG_HASH];
    char hex[65], upper[65], arg[100];
    ingot_error e;
    assert_int_equal(mini_pack_publish(s, &m, digest, &e), INGOT_OK);
    assert_int_equal(ig_name_write(s, "org/m", digest, false, &e), INGOT_OK);
    ig_hex(hex, digest, IG_HASH);
    for (int i = 0; i < 65; i++) upper[i] = hex[i] >= 'a' ? (char)(hex[i] - 32) : hex[i];
    char *path = ig_store_pack_path(s, digest);
    const char *good[] = {"org/m", hex, upper, path, "sha256:aabb0000", arg};
    snprintf(arg, sizeof arg, "fsverity-sha256:%.8s", hex);
    for (size_t i = 0; i < 6; i++) {
        struct ig_ref ref;
        if (ig_store_resolve(s, good[i], &ref, &e) != INGOT_OK) fail_msg("%s", e.message);
        assert_string_equal(ref.path, path);
        assert_true(ref.has_digest);
        assert_memory_equal(ref.digest, digest, IG_HASH);
        if (i == 0)
            assert_string_equal(ref.name, "org/m");
        else
            assert_null(ref.name);
        ig_ref_free(&ref);
    }
    free(path);
}

static void expect_refused(const struct ig_store *s, const char *model, ingot_status status,
                           const char *says)
{
    struct ig_ref ref;
    ingot_error e = {0};
    assert_int_equal(ig_store_resolve(s, model, &ref, &e), status);
    if (!strstr(e.message, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", model, e.message, says);
    assert_null(ref.path);
}

static void test_resolve_refusals(void **state)
{
    const struct ig_store *s = *state;
    uint8_t digest[IG_HASH] = {0x12, 0x34, 0x56, 0x78};
    ingot_error e;
    for (uint8_t i = 0; i < 3; i++) {
        digest[31] = i;
        char *path = ig_store_pack_path(s, digest);
        const int fd = open(path, O_CREAT | O_RDWR, 0600);
        const struct mini_pack m = {tensors, 2, "m.safetensors", .sha256 = {0xaa}, .content = {i}};
        assert_int_equal(mini_pack_write(fd, &m, &e), INGOT_OK);
        close(fd);
        free(path);
    }
    digest[31] = 9;
    assert_int_equal(ig_name_write(s, "dangling", digest, false, &e), INGOT_OK);
    expect_refused(s, "12345678", INGOT_ERR_USAGE, "ambiguous");
    expect_refused(s, "12345678", INGOT_ERR_USAGE, "0002");
    expect_refused(s, "sha256:aa000000", INGOT_ERR_USAGE, "ambiguous");
    expect_refused(s, "sha256:bb000000", INGOT_ERR_NOT_FOUND, "bb000000");
    expect_refused(s, "sha256:xyz", INGOT_ERR_USAGE, "hex digits");
    expect_refused(s, "md5:00000000", INGOT_ERR_USAGE, "unknown prefix");
    expect_refused(s, "87654321", INGOT_ERR_NOT_FOUND, "87654321");
    expect_refused(s, "dangling", INGOT_ERR_NOT_FOUND, "missing");
    expect_refused(s, "danglin", INGOT_ERR_NOT_FOUND, "did you mean \"dangling\"?");
    expect_refused(s, "/nowhere/x", INGOT_ERR_NOT_FOUND, "/nowhere/x");
    expect_refused(s, "x.ingot", INGOT_ERR_NOT_FOUND, "x.ingot");
    expect_refused(s, "a\nb", INGOT_ERR_USAGE, "a\\nb");
    expect_refused(s, "", INGOT_ERR_USAGE, "empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_D03_publish_and_replace_while_open),
        store_test(test_D03_publish_and_replace_with_named_temporaries),
        store_test(test_discard_leaves_nothing),
        store_test(test_D04_reclaim_spares_the_living),
        store_test(test_C04_stolen_temporary_is_an_error),
        store_test(test_C04_writers_of_one_name_and_pack),
        store_test(test_D04_file_too_large_is_an_error),
        store_test(test_E02_absent_folder_names_the_path),
        store_test(test_lock_excludes),
        store_test(test_open_knows_its_place),
        store_test(test_packs_are_listed_by_digest),
        store_test(test_resolve),
        store_test(test_resolve_refusals),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
