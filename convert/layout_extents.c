/* SPDX-License-Identifier: Apache-2.0 */
/* Where every byte goes; ingot-pack(5), "Extents". */
#include "convert/layout.h"
#include "store/format.h"

#include <stdlib.h>

struct cursor {
    uint64_t pos; /* next free byte of the weights, in the file */
    bool small;   /* the last extent takes more small tensors */
};

static uint64_t run_bytes(const struct ig_plan *p, const struct ig_layout *l,
                          const struct ig_run *r)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n; i++) sum += p->rows[l->sorted[r->first + i]].bytes;
    return sum;
}

/* The second of a tied pair takes the place of the first. */
static bool shares(const struct ig_plan *p, const struct ig_layout *l, uint32_t row)
{
    return p->rows[row].flags & IG_ROW_TIED && l->places[row].stage == 4;
}

static void place_run(struct ig_plan *p, const struct ig_layout *l, const struct ig_run *r,
                      uint64_t bytes, struct cursor *c)
{
    const bool small = bytes < IG_PAGE;
    if (!small || !c->small) {
        c->pos = ig_round_up(c->pos, IG_PAGE);
        p->extents[p->nextents++] =
            (struct ig_extent){.offset = c->pos, .flags = small ? IG_EXTENT_SMALL : 0};
    } else {
        c->pos = ig_round_up(c->pos, SMALL_ALIGN);
    }
    c->small = small;
    struct ig_extent *x = &p->extents[p->nextents - 1];
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t row = l->sorted[r->first + i];
        p->rows[row].extent = p->nextents - 1;
        p->rows[row].offset = c->pos - x->offset;
        p->from[row].pos = c->pos;
        p->from[row].pads = !small && i + 1 == r->n;
        p->from[row].copies = true;
        p->order[p->norder++] = row;
        c->pos += p->rows[row].bytes;
    }
    x->bytes = c->pos - x->offset;
}

/* Leaves of a row that are not leaves of the pack: all when it starts inside a page, the
 * last when it ends inside one that goes on with another row.  A row of one page at most
 * needs none: its digest is taken at once. */
static void reserve_leaves(struct ig_plan *p, uint32_t row)
{
    struct ig_from *f = &p->from[row];
    const uint64_t bytes = p->rows[row].bytes;
    f->aux = p->aux_leaves;
    if (bytes <= IG_PAGE) return;
    if (f->pos % IG_PAGE != 0)
        p->aux_leaves += (bytes + IG_PAGE - 1) / IG_PAGE;
    else if (!f->pads && bytes % IG_PAGE != 0)
        p->aux_leaves += 1;
}

/* A cast from files also names the tensors it started from by their content digest. */
static void reserve_before(struct ig_plan *p, uint32_t row)
{
    struct ig_from *f = &p->from[row];
    f->before = p->aux_leaves;
    if (p->src && f->dtype != p->rows[row].dtype)
        p->aux_leaves += (f->bytes + IG_PAGE - 1) / IG_PAGE;
}

ingot_status ig_layout_extents(struct ig_plan *p, const struct ig_layout *l, ingot_error *e)
{
    struct cursor c = {.pos = WEIGHTS_AT};
    bool shadows = false;
    p->order = ig_array(p->nrows, sizeof *p->order);
    p->extents = ig_array(l->nruns, sizeof *p->extents);
    if (!p->order || !p->extents) return ig_no_memory(e);
    uint32_t tied = IG_NONE, head = IG_NONE;
    for (uint32_t i = 0; i < l->nruns; i++) {
        const struct ig_run *r = &l->runs[i];
        const uint32_t row = l->sorted[r->first];
        const uint64_t bytes = run_bytes(p, l, r);
        if (bytes == 0) continue;
        if (bytes > PACK_SANE - c.pos)
            return ig_fail(e, INGOT_ERR_INPUT, "tensors of more than 2^62 bytes in all");
        if (shares(p, l, row)) {
            head = row;
            continue;
        }
        if (p->rows[row].flags & IG_ROW_TIED) tied = row;
        if (!shadows && p->rows[row].flags & IG_ROW_SHADOW) shadows = true, c.small = false;
        place_run(p, l, r, bytes, &c);
    }
    if (head != IG_NONE && tied != IG_NONE) {
        p->rows[head].extent = p->rows[tied].extent;
        p->rows[head].offset = p->rows[tied].offset;
        p->from[head].pos = p->from[tied].pos;
    }
    for (uint32_t i = 0; i < p->norder; i++) reserve_leaves(p, p->order[i]);
    for (uint32_t i = 0; i < p->norder; i++) reserve_before(p, p->order[i]);
    p->weights_len = ig_round_up(c.pos, IG_PAGE) - WEIGHTS_AT;
    return INGOT_OK;
}
