/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale links: what config.json and hf_quant_config.json declare, one shape for all
 * producers.  Values are hostile: each is taken only in the form expected of it, and
 * whatever else stands there becomes a finding.
 */
#include "convert/scales_private.h"

#include <stdlib.h>
#include <string.h>

bool ig_sc_is(const json_t *v, const char *text)
{
    const size_t n = strlen(text);

    return json_is_string(v) && json_string_length(v) == n &&
           !memcmp(json_string_value(v), text, n);
}

uint64_t ig_sc_positive(const json_t *v)
{
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;

    return n >= 1 && n <= INT32_MAX ? (uint64_t)n : 0;
}

/* A member that is there and not null. */
const json_t *ig_sc_member(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_null(v) ? NULL : v;
}

void ig_sc_pair(struct ig_scan *s, const struct ig_sc_decl *d, const json_t *v, const char *at,
                uint64_t out[2])
{
    out[0] = ig_sc_positive(json_array_get(v, 0));
    out[1] = ig_sc_positive(json_array_get(v, 1));
    if (json_array_size(v) == 2 && out[0] && out[1]) return;
    out[0] = out[1] = 0;
    ig_sc_finding(s, IG_NONE, "%s: %s: expected two positive integers", d->file, at);
}

const char *ig_sc_pointer_key(struct ig_scan *s, const char *base, const char *key)
{
    char escaped[2 * IG_ESC_MAX + 1];
    size_t n = 0;

    /* A pointer is stored with every link, so a key of megabytes is not put into one. */
    if (strlen(key) > IG_ESC_MAX) return NULL;
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            escaped[n++] = '~';
            escaped[n++] = *key == '~' ? '0' : '1';
        } else {
            escaped[n++] = *key;
        }
    }
    escaped[n] = 0;
    return ig_sc_text(s, "%s/%s", base, escaped);
}

const char *ig_sc_pointer_to(struct ig_scan *s, const char *base, const json_t *object,
                             const char *key, const char *otherwise)
{
    if (!base || !json_object_get(object, key)) return otherwise;
    return ig_sc_text(s, "%s/%s", base, key);
}

static enum ig_sc_family family_of(const char *method)
{
    static const struct {
        const char *name;
        enum ig_sc_family family;
    } known[] = {
        {"fp8", IG_FAM_FP8},
        {"compressed-tensors", IG_FAM_CT},
        {"compressed_tensors", IG_FAM_CT},
        {"modelopt", IG_FAM_MODELOPT},
        {"modelopt_fp4", IG_FAM_MODELOPT},
        {"modelopt_mixed", IG_FAM_MODELOPT},
        {"fbgemm_fp8", IG_FAM_FBGEMM},
        {"mxfp4", IG_FAM_MXFP4},
        {"quark", IG_FAM_QUARK},
        {"gptq", IG_FAM_OPAQUE},
        {"gptq_marlin", IG_FAM_OPAQUE},
        {"awq", IG_FAM_OPAQUE},
        {"awq_marlin", IG_FAM_OPAQUE},
        {"bitsandbytes", IG_FAM_OPAQUE},
        {"hqq", IG_FAM_OPAQUE},
        {"aqlm", IG_FAM_OPAQUE},
        {"eetq", IG_FAM_OPAQUE},
        {"quanto", IG_FAM_OPAQUE},
        {"vptq", IG_FAM_OPAQUE},
        {"spqr", IG_FAM_OPAQUE},
        {"higgs", IG_FAM_OPAQUE},
        {"torchao", IG_FAM_OPAQUE},
        {"bitnet", IG_FAM_OPAQUE},
        {"auto-round", IG_FAM_OPAQUE},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!strcmp(method, known[i].name)) return known[i].family;
    }
    return IG_FAM_OTHER;
}

static void read_fp8(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base)
{
    const json_t *block = ig_sc_member(q, "weight_block_size");

    d->scheme.format = IG_FMT_FP8;
    if (block) {
        d->scheme.at_block = ig_sc_text(s, "%s/weight_block_size", base);
        ig_sc_pair(s, d, block, d->scheme.at_block, d->scheme.block);
    }
    if (json_is_string(ig_sc_member(q, "activation_scheme"))) {
        d->scheme.at_input = ig_sc_text(s, "%s/activation_scheme", base);
    }
    d->ue8m0 = ig_sc_is(ig_sc_member(q, "scale_fmt"), "ue8m0");
    if (ig_sc_is(ig_sc_member(q, "expert_dtype"), "fp4")) {
        d->at_expert = ig_sc_text(s, "%s/expert_dtype", base);
    } else if (ig_sc_is(ig_sc_member(s->in->config, "expert_dtype"), "fp4")) {
        d->at_expert = "/expert_dtype";
    }
}

