/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a sharded checkpoint (weight_map: tensor -> file) and, where there is none,
 * the numbers in the file names.  Paths are judged before anything is opened.
 */
#include "convert/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MOST ((size_t)1 << 30)

static ingot_status check_map(const json_t *map, const char *path, ingot_error *e)
{
    const char *tensor;
    size_t len;
    json_t *shard;
    if (!json_is_object(map))
        return ig_fail(e, INGOT_ERR_INPUT, "%s: weight_map is missing or no object", path);
    json_object_keylen_foreach((json_t *)map, tensor, len, shard)
    {
        const char *name = json_string_value(shard);
        const char *fault = NULL;
        if (memchr(tensor, 0, len)) /* from here on names are C strings */
            fault = "has a name with a NUL";
        else if (!name)
            fault = "is not a string";
        else if (strlen(name) != json_string_length(shard))
            fault = "contains a NUL";
        else if (!ig_safe_path(name, strlen(name)))
            fault = "is not a file name inside the folder";
        if (!fault) continue;
        ig_fail(e, INGOT_ERR_INPUT, "%s: the file of tensor \"%s\" %s: \"%s\"", path,
                ig_esc(tensor, len).s, fault, name ? ig_esc(name, strlen(name)).s : "");
        return ig_at(e, path, tensor, len);
    }
    return INGOT_OK;
}

ingot_status ig_src_read_index(struct ig_src *s, const char *path, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    json_t *root = NULL;
    return_if_error(ig_read_file(path, INDEX_MOST, &text, &n, e));
    ingot_status status = ig_json_load(text, n, path, IG_JSON_BOM, &root, e);
    free(text);
    if (status != INGOT_OK) return status;
    const json_t *map = json_object_get(root, "weight_map");
    status = check_map(map, path, e);
    if (status == INGOT_OK) {
        s->index = json_incref((json_t *)map);
        s->total_size =
            json_incref(json_object_get(json_object_get(root, "metadata"), "total_size"));
    }
    json_decref(root);
    return status;
}

static int name_cmp(const void *key, const void *file)
{
    return strcmp(key, ((const struct ig_src_file *)file)->name);
}

static bool have(const struct ig_src *s, const char *name)
{
    return s->nweights && bsearch(name, s->weights, s->nweights, sizeof *s->weights, name_cmp);
}

/* Missing files, each once, with the first tensor it would hold: {file: tensor}.  An index can name
 * any number of them, a message holds a few. */
static ingot_status refuse_missing(const struct ig_src *s, json_t *missing, size_t expected,
                                   ingot_error *e)
{
    char *list = NULL;
    const char *file;
    json_t *tensor;
    json_object_foreach(missing, file, tensor)
    {
        if (list && strlen(list) > sizeof e->message) break;
        const char *t = json_string_value(tensor);
        char *more = ig_format("%s%s%s%s%s%s", list ? list : "", list ? ", " : "",
                               ig_esc(file, strlen(file)).s, t ? " (first tensor \"" : "",
                               t ? ig_esc(t, strlen(t)).s : "", t ? "\")" : "");
        free(list), list = more;
    }
    ig_fail(e, INGOT_ERR_INPUT, "%s: %zu of %zu shards found; missing: %s", s->root,
            expected - json_object_size(missing), expected, list ? list : "");
    free(list);
    return INGOT_ERR_INPUT;
}

static ingot_status check_indexed(const struct ig_src *s, ingot_error *e)
{
    json_t *missing = json_object(), *files = json_object();
    const char *tensor;
    json_t *shard;
    ingot_status status = INGOT_OK;
    if (!missing || !files) {
        status = ig_no_memory(e);
        goto out;
    }
    json_object_foreach(s->index, tensor, shard)
    {
        const char *name = json_string_value(shard);
        if (json_object_get(files, name)) continue;
        json_object_set_new_nocheck(files, name, json_true());
        if (!have(s, name)) json_object_set_new_nocheck(missing, name, json_string_nocheck(tensor));
    }
    if (json_object_size(missing)) status = refuse_missing(s, missing, json_object_size(files), e);
out:
    json_decref(missing);
    json_decref(files);
    return status;
}

/* "PREFIX-00002-of-00004.safetensors" or "PREFIX-00002.safetensors". */
struct number {
    size_t prefix, digits; /* lengths */
    unsigned long n, of;   /* of = 0: not told */
};

static bool numbered(const char *name, struct number *out)
{
    static const char ext[] = ".safetensors";
    const size_t len = strlen(name);
    if (len <= sizeof ext - 1 || strcmp(name + len - (sizeof ext - 1), ext) != 0) return false;
    size_t end = len - (sizeof ext - 1), start = end;
    while (start > 0 && isdigit((unsigned char)name[start - 1])) start--;
    size_t digits = end - start;
    if (digits < 4 || digits > 9 || start == 0) return false;
    out->of = 0;
    if (start > 4 && strncmp(name + start - 4, "-of-", 4) == 0) {
        out->of = strtoul(name + start, NULL, 10);
        end = start - 4;
        for (start = end; start > 0 && isdigit((unsigned char)name[start - 1]);) start--;
        digits = end - start;
        if (digits < 4 || digits > 9 || start == 0) return false;
    }
    if (name[start - 1] != '-') return false;
    out->n = strtoul(name + start, NULL, 10);
    out->prefix = start;
    out->digits = digits;
    return true;
}

static ingot_status check_series(const struct ig_src *s, const char *name,
                                 const struct number *first, ingot_error *e)
{
    /* Numbers run from 1, or from 0 where a file 0 is there. */
    unsigned long low = 1, high = first->of;
    for (uint32_t i = 0; i < s->nweights; i++) {
        struct number k;
        const char *other = s->weights[i].name;
        if (!numbered(other, &k) || k.prefix != first->prefix || k.of != first->of ||
            strncmp(other, name, k.prefix) != 0)
            continue;
        if (k.n == 0) low = 0;
        if (!first->of && k.n > high) high = k.n;
    }
    if (first->of && low == 0) high = first->of - 1;
    json_t *missing = json_object();
    for (unsigned long n = low; missing && n <= high && json_object_size(missing) < 20; n++) {
        char *file = first->of
                         ? ig_format("%.*s%0*lu-of-%0*lu.safetensors", (int)first->prefix, name,
                                     (int)first->digits, n, (int)first->digits, first->of)
                         : ig_format("%.*s%0*lu.safetensors", (int)first->prefix, name,
                                     (int)first->digits, n);
        if (file && !have(s, file)) json_object_set_new_nocheck(missing, file, json_null());
        free(file);
    }
    ingot_status status = missing ? INGOT_OK : ig_no_memory(e);
    if (missing && json_object_size(missing))
        status = refuse_missing(s, missing, high - low + 1, e);
    json_decref(missing);
    return status;
}

ingot_status ig_src_check_shards(struct ig_src *s, ingot_error *e)
{
    if (s->index) return check_indexed(s, e);
    const char *last = NULL; /* files of one series stand side by side: look at each once */
    struct number k, of_last = {0};
    for (uint32_t i = 0; i < s->nweights; i++) {
        const char *name = s->weights[i].name;
        if (!numbered(name, &k)) continue;
        const bool same = last && k.prefix == of_last.prefix && k.of == of_last.of &&
                          strncmp(name, last, k.prefix) == 0;
        if (!same) return_if_error(check_series(s, name, &k, e));
        last = name;
        of_last = k;
    }
    return INGOT_OK;
}
