/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The original files: rebuilt from the pack in source order and hashed, since a file's
 * SHA-256 is serial; where the folder is still there, compared byte by byte as well.
 */
#include "base/pipe.h"
#include "convert/rebuild.h"
#include "verify/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct compare {
    struct check *c;
    int fd; /* the original, or -1 */
    const char *path;
    uint64_t at;
    uint64_t differs; /* first offset, UINT64_MAX for none */
    struct ig_sha sha;
    uint8_t *buf;
    size_t cap;
};

static ingot_status take(void *ctx, const void *data, size_t n, ingot_error *e)
{
    struct compare *k = ctx;
    ig_sha_update(&k->sha, data, n);
    if (k->fd >= 0 && k->differs == UINT64_MAX) {
        if (n > k->cap) {
            uint8_t *grown = realloc(k->buf, n);
            if (!grown) return ig_no_memory(e);
            k->buf = grown;
            k->cap = n;
        }
        return_if_error(ig_pread(k->fd, k->path, k->buf, n, k->at, e));
        if (memcmp(k->buf, data, n) != 0) {
            size_t i = 0;
            while (k->buf[i] == ((const uint8_t *)data)[i]) i++;
            k->differs = k->at + i;
        }
    }
    k->at += n;
    return INGOT_OK;
}

static void bad_file(struct check *c, const char *kind, const char *name, uint64_t offset,
                     const char *text)
{
    char line[900];
    snprintf(line, sizeof line, "%s: %s", ig_esc(name, strlen(name)).s, text);
    ig_check_bad(c, &(struct finding){.kind = kind, .offset = offset, .text = line});
}

