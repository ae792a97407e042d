/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank: what one of n devices holds of a model.  Every row gets a cut, by its name, else by what
 * it is a scale of, else none: then every rank has all of it.
 */
#include "loader/rank_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 8 /* scales of scales of ...; two are in use */

uint64_t ig_row_rows(const struct ig_row *row)
{
    return row->rank ? row->shape[0] : 1;
}

uint64_t ig_row_columns(const struct ig_row *row)
{
    uint64_t n = 1;
    for (uint32_t i = 1; i < row->rank; i++) n *= row->shape[i];
    return n;
}

ingot_status ig_cannot_cut(const struct ig_rank *k, const struct ig_row *row, ingot_error *e,
                           const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: cannot be cut in %u: tensor \"%s\" %s", k->p->path,
            k->ranks, ig_esc(row->name, row->name_len).s, why);
    return ig_at(e, k->p->path, row->name, row->name_len);
}

/* ---- the cut of every row ---- */

enum state { UNKNOWN, ASKED, KNOWN };
struct cuts {
    struct ig_rank k;
    uint32_t *first, *next; /* of a row: the first link to it; of a link: the next to its object */
    struct ig_cut *cuts;
    uint8_t *state;
};

static ingot_status open_cuts(struct cuts *c, ingot_error *e)
{
    const struct ig_pack *p = c->k.p;
    c->first = ig_array(p->nrows, sizeof *c->first);
    c->next = ig_array(p->nlinks, sizeof *c->next);
    c->cuts = ig_array(p->nrows, sizeof *c->cuts);
    c->state = ig_array(p->nrows, sizeof *c->state);
    if (!c->first || !c->next || !c->cuts || !c->state) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows; i++) c->first[i] = IG_NONE;
    for (uint32_t i = p->nlinks; i-- > 0;) {
        struct ig_link l;
        ig_pack_link(p, i, &l);
        c->next[i] = c->first[l.object];
        c->first[l.object] = i;
    }
    return INGOT_OK;
}

static void close_cuts(struct cuts *c)
{
    free(c->first);
    free(c->next);
    free(c->cuts);
    free(c->state);
}

static bool same(const struct ig_cut *a, const struct ig_cut *b)
{
    if (a->how != b->how || a->nruns != b->nruns) return false;
    for (uint32_t i = 0; i < a->nruns; i++) {
        const struct ig_run *x = &a->runs[i], *y = &b->runs[i];
        if (x->first != y->first || x->n != y->n || x->replicated != y->replicated) return false;
    }
    return true;
}

static ingot_status cut_of(struct cuts *c, uint32_t i, unsigned depth, ingot_error *e);

/* The cut that one link gives its object; a view's says what those of its members say. */
static ingot_status by_link(struct cuts *c, const struct ig_link *l, const struct ig_row *row,
                            unsigned depth, struct ig_cut *out, bool *any, ingot_error *e)
{
    struct ig_row subject;
    *any = true;
    if (l->subject == IG_NONE) return ig_cut_by_link(&c->k, l, NULL, NULL, row, out, e);
    ig_pack_row(c->k.p, l->subject, &subject);
    *any = !(subject.flags & (IG_ROW_VIEW | IG_ROW_SHADOW));
    if (!*any) return INGOT_OK;
    return_if_error(cut_of(c, l->subject, depth + 1, e));
    return ig_cut_by_link(&c->k, l, &subject, &c->cuts[l->subject], row, out, e);
}

static ingot_status by_links(struct cuts *c, uint32_t i, const struct ig_row *row, unsigned depth,
                             ingot_error *e)
{
    struct ig_cut *out = &c->cuts[i];
    bool first = true;
    for (uint32_t at = c->first[i]; at != IG_NONE; at = c->next[at]) {
        struct ig_link l;
        struct ig_cut cut;
        bool any;
        ig_pack_link(c->k.p, at, &l);
        return_if_error(by_link(c, &l, row, depth, &cut, &any, e));
        if (!any) continue;
        if (!first && !same(out, &cut))
            return ig_cannot_cut(&c->k, row, e, "scales tensors that are cut in different ways");
        *out = cut;
        first = false;
    }
    return INGOT_OK;
}

