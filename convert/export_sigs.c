/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/export_place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define BUNDLE_MOST ((size_t)64 << 20)

static ingot_status copy(const char *pack, const char *dir, const char *name, ingot_error *e)
{
    char *text = NULL, *to = ig_format("%s/%s", dir, name), *from = ig_sigs_path(pack, name);
    size_t n = 0;
    ingot_status status =
        to && from ? ig_read_file(from, BUNDLE_MOST, &text, &n, e) : ig_no_memory(e);
    if (status == INGOT_OK) status = ig_write_new(to, 0666, text, n, e);
    free(text), free(from), free(to);
    return status;
}

ingot_status ig_export_sigs(const char *pack, const char *dir, size_t *n, char **made,
                            ingot_error *e)
{
    char **names = NULL;
    *made = NULL;
    return_if_error(ig_sigs_list(pack, &names, n, e));
    if (!*n) return INGOT_OK;
    char *target = ig_format("%s.sigs", dir), *hidden = target ? ig_export_sibling(target) : NULL;
    ingot_status status = hidden ? ig_export_absent(target, true, e) : ig_no_memory(e);
    const bool begun = status == INGOT_OK && mkdir(hidden, 0777) == 0;
    if (status == INGOT_OK && !begun)
        status = ig_fail_sys(e, errno, "%s: cannot create folder", hidden);
    for (size_t i = 0; i < *n && status == INGOT_OK; i++) status = copy(pack, hidden, names[i], e);
    if (status == INGOT_OK) status = ig_export_flush(hidden, e);
    if (status == INGOT_OK) status = ig_export_move(hidden, target, e);
    if (status != INGOT_OK && begun) ig_export_remove(hidden);
    if (status == INGOT_OK) *made = target, target = NULL;
    ig_sigs_free(names, *n);
    free(hidden), free(target);
    return status;
}
