/* SPDX-License-Identifier: Apache-2.0 */
/* One input of a command: hashed as it is read, so that a record of it is of what was used. */
#include "verify/pin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "pin:"

/* Sets may have slashes in their names, but no name is a folder of another: the first that is there
 * is meant. */
static ingot_status find_set(const struct ig_store *s, const char *rest, struct ig_ref *ref,
                             const char **path, ingot_error *e)
{
    ingot_status status = INGOT_ERR_NOT_FOUND;
    for (const char *slash = strchr(rest, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *name = strndup(rest, (size_t)(slash - rest));
        if (!name) return ig_no_memory(e);
        status = ig_store_resolve(s, name, ref, e);
        free(name);
        *path = slash + 1;
        if (status != INGOT_ERR_NOT_FOUND) return status;
    }
    return ig_fail(e, status, PREFIX "%s: no input set of that name; expected " PREFIX "NAME/path",
                   ig_esc(rest, strlen(rest)).s);
}

static ingot_status read_blob(const struct ig_pack *p, const char *path, size_t most,
                              struct ig_input *out, ingot_error *e)
{
    struct ig_blob b;
    size_t n = 0;
    const uint32_t i = ig_pack_find_blob(p, path, IG_BLOB_FILE);
    if (i == IG_NONE)
        return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: the set has no file \"%s\"", out->what,
                       ig_esc(path, strlen(path)).s);
    ig_pack_blob(p, i, &b);
    if (most && b.bytes > most)
        return ig_fail(e, INGOT_ERR_INPUT, "%s: %llu bytes, expected at most %zu", out->what,
                       (unsigned long long)b.bytes, most);
    memcpy(out->sha256, b.sha256, IG_HASH);
    out->bytes = b.bytes;
    const ingot_status status =
        most ? ig_pack_read_blob(p, i, &out->data, &n, e) : ig_pack_copy_blob(p, i, NULL, NULL, e);
    if (status != INGOT_ERR_PACK) return status;
    if (e) e->status = INGOT_ERR_CHECK; /* its hash is proven, so the bytes are what is wrong */
    return INGOT_ERR_CHECK;
}

static ingot_status read_pinned(const struct ig_store *s, const char *rest, size_t most,
                                struct ig_input *out, ingot_error *e)
{
    struct ig_ref ref = {0};
    struct ig_pack p = {.fd = -1};
    const char *path = NULL;
    ingot_status status = find_set(s, rest, &ref, &path, e);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &p, e);
    if (status == INGOT_OK && !ref.has_digest)
        status = ig_fail(e, INGOT_ERR_USAGE, "%s: nothing says what its digest must be", out->what);
    if (status == INGOT_OK) status = ig_pack_prove(&p, ref.digest, e);
    if (status == INGOT_OK) status = read_blob(&p, path, most, out, e);
    memcpy(out->set, ref.digest, IG_HASH);
    ig_pack_close(&p);
    ig_ref_free(&ref);
    return status;
}

static ingot_status read_file(const char *path, size_t most, struct ig_input *out, ingot_error *e)
{
    size_t n = 0;
    if (most) {
        return_if_error(ig_read_file(path, most, &out->data, &n, e));
        out->bytes = n;
        ig_sha256(out->sha256, out->data, n);
        return INGOT_OK;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    const ingot_status status = ig_sha256_fd(fd, path, out->sha256, &out->bytes, e);
    close(fd);
    return status;
}

/* most 0: only hashed. */
static ingot_status take(const struct ig_store *s, const char *arg, size_t most,
                         struct ig_input *out, ingot_error *e)
{
    *out = (struct ig_input){.what = strdup(arg),
                             .pinned = strncmp(arg, PREFIX, sizeof PREFIX - 1) == 0};
    if (!out->what) return ig_no_memory(e);
    ig_printable(out->what);
    const ingot_status status = out->pinned ? read_pinned(s, arg + sizeof PREFIX - 1, most, out, e)
                                            : read_file(arg, most, out, e);
    if (status != INGOT_OK) ig_input_free(out);
    return status;
}

ingot_status ig_input_read(const struct ig_store *s, const char *arg, size_t most,
                           struct ig_input *out, ingot_error *e)
{
    return take(s, arg, most, out, e);
}

ingot_status ig_input_hash(const struct ig_store *s, const char *arg, struct ig_input *out,
                           ingot_error *e)
{
    return take(s, arg, 0, out, e);
}

void ig_input_free(struct ig_input *in)
{
    free(in->what);
    free(in->data);
    *in = (struct ig_input){0};
}
