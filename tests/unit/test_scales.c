/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links of weights and inputs: one test a producer, as ingot-pack(5) lists them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scales_fixture.h"

#include <string.h>

#define W "model.layers.0.mlp.up_proj.weight"
#define P "model.layers.0.mlp.up_proj"
#define Q "/quantization_config"

static struct fx f;

static int setup(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fx_free(&f);
    return 0;
}

/* A link of W under config.json: the common case. */
static struct fx_want want(uint32_t gran, uint64_t rows, uint64_t columns, const char *pointer)
{
    return (struct fx_want){.subject = W,
                            .role = IG_ROLE_WEIGHT,
                            .op = IG_OP_MULTIPLY,
                            .gran = gran,
                            .rows = rows,
                            .columns = columns,
                            .logical = IG_F8_E4M3,
                            .blob = FX_CONFIG,
                            .pointer = pointer};
}

static void autofp8_per_tensor(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "300,260");
    fx_add(&f, P ".weight_scale", IG_F32, "");
    fx_add(&f, P ".input_scale", IG_F32, "1");
    fx_add(&f, "model.layers.1.mlp.up_proj.weight", IG_F8_E4M3, "300,260");
    fx_add(&f, "model.layers.1.mlp.up_proj.weight_scale", IG_F32, "1");
    fx_add(&f, "model.layers.1.mlp.up_proj.act_scale", IG_F32, "1");
    fx_add(&f, "lm_head.weight", IG_BF16, "300,260");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\","
            "\"ignored_layers\":[\"lm_head\"]}}",
            NULL);
    struct fx_want w = want(IG_GRAN_TENSOR, 0, 0, Q "/quant_method");
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.role = IG_ROLE_INPUT;
    w.pointer = Q "/activation_scheme";
    fx_expect(&f, P ".input_scale", 0, &w);
    w.subject = "model.layers.1.mlp.up_proj.weight";
    fx_expect(&f, "model.layers.1.mlp.up_proj.act_scale", 0, &w);
    assert_string_equal(f.out.method, "fp8");
    assert_false(f.out.stale);
    fx_clean(&f);
}

#define BLOCK_FP8                                                                  \
    "\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"activation_scheme\":\"dynamic\"," \
    "\"weight_block_size\":[128,128]"

static void deepseek_v3_inv_multiplies(void **state)
{
    const char *moe = "model.layers.3.mlp.experts.gate_up_proj";

    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "300,260");
    fx_add(&f, P ".weight_scale_inv", IG_F32, "3,3");
    fx_add(&f, moe, IG_F8_E4M3, "4,300,260");
    fx_add(&f, "model.layers.3.mlp.experts.gate_up_proj_scales_inv", IG_F32, "4,3,3");
    fx_add(&f, "model.layers.3.mlp.experts.down_proj", IG_F8_E4M3, "4,256,128");
    fx_add(&f, "model.layers.3.mlp.experts.down_proj_scales_inv", IG_F32, "4,2,1");
    fx_find(&f, "{\"quantization_config\":{" BLOCK_FP8 "}}", NULL);
    struct fx_want w = want(IG_GRAN_BLOCK, 128, 128, Q "/weight_block_size");
    fx_expect(&f, P ".weight_scale_inv", 0, &w);
    w.subject = moe;
    fx_expect(&f, "model.layers.3.mlp.experts.gate_up_proj_scales_inv", 0, &w);
    w.subject = "model.layers.3.mlp.experts.down_proj";
    fx_expect(&f, "model.layers.3.mlp.experts.down_proj_scales_inv", 0, &w);
    fx_clean(&f);
}

