/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest packs that a reader opens: small F32 tensors of 16 elements, and a manifest.
 * Digests inside are claims that only a full check would question.
 */
#ifndef INGOT_MINI_PACK_H
#define INGOT_MINI_PACK_H

#include "store/format.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mini_pack {
    const char *const *tensors; /* names, ascending */
    uint32_t ntensors;
    const char *source;      /* file name */
    const char *second;      /* one more, with the same bytes, or NULL; must sort after source */
    uint8_t sha256[IG_HASH]; /* of each source */
    uint8_t content[IG_HASH];
    bool derived;
    uint8_t from[IG_HASH];  /* when derived */
    const char *derivation; /* instead, as text */
    uint32_t flags[3];      /* of the first tensors; a view covers those before it, gaps too */
    uint32_t sources[3];    /* they came from */
    uint32_t roles[2];      /* of two links of the first tensor to itself; 0: none */
    uint32_t extras;        /* optional regions of an unknown type */
    bool idle_dtype;        /* one more than is used */
};

struct mini_region {
    uint8_t *data;
    size_t bytes;
};

static inline void mini_append(struct mini_region *r, const void *data, size_t n)
{
    r->data = realloc(r->data, r->bytes + n + 1);
    if (!r->data) abort();
    memcpy(r->data + r->bytes, data, n);
    r->bytes += n;
}

static inline void mini_manifest(struct mini_region *r, const struct mini_pack *m)
{
    char content[65], from[65], sha[65], text[4096];
    ig_hex(content, m->content, IG_HASH);
    ig_hex(from, m->from, IG_HASH);
    ig_hex(sha, m->sha256, IG_HASH);
    int n = snprintf(text, sizeof text,
                     "{\"content\":\"ingot-content-v1:%s\",\"derivation\":", content);
    if (m->derivation)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s", m->derivation);
    else if (m->derived)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "{\"from\":\"ingot-content-v1:%s\",\"kind\":\"dtype\"}", from);
    else
        n += snprintf(text + n, sizeof text - (size_t)n, "{\"kind\":\"identity\"}");
    n += snprintf(text + n, sizeof text - (size_t)n,
                  ",\"rules\":1,\"sources\":[{\"name\":\"%s\",\"sha256\":\"%s\",\"size\":1000}",
                  m->source, sha);
    if (m->second)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      ",{\"name\":\"%s\",\"sha256\":\"%s\",\"size\":1000}", m->second, sha);
    n += snprintf(text + n, sizeof text - (size_t)n, "]}");
    mini_append(r, text, (size_t)n);
}

static inline void mini_rows(struct mini_region *regions, const struct mini_pack *m)
{
    for (uint32_t i = 0; i < m->ntensors; i++) {
        const uint32_t flags = i < 3 ? m->flags[i] : 0;
        const bool view = flags & IG_ROW_VIEW;
        const uint64_t dim = view ? (i - 1) * SMALL_ALIGN / 4 + 16 : 16;
        const size_t len = strlen(m->tensors[i]);
        uint8_t row[ROW_SIZE] = {0};
        ig_put64(row + ROW_NAME, regions[REGION_STRINGS].bytes);
        ig_put32(row + ROW_NAME_LEN, (uint32_t)len);
        ig_put64(row + ROW_SHAPE, i);
        ig_put32(row + ROW_RANK, 1);
        ig_put32(row + ROW_FLAGS, flags);
        ig_put32(row + ROW_SOURCE, view ? IG_NONE : i < 3 ? m->sources[i] : 0);
        ig_put64(row + ROW_OFFSET, view ? 0 : (uint64_t)i * SMALL_ALIGN);
        ig_put64(row + ROW_BYTES, 4 * dim);
        ig_sha256(row + ROW_DIGEST, m->tensors[i], len);
        mini_append(&regions[REGION_ROWS], row, sizeof row);
        mini_append(&regions[REGION_STRINGS], m->tensors[i], len);
        uint8_t shape[8];
        ig_put64(shape, dim);
        mini_append(&regions[REGION_SHAPES], shape, sizeof shape);
    }
    if (m->roles[0]) ig_put32(regions[REGION_ROWS].data + ROW_NLINKS, 2);
    for (uint32_t i = 0; i < 2 && m->roles[0]; i++) {
        uint8_t link[LINK_SIZE] = {0};
        ig_put32(link + LINK_ROLE, m->roles[i]);
        ig_put32(link + LINK_GRAN, IG_GRAN_TENSOR);
        ig_put32(link + LINK_BLOB, IG_NONE);
        mini_append(&regions[REGION_LINKS], link, sizeof link);
    }
    uint8_t dtype[DTYPE_SIZE] = {0}, extent[EXTENT_SIZE] = {0};
    ig_put64(dtype + DTYPE_NAME, regions[REGION_STRINGS].bytes);
    ig_put32(dtype + DTYPE_NAME_LEN, 3);
    ig_put32(dtype + DTYPE_BITS, 32);
    mini_append(&regions[REGION_DTYPES], dtype, sizeof dtype);
    mini_append(&regions[REGION_STRINGS], "F32", 3);
    if (m->idle_dtype) {
        ig_put64(dtype + DTYPE_NAME, regions[REGION_STRINGS].bytes);
        ig_put32(dtype + DTYPE_BITS, 64);
        mini_append(&regions[REGION_DTYPES], dtype, sizeof dtype);
        mini_append(&regions[REGION_STRINGS], "F64", 3);
    }
    ig_put64(extent + EXTENT_OFFSET, WEIGHTS_AT);
    ig_put64(extent + EXTENT_BYTES, (uint64_t)(m->ntensors - 1) * SMALL_ALIGN + 64);
    ig_put32(extent + EXTENT_FLAGS, IG_EXTENT_SMALL);
    mini_append(&regions[REGION_EXTENTS], extent, sizeof extent);
}

