/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand, for tests: LD_PRELOAD this library and set SHIM (rules.h).
 *
 * The operations, and the calls that they stand for beside those of their own name:
 *   open       openat, opendir        odirect, tmpfile  opens with that flag
 *   pread      read                   pwrite            write
 *   direct     writes past the page cache, which are pwrite too
 *   rdirect    reads past it, which are pread too
 *   uring      io_uring_queue_init
 *   fsync      fdatasync              fallocate         posix_fallocate
 *   link       linkat                 rename            renameat, renameat2
 *   unlink     unlinkat, rmdir        readdir           by the folder
 *   stat       lstat, fstat, fstatat  chmod             fchmod
 *   close, ftruncate, mkdir, statvfs, flock: themselves
 *
 * What libc calls inside itself (fts, nftw, remove, fopen) goes past the shim.
 */
#include "rules.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_direct(int fd)
{
    return nrules && !inside && fcntl(fd, F_GETFL) & O_DIRECT;
}

#define TRANSFER(name, op, direct, args, call, n)        \
    ssize_t name args                                    \
    {                                                    \
        int h = hit_fd(op, fd);                          \
        if (!h && is_direct(fd)) h = hit_fd(direct, fd); \
        if (h == FAIL) return -1;                        \
        n = cut(h, n);                                   \
        return REAL(name) call;                          \
    }
#define READS(name, args, call, n)  TRANSFER(name, "pread", "rdirect", args, call, n)
#define WRITES(name, args, call, n) TRANSFER(name, "pwrite", "direct", args, call, n)
READS(read, (int fd, void *p, size_t n), (fd, p, n), n)
READS(pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), n)
READS(pread64, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at), n)
WRITES(write, (int fd, const void *p, size_t n), (fd, p, n), n)
WRITES(pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), n)
WRITES(pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at), n)

struct io_uring;
int io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags);
int io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags)
{
    if (hit("uring", "ring") == FAIL) return -errno;
    return REAL(io_uring_queue_init)(n, ring, flags);
}

#define SIMPLE(name, test, args, call) \
    int name args                      \
    {                                  \
        if (test == FAIL) return -1;   \
        return REAL(name) call;        \
    }
SIMPLE(fsync, hit_fd("fsync", fd), (int fd), (fd))
SIMPLE(fdatasync, hit_fd("fsync", fd), (int fd), (fd))
SIMPLE(ftruncate, hit_fd("ftruncate", fd), (int fd, off_t n), (fd, n))
SIMPLE(ftruncate64, hit_fd("ftruncate", fd), (int fd, off64_t n), (fd, n))
SIMPLE(fallocate, hit_fd("fallocate", fd), (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
SIMPLE(fallocate64, hit_fd("fallocate", fd), (int fd, int mode, off64_t at, off64_t n),
       (fd, mode, at, n))
SIMPLE(fchmod, hit_fd("chmod", fd), (int fd, mode_t mode), (fd, mode))
SIMPLE(chmod, hit("chmod", path), (const char *path, mode_t mode), (path, mode))
SIMPLE(flock, hit_fd("flock", fd), (int fd, int how), (fd, how))
SIMPLE(link, hit("link", b), (const char *a, const char *b), (a, b))
SIMPLE(linkat, hit("link", b), (int x, const char *a, int y, const char *b, int flags),
       (x, a, y, b, flags))
SIMPLE(rename, hit("rename", b), (const char *a, const char *b), (a, b))
SIMPLE(renameat, hit("rename", b), (int x, const char *a, int y, const char *b), (x, a, y, b))
SIMPLE(renameat2, hit("rename", b), (int x, const char *a, int y, const char *b, unsigned flags),
       (x, a, y, b, flags))
SIMPLE(unlink, hit("unlink", path), (const char *path), (path))
SIMPLE(unlinkat, hit("unlink", path), (int at, const char *path, int flags), (at, path, flags))
SIMPLE(rmdir, hit("unlink", path), (const char *path), (path))
SIMPLE(mkdir, hit("mkdir", path), (const char *path, mode_t mode), (path, mode))
SIMPLE(stat, hit("stat", path), (const char *path, struct stat *st), (path, st))
SIMPLE(lstat, hit("stat", path), (const char *path, struct stat *st), (path, st))
SIMPLE(fstat, hit_fd("stat", fd), (int fd, struct stat *st), (fd, st))
SIMPLE(fstatat, hit("stat", path), (int at, const char *path, struct stat *st, int flags),
       (at, path, st, flags))
SIMPLE(statvfs, hit("statvfs", path), (const char *path, struct statvfs *st), (path, st))

#define READDIR(name, type)                                   \
    struct type *name(DIR *d)                                 \
    {                                                         \
        if (hit_fd("readdir", dirfd(d)) == FAIL) return NULL; \
        struct type *(*const real)(DIR *) = REAL(name);       \
        return real(d);                                       \
    }
READDIR(readdir, dirent)
READDIR(readdir64, dirent64)

DIR *opendir(const char *path)
{
    return hit("open", path) == FAIL ? NULL : REAL(opendir)(path);
}

/* A failed close has closed: the kernel gives the descriptor up in any case. */
int close(int fd)
{
    const int h = hit_fd("close", fd), error = errno;
    const int rc = REAL(close)(fd);
    if (h != FAIL) return rc;
    errno = error;
    return -1;
}

/* posix_fallocate returns its error. */
int posix_fallocate(int fd, off_t at, off_t n)
{
    return hit_fd("fallocate", fd) == FAIL ? errno : REAL(posix_fallocate)(fd, at, n);
}

/* The flag holds O_DIRECTORY's bit. */
static int is_tmpfile(int flags)
{
    return (flags & O_TMPFILE) == O_TMPFILE;
}

static int wants_mode(int flags)
{
    return (flags & O_CREAT) || is_tmpfile(flags);
}

#define OPEN(name, args, call)                                             \
    int name args                                                          \
    {                                                                      \
        va_list ap;                                                        \
        va_start(ap, flags);                                               \
        const mode_t mode = wants_mode(flags) ? va_arg(ap, mode_t) : 0;    \
        va_end(ap);                                                        \
        if (hit("open", path) == FAIL) return -1;                          \
        if ((flags & O_DIRECT) && hit("odirect", path) == FAIL) return -1; \
        if (is_tmpfile(flags) && hit("tmpfile", path) == FAIL) return -1;  \
        return REAL(name) call;                                            \
    }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))
