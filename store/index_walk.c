/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB trusts what it maps: a wrong page number or length makes it crash, abort or run for ever.
 * The seal's hash keeps accidents from it, but whoever may write the store can make that right.
 * So each page that a reading cursor comes to is looked at first, in the same private copy: pages
 * lie in the file, none has two parents, nodes lie in their page and nowhere on each other, all
 * leaves are equally deep, keys ascend.  Only what index_build.c asks LMDB for is taken: one
 * unnamed database, no duplicates.
 *
 * This is LMDB's data version 1, that of all 0.9, where a page number has 64 bits.  An index in
 * another form counts as damaged.
 */
#include "store/index_private.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_LEAST = 512, PAGE_MOST = 32768, DEPTH_MOST = 20 };

/* A page: number (8 bytes), 2 unused, flags, then of branches and leaves where the offsets of
 * nodes end and where nodes begin, of overflow pages how many there are; the offsets. */
enum { PG_NUMBER = 0, PG_FLAGS = 10, PG_LOWER = 12, PG_UPPER = 14, PG_COUNT = 12, PG_HEAD = 16 };
enum { PG_BRANCH = 1, PG_LEAF = 2, PG_OVERFLOW = 4, PG_META = 8 };

/* A node: in leaves length of the value, flags and length of the key; in branches number of the
 * page (6 bytes) and length of the key.  The key and in leaves the value follow; of large values
 * only the number of their first overflow page. */
enum { ND_VALUE = 0, ND_FLAGS = 4, ND_KEY_LEN = 6, ND_HEAD = 8, ND_BIG = 1 };

/* A meta page. The first of its two databases, of free pages, lends two fields to the file. */
enum {
    META_MAGIC = 16,
    META_VERSION = 20,
    META_MAP_SIZE = 32,
    META_PAGE_SIZE = 40,
    META_FLAGS = 44,
    META_DB_FLAGS = 92,
    META_DEPTH = 94,
    META_ROOT = 128,
    META_LAST = 136,
    META_TXN = 144,
    META_END = 152
};
#define MAGIC     0xbeefc0deu
#define FIXED_MAP 1u
#define NO_ROOT   UINT64_MAX
#define MAP_LIMIT (INDEX_MOST * 8) /* more than index_build.c asks for */

struct walk {
    const uint8_t *map;
    uint64_t pages;
    uint32_t page;      /* bytes of one */
    uint8_t *seen;      /* a bit a page */
    const uint8_t *key; /* the last one */
    size_t key_len;
    uint64_t at; /* the page that is looked at */
};

/* Pages from the first on are in the file and nobody else's. */
static bool claim(struct walk *w, uint64_t first, uint64_t n)
{
    if (first < 2 || first >= w->pages || n > w->pages - first) return false;
    w->at = first;
    for (uint64_t i = first; i < first + n; i++) {
        const uint8_t bit = (uint8_t)(1u << (i % 8));
        if (w->seen[i / 8] & bit) return false;
        w->seen[i / 8] |= bit;
    }
    return true;
}

/* A value in overflow pages, which have one head. */
static bool good_big(struct walk *w, uint64_t first, uint64_t bytes)
{
    const uint64_t n = (PG_HEAD + bytes - 1) / w->page + 1;
    if (!claim(w, first, n)) return false;
    const uint8_t *p = w->map + first * w->page;
    return ig_get64(p + PG_NUMBER) == first && ig_get16(p + PG_FLAGS) == PG_OVERFLOW &&
           ig_get32(p + PG_COUNT) == n;
}

static bool good_key(struct walk *w, const uint8_t *key, size_t len)
{
    if (len != IG_HASH && len != ORIGIN_KEY) return false;
    const bool ascends =
        !w->key || ig_bytes_cmp((const char *)w->key, w->key_len, (const char *)key, len) < 0;
    w->key = key;
    w->key_len = len;
    return ascends;
}

