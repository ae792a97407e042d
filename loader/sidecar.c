/* SPDX-License-Identifier: Apache-2.0 */
/* The tree beside a pack: everything above the leaves is read and proven at once. */
#include "loader/sidecar_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *tree_path(const char *pack)
{
    static const char end[] = ".ingot";
    const size_t n = strlen(pack), k = sizeof end - 1;
    if (n <= k || strcmp(pack + n - k, end) != 0) return NULL;
    return ig_format("%.*s.tree", (int)(n - k), pack);
}

static unsigned top_of(uint64_t size)
{
    unsigned top = 0;
    while (ig_tree_nodes(size, top + 1) > 0) top++;
    return top;
}

/* Blocks of `level` against the hashes one level up, which are known to be true. */
static bool level_holds(const struct ig_sidecar *s, unsigned level, const uint8_t *above)
{
    const uint64_t blocks = ig_tree_nodes(s->pack_size, level + 1);
    const uint8_t *at = s->upper + s->file.at[level];
    const uint64_t used = ig_tree_nodes(s->pack_size, level) * IG_HASH;
    for (uint64_t i = 0; i < blocks; i++) {
        uint8_t is[IG_HASH];
        ig_sha256(is, at + i * IG_PAGE, IG_PAGE);
        if (memcmp(is, above + i * IG_HASH, IG_HASH) != 0) return false;
    }
    return ig_all_zero(at + used, blocks * IG_PAGE - used);
}

ingot_status ig_sidecar_check(struct ig_sidecar *s, const uint8_t digest[IG_HASH], bool *holds,
                              ingot_error *e)
{
    uint8_t found[IG_HASH], block[IG_PAGE];
    const unsigned top = top_of(s->pack_size);
    *holds = false;
    return_if_error(ig_pread(s->file.fd, s->path, s->upper, (size_t)s->file.at[0], 0, e));
    const uint8_t *root_block = s->upper;
    if (top == 1) { /* the root's block is the leaves' */
        return_if_error(ig_pread(s->file.fd, s->path, block, IG_PAGE, 0, e));
        root_block = block;
    }
    ig_sha256(s->root, root_block, IG_PAGE);
    ig_verity_digest(found, s->pack_size, s->root);
    if (memcmp(found, digest, IG_HASH) != 0) return INGOT_OK;
    *holds = true;
    for (unsigned level = top - 1; level >= 1 && *holds; level--)
        *holds =
            level_holds(s, level, level + 1 == top ? s->root : s->upper + s->file.at[level + 1]);
    return INGOT_OK;
}

struct ig_sidecar *ig_sidecar_new(int fd, char *path, uint64_t pack_size)
{
    struct ig_sidecar *s = calloc(1, sizeof *s);
    if (s) {
        ig_tree_file_init(&s->file, fd, path, pack_size);
        s->upper = ig_array((size_t)s->file.at[0], 1);
    }
    if (!s || !s->upper || !path) {
        free(s ? s->upper : NULL);
        free(s);
        free(path);
        close(fd);
        return NULL;
    }
    s->path = path;
    s->pack_size = pack_size;
    return s;
}

ingot_status ig_sidecar_open(const struct ig_pack *p, const uint8_t digest[IG_HASH],
                             struct ig_sidecar **out, const char **why, ingot_error *e)
{
    struct stat st;
    bool holds = false;
    *out = NULL;
    *why = "there is none";
    char *path = tree_path(p->path);
    if (!path) return INGOT_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        free(path);
        return INGOT_OK;
    }
    struct ig_sidecar *s = ig_sidecar_new(fd, path, p->size);
    if (!s) return ig_no_memory(e);
    ingot_error ignored;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != s->file.size)
        *why = "it has not the size of this pack's";
    else if (ig_sidecar_check(s, digest, &holds, &ignored) != INGOT_OK)
        *why = "it cannot be read";
    else if (!holds)
        *why = "it is not the tree of this digest";
    if (holds) {
        *why = NULL;
        *out = s;
    } else {
        ig_sidecar_close(s);
    }
    return INGOT_OK;
}

void ig_sidecar_close(struct ig_sidecar *s)
{
    if (!s) return;
    close(s->file.fd);
    free(s->upper);
    free(s->path);
    free(s);
}

const uint8_t *ig_sidecar_node(const struct ig_sidecar *s, uint64_t i)
{
    if (s->file.at[0] == 0) return s->root;
    return s->upper + s->file.at[1] + i * IG_HASH;
}

ingot_status ig_sidecar_leaves(const struct ig_sidecar *s, uint64_t first, unsigned n, uint8_t *out,
                               ingot_error *e)
{
    uint8_t block[IG_PAGE], is[IG_HASH];
    const uint64_t i = first / IG_FAN, at = s->file.at[0] + i * IG_PAGE;
    return_if_error(ig_pread(s->file.fd, s->path, block, IG_PAGE, at, e));
    ig_sha256(is, block, IG_PAGE);
    if (memcmp(is, ig_sidecar_node(s, i), IG_HASH) != 0) {
        ig_fail(e, INGOT_ERR_PACK,
                "%s: the leaves at offset %llu are not what the tree says of them", s->path,
                (unsigned long long)at);
        return ig_at_offset(e, s->path, at);
    }
    memcpy(out, block + first % IG_FAN * IG_HASH, (size_t)n * IG_HASH);
    return INGOT_OK;
}
