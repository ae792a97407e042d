/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand, for tests: LD_PRELOAD this library and set SHIM to rules
 * "op:match:nth:what", separated by ';'.
 *
 *   op     open odirect tmpfile pread pwrite fsync close ftruncate fallocate link rename
 *          (open: openat too; odirect, tmpfile: open with that flag; pread: read too;
 *          pwrite: write too; fsync: fdatasync too; link: linkat; rename: renameat2 too)
 *   match  a part of the path ('*': any); for descriptors the one behind /proc/self/fd;
 *          standard input, output and error never match
 *   nth    the call that is hit, from 1; '*': every call
 *   what   an errno such as EIO; SHORT (half the bytes); CUT (truncate the file to half, then
 *          go on); TOUCH (set its mtime to now, then go on); FLIP (change a byte of it, then go
 *          on); KILL (SIGKILL to the process)
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RULES = 8, FAIL = 1, SHORT, CUT, TOUCH, FLIP, KILL };

static struct rule {
    char op[16], match[256];
    long nth; /* 0: every call */
    int what, error;
    atomic_long calls;
} rules[RULES];
static int nrules;
static _Thread_local int inside; /* what the shim itself calls is left alone */

static const struct {
    const char *name;
    int what, error;
} actions[] = {
    {"SHORT", SHORT, 0},
    {"CUT", CUT, 0},
    {"TOUCH", TOUCH, 0},
    {"FLIP", FLIP, 0},
    {"KILL", KILL, 0},
    {"EIO", FAIL, EIO},
    {"ENOSPC", FAIL, ENOSPC},
    {"EINVAL", FAIL, EINVAL},
    {"EDQUOT", FAIL, EDQUOT},
    {"EFBIG", FAIL, EFBIG},
    {"EACCES", FAIL, EACCES},
    {"ENOENT", FAIL, ENOENT},
    {"EOPNOTSUPP", FAIL, EOPNOTSUPP},
    {"EINTR", FAIL, EINTR},
    {"EMFILE", FAIL, EMFILE},
    {"EROFS", FAIL, EROFS},
    {"EXDEV", FAIL, EXDEV},
};

static void add_rule(const char *text)
{
    struct rule *r = &rules[nrules];
    char nth[16], what[16];
    if (nrules == RULES ||
        sscanf(text, "%15[^:]:%255[^:]:%15[^:]:%15s", r->op, r->match, nth, what) != 4) {
        fprintf(stderr, "shim: bad rule %s\n", text);
        _exit(99);
    }
    r->nth = strcmp(nth, "*") == 0 ? 0 : atol(nth);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(what, actions[i].name) == 0) {
            r->what = actions[i].what;
            r->error = actions[i].error;
            nrules++;
            return;
        }
    }
    fprintf(stderr, "shim: unknown action %s\n", what);
    _exit(99);
}

__attribute__((constructor)) static void start(void)
{
    const char *env = getenv("SHIM");
    char *copy = strdup(env ? env : ""), *state = NULL;
    for (char *r = strtok_r(copy, ";", &state); r; r = strtok_r(NULL, ";", &state)) add_rule(r);
    free(copy);
}

static void disturb(const struct rule *r, const char *path)
{
    struct stat st;
    int fd;
    if (r->what == KILL) kill(getpid(), SIGKILL);
    if (r->what == TOUCH) utimensat(AT_FDCWD, path, NULL, 0);
    if (r->what == CUT && stat(path, &st) == 0 && truncate(path, st.st_size / 2) != 0) _exit(98);
    if (r->what == FLIP && (fd = open(path, O_RDWR)) >= 0) {
        unsigned char byte;
        const off_t middle = lseek(fd, 0, SEEK_END) / 2;
        if (pread(fd, &byte, 1, middle) != 1) _exit(98);
        byte ^= 1;
        if (pwrite(fd, &byte, 1, middle) != 1) _exit(98);
        close(fd);
    }
}

/* Does a rule hit this call?  FAIL (errno set), SHORT, or 0 to go on as usual. */
static int hit(const char *op, const char *path)
{
    if (inside) return 0;
    for (int i = 0; i < nrules; i++) {
        struct rule *r = &rules[i];
        if (strcmp(r->op, op) != 0) continue;
        if (strcmp(r->match, "*") != 0 && !strstr(path, r->match)) continue;
        const long n = atomic_fetch_add(&r->calls, 1) + 1;
        if (r->nth && r->nth != n) continue;
        inside = 1;
        disturb(r, path);
        inside = 0;
        errno = r->error;
        if (r->what == FAIL || r->what == SHORT) return r->what;
    }
    return 0;
}

static int hit_fd(const char *op, int fd)
{
    char link[64], path[4096];
    if (inside || nrules == 0 || (fd >= 0 && fd <= 2)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    return hit(op, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static size_t halved(int h, size_t n)
{
    return h == SHORT && n > 1 ? n / 2 : n;
}

#define TRANSFER(name, op, args, call, n) \
    ssize_t name args                     \
    {                                     \
        const int h = hit_fd(op, fd);     \
        if (h == FAIL) return -1;         \
        n = halved(h, n);                 \
        return REAL(name) call;           \
    }
TRANSFER(read, "pread", (int fd, void *p, size_t n), (fd, p, n), n)
TRANSFER(write, "pwrite", (int fd, const void *p, size_t n), (fd, p, n), n)
TRANSFER(pread, "pread", (int fd, void *p, size_t n, off_t at), (fd, p, n, at), n)
TRANSFER(pwrite, "pwrite", (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), n)
TRANSFER(pread64, "pread", (int fd, void *p, size_t n, off64_t at), (fd, p, n, at), n)
TRANSFER(pwrite64, "pwrite", (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at), n)

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
SIMPLE(link, hit("link", b), (const char *a, const char *b), (a, b))
SIMPLE(linkat, hit("link", b), (int x, const char *a, int y, const char *b, int flags),
       (x, a, y, b, flags))
SIMPLE(rename, hit("rename", b), (const char *a, const char *b), (a, b))
SIMPLE(renameat, hit("rename", b), (int x, const char *a, int y, const char *b), (x, a, y, b))
SIMPLE(renameat2, hit("rename", b), (int x, const char *a, int y, const char *b, unsigned flags),
       (x, a, y, b, flags))

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
