/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of whole 64-byte blocks, in registers: plain C, so that the same lines are
 * tested on the host and run on the device.  Message words are big-endian values.
 */
#ifndef INGOT_CUDA_SHA256_H
#define INGOT_CUDA_SHA256_H

#include <stdint.h>

#ifdef __CUDACC__
#define IG_DEV        __device__ __forceinline__
#define IG_UNROLL     _Pragma("unroll")
#define IG_SWAP32(x)  __byte_perm((x), 0, 0x0123)
#define IG_ROTR(x, n) __funnelshift_r((x), (x), (n))
#else
#define IG_DEV static inline
#define IG_UNROLL
#define IG_SWAP32(x)  __builtin_bswap32(x)
#define IG_ROTR(x, n) ((x) >> (n) | (x) << (32 - (n)))
#endif

IG_DEV void ig_sha_start(uint32_t h[8])
{
    const uint32_t first[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                               0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    IG_UNROLL
    for (int i = 0; i < 8; i++) h[i] = first[i];
}

/* Section 6.2.2.  The schedule lives in the sixteen words of the block, each replaced when its
 * round has used it; unrolled, the constants become immediates and nothing is indexed. */
IG_DEV void ig_sha_block(uint32_t h[8], uint32_t w[16])
{
    const uint32_t k[64] = {
        0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
        0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
        0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
        0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
        0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
        0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
        0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
        0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
        0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
        0xc67178f2u};
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], z = h[7];
    IG_UNROLL
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            const uint32_t x = w[(i + 1) & 15], y = w[(i + 14) & 15];
            w[i & 15] += (IG_ROTR(x, 7) ^ IG_ROTR(x, 18) ^ (x >> 3)) + w[(i + 9) & 15] +
                         (IG_ROTR(y, 17) ^ IG_ROTR(y, 19) ^ (y >> 10));
        }
        const uint32_t t1 = z + (IG_ROTR(e, 6) ^ IG_ROTR(e, 11) ^ IG_ROTR(e, 25)) +
                            ((e & f) ^ (~e & g)) + k[i] + w[i & 15];
        const uint32_t t2 =
            (IG_ROTR(a, 2) ^ IG_ROTR(a, 13) ^ IG_ROTR(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        z = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += z;
}

/* The padding of a message of exactly 4096 bytes: one block of its own. */
IG_DEV void ig_sha_end_page(uint32_t h[8])
{
    uint32_t w[16];
    IG_UNROLL
    for (int i = 0; i < 16; i++) w[i] = 0;
    w[0] = 0x80000000u;
    w[15] = 4096u * 8u;
    ig_sha_block(h, w);
}

#endif