static void deepseek_v4_dot_scale(void **state)
{
    (void)state;
    fx_add(&f, "layers.0.attn.wo_a.weight", IG_F8_E4M3, "8192,4096");
    fx_add(&f, "layers.0.attn.wo_a.scale", IG_F8_E8M0, "64,32");
    fx_add(&f, "layers.0.ffn.experts.0.w1.weight", IG_I8, "2048,2048");
    fx_add(&f, "layers.0.ffn.experts.0.w1.scale", IG_F8_E8M0, "2048,128");
    fx_add(&f, "layers.0.ffn.experts.1.w1.weight", IG_F4, "2048,4096");
    fx_add(&f, "layers.0.ffn.experts.1.w1.scale", IG_F8_E8M0, "2048,128");
    fx_add(&f, "layers.0.norm.scale", IG_BF16, "4096");
    fx_find(&f,
            "{\"expert_dtype\":\"fp4\",\"quantization_config\":{" BLOCK_FP8
            ",\"scale_fmt\":\"ue8m0\"}}",
            NULL);
    struct fx_want w = want(IG_GRAN_BLOCK, 128, 128, Q "/weight_block_size");
    w.subject = "layers.0.attn.wo_a.weight";
    w.encoding = IG_ENC_E8M0;
    fx_expect(&f, "layers.0.attn.wo_a.scale", 0, &w);
    w = want(IG_GRAN_GROUP, 1, 32, "/expert_dtype");
    w.subject = "layers.0.ffn.experts.0.w1.weight";
    w.encoding = IG_ENC_E8M0;
    w.logical = IG_F4;
    fx_expect(&f, "layers.0.ffn.experts.0.w1.scale", 0, &w);
    w.subject = "layers.0.ffn.experts.1.w1.weight";
    fx_expect(&f, "layers.0.ffn.experts.1.w1.scale", 0, &w);
    fx_clean(&f);
}

/* The block follows from the shapes where none is declared. */
static void deepseek_v4_block_from_shapes(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "8192,4096");
    fx_add(&f, P ".scale", IG_F8_E8M0, "64,32");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"fp8\",\"scale_fmt\":\"ue8m0\"}}",
            NULL);
    struct fx_want w = want(IG_GRAN_BLOCK, 128, 128, Q "/quant_method");
    w.encoding = IG_ENC_E8M0;
    fx_expect(&f, P ".scale", 0, &w);
    fx_clean(&f);
}

#define CT(format, weights, more)                                                            \
    "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"" format \
    "\",\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{" weights      \
    "},\"input_activations\":{\"num_bits\":8}}},\"ignore\":[\"lm_head\"]" more "}}"
#define G0 Q "/config_groups/group_0"

