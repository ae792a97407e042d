/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what must be reported, stale claims, and configs that mean harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scales_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FP8 "{\"quantization_config\":{\"quant_method\":\"fp8\"}}"
#define FP8_BLOCK \
    "{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}"

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

static void g10_scale_forms(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "b.weight_scale", IG_F32, "1");
    fx_add(&f, "c.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "c.weight_scale", IG_F32, "256,1");
    fx_add(&f, "d.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "d.weight_scale_inv", IG_F32, "2,2");
    fx_add(&f, "e.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "g.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "g.scale_weight", IG_F32, "");
    fx_find(&f, FP8_BLOCK, NULL);
    assert_int_equal(fx_link(&f, "a.weight_scale", 0)->gran, IG_GRAN_TENSOR);
    assert_int_equal(fx_link(&f, "b.weight_scale", 0)->gran, IG_GRAN_TENSOR);
    assert_int_equal(fx_link(&f, "c.weight_scale", 0)->gran, IG_GRAN_ROW);
    assert_int_equal(fx_link(&f, "d.weight_scale_inv", 0)->gran, IG_GRAN_BLOCK);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(f.out.links[i].op, IG_OP_MULTIPLY);
    assert_int_equal(fx_link(&f, "g.scale_weight", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_count(&f, "e.weight: dtype F8_E4M3, but no scale"), 1);
    assert_int_equal(fx_count(&f, "g.scale_weight: looks like a scale of g.weight"), 1);
    assert_int_equal(f.out.nfindings, 2);
}

/* Nothing declared: kept, located, and not understood. */
static void g10_nothing_declared(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "b.weight_scale", IG_U8, "256,8");
    fx_add(&f, "c.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "c.weight_scale_foo", IG_F32, "");
    fx_find(&f, "{}", NULL);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(f.out.links[i].op, IG_OP_UNKNOWN);
        assert_int_equal(f.out.links[i].blob, IG_NONE);
    }
    assert_int_equal(fx_link(&f, "a.weight_scale", 0)->gran, IG_GRAN_TENSOR);
    assert_int_equal(fx_link(&f, "b.weight_scale", 0)->encoding, IG_ENC_E8M0);
    assert_int_equal(fx_count(&f, "2 scales, but neither config.json"), 1);
    assert_int_equal(fx_count(&f, "c.weight_scale_foo: looks like a scale"), 1);
    assert_null(f.out.method);
    assert_false(f.out.stale);
}

/* A name of one producer in the checkpoint of another says nothing. */
static void names_of_another_producer(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "a.weight_scale_2", IG_F32, "");
    fx_find(&f, FP8, NULL);
    assert_int_equal(fx_link(&f, "a.weight_scale", 0)->op, IG_OP_MULTIPLY);
    assert_int_equal(fx_link(&f, "a.weight_scale_2", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_count(&f, "a.weight_scale_2: looks like"), 1);
    fx_free(&f);
    fx_add(&f, "a.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "a.weight_scale_2", IG_F32, ""); /* its producer writes it only with NVFP4 */
    fx_add(&f, "a.weight_global_scale", IG_F32, "");
    fx_find(&f, NULL, "{\"quantization\":{\"quant_algo\":\"FP8\"}}");
    assert_int_equal(fx_link(&f, "a.weight_scale_2", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_link(&f, "a.weight_global_scale", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_count(&f, "a.weight_scale_2: looks like"), 1);
}

static void scale_without_weight(void **state)
{
    (void)state;
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.scale", IG_F8_E8M0, "4,4");
    fx_add(&f, "c.input_scale", IG_F32, "");
    fx_add(&f, "d.weight_scale_inv", IG_F32, "2,2");
    fx_add(&f, "layer_scale", IG_BF16, "64");
    fx_find(&f, FP8, NULL);
    assert_int_equal(f.out.nlinks, 0);
    assert_int_equal(fx_count(&f, "the weight it belongs to is not here"), 4);
    assert_int_equal(f.out.nfindings, 4);
    assert_false(f.out.stale);
}

/* Both shapes are named, and nobody multiplies by what does not fit. */
static void wrong_shape(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "300,260");
    fx_add(&f, "a.weight_scale_inv", IG_F32, "2,3"); /* floor, not ceiling */
    fx_add(&f, "b.weight", IG_F8_E4M3, "300,260");
    fx_add(&f, "b.weight_scale_inv", IG_F32, "");
    fx_add(&f, "c.weight", IG_F8_E4M3, "300,260");
    fx_add(&f, "c.weight_scale", IG_F32, "260");
    fx_find(&f, FP8_BLOCK, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(f.out.links[i].gran, IG_GRAN_UNKNOWN);
        assert_int_equal(f.out.links[i].op, IG_OP_UNKNOWN);
    }
    assert_int_equal(fx_count(&f,
                              "a.weight_scale_inv: shape [2,3] does not fit the shape [300,260] "
                              "of a.weight in blocks of 128 x 128"),
                     1);
    assert_int_equal(f.out.nfindings, 3);
}

static void dtypes_against_the_declaration(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_BF16, "256,256"); /* dequantised, scale left behind */
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "b.weight_scale", IG_U8, "256,8"); /* exponents, nobody declared them */
    fx_find(&f, FP8, NULL);
    assert_int_equal(fx_link(&f, "a.weight_scale", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_link(&f, "b.weight_scale", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_link(&f, "b.weight_scale", 0)->encoding, IG_ENC_E8M0);
    assert_int_equal(fx_count(&f, "a.weight_scale: dtype F32 beside a.weight of dtype BF16"), 1);
    assert_int_equal(fx_count(&f, "b.weight_scale: dtype U8"), 1);
}

static void nvfp4_without_global_scale(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_U8, "64,128");
    fx_add(&f, "a.weight_scale", IG_F8_E4M3, "64,16");
    fx_add(&f, "b.weight", IG_U8, "64,128");
    fx_find(&f, NULL, "{\"quantization\":{\"quant_algo\":\"NVFP4\"}}");
    assert_int_equal(fx_count(&f, "a.weight: NVFP4, but no global scale"), 1);
    assert_int_equal(fx_count(&f, "b.weight: dtype U8, but no scale"), 1);
}

static void two_files_disagree(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "64,128");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_add(&f, "b.weight", IG_U8, "64,128");
    fx_add(&f, "b.weight_scale_2", IG_F32, "");
    fx_find(&f, FP8, "{\"quantization\":{\"quant_algo\":\"NVFP4\"}}");
    assert_int_equal(fx_count(&f, "disagree: /quantization_config/quant_method is \"fp8\" (FP8), "
                                  "/quantization/quant_algo is \"NVFP4\" (NVFP4)"),
                     1);
    assert_int_equal(fx_link(&f, "a.weight_scale", 0)->op, IG_OP_MULTIPLY); /* both say so */
    assert_int_equal(fx_link(&f, "b.weight_scale_2", 0)->op, IG_OP_UNKNOWN);
}

static void two_files_agree(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "64,128");
    fx_add(&f, "a.weight_scale", IG_F32, "");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"}}",
            "{\"quantization\":{\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":null}}");
    fx_clean(&f);
}

