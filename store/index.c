/* SPDX-License-Identifier: Apache-2.0 */
/* What packs/ holds, from index.mdb where that is fresh, from the packs where it is not. */
#include "store/index_private.h"

#include <stdlib.h>
#include <string.h>

#define CONTENT_PREFIX "ingot-content-v1:"

ingot_status ig_index_add_origin(struct ig_index *index, size_t *cap, const uint8_t sha256[IG_HASH],
                                 uint32_t pack, uint64_t bytes, const char *name, size_t len,
                                 ingot_error *e)
{
    if (index->norigins == *cap) {
        const size_t more = *cap ? 2 * *cap : 64;
        struct ig_origin *p = reallocarray(index->origins, more, sizeof *p);
        if (!p) return ig_no_memory(e);
        index->origins = p;
        *cap = more;
    }
    struct ig_origin *o = &index->origins[index->norigins];
    *o = (struct ig_origin){.pack = pack, .bytes = bytes, .name = strndup(name, len)};
    if (!o->name) return ig_no_memory(e);
    memcpy(o->sha256, sha256, IG_HASH);
    index->norigins++;
    return INGOT_OK;
}

static int by_sha256(const void *a, const void *b)
{
    const struct ig_origin *oa = a, *ob = b;
    const int order = memcmp(oa->sha256, ob->sha256, IG_HASH);
    if (order) return order;
    if (oa->pack != ob->pack) return oa->pack < ob->pack ? -1 : 1;
    return strcmp(oa->name, ob->name);
}

void ig_index_sort_origins(struct ig_index *index)
{
    if (index->norigins) qsort(index->origins, index->norigins, sizeof *index->origins, by_sha256);
}

static void summarise_rows(const struct ig_pack *p, struct ig_summary *s)
{
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        if (row.flags & IG_ROW_VIEW) {
            s->views++;
        } else if (row.flags & IG_ROW_SHADOW) {
            s->shadows++;
        } else {
            s->tensors++;
            s->bytes += row.bytes;
            s->dtype_tensors[row.dtype]++;
            s->dtype_bytes[row.dtype] += row.bytes;
        }
    }
}

static void summarise(const struct ig_pack *p, struct ig_summary *s)
{
    const json_t *derivation = json_object_get(p->manifest, "derivation");
    const char *kind = json_string_value(json_object_get(derivation, "kind"));
    const char *from = json_string_value(json_object_get(derivation, "from"));
    const size_t prefix = strlen(CONTENT_PREFIX);
    summarise_rows(p, s);
    memcpy(s->content, p->content, IG_HASH);
    s->rules = p->rules;
    s->nsources = p->nsources;
    ig_escape(s->kind, sizeof s->kind, kind ? kind : "", kind ? strlen(kind) : 0); /* cut whole */
    s->has_from = from && strlen(from) == prefix + 2 * IG_HASH &&
                  memcmp(from, CONTENT_PREFIX, prefix) == 0 &&
                  ig_unhex(s->from, IG_HASH, from + prefix);
}

/* Read one pack into the next summary; a damaged one is an entry, not a failure. */
static ingot_status open_pack(const struct ig_store *s, const struct ig_store_file *f,
                              struct ig_index *index, size_t *cap, ingot_error *e)
{
    struct ig_summary *sum = &index->packs[index->npacks];
    struct ig_pack pack = {0};
    ingot_error why;
    char *path = ig_store_pack_path(s, f->digest);
    if (!path) return ig_no_memory(e);
    *sum = (struct ig_summary){.size = f->size, .sec = f->sec, .nsec = f->nsec};
    memcpy(sum->digest, f->digest, IG_HASH);
    ingot_status status = ig_pack_open(path, &pack, &why);
    free(path);
    if (status == INGOT_ERR_NOT_FOUND) return INGOT_OK; /* removed since it was listed */
    if (status == INGOT_ERR_NO_MEMORY) return ig_no_memory(e);
    index->opened++;
    if (status == INGOT_OK)
        summarise(&pack, sum);
    else if (!(sum->problem = strdup(why.message)))
        return ig_no_memory(e);
    const uint32_t at = (uint32_t)index->npacks++;
    status = INGOT_OK;
    for (uint32_t i = 0; i < pack.nsources && status == INGOT_OK; i++) {
        const struct ig_source *src = &pack.sources[i];
        status = ig_index_add_origin(index, cap, src->sha256, at, src->bytes, src->name,
                                     strlen(src->name), e);
    }
    ig_pack_close(&pack);
    return status;
}

/* Index entries are per digest, and a digest's content never changes: an entry whose file has
 * another size or time is not wrong but says that the file deserves a look. */
static bool is_fresh(const struct ig_summary *old, const struct ig_store_file *f)
{
    return !old->problem && old->size == f->size && old->sec == f->sec && old->nsec == f->nsec;
}

static bool known_damaged(const struct ig_summary *old, const struct ig_summary *now)
{
    return old && old->problem && now->problem && old->size == now->size && old->sec == now->sec &&
           old->nsec == now->nsec;
}

