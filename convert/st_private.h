/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the safetensors reader: memory, key sets, entries, layout. */
#ifndef INGOT_ST_PRIVATE_H
#define INGOT_ST_PRIVATE_H

#include "base/json_lex.h"
#include "convert/convert.h"

/* Offsets inside a header are 32 bits wide, whatever cap the caller sets. */
#define IG_ST_HARD_CAP (UINT32_MAX - 8ull)

/* st_arena.c: blocks that never move, freed together. */
struct ig_st_block;
void *ig_st_alloc(struct ig_st_block **list, size_t bytes); /* multiple of 8; NULL: no memory */
void ig_st_free_blocks(struct ig_st_block *list);

/* st_keys.c: the keys of one JSON object, compared as decoded.  Holds only where
 * each key stands in the text: 8 bytes a slot, at most 22 bytes a key. */
struct ig_st_keys {
    uint64_t *slots; /* hash << 32 | offset of the opening quote; 0 is free */
    size_t mask, count;
    uint64_t seed;
};
void ig_st_keys_clear(struct ig_st_keys *k);
/* Add the key that lx gave last, whose decoded form is key[len]; a second one is an error. */
ingot_status ig_st_keys_add(struct ig_st_keys *k, const struct ig_lex *lx, const char *key,
                            size_t len, ingot_error *e);

/* State of one pass over a header. */
struct ig_st_reader {
    struct ig_lex lx;
    struct ig_st *out;
    size_t cap;                  /* of out->tensors */
    struct ig_st_keys keys;      /* of the header's object */
    struct ig_st_keys inner;     /* of __metadata__, or the unknown keys of one entry */
    struct ig_st_block *names;   /* decoded tensor names, shapes: become out's */
    struct ig_st_block *scratch; /* other decoded strings, until the end of the pass */
    uint64_t *dims;              /* shape at hand */
    size_t dims_cap, rank;
};

/* st_header.c: the header's text into out->tensors, in the text's order. */
ingot_status ig_st_parse_header(struct ig_st *out, const char *path, ingot_error *e);
/* The string given last: inside the header, or decoded into a block.  NULL: no memory. */
const char *ig_st_string(struct ig_st_reader *r, struct ig_st_block **list);

/* st_entry.c: the value of one member of the header, and its checks. */
ingot_status ig_st_read_entry(struct ig_st_reader *r, const char *name, size_t len, ingot_error *e);
/* Fail at byte `at` of the header's text, about a tensor. */
ingot_status ig_st_fail(const struct ig_st_reader *r, const struct ig_st_tensor *t, size_t at,
                        ingot_error *e, const char *format, ...) IG_PRINTF(5, 6);

/* st_layout.c: sort the tensors and check that they cover the data exactly. */
ingot_status ig_st_check_layout(struct ig_st *st, const char *path, ingot_error *e);

#endif
