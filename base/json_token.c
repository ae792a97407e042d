/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of JSON: strings, numbers, literals; and the errors that point at a byte. */
#include "base/json_lex.h"

#include <stdarg.h>
#include <string.h>

ingot_status ig_lex_fail(const struct ig_lex *lx, size_t at, ingot_error *e, const char *format,
                         ...)
{
    char what[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const struct ig_esc path = ig_esc(lx->path, strlen(lx->path));
    if (lx->base) {
        ig_fail(e, INGOT_ERR_INPUT, "%s: offset %llu: %s", path.s,
                (unsigned long long)(lx->base + at), what);
    } else {
        /* Counted only now, so that reading pays nothing for it.  Columns are characters. */
        unsigned long long line = 1, column = 1;
        for (size_t i = lx->start; i < at; i++) {
            const uint8_t b = (uint8_t)lx->text[i];
            if (b == '\n') {
                line++;
                column = 1;
            } else if ((b & 0xc0) != 0x80) {
                column++;
            }
        }
        ig_fail(e, INGOT_ERR_INPUT, "%s:%llu:%llu: %s", path.s, line, column, what);
    }
    ig_at_offset(e, lx->path, lx->base + at);
    return INGOT_ERR_INPUT;
}

ingot_status ig_lex_unexpected(const struct ig_lex *lx, ingot_error *e, const char *expected)
{
    if (lx->pos >= lx->n)
        return ig_lex_fail(lx, lx->n, e, "the text ends too early (expected %s)", expected);
    const uint8_t b = (uint8_t)lx->text[lx->pos];
    if (b > 0x20 && b < 0x7f)
        return ig_lex_fail(lx, lx->pos, e, "unexpected '%c' (expected %s)", b, expected);
    return ig_lex_fail(lx, lx->pos, e, "unexpected byte 0x%02x (expected %s)", b, expected);
}

/* Four hexadecimal digits, either case. */
static bool hex4(const char *s, uint32_t *value)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = s[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return false;
        v = v << 4 | digit;
    }
    *value = v;
    return true;
}

/* The escape that starts with the backslash at s: its code point, and its length, or 0. */
static size_t read_escape(const char *s, size_t left, uint32_t *point)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (left < 2) return 0;
    if (s[1] != 'u') {
        const char *found = s[1] ? strchr(from, s[1]) : NULL;
        if (!found) return 0;
        *point = (uint32_t)to[found - from];
        return 2;
    }
    uint32_t high, low;
    if (left < 6 || !hex4(s + 2, &high)) return 0;
    *point = high;
    if (high < 0xd800 || high > 0xdfff) return 6;
    if (high > 0xdbff || left < 12 || s[6] != '\\' || s[7] != 'u' || !hex4(s + 8, &low)) return 0;
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *point = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return 12;
}

