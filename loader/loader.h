/* SPDX-License-Identifier: Apache-2.0 */
/* loader: the devices that packs are loaded into. */
#ifndef INGOT_LOADER_H
#define INGOT_LOADER_H

#include "base/base.h"

struct ig_device {
    int index;
    char name[128];
    char uuid[48];    /* "GPU-xxxxxxxx-...", as the driver's own tools write it */
    char pci[24];     /* "0000:01:00.0" */
    int major, minor; /* compute capability */
    int multiprocessors;
    uint64_t memory; /* bytes */
};
struct ig_devices {
    bool built;          /* with CUDA at all */
    int runtime, driver; /* versions as CUDA counts: 13000 is 13.0; driver 0: none found */
    struct ig_device *list;
    int n;
};

/* List the CUDA devices that this process may use.  No driver and no device are answers, not
 * failures; no context is created.  Free with ig_devices_free. */
ingot_status ig_devices_list(struct ig_devices *out, ingot_error *e);
void ig_devices_free(struct ig_devices *d);

#ifdef __cplusplus
extern "C" {
#endif
/* cuda/devices.cu.  Returns a CUDA error number and its name in *why. */
int ig_cuda_devices(struct ig_devices *out, const char **why);
#ifdef __cplusplus
}
#endif

#endif
