/* SPDX-License-Identifier: Apache-2.0 */
/* rank: from a tensor's name to the part of it that one rank holds. */
#include "loader/rank_private.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What the cut dimension of a module counts. */
enum unit { NOTHING, QUERY, KV, INTERMEDIATE, VOCABULARY };

/* By which dimension, and what parts follow each other along it. */
struct module {
    const char *name;
    enum ig_cut_how how;
    enum unit parts[3];
};

static const struct module in_layer[] = {
    {"self_attn.q_proj", IG_CUT_ROWS, {QUERY}},
    {"self_attn.k_proj", IG_CUT_ROWS, {KV}},
    {"self_attn.v_proj", IG_CUT_ROWS, {KV}},
    {"self_attn.qkv_proj", IG_CUT_ROWS, {QUERY, KV, KV}},
    {"self_attn.o_proj", IG_CUT_COLUMNS, {QUERY}},
    {"attention.wq", IG_CUT_ROWS, {QUERY}},
    {"attention.wk", IG_CUT_ROWS, {KV}},
    {"attention.wv", IG_CUT_ROWS, {KV}},
    {"attention.wo", IG_CUT_COLUMNS, {QUERY}},
    {"mlp.gate_proj", IG_CUT_ROWS, {INTERMEDIATE}},
    {"mlp.up_proj", IG_CUT_ROWS, {INTERMEDIATE}},
    {"mlp.gate_up_proj", IG_CUT_ROWS, {INTERMEDIATE, INTERMEDIATE}},
    {"mlp.down_proj", IG_CUT_COLUMNS, {INTERMEDIATE}},
    {"feed_forward.w1", IG_CUT_ROWS, {INTERMEDIATE}},
    {"feed_forward.w3", IG_CUT_ROWS, {INTERMEDIATE}},
    {"feed_forward.w2", IG_CUT_COLUMNS, {INTERMEDIATE}},
};
static const struct module outside[] = {
    {"embed_tokens", IG_CUT_ROWS, {VOCABULARY}},
    {"lm_head", IG_CUT_ROWS, {VOCABULARY}},
};
/* Too common as last components of a name to be believed behind any prefix. */
static const struct module outside_bare[] = {
    {"tok_embeddings", IG_CUT_ROWS, {VOCABULARY}},
    {"output", IG_CUT_ROWS, {VOCABULARY}},
};
static const char *const expert_modules[] = {"mlp.experts", "mlp.shared_expert",
                                             "block_sparse_moe.experts", "feed_forward.experts"};

/* ---- names ---- */

struct rest {
    const char *s;
    size_t n;
};

static bool take(struct rest *r, const char *literal)
{
    const size_t n = strlen(literal);
    if (r->n < n || memcmp(r->s, literal, n) != 0) return false;
    r->s += n;
    r->n -= n;
    return true;
}

static bool is(const struct rest *r, const char *literal)
{
    return r->n == strlen(literal) && memcmp(r->s, literal, r->n) == 0;
}

static bool take_layer(struct rest *r)
{
    if (!take(r, "layers.")) return false;
    const size_t before = r->n;
    while (r->n && *r->s >= '0' && *r->s <= '9') r->s++, r->n--;
    return r->n != before && take(r, ".");
}

/* The module that the rest begins with; the rest becomes what is behind its point. */
static const struct module *take_module(struct rest *r, const struct module *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rest behind = *r;
        if (!take(&behind, list[i].name) || !take(&behind, ".")) continue;
        *r = behind;
        return &list[i];
    }
    return NULL;
}

/* The next component of the name, with whatever is before it as a prefix. */
static bool next_component(struct rest *r)
{
    const char *point = r->n ? memchr(r->s, '.', r->n) : NULL;
    if (!point) return false;
    r->n -= (size_t)(point + 1 - r->s);
    r->s = point + 1;
    return true;
}

static const struct module *find(const struct ig_row *row, struct rest *suffix)
{
    struct rest at = {row->name, row->name_len};
    *suffix = at;
    const struct module *m = take_module(suffix, outside_bare, COUNT(outside_bare));
    if (m) return m;
    do {
        *suffix = at;
        m = take_layer(suffix) ? take_module(suffix, in_layer, COUNT(in_layer))
                               : take_module(suffix, outside, COUNT(outside));
    } while (!m && next_component(&at));
    return m;
}

bool ig_is_expert(const struct ig_row *row)
{
    struct rest at = {row->name, row->name_len};
    do {
        struct rest r = at;
        if (!take_layer(&r)) continue;
        for (size_t i = 0; i < COUNT(expert_modules); i++) {
            struct rest behind = r;
            if (take(&behind, expert_modules[i])) return true;
        }
    } while (next_component(&at));
    return false;
}

