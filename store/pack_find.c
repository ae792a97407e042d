/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in an open pack. */
#include "store/pack_private.h"

#include <stdlib.h>
#include <string.h>

/* Order of a row against a place in the table: name, shadow, source.  Equal names are not few
 * where a pack was made to be slow. */
static int row_cmp(const struct ig_row *row, const char *name, size_t len, bool shadow,
                   uint32_t source)
{
    const int order = ig_bytes_cmp(row->name, row->name_len, name, len);
    const bool is_shadow = row->flags & IG_ROW_SHADOW;
    if (order || is_shadow != shadow) return order ? order : is_shadow ? 1 : -1;
    return shadow ? (row->source > source) - (row->source < source) : 0;
}

static uint32_t find(const struct ig_pack *p, const char *name, size_t len, bool shadow,
                     uint32_t source, struct ig_row *row)
{
    uint32_t low = 0, high = p->nrows;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        ig_pack_row(p, mid, row);
        const int order = row_cmp(row, name, len, shadow, source);
        if (order == 0) return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return IG_NONE;
}

uint32_t ig_pack_find(const struct ig_pack *p, const char *name, size_t len)
{
    struct ig_row row;
    return find(p, name, len, false, 0, &row);
}

uint32_t ig_pack_find_in(const struct ig_pack *p, const char *name, size_t len, uint32_t source)
{
    struct ig_row row;
    const uint32_t i = find(p, name, len, false, 0, &row);
    if (i != IG_NONE && row.source == source) return i;
    return find(p, name, len, true, source, &row);
}

uint64_t ig_pack_pos(const struct ig_pack *p, const struct ig_row *row)
{
    if (row->extent == IG_NONE) return 0;
    struct ig_extent extent;
    ig_pack_extent(p, row->extent, &extent);
    return extent.offset + row->offset;
}

uint32_t ig_pack_find_blob(const struct ig_pack *p, const char *name, uint32_t kind)
{
    uint32_t low = 0, high = p->nblobs;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        struct ig_blob blob;
        ig_pack_blob(p, mid, &blob);
        int order = ig_bytes_cmp(blob.name, blob.name_len, name, strlen(name));
        if (order == 0) order = (blob.kind > kind) - (blob.kind < kind);
        if (order == 0) return mid;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return IG_NONE;
}

static bool is_kind(const struct ig_pack *p, const char *kind)
{
    const json_t *v = json_object_get(json_object_get(p->manifest, "derivation"), "kind");
    return strcmp(json_string_value(v), kind) == 0;
}

bool ig_pack_is_inputs(const struct ig_pack *p)
{
    return is_kind(p, "inputs");
}

bool ig_pack_is_derived(const struct ig_pack *p)
{
    return !is_kind(p, "identity") && !ig_pack_is_inputs(p);
}
