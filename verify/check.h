/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of one check share. */
#ifndef INGOT_CHECK_H
#define INGOT_CHECK_H

#include "verify/verify.h"

#include <pthread.h>

#define WINDOW ((size_t)4 << 20) /* a multiple of IG_SPAN, as is the offset of the weights */
/* To find the fastest way of hashing takes as long as hashing a small pack. */
#define LANES_LEAST ((uint64_t)8 << 20)
#define OVERLAPS    16u /* rows of more than a page that may cover one byte; real packs have two */

/* A row with bytes and its place in the file. */
struct span_row {
    uint64_t pos, end;
    uint64_t reach; /* largest end of this row and those before it */
    uint32_t row;
};

struct check {
    const struct ig_verify *v;
    struct ig_pack pack;
    bool open;
    struct span_row *rows; /* views and shadows too, of a tied pair one; ascending by pos */
    uint32_t nrows;
    struct ig_part *parts; /* of the tail */
    uint32_t nparts;
    /* files_pass.c: windows of this size that it has read and hashed (by index), and their leaves.
     */
    size_t window; /* 0: there was no such pass */
    uint8_t *seen;
    int leaves_fd;
    struct ig_files *files; /* whose hashes it found, or NULL */
    pthread_mutex_t lock;   /* guards everything below */
    json_t *bad;
    uint64_t bad_left_out;
    uint64_t bytes_hashed, tensors_hashed;
    uint64_t done;
    uint8_t digest[IG_HASH]; /* as computed */
    bool has_digest;
};

/* Add an entry; NULL, UINT64_MAX and 0 leave a field out.  Any thread. */
struct finding {
    const char *kind; /* "digest", "tensor", "weights", "page", "padding", "structure", ... */
    const char *tensor;
    size_t tensor_len;
    uint64_t offset, length;
    const uint8_t *expected, *found;
    size_t hash_len;
    const char *text;
};
void ig_check_bad(struct check *c, const struct finding *f);
bool ig_check_failed(struct check *c);
/* Name of the tensor at a file offset (the last that starts at or before it and covers it),
 * "" for none. */
struct ig_row ig_check_row_at(const struct check *c, uint64_t offset);

/* rows.c: fill rows and parts; overlaps and header blobs are findings. */
ingot_status ig_check_rows(struct check *c, ingot_error *e);
/* pass.c: read the file once; XXH3 of the weights, zeros, and for FULL all of SHA-256. */
ingot_status ig_check_pass(struct check *c, ingot_error *e);
/* files_pass.c: hash the files of the model in their own order, and with the same reading all that
 * ig_check_pass would need of the windows that lie inside one tensor; before that. */
ingot_status ig_check_files(struct check *c, struct ig_files *files, ingot_error *e);
void ig_check_files_end(struct check *c);
/* tail.c: regions that stay on disk, blobs, content digest. */
ingot_status ig_check_tail(struct check *c, ingot_error *e);
/* by_tree.c: compare every page with the sidecar tree when that is itself the expected one;
 * *used tells whether it could be. */
ingot_status ig_check_by_tree(struct check *c, int fd, const char *path,
                              const uint8_t digest[IG_HASH], bool *used, ingot_error *e);
/* sources.c: the original files, in DIR or as rebuilt. */
ingot_status ig_check_sources(struct check *c, json_t *report, ingot_error *e);

#endif