static void b09_gptq_is_stored(void **state)
{
    (void)state;
    fx_add(&f, "m.k_proj.g_idx", IG_I32, "128");
    fx_add(&f, "m.k_proj.qweight", IG_I32, "16,64");
    fx_add(&f, "m.k_proj.qzeros", IG_I32, "1,8");
    fx_add(&f, "m.k_proj.scales", IG_F16, "1,64");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}", NULL);
    assert_int_equal(f.out.nlinks, 0);
    assert_int_equal(f.out.nfindings, 1);
    assert_int_equal(fx_count(&f, "method gptq: tensors stored, not understood"), 1);
    assert_string_equal(f.rows[f.out.findings[0].row].name, "m.k_proj.g_idx");
    assert_string_equal(f.out.method, "gptq");
    assert_false(f.out.stale);
}

static void b09_bitsandbytes_is_stored(void **state)
{
    (void)state;
    fx_add(&f, "m.weight", IG_U8, "2048,1");
    fx_add(&f, "m.weight.absmax", IG_F32, "64");
    fx_find(&f, "{\"quantization_config\":{\"load_in_4bit\":true}}", NULL);
    assert_int_equal(fx_count(&f, "method bitsandbytes: tensors stored"), 1);
    assert_string_equal(f.out.method, "bitsandbytes");
}

