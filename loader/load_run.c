/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a load, from the first read to the verdict.  Whoever starts a load makes the
 * device ready meanwhile; the conductor reaps, and at the end judges, cleans up and says what came
 * of it.
 */
#include "loader/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

double ig_cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
    struct ingot_load *l = ctx;
    if (l->options.progress) l->options.progress(l->options.ctx, done, total);
}

static bool cancelled(void *ctx)
{
    struct ingot_load *l = ctx;
    return __atomic_load_n(&l->cancel, __ATOMIC_RELAXED) ||
           (l->options.cancelled && l->options.cancelled(l->options.ctx));
}

static void notice(void *ctx, const char *text)
{
    const struct ingot_load *l = ctx;
    if (l->loader->notice) l->loader->notice(l->loader->ctx, text);
}

/* The kernel drops O_DIRECT for files under fs-verity: it would read them through the cache. */
static bool under_verity(int fd)
{
    struct statx x;
    return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &x) == 0 &&
           (x.stx_attributes & STATX_ATTR_VERITY) != 0;
}

static void open_direct(struct ingot_load *l)
{
    struct ig_run *r = &l->run;
    char self[40];
    if (r->engine != INGOT_ENGINE_AUTO && r->engine != INGOT_ENGINE_DIRECT) return;
    snprintf(self, sizeof self, "/proc/self/fd/%d", r->pack->fd);
    if (!under_verity(r->pack->fd)) r->direct = open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (r->direct < 0 && r->engine == INGOT_ENGINE_DIRECT)
        notice(l, "direct reads are refused here; reading through the page cache");
}

/* Held for moments by a dozen threads: whoever finds it taken had better look again than sleep. */
static void init_lock(struct ig_run *r)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&r->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    pthread_cond_init(&r->moved, NULL);
    pthread_cond_init(&r->room, NULL);
}

static ingot_status init_run(struct ingot_load *l, bool again, ingot_error *e)
{
    struct ig_run *r = &l->run;
    *r = (struct ig_run){.dev = l->loader->dev,
                         .ring = &l->loader->ring,
                         .pack = &l->pack->pack,
                         .plan = &l->plan,
                         .again = again,
                         .dst = l->arena,
                         .engine = again && l->loader->engine == INGOT_ENGINE_MAP
                                       ? INGOT_ENGINE_RING
                                       : l->loader->engine,
                         .notice = notice,
                         .notice_ctx = l,
                         .progress = {.update = update, .cancelled = cancelled, .ctx = l},
                         .direct = -1,
                         .must_prove = l->level == IG_LOAD_FULL,
                         .tail_proven = l->pack->proven};
    memcpy(r->digest, l->pack->digest, IG_HASH);
    init_lock(r);
    ig_residency_open(&r->residency, r->pack->fd);
    const uint64_t headroom = ig_headroom(NULL);
    r->drop_behind = headroom != UINT64_MAX && headroom < l->plan.read_bytes;
    open_direct(l);
    r->nworkers = r->engine == INGOT_ENGINE_MAP ? 1 : l->loader->workers;
    r->stats.started = ig_clock();
    r->tree = malloc(sizeof *r->tree);
    if (!r->tree) return ig_no_memory(e);
    ig_tree_init(r->tree);
    return INGOT_OK;
}

/* ---- threads ---- */

static ingot_status spawn(pthread_t *t, const cpu_set_t *cpus, void *(*fn)(void *), void *arg,
                          ingot_error *e)
{
    pthread_attr_t attr;
    int err = pthread_attr_init(&attr);
    if (err == 0 && cpus) (void)pthread_attr_setaffinity_np(&attr, sizeof *cpus, cpus);
    if (err == 0) {
        err = pthread_create(t, &attr, fn, arg);
        pthread_attr_destroy(&attr);
    }
    return err == 0 ? INGOT_OK : ig_fail_sys(e, err, "cannot start a thread");
}

static void join_all(struct ingot_load *l)
{
    for (unsigned i = 0; i < l->nworkers; i++) pthread_join(l->workers[i], NULL);
    pthread_join(l->truth, NULL);
    l->nworkers = 0;
    l->loader->ring.touched = true;
    /* Whoever started the load may be queueing what was full before the device was ready. */
    pthread_mutex_lock(&l->run.lock);
    while (l->run.submitting) pthread_cond_wait(&l->run.moved, &l->run.lock);
    pthread_mutex_unlock(&l->run.lock);
}

