/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. */
#ifndef INGOT_FUZZ_H
#define INGOT_FUZZ_H

#include "base/base.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(good) check_at((good), #good, __FILE__, __LINE__)
static inline void check_at(bool good, const char *what, const char *file, int line)
{
    if (good) return;
    fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
    abort();
}

/* Text that goes to a terminal as it is. */
static inline void check_line(const char *text)
{
    check(ig_utf8_valid(text, strlen(text)));
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        check(*p >= ' ' && *p != 0x7f);
        check(*p != 0xc2 || p[1] >= 0xa0); /* C1 */
    }
}

static inline void check_error(const ingot_error *e, ingot_status status)
{
    check(status != INGOT_OK && e->status == status && e->message[0]);
    check_line(e->message);
    check_line(e->file);
    check_line(e->tensor);
}

/* A file without a name, made anew from these bytes; path leads to it as long as the program runs.
 */
static inline void fill_file(int *fd, char path[40], const void *data, size_t n)
{
    if (*fd < 0) *fd = memfd_create("fuzz", MFD_CLOEXEC);
    check(*fd >= 0 && ftruncate(*fd, 0) == 0);
    check(ig_pwrite(*fd, "fuzz", data, n, 0, NULL) == INGOT_OK);
    snprintf(path, 40, "/proc/self/fd/%d", *fd);
}

static inline int fuzz_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* A new folder, in memory where that can be had: what is flushed on a disk takes its time. */
static inline char *fuzz_folder(void)
{
    char *path = strdup("/dev/shm/ingot-fuzz-XXXXXX");
    if (path && mkdtemp(path)) return path;
    free(path);
    path = strdup("/tmp/ingot-fuzz-XXXXXX");
    check(path && mkdtemp(path));
    return path;
}

static inline void fuzz_folder_remove(const char *path)
{
    nftw(path, fuzz_remove, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