static void b09_stale_claims(void **state)
{
    static const char *const configs[] = {
        FP8, "{\"quantization_config\":{\"quant_method\":\"gptq\"}}",
        "{\"quantization_config\":{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}}",
        "{\"quantization_config\":{\"quant_method\":\"never heard of\"}}"};

    (void)state;
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        fx_add(&f, "m.weight", IG_BF16, "64,64");
        fx_add(&f, "m.bias", IG_I32, "64");
        fx_find(&f, configs[i], NULL);
        assert_true(f.out.stale);
        fx_free(&f);
    }
    fx_add(&f, "m.weight", IG_BF16, "64,64");
    fx_find(&f, "{}", NULL);
    assert_false(f.out.stale);
    fx_clean(&f);
}

static void unknown_method(void **state)
{
    (void)state;
    fx_add(&f, "m.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "m.weight_scale", IG_F32, "");
    fx_find(&f, "{\"quantization_config\":{\"quant_method\":\"x\\ny\"}}", NULL);
    assert_int_equal(fx_link(&f, "m.weight_scale", 0)->op, IG_OP_UNKNOWN);
    assert_int_equal(fx_count(&f, "method \"x\\ny\" is not known"), 1);
    assert_string_equal(f.out.method, "x\ny");
}

/* An ignored module may hold what it likes; names, parents, patterns and globs all count. */
static void ignored_modules(void **state)
{
    (void)state;
    fx_add(&f, "lm_head.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "model.layers.0.mlp.gate.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "model.layers.10.mlp.gate.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "model.layers.2.self_attn.o_proj.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "model.visual.a.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "model.visuals.a.weight", IG_F8_E4M3, "64,64"); /* not ignored */
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"fp8\",\"ignored_layers\":[\"lm_head\","
            "\"re:model\\\\.layers\\\\.\\\\d+\\\\.mlp\\\\.gate$\",\"model.visual\"],"
            "\"exclude_modules\":[\"*self_attn*\"]}}",
            NULL);
    assert_int_equal(f.out.nfindings, 1);
    assert_int_equal(fx_count(&f, "model.visuals.a.weight"), 1);
}

static void groups_by_target(void **state)
{
    (void)state;
    fx_add(&f, "m.a.weight", IG_F8_E4M3, "64,64");
    fx_add(&f, "m.a.weight_scale", IG_F32, "64,1");
    fx_add(&f, "m.b.weight_packed", IG_U8, "64,64");
    fx_add(&f, "m.b.weight_scale", IG_F8_E4M3, "64,8");
    fx_add(&f, "m.b.weight_global_scale", IG_F32, "1");
    fx_add(&f, "m.c.weight_packed", IG_U8, "64,64");
    fx_add(&f, "m.c.weight_scale", IG_F8_E4M3, "64,8");
    fx_add(&f, "m.c.weight_global_scale", IG_F32, "1");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
            "\"format\":\"mixed-precision\",\"config_groups\":{\"g/0\":{\"targets\":[\"Linear\"],"
            "\"format\":\"float-quantized\",\"weights\":{\"num_bits\":8,\"type\":\"float\"}},"
            "\"g~1\":{\"targets\":[\"re:.*[b]$\",\"re:.*(c|d)$\"],"
            "\"format\":\"nvfp4-pack-quantized\",\"weights\":{\"num_bits\":4,\"type\":\"float\"}}"
            "}}}",
            NULL);
    const struct ig_link *l = fx_link(&f, "m.a.weight_scale", 0);
    assert_string_equal(l->pointer, "/quantization_config/config_groups/g~10/weights");
    assert_int_equal(l->op, IG_OP_MULTIPLY);
    l = fx_link(&f, "m.b.weight_global_scale", 0);
    assert_string_equal(l->pointer, "/quantization_config/config_groups/g~01/format");
    assert_int_equal(l->op, IG_OP_DIVIDE);
    /* A pattern that is not read may mean the module: then the dtype must agree. */
    assert_int_equal(fx_link(&f, "m.c.weight_global_scale", 0)->op, IG_OP_DIVIDE);
    fx_clean(&f);
}

