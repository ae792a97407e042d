/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be known before the weights are: that the tables are the digest's (the tail, hashed from
 * the private copies on top of the frontier), and the sidecar's nodes.  It takes milliseconds and
 * reads only the tail, so it runs beside the first windows.
 */
#include "loader/run.h"

static ingot_status find_truth(struct ig_run *r, ingot_error *e)
{
    const char *why = NULL;
    if (!r->tail_proven) return_if_error(ig_pack_prove(r->pack, r->digest, e));
    if (!r->plan->whole && !r->plan->needs_tree) return INGOT_OK; /* tensors have digests */
    return_if_error(ig_sidecar_open(r->pack, r->digest, &r->sidecar, &why, e));
    if (r->sidecar || !r->plan->needs_tree) return INGOT_OK;
    if (r->notice) {
        char text[512];
        snprintf(text, sizeof text,
                 "%s: parts of tensors are proven by the tree beside the pack; %s, so all of the "
                 "pack is hashed first",
                 r->pack->path, why ? why : "there is none");
        r->notice(r->notice_ctx, text);
    }
    const struct ig_progress quiet = {.cancelled = r->progress.cancelled, .ctx = r->progress.ctx};
    return ig_sidecar_make(r->pack, r->digest, r->nworkers, &quiet, &r->sidecar, e);
}

void *ig_truth_thread(void *arg)
{
    struct ig_run *r = arg;
    ingot_error e = {0};
    if (r->plan->level == IG_LOAD_FULL || !r->plan->whole) {
        if (find_truth(r, &e) != INGOT_OK) ig_run_fail(r, &e);
    }
    pthread_mutex_lock(&r->lock);
    r->truth_ready = true;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
