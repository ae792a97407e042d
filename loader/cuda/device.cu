// SPDX-License-Identifier: Apache-2.0
// A CUDA device behind the interface of loader/device.h.
//
// One stream copies; QUEUES others hash, window by window in turn, because hashing one window takes
// about as long as copying the next (two hashes in a row, 65 blocks each) and must not hold it up.
// Marks are events, waited for by sleeping.
#include "loader/cuda/context.h"
#include "loader/cuda/hash.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#define QUEUES 4u

struct cuda_device {
    struct ig_dev base; // first: the interface's pointer is this object's
    int index, major, minor;
    struct ig_driver driver;
    CUdevice handle;
    CUcontext context;
    std::mutex starting;
    bool started;
    cudaStream_t copies, hashes[QUEUES];
    cudaEvent_t landed[IG_MARKS], hashed[IG_MARKS], joined;
    std::atomic<bool> has_hash[IG_MARKS]; // submitters set it, the reaper looks
    struct ig_xxh_secret secret;
    struct ig_job *job_scratch[QUEUES]; // only where host memory could not be pinned
    uint8_t *out_scratch[QUEUES];
};

static struct cuda_device *of(struct ig_dev *d)
{
    return reinterpret_cast<struct cuda_device *>(d);
}

#define TRY(call)                                                                              \
    do {                                                                                       \
        const cudaError_t try_err = (call);                                                    \
        if (try_err != cudaSuccess) return ig_cuda_fail(e, c->base.info.name, #call, try_err); \
    } while (0)
#define CURRENT(d)                       \
    struct cuda_device *const c = of(d); \
    const ig_current current(c->driver, c->context)

static void take_secret(struct ig_xxh_secret *s)
{
    uint8_t b[192];
    ig_xxh_secret_bytes(b);
    memcpy(s->stripe, b, 192);
    memcpy(s->last, b + 121, 64);
    memcpy(s->low, b + 11, 64);
    memcpy(s->high, b + 117, 64);
}

static ingot_status make_context(struct cuda_device *c, ingot_error *e)
{
    if (c->context) return INGOT_OK;
    const CUresult r = c->driver.retain(&c->context, c->handle);
    if (r == CUDA_SUCCESS) return INGOT_OK;
    c->context = nullptr;
    // The runtime's numbers are the driver's for what can go wrong here.
    return ig_cuda_fail(e, c->base.info.name, "cuDevicePrimaryCtxRetain", (cudaError_t)r);
}

static ingot_status make_queues(struct cuda_device *c, ingot_error *e)
{
    const ig_current current(c->driver, c->context);
    const unsigned quiet = cudaEventDisableTiming | cudaEventBlockingSync;
    cudaFuncAttributes kernel;
    // What an earlier, failed start has made stays and is used.
    if (!c->copies) TRY(cudaStreamCreateWithFlags(&c->copies, cudaStreamNonBlocking));
    for (auto &s : c->hashes)
        if (!s) TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (unsigned i = 0; i < IG_MARKS; i++) {
        if (!c->landed[i]) TRY(cudaEventCreateWithFlags(&c->landed[i], quiet));
        if (!c->hashed[i]) TRY(cudaEventCreateWithFlags(&c->hashed[i], quiet));
    }
    if (!c->joined) TRY(cudaEventCreateWithFlags(&c->joined, quiet));
    TRY(ig_cuda_hash_load(&kernel));
    size_t free_bytes = 0, total = 0;
    TRY(cudaMemGetInfo(&free_bytes, &total));
    c->base.info.free_bytes = free_bytes;
    return INGOT_OK;
}

static ingot_status start(struct ig_dev *d, ingot_error *e)
{
    struct cuda_device *const c = of(d);
    const std::lock_guard<std::mutex> lock(c->starting);
    if (c->started) return INGOT_OK;
    return_if_error(make_context(c, e));
    return_if_error(make_queues(c, e));
    c->started = true;
    return INGOT_OK;
}

static void close_device(struct ig_dev *d)
{
    struct cuda_device *const c = of(d);
    if (c->context) {
        const ig_current current(c->driver, c->context);
        for (unsigned i = 0; i < QUEUES; i++) {
            (void)cudaFree(c->job_scratch[i]);
            (void)cudaFree(c->out_scratch[i]);
            if (c->hashes[i]) (void)cudaStreamDestroy(c->hashes[i]);
        }
        for (unsigned i = 0; i < IG_MARKS; i++) {
            if (c->landed[i]) (void)cudaEventDestroy(c->landed[i]);
            if (c->hashed[i]) (void)cudaEventDestroy(c->hashed[i]);
        }
        if (c->joined) (void)cudaEventDestroy(c->joined);
        if (c->copies) (void)cudaStreamDestroy(c->copies);
        (void)cudaGetLastError();
    }
    if (c->context) (void)c->driver.release(c->handle);
    delete c;
}

static ingot_status alloc(struct ig_dev *d, uint64_t bytes, void **out, ingot_error *e)
{
    CURRENT(d);
    size_t free_bytes = 0, total = 0;
    const cudaError_t err = cudaMalloc(out, bytes ? bytes : 1);
    if (err == cudaSuccess) return INGOT_OK;
    *out = nullptr;
    if (err != cudaErrorMemoryAllocation)
        return ig_cuda_fail(e, c->base.info.name, "cudaMalloc", err);
    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&free_bytes, &total);
    return ig_fail(e, INGOT_ERR_NO_MEMORY,
                   "%s: out of device memory: %llu bytes wanted, %llu of %llu free",
                   c->base.info.name, (unsigned long long)bytes, (unsigned long long)free_bytes,
                   (unsigned long long)total);
}

