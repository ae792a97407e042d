/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a folder.  Links are followed for files only (a hub snapshot is made of
 * them), never for folders, so that nothing is visited twice and nothing loops.
 */
#include "convert/source.h"
#include "convert/st_sniff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEEPEST 64

struct scan {
    struct ig_src *s;
    struct ig_src_list *all;
    ingot_error *e;
};

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

ingot_status ig_src_list_add(struct ig_src_list *l, const struct ig_src_file *f, ingot_error *e)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 64;
        struct ig_src_file *grown = realloc(l->files, cap * sizeof *grown);
        if (!grown) return ig_no_memory(e);
        l->files = grown;
        l->cap = cap;
    }
    l->files[l->n++] = *f;
    return INGOT_OK;
}

/* The end of a link chain; its last component may be the SHA-256 that a hub cache gave it. */
static ingot_status resolve_link(struct ig_src_file *f, ingot_error *e)
{
    char target[512];
    const ssize_t n = readlink(f->path, target, sizeof target);
    if (stat(f->path, &f->st) != 0) {
        if (!ig_leads_nowhere(errno))
            return ig_fail_sys(e, errno, "%s: cannot look at its target",
                               ig_esc(f->path, strlen(f->path)).s);
        const char *why = errno == ELOOP ? "symlink loop" : "symlink, target missing";
        ig_fail(e, INGOT_ERR_INPUT, "%s: %s: %s", ig_esc(f->path, strlen(f->path)).s, why,
                ig_esc(target, n < 0 ? 0 : (size_t)n).s);
        return ig_at(e, f->path, NULL, 0);
    }
    char *real = realpath(f->path, NULL);
    if (!real) return ig_fail_sys(e, errno, "%s: cannot resolve", f->path);
    const char *base = strrchr(real, '/') + 1;
    f->has_oid = strlen(base) == 2 * IG_HASH && ig_unhex(f->oid, IG_HASH, base);
    free(real);
    return INGOT_OK;
}

static ingot_status walk(struct scan *c, const char *folder, const char *prefix, int depth);

static ingot_status visit_folder(struct scan *c, const char *path, const char *name,
                                 const char *base, const struct stat *st, int depth)
{
    if (strcmp(base, ".git") == 0 || strcmp(base, ".cache") == 0) return INGOT_OK;
    if (st->st_dev == c->s->skip.st_dev && st->st_ino == c->s->skip.st_ino) return INGOT_OK;
    char *prefix = ig_format("%s/", name);
    if (!prefix) return ig_no_memory(c->e);
    const ingot_status status = walk(c, path, prefix, depth + 1);
    free(prefix);
    return status;
}

static ingot_status visit(struct scan *c, const char *folder, const char *prefix, const char *base,
                          int depth)
{
    struct stat st;
    bool keep = false;
    struct ig_src_file f = {.path = ig_format("%s/%s", folder, base),
                            .name = ig_format("%s%s", prefix, base)};
    ingot_status status = INGOT_OK;
    if (!f.path || !f.name) {
        status = ig_no_memory(c->e);
    } else if (!ig_utf8_valid(base, strlen(base))) {
        status = ig_fail(c->e, INGOT_ERR_INPUT, "%s: file name is not UTF-8",
                         ig_esc(f.path, strlen(f.path)).s);
    } else if (lstat(f.path, &st) != 0) {
        status = ig_fail_sys(c->e, errno, "%s: cannot stat", f.path);
    } else if (S_ISDIR(st.st_mode)) {
        status = visit_folder(c, f.path, f.name, base, &st, depth);
    } else {
        f.st = st;
        if (S_ISLNK(st.st_mode)) status = resolve_link(&f, c->e);
        if (status == INGOT_OK && S_ISREG(f.st.st_mode)) {
            status = ig_src_list_add(c->all, &f, c->e);
            keep = status == INGOT_OK;
        } else if (status == INGOT_OK && ends_with(base, ".safetensors")) {
            status = ig_fail(c->e, INGOT_ERR_INPUT, "%s: not a regular file",
                             ig_esc(f.path, strlen(f.path)).s);
        } else if (status == INGOT_OK) {
            ig_src_warn(c->s, "%s: neither a file nor a folder, left out",
                        ig_esc(f.name, strlen(f.name)).s);
        }
    }
    if (!keep) free(f.path), free(f.name);
    return status;
}

