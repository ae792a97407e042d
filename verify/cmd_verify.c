/* SPDX-License-Identifier: Apache-2.0 */
/* ingot verify: see ingot-verify(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    if (*text(m, "kernel"))
        printf("  %s is enforced by the kernel on read (fs-verity), 0 bytes hashed for it\n",
               text(m, "kernel"));
    if (*text(m, "sources")) printf("  sources: %s\n", text(m, "sources"));
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
        printf(", by %s (%s), certificate of %s, %s to %s, judged at %s (%s)",
               text(cert, "subject"), text(s, "curve"), text(cert, "issuer"),
               text(cert, "not_before"), text(cert, "not_after"), text(s, "time"),
               text(s, "time_is"));
    else if (*text(s, "key"))
        printf(", by the key %s (%s)", text(s, "key"), text(s, "curve"));
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

static void print_model(const json_t *m)
{
    static const struct {
        const char *level, *word;
    } good[] = {{"full", "verified"}, {"fast", "intact"}, {"quick", "well-formed"}};
    const char *level = text(m, "level"), *word = "FAILED";
    const bool self = *text(m, "note") != '\0';
    for (size_t i = 0; i < 3; i++)
        if (json_is_true(json_object_get(m, "ok")) && strcmp(level, good[i].level) == 0)
            word = self && i == 0 ? "consistent" : good[i].word;
    const char *model = text(m, "model");
    const char *state = json_is_true(json_object_get(m, "ok")) ? "" : text(m, "state");
    printf("%s: %s%s%s  %s\n", ig_esc(model, strlen(model)).s, word, *state ? ", " : "", state,
           text(m, "digest"));
    print_work(m, level);
    print_signature(json_object_get(m, "signature"));
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(m, "bad"), i, b) print_finding(b);
    if (number(m, "bad_left_out"))
        printf("  and %llu more\n", (unsigned long long)number(m, "bad_left_out"));
}

static void print_report(const struct ig_cli *cli, const json_t *r)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(r, "models"), i, o) print_model(o);
    json_array_foreach(json_object_get(r, "extra"), i, o)
        ig_cli_notice(cli, "extra: %s does not belong to the store", text(o, "path"));
}

static bool read_digest(const char *s, uint8_t out[IG_HASH])
{
    static const char prefix[] = "fsverity-sha256:";
    if (strncmp(s, prefix, sizeof prefix - 1) == 0) s += sizeof prefix - 1;
    return strlen(s) == 2 * IG_HASH && ig_unhex(out, IG_HASH, s);
}

/* "2026-11-30T12:00:00Z", "2026-11-30", or seconds since 1970 after an '@'. */
static bool read_time(const char *s, int64_t *out)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d", NULL};
    char *end;
    if (*s == '@') {
        errno = 0;
        const long long n = strtoll(s + 1, &end, 10);
        *out = n;
        return s[1] && !*end && errno == 0;
    }
    for (size_t i = 0; formats[i]; i++) {
        struct tm tm = {0};
        const char *rest = strptime(s, formats[i], &tm);
        if (!rest || *rest) continue;
        *out = (int64_t)timegm(&tm);
        return true;
    }
    return false;
}

struct sig_options {
    struct ig_signature sig;
    struct ig_texts unheld;
    const char *at;
};

/* What belongs together.  -1: fine. */
static int check_signature(const struct ig_cli *cli, struct sig_options *o)
{
    struct ig_signature *s = &o->sig;
    const bool by_roots = s->roots.file || s->roots.system;
    if (!s->bundle) {
        if (s->key || by_roots || o->at || s->tsa_roots || o->unheld.n)
            return ig_cli_usage(cli, "--key, --certificate-chain and what goes with them need "
                                     "--signature BUNDLE");
        return -1;
    }
    if ((s->key != NULL) == by_roots)
        return ig_cli_usage(cli, "--signature needs --key PUBLIC, or --certificate-chain ROOTS (or "
                                 "--system-roots), not both");
    if (o->at && s->tsa_roots) return ig_cli_usage(cli, "--at and --tsa-roots exclude each other");
    if ((o->at || s->tsa_roots) && s->key)
        return ig_cli_usage(cli,
                            "--at and --tsa-roots are for certificates; a key does not expire");
    if (o->at && !read_time(o->at, &s->at))
        return ig_cli_usage(cli, "--at %s: expected a time, as 2026-11-30T12:00:00Z or 2026-11-30",
                            o->at);
    s->has_at = o->at != NULL;
    s->unheld = o->unheld.list;
    s->nunheld = o->unheld.n;
    return -1;
}

int ig_cmd_verify(int argc, char **argv)
{
    bool quick = false, fast = false, all = false;
    uint64_t threads = 0;
    const char *expect = NULL;
    struct ig_verify v = {.level = IG_LEVEL_FULL};
    struct sig_options sig = {.at = NULL};
    const struct ig_opt opts[] = {
        {"quick", 0, IG_OPT_FLAG, &quick},
        {"fast", 0, IG_OPT_FLAG, &fast},
        {"source", 0, IG_OPT_TEXT, &v.source},
        {"expect", 0, IG_OPT_TEXT, &expect},
        {"self", 0, IG_OPT_FLAG, &v.self},
        {"strict", 0, IG_OPT_FLAG, &v.strict},
        {"all", 0, IG_OPT_FLAG, &all},
        {"threads", 0, IG_OPT_COUNT, &threads},
        {"signature", 0, IG_OPT_TEXT, &sig.sig.bundle},
        {"key", 0, IG_OPT_TEXT, &sig.sig.key},
        {"certificate-chain", 0, IG_OPT_TEXT, &sig.sig.roots.file},
        {"system-roots", 0, IG_OPT_FLAG, &sig.sig.roots.system},
        {"at", 0, IG_OPT_TEXT, &sig.at},
        {"tsa-roots", 0, IG_OPT_TEXT, &sig.sig.tsa_roots},
        {"allow-unheld", 0, IG_OPT_LIST, &sig.unheld},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[--quick|--fast] [--source DIR] [--expect DIGEST] [--signature "
                                  "BUNDLE --key PUBLIC] MODEL "
                                  "| --all"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 0, 1);
    if (stop >= 0) return stop;
    if (all == (cli.argc == 1)) return ig_cli_usage(&cli, "give one MODEL, or --all");
    if (quick && fast) return ig_cli_usage(&cli, "--quick and --fast exclude each other");
    if (all && (expect || v.source || sig.sig.bundle))
        return ig_cli_usage(&cli, "--all takes no --expect, --source or --signature");
    const int wrong = check_signature(&cli, &sig);
    if (wrong >= 0) return wrong;
    v.signature = sig.sig.bundle ? &sig.sig : NULL;
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    if (expect && !read_digest(expect, v.expect))
        return ig_cli_usage(&cli, "--expect %s: expected a whole digest of 64 hex digits", expect);
    v.has_expect = expect != NULL;
    v.threads = (unsigned)threads;
    v.level = quick ? IG_LEVEL_QUICK : fast ? IG_LEVEL_FAST : IG_LEVEL_FULL;

    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    v.progress = ig_progress_start(&cli, "verify");
    const ingot_status status = ig_verify_store(&store, all ? NULL : cli.argv[0], &v, &report, &e);
    ig_progress_stop();
    ig_store_close(&store);
    if (status != INGOT_OK) return ig_cli_fail(&cli, &e);
    const int code = json_is_true(json_object_get(report, "ok")) ? 0 : 1;
    return ig_cli_report(&cli, report, print_report, code);
}
