/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda/hash.cu computes, on a thread of the host. */
#include "loader/host_queue.h"

#include <string.h>

static void hash_pages(struct ig_lanes *lanes, const struct ig_job *j, uint8_t *out)
{
    uint8_t leaves[IG_PAGE] = {0}; /* a block of the tree, the unused part zero */
    if (j->kind == IG_JOB_LEAVES) {
        ig_leaves(lanes, out, j->data, (size_t)j->bytes);
        return;
    }
    ig_leaves(lanes, leaves, j->data, (size_t)j->bytes);
    if (j->single)
        memcpy(out, leaves, IG_HASH);
    else
        ig_sha256(out, leaves, sizeof leaves);
}

static void hash_spans(const struct ig_job *j, uint8_t *out)
{
    for (uint64_t at = 0; at < j->bytes; at += IG_SPAN, out += 16) {
        const uint64_t n = j->bytes - at < IG_SPAN ? j->bytes - at : IG_SPAN;
        ig_xxh128(out, (const uint8_t *)j->data + at, (size_t)n);
    }
}

static void hash_gathered(const struct ig_job *j, uint8_t *out)
{
    uint8_t page[IG_PAGE] = {0};
    memcpy(page, j->data, (size_t)j->bytes);
    if (j->bytes2) memcpy(page + j->bytes, j->data2, (size_t)j->bytes2);
    if (j->bytes3) memcpy(page + j->bytes + j->bytes2, j->data3, (size_t)j->bytes3);
    ig_leaf(out, page, sizeof page);
}

static void compare_runs(const struct ig_job *j, uint8_t *out)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < j->rows && !found; i++)
        if (memcmp((const uint8_t *)j->data + i * j->stride,
                   (const uint8_t *)j->data2 + i * j->stride2, (size_t)j->bytes) != 0)
            found = i + 1;
    ig_put64(out, found);
}

void ig_host_job(struct ig_lanes *lanes, const struct ig_job *j, uint8_t *results)
{
    uint8_t *out = results + j->out;
    switch ((enum ig_job_kind)j->kind) {
    case IG_JOB_NODE:
    case IG_JOB_LEAVES:
        hash_pages(lanes, j, out);
        break;
    case IG_JOB_XXH:
        hash_spans(j, out);
        break;
    case IG_JOB_GATHER:
        hash_gathered(j, out);
        break;
    case IG_JOB_COMPARE:
        compare_runs(j, out);
        break;
    }
}
