/* SPDX-License-Identifier: Apache-2.0 */
/* ingot_trust.h, on top of what the commands use. */
#include "loader/load_receipt.h"
#include "verify/trust.h"

#include <stdlib.h>
#include <string.h>

struct ingot_receipt {
    struct ig_receipt r;
};

ingot_status ingot_receipt_begin(const char *store, const char *command,
                                 const ingot_receipt_options *options, ingot_receipt **out,
                                 ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    *out = NULL;
    if (options->size < sizeof *options)
        return ig_fail(e, INGOT_ERR_USAGE, "ingot_receipt_options: size %zu, expected %zu",
                       options->size, sizeof *options);
    if (!options->file) return ig_fail(e, INGOT_ERR_USAGE, "ingot_receipt_options: no file");
    const struct ig_receipt_options o = {
        .file = options->file,
        .key = options->key,
        .passphrase = {.fd = options->has_passphrase_fd ? options->passphrase_fd : -1,
                       .name = IG_PASSPHRASE_VARIABLE},
        .nonce = options->nonce,
        .inputs = options->inputs,
        .ninputs = options->ninputs,
        .arguments = options->arguments,
        .narguments = options->narguments};
    return_if_error(ig_store_open(store, false, &s, e));
    struct ingot_receipt *r = calloc(1, sizeof *r);
    const ingot_status status = r ? ig_receipt_begin(&r->r, &s, command, &o, e) : ig_no_memory(e);
    ig_store_close(&s);
    if (status == INGOT_OK)
        *out = r;
    else
        free(r);
    return status;
}

ingot_status ingot_receipt_load(ingot_receipt *receipt, const char *model, const ingot_load *load,
                                ingot_error *e)
{
    WITH_ERROR(e);
    struct ingot_load *l = (struct ingot_load *)load;
    return_if_error(ig_not_after_fork(l->pid, "load", e));
    pthread_mutex_lock(&l->lock);
    const bool done = l->done;
    pthread_mutex_unlock(&l->lock);
    if (!done) return ig_fail(e, INGOT_ERR_USAGE, "a receipt is of a load that has ended");
    return ig_load_receipt(&receipt->r, model, l, e);
}

ingot_status ingot_receipt_setting(ingot_receipt *receipt, const char *name, const char *value,
                                   ingot_error *e)
{
    WITH_ERROR(e);
    return ig_receipt_setting(&receipt->r, name, ig_text_json(value), e);
}

ingot_status ingot_receipt_output(ingot_receipt *receipt, const char *name, const void *data,
                                  size_t bytes, ingot_error *e)
{
    WITH_ERROR(e);
    uint8_t sha256[IG_HASH];
    ig_sha256(sha256, data, bytes);
    return ig_receipt_output(&receipt->r, name, sha256, bytes, e);
}

ingot_status ingot_receipt_end(ingot_receipt *receipt, ingot_error *e)
{
    WITH_ERROR(e);
    return ig_receipt_end(&receipt->r, e);
}

ingot_status ingot_trust_check(const char *store, const char *model, const char *keyring,
                               uint8_t digest[INGOT_DIGEST_BYTES], char **report, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *o = NULL;
    size_t n;
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_trust_check(&s, model, keyring, digest, &o, e);
    ig_store_close(&s);
    if (status == INGOT_OK && report) status = ig_json_dump(o, report, &n, e);
    json_decref(o);
    return status;
}

void ingot_receipt_free(ingot_receipt *receipt)
{
    if (!receipt) return;
    ig_receipt_free(&receipt->r);
    free(receipt);
}

ingot_status ingot_receipt_verify(const char *store, const char *file, const char *key,
                                  const char *output, char **report, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *o = NULL;
    size_t n;
    const struct ig_receipt_check job = {
        .file = file, .signer.key = key, .allow_unsigned = key == NULL, .output = output};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_receipt_verify(&s, &job, &o, e);
    ig_store_close(&s);
    const bool ok = json_is_true(json_object_get(o, "ok"));
    if (status == INGOT_OK && report) status = ig_json_dump(o, report, &n, e);
    json_decref(o);
    if (status == INGOT_OK && !ok)
        status = ig_fail(e, INGOT_ERR_CHECK, "%s: the receipt does not hold",
                         ig_esc(file, strlen(file)).s);
    return status;
}
