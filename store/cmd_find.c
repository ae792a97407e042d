/* SPDX-License-Identifier: Apache-2.0 */
/* ingot find: which models hold a tensor, or were made from a file. */
#include "store/cmd_common.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct find {
    struct ig_cli cli;
    bool zero;
    const char *tensor, *digest, *sha256; /* as given, or NULL */
    char digest_hex[2 * IG_HASH + 1], sha256_hex[2 * IG_HASH + 1];
    struct ig_store store;
    struct ig_index index;
    struct ig_name *names;
    size_t nnames;
    uint64_t found;
    json_t *matches;
    const char *const *heads;
    const char *align;
    struct ig_table *table; /* made by the first match */
};

static bool begins(const uint8_t digest[IG_HASH], const char *hex)
{
    char full[2 * IG_HASH + 1];
    ig_hex(full, digest, IG_HASH);
    return strncmp(full, hex, strlen(hex)) == 0;
}

/* One match: model and what was found in it, in whichever form was asked for. */
static void emit(struct find *f, const uint8_t pack[IG_HASH], const char *what, size_t len,
                 const char *const *more, json_t *json)
{
    const struct ig_called model = ig_called(f->names, f->nnames, pack);
    f->found++;
    if (f->cli.json) {
        json_object_set_new(json, "pack", json_string(ig_pack_text(pack).s));
        json_object_set_new(json, "names", ig_names_of(f->names, f->nnames, pack));
        json_array_append_new(f->matches, json);
    } else if (f->zero) {
        fwrite(model.s, 1, strlen(model.s) + 1, stdout);
        fwrite(what, 1, len, stdout);
        putchar('\0');
    } else {
        const struct ig_esc shown = ig_esc(what, len);
        const char *cells[] = {model.s, shown.s, more[0], more[1], more[2]};
        if (!f->table) f->table = ig_table_new(f->heads, f->align);
        ig_table_row(f->table, cells);
    }
}

static json_t *row_json(const struct ig_pack *p, const struct ig_row *row)
{
    json_t *shape = json_array();
    for (uint32_t i = 0; i < row->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)row->shape[i]));
    return json_pack("{s:s%,s:s,s:o,s:I,s:s,s:b,s:b,s:s?}", "tensor", row->name,
                     (size_t)row->name_len, "dtype", ig_dtypes[row->dtype].name, "shape", shape,
                     "bytes", (json_int_t)row->bytes, "digest", ig_pack_text(row->digest).s, "view",
                     (row->flags & IG_ROW_VIEW) != 0, "shadow", (row->flags & IG_ROW_SHADOW) != 0,
                     "file", row->source == IG_NONE ? NULL : p->sources[row->source].name);
}

static bool row_matches(const struct find *f, const struct ig_pack *p, const struct ig_row *row,
                        const char *name)
{
    if (f->tensor && fnmatch(f->tensor, name, 0) != 0) return false;
    if (f->digest && !begins(row->digest, f->digest_hex)) return false;
    return !f->sha256 ||
           (row->source != IG_NONE && begins(p->sources[row->source].sha256, f->sha256_hex));
}

static ingot_status find_rows(struct find *f, const struct ig_summary *sum, ingot_error *e)
{
    struct ig_pack p = {0};
    char *path = ig_store_pack_path(&f->store, sum->digest);
    if (!path) return ig_no_memory(e);
    ingot_status status = ig_pack_open(path, &p, e);
    free(path);
    if (status != INGOT_OK) return status;
    for (uint32_t i = 0; i < p.nrows; i++) {
        struct ig_row row;
        ig_pack_row(&p, i, &row);
        char *name = strndup(row.name, row.name_len);
        if (!name) {
            status = ig_no_memory(e);
            break;
        }
        if (row_matches(f, &p, &row, name)) {
            const struct ig_text shape = ig_shape(row.shape, row.rank), size = ig_human(row.bytes);
            const char *const more[] = {ig_dtypes[row.dtype].name, shape.s, size.s};
            emit(f, sum->digest, name, row.name_len, more, f->cli.json ? row_json(&p, &row) : NULL);
        }
        free(name);
    }
    ig_pack_close(&p);
    return status;
}

