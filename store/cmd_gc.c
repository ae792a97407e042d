/* SPDX-License-Identifier: Apache-2.0 */
/* ingot gc: free the packs that nobody needs, and what killed runs left. */
#include "store/cmd_common.h"
#include "store/gc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gc {
    struct ig_cli cli;
    bool dry, all_ages;
    struct ig_store store;
    struct ig_gc plan;
    uint64_t temporaries, temporary_bytes;
};

struct totals {
    uint64_t packs[IG_GC_YOUNG + 1]; /* by enum ig_gc_why */
    uint64_t strays;                 /* what lies beside packs that are not there */
    uint64_t bytes;
};

static struct totals add_up(const struct gc *gc)
{
    struct totals t = {.bytes = gc->temporary_bytes};
    for (size_t i = 0; i < gc->plan.index.npacks; i++) t.packs[gc->plan.packs[i].why]++;
    for (size_t i = 0; i < gc->plan.nfiles; i++) {
        const struct ig_gc_file *f = &gc->plan.files[i];
        if (!f->doomed) continue;
        t.bytes += f->bytes;
        t.strays += f->pack == IG_NONE;
    }
    return t;
}

static void report_json(const struct gc *gc)
{
    const struct totals t = add_up(gc);
    json_t *packs = json_array();
    for (size_t i = 0; i < gc->plan.index.npacks; i++) {
        const struct ig_gc_pack *p = &gc->plan.packs[i];
        json_array_append_new(packs,
                              json_pack("{s:s,s:s,s:I}", "digest",
                                        ig_pack_text(gc->plan.index.packs[i].digest).s, "state",
                                        ig_gc_words[p->why], "bytes", (json_int_t)p->bytes));
    }
    ig_cli_json(json_pack("{s:b,s:o,s:I,s:I,s:I}", "dry_run", gc->dry, "packs", packs,
                          "temporaries", (json_int_t)gc->temporaries, "strays",
                          (json_int_t)t.strays, "freed_bytes", (json_int_t)t.bytes));
}

static void report_text(const struct gc *gc)
{
    const struct totals t = add_up(gc);
    for (size_t i = 0; i < gc->plan.index.npacks; i++)
        if (gc->plan.packs[i].why == IG_GC_FREE)
            printf("%s %s  %s\n", gc->dry ? "would free" : "freed",
                   ig_pack_text(gc->plan.index.packs[i].digest).s,
                   ig_human(gc->plan.packs[i].bytes).s);
    printf("%s %s (packs: %llu, temporaries: %llu, stray files: %llu)\n",
           gc->dry ? "would free" : "freed", ig_human(t.bytes).s,
           (unsigned long long)t.packs[IG_GC_FREE], (unsigned long long)gc->temporaries,
           (unsigned long long)t.strays);
    printf("kept: %llu named, %llu that kept ones were derived from, %llu younger than an hour\n",
           (unsigned long long)t.packs[IG_GC_NAMED], (unsigned long long)t.packs[IG_GC_PARENT],
           (unsigned long long)t.packs[IG_GC_YOUNG]);
}

static ingot_status collect(struct gc *gc, ingot_error *e)
{
    return_if_error(ig_gc_plan(&gc->store, gc->all_ages, false, &gc->plan, e));
    if (!gc->dry) return_if_error(ig_gc_sweep(&gc->store, &gc->plan, e));
    ig_store_reclaim_count(&gc->store, gc->dry, &gc->temporaries, &gc->temporary_bytes);
    return INGOT_OK;
}

/* Bring index.mdb up to what is left. */
static ingot_status refresh(const struct gc *gc, ingot_error *e)
{
    struct ig_index index;
    return_if_error(ig_index_load(&gc->store, true, &index, e));
    if (index.notice) ig_cli_notice(&gc->cli, "notice: %s", index.notice);
    ig_index_free(&index);
    return INGOT_OK;
}

static ingot_status run(struct gc *gc, ingot_error *e)
{
    int lock = -1;
    struct stat st;
    return_if_error(ig_store_open(gc->cli.store, false, &gc->store, e));
    /* A dry run writes nothing, not even a lock file; nor is one made in an absent store. */
    const bool absent = stat(gc->store.root, &st) != 0 && errno == ENOENT;
    if (!gc->dry && !absent) return_if_error(ig_store_lock(&gc->store, true, &lock, e));
    ingot_status status = collect(gc, e);
    if (status == INGOT_OK && lock >= 0) status = refresh(gc, e);
    if (lock >= 0) close(lock);
    if (status != INGOT_OK) return status;
    if (gc->cli.json)
        report_json(gc);
    else if (!gc->cli.quiet)
        report_text(gc);
    return INGOT_OK;
}

int ig_cmd_gc(int argc, char **argv)
{
    struct gc gc = {.cli = {.command = "gc", .usage = "[--dry-run] [--all-ages] [--json]"}};
    const struct ig_opt opts[] = {{"dry-run", 'n', IG_OPT_FLAG, &gc.dry},
                                  {"all-ages", 0, IG_OPT_FLAG, &gc.all_ages},
                                  IG_OPT_END};
    ingot_error e;
    int code = ig_cli_parse(&gc.cli, argc, argv, opts, 0, 0);
    if (code >= 0) return code;
    code = run(&gc, &e) == INGOT_OK ? ig_cli_finish(&gc.cli, 0) : ig_cli_fail(&gc.cli, &e);
    ig_gc_free(&gc.plan);
    ig_store_close(&gc.store);
    return code;
}
