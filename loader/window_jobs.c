/* SPDX-License-Identifier: Apache-2.0 */
/* What can be hashed once a window has landed, and what each hash must be. */
#include "loader/windows.h"

struct lister {
    const struct ig_windows *w;
    uint64_t from, to;
    ig_job_fn *fn;
    void *ctx;
};

static ingot_status give(const struct lister *l, const struct ig_plan_job *j, ingot_error *e)
{
    return l->fn(l->ctx, j, e);
}

/* ---- all of the file: its own tree ---- */

/* Windows are multiples of a node, so nodes never straddle them; the last one may be cut by the
 * tail, and is taken leaf by leaf. */
static ingot_status whole_nodes(const struct lister *l, ingot_error *e)
{
    for (uint64_t at = l->from; at < l->to; at += IG_NODE) {
        const bool cut = l->to - at < IG_NODE;
        const uint64_t bytes = cut ? l->to - at : IG_NODE;
        const struct ig_plan_job j = {.kind = cut ? IG_JOB_LEAVES : IG_JOB_NODE,
                                      .data = {IG_SPACE_DST, at},
                                      .bytes = bytes,
                                      .truth = {cut ? IG_TRUTH_LEAVES : IG_TRUTH_NODE, IG_NONE,
                                                cut ? at / IG_PAGE : at / IG_NODE, at, bytes}};
        return_if_error(give(l, &j, e));
    }
    return INGOT_OK;
}

/* The weights start on a multiple of a span, as windows do; page 0 has its own checksum, and the
 * pages up to the weights are zero by the format and checked by nothing here. */
static ingot_status whole_spans(const struct lister *l, ingot_error *e)
{
    uint64_t at = l->from < l->w->pack->weights ? l->w->pack->weights : l->from;
    while (at < l->to) {
        uint64_t end = at / IG_NODE * IG_NODE + IG_NODE;
        if (end > l->to) end = l->to;
        const struct ig_plan_job j = {
            .kind = IG_JOB_XXH,
            .data = {IG_SPACE_DST, at},
            .bytes = end - at,
            .truth = {IG_TRUTH_SPANS, IG_NONE, (at - l->w->pack->weights) / IG_SPAN, at, end - at}};
        return_if_error(give(l, &j, e));
        at = end;
    }
    return INGOT_OK;
}

/* ---- a whole tensor: the tree of its digest ---- */

static ingot_status row_nodes(const struct lister *l, const struct ig_span_target *s,
                              ingot_error *e)
{
    const uint64_t bytes = s->to - s->from, nodes = (bytes + IG_NODE - 1) / IG_NODE;
    /* The first node that ends behind the window's start. */
    uint64_t n = l->from > s->from ? (l->from - s->from) / IG_NODE : 0;
    for (; n < nodes; n++) {
        const uint64_t at = n * IG_NODE, len = bytes - at < IG_NODE ? bytes - at : IG_NODE;
        if (s->from + at + len > l->to) break;
        if (s->from + at + len <= l->from) continue; /* done with an earlier one */
        const struct ig_plan_job j = {.kind = IG_JOB_NODE,
                                      .data = {IG_SPACE_DST, s->t->to + at},
                                      .bytes = len,
                                      .single = bytes <= IG_PAGE,
                                      .truth = {IG_TRUTH_ROW, s->t->row, n, s->from + at, len}};
        return_if_error(give(l, &j, e));
    }
    return INGOT_OK;
}

/* ---- parts of a tensor: pages of the file ---- */

static bool ends_here(const struct lister *l, uint64_t end)
{
    return end > l->from && end <= l->to;
}

static struct ig_truth leaves(const struct ig_span_target *s, uint64_t file, uint64_t bytes)
{
    return (struct ig_truth){IG_TRUTH_LEAVES, s->t->row, file / IG_PAGE, file, bytes};
}

/* A page that the piece shares with others: what lies before it, the piece, what lies behind. */
static ingot_status edge_page(const struct lister *l, const struct ig_span_target *s, uint64_t page,
                              ingot_error *e)
{
    const uint64_t end = page + IG_PAGE;
    if (!ends_here(l, end)) return INGOT_OK;
    const uint64_t a = s->from > page ? s->from : page, b = s->to < end ? s->to : end;
    const struct ig_plan_job j = {
        .kind = IG_JOB_GATHER,
        .data = {IG_SPACE_EDGE, s->edge * IG_PAGE},
        .bytes = a - page,
        .data2 = {IG_SPACE_DST, s->t->to + (a - s->from)},
        .bytes2 = b - a,
        .data3 = {IG_SPACE_EDGE, (s->edge + 1) * IG_PAGE + (b - page) % IG_PAGE},
        .bytes3 = end - b,
        .truth = leaves(s, page, IG_PAGE)};
    return give(l, &j, e);
}

