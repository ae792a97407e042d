/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that every reader checks before it uses a table, in one pass over each.
 * Pools must be used up in order, without sharing, so that no byte of them is unaccounted for.
 */
#include "store/pack_private.h"

#include <string.h>

bool ig_tensor_bytes(uint32_t dtype, uint32_t rank, const uint64_t *shape, uint64_t *bytes)
{
    /* Left to right, as safetensors does: an overflow before a zero is an overflow. */
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, shape[i], &n)) return false;
    if (__builtin_mul_overflow(n, (uint64_t)ig_dtypes[dtype].bits, &n) || n % 8 != 0) return false;
    *bytes = n / 8;
    return true;
}

ingot_status ig_pack_take_string(struct ig_pack *p, struct ig_pack_used *u, uint64_t offset,
                                 uint64_t len, uint64_t record, ingot_error *e)
{
    if (offset != u->strings || len > p->t->regions[REGION_STRINGS].bytes - u->strings)
        return pack_fail(p, e, record, "string of %llu bytes at %llu of the pool, expected at %llu",
                         (unsigned long long)len, (unsigned long long)offset,
                         (unsigned long long)u->strings);
    u->strings += len;
    const char *s = (const char *)p->t->regions[REGION_STRINGS].data + offset;
    if (memchr(s, 0, len) || !ig_utf8_valid(s, len))
        return pack_fail(p, e, record, "name \"%s\" is not UTF-8 without NUL", ig_esc(s, len).s);
    return INGOT_OK;
}

static ingot_status check_dtypes(struct ig_pack *p, uint64_t strings, ingot_error *e)
{
    /* Dtypes come first because rows need them, although their names follow the rows'. */
    int last = -1;
    if (p->t->ndtypes > IG_DTYPES)
        return pack_fail(p, e, ig_pack_at(p, REGION_DTYPES, 0, 0), "%u dtypes, expected at most %d",
                         p->t->ndtypes, IG_DTYPES);
    for (uint32_t i = 0; i < p->t->ndtypes; i++) {
        const uint8_t *r = p->t->regions[REGION_DTYPES].data + i * DTYPE_SIZE;
        const uint64_t record = ig_pack_at(p, REGION_DTYPES, i, DTYPE_SIZE);
        const uint64_t offset = ig_get64(r + DTYPE_NAME);
        const uint32_t len = ig_get32(r + DTYPE_NAME_LEN);
        if (offset > strings || len > strings - offset || len == 0)
            return pack_fail(p, e, record, "dtype name outside the string pool");
        const char *name = (const char *)p->t->regions[REGION_STRINGS].data + offset;
        const int dtype = ig_dtype_find(name, len);
        if (dtype < 0 || ig_dtypes[dtype].bits != ig_get32(r + DTYPE_BITS))
            return pack_fail(p, e, record, "unknown dtype \"%s\" of %u bits", ig_esc(name, len).s,
                             ig_get32(r + DTYPE_BITS));
        if (last >= 0 && strcmp(ig_dtypes[last].name, ig_dtypes[dtype].name) >= 0)
            return pack_fail(p, e, record, "dtypes are not ascending at \"%s\"",
                             ig_dtypes[dtype].name);
        if (!ig_all_zero(r + DTYPE_ZERO, DTYPE_SIZE - DTYPE_ZERO))
            return pack_fail(p, e, record, "reserved bytes of a dtype are not zero");
        p->t->dtypes[i] = (uint32_t)dtype;
        last = dtype;
    }
    return INGOT_OK;
}

static ingot_status check_extents(struct ig_pack *p, ingot_error *e)
{
    uint64_t free_from = p->weights;
    for (uint32_t i = 0; i < p->nextents; i++) {
        struct ig_extent x;
        ig_pack_extent(p, i, &x);
        const uint64_t record = ig_pack_at(p, REGION_EXTENTS, i, EXTENT_SIZE);
        if (x.where != 0)
            return pack_fail(p, e, record, "extent %u lies in file %u, expected this one (0)", i,
                             x.where);
        if (x.offset % IG_PAGE != 0 || x.offset < free_from || x.bytes == 0 ||
            x.bytes > p->weights_len || x.offset > p->tail - x.bytes)
            return pack_fail(p, e, record,
                             "extent %u (%llu bytes at %llu) overlaps or leaves the weights", i,
                             (unsigned long long)x.bytes, (unsigned long long)x.offset);
        const uint8_t *r = p->t->regions[REGION_EXTENTS].data + (size_t)i * EXTENT_SIZE;
        if (x.flags > IG_EXTENT_SMALL || ig_get64(r + EXTENT_ZERO) != 0)
            return pack_fail(p, e, record, "extent %u: unknown flags or reserved bytes not zero",
                             i);
        free_from = ig_round_up(x.offset + x.bytes, IG_PAGE);
    }
    return INGOT_OK;
}

