/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a safetensors file, from a pack: one that was packed, or a canonical new one. */
#ifndef INGOT_REBUILD_H
#define INGOT_REBUILD_H

#include "convert/convert.h"

/* The source file as it was, byte for byte, from its header blob and its rows.  The caller
 * hashes what it gets; nothing here trusts the manifest.  Identity packs only. */
ingot_status ig_rebuild_source(const struct ig_pack *p, uint32_t source, ig_sink *sink, void *ctx,
                               ingot_error *e);

/* A canonical file of the given rows: wide dtypes first, then by name, header padded to 8 bytes,
 * metadata {"format":"pt"}; what the safetensors library would write. */
ingot_status ig_rebuild_canonical(const struct ig_pack *p, const uint32_t *rows, uint32_t n,
                                  ig_sink *sink, void *ctx, ingot_error *e);

/* A source file as export writes it: as it was, or from a derived pack a canonical one of its
 * tensors.  IG_NONE: all that is loaded, in one canonical file. */
ingot_status ig_rebuild_export(const struct ig_pack *p, uint32_t source, ig_sink *sink, void *ctx,
                               ingot_error *e);

#endif
