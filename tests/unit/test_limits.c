/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of memory: room in a control group, pages in the cache. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "loader/residency.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "/tmp/ingot-limits-XXXXXX");
    return mkdtemp(top) ? 0 : -1;
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

/* A file in the folder that stands for "/", with the folders that it needs. */
static void put(const char *file, const char *text)
{
    char path[512];
    const int n = snprintf(path, sizeof path, "%s/%s", top, file);
    assert_true(n > 0 && n < (int)sizeof path);
    for (char *s = path + strlen(top) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        (void)mkdir(path, 0755);
        *s = '/';
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void without_control_groups_there_is_no_limit(void **state)
{
    (void)state;
    assert_true(ig_headroom(top) == UINT64_MAX);
    put("proc/self/cgroup", "0::/\n");
    assert_true(ig_headroom(top) == UINT64_MAX);
}

/* Used, less what is clean page cache, on the level with the least left. */
static void version_2_counts_clean_pages_as_free(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "900\n");
    put("sys/fs/cgroup/a/memory.max", "1000000\n");
    put("sys/fs/cgroup/a/memory.current", "900000\n");
    put("sys/fs/cgroup/a/memory.stat",
        "anon 100\nfile 700000\ninactive_file 500000\nactive_file 200000\n");
    assert_int_equal(ig_headroom(top), 800000);
    put("sys/fs/cgroup/a/b/memory.high", "50000\n"); /* the tighter of two levels */
    assert_int_equal(ig_headroom(top), 49100);
    put("sys/fs/cgroup/a/b/memory.high", "100\n"); /* over it: nothing is left */
    assert_int_equal(ig_headroom(top), 0);
}

static void version_1_and_paths_of_the_host(void **state)
{
    (void)state;
    put("proc/self/cgroup", "12:cpu,cpuacct:/docker/x\n5:memory:/docker/x\n0::/\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
    assert_true(ig_headroom(top) == UINT64_MAX);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
    put("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 1000\ntotal_active_file 500\n");
    assert_int_equal(ig_headroom(top), 4500);
}

#define PAGES 512u

static int make_file(char *path, size_t cap)
{
    static uint8_t page[IG_PAGE];
    snprintf(path, cap, "%s/pages", top);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    memset(page, 7, sizeof page);
    for (unsigned i = 0; i < PAGES; i++)
        assert_int_equal(write(fd, page, sizeof page), sizeof page);
    assert_int_equal(fsync(fd), 0);
    return fd;
}

/* Bring bytes [0, n) into the cache and nothing behind them. */
static void read_first(int fd, size_t n)
{
    uint8_t *b = malloc(n);
    assert_non_null(b);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
    assert_int_equal(pread(fd, b, n, 0), (ssize_t)n);
    free(b);
}

static uint64_t seen_by_owner(int fd, uint64_t size)
{
    struct ig_residency r;
    ig_residency_open_from(&r, fd, IG_PROBE_MINCORE);
    const uint64_t seen = ig_residency(&r, 0, size);
    ig_residency_close(&r);
    return seen;
}

static void every_probe_tells_what_is_resident(void **state)
{
    (void)state;
    char path[128];
    const uint64_t size = (uint64_t)PAGES * IG_PAGE;
    const int fd = make_file(path, sizeof path);
    for (int how = IG_PROBE_CACHESTAT; how <= IG_PROBE_MINCORE; how++) {
        struct ig_residency r;
        ig_residency_open_from(&r, fd, (enum ig_probe)how);
        if ((int)r.how != how) { /* the kernel does not have it */
            ig_residency_close(&r);
            continue;
        }
        read_first(fd, size);
        assert_int_equal(ig_residency(&r, 0, size), size);
        if (ig_residency_drop(&r, size) > 0) { /* a file system that keeps its pages */
            ig_residency_close(&r);
            continue;
        }
        read_first(fd, size / 4);
        /* How much comes with it is up to the kernel's folios; that the probes agree is not. */
        const uint64_t first = ig_residency(&r, 0, size / 4), all = ig_residency(&r, 0, size);
        assert_int_equal(first, size / 4);
        assert_in_range(all, seen_by_owner(fd, size) / 2, size);
        assert_int_equal(ig_residency(&r, 0, 0), 0);
        ig_residency_close(&r);
    }
    close(fd);
}

/* mincore calls everything resident for those who neither own a file nor may write it. */
static void strangers_are_not_told_that_all_is_resident(void **state)
{
    (void)state;
    char path[128];
    int status;
    if (geteuid() != 0) skip();
    const int fd = make_file(path, sizeof path);
    struct ig_residency mine;
    ig_residency_open(&mine, fd);
    const uint64_t left = ig_residency_drop(&mine, (uint64_t)PAGES * IG_PAGE);
    ig_residency_close(&mine);
    close(fd);
    assert_int_equal(chmod(top, 0755), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
        const int theirs = open(path, O_RDONLY | O_CLOEXEC);
        if (theirs < 0) _exit(3);
        for (int how = IG_PROBE_CACHESTAT; how <= IG_PROBE_MINCORE; how++) {
            struct ig_residency r;
            ig_residency_open_from(&r, theirs, (enum ig_probe)how);
            if (r.how == IG_PROBE_MINCORE) _exit(4); /* it would say anything */
            /* A sample that fails is read all the same: the next one might meet it. */
            if (how == IG_PROBE_CACHESTAT &&
                ig_residency(&r, IG_PAGE, (PAGES - 1u) * (uint64_t)IG_PAGE) > left)
                _exit(5);
            ig_residency_close(&r);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_control_groups_there_is_no_limit, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(version_2_counts_clean_pages_as_free, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_1_and_paths_of_the_host, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_probe_tells_what_is_resident, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_are_not_told_that_all_is_resident, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
