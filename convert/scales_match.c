/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale links: whose scale is it?  Names say only that: subject and role.  What is to
 * be done with the value is for the declaration to say (scales_rules.c).
 */
#include "convert/scales_private.h"

#include <string.h>

bool ig_sc_quantised(uint32_t dtype)
{
    switch (dtype) {
    case IG_F4:
    case IG_F6_E2M3:
    case IG_F6_E3M2:
    case IG_F8_E5M2:
    case IG_F8_E4M3:
    case IG_F8_E4M3FNUZ:
    case IG_F8_E5M2FNUZ:
        return true;
    default:
        return false;
    }
}

/* The name after the last dot. */
const char *ig_sc_leaf(const struct ig_row *row, size_t *len)
{
    const char *dot = row->name_len ? memrchr(row->name, '.', row->name_len) : NULL;
    const char *leaf = dot ? dot + 1 : row->name;

    *len = (size_t)(row->name + row->name_len - leaf);
    return leaf;
}

static bool equals(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(s, word, n);
}

static bool ends(const char *s, size_t n, const char *tail)
{
    const size_t t = strlen(tail);

    return n > t && !memcmp(s + n - t, tail, t);
}

bool ig_sc_leaf_is(const struct ig_row *row, const char *leaf)
{
    size_t n;
    const char *s = ig_sc_leaf(row, &n);

    return equals(s, n, leaf);
}

size_t ig_sc_module_of(const struct ig_row *weight)
{
    size_t n;

    ig_sc_leaf(weight, &n);
    if (!ig_sc_leaf_is(weight, "weight") && !ig_sc_leaf_is(weight, "weight_packed")) {
        return weight->name_len; /* a parameter that stands for its module */
    }
    return n < weight->name_len ? weight->name_len - n - 1 : 0;
}

/* Compare a name with three pieces joined. */
static int compare(const struct ig_row *row, const char *const piece[3], const size_t len[3])
{
    const char *name = row->name;
    size_t left = row->name_len;

    for (int i = 0; i < 3; i++) {
        const size_t n = left < len[i] ? left : len[i];
        const int c = n ? memcmp(name, piece[i], n) : 0;
        if (c) return c;
        if (n < len[i]) return -1;
        name += n;
        left -= n;
    }
    return left ? 1 : 0;
}

uint32_t ig_sc_find(const struct ig_scan *s, const char *prefix, size_t n, const char *mid,
                    size_t mid_len, const char *tail)
{
    const char *const piece[3] = {prefix, mid, tail};
    const size_t len[3] = {n, mid_len, strlen(tail)};
    uint32_t lo = 0, hi = s->in->nrows;

    while (lo < hi) {
        const uint32_t at = lo + (hi - lo) / 2;
        const int c = compare(&s->in->rows[at], piece, len);
        if (c == 0) return at;
        if (c < 0) {
            lo = at + 1;
        } else {
            hi = at;
        }
    }
    return IG_NONE;
}

static enum ig_sc_kind kind_of(const char *leaf, size_t n)
{
    static const struct {
        const char *leaf;
        enum ig_sc_kind kind;
    } exact[] = {
        {"weight_scale", IG_KIND_SCALE},
        {"scale", IG_KIND_DOT_SCALE},
        {"weight_scale_2", IG_KIND_SCALE_2},
        {"weight_global_scale", IG_KIND_GLOBAL},
        {"weight_zero_point", IG_KIND_ZERO},
        {"input_scale", IG_KIND_INPUT},
        {"act_scale", IG_KIND_ACT},
        {"input_global_scale", IG_KIND_INPUT_GLOBAL},
        {"input_zero_point", IG_KIND_INPUT_ZERO},
        {"output_scale", IG_KIND_OUTPUT},
        {"prob_output_scale", IG_KIND_PROB},
        {"k_scale", IG_KIND_KV_K},
        {"v_scale", IG_KIND_KV_V},
        {"kv_scale", IG_KIND_KV_BOTH},
        {"q_scale", IG_KIND_Q},
        {"k_zero_point", IG_KIND_KV_ZERO},
        {"v_zero_point", IG_KIND_KV_ZERO},
        {"q_zero_point", IG_KIND_KV_ZERO},
        {"k_bias", IG_KIND_KV_BIAS},
        {"v_bias", IG_KIND_KV_BIAS},
    };

    for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
        if (equals(leaf, n, exact[i].leaf)) return exact[i].kind;
    }
    if (ends(leaf, n, "_scale_inv") || ends(leaf, n, "_scales_inv")) return IG_KIND_SCALE_INV;
    if (ends(leaf, n, "_scales")) return IG_KIND_BLOCK_SCALES;
    return memmem(leaf, n, "scale", 5) ? IG_KIND_FOREIGN : IG_KIND_NONE;
}

/* One number, or one for each head: other vectors of these names are no scales. */
static bool number_or_heads(const struct ig_row *r)
{
    uint64_t others = 1;

    for (uint32_t i = 1; i < r->rank; i++) others = r->shape[i] == 1 ? others : 0;
    return others && (r->rank == 3 || r->rank == 0 || r->shape[0] == 1);
}

/* "model.layers.0.self_attn" for a tensor in it or in its k_proj, v_proj, q_proj, qkv_proj. */
static size_t attention_module(const char *name, size_t n, const char **proj, size_t *proj_len)
{
    const char *dot = n ? memrchr(name, '.', n) : NULL;
    const char *last = dot ? dot + 1 : name;
    const size_t len = (size_t)(name + n - last);

    *proj = last;
    *proj_len = 0;
    if (!equals(last, len, "k_proj") && !equals(last, len, "v_proj") &&
        !equals(last, len, "q_proj") && !equals(last, len, "qkv_proj")) {
        return n;
    }
    *proj_len = len;
    return dot ? (size_t)(dot - name) : 0;
}