/* The region table and the regions behind it; returns the size of the file. */
static inline uint64_t mini_tail(struct mini_region *regions, uint32_t extras,
                                 struct mini_region *table, uint64_t tail)
{
    static const uint64_t sizes[REGION_TYPES] = REGION_RECORD_SIZES;
    uint64_t at = tail + 2 * IG_PAGE;
    uint8_t head[REGION_HEAD] = {0};
    memcpy(head, REGION_MAGIC, 8);
    ig_put32(head + 8, REGION_TYPES - 1 + extras);
    ig_put32(head + 12, REGION_RECORD);
    mini_append(table, head, sizeof head);
    for (uint32_t type = 1; type < REGION_TYPES; type++) {
        uint8_t r[REGION_RECORD] = {0};
        ig_put32(r, type);
        ig_put32(r + 4, REGION_REQUIRED);
        ig_put64(r + 8, at);
        ig_put64(r + 16, regions[type].bytes);
        ig_put64(r + 24, sizes[type]);
        ig_xxh128(r + 32, regions[type].data, regions[type].bytes);
        mini_append(table, r, sizeof r);
        at = ig_round_up(at + regions[type].bytes, IG_PAGE);
    }
    for (uint32_t i = 0; i < extras; i++) {
        uint8_t r[REGION_RECORD] = {77};
        ig_put64(r + 8, at);
        ig_xxh128(r + 32, "", 0);
        mini_append(table, r, sizeof r);
    }
    ig_put64(table->data + 16, ig_xxh64(table->data, table->bytes));
    return at;
}

static inline void mini_superblock(uint8_t sb[IG_PAGE], uint64_t size, uint64_t tail)
{
    memset(sb, 0, IG_PAGE);
    memcpy(sb, PACK_MAGIC, 8);
    ig_put32(sb + SB_FORMAT, PACK_FORMAT);
    ig_put64(sb + SB_SIZE, size);
    ig_put64(sb + SB_WEIGHTS, WEIGHTS_AT);
    ig_put64(sb + SB_WEIGHTS_LEN, tail - WEIGHTS_AT);
    ig_put64(sb + SB_TAIL, tail);
    ig_put64(sb + SB_TAIL_LEN, size - tail);
    ig_put64(sb + SB_XXH, ig_xxh64(sb, IG_PAGE));
}

/* Write a pack into an empty file. */
static inline ingot_status mini_pack_write(int fd, const struct mini_pack *m, ingot_error *e)
{
    static const uint8_t zeros[16 * IG_HASH];
    struct mini_region regions[REGION_TYPES] = {{0}}, table = {0};
    uint8_t sb[IG_PAGE];
    for (int i = 1; i < REGION_TYPES; i++) mini_append(&regions[i], "", 0);
    mini_rows(regions, m);
    mini_manifest(&regions[REGION_MANIFEST], m);
    const uint64_t weights = ig_round_up((uint64_t)(m->ntensors - 1) * SMALL_ALIGN + 64, IG_PAGE);
    const uint64_t tail = WEIGHTS_AT + weights, spans = (weights + IG_SPAN - 1) / IG_SPAN;
    for (uint64_t i = 0; i < spans; i++) mini_append(&regions[REGION_XXH], zeros, XXH_SIZE);
    /* Files of up to 128 pages have one level below the root, larger ones here two. */
    uint64_t frontier = tail / IG_PAGE % IG_FAN;
    if (tail / IG_PAGE + 64 > IG_FAN) frontier += tail / IG_PAGE / IG_FAN % IG_FAN;
    for (uint64_t i = 0; i < frontier; i++) mini_append(&regions[REGION_FRONTIER], zeros, IG_HASH);
    const uint64_t size = mini_tail(regions, m->extras, &table, tail);
    mini_superblock(sb, size, tail);
    ingot_status status = ftruncate(fd, (off_t)size) == 0 ? INGOT_OK : INGOT_ERR_IO;
    if (status == INGOT_OK) status = ig_pwrite(fd, "pack", sb, IG_PAGE, 0, e);
    if (status == INGOT_OK) status = ig_pwrite(fd, "pack", sb, IG_PAGE, tail, e);
    if (status == INGOT_OK)
        status = ig_pwrite(fd, "pack", table.data, table.bytes, tail + IG_PAGE, e);
    for (int i = 1; i < REGION_TYPES; i++) {
        const uint64_t at =
            ig_get64(table.data + REGION_HEAD + (size_t)(i - 1) * REGION_RECORD + 8);
        if (status == INGOT_OK)
            status = ig_pwrite(fd, "pack", regions[i].data, regions[i].bytes, at, e);
        free(regions[i].data);
    }
    free(table.data);
    return status;
}

/* A pack of the store under a digest made from its content digest; that digest is returned. */
static inline ingot_status mini_pack_publish(const struct ig_store *s, const struct mini_pack *m,
                                             uint8_t digest[IG_HASH], ingot_error *e)
{
    struct ig_temp t;
    char hex[65], file[80];
    ig_sha256(digest, m->content, IG_HASH);
    ig_hex(hex, digest, IG_HASH);
    snprintf(file, sizeof file, "%s.ingot", hex);
    ingot_status status = ig_temp_open(s, &t, e);
    if (status != INGOT_OK) return status;
    status = mini_pack_write(t.fd, m, e);
    if (status != INGOT_OK) {
        ig_temp_discard(&t);
        return status;
    }
    return ig_temp_publish(s, &t, file, e);
}

#endif
