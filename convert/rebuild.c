/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/rebuild.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)4 << 20)

static ingot_status fail(const struct ig_pack *p, const char *file, const struct ig_st_tensor *t,
                         const char *what, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_PACK, "%s: source %s%s%s%s: %s", p->path, ig_esc(file, strlen(file)).s,
            t ? ", tensor \"" : "", t ? ig_esc(t->name, t->name_len).s : "", t ? "\"" : "", what);
    return ig_at(e, p->path, t ? t->name : NULL, t ? t->name_len : 0);
}

static ingot_status tensors(const struct ig_pack *p, uint32_t source, const struct ig_st *st,
                            struct ig_rebuilt *out, ingot_error *e)
{
    const char *file = p->sources[source].name;
    out->runs = ig_array(st->count, sizeof *out->runs);
    if (!out->runs) return ig_no_memory(e);
    for (size_t i = 0; i < st->count; i++) {
        const struct ig_st_tensor *t = &st->tensors[i];
        struct ig_row row;
        const uint32_t k = ig_pack_find_in(p, t->name, t->name_len, source);
        if (k == IG_NONE)
            return fail(p, file, t, "its header names a tensor that the pack lacks", e);
        ig_pack_row(p, k, &row);
        if (row.bytes != t->end - t->begin || row.dtype != t->dtype || row.rank != t->rank ||
            memcmp(row.shape, t->shape, row.rank * sizeof *row.shape) != 0)
            return fail(p, file, t, "dtype or shape differ from its header", e);
        out->runs[out->nruns++] = (struct ig_stretch){ig_pack_pos(p, &row), row.bytes};
    }
    return INGOT_OK;
}

/* The file as it was: its header is a blob, the rest follows from that. */
static ingot_status runs_of_source(const struct ig_pack *p, uint32_t source, struct ig_rebuilt *out,
                                   ingot_error *e)
{
    const struct ig_source *s = &p->sources[source];
    const uint32_t blob = ig_pack_find_blob(p, s->name, IG_BLOB_HEADER);
    char *header = NULL;
    size_t n = 0;
    struct ig_st st = {0};
    if (blob == IG_NONE) return fail(p, s->name, NULL, "the pack holds no header of it", e);
    return_if_error(ig_pack_read_blob(p, blob, &header, &n, e));
    ingot_status status = INGOT_OK;
    if (n < 8 || ig_get64(header) != n - 8)
        status = fail(p, s->name, NULL, "its header blob has the wrong length", e);
    if (status == INGOT_OK) status = ig_st_parse(header, n - 8, s->name, s->bytes, &st, e);
    if (status != INGOT_OK) {
        free(header);
        return status;
    }
    status = tensors(p, source, &st, out, e);
    out->header = st.header;
    out->header_bytes = n;
    st.header = NULL;
    ig_st_free(&st);
    return status;
}

static int entry_cmp(const void *a, const void *b)
{
    const struct ig_row *x = a, *y = b;
    /* The 22 types stand in the reference's order of alignment; it writes the last first. */
    if (x->dtype != y->dtype) return x->dtype > y->dtype ? -1 : 1;
    return ig_bytes_cmp(x->name, x->name_len, y->name, y->name_len);
}

static bool put_entry(FILE *f, const struct ig_row *row, uint64_t *at)
{
    json_t *name = json_stringn(row->name, row->name_len);
    char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    json_decref(name);
    if (!quoted) return false;
    fprintf(f, ",%s:{\"dtype\":\"%s\",\"shape\":[", quoted, ig_dtypes[row->dtype].name);
    for (uint32_t d = 0; d < row->rank; d++)
        fprintf(f, "%s%llu", d ? "," : "", (unsigned long long)row->shape[d]);
    fprintf(f, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
            (unsigned long long)(*at + row->bytes));
    *at += row->bytes;
    free(quoted);
    return true;
}

/* Length prefix and header; caller frees. */
static ingot_status make_header(const struct ig_row *list, uint32_t n, char **out, size_t *len,
                                ingot_error *e)
{
    char *text = NULL;
    size_t used = 0;
    uint64_t at = 0;
    FILE *f = open_memstream(&text, &used);
    bool ok = f != NULL;
    if (f) {
        fwrite("\0\0\0\0\0\0\0", 1, 8, f);
        fputs("{\"__metadata__\":{\"format\":\"pt\"}", f);
        for (uint32_t i = 0; i < n && ok; i++) ok = put_entry(f, &list[i], &at);
        fputc('}', f);
        for (long end = ftell(f); end % 8 != 0; end++) fputc(' ', f);
        ok = !ferror(f) && ok;
        ok = fclose(f) == 0 && ok;
    }
    if (!ok) {
        free(text);
        return ig_no_memory(e);
    }
    ig_put64(text, used - 8);
    *out = text;
    *len = used;
    return INGOT_OK;
}

