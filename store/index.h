/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: a summary of every pack of a store, and which pack holds which source file.
 * It is derived: whether it comes from index.mdb or from the packs, the answers are the same.
 */
#ifndef INGOT_INDEX_H
#define INGOT_INDEX_H

#include "store/store.h"

struct ig_summary {
    uint8_t digest[IG_HASH];
    uint64_t size; /* of the pack file */
    int64_t sec;   /* its modification time */
    uint32_t nsec;
    uint32_t rules;
    uint32_t nsources;
    bool has_from;
    uint64_t tensors, views, shadows; /* rows; tensors are neither views nor shadows */
    uint64_t bytes;                   /* of the tensors */
    uint64_t dtype_tensors[IG_DTYPES], dtype_bytes[IG_DTYPES];
    uint8_t content[IG_HASH];
    uint8_t from[IG_HASH]; /* content digest of what it was derived from */
    char kind[24];         /* of the derivation: "identity", "dtype" */
    char *problem;         /* NULL, or why the pack cannot be read; then only digest, size and
                              time mean something */
};

struct ig_origin {
    uint8_t sha256[IG_HASH];
    uint32_t pack; /* among the summaries */
    uint64_t bytes;
    char *name;
};

struct ig_index {
    struct ig_summary *packs; /* ascending by digest */
    size_t npacks;
    struct ig_origin *origins; /* ascending by SHA-256, then pack, then name */
    size_t norigins;
    size_t opened; /* packs that had to be read, because index.mdb did not know them */
    char *notice;  /* NULL, or one line about index.mdb that a person should see */
};

/* Summaries of what packs/ holds now.  refresh: write index.mdb anew when it is not what
 * packs/ holds; that this is not possible is a notice, never a failure. */
ingot_status ig_index_load(const struct ig_store *s, bool refresh, struct ig_index *out,
                           ingot_error *e);
/* Read every pack, believe no index, and write a new one or fail. */
ingot_status ig_index_rebuild(const struct ig_store *s, struct ig_index *out, ingot_error *e);
void ig_index_free(struct ig_index *index);
/* Source files whose SHA-256 begins with these hex digits, consecutive in origins. */
const struct ig_origin *ig_index_find_source(const struct ig_index *index, const char *hex,
                                             size_t len, size_t *count);
const struct ig_summary *ig_index_find(const struct ig_index *index,
                                       const uint8_t digest[IG_HASH]); /* or NULL */
/* Its source files can be rebuilt from it; a derived pack only knows their names and hashes. */
bool ig_summary_holds_sources(const struct ig_summary *s);

#endif
