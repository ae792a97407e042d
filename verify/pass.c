/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of the whole file, a window at a time on all cores.  Hashing needs no order;
 * what has one (the tree of the file and of each row) is folded behind it, from leaves that
 * the window leaves behind.
 */
#include "base/pipe.h"
#include "verify/window.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS      ((size_t)60 << 20)
#define WINDOW_LEAST ((size_t)1 << 20)

struct open_row { /* a row of more than a page whose end is not reached */
    uint32_t index;
    bool used;
    struct ig_tree tree;
};
struct pass {
    struct check *c;
    uint8_t *buffers;
    size_t window;           /* room for one: WINDOW, less with many threads, or a smaller file */
    uint64_t ahead;          /* how far the disk is asked to read before us */
    struct window *windows;  /* by slot */
    struct ig_tree tree;     /* of the file */
    struct open_row *open;   /* OVERLAPS of them */
    struct ig_lanes **lanes; /* by worker */
};

static ingot_status next(void *ctx, struct ig_item *item, bool *more, ingot_error *e)
{
    const struct pass *p = ctx;
    const struct check *c = p->c;
    const struct ig_progress *g = &c->v->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    item->arg[0] = item->index * p->window;
    *more = item->arg[0] < c->pack.size;
    return INGOT_OK;
}

static ingot_status stage_hash(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    struct check *c = p->c;
    struct window *w = &p->windows[item->slot];
    w->lanes = p->lanes[worker];
    w->start = item->arg[0];
    w->n = c->pack.size - w->start < p->window ? (size_t)(c->pack.size - w->start) : p->window;
    w->back = w->start ? IG_PAGE : 0;
    if (c->seen && c->seen[w->start / c->window]) return ig_window_recall(c, w, e);
    w->data = p->buffers + item->slot * (p->window + IG_PAGE) + IG_PAGE;
    /* Ask for what comes when every slot is through, so that a cold disk reads while we hash. */
    (void)posix_fadvise(c->pack.fd, (off_t)(w->start + p->ahead), (off_t)p->window,
                        POSIX_FADV_WILLNEED);
    return_if_error(ig_pread(c->pack.fd, c->pack.path, w->data - w->back, w->n + w->back,
                             w->start - w->back, e));
    return ig_window_hash(c, w, e);
}

static struct open_row *open_row(struct pass *p, uint32_t index)
{
    struct open_row *spare = NULL;
    for (unsigned i = 0; i < OVERLAPS; i++) {
        if (p->open[i].used && p->open[i].index == index) return &p->open[i];
        if (!p->open[i].used && !spare) spare = &p->open[i];
    }
    if (!spare) return NULL; /* a finding of rows.c already */
    spare->used = true;
    spare->index = index;
    ig_tree_init(&spare->tree);
    return spare;
}

static ingot_status fold_row(struct pass *p, const struct window *w, const struct row_leaves *l,
                             ingot_error *e)
{
    const struct span_row *s = &p->c->rows[l->index];
    struct open_row *o = open_row(p, l->index);
    if (!o) return INGOT_OK;
    return_if_error(ig_tree_add(&o->tree, w->leaves + l->shared * IG_HASH, l->nshared, e));
    return_if_error(ig_tree_add(&o->tree, w->own + l->own * IG_HASH, l->nown, e));
    if (s->end > w->start + w->n) return INGOT_OK;
    uint8_t digest[IG_HASH];
    o->used = false;
    return_if_error(ig_tree_digest(&o->tree, s->end - s->pos, digest, e));
    ig_window_judge(p->c, s, digest);
    return INGOT_OK;
}

static ingot_status stage_fold(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct pass *p = ctx;
    struct check *c = p->c;
    const struct window *w = &p->windows[item->slot];
    (void)worker;
    if (c->v->level == IG_LEVEL_FULL) {
        return_if_error(ig_tree_add(&p->tree, w->leaves, (w->n + IG_PAGE - 1) / IG_PAGE, e));
        for (size_t i = 0; i < w->nrows; i++) return_if_error(fold_row(p, w, &w->rows[i], e));
        if (w->start + w->n == c->pack.size) {
            return_if_error(ig_tree_digest(&p->tree, c->pack.size, c->digest, e));
            c->has_digest = true;
        }
    }
    c->done += w->n;
    if (c->v->progress.update) c->v->progress.update(c->v->progress.ctx, c->done, c->pack.size);
    return INGOT_OK;
}

/* Windows ahead of the fold wait in their slots, BUFFERS of them altogether. */
static unsigned size_windows(struct pass *p, unsigned threads)
{
    unsigned slots = threads + 2;
    if (p->c->window) {
        p->window = p->c->window;
        return slots;
    }
    if (slots > BUFFERS / WINDOW_LEAST) slots = BUFFERS / WINDOW_LEAST;
    p->window = BUFFERS / slots < WINDOW ? BUFFERS / slots / IG_SPAN * IG_SPAN : WINDOW;
    if (p->c->pack.size > p->window) return slots;
    p->window = (size_t)p->c->pack.size;
    return 1;
}

static ingot_status set_up(struct pass *p, unsigned threads, unsigned slots, ingot_error *e)
{
    p->buffers = ig_pages(slots * (p->window + IG_PAGE));
    p->windows = ig_array(slots, sizeof *p->windows);
    p->open = ig_array(OVERLAPS, sizeof *p->open);
    p->lanes = ig_array(threads, sizeof(void *));
    if (!p->buffers || !p->windows || !p->open || !p->lanes) return ig_no_memory(e);
    for (unsigned i = 0; i < threads && p->c->pack.size >= LANES_LEAST; i++)
        p->lanes[i] = ig_lanes_new(p->lanes[0]);
    ig_tree_init(&p->tree);
    return INGOT_OK;
}

ingot_status ig_check_pass(struct check *c, ingot_error *e)
{
    static const struct ig_stage stages[] = {{stage_hash, false}, {stage_fold, true}};
    struct pass p = {.c = c};
    unsigned threads = c->v->threads ? c->v->threads : ig_cpus();
    const unsigned slots = size_windows(&p, threads);
    if (threads > slots) threads = slots;
    p.ahead = 2ull * slots * p.window;
    ingot_status status = set_up(&p, threads, slots, e);
    if (status == INGOT_OK) {
        const struct ig_pipe pipe = {.ctx = &p,
                                     .threads = threads,
                                     .lanes = 1,
                                     .slots = slots,
                                     .next = next,
                                     .stages = stages,
                                     .nstages = 2};
        status = ig_pipe_run(&pipe, e);
    }
    for (unsigned i = 0; p.windows && i < slots; i++) ig_window_free(&p.windows[i]);
    for (unsigned i = 0; p.lanes && i < threads; i++) ig_lanes_free(p.lanes[i]);
    free(p.buffers);
    free(p.windows);
    free(p.open);
    free(p.lanes);
    if (status == INGOT_OK && c->v->level == IG_LEVEL_FULL) c->bytes_hashed += c->pack.size;
    return status;
}
