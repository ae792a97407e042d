/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of a hundred megabytes.  Nothing here looks at a clock: a reader that is not
 * linear, or whose memory has no bound, makes this program hang or fail. */
#include "tests/unit/st_make.h"

#include <malloc.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define MANY 1300000u

/* A file's first bytes while they are put together. */
struct start {
    char *s;
    size_t n;
};

static struct start begin(size_t cap)
{
    struct start f = {malloc(cap), 8};
    assert_non_null(f.s);
    f.s[f.n++] = '{';
    return f;
}

static void finish(struct start *f)
{
    f->s[f->n++] = '}';
    ig_put64(f->s, f->n - 8);
}

/* Decimal digits, since sprintf would take most of the run. */
static char *put_number(char *p, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n) *p++ = digits[--n];
    return p;
}

static char *put_text(char *p, const char *text)
{
    const size_t n = strlen(text);
    memcpy(p, text, n);
    return p + n;
}

static void entry(struct start *f, const char *prefix, uint64_t i, const char *type, uint64_t b,
                  uint64_t e)
{
    char *p = f->s + f->n;
    if (f->n > 9) *p++ = ',';
    *p++ = '"';
    p = put_number(put_text(p, prefix), i);
    p = put_number(put_text(put_text(p, "\":{"), type), b);
    *p++ = ',';
    p = put_text(put_number(p, e), "]}");
    f->n = (size_t)(p - f->s);
}
#define BYTE  "\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":["
#define SMALL "\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":["
#define LARGE "\"dtype\":\"F32\",\"shape\":[200,200],\"data_offsets\":["

static ingot_status read_start(const struct start *f, uint64_t data, uint64_t cap, struct ig_st *st,
                               ingot_error *e)
{
    return read_file_as(f->s, f->n, f->n + data, cap, st, e);
}

static void check_many(const struct ig_st *st)
{
    assert_int_equal(st->count, MANY);
    for (size_t i = 0; i < MANY; i++)
        if (st->tensors[i].begin != i || st->tensors[i].end != i + 1 || st->tensors[i].rank != 1)
            fail_msg("tensor %zu", i);
}

