/* SPDX-License-Identifier: Apache-2.0 */
/* The signature and who made it, before anything of the model is read. */
#include "verify/signed.h"

#include "store/store.h"
#include "verify/when.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void bad(struct check *c, const char *text)
{
    ig_check_bad(c, &(struct finding){.kind = "signature", .offset = UINT64_MAX, .text = text});
}

/* A file by its path; a bare name may be that of a bundle kept beside the pack. */
static ingot_status find_bundle(const char *pack, const char *name, char **path, ingot_error *e)
{
    struct stat st;
    bool there = true;
    if (!strchr(name, '/')) return_if_error(ig_stat(name, &st, &there, e));
    *path = there ? strdup(name) : ig_sigs_path(pack, name);
    return *path ? INGOT_OK : ig_no_memory(e);
}

/* Which way the caller wants to be sure, and which the bundle offers. */
static ingot_status check_flow(const struct ig_signed *s, ingot_error *e)
{
    const bool by_key = s->job->key != NULL;
    if (by_key == (s->bundle.ncerts == 0)) return INGOT_OK;
    ig_fail(e, INGOT_ERR_INPUT, "%s: %s", ig_esc(s->path, strlen(s->path)).s,
            by_key ? "was signed with a certificate: give --certificate-chain, not --key"
                   : "was signed with a bare key: give --key, not --certificate-chain");
    return ig_at(e, s->path, NULL, 0);
}

static ingot_status take_signer(struct check *c, struct ig_signed *s, ingot_error *e)
{
    if (!s->job->key)
        return ig_chain_verify(&s->bundle, &s->job->roots, s->path, &s->key, &s->who, e);
    return_if_error(ig_key_read_public(s->job->key, &s->key, e));
    if (s->bundle.hint && strcmp(s->bundle.hint, s->key.hint) != 0) {
        char text[IG_ESC_MAX + 128];
        snprintf(text, sizeof text, "made with the key %s, which is not the one given (%s)",
                 ig_esc(s->bundle.hint, strlen(s->bundle.hint)).s, s->key.hint);
        bad(c, text);
    }
    return INGOT_OK;
}

/* The present; what the operator states; or what an authority has proven. */
static ingot_status find_time(struct ig_signed *s, ingot_error *e)
{
    s->when = s->job->has_at ? s->job->at : (int64_t)time(NULL);
    s->how = s->job->has_at ? "stated by operator" : "now";
    if (!s->job->tsa_roots) return INGOT_OK;
    int64_t proven;
    return_if_error(ig_stamp_verify(&s->bundle, s->job->tsa_roots, s->path, &proven, e));
    s->when = proven;
    s->how = "proven by a timestamp";
    return INGOT_OK;
}

static void judge_time(struct check *c, const struct ig_signed *s)
{
    char text[200], limit[32], at[32];
    if (!s->bundle.ncerts) return; /* keys do not age */
    const bool expired = s->when > s->who.not_after, early = s->when < s->who.not_before;
    if (!expired && !early) return;
    ig_when_text(expired ? s->who.not_after : s->who.not_before, limit);
    ig_when_text(s->when, at);
    snprintf(text, sizeof text, "signature good, certificate %s %s (judged at %s, %s)",
             expired ? "expired" : "valid only from", limit, at, s->how);
    bad(c, text);
}

static ingot_status judge(struct check *c, struct ig_signed *s, bool *genuine, ingot_error *e)
{
    const struct ig_bytes *p = &s->bundle.payload;
    return_if_error(take_signer(c, s, e));
    return_if_error(ig_dsse_verify(&s->key, p->data, p->n, &s->bundle.sig, genuine, e));
    if (!*genuine) {
        bad(c, "is not over this statement, or not by this key");
        return INGOT_OK;
    }
    return_if_error(find_time(s, e));
    judge_time(c, s);
    return INGOT_OK;
}

/* *genuine: made by that key; there may still be findings about whose it is. */
static ingot_status open_envelope(struct check *c, const char *pack, struct ig_signed *s,
                                  bool *genuine, ingot_error *e)
{
    *genuine = false;
    *s = (struct ig_signed){.job = c->v->signature, .how = ""};
    return_if_error(find_bundle(pack, s->job->bundle, &s->path, e));
    return_if_error(ig_bundle_read(s->path, &s->bundle, e));
    return_if_error(check_flow(s, e));
    const ingot_status status = judge(c, s, genuine, e);
    if (status != INGOT_ERR_CHECK) return status;
    bad(c, e->message); /* no trusted root, no timestamp: the answer, not a failure */
    *genuine = false;
    return INGOT_OK;
}

ingot_status ig_signed_envelope(struct check *c, const char *pack, struct ig_signed *s,
                                bool *sealed, ingot_error *e)
{
    return_if_error(open_envelope(c, pack, s, sealed, e));
    s->good = *sealed = *sealed && !ig_check_failed(c);
    return INGOT_OK;
}

ingot_status ig_signed_open(struct check *c, const char *pack, struct ig_signed *s, ingot_error *e)
{
    bool genuine;
    return_if_error(open_envelope(c, pack, s, &genuine, e));
    if (!genuine) return INGOT_OK;
    const struct ig_bytes *p = &s->bundle.payload;
    return_if_error(ig_statement_parse((const char *)p->data, p->n, s->path, &s->statement, e));
    s->good = s->statement.nresources > 0 && !ig_check_failed(c);
    return INGOT_OK;
}

void ig_signed_close(struct ig_signed *s)
{
    ig_statement_free(&s->statement);
    ig_bundle_free(&s->bundle);
    ig_key_free(&s->key);
    free(s->path);
    *s = (struct ig_signed){0};
}

/* ---- the report ---- */

static json_t *time_json(int64_t t)
{
    char text[32];
    ig_when_text(t, text);
    return json_string(text);
}

json_t *ig_signed_json(const struct ig_signed *s)
{
    json_t *o = json_pack("{s:o,s:o,s:b}", "bundle", ig_text_json(s->path), "bundle_sha256",
                          ig_digest_json("", s->bundle.sha256), "good", s->good);
    if (!o) return NULL;
    if (s->key.curve) {
        json_object_set_new(o, "curve", json_string(s->key.curve));
        json_object_set_new(o, "key", json_sprintf("sha256:%s", s->key.hint));
    }
    if (*s->who.subject) {
        json_t *cert =
            json_pack("{s:s,s:s,s:s,s:o,s:o}", "subject", s->who.subject, "issuer", s->who.issuer,
                      "sha256", s->who.fingerprint, "not_before", time_json(s->who.not_before),
                      "not_after", time_json(s->who.not_after));
        json_object_set_new(o, "certificate", cert);
        if (*s->how) { /* a signature that is not good has not come so far */
            json_object_set_new(o, "time", time_json(s->when));
            json_object_set_new(o, "time_is", json_string(s->how));
        }
    }
    if (s->key.curve && !s->bundle.ncerts && !s->bundle.hint)
        json_object_set_new(o, "note", json_string("the bundle does not say which key made it"));
    if (s->bundle.has_log)
        json_object_set_new(o, "log", json_string("entries of a transparency log, not looked at"));
    return o;
}