/* Its bytes in the page, of which there are `room`; 0 when it does not fit or is none of ours. */
static size_t leaf_node(struct walk *w, const uint8_t *node, size_t room)
{
    const size_t key = ig_get16(node + ND_KEY_LEN);
    const uint32_t value = ig_get32(node + ND_VALUE), flags = ig_get16(node + ND_FLAGS);
    const size_t here = flags & ND_BIG ? 8 : value;
    if (flags & ~(uint32_t)ND_BIG || key > room - ND_HEAD || here > room - ND_HEAD - key) return 0;
    if (!good_key(w, node + ND_HEAD, key)) return 0;
    if (flags & ND_BIG && !good_big(w, ig_get64(node + ND_HEAD + key), value)) return 0;
    return ND_HEAD + key + here;
}

static bool walk_page(struct walk *w, uint64_t number, unsigned level);

static size_t branch_node(struct walk *w, const uint8_t *node, size_t room, unsigned level)
{
    const size_t key = ig_get16(node + ND_KEY_LEN);
    const uint64_t child = ig_get32(node) | (uint64_t)ig_get16(node + ND_FLAGS) << 32;
    if (key > room - ND_HEAD || !walk_page(w, child, level - 1)) return 0;
    return ND_HEAD + key;
}

/* The page and all below it; level 1 is a leaf. */
static bool walk_page(struct walk *w, uint64_t number, unsigned level)
{
    if (!claim(w, number, 1)) return false;
    const uint8_t *p = w->map + number * w->page;
    const size_t lower = ig_get16(p + PG_LOWER), upper = ig_get16(p + PG_UPPER);
    const bool leaf = level == 1;
    if (ig_get64(p + PG_NUMBER) != number || ig_get16(p + PG_FLAGS) != (leaf ? PG_LEAF : PG_BRANCH))
        return false;
    /* Of a branch LMDB demands two. */
    if (lower < PG_HEAD + (leaf ? 2 : 4) || lower % 2 || lower > upper || upper > w->page)
        return false;
    size_t used = 0;
    for (size_t i = PG_HEAD; i < lower; i += 2) {
        const size_t offset = ig_get16(p + i);
        if (offset < upper || offset % 2 || offset > w->page - ND_HEAD) return false;
        const size_t room = w->page - offset;
        const size_t n =
            leaf ? leaf_node(w, p + offset, room) : branch_node(w, p + offset, room, level);
        if (n == 0) return false;
        used += n + n % 2;
        w->at = number;
    }
    return used <= w->page - upper; /* else values share bytes, and a file could hold any number */
}

static bool good_meta(const struct walk *w, const uint8_t *p)
{
    const uint64_t map_size = ig_get64(p + META_MAP_SIZE);
    return ig_get16(p + PG_FLAGS) == PG_META && ig_get32(p + META_MAGIC) == MAGIC &&
           ig_get32(p + META_VERSION) == 1 && ig_get32(p + META_PAGE_SIZE) == w->page &&
           map_size >= w->pages * w->page && map_size <= MAP_LIMIT &&
           !(ig_get16(p + META_FLAGS) & FIXED_MAP) && ig_get16(p + META_DB_FLAGS) == 0 &&
           ig_get64(p + META_LAST) < w->pages;
}

static bool walk_file(struct walk *w, uint64_t length)
{
    w->page = ig_get32(w->map + META_PAGE_SIZE);
    if (w->page < PAGE_LEAST || w->page > PAGE_MOST || w->page & (w->page - 1)) return false;
    if (length % w->page != 0 || length / w->page < 2) return false;
    w->pages = length / w->page;
    const uint8_t *one = w->map, *two = w->map + w->page;
    if (!good_meta(w, one) || !good_meta(w, two)) return false;
    const uint8_t *meta = ig_get64(two + META_TXN) > ig_get64(one + META_TXN) ? two : one;
    const uint64_t root = ig_get64(meta + META_ROOT);
    const unsigned depth = ig_get16(meta + META_DEPTH);
    if (root == NO_ROOT) return true;
    return depth >= 1 && depth <= DEPTH_MOST && walk_page(w, root, depth);
}

ingot_status ig_index_walk(const uint8_t *map, uint64_t length, const char *path, ingot_error *e)
{
    struct walk w = {.map = map, .seen = calloc(1, (size_t)(length / PAGE_LEAST / 8 + 1))};
    if (!w.seen) return ig_no_memory(e);
    const bool good = length >= META_END && walk_file(&w, length);
    free(w.seen);
    if (good) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_PACK, "%s: damaged: page %llu is not as LMDB writes it", path,
                   (unsigned long long)w.at);
}
