/* SPDX-License-Identifier: Apache-2.0 */
/* order: comparing places; see ig_place in convert.h and ingot-pack(5), "Order". */
#ifndef INGOT_ORDER_H
#define INGOT_ORDER_H

#include "convert/convert.h"

/* Below zero, zero or above it as tensor `an` of place `a` stands before, with or behind `bn`.
 * Zero only for equal names.  Members of one possible group come out side by side. */
int ig_place_cmp(const struct ig_place *a, const char *an, size_t al, const struct ig_place *b,
                 const char *bn, size_t bl);

/* May the two be parts of one view: both have one, and it is the same name? */
bool ig_place_same_view(const struct ig_place *a, const char *an, const struct ig_place *b,
                        const char *bn);

#endif
