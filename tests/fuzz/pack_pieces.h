/* SPDX-License-Identifier: Apache-2.0 */
/* From an input of fuzz_pack to the file of a pack, and mutations that know of its pieces. */
#ifndef INGOT_FUZZ_PACK_PIECES_H
#define INGOT_FUZZ_PACK_PIECES_H

#include "store/format.h"
#include "tests/fuzz/fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { REPAIR_SUPERBLOCK = 1, REPAIR_ALL = 2, FIT = 4, SOURCES = 8, SHOW = 16, EXPORT = 32 };
enum { HEAD, WEIGHTS, COPY, TABLE, REGIONS, PIECES = 32 };
enum { FILE_MOST = 1 << 20 };

struct pieces {
    unsigned n;
    struct {
        const uint8_t *data;
        size_t bytes, at; /* at: in the file */
    } piece[PIECES];
};

static uint8_t image[FILE_MOST + 2 * IG_PAGE]; /* with room for heads of pieces that found none */
static size_t image_size;

static void cut(struct pieces *p, const uint8_t *data, size_t size)
{
    for (p->n = 0; size >= 2 && p->n < PIECES; p->n++) {
        size_t n = ig_get16(data);
        data += 2;
        size -= 2;
        if (n > size) n = size;
        p->piece[p->n].data = data;
        p->piece[p->n].bytes = n;
        data += n;
        size -= n;
    }
}

/* Page 0 and zeros, then piece after piece. */
static void lay_out(struct pieces *p)
{
    size_t at = WEIGHTS_AT;
    memset(image, 0, image_size);
    for (unsigned i = 0; i < p->n; i++) {
        size_t n = p->piece[i].bytes;
        if (i == HEAD && n > WEIGHTS_AT) n = WEIGHTS_AT;
        if (at + n > FILE_MOST) n = FILE_MOST - at;
        p->piece[i].bytes = n;
        p->piece[i].at = i == HEAD ? 0 : at;
        memcpy(image + p->piece[i].at, p->piece[i].data, n);
        if (i == HEAD) continue;
        /* The tail's first two pages are there even when nothing stands in them. */
        if (n == 0 && (i == COPY || i == TABLE)) n = 1;
        at = (size_t)ig_round_up(at + n, IG_PAGE);
        if (at > FILE_MOST) at = FILE_MOST;
    }
    image_size = at;
}

static bool region(size_t table, uint32_t i, uint8_t **record)
{
    *record = image + table + REGION_HEAD + (size_t)i * REGION_RECORD;
    return i < REGION_MOST && i < ig_get32(image + table + 8) &&
           *record + REGION_RECORD <= image + image_size;
}

/* Sizes and offsets as the pieces have them. */
static void fit(const struct pieces *p)
{
    uint8_t *r;
    if (p->n <= TABLE) return;
    const size_t tail = p->piece[COPY].at, table = p->piece[TABLE].at;
    size_t end = (size_t)ig_round_up(table + p->piece[TABLE].bytes, IG_PAGE);
    ig_put64(image + SB_SIZE, image_size);
    ig_put64(image + SB_WEIGHTS_LEN, tail - WEIGHTS_AT);
    ig_put64(image + SB_TAIL, tail);
    ig_put64(image + SB_TAIL_LEN, image_size - tail);
    unsigned next = REGIONS;
    for (uint32_t i = 0; region(table, i, &r); i++) {
        size_t bytes = 0;
        if (ig_get64(r + 16) && next < p->n) {
            end = p->piece[next].at;
            bytes = p->piece[next++].bytes;
        }
        ig_put64(r + 8, end);
        ig_put64(r + 16, bytes);
        end = (size_t)ig_round_up(end + bytes, IG_PAGE);
    }
}

static void repair(const struct pieces *p, unsigned flags)
{
    uint8_t *r;
    if (p->n <= TABLE) return;
    const size_t table = p->piece[TABLE].at;
    for (uint32_t i = 0; flags & REPAIR_ALL && region(table, i, &r); i++) {
        const uint64_t at = ig_get64(r + 8), n = ig_get64(r + 16);
        if (at <= image_size && n <= image_size - at) ig_xxh128(r + 32, image + at, (size_t)n);
    }
    const size_t bytes = REGION_HEAD + (size_t)ig_get32(image + table + 8) * REGION_RECORD;
    if (flags & REPAIR_ALL && bytes <= image_size - table) {
        ig_put64(image + table + 16, 0);
        ig_put64(image + table + 16, ig_xxh64(image + table, bytes));
    }
    ig_put64(image + SB_XXH, 0);
    ig_put64(image + SB_XXH, ig_xxh64(image, IG_PAGE));
    memcpy(image + p->piece[COPY].at, image, IG_PAGE);
}

/* Mostly inside one piece, so that the others stay where they are. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    struct pieces p;
    if (size < 4 || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max);
    if (seed % 8 == 1) data[0] ^= (uint8_t)(1u << (seed / 8 % 6));
    cut(&p, data + 1, size - 1);
    if (!p.n) return LLVMFuzzerMutate(data, size, max);
    const unsigned i = seed / 32 % p.n;
    const size_t at = (size_t)(p.piece[i].data - data), n = p.piece[i].bytes,
                 behind = size - at - n;
    const bool keeps = seed % 8 < 6; /* the length */
    size_t room = keeps ? n : max - at - behind;
    if (room > UINT16_MAX) room = UINT16_MAX;
    if (room < n || room == 0) return size;
    uint8_t *copy = calloc(1, room);
    check(copy != NULL);
    memcpy(copy, data + at, n);
    size_t m = LLVMFuzzerMutate(copy, n, room);
    if (keeps) {
        memset(copy + m, 0, n - m);
        m = n;
    }
    memmove(data + at + m, data + at + n, behind);
    memcpy(data + at, copy, m);
    free(copy);
    ig_put16(data + at - 2, (uint16_t)m);
    return at + m + behind;
}

#endif
