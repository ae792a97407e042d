/* SPDX-License-Identifier: Apache-2.0 */
/* signed: a pack against a signature over a model's files. */
#ifndef INGOT_SIGNED_H
#define INGOT_SIGNED_H

#include "verify/check.h"
#include "verify/files.h"
#include "verify/sign.h"

struct ig_signed {
    const struct ig_signature *job;
    char *path; /* of the bundle */
    struct ig_bundle bundle;
    struct ig_statement statement;
    struct ig_key key;
    struct ig_signer who;
    int64_t when;    /* that certificates are judged at */
    const char *how; /* we know it */
    bool good;       /* signature and signer; else a finding says what is not */
};
/* Read the bundle and judge signature and signer: *sealed tells whether its payload may be
 * believed; if not a finding says why.  The payload is not parsed. */
ingot_status ig_signed_envelope(struct check *c, const char *pack, struct ig_signed *s,
                                bool *sealed, ingot_error *e);
/* The same for a signature over files, with its statement; what is wrong with them is a finding.
 * Reads nothing of the pack: `pack` only says where bundles are kept. */
ingot_status ig_signed_open(struct check *c, const char *pack, struct ig_signed *s, ingot_error *e);
/* Hold the pack, checked by now, to what is signed. */
ingot_status ig_signed_check(struct check *c, struct ig_signed *s, json_t *report, ingot_error *e);
json_t *ig_signed_json(const struct ig_signed *s); /* signature and signer, for reports */
void ig_signed_close(struct ig_signed *s);

#endif
