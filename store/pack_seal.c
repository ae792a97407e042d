/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of writing follows from what depends on what: the superblock needs only sizes;
 * with its leaf the tree is known up to the tail, and with that the frontier; the regions
 * come next, the region table after their hashes, and the tail's own leaves last.
 */
#include "store/pack_tables.h"
#include "store/tree_file.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)1 << 20)

struct seal {
    int fd, leaves_fd;
    const char *path;
    const struct ig_tail *t;
    const char *manifest;
    uint64_t offset[REGION_TYPES], length[REGION_TYPES];
    uint8_t xxh[REGION_TYPES][16];
    uint64_t tail, size;
    struct ig_blob_place *places;
    struct ig_tree tree;
    struct ig_tree_file tree_file;
    uint8_t *window;
};

static uint64_t regions_at(uint64_t tail)
{
    return tail + ig_round_up(IG_PAGE + REGION_HEAD + (REGION_TYPES - 1) * REGION_RECORD, IG_PAGE);
}

/* Offsets of all regions and the size of the file.  The frontier's length depends on the
 * number of levels, and that on the size: settled by trying from below. */
static void lay_out(struct seal *s, size_t manifest_len)
{
    ig_tables_lengths(s->t, s->length);
    s->length[REGION_MANIFEST] = manifest_len;
    s->tail = WEIGHTS_AT + s->t->weights_len;
    uint64_t at = regions_at(s->tail);
    for (int type = 1; type < REGION_FRONTIER; type++) {
        s->offset[type] = at;
        at = ig_round_up(at + s->length[type], IG_PAGE);
    }
    s->offset[REGION_FRONTIER] = at;
    for (uint64_t before = UINT64_MAX; before != s->length[REGION_FRONTIER];) {
        before = s->length[REGION_FRONTIER];
        s->size = ig_round_up(at + before, IG_PAGE);
        uint64_t node = s->tail / IG_PAGE, hashes = 0;
        for (unsigned level = 0; ig_tree_nodes(s->size, level) > 1; level++, node /= IG_FAN)
            hashes += node % IG_FAN;
        s->length[REGION_FRONTIER] = hashes * IG_HASH;
    }
}

ingot_status ig_tail_size(const struct ig_tail *t, size_t manifest_len, uint64_t *size,
                          ingot_error *e)
{
    struct seal *s = calloc(1, sizeof *s);
    if (!s) return ig_no_memory(e);
    s->t = t;
    lay_out(s, manifest_len);
    *size = s->size;
    free(s);
    return INGOT_OK;
}

static void make_superblock(const struct seal *s, uint8_t sb[IG_PAGE])
{
    memset(sb, 0, IG_PAGE);
    memcpy(sb, PACK_MAGIC, 8);
    ig_put32(sb + SB_FORMAT, PACK_FORMAT);
    ig_put64(sb + SB_SIZE, s->size);
    ig_put64(sb + SB_WEIGHTS, WEIGHTS_AT);
    ig_put64(sb + SB_WEIGHTS_LEN, s->t->weights_len);
    ig_put64(sb + SB_TAIL, s->tail);
    ig_put64(sb + SB_TAIL_LEN, s->size - s->tail);
    ig_put64(sb + SB_XXH, ig_xxh64(sb, IG_PAGE));
}

/* Leaves [first, end) from the leaf file into the tree, and at their place in the sidecar. */
static ingot_status feed_leaves(struct seal *s, uint64_t first, uint64_t end, ingot_error *e)
{
    const uint64_t most = WINDOW / IG_HASH;
    while (first < end) {
        const uint64_t n = end - first < most ? end - first : most;
        return_if_error(
            ig_pread(s->leaves_fd, s->path, s->window, n * IG_HASH, first * IG_HASH, e));
        return_if_error(ig_tree_add(&s->tree, s->window, n, e));
        return_if_error(ig_pwrite(s->tree_file.fd, s->tree_file.path, s->window, n * IG_HASH,
                                  s->tree_file.at[0] + first * IG_HASH, e));
        first += n;
    }
    return INGOT_OK;
}

