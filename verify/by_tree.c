/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where exactly: the sidecar tree holds the hash of every page.  Once it is known to be the
 * tree of the expected digest, each page that differs is named, whatever else is broken.
 */
#include "store/tree_file.h"
#include "verify/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

static int open_tree(const char *path)
{
    const size_t n = strlen(path);
    if (n < 6 || strcmp(path + n - 6, ".ingot") != 0) return -1;
    char *name = ig_format("%.*s.tree", (int)(n - 6), path);
    const int fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    free(name);
    return fd;
}

/* The tree's leaves give the digest of a file of this size; the levels above are not used. */
static bool is_tree_of(int tree, const struct ig_tree_file *f, uint64_t size,
                       const uint8_t digest[IG_HASH], uint8_t *buf)
{
    struct ig_tree t;
    uint8_t found[IG_HASH];
    const uint64_t pages = ig_tree_nodes(size, 0);
    ig_tree_init(&t);
    for (uint64_t i = 0; i < pages;) {
        const uint64_t n = pages - i < PIECE / IG_HASH ? pages - i : PIECE / IG_HASH;
        if (ig_pread(tree, "tree", buf, n * IG_HASH, f->at[0] + i * IG_HASH, NULL) != INGOT_OK ||
            ig_tree_add(&t, buf, n, NULL) != INGOT_OK)
            return false;
        i += n;
    }
    return ig_tree_digest(&t, size, found, NULL) == INGOT_OK && memcmp(found, digest, IG_HASH) == 0;
}

/* Pages next to each other that belong to one tensor are one finding. */
struct stretch {
    uint64_t offset, length;
    struct ig_row row;
    uint8_t expected[IG_HASH], found[IG_HASH]; /* of its first page */
};

static void flush(struct check *c, struct stretch *s)
{
    if (s->length)
        ig_check_bad(c, &(struct finding){.kind = "page",
                                          .tensor = s->row.name_len ? s->row.name : NULL,
                                          .tensor_len = s->row.name_len,
                                          .offset = s->offset,
                                          .length = s->length,
                                          .expected = s->expected,
                                          .found = s->found,
                                          .hash_len = IG_HASH});
    s->length = 0;
}

static void add_page(struct check *c, struct stretch *s, uint64_t offset, const uint8_t *expected,
                     const uint8_t *found)
{
    const struct ig_row row = c->open ? ig_check_row_at(c, offset) : (struct ig_row){.name = ""};
    if (s->length && s->offset + s->length == offset && row.name == s->row.name) {
        s->length += IG_PAGE;
        return;
    }
    flush(c, s);
    *s = (struct stretch){.offset = offset, .length = IG_PAGE, .row = row};
    memcpy(s->expected, expected, IG_HASH);
    memcpy(s->found, found, IG_HASH);
}

static ingot_status compare(struct check *c, int fd, const char *path, int tree,
                            const struct ig_tree_file *f, uint64_t size, uint8_t *buf,
                            struct ig_lanes *lanes, ingot_error *e)
{
    struct stretch s = {0};
    uint8_t wanted[PIECE / IG_PAGE * IG_HASH], found[PIECE / IG_PAGE * IG_HASH];
    for (uint64_t at = 0; at < size;) {
        const size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;
        const size_t pages = (n + IG_PAGE - 1) / IG_PAGE;
        return_if_error(ig_pread(fd, path, buf, n, at, e));
        return_if_error(
            ig_pread(tree, "tree", wanted, pages * IG_HASH, f->at[0] + at / IG_PAGE * IG_HASH, e));
        ig_leaves(lanes, found, buf, n);
        for (size_t i = 0; i < pages; i++)
            if (memcmp(wanted + i * IG_HASH, found + i * IG_HASH, IG_HASH) != 0)
                add_page(c, &s, at + i * IG_PAGE, wanted + i * IG_HASH, found + i * IG_HASH);
        at += n;
    }
    flush(c, &s);
    c->bytes_hashed += size;
    return INGOT_OK;
}

ingot_status ig_check_by_tree(struct check *c, int fd, const char *path,
                              const uint8_t digest[IG_HASH], bool *used, ingot_error *e)
{
    struct stat st;
    struct ig_tree_file f;
    const int tree = open_tree(path);
    uint8_t *buf = ig_pages(PIECE);
    ingot_status status = buf ? INGOT_OK : ig_no_memory(e);
    *used = false;
    if (status == INGOT_OK && tree >= 0 && fstat(fd, &st) == 0) {
        const uint64_t size = (uint64_t)st.st_size;
        ig_tree_file_init(&f, tree, "tree", size);
        *used = is_tree_of(tree, &f, size, digest, buf);
        struct ig_lanes *lanes = size >= LANES_LEAST ? ig_lanes_new(NULL) : NULL;
        if (*used) status = compare(c, fd, path, tree, &f, size, buf, lanes, e);
        ig_lanes_free(lanes);
    }
    if (tree >= 0) close(tree);
    free(buf);
    return status;
}
