/* SPDX-License-Identifier: Apache-2.0 */
/* ingot verify: see ingot-verify(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/verify.h"

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
    if (*text(m, "kernel"))
        printf("  %s is enforced by the kernel on read (fs-verity), 0 bytes hashed for it\n",
               text(m, "kernel"));
    if (*text(m, "sources")) printf("  sources: %s\n", text(m, "sources"));
    if (*text(m, "note")) printf("  %s\n", text(m, "note"));
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

int ig_cmd_verify(int argc, char **argv)
{
    bool quick = false, fast = false, all = false;
    uint64_t threads = 0;
    const char *expect = NULL;
    struct ig_verify v = {.level = IG_LEVEL_FULL};
    const struct ig_opt opts[] = {
        {"quick", 0, IG_OPT_FLAG, &quick},
        {"fast", 0, IG_OPT_FLAG, &fast},
        {"source", 0, IG_OPT_TEXT, &v.source},
        {"expect", 0, IG_OPT_TEXT, &expect},
        {"self", 0, IG_OPT_FLAG, &v.self},
        {"strict", 0, IG_OPT_FLAG, &v.strict},
        {"all", 0, IG_OPT_FLAG, &all},
        {"threads", 0, IG_OPT_COUNT, &threads},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage =
                             "[--quick|--fast] [--source DIR] [--expect DIGEST] MODEL | --all"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 0, 1);
    if (stop >= 0) return stop;
    if (all == (cli.argc == 1)) return ig_cli_usage(&cli, "give one MODEL, or --all");
    if (quick && fast) return ig_cli_usage(&cli, "--quick and --fast exclude each other");
    if (all && (expect || v.source))
        return ig_cli_usage(&cli, "--all takes no --expect or --source");
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
