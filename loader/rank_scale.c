/* SPDX-License-Identifier: Apache-2.0 */
/* rank: a scale follows what it scales. */
#include "loader/rank_private.h"

#define ULL(n) ((unsigned long long)(n))

uint32_t ig_link_factor(const struct ig_row *s, const struct ig_link *l)
{
    const uint32_t stored = ig_dtypes[s->dtype].bits, logical = ig_dtypes[l->logical].bits;
    return l->packing == IG_PACK_LOW_FIRST && logical < stored ? stored / logical : 1;
}

/* A module's scale: one for all, or one for each head. */
static ingot_status of_module(const struct ig_rank *k, const struct ig_link *l,
                              const struct ig_row *o, struct ig_cut *out, ingot_error *e)
{
    const bool kv = l->role == IG_ROLE_KV_K || l->role == IG_ROLE_KV_V;
    const uint64_t heads = kv ? k->g.kv_heads : k->g.heads;
    if (l->gran != IG_GRAN_HEAD) return INGOT_OK;
    if (ig_row_rows(o) != heads)
        return ig_cannot_cut(k, o, e, "has %llu rows, but config.json makes it %llu heads",
                             ULL(ig_row_rows(o)), ULL(heads));
    *out = (struct ig_cut){.how = IG_CUT_ROWS, .nruns = 1, .runs = {ig_cut_heads(k, kv)}};
    return INGOT_OK;
}

/* Runs of `total` elements, of which one scale covers `each`. */
static ingot_status divide(const struct ig_rank *k, const struct ig_row *o, uint64_t total,
                           uint64_t each, struct ig_cut *cut, ingot_error *e)
{
    for (uint32_t i = 0; i < cut->nruns; i++) {
        struct ig_run *run = &cut->runs[i];
        const uint64_t end = run->first + run->n;
        if (run->n && (run->first % each || (end % each && end != total)))
            return ig_cannot_cut(k, o, e,
                                 "has one scale for %llu %s, and rank %u of %u holds %llu from "
                                 "%llu on",
                                 ULL(each), cut->how == IG_CUT_ROWS ? "rows" : "columns", k->rank,
                                 k->ranks, ULL(run->n), ULL(run->first));
        run->first /= each;
        if (run->n) run->n = end / each + (end % each != 0) - run->first;
    }
    return INGOT_OK;
}

ingot_status ig_cut_by_link(const struct ig_rank *k, const struct ig_link *l,
                            const struct ig_row *s, const struct ig_cut *of, const struct ig_row *o,
                            struct ig_cut *out, ingot_error *e)
{
    *out = (struct ig_cut){0};
    if (!s) return of_module(k, l, o, out, e);
    const bool columns = of->how == IG_CUT_COLUMNS;
    if (of->how == IG_CUT_NOT || l->gran == IG_GRAN_TENSOR || (l->gran == IG_GRAN_ROW && columns))
        return INGOT_OK;
    if (l->gran != IG_GRAN_ROW && l->gran != IG_GRAN_BLOCK && l->gran != IG_GRAN_GROUP)
        return ig_cannot_cut(k, o, e, "scales a tensor that is cut, and which part is unknown");
    const uint64_t each = l->gran == IG_GRAN_ROW ? 1 : l->block[columns];
    if (each == 0) return INGOT_OK;
    const uint32_t factor = columns ? ig_link_factor(s, l) : 1;
    const uint64_t total = factor * (columns ? ig_row_columns(s) : ig_row_rows(s));
    const uint64_t has = columns ? ig_row_columns(o) : ig_row_rows(o);
    const uint64_t wanted = total / each + (total % each != 0);
    if (has != wanted)
        return ig_cannot_cut(k, o, e, "has %llu %s, but what it scales makes it %llu", ULL(has),
                             columns ? "columns" : "rows", ULL(wanted));
    *out = *of;
    for (uint32_t i = 0; i < out->nruns; i++) {
        out->runs[i].first *= factor;
        out->runs[i].n *= factor;
    }
    return divide(k, o, total, each, out, e);
}
