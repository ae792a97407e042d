/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <string.h>

const struct ig_dtype ig_dtypes[IG_DTYPES] = {
    [IG_BOOL] = {"BOOL", 8},
    [IG_F4] = {"F4", 4},
    [IG_F6_E2M3] = {"F6_E2M3", 6},
    [IG_F6_E3M2] = {"F6_E3M2", 6},
    [IG_U8] = {"U8", 8},
    [IG_I8] = {"I8", 8},
    [IG_F8_E5M2] = {"F8_E5M2", 8},
    [IG_F8_E4M3] = {"F8_E4M3", 8},
    [IG_F8_E8M0] = {"F8_E8M0", 8},
    [IG_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [IG_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [IG_I16] = {"I16", 16},
    [IG_U16] = {"U16", 16},
    [IG_F16] = {"F16", 16},
    [IG_BF16] = {"BF16", 16},
    [IG_I32] = {"I32", 32},
    [IG_U32] = {"U32", 32},
    [IG_F32] = {"F32", 32},
    [IG_C64] = {"C64", 64},
    [IG_F64] = {"F64", 64},
    [IG_I64] = {"I64", 64},
    [IG_U64] = {"U64", 64},
};

int ig_dtype_find(const char *name, size_t len)
{
    for (int i = 0; i < IG_DTYPES; i++)
        if (strlen(ig_dtypes[i].name) == len && memcmp(ig_dtypes[i].name, name, len) == 0) return i;
    return -1;
}
