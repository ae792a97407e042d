/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where SRC really is.  A Hugging Face cache keeps a repository as
 * models--org--name/{blobs,refs,snapshots/<commit>/...}, the snapshot's files being links
 * into blobs.  https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
#include "convert/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REVISION 40

static bool is_revision(const char *s)
{
    return strlen(s) == REVISION && ig_is_hex(s, REVISION);
}

/* What snapshots/ holds: the first revision, and all of them in one line. */
struct snapshots {
    char *first, *names;
    size_t n;
};

static ingot_status add_snapshot(void *ctx, const char *name, ingot_error *e)
{
    struct snapshots *found = ctx;
    if (!is_revision(name)) return INGOT_OK;
    char *more = ig_format("%s%s%s", found->n ? found->names : "", found->n ? ", " : "", name);
    if (found->n++ == 0) found->first = strdup(name);
    free(found->names);
    found->names = more;
    return more && found->first ? INGOT_OK : ig_no_memory(e);
}

static ingot_status only_snapshot(const char *folder, char **revision, ingot_error *e)
{
    struct snapshots found = {0};
    ingot_status status = ig_each_entry(folder, false, add_snapshot, &found, e);
    if (status == INGOT_OK && found.n == 0)
        status = ig_fail(e, INGOT_ERR_INPUT, "%s: no snapshot in this hub cache", folder);
    if (status == INGOT_OK && found.n > 1)
        status =
            ig_fail(e, INGOT_ERR_INPUT, "%s: %zu snapshots and no refs/main; give one of them: %s",
                    folder, found.n, found.names);
    free(found.names);
    if (status == INGOT_OK)
        *revision = found.first;
    else
        free(found.first);
    return status;
}

/* The snapshot that refs/main names, or the only one there is. */
static ingot_status choose_snapshot(const char *root, char **revision, ingot_error *e)
{
    size_t n = 0;
    ingot_status status = INGOT_OK;
    char *ref = ig_format("%s/refs/main", root), *folder = ig_format("%s/snapshots", root);
    if (!ref || !folder) {
        status = ig_no_memory(e);
    } else if ((status = ig_read_file(ref, 4096, revision, &n, e)) != INGOT_OK) {
        if (status == INGOT_ERR_NOT_FOUND || status == INGOT_ERR_INPUT)
            status = only_snapshot(folder, revision, e);
    } else {
        (*revision)[strcspn(*revision, " \t\r\n")] = '\0';
        if (!is_revision(*revision))
            status = ig_fail(e, INGOT_ERR_INPUT, "%s: \"%s\", expected a commit of 40 hex digits",
                             ref, ig_esc(*revision, strlen(*revision)).s);
    }
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

static ingot_status has_folder(const char *root, const char *name, bool *has, ingot_error *e)
{
    struct stat st;
    char *path = ig_format("%s/%s", root, name);
    const ingot_status status = path ? ig_stat(path, &st, has, e) : ig_no_memory(e);
    if (status == INGOT_OK) *has = *has && S_ISDIR(st.st_mode);
    free(path);
    return status;
}

/* models--org--name itself, with its snapshots in it? */
static ingot_status is_hub_root(const char *root, bool *is, ingot_error *e)
{
    bool blobs = false;
    return_if_error(has_folder(root, "snapshots", is, e));
    if (*is) return_if_error(has_folder(root, "blobs", &blobs, e));
    *is = *is && blobs;
    return INGOT_OK;
}

bool ig_leads_nowhere(int why)
{
    return why == ENOENT || why == ENOTDIR || why == ELOOP;
}

ingot_status ig_src_locate(struct ig_src *s, const char *path, ingot_error *e)
{
    struct stat st;
    bool hub = false;
    if (stat(path, &st) != 0) {
        char target[512];
        const int why = errno;
        const ssize_t n = readlink(path, target, sizeof target); /* fails for what is no link */
        if (n >= 0 && ig_leads_nowhere(why))
            return ig_fail(e, INGOT_ERR_INPUT, "%s: symlink, target missing or a loop: %s",
                           ig_esc(path, strlen(path)).s, ig_esc(target, (size_t)n).s);
        ig_fail_sys(e, why, "%s: cannot open", ig_esc(path, strlen(path)).s);
        return ig_at(e, path, NULL, 0);
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return ig_fail(e, INGOT_ERR_INPUT, "%s: neither a folder nor a regular file",
                       ig_esc(path, strlen(path)).s);
    /* A file may be a hub link whose own name matters, so only folders are resolved. */
    s->root = S_ISDIR(st.st_mode) ? realpath(path, NULL) : strdup(path);
    if (!s->root) return ig_fail_sys(e, errno, "%s: cannot resolve", path);
    if (S_ISDIR(st.st_mode)) return_if_error(is_hub_root(s->root, &hub, e));
    if (hub) {
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
