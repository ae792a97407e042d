/* SPDX-License-Identifier: Apache-2.0 */
/* The link table: its order, and the rules of its records. */
#include "store/pack_private.h"

static int cmp_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

int ig_link_cmp(const void *x, const void *y)
{
    const struct ig_link *a = x, *b = y;
    int c = cmp_u32(a->subject, b->subject);
    if (!c) c = ig_bytes_cmp(a->module, a->module_len, b->module, b->module_len);
    if (!c) c = cmp_u32(a->role, b->role);
    if (!c) c = cmp_u32(a->stage, b->stage);
    return c ? c : cmp_u32(a->object, b->object);
}

static bool links_ascend(const struct ig_pack *p, uint32_t i)
{
    struct ig_link a, b;
    if (i == 0) return true;
    ig_pack_link(p, i - 1, &a);
    ig_pack_link(p, i, &b);
    return ig_link_cmp(&a, &b) < 0;
}

static const char *link_fault(const struct ig_pack *p, const uint8_t *r)
{
    if (ig_get32(r + LINK_OBJECT) >= p->nrows) return "object out of range";
    const uint32_t role = ig_get32(r + LINK_ROLE), gran = ig_get32(r + LINK_GRAN);
    if (role < IG_ROLE_WEIGHT || role > IG_ROLE_OUTPUT) return "unknown role";
    if (gran < IG_GRAN_TENSOR || gran > IG_GRAN_UNKNOWN) return "unknown granularity";
    if (ig_get32(r + LINK_OP) > IG_OP_DIVIDE) return "unknown operation";
    if (ig_get32(r + LINK_LOGICAL) >= p->t->ndtypes) return "logical dtype out of range";
    if (ig_get32(r + LINK_PACKING) > IG_PACK_LOW_FIRST) return "unknown packing";
    if (ig_get32(r + LINK_ENCODING) > IG_ENC_E8M0) return "unknown encoding";
    const uint32_t blob = ig_get32(r + LINK_BLOB);
    if (blob != IG_NONE && blob >= p->nblobs) return "blob out of range";
    if (!ig_all_zero(r + LINK_ZERO, LINK_SIZE - LINK_ZERO)) return "reserved bytes not zero";
    return NULL;
}

/* Which row a link must belong to: rows in order use up the first row_links of them. */
ingot_status ig_pack_check_links(struct ig_pack *p, struct ig_pack_used *u, uint32_t row_links,
                                 ingot_error *e)
{
    for (uint32_t i = 0, row = 0, left = 0; i < p->nlinks; i++) {
        const uint8_t *r = p->t->regions[REGION_LINKS].data + (size_t)i * LINK_SIZE;
        const uint64_t record = ig_pack_at(p, REGION_LINKS, i, LINK_SIZE);
        uint32_t subject = IG_NONE;
        if (i < row_links) {
            for (; left == 0; row++)
                left =
                    ig_get32(p->t->regions[REGION_ROWS].data + (size_t)row * ROW_SIZE + ROW_NLINKS);
            subject = row - 1;
            left--;
        }
        const uint32_t mlen = ig_get32(r + LINK_MODULE_LEN), plen = ig_get32(r + LINK_POINTER_LEN);
        const char *fault = link_fault(p, r);
        if (!fault && ig_get32(r + LINK_SUBJECT) != subject)
            fault = "subject is not the row it stands at";
        if (!fault && (mlen == 0) != (subject != IG_NONE)) fault = "module and row contradict";
        if (!fault && (mlen == 0 && ig_get64(r + LINK_MODULE) != 0))
            fault = "module offset not zero";
        if (!fault && (plen == 0 && ig_get64(r + LINK_POINTER) != 0))
            fault = "pointer offset not zero";
        if (fault) return pack_fail(p, e, record, "link %u: %s", i, fault);
        if (mlen)
            return_if_error(ig_pack_take_string(p, u, ig_get64(r + LINK_MODULE), mlen, record, e));
        if (plen)
            return_if_error(ig_pack_take_string(p, u, ig_get64(r + LINK_POINTER), plen, record, e));
        if (!links_ascend(p, i))
            return pack_fail(p, e, record, "link %u: out of order, or twice", i);
        u->dtypes |= 1u << ig_get32(r + LINK_LOGICAL);
    }
    return INGOT_OK;
}
