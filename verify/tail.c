/* SPDX-License-Identifier: Apache-2.0 */
/* The regions that opening a pack leaves on disk, and what the tables say of each other. */
#include "store/pack_write.h"
#include "verify/check.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 20)

static ingot_status check_region(struct check *c, const struct ig_part *k, uint8_t *buf,
                                 ingot_error *e)
{
    struct ig_xxh *x = ig_xxh_new();
    if (!x) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    for (uint64_t at = 0; at < k->bytes && status == INGOT_OK;) {
        const size_t n = k->bytes - at < PIECE ? (size_t)(k->bytes - at) : PIECE;
        status = ig_pread(c->pack.fd, c->pack.path, buf, n, k->offset + at, e);
        if (status == INGOT_OK) ig_xxh_update(x, buf, n);
        at += n;
    }
    uint8_t xxh[16];
    ig_xxh_final(x, xxh);
    ig_xxh_free(x);
    if (status == INGOT_OK && memcmp(xxh, k->xxh, 16) != 0)
        ig_check_bad(c, &(struct finding){.kind = "tail",
                                          .offset = k->offset,
                                          .length = k->bytes,
                                          .expected = k->xxh,
                                          .found = xxh,
                                          .hash_len = 16});
    return status;
}

static ingot_status check_blob(struct check *c, uint32_t i, ingot_error *e)
{
    struct ig_blob blob, *b = &blob;
    ig_pack_blob(&c->pack, i, b);
    uint8_t found[IG_HASH];
    char text[400];
    return_if_error(ig_pack_hash_blob(&c->pack, i, NULL, NULL, found, e));
    c->bytes_hashed += b->bytes;
    if (memcmp(found, b->sha256, IG_HASH) == 0) return INGOT_OK;
    snprintf(text, sizeof text, "%s", ig_esc(b->name, b->name_len).s);
    ig_check_bad(c, &(struct finding){.kind = "blob",
                                      .offset = b->offset,
                                      .length = b->bytes,
                                      .expected = b->sha256,
                                      .found = found,
                                      .hash_len = IG_HASH,
                                      .text = text});
    return INGOT_OK;
}

/* From the rows' digests, which the pass has held against the bytes. */
static void check_content(struct check *c)
{
    struct ig_sha h;
    struct ig_row row;
    uint64_t n = 0;
    uint8_t found[IG_HASH];
    for (uint32_t i = 0; i < c->pack.nrows; i++) {
        ig_pack_row(&c->pack, i, &row);
        n += !(row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW));
    }
    ig_content_begin(&h, n);
    for (uint32_t i = 0; i < c->pack.nrows; i++) {
        ig_pack_row(&c->pack, i, &row);
        if (!(row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW))) ig_content_row(&h, &row);
    }
    ig_sha_final(&h, found);
    if (memcmp(found, c->pack.content, IG_HASH) != 0)
        ig_check_bad(c, &(struct finding){.kind = "content",
                                          .offset = UINT64_MAX,
                                          .expected = c->pack.content,
                                          .found = found,
                                          .hash_len = IG_HASH,
                                          .text = "content digest"});
}

/* Tensors without bytes have a digest too. */
static void check_empty_rows(struct check *c)
{
    static const uint8_t root[IG_HASH];
    uint8_t empty[IG_HASH];
    ig_verity_digest(empty, 0, root);
    for (uint32_t i = 0; i < c->pack.nrows; i++) {
        struct ig_row row;
        ig_pack_row(&c->pack, i, &row);
        if (row.bytes > 0) continue;
        if (!(row.flags & IG_ROW_VIEW)) c->tensors_hashed++;
        if (memcmp(row.digest, empty, IG_HASH) != 0)
            ig_check_bad(c, &(struct finding){.kind = "tensor",
                                              .tensor = row.name,
                                              .tensor_len = row.name_len,
                                              .offset = UINT64_MAX,
                                              .expected = row.digest,
                                              .found = empty,
                                              .hash_len = IG_HASH});
    }
}

ingot_status ig_check_tail(struct check *c, ingot_error *e)
{
    uint8_t *buf = ig_pages(PIECE);
    ingot_status status = buf ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < c->nparts && status == INGOT_OK; i++)
        if (c->parts[i].xxh && !c->parts[i].copy) status = check_region(c, &c->parts[i], buf, e);
    for (uint32_t i = 0; i < c->pack.nblobs && status == INGOT_OK && c->v->level == IG_LEVEL_FULL;
         i++)
        status = check_blob(c, i, e);
    if (status == INGOT_OK && c->v->level == IG_LEVEL_FULL) {
        check_empty_rows(c);
        check_content(c);
    }
    free(buf);
    return status;
}
