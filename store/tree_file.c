/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tree_file.h"

void ig_tree_file_init(struct ig_tree_file *f, int fd, const char *path, uint64_t pack_size)
{
    *f = (struct ig_tree_file){.fd = fd, .path = path};
    unsigned top = 0;
    while (ig_tree_nodes(pack_size, top + 1) > 0) top++;
    /* Level `top` is the root alone, which stands in no block. */
    for (unsigned level = top; level-- > 0;) {
        f->at[level] = f->size;
        f->size += ig_tree_nodes(pack_size, level + 1) * IG_PAGE;
    }
}

ingot_status ig_tree_file_sink(void *ctx, unsigned level, uint64_t index,
                               const uint8_t block[IG_PAGE], ingot_error *e)
{
    const struct ig_tree_file *f = ctx;
    if (level == 0) return INGOT_OK;
    return ig_pwrite(f->fd, f->path, block, IG_PAGE, f->at[level] + index * IG_PAGE, e);
}
