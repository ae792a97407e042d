/* SPDX-License-Identifier: Apache-2.0 */
/* Grammar of JSON over the tokens of json_token.c, without recursion. */
#include "base/json_lex.h"

#include <string.h>

enum { NEED_VALUE, NEED_VALUE_OR_END, NEED_KEY, NEED_KEY_OR_END, NEED_SEPARATOR };

void ig_lex_init(struct ig_lex *lx, const char *text, size_t n, const char *path, uint64_t base,
                 unsigned flags)
{
    memset(lx, 0, sizeof *lx);
    lx->text = text;
    lx->n = n;
    lx->path = path;
    lx->base = base;
    lx->flags = flags;
    lx->need = NEED_VALUE;
    if ((flags & IG_JSON_BOM) && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        lx->pos = lx->start = 3;
}

static void skip_space(struct ig_lex *lx)
{
    while (lx->pos < lx->n) {
        const char c = lx->text[lx->pos];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
        lx->pos++;
    }
}

static bool at_byte(const struct ig_lex *lx, char c)
{
    return lx->pos < lx->n && lx->text[lx->pos] == c;
}

static bool in_object(const struct ig_lex *lx)
{
    const unsigned d = lx->depth - 1;
    return lx->objects[d / 64] >> d % 64 & 1;
}

static ingot_status enter(struct ig_lex *lx, bool object, enum ig_lex_event *event, ingot_error *e)
{
    const unsigned d = lx->depth;
    if (d == IG_LEX_DEPTH)
        return ig_lex_fail(lx, lx->pos, e, "nested too deep (expected at most %u levels)",
                           IG_LEX_DEPTH);
    const uint64_t bit = (uint64_t)1 << d % 64;
    lx->objects[d / 64] = object ? lx->objects[d / 64] | bit : lx->objects[d / 64] & ~bit;
    lx->depth++;
    lx->need = object ? NEED_KEY_OR_END : NEED_VALUE_OR_END;
    lx->at = lx->pos++;
    lx->end = lx->pos;
    *event = object ? IG_LEX_OBJECT : IG_LEX_ARRAY;
    return INGOT_OK;
}

static ingot_status leave(struct ig_lex *lx, enum ig_lex_event *event)
{
    *event = in_object(lx) ? IG_LEX_OBJECT_END : IG_LEX_ARRAY_END;
    lx->depth--;
    lx->need = NEED_SEPARATOR;
    lx->at = lx->pos++;
    lx->end = lx->pos;
    return INGOT_OK;
}

static ingot_status read_value(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e)
{
    if (at_byte(lx, '{')) return enter(lx, true, event, e);
    if (at_byte(lx, '[')) return enter(lx, false, event, e);
    lx->need = NEED_SEPARATOR;
    if (at_byte(lx, '"')) {
        *event = IG_LEX_STRING;
        return ig_lex_scan_string(lx, e);
    }
    return ig_lex_scan_scalar(lx, event, e);
}

/* A key with the colon behind it. */
static ingot_status read_key(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e)
{
    if (!at_byte(lx, '"')) return ig_lex_unexpected(lx, e, "a key in double quotes");
    return_if_error(ig_lex_scan_string(lx, e));
    skip_space(lx);
    if (!at_byte(lx, ':')) return ig_lex_unexpected(lx, e, "':'");
    lx->pos++;
    lx->need = NEED_VALUE;
    *event = IG_LEX_KEY;
    return INGOT_OK;
}

ingot_status ig_lex_next(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e)
{
    skip_space(lx);
    if (lx->need == NEED_SEPARATOR && lx->depth == 0) {
        if (lx->pos < lx->n) return ig_lex_unexpected(lx, e, "the end of the text");
        lx->at = lx->end = lx->n;
        *event = IG_LEX_END;
        return INGOT_OK;
    }
    const bool object = lx->depth && in_object(lx);
    const bool may_end =
        lx->need == NEED_SEPARATOR || lx->need == NEED_KEY_OR_END || lx->need == NEED_VALUE_OR_END;
    if (may_end && at_byte(lx, object ? '}' : ']')) return leave(lx, event);
    if (lx->need == NEED_SEPARATOR) {
        if (!at_byte(lx, ','))
            return ig_lex_unexpected(lx, e, object ? "',' or '}'" : "',' or ']'");
        lx->pos++;
        lx->need = object ? NEED_KEY : NEED_VALUE;
        skip_space(lx);
    }
    const bool key = lx->need == NEED_KEY || lx->need == NEED_KEY_OR_END;
    return key ? read_key(lx, event, e) : read_value(lx, event, e);
}

ingot_status ig_lex_skip(struct ig_lex *lx, ingot_error *e)
{
    const unsigned depth = lx->depth;
    enum ig_lex_event event;
    do return_if_error(ig_lex_next(lx, &event, e));
    while (lx->depth > depth);
    return INGOT_OK;
}
