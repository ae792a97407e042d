/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a pack: superblock, tail, and the decoders of its records. */
#include "store/pack_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ingot_status ig_pack_fail(const struct ig_pack *p, ingot_error *e, uint64_t offset,
                          const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ig_fail(e, INGOT_ERR_PACK, "%s: %s (offset %llu)", p->path, text, (unsigned long long)offset);
    ig_at_offset(e, p->path, offset);
    return INGOT_ERR_PACK;
}

static ingot_status check_format(const struct ig_pack *p, const uint8_t *sb, ingot_error *e)
{
    if (memcmp(sb, PACK_MAGIC, 8) != 0)
        return pack_fail(p, e, 0, "not an ingot pack: wrong magic bytes");
    const uint32_t format = ig_get32(sb + SB_FORMAT);
    if (format != PACK_FORMAT)
        return pack_fail(p, e, SB_FORMAT, "pack format %u, expected %u", format, PACK_FORMAT);
    uint8_t copy[IG_PAGE];
    memcpy(copy, sb, IG_PAGE);
    memset(copy + SB_XXH, 0, 8);
    if (ig_xxh64(copy, IG_PAGE) != ig_get64(sb + SB_XXH))
        return pack_fail(p, e, SB_XXH, "superblock is damaged: its XXH3-64 does not match");
    const uint64_t need = ig_get64(sb + SB_NEED);
    if (need)
        return pack_fail(p, e, SB_NEED, "needs feature bit %d, which this version does not know",
                         __builtin_ctzll(need));
    if (ig_get32(sb + 12) != 0 || !ig_all_zero(sb + SB_END, IG_PAGE - SB_END))
        return pack_fail(p, e, SB_END, "reserved bytes of the superblock are not zero");
    return INGOT_OK;
}

static ingot_status check_sizes(struct ig_pack *p, const uint8_t *sb, ingot_error *e)
{
    p->weights = ig_get64(sb + SB_WEIGHTS);
    p->weights_len = ig_get64(sb + SB_WEIGHTS_LEN);
    p->tail = ig_get64(sb + SB_TAIL);
    p->tail_len = ig_get64(sb + SB_TAIL_LEN);
    const uint64_t size = ig_get64(sb + SB_SIZE);
    if (size != p->size)
        return pack_fail(p, e, SB_SIZE, "file has %llu bytes, expected %llu",
                         (unsigned long long)p->size, (unsigned long long)size);
    if (size % IG_PAGE != 0 || p->weights != WEIGHTS_AT || p->weights_len % IG_PAGE != 0 ||
        p->weights_len > size || p->tail != p->weights + p->weights_len ||
        p->tail_len < 2 * IG_PAGE || p->tail_len > size || p->tail + p->tail_len != size)
        return pack_fail(p, e, SB_WEIGHTS, "weights and tail do not fit the file of %llu bytes",
                         (unsigned long long)size);
    return INGOT_OK;
}

static ingot_status read_superblock(struct ig_pack *p, ingot_error *e)
{
    uint8_t *sb = p->t->superblock;
    uint8_t copy[IG_PAGE];
    if (p->size < IG_PAGE)
        return pack_fail(p, e, 0, "file has %llu bytes, expected at least %llu",
                         (unsigned long long)p->size, WEIGHTS_AT + 2 * IG_PAGE);
    return_if_error(ig_pread(p->fd, p->path, sb, IG_PAGE, 0, e));
    return_if_error(check_format(p, sb, e));
    return_if_error(check_sizes(p, sb, e));
    return_if_error(ig_pread(p->fd, p->path, copy, IG_PAGE, p->tail, e));
    if (memcmp(copy, sb, IG_PAGE) != 0)
        return pack_fail(p, e, p->tail, "the tail's copy of the superblock differs from page 0");
    return INGOT_OK;
}

ingot_status ig_pack_open_fd(int fd, const char *path, struct ig_pack *p, ingot_error *e)
{
    struct stat st;
    ingot_status status;
    *p = (struct ig_pack){.fd = fd};
    p->path = strdup(path);
    p->t = calloc(1, sizeof *p->t);
    if (!p->path || !p->t) {
        status = ig_no_memory(e);
        goto out;
    }
    if (fstat(fd, &st) != 0) {
        status = ig_fail_sys(e, errno, "%s: cannot stat", path);
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        status = ig_fail(e, INGOT_ERR_INPUT, "%s: not a regular file", path);
        goto out;
    }
    p->size = (uint64_t)st.st_size;
    if ((status = read_superblock(p, e)) != INGOT_OK) goto out;
    if ((status = ig_pack_read_regions(p, e)) != INGOT_OK) goto out;
    if ((status = ig_pack_read_manifest(p, e)) != INGOT_OK) goto out;
    status = ig_pack_check_tables(p, e);
out:
    if (status != INGOT_OK) ig_pack_close(p);
    return status;
}

ingot_status ig_pack_open(const char *path, struct ig_pack *p, ingot_error *e)
{
    *p = (struct ig_pack){.fd = -1};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    return ig_pack_open_fd(fd, path, p, e);
}

