/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding the tables of the tail into memory; ingot-pack(5). */
#include "store/pack_tables.h"

#include <stdlib.h>
#include <string.h>

static int dtype_name_cmp(const void *a, const void *b)
{
    return strcmp(ig_dtypes[*(const uint32_t *)a].name, ig_dtypes[*(const uint32_t *)b].name);
}

uint32_t ig_tables_dtypes(const struct ig_tail *t, uint32_t list[IG_DTYPES],
                          uint32_t index[IG_DTYPES])
{
    bool used[IG_DTYPES] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->nrows; i++) used[t->rows[i].dtype] = true;
    for (uint32_t i = 0; i < t->nlinks; i++) used[t->links[i].logical] = true;
    for (uint32_t d = 0; d < IG_DTYPES; d++)
        if (used[d]) list[n++] = d;
    qsort(list, n, sizeof *list, dtype_name_cmp);
    for (uint32_t i = 0; i < n; i++) index[list[i]] = i;
    return n;
}

/* Every string of the pool, in its order. */
typedef void string_fn(void *ctx, const char *s, size_t n);

static void each_string(const struct ig_tail *t, string_fn *fn, void *ctx)
{
    uint32_t list[IG_DTYPES], index[IG_DTYPES];
    const uint32_t n = ig_tables_dtypes(t, list, index);
    for (uint32_t i = 0; i < t->nrows; i++) fn(ctx, t->rows[i].name, t->rows[i].name_len);
    for (uint32_t i = 0; i < n; i++)
        fn(ctx, ig_dtypes[list[i]].name, strlen(ig_dtypes[list[i]].name));
    for (uint32_t i = 0; i < t->nlinks; i++) {
        fn(ctx, t->links[i].module, t->links[i].module_len);
        fn(ctx, t->links[i].pointer, t->links[i].pointer_len);
    }
    for (uint32_t i = 0; i < t->nblobs; i++) fn(ctx, t->blob_names[i], strlen(t->blob_names[i]));
}

static void add_length(void *ctx, const char *s, size_t n)
{
    (void)s;
    *(uint64_t *)ctx += n;
}

static void append(void *ctx, const char *s, size_t n)
{
    uint8_t **at = ctx;
    if (n) memcpy(*at, s, n);
    *at += n;
}

void ig_tables_lengths(const struct ig_tail *t, uint64_t lengths[REGION_TYPES])
{
    uint32_t list[IG_DTYPES], index[IG_DTYPES];
    memset(lengths, 0, REGION_TYPES * sizeof *lengths);
    lengths[REGION_XXH] = (t->weights_len + IG_SPAN - 1) / IG_SPAN * XXH_SIZE;
    lengths[REGION_ROWS] = (uint64_t)t->nrows * ROW_SIZE;
    lengths[REGION_EXTENTS] = (uint64_t)t->nextents * EXTENT_SIZE;
    lengths[REGION_LINKS] = (uint64_t)t->nlinks * LINK_SIZE;
    lengths[REGION_DTYPES] = (uint64_t)ig_tables_dtypes(t, list, index) * DTYPE_SIZE;
    each_string(t, add_length, &lengths[REGION_STRINGS]);
    for (uint32_t i = 0; i < t->nrows; i++)
        lengths[REGION_SHAPES] += (uint64_t)t->rows[i].rank * SHAPE_SIZE;
    lengths[REGION_BLOBS] = (uint64_t)t->nblobs * BLOB_SIZE;
    for (uint32_t i = 0; i < t->nblobs; i++)
        lengths[REGION_BLOB_DATA] =
            ig_round_up(lengths[REGION_BLOB_DATA], BLOB_ALIGN) + t->blob_bytes[i];
}

static void encode_rows(const struct ig_tail *t, uint8_t *r)
{
    uint32_t list[IG_DTYPES], index[IG_DTYPES];
    uint64_t name = 0, shape = 0;
    ig_tables_dtypes(t, list, index);
    for (uint32_t i = 0; i < t->nrows; i++, r += ROW_SIZE) {
        const struct ig_row *row = &t->rows[i];
        ig_put64(r + ROW_NAME, name);
        ig_put32(r + ROW_NAME_LEN, row->name_len);
        ig_put32(r + ROW_DTYPE, index[row->dtype]);
        ig_put64(r + ROW_SHAPE, shape);
        ig_put32(r + ROW_RANK, row->rank);
        ig_put32(r + ROW_FLAGS, row->flags);
        ig_put32(r + ROW_EXTENT, row->extent);
        ig_put32(r + ROW_SOURCE, row->source);
        ig_put64(r + ROW_OFFSET, row->offset);
        ig_put64(r + ROW_BYTES, row->bytes);
        ig_put32(r + ROW_LINK, row->link);
        ig_put32(r + ROW_NLINKS, row->nlinks);
        memcpy(r + ROW_DIGEST, row->digest, IG_HASH);
        name += row->name_len;
        shape += row->rank;
    }
}

