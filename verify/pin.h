/* SPDX-License-Identifier: Apache-2.0 */
/* pin: input sets, which are packs of files without tensors; and what stands in a pinned file. */
#ifndef INGOT_PIN_H
#define INGOT_PIN_H

#include "verify/verify.h"

struct ig_pin {
    const char *const *paths; /* files and folders */
    size_t npaths;
    const char *name;        /* NULL: that of the only path */
    const char *attribution; /* a text file, kept in the manifest; or NULL */
    const char *license;     /* SPDX expression, or NULL */
    bool replace;
    struct ig_progress progress;
};
/* One folder gives its files under their paths in it; several paths, each its own under its last
 * component.  *report (caller decrefs): "name", "digest", "pack", "bytes", "files", "warnings". */
ingot_status ig_pin(const struct ig_store *s, const struct ig_pin *job, json_t **report,
                    ingot_error *e);

/* pin_check.c: a folder, as ig_pin would take it, against a set.  *report: "ok", "files",
 * "bytes_hashed", "missing", "extra": [name], "changed": [{"name","expected","found"}]. */
ingot_status ig_pin_check(const struct ig_store *s, const char *folder, const char *name,
                          unsigned threads, json_t **report, ingot_error *e);

/* pin_input.c: an input of a command, "pin:NAME/path" or a file. */
struct ig_input {
    char *what; /* as a record names it: the argument, printable */
    char *data; /* NUL-terminated; NULL when it was only hashed */
    uint64_t bytes;
    bool pinned;
    uint8_t sha256[IG_HASH], set[IG_HASH]; /* of the bytes; digest of the set */
};
/* What is in `data` is what was hashed.  A pinned file must have the hash that its set's digest
 * vouches for: INGOT_ERR_CHECK.  More than `most` bytes: INGOT_ERR_INPUT. */
ingot_status ig_input_read(const struct ig_store *s, const char *arg, size_t most,
                           struct ig_input *out, ingot_error *e);
/* The same without keeping the bytes, of which there may be any number. */
ingot_status ig_input_hash(const struct ig_store *s, const char *arg, struct ig_input *out,
                           ingot_error *e);
void ig_input_free(struct ig_input *in);

/* The files that paths stand for, ascending by name; the caller frees with ig_src_list_free. */
struct ig_src;
struct ig_src_list;
ingot_status ig_pin_list(const char *const *paths, size_t n, struct ig_src *src,
                         struct ig_src_list *out, ingot_error *e);

#endif
