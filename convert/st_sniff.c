/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/st_sniff.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"

/* The rest of the first line that starts with `key`, or NULL. */
static const char *line_after(const char *buf, size_t n, const char *key, size_t *left)
{
    const size_t k = strlen(key);
    const char *end = buf + n;
    for (const char *line = buf; line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        const size_t len = (size_t)((eol ? eol : end) - line);
        if (len >= k && memcmp(line, key, k) == 0) {
            *left = len - k;
            return line + k;
        }
        line += len + 1;
    }
    return NULL;
}

bool ig_lfs_pointer(const char *buf, size_t n, char oid[65], uint64_t *size)
{
    static const char version[] = "version https://git-lfs";
    size_t left;
    oid[0] = '\0';
    *size = 0;
    if (n >= IG_SNIFF_BYTES || n < sizeof version - 1) return false;
    if (memcmp(buf, version, sizeof version - 1) != 0) return false;
    const char *hex = line_after(buf, n, "oid sha256:", &left);
    if (hex && left >= 64 && ig_is_hex(hex, 64)) {
        memcpy(oid, hex, 64);
        oid[64] = '\0';
    }
    const char *digits = line_after(buf, n, "size ", &left);
    for (size_t i = 0; digits && i < left && digits[i] >= '0' && digits[i] <= '9'; i++) {
        const uint64_t digit = (uint64_t)(digits[i] - '0');
        *size = *size > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *size * 10 + digit;
    }
    return true;
}

static bool starts(const char *buf, size_t n, const char *magic, size_t len)
{
    return n >= len && memcmp(buf, magic, len) == 0;
}

static bool is_page(const char *buf, size_t n)
{
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", buf[i]) && buf[i]) i++;
    const char *s = buf + i;
    return (n - i >= 9 && strncasecmp(s, "<!doctype", 9) == 0) ||
           (n - i >= 5 && strncasecmp(s, "<html", 5) == 0);
}

const char *ig_sniff(const char *buf, size_t n)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *what;
    } kinds[] = {
        {"PK\3\4", 4,
         "a zip archive, as PyTorch writes its checkpoints; pickles are not read, by design"},
        {"GGUF", 4, "a GGUF file"},
        {"\x89HDF\r\n\x1a\n", 8, "an HDF5 file"},
        {"\x93NUMPY", 6, "a NumPy array file"},
        {"\x1f\x8b", 2, "a gzip file"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (starts(buf, n, kinds[i].magic, kinds[i].len)) return kinds[i].what;
    if (n >= 2 && (uint8_t)buf[0] == 0x80 && buf[1] >= 2 && buf[1] <= 5)
        return "a Python pickle; pickles are not read, by design";
    if (is_page(buf, n)) return "an HTML page, perhaps of a failed download";
    return NULL;
}
