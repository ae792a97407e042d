/* SPDX-License-Identifier: Apache-2.0 */
/* Small models with the head counts of real ones, with and without scales. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/rank_fixture.h"

IG_PRINTF(7, 8)
static void add(struct model *m, struct made_model *made, enum part part, int dtype, uint64_t rows,
                uint64_t columns, const char *format, ...)
{
    struct tensor *t = &m->tensors[m->n++];
    va_list args;
    assert_true(m->n <= sizeof m->tensors / sizeof *m->tensors);
    va_start(args, format);
    vsnprintf(t->name, sizeof t->name, format, args);
    va_end(args);
    t->part = part;
    t->rows = t->columns = 1;
    const unsigned rank = rows == 0 ? 0 : columns == 0 ? 1 : 2;
    made_add_shape(made, t->name, dtype, rank, (const uint64_t[]){rows, columns});
}

static void covers(struct model *m, uint64_t rows, uint64_t columns)
{
    m->tensors[m->n - 1].rows = rows;
    m->tensors[m->n - 1].columns = columns;
}

/* A linear layer with whatever scales the model has. */
static void linear(struct model *m, struct made_model *made, const char *module, enum part part,
                   uint64_t rows, uint64_t columns)
{
    const uint64_t b = m->a.block;
    const bool by_columns = part == Q_COLUMNS || part == FF_COLUMNS;
    switch (m->a.scales) {
    case NONE:
        add(m, made, part, IG_F16, rows, columns, "%s.weight", module);
        break;
    case PER_TENSOR:
    case KV_HEADS:
        add(m, made, part, IG_F8_E4M3, rows, columns, "%s.weight", module);
        add(m, made, ALL, IG_F32, 0, 0, "%s.weight_scale", module);
        add(m, made, ALL, IG_F32, 1, 0, "%s.input_scale", module);
        break;
    case PER_ROW:
        add(m, made, part, IG_F8_E4M3, rows, columns, "%s.weight", module);
        add(m, made, by_columns ? ALL : part, IG_BF16, rows, 1, "%s.weight_scale", module);
        break;
    case PER_BLOCK:
        add(m, made, part, IG_F8_E4M3, rows, columns, "%s.weight", module);
        add(m, made, part, IG_F32, ceil_div(rows, b), ceil_div(columns, b), "%s.weight_scale_inv",
            module);
        covers(m, b, b);
        break;
    case NVFP4:
        add(m, made, part, IG_U8, rows, columns / 2, "%s.weight_packed", module);
        covers(m, 1, 2);
        add(m, made, part, IG_F8_E4M3, rows, columns / 16, "%s.weight_scale", module);
        covers(m, 1, 16);
        add(m, made, ALL, IG_F32, 1, 0, "%s.weight_global_scale", module);
        add(m, made, ALL, IG_F32, 1, 0, "%s.input_global_scale", module);
        break;
    }
    if (m->a.bias) add(m, made, by_columns ? ALL : part, IG_F16, rows, 0, "%s.bias", module);
}

static void attention(struct model *m, struct made_model *made, const char *layer)
{
    const struct arch *a = &m->a;
    const uint64_t q = a->heads * a->head_dim, kv = a->kv * a->head_dim;
    char at[96];
#define AT(module) (snprintf(at, sizeof at, "%s%s", layer, module), at)
    if (a->fused) {
        linear(m, made, AT("self_attn.qkv_proj"), QKV_ROWS, q + 2 * kv, a->hidden);
    } else {
        linear(m, made, AT("self_attn.q_proj"), Q_ROWS, q, a->hidden);
        linear(m, made, AT("self_attn.k_proj"), KV_ROWS, kv, a->hidden);
        linear(m, made, AT("self_attn.v_proj"), KV_ROWS, kv, a->hidden);
    }
    linear(m, made, AT("self_attn.o_proj"), Q_COLUMNS, a->hidden, q);
    if (a->qk_norms) {
        add(m, made, ALL, IG_F16, a->head_dim, 0, "%sself_attn.q_norm.weight", layer);
        add(m, made, ALL, IG_F16, a->head_dim, 0, "%sself_attn.k_norm.weight", layer);
    }
    if (a->scales != KV_HEADS) return;
    static const char *const names[] = {"k_scale", "v_scale", "q_scale"};
    for (int i = 0; i < 3; i++) {
        struct tensor *t = &m->tensors[m->n++];
        snprintf(t->name, sizeof t->name, "%sself_attn.%s", layer, names[i]);
        t->part = i < 2 ? KV_ROWS : Q_ROWS;
        t->rows = a->head_dim;
        t->columns = 1;
        made_add_shape(made, t->name, IG_BF16, 3,
                       (const uint64_t[]){i < 2 ? a->kv : a->heads, 1, 1});
    }
}

