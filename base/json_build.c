/* SPDX-License-Identifier: Apache-2.0 */
/* From events to jansson values, with a stack of our own instead of recursion. */
#include "base/json_lex.h"

#include <stdlib.h>
#include <string.h>

struct text {
    char *s;
    size_t n, cap;
};

struct builder {
    struct ig_lex lx;
    json_t *root;
    json_t *stack[IG_LEX_DEPTH]; /* open containers, owned by their parents or by root */
    unsigned depth;
    struct text key, value; /* decoded; key waits for its value */
};

static bool decode(const struct ig_lex *lx, struct text *t)
{
    if (t->cap < lx->length + 1) {
        const size_t cap = lx->length + lx->length / 2 + 64;
        char *s = realloc(t->s, cap);
        if (!s) return false;
        t->s = s;
        t->cap = cap;
    }
    ig_lex_string(lx, t->s);
    t->n = lx->length;
    t->s[t->n] = '\0';
    return true;
}

/* int64 of the number given last, without wrapping. */
static bool as_int64(const struct ig_lex *lx, int64_t *out)
{
    const bool minus = lx->text[lx->at] == '-';
    int64_t v = 0;
    if (!lx->integer) return false;
    for (size_t i = lx->at + minus; i < lx->end; i++) {
        const int64_t digit = lx->text[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v)) return false;
        if (__builtin_add_overflow(v, minus ? -digit : digit, &v)) return false;
    }
    *out = v;
    return true;
}

static ingot_status make_number(const struct ig_lex *lx, json_t **out, ingot_error *e)
{
    int64_t v;
    if (as_int64(lx, &v)) {
        *out = json_integer(v);
        return *out ? INGOT_OK : ig_no_memory(e);
    }
    /* jansson reads a decimal point whatever the locale of the host program is. */
    json_error_t why;
    *out = json_loadb(lx->text + lx->at, lx->end - lx->at,
                      JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
    if (*out) return INGOT_OK;
    if (json_error_code(&why) == json_error_numeric_overflow)
        return ig_lex_fail(lx, lx->at, e,
                           "number out of range (expected a magnitude below 1.8e308)");
    return ig_no_memory(e);
}

static json_t *make_nonfinite(const struct ig_lex *lx)
{
    char mark[16] = {IG_NONFINITE_MARK};
    const size_t n = lx->end - lx->at; /* at most "-Infinity" */
    memcpy(mark + 1, lx->text + lx->at, n);
    return json_stringn_nocheck(mark, n + 1);
}

static ingot_status make(struct builder *b, enum ig_lex_event event, json_t **out, ingot_error *e)
{
    *out = NULL;
    switch (event) {
    case IG_LEX_OBJECT:
        *out = json_object();
        break;
    case IG_LEX_ARRAY:
        *out = json_array();
        break;
    case IG_LEX_STRING:
        if (decode(&b->lx, &b->value)) *out = json_stringn_nocheck(b->value.s, b->value.n);
        break;
    case IG_LEX_NUMBER:
        return make_number(&b->lx, out, e);
    case IG_LEX_NONFINITE:
        *out = make_nonfinite(&b->lx);
        break;
    case IG_LEX_TRUE:
        *out = json_true();
        break;
    case IG_LEX_FALSE:
        *out = json_false();
        break;
    default:
        *out = json_null();
        break;
    }
    return *out ? INGOT_OK : ig_no_memory(e);
}

/* Hand v to the innermost open container; the stack borrows it from there. */
static ingot_status attach(struct builder *b, json_t *v, ingot_error *e)
{
    if (!b->depth) {
        b->root = v;
        return INGOT_OK;
    }
    json_t *parent = b->stack[b->depth - 1];
    const int rc = json_is_array(parent)
                       ? json_array_append_new(parent, v)
                       : json_object_setn_new_nocheck(parent, b->key.s, b->key.n, v);
    return rc == 0 ? INGOT_OK : ig_no_memory(e);
}

static ingot_status take_key(struct builder *b, ingot_error *e)
{
    if (!decode(&b->lx, &b->key)) return ig_no_memory(e);
    if (b->lx.flags & IG_JSON_LAST_WINS) return INGOT_OK;
    if (!json_object_getn(b->stack[b->depth - 1], b->key.s, b->key.n)) return INGOT_OK;
    return ig_lex_fail(&b->lx, b->lx.at, e, "duplicate key \"%s\"", ig_esc(b->key.s, b->key.n).s);
}

static ingot_status build(struct builder *b, ingot_error *e)
{
    for (;;) {
        enum ig_lex_event event;
        json_t *v;
        return_if_error(ig_lex_next(&b->lx, &event, e));
        switch (event) {
        case IG_LEX_END:
            return INGOT_OK;
        case IG_LEX_KEY:
            return_if_error(take_key(b, e));
            break;
        case IG_LEX_OBJECT_END:
        case IG_LEX_ARRAY_END:
            b->depth--;
            break;
        default:
            return_if_error(make(b, event, &v, e));
            return_if_error(attach(b, v, e));
            if (event == IG_LEX_OBJECT || event == IG_LEX_ARRAY) b->stack[b->depth++] = v;
        }
    }
}

ingot_status ig_json_load(const char *text, size_t n, const char *path, unsigned flags,
                          json_t **out, ingot_error *e)
{
    struct builder b = {.root = NULL};
    ig_lex_init(&b.lx, text, n, path, 0, flags);
    const ingot_status status = build(&b, e);
    free(b.key.s);
    free(b.value.s);
    if (status != INGOT_OK) {
        json_decref(b.root);
        b.root = NULL;
    }
    *out = b.root;
    return status;
}
