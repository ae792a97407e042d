/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that may still be taken.  In a container the host's free memory is not ours: the limit is
 * the cgroup's, on every level up to the root.  Clean page cache counts as used there and is given
 * back under pressure, so it is free.
 */
#include "loader/residency.h"

#include <stdlib.h>
#include <string.h>

struct names { /* of a controller's files */
    const char *mount, *limit[2], *usage, *stat, *clean[2];
};
static const struct names v2 = {"",
                                {"memory.max", "memory.high"},
                                "memory.current",
                                "memory.stat",
                                {"inactive_file", "active_file"}};
static const struct names v1 = {"/memory",
                                {"memory.limit_in_bytes", NULL},
                                "memory.usage_in_bytes",
                                "memory.stat",
                                {"total_inactive_file", "total_active_file"}};

static FILE *open_in(const char *folder, const char *file)
{
    char *path = ig_format("%s/%s", folder, file);
    FILE *f = path ? fopen(path, "re") : NULL;
    free(path);
    return f;
}

/* The number in a file; UINT64_MAX for "max", for none and for anything else. */
static uint64_t number_in(const char *folder, const char *file)
{
    unsigned long long n = UINT64_MAX;
    FILE *f = open_in(folder, file);
    if (!f) return UINT64_MAX;
    if (fscanf(f, "%llu", &n) != 1) n = UINT64_MAX;
    fclose(f);
    return n;
}

/* Dirty pages and those being written are not free yet, but are few and soon will be. */
static uint64_t clean_in(const char *folder, const struct names *k)
{
    char key[64];
    unsigned long long n;
    uint64_t sum = 0;
    FILE *f = open_in(folder, k->stat);
    while (f && fscanf(f, "%63s %llu", key, &n) == 2)
        if (strcmp(key, k->clean[0]) == 0 || strcmp(key, k->clean[1]) == 0) sum += n;
    if (f) fclose(f);
    return sum;
}

static uint64_t room_in(const char *folder, const struct names *k)
{
    uint64_t limit = number_in(folder, k->limit[0]);
    if (k->limit[1]) {
        const uint64_t high = number_in(folder, k->limit[1]);
        if (high < limit) limit = high;
    }
    const uint64_t usage = number_in(folder, k->usage);
    if (limit >= (uint64_t)1 << 62 || usage == UINT64_MAX) return UINT64_MAX; /* v1: "no limit" */
    const uint64_t clean = clean_in(folder, k);
    const uint64_t used = usage > clean ? usage - clean : 0;
    return limit > used ? limit - used : 0;
}

/* Every level from `path` up to the mount.  In a container the path may be one of the host's, which
 * does not exist here; then only the mount's own files speak. */
static uint64_t least_room(const char *root, const struct names *k, const char *path)
{
    uint64_t least = UINT64_MAX;
    char *folder = ig_format("%s/sys/fs/cgroup%s%s", root, k->mount, path);
    if (!folder) return least;
    const size_t mount = strlen(folder) - strlen(path);
    for (;;) {
        const uint64_t room = room_in(folder, k);
        if (room < least) least = room;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= mount || !slash || (size_t)(slash - folder) < mount) break;
        *slash = '\0';
    }
    free(folder);
    return least;
}

uint64_t ig_headroom(const char *root)
{
    char line[4096];
    uint64_t least = UINT64_MAX;
    if (!root) root = "";
    FILE *f = open_in(root, "proc/self/cgroup");
    if (!f) return least;
    while (fgets(line, sizeof line, f)) { /* "0::/path" or "5:memory:/path" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/') continue;
        *path++ = '\0';
        if (path[1] == '\0') path++; /* the mount itself */
        uint64_t room = UINT64_MAX;
        if (controllers[1] == '\0')
            room = least_room(root, &v2, path);
        else if (strcmp(controllers + 1, "memory") == 0)
            room = least_room(root, &v1, path);
        if (room < least) least = room;
    }
    fclose(f);
    return least;
}
