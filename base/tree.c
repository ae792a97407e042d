/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of a level is hashed as soon as it is full, so the state is one block a
 * level.  Nine levels of 128 cover more than 2^64 bytes.
 */
#include "base/base.h"

#include <string.h>

void ig_tree_init(struct ig_tree *t)
{
    memset(t->count, 0, sizeof t->count);
    t->sink = NULL;
    t->ctx = NULL;
}

static ingot_status add(struct ig_tree *t, unsigned level, const uint8_t *hashes, uint64_t n,
                        ingot_error *e);

/* The last block of a level is full, or filled up with zeros: hash it into the level above. */
static ingot_status close_block(struct ig_tree *t, unsigned level, ingot_error *e)
{
    uint8_t up[IG_HASH];
    const uint64_t index = (t->count[level] - 1) / IG_FAN;
    if (t->sink) return_if_error(t->sink(t->ctx, level, index, t->block[level], e));
    ig_sha256(up, t->block[level], IG_PAGE);
    return add(t, level + 1, up, 1, e);
}

static ingot_status add(struct ig_tree *t, unsigned level, const uint8_t *hashes, uint64_t n,
                        ingot_error *e)
{
    while (n > 0) {
        const unsigned slot = t->count[level] % IG_FAN;
        const uint64_t k = n < IG_FAN - slot ? n : IG_FAN - slot;
        memcpy(t->block[level] + slot * IG_HASH, hashes, k * IG_HASH);
        t->count[level] += k, hashes += k * IG_HASH, n -= k;
        if (slot + k == IG_FAN && level + 1 < IG_TREE_LEVELS)
            return_if_error(close_block(t, level, e));
    }
    return INGOT_OK;
}

ingot_status ig_tree_add(struct ig_tree *t, const uint8_t *leaves, uint64_t n, ingot_error *e)
{
    return add(t, 0, leaves, n, e);
}

ingot_status ig_tree_add_nodes(struct ig_tree *t, unsigned level, const uint8_t *nodes, uint64_t n,
                               ingot_error *e)
{
    return add(t, level, nodes, n, e);
}

ingot_status ig_tree_digest(struct ig_tree *t, uint64_t size, uint8_t out[IG_HASH], ingot_error *e)
{
    uint8_t root[IG_HASH] = {0};
    for (unsigned level = 0; level < IG_TREE_LEVELS && size > 0; level++) {
        if (t->count[level] == 1) {
            memcpy(root, t->block[level], IG_HASH);
            break;
        }
        const size_t used = t->count[level] % IG_FAN * IG_HASH;
        if (used == 0) continue; /* the last block was full and is hashed already */
        memset(t->block[level] + used, 0, IG_PAGE - used);
        return_if_error(close_block(t, level, e));
    }
    ig_verity_digest(out, size, root);
    return INGOT_OK;
}

uint64_t ig_tree_nodes(uint64_t size, unsigned level)
{
    uint64_t n = size / IG_PAGE + (size % IG_PAGE != 0);
    for (; level > 0; level--) {
        if (n <= 1) return 0;
        n = n / IG_FAN + (n % IG_FAN != 0);
    }
    return n;
}

void ig_verity_digest(uint8_t out[IG_HASH], uint64_t size, const uint8_t root[IG_HASH])
{
    /* struct fsverity_descriptor: version 1, SHA-256 (1), log2 block size 12, no salt. */
    uint8_t descriptor[256] = {1, 1, 12, 0};
    ig_put64(descriptor + 8, size);
    memcpy(descriptor + 16, root, IG_HASH);
    ig_sha256(out, descriptor, sizeof descriptor);
}
