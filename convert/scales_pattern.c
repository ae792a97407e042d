/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of module names in configs.  They come from outside, so no backtracking
 * engine sees them: a pattern is a row of at most 256 atoms, each a set of bytes with
 * a quantifier, and all states advance together.  Groups and alternation are not read.
 */
#include "convert/scales_private.h"

#include <string.h>

#define MAX_ATOMS 256

struct atom {
    uint64_t set[4]; /* bytes that match */
    bool optional, repeats;
};
struct pattern {
    struct atom atoms[MAX_ATOMS];
    size_t n;
    bool to_end; /* must match up to the end of the text */
};

static void add(struct atom *a, unsigned first, unsigned last)
{
    for (unsigned c = first; c <= last; c++) a->set[c >> 6] |= UINT64_C(1) << (c & 63);
}

static bool has(const struct atom *a, unsigned char c)
{
    return a->set[c >> 6] >> (c & 63) & 1;
}

/* What may follow a backslash; false for what is not read. */
static bool escape(struct atom *a, unsigned char c)
{
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

    if (c == 'd' || c == 'w') add(a, '0', '9');
    if (c == 'w') {
        add(a, 'a', 'z');
        add(a, 'A', 'Z');
        add(a, '_', '_');
    }
    if (!letter) add(a, c, c);
    return !letter || c == 'd' || c == 'w';
}

/* [...] from p on; returns what follows it, or NULL. */
static const char *byte_class(struct atom *a, const char *p, const char *end)
{
    const bool negated = p < end && *p == '^';

    if (negated) p++;
    for (bool first = true; p < end && (*p != ']' || first); first = false) {
        unsigned char lo = (unsigned char)*p++;
        if (lo == '\\') {
            if (p == end || !escape(a, (unsigned char)*p++)) return NULL;
            continue;
        }
        unsigned char hi = lo;
        if (end - p >= 2 && p[0] == '-' && p[1] != ']') {
            hi = (unsigned char)p[1];
            p += 2;
        }
        if (hi < lo) return NULL;
        add(a, lo, hi);
    }
    if (p == end) return NULL;
    if (negated) {
        for (int i = 0; i < 4; i++) a->set[i] = ~a->set[i];
    }
    return p + 1;
}

static const char *quantifier(struct atom *a, const char *p, const char *end)
{
    if (p == end || (*p != '*' && *p != '+' && *p != '?')) return p;
    a->optional = *p != '+';
    a->repeats = *p != '?';
    p++;
    return p < end && *p == '?' ? p + 1 : p; /* lazy or not: the same texts match */
}

static bool compile_regex(struct pattern *out, const char *p, const char *end)
{
    if (p < end && *p == '^') p++;
    while (p < end) {
        if (*p == '$' && p + 1 == end) {
            out->to_end = true;
            return true;
        }
        if (out->n == MAX_ATOMS) return false;
        struct atom *a = &out->atoms[out->n++];
        *a = (struct atom){0};
        const unsigned char c = (unsigned char)*p++;
        if (strchr("()|{}*+?^$", c)) return false; /* NUL included */
        if (c == '.') {
            add(a, 0, 255);
        } else if (c == '\\') {
            if (p == end || !escape(a, (unsigned char)*p++)) return false;
        } else if (c == '[') {
            p = byte_class(a, p, end);
            if (!p) return false;
        } else {
            add(a, c, c);
        }
        p = quantifier(a, p, end);
        if (p < end && strchr("*+?", *p)) return false;
    }
    return true;
}

static bool compile_glob(struct pattern *out, const char *p, const char *end)
{
    out->to_end = true;
    for (; p < end; p++) {
        if (out->n == MAX_ATOMS) return false;
        struct atom *a = &out->atoms[out->n++];
        *a = (struct atom){.optional = *p == '*', .repeats = *p == '*'};
        if (*p == '*' || *p == '?') {
            add(a, 0, 255);
        } else {
            add(a, (unsigned char)*p, (unsigned char)*p);
        }
    }
    return true;
}

static bool spend(uint64_t *budget, uint64_t steps)
{
    const bool enough = *budget >= steps;

    *budget -= enough ? steps : *budget;
    return enough;
}

#define WORDS (MAX_ATOMS / 64 + 1)

