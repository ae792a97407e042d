/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: does the one that signed lead to a root that the caller trusts, and may it sign? */
#include "verify/sign.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEM_MOST ((size_t)4 << 20)

static X509 *decode(const struct ig_bytes *b)
{
    const unsigned char *at = b->data;
    X509 *x = d2i_X509(NULL, &at, (long)b->n);
    if (x && at == b->data + b->n) return x;
    X509_free(x);
    return NULL;
}

static ingot_status bad_cert(const char *path, ingot_status status, const char *why, ingot_error *e)
{
    ig_fail(e, status, "%s: %s", ig_esc(path, strlen(path)).s, why);
    return ig_at(e, path, NULL, 0);
}

/* What model_signing asks of a leaf, and that it is no CA, which model_signing forgets. */
static ingot_status check_leaf(X509 *leaf, const char *path, ingot_error *e)
{
    const bool usage = X509_get_ext_by_NID(leaf, NID_key_usage, -1) >= 0,
               extended = X509_get_ext_by_NID(leaf, NID_ext_key_usage, -1) >= 0;
    if (X509_check_ca(leaf) != 0)
        return bad_cert(path, INGOT_ERR_CHECK,
                        "the signer's certificate is a CA's, which signs certificates, not models",
                        e);
    if (usage && (X509_get_key_usage(leaf) & KU_DIGITAL_SIGNATURE)) return INGOT_OK;
    if (extended && (X509_get_extended_key_usage(leaf) & XKU_CODE_SIGN)) return INGOT_OK;
    return bad_cert(path, INGOT_ERR_CHECK,
                    "the signer's certificate may not sign: neither key usage digitalSignature nor "
                    "extended key usage codeSigning",
                    e);
}

static void name_of(const X509_NAME *name, char *out, size_t cap)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    *out = '\0';
    if (bio && X509_NAME_print_ex(bio, name, 0,
                                  XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) >= 0) {
        const long n = BIO_get_mem_data(bio, &text);
        ig_escape(out, cap, text, n > 0 ? (size_t)n : 0);
    }
    BIO_free(bio);
}

static int64_t seconds(const ASN1_TIME *t, int64_t otherwise)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : otherwise;
}

/* A time that cannot be read is one that has passed. */
static void describe(X509 *leaf, const STACK_OF(X509) * chain, struct ig_signer *who)
{
    unsigned char sha[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    *who = (struct ig_signer){.not_before = INT64_MIN, .not_after = INT64_MAX};
    name_of(X509_get_subject_name(leaf), who->subject, sizeof who->subject);
    name_of(X509_get_issuer_name(leaf), who->issuer, sizeof who->issuer);
    if (X509_digest(leaf, EVP_sha256(), sha, &n) == 1 && n == IG_HASH)
        ig_hex(who->fingerprint, sha, IG_HASH);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        const X509 *x = sk_X509_value(chain, i);
        const int64_t from = seconds(X509_get0_notBefore(x), INT64_MAX),
                      to = seconds(X509_get0_notAfter(x), INT64_MIN);
        if (from > who->not_before) who->not_before = from;
        if (to < who->not_after) who->not_after = to;
    }
}

static ingot_status open_roots(const struct ig_roots *roots, X509_STORE **out, ingot_error *e)
{
    *out = X509_STORE_new();
    if (!*out) return ig_no_memory(e);
    if (roots->file && X509_STORE_load_file(*out, roots->file) != 1)
        return bad_cert(roots->file, INGOT_ERR_INPUT,
                        "cannot be read, or holds no certificates in PEM", e);
    if (roots->system && X509_STORE_set_default_paths(*out) != 1)
        return ig_fail(e, INGOT_ERR_IO, "the system's certificates cannot be read: %s",
                       ig_ssl_error());
    return INGOT_OK;
}

/* The caller judges times; what remains is whether the chain holds. */
static ingot_status verify(X509_STORE *store, X509 *leaf, STACK_OF(X509) * others, const char *path,
                           struct ig_signer *who, ingot_error *e)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    ingot_status status =
        ctx && X509_STORE_CTX_init(ctx, store, leaf, others) == 1 ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) {
        X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
        X509_VERIFY_PARAM_set_auth_level(param, 1);
        /* Who names an intermediate as what he trusts means it. */
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_PARTIAL_CHAIN);
        if (X509_verify_cert(ctx) == 1) {
            describe(leaf, X509_STORE_CTX_get0_chain(ctx), who);
        } else {
            char why[300], subject[200];
            name_of(X509_get_subject_name(leaf), subject, sizeof subject);
            snprintf(why, sizeof why, "the certificate of %s leads to no trusted root: %s", subject,
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
            status = bad_cert(path, INGOT_ERR_CHECK, why, e);
        }
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return status;
}

