/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which packs a store keeps and which gc frees.  A pack is kept when a name points to it, when a
 * kept pack was derived from it, or while it is too young to have been forgotten.
 */
#ifndef INGOT_GC_H
#define INGOT_GC_H

#include "store/index.h"

#define IG_GC_YOUNG_S 3600

enum ig_gc_why { IG_GC_FREE, IG_GC_NAMED, IG_GC_PARENT, IG_GC_YOUNG };
extern const char *const ig_gc_words[]; /* of enum ig_gc_why: "free", "named", ... */

struct ig_gc_pack {
    enum ig_gc_why why;
    uint32_t by;    /* PARENT: the pack that was derived from it; NAMED: index among the names */
    uint64_t bytes; /* of the pack and what lies beside it */
};

/* Something in packs/ that belongs to a digest. */
struct ig_gc_file {
    char *name;
    uint64_t bytes;
    uint32_t pack; /* IG_NONE: beside a pack that is not there */
    bool is_pack, doomed;
};

struct ig_gc {
    struct ig_index index;
    struct ig_name *names;
    size_t nnames;
    struct ig_gc_pack *packs; /* one for each of index.packs */
    struct ig_gc_file *files;
    size_t nfiles;
};

/* Decide, changing nothing (but index.mdb, with refresh).  Fails when a name file cannot be read
 * or a named pack cannot tell what it was derived from: then nothing can safely be freed. */
ingot_status ig_gc_plan(const struct ig_store *s, bool all_ages, bool refresh, struct ig_gc *out,
                        ingot_error *e);
/* Do it; the caller holds the exclusive lock. */
ingot_status ig_gc_sweep(const struct ig_store *s, const struct ig_gc *g, ingot_error *e);
void ig_gc_free(struct ig_gc *g);

#endif
