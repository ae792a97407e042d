/* SPDX-License-Identifier: Apache-2.0 */
/* Where policies may come from: folders and files that nobody but root or the user can write. */
#include "verify/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST    ((uint64_t)1 << 20)
#define KEYS_MOST    4096u
#define SYSTEM_TRUST "/etc/ingot/trust.d"

static ingot_status bad(const char *path, const char *why, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT, "%s: %s", ig_esc(path, strlen(path)).s, why);
    return ig_at(e, path, NULL, 0);
}

static ingot_status check_owner(const char *path, const struct stat *st, ingot_error *e)
{
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return bad(path, "others than its owner can write it: not a place for rules (chmod go-w)",
                   e);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return bad(path, "belongs to somebody else: not a place for rules", e);
    return INGOT_OK;
}

/* Whoever can add models must not be able to add rules. */
static ingot_status check_outside(const struct ig_store *s, const char *folder, ingot_error *e)
{
    char store[PATH_MAX], real[PATH_MAX];
    if (!realpath(s->root, store)) return INGOT_OK; /* no store, nothing in it */
    if (!realpath(folder, real))
        return ig_fail_sys(e, errno, "%s: cannot resolve", ig_esc(folder, strlen(folder)).s);
    const size_t n = strlen(store);
    if (strncmp(real, store, n) == 0 && (real[n] == '/' || real[n] == '\0'))
        return bad(folder, "lies in the store, and rules never come from there", e);
    return INGOT_OK;
}

/* A folder above that everybody may write, and no sticky bit keeps apart, makes room for another.
 */
