/* SPDX-License-Identifier: Apache-2.0 */
/* Signing: what is signed has been read and hashed in the same run, from the pack alone. */
#include "verify/sign.h"

#include "verify/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Tables that the digest vouches for. */
static ingot_status make_claims(const struct ig_ref *ref, const uint8_t digest[IG_HASH],
                                json_t **claims, ingot_error *e)
{
    struct ig_pack p = {.fd = -1};
    return_if_error(ig_pack_open(ref->path, &p, e));
    ingot_status status = ig_pack_prove(&p, digest, e);
    if (status == INGOT_OK && !(*claims = ig_signing_claims(&p, digest))) status = ig_no_memory(e);
    ig_pack_close(&p);
    return status;
}

static ingot_status make_statement(const struct ig_ref *ref, const struct ig_files *f,
                                   json_t *claims, struct ig_bytes *payload, ingot_error *e)
{
    const char *slash = ref->name ? strrchr(ref->name, '/') : NULL;
    const char *name = slash ? slash + 1 : ref->name ? ref->name : "model";
    char *text = NULL;
    const ingot_status status = ig_files_statement(f, name, claims, &text, &payload->n, e);
    payload->data = (uint8_t *)text;
    return status;
}

/* Beside the pack a key has one bundle: signed again, it takes the place of the one before. */
static ingot_status keep(const struct ig_ref *ref, const struct ig_signing *job,
                         const struct ig_key *key, const struct ig_bundle *b, json_t *report,
                         ingot_error *e)
{
    char *text = NULL, *path = NULL, *name = ig_format("%.16s.sig", key->hint);
    size_t n = 0;
    ingot_status status = name ? ig_bundle_write(b, &text, &n, e) : ig_no_memory(e);
    if (status == INGOT_OK && job->output && strcmp(job->output, "-") == 0) {
        if (fwrite(text, 1, n, stdout) != n || putchar('\n') == EOF)
            status = ig_fail_sys(e, errno, "stdout: cannot write");
    } else if (status == INGOT_OK && job->output) {
        status = ig_write_new(job->output, 0666, text, n, e);
        path = strdup(job->output);
    } else if (status == INGOT_OK) {
        status = ig_sigs_add(ref->path, name, text, n, e);
        path = ig_sigs_path(ref->path, name);
    }
    if (status == INGOT_OK && path) json_object_set_new(report, "bundle", ig_text_json(path));
    free(text), free(name), free(path);
    return status;
}

static ingot_status sign_files(const struct ig_ref *ref, const struct ig_signing *job,
                               const struct ig_key *key, struct ig_bundle *b,
                               const struct ig_files *f, json_t *report, ingot_error *e)
{
    const uint8_t *digest = job->verify->has_expect ? job->verify->expect : ref->digest;
    json_t *claims = NULL;
    if (!b->ncerts && !(b->hint = strdup(key->hint))) return ig_no_memory(e);
    ingot_status status = make_claims(ref, digest, &claims, e);
    if (status == INGOT_OK) status = make_statement(ref, f, claims, &b->payload, e);
    json_decref(claims);
    if (status == INGOT_OK) status = ig_dsse_sign(key, b->payload.data, b->payload.n, &b->sig, e);
    if (status == INGOT_OK) status = keep(ref, job, key, b, report, e);
    if (status != INGOT_OK) return status;
    json_object_set_new(report, "signed", json_integer((json_int_t)f->n));
    json_object_set_new(report, "curve", json_string(key->curve));
    json_object_set_new(report, "key", json_sprintf("sha256:%s", key->hint));
    return INGOT_OK;
}

ingot_status ig_sign(const struct ig_store *s, const char *model, const struct ig_signing *job,
                     json_t **report, bool *loose, ingot_error *e)
{
    struct ig_ref ref = {0};
    struct ig_key key = {0};
    struct ig_bundle b = {0};
    struct ig_files files = {0};
    struct ig_verify v = *job->verify;
    json_t *r = NULL;
    v.files = &files;
    v.level = IG_LEVEL_FULL;
    ingot_status status = ig_store_resolve(s, model, &ref, e);
    if (status == INGOT_OK)
        status = ig_key_read_private(job->key, &job->passphrase, &key, loose, e);
    if (status == INGOT_OK && job->certificate)
        status = ig_chain_read(job->certificate, job->chain, &key, &b, e);
    if (status == INGOT_OK)
        status = ig_verify_pack(ref.path, ref.name ? ref.name : model,
                                ref.has_digest ? ref.digest : NULL, &v, &r, e);
    if (status == INGOT_OK && json_is_true(json_object_get(r, "ok")))
        status = sign_files(&ref, job, &key, &b, &files, r, e);
    if (status == INGOT_OK)
        *report = r;
    else
        json_decref(r);
    ig_files_free(&files);
    ig_bundle_free(&b);
    ig_key_free(&key);
    ig_ref_free(&ref);
    return status;
}
