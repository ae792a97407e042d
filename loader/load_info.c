/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a load: what lies where, and how far it is. */
#include "loader/load.h"

#include <stdlib.h>
#include <string.h>

static ingot_status no_tensor(const struct ingot_load *l, const char *name, const char *what,
                              ingot_error *e)
{
    ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: %s tensor \"%s\"", l->pack->pack.path, what,
            ig_esc(name, strlen(name)).s);
    return ig_at(e, l->pack->pack.path, name, strlen(name));
}

/* The i-th target that holds bytes of this row, as a range of the row's bytes. */
static const struct ig_target *target_of(const struct ingot_load *l, uint32_t index,
                                         const struct ig_row *row, unsigned i, uint64_t *before)
{
    const struct ig_pack *p = &l->pack->pack;
    *before = 0;
    for (size_t k = 0; k < l->targets.n; k++)
        if (l->targets.list[k].row == index && i-- == 0) return &l->targets.list[k];
    /* A member of a fused tensor that was loaded whole lies inside it. */
    for (size_t k = 0; k < l->targets.n; k++) {
        const struct ig_target *t = &l->targets.list[k];
        struct ig_row outer;
        ig_pack_row(p, t->row, &outer);
        const uint64_t from = ig_pack_pos(p, &outer), pos = ig_pack_pos(p, row);
        if (outer.bytes == 0 || t->rows != 1 || t->width != outer.bytes || t->row == index)
            continue;
        if (pos < from || pos + row->bytes > from + outer.bytes) continue;
        *before = pos - from;
        if (i-- == 0) return t;
    }
    return NULL;
}

static void whole_of(const struct ig_row *row, struct ingot_placed *out)
{
    *out = (struct ingot_placed){.dtype = ig_dtypes[row->dtype].name,
                                 .rank = row->rank,
                                 .shape = row->shape,
                                 .rows = row->rank ? row->shape[0] : 1,
                                 .columns = 1,
                                 .bytes = row->bytes};
    for (uint32_t i = 1; i < row->rank; i++) out->columns *= row->shape[i];
    out->pitch = out->rows ? row->bytes / out->rows : 0;
}

static void part_of(const struct ingot_load *l, const struct ig_target *t, uint64_t before,
                    const struct ig_row *row, struct ingot_placed *out)
{
    const uint64_t at = (uint64_t)(uintptr_t)l->arena + t->to + before;
    out->data = (void *)(uintptr_t)at;
    out->replicated = t->replicated;
    if (before || t->width == row->bytes) return;
    out->row = t->first_row;
    out->rows = t->nrows;
    out->column = t->first_col;
    out->columns = t->ncols;
    out->bytes = t->rows * t->width;
    out->pitch = t->rows > 1 ? t->pitch : t->nrows ? t->width / t->nrows : 0;
}

/* Failed loads hold nothing; those that run hold what will be. */
static ingot_status usable(struct ingot_load *l, ingot_error *e)
{
    return_if_error(ig_not_after_fork(l->pid, "load", e));
    pthread_mutex_lock(&l->lock);
    const ingot_status status = l->done ? l->status : INGOT_OK;
    if (status != INGOT_OK)
        *e = l->error;
    else
        l->seen = true;
    pthread_mutex_unlock(&l->lock);
    return status;
}

ingot_status ingot_load_tensor(const ingot_load *load, const char *name, unsigned i,
                               ingot_placed *out, ingot_error *e)
{
    WITH_ERROR(e);
    struct ingot_load *l = (struct ingot_load *)load; /* remembers that somebody knows */
    const struct ig_pack *p = &l->pack->pack;
    struct ig_row row;
    uint64_t before;
    return_if_error(usable(l, e));
    const uint32_t index = ig_pack_find(p, name, strlen(name));
    if (index == IG_NONE) return no_tensor(l, name, "no", e);
    ig_pack_row(p, index, &row);
    whole_of(&row, out);
    if (l->targets.whole || row.bytes == 0) {
        if (i > 0) return no_tensor(l, name, "no further part of", e);
        if (row.bytes) out->data = (uint8_t *)l->arena + ig_pack_pos(p, &row);
        return INGOT_OK;
    }
    const struct ig_target *t = target_of(l, index, &row, i, &before);
    if (!t) return no_tensor(l, name, i ? "no further part of" : "this load does not hold", e);
    part_of(l, t, before, &row, out);
    return INGOT_OK;
}

