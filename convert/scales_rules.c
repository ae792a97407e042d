/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale links: what a link of a weight or its activations says.  The operation follows
 * from what the producer declares, never from the tensor's name alone: weight_scale_inv
 * multiplies, weight_global_scale divides, weight_scale_2 multiplies.
 */
#include "convert/scales_private.h"

#include <string.h>

void ig_sc_tally(struct ig_scan *s, enum ig_sc_why why, uint32_t row)
{
    if (s->tally[why].count++ == 0) s->tally[why].first = row;
}

/* The operation that d declares for a kind of tensor. */
static enum ig_link_op declared_op(const struct ig_sc_decl *d, const struct ig_sc_scheme *scheme,
                                   enum ig_sc_kind kind, enum ig_sc_why *why)
{
    const bool nv = scheme->format == IG_FMT_NVFP4;
    bool multiply = false, divide = false;

    *why = IG_WHY_NAME;
    switch (d->family) {
    case IG_FAM_NONE:
        *why = IG_WHY_UNDECLARED;
        return IG_OP_UNKNOWN;
    case IG_FAM_OPAQUE:
    case IG_FAM_OTHER:
        *why = IG_WHY_METHOD;
        return IG_OP_UNKNOWN;
    case IG_FAM_FP8:
        multiply = kind == IG_KIND_SCALE || kind == IG_KIND_SCALE_INV || kind == IG_KIND_INPUT ||
                   kind == IG_KIND_ACT || (kind == IG_KIND_DOT_SCALE && d->ue8m0);
        break;
    case IG_FAM_CT:
        divide = nv && (kind == IG_KIND_GLOBAL || kind == IG_KIND_INPUT_GLOBAL);
        multiply = kind == IG_KIND_SCALE || kind == IG_KIND_INPUT ||
                   (kind == IG_KIND_OUTPUT && scheme->at_output);
        break;
    case IG_FAM_MODELOPT:
        multiply =
            kind == IG_KIND_SCALE || kind == IG_KIND_INPUT || (nv && kind == IG_KIND_SCALE_2);
        break;
    case IG_FAM_FBGEMM:
        multiply = kind == IG_KIND_SCALE;
        break;
    case IG_FAM_MXFP4:
        multiply = kind == IG_KIND_BLOCK_SCALES;
        break;
    case IG_FAM_QUARK:
        multiply = kind == IG_KIND_SCALE || kind == IG_KIND_INPUT || kind == IG_KIND_OUTPUT;
        break;
    }
    if (kind == IG_KIND_ZERO || kind == IG_KIND_INPUT_ZERO) {
        *why = IG_WHY_OFFSET;
    } else if ((multiply || divide) && scheme->format == IG_FMT_UNKNOWN) {
        *why = IG_WHY_FORMAT;
    } else if ((multiply || divide) && scheme->format == IG_FMT_PACKED_INT) {
        *why = IG_WHY_PACKED;
    } else if (multiply || divide) {
        *why = IG_WHY_KNOWN;
    }
    if (*why != IG_WHY_KNOWN) return IG_OP_UNKNOWN;
    return divide ? IG_OP_DIVIDE : IG_OP_MULTIPLY;
}

static bool four_bits(enum ig_sc_format f)
{
    return f == IG_FMT_NVFP4 || f == IG_FMT_MXFP4;
}

bool ig_sc_weight_fits(const struct ig_row *w, enum ig_sc_format format, bool experts)
{
    switch (format) {
    case IG_FMT_FP8:
    case IG_FMT_MXFP8:
        return ig_sc_quantised(w->dtype) && ig_dtypes[w->dtype].bits == 8;
    case IG_FMT_INT8:
        return w->dtype == IG_I8;
    case IG_FMT_NVFP4:
    case IG_FMT_MXFP4:
        return w->dtype == IG_U8 || w->dtype == IG_F4 || (experts && w->dtype == IG_I8);
    case IG_FMT_PACKED_INT:
        return w->dtype == IG_I32;
    default:
        return true;
    }
}

/* Is the scale stored as a number, or as an exponent where exponents are declared? */
static bool scale_fits(const struct ig_row *o, const struct ig_sc_scheme *scheme, bool ue8m0,
                       enum ig_sc_kind kind)
{
    const bool mx = scheme->format == IG_FMT_MXFP4 || scheme->format == IG_FMT_MXFP8;
    const bool block = kind != IG_KIND_INPUT && kind != IG_KIND_ACT &&
                       kind != IG_KIND_INPUT_GLOBAL && kind != IG_KIND_OUTPUT;

