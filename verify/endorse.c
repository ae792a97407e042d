/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bundle over files can only be held to a pack by hashing every file, in seconds.  Who has done
 * that once can put his own name under it: this digest, by that bundle, of that signer.
 */
#include "verify/fields.h"
#include "verify/receipt.h"
#include "verify/trust.h"
#include "verify/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static json_t *statement_of(const struct ig_ref *ref, const json_t *signature)
{
    char now[32];
    ig_when_text((int64_t)time(NULL), now);
    const json_t *certificate = json_object_get(signature, "certificate");
    return json_pack("{s:s,s:[{s:s,s:{s:o}}],s:s,s:{s:i,s:o,s:{s:O},s:{s:O*,s:O*},s:s}}", "_type",
                     IG_STATEMENT_TYPE, "subject", "name", ref->name ? ref->name : "model",
                     "digest", "fsverity-sha256", ig_digest_json("", ref->digest), "predicateType",
                     IG_ENDORSEMENT_TYPE, "predicate", "v", 1, "pack",
                     ig_digest_json("fsverity-sha256:", ref->digest), "bundle", "sha256",
                     json_object_get(signature, "bundle_sha256"), "signer", "key",
                     certificate ? NULL : json_object_get(signature, "key"), "certificate",
                     certificate, "endorsed", now);
}

ingot_status ig_endorse(const struct ig_store *s, const char *model, const struct ig_key *key,
                        const json_t *signature, char **path, ingot_error *e)
{
    struct ig_ref ref = {0};
    char *text = NULL, *name = NULL;
    size_t n = 0;
    json_t *o = NULL;
    *path = NULL;
    ingot_status status = ig_store_resolve(s, model, &ref, e);
    if (status == INGOT_OK && !ref.has_digest)
        status = ig_fail(e, INGOT_ERR_USAGE, "%s: has no digest to endorse", model);
    if (status == INGOT_OK) {
        o = statement_of(&ref, signature);
        name = ig_format("%.16s.endorsement", key->hint);
        status = o && name ? ig_seal(key, o, &text, &n, e) : ig_no_memory(e);
    }
    if (status == INGOT_OK) status = ig_sigs_add(ref.path, name, text, n, e);
    if (status == INGOT_OK && !(*path = ig_sigs_path(ref.path, name))) status = ig_no_memory(e);
    json_decref(o);
    free(text), free(name);
    ig_ref_free(&ref);
    return status;
}

static ingot_status parse(const char *path, const json_t *o, uint8_t pack[IG_HASH], ingot_error *e)
{
    const struct ig_at top = {path, ""}, at = {path, "predicate"}, in = {path, "predicate.bundle"};
    static const char *const known[] = {"_type", "subject", "predicateType", "predicate", NULL};
    json_t *predicate, *bundle;
    uint8_t ignored[IG_HASH];
    return_if_error(ig_field_is(&top, o, "_type", IG_STATEMENT_TYPE, e));
    return_if_error(ig_field_only(&top, o, known, e));
    return_if_error(ig_field(&top, o, "predicate", JSON_OBJECT, &predicate, e));
    return_if_error(ig_field_digest(&at, predicate, "pack", "fsverity-sha256:", pack, e));
    return_if_error(ig_field(&at, predicate, "bundle", JSON_OBJECT, &bundle, e));
    return ig_field_digest(&in, bundle, "sha256", "", ignored, e);
}

ingot_status ig_endorsement_parse(const char *text, size_t n, const char *path, bool *is,
                                  uint8_t pack[IG_HASH], ingot_error *e)
{
    json_t *o = NULL;
    ingot_status status = ig_json_load(text, n, path, 0, &o, e);
    const char *type = json_string_value(json_object_get(o, "predicateType"));
    *is = status == INGOT_OK && type && strcmp(type, IG_ENDORSEMENT_TYPE) == 0;
    if (*is) status = parse(path, o, pack, e);
    json_decref(o);
    return status;
}
