/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Past the page cache through io_uring: one thread keeps all the reads of a window in flight, and
 * sleeps.  Where the kernel or a sandbox refuses io_uring, workers read with pread instead.
 */
#include "config.h"

#include "loader/run.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_LIBURING
#include <liburing.h>

#define DEPTH 64u

struct ig_uring {
    struct io_uring ring;
};

static ingot_status open_uring(struct ig_uring **out, bool *refused, ingot_error *e)
{
    struct ig_uring *u = calloc(1, sizeof *u);
    if (!u) return ig_no_memory(e);
    if (io_uring_queue_init(DEPTH, &u->ring, 0) < 0) {
        *refused = true;
        free(u);
        return INGOT_OK;
    }
    *out = u;
    return INGOT_OK;
}

/* A read that came short goes on where it stopped, by pread: it is rare and simple. */
static ingot_status finish(int fd, const char *path, const struct ig_read *k, int result,
                           uint8_t *to, ingot_error *e)
{
    if (result == -EINTR || result == -EAGAIN) result = 0;
    if (result < 0) {
        ig_fail_sys(e, -result, "%s: cannot read %u bytes at offset %llu", path, k->bytes,
                    (unsigned long long)k->offset);
        return ig_at_offset(e, path, k->offset);
    }
    const uint32_t done = (uint32_t)result / IG_PAGE * IG_PAGE;
    if (done >= k->bytes) return INGOT_OK;
    return ig_pread(fd, path, to + done, k->bytes - done, k->offset + done, e);
}

/* Everything queued is waited for, also after a failure: the kernel writes to the slot. */
static ingot_status reap(struct ig_uring *u, int fd, const char *path, const struct ig_read *reads,
                         uint32_t n, uint8_t *memory, uint64_t base, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    for (uint32_t i = 0; i < n; i++) {
        struct io_uring_cqe *done;
        int err;
        do err = io_uring_wait_cqe(&u->ring, &done);
        while (err == -EINTR);
        if (err < 0) return ig_fail_sys(e, -err, "%s: io_uring failed", path);
        const struct ig_read *k = &reads[(uintptr_t)io_uring_cqe_get_data(done)];
        const int result = done->res;
        io_uring_cqe_seen(&u->ring, done);
        if (status == INGOT_OK)
            status = finish(fd, path, k, result, memory + (k->offset - base), e);
    }
    return status;
}

ingot_status ig_uring_read(struct ig_uring **u, int fd, const char *path,
                           const struct ig_read *reads, uint32_t n, uint8_t *memory, uint64_t base,
                           bool *refused, ingot_error *e)
{
    if (!*u) return_if_error(open_uring(u, refused, e));
    for (uint32_t at = 0; at < n && *u; at += DEPTH) {
        const uint32_t part = n - at < DEPTH ? n - at : DEPTH;
        uint32_t queued = 0;
        for (uint32_t i = 0; i < part; i++) {
            const struct ig_read *k = &reads[at + i];
            struct io_uring_sqe *s = io_uring_get_sqe(&(*u)->ring);
            io_uring_prep_read(s, fd, memory + (k->offset - base), k->bytes, k->offset);
            io_uring_sqe_set_data(s, (void *)(uintptr_t)(at + i));
        }
        while (queued < part) {
            const int k = io_uring_submit(&(*u)->ring);
            if (k == -EINTR || k == -EAGAIN) continue;
            if (k < 0) return ig_fail_sys(e, -k, "%s: io_uring failed", path);
            queued += (uint32_t)k;
        }
        return_if_error(reap(*u, fd, path, reads, part, memory, base, e));
    }
    return INGOT_OK;
}

void ig_uring_close(struct ig_uring *u)
{
    if (!u) return;
    io_uring_queue_exit(&u->ring);
    free(u);
}

#else

ingot_status ig_uring_read(struct ig_uring **u, int fd, const char *path,
                           const struct ig_read *reads, uint32_t n, uint8_t *memory, uint64_t base,
                           bool *refused, ingot_error *e)
{
    (void)u, (void)fd, (void)path, (void)reads, (void)n, (void)memory, (void)base, (void)e;
    *refused = true;
    return INGOT_OK;
}

void ig_uring_close(struct ig_uring *u)
{
    (void)u;
}

#endif
