/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pack reader share. */
#ifndef INGOT_PACK_PRIVATE_H
#define INGOT_PACK_PRIVATE_H

#include "store/format.h"
#include "store/store.h"

struct region {
    uint64_t offset, bytes;
    uint32_t type; /* of an extra one */
    uint8_t xxh[16];
    uint8_t *data; /* private copy, or NULL for regions that stay on disk */
};

struct ig_pack_tables {
    struct region regions[REGION_TYPES];
    uint8_t superblock[IG_PAGE];
    struct region *extra; /* optional regions of unknown type, skipped by readers */
    uint32_t nextra;
    uint64_t regions_end;           /* of the region table, in the file */
    uint32_t dtypes[IG_DTYPES + 1]; /* enum of base.h for each record of the dtype table */
    uint32_t ndtypes;
};

/* Fail with INGOT_ERR_PACK, "PATH: ..." and the offset. */
#define pack_fail(p, e, off, ...) ig_pack_fail((p), (e), (off), __VA_ARGS__)
ingot_status ig_pack_fail(const struct ig_pack *p, ingot_error *e, uint64_t offset,
                          const char *format, ...) IG_PRINTF(4, 5);

/* pack_regions.c: region table and private copies of the regions. */
ingot_status ig_pack_read_regions(struct ig_pack *p, ingot_error *e);
/* pack_rules.c: every rule about tables, O(n). */
ingot_status ig_pack_check_tables(struct ig_pack *p, ingot_error *e);
/* What its passes have used so far: of the two pools, and a bit for each record of dtypes. */
struct ig_pack_used {
    uint64_t strings, shapes;
    uint32_t dtypes;
};
ingot_status ig_pack_take_string(struct ig_pack *p, struct ig_pack_used *u, uint64_t offset,
                                 uint64_t len, uint64_t record, ingot_error *e);
/* pack_links.c: the rows have the first row_links of them. */
ingot_status ig_pack_check_links(struct ig_pack *p, struct ig_pack_used *u, uint32_t row_links,
                                 ingot_error *e);
/* Where record i of a region stands in the file. */
static inline uint64_t ig_pack_at(const struct ig_pack *p, int region, uint64_t i, uint64_t size)
{
    return p->t->regions[region].offset + i * size;
}
/* pack_manifest.c: parse and check the canonical form; fill sources, rules, content. */
ingot_status ig_pack_read_manifest(struct ig_pack *p, ingot_error *e);

/* Bytes of a tensor of this dtype and shape; false when that overflows or is no whole number. */
bool ig_tensor_bytes(uint32_t dtype, uint32_t rank, const uint64_t *shape, uint64_t *bytes);

#endif
