/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `ingot show`, which lives here because it asks the scale rules. */
#ifndef INGOT_SHOW_H
#define INGOT_SHOW_H

#include "store/cmd_common.h"

struct ig_show {
    struct ig_pack pack;
    char *name; /* or NULL */
    bool has_digest;
    uint8_t digest[IG_HASH];
    json_t *sigs;     /* names of the bundles beside the pack, or NULL */
    json_t *origin;   /* the claims beside the pack, or NULL */
    json_t *findings; /* with --scales */
    bool tensors, scales, config, nul;
};

json_t *ig_show_origin(const char *pack_path);
json_t *ig_show_sigs(const char *pack_path);
/* show_text.c: tables for people. */
void ig_show_summary(const struct ig_show *s);
void ig_show_tensors(const struct ig_show *s);
void ig_show_scales(const struct ig_show *s);
/* show_json.c: one object; tensors are streamed, for a pack may have a million. */
void ig_show_json(const struct ig_show *s);
/* show_findings.c: what the scale rules have to say about this pack: [text]. */
ingot_status ig_show_findings(const struct ig_pack *p, json_t **list, ingot_error *e);
/* Words for the numbers of a link. */
const char *ig_link_role_name(uint32_t role);
const char *ig_link_op_name(uint32_t op);
const char *ig_link_gran_name(uint32_t gran);

#endif
