/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows lie end to end.  A run of rows that the order table puts side by side becomes
 * a group only when the result is one row-major tensor; ingot-pack(5), "Groups".
 */
#include "convert/layout.h"
#include "convert/order.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_ALIGN 16

/* qsort has no context argument in C11, and qsort_r differs between systems; rows carry
 * what they are compared by. */
struct key {
    const struct ig_row *row;
    const struct ig_place *place;
    uint32_t index;
};

static int key_cmp(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    const uint32_t sx = x->row->flags & IG_ROW_SHADOW, sy = y->row->flags & IG_ROW_SHADOW;
    if (sx != sy) return sx < sy ? -1 : 1;
    const int order = ig_place_cmp(x->place, x->row->name, x->row->name_len, y->place, y->row->name,
                                   y->row->name_len);
    return order ? order : (x->row->source > y->row->source) - (x->row->source < y->row->source);
}

static ingot_status sort_all(const struct ig_plan *p, struct ig_layout *l, ingot_error *e)
{
    struct key *keys = ig_array(p->nrows, sizeof *keys);
    if (!keys) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows; i++) {
        ig_place(p->rows[i].name, p->rows[i].name_len, p->job->rules, &l->places[i]);
        keys[i] = (struct key){&p->rows[i], &l->places[i], i};
    }
    if (p->nrows) qsort(keys, p->nrows, sizeof *keys, key_cmp);
    for (uint32_t i = 0; i < p->nrows; i++) l->sorted[i] = keys[i].index;
    free(keys);
    return INGOT_OK;
}

/* Two rows stand side by side for the table; whether they may be joined is asked later. */
static bool same_family(const struct ig_plan *p, const struct ig_layout *l, uint32_t a, uint32_t b)
{
    const struct ig_place *x = &l->places[a], *y = &l->places[b];
    if (!x->view || !y->view || !x->members || !y->members) return false;
    if ((p->rows[a].flags | p->rows[b].flags) & (IG_ROW_SHADOW | IG_ROW_TIED)) return false;
    return x->stage == y->stage && x->layer == y->layer && x->slot == y->slot &&
           x->kind == y->kind && ig_place_same_view(x, p->rows[a].name, y, p->rows[b].name);
}

static bool complete(const struct ig_layout *l, const uint32_t *rows, uint32_t n)
{
    const struct ig_place *first = &l->places[rows[0]];
    if (first->experts ? n % first->members != 0 : n != first->members) return false;
    if (n < 2) return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct ig_place *x = &l->places[rows[i]];
        if (x->expert != i / first->members || x->member != i % first->members) return false;
    }
    return true;
}

static bool joinable(const struct ig_plan *p, const struct ig_layout *l, const uint32_t *rows,
                     uint32_t n)
{
    const struct ig_row *a = &p->rows[rows[0]];
    const uint32_t from = l->places[rows[0]].experts ? 0 : 1;
    for (uint32_t i = 0; i < n; i++) {
        const struct ig_row *b = &p->rows[rows[i]];
        if (b->dtype != a->dtype || b->rank != a->rank || b->rank == 0 || b->bytes == 0 ||
            b->bytes % GROUP_ALIGN != 0)
            return false;
        for (uint32_t d = from; d < b->rank; d++)
            if (b->shape[d] != a->shape[d]) return false;
    }
    return true;
}

/* Scales may be joined when the joined rows then lie where the joined subjects' rows do. */
static bool scales_join(const struct ig_plan *p, const struct ig_layout *l, const uint32_t *rows,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (l->link_of[rows[i]] == IG_NONE) return false;
        const struct ig_link *k = &p->scales.links[l->link_of[rows[i]]];
        if (k->subject == IG_NONE) return false;
        if (k->gran != IG_GRAN_ROW && k->gran != IG_GRAN_BLOCK && k->gran != IG_GRAN_GROUP)
            return false;
        const struct ig_row *subject = &p->rows[k->subject];
        const uint64_t subject_rows = subject->rank ? subject->shape[0] : 0;
        if (k->gran == IG_GRAN_BLOCK && i + 1 < n &&
            (!k->block[0] || subject_rows % k->block[0] != 0))
            return false;
    }
    return true;
}

static bool view_is_free(const struct ig_plan *p, const struct ig_layout *l, uint32_t row)
{
    const struct ig_place *x = &l->places[row];
    char *name = ig_format("%.*s%s%s%.*s", (int)x->prefix_len, p->rows[row].name, x->view,
                           x->suffix_len ? "." : "", (int)x->suffix_len, x->suffix);
    const bool is_free = name && ig_plan_find(p, name, strlen(name)) == IG_NONE;
    free(name);
    return is_free;
}

static bool is_group(const struct ig_plan *p, const struct ig_layout *l, const uint32_t *rows,
                     uint32_t n)
{
    return complete(l, rows, n) && joinable(p, l, rows, n) &&
           (l->places[rows[0]].kind != 2 || scales_join(p, l, rows, n)) &&
           view_is_free(p, l, rows[0]);
}

static void add_run(struct ig_layout *l, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) l->run_of[l->sorted[first + i]] = l->nruns;
    l->runs[l->nruns++] = (struct ig_run){.first = first, .n = n, .view = IG_NONE};
    l->nviews += n > 1;
}

static void find_runs(const struct ig_plan *p, struct ig_layout *l)
{
    for (uint32_t i = 0, end; i < p->nrows; i = end) {
        for (end = i + 1; end < p->nrows && same_family(p, l, l->sorted[i], l->sorted[end]);) end++;
        if (end - i > 1 && is_group(p, l, l->sorted + i, end - i)) {
            add_run(l, i, end - i);
            continue;
        }
        for (uint32_t k = i; k < end; k++) add_run(l, k, 1);
    }
}

ingot_status ig_layout_make(const struct ig_plan *p, struct ig_layout *l, ingot_error *e)
{
    *l = (struct ig_layout){
        .places = ig_array(p->nrows, sizeof *l->places),
        .sorted = ig_array(p->nrows, sizeof *l->sorted),
        .runs = ig_array(p->nrows, sizeof *l->runs),
        .run_of = ig_array(p->nrows, sizeof *l->run_of),
        .link_of = ig_array(p->nrows, sizeof *l->link_of),
    };
    if (!l->places || !l->sorted || !l->runs || !l->run_of || !l->link_of) return ig_no_memory(e);
    memset(l->link_of, 0xff, p->nrows * sizeof *l->link_of);
    for (uint32_t i = p->scales.nlinks; i-- > 0;) l->link_of[p->scales.links[i].object] = i;
    return_if_error(sort_all(p, l, e));
    find_runs(p, l);
    return INGOT_OK;
}

void ig_layout_free(struct ig_layout *l)
{
    free(l->places);
    free(l->sorted);
    free(l->runs);
    free(l->run_of);
    free(l->link_of);
    *l = (struct ig_layout){0};
}
