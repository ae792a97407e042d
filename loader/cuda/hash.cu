// SPDX-License-Identifier: Apache-2.0
// Hashes over memory of the device: one block of 128 threads a job (loader/device.h).
//
// A leaf is 65 blocks of SHA-256 in a row, so one thread takes one leaf, and a page's latency
// (about 65 x 1,600 cycles) is what the last window waits for; throughput comes from many jobs at
// once. A thread reads its page 64 bytes at a time, two whole sectors, the next ones under way
// while these are hashed.  Bytes moved: the input once; 32 bytes a job go back to pinned host
// memory.
#include "loader/cuda/hash.h"

extern "C" {
#include "loader/device.h"
}

#define THREADS 128u
#define PAGE    4096u
#define SPAN    65536u

struct vec {
    uint32_t x[16];
};

__device__ __forceinline__ vec load_aligned(const uint4 *p)
{
    vec v;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint4 q = p[i];
        v.x[4 * i] = q.x, v.x[4 * i + 1] = q.y, v.x[4 * i + 2] = q.z, v.x[4 * i + 3] = q.w;
    }
    return v;
}

__device__ __forceinline__ void leaf_aligned(uint32_t h[8], const unsigned char *page)
{
    const uint4 *p = (const uint4 *)page;
    vec next = load_aligned(p);
    ig_sha_start(h);
#pragma unroll 1
    for (int i = 0; i < 64; i++) {
        uint32_t w[16];
#pragma unroll
        for (int k = 0; k < 16; k++) w[k] = IG_SWAP32(next.x[k]);
        if (i < 63) next = load_aligned(p + 4 * (i + 1));
        ig_sha_block(h, w);
    }
    ig_sha_end_page(h);
}

// Any address, any length up to a page; what is missing is zeros.
__device__ __noinline__ void leaf_bytes(uint32_t h[8], const unsigned char *page, unsigned n)
{
    ig_sha_start(h);
#pragma unroll 1
    for (unsigned at = 0; at < PAGE; at += 64) {
        uint32_t w[16];
#pragma unroll
        for (unsigned k = 0; k < 16; k++) {
            uint32_t word = 0;
#pragma unroll
            for (unsigned b = 0; b < 4; b++) {
                const unsigned i = at + 4 * k + b;
                word = word << 8 | (i < n ? page[i] : 0u);
            }
            w[k] = word;
        }
        ig_sha_block(h, w);
    }
    ig_sha_end_page(h);
}

__device__ __forceinline__ void put_hash(unsigned char *out, const uint32_t h[8])
{
    uint4 *o = (uint4 *)out;
    o[0] = make_uint4(IG_SWAP32(h[0]), IG_SWAP32(h[1]), IG_SWAP32(h[2]), IG_SWAP32(h[3]));
    o[1] = make_uint4(IG_SWAP32(h[4]), IG_SWAP32(h[5]), IG_SWAP32(h[6]), IG_SWAP32(h[7]));
}

// A block of 128 leaf hashes as a page of its own.  The words of a hash are the message's already.
__device__ __noinline__ void fold(uint32_t h[8], const uint32_t *hashes)
{
    ig_sha_start(h);
#pragma unroll 1
    for (int i = 0; i < 64; i++) {
        uint32_t w[16];
#pragma unroll
        for (int k = 0; k < 16; k++) w[k] = hashes[16 * i + k];
        ig_sha_block(h, w);
    }
    ig_sha_end_page(h);
}

