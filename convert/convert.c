/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole job, from a source to a published pack.  Nothing is created in the store
 * before the plan stands, and nothing gets a name before it is complete.
 */
#include "convert/convert.h"
#include "convert/finish.h"
#include "convert/publish.h"
#include "store/pack_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Blobs are read while the tail is written; the file of the last call stays open. */
struct blob_reader {
    const struct ig_plan *plan;
    struct ig_src_reader files;
};

static ingot_status read_blob(void *ctx, uint32_t i, void *buf, size_t n, uint64_t offset,
                              ingot_error *e)
{
    struct blob_reader *r = ctx;
    const struct ig_plan_blob *b = &r->plan->blobs[i];
    if (b->data) {
        memcpy(buf, (const char *)b->data + offset, n);
        return INGOT_OK;
    }
    if (!b->file)
        return ig_pread(r->plan->parent->fd, r->plan->parent->path, buf, n, b->pack_offset + offset,
                        e);
    return ig_src_reader_next(&r->files, b->file, buf, n, offset, e);
}

static ingot_status tail_of(const struct ig_plan *p, struct ig_tail *t, ingot_error *e)
{
    const char **names = ig_array(p->nblobs, sizeof *names);
    uint32_t *kinds = ig_array(p->nblobs, sizeof *kinds);
    uint64_t *bytes = ig_array(p->nblobs, sizeof *bytes);
    *t = (struct ig_tail){.rows = p->rows,
                          .extents = p->extents,
                          .links = p->links,
                          .blob_names = names,
                          .blob_kinds = kinds,
                          .blob_bytes = bytes,
                          .nrows = p->nrows,
                          .nextents = p->nextents,
                          .nlinks = p->nlinks,
                          .nblobs = p->nblobs,
                          .weights_len = p->weights_len,
                          .read_blob = read_blob};
    if (!names || !kinds || !bytes) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nblobs; i++) {
        names[i] = p->blobs[i].name;
        kinds[i] = p->blobs[i].kind;
        bytes[i] = p->blobs[i].bytes;
    }
    return INGOT_OK;
}

static void free_tail(struct ig_tail *t)
{
    free((void *)t->blob_names);
    free((void *)t->blob_kinds);
    free((void *)t->blob_bytes);
}

/* Pack, its leaves twice (as they come and in the sidecar), the rows' own leaves. */
static ingot_status check_space(const struct ig_store *s, const struct ig_plan *p, uint64_t size,
                                ingot_error *e)
{
    struct statvfs fs;
    char *dir = ig_store_path(s, "packs", NULL);
    if (!dir) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    const uint64_t need = size + 2 * (size / IG_FAN + size / IG_FAN / IG_FAN + 16 * IG_PAGE) +
                          p->aux_leaves * IG_HASH;
    if (statvfs(dir, &fs) != 0) {
        status = ig_fail_sys(e, errno, "%s: cannot ask for free space", dir);
    } else if ((uint64_t)fs.f_bavail * fs.f_frsize < need) {
        status = ig_fail(e, INGOT_ERR_NO_SPACE,
                         "%s: %llu bytes free, the pack and its tree need %llu (ENOSPC)", dir,
                         (unsigned long long)fs.f_bavail * fs.f_frsize, (unsigned long long)need);
        ig_at(e, dir, NULL, 0);
    }
    free(dir);
    return status;
}

static ingot_status reserve(const struct ig_job *job, uint64_t size, ingot_error *e)
{
    while (fallocate(job->pack.fd, 0, 0, (off_t)size) != 0) {
        if (errno == EINTR) continue;
        if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
            /* Not every file system can; what is padding must be there to be read, all the same. */
            return ig_truncate(job->pack.fd, job->pack_path, size, e);
        return ig_fail_sys(e, errno, "%s: cannot reserve %llu bytes", job->pack_path,
                           (unsigned long long)size);
    }
    return INGOT_OK;
}

