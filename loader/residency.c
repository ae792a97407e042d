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
#include <time.h>
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

/* What fails still starts reading ahead: through a description of its own that reads nothing ahead,
 * and at other pages each time, else the next probe would find what this one has brought in. */
static bool by_nowait(const struct ig_residency *r, uint64_t off, uint64_t n, uint64_t *bytes)
{
    const uint64_t pages = (n + IG_PAGE - 1) / IG_PAGE;
    const uint64_t samples = pages < SAMPLES ? pages : SAMPLES;
    const uint64_t phase = samples ? r->phase % (pages / samples) : 0;
    uint64_t hits = 0;
    for (uint64_t i = 0; i < samples; i++) {
        uint8_t byte;
        const struct iovec v = {&byte, 1};
        const uint64_t page = i * pages / samples + phase;
        const ssize_t k = preadv2(r->own, &v, 1, (off_t)(off + page * IG_PAGE), RWF_NOWAIT);
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

static bool ask(const struct ig_residency *r, uint64_t off, uint64_t n, uint64_t *bytes)
{
    switch (r->how) {
    case IG_PROBE_CACHESTAT:
        return by_cachestat(r->fd, off, n, bytes);
    case IG_PROBE_NOWAIT:
        return r->own >= 0 && by_nowait(r, off, n, bytes);
    case IG_PROBE_MINCORE:
        return may_ask_mincore(r->fd) && by_mincore(r->fd, off, n, bytes);
    default:
        return false;
    }
}

static void open_own(struct ig_residency *r)
{
    char self[40];
    struct timespec now;
    snprintf(self, sizeof self, "/proc/self/fd/%d", r->fd);
    r->own = open(self, O_RDONLY | O_CLOEXEC);
    if (r->own >= 0) (void)posix_fadvise(r->own, 0, 0, POSIX_FADV_RANDOM);
    clock_gettime(CLOCK_MONOTONIC, &now);
    r->phase = (uint32_t)now.tv_nsec / 64;
}

void ig_residency_open_from(struct ig_residency *r, int fd, enum ig_probe first)
{
    uint64_t bytes;
    *r = (struct ig_residency){.fd = fd, .own = -1};
    for (r->how = first; r->how <= IG_PROBE_MINCORE; r->how++) {
        if (r->how == IG_PROBE_NOWAIT) open_own(r);
        if (ask(r, 0, IG_PAGE, &bytes)) return;
    }
    r->how = IG_PROBE_NONE;
}

void ig_residency_open(struct ig_residency *r, int fd)
{
    ig_residency_open_from(r, fd, IG_PROBE_CACHESTAT);
}

void ig_residency_close(struct ig_residency *r)
{
    if (r->own >= 0) close(r->own);
    *r = (struct ig_residency){.fd = -1, .own = -1};
}

uint64_t ig_residency(const struct ig_residency *r, uint64_t off, uint64_t n)
{
    uint64_t bytes = 0;
    return n && ask(r, off, n, &bytes) ? bytes : 0;
}

uint64_t ig_residency_drop(const struct ig_residency *r, uint64_t size)
{
    (void)fdatasync(r->fd); /* dirty pages cannot be dropped */
    (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
    return ig_residency(r, 0, size);
}
