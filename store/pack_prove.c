/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail alone against the digest: the frontier is the state of the tree just before the
 * tail, so hashing the tail's pages on top of it ends in the digest or proves nothing.
 */
#include "store/pack_private.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)1 << 20)

static void start_from_frontier(const struct ig_pack *p, struct ig_tree *t)
{
    const uint8_t *hash = p->t->regions[REGION_FRONTIER].data;
    uint64_t node = p->tail / IG_PAGE;
    ig_tree_init(t);
    for (unsigned level = 0; ig_tree_nodes(p->size, level) > 1; level++, node /= IG_FAN) {
        const size_t n = node % IG_FAN;
        t->count[level] = node;
        memcpy(t->block[level], hash, n * IG_HASH);
        hash += n * IG_HASH;
    }
}

/* What was parsed is what is hashed: private copies replace what the file says now. */
static void overlay(const struct ig_pack *p, uint8_t *window, uint64_t at, size_t n)
{
    struct region copies[REGION_TYPES];
    memcpy(copies, p->t->regions, sizeof copies);
    copies[0] =
        (struct region){.offset = p->tail, .bytes = IG_PAGE, .data = (uint8_t *)p->t->superblock};
    for (int i = 0; i < REGION_TYPES; i++) {
        const struct region *r = &copies[i];
        const uint64_t from = r->offset > at ? r->offset : at;
        const uint64_t to = r->offset + r->bytes < at + n ? r->offset + r->bytes : at + n;
        if (r->data && from < to)
            memcpy(window + (from - at), r->data + (from - r->offset), to - from);
    }
}

static ingot_status add_tail(const struct ig_pack *p, struct ig_tree *t, uint8_t *window,
                             ingot_error *e)
{
    uint8_t leaves[WINDOW / IG_PAGE * IG_HASH];
    for (uint64_t at = p->tail; at < p->size;) {
        const size_t n = p->size - at < WINDOW ? (size_t)(p->size - at) : WINDOW;
        return_if_error(ig_pread(p->fd, p->path, window, n, at, e));
        overlay(p, window, at, n);
        ig_leaves(NULL, leaves, window, n);
        return_if_error(ig_tree_add(t, leaves, n / IG_PAGE, e));
        at += n;
    }
    return INGOT_OK;
}

bool ig_pack_frontier_is(const struct ig_pack *p, const struct ig_tree *t)
{
    const uint8_t *hash = p->t->regions[REGION_FRONTIER].data;
    uint64_t node = p->tail / IG_PAGE;
    for (unsigned level = 0; ig_tree_nodes(p->size, level) > 1; level++, node /= IG_FAN) {
        const size_t n = node % IG_FAN;
        if (t->count[level] % IG_FAN != n || memcmp(t->block[level], hash, n * IG_HASH) != 0)
            return false;
        hash += n * IG_HASH;
    }
    return true;
}

ingot_status ig_pack_tail_digest(const struct ig_pack *p, uint8_t found[IG_HASH], ingot_error *e)
{
    struct ig_tree *t = malloc(sizeof *t);
    uint8_t *window = ig_pages(WINDOW);
    ingot_status status = t && window ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) {
        start_from_frontier(p, t);
        status = add_tail(p, t, window, e);
    }
    if (status == INGOT_OK) status = ig_tree_digest(t, p->size, found, e);
    free(t);
    free(window);
    return status;
}

ingot_status ig_pack_prove(const struct ig_pack *p, const uint8_t digest[IG_HASH], ingot_error *e)
{
    uint8_t found[IG_HASH];
    const ingot_status status = ig_pack_tail_digest(p, found, e);
    if (status != INGOT_OK || memcmp(found, digest, IG_HASH) == 0) return status;
    char wanted[65], is[65];
    ig_hex(wanted, digest, IG_HASH);
    ig_hex(is, found, IG_HASH);
    ig_fail(e, INGOT_ERR_CHECK, "%s: the tail gives the digest %s, expected %s", p->path, is,
            wanted);
    return ig_at(e, p->path, NULL, 0);
}
