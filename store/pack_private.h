/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pack reader share. */
#ifndef INGOT_PACK_PRIVATE_H
#define INGOT_PACK_PRIVATE_H

#include "store/format.h"
#include "store/store.h"

struct region {
    uint64_t offset, bytes;
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
/* pack_manifest.c: parse and check the canonical form; fill sources, rules, content. */
ingot_status ig_pack_read_manifest(struct ig_pack *p, ingot_error *e);

/* Bytes of a tensor of this dtype and shape; false when that overflows or is no whole number. */
bool ig_tensor_bytes(uint32_t dtype, uint32_t rank, const uint64_t *shape, uint64_t *bytes);

#endif
