/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/load_fixture.h"
#include "tests/unit/made_model.h"

#include <fcntl.h>
#include <ftw.h>

#define H       256
#define SCRATCH ((uint64_t)1 << 30)
#define MOVE_US 250 /* of an H200 for half of it; a slower GPU only takes longer */

static void linear(struct made_model *m, int layer, const char *name, uint64_t rows, uint64_t cols)
{
    char text[96];
    snprintf(text, sizeof text, "model.layers.%d.%s.weight", layer, name);
    made_add_shape(m, text, IG_F16, 2, (const uint64_t[]){rows, cols});
}

static void norm(struct made_model *m, int layer, const char *name)
{
    char text[96];
    snprintf(text, sizeof text, "model.layers.%d.%s.weight", layer, name);
    made_add_shape(m, text, IG_F16, 1, (const uint64_t[]){H});
}

/* Four heads of 64, fused as in Phi-3; some 12 MB, nothing a multiple of a window. */
static void fill_model(struct made_model *m)
{
    made_add_shape(m, "model.embed_tokens.weight", IG_F16, 2, (const uint64_t[]){4099, H});
    for (int i = 0; i < 5; i++) {
        norm(m, i, "input_layernorm");
        linear(m, i, "self_attn.qkv_proj", (uint64_t)3 * H, H);
        linear(m, i, "self_attn.o_proj", H, H);
        norm(m, i, "post_attention_layernorm");
        linear(m, i, "mlp.gate_up_proj", 2 * 688, H);
        linear(m, i, "mlp.down_proj", H, 688);
    }
    made_add_shape(m, "model.norm.weight", IG_F16, 1, (const uint64_t[]){H});
    made_add_shape(m, "lm_head.weight", IG_F16, 2, (const uint64_t[]){4099, H});
}

static const char config[] =
    "{\"architectures\":[\"Phi3ForCausalLM\"],\"model_type\":\"phi3\",\"hidden_size\":256,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"num_hidden_layers\":5,"
    "\"intermediate_size\":688,\"vocab_size\":4099,\"tie_word_embeddings\":false}";

