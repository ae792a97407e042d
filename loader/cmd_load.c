/* SPDX-License-Identifier: Apache-2.0 */
/* ingot load: see ingot-load(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "loader/cmd_load.h"
#include "loader/load_receipt.h"
#include "verify/trust.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *device, *verify, *engine, *tensors, *rank;
    uint64_t threads, repeat, memory, passphrase_fd;
    bool drop;
    struct ig_receipt_options receipt;
    struct ig_texts inputs;
    bool required; /* a signature that a rule accepts */
    const char *keyring;
    char *names; /* of --tensors, cut at commas */
    const char **list;
};

static int word_of(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return -1;
}

/* "a,b*,c" */
static bool cut_names(struct args *a, struct ingot_load_options *o)
{
    size_t n = 1;
    for (const char *s = a->tensors; *s; s++) n += *s == ',';
    a->names = strdup(a->tensors);
    a->list = ig_array(n, sizeof *a->list);
    if (!a->names || !a->list) ig_cli_no_memory();
    for (char *s = a->names, *end; s; s = end) {
        end = strchr(s, ',');
        if (end) *end++ = '\0';
        if (*s) a->list[o->ntensors++] = s;
    }
    o->tensors = a->list;
    return o->ntensors > 0;
}

/* -1 to go on, else the exit code. */
static int read_args(struct ig_cli *cli, struct args *a, struct ingot_loader_options *l,
                     struct ingot_load_options *o)
{
    char rest;
    const int check = word_of(a->verify, ig_check_words, 3);
    const int engine = word_of(a->engine, ig_engine_words, INGOT_ENGINES);
    if (check < 0)
        return ig_cli_usage(cli, "--verify %s: expected full, fast or off",
                            ig_esc(a->verify, strlen(a->verify)).s);
    if (engine < 0)
        return ig_cli_usage(cli, "--engine %s: expected auto, ring, map or direct",
                            ig_esc(a->engine, strlen(a->engine)).s);
    if (a->rank && (sscanf(a->rank, "%u/%u%c", &o->rank, &o->ranks, &rest) != 2 || o->ranks == 0 ||
                    o->rank >= o->ranks))
        return ig_cli_usage(cli, "--rank %s: expected R/N with R below N",
                            ig_esc(a->rank, strlen(a->rank)).s);
    if (a->tensors && a->rank) return ig_cli_usage(cli, "--tensors and --rank exclude each other");
    if (a->threads > 64) return ig_cli_usage(cli, "--threads: at most 64");
    if (a->repeat < 1 || a->repeat > 1000000)
        return ig_cli_usage(cli, "--repeat: expected a number from 1 on");
    if (a->tensors && !cut_names(a, o)) return ig_cli_usage(cli, "--tensors: no name is given");
    if (a->keyring && !a->required)
        return ig_cli_usage(cli, "--keyring DIR needs --require-signature");
    if (a->required && check != INGOT_CHECK_FULL)
        return ig_cli_usage(cli, "--require-signature needs --verify full: it is the digest that "
                                 "is signed");
    if (!a->receipt.file && (a->receipt.key || a->receipt.nonce || a->inputs.n))
        return ig_cli_usage(cli, "--receipt-key, --nonce and --input need --receipt FILE");
    if (a->passphrase_fd != UINT64_MAX && a->passphrase_fd > INT_MAX)
        return ig_cli_usage(cli, "--passphrase-fd: no such");
    a->receipt.passphrase =
        (struct ig_passphrase){.fd = a->passphrase_fd == UINT64_MAX ? -1 : (int)a->passphrase_fd,
                               .name = IG_PASSPHRASE_VARIABLE,
                               .prompt = true};
    a->receipt.inputs = a->inputs.list;
    a->receipt.ninputs = a->inputs.n;
    l->device = a->device;
    l->threads = (unsigned)a->threads;
    l->memory = a->memory;
    l->engine = (ingot_engine)engine;
    o->check = (ingot_check)check;
    return -1;
}

/* ---- loads ---- */

struct session {
    const struct ig_cli *cli;
    ingot_loader *loader;
    ingot_pack *pack;
    struct ingot_load_options options;
    struct ig_progress progress;
    bool drop;
    json_t *report;
    const char *model;
    struct ig_receipt *receipt; /* or NULL */
    json_t *policy;             /* what accepted the model, or NULL */
    uint8_t accepted[IG_HASH];  /* and it as it was then */
};

