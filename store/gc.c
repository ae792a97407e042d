/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding what to keep. */
#include "store/gc.h"

#include "store/gc_files.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const ig_gc_words[] = {"free", "named", "parent", "young"};

/* Why a summary has a problem: a pack that is damaged, or one that could not be read. */
static ingot_status what_problem(const struct ig_store *s, const struct ig_summary *pack)
{
    struct ig_pack p = {0};
    ingot_error why;
    char *path = ig_store_pack_path(s, pack->digest);
    const ingot_status status = path ? ig_pack_open(path, &p, &why) : INGOT_ERR_NO_MEMORY;
    free(path);
    ig_pack_close(&p);
    return status == INGOT_OK ? INGOT_ERR_IO : status; /* well again: it was no damage */
}

static ingot_status mark_named(const struct ig_store *s, struct ig_gc *g, ingot_error *e)
{
    for (size_t i = 0; i < g->nnames; i++) {
        const struct ig_name *n = &g->names[i];
        if (!n->has_digest)
            return ig_fail(e, n->status, "%s; nothing is freed while this name is unreadable",
                           n->problem);
        const struct ig_summary *pack = ig_index_find(&g->index, n->digest);
        if (!pack) continue;
        if (pack->problem)
            return ig_fail(e, what_problem(s, pack),
                           "%s; nothing is freed while it is named \"%s\", since it cannot tell "
                           "what it was derived from",
                           pack->problem, n->name);
        struct ig_gc_pack *mark = &g->packs[pack - g->index.packs];
        if (mark->why == IG_GC_FREE)
            *mark = (struct ig_gc_pack){.why = IG_GC_NAMED, .by = (uint32_t)i};
    }
    return INGOT_OK;
}

static void mark_young(struct ig_gc *g, int64_t now)
{
    for (size_t i = 0; i < g->index.npacks; i++)
        if (g->packs[i].why == IG_GC_FREE && ig_gc_is_young(g->index.packs[i].sec, now))
            g->packs[i].why = IG_GC_YOUNG;
}

/* Keep what pack i was derived from; true when that keeps something new. */
static bool mark_parents(struct ig_gc *g, size_t i)
{
    const struct ig_summary *child = &g->index.packs[i];
    bool more = false;
    if (g->packs[i].why == IG_GC_FREE || !child->has_from) return false;
    for (size_t k = 0; k < g->index.npacks; k++) {
        const struct ig_summary *pack = &g->index.packs[k];
        if (g->packs[k].why != IG_GC_FREE || pack->problem ||
            memcmp(pack->content, child->from, IG_HASH) != 0)
            continue;
        g->packs[k].why = IG_GC_PARENT;
        g->packs[k].by = (uint32_t)i;
        more = true;
    }
    return more;
}

/* Is there a kept pack that was derived from something which no readable pack is? */
static bool lacks_parent(const struct ig_gc *g)
{
    for (size_t i = 0; i < g->index.npacks; i++) {
        const struct ig_summary *child = &g->index.packs[i];
        bool found = g->packs[i].why == IG_GC_FREE || !child->has_from;
        for (size_t k = 0; k < g->index.npacks && !found; k++)
            found = !g->index.packs[k].problem &&
                    memcmp(g->index.packs[k].content, child->from, IG_HASH) == 0;
        if (!found) return true;
    }
    return false;
}

/* A pack that the disk does not give now may be a parent, or have one; a damaged one will never
 * be any use. */
static ingot_status check_unread(const struct ig_store *s, const struct ig_gc *g, ingot_error *e)
{
    const bool lacking = lacks_parent(g);
    for (size_t i = 0; i < g->index.npacks; i++) {
        const struct ig_summary *pack = &g->index.packs[i];
        if (!pack->problem || (g->packs[i].why == IG_GC_FREE && !lacking)) continue;
        const ingot_status status = what_problem(s, pack);
        if (status != INGOT_ERR_PACK)
            return ig_fail(e, status,
                           "%s; nothing is freed before it can be read, since a model may be "
                           "derived from it, or it from one",
                           pack->problem);
    }
    return INGOT_OK;
}

static ingot_status mark(const struct ig_store *s, struct ig_gc *g, bool all_ages, ingot_error *e)
{
    return_if_error(mark_named(s, g, e));
    if (!all_ages) mark_young(g, time(NULL));
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < g->index.npacks; i++) more |= mark_parents(g, i);
    }
    return check_unread(s, g, e);
}

ingot_status ig_gc_plan(const struct ig_store *s, bool all_ages, bool refresh, struct ig_gc *out,
                        ingot_error *e)
{
    ingot_status status;
    *out = (struct ig_gc){0};
    if ((status = ig_names_list(s, &out->names, &out->nnames, e)) != INGOT_OK) goto out;
    if ((status = ig_index_load(s, refresh, &out->index, e)) != INGOT_OK) goto out;
    out->packs = ig_array(out->index.npacks, sizeof *out->packs);
    if (!out->packs) {
        status = ig_no_memory(e);
        goto out;
    }
    if ((status = mark(s, out, all_ages, e)) != INGOT_OK) goto out;
    status = ig_gc_list_files(s, all_ages, out, e);
out:
    if (status != INGOT_OK) ig_gc_free(out);
    return status;
}

void ig_gc_free(struct ig_gc *g)
{
    for (size_t i = 0; i < g->nfiles; i++) free(g->files[i].name);
    free(g->files);
    free(g->packs);
    ig_names_free(g->names, g->nnames);
    ig_index_free(&g->index);
    *g = (struct ig_gc){0};
}