/* What became of the file since: for those levels that prove nothing. */
static ingot_status unchanged(const struct ingot_load *l, ingot_error *e)
{
    struct stat now;
    const struct ig_pack *p = &l->pack->pack;
    if (fstat(p->fd, &now) != 0) return ig_fail_sys(e, errno, "%s: cannot stat", p->path);
    if (now.st_size == l->before.st_size && now.st_mtim.tv_sec == l->before.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == l->before.st_mtim.tv_nsec)
        return INGOT_OK;
    ig_fail(e, INGOT_ERR_CHECK, "%s: the file was changed while it was loaded", p->path);
    return ig_at(e, p->path, NULL, 0);
}

static void count_proven(struct ingot_load *l, struct ingot_load_stats *s)
{
    const size_t w = ig_load_proven_windows(l);
    const struct ig_windows *p = &l->plan;
    if (l->run.status == INGOT_OK) {
        s->proven = p->proven_bytes;
        s->tensors_proven = l->level == IG_LOAD_OFF ? 0 : p->tensors;
        return;
    }
    if (w == 0) return;
    const uint64_t end = p->list[w - 1].offset + p->list[w - 1].bytes;
    if (p->whole) s->proven = end;
    for (size_t i = 0; i < p->ntargets; i++)
        if (p->targets[i].to <= end) {
            s->proven += p->targets[i].t->rows * p->targets[i].t->width;
            s->tensors_proven++;
        }
    for (uint32_t i = 0; p->whole && i < p->pack->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p->pack, i, &row);
        if (row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW)) continue;
        s->tensors_proven += row.bytes == 0 || ig_pack_pos(p->pack, &row) + row.bytes <= end;
    }
}

static void free_transient(struct ig_run *r)
{
    if (r->bounce) r->dev->ops->release(r->dev, r->bounce);
    if (r->edges) r->dev->ops->release(r->dev, r->edges);
    r->bounce = r->edges = NULL;
}

static void fill_stats(struct ingot_load *l)
{
    const struct ig_run_stats *r = &l->run.stats;
    struct ingot_load_stats s = {.plan = l->stats.plan,
                                 .cpu = ig_cpu_seconds() - l->stats.cpu,
                                 .read = r->read,
                                 .uploaded = r->uploaded,
                                 .placed = l->plan.placed_bytes,
                                 .tensors = l->plan.tensors,
                                 .pinned_asked = l->loader->ring.asked,
                                 .pinned = l->loader->ring.pinned ? l->loader->ring.bytes : 0,
                                 .arena = l->arena ? l->arena_bytes : 0,
                                 .transient = l->transient,
                                 .threads = l->run.nworkers,
                                 .early = ig_load_is_early(l)};
    const double start = r->started - l->stats.plan;
    memcpy(s.by_engine, r->by_engine, sizeof s.by_engine);
    s.device = r->device - start;
    s.first = r->first - start;
    s.landed = r->landed - start;
    s.total = ig_clock() - start;
    count_proven(l, &s);
    pthread_mutex_lock(&l->lock);
    l->stats = s;
    pthread_mutex_unlock(&l->lock);
}

void ig_load_give(struct ingot_load *l)
{
    if (__atomic_exchange_n(&l->holds, false, __ATOMIC_ACQ_REL)) ig_loader_give(l->loader);
}

