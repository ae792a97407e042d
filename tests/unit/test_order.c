/* SPDX-License-Identifier: Apache-2.0 */
/* The order of tensors: names of every known family, odd names, and whole models sorted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "convert/order.h"

/* ig_place of a copy that ends where its memory ends, so that a read past it is caught. */
static struct ig_place place(const char *name, size_t len)
{
    struct ig_place p;
    char *copy = malloc(len);
    assert_true(copy != NULL || len == 0);
    if (len > 0) memcpy(copy, name, len);
    ig_place(copy, len, IG_RULES, &p);
    if (p.suffix_len > 0) {
        assert_ptr_equal(p.suffix, copy + len - p.suffix_len);
        p.suffix = name + len - p.suffix_len;
    }
    free(copy);
    return p;
}

static void expect_stage(const char *name, unsigned stage, unsigned kind, const char *suffix)
{
    const struct ig_place p = place(name, strlen(name));
    if (p.stage != stage || p.kind != kind || p.slot != 0 || p.members != 0 || p.view != NULL ||
        p.suffix_len != strlen(suffix) || memcmp(p.suffix, suffix, p.suffix_len) != 0)
        fail_msg("%s: stage %u slot %u kind %u members %u suffix '%.*s'", name, p.stage, p.slot,
                 p.kind, p.members, (int)p.suffix_len, p.suffix);
}

/* What the table must say of "model.layers.7.<rest>". */
struct expectation {
    const char *rest;
    unsigned slot, kind, member, members;
    uint64_t expert;
    bool experts;
    const char *view; /* module and suffix, as a view is named */
};

static void expect_in_layer(const struct expectation *x)
{
    char name[256], view[256];
    const int prefix = snprintf(name, sizeof name, "model.layers.7.");
    snprintf(name + prefix, sizeof name - (size_t)prefix, "%s", x->rest);
    const struct ig_place p = place(name, strlen(name));
    snprintf(view, sizeof view, "%s%s%.*s", p.view ? p.view : "", p.suffix_len ? "." : "",
             (int)p.suffix_len, p.suffix);
    if (p.stage != 1 || p.layer != 7 || p.slot != x->slot || p.kind != x->kind ||
        p.member != x->member || p.members != x->members || p.expert != x->expert ||
        p.experts != x->experts || p.prefix_len != (uint32_t)prefix ||
        (x->view == NULL) != (p.view == NULL) || (x->view && strcmp(view, x->view) != 0))
        fail_msg("%s: stage %u slot %u kind %u member %u of %u expert %llu/%d prefix %u view %s",
                 name, p.stage, p.slot, p.kind, p.member, p.members, (unsigned long long)p.expert,
                 p.experts, p.prefix_len, view);
}

static void expect_all(const struct expectation *x, size_t n)
{
    for (size_t i = 0; i < n; i++) expect_in_layer(&x[i]);
}

#define EXPECT_ALL(list) expect_all(list, sizeof(list) / sizeof *(list))

/* ---- families ---- */

static void test_outside_the_layers(void **state)
{
    (void)state;
    expect_stage("embed_tokens.weight", 0, 0, "weight");
    expect_stage("model.embed_tokens.weight", 0, 0, "weight");
    expect_stage("language_model.model.embed_tokens.weight", 0, 0, "weight");
    expect_stage("model.language_model.embed_tokens.weight_scale", 0, 2, "weight_scale");
    expect_stage("model.norm.weight", 2, 0, "weight");
    expect_stage("norm.bias", 2, 1, "bias");
    expect_stage("lm_head.weight", 4, 0, "weight");
    expect_stage("model.lm_head.weight", 4, 0, "weight");
    expect_stage("language_model.lm_head.weight", 4, 0, "weight");
    expect_stage("lm_head.bias", 4, 1, "bias");
    expect_stage("lm_head", 4, 0, "");
    expect_stage("tok_embeddings.weight", 0, 0, "weight");
    expect_stage("output.weight", 4, 0, "weight");
}

