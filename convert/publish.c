/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "convert/publish.h"
#include "store/verity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* A small file beside the pack. */
static ingot_status publish_text(const struct ig_store *s, const char *file, const char *text,
                                 size_t n, ingot_error *e)
{
    struct ig_temp t = {.fd = -1};
    char *path = ig_store_path(s, "packs", file); /* what it will be called */
    ingot_status status = path ? ig_temp_open(s, &t, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_pwrite(t.fd, path, text, n, 0, e);
    if (status == INGOT_OK) status = ig_temp_publish(s, &t, file, e);
    ig_temp_discard(&t);
    free(path);
    return status;
}

/* What the pack does not commit to: shown as "claimed", never relied on. */
static ingot_status write_origin(const struct ig_store *s, const struct ig_job *job,
                                 const char *hex, ingot_error *e)
{
    const struct ig_src *src = job->plan->src;
    char when[32];
    struct tm tm;
    const time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    char *path = src ? realpath(src->root, NULL) : strdup(job->plan->parent->path);
    json_t *o = json_pack("{s:s,s:s,s:o*}", "converter", "ingot " PACKAGE_VERSION, "converted",
                          when, "source", path ? ig_text_json(path) : NULL);
    free(path);
    char *text = NULL, *file = ig_format("%s.origin.json", hex);
    size_t n = 0;
    ingot_status status = o && file ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK && src) {
        if (src->repo) json_object_set_new(o, "repository", json_string(src->repo));
        if (src->revision) json_object_set_new(o, "revision", json_string(src->revision));
        if (json_array_size(src->not_held)) json_object_set(o, "not_held", src->not_held);
    }
    if (status == INGOT_OK) status = ig_json_dump(o, &text, &n, e);
    if (status == INGOT_OK) status = publish_text(s, file, text, n, e);
    free(text);
    free(file);
    json_decref(o);
    return status;
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
    if (status == INGOT_OK) status = publish_text(s, file, text, n, e);
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

/* A name that means another pack is not taken over unasked; told before anything appears. */
static ingot_status check_name(const struct ig_store *s, const struct ig_job *job,
                               const struct ig_made *made, ingot_error *e)
{
    uint8_t old[IG_HASH];
    if (job->plan->job->replace || ig_name_read(s, made->name, old, NULL) != INGOT_OK ||
        memcmp(old, made->digest, IG_HASH) == 0)
        return INGOT_OK;
    char was[65], is[65];
    ig_hex(was, old, IG_HASH);
    ig_hex(is, made->digest, IG_HASH);
    return ig_fail(e, INGOT_ERR_EXISTS,
                   "the name \"%s\" means %s, not the new %s; -n gives another "
                   "name, --force replaces it",
                   made->name, was, is);
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
                                   struct ig_made *made, const char *hex, const char *file,
                                   ingot_error *e)
{
    char *tree = ig_format("%s.tree", hex);
    ingot_status status = tree ? check_name(s, job, made, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_temp_publish(s, &job->pack, file, e);
    if (status == INGOT_OK) status = ig_temp_publish(s, &made->tree, tree, e);
    if (status == INGOT_OK) status = write_origin(s, job, hex, e);
    if (status == INGOT_OK) status = write_signatures(s, job->plan->src, hex, e);
    if (status == INGOT_OK)
        status = ig_name_write(s, made->name, made->digest, job->plan->job->replace, e);
    free(tree);
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
    ingot_status status = publish_locked(s, job, made, hex, file, e);
    if (status == INGOT_OK && job->plan->job->fsverity) enable_verity(s, job, file);
    if (lock >= 0) close(lock);
    if (status != INGOT_OK) return status;
    *report = make_report(s, job, made, file);
    return *report ? INGOT_OK : ig_no_memory(e);
}
