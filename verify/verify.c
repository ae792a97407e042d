/* SPDX-License-Identifier: Apache-2.0 */
#include "store/verity.h"
#include "verify/derivation.h"
#include "verify/signed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void bad_digest(struct check *c, const char *kind, const uint8_t *expected,
                       const uint8_t *found, const char *text)
{
    ig_check_bad(c, &(struct finding){.kind = kind,
                                      .offset = UINT64_MAX,
                                      .expected = expected,
                                      .found = found,
                                      .hash_len = IG_HASH,
                                      .text = text});
}

/* What the kernel enforces on every read, it has not read for us: reported, never counted. */
static void check_kernel(struct check *c, int fd, const uint8_t *digest, json_t *report)
{
    uint8_t measured[IG_HASH];
    if (!ig_verity_measure(fd, measured)) return;
    json_object_set_new(report, "kernel", ig_digest_json("fsverity-sha256:", measured));
    if (digest && memcmp(measured, digest, IG_HASH) != 0)
        bad_digest(c, "digest", digest, measured, "digest that the kernel enforces");
}

/* Failures that the file itself caused are findings; the rest is trouble of the machine. */
static ingot_status absorb(struct check *c, ingot_status status, int fd, ingot_error *e)
{
    uint8_t measured[IG_HASH];
    const bool content =
        status == INGOT_ERR_PACK || status == INGOT_ERR_INPUT || status == INGOT_ERR_UNSUPPORTED;
    const bool enforced =
        status == INGOT_ERR_IO && e->sys_errno == EIO && fd >= 0 && ig_verity_measure(fd, measured);
    if (!content && !enforced) return status;
    ig_check_bad(c, &(struct finding){.kind = enforced ? "kernel" : "structure",
                                      .offset = e->has_offset ? e->offset : UINT64_MAX,
                                      .text = e->message});
    return INGOT_OK;
}

/* The frontier is a claim about the tree.  Where anything else is wrong it does not fit either, and
 * says nothing new. */
static ingot_status check_frontier(struct check *c, ingot_error *e)
{
    if (!c->has_digest || ig_check_failed(c)) return INGOT_OK;
    const ingot_status status = ig_pack_prove(&c->pack, c->digest, e);
    if (status != INGOT_ERR_CHECK) return status;
    ig_check_bad(c, &(struct finding){.kind = "frontier",
                                      .offset = c->pack.frontier,
                                      .length = c->pack.nfrontier * IG_HASH,
                                      .text = "is not that of the file's tree"});
    return INGOT_OK;
}

static ingot_status check_open_pack(struct check *c, const uint8_t *digest, json_t *report,
                                    ingot_error *e)
{
    return_if_error(ig_check_rows(c, e));
    if (c->files) return_if_error(ig_check_files(c, c->files, e));
    if (c->v->level != IG_LEVEL_QUICK) {
        return_if_error(ig_check_pass(c, e));
        return_if_error(ig_check_tail(c, e));
    }
    if (digest && c->has_digest && memcmp(digest, c->digest, IG_HASH) != 0)
        bad_digest(c, "digest", digest, c->digest, "digest of the whole file");
    return_if_error(check_frontier(c, e));
    if (c->v->reproduce) return ig_check_reproduce(c, report, e);
    return c->v->source ? ig_check_sources(c, report, e) : INGOT_OK;
}

static const char *const level_names[] = {"quick", "fast", "full"};

static void judge_identity(struct check *c, const uint8_t *digest, json_t *report)
{
    if (digest || c->v->self) {
        if (!digest)
            json_object_set_new(report, "note", json_string("consistent, identity not checked"));
        return;
    }
    ig_check_bad(
        c, &(struct finding){.kind = "identity",
                             .offset = UINT64_MAX,
                             .found = c->has_digest ? c->digest : NULL,
                             .hash_len = IG_HASH,
                             .text = "nothing says what the digest must be: --expect DIGEST, a "
                                     "name, or --self for a check of consistency alone"});
}

