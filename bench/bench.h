/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks share: made-up checkpoints, and the limits that this machine sets. */
#ifndef INGOT_BENCH_H
#define INGOT_BENCH_H

#include "base/base.h"

void bench_die(const char *format, ...) IG_PRINTF(1, 2) __attribute__((noreturn));

/* checkpoint.c: into dir, which is made; `tensors` > 0: that many tiny ones in one file. */
void bench_checkpoint(const char *dir, uint64_t bytes, uint32_t shards, uint32_t tensors);

/* limits.c: rates in bytes a second, over all processors that this process may use. */
double bench_sha256(size_t buffer); /* libcrypto, one buffer of each thread over and over */
double bench_leaves(void);          /* 4096-byte leaves, as ingot hashes them */
double bench_read(const char *path, bool xxh); /* as it lies, 4 MiB a read, hashed by XXH3 or not */
double bench_disk(const char *path); /* the same past the page cache, many reads at once */
double bench_write(const char *dir, uint64_t bytes, bool direct); /* one new file, fsync included */
/* Reading a file, two passes of SHA-256 over it and a direct write into dir, all at once. */
double bench_convert(const char *path, const char *dir);
/* Drop a file from the page cache.  Returns how many of its bytes are still there. */
uint64_t bench_drop(const char *path);

#endif
