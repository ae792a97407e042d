/* SPDX-License-Identifier: Apache-2.0 */
/* Rank r of n of the architectures, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/rank_fixture.h"

/* ---- architectures ---- */

static void phi3_mini_fused_without_groups(void **state)
{
    const struct arch a = {"Phi-3-mini", 32, 32, 4, 32, 80, 101, .fused = true};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL}, {4, NULL}, {5, ": 32 heads cannot be cut in 5"},
                           {8, NULL}, {10, ": 32 heads cannot be cut in 10"}, {16, NULL},
                           {64, ": 32 heads cannot be cut in 64"}));
}

static void phi4_fused_with_ten_kv_heads(void **state)
{
    const struct arch a = {"Phi-4", 40, 10, 4, 40, 560, 104, .fused = true};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL},
                           {4, ": 10 KV heads cannot be cut in 4 nor repeated for it"}, {5, NULL},
                           {8, ": 10 KV heads cannot be cut in 8 nor repeated for it"}, {10, NULL},
                           {20, NULL}, {40, NULL}));
}

static void llama3_separate(void **state)
{
    const struct arch a = {"Llama-3", 32, 8, 4, 32, 224, 64, .scales = NONE};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL}, {4, NULL}, {5, ": 32 heads cannot be cut in 5"},
                           {8, NULL}, {10, ": 32 heads cannot be cut in 10"}, {16, NULL},
                           {32, NULL}));
}

static void qwen2_with_biases(void **state)
{
    const struct arch a = {"Qwen2", 28, 4, 4, 56, 148, 77, .bias = true};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL}, {4, NULL}, {5, ": 28 heads cannot be cut in 5"},
                           {8, ": 28 heads cannot be cut in 8"},
                           {10, ": 28 heads cannot be cut in 10"},
                           {7, ": 4 KV heads cannot be cut in 7 nor repeated for it"},
                           {28, "an intermediate size of 148 cannot be cut in 28"}));
}

static void fused_with_biases(void **state)
{
    const struct arch a = {"fused, biases", 8, 2, 4, 24, 40, 33, .fused = true, .bias = true};
    rank_check_arch(*state, &a, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
}

static void qwen3_with_norms_and_tied_head(void **state)
{
    const struct arch a = {"Qwen3", 16, 8, 8, 64, 96, 90, .qk_norms = true, .tied = true};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL}, {4, NULL}, {5, ": 16 heads cannot be cut in 5"},
                           {8, NULL}, {10, ": 16 heads cannot be cut in 10"}, {16, NULL}));
}

static void mistral_behind_another_prefix(void **state)
{
    const struct arch a = {"Mistral", 32, 8, 4, 40, 224, 66, .prefix = "language_model.model."};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, NULL}, {4, NULL}, {5, ": 32 heads cannot be cut in 5"},
                           {8, NULL}, {10, ": 32 heads cannot be cut in 10"}));
}

static void smollm2_with_nine_heads(void **state)
{
    const struct arch a = {"SmolLM2", 9, 3, 4, 36, 72, 49, .tied = true};
    rank_check_arch(*state, &a,
                    WANTED({1, NULL}, {2, ": 9 heads cannot be cut in 2"},
                           {4, ": 9 heads cannot be cut in 4"}, {5, ": 9 heads cannot be cut in 5"},
                           {8, ": 9 heads cannot be cut in 8"},
                           {10, ": 9 heads cannot be cut in 10"}, {3, NULL}, {9, NULL}));
}

/* ---- vocabulary ---- */

static uint64_t rows_of(const struct model *m, const char *name, uint32_t rank, uint32_t ranks)
{
    struct ig_targets t = {0};
    ingot_error e = {0};
    uint64_t rows = 0;
    const uint32_t row = ig_pack_find(&m->p, name, strlen(name));
    assert_int_equal(ig_rank(&m->p, rank, ranks, &t, &e), INGOT_OK);
    for (size_t i = 0; i < t.n; i++)
        if (t.list[i].row == row) rows += t.list[i].nrows;
    ig_targets_free(&t);
    return rows;
}

static void the_last_ranks_of_a_vocabulary_are_short_or_have_none(void **state)
{
    static const uint64_t rows[] = {2, 2, 2, 2, 1, 0, 0, 0};
    const struct arch a = {"few words", 8, 8, 2, 16, 16, 9, .scales = NONE};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    for (uint32_t r = 0; r < 8; r++) {
        assert_int_equal(rows_of(&m, "lm_head.weight", r, 8), rows[r]);
        assert_int_equal(rows_of(&m, "model.embed_tokens.weight", r, 8), rows[r]);
    }
    rank_check(&m, 8);
    ig_pack_close(&m.p);
}

/* ---- refusals ---- */

