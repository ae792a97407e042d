// SPDX-License-Identifier: Apache-2.0
#include "loader/cuda/context.h"

static cudaError_t entry(const char *name, void **out)
{
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    const cudaError_t err =
        cudaGetDriverEntryPointByVersion(name, out, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t err = cudaGetDriverEntryPoint(name, out, cudaEnableDefault, &found);
#endif
    if (err == cudaSuccess && (found != cudaDriverEntryPointSuccess || !*out))
        return cudaErrorCallRequiresNewerDriver;
    return err;
}

ingot_status ig_driver_load(struct ig_driver *d, ingot_error *e)
{
    const struct {
        const char *name;
        void **at;
    } calls[] = {
        {"cuDeviceGet", (void **)&d->device_get},
        {"cuDevicePrimaryCtxRetain", (void **)&d->retain},
        {"cuDevicePrimaryCtxRelease", (void **)&d->release},
        {"cuCtxPushCurrent", (void **)&d->push},
        {"cuCtxPopCurrent", (void **)&d->pop},
        {"cuGetErrorName", (void **)&d->error_name},
        {"cuMemGetAddressRange", (void **)&d->range},
    };
    for (const auto &c : calls) {
        const cudaError_t err = entry(c.name, c.at);
        if (err != cudaSuccess) return ig_cuda_fail(e, "CUDA", c.name, err);
    }
    return INGOT_OK;
}

ingot_status ig_cuda_fail(ingot_error *e, const char *device, const char *call, cudaError_t err)
{
    int runtime = 0, driver = 0;
    (void)cudaGetLastError(); // else the next good call would report this one again
    switch (err) {
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
        (void)cudaRuntimeGetVersion(&runtime);
        (void)cudaDriverGetVersion(&driver);
        if (driver == 0)
            return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no NVIDIA driver on this host", device);
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: the driver is too old: it knows CUDA %d.%d, this program needs %d.%d",
                       device, driver / 1000, driver % 1000 / 10, runtime / 1000,
                       runtime % 1000 / 10);
    case cudaErrorNoDevice:
        return ig_fail(e, INGOT_ERR_NOT_FOUND,
                       "%s: no CUDA device is visible to this process (CUDA_VISIBLE_DEVICES?)",
                       device);
    case cudaErrorDevicesUnavailable:
        return ig_fail(e, INGOT_ERR_BUSY,
                       "%s: the device is in exclusive or prohibited mode and not free", device);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
        return ig_fail(e, INGOT_ERR_UNSUPPORTED,
                       "%s: this program was built without kernels for this GPU (%s)", device,
                       cudaGetErrorName(err));
    default:
        break;
    }
    return ig_fail(e, err == cudaErrorMemoryAllocation ? INGOT_ERR_NO_MEMORY : INGOT_ERR_IO,
                   "%s: %s: %s (%s)", device, call, cudaGetErrorName(err), cudaGetErrorString(err));
}
