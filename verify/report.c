/* SPDX-License-Identifier: Apache-2.0 */
/* What a check found, in words. */
#include "verify/report.h"

#include <string.h>

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void print_finding(const json_t *b)
{
    const json_t *tensor = json_object_get(b, "tensor");
    const json_t *offset = json_object_get(b, "offset");
    printf("  %-9s", text(b, "kind"));
    if (tensor)
        printf(" tensor \"%s\"", ig_esc(json_string_value(tensor), json_string_length(tensor)).s);
    if (offset) {
        const uint64_t from = number(b, "offset"), length = number(b, "length");
        printf(" page %llu", (unsigned long long)number(b, "page"));
        if (length)
            printf(" bytes %llu to %llu", (unsigned long long)from,
                   (unsigned long long)(from + length - 1));
        else
            printf(" byte %llu", (unsigned long long)from);
    }
    if (*text(b, "expected")) printf(" expected %s", text(b, "expected"));
    if (*text(b, "found")) printf(" found %s", text(b, "found"));
    if (*text(b, "text")) printf(" (%s)", text(b, "text"));
    putchar('\n');
}

/* XXH3 finds corruption and proves nothing, so it never earns the word "verified". */
static void print_work(const json_t *m, const char *level)
{
    const unsigned long long hashed = (unsigned long long)number(m, "tensors_hashed");
    const unsigned long long tensors = (unsigned long long)number(m, "tensors");
    if (strcmp(level, "full") == 0)
        printf("  %s hashed by SHA-256, %llu of %llu tensors\n",
               ig_human(number(m, "bytes_hashed")).s, hashed, tensors);
    else if (strcmp(level, "fast") == 0)
        printf(
            "  %s checked by XXH3 for corruption, 0 bytes hashed by SHA-256, 0 of %llu tensors\n",
            ig_human(number(m, "bytes_checked")).s, tensors);
    else if (strcmp(level, "quick") == 0)
        printf("  structure and sizes only, 0 bytes hashed, 0 of %llu tensors\n", tensors);
    else if (strcmp(level, "stamp") == 0)
        printf("  not verified now: a stamp says that this file passed in full at %s and has not "
               "changed since; 0 bytes hashed\n",
               text(m, "stamp"));
    if (*text(m, "remembered")) printf("  remembered: %s\n", text(m, "remembered"));
    if (*text(m, "kernel"))
        printf("  %s is enforced by the kernel on read (fs-verity), 0 bytes hashed for it\n",
               text(m, "kernel"));
    if (*text(m, "sources")) printf("  sources: %s\n", text(m, "sources"));
    const json_t *again = json_object_get(m, "reproduced");
    if (again)
        printf("  made again from %s: %s\n", text(again, "from"),
               strcmp(text(again, "digest"), text(m, "digest")) == 0 ? "the same digest"
                                                                     : text(again, "digest"));
    if (*text(m, "note")) printf("  %s\n", text(m, "note"));
}

static void print_names(const char *what, const json_t *list)
{
    size_t i;
    json_t *o;
    if (!json_array_size(list)) return;
    printf("  %s:", what);
    json_array_foreach(list, i, o)
    {
        if (i == 20) {
            printf(" and %zu more", json_array_size(list) - i);
            break;
        }
        printf(" %s", ig_esc(json_string_value(o), json_string_length(o)).s);
    }
    putchar('\n');
}

static void print_signature(const json_t *s)
{
    const json_t *cert = json_object_get(s, "certificate");
    if (!s) return;
    printf("  signature %s: %s", text(s, "bundle"),
           json_is_true(json_object_get(s, "good")) ? "good" : "NOT GOOD");
    if (cert)
        printf(", by %s (%s), certificate of %s, %s to %s", text(cert, "subject"), text(s, "curve"),
               text(cert, "issuer"), text(cert, "not_before"), text(cert, "not_after"));
    else if (*text(s, "key"))
        printf(", by the key %s (%s)", text(s, "key"), text(s, "curve"));
    if (*text(s, "time")) printf(", judged at %s (%s)", text(s, "time"), text(s, "time_is"));
    putchar('\n');
    if (!json_object_get(s, "signed")) return;
    printf("  %llu files signed, %llu matched%s, %zu missing, %zu different, %zu extra\n",
           (unsigned long long)number(s, "signed"), (unsigned long long)number(s, "matched"),
           strcmp(text(s, "by"), "files") == 0 ? "" : " by the digest of the pack",
           json_array_size(json_object_get(s, "missing")),
           json_array_size(json_object_get(s, "different")),
           json_array_size(json_object_get(s, "extra")));
    print_names("not held, as allowed", json_object_get(s, "unheld"));
    print_names("held, and left out by the signature", json_object_get(s, "left_out"));
    print_names("paths that the signature leaves out", json_object_get(s, "ignore_paths"));
    if (*text(s, "note")) printf("  %s\n", text(s, "note"));
    if (*text(s, "log")) printf("  %s\n", text(s, "log"));
}

void ig_verify_print_findings(const json_t *bad)
{
    size_t i;
    json_t *b;
    json_array_foreach(bad, i, b) print_finding(b);
}

void ig_verify_print(const json_t *m)
{
    static const struct {
        const char *level, *word;
    } good[] = {
        {"full", "verified"}, {"fast", "intact"}, {"quick", "well-formed"}, {"stamp", "trusted"}};
    const char *level = text(m, "level"), *word = "FAILED";
    const bool self = *text(m, "note") != '\0';
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (json_is_true(json_object_get(m, "ok")) && strcmp(level, good[i].level) == 0)
            word = self && i == 0 ? "consistent" : good[i].word;
    const char *model = text(m, "model");
    const char *state = json_is_true(json_object_get(m, "ok")) ? "" : text(m, "state");
    printf("%s: %s%s%s  %s\n", ig_esc(model, strlen(model)).s, word, *state ? ", " : "", state,
           text(m, "digest"));
    print_work(m, level);
    print_signature(json_object_get(m, "signature"));
    if (*text(m, "endorsement")) printf("  endorsed: %s\n", text(m, "endorsement"));
    ig_verify_print_findings(json_object_get(m, "bad"));
    if (number(m, "bad_left_out"))
        printf("  and %llu more\n", (unsigned long long)number(m, "bad_left_out"));
}

bool ig_verify_digest(const char *s, uint8_t out[IG_HASH])
{
    static const char prefix[] = "fsverity-sha256:";
    if (strncmp(s, prefix, sizeof prefix - 1) == 0) s += sizeof prefix - 1;
    return strlen(s) == 2 * IG_HASH && ig_unhex(out, IG_HASH, s);
}