static void mlp(struct model *m, struct made_model *made, const char *layer)
{
    const struct arch *a = &m->a;
    char at[96];
    if (a->fused) {
        linear(m, made, AT("mlp.gate_up_proj"), GATE_UP_ROWS, 2 * a->ff, a->hidden);
    } else {
        linear(m, made, AT("mlp.gate_proj"), FF_ROWS, a->ff, a->hidden);
        linear(m, made, AT("mlp.up_proj"), FF_ROWS, a->ff, a->hidden);
    }
    linear(m, made, AT("mlp.down_proj"), FF_COLUMNS, a->hidden, a->ff);
}

#define CT(format, weights)                                         \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"" format \
    "\",\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{" weights "}}}"

static char *config_of(const struct arch *a)
{
    static const char *const fixed[] = {
        [NONE] = "{}",
        [PER_TENSOR] = "{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}",
        [PER_ROW] = CT("float-quantized", "\"num_bits\":8,\"type\":\"float\","
                                          "\"strategy\":\"channel\"") "}",
        [NVFP4] = CT("nvfp4-pack-quantized", "\"num_bits\":4,\"type\":\"float\",\"strategy\":"
                                             "\"tensor_group\",\"group_size\":16") "}",
        [KV_HEADS] = CT("float-quantized", "\"num_bits\":8,\"type\":\"float\",\"strategy\":"
                                           "\"tensor\"") ","
                                                         "\"kv_cache_scheme\":{\"num_bits\":8,"
                                                         "\"type\":\"float\",\"strategy\":"
                                                         "\"attn_head\",\"dynamic\":false,"
                                                         "\"symmetric\":true}}",
    };
    char block[160];
    snprintf(block, sizeof block,
             "{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"activation_scheme\":\"dynamic\","
             "\"weight_block_size\":[%d,%d]}",
             (int)a->block, (int)a->block);
    return ig_format(
        "{\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"head_dim\":%d,\"hidden_size\":%d,"
        "\"intermediate_size\":%d,\"vocab_size\":%d,\"tie_word_embeddings\":%s%s%s}",
        (int)a->heads, (int)a->kv, (int)a->head_dim, (int)a->hidden, (int)a->ff, (int)a->vocab,
        a->tied ? "true" : "false", a->scales ? ",\"quantization_config\":" : "",
        a->scales == PER_BLOCK ? block
        : a->scales            ? fixed[a->scales]
                               : "");
}

void rank_make(struct model *m, const struct arch *a, const struct ig_store *s, const char *config)
{
    struct made_model made;
    const char *prefix = a->prefix ? a->prefix : "model.";
    *m = (struct model){.a = *a};
    made_start(&made);
    add(m, &made, VOCAB_ROWS, IG_F16, a->vocab, a->hidden, "%sembed_tokens.weight", prefix);
    if (a->tied) made.seed--;
    if (a->tied)
        add(m, &made, VOCAB_ROWS, IG_F16, a->vocab, a->hidden, "lm_head.weight");
    else
        linear(m, &made, "lm_head", VOCAB_ROWS, a->vocab, a->hidden);
    for (int i = 0; i < 2; i++) {
        char layer[48];
        snprintf(layer, sizeof layer, "%slayers.%d.", prefix, i * 10);
        if (i && a->scales) break;
        add(m, &made, ALL, IG_F16, a->hidden, 0, "%sinput_layernorm.weight", layer);
        attention(m, &made, layer);
        mlp(m, &made, layer);
    }
    add(m, &made, ALL, IG_F16, a->hidden, 0, "%snorm.weight", prefix);
    add(m, &made, ALL, IG_F16, 3, a->hidden, "unheard.of.weight");
    char *own = config_of(a);
    made_open(&made, s, config ? config : own, &m->p);
    free(own);
}
