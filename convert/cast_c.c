/* SPDX-License-Identifier: Apache-2.0 */
/* cast: the path for every CPU.  Integers only, so that no rounding mode or flush-to-zero of
 * the floating-point unit can reach it. */
#include "convert/cast_private.h"

static inline uint32_t get(const uint8_t *p, uint32_t dtype)
{
    const uint32_t low = (uint32_t)(p[0] | p[1] << 8);
    return dtype == IG_F32 ? low | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : low;
}

static inline void put(uint8_t *p, uint32_t dtype, uint32_t bits)
{
    p[0] = (uint8_t)bits;
    p[1] = (uint8_t)(bits >> 8);
    if (dtype == IG_F32) {
        p[2] = (uint8_t)(bits >> 16);
        p[3] = (uint8_t)(bits >> 24);
    }
}

static inline uint32_t f16_to_f32(uint32_t h)
{
    const uint32_t sign = (h & 0x8000u) << 16, mag = h & 0x7fffu;
    if (mag >= 0x7c00) return sign | IG_F32_INF | (mag & 0x3ffu) << 13;
    if (mag >= 0x400) return sign | ((mag << 13) + (112u << 23));
    if (mag == 0) return sign;
    /* mag * 2^-24: its highest bit becomes the implied one. */
    const uint32_t shift = (uint32_t)__builtin_clz(mag) - 21;
    return sign | (113 - shift) << 23 | (mag << shift & 0x3ffu) << 13;
}

static inline uint32_t widen(uint32_t bits, uint32_t from)
{
    if (from == IG_F16) return f16_to_f32(bits);
    return from == IG_BF16 ? bits << 16 : bits;
}

/* x / 2^shift to nearest even; a carry out of the mantissa is a correct step of the exponent. */
static inline uint32_t round_off(uint32_t x, uint32_t shift)
{
    return (x + ((1u << (shift - 1)) - 1) + (x >> shift & 1)) >> shift;
}

/* Magnitudes of finite values that do not overflow. */
static inline uint32_t narrow(uint32_t mag, uint32_t to, uint32_t vanish)
{
    if (to == IG_BF16) return round_off(mag, 16);
    if (mag >= 113u << 23) return round_off(mag - (112u << 23), 13);
    if (mag <= vanish) return 0;
    return round_off((mag & 0x7fffffu) | 0x800000u, 126 - (mag >> 23));
}

IG_CAST_INLINE uint32_t convert(uint32_t bits, uint32_t to, bool saturate, struct ig_cast_counts *c)
{
    const struct ig_cast_limits limit = ig_cast_limits(to);
    const uint32_t drop = to == IG_F16 ? 13 : 16; /* mantissa bits */
    const uint32_t inf = to == IG_F16 ? 0x7c00u : 0x7f80u;
    const uint32_t mag = bits & IG_F32_MAG, sign = (bits & IG_F32_SIGN) >> 16;

    if (mag > IG_F32_INF) return sign | inf | ((mag | IG_F32_QUIET) >> drop & (inf ^ 0x7fffu));
    if (mag == IG_F32_INF) return sign | inf;
    if (mag >= limit.overflow) {
        c->overflow++;
        return sign | (saturate ? inf - 1 : inf);
    }
    const uint32_t out = narrow(mag, to, limit.vanish);
    if (mag != 0 && mag <= limit.vanish) {
        c->vanished++;
    } else {
        c->rounded += widen(out, to) != mag;
        c->subnormal += mag != 0 && mag < limit.normal;
    }
    return sign | out;
}

IG_CAST_INLINE size_t run(uint8_t *dst, uint32_t to, const uint8_t *src, uint32_t from, size_t n,
                          bool saturate, struct ig_cast_counts *counts)
{
    struct ig_cast_counts c = *counts;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = widen(get(src, from), from), mag = bits & IG_F32_MAG;
        uint32_t out;
        if (to == IG_F32) {
            out = mag > IG_F32_INF ? bits | IG_F32_QUIET : bits;
            c.subnormal += mag != 0 && mag < IG_F32_NORMAL;
        } else {
            out = convert(bits, to, saturate, &c);
        }
        put(dst, to, out);
        src += from == IG_F32 ? 4 : 2;
        dst += to == IG_F32 ? 4 : 2;
    }
    *counts = c;
    return n;
}

size_t ig_cast_c(void *dst, uint32_t to, const void *src, uint32_t from, size_t n, bool saturate,
                 struct ig_cast_counts *counts)
{
    IG_CAST_DISPATCH(run)
}
