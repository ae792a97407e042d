/* SPDX-License-Identifier: Apache-2.0 */
/* Sigstore bundles, read strictly: what model_signing refuses is refused, and so is what it lets
 * through although only a part of it would be looked at. */
#include "verify/fields.h"
#include "verify/sign.h"

#include <stdlib.h>
#include <string.h>

static ingot_status decode(const struct ig_at *at, const json_t *object, const char *key,
                           struct ig_bytes *out, ingot_error *e)
{
    const char *text;
    return_if_error(ig_field_text(at, object, key, &text, e));
    if (ig_base64_decode(text, strlen(text), out) && out->n > 0) return INGOT_OK;
    return ig_field_bad(at, key, e, "expected base64 (padded, canonical, nothing else in it)");
}

/* ---- the kinds that are not checked ---- */

static ingot_status refuse(const char *path, const char *why, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: %s", ig_esc(path, strlen(path)).s, why);
    return ig_at(e, path, NULL, 0);
}

static ingot_status check_media_type(const struct ig_at *at, const json_t *o, ingot_error *e)
{
    const char *type;
    return_if_error(ig_field_text(at, o, "mediaType", &type, e));
    if (strcmp(type, IG_BUNDLE_TYPE) == 0) return INGOT_OK;
    if (strstr(type, "dev.sigstore.bundle"))
        return refuse(
            at->path,
            "a Sigstore bundle of another version; only v0.3 is checked, sign anew with a "
            "current model_signing",
            e);
    return ig_field_bad(at, "mediaType", e, "\"%s\", expected \"%s\"", ig_esc(type, strlen(type)).s,
                        IG_BUNDLE_TYPE);
}

/* ---- what signed it ---- */

static ingot_status parse_key(const char *path, const json_t *key, struct ig_bundle *b,
                              ingot_error *e)
{
    static const char *const known[] = {"hint", "rawBytes", "keyDetails", NULL};
    const struct ig_at at = {path, "verificationMaterial.publicKey"};
    json_t *hint;
    return_if_error(ig_field_only(&at, key, known, e));
    return_if_error(ig_field_maybe(&at, key, "hint", JSON_STRING, &hint, e));
    if (!hint) return INGOT_OK;
    return (b->hint = strdup(json_string_value(hint))) ? INGOT_OK : ig_no_memory(e);
}

/* Objects of one member each, base64 of DER. */
static ingot_status parse_ders(const struct ig_at *at, const json_t *list, const char *key,
                               struct ig_bytes *out, uint32_t *n, ingot_error *e)
{
    const char *const known[] = {key, NULL};
    size_t i;
    json_t *item;
    if (json_array_size(list) > IG_CHAIN_MOST)
        return ig_field_bad(at, "", e, "%zu entries, expected at most %u", json_array_size(list),
                            IG_CHAIN_MOST);
    json_array_foreach(list, i, item)
    {
        if (!json_is_object(item)) return ig_field_bad(at, "", e, "expected objects");
        return_if_error(ig_field_only(at, item, known, e));
        return_if_error(decode(at, item, key, &out[i], e));
        *n = (uint32_t)i + 1;
    }
    return INGOT_OK;
}

static ingot_status parse_chain(const char *path, const json_t *chain, struct ig_bundle *b,
                                ingot_error *e)
{
    static const char *const known[] = {"certificates", NULL};
    const struct ig_at at = {path, "verificationMaterial.x509CertificateChain"};
    json_t *list;
    return_if_error(ig_field_only(&at, chain, known, e));
    return_if_error(ig_field(&at, chain, "certificates", JSON_ARRAY, &list, e));
    return_if_error(parse_ders(&at, list, "rawBytes", b->certs, &b->ncerts, e));
    return b->ncerts ? INGOT_OK : ig_field_bad(&at, "certificates", e, "expected at least one");
}

static ingot_status parse_stamps(const char *path, const json_t *data, struct ig_bundle *b,
                                 ingot_error *e)
{
    static const char *const known[] = {"rfc3161Timestamps", NULL};
    const struct ig_at at = {path, "verificationMaterial.timestampVerificationData"};
    json_t *list;
    return_if_error(ig_field_only(&at, data, known, e));
    return_if_error(ig_field_maybe(&at, data, "rfc3161Timestamps", JSON_ARRAY, &list, e));
    return list ? parse_ders(&at, list, "signedTimestamp", b->stamps, &b->nstamps, e) : INGOT_OK;
}

static ingot_status parse_material(const char *path, const json_t *m, struct ig_bundle *b,
                                   ingot_error *e)
{
    static const char *const known[] = {"publicKey",   "x509CertificateChain",      "certificate",
                                        "tlogEntries", "timestampVerificationData", NULL};
    const struct ig_at at = {path, "verificationMaterial"};
    json_t *key, *chain, *single, *log, *stamps;
    return_if_error(ig_field_only(&at, m, known, e));
    return_if_error(ig_field_maybe(&at, m, "publicKey", JSON_OBJECT, &key, e));
    return_if_error(ig_field_maybe(&at, m, "x509CertificateChain", JSON_OBJECT, &chain, e));
    return_if_error(ig_field_maybe(&at, m, "certificate", JSON_OBJECT, &single, e));
    return_if_error(ig_field_maybe(&at, m, "tlogEntries", JSON_ARRAY, &log, e));
    return_if_error(ig_field_maybe(&at, m, "timestampVerificationData", JSON_OBJECT, &stamps, e));
    if ((key != NULL) + (chain != NULL) + (single != NULL) != 1)
        return ig_field_bad(&at, "", e,
                            "expected exactly one of publicKey, x509CertificateChain, certificate");
    if (single)
        return refuse(path,
                      "a keyless (Sigstore) bundle: its certificate lived for minutes and only an "
                      "online transparency log vouches for the time; it cannot be checked offline, "
                      "and is not checked by half",
                      e);
    b->has_log = json_array_size(log) > 0;
    if (stamps) return_if_error(parse_stamps(path, stamps, b, e));
    return key ? parse_key(path, key, b, e) : parse_chain(path, chain, b, e);
}

