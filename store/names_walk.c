/* SPDX-License-Identifier: Apache-2.0 */
/* All names of the store: listed, compared with a new one, searched for the nearest. */
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

struct walk {
    const struct ig_store *store;
    struct ig_name *names;
    size_t count, cap;
};

static ingot_status add(struct walk *w, const char *path, const char *name, ingot_error *e)
{
    if (w->count == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 64;
        struct ig_name *more = reallocarray(w->names, cap, sizeof *more);
        if (!more) return ig_no_memory(e);
        w->names = more;
        w->cap = cap;
    }
    struct ig_name *n = &w->names[w->count];
    ingot_error why;
    *n = (struct ig_name){0};
    const ingot_status status = ig_name_parse(path, name, n->digest, &n->has_digest, &why);
    if (status == INGOT_ERR_NOT_FOUND) return INGOT_OK; /* removed since it was listed */
    if (status == INGOT_ERR_NO_MEMORY) return ig_no_memory(e);
    n->name = strdup(name);
    n->status = status;
    if (status != INGOT_OK) n->problem = strdup(why.message);
    if (!n->name || (status != INGOT_OK && !n->problem)) {
        free(n->name);
        free(n->problem);
        return ig_no_memory(e);
    }
    w->count++;
    return INGOT_OK;
}

static ingot_status walk_dir(struct walk *w, const char *prefix, unsigned depth, ingot_error *e);

static ingot_status visit(struct walk *w, const char *prefix, const char *entry, unsigned depth,
                          ingot_error *e)
{
    struct stat st;
    bool there;
    ingot_status status;
    /* What no name can be called is not ours: temporaries, lost+found, an editor's backups. */
    if (!ig_name_component(entry, strlen(entry))) return INGOT_OK;
    char *name = ig_format("%s%s%s", prefix, prefix[0] ? "/" : "", entry);
    char *path = name ? ig_store_path(w->store, "names", name) : NULL;
    status = path ? ig_stat(path, &st, &there, e) : ig_no_memory(e);
    if (status != INGOT_OK || !there) goto out; /* a link to nowhere, or removed meanwhile */
    if (S_ISDIR(st.st_mode) && depth < IG_NAME_DEPTH)
        status = walk_dir(w, name, depth + 1, e);
    else if (!S_ISDIR(st.st_mode) && ig_name_check(name, NULL) == INGOT_OK)
        status = add(w, path, name, e);
out:
    free(path);
    free(name);
    return status;
}

struct folder {
    struct walk *walk;
    const char *prefix;
    unsigned depth;
};

static ingot_status visit_entry(void *ctx, const char *entry, ingot_error *e)
{
    const struct folder *f = ctx;
    return visit(f->walk, f->prefix, entry, f->depth, e);
}

static ingot_status walk_dir(struct walk *w, const char *prefix, unsigned depth, ingot_error *e)
{
    struct folder f = {.walk = w, .prefix = prefix, .depth = depth};
    char *path = ig_store_path(w->store, "names", prefix[0] ? prefix : NULL);
    if (!path) return ig_no_memory(e);
    const ingot_status status = ig_each_entry(path, true, visit_entry, &f, e);
    free(path);
    return status;
}

static int natural(const void *a, const void *b)
{
    const struct ig_name *na = a, *nb = b;
    return ig_natural_cmp(na->name, strlen(na->name), nb->name, strlen(nb->name));
}

void ig_names_free(struct ig_name *names, size_t n)
{
    for (size_t i = 0; names && i < n; i++) {
        free(names[i].name);
        free(names[i].problem);
    }
    free(names);
}

ingot_status ig_names_list(const struct ig_store *s, struct ig_name **out, size_t *n,
                           ingot_error *e)
{
    struct walk w = {.store = s};
    *out = NULL;
    *n = 0;
    const ingot_status status = walk_dir(&w, "", 1, e);
    if (status != INGOT_OK) {
        ig_names_free(w.names, w.count);
        return status;
    }
    if (w.count) qsort(w.names, w.count, sizeof *w.names, natural);
    *out = w.names;
    *n = w.count;
    return INGOT_OK;
}

/* a is b, or a folder in which b lies, but for case. */
static bool folds_into(const char *a, const char *b)
{
    const size_t n = strlen(a);
    return strncasecmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/');
}

ingot_status ig_names_clash(const struct ig_store *s, const char *name, ingot_error *e)
{
    struct ig_name *names;
    size_t n;
    return_if_error(ig_names_list(s, &names, &n, e));
    ingot_status status = INGOT_OK;
    for (size_t i = 0; i < n && status == INGOT_OK; i++) {
        const char *other = names[i].name;
        if (strcmp(name, other) == 0) continue;
        const bool inside = folds_into(other, name), above = folds_into(name, other);
        if (inside && above)
            status = ig_fail(e, INGOT_ERR_EXISTS,
                             "the name \"%s\" differs from \"%s\" only in case", name, other);
        else if (inside || above)
            status = ig_fail(e, INGOT_ERR_EXISTS,
                             "the name \"%s\" cannot stand beside \"%s\": one would be the folder "
                             "of the other",
                             name, other);
    }
    ig_names_free(names, n);
    return status;
}

/* Edit distance without regard to case; both at most IG_NAME_MOST bytes. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[IG_NAME_MOST + 1];
    const size_t nb = strlen(b);
    for (size_t j = 0; j <= nb; j++) row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            const bool same = strncasecmp(&a[i - 1], &b[j - 1], 1) == 0;
            const unsigned swap = diagonal + !same;
            const unsigned step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = swap < step ? swap : step;
        }
    }
    return row[nb];
}

static unsigned farness(const char *wanted, const char *name)
{
    const char *last = strrchr(name, '/');
    const unsigned whole = distance(wanted, name);
    /* Without its organisation a name is as good as a typing error away. */
    if (!last || strchr(wanted, '/')) return whole;
    const unsigned part = distance(wanted, last + 1) + 1;
    return part < whole ? part : whole;
}

char *ig_names_nearest(const struct ig_store *s, const char *wanted)
{
    struct ig_name *names;
    size_t n, best = SIZE_MAX;
    unsigned least = 2 + (unsigned)(strlen(wanted) / 4); /* what is farther is no typing error */
    if (strlen(wanted) > IG_NAME_MOST || ig_names_list(s, &names, &n, NULL) != INGOT_OK)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const unsigned d = farness(wanted, names[i].name);
        if (d < least) {
            least = d;
            best = i;
        }
    }
    char *found = best == SIZE_MAX ? NULL : strdup(names[best].name);
    ig_names_free(names, n);
    return found;
}
