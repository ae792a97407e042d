/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing half-done is visible, nothing is written over: a hidden sibling, renamed at the end. */
#include "convert/export_place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static int flush_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)where;
    return type == FTW_DP && ig_fsync_dir(path, NULL) != INGOT_OK;
}

/* A hidden sibling of `target`: ".NAME.partial-<random>"; caller frees. */
char *ig_export_sibling(const char *target)
{
    uint64_t random = 0;
    const char *slash = strrchr(target, '/');
    const int dir = slash ? (int)(slash - target) + 1 : 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) random = (uint64_t)getpid();
    return ig_format("%.*s.%s.partial-%016llx", dir, target, target + dir,
                     (unsigned long long)random);
}

static ingot_status fsync_parent(const char *target, ingot_error *e)
{
    char *dir = strdup(target);
    if (!dir) return ig_no_memory(e);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    const ingot_status status = ig_fsync_dir(slash ? dir : ".", e);
    free(dir);
    return status;
}

static ingot_status refuse_existing(const char *target, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_EXISTS, "%s: exists already, and export never writes over anything",
            target);
    return ig_at(e, target, NULL, 0);
}

ingot_status ig_export_move(const char *from, const char *to, ingot_error *e)
{
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) { /* not every file system has the flag */
        if (access(to, F_OK) == 0) return refuse_existing(to, e);
        rc = rename(from, to);
    }
    if (rc != 0 && errno == EEXIST) return refuse_existing(to, e);
    if (rc != 0) return ig_fail_sys(e, errno, "%s: cannot rename %s to it", to, from);
    const ingot_status status = fsync_parent(to, e);
    if (status != INGOT_OK) (void)rename(to, from); /* for the caller to remove */
    return status;
}

ingot_status ig_export_absent(const char *target, bool folder, ingot_error *e)
{
    struct stat st;
    if (lstat(target, &st) != 0) return INGOT_OK;
    /* An empty folder is as good as none; it comes back, filled, at the end. */
    if (folder && S_ISDIR(st.st_mode) && rmdir(target) == 0) return INGOT_OK;
    return refuse_existing(target, e);
}

ingot_status ig_export_flush(const char *dir, ingot_error *e)
{
    if (nftw(dir, flush_one, 16, FTW_PHYS | FTW_DEPTH) == 0) return INGOT_OK;
    return ig_fail_sys(e, errno, "%s: cannot flush folder to disk", dir);
}

void ig_export_remove(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}
