/* SPDX-License-Identifier: Apache-2.0 */
/* One window, queued: copies, mark, hash jobs. */
#include "loader/run.h"

#define BOUNCES 2u

struct submission {
    struct ig_run *r;
    size_t window;
    uint64_t base;
    const uint8_t *slot;
    unsigned mark;
    struct ig_batch *batch;
    uint64_t uploaded;
};

static uint8_t *bounce_of(const struct submission *s)
{
    return s->r->bounce + s->window % BOUNCES * s->r->ring->window;
}

/* Everything but the slot is device memory. */
static uint8_t *resolve(const struct submission *s, struct ig_address p)
{
    switch (p.space) {
    case IG_SPACE_BOUNCE:
        return bounce_of(s) + (p.at - s->base);
    case IG_SPACE_EDGE:
        return s->r->edges + p.at;
    default:
        return s->r->dst + p.at;
    }
}

static ingot_status queue_copy(void *ctx, const struct ig_copy *c, ingot_error *e)
{
    struct submission *s = ctx;
    struct ig_dev *d = s->r->dev;
    uint8_t *to = resolve(s, c->to);
    if (c->from.space != IG_SPACE_SLOT)
        return d->ops->move(d, to, c->pitch, resolve(s, c->from), c->stride, c->width, c->rows, e);
    s->uploaded += c->rows * c->width;
    return d->ops->copy(d, to, c->pitch, s->slot + (c->from.at - s->base), c->stride, c->width,
                        c->rows, e);
}

/* The next batch, when the reaper is done with what it held. */
static ingot_status take_batch(struct submission *s, ingot_error *e)
{
    struct ig_run *r = s->r;
    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->batches_used - r->batches_done == IG_BATCHES)
        pthread_cond_wait(&r->moved, &r->lock);
    const bool stop = r->stop;
    if (!stop) s->batch = &r->ring->batch[r->batches_used++ % IG_BATCHES];
    pthread_mutex_unlock(&r->lock);
    if (stop) return ig_fail(e, INGOT_ERR_CANCELLED, "stopped");
    s->batch->n = s->batch->out = 0;
    s->batch->window = s->window;
    return INGOT_OK;
}

static ingot_status flush(struct submission *s, ingot_error *e)
{
    struct ig_run *r = s->r;
    struct ig_batch *b = s->batch;
    if (!b) return INGOT_OK;
    s->batch = NULL;
    return_if_error(r->dev->ops->hash(r->dev, s->mark, b->jobs, b->n, b->results, e));
    pthread_mutex_lock(&r->lock);
    r->batches_flushed++;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    return INGOT_OK;
}

static uint32_t out_bytes(const struct ig_plan_job *j)
{
    switch (j->kind) {
    case IG_JOB_LEAVES:
        return (uint32_t)((j->bytes + IG_PAGE - 1) / IG_PAGE * IG_HASH);
    case IG_JOB_XXH:
        return (uint32_t)((j->bytes + IG_SPAN - 1) / IG_SPAN * 16);
    default:
        return IG_HASH;
    }
}

static ingot_status queue_job(void *ctx, const struct ig_plan_job *j, ingot_error *e)
{
    struct submission *s = ctx;
    const uint32_t out = out_bytes(j);
    if (s->batch && (s->batch->n == IG_BATCH_JOBS || s->batch->out + out > IG_BATCH_OUT))
        return_if_error(flush(s, e));
    if (!s->batch) return_if_error(take_batch(s, e));
    struct ig_batch *b = s->batch;
    b->truth[b->n] = j->truth;
    b->jobs[b->n++] = (struct ig_job){.data = resolve(s, j->data),
                                      .data2 = resolve(s, j->data2),
                                      .data3 = resolve(s, j->data3),
                                      .bytes = j->bytes,
                                      .bytes2 = j->bytes2,
                                      .bytes3 = j->bytes3,
                                      .rows = j->rows,
                                      .stride = j->stride,
                                      .stride2 = j->stride2,
                                      .kind = j->kind,
                                      .single = j->single,
                                      .out = b->out};
    b->out += out;
    return INGOT_OK;
}

ingot_status ig_submit(struct ig_run *r, size_t window, const uint8_t *from, ingot_error *e)
{
    struct ig_dev *d = r->dev;
    struct submission s = {.r = r,
                           .window = window,
                           .base = r->plan->list[window].offset,
                           .slot = from,
                           .mark = window % IG_MARKS};
    /* The bounce is still being hashed for an earlier window. */
    if (r->bounce && window >= BOUNCES)
        return_if_error(d->ops->after_hash(d, (window - BOUNCES) % IG_MARKS, e));
    return_if_error(ig_window_copies(r->plan, window, r->again, queue_copy, &s, e));
    return_if_error(d->ops->mark(d, s.mark, e));
    return_if_error(ig_window_jobs(r->plan, window, queue_job, &s, e));
    return_if_error(flush(&s, e));
    pthread_mutex_lock(&r->lock);
    r->stats.uploaded += s.uploaded;
    pthread_mutex_unlock(&r->lock);
    return INGOT_OK;
}
