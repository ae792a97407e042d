/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict JSON lexer and grammar that every reader stands on: a pull parser
 * that gives one event a call, copies nothing, allocates nothing and keeps its
 * nesting in 128 bits instead of on the C stack.  RFC 8259, with these rules on
 * top: strings are valid UTF-8 and hold no lone surrogate; nesting is at most
 * IG_LEX_DEPTH deep.
 */
#ifndef INGOT_JSON_LEX_H
#define INGOT_JSON_LEX_H

#include "base/base.h"

#define IG_LEX_DEPTH 128u

enum ig_lex_event {
    IG_LEX_END, /* the text is over; given again and again */
    IG_LEX_OBJECT,
    IG_LEX_OBJECT_END,
    IG_LEX_ARRAY,
    IG_LEX_ARRAY_END,
    IG_LEX_KEY, /* a member's name; its value is the next event */
    IG_LEX_STRING,
    IG_LEX_NUMBER,
    IG_LEX_TRUE,
    IG_LEX_FALSE,
    IG_LEX_NULL,
    IG_LEX_NONFINITE /* NaN, Infinity, -Infinity; only under IG_JSON_NONFINITE */
};

struct ig_lex {
    const char *text;
    size_t n;
    const char *path;
    uint64_t base;  /* where text starts inside the file; not 0: errors speak of offsets */
    unsigned flags; /* IG_JSON_... of base.h */
    size_t pos;     /* next byte to read */
    size_t start;   /* first byte after a byte-order mark */
    /* The event given last: its bytes [at, end), for strings with their quotes. */
    size_t at, end;
    size_t length; /* a string's bytes once decoded */
    bool escaped;  /* a string that has escapes; without, it is text[at + 1, end - 1) */
    bool integer;  /* a number without fraction and exponent */
    unsigned need; /* what the grammar wants next */
    unsigned depth;
    uint64_t objects[IG_LEX_DEPTH / 64]; /* bit d: the container at depth d is an object */
};

void ig_lex_init(struct ig_lex *lx, const char *text, size_t n, const char *path, uint64_t base,
                 unsigned flags);
ingot_status ig_lex_next(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e);
/* Pass over the value that comes next, whatever is inside. */
ingot_status ig_lex_skip(struct ig_lex *lx, ingot_error *e);
/* Decode the string or key given last into lx->length bytes at dst; no NUL is added. */
void ig_lex_string(const struct ig_lex *lx, char *dst);
/* The number given last, if it is an integer of 0 to 2^64-1 without a sign. */
bool ig_lex_u64(const struct ig_lex *lx, uint64_t *value);
/* "path:line:column: ..." (or "path: offset N: ..." when base is set) for the byte at `at`. */
ingot_status ig_lex_fail(const struct ig_lex *lx, size_t at, ingot_error *e, const char *format,
                         ...) IG_PRINTF(4, 5);

/* json_token.c, below the grammar: read the token at pos into at, end and the rest. */
ingot_status ig_lex_scan_string(struct ig_lex *lx, ingot_error *e);
ingot_status ig_lex_scan_scalar(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e);
/* Fail with what stands at pos and what should have. */
ingot_status ig_lex_unexpected(const struct ig_lex *lx, ingot_error *e, const char *expected);

/* A non-finite number inside a jansson value: a string that starts with a byte that no
 * valid text can contain. */
#define IG_NONFINITE_MARK '\xff'

#endif
