/* SPDX-License-Identifier: Apache-2.0 */
/* What a file, a bus, a device or a neighbour does to a load: each is caught, placed and survived.
 */
#include "tests/unit/load_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const ingot_engine engines[] = {INGOT_ENGINE_AUTO, INGOT_ENGINE_RING, INGOT_ENGINE_MAP,
                                       INGOT_ENGINE_DIRECT};

static uint64_t position(const struct bench *b, const char *name, uint64_t at)
{
    ingot_tensor t;
    assert_int_equal(ingot_pack_find(b->pack, name, &t, NULL), INGOT_OK);
    return t.offset + at;
}

/* The verdict names the tensor, and an offset not further than `reach` before the damage. */
static void expect_placed(ingot_status status, const ingot_error *e, const char *tensor,
                          uint64_t offset, uint64_t reach)
{
    if (status != INGOT_ERR_CHECK) fail_msg("%d: %s", status, e->message);
    if (tensor && !strstr(e->message, tensor)) fail_msg("no %s in: %s", tensor, e->message);
    assert_true(e->has_offset);
    if (e->offset > offset || offset - e->offset >= reach)
        fail_msg("damaged at %llu: %s", (unsigned long long)offset, e->message);
}

/* ---- bytes that change on their way ---- */

/* The slot is bad: a byte of the n-th copy is another when the bus reads it. */
static void flip_slot(struct hooks *h, const void *from, uint64_t bytes)
{
    if (h->calls++ != 5) return;
    uint8_t *byte = (uint8_t *)(uintptr_t)from + bytes / 2;
    *byte ^= 0x10;
}

static void a_bad_staging_slot(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    struct hooks h = {.copied = flip_slot};
    ingot_load *load = NULL;
    ingot_error e = {0};
    hooks_put(&h, l);
    const ingot_status status = bench_load(l, b, NULL, &load, &e);
    expect_placed(status, &e, "model.", (5ull << 20) + (1 << 19), IG_PAGE);
    assert_non_null(strstr(e.message, "the file holds others"));
    ingot_load_stats s;
    ingot_load_get_stats(load, &s);
    assert_true(s.proven >= (uint64_t)3 << 20 && s.proven <= (uint64_t)5 << 20);
    ingot_load_release(load);
    h.copied = NULL;
    assert_int_equal(bench_load(l, b, NULL, &load, &e),
                     INGOT_OK); /* the loader is as good as new */
    bench_compare(b, load);
    ingot_load_release(load);
    ingot_loader_close(l);
    hooks_balanced(&h);
}

/* What lies in device memory is another byte by the time it is hashed. */
static void flip_device(struct hooks *h, unsigned mark, const struct ig_job *jobs, uint32_t n)
{
    (void)mark;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *data = (uint8_t *)(uintptr_t)jobs[i].data;
        if (jobs[i].kind != IG_JOB_NODE && jobs[i].kind != IG_JOB_XXH) continue;
        if (h->calls++ == 9) bench_flip(h->loader, data + h->at % jobs[i].bytes, 1);
    }
}

static void a_flipped_device_byte(void **state)
{
    const struct bench *b = *state;
    for (int check = INGOT_CHECK_FULL; check <= INGOT_CHECK_FAST; check++) {
        ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
        const ingot_load_options o = {.size = sizeof o, .check = (ingot_check)check};
        struct hooks h = {.hashing = flip_device, .at = 70001};
        ingot_load *load = NULL;
        ingot_error e = {0};
        hooks_put(&h, l);
        const ingot_status status = bench_load(l, b, &o, &load, &e);
        if (check == INGOT_CHECK_FULL)
            expect_placed(status, &e, "model.", 9 * IG_NODE + 70001, IG_PAGE);
        else
            assert_int_equal(status, INGOT_ERR_CHECK);
        ingot_load_release(load);
        ingot_loader_close(l);
        hooks_balanced(&h);
    }
}

/* Columns are hashed in the bounce and placed by a copy; somebody writes on them right then. */
static void overwrite_columns(struct hooks *h, unsigned mark, const struct ig_job *jobs, uint32_t n)
{
    (void)mark;
    for (uint32_t i = 0; i < n; i++) {
        if (jobs[i].kind != IG_JOB_COMPARE || h->calls++) continue;
        bench_flip(h->loader, (uint8_t *)h->ctx + h->at, 0x80);
    }
}