static ingot_status refuse_overflow(const struct ig_job *job, ingot_error *e)
{
    const struct ig_plan *p = job->plan;
    if (!job->counts.overflow || p->job->saturate) return INGOT_OK;
    uint32_t first = IG_NONE, tensors = 0;
    for (uint32_t i = 0; i < p->nrows; i++) {
        if (!job->overflow[i]) continue;
        if (first == IG_NONE) first = i;
        tensors++;
    }
    const struct ig_row *row = &p->rows[first];
    ig_fail(e, INGOT_ERR_INPUT,
            "tensor \"%s\": %llu finite values are out of range of %s (%llu in %u tensors in all); "
            "--saturate takes the largest value instead",
            ig_esc(row->name, row->name_len).s, (unsigned long long)job->overflow[first],
            ig_dtypes[p->job->dtype].name, (unsigned long long)job->counts.overflow, tensors);
    return ig_at(e, NULL, row->name, row->name_len);
}

static ingot_status make_manifest(struct ig_job *job, struct ig_made *made, ingot_error *e)
{
    uint8_t from[IG_HASH] = {0};
    struct ig_plan *p = job->plan;
    ig_content_digest(p->rows, p->nrows, made->content);
    if (p->job->dtype >= 0 && p->parent) memcpy(from, p->parent->content, IG_HASH);
    if (p->job->dtype >= 0 && p->src) return_if_error(ig_finish_before(job, from, e));
    return_if_error(ig_finish_manifest(job, made->content, from, &made->manifest, e));
    return ig_json_dump(made->manifest, &made->text, &made->text_len, e);
}

/* A pack that is read is judged by the bytes that were read, not by an earlier look. */
static ingot_status check_parent(const struct ig_job *job, const struct ig_ref *ref, ingot_error *e)
{
    if (!ref || memcmp(job->parent_digest, ref->digest, IG_HASH) == 0) /* ref: only with a parent */
        return INGOT_OK;
    char found[65], wanted[65];
    ig_hex(found, job->parent_digest, IG_HASH);
    ig_hex(wanted, ref->digest, IG_HASH);
    return ig_fail(e, INGOT_ERR_CHECK, "%s: digest is %s, expected %s; see ingot verify", ref->path,
                   found, wanted);
}

static ingot_status make_pack(const struct ig_store *s, struct ig_job *job,
                              const struct ig_ref *ref, struct ig_made *made, ingot_error *e)
{
    struct ig_tail t;
    struct blob_reader reader = {.plan = job->plan, .files.fd = -1};
    const size_t manifest_guess = 4096 + 400 * (size_t)job->plan->nsources;
    ingot_status status = tail_of(job->plan, &t, e);
    t.ctx = &reader;
    if (status == INGOT_OK) status = ig_tail_size(&t, manifest_guess, &made->size, e);
    if (status == INGOT_OK) status = check_space(s, job->plan, made->size, e);
    if (status == INGOT_OK) status = ig_temp_open(s, &job->pack, e);
    if (status == INGOT_OK) status = ig_temp_open(s, &job->leaves, e);
    if (status == INGOT_OK) status = ig_temp_open(s, &job->aux, e);
    if (status == INGOT_OK) status = ig_temp_open(s, &made->tree, e);
    t.xxh_fd = job->aux.fd;
    t.xxh_at = job->xxh_at = job->plan->aux_leaves * IG_HASH;
    job->pack_path = job->pack.dir;
    if (status == INGOT_OK) status = reserve(job, made->size, e);
    if (status == INGOT_OK) ig_direct_open(&job->out, job->pack.fd, job->pack_path);
    if (status == INGOT_OK) status = ig_pass_run(job, e);
    ig_direct_close(&job->out);
    if (status == INGOT_OK) status = check_parent(job, ref, e);
    if (status == INGOT_OK) status = refuse_overflow(job, e);
    if (status == INGOT_OK) status = ig_finish_mixed(job, e);
    if (status == INGOT_OK) status = ig_finish_digests(job, e);
    if (status == INGOT_OK) status = ig_finish_scales(job, e);
    if (status == INGOT_OK) status = make_manifest(job, made, e);
    if (status == INGOT_OK)
        status = ig_pack_seal(job->pack.fd, job->pack_path, job->leaves.fd, made->tree.fd, &t,
                              made->text, made->text_len, made->digest, e);
    if (status == INGOT_OK) status = ig_tail_size(&t, made->text_len, &made->size, e);
    if (reader.files.fd >= 0) close(reader.files.fd);
    free_tail(&t);
    return status;
}

