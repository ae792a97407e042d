/* SPDX-License-Identifier: Apache-2.0 */
/* The one reader of safetensors files: what stands before the header, and the steps. */
#include "convert/st_private.h"
#include "convert/st_sniff.h"

#include <stdlib.h>
#include <string.h>

/* A header starts with '{', perhaps after white space, where its length says. */
static bool looks_right(const char *buf, size_t n, uint64_t header_len, uint64_t file_size)
{
    return n > 8 && header_len <= file_size - 8 && buf[8] && strchr("{ \t\r\n", buf[8]);
}

static ingot_status refuse(const char *path, ingot_error *e, const char *what)
{
    ig_fail(e, INGOT_ERR_INPUT, "%s: not a safetensors file but %s", ig_esc(path, strlen(path)).s,
            what);
    return ig_at_offset(e, path, 0);
}

/* Is it something else?  Asked before the length is believed, since a zip archive's
 * first bytes are a plausible one; but a length may have a magic number's bytes too. */
static ingot_status check_kind(const char *buf, size_t n, const char *path, uint64_t file_size,
                               ingot_error *e)
{
    char oid[65], what[160];
    uint64_t size;
    if (n >= 8 && looks_right(buf, n, ig_get64(buf), file_size)) return INGOT_OK;
    if (n == file_size && ig_lfs_pointer(buf, n, oid, &size)) {
        snprintf(what, sizeof what, "a Git-LFS pointer to it: oid sha256:%s, %llu bytes promised",
                 oid[0] ? oid : "?", (unsigned long long)size);
        return refuse(path, e, what);
    }
    const char *kind = ig_sniff(buf, n);
    if (kind) return refuse(path, e, kind);
    if (!file_size) return refuse(path, e, "an empty file");
    if (file_size >= 8) return INGOT_OK;
    snprintf(what, sizeof what, "%llu bytes (expected 8 or more)", (unsigned long long)file_size);
    return refuse(path, e, what);
}

/* " (it starts with the text "...")": a failed download is often an error in words. */
static void text_hint(char *out, size_t cap, const char *start)
{
    out[0] = '\0';
    for (size_t i = 0; i < 8; i++)
        if (start[i] < 0x20 || start[i] == 0x7f) return;
    snprintf(out, cap, " (it starts with the text \"%s\")", ig_esc(start, 8).s);
}

/* Compare the length with what there is and with the cap, before anything of its size
 * is allocated; no sum that could wrap. */
static ingot_status check_length(const char *start, const char *path, uint64_t file_size,
                                 uint64_t max_header, ingot_error *e)
{
    const uint64_t n = ig_get64(start), room = file_size - 8;
    const struct ig_esc p = ig_esc(path, strlen(path));
    char hint[320];
    if (n == 0) {
        ig_fail(e, INGOT_ERR_INPUT, "%s: header of 0 bytes (expected a JSON object)", p.s);
    } else if (n > room) {
        text_hint(hint, sizeof hint, start);
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: header of %llu bytes wanted, the file has %llu, 8 of them before the header%s",
                p.s, (unsigned long long)n, (unsigned long long)file_size, hint);
    } else if (n > max_header) {
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: header of %llu bytes is above the cap of %llu (--max-header raises it)", p.s,
                (unsigned long long)n, (unsigned long long)max_header);
    } else if (n > IG_ST_HARD_CAP) {
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: header of %llu bytes (expected at most %llu whatever --max-header says)", p.s,
                (unsigned long long)n, (unsigned long long)IG_ST_HARD_CAP);
    } else {
        return INGOT_OK;
    }
    return ig_at_offset(e, path, 0);
}

/* The header's 8 + N bytes are in st; give the rest of st its values. */
static ingot_status parse(struct ig_st *st, const char *path, ingot_error *e)
{
    return_if_error(ig_st_parse_header(st, path, e));
    if (st->count) {
        void *exact = realloc(st->tensors, st->count * sizeof st->tensors[0]);
        if (exact) st->tensors = exact;
    }
    return ig_st_check_layout(st, path, e);
}

ingot_status ig_st_parse(char *header, uint64_t header_len, const char *path, uint64_t file_size,
                         struct ig_st *out, ingot_error *e)
{
    memset(out, 0, sizeof *out);
    if (header_len > IG_ST_HARD_CAP || file_size < 8 || header_len > file_size - 8 ||
        ig_get64(header) != header_len) {
        ig_fail(e, INGOT_ERR_INPUT,
                "%s: header of %llu bytes in a file of %llu says another length",
                ig_esc(path, strlen(path)).s, (unsigned long long)header_len,
                (unsigned long long)file_size);
        return ig_at_offset(e, path, 0);
    }
    struct ig_st st = {.header = header, .header_len = header_len, .file_size = file_size};
    const ingot_status status = parse(&st, path, e);
    if (status != INGOT_OK) {
        st.header = NULL; /* stays the caller's */
        ig_st_free(&st);
        return status;
    }
    *out = st;
    return INGOT_OK;
}

ingot_status ig_st_read(int fd, const char *path, uint64_t file_size, uint64_t max_header,
                        struct ig_st *out, ingot_error *e)
{
    char start[IG_SNIFF_BYTES];
    const size_t n = file_size < sizeof start ? (size_t)file_size : sizeof start;
    memset(out, 0, sizeof *out);
    return_if_error(ig_pread(fd, path, start, n, 0, e));
    return_if_error(check_kind(start, n, path, file_size, e));
    return_if_error(check_length(start, path, file_size, max_header, e));
    const uint64_t header_len = ig_get64(start);
    char *header = malloc((size_t)header_len + 8);
    if (!header) return ig_no_memory(e);
    ingot_status status = ig_pread(fd, path, header, (size_t)header_len + 8, 0, e);
    if (status == INGOT_OK) status = ig_st_parse(header, header_len, path, file_size, out, e);
    if (status != INGOT_OK) free(header);
    return status;
}

void ig_st_free(struct ig_st *st)
{
    free(st->header);
    free(st->tensors);
    ig_st_free_blocks(st->arena[0]);
    memset(st, 0, sizeof *st);
}
