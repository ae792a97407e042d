/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes a call; smaller pieces keep the count honest. */
#define MOST ((size_t)1 << 30)

ingot_status ig_pread(int fd, const char *path, void *buf, size_t n, uint64_t off, ingot_error *e)
{
    uint8_t *p = buf;
    while (n > 0) {
        const ssize_t got = pread(fd, p, n < MOST ? n : MOST, (off_t)off);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            ig_fail_sys(e, errno, "%s: cannot read %zu bytes at offset %llu", path, n,
                        (unsigned long long)off);
            return ig_at_offset(e, path, off);
        }
        if (got == 0) {
            ig_fail(
                e, INGOT_ERR_INPUT,
                "%s: file ends at offset %llu, expected %zu more bytes (truncated while in use?)",
                path, (unsigned long long)off, n);
            return ig_at_offset(e, path, off);
        }
        p += got, off += (uint64_t)got, n -= (size_t)got;
    }
    return INGOT_OK;
}

ingot_status ig_pwrite(int fd, const char *path, const void *buf, size_t n, uint64_t off,
                       ingot_error *e)
{
    const uint8_t *p = buf;
    while (n > 0) {
        const ssize_t put = pwrite(fd, p, n < MOST ? n : MOST, (off_t)off);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            ig_fail_sys(e, put < 0 ? errno : EIO, "%s: cannot write %zu bytes at offset %llu", path,
                        n, (unsigned long long)off);
            return ig_at_offset(e, path, off);
        }
        p += put, off += (uint64_t)put, n -= (size_t)put;
    }
    return INGOT_OK;
}

ingot_status ig_truncate(int fd, const char *path, uint64_t size, ingot_error *e)
{
    while (ftruncate(fd, (off_t)size) != 0) {
        if (errno == EINTR) continue;
        ig_fail_sys(e, errno, "%s: cannot set the size to %llu bytes", path,
                    (unsigned long long)size);
        return ig_at(e, path, NULL, 0);
    }
    return INGOT_OK;
}

ingot_status ig_fsync(int fd, const char *path, ingot_error *e)
{
    while (fsync(fd) != 0) {
        if (errno == EINTR) continue;
        ig_fail_sys(e, errno, "%s: cannot flush to disk", path);
        return ig_at(e, path, NULL, 0);
    }
    return INGOT_OK;
}

ingot_status ig_close(int *fd, const char *path, ingot_error *e)
{
    const int old = *fd;
    *fd = -1;
    /* On Linux the descriptor is gone even when close reports EINTR; a retry could hit
     * another thread's file. */
    if (old < 0 || close(old) == 0 || errno == EINTR) return INGOT_OK;
    ig_fail_sys(e, errno, "%s: cannot close", path);
    return ig_at(e, path, NULL, 0);
}

ingot_status ig_fsync_dir(const char *path, ingot_error *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ig_fail_sys(e, errno, "%s: cannot open folder", path);
    ingot_status status = INGOT_OK;
    int rc;
    while ((rc = fsync(fd)) != 0 && errno == EINTR) continue;
    /* Some file systems have no fsync for folders; their renames are as safe as they get. */
    if (rc != 0 && errno != EINVAL && errno != ENOTSUP)
        status = ig_fail_sys(e, errno, "%s: cannot flush folder to disk", path);
    close(fd);
    return status;
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

/* What is made is flushed: a folder that a power cut takes away takes along what is in it. */
static ingot_status make_folder(const char *path, ingot_error *e)
{
    struct stat st;
    if (mkdir(path, 0777) == 0) return fsync_parent(path, e);
    const int why = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return INGOT_OK;
    return ig_fail_sys(e, why, "%s: cannot create folder", path);
}

ingot_status ig_mkdirs(const char *path, ingot_error *e)
{
    char *copy = strdup(path);
    if (!copy) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    for (char *p = copy + 1; status == INGOT_OK; p++) {
        const char c = *p;
        if (c != '/' && c != '\0') continue;
        *p = '\0';
        status = make_folder(copy, e);
        *p = c;
        if (c == '\0') break;
    }
    free(copy);
    return status;
}

ingot_status ig_read_file(const char *path, size_t max, char **data, size_t *n, ingot_error *e)
{
    char *buf = NULL;
    struct stat st;
    ingot_status status = INGOT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        status = ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        ig_at(e, path, NULL, 0);
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        status =
            ig_fail(e, INGOT_ERR_INPUT, "%s: not a regular file", ig_esc(path, strlen(path)).s);
        goto out;
    }
    if ((uint64_t)st.st_size > max) {
        status = ig_fail(e, INGOT_ERR_INPUT, "%s: %llu bytes, expected at most %zu",
                         ig_esc(path, strlen(path)).s, (unsigned long long)st.st_size, max);
        goto out;
    }
    buf = malloc((size_t)st.st_size + 1);
    if (!buf) {
        status = ig_no_memory(e);
        goto out;
    }
    status = ig_pread(fd, path, buf, (size_t)st.st_size, 0, e);
    if (status != INGOT_OK) goto out;
    buf[st.st_size] = '\0';
    *data = buf;
    *n = (size_t)st.st_size;
    buf = NULL;
out:
    free(buf);
    if (fd >= 0) close(fd);
    return status;
}

ingot_status ig_each_entry(const char *path, bool absent_ok, ig_entry_fn *fn, void *ctx,
                           ingot_error *e)
{
    ingot_status status = INGOT_OK;
    DIR *dir = opendir(path);
    if (!dir && absent_ok && errno == ENOENT) return INGOT_OK;
    if (!dir) return ig_fail_sys(e, errno, "%s: cannot list", ig_esc(path, strlen(path)).s);
    while (status == INGOT_OK) {
        errno = 0; /* the end and a failure look alike but for this */
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            status = ig_fail_sys(e, errno, "%s: cannot list", ig_esc(path, strlen(path)).s);
        if (!entry) break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = fn(ctx, entry->d_name, e);
    }
    closedir(dir);
    return status;
}

char *ig_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    return text;
}

void *ig_array(size_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

/* Page-aligned, for direct I/O demands it, and because the kernel's copy to a buffer that starts
 * 16 bytes into a page, as malloc's large ones do, takes three times as long on some processors.
 * Large ones on huge pages: a device then gets a few long segments instead of a thousand. */
void *ig_pages(size_t n)
{
    const size_t huge = (size_t)2 << 20;
    const size_t align = n >= huge ? huge : IG_PAGE;
    void *p = aligned_alloc(align, ig_round_up(n, align));
    if (p && align == huge) (void)madvise(p, ig_round_up(n, align), MADV_HUGEPAGE);
    return p;
}

ingot_status ig_write_new(const char *path, mode_t mode, const void *data, size_t n, ingot_error *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        const struct ig_esc shown = ig_esc(path, strlen(path));
        const ingot_status status =
            errno == EEXIST ? ig_fail(e, INGOT_ERR_EXISTS, "%s: exists already", shown.s)
                            : ig_fail_sys(e, errno, "%s: cannot create", shown.s);
        ig_at(e, path, NULL, 0);
        return status;
    }
    ingot_status status = ig_pwrite(fd, path, data, n, 0, e);
    if (status == INGOT_OK) status = ig_fsync(fd, path, e);
    const ingot_status closed = ig_close(&fd, path, status == INGOT_OK ? e : NULL);
    if (status == INGOT_OK) status = closed;
    if (status != INGOT_OK) (void)unlink(path);
    return status;
}
