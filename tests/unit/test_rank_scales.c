/* SPDX-License-Identifier: Apache-2.0 */
/* Rank r of n: scales of each granularity follow what they scale, or are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/rank_fixture.h"

/* Were the links made that the test is about? */
static unsigned links_of(const struct model *m, uint32_t gran)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < m->p.nlinks; i++) {
        struct ig_link l;
        ig_pack_link(&m->p, i, &l);
        n += l.gran == gran;
    }
    return n;
}

static void check_scales(void **state, const struct arch *a, uint32_t gran, unsigned links,
                         const struct wanted *w)
{
    struct model m;
    rank_make(&m, a, *state, NULL);
    if (links_of(&m, gran) < links) fail_msg("%s: %u links", a->name, links_of(&m, gran));
    ig_pack_close(&m.p);
    rank_check_arch(*state, a, w);
}

static void scales_of_a_tensor_are_replicated(void **state)
{
    const struct arch a = {"FP8", 8, 2, 8, 32, 64, 33, .scales = PER_TENSOR};
    check_scales(state, &a, IG_GRAN_TENSOR, 14, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
}

static void scales_of_rows_follow_rows(void **state)
{
    const struct arch a = {"FP8 rows", 8, 2, 8, 32, 64, 33, .scales = PER_ROW};
    const struct arch fused = {"FP8 rows, fused", 8, 2, 8, 32, 64, 33, true, .scales = PER_ROW};
    check_scales(state, &a, IG_GRAN_ROW, 7, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
    check_scales(state, &fused, IG_GRAN_ROW, 4, WANTED({1, NULL}, {2, NULL}, {8, NULL}));
}

static void scales_of_blocks_follow_whole_blocks(void **state)
{
    const struct arch a = {"FP8 blocks", 8, 4, 16, 64, 128, 128, .scales = PER_BLOCK, .block = 16};
    const struct arch fused = {"FP8 blocks, fused", 8,          4, 16, 64, 128, 128, true,
                               .scales = PER_BLOCK, .block = 16};
    check_scales(state, &a, IG_GRAN_BLOCK, 7, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
    check_scales(state, &fused, IG_GRAN_BLOCK, 4, WANTED({1, NULL}, {2, NULL}, {8, NULL}));
}

/* Heads of 16 in blocks of 32: two of them can be held, and not one. */
static void a_cut_inside_a_block_is_refused(void **state)
{
    const struct arch a = {"FP8 blocks", 8, 8, 16, 64, 256, 256, .scales = PER_BLOCK, .block = 32};
    const struct arch odd = {"FP8 odd", 4, 4, 32, 64, 144, 128, .scales = PER_BLOCK, .block = 32};
    check_scales(
        state, &a, IG_GRAN_BLOCK, 7,
        WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, "weight_scale_inv\" has one scale for 32 "}));
    check_scales(state, &odd, IG_GRAN_BLOCK, 7,
                 WANTED({1, NULL}, {2, "holds 72 from "}, {4, "holds 36 from "}));
}

static void packed_groups_follow_columns(void **state)
{
    const struct arch a = {"NVFP4", 8, 2, 16, 64, 128, 33, .scales = NVFP4};
    const struct arch odd = {"NVFP4 odd", 8, 2, 8, 64, 128, 33, .scales = NVFP4};
    check_scales(state, &a, IG_GRAN_GROUP, 7, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
    check_scales(state, &odd, IG_GRAN_GROUP, 7,
                 WANTED({4, NULL}, {8, "o_proj.weight_scale\" has one scale for 16 columns"}));
}

static void scales_of_heads_follow_heads(void **state)
{
    const struct arch a = {"KV heads", 8, 2, 8, 32, 64, 33, .scales = KV_HEADS};
    check_scales(state, &a, IG_GRAN_HEAD, 3, WANTED({1, NULL}, {2, NULL}, {4, NULL}, {8, NULL}));
}

/* 31 words in blocks of 16: the last rank ends inside the last block, which nobody else wants. */
static void a_last_block_may_be_short(void **state)
{
    const struct arch a = {"FP8 head", 4, 2, 16, 64, 64, 31, .scales = PER_BLOCK, .block = 16};
    const struct arch odd = {"FP8 head, odd",     4,          2, 16, 64, 64, 33,
                             .scales = PER_BLOCK, .block = 16};
    check_scales(state, &a, IG_GRAN_BLOCK, 8, WANTED({1, NULL}, {2, NULL}));
    check_scales(state, &odd, IG_GRAN_BLOCK, 8,
                 WANTED({2, "lm_head.weight_scale_inv\" has one scale for 16 rows, and rank"}));
}

/* 481 words for 32 ranks, 16 each: one for the last but one, and nothing for the last. */
static void a_rank_without_words_has_no_scales(void **state)
{
    const struct arch a = {"FP8 ranks", 32, 32, 16, 16, 512, 481, .scales = PER_BLOCK, .block = 16};
    check_scales(state, &a, IG_GRAN_BLOCK, 8, WANTED({32, NULL}));
}

/* ---- links that no convert writes ---- */

static uint8_t *link_to(const struct model *m, const char *object)
{
    const uint32_t row = ig_pack_find(&m->p, object, strlen(object));
    assert_int_not_equal(row, IG_NONE);
    for (uint32_t i = 0; i < m->p.nlinks; i++) {
        struct ig_link l;
        ig_pack_link(&m->p, i, &l);
        if (l.object == row) return m->p.t->regions[REGION_LINKS].data + (size_t)i * LINK_SIZE;
    }
    fail_msg("no link to %s", object);
    return NULL;
}

#define ATTENTION "model.layers.0.self_attn."

static void scales_of_an_unknown_part_are_refused(void **state)
{
    const struct arch a = {"FP8 rows", 8, 2, 8, 32, 64, 33, .scales = PER_ROW};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    ig_put32(link_to(&m, ATTENTION "q_proj.weight_scale") + LINK_GRAN, IG_GRAN_UNKNOWN);
    rank_expect_refusal(&m, 2, "q_proj.weight_scale\" scales a tensor that is cut, and which part");
    rank_check(&m, 1);
    ig_pack_close(&m.p);
}

static void scales_of_another_shape_are_refused(void **state)
{
    const struct arch a = {"FP8 blocks", 8, 4, 16, 64, 128, 128, .scales = PER_BLOCK, .block = 16};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    ig_put64(link_to(&m, ATTENTION "o_proj.weight_scale_inv") + LINK_BLOCK + 8, 8);
    rank_expect_refusal(&m, 2, "has 8 columns, but what it scales makes it 16");
    ig_pack_close(&m.p);
}

/* k's weight and o's: rows of the one, columns of the other. */
static void one_scale_of_two_cuts_is_refused(void **state)
{
    const struct arch a = {"FP8 rows", 8, 8, 8, 64, 64, 33, .scales = PER_ROW};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    uint8_t *link = link_to(&m, ATTENTION "o_proj.weight_scale");
    const uint32_t k = ig_pack_find(&m.p, ATTENTION "k_proj.weight_scale",
                                    strlen(ATTENTION "k_proj.weight_scale"));
    ig_put32(link + LINK_OBJECT, k);
    rank_expect_refusal(&m, 2, "k_proj.weight_scale\" scales tensors that are cut in different");
    ig_pack_close(&m.p);
}

/* Nineteen columns for each rank, two in a byte. */
static void half_of_a_packed_element_is_refused(void **state)
{
    const struct arch a = {"NVFP4", 2, 2, 19, 32, 64, 33, .scales = NVFP4};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    rank_expect_refusal(&m, 2, "o_proj.weight_packed\" holds 2 columns in an element, and 19");
    ig_pack_close(&m.p);
}

static void a_ring_of_scales_is_refused(void **state)
{
    const struct arch a = {"FP8", 8, 2, 8, 32, 64, 33, .scales = PER_TENSOR};
    struct model m;
    rank_make(&m, &a, *state, NULL);
    const uint32_t row =
        ig_pack_find(&m.p, ATTENTION "q_proj.input_scale", strlen(ATTENTION "q_proj.input_scale"));
    ig_put32(link_to(&m, ATTENTION "q_proj.input_scale") + LINK_SUBJECT, row);
    rank_expect_refusal(&m, 2, "q_proj.input_scale\" is a scale in a chain without an end");
    ig_pack_close(&m.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(scales_of_a_tensor_are_replicated),
        store_test(scales_of_rows_follow_rows),
        store_test(scales_of_blocks_follow_whole_blocks),
        store_test(a_cut_inside_a_block_is_refused),
        store_test(packed_groups_follow_columns),
        store_test(scales_of_heads_follow_heads),
        store_test(a_last_block_may_be_short),
        store_test(a_rank_without_words_has_no_scales),
        store_test(scales_of_an_unknown_part_are_refused),
        store_test(scales_of_another_shape_are_refused),
        store_test(one_scale_of_two_cuts_is_refused),
        store_test(half_of_a_packed_element_is_refused),
        store_test(a_ring_of_scales_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
