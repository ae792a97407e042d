/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what the two configs say against each other, and methods that are only stored. */
#include "convert/scales_private.h"

#include <string.h>
#include <strings.h>

static const char *format_name(enum ig_sc_format f)
{
    static const char *const names[] = {"unknown", "FP8",   "INT8",           "NVFP4",
                                        "MXFP4",   "MXFP8", "packed integers"};

    return names[f];
}

/* What one file says about the weights, and where. */
static enum ig_sc_format stated(const struct ig_sc_decl *d, const char **what, const char **at)
{
    *what = d->algo ? d->algo : d->method;
    *at = d->algo ? d->at_algo : d->at_method;
    if (d->family != IG_FAM_CT || d->ngroups != 1) return d->scheme.format;
    return d->groups[0].scheme.format;
}

static void check_methods(struct ig_scan *s)
{
    const struct ig_sc_decl *a = &s->decl[0], *b = &s->decl[1];
    const char *what[2], *at[2];

    if (a->family == IG_FAM_NONE || b->family == IG_FAM_NONE) return;
    const enum ig_sc_format x = stated(a, &what[0], &at[0]), y = stated(b, &what[1], &at[1]);
    const bool named = a->algo && b->algo;
    const bool same = named ? !strcasecmp(a->algo, b->algo) : x == y;
    /* The same format divides with one producer and multiplies with the other. */
    if (same && (a->family == b->family || x != IG_FMT_NVFP4)) return;
    ig_sc_finding(s, IG_NONE,
                  "config.json and hf_quant_config.json disagree: %s is \"%s\" (%s), "
                  "%s is \"%s\" (%s)",
                  at[0], ig_esc(what[0], strlen(what[0])).s, format_name(x), at[1],
                  ig_esc(what[1], strlen(what[1])).s, format_name(y));
}

static void check_sizes(struct ig_scan *s)
{
    const struct ig_sc_decl *a = &s->decl[0], *b = &s->decl[1];
    const char *what, *at;

    if (a->family == IG_FAM_NONE || b->family == IG_FAM_NONE) return;
    if (stated(a, &what, &at) != stated(b, &what, &at)) return;
    const struct ig_sc_scheme *x = a->ngroups == 1 ? &a->groups[0].scheme : &a->scheme;
    const struct ig_sc_scheme *y = &b->scheme;
    if (x->group == y->group && x->block[0] == y->block[0] && x->block[1] == y->block[1]) return;
    ig_sc_finding(s, IG_NONE,
                  "config.json and hf_quant_config.json disagree: group %ju, block "
                  "%ju x %ju against group %ju, block %ju x %ju",
                  (uintmax_t)x->group, (uintmax_t)x->block[0], (uintmax_t)x->block[1],
                  (uintmax_t)y->group, (uintmax_t)y->block[0], (uintmax_t)y->block[1]);
}

static const char *kv_text(const struct ig_sc_decl *d)
{
    if (!d->kv.stated) return "says nothing";
    if (!d->kv.declared) return "says none";
    return d->kv.known ? ig_dtypes[d->kv.logical].name : "says an unknown form";
}

static void check_caches(struct ig_scan *s)
{
    const struct ig_sc_decl *a = &s->decl[0], *b = &s->decl[1];
    const bool both = a->kv.declared && b->kv.declared;
    const bool spoken = a->family != IG_FAM_NONE || a->kv.stated;

    if (!s->in->hf_quant || !spoken || (!b->kv.stated && b->family == IG_FAM_NONE)) return;
    if (both ? a->kv.logical == b->kv.logical && a->kv.known == b->kv.known
             : a->kv.declared == b->kv.declared) {
        return;
    }
    ig_sc_finding(s, IG_NONE,
                  "config.json and hf_quant_config.json disagree about the KV cache: "
                  "%s %s, %s %s",
                  a->kv.at ? a->kv.at : "config.json", kv_text(a),
                  b->kv.at ? b->kv.at : "hf_quant_config.json", kv_text(b));
}

/* B09: what is stored as it is and not looked into. */
static void check_opaque(struct ig_scan *s)
{
    static const char *const leaves[] = {"qweight", "qzeros", "scales",   "g_idx",
                                         "absmax",  "SCB",    "quant_map"};

    if (s->w->family != IG_FAM_OPAQUE && s->w->family != IG_FAM_NONE) return;
    for (uint32_t i = 0; i < s->in->nrows; i++) {
        const struct ig_row *r = &s->in->rows[i];
        bool hit = r->dtype == IG_U8 || r->dtype == IG_I8 || ig_sc_quantised(r->dtype);
        for (size_t k = 0; !hit && k < sizeof(leaves) / sizeof(leaves[0]); k++) {
            hit = ig_sc_leaf_is(r, leaves[k]);
        }
        if (!hit) continue;
        if (s->w->family == IG_FAM_OPAQUE) {
            ig_sc_finding(s, i, "method %s: tensors stored, not understood (the first is %s)",
                          ig_esc(s->w->method, strlen(s->w->method)).s,
                          ig_esc(r->name, r->name_len).s);
            return;
        }
        if (r->dtype != IG_U8 && r->dtype != IG_I8 && !ig_sc_quantised(r->dtype) &&
            !ig_sc_leaf_is(r, "scales")) {
            ig_sc_finding(s, i,
                          "%s: a tensor of a quantised checkpoint, but no config declares "
                          "its method",
                          ig_esc(r->name, r->name_len).s);
            return;
        }
    }
}

void ig_sc_check_config(struct ig_scan *s)
{
    if (s->w->family == IG_FAM_OTHER) {
        ig_sc_finding(s, IG_NONE, "%s: %s: method \"%s\" is not known", s->w->file, s->w->at_method,
                      ig_esc(s->w->method, strlen(s->w->method)).s);
    }
    check_methods(s);
    check_sizes(s);
    check_caches(s);
    check_opaque(s);
}
