/* SPDX-License-Identifier: Apache-2.0 */
/* The store's lock, and taking back what killed runs left. */
#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Publishing comes after hours of work and waits long; rm and gc are run again easily. */
#define WAIT_SHARED_S    600
#define WAIT_EXCLUSIVE_S 60
#define POLLS_PER_S      50

static ingot_status take(int fd, const char *path, int seconds, int how, const char *what,
                         ingot_error *e)
{
    const struct timespec nap = {.tv_nsec = 1000000000L / POLLS_PER_S};
    for (int i = 0; i < seconds * POLLS_PER_S; i++) {
        if (flock(fd, how | LOCK_NB) == 0) return INGOT_OK;
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK)
            return ig_fail_sys(e, errno, "%s: this file system cannot lock files, which %s needs",
                               path, what);
        nanosleep(&nap, NULL);
    }
    return ig_fail(e, INGOT_ERR_BUSY, "%s: held by another process for %d s", path, seconds);
}

ingot_status ig_store_lock(const struct ig_store *s, bool exclusive, int *fd, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    char *path = ig_store_path(s, "lock", NULL);
    *fd = -1;
    if (!path) return ig_no_memory(e);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    const int why = *fd < 0 ? errno : 0;
    /* A lock made by another user of a shared store; reading is enough for flock. */
    if (why == EACCES) *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 && why == ENOENT)
        status = ig_fail(e, INGOT_ERR_NOT_FOUND, "there is no store at %s", s->root);
    else if (*fd < 0)
        status = ig_fail_sys(e, why, "%s: cannot open the store's lock", path);
    else if (exclusive)
        status = take(*fd, path, WAIT_EXCLUSIVE_S, LOCK_EX, "removing", e);
    else
        status = take(*fd, path, WAIT_SHARED_S, LOCK_SH, "publishing", e);
    if (status != INGOT_OK) {
        ig_at(e, path, NULL, 0);
        if (*fd >= 0) close(*fd);
        *fd = -1;
    }
    free(path);
    return status;
}

ingot_status ig_names_lock(const struct ig_store *s, int *fd, ingot_error *e)
{
    char *path = ig_store_path(s, "names", NULL);
    *fd = -1;
    if (!path) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    if ((*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        status = ig_fail_sys(e, errno, "%s: cannot open folder", path);
    else
        status = take(*fd, path, WAIT_SHARED_S, LOCK_EX, "naming", e);
    if (status != INGOT_OK) {
        ig_at(e, path, NULL, 0);
        if (*fd >= 0) close(*fd);
        *fd = -1;
    }
    free(path);
    return status;
}

/* A temporary whose lock can be had belongs to nobody who lives. */
static void reclaim_one(int dir, const char *name, bool dry, uint64_t *files, uint64_t *bytes)
{
    struct stat st, now;
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(dir, name, O_RDWR | flags); /* NFS locks only what is open for writing */
    if (fd < 0) fd = openat(dir, name, O_RDONLY | flags);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st.st_ino &&
        (dry || unlinkat(dir, name, 0) == 0)) {
        *files += 1;
        *bytes += (uint64_t)st.st_blocks * 512;
    }
    close(fd);
}

static void reclaim_dir(const char *path, bool dry, uint64_t *files, uint64_t *bytes)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, IG_TEMP_PREFIX, strlen(IG_TEMP_PREFIX)) == 0)
            reclaim_one(dirfd(dir), entry->d_name, dry, files, bytes);
    if (dir) closedir(dir);
}

void ig_store_reclaim_count(const struct ig_store *s, bool dry, uint64_t *files, uint64_t *bytes)
{
    static const char *const folders[] = {"packs", "names", NULL};
    *files = *bytes = 0;
    reclaim_dir(s->root, dry, files, bytes);
    for (size_t i = 0; folders[i]; i++) {
        char *path = ig_store_path(s, folders[i], NULL);
        if (path) reclaim_dir(path, dry, files, bytes);
        free(path);
    }
}

void ig_store_reclaim(const struct ig_store *s)
{
    uint64_t files, bytes;
    ig_store_reclaim_count(s, false, &files, &bytes);
}
