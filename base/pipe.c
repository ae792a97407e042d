/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A staged pool.  Every item owns one buffer slot from the moment it is described until
 * its last stage ends, so the slots bound memory.  Each lane is a sequence whose ordered
 * stages (a serial hash, a read) take its items one by one, while other lanes and
 * unordered stages go on beside them.  A free worker takes, in this order: an ordered
 * stage that is ready (it is what everything else waits for), the latest unordered stage
 * (it frees a slot), a new item.
 *
 * Threads that wait for a disk are more than the processors that hash: `busy` keeps those that do
 * hash from taking turns with the ordered stage on one processor.
 *
 * One lock guards the bookkeeping; a stage handles megabytes, so it is taken rarely.
 */
#include "base/pipe.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STAGES 4

struct entry { /* one slot */
    struct ig_item item;
    unsigned stage; /* the stage it waits for */
    bool used, running;
};
struct lane {
    uint64_t next_index;       /* of the item to be described */
    uint64_t turn[MAX_STAGES]; /* index whose turn it is in an ordered stage */
    bool busy[MAX_STAGES];     /* that ordered stage is running */
    bool describing, ended;
};
struct ig_pool {
    const struct ig_pipe *p;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry *entries;
    struct lane *lanes;
    unsigned in_flight, lanes_ended;
    unsigned busy, busy_most; /* stages that run and do not wait for a device */
    unsigned next_lane;       /* round robin over the lanes for new items */
    ingot_status status;
    ingot_error error;
};
struct worker {
    struct ig_pool *pool;
    unsigned id;
    pthread_t thread;
};

static bool ready(const struct ig_pool *q, const struct entry *n)
{
    if (!n->used || n->running) return false;
    const struct ig_stage *stage = &q->p->stages[n->stage];
    const struct lane *lane = &q->lanes[n->item.lane];
    return !stage->ordered || (!lane->busy[n->stage] && lane->turn[n->stage] == n->item.index);
}

static struct entry *pick(const struct ig_pool *q)
{
    struct entry *best = NULL;
    unsigned best_rank = 0;
    for (unsigned i = 0; i < q->p->slots; i++) {
        struct entry *n = &q->entries[i];
        if (!ready(q, n)) continue;
        const unsigned rank = 1 + n->stage + (q->p->stages[n->stage].ordered ? MAX_STAGES : 0);
        const bool older = best && rank == best_rank && n->item.index < best->item.index;
        if (rank > best_rank || older) best = n, best_rank = rank;
    }
    return best;
}

static struct entry *free_entry(const struct ig_pool *q)
{
    for (unsigned i = 0; i < q->p->slots; i++)
        if (!q->entries[i].used) return &q->entries[i];
    return NULL;
}

/* A lane that can describe its next item now, or NULL. */
static struct lane *pick_lane(struct ig_pool *q)
{
    for (unsigned i = 0; i < q->p->lanes; i++) {
        const unsigned n = (q->next_lane + i) % q->p->lanes;
        struct lane *lane = &q->lanes[n];
        if (lane->ended || lane->describing) continue;
        q->next_lane = (n + 1) % q->p->lanes;
        return lane;
    }
    return NULL;
}

static void keep_failure(struct ig_pool *q, ingot_status status, const ingot_error *e)
{
    if (status == INGOT_OK || q->status != INGOT_OK) return;
    q->status = status;
    q->error = *e;
}

/* Both run with the lock held, drop it for the caller's function, and take it again. */
static void describe(struct ig_pool *q, struct entry *n, struct lane *lane)
{
    ingot_error e = {0};
    bool more = false;
    lane->describing = true;
    n->used = n->running = true;
    n->stage = 0;
    n->item = (struct ig_item){.lane = (unsigned)(lane - q->lanes),
                               .slot = (unsigned)(n - q->entries),
                               .index = lane->next_index,
                               .pool = q};
    q->in_flight++;
    pthread_mutex_unlock(&q->lock);
    const ingot_status status = q->p->next(q->p->ctx, &n->item, &more, &e);
    pthread_mutex_lock(&q->lock);
    keep_failure(q, status, &e);
    lane->describing = n->running = false;
    if (status == INGOT_OK && more) {
        lane->next_index++;
        return;
    }
    n->used = false;
    q->in_flight--;
    lane->ended = true;
    q->lanes_ended++;
}

