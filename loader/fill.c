/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers.  They fill the current slot together, in pieces of 512 KiB: a slot is then full after
 * the time of one piece times slots / workers, and the copy engine never waits for a straggler with
 * 16 MiB of its own.  That is what reaches the wire where one slot a worker does not.
 */
#include "loader/run.h"

#include <errno.h>
#include <unistd.h>

#define SPIN 20e-6 /* seconds */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Lock held.  The window of the next piece, when it may be claimed: its slot must have been given
 * back, and somebody must have looked whether it is cold. */
static bool claimable(const struct ig_run *r)
{
    return r->claimed_window < r->landed + r->ring->slots && r->claimed_window < r->probed;
}

/* Lock held.  Windows without reads (hashed once more) are full as soon as they are reached. */
static void skip_empty(struct ig_run *r)
{
    const struct ig_windows *p = r->plan;
    bool any = false;
    while (r->claimed_window < p->n && p->list[r->claimed_window].nreads == 0 && claimable(r)) {
        r->full[r->claimed_window++ % IG_MARKS] = true;
        any = true;
    }
    if (any) ig_fill_submit(r);
}

struct claim {
    const struct ig_read *reads;
    uint32_t n;
    size_t window;
    bool cold, uring;
};

/* Lock held, released meanwhile.  A slot comes back every few hundred microseconds, and to wake up
 * takes long against that: look for a moment before sleeping. */
static void wait_for_room(struct ig_run *r)
{
    const unsigned pulse = __atomic_load_n(&r->pulse, __ATOMIC_ACQUIRE);
    const double until = ig_clock() + SPIN;
    pthread_mutex_unlock(&r->lock);
    while (__atomic_load_n(&r->pulse, __ATOMIC_ACQUIRE) == pulse && ig_clock() < until) relax();
    pthread_mutex_lock(&r->lock);
    if (__atomic_load_n(&r->pulse, __ATOMIC_ACQUIRE) == pulse)
        pthread_cond_wait(&r->room, &r->lock);
}

/* Lock held.  One piece; of a cold window all that is left of it, for one thread queues them. */
static bool claim(struct ig_run *r, struct claim *c)
{
    for (;;) {
        skip_empty(r);
        if (r->stop || r->claimed_window >= r->plan->n) return false;
        /* Submitting what was skipped let go of the lock: the next one may be empty too. */
        if (!claimable(r))
            wait_for_room(r);
        else if (r->plan->list[r->claimed_window].nreads > 0)
            break;
    }
    const size_t w = r->claimed_window;
    const struct ig_window *k = &r->plan->list[w];
    if (r->claimed_reads == k->read) {
        r->left[w % IG_MARKS] = k->nreads;
        r->full[w % IG_MARKS] = false;
    }
    const uint32_t rest = k->read + k->nreads - (uint32_t)r->claimed_reads;
    *c = (struct claim){.reads = &r->plan->reads[r->claimed_reads],
                        .window = w,
                        .cold = r->cold[w % IG_MARKS] && !r->direct_refused};
    c->uring = c->cold && !r->uring_refused;
    c->n = c->uring ? rest : 1;
    r->claimed_reads += c->n;
    if (c->n == rest) r->claimed_window++;
    return true;
}

static bool direct_is_refused(int err)
{
    return err == EINVAL || err == EOPNOTSUPP || err == ENOSYS;
}

/* Lock not held. */
static void refuse_direct(struct ig_run *r, const char *why)
{
    pthread_mutex_lock(&r->lock);
    const bool first = !r->direct_refused;
    r->direct_refused = true;
    pthread_mutex_unlock(&r->lock);
    if (first && r->notice) r->notice(r->notice_ctx, why);
}

static ingot_status read_plain(struct ig_run *r, const struct claim *c, uint8_t *slot,
                               uint64_t base, ingot_error *e)
{
    for (uint32_t i = 0; i < c->n; i++)
        return_if_error(ig_pread(r->pack->fd, r->pack->path, slot + (c->reads[i].offset - base),
                                 c->reads[i].bytes, c->reads[i].offset, e));
    return INGOT_OK;
}

