/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many random corruptions, and many loads with late copies: few of them as a rule, with
 * INGOT_SLOW=1 a thousand and a hundred.
 */
#include "tests/unit/load_fixture.h"
#include "tests/unit/made_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool slow(void)
{
    return getenv("INGOT_SLOW") != NULL;
}

static uint64_t next_random(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

/* ---- one byte that is another ---- */

struct flip {
    uint64_t at; /* in the file */
    uint8_t bits;
    uint64_t copied; /* bytes of the file so far */
    bool done;
};

/* Copies of a whole load come in the order of the file, without gaps. */
static void in_staging(struct hooks *h, const void *from, uint64_t bytes)
{
    struct flip *f = h->ctx;
    if (f->copied <= f->at && f->at - f->copied < bytes) {
        ((uint8_t *)(uintptr_t)from)[f->at - f->copied] ^= f->bits;
        f->done = true;
    }
    f->copied += bytes;
}

/* Landed, and not yet hashed. */
static void in_device(struct hooks *h, unsigned mark, const struct ig_job *jobs, uint32_t n)
{
    struct flip *f = h->ctx;
    uint8_t *at = h->arena + f->at;
    (void)mark;
    for (uint32_t i = 0; i < n && !f->done; i++) {
        const uint8_t *data = jobs[i].data;
        if (at < data || (uint64_t)(at - data) >= jobs[i].bytes) continue;
        bench_flip(h->loader, at, f->bits);
        f->done = true;
    }
}

static void expect_found(ingot_status status, const ingot_error *e, const struct flip *f, int site)
{
    if (status == INGOT_ERR_CHECK && e->has_offset && e->offset <= f->at &&
        f->at - e->offset < IG_PAGE)
        return;
    fail_msg("site %d, byte %llu, bits 0x%x: %s", site, (unsigned long long)f->at, f->bits,
             status == INGOT_OK ? "not found" : e->message);
}

enum { IN_FILE, IN_STAGING, IN_DEVICE, SITES };

static void every_corruption_is_found_and_placed(void **state)
{
    const struct bench *b = *state;
    const unsigned rounds = slow() ? 1000 : 60;
    unsigned found[SITES] = {0};
    for (unsigned i = 0; i < rounds; i++) {
        const int site = (int)(i % SITES);
        const ingot_engine engine =
            site == IN_STAGING ? INGOT_ENGINE_RING : (ingot_engine)(next_random() % INGOT_ENGINES);
        ingot_loader *l = bench_loader(engine);
        ingot_load *load = NULL;
        ingot_error e = {0};
        struct flip f = {.at = next_random() % b->pack->pack.tail,
                         .bits = (uint8_t)(1u << next_random() % 8)};
        struct hooks h = {.ctx = &f};
        h.copied = site == IN_STAGING ? in_staging : NULL;
        h.hashing = site == IN_DEVICE ? in_device : NULL;
        hooks_put(&h, l);
        if (site == IN_FILE) bench_damage(b, f.at, f.bits);
        const ingot_status status = bench_load(l, b, NULL, &load, &e);
        if (site == IN_FILE) bench_damage(b, f.at, f.bits);
        assert_true(site == IN_FILE || f.done);
        expect_found(status, &e, &f, site);
        found[site]++;
        ingot_load_release(load);
        ingot_loader_close(l);
        hooks_balanced(&h);
    }
    print_message("# %u corruptions found and placed: %u in the file, %u in staging, %u in device "
                  "memory\n",
                  rounds, found[IN_FILE], found[IN_STAGING], found[IN_DEVICE]);
}

/* ---- F03: late copies out of two buffers of 1 MiB ---- */

/* Sizes from a byte to 3 MB, most of them small; some tensors are larger than both buffers. */
static void many_sizes(struct bench *b, unsigned tensors)
{
    struct made_model m;
    struct ig_store s;
    struct ig_pack p;
    ingot_error e;
    made_start(&m);
    for (unsigned i = 0; i < tensors; i++) {
        char name[32];
        const uint64_t most = (uint64_t)1 << next_random() % 22;
        uint64_t bytes = 1 + next_random() % most;
        if (i % 100 == 7) bytes = 3000000 - i;
        snprintf(name, sizeof name, "t%u", i);
        made_add_shape(&m, name, IG_U8, 1, &bytes);
    }
    assert_int_equal(ig_store_open(b->store, true, &s, &e), INGOT_OK);
    made_open(&m, &s, NULL, &p);
    free(b->path);
    b->path = strdup(p.path);
    ig_pack_close(&p);
    ig_store_close(&s);
    bench_pack_reopen(b);
}

static void two_buffers(ingot_loader *l)
{
    ingot_error e = {0};
    if (ig_ring_open(&l->ring, 2, 1 << 20, UINT64_MAX, &e) != INGOT_OK) fail_msg("%s", e.message);
}

static void late_copies_out_of_two_buffers(void **state)
{
    struct bench *b = *state;
    const unsigned rounds = slow() ? 100 : 4;
    /* Nothing but the comparison looks at the bytes. */
    const ingot_load_options o = {.size = sizeof o, .check = INGOT_CHECK_OFF};
    many_sizes(b, slow() ? 5000 : 400);
    const uint64_t bytes = b->pack->pack.tail;
    uint8_t *file = malloc(bytes), *found = malloc(bytes);
    ingot_error e = {0};
    assert_true(file && found);
    assert_int_equal(ig_pread(b->pack->pack.fd, b->path, file, bytes, 0, &e), INGOT_OK);
    for (unsigned i = 0; i < rounds; i++) {
        ingot_loader *l = bench_loader(INGOT_ENGINE_RING);
        struct hooks h = {.calls = 0};
        ingot_load *load;
        two_buffers(l);
        hooks_put(&h, l);
        hooks_slow(&h, slow() ? 1000 : 500);
        if (bench_load(l, b, &o, &load, &e) != INGOT_OK) fail_msg("%s", e.message);
        bench_read(l, found, load->arena, bytes);
        assert_memory_equal(found, file, bytes);
        ingot_load_release(load);
        ingot_loader_close(l);
    }
    print_message("# %u loads of %u tensors, %llu bytes: no byte differs\n", rounds,
                  ingot_pack_count(b->pack), (unsigned long long)bytes);
    free(file);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_corruption_is_found_and_placed),
        cmocka_unit_test(late_copies_out_of_two_buffers),
    };
    return cmocka_run_group_tests(tests, bench_open, bench_close);
}
