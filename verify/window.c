/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/window.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *at(const struct window *w, uint64_t offset)
{
    return w->data + (int64_t)(offset - w->start);
}

/* First row that may reach into the file behind `offset`. */
static uint32_t first_row(const struct check *c, uint64_t offset)
{
    uint32_t low = 0, high = c->nrows;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (c->rows[mid].reach <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void ig_window_judge(struct check *c, const struct span_row *s, const uint8_t digest[IG_HASH])
{
    struct ig_row row;
    ig_pack_row(&c->pack, s->row, &row);
    if (memcmp(digest, row.digest, IG_HASH) != 0)
        ig_check_bad(c, &(struct finding){.kind = "tensor",
                                          .tensor = row.name,
                                          .tensor_len = row.name_len,
                                          .offset = s->pos,
                                          .length = s->end - s->pos,
                                          .expected = row.digest,
                                          .found = digest,
                                          .hash_len = IG_HASH});
    if (row.flags & IG_ROW_VIEW) return;
    pthread_mutex_lock(&c->lock);
    c->tensors_hashed += row.flags & IG_ROW_TIED ? 2 : 1;
    pthread_mutex_unlock(&c->lock);
}

/* Bytes that nothing covers must be zero. */
static void check_zero(struct check *c, const struct window *w, uint64_t from, uint64_t to)
{
    const uint64_t end = w->start + w->n;
    if (from < w->start) from = w->start;
    if (to > end) to = end;
    if (from >= to || ig_all_zero(at(w, from), (size_t)(to - from))) return;
    const uint8_t *p = at(w, from);
    while (*p == 0) p++, from++;
    ig_check_bad(c, &(struct finding){
                        .kind = "padding", .offset = from, .length = 1, .text = "expected zero"});
}

static void check_weights_padding(struct check *c, const struct window *w)
{
    const uint64_t end = w->start + w->n;
    uint64_t covered = w->start < IG_PAGE ? IG_PAGE : w->start; /* page 0 is the superblock */
    for (uint32_t i = first_row(c, w->start); i < c->nrows && c->rows[i].pos < end; i++) {
        struct ig_row row;
        ig_pack_row(&c->pack, c->rows[i].row, &row);
        if (row.flags & IG_ROW_VIEW || c->rows[i].end <= covered) continue;
        if (c->rows[i].pos > covered) check_zero(c, w, covered, c->rows[i].pos);
        covered = c->rows[i].end;
    }
    if (covered < c->pack.tail) check_zero(c, w, covered, c->pack.tail);
}

/* Tail: parts are few; they do not overlap, so the next one after a position is found by a scan. */
static void check_tail_window(struct check *c, const struct window *w)
{
    const uint64_t end = w->start + w->n;
    uint64_t covered = c->pack.tail > w->start ? c->pack.tail : w->start;
    while (covered < end) {
        const struct ig_part *next = NULL;
        for (uint32_t i = 0; i < c->nparts; i++) {
            const struct ig_part *k = &c->parts[i];
            if (k->bytes && k->offset + k->bytes > covered && (!next || k->offset < next->offset))
                next = k;
        }
        const uint64_t start = next ? next->offset : c->pack.size;
        if (start > covered) check_zero(c, w, covered, start);
        if (!next || start >= end) return;
        const uint64_t from = start > covered ? start : covered;
        const uint64_t to = next->offset + next->bytes < end ? next->offset + next->bytes : end;
        /* What was parsed must be what is hashed now. */
        if (next->copy &&
            memcmp(at(w, from), next->copy + (from - next->offset), (size_t)(to - from)) != 0)
            ig_check_bad(c, &(struct finding){.kind = "tail",
                                              .offset = from,
                                              .length = to - from,
                                              .text = "changed since the pack was opened"});
        covered = to;
    }
}

/* A span says where within 64 KiB: one tensor is named only when it has all of it. */
static void bad_span(struct check *c, uint64_t start, size_t len, const uint8_t *expected,
                     const uint8_t *found)
{
    const struct ig_row first = ig_check_row_at(c, start),
                        last = ig_check_row_at(c, start + len - 1);
    const bool one = first.name_len && first.name == last.name;
    char text[2 * IG_ESC_MAX + 32] = "";
    if (!one)
        snprintf(text, sizeof text, "tensors \"%s\" to \"%s\"",
                 ig_esc(first.name, first.name_len).s, ig_esc(last.name, last.name_len).s);
    ig_check_bad(c, &(struct finding){.kind = "weights",
                                      .tensor = one ? first.name : NULL,
                                      .tensor_len = first.name_len,
                                      .offset = start,
                                      .length = len,
                                      .expected = expected,
                                      .found = found,
                                      .hash_len = 16,
                                      .text = one ? NULL : text});
}

static ingot_status check_spans(struct check *c, const struct window *w, ingot_error *e)
{
    uint8_t table[WINDOW / IG_SPAN * 16];
    const uint64_t weights_end = c->pack.tail;
    uint64_t start = w->start < c->pack.weights ? c->pack.weights : w->start;
    const uint64_t end = w->start + w->n < weights_end ? w->start + w->n : weights_end;
    if (start >= end) return INGOT_OK;
    const uint64_t first = (start - c->pack.weights) / IG_SPAN;
    const uint64_t n = (end - start + IG_SPAN - 1) / IG_SPAN;
    return_if_error(ig_pread(c->pack.fd, c->pack.path, table, n * 16, c->pack.xxh + first * 16, e));
    for (uint64_t i = 0; i < n; i++, start += IG_SPAN) {
        uint8_t xxh[16];
        const size_t len = end - start < IG_SPAN ? (size_t)(end - start) : IG_SPAN;
        ig_xxh128(xxh, at(w, start), len);
        if (memcmp(xxh, table + i * 16, 16) == 0) continue;
        bad_span(c, start, len, table + i * 16, xxh);
    }
    return INGOT_OK;
}

static ingot_status grow(struct window *w, size_t hashes, ingot_error *e)
{
    if (w->nrows == w->rows_cap) {
        const size_t cap = w->rows_cap ? 2 * w->rows_cap : 64;
        struct row_leaves *rows = realloc(w->rows, cap * sizeof *rows);
        if (!rows) return ig_no_memory(e);
        w->rows = rows;
        w->rows_cap = cap;
    }
    if (w->nown + hashes > w->own_cap) {
        const size_t cap = 2 * w->own_cap + hashes + 64;
        uint8_t *own = realloc(w->own, cap * IG_HASH);
        if (!own) return ig_no_memory(e);
        w->own = own;
        w->own_cap = cap;
    }
    return INGOT_OK;
}

static void hash_small(struct check *c, const struct window *w, const struct span_row *s)
{
    uint8_t leaf[IG_HASH], digest[IG_HASH];
    ig_leaf(leaf, at(w, s->pos), (size_t)(s->end - s->pos));
    ig_verity_digest(digest, s->end - s->pos, leaf);
    ig_window_judge(c, s, digest);
}

/* Leaves of a larger row that end in this window. */
static ingot_status hash_row(struct window *w, const struct span_row *s, uint32_t index,
                             ingot_error *e)
{
    const uint64_t end = w->start + w->n;
    const uint64_t to = s->end < end ? s->end : end;
    struct row_leaves l = {.index = index, .own = (uint32_t)w->nown};
    return_if_error(grow(w, w->n / IG_PAGE + 2, e));
    uint64_t from = s->pos > w->start ? s->pos : w->start; /* first byte of a leaf of its own */
    if (s->pos % IG_PAGE == 0) {
        l.shared = (uint32_t)((from - w->start) / IG_PAGE);
        l.nshared = (uint32_t)((to - from) / IG_PAGE);
        from += (uint64_t)l.nshared * IG_PAGE;
    } else if (s->pos < w->start) {
        from = w->start - (w->start - s->pos) % IG_PAGE; /* begins in the window before */
    }
    const bool ends = s->end <= end;
    uint64_t n = to - from;
    if (!ends) n -= n % IG_PAGE;
    if (n) ig_leaves(w->lanes, w->own + w->nown * IG_HASH, at(w, from), (size_t)n);
    l.nown = (uint32_t)((n + IG_PAGE - 1) / IG_PAGE);
    w->nown += l.nown;
    w->rows[w->nrows++] = l;
    return INGOT_OK;
}

static ingot_status hash_rows(struct check *c, struct window *w, ingot_error *e)
{
    const uint64_t end = w->start + w->n;
    w->nrows = w->nown = 0;
    for (uint32_t i = first_row(c, w->start); i < c->nrows && c->rows[i].pos < end; i++) {
        const struct span_row *s = &c->rows[i];
        if (s->end <= w->start) continue;
        if (s->end - s->pos > IG_PAGE)
            return_if_error(hash_row(w, s, i, e));
        else if (s->end <= end)
            hash_small(c, w, s);
    }
    return INGOT_OK;
}

bool ig_window_inside(const struct check *c, uint64_t start, uint64_t n)
{
    bool any = false;
    for (uint32_t i = first_row(c, start); i < c->nrows && c->rows[i].pos < start + n; i++) {
        const struct span_row *s = &c->rows[i];
        if (s->end <= start) continue;
        if (s->pos % IG_PAGE || s->pos > start || s->end < start + n) return false;
        any = true;
    }
    return any;
}

ingot_status ig_window_recall(struct check *c, struct window *w, ingot_error *e)
{
    return_if_error(ig_pread(c->leaves_fd, "leaves", w->leaves, w->n / IG_PAGE * IG_HASH,
                             w->start / IG_PAGE * IG_HASH, e));
    return hash_rows(c, w, e);
}

ingot_status ig_window_hash(struct check *c, struct window *w, ingot_error *e)
{
    check_weights_padding(c, w);
    if (w->start + w->n > c->pack.tail) check_tail_window(c, w);
    return_if_error(check_spans(c, w, e));
    if (c->v->level != IG_LEVEL_FULL) return INGOT_OK;
    ig_leaves(w->lanes, w->leaves, w->data, w->n);
    return hash_rows(c, w, e);
}

void ig_window_free(struct window *w)
{
    free(w->rows);
    free(w->own);
}
