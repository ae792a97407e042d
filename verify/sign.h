/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures: keys, DSSE envelopes, certificates, and the bundles that hold them.
 *
 *   bundle     Sigstore bundle v0.3 (JSON), https://github.com/sigstore/protobuf-specs
 *   envelope   DSSE, https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
 *   statement  in-toto v1, predicate https://model_signing/signature/v1.0
 *
 * Nothing of a bundle's payload is parsed before its signature is found good.
 */
#ifndef INGOT_SIGN_H
#define INGOT_SIGN_H

#include "base/base.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#define IG_BUNDLE_MOST    ((size_t)64 << 20) /* bytes of a bundle file */
#define IG_BUNDLE_TYPE    "application/vnd.dev.sigstore.bundle.v0.3+json"
#define IG_STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define IG_INTOTO_TYPE    "application/vnd.in-toto+json"
#define IG_CHAIN_MOST     16u /* certificates or timestamps in one bundle */
#define IG_SIGNATURE_MOST 256u

struct ig_bytes { /* data is NULL or the owner's, to be freed */
    uint8_t *data;
    size_t n;
};

/* base64.c.  Strict: padded, canonical, no white space; the standard or the URL-safe alphabet.
 * false: it is not that, or memory is short (then *out is NULL as well). */
bool ig_base64_decode(const char *text, size_t n, struct ig_bytes *out);
char *ig_base64_encode(const void *data, size_t n); /* standard alphabet; caller frees; NULL */

/* keys.c: P-256 with SHA-256, P-384 with SHA-384, P-521 with SHA-512, and nothing else. */
struct ig_key {
    EVP_PKEY *pkey;
    const char *curve; /* "P-256" */
    const EVP_MD *md;
    char hint[2 * IG_HASH + 1]; /* SHA-256 of the PEM text of its SubjectPublicKeyInfo */
};
#define IG_PASSPHRASE_VARIABLE "INGOT_KEY_PASSPHRASE"
/* Where the passphrase of an encrypted key comes from. */
struct ig_passphrase {
    int fd;           /* read to the end of its first line; -1: none */
    const char *name; /* of an environment variable, or NULL */
    bool prompt;      /* else ask on the terminal */
};
ingot_status ig_key_read_public(const char *path, struct ig_key *out, ingot_error *e);
/* *loose: the file can be read by others than its owner. */
ingot_status ig_key_read_private(const char *path, const struct ig_passphrase *from,
                                 struct ig_key *out, bool *loose, ingot_error *e);
/* The key of a certificate and the like; takes pkey, also on failure.  `what` is for messages. */
ingot_status ig_key_take(EVP_PKEY *pkey, const char *what, struct ig_key *out, ingot_error *e);
void ig_key_free(struct ig_key *k);

/* dsse.c: over "DSSEv1 <length of type> <type> <length> <payload>". */
ingot_status ig_dsse_sign(const struct ig_key *k, const void *payload, size_t n,
                          struct ig_bytes *sig, ingot_error *e);
/* *good: the signature (DER, ECDSA) is this key's. */
ingot_status ig_dsse_verify(const struct ig_key *k, const void *payload, size_t n,
                            const struct ig_bytes *sig, bool *good, ingot_error *e);

/* bundle.c */
struct ig_bundle {
    struct ig_bytes payload, sig;
    char *hint;                           /* of a key, as the bundle names it; or NULL */
    struct ig_bytes certs[IG_CHAIN_MOST]; /* DER, leaf first; 0 of them: signed by a bare key */
    uint32_t ncerts;
    struct ig_bytes stamps[IG_CHAIN_MOST]; /* RFC 3161 responses, DER */
    uint32_t nstamps;
    uint8_t sha256[IG_HASH]; /* of the file it was read from */
    bool has_log;            /* entries of a transparency log, which are not looked at */
};
/* Everything that is no bundle of exactly this kind is INGOT_ERR_INPUT or, where it is a known
 * other kind, INGOT_ERR_UNSUPPORTED; the message begins with `path` and names the field. */
ingot_status ig_bundle_parse(const char *text, size_t n, const char *path, struct ig_bundle *out,
                             ingot_error *e);
ingot_status ig_bundle_read(const char *path, struct ig_bundle *out, ingot_error *e);
/* As one line of JSON; caller frees. */
ingot_status ig_bundle_write(const struct ig_bundle *b, char **text, size_t *n, ingot_error *e);
void ig_bundle_free(struct ig_bundle *b);

/* statement.c: what is signed. */
struct ig_resource {
    const char *name; /* relative path as in the signed folder; "." for a file signed alone */
    uint8_t sha256[IG_HASH];
};
struct ig_statement {
    json_t *json; /* the whole, kept; everything below points into it */
    struct ig_resource *resources;
    size_t nresources;
    const char **ignored; /* paths that the signer left out */
    size_t nignored;
    const char *subject;   /* informative */
    bool has_pack;         /* predicate.ingot: the signer names the pack */
    uint8_t pack[IG_HASH]; /* its fs-verity digest */
};
ingot_status ig_statement_parse(const char *text, size_t n, const char *path,
                                struct ig_statement *out, ingot_error *e);
void ig_statement_free(struct ig_statement *s);
/* A new one, as JSON text.  `claims` (or NULL; borrowed) becomes predicate.ingot.  Caller frees. */
ingot_status ig_statement_write(const char *subject, const struct ig_resource *resources, size_t n,
                                json_t *claims, char **text, size_t *len, ingot_error *e);
/* As PurePosixPath compares: component by component. */
int ig_path_cmp(const char *a, const char *b);
/* Is `name` the path `folder`, or below it? */
bool ig_path_within(const char *name, const char *folder);

/* chain.c: the certificates of a bundle, or of a signer. */
struct ig_signer {
    char subject[512], issuer[512]; /* RFC 2253, printable */
    char fingerprint[2 * IG_HASH + 1];
    int64_t not_before, not_after; /* narrowest of the whole chain, seconds since 1970 */
};
struct ig_roots {
    const char *file; /* PEM, or NULL */
    bool system;      /* those of the system, too */
};
/* Is the leaf one that may sign, and does it lead to a root?  Times are not judged: the caller
 * holds `not_before` and `not_after` against the time it goes by.  INGOT_ERR_CHECK: no. */
ingot_status ig_chain_verify(const struct ig_bundle *b, const struct ig_roots *roots,
                             const char *path, struct ig_key *leaf, struct ig_signer *who,
                             ingot_error *e);
/* PEM files into a bundle, leaf first; the leaf's key must be the signer's. */
ingot_status ig_chain_read(const char *leaf, const char *rest, const struct ig_key *key,
                           struct ig_bundle *b, ingot_error *e);
/* timestamp.c: the time that RFC 3161 responses in the bundle prove for its signature;
 * INGOT_ERR_CHECK when none does. */
ingot_status ig_stamp_verify(const struct ig_bundle *b, const char *roots, const char *path,
                             int64_t *when, ingot_error *e);
/* What libcrypto has to say, for messages; empties its queue. */
const char *ig_ssl_error(void);

#endif
