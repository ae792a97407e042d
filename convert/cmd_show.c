/* SPDX-License-Identifier: Apache-2.0 */
/* ingot show: see ingot-show(1). */
#include "convert/show.h"

#include <stdlib.h>
#include <string.h>

static ingot_status open_model(const struct ig_cli *cli, struct ig_show *s, ingot_error *e)
{
    struct ig_store store = {0};
    struct ig_ref ref = {0};
    ingot_status status = ig_store_open(cli->store, false, &store, e);
    if (status == INGOT_OK) status = ig_store_resolve(&store, cli->argv[0], &ref, e);
    if (status == INGOT_OK) status = ig_pack_open(ref.path, &s->pack, e);
    if (status == INGOT_OK) {
        s->name = ref.name ? strdup(ref.name) : NULL;
        s->has_digest = ref.has_digest;
        memcpy(s->digest, ref.digest, IG_HASH);
        s->origin = ig_show_origin(ref.path);
        s->sigs = ig_show_sigs(ref.path);
    }
    ig_ref_free(&ref);
    ig_store_close(&store);
    return status;
}

/* config.json as it was, byte for byte. */
static ingot_status print_config(const struct ig_show *s, ingot_error *e)
{
    const uint32_t i = ig_pack_find_blob(&s->pack, "config.json", IG_BLOB_FILE);
    char *text = NULL;
    size_t n = 0;
    if (i == IG_NONE)
        return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: holds no config.json", s->pack.path);
    return_if_error(ig_pack_read_blob(&s->pack, i, &text, &n, e));
    fwrite(text, 1, n, stdout);
    free(text);
    return INGOT_OK;
}

static void print_names(const struct ig_pack *p)
{
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row row;
        ig_pack_row(p, i, &row);
        fwrite(row.name, 1, row.name_len, stdout);
        putchar('\0');
    }
}

static ingot_status print(const struct ig_cli *cli, struct ig_show *s, ingot_error *e)
{
    if (s->config) return print_config(s, e);
    if (s->nul) {
        print_names(&s->pack);
        return INGOT_OK;
    }
    if (s->scales) return_if_error(ig_show_findings(&s->pack, &s->findings, e));
    if (cli->json) {
        ig_show_json(s);
        return INGOT_OK;
    }
    if (!s->tensors && !s->scales) ig_show_summary(s);
    if (s->tensors) ig_show_tensors(s);
    if (s->scales) ig_show_scales(s);
    return INGOT_OK;
}

int ig_cmd_show(int argc, char **argv)
{
    struct ig_show s = {.pack = {.fd = -1}};
    const struct ig_opt opts[] = {
        {"tensors", 0, IG_OPT_FLAG, &s.tensors},
        {"scales", 0, IG_OPT_FLAG, &s.scales},
        {"config", 0, IG_OPT_FLAG, &s.config},
        {"null", '0', IG_OPT_FLAG, &s.nul},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[--tensors] [--scales] [--config] [-0] MODEL"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (stop >= 0) return stop;
    ingot_error e = {0};
    ingot_status status = open_model(&cli, &s, &e);
    if (status == INGOT_OK) status = print(&cli, &s, &e);
    ig_pack_close(&s.pack);
    json_decref(s.origin);
    json_decref(s.sigs);
    json_decref(s.findings);
    free(s.name);
    return status == INGOT_OK ? ig_cli_finish(&cli, 0) : ig_cli_fail(&cli, &e);
}
