/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links of attentions: KV cache, q; one test a producer, then what must be reported. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scales_fixture.h"

#include <string.h>

#define A "model.layers.0.self_attn"
#define B "model.layers.1.self_attn"
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

static struct fx_want want(uint32_t role, uint32_t gran, const char *pointer)
{
    return (struct fx_want){.subject = A,
                            .module = true,
                            .role = role,
                            .op = IG_OP_MULTIPLY,
                            .gran = gran,
                            .logical = IG_F8_E4M3,
                            .blob = FX_CONFIG,
                            .pointer = pointer};
}

static void attention(const char *k_weight)
{
    fx_add(&f, k_weight, IG_BF16, "64,128");
}

#define AUTOFP8                                                                            \
    "{\"quantization_config\":{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"," \
    "\"kv_cache_scheme\":\"static\"}}"

static void autofp8_k_and_v(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_scale", IG_F32, "");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_find(&f, AUTOFP8, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".k_scale", 0, &w);
    w.role = IG_ROLE_KV_V;
    fx_expect(&f, A ".v_scale", 0, &w);
    fx_clean(&f);
}

/* One older scale serves both halves of the cache. */
static void autofp8_one_kv_scale(void **state)
{
    (void)state;
    attention(A ".qkv_proj.weight");
    fx_add(&f, A ".kv_scale", IG_F32, "");
    fx_find(&f, AUTOFP8, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".kv_scale", 0, &w);
    w.role = IG_ROLE_KV_V;
    fx_expect(&f, A ".kv_scale", 1, &w);
    assert_int_equal(f.out.nlinks, 2);
    fx_clean(&f);
}

static void autofp8_oldest_output_scale(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_proj.output_scale", IG_F32, "");
    fx_add(&f, A ".v_proj.output_scale", IG_F32, "");
    fx_find(&f, AUTOFP8, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".k_proj.output_scale", 0, &w);
    w.role = IG_ROLE_KV_V;
    fx_expect(&f, A ".v_proj.output_scale", 0, &w);
    fx_clean(&f);
}

#define CT_KV                                                                                      \
    "{\"num_key_value_heads\":4,\"quantization_config\":{\"quant_method\":\"compressed-tensors\"," \
    "\"format\":\"float-quantized\",\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\","       \
    "\"strategy\":\"attn_head\",\"dynamic\":false,\"symmetric\":true}}}"

static void compressed_tensors_per_head(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_scale", IG_BF16, "4,1,1");
    fx_add(&f, A ".v_scale", IG_BF16, "4,1,1");
    fx_add(&f, A ".q_scale", IG_BF16, "8,1,1");
    fx_find(&f, CT_KV, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_HEAD, Q "/kv_cache_scheme");
    fx_expect(&f, A ".k_scale", 0, &w);
    w.role = IG_ROLE_KV_V;
    fx_expect(&f, A ".v_scale", 0, &w);
    w.role = IG_ROLE_Q;
    fx_expect(&f, A ".q_scale", 0, &w);
    fx_clean(&f);
}

static void compressed_tensors_cache_zero_points(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_scale", IG_BF16, "1");
    fx_add(&f, A ".v_scale", IG_BF16, "1");
    fx_add(&f, A ".k_zero_point", IG_F8_E4M3, "1");
    fx_find(&f, CT_KV, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    w.stage = 1;
    fx_expect(&f, A ".k_scale", 0, &w);
    w.role = IG_ROLE_ZERO_POINT;
    w.op = IG_OP_UNKNOWN;
    w.stage = 0;
    fx_expect(&f, A ".k_zero_point", 0, &w);
    w = want(IG_ROLE_KV_V, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".v_scale", 0, &w);
    assert_int_equal(f.out.nfindings, 1);
}

static void compressed_tensors_older_output_scale(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_proj.output_scale", IG_BF16, "1");
    fx_add(&f, A ".v_proj.output_scale", IG_BF16, "1");
    fx_find(&f, CT_KV, NULL);
    const struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".k_proj.output_scale", 0, &w);
    fx_clean(&f);
}

#define HF(quantization) \
    "{\"producer\":{\"name\":\"modelopt\"},\"quantization\":{" quantization "}}"

static void modelopt_cache(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_proj.k_scale", IG_F32, "");
    fx_add(&f, A ".v_proj.v_scale", IG_F32, "");
    fx_find(&f, NULL, HF("\"quant_algo\":null,\"kv_cache_quant_algo\":\"FP8\""));
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, "/quantization/kv_cache_quant_algo");
    w.blob = FX_HF;
    fx_expect(&f, A ".k_proj.k_scale", 0, &w);
    w.role = IG_ROLE_KV_V;
    fx_expect(&f, A ".v_proj.v_scale", 0, &w);
    assert_null(f.out.method);
    fx_clean(&f);
}

