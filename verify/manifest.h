/* SPDX-License-Identifier: Apache-2.0 */
/* manifest: the files of a model as lists that other tools read. */
#ifndef INGOT_MANIFEST_H
#define INGOT_MANIFEST_H

#include "verify/verify.h"

enum ig_manifest_format {
    IG_MANIFEST_SHA256SUM, /* as sha256sum prints it, for the exported folder */
    IG_MANIFEST_OMS,       /* the in-toto statement that `ingot sign` signs */
    IG_MANIFEST_MODELPACK, /* OCI manifest of CNCF ModelPack, one raw layer a file */
    IG_MANIFEST_SLSA,      /* SLSA provenance v1 of the pack, files as resolvedDependencies */
    IG_MANIFESTS
};
extern const char *const ig_manifest_words[IG_MANIFESTS + 1]; /* NULL-ended */

struct ig_manifest {
    enum ig_manifest_format format;
    bool hash; /* hash the files from the pack, instead of believing what it records */
    unsigned threads;
    struct ig_progress progress;
};
/* The pack's tables are held to its digest, which must be known.  Recorded hashes are those of the
 * source files; a derived pack has none of its own, and needs `hash`.  Caller frees *text. */
ingot_status ig_manifest(const struct ig_store *s, const char *model, const struct ig_manifest *job,
                         char **text, size_t *n, ingot_error *e);

/* What the formats are made from. */
struct ig_listing {
    const char *name; /* of the model, without folders */
    const struct ig_pack *pack;
    const uint8_t *digest;
    struct ig_files files;
};
/* manifest_oci.c, manifest_slsa.c: new objects, NULL when memory is short. */
json_t *ig_manifest_modelpack(const struct ig_listing *l);
json_t *ig_manifest_slsa(const struct ig_listing *l);

#endif