/* The origins of old summaries that were taken over; to[i] is their new place or IG_NONE. */
static ingot_status take_origins(struct ig_index *out, size_t *cap, const struct ig_index *old,
                                 const uint32_t *to, ingot_error *e)
{
    for (size_t i = 0; i < old->norigins; i++) {
        const struct ig_origin *o = &old->origins[i];
        if (to[o->pack] == IG_NONE) continue;
        return_if_error(ig_index_add_origin(out, cap, o->sha256, to[o->pack], o->bytes, o->name,
                                            strlen(o->name), e));
    }
    ig_index_sort_origins(out);
    return INGOT_OK;
}

/* Make out from the files and what the old index knows of them; *same: it knew exactly this. */
static ingot_status merge(const struct ig_store *s, const struct ig_store_file *files, size_t n,
                          const struct ig_index *old, struct ig_index *out, bool *same,
                          ingot_error *e)
{
    size_t cap = 0;
    ingot_status status = INGOT_OK;
    uint32_t *to = ig_array(old->npacks, sizeof *to);
    out->packs = ig_array(n, sizeof *out->packs);
    if (!to || !out->packs) {
        status = ig_no_memory(e);
        goto out;
    }
    memset(to, 0xff, old->npacks * sizeof *to);
    *same = true;
    for (size_t i = 0; i < n && status == INGOT_OK; i++) {
        const struct ig_summary *was = ig_index_find(old, files[i].digest);
        if (was && is_fresh(was, &files[i])) {
            to[was - old->packs] = (uint32_t)out->npacks;
            out->packs[out->npacks++] = *was;
            continue;
        }
        const size_t before = out->npacks;
        status = open_pack(s, &files[i], out, &cap, e);
        if (out->npacks > before && !known_damaged(was, &out->packs[before])) *same = false;
    }
    if (out->npacks != old->npacks) *same = false;
    if (status == INGOT_OK) status = take_origins(out, &cap, old, to, e);
out:
    free(to);
    return status;
}

static void note(struct ig_index *index, const ingot_error *why, const char *what)
{
    char *text = ig_format("%s%s%s%s", index->notice ? index->notice : "",
                           index->notice ? "; " : "", why->message, what);
    if (!text) return;
    free(index->notice);
    index->notice = text;
}

static ingot_status load(const struct ig_store *s, bool believe, bool refresh, struct ig_index *out,
                         ingot_error *e)
{
    struct ig_index old = {0};
    struct ig_store_file *files;
    size_t n;
    bool same = false;
    ingot_error why;
    *out = (struct ig_index){0};
    return_if_error(ig_store_packs(s, &files, &n, e));
    ingot_status status = believe ? ig_index_read(s, &old, &why) : INGOT_ERR_NOT_FOUND;
    const bool had = status == INGOT_OK;
    if (!had && status != INGOT_ERR_NOT_FOUND)
        note(out, &why, refresh ? ", making a new one" : ", reading the packs instead");
    status = merge(s, files, n, &old, out, &same, e);
    /* No index of nothing: an empty or absent store stays as it is. */
    if (status == INGOT_OK && believe && refresh && !(had && same) && (had || n > 0) &&
        ig_index_write(s, out, 0, &why) != INGOT_OK)
        note(out, &why, ", going on without an index");
    free(files);
    ig_index_free(&old);
    if (status != INGOT_OK) ig_index_free(out);
    return status;
}

ingot_status ig_index_load(const struct ig_store *s, bool refresh, struct ig_index *out,
                           ingot_error *e)
{
    return load(s, true, refresh, out, e);
}

ingot_status ig_index_rebuild(const struct ig_store *s, struct ig_index *out, ingot_error *e)
{
    return_if_error(load(s, false, false, out, e));
    const ingot_status status = ig_index_write(s, out, 0, e);
    if (status != INGOT_OK) ig_index_free(out);
    return status;
}

void ig_index_free(struct ig_index *index)
{
    for (size_t i = 0; i < index->npacks; i++) free(index->packs[i].problem);
    for (size_t i = 0; i < index->norigins; i++) free(index->origins[i].name);
    free(index->packs);
    free(index->origins);
    free(index->notice);
    *index = (struct ig_index){0};
}

static int digest_cmp(const void *key, const void *item)
{
    return memcmp(key, ((const struct ig_summary *)item)->digest, IG_HASH);
}

const struct ig_summary *ig_index_find(const struct ig_index *index, const uint8_t digest[IG_HASH])
{
    if (!index->npacks) return NULL;
    return bsearch(digest, index->packs, index->npacks, sizeof *index->packs, digest_cmp);
}

bool ig_summary_holds_sources(const struct ig_summary *s)
{
    return !s->problem && strcmp(s->kind, "identity") == 0;
}

/* Order of a source file against a prefix of hex digits. */
static int prefix_cmp(const struct ig_origin *o, const char *hex, size_t len)
{
    char full[2 * IG_HASH + 1];
    ig_hex(full, o->sha256, IG_HASH);
    return strncmp(full, hex, len);
}

const struct ig_origin *ig_index_find_source(const struct ig_index *index, const char *hex,
                                             size_t len, size_t *count)
{
    size_t low = 0, high = index->norigins;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (prefix_cmp(&index->origins[middle], hex, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < index->norigins && prefix_cmp(&index->origins[end], hex, len) == 0) end++;
    *count = end - low;
    return *count ? &index->origins[low] : NULL;
}
