/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rank.c share. */
#ifndef INGOT_RANK_PRIVATE_H
#define INGOT_RANK_PRIVATE_H

#include "loader/plan.h"

/* rank_config.c: what of config.json says where a model may be cut; no number above 2^30. */
struct ig_geometry {
    uint64_t heads, kv_heads, head_dim, hidden, intermediate, vocab;
};
ingot_status ig_geometry_read(const struct ig_pack *p, struct ig_geometry *g, ingot_error *e);
/* Can these heads and this intermediate size be dealt out to so many? */
ingot_status ig_geometry_divides(const struct ig_pack *p, const struct ig_geometry *g,
                                 uint32_t ranks, ingot_error *e);

/* What one rank holds of a row: all of it, or runs of the first dimension, or runs of the elements,
 * as they are stored, of the others.  Fused tensors have a run for each of their parts. */
enum ig_cut_how { IG_CUT_NOT, IG_CUT_ROWS, IG_CUT_COLUMNS };
struct ig_run {
    uint64_t first, n; /* n 0: this rank holds nothing of it */
    bool replicated;
};
struct ig_cut {
    enum ig_cut_how how;
    uint32_t nruns;
    struct ig_run runs[3];
};
struct ig_rank {
    const struct ig_pack *p;
    struct ig_geometry g;
    uint32_t rank, ranks;
};

/* rank_cut.c.  The cut of a row by its name; *known is false, and the cut IG_CUT_NOT, for a row
 * that is no weight and no bias of a module that is cut. */
ingot_status ig_cut_by_name(const struct ig_rank *k, const struct ig_row *row, struct ig_cut *out,
                            bool *known, ingot_error *e);
/* Is it an expert's? */
bool ig_is_expert(const struct ig_row *row);
/* The KV heads, or the query heads, of this rank. */
struct ig_run ig_cut_heads(const struct ig_rank *k, bool kv);

/* rank_scale.c.  The cut of a scale from that of its subject, by the link between them; s is NULL
 * for a module. */
ingot_status ig_cut_by_link(const struct ig_rank *k, const struct ig_link *l,
                            const struct ig_row *s, const struct ig_cut *of, const struct ig_row *o,
                            struct ig_cut *out, ingot_error *e);
/* Logical elements in one stored element. */
uint32_t ig_link_factor(const struct ig_row *s, const struct ig_link *l);

/* rank.c */
uint64_t ig_row_rows(const struct ig_row *row);    /* the first dimension; 1 for a scalar */
uint64_t ig_row_columns(const struct ig_row *row); /* the product of the others */
ingot_status ig_cannot_cut(const struct ig_rank *k, const struct ig_row *row, ingot_error *e,
                           const char *format, ...) IG_PRINTF(4, 5);

#endif
