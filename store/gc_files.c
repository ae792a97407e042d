/* SPDX-License-Identifier: Apache-2.0 */
/* The files of packs/ that gc measures and removes: packs, and what lies beside them. */
#include "store/gc_files.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A time in the future (another machine's clock) is young. */
bool ig_gc_is_young(int64_t mtime, int64_t now)
{
    return now - mtime < IG_GC_YOUNG_S;
}

/* Visit path and, if it is a folder, all in it, links not followed; remove or add up. */
static ingot_status walk(char *path, bool removing, uint64_t *bytes, ingot_error *e)
{
    char *roots[] = {path, NULL};
    ingot_status status = INGOT_OK;
    const FTSENT *f;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    if (!fts) return ig_fail_sys(e, errno, "%s: cannot list", path);
    while (status == INGOT_OK && (errno = 0, f = fts_read(fts))) {
        if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS) {
            if (f->fts_errno != ENOENT)
                status = ig_fail_sys(e, f->fts_errno, "%s: cannot read", f->fts_path);
            continue;
        }
        if (f->fts_info == FTS_D) continue; /* seen again after what is in it */
        if (f->fts_info != FTS_DP) *bytes += (uint64_t)f->fts_statp->st_size;
        if (removing && remove(f->fts_accpath) != 0 && errno != ENOENT)
            status = ig_fail_sys(e, errno, "%s: cannot remove", f->fts_path);
    }
    if (status == INGOT_OK && errno != 0) status = ig_fail_sys(e, errno, "%s: cannot list", path);
    fts_close(fts);
    return status;
}

static ingot_status add_file(const char *dir, const char *name, bool all_ages, struct ig_gc *g,
                             size_t *cap, ingot_error *e)
{
    uint8_t digest[IG_HASH];
    struct stat st;
    const enum ig_beside kind = ig_store_beside(name, digest);
    if (kind != IG_BESIDE_PACK && kind != IG_BESIDE_OTHER) return INGOT_OK;
    if (g->nfiles == *cap) {
        const size_t more = *cap ? 2 * *cap : 64;
        struct ig_gc_file *p = reallocarray(g->files, more, sizeof *p);
        if (!p) return ig_no_memory(e);
        g->files = p;
        *cap = more;
    }
    char *path = ig_format("%s/%s", dir, name);
    struct ig_gc_file *f = &g->files[g->nfiles];
    *f = (struct ig_gc_file){
        .name = strdup(name), .pack = IG_NONE, .is_pack = kind == IG_BESIDE_PACK};
    if (!path || !f->name) {
        free(path);
        free(f->name);
        return ig_no_memory(e);
    }
    g->nfiles++;
    bool there = false;
    ingot_status status = walk(path, false, &f->bytes, e);
    const struct ig_summary *pack = ig_index_find(&g->index, digest);
    if (pack) {
        f->pack = (uint32_t)(pack - g->index.packs);
        f->doomed = g->packs[f->pack].why == IG_GC_FREE;
        g->packs[f->pack].bytes += f->bytes;
    } else if (status == INGOT_OK && !f->is_pack) {
        status = ig_lstat(path, &st, &there, e);
        /* Published before its pack, or left by a gc that was killed; time tells which. */
        f->doomed = there && (all_ages || !ig_gc_is_young(st.st_mtim.tv_sec, time(NULL)));
    }
    free(path);
    return status;
}

struct listing {
    struct ig_gc *g;
    const char *dir;
    size_t cap;
    bool all_ages;
};

static ingot_status list_entry(void *ctx, const char *name, ingot_error *e)
{
    struct listing *l = ctx;
    return add_file(l->dir, name, l->all_ages, l->g, &l->cap, e);
}

ingot_status ig_gc_list_files(const struct ig_store *s, bool all_ages, struct ig_gc *g,
                              ingot_error *e)
{
    struct listing l = {.g = g, .all_ages = all_ages};
    char *path = ig_store_path(s, "packs", NULL);
    if (!path) return ig_no_memory(e);
    l.dir = path;
    const ingot_status status = ig_each_entry(path, true, list_entry, &l, e);
    free(path);
    return status;
}

/* Packs first: what is left behind by a kill has no pack and is known for what it is. */
ingot_status ig_gc_sweep(const struct ig_store *s, const struct ig_gc *g, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    bool removed = false;
    char *packs = ig_store_path(s, "packs", NULL);
    if (!packs) return ig_no_memory(e);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < g->nfiles && status == INGOT_OK; i++) {
            const struct ig_gc_file *f = &g->files[i];
            if (!f->doomed || f->is_pack != (round == 0)) continue;
            uint64_t bytes = 0;
            char *path = ig_format("%s/%s", packs, f->name);
            status = path ? walk(path, true, &bytes, e) : ig_no_memory(e);
            free(path);
            removed = true;
        }
    }
    if (status == INGOT_OK && removed) status = ig_fsync_dir(packs, e);
    free(packs);
    return status;
}
