/* SPDX-License-Identifier: Apache-2.0 */
/* From a pack to the one that it was made from, until there are only files. */
#include "verify/lineage.h"

#include "store/cmd_common.h"
#include "verify/derivation.h"
#include "verify/signed.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MOST                                                                 \
    32 /* a chain of casts is short; a circle cannot be made, but could be claimed \
        */

struct walk {
    const struct ig_store *s;
    const struct ig_signature *signature;
    struct ig_index index;
    struct ig_name *names;
    size_t nnames;
    json_t *chain, *sources, *missing;
};

/* ---- signatures ---- */

/* Bundles say which files they sign; here they are held to the hashes that the pack records. */
static void mark_signed(const struct ig_statement *st, const char *bundle, json_t *sources)
{
    size_t i;
    json_t *file;
    json_array_foreach(sources, i, file)
    {
        uint8_t sha[IG_HASH];
        const char *name = json_string_value(json_object_get(file, "name"));
        const char *hex = json_string_value(json_object_get(file, "sha256"));
        if (!ig_unhex(sha, IG_HASH, hex)) continue;
        for (size_t k = 0; k < st->nresources; k++)
            if (strcmp(st->resources[k].name, name) == 0 &&
                memcmp(st->resources[k].sha256, sha, IG_HASH) == 0)
                json_array_append_new(json_object_get(file, "signed_by"), ig_text_json(bundle));
    }
}

static ingot_status judge_bundle(struct walk *w, const char *pack, const char *name, json_t *list,
                                 ingot_error *e)
{
    struct ig_signature job = *w->signature;
    struct ig_verify v = {.signature = &job};
    struct check c = {.v = &v, .bad = json_array()};
    struct ig_signed s = {0};
    char *path = ig_sigs_path(pack, name);
    json_t *o = NULL;
    job.bundle = path;
    pthread_mutex_init(&c.lock, NULL);
    ingot_status status = path && c.bad ? ig_signed_open(&c, pack, &s, e) : ig_no_memory(e);
    if (status == INGOT_OK) {
        o = ig_signed_json(&s);
        if (o) json_object_set(o, "bad", c.bad);
        if (s.good) mark_signed(&s.statement, name, w->sources);
    } else if (status == INGOT_ERR_UNSUPPORTED) { /* an endorsement, or of another kind */
        o = json_pack("{s:o,s:s}", "bundle", ig_text_json(path), "note", e->message);
        status = INGOT_OK;
    } else if (status == INGOT_ERR_INPUT) {
        o = json_pack("{s:o,s:b,s:[{s:s,s:s}]}", "bundle", ig_text_json(path), "good", 0, "bad",
                      "kind", "signature", "text", e->message);
        status = INGOT_OK; /* damaged, or signed in another way */
    }
    if (status == INGOT_OK && (!o || json_array_append(list, o) != 0)) status = ig_no_memory(e);
    json_decref(o);
    ig_signed_close(&s);
    pthread_mutex_destroy(&c.lock);
    json_decref(c.bad);
    free(path);
    return status;
}

static ingot_status add_bundles(struct walk *w, const char *pack, json_t *o, ingot_error *e)
{
    char **names = NULL;
    size_t n = 0;
    json_t *list = json_array();
    if (!list || json_object_set_new(o, "bundles", list) != 0) return ig_no_memory(e);
    ingot_status status = ig_sigs_list(pack, &names, &n, e);
    for (size_t i = 0; i < n && status == INGOT_OK; i++)
        status = w->signature ? judge_bundle(w, pack, names[i], list, e)
                              : (json_array_append_new(list, json_pack("{s:o}", "bundle",
                                                                       ig_text_json(names[i]))) == 0
                                     ? INGOT_OK
                                     : ig_no_memory(e));
    ig_sigs_free(names, n);
    return status;
}

static bool all_signed(const json_t *sources)
{
    size_t i;
    json_t *file;
    json_array_foreach(sources, i, file)
    {
        if (!json_array_size(json_object_get(file, "signed_by"))) return false;
    }
    return json_array_size(sources) > 0;
}

/* ---- the chain ---- */

