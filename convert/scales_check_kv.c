/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: a quantised KV cache is declared; has each attention its scales? */
#include "convert/scales_private.h"

#include <string.h>

/* Bytes of the name of an attention module whose key projection this row is; or 0. */
static size_t attention_of(const struct ig_row *r)
{
    static const char *const weights[] = {
        "self_attn.k_proj.weight", "self_attn.k_proj.weight_packed", "self_attn.qkv_proj.weight",
        "self_attn.qkv_proj.weight_packed"};

    for (size_t k = 0; k < sizeof(weights) / sizeof(weights[0]); k++) {
        const size_t n = strlen(weights[k]);
        if (r->name_len >= n && !memcmp(r->name + r->name_len - n, weights[k], n)) {
            return r->name_len - n + strlen("self_attn");
        }
    }
    return 0;
}

static int compare(const struct ig_link *l, const char *module, size_t n)
{
    const size_t least = l->module_len < n ? l->module_len : n;
    const int c = memcmp(l->module, module, least);

    return c ? c : (l->module_len > n) - (l->module_len < n);
}

/* Both k and v scales among the links from `modules` on? */
static bool has_scales(const struct ig_scales *out, uint32_t modules, const char *name, size_t n)
{
    uint32_t lo = modules, hi = out->nlinks;
    bool k = false, v = false;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (compare(&out->links[mid], name, n) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    for (; lo < out->nlinks && !compare(&out->links[lo], name, n); lo++) {
        k |= out->links[lo].role == IG_ROLE_KV_K;
        v |= out->links[lo].role == IG_ROLE_KV_V;
    }
    return k && v;
}

/* "model." of "model.layers.0.self_attn": vision towers have attentions without a cache. */
static size_t stack_len(const char *module, size_t n)
{
    const char *layers = memmem(module, n, "layers.", 7);

    return layers ? (size_t)(layers - module) : n;
}

void ig_sc_check_kv(struct ig_scan *s)
{
    const struct ig_scales *out = s->out;
    const struct ig_link *some = NULL;
    uint32_t modules = 0, missing = 0, first = IG_NONE;

    if (!s->kv || s->kv->kv.dynamic) return;
    while (modules < out->nlinks && out->links[modules].subject != IG_NONE) modules++;
    for (uint32_t i = modules; !some && i < out->nlinks; i++) {
        const uint32_t role = out->links[i].role;
        if (role == IG_ROLE_KV_K || role == IG_ROLE_KV_V) some = &out->links[i];
    }
    if (!some) {
        ig_sc_finding(s, IG_NONE,
                      "%s: %s: a quantised KV cache is declared, but there are no scales "
                      "for it",
                      s->kv->file, s->kv->kv.at);
        return;
    }
    const size_t stack = stack_len(some->module, some->module_len);
    for (uint32_t i = 0; i < s->in->nrows; i++) {
        const struct ig_row *r = &s->in->rows[i];
        const size_t n = attention_of(r);
        if (n == 0 || has_scales(out, modules, r->name, n)) continue;
        if (stack_len(r->name, n) != stack || memcmp(r->name, some->module, stack)) continue;
        if (missing++ == 0) first = i;
    }
    if (!missing) return;
    const struct ig_row *r = &s->in->rows[first];
    ig_sc_finding(s, first,
                  "%s: %s: a quantised KV cache is declared, but %ju attention modules lack "
                  "scales of k or v (the first has %s)",
                  s->kv->file, s->kv->kv.at, (uintmax_t)missing, ig_esc(r->name, r->name_len).s);
}
