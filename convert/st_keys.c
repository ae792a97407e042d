/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicate keys, found in linear time by open addressing under a random seed, so
 * that nobody can prepare names that collide. */
#include "convert/st_private.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void ig_st_keys_clear(struct ig_st_keys *k)
{
    free(k->slots);
    k->slots = NULL;
    k->mask = k->count = 0;
}

static void place(uint64_t *slots, size_t mask, uint64_t slot)
{
    size_t i = (size_t)(slot >> 32) & mask;
    while (slots[i]) i = (i + 1) & mask;
    slots[i] = slot;
}

static bool grow(struct ig_st_keys *k)
{
    const size_t old = k->slots ? k->mask + 1 : 0, cap = old ? old * 2 : 16;
    uint64_t *slots = calloc(cap, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < old; i++)
        if (k->slots[i]) place(slots, cap - 1, k->slots[i]);
    free(k->slots);
    k->slots = slots;
    k->mask = cap - 1;
    return true;
}

/* Is the string at `offset` of the text, once decoded, the same as key?  Asked only
 * when 32 bits of hash agree. */
static ingot_status same(const struct ig_lex *lx, size_t offset, const char *key, size_t len,
                         bool *equal, ingot_error *e)
{
    struct ig_lex other = *lx;
    other.pos = offset;
    *equal = false;
    return_if_error(ig_lex_scan_string(&other, e));
    if (other.length != len) return INGOT_OK;
    if (!other.escaped) {
        *equal = memcmp(lx->text + offset + 1, key, len) == 0;
        return INGOT_OK;
    }
    char *text = malloc(len + 1);
    if (!text) return ig_no_memory(e);
    ig_lex_string(&other, text);
    *equal = memcmp(text, key, len) == 0;
    free(text);
    return INGOT_OK;
}

ingot_status ig_st_keys_add(struct ig_st_keys *k, const struct ig_lex *lx, const char *key,
                            size_t len, ingot_error *e)
{
    if ((!k->slots || (k->count + 1) * 4 > (k->mask + 1) * 3) && !grow(k)) return ig_no_memory(e);
    const uint64_t hash = XXH3_64bits_withSeed(key, len, k->seed) >> 32;
    size_t i = (size_t)hash & k->mask;
    for (; k->slots[i]; i = (i + 1) & k->mask) {
        bool equal;
        if (k->slots[i] >> 32 != hash) continue;
        return_if_error(same(lx, (size_t)(uint32_t)k->slots[i], key, len, &equal, e));
        if (!equal) continue;
        return ig_lex_fail(lx, lx->at, e, "duplicate key \"%s\" (first at offset %llu)",
                           ig_esc(key, len).s,
                           (unsigned long long)(lx->base + (uint32_t)k->slots[i]));
    }
    k->slots[i] = hash << 32 | lx->at;
    k->count++;
    return INGOT_OK;
}
