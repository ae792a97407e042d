/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small pack, damaged in every place.  The pack is made once by a real conversion of the
 * model in tests/models; what verify must say is that it is not what it was.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/pack_private.h"
#include "tests/unit/mini_pack.h"
#include "tests/unit/store_dir.h"
#include "verify/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char *path, *tree; /* of the pack under test */
    uint8_t digest[IG_HASH];
    uint8_t *bytes;
    size_t size;
};

static void write_file(const char *dir, const char *name, const void *data, size_t n)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), (ssize_t)n);
    close(fd);
}

/* q, k, v that form a group, a norm, a shape that ends inside a page, an empty tensor. */
static void write_model(const char *dir)
{
    static const char header[] =
        "{\"model.embed_tokens.weight\":{\"dtype\":\"F16\",\"shape\":[64,100],\"data_offsets\":[0,"
        "12800]},"
        "\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"F16\",\"shape\":[40,64],\"data_"
        "offsets\":[12800,17920]},"
        "\"model.layers.0.self_attn.k_proj.weight\":{\"dtype\":\"F16\",\"shape\":[8,64],\"data_"
        "offsets\":[17920,18944]},"
        "\"model.layers.0.self_attn.v_proj.weight\":{\"dtype\":\"F16\",\"shape\":[8,64],\"data_"
        "offsets\":[18944,19968]},"
        "\"model.layers.0.input_layernorm.weight\":{\"dtype\":\"F32\",\"shape\":[64],\"data_"
        "offsets\":[19968,20224]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[20224,20224]}}";
    const uint64_t n = sizeof header - 1;
    uint8_t *file = malloc(8 + n + 20224);
    ig_put64(file, n);
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < 20224; i++) file[8 + n + i] = (uint8_t)(i * 2654435761u >> 11);
    write_file(dir, "model.safetensors", file, 8 + n + 20224);
    write_file(dir, "config.json", "{}", 2);
    free(file);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct ig_store s;
    char model[80], store[80];
    json_t *report = NULL;
    ingot_error e = {0};
    strcpy(f->dir, "/tmp/ingot-test-pack-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(model, sizeof model, "%s/model", f->dir);
    snprintf(store, sizeof store, "%s/store", f->dir);
    assert_int_equal(mkdir(model, 0777), 0);
    write_model(model);
    assert_int_equal(ig_store_open(store, false, &s, &e), INGOT_OK);
    const struct ig_convert c = {.source = model,
                                 .name = "m",
                                 .dtype = -1,
                                 .rules = IG_RULES,
                                 .max_header = IG_ST_MAX_HEADER,
                                 .threads = 2};
    if (ig_convert(&s, &c, &report, &e) != INGOT_OK) fail_msg("%s", e.message);
    assert_true(ig_unhex(f->digest, IG_HASH,
                         json_string_value(json_object_get(report, "digest")) +
                             strlen("fsverity-sha256:")));
    f->path = ig_store_pack_path(&s, f->digest);
    char hex[65];
    ig_hex(hex, f->digest, IG_HASH);
    f->tree = ig_format("%s/packs/%s.tree", store, hex);
    assert_int_equal(chmod(f->path, 0644), 0);
    assert_int_equal(ig_read_file(f->path, SIZE_MAX / 2, (char **)&f->bytes, &f->size, &e),
                     INGOT_OK);
    json_decref(report);
    ig_store_close(&s);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    nftw(f->dir, store_dir_remove, 8, FTW_DEPTH | FTW_PHYS);
    free(f->path);
    free(f->tree);
    free(f->bytes);
    free(f);
    return 0;
}

static void poke(const struct fixture *f, size_t offset, uint8_t value)
{
    const int fd = open(f->path, O_WRONLY);
    assert_int_equal(pwrite(fd, &value, 1, (off_t)offset), 1);
    close(fd);
}

static json_t *verify(const struct fixture *f, enum ig_level level)
{
    json_t *report = NULL;
    ingot_error e = {0};
    const struct ig_verify v = {.level = level, .threads = 1};
    if (ig_verify_pack(f->path, "m", f->digest, &v, &report, &e) != INGOT_OK)
        fail_msg("%s", e.message);
    return report;
}

static bool is_good(const struct fixture *f, enum ig_level level)
{
    json_t *r = verify(f, level);
    const bool ok = json_is_true(json_object_get(r, "ok"));
    assert_int_equal(ok, json_array_size(json_object_get(r, "bad")) == 0);
    json_decref(r);
    return ok;
}