static void release(struct ig_dev *d, void *memory)
{
    CURRENT(d);
    (void)cudaFree(memory);
    (void)cudaGetLastError();
}

static ingot_status pin(struct ig_dev *d, void *memory, size_t bytes, bool read_only,
                        ingot_error *e)
{
    CURRENT(d);
    const unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped |
                           (read_only ? cudaHostRegisterReadOnly : 0);
    const cudaError_t err = cudaHostRegister(memory, bytes, flags);
    if (err == cudaSuccess) return INGOT_OK;
    // CUDA calls it "out of memory", which people take for the GPU's.
    const char *name = cudaGetErrorName(err);
    (void)cudaGetLastError();
    return ig_fail(e, INGOT_ERR_NO_MEMORY,
                   "%s: %zu bytes of pinned host memory were refused (%s; see the locked-memory "
                   "limit, ulimit -l)",
                   c->base.info.name, bytes, name);
}

static ingot_status unpin(struct ig_dev *d, void *memory, ingot_error *e)
{
    CURRENT(d);
    TRY(cudaHostUnregister(memory));
    return INGOT_OK;
}

static ingot_status transfer(struct cuda_device *c, void *to, uint64_t pitch, const void *from,
                             uint64_t stride, uint64_t width, uint64_t rows, cudaMemcpyKind kind,
                             ingot_error *e)
{
    if (rows == 1)
        TRY(cudaMemcpyAsync(to, from, width, kind, c->copies));
    else
        TRY(cudaMemcpy2DAsync(to, pitch, from, stride, width, rows, kind, c->copies));
    return INGOT_OK;
}

static ingot_status copy(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                         uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e)
{
    CURRENT(d);
    return transfer(c, to, pitch, from, stride, width, rows, cudaMemcpyHostToDevice, e);
}

static ingot_status move(struct ig_dev *d, void *to, uint64_t pitch, const void *from,
                         uint64_t stride, uint64_t width, uint64_t rows, ingot_error *e)
{
    CURRENT(d);
    return transfer(c, to, pitch, from, stride, width, rows, cudaMemcpyDeviceToDevice, e);
}

static ingot_status fill(struct ig_dev *d, void *to, int byte, uint64_t n, ingot_error *e)
{
    CURRENT(d);
    TRY(cudaMemsetAsync(to, byte, n, c->copies));
    return INGOT_OK;
}