static void test_anything_else(void **state)
{
    (void)state;
    static const char *const names[] = {
        "x",
        "model",
        "model.",
        "model.norm.",
        "model.normal.weight",
        "modelnorm.weight",
        "language_model.norm.weight",
        "language_model.embed_tokens.weight",
        "language_model.layers.0.input_layernorm.weight",
        "model.output.weight",
        "model.tok_embeddings.weight",
        "model.model.norm.weight",
        "lm_head_extra.weight",
        "model.embed_tokens_per_layer.weight",
        "vision_tower.layers.0.self_attn.q_proj.weight",
        "layers",
        "layers.",
        "layers.0",
        "layers.0.",
        "layers..input_layernorm.weight",
        "layers.x.input_layernorm.weight",
        "layers.+1.input_layernorm.weight",
        "layers.-1.input_layernorm.weight",
        "layers.00.input_layernorm.weight",
        "layers.07.input_layernorm.weight",
        "layers.1x.input_layernorm.weight",
        "model.layers.12345678901234567890.input_layernorm.weight",
        "model.layers.00000000000000000001.input_layernorm.weight",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_stage(names[i], 3, 0, "");
    assert_int_equal(place("model.norm.weight", 0).stage, 3);
}

static void test_layer_numbers(void **state)
{
    (void)state;
    static const char *const zero = "layers.0.input_layernorm.weight";
    static const char *const most =
        "model.language_model.layers.9999999999999999999.input_layernorm.weight";
    struct ig_place p = place(zero, strlen(zero));
    assert_int_equal(p.stage, 1);
    assert_true(p.layer == 0);
    assert_int_equal(p.prefix_len, strlen("layers.0."));
    p = place(most, strlen(most));
    assert_int_equal(p.stage, 1);
    assert_true(p.layer == 9999999999999999999u);
    assert_int_equal(p.prefix_len, strlen("model.language_model.layers.9999999999999999999."));
}

static void test_llama_qwen2_qwen3(void **state)
{
    (void)state;
    static const struct expectation list[] = {
        {"input_layernorm.weight", 0, 0, 0, 0, 0, false, NULL},
        {"self_attn.q_proj.weight", 1, 0, 0, 3, 0, false, "self_attn.qkv_proj.weight"},
        {"self_attn.k_proj.weight", 1, 0, 1, 3, 0, false, "self_attn.qkv_proj.weight"},
        {"self_attn.v_proj.weight", 1, 0, 2, 3, 0, false, "self_attn.qkv_proj.weight"},
        {"self_attn.v_proj.bias", 1, 1, 2, 3, 0, false, "self_attn.qkv_proj.bias"},
        {"self_attn.k_norm.weight", 2, 0, 1, 0, 0, false, NULL},
        {"self_attn.o_proj.weight", 3, 0, 0, 0, 0, false, NULL},
        {"post_attention_layernorm.weight", 4, 0, 0, 0, 0, false, NULL},
        {"mlp.gate_proj.weight", 6, 0, 0, 2, 0, false, "mlp.gate_up_proj.weight"},
        {"mlp.up_proj.weight", 6, 0, 1, 2, 0, false, "mlp.gate_up_proj.weight"},
        {"mlp.down_proj.weight", 7, 0, 0, 0, 0, false, NULL},
        {"self_attn.rotary_emb.inv_freq", 9, 0, 0, 0, 0, false, NULL},
    };
    EXPECT_ALL(list);
}

static void test_phi3(void **state)
{
    (void)state;
    static const struct expectation list[] = {
        {"self_attn.qkv_proj.weight", 1, 0, 0, 0, 0, false, NULL},
        {"mlp.gate_up_proj.weight", 6, 0, 0, 0, 0, false, NULL},
        {"mlp.down_proj.weight", 7, 0, 0, 0, 0, false, NULL},
    };
    EXPECT_ALL(list);
}

static void test_qwen_moe_and_deepseek(void **state)
{
    (void)state;
    static const struct expectation list[] = {
        {"mlp.gate.weight", 5, 0, 0, 0, 0, false, NULL},
        {"mlp.gate.e_score_correction_bias", 5, 2, 0, 0, 0, false, NULL},
        {"mlp.experts.0.gate_proj.weight", 6, 0, 0, 2, 0, true, "mlp.experts.gate_up_proj.weight"},
        {"mlp.experts.127.up_proj.weight", 6, 0, 1, 2, 127, true,
         "mlp.experts.gate_up_proj.weight"},
        {"mlp.experts.9.down_proj.weight_scale_inv", 7, 2, 0, 1, 9, true,
         "mlp.experts.down_proj.weight_scale_inv"},
        {"mlp.shared_experts.gate_proj.weight", 8, 0, 0, 2, 0, false,
         "mlp.shared_experts.gate_up_proj.weight"},
        {"mlp.shared_expert.up_proj.weight", 8, 0, 1, 2, 0, false,
         "mlp.shared_expert.gate_up_proj.weight"},
        {"mlp.shared_expert.down_proj.weight", 8, 0, 2, 0, 0, false, NULL},
        {"mlp.shared_expert_gate.weight", 8, 0, 3, 0, 0, false, NULL},
        {"self_attn.q_a_proj.weight", 1, 0, 3, 0, 0, false, NULL},
        {"self_attn.q_b_proj.weight", 1, 0, 4, 0, 0, false, NULL},
        {"self_attn.kv_a_proj_with_mqa.weight", 1, 0, 5, 0, 0, false, NULL},
        {"self_attn.kv_b_proj.weight_scale_inv", 1, 2, 6, 0, 0, false, NULL},
        {"self_attn.q_a_layernorm.weight", 2, 0, 2, 0, 0, false, NULL},
        {"self_attn.kv_a_layernorm.weight", 2, 0, 3, 0, 0, false, NULL},
        {"mlp.experts.007.gate_proj.weight", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.-1.gate_proj.weight", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.experts..gate_proj.weight", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.12345678901234567890.gate_proj.weight", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.3.gate_up_proj.weight", 9, 0, 0, 0, 0, false, NULL},
    };
    EXPECT_ALL(list);
}

static void test_mixtral_and_mistral(void **state)
{
    (void)state;
    static const struct expectation list[] = {
        {"block_sparse_moe.gate.weight", 5, 0, 0, 0, 0, false, NULL},
        {"block_sparse_moe.experts.3.w1.weight", 6, 0, 0, 2, 3, true,
         "block_sparse_moe.experts.gate_up_proj.weight"},
        {"block_sparse_moe.experts.3.w3.weight", 6, 0, 1, 2, 3, true,
         "block_sparse_moe.experts.gate_up_proj.weight"},
        {"block_sparse_moe.experts.3.w2.weight", 7, 0, 0, 1, 3, true,
         "block_sparse_moe.experts.down_proj.weight"},
        {"attention_norm.weight", 0, 0, 0, 0, 0, false, NULL},
        {"attention.wq.weight", 1, 0, 0, 3, 0, false, "attention.qkv_proj.weight"},
        {"attention.wk.weight", 1, 0, 1, 3, 0, false, "attention.qkv_proj.weight"},
        {"attention.wv.qscale_weight", 1, 2, 2, 3, 0, false, "attention.qkv_proj.qscale_weight"},
        {"attention.wo.weight", 3, 0, 0, 0, 0, false, NULL},
        {"ffn_norm.weight", 4, 0, 0, 0, 0, false, NULL},
        {"feed_forward.gate.weight", 5, 0, 0, 0, 0, false, NULL},
        {"feed_forward.w1.weight", 6, 0, 0, 2, 0, false, "feed_forward.gate_up_proj.weight"},
        {"feed_forward.w3.weight", 6, 0, 1, 2, 0, false, "feed_forward.gate_up_proj.weight"},
        {"feed_forward.w2.weight", 7, 0, 0, 0, 0, false, NULL},
        {"feed_forward.experts.1.w3.weight", 6, 0, 1, 2, 1, true,
         "feed_forward.experts.gate_up_proj.weight"},
        {"feed_forward.experts.1.w2.weight", 7, 0, 0, 1, 1, true,
         "feed_forward.experts.down_proj.weight"},
    };
    EXPECT_ALL(list);
}

static void expect_suffix(const char *name, const char *suffix)
{
    const struct ig_place p = place(name, strlen(name));
    assert_int_equal(p.suffix_len, strlen(suffix));
    assert_memory_equal(p.suffix, suffix, p.suffix_len);
}

static void test_fused_experts(void **state)
{
    (void)state;
    static const struct expectation list[] = {
        {"mlp.router.weight", 5, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj", 6, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj_blocks", 6, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj_scales", 6, 2, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj_bias", 6, 1, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj_scales_inv", 6, 2, 0, 0, 0, false, NULL},
        {"mlp.experts.gate_up_proj.weight_scale", 6, 2, 0, 0, 0, false, NULL},
        {"mlp.experts.down_proj_blocks", 7, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.down_proj_scales_inv", 7, 2, 0, 0, 0, false, NULL},
        {"mlp.experts.down_proj.weight", 7, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.down_proj_", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.experts.down_projector", 9, 0, 0, 0, 0, false, NULL},
        {"mlp.gate_up_proj_blocks", 9, 0, 0, 0, 0, false, NULL},
    };
    EXPECT_ALL(list);
    expect_suffix("model.layers.0.mlp.experts.down_proj_scales_inv", "_scales_inv");
    expect_suffix("model.layers.0.mlp.experts.down_proj.weight", "weight");
}

static void test_scale_suffixes(void **state)
{
    (void)state;
    static const char *const scales[] = {"weight_scale",
                                         "weight_scale_inv",
                                         "weight_scale_2",
                                         "input_scale",
                                         "act_scale",
                                         "weight_global_scale",
                                         "input_global_scale",
                                         "weight_zero_point",
                                         "k_scale",
                                         "v_scale",
                                         "output_scale",
                                         "scale",
                                         "qweight",
                                         "k_bias",
                                         "bias.extra"};
    char q[128], up[128], q_view[128], up_view[128];
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        snprintf(q, sizeof q, "self_attn.k_proj.%s", scales[i]);
        snprintf(up, sizeof up, "mlp.up_proj.%s", scales[i]);
        snprintf(q_view, sizeof q_view, "self_attn.qkv_proj.%s", scales[i]);
        snprintf(up_view, sizeof up_view, "mlp.gate_up_proj.%s", scales[i]);
        expect_in_layer(&(struct expectation){q, 1, 2, 1, 3, 0, false, q_view});
        expect_in_layer(&(struct expectation){up, 6, 2, 1, 2, 0, false, up_view});
    }
    static const struct expectation list[] = {
        {"self_attn.q_proj.weight_packed", 1, 0, 0, 3, 0, false,
         "self_attn.qkv_proj.weight_packed"},
        {"self_attn.q_proj", 1, 0, 0, 3, 0, false, "self_attn.qkv_proj"},
        {"self_attn.k_scale", 2, 2, 4, 0, 0, false, NULL},
        {"self_attn.kv_scale", 2, 2, 4, 0, 0, false, NULL},
        {"self_attn.sinks", 2, 2, 4, 0, 0, false, NULL},
        {"self_attn.new_proj.weight", 9, 0, 0, 0, 0, false, NULL},
        {"self_attn", 9, 0, 0, 0, 0, false, NULL},
        {"self_attn.", 9, 0, 0, 0, 0, false, NULL},
        {"self_attn.q_proj.", 9, 0, 0, 0, 0, false, NULL},
        {"self_attn.q_projx.weight", 9, 0, 0, 0, 0, false, NULL},
    };
    EXPECT_ALL(list);
}

/* ---- hostile names ---- */

/* Every prefix of every name, and each with one byte replaced, stays inside its memory. */
static void test_odd_bytes_stay_in_bounds(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model.language_model.layers.12.mlp.experts.345.gate_proj.weight_scale_inv",
        "language_model.model.layers.9999999999999999999.mlp.experts.gate_up_proj_scales",
        "language_model.lm_head.weight",
        "layers.0.self_attn.k_scale",
    };
    static const char odd[] = {0, '.', '_', '#', '0', '9', (char)0xff, (char)0x80, '\n'};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t len = 0; len <= strlen(names[i]); len++) {
            char name[128];
            assert_true(place(names[i], len).stage <= 4);
            for (size_t at = 0; at < len; at++) {
                memcpy(name, names[i], len);
                name[at] = odd[(at + len) % sizeof odd];
                const struct ig_place p = place(name, len);
                assert_true(p.stage <= 4 && p.slot <= 9 && p.kind <= 2 && p.member <= 6);
                assert_true(p.prefix_len + p.suffix_len <= len);
            }
        }
    }
    static const char nul[] = "model.norm\0.weight";
    assert_int_equal(place(nul, sizeof nul - 1).stage, 3);
}