static void test_whole_pack_is_good_at_every_level(void **state)
{
    assert_true(is_good(*state, IG_LEVEL_QUICK));
    assert_true(is_good(*state, IG_LEVEL_FAST));
    assert_true(is_good(*state, IG_LEVEL_FULL));
}

/* Every field of the superblock, every 7th byte of the tail, every 97th of the rest. */
static void test_C01_any_flipped_bit_is_found(void **state)
{
    const struct fixture *f = *state;
    const size_t tail = (size_t)ig_get64(f->bytes + SB_TAIL);
    size_t n = 0;
    for (size_t i = 0; i < f->size; i += i < 128 ? 1 : i < tail ? 97 : 7) {
        poke(f, i, f->bytes[i] ^ (uint8_t)(1u << (i * 7 / 3 % 8)));
        if (is_good(f, IG_LEVEL_FULL)) fail_msg("byte %zu: the flip was not found", i);
        if (is_good(f, IG_LEVEL_FAST)) fail_msg("byte %zu: the flip was not found by XXH3", i);
        poke(f, i, f->bytes[i]);
        n++;
    }
    assert_true(n > 1500);
    assert_true(is_good(f, IG_LEVEL_FULL));
}

/* With the sidecar tree the page is named exactly; the tensor comes from the table. */
static void test_flip_is_placed(void **state)
{
    const struct fixture *f = *state;
    struct ig_pack p;
    struct ig_row row;
    assert_int_equal(ig_pack_open(f->path, &p, NULL), INGOT_OK);
    static const char name[] = "model.layers.0.self_attn.k_proj.weight";
    ig_pack_row(&p, ig_pack_find(&p, name, sizeof name - 1), &row);
    const size_t at = (size_t)ig_pack_pos(&p, &row) + 100;
    ig_pack_close(&p);
    poke(f, at, f->bytes[at] ^ 4);
    json_t *r = verify(f, IG_LEVEL_FULL);
    bool page = false, tensor = false, view = false;
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(r, "bad"), i, b)
    {
        const char *kind = json_string_value(json_object_get(b, "kind"));
        const char *t = json_string_value(json_object_get(b, "tensor"));
        if (strcmp(kind, "page") == 0)
            page = (uint64_t)json_integer_value(json_object_get(b, "page")) == at / IG_PAGE;
        if (strcmp(kind, "tensor") == 0 && strcmp(t, name) == 0) tensor = true;
        if (strcmp(kind, "tensor") == 0 && strstr(t, "qkv_proj")) view = true;
    }
    json_decref(r);
    poke(f, at, f->bytes[at]);
    assert_true(page && tensor && view);
}

static void test_A05_truncation_is_refused_everywhere(void **state)
{
    const struct fixture *f = *state;
    for (size_t n = 0; n < f->size; n += IG_PAGE) {
        assert_int_equal(truncate(f->path, (off_t)(n ? n - 1 : 0)), 0);
        assert_false(is_good(f, IG_LEVEL_QUICK));
        assert_int_equal(truncate(f->path, (off_t)n), 0);
        assert_false(is_good(f, IG_LEVEL_QUICK));
        const int fd = open(f->path, O_WRONLY);
        assert_int_equal(pwrite(fd, f->bytes, f->size, 0), (ssize_t)f->size);
        close(fd);
    }
    assert_true(is_good(f, IG_LEVEL_FULL));
}

/* Write a changed superblock twice, with a right hash: only its rule can refuse it. */
static void forge(const struct fixture *f, size_t offset, uint64_t value, size_t width)
{
    uint8_t sb[IG_PAGE];
    memcpy(sb, f->bytes, IG_PAGE);
    for (size_t i = 0; i < width; i++) sb[offset + i] = (uint8_t)(value >> (8 * i));
    memset(sb + SB_XXH, 0, 8);
    ig_put64(sb + SB_XXH, ig_xxh64(sb, IG_PAGE));
    const int fd = open(f->path, O_WRONLY);
    assert_int_equal(pwrite(fd, sb, IG_PAGE, 0), IG_PAGE);
    assert_int_equal(pwrite(fd, sb, IG_PAGE, (off_t)ig_get64(f->bytes + SB_TAIL)), IG_PAGE);
    close(fd);
}

