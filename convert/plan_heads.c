/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedding and the head.  Where the config ties them and a file holds both, they are
 * compared, and equal ones share their bytes in the pack.
 */
#include "convert/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

struct heads {
    uint32_t embedding, head; /* rows, or IG_NONE */
};

static struct heads find_heads(const struct ig_plan *p)
{
    struct heads h = {IG_NONE, IG_NONE};
    for (uint32_t i = 0; i < p->nrows; i++) {
        const struct ig_row *row = &p->rows[i];
        struct ig_place place;
        if (row->flags & IG_ROW_SHADOW) continue;
        ig_place(row->name, row->name_len, p->job->rules, &place);
        if (place.kind != 0 || place.suffix_len != 6) continue; /* "weight" */
        if (place.stage == 0 && h.embedding == IG_NONE) h.embedding = i;
        if (place.stage == 4 && h.head == IG_NONE) h.head = i;
    }
    return h;
}

static ingot_status refuse(const struct ig_plan *p, const char *name, const char *why,
                           ingot_error *e)
{
    const char *root = p->src ? p->src->root : p->parent->path;
    ig_fail(e, INGOT_ERR_INPUT, "%s: tensor \"%s\" is missing, and %s", root, name, why);
    return ig_at(e, root, name, strlen(name));
}

/* Only for classes whose layout is known; anything else may keep its tensors as it likes. */
static ingot_status check_present(const struct ig_plan *p, const struct heads *h, ingot_error *e)
{
    if (!ig_config_class(p->config)) return INGOT_OK;
    const bool tied = ig_config_tied(p->config) == 1;
    if (h->embedding == IG_NONE && h->head != IG_NONE && tied)
        return refuse(p, "model.embed_tokens.weight",
                      "tie_word_embeddings makes it the head as well", e);
    if (h->embedding != IG_NONE && h->head == IG_NONE && !tied)
        return refuse(p, "lm_head.weight",
                      json_object_get(p->config, "tie_word_embeddings")
                          ? "tie_word_embeddings is false"
                          : "this class does not tie it (no tie_word_embeddings)",
                      e);
    return INGOT_OK;
}

static ingot_status open_row(const struct ig_plan *p, uint32_t row, int *fd, bool *own,
                             const char **path, ingot_error *e)
{
    *own = p->src != NULL;
    if (!p->src) {
        *fd = p->parent->fd;
        *path = p->parent->path;
        return INGOT_OK;
    }
    const struct ig_src_file *f = &p->src->weights[p->from[row].input];
    *path = f->path;
    return ig_src_file_open(f, fd, e);
}

static ingot_status compare(const struct ig_plan *p, const struct heads *h, bool *equal,
                            ingot_error *e)
{
    int fd[2] = {-1, -1};
    bool own[2] = {false, false};
    const char *path[2] = {NULL, NULL};
    const uint32_t row[2] = {h->embedding, h->head};
    char *buf = malloc(2 * PIECE);
    ingot_status status = buf ? INGOT_OK : ig_no_memory(e);
    for (int i = 0; i < 2 && status == INGOT_OK; i++)
        status = open_row(p, row[i], &fd[i], &own[i], &path[i], e);
    const uint64_t bytes = p->from[h->head].bytes;
    *equal = true;
    for (uint64_t at = 0; at < bytes && *equal && status == INGOT_OK; at += PIECE) {
        const size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        for (int i = 0; i < 2 && status == INGOT_OK; i++)
            status = ig_pread(fd[i], path[i], buf + (size_t)i * PIECE, n,
                              p->from[row[i]].offset + at, e);
        *equal = status == INGOT_OK && memcmp(buf, buf + PIECE, n) == 0;
    }
    for (int i = 0; i < 2; i++)
        if (own[i] && fd[i] >= 0) close(fd[i]);
    free(buf);
    return status;
}

ingot_status ig_plan_heads(struct ig_plan *p, ingot_error *e)
{
    const struct heads h = find_heads(p);
    return_if_error(check_present(p, &h, e));
    if (h.embedding == IG_NONE || h.head == IG_NONE || ig_config_tied(p->config) != 1)
        return INGOT_OK;
    struct ig_row *a = &p->rows[h.embedding], *b = &p->rows[h.head];
    bool equal = a->dtype == b->dtype && p->from[h.embedding].dtype == p->from[h.head].dtype &&
                 a->rank == b->rank && a->bytes > 0 &&
                 memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
    if (equal) return_if_error(compare(p, &h, &equal, e));
    if (equal) {
        a->flags |= IG_ROW_TIED;
        b->flags |= IG_ROW_TIED;
    } else if (p->src) {
        ig_src_warn(p->src,
                    "the config ties \"%s\" to \"%s\", but their contents differ; both are kept",
                    ig_esc(b->name, b->name_len).s, ig_esc(a->name, a->name_len).s);
    }
    return INGOT_OK;
}