static void compressed_tensors_fp8(void **state)
{
    static const struct {
        const char *shape, *weights;
        uint32_t gran;
        uint64_t rows, columns;
        const char *pointer;
    } cases[] = {
        {"1", "\"strategy\":\"tensor\"", IG_GRAN_TENSOR, 0, 0, G0 "/weights"},
        {"300,1", "\"strategy\":\"channel\"", IG_GRAN_ROW, 1, 0, G0 "/weights"},
        {"3,3", "\"strategy\":\"block\",\"block_structure\":[128,128]", IG_GRAN_BLOCK, 128, 128,
         G0 "/weights/block_structure"},
        {"300,4", "\"strategy\":\"group\",\"group_size\":64", IG_GRAN_GROUP, 1, 64, G0 "/weights"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char config[512];
        snprintf(config, sizeof(config),
                 CT("float-quantized", "\"num_bits\":8,\"type\":\"float\",%s", ""),
                 cases[i].weights);
        fx_add(&f, W, IG_F8_E4M3, "300,256");
        if (i == 2) f.shapes[0][1] = 260;
        fx_add(&f, P ".weight_scale", IG_BF16, cases[i].shape);
        fx_add(&f, P ".input_scale", IG_BF16, "1");
        fx_find(&f, config, NULL);
        struct fx_want w = want(cases[i].gran, cases[i].rows, cases[i].columns, cases[i].pointer);
        fx_expect(&f, P ".weight_scale", 0, &w);
        w = want(IG_GRAN_TENSOR, 0, 0, G0 "/input_activations");
        w.role = IG_ROLE_INPUT;
        fx_expect(&f, P ".input_scale", 0, &w);
        fx_clean(&f);
        fx_free(&f);
    }
}

/* A zero point comes first and is no factor. */
static void compressed_tensors_zero_point(void **state)
{
    (void)state;
    fx_add(&f, W, IG_I8, "300,256");
    fx_add(&f, P ".weight_scale", IG_BF16, "300,1");
    fx_add(&f, P ".weight_zero_point", IG_I8, "300,1");
    fx_find(&f, CT("int-quantized", "\"num_bits\":8,\"type\":\"int\",\"strategy\":\"channel\"", ""),
            NULL);
    struct fx_want w = want(IG_GRAN_ROW, 1, 0, G0 "/weights");
    w.logical = IG_I8;
    w.stage = 1;
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.role = IG_ROLE_ZERO_POINT;
    w.stage = 0;
    w.op = IG_OP_UNKNOWN;
    fx_expect(&f, P ".weight_zero_point", 0, &w);
    assert_int_equal(f.out.nfindings, 1);
    assert_int_equal(fx_count(&f, "zero points"), 1);
}

static void compressed_tensors_packed_integers(void **state)
{
    (void)state;
    fx_add(&f, P ".weight_packed", IG_I32, "256,64");
    fx_add(&f, P ".weight_scale", IG_BF16, "256,4");
    fx_add(&f, P ".weight_zero_point", IG_I32, "32,4");
    fx_add(&f, P ".weight_shape", IG_I64, "2");
    fx_find(&f,
            CT("pack-quantized",
               "\"num_bits\":4,\"type\":\"int\",\"strategy\":\"group\",\"group_size\":128", ""),
            NULL);
    struct fx_want w = want(IG_GRAN_GROUP, 1, 128, G0 "/weights");
    w.subject = P ".weight_packed";
    w.logical = IG_I32;
    w.op = IG_OP_UNKNOWN;
    w.stage = 1;
    fx_expect(&f, P ".weight_scale", 0, &w);
    w = want(IG_GRAN_UNKNOWN, 0, 0, G0 "/weights");
    w.subject = P ".weight_packed";
    w.logical = IG_I32;
    w.op = IG_OP_UNKNOWN;
    w.role = IG_ROLE_ZERO_POINT;
    fx_expect(&f, P ".weight_zero_point", 0, &w);
    assert_int_equal(fx_count(&f, "packed in 32-bit words"), 1);
    assert_false(f.out.stale);
}

static void compressed_tensors_nvfp4_global_divides(void **state)
{
    (void)state;
    fx_add(&f, P ".weight_packed", IG_U8, "64,128");
    fx_add(&f, P ".weight_scale", IG_F8_E4M3, "64,16");
    fx_add(&f, P ".weight_global_scale", IG_F32, "1");
    fx_add(&f, P ".input_global_scale", IG_F32, "1");
    fx_find(&f,
            CT("nvfp4-pack-quantized",
               "\"num_bits\":4,\"type\":\"float\",\"strategy\":\"tensor_group\","
               "\"group_size\":16",
               ""),
            NULL);
    struct fx_want w = want(IG_GRAN_GROUP, 1, 16, G0 "/weights");
    w.subject = P ".weight_packed";
    w.logical = IG_F4;
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.gran = IG_GRAN_TENSOR;
    w.rows = w.columns = 0;
    w.op = IG_OP_DIVIDE;
    w.pointer = Q "/format";
    w.role = IG_ROLE_INPUT;
    fx_expect(&f, P ".input_global_scale", 0, &w);
    w.role = IG_ROLE_GLOBAL;
    w.stage = 1;
    fx_expect(&f, P ".weight_global_scale", 0, &w);
    fx_clean(&f);
}

#define HF(quantization)                                                                         \
    "{\"producer\":{\"name\":\"modelopt\",\"version\":\"0.29\"},\"quantization\":{" quantization \
    "}}"

static void modelopt_fp8(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "300,260");
    fx_add(&f, P ".weight_scale", IG_F32, "");
    fx_add(&f, P ".input_scale", IG_F32, "");
    fx_add(&f, "model.layers.1.mlp.up_proj.weight", IG_F8_E4M3, "300,260");
    fx_add(&f, "model.layers.1.mlp.up_proj.weight_scale", IG_F32, "300");
    fx_find(&f, "{}",
            HF("\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":null,"
               "\"exclude_modules\":[\"lm_head\"]"));
    struct fx_want w = want(IG_GRAN_TENSOR, 0, 0, "/quantization/quant_algo");
    w.blob = FX_HF;
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.role = IG_ROLE_INPUT;
    fx_expect(&f, P ".input_scale", 0, &w);
    w.role = IG_ROLE_WEIGHT;
    w.subject = "model.layers.1.mlp.up_proj.weight";
    w.gran = IG_GRAN_ROW;
    w.rows = 1;
    fx_expect(&f, "model.layers.1.mlp.up_proj.weight_scale", 0, &w);
    assert_string_equal(f.out.method, "modelopt");
    fx_clean(&f);
}

