/* SPDX-License-Identifier: Apache-2.0 */
/* One name: its syntax, and the one-line file that points it at a pack. */
#include "store/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_FILE_MOST 1024u
#define MALFORMED \
    "%s: malformed name file, expected \"" IG_DIGEST_PREFIX "<64 hex digits> %s\" and a newline"

static bool alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool ig_name_component(const char *s, size_t len)
{
    if (len == 0 || !alnum(s[0])) return false;
    for (size_t i = 1; i < len; i++)
        if (!alnum(s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-') return false;
    return true;
}

static bool all_hex(const char *s, size_t len)
{
    return strspn(s, "0123456789abcdefABCDEF") >= len;
}

static ingot_status bad_name(const char *name, const char *why, ingot_error *e)
{
    return ig_fail(e, INGOT_ERR_USAGE, "\"%s\" is not a name: %s", ig_esc(name, strlen(name)).s,
                   why);
}

ingot_status ig_name_check(const char *name, ingot_error *e)
{
    const size_t len = strlen(name);
    unsigned parts = 0;
    if (len == 0) return bad_name(name, "it is empty", e);
    if (len > IG_NAME_MOST) return bad_name(name, "more than 255 bytes", e);
    if (strpbrk(name, ":@")) return bad_name(name, "':' and '@' are reserved", e);
    for (const char *p = name; p; parts++) {
        const char *slash = strchr(p, '/');
        if (!ig_name_component(p, slash ? (size_t)(slash - p) : strlen(p)))
            return bad_name(name,
                            "each part starts with a letter or digit and holds only letters, "
                            "digits, '.', '_' and '-'",
                            e);
        p = slash ? slash + 1 : NULL;
    }
    if (parts > IG_NAME_DEPTH) return bad_name(name, "more than 4 parts", e);
    if (len >= 8 && all_hex(name, len))
        return bad_name(name, "8 or more hex digits are a digest", e);
    if (len >= 6 && strcmp(name + len - 6, ".ingot") == 0)
        return bad_name(name, "it ends in .ingot, as paths do", e);
    return INGOT_OK;
}

ingot_status ig_name_parse(const char *path, const char *name, uint8_t digest[IG_HASH],
                           bool *has_digest, ingot_error *e)
{
    const size_t prefix = strlen(IG_DIGEST_PREFIX), name_at = prefix + 2 * IG_HASH + 1;
    char *text = NULL;
    size_t n = 0;
    *has_digest = false;
    ingot_status status = ig_read_file(path, NAME_FILE_MOST, &text, &n, e);
    if (status == INGOT_ERR_INPUT) {
        status = ig_fail(e, INGOT_ERR_PACK, MALFORMED, path, name);
        goto out;
    }
    if (status != INGOT_OK) goto out;
    if (n < name_at || memcmp(text, IG_DIGEST_PREFIX, prefix) != 0 ||
        !ig_unhex(digest, IG_HASH, text + prefix) || text[name_at - 1] != ' ') {
        status = ig_fail(e, INGOT_ERR_PACK, MALFORMED, path, name);
        goto out;
    }
    *has_digest = true;
    /* A file that was copied or renamed by hand says another name than its place. */
    if (n != name_at + strlen(name) + 1 || text[n - 1] != '\n' ||
        memcmp(text + name_at, name, strlen(name)) != 0)
        status = ig_fail(e, INGOT_ERR_PACK, "%s: is for the name \"%s\", expected \"%s\"", path,
                         ig_esc(text + name_at, strcspn(text + name_at, "\n")).s, name);
out:
    if (status != INGOT_OK) ig_at(e, path, NULL, 0);
    free(text);
    return status;
}

ingot_status ig_name_read(const struct ig_store *s, const char *name, uint8_t digest[IG_HASH],
                          ingot_error *e)
{
    struct stat st;
    bool has_digest, there;
    return_if_error(ig_name_check(name, e));
    char *path = ig_store_path(s, "names", name);
    if (!path) return ig_no_memory(e);
    ingot_status status = ig_stat(path, &st, &there, e);
    if (status == INGOT_OK && (!there || S_ISDIR(st.st_mode)))
        status = ig_fail(e, INGOT_ERR_NOT_FOUND, "no model named \"%s\" in %s", name, s->root);
    else if (status == INGOT_OK)
        status = ig_name_parse(path, name, digest, &has_digest, e);
    free(path);
    return status;
}

/* Folders of a name, each flushed into its parent before the name file is. */
static ingot_status make_parents(const struct ig_store *s, const char *name, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    for (const char *slash = strchr(name, '/'); slash && status == INGOT_OK;
         slash = strchr(slash + 1, '/')) {
        char *path = ig_format("%s/names/%.*s", s->root, (int)(slash - name), name);
        if (!path) return ig_no_memory(e);
        if (mkdir(path, 0777) == 0) {
            *strrchr(path, '/') = '\0';
            status = ig_fsync_dir(path, e);
        } else if (errno != EEXIST) {
            status = ig_fail_sys(e, errno, "%s: cannot create folder", path);
        }
        free(path);
    }
    return status;
}

static ingot_status write_file(const struct ig_store *s, const char *name,
                               const uint8_t digest[IG_HASH], bool replace, ingot_error *e)
{
    struct ig_temp temp = {.fd = -1};
    char hex[2 * IG_HASH + 1];
    ingot_status status = INGOT_OK;
    ig_hex(hex, digest, IG_HASH);
    char *dir = ig_store_path(s, "names", NULL), *path = ig_store_path(s, "names", name);
    char *text = ig_format(IG_DIGEST_PREFIX "%s %s\n", hex, name);
    if (!dir || !path || !text) {
        status = ig_no_memory(e);
        goto out;
    }
    if ((status = ig_temp_open_in(dir, false, &temp, e)) != INGOT_OK) goto out;
    if ((status = ig_pwrite(temp.fd, path, text, strlen(text), 0, e)) != INGOT_OK) goto out;
    if ((status = make_parents(s, name, e)) != INGOT_OK) goto out;
    rmdir(path); /* a folder that a killed rm left empty */
    status = ig_temp_place(&temp, path, 0444, replace, e);
out:
    ig_temp_discard(&temp);
    free(text);
    free(path);
    free(dir);
    return status;
}

/* What stands under the name: *same, nothing is left to do; *there, it may be replaced. */
static ingot_status look(const struct ig_store *s, const char *name, const uint8_t digest[IG_HASH],
                         bool replace, bool *same, bool *there, ingot_error *e)
{
    uint8_t old[IG_HASH];
    char hex[2 * IG_HASH + 1];
    const ingot_status status = ig_name_read(s, name, old, e);
    *same = status == INGOT_OK && memcmp(old, digest, IG_HASH) == 0;
    *there = status == INGOT_OK || status == INGOT_ERR_PACK;
    if (*same || status == INGOT_ERR_NOT_FOUND || (*there && replace)) return INGOT_OK;
    if (status != INGOT_OK) return status;
    ig_hex(hex, old, IG_HASH);
    return ig_fail(e, INGOT_ERR_EXISTS, "the name \"%s\" already points to " IG_DIGEST_PREFIX "%s",
                   name, hex);
}

static ingot_status write_alone(const struct ig_store *s, const char *name,
                                const uint8_t digest[IG_HASH], bool replace, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    bool same, there;
    return_if_error(ig_names_clash(s, name, e));
    /* A new name never overwrites; where another process was first, look at what it wrote. */
    for (int tries = 0; tries < 3; tries++) {
        return_if_error(look(s, name, digest, replace, &same, &there, e));
        if (same) return INGOT_OK;
        status = write_file(s, name, digest, there, e);
        if (status != INGOT_ERR_EXISTS) break;
    }
    return status;
}

ingot_status ig_name_write(const struct ig_store *s, const char *name,
                           const uint8_t digest[IG_HASH], bool replace, ingot_error *e)
{
    int lock = -1;
    return_if_error(ig_name_check(name, e));
    return_if_error(ig_names_lock(s, &lock, e));
    const ingot_status status = write_alone(s, name, digest, replace, e);
    close(lock);
    return status;
}

ingot_status ig_name_remove(const struct ig_store *s, const char *name, ingot_error *e)
{
    return_if_error(ig_name_check(name, e));
    char *path = ig_store_path(s, "names", name);
    if (!path) return ig_no_memory(e);
    ingot_status status = INGOT_OK;
    const size_t root = strlen(s->root) + strlen("/names");
    if (unlink(path) != 0) {
        status = ig_fail_sys(e, errno, "%s: cannot remove", path);
        goto out;
    }
    /* Upwards: each folder that is left empty goes, the first that is not is flushed. */
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        if ((size_t)(slash - path) <= root || rmdir(path) != 0) break;
    }
    status = ig_fsync_dir(path, e);
out:
    free(path);
    return status;
}
