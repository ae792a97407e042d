/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was hashed against what it must be.  With a sidecar each node is known beforehand.  Without
 * one the nodes of a whole load are folded, and their fold must be the frontier that the tail's
 * proof began with; tensors of a partial load are folded each for its own digest.
 */
#include "loader/run.h"

#include <string.h>

/* Where the bytes of a truth lie in device memory. */
static const uint8_t *landed_at(const struct ig_run *r, const struct ig_truth *t)
{
    const struct ig_windows *w = r->plan;
    if (w->whole) return r->dst + t->file;
    for (size_t i = 0; i < w->ntargets; i++) {
        const struct ig_span_target *s = &w->targets[i];
        if (s->t->row == t->row && s->part != IG_PART_COLUMNS && s->from <= t->file &&
            t->file < s->to)
            return r->dst + s->t->to + (t->file - s->from);
    }
    return NULL;
}

static ingot_status bad(struct ig_run *r, const struct ig_truth *t, ingot_error *e)
{
    return ig_locate(r, t->file, t->bytes, landed_at(r, t), t->row, e);
}

static ingot_status judge_leaves(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                                 ingot_error *e)
{
    uint8_t wanted[IG_PAGE];
    const unsigned n = (unsigned)(t->bytes / IG_PAGE);
    if (!r->sidecar) return ig_tree_add(r->tree, result, n, e); /* the end of a whole load */
    return_if_error(ig_sidecar_leaves(r->sidecar, t->at, n, wanted, e));
    return memcmp(wanted, result, n * IG_HASH) == 0 ? INGOT_OK : bad(r, t, e);
}

static ingot_status judge_node(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                               ingot_error *e)
{
    if (!r->sidecar) return ig_tree_add_nodes(r->tree, 1, result, 1, e);
    return memcmp(ig_sidecar_node(r->sidecar, t->at), result, IG_HASH) == 0 ? INGOT_OK
                                                                            : bad(r, t, e);
}

/* Nodes of a row come in order, and rows one after the other. */
static ingot_status judge_row(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                              ingot_error *e)
{
    struct ig_row row;
    uint8_t digest[IG_HASH];
    ig_pack_row(r->pack, t->row, &row);
    if (t->at == 0) ig_tree_init(r->tree);
    if (row.bytes <= IG_PAGE)
        return_if_error(ig_tree_add(r->tree, result, 1, e));
    else
        return_if_error(ig_tree_add_nodes(r->tree, 1, result, 1, e));
    if ((t->at + 1) * IG_NODE < row.bytes) return INGOT_OK;
    return_if_error(ig_tree_digest(r->tree, row.bytes, digest, e));
    if (memcmp(digest, row.digest, IG_HASH) == 0) return INGOT_OK;
    const struct ig_truth all = {IG_TRUTH_ROW, t->row, 0, ig_pack_pos(r->pack, &row), row.bytes};
    return bad(r, &all, e);
}

static ingot_status judge_spans(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                                ingot_error *e)
{
    uint8_t wanted[IG_NODE / IG_SPAN * 16];
    const size_t n = (size_t)((t->bytes + IG_SPAN - 1) / IG_SPAN) * 16;
    const struct ig_pack *p = r->pack;
    return_if_error(ig_pread(p->fd, p->path, wanted, n, p->xxh + t->at * 16, e));
    return memcmp(wanted, result, n) == 0 ? INGOT_OK : bad(r, t, e);
}

static ingot_status judge_equal(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                                ingot_error *e)
{
    struct ig_row row;
    const uint64_t found = ig_get64(result);
    if (found == 0) return INGOT_OK;
    ig_pack_row(r->pack, t->row, &row);
    ig_fail(
        e, INGOT_ERR_CHECK,
        "%s: tensor \"%s\": row %llu (offset %llu) was overwritten in %s memory after it landed",
        r->pack->path, ig_esc(row.name, row.name_len).s, (unsigned long long)(t->at + found - 1),
        (unsigned long long)(t->file + (found - 1) * t->bytes), r->dev->info.name);
    ig_at(e, r->pack->path, row.name, row.name_len);
    return ig_at_offset(e, r->pack->path, t->file + (found - 1) * t->bytes);
}

ingot_status ig_judge(struct ig_run *r, const struct ig_truth *t, const uint8_t *result,
                      ingot_error *e)
{
    switch (t->kind) {
    case IG_TRUTH_NODE:
        return judge_node(r, t, result, e);
    case IG_TRUTH_LEAVES:
        return judge_leaves(r, t, result, e);
    case IG_TRUTH_ROW:
        return judge_row(r, t, result, e);
    case IG_TRUTH_SPANS:
        return judge_spans(r, t, result, e);
    default:
        return judge_equal(r, t, result, e);
    }
}

ingot_status ig_judge_end(struct ig_run *r, ingot_error *e)
{
    if (r->plan->level != IG_LOAD_FULL || !r->plan->whole || r->sidecar) return INGOT_OK;
    if (ig_pack_frontier_is(r->pack, r->tree)) return INGOT_OK;
    return ig_locate(r, 0, r->pack->tail, r->dst, IG_NONE, e);
}
