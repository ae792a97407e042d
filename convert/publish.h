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

#endif