static void run_stage(struct ig_pool *q, struct entry *n, unsigned worker)
{
    ingot_error e = {0};
    const unsigned s = n->stage;
    struct lane *lane = &q->lanes[n->item.lane];
    n->running = true;
    lane->busy[s] = q->p->stages[s].ordered;
    pthread_mutex_unlock(&q->lock);
    const ingot_status status = q->p->stages[s].run(q->p->ctx, &n->item, worker, &e);
    pthread_mutex_lock(&q->lock);
    keep_failure(q, status, &e);
    n->running = false;
    if (q->p->stages[s].ordered) {
        lane->busy[s] = false;
        lane->turn[s] = n->item.index + 1;
    }
    if (++n->stage == q->p->nstages) {
        n->used = false;
        q->in_flight--;
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct ig_pool *q = w->pool;
    pthread_mutex_lock(&q->lock);
    while (q->status == INGOT_OK) {
        const bool may = q->busy < q->busy_most;
        struct entry *n = may ? pick(q) : NULL;
        struct lane *lane = NULL;
        struct entry *fresh = n || !may ? NULL : free_entry(q);
        if (fresh) lane = pick_lane(q);
        if (n) {
            q->busy++;
            run_stage(q, n, w->id);
            q->busy--;
        } else if (lane) {
            q->busy++;
            describe(q, fresh, lane);
            q->busy--;
        } else if (q->lanes_ended == q->p->lanes && q->in_flight == 0) {
            break;
        } else {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        pthread_cond_broadcast(&q->changed);
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* What comes back from a wait goes on at once: it has a buffer to free, and little left to do. */
void ig_pipe_wait(const struct ig_item *item, bool begins)
{
    struct ig_pool *q = item->pool;
    pthread_mutex_lock(&q->lock);
    q->busy = begins ? q->busy - 1 : q->busy + 1;
    if (begins) pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* Start threads 1.., work as thread 0, join.  Fewer threads than asked is no failure. */
static void run_workers(struct ig_pool *q, struct worker *workers, unsigned threads)
{
    unsigned started = 1;
    for (unsigned i = 0; i < threads; i++) workers[i] = (struct worker){.pool = q, .id = i};
    for (; started < threads; started++)
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) break;
    work(&workers[0]);
    for (unsigned i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
}

ingot_status ig_pipe_run(const struct ig_pipe *p, ingot_error *e)
{
    struct ig_pool q = {.p = p, .busy_most = p->busy ? p->busy : p->threads};
    struct worker *workers = ig_array(p->threads, sizeof *workers);
    q.entries = ig_array(p->slots, sizeof *q.entries);
    q.lanes = ig_array(p->lanes, sizeof *q.lanes);
    if (!workers || !q.entries || !q.lanes) {
        q.status = ig_no_memory(&q.error);
    } else {
        pthread_mutex_init(&q.lock, NULL);
        pthread_cond_init(&q.changed, NULL);
        run_workers(&q, workers, p->threads);
        pthread_cond_destroy(&q.changed);
        pthread_mutex_destroy(&q.lock);
    }
    free(workers);
    free(q.entries);
    free(q.lanes);
    if (q.status != INGOT_OK && e) *e = q.error;
    return q.status;
}

/* ig_parallel is a pipe of one unordered stage whose items are handed out in batches. */
struct each {
    ig_for_fn *fn;
    void *ctx;
    uint64_t n, batch;
};

static ingot_status each_next(void *ctx, struct ig_item *item, bool *more, ingot_error *e)
{
    const struct each *each = ctx;
    (void)e;
    *more = item->index * each->batch < each->n;
    return INGOT_OK;
}

static ingot_status each_run(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    const struct each *each = ctx;
    const uint64_t first = item->index * each->batch;
    const uint64_t end = each->n - first < each->batch ? each->n : first + each->batch;
    for (uint64_t i = first; i < end; i++) return_if_error(each->fn(each->ctx, i, worker, e));
    return INGOT_OK;
}

ingot_status ig_parallel(unsigned threads, uint64_t n, ig_for_fn *fn, void *ctx, ingot_error *e)
{
    struct each each = {.fn = fn, .ctx = ctx, .n = n, .batch = n / (threads * 64ull) + 1};
    const struct ig_stage stage = {.run = each_run};
    const struct ig_pipe p = {.ctx = &each,
                              .threads = threads,
                              .lanes = 1,
                              .slots = threads,
                              .next = each_next,
                              .stages = &stage,
                              .nstages = 1};
    return ig_pipe_run(&p, e);
}