struct folder { /* being walked */
    struct scan *c;
    const char *path, *prefix;
    int depth;
};

static ingot_status visit_entry(void *ctx, const char *base, ingot_error *e)
{
    const struct folder *f = ctx;
    (void)e; /* the scan has it */
    return visit(f->c, f->path, f->prefix, base, f->depth);
}

static ingot_status walk(struct scan *c, const char *folder, const char *prefix, int depth)
{
    struct folder f = {.c = c, .path = folder, .prefix = prefix, .depth = depth};
    if (depth > DEEPEST)
        return ig_fail(c->e, INGOT_ERR_INPUT, "%s: folders nest more than %d deep", folder,
                       DEEPEST);
    return ig_each_entry(folder, false, visit_entry, &f, c->e);
}

ingot_status ig_src_walk(struct ig_src *s, const char *folder, const char *prefix,
                         struct ig_src_list *out, ingot_error *e)
{
    struct scan c = {.s = s, .all = out, .e = e};
    return walk(&c, folder, prefix, 0);
}

ingot_status ig_src_walk_file(const char *path, const char *name, struct ig_src_list *out,
                              ingot_error *e)
{
    return_if_error(ig_src_list_add(out, &(struct ig_src_file){0}, e));
    struct ig_src_file *f = &out->files[out->n - 1]; /* freed with the list, whatever comes */
    f->path = strdup(path);
    f->name = strdup(name);
    if (!f->path || !f->name) return ig_no_memory(e);
    return_if_error(resolve_link(f, e));
    if (ig_utf8_valid(name, strlen(name))) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_INPUT, "%s: file name is not UTF-8", ig_esc(path, strlen(path)).s);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ig_src_file *)a)->name, ((const struct ig_src_file *)b)->name);
}

void ig_src_list_sort(struct ig_src_list *l)
{
    if (l->n) qsort(l->files, l->n, sizeof *l->files, by_name);
}

void ig_src_list_free(struct ig_src_list *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->files[i].name), free(l->files[i].path);
    free(l->files);
    *l = (struct ig_src_list){0};
}

/* The text of a small file, to tell what it is; NULL for a larger one.  That a file cannot be read
 * does not make it another kind of file.  Caller frees. */
ingot_status ig_src_peek(const struct ig_src_file *f, size_t most, char **text, size_t *n,
                         ingot_error *e)
{
    *text = NULL;
    *n = 0;
    if ((uint64_t)f->st.st_size > most) return INGOT_OK;
    const ingot_status status = ig_read_file(f->path, most, text, n, e);
    return status == INGOT_OK ? status : ig_at(e, f->path, NULL, 0);
}

/* Git-LFS pointers and unfinished downloads mean that the folder is not what it seems; all
 * of them are named in one run. */
ingot_status ig_src_refuse_unfinished(const struct ig_src_list *all, ingot_error *e)
{
    char *names = NULL;
    size_t pointers = 0, partial = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct ig_src_file *f = &all->files[i];
        char oid[65], *text = NULL, *more = NULL;
        uint64_t size;
        size_t n = 0;
        const char *sep = names ? "; " : "";
        const ingot_status status = ig_src_peek(f, 1024, &text, &n, e);
        if (status != INGOT_OK) {
            free(names);
            return status;
        }
        if (ends_with(f->name, ".incomplete")) {
            more = ig_format("%s%s%s (unfinished download)", names ? names : "", sep,
                             ig_esc(f->name, strlen(f->name)).s);
            partial++;
        } else if (text && ig_lfs_pointer(text, n, oid, &size)) {
            more = ig_format("%s%s%s (oid sha256:%s, %llu bytes)", names ? names : "", sep,
                             ig_esc(f->name, strlen(f->name)).s, oid, (unsigned long long)size);
            pointers++;
        }
        free(text);
        if (more) free(names), names = more;
    }
    if (pointers + partial == 0) return INGOT_OK;
    ig_fail(e, INGOT_ERR_INPUT,
            "%zu Git-LFS pointers and %zu unfinished downloads in place of files: %s", pointers,
            partial, names ? names : "");
    free(names);
    return INGOT_ERR_INPUT;
}
