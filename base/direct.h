/* SPDX-License-Identifier: Apache-2.0 */
/* Writing past the page cache where the file system lets us. */
#ifndef INGOT_DIRECT_H
#define INGOT_DIRECT_H

#include "base/base.h"

/* Offsets, lengths and memory of direct writes are multiples of this: no device asks for more. */
#define IG_DIRECT_ALIGN IG_PAGE

struct ig_direct {
    int fd;           /* the caller's; takes what cannot go directly */
    int past_cache;   /* a second descriptor of the same file, or -1 */
    bool refused;     /* the file system refused a direct write: no more of them */
    const char *path; /* for messages */
};
/* fd is open for writing and stays the caller's.  Never fails: without direct writes, all are
 * ordinary ones whose write-back is started at once. */
void ig_direct_open(struct ig_direct *d, int fd, const char *path);
/* buf, n and off are multiples of IG_DIRECT_ALIGN.  Any number of threads. */
ingot_status ig_direct_write(struct ig_direct *d, const void *buf, size_t n, uint64_t off,
                             ingot_error *e);
void ig_direct_close(struct ig_direct *d);

#endif
