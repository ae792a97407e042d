/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a load want of the pack, as targets. */
#include "loader/load.h"

#include <stdlib.h>
#include <string.h>

static ingot_status bad_piece(const struct ingot_piece *k, const char *what, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_USAGE, "piece of tensor \"%s\": %s",
            ig_esc(k->tensor, strlen(k->tensor)).s, what);
    return ig_at(e, NULL, k->tensor, strlen(k->tensor));
}

/* Rows and columns of a shape: the first dimension, and all others flattened. */
static void extent_of(const struct ig_row *row, uint64_t *rows, uint64_t *columns)
{
    *rows = row->rank ? row->shape[0] : 1;
    *columns = 1;
    for (uint32_t i = 1; i < row->rank; i++) *columns *= row->shape[i];
}

static bool range_of(uint64_t first, uint64_t *n, uint64_t all)
{
    if (*n == 0 && first <= all) *n = all - first;
    return first <= all && *n <= all - first && *n > 0;
}

static ingot_status piece_target(const struct ingot_load *l, const struct ingot_piece *k,
                                 struct ig_target *t, ingot_error *e)
{
    const struct ig_pack *p = &l->pack->pack;
    struct ig_row row;
    uint64_t nrows, ncolumns, rows = k->rows, columns = k->columns;
    const uint32_t i = ig_pack_find(p, k->tensor, strlen(k->tensor));
    if (i == IG_NONE) {
        ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no tensor \"%s\"", p->path,
                ig_esc(k->tensor, strlen(k->tensor)).s);
        return ig_at(e, p->path, k->tensor, strlen(k->tensor));
    }
    ig_pack_row(p, i, &row);
    extent_of(&row, &nrows, &ncolumns);
    if (!range_of(k->row, &rows, nrows)) return bad_piece(k, "rows beyond its shape", e);
    if (!range_of(k->column, &columns, ncolumns))
        return bad_piece(k, "columns beyond its shape", e);
    const uint64_t bits = ig_dtypes[row.dtype].bits;
    if (k->column * bits % 8 || columns * bits % 8 || ncolumns * bits % 8)
        return bad_piece(k, "its elements are no whole bytes there", e);
    const uint64_t stride = ncolumns * bits / 8, width = columns * bits / 8;
    *t = (struct ig_target){.row = i,
                            .start = k->row * stride + k->column * bits / 8,
                            .rows = rows,
                            .width = width,
                            .stride = stride,
                            .to = (uint64_t)(uintptr_t)k->to,
                            .pitch = k->pitch ? k->pitch : width,
                            .first_row = k->row,
                            .nrows = rows,
                            .first_col = k->column,
                            .ncols = columns};
    if (t->pitch < width) return bad_piece(k, "its pitch is less than a row of it", e);
    if (width == stride && t->pitch == width) { /* no gap anywhere: one run */
        t->width *= rows;
        t->rows = 1;
    }
    if (t->rows > 1 && t->pitch > (UINT64_MAX - t->to - width) / t->rows)
        return bad_piece(k, "its pitch leads past the end of memory", e);
    return INGOT_OK;
}

static uint64_t end_of(const struct ig_target *t)
{
    return t->to + (t->rows - 1) * t->pitch + t->width;
}

/* Does run [x, x + n) meet a run of b? */
static bool meets(uint64_t x, uint64_t n, const struct ig_target *b)
{
    if (x + n <= b->to || x >= end_of(b)) return false;
    if (b->rows == 1) return true;
    const uint64_t first = x < b->to ? 0 : (x - b->to) / b->pitch;
    for (uint64_t r = first; r < b->rows && b->to + r * b->pitch < x + n; r++)
        if (b->to + r * b->pitch + b->width > x) return true;
    return false;
}

static bool overlap(const struct ig_target *a, const struct ig_target *b)
{
    if (end_of(a) <= b->to || end_of(b) <= a->to) return false;
    if (a->rows > b->rows) {
        const struct ig_target *c = a;
        a = b;
        b = c;
    }
    for (uint64_t r = 0; r < a->rows; r++)
        if (meets(a->to + r * a->pitch, a->width, b)) return true;
    return false;
}

static int by_address(const void *x, const void *y)
{
    const struct ig_target *a = x, *b = y;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Two pieces on the same memory: whichever came last would be proven, the other not. */
static ingot_status refuse_overlaps(const struct ingot_load *l, struct ig_targets *t,
                                    ingot_error *e)
{
    if (t->n) qsort(t->list, t->n, sizeof *t->list, by_address);
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = i + 1; j < t->n && t->list[j].to < end_of(&t->list[i]); j++) {
            struct ig_row a, b;
            if (!overlap(&t->list[i], &t->list[j])) continue;
            ig_pack_row(&l->pack->pack, t->list[i].row, &a);
            ig_pack_row(&l->pack->pack, t->list[j].row, &b);
            return ig_fail(e, INGOT_ERR_USAGE,
                           "pieces of tensors \"%s\" and \"%s\" overlap in memory at %#llx",
                           ig_esc(a.name, a.name_len).s, ig_esc(b.name, b.name_len).s,
                           (unsigned long long)t->list[j].to);
        }
    return INGOT_OK;
}

static ingot_status from_pieces(const struct ingot_load *l, const struct ingot_load_options *o,
                                struct ig_targets *out, ingot_error *e)
{
    for (size_t i = 0; i < o->npieces; i++) {
        const struct ingot_piece *k = &o->pieces[i];
        struct ig_target t;
        if (!k->tensor) return ig_fail(e, INGOT_ERR_USAGE, "piece %zu names no tensor", i);
        return_if_error(piece_target(l, k, &t, e));
        if (!k->to) return bad_piece(k, "it has no memory", e);
        return_if_error(ig_targets_add(out, &t, e));
    }
    return refuse_overlaps(l, out, e);
}

ingot_status ig_load_targets(const struct ingot_load *l, const struct ingot_load_options *o,
                             struct ig_targets *out, ingot_error *e)
{
    const struct ig_pack *p = &l->pack->pack;
    *out = (struct ig_targets){0};
    if ((o->ntensors != 0) + (o->ranks != 0) + (o->npieces != 0) > 1)
        return ig_fail(e, INGOT_ERR_USAGE, "tensors, ranks and pieces exclude one another");
    if (o->ntensors) return ig_select(p, o->tensors, o->ntensors, out, e);
    if (o->ranks) return ig_rank(p, o->rank, o->ranks, out, e);
    if (o->npieces) return from_pieces(l, o, out, e);
    out->whole = true;
    return INGOT_OK;
}
