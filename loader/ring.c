/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging memory.  Few large slots that stay in the last-level cache are faster than many: what
 * the workers have just written is read by the copy engine from there.  One anonymous mapping, on
 * huge pages where the kernel has them, so that touching and pinning it is short.
 */
#include "loader/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define HUGE_PAGE ((uintptr_t)2 << 20)

static size_t batches_bytes(void)
{
    return IG_BATCHES *
           (ig_round_up(IG_BATCH_JOBS * sizeof(struct ig_job), IG_PAGE) + IG_BATCH_OUT);
}

static void cut_batches(struct ig_ring *r)
{
    uint8_t *at = r->memory + r->slots * r->window;
    for (unsigned i = 0; i < IG_BATCHES; i++) {
        r->batch[i].jobs = (struct ig_job *)(void *)at;
        at += ig_round_up(IG_BATCH_JOBS * sizeof(struct ig_job), IG_PAGE);
        r->batch[i].results = at;
        at += IG_BATCH_OUT;
    }
}

ingot_status ig_ring_open(struct ig_ring *r, unsigned slots, uint64_t window, uint64_t room,
                          ingot_error *e)
{
    *r = (struct ig_ring){.slots = slots};
    while (window > IG_WINDOW_MIN && slots * window + batches_bytes() > room) window /= 2;
    r->window = window;
    r->asked = r->bytes = slots * window + batches_bytes();
    r->batch = ig_array(IG_BATCHES, sizeof *r->batch);
    if (!r->batch) return ig_no_memory(e);
    r->memory = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->memory == MAP_FAILED) {
        r->memory = NULL;
        ig_ring_close(r, NULL);
        return ig_fail(e, INGOT_ERR_NO_MEMORY, "%zu bytes of staging memory were refused",
                       r->asked);
    }
    (void)madvise(r->memory, r->bytes, MADV_HUGEPAGE);
    (void)madvise(r->memory, r->bytes, MADV_DONTFORK); /* pinned pages must not be copied */
    cut_batches(r);
    return INGOT_OK;
}

void ig_ring_touch(struct ig_ring *r, unsigned part, unsigned parts)
{
    const size_t each = r->bytes / parts / HUGE_PAGE * HUGE_PAGE;
    const uintptr_t start = (uintptr_t)r->memory + part * each;
    const size_t n = part + 1 == parts ? r->bytes - part * each : each;
    /* An older kernel does not know it; then pages come to be as they are read into. */
    if (n) (void)madvise((void *)start, n, MADV_POPULATE_WRITE);
}

uint64_t ig_ring_least(void)
{
    return IG_SLOTS * IG_WINDOW_MIN + batches_bytes();
}

static bool pin_all(struct ig_ring *r, struct ig_dev *d, ingot_error *e)
{
    r->pinned = d->ops->pin(d, r->memory, r->bytes, false, e) == INGOT_OK;
    return r->pinned;
}

bool ig_ring_pin(struct ig_ring *r, struct ig_dev *d)
{
    ingot_error e;
    return r->pinned || r->settled || pin_all(r, d, &e);
}

/* What is too much to be pinned is given back. */
static void halve(struct ig_ring *r)
{
    const size_t before = r->bytes;
    r->window /= 2;
    r->bytes = r->slots * r->window + batches_bytes();
    cut_batches(r);
    munmap(r->memory + r->bytes, before - r->bytes);
}

void ig_ring_shrink(struct ig_ring *r, struct ig_dev *d, char *notice, size_t cap)
{
    ingot_error e = {0};
    const size_t wanted = r->bytes;
    while (!pin_all(r, d, &e) && r->window > IG_WINDOW_MIN) halve(r);
    r->settled = true;
    if (!r->pinned)
        snprintf(notice, cap, "no pinned host memory, copies are slower: %s", e.message);
    else
        snprintf(notice, cap,
                 "only %zu of %zu bytes of pinned host memory were granted, copies are smaller",
                 r->bytes, wanted);
}

void ig_ring_close(struct ig_ring *r, struct ig_dev *d)
{
    if (r->pinned && d) (void)d->ops->unpin(d, r->memory, NULL);
    if (r->memory) munmap(r->memory, r->bytes);
    free(r->batch);
    *r = (struct ig_ring){0};
}
