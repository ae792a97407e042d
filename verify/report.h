/* SPDX-License-Identifier: Apache-2.0 */
/* report: what the commands of this folder print, and take, alike. */
#ifndef INGOT_REPORT_H
#define INGOT_REPORT_H

#include "base/cli.h"
#include "verify/verify.h"

/* One model's report of ig_verify_pack, for people. */
void ig_verify_print(const json_t *model);
/* receipt_print.c: the report of ig_receipt_verify, for people. */
void ig_receipt_print(const json_t *report);
void ig_verify_print_findings(const json_t *bad); /* a list of "bad", a line each */
/* A whole digest: 64 lower-case hex digits, with or without "fsverity-sha256:". */
bool ig_verify_digest(const char *text, uint8_t out[IG_HASH]);
/* sig_options.c: key, roots and times as given belong together; `at` becomes s->at.  -1: fine,
 * else an exit code. */
int ig_signature_usage(const struct ig_cli *cli, struct ig_signature *s, const char *at);

#endif
