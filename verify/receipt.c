/* SPDX-License-Identifier: Apache-2.0 */
/* Writing receipts: what can be known before the work is, and the file is new. */
#include "verify/receipt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define NONCE_MOST 1024

ingot_status ig_receipt_set(struct ig_receipt *r, const char *key, json_t *v, ingot_error *e)
{
    return json_object_set_new(r->predicate, key, v) == 0 ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_receipt_setting(struct ig_receipt *r, const char *key, json_t *v, ingot_error *e)
{
    if (!json_object_get(r->predicate, "settings"))
        return_if_error(ig_receipt_set(r, "settings", json_object(), e));
    json_t *all = json_object_get(r->predicate, "settings");
    return json_object_set_new(all, key, v) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* "2026-12-07T11:29:15.123Z" */
static ingot_status set_now(struct ig_receipt *r, const char *key, ingot_error *e)
{
    struct timespec now;
    struct tm tm;
    char day[32], text[48];
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &tm));
    snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1000000);
    return ig_receipt_set(r, key, json_string(text), e);
}

static ingot_status add_input(struct ig_receipt *r, const struct ig_store *s, const char *arg,
                              ingot_error *e)
{
    struct ig_input in;
    return_if_error(ig_input_hash(s, arg, &in, e));
    json_t *o = json_pack("{s:s,s:o,s:I,s:o*}", "name", in.what, "sha256",
                          ig_digest_json("", in.sha256), "bytes", (json_int_t)in.bytes, "set",
                          in.pinned ? ig_digest_json("fsverity-sha256:", in.set) : NULL);
    ig_input_free(&in);
    json_t *list = json_object_get(r->predicate, "inputs");
    return json_array_append_new(list, o) == 0 ? INGOT_OK : ig_no_memory(e);
}

static ingot_status add_arguments(struct ig_receipt *r, const struct ig_receipt_options *o,
                                  ingot_error *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < o->narguments; i++)
        if (json_array_append_new(list, ig_text_json(o->arguments[i])) != 0) break;
    if (json_array_size(list) == o->narguments) return ig_receipt_set(r, "arguments", list, e);
    json_decref(list);
    return ig_no_memory(e);
}

/* A nonce is the asker's: it comes back as it was given, or not at all. */
static ingot_status add_nonce(struct ig_receipt *r, const char *nonce, ingot_error *e)
{
    const size_t n = nonce ? strlen(nonce) : 0;
    if (!nonce) return INGOT_OK;
    if (n == 0 || n > NONCE_MOST || !ig_utf8_valid(nonce, n))
        return ig_fail(e, INGOT_ERR_USAGE, "nonce: expected 1 to %d bytes of UTF-8", NONCE_MOST);
    return ig_receipt_set(r, "nonce", json_string(nonce), e);
}

static ingot_status check_place(const char *file, ingot_error *e)
{
    struct stat st;
    if (lstat(file, &st) == 0) {
        ig_fail(e, INGOT_ERR_EXISTS, "%s: exists already, and a receipt is a new file",
                ig_esc(file, strlen(file)).s);
        return ig_at(e, file, NULL, 0);
    }
    char *dir = strdup(file);
    if (!dir) return ig_no_memory(e);
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    const bool there = stat(slash ? dir : ".", &st) == 0 && S_ISDIR(st.st_mode);
    free(dir);
    return there ? INGOT_OK
                 : ig_fail_sys(e, ENOENT, "%s: no folder for it", ig_esc(file, strlen(file)).s);
}

ingot_status ig_receipt_begin(struct ig_receipt *r, const struct ig_store *s, const char *command,
                              const struct ig_receipt_options *o, ingot_error *e)
{
    json_t *program = NULL;
    *r = (struct ig_receipt){.has_key = o->key != NULL, .file = strdup(o->file)};
    r->subject = json_array();
    r->predicate = json_pack("{s:s,s:[]}", "command", command, "inputs");
    ingot_status status = r->file && r->subject && r->predicate ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) status = check_place(o->file, e);
    if (status == INGOT_OK && o->key)
        status = ig_key_read_private(o->key, &o->passphrase, &r->key, &r->loose, e);
    if (status == INGOT_OK) status = ig_program_json(&program, e);
    if (status == INGOT_OK) status = ig_receipt_set(r, "program", program, e);
    if (status == INGOT_OK) status = add_arguments(r, o, e);
    if (status == INGOT_OK) status = add_nonce(r, o->nonce, e);
    for (size_t i = 0; i < o->ninputs && status == INGOT_OK; i++)
        status = add_input(r, s, o->inputs[i], e);
    if (status == INGOT_OK) status = set_now(r, "started", e);
    if (status != INGOT_OK) ig_receipt_free(r);
    return status;
}

ingot_status ig_receipt_model(struct ig_receipt *r, const char *name, const uint8_t *digest,
                              const uint8_t content[IG_HASH], ingot_error *e)
{
    json_t *o = json_pack("{s:o,s:o,s:o}", "name", ig_text_json(name), "digest",
                          digest ? ig_digest_json("fsverity-sha256:", digest) : json_null(),
                          "content", ig_digest_json("ingot-content-v1:", content));
    return_if_error(ig_receipt_set(r, "model", o, e));
    json_array_clear(r->subject);
    if (!digest) return INGOT_OK;
    json_t *subject = json_pack("{s:o,s:{s:o}}", "name", ig_text_json(name), "digest",
                                "fsverity-sha256", ig_digest_json("", digest));
    return json_array_append_new(r->subject, subject) == 0 ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_receipt_output(struct ig_receipt *r, const char *name,
                               const uint8_t sha256[IG_HASH], uint64_t bytes, ingot_error *e)
{
    return_if_error(
        ig_receipt_set(r, "output",
                       json_pack("{s:o,s:o,s:I}", "name", ig_text_json(name), "sha256",
                                 ig_digest_json("", sha256), "bytes", (json_int_t)bytes),
                       e));
    json_t *subject = json_pack("{s:o,s:{s:o}}", "name", ig_text_json(name), "digest", "sha256",
                                ig_digest_json("", sha256));
    json_array_clear(r->subject);
    return json_array_append_new(r->subject, subject) == 0 ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_receipt_end(struct ig_receipt *r, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    ingot_status status = set_now(r, "ended", e);
    json_t *statement =
        json_pack("{s:s,s:O,s:s,s:O}", "_type", IG_STATEMENT_TYPE, "subject", r->subject,
                  "predicateType", IG_RECEIPT_TYPE, "predicate", r->predicate);
    if (status == INGOT_OK && !statement) status = ig_no_memory(e);
    if (status == INGOT_OK) status = ig_seal(r->has_key ? &r->key : NULL, statement, &text, &n, e);
    if (status == INGOT_OK) status = ig_write_new(r->file, 0666, text, n, e);
    json_decref(statement);
    free(text);
    return status;
}

void ig_receipt_free(struct ig_receipt *r)
{
    json_decref(r->subject);
    json_decref(r->predicate);
    if (r->has_key) ig_key_free(&r->key);
    free(r->file);
    *r = (struct ig_receipt){0};
}
