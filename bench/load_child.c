/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of their own: a CUDA context is made once in each, and limits hold for one alone. */
#include "bench/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_all(int fd, void *to, size_t n)
{
    uint8_t *p = to;
    while (n) {
        const ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) break;
        p += k;
        n -= (size_t)k;
    }
}

void bench_child(void (*fn)(const void *arg, void *result), const void *arg, void *result,
                 size_t bytes)
{
    int ends[2], status = 0;
    memset(result, 0, bytes);
    fflush(NULL);
    if (pipe(ends) != 0) bench_die("pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0) bench_die("fork: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        fn(arg, result);
        _exit(write(ends[1], result, bytes) == (ssize_t)bytes ? 0 : 1);
    }
    close(ends[1]);
    read_all(ends[0], result, bytes);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    char *error = result;
    if (status != 0 && !*error) snprintf(error, 256, "the process died (status %d)", status);
}

/* The driver's own calls: the runtime's would also make what belongs into the figure. */
double bench_context(const char *device)
{
    int handle, index = 0;
    void *context = NULL;
    if (strncmp(device, "cuda", 4) != 0) return 0;
    if (device[4] == ':') index = atoi(device + 5);
    const double started = bench_now();
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) bench_die("%s", dlerror());
    int (*init)(unsigned) = NULL, (*get)(int *, int) = NULL, (*retain)(void **, int) = NULL;
    *(void **)&init = dlsym(lib, "cuInit");
    *(void **)&get = dlsym(lib, "cuDeviceGet");
    *(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
    if (!init || !get || !retain || init(0) || get(&handle, index) || retain(&context, handle))
        bench_die("%s: no context", device);
    return bench_now() - started;
}
