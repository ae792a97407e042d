/* SPDX-License-Identifier: Apache-2.0 */
/* The region table and the private copies of what it lists. */
#include "store/pack_private.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Tables beyond this are refused rather than allocated: a sparse file could claim anything.
 * It is room for some thirty million tensors. */
#define TABLES_MOST ((uint64_t)4 << 30)

static const char *const region_names[REGION_TYPES] = {
    [REGION_XXH] = "XXH3 table",       [REGION_ROWS] = "tensor table",
    [REGION_EXTENTS] = "extent table", [REGION_LINKS] = "link table",
    [REGION_DTYPES] = "dtype table",   [REGION_STRINGS] = "string pool",
    [REGION_SHAPES] = "shape pool",    [REGION_BLOBS] = "blob table",
    [REGION_BLOB_DATA] = "blob data",  [REGION_MANIFEST] = "manifest",
    [REGION_FRONTIER] = "frontier",
};

static ingot_status check_table(struct ig_pack *p, const uint8_t *head, uint32_t n, uint64_t at,
                                ingot_error *e)
{
    const size_t bytes = REGION_HEAD + (size_t)n * REGION_RECORD;
    uint8_t *copy = malloc(bytes);
    if (!copy) return ig_no_memory(e);
    memcpy(copy, head, bytes);
    memset(copy + 16, 0, 8);
    const uint64_t xxh = ig_xxh64(copy, bytes);
    free(copy);
    if (xxh != ig_get64(head + 16))
        return pack_fail(p, e, at + 16, "region table is damaged: its XXH3-64 does not match");
    if (!ig_all_zero(head + 24, REGION_HEAD - 24))
        return pack_fail(p, e, at + 24, "reserved bytes of the region table are not zero");
    return INGOT_OK;
}

/* One record: its place after `*end`, then its type. */
static ingot_status take_record(struct ig_pack *p, const uint8_t *r, uint64_t at, uint64_t *end,
                                ingot_error *e)
{
    static const uint64_t record_sizes[REGION_TYPES] = REGION_RECORD_SIZES;
    const uint32_t type = ig_get32(r), flags = ig_get32(r + 4);
    const uint64_t offset = ig_get64(r + 8), bytes = ig_get64(r + 16), size = ig_get64(r + 24);
    if (offset % IG_PAGE != 0 || offset < *end || offset > p->size || bytes > p->size - offset)
        return pack_fail(p, e, at, "region of type %u (%llu bytes at %llu) does not fit the tail",
                         type, (unsigned long long)bytes, (unsigned long long)offset);
    if (flags > REGION_REQUIRED || !ig_all_zero(r + 48, 16))
        return pack_fail(p, e, at, "region of type %u: unknown flags or reserved bytes not zero",
                         type);
    *end = ig_round_up(offset + bytes, IG_PAGE);
    if (type == 0 || type >= REGION_TYPES) {
        for (uint32_t i = 0; i < p->t->nextra; i++)
            if (p->t->extra[i].type == type)
                return pack_fail(p, e, at, "two regions of type %u", type);
        struct region *extra = &p->t->extra[p->t->nextra++];
        *extra = (struct region){.offset = offset, .bytes = bytes, .type = type};
        memcpy(extra->xxh, r + 32, sizeof extra->xxh);
        if (!(flags & REGION_REQUIRED)) return INGOT_OK;
        return pack_fail(p, e, at, "required region of unknown type %u", type);
    }
    struct region *region = &p->t->regions[type];
    if (region->offset)
        return pack_fail(p, e, at, "two regions of type %u (%s)", type, region_names[type]);
    if (!(flags & REGION_REQUIRED) || size != record_sizes[type] || (size && bytes % size != 0))
        return pack_fail(p, e, at,
                         "%s: record size %llu in %llu bytes, expected required records of %llu",
                         region_names[type], (unsigned long long)size, (unsigned long long)bytes,
                         (unsigned long long)record_sizes[type]);
    *region = (struct region){.offset = offset, .bytes = bytes};
    memcpy(region->xxh, r + 32, sizeof region->xxh);
    return INGOT_OK;
}

