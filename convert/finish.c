/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass left over: cells that rows share, and the digest of every row. */
#include "convert/finish.h"
#include "store/format.h"
#include "store/pack_write.h"

#include <stdlib.h>
#include <string.h>

struct mixed {
    struct ig_job *job;
    uint8_t *span; /* the span that is in memory */
    uint64_t last_span, last_page;
    uint64_t weights_end;
};

static ingot_status hash_span(struct mixed *m, uint64_t span, ingot_error *e)
{
    const uint64_t start = WEIGHTS_AT + span * IG_SPAN;
    const size_t n = m->weights_end - start < IG_SPAN ? (size_t)(m->weights_end - start) : IG_SPAN;
    uint8_t xxh[XXH_SIZE];
    return_if_error(ig_pread(m->job->pack.fd, m->job->pack_path, m->span, n, start, e));
    ig_xxh128(xxh, m->span, n);
    m->last_span = span;
    return ig_pwrite(m->job->aux.fd, m->job->pack_path, xxh, sizeof xxh,
                     m->job->xxh_at + span * XXH_SIZE, e);
}

/* A row starts or ends at `pos`, inside a span and perhaps inside a page. */
static ingot_status settle(struct mixed *m, uint64_t pos, bool page_is_shared, ingot_error *e)
{
    const uint64_t span = (pos - WEIGHTS_AT) / IG_SPAN, page = pos / IG_PAGE;
    if ((pos - WEIGHTS_AT) % IG_SPAN == 0) return INGOT_OK;
    if (span != m->last_span) return_if_error(hash_span(m, span, e));
    if (pos % IG_PAGE == 0 || !page_is_shared || page == m->last_page) return INGOT_OK;
    uint8_t leaf[IG_HASH];
    ig_leaf(leaf, m->span + (page * IG_PAGE - WEIGHTS_AT) % IG_SPAN, IG_PAGE);
    m->last_page = page;
    return ig_pwrite(m->job->leaves.fd, m->job->pack_path, leaf, IG_HASH, page * IG_HASH, e);
}

ingot_status ig_finish_mixed(struct ig_job *job, ingot_error *e)
{
    const struct ig_plan *p = job->plan;
    struct mixed m = {.job = job,
                      .span = malloc(IG_SPAN),
                      .last_span = UINT64_MAX,
                      .last_page = UINT64_MAX,
                      .weights_end = WEIGHTS_AT + p->weights_len};
    ingot_status status = m.span ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < p->norder && status == INGOT_OK; i++) {
        const struct ig_from *f = &p->from[p->order[i]];
        status = settle(&m, f->pos, true, e);
        if (status == INGOT_OK)
            status = settle(&m, f->pos + p->rows[p->order[i]].bytes, !f->pads, e);
    }
    free(m.span);
    return status;
}

/* Feed n leaf hashes that stand at index `first` of a leaf file. */
static ingot_status feed(struct ig_tree *t, int fd, const char *path, uint64_t first, uint64_t n,
                         ingot_error *e)
{
    uint8_t window[256 * IG_HASH];
    while (n > 0) {
        const uint64_t k = n < 256 ? n : 256;
        return_if_error(ig_pread(fd, path, window, k * IG_HASH, first * IG_HASH, e));
        return_if_error(ig_tree_add(t, window, k, e));
        first += k, n -= k;
    }
    return INGOT_OK;
}

static ingot_status hash_one_page(struct ig_job *job, struct ig_row *row, uint64_t pos,
                                  ingot_error *e)
{
    uint8_t page[IG_PAGE], leaf[IG_HASH] = {0};
    return_if_error(ig_pread(job->pack.fd, job->pack_path, page, row->bytes, pos, e));
    if (row->bytes) ig_leaf(leaf, page, row->bytes);
    ig_verity_digest(row->digest, row->bytes, leaf);
    return INGOT_OK;
}

static ingot_status row_digest(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    struct ig_job *job = ctx;
    struct ig_row *row = &job->plan->rows[i];
    const struct ig_from *f = &job->plan->from[i];
    const bool view = row->flags & IG_ROW_VIEW;
    (void)worker;
    /* Small source rows were hashed as they passed. */
    if (row->bytes <= IG_PAGE)
        return view || row->bytes == 0 ? hash_one_page(job, row, f->pos, e) : INGOT_OK;
    if (!view && !f->copies) return INGOT_OK; /* the second of a tied pair */
    const uint64_t leaves = (row->bytes + IG_PAGE - 1) / IG_PAGE;
    const bool own = f->pos % IG_PAGE != 0;
    const bool own_last = !own && !f->pads && row->bytes % IG_PAGE != 0;
    struct ig_tree t;
    ig_tree_init(&t);
    return_if_error(
        own ? feed(&t, job->aux.fd, job->pack_path, f->aux, leaves, e)
            : feed(&t, job->leaves.fd, job->pack_path, f->pos / IG_PAGE, leaves - own_last, e));
    if (own_last) return_if_error(feed(&t, job->aux.fd, job->pack_path, f->aux, 1, e));
    return ig_tree_digest(&t, row->bytes, row->digest, e);
}

