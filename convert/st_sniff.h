/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is that claims to be something else, from its first bytes. */
#ifndef INGOT_ST_SNIFF_H
#define INGOT_ST_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IG_SNIFF_BYTES 1024u /* enough for every answer below; a pointer file is smaller */

/* A Git-LFS pointer left in place of its file?  buf holds the whole file of n bytes.
 * oid: 64 hexadecimal digits, or "" where the pointer names none; size likewise or 0. */
bool ig_lfs_pointer(const char *buf, size_t n, char oid[65], uint64_t *size);

/* What the first n bytes say the file is ("a zip archive (...)"), or NULL. */
const char *ig_sniff(const char *buf, size_t n);

#endif