static ingot_status run(const struct ig_store *s, struct ig_plan *plan, const struct ig_ref *ref,
                        const char *label, json_t **report, ingot_error *e)
{
    struct ig_store store = {0};
    struct ig_made made = {.tree = {.fd = -1}};
    const struct ig_convert *c = plan->job;
    struct ig_job job = {.plan = plan,
                         .threads = c->threads ? c->threads : ig_cpus(),
                         .pack = {.fd = -1},
                         .out = {.past_cache = -1},
                         .leaves = {.fd = -1},
                         .aux = {.fd = -1}};
    ingot_status status = ig_publish_name(c, label, &made.name, e);
    if (status == INGOT_OK) status = ig_plan_make(plan, e);
    if (status == INGOT_OK && c->dtype >= 0) {
        job.overflow = ig_array(plan->nrows, sizeof *job.overflow);
        if (!job.overflow) status = ig_no_memory(e);
    }
    if (status == INGOT_OK) status = ig_store_open(s->root, true, &store, e);
    if (status == INGOT_OK) ig_store_reclaim(&store);
    if (status == INGOT_OK) status = make_pack(&store, &job, ref, &made, e);
    if (status == INGOT_OK && c->digest)
        memcpy(c->digest, made.digest, IG_HASH);
    else if (status == INGOT_OK)
        status = ig_publish(&store, &job, &made, report, e);
    ig_temp_discard(&job.pack);
    ig_temp_discard(&job.leaves);
    ig_temp_discard(&job.aux);
    ig_temp_discard(&made.tree);
    json_decref(made.manifest);
    free(made.text);
    free(made.name);
    free(job.overflow);
    ig_store_close(&store);
    return status;
}

static ingot_status from_model(const struct ig_store *s, const struct ig_convert *c,
                               json_t **report, ingot_error *e)
{
    struct ig_ref ref = {0};
    struct ig_pack parent = {.fd = -1};
    struct ig_plan plan = {.job = c, .parent = &parent};
    ingot_status status = ig_store_resolve(s, c->source, &ref, e);
    if (status == INGOT_ERR_NOT_FOUND && e) {
        char why[sizeof e->message];
        memcpy(why, e->message, sizeof why);
        ig_fail(e, status, "%s: no such file or folder, and %s",
                ig_esc(c->source, strlen(c->source)).s, why);
    }
    if (status == INGOT_OK && c->dtype < 0)
        status = ig_fail(e, INGOT_ERR_USAGE,
                         "%s is a pack already; say what to make of it, such as "
                         "--dtype f16",
                         c->source);
    if (status == INGOT_OK && !ref.has_digest)
        status = ig_fail(e, INGOT_ERR_USAGE,
                         "%s: nothing says what its digest must be; give it by "
                         "name or digest",
                         c->source);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &parent, e);
    if (status == INGOT_OK && ig_pack_is_inputs(&parent))
        status = ig_fail(e, INGOT_ERR_UNSUPPORTED,
                         "%s: is an input set, with no tensors to make anything of", c->source);
    if (status == INGOT_OK) status = run(s, &plan, &ref, ref.name ? ref.name : "model", report, e);
    ig_plan_free(&plan);
    ig_pack_close(&parent);
    ig_ref_free(&ref);
    return status;
}

static ingot_status from_files(const struct ig_store *s, const struct ig_convert *c,
                               json_t **report, ingot_error *e)
{
    struct ig_src src;
    struct ig_plan plan = {.job = c, .src = &src};
    ingot_status status = ig_src_open(c, s->root, &src, e);
    if (status == INGOT_OK) status = run(s, &plan, NULL, src.label, report, e);
    ig_plan_free(&plan);
    ig_src_free(&src);
    return status;
}

/* A path that exists is a source, unless it is a pack; anything else is a MODEL. */
static bool is_model(const char *source)
{
    struct stat st;
    const size_t n = strlen(source);
    if (n > 6 && strcmp(source + n - 6, ".ingot") == 0) return true;
    return lstat(source, &st) != 0 && source[0] != '/' && source[0] != '.';
}

ingot_status ig_convert(const struct ig_store *s, const struct ig_convert *c, json_t **report,
                        ingot_error *e)
{
    *report = NULL;
    if (c->rules != IG_RULES)
        return ig_fail(e, INGOT_ERR_USAGE, "rules %u are unknown; this version writes %d", c->rules,
                       IG_RULES);
    return is_model(c->source) ? from_model(s, c, report, e) : from_files(s, c, report, e);
}
