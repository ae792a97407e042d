/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many threads are worth starting: the affinity mask, cut by the CPU quota of the
 * cgroup (v2 cpu.max, v1 cpu.cfs_*), because a container shows all CPUs of its host.
 */
#include "base/base.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static bool read_line(const char *path, char *buf, size_t cap)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool ok = fgets(buf, (int)cap, f) != NULL;
    fclose(f);
    return ok;
}

/* CPUs granted by "quota period" or "quota" and "period" files; 0 when unlimited. */
static unsigned quota_cpus(void)
{
    char line[128];
    long long quota = -1, period = 0;
    if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        if (sscanf(line, "%lld %lld", &quota, &period) != 2) return 0; /* "max 100000" */
    } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        quota = atoll(line);
        if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line))
            period = atoll(line);
    }
    if (quota <= 0 || period <= 0) return 0;
    return (unsigned)((quota + period - 1) / period);
}

unsigned ig_cpus(void)
{
    cpu_set_t set;
    unsigned n = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = (unsigned)CPU_COUNT(&set);
    const unsigned quota = quota_cpus();
    if (quota && quota < n) n = quota;
    return n ? n : 1;
}
