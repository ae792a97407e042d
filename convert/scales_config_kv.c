/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what a config declares for the KV cache. */
#include "convert/scales_private.h"

#include <string.h>

static bool is_none(const char *name)
{
    return !strcmp(name, "none") || !strcmp(name, "NONE") || !strcmp(name, "None") ||
           !strcmp(name, "auto");
}

static void known(struct ig_sc_decl *d, uint32_t logical)
{
    d->kv.known = true;
    d->kv.logical = logical;
}

/* ModelOpt: a name. */
static void read_algo(struct ig_scan *s, struct ig_sc_decl *d, const json_t *v, const char *at)
{
    const char *name = json_string_value(v);

    d->kv.stated = true;
    if (json_is_null(v) || (name && is_none(name))) return;
    d->kv.declared = true;
    d->kv.at = at;
    if (ig_sc_is(v, "FP8")) {
        known(d, IG_F8_E4M3);
    } else if (ig_sc_is(v, "INT8")) {
        known(d, IG_I8);
    } else if (ig_sc_is(v, "NVFP4")) {
        known(d, IG_F4);
    } else if (!name) {
        ig_sc_finding(s, IG_NONE, "%s: %s: expected a string", d->file, at);
    }
}

/* AutoFP8: a word; compressed-tensors and later ModelOpt: numbers. */
static void read_scheme(struct ig_scan *s, struct ig_sc_decl *d, const json_t *v, const char *at)
{
    const char *name = json_string_value(v);
    const uint64_t bits = ig_sc_positive(json_object_get(v, "num_bits"));
    const bool real = ig_sc_is(json_object_get(v, "type"), "float");

    d->kv.stated = true;
    if (json_is_null(v) || (name && is_none(name))) return;
    d->kv.declared = true;
    d->kv.at = at;
    d->kv.dynamic = ig_sc_is(v, "dynamic") || json_is_true(json_object_get(v, "dynamic"));
    if (ig_sc_is(v, "static") || ig_sc_is(v, "dynamic") || (bits == 8 && real)) {
        known(d, IG_F8_E4M3);
    } else if (bits == 8 && ig_sc_is(json_object_get(v, "type"), "int")) {
        known(d, IG_I8);
    } else if (bits == 4 && real) {
        known(d, IG_F4);
    } else if (!name && !json_is_object(v)) {
        ig_sc_finding(s, IG_NONE, "%s: %s: expected a word or an object", d->file, at);
    }
}

/* Quark names the modules whose outputs go to the cache. */
static void read_quark(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base)
{
    const json_t *group = json_object_get(json_object_get(q, "export"), "kv_cache_group");
    const json_t *config = json_object_get(q, "kv_cache_quant_config");

    if (json_array_size(group) == 0 && json_object_size(config) == 0) return;
    d->kv.stated = d->kv.declared = true;
    d->kv.at = json_array_size(group) ? ig_sc_text(s, "%s/export/kv_cache_group", base)
                                      : ig_sc_text(s, "%s/kv_cache_quant_config", base);
    known(d, IG_F8_E4M3);
}

void ig_sc_config_kv(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base)
{
    const json_t *algo = json_object_get(q, "kv_cache_quant_algo");
    const json_t *scheme = json_object_get(q, "kv_cache_scheme");

    if (!d->kv.logical) d->kv.logical = IG_F8_E4M3;
    if (algo) read_algo(s, d, algo, ig_sc_text(s, "%s/kv_cache_quant_algo", base));
    if (scheme && !d->kv.declared) {
        read_scheme(s, d, scheme, ig_sc_text(s, "%s/kv_cache_scheme", base));
    }
    if (d->family == IG_FAM_QUARK && !d->kv.declared) read_quark(s, d, q, base);
}
