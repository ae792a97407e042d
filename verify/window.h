/* SPDX-License-Identifier: Apache-2.0 */
/* One window of the file, between hashing and folding. */
#ifndef INGOT_WINDOW_H
#define INGOT_WINDOW_H

#include "verify/check.h"

/* Leaves of one row that end in the window: first those it shares with the file, then its own. */
struct row_leaves {
    uint32_t index; /* among check.rows */
    uint32_t shared, nshared;
    uint32_t own, nown;
};
struct window {
    uint64_t start;
    size_t n, back; /* bytes; and how many before data are valid */
    uint8_t *data;
    uint8_t leaves[WINDOW / IG_PAGE * IG_HASH];
    struct row_leaves *rows; /* rows of more than a page that lie in the window */
    size_t nrows, rows_cap;
    struct ig_lanes *lanes; /* of the worker that hashes it */
    uint8_t *own;
    size_t nown, own_cap; /* hashes */
};

/* Does every row that touches these bytes cover all of them, from a page of its own on?  Then the
 * leaves of the window are all that its rows need. */
bool ig_window_inside(const struct check *c, uint64_t start, uint64_t n);
/* A window that ig_files_pass has hashed: from its leaves, without reading it again. */
ingot_status ig_window_recall(struct check *c, struct window *w, ingot_error *e);
ingot_status ig_window_hash(struct check *c, struct window *w, ingot_error *e);
void ig_window_free(struct window *w);
/* Compare a row's computed digest with its record. */
void ig_window_judge(struct check *c, const struct span_row *s, const uint8_t digest[IG_HASH]);

#endif