/* ---- what was signed ---- */

static ingot_status parse_signature(const char *path, const json_t *list, struct ig_bundle *b,
                                    ingot_error *e)
{
    static const char *const known[] = {"sig", "keyid", NULL};
    const struct ig_at at = {path, "dsseEnvelope.signatures"};
    if (json_array_size(list) != 1)
        return ig_field_bad(&at, "", e,
                            "%zu signatures, expected one: others would not be looked at",
                            json_array_size(list));
    const json_t *one = json_array_get(list, 0);
    if (!json_is_object(one)) return ig_field_bad(&at, "", e, "expected an object");
    return_if_error(ig_field_only(&at, one, known, e));
    return_if_error(decode(&at, one, "sig", &b->sig, e));
    if (b->sig.n <= IG_SIGNATURE_MOST) return INGOT_OK;
    return ig_field_bad(&at, "sig", e, "%zu bytes, expected at most %u", b->sig.n,
                        IG_SIGNATURE_MOST);
}

static ingot_status parse_envelope(const char *path, const json_t *o, struct ig_bundle *b,
                                   ingot_error *e)
{
    static const char *const known[] = {"payload", "payloadType", "signatures", NULL};
    const struct ig_at at = {path, "dsseEnvelope"};
    json_t *list;
    return_if_error(ig_field_only(&at, o, known, e));
    return_if_error(ig_field_is(&at, o, "payloadType", IG_INTOTO_TYPE, e));
    return_if_error(decode(&at, o, "payload", &b->payload, e));
    return_if_error(ig_field(&at, o, "signatures", JSON_ARRAY, &list, e));
    return parse_signature(path, list, b, e);
}

static ingot_status parse(const char *path, const json_t *o, struct ig_bundle *b, ingot_error *e)
{
    static const char *const known[] = {"mediaType", "verificationMaterial", "dsseEnvelope", NULL};
    const struct ig_at at = {path, ""};
    json_t *material, *envelope;
    if (!json_is_object(o)) return ig_field_bad(&at, "", e, "expected a JSON object");
    return_if_error(check_media_type(&at, o, e));
    if (json_object_get(o, "messageSignature"))
        return refuse(path, "a bundle over a message, not over a statement about a model", e);
    return_if_error(ig_field_only(&at, o, known, e));
    return_if_error(ig_field(&at, o, "verificationMaterial", JSON_OBJECT, &material, e));
    return_if_error(ig_field(&at, o, "dsseEnvelope", JSON_OBJECT, &envelope, e));
    return_if_error(parse_material(path, material, b, e));
    return parse_envelope(path, envelope, b, e);
}

ingot_status ig_bundle_parse(const char *text, size_t n, const char *path, struct ig_bundle *out,
                             ingot_error *e)
{
    json_t *o = NULL;
    *out = (struct ig_bundle){0};
    ingot_status status = ig_json_load(text, n, path, 0, &o, e);
    if (status == INGOT_OK) status = parse(path, o, out, e);
    if (status != INGOT_OK) ig_bundle_free(out);
    json_decref(o);
    return status;
}

ingot_status ig_bundle_read(const char *path, struct ig_bundle *out, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    *out = (struct ig_bundle){0};
    return_if_error(ig_read_file(path, IG_BUNDLE_MOST, &text, &n, e));
    const ingot_status status = ig_bundle_parse(text, n, path, out, e);
    ig_sha256(out->sha256, text, n);
    free(text);
    return status;
}

void ig_bundle_free(struct ig_bundle *b)
{
    for (uint32_t i = 0; i < IG_CHAIN_MOST; i++) free(b->certs[i].data), free(b->stamps[i].data);
    free(b->payload.data);
    free(b->sig.data);
    free(b->hint);
    *b = (struct ig_bundle){0};
}

/* ---- writing ---- */

static json_t *encoded(const struct ig_bytes *b)
{
    char *text = ig_base64_encode(b->data, b->n);
    json_t *v = text ? json_string(text) : NULL;
    free(text);
    return v;
}

static json_t *material_of(const struct ig_bundle *b)
{
    json_t *chain = json_array();
    if (!b->ncerts) {
        json_decref(chain);
        return json_pack("{s:{s:s},s:[]}", "publicKey", "hint", b->hint, "tlogEntries");
    }
    for (uint32_t i = 0; i < b->ncerts; i++)
        json_array_append_new(chain, json_pack("{s:o}", "rawBytes", encoded(&b->certs[i])));
    return json_pack("{s:{s:o},s:[]}", "x509CertificateChain", "certificates", chain,
                     "tlogEntries");
}

ingot_status ig_bundle_write(const struct ig_bundle *b, char **text, size_t *n, ingot_error *e)
{
    json_t *o = json_pack("{s:s,s:o,s:{s:o,s:s,s:[{s:o,s:s}]}}", "mediaType", IG_BUNDLE_TYPE,
                          "verificationMaterial", material_of(b), "dsseEnvelope", "payload",
                          encoded(&b->payload), "payloadType", IG_INTOTO_TYPE, "signatures", "sig",
                          encoded(&b->sig), "keyid", "");
    if (!o) return ig_no_memory(e);
    const ingot_status status = ig_json_dump(o, text, n, e);
    json_decref(o);
    return status;
}