static void test_superblock_rules(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        size_t offset;
        uint64_t value;
        size_t width;
        const char *says;
    } cases[] = {
        {SB_FORMAT, 2, 4, "pack format 2"},
        {SB_NEED, 1ull << 37, 8, "feature bit 37"},
        {SB_SIZE, 4096, 8, "expected 4096"},
        {SB_WEIGHTS, 4096, 8, "do not fit"},
        {SB_WEIGHTS_LEN, UINT64_MAX - 4095, 8, "do not fit"},
        {SB_TAIL, 1ull << 63, 8, "do not fit"},
        {SB_TAIL_LEN, UINT64_MAX & ~4095ull, 8, "do not fit"},
        {SB_END, 1, 1, "reserved"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ig_pack p;
        ingot_error e = {0};
        forge(f, cases[i].offset, cases[i].value, cases[i].width);
        assert_int_equal(ig_pack_open(f->path, &p, &e), INGOT_ERR_PACK);
        if (!strstr(e.message, cases[i].says))
            fail_msg("%s: expected %s", e.message, cases[i].says);
    }
    struct ig_pack p;
    forge(f, SB_MAY, 1ull << 63, 8); /* bits that may be ignored are */
    assert_int_equal(ig_pack_open(f->path, &p, NULL), INGOT_OK);
    ig_pack_close(&p);
    forge(f, SB_MAY, 0, 8);
    assert_true(is_good(f, IG_LEVEL_FULL));
}

static ingot_status reopen(const char *path, const struct mini_pack *m, struct ig_pack *p,
                           ingot_error *e)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    assert_int_equal(mini_pack_write(fd, m, e), INGOT_OK);
    close(fd);
    return ig_pack_open(path, p, e);
}

/* Packs that are right but for one rule of ingot-pack(5). */
static void test_table_rules(void **state)
{
    const struct fixture *f = *state;
    static const char *const names[] = {"a", "b"};
    static const struct {
        struct mini_pack m;
        const char *says; /* NULL: it opens */
    } cases[] = {
        {{.derivation = "{\"kind\":\"identity\"}"}, NULL},
        {{.derivation = "{\"a\":[9007199254740991,-1,true],\"kind\":\"identity\"}"}, NULL},
        {{.derivation = "{\"a\":[9007199254740992],\"kind\":\"identity\"}"}, "canonical"},
        {{.derivation = "{\"a\":{\"b\":1.5},\"kind\":\"identity\"}"}, "canonical"},
        {{.derivation = "{\"a\":100000000000000000000.0,\"kind\":\"identity\"}"}, "canonical"},
        {{.derivation = "{\"kind\":\"identity\",\"\xc3\xa9\":1}"}, "canonical"},
        {{.derivation = "{\"kind\":\"identity\\u0000x\"}"}, "canonical"},
        {{.derivation = "{\"kind\": \"identity\"}"}, "canonical"},
        {{.idle_dtype = true}, "a dtype that neither"},
        {{.extras = 1}, NULL},
        {{.extras = 2}, "two regions of type 77"},
        {{.roles = {IG_ROLE_WEIGHT, IG_ROLE_INPUT}}, NULL},
        {{.roles = {IG_ROLE_INPUT, IG_ROLE_WEIGHT}}, "link 1: out of order"},
        {{.roles = {IG_ROLE_INPUT, IG_ROLE_INPUT}}, "link 1: out of order"},
    };
    char *path = ig_format("%s/mini.ingot", f->dir);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mini_pack m = cases[i].m;
        struct ig_pack p;
        ingot_error e = {0};
        m.tensors = names;
        m.ntensors = 2;
        m.source = "m.safetensors";
        const ingot_status status = reopen(path, &m, &p, &e);
        if (!cases[i].says && status != INGOT_OK) fail_msg("case %zu: %s", i, e.message);
        if (cases[i].says && (status != INGOT_ERR_PACK || !strstr(e.message, cases[i].says)))
            fail_msg("case %zu: \"%s\", expected %s", i, e.message, cases[i].says);
        ig_pack_close(&p);
    }
    free(path);
}

