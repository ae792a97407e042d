/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading: a pack into the memory of a device, every byte proven where it landed.  Included by
 * ingot.h.  A loader is a device with its staging memory; it can be used again and again, for one
 * load at a time.  A load is a model in memory, or on the way there; it is reference-counted and
 * may be looked at, waited for and released from any thread (but not from within its callbacks).
 *
 * After fork, a child must not touch what its parent opened: every call says so, and release and
 * close do nothing there.
 */
#ifndef INGOT_LOAD_H
#define INGOT_LOAD_H

#ifndef INGOT_H
#error "include ingot.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ingot_loader ingot_loader;
typedef struct ingot_load ingot_load;

/* How bytes are brought in; the result is the same. */
typedef enum ingot_engine {
    INGOT_ENGINE_AUTO,   /* ring, and direct for what is not in the page cache */
    INGOT_ENGINE_RING,   /* through the page cache */
    INGOT_ENGINE_MAP,    /* straight from the page cache: almost no CPU, slower */
    INGOT_ENGINE_DIRECT, /* past the page cache */
    INGOT_ENGINES
} ingot_engine;

typedef enum ingot_check {
    INGOT_CHECK_FULL, /* SHA-256 against the digest, over the memory that the model landed in */
    INGOT_CHECK_FAST, /* XXH3-128: finds corruption, proves nothing (whole models only; parts of
                         them are checked in full) */
    INGOT_CHECK_OFF   /* nothing */
} ingot_check;

/* What is known of some bytes of a load. */
typedef enum ingot_state {
    INGOT_STATE_WAITING,
    INGOT_STATE_LANDED, /* copied */
    INGOT_STATE_PROVEN  /* copied and checked */
} ingot_state;

/* Zero is the default everywhere.  Set `size` to sizeof, so that later fields can be told. */
typedef struct ingot_loader_options {
    size_t size;
    const char *device; /* "cuda:0", a UUID, "host"; NULL: cuda:0 where there is one, else host */
    unsigned threads;   /* that read; 0: 12, or as many as this process may use */
    uint64_t memory;    /* host memory of its own, bytes; 0: 128 MiB */
    ingot_engine engine;
    void (*notice)(void *ctx,
                   const char *text); /* what was done differently, and why; any thread */
    void *ctx;
} ingot_loader_options;

/* Open a device and take staging memory.  The context of a GPU is made by the first load, beside
 * its first reads, or here with ingot_loader_warm. */
INGOT_API ingot_status ingot_loader_open(const ingot_loader_options *options, ingot_loader **out,
                                         ingot_error *e);
INGOT_API ingot_status ingot_loader_warm(ingot_loader *loader, ingot_error *e);
/* Loads stay: they keep what they need.  NULL is fine. */
INGOT_API void ingot_loader_close(ingot_loader *loader);
INGOT_API const char *ingot_loader_device(const ingot_loader *loader); /* "cuda:0", "host" */

/* A part of a tensor and the memory that the caller has for it: rows [row, row + rows) of the
 * first dimension, elements [column, column + columns) of each row flattened; 0 rows or columns:
 * all of them.  `to` is device memory (host memory for "host"); `pitch` is bytes from row to row
 * there, 0: no gap. */
typedef struct ingot_piece {
    const char *tensor;
    uint64_t row, rows, column, columns;
    void *to;
    uint64_t pitch;
} ingot_piece;

/* At most one of tensors, ranks and pieces; none of them: the whole model in one arena. */
typedef struct ingot_load_options {
    size_t size;
    ingot_check check;
    const char *const *tensors; /* names or shell patterns, in an arena of their own */
    size_t ntensors;
    unsigned rank, ranks;      /* what rank `rank` of `ranks` holds, in an arena of its own */
    const ingot_piece *pieces; /* memory of the caller's; untouched by others until the end */
    size_t npieces;
    int has_stream; /* stream (a cudaStream_t) is meant: copies begin behind what it holds now, */
    void *stream;   /* and ingot_load_wait makes it wait for the last of them */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* bytes; one call at a time */
    int (*cancelled)(void *ctx);                                /* asked often; non-zero: stop */
    void *ctx;
} ingot_load_options;

/* Begin.  Returns when memory is there and reading has begun; the pack may be closed then.
 * INGOT_ERR_BUSY while another load of this loader runs. */
INGOT_API ingot_status ingot_load_start(ingot_loader *loader, const ingot_pack *pack,
                                        const ingot_load_options *options, ingot_load **out,
                                        ingot_error *e);
/* The end and the verdict; again and again the same.  After a failure nothing can be looked up
 * any more; memory that the caller owns or was told of stays, and what of it was not proven is
 * filled with 0xFF bytes (NaN in every float format), unless the check was OFF. */
INGOT_API ingot_status ingot_load_wait(ingot_load *load, ingot_error *e);
/* Wait until a tensor (NULL: everything) is in a state.  LANDED with a stream: the stream waits for
 * the copy, the caller only until it is queued.  `early` of the statistics says whether PROVEN can
 * come before the end. */
INGOT_API ingot_status ingot_load_await(ingot_load *load, const char *tensor, ingot_state state,
                                        int has_stream, void *stream, ingot_error *e);
INGOT_API void ingot_load_cancel(ingot_load *load);
/* Hash what lies in device memory once more (check FULL), whoever wrote to it since. */
INGOT_API ingot_status ingot_load_reverify(ingot_load *load, ingot_error *e);
INGOT_API void ingot_load_retain(ingot_load *load);
INGOT_API void
ingot_load_release(ingot_load *load); /* NULL is fine; the last one frees the arena */

/* A tensor, or the part of one that was loaded, where it lies. */
typedef struct ingot_placed {
    void *data;        /* device address; NULL when it has no bytes */
    const char *dtype; /* names of safetensors; lives as long as the load */
    uint32_t rank;
    const uint64_t *shape;               /* of the whole tensor in the model */
    uint64_t row, rows, column, columns; /* the part, as in ingot_piece; all of it as a rule */
    uint64_t pitch;                      /* bytes from row to row */
    uint64_t bytes;                      /* that belong to it */
    int replicated;                      /* the other ranks hold the same */
} ingot_placed;
/* Part i of a tensor or view by name (most have one; fused tensors of a rank have several).
 * INGOT_ERR_NOT_FOUND: no such tensor, not loaded, or no such part. */
INGOT_API ingot_status ingot_load_tensor(const ingot_load *load, const char *name, unsigned i,
                                         ingot_placed *out, ingot_error *e);
/* A file of the model that is no weights ("config.json"), SHA-256 checked; ingot_free it. */
INGOT_API ingot_status ingot_load_blob(const ingot_load *load, const char *name, char **data,
                                       size_t *bytes, ingot_error *e);

typedef struct ingot_load_stats {
    double plan, device, first, landed, total; /* seconds: planning; until the device was ready, the
                                                  first and the last window landed, the verdict */
    double cpu;                                /* of the process, from start to verdict */
    uint64_t read, uploaded, placed, proven;   /* bytes */
    uint64_t by_engine[INGOT_ENGINES];         /* bytes read by each */
    uint64_t tensors;                          /* loaded, whole or in part */
    uint64_t tensors_proven;
    uint64_t pinned_asked, pinned; /* bytes of host memory */
    uint64_t arena;                /* bytes of device memory that stay */
    uint64_t transient;            /* and that do not */
    unsigned threads;
    int early; /* bytes can be proven before the end */
} ingot_load_stats;
INGOT_API void ingot_load_get_stats(const ingot_load *load, ingot_load_stats *out);

#ifdef __cplusplus
}
#endif
#endif