static void finish(struct ingot_load *l)
{
    struct ig_run *r = &l->run;
    fill_stats(l);
    if (r->status != INGOT_OK) ig_load_scrub(l);
    free_transient(r);
    ig_load_give(l);
    pthread_mutex_lock(&l->lock);
    l->status = r->status;
    l->error = r->error;
    l->done = true;
    pthread_cond_broadcast(&l->ended);
    pthread_mutex_unlock(&l->lock);
    pthread_mutex_lock(&r->lock); /* whoever waits for a part of it looks again */
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

static void *conduct(void *arg)
{
    struct ingot_load *l = arg;
    struct ig_run *r = &l->run;
    ingot_error e = {0};
    ig_reap(r);
    join_all(l);
    if (r->status == INGOT_OK && ig_judge_end(r, &e) != INGOT_OK) ig_run_fail(r, &e);
    if (r->dev->ops->drain(r->dev, &e) != INGOT_OK) ig_run_fail(r, &e);
    if (r->status == INGOT_OK && l->level != IG_LOAD_FULL && unchanged(l, &e) != INGOT_OK)
        ig_run_fail(r, &e);
    r->stats.done = ig_clock();
    if (!l->retry) finish(l);
    return NULL;
}

/* ---- the device, beside the first reads ---- */

static ingot_status make_memory(struct ingot_load *l, ingot_error *e)
{
    struct ig_run *r = &l->run;
    struct ig_dev *d = r->dev;
    if (!l->arena && l->options.npieces == 0) {
        return_if_error(d->ops->alloc(d, l->arena_bytes, &l->arena, e));
        r->dst = l->arena;
    }
    const uint64_t bounce = l->plan.bounces ? 2 * l->plan.size : 0;
    const uint64_t edges = l->plan.nedges * IG_PAGE;
    l->transient = bounce + edges;
    if (bounce) return_if_error(d->ops->alloc(d, bounce, (void **)&r->bounce, e));
    if (edges) return_if_error(d->ops->alloc(d, edges, (void **)&r->edges, e));
    return INGOT_OK;
}

static ingot_status check_pieces(const struct ingot_load *l, ingot_error *e)
{
    struct ig_dev *d = l->loader->dev;
    for (size_t i = 0; l->options.npieces && i < l->targets.n; i++) {
        const struct ig_target *t = &l->targets.list[i];
        struct ig_row row;
        void *to = (void *)(uintptr_t)t->to;
        if (d->ops->writable(d, to, (t->rows - 1) * t->pitch + t->width)) continue;
        ig_pack_row(&l->pack->pack, t->row, &row);
        ig_fail(e, INGOT_ERR_USAGE,
                "tensor \"%s\": the memory at %p for it is no memory of %s, or too little of it",
                ig_esc(row.name, row.name_len).s, to, d->info.name);
        return ig_at(e, NULL, row.name, row.name_len);
    }
    return INGOT_OK;
}

static void go(struct ig_run *r)
{
    pthread_mutex_lock(&r->lock);
    r->ready = true;
    r->stats.device = ig_clock();
    ig_fill_submit(r);
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

static ingot_status start_threads(struct ingot_load *l, ingot_error *e)
{
    struct ig_run *r = &l->run;
    cpu_set_t cpus;
    const bool bound = ig_node_cpus(r->dev->info.numa, r->nworkers, &cpus);
    return_if_error(spawn(&l->truth, NULL, ig_truth_thread, r, e));
    void *(*work)(void *) = r->engine == INGOT_ENGINE_MAP ? ig_map_worker : ig_fill_worker;
    ingot_status status = INGOT_OK;
    const unsigned wanted = r->nworkers;
    while (l->nworkers < wanted && status == INGOT_OK) {
        status = spawn(&l->workers[l->nworkers], bound ? &cpus : NULL, work, r, e);
        l->nworkers += status == INGOT_OK;
    }
    /* One that reads is enough: a limit on processes is no reason to fail. */
    if (l->nworkers > 0) status = INGOT_OK;
    if (status == INGOT_OK) status = spawn(&l->conductor, NULL, conduct, l, e);
    l->has_conductor = status == INGOT_OK;
    if (status == INGOT_OK) return status;
    ig_run_fail(r, e);
    join_all(l);
    return status;
}

ingot_status ig_load_begin(struct ingot_load *l, bool again, ingot_error *e)
{
    struct ig_run *r = &l->run;
    bool refused = false;
    return_if_error(init_run(l, again, e));
    (void)fstat(r->pack->fd, &l->before);
    return_if_error(start_threads(l, e));
    ingot_status status = ig_loader_ready(l->loader, &refused, e);
    if (status == INGOT_OK && refused) {
        status = ig_fail(e, INGOT_ERR_BUSY, "staging memory is to be had in another size");
        l->retry = true;
    }
    if (status == INGOT_OK) status = check_pieces(l, e);
    if (status == INGOT_OK) status = make_memory(l, e);
    if (status == INGOT_OK && l->options.has_stream && !again)
        status = r->dev->ops->join(r->dev, l->options.stream, e);
    if (status == INGOT_OK)
        go(r);
    else
        ig_run_fail(r, e);
    return status;
}

void ig_load_end(struct ingot_load *l)
{
    struct ig_run *r = &l->run;
    if (!r->dev) return; /* it never ran */
    if (l->has_conductor) pthread_join(l->conductor, NULL);
    l->has_conductor = false;
    free_transient(r);
    if (r->direct >= 0) close(r->direct);
    ig_residency_close(&r->residency);
    ig_sidecar_close(r->sidecar);
    free(r->tree);
    pthread_cond_destroy(&r->moved);
    pthread_cond_destroy(&r->room);
    pthread_mutex_destroy(&r->lock);
    *r = (struct ig_run){.direct = -1};
}
