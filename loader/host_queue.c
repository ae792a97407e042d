/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread copies in order, others hash what lies behind a mark that was reached: the same
 * freedom to be late that a GPU has, so that what reuses a buffer too early is caught here too.
 */
#include "loader/host_queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A load from a page that its file has lost is SIGBUS; asked for by a system call it is EFAULT. */
static bool copy_guarded(uint8_t *to, const uint8_t *from, uint64_t n)
{
    while (n > 0) {
        const struct iovec mine = {.iov_base = to, .iov_len = (size_t)n};
        const struct iovec theirs = {.iov_base = (uint8_t *)(uintptr_t)from, .iov_len = (size_t)n};
        const ssize_t got = process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0);
        if (got <= 0) return false;
        to += got, from += got, n -= (uint64_t)got;
    }
    return true;
}

/* false: there was nothing to copy from any more. */
static bool copy_runs(const struct host_op *op)
{
    bool there = true;
    for (uint64_t i = 0; i < op->rows && there; i++) {
        uint8_t *to = (uint8_t *)op->to + i * op->pitch;
        const uint8_t *from = (const uint8_t *)op->from + i * op->stride;
        if (op->guarded)
            there = copy_guarded(to, from, op->width);
        else
            memcpy(to, from, (size_t)op->width);
    }
    return there;
}

bool ig_host_guard(struct host_device *h, const uint8_t *at, size_t bytes)
{
    uint8_t byte;
    struct host_map *room = NULL;
    if (!copy_guarded(&byte, at, 1)) return false;
    pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < HOST_MAPS && !room; i++)
        if (!h->maps[i].at) room = &h->maps[i];
    if (room) *room = (struct host_map){at, bytes};
    pthread_mutex_unlock(&h->lock);
    return room != NULL;
}

void ig_host_unguard(struct host_device *h, const uint8_t *at)
{
    pthread_mutex_lock(&h->lock);
    for (unsigned i = 0; i < HOST_MAPS; i++)
        if (h->maps[i].at == at) h->maps[i] = (struct host_map){0};
    pthread_mutex_unlock(&h->lock);
}

/* Lock held. */
static bool is_guarded(const struct host_device *h, const struct host_op *op)
{
    const uintptr_t from = (uintptr_t)op->from;
    for (unsigned i = 0; op->kind == HOST_COPY && i < HOST_MAPS; i++)
        if (h->maps[i].at && from >= (uintptr_t)h->maps[i].at &&
            from - (uintptr_t)h->maps[i].at < h->maps[i].bytes)
            return true;
    return false;
}

static void sleep_us(unsigned us)
{
    const struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

/* The lock is held; released while bytes move. */
static void do_op(struct host_device *h, const struct host_op *op)
{
    if (op->kind == HOST_MARK) {
        h->reached[op->mark] = true;
        return;
    }
    if (op->kind == HOST_AFTER) {
        while (h->open[op->mark] > 0) pthread_cond_wait(&h->changed, &h->lock);
        return;
    }
    pthread_mutex_unlock(&h->lock);
    if (h->delay_us) sleep_us(h->delay_us);
    bool there = true;
    if (op->kind == HOST_COPY)
        there = copy_runs(op);
    else
        memset(op->to, op->byte, (size_t)op->width);
    pthread_mutex_lock(&h->lock);
    h->lost |= !there;
}

static void *copy_thread(void *arg)
{
    struct host_device *h = arg;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        struct host_op *op = h->first;
        if (!op) {
            if (h->stop) break;
            pthread_cond_wait(&h->changed, &h->lock);
            continue;
        }
        h->first = op->next;
        if (!h->first) h->last = NULL;
        h->copying = true;
        do_op(h, op);
        h->copying = false;
        free(op);
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* A batch whose mark was reached and that has jobs left. */
static struct host_batch *runnable(struct host_device *h)
{
    struct host_batch *b = h->batches;
    while (b && (!h->reached[b->mark] || b->taken == b->n)) b = b->next;
    return b;
}

static void drop_batch(struct host_device *h, const struct host_batch *done)
{
    struct host_batch **p = &h->batches, *before = NULL;
    while (*p != done) before = *p, p = &(*p)->next;
    *p = done->next;
    if (h->batches_end == done) h->batches_end = before;
}

static void *hash_thread(void *arg)
{
    struct host_device *h = arg;
    struct ig_lanes *lanes = ig_lanes_new(h->lanes); /* NULL works, one leaf at a time */
    pthread_mutex_lock(&h->lock);
    for (;;) {
        struct host_batch *b = runnable(h);
        if (!b) {
            if (h->stop) break;
            pthread_cond_wait(&h->changed, &h->lock);
            continue;
        }
        const struct ig_job *job = &b->jobs[b->taken++];
        pthread_mutex_unlock(&h->lock);
        ig_host_job(lanes, job, b->results);
        pthread_mutex_lock(&h->lock);
        if (++b->done == b->n) {
            h->open[b->mark]--;
            drop_batch(h, b);
            free(b);
            pthread_cond_broadcast(&h->changed);
        }
    }
    pthread_mutex_unlock(&h->lock);
    ig_lanes_free(lanes);
    return NULL;
}

ingot_status ig_host_push(struct host_device *h, const struct host_op *op, ingot_error *e)
{
    struct host_op *mine = malloc(sizeof *mine);
    if (!mine) return ig_no_memory(e);
    *mine = *op;
    mine->next = NULL;
    pthread_mutex_lock(&h->lock);
    mine->guarded = is_guarded(h, op);
    if (op->kind == HOST_MARK) h->reached[op->mark] = false;
    if (h->last)
        h->last->next = mine;
    else
        h->first = mine;
    h->last = mine;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return INGOT_OK;
}

ingot_status ig_host_push_batch(struct host_device *h, const struct host_batch *b, ingot_error *e)
{
    struct host_batch *mine = malloc(sizeof *mine);
    if (!mine) return ig_no_memory(e);
    *mine = *b;
    mine->next = NULL;
    pthread_mutex_lock(&h->lock);
    h->open[b->mark]++;
    if (h->batches_end)
        h->batches_end->next = mine;
    else
        h->batches = mine;
    h->batches_end = mine;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return INGOT_OK;
}

ingot_status ig_host_start(struct host_device *h, ingot_error *e)
{
    if (h->started) return INGOT_OK;
    h->hashers = ig_array(h->threads, sizeof *h->hashers);
    if (!h->hashers) return ig_no_memory(e);
    h->lanes = ig_lanes_new(NULL);
    int err = pthread_create(&h->copier, NULL, copy_thread, h);
    if (err) return ig_fail_sys(e, err, "cannot start a thread");
    h->started = true;
    while (h->nhashers < h->threads && err == 0) {
        err = pthread_create(&h->hashers[h->nhashers], NULL, hash_thread, h);
        if (err == 0) h->nhashers++;
    }
    /* One that hashes is enough. */
    return h->nhashers > 0 ? INGOT_OK : ig_fail_sys(e, err, "cannot start a thread");
}

void ig_host_stop(struct host_device *h)
{
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (h->started) pthread_join(h->copier, NULL);
    for (unsigned i = 0; i < h->nhashers; i++) pthread_join(h->hashers[i], NULL);
    free(h->hashers);
    ig_lanes_free(h->lanes);
}
