/* SPDX-License-Identifier: Apache-2.0 */
/* ingot convert: see ingot-convert(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "convert/convert.h"

#include <string.h>
#include <strings.h>

static int dtype_of(const char *name)
{
    static const int casts[] = {IG_F16, IG_BF16, IG_F32};
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++)
        if (strcasecmp(name, ig_dtypes[casts[i]].name) == 0) return casts[i];
    return -1;
}

static void print_warnings(const struct ig_cli *cli, const json_t *report)
{
    size_t i;
    json_t *w;
    json_array_foreach(json_object_get(report, "warnings"), i, w)
        ig_cli_notice(cli, "%s", json_string_value(w));
    const size_t left = json_array_size(json_object_get(report, "not_held"));
    if (left)
        ig_cli_notice(cli, "%zu files are not held by the pack (ingot show lists them)", left);
}

static void print_report(const struct ig_cli *cli, const json_t *r)
{
    (void)cli;
    printf("%s  %s\n", json_string_value(json_object_get(r, "name")),
           json_string_value(json_object_get(r, "digest")));
}

int ig_cmd_convert(int argc, char **argv)
{
    const char *dtype = NULL;
    uint64_t rules = IG_RULES, threads = 0;
    struct ig_convert c = {.dtype = -1, .max_header = IG_ST_MAX_HEADER};
    const struct ig_opt opts[] = {
        {"name", 'n', IG_OPT_TEXT, &c.name},
        {"dtype", 0, IG_OPT_TEXT, &dtype},
        {"saturate", 0, IG_OPT_FLAG, &c.saturate},
        {"rules", 0, IG_OPT_COUNT, &rules},
        {"max-header", 0, IG_OPT_COUNT, &c.max_header},
        {"keep-unindexed", 0, IG_OPT_FLAG, &c.keep_unindexed},
        {"accept-stale-quant", 0, IG_OPT_FLAG, &c.accept_stale_quant},
        {"no-config", 0, IG_OPT_FLAG, &c.no_config},
        {"threads", 0, IG_OPT_COUNT, &threads},
        {"fsverity", 0, IG_OPT_FLAG, &c.fsverity},
        {"force", 'f', IG_OPT_FLAG, &c.replace},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[-n NAME] [--dtype f16|bf16|f32] SRC"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (stop >= 0) return stop;
    if (dtype && (c.dtype = dtype_of(dtype)) < 0)
        return ig_cli_usage(&cli, "--dtype %s: expected f16, bf16 or f32", dtype);
    if (c.saturate && c.dtype < 0) return ig_cli_usage(&cli, "--saturate goes with --dtype");
    if (threads > 1024 || rules > UINT32_MAX)
        return ig_cli_usage(&cli, "--threads or --rules: the number is too large");
    c.rules = (uint32_t)rules;
    c.threads = (unsigned)threads;
    c.source = cli.argv[0];

    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    c.progress = ig_progress_start(&cli, "convert");
    const ingot_status status = ig_convert(&store, &c, &report, &e);
    ig_progress_stop();
    ig_store_close(&store);
    if (status != INGOT_OK) return ig_cli_fail(&cli, &e);
    print_warnings(&cli, report);
    return ig_cli_report(&cli, report, print_report, 0);
}
