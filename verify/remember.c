/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembered verification: a stamp beside the pack says that this very file passed a full check.
 * It is as good as the rights on the folder: whoever may write there can write a stamp.
 */
#include "verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STAMP_MOST 4096u
/* Clocks of file systems tick: a change in the tick in which a check began would not show. */
#define YOUNG_S 2

static char *stamp_path(const char *pack)
{
    const size_t n = strlen(pack);
    return n > 6 && strcmp(pack + n - 6, ".ingot") == 0
               ? ig_format("%.*s.stamp", (int)(n - 6), pack)
               : NULL;
}

static json_t *time_json(const struct timespec *t)
{
    return json_sprintf("%lld.%09ld", (long long)t->tv_sec, t->tv_nsec);
}

/* What a stamp of this file, now and on this boot, says.  `verified`: when it was checked. */
static json_t *stamp_of(const struct stat *st, const uint8_t digest[IG_HASH], const char *verified)
{
    char *boot = NULL;
    size_t n = 0;
    if (ig_read_file("/proc/sys/kernel/random/boot_id", 64, &boot, &n, NULL) != INGOT_OK)
        return NULL;
    boot[strcspn(boot, "\n")] = '\0';
    json_t *o = json_pack("{s:i,s:s,s:I,s:I,s:I,s:o,s:o,s:o,s:s}", "v", 1, "boot", boot, "device",
                          (json_int_t)st->st_dev, "inode", (json_int_t)st->st_ino, "size",
                          (json_int_t)st->st_size, "mtime", time_json(&st->st_mtim), "ctime",
                          time_json(&st->st_ctim), "digest",
                          ig_digest_json("fsverity-sha256:", digest), "verified", verified);
    free(boot);
    return o;
}

/* The time of a stamp that speaks of this file, or NULL; caller frees. */
static char *read_stamp(const char *pack, const struct stat *st, const uint8_t digest[IG_HASH])
{
    char *path = stamp_path(pack), *text = NULL, *when = NULL;
    size_t n = 0;
    json_t *o = NULL, *expected = NULL;
    if (path && ig_read_file(path, STAMP_MOST, &text, &n, NULL) == INGOT_OK &&
        ig_json_load(text, n, path, 0, &o, NULL) == INGOT_OK) {
        const char *verified = json_string_value(json_object_get(o, "verified"));
        expected = verified ? stamp_of(st, digest, verified) : NULL;
        if (expected && json_equal(o, expected)) when = strdup(verified);
    }
    json_decref(expected);
    json_decref(o);
    free(text), free(path);
    return when;
}

static ingot_status replace(const char *path, const char *text, size_t n, ingot_error *e)
{
    const char *slash = strrchr(path, '/');
    char *hidden =
        ig_format("%.*s.tmp-stamp.%ld", slash ? (int)(slash - path) + 1 : 0, path, (long)getpid());
    if (!hidden) return ig_no_memory(e);
    (void)unlink(hidden); /* of a process that died and had our number */
    ingot_status status = ig_write_new(hidden, 0444, text, n, e);
    if (status == INGOT_OK && rename(hidden, path) != 0)
        status = ig_fail_sys(e, errno, "%s: cannot rename to it", path);
    if (status != INGOT_OK) (void)unlink(hidden);
    free(hidden);
    return status;
}

static ingot_status write_stamp(const char *pack, const struct stat *st,
                                const uint8_t digest[IG_HASH], time_t began, ingot_error *e)
{
    char when[32], *text = NULL, *path = stamp_path(pack);
    struct tm tm;
    size_t n = 0;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&began, &tm));
    json_t *o = stamp_of(st, digest, when);
    ingot_status status = o && path ? ig_json_dump(o, &text, &n, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = replace(path, text, n, e);
    json_decref(o);
    free(text), free(path);
    return status;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
           memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0;
}

static const char *remember(const char *path, const struct stat *before,
                            const uint8_t digest[IG_HASH], time_t began)
{
    struct stat after;
    ingot_error why;
    if (stat(path, &after) != 0 || !same_file(before, &after)) return "no: it changed meanwhile";
    if (before->st_ctim.tv_sec + YOUNG_S > began) return "no: it is too young";
    return write_stamp(path, before, digest, began, &why) == INGOT_OK ? "yes"
                                                                      : "no: cannot write there";
}

static json_t *short_report(const char *label, const struct stat *st, const uint8_t digest[IG_HASH],
                            const char *when)
{
    return json_pack("{s:o,s:o,s:b,s:s,s:s,s:I,s:i,s:i,s:i,s:i,s:[]}", "model", ig_text_json(label),
                     "digest", ig_digest_json("fsverity-sha256:", digest), "ok", 1, "level",
                     "stamp", "stamp", when, "bytes", (json_int_t)st->st_size, "bytes_hashed", 0,
                     "bytes_checked", 0, "tensors", 0, "tensors_hashed", 0, "bad");
}

ingot_status ig_verify_remembered(const char *path, const char *label, const uint8_t *digest,
                                  const struct ig_verify *v, json_t **report, ingot_error *e)
{
    const uint8_t *expected = v->has_expect ? v->expect : digest;
    const time_t began = time(NULL);
    struct stat before;
    if (!expected || !v->trust_stamp || stat(path, &before) != 0)
        return ig_verify_pack(path, label, digest, v, report, e);
    char *when = read_stamp(path, &before, expected);
    if (when) {
        *report = short_report(label, &before, expected, when);
        free(when);
        return *report ? INGOT_OK : ig_no_memory(e);
    }
    return_if_error(ig_verify_pack(path, label, digest, v, report, e));
    if (json_is_true(json_object_get(*report, "ok")))
        json_object_set_new(*report, "remembered",
                            json_string(remember(path, &before, expected, began)));
    return INGOT_OK;
}
