/* SPDX-License-Identifier: Apache-2.0 */
/* Groups become rows of the tensor table, and the table gets its order. */
#include "convert/layout.h"

#include <stdlib.h>
#include <string.h>

static ingot_status view_name(struct ig_plan *p, const struct ig_layout *l, uint32_t member,
                              struct ig_row *view, ingot_error *e)
{
    const struct ig_place *x = &l->places[member];
    const size_t module = strlen(x->view);
    const size_t len = x->prefix_len + module + (x->suffix_len ? 1 + x->suffix_len : 0);
    char *name = ig_plan_alloc(p, len + 1);
    if (!name) return ig_no_memory(e);
    memcpy(name, p->rows[member].name, x->prefix_len);
    memcpy(name + x->prefix_len, x->view, module);
    if (x->suffix_len) {
        name[x->prefix_len + module] = '.';
        memcpy(name + x->prefix_len + module + 1, x->suffix, x->suffix_len);
    }
    name[len] = '\0';
    view->name = name;
    view->name_len = (uint32_t)len;
    return INGOT_OK;
}

static ingot_status view_shape(struct ig_plan *p, const struct ig_layout *l, const struct ig_run *r,
                               struct ig_row *view, ingot_error *e)
{
    const struct ig_row *first = &p->rows[l->sorted[r->first]];
    const struct ig_place *x = &l->places[l->sorted[r->first]];
    uint64_t *shape = ig_plan_alloc(p, (first->rank + 1) * sizeof *shape);
    if (!shape) return ig_no_memory(e);
    uint64_t *rows = shape;
    view->rank = first->rank;
    if (x->experts) {
        *rows++ = r->n / x->members;
        view->rank++;
    }
    memcpy(rows, first->shape, first->rank * sizeof *rows);
    if (x->experts) {
        rows[0] *= x->members;
    } else {
        for (uint32_t i = 1; i < r->n; i++) rows[0] += p->rows[l->sorted[r->first + i]].shape[0];
    }
    view->shape = shape;
    return INGOT_OK;
}

ingot_status ig_layout_views(struct ig_plan *p, struct ig_layout *l, ingot_error *e)
{
    const size_t n = (size_t)p->nrows + l->nviews;
    if (n >= IG_NONE) return ig_fail(e, INGOT_ERR_INPUT, "2^32 - 1 tensors and views or more");
    struct ig_row *rows = realloc(p->rows, (n ? n : 1) * sizeof *rows);
    if (rows) p->rows = rows;
    struct ig_from *from = realloc(p->from, (n ? n : 1) * sizeof *from);
    if (from) p->from = from;
    if (!rows || !from) return ig_no_memory(e);
    for (uint32_t i = 0; i < l->nruns; i++) {
        struct ig_run *r = &l->runs[i];
        if (r->n < 2) continue;
        const uint32_t member = l->sorted[r->first];
        struct ig_row view = {.dtype = p->rows[member].dtype,
                              .flags = IG_ROW_VIEW,
                              .extent = p->rows[member].extent,
                              .source = IG_NONE,
                              .offset = p->rows[member].offset};
        for (uint32_t k = 0; k < r->n; k++) view.bytes += p->rows[l->sorted[r->first + k]].bytes;
        return_if_error(view_name(p, l, member, &view, e));
        return_if_error(view_shape(p, l, r, &view, e));
        r->view = p->nrows;
        p->from[p->nrows] =
            (struct ig_from){.pos = p->from[member].pos, .input = IG_NONE, .pads = true};
        p->rows[p->nrows++] = view;
        p->nviews++;
    }
    return INGOT_OK;
}

struct moved {
    struct ig_row row;
    struct ig_from from;
    uint32_t old;
};

static int moved_cmp(const void *a, const void *b)
{
    return ig_plan_row_cmp(&((const struct moved *)a)->row, &((const struct moved *)b)->row);
}

ingot_status ig_layout_sort(struct ig_plan *p, uint32_t **remap, ingot_error *e)
{
    struct moved *all = ig_array(p->nrows, sizeof *all);
    *remap = ig_array(p->nrows, sizeof **remap);
    if (!all || !*remap) {
        free(all);
        return ig_no_memory(e);
    }
    for (uint32_t i = 0; i < p->nrows; i++) all[i] = (struct moved){p->rows[i], p->from[i], i};
    if (p->nrows) qsort(all, p->nrows, sizeof *all, moved_cmp);
    for (uint32_t i = 0; i < p->nrows; i++) {
        p->rows[i] = all[i].row;
        p->from[i] = all[i].from;
        (*remap)[all[i].old] = i;
    }
    for (uint32_t i = 0; i < p->norder; i++) p->order[i] = (*remap)[p->order[i]];
    free(all);
    return INGOT_OK;
}

ingot_status ig_plan_layout(struct ig_plan *p, ingot_error *e)
{
    struct ig_layout l;
    uint32_t *remap = NULL;
    ingot_status status = ig_layout_make(p, &l, e);
    if (status == INGOT_OK) status = ig_layout_extents(p, &l, e);
    if (status == INGOT_OK) status = ig_layout_views(p, &l, e);
    if (status == INGOT_OK) status = ig_layout_sort(p, &remap, e);
    if (status == INGOT_OK) status = ig_layout_links(p, &l, remap, e);
    ig_layout_free(&l);
    free(remap);
    return status;
}
