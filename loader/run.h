/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load while it runs.  Who does what:
 *
 *   workers   claim pieces of the file in order and read them into the slot of their window; the
 *             one that ends a window submits it, and those behind it that are full (fill.c)
 *   submit    queues a window's copies, its mark, its hash jobs, strictly in the order of the file
 *   reaper    waits for marks in order, gives slots back, judges what was hashed (reap.c, judge.c)
 *   truth     proves the tail and reads the sidecar, beside all of it (truth.c)
 *
 * One lock guards the counters; it is held for a few instructions, never over a system call.
 */
#ifndef INGOT_RUN_H
#define INGOT_RUN_H

#include "loader/residency.h"
#include "loader/sidecar.h"
#include "loader/windows.h"

#include <pthread.h>

#define IG_SLOTS   4u
#define IG_BATCHES 8u

/* Jobs of one hash call, their results, and what these must be. */
struct ig_batch {
    struct ig_job *jobs; /* both in pinned memory */
    uint8_t *results;
    struct ig_truth truth[IG_BATCH_JOBS];
    uint32_t n, out;
    size_t window;
};

/* ring.c: staging memory, kept by the loader.  Slots, then batches, in one mapping. */
struct ig_ring {
    uint8_t *memory;
    size_t bytes, asked;
    unsigned slots;
    uint64_t window;
    bool pinned;
    bool settled; /* pinning was refused and its size fitted to that: not tried again */
    bool touched; /* its pages are there */
    struct ig_batch *batch;
};
/* `room`: bytes it may have.  Nothing is touched yet. */
ingot_status ig_ring_open(struct ig_ring *r, unsigned slots, uint64_t window, uint64_t room,
                          ingot_error *e);
void ig_ring_touch(struct ig_ring *r, unsigned part, unsigned parts); /* make pages come to be */
uint64_t ig_ring_least(void); /* bytes of the smallest ring */
/* Pin all of it.  false: refused; it works as it is, slowly. */
bool ig_ring_pin(struct ig_ring *r, struct ig_dev *d);
/* After a refusal, with nothing of it in use: pin half of it, and so on, and at last none.  *notice
 * says so in one line. */
void ig_ring_shrink(struct ig_ring *r, struct ig_dev *d, char *notice, size_t cap);
void ig_ring_close(struct ig_ring *r, struct ig_dev *d);

struct ig_run_stats {
    double started, device, first, landed, done; /* clock, seconds */
    uint64_t read, uploaded, proven;
    uint64_t by_engine[INGOT_ENGINES];
};

struct ig_run {
    struct ig_dev *dev;
    struct ig_ring *ring;
    const struct ig_pack *pack;
    const struct ig_windows *plan;
    bool again;                    /* hash what is in memory */
    uint8_t *dst, *bounce, *edges; /* device memory */
    ingot_engine engine;
    unsigned nworkers, touching; /* workers that have begun to touch the ring; atomic */
    void (*notice)(void *ctx, const char *text);
    void *notice_ctx;
    struct ig_progress progress;

    /* reading: plain, past the cache, by map */
    int direct; /* a second descriptor, or -1 */
    bool direct_refused, uring_refused, drop_behind;
    struct ig_residency residency;
    struct ig_map *map; /* the map engine's, or NULL */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* any of the counters did */
    pthread_cond_t
        room;       /* workers: a window may be claimed, for which `landed` and `probed` count */
    unsigned pulse; /* atomic: grows with every `room`, for those that look before they sleep */
    size_t claimed_reads, claimed_window;     /* next read to claim, and its window */
    size_t probed, submitted, landed, judged; /* windows, in order */
    bool cold[IG_MARKS];                      /* of window w, w % IG_MARKS: read past the cache */
    uint32_t left[IG_MARKS];                  /* reads of a claimed window that are not done */
    bool full[IG_MARKS];
    bool ready;                                           /* the device takes copies */
    bool submitting;                                      /* somebody is at it */
    uint64_t batches_used, batches_flushed, batches_done; /* taken, given to the device, judged */
    bool stop;
    ingot_status status;
    ingot_error error;

    /* truth */
    bool truth_ready, must_prove, tail_proven;
    uint8_t digest[IG_HASH];
    struct ig_sidecar *sidecar;
    struct ig_tree *tree; /* of the file without a sidecar, or of the row under way */
    struct ig_run_stats stats;
};

double ig_clock(void); /* monotonic, seconds */
/* The first failure stops everything and is what the run ends with. */
void ig_run_fail(struct ig_run *r, const ingot_error *e);
bool ig_run_stopped(struct ig_run *r);
void ig_run_room(struct ig_run *r); /* lock held */

/* fill.c */
void *ig_fill_worker(void *run);
void ig_fill_submit(struct ig_run *r); /* lock held: submit what is full and next */
/* submit.c; `from` is where the window's first byte lies in host memory */
ingot_status ig_submit(struct ig_run *r, size_t window, const uint8_t *from, ingot_error *e);
/* map.c: the map engine instead of workers. */
void *ig_map_worker(void *run);
/* reap.c: until everything has landed and is judged, or the run stopped. */
void ig_reap(struct ig_run *r);
/* judge.c */
ingot_status ig_judge(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                      ingot_error *e);
ingot_status ig_judge_end(struct ig_run *r, ingot_error *e); /* all results are in */
/* locate.c: bytes [file, file + n) of the pack lie at `at` in device memory and are not what they
 * should be: where?  Always returns INGOT_ERR_CHECK, or why that could not be found out. */
ingot_status ig_locate(struct ig_run *r, uint64_t file, uint64_t n, const uint8_t *at, uint32_t row,
                       ingot_error *e);
/* truth.c */
void *ig_truth_thread(void *run);
/* direct.c: n reads of one window, all at once, into memory whose first byte is at `base` of the
 * file.  *refused: the kernel lets this process use no io_uring; nothing was read. */
struct ig_uring;
ingot_status ig_uring_read(struct ig_uring **u, int fd, const char *path,
                           const struct ig_read *reads, uint32_t n, uint8_t *memory, uint64_t base,
                           bool *refused, ingot_error *e);
void ig_uring_close(struct ig_uring *u);

#endif
