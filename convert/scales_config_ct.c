/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: the config groups of compressed-tensors, and which one a module belongs to. */
#include "convert/scales_private.h"

#include <stdlib.h>
#include <string.h>

static enum ig_sc_format by_name(const json_t *format)
{
    static const struct {
        const char *name;
        enum ig_sc_format format;
    } known[] = {
        {"float-quantized", IG_FMT_FP8},        {"int-quantized", IG_FMT_INT8},
        {"nvfp4-pack-quantized", IG_FMT_NVFP4}, {"mxfp4-pack-quantized", IG_FMT_MXFP4},
        {"mxfp8-quantized", IG_FMT_MXFP8},      {"pack-quantized", IG_FMT_PACKED_INT},
        {"marlin-24", IG_FMT_PACKED_INT},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (ig_sc_is(format, known[i].name)) return known[i].format;
    }
    return IG_FMT_UNKNOWN;
}

/* Where the format's name says nothing, the weights' numbers do. */
static enum ig_sc_format by_args(const json_t *format, const json_t *weights)
{
    const bool open = !json_is_string(format) || ig_sc_is(format, "naive-quantized") ||
                      ig_sc_is(format, "mixed-precision");

    if (!open || ig_sc_positive(json_object_get(weights, "num_bits")) != 8) return IG_FMT_UNKNOWN;
    if (ig_sc_is(json_object_get(weights, "type"), "int")) return IG_FMT_INT8;
    if (!ig_sc_is(json_object_get(weights, "type"), "float")) return IG_FMT_UNKNOWN;
    return ig_sc_is(json_object_get(weights, "scale_dtype"), "torch.uint8") ? IG_FMT_MXFP8
                                                                            : IG_FMT_FP8;
}

/* at: their pointer, or NULL. */
static void read_weights(struct ig_scan *s, const struct ig_sc_decl *d, const json_t *weights,
                         const char *at, struct ig_sc_scheme *out)
{
    const json_t *group = json_object_get(weights, "group_size");
    const json_t *strategy = json_object_get(weights, "strategy");
    const json_t *block = json_object_get(weights, "block_structure");
    const bool mx = out->format == IG_FMT_MXFP4 || out->format == IG_FMT_MXFP8;

    if (ig_sc_is(strategy, "block")) {
        out->at_block = ig_sc_pointer_to(s, at, weights, "block_structure", out->at_weight);
        ig_sc_pair(s, d, block, out->at_block, out->block);
    } else if (ig_sc_is(strategy, "group") || ig_sc_is(strategy, "tensor_group")) {
        out->group = ig_sc_positive(group);
        if (!out->group && group && !json_is_null(group)) {
            ig_sc_finding(s, IG_NONE, "%s: %s/group_size: expected a positive integer", d->file,
                          out->at_weight);
        }
    }
    const uint64_t bits = ig_sc_positive(json_object_get(weights, "num_bits"));
    if (out->format == IG_FMT_PACKED_INT && bits <= 32 && bits && 32 % bits == 0) {
        out->bits = (uint32_t)bits;
    }
    if (!out->group && (mx || out->format == IG_FMT_NVFP4)) out->group = mx ? 32 : 16;
}

/* here: its pointer, or NULL, and then what holds it stands for it. */
static void read_group(struct ig_scan *s, const struct ig_sc_decl *d, const json_t *q,
                       const char *base, const char *groups, const char *here, const json_t *g,
                       struct ig_sc_group *out)
{
    const char *at = here ? here : groups;
    const json_t *weights = json_object_get(g, "weights");
    const json_t *format = json_object_get(g, "format"), *outer = json_object_get(q, "format");
    const bool own = json_is_string(format);

    out->targets = json_object_get(g, "targets");
    if (!own) format = outer;
    out->scheme.format = by_name(format);
    if (out->scheme.format == IG_FMT_UNKNOWN) out->scheme.format = by_args(format, weights);
    out->scheme.at_global = ig_sc_pointer_to(s, own ? here : base, own ? g : q, "format", at);
    out->scheme.at_input = at;
    out->scheme.at_weight = at;
    if (json_is_object(weights)) {
        const char *own_at = ig_sc_pointer_to(s, here, g, "weights", NULL);
        if (own_at) out->scheme.at_weight = own_at;
        read_weights(s, d, weights, own_at, &out->scheme);
    } else if (weights && !json_is_null(weights)) {
        ig_sc_finding(s, IG_NONE, "%s: %s/weights: expected an object", d->file, at);
    }
    if (json_is_object(json_object_get(g, "input_activations"))) {
        out->scheme.at_input = ig_sc_pointer_to(s, here, g, "input_activations", at);
    }
    if (json_is_object(json_object_get(g, "output_activations"))) {
        out->scheme.at_output = ig_sc_pointer_to(s, here, g, "output_activations", at);
    }
}

