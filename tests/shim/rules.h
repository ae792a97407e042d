/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the shim: read from the environment, asked at every call.
 *
 * SHIM is a list of rules "op:match:nth:what", separated by ';'.
 *
 * op: what is called, see shim.c; "any" is all of them, counted together.
 *
 * match: a part of the path, '*' for any.  For descriptors, and for paths in /proc/self/fd, the one
 * behind it; standard input, output and error never match.
 *
 * nth: the call that is hit, from 1; '*', every one; '%3', every third.
 *
 * what: an errno such as EIO, or one of
 *   SHORT  half the bytes               PART  one of them to all of them
 *   CUT    truncate the file to half    GROW  write some bytes behind its end
 *   FLIP   change a byte in its middle  SWAP  rename another file of its size over it
 *   TOUCH  set its mtime to now         KILL  SIGKILL to the process
 *   STOP   SIGSTOP to the process       NONE  nothing, just be counted
 * where all but errno, SHORT and PART then let the call go on.
 *
 * SHIM_HIT=FILE: a line "op path" is added to FILE when a rule with a number hits: whoever counts
 * calls up sees what was hit, and where they end.  SHIM_SEED: varies PART.
 */
#ifndef SHIM_RULES_H
#define SHIM_RULES_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RULES = 8, FAIL = 1, SHORT, PART, CUT, GROW, FLIP, SWAP, TOUCH, KILL, STOP, NONE };

static struct rule {
    char op[16], match[256];
    long nth;   /* 0: every call */
    long every; /* 0: only the nth */
    int what, error;
    atomic_long calls;
} rules[RULES];
static int nrules;
static unsigned long seed;
static _Thread_local int inside; /* what the shim itself calls is left alone */

#define ERRNO(name)       \
    {                     \
#name, FAIL, name \
    }
#define OTHER(name)    \
    {                  \
#name, name, 0 \
    }
static const struct {
    const char *name;
    int what, error;
} actions[] = {OTHER(SHORT),  OTHER(PART),   OTHER(CUT),    OTHER(GROW),  OTHER(FLIP),
               OTHER(SWAP),   OTHER(TOUCH),  OTHER(KILL),   OTHER(STOP),  OTHER(NONE),
               ERRNO(EIO),    ERRNO(ENOSPC), ERRNO(EINVAL), ERRNO(EPERM), ERRNO(EDQUOT),
               ERRNO(EFBIG),  ERRNO(EACCES), ERRNO(ENOENT), ERRNO(EINTR), ERRNO(EOPNOTSUPP),
               ERRNO(EMFILE), ERRNO(EROFS),  ERRNO(EXDEV),  ERRNO(ENOLCK)};

static void add_rule(const char *text)
{
    struct rule *r = &rules[nrules];
    char nth[16], what[16];
    if (nrules == RULES ||
        sscanf(text, "%15[^:]:%255[^:]:%15[^:]:%15s", r->op, r->match, nth, what) != 4) {
        fprintf(stderr, "shim: bad rule %s\n", text);
        _exit(99);
    }
    r->nth = nth[0] == '*' || nth[0] == '%' ? 0 : atol(nth);
    r->every = nth[0] == '%' ? atol(nth + 1) : 0;
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
    const char *env = getenv("SHIM"), *number = getenv("SHIM_SEED");
    char *copy = strdup(env ? env : ""), *state = NULL;
    for (char *r = strtok_r(copy, ";", &state); r; r = strtok_r(NULL, ";", &state)) add_rule(r);
    free(copy);
    seed = number ? strtoul(number, NULL, 10) : 0;
}

static void must(int holds)
{
    if (!holds) _exit(98);
}

/* Rewrite the file in place, or a copy of it that is then renamed over it. */
static void change(const char *path, int swap)
{
    char other[4200];
    struct stat st;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
    const size_t size = (size_t)st.st_size;
    unsigned char *bytes = malloc(size + 1);
    if (!bytes) _exit(98);
    must(pread(fd, bytes, size, 0) == (ssize_t)size);
    bytes[size / 2] ^= 1;
    if (swap) {
        close(fd);
        snprintf(other, sizeof other, "%s.swap", path);
        must((fd = open(other, O_WRONLY | O_CREAT, 0600)) >= 0);
    }
    must(pwrite(fd, bytes, size, 0) == (ssize_t)size && close(fd) == 0);
    if (swap) must(rename(other, path) == 0);
    free(bytes);
}

static void disturb(const struct rule *r, const char *path)
{
    struct stat st;
    int fd;
    if (r->what == KILL) kill(getpid(), SIGKILL);
    if (r->what == STOP) raise(SIGSTOP);
    if (r->what == TOUCH) utimensat(AT_FDCWD, path, NULL, 0);
    if (r->what == CUT && stat(path, &st) == 0) must(truncate(path, st.st_size / 2) == 0);
    if (r->what == FLIP || r->what == SWAP) change(path, r->what == SWAP);
    if (r->what == GROW && (fd = open(path, O_WRONLY | O_APPEND)) >= 0) {
        must(write(fd, "grown", 5) == 5 && close(fd) == 0);
    }
}

static void note(const char *op, const char *path)
{
    char line[4200];
    const char *file = getenv("SHIM_HIT");
    const int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0) return;
    const int n = snprintf(line, sizeof line, "%s %s\n", op, path);
    must(write(fd, line, (size_t)n) == n);
    close(fd);
}

/* Does a rule hit this call?  FAIL (errno set), SHORT, PART, or 0 to go on as usual. */
static int hit_path(const char *op, const char *path)
{
    const int error = errno; /* a call that goes on finds it as it was */
    for (int i = 0; i < nrules; i++) {
        struct rule *r = &rules[i];
        if (strcmp(r->op, op) != 0 && strcmp(r->op, "any") != 0) continue;
        if (strcmp(r->match, "*") != 0 && !strstr(path, r->match)) continue;
        const long n = atomic_fetch_add(&r->calls, 1) + 1;
        if ((r->nth && r->nth != n) || (r->every && n % r->every != 0)) continue;
        inside = 1;
        if (r->nth || r->every) note(op, path);
        disturb(r, path);
        inside = 0;
        errno = r->what == FAIL ? r->error : error;
        if (r->what == FAIL || r->what == SHORT || r->what == PART) return r->what;
    }
    return 0;
}

static const char *behind(char path[4096], const char *link)
{
    const int error = errno;
    const ssize_t n = readlink(link, path, 4095);
    path[n < 0 ? 0 : n] = 0;
    errno = error;
    return path;
}

static int hit_fd(const char *op, int fd)
{
    char link[64], path[4096];
    if (inside || nrules == 0 || (fd >= 0 && fd <= 2)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return hit_path(op, behind(path, link));
}

static int hit(const char *op, const char *path)
{
    char real[4096];
    if (inside || nrules == 0) return 0;
    return hit_path(op, strncmp(path, "/proc/self/fd/", 14) == 0 ? behind(real, path) : path);
}

/* As many bytes as the call may move. */
static size_t cut(int h, size_t n)
{
    static atomic_ulong calls;
    if (h == SHORT && n > 1) return n / 2;
    if (h != PART || n == 0) return n;
    unsigned long x = (seed << 32) + atomic_fetch_add(&calls, 1) + 1;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ x >> 27) * 0x94d049bb133111ebul;
    return 1 + (size_t)((x ^ x >> 31) % n);
}

#endif
