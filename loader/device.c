/* SPDX-License-Identifier: Apache-2.0 */
/* From the name of a device to the device. */
#include "config.h"

#include "loader/device.h"
#include "loader/loader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static ingot_status open_cuda(int index, struct ig_dev **out, ingot_error *e)
{
#ifdef HAVE_CUDA
    return ig_cuda_open(index, out, e);
#else
    (void)out;
    return ig_fail(e, INGOT_ERR_UNSUPPORTED, "cuda:%d: this program was built without CUDA", index);
#endif
}

/* The driver's own tools take any beginning of a UUID that only one device has. */
static ingot_status by_uuid(const char *uuid, int *index, ingot_error *e)
{
    struct ig_devices d;
    int found = 0;
    return_if_error(ig_devices_list(&d, e));
    for (int i = 0; i < d.n; i++)
        if (strncasecmp(d.list[i].uuid, uuid, strlen(uuid)) == 0) {
            *index = d.list[i].index;
            found++;
        }
    const int n = d.n;
    ig_devices_free(&d);
    if (found == 1) return INGOT_OK;
    return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: %d of the %d visible CUDA devices have this UUID",
                   ig_esc(uuid, strlen(uuid)).s, found, n);
}

static ingot_status by_default(unsigned threads, struct ig_dev **out, ingot_error *e)
{
    struct ig_devices d;
    return_if_error(ig_devices_list(&d, e));
    const int n = d.n;
    ig_devices_free(&d);
    return n > 0 ? open_cuda(0, out, e) : ig_host_open(threads, out, e);
}

ingot_status ig_dev_open(const char *name, unsigned threads, struct ig_dev **out, ingot_error *e)
{
    int index = 0;
    *out = NULL;
    if (!name) return by_default(threads, out, e);
    if (strcmp(name, "host") == 0 || strcmp(name, "cpu") == 0) return ig_host_open(threads, out, e);
    if (strncasecmp(name, "GPU-", 4) == 0) {
        return_if_error(by_uuid(name, &index, e));
        return open_cuda(index, out, e);
    }
    const char *number = name;
    if (strcmp(name, "cuda") == 0) number = "0";
    if (strncmp(name, "cuda:", 5) == 0) number = name + 5;
    char *end = NULL;
    const long n = strtol(number, &end, 10);
    if (!isdigit((unsigned char)number[0]) || *end || n > 9999)
        return ig_fail(e, INGOT_ERR_USAGE,
                       "device \"%s\": expected \"cuda:N\", a UUID (\"GPU-...\") or \"host\"",
                       ig_esc(name, strlen(name)).s);
    return open_cuda((int)n, out, e);
}
