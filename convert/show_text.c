/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/show.h"

#include <stdlib.h>
#include <string.h>

const char *ig_link_role_name(uint32_t role)
{
    static const char *const names[] = {"",     "weight",     "input", "kv_k",   "kv_v",  "q",
                                        "prob", "zero_point", "bias",  "global", "output"};
    return role < sizeof names / sizeof names[0] ? names[role] : "?";
}

const char *ig_link_op_name(uint32_t op)
{
    static const char *const names[] = {"unknown", "multiply", "divide"};
    return op < sizeof names / sizeof names[0] ? names[op] : "?";
}

const char *ig_link_gran_name(uint32_t gran)
{
    static const char *const names[] = {"", "tensor", "row", "block", "group", "head", "unknown"};
    return gran < sizeof names / sizeof names[0] ? names[gran] : "?";
}

struct totals {
    uint64_t tensors, views, shadows, tied, bytes;
    uint64_t by_dtype[IG_DTYPES];
};

static struct totals add_up(const struct ig_pack *p)
{
    struct totals t = {0};
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        if (row.flags & IG_ROW_VIEW) {
            t.views++;
        } else if (row.flags & IG_ROW_SHADOW) {
            t.shadows++;
        } else {
            t.tensors++;
            t.bytes += row.bytes;
            t.by_dtype[row.dtype]++;
            t.tied += (row.flags & IG_ROW_TIED) != 0;
        }
    }
    return t;
}

static void print_derivation(const json_t *d)
{
    const char *kind = json_string_value(json_object_get(d, "kind"));
    if (strcmp(kind, "identity") == 0) {
        printf("derivation  identity: the source files can be rebuilt byte for byte\n");
        return;
    }
    if (strcmp(kind, "inputs") == 0) {
        const char *license = json_string_value(json_object_get(d, "license"));
        const char *attribution = json_string_value(json_object_get(d, "attribution"));
        printf("derivation  inputs: pinned files, no tensors\n");
        if (license) printf("license     %s\n", ig_esc(license, strlen(license)).s);
        if (attribution) printf("attributed  %s\n", ig_esc(attribution, strlen(attribution)).s);
        return;
    }
    char *text = json_dumps(d, JSON_COMPACT | JSON_SORT_KEYS);
    if (text) ig_printable(text);
    printf("derivation  %s\n", text ? text : "?");
    free(text);
}

/* What nobody has proven: where the files came from. */
static void print_sigs(const json_t *sigs)
{
    size_t i;
    json_t *o;
    json_array_foreach(sigs, i, o) printf("%s%s\n", i ? "            " : "signatures  ",
                                          ig_esc(json_string_value(o), json_string_length(o)).s);
    printf("            (not checked here: ingot verify --signature NAME)\n");
}

static void print_origin(const json_t *o)
{
    static const char *const keys[] = {"repository", "revision", "source", "converter",
                                       "converted"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *v = json_string_value(json_object_get(o, keys[i]));
        if (v) printf("claimed     %s %s\n", keys[i], ig_esc(v, strlen(v)).s);
    }
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(o, "not_held"), i, f)
    {
        const char *name = json_string_value(json_object_get(f, "name"));
        if (name)
            printf("not held    %s  %s\n", ig_esc(name, strlen(name)).s,
                   ig_human((uint64_t)json_integer_value(json_object_get(f, "size"))).s);
    }
}

static void print_groups(const struct ig_pack *p)
{
    static const char *const heads[] = {"VIEW", "DTYPE", "SHAPE", "SIZE", "DIGEST", NULL};
    struct ig_table *t = ig_table_new(heads, "llrrl");
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        if (!(row.flags & IG_ROW_VIEW)) continue;
        const struct ig_esc name = ig_esc(row.name, row.name_len);
        const struct ig_text shape = ig_shape(row.shape, row.rank), size = ig_human(row.bytes);
        const struct ig_digest_text digest = ig_short_text(row.digest);
        const char *const cells[] = {name.s, ig_dtypes[row.dtype].name, shape.s, size.s, digest.s};
        ig_table_row(t, cells);
    }
    ig_table_print(t);
}

static void print_files(const struct ig_pack *p)
{
    for (uint32_t i = 0; i < p->nsources; i++) {
        const struct ig_source *s = &p->sources[i];
        printf("source      %s  %s  %s\n", ig_esc(s->name, strlen(s->name)).s, ig_human(s->bytes).s,
               ig_sha256_text(s->sha256).s);
    }
    for (uint32_t i = 0; i < p->nblobs; i++) {
        struct ig_blob b;
        ig_pack_blob(p, i, &b);
        if (b.kind == IG_BLOB_FILE)
            printf("blob        %s  %s  %s\n", ig_esc(b.name, b.name_len).s, ig_human(b.bytes).s,
                   ig_sha256_text(b.sha256).s);
    }
}

