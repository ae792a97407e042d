/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define WINDOW ((size_t)1 << 20)

ingot_status ig_sha256_fd(int fd, const char *path, uint8_t out[IG_HASH], uint64_t *bytes,
                          ingot_error *e)
{
    struct ig_sha h;
    uint8_t *buf = ig_pages(WINDOW);
    if (!buf) return ig_no_memory(e);
    ssize_t n;
    uint64_t sum = 0;
    ig_sha_init(&h);
    while ((n = read(fd, buf, WINDOW)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        ig_sha_update(&h, buf, (size_t)n);
        sum += (uint64_t)n;
    }
    const int why = errno;
    ig_sha_final(&h, out);
    free(buf);
    if (bytes) *bytes = sum;
    if (n == 0) return INGOT_OK;
    ig_fail_sys(e, why, "%s: cannot read", path);
    return ig_at(e, path, NULL, 0);
}
