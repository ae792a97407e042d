/* SPDX-License-Identifier: Apache-2.0 */
/* ingot manifest: see ingot-manifest(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/manifest.h"

#include <stdlib.h>
#include <string.h>

static int format_of(const char *word)
{
    for (int i = 0; word && ig_manifest_words[i]; i++)
        if (strcmp(word, ig_manifest_words[i]) == 0) return i;
    return -1;
}

static ingot_status write_out(const char *path, const char *text, size_t n, bool line,
                              ingot_error *e)
{
    if (path) return ig_write_new(path, 0666, text, n, e);
    fwrite(text, 1, n, stdout); /* ig_cli_finish tells what went wrong */
    if (line) putchar('\n');
    return INGOT_OK;
}

int ig_cmd_manifest(int argc, char **argv)
{
    const char *format = NULL, *output = NULL;
    uint64_t threads = 0;
    struct ig_manifest job = {.hash = false};
    const struct ig_opt opts[] = {
        {"format", 0, IG_OPT_TEXT, &format},
        {"hash", 0, IG_OPT_FLAG, &job.hash},
        {"output", 'o', IG_OPT_TEXT, &output},
        {"threads", 0, IG_OPT_COUNT, &threads},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "--format sha256sum|oms|modelpack|slsa [--hash] [-o FILE] MODEL"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (stop >= 0) return stop;
    const int found = format_of(format);
    if (found < 0)
        return ig_cli_usage(&cli, "--format: expected sha256sum, oms, modelpack or slsa");
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    job.format = (enum ig_manifest_format)found;
    job.threads = (unsigned)threads;

    ingot_error e = {0};
    struct ig_store store;
    char *text = NULL;
    size_t n = 0;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    job.progress = ig_progress_start(&cli, "manifest");
    ingot_status status = ig_manifest(&store, cli.argv[0], &job, &text, &n, &e);
    ig_progress_stop();
    ig_store_close(&store);
    if (status == INGOT_OK)
        status = write_out(output, text, n, job.format != IG_MANIFEST_SHA256SUM, &e);
    free(text);
    return status == INGOT_OK ? ig_cli_finish(&cli, 0) : ig_cli_fail(&cli, &e);
}
