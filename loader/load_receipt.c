/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/load_receipt.h"

#include "loader/loader.h"

#include <stdlib.h>
#include <string.h>

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static const char *verdict_of(const struct ingot_load *l)
{
    if (l->status != INGOT_OK) return "failed";
    return l->level == IG_LOAD_FULL ? "proven" : l->level == IG_LOAD_FAST ? "intact" : "unchecked";
}

static json_t *verification(const struct ingot_load *l)
{
    static const char *const levels[] = {
        [IG_LOAD_FULL] = "full", [IG_LOAD_FAST] = "fast", [IG_LOAD_OFF] = "off"};
    const bool full = l->level == IG_LOAD_FULL;
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:s*}", "level", levels[l->level], "verdict",
                     verdict_of(l), "bytes_expected", count(l->stats.placed), "bytes_proven",
                     count(full ? l->stats.proven : 0), "tensors", count(l->stats.tensors),
                     "tensors_proven", count(full ? l->stats.tensors_proven : 0), "error",
                     l->status == INGOT_OK ? NULL : ingot_status_name(l->status));
}

/* What part of the model it is, and nothing of how it was brought in: that changes no number. */
static json_t *settings(const struct ingot_load *l)
{
    json_t *o = json_object();
    if (l->options.ranks)
        json_object_set_new(o, "rank", json_sprintf("%u/%u", l->options.rank, l->options.ranks));
    return o;
}

/* The version that the kernel module gives, where there is one. */
static json_t *driver(const struct ig_dev_info *info)
{
    char *text = NULL;
    size_t n = 0;
    if (info->host || ig_read_file("/sys/module/nvidia/version", 256, &text, &n, NULL) != INGOT_OK)
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    json_t *v = json_string(ig_esc(text, strlen(text)).s);
    free(text);
    return v;
}

static json_t *device(const struct ingot_load *l)
{
    const struct ig_dev_info *info = &l->loader->dev->info;
    json_t *o = json_pack("{s:s,s:s,s:o*}", "name", info->name, "model", info->model, "driver",
                          driver(info));
    struct ig_devices d;
    if (!info->host && ig_devices_list(&d, NULL) == INGOT_OK) {
        json_object_set_new(o, "cuda_driver", json_integer(d.driver));
        json_object_set_new(o, "cuda_runtime", json_integer(d.runtime));
        ig_devices_free(&d);
    }
    return o;
}

ingot_status ig_load_receipt(struct ig_receipt *r, const char *model, const struct ingot_load *l,
                             ingot_error *e)
{
    const struct ingot_pack *p = l->pack;
    return_if_error(
        ig_receipt_model(r, model, p->has_digest ? p->digest : NULL, p->pack.content, e));
    return_if_error(ig_receipt_set(r, "verification", verification(l), e));
    return_if_error(ig_receipt_set(r, "settings", settings(l), e));
    return ig_receipt_set(r, "device", device(l), e);
}