static void modelopt_fp8_blocks(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "256,384");
    fx_add(&f, P ".weight_scale", IG_F32, "2,1,3,1");
    fx_find(&f, NULL, HF("\"quant_algo\":\"FP8_PB_WO\",\"group_size\":128"));
    struct fx_want w = want(IG_GRAN_BLOCK, 128, 128, "/quantization/quant_algo");
    w.blob = FX_HF;
    fx_expect(&f, P ".weight_scale", 0, &w);
    fx_clean(&f);
}

static void modelopt_nvfp4_global_multiplies(void **state)
{
    (void)state;
    fx_add(&f, W, IG_U8, "64,128");
    fx_add(&f, P ".weight_scale", IG_F8_E4M3, "64,16");
    fx_add(&f, P ".weight_scale_2", IG_F32, "");
    fx_add(&f, P ".input_scale", IG_F32, "");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\","
            "\"ignore\":[]}}",
            HF("\"quant_algo\":\"NVFP4\",\"group_size\":16"));
    struct fx_want w = want(IG_GRAN_GROUP, 1, 16, Q "/quant_algo");
    w.logical = IG_F4;
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.gran = IG_GRAN_TENSOR;
    w.rows = w.columns = 0;
    w.role = IG_ROLE_INPUT;
    fx_expect(&f, P ".input_scale", 0, &w);
    w.role = IG_ROLE_GLOBAL;
    w.stage = 1;
    fx_expect(&f, P ".weight_scale_2", 0, &w);
    fx_clean(&f);
    /* Ascending: role weight, input, global of one subject. */
    assert_int_equal(f.out.nlinks, 3);
    assert_int_equal(f.out.links[0].role, IG_ROLE_WEIGHT);
    assert_int_equal(f.out.links[1].role, IG_ROLE_INPUT);
    assert_int_equal(f.out.links[2].role, IG_ROLE_GLOBAL);
}

static void modelopt_mixed_precision(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "64,128");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.weight", IG_U8, "64,128");
    fx_add(&f, "b.weight_scale", IG_F8_E4M3, "64,16");
    fx_add(&f, "b.weight_scale_2", IG_F32, "");
    fx_find(&f, NULL,
            HF("\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{"
               "\"a\":{\"quant_algo\":\"FP8\"},"
               "\"b\":{\"quant_algo\":\"NVFP4\",\"group_size\":16}}"));
    struct fx_want w = want(IG_GRAN_TENSOR, 0, 0, "/quantization/quantized_layers/a/quant_algo");
    w.blob = FX_HF;
    w.subject = "a.weight";
    fx_expect(&f, "a.weight_scale", 0, &w);
    w.subject = "b.weight";
    w.logical = IG_F4;
    w.role = IG_ROLE_GLOBAL;
    w.stage = 1;
    w.pointer = "/quantization/quantized_layers/b/quant_algo";
    fx_expect(&f, "b.weight_scale_2", 0, &w);
    fx_clean(&f);
}

/* A link names a place that is there, or what would hold it. */
static void places_that_are_not_there(void **state)
{
    (void)state;
    char key[300], config[600];
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = 0;
    /* A key that is too long for a pointer: what holds it stands for it. */
    snprintf(config, sizeof(config),
             "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{"
             "\"%s\":{\"weights\":{\"num_bits\":8,\"type\":\"float\"}}}}}",
             key);
    fx_add(&f, W, IG_F8_E4M3, "64,128");
    fx_add(&f, P ".weight_scale", IG_F32, "1");
    fx_find(&f, config, NULL);
    struct fx_want w = want(IG_GRAN_TENSOR, 0, 0, Q "/config_groups");
    fx_expect(&f, P ".weight_scale", 0, &w);
    fx_free(&f);
    /* No quant_algo: the method declared what there is. */
    fx_add(&f, W, IG_F8_E4M3, "64,128");
    fx_add(&f, P ".weight_scale", IG_F32, "1");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"modelopt\"}}", NULL);
    w.op = IG_OP_UNKNOWN;
    w.pointer = Q "/quant_method";
    fx_expect(&f, P ".weight_scale", 0, &w);
    fx_free(&f);
    fx_add(&f, "a.weight", IG_F8_E4M3, "64,128");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_find(
        &f, NULL,
        HF("\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{\"a\":{\"group_size\":1}}"));
    w.blob = FX_HF;
    w.subject = "a.weight";
    w.pointer = "/quantization/quantized_layers/a";
    fx_expect(&f, "a.weight_scale", 0, &w);
}

