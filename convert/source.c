/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ig_src_warn(struct ig_src *s, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ig_printable(text); /* what was cut in the middle of a character is no JSON string */
    json_array_append_new(s->warnings, json_string(text));
}

static ingot_status refuse_changed(const struct ig_src_file *f, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT, "%s: file changed while it was being converted",
            ig_esc(f->path, strlen(f->path)).s);
    return ig_at(e, f->path, NULL, 0);
}

ingot_status ig_src_file_same(const struct ig_src_file *f, int fd, ingot_error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot stat", f->path);
    const bool same = st.st_dev == f->st.st_dev && st.st_ino == f->st.st_ino &&
                      st.st_size == f->st.st_size && st.st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
                      st.st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
    return same ? INGOT_OK : refuse_changed(f, e);
}

ingot_status ig_src_file_open(const struct ig_src_file *f, int *fd, ingot_error *e)
{
    *fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(f->path, strlen(f->path)).s);
        return ig_at(e, f->path, NULL, 0);
    }
    const ingot_status status = ig_src_file_same(f, *fd, e);
    if (status != INGOT_OK) close(*fd), *fd = -1;
    return status;
}

ingot_status ig_src_check_oid(const struct ig_src_file *f, const uint8_t sha[IG_HASH],
                              ingot_error *e)
{
    if (!f->has_oid || memcmp(sha, f->oid, IG_HASH) == 0) return INGOT_OK;
    char found[65], wanted[65];
    ig_hex(found, sha, IG_HASH);
    ig_hex(wanted, f->oid, IG_HASH);
    ig_fail(e, INGOT_ERR_INPUT, "%s: SHA-256 is %s, expected %s as the hub cache names it", f->path,
            found, wanted);
    return ig_at(e, f->path, NULL, 0);
}

ingot_status ig_src_reader_next(struct ig_src_reader *r, const struct ig_src_file *f, void *buf,
                                size_t n, uint64_t offset, ingot_error *e)
{
    if (offset == 0) {
        ig_sha_init(&r->sha);
        return_if_error(ig_src_file_open(f, &r->fd, e));
    }
    return_if_error(ig_pread(r->fd, f->path, buf, n, offset, e));
    ig_sha_update(&r->sha, buf, n);
    if (offset + n < (uint64_t)f->st.st_size) return INGOT_OK;
    return_if_error(ig_src_file_same(f, r->fd, e));
    return_if_error(ig_close(&r->fd, f->path, e));
    ig_sha_final(&r->sha, r->sha256);
    return ig_src_check_oid(f, r->sha256, e);
}

static ingot_status read_headers(struct ig_src *s, uint64_t max_header, ingot_error *e)
{
    for (uint32_t i = 0; i < s->nweights; i++) {
        struct ig_src_file *f = &s->weights[i];
        int fd;
        return_if_error(ig_src_file_open(f, &fd, e));
        const ingot_status status =
            ig_st_read(fd, f->path, (uint64_t)f->st.st_size, max_header, &f->header, e);
        close(fd);
        if (status != INGOT_OK) return status;
    }
    return INGOT_OK;
}

ingot_status ig_src_open(const struct ig_convert *c, const char *store_root, struct ig_src *s,
                         ingot_error *e)
{
    struct stat st;
    bool there;
    *s = (struct ig_src){.not_held = json_array(),
                         .warnings = json_array(),
                         .config_blob = IG_NONE,
                         .hf_quant_blob = IG_NONE};
    if (!s->not_held || !s->warnings) return ig_no_memory(e);
    return_if_error(ig_stat(store_root, &s->skip, &there, e));
    if (!there) s->skip = (struct stat){0};
    return_if_error(ig_src_locate(s, c->source, e));
    if (stat(s->root, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot open", s->root);
    return_if_error(ig_src_scan(s, e));
    return_if_error(read_headers(s, c->max_header, e));
    return S_ISDIR(st.st_mode) ? ig_src_read_config(s, c, e) : INGOT_OK;
}

static void free_files(struct ig_src_file *files, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(files[i].name);
        free(files[i].path);
        ig_st_free(&files[i].header);
    }
    free(files);
}

void ig_src_free(struct ig_src *s)
{
    free_files(s->weights, s->nweights);
    free_files(s->blobs, s->nblobs);
    free_files(s->sigs, s->nsigs);
    json_decref(s->not_held);
    json_decref(s->warnings);
    json_decref(s->config);
    json_decref(s->hf_quant);
    json_decref(s->index);
    json_decref(s->total_size);
    free(s->root);
    free(s->label);
    free(s->repo);
    free(s->revision);
    *s = (struct ig_src){0};
}
