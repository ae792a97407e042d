/* SPDX-License-Identifier: Apache-2.0 */
/* Small safetensors files for tests: header text and zero data, in memory or as a file. */
#ifndef INGOT_TEST_ST_MAKE_H
#define INGOT_TEST_ST_MAKE_H

#include "convert/convert.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MODEL_PATH "dir/model.safetensors"

/* One header entry, keys in the reference's order. */
#define T(name, dtype, shape, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

/* A file of these first bytes, made `size` long with zeros. */
static inline int make_file(const void *first, size_t n, uint64_t size)
{
    const int fd = memfd_create("model", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, first, n), (ssize_t)n);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

/* Read a file; its error, if any, must be one good line about bad input. */
static inline ingot_status read_file_as(const void *first, size_t n, uint64_t size, uint64_t cap,
                                        struct ig_st *st, ingot_error *e)
{
    const int fd = make_file(first, n, size);
    memset(e, 0, sizeof *e);
    const ingot_status status = ig_st_read(fd, MODEL_PATH, size, cap, st, e);
    close(fd);
    if (status == INGOT_OK) return status;
    assert_int_equal(status, INGOT_ERR_INPUT);
    assert_int_equal(e->status, status);
    assert_string_equal(e->file, MODEL_PATH);
    assert_int_equal(strncmp(e->message, MODEL_PATH ":", sizeof MODEL_PATH), 0);
    assert_null(strchr(e->message, '\n'));
    assert_null(st->header);
    assert_null(st->tensors);
    return status;
}

/* 8 bytes of length, the header's bytes. */
static inline char *make_start(uint64_t length, const char *header, size_t n)
{
    char *start = malloc(8 + n);
    assert_non_null(start);
    ig_put64(start, length);
    memcpy(start + 8, header, n);
    return start;
}

/* ST(length | header | `data` zero bytes). */
static inline ingot_status read_st_n(uint64_t length, const char *header, size_t n, uint64_t data,
                                     struct ig_st *st, ingot_error *e)
{
    char *start = make_start(length, header, n);
    const ingot_status status = read_file_as(start, n + 8, n + 8 + data, IG_ST_MAX_HEADER, st, e);
    free(start);
    return status;
}

static inline void accept_st(const char *header, uint64_t data, struct ig_st *st)
{
    ingot_error e;
    const size_t n = strlen(header);
    if (read_st_n(n, header, n, data, st, &e) != INGOT_OK) fail_msg("%s: %s", header, e.message);
    assert_int_equal(st->header_len, n);
    assert_int_equal(st->file_size, 8 + n + data);
    assert_memory_equal(st->header + 8, header, n);
}

/* Refused with every one of the texts (ended by NULL) in its message. */
static inline ingot_error reject_st_n(const char *header, size_t n, uint64_t data, ...)
{
    struct ig_st st;
    ingot_error e;
    if (read_st_n(n, header, n, data, &st, &e) == INGOT_OK) fail_msg("accepted: %s", header);
    va_list texts;
    va_start(texts, data);
    for (const char *t; (t = va_arg(texts, const char *));)
        if (!strstr(e.message, t)) fail_msg("\"%s\" is not in: %s", t, e.message);
    va_end(texts);
    return e;
}
#define reject_st(header, data, ...) reject_st_n(header, strlen(header), data, __VA_ARGS__, NULL)

static inline void reject_bytes(const void *first, size_t n, uint64_t size, const char *text)
{
    struct ig_st st;
    ingot_error e;
    if (read_file_as(first, n, size, IG_ST_MAX_HEADER, &st, &e) == INGOT_OK) fail_msg("accepted");
    if (!strstr(e.message, text)) fail_msg("\"%s\" is not in: %s", text, e.message);
}

static inline void check_tensor(const struct ig_st *st, size_t i, const char *name, int dtype,
                                uint64_t begin, uint64_t end)
{
    assert_true(i < st->count);
    const struct ig_st_tensor *t = &st->tensors[i];
    assert_int_equal(t->name_len, strlen(name));
    assert_memory_equal(t->name, name, t->name_len);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->begin, begin);
    assert_int_equal(t->end, end);
}

#endif
