/* SPDX-License-Identifier: Apache-2.0 */
/* A sidecar's parts, for those that open one and that make one. */
#ifndef INGOT_SIDECAR_PRIVATE_H
#define INGOT_SIDECAR_PRIVATE_H

#include "loader/sidecar.h"
#include "store/tree_file.h"

struct ig_sidecar {
    struct ig_tree_file file; /* levels above the leaves lie in front: file.at[0] bytes */
    char *path;
    uint64_t pack_size;
    uint8_t *upper; /* those, private and proven */
    uint8_t root[IG_HASH];
};
/* Takes fd and path, also when memory is short (NULL). */
struct ig_sidecar *ig_sidecar_new(int fd, char *path, uint64_t pack_size);
/* Read and check what is above the leaves. */
ingot_status ig_sidecar_check(struct ig_sidecar *s, const uint8_t digest[IG_HASH], bool *holds,
                              ingot_error *e);

#endif
