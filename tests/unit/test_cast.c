/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Casts between F16, BF16 and F32: every path against a slow reference that works on exact
 * doubles from the definition of the formats, under hostile settings of the FPU.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const uint32_t floats[] = {IG_F16, IG_BF16, IG_F32};

struct format {
    unsigned width; /* bytes */
    int mantissa, emin, emax;
};

static struct format format_of(uint32_t dtype)
{
    if (dtype == IG_F16) return (struct format){2, 10, -14, 15};
    if (dtype == IG_BF16) return (struct format){2, 7, -126, 127};
    return (struct format){4, 23, -126, 127};
}

/* ---- the reference ---- */

static uint32_t exponent_ones(const struct format *f)
{
    return (uint32_t)(f->emax - f->emin + 2) << f->mantissa;
}

static uint32_t sign_bit(const struct format *f)
{
    return f->width == 2 ? 0x8000u : 0x80000000u;
}

static double decode(uint32_t mag, const struct format *f)
{
    const uint32_t exponent = mag >> f->mantissa, fraction = mag & ((1u << f->mantissa) - 1);
    if (exponent == 0) return ldexp(fraction, f->emin - f->mantissa);
    return ldexp((1u << f->mantissa) + fraction, (int)exponent - 1 + f->emin - f->mantissa);
}

/* The magnitude nearest to a > 0, ties to even, the exponent's range taken as unbounded. */
static double nearest(double a, const struct format *f)
{
    const int exponent = ilogb(a) > f->emin ? ilogb(a) : f->emin;
    const double ulp = ldexp(1, exponent - f->mantissa), steps = floor(a / ulp);
    const double rest = a / ulp - steps;
    return (rest > 0.5 || (rest == 0.5 && fmod(steps, 2) == 1) ? steps + 1 : steps) * ulp;
}

static uint32_t encode(double v, const struct format *f)
{
    if (v == 0) return 0;
    if (v < ldexp(1, f->emin)) return (uint32_t)ldexp(v, f->mantissa - f->emin);
    const int exponent = ilogb(v);
    const uint32_t fraction = (uint32_t)ldexp(v, f->mantissa - exponent) - (1u << f->mantissa);
    return ((uint32_t)(exponent - f->emin + 1) << f->mantissa) + fraction;
}

static uint32_t reference(uint32_t bits, const struct format *s, const struct format *d,
                          bool saturate, struct ig_cast_counts *c)
{
    const uint32_t sign = (bits & sign_bit(s)) != 0 ? sign_bit(d) : 0;
    const uint32_t mag = bits & ~sign_bit(s), fraction = mag & ((1u << s->mantissa) - 1);
    const double largest = decode(exponent_ones(d) - 1, d);

    if (mag == exponent_ones(s)) return sign | exponent_ones(d);
    if (mag > exponent_ones(s)) {
        const int drop = s->mantissa - d->mantissa;
        const uint32_t payload = drop > 0 ? fraction >> drop : fraction << -drop;
        return sign | exponent_ones(d) | 1u << (d->mantissa - 1) | payload;
    }
    const double a = decode(mag, s), v = a == 0 ? 0 : nearest(a, d);
    if (v > largest) {
        c->overflow++;
        return sign | (saturate ? exponent_ones(d) - 1 : exponent_ones(d));
    }
    if (a != 0 && v == 0)
        c->vanished++;
    else
        c->rounded += v != a;
    c->subnormal += v != 0 && v < ldexp(1, d->emin);
    return sign | encode(v, d);
}

/* ---- the harness ---- */

#if defined(__x86_64__)
/* As the process has it; flush-to-zero and denormals-are-zero; the same, rounding to zero. */
static const unsigned fpu_modes[] = {0, 0x8040, 0xe040};
static unsigned fpu_enter(unsigned mode)
{
    const unsigned old = _mm_getcsr();
    _mm_setcsr(old | mode);
    return old;
}
static void fpu_leave(unsigned old)
{
    _mm_setcsr(old);
}
#else
static const unsigned fpu_modes[] = {0};
static unsigned fpu_enter(unsigned mode)
{
    return mode;
}
static void fpu_leave(unsigned old)
{
    (void)old;
}
#endif

