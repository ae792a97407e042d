/* SPDX-License-Identifier: Apache-2.0 */
/* derivation: how the manifest says that a pack was made, and doing it again. */
#ifndef INGOT_DERIVATION_H
#define INGOT_DERIVATION_H

#include "store/index.h"
#include "verify/check.h"

struct ig_derivation {
    bool derived;          /* false: the files as they were ("identity") */
    bool inputs;           /* pinned files */
    int dtype;             /* "dtype": what tensors were cast to; else -1 */
    bool saturate;         /* the same: values out of range became the largest */
    uint8_t from[IG_HASH]; /* content digest of what it was made from */
    bool from_files;       /* which were files as they were, not a derived model */
    char words[64];        /* "dtype BF16" */
};
/* INGOT_ERR_UNSUPPORTED for a transform that this version cannot make. */
ingot_status ig_derivation_read(const struct ig_pack *p, struct ig_derivation *out, ingot_error *e);
/* Packs of the index that have a content digest and were made from the very source files of
 * `child`: the first from *at on, which moves past it; NULL when there is none. */
const struct ig_summary *ig_derivation_parent(const struct ig_store *s,
                                              const struct ig_index *index,
                                              const struct ig_pack *child,
                                              const uint8_t content[IG_HASH], size_t *at);
/* Make the pack again, from the model that it was made from or from the folder of originals, keep
 * nothing of it, and compare digests.  A difference is a finding of the check. */
ingot_status ig_check_reproduce(struct check *c, json_t *report, ingot_error *e);

#endif