static size_t utf8_length(uint32_t point)
{
    return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

static size_t utf8_put(char *dst, uint32_t point)
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const size_t n = utf8_length(point);
    for (size_t i = n - 1; i > 0; i--) {
        dst[i] = (char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    dst[0] = (char)(lead[n] | point);
    return n;
}

static ingot_status bad_escape(const struct ig_lex *lx, size_t at, ingot_error *e)
{
    const char *s = lx->text + at;
    const size_t left = lx->n - at;
    uint32_t unit;
    if (left < 2) return ig_lex_fail(lx, lx->at, e, "a string that does not end (expected '\"')");
    if (s[1] != 'u')
        return ig_lex_fail(lx, at, e,
                           "unknown escape in a string (expected one of \\\" \\\\ \\/ \\b \\f "
                           "\\n \\r \\t \\u)");
    if (left < 6 || !hex4(s + 2, &unit))
        return ig_lex_fail(lx, at, e, "cut escape (expected \\u and four hexadecimal digits)");
    return ig_lex_fail(lx, at, e, "lone surrogate \\u%04x (expected a pair)", unit);
}

/* Length of the well-formed sequence of two to four bytes at s, or 0. */
static size_t multibyte(const char *s, size_t left)
{
    const uint8_t b = (uint8_t)s[0];
    const size_t n = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    return n <= left && ig_utf8_valid(s, n) ? n : 0;
}

ingot_status ig_lex_scan_string(struct ig_lex *lx, ingot_error *e)
{
    const char *text = lx->text;
    const size_t n = lx->n;
    size_t i = lx->pos + 1, saved = 0;
    lx->at = lx->pos;
    lx->escaped = false;
    while (i < n && text[i] != '"') {
        const uint8_t b = (uint8_t)text[i];
        size_t step = 1;
        if (b == '\\') {
            uint32_t point = 0;
            step = read_escape(text + i, n - i, &point);
            if (!step) return bad_escape(lx, i, e);
            lx->escaped = true;
            saved += step - utf8_length(point);
        } else if (b >= 0x80) {
            step = multibyte(text + i, n - i);
            if (!step) return ig_lex_fail(lx, i, e, "invalid UTF-8 in a string");
        } else if (b < 0x20) {
            return ig_lex_fail(lx, i, e, "control byte 0x%02x in a string (expected an escape)", b);
        }
        i += step;
    }
    if (i >= n) return ig_lex_fail(lx, lx->at, e, "a string that does not end (expected '\"')");
    lx->pos = lx->end = i + 1;
    lx->length = lx->end - lx->at - 2 - saved;
    return INGOT_OK;
}

void ig_lex_string(const struct ig_lex *lx, char *dst)
{
    const char *s = lx->text + lx->at + 1, *end = lx->text + lx->end - 1;
    if (!lx->escaped) {
        memcpy(dst, s, (size_t)(end - s));
        return;
    }
    while (s < end) {
        uint32_t point = 0;
        if (*s != '\\') {
            *dst++ = *s++;
            continue;
        }
        s += read_escape(s, (size_t)(end - s), &point);
        dst += utf8_put(dst, point);
    }
}

static bool is_digit(const struct ig_lex *lx, size_t i)
{
    return i < lx->n && lx->text[i] >= '0' && lx->text[i] <= '9';
}

/* Move pos over at least one digit. */
static ingot_status scan_digits(struct ig_lex *lx, ingot_error *e)
{
    if (!is_digit(lx, lx->pos)) return ig_lex_unexpected(lx, e, "a digit");
    while (is_digit(lx, lx->pos)) lx->pos++;
    return INGOT_OK;
}

static ingot_status scan_number(struct ig_lex *lx, ingot_error *e)
{
    const char *text = lx->text;
    lx->integer = true;
    if (text[lx->pos] == '-') lx->pos++;
    const size_t first = lx->pos;
    return_if_error(scan_digits(lx, e));
    if (text[first] == '0' && lx->pos > first + 1)
        return ig_lex_fail(lx, first, e, "a number with a leading zero");
    if (lx->pos < lx->n && text[lx->pos] == '.') {
        lx->integer = false;
        lx->pos++;
        return_if_error(scan_digits(lx, e));
    }
    if (lx->pos < lx->n && (text[lx->pos] == 'e' || text[lx->pos] == 'E')) {
        lx->integer = false;
        lx->pos++;
        if (lx->pos < lx->n && (text[lx->pos] == '+' || text[lx->pos] == '-')) lx->pos++;
        return_if_error(scan_digits(lx, e));
    }
    lx->end = lx->pos;
    return INGOT_OK;
}

bool ig_lex_u64(const struct ig_lex *lx, uint64_t *value)
{
    uint64_t v = 0;
    if (!lx->integer || lx->text[lx->at] == '-') return false;
    for (size_t i = lx->at; i < lx->end; i++) {
        const uint64_t digit = (uint64_t)(lx->text[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *value = v;
    return true;
}

static bool scan_word(struct ig_lex *lx, const char *word)
{
    const size_t n = strlen(word);
    if (lx->n - lx->pos < n || memcmp(lx->text + lx->pos, word, n) != 0) return false;
    lx->end = lx->pos += n;
    return true;
}

ingot_status ig_lex_scan_scalar(struct ig_lex *lx, enum ig_lex_event *event, ingot_error *e)
{
    static const struct {
        const char *word;
        enum ig_lex_event event;
    } words[] = {{"true", IG_LEX_TRUE},          {"false", IG_LEX_FALSE},
                 {"null", IG_LEX_NULL},          {"NaN", IG_LEX_NONFINITE},
                 {"Infinity", IG_LEX_NONFINITE}, {"-Infinity", IG_LEX_NONFINITE}};
    lx->at = lx->pos;
    *event = IG_LEX_NUMBER;
    if (is_digit(lx, lx->pos)) return scan_number(lx, e);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!scan_word(lx, words[i].word)) continue;
        *event = words[i].event;
        if (*event == IG_LEX_NONFINITE && !(lx->flags & IG_JSON_NONFINITE))
            return ig_lex_fail(lx, lx->at, e, "%s is no JSON number (expected a finite value)",
                               words[i].word);
        return INGOT_OK;
    }
    if (lx->pos < lx->n && lx->text[lx->pos] == '-') return scan_number(lx, e);
    return ig_lex_unexpected(lx, e, "a value");
}
