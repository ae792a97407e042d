/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors by names and patterns, and their places in an arena. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "loader/plan.h"
#include "tests/unit/made_model.h"
#include "tests/unit/store_dir.h"

static struct ig_pack pack;

static void add(struct made_model *m, const char *name, uint64_t rows, uint64_t columns)
{
    made_add_shape(m, name, IG_F16, columns ? 2 : 1, (const uint64_t[]){rows, columns});
}

/* Tied ends, a group with a view over it, odd sizes, a tensor without bytes. */
static int set_up(void **state)
{
    struct made_model m;
    if (store_dir_setup(state) != 0) return -1;
    made_start(&m);
    add(&m, "model.embed_tokens.weight", 50, 16);
    m.seed = 0;
    add(&m, "lm_head.weight", 50, 16);
    for (int i = 0; i < 2; i++) {
        char name[80];
        static const char *const names[] = {"q", "k", "v", "o"};
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "model.layers.%d.self_attn.%s_proj.weight", i, names[k]);
            add(&m, name, k == 0 || k == 3 ? 16 : 8, 16);
        }
        snprintf(name, sizeof name, "model.layers.%d.input_layernorm.weight", i);
        add(&m, name, 17, 0);
    }
    add(&m, "none", 0, 0);
    add(&m, "odd[1]", 3, 0);
    made_open(&m, *state, "{\"tie_word_embeddings\":true}", &pack);
    return 0;
}

static int tear_down(void **state)
{
    ig_pack_close(&pack);
    return store_dir_teardown(state);
}

static bool has(const struct ig_targets *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        struct ig_row r;
        ig_pack_row(&pack, t->list[i].row, &r);
        if (r.name_len == strlen(name) && memcmp(r.name, name, r.name_len) == 0) return true;
    }
    return false;
}

static void choose(struct ig_targets *t, size_t n, const char *const *patterns)
{
    ingot_error e = {0};
    *t = (struct ig_targets){0};
    if (ig_select(&pack, patterns, n, t, &e) != INGOT_OK) fail_msg("%s", e.message);
}
#define CHOOSE(t, ...)                                                             \
    choose((t), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), \
           (const char *const[]){__VA_ARGS__})

static void a_name_is_one_whole_tensor(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "model.layers.1.self_attn.k_proj.weight");
    assert_int_equal(t.n, 1);
    assert_int_equal(t.list[0].start, 0);
    assert_int_equal(t.list[0].rows, 1);
    assert_int_equal(t.list[0].width, 256);
    assert_int_equal(t.list[0].first_row + t.list[0].first_col, 0);
    assert_int_equal(t.list[0].nrows, 8);
    assert_int_equal(t.list[0].ncols, 16);
    ig_targets_free(&t);
}

static void a_star_also_matches_points(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "*norm.weight");
    assert_int_equal(t.n, 2);
    assert_true(has(&t, "model.layers.0.input_layernorm.weight"));
    ig_targets_free(&t);
    CHOOSE(&t, "model.layers.[0]*.o_proj.weigh?");
    assert_int_equal(t.n, 1);
    assert_true(has(&t, "model.layers.0.self_attn.o_proj.weight"));
    ig_targets_free(&t);
}

static void a_name_is_no_pattern(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "odd[1]");
    assert_int_equal(t.n, 1);
    assert_true(has(&t, "odd[1]"));
    ig_targets_free(&t);
}

static void members_of_a_chosen_view_are_kept_once(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "model.layers.0.self_attn.*");
    assert_int_equal(t.n, 2);
    assert_true(has(&t, "model.layers.0.self_attn.qkv_proj.weight"));
    assert_true(has(&t, "model.layers.0.self_attn.o_proj.weight"));
    ig_targets_free(&t);
    CHOOSE(&t, "*.0.self_attn.v_proj.weight", "*.0.self_attn.q_proj.weight",
           "model.layers.0.self_attn.q_proj.weight");
    assert_int_equal(t.n, 2);
    ig_targets_free(&t);
}

