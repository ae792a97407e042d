/* SPDX-License-Identifier: Apache-2.0 */
/* ingot verify: see ingot-verify(1). */
#include "base/cli.h"
#include "base/cmds.h"
#include "verify/receipt.h"
#include "verify/report.h"
#include "verify/trust.h"
#include "verify/verify.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void print_report(const struct ig_cli *cli, const json_t *r)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(r, "models"), i, o) ig_verify_print(o);
    json_array_foreach(json_object_get(r, "extra"), i, o)
        ig_cli_notice(cli, "extra: %s does not belong to the store",
                      json_string_value(json_object_get(o, "path")));
}

struct sig_options {
    struct ig_signature sig;
    struct ig_texts unheld;
    const char *at;
};

/* What belongs together.  -1: fine. */
static int check_signature(const struct ig_cli *cli, struct sig_options *o)
{
    struct ig_signature *s = &o->sig;
    const bool by_roots = s->roots.file || s->roots.system;
    if (!s->bundle) {
        if (s->key || by_roots || o->at || s->tsa_roots || o->unheld.n)
            return ig_cli_usage(cli, "--key, --certificate-chain and what goes with them need "
                                     "--signature BUNDLE");
        return -1;
    }
    const int wrong = ig_signature_usage(cli, s, o->at);
    if (wrong >= 0) return wrong;
    s->unheld = o->unheld.list;
    s->nunheld = o->unheld.n;
    return -1;
}

/* Who puts his name under a bundle that was found good. */
struct endorser {
    const char *file; /* a private key, or NULL: nobody */
    uint64_t fd;      /* of its passphrase; UINT64_MAX: none */
    struct ig_key key;
};

static ingot_status open_endorser(const struct ig_cli *cli, struct endorser *d, ingot_error *e)
{
    const struct ig_passphrase from = {
        .fd = d->fd > INT_MAX ? -1 : (int)d->fd, .name = IG_PASSPHRASE_VARIABLE, .prompt = true};
    bool loose = false;
    if (!d->file) return INGOT_OK;
    const ingot_status status = ig_key_read_private(d->file, &from, &d->key, &loose, e);
    if (loose)
        ig_cli_notice(cli, "%s: others than its owner can read this key (chmod 600)",
                      ig_esc(d->file, strlen(d->file)).s);
    return status;
}

static ingot_status put_endorsement(const struct ig_store *s, const char *model,
                                    const struct endorser *d, json_t *report, ingot_error *e)
{
    json_t *one = json_array_get(json_object_get(report, "models"), 0);
    char *path = NULL;
    if (!d->file || !json_is_true(json_object_get(report, "ok"))) return INGOT_OK;
    return_if_error(ig_endorse(s, model, &d->key, json_object_get(one, "signature"), &path, e));
    json_object_set_new(one, "endorsement", ig_text_json(path));
    free(path);
    return INGOT_OK;
}

static void print_receipt(const struct ig_cli *cli, const json_t *r)
{
    (void)cli;
    ig_receipt_print(r);
}

static int verify_receipt(const struct ig_cli *cli, struct ig_receipt_check *job,
                          struct sig_options *o)
{
    job->signer = o->sig;
    const bool asked = o->sig.key || o->sig.roots.file || o->sig.roots.system;
    const int wrong = asked ? ig_signature_usage(cli, &job->signer, o->at) : -1;
    if (wrong >= 0) return wrong;
    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    if (ig_store_open(cli->store, false, &store, &e) != INGOT_OK) return ig_cli_fail(cli, &e);
    const ingot_status status = ig_receipt_verify(&store, job, &report, &e);
    ig_store_close(&store);
    if (status != INGOT_OK) return ig_cli_fail(cli, &e);
    const int code = json_is_true(json_object_get(report, "ok")) ? 0 : 1;
    return ig_cli_report(cli, report, print_receipt, code);
}

