/* SPDX-License-Identifier: Apache-2.0 */
/* load_receipt: what a load puts into a receipt. */
#ifndef INGOT_LOAD_RECEIPT_H
#define INGOT_LOAD_RECEIPT_H

#include "loader/load.h"
#include "verify/receipt.h"

/* Model, verification, settings and device of a load that has ended.  Called again, the last one
 * counts. */
ingot_status ig_load_receipt(struct ig_receipt *r, const char *model, const struct ingot_load *l,
                             ingot_error *e);

#endif
