/* SPDX-License-Identifier: Apache-2.0 */
/* rank: the numbers of config.json by which a model is cut. */
#include "loader/rank_private.h"

#include <stdlib.h>

#define MOST ((json_int_t)1 << 30) /* products of two, and sums of three such, fit 64 bits */

/* Models that see or hear keep the decoder's numbers one level down. */
static const json_t *decoder(const json_t *config)
{
    const json_t *text = json_object_get(config, "text_config");
    const bool here = json_object_get(config, "num_attention_heads") != NULL;
    return !here && json_is_object(text) ? text : config;
}

/* Absent and null are `otherwise`; 0 there means that the key must be given. */
static ingot_status number(const struct ig_pack *p, const json_t *config, const char *key,
                           uint64_t otherwise, uint64_t *out, ingot_error *e)
{
    const json_t *v = json_object_get(config, key);
    *out = otherwise;
    if ((!v || json_is_null(v)) && otherwise) return INGOT_OK;
    if (!v || json_is_null(v))
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: config.json has no %s, which ranks are cut by", p->path, key);
    const json_int_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < 1 || n > MOST)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: config.json: %s is not a whole number from 1 to %lld", p->path, key,
                       (long long)MOST);
    *out = (uint64_t)n;
    return INGOT_OK;
}

static ingot_status numbers(const struct ig_pack *p, const json_t *config, struct ig_geometry *g,
                            ingot_error *e)
{
    return_if_error(number(p, config, "num_attention_heads", 0, &g->heads, e));
    return_if_error(number(p, config, "num_key_value_heads", g->heads, &g->kv_heads, e));
    return_if_error(number(p, config, "hidden_size", 0, &g->hidden, e));
    return_if_error(number(p, config, "head_dim", g->hidden / g->heads, &g->head_dim, e));
    return_if_error(number(p, config, "intermediate_size", 0, &g->intermediate, e));
    return number(p, config, "vocab_size", 0, &g->vocab, e);
}

ingot_status ig_geometry_read(const struct ig_pack *p, struct ig_geometry *g, ingot_error *e)
{
    /* As convert reads it. */
    const unsigned flags = IG_JSON_NONFINITE | IG_JSON_BOM | IG_JSON_LAST_WINS;
    const uint32_t blob = ig_pack_find_blob(p, "config.json", IG_BLOB_FILE);
    char *text = NULL;
    json_t *config = NULL;
    size_t n = 0;
    if (blob == IG_NONE)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: holds no config.json, which ranks are cut by",
                       p->path);
    return_if_error(ig_pack_read_blob(p, blob, &text, &n, e));
    ingot_status status = ig_json_load(text, n, "config.json", flags, &config, e);
    free(text);
    if (status == INGOT_OK) status = numbers(p, decoder(config), g, e);
    json_decref(config);
    return status;
}

#define ULL(n) ((unsigned long long)(n))

ingot_status ig_geometry_divides(const struct ig_pack *p, const struct ig_geometry *g,
                                 uint32_t ranks, ingot_error *e)
{
    if (g->heads % ranks)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: %llu heads cannot be cut in %u", p->path,
                       ULL(g->heads), ranks);
    if (g->kv_heads % ranks && ranks % g->kv_heads)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: %llu KV heads cannot be cut in %u nor repeated for it", p->path,
                       ULL(g->kv_heads), ranks);
    /* Else a rank's query heads would want a KV head that another rank has. */
    if (g->heads % g->kv_heads)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: %llu heads do not share %llu KV heads evenly",
                       p->path, ULL(g->heads), ULL(g->kv_heads));
    if (g->intermediate % ranks)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: an intermediate size of %llu cannot be cut in %u", p->path,
                       ULL(g->intermediate), ranks);
    return INGOT_OK;
}
