/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For every byte of every tensor this says by itself which ranks hold it, from the element's head,
 * row or column, and compares that with the targets.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/rank_fixture.h"

static bool holds_unit(uint64_t unit, uint64_t units, uint64_t rank, uint64_t ranks)
{
    return units >= ranks ? unit / (units / ranks) == rank : rank * units / ranks == unit;
}

static bool holds(const struct arch *a, enum part part, uint64_t i, uint64_t j, uint64_t rank,
                  uint64_t ranks)
{
    const uint64_t q = a->heads * a->head_dim, kv = a->kv * a->head_dim;
    switch (part) {
    case ALL:
        return true;
    case Q_ROWS:
        return holds_unit(i / a->head_dim, a->heads, rank, ranks);
    case KV_ROWS:
        return holds_unit(i / a->head_dim, a->kv, rank, ranks);
    case QKV_ROWS:
        return i < q ? holds(a, Q_ROWS, i, j, rank, ranks)
                     : holds(a, KV_ROWS, (i - q) % kv, j, rank, ranks);
    case FF_ROWS:
        return i / (a->ff / ranks) == rank;
    case GATE_UP_ROWS:
        return holds(a, FF_ROWS, i % a->ff, j, rank, ranks);
    case VOCAB_ROWS:
        return i / ceil_div(a->vocab, ranks) == rank;
    case Q_COLUMNS:
        return holds(a, Q_ROWS, j, i, rank, ranks);
    case FF_COLUMNS:
        return holds(a, FF_ROWS, j, i, rank, ranks);
    }
    return false;
}

static bool is_flagged(const struct arch *a, enum part part, uint64_t offset_row, uint32_t ranks)
{
    const bool repeated = ranks > a->kv;
    return part == ALL || (part == KV_ROWS && repeated) ||
           (part == QKV_ROWS && repeated && offset_row >= a->heads * a->head_dim);
}

/* One mark a byte that the target takes; the fields that name rows and columns agree with it. */
static void mark(const struct ig_target *t, const struct ig_row *r, uint8_t *marks)
{
    uint64_t columns = 1;
    for (uint32_t i = 1; i < r->rank; i++) columns *= r->shape[i];
    const uint64_t size = ig_dtypes[r->dtype].bits / 8;
    assert_int_equal(t->start, (t->first_row * columns + t->first_col) * size);
    assert_int_equal(t->rows * t->width, t->nrows * t->ncols * size);
    assert_true(t->rows == 1 || (t->rows == t->nrows && t->stride == columns * size));
    for (uint64_t i = 0; i < t->rows; i++) {
        const uint64_t at = t->start + (t->rows > 1 ? i * t->stride : 0);
        assert_true(t->width > 0 && at + t->width <= r->bytes);
        for (uint64_t k = 0; k < t->width; k++) marks[at + k]++;
    }
}

static void check_tensor(const struct model *m, const struct tensor *t, const struct ig_targets *of,
                         uint32_t rank, uint32_t ranks)
{
    struct ig_row r;
    const uint32_t row = ig_pack_find(&m->p, t->name, strlen(t->name));
    assert_int_not_equal(row, IG_NONE);
    ig_pack_row(&m->p, row, &r);
    uint8_t *marks = calloc(1, r.bytes);
    for (size_t i = 0; i < of->n; i++) {
        const struct ig_target *one = &of->list[i];
        if (one->row != row) continue;
        mark(one, &r, marks);
        const bool flagged =
            ranks > 1 && is_flagged(&m->a, t->part, one->first_row * t->rows, ranks);
        if (one->replicated != flagged)
            fail_msg("%s: rank %u of %u: %s is%s flagged", m->a.name, rank, ranks, t->name,
                     flagged ? " not" : "");
    }
    const uint64_t size = ig_dtypes[r.dtype].bits / 8;
    const uint64_t columns = r.rank ? r.bytes / size / r.shape[0] : 1;
    for (uint64_t b = 0; b < r.bytes; b++) {
        const uint64_t i = b / size / columns * t->rows, j = b / size % columns * t->columns;
        if (marks[b] != holds(&m->a, t->part, i, j, rank, ranks))
            fail_msg("%s: rank %u of %u: %s: byte %llu is taken %u times", m->a.name, rank, ranks,
                     t->name, (unsigned long long)b, marks[b]);
    }
    free(marks);
}

/* Every target has a place of its own. */
static void check_places(const struct model *m, struct ig_targets *t)
{
    uint64_t bytes, end = 0;
    ig_targets_place(t, &m->p, &bytes);
    for (size_t i = 0; i < t->n; i++) {
        const struct ig_target *one = &t->list[i];
        struct ig_row r;
        ig_pack_row(&m->p, one->row, &r);
        assert_int_equal(r.flags & (IG_ROW_VIEW | IG_ROW_SHADOW), 0);
        assert_true(one->to >= end && one->to < end + 256);
        assert_int_equal(one->to % 16, 0);
        if (one->rows == 1 && one->width == r.bytes)
            assert_int_equal(one->to % 256, ig_pack_pos(&m->p, &r) % 256);
        assert_int_equal(one->pitch, one->width);
        end = one->to + one->rows * one->pitch;
    }
    assert_int_equal(bytes, end);
}

/* The tied head is the embedding once more, under the name that comes first. */
static bool is_second(const struct model *m, const struct tensor *t)
{
    return m->a.tied && strstr(t->name, "embed_tokens");
}

void rank_check(struct model *m, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct ig_targets t = {0};
        ingot_error e = {0};
        if (ig_rank(&m->p, rank, ranks, &t, &e) != INGOT_OK)
            fail_msg("%s: rank %u of %u: %s", m->a.name, rank, ranks, e.message);
        uint64_t found = 0;
        for (unsigned i = 0; i < m->n; i++) {
            const uint32_t row =
                ig_pack_find(&m->p, m->tensors[i].name, strlen(m->tensors[i].name));
            if (is_second(m, &m->tensors[i])) continue;
            for (size_t k = 0; k < t.n; k++) found += t.list[k].row == row;
            check_tensor(m, &m->tensors[i], &t, rank, ranks);
        }
        assert_int_equal(found, t.n);
        check_places(m, &t);
        ig_targets_free(&t);
    }
}

void rank_expect_refusal(const struct model *m, uint32_t ranks, const char *text)
{
    for (uint32_t rank = 0; rank < ranks; rank += ranks - 1) {
        struct ig_targets t = {0};
        ingot_error e = {0};
        const ingot_status status = ig_rank(&m->p, rank, ranks, &t, &e);
        if (status != INGOT_ERR_UNSUPPORTED || !strstr(e.message, text) || strchr(e.message, '\n'))
            fail_msg("%s in %u: wanted \"%s\", got %d \"%s\"", m->a.name, ranks, text, status,
                     status ? e.message : "");
        assert_non_null(strstr(e.message, m->p.path));
        ig_targets_free(&t);
    }
}

void rank_check_arch(const struct ig_store *s, const struct arch *a, const struct wanted *w)
{
    struct model m;
    rank_make(&m, a, s, NULL);
    for (; w->ranks; w++) {
        if (w->refused)
            rank_expect_refusal(&m, w->ranks, w->refused);
        else
            rank_check(&m, w->ranks);
    }
    ig_pack_close(&m.p);
}
