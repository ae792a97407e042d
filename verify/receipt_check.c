/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading receipts.  Three questions are kept apart: who says it, are the things it names here,
 * and is this what came out.  Without a signature the first has no answer, and nothing is verified.
 */
#include "verify/fields.h"
#include "verify/receipt.h"
#include "verify/signed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIPT_MOST ((size_t)16 << 20)

struct checking {
    const struct ig_store *s;
    const struct ig_receipt_check *job;
    struct check c; /* collects findings */
    json_t *statement, *predicate, *report;
};

static void bad(struct checking *k, const char *kind, const char *text)
{
    ig_check_bad(&k->c, &(struct finding){.kind = kind, .offset = UINT64_MAX, .text = text});
}

/* ---- who says it ---- */

ingot_status ig_receipt_parse(const char *text, size_t n, const char *path, json_t **statement,
                              json_t **predicate, ingot_error *e)
{
    const struct ig_at at = {path, ""}, in = {path, "predicate"};
    static const char *const known[] = {"_type", "subject", "predicateType", "predicate", NULL};
    json_t *v;
    return_if_error(ig_json_load(text, n, path, 0, statement, e));
    return_if_error(ig_field_is(&at, *statement, "_type", IG_STATEMENT_TYPE, e));
    return_if_error(ig_field_is(&at, *statement, "predicateType", IG_RECEIPT_TYPE, e));
    return_if_error(ig_field_only(&at, *statement, known, e));
    return_if_error(ig_field(&at, *statement, "subject", JSON_ARRAY, &v, e));
    return_if_error(ig_field(&at, *statement, "predicate", JSON_OBJECT, predicate, e));
    static const char *const texts[] = {"command", "started", "ended"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *ignored;
        return_if_error(ig_field_text(&in, *predicate, texts[i], &ignored, e));
    }
    return_if_error(ig_field(&in, *predicate, "program", JSON_OBJECT, &v, e));
    return ig_field(&in, *predicate, "inputs", JSON_ARRAY, &v, e);
}

static ingot_status parse(struct checking *k, const char *text, size_t n, ingot_error *e)
{
    return ig_receipt_parse(text, n, k->job->file, &k->statement, &k->predicate, e);
}

static ingot_status open_signed(struct checking *k, ingot_error *e)
{
    struct ig_signature job = k->job->signer;
    struct ig_verify v = {.signature = &job};
    struct ig_signed s = {0};
    bool sealed = false;
    job.bundle = k->job->file;
    k->c.v = &v;
    ingot_status status = ig_signed_envelope(&k->c, k->job->file, &s, &sealed, e);
    k->c.v = NULL;
    if (status == INGOT_OK) {
        json_object_set_new(k->report, "signature", json_string(sealed ? "good" : "bad"));
        json_object_set_new(k->report, "signer", ig_signed_json(&s));
    }
    /* Whose word it is not, is not asked what it says. */
    if (status == INGOT_OK && sealed)
        status = parse(k, (const char *)s.bundle.payload.data, s.bundle.payload.n, e);
    ig_signed_close(&s);
    return status;
}

static ingot_status open_receipt(struct checking *k, ingot_error *e)
{
    const struct ig_receipt_check *job = k->job;
    const bool asked = job->signer.key || job->signer.roots.file || job->signer.roots.system;
    char *text = NULL;
    size_t n = 0;
    json_t *o = NULL;
    ingot_status status = ig_read_file(job->file, RECEIPT_MOST, &text, &n, e);
    if (status == INGOT_OK) status = ig_json_load(text, n, job->file, 0, &o, e);
    const bool is_signed = json_object_get(o, "mediaType") != NULL;
    if (status == INGOT_OK && is_signed && !asked)
        status = ig_fail(e, INGOT_ERR_USAGE,
                         "%s: is signed: give --key PUBLIC or --certificate-chain ROOTS",
                         ig_esc(job->file, strlen(job->file)).s);
    if (status == INGOT_OK && !is_signed) {
        json_object_set_new(k->report, "signature", json_string("none"));
        if (asked) bad(k, "signature", "is not signed, and a signature was asked for");
        if (!asked && !job->allow_unsigned)
            bad(k, "signature", "is not signed: anybody may have written it (--allow-unsigned)");
        status = parse(k, text, n, e);
    } else if (status == INGOT_OK) {
        status = open_signed(k, e);
    }
    json_decref(o);
    free(text);
    return status;
}

