/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device: memory that packs are loaded into, queues that copy and hash.  Two kinds, one
 * interface: CUDA (cuda/device.cu) and the host (host.c: anonymous memory, threads for queues), so
 * that every engine and every failure runs where there is no GPU.
 *
 * Order is the whole contract.  Copies are done in the order of the calls.  Work given to a mark
 * (hash) begins when everything copied before that mark has arrived, and never before.
 */
#ifndef INGOT_DEVICE_H
#define INGOT_DEVICE_H

#include "base/base.h"

#define IG_NODE       ((uint64_t)IG_FAN * IG_PAGE) /* bytes under one hash of level 1 */
#define IG_MARKS      16u                          /* marks in flight: of window w, w % IG_MARKS */
#define IG_BATCH_JOBS 1024u                        /* most jobs of one hash call */

/* What one group of threads hashes.  `data` and `out` are device addresses; 16-byte aligned data
 * is the fast case, any other works. */
enum ig_job_kind {
    IG_JOB_NODE,   /* <= IG_NODE bytes -> 32: the level-1 hash over their leaves (the leaf itself
                      when `single`), the last leaf filled up with zeros */
    IG_JOB_LEAVES, /* <= IG_NODE bytes -> 32 a leaf */
    IG_JOB_XXH,    /* <= IG_NODE bytes -> 16 a span of 64 KiB: XXH3-128, canonical */
    IG_JOB_GATHER, /* one page put together from up to three runs (data, data2, data3) -> 32 */
    IG_JOB_COMPARE /* rows runs of bytes at data, stride apart, against data2, stride2 apart -> one
                      u32 pair: 0, or 1 + the first run that differs (low, high) */
};
struct ig_job {
    const void *data, *data2, *data3;
    uint64_t bytes, bytes2, bytes3; /* GATHER: of each run; COMPARE: of one run */
    uint64_t rows, stride, stride2; /* COMPARE */
    uint32_t kind;
    uint32_t single; /* NODE: there is only one leaf, and it is the root */
    uint32_t out;    /* byte offset in the batch's results */
    uint32_t tag;    /* the planner's */
};
#define IG_BATCH_OUT (128u << 10) /* most bytes of results of one batch */

struct ig_dev_info {
    char name[32];   /* "cuda:0", "host" */
    char model[256]; /* "NVIDIA H200" */
    bool host;
    int numa;            /* node of the device, -1 unknown */
    uint64_t free_bytes; /* of device memory, at start; 0 unknown */
};

struct ig_dev;
struct ig_dev_ops {
    /* Make the context, queues and kernels ready; slow the first time in a process. */
    ingot_status (*start)(struct ig_dev *d, ingot_error *e);
    void (*close)(struct ig_dev *d);
    /* Device memory; NO_MEMORY says how much was wanted and how much there is. */
    ingot_status (*alloc)(struct ig_dev *d, uint64_t bytes, void **out, ingot_error *e);
    void (*release)(struct ig_dev *d, void *memory);
    /* Let the device read host memory directly.  A refusal is no failure of the device: copies
     * from memory that is not pinned work too, only slower.  read_only: a map of a file. */
    ingot_status (*pin)(struct ig_dev *d, void *memory, size_t bytes, bool read_only,
                        ingot_error *e);
    ingot_status (*unpin)(struct ig_dev *d, void *memory, ingot_error *e);
    /* Queue `rows` runs of `width` bytes from host memory.  The source must stay as it is until a
     * later mark is reached. */
    ingot_status (*copy)(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                         uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e);
    /* The same between two places of the device's memory, in the same order. */
    ingot_status (*move)(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                         uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e);
    /* Queue n equal bytes. */
    ingot_status (*fill)(struct ig_dev *d, void *to, int byte, uint64_t n, ingot_error *e);
    /* Everything queued so far belongs to mark m, which must not be in flight any more. */
    ingot_status (*mark)(struct ig_dev *d, unsigned m, ingot_error *e);
    /* Wait until mark m is reached. */
    ingot_status (*wait)(struct ig_dev *d, unsigned m, ingot_error *e);
    /* Hash behind mark m.  jobs and results lie in pinned memory and stay untouched until
     * hash_wait(m) returns, which waits for all the batches given to m. */
    ingot_status (*hash)(struct ig_dev *d, unsigned m, const struct ig_job *jobs, uint32_t n,
                         uint8_t *results, ingot_error *e);
    ingot_status (*hash_wait)(struct ig_dev *d, unsigned m, ingot_error *e);
    /* Is hash_wait(m) going to return at once? */
    bool (*hash_done)(struct ig_dev *d, unsigned m);
    /* Later copies wait for what was hashed behind mark m (a bounce is about to be reused). */
    ingot_status (*after_hash)(struct ig_dev *d, unsigned m, ingot_error *e);
    /* Nothing is queued any more; also after a failure. */
    ingot_status (*drain)(struct ig_dev *d, ingot_error *e);
    /* Bytes back to the host, at once. */
    ingot_status (*read_back)(struct ig_dev *d, void *to, const void *from, uint64_t n,
                              ingot_error *e);
    /* The caller's stream (cudaStream_t; NULL is the default stream): copies wait for what it
     * holds now; or it waits for mark m, or for everything queued so far with m = IG_MARKS. */
    ingot_status (*join)(struct ig_dev *d, void *stream, ingot_error *e);
    ingot_status (*follow)(struct ig_dev *d, void *stream, unsigned m, ingot_error *e);
    /* Is this a device address that the device may write n bytes to? */
    bool (*writable)(struct ig_dev *d, const void *memory, uint64_t n);
};
struct ig_dev {
    const struct ig_dev_ops *ops;
    struct ig_dev_info info;
};

#ifdef __cplusplus
extern "C" {
#endif
/* xxh_secret.c */
void ig_xxh_secret_bytes(uint8_t out[192]);
/* host.c; `threads` hash at once. */
ingot_status ig_host_open(unsigned threads, struct ig_dev **out, ingot_error *e);
/* cuda/device.cu: queries only, no context yet.  INGOT_ERR_NOT_FOUND when there is none such. */
ingot_status ig_cuda_open(int index, struct ig_dev **out, ingot_error *e);
#ifdef __cplusplus
}
#endif
/* device.c: "host", "cuda", "cuda:N", "N", a UUID ("GPU-...") or NULL: cuda:0 where there is one,
 * else the host. */
ingot_status ig_dev_open(const char *name, unsigned threads, struct ig_dev **out, ingot_error *e);

#endif
