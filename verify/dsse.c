/* SPDX-License-Identifier: Apache-2.0 */
/* DSSE's pre-authentication encoding, signed and checked: the type is part of what is signed. */
#include "verify/sign.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

const char *ig_ssl_error(void)
{
    const unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return reason ? reason : "no reason given";
}

static int encode_head(char *out, size_t cap, size_t n)
{
    return snprintf(out, cap, "DSSEv1 %zu %s %zu ", sizeof IG_INTOTO_TYPE - 1, IG_INTOTO_TYPE, n);
}

ingot_status ig_dsse_sign(const struct ig_key *k, const void *payload, size_t n,
                          struct ig_bytes *sig, ingot_error *e)
{
    char head[96];
    const int len = encode_head(head, sizeof head, n);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    *sig = (struct ig_bytes){malloc(IG_SIGNATURE_MOST), IG_SIGNATURE_MOST};
    ingot_status status = ctx && sig->data ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK && (EVP_DigestSignInit(ctx, NULL, k->md, NULL, k->pkey) != 1 ||
                               EVP_DigestSignUpdate(ctx, head, (size_t)len) != 1 ||
                               EVP_DigestSignUpdate(ctx, payload, n) != 1 ||
                               EVP_DigestSignFinal(ctx, sig->data, &sig->n) != 1))
        status = ig_fail(e, INGOT_ERR_IO, "cannot sign: %s", ig_ssl_error());
    EVP_MD_CTX_free(ctx);
    if (status == INGOT_OK) return status;
    free(sig->data);
    *sig = (struct ig_bytes){NULL, 0};
    return status;
}

ingot_status ig_dsse_verify(const struct ig_key *k, const void *payload, size_t n,
                            const struct ig_bytes *sig, bool *good, ingot_error *e)
{
    char head[96];
    const int len = encode_head(head, sizeof head, n);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    *good = false;
    ingot_status status = ctx ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK && (EVP_DigestVerifyInit(ctx, NULL, k->md, NULL, k->pkey) != 1 ||
                               EVP_DigestVerifyUpdate(ctx, head, (size_t)len) != 1 ||
                               EVP_DigestVerifyUpdate(ctx, payload, n) != 1))
        status = ig_fail(e, INGOT_ERR_IO, "cannot check a signature: %s", ig_ssl_error());
    if (status == INGOT_OK) *good = EVP_DigestVerifyFinal(ctx, sig->data, sig->n) == 1;
    (void)ig_ssl_error(); /* a signature that is none at all leaves a reason behind */
    EVP_MD_CTX_free(ctx);
    return status;
}
