/* SPDX-License-Identifier: Apache-2.0 */
/* Items pass through stages on a pool of threads; pipe.c says in which order. */
#ifndef INGOT_PIPE_H
#define INGOT_PIPE_H

#include "base/base.h"

struct ig_item {
    unsigned lane;   /* items of one lane keep their order in ordered stages */
    unsigned slot;   /* index of the buffer this item owns while it is in flight */
    uint64_t index;  /* running number inside its lane */
    uint64_t arg[2]; /* the caller's */
    struct ig_pool *pool;
};
typedef ingot_status ig_stage_fn(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e);
struct ig_stage {
    ig_stage_fn *run;
    bool ordered; /* one item of a lane at a time, in order */
};
struct ig_pipe {
    void *ctx;
    unsigned threads, lanes, slots; /* slots >= lanes; all at least 1 */
    unsigned busy; /* at most so many stages at once, but for those that wait; 0: threads */
    /* Describe the next item of a lane; *more = false ends the lane.  Serial per lane. */
    ingot_status (*next)(void *ctx, struct ig_item *item, bool *more, ingot_error *e);
    const struct ig_stage *stages;
    unsigned nstages;
};
ingot_status ig_pipe_run(const struct ig_pipe *p, ingot_error *e); /* first failure wins */
/* A stage that is about to wait for a device lets another thread work meanwhile. */
void ig_pipe_wait(const struct ig_item *item, bool begins);
/* Run fn for every index below n on `threads` threads. */
typedef ingot_status ig_for_fn(void *ctx, uint64_t index, unsigned worker, ingot_error *e);
ingot_status ig_parallel(unsigned threads, uint64_t n, ig_for_fn *fn, void *ctx, ingot_error *e);

#endif
