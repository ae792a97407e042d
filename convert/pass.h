/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: the one reading of the source.  Chunks of the input files go through three stages:
 * read and hash in file order, place in any order.  What a chunk's own bytes cannot settle
 * (pages and spans that two rows share) is left to finish.c, which reads those few back.
 *
 * Three files take the results: the pack, and two hidden ones, with the leaves of its pages and
 * with what else is hashed (the rows' own leaves, then the XXH3 table).
 */
#ifndef INGOT_PASS_H
#define INGOT_PASS_H

#include "base/direct.h"
#include "base/pipe.h"
#include "convert/plan.h"

/* A chunk keeps this much of what came before it, so that every cell (page, span, page of
 * a tensor) lies whole in the chunk in which it ends, also when a cast halves it. */
#define IG_CARRY (2u * IG_SPAN)

struct ig_job {
    struct ig_plan *plan;
    struct ig_temp pack, leaves, aux; /* open files */
    struct ig_direct out;             /* of pack, for what is large */
    const char *pack_path;            /* for messages */
    uint64_t xxh_at;                  /* XXH3 table, in aux behind the leaves */
    unsigned threads;
    struct ig_cast_counts counts;
    uint64_t *overflow;             /* by row; NULL unless something is cast */
    uint8_t parent_digest[IG_HASH]; /* of the pack that was read, when there is a parent */
};
ingot_status ig_pass_run(struct ig_job *job, ingot_error *e);

/* What each worker has of its own. */
struct ig_hand {
    uint8_t *leaves; /* room for the hashes of a chunk, its carry and two more */
    uint8_t *bounce; /* IG_BOUNCE bytes, aligned for direct writes */
    struct ig_lanes *lanes;
    const struct ig_item *item; /* what it is at */
};
#define IG_BOUNCE ((size_t)1 << 20)

/* emit.c: bytes [from, to) of a row in their final form; `bytes` points at byte `avail`, and
 * everything from there to `to` is valid. */
struct ig_piece {
    uint32_t row;
    uint64_t avail, from, to;
    const uint8_t *bytes;
    struct ig_hand *hand;
};
ingot_status ig_emit(struct ig_job *job, const struct ig_piece *p, ingot_error *e);
/* The leaves of a piece that is about to be cast. */
ingot_status ig_emit_before(struct ig_job *job, const struct ig_piece *p, ingot_error *e);

#endif
