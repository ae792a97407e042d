/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/st_private.h"

#include <stdlib.h>

#define BLOCK 65536u

struct ig_st_block {
    struct ig_st_block *next;
    size_t used, cap;
    uint64_t data[];
};

void *ig_st_alloc(struct ig_st_block **list, size_t bytes)
{
    struct ig_st_block *b = *list;
    if (bytes > SIZE_MAX - BLOCK) return NULL;
    bytes = (size_t)ig_round_up(bytes, 8);
    if (!b || b->cap - b->used < bytes) {
        const size_t cap = bytes > BLOCK ? bytes : BLOCK;
        b = malloc(sizeof *b + cap);
        if (!b) return NULL;
        *b = (struct ig_st_block){.next = *list, .cap = cap};
        *list = b;
    }
    void *p = (char *)b->data + b->used;
    b->used += bytes;
    return p;
}

void ig_st_free_blocks(struct ig_st_block *list)
{
    while (list) {
        struct ig_st_block *next = list->next;
        free(list);
        list = next;
    }
}
