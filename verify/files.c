/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/files.h"

#include "base/pipe.h"
#include "verify/sign.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int by_path(const void *x, const void *y)
{
    const struct ig_file *a = x, *b = y;
    return ig_path_cmp(a->name, b->name);
}

static ingot_status add(struct ig_files *f, const char *name, size_t len, uint64_t bytes,
                        uint32_t source, uint32_t blob, ingot_error *e)
{
    struct ig_file *k = &f->list[f->n];
    *k = (struct ig_file){.bytes = bytes, .source = source, .blob = blob};
    k->name = ig_format("%.*s", (int)len, name);
    if (!k->name) return ig_no_memory(e);
    f->n++;
    return INGOT_OK;
}

ingot_status ig_files_list(const struct ig_pack *p, struct ig_files *out, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    *out = (struct ig_files){.list = ig_array((size_t)p->nsources + p->nblobs, sizeof *out->list)};
    if (!out->list) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nsources && status == INGOT_OK; i++) {
        const struct ig_source *s = &p->sources[i];
        status =
            add(out, s->name, strlen(s->name), ig_pack_is_derived(p) ? 0 : s->bytes, i, IG_NONE, e);
    }
    for (uint32_t i = 0; i < p->nblobs && status == INGOT_OK; i++) {
        struct ig_blob b;
        ig_pack_blob(p, i, &b);
        if (b.kind == IG_BLOB_FILE) status = add(out, b.name, b.name_len, b.bytes, IG_NONE, i, e);
    }
    qsort(out->list, out->n, sizeof *out->list, by_path);
    if (status != INGOT_OK) ig_files_free(out);
    return status;
}

struct turn {
    uint64_t bytes;
    size_t file;
};
struct job {
    const struct ig_pack *p;
    const struct ig_progress *progress;
    struct ig_file *files;
    struct turn *order; /* largest first */
    pthread_mutex_t lock;
    uint64_t done, total;
};
struct one {
    struct job *job;
    struct ig_sha sha;
    uint64_t bytes;
};

static ingot_status take(void *ctx, const void *data, size_t n, ingot_error *e)
{
    struct one *o = ctx;
    struct job *j = o->job;
    const struct ig_progress *g = j->progress;
    if (g->cancelled && g->cancelled(g->ctx)) return ig_fail(e, INGOT_ERR_CANCELLED, "cancelled");
    ig_sha_update(&o->sha, data, n);
    o->bytes += n;
    pthread_mutex_lock(&j->lock);
    j->done += n;
    if (g->update) g->update(g->ctx, j->done < j->total ? j->done : j->total, j->total);
    pthread_mutex_unlock(&j->lock);
    return INGOT_OK;
}

static ingot_status hash(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    struct job *j = ctx;
    struct ig_file *f = &j->files[j->order[i].file];
    struct one o = {.job = j};
    (void)worker;
    if (f->hashed || f->problem) return INGOT_OK; /* by ig_files_pass */
    ig_sha_init(&o.sha);
    ingot_status status = f->source == IG_NONE ? ig_pack_copy_blob(j->p, f->blob, take, &o, e)
                                               : ig_rebuild_export(j->p, f->source, take, &o, e);
    ig_sha_final(&o.sha, f->sha256);
    f->bytes = o.bytes;
    f->hashed = status == INGOT_OK;
    if (status != INGOT_ERR_PACK && status != INGOT_ERR_INPUT && status != INGOT_ERR_CHECK)
        return status;
    free(f->problem);
    f->problem = strdup(e->message);
    return f->problem ? INGOT_OK : ig_no_memory(e);
}

static int largest_first(const void *x, const void *y)
{
    const struct turn *a = x, *b = y;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

ingot_status ig_files_hash(const struct ig_pack *p, struct ig_files *f, unsigned threads,
                           const struct ig_progress *progress, ingot_error *e)
{
    struct job j = {
        .p = p, .progress = progress, .files = f->list, .order = ig_array(f->n, sizeof *j.order)};
    if (!j.order) return ig_no_memory(e);
    for (size_t i = 0; i < f->n; i++) {
        j.order[i] = (struct turn){f->list[i].bytes, i};
        j.total += f->list[i].bytes;
    }
    qsort(j.order, f->n, sizeof *j.order, largest_first);
    pthread_mutex_init(&j.lock, NULL);
    const ingot_status status = ig_parallel(threads ? threads : ig_cpus(), f->n, hash, &j, e);
    pthread_mutex_destroy(&j.lock);
    free(j.order);
    f->read = j.done;
    return status;
}

struct ig_file *ig_files_find(const struct ig_files *f, const char *name)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = ig_path_cmp(f->list[mid].name, name);
        if (order == 0) return &f->list[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool ig_never_signed(const char *name)
{
    static const char *const never[] = {".git", ".gitattributes", ".github", ".gitignore"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (ig_path_within(name, never[i])) return true;
    return false;
}

void ig_files_free(struct ig_files *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->list[i].name), free(f->list[i].problem);
    free(f->list);
    *f = (struct ig_files){0};
}
