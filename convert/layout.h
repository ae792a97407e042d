/* SPDX-License-Identifier: Apache-2.0 */
/* Order and groups, before views become rows. */
#ifndef INGOT_LAYOUT_H
#define INGOT_LAYOUT_H

#include "convert/plan.h"

struct ig_run {        /* one row or one group, as it will lie in the weights */
    uint32_t first, n; /* range of sorted[] */
    uint32_t view;     /* row of the group's view, or IG_NONE */
};
struct ig_layout {
    struct ig_place *places; /* by row */
    uint32_t *sorted;        /* rows in the order of the weights, shadows last */
    struct ig_run *runs;
    uint32_t nruns, nviews;
    uint32_t *run_of;  /* by row: its run, IG_NONE for rows of no run */
    uint32_t *link_of; /* by row: first link that has it as object, or IG_NONE */
};

/* layout.c: sort and find the groups; indexes are those of the plan's rows as they are. */
ingot_status ig_layout_make(const struct ig_plan *p, struct ig_layout *l, ingot_error *e);
void ig_layout_free(struct ig_layout *l);
/* layout_extents.c: extents, positions, and the list of rows whose bytes are written. */
ingot_status ig_layout_extents(struct ig_plan *p, const struct ig_layout *l, ingot_error *e);
/* layout_views.c: a row for each group, appended; then every row into table order.  *remap
 * (caller frees) says where each row went. */
ingot_status ig_layout_views(struct ig_plan *p, struct ig_layout *l, ingot_error *e);
ingot_status ig_layout_sort(struct ig_plan *p, uint32_t **remap, ingot_error *e);
/* layout_links.c: the links of sources and views, in table order. */
ingot_status ig_layout_links(struct ig_plan *p, const struct ig_layout *l, const uint32_t *remap,
                             ingot_error *e);

#endif