static ingot_status take_leaf_key(X509 *leaf, const char *path, struct ig_key *key, ingot_error *e)
{
    EVP_PKEY *pkey = X509_get_pubkey(leaf);
    if (!pkey) return bad_cert(path, INGOT_ERR_INPUT, "the certificate's key cannot be read", e);
    return ig_key_take(pkey, path, key, e);
}

ingot_status ig_chain_verify(const struct ig_bundle *b, const struct ig_roots *roots,
                             const char *path, struct ig_key *key, struct ig_signer *who,
                             ingot_error *e)
{
    X509_STORE *store = NULL;
    X509 *leaf = NULL;
    STACK_OF(X509) *others = sk_X509_new_null();
    ingot_status status = others ? INGOT_OK : ig_no_memory(e);
    *key = (struct ig_key){0};
    for (uint32_t i = 0; i < b->ncerts && status == INGOT_OK; i++) {
        X509 *x = decode(&b->certs[i]);
        if (!x) {
            status = bad_cert(path, INGOT_ERR_INPUT, "a certificate in it is none (DER)", e);
        } else if (i == 0) {
            leaf = x;
        } else if (!sk_X509_push(others, x)) {
            X509_free(x);
            status = ig_no_memory(e);
        }
    }
    if (status == INGOT_OK) status = open_roots(roots, &store, e);
    if (status == INGOT_OK) status = check_leaf(leaf, path, e);
    if (status == INGOT_OK) status = verify(store, leaf, others, path, who, e);
    if (status == INGOT_OK) status = take_leaf_key(leaf, path, key, e);
    X509_free(leaf);
    sk_X509_pop_free(others, X509_free);
    X509_STORE_free(store);
    return status;
}

/* ---- for those who sign ---- */

static ingot_status add_der(X509 *x, struct ig_bundle *b, ingot_error *e)
{
    unsigned char *der = NULL;
    if (b->ncerts == IG_CHAIN_MOST)
        return ig_fail(e, INGOT_ERR_INPUT, "more than %u certificates", IG_CHAIN_MOST);
    const int n = i2d_X509(x, &der);
    struct ig_bytes *c = &b->certs[b->ncerts];
    if (n > 0 && (c->data = malloc((size_t)n))) {
        memcpy(c->data, der, (size_t)n);
        c->n = (size_t)n;
        b->ncerts++;
    }
    OPENSSL_free(der);
    return c->data ? INGOT_OK : ig_no_memory(e);
}

/* The certificates of a PEM file; the first is `leaf` when key is given. */
static ingot_status add_pem(const char *path, const struct ig_key *key, struct ig_bundle *b,
                            ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    const uint32_t before = b->ncerts;
    return_if_error(ig_read_file(path, PEM_MOST, &text, &n, e));
    BIO *bio = BIO_new_mem_buf(text, (int)n);
    ingot_status status = bio ? INGOT_OK : ig_no_memory(e);
    while (status == INGOT_OK) {
        X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (!x) break;
        if (key && b->ncerts == 0) {
            status = check_leaf(x, path, e);
            if (status == INGOT_OK && X509_check_private_key(x, key->pkey) != 1)
                status = bad_cert(path, INGOT_ERR_INPUT, "is not the certificate of this key", e);
        }
        if (status == INGOT_OK) status = add_der(x, b, e);
        X509_free(x);
    }
    ERR_clear_error(); /* the end of the file is told as an error */
    BIO_free(bio);
    free(text);
    if (status == INGOT_OK && b->ncerts == before)
        status = bad_cert(path, INGOT_ERR_INPUT, "expected certificates in PEM", e);
    return status;
}

ingot_status ig_chain_read(const char *leaf, const char *rest, const struct ig_key *key,
                           struct ig_bundle *b, ingot_error *e)
{
    return_if_error(add_pem(leaf, key, b, e));
    return rest ? add_pem(rest, NULL, b, e) : INGOT_OK;
}
