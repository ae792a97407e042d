/* SPDX-License-Identifier: Apache-2.0 */
/* ingot ls: what the store holds. */
#include "store/cmd_common.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* One line: a name, or a pack without one. */
struct item {
    const char *name; /* NULL: the pack has none */
    const uint8_t *digest;
    const struct ig_summary *pack; /* NULL: the name's pack is missing */
};

struct ls {
    struct ig_cli cli;
    bool zero, wide;
    const char *pattern;
    struct ig_store store;
    struct ig_index index;
    struct ig_name *names;
    size_t nnames;
    struct item *items;
    size_t nitems;
};

static bool wanted(const struct ls *ls, const char *name, const uint8_t *digest)
{
    char hex[2 * IG_HASH + 1];
    ig_hex(hex, digest, IG_HASH);
    return !ls->pattern || fnmatch(ls->pattern, name ? name : hex, 0) == 0;
}

static ingot_status collect(struct ls *ls, ingot_error *e)
{
    const struct ig_summary *packs = ls->index.packs;
    bool *named = ig_array(ls->index.npacks, sizeof *named);
    ls->items = ig_array(ls->nnames + ls->index.npacks, sizeof *ls->items);
    if (!named || !ls->items) {
        free(named);
        return ig_no_memory(e);
    }
    for (size_t i = 0; i < ls->nnames; i++) {
        const struct ig_name *n = &ls->names[i];
        if (n->problem) {
            ig_cli_notice(&ls->cli, "warning: %s", n->problem);
            continue;
        }
        const struct ig_summary *pack = ig_index_find(&ls->index, n->digest);
        if (pack) named[pack - packs] = true;
        if (wanted(ls, n->name, n->digest))
            ls->items[ls->nitems++] = (struct item){n->name, n->digest, pack};
    }
    for (size_t i = 0; i < ls->index.npacks; i++)
        if (!named[i] && wanted(ls, NULL, packs[i].digest))
            ls->items[ls->nitems++] = (struct item){NULL, packs[i].digest, &packs[i]};
    free(named);
    return INGOT_OK;
}

/* "BF16,F32": the dtypes of the tensors, the one with most bytes first. */
static void dtypes_text(const struct ig_summary *s, char *text, size_t cap)
{
    bool done[IG_DTYPES] = {false};
    text[0] = '\0';
    for (;;) {
        int best = -1;
        for (int i = 0; i < IG_DTYPES; i++)
            if (!done[i] && s->dtype_tensors[i] &&
                (best < 0 || s->dtype_bytes[i] > s->dtype_bytes[best]))
                best = i;
        if (best < 0) return;
        done[best] = true;
        const size_t used = strlen(text);
        snprintf(text + used, cap - used, "%s%s", used ? "," : "", ig_dtypes[best].name);
    }
}

static void add_row(const struct ls *ls, struct ig_table *t, const struct item *item)
{
    const struct ig_summary *p = item->pack;
    const struct ig_digest_text digest =
        ls->wide ? ig_pack_text(item->digest) : ig_short_text(item->digest);
    const struct ig_digest_text called = ig_short_text(item->digest);
    const struct ig_text when = ig_when(p ? p->sec : 0);
    struct ig_text size = ig_human(p ? p->size : 0);
    char tensors[24] = "-", dtypes[256] = "-";
    if (p && !p->problem) {
        snprintf(tensors, sizeof tensors, "%llu", (unsigned long long)p->tensors);
        dtypes_text(p, dtypes, sizeof dtypes);
    }
    if (p && ls->wide) snprintf(size.s, sizeof size.s, "%llu", (unsigned long long)p->size);
    const char *state = !p ? "missing" : p->problem ? "damaged" : dtypes;
    const char *cells[] = {item->name ? item->name : called.s,
                           digest.s,
                           p ? size.s : "-",
                           tensors,
                           state,
                           p ? when.s : "-",
                           p && !p->problem ? p->kind : "-"};
    ig_table_row(t, cells);
}

static void print_table(const struct ls *ls)
{
    static const char *const heads[] = {"NAME",   "DIGEST", "SIZE", "TENSORS",
                                        "DTYPES", "WHEN",   "KIND"};
    struct ig_table *t = ig_table_new(heads, ls->wide ? "llrrlll" : "llrrll");
    for (size_t i = 0; i < ls->nitems; i++) add_row(ls, t, &ls->items[i]);
    ig_table_print(t);
    for (size_t i = 0; i < ls->nitems; i++)
        if (ls->items[i].pack && ls->items[i].pack->problem)
            ig_cli_notice(&ls->cli, "warning: damaged: %s", ls->items[i].pack->problem);
}

