/* SPDX-License-Identifier: Apache-2.0 */
/* order: from a tensor's name to its place in the weights, by the table in order_table.h. */
#include "convert/order.h"
#include "convert/order_table.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { STAGE_LAYERS = 1, STAGE_OTHER = 3, SLOT_OTHER = 9 };

/* What is left of a name.  It comes from a file: no NUL ends it, any byte may stand in it. */
struct rest {
    const char *s;
    size_t n;
};

static bool take(struct rest *r, const char *literal)
{
    const size_t n = strlen(literal);
    if (r->n < n || memcmp(r->s, literal, n) != 0) return false;
    r->s += n;
    r->n -= n;
    return true;
}

/* A number as a writer of tensors spells it: no sign, no leading zeros, at most 19 digits. */
static bool take_number(struct rest *r, uint64_t *number)
{
    uint64_t v = 0;
    size_t n = 0;
    while (n < r->n && r->s[n] >= '0' && r->s[n] <= '9') {
        if (n == 19) return false;
        v = 10 * v + (uint64_t)(r->s[n++] - '0');
    }
    if (n == 0 || (n > 1 && r->s[0] == '0')) return false;
    *number = v;
    r->s += n;
    r->n -= n;
    return true;
}

/* The module of a row at the start of *r; its end is for the caller to check. */
static bool take_module(struct rest *r, const char *module, uint64_t *number)
{
    for (; *module != '\0'; module++) {
        if (*module == '#') {
            if (!take_number(r, number)) return false;
        } else {
            if (r->n == 0 || *r->s != *module) return false;
            r->s++;
            r->n--;
        }
    }
    return true;
}

/* What follows the module becomes the suffix.  False: the name does not end or go on there. */
static bool take_suffix(struct rest *r, unsigned flags)
{
    if (r->n == 0) return (flags & ROW_LEAF) == 0;
    if (r->n == 1) return false;
    if (r->s[0] == '_') return (flags & ROW_JOINED) != 0;
    if (!take(r, ".")) return false;
    return (flags & ROW_LEAF) == 0 || memchr(r->s, '.', r->n) == NULL;
}

static bool one_of(const struct rest *r, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == r->n && memcmp(list[i], r->s, r->n) == 0) return true;
    return false;
}

static uint32_t kind_of(const struct rest *suffix)
{
    if (one_of(suffix, order_weights, COUNT(order_weights))) return 0;
    return one_of(suffix, order_biases, COUNT(order_biases)) ? 1 : 2;
}

/* The row whose module starts `name` and that has one of the flags, if any is given; sets what
 * the row and the rest of the name say.  NULL: none. */
static const struct order_row *find(const struct order_row *rows, size_t nrows, struct rest name,
                                    unsigned flags, struct ig_place *out)
{
    for (size_t i = 0; i < nrows; i++) {
        struct rest r = name;
        uint64_t expert = 0;
        if (flags != 0 && (rows[i].flags & flags) == 0) continue;
        if (!take_module(&r, rows[i].module, &expert) || !take_suffix(&r, rows[i].flags)) continue;
        out->expert = expert;
        out->experts = strchr(rows[i].module, '#') != NULL;
        out->suffix = r.s;
        out->suffix_len = (uint32_t)r.n;
        out->kind = kind_of(&r);
        out->member = rows[i].member;
        out->members = rows[i].members;
        out->view = rows[i].view;
        return &rows[i];
    }
    return NULL;
}

static bool place_in_layer(struct rest r, const char *name, struct ig_place *out)
{
    uint64_t layer;
    if (!take_module(&r, "layers.#.", &layer) || r.n == 0) return false;
    const struct order_row *row = find(order_layer, COUNT(order_layer), r, 0, out);
    out->stage = STAGE_LAYERS;
    out->layer = layer;
    out->slot = row != NULL ? row->slot : SLOT_OTHER;
    out->prefix_len = (uint32_t)(r.s - name);
    return true;
}

static bool place_outside(struct rest r, const char *name, unsigned flag, struct ig_place *out)
{
    const struct order_row *row = find(order_outside, COUNT(order_outside), r, flag, out);
    if (row == NULL) return false;
    out->stage = row->slot;
    out->prefix_len = (uint32_t)(r.s - name);
    return true;
}

void ig_place(const char *name, size_t len, uint32_t rules, struct ig_place *out)
{
    (void)rules; /* there is one table so far */
    *out = (struct ig_place){.stage = STAGE_OTHER, .suffix = ""};
    if (len == 0 || len > UINT32_MAX) return;
    for (size_t i = 0; i < COUNT(order_prefixes); i++) {
        const unsigned flag = order_prefixes[i].flag;
        struct rest r = {name, len};
        if (!take(&r, order_prefixes[i].s)) continue;
        if (flag != ROW_HEAD && place_in_layer(r, name, out)) return;
        if (place_outside(r, name, flag, out)) return;
    }
}

/* ---- comparing ---- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Views by name; rows without one come last. */
static int compare_views(const struct ig_place *a, const struct ig_place *b)
{
    if (a->view == NULL || b->view == NULL) return compare(a->view == NULL, b->view == NULL);
    return strcmp(a->view, b->view);
}

int ig_place_cmp(const struct ig_place *a, const char *an, size_t al, const struct ig_place *b,
                 const char *bn, size_t bl)
{
    int c = compare(a->stage, b->stage);
    if (c == 0) c = compare(a->layer, b->layer);
    if (c == 0) c = compare(a->slot, b->slot);
    if (c == 0) c = compare(a->kind, b->kind);
    if (c == 0) c = ig_bytes_cmp(a->suffix, a->suffix_len, b->suffix, b->suffix_len);
    if (c == 0) c = ig_bytes_cmp(an, a->prefix_len, bn, b->prefix_len);
    if (c == 0) c = compare_views(a, b);
    if (c == 0) c = compare(a->expert, b->expert);
    if (c == 0) c = compare(a->member, b->member);
    return c != 0 ? c : ig_natural_cmp(an, al, bn, bl);
}

bool ig_place_same_view(const struct ig_place *a, const char *an, const struct ig_place *b,
                        const char *bn)
{
    return a->view != NULL && b->view != NULL && strcmp(a->view, b->view) == 0 &&
           ig_bytes_cmp(an, a->prefix_len, bn, b->prefix_len) == 0 &&
           ig_bytes_cmp(a->suffix, a->suffix_len, b->suffix, b->suffix_len) == 0;
}
