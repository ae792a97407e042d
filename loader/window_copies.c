/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of a window go where. */
#include "loader/windows.h"

struct lister {
    const struct ig_windows *w;
    uint64_t from, to; /* the window, in the file */
    bool again;
    ig_copy_fn *fn;
    void *ctx;
};

static ingot_status give(const struct lister *l, struct ig_address from, struct ig_address to,
                         uint64_t rows, uint64_t width, uint64_t stride, uint64_t pitch,
                         ingot_error *e)
{
    if (width == 0 || rows == 0) return INGOT_OK;
    const struct ig_copy c = {from, to, rows, width, stride, pitch};
    return l->fn(l->ctx, &c, e);
}

static ingot_status run(const struct lister *l, enum ig_space from, uint64_t file, enum ig_space to,
                        uint64_t at, uint64_t bytes, ingot_error *e)
{
    return give(l, (struct ig_address){from, file}, (struct ig_address){to, at}, 1, bytes, bytes,
                bytes, e);
}

/* The part of [a, b) that lies in the window. */
static bool clip(const struct lister *l, uint64_t *a, uint64_t *b)
{
    if (*a < l->from) *a = l->from;
    if (*b > l->to) *b = l->to;
    return *a < *b;
}

/* What the first and last page hold beside the piece: to the edge pages, at the same offset. */
static ingot_status copy_edges(const struct lister *l, const struct ig_span_target *s,
                               ingot_error *e)
{
    const uint64_t first = s->from / IG_PAGE * IG_PAGE, end = ig_round_up(s->to, IG_PAGE);
    uint64_t a = first, b = s->from;
    if (clip(l, &a, &b))
        return_if_error(
            run(l, IG_SPACE_SLOT, a, IG_SPACE_EDGE, s->edge * IG_PAGE + a % IG_PAGE, b - a, e));
    a = s->to, b = end;
    if (!clip(l, &a, &b)) return INGOT_OK;
    return run(l, IG_SPACE_SLOT, a, IG_SPACE_EDGE, (s->edge + 1) * IG_PAGE + a % IG_PAGE, b - a, e);
}

static ingot_status copy_range(const struct lister *l, const struct ig_span_target *s,
                               ingot_error *e)
{
    uint64_t a = s->from, b = s->to;
    if (!l->again && clip(l, &a, &b))
        return_if_error(run(l, IG_SPACE_SLOT, a, IG_SPACE_DST, s->t->to + (a - s->from), b - a, e));
    if (s->part != IG_PART_PAGES || l->w->level == IG_LOAD_OFF) return INGOT_OK;
    return copy_edges(l, s, e);
}

/* Rows of a column piece: the windows' ends may cut the first and the last of them. */
static ingot_status copy_columns(const struct lister *l, const struct ig_span_target *s,
                                 enum ig_space space, ingot_error *e)
{
    const struct ig_target *t = s->t;
    uint64_t a = s->from, b = s->to;
    if (!clip(l, &a, &b)) return INGOT_OK;
    uint64_t row = (a - s->from) / t->stride;
    for (; row < t->rows && s->from + row * t->stride < b; row++) {
        const uint64_t start = s->from + row * t->stride;
        uint64_t x = start, y = start + t->width;
        if (!clip(l, &x, &y)) continue;
        const uint64_t to = t->to + row * t->pitch + (x - start);
        uint64_t rows = 1;
        if (x == start && y == start + t->width) {
            rows = (b - start - t->width) / t->stride + 1;
            if (rows > t->rows - row) rows = t->rows - row;
        }
        return_if_error(give(l, (struct ig_address){space, x},
                             (struct ig_address){IG_SPACE_DST, to}, rows, y - x, t->stride,
                             t->pitch, e));
        row += rows - 1;
    }
    return INGOT_OK;
}

/* Pages that hold rows of the piece, once even where two pieces share them. */
static ingot_status fill_bounce(const struct lister *l, const struct ig_span_target *s,
                                uint64_t *done, ingot_error *e)
{
    uint64_t a = s->from / IG_PAGE * IG_PAGE, b = ig_round_up(s->to, IG_PAGE);
    if (a < *done) a = *done;
    if (!clip(l, &a, &b)) return INGOT_OK;
    *done = b;
    return run(l, IG_SPACE_SLOT, a, IG_SPACE_BOUNCE, a, b - a, e);
}

ingot_status ig_window_copies(const struct ig_windows *w, size_t i, bool again, ig_copy_fn *fn,
                              void *ctx, ingot_error *e)
{
    const struct ig_window *k = &w->list[i];
    const struct lister l = {w, k->offset, k->offset + k->bytes, again, fn, ctx};
    if (w->whole)
        return again ? INGOT_OK : run(&l, IG_SPACE_SLOT, l.from, IG_SPACE_DST, l.from, k->bytes, e);
    const bool straight = w->level == IG_LOAD_OFF;
    uint64_t done = 0;
    for (size_t t = k->target; t < w->ntargets && w->targets[t].from < l.to; t++) {
        const struct ig_span_target *s = &w->targets[t];
        if (s->part != IG_PART_COLUMNS)
            return_if_error(copy_range(&l, s, e));
        else if (straight)
            return_if_error(copy_columns(&l, s, IG_SPACE_SLOT, e));
        else
            return_if_error(fill_bounce(&l, s, &done, e));
    }
    for (size_t t = k->target; !straight && !again && t < w->ntargets; t++) {
        const struct ig_span_target *s = &w->targets[t];
        if (s->from >= l.to) break;
        if (s->part == IG_PART_COLUMNS) return_if_error(copy_columns(&l, s, IG_SPACE_BOUNCE, e));
    }
    return INGOT_OK;
}
