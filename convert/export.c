/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of the pack again: a new folder, complete or not there.  Everything is written into a
 * hidden sibling that is renamed at the end; every byte written is hashed on the way and held
 * against what the pack says it must be.
 */
#include "base/pipe.h"
#include "convert/export_place.h"
#include "convert/rebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct out { /* one file being written */
    int fd;
    const char *path;
    uint64_t at;
    struct ig_sha sha;
    struct export *x;
};
struct export
{
    const struct ig_pack *p;
    const struct ig_export *job;
    const char *dir; /* the hidden one */
    pthread_mutex_t lock;
    uint64_t done, total;
    size_t nsigs;
};

static void report(struct export *x, uint64_t n)
{
    const struct ig_progress *g = &x->job->progress;
    pthread_mutex_lock(&x->lock);
    x->done += n;
    if (g->update) g->update(g->ctx, x->done, x->total);
    pthread_mutex_unlock(&x->lock);
}

static ingot_status write_piece(void *ctx, const void *data, size_t n, ingot_error *e)
{
    struct out *o = ctx;
    const struct ig_progress *g = &o->x->job->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    return_if_error(ig_pwrite(o->fd, o->path, data, n, o->at, e));
    ig_sha_update(&o->sha, data, n);
    o->at += n;
    report(o->x, n);
    return INGOT_OK;
}

static ingot_status open_out(struct export *x, const char *path, struct out *o, ingot_error *e)
{
    *o = (struct out){
        .path = path, .x = x, .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
    if (o->fd < 0) return ig_fail_sys(e, errno, "%s: cannot create", path);
    ig_sha_init(&o->sha);
    return INGOT_OK;
}

/* Flush and close; expected NULL: nothing to compare with. */
static ingot_status close_out(struct out *o, ingot_status status, const uint8_t *expected,
                              ingot_error *e)
{
    uint8_t sha[IG_HASH];
    ig_sha_final(&o->sha, sha);
    if (status == INGOT_OK && expected && memcmp(sha, expected, IG_HASH) != 0) {
        char found[65], wanted[65];
        ig_hex(found, sha, IG_HASH);
        ig_hex(wanted, expected, IG_HASH);
        ig_fail(e, INGOT_ERR_CHECK,
                "%s: SHA-256 of the rebuilt file is %s, expected %s; the pack is "
                "damaged",
                o->path, found, wanted);
        status = ig_at(e, o->path, NULL, 0);
    }
    if (status == INGOT_OK) status = ig_fsync(o->fd, o->path, e);
    const ingot_status closed = ig_close(&o->fd, o->path, status == INGOT_OK ? e : NULL);
    return status == INGOT_OK ? closed : status;
}

/* DIR/NAME with the folders in between. */
static ingot_status make_path(const char *dir, const char *name, size_t len, char **path,
                              ingot_error *e)
{
    *path = ig_format("%s/%.*s", dir, (int)len, name);
    if (!*path) return ig_no_memory(e);
    char *slash = strrchr(*path, '/');
    *slash = '\0';
    const ingot_status status = ig_mkdirs(*path, e);
    *slash = '/';
    return status;
}

static ingot_status export_source(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    struct export *x = ctx;
    const struct ig_source *s = &x->p->sources[i];
    const bool derived = ig_pack_is_derived(x->p);
    char *path = NULL;
    struct out o;
    (void)worker;
    ingot_status status = make_path(x->dir, s->name, strlen(s->name), &path, e);
    if (status == INGOT_OK) status = open_out(x, path, &o, e);
    if (status == INGOT_OK) {
        status = ig_rebuild_export(x->p, (uint32_t)i, write_piece, &o, e);
        status = close_out(&o, status, derived ? NULL : s->sha256, e);
    }
    free(path);
    return status;
}

static ingot_status export_blob(struct export *x, uint32_t i, ingot_error *e)
{
    struct ig_blob b;
    struct out o;
    char *path = NULL;
    ig_pack_blob(x->p, i, &b);
    if (b.kind != IG_BLOB_FILE) return INGOT_OK;
    ingot_status status = make_path(x->dir, b.name, b.name_len, &path, e);
    if (status == INGOT_OK) status = open_out(x, path, &o, e);
    if (status == INGOT_OK)
        status = close_out(&o, ig_pack_copy_blob(x->p, i, write_piece, &o, e), b.sha256, e);
    free(path);
    return status;
}

static ingot_status export_folder(struct export *x, ingot_error *e)
{
    char *target = strdup(x->job->folder);
    for (size_t n = target ? strlen(target) : 0; n > 1 && target[n - 1] == '/';) target[--n] = '\0';
    char *hidden = target ? ig_export_sibling(target) : NULL;
    char *sigs = NULL;
    bool made = false;
    ingot_status status = hidden ? ig_export_absent(target, true, e) : ig_no_memory(e);
    if (status == INGOT_OK) {
        made = mkdir(hidden, 0777) == 0;
        if (!made) status = ig_fail_sys(e, errno, "%s: cannot create folder", hidden);
    }
    x->dir = hidden;
    for (uint32_t i = 0; i < x->p->nblobs && status == INGOT_OK; i++) status = export_blob(x, i, e);
    if (status == INGOT_OK)
        status = ig_parallel(x->job->threads ? x->job->threads : ig_cpus(), x->p->nsources,
                             export_source, x, e);
    if (status == INGOT_OK) status = ig_export_flush(hidden, e);
    if (status == INGOT_OK) status = ig_export_sigs(x->p->path, target, &x->nsigs, &sigs, e);
    if (status == INGOT_OK) status = ig_export_move(hidden, target, e);
    if (status != INGOT_OK && made) ig_export_remove(hidden);
    if (status != INGOT_OK && sigs) ig_export_remove(sigs);
    free(sigs);
    free(hidden);
    free(target);
    return status;
}

static ingot_status export_merged(struct export *x, ingot_error *e)
{
    const char *target = x->job->safetensors;
    char *hidden = ig_export_sibling(target);
    struct out o = {.fd = -1};
    ingot_status status = hidden ? ig_export_absent(target, false, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = open_out(x, hidden, &o, e);
    if (o.fd >= 0) {
        status = close_out(&o, ig_rebuild_export(x->p, IG_NONE, write_piece, &o, e), NULL, e);
        if (status == INGOT_OK) status = ig_export_move(hidden, target, e);
        if (status != INGOT_OK) unlink(hidden);
    }
    free(hidden);
    return status;
}

ingot_status ig_export(const struct ig_pack *p, const struct ig_export *job, json_t **report_out,
                       ingot_error *e)
{
    struct export x = {.p = p, .job = job};
    for (uint32_t i = 0; i < p->nsources; i++) x.total += p->sources[i].bytes;
    pthread_mutex_init(&x.lock, NULL);
    ingot_status status = INGOT_OK;
    if (job->folder) status = export_folder(&x, e);
    if (status == INGOT_OK && job->safetensors) status = export_merged(&x, e);
    pthread_mutex_destroy(&x.lock);
    if (status != INGOT_OK) return status;
    *report_out = json_pack("{s:o?,s:o?,s:I,s:I,s:I,s:b}", "folder",
                            job->folder ? ig_text_json(job->folder) : NULL, "safetensors",
                            job->safetensors ? ig_text_json(job->safetensors) : NULL, "sources",
                            (json_int_t)p->nsources, "bytes", (json_int_t)x.done, "signatures",
                            (json_int_t)x.nsigs, "derived", ig_pack_is_derived(p));
    return *report_out ? INGOT_OK : ig_no_memory(e);
}
