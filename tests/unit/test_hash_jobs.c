/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hashes that devices do: each kind of job on the device that INGOT_TEST_DEVICE names (else the
 * host's), against libcrypto and libxxhash; and the kernels' own arithmetic, run here.
 */
#include "loader/cuda/xxh3.h"
#include "loader/device.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY ((size_t)4 << 20)
#define ROUNDS 200u

struct bed {
    struct ig_dev *d;
    uint8_t *device, *host; /* the same MEMORY bytes */
    struct ig_job *jobs;    /* pinned, and results behind them */
    uint8_t *results;
};

static void good(ingot_status status, const ingot_error *e)
{
    if (status != INGOT_OK) fail_msg("%s", e->message);
}

static int open_bed(void **state)
{
    struct bed *b = calloc(1, sizeof *b);
    const char *device = getenv("INGOT_TEST_DEVICE");
    const size_t jobs = ig_round_up(IG_BATCH_JOBS * sizeof *b->jobs, IG_PAGE);
    ingot_error e = {0};
    unsigned x = 1;
    *state = b;
    good(ig_dev_open(device ? device : "host", 2, &b->d, &e), &e);
    good(b->d->ops->start(b->d, &e), &e);
    good(b->d->ops->alloc(b->d, MEMORY, (void **)&b->device, &e), &e);
    b->host = malloc(MEMORY);
    b->jobs =
        mmap(NULL, jobs + IG_BATCH_OUT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(b->host && b->jobs != MAP_FAILED);
    b->results = (uint8_t *)b->jobs + jobs;
    for (size_t i = 0; i < MEMORY; i++, x = x * 1664525u + 1013904223u)
        b->host[i] = (uint8_t)(x >> 24);
    good(b->d->ops->pin(b->d, b->jobs, jobs + IG_BATCH_OUT, false, &e), &e);
    good(b->d->ops->copy(b->d, b->device, MEMORY, b->host, MEMORY, MEMORY, 1, &e), &e);
    good(b->d->ops->drain(b->d, &e), &e);
    return 0;
}

static int close_bed(void **state)
{
    struct bed *b = *state;
    ingot_error e;
    good(b->d->ops->unpin(b->d, b->jobs, &e), &e);
    b->d->ops->release(b->d, b->device);
    b->d->ops->close(b->d);
    munmap(b->jobs, (size_t)(b->results - (uint8_t *)b->jobs) + IG_BATCH_OUT);
    free(b->host);
    free(b);
    return 0;
}

static uint64_t below(uint64_t n)
{
    static uint64_t x = 0x9e3779b97f4a7c15u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x % n;
}

static void sha(uint8_t out[IG_HASH], const void *data, size_t n)
{
    assert_true(EVP_Digest(data, n, out, NULL, EVP_sha256(), NULL));
}

static void padded_leaf(uint8_t out[IG_HASH], const uint8_t *data, uint64_t n)
{
    uint8_t page[IG_PAGE] = {0};
    memcpy(page, data, n < IG_PAGE ? n : IG_PAGE);
    sha(out, page, IG_PAGE);
}

/* Run the jobs of b->jobs and wait. */
static void hash_all(struct bed *b, uint32_t n)
{
    ingot_error e = {0};
    memset(b->results, 0xee, IG_BATCH_OUT);
    good(b->d->ops->mark(b->d, 3, &e), &e);
    good(b->d->ops->hash(b->d, 3, b->jobs, n, b->results, &e), &e);
    good(b->d->ops->hash_wait(b->d, 3, &e), &e);
}

/* Start and length of a job: aligned as a rule, at any byte now and then. */
static struct ig_job some_job(const struct bed *b, enum ig_job_kind kind, uint64_t most)
{
    const uint64_t bytes = below(4) ? (1 + below(most / IG_PAGE)) * IG_PAGE : 1 + below(most);
    const uint64_t unit = below(3) ? IG_PAGE : 1;
    const uint64_t at = below((MEMORY - bytes) / unit) * unit;
    return (struct ig_job){.data = b->device + at, .bytes = bytes, .kind = kind};
}

static const uint8_t *here(const struct bed *b, const void *device)
{
    return b->host + ((const uint8_t *)device - b->device);
}

static void leaves_of(const struct bed *b, const struct ig_job *j, uint8_t *out)
{
    for (uint64_t at = 0; at < j->bytes; at += IG_PAGE)
        padded_leaf(out + at / IG_PAGE * IG_HASH, here(b, j->data) + at, j->bytes - at);
}

static void leaves_are_sha256(void **state)
{
    struct bed *b = *state;
    static uint8_t wanted[IG_PAGE];
    uint32_t n = 0, out = 0;
    for (; out + IG_PAGE <= IG_BATCH_OUT; n++, out += IG_PAGE) {
        b->jobs[n] = some_job(b, IG_JOB_LEAVES, IG_NODE);
        b->jobs[n].out = out;
    }
    hash_all(b, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct ig_job *j = &b->jobs[i];
        leaves_of(b, j, wanted);
        assert_memory_equal(b->results + j->out, wanted,
                            (j->bytes + IG_PAGE - 1) / IG_PAGE * IG_HASH);
    }
}

static void nodes_are_folded_leaves(void **state)
{
    struct bed *b = *state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        b->jobs[i] = some_job(b, IG_JOB_NODE, IG_NODE);
        b->jobs[i].single = b->jobs[i].bytes <= IG_PAGE;
        b->jobs[i].out = i * IG_HASH;
    }
    hash_all(b, ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint8_t block[IG_PAGE] = {0}, wanted[IG_HASH];
        leaves_of(b, &b->jobs[i], block);
        if (b->jobs[i].single)
            memcpy(wanted, block, IG_HASH);
        else
            sha(wanted, block, sizeof block);
        assert_memory_equal(b->results + b->jobs[i].out, wanted, IG_HASH);
    }
}

static void spans_are_xxh3(void **state)
{
    struct bed *b = *state;
    const uint32_t each = IG_NODE / IG_SPAN * 16;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t bytes = (1 + below(IG_NODE / IG_PAGE)) * IG_PAGE;
        const uint64_t at = below((MEMORY - bytes) / IG_PAGE) * IG_PAGE;
        b->jobs[i] = (struct ig_job){
            .data = b->device + at, .bytes = bytes, .kind = IG_JOB_XXH, .out = i * each};
    }
    hash_all(b, ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const struct ig_job *j = &b->jobs[i];
        for (uint64_t at = 0; at < j->bytes; at += IG_SPAN) {
            uint8_t wanted[16];
            const uint64_t n = j->bytes - at < IG_SPAN ? j->bytes - at : IG_SPAN;
            ig_xxh128(wanted, here(b, j->data) + at, n);
            assert_memory_equal(b->results + j->out + at / IG_SPAN * 16, wanted, 16);
        }
    }
}

