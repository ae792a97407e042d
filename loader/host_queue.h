/* SPDX-License-Identifier: Apache-2.0 */
/* The host device's queues, apart from what is queued. */
#ifndef INGOT_HOST_QUEUE_H
#define INGOT_HOST_QUEUE_H

#include "loader/device.h"

#include <pthread.h>

/* A copy, fill, mark or wait, in the order of the calls. */
enum host_kind { HOST_COPY, HOST_FILL, HOST_MARK, HOST_AFTER };
struct host_op {
    struct host_op *next;
    enum host_kind kind;
    void *to;
    const void *from;
    uint64_t pitch, stride, width, rows; /* FILL: width bytes */
    unsigned mark;
    int byte;
    bool guarded; /* COPY: from the map of a file, which may lose its pages any time */
};

#define HOST_MAPS 8u
struct host_map {
    const uint8_t *at; /* NULL: free */
    size_t bytes;
};
/* Jobs behind a mark; handed out one by one. */
struct host_batch {
    struct host_batch *next;
    const struct ig_job *jobs;
    uint8_t *results;
    uint32_t n, taken, done;
    unsigned mark;
};

struct host_device {
    struct ig_dev base; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t copier, *hashers;
    unsigned nhashers, threads;
    bool started, stop;
    struct host_op *first, *last;
    bool copying;            /* an operation is out of the list and not done */
    bool reached[IG_MARKS];  /* the mark's copies are done */
    unsigned open[IG_MARKS]; /* batches behind it that are not done */
    struct host_batch *batches, *batches_end;
    struct ig_lanes *lanes;          /* the measured one that those of the threads are like */
    struct host_map maps[HOST_MAPS]; /* read-only memory that was pinned */
    bool lost;                       /* pages of one went while they were copied; until drain */
    unsigned delay_us;               /* tests: every copy is done that much later */
};

ingot_status ig_host_start(struct host_device *h, ingot_error *e);
void ig_host_stop(struct host_device *h);
ingot_status ig_host_push(struct host_device *h, const struct host_op *op, ingot_error *e);
ingot_status ig_host_push_batch(struct host_device *h, const struct host_batch *b, ingot_error *e);
/* Copies from there are made so that a fault is an error.  false: it cannot be done here. */
bool ig_host_guard(struct host_device *h, const uint8_t *at, size_t bytes);
void ig_host_unguard(struct host_device *h, const uint8_t *at);
/* host_jobs.c */
void ig_host_job(struct ig_lanes *lanes, const struct ig_job *j, uint8_t *results);

#endif
