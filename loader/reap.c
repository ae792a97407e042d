/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaper waits for what the device does, in the order in which it was queued, so that one
 * thread sleeps in the driver and not twelve.  A slot goes back the moment its copies have landed;
 * hashes are a window or two behind, and are looked at in between.
 */
#include "loader/run.h"

#include <fcntl.h>
#include <time.h>

double ig_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void ig_run_room(struct ig_run *r)
{
    __atomic_add_fetch(&r->pulse, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&r->room);
}

void ig_run_fail(struct ig_run *r, const ingot_error *e)
{
    pthread_mutex_lock(&r->lock);
    if (r->status == INGOT_OK) {
        r->status = e->status;
        r->error = *e;
    }
    r->stop = true;
    pthread_cond_broadcast(&r->moved);
    ig_run_room(r);
    pthread_mutex_unlock(&r->lock);
}

bool ig_run_stopped(struct ig_run *r)
{
    pthread_mutex_lock(&r->lock);
    const bool stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop;
}

/* Look whether the windows that will soon be claimed are in the page cache. */
static void probe(struct ig_run *r)
{
    const struct ig_windows *p = r->plan;
    size_t w = r->probed; /* only this thread moves it */
    const size_t end =
        r->landed + r->ring->slots + 1 < p->n ? r->landed + r->ring->slots + 1 : p->n;
    for (; w < end; w++) {
        const struct ig_window *k = &p->list[w];
        bool cold = r->engine == INGOT_ENGINE_DIRECT;
        if (r->engine == INGOT_ENGINE_AUTO && r->direct >= 0 && k->nreads)
            cold = ig_residency(&r->residency, k->offset, k->bytes) < k->bytes / 2;
        pthread_mutex_lock(&r->lock);
        r->cold[w % IG_MARKS] = cold && r->direct >= 0;
        r->probed = w + 1;
        if (w < r->landed + r->ring->slots) ig_run_room(r);
        pthread_mutex_unlock(&r->lock);
    }
}

/* Lock held.  Windows that have landed and whose hashes are judged. */
static void settle(struct ig_run *r)
{
    size_t judged = r->landed;
    if (r->batches_done < r->batches_flushed) {
        const size_t w = r->ring->batch[r->batches_done % IG_BATCHES].window;
        if (w < judged) judged = w;
    }
    if (r->truth_ready || !r->must_prove) r->judged = judged;
}

static ingot_status judge_batch(struct ig_run *r, const struct ig_batch *b, ingot_error *e)
{
    for (uint32_t i = 0; i < b->n; i++)
        return_if_error(ig_judge(r, &b->truth[i], b->results + b->jobs[i].out, e));
    return INGOT_OK;
}

/* Lock held, released meanwhile.  The oldest batch: wait for it, judge it. */
static ingot_status judge_next(struct ig_run *r, ingot_error *e)
{
    const struct ig_batch *b = &r->ring->batch[r->batches_done % IG_BATCHES];
    while (!r->truth_ready && !r->stop) pthread_cond_wait(&r->moved, &r->lock);
    if (r->stop) return INGOT_OK;
    pthread_mutex_unlock(&r->lock);
    ingot_status status = r->dev->ops->hash_wait(r->dev, b->window % IG_MARKS, e);
    if (status == INGOT_OK) status = judge_batch(r, b, e);
    pthread_mutex_lock(&r->lock);
    if (status != INGOT_OK) return status; /* its window is not settled */
    r->batches_done++;
    settle(r);
    pthread_cond_broadcast(&r->moved);
    return status;
}

static void report(struct ig_run *r)
{
    const struct ig_progress *p = &r->progress;
    if (p->update) {
        pthread_mutex_lock(&r->lock);
        const uint64_t done = r->stats.uploaded;
        pthread_mutex_unlock(&r->lock);
        p->update(p->ctx, done < r->plan->placed_bytes ? done : r->plan->placed_bytes,
                  r->plan->placed_bytes);
    }
    if (p->cancelled && p->cancelled(p->ctx)) {
        ingot_error e = {0};
        ig_fail(&e, INGOT_ERR_CANCELLED, "%s: the load was cancelled", r->pack->path);
        ig_run_fail(r, &e);
    }
}

/* A map of a file that was cut: to read what was to be copied says so in better words. */
static void say_what_is_lost(const struct ig_run *r, size_t window, ingot_error *e)
{
    const struct ig_window *k = &r->plan->list[window];
    uint8_t byte;
    (void)ig_pread(r->pack->fd, r->pack->path, &byte, 1, k->offset + k->bytes - 1, e);
}

/* Lock held, released meanwhile.  The next window lands and gives its slot back. */
static ingot_status land_next(struct ig_run *r, ingot_error *e)
{
    const size_t w = r->landed;
    pthread_mutex_unlock(&r->lock);
    const ingot_status status = r->dev->ops->wait(r->dev, w % IG_MARKS, e);
    const double now = ig_clock();
    if (status == INGOT_OK) {
        const struct ig_window *k = &r->plan->list[w];
        if (r->drop_behind && k->nreads)
            (void)posix_fadvise(r->pack->fd, (off_t)k->offset, (off_t)k->bytes,
                                POSIX_FADV_DONTNEED);
        report(r);
    } else if (r->engine == INGOT_ENGINE_MAP) {
        say_what_is_lost(r, w, e);
    }
    pthread_mutex_lock(&r->lock);
    if (status != INGOT_OK) return status;
    if (w == 0) r->stats.first = now;
    r->stats.landed = now;
    r->landed = w + 1;
    ig_run_room(r);
    settle(r);
    pthread_cond_broadcast(&r->moved);
    return INGOT_OK;
}

/* Lock held, released meanwhile.  Is there a batch that costs no waiting? */
static bool judgeable(struct ig_run *r)
{
    if (r->batches_done == r->batches_flushed || !r->truth_ready) return false;
    const unsigned m = r->ring->batch[r->batches_done % IG_BATCHES].window % IG_MARKS;
    pthread_mutex_unlock(&r->lock);
    const bool done = r->dev->ops->hash_done(r->dev, m);
    pthread_mutex_lock(&r->lock);
    return done;
}

void ig_reap(struct ig_run *r)
{
    ingot_error e = {0};
    ingot_status status = INGOT_OK;
    pthread_mutex_lock(&r->lock);
    while (status == INGOT_OK && !r->stop && r->judged < r->plan->n) {
        pthread_mutex_unlock(&r->lock);
        probe(r);
        pthread_mutex_lock(&r->lock);
        const bool ripe = judgeable(r);
        if (r->stop) break; /* the lock was let go meanwhile */
        if (ripe) {
            status = judge_next(r, &e);
        } else if (r->landed < r->submitted) {
            status = land_next(r, &e);
            if (status == INGOT_OK) ig_fill_submit(r);
        } else if (r->batches_done < r->batches_flushed) {
            status = judge_next(r, &e);
            if (status == INGOT_OK) ig_fill_submit(r);
        } else if (r->judged < r->landed) {
            settle(r);
            if (r->judged < r->landed) pthread_cond_wait(&r->moved, &r->lock);
            ig_fill_submit(r);
        } else {
            pthread_cond_wait(&r->moved, &r->lock);
        }
    }
    pthread_mutex_unlock(&r->lock);
    if (status != INGOT_OK) ig_run_fail(r, &e);
}
