/* SPDX-License-Identifier: Apache-2.0 */
/* ingot rm: remove names, and say what that lets gc free. */
#include "store/cmd_common.h"
#include "store/gc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct removal {
    char *name;
    uint8_t digest[IG_HASH];
    bool has_digest;
    bool removed;
};

struct rm {
    struct ig_cli cli;
    bool force;
    struct ig_store store;
    struct ig_name *names; /* as they were before */
    size_t nnames;
    struct removal *list;
    size_t count;
    uint8_t (*digests)[IG_HASH]; /* packs that were touched, each once */
    size_t ndigests;
};

static void touch(struct rm *rm, const uint8_t digest[IG_HASH])
{
    for (size_t i = 0; i < rm->ndigests; i++)
        if (memcmp(rm->digests[i], digest, IG_HASH) == 0) return;
    memcpy(rm->digests[rm->ndigests++], digest, IG_HASH);
}

static ingot_status add(struct rm *rm, const char *name, const uint8_t *digest, ingot_error *e)
{
    for (size_t i = 0; i < rm->count; i++)
        if (strcmp(rm->list[i].name, name) == 0) return INGOT_OK;
    struct removal *r = &rm->list[rm->count];
    *r = (struct removal){.name = strdup(name), .has_digest = digest};
    if (!r->name) return ig_no_memory(e);
    if (digest) memcpy(r->digest, digest, IG_HASH);
    rm->count++;
    if (digest) touch(rm, digest);
    return INGOT_OK;
}

/* A digest stands for all names of its pack; so many are only removed when that is said. */
static ingot_status add_digest(struct rm *rm, const char *arg, ingot_error *e)
{
    struct ig_ref ref;
    return_if_error(ig_store_resolve(&rm->store, arg, &ref, e));
    ingot_status status = INGOT_OK;
    for (size_t i = 0; i < rm->nnames && status == INGOT_OK; i++) {
        const struct ig_name *n = &rm->names[i];
        if (n->problem || memcmp(n->digest, ref.digest, IG_HASH) != 0) continue;
        if (rm->force)
            status = add(rm, n->name, n->digest, e);
        else
            status = ig_fail(e, INGOT_ERR_EXISTS,
                             "%s is still named \"%s\"; remove the name, or all its names with -f",
                             ig_pack_text(ref.digest).s, n->name);
    }
    if (status == INGOT_OK) touch(rm, ref.digest);
    ig_ref_free(&ref);
    return status;
}

static ingot_status add_name(struct rm *rm, const char *arg, ingot_error *e)
{
    uint8_t digest[IG_HASH];
    ingot_status status = ig_name_read(&rm->store, arg, digest, e);
    if (status == INGOT_ERR_NOT_FOUND) {
        char *near = ig_names_nearest(&rm->store, arg);
        if (near)
            ig_fail(e, status, "no model named \"%s\" in %s; did you mean \"%s\"?", arg,
                    rm->store.root, near);
        free(near);
    }
    if (status == INGOT_ERR_PACK && rm->force) return add(rm, arg, NULL, e);
    return status == INGOT_OK ? add(rm, arg, digest, e) : status;
}

static ingot_status add_arg(struct rm *rm, const char *arg, ingot_error *e)
{
    char hex[2 * IG_HASH + 1];
    const size_t n = strlen(arg);
    if (arg[0] == '/' || arg[0] == '.' || (n >= 6 && strcmp(arg + n - 6, ".ingot") == 0))
        return ig_fail(e, INGOT_ERR_USAGE, "\"%s\" is a path; rm takes names and digests",
                       ig_esc(arg, n).s);
    if (strchr(arg, ':') || ig_take_hex(arg, hex)) return add_digest(rm, arg, e);
    return add_name(rm, arg, e);
}

/* All arguments are understood before the first name goes. */
static ingot_status remove_names(struct rm *rm, ingot_error *e)
{
    const size_t args = (size_t)rm->cli.argc;
    return_if_error(ig_names_list(&rm->store, &rm->names, &rm->nnames, e));
    rm->list = ig_array(rm->nnames + args, sizeof *rm->list);
    rm->digests = ig_array(rm->nnames + args, sizeof *rm->digests);
    if (!rm->list || !rm->digests) return ig_no_memory(e);
    for (size_t i = 0; i < args; i++) return_if_error(add_arg(rm, rm->cli.argv[i], e));
    for (size_t i = 0; i < rm->count; i++) {
        return_if_error(ig_name_remove(&rm->store, rm->list[i].name, e));
        rm->list[i].removed = true;
    }
    return INGOT_OK;
}

struct verdict {
    const char *state; /* a word of ig_gc_words, or "missing" */
    uint64_t bytes;
    char text[640];
};

