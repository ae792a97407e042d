/* SPDX-License-Identifier: Apache-2.0 */
/* The host as a device: its memory is anonymous, its queues are threads (host_queue.c). */
#include "loader/host_queue.h"
#include "loader/residency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uint64_t)2 << 20)

static struct host_device *of(struct ig_dev *d)
{
    return (struct host_device *)d;
}

/* "MemAvailable:   123 kB" of /proc/meminfo, in bytes; UINT64_MAX when it does not say. */
static uint64_t available(void)
{
    char line[128];
    unsigned long long kib;
    uint64_t found = UINT64_MAX;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) found = (uint64_t)kib << 10;
    if (f) fclose(f);
    const uint64_t headroom = ig_headroom(NULL);
    return headroom < found ? headroom : found;
}

/* An arena's length is kept in front of it, on a page of its own. */
static ingot_status alloc(struct ig_dev *d, uint64_t bytes, void **out, ingot_error *e)
{
    const uint64_t room = available(), all = bytes + HUGE_PAGE;
    (void)d;
    *out = NULL;
    void *p = MAP_FAILED;
    if (bytes <= room && all > bytes)
        p = mmap(NULL, (size_t)all, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return ig_fail(e, INGOT_ERR_NO_MEMORY,
                       "host: out of memory: %llu bytes wanted, %llu available",
                       (unsigned long long)bytes, (unsigned long long)room);
    (void)madvise(p, (size_t)all, MADV_HUGEPAGE);
    /* The first huge page boundary, or the page behind the length. */
    uint8_t *at = (uint8_t *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (at == p) at += IG_PAGE;
    ig_put64(at - 8, (uint64_t)(at - (uint8_t *)p));
    ig_put64(at - 16, all);
    *out = at;
    return INGOT_OK;
}

static void release(struct ig_dev *d, void *memory)
{
    (void)d;
    uint8_t *at = memory;
    if (at) munmap(at - ig_get64(at - 8), (size_t)ig_get64(at - 16));
}

static ingot_status start(struct ig_dev *d, ingot_error *e)
{
    return ig_host_start(of(d), e);
}

static void close_host(struct ig_dev *d)
{
    struct host_device *h = of(d);
    ig_host_stop(h);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* The host reads all memory as it is, but for maps of files, whose pages may go. */
static ingot_status pin(struct ig_dev *d, void *memory, size_t bytes, bool read_only,
                        ingot_error *e)
{
    if (!read_only || ig_host_guard(of(d), memory, bytes)) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_NO_MEMORY,
                   "host: the file's map cannot be read safely here; reading it instead");
}

static ingot_status unpin(struct ig_dev *d, void *memory, ingot_error *e)
{
    (void)e;
    ig_host_unguard(of(d), memory);
    return INGOT_OK;
}

static ingot_status copy(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                         uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e)
{
    return ig_host_push(of(d),
                        &(struct host_op){.kind = HOST_COPY,
                                          .to = to,
                                          .pitch = pitch,
                                          .from = from,
                                          .stride = stride,
                                          .width = width,
                                          .rows = rows},
                        e);
}

static ingot_status fill(struct ig_dev *d, void *to, int byte, uint64_t n, ingot_error *e)
{
    return ig_host_push(
        of(d), &(struct host_op){.kind = HOST_FILL, .to = to, .byte = byte, .width = n}, e);
}

static ingot_status mark(struct ig_dev *d, unsigned m, ingot_error *e)
{
    return ig_host_push(of(d), &(struct host_op){.kind = HOST_MARK, .mark = m}, e);
}

static ingot_status wait(struct ig_dev *d, unsigned m, ingot_error *e)
{
    struct host_device *h = of(d);
    pthread_mutex_lock(&h->lock);
    while (!h->reached[m]) pthread_cond_wait(&h->changed, &h->lock);
    const bool lost = h->lost;
    pthread_mutex_unlock(&h->lock);
    return lost ? ig_fail(e, INGOT_ERR_IO, "host: a file lost pages while they were copied from it")
                : INGOT_OK;
}

static ingot_status hash(struct ig_dev *d, unsigned m, const struct ig_job *jobs, uint32_t n,
                         uint8_t *results, ingot_error *e)
{
    return ig_host_push_batch(
        of(d), &(struct host_batch){.jobs = jobs, .n = n, .results = results, .mark = m}, e);
}

static ingot_status hash_wait(struct ig_dev *d, unsigned m, ingot_error *e)
{
    struct host_device *h = of(d);
    (void)e;
    pthread_mutex_lock(&h->lock);
    while (h->open[m] > 0) pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    return INGOT_OK;
}

static bool hash_done(struct ig_dev *d, unsigned m)
{
    struct host_device *h = of(d);
    pthread_mutex_lock(&h->lock);
    const bool done = h->open[m] == 0;
    pthread_mutex_unlock(&h->lock);
    return done;
}

static ingot_status after_hash(struct ig_dev *d, unsigned m, ingot_error *e)
{
    return ig_host_push(of(d), &(struct host_op){.kind = HOST_AFTER, .mark = m}, e);
}

static ingot_status drain(struct ig_dev *d, ingot_error *e)
{
    struct host_device *h = of(d);
    (void)e;
    pthread_mutex_lock(&h->lock);
    while (h->first || h->copying || h->batches) pthread_cond_wait(&h->changed, &h->lock);
    h->lost = false;
    pthread_mutex_unlock(&h->lock);
    return INGOT_OK;
}

static ingot_status read_back(struct ig_dev *d, void *to, const void *from, uint64_t n,
                              ingot_error *e)
{
    return_if_error(drain(d, e));
    memcpy(to, from, (size_t)n);
    return INGOT_OK;
}

/* The host has no streams: whoever would follow one waits. */
static ingot_status join(struct ig_dev *d, void *stream, ingot_error *e)
{
    (void)d, (void)stream, (void)e;
    return INGOT_OK;
}

static ingot_status follow(struct ig_dev *d, void *stream, unsigned m, ingot_error *e)
{
    (void)stream;
    return m == IG_MARKS ? drain(d, e) : wait(d, m, e);
}

static bool writable(struct ig_dev *d, const void *memory, uint64_t n)
{
    (void)d, (void)n;
    return memory != NULL;
}

ingot_status ig_host_open(unsigned threads, struct ig_dev **out, ingot_error *e)
{
    static const struct ig_dev_ops ops = {.start = start,
                                          .close = close_host,
                                          .alloc = alloc,
                                          .release = release,
                                          .pin = pin,
                                          .unpin = unpin,
                                          .copy = copy,
                                          .move = copy,
                                          .fill = fill,
                                          .mark = mark,
                                          .wait = wait,
                                          .hash = hash,
                                          .hash_wait = hash_wait,
                                          .hash_done = hash_done,
                                          .after_hash = after_hash,
                                          .drain = drain,
                                          .read_back = read_back,
                                          .join = join,
                                          .follow = follow,
                                          .writable = writable};
    struct host_device *h = calloc(1, sizeof *h);
    *out = NULL;
    if (!h) return ig_no_memory(e);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    h->threads = threads ? threads : ig_cpus();
    h->base.ops = &ops;
    h->base.info = (struct ig_dev_info){.name = "host", .host = true, .numa = -1};
    *out = &h->base;
    return INGOT_OK;
}
