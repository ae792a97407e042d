/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/publish.h"
#include "store/verity.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ingot_status ig_publish_name(const struct ig_convert *c, const char *label, char **name,
                             ingot_error *e)
{
    if (c->name) {
        return_if_error(ig_name_check(c->name, e));
        *name = strdup(c->name);
        return *name ? INGOT_OK : ig_no_memory(e);
    }
    static const char *const suffix[IG_DTYPES] = {
        [IG_F16] = "-f16", [IG_BF16] = "-bf16", [IG_F32] = "-f32"};
    *name = ig_format("%s%s", label, c->dtype >= 0 ? suffix[c->dtype] : "");
    if (!*name) return ig_no_memory(e);
    if (ig_name_check(*name, NULL) == INGOT_OK) return INGOT_OK;
    ig_fail(e, INGOT_ERR_USAGE, "\"%s\" cannot be a model's name; give one with -n NAME",
            ig_esc(*name, strlen(*name)).s);
    return INGOT_ERR_USAGE;
}

/* What only convert knows of where it came from. */
static json_t *origin_of(const struct ig_job *job)
{
    const struct ig_src *src = job->plan->src;
    json_t *o = ig_publish_origin(src ? src->root : job->plan->parent->path);
    if (o && src && src->repo) json_object_set_new(o, "repository", json_string(src->repo));
    if (o && src && src->revision) json_object_set_new(o, "revision", json_string(src->revision));
    if (o && src && json_array_size(src->not_held)) json_object_set(o, "not_held", src->not_held);
    return o;
}

static ingot_status write_signature(const struct ig_store *s, const struct ig_src_file *f,
                                    const char *hex, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    char *flat = strdup(f->name);
    for (char *c = flat; c && *c; c++)
        if (*c == '/') *c = '_';
    char *file = flat ? ig_format("%s.sigs/%s", hex, flat) : NULL;
    ingot_status status =
        file ? ig_read_file(f->path, IG_BLOB_MOST, &text, &n, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_publish_text(s, file, text, n, e);
    free(text);
    free(file);
    free(flat);
    return status;
}

static ingot_status write_signatures(const struct ig_store *s, const struct ig_src *src,
                                     const char *hex, ingot_error *e)
{
    if (!src || !src->nsigs) return INGOT_OK;
    char *name = ig_format("%s.sigs", hex);
    char *dir = name ? ig_store_path(s, "packs", name) : NULL;
    ingot_status status = dir ? ig_mkdirs(dir, e) : ig_no_memory(e);
    for (uint32_t i = 0; i < src->nsigs && status == INGOT_OK; i++)
        status = write_signature(s, &src->sigs[i], hex, e);
    free(dir);
    free(name);
    return status;
}

static json_t *sources_json(const struct ig_plan *p)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < p->nsources; i++)
        json_array_append_new(list, json_pack("{s:s,s:I,s:o}", "name", p->sources[i].name, "size",
                                              (json_int_t)p->sources[i].bytes, "sha256",
                                              ig_digest_json("", p->sources[i].sha256)));
    return list;
}

static json_t *make_report(const struct ig_store *s, const struct ig_job *job,
                           const struct ig_made *made, const char *file)
{
    const struct ig_plan *p = job->plan;
    char *path = ig_store_path(s, "packs", file);
    json_t *r = json_pack("{s:s,s:o,s:o,s:o*,s:I,s:I,s:I,s:I,s:o,s:I,s:O}", "name", made->name,
                          "digest", ig_digest_json("fsverity-sha256:", made->digest), "content",
                          ig_digest_json("ingot-content-v1:", made->content), "pack",
                          path ? ig_text_json(path) : NULL, "bytes", (json_int_t)made->size,
                          "tensors", (json_int_t)(p->nrows - p->nviews - p->shadows), "views",
                          (json_int_t)p->nviews, "shadowed", (json_int_t)p->shadows, "sources",
                          sources_json(p), "blobs", (json_int_t)p->nblobs, "derivation",
                          json_object_get(made->manifest, "derivation"));
    free(path);
    if (!r) return NULL;
    if (p->src) {
        json_object_set(r, "warnings", p->src->warnings);
        json_object_set(r, "not_held", p->src->not_held);
        if (p->src->repo) json_object_set_new(r, "repository", json_string(p->src->repo));
        if (p->src->revision) json_object_set_new(r, "revision", json_string(p->src->revision));
    } else {
        json_object_set_new(r, "warnings", json_array());
    }
    return r;
}

static ingot_status publish_locked(const struct ig_store *s, struct ig_job *job,
                                   struct ig_made *made, const char *hex, ingot_error *e)
{
    const bool replace = job->plan->job->replace;
    json_t *origin = origin_of(job);
    ingot_status status =
        origin ? ig_publish_check_name(s, made->name, made->digest, replace, e) : ig_no_memory(e);
    if (status == INGOT_OK)
        status = ig_publish_files(s, &job->pack, &made->tree, made->digest, origin, e);
    if (status == INGOT_OK) status = write_signatures(s, job->plan->src, hex, e);
    if (status == INGOT_OK) status = ig_name_write(s, made->name, made->digest, replace, e);
    json_decref(origin);
    return status;
}

static void enable_verity(const struct ig_store *s, const struct ig_job *job, const char *file)
{
    ingot_error why = {0};
    char *path = ig_store_path(s, "packs", file);
    if (path && ig_verity_enable(path, &why) != INGOT_OK && job->plan->src)
        ig_src_warn(job->plan->src, "fs-verity was not enabled: %s", why.message);
    free(path);
}

ingot_status ig_publish(const struct ig_store *s, struct ig_job *job, struct ig_made *made,
                        json_t **report, ingot_error *e)
{
    char hex[65], file[80];
    int lock = -1;
    ig_hex(hex, made->digest, IG_HASH);
    snprintf(file, sizeof file, "%s.ingot", hex);
    return_if_error(ig_store_lock(s, false, &lock, e));
    ingot_status status = publish_locked(s, job, made, hex, e);
    if (status == INGOT_OK && job->plan->job->fsverity) enable_verity(s, job, file);
    if (lock >= 0) close(lock);
    if (status != INGOT_OK) return status;
    *report = make_report(s, job, made, file);
    return *report ? INGOT_OK : ig_no_memory(e);
}
