/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SLSA provenance v1 of a pack: made by ingot, from these files.
 *   https://slsa.dev/spec/v1.0/provenance
 */
#include "config.h"

#include "verify/manifest.h"

#include <string.h>

#define BUILD_TYPE "urn:ingot:convert:v1"
#define BUILDER    "urn:ingot:builder:v1"

static json_t *dependencies(const struct ig_listing *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->files.n; i++) {
        const struct ig_file *f = &l->files.list[i];
        json_array_append_new(list, json_pack("{s:s,s:{s:o}}", "name", f->name, "digest", "sha256",
                                              ig_digest_json("", f->sha256)));
    }
    return list;
}

json_t *ig_manifest_slsa(const struct ig_listing *l)
{
    const json_t *derivation = json_object_get(l->pack->manifest, "derivation");
    /* The version that writes this; the one that made the pack is a claim, and no part of it. */
    return json_pack("{s:s,s:[{s:s,s:{s:o}}],s:s,s:{s:{s:s,s:{s:O,s:i},s:o},s:{s:{s:s,s:{s:s}}}}}",
                     "_type", IG_STATEMENT_TYPE, "subject", "name", l->name, "digest",
                     "fsverity-sha256", ig_digest_json("", l->digest), "predicateType",
                     "https://slsa.dev/provenance/v1", "predicate", "buildDefinition", "buildType",
                     BUILD_TYPE, "externalParameters", "derivation", derivation, "rules",
                     (int)l->pack->rules, "resolvedDependencies", dependencies(l), "runDetails",
                     "builder", "id", BUILDER, "version", "ingot", PACKAGE_VERSION);
}
