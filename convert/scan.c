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

struct list {
    struct ig_src_file *files;
    size_t n, cap;
};
struct scan {
    struct ig_src *s;
    struct list all;
    ingot_error *e;
};

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

static bool is_foreign(const char *name)
{
    static const char *const kinds[] = {".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ends_with(name, kinds[i])) return true;
    return false;
}

static ingot_status add(struct list *l, const struct ig_src_file *f, ingot_error *e)
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
            status = add(&c->all, &f, c->e);
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

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ig_src_file *)a)->name, ((const struct ig_src_file *)b)->name);
}

/* The text of a small file, to tell what it is; NULL for a larger one.  That a file cannot be read
 * does not make it another kind of file.  Caller frees. */
static ingot_status peek(const struct ig_src_file *f, size_t most, char **text, size_t *n,
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
static ingot_status refuse_unfinished(const struct list *all, ingot_error *e)
{
    char *names = NULL;
    size_t pointers = 0, partial = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct ig_src_file *f = &all->files[i];
        char oid[65], *text = NULL, *more = NULL;
        uint64_t size;
        size_t n = 0;
        const char *sep = names ? "; " : "";
        const ingot_status status = peek(f, 1024, &text, &n, e);
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

static ingot_status refuse_partial(void *ctx, const char *name, ingot_error *e)
{
    if (!ends_with(name, ".incomplete")) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_INPUT,
                   "%s/%s: unfinished download beside this snapshot; finish it or remove it",
                   (const char *)ctx, ig_esc(name, strlen(name)).s);
}

/* A hub cache keeps unfinished downloads beside its blobs, outside the snapshot. */
static ingot_status refuse_partial_blobs(const struct ig_src *s, ingot_error *e)
{
    if (!s->repo) return INGOT_OK;
    char *folder = ig_format("%s/../../blobs", s->root);
    if (!folder) return ig_no_memory(e);
    /* A snapshot that was copied out of its cache has none. */
    const ingot_status status = ig_each_entry(folder, true, refuse_partial, folder, e);
    free(folder);
    return status;
}

static ingot_status is_signature(const struct ig_src_file *f, bool *yes, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    json_t *v = NULL;
    *yes = false;
    if (!ends_with(f->name, ".sig") && !ends_with(f->name, ".json") &&
        !ends_with(f->name, ".sigstore"))
        return INGOT_OK;
    return_if_error(peek(f, 4 << 20, &text, &n, e));
    ingot_status status = INGOT_OK;
    if (text && memmem(text, n, "dev.sigstore.bundle", 19)) {
        status = ig_json_load(text, n, f->path, IG_JSON_LAST_WINS, &v, e);
        const char *type = json_string_value(json_object_get(v, "mediaType"));
        *yes = type && strncmp(type, "application/vnd.dev.sigstore.bundle", 35) == 0;
        if (status == INGOT_ERR_INPUT) status = INGOT_OK; /* some other text */
    }
    json_decref(v);
    free(text);
    return status;
}

static ingot_status find_index(struct ig_src *s, const struct list *all, ingot_error *e)
{
    static const char usual[] = "model.safetensors.index.json";
    const struct ig_src_file *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const struct ig_src_file *f = &all->files[i];
        if (strchr(f->name, '/') || !ends_with(f->name, ".safetensors.index.json")) continue;
        if (!found || strcmp(f->name, usual) == 0) found = f;
    }
    return found ? ig_src_read_index(s, found->path, e) : INGOT_OK;
}

static bool is_mapped(const struct ig_src *s, const char *name)
{
    const char *key;
    json_t *shard;
    json_object_foreach(s->index, key,
                        shard) if (strcmp(json_string_value(shard), name) == 0) return true;
    return false;
}

static void hold_not(struct ig_src *s, const struct ig_src_file *f)
{
    json_array_append_new(
        s->not_held, json_pack("{s:s,s:I}", "name", f->name, "size", (json_int_t)f->st.st_size));
    if (is_foreign(f->name) || ends_with(f->name, ".safetensors"))
        ig_src_warn(s, "%s: not used (%lld bytes)", ig_esc(f->name, strlen(f->name)).s,
                    (long long)f->st.st_size);
}

