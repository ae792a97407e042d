/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cmd_common.h"

#include <string.h>

static struct ig_digest_text text_of(const char *prefix, const uint8_t *digest, size_t n)
{
    struct ig_digest_text out;
    char hex[2 * IG_HASH + 1];
    ig_hex(hex, digest, n);
    snprintf(out.s, sizeof out.s, "%s%s", prefix, hex);
    return out;
}

struct ig_digest_text ig_pack_text(const uint8_t digest[IG_HASH])
{
    return text_of(IG_DIGEST_PREFIX, digest, IG_HASH);
}

struct ig_digest_text ig_content_text(const uint8_t digest[IG_HASH])
{
    return text_of("ingot-content-v1:", digest, IG_HASH);
}

struct ig_digest_text ig_sha256_text(const uint8_t digest[IG_HASH])
{
    return text_of(IG_SOURCE_PREFIX, digest, IG_HASH);
}

struct ig_digest_text ig_short_text(const uint8_t digest[IG_HASH])
{
    return text_of("", digest, 6);
}

json_t *ig_names_of(const struct ig_name *names, size_t n, const uint8_t digest[IG_HASH])
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        if (!names[i].problem && memcmp(names[i].digest, digest, IG_HASH) == 0)
            json_array_append_new(array, json_string(names[i].name));
    return array;
}

struct ig_called ig_called(const struct ig_name *names, size_t n, const uint8_t digest[IG_HASH])
{
    struct ig_called out;
    ig_hex(out.s, digest, IG_HASH);
    for (size_t i = 0; i < n; i++) {
        if (names[i].problem || memcmp(names[i].digest, digest, IG_HASH) != 0) continue;
        snprintf(out.s, sizeof out.s, "%s", names[i].name);
        break;
    }
    return out;
}
