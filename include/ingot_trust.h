/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trust: which models may be loaded at all, by the rules of ingot-trust(5); and receipts, a record
 * of what ran on what, in the format of ingot-receipt(5).  Included by ingot.h.
 */
#ifndef INGOT_TRUST_H
#define INGOT_TRUST_H

#ifndef INGOT_H
#error "include ingot.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Does a rule accept this model?  keyring: a folder of rules, NULL: the system's and the user's.
 * Nothing of the model's weights is read: *digest is what was accepted, so open the pack by it
 * ("fsverity-sha256:<hex>"), not by name again, and load it with INGOT_CHECK_FULL.
 * INGOT_ERR_CHECK: no rule does, and the message says why; INGOT_ERR_INPUT: the rules themselves
 * are no good, or others can write them.  *report: JSON, "rule", "bundle", "kind", "by". */
INGOT_API ingot_status ingot_trust_check(const char *store, const char *model, const char *keyring,
                                         uint8_t digest[INGOT_DIGEST_BYTES], char **report,
                                         ingot_error *e);

typedef struct ingot_receipt ingot_receipt;

/* Zero is the default everywhere.  Set `size` to sizeof, so that later fields can be told. */
typedef struct ingot_receipt_options {
    size_t size;
    const char *file;          /* to be written; must not exist */
    const char *key;           /* private key, PEM; NULL: the receipt is not signed */
    int has_passphrase_fd;     /* the key's passphrase is the first line read from there; */
    int passphrase_fd;         /* else that of the environment's INGOT_KEY_PASSPHRASE */
    const char *nonce;         /* of whoever asked for it, 1 to 1024 bytes of UTF-8; or NULL */
    const char *const *inputs; /* files and "pin:NAME/path", hashed now */
    size_t ninputs;
    const char *const *arguments; /* to be recorded as they are: no secrets */
    size_t narguments;
} ingot_receipt_options;

/* Before the work: reads the key and the inputs, hashes the running program and library, notes the
 * time.  `command` names what is about to run. */
INGOT_API ingot_status ingot_receipt_begin(const char *store, const char *command,
                                           const ingot_receipt_options *options,
                                           ingot_receipt **out, ingot_error *e);
/* The load, ended well or not, that the work stands on: model, level, bytes expected and proven,
 * verdict, device. */
INGOT_API ingot_status ingot_receipt_load(ingot_receipt *receipt, const char *model,
                                          const ingot_load *load, ingot_error *e);
/* A setting that changes what comes out. */
INGOT_API ingot_status ingot_receipt_setting(ingot_receipt *receipt, const char *name,
                                             const char *value, ingot_error *e);
/* What came out, whole. */
INGOT_API ingot_status ingot_receipt_output(ingot_receipt *receipt, const char *name,
                                            const void *data, size_t bytes, ingot_error *e);
/* After the work: notes the time, signs, writes the file. */
INGOT_API ingot_status ingot_receipt_end(ingot_receipt *receipt, ingot_error *e);
INGOT_API void ingot_receipt_free(ingot_receipt *receipt); /* NULL is fine */

/* Check a receipt against the store: who signed it (public key, PEM; NULL: unsigned ones are
 * accepted, and called consistent, not verified), that model and pinned inputs are in the store,
 * and that the file `output` (or NULL) is what came out.  INGOT_ERR_CHECK: the report says what is
 * wrong. */
INGOT_API ingot_status ingot_receipt_verify(const char *store, const char *file, const char *key,
                                            const char *output, char **report, ingot_error *e);

#ifdef __cplusplus
}
#endif
#endif
