/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loader/loader.h"

#include <stdlib.h>

ingot_status ig_devices_list(struct ig_devices *out, ingot_error *e)
{
    *out = (struct ig_devices){0};
#ifdef HAVE_CUDA
    const char *why = "";
    out->built = true;
    const int err = ig_cuda_devices(out, &why);
    if (err == 0) return INGOT_OK;
    ig_fail(e, INGOT_ERR_IO,
            "CUDA: cannot list devices: %s (%d); the driver knows CUDA %d.%d, this "
            "program was built with %d.%d",
            why, err, out->driver / 1000, out->driver % 1000 / 10, out->runtime / 1000,
            out->runtime % 1000 / 10);
    ig_devices_free(out);
    return INGOT_ERR_IO;
#else
    (void)e;
    return INGOT_OK;
#endif
}

void ig_devices_free(struct ig_devices *d)
{
    free(d->list);
    d->list = NULL;
    d->n = 0;
}