static void a_shape_that_config_json_contradicts_is_refused(void **state)
{
    const struct arch a = {"wrong", 8, 4, 4, 32, 64, 40, .scales = NONE};
    static const struct {
        const char *config, *refused;
    } cases[] = {
        {"{\"num_attention_heads\":8,\"hidden_size\":32,\"intermediate_size\":64,"
         "\"vocab_size\":40}",
         "k_proj.weight\" has 16 rows, but config.json makes it 32"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":8,\"hidden_size\":32,"
         "\"intermediate_size\":64,\"vocab_size\":40}",
         "has 16 rows, but config.json makes it 32"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"hidden_size\":32,"
         "\"intermediate_size\":64,\"vocab_size\":41}",
         "lm_head.weight\" has 40 rows, but config.json makes it 41"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":4,\"hidden_size\":34,"
         "\"intermediate_size\":64,\"vocab_size\":40}",
         "has 32 columns, but config.json makes it 34"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"hidden_size\":32,"
         "\"intermediate_size\":60,\"vocab_size\":40}",
         "down_proj.weight\" has 64 columns, but config.json makes it 60"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"hidden_size\":32,"
         "\"vocab_size\":40}",
         "config.json has no intermediate_size"},
        {"{\"num_attention_heads\":0,\"hidden_size\":32,\"intermediate_size\":64,"
         "\"vocab_size\":40}",
         "num_attention_heads is not a whole number from 1"},
        {"{\"num_attention_heads\":8,\"num_key_value_heads\":6,\"hidden_size\":32,"
         "\"intermediate_size\":64,\"vocab_size\":40}",
         "8 heads do not share 6 KV heads evenly"},
        {"{\"num_attention_heads\":64,\"hidden_size\":32,\"intermediate_size\":64,"
         "\"vocab_size\":40}",
         "config.json has no head_dim"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m;
        rank_make(&m, &a, *state, cases[i].config);
        rank_expect_refusal(&m, 2, cases[i].refused);
        rank_check(&m, 1);
        ig_pack_close(&m.p);
    }
}

static void the_decoder_of_a_larger_model_is_found(void **state)
{
    const struct arch a = {"nested", 8, 4, 4, 32, 64, 40, .scales = NONE};
    struct model m;
    rank_make(
        &m, &a, *state,
        "{\"text_config\":{\"num_attention_heads\":8,\"num_key_value_heads\":4,\"head_dim\":null,"
        "\"hidden_size\":32,\"intermediate_size\":64,\"vocab_size\":40}}");
    rank_check(&m, 2);
    ig_pack_close(&m.p);
}

static void other_refusals(void **state)
{
    static const char config[] = "{\"num_attention_heads\":2,\"hidden_size\":4,"
                                 "\"intermediate_size\":4,\"vocab_size\":4}";
    static const struct {
        const char *name;
        int dtype;
        unsigned rank;
        uint64_t shape[3];
        const char *refused; /* in 2 */
    } cases[] = {
        {"model.layers.0.mlp.experts.3.up_proj.weight", IG_F16, 2, {4, 4}, "is an expert's"},
        {"model.layers.0.mlp.shared_experts.up_proj.weight", IG_F16, 2, {4, 4}, "is an expert's"},
        {"model.layers.0.self_attn.q_proj.weight", IG_F16, 1, {4}, "has rank 1"},
        {"model.layers.0.self_attn.q_proj.bias", IG_F16, 2, {4, 1}, "has rank 2"},
        {"model.layers.0.self_attn.q_proj.bias", IG_F16, 1, {6}, "has 6 rows"},
        {"model.layers.0.mlp.down_proj.weight", IG_F6_E2M3, 2, {4, 4}, "no whole bytes"},
        {"layers.0.attention.wo.weight", IG_F16, 2, {4, 6}, "has 6 columns"},
        {"model.layers.0.self_attn.o_proj.weight", IG_F4, 2, {4, 4}, NULL},
        {"model.layers.0.self_attn.q_proj.weight_scale_inv", IG_F32, 2, {1, 1}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_model made;
        struct model m = {.a = {.name = cases[i].name}};
        struct ig_targets t = {0};
        ingot_error e = {0};
        made_start(&made);
        made_add_shape(&made, cases[i].name, cases[i].dtype, cases[i].rank, cases[i].shape);
        made_open(&made, *state, config, &m.p);
        if (cases[i].refused) {
            rank_expect_refusal(&m, 2, cases[i].refused);
            assert_int_equal(ig_rank(&m.p, 0, 1, &t, &e), INGOT_OK);
        } else if (ig_rank(&m.p, 1, 2, &t, &e) != INGOT_OK) {
            fail_msg("%s", e.message);
        }
        assert_int_equal(t.n, 1);
        ig_targets_free(&t);
        ig_pack_close(&m.p);
    }
}

static void a_rank_that_is_none(void **state)
{
    const struct arch a = {"any", 8, 4, 4, 32, 64, 40, .scales = NONE};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    static const uint32_t wrong[][2] = {{0, 0}, {1, 1}, {2, 2}, {UINT32_MAX, 8}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ig_targets t = {0};
        ingot_error e = {0};
        assert_int_equal(ig_rank(&m.p, wrong[i][0], wrong[i][1], &t, &e), INGOT_ERR_USAGE);
        assert_int_equal(t.n, 0);
    }
    ig_pack_close(&m.p);
}

static void without_config_json_only_one_rank(void **state)
{
    struct made_model made;
    struct model m = {.a = {.name = "no config"}};
    struct ig_targets t = {0};
    ingot_error e = {0};
    made_start(&made);
    made_add_shape(&made, "lm_head.weight", IG_F16, 2, (const uint64_t[]){4, 4});
    made_open(&made, *state, NULL, &m.p);
    rank_expect_refusal(&m, 2, "holds no config.json");
    assert_int_equal(ig_rank(&m.p, 0, 1, &t, &e), INGOT_OK);
    assert_int_equal(t.n, 1);
    ig_targets_free(&t);
    ig_pack_close(&m.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(phi3_mini_fused_without_groups),
        store_test(phi4_fused_with_ten_kv_heads),
        store_test(llama3_separate),
        store_test(qwen2_with_biases),
        store_test(fused_with_biases),
        store_test(qwen3_with_norms_and_tied_head),
        store_test(mistral_behind_another_prefix),
        store_test(smollm2_with_nine_heads),
        store_test(the_last_ranks_of_a_vocabulary_are_short_or_have_none),
        store_test(a_shape_that_config_json_contradicts_is_refused),
        store_test(the_decoder_of_a_larger_model_is_found),
        store_test(other_refusals),
        store_test(a_rank_that_is_none),
        store_test(without_config_json_only_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
