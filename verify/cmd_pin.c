/* SPDX-License-Identifier: Apache-2.0 */
/* ingot pin: see ingot-pin(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/pin.h"

#include <string.h>

static void print_pinned(const struct ig_cli *cli, const json_t *r)
{
    size_t i;
    json_t *w;
    json_array_foreach(json_object_get(r, "warnings"), i, w)
        ig_cli_notice(cli, "%s", json_string_value(w));
    printf("%s  %s\n", json_string_value(json_object_get(r, "name")),
           json_string_value(json_object_get(r, "digest")));
}

static void print_names(const char *what, const json_t *list)
{
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        const json_t *name = json_is_object(o) ? json_object_get(o, "name") : o;
        printf("%s %s", what, ig_esc(json_string_value(name), json_string_length(name)).s);
        if (json_is_object(o))
            printf("  expected %s found %s", json_string_value(json_object_get(o, "expected")),
                   json_string_value(json_object_get(o, "found")));
        putchar('\n');
    }
}

static void print_check(const struct ig_cli *cli, const json_t *r)
{
    print_names("missing", json_object_get(r, "missing"));
    print_names("changed", json_object_get(r, "changed"));
    print_names("extra", json_object_get(r, "extra"));
    if (json_is_true(json_object_get(r, "ok")))
        printf("%s: %lld files, all as pinned\n", cli->argv[0],
               (long long)json_integer_value(json_object_get(r, "files")));
}

static int check(const struct ig_cli *cli, const struct ig_store *s, const char *folder,
                 unsigned threads)
{
    ingot_error e = {0};
    json_t *report = NULL;
    if (ig_pin_check(s, folder, cli->argv[0], threads, &report, &e) != INGOT_OK)
        return ig_cli_fail(cli, &e);
    const int code = json_is_true(json_object_get(report, "ok")) ? 0 : 1;
    return ig_cli_report(cli, report, print_check, code);
}

static int pin(const struct ig_cli *cli, const struct ig_store *s, struct ig_pin *job)
{
    ingot_error e = {0};
    json_t *report = NULL;
    job->paths = (const char *const *)cli->argv;
    job->npaths = (size_t)cli->argc;
    job->progress = ig_progress_start(cli, "pin");
    const ingot_status status = ig_pin(s, job, &report, &e);
    ig_progress_stop();
    if (status != INGOT_OK) return ig_cli_fail(cli, &e);
    return ig_cli_report(cli, report, print_pinned, 0);
}

int ig_cmd_pin(int argc, char **argv)
{
    struct ig_pin job = {.name = NULL};
    const char *folder = NULL;
    uint64_t threads = 0;
    const struct ig_opt opts[] = {
        {"name", 'n', IG_OPT_TEXT, &job.name},
        {"attribution", 0, IG_OPT_TEXT, &job.attribution},
        {"license", 0, IG_OPT_TEXT, &job.license},
        {"force", 'f', IG_OPT_FLAG, &job.replace},
        {"check", 0, IG_OPT_TEXT, &folder},
        {"threads", 0, IG_OPT_COUNT, &threads},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[-n NAME] [--attribution FILE] [--license SPDX] FILE|DIR... | "
                                  "--check DIR NAME"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 4096);
    if (stop >= 0) return stop;
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    if (folder && (cli.argc != 1 || job.name || job.attribution || job.license || job.replace))
        return ig_cli_usage(&cli, "--check DIR takes one NAME and nothing else");
    ingot_error e = {0};
    struct ig_store store;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    const int code =
        folder ? check(&cli, &store, folder, (unsigned)threads) : pin(&cli, &store, &job);
    ig_store_close(&store);
    return code;
}
