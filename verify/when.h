/* SPDX-License-Identifier: Apache-2.0 */
/* when: points in time as people and records write them. */
#ifndef INGOT_WHEN_H
#define INGOT_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* "2026-11-30T12:00:00Z", "2026-11-30", or seconds since 1970 after an '@'. */
bool ig_when_read(const char *s, int64_t *out);
/* "2026-11-30T12:00:00Z"; "an unknown time" where there is no such. */
void ig_when_text(int64_t t, char out[32]);

#endif
