/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine could do at most, measured with nothing but the operation in question. */
#include "base/pipe.h"
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE   ((size_t)4 << 20)
#define SECONDS 2.0
#define READERS 16u
#define WRITERS 4u /* keeps a disk's queue filled; more made no difference where it was tried */

/* Every worker repeats a step until there is nothing left or the time is up. */
struct race {
    void (*step)(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index);
    size_t buffer;  /* bytes a worker has, and handles in a step */
    uint64_t steps; /* 0: as many as fit in SECONDS */
    uint64_t next, done;
    int fd, out; /* read from, written to */
    const char *path;
    uint64_t size; /* of the file */
    bool xxh, leaves;
    double start;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ingot_status work(void *ctx, uint64_t worker, unsigned thread, ingot_error *e)
{
    struct race *r = ctx;
    uint8_t *buffer = ig_pages(r->buffer);
    (void)worker, (void)thread;
    if (!buffer) return ig_no_memory(e);
    memset(buffer, 0x5a, r->buffer);
    struct ig_lanes *lanes = r->leaves ? ig_lanes_new(NULL) : NULL;
    for (;;) {
        const uint64_t i = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED);
        if (r->steps ? i >= r->steps : now() - r->start >= SECONDS) break;
        r->step(r, buffer, lanes, i);
        __atomic_fetch_add(&r->done, 1, __ATOMIC_RELAXED);
    }
    ig_lanes_free(lanes);
    free(buffer);
    return INGOT_OK;
}

/* Seconds that all steps took. */
static double race(struct race *r, unsigned workers)
{
    ingot_error e = {0};
    r->start = now();
    if (ig_parallel(workers, workers, work, r, &e) != INGOT_OK) bench_die("%s", e.message);
    return now() - r->start;
}

static void step_sha(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index)
{
    uint8_t out[IG_HASH];
    (void)lanes, (void)index;
    if (!EVP_Digest(buffer, r->buffer, out, NULL, EVP_sha256(), NULL)) bench_die("EVP_Digest");
}

static void step_leaves(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index)
{
    uint8_t out[256 * IG_HASH];
    (void)index;
    ig_leaves(lanes, out, buffer, r->buffer);
}

static void step_read(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index)
{
    ingot_error e = {0};
    uint8_t out[16];
    (void)lanes;
    const uint64_t at = index * r->buffer;
    const size_t n = r->size - at < r->buffer ? (size_t)(r->size - at) : r->buffer;
    if (ig_pread(r->fd, r->path, buffer, n, at, &e) != INGOT_OK) bench_die("%s", e.message);
    if (!r->xxh) return;
    for (size_t i = 0; i < n; i += IG_SPAN)
        ig_xxh128(out, buffer + i, n - i < IG_SPAN ? n - i : IG_SPAN);
}

static void step_write(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index)
{
    ingot_error e = {0};
    (void)lanes;
    if (ig_pwrite(r->out, r->path, buffer, r->buffer, index * r->buffer, &e) != INGOT_OK)
        bench_die("%s", e.message);
}

/* What no converter can do without, in no order at all: read, hash twice, write. */
static void step_convert(struct race *r, uint8_t *buffer, struct ig_lanes *lanes, uint64_t index)
{
    uint8_t out[IG_HASH];
    step_read(r, buffer, lanes, index);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->buffer; i += 65536)
            if (!EVP_Digest(buffer + i, 65536, out, NULL, EVP_sha256(), NULL))
                bench_die("EVP_Digest");
    step_write(r, buffer, lanes, index);
}

double bench_sha256(size_t buffer)
{
    struct race r = {.step = step_sha, .buffer = buffer};
    const double took = race(&r, ig_cpus());
    return (double)(r.done * buffer) / took;
}

double bench_leaves(void)
{
    struct race r = {.step = step_leaves, .buffer = 256 * IG_PAGE, .leaves = true};
    const double took = race(&r, ig_cpus());
    return (double)(r.done * r.buffer) / took;
}

static uint64_t open_whole(const char *path, int *fd)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 || fstat(*fd, &st) != 0) bench_die("%s: %s", path, strerror(errno));
    return (uint64_t)st.st_size;
}

double bench_read(const char *path, bool xxh)
{
    struct race r = {.step = step_read, .buffer = PIECE, .path = path, .xxh = xxh};
    r.size = open_whole(path, &r.fd);
    r.steps = (r.size + PIECE - 1) / PIECE;
    const double took = race(&r, ig_cpus());
    close(r.fd);
    return (double)r.size / took;
}

double bench_disk(const char *path)
{
    struct race r = {.step = step_read, .buffer = PIECE, .path = path};
    r.size = open_whole(path, &r.fd);
    close(r.fd);
    r.steps = r.size / PIECE; /* whole ones: direct reads end where a block does */
    r.fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (r.fd < 0) return 0; /* this file system has no direct reads */
    const double took = race(&r, READERS);
    close(r.fd);
    return (double)(r.steps * PIECE) / took;
}

/* A new unnamed file of this size in dir, and with `direct` a second descriptor that is. */
static int new_file(const char *dir, uint64_t bytes, bool direct, int *out)
{
    char self[40];
    const int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) bench_die("%s: %s", dir, strerror(errno));
    if (fallocate(fd, 0, 0, (off_t)bytes) != 0 && errno == ENOSPC)
        bench_die("%s: %s", dir, strerror(errno));
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    *out = direct ? open(self, O_WRONLY | O_DIRECT | O_CLOEXEC) : fd;
    return fd;
}

/* Run the race, which writes to `fd`, and wait for the disk.  Seconds. */
static double race_to_disk(struct race *r, unsigned workers, const char *dir, int fd)
{
    const double start = now();
    race(r, workers);
    if (fsync(fd) != 0) bench_die("%s: %s", dir, strerror(errno));
    const double took = now() - start;
    if (r->out != fd) close(r->out);
    close(fd);
    return took;
}

double bench_write(const char *dir, uint64_t bytes, bool direct)
{
    struct race r = {.step = step_write, .buffer = PIECE, .steps = bytes / PIECE, .path = dir};
    const int fd = new_file(dir, bytes, direct, &r.out);
    if (r.out >= 0) return (double)(r.steps * PIECE) / race_to_disk(&r, WRITERS, dir, fd);
    close(fd);
    return 0; /* this file system has no direct writes */
}

double bench_convert(const char *path, const char *dir)
{
    struct race r = {.step = step_convert, .buffer = PIECE, .path = path};
    r.size = open_whole(path, &r.fd);
    r.steps = r.size / PIECE;
    int fd = new_file(dir, r.size, true, &r.out);
    if (r.out < 0) r.out = fd;
    const double took = race_to_disk(&r, ig_cpus() + WRITERS, dir, fd);
    close(r.fd);
    return (double)(r.steps * PIECE) / took;
}

uint64_t bench_drop(const char *path)
{
    int fd;
    const uint64_t size = open_whole(path, &fd), pages = (size + IG_PAGE - 1) / IG_PAGE;
    (void)fsync(fd); /* dirty pages stay */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    uint64_t there = 0;
    uint8_t *present = malloc(pages + 1);
    void *map = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (size && (!present || map == MAP_FAILED || mincore(map, size, present) != 0))
        bench_die("%s: cannot ask what is in the page cache", path);
    for (uint64_t i = 0; size && i < pages; i++) there += present[i] & 1;
    if (size) munmap(map, size);
    free(present);
    close(fd);
    return there * IG_PAGE;
}
