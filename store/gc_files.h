/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INGOT_GC_FILES_H
#define INGOT_GC_FILES_H

#include "store/gc.h"

bool ig_gc_is_young(int64_t mtime, int64_t now);
/* What of packs/ belongs to a digest, and whether it goes; sums up the bytes of each pack. */
ingot_status ig_gc_list_files(const struct ig_store *s, bool all_ages, struct ig_gc *g,
                              ingot_error *e);

#endif
