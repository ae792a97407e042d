/* SPDX-License-Identifier: Apache-2.0 */
#include "base/help.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein with swaps of neighbours only, one row at a time. */
unsigned ig_edits(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    if (na > IG_SUGGEST_MAX || nb > IG_SUGGEST_MAX) return UINT32_MAX;
    unsigned rows[3][IG_SUGGEST_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++) above[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *const spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[nb];
}

/* The start of a command's name is as good as one edit. */
static unsigned distance(const char *typed, const char *name)
{
    const size_t n = strlen(typed);
    const unsigned edits = ig_edits(typed, name);
    return n > 1 && !strncmp(typed, name, n) ? least(edits, 1) : edits;
}

unsigned ig_suggest(const struct ig_cmd *cmds, const char *typed, char *buf, size_t cap)
{
    unsigned best = UINT32_MAX, found = 0;
    size_t used = 0;
    buf[0] = '\0';
    for (const struct ig_cmd *c = cmds; c->name; c++) best = least(best, distance(typed, c->name));
    if (best == UINT32_MAX || (size_t)best * 2 > strlen(typed)) return 0;
    for (const struct ig_cmd *c = cmds; c->name; c++) {
        if (distance(typed, c->name) != best || used >= cap) continue;
        const int n = snprintf(buf + used, cap - used, "%s%s", found ? ", " : "", c->name);
        used += (size_t)n;
        found++;
    }
    return found;
}
