/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of names, dtypes and shapes, for the tests of scale links. */
#ifndef INGOT_TEST_SCALES_FIXTURE_H
#define INGOT_TEST_SCALES_FIXTURE_H

#include "convert/scales_private.h"

#define FX_ROWS 64
enum { FX_CONFIG = 7, FX_HF = 8 }; /* blob indexes */

struct fx {
    struct ig_row rows[FX_ROWS];
    uint64_t shapes[FX_ROWS][6];
    uint32_t nrows;
    json_t *config, *hf;
    struct ig_scales out;
};

/* What a link of an object must say. */
struct fx_want {
    const char *subject; /* a row's name, or a module's when module is true */
    bool module;
    uint32_t role, stage, op, gran;
    uint64_t rows, columns;
    uint32_t logical, encoding;
    uint32_t blob;
    const char *pointer; /* NULL: none */
};

/* shape: "" for a scalar, "8,4" for [8,4]. name must outlive the fixture. */
void fx_add(struct fx *f, const char *name, uint32_t dtype, const char *shape);
void fx_find(struct fx *f, const char *config, const char *hf); /* JSON texts, or NULL */
void fx_free(struct fx *f);
/* The nth link of an object, or NULL. */
const struct ig_link *fx_link(const struct fx *f, const char *object, unsigned nth);
void fx_expect(const struct fx *f, const char *object, unsigned nth, const struct fx_want *want);
unsigned fx_count(const struct fx *f, const char *text); /* findings that hold the text */
void fx_clean(const struct fx *f); /* fails, printing them, when there are findings */

#endif
