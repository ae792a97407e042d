/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: what is in SRC, what of it is used, and why the rest is not.  Built once,
 * before any weight is read.
 */
#ifndef INGOT_SOURCE_H
#define INGOT_SOURCE_H

#include "convert/convert.h"

#include <sys/stat.h>

#define IG_BLOB_MOST ((uint64_t)64 << 20)

struct ig_src_file {
    char *name;     /* relative to SRC, '/' separated: what the pack calls it */
    char *path;     /* to open and for messages */
    struct stat st; /* as it was planned; see ig_src_file_open */
    bool has_oid;   /* a hub blob named by its SHA-256 */
    uint8_t oid[IG_HASH];
    struct ig_st header; /* weights only */
};

struct ig_src_list {
    struct ig_src_file *files;
    size_t n, cap;
};

struct ig_src {
    char *root;     /* the folder that is read; for a single file the file */
    char *label;    /* default store name */
    char *repo;     /* "org/name" from a hub cache, or NULL */
    char *revision; /* 40 hex, or NULL */
    struct ig_src_file *weights, *blobs, *sigs; /* each ascending by name */
    uint32_t nweights, nblobs, nsigs;
    json_t *not_held;          /* [{"name","size"}]: larger files and foreign weight formats */
    json_t *warnings;          /* [text] */
    json_t *config, *hf_quant; /* or NULL */
    uint32_t config_blob, hf_quant_blob; /* index among the blobs, or IG_NONE */
    json_t *index;                       /* the weight_map, or NULL */
    json_t *total_size;                  /* what the index says of the tensors' bytes, or NULL */
    struct stat skip;                    /* a folder that is never entered: the store itself */
};

/* Everything below fills part of an ig_src that ig_src_free releases, whatever happened. */
ingot_status ig_src_open(const struct ig_convert *c, const char *store_root, struct ig_src *s,
                         ingot_error *e);
void ig_src_free(struct ig_src *s);
/* Open a file that must still be the one that was planned: same inode, size and time. */
ingot_status ig_src_file_open(const struct ig_src_file *f, int *fd, ingot_error *e);
ingot_status ig_src_file_same(const struct ig_src_file *f, int fd, ingot_error *e);
/* A hub blob's name is the SHA-256 it must have; other files pass. */
ingot_status ig_src_check_oid(const struct ig_src_file *f, const uint8_t sha[IG_HASH],
                              ingot_error *e);
void ig_src_warn(struct ig_src *s, const char *format, ...) IG_PRINTF(2, 3);

/* One open file of many, read from its beginning to its end; fd -1 before the first. */
struct ig_src_reader {
    int fd;
    struct ig_sha sha;
    uint8_t sha256[IG_HASH]; /* of the file, once its end has been read */
};
/* The next n bytes, which start at `offset`; with the last, the file must be what was planned. */
ingot_status ig_src_reader_next(struct ig_src_reader *r, const struct ig_src_file *f, void *buf,
                                size_t n, uint64_t offset, ingot_error *e);
/* walk.c: the regular files below a folder, in no order, named with `prefix` before their paths;
 * .git, .cache and s->skip are not entered; what is no file becomes a warning. */
ingot_status ig_src_walk(struct ig_src *s, const char *folder, const char *prefix,
                         struct ig_src_list *out, ingot_error *e);
ingot_status ig_src_walk_file(const char *path, const char *name, struct ig_src_list *out,
                              ingot_error *e);
ingot_status ig_src_list_add(struct ig_src_list *l, const struct ig_src_file *f, ingot_error *e);
void ig_src_list_sort(struct ig_src_list *l); /* by name */
void ig_src_list_free(struct ig_src_list *l);
/* The text of a file of at most `most` bytes, to tell what it is; NULL for a larger one. */
ingot_status ig_src_peek(const struct ig_src_file *f, size_t most, char **text, size_t *n,
                         ingot_error *e);
ingot_status ig_src_refuse_unfinished(const struct ig_src_list *all, ingot_error *e);
/* scan.c: the folder's files, sorted into weights, blobs, signatures and not held. */
ingot_status ig_src_scan(struct ig_src *s, ingot_error *e);
/* hub.c: from a models-- root to its snapshot; label, repo and revision. */
ingot_status ig_src_locate(struct ig_src *s, const char *path, ingot_error *e);
bool ig_leads_nowhere(int why); /* errno of a stat: the link is bad, not the disk */
/* index.c: read the index, check its paths; after the headers are read, hold it against them. */
ingot_status ig_src_read_index(struct ig_src *s, const char *path, ingot_error *e);
ingot_status ig_src_check_shards(struct ig_src *s, ingot_error *e); /* every shard is here */
/* config.c */
ingot_status ig_src_read_config(struct ig_src *s, const struct ig_convert *c, ingot_error *e);
/* A config that a pack holds (caller decrefs), and its blob; IG_NONE, *out untouched: none. */
ingot_status ig_config_of_pack(const struct ig_pack *p, const char *name, json_t **out,
                               uint32_t *blob, ingot_error *e);
/* What the config says of the head: 1 tied, 0 not, -1 unknown (class default of an unknown class).
 */
int ig_config_tied(const json_t *config);
/* A class in the table whose default is known, such as "Phi3ForCausalLM"; NULL for others. */
const char *ig_config_class(const json_t *config);

#endif
