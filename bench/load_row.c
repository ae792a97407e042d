/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row: in a new process, after the context, a first load with everything that belongs to it
 * (opening device and pack, arena, queues, staging memory, threads, kernels, verdict); the same
 * handle again and again; and at last a load that is not timed, while which memory is watched.
 */
#include "bench/load.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOADS 64u

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* ---- memory ---- */

static uint64_t anonymous(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %llu kB", &kib) == 1) break;
    if (f) fclose(f);
    return (uint64_t)kib << 10;
}

struct watch {
    bool stop; /* atomic */
    uint64_t most;
};

static void *watch_memory(void *arg)
{
    struct watch *w = arg;
    while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
        const uint64_t now = anonymous();
        if (now > w->most) w->most = now;
        usleep(500);
    }
    return NULL;
}

/* ---- a quota of processors ---- */

static bool put(const char *folder, const char *file, const char *text)
{
    char *path = ig_format("%s/%s", folder, file);
    FILE *f = path ? fopen(path, "we") : NULL;
    const bool written = f && fputs(text, f) >= 0;
    free(path);
    return (f ? fclose(f) == 0 : false) && written;
}

static const char *const group_format = "/sys/fs/cgroup/ingot-bench.%ld";

/* This process, in a group whose processor time is that of n processors; where no group can be
 * made, on n of them. */
static bool take_quota(unsigned n, bool *by_cgroup)
{
    char quota[40], self[24];
    char *group = ig_format(group_format, (long)getpid());
    if (!group) return false;
    snprintf(quota, sizeof quota, "%u 100000", n * 100000);
    snprintf(self, sizeof self, "%ld", (long)getpid());
    (void)put("/sys/fs/cgroup", "cgroup.subtree_control", "+cpu");
    *by_cgroup =
        mkdir(group, 0755) == 0 && put(group, "cpu.max", quota) && put(group, "cgroup.procs", self);
    if (!*by_cgroup) (void)rmdir(group);
    free(group);
    if (*by_cgroup) return true;
    cpu_set_t all, few;
    CPU_ZERO(&few);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < (int)n; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &few);
    return sched_setaffinity(0, sizeof few, &few) == 0;
}

static void leave_quota(void)
{
    char *group = ig_format(group_format, (long)getpid());
    if (group && put("/sys/fs/cgroup", "cgroup.procs", "0")) (void)rmdir(group);
    free(group);
}

/* ---- loads ---- */

struct row {
    const struct bench_case *c;
    struct bench_result *out;
    ingot_loader *loader;
    ingot_pack *pack;
};

static void make_cold(const struct row *r)
{
    if (r->c->cold) r->out->resident += bench_drop(r->c->pack);
}

static ingot_status open_row(struct row *r, ingot_error *e)
{
    const struct ingot_loader_options o = {
        .size = sizeof o, .device = r->c->device, .engine = r->c->engine, .threads = r->c->threads};
    return_if_error(ingot_loader_open(&o, &r->loader, e));
    return ingot_pack_open(NULL, r->c->pack, &r->pack, e);
}

/* One moment of the clock and of the processors' time. */
struct moment {
    double clock, cpu;
};

static struct moment moment(void)
{
    return (struct moment){bench_now(), cpu_seconds()};
}

/* The clock ends with the verdict: the release of a load is not in it. */
static ingot_status load(struct row *r, struct moment since, struct moment *took, ingot_error *e)
{
    const struct ingot_load_options o = {.size = sizeof o, .check = r->c->check};
    struct ingot_load_stats stats;
    ingot_load *l;
    return_if_error(ingot_load_start(r->loader, r->pack, &o, &l, e));
    const ingot_status status = ingot_load_wait(l, e);
    const struct moment now = moment();
    *took = (struct moment){now.clock - since.clock, now.cpu - since.cpu};
    ingot_load_get_stats(l, &stats);
    r->out->bytes = stats.placed;
    ingot_load_release(l);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ingot_status repeat(struct row *r, ingot_error *e)
{
    double all[LOADS];
    struct moment took;
    const unsigned n = r->c->repeat < LOADS ? r->c->repeat : LOADS;
    for (unsigned i = 0; i < n; i++) {
        make_cold(r);
        return_if_error(load(r, moment(), &took, e));
        all[i] = took.clock;
        if (i > 0 && took.clock >= r->out->best) continue;
        r->out->best = took.clock;
        r->out->best_cpu = took.cpu;
    }
    if (n == 0) return INGOT_OK;
    qsort(all, n, sizeof *all, by_value);
    r->out->median = n % 2 ? all[n / 2] : 0.5 * (all[n / 2 - 1] + all[n / 2]);
    return INGOT_OK;
}

static ingot_status watched(struct row *r, uint64_t before, ingot_error *e)
{
    struct watch w = {.most = anonymous()};
    struct moment ignored;
    pthread_t t;
    if (pthread_create(&t, NULL, watch_memory, &w) != 0) return ig_no_memory(e);
    make_cold(r);
    const ingot_status status = load(r, moment(), &ignored, e);
    __atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    r->out->own = w.most > before ? w.most - before : 0;
    return status;
}

static ingot_status measure(struct row *r, ingot_error *e)
{
    struct moment first;
    r->out->context = bench_context(r->c->device);
    const uint64_t memory = anonymous();
    make_cold(r);
    const struct moment start = moment();
    return_if_error(open_row(r, e));
    return_if_error(load(r, start, &first, e));
    r->out->first = first.clock;
    r->out->first_cpu = first.cpu;
    return_if_error(repeat(r, e));
    return watched(r, memory, e);
}

static void run_row(const void *arg, void *result)
{
    struct row r = {.c = arg, .out = result};
    ingot_error e = {0};
    if (r.c->processors && !take_quota(r.c->processors, &r.out->by_cgroup))
        snprintf(r.out->error, sizeof r.out->error, "no quota of processors to be had");
    else if (measure(&r, &e) != INGOT_OK)
        snprintf(r.out->error, sizeof r.out->error, "%.255s", e.message);
    ingot_pack_close(r.pack);
    ingot_loader_close(r.loader);
    if (r.out->by_cgroup) leave_quota();
}

void bench_row(const struct bench_case *c, struct bench_result *out)
{
    bench_child(run_row, c, out, sizeof *out);
}
