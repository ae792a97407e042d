/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of bench/load share. */
#ifndef INGOT_BENCH_LOAD_H
#define INGOT_BENCH_LOAD_H

#include "bench/bench.h"

/* One row of the table: what is loaded, and how. */
struct bench_case {
    const char *device, *pack; /* the pack's path; its name is its digest */
    ingot_engine engine;
    ingot_check check;
    unsigned threads;    /* 0: the loader's choice */
    unsigned processors; /* a quota; 0: none */
    unsigned repeat;     /* loads by the same handle, after the first */
    bool cold;           /* the pack is dropped from the page cache before each load */
};
struct bench_result {
    char error[256]; /* empty: all loads were good */
    double context;  /* seconds to make the context, which are in no other figure */
    double first, first_cpu;
    double best, best_cpu, median;
    uint64_t bytes;    /* placed in device memory by one load */
    uint64_t own;      /* most anonymous host memory beyond what the context took */
    uint64_t resident; /* bytes that were in the page cache in spite of `cold` */
    bool by_cgroup;    /* the quota is a control group's, not an affinity */
};

/* load_row.c: in a process of its own, which makes the context before the clock starts. */
void bench_row(const struct bench_case *c, struct bench_result *out);

/* load_limits.c: bytes a second that this device and host reach with nothing else to do. */
#define BENCH_CHUNKS 5u
extern const uint64_t bench_chunks[BENCH_CHUNKS]; /* bytes of one copy; the last is the ceiling */
struct bench_limits {
    char error[256];
    char model[256];
    double copy[BENCH_CHUNKS]; /* from pinned memory */
    double pin_map;            /* registering a map of `path`, which is in the page cache */
    double pin_memory;         /* and anonymous memory whose pages are there */
    double sha256, xxh3;       /* hashing device memory */
};
/* In a process of its own. */
void bench_load_limits(const char *device, const char *path, struct bench_limits *out);

/* load_data.c: a pack of about so many bytes, made in a folder that it makes; its path, to be
 * freed. A copy of one, in a folder on tmpfs that it makes; NULL: there is no room. */
char *bench_pack(const char *work, uint64_t bytes);
char *bench_to_tmpfs(const char *pack, const char *folder);
void bench_remove(const char *folder);

/* load_child.c: run `fn` in a child; what it leaves in `result` comes back.  Messages of a child
 * that dies without a word are made up into error[256], the first field of every result. */
void bench_child(void (*fn)(const void *arg, void *result), const void *arg, void *result,
                 size_t bytes);
/* Make the primary context of a CUDA device, if `device` is one.  Seconds. */
double bench_context(const char *device);
double bench_now(void);

#endif
