/* SPDX-License-Identifier: Apache-2.0 */
/* export_place: where export writes until all is there. */
#ifndef INGOT_EXPORT_PLACE_H
#define INGOT_EXPORT_PLACE_H

#include "convert/convert.h"

/* A hidden sibling of `target`: ".NAME.partial-<random>"; caller frees. */
char *ig_export_sibling(const char *target);
/* INGOT_ERR_EXISTS unless there is nothing there, or (folder) an empty folder, which goes. */
ingot_status ig_export_absent(const char *target, bool folder, ingot_error *e);
ingot_status ig_export_move(const char *from, const char *to, ingot_error *e);
ingot_status ig_export_flush(const char *dir, ingot_error *e); /* its folders, to disk */
void ig_export_remove(const char *dir);                        /* with all that is in it */
/* export_sigs.c: the bundles beside the pack, as files of DIR.sigs; inside of DIR they would break
 * each other.  *made: the new folder, for the caller to free, and to remove if DIR fails after it;
 * none: NULL. */
ingot_status ig_export_sigs(const char *pack, const char *dir, size_t *n, char **made,
                            ingot_error *e);

#endif
