/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What LMDB may be shown: each rule of index_walk.c broken alone, in an index with a branch, leaves
 * and overflow pages, and nothing else.  Behind a right seal every one of them is somebody's
 * intent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/index_private.h"
#include "tests/unit/store_dir.h"

/* Leaves below a branch, and names too long for a leaf. */
static uint8_t *large_index(const struct ig_store *s, size_t *length)
{
    enum { MANY = 12, LONG = 9000 };
    struct ig_summary packs[MANY] = {{.size = 0}};
    struct ig_origin origins[MANY] = {{.pack = 0}};
    const struct ig_index many = {
        .packs = packs, .npacks = MANY, .origins = origins, .norigins = MANY};
    static char name[LONG + 1];
    char *path = ig_store_path(s, INDEX_FILE, NULL), *text;
    size_t n;
    memset(name, 'x', LONG);
    for (uint32_t i = 0; i < MANY; i++) {
        packs[i].digest[0] = origins[i].sha256[0] = (uint8_t)(i + 1);
        origins[i].pack = i;
        origins[i].name = name + (i % 6 ? LONG - 20 : 0);
    }
    assert_int_equal(ig_index_write(s, &many, 0, NULL), INGOT_OK);
    assert_int_equal(ig_read_file(path, 1 << 20, &text, &n, NULL), INGOT_OK);
    free(path);
    *length = n - SEAL_BYTES;
    return (uint8_t *)text;
}

/* Move the first leaf to the end of the file, where only its own bounds keep a node inside, and put
 * behind it what would pass for its third node. */
static uint8_t *with_leaf_last(uint8_t *map, size_t *length, size_t root)
{
    const size_t up = root + ig_get16(map + root + 16), from = ig_get32(map + up) * IG_PAGE;
    const size_t to = *length, third = ig_get16(map + from + 20);
    map = realloc(map, to + (size_t)2 * IG_PAGE);
    assert_non_null(map);
    memset(map + to + IG_PAGE, 0, IG_PAGE);
    memcpy(map + to, map + from, IG_PAGE);
    memcpy(map + to + IG_PAGE + 64, map + from + third,
           IG_PAGE - third < 700 ? IG_PAGE - third : 700);
    ig_put64(map + to, to / IG_PAGE);
    ig_put32(map + up, (uint32_t)(to / IG_PAGE));
    *length += (size_t)2 * IG_PAGE;
    return map;
}

