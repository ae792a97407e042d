/* SPDX-License-Identifier: Apache-2.0 */
/* Between pack_seal.c and pack_tables.c. */
#ifndef INGOT_PACK_TABLES_H
#define INGOT_PACK_TABLES_H

#include "store/format.h"
#include "store/pack_write.h"

struct ig_blob_place {
    uint64_t offset;
    uint8_t sha256[IG_HASH];
};

/* Bytes of each region but the manifest and the frontier. */
void ig_tables_lengths(const struct ig_tail *t, uint64_t lengths[REGION_TYPES]);
/* A table or pool into out (zeroed, of its length); places are used for the blob table. */
void ig_tables_encode(const struct ig_tail *t, int region, uint8_t *out,
                      const struct ig_blob_place *places);
/* Dtypes used, by name; index[dtype] is its record.  Returns how many. */
uint32_t ig_tables_dtypes(const struct ig_tail *t, uint32_t list[IG_DTYPES],
                          uint32_t index[IG_DTYPES]);

#endif
