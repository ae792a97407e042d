/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the safetensors header.  The input is a line with the length of
 * the data section in decimal, then the header's text; the length before the header is
 * made to fit, so that mutations reach the parser.  Accepted headers must keep every
 * promise of convert.h.
 */
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) abort();
}

static uint64_t read_length(const uint8_t **data, size_t *size)
{
    uint64_t v = 0;
    while (*size && **data != '\n') {
        v = v * 10 + (**data & 15);
        (*data)++;
        (*size)--;
    }
    if (*size) {
        (*data)++;
        (*size)--;
    }
    return v & (UINT64_MAX >> 1); /* no file is larger */
}

static int compare(const struct ig_st_tensor *a, const struct ig_st_tensor *b)
{
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    const size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
    const int c = memcmp(a->name, b->name, n);
    return c ? c : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static void check_promises(const struct ig_st *st, uint64_t length)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < st->count; i++) {
        const struct ig_st_tensor *t = &st->tensors[i];
        unsigned __int128 bits = ig_dtypes[t->dtype].bits;
        for (size_t d = 0; d < t->rank; d++) bits = (uint64_t)bits * (unsigned __int128)t->shape[d];
        check(bits == (unsigned __int128)(t->end - t->begin) * 8);
        check(t->name_len > 0 && !memchr(t->name, 0, t->name_len));
        check(ig_utf8_valid(t->name, t->name_len));
        check(!i || compare(t - 1, t) < 0);
        check(t->begin == t->end ? t->begin <= covered : t->begin == covered);
        if (t->end > covered) covered = t->end;
    }
    check(covered == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ig_st st;
    ingot_error e = {.status = INGOT_OK};
    const uint64_t length = read_length(&data, &size);
    char *header = malloc(8 + size);
    if (!header || length > UINT64_MAX / 2 - 8 - size) {
        free(header);
        return 0;
    }
    ig_put64(header, size);
    if (size) memcpy(header + 8, data, size);
    const ingot_status status =
        ig_st_parse(header, size, "fuzz.safetensors", 8 + size + length, &st, &e);
    if (status == INGOT_OK) {
        check_promises(&st, length);
    } else {
        check(status == INGOT_ERR_INPUT && e.status == status && e.file[0]);
        check(!st.header && !st.tensors);
        free(header);
    }
    ig_st_free(&st);
    return 0;
}