/* Offsets are those that index_walk.c names. */
static void test_each_rule_of_the_pages(void **state)
{
    size_t length;
    ingot_error e;
    uint8_t *map = large_index(*state, &length);
    const size_t meta = ig_get64(map + IG_PAGE + 144) > ig_get64(map + 144) ? IG_PAGE : 0;
    const size_t root = ig_get64(map + meta + 128) * IG_PAGE;
    assert_int_equal(ig_index_walk(map, length, "x", &e), INGOT_OK);
    assert_int_equal(ig_get16(map + root + 10), 1);
    map = with_leaf_last(map, &length, root);
    uint8_t *copy = malloc(length);
    assert_non_null(copy);
    assert_int_equal(ig_index_walk(map, length, "x", &e), INGOT_OK);
    const uint64_t pages = length / IG_PAGE, last = pages - 1;
    const size_t up = root + ig_get16(map + root + 16), next = root + ig_get16(map + root + 18);
    const size_t leaf = ig_get32(map + up) * IG_PAGE, node = leaf + ig_get16(map + leaf + 16);
    const size_t third = leaf + ig_get16(map + leaf + 20); /* the second is an origin's */
    const size_t lower = ig_get16(map + leaf + 12), upper = ig_get16(map + leaf + 14);
    size_t big = 0, other = 0; /* nodes with their value elsewhere */
    for (size_t page = 2 * IG_PAGE; page < length; page += IG_PAGE) {
        if (ig_get16(map + page + 10) != 2) continue;
        for (size_t i = 16; i < ig_get16(map + page + 12); i += 2) {
            const size_t at = page + ig_get16(map + page + i);
            if (ig_get16(map + at + 4) == 1) other = big, big = at;
        }
    }
    assert_true(other > 0 && ig_get16(map + leaf + 10) == 2);
    const size_t first = ig_get64(map + big + 8 + ORIGIN_KEY) * IG_PAGE;
    const struct {
        const char *what;
        size_t at, bytes;
        uint64_t value;
    } rules[] = {
        {"meta: flags", 10, 2, 0},
        {"meta: magic", 16, 4, 1},
        {"meta: version", meta + 20, 4, 2},
        {"meta: map smaller than the file", meta + 32, 8, length - 1},
        {"meta: map without end", meta + 32, 8, INDEX_MOST * 8 + 1},
        {"meta: no page size", 40, 4, 0},
        {"meta: pages too small", 40, 4, 256},
        {"meta: pages too large", 40, 4, 65536},
        {"meta: page size no power of two", 40, 4, 3 * 512},
        {"meta: two page sizes", IG_PAGE + 40, 4, 8192},
        {"meta: mapped where it says", meta + 44, 2, 1},
        {"meta: duplicates", meta + 92, 2, 4},
        {"meta: too shallow", meta + 94, 2, 1},
        {"meta: too deep", meta + 94, 2, 3},
        {"meta: without a level", meta + 94, 2, 0},
        {"meta: root is a meta page", meta + 128, 8, 1},
        {"meta: root behind the end", meta + 128, 8, pages},
        {"meta: last page behind the end", meta + 136, 8, pages},
        {"branch: number", root, 8, 2 + last},
        {"branch: is a leaf", root + 10, 2, 2},
        {"branch: one node", root + 12, 2, 18},
        {"branch: a node twice", next, 4, ig_get32(map + up)},
        {"branch: its own child", up, 4, root / IG_PAGE},
        {"branch: child is a meta page", up, 4, 0},
        {"branch: child behind the end", up, 4, pages},
        {"branch: child far behind the end", up + 4, 2, 1},
        {"branch: key outside", up + 6, 2, IG_PAGE},
        {"leaf: number", leaf, 8, last + 2},
        {"leaf: is a branch", leaf + 10, 2, 1},
        {"leaf: is more", leaf + 10, 2, 0x22},
        {"leaf: no nodes", leaf + 12, 2, 16},
        {"leaf: half an offset", leaf + 12, 2, lower - 1},
        {"leaf: nodes in the head", leaf + 12, 2, 14},
        {"leaf: upper below lower", leaf + 14, 2, lower - 2},
        {"leaf: upper outside", leaf + 14, 2, IG_PAGE + 2},
        {"leaf: node below upper", leaf + 14, 2, upper + 2},
        {"leaf: odd offset", leaf + 16, 2, node - leaf + 1},
        {"leaf: node at the end", leaf + 16, 2, IG_PAGE - 4},
        {"leaf: node behind the end", leaf + 20, 2, IG_PAGE + 64},
        {"leaf: two nodes in one place", leaf + 16, 2, third - leaf},
        {"leaf: a value over the next", third, 4, ig_get32(map + third) + 64},
        {"leaf: a value outside", node, 4, IG_PAGE},
        {"leaf: a key outside", node + 6, 2, IG_PAGE},
        {"leaf: a key of another length", node + 6, 2, 31},
        {"leaf: a sub-database", node + 4, 2, 2},
        {"leaf: keys descend", node + 8, 1, 0xff},
        {"big: a meta page", big + 8 + ORIGIN_KEY, 8, 1},
        {"big: behind the end", big + 8 + ORIGIN_KEY, 8, last},
        {"big: another's", big + 8 + ORIGIN_KEY, 8, ig_get64(map + other + 8 + ORIGIN_KEY)},
        {"big: longer than its pages", big, 4, 3 * IG_PAGE - 15},
        {"big: longer than the file", big, 4, UINT32_MAX},
        {"big: number", first, 8, 2},
        {"big: flags", first + 10, 2, 2},
        {"big: count", first + 12, 4, 1},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        memcpy(copy, map, length);
        for (size_t b = 0; b < rules[i].bytes; b++)
            copy[rules[i].at + b] = (uint8_t)(rules[i].value >> 8 * b);
        if (ig_index_walk(copy, length, "x", &e) != INGOT_ERR_PACK)
            fail_msg("%s: taken", rules[i].what);
    }
    free(copy);
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_each_rule_of_the_pages),
    };
    return cmocka_run_group_tests_name("index_walk", tests, NULL, NULL);
}
