/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and numbers for people. */
#include "base/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GAP 2 /* blanks between columns */

struct ig_table {
    char *align;
    size_t columns;
    size_t *widths;
    char **cells; /* row after row */
    size_t count, room;
};

static void *or_exit(void *p)
{
    if (!p) ig_cli_no_memory();
    return p;
}

/* Characters, not bytes. */
static size_t width(const char *s)
{
    size_t n = 0;
    for (; *s; s++) n += (*s & 0xc0) != 0x80;
    return n;
}

struct ig_table *ig_table_new(const char *const *heads, const char *align)
{
    struct ig_table *t = or_exit(calloc(1, sizeof *t));
    t->align = or_exit(strdup(align));
    t->columns = strlen(align);
    t->widths = or_exit(ig_array(t->columns, sizeof *t->widths));
    if (heads) ig_table_row(t, heads);
    return t;
}

void ig_table_row(struct ig_table *t, const char *const *cells)
{
    if (t->count + t->columns > t->room) {
        t->room = 2 * t->room + 16 * t->columns;
        t->cells = or_exit(reallocarray(t->cells, t->room, sizeof *t->cells));
    }
    for (size_t i = 0; i < t->columns; i++) {
        char *cell = or_exit(strdup(cells[i] ? cells[i] : ""));
        const size_t w = width(cell);
        if (w > t->widths[i]) t->widths[i] = w;
        t->cells[t->count++] = cell;
    }
}

/* Cells come escaped; a control byte that slipped through does not reach the terminal. */
static void print_cell(const char *s)
{
    for (; *s; s++) putchar((unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s);
}

static void print_row(const struct ig_table *t, char *const *cells)
{
    for (size_t i = 0; i < t->columns; i++) {
        const int pad = (int)(t->widths[i] - width(cells[i]));
        const bool right = t->align[i] == 'r', last = i + 1 == t->columns;
        if (right) printf("%*s", pad, "");
        print_cell(cells[i]);
        if (!last) printf("%*s", (right ? 0 : pad) + GAP, "");
    }
    putchar('\n');
}

void ig_table_print(struct ig_table *t)
{
    for (size_t i = 0; i < t->count; i += t->columns) print_row(t, t->cells + i);
    for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
    free(t->cells);
    free(t->widths);
    free(t->align);
    free(t);
}

struct ig_text ig_human(uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    struct ig_text t;
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 999.5) {
        v /= 1000;
        u++;
    }
    const int decimals = !u || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
    snprintf(t.s, sizeof t.s, "%.*f %s", decimals, v, units[u]);
    return t;
}

struct ig_text ig_when(int64_t unix_seconds)
{
    struct ig_text t;
    const time_t when = (time_t)unix_seconds;
    struct tm tm;
    if (!localtime_r(&when, &tm) || !strftime(t.s, sizeof t.s, "%Y-%m-%dT%H:%M:%S", &tm))
        snprintf(t.s, sizeof t.s, "-");
    return t;
}

struct ig_text ig_shape(const uint64_t *dims, uint32_t rank)
{
    struct ig_text t;
    size_t used = 1;
    t.s[0] = '[';
    for (uint32_t i = 0; i < rank; i++) {
        char dim[24];
        const int n = snprintf(dim, sizeof dim, "%s%ju", i ? "," : "", (uintmax_t)dims[i]);
        if (used + (size_t)n + sizeof ",...]" > sizeof t.s) {
            used += (size_t)snprintf(t.s + used, sizeof t.s - used, ",...");
            break;
        }
        memcpy(t.s + used, dim, (size_t)n);
        used += (size_t)n;
    }
    memcpy(t.s + used, "]", 2);
    return t;
}