static void on_notice(void *ctx, const char *text)
{
    const struct session *s = ctx;
    ig_cli_notice(s->cli, "%s", text);
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    const struct session *s = ctx;
    if (s->progress.update) s->progress.update(s->progress.ctx, done, total);
}

static int on_cancelled(void *ctx)
{
    const struct session *s = ctx;
    return s->progress.cancelled && s->progress.cancelled(s->progress.ctx);
}

static void drop_cache(struct session *s)
{
    struct ig_residency r;
    ig_residency_open(&r, s->pack->pack.fd);
    const uint64_t left = ig_residency_drop(&r, s->pack->pack.size);
    ig_residency_close(&r);
    if (left)
        ig_cli_notice(s->cli, "%s: %s of it are still in the page cache", s->pack->pack.path,
                      ig_human(left).s);
    json_object_set_new(s->report, "resident_before", json_integer((json_int_t)left));
}

static ingot_status load_once(struct session *s, ingot_error *e)
{
    ingot_load *load = NULL;
    struct ingot_load_stats stats;
    if (s->drop) drop_cache(s);
    return_if_error(ingot_load_start(s->loader, s->pack, &s->options, &load, e));
    const ingot_status status = ingot_load_wait(load, e);
    ingot_load_get_stats(load, &stats);
    json_array_append_new(json_object_get(s->report, "loads"), ig_load_json(&stats, status));
    ingot_error ignored;
    const ingot_status noted =
        s->receipt ? ig_load_receipt(s->receipt, s->model, load, status ? &ignored : e) : INGOT_OK;
    ingot_load_release(load);
    return status == INGOT_OK ? noted : status;
}

static ingot_status run(struct session *s, uint64_t repeat, ingot_error *e)
{
    double ceiling = 0;
    for (uint64_t i = 0; i < repeat; i++) return_if_error(load_once(s, e));
    ingot_error ignored;
    if (ig_loader_ceiling(s->loader, &ceiling, &ignored) == INGOT_OK && ceiling > 0)
        json_object_set_new(s->report, "ceiling", json_real(ceiling));
    return INGOT_OK;
}

static ingot_status load(struct session *s, const struct args *a, const char *model,
                         struct ingot_loader_options *l, ingot_error *e)
{
    l->notice = on_notice;
    l->ctx = s;
    return_if_error(ingot_loader_open(l, &s->loader, e));
    ingot_status status = ig_pack_api_open(s->cli->store, model, false, &s->pack, e);
    if (status != INGOT_OK) return status;
    if (s->policy && (!s->pack->has_digest || memcmp(s->pack->digest, s->accepted, IG_HASH) != 0))
        return ig_fail(e, INGOT_ERR_CHECK, "%s: the name means another pack than a moment ago",
                       model);
    s->report = ig_load_report(s->loader, s->pack, model, a->verify);
    if (s->policy) json_object_set(s->report, "policy", s->policy);
    s->options.progress = on_progress;
    s->options.cancelled = on_cancelled;
    s->options.ctx = s;
    s->progress = ig_progress_start(s->cli, "load");
    status = run(s, a->repeat, e);
    ig_progress_stop();
    return status;
}

static ingot_status begin_receipt(const struct ig_cli *cli, const struct args *a,
                                  struct ig_receipt *r, ingot_error *e)
{
    struct ig_store store;
    return_if_error(ig_store_open(cli->store, false, &store, e));
    const ingot_status status = ig_receipt_begin(r, &store, "load", &a->receipt, e);
    ig_store_close(&store);
    if (status == INGOT_OK && r->loose)
        ig_cli_notice(cli, "%s: others than its owner can read this key (chmod 600)",
                      ig_esc(a->receipt.key, strlen(a->receipt.key)).s);
    return status;
}

/* A load that failed has its receipt, too; one that never ended has none. */
static ingot_status end_receipt(const struct session *s, const struct args *a, ingot_status status,
                                ingot_error *e)
{
    ingot_error second = {0};
    ingot_status noted = INGOT_OK;
    struct ig_receipt *r = s->receipt;
    if (!json_object_get(r->predicate, "verification")) return status;
    if (a->tensors) noted = ig_receipt_setting(r, "tensors", ig_text_json(a->tensors), &second);
    if (noted == INGOT_OK) noted = ig_receipt_end(r, &second);
    if (noted == INGOT_OK && s->report)
        json_object_set_new(s->report, "receipt", ig_text_json(r->file));
    if (noted != INGOT_OK && status == INGOT_OK) {
        *e = second;
        return noted;
    }
    if (noted != INGOT_OK) ig_cli_notice(s->cli, "no receipt: %s", second.message);
    return status;
}