struct states { /* bit i: the next byte must match atom i; bit n: all have matched */
    uint64_t word[WORDS];
};

static void set(struct states *s, size_t i)
{
    s->word[i >> 6] |= UINT64_C(1) << (i & 63);
}

/* The first state from i on, or past all. */
static size_t next_state(const struct states *s, size_t i)
{
    for (size_t w = i >> 6; w < WORDS; w++, i = w << 6) {
        const uint64_t rest = s->word[w] >> (i & 63);
        if (rest) return i + (size_t)__builtin_ctzll(rest);
    }
    return SIZE_MAX;
}

/* Takes the byte c (none when below 0) from `now` to `next`.  States past optional atoms are
 * added to `now` on the way, which they only do upwards.  Returns how many there were. */
static uint64_t step(const struct pattern *p, struct states *now, int c, struct states *next)
{
    uint64_t steps = 1;

    for (size_t i = next_state(now, 0); i < p->n; i = next_state(now, i + 1), steps++) {
        const struct atom *a = &p->atoms[i];
        if (a->optional) set(now, i + 1);
        if (c < 0 || !has(a, (unsigned char)c)) continue;
        set(next, i + 1);
        if (a->repeats) set(next, i);
    }
    return steps;
}

static int run(const struct pattern *p, const char *text, size_t len, uint64_t *budget)
{
    struct states now = {{1}};

    for (size_t t = 0; t <= len; t++) {
        struct states next = {{0}};
        const bool last = t == len;
        const uint64_t steps = step(p, &now, last ? -1 : (unsigned char)text[t], &next);
        if ((last || !p->to_end) && next_state(&now, p->n) == p->n) return 1;
        if (!spend(budget, steps)) return -1;
        now = next;
        if (next_state(&now, 0) == SIZE_MAX) return 0;
    }
    return 0;
}

/* 1 match, 0 none, -1 not understood or no budget left.  Like Python's re.match: from the
 * start of the text, not necessarily to its end. */
int ig_sc_regex(const char *pattern, size_t n, const char *text, size_t len, uint64_t *budget)
{
    struct pattern p;

    p.n = 0;
    p.to_end = false;
    if (n > MAX_ATOMS || !spend(budget, n) || !compile_regex(&p, pattern, pattern + n)) return -1;
    return run(&p, text, len, budget);
}

/* The whole text; '*' and '?' as in a shell. */
int ig_sc_glob(const char *pattern, size_t n, const char *text, size_t len, uint64_t *budget)
{
    struct pattern p;

    p.n = 0;
    p.to_end = false;
    if (n > MAX_ATOMS || !spend(budget, n) || !compile_glob(&p, pattern, pattern + n)) return -1;
    return run(&p, text, len, budget);
}

/* The module itself, one above it, or its last names: "lm_head" for "model.lm_head". */
static bool names_module(const char *entry, size_t n, const char *module, size_t len)
{
    if (n == 0 || n > len) return false;
    if (!memcmp(entry, module, n) && (n == len || module[n] == '.')) return true;
    return n < len && module[len - n - 1] == '.' && !memcmp(entry, module + len - n, n);
}

bool ig_sc_ignored(struct ig_scan *s, const char *module, size_t len)
{
    for (size_t list = 0; list < 2 * IG_SC_MAX_IGNORE; list++) {
        const json_t *array = s->decl[list / IG_SC_MAX_IGNORE].ignore[list % IG_SC_MAX_IGNORE];
        for (size_t i = 0; i < json_array_size(array); i++) {
            const json_t *v = json_array_get(array, i);
            const char *entry = json_string_value(v);
            const size_t n = json_string_length(v);
            int hit = -1; /* what is no string is not understood either */
            if (!spend(&s->budget, n < len ? n + 1 : 1)) {
                s->pattern_unread = true;
                return false;
            }
            if (entry && n > 3 && !memcmp(entry, "re:", 3)) {
                hit = ig_sc_regex(entry + 3, n - 3, module, len, &s->budget);
            } else if (entry && memchr(entry, '*', n)) {
                hit = ig_sc_glob(entry, n, module, len, &s->budget);
            } else if (entry) {
                hit = names_module(entry, n, module, len);
            }
            if (hit > 0) return true;
            if (hit < 0) s->pattern_unread = true;
        }
    }
    return false;
}
