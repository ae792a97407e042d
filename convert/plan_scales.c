/* SPDX-License-Identifier: Apache-2.0 */
/* Scale links between source rows, and what is to be said about them. */
#include "convert/plan.h"

#include <stdlib.h>
#include <string.h>

/* scales.c sees the rows that count; shadows are left out and indexes mapped back. */
static ingot_status find_among(struct ig_plan *p, struct ig_scales_in *in, ingot_error *e)
{
    if (!p->shadows) {
        in->rows = p->rows;
        in->nrows = p->nrows;
        return ig_scales_find(in, &p->scales, e);
    }
    struct ig_row *rows = ig_array(p->nrows, sizeof *rows);
    uint32_t *index = ig_array(p->nrows, sizeof *index);
    ingot_status status = rows && index ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows && status == INGOT_OK; i++) {
        if (p->rows[i].flags & IG_ROW_SHADOW) continue;
        index[in->nrows] = i;
        rows[in->nrows++] = p->rows[i];
    }
    in->rows = rows;
    if (status == INGOT_OK) status = ig_scales_find(in, &p->scales, e);
    for (uint32_t i = 0; i < p->scales.nlinks && status == INGOT_OK; i++) {
        struct ig_link *l = &p->scales.links[i];
        l->object = index[l->object];
        if (l->subject != IG_NONE) l->subject = index[l->subject];
    }
    for (uint32_t i = 0; i < p->scales.nfindings && status == INGOT_OK; i++)
        if (p->scales.findings[i].row != IG_NONE)
            p->scales.findings[i].row = index[p->scales.findings[i].row];
    free(rows);
    free(index);
    return status;
}

ingot_status ig_plan_scales(struct ig_plan *p, ingot_error *e)
{
    struct ig_scales_in in = {.config = p->config,
                              .hf_quant = p->hf_quant,
                              .config_blob = p->config_blob,
                              .hf_quant_blob = p->hf_quant_blob};
    return_if_error(find_among(p, &in, e));
    if (p->scales.stale && p->src && !p->job->accept_stale_quant) {
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: config.json declares quantisation (%s), but no tensor is "
                "quantised; remove the claim, or --accept-stale-quant to keep it",
                p->src->root,
                p->scales.method ? ig_esc(p->scales.method, strlen(p->scales.method)).s
                                 : "unnamed method");
        return ig_at(e, p->src->root, NULL, 0);
    }
    for (uint32_t i = 0; p->src && i < p->scales.nfindings; i++)
        ig_src_warn(p->src, "%s", p->scales.findings[i].text);
    return INGOT_OK;
}
