/* SPDX-License-Identifier: Apache-2.0 */
/* What loader.c and the load_*.c share: the handles of ingot_load.h. */
#ifndef INGOT_LOAD_PRIVATE_H
#define INGOT_LOAD_PRIVATE_H

#include "loader/run.h"
#include "store/pack_api.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#define IG_LOAD_MEMORY  ((uint64_t)128 << 20)
#define IG_LOAD_WORKERS 12u /* more only take turns on the memory bus */
#define IG_LOAD_THREADS 64u

/* Callers may pass no error; what is below them may not, for it tells its status through one. */
#define WITH_ERROR(e)    \
    ingot_error ignored; \
    if (!(e)) (e) = &ignored

struct ingot_loader {
    pid_t pid; /* of whom opened it */
    struct ig_dev *dev;
    unsigned workers;
    uint64_t memory;
    ingot_engine engine;
    void (*notice)(void *ctx, const char *text);
    void *ctx;
    struct ig_ring ring; /* opened by the first load */
    pthread_mutex_t lock;
    bool busy;
    unsigned refs; /* atomic: the caller's, and one a load */
};
ingot_status ig_not_after_fork(pid_t opener, const char *what, ingot_error *e);
void ig_loader_retain(struct ingot_loader *l);
void ig_loader_release(struct ingot_loader *l);
bool ig_loader_take(struct ingot_loader *l); /* false: busy */
void ig_loader_give(struct ingot_loader *l);
/* The ring with its size for this process at this time; kept. */
ingot_status ig_loader_ring(struct ingot_loader *l, ingot_error *e);
/* The device started and the ring pinned; slow the first time.  *refused: it could not be pinned,
 * and ig_loader_shrink is to be called when nobody uses it. */
ingot_status ig_loader_ready(struct ingot_loader *l, bool *refused, ingot_error *e);
void ig_loader_shrink(struct ingot_loader *l);
/* ceiling.c: bytes a second that copies from the loader's pinned memory reach by themselves. */
ingot_status ig_loader_ceiling(struct ingot_loader *l, double *rate, ingot_error *e);
/* affinity.c: the processors of a NUMA node that this process may use, if they are enough. */
bool ig_node_cpus(int node, unsigned wanted, cpu_set_t *out);

struct ingot_load {
    pid_t pid;
    struct ingot_loader *loader;
    ingot_pack *pack; /* retained */
    struct ig_targets targets;
    struct ig_windows plan;
    struct ig_run run;
    struct ingot_load_options options; /* without what its pointers lead to */
    enum ig_check_level level;
    struct stat before; /* the file, when reading began */
    void *arena;        /* NULL: the caller's memory, or none any more */
    uint64_t arena_bytes, transient;

    pthread_t conductor, truth, workers[IG_LOAD_THREADS];
    unsigned nworkers;
    bool has_conductor;
    bool retry; /* this run ends only to be begun anew with other staging memory */
    bool holds; /* atomic: the loader is busy with this */

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t ended;
    unsigned refs;
    bool done, seen; /* seen: somebody has been told an address */
    ingot_status status;
    ingot_error error;
    struct ingot_load_stats stats; /* final once done */
    int cancel;                    /* atomic */
};

/* load_target.c: what the options want of the pack. */
ingot_status ig_load_targets(const struct ingot_load *l, const struct ingot_load_options *o,
                             struct ig_targets *out, ingot_error *e);
/* load_run.c: threads from the first read to the verdict. */
ingot_status ig_load_begin(struct ingot_load *l, bool again, ingot_error *e);
void ig_load_end(struct ingot_load *l);  /* waits for the conductor, frees what the run needed */
void ig_load_give(struct ingot_load *l); /* the loader is free for the next one */
/* load_scrub.c: what was not proven becomes NaN, or goes. */
void ig_load_scrub(struct ingot_load *l);
/* Windows, in order, whose bytes are known to be good before the end. */
size_t ig_load_proven_windows(const struct ingot_load *l);
bool ig_load_is_early(const struct ingot_load *l);
double ig_cpu_seconds(void); /* of the process */

#endif