/* ---- runs ---- */

struct ig_run ig_cut_heads(const struct ig_rank *k, bool kv)
{
    const uint64_t heads = kv ? k->g.kv_heads : k->g.heads;
    const bool repeated = heads < k->ranks;
    return (struct ig_run){.first = k->rank * heads / k->ranks,
                           .n = repeated ? 1 : heads / k->ranks,
                           .replicated = repeated};
}

/* All of a unit, and this rank's run of it. */
static uint64_t run_of(const struct ig_rank *k, enum unit unit, struct ig_run *run)
{
    const struct ig_geometry *g = &k->g;
    if (unit == QUERY || unit == KV) {
        *run = ig_cut_heads(k, unit == KV);
        run->first *= g->head_dim;
        run->n *= g->head_dim;
        return (unit == KV ? g->kv_heads : g->heads) * g->head_dim;
    }
    const uint64_t all = unit == VOCABULARY ? g->vocab : g->intermediate;
    const uint64_t share = all / k->ranks + (all % k->ranks != 0), first = k->rank * share;
    run->first = first < all ? first : all;
    run->n = share < all - run->first ? share : all - run->first;
    run->replicated = false;
    return all;
}

static uint64_t runs_of(const struct ig_rank *k, const struct module *m, struct ig_cut *out)
{
    uint64_t all = 0;
    *out = (struct ig_cut){.how = m->how};
    for (size_t i = 0; i < COUNT(m->parts) && m->parts[i] != NOTHING; i++) {
        struct ig_run *run = &out->runs[out->nruns++];
        const uint64_t part = run_of(k, m->parts[i], run);
        run->first += all;
        all += part;
    }
    return all;
}

/* ---- shapes ---- */

static ingot_status check(const struct ig_rank *k, const struct ig_row *row, const char *what,
                          uint64_t has, uint64_t wanted, ingot_error *e)
{
    if (has == wanted) return INGOT_OK;
    return ig_cannot_cut(k, row, e, "has %llu %s, but config.json makes it %llu",
                         (unsigned long long)has, what, (unsigned long long)wanted);
}

/* Packed weights have fewer stored than logical columns, which only their links tell. */
static uint32_t factor_of(const struct ig_rank *k, const struct ig_row *row)
{
    uint32_t factor = 1;
    for (uint32_t i = 0; i < row->nlinks && factor == 1; i++) {
        struct ig_link l;
        ig_pack_link(k->p, row->link + i, &l);
        factor = ig_link_factor(row, &l);
    }
    return factor;
}

static ingot_status check_weight(const struct ig_rank *k, const struct ig_row *row, uint64_t all,
                                 struct ig_cut *cut, ingot_error *e)
{
    const bool columns = cut->how == IG_CUT_COLUMNS;
    const uint32_t factor = factor_of(k, row);
    if (row->rank != 2)
        return ig_cannot_cut(k, row, e, "has rank %u, and a matrix is wanted", row->rank);
    return_if_error(check(k, row, "rows", row->shape[0], columns ? k->g.hidden : all, e));
    return_if_error(
        check(k, row, "columns", row->shape[1] * factor, columns ? all : k->g.hidden, e));
    for (uint32_t i = 0; columns && i < cut->nruns; i++) {
        struct ig_run *run = &cut->runs[i];
        if (run->first % factor || run->n % factor)
            return ig_cannot_cut(k, row, e,
                                 "holds %u columns in an element, and %llu of them from %llu on "
                                 "are wanted",
                                 factor, (unsigned long long)run->n,
                                 (unsigned long long)run->first);
        run->first /= factor;
        run->n /= factor;
    }
    return INGOT_OK;
}

ingot_status ig_cut_by_name(const struct ig_rank *k, const struct ig_row *row, struct ig_cut *out,
                            bool *known, ingot_error *e)
{
    struct rest suffix;
    const struct module *m = find(row, &suffix);
    const bool weight = m && (is(&suffix, "weight") || is(&suffix, "weight_packed"));
    const bool bias = m && is(&suffix, "bias");
    *out = (struct ig_cut){0};
    *known = weight || bias;
    if (!*known || (bias && m->how == IG_CUT_COLUMNS)) return INGOT_OK;
    const uint64_t all = runs_of(k, m, out);
    if (weight) return check_weight(k, row, all, out, e);
    if (row->rank != 1)
        return ig_cannot_cut(k, row, e, "has rank %u, and a vector is wanted", row->rank);
    return check(k, row, "rows", row->shape[0], all, e);
}
