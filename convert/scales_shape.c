/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links: what part of its subject one value covers, by the shapes of both. */
#include "convert/scales_private.h"

static uint64_t ceil_div(uint64_t n, uint64_t d)
{
    return n / d + (n % d != 0);
}

/* Twice n, or false. A shape with a zero in it may hold any other number. */
static bool times(uint64_t *n, uint64_t by)
{
    return !__builtin_mul_overflow(*n, by, n);
}

/* packed: two 4-bit elements a byte along the last dimension.
 * blocks: the last two dimensions are groups and bytes of a group. */
struct ig_sc_dims ig_sc_dims(const struct ig_row *w, bool packed, bool blocks)
{
    struct ig_sc_dims d = {0};
    const uint32_t rank = blocks && w->rank ? w->rank - 1 : w->rank;

    if (rank != 2 && rank != 3) return d;
    const uint64_t *dim = w->shape;
    d.stacked = rank == 3;
    d.lead = d.stacked ? *dim++ : 1;
    d.n = dim[0];
    d.k = dim[1];
    d.matrix = (!blocks || times(&d.k, dim[2])) && (!packed || times(&d.k, 2));
    if (d.n == 0 || d.k == 0 || d.lead == 0) d.matrix = false;
    return d;
}

static bool all_ones(const uint64_t *dim, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] != 1) return false;
    }
    return true;
}

static bool grid_fits(const struct ig_sc_dims *d, const uint64_t g[2], uint64_t rows, uint64_t cols)
{
    return rows && cols && g[0] == ceil_div(d->n, rows) && g[1] == ceil_div(d->k, cols);
}

static uint32_t set(uint64_t block[2], uint32_t gran, uint64_t rows, uint64_t cols)
{
    block[0] = rows;
    block[1] = cols;
    return gran;
}

static uint32_t set_grid(uint64_t block[2], uint64_t rows, uint64_t cols)
{
    return set(block, rows == 1 ? IG_GRAN_GROUP : IG_GRAN_BLOCK, rows, cols);
}

/* No block declared: 128 x 128 and the guess are what is written; else an exact division. */
static uint32_t derive(const struct ig_sc_dims *d, const uint64_t g[2], uint64_t guess,
                       uint64_t block[2])
{
    if (grid_fits(d, g, 1, guess)) return set_grid(block, 1, guess);
    if (grid_fits(d, g, 128, 128)) return set_grid(block, 128, 128);
    if (!g[0] || !g[1] || d->n % g[0] || d->k % g[1]) return set(block, IG_GRAN_UNKNOWN, 0, 0);
    if (d->k == g[1]) return set(block, IG_GRAN_UNKNOWN, 0, 0); /* one for each column: no scale */
    return set_grid(block, d->n / g[0], d->k / g[1]);
}

/* ModelOpt writes a grid as [rows, 1, columns, 1]. */
static uint32_t squeeze(const uint64_t *dim, uint32_t rank, uint64_t g[2])
{
    if (rank == 4 && dim[1] == 1 && dim[3] == 1) {
        g[0] = dim[0];
        g[1] = dim[2];
        return 2;
    }
    for (uint32_t i = 0; i < rank && i < 2; i++) g[i] = dim[i];
    return rank;
}

uint32_t ig_sc_granularity(const struct ig_sc_dims *d, const struct ig_row *o,
                           const struct ig_sc_fit *fit, uint64_t block[2])
{
    const uint64_t *dim = o->shape;
    uint32_t rank = o->rank;
    uint64_t g[2] = {0, 0};
    const bool one = all_ones(dim, rank), declared = fit->group || fit->block[0];

    if (d->matrix && d->stacked && rank && dim[0] == d->lead && !(one && rank < 3)) {
        dim++;
        rank--;
        /* One for each expert: a block of the whole matrix. */
        if (all_ones(dim, rank) && !one && !fit->strict)
            return set(block, IG_GRAN_BLOCK, d->n, d->k);
    } else if (d->stacked && !one) {
        return set(block, IG_GRAN_UNKNOWN, 0, 0);
    }
    if (!fit->single && d->matrix) {
        rank = squeeze(dim, rank, g);
        if (rank == 2 && fit->group && grid_fits(d, g, 1, fit->group)) {
            return set(block, IG_GRAN_GROUP, 1, fit->group);
        }
        if (rank == 2 && grid_fits(d, g, fit->block[0], fit->block[1])) {
            return set_grid(block, fit->block[0], fit->block[1]);
        }
    }
    if (one && !fit->strict) return set(block, IG_GRAN_TENSOR, 0, 0);
    if (fit->single || fit->strict || !d->matrix) return set(block, IG_GRAN_UNKNOWN, 0, 0);
    if (g[0] == d->n && (rank == 1 || (rank == 2 && g[1] == 1))) {
        return set(block, IG_GRAN_ROW, 1, 0);
    }
    if (rank == 2 && !declared) return derive(d, g, fit->guess, block);
    return set(block, IG_GRAN_UNKNOWN, 0, 0);
}

/* Scales of the cache: one, or (heads, 1, 1). */
uint32_t ig_sc_head_granularity(const struct ig_row *o, uint64_t heads)
{
    if (all_ones(o->shape, o->rank) && o->rank != 3) return IG_GRAN_TENSOR;
    if (o->rank != 3 || o->shape[1] != 1 || o->shape[2] != 1) return IG_GRAN_UNKNOWN;
    if (o->shape[0] == 0 || (heads && o->shape[0] != heads)) return IG_GRAN_UNKNOWN;
    return IG_GRAN_HEAD;
}
