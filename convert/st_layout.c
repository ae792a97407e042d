/* SPDX-License-Identifier: Apache-2.0 */
/* Do the tensors cover the data section, each byte once?  One sort, one pass. */
#include "convert/st_private.h"

#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
    const struct ig_st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return ig_bytes_cmp(x->name, x->name_len, y->name, y->name_len);
}

/* Most writers list tensors in the order of their data: then sorting costs one look. */
static void sort(struct ig_st *st)
{
    for (size_t i = 1; i < st->count; i++) {
        if (by_place(&st->tensors[i - 1], &st->tensors[i]) < 0) continue;
        qsort(st->tensors, st->count, sizeof st->tensors[0], by_place);
        return;
    }
}

/* Complete a failure about tensor t with where its bytes should start in the file. */
static ingot_status at_tensor(const struct ig_st *st, const struct ig_st_tensor *t,
                              const char *path, ingot_error *e)
{
    uint64_t offset;
    ig_at(e, path, t->name, t->name_len);
    if (!__builtin_add_overflow(8 + st->header_len, t->begin, &offset))
        ig_at_offset(e, path, offset);
    return INGOT_ERR_INPUT;
}

static ingot_status overlap(const struct ig_st *st, const struct ig_st_tensor *a,
                            const struct ig_st_tensor *b, const char *path, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: tensors \"%s\" (bytes %llu to %llu of the data) and \"%s\" (bytes %llu to %llu) "
            "overlap",
            ig_esc(path, strlen(path)).s, ig_esc(a->name, a->name_len).s,
            (unsigned long long)a->begin, (unsigned long long)a->end,
            ig_esc(b->name, b->name_len).s, (unsigned long long)b->begin,
            (unsigned long long)b->end);
    return at_tensor(st, b, path, e);
}

static ingot_status hole(const struct ig_st *st, uint64_t from, const struct ig_st_tensor *t,
                         const char *path, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: no tensor covers bytes %llu to %llu of the data, before tensor \"%s\" (expected "
            "tensors without a hole between them)",
            ig_esc(path, strlen(path)).s, (unsigned long long)from, (unsigned long long)t->begin,
            ig_esc(t->name, t->name_len).s);
    return at_tensor(st, t, path, e);
}

static ingot_status too_short(const struct ig_st *st, uint64_t covered, uint64_t have,
                              const char *path, ingot_error *e)
{
    const struct ig_st_tensor *t = st->tensors;
    char wanted[32] = "more than 2^64-1";
    uint64_t size;
    while (t->end <= have) t++;
    if (!__builtin_add_overflow(8 + st->header_len, covered, &size))
        snprintf(wanted, sizeof wanted, "%llu", (unsigned long long)size);
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: the file has %llu bytes, its header promises %s; first tensor affected: \"%s\" "
            "(bytes %llu to %llu of the data, which has %llu)",
            ig_esc(path, strlen(path)).s, (unsigned long long)st->file_size, wanted,
            ig_esc(t->name, t->name_len).s, (unsigned long long)t->begin,
            (unsigned long long)t->end, (unsigned long long)have);
    return at_tensor(st, t, path, e);
}

static ingot_status too_long(const struct ig_st *st, uint64_t covered, uint64_t have,
                             const char *path, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: %llu bytes beyond the last tensor (the file has %llu, its header accounts for "
            "%llu)",
            ig_esc(path, strlen(path)).s, (unsigned long long)(have - covered),
            (unsigned long long)st->file_size, (unsigned long long)(8 + st->header_len + covered));
    return ig_at_offset(e, path, 8 + st->header_len + covered);
}

ingot_status ig_st_check_layout(struct ig_st *st, const char *path, ingot_error *e)
{
    const uint64_t have = st->file_size - 8 - st->header_len;
    const struct ig_st_tensor *last = NULL;
    uint64_t covered = 0;
    sort(st);
    for (size_t i = 0; i < st->count; i++) {
        const struct ig_st_tensor *t = &st->tensors[i];
        if (t->begin > covered) return hole(st, covered, t, path, e);
        /* A tensor without bytes stands between two others, never inside one: as the reference. */
        if (t->begin < covered) return overlap(st, last, t, path, e);
        if (t->begin < t->end) last = t;
        covered = t->end;
    }
    if (covered > have) return too_short(st, covered, have, path, e);
    if (covered < have) return too_long(st, covered, have, path, e);
    return INGOT_OK;
}