static void columns_overwritten_after_they_landed(void **state)
{
    const struct bench *b = *state;
    static uint8_t found[256 * 100];
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    uint8_t *columns = bench_memory(l, sizeof found);
    const char name[] = "model.layers.3.mlp.down_proj.weight";
    const ingot_piece k = {name, .column = 600, .columns = 50, .to = columns};
    const ingot_load_options o = {.size = sizeof o, .pieces = &k, .npieces = 1};
    struct hooks h = {.hashing = overwrite_columns, .ctx = columns, .at = 3 * 100 + 7};
    ingot_load *load = NULL;
    ingot_error e = {0};
    hooks_put(&h, l);
    const ingot_status status = bench_load(l, b, &o, &load, &e);
    assert_int_equal(status, INGOT_ERR_CHECK);
    assert_non_null(strstr(e.message, name));
    assert_non_null(strstr(e.message, "row 3 "));
    bench_read(l, found, columns, sizeof found);
    for (size_t i = 0; i < sizeof found; i++) assert_int_equal(found[i], 0xff);
    ingot_load_release(load);
    h.real->release(l->dev, columns);
    ingot_loader_close(l);
    assert_int_equal(h.allocs, h.releases);
}

/* ---- the file ---- */

static void a_damaged_file_with_and_without_its_tree(void **state)
{
    struct bench *b = *state;
    const char name[] = "model.layers.2.mlp.gate_up_proj.weight";
    const uint64_t at = position(b, name, 300001);
    bench_damage(b, at, 0x40);
    for (int tree = 1; tree >= 0; tree--) {
        if (!tree) bench_no_tree(b);
        for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
            for (int check = INGOT_CHECK_FULL; check <= INGOT_CHECK_FAST; check++) {
                ingot_loader *l = bench_loader(engines[i]);
                const ingot_load_options o = {.size = sizeof o, .check = (ingot_check)check};
                ingot_load *load = NULL;
                ingot_load_stats s;
                ingot_placed p;
                ingot_error e = {0};
                const bool full = check == INGOT_CHECK_FULL;
                const ingot_status status = bench_load(l, b, &o, &load, &e);
                expect_placed(status, &e, name, at, full && tree ? IG_PAGE : IG_SPAN);
                ingot_load_get_stats(load, &s);
                assert_int_equal(s.early, full && tree);
                assert_true(s.proven <= at);
                assert_int_equal(ingot_load_tensor(load, name, 0, &p, NULL), INGOT_ERR_CHECK);
                ingot_load_release(load);
                ingot_loader_close(l);
            }
    }
    bench_damage(b, at, 0x40);
}

