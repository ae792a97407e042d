/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One piece of a row: write it, and hash every cell that ends in it and belongs to the row
 * alone.  Three grids lie over the bytes: pages of the pack, spans of its weights, and,
 * for a row that does not start on a page, pages of the row itself.
 */
#include "convert/pass.h"
#include "store/format.h"

#include <string.h>

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

/* Pages of the pack that are the row's alone and end in the piece.  Their bytes: less than whole
 * pages where the last one is filled up with zeros. */
struct pages {
    uint64_t first, n, bytes;
};

static struct pages pages_of(const struct ig_job *job, const struct ig_piece *p)
{
    const struct ig_from *f = &job->plan->from[p->row];
    const struct grid g = cells(f->pos, p, IG_PAGE);
    const uint64_t rest = (f->pos + p->to) % IG_PAGE;
    struct pages s = {g.first, g.end - g.first, (g.end - g.first) * IG_PAGE};
    const bool last = p->to == job->plan->rows[p->row].bytes && f->pads && rest;
    if (last && g.end * IG_PAGE >= f->pos) s.bytes += rest, s.n++;
    return s;
}

static ingot_status emit_pages(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct pages s = pages_of(job, p);
    if (s.n == 0) return INGOT_OK;
    ig_leaves(p->hand->lanes, p->hand->leaves,
              at(p, s.first * IG_PAGE - job->plan->from[p->row].pos), s.bytes);
    return ig_pwrite(job->leaves.fd, job->pack_path, p->hand->leaves, s.n * IG_HASH,
                     s.first * IG_HASH, e);
}

/* From this size on a row's pages are written past the page cache; smaller rows gain nothing. */
#define DIRECT_LEAST ((uint64_t)1 << 20)

/* Bytes [first, end) of a row go directly, all that `pages_of` will name. */
static struct grid direct_bytes(const struct ig_job *job, uint32_t row)
{
    const struct ig_from *f = &job->plan->from[row];
    const uint64_t bytes = job->plan->rows[row].bytes;
    if (bytes < DIRECT_LEAST) return (struct grid){bytes, bytes};
    const struct grid g = {.first = ig_round_up(f->pos, IG_PAGE) - f->pos,
                           .end = f->pads ? bytes : bytes - (f->pos + bytes) % IG_PAGE};
    return g;
}

/* The rest: small rows, and the ends of a large one that shares its first or last page. */
static ingot_status write_cached(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct grid d = direct_bytes(job, p->row);
    const uint64_t pos = job->plan->from[p->row].pos;
    const uint64_t head = p->to < d.first ? p->to : d.first;
    const uint64_t tail = p->from > d.end ? p->from : d.end;
    if (p->from < head)
        return_if_error(ig_pwrite(job->pack.fd, job->pack_path, at(p, p->from), head - p->from,
                                  pos + p->from, e));
    if (tail >= p->to) return INGOT_OK;
    return ig_pwrite(job->pack.fd, job->pack_path, at(p, tail), p->to - tail, pos + tail, e);
}

/* From where the bytes are, if those are whole pages that lie on pages, else by way of a copy. */
static ingot_status write_pages(struct ig_job *job, const struct ig_piece *p, const struct pages *s,
                                ingot_error *e)
{
    uint64_t pos = s->first * IG_PAGE, n = s->bytes;
    const uint8_t *bytes = at(p, pos - job->plan->from[p->row].pos);
    if ((uintptr_t)bytes % IG_DIRECT_ALIGN == 0) {
        const uint64_t whole = n - n % IG_PAGE;
        if (whole) return_if_error(ig_direct_write(&job->out, bytes, whole, pos, e));
        bytes += whole, pos += whole, n -= whole;
    }
    while (n > 0) {
        const size_t k = n < IG_BOUNCE ? (size_t)n : IG_BOUNCE, room = ig_round_up(k, IG_PAGE);
        memcpy(p->hand->bounce, bytes, k);
        memset(p->hand->bounce + k, 0, room - k);
        return_if_error(ig_direct_write(&job->out, p->hand->bounce, room, pos, e));
        bytes += k, pos += k, n -= k;
    }
    return INGOT_OK;
}

static ingot_status emit_direct(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct grid d = direct_bytes(job, p->row);
    const struct pages s = pages_of(job, p);
    if (s.n == 0 || d.first == d.end) return INGOT_OK;
    ig_pipe_wait(p->hand->item, true);
    const ingot_status status = write_pages(job, p, &s, e);
    ig_pipe_wait(p->hand->item, false);
    return status;
}

static ingot_status emit_spans(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const uint64_t origin = job->plan->from[p->row].pos - WEIGHTS_AT;
    const struct grid g = cells(origin, p, IG_SPAN);
    uint8_t *xxh = p->hand->leaves;
    if (g.end == g.first) return INGOT_OK;
    for (uint64_t i = g.first; i < g.end; i++)
        ig_xxh128(xxh + (i - g.first) * XXH_SIZE, at(p, i * IG_SPAN - origin), IG_SPAN);
    return ig_pwrite(job->aux.fd, job->pack_path, xxh, (g.end - g.first) * XXH_SIZE,
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
    ig_leaves(p->hand->lanes, p->hand->leaves, at(p, g.first * IG_PAGE), bytes);
    return ig_pwrite(job->aux.fd, job->pack_path, p->hand->leaves, n * IG_HASH,
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
    uint8_t leaf[IG_HASH];
    ig_leaf(leaf, at(p, row->bytes - tail), tail);
    return ig_pwrite(job->aux.fd, job->pack_path, leaf, IG_HASH, f->aux * IG_HASH, e);
}

ingot_status ig_emit(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    return_if_error(write_cached(job, p, e));
    return_if_error(emit_pages(job, p, e));
    return_if_error(emit_spans(job, p, e));
    return_if_error(emit_own_leaves(job, p, e));
    return emit_direct(job, p, e);
}

ingot_status ig_emit_before(struct ig_job *job, const struct ig_piece *p, ingot_error *e)
{
    const struct ig_from *f = &job->plan->from[p->row];
    return emit_row_leaves(job, p, f->bytes, f->before, e);
}
