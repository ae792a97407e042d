/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links of modules: the KV cache, q, and the attention's probabilities. */
#include "convert/scales_private.h"

#include <string.h>

static enum ig_sc_why module_why(const struct ig_scan *s, enum ig_sc_kind kind)
{
    const struct ig_sc_decl *other = s->kv == &s->decl[0] ? &s->decl[1] : &s->decl[0];

    if (kind == IG_KIND_PROB && s->w->family == IG_FAM_QUARK) return IG_WHY_KNOWN;
    if (kind == IG_KIND_KV_ZERO || kind == IG_KIND_KV_BIAS) return IG_WHY_OFFSET;
    if (!s->kv) return IG_WHY_KV_UNDECLARED;
    if (!s->kv->kv.known) return IG_WHY_KV_UNKNOWN;
    if (other->kv.declared && other->kv.logical != s->kv->kv.logical) return IG_WHY_DISAGREE;
    return IG_WHY_KNOWN;
}

static bool number(uint32_t dtype)
{
    return dtype == IG_F32 || dtype == IG_F16 || dtype == IG_BF16 || dtype == IG_F64;
}

static uint32_t module_role(enum ig_sc_kind kind)
{
    switch (kind) {
    case IG_KIND_KV_V:
        return IG_ROLE_KV_V;
    case IG_KIND_Q:
        return IG_ROLE_Q;
    case IG_KIND_PROB:
        return IG_ROLE_PROB;
    case IG_KIND_KV_ZERO:
        return IG_ROLE_ZERO_POINT;
    case IG_KIND_KV_BIAS:
        return IG_ROLE_BIAS;
    default:
        return IG_ROLE_KV_K;
    }
}

static void set_shape(struct ig_scan *s, const struct ig_sc_match *m, struct ig_link *l)
{
    const struct ig_row *o = &s->in->rows[m->object];
    const bool cache = m->kind != IG_KIND_Q && m->kind != IG_KIND_PROB;
    char heads[64] = "";

    l->gran = ig_sc_head_granularity(o, cache ? s->kv_heads : 0);
    if (l->gran != IG_GRAN_UNKNOWN) return;
    l->op = IG_OP_UNKNOWN;
    if (cache && s->kv_heads) {
        snprintf(heads, sizeof(heads), " with num_key_value_heads %ju", (uintmax_t)s->kv_heads);
    }
    ig_sc_finding(s, m->object, "%s: shape %s; expected [], [1] or [heads,1,1]%s",
                  ig_esc(o->name, o->name_len).s, ig_sc_shape(o).s, heads);
}

void ig_sc_apply_module(struct ig_scan *s, const struct ig_sc_match *m)
{
    const struct ig_row *o = &s->in->rows[m->object];
    const bool quark = m->kind == IG_KIND_PROB && s->w->family == IG_FAM_QUARK;
    const struct ig_sc_decl *d = quark ? s->w : s->kv;
    struct ig_link l = {.subject = IG_NONE, .object = m->object, .blob = IG_NONE};
    enum ig_sc_why why = module_why(s, m->kind);

    s->flags[m->object] |= IG_SCF_OBJECT;
    if (m->module_len == 0) {
        ig_sc_finding(s, m->object, "%s: a scale of an attention that the name does not tell",
                      ig_esc(o->name, o->name_len).s);
        return;
    }
    l.role = module_role(m->kind);
    /* A zero point comes before the scale, a bias after it. */
    l.stage = m->shifted || m->kind == IG_KIND_KV_BIAS ? 1 : 0;
    l.op = why == IG_WHY_KNOWN ? IG_OP_MULTIPLY : IG_OP_UNKNOWN;
    l.logical = d && d->kv.declared ? d->kv.logical : IG_F8_E4M3;
    l.packing = l.logical == IG_F4 ? IG_PACK_LOW_FIRST : IG_PACK_NONE;
    l.encoding = o->dtype == IG_F8_E8M0 ? IG_ENC_E8M0 : IG_ENC_VALUE;
    if (why == IG_WHY_KNOWN && !number(o->dtype)) {
        l.op = IG_OP_UNKNOWN;
        ig_sc_finding(s, m->object, "%s: dtype %s; a scale of an attention is F32, BF16 or F16",
                      ig_esc(o->name, o->name_len).s, ig_dtypes[o->dtype].name);
    } else if (why != IG_WHY_KNOWN) {
        ig_sc_tally(s, why, m->object);
    }
    set_shape(s, m, &l);
    if (d) {
        l.pointer = quark ? d->at_method : d->kv.at;
        l.pointer_len = (uint32_t)strlen(l.pointer);
        l.blob = d->blob;
    }
    l.module = ig_sc_copy(s, m->module, m->module_len);
    l.module_len = m->module_len;
    ig_sc_link(s, &l);
    if (m->kind != IG_KIND_KV_BOTH) return;
    l.role = IG_ROLE_KV_V;
    ig_sc_link(s, &l);
}
