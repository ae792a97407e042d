/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/fields.h"

#include <stdarg.h>
#include <string.h>

ingot_status ig_field_bad(const struct ig_at *at, const char *key, ingot_error *e,
                          const char *format, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    ig_fail(e, INGOT_ERR_INPUT, "%s: %s%s%s: %s", ig_esc(at->path, strlen(at->path)).s, at->where,
            *at->where && *key ? "." : "", key, text);
    return ig_at(e, at->path, NULL, 0);
}

static const char *type_name(json_type type)
{
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    default:
        return "true or false";
    }
}

ingot_status ig_field_maybe(const struct ig_at *at, const json_t *object, const char *key,
                            json_type type, json_t **out, ingot_error *e)
{
    json_t *v = json_object_get(object, key);
    *out = NULL;
    if (!v || json_is_null(v)) return INGOT_OK;
    const json_type found = json_is_boolean(v) ? JSON_TRUE : json_typeof(v);
    if (found != type) return ig_field_bad(at, key, e, "expected %s", type_name(type));
    if (type == JSON_STRING && strlen(json_string_value(v)) != json_string_length(v))
        return ig_field_bad(at, key, e, "expected text without NUL");
    *out = v;
    return INGOT_OK;
}

ingot_status ig_field(const struct ig_at *at, const json_t *object, const char *key, json_type type,
                      json_t **out, ingot_error *e)
{
    return_if_error(ig_field_maybe(at, object, key, type, out, e));
    return *out ? INGOT_OK : ig_field_bad(at, key, e, "missing, expected %s", type_name(type));
}

ingot_status ig_field_text(const struct ig_at *at, const json_t *object, const char *key,
                           const char **out, ingot_error *e)
{
    json_t *v;
    return_if_error(ig_field(at, object, key, JSON_STRING, &v, e));
    *out = json_string_value(v);
    return INGOT_OK;
}

ingot_status ig_field_is(const struct ig_at *at, const json_t *object, const char *key,
                         const char *expected, ingot_error *e)
{
    const char *text;
    return_if_error(ig_field_text(at, object, key, &text, e));
    if (strcmp(text, expected) == 0) return INGOT_OK;
    return ig_field_bad(at, key, e, "\"%s\", expected \"%s\"", ig_esc(text, strlen(text)).s,
                        expected);
}

ingot_status ig_field_digest(const struct ig_at *at, const json_t *object, const char *key,
                             const char *prefix, uint8_t out[IG_HASH], ingot_error *e)
{
    const char *text;
    const size_t n = strlen(prefix);
    return_if_error(ig_field_text(at, object, key, &text, e));
    if (strncmp(text, prefix, n) == 0 && strlen(text + n) == 2 * IG_HASH &&
        ig_unhex(out, IG_HASH, text + n))
        return INGOT_OK;
    return ig_field_bad(at, key, e, "\"%s\", expected %s and 64 lower-case hex digits",
                        ig_esc(text, strlen(text)).s, *prefix ? prefix : "a SHA-256");
}

ingot_status ig_field_only(const struct ig_at *at, const json_t *object, const char *const *known,
                           ingot_error *e)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)object, key, v)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i])
            return ig_field_bad(at, ig_esc(key, strlen(key)).s, e, "unknown to this format");
    }
    return INGOT_OK;
}