static ingot_status mark(struct ig_dev *d, unsigned m, ingot_error *e)
{
    CURRENT(d);
    c->has_hash[m] = false;
    TRY(cudaEventRecord(c->landed[m], c->copies));
    return INGOT_OK;
}

static ingot_status wait(struct ig_dev *d, unsigned m, ingot_error *e)
{
    CURRENT(d);
    TRY(cudaEventSynchronize(c->landed[m]));
    return INGOT_OK;
}

// Where host memory is not pinned, the kernel cannot reach it: jobs and results take a detour.
static ingot_status hash_by_scratch(struct cuda_device *c, unsigned q, const struct ig_job *jobs,
                                    uint32_t n, uint8_t *results, ingot_error *e)
{
    if (!c->job_scratch[q]) TRY(cudaMalloc(&c->job_scratch[q], IG_BATCH_JOBS * sizeof *jobs));
    if (!c->out_scratch[q]) TRY(cudaMalloc(&c->out_scratch[q], IG_BATCH_OUT));
    TRY(cudaMemcpyAsync(c->job_scratch[q], jobs, n * sizeof *jobs, cudaMemcpyHostToDevice,
                        c->hashes[q]));
    TRY(ig_cuda_hash(c->hashes[q], c->job_scratch[q], n, c->out_scratch[q], &c->secret));
    TRY(cudaMemcpyAsync(results, c->out_scratch[q], IG_BATCH_OUT, cudaMemcpyDeviceToHost,
                        c->hashes[q]));
    return INGOT_OK;
}

static ingot_status hash(struct ig_dev *d, unsigned m, const struct ig_job *jobs, uint32_t n,
                         uint8_t *results, ingot_error *e)
{
    CURRENT(d);
    const unsigned q = m % QUEUES;
    void *jobs_there = nullptr, *results_there = nullptr;
    TRY(cudaStreamWaitEvent(c->hashes[q], c->landed[m], 0));
    if (cudaHostGetDevicePointer(&jobs_there, const_cast<struct ig_job *>(jobs), 0) ==
            cudaSuccess &&
        cudaHostGetDevicePointer(&results_there, results, 0) == cudaSuccess) {
        TRY(ig_cuda_hash(c->hashes[q], (const struct ig_job *)jobs_there, n,
                         (unsigned char *)results_there, &c->secret));
    } else {
        (void)cudaGetLastError();
        return_if_error(hash_by_scratch(c, q, jobs, n, results, e));
    }
    TRY(cudaEventRecord(c->hashed[m], c->hashes[q]));
    c->has_hash[m] = true;
    return INGOT_OK;
}

static ingot_status hash_wait(struct ig_dev *d, unsigned m, ingot_error *e)
{
    CURRENT(d);
    if (c->has_hash[m]) TRY(cudaEventSynchronize(c->hashed[m]));
    return INGOT_OK;
}

static bool hash_done(struct ig_dev *d, unsigned m)
{
    CURRENT(d);
    if (!c->has_hash[m]) return true;
    const cudaError_t err = cudaEventQuery(c->hashed[m]);
    if (err == cudaErrorNotReady) (void)cudaGetLastError();
    return err != cudaErrorNotReady;
}

static ingot_status after_hash(struct ig_dev *d, unsigned m, ingot_error *e)
{
    CURRENT(d);
    if (c->has_hash[m]) TRY(cudaStreamWaitEvent(c->copies, c->hashed[m], 0));
    return INGOT_OK;
}

static ingot_status drain(struct ig_dev *d, ingot_error *e)
{
    CURRENT(d);
    TRY(cudaStreamSynchronize(c->copies));
    for (unsigned i = 0; i < QUEUES; i++) TRY(cudaStreamSynchronize(c->hashes[i]));
    return INGOT_OK;
}

static ingot_status read_back(struct ig_dev *d, void *to, const void *from, uint64_t n,
                              ingot_error *e)
{
    CURRENT(d);
    TRY(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, c->copies));
    TRY(cudaStreamSynchronize(c->copies));
    return INGOT_OK;
}

