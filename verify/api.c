/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of ingot.h, on top of what the commands use. */
#include "verify/verify.h"

#include <stdlib.h>
#include <string.h>

struct ingot_pack {
    struct ig_pack pack;
    bool proven;
    uint8_t digest[IG_HASH];
};

/* Callers may pass no error; what is below them may not, for it tells its status through one. */
#define WITH_ERROR(e)    \
    ingot_error ignored; \
    if (!(e)) (e) = &ignored

void ingot_free(void *memory)
{
    free(memory);
}

/* Turn a report into text, or drop it; consumes the reference. */
static ingot_status give_report(json_t *report, char **out, ingot_error *e)
{
    size_t n;
    const ingot_status status = out ? ig_json_dump(report, out, &n, e) : INGOT_OK;
    json_decref(report);
    return status;
}

ingot_status ingot_convert(const char *store, const char *source, const char *name, char **report,
                           ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *made = NULL;
    const struct ig_convert c = {.source = source,
                                 .name = name,
                                 .dtype = -1,
                                 .rules = IG_RULES,
                                 .max_header = IG_ST_MAX_HEADER};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_convert(&s, &c, &made, e);
    if (status == INGOT_OK) status = give_report(made, report, e);
    ig_store_close(&s);
    return status;
}

ingot_status ingot_verify(const char *store, const char *model, char **report, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *result = NULL;
    const struct ig_verify v = {.level = IG_LEVEL_FULL};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_verify_store(&s, model, &v, &result, e);
    if (status == INGOT_OK) {
        const bool ok = json_is_true(json_object_get(result, "ok"));
        status = give_report(result, report, e);
        if (status == INGOT_OK && !ok)
            status = ig_fail(e, INGOT_ERR_CHECK, "%s: verification failed",
                             ig_esc(model, strlen(model)).s);
    }
    ig_store_close(&s);
    return status;
}

/* Find and open a model's pack; *has tells whether digest is known. */
static ingot_status open_model(const char *store, const char *model, struct ig_pack *p, bool *has,
                               uint8_t digest[IG_HASH], ingot_error *e)
{
    struct ig_store s;
    struct ig_ref ref = {0};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_store_resolve(&s, model, &ref, e);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, p, e);
    *has = ref.has_digest;
    memcpy(digest, ref.digest, IG_HASH);
    ig_ref_free(&ref);
    ig_store_close(&s);
    return status;
}

ingot_status ingot_export(const char *store, const char *model, const char *folder, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_pack p = {.fd = -1};
    bool has;
    uint8_t digest[IG_HASH];
    json_t *report = NULL;
    const struct ig_export x = {.folder = folder};
    ingot_status status = open_model(store, model, &p, &has, digest, e);
    if (status == INGOT_OK) status = ig_export(&p, &x, &report, e);
    json_decref(report);
    ig_pack_close(&p);
    return status;
}

ingot_status ingot_pack_open(const char *store, const char *model, ingot_pack **out, ingot_error *e)
{
    WITH_ERROR(e);
    ingot_pack *p = calloc(1, sizeof *p);
    if (!p) return ig_no_memory(e);
    p->pack.fd = -1;
    ingot_status status = open_model(store, model, &p->pack, &p->proven, p->digest, e);
    if (status == INGOT_OK && p->proven) status = ig_pack_prove(&p->pack, p->digest, e);
    if (status != INGOT_OK) {
        ingot_pack_close(p);
        p = NULL;
    }
    *out = p;
    return status;
}

void ingot_pack_close(ingot_pack *pack)
{
    if (!pack) return;
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