/* ---- sorting ---- */

struct item {
    const char *name;
    struct ig_place place;
};

static int sign(int c)
{
    return (c > 0) - (c < 0);
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return ig_place_cmp(&x->place, x->name, strlen(x->name), &y->place, y->name, strlen(y->name));
}

/* The names, given in the order that is right, come back in it from any shuffle. */
static void expect_order(const char *const *names, size_t n)
{
    struct item items[128];
    uint32_t seed = 1;
    assert_true(n <= 128);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct item){names[i], place(names[i], strlen(names[i]))};
    for (int round = 0; round < 50; round++) {
        for (size_t i = n; i > 1; i--) {
            seed = seed * 1664525u + 1013904223u;
            const size_t j = (seed >> 8) % i;
            const struct item t = items[i - 1];
            items[i - 1] = items[j];
            items[j] = t;
        }
        qsort(items, n, sizeof *items, compare_items);
        for (size_t i = 0; i < n; i++) assert_string_equal(items[i].name, names[i]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            assert_int_equal(sign(compare_items(&items[i], &items[j])), i < j ? -1 : i > j);
}

#define EXPECT_ORDER(names) expect_order(names, sizeof(names) / sizeof *(names))

static void test_sort_llama(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model.embed_tokens.weight",
        "model.layers.2.input_layernorm.weight",
        "model.layers.2.self_attn.q_proj.weight",
        "model.layers.2.self_attn.k_proj.weight",
        "model.layers.2.self_attn.v_proj.weight",
        "model.layers.2.self_attn.q_proj.bias",
        "model.layers.2.self_attn.k_proj.bias",
        "model.layers.2.self_attn.v_proj.bias",
        "model.layers.2.self_attn.q_proj.input_scale",
        "model.layers.2.self_attn.k_proj.input_scale",
        "model.layers.2.self_attn.v_proj.input_scale",
        "model.layers.2.self_attn.q_proj.weight_scale",
        "model.layers.2.self_attn.k_proj.weight_scale",
        "model.layers.2.self_attn.v_proj.weight_scale",
        "model.layers.2.self_attn.q_norm.weight",
        "model.layers.2.self_attn.k_norm.weight",
        "model.layers.2.self_attn.k_scale",
        "model.layers.2.self_attn.v_scale",
        "model.layers.2.self_attn.o_proj.weight",
        "model.layers.2.self_attn.o_proj.weight_scale",
        "model.layers.2.post_attention_layernorm.weight",
        "model.layers.2.mlp.gate_proj.weight",
        "model.layers.2.mlp.up_proj.weight",
        "model.layers.2.mlp.gate_proj.weight_scale",
        "model.layers.2.mlp.up_proj.weight_scale",
        "model.layers.2.mlp.down_proj.weight",
        "model.layers.2.mlp.down_proj.weight_scale",
        "model.layers.2.adapter.2.weight",
        "model.layers.2.adapter.10.weight",
        "model.layers.2.self_attn.rotary_emb.inv_freq",
        "model.layers.10.input_layernorm.weight",
        "model.layers.10.self_attn.qkv_proj.weight",
        "model.layers.10.mlp.gate_up_proj.weight",
        "model.norm.weight",
        "vision_tower.blocks.9.weight",
        "vision_tower.blocks.10.bias",
        "vision_tower.blocks.10.weight",
        "lm_head.weight",
        "lm_head.bias",
    };
    EXPECT_ORDER(names);
}

