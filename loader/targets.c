/* SPDX-License-Identifier: Apache-2.0 */
/* targets: the list of what is wanted of a pack, and its places in one arena. */
#include "loader/plan.h"

#include <stdlib.h>

#define ALIGN 256u /* what a pack promises of a tensor's start, and servers expect of memory */
#define FAST  16u  /* the unit that kernels read; a group's member starts on it in the file */

void ig_targets_free(struct ig_targets *t)
{
    free(t->list);
    *t = (struct ig_targets){0};
}

ingot_status ig_targets_add(struct ig_targets *t, const struct ig_target *one, ingot_error *e)
{
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 64;
        struct ig_target *list = reallocarray(t->list, cap, sizeof *list);
        if (!list) return ig_no_memory(e);
        t->list = list;
        t->cap = cap;
    }
    t->list[t->n++] = *one;
    return INGOT_OK;
}

ingot_status ig_targets_add_row(struct ig_targets *t, const struct ig_pack *p, uint32_t row,
                                ingot_error *e)
{
    struct ig_row r;
    ig_pack_row(p, row, &r);
    if (r.bytes == 0) return INGOT_OK;
    struct ig_target one = {.row = row, .rows = 1, .width = r.bytes, .nrows = 1, .ncols = 1};
    if (r.rank) one.nrows = r.shape[0];
    for (uint32_t i = 1; i < r.rank; i++) one.ncols *= r.shape[i];
    return ig_targets_add(t, &one, e);
}

/* ---- places ---- */

static uint64_t position(const struct ig_pack *p, const struct ig_target *t)
{
    struct ig_row r;
    ig_pack_row(p, t->row, &r);
    return ig_pack_pos(p, &r) + t->start;
}

static int by_position(const void *x, const void *y, void *pack)
{
    const struct ig_target *a = x, *b = y;
    const uint64_t pa = position(pack, a), pb = position(pack, b);
    if (pa != pb) return pa < pb ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Pages of the file that lie 16-aligned in memory are hashed at full speed, so a contiguous piece
 * keeps its place modulo 256.  A cut that starts between the units is no use for that, and columns
 * never: those are aligned for whoever computes with them. */
static uint64_t next_place(uint64_t at, const struct ig_target *t, uint64_t pos, bool whole)
{
    const bool keeps = whole || (t->rows == 1 && pos % FAST == 0);
    return at + ((keeps ? pos % ALIGN : 0) - at) % ALIGN;
}

void ig_targets_place(struct ig_targets *t, const struct ig_pack *p, uint64_t *bytes)
{
    uint64_t at = 0;
    if (t->whole) {
        *bytes = p->tail; /* padding too: it is hashed where it lies */
        return;
    }
    if (t->n) qsort_r(t->list, t->n, sizeof *t->list, by_position, (void *)p);
    for (size_t i = 0; i < t->n; i++) {
        struct ig_target *one = &t->list[i];
        struct ig_row r;
        ig_pack_row(p, one->row, &r);
        at = next_place(at, one, position(p, one), one->rows == 1 && one->width == r.bytes);
        one->to = at;
        one->pitch = one->width;
        at += one->rows * one->width;
    }
    *bytes = at;
}