/* ---- are the things it names here ---- */

/* Does the store have that pack, and are its tables that digest's? */
static ingot_status find_pack(const struct checking *k, const uint8_t digest[IG_HASH],
                              struct ig_pack *p, bool *present)
{
    ingot_error why = {0};
    char *path = ig_store_pack_path(k->s, digest);
    ingot_status status = path ? ig_pack_open(path, p, &why) : INGOT_ERR_NO_MEMORY;
    if (status == INGOT_OK) status = ig_pack_prove(p, digest, &why);
    free(path);
    *present = status == INGOT_OK;
    return status == INGOT_ERR_NO_MEMORY ? status : INGOT_OK;
}

static ingot_status check_model(struct checking *k, ingot_error *e)
{
    const struct ig_at at = {k->job->file, "predicate.model"};
    uint8_t digest[IG_HASH];
    struct ig_pack p = {.fd = -1};
    json_t *model, *v;
    bool present = false;
    return_if_error(ig_field_maybe(&(struct ig_at){k->job->file, "predicate"}, k->predicate,
                                   "model", JSON_OBJECT, &model, e));
    if (!model) return INGOT_OK;
    v = json_object_get(model, "digest");
    if (!json_is_null(v)) {
        return_if_error(ig_field_digest(&at, model, "digest", "fsverity-sha256:", digest, e));
        if (find_pack(k, digest, &p, &present) != INGOT_OK) return ig_no_memory(e);
        ig_pack_close(&p);
    }
    json_t *o = json_copy(model);
    json_object_set_new(o, "present", json_boolean(present));
    if (!present)
        bad(k, "model", json_is_null(v) ? "was held to no digest" : "is not in the store");
    return json_object_set_new(k->report, "model", o) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* The set that a pinned input came from: is it in the store, with a file of that hash? */
static ingot_status find_input(const struct checking *k, const uint8_t set[IG_HASH],
                               const uint8_t sha256[IG_HASH], bool *present, ingot_error *e)
{
    struct ig_pack p = {.fd = -1};
    bool there = false;
    *present = false;
    if (find_pack(k, set, &p, &there) != INGOT_OK) return ig_no_memory(e);
    for (uint32_t i = 0; there && i < p.nblobs && !*present; i++) {
        struct ig_blob b;
        ig_pack_blob(&p, i, &b);
        *present = memcmp(b.sha256, sha256, IG_HASH) == 0;
    }
    ig_pack_close(&p);
    return INGOT_OK;
}

/* A file that was not pinned is only known by its hash. */
static ingot_status check_input(struct checking *k, const json_t *in, json_t *list, ingot_error *e)
{
    const struct ig_at at = {k->job->file, "predicate.inputs"};
    uint8_t sha256[IG_HASH], set[IG_HASH];
    const char *name;
    const bool pinned = json_object_get(in, "set") != NULL;
    bool present = false;
    if (!json_is_object(in)) return ig_field_bad(&at, "", e, "expected objects");
    return_if_error(ig_field_text(&at, in, "name", &name, e));
    return_if_error(ig_field_digest(&at, in, "sha256", "", sha256, e));
    if (pinned) {
        return_if_error(ig_field_digest(&at, in, "set", "fsverity-sha256:", set, e));
        return_if_error(find_input(k, set, sha256, &present, e));
        char text[IG_ESC_MAX + 64];
        snprintf(text, sizeof text, "%s is not in the store", ig_esc(name, strlen(name)).s);
        if (!present) bad(k, "input", text);
    }
    json_t *o = json_copy((json_t *)in);
    if (pinned) json_object_set_new(o, "present", json_boolean(present));
    return json_array_append_new(list, o) == 0 ? INGOT_OK : ig_no_memory(e);
}

static ingot_status check_inputs(struct checking *k, ingot_error *e)
{
    size_t i;
    json_t *in, *list = json_array();
    if (json_object_set_new(k->report, "inputs", list) != 0) return ig_no_memory(e);
    json_array_foreach(json_object_get(k->predicate, "inputs"), i, in)
        return_if_error(check_input(k, in, list, e));
    return INGOT_OK;
}

/* ---- is this what came out ---- */

static ingot_status hash_output(const char *path, uint8_t sha256[IG_HASH], ingot_error *e)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    const ingot_status status = ig_sha256_fd(fd, path, sha256, NULL, e);
    close(fd);
    return status;
}