/* What gc would now do with a pack. */
static struct verdict judge(const struct ig_gc *g, const uint8_t digest[IG_HASH])
{
    struct verdict v = {.state = "missing", .text = "its pack is missing: nothing to free"};
    const struct ig_summary *pack = ig_index_find(&g->index, digest);
    if (!pack) return v;
    const struct ig_gc_pack *p = &g->packs[pack - g->index.packs];
    v.state = ig_gc_words[p->why];
    v.bytes = p->why == IG_GC_FREE || p->why == IG_GC_YOUNG ? p->bytes : 0;
    switch (p->why) {
    case IG_GC_FREE:
        snprintf(v.text, sizeof v.text, "gc will free %s", ig_human(p->bytes).s);
        break;
    case IG_GC_YOUNG:
        snprintf(v.text, sizeof v.text, "gc will free %s once it is an hour old",
                 ig_human(p->bytes).s);
        break;
    case IG_GC_NAMED:
        snprintf(v.text, sizeof v.text, "gc keeps it: it is still named %s", g->names[p->by].name);
        break;
    case IG_GC_PARENT:
        snprintf(v.text, sizeof v.text, "gc keeps it: %s was derived from it",
                 ig_called(g->names, g->nnames, g->index.packs[p->by].digest).s);
        break;
    }
    return v;
}

static void report_json(const struct rm *rm, const struct ig_gc *g)
{
    json_t *removed = json_array(), *packs = json_array();
    uint64_t bytes = 0;
    for (size_t i = 0; i < rm->count; i++) {
        const struct removal *r = &rm->list[i];
        json_array_append_new(removed, json_pack("{s:s,s:s?}", "name", r->name, "digest",
                                                 r->has_digest ? ig_pack_text(r->digest).s : NULL));
    }
    for (size_t i = 0; g && i < rm->ndigests; i++) {
        const struct verdict v = judge(g, rm->digests[i]);
        bytes += v.bytes;
        json_array_append_new(packs,
                              json_pack("{s:s,s:s,s:I}", "digest", ig_pack_text(rm->digests[i]).s,
                                        "state", v.state, "gc_bytes", (json_int_t)v.bytes));
    }
    ig_cli_json(json_pack("{s:o,s:o,s:I}", "removed", removed, "packs", packs, "gc_bytes",
                          (json_int_t)bytes));
}

static void report_text(const struct rm *rm, const struct ig_gc *g)
{
    for (size_t i = 0; i < rm->count; i++) printf("removed %s\n", rm->list[i].name);
    for (size_t i = 0; g && i < rm->ndigests; i++)
        printf("%s: %s\n", ig_pack_text(rm->digests[i]).s, judge(g, rm->digests[i]).text);
}

static void report(const struct rm *rm)
{
    struct ig_gc g;
    ingot_error why;
    const bool planned = ig_gc_plan(&rm->store, false, true, &g, &why) == INGOT_OK;
    if (!planned)
        ig_cli_notice(&rm->cli, "warning: what gc will free cannot be told: %s", why.message);
    if (planned && g.index.notice) ig_cli_notice(&rm->cli, "notice: %s", g.index.notice);
    if (rm->cli.json)
        report_json(rm, planned ? &g : NULL);
    else if (!rm->cli.quiet)
        report_text(rm, planned ? &g : NULL);
    if (planned) ig_gc_free(&g);
}

static ingot_status run(struct rm *rm, ingot_error *e)
{
    int lock = -1;
    return_if_error(ig_store_open(rm->cli.store, false, &rm->store, e));
    return_if_error(ig_store_lock(&rm->store, true, &lock, e));
    const ingot_status status = remove_names(rm, e);
    if (status == INGOT_OK) report(rm);
    close(lock);
    return status;
}

int ig_cmd_rm(int argc, char **argv)
{
    struct rm rm = {.cli = {.command = "rm", .usage = "[-f] [--json] NAME|DIGEST..."}};
    const struct ig_opt opts[] = {{"force", 'f', IG_OPT_FLAG, &rm.force}, IG_OPT_END};
    ingot_error e;
    int code = ig_cli_parse(&rm.cli, argc, argv, opts, 1, -1);
    if (code >= 0) return code;
    code = run(&rm, &e) == INGOT_OK ? ig_cli_finish(&rm.cli, 0) : ig_cli_fail(&rm.cli, &e);
    for (size_t i = 0; i < rm.count; i++) free(rm.list[i].name);
    free(rm.list);
    free(rm.digests);
    ig_names_free(rm.names, rm.nnames);
    ig_store_close(&rm.store);
    return code;
}
