/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust: which signatures a model must have before it may be loaded (ingot-trust(5)).  The policy
 * comes from a folder that only its owner can write, and never from the store: whoever can put
 * models there must not be able to say which are good.
 */
#ifndef INGOT_TRUST_PRIVATE_H
#define INGOT_TRUST_PRIVATE_H

#include "verify/verify.h"

#define IG_ENDORSEMENT_TYPE "urn:ingot:endorsement:v1"

enum ig_rule_kind { IG_RULE_KEY, IG_RULE_CA, IG_RULE_DENY };
struct ig_rule {
    enum ig_rule_kind kind;
    char
        fingerprint[2 * IG_HASH + 1]; /* of a key as ig_key.hint, of a certificate SHA-256 of DER */
    char *name;                       /* a pattern over names */
    uint8_t (*digests)[IG_HASH];      /* if any, the model's is among them */
    size_t ndigests;
    bool has_before, has_after;
    int64_t before, after; /* not before, not after; seconds since 1970 */
    char *where;           /* "FILE:LINE" */
};
struct ig_trust_key { /* a PEM file of the folder */
    char *path;
    char fingerprint[2 * IG_HASH + 1];
    bool is_ca;
};
struct ig_trust {
    struct ig_rule *rules;
    size_t nrules, rules_cap;
    struct ig_trust_key *keys;
    size_t nkeys;
    char *folders; /* where was looked, for messages */
};

/* trust_rules.c: the rules of one file; what cannot be understood refuses all of it. */
ingot_status ig_rules_parse(const char *text, size_t n, const char *path, struct ig_trust *t,
                            ingot_error *e);
/* trust_folder.c: folder NULL: /etc/ingot/trust.d and the user's; absent ones have no rules.
 * INGOT_ERR_INPUT: others may write there, it lies in the store, or a file is no good. */
ingot_status ig_trust_open(const struct ig_store *s, const char *folder, struct ig_trust *t,
                           ingot_error *e);
const struct ig_trust_key *ig_trust_key(const struct ig_trust *t, const struct ig_rule *r);
void ig_trust_free(struct ig_trust *t);

/* trust.c: does a rule accept this model?  Reads no weights: what is accepted is `digest`, which
 * the load has to prove.  *report (caller decrefs): "rule", "bundle", "kind", "by".
 * INGOT_ERR_CHECK: none does; the message says what comes closest, and what to do. */
ingot_status ig_trust_check(const struct ig_store *s, const char *model, const char *folder,
                            uint8_t digest[IG_HASH], json_t **report, ingot_error *e);

/* endorse.c: the word of somebody who has checked a bundle over files, that it is good for this
 * pack.  `signature` is that part of the report of a check that passed.  *path: caller frees. */
ingot_status ig_endorse(const struct ig_store *s, const char *model, const struct ig_key *key,
                        const json_t *signature, char **path, ingot_error *e);
/* The pack that an endorsement is of; *is false: the payload is some other statement. */
ingot_status ig_endorsement_parse(const char *text, size_t n, const char *path, bool *is,
                                  uint8_t pack[IG_HASH], ingot_error *e);

#endif
