/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a model and the pack, in one reading.  A file's SHA-256 wants the bytes in the order
 * of the file; hashing the pack wants windows of it, in any order, and keeps of each only its
 * leaves.  So the files lead: each is a lane whose pieces pass in order through its SHA-256, and a
 * piece that is a whole window inside one tensor is hashed for the pack in the same breath.  What
 * is left, the windows in which tensors meet, is read by ig_check_pass.
 */
#include "base/pipe.h"
#include "verify/files.h"
#include "verify/window.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT       ((size_t)512 << 10) /* a window; what two tensors share of one is read twice */
#define LANES_MOST 16u
#define BUFFERS    ((size_t)60 << 20)
#define AHEAD      ((uint64_t)8 << 20)

struct piece {
    size_t file;
    uint64_t pos;
    size_t n; /* 0: there is none */
    bool claimed, last;
};
struct pair { /* of a slot: two files go through one SHA-256 stage side by side */
    struct piece piece[2];
};
struct reader { /* what it describes next */
    bool open;
    size_t file, run;
    uint64_t at; /* in the run */
    struct ig_rebuilt r;
};
struct lane {
    struct reader readers[2];
};
struct pass {
    struct check *c;
    struct ig_files *files;
    size_t *order;       /* files, the largest first */
    size_t norder, next; /* next: guarded by lock */
    struct ig_sha *sha;  /* by file */
    struct lane lanes[LANES_MOST];
    unsigned wide;          /* files a lane: 2 where there are enough for all processors */
    struct pair *pairs;     /* by slot */
    struct window *windows; /* two a slot */
    uint8_t *buffers;
    struct ig_lanes **hashers; /* by worker */
    pthread_mutex_t lock;
    uint64_t done, total;
};

/* ---- describing pieces ---- */

static size_t take_file(struct pass *p)
{
    pthread_mutex_lock(&p->lock);
    const size_t i = p->next < p->norder ? p->order[p->next++] : SIZE_MAX;
    pthread_mutex_unlock(&p->lock);
    return i;
}

static void finish_file(struct pass *p, size_t i)
{
    ig_sha_final(&p->sha[i], p->files->list[i].sha256);
    p->files->list[i].hashed = true;
}

/* A pack that contradicts itself about a file has a problem with that file. */
static ingot_status open_file(struct pass *p, struct reader *l, size_t i, ingot_error *e)
{
    struct ig_file *f = &p->files->list[i];
    const ingot_status status = ig_rebuild_runs(&p->c->pack, f->source, &l->r, e);
    if (status == INGOT_ERR_PACK || status == INGOT_ERR_INPUT || status == INGOT_ERR_CHECK) {
        f->problem = strdup(e->message);
        return f->problem ? INGOT_OK : ig_no_memory(e);
    }
    return_if_error(status);
    f->bytes = l->r.header_bytes;
    for (size_t k = 0; k < l->r.nruns; k++) f->bytes += l->r.runs[k].bytes;
    ig_sha_init(&p->sha[i]);
    ig_sha_update(&p->sha[i], l->r.header, l->r.header_bytes);
    l->file = i, l->run = 0, l->at = 0;
    l->open = true;
    return INGOT_OK;
}

/* Past the runs that have ended; false at the end of the file. */
static bool has_more(struct reader *l)
{
    while (l->run < l->r.nruns && l->at == l->r.runs[l->run].bytes) l->run++, l->at = 0;
    return l->run < l->r.nruns;
}

/* Each window is hashed for the pack once, though tied tensors may lead to it twice. */
static bool claim(struct pass *p, uint64_t pos, size_t n)
{
    struct check *c = p->c;
    if (!c->seen || pos % UNIT || n != UNIT || !ig_window_inside(c, pos, n)) return false;
    return __atomic_exchange_n(&c->seen[pos / UNIT], 1, __ATOMIC_RELAXED) == 0;
}

static void cut_piece(struct pass *p, struct reader *l, struct piece *out)
{
    const struct ig_stretch *run = &l->r.runs[l->run];
    const uint64_t pos = run->pos + l->at, left = run->bytes - l->at;
    const size_t room = UNIT - (size_t)(pos % UNIT);
    const size_t n = left < room ? (size_t)left : room;
    *out = (struct piece){.file = l->file, .pos = pos, .n = n, .claimed = claim(p, pos, n)};
    if (left > AHEAD)
        (void)posix_fadvise(p->c->pack.fd, (off_t)(pos + AHEAD), (off_t)n, POSIX_FADV_WILLNEED);
    l->at += n;
    out->last = !has_more(l);
}

