/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sidecar: hashes of the pack's tree that are known to be true before the weights are.  All levels
 * above the leaves are read at once (0.006 % of the pack) and checked from the digest downwards;
 * blocks of leaves are read when asked for, and checked against them.
 */
#ifndef INGOT_SIDECAR_H
#define INGOT_SIDECAR_H

#include "store/store.h"

struct ig_sidecar; /* NULL: there is none that can be believed */
/* The tree beside the pack, in private memory.  *out stays NULL, and the status INGOT_OK, when
 * there is none or when it is not the tree of this digest; *why (static) then says which. */
ingot_status ig_sidecar_open(const struct ig_pack *p, const uint8_t digest[IG_HASH],
                             struct ig_sidecar **out, const char **why, ingot_error *e);
/* Read the whole pack and make one (an unnamed temporary file), on `threads` threads.
 * INGOT_ERR_CHECK when it is not the digest's. */
ingot_status ig_sidecar_make(const struct ig_pack *p, const uint8_t digest[IG_HASH],
                             unsigned threads, const struct ig_progress *progress,
                             struct ig_sidecar **out, ingot_error *e);
void ig_sidecar_close(struct ig_sidecar *s);
/* The true level-1 hash of bytes [i * 524288, ...) of the pack.  Any thread. */
const uint8_t *ig_sidecar_node(const struct ig_sidecar *s, uint64_t i);
/* The true leaf hashes of pages [first, first + n), n <= 128 and not across a multiple of 128.
 * INGOT_ERR_PACK when the file does not hold them (any more).  Any thread. */
ingot_status ig_sidecar_leaves(const struct ig_sidecar *s, uint64_t first, unsigned n, uint8_t *out,
                               ingot_error *e);

#endif
