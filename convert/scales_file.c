/* SPDX-License-Identifier: Apache-2.0 */
/* The values of scales that lie in a pack, read back: they are few beside what they scale. */
#include "convert/scales_private.h"

#include <stdlib.h>

#define PIECE ((size_t)256 << 10) /* a multiple of every element size */

static ingot_status read_values(const struct ig_scales_file *f, uint32_t row, uint32_t encoding,
                                struct ig_scale_stats *stats, uint8_t *buf, ingot_error *e)
{
    const struct ig_row *r = &f->rows[row];
    const uint64_t pos = f->pos(f->ctx, row);
    for (uint64_t at = 0; at < r->bytes; at += PIECE) {
        const size_t n = r->bytes - at < PIECE ? (size_t)(r->bytes - at) : PIECE;
        return_if_error(ig_pread(f->fd, f->path, buf, n, pos + at, e));
        const uint64_t elements = n * 8 / ig_dtypes[r->dtype].bits;
        if (ig_scales_values(buf, r->dtype, elements, encoding, stats) != INGOT_OK)
            break; /* no number at all: ig_scales_find has said so */
    }
    return INGOT_OK;
}

ingot_status ig_scales_judge_file(struct ig_scales *s, const struct ig_scales_file *f,
                                  ingot_error *e)
{
    struct ig_scale_stats *stats = ig_array(f->nrows, sizeof *stats);
    uint8_t *seen = ig_array(f->nrows, 1), *buf = ig_pages(PIECE);
    ingot_status status = stats && seen && buf ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < s->nlinks && status == INGOT_OK; i++) {
        const struct ig_link *k = &s->links[i];
        if (seen[k->object] || !ig_scales_wants_values(k)) continue;
        seen[k->object] = 1;
        status = read_values(f, k->object, k->encoding, &stats[k->object], buf, e);
    }
    if (status == INGOT_OK) status = ig_scales_judge(s, f->rows, f->nrows, stats, e);
    free(stats);
    free(seen);
    free(buf);
    return status;
}
