/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast: what the code paths share.  Every path widens to the bits of an F32, which holds each
 * F16 and BF16 exactly, and rounds once from there.
 *
 * Counts are of disjoint events where a value is lost: what overflowed (saturated or not) or
 * vanished is not in `rounded` too.  A rounded result may be subnormal as well.
 */
#ifndef INGOT_CAST_PRIVATE_H
#define INGOT_CAST_PRIVATE_H

#include "convert/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define IG_CAST_X86 1
#else
#define IG_CAST_X86 0
#endif

#define IG_F32_INF        0x7f800000u
#define IG_F32_MAG        0x7fffffffu
#define IG_F32_SIGN       0x80000000u
#define IG_F32_QUIET      0x00400000u
#define IG_F32_NORMAL     0x00800000u /* the smallest that is not subnormal */
#define IG_CAST_INLINE    static inline __attribute__((always_inline))
#define IG_CAST(to, from) ((to) * (uint32_t)IG_DTYPES + (from))

/* Where a narrower format begins and ends, as magnitudes of F32 bits. */
struct ig_cast_limits {
    uint32_t overflow; /* from here on rounds to Inf */
    uint32_t largest;  /* the largest finite value */
    uint32_t vanish;   /* up to here rounds to zero */
    uint32_t normal;   /* below here rounds to a subnormal, unless it vanishes */
};

IG_CAST_INLINE struct ig_cast_limits ig_cast_limits(uint32_t to)
{
    /* F16: 65520, 65504, 2^-25, 2^-14 - 2^-25.  BF16: the same points, 8 bits of precision. */
    return to == IG_F16
               ? (struct ig_cast_limits){0x477ff000u, 0x477fe000u, 0x33000000u, 0x387fe000u}
               : (struct ig_cast_limits){0x7f7f8000u, 0x7f7f0000u, 0x00008000u, 0x007f8000u};
}

/* Convert up to n elements of two different formats; add to *counts; return how many were
 * done.  The caller's n fits the 32-bit lanes in which a path counts. */
typedef size_t ig_cast_fn(void *dst, uint32_t to, const void *src, uint32_t from, size_t n,
                          bool saturate, struct ig_cast_counts *counts);
ig_cast_fn ig_cast_c; /* does all of them */
#if IG_CAST_X86
ig_cast_fn ig_cast_avx2;   /* whole vectors only; wants AVX2 and F16C */
ig_cast_fn ig_cast_avx512; /* the same; wants AVX-512F */
#endif

/* Body of a path's entry point: its `run` with both types constant, so that each pair of types
 * becomes a loop of its own.  Uses the entry point's parameters. */
#define IG_CAST_DISPATCH(run)                                       \
    switch (IG_CAST(to, from)) {                                    \
    case IG_CAST(IG_F32, IG_F16):                                   \
        return run(dst, IG_F32, src, IG_F16, n, saturate, counts);  \
    case IG_CAST(IG_F32, IG_BF16):                                  \
        return run(dst, IG_F32, src, IG_BF16, n, saturate, counts); \
    case IG_CAST(IG_F16, IG_F32):                                   \
        return run(dst, IG_F16, src, IG_F32, n, saturate, counts);  \
    case IG_CAST(IG_F16, IG_BF16):                                  \
        return run(dst, IG_F16, src, IG_BF16, n, saturate, counts); \
    case IG_CAST(IG_BF16, IG_F32):                                  \
        return run(dst, IG_BF16, src, IG_F32, n, saturate, counts); \
    default:                                                        \
        return run(dst, IG_BF16, src, IG_F16, n, saturate, counts); \
    }

#endif
