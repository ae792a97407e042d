/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast: sixteen elements a step with AVX-512F.  The conversions to and from F16 suppress
 * exceptions and carry their own rounding; see cast_avx2.c for FTZ and DAZ.  The BF16
 * instructions of later CPUs are not used: they flush subnormals.
 */
#include "convert/cast_private.h"

#if IG_CAST_X86
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f")))
#define LANES  16u

struct tally {
    __m512i changed, subnormal, vanished, overflow;
};

TARGET IG_CAST_INLINE __m512i all(uint32_t value)
{
    return _mm512_set1_epi32((int)value);
}

TARGET IG_CAST_INLINE __m512i count(__m512i lanes, unsigned mask)
{
    return _mm512_mask_add_epi32(lanes, (__mmask16)mask, lanes, all(1));
}

TARGET IG_CAST_INLINE __m512i widen(const uint8_t *src, uint32_t from)
{
    if (from == IG_F32) return _mm512_loadu_si512(src);
    const __m256i half = _mm256_loadu_si256((const __m256i *)src);
    if (from == IG_F16) return _mm512_castps_si512(_mm512_cvt_roundph_ps(half, _MM_FROUND_NO_EXC));
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

TARGET IG_CAST_INLINE __m512i put_f16(uint8_t *dst, __m512i bits)
{
    const __m256i out = _mm512_cvt_roundps_ph(_mm512_castsi512_ps(bits),
                                              _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)dst, out);
    return _mm512_castps_si512(_mm512_cvt_roundph_ps(out, _MM_FROUND_NO_EXC));
}

TARGET IG_CAST_INLINE __m512i put_bf16(uint8_t *dst, __m512i bits, __mmask16 nan)
{
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), all(1));
    const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, all(0x7fff)));
    const __m512i out = _mm512_mask_or_epi32(nearest, nan, bits, all(IG_F32_QUIET));
    const __m512i high = _mm512_srli_epi32(out, 16);
    _mm256_storeu_si256((__m256i *)dst, _mm512_cvtepi32_epi16(high));
    return _mm512_slli_epi32(high, 16);
}

TARGET IG_CAST_INLINE void put_f32(uint8_t *dst, __m512i bits, __m512i mag, __mmask16 nan,
                                   struct tally *t)
{
    const unsigned small = _mm512_cmpgt_epi32_mask(mag, _mm512_setzero_si512()) &
                           _mm512_cmplt_epi32_mask(mag, all(IG_F32_NORMAL));
    _mm512_storeu_si512(dst, _mm512_mask_or_epi32(bits, nan, bits, all(IG_F32_QUIET)));
    t->subnormal = count(t->subnormal, small);
}

TARGET IG_CAST_INLINE void step(uint8_t *dst, uint32_t to, const uint8_t *src, uint32_t from,
                                unsigned saturate, struct tally *t)
{
    const struct ig_cast_limits limit = ig_cast_limits(to);
    const __m512i bits = widen(src, from);
    const __m512i mag = _mm512_and_si512(bits, all(IG_F32_MAG));
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(mag, all(IG_F32_INF));
    if (to == IG_F32) {
        put_f32(dst, bits, mag, nan, t);
        return;
    }

    const unsigned finite = _mm512_cmplt_epi32_mask(mag, all(IG_F32_INF));
    const unsigned over = finite & _mm512_cmpge_epi32_mask(mag, all(limit.overflow));
    const unsigned kept = _mm512_cmpgt_epi32_mask(mag, all(limit.vanish));
    const unsigned small = kept & _mm512_cmplt_epi32_mask(mag, all(limit.normal));
    const unsigned gone = ~kept & _mm512_cmpgt_epi32_mask(mag, _mm512_setzero_si512());

    const __m512i sign = _mm512_and_si512(bits, all(IG_F32_SIGN));
    const __m512i in =
        _mm512_mask_or_epi32(bits, (__mmask16)(over & saturate), sign, all(limit.largest));
    const __m512i back = to == IG_F16 ? put_f16(dst, in) : put_bf16(dst, in, nan);

    t->changed = count(t->changed, finite & _mm512_cmpneq_epi32_mask(back, bits));
    t->subnormal = count(t->subnormal, small);
    t->vanished = count(t->vanished, gone);
    t->overflow = count(t->overflow, over);
}

TARGET IG_CAST_INLINE uint64_t sum(__m512i lanes)
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
    const __m512i zero = _mm512_setzero_si512();
    const unsigned mask = saturate ? 0xffff : 0;
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

TARGET size_t ig_cast_avx512(void *dst, uint32_t to, const void *src, uint32_t from, size_t n,
                             bool saturate, struct ig_cast_counts *counts)
{
    IG_CAST_DISPATCH(run)
}
#endif
