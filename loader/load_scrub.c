/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a failure no byte that was not proven may pass for a weight.  Memory that nobody knows of
 * goes; memory that somebody may be reading stays where it is, and becomes NaN.
 */
#include "loader/load.h"

bool ig_load_is_early(const struct ingot_load *l)
{
    return l->level == IG_LOAD_FULL && (!l->plan.whole || l->run.sidecar);
}

size_t ig_load_proven_windows(const struct ingot_load *l)
{
    if (l->level == IG_LOAD_OFF) return 0;
    return ig_load_is_early(l) || l->level == IG_LOAD_FAST ? l->run.judged : 0;
}

/* Where in the file the first window begins that is not known to be good. */
static uint64_t frontier(const struct ingot_load *l)
{
    const size_t w = ig_load_proven_windows(l);
    return w < l->plan.n ? l->plan.list[w].offset : UINT64_MAX;
}

static void fill_target(struct ingot_load *l, const struct ig_target *t)
{
    struct ig_dev *d = l->loader->dev;
    for (uint64_t r = 0; r < t->rows; r++)
        if (d->ops->fill(d, l->run.dst + t->to + r * t->pitch, 0xff, t->width, NULL) != INGOT_OK)
            return; /* the device is lost, and its memory with it */
}

void ig_load_scrub(struct ingot_load *l)
{
    struct ig_dev *d = l->loader->dev;
    const uint64_t from = frontier(l);
    pthread_mutex_lock(&l->lock);
    void *unseen = l->seen ? NULL : l->arena;
    if (unseen) l->arena = NULL;
    pthread_mutex_unlock(&l->lock);
    if (unseen) {
        d->ops->release(d, unseen);
        return;
    }
    if (!l->run.ready) return;           /* nothing was copied, and there may be no memory at all */
    if (l->level == IG_LOAD_OFF) return; /* nothing was ever promised of it */
    if (l->plan.whole && from < l->pack->pack.tail)
        (void)d->ops->fill(d, l->run.dst + from, 0xff, l->pack->pack.tail - from, NULL);
    for (size_t i = 0; i < l->plan.ntargets; i++)
        if (l->plan.targets[i].to > from) fill_target(l, l->plan.targets[i].t);
    (void)d->ops->drain(d, NULL);
}
