/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: from what is wanted of a pack to what is read, copied and hashed.  Pure: no device, no
 * thread, no I/O, so that every decision about places is tested without a GPU.
 *
 * Two steps.  Targets are what somebody wants: tensors, or rows or columns of them, each with a
 * place in one arena or in memory of the caller's.  Windows are what the engines do: the file is
 * cut at multiples of the window size, every window is read into one slot of the ring, and its
 * copies and hash jobs are started once it and all windows before it have been read.
 */
#ifndef INGOT_PLAN_LOAD_H
#define INGOT_PLAN_LOAD_H

#include "loader/device.h"
#include "store/store.h"

#define IG_WINDOW     ((uint64_t)16 << 20) /* largest window; a multiple of IG_NODE */
#define IG_WINDOW_MIN ((uint64_t)1 << 20)
#define IG_READ       ((uint64_t)512 << 10) /* most that one thread reads at once */

/* A part of a row's bytes as a two-dimensional piece: `rows` runs of `width` bytes, the first at
 * byte `start` of the tensor and each `stride` behind the one before; they go to `to`, `pitch`
 * bytes apart.  A contiguous range is one run (rows 1).  Bytes, never elements: the target of a
 * packed dtype begins and ends on whole bytes or is refused when it is made. */
struct ig_target {
    uint32_t row;       /* of the pack's table */
    uint64_t start;     /* bytes from the tensor's first */
    uint64_t rows;      /* runs; at least 1 */
    uint64_t width;     /* bytes of a run; at least 1 */
    uint64_t stride;    /* bytes from run to run in the tensor; unused when rows is 1 */
    uint64_t to, pitch; /* arena offset, or device address when the plan is of caller memory */
    uint64_t first_row; /* what part this is, for whoever looks the tensor up: rows of the */
    uint64_t nrows;     /* first dimension, */
    uint64_t first_col; /* and elements of the rest of it; all of both for a whole tensor */
    uint64_t ncols;
    bool replicated; /* every rank has the same (norms, k and v when ranks outnumber heads) */
};
struct ig_targets {
    struct ig_target *list; /* any order; `to` and `pitch` are set by ig_targets_place */
    size_t n, cap;
    bool whole; /* all of the file up to the tail, where it lies: list is empty */
};
void ig_targets_free(struct ig_targets *t);
ingot_status ig_targets_add(struct ig_targets *t, const struct ig_target *one, ingot_error *e);
/* A whole tensor (rows 1, width bytes); nothing for one without bytes. */
ingot_status ig_targets_add_row(struct ig_targets *t, const struct ig_pack *p, uint32_t row,
                                ingot_error *e);

/* select.c: tensors by names or shell patterns (fnmatch, where '*' also matches '.' and '/').  A
 * name or pattern that matches nothing: INGOT_ERR_NOT_FOUND.  Rows that lie inside another chosen
 * one (members of a view, tied tensors) are kept once. */
ingot_status ig_select(const struct ig_pack *p, const char *const *patterns, size_t n,
                       struct ig_targets *out, ingot_error *e);

/* rank.c: what rank r of n holds, by the rules of ingot-load(1), "Ranks".  INGOT_ERR_USAGE for a
 * rank out of range, INGOT_ERR_UNSUPPORTED with the numbers when the model cannot be cut so. */
ingot_status ig_rank(const struct ig_pack *p, uint32_t rank, uint32_t ranks, struct ig_targets *out,
                     ingot_error *e);

/* Give every target a place in one arena, in the order of the file, each at the same offset
 * modulo 256 as in the file (16 for what is cut) so that aligned tensors stay aligned; *bytes is
 * the arena's size.  For `whole` nothing moves. */
void ig_targets_place(struct ig_targets *t, const struct ig_pack *p, uint64_t *bytes);

#endif