static bool is_weights(const struct ig_src *s, const struct ig_src_file *f)
{
    if (!ends_with(f->name, ".safetensors")) return false;
    return s->index ? is_mapped(s, f->name) : !strchr(f->name, '/');
}

/* Without a single usable file: say what is there instead. */
static ingot_status refuse_no_weights(const struct ig_src *s, const struct list *all,
                                      ingot_error *e)
{
    char *names = NULL;
    size_t shown = 0;
    for (; shown < all->n && shown < 12; shown++) {
        const char *name = all->files[shown].name;
        char *more = ig_format("%s%s%s", names ? names : "", names ? ", " : "",
                               ig_esc(name, strlen(name)).s);
        free(names), names = more;
    }
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: no *.safetensors file here (other formats are not read); found %s%s", s->root,
            names ? names : "nothing", all->n > shown ? ", ..." : "");
    free(names);
    return INGOT_ERR_INPUT;
}

/* Every file goes to exactly one place; what goes nowhere is freed. */
static ingot_status sort_out(struct ig_src *s, struct list *all, ingot_error *e)
{
    struct list weights = {0}, blobs = {0}, sigs = {0};
    ingot_status status = INGOT_OK;
    for (size_t i = 0; i < all->n && status == INGOT_OK; i++) {
        struct ig_src_file *f = &all->files[i];
        struct list *to = &blobs;
        bool sig = false;
        if (is_weights(s, f))
            to = &weights;
        else if (is_foreign(f->name) || (uint64_t)f->st.st_size > IG_BLOB_MOST)
            to = NULL;
        else
            status = is_signature(f, &sig, e);
        if (sig) to = &sigs;
        if (!to) {
            hold_not(s, f);
            continue;
        }
        if (status == INGOT_OK) status = add(to, f, e);
        if (status == INGOT_OK) f->name = f->path = NULL; /* moved */
    }
    s->weights = weights.files, s->nweights = (uint32_t)weights.n;
    s->blobs = blobs.files, s->nblobs = (uint32_t)blobs.n;
    s->sigs = sigs.files, s->nsigs = (uint32_t)sigs.n;
    return status;
}

static ingot_status scan_folder(struct scan *c)
{
    struct ig_src *s = c->s;
    return_if_error(walk(c, s->root, "", 0));
    if (c->all.n) qsort(c->all.files, c->all.n, sizeof *c->all.files, by_name);
    return_if_error(refuse_unfinished(&c->all, c->e));
    return_if_error(refuse_partial_blobs(s, c->e));
    return_if_error(find_index(s, &c->all, c->e));
    size_t usable = s->index != NULL; /* what an index names and is not there is told by name */
    for (size_t i = 0; i < c->all.n; i++) usable += is_weights(s, &c->all.files[i]);
    if (!usable) return refuse_no_weights(s, &c->all, c->e);
    return_if_error(sort_out(s, &c->all, c->e));
    return ig_src_check_shards(s, c->e);
}

static ingot_status scan_file(struct scan *c, const char *path)
{
    const char *base = strrchr(path, '/');
    return_if_error(add(&c->all, &(struct ig_src_file){0}, c->e));
    struct ig_src_file *f = &c->all.files[0]; /* freed with the list, whatever comes */
    f->path = strdup(path);
    f->name = strdup(base ? base + 1 : path);
    if (!f->path || !f->name) return ig_no_memory(c->e);
    return_if_error(resolve_link(f, c->e));
    if (!ig_utf8_valid(f->name, strlen(f->name)))
        return ig_fail(c->e, INGOT_ERR_INPUT, "%s: file name is not UTF-8",
                       ig_esc(path, strlen(path)).s);
    return_if_error(refuse_unfinished(&c->all, c->e));
    c->s->weights = c->all.files;
    c->s->nweights = 1;
    c->all = (struct list){0};
    return INGOT_OK;
}

ingot_status ig_src_scan(struct ig_src *s, ingot_error *e)
{
    struct stat st;
    struct scan scan = {.s = s, .e = e};
    if (stat(s->root, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot open", s->root);
    const ingot_status status =
        S_ISDIR(st.st_mode) ? scan_folder(&scan) : scan_file(&scan, s->root);
    for (size_t i = 0; i < scan.all.n; i++)
        free(scan.all.files[i].name), free(scan.all.files[i].path);
    free(scan.all.files);
    return status;
}
