/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where is the damage?  What landed is brought back and held against everything that is known of
 * it: the sidecar's leaves name the page, the XXH3 table 64 KiB, a tensor's digest the tensor. Then
 * the file is read once more, to say whether it is the file or the way that is at fault.
 */
#include "loader/run.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK IG_NODE

struct place {
    uint64_t at, bytes;
    bool found;
};

/* The first page of [at, at + n) whose leaf differs; whole pages only. */
static void by_leaves(struct ig_run *r, const uint8_t *data, uint64_t at, uint64_t n,
                      struct place *p)
{
    uint8_t wanted[IG_PAGE], is[IG_PAGE];
    uint64_t page = (at + IG_PAGE - 1) / IG_PAGE;
    const uint64_t end = (at + n) / IG_PAGE;
    while (page < end && !p->found) {
        uint64_t k = IG_FAN - page % IG_FAN;
        if (k > end - page) k = end - page;
        if (ig_sidecar_leaves(r->sidecar, page, (unsigned)k, wanted, NULL) != INGOT_OK) return;
        ig_leaves(NULL, is, data + (page * IG_PAGE - at), (size_t)k * IG_PAGE);
        for (uint64_t i = 0; i < k && !p->found; i++)
            if (memcmp(wanted + i * IG_HASH, is + i * IG_HASH, IG_HASH) != 0)
                *p = (struct place){(page + i) * IG_PAGE, IG_PAGE, true};
        page += k;
    }
}

/* The same with spans of the XXH3 table; whole spans only, and the last of the weights. */
static void by_spans(struct ig_run *r, const uint8_t *data, uint64_t at, uint64_t n,
                     struct place *p)
{
    const struct ig_pack *k = r->pack;
    uint64_t start = at < k->weights ? k->weights : ig_round_up(at, IG_SPAN);
    for (; start < at + n && !p->found; start += IG_SPAN) {
        uint8_t wanted[16], is[16];
        const uint64_t end = start + IG_SPAN < k->tail ? start + IG_SPAN : k->tail;
        if (end > at + n) return;
        if (ig_pread(k->fd, k->path, wanted, 16, k->xxh + (start - k->weights) / IG_SPAN * 16,
                     NULL) != INGOT_OK)
            return;
        ig_xxh128(is, data + (start - at), (size_t)(end - start));
        if (memcmp(wanted, is, 16) != 0) *p = (struct place){start, end - start, true};
    }
}

static struct ig_row row_at(const struct ig_pack *p, uint64_t offset)
{
    struct ig_row best = {.name = ""};
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        const uint64_t pos = ig_pack_pos(p, &row);
        if (row.bytes && !(row.flags & IG_ROW_VIEW) && pos <= offset && offset < pos + row.bytes)
            return row;
    }
    return best;
}

/* Does the file itself hold what landed? */
static const char *blame(const struct ig_run *r, const uint8_t *data, uint64_t at, uint64_t n)
{
    uint8_t *now = malloc((size_t)n);
    const char *who = "and the file can no longer be read";
    if (!now) return "";
    if (ig_pread(r->pack->fd, r->pack->path, now, (size_t)n, at, NULL) == INGOT_OK)
        who = memcmp(now, data, (size_t)n) == 0
                  ? "the file holds the same bytes"
                  : "the file holds others: damaged on the way, or changed since";
    free(now);
    return who;
}

static ingot_status say(struct ig_run *r, const struct place *p, const char *who, uint32_t tensor,
                        ingot_error *e)
{
    struct ig_row row;
    if (tensor != IG_NONE)
        ig_pack_row(r->pack, tensor, &row);
    else
        row = row_at(r->pack, p->at);
    char name[IG_ESC_MAX + 16] = "";
    if (row.name_len)
        snprintf(name, sizeof name, "tensor \"%s\": ", ig_esc(row.name, row.name_len).s);
    ig_fail(e, INGOT_ERR_CHECK,
            "%s: %spage %llu (offset %llu, %llu bytes) in %s memory is not what the %s says (%s)",
            r->pack->path, name, (unsigned long long)(p->at / IG_PAGE), (unsigned long long)p->at,
            (unsigned long long)p->bytes, r->dev->info.name,
            r->plan->level == IG_LOAD_FAST && r->plan->whole ? "XXH3 table" : "digest", who);
    if (row.name_len) ig_at(e, r->pack->path, row.name, row.name_len);
    return ig_at_offset(e, r->pack->path, p->at);
}

ingot_status ig_locate(struct ig_run *r, uint64_t file, uint64_t n, const uint8_t *at, uint32_t row,
                       ingot_error *e)
{
    struct place p = {.at = file, .bytes = n};
    const char *who = "its place is not known more exactly";
    uint8_t *data = at ? ig_pages(CHUNK) : NULL;
    ingot_status status = at && !data ? ig_no_memory(e) : INGOT_OK;
    /* Chunks begin on multiples of themselves, so that spans and pages are seen whole. */
    for (uint64_t x = file; data && x < file + n && !p.found && status == INGOT_OK;) {
        uint64_t len = CHUNK - x % CHUNK;
        if (len > file + n - x) len = file + n - x;
        status = r->dev->ops->read_back(r->dev, data, at + (x - file), len, e);
        if (status == INGOT_OK && r->sidecar) by_leaves(r, data, x, len, &p);
        if (status == INGOT_OK && !p.found) by_spans(r, data, x, len, &p);
        if (status == INGOT_OK && p.found) who = blame(r, data + (p.at - x), p.at, p.bytes);
        x += len;
    }
    free(data);
    return status == INGOT_OK ? say(r, &p, who, row, e) : status;
}
