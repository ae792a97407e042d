/* SPDX-License-Identifier: Apache-2.0 */
/* ingot lineage: see ingot-lineage(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/lineage.h"
#include "verify/report.h"

#include <string.h>

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void print_list(const char *what, const json_t *list)
{
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o) printf("%s%s", i ? " " : what, json_string_value(o));
}

static void print_bundles(const json_t *list)
{
    size_t i;
    json_t *b;
    json_array_foreach(list, i, b)
    {
        const json_t *bad = json_array_get(json_object_get(b, "bad"), 0);
        const json_t *cert = json_object_get(b, "certificate");
        printf("  bundle %s", text(b, "bundle"));
        if (!json_object_get(b, "good"))
            printf(*text(b, "note") ? " (no signature over files)\n" : " (not checked)\n");
        else if (json_is_true(json_object_get(b, "good")))
            printf(": good, by %s\n", cert ? text(cert, "subject") : text(b, "key"));
        else
            printf(": NOT GOOD (%s)\n", bad ? text(bad, "text") : "signs nothing");
    }
}

static void print_chain(const struct ig_cli *cli, const json_t *r)
{
    size_t i;
    json_t *o;
    (void)cli;
    json_array_foreach(json_object_get(r, "chain"), i, o)
    {
        const char *digest = text(o, "digest");
        print_list("", json_object_get(o, "names"));
        printf("%s%s\n", json_array_size(json_object_get(o, "names")) ? "  " : "",
               *digest ? digest : text(o, "pack"));
        print_bundles(json_object_get(o, "bundles"));
        if (json_is_true(json_object_get(o, "derived")))
            printf("  made by %s from\n", text(o, "made_by"));
        else
            puts(strcmp(text(o, "made_by"), "inputs") == 0 ? "  pinned files"
                                                           : "  packed from the files");
    }
    if (json_object_get(r, "missing"))
        printf("%s  which the store does not have; it was made from files\n", text(r, "missing"));
    json_array_foreach(json_object_get(r, "sources"), i, o)
    {
        const char *name = text(o, "name");
        printf("    %s  sha256:%s  %s", ig_esc(name, strlen(name)).s, text(o, "sha256"),
               ig_human((uint64_t)json_integer_value(json_object_get(o, "size"))).s);
        print_list("  signed by ", json_object_get(o, "signed_by"));
        putchar('\n');
    }
}

int ig_cmd_lineage(int argc, char **argv)
{
    struct ig_signature sig = {.bundle = ""};
    const char *at = NULL;
    const struct ig_opt opts[] = {
        {"key", 0, IG_OPT_TEXT, &sig.key},
        {"certificate-chain", 0, IG_OPT_TEXT, &sig.roots.file},
        {"system-roots", 0, IG_OPT_FLAG, &sig.roots.system},
        {"at", 0, IG_OPT_TEXT, &at},
        {"tsa-roots", 0, IG_OPT_TEXT, &sig.tsa_roots},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[--key PUBLIC | --certificate-chain ROOTS] MODEL"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (stop >= 0) return stop;
    const bool judged = sig.key || sig.roots.file || sig.roots.system;
    if (!judged && (at || sig.tsa_roots))
        return ig_cli_usage(&cli, "--at and --tsa-roots need --certificate-chain ROOTS");
    const int wrong = judged ? ig_signature_usage(&cli, &sig, at) : -1;
    if (wrong >= 0) return wrong;

    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    const ingot_status status = ig_lineage(&store, cli.argv[0], judged ? &sig : NULL, &report, &e);
    ig_store_close(&store);
    if (status != INGOT_OK) return ig_cli_fail(&cli, &e);
    const int code = !judged || json_is_true(json_object_get(report, "signed")) ? 0 : 1;
    return ig_cli_report(&cli, report, print_chain, code);
}
