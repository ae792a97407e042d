/* SPDX-License-Identifier: Apache-2.0 */
/* From finished files to a named model, and the report of it. */
#ifndef INGOT_CONVERT_PUBLISH_H
#define INGOT_CONVERT_PUBLISH_H

#include "convert/pass.h"

struct ig_made {
    char *name;
    struct ig_temp tree;
    json_t *manifest;
    char *text; /* of the manifest */
    size_t text_len;
    uint64_t size; /* of the pack */
    uint8_t digest[IG_HASH], content[IG_HASH];
};
/* The name that -n or the label gives, checked; caller frees. */
ingot_status ig_publish_name(const struct ig_convert *c, const char *label, char **name,
                             ingot_error *e);
/* Pack, tree, origin note and signatures into packs/, then the name. */
ingot_status ig_publish(const struct ig_store *s, struct ig_job *job, struct ig_made *made,
                        json_t **report, ingot_error *e);

/* publish_pack.c: what every pack needs, whoever makes it.  The caller holds the store's lock. */
/* A name that means another pack is not taken over unasked; told before anything appears. */
ingot_status ig_publish_check_name(const struct ig_store *s, const char *name,
                                   const uint8_t digest[IG_HASH], bool replace, ingot_error *e);
/* What the pack does not commit to: shown as "claimed", never relied on.  NULL: no memory. */
json_t *ig_publish_origin(const char *source);
/* Pack, tree and origin note under their digest. */
ingot_status ig_publish_files(const struct ig_store *s, struct ig_temp *pack, struct ig_temp *tree,
                              const uint8_t digest[IG_HASH], const json_t *origin, ingot_error *e);
/* A small file beside a pack. */
ingot_status ig_publish_text(const struct ig_store *s, const char *file, const char *text, size_t n,
                             ingot_error *e);

#endif
