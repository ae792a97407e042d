/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: the one reading of the source.  Chunks of the input files go through three stages:
 * read and hash in file order, place in any order.  What a chunk's own bytes cannot settle
 * (pages and spans that two rows share) is left to finish.c, which reads those few back.
 *
 * Four files take the results: the pack, and two hidden ones with leaf hashes; the XXH3
 * table is written at its place in the pack's tail.
 */
#ifndef INGOT_PASS_H
#define INGOT_PASS_H

#include "convert/plan.h"

/* A chunk keeps this much of what came before it, so that every cell (page, span, page of
 * a tensor) lies whole in the chunk in which it ends, also when a cast halves it. */
#define IG_CARRY (2u * IG_SPAN)

struct ig_job {
    struct ig_plan *plan;
    struct ig_temp pack, leaves, aux; /* open files */
    const char *pack_path;            /* for messages */
    uint64_t xxh_at;                  /* XXH3 table in the pack */
    unsigned threads;
    struct ig_cast_counts counts;
    uint64_t *overflow;             /* by row; NULL unless something is cast */
    uint8_t parent_digest[IG_HASH]; /* of the pack that was read, when there is a parent */
};
ingot_status ig_pass_run(struct ig_job *job, ingot_error *e);

/* emit.c: bytes [from, to) of a row in their final form; `bytes` points at byte `avail`, and
 * everything from there to `to` is valid.  leaf_buf has room for (to - from) / 4096 + 2 hashes. */
struct ig_piece {
    uint32_t row;
    uint64_t avail, from, to;
    const uint8_t *bytes;
    uint8_t *leaf_buf;
};
ingot_status ig_emit(struct ig_job *job, const struct ig_piece *p, ingot_error *e);
/* The leaves of a piece that is about to be cast. */
ingot_status ig_emit_before(struct ig_job *job, const struct ig_piece *p, ingot_error *e);

#endif
