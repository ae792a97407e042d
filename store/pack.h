/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pack as a file (ingot-pack(5)): what is in one, decoded, and proof that it is what its digest
 * says.  A pack is only ever read through struct ig_pack.
 */
#ifndef INGOT_PACK_H
#define INGOT_PACK_H

#include "base/base.h"

#define IG_NONE UINT32_MAX

/* Flags of a tensor row, as stored. */
enum { IG_ROW_VIEW = 1, IG_ROW_TIED = 2, IG_ROW_SHADOW = 4 };

/* One tensor, decoded.  Pointers lead into the pack and live as long as it does. */
struct ig_row {
    const char *name;
    uint32_t name_len;
    uint32_t rank;
    const uint64_t *shape;
    uint32_t dtype; /* enum of base.h */
    uint32_t flags;
    uint32_t extent; /* IG_NONE: no bytes */
    uint32_t source; /* index among the manifest's sources; IG_NONE for views */
    uint64_t offset; /* inside the extent */
    uint64_t bytes;
    uint32_t link, nlinks; /* range in the link table */
    uint8_t digest[IG_HASH];
};

struct ig_extent {
    uint64_t offset, bytes; /* position in `where`; length without padding */
    uint32_t where;         /* 0: this file */
    uint32_t flags;         /* IG_EXTENT_SMALL: tensors below a page, packed at 256 */
};
enum { IG_EXTENT_SMALL = 1 };

/* Values as stored in the link table (ingot-pack(5), "Links"). */
/* clang-format off */
enum ig_link_role { IG_ROLE_WEIGHT = 1, IG_ROLE_INPUT, IG_ROLE_KV_K, IG_ROLE_KV_V, IG_ROLE_Q,
                    IG_ROLE_PROB, IG_ROLE_ZERO_POINT, IG_ROLE_BIAS, IG_ROLE_GLOBAL, IG_ROLE_OUTPUT };
enum ig_link_op { IG_OP_UNKNOWN, IG_OP_MULTIPLY, IG_OP_DIVIDE };
enum ig_link_gran { IG_GRAN_TENSOR = 1, IG_GRAN_ROW, IG_GRAN_BLOCK, IG_GRAN_GROUP, IG_GRAN_HEAD,
                    IG_GRAN_UNKNOWN };
/* clang-format on */
enum ig_link_enc { IG_ENC_VALUE, IG_ENC_E8M0 };
enum ig_link_pack { IG_PACK_NONE, IG_PACK_LOW_FIRST }; /* F4 pairs in a byte: low nibble first */

struct ig_link {
    uint32_t subject;   /* row, or IG_NONE when the subject is a module */
    uint32_t object;    /* the row that holds the scale */
    const char *module; /* for subject IG_NONE: "model.layers.0.self_attn" */
    uint32_t module_len;
    uint32_t role, stage, op, gran;
    uint64_t block[2]; /* rows, columns of logical elements one scale covers; 0 = all */
    uint32_t logical;  /* dtype of the logical elements, e.g. IG_F4 inside U8 */
    uint32_t packing, encoding;
    uint32_t blob;       /* where declared: blob index, IG_NONE when nowhere */
    const char *pointer; /* JSON pointer inside that blob */
    uint32_t pointer_len;
};

/* The order of links in a pack, for qsort: by subject (modules last, by name), role, stage, object.
 */
int ig_link_cmp(const void *x, const void *y);

struct ig_blob {
    const char *name; /* relative path, '/' separated, UTF-8 */
    uint32_t name_len;
    uint32_t kind;
    uint64_t offset; /* in the pack file */
    uint64_t bytes;
    uint8_t sha256[IG_HASH];
};
enum { IG_BLOB_FILE = 0, IG_BLOB_HEADER = 1 }; /* HEADER: first 8+N bytes of a safetensors source */

struct ig_source {
    const char *name;
    uint64_t bytes;
    uint8_t sha256[IG_HASH];
};

/* An open pack.  Superblock, tables, pools and manifest are in private memory, checked against
 * their XXH3 and every rule of ingot-pack(5); weights and blob data are not read. */
