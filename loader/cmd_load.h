/* SPDX-License-Identifier: Apache-2.0 */
/* ingot load: what it does (cmd_load.c) and what it says of it (cmd_load_report.c). */
#ifndef INGOT_CMD_LOAD_H
#define INGOT_CMD_LOAD_H

#include "loader/load.h"

struct ig_cli;
extern const char *const ig_check_words[3]; /* in the order of their enumerations */
extern const char *const ig_engine_words[INGOT_ENGINES];
json_t *ig_load_report(const ingot_loader *l, const ingot_pack *p, const char *model,
                       const char *level);
json_t *ig_load_json(const struct ingot_load_stats *s, ingot_status status);
void ig_load_print(const struct ig_cli *c, const json_t *report);

#endif
