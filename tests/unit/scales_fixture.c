/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/scales_fixture.h"

#include <stdlib.h>
#include <string.h>

void fx_add(struct fx *f, const char *name, uint32_t dtype, const char *shape)
{
    const uint32_t i = f->nrows++;
    struct ig_row *r = &f->rows[i];

    assert_true(f->nrows <= FX_ROWS);
    *r = (struct ig_row){.name = name, .name_len = (uint32_t)strlen(name), .dtype = dtype};
    r->bytes = 1;
    while (*shape) {
        char *end;
        f->shapes[i][r->rank] = strtoull(shape, &end, 10);
        if (f->shapes[i][r->rank++] == 0) r->bytes = 0;
        shape = *end ? end + 1 : end;
    }
    r->shape = f->shapes[i];
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct ig_row *)x)->name, ((const struct ig_row *)y)->name);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *v = text ? json_loads(text, JSON_DECODE_ANY, &error) : NULL;

    if (text && !v) fail_msg("%s: %s", text, error.text);
    return v;
}

void fx_find(struct fx *f, const char *config, const char *hf)
{
    ingot_error e = {0};

    qsort(f->rows, f->nrows, sizeof(f->rows[0]), by_name); /* shapes stay where they are */
    f->config = parse(config);
    f->hf = parse(hf);
    const struct ig_scales_in in = {.rows = f->rows,
                                    .nrows = f->nrows,
                                    .config = f->config,
                                    .hf_quant = f->hf,
                                    .config_blob = f->config ? FX_CONFIG : IG_NONE,
                                    .hf_quant_blob = f->hf ? FX_HF : IG_NONE};
    assert_int_equal(ig_scales_find(&in, &f->out, &e), INGOT_OK);
}

void fx_free(struct fx *f)
{
    ig_scales_free(&f->out);
    json_decref(f->config);
    json_decref(f->hf);
    memset(f, 0, sizeof(*f));
}

const struct ig_link *fx_link(const struct fx *f, const char *object, unsigned nth)
{
    for (uint32_t i = 0; i < f->out.nlinks; i++) {
        const struct ig_link *l = &f->out.links[i];
        if (!strcmp(f->rows[l->object].name, object) && nth-- == 0) return l;
    }
    return NULL;
}

void fx_expect(const struct fx *f, const char *object, unsigned nth, const struct fx_want *want)
{
    const struct ig_link *l = fx_link(f, object, nth);

    if (!l) {
        fail_msg("no link %u to %s", nth, object);
        return;
    }
    if (want->module) {
        assert_int_equal(l->subject, IG_NONE);
        assert_string_equal(l->module, want->subject);
        assert_int_equal(l->module_len, strlen(want->subject));
    } else {
        assert_true(l->subject < f->nrows);
        assert_string_equal(f->rows[l->subject].name, want->subject);
        assert_int_equal(l->module_len, 0);
    }
    assert_int_equal(l->role, want->role);
    assert_int_equal(l->stage, want->stage);
    assert_int_equal(l->op, want->op);
    assert_int_equal(l->gran, want->gran);
    assert_int_equal(l->block[0], want->rows);
    assert_int_equal(l->block[1], want->columns);
    assert_int_equal(l->logical, want->logical);
    assert_int_equal(l->packing, want->logical == IG_F4 ? IG_PACK_LOW_FIRST : IG_PACK_NONE);
    assert_int_equal(l->encoding, want->encoding);
    assert_int_equal(l->blob, want->pointer ? want->blob : IG_NONE);
    assert_int_equal(l->pointer_len, want->pointer ? strlen(want->pointer) : 0);
    if (want->pointer) assert_string_equal(l->pointer, want->pointer);
}

unsigned fx_count(const struct fx *f, const char *text)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < f->out.nfindings; i++)
        n += strstr(f->out.findings[i].text, text) != NULL;
    return n;
}

void fx_clean(const struct fx *f)
{
    for (uint32_t i = 0; i < f->out.nfindings; i++) {
        print_error("finding: %s\n", f->out.findings[i].text);
    }
    assert_int_equal(f->out.nfindings, 0);
}