/* What the file system cannot do past its cache it does through it. */
static ingot_status read_cold(struct ig_run *r, const struct claim *c, struct ig_uring **uring,
                              uint8_t *slot, uint64_t base, bool *direct, ingot_error *e)
{
    bool refused = !c->uring;
    ingot_status status = INGOT_OK;
    *direct = true;
    if (c->uring) {
        status =
            ig_uring_read(uring, r->direct, r->pack->path, c->reads, c->n, slot, base, &refused, e);
        pthread_mutex_lock(&r->lock);
        r->uring_refused |= refused;
        pthread_mutex_unlock(&r->lock);
    }
    for (uint32_t i = 0; refused && i < c->n && status == INGOT_OK; i++)
        status = ig_pread(r->direct, r->pack->path, slot + (c->reads[i].offset - base),
                          c->reads[i].bytes, c->reads[i].offset, e);
    if (status == INGOT_OK || !direct_is_refused(e->sys_errno)) return status;
    refuse_direct(r, "direct reads are refused here; reading through the page cache");
    *direct = false;
    return read_plain(r, c, slot, base, e);
}

static ingot_status fill(struct ig_run *r, const struct claim *c, struct ig_uring **uring,
                         bool *direct, ingot_error *e)
{
    const uint64_t base = r->plan->list[c->window].offset;
    uint8_t *slot = r->ring->memory + c->window % r->ring->slots * r->ring->window;
    *direct = false;
    return c->cold ? read_cold(r, c, uring, slot, base, direct, e)
                   : read_plain(r, c, slot, base, e);
}

/* Lock held. */
static void count(struct ig_run *r, const struct claim *c, bool direct)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->n; i++) bytes += c->reads[i].bytes;
    r->stats.read += bytes;
    r->stats.by_engine[direct ? INGOT_ENGINE_DIRECT : INGOT_ENGINE_RING] += bytes;
}

void ig_fill_submit(struct ig_run *r)
{
    ingot_error e = {0};
    const struct ig_ring *g = r->ring;
    while (r->ready && !r->submitting && !r->stop && r->submitted < r->plan->n &&
           r->submitted < r->claimed_window && r->full[r->submitted % IG_MARKS] &&
           r->submitted < r->judged + IG_MARKS) {
        const size_t w = r->submitted;
        r->submitting = true;
        pthread_mutex_unlock(&r->lock);
        const ingot_status status = ig_submit(r, w, g->memory + w % g->slots * g->window, &e);
        pthread_mutex_lock(&r->lock);
        r->submitting = false;
        if (status != INGOT_OK) {
            pthread_mutex_unlock(&r->lock);
            ig_run_fail(r, &e);
            pthread_mutex_lock(&r->lock);
            return;
        }
        r->full[w % IG_MARKS] = false;
        r->submitted++;
        pthread_cond_broadcast(&r->moved);
    }
}

void *ig_fill_worker(void *arg)
{
    struct ig_run *r = arg;
    struct ig_uring *uring = NULL;
    struct claim c;
    ingot_error e = {0};
    if (!r->ring->touched)
        ig_ring_touch(r->ring, __atomic_fetch_add(&r->touching, 1, __ATOMIC_RELAXED), r->nworkers);
    pthread_mutex_lock(&r->lock);
    while (claim(r, &c)) {
        pthread_mutex_unlock(&r->lock);
        bool direct;
        const ingot_status status = fill(r, &c, &uring, &direct, &e);
        if (status != INGOT_OK) ig_run_fail(r, &e);
        pthread_mutex_lock(&r->lock);
        if (status != INGOT_OK) break;
        count(r, &c, direct);
        r->left[c.window % IG_MARKS] -= c.n;
        if (r->left[c.window % IG_MARKS] > 0) continue;
        r->full[c.window % IG_MARKS] = true;
        ig_fill_submit(r);
    }
    pthread_mutex_unlock(&r->lock);
    ig_uring_close(uring);
    return NULL;
}