static void test_sort_mixtral(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.0.self_attn.o_proj.weight",
        "model.layers.0.post_attention_layernorm.weight",
        "model.layers.0.block_sparse_moe.gate.weight",
        "model.layers.0.block_sparse_moe.experts.0.w1.weight",
        "model.layers.0.block_sparse_moe.experts.0.w3.weight",
        "model.layers.0.block_sparse_moe.experts.2.w1.weight",
        "model.layers.0.block_sparse_moe.experts.2.w3.weight",
        "model.layers.0.block_sparse_moe.experts.10.w1.weight",
        "model.layers.0.block_sparse_moe.experts.10.w3.weight",
        "model.layers.0.block_sparse_moe.experts.0.w1.weight_scale",
        "model.layers.0.block_sparse_moe.experts.0.w3.weight_scale",
        "model.layers.0.block_sparse_moe.experts.10.w1.weight_scale",
        "model.layers.0.block_sparse_moe.experts.0.w2.weight",
        "model.layers.0.block_sparse_moe.experts.2.w2.weight",
        "model.layers.0.block_sparse_moe.experts.10.w2.weight",
        "model.layers.1.input_layernorm.weight",
        "model.norm.weight",
        "lm_head.weight",
    };
    EXPECT_ORDER(names);
}

static void test_sort_deepseek(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model.layers.3.self_attn.q_a_proj.weight",
        "model.layers.3.self_attn.q_b_proj.weight",
        "model.layers.3.self_attn.kv_a_proj_with_mqa.weight",
        "model.layers.3.self_attn.kv_b_proj.weight",
        "model.layers.3.self_attn.q_a_proj.weight_scale_inv",
        "model.layers.3.self_attn.kv_b_proj.weight_scale_inv",
        "model.layers.3.self_attn.q_a_layernorm.weight",
        "model.layers.3.self_attn.kv_a_layernorm.weight",
        "model.layers.3.mlp.gate.weight",
        "model.layers.3.mlp.gate.e_score_correction_bias",
        "model.layers.3.mlp.experts.0.gate_proj.weight",
        "model.layers.3.mlp.experts.0.up_proj.weight",
        "model.layers.3.mlp.experts.1.gate_proj.weight",
        "model.layers.3.mlp.experts.1.up_proj.weight",
        "model.layers.3.mlp.experts.0.down_proj.weight",
        "model.layers.3.mlp.experts.1.down_proj.weight",
        "model.layers.3.mlp.shared_experts.gate_proj.weight",
        "model.layers.3.mlp.shared_experts.up_proj.weight",
        "model.layers.3.mlp.shared_experts.down_proj.weight",
        "model.layers.3.mlp.shared_experts.gate_proj.weight_scale_inv",
        "model.layers.3.mlp.shared_experts.up_proj.weight_scale_inv",
        "model.layers.3.mlp.shared_experts.down_proj.weight_scale_inv",
        "model.layers.3.eh_proj.weight",
    };
    EXPECT_ORDER(names);
}