/* Names ascending, then shadow, then source. */
static bool in_order(const struct ig_row *a, const struct ig_row *b)
{
    const int order = ig_bytes_cmp(a->name, a->name_len, b->name, b->name_len);
    if (order) return order < 0;
    const uint32_t sa = a->flags & IG_ROW_SHADOW, sb = b->flags & IG_ROW_SHADOW;
    return sa < sb || (sa && sa == sb && a->source < b->source);
}

static const char *row_fault(const struct ig_pack *p, const struct ig_row *row, uint32_t links)
{
    uint64_t bytes;
    struct ig_extent x;
    const uint32_t f = row->flags;
    const bool view = f & IG_ROW_VIEW;
    if (f > (IG_ROW_VIEW | IG_ROW_TIED | IG_ROW_SHADOW) || (view && f != IG_ROW_VIEW) ||
        (f & IG_ROW_SHADOW && f != IG_ROW_SHADOW))
        return "flags contradict each other";
    if (view ? row->source != IG_NONE : row->source >= p->nsources) return "source out of range";
    if (!ig_tensor_bytes(row->dtype, row->rank, row->shape, &bytes) || bytes != row->bytes)
        return "bytes do not match dtype and shape";
    if (row->bytes == 0) {
        if (row->extent != IG_NONE || row->offset != 0) return "no bytes, yet an extent";
    } else {
        if (row->extent >= p->nextents) return "extent out of range";
        ig_pack_extent(p, row->extent, &x);
        if (row->bytes > x.bytes || row->offset > x.bytes - row->bytes) return "outside its extent";
    }
    if (row->nlinks ? row->link != links || row->nlinks > p->nlinks - links : row->link != 0)
        return "links are not consecutive";
    return row->nlinks && f & IG_ROW_SHADOW ? "a shadow row with links" : NULL;
}

/* Names ascend; a copy's name is not already that of a tensor of the same source. */
static const char *order_fault(const struct ig_row *last, const struct ig_row *row, uint32_t *own)
{
    const bool shadow = row->flags & IG_ROW_SHADOW;
    if (last->name && !in_order(last, row)) return "out of order, or a name twice";
    if (!last->name || ig_bytes_cmp(last->name, last->name_len, row->name, row->name_len) != 0)
        *own = IG_NONE;
    if (!shadow) *own = row->source;
    return shadow && row->source == *own ? "a copy from its own source" : NULL;
}

static ingot_status check_rows(struct ig_pack *p, struct ig_pack_used *u, uint32_t *links,
                               ingot_error *e)
{
    struct ig_row last = {0};
    uint32_t own = IG_NONE; /* source of the tensor that has the name of this row */
    const uint64_t nshapes = p->t->regions[REGION_SHAPES].bytes / SHAPE_SIZE;
    for (uint32_t i = 0; i < p->nrows; i++) {
        const uint8_t *r = p->t->regions[REGION_ROWS].data + (size_t)i * ROW_SIZE;
        const uint64_t record = ig_pack_at(p, REGION_ROWS, i, ROW_SIZE);
        const uint32_t len = ig_get32(r + ROW_NAME_LEN), rank = ig_get32(r + ROW_RANK);
        return_if_error(ig_pack_take_string(p, u, ig_get64(r + ROW_NAME), len, record, e));
        if (len == 0 || ig_get32(r + ROW_DTYPE) >= p->t->ndtypes)
            return pack_fail(p, e, record, "tensor %u: empty name or dtype out of range", i);
        if (ig_get64(r + ROW_SHAPE) != u->shapes || rank > nshapes - u->shapes)
            return pack_fail(p, e, record, "tensor %u: shape outside its place in the pool", i);
        u->shapes += rank;
        u->dtypes |= 1u << ig_get32(r + ROW_DTYPE);
        struct ig_row row;
        ig_pack_row(p, i, &row);
        const char *fault = row_fault(p, &row, *links);
        if (!fault) fault = order_fault(&last, &row, &own);
        if (fault) {
            pack_fail(p, e, record, "tensor \"%s\": %s", ig_esc(row.name, len).s, fault);
            return ig_at(e, NULL, row.name, len);
        }
        *links += row.nlinks;
        last = row;
    }
    return INGOT_OK;
}

