// SPDX-License-Identifier: Apache-2.0
// What the CUDA runtime knows of the devices.  Queries only: no context comes to be.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "loader/loader.h"
}

static void write_uuid(const cudaUUID_t *uuid, char *out, size_t cap)
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    size_t n = (size_t)snprintf(out, cap, "GPU");
    for (int i = 0; i < 16 && n + 3 < cap; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        n += (size_t)snprintf(out + n, cap - n, "%s%02x", dash ? "-" : "", b[i]);
    }
}

static cudaError_t read_device(int index, struct ig_device *d)
{
    cudaDeviceProp prop;
    const cudaError_t err = cudaGetDeviceProperties(&prop, index);
    if (err != cudaSuccess) return err;
    d->index = index;
    snprintf(d->name, sizeof d->name, "%s", prop.name);
    write_uuid(&prop.uuid, d->uuid, sizeof d->uuid);
    snprintf(d->pci, sizeof d->pci, "%04x:%02x:%02x.0", prop.pciDomainID, prop.pciBusID,
             prop.pciDeviceID);
    d->major = prop.major;
    d->minor = prop.minor;
    d->multiprocessors = prop.multiProcessorCount;
    d->memory = prop.totalGlobalMem;
    return cudaSuccess;
}

extern "C" int ig_cuda_devices(struct ig_devices *out, const char **why)
{
    int n = 0;
    cudaError_t err = cudaRuntimeGetVersion(&out->runtime);
    if (err == cudaSuccess) err = cudaDriverGetVersion(&out->driver);
    if (err == cudaSuccess) err = cudaGetDeviceCount(&n);
    // A host without a driver or without a device is a fine host.
    if (err == cudaErrorNoDevice || err == cudaErrorInsufficientDriver) {
        if (out->driver >= out->runtime || out->driver == 0) {
            (void)cudaGetLastError();
            return 0;
        }
    }
    if (err == cudaSuccess && n > 0) {
        out->list = (struct ig_device *)calloc((size_t)n, sizeof *out->list);
        if (!out->list) err = cudaErrorMemoryAllocation;
    }
    for (int i = 0; err == cudaSuccess && i < n; i++) {
        err = read_device(i, &out->list[i]);
        if (err == cudaSuccess) out->n++;
    }
    *why = cudaGetErrorName(err);
    return (int)err;
}