/* Sets cuts[i].  Each row is asked once, and links come from a file: they may be a ring. */
static ingot_status cut_of(struct cuts *c, uint32_t i, unsigned depth, ingot_error *e)
{
    struct ig_row row;
    bool known;
    if (c->state[i] == KNOWN) return INGOT_OK;
    ig_pack_row(c->k.p, i, &row);
    if (c->state[i] == ASKED || depth > DEEPEST)
        return ig_cannot_cut(&c->k, &row, e, "is a scale in a chain without an end");
    c->state[i] = ASKED;
    return_if_error(ig_cut_by_name(&c->k, &row, &c->cuts[i], &known, e));
    if (!known) return_if_error(by_links(c, i, &row, depth, e));
    c->state[i] = KNOWN;
    return INGOT_OK;
}

/* ---- targets ---- */

static ingot_status add_run(const struct ig_rank *k, uint32_t i, const struct ig_row *row,
                            enum ig_cut_how how, const struct ig_run *run, struct ig_targets *out,
                            ingot_error *e)
{
    const uint64_t rows = ig_row_rows(row), columns = ig_row_columns(row);
    const uint64_t bits = ig_dtypes[row->dtype].bits;
    const uint64_t unit = how == IG_CUT_ROWS ? columns * bits : bits;
    const uint64_t line = how == IG_CUT_ROWS ? 0 : columns * bits;
    struct ig_target one = {.row = i, .replicated = run->replicated};
    if (run->n == 0) return INGOT_OK;
    /* Columns are dealt out evenly: where one run ends on a byte, so does the line. */
    if (run->first * unit % 8 || run->n * unit % 8)
        return ig_cannot_cut(
            k, row, e, "has %llu bits an element: %llu %s from %llu on are no whole bytes",
            (unsigned long long)bits, (unsigned long long)run->n,
            how == IG_CUT_ROWS ? "rows" : "columns", (unsigned long long)run->first);
    one.start = run->first * unit / 8;
    one.width = run->n * unit / 8;
    one.rows = how == IG_CUT_ROWS ? 1 : rows;
    one.stride = line / 8;
    one.first_row = how == IG_CUT_ROWS ? run->first : 0;
    one.nrows = how == IG_CUT_ROWS ? run->n : rows;
    one.first_col = how == IG_CUT_ROWS ? 0 : run->first;
    one.ncols = how == IG_CUT_ROWS ? columns : run->n;
    return ig_targets_add(out, &one, e);
}

static ingot_status add_cut(struct cuts *c, uint32_t i, const struct ig_row *row,
                            struct ig_targets *out, ingot_error *e)
{
    if (ig_is_expert(row)) return ig_cannot_cut(&c->k, row, e, "is an expert's");
    return_if_error(cut_of(c, i, 0, e));
    const struct ig_cut *cut = &c->cuts[i];
    for (uint32_t r = 0; r < cut->nruns; r++)
        return_if_error(add_run(&c->k, i, row, cut->how, &cut->runs[r], out, e));
    if (cut->how != IG_CUT_NOT) return INGOT_OK;
    return_if_error(ig_targets_add_row(out, c->k.p, i, e));
    out->list[out->n - 1].replicated = true;
    return INGOT_OK;
}

/* Views are their members, shadows belong to no model, and the second of two tied rows is the
 * first once more. */
static bool is_loaded(const struct ig_row *row, bool *tied)
{
    if (row->flags & (IG_ROW_VIEW | IG_ROW_SHADOW) || row->bytes == 0) return false;
    if (!(row->flags & IG_ROW_TIED)) return true;
    const bool again = *tied;
    *tied = true;
    return !again;
}

static ingot_status add_all(struct cuts *c, struct ig_targets *out, ingot_error *e)
{
    bool tied = false;
    for (uint32_t i = 0; i < c->k.p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(c->k.p, i, &row);
        if (!is_loaded(&row, &tied)) continue;
        return_if_error(c->k.ranks == 1 ? ig_targets_add_row(out, c->k.p, i, e)
                                        : add_cut(c, i, &row, out, e));
    }
    return INGOT_OK;
}

ingot_status ig_rank(const struct ig_pack *p, uint32_t rank, uint32_t ranks, struct ig_targets *out,
                     ingot_error *e)
{
    struct cuts c = {.k = {.p = p, .rank = rank, .ranks = ranks}};
    if (rank >= ranks)
        return ig_fail(e, INGOT_ERR_USAGE, "rank %u of %u: ranks count from 0", rank, ranks);
    if (ranks == 1) return add_all(&c, out, e);
    return_if_error(ig_geometry_read(p, &c.k.g, e));
    return_if_error(ig_geometry_divides(p, &c.k.g, ranks, e));
    ingot_status status = open_cuts(&c, e);
    if (status == INGOT_OK) status = add_all(&c, out, e);
    close_cuts(&c);
    return status;
}