static uint32_t get(const void *p, unsigned width, size_t i)
{
    return width == 2 ? ig_get16((const uint8_t *)p + 2 * i) : ig_get32((const uint8_t *)p + 4 * i);
}

static void put(void *p, unsigned width, size_t i, uint32_t bits)
{
    if (width == 2)
        ig_put16((uint8_t *)p + 2 * i, (uint16_t)bits);
    else
        ig_put32((uint8_t *)p + 4 * i, bits);
}

static void compare(const char *path, unsigned mode, const void *src, const struct format *s,
                    const void *got, const void *want, const struct format *d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (get(got, d->width, i) != get(want, d->width, i))
            fail_msg("path %s, MXCSR |%x, index %zu: %x became %x, not %x", path, mode, i,
                     get(src, s->width, i), get(got, d->width, i), get(want, d->width, i));
}

/* One conversion on every path, in every mode, must give these bytes and counts. */
static void run_paths(uint32_t to, const void *src, uint32_t from, size_t n, bool saturate,
                      const void *want, const struct ig_cast_counts *counts, uint64_t first)
{
    const struct format s = format_of(from), d = format_of(to);
    uint8_t *got = malloc(n * d.width + 1);
    assert_non_null(got);
    for (const char *const *path = ig_cast_paths(); *path != NULL; path++) {
        for (size_t m = 0; m < sizeof fpu_modes / sizeof *fpu_modes; m++) {
            struct ig_cast_counts c = {0};
            uint64_t at = UINT64_MAX;
            memset(got, 0xa5, n * d.width + 1);
            const unsigned old = fpu_enter(fpu_modes[m]);
            const bool ran = ig_cast_on(*path, got, to, src, from, n, saturate, &c, &at);
            fpu_leave(old);
            assert_true(ran);
            compare(*path, fpu_modes[m], src, &s, got, want, &d, n);
            assert_int_equal(got[n * d.width], 0xa5);
            assert_int_equal(c.rounded, counts->rounded);
            assert_int_equal(c.subnormal, counts->subnormal);
            assert_int_equal(c.vanished, counts->vanished);
            assert_int_equal(c.overflow, counts->overflow);
            assert_true(at == first);
        }
    }
    free(got);
}

static void check(uint32_t to, const void *src, uint32_t from, size_t n)
{
    const struct format s = format_of(from), d = format_of(to);
    uint8_t *want = malloc(n * d.width + 1);
    assert_non_null(want);
    for (int saturate = 0; saturate < 2; saturate++) {
        struct ig_cast_counts c = {0};
        uint64_t first = UINT64_MAX;
        for (size_t i = 0; i < n; i++) {
            put(want, d.width, i, reference(get(src, s.width, i), &s, &d, saturate != 0, &c));
            if (c.overflow != 0 && first == UINT64_MAX) first = i;
        }
        run_paths(to, src, from, n, saturate != 0, want, &c, first);
    }
    free(want);
}

