/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/when.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

bool ig_when_read(const char *s, int64_t *out)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d", NULL};
    char *end;
    if (*s == '@') {
        errno = 0;
        const long long n = strtoll(s + 1, &end, 10);
        *out = n;
        return s[1] && !*end && errno == 0;
    }
    for (size_t i = 0; formats[i]; i++) {
        struct tm tm = {0};
        const char *rest = strptime(s, formats[i], &tm);
        if (!rest || *rest) continue;
        *out = (int64_t)timegm(&tm);
        return true;
    }
    return false;
}

void ig_when_text(int64_t t, char out[32])
{
    struct tm tm;
    const time_t seconds = (time_t)t;
    if (!gmtime_r(&seconds, &tm) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(out, 32, "an unknown time");
}