static void modelopt_cache_bias(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_proj.k_scale", IG_F32, "");
    fx_add(&f, A ".v_proj.v_scale", IG_F32, "");
    fx_add(&f, A ".k_proj.k_bias", IG_F32, "");
    fx_add(&f, "vision.blocks.0.attn.k_bias", IG_BF16, "64");
    fx_find(&f, NULL, HF("\"kv_cache_quant_algo\":\"NVFP4\""));
    struct fx_want w = want(IG_ROLE_BIAS, IG_GRAN_TENSOR, "/quantization/kv_cache_quant_algo");
    w.op = IG_OP_UNKNOWN;
    w.stage = 1;
    w.logical = IG_F4;
    w.blob = FX_HF;
    fx_expect(&f, A ".k_proj.k_bias", 0, &w);
    assert_null(fx_link(&f, "vision.blocks.0.attn.k_bias", 0));
    assert_int_equal(f.out.nfindings, 1);
}

static void quark_cache_group(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_proj.output_scale", IG_F32, "");
    fx_add(&f, A ".v_proj.output_scale", IG_F32, "");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"quark\",\"export\":{"
            "\"kv_cache_group\":[\"*k_proj\",\"*v_proj\"]}}}",
            NULL);
    const struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/export/kv_cache_group");
    fx_expect(&f, A ".k_proj.output_scale", 0, &w);
    fx_clean(&f);
}

/* Only the cache is quantised: no method, and not a stale claim either. */
static void cache_scheme_alone_is_not_stale(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_find(&f,
            "{\"quantization_config\":{\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\"}}}",
            NULL);
    const struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    fx_expect(&f, A ".k_scale", 0, &w);
    assert_false(f.out.stale);
    fx_clean(&f);
}

static void declared_but_absent(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_find(&f, CT_KV, NULL);
    assert_int_equal(fx_count(&f, Q "/kv_cache_scheme"), 1);
    assert_int_equal(fx_count(&f, "there are no scales"), 1);
}

static void declared_but_some_are_absent(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    attention(B ".k_proj.weight");
    attention("vision.layers.0.self_attn.k_proj.weight"); /* has no cache */
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_add(&f, B ".k_scale", IG_F32, "1");
    fx_find(&f, CT_KV, NULL);
    assert_int_equal(f.out.nfindings, 1);
    assert_int_equal(fx_count(&f, "1 attention modules lack"), 1);
    assert_int_equal(fx_count(&f, B), 1);
}

static void present_but_undeclared(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_add(&f, "vision.attn.q_scale", IG_F32, "64"); /* a learned vector */
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"fp8\"}}", NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, NULL);
    w.op = IG_OP_UNKNOWN;
    fx_expect(&f, A ".k_scale", 0, &w);
    assert_null(fx_link(&f, "vision.attn.q_scale", 0));
    assert_int_equal(fx_count(&f, "2 scales of an attention or KV cache that no config"), 1);
}

static void dynamic_cache_stores_none(void **state)
{
    (void)state;
    attention(A ".k_proj.weight");
    fx_find(&f,
            "{\"quantization_config\":{\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\","
            "\"dynamic\":true}}}",
            NULL);
    fx_clean(&f);
}

static void wrong_number_of_heads(void **state)
{
    (void)state;
    fx_add(&f, A ".k_scale", IG_F32, "5,1,1");
    fx_add(&f, A ".v_scale", IG_F32, "4");
    fx_find(&f, CT_KV, NULL);
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_UNKNOWN, Q "/kv_cache_scheme");
    w.op = IG_OP_UNKNOWN;
    fx_expect(&f, A ".k_scale", 0, &w);
    assert_int_equal(fx_count(&f, A ".k_scale: shape [5,1,1]"), 1);
    assert_int_equal(fx_count(&f, A ".v_scale: shape [4]"), 1);
    assert_int_equal(fx_count(&f, "num_key_value_heads 4"), 2);
}

static void two_files_disagree_about_the_cache(void **state)
{
    (void)state;
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_find(&f, CT_KV, HF("\"quant_algo\":null,\"kv_cache_quant_algo\":\"NVFP4\""));
    struct fx_want w = want(IG_ROLE_KV_K, IG_GRAN_TENSOR, Q "/kv_cache_scheme");
    w.op = IG_OP_UNKNOWN;
    fx_expect(&f, A ".k_scale", 0, &w);
    assert_int_equal(fx_count(&f, "disagree about the KV cache"), 1);
    assert_int_equal(fx_count(&f, "F8_E4M3, /quantization/kv_cache_quant_algo F4"), 1);
}

static void two_scales_for_one_cache(void **state)
{
    (void)state;
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_add(&f, A ".kv_scale", IG_F32, "1");
    fx_find(&f, CT_KV, NULL);
    assert_int_equal(fx_link(&f, A ".k_scale", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_link(&f, A ".kv_scale", 1)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_count(&f, "are scales of the same thing"), 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(autofp8_k_and_v),
        T(autofp8_one_kv_scale),
        T(autofp8_oldest_output_scale),
        T(compressed_tensors_per_head),
        T(compressed_tensors_cache_zero_points),
        T(compressed_tensors_older_output_scale),
        T(modelopt_cache),
        T(modelopt_cache_bias),
        T(quark_cache_group),
        T(cache_scheme_alone_is_not_stale),
        T(declared_but_absent),
        T(declared_but_some_are_absent),
        T(present_but_undeclared),
        T(dynamic_cache_stores_none),
        T(wrong_number_of_heads),
        T(two_files_disagree_about_the_cache),
        T(two_scales_for_one_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
