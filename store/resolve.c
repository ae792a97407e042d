/* SPDX-License-Identifier: Apache-2.0 */
/* What a MODEL argument means: a path, a digest, the digest of a source file, or a name. */
#include "store/folder.h"
#include "store/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEX_DIGITS (2u * IG_HASH)
#define HEX_LEAST  8u
#define SHOWN_MOST 8u /* candidates in a message */

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_path(const char *model)
{
    const size_t n = strlen(model);
    return model[0] == '/' || model[0] == '.' || (n >= 6 && strcmp(model + n - 6, ".ingot") == 0);
}

static ingot_status by_path(const char *model, struct ig_ref *out, ingot_error *e)
{
    struct stat st;
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model;
    if (stat(model, &st) != 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(model, strlen(model)).s);
        return ig_at(e, model, NULL, 0);
    }
    out->has_digest = strlen(base) == HEX_DIGITS + 6 && strcmp(base + HEX_DIGITS, ".ingot") == 0 &&
                      ig_unhex(out->digest, IG_HASH, base);
    return (out->path = strdup(model)) ? INGOT_OK : ig_no_memory(e);
}

bool ig_take_hex(const char *digits, char hex[HEX_DIGITS + 1])
{
    const size_t n = strlen(digits);
    if (n < HEX_LEAST || n > HEX_DIGITS) return false;
    for (size_t i = 0; i <= n; i++)
        hex[i] = digits[i] >= 'A' && digits[i] <= 'F' ? (char)(digits[i] + 32) : digits[i];
    return ig_is_hex(hex, n);
}

/* "  candidate" for each of several, cut after a few; grows text within cap. */
static void candidate(char *text, size_t cap, size_t i, const uint8_t digest[IG_HASH])
{
    char hex[HEX_DIGITS + 1];
    const size_t used = strlen(text);
    ig_hex(hex, digest, IG_HASH);
    if (i < SHOWN_MOST)
        snprintf(text + used, cap - used, "%s%s", i ? ", " : "", hex);
    else if (i == SHOWN_MOST)
        snprintf(text + used, cap - used, ", ...");
}

static ingot_status take_pack(const struct ig_store *s, const uint8_t digest[IG_HASH],
                              struct ig_ref *out, ingot_error *e)
{
    memcpy(out->digest, digest, IG_HASH);
    out->has_digest = true;
    return (out->path = ig_store_pack_path(s, digest)) ? INGOT_OK : ig_no_memory(e);
}

static ingot_status by_digest(const struct ig_store *s, const char *hex, struct ig_ref *out,
                              ingot_error *e)
{
    char text[SHOWN_MOST * (HEX_DIGITS + 2) + 8] = "", full[HEX_DIGITS + 1];
    struct ig_store_file *files;
    size_t n, found = 0, last = 0;
    return_if_error(ig_store_packs(s, &files, &n, e));
    for (size_t i = 0; i < n; i++) {
        ig_hex(full, files[i].digest, IG_HASH);
        if (!starts(full, hex)) continue;
        candidate(text, sizeof text, found++, files[i].digest);
        last = i;
    }
    ingot_status status;
    if (found == 1)
        status = take_pack(s, files[last].digest, out, e);
    else if (found == 0)
        status = ig_fail(e, INGOT_ERR_NOT_FOUND, "no pack with the digest %s%s in %s", hex,
                         strlen(hex) < HEX_DIGITS ? "..." : "", s->root);
    else
        status = ig_fail(e, INGOT_ERR_USAGE, "the digest %s... is ambiguous, it could be: %s", hex,
                         text);
    free(files);
    return status;
}

