/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the JSON reader and writer.  The first byte's low bits are the
 * reader's flags ('0' is none), the rest is the text.  Beyond not crashing: what is
 * read and written reads back the same, and a text that jansson takes is taken.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) abort();
}

static void round_trip(const json_t *v)
{
    ingot_error e;
    char *text, *again;
    size_t n, m;
    json_t *back;
    if (ig_json_dump(v, &text, &n, &e) != INGOT_OK) {
        check(strstr(e.message, "expected valid UTF-8") != NULL); /* a non-finite number */
        return;
    }
    check(ig_json_load(text, n, "dump", 0, &back, &e) == INGOT_OK);
    check(ig_json_dump(back, &again, &m, &e) == INGOT_OK);
    check(n == m && memcmp(text, again, n) == 0);
    json_decref(back);
    free(text);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ingot_error e = {.status = INGOT_OK};
    json_t *v;
    if (!size) return 0;
    const unsigned flags = data[0] & 7;
    const char *text = (const char *)data + 1;
    const ingot_status status = ig_json_load(text, size - 1, "fuzz.json", flags, &v, &e);
    check((status == INGOT_OK) == (v != NULL));
    /* jansson takes a NUL byte after the value for the end of the text. */
    json_t *other = NULL;
    if (!memchr(text, 0, size - 1))
        other = json_loadb(text, size - 1,
                           JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (status != INGOT_OK) {
        check(e.status == status && e.has_offset && e.offset <= size - 1);
        check(!other || strstr(e.message, "nested too deep"));
    } else {
        check(!other || json_equal(v, other));
        round_trip(v);
    }
    json_decref(other);
    json_decref(v);
    return 0;
}