/* Page 0 and the zero pages behind it, then the weights: all that stands before the tail. */
static ingot_status feed_head(struct seal *s, ingot_error *e)
{
    const uint64_t zero_pages = WEIGHTS_AT / IG_PAGE - 1;
    make_superblock(s, s->window);
    return_if_error(ig_pwrite(s->fd, s->path, s->window, IG_PAGE, 0, e));
    return_if_error(ig_pwrite(s->fd, s->path, s->window, IG_PAGE, s->tail, e));
    memset(s->window + IG_PAGE, 0, zero_pages * IG_PAGE);
    return_if_error(
        ig_pwrite(s->fd, s->path, s->window + IG_PAGE, zero_pages * IG_PAGE, IG_PAGE, e));
    uint8_t leaves[(WEIGHTS_AT / IG_PAGE) * IG_HASH];
    ig_leaves(NULL, leaves, s->window, WEIGHTS_AT);
    return_if_error(ig_pwrite(s->leaves_fd, s->path, leaves, sizeof leaves, 0, e));
    return feed_leaves(s, 0, s->tail / IG_PAGE, e);
}

static ingot_status write_frontier(struct seal *s, ingot_error *e)
{
    uint8_t *all = calloc(1, s->length[REGION_FRONTIER] + 1);
    if (!all) return ig_no_memory(e);
    uint64_t n = 0;
    for (unsigned level = 0; ig_tree_nodes(s->size, level) > 1; level++) {
        const uint64_t hashes = s->tree.count[level] % IG_FAN;
        memcpy(all + n, s->tree.block[level], hashes * IG_HASH);
        n += hashes * IG_HASH;
    }
    ig_xxh128(s->xxh[REGION_FRONTIER], all, n);
    const ingot_status status = ig_pwrite(s->fd, s->path, all, n, s->offset[REGION_FRONTIER], e);
    free(all);
    return status;
}

static ingot_status copy_blob(struct seal *s, uint32_t i, struct ig_xxh *region, ingot_error *e)
{
    struct ig_sha sha;
    ig_sha_init(&sha);
    for (uint64_t at = 0; at < s->t->blob_bytes[i];) {
        const uint64_t left = s->t->blob_bytes[i] - at;
        const size_t n = left < WINDOW ? (size_t)left : WINDOW;
        return_if_error(s->t->read_blob(s->t->ctx, i, s->window, n, at, e));
        ig_sha_update(&sha, s->window, n);
        ig_xxh_update(region, s->window, n);
        return_if_error(ig_pwrite(s->fd, s->path, s->window, n, s->places[i].offset + at, e));
        at += n;
    }
    ig_sha_final(&sha, s->places[i].sha256);
    return INGOT_OK;
}

static ingot_status write_blobs(struct seal *s, ingot_error *e)
{
    static const uint8_t zeros[BLOB_ALIGN];
    struct ig_xxh *region = ig_xxh_new();
    if (!region) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    uint64_t at = s->offset[REGION_BLOB_DATA];
    for (uint32_t i = 0; i < s->t->nblobs && status == INGOT_OK; i++) {
        const uint64_t start = ig_round_up(at, BLOB_ALIGN);
        ig_xxh_update(region, zeros, (size_t)(start - at));
        s->places[i].offset = start;
        status = copy_blob(s, i, region, e);
        at = start + s->t->blob_bytes[i];
    }
    ig_xxh_final(region, s->xxh[REGION_BLOB_DATA]);
    ig_xxh_free(region);
    return status;
}

/* The XXH3 table grew while the weights were written, in a file of its own: writes of a few bytes
 * to the pack would have made every large one beside them wait. */
static ingot_status copy_xxh(struct seal *s, ingot_error *e)
{
    struct ig_xxh *x = ig_xxh_new();
    if (!x) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    for (uint64_t at = 0; at < s->length[REGION_XXH] && status == INGOT_OK;) {
        const uint64_t left = s->length[REGION_XXH] - at;
        const size_t n = left < WINDOW ? (size_t)left : WINDOW;
        status = ig_pread(s->t->xxh_fd, s->path, s->window, n, s->t->xxh_at + at, e);
        if (status != INGOT_OK) break;
        ig_xxh_update(x, s->window, n);
        status = ig_pwrite(s->fd, s->path, s->window, n, s->offset[REGION_XXH] + at, e);
        at += n;
    }
    ig_xxh_final(x, s->xxh[REGION_XXH]);
    ig_xxh_free(x);
    return status;
}

static ingot_status write_table(struct seal *s, int type, ingot_error *e)
{
    uint8_t *data = calloc(1, s->length[type] + 1);
    if (!data) return ig_no_memory(e);
    ig_tables_encode(s->t, type, data, s->places);
    ig_xxh128(s->xxh[type], data, s->length[type]);
    const ingot_status status =
        ig_pwrite(s->fd, s->path, data, s->length[type], s->offset[type], e);
    free(data);
    return status;
}

