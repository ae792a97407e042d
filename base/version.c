/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ingot.h"

const char *ingot_version(void)
{
    return PACKAGE_VERSION;
}