static void check_other_targets(const void *src, uint32_t from, size_t n)
{
    for (size_t i = 0; i < 3; i++)
        if (floats[i] != from) check(floats[i], src, from, n);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- values ---- */

static void every_16_bit_value(uint32_t from)
{
    uint8_t *src = malloc(2 * 65536);
    assert_non_null(src);
    for (uint32_t i = 0; i < 65536; i++) ig_put16(src + 2 * i, (uint16_t)i);
    check_other_targets(src, from, 65536);
    free(src);
}

static void test_every_f16(void **state)
{
    (void)state;
    every_16_bit_value(IG_F16);
}

static void test_every_bf16(void **state)
{
    (void)state;
    every_16_bit_value(IG_BF16);
}

/* Each exponent with mantissas at and around every point where a narrower format rounds. */
static void test_every_exponent_f32(void **state)
{
    (void)state;
    uint8_t *src = malloc((size_t)4 * 512 * 24 * 16);
    size_t n = 0;
    assert_non_null(src);
    for (uint32_t e = 0; e < 512; e++) {
        for (uint32_t bit = 0; bit < 24; bit++) {
            const uint32_t half = 1u << bit; /* 1 << 23: wraps into all ones, all zeros */
            const uint32_t near[] = {
                half - 1,       half,         half + 1,         3 * half - 1, 3 * half,
                3 * half + 1,   0 - half - 1, 0 - half,         0 - half + 1, 0 - 3 * half,
                5 * half,       7 * half,     half | half >> 1, 0x7fffff,     0,
                0x400000 - half};
            for (size_t i = 0; i < 16; i++) ig_put32(src + 4 * n++, e << 23 | (near[i] & 0x7fffff));
        }
    }
    check_other_targets(src, IG_F32, n);
    free(src);
}

static void test_random_f32(void **state)
{
    (void)state;
    enum { BATCH = 1 << 16 };
    uint8_t *src = malloc((size_t)4 * BATCH);
    uint64_t seed = 0x9e3779b97f4a7c15u;
    assert_non_null(src);
    for (int round = 0; round < 64; round++) {
        /* Every other batch stays in the exponents in which an F16 is finite or vanishes. */
        for (size_t i = 0; i < BATCH; i++) {
            const uint64_t r = next_random(&seed);
            const uint32_t exponent = (uint32_t)(100 + (r >> 32) % 45) << 23;
            ig_put32(src + 4 * i, round % 2 ? (uint32_t)r : ((uint32_t)r & 0x807fffffu) | exponent);
        }
        check_other_targets(src, IG_F32, BATCH);
    }
    free(src);
}

/* Numbers of the formats by hand, so that the reference cannot be wrong in the same way. */
static void test_edges_f32_to_f16(void **state)
{
    (void)state;
    static const struct {
        uint32_t in;
        uint16_t out, saturated;
    } v[] = {
        {0x477fe000, 0x7bff, 0x7bff},                               /* 65504 */
        {0x477fefff, 0x7bff, 0x7bff},                               /* just below 65520 */
        {0x477ff000, 0x7c00, 0x7bff},                               /* 65520, a tie, goes to Inf */
        {0xc7800000, 0xfc00, 0xfbff},                               /* -65536 */
        {0x7f800000, 0x7c00, 0x7c00},                               /* Inf is no overflow */
        {0x33800000, 0x0001, 0x0001},                               /* 2^-24 */
        {0x33000000, 0x0000, 0x0000},                               /* 2^-25, a tie */
        {0x33000001, 0x0001, 0x0001}, {0x33c00000, 0x0002, 0x0002}, /* 1.5 * 2^-24, a tie */
        {0x387fc000, 0x03ff, 0x03ff},                               /* the largest subnormal */
        {0x387fe000, 0x0400, 0x0400}, /* half a step above it: normal */
        {0x80000001, 0x8000, 0x8000}, {0x3f801000, 0x3c00, 0x3c00}, /* 1 + 2^-11, a tie */
        {0x3f803000, 0x3c02, 0x3c02},                               /* 1 + 3 * 2^-11, a tie */
        {0x7f800001, 0x7e00, 0x7e00}, /* payload cut to nothing: still NaN */
        {0xffffffff, 0xffff, 0xffff}, {0x7f92a000, 0x7e95, 0x7e95},
    };
    enum { N = sizeof v / sizeof *v };
    uint8_t src[4 * N], want[2 * N], saturated[2 * N];
    for (size_t i = 0; i < N; i++) {
        ig_put32(src + 4 * i, v[i].in);
        ig_put16(want + 2 * i, v[i].out);
        ig_put16(saturated + 2 * i, v[i].saturated);
    }
    const struct ig_cast_counts c = {.rounded = 6, .subnormal = 4, .vanished = 2, .overflow = 2};
    run_paths(IG_F16, src, IG_F32, N, false, want, &c, 2);
    run_paths(IG_F16, src, IG_F32, N, true, saturated, &c, 2);
}

static void test_edges_f32_to_bf16(void **state)
{
    (void)state;
    static const struct {
        uint32_t in;
        uint16_t out;
    } v[] = {
        {0x7f7f0000, 0x7f7f}, {0x7f7f7fff, 0x7f7f}, {0x7f7f8000, 0x7f80}, {0xff7fffff, 0xff80},
        {0x00010000, 0x0001}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, {0x80000001, 0x8000},
        {0x007f0000, 0x007f}, {0x007f8000, 0x0080}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},
        {0x7f800001, 0x7fc0}, {0xffbfffff, 0xffff}, {0x7fc10000, 0x7fc1},
    };
    enum { N = sizeof v / sizeof *v };
    uint8_t src[4 * N], want[2 * N];
    for (size_t i = 0; i < N; i++) {
        ig_put32(src + 4 * i, v[i].in);
        ig_put16(want + 2 * i, v[i].out);
    }
    const struct ig_cast_counts c = {.rounded = 5, .subnormal = 3, .vanished = 2, .overflow = 2};
    run_paths(IG_BF16, src, IG_F32, N, false, want, &c, 2);
}

