/* SPDX-License-Identifier: Apache-2.0 */
/* Signature bundles lie beside their pack, in <pack without .ingot>.sigs/: to sign changes no pack.
 */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *ig_sigs_path(const char *pack, const char *name)
{
    const size_t n = strlen(pack);
    const bool suffix = n > 6 && strcmp(pack + n - 6, ".ingot") == 0;
    return ig_format("%.*s.sigs%s%s", (int)(suffix ? n - 6 : n), pack, name ? "/" : "",
                     name ? name : "");
}

struct list {
    const char *dir;
    char **names;
    size_t n, cap;
};

static ingot_status take(void *ctx, const char *name, ingot_error *e)
{
    struct list *l = ctx;
    struct stat st;
    bool there;
    if (name[0] == '.') return INGOT_OK; /* one that is being written */
    char *path = ig_format("%s/%s", l->dir, name);
    const ingot_status status = path ? ig_lstat(path, &st, &there, e) : ig_no_memory(e);
    free(path);
    if (status != INGOT_OK || !there || !S_ISREG(st.st_mode)) return status;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 8;
        char **grown = realloc(l->names, cap * sizeof *grown);
        if (!grown) return ig_no_memory(e);
        l->names = grown;
        l->cap = cap;
    }
    return (l->names[l->n] = strdup(name)) ? (l->n++, INGOT_OK) : ig_no_memory(e);
}

static int natural(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return ig_natural_cmp(*a, strlen(*a), *b, strlen(*b));
}

ingot_status ig_sigs_list(const char *pack, char ***names, size_t *n, ingot_error *e)
{
    char *dir = ig_sigs_path(pack, NULL);
    struct list l = {.dir = dir};
    ingot_status status = dir ? ig_each_entry(dir, true, take, &l, e) : ig_no_memory(e);
    free(dir);
    if (status == INGOT_OK && l.n) qsort(l.names, l.n, sizeof *l.names, natural);
    if (status != INGOT_OK) ig_sigs_free(l.names, l.n);
    *names = status == INGOT_OK ? l.names : NULL;
    *n = status == INGOT_OK ? l.n : 0;
    return status;
}

void ig_sigs_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

ingot_status ig_sigs_add(const char *pack, const char *name, const char *text, size_t n,
                         ingot_error *e)
{
    char *dir = ig_sigs_path(pack, NULL), *path = ig_sigs_path(pack, name);
    char *hidden = dir ? ig_format("%s/.%s.%ld", dir, name, (long)getpid()) : NULL;
    ingot_status status = path && hidden ? ig_mkdirs(dir, e) : ig_no_memory(e);
    if (status == INGOT_OK) {
        (void)unlink(hidden); /* of a process that died and had our number */
        status = ig_write_new(hidden, 0444, text, n, e);
        if (status == INGOT_OK && rename(hidden, path) != 0)
            status = ig_fail_sys(e, errno, "%s: cannot rename %s to it", path, hidden);
        if (status != INGOT_OK) (void)unlink(hidden);
    }
    if (status == INGOT_OK) status = ig_fsync_dir(dir, e);
    free(hidden), free(path), free(dir);
    return status;
}
