/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a file is in the page cache.  Three ways, the first that the kernel allows: cachestat
 * (Linux 6.5; exact), a read that would rather fail than wait (sampled), mincore (exact, but it
 * tells whoever does not own the file that everything is resident).
 */
#include "loader/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same on all architectures */
#endif
#define SAMPLES 64u

/* linux/mman.h of 6.5 */
struct range {
    uint64_t off, len;
};
struct stats {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static bool by_cachestat(int fd, uint64_t off, uint64_t n, uint64_t *bytes)
{
    struct range range = {off, n};
    struct stats found;
    if (syscall(SYS_cachestat, fd, &range, &found, 0) != 0) return false;
    *bytes = found.cached * IG_PAGE < n ? found.cached * IG_PAGE : n;
    return true;
}

static bool by_nowait(int fd, uint64_t off, uint64_t n, uint64_t *bytes)
{
    const uint64_t pages = (n + IG_PAGE - 1) / IG_PAGE;
    const uint64_t samples = pages < SAMPLES ? pages : SAMPLES;
    uint64_t hits = 0;
    for (uint64_t i = 0; i < samples; i++) {
        uint8_t byte;
        const struct iovec v = {&byte, 1};
        const uint64_t page = i * pages / samples;
        const ssize_t k = preadv2(fd, &v, 1, (off_t)(off + page * IG_PAGE), RWF_NOWAIT);
        if (k < 0 && errno != EAGAIN && errno != EINTR) return false;
        hits += k == 1;
    }
    *bytes = samples ? n * hits / samples : 0;
    return true;
}

static bool by_mincore(int fd, uint64_t off, uint64_t n, uint64_t *bytes)
{
    const uint64_t start = off / IG_PAGE * IG_PAGE,
                   pages = (off + n - start + IG_PAGE - 1) / IG_PAGE;
    unsigned char *seen = ig_array((size_t)pages, 1);
    void *map = mmap(NULL, (size_t)(pages * IG_PAGE), PROT_READ, MAP_SHARED, fd, (off_t)start);
    const bool ok = seen && map != MAP_FAILED && mincore(map, (size_t)(pages * IG_PAGE), seen) == 0;
    uint64_t found = 0;
    for (uint64_t i = 0; ok && i < pages; i++) found += (seen[i] & 1) * (uint64_t)IG_PAGE;
    if (map != MAP_FAILED) munmap(map, (size_t)(pages * IG_PAGE));
    free(seen);
    *bytes = found < n ? found : n;
    return ok;
}

static bool may_ask_mincore(int fd)
{
    char self[40];
    struct stat st;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return (fstat(fd, &st) == 0 && st.st_uid == geteuid()) ||
           faccessat(AT_FDCWD, self, W_OK, AT_EACCESS) == 0;
}

static bool ask(enum ig_probe how, int fd, uint64_t off, uint64_t n, uint64_t *bytes)
{
    switch (how) {
    case IG_PROBE_CACHESTAT:
        return by_cachestat(fd, off, n, bytes);
    case IG_PROBE_NOWAIT:
        return by_nowait(fd, off, n, bytes);
    case IG_PROBE_MINCORE:
        return may_ask_mincore(fd) && by_mincore(fd, off, n, bytes);
    default:
        return false;
    }
}

void ig_residency_open_from(struct ig_residency *r, int fd, enum ig_probe first)
{
    uint64_t bytes;
    *r = (struct ig_residency){.fd = fd, .how = IG_PROBE_NONE};
    for (enum ig_probe how = first; how <= IG_PROBE_MINCORE; how++)
        if (ask(how, fd, 0, IG_PAGE, &bytes)) {
            r->how = how;
            return;
        }
}

void ig_residency_open(struct ig_residency *r, int fd)
{
    ig_residency_open_from(r, fd, IG_PROBE_CACHESTAT);
}

uint64_t ig_residency(const struct ig_residency *r, uint64_t off, uint64_t n)
{
    uint64_t bytes = 0;
    return n && ask(r->how, r->fd, off, n, &bytes) ? bytes : 0;
}

uint64_t ig_residency_drop(const struct ig_residency *r, uint64_t size)
{
    (void)fdatasync(r->fd); /* dirty pages cannot be dropped */
    (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
    return ig_residency(r, 0, size);
}
