/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of blobs, of which some are small texts and some are larger than memory. */
#include "store/pack_private.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 20)

ingot_status ig_pack_hash_blob(const struct ig_pack *p, uint32_t i, ig_sink *sink, void *ctx,
                               uint8_t sha256[IG_HASH], ingot_error *e)
{
    struct ig_blob b;
    struct ig_sha sha;
    ig_pack_blob(p, i, &b);
    uint8_t *buf = ig_pages(b.bytes < PIECE ? (size_t)b.bytes + 1 : PIECE);
    ingot_status status = buf ? INGOT_OK : ig_no_memory(e);
    ig_sha_init(&sha);
    for (uint64_t at = 0; at < b.bytes && status == INGOT_OK;) {
        const size_t n = b.bytes - at < PIECE ? (size_t)(b.bytes - at) : PIECE;
        status = ig_pread(p->fd, p->path, buf, n, b.offset + at, e);
        if (status == INGOT_OK) ig_sha_update(&sha, buf, n);
        if (status == INGOT_OK && sink) status = sink(ctx, buf, n, e);
        at += n;
    }
    ig_sha_final(&sha, sha256);
    free(buf);
    return status;
}

static ingot_status check(const struct ig_pack *p, const struct ig_blob *b,
                          const uint8_t sha256[IG_HASH], ingot_error *e)
{
    if (memcmp(sha256, b->sha256, IG_HASH) == 0) return INGOT_OK;
    return pack_fail(p, e, b->offset, "blob \"%s\" is damaged: its SHA-256 does not match",
                     ig_esc(b->name, b->name_len).s);
}

ingot_status ig_pack_copy_blob(const struct ig_pack *p, uint32_t i, ig_sink *sink, void *ctx,
                               ingot_error *e)
{
    struct ig_blob b;
    uint8_t sha256[IG_HASH];
    ig_pack_blob(p, i, &b);
    return_if_error(ig_pack_hash_blob(p, i, sink, ctx, sha256, e));
    return check(p, &b, sha256, e);
}

ingot_status ig_pack_read_blob(const struct ig_pack *p, uint32_t i, char **data, size_t *n,
                               ingot_error *e)
{
    struct ig_blob b;
    uint8_t sha256[IG_HASH];
    ig_pack_blob(p, i, &b);
    char *buf = malloc((size_t)b.bytes + 1);
    if (!buf) return ig_no_memory(e);
    ingot_status status = ig_pread(p->fd, p->path, buf, (size_t)b.bytes, b.offset, e);
    if (status == INGOT_OK) {
        ig_sha256(sha256, buf, (size_t)b.bytes);
        status = check(p, &b, sha256, e);
    }
    if (status != INGOT_OK) {
        free(buf);
        return status;
    }
    buf[b.bytes] = '\0';
    *data = buf;
    *n = (size_t)b.bytes;
    return INGOT_OK;
}
