/* SPDX-License-Identifier: Apache-2.0 */
/* Small models with the head counts of real ones, and what of them each rank must hold. */
#ifndef INGOT_TEST_RANK_FIXTURE_H
#define INGOT_TEST_RANK_FIXTURE_H

#include "loader/plan.h"
#include "tests/unit/made_model.h"
#include "tests/unit/store_dir.h"

/* What of the model an element of a tensor belongs to. */
enum part {
    ALL,
    Q_ROWS,
    KV_ROWS,
    QKV_ROWS,
    FF_ROWS,
    GATE_UP_ROWS,
    VOCAB_ROWS,
    Q_COLUMNS,
    FF_COLUMNS
};
enum scales { NONE, PER_TENSOR, PER_ROW, PER_BLOCK, NVFP4, KV_HEADS };

struct arch {
    const char *name;
    uint64_t heads, kv, head_dim, hidden, ff, vocab;
    bool fused, bias, qk_norms, tied;
    enum scales scales;
    uint64_t block;     /* PER_BLOCK: rows and columns of one */
    const char *prefix; /* NULL: "model." */
};
struct tensor {
    char name[96];
    enum part part;
    uint64_t rows, columns; /* of the part's elements that one element here stands for */
};
struct model {
    struct arch a;
    struct ig_pack p;
    struct tensor tensors[64];
    unsigned n;
};

/* `refused`: what the message must hold, by number of ranks. */
struct wanted {
    uint32_t ranks;
    const char *refused; /* NULL: cut */
};

#define WANTED(...) ((const struct wanted[]){__VA_ARGS__, {0, NULL}})

static inline uint64_t ceil_div(uint64_t n, uint64_t d)
{
    return (n + d - 1) / d;
}

/* config NULL: what the model is. */
void rank_make(struct model *m, const struct arch *a, const struct ig_store *s, const char *config);
/* Every rank holds of every tensor what it must, and each piece has a place. */
void rank_check(struct model *m, uint32_t ranks);
/* The first and the last rank are refused with this text. */
void rank_expect_refusal(const struct model *m, uint32_t ranks, const char *text);
/* Make the model and do what is wanted. */
void rank_check_arch(const struct ig_store *s, const struct arch *a, const struct wanted *w);

#endif