/* The next piece of a reader; none (n 0) when there are no more files. */
static ingot_status describe(struct pass *p, struct reader *l, struct piece *out, ingot_error *e)
{
    *out = (struct piece){0};
    while (!l->open) {
        const size_t i = take_file(p);
        if (i == SIZE_MAX) return INGOT_OK;
        return_if_error(open_file(p, l, i, e));
        if (!l->open || has_more(l)) continue;
        finish_file(p, i); /* a header and nothing else */
        ig_rebuilt_free(&l->r);
        l->open = false;
    }
    cut_piece(p, l, out);
    if (!out->last) return INGOT_OK;
    ig_rebuilt_free(&l->r);
    l->open = false;
    return INGOT_OK;
}

static ingot_status next(void *ctx, struct ig_item *item, bool *more, ingot_error *e)
{
    struct pass *p = ctx;
    struct pair *k = &p->pairs[item->slot];
    const struct ig_progress *g = &p->c->v->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    *k = (struct pair){0};
    for (unsigned i = 0; i < p->wide; i++)
        return_if_error(describe(p, &p->lanes[item->lane].readers[i], &k->piece[i], e));
    *more = k->piece[0].n || k->piece[1].n;
    return INGOT_OK;
}

/* ---- its way through the stages ---- */

static uint8_t *buffer_of(const struct pass *p, const struct ig_item *item, unsigned i)
{
    return p->buffers + (item->slot * p->wide + i) * UNIT;
}

static ingot_status stage_read(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    (void)worker;
    for (unsigned i = 0; i < p->wide; i++) {
        const struct piece *k = &p->pairs[item->slot].piece[i];
        if (k->n)
            return_if_error(
                ig_pread(p->c->pack.fd, p->c->pack.path, buffer_of(p, item, i), k->n, k->pos, e));
    }
    return INGOT_OK;
}

static ingot_status stage_file(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    const struct piece *k = p->pairs[item->slot].piece;
    const struct ig_progress *g = &p->c->v->progress;
    (void)worker, (void)e;
    if (k[0].n && k[1].n)
        ig_sha_update_pair(&p->sha[k[0].file], buffer_of(p, item, 0), k[0].n, &p->sha[k[1].file],
                           buffer_of(p, item, 1), k[1].n);
    for (unsigned i = 0; i < 2; i++) {
        if (k[i].n && !k[1 - i].n) ig_sha_update(&p->sha[k[i].file], buffer_of(p, item, i), k[i].n);
        if (k[i].last) finish_file(p, k[i].file);
    }
    pthread_mutex_lock(&p->lock);
    p->done += k[0].n + k[1].n;
    if (g->update) g->update(g->ctx, p->done, p->total);
    pthread_mutex_unlock(&p->lock);
    return INGOT_OK;
}

static ingot_status hash_for_pack(struct pass *p, struct window *w, const struct piece *k,
                                  uint8_t *data, unsigned worker, ingot_error *e)
{
    struct check *c = p->c;
    w->start = k->pos;
    w->n = k->n;
    w->back = 0;
    w->data = data;
    w->lanes = p->hashers[worker];
    return_if_error(ig_window_hash(c, w, e));
    return ig_pwrite(c->leaves_fd, "leaves", w->leaves, w->n / IG_PAGE * IG_HASH,
                     w->start / IG_PAGE * IG_HASH, e);
}

static ingot_status stage_pack(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    for (unsigned i = 0; i < p->wide; i++) {
        const struct piece *k = &p->pairs[item->slot].piece[i];
        if (k->claimed)
            return_if_error(hash_for_pack(p, &p->windows[2 * item->slot + i], k,
                                          buffer_of(p, item, i), worker, e));
    }
    return INGOT_OK;
}

/* ---- set-up ---- */

struct turn {
    uint64_t bytes;
    size_t file;
};

