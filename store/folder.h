/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that keep the store's folder share; nobody else includes it. */
#ifndef INGOT_FOLDER_H
#define INGOT_FOLDER_H

#include "store/store.h"

#define IG_TEMP_PREFIX   ".tmp-" /* of temporaries that have a name */
#define IG_DIGEST_PREFIX "fsverity-sha256:"
#define IG_SOURCE_PREFIX "sha256:"
#define IG_NAME_MOST     255u /* bytes of a name */
#define IG_NAME_DEPTH    4u   /* components of a name */

/* publish.c.  ig_temp_open_in with named = true goes the way of file systems that have no
 * files without a name. */
ingot_status ig_temp_open_in(const char *dir, bool named, struct ig_temp *t, ingot_error *e);
/* fsync, mode, appear as path, fsync of path's folder; t is closed, and gone after a failure.
 * INGOT_ERR_EXISTS when path exists and may not be replaced. */
ingot_status ig_temp_place(struct ig_temp *t, const char *path, mode_t mode, bool replace,
                           ingot_error *e);
/* lock.c.  Held while a name is checked against the others and written: of two that exclude each
 * other, one sees the other.  The caller holds the store's lock; close fd to end it. */
ingot_status ig_names_lock(const struct ig_store *s, int *fd, ingot_error *e);
/* Reclaim, or with dry only count, the temporaries that nobody holds. */
void ig_store_reclaim_count(const struct ig_store *s, bool dry, uint64_t *files, uint64_t *bytes);

/* names.c */
bool ig_name_component(const char *s, size_t len); /* [A-Za-z0-9][A-Za-z0-9._-]* */
/* What a name file says.  *has_digest tells whether digest was set, also on failure. */
ingot_status ig_name_parse(const char *path, const char *name, uint8_t digest[IG_HASH],
                           bool *has_digest, ingot_error *e);

/* names_walk.c */
/* A new name may not equal another but for case, nor lie inside or above one. */
ingot_status ig_names_clash(const struct ig_store *s, const char *name, ingot_error *e);
char *ig_names_nearest(const struct ig_store *s, const char *wanted); /* or NULL; caller frees */

/* resolve.c.  8 to 64 hex digits, and nothing else, in lower case into hex. */
bool ig_take_hex(const char *digits, char hex[2 * IG_HASH + 1]);

#endif
