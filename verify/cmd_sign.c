/* SPDX-License-Identifier: Apache-2.0 */
/* ingot sign: see ingot-sign(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/report.h"
#include "verify/verify.h"

#include <limits.h>
#include <string.h>

static void print_signed(const struct ig_cli *cli, const json_t *r)
{
    const char *bundle = json_string_value(json_object_get(r, "bundle"));
    (void)cli;
    if (!json_is_true(json_object_get(r, "ok"))) {
        ig_verify_print(r);
        return;
    }
    if (!bundle) return; /* the bundle itself went to stdout */
    printf("%s: signed %lld files with %s (%s)\n  %s\n",
           json_string_value(json_object_get(r, "model")),
           (long long)json_integer_value(json_object_get(r, "signed")),
           json_string_value(json_object_get(r, "key")),
           json_string_value(json_object_get(r, "curve")), bundle);
}

int ig_cmd_sign(int argc, char **argv)
{
    const char *expect = NULL;
    uint64_t threads = 0, fd = UINT64_MAX;
    struct ig_verify v = {.level = IG_LEVEL_FULL};
    struct ig_signing job = {
        .verify = &v, .passphrase = {.name = IG_PASSPHRASE_VARIABLE, .fd = -1, .prompt = true}};
    const struct ig_opt opts[] = {
        {"key", 0, IG_OPT_TEXT, &job.key},
        {"certificate", 0, IG_OPT_TEXT, &job.certificate},
        {"chain", 0, IG_OPT_TEXT, &job.chain},
        {"passphrase-fd", 0, IG_OPT_COUNT, &fd},
        {"output", 'o', IG_OPT_TEXT, &job.output},
        {"expect", 0, IG_OPT_TEXT, &expect},
        {"threads", 0, IG_OPT_COUNT, &threads},
        IG_OPT_END,
    };
    struct ig_cli cli = {
        .usage = "--key KEY [--certificate CERT [--chain CERTS]] [--output FILE] MODEL"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (stop >= 0) return stop;
    if (!job.key) return ig_cli_usage(&cli, "--key KEY is needed");
    if (job.chain && !job.certificate) return ig_cli_usage(&cli, "--chain needs --certificate");
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    if (fd != UINT64_MAX && fd > INT_MAX) return ig_cli_usage(&cli, "--passphrase-fd: no such");
    if (expect && !ig_verify_digest(expect, v.expect))
        return ig_cli_usage(&cli, "--expect %s: expected a whole digest of 64 hex digits", expect);
    v.has_expect = expect != NULL;
    v.threads = (unsigned)threads;
    if (fd != UINT64_MAX) job.passphrase.fd = (int)fd;

    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    bool loose = false;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    v.progress = ig_progress_start(&cli, "sign");
    const ingot_status status = ig_sign(&store, cli.argv[0], &job, &report, &loose, &e);
    ig_progress_stop();
    ig_store_close(&store);
    if (loose)
        ig_cli_notice(&cli, "%s: others than its owner can read this key (chmod 600)",
                      ig_esc(job.key, strlen(job.key)).s);
    if (status != INGOT_OK) return ig_cli_fail(&cli, &e);
    const int code = json_is_true(json_object_get(report, "ok")) ? 0 : 1;
    return ig_cli_report(&cli, report, print_signed, code);
}
