/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "store/verity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef HAVE_LINUX_FSVERITY_H
#include <linux/fsverity.h>

ingot_status ig_verity_enable(const char *path, ingot_error *e)
{
    struct fsverity_enable_arg arg = {
        .version = 1, .hash_algorithm = FS_VERITY_HASH_ALG_SHA256, .block_size = IG_PAGE};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ig_fail_sys(e, errno, "%s: cannot open", path);
    const int failed = ioctl(fd, FS_IOC_ENABLE_VERITY, &arg) != 0 ? errno : 0;
    close(fd);
    if (failed == 0 || failed == EEXIST) return INGOT_OK;
    if (failed == EOPNOTSUPP || failed == ENOTTY || failed == EINVAL)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: this file system has no fs-verity (%s)", path,
                       strerrorname_np(failed));
    return ig_fail_sys(e, failed, "%s: cannot enable fs-verity", path);
}

bool ig_verity_measure(int fd, uint8_t digest[IG_HASH])
{
    struct fsverity_digest *d = calloc(1, sizeof *d + IG_HASH);
    if (!d) return false;
    d->digest_size = IG_HASH;
    const bool ok = ioctl(fd, FS_IOC_MEASURE_VERITY, d) == 0 &&
                    d->digest_algorithm == FS_VERITY_HASH_ALG_SHA256 && d->digest_size == IG_HASH;
    if (ok) memcpy(digest, d->digest, IG_HASH);
    free(d);
    return ok;
}

#else

ingot_status ig_verity_enable(const char *path, ingot_error *e)
{
    return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: built without linux/fsverity.h", path);
}

bool ig_verity_measure(int fd, uint8_t digest[IG_HASH])
{
    (void)fd;
    (void)digest;
    return false;
}

#endif
