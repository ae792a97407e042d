/* SPDX-License-Identifier: Apache-2.0 */
/* cast: choosing the code path, cutting the work into blocks, finding the first overflow. */
#include "convert/cast_private.h"

#include <string.h>

#if IG_CAST_X86
#include <cpuid.h>
#endif

#define BLOCK 8192u /* elements; what a block reads and writes stays in the first-level cache */

static const struct {
    const char *name;
    ig_cast_fn *fn;
} paths[] = {
    {"c", ig_cast_c},
#if IG_CAST_X86
    {"avx2", ig_cast_avx2},
    {"avx512", ig_cast_avx512},
#endif
};

#if IG_CAST_X86
static bool has_f16c(void)
{
#if defined(__clang__) || __GNUC__ < 11
    /* Their __builtin_cpu_supports does not know the name. */
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
#else
    return __builtin_cpu_supports("f16c");
#endif
}
#endif

/* How many of `paths` this CPU can run; each one asks for all that the one before it does. */
static size_t usable(void)
{
    size_t n = 1;
#if IG_CAST_X86
    if (__builtin_cpu_supports("avx2") && has_f16c()) {
        n++;
        if (__builtin_cpu_supports("avx512f")) n++;
    }
#endif
    return n;
}

const char *const *ig_cast_paths(void)
{
    static const char *const names[][4] = {{"c"}, {"c", "avx2"}, {"c", "avx2", "avx512"}};
    return names[usable() - 1];
}

static bool is_float(uint32_t dtype)
{
    return dtype == IG_F16 || dtype == IG_BF16 || dtype == IG_F32;
}

static void add(struct ig_cast_counts *sum, const struct ig_cast_counts *c)
{
    sum->rounded += c->rounded;
    sum->subnormal += c->subnormal;
    sum->vanished += c->vanished;
    sum->overflow += c->overflow;
}

/* Index of the first element that overflows; there is one. */
static size_t find_overflow(uint32_t to, const uint8_t *src, uint32_t from)
{
    const size_t width = ig_dtypes[from].bits / 8;
    struct ig_cast_counts c = {0};
    uint32_t unused;
    size_t i;
    for (i = 0; c.overflow == 0; i++) ig_cast_c(&unused, to, src + i * width, from, 1, false, &c);
    return i - 1;
}

static void run(ig_cast_fn *fn, uint8_t *dst, uint32_t to, const uint8_t *src, uint32_t from,
                size_t n, bool saturate, struct ig_cast_counts *counts, uint64_t *first_overflow)
{
    const size_t dst_width = ig_dtypes[to].bits / 8, src_width = ig_dtypes[from].bits / 8;
    if (n == 0) return;
    if (to == from) {
        memcpy(dst, src, n * dst_width);
        return;
    }
    for (size_t at = 0; at < n;) {
        const size_t block = n - at < BLOCK ? n - at : BLOCK;
        struct ig_cast_counts c = {0};
        const size_t done = fn(dst, to, src, from, block, saturate, &c);
        ig_cast_c(dst + done * dst_width, to, src + done * src_width, from, block - done, saturate,
                  &c);
        if (c.overflow != 0 && *first_overflow == UINT64_MAX)
            *first_overflow = at + find_overflow(to, src, from);
        add(counts, &c);
        at += block;
        dst += block * dst_width;
        src += block * src_width;
    }
}

void ig_cast(void *dst, uint32_t to, const void *src, uint32_t from, size_t n, bool saturate,
             struct ig_cast_counts *counts, uint64_t *first_overflow)
{
    if (is_float(to) && is_float(from))
        run(paths[usable() - 1].fn, dst, to, src, from, n, saturate, counts, first_overflow);
}

bool ig_cast_on(const char *path, void *dst, uint32_t to, const void *src, uint32_t from, size_t n,
                bool saturate, struct ig_cast_counts *counts, uint64_t *first_overflow)
{
    const size_t npaths = usable();
    for (size_t i = 0; i < npaths; i++) {
        if (strcmp(path, paths[i].name) != 0 || !is_float(to) || !is_float(from)) continue;
        run(paths[i].fn, dst, to, src, from, n, saturate, counts, first_overflow);
        return true;
    }
    return false;
}
