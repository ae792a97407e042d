/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/windows.h"

#include <stdlib.h>
#include <string.h>

#define CLOSE ((uint64_t)64 << 10) /* a gap this small is cheaper to read than to skip */

static uint64_t down(uint64_t x, uint64_t unit)
{
    return x / unit * unit;
}

static int by_place(const void *x, const void *y)
{
    const struct ig_span_target *a = x, *b = y;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

static ingot_status place_targets(struct ig_windows *w, const struct ig_targets *t, ingot_error *e)
{
    w->targets = ig_array(t->n, sizeof *w->targets);
    if (!w->targets) return ig_no_memory(e);
    for (size_t i = 0; i < t->n; i++) {
        const struct ig_target *k = &t->list[i];
        struct ig_row row;
        ig_pack_row(w->pack, k->row, &row);
        struct ig_span_target *s = &w->targets[w->ntargets++];
        s->t = k;
        s->from = ig_pack_pos(w->pack, &row) + k->start;
        s->to = s->from + (k->rows - 1) * k->stride + k->width;
        s->part = k->rows > 1             ? IG_PART_COLUMNS
                  : k->width == row.bytes ? IG_PART_ROW
                                          : IG_PART_PAGES;
        w->placed_bytes += k->rows * k->width;
    }
    qsort(w->targets, w->ntargets, sizeof *w->targets, by_place);
    uint64_t reach = 0;
    for (size_t i = 0; i < w->ntargets; i++) {
        struct ig_span_target *s = &w->targets[i];
        /* Tensors are folded one after the other: one inside another is proven by its pages. */
        if (s->part == IG_PART_ROW && s->from < reach) s->part = IG_PART_PAGES;
        reach = s->to > reach ? s->to : reach;
        s->reach = reach;
        if (w->level == IG_LOAD_OFF) continue;
        if (s->part == IG_PART_PAGES) s->edge = w->nedges, w->nedges += 2;
        w->bounces |= s->part == IG_PART_COLUMNS;
        w->needs_tree |= s->part != IG_PART_ROW;
    }
    return INGOT_OK;
}

/* Add [from, to), whole pages, to the reads: cut at windows, then into pieces. */
struct reads {
    struct ig_windows *w;
    size_t windows_cap, reads_cap;
};

static ingot_status grow(void **list, size_t *cap, size_t n, size_t size, ingot_error *e)
{
    if (n < *cap) return INGOT_OK;
    const size_t more = *cap ? 2 * *cap : 256;
    void *p = reallocarray(*list, more, size);
    if (!p) return ig_no_memory(e);
    *list = p;
    *cap = more;
    return INGOT_OK;
}

static ingot_status window_at(struct reads *r, uint64_t offset, ingot_error *e)
{
    struct ig_windows *w = r->w;
    if (w->n && w->list[w->n - 1].offset == offset) return INGOT_OK;
    return_if_error(grow((void **)&w->list, &r->windows_cap, w->n, sizeof *w->list, e));
    uint32_t target = w->n ? w->list[w->n - 1].target : 0;
    while (target < w->ntargets && w->targets[target].reach <= offset) target++;
    w->list[w->n++] =
        (struct ig_window){.offset = offset, .read = (uint32_t)w->nreads, .target = target};
    return INGOT_OK;
}

static ingot_status add_range(struct reads *r, uint64_t from, uint64_t to, bool read,
                              ingot_error *e)
{
    struct ig_windows *w = r->w;
    while (from < to) {
        const uint64_t start = down(from, w->size);
        return_if_error(window_at(r, start, e));
        struct ig_window *k = &w->list[w->n - 1];
        uint64_t end = down(from, IG_READ) + IG_READ;
        if (end > to) end = to;
        k->bytes = end - start;
        if (read) {
            return_if_error(
                grow((void **)&w->reads, &r->reads_cap, w->nreads, sizeof *w->reads, e));
            w->reads[w->nreads++] = (struct ig_read){from, (uint32_t)(end - from)};
            k->nreads++;
            w->read_bytes += end - from;
        }
        from = end;
    }
    return INGOT_OK;
}

/* Does hashing it again need bytes of the file? */
static bool reads_again(const struct ig_span_target *s)
{
    return s->part != IG_PART_ROW;
}

static ingot_status list_targets(struct reads *r, bool again, ingot_error *e)
{
    const struct ig_windows *w = r->w;
    for (size_t i = 0; i < w->ntargets;) {
        const bool read = !again || reads_again(&w->targets[i]);
        const uint64_t from = down(w->targets[i].from, IG_PAGE);
        uint64_t to = ig_round_up(w->targets[i].to, IG_PAGE);
        for (i++; i < w->ntargets && w->targets[i].from <= to + CLOSE; i++) {
            if ((!again || reads_again(&w->targets[i])) != read) break;
            const uint64_t end = ig_round_up(w->targets[i].to, IG_PAGE);
            if (end > to) to = end;
        }
        /* Two ranges may share a page when only one of them is read: the later one starts behind.
         */
        const uint64_t have =
            r->w->n ? r->w->list[r->w->n - 1].offset + r->w->list[r->w->n - 1].bytes : 0;
        return_if_error(add_range(r, again && from < have ? have : from, to, read, e));
    }
    return INGOT_OK;
}

ingot_status ig_windows_make(const struct ig_pack *p, const struct ig_targets *t, uint64_t size,
                             enum ig_check_level level, bool again, struct ig_windows *out,
                             ingot_error *e)
{
    *out = (struct ig_windows){.pack = p, .level = level, .size = size, .whole = t->whole};
    struct reads r = {.w = out};
    ingot_status status = INGOT_OK;
    if (t->whole) {
        status = add_range(&r, 0, p->tail, !again, e);
        out->placed_bytes = p->tail;
        for (uint32_t i = 0; i < p->nrows; i++) {
            struct ig_row row;
            ig_pack_row(p, i, &row);
            if (!(row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW))) out->tensors++;
        }
    } else {
        status = place_targets(out, t, e);
        if (status == INGOT_OK) status = list_targets(&r, again, e);
        for (size_t i = 0; i < t->n; i++)
            out->tensors += i == 0 || t->list[i].row != t->list[i - 1].row;
    }
    if (level != IG_LOAD_OFF) out->proven_bytes = out->placed_bytes;
    if (level == IG_LOAD_FAST && t->whole) out->proven_bytes -= p->weights; /* XXH3 covers those */
    if (status != INGOT_OK) ig_windows_free(out);
    return status;
}

void ig_windows_free(struct ig_windows *w)
{
    free(w->targets);
    free(w->list);
    free(w->reads);
    w->targets = NULL;
    w->list = NULL;
    w->reads = NULL;
    w->n = w->nreads = w->ntargets = 0;
}
