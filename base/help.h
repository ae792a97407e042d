/* SPDX-License-Identifier: Apache-2.0 */
/* help: man pages, and the command that was probably meant. */
#ifndef INGOT_HELP_H
#define INGOT_HELP_H

#include "base/cli.h"

/* Open the manual page of a topic: "" for ingot(1), a command, or a format ("pack", "store").
 * Waits for the reader.  False when there is no page or no man program. */
bool ig_help_page(const char *topic);

/* Edits between two words: insertions, deletions, substitutions, swaps of neighbours; words
 * longer than IG_SUGGEST_MAX are as far as can be. */
#define IG_SUGGEST_MAX 32
unsigned ig_edits(const char *a, const char *b);

/* Names of `cmds` that are about as near to `typed` as the nearest, separated by ", ";
 * empty when nothing is near.  Returns how many. */
unsigned ig_suggest(const struct ig_cmd *cmds, const char *typed, char *buf, size_t cap);

#endif