int ig_cmd_verify(int argc, char **argv)
{
    bool quick = false, fast = false, all = false;
    uint64_t threads = 0;
    const char *expect = NULL;
    struct ig_verify v = {.level = IG_LEVEL_FULL};
    struct sig_options sig = {.at = NULL};
    struct ig_receipt_check receipt = {.file = NULL};
    struct endorser endorse = {.fd = UINT64_MAX};
    const struct ig_opt opts[] = {
        {"quick", 0, IG_OPT_FLAG, &quick},
        {"fast", 0, IG_OPT_FLAG, &fast},
        {"source", 0, IG_OPT_TEXT, &v.source},
        {"reproduce", 0, IG_OPT_FLAG, &v.reproduce},
        {"trust-stamp", 0, IG_OPT_FLAG, &v.trust_stamp},
        {"expect", 0, IG_OPT_TEXT, &expect},
        {"self", 0, IG_OPT_FLAG, &v.self},
        {"strict", 0, IG_OPT_FLAG, &v.strict},
        {"all", 0, IG_OPT_FLAG, &all},
        {"threads", 0, IG_OPT_COUNT, &threads},
        {"signature", 0, IG_OPT_TEXT, &sig.sig.bundle},
        {"key", 0, IG_OPT_TEXT, &sig.sig.key},
        {"certificate-chain", 0, IG_OPT_TEXT, &sig.sig.roots.file},
        {"system-roots", 0, IG_OPT_FLAG, &sig.sig.roots.system},
        {"at", 0, IG_OPT_TEXT, &sig.at},
        {"tsa-roots", 0, IG_OPT_TEXT, &sig.sig.tsa_roots},
        {"allow-unheld", 0, IG_OPT_LIST, &sig.unheld},
        {"endorse", 0, IG_OPT_TEXT, &endorse.file},
        {"passphrase-fd", 0, IG_OPT_COUNT, &endorse.fd},
        {"receipt", 0, IG_OPT_TEXT, &receipt.file},
        {"allow-unsigned", 0, IG_OPT_FLAG, &receipt.allow_unsigned},
        {"output", 0, IG_OPT_TEXT, &receipt.output},
        {"nonce", 0, IG_OPT_TEXT, &receipt.nonce},
        IG_OPT_END,
    };
    struct ig_cli cli = {.usage = "[--quick|--fast] [--source DIR] [--reproduce] [--expect "
                                  "DIGEST] [--signature BUNDLE --key PUBLIC] MODEL | --all | "
                                  "--receipt FILE --key PUBLIC"};
    const int stop = ig_cli_parse(&cli, argc, argv, opts, 0, 1);
    if (stop >= 0) return stop;
    if (receipt.file) {
        if (all || cli.argc || expect || v.trust_stamp || v.source || v.reproduce ||
            sig.sig.bundle || quick || fast)
            return ig_cli_usage(&cli, "--receipt FILE takes no MODEL, and only the options of "
                                      "signatures, --allow-unsigned, --output and --nonce");
        return verify_receipt(&cli, &receipt, &sig);
    }
    if (receipt.allow_unsigned || receipt.output || receipt.nonce)
        return ig_cli_usage(&cli, "--allow-unsigned, --output and --nonce need --receipt FILE");
    if (all == (cli.argc == 1)) return ig_cli_usage(&cli, "give one MODEL, or --all");
    if (quick && fast) return ig_cli_usage(&cli, "--quick and --fast exclude each other");
    if (all && (expect || v.source || sig.sig.bundle || v.reproduce))
        return ig_cli_usage(&cli, "--all takes no --expect, --source, --signature or --reproduce");
    if (v.trust_stamp && (quick || fast || v.source || v.reproduce || sig.sig.bundle))
        return ig_cli_usage(&cli, "--trust-stamp is about full checks, and about nothing else");
    if (v.reproduce && (quick || fast))
        return ig_cli_usage(&cli, "--reproduce compares digests: not with --quick or --fast");
    const int wrong = check_signature(&cli, &sig);
    if (wrong >= 0) return wrong;
    v.signature = sig.sig.bundle ? &sig.sig : NULL;
    if (endorse.file && (!v.signature || quick || fast))
        return ig_cli_usage(&cli, "--endorse KEY needs --signature BUNDLE, and a full check");
    if (threads > 1024) return ig_cli_usage(&cli, "--threads: the number is too large");
    if (expect && !ig_verify_digest(expect, v.expect))
        return ig_cli_usage(&cli, "--expect %s: expected a whole digest of 64 hex digits", expect);
    v.has_expect = expect != NULL;
    v.threads = (unsigned)threads;
    v.level = quick ? IG_LEVEL_QUICK : fast ? IG_LEVEL_FAST : IG_LEVEL_FULL;

    ingot_error e = {0};
    struct ig_store store;
    json_t *report = NULL;
    if (ig_store_open(cli.store, false, &store, &e) != INGOT_OK) return ig_cli_fail(&cli, &e);
    v.store = &store;
    ingot_status status = open_endorser(&cli, &endorse, &e);
    v.progress = ig_progress_start(&cli, "verify");
    if (status == INGOT_OK)
        status = ig_verify_store(&store, all ? NULL : cli.argv[0], &v, &report, &e);
    ig_progress_stop();
    if (status == INGOT_OK) status = put_endorsement(&store, cli.argv[0], &endorse, report, &e);
    ig_key_free(&endorse.key);
    ig_store_close(&store);
    if (status != INGOT_OK) {
        json_decref(report);
        return ig_cli_fail(&cli, &e);
    }
    const int code = json_is_true(json_object_get(report, "ok")) ? 0 : 1;
    return ig_cli_report(&cli, report, print_report, code);
}
