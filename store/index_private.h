/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.mdb: an LMDB file followed by one page that seals it.  LMDB trusts what it maps, so it
 * is only ever shown a private copy of bytes whose hash was right and whose pages were walked.
 *
 * Keys are digests, never names: 32 bytes, a pack's digest, its value a summary; 68 bytes, a
 * source file's SHA-256, the digest of a pack that holds it and a running number (a pack may
 * hold two equal files), its value size and name.
 */
#ifndef INGOT_INDEX_PRIVATE_H
#define INGOT_INDEX_PRIVATE_H

#include "store/folder.h"
#include "store/index.h"

#define INDEX_FILE    "index.mdb"
#define INDEX_MAGIC   "INGOTIDX"
#define INDEX_VERSION 1u
#define INDEX_MOST    ((uint64_t)1 << 30) /* bytes; what is larger is not believed */

/* The seal: magic, version, zero, length of the LMDB file, entries, XXH3-128 of the LMDB file
 * and of this page with the hash taken as zero; zeros. */
enum { SEAL_VERSION = 8, SEAL_LENGTH = 16, SEAL_ENTRIES = 24, SEAL_XXH = 32, SEAL_BYTES = 4096 };

/* A summary as stored. */
enum {
    SUM_SIZE = 0,
    SUM_SEC = 8,
    SUM_NSEC = 16,
    SUM_FLAGS = 20,
    SUM_RULES = 24,
    SUM_SOURCES = 28,
    SUM_TENSORS = 32,
    SUM_VIEWS = 40,
    SUM_SHADOWS = 48,
    SUM_BYTES = 56,
    SUM_CONTENT = 64,
    SUM_FROM = 96,
    SUM_KIND = 128,
    SUM_DTYPES = 152,
    SUM_END = SUM_DTYPES + 16 * IG_DTYPES
};
enum { SUM_HAS_FROM = 1, SUM_DAMAGED = 2 };
enum { ORIGIN_BYTES = 0, ORIGIN_NAME = 8, ORIGIN_KEY = 2 * IG_HASH + 4 };

/* Append; name is copied.  The array grows by doubling. */
ingot_status ig_index_add_origin(struct ig_index *index, size_t *cap, const uint8_t sha256[IG_HASH],
                                 uint32_t pack, uint64_t bytes, const char *name, size_t len,
                                 ingot_error *e);
void ig_index_sort_origins(struct ig_index *index);

/* index_build.c.  map_size 0: from the counted entries; it grows until everything fits. */
ingot_status ig_index_write(const struct ig_store *s, const struct ig_index *index, size_t map_size,
                            ingot_error *e);
/* index_read.c.  INGOT_ERR_NOT_FOUND without a file, INGOT_ERR_UNSUPPORTED for another version,
 * INGOT_ERR_PACK when it is damaged; damaged packs have an empty string as problem. */
ingot_status ig_index_read(const struct ig_store *s, struct ig_index *out, ingot_error *e);
/* index_walk.c.  Nothing in these bytes can make LMDB's cursor go astray, or INGOT_ERR_PACK. */
ingot_status ig_index_walk(const uint8_t *map, uint64_t length, const char *path, ingot_error *e);

#endif
