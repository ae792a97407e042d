/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: what `ingot load` reaches, beside what the machine reaches, in one run.
 *
 * Each row is a process of its own (load_row.c).  "first" begins after the context was made and
 * holds all the rest; "best" and "median" are of loads by the same handle; "of %" is of copies of
 * 256 MiB from pinned memory, for cold packs of direct reads of the same file just before.
 */
#include "bench/load.h"
#include "loader/device.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LIST 16u
#define HELP                                                                                    \
    "load [--device D] [--dir FOLDER] [--sizes BYTES,...] [--sources warm,tmpfs,cold]\n"        \
    "     [--engines auto,ring,map,direct] [--checks full,fast,off] [--repeat N]\n"             \
    "     [--parts limits,rows,sweep,quota]\n"                                                  \
    "A folder on the disk in question needs room for twice the largest size; sweep and quota\n" \
    "load the largest one that is at most 8 GB.  Exit code 1: a figure misses its target.\n"

struct list {
    const char *item[LIST];
    unsigned n;
};
struct bench {
    const char *device, *dir;
    char name[32]; /* of the device */
    struct list sizes, sources, engines, checks, parts;
    unsigned repeat;
    char *work, *shm; /* folders: on the disk and on tmpfs */
    char *pack;
    double read; /* from the page cache, bytes a second */
    struct bench_limits limits;
    bool has_limits;
    unsigned missed;
};

void bench_die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(4);
}

static struct list cut(char *text)
{
    struct list l = {.n = 0};
    for (char *rest = text, *item; (item = strsep(&rest, ","));) {
        if (l.n == LIST) bench_die("at most %u in a list", LIST);
        l.item[l.n++] = item;
    }
    return l;
}

static bool has(const struct list *l, const char *item)
{
    for (unsigned i = 0; i < l->n; i++)
        if (strcmp(l->item[i], item) == 0) return true;
    return false;
}

/* Which of names[0..n) an item of a list is. */
static unsigned find(const char *item, const char *const *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(item, names[i]) == 0) return i;
    bench_die("unknown: %s", item);
}

static const char *const engine_names[] = {"auto", "ring", "map", "direct"};
static const char *const check_names[] = {"full", "fast", "off"};

static uint64_t number(const char *text)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    if (!*text || *end) bench_die("%s: not a number", text);
    return n;
}

/* ---- the table ---- */

/* "MISSED", when a figure that this device is held to is not reached. */
static const char *verdict(struct bench *b, const struct bench_case *c,
                           const struct bench_result *r, double share)
{
    const bool held = strncmp(b->name, "cuda", 4) == 0 && c->engine != INGOT_ENGINE_MAP &&
                      c->threads == 0 && c->processors == 0;
    const bool slow = c->cold ? share < 97 && c->engine != INGOT_ENGINE_RING
                              : share < 97.5 && c->engine != INGOT_ENGINE_DIRECT &&
                                    c->check == INGOT_CHECK_FULL && r->bytes >= 4000000000u;
    const bool missed = held && (slow || r->own > (uint64_t)128 << 20);
    b->missed += missed;
    return missed ? " MISSED" : "";
}

static void row(struct bench *b, const char *source, const struct bench_case *c, double limit)
{
    struct bench_result r;
    char threads[16] = "-", how[16] = "";
    bench_row(c, &r);
    if (c->threads) snprintf(threads, sizeof threads, "%u", c->threads);
    if (c->processors) snprintf(how, sizeof how, "/%u%s", c->processors, r.by_cgroup ? "q" : "a");
    printf("%-6s %-6s %-5s %4s%-4s ", source, engine_names[c->engine], check_names[c->check],
           threads, how);
    if (*r.error) {
        printf("%s\n", r.error);
        b->missed++;
        return;
    }
    const double rate = (double)r.bytes / r.best, share = limit > 0 ? 100 * rate / limit : 0;
    printf("%8.4f %8.4f %8.4f %7.2f %6.1f %6.2f %6.2f %6.1f%s", r.first, r.best, r.median,
           rate * 1e-9, share, r.first_cpu, r.best_cpu, (double)r.own / (1 << 20),
           verdict(b, c, &r, share));
    if (r.resident) printf("  not cold: %llu bytes stayed", (unsigned long long)r.resident);
    putchar('\n');
    fflush(stdout);
}

