/* SPDX-License-Identifier: Apache-2.0 */
/* Which files, with which hashes; and the two formats that are only a list. */
#include "verify/manifest.h"

#include <stdlib.h>
#include <string.h>

const char *const ig_manifest_words[IG_MANIFESTS + 1] = {"sha256sum", "oms", "modelpack", "slsa",
                                                         NULL};

/* As they were packed: what the pack's digest vouches for. */
static void take_recorded(const struct ig_pack *p, struct ig_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct ig_file *k = &f->list[i];
        struct ig_blob b;
        if (k->source != IG_NONE) {
            memcpy(k->sha256, p->sources[k->source].sha256, IG_HASH);
        } else {
            ig_pack_blob(p, k->blob, &b);
            memcpy(k->sha256, b.sha256, IG_HASH);
        }
        k->hashed = true;
    }
}

static ingot_status list_files(const struct ig_pack *p, const struct ig_manifest *job,
                               struct ig_files *f, ingot_error *e)
{
    return_if_error(ig_files_list(p, f, e));
    if (!job->hash && ig_pack_is_derived(p))
        return ig_fail(e, INGOT_ERR_USAGE,
                       "%s: is a derived model, of which no file hashes are recorded: --hash takes "
                       "those of the files that export writes",
                       p->path);
    if (!job->hash) {
        take_recorded(p, f);
        return INGOT_OK;
    }
    return_if_error(ig_files_hash(p, f, job->threads, &job->progress, e));
    for (size_t i = 0; i < f->n; i++)
        if (!f->list[i].hashed)
            return ig_fail(e, INGOT_ERR_CHECK, "%s: %s", p->path, f->list[i].problem);
    return INGOT_OK;
}

/* ---- sha256sum ---- */

/* A name with a backslash or a line break is escaped, and a backslash before the line says so:
 * GNU coreutils manual, "cksum output modes". */
static void put_line(FILE *out, const struct ig_file *f)
{
    char hex[2 * IG_HASH + 1];
    const bool escaped = strpbrk(f->name, "\\\n\r") != NULL;
    ig_hex(hex, f->sha256, IG_HASH);
    fprintf(out, "%s%s  ", escaped ? "\\" : "", hex);
    for (const char *c = f->name; *c; c++) {
        if (*c == '\\')
            fputs("\\\\", out);
        else if (*c == '\n')
            fputs("\\n", out);
        else if (*c == '\r')
            fputs("\\r", out);
        else
            fputc(*c, out);
    }
    fputc('\n', out);
}

static ingot_status sums(const struct ig_files *f, char **text, size_t *n, ingot_error *e)
{
    FILE *out = open_memstream(text, n);
    if (!out) return ig_no_memory(e);
    for (size_t i = 0; i < f->n; i++) put_line(out, &f->list[i]);
    const bool failed = ferror(out);
    if (fclose(out) == 0 && !failed) return INGOT_OK;
    free(*text);
    *text = NULL;
    return ig_no_memory(e);
}

/* ---- the others ---- */

static ingot_status dump(json_t *o, char **text, size_t *n, ingot_error *e)
{
    const ingot_status status = o ? ig_json_dump(o, text, n, e) : ig_no_memory(e);
    json_decref(o);
    return status;
}

static ingot_status write_format(const struct ig_listing *l, enum ig_manifest_format format,
                                 char **text, size_t *n, ingot_error *e)
{
    if (format == IG_MANIFEST_SHA256SUM) return sums(&l->files, text, n, e);
    if (format == IG_MANIFEST_MODELPACK) return dump(ig_manifest_modelpack(l), text, n, e);
    if (format == IG_MANIFEST_SLSA) return dump(ig_manifest_slsa(l), text, n, e);
    json_t *claims = ig_signing_claims(l->pack, l->digest);
    const ingot_status status =
        claims ? ig_files_statement(&l->files, l->name, claims, text, n, e) : ig_no_memory(e);
    json_decref(claims);
    return status;
}

ingot_status ig_manifest(const struct ig_store *s, const char *model, const struct ig_manifest *job,
                         char **text, size_t *n, ingot_error *e)
{
    struct ig_ref ref = {0};
    struct ig_pack p = {.fd = -1};
    struct ig_listing l = {.pack = &p, .digest = ref.digest};
    ingot_status status = ig_store_resolve(s, model, &ref, e);
    if (status == INGOT_OK && !ref.has_digest)
        status =
            ig_fail(e, INGOT_ERR_USAGE,
                    "%s: nothing says what its digest must be; give it by name or digest", model);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &p, e);
    if (status == INGOT_OK) status = ig_pack_prove(&p, ref.digest, e);
    if (status == INGOT_OK) status = list_files(&p, job, &l.files, e);
    const char *slash = ref.name ? strrchr(ref.name, '/') : NULL;
    l.name = slash ? slash + 1 : ref.name ? ref.name : "model";
    if (status == INGOT_OK) status = write_format(&l, job->format, text, n, e);
    ig_files_free(&l.files);
    ig_pack_close(&p);
    ig_ref_free(&ref);
    return status;
}
