/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast: eight elements a step with AVX2 and F16C.
 *
 * Independent of MXCSR: VCVTPH2PS ignores DAZ; VCVTPS2PH ignores FTZ and takes the rounding
 * from its immediate, and a subnormal F32, which DAZ would turn into a zero of its sign, becomes
 * that zero in an F16 anyway.  All else is done on integers.
 */
#include "convert/cast_private.h"

#if IG_CAST_X86
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,f16c")))
#define LANES  8u

/* Counters, one a lane; true is -1, so that they are subtracted from. */
struct tally {
    __m256i changed, subnormal, vanished, overflow;
};

TARGET IG_CAST_INLINE __m256i all(uint32_t value)
{
    return _mm256_set1_epi32((int)value);
}

TARGET IG_CAST_INLINE __m256i widen(const uint8_t *src, uint32_t from)
{
    if (from == IG_F32) return _mm256_loadu_si256((const __m256i *)src);
    const __m128i half = _mm_loadu_si128((const __m128i *)src);
    if (from == IG_F16) return _mm256_castps_si256(_mm256_cvtph_ps(half));
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
}

/* The F16 to dst and, as F32 bits, back to the caller. */
TARGET IG_CAST_INLINE __m256i put_f16(uint8_t *dst, __m256i bits)
{
    const __m128i out = _mm256_cvtps_ph(_mm256_castsi256_ps(bits), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)dst, out);
    return _mm256_castps_si256(_mm256_cvtph_ps(out));
}

TARGET IG_CAST_INLINE __m256i put_bf16(uint8_t *dst, __m256i bits, __m256i nan)
{
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), all(1));
    const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, all(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, all(IG_F32_QUIET));
    const __m256i out = _mm256_blendv_epi8(nearest, quiet, nan);
    const __m256i high = _mm256_srli_epi32(out, 16);
    /* Packing works within halves: quarters 0 and 2 hold the eight results. */
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(packed));
    return _mm256_slli_epi32(high, 16);
}

TARGET IG_CAST_INLINE void put_f32(uint8_t *dst, __m256i bits, __m256i mag, __m256i nan,
                                   struct tally *t)
{
    const __m256i quiet = _mm256_and_si256(nan, all(IG_F32_QUIET));
    const __m256i small = _mm256_and_si256(_mm256_cmpgt_epi32(mag, _mm256_setzero_si256()),
                                           _mm256_cmpgt_epi32(all(IG_F32_NORMAL), mag));
    _mm256_storeu_si256((__m256i *)dst, _mm256_or_si256(bits, quiet));
    t->subnormal = _mm256_sub_epi32(t->subnormal, small);
}

TARGET IG_CAST_INLINE void step(uint8_t *dst, uint32_t to, const uint8_t *src, uint32_t from,
                                __m256i saturate, struct tally *t)
{
    const struct ig_cast_limits limit = ig_cast_limits(to);
    const __m256i bits = widen(src, from);
    const __m256i mag = _mm256_and_si256(bits, all(IG_F32_MAG));
    const __m256i nan = _mm256_cmpgt_epi32(mag, all(IG_F32_INF));
    if (to == IG_F32) {
        put_f32(dst, bits, mag, nan, t);
        return;
    }

    const __m256i finite = _mm256_cmpgt_epi32(all(IG_F32_INF), mag);
    const __m256i over = _mm256_and_si256(finite, _mm256_cmpgt_epi32(mag, all(limit.overflow - 1)));
    const __m256i kept = _mm256_cmpgt_epi32(mag, all(limit.vanish));
    const __m256i small = _mm256_and_si256(kept, _mm256_cmpgt_epi32(all(limit.normal), mag));
    const __m256i gone = _mm256_andnot_si256(kept, _mm256_cmpgt_epi32(mag, _mm256_setzero_si256()));

    const __m256i largest =
        _mm256_or_si256(_mm256_andnot_si256(all(IG_F32_MAG), bits), all(limit.largest));
    const __m256i in = _mm256_blendv_epi8(bits, largest, _mm256_and_si256(over, saturate));
    const __m256i back = to == IG_F16 ? put_f16(dst, in) : put_bf16(dst, in, nan);
    const __m256i changed = _mm256_andnot_si256(_mm256_cmpeq_epi32(back, bits), finite);

    t->changed = _mm256_sub_epi32(t->changed, changed);
    t->subnormal = _mm256_sub_epi32(t->subnormal, small);
    t->vanished = _mm256_sub_epi32(t->vanished, gone);
    t->overflow = _mm256_sub_epi32(t->overflow, over);
}

TARGET IG_CAST_INLINE uint64_t sum(__m256i lanes)
{
    uint32_t n[LANES];
    uint64_t total = 0;
    memcpy(n, &lanes, sizeof n);
    for (unsigned i = 0; i < LANES; i++) total += n[i];
    return total;
}

TARGET IG_CAST_INLINE size_t run(uint8_t *dst, uint32_t to, const uint8_t *src, uint32_t from,
                                 size_t n, bool saturate, struct ig_cast_counts *counts)
{
    const size_t dst_width = to == IG_F32 ? 4 : 2, src_width = from == IG_F32 ? 4 : 2;
    const __m256i mask = all(saturate ? UINT32_MAX : 0), zero = _mm256_setzero_si256();
    struct tally t = {zero, zero, zero, zero};
    n -= n % LANES;
    for (size_t i = 0; i < n; i += LANES)
        step(dst + i * dst_width, to, src + i * src_width, from, mask, &t);
    const uint64_t vanished = sum(t.vanished), overflow = sum(t.overflow);
    counts->rounded += sum(t.changed) - vanished - overflow;
    counts->subnormal += sum(t.subnormal);
    counts->vanished += vanished;
    counts->overflow += overflow;
    return n;
}

TARGET size_t ig_cast_avx2(void *dst, uint32_t to, const void *src, uint32_t from, size_t n,
                           bool saturate, struct ig_cast_counts *counts)
{
    IG_CAST_DISPATCH(run)
}
#endif
