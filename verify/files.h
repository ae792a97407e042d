/* SPDX-License-Identifier: Apache-2.0 */
/* files: the files of a model as export writes them, hashed from the pack's bytes. */
#ifndef INGOT_FILES_H
#define INGOT_FILES_H

#include "convert/rebuild.h"

struct ig_file {
    char *name;
    uint64_t bytes;        /* 0 before hashing where export makes a new file */
    uint32_t source, blob; /* which of the two it is; the other is IG_NONE */
    bool hashed;
    uint8_t sha256[IG_HASH];
    char *problem; /* why it cannot be made: the pack contradicts itself; else NULL */
};
struct ig_files {
    struct ig_file *list; /* ascending as ig_path_cmp has it */
    size_t n;
    uint64_t read; /* bytes hashed */
};
ingot_status ig_files_list(const struct ig_pack *p, struct ig_files *out, ingot_error *e);
/* SHA-256 of each that has none yet, never taken from the manifest: whoever made the pack wrote
 * that.  One thread a file, the largest first, for a file's SHA-256 is serial. */
ingot_status ig_files_hash(const struct ig_pack *p, struct ig_files *f, unsigned threads,
                           const struct ig_progress *progress, ingot_error *e);
struct ig_file *ig_files_find(const struct ig_files *f, const char *name);
/* .git and the like: model_signing never looks at them, whatever is signed. */
bool ig_never_signed(const char *name);
/* files_statement.c: hashed files as the in-toto statement that is signed; claims (or NULL;
 * borrowed) become predicate.ingot.  Caller frees *text. */
ingot_status ig_files_statement(const struct ig_files *f, const char *name, json_t *claims,
                                char **text, size_t *len, ingot_error *e);
/* What a signer says of the pack itself; NULL: no memory. */
json_t *ig_signing_claims(const struct ig_pack *p, const uint8_t digest[IG_HASH]);
void ig_files_free(struct ig_files *f);

#endif
