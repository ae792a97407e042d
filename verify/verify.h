/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify: is this pack what its digest says, and are its own records true?  A failed check
 * is a result (a report with entries under "bad"), not an error; an error means that the
 * check could not be made.
 */
#ifndef INGOT_VERIFY_H
#define INGOT_VERIFY_H

#include "convert/convert.h"
#include "verify/files.h"
#include "verify/sign.h"

enum ig_level {
    IG_LEVEL_QUICK, /* structure and sizes; the kernel's fs-verity digest where it enforces one */
    IG_LEVEL_FAST,  /* the same and every XXH3: finds corruption, proves no identity */
    IG_LEVEL_FULL   /* the same and every SHA-256: digest, tensor digests, content digest */
};

/* A signature over the model's files to hold the pack to. */
struct ig_signature {
    const char *bundle; /* a file; a bare name may be that of one kept beside the pack */
    const char *key;    /* public, PEM; or NULL: the bundle's certificate and `roots` */
    struct ig_roots roots;
    bool has_at; /* certificates are judged at `at`, not now */
    int64_t at;
    const char *tsa_roots; /* PEM: judge at the time that an RFC 3161 timestamp proves; or NULL */
    const char *const *unheld; /* patterns of signed files that the pack need not hold */
    size_t nunheld;
};

struct ig_verify {
    enum ig_level level;
    const char *source; /* folder with the original files, or NULL */
    bool reproduce;     /* make it again from `source` or its parent, and compare; only FULL */
    const struct ig_store *store; /* where reproduce looks for the parent and has room to work */
    bool has_expect; /* the digest the caller demands, over anything else that is known */
    uint8_t expect[IG_HASH];
    const struct ig_signature *signature; /* or NULL */
    struct ig_files *files; /* or NULL: filled with the files of a pack that passed, hashed */
    bool self;              /* without an expected digest: say "consistent" instead of failing */
    bool trust_stamp;       /* believe that a file which passed a full check still does */
    bool strict;            /* with --all: unknown files in the store are failures */
    unsigned threads;       /* 0: ig_cpus() */
    struct ig_progress progress;
};

/* One pack.  `label` is how the report calls it; digest NULL: none is expected.  *report (caller
 * decrefs) has "model", "digest", "ok", "level", "bytes_hashed", "tensors_hashed", "bad". */
ingot_status ig_verify_pack(const char *path, const char *label, const uint8_t *digest,
                            const struct ig_verify *v, json_t **report, ingot_error *e);
/* remember.c: the same; with `trust_stamp` a file that has not changed since it passed is not read:
 * then "level" is "stamp", and "stamp" says when that was. */
ingot_status ig_verify_remembered(const char *path, const char *label, const uint8_t *digest,
                                  const struct ig_verify *v, json_t **report, ingot_error *e);
/* MODEL of a store, or with model NULL everything in it; *report: {"models", "ok", "warnings"}. */
ingot_status ig_verify_store(const struct ig_store *s, const char *model, const struct ig_verify *v,
                             json_t **report, ingot_error *e);

/* sign.c: a bundle over the files of a model that has just been verified in full, kept beside its
 * pack or written to `output`. */
struct ig_signing {
    const char *key;         /* private, PEM */
    const char *certificate; /* PEM, or NULL: a bare key signs */
    const char *chain;       /* more certificates, PEM, or NULL */
    struct ig_passphrase passphrase;
    const char *output; /* a new file, "-" for stdout, or NULL: beside the pack */
    const struct ig_verify *verify;
};
/* *report: that of ig_verify_pack; "ok" false: nothing was signed.  Else with "signed": files,
 * "key", "bundle".  *loose: others may read the key. */
ingot_status ig_sign(const struct ig_store *s, const char *model, const struct ig_signing *job,
                     json_t **report, bool *loose, ingot_error *e);

#endif
