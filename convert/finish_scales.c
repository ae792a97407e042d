/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales that are zero, negative, not finite or all exactly 1 convert like any others and are
 * reported: in every case known, they were served as fluent nonsense.
 */
#include "convert/finish.h"
#include "convert/scales_private.h"

#include <stdlib.h>

#define PIECE ((size_t)256 << 10) /* a multiple of every element size */

static ingot_status look_at(const struct ig_job *job, uint32_t row, uint32_t encoding, uint8_t *buf,
                            struct ig_scale_stats *stats, ingot_error *e)
{
    const struct ig_row *r = &job->plan->rows[row];
    const uint64_t pos = job->plan->from[row].pos;
    for (uint64_t at = 0; at < r->bytes; at += PIECE) {
        const size_t n = r->bytes - at < PIECE ? (size_t)(r->bytes - at) : PIECE;
        return_if_error(ig_pread(job->pack.fd, job->pack_path, buf, n, pos + at, e));
        if (ig_scales_values(buf, r->dtype, n * 8 / ig_dtypes[r->dtype].bits, encoding, stats) !=
            INGOT_OK)
            break; /* no number at all: scales.c has said so */
    }
    return INGOT_OK;
}

ingot_status ig_finish_scales(struct ig_job *job, ingot_error *e)
{
    struct ig_plan *p = job->plan;
    if (!p->scales.nlinks || !p->src) return INGOT_OK;
    const uint32_t before = p->scales.nfindings;
    struct ig_scale_stats *stats = ig_array(p->nrows, sizeof *stats);
    uint8_t *seen = ig_array(p->nrows, 1), *buf = malloc(PIECE);
    ingot_status status = stats && seen && buf ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < p->scales.nlinks && status == INGOT_OK; i++) {
        const struct ig_link *k = &p->scales.links[i];
        if (seen[k->object]++ || !ig_scales_wants_values(k)) continue;
        status = look_at(job, k->object, k->encoding, buf, &stats[k->object], e);
    }
    if (status == INGOT_OK) status = ig_scales_judge(&p->scales, p->rows, p->nrows, stats, e);
    for (uint32_t i = before; i < p->scales.nfindings && status == INGOT_OK; i++)
        ig_src_warn(p->src, "%s", p->scales.findings[i].text);
    free(stats);
    free(seen);
    free(buf);
    return status;
}
