/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a file that nobody sees to one that is whole: unnamed where the file system can, else
 * hidden under a unique name.  That names are unique and that link and rename are atomic is what
 * makes this correct; flock only tells the temporaries of the living from those of the dead.
 */
#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRIES   16
#define FD_PATH 40 /* bytes of "/proc/self/fd/N" */

static void fd_path(char out[FD_PATH], int fd)
{
    snprintf(out, FD_PATH, "/proc/self/fd/%d", fd);
}

static int flock_retry(int fd, int how)
{
    int rc;
    while ((rc = flock(fd, how)) != 0 && errno == EINTR) continue;
    return rc;
}

static char *hidden_name(const char *dir)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        random = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    }
    return ig_format("%s/" IG_TEMP_PREFIX "%ld-%016llx", dir, (long)getpid(),
                     (unsigned long long)random);
}

/* Something that vanished while it was written is trouble of the disk, not a wrong name. */
static ingot_status refused(ingot_error *e, int why, const char *path, const char *what)
{
    ingot_status status = ig_fail_sys(e, why, "%s: %s", path, what);
    if (status == INGOT_ERR_NOT_FOUND) status = INGOT_ERR_IO;
    if (e) e->status = status;
    return status;
}

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static ingot_status open_named(struct ig_temp *t, ingot_error *e)
{
    for (int i = 0; i < TRIES; i++) {
        free(t->path);
        if (!(t->path = hidden_name(t->dir))) return ig_no_memory(e);
        t->fd = open(t->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (t->fd < 0 && errno == EEXIST) continue;
        if (t->fd < 0) {
            const int why = errno;
            free(t->path); /* not ours to unlink */
            t->path = NULL;
            ig_fail_sys(e, why, "%s: cannot create a file in this folder", t->dir);
            return ig_at(e, t->dir, NULL, 0);
        }
        /* Between open and flock a reclaiming run may have had the lock, and the file. */
        (void)flock_retry(t->fd, LOCK_EX);
        if (same_file(t->fd, t->path)) return INGOT_OK;
        close(t->fd);
        t->fd = -1;
    }
    free(t->path);
    t->path = NULL;
    return ig_fail(e, INGOT_ERR_BUSY, "%s: no temporary stays in this folder", t->dir);
}

ingot_status ig_temp_open_in(const char *dir, bool named, struct ig_temp *t, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    char self[FD_PATH];
    struct stat st;
    *t = (struct ig_temp){.fd = -1, .dir = strdup(dir)};
    if (!t->dir) return ig_no_memory(e);
    if (!named) t->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (t->fd >= 0) {
        /* Without /proc an unnamed file could never get a name; find out before it is written. */
        fd_path(self, t->fd);
        (void)flock_retry(t->fd, LOCK_EX | LOCK_NB);
        if (stat(self, &st) == 0) return INGOT_OK;
        close(t->fd);
        t->fd = -1;
    }
    status = open_named(t, e);
    if (status != INGOT_OK) ig_temp_discard(t);
    return status;
}

ingot_status ig_temp_open(const struct ig_store *s, struct ig_temp *t, ingot_error *e)
{
    char *dir = ig_store_path(s, "packs", NULL);
    *t = (struct ig_temp){.fd = -1};
    const ingot_status status = dir ? ig_temp_open_in(dir, false, t, e) : ig_no_memory(e);
    free(dir);
    return status;
}

void ig_temp_discard(struct ig_temp *t)
{
    if (t->path && t->fd >= 0 && same_file(t->fd, t->path)) unlink(t->path);
    if (t->fd >= 0) close(t->fd);
    free(t->path);
    free(t->dir);
    *t = (struct ig_temp){.fd = -1};
}

/* Everything that can still go wrong with the bytes goes wrong before they get a name. */
static ingot_status settle(const struct ig_temp *t, const char *path, mode_t mode, ingot_error *e)
{
    if (fchmod(t->fd, mode) != 0)
        return ig_fail_sys(e, errno, "%s: cannot set mode %04o", path, (unsigned)mode);
    return_if_error(ig_fsync(t->fd, path, e));
    /* Network file systems report late write errors at close; closing a copy asks for them. */
    int copy = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return ig_fail_sys(e, errno, "%s: cannot duplicate its descriptor", path);
    return ig_close(&copy, path, e);
}

/* Give the unnamed file a hidden name, to be renamed. */
static ingot_status link_hidden(struct ig_temp *t, ingot_error *e)
{
    char self[FD_PATH];
    fd_path(self, t->fd);
    for (int i = 0; i < TRIES; i++) {
        char *path = hidden_name(t->dir);
        if (!path) return ig_no_memory(e);
        if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            t->path = path;
            return INGOT_OK;
        }
        const int why = errno;
        free(path);
        if (why != EEXIST) return refused(e, why, t->dir, "cannot link a file here");
    }
    return ig_fail(e, INGOT_ERR_BUSY, "%s: no free temporary name", t->dir);
}

static int rename_no_replace(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    /* Not every file system has that flag; those without it have hard links. */
    return link(from, to) == 0 ? unlink(from) : -1;
}

static ingot_status appear(struct ig_temp *t, const char *path, bool replace, ingot_error *e)
{
    if (!t->path) {
        char self[FD_PATH];
        fd_path(self, t->fd);
        if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) return INGOT_OK;
        if (errno != EEXIST) return refused(e, errno, path, "cannot publish");
        if (!replace) return ig_fail(e, INGOT_ERR_EXISTS, "%s: exists already", path);
        return_if_error(link_hidden(t, e));
    }
    if (!same_file(t->fd, t->path))
        return ig_fail(e, INGOT_ERR_BUSY,
                       "%s: another process took its temporary %s away; run again", path, t->path);
    const int rc = replace ? rename(t->path, path) : rename_no_replace(t->path, path);
    if (rc != 0 && errno == EEXIST && !replace)
        return ig_fail(e, INGOT_ERR_EXISTS, "%s: exists already", path);
    if (rc != 0) return refused(e, errno, path, "cannot publish");
    free(t->path);
    t->path = NULL;
    return INGOT_OK;
}

static ingot_status fsync_parent(const char *path, ingot_error *e)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    if (!dir) return ig_no_memory(e);
    const ingot_status status = ig_fsync_dir(dir[0] ? dir : "/", e);
    free(dir);
    return status;
}

ingot_status ig_temp_place(struct ig_temp *t, const char *path, mode_t mode, bool replace,
                           ingot_error *e)
{
    ingot_status status = settle(t, path, mode, e);
    if (status != INGOT_OK) goto out;
    if ((status = appear(t, path, replace, e)) != INGOT_OK) goto out;
    if ((status = ig_close(&t->fd, path, e)) != INGOT_OK) goto out;
    status = fsync_parent(path, e);
out:
    if (status != INGOT_OK) ig_at(e, path, NULL, 0);
    ig_temp_discard(t);
    return status;
}

ingot_status ig_temp_publish(const struct ig_store *s, struct ig_temp *t, const char *file,
                             ingot_error *e)
{
    char *path = ig_store_path(s, "packs", file);
    ingot_status status;
    if (path) {
        status = ig_temp_place(t, path, 0444, true, e);
    } else {
        ig_temp_discard(t);
        status = ig_no_memory(e);
    }
    free(path);
    return status;
}