/* Is this among what a check of the structure finds? */
static bool finds(const char *path, const char *text)
{
    const struct ig_verify v = {.level = IG_LEVEL_QUICK, .self = true};
    json_t *r, *b;
    size_t i;
    bool found = false;
    assert_int_equal(ig_verify_pack(path, "m", NULL, &v, &r, NULL), INGOT_OK);
    json_array_foreach(json_object_get(r, "bad"), i, b)
    {
        const char *is = json_string_value(json_object_get(b, "text"));
        found = found || (is && strstr(is, text));
    }
    json_decref(r);
    return found;
}

static void test_copies_and_views(void **state)
{
    const struct fixture *f = *state;
    static const char *const twice[] = {"a", "a"}, *const three[] = {"a", "b", "v"};
    struct mini_pack m = {.tensors = twice, .ntensors = 2, .source = "m", .second = "n"};
    struct ig_pack p;
    ingot_error e;
    char *path = ig_format("%s/mini.ingot", f->dir);
    m.flags[1] = IG_ROW_SHADOW;
    assert_int_equal(reopen(path, &m, &p, &e), INGOT_ERR_PACK);
    assert_non_null(strstr(e.message, "a copy from its own source"));
    m.sources[1] = 1;
    assert_int_equal(reopen(path, &m, &p, &e), INGOT_OK);
    assert_int_equal(ig_pack_find(&p, "a", 1), 0);
    assert_int_equal(ig_pack_find_in(&p, "a", 1, 0), 0);
    assert_int_equal(ig_pack_find_in(&p, "a", 1, 1), 1);
    assert_int_equal(ig_pack_find_in(&p, "a", 1, 2), IG_NONE);
    ig_pack_close(&p);
    assert_false(finds(path, "a shadow row in a derived pack"));
    m.derived = true;
    assert_int_equal(reopen(path, &m, &p, &e), INGOT_OK);
    ig_pack_close(&p);
    assert_true(finds(path, "a shadow row in a derived pack"));
    m = (struct mini_pack){.tensors = three, .ntensors = 3, .source = "m"};
    m.flags[2] = IG_ROW_VIEW; /* of a, 192 bytes of nothing, and b */
    assert_int_equal(reopen(path, &m, &p, &e), INGOT_OK);
    ig_pack_close(&p);
    assert_true(finds(path, "a view that does not cover whole tensors"));
    static const char *const reserved[] = {"__metadata__"};
    char *file = ig_format("%s/merged", f->dir);
    const struct ig_export job = {.safetensors = file, .threads = 1};
    m = (struct mini_pack){.tensors = reserved, .ntensors = 1, .source = "m"};
    assert_int_equal(reopen(path, &m, &p, &e), INGOT_OK);
    assert_int_equal(ig_export(&p, &job, NULL, &e), INGOT_ERR_PACK);
    assert_int_equal(access(file, F_OK), -1);
    ig_pack_close(&p);
    free(file);
    free(path);
}

/* Without the weights: the frontier and the tail's pages give the digest, or the tail is another.
 */
static void test_tail_is_proven_from_its_frontier(void **state)
{
    const struct fixture *f = *state;
    struct ig_pack p;
    struct ig_blob b;
    ingot_error e;
    assert_int_equal(ig_pack_open(f->path, &p, NULL), INGOT_OK);
    assert_int_equal(ig_pack_prove(&p, f->digest, &e), INGOT_OK);
    ig_pack_blob(&p, 0, &b);
    poke(f, (size_t)b.offset, f->bytes[b.offset] ^ 1); /* not among what opening reads */
    assert_int_equal(ig_pack_prove(&p, f->digest, &e), INGOT_ERR_CHECK);
    poke(f, (size_t)b.offset, f->bytes[b.offset]);
    /* What was parsed is what is proven: a table that changes on disk later does no harm. */
    const size_t page = (size_t)p.tail;
    poke(f, page, f->bytes[page] ^ 1);
    assert_int_equal(ig_pack_prove(&p, f->digest, &e), INGOT_OK);
    poke(f, page, f->bytes[page]);
    const size_t weights = (size_t)p.weights; /* nor do the weights matter here */
    poke(f, weights, f->bytes[weights] ^ 1);
    assert_int_equal(ig_pack_prove(&p, f->digest, &e), INGOT_OK);
    poke(f, weights, f->bytes[weights]);
    ig_pack_close(&p);
}

