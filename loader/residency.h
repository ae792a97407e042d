/* SPDX-License-Identifier: Apache-2.0 */
/* residency: is a part of a file in the page cache?  And how much host memory may be taken? */
#ifndef INGOT_RESIDENCY_H
#define INGOT_RESIDENCY_H

#include "base/base.h"

enum ig_probe { IG_PROBE_NONE, IG_PROBE_CACHESTAT, IG_PROBE_NOWAIT, IG_PROBE_MINCORE };
struct ig_residency {
    int fd;
    int own;           /* a second description for sampled reads, or -1 */
    uint32_t phase;    /* of the sample */
    enum ig_probe how; /* what the kernel lets this process use; NONE: unknown, taken for cold */
};
/* Choose: cachestat; where it is refused, 64 sampled pages a window with preadv2(RWF_NOWAIT);
 * mincore only for a caller who owns the file or may write it, for the kernel tells all others
 * that everything is resident.  fd stays the caller's and open for as long as this is in use. */
void ig_residency_open(struct ig_residency *r, int fd);
void ig_residency_close(struct ig_residency *r);
/* The same without the ways before `first`, as a kernel that refuses them leaves it. */
void ig_residency_open_from(struct ig_residency *r, int fd, enum ig_probe first);
/* Bytes of [off, off + n) that are in the page cache, exact or estimated from the sample. */
uint64_t ig_residency(const struct ig_residency *r, uint64_t off, uint64_t n);
/* Drop a file's clean pages; returns how many of its bytes are still resident by the same probe. */
uint64_t ig_residency_drop(const struct ig_residency *r, uint64_t size);

/* headroom.c: bytes that this process may still take before its memory cgroup (v2 or v1, every
 * level up to the root) is at its limit, clean page cache counted as free; UINT64_MAX: no limit.
 * root NULL: /sys/fs/cgroup and /proc/self/cgroup; tests pass a folder that looks like "/". */
uint64_t ig_headroom(const char *root);

#endif
