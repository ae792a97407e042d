/* SPDX-License-Identifier: Apache-2.0 */
/* lineage: what a model was made from, down to files. */
#ifndef INGOT_LINEAGE_H
#define INGOT_LINEAGE_H

#include "verify/verify.h"

/* *report (caller decrefs): {"chain": packs from the model down, "sources": the files that they
 * were made from, "missing": content digest of a model that the store does not have, or absent}.
 * What a link says is proven by that pack's digest, and no more than said: only verify --reproduce
 * does it again.  signature (or NULL; its bundle is not looked at): every bundle in the chain is
 * judged by it, and "signed" tells whether good ones name all of the sources. */
ingot_status ig_lineage(const struct ig_store *s, const char *model,
                        const struct ig_signature *signature, json_t **report, ingot_error *e);

#endif
