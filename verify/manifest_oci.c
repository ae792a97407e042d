/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CNCF ModelPack: an OCI image manifest whose layers are the files themselves, not archives, so
 * that a layer's digest is its file's SHA-256.
 *   https://github.com/modelpack/model-spec/blob/main/docs/spec.md
 *   https://github.com/opencontainers/image-spec/blob/main/manifest.md
 */
#include "verify/manifest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MODEL        "application/vnd.cncf.model."

static bool ends_with(const char *name, const char *const *ends)
{
    const size_t n = strlen(name);
    for (; *ends; ends++) {
        const size_t m = strlen(*ends);
        if (n >= m && strcasecmp(name + n - m, *ends) == 0) return true;
    }
    return false;
}

static const char *media_type(const struct ig_listing *l, const struct ig_file *f)
{
    static const char *const docs[] = {".md", "license", ".txt", ".pdf", ".png", ".jpg", NULL};
    static const char *const code[] = {".py", ".sh", ".ipynb", NULL};
    if (ig_pack_is_inputs(l->pack)) return MODEL "dataset.v1.raw";
    if (f->source != IG_NONE) return MODEL "weight.v1.raw";
    if (ends_with(f->name, code)) return MODEL "code.v1.raw";
    /* vocab.txt and merges.txt are part of a tokenizer, and so is what has no known ending */
    if (ends_with(f->name, docs) && !strstr(f->name, "vocab") && !strstr(f->name, "merges"))
        return MODEL "doc.v1.raw";
    return MODEL "weight.config.v1.raw";
}

/* The one floating-point type of the weights, as the configuration writes it; or NULL. */
static const char *precision(const struct ig_pack *p)
{
    static const char *const names[IG_DTYPES] = {
        [IG_F16] = "fp16", [IG_BF16] = "bf16", [IG_F32] = "fp32", [IG_F64] = "fp64"};
    const char *found = NULL;
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        if (row.flags & (IG_ROW_VIEW | IG_ROW_SHADOW)) continue;
        if (!names[row.dtype] || (found && found != names[row.dtype])) return NULL;
        found = names[row.dtype];
    }
    return found;
}

static json_t *config_of(const struct ig_listing *l)
{
    const json_t *derivation = json_object_get(l->pack->manifest, "derivation");
    const json_t *license = json_object_get(derivation, "license");
    json_t *ids = json_array();
    for (size_t i = 0; i < l->files.n; i++)
        json_array_append_new(ids, ig_digest_json("sha256:", l->files.list[i].sha256));
    json_t *o =
        json_pack("{s:{s:s},s:{s:s*},s:{s:s,s:o}}", "descriptor", "name", l->name, "config",
                  "precision", precision(l->pack), "modelfs", "type", "layers", "diffIds", ids);
    if (o && l->pack->nsources)
        json_object_set_new(json_object_get(o, "config"), "format", json_string("safetensors"));
    if (o && license)
        json_object_set_new(json_object_get(o, "descriptor"), "licenses",
                            json_pack("[O]", license));
    return o;
}

/* The configuration is small: it lies in its own descriptor, so that the manifest is all there is
 * beside the files. */
static json_t *config_descriptor(const struct ig_listing *l)
{
    uint8_t sha256[IG_HASH];
    char *text = NULL;
    size_t n = 0;
    json_t *config = config_of(l), *o = NULL;
    if (config && ig_json_dump(config, &text, &n, NULL) == INGOT_OK) {
        char *data = ig_base64_encode(text, n);
        ig_sha256(sha256, text, n);
        o = json_pack("{s:s,s:o,s:I,s:s}", "mediaType", MODEL "config.v1+json", "digest",
                      ig_digest_json("sha256:", sha256), "size", (json_int_t)n, "data",
                      data ? data : "");
        free(data);
    }
    json_decref(config);
    free(text);
    return o;
}

static json_t *layer(const struct ig_listing *l, const struct ig_file *f)
{
    return json_pack("{s:s,s:o,s:I,s:{s:s,s:s}}", "mediaType", media_type(l, f), "digest",
                     ig_digest_json("sha256:", f->sha256), "size", (json_int_t)f->bytes,
                     "annotations", "org.cncf.model.filepath", f->name,
                     "org.opencontainers.image.title", f->name);
}

json_t *ig_manifest_modelpack(const struct ig_listing *l)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < l->files.n; i++)
        json_array_append_new(layers, layer(l, &l->files.list[i]));
    if (json_array_size(layers) != l->files.n) {
        json_decref(layers);
        return NULL;
    }
    return json_pack("{s:i,s:s,s:s,s:o,s:o}", "schemaVersion", 2, "mediaType", OCI_MANIFEST,
                     "artifactType", MODEL "manifest.v1+json", "config", config_descriptor(l),
                     "layers", layers);
}
