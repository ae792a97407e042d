/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json, as far as convert uses it.  The file itself is kept verbatim; what is read
 * here is judged strictly, because a wrong type means that tools will disagree about it.
 */
#include "convert/source.h"

#include <stdlib.h>
#include <string.h>

#define CONFIG_MOST ((size_t)64 << 20)

enum kind { COUNT, REAL, FLAG, COUNT_OR_NULL };

/* Keys that mean the same for every decoder that ingot knows. */
static const struct {
    const char *key;
    enum kind kind;
} keys[] = {
    {"hidden_size", COUNT},
    {"intermediate_size", COUNT},
    {"num_hidden_layers", COUNT},
    {"num_attention_heads", COUNT},
    {"num_key_value_heads", COUNT_OR_NULL},
    {"head_dim", COUNT_OR_NULL},
    {"vocab_size", COUNT},
    {"max_position_embeddings", COUNT},
    {"original_max_position_embeddings", COUNT_OR_NULL},
    {"rms_norm_eps", REAL},
    {"rope_theta", REAL},
    {"tie_word_embeddings", FLAG},
};

/* Classes whose default of tie_word_embeddings is known to be false. */
static const char *const untied_classes[] = {
    "Phi3ForCausalLM",  "LlamaForCausalLM",   "MistralForCausalLM",  "Qwen2ForCausalLM",
    "Qwen3ForCausalLM", "MixtralForCausalLM", "Qwen3MoeForCausalLM",
};

static const char *fault_of(const json_t *v, enum kind kind)
{
    if (ig_json_is_nonfinite(v)) return "a finite number";
    const bool count = json_is_integer(v) && json_integer_value(v) >= 0;
    switch (kind) {
    case COUNT:
        return count ? NULL : "a whole number";
    case COUNT_OR_NULL:
        return count || json_is_null(v) ? NULL : "a whole number or null";
    case REAL:
        return json_is_number(v) ? NULL : "a number";
    case FLAG:
        return json_is_boolean(v) ? NULL : "true or false";
    }
    return NULL;
}

static ingot_status check_keys(const json_t *config, const char *path, ingot_error *e)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *v = json_object_get(config, keys[i].key);
        const char *wanted = v ? fault_of(v, keys[i].kind) : NULL;
        if (!wanted) continue;
        char *text = ig_json_is_nonfinite(v) ? strdup("NaN or Infinity")
                                             : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
        ig_fail(e, INGOT_ERR_INPUT, "%s: key \"%s\" is %s, expected %s", path, keys[i].key,
                text ? ig_esc(text, strlen(text)).s : "?", wanted);
        free(text);
        return ig_at(e, path, NULL, 0);
    }
    return INGOT_OK;
}

/* As Python reads it: bare NaN and Infinity, a byte-order mark, the last of equal keys. */
#define CONFIG_FLAGS (IG_JSON_NONFINITE | IG_JSON_BOM | IG_JSON_LAST_WINS)

ingot_status ig_config_of_pack(const struct ig_pack *p, const char *name, json_t **out,
                               uint32_t *blob, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    *blob = ig_pack_find_blob(p, name, IG_BLOB_FILE);
    if (*blob == IG_NONE) return INGOT_OK;
    return_if_error(ig_pack_read_blob(p, *blob, &text, &n, e));
    const ingot_status status = ig_json_load(text, n, name, CONFIG_FLAGS, out, e);
    free(text);
    return status;
}

static ingot_status load(const struct ig_src *s, const char *name, json_t **out, uint32_t *blob,
                         ingot_error *e)
{
    *blob = IG_NONE;
    for (uint32_t i = 0; i < s->nblobs; i++) {
        const struct ig_src_file *f = &s->blobs[i];
        char *text = NULL;
        size_t n = 0;
        if (strcmp(f->name, name) != 0) continue;
        *blob = i;
        return_if_error(ig_read_file(f->path, CONFIG_MOST, &text, &n, e));
        const ingot_status status = ig_json_load(text, n, f->path, CONFIG_FLAGS, out, e);
        free(text);
        if (status == INGOT_OK && !json_is_object(*out))
            return ig_fail(e, INGOT_ERR_INPUT, "%s: expected a JSON object", f->path);
        return status;
    }
    return INGOT_OK;
}

static void warn_without_tokenizer(struct ig_src *s)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "vocab.json",
                                        "tekken.json", "spiece.model"};
    for (uint32_t i = 0; i < s->nblobs; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (strcmp(s->blobs[i].name, names[k]) == 0) return;
    ig_src_warn(s, "no tokenizer found: the model cannot be run from this pack alone");
}

ingot_status ig_src_read_config(struct ig_src *s, const struct ig_convert *c, ingot_error *e)
{
    return_if_error(load(s, "config.json", &s->config, &s->config_blob, e));
    return_if_error(load(s, "hf_quant_config.json", &s->hf_quant, &s->hf_quant_blob, e));
    if (!s->config) {
        if (c->no_config) return INGOT_OK;
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: no config.json, which says what the tensors are; give a "
                "single file, or --no-config to pack the folder without",
                s->root);
        return ig_at(e, s->root, NULL, 0);
    }
    return_if_error(check_keys(s->config, s->blobs[s->config_blob].path, e));
    warn_without_tokenizer(s);
    return INGOT_OK;
}

const char *ig_config_class(const json_t *config)
{
    const json_t *list = json_object_get(config, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    for (size_t i = 0; name && i < sizeof untied_classes / sizeof untied_classes[0]; i++)
        if (strcmp(name, untied_classes[i]) == 0) return untied_classes[i];
    return NULL;
}

int ig_config_tied(const json_t *config)
{
    const json_t *tie = json_object_get(config, "tie_word_embeddings");
    if (!tie) tie = json_object_get(json_object_get(config, "text_config"), "tie_word_embeddings");
    if (json_is_boolean(tie)) return json_is_true(tie);
    return ig_config_class(config) ? 0 : -1;
}