static void read_quark(struct ig_sc_decl *d, const json_t *q)
{
    const json_t *weight = ig_sc_member(ig_sc_member(q, "global_quant_config"), "weight");
    const char *dtype = json_string_value(ig_sc_member(weight, "dtype"));

    d->scheme.format = IG_FMT_FP8;
    if (dtype && !strcmp(dtype, "fp4")) {
        d->scheme.format = IG_FMT_MXFP4;
        d->scheme.group = 32;
    } else if (dtype && !strcmp(dtype, "int8")) {
        d->scheme.format = IG_FMT_INT8;
    } else if (dtype && strncmp(dtype, "fp8", 3)) {
        d->scheme.format = IG_FMT_UNKNOWN;
    }
}

static void read_method(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base)
{
    const json_t *method = ig_sc_member(q, "quant_method");

    if (method && !json_is_string(method)) {
        ig_sc_finding(s, IG_NONE, "%s: %s/quant_method: expected a string", d->file, base);
    }
    d->method = json_string_value(method);
    if (!d->method && (json_is_true(ig_sc_member(q, "load_in_4bit")) ||
                       json_is_true(ig_sc_member(q, "load_in_8bit")))) {
        d->method = "bitsandbytes"; /* its first configs named no method */
    }
    if (!d->method) return;
    d->at_method = ig_sc_text(s, "%s/quant_method", base);
    d->family = family_of(d->method);
    d->scheme.at_weight = d->scheme.at_input = d->scheme.at_global = d->at_method;
    if (d->family == IG_FAM_QUARK) d->scheme.at_output = d->at_method;
}

void ig_sc_config_ignore(struct ig_sc_decl *d, const json_t *q)
{
    static const char *const keys[IG_SC_MAX_IGNORE] = {
        "ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules", "exclude"};

    for (size_t i = 0; i < IG_SC_MAX_IGNORE; i++) {
        const json_t *list = json_object_get(q, keys[i]);
        if (json_is_array(list)) d->ignore[i] = list;
    }
}

/* quantization_config and its older or nested places. */
static const json_t *find_config(struct ig_scan *s, const struct ig_sc_decl *d, const char **base)
{
    static const char *const places[][2] = {{NULL, "quantization_config"},
                                            {NULL, "compression_config"},
                                            {"text_config", "quantization_config"},
                                            {"text_config", "compression_config"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *outer = places[i][0];
        const json_t *root = outer ? ig_sc_member(s->in->config, outer) : s->in->config;
        const json_t *q = ig_sc_member(root, places[i][1]);
        if (!q) continue;
        *base = ig_sc_text(s, "%s%s/%s", outer ? "/" : "", outer ? outer : "", places[i][1]);
        if (json_is_object(q)) return q;
        ig_sc_finding(s, IG_NONE, "%s: %s: expected an object", d->file, *base);
    }
    return NULL;
}

static void read_config(struct ig_scan *s, struct ig_sc_decl *d)
{
    const char *base = "";
    const json_t *q = find_config(s, d, &base);

    if (!q) return;
    read_method(s, d, q, base);
    ig_sc_config_ignore(d, q);
    ig_sc_config_kv(s, d, q, base);
    switch (d->family) {
    case IG_FAM_FP8:
        read_fp8(s, d, q, base);
        break;
    case IG_FAM_CT:
        ig_sc_config_ct(s, d, q, base);
        break;
    case IG_FAM_MODELOPT: {
        const json_t *inner =
            ig_sc_member(q, "quantization"); /* hf_quant_config.json, put in whole */
        if (!ig_sc_member(q, "quant_algo") && json_is_object(inner)) {
            base = ig_sc_text(s, "%s/quantization", base);
            q = inner;
            ig_sc_config_ignore(d, q);
            ig_sc_config_kv(s, d, q, base);
        }
        ig_sc_config_modelopt(s, d, q, base);
        break;
    }
    case IG_FAM_FBGEMM:
        d->scheme.format = IG_FMT_FP8;
        break;
    case IG_FAM_MXFP4:
        d->scheme.format = IG_FMT_MXFP4;
        d->scheme.group = 32;
        break;
    case IG_FAM_QUARK:
        read_quark(d, q);
        break;
    case IG_FAM_NONE:
        if (d->kv.stated) break;
        ig_sc_finding(s, IG_NONE, "%s: %s has no quant_method", d->file, base);
        break;
    default:
        break;
    }
}

void ig_sc_config(struct ig_scan *s)
{
    struct ig_sc_decl *config = &s->decl[0], *hf = &s->decl[1];
    const json_t *heads = ig_sc_member(s->in->config, "num_key_value_heads");

    *config = (struct ig_sc_decl){.file = "config.json", .blob = s->in->config_blob};
    *hf = (struct ig_sc_decl){.file = "hf_quant_config.json", .blob = s->in->hf_quant_blob};
    read_config(s, config);
    ig_sc_config_hf(s, hf);
    /* config.json is the file that every loader reads first. */
    s->w = config->family == IG_FAM_NONE && hf->family != IG_FAM_NONE ? hf : config;
    if (s->w->kv.declared) {
        s->kv = s->w;
    } else if (config->kv.declared || hf->kv.declared) {
        s->kv = config->kv.declared ? config : hf;
    }
    if (!heads)
        heads = ig_sc_member(ig_sc_member(s->in->config, "text_config"), "num_key_value_heads");
    s->kv_heads = ig_sc_positive(heads);
}
