/* SPDX-License-Identifier: Apache-2.0 */
/* One entry of a header: {"dtype":...,"shape":[...],"data_offsets":[begin,end]}. */
#include "convert/st_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };

ingot_status ig_st_fail(const struct ig_st_reader *r, const struct ig_st_tensor *t, size_t at,
                        ingot_error *e, const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    ig_lex_fail(&r->lx, at, e, "tensor \"%s\": %s", ig_esc(t->name, t->name_len).s, what);
    ig_at(e, r->lx.path, t->name, t->name_len);
    return INGOT_ERR_INPUT;
}

static ingot_status read_dtype(struct ig_st_reader *r, struct ig_st_tensor *t, ingot_error *e)
{
    enum ig_lex_event event;
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_STRING)
        return ig_st_fail(r, t, r->lx.at, e, "dtype is not a string (expected one like \"F32\")");
    const char *name = ig_st_string(r, &r->scratch);
    if (!name) return ig_no_memory(e);
    const int dtype = ig_dtype_find(name, r->lx.length);
    if (dtype < 0)
        return ig_st_fail(r, t, r->lx.at, e, "unknown dtype \"%s\" (expected one like \"F32\")",
                          ig_esc(name, r->lx.length).s);
    t->dtype = (uint16_t)dtype;
    return INGOT_OK;
}

static ingot_status push_dim(struct ig_st_reader *r, uint64_t dim, ingot_error *e)
{
    if (r->rank == r->dims_cap) {
        const size_t cap = r->dims_cap ? r->dims_cap * 2 : 16;
        uint64_t *dims = realloc(r->dims, cap * sizeof *dims);
        if (!dims) return ig_no_memory(e);
        r->dims = dims;
        r->dims_cap = cap;
    }
    r->dims[r->rank++] = dim;
    return INGOT_OK;
}

static ingot_status read_shape(struct ig_st_reader *r, struct ig_st_tensor *t, ingot_error *e)
{
    enum ig_lex_event event;
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_ARRAY)
        return ig_st_fail(r, t, r->lx.at, e, "shape is not an array (expected one of integers)");
    for (;;) {
        uint64_t dim;
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event == IG_LEX_ARRAY_END) return INGOT_OK;
        if (event != IG_LEX_NUMBER || !ig_lex_u64(&r->lx, &dim))
            return ig_st_fail(r, t, r->lx.at, e,
                              "shape[%zu] is no dimension (expected an integer of 0 to 2^64-1)",
                              r->rank);
        if (r->rank == UINT16_MAX)
            return ig_st_fail(r, t, r->lx.at, e, "shape of too many dimensions (expected %u)",
                              UINT16_MAX);
        return_if_error(push_dim(r, dim, e));
    }
}

static ingot_status read_offsets(struct ig_st_reader *r, struct ig_st_tensor *t, ingot_error *e)
{
    enum ig_lex_event event;
    uint64_t *const ends[] = {&t->begin, &t->end};
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_ARRAY)
        return ig_st_fail(r, t, r->lx.at, e, "data_offsets is no array (expected [begin, end])");
    for (size_t i = 0; i < 2; i++) {
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event != IG_LEX_NUMBER || !ig_lex_u64(&r->lx, ends[i]))
            return ig_st_fail(
                r, t, r->lx.at, e,
                "data_offsets[%zu] is no offset (expected two integers of 0 to 2^64-1)", i);
    }
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_ARRAY_END)
        return ig_st_fail(r, t, r->lx.at, e, "data_offsets has a third value (expected two)");
    return INGOT_OK;
}

static bool is_key(const struct ig_lex *lx, const char *key, const char *want)
{
    return lx->length == strlen(want) && memcmp(key, want, lx->length) == 0;
}

/* The key at hand and its value.  What hides inside the value of an unknown key is
 * checked for syntax and depth alone: nothing reads it. */
static ingot_status read_member(struct ig_st_reader *r, struct ig_st_tensor *t, unsigned *seen,
                                ingot_error *e)
{
    static const struct {
        const char *key;
        unsigned bit;
        ingot_status (*read)(struct ig_st_reader *, struct ig_st_tensor *, ingot_error *);
    } known[] = {{"dtype", DTYPE, read_dtype},
                 {"shape", SHAPE, read_shape},
                 {"data_offsets", OFFSETS, read_offsets}};
    const char *key = ig_st_string(r, &r->scratch);
    if (!key) return ig_no_memory(e);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!is_key(&r->lx, key, known[i].key)) continue;
        if (*seen & known[i].bit)
            return ig_st_fail(r, t, r->lx.at, e, "duplicate key \"%s\"", known[i].key);
        *seen |= known[i].bit;
        return known[i].read(r, t, e);
    }
    const ingot_status status = ig_st_keys_add(&r->inner, &r->lx, key, r->lx.length, e);
    if (status == INGOT_ERR_INPUT) ig_at(e, r->lx.path, t->name, t->name_len);
    return status == INGOT_OK ? ig_lex_skip(&r->lx, e) : status;
}

