/* SPDX-License-Identifier: Apache-2.0 */
/* What the device and the way to it could do at most, through nothing but the device's own calls.
 */
#include "bench/load.h"
#include "loader/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST   ((uint64_t)256 << 20) /* pinned */
#define JOBS   512u                  /* of IG_NODE bytes each, hashed by one call */
#define ROUNDS 16u
#define MAP    ((uint64_t)2 << 30)

const uint64_t bench_chunks[BENCH_CHUNKS] = {1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};

struct limits {
    struct ig_dev *d;
    uint8_t *host, *device;
    struct bench_limits *out;
};

/* Bytes a second of copying all of the pinned memory, twice to warm up and then for a while. */
static ingot_status copies(const struct limits *l, uint64_t chunk, double *rate, ingot_error *e)
{
    const unsigned rounds = l->d->info.host ? 2 : ROUNDS;
    double started = 0;
    for (unsigned i = 0; i < 2 + rounds; i++) {
        if (i == 2) {
            return_if_error(l->d->ops->drain(l->d, e));
            started = bench_now();
        }
        for (uint64_t at = 0; at < HOST; at += chunk)
            return_if_error(
                l->d->ops->copy(l->d, l->device + at, chunk, l->host + at, chunk, chunk, 1, e));
    }
    return_if_error(l->d->ops->drain(l->d, e));
    *rate = (double)(rounds * HOST) / (bench_now() - started);
    return INGOT_OK;
}

static ingot_status hash_once(const struct limits *l, struct ig_job *jobs, uint8_t *results,
                              unsigned m, ingot_error *e)
{
    return_if_error(l->d->ops->mark(l->d, m, e));
    return l->d->ops->hash(l->d, m, jobs, JOBS, results, e);
}

/* jobs and results lie behind each other in pinned memory. */
static ingot_status hashes(const struct limits *l, enum ig_job_kind kind, double *rate,
                           ingot_error *e)
{
    struct ig_job *jobs = (struct ig_job *)(void *)l->host;
    uint8_t *results = l->host + ig_round_up(JOBS * sizeof *jobs, IG_PAGE);
    const unsigned rounds = l->d->info.host ? 1 : ROUNDS;
    for (uint32_t i = 0; i < JOBS; i++)
        jobs[i] = (struct ig_job){.data = l->device + i * IG_NODE,
                                  .bytes = IG_NODE,
                                  .kind = kind,
                                  .out = i * 128}; /* eight spans of XXH3, or one SHA-256 */
    return_if_error(hash_once(l, jobs, results, 0, e));
    return_if_error(l->d->ops->drain(l->d, e));
    const double started = bench_now();
    for (unsigned i = 0; i < rounds; i++)
        return_if_error(hash_once(l, jobs, results + (i % 4) * IG_BATCH_OUT, i % IG_MARKS, e));
    return_if_error(l->d->ops->drain(l->d, e));
    *rate = (double)(rounds * JOBS * IG_NODE) / (bench_now() - started);
    return INGOT_OK;
}

/* Pinning, and what it takes to unpin, of memory that is there. */
static double pin_rate(const struct limits *l, void *memory, uint64_t bytes, bool read_only)
{
    ingot_error e;
    const double started = bench_now();
    if (l->d->ops->pin(l->d, memory, bytes, read_only, &e) != INGOT_OK) return 0;
    const double took = bench_now() - started;
    (void)l->d->ops->unpin(l->d, memory, &e);
    return (double)bytes / took;
}

static double map_rate(const struct limits *l, const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) bench_die("%s: %s", path, strerror(errno));
    const uint64_t bytes = (uint64_t)st.st_size < MAP ? (uint64_t)st.st_size : MAP;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return 0;
    const double rate = pin_rate(l, map, bytes, true);
    munmap(map, bytes);
    return rate;
}

static ingot_status measure(struct limits *l, const char *path, ingot_error *e)
{
    return_if_error(l->d->ops->start(l->d, e));
    snprintf(l->out->model, sizeof l->out->model, "%.*s", (int)sizeof l->out->model - 1,
             l->d->info.model);
    memset(l->host, 0x5a, HOST);
    l->out->pin_memory = pin_rate(l, l->host, HOST, false);
    l->out->pin_map = map_rate(l, path);
    return_if_error(l->d->ops->alloc(l->d, JOBS * IG_NODE, (void **)&l->device, e));
    return_if_error(l->d->ops->pin(l->d, l->host, HOST, false, e));
    for (unsigned i = 0; i < BENCH_CHUNKS; i++)
        return_if_error(copies(l, bench_chunks[i], &l->out->copy[i], e));
    return_if_error(hashes(l, IG_JOB_NODE, &l->out->sha256, e));
    return_if_error(hashes(l, IG_JOB_XXH, &l->out->xxh3, e));
    return l->d->ops->unpin(l->d, l->host, e);
}

struct question {
    const char *device, *path;
};

static void run_limits(const void *arg, void *result)
{
    const struct question *q = arg;
    struct limits l = {.out = result};
    ingot_error e = {0};
    l.host = mmap(NULL, HOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l.host == MAP_FAILED) bench_die("no memory");
    (void)madvise(l.host, HOST, MADV_HUGEPAGE);
    ingot_status status = ig_dev_open(q->device, 0, &l.d, &e);
    if (status == INGOT_OK) status = measure(&l, q->path, &e);
    if (status != INGOT_OK) snprintf(l.out->error, sizeof l.out->error, "%.255s", e.message);
    if (l.device) l.d->ops->release(l.d, l.device);
    if (l.d) l.d->ops->close(l.d);
    munmap(l.host, HOST);
}

void bench_load_limits(const char *device, const char *path, struct bench_limits *out)
{
    const struct question q = {device, path};
    bench_child(run_limits, &q, out, sizeof *out);
}
