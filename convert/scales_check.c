/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what is missing, as far as names, dtypes and shapes tell. */
#include "convert/scales_private.h"

#include <stdlib.h>
#include <string.h>

/* Should this row have a scale? */
static bool is_weight(const struct ig_scan *s, uint32_t i)
{
    const struct ig_row *r = &s->in->rows[i];
    const enum ig_sc_family f = s->w->family;
    const bool packed = ig_sc_leaf_is(r, "weight_packed");

    if (s->flags[i] & (IG_SCF_OBJECT | IG_SCF_NAMED) || r->bytes == 0) return false;
    if (ig_sc_quantised(r->dtype)) return true;
    if (f == IG_FAM_NONE || f == IG_FAM_OTHER) return false;
    if (r->dtype == IG_I32) return packed && f == IG_FAM_CT;
    if (r->dtype != IG_U8 && r->dtype != IG_I8) return false;
    size_t n;
    const char *leaf = ig_sc_leaf(r, &n);
    const bool blocks = n > 7 && !memcmp(leaf + n - 7, "_blocks", 7);
    return packed || ig_sc_leaf_is(r, "weight") || (blocks && f == IG_FAM_MXFP4);
}

static void check_weights(struct ig_scan *s)
{
    bool unread = false;

    for (uint32_t i = 0; i < s->in->nrows; i++) {
        const struct ig_row *r = &s->in->rows[i];
        if (r->dtype == IG_F8_E8M0 && !(s->flags[i] & (IG_SCF_OBJECT | IG_SCF_NAMED))) {
            ig_sc_finding(s, i, "%s: dtype F8_E8M0, a scale, but of no tensor that is here",
                          ig_esc(r->name, r->name_len).s);
        }
        if (!is_weight(s, i)) continue;
        if (!(s->flags[i] & IG_SCF_SCALED)) {
            if (ig_sc_ignored(s, r->name, ig_sc_module_of(r))) continue;
            ig_sc_finding(s, i, "%s: dtype %s, but no scale for it", ig_esc(r->name, r->name_len).s,
                          ig_dtypes[r->dtype].name);
            unread = s->pattern_unread;
        } else if ((s->flags[i] & (IG_SCF_NVFP4 | IG_SCF_GLOBAL)) == IG_SCF_NVFP4) {
            ig_sc_finding(s, i, "%s: NVFP4, but no global scale for it",
                          ig_esc(r->name, r->name_len).s);
        }
    }
    if (unread) {
        ig_sc_finding(s, IG_NONE,
                      "the config has patterns of module names that were not understood");
    }
}

static void report_tally(struct ig_scan *s)
{
    static const char *const text[IG_WHYS] = {
        [IG_WHY_UNDECLARED] = "scales, but neither config.json nor hf_quant_config.json declares a "
                              "method: what they do is unknown",
        [IG_WHY_METHOD] = "scales of a method that is not known: what they do is unknown",
        [IG_WHY_FORMAT] = "scales whose format is not declared in a known form",
        [IG_WHY_DISAGREE] = "scales that config.json and hf_quant_config.json use differently",
        [IG_WHY_OFFSET] = "zero points or biases: offsets, which no operation of a link expresses",
        [IG_WHY_PACKED] = "scales of integers packed in 32-bit words: stored, not understood",
        [IG_WHY_KV_UNDECLARED] = "scales of an attention or KV cache that no config declares",
        [IG_WHY_KV_UNKNOWN] = "scales of a KV cache that is declared in no known form",
    };

    for (int why = IG_WHY_UNDECLARED; why < IG_WHYS; why++) {
        if (!s->tally[why].count) continue;
        const struct ig_row *r = &s->in->rows[s->tally[why].first];
        ig_sc_finding(s, s->tally[why].first, "%ju %s (the first is %s)",
                      (uintmax_t)s->tally[why].count, text[why], ig_esc(r->name, r->name_len).s);
    }
}

/* B09: the config says quantised, the tensors do not. */
static bool is_stale(const struct ig_scan *s)
{
    if (s->w->family == IG_FAM_NONE) return false;
    for (uint32_t i = 0; i < s->in->nrows; i++) {
        const struct ig_row *r = &s->in->rows[i];
        const bool byte = r->dtype == IG_U8 || r->dtype == IG_I8 || r->dtype == IG_F8_E8M0;
        const bool words = r->dtype == IG_I32 &&
                           (ig_sc_leaf_is(r, "qweight") || ig_sc_leaf_is(r, "weight_packed"));
        if (byte || words || ig_sc_quantised(r->dtype)) return false;
        if (s->flags[i] & (IG_SCF_NAMED | IG_SCF_OBJECT)) return false;
    }
    return true;
}

void ig_sc_check(struct ig_scan *s)
{
    s->out->stale = is_stale(s);
    report_tally(s);
    if (s->w->family != IG_FAM_OPAQUE) {
        check_weights(s);
        ig_sc_check_kv(s);
    }
    if (s->unlisted) { /* the last one listed makes room for the count */
        struct ig_finding *last = &s->out->findings[s->out->nfindings - 1];
        char *text = ig_format("%ju more findings are not listed", (uintmax_t)s->unlisted + 1);
        if (!text) {
            s->oom = true;
            return;
        }
        free(last->text);
        *last = (struct ig_finding){.text = text, .row = IG_NONE};
    }
}
