/* SPDX-License-Identifier: Apache-2.0 */
/* What copies alone would reach: the figure that a load's rate stands beside. */
#include "loader/load.h"

#define BYTES ((uint64_t)1 << 30)

static ingot_status copy_all(struct ig_dev *d, const struct ig_ring *r, uint8_t *to, ingot_error *e)
{
    const uint64_t slots = r->slots * r->window;
    for (uint64_t done = 0; done < BYTES; done += r->window)
        return_if_error(
            d->ops->copy(d, to, r->window, r->memory + done % slots, r->window, r->window, 1, e));
    return d->ops->drain(d, e);
}

ingot_status ig_loader_ceiling(struct ingot_loader *l, double *rate, ingot_error *e)
{
    void *to = NULL;
    struct ig_dev *d = l->dev;
    *rate = 0;
    if (!ig_loader_take(l)) return ig_fail(e, INGOT_ERR_BUSY, "a load of this loader runs");
    ingot_status status = l->ring.memory ? d->ops->alloc(d, l->ring.window, &to, e) : INGOT_OK;
    if (to) {
        /* The first round makes pages come to be. */
        status = copy_all(d, &l->ring, to, e);
        const double started = ig_clock();
        if (status == INGOT_OK) status = copy_all(d, &l->ring, to, e);
        *rate = (double)BYTES / (ig_clock() - started);
        d->ops->release(d, to);
    }
    ig_loader_give(l);
    return status;
}
