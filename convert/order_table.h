/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: the table of ingot-pack(5), "Order", for rules 1.  A change here changes digests of
 * packs and wants a new number.
 */
#ifndef INGOT_ORDER_TABLE_H
#define INGOT_ORDER_TABLE_H

#include <stdint.h>

enum {
    ROW_JOINED = 1, /* the suffix may also be joined by '_': experts fused into one tensor */
    ROW_LEAF = 2,   /* the suffix is one component: a parameter of the module itself */
    /* Which prefixes a module outside the layers may have. */
    ROW_BARE = 4,
    ROW_PREFIXED = 8,
    ROW_HEAD = 16
};

/* '#' in a module is a number; in a layer's it is the expert. */
struct order_row {
    const char *module;
    const char *view; /* NULL: never grouped */
    uint8_t slot;     /* for modules outside the layers: the stage */
    uint8_t member;
    uint8_t members;
    uint8_t flags;
};

static const struct {
    const char *s;
    uint8_t flag;
} order_prefixes[] = {
    {"", ROW_BARE},
    {"model.", ROW_PREFIXED},
    {"language_model.model.", ROW_PREFIXED},
    {"model.language_model.", ROW_PREFIXED},
    {"language_model.", ROW_HEAD},
};

static const struct order_row order_outside[] = {
    {"embed_tokens", NULL, 0, 0, 0, ROW_BARE | ROW_PREFIXED},
    {"tok_embeddings", NULL, 0, 0, 0, ROW_BARE},
    {"norm", NULL, 2, 0, 0, ROW_BARE | ROW_PREFIXED},
    {"lm_head", NULL, 4, 0, 0, ROW_BARE | ROW_PREFIXED | ROW_HEAD},
    {"output", NULL, 4, 0, 0, ROW_BARE},
};

#define QKV(module)     module ".qkv_proj"
#define GATE_UP(module) module ".gate_up_proj"
#define DOWN(module)    module ".down_proj"

static const struct order_row order_layer[] = {
    {"input_layernorm", NULL, 0, 0, 0, 0},
    {"attention_norm", NULL, 0, 0, 0, 0},

    {"self_attn.q_proj", QKV("self_attn"), 1, 0, 3, 0},
    {"self_attn.k_proj", QKV("self_attn"), 1, 1, 3, 0},
    {"self_attn.v_proj", QKV("self_attn"), 1, 2, 3, 0},
    {"self_attn.qkv_proj", NULL, 1, 0, 0, 0},
    {"self_attn.q_a_proj", NULL, 1, 3, 0, 0},
    {"self_attn.q_b_proj", NULL, 1, 4, 0, 0},
    {"self_attn.kv_a_proj_with_mqa", NULL, 1, 5, 0, 0},
    {"self_attn.kv_b_proj", NULL, 1, 6, 0, 0},
    {"attention.wq", QKV("attention"), 1, 0, 3, 0},
    {"attention.wk", QKV("attention"), 1, 1, 3, 0},
    {"attention.wv", QKV("attention"), 1, 2, 3, 0},

    {"self_attn.q_norm", NULL, 2, 0, 0, 0},
    {"self_attn.k_norm", NULL, 2, 1, 0, 0},
    {"self_attn.q_a_layernorm", NULL, 2, 2, 0, 0},
    {"self_attn.kv_a_layernorm", NULL, 2, 3, 0, 0},
    {"self_attn", NULL, 2, 4, 0, ROW_LEAF},

    {"self_attn.o_proj", NULL, 3, 0, 0, 0},
    {"attention.wo", NULL, 3, 0, 0, 0},

    {"post_attention_layernorm", NULL, 4, 0, 0, 0},
    {"ffn_norm", NULL, 4, 0, 0, 0},

    {"mlp.gate", NULL, 5, 0, 0, 0},
    {"mlp.router", NULL, 5, 0, 0, 0},
    {"block_sparse_moe.gate", NULL, 5, 0, 0, 0},
    {"feed_forward.gate", NULL, 5, 0, 0, 0},

    {"mlp.gate_proj", GATE_UP("mlp"), 6, 0, 2, 0},
    {"mlp.up_proj", GATE_UP("mlp"), 6, 1, 2, 0},
    {"mlp.gate_up_proj", NULL, 6, 0, 0, 0},
    {"mlp.experts.#.gate_proj", GATE_UP("mlp.experts"), 6, 0, 2, 0},
    {"mlp.experts.#.up_proj", GATE_UP("mlp.experts"), 6, 1, 2, 0},
    {"mlp.experts.gate_up_proj", NULL, 6, 0, 0, ROW_JOINED},
    {"block_sparse_moe.experts.#.w1", GATE_UP("block_sparse_moe.experts"), 6, 0, 2, 0},
    {"block_sparse_moe.experts.#.w3", GATE_UP("block_sparse_moe.experts"), 6, 1, 2, 0},
    {"feed_forward.w1", GATE_UP("feed_forward"), 6, 0, 2, 0},
    {"feed_forward.w3", GATE_UP("feed_forward"), 6, 1, 2, 0},
    {"feed_forward.experts.#.w1", GATE_UP("feed_forward.experts"), 6, 0, 2, 0},
    {"feed_forward.experts.#.w3", GATE_UP("feed_forward.experts"), 6, 1, 2, 0},

    {"mlp.down_proj", NULL, 7, 0, 0, 0},
    {"mlp.experts.#.down_proj", DOWN("mlp.experts"), 7, 0, 1, 0},
    {"mlp.experts.down_proj", NULL, 7, 0, 0, ROW_JOINED},
    {"block_sparse_moe.experts.#.w2", DOWN("block_sparse_moe.experts"), 7, 0, 1, 0},
    {"feed_forward.w2", NULL, 7, 0, 0, 0},
    {"feed_forward.experts.#.w2", DOWN("feed_forward.experts"), 7, 0, 1, 0},

    {"mlp.shared_expert.gate_proj", GATE_UP("mlp.shared_expert"), 8, 0, 2, 0},
    {"mlp.shared_expert.up_proj", GATE_UP("mlp.shared_expert"), 8, 1, 2, 0},
    {"mlp.shared_expert.down_proj", NULL, 8, 2, 0, 0},
    {"mlp.shared_experts.gate_proj", GATE_UP("mlp.shared_experts"), 8, 0, 2, 0},
    {"mlp.shared_experts.up_proj", GATE_UP("mlp.shared_experts"), 8, 1, 2, 0},
    {"mlp.shared_experts.down_proj", NULL, 8, 2, 0, 0},
    {"mlp.shared_expert_gate", NULL, 8, 3, 0, 0},
};

#undef QKV
#undef GATE_UP
#undef DOWN

/* Suffixes of kind 0 and 1; all others are 2. */
static const char *const order_weights[] = {"", "weight", "weight_packed", "_blocks"};
static const char *const order_biases[] = {"bias", "_bias"};

#endif