static void about(const struct bench *b)
{
    char line[256], cpu[256] = "";
    struct utsname u;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !*cpu && fgets(line, sizeof line, f))
        (void)sscanf(line, "model name : %255[^\n]", cpu);
    if (f) fclose(f);
    uname(&u);
    printf("# bench/load on %s: %s, %u processors, %s %s; files in %s\n", b->name, cpu, ig_cpus(),
           u.sysname, u.release, b->work);
}

static void heading(uint64_t bytes)
{
    printf("\n%llu bytes\n", (unsigned long long)bytes);
    printf("%-6s %-6s %-5s %-8s %8s %8s %8s %7s %6s %6s %6s %6s\n", "source", "engine", "check",
           "threads", "first s", "best s", "median", "GB/s", "of %", "cpu 1", "cpu s", "MiB");
}

static void print_limits(struct bench *b)
{
    const struct bench_limits *l = &b->limits;
    bench_load_limits(b->name, b->pack, &b->limits);
    if (*b->limits.error) bench_die("%s", b->limits.error);
    b->has_limits = true;
    printf("\nlimits (GB/s)\n");
    for (unsigned i = 0; i < BENCH_CHUNKS; i++)
        printf("  copies of %3llu MiB from pinned memory          %8.2f\n",
               (unsigned long long)(bench_chunks[i] >> 20), l->copy[i] * 1e-9);
    printf("  %-44s %8.2f\n", "pinning a map of a file in the page cache", l->pin_map * 1e-9);
    printf("  %-44s %8.2f\n", "pinning anonymous memory that is there", l->pin_memory * 1e-9);
    printf("  %-44s %8.2f\n", "SHA-256 of 4 KiB blocks of device memory", l->sha256 * 1e-9);
    printf("  %-44s %8.2f\n", "XXH3-128 of 64 KiB spans of device memory", l->xxh3 * 1e-9);
    printf("  %-44s %8.2f\n", "reading the file from the page cache", b->read * 1e-9);
    fflush(stdout);
}

/* ---- what is asked for ---- */

static double ceiling(const struct bench *b)
{
    return b->has_limits ? b->limits.copy[BENCH_CHUNKS - 1] : 0;
}

static void rows_of(struct bench *b, const char *source)
{
    const bool cold = strcmp(source, "cold") == 0, tmpfs = strcmp(source, "tmpfs") == 0;
    struct bench_case c = {.device = b->name, .pack = b->pack, .cold = cold, .repeat = b->repeat};
    if (cold && c.repeat > 2) c.repeat = 2;
    char *copy = tmpfs ? bench_to_tmpfs(b->pack, b->shm) : NULL;
    if (tmpfs && !copy) {
        printf("%-6s no room for it\n", source);
        return;
    }
    if (copy) c.pack = copy;
    for (unsigned i = 0; i < b->engines.n; i++)
        for (unsigned k = 0; k < b->checks.n; k++) {
            double limit = ceiling(b);
            c.engine = (ingot_engine)find(b->engines.item[i], engine_names, 4);
            c.check = (ingot_check)find(b->checks.item[k], check_names, 3);
            if (tmpfs && c.engine == INGOT_ENGINE_DIRECT) continue; /* there is nothing to pass */
            if (cold) {
                if (bench_drop(b->pack)) printf("%s: stays in the page cache\n", b->pack);
                limit = bench_disk(b->pack);
                printf("%-6s disk %.2f GB/s\n", source, limit * 1e-9);
            }
            row(b, source, &c, limit);
        }
    if (copy) bench_remove(b->shm);
    free(copy);
}

static void sweep(struct bench *b)
{
    struct bench_case c = {.device = b->name, .pack = b->pack, .repeat = b->repeat};
    const unsigned cpus = ig_cpus();
    for (c.threads = cpus < 4 ? cpus : 4; c.threads <= cpus; c.threads += cpus > 8 ? 2 : 1)
        row(b, "warm", &c, ceiling(b));
}

static void quota(struct bench *b)
{
    struct bench_case c = {
        .device = b->name, .pack = b->pack, .repeat = b->repeat, .processors = 4};
    for (unsigned i = 0; i < b->engines.n; i++) {
        c.engine = (ingot_engine)find(b->engines.item[i], engine_names, 4);
        row(b, "warm", &c, ceiling(b));
    }
}