/* What a header cannot say: this key is not for tensors. */
static ingot_status check_name(const struct ig_pack *p, const struct ig_row *row, ingot_error *e)
{
    static const char taken[] = "__metadata__";
    if (ig_bytes_cmp(row->name, row->name_len, taken, sizeof taken - 1) != 0) return INGOT_OK;
    ig_fail(e, INGOT_ERR_PACK, "%s: no safetensors file can hold a tensor called \"%s\"", p->path,
            taken);
    return ig_at(e, p->path, row->name, row->name_len);
}

/* A canonical file of the given rows: wide dtypes first, then by name, header padded to 8 bytes,
 * metadata {"format":"pt"}; what the safetensors library would write. */
static ingot_status runs_of_rows(const struct ig_pack *p, const uint32_t *rows, uint32_t n,
                                 struct ig_rebuilt *out, ingot_error *e)
{
    struct ig_row *list = ig_array(n, sizeof *list);
    out->runs = ig_array(n, sizeof *out->runs);
    ingot_status status = list && out->runs ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < n && status == INGOT_OK; i++) {
        ig_pack_row(p, rows[i], &list[i]);
        status = check_name(p, &list[i], e);
    }
    if (status == INGOT_OK) {
        if (n) qsort(list, n, sizeof *list, entry_cmp);
        status = make_header(list, n, &out->header, &out->header_bytes, e);
    }
    for (uint32_t i = 0; i < n && status == INGOT_OK; i++)
        out->runs[out->nruns++] = (struct ig_stretch){ig_pack_pos(p, &list[i]), list[i].bytes};
    free(list);
    return status;
}

/* Rows of one source that are neither views nor shadows; caller frees. */
static ingot_status rows_of(const struct ig_pack *p, uint32_t source, uint32_t **rows, uint32_t *n,
                            ingot_error *e)
{
    *n = 0;
    *rows = ig_array(p->nrows, sizeof **rows);
    if (!*rows) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        const bool mine = source == IG_NONE || row.source == source;
        if (mine && !(row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW))) (*rows)[(*n)++] = i;
    }
    return INGOT_OK;
}

ingot_status ig_rebuild_runs(const struct ig_pack *p, uint32_t source, struct ig_rebuilt *out,
                             ingot_error *e)
{
    uint32_t *rows = NULL, n;
    *out = (struct ig_rebuilt){0};
    ingot_status status;
    if (source != IG_NONE && !ig_pack_is_derived(p)) {
        status = runs_of_source(p, source, out, e);
    } else {
        status = rows_of(p, source, &rows, &n, e);
        if (status == INGOT_OK) status = runs_of_rows(p, rows, n, out, e);
        free(rows);
    }
    if (status != INGOT_OK) ig_rebuilt_free(out);
    return status;
}

void ig_rebuilt_free(struct ig_rebuilt *r)
{
    free(r->header);
    free(r->runs);
    *r = (struct ig_rebuilt){0};
}

ingot_status ig_rebuild_export(const struct ig_pack *p, uint32_t source, ig_sink *sink, void *ctx,
                               ingot_error *e)
{
    struct ig_rebuilt r;
    return_if_error(ig_rebuild_runs(p, source, &r, e));
    uint8_t *window = ig_pages(WINDOW);
    ingot_status status = window ? sink(ctx, r.header, r.header_bytes, e) : ig_no_memory(e);
    for (size_t i = 0; i < r.nruns; i++)
        for (uint64_t at = 0; at < r.runs[i].bytes && status == INGOT_OK;) {
            const uint64_t left = r.runs[i].bytes - at;
            const size_t n = left < WINDOW ? (size_t)left : WINDOW;
            status = ig_pread(p->fd, p->path, window, n, r.runs[i].pos + at, e);
            if (status == INGOT_OK) status = sink(ctx, window, n, e);
            at += n;
        }
    free(window);
    ig_rebuilt_free(&r);
    return status;
}