struct ig_pack {
    int fd;
    char *path;
    uint64_t size, weights, weights_len, tail, tail_len; /* bytes */
    uint64_t xxh, nxxh, frontier, nfrontier; /* file offset and records of two regions */
    uint32_t nrows, nextents, nlinks, nblobs, nsources;
    struct ig_source *sources;
    json_t *manifest;
    uint32_t rules;
    uint8_t content[IG_HASH]; /* as the manifest claims it */
    struct ig_pack_tables *t; /* private */
};
ingot_status ig_pack_open(const char *path, struct ig_pack *p, ingot_error *e);
/* The same of an open file; takes fd, also on failure.  Closing a zeroed or closed one is fine. */
ingot_status ig_pack_open_fd(int fd, const char *path, struct ig_pack *p, ingot_error *e);
void ig_pack_close(struct ig_pack *p);
/* Decoders; index must be below the count. */
void ig_pack_row(const struct ig_pack *p, uint32_t i, struct ig_row *out);
void ig_pack_extent(const struct ig_pack *p, uint32_t i, struct ig_extent *out);
void ig_pack_link(const struct ig_pack *p, uint32_t i, struct ig_link *out);
void ig_pack_blob(const struct ig_pack *p, uint32_t i, struct ig_blob *out);
/* Row of a name (shadows are never found), or IG_NONE.  Binary search. */
uint32_t ig_pack_find(const struct ig_pack *p, const char *name, size_t len);
/* Row of a name that came from one source file, shadows included, or IG_NONE. */
uint32_t ig_pack_find_in(const struct ig_pack *p, const char *name, size_t len, uint32_t source);
/* File offset of a row's first byte; meaningless for rows without bytes. */
uint64_t ig_pack_pos(const struct ig_pack *p, const struct ig_row *row);
uint32_t ig_pack_find_blob(const struct ig_pack *p, const char *name, uint32_t kind);
/* A blob whole, NUL-terminated, SHA-256 checked.  Caller frees. */
ingot_status ig_pack_read_blob(const struct ig_pack *p, uint32_t i, char **data, size_t *n,
                               ingot_error *e);
/* The same in pieces, for blobs of any size; the sink has had all of it when it turns out wrong. */
ingot_status ig_pack_copy_blob(const struct ig_pack *p, uint32_t i, ig_sink *sink, void *ctx,
                               ingot_error *e);
/* And with the hash found, to be judged by the caller; sink may be NULL. */
ingot_status ig_pack_hash_blob(const struct ig_pack *p, uint32_t i, ig_sink *sink, void *ctx,
                               uint8_t sha256[IG_HASH], ingot_error *e);
bool ig_pack_is_derived(const struct ig_pack *p);
bool ig_pack_is_inputs(const struct ig_pack *p); /* pinned files, no tensors */
/* Prove what was parsed, and with it every row's digest, against the pack's digest, without
 * reading the weights.  INGOT_ERR_CHECK when it is not that pack's tail. */
ingot_status ig_pack_prove(const struct ig_pack *p, const uint8_t digest[IG_HASH], ingot_error *e);
/* The digest that frontier and tail give: the pack's own, if its weights are what it says. */
ingot_status ig_pack_tail_digest(const struct ig_pack *p, uint8_t digest[IG_HASH], ingot_error *e);
/* Is this the state of the tree just before the tail? */
bool ig_pack_frontier_is(const struct ig_pack *p, const struct ig_tree *t);
/* The parts of the tail that hold something, for a check of all bytes; everything between them
 * must be zero.  At most IG_PARTS of them; returns how many.  Not sorted. */
#define IG_PARTS 1100
struct ig_part {
    uint64_t offset, bytes;
    const uint8_t *copy; /* the private copy that was parsed, or NULL */
    const uint8_t *xxh;  /* expected XXH3-128, or NULL */
};
uint32_t ig_pack_tail_parts(const struct ig_pack *p, struct ig_part *out, uint32_t cap);

#endif