static void encode_extents(const struct ig_tail *t, uint8_t *r)
{
    for (uint32_t i = 0; i < t->nextents; i++, r += EXTENT_SIZE) {
        ig_put64(r + EXTENT_OFFSET, t->extents[i].offset);
        ig_put64(r + EXTENT_BYTES, t->extents[i].bytes);
        ig_put32(r + EXTENT_WHERE, t->extents[i].where);
        ig_put32(r + EXTENT_FLAGS, t->extents[i].flags);
    }
}

static void encode_links(const struct ig_tail *t, uint8_t *r, uint64_t string)
{
    uint32_t list[IG_DTYPES], index[IG_DTYPES];
    ig_tables_dtypes(t, list, index);
    for (uint32_t i = 0; i < t->nlinks; i++, r += LINK_SIZE) {
        const struct ig_link *k = &t->links[i];
        ig_put32(r + LINK_SUBJECT, k->subject);
        ig_put32(r + LINK_OBJECT, k->object);
        ig_put64(r + LINK_MODULE, k->module_len ? string : 0);
        ig_put32(r + LINK_MODULE_LEN, k->module_len);
        string += k->module_len;
        ig_put32(r + LINK_ROLE, k->role);
        ig_put32(r + LINK_STAGE, k->stage);
        ig_put32(r + LINK_OP, k->op);
        ig_put32(r + LINK_GRAN, k->gran);
        ig_put32(r + LINK_LOGICAL, index[k->logical]);
        ig_put64(r + LINK_BLOCK, k->block[0]);
        ig_put64(r + LINK_BLOCK + 8, k->block[1]);
        ig_put32(r + LINK_PACKING, k->packing);
        ig_put32(r + LINK_ENCODING, k->encoding);
        ig_put32(r + LINK_BLOB, k->blob);
        ig_put32(r + LINK_POINTER_LEN, k->pointer_len);
        ig_put64(r + LINK_POINTER, k->pointer_len ? string : 0);
        string += k->pointer_len;
    }
}

/* Names of rows, then of dtypes: where the links' strings start. */
static uint64_t strings_of_rows(const struct ig_tail *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->nrows; i++) n += t->rows[i].name_len;
    return n;
}

static uint64_t encode_dtypes(const struct ig_tail *t, uint8_t *r)
{
    uint32_t list[IG_DTYPES], index[IG_DTYPES];
    uint64_t string = strings_of_rows(t);
    const uint32_t n = ig_tables_dtypes(t, list, index);
    for (uint32_t i = 0; i < n; i++) {
        const struct ig_dtype *d = &ig_dtypes[list[i]];
        if (r) {
            ig_put64(r + i * DTYPE_SIZE + DTYPE_NAME, string);
            ig_put32(r + i * DTYPE_SIZE + DTYPE_NAME_LEN, (uint32_t)strlen(d->name));
            ig_put32(r + i * DTYPE_SIZE + DTYPE_BITS, d->bits);
        }
        string += strlen(d->name);
    }
    return string;
}

static void encode_blobs(const struct ig_tail *t, uint8_t *r, const struct ig_blob_place *places)
{
    uint64_t string = encode_dtypes(t, NULL);
    for (uint32_t i = 0; i < t->nlinks; i++)
        string += t->links[i].module_len + t->links[i].pointer_len;
    for (uint32_t i = 0; i < t->nblobs; i++, r += BLOB_SIZE) {
        const uint32_t len = (uint32_t)strlen(t->blob_names[i]);
        ig_put64(r + BLOB_NAME, string);
        ig_put32(r + BLOB_NAME_LEN, len);
        ig_put32(r + BLOB_KIND, t->blob_kinds[i]);
        ig_put64(r + BLOB_OFFSET, places[i].offset);
        ig_put64(r + BLOB_BYTES, t->blob_bytes[i]);
        memcpy(r + BLOB_SHA256, places[i].sha256, IG_HASH);
        string += len;
    }
}

void ig_tables_encode(const struct ig_tail *t, int region, uint8_t *out,
                      const struct ig_blob_place *places)
{
    switch (region) {
    case REGION_ROWS:
        encode_rows(t, out);
        break;
    case REGION_EXTENTS:
        encode_extents(t, out);
        break;
    case REGION_LINKS:
        encode_links(t, out, encode_dtypes(t, NULL));
        break;
    case REGION_DTYPES:
        encode_dtypes(t, out);
        break;
    case REGION_STRINGS:
        each_string(t, append, &out);
        break;
    case REGION_SHAPES:
        for (uint32_t i = 0; i < t->nrows; i++)
            for (uint32_t d = 0; d < t->rows[i].rank; d++, out += SHAPE_SIZE)
                ig_put64(out, t->rows[i].shape[d]);
        break;
    case REGION_BLOBS:
        encode_blobs(t, out, places);
        break;
    default:
        break;
    }
}
