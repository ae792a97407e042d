/* SPDX-License-Identifier: Apache-2.0 */
/* What a signature is over: an in-toto statement that lists the files of a model. */
#include "verify/fields.h"
#include "verify/sign.h"

#include <stdlib.h>
#include <string.h>

#define PREDICATE_TYPE "https://model_signing/signature/v1.0"
#define PREDICATE_V02  "https://model_signing/Digests/v0.1"
#define PACK_PREFIX    "fsverity-sha256:"

int ig_path_cmp(const char *a, const char *b)
{
    for (;;) {
        const size_t na = strcspn(a, "/"), nb = strcspn(b, "/");
        const int order = ig_bytes_cmp(a, na, b, nb);
        if (order) return order;
        if (!a[na] || !b[nb]) return (a[na] != '\0') - (b[nb] != '\0');
        a += na + 1;
        b += nb + 1;
    }
}

bool ig_path_within(const char *name, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(name, folder, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

/* ---- reading ---- */

static ingot_status unsupported(const struct ig_at *at, const char *key, const char *found,
                                const char *known, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: %s.%s: \"%s\" is not checked here, only \"%s\" is",
            ig_esc(at->path, strlen(at->path)).s, at->where, key, ig_esc(found, strlen(found)).s,
            known);
    return ig_at(e, at->path, NULL, 0);
}

static ingot_status only_known(const struct ig_at *at, const json_t *o, const char *key,
                               const char *known, ingot_error *e)
{
    const char *text;
    return_if_error(ig_field_text(at, o, key, &text, e));
    return strcmp(text, known) == 0 ? INGOT_OK : unsupported(at, key, text, known, e);
}

static ingot_status parse_ignored(const char *path, const json_t *list, struct ig_statement *s,
                                  ingot_error *e)
{
    const struct ig_at at = {path, "predicate.serialization.ignore_paths"};
    size_t i;
    json_t *v;
    s->ignored = ig_array(json_array_size(list), sizeof *s->ignored);
    if (!s->ignored) return ig_no_memory(e);
    json_array_foreach(list, i, v)
    {
        const char *text = json_string_value(v);
        if (!text || strlen(text) != json_string_length(v) || !*text)
            return ig_field_bad(&at, "", e, "expected paths");
        s->ignored[s->nignored++] = text;
    }
    return INGOT_OK;
}

static ingot_status parse_serialization(const char *path, const json_t *o, struct ig_statement *s,
                                        ingot_error *e)
{
    const struct ig_at at = {path, "predicate.serialization"};
    json_t *links, *list;
    return_if_error(only_known(&at, o, "method", "files", e));
    return_if_error(only_known(&at, o, "hash_type", "sha256", e));
    return_if_error(ig_field_maybe(&at, o, "allow_symlinks", JSON_TRUE, &links, e));
    return_if_error(ig_field_maybe(&at, o, "ignore_paths", JSON_ARRAY, &list, e));
    return list ? parse_ignored(path, list, s, e) : INGOT_OK;
}

static ingot_status parse_resource(const char *path, const json_t *o, bool alone,
                                   struct ig_resource *out, ingot_error *e)
{
    const struct ig_at at = {path, "predicate.resources"};
    if (!json_is_object(o)) return ig_field_bad(&at, "", e, "expected objects");
    return_if_error(ig_field_text(&at, o, "name", &out->name, e));
    if (!(alone && strcmp(out->name, ".") == 0) && !ig_safe_path(out->name, strlen(out->name)))
        return ig_field_bad(&at, "name", e, "\"%s\", expected a relative path without \"..\"",
                            ig_esc(out->name, strlen(out->name)).s);
    return_if_error(only_known(&at, o, "algorithm", "sha256", e));
    return ig_field_digest(&at, o, "digest", "", out->sha256, e);
}

static int by_name(const void *x, const void *y)
{
    const struct ig_resource *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static ingot_status refuse_twice(const char *path, const struct ig_statement *s, ingot_error *e)
{
    const struct ig_at at = {path, "predicate.resources"};
    struct ig_resource *sorted = ig_array(s->nresources, sizeof *sorted);
    ingot_status status = INGOT_OK;
    if (!sorted) return ig_no_memory(e);
    memcpy(sorted, s->resources, s->nresources * sizeof *sorted);
    qsort(sorted, s->nresources, sizeof *sorted, by_name);
    for (size_t i = 1; i < s->nresources && status == INGOT_OK; i++)
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0)
            status = ig_field_bad(&at, "name", e, "\"%s\" is listed twice",
                                  ig_esc(sorted[i].name, strlen(sorted[i].name)).s);
    free(sorted);
    return status;
}

static ingot_status parse_resources(const char *path, const json_t *list, struct ig_statement *s,
                                    ingot_error *e)
{
    const struct ig_at at = {path, "predicate.resources"};
    const size_t n = json_array_size(list);
    if (!n) return ig_field_bad(&at, "", e, "nothing is signed");
    s->resources = ig_array(n, sizeof *s->resources);
    if (!s->resources) return ig_no_memory(e);
    for (size_t i = 0; i < n; i++)
        return_if_error(parse_resource(path, json_array_get(list, i), n == 1, &s->resources[i], e));
    s->nresources = n;
    return refuse_twice(path, s, e);
}

/* Names are no part of the root; it binds digests and their order. */
static void root_of(const struct ig_resource *r, size_t n, uint8_t out[IG_HASH])
{
    struct ig_sha h;
    ig_sha_init(&h);
    for (size_t i = 0; i < n; i++) ig_sha_update(&h, r[i].sha256, IG_HASH);
    ig_sha_final(&h, out);
}

static ingot_status parse_subject(const char *path, const json_t *list, struct ig_statement *s,
                                  ingot_error *e)
{
    const struct ig_at at = {path, "subject"};
    uint8_t claimed[IG_HASH], root[IG_HASH];
    json_t *digest, *name;
    if (json_array_size(list) != 1 || !json_is_object(json_array_get(list, 0)))
        return ig_field_bad(&at, "", e, "%zu subjects, expected one", json_array_size(list));
    const json_t *o = json_array_get(list, 0);
    return_if_error(ig_field_maybe(&at, o, "name", JSON_STRING, &name, e));
    return_if_error(ig_field(&at, o, "digest", JSON_OBJECT, &digest, e));
    return_if_error(ig_field_digest(&at, digest, "sha256", "", claimed, e));
    s->subject = name ? json_string_value(name) : "";
    root_of(s->resources, s->nresources, root);
    if (memcmp(root, claimed, IG_HASH) == 0) return INGOT_OK;
    return ig_field_bad(&at, "digest", e, "is not the root of the files listed");
}

/* Fields of others are theirs; ours must be right. */
static ingot_status parse_claims(const char *path, const json_t *o, struct ig_statement *s,
                                 ingot_error *e)
{
    const struct ig_at at = {path, "predicate.ingot"};
    json_t *pack;
    return_if_error(ig_field_maybe(&at, o, "pack", JSON_STRING, &pack, e));
    if (!pack) return INGOT_OK;
    s->has_pack = true;
    return ig_field_digest(&at, o, "pack", PACK_PREFIX, s->pack, e);
}

static ingot_status parse_predicate(const char *path, const json_t *o, struct ig_statement *s,
                                    ingot_error *e)
{
    const struct ig_at at = {path, "predicate"};
    json_t *serialization, *resources, *claims;
    return_if_error(ig_field(&at, o, "serialization", JSON_OBJECT, &serialization, e));
    return_if_error(ig_field(&at, o, "resources", JSON_ARRAY, &resources, e));
    return_if_error(ig_field_maybe(&at, o, "ingot", JSON_OBJECT, &claims, e));
    return_if_error(parse_serialization(path, serialization, s, e));
    return_if_error(parse_resources(path, resources, s, e));
    return claims ? parse_claims(path, claims, s, e) : INGOT_OK;
}

static ingot_status parse(const char *path, struct ig_statement *s, ingot_error *e)
{
    const struct ig_at at = {path, "statement"};
    const char *type;
    json_t *predicate, *subject;
    if (!json_is_object(s->json)) return ig_field_bad(&at, "", e, "expected a JSON object");
    return_if_error(ig_field_is(&at, s->json, "_type", IG_STATEMENT_TYPE, e));
    return_if_error(ig_field_text(&at, s->json, "predicateType", &type, e));
    if (strcmp(type, PREDICATE_V02) == 0)
        return unsupported(&at, "predicateType", type, PREDICATE_TYPE, e);
    return_if_error(ig_field_is(&at, s->json, "predicateType", PREDICATE_TYPE, e));
    return_if_error(ig_field(&at, s->json, "predicate", JSON_OBJECT, &predicate, e));
    return_if_error(parse_predicate(path, predicate, s, e));
    return_if_error(ig_field(&at, s->json, "subject", JSON_ARRAY, &subject, e));
    return parse_subject(path, subject, s, e);
}

ingot_status ig_statement_parse(const char *text, size_t n, const char *path,
                                struct ig_statement *out, ingot_error *e)
{
    *out = (struct ig_statement){0};
    ingot_status status = ig_json_load(text, n, path, 0, &out->json, e);
    if (status == INGOT_OK) status = parse(path, out, e);
    if (status != INGOT_OK) ig_statement_free(out);
    return status;
}

void ig_statement_free(struct ig_statement *s)
{
    free(s->resources);
    free(s->ignored);
    json_decref(s->json);
    *s = (struct ig_statement){0};
}

/* ---- writing ---- */

static json_t *resources_json(const struct ig_resource *r, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:o}", "name", r[i].name, "algorithm",
                                              "sha256", "digest", ig_digest_json("", r[i].sha256)));
    if (json_array_size(list) == n) return list;
    json_decref(list);
    return NULL;
}

ingot_status ig_statement_write(const char *subject, const struct ig_resource *resources, size_t n,
                                json_t *claims, char **text, size_t *len, ingot_error *e)
{
    uint8_t root[IG_HASH];
    root_of(resources, n, root);
    /* What model_signing never looks at is written down as left out. */
    json_t *o = json_pack("{s:s,s:[{s:s,s:{s:o}}],s:s,s:{s:{s:s,s:s,s:b,s:[ssss]},s:o,s:O?}}",
                          "_type", IG_STATEMENT_TYPE, "subject", "name", subject, "digest",
                          "sha256", ig_digest_json("", root), "predicateType", PREDICATE_TYPE,
                          "predicate", "serialization", "method", "files", "hash_type", "sha256",
                          "allow_symlinks", 0, "ignore_paths", ".git", ".gitattributes", ".github",
                          ".gitignore", "resources", resources_json(resources, n), "ingot", claims);
    if (!o) return ig_no_memory(e);
    const ingot_status status = ig_json_dump(o, text, len, e);
    json_decref(o);
    return status;
}
