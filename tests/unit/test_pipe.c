/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pipe.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define LANES 3
#define ITEMS 200

struct counts {
    uint64_t next_read[LANES], next_hash[LANES];
    unsigned in_hash[LANES];
    unsigned placed[LANES][ITEMS];
    uint64_t fail_at;
    bool out_of_order, two_at_once;
};

static ingot_status next(void *ctx, struct ig_item *item, bool *more, ingot_error *e)
{
    (void)ctx, (void)e;
    *more = item->index < ITEMS - item->lane * 7;
    item->arg[0] = item->lane * 1000 + item->index;
    return INGOT_OK;
}

static ingot_status read_stage(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct counts *c = ctx;
    (void)worker, (void)e;
    if (c->next_read[item->lane]++ != item->index) c->out_of_order = true;
    return INGOT_OK;
}

static ingot_status hash_stage(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct counts *c = ctx;
    (void)worker;
    if (c->in_hash[item->lane]++) c->two_at_once = true;
    if (c->next_hash[item->lane]++ != item->index) c->out_of_order = true;
    for (unsigned i = 0; i < item->index % 5; i++) sched_yield();
    c->in_hash[item->lane]--;
    if (item->arg[0] == c->fail_at)
        return ig_fail(e, INGOT_ERR_IO, "item %u", (unsigned)item->arg[0]);
    return INGOT_OK;
}

static ingot_status place_stage(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct counts *c = ctx;
    (void)worker, (void)e;
    __atomic_fetch_add(&c->placed[item->lane][item->index], 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < item->index % 3; i++) sched_yield();
    return INGOT_OK;
}

static ingot_status run(struct counts *c, unsigned threads, unsigned slots, ingot_error *e)
{
    static const struct ig_stage stages[] = {
        {read_stage, true}, {hash_stage, true}, {place_stage, false}};
    const struct ig_pipe p = {.ctx = c,
                              .threads = threads,
                              .lanes = LANES,
                              .slots = slots,
                              .next = next,
                              .stages = stages,
                              .nstages = 3};
    return ig_pipe_run(&p, e);
}

static void test_every_item_once_and_in_order(void **state)
{
    static const unsigned shapes[][2] = {{1, 3}, {1, 8}, {2, 3}, {4, 5}, {8, 20}, {16, 3}};
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        struct counts c = {.fail_at = UINT64_MAX};
        assert_int_equal(run(&c, shapes[k][0], shapes[k][1], NULL), INGOT_OK);
        assert_false(c.out_of_order);
        assert_false(c.two_at_once);
        for (unsigned l = 0; l < LANES; l++)
            for (unsigned i = 0; i < ITEMS; i++)
                assert_int_equal(c.placed[l][i], i < ITEMS - l * 7);
    }
}

static void test_first_failure_stops_the_pipe(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        struct counts c = {.fail_at = 1050};
        ingot_error e = {0};
        assert_int_equal(run(&c, threads, threads + 3, &e), INGOT_ERR_IO);
        assert_string_equal(e.message, "item 1050");
        assert_int_equal(c.placed[1][50], 0);
        assert_int_equal(c.placed[1][60], 0);
    }
}

static ingot_status mark(void *ctx, uint64_t index, unsigned worker, ingot_error *e)
{
    unsigned *seen = ctx;
    (void)worker;
    __atomic_fetch_add(&seen[index], 1, __ATOMIC_RELAXED);
    (void)e;
    return INGOT_OK;
}

static void test_parallel_covers_every_index(void **state)
{
    static const uint64_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, 100000};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        unsigned *seen = calloc(sizes[k] + 1, sizeof *seen);
        assert_int_equal(ig_parallel(3, sizes[k], mark, seen, NULL), INGOT_OK);
        for (uint64_t i = 0; i < sizes[k]; i++) assert_int_equal(seen[i], 1);
        free(seen);
    }
}

/* Six threads, two of them busy at most; those that wait do not count, and do wait side by side. */
struct gate {
    int busy, most_busy, waiting, most_waiting;
};

static void most(int *highest, int now)
{
    int before = __atomic_load_n(highest, __ATOMIC_SEQ_CST);
    while (now > before && !__atomic_compare_exchange_n(highest, &before, now, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
}

static ingot_status gate_stage(void *ctx, struct ig_item *item, unsigned worker, ingot_error *e)
{
    struct gate *g = ctx;
    (void)worker, (void)e;
    most(&g->most_busy, __atomic_add_fetch(&g->busy, 1, __ATOMIC_SEQ_CST));
    usleep(100);
    __atomic_sub_fetch(&g->busy, 1, __ATOMIC_SEQ_CST);
    ig_pipe_wait(item, true);
    most(&g->most_waiting, __atomic_add_fetch(&g->waiting, 1, __ATOMIC_SEQ_CST));
    usleep(2000);
    __atomic_sub_fetch(&g->waiting, 1, __ATOMIC_SEQ_CST);
    ig_pipe_wait(item, false);
    return INGOT_OK;
}

static void test_waiting_threads_make_room(void **state)
{
    struct gate g = {0};
    const struct ig_stage stage = {.run = gate_stage};
    const struct ig_pipe pipe = {.ctx = &g,
                                 .threads = 6,
                                 .busy = 2,
                                 .lanes = 1,
                                 .slots = 8,
                                 .next = next,
                                 .stages = &stage,
                                 .nstages = 1};
    (void)state;
    assert_int_equal(ig_pipe_run(&pipe, NULL), INGOT_OK);
    assert_in_range(g.most_busy, 1, 2);
    assert_in_range(g.most_waiting, 3, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once_and_in_order),
        cmocka_unit_test(test_first_failure_stops_the_pipe),
        cmocka_unit_test(test_parallel_covers_every_index),
        cmocka_unit_test(test_waiting_threads_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