void ig_show_summary(const struct ig_show *s)
{
    const struct ig_pack *p = &s->pack;
    const struct totals t = add_up(p);
    if (s->name) printf("name        %s\n", s->name);
    if (s->has_digest) printf("digest      %s\n", ig_pack_text(s->digest).s);
    printf("content     %s (tensors only)\n", ig_content_text(p->content).s);
    printf("pack        %s  %s\n", p->path, ig_human(p->size).s);
    printf("tensors     %llu  %s", (unsigned long long)t.tensors, ig_human(t.bytes).s);
    for (int d = 0; d < IG_DTYPES; d++)
        if (t.by_dtype[d])
            printf("  %s %llu", ig_dtypes[d].name, (unsigned long long)t.by_dtype[d]);
    putchar('\n');
    if (t.tied) printf("tied        %llu tensors share their bytes\n", (unsigned long long)t.tied);
    if (t.shadows) printf("shadowed    %llu second copies\n", (unsigned long long)t.shadows);
    if (p->nlinks) printf("scales      %u links (--scales lists them)\n", p->nlinks);
    print_derivation(json_object_get(p->manifest, "derivation"));
    printf("rules       %u\n", p->rules);
    print_files(p);
    if (s->origin) print_origin(s->origin);
    if (s->sigs) print_sigs(s->sigs);
    if (t.views) {
        printf("groups      %llu, each with a view\n", (unsigned long long)t.views);
        print_groups(p);
    }
}

void ig_show_tensors(const struct ig_show *s)
{
    /* Not a table: columns as wide as the widest of a million names help nobody. */
    for (uint32_t i = 0; i < s->pack.nrows; i++) {
        struct ig_row row;
        ig_pack_row(&s->pack, i, &row);
        printf("%-6s %-20s %12llu  %s  %s%s%s%s\n", ig_dtypes[row.dtype].name,
               ig_shape(row.shape, row.rank).s, (unsigned long long)row.bytes,
               ig_short_text(row.digest).s, ig_esc(row.name, row.name_len).s,
               row.flags & IG_ROW_VIEW ? "  view" : "", row.flags & IG_ROW_TIED ? "  tied" : "",
               row.flags & IG_ROW_SHADOW ? "  shadow" : "");
    }
}

void ig_show_scales(const struct ig_show *s)
{
    static const char *const heads[] = {"SUBJECT", "SCALE", "ROLE",     "STAGE",       "OPERATION",
                                        "PER",     "BLOCK", "ENCODING", "DECLARED IN", NULL};
    struct ig_table *t = ig_table_new(heads, "lllrlllll");
    for (uint32_t i = 0; i < s->pack.nlinks; i++) {
        struct ig_link k;
        struct ig_row object, subject = {.name = ""};
        struct ig_blob blob = {.name = ""};
        ig_pack_link(&s->pack, i, &k);
        ig_pack_row(&s->pack, k.object, &object);
        if (k.subject != IG_NONE) ig_pack_row(&s->pack, k.subject, &subject);
        if (k.blob != IG_NONE) ig_pack_blob(&s->pack, k.blob, &blob);
        const struct ig_esc from = k.subject != IG_NONE ? ig_esc(subject.name, subject.name_len)
                                                        : ig_esc(k.module, k.module_len);
        const struct ig_esc to = ig_esc(object.name, object.name_len);
        const struct ig_esc file = ig_esc(blob.name, blob.name_len);
        const struct ig_esc pointer = ig_esc(k.pointer, k.pointer_len);
        char stage[12], block[64], where[600];
        snprintf(stage, sizeof stage, "%u", k.stage);
        snprintf(block, sizeof block, "%llux%llu", (unsigned long long)k.block[0],
                 (unsigned long long)k.block[1]);
        snprintf(where, sizeof where, "%s%s%s", file.s, k.pointer_len ? "#" : "", pointer.s);
        const char *const cells[] = {from.s,
                                     to.s,
                                     ig_link_role_name(k.role),
                                     stage,
                                     ig_link_op_name(k.op),
                                     ig_link_gran_name(k.gran),
                                     k.block[0] || k.block[1] ? block : "",
                                     k.encoding ? "E8M0" : "value",
                                     where};
        ig_table_row(t, cells);
    }
    ig_table_print(t);
    size_t k;
    json_t *finding;
    json_array_foreach(s->findings, k, finding) printf("finding: %s\n", json_string_value(finding));
}