void ig_sc_config_ct(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base)
{
    const json_t *groups = json_object_get(q, "config_groups");
    const char *at = ig_sc_text(s, "%s/config_groups", base);
    const char *key;
    json_t *g;

    if (!json_is_object(groups)) {
        if (groups && !json_is_null(groups)) {
            ig_sc_finding(s, IG_NONE, "%s: %s: expected an object", d->file, at);
        }
        return;
    }
    size_t n = json_object_size(groups);
    if (n > IG_SC_MAX_GROUPS) {
        ig_sc_finding(s, IG_NONE, "%s: %s: %zu groups, only the first %d are read", d->file, at, n,
                      IG_SC_MAX_GROUPS);
        n = IG_SC_MAX_GROUPS;
    }
    d->groups = ig_array(n, sizeof(*d->groups));
    if (!d->groups) {
        s->oom = true;
        return;
    }
    json_object_foreach((json_t *)groups, key, g)
    {
        if (d->ngroups == n) break;
        const char *here = ig_sc_pointer_key(s, at, key);
        if (json_is_object(g)) {
            read_group(s, d, q, base, at, here, g, &d->groups[d->ngroups++]);
        } else {
            ig_sc_finding(s, IG_NONE, "%s: %s: expected an object", d->file, here ? here : at);
        }
    }
}

/* 2: by name or pattern, 0: not, 1: perhaps, by the name of a class, which tensors do not show,
 * or by a pattern that is not read. */
static int targets_module(struct ig_scan *s, const json_t *targets, const char *module, size_t len)
{
    int best = 0;

    for (size_t i = 0; i < json_array_size(targets); i++) {
        const json_t *v = json_array_get(targets, i);
        const char *t = json_string_value(v);
        const size_t n = json_string_length(v);
        if (s->budget == 0) return 1; /* nobody names modules with that much effort */
        s->budget--;
        if (!t) continue;
        if (n > 3 && !memcmp(t, "re:", 3)) {
            const int hit = ig_sc_regex(t + 3, n - 3, module, len, &s->budget);
            if (hit > 0) return 2;
            if (hit < 0) s->pattern_unread = true;
            if (hit < 0) best = 1;
        } else if (n == len && !memcmp(t, module, n)) {
            return 2;
        } else if (!memchr(t, '.', n)) {
            best = 1;
        }
    }
    return best;
}

static const struct ig_sc_scheme *ct_scheme(struct ig_scan *s, const struct ig_sc_decl *d,
                                            const struct ig_row *w, size_t len)
{
    const struct ig_sc_scheme *best = NULL;
    bool fits = false;

    if (d->ngroups == 1) return &d->groups[0].scheme;
    for (uint32_t i = 0; i < d->ngroups; i++) {
        const struct ig_sc_scheme *scheme = &d->groups[i].scheme;
        const int hit = targets_module(s, d->groups[i].targets, w->name, len);
        if (hit == 2) return scheme;
        /* Of those that may mean this module, the first whose format the weight has. */
        if (hit == 0 || fits) continue;
        fits = ig_sc_weight_fits(w, scheme->format, false);
        if (fits || !best) best = scheme;
    }
    return best;
}

/* ModelOpt's mixed precision names an algorithm for each module. */
static struct ig_sc_scheme layer_scheme(struct ig_scan *s, const struct ig_sc_decl *d,
                                        const char *module, size_t len)
{
    struct ig_sc_scheme out = {0};

    if (len >= s->buf_cap) {
        char *p = realloc(s->buf, len + 1);
        if (!p) {
            s->oom = true;
            return out;
        }
        s->buf = p;
        s->buf_cap = len + 1;
    }
    memcpy(s->buf, module, len);
    s->buf[len] = 0;
    const json_t *layer = json_object_get(d->layers, s->buf);
    if (!json_is_object(layer)) return out;
    ig_sc_algo(json_string_value(json_object_get(layer, "quant_algo")),
               ig_sc_positive(json_object_get(layer, "group_size")), &out);
    const char *at = ig_sc_pointer_key(s, d->at_layers, s->buf);
    out.at_weight = ig_sc_pointer_to(s, at, layer, "quant_algo", at ? at : d->at_layers);
    out.at_input = out.at_global = out.at_weight;
    return out;
}

static struct ig_sc_scheme look_up(struct ig_scan *s, const struct ig_sc_decl *d,
                                   const struct ig_row *w)
{
    const size_t len = ig_sc_module_of(w);
    const bool bytes = w->dtype == IG_I8 || w->dtype == IG_U8 || w->dtype == IG_F4;
    struct ig_sc_scheme scheme = d->scheme;

    if (d->family == IG_FAM_CT) {
        const struct ig_sc_scheme *group = ct_scheme(s, d, w, len);
        scheme = group ? *group : (struct ig_sc_scheme){0};
    } else if (d->layers && d->scheme.format == IG_FMT_UNKNOWN) {
        scheme = layer_scheme(s, d, w->name, len);
    } else if (d->family == IG_FAM_FP8 && d->at_expert && bytes) {
        /* DeepSeek-V4: the experts have a format of their own. */
        scheme = (struct ig_sc_scheme){.format = IG_FMT_MXFP4,
                                       .group = 32,
                                       .at_weight = d->at_expert,
                                       .at_input = scheme.at_input};
    }
    return scheme;
}

/* Rows come in the order of names, so the tensors of one module ask one after another. */
struct ig_sc_scheme ig_sc_scheme_of(struct ig_scan *s, const struct ig_sc_decl *d,
                                    const struct ig_row *w)
{
    const int slot = d == &s->decl[1];
    const uint32_t row = (uint32_t)(w - s->in->rows);

    if (s->last[slot].row != row) {
        s->last[slot].scheme = look_up(s, d, w);
        s->last[slot].row = row;
    }
    return s->last[slot].scheme;
}
