/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of the whole pack, hashed anew into a file without a name. */
#include "loader/sidecar_private.h"

#include "base/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NODE ((uint64_t)IG_FAN * IG_PAGE)

struct making {
    const struct ig_pack *pack;
    struct ig_sidecar *s;
    const struct ig_progress *progress;
    uint8_t **buffer;        /* a worker */
    struct ig_lanes **lanes; /* a worker; NULL works */
    uint8_t *nodes;          /* of level 1 */
};

static ingot_status hash_node(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    const struct making *m = ctx;
    const struct ig_pack *p = m->pack;
    uint8_t leaves[IG_PAGE] = {0};
    const uint64_t at = i * NODE, n = p->size - at < NODE ? p->size - at : NODE;
    if (m->progress->cancelled && m->progress->cancelled(m->progress->ctx))
        return ig_fail(e, INGOT_ERR_CANCELLED, "%s: the load was cancelled", p->path);
    if (!m->buffer[worker]) {
        m->buffer[worker] = ig_pages(NODE);
        if (worker > 0) m->lanes[worker] = ig_lanes_new(m->lanes[0]);
        if (!m->buffer[worker]) return ig_no_memory(e);
    }
    return_if_error(ig_pread(p->fd, p->path, m->buffer[worker], (size_t)n, at, e));
    ig_leaves(m->lanes[worker], leaves, m->buffer[worker], (size_t)n);
    ig_sha256(m->nodes + i * IG_HASH, leaves, IG_PAGE);
    return ig_pwrite(m->s->file.fd, m->s->path, leaves, IG_PAGE, m->s->file.at[0] + i * IG_PAGE, e);
}

/* Beside the pack, where there is room for it; else in memory. */
static int unnamed_file(const char *pack)
{
    const char *slash = strrchr(pack, '/');
    char *dir = slash ? ig_format("%.*s", (int)(slash - pack + 1), pack) : ig_format(".");
    int fd = dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(dir);
    if (fd < 0) fd = memfd_create("ingot tree", MFD_CLOEXEC);
    return fd;
}

static ingot_status fold(const struct making *m, uint64_t n, const uint8_t digest[IG_HASH],
                         ingot_error *e)
{
    uint8_t found[IG_HASH] = {0};
    char wanted[65], is[65];
    struct ig_tree *t = malloc(sizeof *t);
    if (!t) return ig_no_memory(e);
    ig_tree_init(t);
    t->sink = ig_tree_file_sink;
    t->ctx = &m->s->file;
    ingot_status status = ig_tree_add_nodes(t, 1, m->nodes, n, e);
    if (status == INGOT_OK) status = ig_tree_digest(t, m->pack->size, found, e);
    free(t);
    if (status != INGOT_OK || memcmp(found, digest, IG_HASH) == 0) return status;
    ig_hex(wanted, digest, IG_HASH);
    ig_hex(is, found, IG_HASH);
    ig_fail(e, INGOT_ERR_CHECK, "%s: expected fsverity-sha256:%s, the file is fsverity-sha256:%s",
            m->pack->path, wanted, is);
    return ig_at(e, m->pack->path, NULL, 0);
}

static ingot_status make(struct making *m, unsigned threads, const uint8_t digest[IG_HASH],
                         ingot_error *e)
{
    bool holds = false;
    const uint64_t n = (m->pack->size + NODE - 1) / NODE;
    m->buffer = ig_array(threads, sizeof *m->buffer);
    m->lanes = ig_array(threads, sizeof(void *));
    m->nodes = ig_array((size_t)n, IG_HASH);
    ingot_status status = m->buffer && m->lanes && m->nodes ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) m->lanes[0] = ig_lanes_new(NULL); /* measured once, for all */
    if (status == INGOT_OK) status = ig_parallel(threads, n, hash_node, m, e);
    if (status == INGOT_OK) status = fold(m, n, digest, e);
    if (status == INGOT_OK) status = ig_sidecar_check(m->s, digest, &holds, e);
    if (status == INGOT_OK && !holds)
        status =
            ig_fail(e, INGOT_ERR_IO, "%s: the tree just written reads back otherwise", m->s->path);
    for (unsigned i = 0; i < threads; i++) {
        if (m->buffer) free(m->buffer[i]);
        if (m->lanes) ig_lanes_free(m->lanes[i]);
    }
    free(m->buffer);
    free(m->lanes);
    free(m->nodes);
    return status;
}

ingot_status ig_sidecar_make(const struct ig_pack *p, const uint8_t digest[IG_HASH],
                             unsigned threads, const struct ig_progress *progress,
                             struct ig_sidecar **out, ingot_error *e)
{
    *out = NULL;
    const int fd = unnamed_file(p->path);
    if (fd < 0) return ig_fail_sys(e, errno, "%s: no place for its tree", p->path);
    struct making m = {.pack = p, .progress = progress};
    m.s = ig_sidecar_new(fd, ig_format("%s: its tree", p->path), p->size);
    if (!m.s) return ig_no_memory(e);
    const ingot_status status = make(&m, threads, digest, e);
    if (status == INGOT_OK)
        *out = m.s;
    else
        ig_sidecar_close(m.s);
    return status;
}
