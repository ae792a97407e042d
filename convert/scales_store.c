/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: the growing parts of the result, and the strings they point to. */
#include "convert/scales_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct string { /* one allocation each: there are few beside the names of tensors */
    struct string *next;
    char text[];
};

void ig_sc_strings_free(void *strings)
{
    struct string *s = strings;

    while (s) {
        struct string *next = s->next;
        free(s);
        s = next;
    }
}

const char *ig_sc_copy(struct ig_scan *s, const char *text, size_t n)
{
    struct string *copy = malloc(sizeof(*copy) + n + 1);

    if (!copy) {
        s->oom = true;
        return "";
    }
    memcpy(copy->text, text, n);
    copy->text[n] = 0;
    copy->next = s->out->strings;
    s->out->strings = copy;
    return copy->text;
}

static IG_PRINTF(1, 0) char *format_text(const char *format, va_list args)
{
    char *text = NULL;

    return vasprintf(&text, format, args) < 0 ? NULL : text;
}

const char *ig_sc_text(struct ig_scan *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    if (!text) {
        s->oom = true;
        return "";
    }
    const char *copy = ig_sc_copy(s, text, strlen(text));
    free(text);
    return copy;
}

/* Room for one more of `size` bytes; capacity doubles. */
static bool grow(void **items, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) return true;
    if (*cap > UINT32_MAX / 2) return false;
    const uint32_t want = *cap ? *cap * 2 : 16;
    void *p = reallocarray(*items, want, size);
    if (!p) return false;
    *items = p;
    *cap = want;
    return true;
}

void ig_sc_finding(struct ig_scan *s, uint32_t row, const char *format, ...)
{
    va_list args;
    void *items = s->out->findings;

    /* A hostile checkpoint must not buy memory with nonsense. */
    if (s->out->nfindings >= IG_SC_MAX_FINDINGS) {
        s->unlisted++;
        return;
    }
    if (!grow(&items, s->out->nfindings, &s->cap_findings, sizeof(struct ig_finding))) {
        s->oom = true;
        return;
    }
    s->out->findings = items;
    va_start(args, format);
    char *text = format_text(format, args);
    va_end(args);
    if (!text) {
        s->oom = true;
        return;
    }
    /* Keys of a config stand in JSON pointers as they are; a finding is one line. */
    ig_printable(text);
    s->out->findings[s->out->nfindings++] = (struct ig_finding){.text = text, .row = row};
}

void ig_sc_link(struct ig_scan *s, const struct ig_link *l)
{
    void *items = s->out->links;

    if (!grow(&items, s->out->nlinks, &s->cap_links, sizeof(struct ig_link))) {
        s->oom = true;
        return;
    }
    s->out->links = items;
    s->out->links[s->out->nlinks++] = *l;
}

struct ig_sc_shape ig_sc_shape(const struct ig_row *row)
{
    struct ig_sc_shape out;
    size_t used = 1;

    out.s[0] = '[';
    for (uint32_t i = 0; i < row->rank; i++) {
        if (used > sizeof(out.s) - 32) { /* a number, a comma and the end still fit */
            used += (size_t)sprintf(out.s + used, "%s...", i ? "," : "");
            break;
        }
        used += (size_t)sprintf(out.s + used, "%s%" PRIu64, i ? "," : "", row->shape[i]);
    }
    out.s[used++] = ']';
    out.s[used] = 0;
    return out;
}