static void print_zero(const struct ls *ls)
{
    for (size_t i = 0; i < ls->nitems; i++) {
        char hex[2 * IG_HASH + 1];
        ig_hex(hex, ls->items[i].digest, IG_HASH);
        fputs(ls->items[i].name ? ls->items[i].name : hex, stdout);
        putchar('\0');
    }
}

static json_t *dtypes_json(const struct ig_summary *s)
{
    json_t *o = json_object();
    for (size_t i = 0; i < IG_DTYPES; i++)
        if (s->dtype_tensors[i])
            json_object_set_new(o, ig_dtypes[i].name,
                                json_pack("{s:I,s:I}", "tensors", (json_int_t)s->dtype_tensors[i],
                                          "bytes", (json_int_t)s->dtype_bytes[i]));
    return o;
}

static json_t *item_json(const struct item *item)
{
    const struct ig_summary *p = item->pack;
    json_t *o = json_pack("{s:s?,s:s,s:s}", "name", item->name, "digest",
                          ig_pack_text(item->digest).s, "state",
                          !p           ? "missing"
                          : p->problem ? "damaged"
                                       : "ok");
    if (!p) return o;
    json_object_set_new(o, "size", json_integer((json_int_t)p->size));
    json_object_set_new(o, "time", json_integer(p->sec));
    if (p->problem) {
        json_object_set_new(o, "problem", json_string(p->problem));
        return o;
    }
    json_object_set_new(o, "tensors", json_integer((json_int_t)p->tensors));
    json_object_set_new(o, "views", json_integer((json_int_t)p->views));
    json_object_set_new(o, "shadows", json_integer((json_int_t)p->shadows));
    json_object_set_new(o, "tensor_bytes", json_integer((json_int_t)p->bytes));
    json_object_set_new(o, "dtypes", dtypes_json(p));
    json_object_set_new(o, "sources", json_integer(p->nsources));
    json_object_set_new(o, "rules", json_integer(p->rules));
    json_object_set_new(o, "content", json_string(ig_content_text(p->content).s));
    json_object_set_new(o, "derivation", json_string(p->kind));
    if (p->has_from) json_object_set_new(o, "from", json_string(ig_content_text(p->from).s));
    return o;
}

static void print_json(const struct ls *ls)
{
    json_t *models = json_array(), *bad = json_array();
    for (size_t i = 0; i < ls->nitems; i++) json_array_append_new(models, item_json(&ls->items[i]));
    for (size_t i = 0; i < ls->nnames; i++)
        if (ls->names[i].problem)
            json_array_append_new(bad,
                                  json_pack("{s:o,s:s}", "name", ig_text_json(ls->names[i].name),
                                            "problem", ls->names[i].problem));
    ig_cli_json(json_pack("{s:o,s:o,s:o}", "store", ig_text_json(ls->store.root), "models", models,
                          "bad_names", bad));
}

static ingot_status run(struct ls *ls, ingot_error *e)
{
    return_if_error(ig_store_open(ls->cli.store, false, &ls->store, e));
    return_if_error(ig_names_list(&ls->store, &ls->names, &ls->nnames, e));
    return_if_error(ig_index_load(&ls->store, true, &ls->index, e));
    if (ls->index.notice) ig_cli_notice(&ls->cli, "notice: %s", ls->index.notice);
    return_if_error(collect(ls, e));
    if (ls->cli.json)
        print_json(ls);
    else if (ls->zero)
        print_zero(ls);
    else if (ls->nitems)
        print_table(ls);
    else
        ig_cli_notice(&ls->cli, "notice: no models%s in %s", ls->pattern ? " of such a name" : "",
                      ls->store.root);
    return INGOT_OK;
}

int ig_cmd_ls(int argc, char **argv)
{
    struct ls ls = {.cli = {.command = "ls", .usage = "[-0l] [--json] [PATTERN]"}};
    const struct ig_opt opts[] = {
        {"null", '0', IG_OPT_FLAG, &ls.zero}, {"long", 'l', IG_OPT_FLAG, &ls.wide}, IG_OPT_END};
    ingot_error e;
    int code = ig_cli_parse(&ls.cli, argc, argv, opts, 0, 1);
    if (code >= 0) return code;
    if (ls.zero && ls.cli.json) return ig_cli_usage(&ls.cli, "-0 and --json exclude each other");
    if (ls.cli.argc) ls.pattern = ls.cli.argv[0];
    code = run(&ls, &e) == INGOT_OK ? ig_cli_finish(&ls.cli, 0) : ig_cli_fail(&ls.cli, &e);
    free(ls.items);
    ig_names_free(ls.names, ls.nnames);
    ig_index_free(&ls.index);
    ig_store_close(&ls.store);
    return code;
}
