/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SHA-256 is a chain of rounds that wait for each other, and leaves a core's hash unit idle
 * half the time.  Leaves do not wait for each other, so two (SHA extensions) to sixteen (AVX-512)
 * of them go through side by side: the "multi-buffer" hashing of libipsec-mb, where configure
 * found it.  Which of its ways is the fastest, or whether libcrypto's single stream is,
 * differs from one processor to the next and is measured, once a pool of workers.
 *
 * libipsec-mb's header and OpenSSL's define the same names, so this file sees only the former.
 */
#include "config.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_IPSEC_MB
#include <intel-ipsec-mb.h>

#define TRIAL 64u /* leaves a trial hashes: 256 KiB, a tenth of a millisecond */

struct ig_lanes {
    IMB_MGR *manager; /* NULL: libcrypto is the fastest here */
    unsigned way;
};

struct way {
    uint64_t needs; /* every one of these features of the processor */
    void (*init)(IMB_MGR *);
};
static const struct way ways[] = {
    {IMB_CPUFLAGS_SSE_T2, init_mb_mgr_sse},
    {IMB_CPUFLAGS_AVX2, init_mb_mgr_avx2},
    {IMB_CPUFLAGS_AVX512, init_mb_mgr_avx512},
};
#define WAYS (sizeof ways / sizeof *ways)

static IMB_MGR *open_way(unsigned way)
{
    IMB_MGR *m = alloc_mb_mgr(0);
    if (!m) return NULL;
    if ((m->features & ways[way].needs) == ways[way].needs) {
        ways[way].init(m);
        if (imb_get_errno(m) == 0) return m;
    }
    free_mb_mgr(m);
    return NULL;
}

static void submit(IMB_MGR *m, uint8_t *out, const uint8_t *data)
{
    IMB_JOB *job = IMB_GET_NEXT_JOB(m);
    job->cipher_mode = IMB_CIPHER_NULL;
    job->cipher_direction = IMB_DIR_ENCRYPT;
    job->chain_order = IMB_ORDER_HASH_CIPHER;
    job->hash_alg = IMB_AUTH_SHA_256;
    job->src = data;
    job->dst = NULL;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = IG_PAGE;
    job->auth_tag_output = out;
    job->auth_tag_output_len_in_bytes = IG_HASH;
    /* Every field was just set, so the checks would find nothing. */
    IMB_SUBMIT_JOB_NOCHECK(m);
}

static void hash_pages(IMB_MGR *m, uint8_t *out, const uint8_t *data, size_t pages)
{
    for (size_t i = 0; i < pages; i++) submit(m, out + i * IG_HASH, data + i * IG_PAGE);
    while (IMB_FLUSH_JOB(m)) continue;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The better of two trials: the first warms up. */
static double trial(IMB_MGR *m, uint8_t *out, const uint8_t *data)
{
    double best = 1e9;
    for (int i = 0; i < 2; i++) {
        const double start = seconds();
        if (m)
            hash_pages(m, out, data, TRIAL);
        else
            ig_leaves(NULL, out, data, (size_t)TRIAL * IG_PAGE);
        const double took = seconds() - start;
        if (took < best) best = took;
    }
    return best;
}

/* Leave the fastest way in *l.  Without the memory to find out it is libcrypto. */
static void choose(struct ig_lanes *l)
{
    uint8_t *data = calloc(TRIAL, IG_PAGE + IG_HASH);
    if (!data) return;
    uint8_t *out = data + (size_t)TRIAL * IG_PAGE;
    double best = trial(NULL, out, data);
    for (unsigned way = 0; way < WAYS; way++) {
        IMB_MGR *m = open_way(way);
        if (!m) continue;
        const double took = trial(m, out, data);
        if (took >= best) {
            free_mb_mgr(m);
            continue;
        }
        if (l->manager) free_mb_mgr(l->manager);
        l->manager = m;
        l->way = way;
        best = took;
    }
    free(data);
}

struct ig_lanes *ig_lanes_new(const struct ig_lanes *like)
{
    struct ig_lanes *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    if (!like)
        choose(l);
    else if (like->manager)
        l->manager = open_way(like->way);
    l->way = like ? like->way : l->way;
    return l;
}

void ig_lanes_free(struct ig_lanes *l)
{
    if (l && l->manager) free_mb_mgr(l->manager);
    free(l);
}

static size_t hash_side_by_side(struct ig_lanes *l, uint8_t *out, const void *data, size_t n)
{
    const size_t pages = n / IG_PAGE;
    if (!l || !l->manager || pages < 2) return 0;
    hash_pages(l->manager, out, data, pages);
    return pages;
}
#else
/* libcrypto hashes one leaf at a time and needs no state. */
struct ig_lanes *ig_lanes_new(const struct ig_lanes *like)
{
    (void)like;
    return NULL;
}

void ig_lanes_free(struct ig_lanes *l)
{
    (void)l;
}

static size_t hash_side_by_side(struct ig_lanes *l, uint8_t *out, const void *data, size_t n)
{
    (void)l, (void)out, (void)data, (void)n;
    return 0;
}
#endif

void ig_leaves(struct ig_lanes *l, uint8_t *out, const void *data, size_t n)
{
    const size_t done = hash_side_by_side(l, out, data, n);
    const uint8_t *p = (const uint8_t *)data + done * IG_PAGE;
    out += done * IG_HASH;
    n -= done * IG_PAGE;
    for (; n >= IG_PAGE; n -= IG_PAGE, p += IG_PAGE, out += IG_HASH) ig_sha256(out, p, IG_PAGE);
    if (n) ig_leaf(out, p, n);
}
