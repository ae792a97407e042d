/* SPDX-License-Identifier: Apache-2.0 */
/* A file of rules, a line each.  A policy that is only partly understood is none: the first word
 * that is not known refuses the file. */
#include "verify/trust.h"

#include "verify/when.h"

#include <stdlib.h>
#include <string.h>

#define RULES_MOST 65536u
#define LINE_MOST  8192u
#define BLANKS     " \t\r"

struct line {
    const char *path;
    unsigned number;
    ingot_error *e;
};

static ingot_status bad(const struct line *l, const char *what, const char *word)
{
    ig_fail(l->e, INGOT_ERR_INPUT, "%s:%u: %s%s%s%s", ig_esc(l->path, strlen(l->path)).s, l->number,
            what, word ? " \"" : "", word ? ig_esc(word, strlen(word)).s : "", word ? "\"" : "");
    return ig_at(l->e, l->path, NULL, 0);
}

static ingot_status add_digest(const struct line *l, struct ig_rule *r, const char *value)
{
    static const char prefix[] = "fsverity-sha256:";
    uint8_t(*grown)[IG_HASH] = realloc(r->digests, (r->ndigests + 1) * sizeof *grown);
    if (!grown) return ig_no_memory(l->e);
    r->digests = grown;
    const size_t skip = sizeof prefix - 1;
    if (strncmp(value, prefix, skip) != 0 || strlen(value) != skip + 2 * IG_HASH ||
        !ig_unhex(r->digests[r->ndigests], IG_HASH, value + skip))
        return bad(l, "expected fsverity-sha256: and 64 hex digits, not", value);
    r->ndigests++;
    return INGOT_OK;
}

static ingot_status take_fingerprint(const struct line *l, struct ig_rule *r,
                                     enum ig_rule_kind kind, const char *value)
{
    if (*r->fingerprint) return bad(l, "one key or ca a rule, not also", value);
    if (strncmp(value, "sha256:", 7) != 0 || strlen(value + 7) != 2 * IG_HASH ||
        !ig_is_hex(value + 7, 2 * IG_HASH))
        return bad(l, "expected sha256: and 64 hex digits, not", value);
    memcpy(r->fingerprint, value + 7, 2 * IG_HASH);
    r->kind = kind;
    return INGOT_OK;
}

static ingot_status take_time(const struct line *l, const char *value, bool *has, int64_t *out)
{
    if (*has) return bad(l, "twice", value);
    *has = ig_when_read(value, out);
    return *has ? INGOT_OK : bad(l, "expected a time, as 2026-11-30T12:00:00Z, not", value);
}

static ingot_status take_name(const struct line *l, struct ig_rule *r, const char *value)
{
    if (r->name) return bad(l, "one name a rule, not also", value);
    if (!*value) return bad(l, "an empty name", NULL);
    return (r->name = strdup(value)) ? INGOT_OK : ig_no_memory(l->e);
}

static ingot_status take_word(const struct line *l, struct ig_rule *r, char *word)
{
    char *value = strchr(word, '=');
    if (!value) return bad(l, "expected KEY=VALUE, not", word);
    *value++ = '\0';
    const bool allow = r->kind != IG_RULE_DENY;
    if (strcmp(word, "digest") == 0) return add_digest(l, r, value);
    if (allow && strcmp(word, "key") == 0) return take_fingerprint(l, r, IG_RULE_KEY, value);
    if (allow && strcmp(word, "ca") == 0) return take_fingerprint(l, r, IG_RULE_CA, value);
    if (allow && strcmp(word, "name") == 0) return take_name(l, r, value);
    if (allow && strcmp(word, "not-before") == 0)
        return take_time(l, value, &r->has_before, &r->before);
    if (allow && strcmp(word, "not-after") == 0)
        return take_time(l, value, &r->has_after, &r->after);
    return bad(l, "unknown", word);
}

static ingot_status check_rule(const struct line *l, const struct ig_rule *r)
{
    if (r->kind == IG_RULE_DENY) return r->ndigests ? INGOT_OK : bad(l, "deny needs digest=", NULL);
    if (!*r->fingerprint) return bad(l, "allow needs key= or ca=", NULL);
    if (!r->name) return bad(l, "allow needs name= (name=* is every name)", NULL);
    return INGOT_OK;
}

static ingot_status parse_line(const struct line *l, char *text, struct ig_trust *t)
{
    char *next = NULL, *word = strtok_r(text, BLANKS, &next);
    if (!word || *word == '#') return INGOT_OK;
    if (t->nrules == t->rules_cap) {
        const size_t cap = t->rules_cap ? 2 * t->rules_cap : 16;
        struct ig_rule *grown = realloc(t->rules, cap * sizeof *grown);
        if (!grown) return ig_no_memory(l->e);
        t->rules = grown;
        t->rules_cap = cap;
    }
    if (t->nrules == RULES_MOST) return bad(l, "too many rules", NULL);
    struct ig_rule *r = &t->rules[t->nrules++];
    const char *slash = strrchr(l->path, '/');
    *r = (struct ig_rule){.where = ig_format("%s:%u", slash ? slash + 1 : l->path, l->number)};
    if (!r->where) return ig_no_memory(l->e);
    if (strcmp(word, "deny") == 0)
        r->kind = IG_RULE_DENY;
    else if (strcmp(word, "allow") != 0)
        return bad(l, "expected allow or deny, not", word);
    while ((word = strtok_r(NULL, BLANKS, &next))) return_if_error(take_word(l, r, word));
    return check_rule(l, r);
}

ingot_status ig_rules_parse(const char *text, size_t n, const char *path, struct ig_trust *t,
                            ingot_error *e)
{
    struct line l = {.path = path, .e = e};
    char copy[LINE_MOST];
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t len = end ? (size_t)(end - text) - at : n - at;
        l.number++;
        if (len >= sizeof copy) return bad(&l, "the line is too long", NULL);
        if (memchr(text + at, '\0', len)) return bad(&l, "a NUL in the line", NULL);
        memcpy(copy, text + at, len);
        copy[len] = '\0';
        return_if_error(parse_line(&l, copy, t));
        at += len + 1;
    }
    return INGOT_OK;
}