static void tied_tensors_are_kept_once(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "lm_head.weight", "model.embed_tokens.weight");
    assert_int_equal(t.n, 1);
    ig_targets_free(&t);
    CHOOSE(&t, "model.embed_tokens.weight");
    assert_true(has(&t, "model.embed_tokens.weight"));
    ig_targets_free(&t);
}

static void a_tensor_without_bytes_is_found_and_takes_none(void **state)
{
    struct ig_targets t;
    (void)state;
    CHOOSE(&t, "none");
    assert_int_equal(t.n, 0);
    ig_targets_free(&t);
}

static void shadows_match_no_pattern(void **state)
{
    static const char name[] = "model.layers.1.input_layernorm.weight";
    struct ig_targets t;
    (void)state;
    uint8_t *row = pack.t->regions[REGION_ROWS].data +
                   (size_t)ig_pack_find(&pack, name, strlen(name)) * ROW_SIZE;
    ig_put32(row + ROW_FLAGS, IG_ROW_SHADOW);
    CHOOSE(&t, "*norm.weight");
    ig_put32(row + ROW_FLAGS, 0);
    assert_int_equal(t.n, 1);
    assert_false(has(&t, name));
    ig_targets_free(&t);
}

static void what_matches_nothing_is_refused_by_name(void **state)
{
    static const char *const wrong[] = {"model.layers.2*", "odd", "odd[2]", "", "no\"ne"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct ig_targets t = {0};
        ingot_error e = {0};
        const char *const both[] = {"none", wrong[i]};
        assert_int_equal(ig_select(&pack, both, 2, &t, &e), INGOT_ERR_NOT_FOUND);
        assert_non_null(strstr(e.message, pack.path));
        assert_non_null(strstr(e.message, ig_esc(wrong[i], strlen(wrong[i])).s));
        ig_targets_free(&t);
    }
}

static void places_keep_the_alignment_of_the_file(void **state)
{
    struct ig_targets t;
    uint64_t bytes, end = 0, before = 0;
    (void)state;
    CHOOSE(&t, "*.v_proj.weight", "*.q_proj.weight", "*norm.weight", "odd[1]", "lm_head.weight");
    assert_int_equal(t.n, 8);
    ig_targets_place(&t, &pack, &bytes);
    for (size_t i = 0; i < t.n; i++) {
        struct ig_row r;
        ig_pack_row(&pack, t.list[i].row, &r);
        const uint64_t pos = ig_pack_pos(&pack, &r);
        assert_true(i == 0 || pos > before);
        assert_true(t.list[i].to >= end && t.list[i].to < end + 256);
        assert_int_equal(t.list[i].to % 256, pos % 256);
        assert_int_equal(t.list[i].pitch, t.list[i].width);
        end = t.list[i].to + t.list[i].width;
        before = pos;
    }
    assert_int_equal(bytes, end);
    ig_targets_free(&t);
}

static void the_arena_of_a_whole_pack_is_the_file_up_to_its_tail(void **state)
{
    struct ig_targets t = {.whole = true}, none = {0};
    uint64_t bytes = 1;
    (void)state;
    ig_targets_place(&t, &pack, &bytes);
    assert_int_equal(bytes, pack.tail);
    ig_targets_place(&none, &pack, &bytes);
    assert_int_equal(bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_one_whole_tensor),
        cmocka_unit_test(a_star_also_matches_points),
        cmocka_unit_test(a_name_is_no_pattern),
        cmocka_unit_test(members_of_a_chosen_view_are_kept_once),
        cmocka_unit_test(tied_tensors_are_kept_once),
        cmocka_unit_test(a_tensor_without_bytes_is_found_and_takes_none),
        cmocka_unit_test(shadows_match_no_pattern),
        cmocka_unit_test(what_matches_nothing_is_refused_by_name),
        cmocka_unit_test(places_keep_the_alignment_of_the_file),
        cmocka_unit_test(the_arena_of_a_whole_pack_is_the_file_up_to_its_tail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
