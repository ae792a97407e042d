/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One piece of a row: write it, and hash every cell that ends in it and belongs to the row
 * alone.  Three grids lie over the bytes: pages of the pack, spans of its weights, and,
 * for a row that does not start on a page, pages of the row itself.
 */
#include "convert/pass.h"
#include "store/format.h"

#include <fcntl.h>

struct grid {
    uint64_t first, end; /* cells [first, end) end in the piece and start in the row */
};

/* Cells of `size` bytes on an axis where the row starts at `origin`. */
static struct grid cells(uint64_t origin, const struct ig_piece *p, uint64_t size)
{
    struct grid g = {.first = (origin + p->from) / size, .end = (origin + p->to) / size};
    if (g.first * size < origin) g.first++;
    if (g.end < g.first) g.end = g.first;
    return g;
}

static const uint8_t *at(const struct ig_piece *p, uint64_t row_offset)
{
    return p->bytes + (row_offset - p->avail);
}

static ingot_status emit_pages(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct ig_from *f = &job->plan->from[p->row];
    const struct grid g = cells(f->pos, p, IG_PAGE);
    uint64_t n = g.end - g.first;
    const uint64_t start = g.first * IG_PAGE; /* of the first cell, in the file */
    uint64_t bytes = n * IG_PAGE;
    /* The row's last page, filled up with zeros that no other row uses. */
    const bool last =
        p->to == job->plan->rows[p->row].bytes && f->pads && (f->pos + p->to) % IG_PAGE;
    if (last && g.end * IG_PAGE >= f->pos) bytes += (f->pos + p->to) % IG_PAGE, n++;
    if (n == 0) return INGOT_OK;
    ig_leaves(p->leaf_buf, at(p, start - f->pos), bytes);
    return ig_pwrite(job->leaves.fd, job->pack_path, p->leaf_buf, n * IG_HASH, g.first * IG_HASH,
                     e);
}

static ingot_status emit_spans(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct ig_from *f = &job->plan->from[p->row];
    const uint64_t origin = f->pos - WEIGHTS_AT;
    const struct grid g = cells(origin, p, IG_SPAN);
    if (g.end == g.first) return INGOT_OK;
    for (uint64_t i = g.first; i < g.end; i++)
        ig_xxh128(p->leaf_buf + (i - g.first) * XXH_SIZE, at(p, i * IG_SPAN - origin), IG_SPAN);
    return ig_pwrite(job->pack.fd, job->pack_path, p->leaf_buf, (g.end - g.first) * XXH_SIZE,
                     job->xxh_at + g.first * XXH_SIZE, e);
}

/* Pages of the row itself, `total` bytes long, into the auxiliary file. */
static ingot_status emit_row_leaves(struct ig_job *job, const struct ig_piece *p, uint64_t total,
                                    uint64_t aux, ingot_error *e)
{
    const struct grid g = cells(0, p, IG_PAGE);
    uint64_t n = g.end - g.first, bytes = n * IG_PAGE;
    if (p->to == total && total % IG_PAGE) bytes += total % IG_PAGE, n++;
    if (n == 0) return INGOT_OK;
    ig_leaves(p->leaf_buf, at(p, g.first * IG_PAGE), bytes);
    return ig_pwrite(job->aux.fd, job->pack_path, p->leaf_buf, n * IG_HASH,
                     (aux + g.first) * IG_HASH, e);
}

static ingot_status emit_own_leaves(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    struct ig_row *row = &job->plan->rows[p->row];
    const struct ig_from *f = &job->plan->from[p->row];
    const bool ends = p->to == row->bytes;
    if (row->bytes <= IG_PAGE) {
        if (!ends) return INGOT_OK;
        uint8_t leaf[IG_HASH];
        ig_leaf(leaf, at(p, 0), row->bytes);
        ig_verity_digest(row->digest, row->bytes, leaf);
        return INGOT_OK;
    }
    if (f->pos % IG_PAGE != 0) return emit_row_leaves(job, p, row->bytes, f->aux, e);
    if (!ends || f->pads || row->bytes % IG_PAGE == 0) return INGOT_OK;
    const uint64_t tail = row->bytes % IG_PAGE;
    ig_leaf(p->leaf_buf, at(p, row->bytes - tail), tail);
    return ig_pwrite(job->aux.fd, job->pack_path, p->leaf_buf, IG_HASH, f->aux * IG_HASH, e);
}

ingot_status ig_emit(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const uint64_t pos = job->plan->from[p->row].pos;
    return_if_error(
        ig_pwrite(job->pack.fd, job->pack_path, at(p, p->from), p->to - p->from, pos + p->from, e));
#ifdef SYNC_FILE_RANGE_WRITE
    /* Start writing back now: the final fsync would otherwise wait for the whole file.  A
     * file system that cannot is none the worse. */
    if (p->to - p->from >= IG_SPAN)
        (void)sync_file_range(job->pack.fd, (off_t)(pos + p->from), (off_t)(p->to - p->from),
                              SYNC_FILE_RANGE_WRITE);
#endif
    return_if_error(emit_pages(job, p, e));
    return_if_error(emit_spans(job, p, e));
    return emit_own_leaves(job, p, e);
}

ingot_status ig_emit_before(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct ig_from *f = &job->plan->from[p->row];
    return emit_row_leaves(job, p, f->bytes, f->before, e);
}
