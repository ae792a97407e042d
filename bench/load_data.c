/* SPDX-License-Identifier: Apache-2.0 */
/* The packs that bench/load loads: made on the spot, copied to tmpfs, removed. */
#include "bench/load.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void bench_remove(const char *folder)
{
    (void)nftw(folder, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

struct conversion {
    const char *store, *source;
};

static void convert(const void *arg, void *result)
{
    const struct conversion *c = arg;
    ingot_error e = {0};
    if (ingot_convert(c->store, c->source, "bench", NULL, &e) != INGOT_OK)
        snprintf(result, 256, "%.255s", e.message);
}

char *bench_pack(const char *work, uint64_t bytes)
{
    char error[256], *store = ig_format("%s/store", work), *source = ig_format("%s/source", work);
    char *pattern = ig_format("%s/packs/*.ingot", store);
    if (mkdir(work, 0755) != 0 && errno != EEXIST) bench_die("%s: %s", work, strerror(errno));
    bench_checkpoint(source, bytes, 2, 0);
    const struct conversion c = {store, source};
    bench_child(convert, &c, error, sizeof error);
    if (*error) bench_die("%s", error);
    bench_remove(source);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) bench_die("%s: nothing there", pattern);
    char *pack = ig_format("%s", found.gl_pathv[0]);
    globfree(&found);
    free(pattern);
    free(source);
    free(store);
    return pack;
}

static void copy(const char *from, const char *folder)
{
    static uint8_t buffer[4 << 20];
    char *to = ig_format("%s/%s", folder, strrchr(from, '/') + 1);
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in < 0 || out < 0) bench_die("%s: %s", in < 0 ? from : to, strerror(errno));
    uint64_t at = 0;
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) != 0; at += (uint64_t)n) {
        ingot_error e = {0};
        if (n < 0) bench_die("%s: %s", from, strerror(errno));
        if (ig_pwrite(out, to, buffer, (size_t)n, at, &e) != INGOT_OK) bench_die("%s", e.message);
    }
    close(in);
    close(out);
    free(to);
}

char *bench_to_tmpfs(const char *pack, const char *folder)
{
    struct stat st;
    struct statvfs fs;
    if (stat(pack, &st) != 0) bench_die("%s: %s", pack, strerror(errno));
    if (statvfs("/dev/shm", &fs) != 0 ||
        (uint64_t)fs.f_bavail * fs.f_frsize < (uint64_t)st.st_size * 102 / 100)
        return NULL;
    if (mkdir(folder, 0700) != 0) bench_die("%s: %s", folder, strerror(errno));
    /* The tree of hashes that lies beside the pack comes along. */
    char *tree = ig_format("%.*s.tree", (int)(strlen(pack) - strlen(".ingot")), pack);
    copy(pack, folder);
    copy(tree, folder);
    free(tree);
    return ig_format("%s/%s", folder, strrchr(pack, '/') + 1);
}
