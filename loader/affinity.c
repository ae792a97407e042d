/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that read stay on the GPU's NUMA node: staging memory then lies there too, and copies do
 * not cross the link between sockets.
 */
#include "loader/load.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* "0-15,32-47": the processors of a list as the kernel writes it. */
static bool parse_list(const char *s, cpu_set_t *out)
{
    CPU_ZERO(out);
    while (*s && *s != '\n') {
        char *end;
        const unsigned long first = strtoul(s, &end, 10);
        unsigned long last = first;
        if (end == s) return false;
        if (*end == '-') {
            s = end + 1;
            last = strtoul(s, &end, 10);
            if (end == s) return false;
        }
        for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++) CPU_SET(i, out);
        s = *end == ',' ? end + 1 : end;
        if (*end && *end != ',' && *end != '\n') return false;
    }
    return true;
}

bool ig_node_cpus(int node, unsigned wanted, cpu_set_t *out)
{
    char path[64], text[1024];
    cpu_set_t mine;
    if (node < 0 || sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *f = fopen(path, "re");
    const bool ok = f && fgets(text, sizeof text, f) && parse_list(text, out);
    if (f) fclose(f);
    if (!ok) return false;
    CPU_AND(out, out, &mine);
    return (unsigned)CPU_COUNT(out) >= wanted;
}
