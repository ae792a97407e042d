/* SPDX-License-Identifier: Apache-2.0 */
/* store: packs (pack.h) and the folder that keeps them under names (ingot-store(5)). */
#ifndef INGOT_STORE_H
#define INGOT_STORE_H

#include "store/pack.h"

/* store.c: the folder.  Paths in it: ig_store_path(s, "packs", NULL) and so on; caller frees. */
struct ig_store {
    char *root;
};
/* root NULL: $INGOT_STORE, else $XDG_DATA_HOME/ingot, else ~/.local/share/ingot.
 * create: make the folders; without it an absent store is an empty one. */
ingot_status ig_store_open(const char *root, bool create, struct ig_store *s, ingot_error *e);
void ig_store_close(struct ig_store *s);
char *ig_store_path(const struct ig_store *s, const char *folder, const char *file);

/* What a MODEL argument means (ingot-store(5), "Models"). */
struct ig_ref {
    char *path;      /* the pack file */
    char *name;      /* the store name, or NULL */
    bool has_digest; /* an expected digest is known: from name, digest or basename */
    uint8_t digest[IG_HASH];
};
ingot_status ig_store_resolve(const struct ig_store *s, const char *model, struct ig_ref *out,
                              ingot_error *e);
void ig_ref_free(struct ig_ref *r);

ingot_status ig_name_check(const char *name, ingot_error *e); /* names.c: syntax only */
ingot_status ig_name_read(const struct ig_store *s, const char *name, uint8_t digest[IG_HASH],
                          ingot_error *e);
/* Point a name at a pack.  Another digest under it: INGOT_ERR_EXISTS unless `replace`. */
ingot_status ig_name_write(const struct ig_store *s, const char *name,
                           const uint8_t digest[IG_HASH], bool replace, ingot_error *e);

/* publish.c: from an unnamed or hidden file in packs/ to packs/<digest>.ingot. */
struct ig_temp {
    int fd;
    char *path; /* NULL while the file has no name (O_TMPFILE) */
    char *dir;
};
ingot_status ig_temp_open(const struct ig_store *s, struct ig_temp *t, ingot_error *e);
void ig_temp_discard(struct ig_temp *t);
/* fsync, mode 0444, link as packs/<file> (an existing one is replaced atomically), fsync of
 * the folder; closes t. */
ingot_status ig_temp_publish(const struct ig_store *s, struct ig_temp *t, const char *file,
                             ingot_error *e);
/* The store's lock for publish + name (shared) and rm, gc (exclusive); fd or -1. */
ingot_status ig_store_lock(const struct ig_store *s, bool exclusive, int *fd, ingot_error *e);
/* Remove temporaries that no living process holds. */
void ig_store_reclaim(const struct ig_store *s);

/* store.c.  Is this the name of a pack in packs/, or of what lies beside it (tree, origin,
 * signatures)?  Then *digest is set.  Or of a temporary? */
enum ig_beside { IG_BESIDE_NONE, IG_BESIDE_PACK, IG_BESIDE_OTHER, IG_BESIDE_TEMP };
enum ig_beside ig_store_beside(const char *name, uint8_t digest[IG_HASH]);
/* The files packs/<64 hex>.ingot, ascending by digest; and the path of one.  Caller frees both. */
struct ig_store_file {
    uint8_t digest[IG_HASH];
    uint64_t size;
    int64_t sec; /* modification time */
    uint32_t nsec;
};
ingot_status ig_store_packs(const struct ig_store *s, struct ig_store_file **out, size_t *n,
                            ingot_error *e);
char *ig_store_pack_path(const struct ig_store *s, const uint8_t digest[IG_HASH]);

/* names_walk.c: every name of the store in natural order. */
struct ig_name {
    char *name;
    uint8_t digest[IG_HASH];
    bool has_digest; /* false: the file is too malformed to tell */
    char *problem;   /* NULL, or why the name must not be believed; then status says so too */
    ingot_status status;
};
ingot_status ig_names_list(const struct ig_store *s, struct ig_name **out, size_t *n,
                           ingot_error *e);
void ig_names_free(struct ig_name *names, size_t n);
/* Remove a name and the folders that it leaves empty; the caller holds the exclusive lock. */
ingot_status ig_name_remove(const struct ig_store *s, const char *name, ingot_error *e);

/* sigs.c: signature bundles beside a pack.  The path of one, or with name NULL of their folder;
 * caller frees.  Names in natural order; freed by ig_sigs_free. */
char *ig_sigs_path(const char *pack, const char *name);
ingot_status ig_sigs_list(const char *pack, char ***names, size_t *n, ingot_error *e);
void ig_sigs_free(char **names, size_t n);
/* Add one, or take the place of that name. */
ingot_status ig_sigs_add(const char *pack, const char *name, const char *text, size_t n,
                         ingot_error *e);

#endif
