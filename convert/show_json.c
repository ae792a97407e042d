/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/show.h"

#include <stdlib.h>
#include <string.h>

json_t *ig_show_sigs(const char *pack_path)
{
    char **names = NULL;
    size_t n = 0;
    if (ig_sigs_list(pack_path, &names, &n, NULL) != INGOT_OK || !n) return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, ig_text_json(names[i]));
    ig_sigs_free(names, n);
    return list;
}

json_t *ig_show_origin(const char *pack_path)
{
    const size_t n = strlen(pack_path);
    char *path = n > 6 ? ig_format("%.*s.origin.json", (int)(n - 6), pack_path) : NULL;
    char *text = NULL;
    size_t len = 0;
    json_t *origin = NULL;
    if (path && ig_read_file(path, 16 << 20, &text, &len, NULL) == INGOT_OK)
        (void)ig_json_load(text, len, path, 0, &origin, NULL);
    free(text);
    free(path);
    return origin;
}

static json_t *row_json(const struct ig_pack *p, const struct ig_row *row)
{
    json_t *shape = json_array();
    for (uint32_t d = 0; d < row->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)row->shape[d]));
    json_t *o = json_pack(
        "{s:o,s:s,s:o,s:I,s:s,s:b,s:b,s:b}", "name", json_stringn(row->name, row->name_len),
        "dtype", ig_dtypes[row->dtype].name, "shape", shape, "bytes", (json_int_t)row->bytes,
        "digest", ig_pack_text(row->digest).s, "view", (row->flags & IG_ROW_VIEW) != 0, "tied",
        (row->flags & IG_ROW_TIED) != 0, "shadow", (row->flags & IG_ROW_SHADOW) != 0);
    if (row->bytes) json_object_set_new(o, "offset", json_integer((json_int_t)ig_pack_pos(p, row)));
    if (row->source != IG_NONE)
        json_object_set_new(o, "source", json_string(p->sources[row->source].name));
    return o;
}

static json_t *link_json(const struct ig_pack *p, uint32_t i)
{
    struct ig_link k;
    struct ig_row row;
    ig_pack_link(p, i, &k);
    json_t *o =
        json_pack("{s:s,s:i,s:s,s:s,s:[I,I],s:s,s:s,s:s}", "role", ig_link_role_name(k.role),
                  "stage", (int)k.stage, "operation", ig_link_op_name(k.op), "granularity",
                  ig_link_gran_name(k.gran), "block", (json_int_t)k.block[0],
                  (json_int_t)k.block[1], "logical_dtype", ig_dtypes[k.logical].name, "packing",
                  k.packing ? "low_first" : "none", "encoding", k.encoding ? "e8m0" : "value");
    ig_pack_row(p, k.object, &row);
    json_object_set_new(o, "scale", json_stringn(row.name, row.name_len));
    if (k.subject != IG_NONE) {
        ig_pack_row(p, k.subject, &row);
        json_object_set_new(o, "tensor", json_stringn(row.name, row.name_len));
    } else {
        json_object_set_new(o, "module", json_stringn(k.module, k.module_len));
    }
    if (k.blob != IG_NONE) {
        struct ig_blob b;
        ig_pack_blob(p, k.blob, &b);
        json_object_set_new(o, "declared_in", json_stringn(b.name, b.name_len));
        json_object_set_new(o, "pointer", json_stringn(k.pointer, k.pointer_len));
    }
    return o;
}

static json_t *head_json(const struct ig_show *s)
{
    const struct ig_pack *p = &s->pack;
    json_t *sources = json_array(), *blobs = json_array();
    for (uint32_t i = 0; i < p->nsources; i++)
        json_array_append_new(
            sources, json_pack("{s:s,s:I,s:s}", "name", p->sources[i].name, "size",
                               (json_int_t)p->sources[i].bytes, "sha256",
                               ig_sha256_text(p->sources[i].sha256).s + strlen("sha256:")));
    for (uint32_t i = 0; i < p->nblobs; i++) {
        struct ig_blob b;
        ig_pack_blob(p, i, &b);
        if (b.kind == IG_BLOB_FILE)
            json_array_append_new(blobs, json_pack("{s:o,s:I,s:s}", "name",
                                                   json_stringn(b.name, b.name_len), "size",
                                                   (json_int_t)b.bytes, "sha256",
                                                   ig_sha256_text(b.sha256).s + strlen("sha256:")));
    }
    json_t *o =
        json_pack("{s:s,s:o,s:I,s:I,s:O,s:o,s:o,s:i}", "content", ig_content_text(p->content).s,
                  "pack", ig_text_json(p->path), "bytes", (json_int_t)p->size, "rows",
                  (json_int_t)p->nrows, "derivation", json_object_get(p->manifest, "derivation"),
                  "sources", sources, "blobs", blobs, "rules", (int)p->rules);
    if (s->name) json_object_set_new(o, "name", json_string(s->name));
    if (s->has_digest) json_object_set_new(o, "digest", json_string(ig_pack_text(s->digest).s));
    if (s->origin) json_object_set(o, "claimed", s->origin);
    if (s->sigs) json_object_set(o, "signatures", s->sigs);
    return o;
}

static void put(json_t *v, const char *before)
{
    fputs(before, stdout);
    json_dumpf(v, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(v);
}

void ig_show_json(const struct ig_show *s)
{
    const struct ig_pack *p = &s->pack;
    const char *key;
    json_t *v, *head = head_json(s);
    const char *before = "{\n ";
    json_object_foreach(head, key, v)
    {
        printf("%s\"%s\": ", before, key);
        put(json_incref(v), "");
        before = ",\n ";
    }
    json_decref(head);
    /* Views are few and always told; all rows only when they are asked for. */
    printf("%s\"%s\": [", before, s->tensors ? "tensors" : "views");
    before = "\n  ";
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        if (!s->tensors && !(row.flags & IG_ROW_VIEW)) continue;
        put(row_json(p, &row), before);
        before = ",\n  ";
    }
    fputs("]", stdout);
    if (s->scales) {
        fputs(",\n \"scales\": [", stdout);
        for (uint32_t i = 0; i < p->nlinks; i++) put(link_json(p, i), i ? ",\n  " : "\n  ");
        fputs("]", stdout);
        put(json_incref(s->findings), ",\n \"findings\": ");
    }
    fputs("\n}\n", stdout);
}
