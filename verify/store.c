/* SPDX-License-Identifier: Apache-2.0 */
/* One model of a store by name, or all that it holds and should hold. */
#include "verify/verify.h"

#include <stdlib.h>
#include <string.h>

struct all {
    const struct ig_store *s;
    const struct ig_verify *v;
    json_t *models, *extra;
    bool ok;
    ingot_error *e;
};

static ingot_status add_model(struct all *a, const char *path, const char *label,
                              const uint8_t *digest)
{
    json_t *r = NULL;
    return_if_error(ig_verify_remembered(path, label, digest, a->v, &r, a->e));
    const bool ok = json_is_true(json_object_get(r, "ok"));
    json_object_set_new(r, "state", json_string(ok ? "unchanged" : "changed"));
    a->ok = a->ok && ok;
    return json_array_append_new(a->models, r) == 0 ? INGOT_OK : ig_no_memory(a->e);
}

static void add_broken(struct all *a, const char *label, const char *kind, const char *text)
{
    a->ok = false;
    json_array_append_new(a->models, json_pack("{s:o,s:s,s:b,s:s,s:i,s:i,s:[{s:s,s:s}]}", "model",
                                               ig_text_json(label), "state", kind, "ok", 0, "level",
                                               "none", "bytes_hashed", 0, "tensors_hashed", 0,
                                               "bad", "kind", kind, "text", text));
}

/* Files that belong to no pack and are none of the store's own. */
static bool is_known(const char *folder, const char *name)
{
    static const char *const root[] = {"packs", "names", "index.mdb", "lock"};
    uint8_t digest[IG_HASH];
    const enum ig_beside kind = ig_store_beside(name, digest);
    if (kind == IG_BESIDE_TEMP) return true;
    if (!folder) {
        for (size_t i = 0; i < sizeof root / sizeof root[0]; i++)
            if (strcmp(name, root[i]) == 0) return true;
        return false;
    }
    return kind != IG_BESIDE_NONE;
}

struct folder {
    struct all *all;
    const char *name; /* NULL: the store's root */
};

static ingot_status look_at(void *ctx, const char *name, ingot_error *e)
{
    const struct folder *f = ctx;
    if (is_known(f->name, name)) return INGOT_OK;
    char *file = ig_store_path(f->all->s, f->name, name);
    if (!file) return ig_no_memory(e);
    json_t *path = json_string(ig_esc(file, strlen(file)).s);
    free(file);
    json_t *extra = json_pack("{s:s,s:o}", "kind", "extra", "path", path);
    return json_array_append_new(f->all->extra, extra) == 0 ? INGOT_OK : ig_no_memory(e);
}

static ingot_status find_extra(struct all *a, const char *name)
{
    struct folder f = {.all = a, .name = name};
    char *path = ig_store_path(a->s, name, NULL);
    if (!path) return ig_no_memory(a->e);
    const ingot_status status = ig_each_entry(path, true, look_at, &f, a->e);
    free(path);
    return status;
}

static const struct ig_store_file *find_pack(const struct ig_store_file *packs, size_t n,
                                             const uint8_t digest[IG_HASH])
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(packs[i].digest, digest, IG_HASH) == 0) return &packs[i];
    return NULL;
}

static void check_names(struct all *a, const struct ig_name *names, size_t nnames,
                        const struct ig_store_file *packs, size_t npacks)
{
    for (size_t i = 0; i < nnames; i++) {
        const struct ig_name *k = &names[i];
        if (k->problem)
            add_broken(a, k->name, "name", k->problem);
        else if (!find_pack(packs, npacks, k->digest))
            add_broken(a, k->name, "missing", "the store holds no pack of this digest");
    }
}

static ingot_status verify_all(struct all *a)
{
    struct ig_store_file *packs = NULL;
    struct ig_name *names = NULL;
    size_t npacks = 0, nnames = 0;
    ingot_status status = ig_store_packs(a->s, &packs, &npacks, a->e);
    if (status == INGOT_OK) status = ig_names_list(a->s, &names, &nnames, a->e);
    if (status == INGOT_OK) check_names(a, names, nnames, packs, npacks);
    for (size_t i = 0; i < npacks && status == INGOT_OK; i++) {
        char hex[65];
        const char *label = NULL;
        ig_hex(hex, packs[i].digest, IG_HASH);
        for (size_t k = 0; k < nnames && !label; k++)
            if (names[k].has_digest && !names[k].problem &&
                memcmp(names[k].digest, packs[i].digest, IG_HASH) == 0)
                label = names[k].name;
        char *path = ig_store_pack_path(a->s, packs[i].digest);
        status =
            path ? add_model(a, path, label ? label : hex, packs[i].digest) : ig_no_memory(a->e);
        free(path);
    }
    if (status == INGOT_OK && npacks + nnames == 0) {
        add_broken(a, a->s->root, "empty", "the store is empty: nothing verified");
    }
    if (status == INGOT_OK) status = find_extra(a, NULL);
    if (status == INGOT_OK) status = find_extra(a, "packs");
    if (a->v->strict && json_array_size(a->extra)) a->ok = false;
    free(packs);
    ig_names_free(names, nnames);
    return status;
}

static ingot_status verify_one(struct all *a, const char *model)
{
    struct ig_ref ref = {0};
    return_if_error(ig_store_resolve(a->s, model, &ref, a->e));
    const ingot_status status =
        add_model(a, ref.path, ref.name ? ref.name : model, ref.has_digest ? ref.digest : NULL);
    ig_ref_free(&ref);
    return status;
}

ingot_status ig_verify_store(const struct ig_store *s, const char *model, const struct ig_verify *v,
                             json_t **report, ingot_error *e)
{
    struct all a = {
        .s = s, .v = v, .models = json_array(), .extra = json_array(), .ok = true, .e = e};
    ingot_status status = a.models && a.extra ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) status = model ? verify_one(&a, model) : verify_all(&a);
    if (status == INGOT_OK) {
        *report = json_pack("{s:O,s:O,s:b}", "models", a.models, "extra", a.extra, "ok", a.ok);
        if (!*report) status = ig_no_memory(e);
    }
    json_decref(a.models);
    json_decref(a.extra);
    return status;
}
