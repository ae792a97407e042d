/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's primary context, and a guard that makes it current for one call.  cudaSetDevice
 * would do it too, but putting the caller's device back with it makes that device's context come
 * to be; pushing and popping leaves every other device alone.
 */
#ifndef INGOT_CUDA_CONTEXT_H
#define INGOT_CUDA_CONTEXT_H

#include <cuda.h>
#include <cuda_runtime.h>

extern "C" {
#include "loader/device.h"
}

/* The few calls of the driver that the runtime does not have; found at run time, so that the
 * program starts on a host without a driver. */
struct ig_driver {
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
    CUresult (*push)(CUcontext);
    CUresult (*pop)(CUcontext *);
    CUresult (*error_name)(CUresult, const char **);
    CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr);
};
ingot_status ig_driver_load(struct ig_driver *d, ingot_error *e);

class ig_current
{
    const struct ig_driver &driver;
    bool pushed;

  public:
    ig_current(const struct ig_driver &d, CUcontext context)
        : driver(d), pushed(context && d.push(context) == CUDA_SUCCESS)
    {
    }
    ~ig_current()
    {
        CUcontext ignored;
        if (pushed) driver.pop(&ignored);
    }
    ig_current(const ig_current &) = delete;
    ig_current &operator=(const ig_current &) = delete;
};

/* The failure of a call, in the words that its kind deserves; clears the runtime's memory of it. */
ingot_status ig_cuda_fail(ingot_error *e, const char *device, const char *call, cudaError_t err);

#endif
