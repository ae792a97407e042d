/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/check.h"

#include <string.h>

/* A pack of zeros would otherwise list a million pages; how many more is always told. */
#define MOST 10000

static void set_hash(json_t *o, const char *key, const uint8_t *hash, size_t n)
{
    char hex[2 * IG_HASH + 1];
    if (!hash) return;
    ig_hex(hex, hash, n);
    json_object_set_new(o, key, json_string(hex));
}

void ig_check_bad(struct check *c, const struct finding *f)
{
    pthread_mutex_lock(&c->lock);
    if (json_array_size(c->bad) >= MOST) {
        c->bad_left_out++;
        pthread_mutex_unlock(&c->lock);
        return;
    }
    json_t *o = json_pack("{s:s}", "kind", f->kind);
    if (f->tensor) json_object_set_new(o, "tensor", json_stringn(f->tensor, f->tensor_len));
    if (f->offset != UINT64_MAX) {
        json_object_set_new(o, "offset", json_integer((json_int_t)f->offset));
        json_object_set_new(o, "page", json_integer((json_int_t)(f->offset / IG_PAGE)));
    }
    if (f->length) json_object_set_new(o, "length", json_integer((json_int_t)f->length));
    set_hash(o, "expected", f->expected, f->hash_len);
    set_hash(o, "found", f->found, f->hash_len);
    if (f->text) json_object_set_new(o, "text", json_string(f->text));
    json_array_append_new(c->bad, o);
    pthread_mutex_unlock(&c->lock);
}

bool ig_check_failed(struct check *c)
{
    pthread_mutex_lock(&c->lock);
    const bool failed = json_array_size(c->bad) > 0;
    pthread_mutex_unlock(&c->lock);
    return failed;
}

struct ig_row ig_check_row_at(const struct check *c, uint64_t offset)
{
    struct ig_row none = {.name = ""}, row;
    uint32_t low = 0, high = c->nrows; /* first row that starts behind the offset */
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (c->rows[mid].pos <= offset)
            low = mid + 1;
        else
            high = mid;
    }
    /* Members are wanted, not the view around them: the nearest start wins. */
    for (; low-- > 0 && c->rows[low].reach > offset;) {
        if (c->rows[low].end <= offset) continue;
        ig_pack_row(&c->pack, c->rows[low].row, &row);
        if (!(row.flags & IG_ROW_VIEW)) return row;
    }
    return none;
}