static void hostile_configs(void **state)
{
    static const char *const q[] = {
        "null",
        "1",
        "\"fp8\"",
        "[]",
        "{}",
        "{\"quant_method\":7}",
        "{\"quant_method\":null}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[0,128]}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[9223372036854775807,1]}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[-1,-1]}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":{\"a\":1}}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[128.0,\"128\"]}",
        "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128,128]}",
        "{\"quant_method\":\"fp8\",\"activation_scheme\":[],\"scale_fmt\":1,\"ignored_layers\":{}}",
        "{\"quant_method\":\"fp8\",\"ignored_layers\":[null,1,\"\",\"re:\",\"re:((((\",\"re:[\"]}",
        "{\"quant_method\":\"fp8\",\"kv_cache_scheme\":[1]}",
        "{\"quant_method\":\"fp8\",\"kv_cache_scheme\":{\"num_bits\":\"8\",\"type\":8}}",
        "{\"quant_method\":\"compressed-tensors\"}",
        "{\"quant_method\":\"compressed-tensors\",\"format\":4,\"config_groups\":[]}",
        "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":1,\"b\":null}}",
        "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"weights\":7}}}",
        "{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":"
        "{\"a\\nb\":{\"targets\":7,\"weights\":{\"strategy\":\"block\",\"block_structure\":\"x\"}}}"
        "}",
        "{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"config_groups\":"
        "{\"a\":{\"weights\":{\"strategy\":\"group\",\"group_size\":-5}}}}",
        "{\"quant_method\":\"modelopt\"}",
        "{\"quant_method\":\"modelopt\",\"quantization\":[]}",
        "{\"quant_method\":\"modelopt\",\"quant_algo\":{},\"group_size\":\"x\"}",
        "{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":[]"
        "}",
        "{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":"
        "{\"a\":1,\"b\":{\"quant_algo\":1}}}",
        "{\"quant_method\":\"quark\",\"global_quant_config\":7,\"export\":\"x\"}",
        "{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":[1]}}",
    };
    static const char *const hf[] = {
        "1",
        "[]",
        "{}",
        "{\"quantization\":3}",
        "{\"producer\":7,\"quantization\":{\"quant_algo\":3}}",
        "{\"quantization\":{\"group_size\":-1,\"kv_cache_quant_algo\":[]}}"};

    (void)state;
    for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
        for (size_t k = 0; k < sizeof(hf) / sizeof(hf[0]); k++) {
            char config[1024];
            snprintf(config, sizeof(config),
                     "{\"quantization_config\":%s,"
                     "\"num_key_value_heads\":\"x\",\"text_config\":[]}",
                     q[i]);
            fx_add(&f, "a.weight", IG_F8_E4M3, "0,9223372036854775807");
            fx_add(&f, "a.weight_scale", IG_F32, "18446744073709551615");
            fx_add(&f, "b.weight", IG_U8, "18446744073709551615,18446744073709551615");
            fx_add(&f, "b.weight_scale_inv", IG_F32, "1,0");
            fx_add(&f, "c.weight_blocks", IG_U8, "2,2,9223372036854775807,16");
            fx_add(&f, "c.weight_scales", IG_U8, "2,2,1");
            fx_add(&f, "k_scale", IG_F32, "1");
            fx_add(&f, "scale", IG_F32, "1");
            fx_add(&f, "weight", IG_F8_E4M3, "2,3,4,5,6");
            fx_add(&f, "x..k_proj.k_scale", IG_BOOL, "1,1,1,1");
            fx_find(&f, config, hf[k]);
            for (uint32_t n = 0; n < f.out.nfindings; n++) {
                assert_null(strchr(f.out.findings[n].text, '\n'));
            }
            fx_free(&f);
        }
    }
}

static void malformed_facts_are_named(void **state)
{
    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "256,256");
    fx_add(&f, "a.weight_scale_inv", IG_F32, "2,2");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[0,128]}}",
            NULL);
    assert_int_equal(fx_count(&f,
                              "config.json: /quantization_config/weight_block_size: expected two "
                              "positive integers"),
                     1);
    fx_free(&f);
    fx_find(&f, "{\"quantization_config\":[1]}", NULL);
    assert_int_equal(fx_count(&f, "config.json: /quantization_config: expected an object"), 1);
}

