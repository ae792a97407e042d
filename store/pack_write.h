/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a pack's tail and sealing the file.  The caller has written the weights and the
 * XXH3 table, and knows every leaf hash of the pages from 1 to the tail.
 */
#ifndef INGOT_PACK_WRITE_H
#define INGOT_PACK_WRITE_H

#include "store/store.h"

/* Where a blob's bytes are to be read from when the tail is written. */
typedef ingot_status ig_blob_read(void *ctx, uint32_t blob, void *buf, size_t n, uint64_t offset,
                                  ingot_error *e);

struct ig_tail {
    const struct ig_row *rows;
    const struct ig_extent *extents;
    const struct ig_link *links;
    const char *const *blob_names;
    const uint32_t *blob_kinds;
    const uint64_t *blob_bytes;
    uint32_t nrows, nextents, nlinks, nblobs;
    uint64_t weights_len;
    ig_blob_read *read_blob;
    void *ctx;
    int xxh_fd;      /* a file that holds the XXH3 table of the weights, */
    uint64_t xxh_at; /* from here on */
};

/* Size of the pack file, with a manifest of this many bytes. */
ingot_status ig_tail_size(const struct ig_tail *t, size_t manifest_len, uint64_t *size,
                          ingot_error *e);

/* Write everything but the weights; compute the digest.  leaves_fd holds
 * the leaf hash of page i at 32 i for the pages of the weights; those of all other pages are
 * added to it.  tree_fd (an empty file) becomes the sidecar tree. */
ingot_status ig_pack_seal(int fd, const char *path, int leaves_fd, int tree_fd,
                          const struct ig_tail *t, const char *manifest, size_t manifest_len,
                          uint8_t digest[IG_HASH], ingot_error *e);

/* Content digest of rows in table order, ingot-pack(5). */
void ig_content_digest(const struct ig_row *rows, uint32_t n, uint8_t out[IG_HASH]);
/* The same fed row by row. */
void ig_content_begin(struct ig_sha *h, uint64_t count);
void ig_content_row(struct ig_sha *h, const struct ig_row *row);

#endif
