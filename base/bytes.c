/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <endian.h>
#include <string.h>

uint16_t ig_get16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

uint32_t ig_get32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

uint64_t ig_get64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

void ig_put16(void *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
}

void ig_put32(void *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

void ig_put64(void *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

uint64_t ig_round_up(uint64_t n, uint64_t power_of_two)
{
    return (n + power_of_two - 1) & ~(power_of_two - 1);
}

bool ig_all_zero(const void *p, size_t n)
{
    const uint8_t *b = p;
    /* The first byte is zero and every byte equals the one before it. */
    return n == 0 || (b[0] == 0 && memcmp(b, b + 1, n - 1) == 0);
}

void ig_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ig_unhex(uint8_t *out, size_t n, const char *digits)
{
    for (size_t i = 0; i < n; i++) {
        const int high = digit_value(digits[2 * i]);
        const int low = high < 0 ? -1 : digit_value(digits[2 * i + 1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool ig_is_hex(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (digit_value(s[i]) < 0) return false;
    return true;
}

int ig_bytes_cmp(const char *a, size_t na, const char *b, size_t nb)
{
    const size_t n = na < nb ? na : nb;
    const int order = n ? memcmp(a, b, n) : 0;
    return order ? order : (na > nb) - (na < nb);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of the digit run at s, leading zeros skipped into *zeros. */
static size_t digit_run(const char *s, size_t n, size_t *zeros)
{
    size_t z = 0, end = 0;
    while (z < n && s[z] == '0') z++;
    for (end = z; end < n && is_digit(s[end]);) end++;
    *zeros = z;
    return end - z;
}

int ig_natural_cmp(const char *a, size_t na, const char *b, size_t nb)
{
    const char *a0 = a, *b0 = b;
    const size_t na0 = na, nb0 = nb;
    while (na && nb) {
        if (is_digit(*a) && is_digit(*b)) {
            size_t za, zb;
            const size_t ra = digit_run(a, na, &za), rb = digit_run(b, nb, &zb);
            if (ra != rb) return ra < rb ? -1 : 1;
            const int order = memcmp(a + za, b + zb, ra);
            if (order) return order;
            a += za + ra, na -= za + ra;
            b += zb + rb, nb -= zb + rb;
        } else {
            if (*a != *b) return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
            a++, na--, b++, nb--;
        }
    }
    if (na || nb) return na ? 1 : -1;
    /* Equal but for leading zeros: bytes decide, so that the order is total. */
    return ig_bytes_cmp(a0, na0, b0, nb0);
}

bool ig_safe_path(const char *s, size_t n)
{
    for (size_t start = 0; start <= n;) {
        const char *slash = memchr(s + start, '/', n - start);
        const size_t end = slash ? (size_t)(slash - s) : n;
        const size_t len = end - start;
        if (len == 0 || (len == 1 && s[start] == '.') ||
            (len == 2 && s[start] == '.' && s[start + 1] == '.'))
            return false;
        start = end + 1;
    }
    return true;
}
