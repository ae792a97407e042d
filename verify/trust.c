/* SPDX-License-Identifier: Apache-2.0 */
/* A model against the rules: which signature beside it, by whom, says that it is this pack. */
#include "verify/trust.h"

#include "verify/signed.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How close a refused model came; the closest is told. */
enum close { NO_RULE, NO_BUNDLE, NOT_BY_IT, NOT_THIS_PACK, NAMES_NO_PACK };
struct asking {
    const struct ig_store *s;
    const char *model;
    struct ig_ref ref;
    struct ig_trust trust;
    char **bundles;
    size_t nbundles;
    enum close close;
    char why[800];
    json_t *accepted;
};

static void came(struct asking *a, enum close close, const char *bundle, const char *text)
{
    if (close < a->close || (close == a->close && *a->why)) return;
    a->close = close;
    snprintf(a->why, sizeof a->why, "%s%s%.500s", bundle ? ig_esc(bundle, strlen(bundle)).s : "",
             bundle ? ": " : "", text);
}

static bool lists(const struct ig_rule *r, const uint8_t digest[IG_HASH])
{
    for (size_t i = 0; i < r->ndigests; i++)
        if (memcmp(r->digests[i], digest, IG_HASH) == 0) return true;
    return false;
}

/* Given by digest or path a model has no name that a rule could speak of, but for that of all. */
static bool applies(const struct asking *a, const struct ig_rule *r, int64_t now)
{
    const bool listed = lists(r, a->ref.digest), all = strcmp(r->name, "*") == 0;
    if (r->ndigests && !listed) return false;
    if ((r->has_before && now < r->before) || (r->has_after && now > r->after)) return false;
    if (a->ref.name) return all || fnmatch(r->name, a->ref.name, 0) == 0;
    return all || listed;
}

static ingot_status refuse_denied(const struct asking *a, ingot_error *e)
{
    char hex[2 * IG_HASH + 1];
    for (size_t i = 0; i < a->trust.nrules; i++) {
        const struct ig_rule *r = &a->trust.rules[i];
        if (r->kind != IG_RULE_DENY || !lists(r, a->ref.digest)) continue;
        ig_hex(hex, a->ref.digest, IG_HASH);
        return ig_fail(e, INGOT_ERR_CHECK, "%s: %s denies fsverity-sha256:%s", a->model, r->where,
                       hex);
    }
    return INGOT_OK;
}

/* ---- one bundle and one rule ---- */

/* Does the payload, whose signer is the rule's, speak of this pack? */
static ingot_status check_payload(struct asking *a, const struct ig_signed *s, const char *bundle,
                                  const char **kind, ingot_error *e)
{
    const char *text = (const char *)s->bundle.payload.data;
    const size_t n = s->bundle.payload.n;
    uint8_t pack[IG_HASH];
    bool endorsement, named = true;
    struct ig_statement st = {0};
    *kind = NULL;
    return_if_error(ig_endorsement_parse(text, n, s->path, &endorsement, pack, e));
    if (!endorsement) {
        return_if_error(ig_statement_parse(text, n, s->path, &st, e));
        named = st.has_pack;
        memcpy(pack, st.pack, IG_HASH);
        ig_statement_free(&st);
    }
    if (!named)
        came(a, NAMES_NO_PACK, bundle,
             "is good, but over files, and does not name the pack: ingot verify --signature BUNDLE "
             "--key PUBLIC --endorse KEY MODEL checks them, and says so");
    else if (memcmp(pack, a->ref.digest, IG_HASH) != 0)
        came(a, NOT_THIS_PACK, bundle, "is good, and of another pack");
    else
        *kind = endorsement ? "endorsement" : "signature";
    return INGOT_OK;
}