/* Heap in use, where the allocator is glibc's own. */
static size_t heap(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void test_A08_a_1300000_tensors(void **state)
{
    struct ig_st st;
    ingot_error e;
    struct start f = begin(MANY * 76);
    (void)state;
    for (uint64_t i = 0; i < MANY; i++) entry(&f, "m.", i, BYTE, i, i + 1);
    finish(&f);
    assert_true(f.n - 8 < IG_ST_MAX_HEADER);
    const size_t before = heap();
    assert_int_equal(read_start(&f, MANY, IG_ST_MAX_HEADER, &st, &e), INGOT_OK);
    if (!SANITIZED) assert_true(heap() - before < f.n + (size_t)MANY * 128);
    check_many(&st);
    ig_st_free(&st);
    free(f.s);
}

static void test_A08_b_longer_names_need_the_option(void **state)
{
    struct ig_st st;
    ingot_error e;
    char cap_text[64];
    struct start f = begin(MANY * 112);
    (void)state;
    /* in no useful order, so that it has to be sorted */
    for (uint64_t i = 0; i < MANY; i++) {
        const uint64_t at = i * 7919 % MANY;
        entry(&f, "model.layers.0.mlp.experts.weight.", i, BYTE, at, at + 1);
    }
    finish(&f);
    assert_in_range(f.n - 8, IG_ST_MAX_HEADER + 1, 140000000);
    snprintf(cap_text, sizeof cap_text, "header of %zu bytes is above the cap of 100000000",
             f.n - 8);
    assert_int_equal(read_start(&f, MANY, IG_ST_MAX_HEADER, &st, &e), INGOT_ERR_INPUT);
    assert_non_null(strstr(e.message, cap_text));
    assert_non_null(strstr(e.message, "--max-header"));
    assert_int_equal(read_start(&f, MANY, 140000000, &st, &e), INGOT_OK);
    check_many(&st);
    ig_st_free(&st);
    free(f.s);
}

/* One tensor and blanks up to n bytes of header. */
static ingot_status read_padded(size_t n, ingot_error *e)
{
    struct ig_st st;
    struct start f = begin(n + 8);
    entry(&f, "w", 0, BYTE, 0, 1);
    finish(&f);
    memset(f.s + f.n, ' ', n + 8 - f.n);
    f.n = n + 8;
    ig_put64(f.s, n);
    const ingot_status status = read_start(&f, 1, IG_ST_MAX_HEADER, &st, e);
    if (status == INGOT_OK) assert_int_equal(st.count, 1);
    if (status == INGOT_OK) ig_st_free(&st);
    free(f.s);
    return status;
}

static void test_A08_c_d_one_byte_around_the_cap(void **state)
{
    ingot_error e;
    (void)state;
    assert_int_equal(read_padded(100000000, &e), INGOT_OK);
    assert_int_equal(read_padded(100000001, &e), INGOT_ERR_INPUT);
    assert_non_null(strstr(e.message, "100000001 bytes is above the cap of 100000000"));
}

/* Every name at the same bytes, and data as long as the header. */
static void attack(unsigned names, const char *type, uint64_t end, bool long_data)
{
    struct ig_st st;
    ingot_error e;
    struct start f = begin(names * 90ul);
    for (unsigned i = 0; i < names; i++) entry(&f, "weight_", i, type, 0, end);
    finish(&f);
    assert_int_equal(read_start(&f, long_data ? f.n : end, IG_ST_MAX_HEADER, &st, &e),
                     INGOT_ERR_INPUT);
    assert_non_null(strstr(e.message, "overlap"));
    assert_non_null(strstr(e.message, "\"weight_0\""));
    free(f.s);
}

static void test_I_attack_2_a_million_names_of_the_same_bytes(void **state)
{
    (void)state;
    attack(1000000, SMALL, 16, true);
}

static void test_I_attack_3_names_of_the_same_large_tensor(void **state)
{
    (void)state;
    attack(100000, LARGE, 160000, false);
}

/* Zero-size tensors all sort at one place, by name alone. */
static void test_many_zero_sized_tensors(void **state)
{
    struct ig_st st;
    ingot_error e;
    struct start f = begin(200000 * 90ul);
    (void)state;
    for (uint64_t i = 200000; i > 0; i--)
        entry(&f, "", i, "\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[", 0, 0);
    finish(&f);
    assert_int_equal(read_start(&f, 0, IG_ST_MAX_HEADER, &st, &e), INGOT_OK);
    check_tensor(&st, 0, "1", IG_U8, 0, 0);
    check_tensor(&st, 1, "10", IG_U8, 0, 0);
    check_tensor(&st, 199999, "99999", IG_U8, 0, 0);
    ig_st_free(&st);
    free(f.s);
}

/* One shape of as many dimensions as a row can have, and one more. */
static void test_rank_is_limited(void **state)
{
    (void)state;
    for (unsigned rank = UINT16_MAX; rank <= UINT16_MAX + 1u; rank++) {
        struct ig_st st;
        ingot_error e;
        struct start f = begin(400000);
        f.n += (size_t)sprintf(f.s + f.n, "\"w\":{\"dtype\":\"U8\",\"shape\":[1");
        for (unsigned i = 1; i < rank; i++) f.n += (size_t)sprintf(f.s + f.n, ",1");
        f.n += (size_t)sprintf(f.s + f.n, "],\"data_offsets\":[0,1]}");
        finish(&f);
        const ingot_status status = read_start(&f, 1, IG_ST_MAX_HEADER, &st, &e);
        assert_int_equal(status, rank == UINT16_MAX ? INGOT_OK : INGOT_ERR_INPUT);
        if (status == INGOT_OK) assert_int_equal(st.tensors[0].rank, UINT16_MAX);
        if (status == INGOT_OK) ig_st_free(&st);
        free(f.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A08_a_1300000_tensors),
        cmocka_unit_test(test_A08_b_longer_names_need_the_option),
        cmocka_unit_test(test_A08_c_d_one_byte_around_the_cap),
        cmocka_unit_test(test_I_attack_2_a_million_names_of_the_same_bytes),
        cmocka_unit_test(test_I_attack_3_names_of_the_same_large_tensor),
        cmocka_unit_test(test_many_zero_sized_tensors),
        cmocka_unit_test(test_rank_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
