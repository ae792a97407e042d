/* SPDX-License-Identifier: Apache-2.0 */
/* What a JSON value says once it is read, and the one text it is written as. */
#include "base/json_lex.h"

#include <stdlib.h>
#include <string.h>

bool ig_json_is_nonfinite(const json_t *v)
{
    return json_is_string(v) && json_string_length(v) > 0 &&
           json_string_value(v)[0] == IG_NONFINITE_MARK;
}

struct writer {
    char *s;
    size_t n, cap;
    struct frame {
        const json_t *v;
        size_t i, count;
        void **members; /* of an object: its iterators in byte order of their keys */
    } stack[IG_LEX_DEPTH];
    unsigned depth;
};

static ingot_status put(struct writer *w, const char *s, size_t n, ingot_error *e)
{
    if (!w->s || w->cap - w->n < n) {
        const size_t cap = (w->cap + n) * 2 + 64;
        char *grown = realloc(w->s, cap);
        if (!grown) return ig_no_memory(e);
        w->s = grown;
        w->cap = cap;
    }
    memcpy(w->s + w->n, s, n);
    w->n += n;
    return INGOT_OK;
}

static size_t escape(char out[7], uint8_t b)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = b ? strchr(from, b) : NULL;
    return (size_t)(found ? snprintf(out, 7, "\\%c", to[found - from])
                          : snprintf(out, 7, "\\u%04x", b));
}

static ingot_status put_string(struct writer *w, const char *s, size_t n, ingot_error *e)
{
    size_t done = 0;
    if (!ig_utf8_valid(s, n))
        return ig_fail(e, INGOT_ERR_INPUT, "JSON cannot say \"%s\" (expected valid UTF-8)",
                       ig_esc(s, n).s);
    return_if_error(put(w, "\"", 1, e));
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)s[i];
        char out[7];
        if (b >= 0x20 && b != '"' && b != '\\') continue;
        return_if_error(put(w, s + done, i - done, e));
        return_if_error(put(w, out, escape(out, b), e));
        done = i + 1;
    }
    return_if_error(put(w, s + done, n - done, e));
    return put(w, "\"", 1, e);
}

/* The fewest of 15 to 17 digits that read back as the same double. */
static ingot_status put_real(struct writer *w, const json_t *v, ingot_error *e)
{
    char out[64];
    size_t n = 0;
    for (unsigned digits = 15; digits <= 17; digits++) {
        n = json_dumpb(v, out, sizeof out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        if (!n || n > sizeof out) return ig_no_memory(e);
        json_t *back = json_loadb(out, n, JSON_DECODE_ANY, NULL);
        const bool same = back && json_real_value(back) == json_real_value(v);
        json_decref(back);
        if (same) break;
    }
    return put(w, out, n, e);
}

static int by_key(const void *a, const void *b)
{
    void *x = *(void *const *)a, *y = *(void *const *)b;
    const size_t nx = json_object_iter_key_len(x), ny = json_object_iter_key_len(y);
    const int c = memcmp(json_object_iter_key(x), json_object_iter_key(y), nx < ny ? nx : ny);
    return c ? c : (nx > ny) - (nx < ny);
}

static ingot_status open_container(struct writer *w, const json_t *v, ingot_error *e)
{
    if (w->depth == IG_LEX_DEPTH)
        return ig_fail(e, INGOT_ERR_INPUT, "JSON nested too deep (expected at most %u levels)",
                       IG_LEX_DEPTH);
    struct frame *f = &w->stack[w->depth];
    *f = (struct frame){.v = v, .count = json_array_size(v)};
    if (json_is_object(v)) {
        json_t *object = (json_t *)v; /* jansson's iterators want it so; nothing is changed */
        f->members = ig_array(json_object_size(v), sizeof *f->members);
        if (!f->members) return ig_no_memory(e);
        for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it))
            f->members[f->count++] = it;
        qsort(f->members, f->count, sizeof *f->members, by_key);
    }
    w->depth++;
    return put(w, f->members ? "{" : "[", 1, e);
}

static ingot_status put_value(struct writer *w, const json_t *v, ingot_error *e)
{
    char out[32];
    switch (json_typeof(v)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return open_container(w, v, e);
    case JSON_STRING:
        return put_string(w, json_string_value(v), json_string_length(v), e);
    case JSON_INTEGER:
        return put(w, out,
                   (size_t)snprintf(out, sizeof out, "%lld", (long long)json_integer_value(v)), e);
    case JSON_REAL:
        return put_real(w, v, e);
    case JSON_TRUE:
        return put(w, "true", 4, e);
    case JSON_FALSE:
        return put(w, "false", 5, e);
    default:
        return put(w, "null", 4, e);
    }
}

/* One more member of the innermost container, or its end. */
static ingot_status step(struct writer *w, ingot_error *e)
{
    struct frame *f = &w->stack[w->depth - 1];
    if (f->i == f->count) {
        const char *closing = f->members ? "}" : "]";
        free(f->members);
        w->depth--;
        return put(w, closing, 1, e);
    }
    const size_t i = f->i++;
    if (i) return_if_error(put(w, ",", 1, e));
    if (!f->members) return put_value(w, json_array_get(f->v, i), e);
    void *it = f->members[i];
    return_if_error(put_string(w, json_object_iter_key(it), json_object_iter_key_len(it), e));
    return_if_error(put(w, ":", 1, e));
    return put_value(w, json_object_iter_value(it), e);
}

ingot_status ig_json_dump(const json_t *v, char **text, size_t *n, ingot_error *e)
{
    struct writer w = {.s = NULL};
    ingot_status status = put_value(&w, v, e);
    while (status == INGOT_OK && w.depth) status = step(&w, e);
    if (status == INGOT_OK) status = put(&w, "", 1, e); /* the NUL, not counted */
    while (w.depth) free(w.stack[--w.depth].members);
    if (status != INGOT_OK) {
        free(w.s);
        *text = NULL;
        return status;
    }
    *text = w.s;
    *n = w.n - 1;
    return INGOT_OK;
}

json_t *ig_digest_json(const char *prefix, const uint8_t digest[IG_HASH])
{
    char hex[2 * IG_HASH + 1];
    ig_hex(hex, digest, IG_HASH);
    return json_sprintf("%s%s", prefix, hex);
}

json_t *ig_text_json(const char *text)
{
    const size_t n = strlen(text);
    return json_string(ig_utf8_valid(text, n) ? text : ig_esc(text, n).s);
}
