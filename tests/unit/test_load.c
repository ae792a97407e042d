/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that go well: every engine, level and kind of part. */
#include "tests/unit/load_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const ingot_engine engines[] = {INGOT_ENGINE_AUTO, INGOT_ENGINE_RING, INGOT_ENGINE_MAP,
                                       INGOT_ENGINE_DIRECT};

static void start_good(ingot_loader *l, const struct bench *b, const ingot_load_options *o,
                       ingot_load **load)
{
    ingot_error e = {0};
    if (bench_load(l, b, o, load, &e) != INGOT_OK) fail_msg("%s", e.message);
}

static void every_engine_and_level_gives_the_same_bytes(void **state)
{
    const struct bench *b = *state;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        for (int check = INGOT_CHECK_FULL; check <= INGOT_CHECK_OFF; check++) {
            const ingot_load_options o = {.size = sizeof o, .check = (ingot_check)check};
            ingot_loader *l = bench_loader(engines[i]);
            ingot_load *load;
            ingot_load_stats s;
            start_good(l, b, &o, &load);
            assert_true(bench_compare(b, load) >= 10 << 20);
            ingot_load_get_stats(load, &s);
            assert_int_equal(s.placed, b->pack->pack.tail);
            /* The XXH3 table is of the weights; the superblock before them has none. */
            const uint64_t before = check == INGOT_CHECK_FAST ? b->pack->pack.weights : 0;
            assert_int_equal(s.proven, check == INGOT_CHECK_OFF ? 0 : s.placed - before);
            assert_int_equal(s.uploaded, s.placed);
            assert_true(s.total >= s.landed && s.landed >= s.first);
            ingot_load_release(load);
            ingot_loader_close(l);
        }
}

/* F03: copies that are late must not find the next window in their slot. */
static void late_copies_find_their_bytes(void **state)
{
    const struct bench *b = *state;
    for (int round = 0; round < 5; round++) {
        ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
        ingot_load *load;
        struct hooks h = {.calls = 0};
        hooks_put(&h, l);
        hooks_slow(&h, 3000);
        start_good(l, b, NULL, &load);
        bench_compare(b, load);
        ingot_load_release(load);
        ingot_loader_close(l);
    }
}

static void a_loader_is_used_again(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
    ingot_load *first, *second;
    start_good(l, b, NULL, &first);
    start_good(l, b, NULL, &second);
    ingot_loader_close(l); /* loads keep what they need */
    bench_compare(b, first);
    ingot_load_release(first);
    bench_compare(b, second);
    ingot_load_release(second);
}

static void parts_by_name_and_pattern(void **state)
{
    const struct bench *b = *state;
    const char *const names[] = {"model.norm.weight", "model.layers.2.*", "model.layers.2.mlp*"};
    const ingot_load_options o = {.size = sizeof o, .tensors = names, .ntensors = 3};
    ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
    ingot_load *load;
    ingot_load_stats s;
    ingot_placed p;
    ingot_error e;
    start_good(l, b, &o, &load);
    bench_compare(b, load);
    ingot_load_get_stats(load, &s);
    assert_int_equal(s.tensors, 7);
    assert_int_equal(s.tensors_proven, 7);
    assert_int_equal(s.proven, s.placed);
    assert_true(s.early);
    assert_true(s.read < b->pack->pack.size / 2);
    assert_int_equal(ingot_load_tensor(load, "lm_head.weight", 0, &p, &e), INGOT_ERR_NOT_FOUND);
    assert_non_null(strstr(e.message, "lm_head.weight"));
    ingot_load_release(load);
    ingot_loader_close(l);
}

/* 4 heads: the ranks of 1, 2 and 4 hold together what there is; norms are everybody's. */
static void ranks_hold_their_share(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
    for (unsigned n = 1; n <= 4; n *= 2) {
        uint64_t all = 0, replicated = 0;
        for (unsigned r = 0; r < n; r++) {
            const ingot_load_options o = {.size = sizeof o, .rank = r, .ranks = n};
            ingot_load *load;
            ingot_placed p;
            start_good(l, b, &o, &load);
            all += bench_compare(b, load);
            assert_int_equal(ingot_load_tensor(load, "model.norm.weight", 0, &p, NULL), INGOT_OK);
            assert_int_equal(p.replicated, n > 1);
            assert_int_equal(
                ingot_load_tensor(load, "model.layers.1.self_attn.o_proj.weight", 0, &p, NULL),
                INGOT_OK);
            assert_int_equal(p.column, 256 / n * r);
            assert_int_equal(p.columns, 256 / n);
            ingot_load_release(load);
        }
        replicated = (n - 1) * 11 * 512;
        uint64_t once = 0;
        for (uint32_t i = 0; i < b->pack->pack.nrows; i++) {
            struct ig_row row;
            ig_pack_row(&b->pack->pack, i, &row);
            once += row.flags & IG_ROW_VIEW ? 0 : row.bytes;
        }
        assert_int_equal(all, once + replicated);
    }
    ingot_loader_close(l);
}

