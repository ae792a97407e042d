/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: from rows and configs to links and findings; O(n log n) in the rows. */
#include "convert/scales_private.h"

#include <stdlib.h>
#include <string.h>

/* A tensor that is called a scale, but whose weight is not here. */
static void orphan(struct ig_scan *s, const struct ig_sc_match *m)
{
    const struct ig_row *r = &s->in->rows[m->object];
    const bool declared = s->w->family != IG_FAM_NONE;
    bool sure;

    switch (m->kind) {
    case IG_KIND_FOREIGN: /* layer_scale, logit_scale and their like are weights */
        return;
    case IG_KIND_DOT_SCALE:
        sure = r->dtype == IG_F8_E8M0;
        break;
    case IG_KIND_BLOCK_SCALES:
        sure = s->w->family == IG_FAM_MXFP4;
        break;
    case IG_KIND_INPUT:
    case IG_KIND_ACT:
    case IG_KIND_OUTPUT:
        sure = declared;
        break;
    default:
        sure = true;
    }
    if (!sure) return;
    s->flags[m->object] |= IG_SCF_NAMED;
    ig_sc_finding(s, m->object, "%s: a scale, but the weight it belongs to is not here",
                  ig_esc(r->name, r->name_len).s);
}

/* Names that other tensors have too count only beside a quantised weight. */
static bool common_name(const struct ig_scan *s, const struct ig_sc_match *m)
{
    const uint32_t dtype = s->in->rows[m->subject].dtype;
    const bool bytes = dtype == IG_U8 || dtype == IG_I8 || ig_sc_quantised(dtype);

    switch (m->kind) {
    case IG_KIND_DOT_SCALE:
        return !bytes;
    case IG_KIND_INPUT:
    case IG_KIND_ACT:
    case IG_KIND_OUTPUT:
        return !bytes && s->w->family == IG_FAM_NONE;
    default:
        return false;
    }
}

static void find_links(struct ig_scan *s)
{
    for (uint32_t i = 0; i < s->in->nrows && !s->oom; i++) {
        const struct ig_sc_match m = ig_sc_match(s, i);
        if (m.kind == IG_KIND_NONE) continue;
        if (m.kind > IG_KIND_FOREIGN) {
            ig_sc_apply_module(s, &m);
        } else if (m.subject == IG_NONE) {
            orphan(s, &m);
        } else if (!common_name(s, &m)) {
            ig_sc_apply(s, &m);
        }
    }
}

static bool same_subject(const struct ig_link *a, const struct ig_link *b)
{
    return a->subject == b->subject &&
           ig_bytes_cmp(a->module, a->module_len, b->module, b->module_len) == 0;
}

/* Two scales at the same place of one chain: using both would be as wrong as choosing. */
static void refuse_doubles(struct ig_scan *s)
{
    struct ig_scales *out = s->out;

    for (uint32_t i = 1; i < out->nlinks; i++) {
        struct ig_link *a = &out->links[i - 1], *b = &out->links[i];
        if (!same_subject(a, b) || a->role != b->role || a->stage != b->stage) continue;
        if (a->role == IG_ROLE_ZERO_POINT || a->role == IG_ROLE_BIAS) continue;
        const struct ig_row *x = &s->in->rows[a->object], *y = &s->in->rows[b->object];
        a->op = b->op = IG_OP_UNKNOWN;
        ig_sc_finding(s, b->object, "%s and %s are scales of the same thing",
                      ig_esc(x->name, x->name_len).s, ig_esc(y->name, y->name_len).s);
    }
}

ingot_status ig_scales_find(const struct ig_scales_in *in, struct ig_scales *out, ingot_error *e)
{
    struct ig_scan s = {.in = in, .out = out, .budget = IG_SC_BUDGET};

    *out = (struct ig_scales){0};
    s.last[0].row = s.last[1].row = IG_NONE;
    s.flags = ig_array(in->nrows, 1);
    if (!s.flags) s.oom = true;
    if (!s.oom) ig_sc_config(&s);
    if (!s.oom && s.w->method) {
        out->method = strdup(s.w->method);
        if (!out->method) s.oom = true;
    }
    if (!s.oom) ig_sc_check_config(&s);
    if (!s.oom && s.w->family != IG_FAM_OPAQUE) find_links(&s);
    if (!s.oom && out->nlinks) qsort(out->links, out->nlinks, sizeof(*out->links), ig_link_cmp);
    if (!s.oom) refuse_doubles(&s);
    if (!s.oom) ig_sc_check(&s);

    free(s.flags);
    free(s.buf);
    free(s.decl[0].groups);
    if (!s.oom) return INGOT_OK;
    ig_scales_free(out);
    return ig_no_memory(e);
}

void ig_scales_free(struct ig_scales *s)
{
    for (uint32_t i = 0; i < s->nfindings; i++) free(s->findings[i].text);
    free(s->findings);
    free(s->links);
    free(s->method);
    ig_sc_strings_free(s->strings);
    *s = (struct ig_scales){0};
}
