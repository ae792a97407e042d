/* SPDX-License-Identifier: Apache-2.0 */
/* ingot tag: one more name for a model. */
#include "store/cmd_common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path may lead anywhere; a name only points into the store. */
static ingot_status check_here(const struct ig_store *s, const struct ig_ref *ref,
                               const char *model, ingot_error *e)
{
    struct stat st;
    ingot_status status = INGOT_OK;
    char *path = ref->has_digest ? ig_store_pack_path(s, ref->digest) : NULL;
    if (ref->has_digest && !path) return ig_no_memory(e);
    if (!path)
        status = ig_fail(e, INGOT_ERR_USAGE,
                         "%s: its name is not a digest; only packs of the store can be named",
                         ig_esc(model, strlen(model)).s);
    else if (stat(path, &st) != 0)
        status = ig_fail_sys(e, errno, "%s: only packs of the store can be named", path);
    free(path);
    return status;
}

static ingot_status run(const struct ig_store *s, const char *model, const char *name, bool force,
                        struct ig_ref *ref, ingot_error *e)
{
    int lock = -1;
    return_if_error(ig_name_check(name, e));
    return_if_error(ig_store_resolve(s, model, ref, e));
    /* From here on gc may not take the pack away. */
    return_if_error(ig_store_lock(s, false, &lock, e));
    ingot_status status = check_here(s, ref, model, e);
    if (status == INGOT_OK) status = ig_name_write(s, name, ref->digest, force, e);
    close(lock);
    return status;
}

int ig_cmd_tag(int argc, char **argv)
{
    struct ig_cli cli = {.command = "tag", .usage = "[-f] [--json] MODEL NAME"};
    bool force = false;
    const struct ig_opt opts[] = {{"force", 'f', IG_OPT_FLAG, &force}, IG_OPT_END};
    struct ig_store store = {0};
    struct ig_ref ref = {0};
    ingot_error e;
    int code = ig_cli_parse(&cli, argc, argv, opts, 2, 2);
    if (code >= 0) return code;
    ingot_status status = ig_store_open(cli.store, false, &store, &e);
    if (status == INGOT_OK) status = run(&store, cli.argv[0], cli.argv[1], force, &ref, &e);
    if (status != INGOT_OK) {
        code = ig_cli_fail(&cli, &e);
    } else {
        const struct ig_digest_text text = ig_pack_text(ref.digest);
        if (cli.json)
            ig_cli_json(json_pack("{s:s,s:s}", "name", cli.argv[1], "digest", text.s));
        else if (!cli.quiet)
            printf("%s  %s\n", cli.argv[1], text.s);
        code = ig_cli_finish(&cli, 0);
    }
    ig_ref_free(&ref);
    ig_store_close(&store);
    return code;
}