static ingot_status finish_report(struct check *c, const char *label, const uint8_t *digest,
                                  json_t *r, ingot_error *e)
{
    uint64_t tensors = 0;
    for (uint32_t i = 0; c->open && i < c->pack.nrows; i++) {
        struct ig_row row;
        ig_pack_row(&c->pack, i, &row);
        tensors += !(row.flags & IG_ROW_VIEW);
    }
    json_object_set_new(r, "model", ig_text_json(label));
    if (c->has_digest || digest)
        json_object_set_new(r, "digest",
                            ig_digest_json("fsverity-sha256:", c->has_digest ? c->digest : digest));
    json_object_set_new(r, "ok", json_boolean(json_array_size(c->bad) == 0));
    json_object_set_new(r, "level", json_string(level_names[c->v->level]));
    json_object_set_new(r, "bytes", json_integer((json_int_t)c->pack.size));
    json_object_set_new(r, "bytes_hashed", json_integer((json_int_t)c->bytes_hashed));
    json_object_set_new(r, "bytes_checked", json_integer((json_int_t)c->done));
    json_object_set_new(r, "tensors", json_integer((json_int_t)tensors));
    json_object_set_new(r, "tensors_hashed", json_integer((json_int_t)c->tensors_hashed));
    if (c->bad_left_out)
        json_object_set_new(r, "bad_left_out", json_integer((json_int_t)c->bad_left_out));
    return json_object_set(r, "bad", c->bad) == 0 ? INGOT_OK : ig_no_memory(e);
}

/* A signer, or a signature over files that does not name this pack; with the rest in one reading.
 */
static bool wants_files(const struct ig_verify *v, const struct ig_signed *sig,
                        const uint8_t *digest)
{
    const struct ig_statement *s = &sig->statement;
    if (v->level != IG_LEVEL_FULL) return false;
    if (v->files) return true;
    return v->signature && s->nresources &&
           !(s->has_pack && digest && memcmp(s->pack, digest, IG_HASH) == 0);
}

ingot_status ig_verify_pack(const char *path, const char *label, const uint8_t *digest,
                            const struct ig_verify *v, json_t **report, ingot_error *e)
{
    struct check c = {.v = v, .bad = json_array(), .leaves_fd = -1};
    struct ig_files files = {0};
    ingot_error local = {0};
    const uint8_t *expected = v->has_expect ? v->expect : digest;
    if (!e) e = &local;
    json_t *r = json_object();
    bool used = false;
    struct ig_signed sig = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ingot_status status = INGOT_OK;
    pthread_mutex_init(&c.lock, NULL);
    if (!r || !c.bad) {
        status = ig_no_memory(e);
    } else if (fd < 0) {
        status = ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        ig_at(e, path, NULL, 0);
    } else if (v->signature && (status = ig_signed_open(&c, path, &sig, e)) != INGOT_OK) {
        /* Before gigabytes are read for nothing. */
    } else {
        check_kernel(&c, fd, expected, r);
        if (wants_files(v, &sig, expected)) c.files = &files;
        status = ig_pack_open_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0), path, &c.pack, e);
        c.open = status == INGOT_OK;
        if (c.open) status = check_open_pack(&c, expected, r, e);
        if (c.open && status == INGOT_OK && v->signature) status = ig_signed_check(&c, &sig, r, e);
        if (c.open && status == INGOT_OK && v->files && !ig_check_failed(&c)) {
            *v->files = files;
            files = (struct ig_files){0};
        }
        status = absorb(&c, status, fd, e);
    }
    if (status == INGOT_OK) judge_identity(&c, expected, r);
    /* A digest that is only demanded says nothing about the sidecar's pages. */
    if (status == INGOT_OK && v->level == IG_LEVEL_FULL && expected && json_array_size(c.bad))
        status = absorb(&c, ig_check_by_tree(&c, fd, path, expected, &used, e), fd, e);
    if (status == INGOT_OK) status = finish_report(&c, label, expected, r, e);
    ig_signed_close(&sig);
    ig_files_free(&files);
    ig_check_files_end(&c);
    ig_pack_close(&c.pack);
    if (fd >= 0) close(fd);
    pthread_mutex_destroy(&c.lock);
    json_decref(c.bad);
    free(c.rows);
    free(c.parts);
    if (status == INGOT_OK)
        *report = r;
    else
        json_decref(r);
    return status;
}