static ingot_status by_source(const struct ig_store *s, const char *hex, struct ig_ref *out,
                              ingot_error *e)
{
    char text[SHOWN_MOST * (HEX_DIGITS + 2) + 8] = "";
    struct ig_index index;
    size_t n, packs = 0;
    return_if_error(ig_index_load(s, false, &index, e));
    const struct ig_origin *found = ig_index_find_source(&index, hex, strlen(hex), &n);
    const uint8_t *digest = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct ig_summary *pack = &index.packs[found[i].pack];
        size_t before = 0; /* one pack may hold several files that begin alike */
        while (before < i && found[before].pack != found[i].pack) before++;
        if (before < i || !ig_summary_holds_sources(pack)) continue;
        digest = pack->digest;
        candidate(text, sizeof text, packs++, digest);
    }
    ingot_status status;
    if (packs == 1)
        status = take_pack(s, digest, out, e);
    else if (packs == 0)
        status = ig_fail(e, INGOT_ERR_NOT_FOUND,
                         "no pack in %s holds a source file with the SHA-256 %s%s", s->root, hex,
                         strlen(hex) < HEX_DIGITS ? "..." : "");
    else
        status = ig_fail(e, INGOT_ERR_USAGE,
                         IG_SOURCE_PREFIX "%s is ambiguous, packs with such a source file: %s", hex,
                         text);
    ig_index_free(&index);
    return status;
}

static ingot_status not_found(const struct ig_store *s, const char *model, ingot_error *e)
{
    struct stat st;
    char *near = ig_names_nearest(s, model);
    const struct ig_esc esc = ig_esc(model, strlen(model));
    const char *shown = esc.s;
    ingot_status status;
    if (near)
        status = ig_fail(e, INGOT_ERR_NOT_FOUND,
                         "no model named \"%s\" in %s; did you mean \"%s\"?", shown, s->root, near);
    else if (stat(model, &st) == 0)
        status = ig_fail(e, INGOT_ERR_NOT_FOUND,
                         "no model named \"%s\" in %s; a path would be written ./%s", shown,
                         s->root, shown);
    else
        status = ig_fail(e, INGOT_ERR_NOT_FOUND, "no model named \"%s\" in %s", shown, s->root);
    free(near);
    return status;
}

static ingot_status by_name(const struct ig_store *s, const char *model, struct ig_ref *out,
                            ingot_error *e)
{
    uint8_t digest[IG_HASH];
    struct stat st;
    const ingot_status status = ig_name_read(s, model, digest, e);
    if (status == INGOT_ERR_NOT_FOUND) return not_found(s, model, e);
    if (status != INGOT_OK) return status;
    return_if_error(take_pack(s, digest, out, e));
    if (stat(out->path, &st) != 0 && errno == ENOENT)
        return ig_fail(e, INGOT_ERR_NOT_FOUND, "the pack of the name \"%s\" is missing: %s", model,
                       out->path);
    return (out->name = strdup(model)) ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_store_resolve(const struct ig_store *s, const char *model, struct ig_ref *out,
                              ingot_error *e)
{
    char hex[HEX_DIGITS + 1];
    ingot_status status;
    *out = (struct ig_ref){0};
    const char *colon = strchr(model, ':');
    const char *digits = colon ? colon + 1 : model;
    if (is_path(model))
        status = by_path(model, out, e);
    else if (colon && !starts(model, IG_DIGEST_PREFIX) && !starts(model, IG_SOURCE_PREFIX))
        status =
            ig_fail(e, INGOT_ERR_USAGE,
                    "\"%s\": unknown prefix, expected " IG_DIGEST_PREFIX " or " IG_SOURCE_PREFIX,
                    ig_esc(model, strlen(model)).s);
    else if (ig_take_hex(digits, hex))
        status = colon && starts(model, IG_SOURCE_PREFIX) ? by_source(s, hex, out, e)
                                                          : by_digest(s, hex, out, e);
    else if (colon)
        status = ig_fail(e, INGOT_ERR_USAGE, "\"%s\": expected 8 to 64 hex digits after the prefix",
                         ig_esc(model, strlen(model)).s);
    else
        status = by_name(s, model, out, e);
    if (status != INGOT_OK) ig_ref_free(out);
    return status;
}

void ig_ref_free(struct ig_ref *r)
{
    free(r->path);
    free(r->name);
    *r = (struct ig_ref){0};
}