/* Parts of tensors need leaves: a tree that is not the pack's is made anew, with a notice. */
static void a_forged_tree_is_not_believed(void **state)
{
    const struct bench *b = *state;
    const ingot_load_options o = {.size = sizeof o, .rank = 0, .ranks = 2};
    char *tree = ig_format("%.*s.tree", (int)(strlen(b->path) - strlen(".ingot")), b->path);
    const int fd = open(tree, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    for (int i = 0; i < 40; i++) {
        uint8_t page[IG_PAGE];
        memset(page, i + 1, sizeof page);
        assert_int_equal(pwrite(fd, page, sizeof page, (off_t)i * IG_PAGE), sizeof page);
    }
    close(fd);
    for (int part = 0; part < 2; part++) {
        struct noticed n = {.n = 0};
        ingot_loader *l = bench_loader_with(INGOT_ENGINE_AUTO, &n);
        ingot_load *load;
        ingot_load_stats s;
        ingot_error e = {0};
        if (bench_load(l, b, part ? &o : NULL, &load, &e) != INGOT_OK) fail_msg("%s", e.message);
        bench_compare(b, load);
        ingot_load_get_stats(load, &s);
        assert_int_equal(s.early, part);
        assert_int_equal(n.n, part);
        if (part) assert_non_null(strstr(n.text[0], "tree"));
        ingot_load_release(load);
        ingot_loader_close(l);
    }
    unlink(tree);
    free(tree);
}

static const struct bench *of_bench;

static ingot_status write_meanwhile(struct hooks *h, unsigned mark, ingot_error *e)
{
    (void)mark, (void)e;
    if (h->calls++ == 4) bench_damage(of_bench, of_bench->pack->pack.weights + 10, 1);
    return INGOT_OK;
}

/* Unchecked, at least a file that somebody wrote to is none that was loaded. */
static void a_file_changed_while_it_was_loaded_unchecked(void **state)
{
    const struct bench *b = of_bench = *state;
    const ingot_load_options o = {.size = sizeof o, .check = INGOT_CHECK_OFF};
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    struct hooks h = {.wait = write_meanwhile};
    ingot_load *load = NULL;
    ingot_error e = {0};
    hooks_put(&h, l);
    assert_int_equal(bench_load(l, b, &o, &load, &e), INGOT_ERR_CHECK);
    assert_non_null(strstr(e.message, "changed"));
    ingot_load_release(load);
    ingot_loader_close(l);
    bench_damage(b, b->pack->pack.weights + 10, 1);
    hooks_balanced(&h);
}

/* Tables are private copies: what becomes of the file's tail after the pack was opened is all one.
 */
static void the_tail_rewritten_after_it_was_opened(void **state)
{
    const struct bench *b = *state;
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    ingot_load *load;
    ingot_error e = {0};
    const uint64_t at = b->pack->pack.size - 100;
    bench_damage(b, at, 0xff);
    if (bench_load(l, b, NULL, &load, &e) != INGOT_OK) fail_msg("%s", e.message);
    bench_compare(b, load);
    ingot_load_release(load);
    ingot_loader_close(l);
    bench_damage(b, at, 0xff);
}

static void copy_pack(const struct bench *b, const char *to)
{
    const size_t n = (size_t)b->pack->pack.size;
    uint8_t *bytes = malloc(n);
    ingot_error e;
    const int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0 && bytes);
    assert_int_equal(ig_pread(b->pack->pack.fd, b->path, bytes, n, 0, &e), INGOT_OK);
    assert_int_equal(ig_pwrite(fd, to, bytes, n, 0, &e), INGOT_OK);
    close(fd);
    free(bytes);
}

static off_t cut_to;
static ingot_status cut_meanwhile(struct hooks *h, unsigned mark, ingot_error *e)
{
    (void)mark, (void)e;
    if (h->calls++ == 1) assert_int_equal(truncate(of_bench->path, cut_to), 0);
    return INGOT_OK;
}

/* D01: no engine dies of a file that was cut under it. */
static void a_file_cut_while_it_is_loaded(void **state)
{
    struct bench *b = *state;
    of_bench = b;
    cut_to = 3 * 4096 + 100;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        char *kept = ig_format("%s.kept", b->path);
        copy_pack(b, kept);
        ingot_loader *l = bench_loader(engines[i]);
        struct hooks h = {.wait = cut_meanwhile};
        ingot_load *load = NULL;
        ingot_error e = {0};
        assert_int_equal(chmod(b->path, 0644), 0);
        hooks_put(&h, l);
        hooks_slow(&h, 2000);
        const ingot_status status = bench_load(l, b, NULL, &load, &e);
        if (status == INGOT_OK || !strstr(e.message, b->path))
            fail_msg("%d: %s", status, e.message);
        ingot_load_release(load);
        ingot_loader_close(l);
        hooks_balanced(&h);
        assert_int_equal(rename(kept, b->path), 0);
        free(kept);
        bench_pack_reopen(b);
    }
}

/* ---- the device ---- */

static ingot_status refuse_pin(struct hooks *h, void *memory, size_t bytes, bool read_only,
                               ingot_error *e)
{
    (void)memory, (void)read_only;
    if (h->at && bytes <= h->at) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_NO_MEMORY, "%zu bytes refused", bytes);
}

/* D07: all of it, or all that is large, is refused: another way, with one notice, same bytes. */
static void pinned_memory_is_refused(void **state)
{
    const struct bench *b = *state;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        for (int some = 0; some < 2; some++) {
            struct noticed n = {.n = 0};
            ingot_loader *l = bench_loader_of(engines[i], 40 << 20, &n);
            struct hooks h = {.pin = refuse_pin, .at = some ? 7 << 20 : 0};
            ingot_load *load;
            ingot_load_stats s;
            ingot_error e = {0};
            hooks_put(&h, l);
            if (bench_load(l, b, NULL, &load, &e) != INGOT_OK) fail_msg("%s", e.message);
            bench_compare(b, load);
            ingot_load_get_stats(load, &s);
            assert_true(s.pinned <= h.at);
            assert_true(some ? s.pinned > 0 : s.pinned == 0);
            assert_true(s.pinned_asked > 7 << 20);
            assert_in_range(n.n, 1, engines[i] == INGOT_ENGINE_MAP ? 2 : 1);
            ingot_load_release(load);
            ingot_loader_close(l);
            hooks_balanced(&h);
        }
}

