/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large writes past the page cache.  What is written once and not read again pays for the cache
 * twice: a copy and a fresh page for every 4096 bytes, then a write-back that the final fsync
 * waits for.  A second descriptor with O_DIRECT sits beside the plain one, because the flag
 * belongs to the open file; small and unaligned pieces go through the plain one.
 */
#include "base/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void ig_direct_open(struct ig_direct *d, int fd, const char *path)
{
    char self[40]; /* the file may have no name of its own */
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    *d = (struct ig_direct){.fd = fd, .path = path, .past_cache = -1};
    d->past_cache = open(self, O_WRONLY | O_DIRECT | O_CLOEXEC);
}

static ingot_status write_through_cache(struct ig_direct *d, const void *buf, size_t n,
                                        uint64_t off, ingot_error *e)
{
    return_if_error(ig_pwrite(d->fd, d->path, buf, n, off, e));
    /* Start writing back now: the final fsync would otherwise wait for the whole file. */
    (void)sync_file_range(d->fd, (off_t)off, (off_t)n, SYNC_FILE_RANGE_WRITE);
    return INGOT_OK;
}

ingot_status ig_direct_write(struct ig_direct *d, const void *buf, size_t n, uint64_t off,
                             ingot_error *e)
{
    ingot_error direct = {0};
    if (d->past_cache < 0 || __atomic_load_n(&d->refused, __ATOMIC_RELAXED))
        return write_through_cache(d, buf, n, off, e);
    const ingot_status status = ig_pwrite(d->past_cache, d->path, buf, n, off, &direct);
    /* Some file systems take the flag at open and refuse the write, or write a part (the disk is
     * nearly full) and leave an unaligned rest: the plain descriptor says what is really wrong. */
    if (direct.sys_errno == EINVAL || direct.sys_errno == EOPNOTSUPP) {
        __atomic_store_n(&d->refused, true, __ATOMIC_RELAXED);
        return write_through_cache(d, buf, n, off, e);
    }
    if (status != INGOT_OK && e) *e = direct;
    return status;
}

void ig_direct_close(struct ig_direct *d)
{
    if (d->past_cache >= 0) close(d->past_cache);
    d->past_cache = -1;
}
