/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pack_write.h"

#include <string.h>

static void add64(struct ig_sha *h, uint64_t v)
{
    uint8_t b[8];
    ig_put64(b, v);
    ig_sha_update(h, b, sizeof b);
}

void ig_content_begin(struct ig_sha *h, uint64_t count)
{
    static const char domain[] = "ingot-content-v1"; /* its NUL is hashed too */
    ig_sha_init(h);
    ig_sha_update(h, domain, sizeof domain);
    add64(h, count);
}

void ig_content_row(struct ig_sha *h, const struct ig_row *row)
{
    const char *dtype = ig_dtypes[row->dtype].name;
    add64(h, row->name_len);
    ig_sha_update(h, row->name, row->name_len);
    add64(h, strlen(dtype));
    ig_sha_update(h, dtype, strlen(dtype));
    add64(h, row->rank);
    for (uint32_t i = 0; i < row->rank; i++) add64(h, row->shape[i]);
    ig_sha_update(h, row->digest, IG_HASH);
}

void ig_content_digest(const struct ig_row *rows, uint32_t n, uint8_t out[IG_HASH])
{
    struct ig_sha h;
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++) count += !(rows[i].flags & (IG_ROW_VIEW | IG_ROW_SHADOW));
    ig_content_begin(&h, count);
    for (uint32_t i = 0; i < n; i++)
        if (!(rows[i].flags & (IG_ROW_VIEW | IG_ROW_SHADOW))) ig_content_row(&h, &rows[i]);
    ig_sha_final(&h, out);
}