static ingot_status find_tensors(struct find *f, ingot_error *e)
{
    static const char *const heads[] = {"MODEL", "TENSOR", "DTYPE", "SHAPE", "SIZE"};
    f->heads = heads;
    f->align = "llllr";
    for (size_t i = 0; i < f->index.npacks; i++) {
        const struct ig_summary *sum = &f->index.packs[i];
        const ingot_status status = sum->problem ? INGOT_ERR_PACK : find_rows(f, sum, e);
        if (status == INGOT_ERR_NO_MEMORY) return status;
        if (status != INGOT_OK)
            ig_cli_notice(&f->cli, "warning: not searched: %s",
                          sum->problem ? sum->problem : e->message);
    }
    return INGOT_OK;
}

static void find_files(struct find *f)
{
    static const char *const heads[] = {"MODEL", "FILE", "SHA-256", "SIZE", "KIND"};
    size_t n;
    const struct ig_origin *o =
        ig_index_find_source(&f->index, f->sha256_hex, strlen(f->sha256_hex), &n);
    f->heads = heads;
    f->align = "lllrl";
    for (size_t i = 0; i < n; i++, o++) {
        const struct ig_digest_text full = ig_sha256_text(o->sha256);
        const struct ig_digest_text cut = ig_short_text(o->sha256);
        const struct ig_text size = ig_human(o->bytes);
        const struct ig_summary *pack = &f->index.packs[o->pack];
        const char *const more[] = {cut.s, size.s, pack->kind};
        json_t *json = !f->cli.json
                           ? NULL
                           : json_pack("{s:s,s:s,s:I,s:s}", "file", o->name, "sha256", full.s,
                                       "size", (json_int_t)o->bytes, "derivation", pack->kind);
        emit(f, pack->digest, o->name, strlen(o->name), more, json);
    }
}

static ingot_status run(struct find *f, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    return_if_error(ig_store_open(f->cli.store, false, &f->store, e));
    return_if_error(ig_names_list(&f->store, &f->names, &f->nnames, e));
    return_if_error(ig_index_load(&f->store, true, &f->index, e));
    if (f->index.notice) ig_cli_notice(&f->cli, "notice: %s", f->index.notice);
    f->matches = json_array();
    if (f->tensor || f->digest)
        status = find_tensors(f, e);
    else
        find_files(f);
    if (f->table) ig_table_print(f->table);
    if (status == INGOT_OK && f->cli.json) ig_cli_json(json_pack("{s:O}", "matches", f->matches));
    return status;
}

/* Hex digits of an option, with the prefix that digests of its kind are written with or not. */
static bool take(const char *given, const char *prefix, char hex[2 * IG_HASH + 1])
{
    const size_t n = strlen(prefix);
    return !given || ig_take_hex(strncmp(given, prefix, n) == 0 ? given + n : given, hex);
}

static int check(struct find *f)
{
    if (!f->tensor && !f->digest && !f->sha256)
        return ig_cli_usage(&f->cli, "one of --tensor, --digest and --sha256 is wanted");
    if (f->zero && f->cli.json) return ig_cli_usage(&f->cli, "-0 and --json exclude each other");
    if (!take(f->digest, IG_DIGEST_PREFIX, f->digest_hex))
        return ig_cli_usage(&f->cli, "--digest takes 8 to 64 hex digits");
    if (!take(f->sha256, IG_SOURCE_PREFIX, f->sha256_hex))
        return ig_cli_usage(&f->cli, "--sha256 takes 8 to 64 hex digits");
    return -1;
}

int ig_cmd_find(int argc, char **argv)
{
    struct find f = {
        .cli = {.command = "find",
                .usage = "[-0] [--json] [--tensor PATTERN] [--digest HEX] [--sha256 HEX]"}};
    const struct ig_opt opts[] = {{"tensor", 't', IG_OPT_TEXT, &f.tensor},
                                  {"digest", 'd', IG_OPT_TEXT, &f.digest},
                                  {"sha256", 0, IG_OPT_TEXT, &f.sha256},
                                  {"null", '0', IG_OPT_FLAG, &f.zero},
                                  IG_OPT_END};
    ingot_error e;
    int code = ig_cli_parse(&f.cli, argc, argv, opts, 0, 0);
    if (code < 0) code = check(&f);
    if (code >= 0) return code;
    if (run(&f, &e) != INGOT_OK)
        code = ig_cli_fail(&f.cli, &e);
    else
        code = ig_cli_finish(&f.cli, f.found ? 0 : 1);
    json_decref(f.matches);
    ig_names_free(f.names, f.nnames);
    ig_index_free(&f.index);
    ig_store_close(&f.store);
    return code;
}
