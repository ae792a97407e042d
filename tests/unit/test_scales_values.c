/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes of a scale tell: zero, negative, not finite, all exactly 1. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scales_fixture.h"

#include <math.h>
#include <string.h>

static struct ig_scale_stats look(const void *bytes, uint32_t dtype, uint64_t n, uint32_t encoding)
{
    struct ig_scale_stats s = {0};

    assert_int_equal(ig_scales_values(bytes, dtype, n, encoding, &s), INGOT_OK);
    assert_int_equal(s.n, n);
    return s;
}

static void expect(struct ig_scale_stats s, uint64_t nonfinite, uint64_t nonpositive, uint64_t ones,
                   uint64_t first_bad)
{
    assert_int_equal(s.nonfinite, nonfinite);
    assert_int_equal(s.nonpositive, nonpositive);
    assert_int_equal(s.ones, ones);
    if (nonfinite + nonpositive) assert_int_equal(s.first_bad, first_bad);
}

static void wide_floats(void **state)
{
    const float f32[] = {1.0f, 0.5f, -0.0f, NAN, -2.0f, INFINITY, 1e-45f};
    const double f64[] = {1.0, 5e-324, -INFINITY};
    const uint16_t bf16[] = {0x3f80, 0x0001, 0x8000, 0x7f80, 0x7fc0, 0xbf80};
    const uint16_t f16[] = {0x3c00, 0x0001, 0x0000, 0x7c00, 0x7e00, 0xbc00};

    (void)state;
    expect(look(f32, IG_F32, 7, IG_ENC_VALUE), 2, 2, 1, 2);
    expect(look(f64, IG_F64, 3, IG_ENC_VALUE), 1, 0, 1, 2);
    expect(look(bf16, IG_BF16, 6, IG_ENC_VALUE), 2, 2, 1, 2);
    expect(look(f16, IG_F16, 6, IG_ENC_VALUE), 2, 2, 1, 2);
}

static void narrow_floats(void **state)
{
    uint8_t all[256];

    (void)state;
    for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
    /* E4M3FN: 2 NaN, no infinity; both zeros and 126 negatives. */
    expect(look(all, IG_F8_E4M3, 256, IG_ENC_VALUE), 2, 1 + 127, 1, 0);
    expect(look(all, IG_F8_E5M2, 256, IG_ENC_VALUE), 8, 1 + 124, 1, 0);
    /* FNUZ: 0x80 is the only NaN, and there is one zero. */
    expect(look(all, IG_F8_E4M3FNUZ, 256, IG_ENC_VALUE), 1, 1 + 127, 1, 0);
    /* An exponent byte is never zero or negative; 0xff is NaN, 127 is 1. */
    expect(look(all, IG_F8_E8M0, 256, IG_ENC_VALUE), 1, 0, 1, 255);
    expect(look(all, IG_U8, 256, IG_ENC_E8M0), 1, 0, 1, 255);
    const uint8_t e4m3[] = {0x38, 0x7e, 0x7f, 0x00};
    expect(look(e4m3, IG_F8_E4M3, 4, IG_ENC_VALUE), 1, 1, 1, 2);
}

static void in_pieces(void **state)
{
    const float a[] = {1.0f, 2.0f}, b[] = {3.0f, 0.0f, -1.0f};
    const uint8_t c[] = {0x38, 0x00};
    struct ig_scale_stats s = {0};

    (void)state;
    assert_int_equal(ig_scales_values(a, IG_F32, 2, IG_ENC_VALUE, &s), INGOT_OK);
    assert_int_equal(ig_scales_values(b, IG_F32, 3, IG_ENC_VALUE, &s), INGOT_OK);
    assert_int_equal(s.n, 5);
    expect(s, 0, 2, 1, 3);
    assert_int_equal(ig_scales_values(c, IG_F8_E4M3, 2, IG_ENC_VALUE, &s), INGOT_OK);
    expect(s, 0, 3, 2, 3);
    assert_int_equal(ig_scales_values(a, IG_I64, 1, IG_ENC_VALUE, &s), INGOT_ERR_UNSUPPORTED);
    assert_int_equal(s.n, 7);
}

#define A "model.layers.0.self_attn"

static void judged(void **state)
{
    struct fx f = {0};
    struct ig_scale_stats stats[FX_ROWS] = {0};
    ingot_error e = {0};
    const float one = 1.0f, bad[] = {0.5f, NAN};

    (void)state;
    fx_add(&f, "a.weight", IG_F8_E4M3, "2,4");
    fx_add(&f, "a.weight_scale", IG_F32, "2,1");
    fx_add(&f, A ".k_scale", IG_F32, "1");
    fx_add(&f, A ".v_scale", IG_F32, "1");
    fx_find(&f,
            "{\"quantization_config\":{\"quant_method\":\"fp8\",\"kv_cache_scheme\":\"static\"}}",
            NULL);
    fx_clean(&f);
    for (uint32_t i = 0; i < f.nrows; i++) {
        const bool kv = strstr(f.rows[i].name, "self_attn") != NULL;
        if (!strstr(f.rows[i].name, "scale")) continue;
        assert_int_equal(ig_scales_values(kv ? &one : bad, IG_F32, kv ? 1 : 2, 0, &stats[i]),
                         INGOT_OK);
    }
    assert_int_equal(ig_scales_judge(&f.out, f.rows, f.nrows, stats, &e), INGOT_OK);
    assert_int_equal(f.out.nfindings, 2);
    assert_int_equal(fx_count(&f,
                              "a.weight_scale: 0 of 2 scales are zero or negative, 1 not finite; "
                              "the first is element 1"),
                     1);
    assert_int_equal(fx_count(&f, "all 2 scales of the KV cache are exactly 1"), 1);
    fx_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_floats),
        cmocka_unit_test(narrow_floats),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
