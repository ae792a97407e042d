/* SPDX-License-Identifier: Apache-2.0 */
/* Is a folder still what was pinned?  The set's own hashes are believed once its digest has proven
 * them. */
#include "verify/pin.h"

#include "base/pipe.h"
#include "convert/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW ((size_t)1 << 20)

struct pair {
    const struct ig_src_file *file; /* NULL: only in the set */
    struct ig_blob blob;            /* name NULL: only in the folder */
    uint8_t found[IG_HASH];
    bool differs;
};
struct compare {
    struct ig_pack pack;
    struct ig_src_list files;
    struct pair *pairs;
    size_t n;
};

/* Both are in the order of memcmp. */
static void match(struct compare *c)
{
    size_t i = 0;
    uint32_t k = 0;
    while (i < c->files.n || k < c->pack.nblobs) {
        struct pair *p = &c->pairs[c->n++];
        const char *name = i < c->files.n ? c->files.files[i].name : "";
        if (k < c->pack.nblobs) ig_pack_blob(&c->pack, k, &p->blob);
        const int order = i == c->files.n ? 1
                          : k == c->pack.nblobs
                              ? -1
                              : ig_bytes_cmp(name, strlen(name), p->blob.name, p->blob.name_len);
        if (order <= 0) p->file = &c->files.files[i++];
        if (order < 0) p->blob.name = NULL;
        if (order >= 0) k++;
    }
}

static ingot_status hash(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    struct compare *c = ctx;
    struct pair *p = &c->pairs[i];
    struct ig_src_reader r = {.fd = -1};
    ingot_status status = INGOT_OK;
    (void)worker;
    if (!p->file || !p->blob.name) return INGOT_OK;
    const uint64_t bytes = (uint64_t)p->file->st.st_size;
    uint8_t *buf = ig_pages(WINDOW);
    if (!buf) return ig_no_memory(e);
    ig_sha256(r.sha256, "", 0); /* what is empty is not read */
    for (uint64_t at = 0; at < bytes && status == INGOT_OK;) {
        const size_t n = bytes - at < WINDOW ? (size_t)(bytes - at) : WINDOW;
        status = ig_src_reader_next(&r, p->file, buf, n, at, e);
        at += n;
    }
    if (r.fd >= 0) close(r.fd);
    free(buf);
    memcpy(p->found, r.sha256, IG_HASH);
    p->differs = memcmp(p->found, p->blob.sha256, IG_HASH) != 0;
    return status;
}

static ingot_status report_of(const struct compare *c, json_t **report, ingot_error *e)
{
    json_t *missing = json_array(), *extra = json_array(), *changed = json_array();
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct pair *p = &c->pairs[i];
        if (!p->file) {
            json_array_append_new(missing, json_stringn(p->blob.name, p->blob.name_len));
            continue;
        }
        if (!p->blob.name) {
            json_array_append_new(extra, json_string(p->file->name));
            continue;
        }
        bytes += (uint64_t)p->file->st.st_size;
        if (p->differs)
            json_array_append_new(changed, json_pack("{s:s,s:o,s:o}", "name", p->file->name,
                                                     "expected", ig_digest_json("", p->blob.sha256),
                                                     "found", ig_digest_json("", p->found)));
    }
    const bool ok =
        json_array_size(missing) + json_array_size(extra) + json_array_size(changed) == 0;
    *report = json_pack("{s:b,s:I,s:I,s:o,s:o,s:o}", "ok", ok, "files", (json_int_t)c->pack.nblobs,
                        "bytes_hashed", (json_int_t)bytes, "missing", missing, "extra", extra,
                        "changed", changed);
    return *report ? INGOT_OK : ig_no_memory(e);
}

/* A set that is known by its digest, its tables proven. */
static ingot_status open_set(const struct ig_store *s, const char *name, struct ig_pack *p,
                             ingot_error *e)
{
    struct ig_ref ref = {0};
    ingot_status status = ig_store_resolve(s, name, &ref, e);
    if (status == INGOT_OK && !ref.has_digest)
        status =
            ig_fail(e, INGOT_ERR_USAGE,
                    "%s: nothing says what its digest must be; give it by name or digest", name);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, p, e);
    if (status == INGOT_OK) status = ig_pack_prove(p, ref.digest, e);
    if (status == INGOT_OK && !ig_pack_is_inputs(p))
        status =
            ig_fail(e, INGOT_ERR_USAGE,
                    "%s: is a model, not an input set: ingot verify --source compares it", name);
    ig_ref_free(&ref);
    return status;
}

ingot_status ig_pin_check(const struct ig_store *s, const char *folder, const char *name,
                          unsigned threads, json_t **report, ingot_error *e)
{
    struct ig_src src = {.warnings = json_array()};
    struct compare c = {.pack.fd = -1};
    bool there;
    ingot_status status = src.warnings ? INGOT_OK : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_stat(s->root, &src.skip, &there, e);
    if (status == INGOT_OK && !there) src.skip = (struct stat){0};
    if (status == INGOT_OK) status = open_set(s, name, &c.pack, e);
    if (status == INGOT_OK) status = ig_pin_list(&folder, 1, &src, &c.files, e);
    if (status == INGOT_OK) {
        c.pairs = ig_array(c.files.n + c.pack.nblobs, sizeof *c.pairs);
        if (!c.pairs) status = ig_no_memory(e);
    }
    if (status == INGOT_OK) match(&c);
    if (status == INGOT_OK) status = ig_parallel(threads ? threads : ig_cpus(), c.n, hash, &c, e);
    if (status == INGOT_OK) status = report_of(&c, report, e);
    free(c.pairs);
    ig_pack_close(&c.pack);
    ig_src_list_free(&c.files);
    json_decref(src.warnings);
    return status;
}
