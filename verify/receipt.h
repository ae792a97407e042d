/* SPDX-License-Identifier: Apache-2.0 */
/* receipt: a statement that binds what ran to what it ran on (ingot-receipt(5)). */
#ifndef INGOT_RECEIPT_H
#define INGOT_RECEIPT_H

#include "verify/pin.h"

#define IG_RECEIPT_TYPE "urn:ingot:receipt:v1"

struct ig_receipt_options {
    const char *file; /* a new one */
    const char *key;  /* private, PEM, or NULL: not signed */
    struct ig_passphrase passphrase;
    const char *nonce;         /* or NULL */
    const char *const *inputs; /* files and "pin:NAME/path" */
    size_t ninputs;
    const char *const *arguments; /* as the program got them */
    size_t narguments;
};
struct ig_receipt {
    char *file;
    bool has_key, loose; /* loose: others may read the key */
    struct ig_key key;
    json_t *subject, *predicate;
};
/* Before the work: everything about the receipt that can fail early does.  `command` is what runs;
 * its start is now. */
ingot_status ig_receipt_begin(struct ig_receipt *r, const struct ig_store *s, const char *command,
                              const struct ig_receipt_options *o, ingot_error *e);
/* The model; digest NULL: there is none to hold it to. */
ingot_status ig_receipt_model(struct ig_receipt *r, const char *name, const uint8_t *digest,
                              const uint8_t content[IG_HASH], ingot_error *e);
/* A member of the predicate: "verification", "settings", "device".  Takes v. */
ingot_status ig_receipt_set(struct ig_receipt *r, const char *key, json_t *v, ingot_error *e);
/* A member of "settings"; takes v. */
ingot_status ig_receipt_setting(struct ig_receipt *r, const char *key, json_t *v, ingot_error *e);
/* What came out; the subject of the statement from then on. */
ingot_status ig_receipt_output(struct ig_receipt *r, const char *name,
                               const uint8_t sha256[IG_HASH], uint64_t bytes, ingot_error *e);
/* After the work: its end is now.  Writes the file. */
ingot_status ig_receipt_end(struct ig_receipt *r, ingot_error *e);
void ig_receipt_free(struct ig_receipt *r);

/* receipt_check.c */
struct ig_receipt_check {
    const char *file;
    struct ig_signature signer; /* bundle is not looked at; without key and roots: none is given */
    bool allow_unsigned;
    const char *output; /* a file that must be what came out, or NULL */
    const char *nonce;  /* that it must have, or NULL */
};
/* *report (caller decrefs): "receipt", "ok", "signature": "good", "bad", "none"; "word":
 * "verified", "consistent" or "FAILED"; "model", "inputs" with "present"; "output" with "equal";
 * "bad": findings; "statement". */
ingot_status ig_receipt_verify(const struct ig_store *s, const struct ig_receipt_check *job,
                               json_t **report, ingot_error *e);

/* The statement of a receipt; also after a failure *statement (or NULL) is the caller's to decref,
 * and *predicate points into it. */
ingot_status ig_receipt_parse(const char *text, size_t n, const char *path, json_t **statement,
                              json_t **predicate, ingot_error *e);

/* program.c: the running program and this library, as mapped: SHA-256, build id, version. */
ingot_status ig_program_json(json_t **out, ingot_error *e);

/* seal.c: a statement as a Sigstore bundle, or without a key bare.  Caller frees *text. */
ingot_status ig_seal(const struct ig_key *key, const json_t *statement, char **text, size_t *n,
                     ingot_error *e);

#endif
