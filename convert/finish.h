/* SPDX-License-Identifier: Apache-2.0 */
/* After the pass: shared cells, row digests, the manifest. */
#ifndef INGOT_FINISH_H
#define INGOT_FINISH_H

#include "convert/pass.h"

/* Pages and spans that no row owns alone, read back from the new file. */
ingot_status ig_finish_mixed(struct ig_job *job, ingot_error *e);
/* Digest of every row and view, from the leaf files. */
ingot_status ig_finish_digests(struct ig_job *job, ingot_error *e);
/* What the values of the scales say; adds to the source's warnings. */
ingot_status ig_finish_scales(struct ig_job *job, ingot_error *e);
/* Content digest of the tensors before a cast from files. */
ingot_status ig_finish_before(struct ig_job *job, uint8_t content[IG_HASH], ingot_error *e);
/* The manifest as a JSON object (caller decrefs); `from` is the content digest of the tensors
 * before a cast, unused without one. */
ingot_status ig_finish_manifest(const struct ig_job *job, const uint8_t content[IG_HASH],
                                const uint8_t from[IG_HASH], json_t **out, ingot_error *e);

#endif