static ingot_status write_regions(struct seal *s, ingot_error *e)
{
    return_if_error(copy_xxh(s, e));
    return_if_error(write_blobs(s, e)); /* before the blob table, which has their SHA-256 */
    for (int type = REGION_ROWS; type <= REGION_BLOBS; type++)
        return_if_error(write_table(s, type, e));
    ig_xxh128(s->xxh[REGION_MANIFEST], s->manifest, s->length[REGION_MANIFEST]);
    return_if_error(ig_pwrite(s->fd, s->path, s->manifest, s->length[REGION_MANIFEST],
                              s->offset[REGION_MANIFEST], e));
    return write_frontier(s, e);
}

static ingot_status write_region_table(struct seal *s, ingot_error *e)
{
    static const uint64_t record_sizes[REGION_TYPES] = REGION_RECORD_SIZES;
    uint8_t table[REGION_HEAD + (REGION_TYPES - 1) * REGION_RECORD] = {0};
    memcpy(table, REGION_MAGIC, 8);
    ig_put32(table + 8, REGION_TYPES - 1);
    ig_put32(table + 12, REGION_RECORD);
    for (int type = 1; type < REGION_TYPES; type++) {
        uint8_t *r = table + REGION_HEAD + (size_t)(type - 1) * REGION_RECORD;
        ig_put32(r, (uint32_t)type);
        ig_put32(r + 4, REGION_REQUIRED);
        ig_put64(r + 8, s->offset[type]);
        ig_put64(r + 16, s->length[type]);
        ig_put64(r + 24, record_sizes[type]);
        memcpy(r + 32, s->xxh[type], 16);
    }
    ig_put64(table + 16, ig_xxh64(table, sizeof table));
    return ig_pwrite(s->fd, s->path, table, sizeof table, s->tail + IG_PAGE, e);
}

static ingot_status hash_tail(struct seal *s, ingot_error *e)
{
    uint8_t leaves[WINDOW / IG_PAGE * IG_HASH];
    for (uint64_t at = s->tail; at < s->size;) {
        const size_t n = s->size - at < WINDOW ? (size_t)(s->size - at) : WINDOW;
        return_if_error(ig_pread(s->fd, s->path, s->window, n, at, e));
        ig_leaves(NULL, leaves, s->window, n);
        return_if_error(ig_pwrite(s->leaves_fd, s->path, leaves, n / IG_PAGE * IG_HASH,
                                  at / IG_PAGE * IG_HASH, e));
        at += n;
    }
    return feed_leaves(s, s->tail / IG_PAGE, s->size / IG_PAGE, e);
}

static ingot_status run(struct seal *s, uint8_t digest[IG_HASH], ingot_error *e)
{
    /* Extends the file to its size (what is not written reads as zero) and cuts off what a
     * reservation may have left. */
    return_if_error(ig_truncate(s->fd, s->path, s->size, e));
    return_if_error(ig_truncate(s->tree_file.fd, s->tree_file.path, s->tree_file.size, e));
    return_if_error(feed_head(s, e));
    return_if_error(write_regions(s, e));
    return_if_error(write_region_table(s, e));
    return_if_error(hash_tail(s, e));
    return ig_tree_digest(&s->tree, s->size, digest, e);
}

ingot_status ig_pack_seal(int fd, const char *path, int leaves_fd, int tree_fd,
                          const struct ig_tail *t, const char *manifest, size_t manifest_len,
                          uint8_t digest[IG_HASH], ingot_error *e)
{
    struct seal *s = calloc(1, sizeof *s);
    ingot_status status = s ? INGOT_OK : ig_no_memory(e);
    if (!s) return status;
    s->fd = fd, s->leaves_fd = leaves_fd, s->path = path, s->t = t, s->manifest = manifest;
    s->places = ig_array(t->nblobs, sizeof *s->places);
    s->window = ig_pages(WINDOW);
    if (!s->places || !s->window) {
        status = ig_no_memory(e);
    } else {
        lay_out(s, manifest_len);
        ig_tree_init(&s->tree);
        ig_tree_file_init(&s->tree_file, tree_fd, path, s->size);
        s->tree.sink = ig_tree_file_sink;
        s->tree.ctx = &s->tree_file;
        status = run(s, digest, e);
    }
    free(s->places);
    free(s->window);
    free(s);
    return status;
}