static ingot_status read_table(struct ig_pack *p, ingot_error *e)
{
    uint8_t head[REGION_HEAD];
    const uint64_t at = p->tail + IG_PAGE;
    return_if_error(ig_pread(p->fd, p->path, head, sizeof head, at, e));
    const uint32_t n = ig_get32(head + 8);
    if (memcmp(head, REGION_MAGIC, 8) != 0 || n == 0 || n > REGION_MOST ||
        ig_get32(head + 12) != REGION_RECORD)
        return pack_fail(p, e, at, "region table not found at the start of the tail");
    const uint64_t bytes = REGION_HEAD + (uint64_t)n * REGION_RECORD;
    if (bytes > p->size - at)
        return pack_fail(p, e, at, "region table of %u records does not fit the file", n);
    uint8_t *table = malloc((size_t)bytes);
    if (!table) return ig_no_memory(e);
    ingot_status status = ig_pread(p->fd, p->path, table, (size_t)bytes, at, e);
    if (status == INGOT_OK) status = check_table(p, table, n, at, e);
    uint64_t end = ig_round_up(at + bytes, IG_PAGE);
    p->t->regions_end = at + bytes;
    p->t->extra = ig_array(n, sizeof *p->t->extra);
    if (!p->t->extra && status == INGOT_OK) status = ig_no_memory(e);
    for (uint32_t i = 0; i < n && status == INGOT_OK; i++) {
        const size_t off = REGION_HEAD + (size_t)i * REGION_RECORD;
        status = take_record(p, table + off, at + off, &end, e);
    }
    free(table);
    if (status == INGOT_OK && end != p->size)
        status = pack_fail(p, e, at, "regions end at %llu, expected the end of the file",
                           (unsigned long long)end);
    return status;
}

static bool stays_on_disk(int type)
{
    return type == REGION_XXH || type == REGION_BLOB_DATA;
}

static ingot_status copy_region(struct ig_pack *p, int type, ingot_error *e)
{
    struct region *r = &p->t->regions[type];
    r->data = malloc(r->bytes ? (size_t)r->bytes : 1);
    if (!r->data) return ig_no_memory(e);
    return_if_error(ig_pread(p->fd, p->path, r->data, (size_t)r->bytes, r->offset, e));
    uint8_t xxh[16];
    ig_xxh128(xxh, r->data, (size_t)r->bytes);
    if (memcmp(xxh, r->xxh, sizeof xxh) != 0)
        return pack_fail(p, e, r->offset, "%s is damaged: its XXH3-128 does not match",
                         region_names[type]);
    return INGOT_OK;
}

ingot_status ig_pack_read_regions(struct ig_pack *p, ingot_error *e)
{
    return_if_error(read_table(p, e));
    struct region *r = p->t->regions;
    uint64_t sum = 0;
    for (int type = 1; type < REGION_TYPES; type++) {
        if (!r[type].offset)
            return pack_fail(p, e, p->tail + IG_PAGE, "%s is missing", region_names[type]);
        if (!stays_on_disk(type)) sum += r[type].bytes;
    }
    if (sum > TABLES_MOST)
        return pack_fail(p, e, p->tail,
                         "tables of %llu bytes, more than the %llu this reader takes",
                         (unsigned long long)sum, (unsigned long long)TABLES_MOST);
    for (int type = 1; type < REGION_TYPES; type++)
        if (!stays_on_disk(type)) return_if_error(copy_region(p, type, e));
    uint64_t *shapes = (uint64_t *)(void *)r[REGION_SHAPES].data;
    for (uint64_t i = 0; i < r[REGION_SHAPES].bytes / SHAPE_SIZE; i++)
        shapes[i] = le64toh(shapes[i]);
    p->nrows = (uint32_t)(r[REGION_ROWS].bytes / ROW_SIZE);
    p->nextents = (uint32_t)(r[REGION_EXTENTS].bytes / EXTENT_SIZE);
    p->nlinks = (uint32_t)(r[REGION_LINKS].bytes / LINK_SIZE);
    p->nblobs = (uint32_t)(r[REGION_BLOBS].bytes / BLOB_SIZE);
    p->t->ndtypes = (uint32_t)(r[REGION_DTYPES].bytes / DTYPE_SIZE);
    p->xxh = r[REGION_XXH].offset;
    p->nxxh = r[REGION_XXH].bytes / XXH_SIZE;
    p->frontier = r[REGION_FRONTIER].offset;
    p->nfrontier = r[REGION_FRONTIER].bytes / IG_HASH;
    return INGOT_OK;
}
