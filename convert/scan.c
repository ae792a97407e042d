/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder, sorted into what they are for. */
#include "convert/source.h"
#include "convert/st_sniff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct scan {
    struct ig_src *s;
    struct ig_src_list all;
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
    return_if_error(ig_src_peek(f, 4 << 20, &text, &n, e));
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

static ingot_status find_index(struct ig_src *s, const struct ig_src_list *all, ingot_error *e)
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
static ingot_status refuse_no_weights(const struct ig_src *s, const struct ig_src_list *all,
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
static ingot_status sort_out(struct ig_src *s, struct ig_src_list *all, ingot_error *e)
{
    struct ig_src_list weights = {0}, blobs = {0}, sigs = {0};
    ingot_status status = INGOT_OK;
    for (size_t i = 0; i < all->n && status == INGOT_OK; i++) {
        struct ig_src_file *f = &all->files[i];
        struct ig_src_list *to = &blobs;
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
        if (status == INGOT_OK) status = ig_src_list_add(to, f, e);
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
    return_if_error(ig_src_walk(s, s->root, "", &c->all, c->e));
    ig_src_list_sort(&c->all);
    return_if_error(ig_src_refuse_unfinished(&c->all, c->e));
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
    return_if_error(ig_src_walk_file(path, base ? base + 1 : path, &c->all, c->e));
    return_if_error(ig_src_refuse_unfinished(&c->all, c->e));
    c->s->weights = c->all.files;
    c->s->nweights = 1;
    c->all = (struct ig_src_list){0};
    return INGOT_OK;
}

ingot_status ig_src_scan(struct ig_src *s, ingot_error *e)
{
    struct stat st;
    struct scan scan = {.s = s, .e = e};
    if (stat(s->root, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot open", s->root);
    const ingot_status status =
        S_ISDIR(st.st_mode) ? scan_folder(&scan) : scan_file(&scan, s->root);
    ig_src_list_free(&scan.all);
    return status;
}