static const uint16_t g10[] = {0x477f, 0x4780, 0x7f61, 0xc788, 0x7f80,
                               0xff80, 0x7fc0, 0x7f81, 0x0001, 0x8000};
enum { G10 = sizeof g10 / sizeof *g10 };

static void g10_run(uint32_t to, bool saturate, const uint32_t want[G10],
                    const struct ig_cast_counts *c, uint64_t first)
{
    const unsigned width = format_of(to).width;
    uint8_t src[2 * G10], bytes[4 * G10];
    for (size_t i = 0; i < G10; i++) {
        ig_put16(src + 2 * i, g10[i]);
        put(bytes, width, i, want[i]);
    }
    run_paths(to, src, IG_BF16, G10, saturate, bytes, c, first);
}

static void test_G10_bf16_to_f16_counts_overflow(void **state)
{
    (void)state;
    static const uint32_t want[G10] = {0x7bf8, 0x7c00, 0x7c00, 0xfc00, 0x7c00,
                                       0xfc00, 0x7e00, 0x7e08, 0x0000, 0x8000};
    const struct ig_cast_counts c = {.vanished = 1, .overflow = 3};
    g10_run(IG_F16, false, want, &c, 1);
}

static void test_G10_bf16_to_f16_saturates(void **state)
{
    (void)state;
    static const uint32_t want[G10] = {0x7bf8, 0x7bff, 0x7bff, 0xfbff, 0x7c00,
                                       0xfc00, 0x7e00, 0x7e08, 0x0000, 0x8000};
    const struct ig_cast_counts c = {.vanished = 1, .overflow = 3};
    g10_run(IG_F16, true, want, &c, 1);
}

static void test_G10_bf16_to_f32_is_exact(void **state)
{
    (void)state;
    static const uint32_t want[G10] = {0x477f0000, 0x47800000, 0x7f610000, 0xc7880000, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0x7fc10000, 0x00010000, 0x80000000};
    const struct ig_cast_counts c = {.subnormal = 1};
    g10_run(IG_F32, false, want, &c, UINT64_MAX);
}

static void test_G10_same_format_copies_the_bits(void **state)
{
    (void)state;
    uint32_t want[G10];
    const struct ig_cast_counts none = {0};
    for (size_t i = 0; i < G10; i++) want[i] = g10[i];
    g10_run(IG_BF16, true, want, &none, UINT64_MAX);
}

/* ---- shapes of the call ---- */

