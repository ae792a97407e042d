/* SPDX-License-Identifier: Apache-2.0 */
/* ingot reindex: read every pack and write the index anew. */
#include "store/cmd_common.h"

int ig_cmd_reindex(int argc, char **argv)
{
    struct ig_cli cli = {.command = "reindex", .usage = "[--json]"};
    const struct ig_opt opts[] = {IG_OPT_END};
    struct ig_store store = {0};
    struct ig_index index = {0};
    ingot_error e;
    int code = ig_cli_parse(&cli, argc, argv, opts, 0, 0);
    if (code >= 0) return code;
    ingot_status status = ig_store_open(cli.store, false, &store, &e);
    if (status == INGOT_OK) status = ig_index_rebuild(&store, &index, &e);
    if (status != INGOT_OK) {
        code = ig_cli_fail(&cli, &e);
        goto out;
    }
    size_t damaged = 0;
    for (size_t i = 0; i < index.npacks; i++) {
        if (!index.packs[i].problem) continue;
        damaged++;
        ig_cli_notice(&cli, "warning: damaged: %s", index.packs[i].problem);
    }
    if (cli.json)
        ig_cli_json(json_pack("{s:I,s:I,s:I}", "packs", (json_int_t)index.npacks, "damaged",
                              (json_int_t)damaged, "sources", (json_int_t)index.norigins));
    else if (!cli.quiet)
        printf("%zu packs (%zu damaged), %zu source files\n", index.npacks, damaged,
               index.norigins);
    code = ig_cli_finish(&cli, 0);
out:
    ig_index_free(&index);
    ig_store_close(&store);
    return code;
}
