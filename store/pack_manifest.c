/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest: what the pack says of itself, in the one text that its rules allow. */
#include "store/pack_private.h"

#include <stdlib.h>
#include <string.h>

#define MANIFEST_MOST  ((uint64_t)64 << 20)
#define CONTENT_PREFIX "ingot-content-v1:"

/* Integers below 2^53, no fractions, keys of ASCII, strings that C can hold.  No deeper than the
 * JSON reader goes. */
static bool is_plain(json_t *v)
{
    const json_int_t most = (json_int_t)1 << 53;
    const char *key;
    size_t i, n;
    json_t *item;
    json_object_keylen_foreach(v, key, n, item)
    {
        for (i = 0; i < n; i++)
            if ((signed char)key[i] <= 0) return false;
        if (!is_plain(item)) return false;
    }
    json_array_foreach(v, i, item)
    {
        if (!is_plain(item)) return false;
    }
    if (json_is_string(v)) return strlen(json_string_value(v)) == json_string_length(v);
    if (json_is_integer(v)) return json_integer_value(v) < most && json_integer_value(v) > -most;
    return !json_is_real(v);
}

static ingot_status check_canonical(const struct ig_pack *p, const struct region *r, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    return_if_error(ig_json_dump(p->manifest, &text, &n, e));
    const bool same = n == r->bytes && memcmp(text, r->data, n) == 0 && is_plain(p->manifest);
    free(text);
    return same ? INGOT_OK : pack_fail(p, e, r->offset, "manifest is not in canonical form");
}

static bool read_digest(const json_t *v, const char *prefix, uint8_t out[IG_HASH])
{
    const size_t skip = strlen(prefix);
    const char *s = json_string_value(v);
    return s && json_string_length(v) == skip + 2 * IG_HASH && strncmp(s, prefix, skip) == 0 &&
           ig_unhex(out, IG_HASH, s + skip);
}

static bool read_source(const json_t *v, struct ig_source *out)
{
    const json_t *size = json_object_get(v, "size");
    const json_t *name = json_object_get(v, "name");
    if (json_object_size(v) != 3 || !json_is_integer(size) || json_integer_value(size) < 0)
        return false;
    out->name = json_string_value(name);
    out->bytes = (uint64_t)json_integer_value(size);
    return out->name && json_string_length(name) == strlen(out->name) &&
           ig_safe_path(out->name, strlen(out->name)) && out->bytes < ((uint64_t)1 << 53) &&
           read_digest(json_object_get(v, "sha256"), "", out->sha256);
}

static ingot_status read_sources(struct ig_pack *p, const json_t *list, uint64_t at, ingot_error *e)
{
    if (!json_is_array(list)) return pack_fail(p, e, at, "manifest: no list of sources");
    p->nsources = (uint32_t)json_array_size(list);
    p->sources = ig_array(p->nsources, sizeof *p->sources);
    if (!p->sources) return ig_no_memory(e);
    for (uint32_t i = 0; i < p->nsources; i++) {
        if (!read_source(json_array_get(list, i), &p->sources[i]))
            return pack_fail(p, e, at, "manifest: source %u is not a name, sha256 and size", i);
        if (i > 0 && strcmp(p->sources[i - 1].name, p->sources[i].name) >= 0)
            return pack_fail(p, e, at, "manifest: sources are not ascending at \"%s\"",
                             ig_esc(p->sources[i].name, strlen(p->sources[i].name)).s);
    }
    return INGOT_OK;
}

ingot_status ig_pack_read_manifest(struct ig_pack *p, ingot_error *e)
{
    const struct region *r = &p->t->regions[REGION_MANIFEST];
    if (r->bytes > MANIFEST_MOST)
        return pack_fail(p, e, r->offset, "manifest of %llu bytes, expected at most %llu",
                         (unsigned long long)r->bytes, (unsigned long long)MANIFEST_MOST);
    return_if_error(ig_json_load((const char *)r->data, (size_t)r->bytes, p->path, 0, &p->manifest,
                                 e) == INGOT_OK
                        ? INGOT_OK
                        : pack_fail(p, e, r->offset, "manifest is not JSON"));
    return_if_error(check_canonical(p, r, e));
    const json_t *derivation = json_object_get(p->manifest, "derivation");
    const json_t *rules = json_object_get(p->manifest, "rules");
    if (json_object_size(p->manifest) != 4 || !json_is_string(json_object_get(derivation, "kind")))
        return pack_fail(p, e, r->offset,
                         "manifest: expected content, derivation, rules and sources");
    if (!json_is_integer(rules) || json_integer_value(rules) < 1 ||
        json_integer_value(rules) > UINT32_MAX)
        return pack_fail(p, e, r->offset, "manifest: rules is not a positive integer");
    p->rules = (uint32_t)json_integer_value(rules);
    if (!read_digest(json_object_get(p->manifest, "content"), CONTENT_PREFIX, p->content))
        return pack_fail(p, e, r->offset, "manifest: content is not " CONTENT_PREFIX "<64 hex>");
    return read_sources(p, json_object_get(p->manifest, "sources"), r->offset, e);
}