    switch (o->dtype) {
    case IG_F32:
    case IG_F16:
    case IG_BF16:
    case IG_F64:
        return !(mx && block);
    case IG_F8_E4M3:
        return scheme->format == IG_FMT_NVFP4 && kind == IG_KIND_SCALE;
    case IG_F8_E8M0:
        return block && scheme->format != IG_FMT_NVFP4 && scheme->format != IG_FMT_INT8;
    case IG_U8:
        return block && (mx || ue8m0);
    default:
        return false;
    }
}

static uint32_t role_of(const struct ig_row *o, enum ig_sc_kind kind)
{
    size_t n;
    const char *leaf = ig_sc_leaf(o, &n);

    switch (kind) {
    case IG_KIND_SCALE_2:
    case IG_KIND_GLOBAL:
        return IG_ROLE_GLOBAL;
    case IG_KIND_ZERO:
    case IG_KIND_INPUT_ZERO:
        return IG_ROLE_ZERO_POINT;
    case IG_KIND_INPUT:
    case IG_KIND_ACT:
    case IG_KIND_INPUT_GLOBAL:
        return IG_ROLE_INPUT;
    case IG_KIND_OUTPUT:
        return IG_ROLE_OUTPUT;
    case IG_KIND_FOREIGN: /* a guess that binds nobody: the operation stays unknown */
        if (memmem(leaf, n, "input", 5) || memmem(leaf, n, "act", 3)) return IG_ROLE_INPUT;
        return memmem(leaf, n, "output", 6) ? IG_ROLE_OUTPUT : IG_ROLE_WEIGHT;
    default:
        return IG_ROLE_WEIGHT;
    }
}

static const char *pointer_of(const struct ig_sc_scheme *scheme, const struct ig_link *l,
                              enum ig_sc_kind kind)
{
    const bool grid = l->gran == IG_GRAN_BLOCK || l->gran == IG_GRAN_GROUP;

    if (kind == IG_KIND_INPUT_GLOBAL || l->role == IG_ROLE_GLOBAL) return scheme->at_global;
    if (l->role == IG_ROLE_INPUT || kind == IG_KIND_INPUT_ZERO) return scheme->at_input;
    if (l->role == IG_ROLE_OUTPUT) return scheme->at_output;
    return grid && scheme->block[0] && scheme->at_block ? scheme->at_block : scheme->at_weight;
}

/* Granularity and block; a finding when the shape fits nothing. */
static void set_shape(struct ig_scan *s, const struct ig_sc_match *m,
                      const struct ig_sc_scheme *scheme, struct ig_link *l)
{
    const struct ig_row *w = &s->in->rows[m->subject], *o = &s->in->rows[m->object];
    const bool packed = l->logical == IG_F4 && w->dtype != IG_F4;
    const bool words = scheme->format == IG_FMT_PACKED_INT && scheme->bits && w->dtype == IG_I32;
    struct ig_sc_dims dims = ig_sc_dims(w, packed, m->kind == IG_KIND_BLOCK_SCALES);
    const bool whole = l->role == IG_ROLE_INPUT || l->role == IG_ROLE_OUTPUT ||
                       l->role == IG_ROLE_GLOBAL || m->kind == IG_KIND_INPUT_ZERO;
    struct ig_sc_fit fit = {.single = whole};

    if (!whole) {
        fit.group = scheme->group;
        fit.block[0] = scheme->block[0];
        fit.block[1] = scheme->block[1];
        fit.guess = l->encoding == IG_ENC_E8M0 ? 32 : 0;
        /* AutoFP8's weight_scale may stand beside another layer's weight_scale_inv. */
        fit.strict = (fit.group || fit.block[0]) && m->kind != IG_KIND_FOREIGN &&
                     !(s->w->family == IG_FAM_FP8 && m->kind == IG_KIND_SCALE);
    }
    /* Bytes and words whose meaning nobody declared have no logical shape to compare with, and
     * zero points of packed integers are packed themselves. */
    const bool opaque =
        ((w->dtype == IG_U8 || w->dtype == IG_I32) && l->logical != IG_F4 && !words) ||
        (words && m->kind == IG_KIND_ZERO);
    if (words && __builtin_mul_overflow(dims.k, 32 / scheme->bits, &dims.k)) dims.matrix = false;
    l->gran = ig_sc_granularity(&dims, o, &fit, l->block);
    if (opaque && l->gran != IG_GRAN_TENSOR) {
        l->gran = IG_GRAN_UNKNOWN;
        l->block[0] = l->block[1] = 0;
    } else if (l->gran == IG_GRAN_UNKNOWN && m->kind != IG_KIND_FOREIGN) {
        char want[96] = "";
        if (fit.group) {
            snprintf(want, sizeof(want), " with one for every %ju of a row", (uintmax_t)fit.group);
        } else if (fit.block[0]) {
            snprintf(want, sizeof(want), " in blocks of %ju x %ju", (uintmax_t)fit.block[0],
                     (uintmax_t)fit.block[1]);
        }
        ig_sc_finding(s, m->object, "%s: shape %s does not fit the shape %s of %s%s",
                      ig_esc(o->name, o->name_len).s, ig_sc_shape(o).s, ig_sc_shape(w).s,
                      ig_esc(w->name, w->name_len).s, want);
    }
}

