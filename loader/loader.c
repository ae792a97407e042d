/* SPDX-License-Identifier: Apache-2.0 */
/* ingot_loader: a device and its staging memory, for one load at a time. */
#include "loader/load.h"

#include <stdlib.h>
#include <string.h>

ingot_status ig_not_after_fork(pid_t opener, const char *what, ingot_error *e)
{
    if (getpid() == opener) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_USAGE,
                   "this %s was opened by process %ld and does not outlive a fork: open another",
                   what, (long)opener);
}

static void say(const struct ingot_loader *l, const char *text)
{
    if (l->notice && *text) l->notice(l->ctx, text);
}

static ingot_status check_options(const struct ingot_loader_options *o, ingot_error *e)
{
    if (o->threads > IG_LOAD_THREADS)
        return ig_fail(e, INGOT_ERR_USAGE, "%u threads: at most %u", o->threads, IG_LOAD_THREADS);
    if ((unsigned)o->engine >= INGOT_ENGINES)
        return ig_fail(e, INGOT_ERR_USAGE, "engine %u of %u", (unsigned)o->engine, INGOT_ENGINES);
    const uint64_t least = ig_ring_least();
    if (o->memory && o->memory < least)
        return ig_fail(e, INGOT_ERR_USAGE, "%llu bytes of host memory: at least %llu are needed",
                       (unsigned long long)o->memory, (unsigned long long)least);
    return INGOT_OK;
}

ingot_status ingot_loader_open(const ingot_loader_options *options, ingot_loader **out,
                               ingot_error *e)
{
    static const struct ingot_loader_options defaults = {.size = sizeof defaults};
    WITH_ERROR(e);
    const struct ingot_loader_options *o = options ? options : &defaults;
    *out = NULL;
    if (o->size < sizeof *o)
        return ig_fail(e, INGOT_ERR_USAGE, "ingot_loader_options: size %zu, expected %zu", o->size,
                       sizeof *o);
    return_if_error(check_options(o, e));
    struct ingot_loader *l = calloc(1, sizeof *l);
    if (!l) return ig_no_memory(e);
    const unsigned cpus = ig_cpus();
    l->workers = o->threads ? o->threads : cpus < IG_LOAD_WORKERS ? cpus : IG_LOAD_WORKERS;
    const ingot_status status = ig_dev_open(o->device, o->threads, &l->dev, e);
    if (status != INGOT_OK) {
        free(l);
        return status;
    }
    l->pid = getpid();
    l->memory = o->memory ? o->memory : IG_LOAD_MEMORY;
    l->engine = o->engine;
    l->notice = o->notice;
    l->ctx = o->ctx;
    l->refs = 1;
    pthread_mutex_init(&l->lock, NULL);
    *out = l;
    return INGOT_OK;
}

void ig_loader_retain(struct ingot_loader *l)
{
    __atomic_add_fetch(&l->refs, 1, __ATOMIC_RELAXED);
}

void ig_loader_release(struct ingot_loader *l)
{
    if (__atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    ig_ring_close(&l->ring, l->dev);
    l->dev->ops->close(l->dev);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void ingot_loader_close(ingot_loader *loader)
{
    if (loader && getpid() == loader->pid) ig_loader_release(loader);
}

const char *ingot_loader_device(const ingot_loader *loader)
{
    return loader->dev->info.name;
}

bool ig_loader_take(struct ingot_loader *l)
{
    pthread_mutex_lock(&l->lock);
    const bool mine = !l->busy;
    l->busy = true;
    pthread_mutex_unlock(&l->lock);
    return mine;
}

void ig_loader_give(struct ingot_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->busy = false;
    pthread_mutex_unlock(&l->lock);
}

/* The map engine reads through the ring only when pinning a map is refused. */
ingot_status ig_loader_ring(struct ingot_loader *l, ingot_error *e)
{
    if (l->ring.memory) return INGOT_OK;
    const unsigned slots = l->engine == INGOT_ENGINE_MAP ? 1 : IG_SLOTS;
    const uint64_t quarter = ig_headroom(NULL) / 4;
    return ig_ring_open(&l->ring, slots, IG_WINDOW, quarter < l->memory ? quarter : l->memory, e);
}

ingot_status ig_loader_ready(struct ingot_loader *l, bool *refused, ingot_error *e)
{
    return_if_error(l->dev->ops->start(l->dev, e));
    *refused = !ig_ring_pin(&l->ring, l->dev);
    return INGOT_OK;
}

void ig_loader_shrink(struct ingot_loader *l)
{
    char text[sizeof(ingot_error)];
    ig_ring_shrink(&l->ring, l->dev, text, sizeof text);
    say(l, text);
}

ingot_status ingot_loader_warm(ingot_loader *loader, ingot_error *e)
{
    WITH_ERROR(e);
    bool refused = false;
    return_if_error(ig_not_after_fork(loader->pid, "loader", e));
    if (!ig_loader_take(loader)) return ig_fail(e, INGOT_ERR_BUSY, "a load of this loader runs");
    ingot_status status = ig_loader_ring(loader, e);
    if (status == INGOT_OK) status = ig_loader_ready(loader, &refused, e);
    if (status == INGOT_OK && refused) ig_loader_shrink(loader);
    ig_loader_give(loader);
    return status;
}
