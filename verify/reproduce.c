/* SPDX-License-Identifier: Apache-2.0 */
/* Doing it again: only that shows that a derived pack is what its manifest says it was made of. */
#include "verify/derivation.h"

#include <stdlib.h>
#include <string.h>

static ingot_status make(const struct check *c, const struct ig_derivation *d, const char *source,
                         uint8_t digest[IG_HASH], ingot_error *e)
{
    json_t *none = NULL;
    const struct ig_convert job = {.source = source,
                                   .name = "reproduction",
                                   .dtype = d->dtype,
                                   .saturate = d->saturate,
                                   /* What convert would ask about was answered when it was made. */
                                   .keep_unindexed = true,
                                   .accept_stale_quant = true,
                                   .no_config = true,
                                   .rules = c->pack.rules,
                                   .max_header = IG_ST_MAX_HEADER,
                                   .threads = c->v->threads,
                                   .progress = c->v->progress,
                                   .digest = digest};
    const ingot_status status = ig_convert(c->v->store, &job, &none, e);
    json_decref(none);
    return status;
}

static ingot_status answer(struct check *c, const char *from, const uint8_t *digest, json_t *report,
                           ingot_error *e)
{
    if (c->has_digest && memcmp(digest, c->digest, IG_HASH) != 0)
        ig_check_bad(c, &(struct finding){.kind = "derivation",
                                          .offset = UINT64_MAX,
                                          .expected = digest,
                                          .found = c->digest,
                                          .hash_len = IG_HASH,
                                          .text = "made again, it is another pack"});
    json_t *o = json_pack("{s:o,s:o}", "from", ig_text_json(from), "digest",
                          ig_digest_json("fsverity-sha256:", digest));
    return json_object_set_new(report, "reproduced", o) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* Packs of the same tensors and files may still differ, in their config or in their order. */
static ingot_status from_store(struct check *c, const struct ig_derivation *d,
                               const struct ig_index *index, json_t *report, ingot_error *e)
{
    uint8_t digest[IG_HASH];
    char from[2 * IG_HASH + 1] = "";
    const struct ig_summary *parent;
    for (size_t at = 0;
         (parent = ig_derivation_parent(c->v->store, index, &c->pack, d->from, &at));) {
        char *path = ig_store_pack_path(c->v->store, parent->digest);
        const ingot_status status = path ? make(c, d, path, digest, e) : ig_no_memory(e);
        free(path);
        return_if_error(status);
        ig_hex(from, parent->digest, IG_HASH);
        if (memcmp(digest, c->digest, IG_HASH) == 0) break;
    }
    if (*from) return answer(c, from, digest, report, e);
    char hex[2 * IG_HASH + 1];
    ig_hex(hex, d->from, IG_HASH);
    return ig_fail(e, INGOT_ERR_NOT_FOUND,
                   "%s: the model that it was made from, ingot-content-v1:%s, is not in the store; "
                   "--source DIR takes the original files instead",
                   c->pack.path, hex);
}

static ingot_status reproduce(struct check *c, json_t *report, ingot_error *e)
{
    struct ig_derivation d;
    struct ig_index index = {0};
    uint8_t digest[IG_HASH];
    if (c->pack.rules != IG_RULES)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: made by rules %u; this version has %d",
                       c->pack.path, c->pack.rules, IG_RULES);
    return_if_error(ig_derivation_read(&c->pack, &d, e));
    if (d.inputs)
        return ig_fail(e, INGOT_ERR_USAGE,
                       "%s: is an input set: ingot pin --check DIR compares it with a folder",
                       c->pack.path);
    if (c->v->source) {
        if (d.derived && !d.from_files)
            return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                           "%s: was made from a model that was itself derived; only from that one "
                           "can it be made again, not from files",
                           c->pack.path);
        return_if_error(make(c, &d, c->v->source, digest, e));
        return answer(c, c->v->source, digest, report, e);
    }
    if (!d.derived)
        return ig_fail(
            e, INGOT_ERR_USAGE,
            "%s: was made from files, not from a model; --source DIR says where they are",
            c->pack.path);
    ingot_status status = ig_index_load(c->v->store, false, &index, e);
    if (status == INGOT_OK) status = from_store(c, &d, &index, report, e);
    ig_index_free(&index);
    return status;
}

/* That what it was made from gives no pack is an answer; that it cannot be found or read is none.
 */
ingot_status ig_check_reproduce(struct check *c, json_t *report, ingot_error *e)
{
    const ingot_status status = reproduce(c, report, e);
    if (status != INGOT_ERR_INPUT && status != INGOT_ERR_CHECK && status != INGOT_ERR_PACK &&
        status != INGOT_ERR_UNSUPPORTED)
        return status;
    ig_check_bad(c,
                 &(struct finding){.kind = "derivation", .offset = UINT64_MAX, .text = e->message});
    return INGOT_OK;
}
