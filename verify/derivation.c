/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest's derivation, decoded; and which pack of a store it speaks of. */
#include "verify/derivation.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT_PREFIX "ingot-content-v1:"

static bool read_content(const json_t *v, uint8_t out[IG_HASH])
{
    const size_t skip = sizeof CONTENT_PREFIX - 1;
    const char *s = json_string_value(v);
    return s && strlen(s) == skip + 2 * IG_HASH && strncmp(s, CONTENT_PREFIX, skip) == 0 &&
           ig_unhex(out, IG_HASH, s + skip);
}

static bool is_kind(const json_t *derivation, const char *kind)
{
    const char *s = json_string_value(json_object_get(derivation, "kind"));
    return s && strcmp(s, kind) == 0;
}

ingot_status ig_derivation_read(const struct ig_pack *p, struct ig_derivation *out, ingot_error *e)
{
    const json_t *d = json_object_get(p->manifest, "derivation");
    const char *dtype = json_string_value(json_object_get(d, "dtype"));
    *out = (struct ig_derivation){.dtype = -1};
    out->inputs = is_kind(d, "inputs");
    if (out->inputs || is_kind(d, "identity")) return INGOT_OK;
    if (is_kind(d, "dtype") && dtype) out->dtype = ig_dtype_find(dtype, strlen(dtype));
    if (out->dtype < 0 || !read_content(json_object_get(d, "from"), out->from)) {
        const char *kind = json_string_value(json_object_get(d, "kind"));
        ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: made by \"%s\", which this version does not know",
                p->path, ig_esc(kind, strlen(kind)).s);
        return ig_at(e, p->path, NULL, 0);
    }
    out->derived = true;
    out->saturate = json_integer_value(json_object_get(d, "saturate")) != 0;
    out->from_files = is_kind(json_object_get(d, "parent"), "identity");
    snprintf(out->words, sizeof out->words, "dtype %s%s", ig_dtypes[out->dtype].name,
             out->saturate ? ", saturated" : "");
    return INGOT_OK;
}

static bool same_sources(const struct ig_store *s, const struct ig_summary *pack,
                         const struct ig_pack *child)
{
    struct ig_pack p = {.fd = -1};
    char *path = ig_store_pack_path(s, pack->digest);
    const bool same = path && ig_pack_open(path, &p, NULL) == INGOT_OK &&
                      json_equal(json_object_get(p.manifest, "sources"),
                                 json_object_get(child->manifest, "sources"));
    ig_pack_close(&p);
    free(path);
    return same;
}

const struct ig_summary *ig_derivation_parent(const struct ig_store *s,
                                              const struct ig_index *index,
                                              const struct ig_pack *child,
                                              const uint8_t content[IG_HASH], size_t *at)
{
    while (*at < index->npacks) {
        const struct ig_summary *pack = &index->packs[(*at)++];
        if (!pack->problem && memcmp(pack->content, content, IG_HASH) == 0 &&
            same_sources(s, pack, child))
            return pack;
    }
    return NULL;
}