static ingot_status join(struct ig_dev *d, void *stream, ingot_error *e)
{
    CURRENT(d);
    cudaStreamCaptureStatus capture;
    TRY(cudaStreamIsCapturing((cudaStream_t)stream, &capture));
    if (capture != cudaStreamCaptureStatusNone)
        return ig_fail(e, INGOT_ERR_USAGE, "%s: the stream is being captured into a graph",
                       c->base.info.name);
    TRY(cudaEventRecord(c->joined, (cudaStream_t)stream));
    TRY(cudaStreamWaitEvent(c->copies, c->joined, 0));
    return INGOT_OK;
}

static ingot_status follow(struct ig_dev *d, void *stream, unsigned m, ingot_error *e)
{
    CURRENT(d);
    if (m == IG_MARKS) TRY(cudaEventRecord(c->joined, c->copies));
    TRY(cudaStreamWaitEvent((cudaStream_t)stream, m == IG_MARKS ? c->joined : c->landed[m], 0));
    return INGOT_OK;
}

static bool writable(struct ig_dev *d, const void *memory, uint64_t n)
{
    CURRENT(d);
    cudaPointerAttributes a;
    CUdeviceptr base = 0;
    size_t size = 0;
    const cudaError_t err = cudaPointerGetAttributes(&a, memory);
    (void)cudaGetLastError();
    if (err != cudaSuccess || a.device != c->index ||
        (a.type != cudaMemoryTypeDevice && a.type != cudaMemoryTypeManaged))
        return false;
    if (c->driver.range(&base, &size, (CUdeviceptr)memory) != CUDA_SUCCESS) return false;
    const uint64_t before = (CUdeviceptr)memory - base;
    return before <= size && n <= size - before;
}

static const struct ig_dev_ops cuda_ops = {
    start, close_device, alloc,     release,    pin,   unpin,     copy, move,   fill,    mark, wait,
    hash,  hash_wait,    hash_done, after_hash, drain, read_back, join, follow, writable};

static int numa_node(int index)
{
    char bus[32], path[96];
    int node = -1;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess) {
        (void)cudaGetLastError();
        return -1;
    }
    for (char *p = bus; *p; p++)
        if (*p >= 'A' && *p <= 'F') *p = (char)(*p - 'A' + 'a');
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus);
    if (FILE *f = fopen(path, "re")) {
        if (fscanf(f, "%d", &node) != 1) node = -1;
        fclose(f);
    }
    return node;
}

extern "C" ingot_status ig_cuda_open(int index, struct ig_dev **out, ingot_error *e)
{
    cudaDeviceProp prop;
    char label[32];
    int n = 0;
    *out = nullptr;
    snprintf(label, sizeof label, "cuda:%d", index);
    cudaError_t err = cudaGetDeviceCount(&n);
    if (err != cudaSuccess) return ig_cuda_fail(e, label, "cudaGetDeviceCount", err);
    if (index < 0 || index >= n)
        return ig_fail(e, INGOT_ERR_NOT_FOUND, "%s: no such device, there %s %d", label,
                       n == 1 ? "is" : "are", n);
    err = cudaGetDeviceProperties(&prop, index);
    if (err != cudaSuccess) return ig_cuda_fail(e, label, "cudaGetDeviceProperties", err);
    struct cuda_device *c = new (std::nothrow) cuda_device();
    if (!c) return ig_no_memory(e);
    c->base.ops = &cuda_ops;
    c->index = index;
    c->major = prop.major;
    c->minor = prop.minor;
    snprintf(c->base.info.name, sizeof c->base.info.name, "%s", label);
    snprintf(c->base.info.model, sizeof c->base.info.model, "%s", prop.name);
    c->base.info.numa = numa_node(index);
    take_secret(&c->secret);
    ingot_status status = ig_driver_load(&c->driver, e);
    if (status == INGOT_OK && c->driver.device_get(&c->handle, index) != CUDA_SUCCESS)
        status = ig_fail(e, INGOT_ERR_IO, "%s: cuDeviceGet failed", label);
    if (status != INGOT_OK) {
        delete c;
        return status;
    }
    *out = &c->base;
    return INGOT_OK;
}
