/* SPDX-License-Identifier: Apache-2.0 */
/* Files into a pack of their own: blobs, no rows, and a manifest that says whose they are. */
#include "verify/pin.h"

#include "convert/publish.h"
#include "store/pack_write.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTRIBUTION_MOST ((size_t)1 << 20)
#define LICENSE_MOST     512

/* ---- which files ---- */

/* "/a/b/" and "/a/./b" end in b; "." and "/" say no name, and need none where they are alone. */
static char *last_component(const char *path)
{
    char *real = realpath(path, NULL);
    char *name = real ? strdup(strrchr(real, '/') + 1) : NULL;
    free(real);
    return name;
}

static ingot_status list_one(const char *path, bool alone, struct ig_src *src,
                             struct ig_src_list *out, ingot_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        const int why = errno;
        ig_fail_sys(e, why, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    const char *slash = strrchr(path, '/');
    if (S_ISREG(st.st_mode)) return ig_src_walk_file(path, slash ? slash + 1 : path, out, e);
    if (!S_ISDIR(st.st_mode)) {
        ig_fail(e, INGOT_ERR_INPUT, "%s: neither a file nor a folder",
                ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    if (alone) return ig_src_walk(src, path, "", out, e);
    char *name = last_component(path), *prefix = name ? ig_format("%s/", name) : NULL;
    const ingot_status status = prefix ? ig_src_walk(src, path, prefix, out, e) : ig_no_memory(e);
    free(name), free(prefix);
    return status;
}

ingot_status ig_pin_list(const char *const *paths, size_t n, struct ig_src *src,
                         struct ig_src_list *out, ingot_error *e)
{
    for (size_t i = 0; i < n; i++) return_if_error(list_one(paths[i], n == 1, src, out, e));
    ig_src_list_sort(out);
    for (size_t i = 1; i < out->n; i++)
        if (strcmp(out->files[i - 1].name, out->files[i].name) == 0)
            return ig_fail(e, INGOT_ERR_INPUT, "%s and %s would both be called \"%s\"",
                           out->files[i - 1].path, out->files[i].path,
                           ig_esc(out->files[i].name, strlen(out->files[i].name)).s);
    return ig_src_refuse_unfinished(out, e);
}

/* ---- the pack ---- */

struct pinning {
    const struct ig_pin *job;
    struct ig_src_list files;
    struct ig_src_reader reader;
    uint64_t done, total;
    json_t *manifest;
    uint8_t digest[IG_HASH];
    uint64_t size;
};

static ingot_status read_blob(void *ctx, uint32_t i, void *buf, size_t n, uint64_t offset,
                              ingot_error *e)
{
    struct pinning *p = ctx;
    const struct ig_progress *g = &p->job->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    return_if_error(ig_src_reader_next(&p->reader, &p->files.files[i], buf, n, offset, e));
    p->done += n;
    if (g->update) g->update(g->ctx, p->done, p->total);
    return INGOT_OK;
}

/* Letters, digits, and what an SPDX expression is written with; no list of licenses is kept. */
static ingot_status check_license(const char *text, ingot_error *e)
{
    const size_t n = strlen(text);
    size_t ok = 0;
    while (ok < n && (isalnum((unsigned char)text[ok]) || strchr("+-.:() ", text[ok]))) ok++;
    if (n && ok == n && n <= LICENSE_MOST) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_USAGE, "\"%s\" is no SPDX license expression", ig_esc(text, n).s);
}

static ingot_status read_attribution(const char *path, json_t *derivation, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    ingot_status status = ig_read_file(path, ATTRIBUTION_MOST, &text, &n, e);
    if (status == INGOT_OK && (memchr(text, '\0', n) || !ig_utf8_valid(text, n))) {
        ig_fail(e, INGOT_ERR_INPUT, "%s: an attribution is text in UTF-8, without NUL",
                ig_esc(path, strlen(path)).s);
        status = ig_at(e, path, NULL, 0);
    }
    if (status == INGOT_OK &&
        json_object_set_new(derivation, "attribution", json_stringn(text, n)) != 0)
        status = ig_no_memory(e);
    free(text);
    return status;
}

static ingot_status make_manifest(struct pinning *p, ingot_error *e)
{
    uint8_t content[IG_HASH];
    ig_content_digest(NULL, 0, content);
    json_t *d = json_pack("{s:s,s:s*}", "kind", "inputs", "license", p->job->license);
    ingot_status status = d ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK && p->job->attribution)
        status = read_attribution(p->job->attribution, d, e);
    if (status == INGOT_OK) {
        p->manifest =
            json_pack("{s:o,s:O,s:i,s:[]}", "content", ig_digest_json("ingot-content-v1:", content),
                      "derivation", d, "rules", IG_RULES, "sources");
        if (!p->manifest) status = ig_no_memory(e);
    }
    json_decref(d);
    return status;
}

static ingot_status seal(struct pinning *p, struct ig_temp temps[3], ingot_error *e)
{
    const size_t n = p->files.n;
    const char **names = ig_array(n, sizeof *names);
    uint32_t *kinds = ig_array(n, sizeof *kinds);
    uint64_t *bytes = ig_array(n, sizeof *bytes);
    char *text = NULL;
    size_t len = 0;
    struct ig_tail t = {.blob_names = names,
                        .blob_kinds = kinds,
                        .blob_bytes = bytes,
                        .nblobs = (uint32_t)n,
                        .read_blob = read_blob,
                        .ctx = p,
                        .xxh_fd = -1};
    ingot_status status = names && kinds && bytes ? INGOT_OK : ig_no_memory(e);
    for (size_t i = 0; i < n && status == INGOT_OK; i++) {
        names[i] = p->files.files[i].name;
        kinds[i] = IG_BLOB_FILE;
        p->total += bytes[i] = (uint64_t)p->files.files[i].st.st_size;
    }
    if (status == INGOT_OK) status = ig_json_dump(p->manifest, &text, &len, e);
    if (status == INGOT_OK) status = ig_tail_size(&t, len, &p->size, e);
    if (status == INGOT_OK)
        status = ig_pack_seal(temps[0].fd, temps[0].dir, temps[1].fd, temps[2].fd, &t, text, len,
                              p->digest, e);
    free((void *)names), free(kinds), free(bytes), free(text);
    return status;
}

static ingot_status publish(const struct ig_store *s, struct pinning *p, const char *name,
                            struct ig_temp temps[3], ingot_error *e)
{
    int lock = -1;
    char *origin_path = realpath(p->job->paths[0], NULL);
    json_t *origin = ig_publish_origin(origin_path ? origin_path : p->job->paths[0]);
    ingot_status status = origin ? ig_store_lock(s, false, &lock, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_publish_check_name(s, name, p->digest, p->job->replace, e);
    if (status == INGOT_OK)
        status = ig_publish_files(s, &temps[0], &temps[2], p->digest, origin, e);
    if (status == INGOT_OK) status = ig_name_write(s, name, p->digest, p->job->replace, e);
    if (lock >= 0) close(lock);
    json_decref(origin);
    free(origin_path);
    return status;
}

static ingot_status make(const struct ig_store *s, struct pinning *p, const char *name,
                         ingot_error *e)
{
    struct ig_temp temps[3] = {{.fd = -1}, {.fd = -1}, {.fd = -1}}; /* pack, leaves, tree */
    ingot_status status = INGOT_OK;
    for (int i = 0; i < 3 && status == INGOT_OK; i++) status = ig_temp_open(s, &temps[i], e);
    if (status == INGOT_OK) status = seal(p, temps, e);
    if (status == INGOT_OK) status = publish(s, p, name, temps, e);
    for (int i = 0; i < 3; i++) ig_temp_discard(&temps[i]);
    if (p->reader.fd >= 0) close(p->reader.fd);
    return status;
}

/* ---- the job ---- */

static ingot_status name_of(const struct ig_pin *job, char **name, ingot_error *e)
{
    *name = job->name ? strdup(job->name)
                      : (job->npaths == 1 ? last_component(job->paths[0]) : strdup(""));
    if (!*name) return ig_no_memory(e);
    if (job->name) return ig_name_check(*name, e);
    if (ig_name_check(*name, NULL) == INGOT_OK) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_USAGE, "give the set a name with -n NAME");
}

static ingot_status report_of(const struct ig_store *s, const struct pinning *p, const char *name,
                              const struct ig_src *src, json_t **report, ingot_error *e)
{
    char *path = ig_store_pack_path(s, p->digest);
    *report = json_pack("{s:s,s:o,s:o*,s:I,s:I,s:O,s:O}", "name", name, "digest",
                        ig_digest_json("fsverity-sha256:", p->digest), "pack",
                        path ? ig_text_json(path) : NULL, "bytes", (json_int_t)p->size, "files",
                        (json_int_t)p->files.n, "derivation",
                        json_object_get(p->manifest, "derivation"), "warnings", src->warnings);
    free(path);
    return *report ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_pin(const struct ig_store *s, const struct ig_pin *job, json_t **report,
                    ingot_error *e)
{
    struct ig_src src = {.warnings = json_array()};
    struct pinning p = {.job = job, .reader.fd = -1};
    struct ig_store store = {0};
    char *name = NULL;
    bool there;
    ingot_status status = src.warnings ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK && job->license) status = check_license(job->license, e);
    if (status == INGOT_OK) status = ig_stat(s->root, &src.skip, &there, e);
    if (status == INGOT_OK && !there) src.skip = (struct stat){0};
    if (status == INGOT_OK) status = ig_pin_list(job->paths, job->npaths, &src, &p.files, e);
    if (status == INGOT_OK && p.files.n == 0)
        status = ig_fail(e, INGOT_ERR_INPUT, "%s: no files to pin", job->paths[0]);
    if (status == INGOT_OK) status = name_of(job, &name, e);
    if (status == INGOT_OK) status = make_manifest(&p, e);
    if (status == INGOT_OK) status = ig_store_open(s->root, true, &store, e);
    if (status == INGOT_OK) ig_store_reclaim(&store);
    if (status == INGOT_OK) status = make(&store, &p, name, e);
    if (status == INGOT_OK) status = report_of(&store, &p, name, &src, report, e);
    ig_store_close(&store);
    ig_src_list_free(&p.files);
    json_decref(p.manifest);
    json_decref(src.warnings);
    free(name);
    return status;
}
