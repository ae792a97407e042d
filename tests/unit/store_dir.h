/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of its own, for one test. */
#ifndef INGOT_STORE_DIR_H
#define INGOT_STORE_DIR_H

#include "store/store.h"

#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int store_dir_setup(void **state)
{
    ingot_error e;
    const char *tmp = getenv("TMPDIR");
    char *root = ig_format("%s/ingot-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    struct ig_store *s = calloc(1, sizeof *s);
    const bool open = root && s && mkdtemp(root) && ig_store_open(root, true, s, &e) == INGOT_OK;
    free(root);
    *state = s;
    return open ? 0 : -1;
}

static inline int store_dir_remove(const char *path, const struct stat *st, int type,
                                   struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline int store_dir_teardown(void **state)
{
    struct ig_store *s = *state;
    const int rc = nftw(s->root, store_dir_remove, 8, FTW_DEPTH | FTW_PHYS);
    ig_store_close(s);
    free(s);
    return rc;
}

#define store_test(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

#endif