static ingot_status check_output(struct checking *k, ingot_error *e)
{
    const struct ig_at at = {k->job->file, "predicate.output"};
    uint8_t expected[IG_HASH], found[IG_HASH];
    json_t *output;
    return_if_error(ig_field_maybe(&(struct ig_at){k->job->file, "predicate"}, k->predicate,
                                   "output", JSON_OBJECT, &output, e));
    if (!output && k->job->output) bad(k, "output", "nothing came out of this run");
    if (!output) return INGOT_OK;
    return_if_error(ig_field_digest(&at, output, "sha256", "", expected, e));
    if (k->job->output) return_if_error(hash_output(k->job->output, found, e));
    json_t *o = json_copy(output);
    if (k->job->output) {
        const bool equal = memcmp(expected, found, IG_HASH) == 0;
        json_object_set_new(o, "equal", json_boolean(equal));
        if (!equal)
            ig_check_bad(&k->c, &(struct finding){.kind = "output",
                                                  .offset = UINT64_MAX,
                                                  .expected = expected,
                                                  .found = found,
                                                  .hash_len = IG_HASH,
                                                  .text = "is not what came out"});
    }
    return json_object_set_new(k->report, "output", o) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* ---- the verdict ---- */

static void check_rest(struct checking *k)
{
    const json_t *verification = json_object_get(k->predicate, "verification");
    const char *verdict = json_string_value(json_object_get(verification, "verdict"));
    const char *nonce = json_string_value(json_object_get(k->predicate, "nonce"));
    if (verdict && strcmp(verdict, "failed") == 0)
        bad(k, "verification", "the run itself found the model not to be what it should be");
    if (k->job->nonce && (!nonce || strcmp(nonce, k->job->nonce) != 0))
        bad(k, "nonce", nonce ? "is another one" : "there is none");
}

static ingot_status finish(struct checking *k, ingot_error *e)
{
    const char *signature = json_string_value(json_object_get(k->report, "signature"));
    const bool ok = json_array_size(k->c.bad) == 0;
    json_object_set_new(k->report, "receipt", ig_text_json(k->job->file));
    json_object_set_new(k->report, "ok", json_boolean(ok));
    json_object_set_new(k->report, "word",
                        json_string(!ok                              ? "FAILED"
                                    : strcmp(signature, "good") == 0 ? "verified"
                                                                     : "consistent"));
    if (k->statement) json_object_set(k->report, "statement", k->statement);
    return json_object_set(k->report, "bad", k->c.bad) == 0 ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_receipt_verify(const struct ig_store *s, const struct ig_receipt_check *job,
                               json_t **report, ingot_error *e)
{
    struct checking k = {.s = s, .job = job, .c.bad = json_array(), .report = json_object()};
    pthread_mutex_init(&k.c.lock, NULL);
    ingot_status status = k.c.bad && k.report ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) status = open_receipt(&k, e);
    if (status == INGOT_OK && k.predicate) {
        status = check_model(&k, e);
        if (status == INGOT_OK) status = check_inputs(&k, e);
        if (status == INGOT_OK) status = check_output(&k, e);
        if (status == INGOT_OK) check_rest(&k);
    }
    if (status == INGOT_OK) status = finish(&k, e);
    if (status == INGOT_OK) *report = json_incref(k.report);
    json_decref(k.report);
    json_decref(k.statement);
    json_decref(k.c.bad);
    pthread_mutex_destroy(&k.c.lock);
    return status;
}
