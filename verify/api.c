/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of ingot.h on whole models, on top of what the commands use. */
#include "store/pack_api.h"
#include "verify/verify.h"

#include <stdlib.h>
#include <string.h>

/* Callers may pass no error; what is below them may not, for it tells its status through one. */
#define WITH_ERROR(e)    \
    ingot_error ignored; \
    if (!(e)) (e) = &ignored

void ingot_free(void *memory)
{
    free(memory);
}

/* Turn a report into text, or drop it; consumes the reference. */
static ingot_status give_report(json_t *report, char **out, ingot_error *e)
{
    size_t n;
    const ingot_status status = out ? ig_json_dump(report, out, &n, e) : INGOT_OK;
    json_decref(report);
    return status;
}

ingot_status ingot_convert(const char *store, const char *source, const char *name, char **report,
                           ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *made = NULL;
    const struct ig_convert c = {.source = source,
                                 .name = name,
                                 .dtype = -1,
                                 .rules = IG_RULES,
                                 .max_header = IG_ST_MAX_HEADER};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_convert(&s, &c, &made, e);
    if (status == INGOT_OK) status = give_report(made, report, e);
    ig_store_close(&s);
    return status;
}

ingot_status ingot_verify(const char *store, const char *model, char **report, ingot_error *e)
{
    WITH_ERROR(e);
    struct ig_store s;
    json_t *result = NULL;
    const struct ig_verify v = {.level = IG_LEVEL_FULL};
    return_if_error(ig_store_open(store, false, &s, e));
    ingot_status status = ig_verify_store(&s, model, &v, &result, e);
    if (status == INGOT_OK) {
        const bool ok = json_is_true(json_object_get(result, "ok"));
        status = give_report(result, report, e);
        if (status == INGOT_OK && !ok)
            status = ig_fail(e, INGOT_ERR_CHECK, "%s: verification failed",
                             ig_esc(model, strlen(model)).s);
    }
    ig_store_close(&s);
    return status;
}

ingot_status ingot_export(const char *store, const char *model, const char *folder, ingot_error *e)
{
    WITH_ERROR(e);
    ingot_pack *p = NULL;
    json_t *report = NULL;
    const struct ig_export x = {.folder = folder};
    ingot_status status = ig_pack_api_open(store, model, false, &p, e);
    if (status == INGOT_OK) status = ig_export(&p->pack, &x, &report, e);
    json_decref(report);
    ingot_pack_close(p);
    return status;
}
