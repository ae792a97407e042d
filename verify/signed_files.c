/* SPDX-License-Identifier: Apache-2.0 */
/* What is signed against what the pack holds: file by file, each hashed from the pack's bytes; or
 * at once, when the signer named the pack whose digest has just been proven. */
#include "verify/signed.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct lists {
    json_t *missing, *different, *extra, *unheld, *left_out;
    json_int_t matched;
};

static void append(json_t *list, const char *name)
{
    json_array_append_new(list, ig_text_json(name));
}

static void bad_file(struct check *c, const char *name, const char *text, const uint8_t *expected,
                     const uint8_t *found)
{
    char line[900];
    snprintf(line, sizeof line, "%s: %s", ig_esc(name, strlen(name)).s, text);
    ig_check_bad(c, &(struct finding){.kind = "signature",
                                      .offset = UINT64_MAX,
                                      .expected = expected,
                                      .found = found,
                                      .hash_len = IG_HASH,
                                      .text = line});
}

static bool may_lack(const struct ig_signature *job, const char *name)
{
    for (size_t i = 0; i < job->nunheld; i++)
        if (fnmatch(job->unheld[i], name, 0) == 0) return true;
    return false;
}

static bool is_left_out(const struct ig_statement *s, const char *name)
{
    if (ig_never_signed(name)) return true;
    for (size_t i = 0; i < s->nignored; i++)
        if (ig_path_within(name, s->ignored[i])) return true;
    return false;
}

/* A file signed alone has the name ".": it is the one source of a pack. */
static struct ig_file *find(const struct ig_files *f, const char *name)
{
    struct ig_file *only = NULL;
    if (strcmp(name, ".") != 0) return ig_files_find(f, name);
    for (size_t i = 0; i < f->n; i++) {
        if (f->list[i].source == IG_NONE) continue;
        if (only) return NULL;
        only = &f->list[i];
    }
    return only;
}

/* Which files have been asked for; one flag a file. */
static void compare(struct check *c, const struct ig_signed *s, const struct ig_files *f,
                    bool *asked, struct lists *l)
{
    for (size_t i = 0; i < s->statement.nresources; i++) {
        const struct ig_resource *r = &s->statement.resources[i];
        const struct ig_file *k = find(f, r->name);
        if (k) asked[k - f->list] = true;
        if (!k && may_lack(s->job, r->name)) {
            append(l->unheld, r->name);
        } else if (!k) {
            append(l->missing, r->name);
            bad_file(c, r->name, "signed, but not held by the pack", NULL, NULL);
        } else if (!k->hashed) {
            append(l->different, r->name);
            bad_file(c, r->name, k->problem ? k->problem : "cannot be rebuilt", NULL, NULL);
        } else if (memcmp(k->sha256, r->sha256, IG_HASH) != 0) {
            append(l->different, r->name);
            bad_file(c, r->name,
                     ig_pack_is_derived(&c->pack) && k->source != IG_NONE
                         ? "SHA-256 is not the signed one: this pack was derived from it"
                         : "SHA-256 of the file in the pack is not the signed one",
                     r->sha256, k->sha256);
        } else {
            l->matched++;
        }
    }
}

static void find_extra(struct check *c, const struct ig_signed *s, const struct ig_files *f,
                       const bool *asked, struct lists *l)
{
    for (size_t i = 0; i < f->n; i++) {
        const char *name = f->list[i].name;
        if (asked[i]) continue;
        if (is_left_out(&s->statement, name)) {
            append(l->left_out, name);
            continue;
        }
        append(l->extra, name);
        bad_file(c, name, "held by the pack, but not signed", NULL, NULL);
    }
}

static ingot_status by_files(struct check *c, const struct ig_signed *s, struct lists *l,
                             ingot_error *e)
{
    struct ig_files own = {0}, *f = c->files ? c->files : &own;
    bool *asked = NULL;
    ingot_status status = INGOT_OK;
    if (!c->files) { /* otherwise hashed by now, with the rest */
        status = ig_files_list(&c->pack, f, e);
        if (status == INGOT_OK)
            status = ig_files_hash(&c->pack, f, c->v->threads, &c->v->progress, e);
    }
    if (status == INGOT_OK && !(asked = ig_array(f->n, sizeof *asked))) status = ig_no_memory(e);
    if (status == INGOT_OK) {
        compare(c, s, f, asked, l);
        find_extra(c, s, f, asked, l);
        c->bytes_hashed += f->read; /* by one thread again */
    }
    free(asked);
    ig_files_free(&own);
    return status;
}

static json_t *ignored_json(const struct ig_statement *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->nignored; i++) append(list, s->ignored[i]);
    return list;
}

static ingot_status add_report(const struct ig_signed *s, const struct lists *l, bool by_digest,
                               json_t *o, ingot_error *e)
{
    const json_int_t n = (json_int_t)s->statement.nresources;
    json_t *more = json_pack("{s:s,s:I,s:I,s:O,s:O,s:O,s:O,s:O,s:o}", "by",
                             by_digest ? "pack digest" : "files", "signed", n, "matched",
                             by_digest ? n : l->matched, "missing", l->missing, "different",
                             l->different, "extra", l->extra, "unheld", l->unheld, "left_out",
                             l->left_out, "ignore_paths", ignored_json(&s->statement));
    if (!more) return ig_no_memory(e);
    if (s->statement.has_pack)
        json_object_set_new(o, "names_pack", ig_digest_json("fsverity-sha256:", s->statement.pack));
    const int rc = json_object_update(o, more);
    json_decref(more);
    return rc == 0 ? INGOT_OK : ig_no_memory(e);
}

ingot_status ig_signed_check(struct check *c, struct ig_signed *s, json_t *report, ingot_error *e)
{
    struct lists l = {json_array(), json_array(), json_array(), json_array(), json_array(), 0};
    json_t *o = ig_signed_json(s);
    ingot_status status = o && l.left_out && l.unheld ? INGOT_OK : ig_no_memory(e);
    /* What has no good signature lists nothing that could be compared. */
    if (status == INGOT_OK && s->statement.nresources) {
        const bool named = s->statement.has_pack && c->has_digest && !ig_check_failed(c) &&
                           memcmp(s->statement.pack, c->digest, IG_HASH) == 0;
        if (!named) status = by_files(c, s, &l, e);
        if (status == INGOT_OK) status = add_report(s, &l, named, o, e);
    }
    if (status == INGOT_OK && json_object_set(report, "signature", o) != 0)
        status = ig_no_memory(e);
    json_decref(o);
    json_decref(l.missing), json_decref(l.different), json_decref(l.extra);
    json_decref(l.unheld), json_decref(l.left_out);
    return status;
}
