/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: everything about the new pack that is known before a weight is read: its rows,
 * views, links, blobs, extents, and where each byte comes from.  Pure but for the tied
 * pair, which is compared on disk.
 */
#ifndef INGOT_PLAN_H
#define INGOT_PLAN_H

#include "convert/source.h"

/* Where a row's bytes come from; parallel to ig_plan.rows. */
struct ig_from {
    uint64_t offset; /* in its input */
    uint64_t bytes;  /* there; the row's own differ when it is cast */
    uint64_t pos;    /* of the row in the new pack; 0 for rows without bytes */
    uint64_t aux;    /* first of its own leaves in the auxiliary file, see layout_extents.c */
    uint64_t before; /* first leaf of its bytes before a cast, in the same file */
    uint32_t input;  /* index; IG_NONE for views */
    uint32_t dtype;  /* there */
    bool copies;     /* its bytes are to be written (not a view, not the second of a tied pair) */
    bool pads;       /* the zeros up to the end of its last page are its own */
};

struct ig_plan_blob {
    const char *name;
    uint32_t kind;
    uint64_t bytes;
    const void *data;               /* in memory (headers), or NULL */
    const struct ig_src_file *file; /* or a file */
    uint64_t pack_offset;           /* or a place in the parent pack */
    uint8_t sha256[IG_HASH];
};

struct ig_plan {
    const struct ig_convert *job;
    struct ig_src *src;           /* from a folder or file, or */
    const struct ig_pack *parent; /* from a pack */
    struct ig_row *rows;          /* in table order, views included */
    struct ig_from *from;
    uint32_t nrows, nviews;
    uint32_t *order; /* rows that copy, by position */
    uint32_t norder;
    struct ig_extent *extents;
    uint32_t nextents;
    struct ig_link *links;
    uint32_t nlinks;
    struct ig_scales scales;
    struct ig_plan_blob *blobs; /* in table order */
    uint32_t nblobs;
    struct ig_source *sources; /* sha256 filled while reading; borrowed names */
    uint32_t nsources;
    uint64_t weights_len, aux_leaves, read_bytes; /* bytes, hashes, bytes */
    uint32_t shadows, config_blob, hf_quant_blob;
    json_t *config, *hf_quant; /* borrowed from src, owned when there is a parent */
    void *strings;             /* private: view names and shapes */
};

ingot_status ig_plan_make(struct ig_plan *p, ingot_error *e);
void ig_plan_free(struct ig_plan *p);

/* Steps of ig_plan_make, in order. */
ingot_status ig_plan_collect(struct ig_plan *p, ingot_error *e); /* rows, blobs, sources */
ingot_status ig_plan_shadows(struct ig_plan *p, ingot_error *e); /* duplicates and the index */
ingot_status ig_plan_scales(struct ig_plan *p, ingot_error *e);  /* links between source rows */
ingot_status ig_plan_casts(struct ig_plan *p, ingot_error *e);  /* dtypes and sizes of the result */
ingot_status ig_plan_heads(struct ig_plan *p, ingot_error *e);  /* tied embedding, missing head */
ingot_status ig_plan_layout(struct ig_plan *p, ingot_error *e); /* groups, extents, views, links */

/* rows by name, shadow flag, source */
int ig_plan_row_cmp(const struct ig_row *a, const struct ig_row *b);
uint32_t ig_plan_find(const struct ig_plan *p, const char *name, size_t len); /* or IG_NONE */
/* Memory that lives as long as the plan. */
void *ig_plan_alloc(struct ig_plan *p, size_t n);

#endif
