/* SPDX-License-Identifier: Apache-2.0 */
/* The handle behind ingot_pack, shared by those who keep a pack open. */
#ifndef INGOT_PACK_API_H
#define INGOT_PACK_API_H

#include "store/store.h"

struct ingot_pack {
    struct ig_pack pack;
    bool has_digest; /* what it must be is known */
    bool proven;     /* and its tables are that */
    uint8_t digest[IG_HASH];
    unsigned refs; /* atomic */
};
/* Find and open a model's pack.  prove: hold its tables to the digest, where one is known. */
ingot_status ig_pack_api_open(const char *store, const char *model, bool prove, ingot_pack **out,
                              ingot_error *e);
ingot_pack *ig_pack_api_retain(const ingot_pack *p);

#endif