/* Rows with a pitch, columns, and a whole tensor, where the caller has memory for them. */
static void pieces_go_where_the_caller_says(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
    static uint8_t found[64 * 1000];
    uint8_t *rows = bench_memory(l, sizeof found), *columns = bench_memory(l, 256 * 100);
    uint8_t *whole = bench_memory(l, 512);
    const ingot_piece k[] = {
        {"model.embed_tokens.weight", .row = 1234, .rows = 64, .to = rows, .pitch = 1000},
        {"model.layers.3.mlp.down_proj.weight", .column = 600, .columns = 50, .to = columns},
        {"model.norm.weight", .to = whole}};
    const ingot_load_options o = {.size = sizeof o, .pieces = k, .npieces = 3};
    ingot_load *load;
    ingot_load_stats s;
    ingot_placed p;
    bench_fill(l, rows, 0x55, sizeof found);
    start_good(l, b, &o, &load);
    assert_int_equal(bench_compare(b, load), 64 * 512 + 256 * 100 + 512);
    bench_read(l, found, rows, sizeof found);
    for (unsigned i = 0; i < 64; i++)
        for (unsigned j = 512; j < 1000; j++) assert_int_equal(found[i * 1000 + j], 0x55);
    assert_int_equal(ingot_load_tensor(load, "model.layers.3.mlp.down_proj.weight", 0, &p, NULL),
                     INGOT_OK);
    assert_ptr_equal(p.data, columns);
    ingot_load_get_stats(load, &s);
    assert_int_equal(s.arena, 0);
    ingot_load_release(load);
    l->dev->ops->release(l->dev, rows);
    l->dev->ops->release(l->dev, columns);
    l->dev->ops->release(l->dev, whole);
    ingot_loader_close(l);
}

static void expect_usage(ingot_loader *l, const struct bench *b, const ingot_piece *k, size_t n,
                         const char *text)
{
    const ingot_load_options o = {.size = sizeof o, .pieces = k, .npieces = n};
    ingot_load *load = NULL;
    ingot_error e = {0};
    assert_int_equal(ingot_load_start(l, b->pack, &o, &load, &e), INGOT_ERR_USAGE);
    assert_null(load);
    if (!strstr(e.message, text)) fail_msg("\"%s\" is not in: %s", text, e.message);
}

static void pieces_that_cannot_be_are_refused(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
    uint8_t *m = bench_memory(l, 4096);
    expect_usage(l, b,
                 (ingot_piece[]){{"model.norm.weight", .to = m},
                                 {"model.layers.0.input_layernorm.weight", .to = m + 511}},
                 2, "overlap");
    expect_usage(l, b, (ingot_piece[]){{"model.norm.weight", .row = 200, .rows = 57, .to = m}}, 1,
                 "rows beyond");
    expect_usage(
        l, b, (ingot_piece[]){{"lm_head.weight", .rows = 1, .column = 256, .columns = 1, .to = m}},
        1, "columns beyond");
    expect_usage(l, b, (ingot_piece[]){{"lm_head.weight", .rows = 2, .to = m, .pitch = 511}}, 1,
                 "pitch");
    expect_usage(l, b, (ingot_piece[]){{"lm_head.weight", .rows = 2}}, 1, "no memory");
    /* Columns of two pieces side by side in one block of memory do not overlap. */
    const ingot_piece beside[] = {
        {"lm_head.weight", .rows = 4, .columns = 8, .to = m, .pitch = 32},
        {"lm_head.weight", .rows = 4, .column = 8, .columns = 8, .to = m + 16, .pitch = 32}};
    const ingot_load_options o = {.size = sizeof o, .pieces = beside, .npieces = 2};
    ingot_load *load;
    start_good(l, b, &o, &load);
    ingot_load_release(load);
    l->dev->ops->release(l->dev, m);
    ingot_loader_close(l);
}

static void states_and_blobs(void **state)
{
    const struct bench *b = *state;
    const char last[] = "lm_head.weight";
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    ingot_load *load;
    ingot_error e;
    char *text;
    size_t n;
    struct hooks h = {.calls = 0};
    hooks_put(&h, l);
    hooks_slow(&h, 2000);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &load, &e), INGOT_OK);
    assert_int_equal(ingot_load_await(load, "model.norm.weight", INGOT_STATE_WAITING, 0, NULL, &e),
                     INGOT_OK);
    assert_int_equal(ingot_load_await(load, "model.norm.weight", INGOT_STATE_PROVEN, 0, NULL, &e),
                     INGOT_OK);
    assert_int_equal(ingot_load_await(load, last, INGOT_STATE_LANDED, 1, NULL, &e), INGOT_OK);
    assert_int_equal(ingot_load_await(load, NULL, INGOT_STATE_PROVEN, 0, NULL, &e), INGOT_OK);
    assert_int_equal(ingot_load_await(load, "nobody", INGOT_STATE_LANDED, 0, NULL, &e),
                     INGOT_ERR_NOT_FOUND);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_OK);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_OK);
    assert_int_equal(ingot_load_blob(load, "config.json", &text, &n, &e), INGOT_OK);
    assert_int_equal(strlen(text), n);
    assert_non_null(strstr(text, "Phi3ForCausalLM"));
    ingot_free(text);
    assert_int_equal(ingot_load_blob(load, "none.json", &text, &n, &e), INGOT_ERR_NOT_FOUND);
    ingot_load_release(load);
    ingot_loader_close(l);
}