static int largest_first(const void *x, const void *y)
{
    const struct turn *a = x, *b = y;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* The bytes of a file that is not made yet are those of its tensors, nearly. */
static ingot_status sort_files(struct pass *p, ingot_error *e)
{
    struct turn *turns = ig_array(p->files->n, sizeof *turns);
    if (!turns || !p->order) {
        free(turns);
        return ig_no_memory(e);
    }
    for (size_t i = 0; i < p->files->n; i++) {
        const struct ig_file *f = &p->files->list[i];
        if (f->source == IG_NONE) continue;
        turns[p->norder++] = (struct turn){p->c->pack.sources[f->source].bytes, i};
        p->total += p->c->pack.sources[f->source].bytes;
    }
    qsort(turns, p->norder, sizeof *turns, largest_first);
    for (size_t i = 0; i < p->norder; i++) p->order[i] = turns[i].file;
    free(turns);
    return INGOT_OK;
}

/* Leaves are a 128th of the pack: a file without a name, which memory holds as long as it can.
 * Where there is no room for one the pack is read again, that is all. */
static void open_leaves(struct check *c)
{
    const char *dir = getenv("TMPDIR");
    c->leaves_fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const uint64_t bytes = (c->pack.size + IG_PAGE - 1) / IG_PAGE * IG_HASH;
    if (c->leaves_fd >= 0 && posix_fallocate(c->leaves_fd, 0, (off_t)bytes) == 0)
        c->seen = ig_array((size_t)(c->pack.size / UNIT + 1), 1);
    if (c->seen) c->window = UNIT;
}

static ingot_status run(struct pass *p, unsigned threads, ingot_error *e)
{
    static const struct ig_stage stages[] = {
        {stage_read, false}, {stage_file, true}, {stage_pack, false}};
    p->wide = p->norder >= 2 && p->norder >= threads ? 2 : 1;
    const size_t groups = (p->norder + p->wide - 1) / p->wide;
    const unsigned lanes = groups < LANES_MOST ? (unsigned)groups : LANES_MOST;
    const unsigned room = (unsigned)(BUFFERS / (p->wide * UNIT)); /* at least the lanes */
    const unsigned slots = lanes + 2 * threads < room ? lanes + 2 * threads : room;
    p->pairs = ig_array(slots, sizeof *p->pairs);
    p->windows = ig_array(2ul * slots, sizeof *p->windows);
    p->hashers = ig_array(threads, sizeof(void *));
    p->buffers = ig_pages((size_t)slots * p->wide * UNIT);
    if (!p->pairs || !p->windows || !p->hashers || !p->buffers) return ig_no_memory(e);
    for (unsigned i = 0; i < threads && p->c->pack.size >= LANES_LEAST; i++)
        p->hashers[i] = ig_lanes_new(p->hashers[0]);
    const struct ig_pipe pipe = {.ctx = p,
                                 .threads = threads,
                                 .lanes = lanes,
                                 .slots = slots,
                                 .next = next,
                                 .stages = stages,
                                 .nstages = 3};
    const ingot_status status = ig_pipe_run(&pipe, e);
    for (unsigned i = 0; i < threads; i++) ig_lanes_free(p->hashers[i]);
    for (unsigned i = 0; i < 2 * slots; i++) ig_window_free(&p->windows[i]);
    return status;
}

ingot_status ig_check_files(struct check *c, struct ig_files *files, ingot_error *e)
{
    const unsigned threads = c->v->threads ? c->v->threads : ig_cpus();
    return_if_error(ig_files_list(&c->pack, files, e));
    struct pass p = {.c = c,
                     .files = files,
                     .order = ig_array(files->n, sizeof *p.order),
                     .sha = ig_array(files->n, sizeof *p.sha)};
    pthread_mutex_init(&p.lock, NULL);
    ingot_status status = p.sha ? sort_files(&p, e) : ig_no_memory(e);
    if (status == INGOT_OK) open_leaves(c);
    if (status == INGOT_OK && p.norder) status = run(&p, threads, e);
    if (status == INGOT_OK) status = ig_files_hash(&c->pack, files, threads, &c->v->progress, e);
    files->read += p.done;
    for (unsigned i = 0; i < 2 * LANES_MOST; i++) ig_rebuilt_free(&p.lanes[i / 2].readers[i % 2].r);
    pthread_mutex_destroy(&p.lock);
    free(p.order), free(p.sha), free(p.pairs), free(p.windows), free(p.hashers), free(p.buffers);
    return status;
}

void ig_check_files_end(struct check *c)
{
    if (c->leaves_fd >= 0) close(c->leaves_fd);
    c->leaves_fd = -1;
    free(c->seen);
    c->seen = NULL;
}