static ingot_status refuse_memory(struct hooks *h, uint64_t bytes, ingot_error *e)
{
    if (h->calls++ != h->at) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_NO_MEMORY, "%llu bytes wanted", (unsigned long long)bytes);
}

static void device_memory_is_refused(void **state)
{
    const struct bench *b = *state;
    const ingot_load_options o = {.size = sizeof o, .rank = 1, .ranks = 4};
    for (uint64_t nth = 0; nth < 2; nth++) { /* arena and bounce */
        ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
        struct hooks h = {.alloc = refuse_memory, .at = nth};
        ingot_load *load = NULL;
        ingot_error e = {0};
        hooks_put(&h, l);
        assert_int_equal(ingot_load_start(l, b->pack, &o, &load, &e), INGOT_ERR_NO_MEMORY);
        assert_null(load);
        assert_int_equal(bench_load(l, b, &o, &load, &e), INGOT_OK);
        bench_compare(b, load);
        ingot_load_release(load);
        ingot_loader_close(l);
        hooks_balanced(&h);
    }
}

static ingot_status lose(struct hooks *h, unsigned mark, ingot_error *e)
{
    (void)mark;
    if (h->calls++ < h->at) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_IO, "host: the device is lost");
}

static void the_device_is_lost(void **state)
{
    const struct bench *b = *state;
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
        for (uint64_t at = 0; at < 3; at++) {
            ingot_loader *l = bench_loader(engines[i]);
            struct hooks h = {.wait = lose, .at = at};
            ingot_load *load = NULL;
            ingot_error e = {0};
            hooks_put(&h, l);
            assert_int_equal(bench_load(l, b, NULL, &load, &e), INGOT_ERR_IO);
            ingot_load_release(load);
            ingot_loader_close(l);
            hooks_balanced(&h);
        }
}

/* Memory that somebody was told of stays, and what of it was not proven is NaN. */
static void failed_memory_is_nan(void **state)
{
    struct bench *b = *state;
    const char name[] = "model.layers.1.mlp.down_proj.weight";
    const uint64_t at = position(b, name, 5);
    ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
    struct hooks h = {.calls = 0};
    ingot_load *load;
    ingot_placed p;
    ingot_error e = {0};
    bench_damage(b, at, 1);
    hooks_put(&h, l);
    hooks_slow(&h, 2000);
    assert_int_equal(ingot_load_start(l, b->pack, NULL, &load, &e), INGOT_OK);
    assert_int_equal(ingot_load_tensor(load, name, 0, &p, &e), INGOT_OK);
    assert_int_equal(ingot_load_wait(load, &e), INGOT_ERR_CHECK);
    uint8_t *found = malloc(p.bytes);
    assert_non_null(found);
    bench_read(l, found, p.data, p.bytes);
    for (uint64_t i = 0; i < p.bytes; i++) assert_int_equal(found[i], 0xff);
    free(found);
    ingot_load_release(load);
    ingot_loader_close(l);
    bench_damage(b, at, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_staging_slot),
        cmocka_unit_test(a_flipped_device_byte),
        cmocka_unit_test(columns_overwritten_after_they_landed),
        cmocka_unit_test(a_file_changed_while_it_was_loaded_unchecked),
        cmocka_unit_test(the_tail_rewritten_after_it_was_opened),
        cmocka_unit_test(pinned_memory_is_refused),
        cmocka_unit_test(device_memory_is_refused),
        cmocka_unit_test(the_device_is_lost),
        cmocka_unit_test(failed_memory_is_nan),
        cmocka_unit_test(a_file_cut_while_it_is_loaded),
        cmocka_unit_test(a_damaged_file_with_and_without_its_tree),
        cmocka_unit_test(a_forged_tree_is_not_believed),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
