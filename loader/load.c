/* SPDX-License-Identifier: Apache-2.0 */
/* ingot_load: how it begins, ends and is hashed once more. */
#include "loader/load.h"

#include <stdlib.h>
#include <string.h>

/* XXH3 is of the whole file's spans, so parts of it are always checked in full. */
static enum ig_check_level level_of(const struct ingot_load_options *o)
{
    if (o->check == INGOT_CHECK_OFF) return IG_LOAD_OFF;
    const bool whole = !o->ntensors && !o->ranks && !o->npieces;
    return o->check == INGOT_CHECK_FAST && whole ? IG_LOAD_FAST : IG_LOAD_FULL;
}

static ingot_status check_options(const struct ingot_load_options *o, ingot_error *e)
{
    if (o->size < sizeof *o)
        return ig_fail(e, INGOT_ERR_USAGE, "ingot_load_options: size %zu, expected %zu", o->size,
                       sizeof *o);
    if ((unsigned)o->check > INGOT_CHECK_OFF)
        return ig_fail(e, INGOT_ERR_USAGE, "check %u is none", (unsigned)o->check);
    return INGOT_OK;
}

/* A file that only says itself what it should be proves nothing. */
static ingot_status refuse_unknown(const struct ingot_pack *k, ingot_error *e)
{
    uint8_t digest[IG_HASH];
    char hex[65];
    if (k->has_digest) return INGOT_OK;
    return_if_error(ig_pack_tail_digest(&k->pack, digest, e));
    ig_hex(hex, digest, IG_HASH);
    ig_fail(
        e, INGOT_ERR_CHECK,
        "%s: there is no digest to hold it to (its own tail says fsverity-sha256:%s): name it by "
        "its store name or digest, or load it unverified",
        k->pack.path, hex);
    return ig_at(e, k->pack.path, NULL, 0);
}

static ingot_status plan(struct ingot_load *l, bool again, ingot_error *e)
{
    ig_windows_free(&l->plan);
    return ig_windows_make(&l->pack->pack, &l->targets, l->loader->ring.window, l->level, again,
                           &l->plan, e);
}

static ingot_status prepare(struct ingot_load *l, const struct ingot_load_options *o,
                            ingot_error *e)
{
    if (ig_pack_is_inputs(&l->pack->pack))
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: is an input set, with no tensors to load",
                       l->pack->pack.path);
    if (l->level == IG_LOAD_FULL) return_if_error(refuse_unknown(l->pack, e));
    return_if_error(ig_load_targets(l, o, &l->targets, e));
    if (!o->npieces) ig_targets_place(&l->targets, &l->pack->pack, &l->arena_bytes);
    return_if_error(ig_loader_ring(l->loader, e));
    return plan(l, false, e);
}

static ingot_status begin(struct ingot_load *l, bool again, ingot_error *e)
{
    ingot_status status = ig_load_begin(l, again, e);
    if (!l->retry) return status;
    ig_load_end(l);
    l->retry = false;
    ig_loader_shrink(l->loader);
    status = plan(l, again, e);
    return status == INGOT_OK ? ig_load_begin(l, again, e) : status;
}

static struct ingot_load *new_load(ingot_loader *loader, const ingot_pack *pack,
                                   const struct ingot_load_options *o)
{
    struct ingot_load *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->pid = getpid();
    l->loader = loader;
    ig_loader_retain(loader);
    l->pack = ig_pack_api_retain(pack);
    l->options = *o;
    l->options.tensors = NULL; /* the caller's, and only until start returns */
    l->options.pieces = NULL;
    l->level = level_of(o);
    l->run.direct = -1;
    l->holds = true;
    l->refs = 1;
    l->stats.cpu = ig_cpu_seconds();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->ended, NULL);
    return l;
}