static void pages_are_gathered(void **state)
{
    struct bed *b = *state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t first = 1 + below(IG_PAGE), second = below(IG_PAGE - first + 1);
        const uint64_t third = below(IG_PAGE - first - second + 1);
        b->jobs[i] = (struct ig_job){.data = b->device + below(MEMORY - IG_PAGE),
                                     .data2 = b->device + below(MEMORY - IG_PAGE),
                                     .data3 = b->device + below(MEMORY - IG_PAGE),
                                     .bytes = first,
                                     .bytes2 = second,
                                     .bytes3 = third,
                                     .kind = IG_JOB_GATHER,
                                     .out = i * IG_HASH};
    }
    hash_all(b, ROUNDS);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const struct ig_job *j = &b->jobs[i];
        uint8_t page[IG_PAGE] = {0}, wanted[IG_HASH];
        memcpy(page, here(b, j->data), j->bytes);
        memcpy(page + j->bytes, here(b, j->data2), j->bytes2);
        memcpy(page + j->bytes + j->bytes2, here(b, j->data3), j->bytes3);
        sha(wanted, page, sizeof page);
        assert_memory_equal(b->results + j->out, wanted, IG_HASH);
    }
}

/* Runs of the memory against themselves elsewhere: made equal, but for one byte of a run. */
static void the_first_run_that_differs_is_found(void **state)
{
    struct bed *b = *state;
    ingot_error e = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t unit = i % 2 ? 16 : 1, bytes = (1 + below(40)) * unit, rows = 1 + below(50);
        const uint64_t pitch = bytes + below(30) * unit, stride = bytes + below(30) * unit;
        uint8_t *to = b->device + MEMORY / 2 + below(1000) * unit;
        const uint64_t from = below(100000) * unit, bad = below(rows + 1);
        good(b->d->ops->move(b->d, to, pitch, b->device + from, stride, bytes, rows, &e), &e);
        if (bad) {
            uint8_t *at = to + (bad - 1) * pitch + below(bytes), byte;
            good(b->d->ops->read_back(b->d, &byte, at, 1, &e), &e);
            good(b->d->ops->fill(b->d, at, byte ^ 1, 1, &e), &e);
        }
        b->jobs[0] = (struct ig_job){.data = to,
                                     .data2 = b->device + from,
                                     .bytes = bytes,
                                     .rows = rows,
                                     .stride = pitch,
                                     .stride2 = stride,
                                     .kind = IG_JOB_COMPARE};
        hash_all(b, 1);
        assert_int_equal(ig_get64(b->results), bad);
    }
}

