/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns which bytes: rules between rows that opening a pack does not check. */
#include "verify/check.h"

#include <stdlib.h>
#include <string.h>

static int place_cmp(const void *a, const void *b)
{
    const struct span_row *x = a, *y = b;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    /* The wider one first, so that a view stands before its members. */
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void structure(struct check *c, const struct ig_row *row, uint64_t offset, const char *text)
{
    ig_check_bad(c, &(struct finding){.kind = "structure",
                                      .tensor = row->name,
                                      .tensor_len = row->name_len,
                                      .offset = offset,
                                      .text = text});
}

/* Rows that are neither views nor tied share no byte; a view begins and ends with members. */
static void check_overlaps(struct check *c)
{
    uint64_t free_from = 0;
    for (uint32_t i = 0; i < c->nrows; i++) {
        struct ig_row row;
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        if (row.flags & IG_ROW_VIEW) continue;
        if (c->rows[i].pos < free_from)
            structure(c, &row, c->rows[i].pos, "shares bytes with another tensor");
        if (c->rows[i].end > free_from) free_from = c->rows[i].end;
    }
}

/* Index of the last row before `end` that is no view, or IG_NONE. */
static uint32_t last_member(const struct check *c, const bool *is_view, uint64_t end)
{
    uint32_t low = 0, high = c->nrows;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (c->rows[mid].pos < end)
            low = mid + 1;
        else
            high = mid;
    }
    while (low > 0 && is_view[low - 1]) low--;
    return low ? low - 1 : IG_NONE;
}

/* A view is whole rows end to end: it begins where one begins and ends where one ends. */
static ingot_status check_views(struct check *c, ingot_error *e)
{
    bool *is_view = ig_array(c->nrows, sizeof *is_view);
    if (!is_view) return ig_no_memory(e);
    struct ig_row row;
    for (uint32_t i = 0; i < c->nrows; i++) {
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        is_view[i] = row.flags & IG_ROW_VIEW;
    }
    for (uint32_t i = 0; i < c->nrows; i++) {
        if (!is_view[i]) continue;
        const uint32_t first = last_member(c, is_view, c->rows[i].pos + 1);
        const uint32_t last = last_member(c, is_view, c->rows[i].end);
        if (first != IG_NONE && c->rows[first].pos == c->rows[i].pos && last != IG_NONE &&
            c->rows[last].end == c->rows[i].end)
            continue;
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        structure(c, &row, c->rows[i].pos, "a view that does not cover whole tensors");
    }
    free(is_view);
    return INGOT_OK;
}

/* Rows of more than a page are followed side by side, each with a tree of its own. */
static void check_depth(struct check *c)
{
    uint64_t ends[OVERLAPS] = {0};
    for (uint32_t i = 0; i < c->nrows; i++) {
        struct span_row *s = &c->rows[i];
        uint32_t k = 0;
        if (s->end - s->pos <= IG_PAGE) continue;
        /* A place is free once its row has left the window in which this one starts. */
        while (k < OVERLAPS && ends[k] > s->pos) k++;
        if (k < OVERLAPS) {
            ends[k] = s->end;
            continue;
        }
        struct ig_row row;
        ig_pack_row(&c->pack, s->row, &row);
        structure(c, &row, s->pos, "more tensors cover its first byte than this version follows");
    }
}

static void check_headers(struct check *c)
{
    if (ig_pack_is_derived(&c->pack)) return;
    for (uint32_t i = 0; i < c->pack.nsources; i++) {
        const struct ig_source *s = &c->pack.sources[i];
        if (ig_pack_find_blob(&c->pack, s->name, IG_BLOB_HEADER) != IG_NONE) continue;
        char text[600];
        snprintf(text, sizeof text, "no header blob for the source %s",
                 ig_esc(s->name, strlen(s->name)).s);
        ig_check_bad(c, &(struct finding){.kind = "structure", .offset = UINT64_MAX, .text = text});
    }
}

/* One of a tied pair stands for both; the other must be the same bytes. */
static bool is_second_of_pair(struct check *c, const struct ig_row *row, struct ig_row *first,
                              uint32_t *tied)
{
    if (!(row->flags & IG_ROW_TIED)) return false;
    if ((*tied)++ == 0) {
        *first = *row;
        return false;
    }
    if (*tied > 2 || row->extent != first->extent || row->offset != first->offset ||
        row->bytes != first->bytes || memcmp(row->digest, first->digest, IG_HASH) != 0)
        structure(c, row, ig_pack_pos(&c->pack, row), "tied, yet not to one other tensor's bytes");
    return true;
}

ingot_status ig_check_rows(struct check *c, ingot_error *e)
{
    struct ig_row row, first = {0};
    uint32_t tied = 0;
    c->rows = ig_array(c->pack.nrows, sizeof *c->rows);
    c->parts = ig_array(IG_PARTS, sizeof *c->parts);
    if (!c->rows || !c->parts) return ig_no_memory(e);
    c->nparts = ig_pack_tail_parts(&c->pack, c->parts, IG_PARTS);
    for (uint32_t i = 0; i < c->pack.nrows; i++) {
        ig_pack_row(&c->pack, i, &row);
        if (row.bytes == 0 || is_second_of_pair(c, &row, &first, &tied)) continue;
        const uint64_t pos = ig_pack_pos(&c->pack, &row);
        c->rows[c->nrows++] = (struct span_row){.pos = pos, .end = pos + row.bytes, .row = i};
    }
    if (tied == 1) structure(c, &first, ig_pack_pos(&c->pack, &first), "tied to no other tensor");
    if (c->nrows) qsort(c->rows, c->nrows, sizeof *c->rows, place_cmp);
    for (uint32_t i = 0; i < c->nrows; i++) {
        const uint64_t before = i ? c->rows[i - 1].reach : 0;
        c->rows[i].reach = c->rows[i].end > before ? c->rows[i].end : before;
    }
    check_overlaps(c);
    return_if_error(check_views(c, e));
    check_depth(c);
    check_headers(c);
    return INGOT_OK;
}
