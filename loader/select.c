/* SPDX-License-Identifier: Apache-2.0 */
/* select: targets from names and shell patterns. */
#include "loader/plan.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Names are not NUL-terminated in a pack, and fnmatch wants them so. */
static ingot_status copy_name(const struct ig_row *r, char **buf, size_t *cap, ingot_error *e)
{
    if (*cap <= r->name_len) {
        char *more = realloc(*buf, 2 * (size_t)r->name_len + 1);
        if (!more) return ig_no_memory(e);
        *buf = more;
        *cap = 2 * (size_t)r->name_len + 1;
    }
    memcpy(*buf, r->name, r->name_len);
    (*buf)[r->name_len] = '\0';
    return INGOT_OK;
}

/* A name that holds a NUL is matched up to it by fnmatch: by no pattern, then. */
static ingot_status choose_matching(const struct ig_pack *p, const char *pattern, bool *chosen,
                                    bool *found, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    size_t cap = 0;
    char *name = NULL;
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row r;
        ig_pack_row(p, i, &r);
        if (r.flags & IG_ROW_SHADOW) continue;
        status = copy_name(&r, &name, &cap, e);
        if (status != INGOT_OK) break;
        if (memchr(name, '\0', r.name_len) || fnmatch(pattern, name, 0) != 0) continue;
        chosen[i] = *found = true;
    }
    free(name);
    return status;
}

/* A name is a name first, whatever a pattern would make of the characters in it. */
static ingot_status choose(const struct ig_pack *p, const char *pattern, bool *chosen,
                           ingot_error *e)
{
    const size_t len = strlen(pattern);
    const uint32_t row = ig_pack_find(p, pattern, len);
    bool found = row != IG_NONE;
    if (found)
        chosen[row] = true;
    else if (strpbrk(pattern, "*?[\\"))
        return_if_error(choose_matching(p, pattern, chosen, &found, e));
    if (found) return INGOT_OK;
    ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no tensor \"%s\"", p->path, ig_esc(pattern, len).s);
    return ig_at(e, p->path, pattern, len);
}

struct span {
    uint64_t begin, end;
    uint32_t row;
};

/* What may hold others stands before them; of two equal ones, the first in the table. */
static int outer_first(const void *x, const void *y)
{
    const struct span *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end > b->end ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static size_t list_spans(const struct ig_pack *p, const bool *chosen, struct span *spans)
{
    size_t n = 0;
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row r;
        if (!chosen[i]) continue;
        ig_pack_row(p, i, &r);
        if (r.bytes == 0) continue;
        spans[n].begin = ig_pack_pos(p, &r);
        spans[n].end = spans[n].begin + r.bytes;
        spans[n++].row = i;
    }
    qsort(spans, n, sizeof *spans, outer_first);
    return n;
}

ingot_status ig_select(const struct ig_pack *p, const char *const *patterns, size_t n,
                       struct ig_targets *out, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    uint64_t end = 0;
    bool *chosen = ig_array(p->nrows, sizeof *chosen);
    struct span *spans = ig_array(p->nrows, sizeof *spans);
    if (!chosen || !spans) {
        status = ig_no_memory(e);
        goto out;
    }
    for (size_t i = 0; i < n && status == INGOT_OK; i++) status = choose(p, patterns[i], chosen, e);
    if (status != INGOT_OK) goto out;
    const size_t nspans = list_spans(p, chosen, spans);
    for (size_t i = 0; i < nspans && status == INGOT_OK; i++) {
        if (spans[i].end <= end) continue;
        end = spans[i].end;
        status = ig_targets_add_row(out, p, spans[i].row, e);
    }
out:
    free(chosen);
    free(spans);
    return status;
}