static void busy_while_another_runs(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    ingot_load *load, *second = NULL;
    ingot_error e;
    struct hooks h = {.calls = 0};
    hooks_put(&h, l);
    hooks_slow(&h, 20000);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &load, &e), INGOT_OK);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &second, &e), INGOT_ERR_BUSY);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_OK);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &second, &e), INGOT_OK);
    ingot_load_release(second); /* in the middle: it ends, and the loader is free */
    hooks_slow(&h, 0);
    assert_int_equal(bench_load(l, b, NULL, &second, &e), INGOT_OK);
    ingot_load_release(second);
    ingot_load_release(load);
    ingot_loader_close(l);
}

static int cancel_half(void *ctx)
{
    return __atomic_load_n((int *)ctx, __ATOMIC_RELAXED);
}

static void progress_half(void *ctx, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    if (done > total / 2) __atomic_store_n((int *)ctx, 1, __ATOMIC_RELAXED);
}

static void cancelled_in_the_middle(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    int half = 0;
    const ingot_load_options o = {
        .size = sizeof o, .progress = progress_half, .cancelled = cancel_half, .ctx = &half};
    ingot_load *load;
    ingot_placed p;
    ingot_error e;
    assert_int_equal(bench_load(l, b, &o, &load, &e), INGOT_ERR_CANCELLED);
    assert_int_equal(ingot_load_tensor(load, "model.norm.weight", 0, &p, &e), INGOT_ERR_CANCELLED);
    ingot_load_release(load);
    struct hooks h = {.calls = 0};
    hooks_put(&h, l);
    hooks_slow(&h, 20000);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &load, &e), INGOT_OK);
    ingot_load_cancel(load);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_ERR_CANCELLED);
    ingot_load_release(load);
    ingot_loader_close(l);
}

static void a_child_must_not_touch_it(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    ingot_load *load;
    int status;
    start_good(l, b, NULL, &load);
    const pid_t child = fork();
    if (child == 0) {
        ingot_error e;
        ingot_load *mine;
        ingot_placed p;
        int bad = ingot_load_wait(load, &e) != INGOT_ERR_USAGE;
        bad |= ingot_load_start(l, b->pack, NULL, &mine, &e) != INGOT_ERR_USAGE;
        bad |= ingot_load_tensor(load, "model.norm.weight", 0, &p, &e) != INGOT_ERR_USAGE;
        bad |= ingot_load_reverify(load, &e) != INGOT_ERR_USAGE;
        bad |= strstr(e.message, "fork") == NULL;
        ingot_load_release(load);
        ingot_loader_close(l);
        _exit(bad);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    bench_compare(b, load);
    ingot_load_release(load);
    ingot_loader_close(l);
}

static void hashed_once_more(void **state)
{
    const struct bench *b = *state;
    const ingot_load_options rank = {.size = sizeof rank, .rank = 1, .ranks = 2};
    const char name[] = "model.layers.4.self_attn.o_proj.weight";
    for (int part = 0; part < 2; part++) {
        ingot_loader *l = bench_loader(INGOT_ENGINE_AUTO);
        ingot_load *load;
        ingot_placed p;
        ingot_error e;
        start_good(l, b, part ? &rank : NULL, &load);
        for (int i = 0; i < 2; i++)
            if (ingot_load_reverify(load, &e) != INGOT_OK) fail_msg("%s", e.message);
        bench_compare(b, load);
        assert_int_equal(ingot_load_tensor(load, name, 0, &p, &e), INGOT_OK);
        uint8_t *byte = (uint8_t *)p.data + 77 * p.pitch;
        bench_flip(l, byte, 4);
        assert_int_equal(ingot_load_reverify(load, &e), INGOT_ERR_CHECK);
        if (!strstr(e.message, name)) fail_msg("%s", e.message);
        assert_int_equal(bench_byte(l, byte), 0xff); /* NaN now */
        assert_int_equal(ingot_load_tensor(load, name, 0, &p, &e), INGOT_ERR_CHECK);
        ingot_load_release(load);
        ingot_loader_close(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_engine_and_level_gives_the_same_bytes),
        cmocka_unit_test(late_copies_find_their_bytes),
        cmocka_unit_test(a_loader_is_used_again),
        cmocka_unit_test(parts_by_name_and_pattern),
        cmocka_unit_test(ranks_hold_their_share),
        cmocka_unit_test(pieces_go_where_the_caller_says),
        cmocka_unit_test(pieces_that_cannot_be_are_refused),
        cmocka_unit_test(states_and_blobs),
        cmocka_unit_test(busy_while_another_runs),
        cmocka_unit_test(cancelled_in_the_middle),
        cmocka_unit_test(a_child_must_not_touch_it),
        cmocka_unit_test(hashed_once_more),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