ingot_status ingot_load_blob(const ingot_load *load, const char *name, char **data, size_t *bytes,
                             ingot_error *e)
{
    WITH_ERROR(e);
    const struct ig_pack *p = &load->pack->pack;
    return_if_error(ig_not_after_fork(load->pid, "load", e));
    const uint32_t i = ig_pack_find_blob(p, name, IG_BLOB_FILE);
    if (i == IG_NONE)
        return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no file \"%s\"", p->path,
                       ig_esc(name, strlen(name)).s);
    return ig_pack_read_blob(p, i, data, bytes, e);
}

void ingot_load_get_stats(const ingot_load *load, ingot_load_stats *out)
{
    struct ingot_load *l = (struct ingot_load *)load;
    pthread_mutex_lock(&l->lock);
    *out = l->stats;
    pthread_mutex_unlock(&l->lock);
}

/* ---- waiting for a part ---- */

/* The last window with bytes of a tensor, plus one; everything: all of them. */
static ingot_status windows_of(const struct ingot_load *l, const char *name, size_t *out,
                               ingot_error *e)
{
    const struct ig_pack *p = &l->pack->pack;
    struct ig_row row;
    *out = l->plan.n;
    if (!name) return INGOT_OK;
    const uint32_t index = ig_pack_find(p, name, strlen(name));
    if (index == IG_NONE) return no_tensor(l, name, "no", e);
    ig_pack_row(p, index, &row);
    *out = 0;
    if (row.bytes == 0) return INGOT_OK;
    const uint64_t end = ig_pack_pos(p, &row) + row.bytes;
    size_t low = 0, high = l->plan.n; /* the first window that begins at or behind its end */
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (l->plan.list[mid].offset < end)
            low = mid + 1;
        else
            high = mid;
    }
    *out = low;
    return INGOT_OK;
}

static bool has_ended(struct ingot_load *l)
{
    pthread_mutex_lock(&l->lock);
    const bool done = l->done;
    pthread_mutex_unlock(&l->lock);
    return done;
}

ingot_status ingot_load_await(ingot_load *load, const char *tensor, ingot_state state,
                              int has_stream, void *stream, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_run *r = &load->run;
    struct ig_dev *d = load->loader->dev;
    size_t w;
    return_if_error(ig_not_after_fork(load->pid, "load", e));
    return_if_error(windows_of(load, tensor, &w, e));
    if (state == INGOT_STATE_WAITING) return INGOT_OK;
    const bool proof = state == INGOT_STATE_PROVEN;
    if (proof && load->level == IG_LOAD_OFF)
        return ig_fail(e, INGOT_ERR_USAGE, "a load without checks proves nothing");
    if (has_ended(load) || (proof && !load->run.must_prove)) return ingot_load_wait(load, e);
    pthread_mutex_lock(&r->lock);
    while (!r->stop && !(r->truth_ready && proof && !ig_load_is_early(load)) &&
           (proof        ? r->judged
            : has_stream ? r->submitted
                         : r->landed) < w)
        pthread_cond_wait(&r->moved, &r->lock);
    const bool there = !r->stop && (proof ? ig_load_is_early(load) && r->judged >= w
                                          : (has_stream ? r->submitted : r->landed) >= w);
    const bool queued = has_stream && there && r->landed < w;
    pthread_mutex_unlock(&r->lock);
    if (!there) return ingot_load_wait(load, e);
    return queued ? d->ops->follow(d, stream, (unsigned)((w - 1) % IG_MARKS), e) : INGOT_OK;
}
