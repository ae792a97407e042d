/* SPDX-License-Identifier: Apache-2.0 */
/* Absent, or only out of reach?  What is merely out of reach must never be taken for absent: names
 * would be forgotten, and gc would free what they point to. */
#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static ingot_status judge(int rc, const char *path, bool *there, ingot_error *e)
{
    *there = rc == 0;
    if (rc == 0 || errno == ENOENT || errno == ENOTDIR) return INGOT_OK;
    const ingot_status status =
        ig_fail_sys(e, errno, "%s: cannot look at it", ig_esc(path, strlen(path)).s);
    ig_at(e, path, NULL, 0);
    return status;
}

ingot_status ig_stat(const char *path, struct stat *st, bool *there, ingot_error *e)
{
    return judge(stat(path, st), path, there, e);
}

ingot_status ig_lstat(const char *path, struct stat *st, bool *there, ingot_error *e)
{
    return judge(lstat(path, st), path, there, e);
}
