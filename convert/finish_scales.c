/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scales that are zero, negative, not finite or all exactly 1 convert like any others and are
 * reported: in every case known, they were served as fluent nonsense.
 */
#include "convert/finish.h"
#include "convert/scales_private.h"

static uint64_t pos_of(const void *ctx, uint32_t row)
{
    return ((const struct ig_plan *)ctx)->from[row].pos;
}

ingot_status ig_finish_scales(struct ig_job *job, ingot_error *e)
{
    struct ig_plan *p = job->plan;
    if (!p->scales.nlinks || !p->src) return INGOT_OK;
    const uint32_t before = p->scales.nfindings;
    const struct ig_scales_file f = {.rows = p->rows,
                                     .nrows = p->nrows,
                                     .fd = job->pack.fd,
                                     .path = job->pack_path,
                                     .pos = pos_of,
                                     .ctx = p};
    return_if_error(ig_scales_judge_file(&p->scales, &f, e));
    for (uint32_t i = before; i < p->scales.nfindings; i++)
        ig_src_warn(p->src, "%s", p->scales.findings[i].text);
    return INGOT_OK;
}
