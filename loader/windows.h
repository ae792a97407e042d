/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows: the second half of planning.  The file is cut at multiples of the window size; each
 * window that holds something wanted is read (whole pages, close ranges together, pieces of at most
 * IG_READ), copied and hashed in the order of the file.  Copies and jobs are listed when a window
 * is about to be submitted, so that the plan of a model of any size stays small.
 */
#ifndef INGOT_WINDOWS_H
#define INGOT_WINDOWS_H

#include "loader/plan.h"

enum ig_check_level { IG_LOAD_OFF, IG_LOAD_FAST, IG_LOAD_FULL };

/* Where an address of a copy or job counts from. */
enum ig_space {
    IG_SPACE_DST,    /* the arena, or 0 for the caller's memory */
    IG_SPACE_SLOT,   /* the window's slot in host memory; offset as in the file */
    IG_SPACE_BOUNCE, /* the window's bounce in device memory; offset as in the file */
    IG_SPACE_EDGE    /* one page of device memory for each edge of a piece */
};
struct ig_address {
    enum ig_space space;
    uint64_t at;
};
struct ig_copy {
    struct ig_address from, to;
    uint64_t rows, width, stride, pitch;
};
/* How what a job yields is known to be true. */
enum ig_truth_kind {
    IG_TRUTH_NODE,   /* the pack's tree, level 1, index `at` */
    IG_TRUTH_LEAVES, /* the pack's tree, leaves from page `at` on */
    IG_TRUTH_ROW,    /* the digest of row `row`; this is its node `at` */
    IG_TRUTH_SPANS,  /* the pack's XXH3 table from span `at` on */
    IG_TRUTH_EQUAL   /* a column piece arrived as it was hashed */
};
struct ig_truth {
    enum ig_truth_kind kind;
    uint32_t row; /* IG_NONE: of no single one */
    uint64_t at;
    uint64_t file, bytes; /* what it is about, in the pack */
};
struct ig_plan_job {
    enum ig_job_kind kind;
    struct ig_address data, data2, data3;
    uint64_t bytes, bytes2, bytes3, rows, stride, stride2;
    bool single;
    struct ig_truth truth;
};

enum ig_by { IG_PART_ROW, IG_PART_PAGES, IG_PART_COLUMNS }; /* how a target is proven */
struct ig_span_target {                                     /* a target, placed in the file */
    const struct ig_target *t;
    uint64_t from, to, reach; /* file bytes; the largest `to` so far */
    enum ig_by part;
    uint64_t edge; /* index of its first edge page: PAGES have two */
};
struct ig_read {
    uint64_t offset;
    uint32_t bytes; /* whole pages */
};
struct ig_window {
    uint64_t offset; /* a multiple of the window size */
    uint64_t bytes;  /* up to the last byte read */
    uint32_t read, nreads;
    uint32_t target; /* the first that may reach into it */
};
struct ig_windows {
    const struct ig_pack *pack;
    enum ig_check_level level;
    uint64_t size; /* of a window */
    bool whole;
    struct ig_span_target *targets;
    struct ig_window *list;
    struct ig_read *reads;
    size_t ntargets, n, nreads;
    uint64_t nedges;
    bool bounces;                                    /* column pieces pass the bounce */
    bool needs_tree;                                 /* leaves of single pages must be known */
    uint64_t read_bytes, placed_bytes, proven_bytes; /* proven: when all goes well */
    uint64_t tensors;                                /* whole or in part */
};
/* again: for hashing once more what lies in memory already: only what beside it is needed is read.
 */
ingot_status ig_windows_make(const struct ig_pack *p, const struct ig_targets *t, uint64_t size,
                             enum ig_check_level level, bool again, struct ig_windows *out,
                             ingot_error *e);
void ig_windows_free(struct ig_windows *w);

/* Call fn for every copy of window i, in order: from the slot first (again: not to the
 * destination), then between places of the device. */
typedef ingot_status ig_copy_fn(void *ctx, const struct ig_copy *c, ingot_error *e);
ingot_status ig_window_copies(const struct ig_windows *w, size_t i, bool again, ig_copy_fn *fn,
                              void *ctx, ingot_error *e);
/* The same for the jobs whose bytes are complete with window i. */
typedef ingot_status ig_job_fn(void *ctx, const struct ig_plan_job *j, ingot_error *e);
ingot_status ig_window_jobs(const struct ig_windows *w, size_t i, ig_job_fn *fn, void *ctx,
                            ingot_error *e);

#endif