static json_t *answer(const struct ig_rule *r, const struct ig_signed *s, const char *bundle,
                      const char *kind)
{
    return json_pack(
        "{s:s,s:o,s:s,s:o}", "rule", r->where, "bundle", ig_text_json(bundle), "kind", kind, "by",
        *s->who.subject ? json_string(s->who.subject) : json_sprintf("sha256:%s", s->key.hint));
}

/* What is wrong with a bundle is why it does not count, and no failure. */
static ingot_status try_bundle(struct asking *a, const struct ig_rule *r, const char *bundle,
                               ingot_error *e)
{
    const struct ig_trust_key *k = ig_trust_key(&a->trust, r);
    char *path = ig_sigs_path(a->ref.path, bundle);
    struct ig_signature job = {
        .bundle = path, .key = k->is_ca ? NULL : k->path, .roots.file = k->is_ca ? k->path : NULL};
    struct ig_verify v = {.signature = &job};
    struct check c = {.v = &v, .bad = json_array()};
    struct ig_signed s = {0};
    const char *kind = NULL;
    bool sealed = false;
    pthread_mutex_init(&c.lock, NULL);
    ingot_status status =
        path && c.bad ? ig_signed_envelope(&c, a->ref.path, &s, &sealed, e) : ig_no_memory(e);
    if (status == INGOT_OK && !sealed) {
        const json_t *text = json_object_get(json_array_get(c.bad, 0), "text");
        came(a, NOT_BY_IT, bundle, text ? json_string_value(text) : "is not good");
    }
    if (status == INGOT_OK && sealed) status = check_payload(a, &s, bundle, &kind, e);
    if (status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED) {
        came(a, NOT_BY_IT, NULL, e->message);
        status = INGOT_OK;
    }
    if (status == INGOT_OK && kind && !(a->accepted = answer(r, &s, bundle, kind)))
        status = ig_no_memory(e);
    ig_signed_close(&s);
    pthread_mutex_destroy(&c.lock);
    json_decref(c.bad);
    free(path);
    return status;
}

/* ---- all of them ---- */

static ingot_status try_rules(struct asking *a, ingot_error *e)
{
    const int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < a->trust.nrules && !a->accepted; i++) {
        const struct ig_rule *r = &a->trust.rules[i];
        if (r->kind == IG_RULE_DENY || !applies(a, r, now)) continue;
        if (!a->nbundles) came(a, NO_BUNDLE, NULL, "there is no signature beside it");
        for (size_t k = 0; k < a->nbundles && !a->accepted; k++)
            return_if_error(try_bundle(a, r, a->bundles[k], e));
    }
    return INGOT_OK;
}

static ingot_status ask(struct asking *a, const char *folder, ingot_error *e)
{
    return_if_error(ig_trust_open(a->s, folder, &a->trust, e));
    return_if_error(ig_store_resolve(a->s, a->model, &a->ref, e));
    if (!a->ref.has_digest)
        return ig_fail(e, INGOT_ERR_CHECK,
                       "%s: nothing says what its digest must be, so no signature can be of it",
                       a->model);
    return_if_error(refuse_denied(a, e));
    return_if_error(ig_sigs_list(a->ref.path, &a->bundles, &a->nbundles, e));
    return_if_error(try_rules(a, e));
    if (a->accepted) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_CHECK, "%s: no rule of %s accepts it: %s", a->model,
                   a->trust.folders, *a->why ? a->why : "none is about this model");
}

ingot_status ig_trust_check(const struct ig_store *s, const char *model, const char *folder,
                            uint8_t digest[IG_HASH], json_t **report, ingot_error *e)
{
    struct asking a = {.s = s, .model = model};
    const ingot_status status = ask(&a, folder, e);
    memcpy(digest, a.ref.digest, IG_HASH);
    if (status == INGOT_OK)
        *report = a.accepted;
    else
        json_decref(a.accepted);
    ig_sigs_free(a.bundles, a.nbundles);
    ig_trust_free(&a.trust);
    ig_ref_free(&a.ref);
    return status;
}