/* Runs of whole pages, never across a block of the tree. */
static ingot_status page_runs(const struct lister *l, const struct ig_span_target *s,
                              struct ig_address data, uint64_t from, uint64_t to, ingot_error *e)
{
    uint64_t at = from < l->from ? l->from : from;
    const uint64_t end = to < l->to ? to : l->to;
    while (at < end) {
        uint64_t stop = at / IG_NODE * IG_NODE + IG_NODE;
        if (stop > end) stop = end;
        const struct ig_plan_job j = {.kind = IG_JOB_LEAVES,
                                      .data = {data.space, data.at + (at - from)},
                                      .bytes = stop - at,
                                      .truth = leaves(s, at, stop - at)};
        return_if_error(give(l, &j, e));
        at = stop;
    }
    return INGOT_OK;
}

static ingot_status piece_pages(const struct lister *l, const struct ig_span_target *s,
                                ingot_error *e)
{
    const uint64_t first = s->from / IG_PAGE * IG_PAGE, last = (s->to - 1) / IG_PAGE * IG_PAGE;
    const uint64_t from = ig_round_up(s->from, IG_PAGE), to = s->to / IG_PAGE * IG_PAGE;
    if (first < from) return_if_error(edge_page(l, s, first, e));
    if (from < to)
        return_if_error(page_runs(
            l, s, (struct ig_address){IG_SPACE_DST, s->t->to + (from - s->from)}, from, to, e));
    if (s->to % IG_PAGE && (last != first || first == from))
        return_if_error(edge_page(l, s, last, e));
    return INGOT_OK;
}

/* ---- columns: pages of the bounce, and that they arrived ---- */

static ingot_status compare_rows(const struct lister *l, const struct ig_span_target *s,
                                 ingot_error *e)
{
    const struct ig_target *t = s->t;
    const uint64_t a = s->from > l->from ? s->from : l->from, b = s->to < l->to ? s->to : l->to;
    for (uint64_t row = (a - s->from) / t->stride; row < t->rows; row++) {
        const uint64_t start = s->from + row * t->stride, end = start + t->width;
        if (start >= b) break;
        const uint64_t x = start > a ? start : a, y = end < b ? end : b;
        if (x >= y) continue;
        uint64_t rows = 1;
        if (x == start && y == end) {
            rows = (b - end) / t->stride + 1;
            if (rows > t->rows - row) rows = t->rows - row;
            /* A job is one group of threads: not too much for it. */
            const uint64_t most = IG_NODE / t->width + 1;
            if (rows > most) rows = most;
        }
        const struct ig_plan_job j = {.kind = IG_JOB_COMPARE,
                                      .data = {IG_SPACE_BOUNCE, x},
                                      .data2 = {IG_SPACE_DST, t->to + row * t->pitch + (x - start)},
                                      .bytes = y - x,
                                      .rows = rows,
                                      .stride = t->stride,
                                      .stride2 = t->pitch,
                                      .truth = {IG_TRUTH_EQUAL, t->row, row, x, t->stride}};
        return_if_error(give(l, &j, e));
        row += rows - 1;
    }
    return INGOT_OK;
}

static ingot_status column_pages(const struct lister *l, const struct ig_span_target *s,
                                 uint64_t *done, ingot_error *e)
{
    uint64_t a = s->from / IG_PAGE * IG_PAGE, b = ig_round_up(s->to, IG_PAGE);
    if (a < *done) a = *done;
    if (a < l->from) a = l->from;
    if (b > l->to) b = l->to;
    if (a < b) {
        return_if_error(page_runs(l, s, (struct ig_address){IG_SPACE_BOUNCE, a}, a, b, e));
        *done = b;
    }
    return compare_rows(l, s, e);
}

ingot_status ig_window_jobs(const struct ig_windows *w, size_t i, ig_job_fn *fn, void *ctx,
                            ingot_error *e)
{
    const struct ig_window *k = &w->list[i];
    const struct lister l = {w, k->offset, k->offset + k->bytes, fn, ctx};
    uint64_t done = 0;
    if (w->level == IG_LOAD_OFF) return INGOT_OK;
    if (w->whole) return w->level == IG_LOAD_FAST ? whole_spans(&l, e) : whole_nodes(&l, e);
    for (size_t t = k->target; t < w->ntargets && w->targets[t].from < l.to; t++) {
        const struct ig_span_target *s = &w->targets[t];
        if (s->to <= l.from && ig_round_up(s->to, IG_PAGE) <= l.from) continue;
        if (s->part == IG_PART_ROW)
            return_if_error(row_nodes(&l, s, e));
        else if (s->part == IG_PART_PAGES)
            return_if_error(piece_pages(&l, s, e));
        else
            return_if_error(column_pages(&l, s, &done, e));
    }
    return INGOT_OK;
}
