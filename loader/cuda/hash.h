/* SPDX-License-Identifier: Apache-2.0 */
/* The hash kernel, seen from device.cu. */
#ifndef INGOT_CUDA_HASH_H
#define INGOT_CUDA_HASH_H

#include "loader/cuda/xxh3.h"

#include <cuda_runtime.h>

struct ig_job;
/* One block of threads a job; jobs and results are device addresses (pinned host memory as a
 * rule).  Queues and returns. */
cudaError_t ig_cuda_hash(cudaStream_t stream, const struct ig_job *jobs, unsigned n,
                         unsigned char *results, const struct ig_xxh_secret *secret);
/* Load the kernel without running it; how many registers and how much local memory it takes. */
cudaError_t ig_cuda_hash_load(cudaFuncAttributes *out);

#endif
