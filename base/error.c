/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
} statuses[] = {
    [INGOT_OK] = {"ok", 0},
    [INGOT_ERR_CHECK] = {"check_failed", 1},
    [INGOT_ERR_USAGE] = {"usage", 2},
    [INGOT_ERR_INPUT] = {"bad_input", 3},
    [INGOT_ERR_PACK] = {"bad_pack", 3},
    [INGOT_ERR_UNSUPPORTED] = {"unsupported", 3},
    [INGOT_ERR_NOT_FOUND] = {"not_found", 3},
    [INGOT_ERR_EXISTS] = {"exists", 3},
    [INGOT_ERR_BUSY] = {"busy", 4},
    [INGOT_ERR_IO] = {"io", 4},
    [INGOT_ERR_NO_SPACE] = {"no_space", 4},
    [INGOT_ERR_NO_MEMORY] = {"no_memory", 4},
    [INGOT_ERR_CANCELLED] = {"cancelled", 4},
};

const char *ingot_status_name(ingot_status status)
{
    const size_t n = sizeof statuses / sizeof statuses[0];
    return (size_t)status < n ? statuses[status].name : "unknown";
}

int ingot_exit_code(ingot_status status)
{
    const size_t n = sizeof statuses / sizeof statuses[0];
    return (size_t)status < n ? statuses[status].exit_code : 4;
}

static void reset(ingot_error *e, ingot_status status, int sys_errno)
{
    e->status = status;
    e->sys_errno = sys_errno;
    e->has_offset = 0;
    e->offset = 0;
    e->file[0] = e->tensor[0] = '\0';
}

/* Bytes of the well-formed UTF-8 sequence at s, or 0. */
static size_t utf8_sequence(const char *s, size_t n)
{
    static const struct {
        uint8_t mask, lead, len;
        uint8_t least; /* smallest second byte after the smallest lead: no overlong forms */
    } kinds[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0xa0}, {0xf8, 0xf0, 4, 0x90}};
    const uint8_t *b = (const uint8_t *)s;
    if (b[0] < 0x80) return 1;
    for (size_t k = 0; k < 3; k++) {
        if ((b[0] & kinds[k].mask) != kinds[k].lead) continue;
        const size_t len = kinds[k].len;
        if (n < len) return 0;
        for (size_t i = 1; i < len; i++)
            if ((b[i] & 0xc0) != 0x80) return 0;
        if (b[0] < 0xc2 || b[0] > 0xf4) return 0;
        if (b[0] == kinds[k].lead && b[1] < kinds[k].least) return 0;
        if (b[0] == 0xed && b[1] >= 0xa0) return 0; /* surrogates */
        if (b[0] == 0xf4 && b[1] >= 0x90) return 0; /* beyond U+10FFFF */
        return len;
    }
    return 0;
}

/* C1 controls drive terminals too. */
static bool is_c1(const char *s, size_t len)
{
    return len == 2 && (uint8_t)s[0] == 0xc2 && (uint8_t)s[1] < 0xa0;
}

void ig_printable(char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        const size_t len = utf8_sequence(text + i, n - i);
        const uint8_t b = (uint8_t)text[i];
        if (is_c1(text + i, len))
            text[i] = text[i + 1] = '?';
        else if (len == 0 || b < 0x20 || b == 0x7f)
            text[i] = '?';
        i += len ? len : 1;
    }
}

/* Mark a message that did not fit, so that nobody takes it for the whole. */
static void mark_cut(char *buf, size_t cap, int wanted)
{
    if (wanted >= (int)cap) memcpy(buf + cap - 4, "...", 4);
}

ingot_status ig_fail(ingot_error *e, ingot_status status, const char *format, ...)
{
    if (!e) return status;
    reset(e, status, 0);
    va_list args;
    va_start(args, format);
    mark_cut(e->message, sizeof e->message, vsnprintf(e->message, sizeof e->message, format, args));
    va_end(args);
    ig_printable(e->message);
    return status;
}

static ingot_status status_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return INGOT_ERR_NO_SPACE;
    case ENOMEM:
        return INGOT_ERR_NO_MEMORY;
    case ENOENT:
        return INGOT_ERR_NOT_FOUND;
    default:
        return INGOT_ERR_IO;
    }
}

ingot_status ig_fail_sys(ingot_error *e, int sys_errno, const char *format, ...)
{
    const ingot_status status = status_of_errno(sys_errno);
    if (!e) return status;
    reset(e, status, sys_errno);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    const size_t cap = sizeof e->message;
    if (n >= 0 && (size_t)n < cap) {
        char text[128];
        /* GNU strerror_r may return a static string instead of filling text. */
        const char *why = strerror_r(sys_errno, text, sizeof text);
        const char *id = strerrorname_np(sys_errno);
        n += snprintf(e->message + n, cap - (size_t)n, ": %s (%s)", why, id ? id : "?");
    }
    mark_cut(e->message, cap, n);
    ig_printable(e->message);
    return status;
}

ingot_status ig_no_memory(ingot_error *e)
{
    return ig_fail(e, INGOT_ERR_NO_MEMORY, "out of memory");
}

ingot_status ig_at(ingot_error *e, const char *file, const char *tensor, size_t tensor_len)
{
    if (!e) return INGOT_ERR_INPUT;
    if (file) ig_escape(e->file, sizeof e->file, file, strlen(file));
    if (tensor) ig_escape(e->tensor, sizeof e->tensor, tensor, tensor_len);
    return e->status;
}

ingot_status ig_at_offset(ingot_error *e, const char *file, uint64_t offset)
{
    if (!e) return INGOT_ERR_INPUT;
    ig_escape(e->file, sizeof e->file, file, strlen(file));
    e->has_offset = 1;
    e->offset = offset;
    return e->status;
}

bool ig_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t len = utf8_sequence(s + i, n - i);
        if (!len) return false;
        i += len;
    }
    return true;
}

/* One sequence of s as printable text in out (at most 4 bytes); returns its length. */
static size_t escape_one(char out[5], const char *s, size_t len)
{
    const uint8_t b = (uint8_t)s[0];
    const bool c1 = is_c1(s, len);
    if (len == 1 && (b == '\\' || b == '"')) return (size_t)sprintf(out, "\\%c", b);
    if (b == '\n') return (size_t)sprintf(out, "\\n");
    if (b == '\t') return (size_t)sprintf(out, "\\t");
    if (len == 0 || b < 0x20 || b == 0x7f || c1)
        return (size_t)sprintf(out, "\\x%02x", c1 ? (uint8_t)s[1] : b);
    memcpy(out, s, len);
    return len;
}

const char *ig_escape(char *buf, size_t cap, const char *s, size_t len)
{
    size_t used = 0, cut = 0; /* cut: the last end that leaves room for "..." */
    for (size_t i = 0; i < len;) {
        char out[5];
        const size_t sequence = utf8_sequence(s + i, len - i);
        const size_t n = escape_one(out, s + i, sequence);
        if (used + n >= cap) {
            memcpy(buf + cut, "...", 4);
            return buf;
        }
        memcpy(buf + used, out, n);
        used += n;
        if (used + 4 <= cap) cut = used;
        i += sequence ? sequence : 1;
    }
    buf[used] = '\0';
    return buf;
}

struct ig_esc ig_esc(const char *s, size_t len)
{
    struct ig_esc out;
    ig_escape(out.s, sizeof out.s, s, len);
    return out;
}