static void report_unknown(struct ig_scan *s, const struct ig_sc_match *m, enum ig_sc_why why)
{
    const struct ig_row *w = &s->in->rows[m->subject], *o = &s->in->rows[m->object];

    if (why == IG_WHY_NAME) {
        const char *method = s->w->method ? s->w->method : "known";
        ig_sc_finding(s, m->object,
                      "%s: looks like a scale of %s, but the %s method writes none of this name; "
                      "what it does is unknown",
                      ig_esc(o->name, o->name_len).s, ig_esc(w->name, w->name_len).s,
                      ig_esc(method, strlen(method)).s);
    } else if (why == IG_WHY_DTYPE) {
        ig_sc_finding(s, m->object, "%s: dtype %s beside %s of dtype %s is not what %s %s declares",
                      ig_esc(o->name, o->name_len).s, ig_dtypes[o->dtype].name,
                      ig_esc(w->name, w->name_len).s, ig_dtypes[w->dtype].name, s->w->file,
                      s->w->at_method ? s->w->at_method : "");
    } else if (why != IG_WHY_KNOWN) {
        ig_sc_tally(s, why, m->object);
    }
}

void ig_sc_apply(struct ig_scan *s, const struct ig_sc_match *m)
{
    const struct ig_row *w = &s->in->rows[m->subject], *o = &s->in->rows[m->object];
    const struct ig_sc_decl *other = s->w == &s->decl[0] ? &s->decl[1] : &s->decl[0];
    const struct ig_sc_scheme scheme = ig_sc_scheme_of(s, s->w, w);
    const bool foreign = m->kind == IG_KIND_FOREIGN, four = four_bits(scheme.format);
    const bool global = m->kind == IG_KIND_SCALE_2 || m->kind == IG_KIND_GLOBAL;
    struct ig_link l = {.subject = m->subject, .object = m->object, .blob = IG_NONE};
    enum ig_sc_why why, second;

    l.role = role_of(o, m->kind);
    l.op = declared_op(s->w, &scheme, m->kind, &why);
    l.stage = (global ? 1 : 0) + (m->shifted ? 1 : 0);
    l.logical = four && (w->dtype == IG_U8 || w->dtype == IG_I8) ? IG_F4 : w->dtype;
    l.packing = l.logical == IG_F4 ? IG_PACK_LOW_FIRST : IG_PACK_NONE;
    const bool fp = ig_sc_quantised(l.logical);
    l.encoding = o->dtype == IG_F8_E8M0 || (o->dtype == IG_U8 && fp && l.role == IG_ROLE_WEIGHT)
                     ? IG_ENC_E8M0
                     : IG_ENC_VALUE;
    if (foreign) why = IG_WHY_NAME;
    if (why == IG_WHY_KNOWN && (!ig_sc_weight_fits(w, scheme.format, s->w->at_expert != NULL) ||
                                !scale_fits(o, &scheme, s->w->ue8m0, m->kind))) {
        why = IG_WHY_DTYPE;
    }
    if (why == IG_WHY_KNOWN && other->family != IG_FAM_NONE) {
        const struct ig_sc_scheme theirs = ig_sc_scheme_of(s, other, w);
        if (declared_op(other, &theirs, m->kind, &second) != l.op) why = IG_WHY_DISAGREE;
    }
    if (why != IG_WHY_KNOWN) l.op = IG_OP_UNKNOWN;
    set_shape(s, m, &scheme, &l);
    if (l.gran == IG_GRAN_UNKNOWN && why == IG_WHY_KNOWN) l.op = IG_OP_UNKNOWN;
    if (why != IG_WHY_NAME && why != IG_WHY_UNDECLARED)
        l.pointer = pointer_of(&scheme, &l, m->kind);
    if (l.pointer) {
        l.pointer_len = (uint32_t)strlen(l.pointer);
        l.blob = s->w->blob;
    }
    report_unknown(s, m, why);
    if (scheme.format == IG_FMT_NVFP4) s->flags[m->subject] |= IG_SCF_NVFP4;
    if (l.role == IG_ROLE_WEIGHT) s->flags[m->subject] |= IG_SCF_SCALED;
    if (l.role == IG_ROLE_GLOBAL) s->flags[m->subject] |= IG_SCF_GLOBAL;
    s->flags[m->object] |= IG_SCF_OBJECT;
    ig_sc_link(s, &l);
}
