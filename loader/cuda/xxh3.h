/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XXH3-128 (seed 0) of long inputs, by eight lanes that share one input: lane i keeps accumulator
 * i.  After the specification (xxhash_spec.md of the xxHash project, "XXH3 Algorithm Detail").
 * Plain C, tested on the host.  Inputs are multiples of 4096 bytes here, so every one is long.
 */
#ifndef INGOT_CUDA_XXH3_H
#define INGOT_CUDA_XXH3_H

#include "loader/cuda/sha256.h"

#define IG_XXH_LANES 8
#define IG_P32_1     0x9E3779B1u
#define IG_P32_2     0x85EBCA77u
#define IG_P32_3     0xC2B2AE3Du
#define IG_P64_1     0x9E3779B185EBCA87ull
#define IG_P64_2     0xC2B2AE3D27D4EB4Full
#define IG_P64_3     0x165667B19E3779F9ull
#define IG_P64_4     0x85EBCA77C2B2AE63ull
#define IG_P64_5     0x27D4EB2F165667C5ull

/* The words of the secret that a long input uses, taken out of its 192 bytes by the host. */
struct ig_xxh_secret {
    uint64_t stripe[24]; /* at 0, 8, 16, ...: stripe n, lane i uses n + i; scrambling 16 + i */
    uint64_t last[8];    /* at 121 + 8 i: the stripe that ends the input */
    uint64_t low[8];     /* at 11 + 8 i */
    uint64_t high[8];    /* at 117 + 8 i */
};

IG_DEV uint64_t ig_xxh_start(int lane)
{
    switch (lane) {
    case 0:
        return IG_P32_3;
    case 1:
        return IG_P64_1;
    case 2:
        return IG_P64_2;
    case 3:
        return IG_P64_3;
    case 4:
        return IG_P64_4;
    case 5:
        return IG_P32_2;
    case 6:
        return IG_P64_5;
    default:
        return IG_P32_1;
    }
}

/* One lane's share of a stripe; `beside` is what the lane i ^ 1 read. */
IG_DEV uint64_t ig_xxh_mix(uint64_t acc, uint64_t mine, uint64_t beside, uint64_t key)
{
    const uint64_t v = mine ^ key;
    return acc + beside + (v & 0xffffffffu) * (v >> 32);
}

IG_DEV uint64_t ig_xxh_scramble(uint64_t acc, uint64_t key)
{
    return ((acc ^ acc >> 47) ^ key) * IG_P32_1;
}

IG_DEV uint64_t ig_mul_fold(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return a * b ^ __umul64hi(a, b);
#else
    const unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
#endif
}

IG_DEV uint64_t ig_xxh_merge(const uint64_t acc[8], const uint64_t key[8], uint64_t start)
{
    uint64_t r = start;
    IG_UNROLL
    for (int i = 0; i < 4; i++)
        r += ig_mul_fold(acc[2 * i] ^ key[2 * i], acc[2 * i + 1] ^ key[2 * i + 1]);
    r ^= r >> 37;
    r *= 0x165667919E3779F9ull;
    return r ^ r >> 32;
}

#endif
