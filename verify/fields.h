/* SPDX-License-Identifier: Apache-2.0 */
/* fields: members of JSON objects that must be there and of a kind. */
#ifndef INGOT_FIELDS_H
#define INGOT_FIELDS_H

#include "base/base.h"

/* For messages: "PATH: WHERE.KEY: expected ...". */
struct ig_at {
    const char *path, *where;
};
/* A member of that type, borrowed; a string has no NUL in it.  Absent, another type: *out NULL and
 * INGOT_ERR_INPUT. */
ingot_status ig_field(const struct ig_at *at, const json_t *object, const char *key, json_type type,
                      json_t **out, ingot_error *e);
/* The same; absent or null is fine and leaves *out NULL. */
ingot_status ig_field_maybe(const struct ig_at *at, const json_t *object, const char *key,
                            json_type type, json_t **out, ingot_error *e);
ingot_status ig_field_text(const struct ig_at *at, const json_t *object, const char *key,
                           const char **out, ingot_error *e);
/* Exactly this text. */
ingot_status ig_field_is(const struct ig_at *at, const json_t *object, const char *key,
                         const char *expected, ingot_error *e);
/* 64 lower-case hex digits after `prefix`. */
ingot_status ig_field_digest(const struct ig_at *at, const json_t *object, const char *key,
                             const char *prefix, uint8_t out[IG_HASH], ingot_error *e);
/* Members other than these are refused by name; `known` ends with NULL. */
ingot_status ig_field_only(const struct ig_at *at, const json_t *object, const char *const *known,
                           ingot_error *e);
ingot_status ig_field_bad(const struct ig_at *at, const char *key, ingot_error *e,
                          const char *format, ...) IG_PRINTF(4, 5);

#endif
