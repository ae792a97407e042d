/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings are not stored: they follow from rows and configs, so they are found again, by the
 * rules of the version that is asked.
 */
#include "convert/scales_private.h"
#include "convert/show.h"
#include "convert/source.h"

#include <stdlib.h>

struct found {
    const struct ig_pack *p;
    struct ig_row *rows;
};

static uint64_t pos_of(const void *ctx, uint32_t row)
{
    const struct found *f = ctx;
    return ig_pack_pos(f->p, &f->rows[row]);
}

static ingot_status find(const struct found *f, struct ig_scales_in *in, struct ig_scales *s,
                         ingot_error *e)
{
    json_t *config = NULL, *hf_quant = NULL;
    const struct ig_scales_file file = {.rows = f->rows,
                                        .nrows = in->nrows,
                                        .fd = f->p->fd,
                                        .path = f->p->path,
                                        .pos = pos_of,
                                        .ctx = f};
    ingot_status status = ig_config_of_pack(f->p, "config.json", &config, &in->config_blob, e);
    if (status == INGOT_OK)
        status = ig_config_of_pack(f->p, "hf_quant_config.json", &hf_quant, &in->hf_quant_blob, e);
    in->config = config;
    in->hf_quant = hf_quant;
    if (status == INGOT_OK) status = ig_scales_find(in, s, e);
    if (status == INGOT_OK) status = ig_scales_judge_file(s, &file, e);
    json_decref(config);
    json_decref(hf_quant);
    return status;
}

ingot_status ig_show_findings(const struct ig_pack *p, json_t **list, ingot_error *e)
{
    struct ig_scales s = {0};
    const struct found f = {.p = p, .rows = ig_array(p->nrows, sizeof *f.rows)};
    struct ig_scales_in in = {.rows = f.rows};
    ingot_status status = f.rows ? INGOT_OK : ig_no_memory(e);
    for (uint32_t i = 0; i < p->nrows && status == INGOT_OK; i++) {
        ig_pack_row(p, i, &f.rows[in.nrows]);
        in.nrows += !(f.rows[in.nrows].flags & (IG_ROW_VIEW | IG_ROW_SHADOW));
    }
    if (status == INGOT_OK) status = find(&f, &in, &s, e);
    if (status == INGOT_OK && !(*list = json_array())) status = ig_no_memory(e);
    for (uint32_t i = 0; i < s.nfindings && status == INGOT_OK; i++)
        json_array_append_new(*list, json_string(s.findings[i].text));
    ig_scales_free(&s);
    free(f.rows);
    return status;
}
