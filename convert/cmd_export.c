/* SPDX-License-Identifier: Apache-2.0 */
/* ingot export: see ingot-export(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "convert/convert.h"

static void print_report(const struct ig_cli *cli, const json_t *r)
{
    (void)cli;
    const char *folder = json_string_value(json_object_get(r, "folder"));
    const char *file = json_string_value(json_object_get(r, "safetensors"));
    const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(r, "bytes"));
    if (folder)
        printf("%s  %lld safetensors files, %s%s\n", folder,
               (long long)json_integer_value(json_object_get(r, "sources")), ig_human(bytes).s,
               json_is_true(json_object_get(r, "derived"))
                   ? ", canonical (a derived pack does not hold the original files)"
                   : ", every file as its SHA-256 says");
    if (file) printf("%s  one safetensors file\n", file);
}

static ingot_status run(const struct ig_cli *cli, struct ig_export *x, json_t **report,
                        ingot_error *e)
{
    struct ig_store store = {0};
    struct ig_ref ref = {0};
    struct ig_pack pack = {.fd = -1};
    ingot_status status = ig_store_open(cli->store, false, &store, e);
    if (status == INGOT_OK) status = ig_store_resolve(&store, cli->argv[0], &ref, e);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &pack, e);
    if (status == INGOT_OK) {
        x->progress = ig_progress_start(cli, "export");
        status = ig_export(&pack, x, report, e);
        ig_progress_stop();
    }
    ig_pack_close(&pack);
    ig_ref_free(&ref);
    ig_store_close(&store);
    return status;
}

int ig_cmd_export(int argc, char **argv)
{
    uint64_t threads = 0;
    struct ig_export x = {0};
    const struct ig_opt opts[] = {
        {"safetensors", 0, IG_OPT_TEXT, &x.safetensors},
        {"threads", 0, IG_OPT_COUNT, &threads},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[--safetensors FILE] MODEL [DIR]"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 2);
    if (stop >= 0) return stop;
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    x.threads = (unsigned)threads;
    x.folder = cli.argc > 1 ? cli.argv[1] : NULL;
    if (!x.folder && !x.safetensors)
        return ig_cli_usage(&cli, "say where to: a new folder DIR, or --safetensors FILE");
    ingot_error e = {0};
    json_t *report = NULL;
    if (run(&cli, &x, &report, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    return ig_cli_report(&cli, report, print_report, 0);
}
