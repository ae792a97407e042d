/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale links: what only the bytes of a scale can tell.  NVFP4 has one byte of scale for
 * every 16 weights, so bytes are counted first and judged by their 256 possible values.
 */
#include "convert/scales_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Value of one code; only its being NaN, infinite, <= 0 or 1 matters. */
static float code_value(uint8_t b, uint32_t dtype, uint32_t encoding)
{
    const float sign = b & 0x80 ? -1.0f : 1.0f;

    if (encoding == IG_ENC_E8M0) return b == 0xff ? NAN : b == 127 ? 1.0f : 2.0f;
    switch (dtype) {
    case IG_F8_E4M3: /* no infinity; S.1111.111 is NaN */
        if ((b & 0x7f) == 0x7f) return NAN;
        return (b & 0x7f) == 0 ? 0.0f : sign * ((b & 0x7f) == 0x38 ? 1.0f : 2.0f);
    case IG_F8_E5M2:
        if ((b & 0x7f) > 0x7c) return NAN;
        if ((b & 0x7f) == 0x7c) return INFINITY;
        return (b & 0x7f) == 0 ? 0.0f : sign * ((b & 0x7f) == 0x3c ? 1.0f : 2.0f);
    case IG_F8_E4M3FNUZ:
    case IG_F8_E5M2FNUZ: /* bias one higher; 0x80 is NaN */
        if (b == 0x80) return NAN;
        return b == 0 ? 0.0f : sign * ((b & 0x7f) == 0x40 ? 1.0f : 2.0f);
    case IG_I8:
        return (int8_t)b;
    default:
        return b;
    }
}

static void judge(struct ig_scale_stats *stats, double v, uint64_t index, uint64_t times)
{
    const bool bad = !(v > 0) || isinf(v);

    if (bad && stats->nonfinite + stats->nonpositive == 0) stats->first_bad = index;
    if (!isfinite(v)) {
        stats->nonfinite += times;
    } else if (v <= 0) {
        stats->nonpositive += times;
    } else if (v == 1) {
        stats->ones += times;
    }
}

static void judge_bytes(const uint8_t *p, uint64_t n, uint32_t dtype, uint32_t encoding,
                        struct ig_scale_stats *stats)
{
    uint64_t count[256] = {0}, first = UINT64_MAX;
    float value[256];
    const bool clean = stats->nonfinite + stats->nonpositive == 0;
    bool bad = false;

    for (uint64_t i = 0; i < n; i++) count[p[i]]++;
    for (unsigned b = 0; b < 256; b++) {
        value[b] = code_value((uint8_t)b, dtype, encoding);
        bad |= count[b] && (!(value[b] > 0) || isinf(value[b]));
    }
    for (uint64_t i = 0; bad && clean && first == UINT64_MAX && i < n; i++) {
        if (!(value[p[i]] > 0) || isinf(value[p[i]])) first = i;
    }
    for (unsigned b = 0; b < 256; b++) {
        if (count[b]) judge(stats, (double)value[b], stats->n + first, count[b]);
    }
}

static float half_value(uint16_t h)
{
    const uint16_t magnitude = h & 0x7fff;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;

    if (magnitude > 0x7c00) return NAN;
    if (magnitude == 0x7c00) return sign * INFINITY;
    return magnitude == 0 ? 0.0f : sign * (magnitude == 0x3c00 ? 1.0f : 2.0f);
}

static double element(const uint8_t *p, uint32_t dtype)
{
    uint32_t word;
    uint64_t wide;
    float f;
    double d;

    switch (dtype) {
    case IG_F16:
        return (double)half_value(ig_get16(p));
    case IG_BF16:
        word = (uint32_t)ig_get16(p) << 16;
        memcpy(&f, &word, sizeof(f));
        return (double)f;
    case IG_F32:
        word = ig_get32(p);
        memcpy(&f, &word, sizeof(f));
        return (double)f;
    default:
        wide = ig_get64(p);
        memcpy(&d, &wide, sizeof(d));
        return d;
    }
}

ingot_status ig_scales_values(const void *bytes, uint32_t dtype, uint64_t n, uint32_t encoding,
                              struct ig_scale_stats *stats)
{
    const uint8_t *p = bytes;

    switch (dtype) {
    case IG_F8_E4M3:
    case IG_F8_E5M2:
    case IG_F8_E4M3FNUZ:
    case IG_F8_E5M2FNUZ:
    case IG_U8:
    case IG_I8:
        judge_bytes(p, n, dtype, encoding, stats);
        break;
    case IG_F8_E8M0:
        judge_bytes(p, n, dtype, IG_ENC_E8M0, stats);
        break;
    case IG_F16:
    case IG_BF16:
    case IG_F32:
    case IG_F64: {
        const size_t size = ig_dtypes[dtype].bits / 8;
        for (uint64_t i = 0; i < n; i++)
            judge(stats, element(p + i * size, dtype), stats->n + i, 1);
        break;
    }
    default:
        return INGOT_ERR_UNSUPPORTED;
    }
    stats->n += n;
    return INGOT_OK;
}

bool ig_scales_wants_values(const struct ig_link *link)
{
    return link->role != IG_ROLE_ZERO_POINT && link->role != IG_ROLE_BIAS;
}

static ingot_status add(struct ig_scales *s, uint32_t row, char *text, ingot_error *e)
{
    struct ig_finding *p = NULL;

    if (text) p = reallocarray(s->findings, (size_t)s->nfindings + 1, sizeof(*p));
    if (!p) {
        free(text);
        return ig_no_memory(e);
    }
    s->findings = p;
    s->findings[s->nfindings++] = (struct ig_finding){.text = text, .row = row};
    return INGOT_OK;
}

ingot_status ig_scales_judge(struct ig_scales *scales, const struct ig_row *rows, uint32_t nrows,
                             const struct ig_scale_stats *stats, ingot_error *e)
{
    ingot_status status = INGOT_OK;
    uint32_t caches = 0, ones = 0, first = IG_NONE;
    uint8_t *seen = ig_array(nrows, 1);

    if (!seen) return ig_no_memory(e);
    for (uint32_t i = 0; i < scales->nlinks; i++) {
        const struct ig_link *l = &scales->links[i];
        const struct ig_scale_stats *v = &stats[l->object];
        const struct ig_row *r = &rows[l->object];
        if (seen[l->object] || v->n == 0 || !ig_scales_wants_values(l)) continue;
        seen[l->object] = 1;
        if (l->role == IG_ROLE_KV_K || l->role == IG_ROLE_KV_V) {
            caches++;
            ones += v->ones == v->n;
            if (first == IG_NONE) first = l->object;
        }
        if (v->nonfinite + v->nonpositive == 0 || scales->nfindings >= IG_SC_MAX_FINDINGS) continue;
        status = add(scales, l->object,
                     ig_format("%s: %ju of %ju scales are zero or negative, %ju not finite; the "
                               "first is element %ju",
                               ig_esc(r->name, r->name_len).s, (uintmax_t)v->nonpositive,
                               (uintmax_t)v->n, (uintmax_t)v->nonfinite, (uintmax_t)v->first_bad),
                     e);
        if (status != INGOT_OK) goto out;
    }
    if (caches && caches == ones) {
        status = add(scales, first,
                     ig_format("all %ju scales of the KV cache are exactly 1: clamped, or never "
                               "calibrated",
                               (uintmax_t)caches),
                     e);
    }
out:
    free(seen);
    return status;
}
