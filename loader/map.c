/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map engine: a slice of the file is mapped and pinned, copies come straight from the page
 * cache, and the slice is let go behind them.  One thread and next to no CPU.  Pinning holds a lock
 * of the driver that stalls every other call to it, so this never runs beside the ring.
 *
 * A file that a peer cuts short cannot kill us here: pinning faults the pages in and fails where
 * there are none, and pinned pages stay whatever becomes of the file.
 */
#include "loader/run.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SLICES 3u
#define SLICE  ((uint64_t)256 << 20)

struct slice {
    uint8_t *memory;
    uint64_t offset, bytes;
    size_t end; /* windows before this one are done with it, once landed */
};
struct ig_map {
    struct slice slice[SLICES];
    unsigned first, n;
};

static void drop_first(struct ig_run *r)
{
    struct ig_map *m = r->map;
    struct slice *s = &m->slice[m->first % SLICES];
    if (s->memory) {
        (void)r->dev->ops->unpin(r->dev, s->memory, NULL);
        munmap(s->memory, (size_t)s->bytes);
    }
    *s = (struct slice){0};
    m->first++, m->n--;
}

/* Lock held, released meanwhile: until the oldest slice's windows have landed. */
static bool wait_for(struct ig_run *r, size_t window)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->landed < window) pthread_cond_wait(&r->moved, &r->lock);
    const bool go_on = !r->stop;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

static ingot_status pin_slice(struct ig_run *r, uint64_t offset, uint64_t bytes, struct slice *s,
                              ingot_error *e)
{
    uint8_t *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, r->pack->fd, (off_t)offset);
    if (p == MAP_FAILED)
        return ig_fail_sys(e, errno, "%s: cannot map %llu bytes at offset %llu", r->pack->path,
                           (unsigned long long)bytes, (unsigned long long)offset);
    const ingot_status status = r->dev->ops->pin(r->dev, p, (size_t)bytes, true, e);
    if (status != INGOT_OK) {
        munmap(p, (size_t)bytes);
        return status;
    }
    *s = (struct slice){.memory = p, .offset = offset, .bytes = bytes};
    return INGOT_OK;
}

static ingot_status submit_slice(struct ig_run *r, size_t first, size_t end, ingot_error *e)
{
    struct ig_map *m = r->map;
    const struct ig_window *list = r->plan->list;
    if (m->n == SLICES) {
        if (!wait_for(r, m->slice[m->first % SLICES].end)) return INGOT_OK;
        drop_first(r);
    }
    struct slice *s = &m->slice[(m->first + m->n) % SLICES];
    const uint64_t from = list[first].offset, to = list[end - 1].offset + list[end - 1].bytes;
    return_if_error(pin_slice(r, from, to - from, s, e));
    s->end = end;
    m->n++;
    for (size_t w = first; w < end; w++) {
        pthread_mutex_lock(&r->lock);
        while (!r->stop && w >= r->judged + IG_MARKS) pthread_cond_wait(&r->moved, &r->lock);
        const bool stop = r->stop;
        pthread_mutex_unlock(&r->lock);
        if (stop) return INGOT_OK;
        return_if_error(ig_submit(r, w, s->memory + (list[w].offset - from), e));
        pthread_mutex_lock(&r->lock);
        r->submitted = w + 1;
        r->stats.read += list[w].bytes;
        r->stats.by_engine[INGOT_ENGINE_MAP] += list[w].bytes;
        pthread_cond_broadcast(&r->moved);
        pthread_mutex_unlock(&r->lock);
    }
    return INGOT_OK;
}

static bool wait_ready(struct ig_run *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stop && !r->ready) pthread_cond_wait(&r->moved, &r->lock);
    const bool go_on = !r->stop;
    pthread_mutex_unlock(&r->lock);
    return go_on;
}

static void drop_all(struct ig_run *r)
{
    while (r->map->n) drop_first(r);
    r->map = NULL;
}

/* Pinning was refused, now or after a while: the rest goes through the ring. */
static void *read_instead(struct ig_run *r, size_t window, const ingot_error *why)
{
    if (r->notice) r->notice(r->notice_ctx, why->message);
    (void)wait_for(r, window);
    drop_all(r);
    pthread_mutex_lock(&r->lock);
    r->claimed_window = window;
    r->claimed_reads = r->plan->list[window].read;
    pthread_mutex_unlock(&r->lock);
    return ig_fill_worker(r);
}

void *ig_map_worker(void *arg)
{
    struct ig_run *r = arg;
    struct ig_map m = {.first = 0};
    const struct ig_windows *p = r->plan;
    ingot_error e = {0};
    ingot_status status = INGOT_OK;
    r->map = &m;
    if (!wait_ready(r)) return NULL;
    for (size_t w = 0; w < p->n && status == INGOT_OK && !ig_run_stopped(r);) {
        size_t end = w + 1;
        /* Windows that follow one another, up to a slice. */
        while (end < p->n && p->list[end].offset == p->list[end - 1].offset + p->size &&
               p->list[end].offset + p->size - p->list[w].offset <= SLICE)
            end++;
        status = submit_slice(r, w, end, &e);
        if (status == INGOT_ERR_NO_MEMORY) return read_instead(r, w, &e);
        w = end;
    }
    if (status != INGOT_OK) ig_run_fail(r, &e);
    (void)wait_for(r, p->n);
    /* After a failure copies may still be under way. */
    if (ig_run_stopped(r)) (void)r->dev->ops->drain(r->dev, NULL);
    drop_all(r);
    return NULL;
}