static ingot_status add_file(struct walk *w, json_t *name, const uint8_t sha256[IG_HASH],
                             uint64_t bytes, ingot_error *e)
{
    json_t *file = json_pack("{s:o,s:o,s:I,s:[]}", "name", name, "sha256",
                             ig_digest_json("", sha256), "size", (json_int_t)bytes, "signed_by");
    return json_array_append_new(w->sources, file) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* Weights come from source files; an input set is its files. */
static ingot_status add_sources(struct walk *w, const struct ig_pack *p, ingot_error *e)
{
    for (uint32_t i = 0; i < p->nsources; i++)
        return_if_error(add_file(w, json_string(p->sources[i].name), p->sources[i].sha256,
                                 p->sources[i].bytes, e));
    for (uint32_t i = 0; i < p->nblobs && ig_pack_is_inputs(p); i++) {
        struct ig_blob b;
        ig_pack_blob(p, i, &b);
        return_if_error(add_file(w, json_stringn(b.name, b.name_len), b.sha256, b.bytes, e));
    }
    return INGOT_OK;
}

/* One pack: what its digest proves that it says. */
static ingot_status add_pack(struct walk *w, const struct ig_pack *p, const uint8_t *digest,
                             const struct ig_derivation *d, ingot_error *e)
{
    json_t *o =
        json_pack("{s:o,s:o,s:o?,s:o?,s:O,s:b}", "content",
                  ig_digest_json("ingot-content-v1:", p->content), "pack", ig_text_json(p->path),
                  "digest", digest ? ig_digest_json(IG_DIGEST_PREFIX, digest) : NULL, "names",
                  digest ? ig_names_of(w->names, w->nnames, digest) : NULL, "derivation",
                  json_object_get(p->manifest, "derivation"), "derived", d->derived);
    if (!o ||
        json_object_set_new(o, "made_by",
                            json_string(d->derived  ? d->words
                                        : d->inputs ? "inputs"
                                                    : "files")) != 0 ||
        json_array_append_new(w->chain, o) != 0)
        return ig_no_memory(e);
    if (json_array_size(w->chain) == 1) return_if_error(add_sources(w, p, e));
    return add_bundles(w, p->path, o, e);
}

/* *next: path of the pack that this one was made from, or NULL. */
static ingot_status step(struct walk *w, const char *path, const uint8_t *digest, char **next,
                         uint8_t next_digest[IG_HASH], ingot_error *e)
{
    struct ig_pack p = {.fd = -1};
    struct ig_derivation d;
    *next = NULL;
    ingot_status status = ig_pack_open(path, &p, e);
    if (status == INGOT_OK && digest) status = ig_pack_prove(&p, digest, e);
    if (status == INGOT_OK) status = ig_derivation_read(&p, &d, e);
    if (status == INGOT_OK) status = add_pack(w, &p, digest, &d, e);
    if (status == INGOT_OK && d.derived) {
        size_t at = 0;
        const struct ig_summary *parent = ig_derivation_parent(w->s, &w->index, &p, d.from, &at);
        if (parent) {
            memcpy(next_digest, parent->digest, IG_HASH);
            *next = ig_store_pack_path(w->s, parent->digest);
            if (!*next) status = ig_no_memory(e);
        } else {
            w->missing = ig_digest_json("ingot-content-v1:", d.from);
        }
    }
    ig_pack_close(&p);
    return status;
}

static ingot_status follow(struct walk *w, const struct ig_ref *ref, ingot_error *e)
{
    uint8_t digest[IG_HASH], next_digest[IG_HASH];
    char *path = strdup(ref->path), *next = NULL;
    bool has_digest = ref->has_digest;
    ingot_status status = path ? INGOT_OK : ig_no_memory(e);
    memcpy(digest, ref->digest, IG_HASH);
    for (int i = 0; path && status == INGOT_OK; i++) {
        if (i == STEPS_MOST)
            status = ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: derived in more than %d steps",
                             ref->path, STEPS_MOST);
        else
            status = step(w, path, has_digest ? digest : NULL, &next, next_digest, e);
        free(path);
        path = next, next = NULL;
        memcpy(digest, next_digest, IG_HASH);
        has_digest = true;
    }
    free(path);
    return status;
}

ingot_status ig_lineage(const struct ig_store *s, const char *model,
                        const struct ig_signature *signature, json_t **report, ingot_error *e)
{
    struct ig_ref ref = {0};
    struct walk w = {
        .s = s, .signature = signature, .chain = json_array(), .sources = json_array()};
    ingot_status status = w.chain && w.sources ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_store_resolve(s, model, &ref, e);
    if (status == INGOT_OK) status = ig_index_load(s, false, &w.index, e);
    if (status == INGOT_OK) status = ig_names_list(s, &w.names, &w.nnames, e);
    if (status == INGOT_OK) status = follow(&w, &ref, e);
    if (status == INGOT_OK) {
        *report = json_pack("{s:o,s:O,s:O,s:O*}", "model", ig_text_json(model), "chain", w.chain,
                            "sources", w.sources, "missing", w.missing);
        if (!*report) status = ig_no_memory(e);
    }
    if (status == INGOT_OK && signature)
        json_object_set_new(*report, "signed", json_boolean(all_signed(w.sources)));
    json_decref(w.chain), json_decref(w.sources), json_decref(w.missing);
    ig_names_free(w.names, w.nnames);
    ig_index_free(&w.index);
    ig_ref_free(&ref);
    return status;
}
