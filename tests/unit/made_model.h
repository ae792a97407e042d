/* SPDX-License-Identifier: Apache-2.0 */
/* A model folder made tensor by tensor, and the pack that convert makes of it. */
#ifndef INGOT_MADE_MODEL_H
#define INGOT_MADE_MODEL_H

#include "convert/convert.h"
#include "store/pack_private.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct made_model {
    char *header, *data; /* of the only safetensors file */
    size_t header_len, data_len;
    FILE *header_file, *data_file;
    unsigned seed; /* set it back to give two tensors the same bytes */
};

static inline void made_start(struct made_model *m)
{
    memset(m, 0, sizeof *m);
    m->header_file = open_memstream(&m->header, &m->header_len);
    m->data_file = open_memstream(&m->data, &m->data_len);
    assert_non_null(m->header_file);
    assert_non_null(m->data_file);
}

/* rank dimensions follow.  The bytes are small numbers in every dtype, and never zeros alone. */
static inline void made_add_shape(struct made_model *m, const char *name, int dtype, unsigned rank,
                                  const uint64_t *shape)
{
    uint64_t bytes;
    unsigned x = ++m->seed * 2654435761u;
    assert_true(ig_tensor_bytes((uint32_t)dtype, rank, shape, &bytes));
    const long begin = ftell(m->data_file);
    for (uint64_t i = 0; i < bytes; i++, x = x * 1664525u + 1013904223u)
        fputc((int)(0x30 + (x >> 28)), m->data_file);
    fprintf(m->header_file, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
            begin || m->seed > 1 ? "," : "{", name, ig_dtypes[dtype].name);
    for (unsigned i = 0; i < rank; i++)
        fprintf(m->header_file, "%s%llu", i ? "," : "", (unsigned long long)shape[i]);
    fprintf(m->header_file, "],\"data_offsets\":[%ld,%llu]}", begin,
            (unsigned long long)begin + bytes);
}

static inline void made_write(const char *folder, const char *name, const void *first, size_t n,
                              const void *then, size_t more)
{
    char *path = ig_format("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(first, 1, n, f), n);
    assert_int_equal(fwrite(then, 1, more, f), more);
    assert_int_equal(fclose(f), 0);
    free(path);
}

/* Convert into the store and open the pack there; config NULL: there is none.  m is over. */
static inline void made_open(struct made_model *m, const struct ig_store *s, const char *config,
                             struct ig_pack *p)
{
    ingot_error e = {0};
    json_t *report = NULL;
    uint8_t digest[IG_HASH];
    char folder[] = "/tmp/ingot-model-XXXXXX";
    assert_non_null(mkdtemp(folder));
    fputc('}', m->header_file);
    fclose(m->header_file);
    fclose(m->data_file);
    char *file = malloc(8 + m->header_len);
    assert_non_null(file);
    ig_put64(file, m->header_len);
    memcpy(file + 8, m->header, m->header_len);
    made_write(folder, "model.safetensors", file, 8 + m->header_len, m->data, m->data_len);
    if (config) made_write(folder, "config.json", config, strlen(config), "", 0);
    const struct ig_convert c = {.source = folder,
                                 .name = "made",
                                 .dtype = -1,
                                 .replace = true,
                                 .keep_unindexed = true,
                                 .no_config = !config,
                                 .rules = IG_RULES,
                                 .max_header = IG_ST_MAX_HEADER,
                                 .threads = 1};
    if (ig_convert(s, &c, &report, &e) != INGOT_OK) fail_msg("%s", e.message);
    const char *text = json_string_value(json_object_get(report, "digest"));
    assert_true(ig_unhex(digest, IG_HASH, text + strlen("fsverity-sha256:")));
    char *path = ig_store_pack_path(s, digest);
    if (ig_pack_open(path, p, &e) != INGOT_OK) fail_msg("%s", e.message);
    free(path);
    json_decref(report);
    static const char *const names[] = {"model.safetensors", "config.json"};
    for (size_t i = 0; i < 2; i++) {
        char *at = ig_format("%s/%s", folder, names[i]);
        unlink(at);
        free(at);
    }
    assert_int_equal(rmdir(folder), 0);
    free(file);
    free(m->header);
    free(m->data);
}

#endif
