/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two SHA-256 streams at once.  With SHA extensions a stream waits for its own rounds half the
 * time, and another one fits into that; libipsec-mb does so for whole messages (leaves.c), but has
 * no streams, and the SHA-256 of a file is one of those.  FIPS 180-4, section 6.2.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/base.h"

#include <openssl/sha.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#define BLOCK 64u
#define NI    __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t k256[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The instructions want a, b, e, f in one register and c, d, g, h in another. */
struct half {
    __m128i abef, cdgh, w[4];
};

NI static inline void load_state(struct half *s, const SHA_LONG h[8])
{
    const __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const void *)h), 0xb1),
                  hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const void *)(h + 4)), 0x1b);
    s->abef = _mm_alignr_epi8(dcba, hgfe, 8);
    s->cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
}

NI static inline void store_state(const struct half *s, SHA_LONG h[8])
{
    const __m128i feba = _mm_shuffle_epi32(s->abef, 0x1b), dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);
    _mm_storeu_si128((void *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

NI static inline void load_block(struct half *s, const uint8_t *p)
{
    const __m128i big = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (int i = 0; i < 4; i++)
        s->w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(p + 16 * i)), big);
}

/* Rounds 4i to 4i + 3, and the words that rounds 16 later want. */
NI static inline void four_rounds(struct half *s, int i)
{
    const __m128i w = s->w[i & 3];
    const __m128i t = _mm_add_epi32(w, _mm_load_si128((const void *)(k256 + 4 * i)));
    s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, t);
    s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(t, 0x0e));
    if (i >= 12) return;
    const __m128i w1 = s->w[(i + 1) & 3], w2 = s->w[(i + 2) & 3], w3 = s->w[(i + 3) & 3];
    s->w[i & 3] = _mm_sha256msg2_epu32(
        _mm_add_epi32(_mm_sha256msg1_epu32(w, w1), _mm_alignr_epi8(w3, w2, 4)), w3);
}

NI static void blocks(SHA_LONG ha[8], const uint8_t *a, SHA_LONG hb[8], const uint8_t *b, size_t n)
{
    struct half x, y;
    load_state(&x, ha);
    load_state(&y, hb);
    for (; n; n--, a += BLOCK, b += BLOCK) {
        const __m128i xa = x.abef, xc = x.cdgh, ya = y.abef, yc = y.cdgh;
        load_block(&x, a);
        load_block(&y, b);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            four_rounds(&x, i);
            four_rounds(&y, i);
        }
        x.abef = _mm_add_epi32(x.abef, xa), x.cdgh = _mm_add_epi32(x.cdgh, xc);
        y.abef = _mm_add_epi32(y.abef, ya), y.cdgh = _mm_add_epi32(y.cdgh, yc);
    }
    store_state(&x, ha);
    store_state(&y, hb);
}

static bool has_extensions(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

static SHA256_CTX *ctx(struct ig_sha *h)
{
    return (SHA256_CTX *)(void *)h->state;
}

/* Up to the end of a block that has begun. */
static size_t align(struct ig_sha *h, const uint8_t *data, size_t n)
{
    const size_t room = (BLOCK - ctx(h)->num) % BLOCK, k = room < n ? room : n;
    ig_sha_update(h, data, k);
    return k;
}

static void count(SHA256_CTX *c, uint64_t bytes)
{
    const uint64_t bits = (((uint64_t)c->Nh << 32) | c->Nl) + 8 * bytes;
    c->Nl = (SHA_LONG)bits;
    c->Nh = (SHA_LONG)(bits >> 32);
}

void ig_sha_update_pair(struct ig_sha *a, const void *da, size_t na, struct ig_sha *b,
                        const void *db, size_t nb)
{
    const uint8_t *pa = da, *pb = db;
    if (has_extensions()) {
        const size_t ka = align(a, pa, na), kb = align(b, pb, nb);
        pa += ka, na -= ka, pb += kb, nb -= kb;
        const size_t n = ctx(a)->num || ctx(b)->num ? 0 : (na < nb ? na : nb) / BLOCK;
        if (n) {
            blocks(ctx(a)->h, pa, ctx(b)->h, pb, n);
            count(ctx(a), n * BLOCK);
            count(ctx(b), n * BLOCK);
        }
        pa += n * BLOCK, na -= n * BLOCK, pb += n * BLOCK, nb -= n * BLOCK;
    }
    ig_sha_update(a, pa, na);
    ig_sha_update(b, pb, nb);
}
#else
void ig_sha_update_pair(struct ig_sha *a, const void *da, size_t na, struct ig_sha *b,
                        const void *db, size_t nb)
{
    ig_sha_update(a, da, na);
    ig_sha_update(b, db, nb);
}
#endif