/* output_scale of a projection is the cache's scale where a quantised cache is declared. */
static enum ig_sc_kind output_kind(const struct ig_scan *s, const char *proj, size_t len)
{
    if (s->kv && equals(proj, len, "k_proj")) return IG_KIND_KV_K;
    if (s->kv && equals(proj, len, "v_proj")) return IG_KIND_KV_V;
    if (s->kv && equals(proj, len, "q_proj")) return IG_KIND_Q;
    return IG_KIND_OUTPUT;
}

static void match_module(struct ig_scan *s, struct ig_sc_match *m, const char *name,
                         size_t module_len, const char *leaf)
{
    const struct ig_row *row = &s->in->rows[m->object];
    const char *proj;
    size_t proj_len;
    const size_t n = attention_module(name, module_len, &proj, &proj_len);

    /* Vision towers have attn.k_bias and attn.q_scale of their own: those are weights. */
    if (m->kind == IG_KIND_KV_BIAS && !proj_len) m->kind = IG_KIND_NONE;
    if (m->kind != IG_KIND_KV_ZERO && !s->kv && !number_or_heads(row)) m->kind = IG_KIND_NONE;
    if (m->kind == IG_KIND_NONE) return;
    m->module = name;
    m->module_len = (uint32_t)n;
    const bool chained = m->kind >= IG_KIND_KV_K && m->kind <= IG_KIND_Q;
    m->shifted = chained && ig_sc_find(s, name, module_len + 1, leaf, 1, "_zero_point") != IG_NONE;
}

/* The tensor that a scale of a name nobody declared would belong to, if that is quantised. */
static uint32_t foreign_subject(struct ig_scan *s, const char *name, size_t prefix,
                                const char *leaf, size_t n)
{
    static const char *const cuts[] = {"_weight_scale", "_input_scale", "_scale"};
    uint32_t row = ig_sc_find(s, name, prefix, "", 0, "weight_packed");

    if (row == IG_NONE) row = ig_sc_find(s, name, prefix, "", 0, "weight");
    for (size_t i = 0; row == IG_NONE && i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        const char *cut = memmem(leaf, n, cuts[i], strlen(cuts[i]));
        if (cut) row = ig_sc_find(s, name, prefix, leaf, (size_t)(cut - leaf), "");
    }
    if (row == IG_NONE) return IG_NONE;
    const uint32_t dtype = s->in->rows[row].dtype;
    const bool integer = dtype == IG_U8 || dtype == IG_I8;
    return ig_sc_quantised(dtype) || integer ? row : IG_NONE;
}

static uint32_t weight_subject(struct ig_scan *s, enum ig_sc_kind kind, const char *name,
                               size_t prefix, const char *leaf, size_t n)
{
    if (kind == IG_KIND_FOREIGN) return foreign_subject(s, name, prefix, leaf, n);
    if (kind == IG_KIND_SCALE_INV) {
        const size_t tail = strlen(ends(leaf, n, "_scales_inv") ? "_scales_inv" : "_scale_inv");
        return ig_sc_find(s, name, prefix, leaf, n - tail, "");
    }
    if (kind == IG_KIND_BLOCK_SCALES) {
        return ig_sc_find(s, name, prefix, leaf, n - strlen("_scales"), "_blocks");
    }
    const uint32_t packed = ig_sc_find(s, name, prefix, "", 0, "weight_packed");
    return packed != IG_NONE ? packed : ig_sc_find(s, name, prefix, "", 0, "weight");
}

struct ig_sc_match ig_sc_match(struct ig_scan *s, uint32_t row)
{
    const struct ig_row *r = &s->in->rows[row];
    struct ig_sc_match m = {.object = row, .subject = IG_NONE, .module = r->name};
    size_t n, proj_len;
    const char *leaf = ig_sc_leaf(r, &n), *proj;
    const size_t prefix = r->name_len - n, module = prefix ? prefix - 1 : 0;

    m.kind = kind_of(leaf, n);
    if (m.kind == IG_KIND_OUTPUT) {
        attention_module(r->name, module, &proj, &proj_len);
        m.kind = output_kind(s, proj, proj_len);
    }
    if (m.kind == IG_KIND_NONE) return m;
    if (m.kind > IG_KIND_FOREIGN) {
        match_module(s, &m, r->name, module, leaf);
        return m;
    }
    m.subject = weight_subject(s, m.kind, r->name, prefix, leaf, n);
    /* A scale of an unexpected name is one only beside a quantised weight. */
    if (m.subject == IG_NONE && (m.kind == IG_KIND_BLOCK_SCALES || m.kind == IG_KIND_SCALE_INV)) {
        const uint32_t foreign = foreign_subject(s, r->name, prefix, leaf, n);
        if (foreign != IG_NONE) m.kind = IG_KIND_FOREIGN;
        m.subject = foreign;
    }
    if (m.subject == IG_NONE) return m;
    m.module_len = (uint32_t)ig_sc_module_of(&s->in->rows[m.subject]);
    const bool chained = m.kind != IG_KIND_ZERO && m.kind != IG_KIND_INPUT_ZERO;
    const bool input = m.kind == IG_KIND_INPUT || m.kind == IG_KIND_INPUT_GLOBAL;
    m.shifted = chained && ig_sc_find(s, r->name, prefix, "", 0,
                                      input ? "input_zero_point" : "weight_zero_point") != IG_NONE;
    return m;
}
