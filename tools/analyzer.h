/* SPDX-License-Identifier: Apache-2.0 */
/* Read before every source by clang-tidy only, which looks at one file at a time: the functions
 * that report a failure never return INGOT_OK. */
#ifndef INGOT_ANALYZER_H
#define INGOT_ANALYZER_H

#include "base/base.h"

#define ig_fail(e, status, ...) (ig_fail(e, status, __VA_ARGS__), (status))
#define ig_fail_sys(e, ...)     (ig_fail_sys(e, __VA_ARGS__), INGOT_ERR_IO)
#define ig_no_memory(e)         (ig_no_memory(e), INGOT_ERR_NO_MEMORY)

#endif
