/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of ingot-pack(5), for the reader and the writer alone. */
#ifndef INGOT_FORMAT_H
#define INGOT_FORMAT_H

#define PACK_MAGIC      "\x89INGOT\r\n"
#define REGION_MAGIC    "INGOTRGN"
#define PACK_FORMAT     1u
#define WEIGHTS_AT      65536ull
#define REGION_HEAD     64u
#define REGION_RECORD   64u
#define REGION_MOST     1023u
#define REGION_REQUIRED 1u
#define SMALL_ALIGN     256u
#define BLOB_ALIGN      64u
#define PACK_SANE       ((uint64_t)1 << 62) /* above any file; sums of two such values do not wrap */

/* Offsets of superblock fields. */
enum {
    SB_FORMAT = 8,
    SB_NEED = 16,
    SB_MAY = 24,
    SB_SIZE = 32,
    SB_WEIGHTS = 40,
    SB_WEIGHTS_LEN = 48,
    SB_TAIL = 56,
    SB_TAIL_LEN = 64,
    SB_XXH = 72,
    SB_END = 80
};

enum region_type {
    REGION_XXH = 1,
    REGION_ROWS,
    REGION_EXTENTS,
    REGION_LINKS,
    REGION_DTYPES,
    REGION_STRINGS,
    REGION_SHAPES,
    REGION_BLOBS,
    REGION_BLOB_DATA,
    REGION_MANIFEST,
    REGION_FRONTIER,
    REGION_TYPES
};

enum {
    XXH_SIZE = 16,
    ROW_SIZE = 96,
    EXTENT_SIZE = 32,
    LINK_SIZE = 96,
    DTYPE_SIZE = 32,
    SHAPE_SIZE = 8,
    BLOB_SIZE = 64
};

#define REGION_RECORD_SIZES                                                                     \
    {                                                                                           \
        [REGION_XXH] = XXH_SIZE, [REGION_ROWS] = ROW_SIZE, [REGION_EXTENTS] = EXTENT_SIZE,      \
        [REGION_LINKS] = LINK_SIZE, [REGION_DTYPES] = DTYPE_SIZE, [REGION_SHAPES] = SHAPE_SIZE, \
        [REGION_BLOBS] = BLOB_SIZE, [REGION_FRONTIER] = IG_HASH                                 \
    }

/* Offsets of record fields. */
enum {
    ROW_NAME = 0,
    ROW_NAME_LEN = 8,
    ROW_DTYPE = 12,
    ROW_SHAPE = 16,
    ROW_RANK = 24,
    ROW_FLAGS = 28,
    ROW_EXTENT = 32,
    ROW_SOURCE = 36,
    ROW_OFFSET = 40,
    ROW_BYTES = 48,
    ROW_LINK = 56,
    ROW_NLINKS = 60,
    ROW_DIGEST = 64
};
enum {
    EXTENT_OFFSET = 0,
    EXTENT_BYTES = 8,
    EXTENT_WHERE = 16,
    EXTENT_FLAGS = 20,
    EXTENT_ZERO = 24
};
enum {
    LINK_SUBJECT = 0,
    LINK_OBJECT = 4,
    LINK_MODULE = 8,
    LINK_MODULE_LEN = 16,
    LINK_ROLE = 20,
    LINK_STAGE = 24,
    LINK_OP = 28,
    LINK_GRAN = 32,
    LINK_LOGICAL = 36,
    LINK_BLOCK = 40,
    LINK_PACKING = 56,
    LINK_ENCODING = 60,
    LINK_BLOB = 64,
    LINK_POINTER_LEN = 68,
    LINK_POINTER = 72,
    LINK_ZERO = 80
};
enum { DTYPE_NAME = 0, DTYPE_NAME_LEN = 8, DTYPE_BITS = 12, DTYPE_ZERO = 16 };
enum {
    BLOB_NAME = 0,
    BLOB_NAME_LEN = 8,
    BLOB_KIND = 12,
    BLOB_OFFSET = 16,
    BLOB_BYTES = 24,
    BLOB_SHA256 = 32
};

#endif
