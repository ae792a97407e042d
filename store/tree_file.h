/* SPDX-License-Identifier: Apache-2.0 */
/* The sidecar tree: a sink that puts every block at its place in the file. */
#ifndef INGOT_TREE_FILE_H
#define INGOT_TREE_FILE_H

#include "base/base.h"

struct ig_tree_file {
    int fd;
    const char *path;
    uint64_t at[IG_TREE_LEVELS]; /* offset of each level's hashes */
    uint64_t size;
};
/* Levels of a file of `pack_size` bytes, the root's children first. */
void ig_tree_file_init(struct ig_tree_file *f, int fd, const char *path, uint64_t pack_size);
/* Blocks of leaves are left to the caller, who has many of them at once. */
ingot_status ig_tree_file_sink(void *f, unsigned level, uint64_t index,
                               const uint8_t block[IG_PAGE], ingot_error *e);

#endif