static void one_size(struct bench *b, uint64_t bytes, bool extras)
{
    b->pack = bench_pack(b->work, bytes);
    b->read = bench_read(b->pack, false); /* and into the page cache */
    b->read = bench_read(b->pack, false);
    if (!b->has_limits && has(&b->parts, "limits")) print_limits(b);
    heading(bytes);
    for (unsigned i = 0; has(&b->parts, "rows") && i < b->sources.n; i++) {
        const char *source = b->sources.item[i];
        if (strcmp(source, "cold") != 0) (void)bench_read(b->pack, false);
        rows_of(b, source);
    }
    (void)bench_read(b->pack, false);
    if (extras && has(&b->parts, "sweep")) sweep(b);
    if (extras && has(&b->parts, "quota")) quota(b);
    bench_remove(b->work);
    free(b->pack);
}

static void name_device(const void *arg, void *result)
{
    const struct bench *b = arg;
    struct bench_limits *out = result;
    struct ig_dev *d;
    ingot_error e = {0};
    if (ig_dev_open(b->device, 0, &d, &e) != INGOT_OK) {
        snprintf(out->error, sizeof out->error, "%.255s", e.message);
        return;
    }
    snprintf(out->model, sizeof out->model, "%s", d->info.name);
    d->ops->close(d);
}

static void read_options(struct bench *b, int argc, char **argv)
{
    static const struct option options[] = {{"device", 1, NULL, 'd'},  {"dir", 1, NULL, 'D'},
                                            {"sizes", 1, NULL, 's'},   {"sources", 1, NULL, 'o'},
                                            {"engines", 1, NULL, 'e'}, {"checks", 1, NULL, 'c'},
                                            {"repeat", 1, NULL, 'r'},  {"parts", 1, NULL, 'p'},
                                            {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        struct list *l = c == 's'   ? &b->sizes
                         : c == 'o' ? &b->sources
                         : c == 'e' ? &b->engines
                         : c == 'c' ? &b->checks
                         : c == 'p' ? &b->parts
                                    : NULL;
        if (c == 'h') {
            fputs(HELP, stdout);
            exit(0);
        }
        if (c == '?') exit(2);
        if (l) *l = cut(optarg);
        if (c == 'd') b->device = optarg;
        if (c == 'D') b->dir = optarg;
        if (c == 'r') b->repeat = (unsigned)number(optarg);
    }
}

int main(int argc, char **argv)
{
    static char sources[] = "warm,tmpfs,cold", engines[] = "auto,ring,map,direct",
                checks[] = "full,fast,off", parts[] = "limits,rows,sweep,quota",
                gpu[] = "500000000,1000000000,7640000000,28000000000", host[] = "500000000";
    struct bench b = {.repeat = 5};
    struct bench_limits device;
    const char *tmp = getenv("TMPDIR");
    b.dir = tmp ? tmp : "/tmp";
    b.sources = cut(sources);
    b.engines = cut(engines);
    b.checks = cut(checks);
    b.parts = cut(parts);
    read_options(&b, argc, argv);
    bench_child(name_device, &b, &device, sizeof device);
    if (*device.error) bench_die("%s", device.error);
    snprintf(b.name, sizeof b.name, "%.31s", device.model);
    if (!b.sizes.n) b.sizes = cut(strncmp(b.name, "cuda", 4) == 0 ? gpu : host);
    b.work = ig_format("%s/ingot-bench.%ld", b.dir, (long)getpid());
    b.shm = ig_format("/dev/shm/ingot-bench.%ld", (long)getpid());
    about(&b);
    uint64_t extras = 0;
    for (unsigned i = 0; i < b.sizes.n; i++) {
        const uint64_t bytes = number(b.sizes.item[i]);
        if (bytes <= 8000000000u && bytes > extras) extras = bytes;
    }
    for (unsigned i = 0; i < b.sizes.n; i++)
        one_size(&b, number(b.sizes.item[i]), number(b.sizes.item[i]) == extras);
    free(b.work);
    free(b.shm);
    return b.missed ? 1 : 0;
}