/* "[2,3]", cut with "..." where it would not fit. */
static void shape_text(char *out, size_t cap, const uint64_t *dims, size_t rank)
{
    size_t n = (size_t)snprintf(out, cap, "[");
    for (size_t i = 0; i < rank; i++) {
        if (n + 28 > cap) {
            n += (size_t)snprintf(out + n, cap - n, ",...");
            break;
        }
        n +=
            (size_t)snprintf(out + n, cap - n, "%s%llu", i ? "," : "", (unsigned long long)dims[i]);
    }
    snprintf(out + n, cap - n, "]");
}

/* Bits that dtype and shape take: from left to right in elements, then in bits, as
 * the reference multiplies, so that both refuse the same overflows. */
static bool total_bits(const struct ig_st_reader *r, const struct ig_st_tensor *t, uint64_t *bits)
{
    *bits = 1;
    for (size_t i = 0; i < r->rank; i++)
        if (__builtin_mul_overflow(*bits, r->dims[i], bits)) return false;
    return !__builtin_mul_overflow(*bits, (uint64_t)ig_dtypes[t->dtype].bits, bits);
}

static ingot_status check_size(const struct ig_st_reader *r, const struct ig_st_tensor *t,
                               size_t at, ingot_error *e)
{
    uint64_t bits;
    const bool fits = total_bits(r, t, &bits);
    if (fits && bits % 8 == 0 && t->begin <= t->end && t->end - t->begin == bits / 8)
        return INGOT_OK;

    const char *dtype = ig_dtypes[t->dtype].name;
    const unsigned long long begin = t->begin, end = t->end;
    char shape[128];
    shape_text(shape, sizeof shape, r->dims, r->rank);
    if (!fits) return ig_st_fail(r, t, at, e, "size of %s %s overflows 64 bits", dtype, shape);
    if (bits % 8)
        return ig_st_fail(r, t, at, e, "%s %s takes %llu bits (expected whole bytes)", dtype, shape,
                          (unsigned long long)bits);
    if (begin > end)
        return ig_st_fail(r, t, at, e, "data_offsets [%llu,%llu] begin after their end", begin,
                          end);
    return ig_st_fail(r, t, at, e, "data_offsets [%llu,%llu] hold %llu bytes, %s %s takes %llu",
                      begin, end, end - begin, dtype, shape, (unsigned long long)(bits / 8));
}

static ingot_status append(struct ig_st_reader *r, struct ig_st_tensor *t, ingot_error *e)
{
    struct ig_st *out = r->out;
    if (out->count == r->cap) {
        /* Half more, not double: the unused rest counts against 128 bytes a tensor. */
        const size_t cap = r->cap + r->cap / 2 + 16;
        struct ig_st_tensor *grown = realloc(out->tensors, cap * sizeof *grown);
        if (!grown) return ig_no_memory(e);
        out->tensors = grown;
        r->cap = cap;
    }
    uint64_t *shape = ig_st_alloc(&r->names, r->rank * sizeof *shape);
    if (!shape) return ig_no_memory(e);
    if (r->rank) memcpy(shape, r->dims, r->rank * sizeof *shape);
    t->shape = shape;
    t->rank = (uint16_t)r->rank;
    out->tensors[out->count++] = *t;
    return INGOT_OK;
}

ingot_status ig_st_read_entry(struct ig_st_reader *r, const char *name, size_t len, ingot_error *e)
{
    static const char *const parts[] = {"dtype", "shape", "data_offsets"};
    struct ig_st_tensor t = {.name = name, .name_len = (uint32_t)len};
    const size_t at = r->lx.at;
    unsigned seen = 0;
    enum ig_lex_event event;
    r->rank = 0;
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_OBJECT)
        return ig_st_fail(r, &t, r->lx.at, e,
                          "no entry (expected an object with dtype, shape and data_offsets)");
    for (;;) {
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event == IG_LEX_OBJECT_END) break;
        return_if_error(read_member(r, &t, &seen, e));
    }
    ig_st_keys_clear(&r->inner);
    for (unsigned i = 0; i < 3; i++)
        if (!(seen >> i & 1)) return ig_st_fail(r, &t, at, e, "no %s in its entry", parts[i]);
    return_if_error(check_size(r, &t, at, e));
    return append(r, &t, e);
}
