/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what NVIDIA ModelOpt declares, in either config. */
#include "convert/scales_private.h"

#include <string.h>

enum ig_sc_format ig_sc_algo(const char *algo, uint64_t group_size, struct ig_sc_scheme *scheme)
{
    static const struct {
        const char *name;
        enum ig_sc_format format;
    } known[] = {
        {"FP8", IG_FMT_FP8},
        {"FP8_PER_CHANNEL_PER_TOKEN", IG_FMT_FP8},
        {"FP8_PB_WO", IG_FMT_FP8},
        {"NVFP4", IG_FMT_NVFP4},
        {"NVFP4_AWQ", IG_FMT_NVFP4},
        {"W4A16_NVFP4", IG_FMT_NVFP4},
        {"W4A8_NVFP4_FP8", IG_FMT_NVFP4},
        {"MXFP8", IG_FMT_MXFP8},
        {"MXFP4", IG_FMT_MXFP4},
        {"W4A8_MXFP4_FP8", IG_FMT_MXFP4},
    };

    for (size_t i = 0; algo && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(algo, known[i].name)) continue;
        scheme->format = known[i].format;
        if (!strcmp(algo, "FP8_PB_WO")) {
            scheme->block[0] = scheme->block[1] = group_size ? group_size : 128;
        } else if (scheme->format != IG_FMT_FP8) {
            scheme->group = group_size ? group_size : scheme->format == IG_FMT_NVFP4 ? 16 : 32;
        }
    }
    return scheme->format;
}

/* `q` is where quant_algo stands: hf_quant_config.json's "quantization", or quantization_config. */
void ig_sc_config_modelopt(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q,
                           const char *base)
{
    const json_t *algo = ig_sc_member(q, "quant_algo"),
                 *layers = ig_sc_member(q, "quantized_layers");
    const json_t *group = ig_sc_member(q, "group_size");

    if (algo && !json_is_string(algo)) {
        ig_sc_finding(s, IG_NONE, "%s: %s/quant_algo: expected a string", d->file, base);
        algo = NULL;
    }
    if (group && !ig_sc_positive(group) &&
        !(json_is_integer(group) && !json_integer_value(group))) {
        ig_sc_finding(s, IG_NONE, "%s: %s/group_size: expected a positive integer", d->file, base);
    }
    d->algo = json_string_value(algo);
    d->at_algo = ig_sc_pointer_to(s, base, q, "quant_algo", d->at_method);
    ig_sc_algo(d->algo, ig_sc_positive(group), &d->scheme);
    d->scheme.at_weight = d->scheme.at_input = d->scheme.at_global = d->at_algo;
    if (json_is_object(layers)) {
        d->layers = layers;
        d->at_layers = ig_sc_text(s, "%s/quantized_layers", base);
    }
}

void ig_sc_config_hf(struct ig_scan *s, struct ig_sc_decl *d)
{
    const json_t *q = ig_sc_member(s->in->hf_quant, "quantization");
    const char *name =
        json_string_value(ig_sc_member(ig_sc_member(s->in->hf_quant, "producer"), "name"));

    if (!s->in->hf_quant) return;
    if (!json_is_object(q)) {
        ig_sc_finding(s, IG_NONE, "%s: /quantization: expected an object", d->file);
        return;
    }
    ig_sc_config_ignore(d, q);
    ig_sc_config_kv(s, d, q, "/quantization");
    ig_sc_config_modelopt(s, d, q, "/quantization");
    if (!d->algo) return; /* a KV cache alone, or nothing */
    d->family = IG_FAM_MODELOPT;
    d->method = name ? name : "modelopt";
    d->at_method = d->at_algo;
}
