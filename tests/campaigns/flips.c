/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flips PACK [--full] [--seed N]: flip single bits of a pack, one at a time, and hold verify to it.
 * PACK is <64 hex digits>.ingot with its tree beside it.
 *
 * --full takes every bit of the superblock and 20,000 random ones of the weights by full verify,
 * which must name the very page; every bit of the tail by XXH3; and every ninth of the tail by full
 * verify as well.  A full verify makes the same checks as --fast does, in the same code, and those
 * of SHA-256 besides, so that what XXH3 finds in every bit, full finds; the sample shows that it
 * also names the page.  The short form takes a stride through each of these.
 *
 * Then the file is cut at every page, a byte before and a byte behind, and a byte and a page are
 * added to it: refused each time.
 */
#include "store/format.h"
#include "verify/verify.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 2 };

struct part {
    const char *name;
    uint64_t first, end, stride; /* bits */
    enum ig_level level;
    bool random; /* as many random ones of these bits */
};
struct campaign {
    const char *path;
    const uint8_t *bytes;
    uint64_t size;
    uint8_t digest[IG_HASH];
    uint64_t seed;
    const struct part *part;
    uint64_t next, damages, missed, misplaced;
};

static void die(const char *what)
{
    fprintf(stderr, "flips: %s\n", what);
    exit(2);
}

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static bool covers(json_t *b, uint64_t byte)
{
    json_t *page = json_object_get(b, "page"), *offset = json_object_get(b, "offset");
    json_t *length = json_object_get(b, "length");
    if (offset && length) {
        const uint64_t at = (uint64_t)json_integer_value(offset);
        return byte >= at && byte - at < (uint64_t)json_integer_value(length);
    }
    return page && (uint64_t)json_integer_value(page) == byte / IG_PAGE;
}

/* What the report says of a damage at `byte`: found, and found there. */
static void judge(struct campaign *c, const char *path, uint64_t byte, enum ig_level level,
                  const char *what)
{
    const struct ig_verify v = {.level = level, .threads = 1};
    json_t *report = NULL, *b;
    ingot_error e = {0};
    bool placed = false;
    size_t i;
    const ingot_status status = ig_verify_pack(path, "pack", c->digest, &v, &report, &e);
    const bool found = status == INGOT_OK && !json_is_true(json_object_get(report, "ok"));
    json_array_foreach(json_object_get(report, "bad"), i, b)
    {
        /* Full verify has the tree, and the tree knows the page. */
        const bool page = strcmp(json_string_value(json_object_get(b, "kind")), "page") == 0;
        if ((page || level != IG_LEVEL_FULL) && covers(b, byte)) placed = true;
    }
    __atomic_fetch_add(&c->damages, 1, __ATOMIC_RELAXED);
    if (found && (placed || byte == UINT64_MAX)) {
        json_decref(report);
        return;
    }
    __atomic_fetch_add(found ? &c->misplaced : &c->missed, 1, __ATOMIC_RELAXED);
    char *text = report ? json_dumps(report, JSON_COMPACT) : NULL;
    printf("flips: FOUND: %s: %s: %s %s\n", what, found ? "misplaced" : "missed",
           ingot_status_name(status), text ? text : e.message);
    free(text);
    json_decref(report);
}

static void write_at(int fd, const void *p, size_t n, uint64_t at)
{
    if (pwrite(fd, p, n, (off_t)at) != (ssize_t)n) die("cannot write the copy");
}