__device__ __forceinline__ void hash_pages(const struct ig_job &j, unsigned char *out,
                                           uint32_t *shared)
{
    const unsigned t = threadIdx.x;
    const uint64_t at = (uint64_t)t * PAGE;
    const unsigned char *data = (const unsigned char *)j.data;
    uint32_t h[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (at < j.bytes) {
        const uint64_t left = j.bytes - at;
        if (left >= PAGE && ((uintptr_t)data & 15) == 0)
            leaf_aligned(h, data + at);
        else
            leaf_bytes(h, data + at, left < PAGE ? (unsigned)left : PAGE);
    }
    if (j.kind == IG_JOB_LEAVES) {
        if (at < j.bytes) put_hash(out + 32u * t, h);
        return;
    }
    if (j.single) {
        if (t == 0) put_hash(out, h);
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) shared[8 * t + i] = h[i];
    __syncthreads();
    if (t == 0) {
        fold(h, shared);
        put_hash(out, h);
    }
}

__device__ __forceinline__ void hash_gathered(const struct ig_job &j, unsigned char *out,
                                              unsigned char *page)
{
    for (unsigned i = threadIdx.x; i < PAGE; i += THREADS) {
        unsigned char b = 0;
        if (i < j.bytes)
            b = ((const unsigned char *)j.data)[i];
        else if (i - j.bytes < j.bytes2)
            b = ((const unsigned char *)j.data2)[i - j.bytes];
        else if (i - j.bytes - j.bytes2 < j.bytes3)
            b = ((const unsigned char *)j.data3)[i - j.bytes - j.bytes2];
        page[i] = b;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t h[8];
        leaf_bytes(h, page, PAGE);
        put_hash(out, h);
    }
}

// The first run that differs, so that the place can be named; all threads of the block take part.
__device__ __forceinline__ void compare_runs(const struct ig_job &j, unsigned char *out,
                                             uint32_t *shared)
{
    unsigned long long *first = (unsigned long long *)shared;
    if (threadIdx.x == 0) *first = ~0ull;
    __syncthreads();
    const bool wide =
        (((uintptr_t)j.data | (uintptr_t)j.data2 | j.stride | j.stride2 | j.bytes) & 15) == 0;
    const uint64_t unit = wide ? 16 : 1, per_run = j.bytes / unit, total = per_run * j.rows;
    for (uint64_t i = threadIdx.x; i < total; i += THREADS) {
        const uint64_t run = i / per_run, at = i % per_run * unit;
        const unsigned char *a = (const unsigned char *)j.data + run * j.stride + at;
        const unsigned char *b = (const unsigned char *)j.data2 + run * j.stride2 + at;
        bool same;
        if (wide) {
            const uint4 x = *(const uint4 *)a, y = *(const uint4 *)b;
            same = x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w;
        } else {
            same = *a == *b;
        }
        if (!same) atomicMin(first, (unsigned long long)run);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned long long found = *first == ~0ull ? 0 : *first + 1;
        ((uint32_t *)out)[0] = (uint32_t)found;
        ((uint32_t *)out)[1] = (uint32_t)(found >> 32);
    }
}

// Eight lanes a span, so a job's eight spans take half a block.
__device__ __forceinline__ void hash_spans(const struct ig_job &j, unsigned char *out,
                                           const struct ig_xxh_secret &secret, uint64_t *keys)
{
    const unsigned t = threadIdx.x, lane = t % IG_XXH_LANES, span = t / IG_XXH_LANES;
    for (unsigned i = t; i < sizeof secret / 8; i += THREADS)
        keys[i] = ((const uint64_t *)&secret)[i];
    __syncthreads();
    const uint64_t at = (uint64_t)span * SPAN;
    if (at >= j.bytes) return;
    const unsigned mask = 0xffu << (t % 32 / IG_XXH_LANES * IG_XXH_LANES);
    const uint64_t len = j.bytes - at < SPAN ? j.bytes - at : SPAN;
    const uint64_t *p = (const uint64_t *)((const unsigned char *)j.data + at) + lane;
    const uint64_t stripes = (len - 1) / 64;
    uint64_t acc = ig_xxh_start(lane);
    uint64_t key[16];
#pragma unroll
    for (int n = 0; n < 16; n++) key[n] = keys[n + lane];
    const uint64_t scramble = keys[16 + lane];
    for (uint64_t s = 0; s + 16 <= stripes; s += 16) {
        uint64_t in[16];
#pragma unroll
        for (int n = 0; n < 16; n++) in[n] = p[(s + n) * 8];
#pragma unroll
        for (int n = 0; n < 16; n++)
            acc = ig_xxh_mix(acc, in[n], __shfl_xor_sync(mask, in[n], 1), key[n]);
        acc = ig_xxh_scramble(acc, scramble);
    }
    for (uint64_t s = stripes / 16 * 16; s < stripes; s++) {
        const uint64_t in = p[s * 8];
        acc = ig_xxh_mix(acc, in, __shfl_xor_sync(mask, in, 1), keys[s % 16 + lane]);
    }
    const uint64_t in = p[len / 8 - 8];
    acc = ig_xxh_mix(acc, in, __shfl_xor_sync(mask, in, 1), keys[24 + lane]);
    uint64_t all[8];
#pragma unroll
    for (int i = 0; i < 8; i++) all[i] = __shfl_sync(mask, acc, i, IG_XXH_LANES);
    if (lane == 0) {
        const uint64_t low = ig_xxh_merge(all, keys + 32, len * IG_P64_1);
        const uint64_t high = ig_xxh_merge(all, keys + 40, ~(len * IG_P64_2));
        uint32_t *o = (uint32_t *)(out + 16u * span);
        o[0] = IG_SWAP32((uint32_t)(high >> 32)), o[1] = IG_SWAP32((uint32_t)high);
        o[2] = IG_SWAP32((uint32_t)(low >> 32)), o[3] = IG_SWAP32((uint32_t)low);
    }
}

__global__ void __launch_bounds__(THREADS)
    hash_jobs(const struct ig_job *jobs, unsigned char *results, const struct ig_xxh_secret secret)
{
    __shared__ __align__(16) uint32_t shared[THREADS * 8];
    const struct ig_job j = jobs[blockIdx.x];
    unsigned char *out = results + j.out;
    switch (j.kind) {
    case IG_JOB_NODE:
    case IG_JOB_LEAVES:
        hash_pages(j, out, shared);
        break;
    case IG_JOB_XXH:
        hash_spans(j, out, secret, (uint64_t *)shared);
        break;
    case IG_JOB_GATHER:
        hash_gathered(j, out, (unsigned char *)shared);
        break;
    default:
        compare_runs(j, out, shared);
        break;
    }
}

cudaError_t ig_cuda_hash(cudaStream_t stream, const struct ig_job *jobs, unsigned n,
                         unsigned char *results, const struct ig_xxh_secret *secret)
{
    hash_jobs<<<n, THREADS, 0, stream>>>(jobs, results, *secret);
    return cudaGetLastError();
}

cudaError_t ig_cuda_hash_load(cudaFuncAttributes *out)
{
    return cudaFuncGetAttributes(out, hash_jobs);
}
