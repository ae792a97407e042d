/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made model of a dozen windows, loaded on the host's device or the one that INGOT_TEST_DEVICE
 * names, and that device with hooks: what a GPU, a bus or a neighbour could do to the bytes is done
 * to them here.
 */
#ifndef INGOT_LOAD_FIXTURE_H
#define INGOT_LOAD_FIXTURE_H

#include "loader/load.h"
#include "loader/host_queue.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

struct bench {
    char top[64], store[80];
    char *path; /* of the pack */
    ingot_pack *pack;
};
int bench_open(void **state);
int bench_close(void **state);
/* Flip bits of a byte of the pack file; again: as it was. */
void bench_damage(const struct bench *b, uint64_t offset, uint8_t flip);
void bench_pack_reopen(struct bench *b);
void bench_no_tree(const struct bench *b);

/* Windows of 1 MiB. */
ingot_loader *bench_loader(ingot_engine engine);
struct noticed {
    char text[8][512];
    unsigned n;
};
ingot_loader *bench_loader_with(ingot_engine engine, struct noticed *n);
ingot_loader *bench_loader_of(ingot_engine engine, uint64_t memory, struct noticed *n);
/* Start and wait. */
ingot_status bench_load(ingot_loader *l, const struct bench *b, const ingot_load_options *o,
                        ingot_load **load, ingot_error *e);
/* Everything that the load holds is what ingot_pack_read reads; returns bytes compared. */
uint64_t bench_compare(const struct bench *b, const ingot_load *load);

/* Device memory: to the host; n equal bytes; bits of one; and some of the caller's own, which the
 * device's `release` frees. */
void bench_read(const struct ingot_loader *l, void *to, const void *from, uint64_t n);
uint8_t bench_byte(const struct ingot_loader *l, const void *at);
void bench_fill(const struct ingot_loader *l, void *at, int byte, uint64_t n);
void bench_flip(const struct ingot_loader *l, void *at, uint8_t bits);
uint8_t *bench_memory(ingot_loader *l, uint64_t n);

/* Hooks, called before the real operation; a status other than OK is returned instead of it. */
struct hooks {
    ingot_status (*pin)(struct hooks *h, void *memory, size_t bytes, bool read_only,
                        ingot_error *e);
    void (*copied)(struct hooks *h, const void *from, uint64_t bytes);
    void (*hashing)(struct hooks *h, unsigned mark, const struct ig_job *jobs, uint32_t n);
    ingot_status (*wait)(struct hooks *h, unsigned mark, ingot_error *e);
    ingot_status (*alloc)(struct hooks *h, uint64_t bytes, ingot_error *e);
    struct ig_dev *dev;
    const struct ig_dev_ops *real;
    struct ig_dev_ops ops;
    unsigned calls, allocs, releases, pins, unpins;
    uint8_t *arena; /* what was allocated first */
    void *scratch;  /* of hooks_slow */
    unsigned moves;
    struct ingot_loader *loader;
    uint64_t at; /* the tests' */
    void *ctx;
};
void hooks_put(struct hooks *h, ingot_loader *l);
/* From now on, copies are that much later. */
void hooks_slow(struct hooks *h, unsigned microseconds);
/* Nothing of the device is held any more, once the loader is closed. */
void hooks_balanced(const struct hooks *h);

#endif
