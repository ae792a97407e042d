/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links in table order.  A view takes over the links of its parts where the parts' scales
 * form a view as well; input scales describe activations, not these bytes, and stay behind.
 */
#include "convert/layout.h"

#include <stdlib.h>
#include <string.h>

/* Links of one source row: a range, since scales.c sorts them by subject. */
static uint32_t first_link(const struct ig_scales *s, uint32_t subject)
{
    uint32_t low = 0, high = s->nlinks;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->links[mid].subject < subject)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static uint32_t count_links(const struct ig_scales *s, uint32_t first, uint32_t subject)
{
    uint32_t n = 0;
    while (first + n < s->nlinks && s->links[first + n].subject == subject) n++;
    return n;
}

static bool same_meaning(const struct ig_link *a, const struct ig_link *b)
{
    return a->role == b->role && a->stage == b->stage && a->op == b->op && a->gran == b->gran &&
           a->block[0] == b->block[0] && a->block[1] == b->block[1] && a->logical == b->logical &&
           a->packing == b->packing && a->encoding == b->encoding;
}

/* Do the k-th links of all parts point, part by part, at the members of one group? */
static bool takes_over(const struct ig_plan *p, const struct ig_layout *l, const struct ig_run *r,
                       const uint32_t *first, uint32_t k)
{
    const struct ig_link *a = &p->scales.links[first[0] + k];
    const uint32_t run = l->run_of[a->object];
    if (run == IG_NONE || l->runs[run].view == IG_NONE || l->runs[run].n != r->n) return false;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct ig_link *b = &p->scales.links[first[i] + k];
        if (!same_meaning(a, b) || l->sorted[l->runs[run].first + i] != b->object) return false;
    }
    return true;
}

static ingot_status link_view(struct ig_plan *p, const struct ig_layout *l, const struct ig_run *r,
                              ingot_error *e)
{
    uint32_t *first = ig_array(r->n, sizeof *first);
    if (!first) return ig_no_memory(e);
    const uint32_t before = p->nlinks;
    bool whole = true;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n && whole; i++) {
        const uint32_t row = l->sorted[r->first + i];
        first[i] = first_link(&p->scales, row);
        const uint32_t links = count_links(&p->scales, first[i], row);
        whole = i == 0 || links == n;
        n = links;
    }
    for (uint32_t k = 0; k < n && whole; k++) {
        struct ig_link link = p->scales.links[first[0] + k];
        if (link.role == IG_ROLE_INPUT) continue;
        whole = takes_over(p, l, r, first, k);
        if (!whole) break;
        link.subject = r->view;
        link.object = l->runs[l->run_of[link.object]].view;
        p->links[p->nlinks++] = link;
    }
    if (!whole) p->nlinks = before;
    free(first);
    return INGOT_OK;
}

ingot_status ig_layout_links(struct ig_plan *p, const struct ig_layout *l, const uint32_t *remap,
                             ingot_error *e)
{
    /* A view has at most the links of its first part. */
    p->links = ig_array(2 * (size_t)p->scales.nlinks, sizeof *p->links);
    if (!p->links) return ig_no_memory(e);
    for (uint32_t i = 0; i < l->nruns && p->scales.nlinks; i++)
        if (l->runs[i].view != IG_NONE) return_if_error(link_view(p, l, &l->runs[i], e));
    for (uint32_t i = 0; i < p->scales.nlinks; i++) p->links[p->nlinks++] = p->scales.links[i];
    for (uint32_t i = 0; i < p->nlinks; i++) {
        struct ig_link *k = &p->links[i];
        k->object = remap[k->object];
        if (k->subject != IG_NONE) k->subject = remap[k->subject];
    }
    for (uint32_t i = 0; i < p->scales.nlinks;
         i++) { /* these now speak of the rows as they stand */
        struct ig_link *k = &p->scales.links[i];
        k->object = remap[k->object];
        if (k->subject != IG_NONE) k->subject = remap[k->subject];
    }
    if (p->nlinks) qsort(p->links, p->nlinks, sizeof *p->links, ig_link_cmp);
    for (uint32_t i = 0; i < p->nlinks; i++) {
        if (p->links[i].subject == IG_NONE) break;
        struct ig_row *row = &p->rows[p->links[i].subject];
        if (row->nlinks++ == 0) row->link = i;
    }
    return INGOT_OK;
}