void ig_pack_close(struct ig_pack *p)
{
    if (!p->path && !p->t) return; /* zeroed or closed: fd is not ours */
    if (p->t)
        for (int i = 0; i < REGION_TYPES; i++) free(p->t->regions[i].data);
    if (p->t) free(p->t->extra);
    free(p->t);
    free(p->sources); /* names live in the manifest */
    json_decref(p->manifest);
    if (p->fd >= 0) close(p->fd);
    free(p->path);
    *p = (struct ig_pack){.fd = -1};
}

static const uint8_t *record(const struct ig_pack *p, int region, uint32_t i, size_t size)
{
    return p->t->regions[region].data + (size_t)i * size;
}

static const char *string(const struct ig_pack *p, uint64_t offset)
{
    return (const char *)p->t->regions[REGION_STRINGS].data + offset;
}

void ig_pack_row(const struct ig_pack *p, uint32_t i, struct ig_row *out)
{
    const uint8_t *r = record(p, REGION_ROWS, i, ROW_SIZE);
    *out = (struct ig_row){
        .name = string(p, ig_get64(r + ROW_NAME)),
        .name_len = ig_get32(r + ROW_NAME_LEN),
        .rank = ig_get32(r + ROW_RANK),
        .shape = (const uint64_t *)(const void *)p->t->regions[REGION_SHAPES].data +
                 ig_get64(r + ROW_SHAPE),
        .dtype = p->t->dtypes[ig_get32(r + ROW_DTYPE)],
        .flags = ig_get32(r + ROW_FLAGS),
        .extent = ig_get32(r + ROW_EXTENT),
        .source = ig_get32(r + ROW_SOURCE),
        .offset = ig_get64(r + ROW_OFFSET),
        .bytes = ig_get64(r + ROW_BYTES),
        .link = ig_get32(r + ROW_LINK),
        .nlinks = ig_get32(r + ROW_NLINKS),
    };
    memcpy(out->digest, r + ROW_DIGEST, IG_HASH);
}

void ig_pack_extent(const struct ig_pack *p, uint32_t i, struct ig_extent *out)
{
    const uint8_t *r = record(p, REGION_EXTENTS, i, EXTENT_SIZE);
    *out = (struct ig_extent){.offset = ig_get64(r + EXTENT_OFFSET),
                              .bytes = ig_get64(r + EXTENT_BYTES),
                              .where = ig_get32(r + EXTENT_WHERE),
                              .flags = ig_get32(r + EXTENT_FLAGS)};
}

void ig_pack_link(const struct ig_pack *p, uint32_t i, struct ig_link *out)
{
    const uint8_t *r = record(p, REGION_LINKS, i, LINK_SIZE);
    *out = (struct ig_link){
        .subject = ig_get32(r + LINK_SUBJECT),
        .object = ig_get32(r + LINK_OBJECT),
        .module = string(p, ig_get64(r + LINK_MODULE)),
        .module_len = ig_get32(r + LINK_MODULE_LEN),
        .role = ig_get32(r + LINK_ROLE),
        .stage = ig_get32(r + LINK_STAGE),
        .op = ig_get32(r + LINK_OP),
        .gran = ig_get32(r + LINK_GRAN),
        .block = {ig_get64(r + LINK_BLOCK), ig_get64(r + LINK_BLOCK + 8)},
        .logical = p->t->dtypes[ig_get32(r + LINK_LOGICAL)],
        .packing = ig_get32(r + LINK_PACKING),
        .encoding = ig_get32(r + LINK_ENCODING),
        .blob = ig_get32(r + LINK_BLOB),
        .pointer = string(p, ig_get64(r + LINK_POINTER)),
        .pointer_len = ig_get32(r + LINK_POINTER_LEN),
    };
}

void ig_pack_blob(const struct ig_pack *p, uint32_t i, struct ig_blob *out)
{
    const uint8_t *r = record(p, REGION_BLOBS, i, BLOB_SIZE);
    *out = (struct ig_blob){.name = string(p, ig_get64(r + BLOB_NAME)),
                            .name_len = ig_get32(r + BLOB_NAME_LEN),
                            .kind = ig_get32(r + BLOB_KIND),
                            .offset = ig_get64(r + BLOB_OFFSET),
                            .bytes = ig_get64(r + BLOB_BYTES)};
    memcpy(out->sha256, r + BLOB_SHA256, IG_HASH);
}

uint32_t ig_pack_tail_parts(const struct ig_pack *p, struct ig_part *out, uint32_t cap)
{
    const struct ig_part own[] = {
        {p->tail, IG_PAGE, p->t->superblock, NULL},
        {p->tail + IG_PAGE, p->t->regions_end - p->tail - IG_PAGE, NULL, NULL},
    };
    uint32_t n = 0;
    for (; n < 2 && n < cap; n++) out[n] = own[n];
    for (int type = 1; type < REGION_TYPES && n < cap; type++) {
        const struct region *r = &p->t->regions[type];
        out[n++] = (struct ig_part){r->offset, r->bytes, r->data, r->xxh};
    }
    for (uint32_t i = 0; i < p->t->nextra && n < cap; i++) {
        const struct region *r = &p->t->extra[i];
        out[n++] = (struct ig_part){r->offset, r->bytes, NULL, r->xxh};
    }
    return n;
}