/* ---- the same arithmetic without a device ---- */

static void sha256_of_a_page_in_plain_c(void **state)
{
    struct bed *b = *state;
    for (unsigned i = 0; i < 50; i++) {
        const uint8_t *page = b->host + below(MEMORY - IG_PAGE);
        uint32_t h[8], w[16];
        uint8_t got[IG_HASH], wanted[IG_HASH];
        ig_sha_start(h);
        for (unsigned at = 0; at < IG_PAGE; at += 64) {
            for (unsigned k = 0; k < 16; k++) w[k] = IG_SWAP32(ig_get32(page + at + 4 * k));
            ig_sha_block(h, w);
        }
        ig_sha_end_page(h);
        for (unsigned k = 0; k < 8; k++) ig_put32(got + 4 * k, IG_SWAP32(h[k]));
        sha(wanted, page, IG_PAGE);
        assert_memory_equal(got, wanted, IG_HASH);
    }
}

static void xxh3_by_eight_lanes_in_plain_c(void **state)
{
    struct bed *b = *state;
    uint8_t secret[192];
    ig_xxh_secret_bytes(secret);
    for (unsigned i = 0; i < 50; i++) {
        const uint64_t len = (1 + below(16)) * IG_PAGE, stripes = (len - 1) / 64;
        const uint8_t *p = b->host + below(MEMORY - len);
        uint64_t acc[8], low[8], high[8];
        for (int k = 0; k < 8; k++) {
            acc[k] = ig_xxh_start(k);
            low[k] = ig_get64(secret + 11 + 8 * k);
            high[k] = ig_get64(secret + 117 + 8 * k);
        }
        for (uint64_t s = 0; s <= stripes; s++) {
            const bool last = s == stripes;
            const uint8_t *in = last ? p + len - 64 : p + 64 * s;
            const uint8_t *key = secret + (last ? 121 : 8 * (s % 16));
            for (int k = 0; k < 8; k++)
                acc[k] = ig_xxh_mix(acc[k], ig_get64(in + 8 * k), ig_get64(in + 8 * (k ^ 1)),
                                    ig_get64(key + 8 * k));
            for (int k = 0; s % 16 == 15 && !last && k < 8; k++)
                acc[k] = ig_xxh_scramble(acc[k], ig_get64(secret + 128 + 8 * k));
        }
        const uint64_t lo = ig_xxh_merge(acc, low, len * IG_P64_1);
        const uint64_t hi = ig_xxh_merge(acc, high, ~(len * IG_P64_2));
        uint8_t got[16], wanted[16];
        for (int k = 0; k < 8; k++) {
            got[k] = (uint8_t)(hi >> (56 - 8 * k));
            got[8 + k] = (uint8_t)(lo >> (56 - 8 * k));
        }
        ig_xxh128(wanted, p, len);
        assert_memory_equal(got, wanted, 16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_are_sha256),
        cmocka_unit_test(nodes_are_folded_leaves),
        cmocka_unit_test(spans_are_xxh3),
        cmocka_unit_test(pages_are_gathered),
        cmocka_unit_test(sha256_of_a_page_in_plain_c),
        cmocka_unit_test(xxh3_by_eight_lanes_in_plain_c),
        cmocka_unit_test(the_first_run_that_differs_is_found), /* it writes to the memory */
    };
    return cmocka_run_group_tests(tests, open_bed, close_bed);
}
