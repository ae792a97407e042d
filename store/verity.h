/* SPDX-License-Identifier: Apache-2.0 */
/* fs-verity in the kernel: https://docs.kernel.org/filesystems/fsverity.html */
#ifndef INGOT_VERITY_H
#define INGOT_VERITY_H

#include "base/base.h"

/* Ask the kernel to enforce a file's digest from now on.  INGOT_ERR_UNSUPPORTED when the file
 * system cannot; a file that is enforced already is fine. */
ingot_status ig_verity_enable(const char *path, ingot_error *e);
/* The SHA-256 digest the kernel enforces on an open file; false when it enforces none. */
bool ig_verity_measure(int fd, uint8_t digest[IG_HASH]);

#endif
