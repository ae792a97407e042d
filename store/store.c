/* SPDX-License-Identifier: Apache-2.0 */
/* Where the store is, the paths in it, and the list of its packs. */
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACK_SUFFIX ".ingot"

static const char *setting(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

static ingot_status default_root(char **root, ingot_error *e)
{
    const char *own = setting("INGOT_STORE"), *data = setting("XDG_DATA_HOME");
    const char *home = setting("HOME");
    if (own)
        *root = strdup(own);
    else if (data && data[0] == '/') /* the XDG rules: a relative one is ignored */
        *root = ig_format("%s/ingot", data);
    else if (home)
        *root = ig_format("%s/.local/share/ingot", home);
    else
        return ig_fail(e, INGOT_ERR_USAGE,
                       "no store: none of INGOT_STORE, XDG_DATA_HOME and HOME is set");
    return *root ? INGOT_OK : ig_no_memory(e);
}

static ingot_status make_folder(const struct ig_store *s, const char *folder, ingot_error *e)
{
    char *path = ig_store_path(s, folder, NULL);
    const ingot_status status = path ? ig_mkdirs(path, e) : ig_no_memory(e);
    free(path);
    return status;
}

ingot_status ig_store_open(const char *root, bool create, struct ig_store *s, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    struct stat st;
    *s = (struct ig_store){0};
    if (root && !root[0]) return ig_fail(e, INGOT_ERR_USAGE, "the store's folder has no name");
    if (root)
        status = (s->root = strdup(root)) ? INGOT_OK : ig_no_memory(e);
    else
        status = default_root(&s->root, e);
    if (status != INGOT_OK) goto out;
    if (stat(s->root, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            status = ig_fail(e, INGOT_ERR_USAGE, "%s: not a folder, so not a store",
                             ig_esc(s->root, strlen(s->root)).s);
    } else if (errno != ENOENT) {
        status =
            ig_fail_sys(e, errno, "%s: cannot open the store", ig_esc(s->root, strlen(s->root)).s);
    }
    if (status != INGOT_OK || !create) goto out;
    if ((status = make_folder(s, "packs", e)) != INGOT_OK) goto out;
    status = make_folder(s, "names", e);
out:
    if (status != INGOT_OK) ig_store_close(s);
    return status;
}

void ig_store_close(struct ig_store *s)
{
    free(s->root);
    s->root = NULL;
}

char *ig_store_path(const struct ig_store *s, const char *folder, const char *file)
{
    return ig_format("%s%s%s%s%s", s->root, folder ? "/" : "", folder ? folder : "",
                     file ? "/" : "", file ? file : "");
}

char *ig_store_pack_path(const struct ig_store *s, const uint8_t digest[IG_HASH])
{
    char hex[2 * IG_HASH + 1];
    ig_hex(hex, digest, IG_HASH);
    return ig_format("%s/packs/%s" PACK_SUFFIX, s->root, hex);
}

static int by_digest(const void *a, const void *b)
{
    const struct ig_store_file *fa = a, *fb = b;
    return memcmp(fa->digest, fb->digest, IG_HASH);
}

struct listing {
    const char *dir;
    struct ig_store_file *files;
    size_t n, cap;
};

enum ig_beside ig_store_beside(const char *name, uint8_t digest[IG_HASH])
{
    static const char *const suffixes[] = {PACK_SUFFIX, ".tree", ".origin.json", ".sigs", ".stamp"};
    if (strncmp(name, IG_TEMP_PREFIX, strlen(IG_TEMP_PREFIX)) == 0) return IG_BESIDE_TEMP;
    if (strlen(name) <= 2 * IG_HASH || !ig_unhex(digest, IG_HASH, name)) return IG_BESIDE_NONE;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(name + 2 * IG_HASH, suffixes[i]) == 0)
            return i ? IG_BESIDE_OTHER : IG_BESIDE_PACK;
    return IG_BESIDE_NONE;
}

/* Fill f when the entry is a pack file; files that vanish meanwhile are none. */
static ingot_status pack_entry(const char *dir, const char *name, struct ig_store_file *f,
                               bool *is_pack, ingot_error *e)
{
    struct stat st;
    *is_pack = false;
    if (ig_store_beside(name, f->digest) != IG_BESIDE_PACK) return INGOT_OK;
    char *path = ig_format("%s/%s", dir, name);
    const ingot_status status = path ? ig_stat(path, &st, is_pack, e) : ig_no_memory(e);
    free(path);
    *is_pack = *is_pack && S_ISREG(st.st_mode);
    if (status != INGOT_OK || !*is_pack) return status;
    f->size = (uint64_t)st.st_size;
    f->sec = st.st_mtim.tv_sec;
    f->nsec = (uint32_t)st.st_mtim.tv_nsec;
    return INGOT_OK;
}

static ingot_status add_entry(void *ctx, const char *name, ingot_error *e)
{
    struct listing *l = ctx;
    struct ig_store_file f = {0};
    bool is_pack;
    return_if_error(pack_entry(l->dir, name, &f, &is_pack, e));
    if (!is_pack) return INGOT_OK;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 64;
        struct ig_store_file *more = reallocarray(l->files, cap, sizeof f);
        if (!more) return ig_no_memory(e);
        l->files = more;
        l->cap = cap;
    }
    l->files[l->n++] = f;
    return INGOT_OK;
}

ingot_status ig_store_packs(const struct ig_store *s, struct ig_store_file **out, size_t *n,
                            ingot_error *e)
{
    struct listing l = {0};
    char *path = ig_store_path(s, "packs", NULL);
    *out = NULL;
    *n = 0;
    if (!path) return ig_no_memory(e);
    l.dir = path;
    const ingot_status status = ig_each_entry(path, true, add_entry, &l, e);
    free(path);
    if (status != INGOT_OK) {
        free(l.files);
        return status;
    }
    if (l.n) qsort(l.files, l.n, sizeof *l.files, by_digest);
    *out = l.files;
    *n = l.n;
    return INGOT_OK;
}