/* Two towers with the same layers, or a dense block beside experts, keep their groups whole. */
static void test_groups_stay_together(void **state)
{
    (void)state;
    static const char *const names[] = {
        "layers.0.self_attn.q_proj.weight",
        "layers.0.self_attn.k_proj.weight",
        "layers.0.self_attn.v_proj.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.v_proj.weight",
        "model.layers.0.mlp.experts.0.gate_proj.weight",
        "model.layers.0.mlp.experts.0.up_proj.weight",
        "model.layers.0.mlp.experts.1.gate_proj.weight",
        "model.layers.0.mlp.experts.1.up_proj.weight",
        "model.layers.0.mlp.gate_proj.weight",
        "model.layers.0.mlp.up_proj.weight",
    };
    EXPECT_ORDER(names);
    static const size_t starts[] = {0, 3, 6, 10, 12};
    for (size_t g = 0; g + 1 < sizeof starts / sizeof *starts; g++) {
        for (size_t i = 0; i < starts[4]; i++) {
            const char *a = names[starts[g]], *b = names[i];
            const struct ig_place p = place(a, strlen(a)), q = place(b, strlen(b));
            assert_int_equal(ig_place_same_view(&p, a, &q, b), i >= starts[g] && i < starts[g + 1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside_the_layers),
        cmocka_unit_test(test_anything_else),
        cmocka_unit_test(test_layer_numbers),
        cmocka_unit_test(test_llama_qwen2_qwen3),
        cmocka_unit_test(test_phi3),
        cmocka_unit_test(test_qwen_moe_and_deepseek),
        cmocka_unit_test(test_mixtral_and_mistral),
        cmocka_unit_test(test_fused_experts),
        cmocka_unit_test(test_scale_suffixes),
        cmocka_unit_test(test_odd_bytes_stay_in_bounds),
        cmocka_unit_test(test_sort_llama),
        cmocka_unit_test(test_sort_mixtral),
        cmocka_unit_test(test_sort_deepseek),
        cmocka_unit_test(test_groups_stay_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
