/* SPDX-License-Identifier: Apache-2.0 */
/* The default secret of XXH3, asked of the library: with seed 0 it is what everybody hashes with.
 */
#include "loader/device.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

void ig_xxh_secret_bytes(uint8_t out[192])
{
    _Static_assert(XXH3_SECRET_DEFAULT_SIZE == 192, "the specification's size");
    XXH3_generateSecret_fromSeed(out, 0);
}
