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

/* Index of the last row before `end` that is no view, or IG_NONE.  before[i]: among the first i. */
static uint32_t last_member(const struct check *c, const uint32_t *before, uint64_t end)
{
    uint32_t low = 0, high = c->nrows;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (c->rows[mid].pos < end)
            low = mid + 1;
        else
            high = mid;
    }
    return before[low];
}

/* Does it begin where a row begins, end where one ends, and leave nothing out?  sum[i]: bytes of
 * the rows among the first i that are no views; that they overlap is another finding. */
static bool is_whole(const struct check *c, const struct span_row *view, const uint32_t *before,
                     const uint64_t *sum)
{
    const uint32_t first = last_member(c, before, view->pos + 1);
    const uint32_t last = last_member(c, before, view->end);
    return first != IG_NONE && c->rows[first].pos == view->pos && c->rows[last].end == view->end &&
           sum[last + 1] - sum[first] == view->end - view->pos;
}

/* A view is whole rows end to end. */
static ingot_status check_views(struct check *c, ingot_error *e)
{
    uint32_t *before = ig_array((size_t)c->nrows + 1, sizeof *before);
    uint64_t *sum = ig_array((size_t)c->nrows + 1, sizeof *sum);
    struct ig_row row;
    const ingot_status status = before && sum ? INGOT_OK : ig_no_memory(e);
    if (status != INGOT_OK) goto out;
    before[0] = IG_NONE;
    for (uint32_t i = 0; i < c->nrows; i++) {
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        const bool view = row.flags & IG_ROW_VIEW;
        before[i + 1] = view ? before[i] : i;
        sum[i + 1] = sum[i] + (view ? 0 : row.bytes);
    }
    for (uint32_t i = 0; i < c->nrows; i++) {
        if (before[i + 1] == i || is_whole(c, &c->rows[i], before, sum)) continue;
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        structure(c, &row, c->rows[i].pos, "a view that does not cover whole tensors");
    }
out:
    free(before);
    free(sum);
    return status;
}

/* Rows of more than a page are followed side by side, each with a tree of its own.  What is refused
 * here is not hashed either: rows cost a reader little, each of them may cover the whole file. */
static void check_depth(struct check *c)
{
    uint64_t ends[OVERLAPS] = {0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->nrows; i++) {
        const struct span_row s = c->rows[i];
        uint32_t k = 0;
        /* A place is free once its row has left the window in which this one starts. */
        while (k < OVERLAPS && ends[k] > s.pos) k++;
        if (s.end - s.pos <= IG_PAGE || k < OVERLAPS) {
            if (s.end - s.pos > IG_PAGE) ends[k] = s.end;
            c->rows[kept++] = s;
            continue;
        }
        struct ig_row row;
        ig_pack_row(&c->pack, s.row, &row);
        structure(c, &row, s.pos, "more tensors cover its first byte than this version follows");
    }
    c->nrows = kept;
}

static void structure_of_pack(struct check *c, const char *text)
{
    ig_check_bad(c, &(struct finding){.kind = "structure", .offset = UINT64_MAX, .text = text});
}

/* Each source has its header, and nothing else has; a derived pack has none. */
static void check_headers(struct check *c)
{
    const uint32_t wanted = ig_pack_is_derived(&c->pack) ? 0 : c->pack.nsources;
    uint32_t found = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        const struct ig_source *s = &c->pack.sources[i];
        if (ig_pack_find_blob(&c->pack, s->name, IG_BLOB_HEADER) != IG_NONE) {
            found++;
            continue;
        }
        char text[600];
        snprintf(text, sizeof text, "no header blob for the source %s",
                 ig_esc(s->name, strlen(s->name)).s);
        structure_of_pack(c, text);
    }
    uint32_t headers = 0;
    for (uint32_t i = 0; i < c->pack.nblobs; i++) {
        struct ig_blob b;
        ig_pack_blob(&c->pack, i, &b);
        headers += b.kind == IG_BLOB_HEADER;
    }
    if (headers > found) structure_of_pack(c, "a header blob of no source");
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
        row->bytes != first->bytes || memcmp(row->digest, first->digest, IG_HASH) != 0 ||
        row->dtype != first->dtype || row->rank != first->rank ||
        memcmp(row->shape, first->shape, row->rank * sizeof *row->shape) != 0)
        structure(c, row, ig_pack_pos(&c->pack, row), "tied, yet not to one other tensor's bytes");
    return true;
}

ingot_status ig_check_rows(struct check *c, ingot_error *e)
{
    struct ig_row row, first = {0};
    uint32_t tied = 0;
    const bool derived = ig_pack_is_derived(&c->pack);
    c->rows = ig_array(c->pack.nrows, sizeof *c->rows);
    c->parts = ig_array(IG_PARTS, sizeof *c->parts);
    if (!c->rows || !c->parts) return ig_no_memory(e);
    c->nparts = ig_pack_tail_parts(&c->pack, c->parts, IG_PARTS);
    for (uint32_t i = 0; i < c->pack.nrows; i++) {
        ig_pack_row(&c->pack, i, &row);
        if (is_second_of_pair(c, &row, &first, &tied) || row.bytes == 0) continue;
        if (row.flags & IG_ROW_SHADOW && derived)
            structure(c, &row, ig_pack_pos(&c->pack, &row), "a shadow row in a derived pack");
        const uint64_t pos = ig_pack_pos(&c->pack, &row);
        c->rows[c->nrows++] = (struct span_row){.pos = pos, .end = pos + row.bytes, .row = i};
    }
    if (tied == 1) structure(c, &first, ig_pack_pos(&c->pack, &first), "tied to no other tensor");
    if (c->nrows) qsort(c->rows, c->nrows, sizeof *c->rows, place_cmp);
    check_overlaps(c);
    return_if_error(check_views(c, e));
    check_depth(c);
    for (uint32_t i = 0; i < c->nrows; i++) {
        const uint64_t before = i ? c->rows[i - 1].reach : 0;
        c->rows[i].reach = c->rows[i].end > before ? c->rows[i].end : before;
    }
    check_headers(c);
    return INGOT_OK;
}
