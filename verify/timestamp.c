/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 3161: a time-stamping authority saw this signature at that time.  The authority's own
 * certificate is judged at that time too: it need not live as long as what it has stamped. */
#include "verify/sign.h"

#include <openssl/err.h>
#include <openssl/ts.h>
#include <openssl/x509_vfy.h>
#include <string.h>
#include <time.h>

static bool time_of(TS_RESP *response, int64_t *when)
{
    struct tm tm;
    TS_TST_INFO *info = TS_RESP_get_tst_info(response);
    const ASN1_GENERALIZEDTIME *t = info ? TS_TST_INFO_get_time(info) : NULL;
    if (!t || ASN1_TIME_to_tm(t, &tm) != 1) return false;
    *when = (int64_t)timegm(&tm);
    return true;
}

static X509_STORE *open_store(const char *roots, int64_t when)
{
    X509_STORE *store = X509_STORE_new();
    if (store && X509_STORE_load_file(store, roots) == 1) {
        X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), (time_t)when);
        return store;
    }
    X509_STORE_free(store);
    return NULL;
}

static bool is_good(const struct ig_bytes *stamp, const struct ig_bytes *sig, const char *roots,
                    int64_t *when)
{
    const unsigned char *at = stamp->data;
    bool good = false;
    TS_RESP *response = d2i_TS_RESP(NULL, &at, (long)stamp->n);
    TS_VERIFY_CTX *ctx = TS_VERIFY_CTX_new();
    if (response && ctx && at == stamp->data + stamp->n && time_of(response, when)) {
        /* The context owns both. */
        X509_STORE *store = open_store(roots, *when);
        BIO *data = BIO_new_mem_buf(sig->data, (int)sig->n);
        TS_VERIFY_CTX_set_flags(ctx, TS_VFY_VERSION | TS_VFY_SIGNATURE | TS_VFY_DATA);
        TS_VERIFY_CTX_set_store(ctx, store);
        TS_VERIFY_CTX_set_data(ctx, data);
        good = store && data && TS_RESP_verify_response(ctx, response) == 1;
    }
    TS_VERIFY_CTX_free(ctx);
    TS_RESP_free(response);
    return good;
}

ingot_status ig_stamp_verify(const struct ig_bundle *b, const char *roots, const char *path,
                             int64_t *when, ingot_error *e)
{
    for (uint32_t i = 0; i < b->nstamps; i++) {
        const bool good = is_good(&b->stamps[i], &b->sig, roots, when);
        if (good) {
            ERR_clear_error();
            return INGOT_OK;
        }
    }
    const char *why = b->nstamps ? ig_ssl_error() : "there is none";
    ig_fail(e, INGOT_ERR_CHECK, "%s: no timestamp of a trusted authority: %s",
            ig_esc(path, strlen(path)).s, why);
    return ig_at(e, path, NULL, 0);
}