static ingot_status check_above(const char *folder, ingot_error *e)
{
    char path[PATH_MAX];
    struct stat st;
    if (!realpath(folder, path))
        return ig_fail_sys(e, errno, "%s: cannot resolve", ig_esc(folder, strlen(folder)).s);
    for (char *slash; (slash = strrchr(path, '/')) && path[1];) {
        slash[slash == path] = '\0';
        if (stat(path, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot stat", path);
        if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
            return bad(path, "everybody can write it: no place above rules (chmod o-w)", e);
    }
    return INGOT_OK;
}

/* What is checked is what is read. */
static ingot_status read_file(const char *path, char **text, size_t *n, ingot_error *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *text = NULL;
    if (fd < 0) {
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    ingot_status status = INGOT_OK;
    if (fstat(fd, &st) != 0)
        status = ig_fail_sys(e, errno, "%s: cannot stat", path);
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MOST)
        status = bad(path, "expected a file of at most 1 MiB", e);
    if (status == INGOT_OK) status = check_owner(path, &st, e);
    if (status == INGOT_OK && !(*text = malloc((size_t)st.st_size + 1))) status = ig_no_memory(e);
    if (status == INGOT_OK) status = ig_pread(fd, path, *text, (size_t)st.st_size, 0, e);
    close(fd);
    if (status == INGOT_OK) {
        *n = (size_t)st.st_size;
        (*text)[*n] = '\0';
        return INGOT_OK;
    }
    free(*text);
    *text = NULL;
    return status;
}

/* One key or one certificate a file, so that a fingerprint says which file is meant. */
static ingot_status describe(const char *path, struct ig_trust_key *k, ingot_error *e)
{
    struct ig_bundle b = {0};
    struct ig_key key = {0};
    uint8_t sha256[IG_HASH];
    ingot_status status = ig_chain_read(path, NULL, NULL, &b, NULL);
    k->is_ca = status == INGOT_OK;
    if (k->is_ca && b.ncerts > 1)
        status = bad(path, "holds several certificates: one a file", e);
    else if (k->is_ca) {
        ig_sha256(sha256, b.certs[0].data, b.certs[0].n);
        ig_hex(k->fingerprint, sha256, IG_HASH);
    } else {
        status = ig_key_read_public(path, &key, e);
        if (status == INGOT_OK) memcpy(k->fingerprint, key.hint, sizeof k->fingerprint);
    }
    ig_key_free(&key);
    ig_bundle_free(&b);
    return status;
}

static ingot_status add_key(struct ig_trust *t, const char *path, ingot_error *e)
{
    if (t->nkeys == KEYS_MOST) return bad(path, "too many keys in one folder", e);
    struct ig_trust_key *grown = realloc(t->keys, (t->nkeys + 1) * sizeof *grown);
    if (!grown) return ig_no_memory(e);
    t->keys = grown;
    struct ig_trust_key *k = &t->keys[t->nkeys];
    *k = (struct ig_trust_key){.path = strdup(path)};
    if (!k->path) return ig_no_memory(e);
    t->nkeys++;
    return describe(path, k, e);
}

struct reading {
    struct ig_trust *t;
    const char *folder;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static ingot_status take_entry(void *ctx, const char *name, ingot_error *e)
{
    const struct reading *r = ctx;
    const bool rules = ends_with(name, ".trust"),
               key = ends_with(name, ".pem") || ends_with(name, ".pub");
    if (name[0] == '.' || (!rules && !key)) return INGOT_OK;
    char *path = ig_format("%s/%s", r->folder, name), *text = NULL;
    size_t n = 0;
    ingot_status status = path ? read_file(path, &text, &n, e) : ig_no_memory(e);
    if (status == INGOT_OK)
        status = rules ? ig_rules_parse(text, n, path, r->t, e) : add_key(r->t, path, e);
    free(text), free(path);
    return status;
}

static ingot_status read_folder(const struct ig_store *s, const char *folder, bool absent_ok,
                                struct ig_trust *t, ingot_error *e)
{
    struct reading r = {.t = t, .folder = folder};
    struct stat st;
    bool there;
    return_if_error(ig_stat(folder, &st, &there, e));
    char *folders =
        ig_format("%s%s%s", t->folders ? t->folders : "", t->folders ? ", " : "", folder);
    if (!folders) return ig_no_memory(e);
    free(t->folders);
    t->folders = folders;
    if (!there && absent_ok) return INGOT_OK;
    if (!there || !S_ISDIR(st.st_mode)) return bad(folder, "is no folder", e);
    return_if_error(check_owner(folder, &st, e));
    return_if_error(check_above(folder, e));
    return_if_error(check_outside(s, folder, e));
    return ig_each_entry(folder, false, take_entry, &r, e);
}

const struct ig_trust_key *ig_trust_key(const struct ig_trust *t, const struct ig_rule *r)
{
    for (size_t i = 0; i < t->nkeys; i++)
        if (t->keys[i].is_ca == (r->kind == IG_RULE_CA) &&
            strcmp(t->keys[i].fingerprint, r->fingerprint) == 0)
            return &t->keys[i];
    return NULL;
}

/* A rule about a key that is not there would never accept anything, and never say why. */
static ingot_status check_keys(const struct ig_trust *t, ingot_error *e)
{
    for (size_t i = 0; i < t->nrules; i++) {
        const struct ig_rule *r = &t->rules[i];
        if (r->kind == IG_RULE_DENY || ig_trust_key(t, r)) continue;
        return ig_fail(e, INGOT_ERR_INPUT, "%s: no .pem or .pub file of %s holds the %s sha256:%s",
                       r->where, t->folders, r->kind == IG_RULE_CA ? "certificate" : "key",
                       r->fingerprint);
    }
    return INGOT_OK;
}

static char *user_folder(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config == '/') return ig_format("%s/ingot/trust.d", config);
    return home && *home == '/' ? ig_format("%s/.config/ingot/trust.d", home) : NULL;
}

ingot_status ig_trust_open(const struct ig_store *s, const char *folder, struct ig_trust *t,
                           ingot_error *e)
{
    *t = (struct ig_trust){0};
    ingot_status status = INGOT_OK;
    if (folder) {
        status = read_folder(s, folder, false, t, e);
    } else {
        char *user = user_folder();
        status = read_folder(s, SYSTEM_TRUST, true, t, e);
        if (status == INGOT_OK && user) status = read_folder(s, user, true, t, e);
        free(user);
    }
    if (status == INGOT_OK) status = check_keys(t, e);
    if (status != INGOT_OK) ig_trust_free(t);
    return status;
}

void ig_trust_free(struct ig_trust *t)
{
    for (size_t i = 0; i < t->nrules; i++)
        free(t->rules[i].name), free(t->rules[i].digests), free(t->rules[i].where);
    for (size_t i = 0; i < t->nkeys; i++) free(t->keys[i].path);
    free(t->rules);
    free(t->keys);
    free(t->folders);
    *t = (struct ig_trust){0};
}
