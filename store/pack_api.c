/* SPDX-License-Identifier: Apache-2.0 */
/* ingot_pack of ingot.h. */
#include "store/pack_api.h"

#include <stdlib.h>
#include <string.h>

/* Callers may pass no error; what is below them may not, for it tells its status through one. */
#define WITH_ERROR(e)    \
    ingot_error ignored; \
    if (!(e)) (e) = &ignored

ingot_status ig_pack_api_open(const char *store, const char *model, bool prove, ingot_pack **out,
                              ingot_error *e)
{
    struct ig_store s;
    struct ig_ref ref = {0};
    *out = NULL;
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_pack *p = calloc(1, sizeof *p);
    ingot_status status = p ? INGOT_OK : ig_no_memory(e);
    if (p) {
        p->pack.fd = -1;
        p->refs = 1;
    }
    if (status == INGOT_OK) status = ig_store_resolve(&s, model, &ref, e);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &p->pack, e);
    if (status == INGOT_OK) {
        p->has_digest = ref.has_digest;
        memcpy(p->digest, ref.digest, IG_HASH);
        if (prove && p->has_digest) status = ig_pack_prove(&p->pack, p->digest, e);
        p->proven = prove && p->has_digest && status == INGOT_OK;
    }
    ig_ref_free(&ref);
    ig_store_close(&s);
    if (status == INGOT_OK)
        *out = p;
    else
        ingot_pack_close(p);
    return status;
}

ingot_pack *ig_pack_api_retain(const ingot_pack *p)
{
    ingot_pack *mine = (ingot_pack *)p; /* the count is all that changes */
    __atomic_add_fetch(&mine->refs, 1, __ATOMIC_RELAXED);
    return mine;
}

ingot_status ingot_pack_open(const char *store, const char *model, ingot_pack **out, ingot_error *e)
{
    WITH_ERROR(e);
    return ig_pack_api_open(store, model, true, out, e);
}

void ingot_pack_close(ingot_pack *pack)
{
    if (!pack || __atomic_sub_fetch(&pack->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    ig_pack_close(&pack->pack);
    free(pack);
}

int ingot_pack_digest(const ingot_pack *pack, uint8_t digest[INGOT_DIGEST_BYTES])
{
    if (pack->proven) memcpy(digest, pack->digest, IG_HASH);
    return pack->proven;
}

uint32_t ingot_pack_count(const ingot_pack *pack)
{
    return pack->pack.nrows;
}

static void describe(const ingot_pack *pack, uint32_t i, ingot_tensor *out)
{
    struct ig_row row;
    ig_pack_row(&pack->pack, i, &row);
    *out = (ingot_tensor){.name = row.name,
                          .name_len = row.name_len,
                          .dtype = ig_dtypes[row.dtype].name,
                          .rank = row.rank,
                          .shape = row.shape,
                          .bytes = row.bytes,
                          .offset = ig_pack_pos(&pack->pack, &row),
                          .is_view = (row.flags & IG_ROW_VIEW) != 0};
    memcpy(out->digest, row.digest, IG_HASH);
}

ingot_status ingot_pack_tensor(const ingot_pack *pack, uint32_t i, ingot_tensor *out,
                               ingot_error *e)
{
    WITH_ERROR(e);
    if (i >= pack->pack.nrows)
        return ig_fail(e, INGOT_ERR_USAGE, "tensor %u of %u", i, pack->pack.nrows);
    describe(pack, i, out);
    return INGOT_OK;
}

ingot_status ingot_pack_find(const ingot_pack *pack, const char *name, ingot_tensor *out,
                             ingot_error *e)
{
    WITH_ERROR(e);
    const uint32_t i = ig_pack_find(&pack->pack, name, strlen(name));
    if (i != IG_NONE) {
        describe(pack, i, out);
        return INGOT_OK;
    }
    ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no tensor \"%s\"", pack->pack.path,
            ig_esc(name, strlen(name)).s);
    return ig_at(e, pack->pack.path, name, strlen(name));
}

static ingot_status digest_of(const uint8_t *data, uint64_t n, uint8_t out[IG_HASH], ingot_error *e)
{
    struct ig_tree *t = malloc(sizeof *t);
    uint8_t leaf[IG_HASH];
    ingot_status status = t ? INGOT_OK : ig_no_memory(e);
    if (t) ig_tree_init(t);
    for (uint64_t at = 0; at < n && status == INGOT_OK; at += IG_PAGE) {
        ig_leaf(leaf, data + at, n - at < IG_PAGE ? (size_t)(n - at) : IG_PAGE);
        status = ig_tree_add(t, leaf, 1, e);
    }
    if (status == INGOT_OK) status = ig_tree_digest(t, n, out, e);
    free(t);
    return status;
}

ingot_status ingot_pack_read(const ingot_pack *pack, const ingot_tensor *tensor, void *buffer,
                             ingot_error *e)
{
    WITH_ERROR(e);
    uint8_t found[IG_HASH];
    const struct ig_pack *p = &pack->pack;
    return_if_error(ig_pread(p->fd, p->path, buffer, (size_t)tensor->bytes, tensor->offset, e));
    return_if_error(digest_of(buffer, tensor->bytes, found, e));
    if (memcmp(found, tensor->digest, IG_HASH) == 0) return INGOT_OK;
    memset(buffer, 0, (size_t)tensor->bytes);
    ig_fail(e, INGOT_ERR_CHECK,
            "%s: tensor \"%s\" (%llu bytes at offset %llu) is not what its digest says", p->path,
            ig_esc(tensor->name, tensor->name_len).s, (unsigned long long)tensor->bytes,
            (unsigned long long)tensor->offset);
    ig_at(e, NULL, tensor->name, tensor->name_len);
    return ig_at_offset(e, p->path, tensor->offset);
}