/* A tail that its own frontier does not prove: all else of the pack is right. */
static void test_frontier_is_checked(void **state)
{
    const struct fixture *f = *state;
    const struct ig_verify v = {.level = IG_LEVEL_FULL, .self = true, .threads = 1};
    json_t *r = NULL;
    forge(f, SB_MAY, 1ull << 63, 8); /* page 0 is another now, and nothing else knows it */
    assert_int_equal(ig_verify_pack(f->path, "m", NULL, &v, &r, NULL), INGOT_OK);
    const json_t *bad = json_object_get(r, "bad");
    assert_int_equal(json_array_size(bad), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(bad, 0), "kind")),
                        "frontier");
    json_decref(r);
    forge(f, SB_MAY, 0, 8);
    assert_true(is_good(f, IG_LEVEL_FULL));
}

/* Rows cost a file little: 200,000 that cover the same bytes must not cost their square, and no
 * more of them may be hashed than are followed. */
static void test_rows_upon_rows(void **state)
{
    enum { ROWS = 200000, BYTES = 2 * IG_PAGE };
    uint64_t shape = BYTES;
    uint8_t *rows = ig_array(ROWS, ROW_SIZE), extent[EXTENT_SIZE] = {0};
    struct ig_pack_tables t = {.dtypes = {IG_U8}, .ndtypes = 1};
    struct ig_verify v = {.level = IG_LEVEL_FULL};
    (void)state;
    ig_put64(extent + EXTENT_OFFSET, WEIGHTS_AT);
    ig_put64(extent + EXTENT_BYTES, BYTES);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint8_t *r = rows + (size_t)i * ROW_SIZE;
        ig_put32(r + ROW_NAME_LEN, 1);
        ig_put32(r + ROW_RANK, 1);
        ig_put32(r + ROW_FLAGS, i ? IG_ROW_VIEW : 0);
        ig_put64(r + ROW_BYTES, BYTES);
    }
    t.regions[REGION_ROWS].data = rows;
    t.regions[REGION_EXTENTS].data = extent;
    t.regions[REGION_STRINGS].data = (uint8_t[]){'a'};
    t.regions[REGION_SHAPES].data = (uint8_t *)&shape;
    struct check c = {.v = &v, .bad = json_array()};
    c.pack = (struct ig_pack){.nrows = ROWS, .nextents = 1, .t = &t};
    c.pack.manifest = json_pack("{s:{s:s}}", "derivation", "kind", "dtype");
    pthread_mutex_init(&c.lock, NULL);
    alarm(60); /* it takes a blink */
    assert_int_equal(ig_check_rows(&c, NULL), INGOT_OK);
    alarm(0);
    assert_int_equal(c.nrows, OVERLAPS);
    assert_int_equal(json_array_size(c.bad) + c.bad_left_out, ROWS - OVERLAPS);
    json_decref(c.pack.manifest);
    json_decref(c.bad);
    free(c.rows);
    free(c.parts);
    free(rows);
}

static void test_no_digest_is_no_proof(void **state)
{
    const struct fixture *f = *state;
    struct ig_verify v = {.level = IG_LEVEL_FULL, .threads = 1};
    json_t *r = NULL;
    assert_int_equal(ig_verify_pack(f->path, "m", NULL, &v, &r, NULL), INGOT_OK);
    assert_false(json_is_true(json_object_get(r, "ok")));
    json_decref(r);
    v.self = true;
    assert_int_equal(ig_verify_pack(f->path, "m", NULL, &v, &r, NULL), INGOT_OK);
    assert_true(json_is_true(json_object_get(r, "ok")));
    assert_non_null(json_object_get(r, "note"));
    json_decref(r);
    v.has_expect = true;
    memset(v.expect, 7, IG_HASH);
    assert_int_equal(ig_verify_pack(f->path, "m", f->digest, &v, &r, NULL), INGOT_OK);
    assert_false(json_is_true(json_object_get(r, "ok")));
    json_decref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_pack_is_good_at_every_level),
        cmocka_unit_test(test_C01_any_flipped_bit_is_found),
        cmocka_unit_test(test_flip_is_placed),
        cmocka_unit_test(test_A05_truncation_is_refused_everywhere),
        cmocka_unit_test(test_superblock_rules),
        cmocka_unit_test(test_table_rules),
        cmocka_unit_test(test_copies_and_views),
        cmocka_unit_test(test_tail_is_proven_from_its_frontier),
        cmocka_unit_test(test_frontier_is_checked),
        cmocka_unit_test(test_rows_upon_rows),
        cmocka_unit_test(test_no_digest_is_no_proof),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
