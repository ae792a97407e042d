/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One name, one tensor.  Rows are sorted; copies that the index maps elsewhere become
 * shadows; every other disagreement between index and files is refused by name.
 */
#include "convert/plan.h"

#include <stdlib.h>
#include <string.h>

/* Sorting moves rows and where they come from together. */
struct both {
    struct ig_row row;
    struct ig_from from;
};

static int both_cmp(const void *a, const void *b)
{
    return ig_plan_row_cmp(&((const struct both *)a)->row, &((const struct both *)b)->row);
}

static ingot_status sort_rows(struct ig_plan *p, ingot_error *e)
{
    struct both *all = ig_array(p->nrows, sizeof *all);
    if (!all) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows; i++) all[i] = (struct both){p->rows[i], p->from[i]};
    if (p->nrows) qsort(all, p->nrows, sizeof *all, both_cmp);
    for (uint32_t i = 0; i < p->nrows; i++) p->rows[i] = all[i].row, p->from[i] = all[i].from;
    free(all);
    return INGOT_OK;
}

static bool same_name(const struct ig_row *a, const struct ig_row *b)
{
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

static bool same_shape(const struct ig_row *a, const struct ig_row *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static const char *mapped_to(const struct ig_plan *p, const struct ig_row *row)
{
    if (memchr(row->name, 0, row->name_len)) return NULL;
    return json_string_value(json_object_getn(p->src->index, row->name, row->name_len));
}

static ingot_status refuse(const struct ig_plan *p, const struct ig_row *row, const char *what,
                           const char *a, const char *b, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT, "%s: tensor \"%s\" %s: %s%s%s", p->src->root,
            ig_esc(row->name, row->name_len).s, what, a, b ? " and " : "", b ? b : "");
    return ig_at(e, p->src->root, row->name, row->name_len);
}

/* Rows first..end-1 have one name. */
static ingot_status judge_copies(struct ig_plan *p, uint32_t first, uint32_t end, ingot_error *e)
{
    struct ig_row *r = &p->rows[first];
    const char *file = p->sources[r->source].name;
    const char *mapped = p->src->index ? mapped_to(p, r) : NULL;
    for (uint32_t i = first + 1; i < end; i++) {
        const char *other = p->sources[p->rows[i].source].name;
        if (!p->src->index || !mapped)
            return refuse(p, r, "stands in two files and no index says which counts", file, other,
                          e);
        if (!same_shape(r, &p->rows[i]))
            return refuse(p, r, "stands in two files with different dtype or shape", file, other,
                          e);
    }
    bool found = false;
    for (uint32_t i = first; i < end; i++) {
        const bool counts = !mapped || strcmp(mapped, p->sources[p->rows[i].source].name) == 0;
        found |= counts;
        if (counts) continue;
        p->rows[i].flags |= IG_ROW_SHADOW;
        p->shadows++;
    }
    if (!found)
        return refuse(p, r, "is mapped by the index to a file that lacks it", mapped, file, e);
    if (p->src->index && !mapped && !p->job->keep_unindexed)
        return refuse(p, r, "is not in the index (--keep-unindexed keeps it); it stands in", file,
                      NULL, e);
    return INGOT_OK;
}

/* Every name of the index must stand in some file. */
static ingot_status check_index(struct ig_plan *p, ingot_error *e)
{
    const char *name;
    json_t *shard;
    json_object_foreach(p->src->index, name, shard)
    {
        if (ig_plan_find(p, name, strlen(name)) != IG_NONE) continue;
        ig_fail(e, INGOT_ERR_INPUT, "%s: the index maps tensor \"%s\" to %s, but no file has it",
                p->src->root, ig_esc(name, strlen(name)).s, json_string_value(shard));
        return ig_at(e, p->src->root, name, strlen(name));
    }
    return INGOT_OK;
}

static void check_total(struct ig_plan *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->nrows; i++)
        if (!(p->rows[i].flags & IG_ROW_SHADOW)) sum += p->rows[i].bytes;
    const json_t *total = p->src->total_size;
    if (!json_is_number(total) || (uint64_t)json_number_value(total) == sum) return;
    ig_src_warn(p->src, "the index says total_size %.0f, the tensors have %llu bytes",
                json_number_value(total), (unsigned long long)sum);
}

ingot_status ig_plan_shadows(struct ig_plan *p, ingot_error *e)
{
    return_if_error(sort_rows(p, e));
    if (p->parent) return INGOT_OK;
    if (p->src->index) return_if_error(check_index(p, e));
    for (uint32_t first = 0, end; first < p->nrows; first = end) {
        for (end = first + 1; end < p->nrows && same_name(&p->rows[first], &p->rows[end]);) end++;
        return_if_error(judge_copies(p, first, end, e));
    }
    check_total(p);
    if (!p->shadows) return INGOT_OK;
    ig_src_warn(p->src, "%u tensors stand in two files; the copies that the index maps are used",
                p->shadows);
    if (p->job->dtype >= 0) { /* a derived pack rebuilds no files, so it needs no second copies */
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->nrows; i++)
            if (!(p->rows[i].flags & IG_ROW_SHADOW))
                p->rows[n] = p->rows[i], p->from[n++] = p->from[i];
        p->nrows = n;
        return INGOT_OK;
    }
    return sort_rows(p, e); /* the flag is part of the order */
}
