/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a new pack into packs/, whoever made it. */
#include "config.h"

#include "convert/publish.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

ingot_status ig_publish_text(const struct ig_store *s, const char *file, const char *text, size_t n,
                             ingot_error *e)
{
    struct ig_temp t = {.fd = -1};
    char *path = ig_store_path(s, "packs", file); /* what it will be called */
    ingot_status status = path ? ig_temp_open(s, &t, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_pwrite(t.fd, path, text, n, 0, e);
    if (status == INGOT_OK) status = ig_temp_publish(s, &t, file, e);
    ig_temp_discard(&t);
    free(path);
    return status;
}

json_t *ig_publish_origin(const char *source)
{
    char when[32];
    struct tm tm;
    const time_t now = time(NULL);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    char *path = realpath(source, NULL);
    json_t *o = json_pack("{s:s,s:s,s:o*}", "converter", "ingot " PACKAGE_VERSION, "converted",
                          when, "source", path ? ig_text_json(path) : NULL);
    free(path);
    return o;
}

ingot_status ig_publish_check_name(const struct ig_store *s, const char *name,
                                   const uint8_t digest[IG_HASH], bool replace, ingot_error *e)
{
    uint8_t old[IG_HASH];
    if (replace || ig_name_read(s, name, old, NULL) != INGOT_OK ||
        memcmp(old, digest, IG_HASH) == 0)
        return INGOT_OK;
    char was[65], is[65];
    ig_hex(was, old, IG_HASH);
    ig_hex(is, digest, IG_HASH);
    return ig_fail(e, INGOT_ERR_EXISTS,
                   "the name \"%s\" means %s, not the new %s; -n gives another "
                   "name, --force replaces it",
                   name, was, is);
}

ingot_status ig_publish_files(const struct ig_store *s, struct ig_temp *pack, struct ig_temp *tree,
                              const uint8_t digest[IG_HASH], const json_t *origin, ingot_error *e)
{
    char hex[65], file[80], *text = NULL;
    size_t n = 0;
    ig_hex(hex, digest, IG_HASH);
    snprintf(file, sizeof file, "%s.ingot", hex);
    ingot_status status = ig_temp_publish(s, pack, file, e);
    snprintf(file, sizeof file, "%s.tree", hex);
    if (status == INGOT_OK) status = ig_temp_publish(s, tree, file, e);
    snprintf(file, sizeof file, "%s.origin.json", hex);
    if (status == INGOT_OK) status = ig_json_dump(origin, &text, &n, e);
    if (status == INGOT_OK) status = ig_publish_text(s, file, text, n, e);
    free(text);
    return status;
}
