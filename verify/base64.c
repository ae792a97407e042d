/* SPDX-License-Identifier: Apache-2.0 */
/* base64 that has one spelling a value: decoders that skip junk let two files be one signature. */
#include "verify/sign.h"

#include <stdlib.h>

static int digit(char c, bool url)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == (url ? '-' : '+')) return 62;
    return c == (url ? '_' : '/') ? 63 : -1;
}

static bool is_url_safe(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '-' || text[i] == '_') return true;
    return false;
}

/* Four digits, of which the last `pad` are '='; bits that no byte takes must be zero. */
static bool quad(const char *text, unsigned pad, bool url, uint8_t *out)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4 && i + pad < 4; i++) {
        const int d = digit(text[i], url);
        if (d < 0) return false;
        bits |= (uint32_t)d << (18 - 6 * i);
    }
    if (bits & (((uint32_t)1 << (8 * pad)) - 1)) return false;
    for (unsigned i = 0; i < 3 && i + pad < 3; i++) out[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

bool ig_base64_decode(const char *text, size_t n, struct ig_bytes *out)
{
    const bool url = is_url_safe(text, n);
    *out = (struct ig_bytes){NULL, 0};
    if (n % 4) return false;
    const bool padded = n && text[n - 1] == '=';
    const unsigned pad = padded ? 1u + (text[n - 2] == '=') : 0;
    uint8_t *data = malloc(n / 4 * 3 + 1);
    if (!data) return false;
    for (size_t i = 0; i < n; i += 4)
        if (!quad(text + i, i + 4 == n ? pad : 0, url, data + i / 4 * 3)) {
            free(data);
            return false;
        }
    *out = (struct ig_bytes){data, n / 4 * 3 - pad};
    return true;
}

char *ig_base64_encode(const void *data, size_t n)
{
    if (n > INT32_MAX / 2) return NULL; /* EVP counts in int */
    char *text = malloc((n + 2) / 3 * 4 + 1);
    if (text) EVP_EncodeBlock((unsigned char *)text, data, (int)n);
    return text;
}