ingot_status ig_finish_digests(struct ig_job *job, ingot_error *e)
{
    struct ig_plan *p = job->plan;
    return_if_error(ig_parallel(job->threads, p->nrows, row_digest, job, e));
    const struct ig_row *tied = NULL;
    for (uint32_t i = 0; i < p->nrows; i++)
        if (p->rows[i].flags & IG_ROW_TIED && p->from[i].copies) tied = &p->rows[i];
    for (uint32_t i = 0; tied && i < p->nrows; i++)
        if (p->rows[i].flags & IG_ROW_TIED) memcpy(p->rows[i].digest, tied->digest, IG_HASH);
    return INGOT_OK;
}

/* The row as it was before the cast. */
static ingot_status row_before(struct ig_job *job, uint32_t i, struct ig_row *out, ingot_error *e)
{
    const struct ig_from *f = &job->plan->from[i];
    *out = job->plan->rows[i];
    if (f->dtype == out->dtype) return INGOT_OK;
    out->dtype = f->dtype;
    out->bytes = f->bytes;
    struct ig_tree t;
    ig_tree_init(&t);
    return_if_error(
        feed(&t, job->aux.fd, job->pack_path, f->before, (f->bytes + IG_PAGE - 1) / IG_PAGE, e));
    return ig_tree_digest(&t, f->bytes, out->digest, e);
}

ingot_status ig_finish_before(struct ig_job *job, uint8_t content[IG_HASH], ingot_error *e)
{
    struct ig_plan *p = job->plan;
    struct ig_sha h;
    struct ig_row row;
    uint32_t tied = IG_NONE; /* the one of the pair whose bytes were read */
    for (uint32_t i = 0; i < p->nrows; i++)
        if (p->rows[i].flags & IG_ROW_TIED && p->from[i].copies) tied = i;
    ig_content_begin(&h, p->nrows - p->nviews);
    for (uint32_t i = 0; i < p->nrows; i++) {
        const struct ig_row *now = &p->rows[i];
        if (now->flags & IG_ROW_VIEW) continue;
        return_if_error(row_before(job, now->flags & IG_ROW_TIED ? tied : i, &row, e));
        row.name = now->name;
        row.name_len = now->name_len;
        ig_content_row(&h, &row);
    }
    ig_sha_final(&h, content);
    return INGOT_OK;
}

static ingot_status put(json_t *o, const char *key, json_t *v, ingot_error *e)
{
    return json_object_set_new_nocheck(o, key, v) == 0 ? INGOT_OK : ig_no_memory(e);
}

static json_t *derivation(const struct ig_job *job, const uint8_t from[IG_HASH], uint64_t converted)
{
    const struct ig_cast_counts *c = &job->counts;
    json_t *parent = job->plan->parent
                         ? json_incref(json_object_get(job->plan->parent->manifest, "derivation"))
                         : json_pack("{s:s}", "kind", "identity");
    return json_pack("{s:{s:I,s:I,s:I,s:I,s:I},s:s,s:o,s:s,s:o,s:i}", "counts", "converted",
                     (json_int_t)converted, "overflow", (json_int_t)c->overflow, "rounded",
                     (json_int_t)c->rounded, "subnormal", (json_int_t)c->subnormal, "vanished",
                     (json_int_t)c->vanished, "dtype", ig_dtypes[job->plan->job->dtype].name,
                     "from", ig_digest_json("ingot-content-v1:", from), "kind", "dtype", "parent",
                     parent, "saturate", job->plan->job->saturate);
}

ingot_status ig_finish_manifest(const struct ig_job *job, const uint8_t content[IG_HASH],
                                const uint8_t from[IG_HASH], json_t **out, ingot_error *e)
{
    const struct ig_plan *p = job->plan;
    uint64_t converted = 0;
    for (uint32_t i = 0; i < p->nrows; i++)
        converted += p->from[i].input != IG_NONE && p->from[i].dtype != p->rows[i].dtype;
    json_t *m = json_object(), *sources = json_array();
    ingot_status status = m && sources ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < p->nsources && status == INGOT_OK; i++) {
        json_t *s = json_pack("{s:s,s:o,s:I}", "name", p->sources[i].name, "sha256",
                              ig_digest_json("", p->sources[i].sha256), "size",
                              (json_int_t)p->sources[i].bytes);
        if (!s || json_array_append_new(sources, s) != 0) status = ig_no_memory(e);
    }
    if (status == INGOT_OK)
        status = put(m, "content", ig_digest_json("ingot-content-v1:", content), e);
    if (status == INGOT_OK)
        status = put(m, "derivation",
                     p->job->dtype < 0 ? json_pack("{s:s}", "kind", "identity")
                                       : derivation(job, from, converted),
                     e);
    if (status == INGOT_OK) status = put(m, "rules", json_integer(p->job->rules), e);
    if (status == INGOT_OK) status = put(m, "sources", json_incref(sources), e);
    json_decref(sources);
    if (status == INGOT_OK)
        *out = m;
    else
        json_decref(m);
    return status;
}