/* Many modules, patterns made to backtrack, a long list: seconds at most, and little memory. */
static void hostile_patterns_end_soon(void **state)
{
    enum { N = 20000 };
    struct ig_row *rows = calloc(N, sizeof(*rows));
    char(*names)[48] = calloc(N, sizeof(*names));
    uint64_t shape[2] = {64, 64};
    json_t *list = json_array();
    struct ig_scales out;
    ingot_error e = {0};

    (void)state;
    assert_non_null(rows);
    assert_non_null(names);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%06u.weight", i);
        rows[i] = (struct ig_row){.name = names[i],
                                  .name_len = (uint32_t)strlen(names[i]),
                                  .dtype = IG_F8_E4M3,
                                  .rank = 2,
                                  .shape = shape,
                                  .bytes = 4096};
    }
    for (int i = 0; i < 2000; i++) {
        char pattern[300] = "re:";
        for (size_t k = 0; k < 60; k++) memcpy(pattern + 3 + 4 * k, "a*.*", 4);
        memcpy(pattern + 3 + 4 * 60, "b$", 3);
        json_array_append_new(list, json_string(pattern));
    }
    json_t *config = json_pack("{s:{s:s,s:o}}", "quantization_config", "quant_method", "fp8",
                               "ignored_layers", list);
    const struct ig_scales_in in = {.rows = rows, .nrows = N, .config = config};
    const clock_t start = clock();
    assert_int_equal(ig_scales_find(&in, &out, &e), INGOT_OK);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 30);
    assert_int_equal(out.nfindings, IG_SC_MAX_FINDINGS);
    assert_non_null(strstr(out.findings[out.nfindings - 1].text, "more findings are not listed"));
    ig_scales_free(&out);
    json_decref(config);
    free(rows);
    free(names);
}

static void patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        int hit;
    } cases[] = {
        {"a.c", "abc", 1},    {"a\\.c", "abc", 0}, {"b", "abc", 0},         {"a", "abc", 1},
        {"a$", "abc", 0},     {".*c$", "abc", 1},  {"^a[a-b]+c", "abc", 1}, {"[^a]", "abc", 0},
        {"x?abc$", "abc", 1}, {"\\d+", "12", 1},   {"\\w*?$", "a_1", 1},    {"", "abc", 1},
        {"a+", "", 0},        {"(a|b)", "a", -1},  {"a{2}", "aa", -1},      {"[", "a", -1},
        {"a\\", "a", -1},     {"*", "a", -1},      {"a**", "a", -1},        {"\\b", "a", -1},
        {"[]]", "]", 1},      {"[z-a]", "b", -1},  {"[\\d]", "5", 1},       {"a^", "a", -1},
    };
    uint64_t budget = 1 << 20;
    char longer[400];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int hit = ig_sc_regex(cases[i].pattern, strlen(cases[i].pattern), cases[i].text,
                                    strlen(cases[i].text), &budget);
        if (hit != cases[i].hit) fail_msg("%s on %s: %d", cases[i].pattern, cases[i].text, hit);
    }
    memset(longer, 'a', sizeof(longer));
    assert_int_equal(ig_sc_regex(longer, 256, longer, 400, &budget), 1);
    assert_int_equal(ig_sc_regex(longer, 257, longer, 400, &budget), -1);
    assert_int_equal(ig_sc_glob("*.a?", 4, "x.y.ab", 6, &budget), 1);
    assert_int_equal(ig_sc_glob("*.a", 3, "x.ab", 4, &budget), 0);
    budget = 3;
    assert_int_equal(ig_sc_regex("aaaa", 4, "aaaa", 4, &budget), -1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(g10_scale_forms),
        T(g10_nothing_declared),
        T(names_of_another_producer),
        T(scale_without_weight),
        T(wrong_shape),
        T(dtypes_against_the_declaration),
        T(nvfp4_without_global_scale),
        T(two_files_disagree),
        T(two_files_agree),
        T(b09_gptq_is_stored),
        T(b09_bitsandbytes_is_stored),
        T(b09_stale_claims),
        T(unknown_method),
        T(ignored_modules),
        T(groups_by_target),
        T(hostile_configs),
        T(malformed_facts_are_named),
        T(hostile_patterns_end_soon),
        T(patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