/* Before anything of it is read: what is accepted is a digest, which the load proves. */
static ingot_status ask_policy(struct session *s, const struct args *a, ingot_error *e)
{
    struct ig_store store;
    if (!a->required) return INGOT_OK;
    return_if_error(ig_store_open(s->cli->store, false, &store, e));
    const ingot_status status =
        ig_trust_check(&store, s->model, a->keyring, s->accepted, &s->policy, e);
    ig_store_close(&store);
    return status;
}

/* Around the load, for its receipt. */
static ingot_status load_with_receipt(struct session *s, struct args *a, const char *model,
                                      struct ingot_loader_options *l, ingot_error *e)
{
    struct ig_receipt r;
    return_if_error(ask_policy(s, a, e));
    if (!a->receipt.file) return load(s, a, model, l, e);
    return_if_error(begin_receipt(s->cli, a, &r, e));
    s->receipt = &r;
    ingot_status status =
        s->policy ? ig_receipt_set(&r, "policy", json_incref(s->policy), e) : INGOT_OK;
    if (status == INGOT_OK) status = end_receipt(s, a, load(s, a, model, l, e), e);
    ig_receipt_free(&r);
    s->receipt = NULL;
    return status;
}

int ig_cmd_load(int argc, char **argv)
{
    const char **given = ig_array((size_t)argc, sizeof *given); /* parsing sorts argv */
    if (given)
        memcpy(given, argv, (size_t)argc * sizeof *given);
    else
        ig_cli_no_memory();
    struct args a = {.verify = "full",
                     .engine = "auto",
                     .repeat = 1,
                     .passphrase_fd = UINT64_MAX,
                     .receipt = {.arguments = given, .narguments = (size_t)argc}};
    struct ingot_loader_options l = {.size = sizeof l};
    const struct ig_opt opts[] = {
        {"device", 'd', IG_OPT_TEXT, &a.device},
        {"verify", 0, IG_OPT_TEXT, &a.verify},
        {"engine", 0, IG_OPT_TEXT, &a.engine},
        {"tensors", 't', IG_OPT_TEXT, &a.tensors},
        {"rank", 0, IG_OPT_TEXT, &a.rank},
        {"threads", 0, IG_OPT_COUNT, &a.threads},
        {"repeat", 0, IG_OPT_COUNT, &a.repeat},
        {"drop-cache", 0, IG_OPT_FLAG, &a.drop},
        {"limit-memory", 0, IG_OPT_COUNT, &a.memory},
        {"receipt", 0, IG_OPT_TEXT, &a.receipt.file},
        {"receipt-key", 0, IG_OPT_TEXT, &a.receipt.key},
        {"passphrase-fd", 0, IG_OPT_COUNT, &a.passphrase_fd},
        {"nonce", 0, IG_OPT_TEXT, &a.receipt.nonce},
        {"input", 0, IG_OPT_LIST, &a.inputs},
        {"require-signature", 0, IG_OPT_FLAG, &a.required},
        {"keyring", 0, IG_OPT_TEXT, &a.keyring},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[-d DEVICE] [--verify LEVEL] [-t NAMES | --rank R/N] [--receipt "
                                  "FILE [--receipt-key KEY]] MODEL"};
    struct session s = {.cli = &cli, .options = {.size = sizeof s.options}};
    int code = ig_cli_parse(&cli, argc, argv, opts, 1, 1);
    if (code < 0) code = read_args(&cli, &a, &l, &s.options);
    if (code < 0) {
        ingot_error e = {0};
        s.drop = a.drop;
        s.model = cli.argv[0];
        const ingot_status status = load_with_receipt(&s, &a, cli.argv[0], &l, &e);
        ingot_pack_close(s.pack);
        ingot_loader_close(s.loader);
        json_decref(s.policy);
        if (status == INGOT_OK) {
            code = ig_cli_report(&cli, s.report, ig_load_print, 0);
        } else {
            if (!cli.json && s.report) ig_load_print(&cli, s.report);
            json_decref(s.report);
            code = ig_cli_fail(&cli, &e);
        }
    }
    free(given);
    free(a.names);
    free(a.list);
    return code;
}
