/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe: the part of the benchmarks that a shell cannot do.
 *   probe checkpoint DIR BYTES SHARDS   a made-up checkpoint
 *   probe tensors DIR COUNT             one with COUNT tiny tensors
 *   probe sha256|leaves                 bytes a second over all processors
 *   probe read|xxh FILE                 the same for reading FILE, as warm as it is
 *   probe write DIR BYTES               the faster of direct and ordinary writes of a new file
 *   probe convert FILE DIR              reading FILE, SHA-256 twice and writing at once
 *   probe drop FILE...                  out of the page cache; fails when something stays
 *   probe processors
 */
#include "bench/bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void bench_die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("probe: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(4);
}

static uint64_t number(const char *s)
{
    char *end;
    const unsigned long long n = strtoull(s, &end, 10);
    if (!*s || *end) bench_die("%s: not a number", s);
    return n;
}

static int print(double rate)
{
    printf("%.0f\n", rate);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "checkpoint") == 0 && argc == 5)
        return bench_checkpoint(argv[2], number(argv[3]), (uint32_t)number(argv[4]), 0), 0;
    if (strcmp(what, "tensors") == 0 && argc == 4)
        return bench_checkpoint(argv[2], 0, 1, (uint32_t)number(argv[3])), 0;
    if (strcmp(what, "sha256") == 0 && argc == 2) return print(bench_sha256(65536));
    if (strcmp(what, "leaves") == 0 && argc == 2) return print(bench_leaves());
    if (strcmp(what, "read") == 0 && argc == 3) return print(bench_read(argv[2], false));
    if (strcmp(what, "xxh") == 0 && argc == 3) return print(bench_read(argv[2], true));
    if (strcmp(what, "convert") == 0 && argc == 4) return print(bench_convert(argv[2], argv[3]));
    if (strcmp(what, "processors") == 0) return print(ig_cpus());
    if (strcmp(what, "write") == 0 && argc == 4) {
        const double direct = bench_write(argv[2], number(argv[3]), true);
        const double cached = bench_write(argv[2], number(argv[3]), false);
        return print(direct > cached ? direct : cached);
    }
    if (strcmp(what, "drop") == 0) {
        for (int i = 2; i < argc; i++)
            if (bench_drop(argv[i]) > 0) bench_die("%s: stays in the page cache", argv[i]);
        return 0;
    }
    bench_die("unknown: %s", what);
}