static void destroy(struct ingot_load *l)
{
    __atomic_store_n(&l->cancel, 1, __ATOMIC_RELAXED);
    if (l->has_conductor) {
        ingot_error e = {0};
        ig_fail(&e, INGOT_ERR_CANCELLED, "%s: the load was released", l->pack->pack.path);
        pthread_mutex_lock(&l->lock);
        const bool done = l->done;
        pthread_mutex_unlock(&l->lock);
        if (!done) ig_run_fail(&l->run, &e);
    }
    ig_load_end(l);
    ig_load_give(l);
    if (l->arena) l->loader->dev->ops->release(l->loader->dev, l->arena);
    ig_windows_free(&l->plan);
    ig_targets_free(&l->targets);
    ingot_pack_close(l->pack);
    ig_loader_release(l->loader);
    pthread_cond_destroy(&l->ended);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

ingot_status ingot_load_start(ingot_loader *loader, const ingot_pack *pack,
                              const ingot_load_options *options, ingot_load **out, ingot_error *e)
{
    static const struct ingot_load_options defaults = {.size = sizeof defaults};
    WITH_ERROR(e);
    const struct ingot_load_options *o = options ? options : &defaults;
    const double started = ig_clock();
    *out = NULL;
    return_if_error(ig_not_after_fork(loader->pid, "loader", e));
    return_if_error(check_options(o, e));
    if (!ig_loader_take(loader))
        return ig_fail(e, INGOT_ERR_BUSY, "another load of this loader runs");
    struct ingot_load *l = new_load(loader, pack, o);
    if (!l) {
        ig_loader_give(loader);
        return ig_no_memory(e);
    }
    ingot_status status = prepare(l, o, e);
    l->stats.plan = ig_clock() - started;
    if (status == INGOT_OK) status = begin(l, false, e);
    if (status == INGOT_OK)
        *out = l;
    else
        destroy(l);
    return status;
}

ingot_status ingot_load_wait(ingot_load *load, ingot_error *e)
{
    WITH_ERROR(e);
    return_if_error(ig_not_after_fork(load->pid, "load", e));
    pthread_mutex_lock(&load->lock);
    while (!load->done) pthread_cond_wait(&load->ended, &load->lock);
    const ingot_status status = load->status;
    if (status != INGOT_OK) *e = load->error;
    pthread_mutex_unlock(&load->lock);
    return status;
}

void ingot_load_cancel(ingot_load *load)
{
    if (getpid() == load->pid) __atomic_store_n(&load->cancel, 1, __ATOMIC_RELAXED);
}

ingot_status ingot_load_reverify(ingot_load *load, ingot_error *e)
{
    WITH_ERROR(e);
    return_if_error(ingot_load_wait(load, e));
    return_if_error(refuse_unknown(load->pack, e));
    if (!ig_loader_take(load->loader))
        return ig_fail(e, INGOT_ERR_BUSY, "another load of this loader runs");
    ig_load_end(load); /* the run before */
    load->holds = true;
    load->level = IG_LOAD_FULL;
    __atomic_store_n(&load->cancel, 0, __ATOMIC_RELAXED);
    pthread_mutex_lock(&load->lock);
    load->done = false;
    load->seen = true; /* it has been somebody's since */
    load->stats = (struct ingot_load_stats){.cpu = ig_cpu_seconds()};
    pthread_mutex_unlock(&load->lock);
    ingot_status status = plan(load, true, e);
    if (status == INGOT_OK) status = begin(load, true, e);
    if (status == INGOT_OK) return ingot_load_wait(load, e);
    if (load->has_conductor) return ingot_load_wait(load, e);
    ig_load_give(load);
    pthread_mutex_lock(&load->lock);
    load->done = true; /* it is what it was, only not looked at */
    pthread_mutex_unlock(&load->lock);
    return status;
}

void ingot_load_retain(ingot_load *load)
{
    __atomic_add_fetch(&load->refs, 1, __ATOMIC_RELAXED);
}

void ingot_load_release(ingot_load *load)
{
    if (!load || getpid() != load->pid) return;
    if (__atomic_sub_fetch(&load->refs, 1, __ATOMIC_ACQ_REL) == 0) destroy(load);
}