/* A folder of its own for each thread, with a copy of the pack and its tree. */
static int make_copy(const struct campaign *c, unsigned k, char path[4096])
{
    const char *base = strrchr(c->path, '/'), *tmp = getenv("TMPDIR");
    char dir[200], tree[4096], *data;
    size_t n;
    snprintf(dir, sizeof dir, "%.150s/flips.%u", tmp ? tmp : "/tmp", k);
    if (mkdir(dir, 0700) != 0) die("cannot make a folder in TMPDIR");
    snprintf(path, 4096, "%s/%s", dir, base ? base + 1 : c->path);
    snprintf(tree, sizeof tree, "%.*s.tree", (int)strlen(c->path) - 6, c->path);
    if (ig_read_file(tree, (size_t)1 << 30, &data, &n, NULL) != INGOT_OK) die("no tree");
    snprintf(tree, sizeof tree, "%.*s.tree", (int)strlen(path) - 6, path);
    const int t = open(tree, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (t < 0 || fd < 0) die("cannot make a copy");
    write_at(t, data, n, 0);
    write_at(fd, c->bytes, c->size, 0);
    close(t);
    free(data);
    return fd;
}

struct worker {
    struct campaign *c;
    int fd;
    char path[4096];
};

static void *flip_bits(void *arg)
{
    const struct worker *w = arg;
    struct campaign *c = w->c;
    const struct part *p = c->part;
    for (;;) {
        const uint64_t i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        uint64_t bit = p->first + i * p->stride;
        if (bit >= p->end) return NULL;
        if (p->random) bit = p->first + mix(c->seed + i) % (p->end - p->first);
        const uint64_t byte = bit / 8;
        const uint8_t damaged = c->bytes[byte] ^ (uint8_t)(1u << (bit % 8));
        char what[80];
        write_at(w->fd, &damaged, 1, byte);
        snprintf(what, sizeof what, "bit %llu of byte %llu (seed %llu)",
                 (unsigned long long)(bit % 8), (unsigned long long)byte,
                 (unsigned long long)c->seed);
        judge(c, w->path, byte, p->level, what);
        write_at(w->fd, &c->bytes[byte], 1, byte);
    }
}

static void run_part(struct campaign *c, const struct part *p, struct worker *workers)
{
    pthread_t threads[THREADS];
    const uint64_t before = c->damages;
    c->part = p;
    c->next = 0;
    for (int k = 0; k < THREADS; k++)
        if (pthread_create(&threads[k], NULL, flip_bits, &workers[k]) != 0) die("no thread");
    for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
    printf("flips: %s: %llu bits by %s verify\n", p->name,
           (unsigned long long)(c->damages - before), p->level == IG_LEVEL_FULL ? "full" : "fast");
    fflush(stdout);
}

static void cut(struct campaign *c, const struct worker *w, uint64_t size)
{
    char what[60];
    if (ftruncate(w->fd, (off_t)size) != 0) die("cannot cut the copy");
    snprintf(what, sizeof what, "size %llu", (unsigned long long)size);
    judge(c, w->path, UINT64_MAX, IG_LEVEL_QUICK, what);
    if (size > c->size)
        if (ftruncate(w->fd, (off_t)c->size) != 0) die("cannot cut the copy");
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    struct campaign c = {.path = argc > 1 ? argv[1] : "", .seed = 1};
    bool full = false;
    char *bytes;
    size_t size;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) full = true;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) c.seed = strtoull(argv[++i], NULL, 10);
    }
    const char *base = strrchr(c.path, '/');
    base = base ? base + 1 : c.path;
    if (strlen(base) != 70 || !ig_unhex(c.digest, IG_HASH, base)) die("PACK is no pack's name");
    if (ig_read_file(c.path, (size_t)1 << 30, &bytes, &size, NULL) != INGOT_OK) die("cannot read");
    c.bytes = (const uint8_t *)bytes;
    c.size = size;
    const uint64_t tail = ig_get64(c.bytes + SB_TAIL), all = 8 * c.size;
    if (tail >= c.size || tail % IG_PAGE) die("not the pack that this was written for");
    /* Strides are odd, so that they visit every bit of a byte. */
    const struct part parts[] = {
        {"superblock", 0, 8ull * IG_PAGE, full ? 1 : 331, IG_LEVEL_FULL, false},
        {"tail", 8 * tail, all, full ? 1 : 997, IG_LEVEL_FAST, false},
        {"tail", 8 * tail, all, full ? 9 : 8009, IG_LEVEL_FULL, false},
        {"weights", 8ull * 65536, 8 * tail, (8 * tail - 8ull * 65536) / (full ? 19999 : 199),
         IG_LEVEL_FULL, true},
        {"zeros before the weights", 8ull * IG_PAGE, 8ull * 65536, full ? 61 : 4999, IG_LEVEL_FULL,
         false},
    };
    for (unsigned k = 0; k < THREADS; k++) {
        workers[k].c = &c;
        workers[k].fd = make_copy(&c, k, workers[k].path);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) run_part(&c, &parts[i], workers);
    const uint64_t flips = c.damages;
    cut(&c, &workers[0], c.size + 1);
    cut(&c, &workers[0], c.size + IG_PAGE);
    const uint64_t step = full ? IG_PAGE : 16 * IG_PAGE;
    for (uint64_t n = c.size; n >= step; n -= step) { /* from the end: what is cut is gone */
        cut(&c, &workers[0], n - 1);
        cut(&c, &workers[0], n - step + 1);
        cut(&c, &workers[0], n - step);
    }
    printf("flips: %llu flips, %llu sizes: %llu missed, %llu misplaced (seed %llu, %s)\n",
           (unsigned long long)flips, (unsigned long long)(c.damages - flips),
           (unsigned long long)c.missed, (unsigned long long)c.misplaced,
           (unsigned long long)c.seed, full ? "full" : "short");
    free(bytes);
    return c.missed || c.misplaced ? 1 : 0;
}