static void fbgemm_fp8(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "300,260");
    fx_add(&f, P ".weight_scale", IG_F32, "300,1");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"fbgemm_fp8\","
            "\"activation_scale_ub\":1200.0,\"modules_to_not_convert\":[\"lm_head\"]}}",
            NULL);
    const struct fx_want w = want(IG_GRAN_ROW, 1, 0, Q "/quant_method");
    fx_expect(&f, P ".weight_scale", 0, &w);
    fx_clean(&f);
}

/* A byte of scale is an exponent: 120 means 2^-7. */
static void mxfp8_two_producers(void **state)
{
    static const char ct[] = CT("mxfp8-quantized",
                                "\"num_bits\":8,\"type\":\"float\",\"strategy\":\"group\","
                                "\"group_size\":32,\"scale_dtype\":\"torch.uint8\"",
                                "");

    (void)state;
    for (int modelopt = 0; modelopt < 2; modelopt++) {
        fx_add(&f, W, IG_F8_E4M3, "64,256");
        fx_add(&f, P ".weight_scale", IG_U8, "64,8");
        fx_find(&f, modelopt ? NULL : ct, modelopt ? HF("\"quant_algo\":\"MXFP8\"") : NULL);
        struct fx_want w =
            want(IG_GRAN_GROUP, 1, 32, modelopt ? "/quantization/quant_algo" : G0 "/weights");
        w.encoding = IG_ENC_E8M0;
        w.blob = modelopt ? FX_HF : FX_CONFIG;
        fx_expect(&f, P ".weight_scale", 0, &w);
        fx_clean(&f);
        fx_free(&f);
    }
}

static void gpt_oss_mxfp4(void **state)
{
    (void)state;
    fx_add(&f, "model.layers.0.mlp.experts.gate_up_proj_blocks", IG_U8, "4,96,3,16");
    fx_add(&f, "model.layers.0.mlp.experts.gate_up_proj_scales", IG_U8, "4,96,3");
    fx_add(&f, "model.layers.0.mlp.experts.gate_up_proj_bias", IG_BF16, "4,96");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"mxfp4\","
            "\"modules_to_not_convert\":[\"model.layers.*.self_attn\"]}}",
            NULL);
    struct fx_want w = want(IG_GRAN_GROUP, 1, 32, Q "/quant_method");
    w.subject = "model.layers.0.mlp.experts.gate_up_proj_blocks";
    w.logical = IG_F4;
    w.encoding = IG_ENC_E8M0;
    fx_expect(&f, "model.layers.0.mlp.experts.gate_up_proj_scales", 0, &w);
    assert_int_equal(f.out.nlinks, 1);
    fx_clean(&f);
}

static void quark(void **state)
{
    (void)state;
    fx_add(&f, W, IG_F8_E4M3, "256,384");
    fx_add(&f, P ".weight_scale", IG_F32, "2,3");
    fx_add(&f, P ".output_scale", IG_F32, "");
    fx_add(&f, "model.layers.0.self_attn.prob_output_scale", IG_F32, "");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"quark\"}}", NULL);
    struct fx_want w = want(IG_GRAN_BLOCK, 128, 128, Q "/quant_method");
    fx_expect(&f, P ".weight_scale", 0, &w);
    w.gran = IG_GRAN_TENSOR;
    w.rows = w.columns = 0;
    w.role = IG_ROLE_OUTPUT;
    fx_expect(&f, P ".output_scale", 0, &w);
    w.role = IG_ROLE_PROB;
    w.module = true;
    w.subject = "model.layers.0.self_attn";
    fx_expect(&f, "model.layers.0.self_attn.prob_output_scale", 0, &w);
    fx_clean(&f);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(autofp8_per_tensor),
        T(deepseek_v3_inv_multiplies),
        T(deepseek_v4_dot_scale),
        T(deepseek_v4_block_from_shapes),
        T(compressed_tensors_fp8),
        T(compressed_tensors_zero_point),
        T(compressed_tensors_packed_integers),
        T(compressed_tensors_nvfp4_global_divides),
        T(modelopt_fp8),
        T(modelopt_fp8_blocks),
        T(modelopt_nvfp4_global_multiplies),
        T(modelopt_mixed_precision),
        T(places_that_are_not_there),
        T(fbgemm_fp8),
        T(mxfp8_two_producers),
        T(gpt_oss_mxfp4),
        T(quark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
