/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a safetensors file, from a pack: one that was packed, or a canonical new one. */
#ifndef INGOT_REBUILD_H
#define INGOT_REBUILD_H

#include "convert/convert.h"

/* A file of a model: bytes in memory, then runs of the pack's bytes, in order. */
struct ig_stretch {
    uint64_t pos, bytes; /* in the pack file */
};
struct ig_rebuilt {
    char *header;
    size_t header_bytes;
    struct ig_stretch *runs;
    size_t nruns;
};
/* A source file as export writes it: as it was, byte for byte, from its header blob and its rows;
 * or from a derived pack a canonical one of its tensors.  IG_NONE: all that is loaded, in one
 * canonical file.  The caller hashes what it reads; nothing here trusts the manifest. */
ingot_status ig_rebuild_runs(const struct ig_pack *p, uint32_t source, struct ig_rebuilt *out,
                             ingot_error *e);
void ig_rebuilt_free(struct ig_rebuilt *r);
/* The same, read and given to a sink. */
ingot_status ig_rebuild_export(const struct ig_pack *p, uint32_t source, ig_sink *sink, void *ctx,
                               ingot_error *e);

#endif