static ingot_status check_blobs(struct ig_pack *p, struct ig_pack_used *u, ingot_error *e)
{
    const struct region *data = &p->t->regions[REGION_BLOB_DATA];
    uint64_t end = data->offset;
    struct ig_blob last = {0};
    for (uint32_t i = 0; i < p->nblobs; i++) {
        struct ig_blob b;
        const uint64_t record = ig_pack_at(p, REGION_BLOBS, i, BLOB_SIZE);
        const uint8_t *r = p->t->regions[REGION_BLOBS].data + (size_t)i * BLOB_SIZE;
        const uint32_t len = ig_get32(r + BLOB_NAME_LEN);
        return_if_error(ig_pack_take_string(p, u, ig_get64(r + BLOB_NAME), len, record, e));
        ig_pack_blob(p, i, &b);
        if (!ig_safe_path(b.name, b.name_len) || b.kind > IG_BLOB_HEADER)
            return pack_fail(p, e, record, "blob \"%s\": not a relative path, or unknown kind %u",
                             ig_esc(b.name, b.name_len).s, b.kind);
        const int order = i ? ig_bytes_cmp(last.name, last.name_len, b.name, b.name_len) : -1;
        if (order > 0 || (order == 0 && last.kind >= b.kind))
            return pack_fail(p, e, record, "blobs are not ascending at \"%s\"",
                             ig_esc(b.name, b.name_len).s);
        end = ig_round_up(end, BLOB_ALIGN);
        if (b.offset != end || b.bytes > data->offset + data->bytes - end)
            return pack_fail(p, e, record, "blob \"%s\" is not at its place in the blob data",
                             ig_esc(b.name, b.name_len).s);
        end += b.bytes;
        last = b;
    }
    if (end != data->offset + data->bytes)
        return pack_fail(p, e, data->offset, "blob data has %llu bytes, expected %llu",
                         (unsigned long long)data->bytes, (unsigned long long)(end - data->offset));
    return INGOT_OK;
}

static ingot_status check_counts(struct ig_pack *p, ingot_error *e)
{
    const uint64_t spans = p->weights_len / IG_SPAN + (p->weights_len % IG_SPAN != 0);
    if (p->nxxh != spans)
        return pack_fail(p, e, p->xxh, "XXH3 table has %llu records, expected %llu",
                         (unsigned long long)p->nxxh, (unsigned long long)spans);
    uint64_t frontier = 0, node = p->tail / IG_PAGE;
    for (unsigned level = 0; ig_tree_nodes(p->size, level) > 1; level++, node /= IG_FAN)
        frontier += node % IG_FAN;
    if (p->nfrontier != frontier)
        return pack_fail(p, e, p->frontier, "frontier has %llu hashes, expected %llu",
                         (unsigned long long)p->nfrontier, (unsigned long long)frontier);
    return INGOT_OK;
}

ingot_status ig_pack_check_tables(struct ig_pack *p, ingot_error *e)
{
    const struct region *r = p->t->regions;
    struct ig_pack_used u = {0};
    uint32_t row_links = 0;
    if (r[REGION_ROWS].bytes / ROW_SIZE >= IG_NONE ||
        r[REGION_LINKS].bytes / LINK_SIZE >= IG_NONE ||
        r[REGION_EXTENTS].bytes / EXTENT_SIZE >= IG_NONE ||
        r[REGION_BLOBS].bytes / BLOB_SIZE >= IG_NONE)
        return pack_fail(p, e, p->tail, "a table of 2^32 records or more");
    return_if_error(check_counts(p, e));
    return_if_error(check_extents(p, e));
    return_if_error(check_dtypes(p, r[REGION_STRINGS].bytes, e));
    return_if_error(check_rows(p, &u, &row_links, e));
    for (uint32_t i = 0; i < p->t->ndtypes; i++) {
        const uint8_t *d = r[REGION_DTYPES].data + i * DTYPE_SIZE;
        return_if_error(ig_pack_take_string(p, &u, ig_get64(d + DTYPE_NAME),
                                            ig_get32(d + DTYPE_NAME_LEN),
                                            ig_pack_at(p, REGION_DTYPES, i, DTYPE_SIZE), e));
    }
    return_if_error(ig_pack_check_links(p, &u, row_links, e));
    if (u.dtypes != (1u << p->t->ndtypes) - 1)
        return pack_fail(p, e, r[REGION_DTYPES].offset,
                         "a dtype that neither a row nor a link has");
    return_if_error(check_blobs(p, &u, e));
    if (u.strings != r[REGION_STRINGS].bytes || u.shapes != r[REGION_SHAPES].bytes / SHAPE_SIZE)
        return pack_fail(p, e, r[REGION_STRINGS].offset, "pools hold more than the tables use");
    return INGOT_OK;
}
