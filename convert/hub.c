/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where SRC really is.  A Hugging Face cache keeps a repository as
 * models--org--name/{blobs,refs,snapshots/<commit>/...}, the snapshot's files being links
 * into blobs.  https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
#include "convert/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REVISION 40

static bool is_revision(const char *s)
{
    return strlen(s) == REVISION && ig_is_hex(s, REVISION);
}

/* The only entry of snapshots/, or the one refs/main names. */
static ingot_status choose_snapshot(const char *root, char **revision, ingot_error *e)
{
    char *text = NULL, *names = NULL;
    size_t n = 0, found = 0;
    ingot_status status = INGOT_OK;
    char *ref = ig_format("%s/refs/main", root), *folder = ig_format("%s/snapshots", root);
    DIR *dir = folder ? opendir(folder) : NULL;
    if (!ref || !folder) {
        status = ig_no_memory(e);
        goto out;
    }
    if (!dir) {
        status = ig_fail_sys(e, errno, "%s: cannot list snapshots", folder);
        goto out;
    }
    if (ig_read_file(ref, 4096, &text, &n, NULL) == INGOT_OK) {
        text[strcspn(text, " \t\r\n")] = '\0';
        if (!is_revision(text))
            status = ig_fail(e, INGOT_ERR_INPUT, "%s: \"%s\", expected a commit of 40 hex digits",
                             ref, ig_esc(text, strlen(text)).s);
        *revision = text;
        text = NULL;
        goto out;
    }
    for (struct dirent *d; (d = readdir(dir));) {
        if (!is_revision(d->d_name)) continue;
        char *more = ig_format("%s%s%s", names ? names : "", names ? ", " : "", d->d_name);
        free(names);
        names = more;
        if (found++ == 0) *revision = strdup(d->d_name);
    }
    if (found == 0)
        status = ig_fail(e, INGOT_ERR_INPUT, "%s: no snapshot in this hub cache", folder);
    else if (found > 1)
        status =
            ig_fail(e, INGOT_ERR_INPUT, "%s: %zu snapshots and no refs/main; give one of them: %s",
                    folder, found, names ? names : "");
    else if (!*revision)
        status = ig_no_memory(e);
out:
    if (dir) closedir(dir);
    free(names);
    free(text);
    free(ref);
    free(folder);
    return status;
}

/* "models--org--name" to "org/name"; NULL when base is no such name. */
static char *repo_of(const char *base)
{
    static const char prefix[] = "models--";
    if (strncmp(base, prefix, sizeof prefix - 1) != 0) return NULL;
    const char *org = base + sizeof prefix - 1;
    const char *cut = strstr(org, "--");
    return cut ? ig_format("%.*s/%s", (int)(cut - org), org, cut + 2) : strdup(org);
}

/* Split /a/models--o--n/snapshots/<commit>: repo and revision from the path alone. */
static void read_snapshot_path(struct ig_src *s)
{
    char *copy = strdup(s->root);
    char *cut = copy ? strrchr(copy, '/') : NULL;
    if (cut && is_revision(cut + 1)) {
        char *revision = cut + 1;
        *cut = '\0';
        char *folder = strrchr(copy, '/');
        if (folder && strcmp(folder + 1, "snapshots") == 0) {
            *folder = '\0';
            char *base = strrchr(copy, '/');
            s->repo = repo_of(base ? base + 1 : copy);
            if (s->repo && !s->revision) s->revision = strdup(revision);
        }
    }
    free(copy);
}

static char *label_of(const struct ig_src *s, const struct stat *st)
{
    if (s->repo) return strdup(s->repo);
    const char *base = strrchr(s->root, '/');
    base = base ? base + 1 : s->root;
    size_t n = strlen(base);
    static const char ext[] = ".safetensors";
    if (S_ISREG(st->st_mode) && n > sizeof ext - 1 && strcmp(base + n - (sizeof ext - 1), ext) == 0)
        n -= sizeof ext - 1;
    return ig_format("%.*s", (int)n, base);
}

static bool has_folder(const char *root, const char *name)
{
    struct stat st;
    char *path = ig_format("%s/%s", root, name);
    const bool yes = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return yes;
}

ingot_status ig_src_locate(struct ig_src *s, const char *path, ingot_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        struct stat link;
        char target[512];
        const ssize_t n = lstat(path, &link) == 0 ? readlink(path, target, sizeof target) : -1;
        if (n >= 0 && errno != EACCES)
            return ig_fail(e, INGOT_ERR_INPUT, "%s: symlink, target missing or a loop: %s",
                           ig_esc(path, strlen(path)).s, ig_esc(target, (size_t)n).s);
        ig_fail_sys(e, errno, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return ig_fail(e, INGOT_ERR_INPUT, "%s: neither a folder nor a regular file",
                       ig_esc(path, strlen(path)).s);
    /* A file may be a hub link whose own name matters, so only folders are resolved. */
    s->root = S_ISDIR(st.st_mode) ? realpath(path, NULL) : strdup(path);
    if (!s->root) return ig_fail_sys(e, errno, "%s: cannot resolve", path);
    if (S_ISDIR(st.st_mode) && has_folder(s->root, "snapshots") && has_folder(s->root, "blobs")) {
        return_if_error(choose_snapshot(s->root, &s->revision, e));
        char *snapshot = ig_format("%s/snapshots/%s", s->root, s->revision);
        if (!snapshot) return ig_no_memory(e);
        if (stat(snapshot, &st) != 0) {
            ig_fail_sys(e, errno, "%s: snapshot named by refs/main", snapshot);
            free(snapshot);
            return e ? e->status : INGOT_ERR_INPUT;
        }
        free(s->root);
        s->root = snapshot;
    }
    read_snapshot_path(s);
    s->label = label_of(s, &st);
    return s->label ? INGOT_OK : ig_no_memory(e);
}