int bench_open(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    struct made_model m;
    struct ig_store s;
    struct ig_pack p;
    ingot_error e;
    if (!b) return -1;
    *state = b;
    snprintf(b->top, sizeof b->top, "/tmp/ingot-load-XXXXXX");
    if (!mkdtemp(b->top)) return -1;
    snprintf(b->store, sizeof b->store, "%s/store", b->top);
    if (ig_store_open(b->store, true, &s, &e) != INGOT_OK) return -1;
    made_start(&m);
    fill_model(&m);
    made_open(&m, &s, config, &p);
    b->path = strdup(p.path);
    ig_pack_close(&p);
    ig_store_close(&s);
    bench_pack_reopen(b);
    return b->path ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

int bench_close(void **state)
{
    struct bench *b = *state;
    ingot_pack_close(b->pack);
    const int rc = nftw(b->top, remove_one, 16, FTW_PHYS | FTW_DEPTH);
    free(b->path);
    free(b);
    return rc;
}

void bench_pack_reopen(struct bench *b)
{
    ingot_error e;
    ingot_pack_close(b->pack);
    if (ingot_pack_open(b->store, "made", &b->pack, &e) != INGOT_OK) fail_msg("%s", e.message);
}

void bench_damage(const struct bench *b, uint64_t offset, uint8_t flip)
{
    uint8_t byte;
    assert_int_equal(chmod(b->path, 0644), 0);
    const int fd = open(b->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= flip;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

void bench_no_tree(const struct bench *b)
{
    char *tree = ig_format("%.*s.tree", (int)(strlen(b->path) - strlen(".ingot")), b->path);
    assert_int_equal(unlink(tree), 0);
    free(tree);
}

static void take_notice(void *ctx, const char *text)
{
    struct noticed *n = ctx;
    const unsigned i = __atomic_fetch_add(&n->n, 1, __ATOMIC_RELAXED);
    if (i < 8) snprintf(n->text[i], sizeof n->text[i], "%s", text);
}

ingot_loader *bench_loader_of(ingot_engine engine, uint64_t memory, struct noticed *n)
{
    const char *device = getenv("INGOT_TEST_DEVICE");
    const ingot_loader_options o = {.size = sizeof o,
                                    .device = device ? device : "host",
                                    .threads = 3,
                                    .memory = memory,
                                    .engine = engine,
                                    .notice = n ? take_notice : NULL,
                                    .ctx = n};
    ingot_loader *l = NULL;
    ingot_error e;
    if (ingot_loader_open(&o, &l, &e) != INGOT_OK) fail_msg("%s", e.message);
    return l;
}

ingot_loader *bench_loader_with(ingot_engine engine, struct noticed *n)
{
    return bench_loader_of(engine, ig_ring_least(), n);
}

ingot_loader *bench_loader(ingot_engine engine)
{
    return bench_loader_with(engine, NULL);
}

ingot_status bench_load(ingot_loader *l, const struct bench *b, const ingot_load_options *o,
                        ingot_load **load, ingot_error *e)
{
    ingot_status status = ingot_load_start(l, b->pack, o, load, e);
    if (status == INGOT_OK) status = ingot_load_wait(*load, e);
    return status;
}

/* ---- device memory ---- */

void bench_read(const struct ingot_loader *l, void *to, const void *from, uint64_t n)
{
    ingot_error e = {0};
    if (l->dev->ops->read_back(l->dev, to, from, n, &e) != INGOT_OK) fail_msg("%s", e.message);
}

uint8_t bench_byte(const struct ingot_loader *l, const void *at)
{
    uint8_t byte;
    bench_read(l, &byte, at, 1);
    return byte;
}

void bench_fill(const struct ingot_loader *l, void *at, int byte, uint64_t n)
{
    ingot_error e = {0};
    if (l->dev->ops->fill(l->dev, at, byte, n, &e) != INGOT_OK ||
        l->dev->ops->drain(l->dev, &e) != INGOT_OK)
        fail_msg("%s", e.message);
}

void bench_flip(const struct ingot_loader *l, void *at, uint8_t bits)
{
    bench_fill(l, at, bench_byte(l, at) ^ bits, 1);
}

uint8_t *bench_memory(ingot_loader *l, uint64_t n)
{
    void *memory = NULL;
    ingot_error e = {0};
    if (ingot_loader_warm(l, &e) != INGOT_OK ||
        l->dev->ops->alloc(l->dev, n, &memory, &e) != INGOT_OK)
        fail_msg("%s", e.message);
    return memory;
}

static uint64_t compare_part(const struct ingot_loader *l, const ingot_placed *p,
                             const uint8_t *whole, uint64_t size)
{
    uint64_t columns = 1;
    for (uint32_t i = 1; i < p->rank; i++) columns *= p->shape[i];
    if (p->rows == 0) return 0;
    const uint64_t span = (p->rows - 1) * p->pitch + p->columns * size;
    uint8_t *found = malloc(span);
    assert_non_null(found);
    bench_read(l, found, p->data, span);
    for (uint64_t r = 0; r < p->rows; r++)
        if (memcmp(found + r * p->pitch, whole + ((p->row + r) * columns + p->column) * size,
                   p->columns * size) != 0)
            fail_msg("row %llu of %llu", (unsigned long long)r, (unsigned long long)p->rows);
    free(found);
    return p->rows * p->columns * size;
}

uint64_t bench_compare(const struct bench *b, const ingot_load *load)
{
    uint64_t compared = 0;
    ingot_error e;
    for (uint32_t i = 0; i < ingot_pack_count(b->pack); i++) {
        ingot_tensor t;
        ingot_placed p;
        char name[256];
        assert_int_equal(ingot_pack_tensor(b->pack, i, &t, &e), INGOT_OK);
        snprintf(name, sizeof name, "%.*s", (int)t.name_len, t.name);
        uint8_t *whole = malloc(t.bytes ? t.bytes : 1);
        assert_int_equal(ingot_pack_read(b->pack, &t, whole, &e), INGOT_OK);
        for (unsigned k = 0; ingot_load_tensor(load, name, k, &p, &e) == INGOT_OK; k++)
            compared += compare_part(load->loader, &p, whole, 2);
        assert_int_equal(e.status, INGOT_ERR_NOT_FOUND);
        free(whole);
    }
    return compared;
}

/* ---- hooks ---- */

static struct hooks *current; /* one loader at a time has them */

static ingot_status hooked_pin(struct ig_dev *d, void *memory, size_t bytes, bool read_only,
                               ingot_error *e)
{
    if (current->pin) return_if_error(current->pin(current, memory, bytes, read_only, e));
    const ingot_status status = current->real->pin(d, memory, bytes, read_only, e);
    current->pins += status == INGOT_OK;
    return status;
}

static ingot_status hooked_unpin(struct ig_dev *d, void *memory, ingot_error *e)
{
    current->unpins++;
    return current->real->unpin(d, memory, e);
}

static ingot_status hooked_copy(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                                uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e)
{
    if (current->copied) current->copied(current, from, (rows - 1) * stride + width);
    for (unsigned i = 0; i < current->moves; i++)
        return_if_error(current->real->move(d, current->scratch, SCRATCH / 2,
                                            (uint8_t *)current->scratch + SCRATCH / 2, SCRATCH / 2,
                                            SCRATCH / 2, 1, e));
    return current->real->copy(d, to, pitch, from, stride, width, rows, e);
}

static ingot_status hooked_hash(struct ig_dev *d, unsigned m, const struct ig_job *jobs, uint32_t n,
                                uint8_t *results, ingot_error *e)
{
    if (current->hashing) {
        return_if_error(current->real->wait(d, m, e));
        current->hashing(current, m, jobs, n);
    }
    return current->real->hash(d, m, jobs, n, results, e);
}

static ingot_status hooked_wait(struct ig_dev *d, unsigned m, ingot_error *e)
{
    if (current->wait) return_if_error(current->wait(current, m, e));
    return current->real->wait(d, m, e);
}

static ingot_status hooked_alloc(struct ig_dev *d, uint64_t bytes, void **out, ingot_error *e)
{
    if (current->alloc) return_if_error(current->alloc(current, bytes, e));
    const ingot_status status = current->real->alloc(d, bytes, out, e);
    if (current->allocs == 0) current->arena = *out;
    current->allocs += status == INGOT_OK;
    return status;
}

static void hooked_release(struct ig_dev *d, void *memory)
{
    current->releases++;
    current->real->release(d, memory);
}

static void hooked_close(struct ig_dev *d)
{
    if (current->scratch) current->real->release(d, current->scratch);
    current->real->close(d);
}

/* A GPU is kept busy between its own memories; the host's device sleeps. */
void hooks_slow(struct hooks *h, unsigned microseconds)
{
    ingot_error e = {0};
    if (h->dev->info.host) {
        ((struct host_device *)h->dev)->delay_us = microseconds;
        return;
    }
    if (!h->scratch && (h->real->start(h->dev, &e) != INGOT_OK ||
                        h->real->alloc(h->dev, SCRATCH, &h->scratch, &e) != INGOT_OK))
        fail_msg("%s", e.message);
    h->moves = microseconds / MOVE_US;
}

void hooks_put(struct hooks *h, ingot_loader *l)
{
    h->loader = l;
    h->dev = l->dev;
    h->real = l->dev->ops;
    h->ops = *h->real;
    h->ops.pin = hooked_pin;
    h->ops.unpin = hooked_unpin;
    h->ops.copy = hooked_copy;
    h->ops.hash = hooked_hash;
    h->ops.wait = hooked_wait;
    h->ops.alloc = hooked_alloc;
    h->ops.release = hooked_release;
    h->ops.close = hooked_close;
    l->dev->ops = &h->ops;
    current = h;
}

void hooks_balanced(const struct hooks *h)
{
    assert_int_equal(h->allocs, h->releases);
    assert_int_equal(h->pins, h->unpins);
}