static void test_lengths_and_alignment(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (size_t pair = 0; pair < 9; pair++) {
        const uint32_t to = floats[pair / 3], from = floats[pair % 3];
        const struct format s = format_of(from), d = format_of(to);
        for (size_t n = 0; n <= 67; n++) {
            for (size_t shift = 0; shift < 4; shift++) {
                const size_t src_at = shift * 3 % 4, dst_at = shift;
                uint8_t *src = malloc(src_at + n * s.width + 1), *aligned = malloc(n * s.width + 1);
                uint8_t *got = malloc(dst_at + n * d.width + 1), *want = malloc(n * d.width + 1);
                assert_true(src && aligned && got && want);
                for (size_t i = 0; i < n * s.width; i++)
                    aligned[i] = src[src_at + i] = (uint8_t)next_random(&seed);
                for (const char *const *path = ig_cast_paths(); *path != NULL; path++) {
                    struct ig_cast_counts a = {0}, b = {0};
                    uint64_t at_a = UINT64_MAX, at_b = UINT64_MAX;
                    memset(got, 0xa5, dst_at + n * d.width + 1);
                    assert_true(ig_cast_on("c", want, to, aligned, from, n, false, &a, &at_a));
                    assert_true(ig_cast_on(*path, got + dst_at, to, src + src_at, from, n, false,
                                           &b, &at_b));
                    assert_memory_equal(got + dst_at, want, n * d.width);
                    assert_memory_equal(&a, &b, sizeof a);
                    assert_true(at_a == at_b);
                    assert_int_equal(got[dst_at + n * d.width], 0xa5);
                    for (size_t i = 0; i < dst_at; i++) assert_int_equal(got[i], 0xa5);
                }
                free(src);
                free(aligned);
                free(got);
                free(want);
            }
        }
    }
}

static void test_first_overflow_is_the_first_of_all_blocks(void **state)
{
    (void)state;
    const size_t n = 100003, where[] = {99999, 70001, 70002, 8192, 8191};
    uint8_t *src = calloc(n, 4), *dst = malloc(n * 2);
    assert_true(src && dst);
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        ig_put32(src + 4 * where[i], 0x7f7fffff);
        struct ig_cast_counts c = {.rounded = 7, .overflow = 1};
        uint64_t first = UINT64_MAX, kept = 3;
        ig_cast(dst, IG_BF16, src, IG_F32, n, false, &c, &first);
        ig_cast(dst, IG_BF16, src, IG_F32, n, false, &c, &kept);
        assert_true(first == (where[i] == 70002 ? 70001 : where[i]));
        assert_true(kept == 3);
        assert_int_equal(c.rounded, 7);
        assert_int_equal(c.overflow, 1 + 2 * (i + 1));
    }
    free(src);
    free(dst);
}

static void test_paths_are_listed_and_others_refused(void **state)
{
    (void)state;
    struct ig_cast_counts c = {0};
    uint64_t first = UINT64_MAX;
    uint8_t src[4] = {0}, dst[4] = {0};
    assert_string_equal(ig_cast_paths()[0], "c");
    assert_false(ig_cast_on("abacus", dst, IG_F16, src, IG_F32, 1, false, &c, &first));
    assert_false(ig_cast_on("c", dst, IG_I16, src, IG_F32, 1, false, &c, &first));
    assert_false(ig_cast_on("c", dst, IG_F16, src, IG_F64, 1, false, &c, &first));
    ig_cast(NULL, IG_F16, NULL, IG_F32, 0, false, &c, &first);
    ig_cast(NULL, IG_F16, NULL, IG_F16, 0, false, &c, &first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_f16),
        cmocka_unit_test(test_every_bf16),
        cmocka_unit_test(test_every_exponent_f32),
        cmocka_unit_test(test_random_f32),
        cmocka_unit_test(test_edges_f32_to_f16),
        cmocka_unit_test(test_edges_f32_to_bf16),
        cmocka_unit_test(test_G10_bf16_to_f16_counts_overflow),
        cmocka_unit_test(test_G10_bf16_to_f16_saturates),
        cmocka_unit_test(test_G10_bf16_to_f32_is_exact),
        cmocka_unit_test(test_G10_same_format_copies_the_bits),
        cmocka_unit_test(test_lengths_and_alignment),
        cmocka_unit_test(test_first_overflow_is_the_first_of_all_blocks),
        cmocka_unit_test(test_paths_are_listed_and_others_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
