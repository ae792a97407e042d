/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/plan.h"

#include <stdlib.h>
#include <string.h>

/* A chain of allocations, freed together. */
struct chunk {
    struct chunk *next;
    max_align_t data[];
};

void *ig_plan_alloc(struct ig_plan *p, size_t n)
{
    struct chunk *c = malloc(sizeof *c + n);
    if (!c) return NULL;
    c->next = p->strings;
    p->strings = c;
    return c->data;
}

int ig_plan_row_cmp(const struct ig_row *a, const struct ig_row *b)
{
    const int order = ig_bytes_cmp(a->name, a->name_len, b->name, b->name_len);
    if (order) return order;
    const uint32_t sa = a->flags & IG_ROW_SHADOW, sb = b->flags & IG_ROW_SHADOW;
    if (sa != sb) return sa < sb ? -1 : 1;
    return (a->source > b->source) - (a->source < b->source);
}

uint32_t ig_plan_find(const struct ig_plan *p, const char *name, size_t len)
{
    const struct ig_row key = {.name = name, .name_len = (uint32_t)len};
    uint32_t low = 0, high = p->nrows;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (ig_plan_row_cmp(&p->rows[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    /* A key of source 0 sorts before every row of its name. */
    const bool hit =
        low < p->nrows && p->rows[low].name_len == len && memcmp(p->rows[low].name, name, len) == 0;
    return hit ? low : IG_NONE;
}

static int blob_cmp(const void *a, const void *b)
{
    const struct ig_plan_blob *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static void sort_blobs(struct ig_plan *p)
{
    qsort(p->blobs, p->nblobs, sizeof *p->blobs, blob_cmp);
    p->config_blob = p->hf_quant_blob = IG_NONE;
    for (uint32_t i = 0; i < p->nblobs; i++) {
        if (p->blobs[i].kind != IG_BLOB_FILE) continue;
        if (strcmp(p->blobs[i].name, "config.json") == 0) p->config_blob = i;
        if (strcmp(p->blobs[i].name, "hf_quant_config.json") == 0) p->hf_quant_blob = i;
    }
}

static ingot_status allocate(struct ig_plan *p, uint64_t rows, uint32_t blobs, ingot_error *e)
{
    if (rows >= IG_NONE)
        return ig_fail(e, INGOT_ERR_INPUT, "%llu tensors, expected fewer than 2^32 - 1",
                       (unsigned long long)rows);
    p->rows = ig_array((size_t)rows, sizeof *p->rows);
    p->from = ig_array((size_t)rows, sizeof *p->from);
    p->blobs = ig_array(blobs, sizeof *p->blobs);
    p->sources = ig_array(p->nsources, sizeof *p->sources);
    if (!p->rows || !p->from || !p->blobs || !p->sources) return ig_no_memory(e);
    return INGOT_OK;
}

static ingot_status collect_files(struct ig_plan *p, ingot_error *e)
{
    struct ig_src *s = p->src;
    uint64_t count = 0;
    for (uint32_t i = 0; i < s->nweights; i++) count += s->weights[i].header.count;
    p->nsources = s->nweights;
    return_if_error(allocate(p, count, s->nweights + s->nblobs, e));
    for (uint32_t i = 0; i < s->nweights; i++) {
        const struct ig_src_file *f = &s->weights[i];
        const struct ig_st *st = &f->header;
        const uint64_t data = 8 + st->header_len;
        p->sources[i] = (struct ig_source){.name = f->name, .bytes = (uint64_t)f->st.st_size};
        p->read_bytes += (uint64_t)f->st.st_size;
        if (p->job->dtype < 0)
            p->blobs[p->nblobs++] = (struct ig_plan_blob){
                .name = f->name, .kind = IG_BLOB_HEADER, .bytes = data, .data = st->header};
        for (size_t k = 0; k < st->count; k++) {
            const struct ig_st_tensor *t = &st->tensors[k];
            p->rows[p->nrows] = (struct ig_row){.name = t->name,
                                                .name_len = t->name_len,
                                                .rank = t->rank,
                                                .shape = t->shape,
                                                .dtype = t->dtype,
                                                .extent = IG_NONE,
                                                .source = i,
                                                .bytes = t->end - t->begin};
            p->from[p->nrows++] = (struct ig_from){.offset = data + t->begin,
                                                   .bytes = t->end - t->begin,
                                                   .input = i,
                                                   .dtype = t->dtype};
        }
    }
    for (uint32_t i = 0; i < s->nblobs; i++)
        p->blobs[p->nblobs++] = (struct ig_plan_blob){.name = s->blobs[i].name,
                                                      .bytes = (uint64_t)s->blobs[i].st.st_size,
                                                      .file = &s->blobs[i]};
    p->config = s->config;
    p->hf_quant = s->hf_quant;
    return INGOT_OK;
}

static ingot_status collect_blobs_of_parent(struct ig_plan *p, ingot_error *e)
{
    for (uint32_t i = 0; i < p->parent->nblobs; i++) {
        struct ig_blob b;
        ig_pack_blob(p->parent, i, &b);
        if (b.kind != IG_BLOB_FILE) continue;
        char *name = ig_plan_alloc(p, b.name_len + 1);
        if (!name) return ig_no_memory(e);
        memcpy(name, b.name, b.name_len);
        name[b.name_len] = '\0';
        p->blobs[p->nblobs++] =
            (struct ig_plan_blob){.name = name, .bytes = b.bytes, .pack_offset = b.offset};
    }
    return INGOT_OK;
}

/* A derived pack from a pack: shadows are dropped, views are made anew. */
static ingot_status collect_parent(struct ig_plan *p, ingot_error *e)
{
    const struct ig_pack *k = p->parent;
    p->nsources = k->nsources;
    return_if_error(allocate(p, k->nrows, k->nblobs, e));
    memcpy(p->sources, k->sources, k->nsources * sizeof *p->sources);
    p->read_bytes = k->size;
    for (uint32_t i = 0; i < k->nrows; i++) {
        struct ig_row row;
        ig_pack_row(k, i, &row);
        if (row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW)) continue;
        p->from[p->nrows] = (struct ig_from){
            .offset = ig_pack_pos(k, &row), .bytes = row.bytes, .dtype = row.dtype};
        row.flags = 0;
        row.extent = IG_NONE;
        row.offset = 0;
        row.link = row.nlinks = 0;
        p->rows[p->nrows++] = row;
    }
    return_if_error(collect_blobs_of_parent(p, e));
    uint32_t unused; /* blobs of the new pack are numbered anew */
    return_if_error(ig_config_of_pack(k, "config.json", &p->config, &unused, e));
    return ig_config_of_pack(k, "hf_quant_config.json", &p->hf_quant, &unused, e);
}

ingot_status ig_plan_collect(struct ig_plan *p, ingot_error *e)
{
    return_if_error(p->src ? collect_files(p, e) : collect_parent(p, e));
    sort_blobs(p);
    return INGOT_OK;
}

/* A scale-aware cast: plain float tensors only. */
ingot_status ig_plan_casts(struct ig_plan *p, ingot_error *e)
{
    const int to = p->job->dtype;
    if (to < 0) return INGOT_OK;
    uint8_t *fixed = ig_array(p->nrows, 1);
    if (!fixed) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->scales.nlinks; i++) {
        const struct ig_link *l = &p->scales.links[i];
        fixed[l->object] = 1;
        if (l->subject != IG_NONE) fixed[l->subject] = 1;
    }
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row *row = &p->rows[i];
        const bool plain = row->dtype == IG_F16 || row->dtype == IG_BF16 || row->dtype == IG_F32;
        if (!plain || fixed[i]) continue;
        const uint64_t n = row->bytes / (ig_dtypes[row->dtype].bits / 8);
        row->dtype = (uint32_t)to;
        row->bytes = n * (ig_dtypes[to].bits / 8);
    }
    free(fixed);
    return INGOT_OK;
}

ingot_status ig_plan_make(struct ig_plan *p, ingot_error *e)
{
    return_if_error(ig_plan_collect(p, e));
    return_if_error(ig_plan_shadows(p, e));
    return_if_error(ig_plan_scales(p, e));
    return_if_error(ig_plan_casts(p, e));
    return_if_error(ig_plan_heads(p, e));
    return ig_plan_layout(p, e);
}

void ig_plan_free(struct ig_plan *p)
{
    for (struct chunk *c = p->strings, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    if (p->parent) {
        json_decref(p->config);
        json_decref(p->hf_quant);
    }
    ig_scales_free(&p->scales);
    free(p->rows);
    free(p->from);
    free(p->order);
    free(p->extents);
    free(p->links);
    free(p->blobs);
    free(p->sources);
    *p = (struct ig_plan){0};
}