/* Open DIR/NAME; -1 and a finding when it is not there or has another size. */
static ingot_status open_original(struct check *c, const char *name, uint64_t bytes, int *fd,
                                  char **path, ingot_error *e)
{
    struct stat st;
    bool there;
    *fd = -1;
    *path = ig_format("%s/%s", c->v->source, name);
    if (!*path) return ig_no_memory(e);
    return_if_error(ig_stat(*path, &st, &there, e));
    if (!there || !S_ISREG(st.st_mode)) {
        bad_file(c, "missing", name, UINT64_MAX, "not in the source folder");
    } else if ((uint64_t)st.st_size != bytes) {
        bad_file(c, "changed", name, UINT64_MAX, "the original has another size");
    } else if ((*fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", *path);
        return ig_at(e, *path, NULL, 0);
    }
    return INGOT_OK;
}

static ingot_status check_one(struct check *c, uint32_t i, bool folder, ingot_error *e)
{
    const struct ig_source *s = &c->pack.sources[i];
    char *path = NULL;
    uint8_t sha[IG_HASH];
    struct compare k = {.c = c, .fd = -1, .differs = UINT64_MAX};
    ingot_status status = folder ? open_original(c, s->name, s->bytes, &k.fd, &path, e) : INGOT_OK;
    k.path = path;
    ig_sha_init(&k.sha);
    if (status == INGOT_OK) status = ig_rebuild_export(&c->pack, i, take, &k, e);
    ig_sha_final(&k.sha, sha);
    if (k.fd >= 0) close(k.fd);
    free(k.buf);
    free(path);
    if (status == INGOT_ERR_PACK || status == INGOT_ERR_INPUT) { /* the pack contradicts itself */
        bad_file(c, "source", s->name, UINT64_MAX, e->message);
        return INGOT_OK;
    }
    return_if_error(status);
    pthread_mutex_lock(&c->lock);
    c->bytes_hashed += k.at;
    pthread_mutex_unlock(&c->lock);
    if (memcmp(sha, s->sha256, IG_HASH) != 0) {
        char text[400];
        snprintf(text, sizeof text, "%s: SHA-256 of the file rebuilt from the pack",
                 ig_esc(s->name, strlen(s->name)).s);
        ig_check_bad(c, &(struct finding){.kind = "source",
                                          .offset = UINT64_MAX,
                                          .expected = s->sha256,
                                          .found = sha,
                                          .hash_len = IG_HASH,
                                          .text = text});
    }
    if (k.differs != UINT64_MAX)
        bad_file(c, "changed", s->name, k.differs, "the original differs here");
    return INGOT_OK;
}

/* A derived pack holds no originals; those in the folder must still be the recorded ones. */
static ingot_status check_recorded(struct check *c, uint32_t i, ingot_error *e)
{
    const struct ig_source *s = &c->pack.sources[i];
    char *path = NULL;
    int fd = -1;
    uint8_t *buf = ig_pages(WINDOW), sha[IG_HASH];
    struct ig_sha h;
    ingot_status status =
        buf ? open_original(c, s->name, s->bytes, &fd, &path, e) : ig_no_memory(e);
    ig_sha_init(&h);
    for (uint64_t at = 0; fd >= 0 && at < s->bytes && status == INGOT_OK;) {
        const size_t n = s->bytes - at < WINDOW ? (size_t)(s->bytes - at) : WINDOW;
        status = ig_pread(fd, path, buf, n, at, e);
        if (status == INGOT_OK) ig_sha_update(&h, buf, n);
        at += n;
    }
    ig_sha_final(&h, sha);
    if (status == INGOT_OK && fd >= 0 && memcmp(sha, s->sha256, IG_HASH) != 0)
        bad_file(c, "changed", s->name, UINT64_MAX,
                 "SHA-256 of the original is not the recorded one");
    if (fd >= 0) close(fd);
    free(buf);
    free(path);
    return status;
}

/* What cannot be read is not compared, and must not pass for equal. */
static ingot_status check_blob(struct check *c, uint32_t i, const char *name, uint64_t bytes,
                               ingot_error *e)
{
    char *path = NULL;
    struct compare k = {.c = c, .fd = -1, .differs = UINT64_MAX};
    ig_sha_init(&k.sha);
    ingot_status status = open_original(c, name, bytes, &k.fd, &path, e);
    k.path = path;
    if (status == INGOT_OK && k.fd >= 0) status = ig_pack_copy_blob(&c->pack, i, take, &k, e);
    if (status == INGOT_ERR_PACK || status == INGOT_ERR_CHECK) { /* found by others, too */
        bad_file(c, "blob", name, UINT64_MAX, e->message);
        status = INGOT_OK;
    } else if (status == INGOT_OK && k.differs != UINT64_MAX) {
        bad_file(c, "changed", name, k.differs, "the original differs here");
    }
    if (k.fd >= 0) close(k.fd);
    free(path), free(k.buf);
    return status;
}

static ingot_status check_blobs(struct check *c, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    for (uint32_t i = 0; i < c->pack.nblobs && status == INGOT_OK; i++) {
        struct ig_blob b;
        ig_pack_blob(&c->pack, i, &b);
        if (b.kind != IG_BLOB_FILE) continue;
        char *name = ig_format("%.*s", (int)b.name_len, b.name);
        status = name ? check_blob(c, i, name, b.bytes, e) : ig_no_memory(e);
        free(name);
    }
    return status;
}

struct each {
    struct check *c;
    bool folder, derived;
};

static ingot_status check_each(void *ctx, uint64_t i, unsigned worker, ingot_error *e)
{
    const struct each *x = ctx;
    (void)worker;
    if (!x->derived) return check_one(x->c, (uint32_t)i, x->folder, e);
    return x->folder ? check_recorded(x->c, (uint32_t)i, e) : INGOT_OK;
}

ingot_status ig_check_sources(struct check *c, json_t *report, ingot_error *e)
{
    struct stat st;
    struct each x = {.c = c, .derived = ig_pack_is_derived(&c->pack)};
    return_if_error(ig_stat(c->v->source, &st, &x.folder, e));
    x.folder = x.folder && S_ISDIR(st.st_mode);
    return_if_error(ig_parallel(c->v->threads ? c->v->threads : ig_cpus(), c->pack.nsources,
                                check_each, &x, e));
    if (x.folder) return_if_error(check_blobs(c, e));
    json_object_set_new(report, "sources",
                        json_string(x.folder
                                        ? (x.derived ? "compared with their recorded SHA-256"
                                                     : "compared byte by byte")
                                        : (x.derived ? "not held by a derived pack"
                                                     : "folder is gone; SHA-256 derived anew")));
    return INGOT_OK;
}
