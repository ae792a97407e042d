/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of the store share. */
#ifndef INGOT_CMD_COMMON_H
#define INGOT_CMD_COMMON_H

#include "base/cli.h"
#include "base/cmds.h"
#include "store/folder.h"
#include "store/index.h"

struct ig_digest_text {
    char s[96];
};
struct ig_digest_text ig_pack_text(const uint8_t digest[IG_HASH]);    /* fsverity-sha256:<hex> */
struct ig_digest_text ig_content_text(const uint8_t digest[IG_HASH]); /* ingot-content-v1:<hex> */
struct ig_digest_text ig_sha256_text(const uint8_t digest[IG_HASH]);  /* sha256:<hex> */
struct ig_digest_text ig_short_text(const uint8_t digest[IG_HASH]);   /* the first 12 digits */

/* The names of a pack that are to be believed, as a JSON array. */
json_t *ig_names_of(const struct ig_name *names, size_t n, const uint8_t digest[IG_HASH]);
/* What a person calls a pack: its first name, else its whole digest in hex. */
struct ig_called {
    char s[IG_NAME_MOST + 1];
};
struct ig_called ig_called(const struct ig_name *names, size_t n, const uint8_t digest[IG_HASH]);

#endif
