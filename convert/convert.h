/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert: from safetensors files to a pack and back.  The safetensors reader is
 * the only one in the project; the scale rules and the casts are pure functions.
 */
#ifndef INGOT_CONVERT_H
#define INGOT_CONVERT_H

#include "store/store.h"

/* safetensors.c: one strict, linear-time reader of the header.
 * https://github.com/huggingface/safetensors#format */
#define IG_ST_MAX_HEADER 100000000ull /* the reference's cap; --max-header raises it */

struct ig_st_tensor {
    const char *name; /* decoded, not NUL-terminated; lives as long as the ig_st */
    uint32_t name_len;
    uint16_t dtype;
    uint16_t rank;
    const uint64_t *shape;
    uint64_t begin, end; /* inside the data section, which starts at 8 + header_len */
};
struct ig_st {
    char *header;        /* the first 8 + header_len bytes of the file, verbatim */
    uint64_t header_len; /* N */
    uint64_t file_size;
    struct ig_st_tensor *tensors; /* ascending by (begin, end, name) */
    size_t count;
    void *arena[2]; /* private: decoded names, shapes */
};
/* Read and check the header of a file of file_size bytes.  Accepts only a file whose
 * tensors cover the data section exactly, without overlap or hole, each of the size
 * that its dtype and shape say.  Memory: the header and at most 128 bytes a tensor. */
ingot_status ig_st_read(int fd, const char *path, uint64_t file_size, uint64_t max_header,
                        struct ig_st *out, ingot_error *e);
/* The same for bytes already in memory (a pack's header blob); takes header on success. */
ingot_status ig_st_parse(char *header, uint64_t header_len, const char *path, uint64_t file_size,
                         struct ig_st *out, ingot_error *e);
void ig_st_free(struct ig_st *st);

/* scales.c: which tensor is the scale of which, and how it is to be applied.
 * Facts per producer are in ingot-pack(5), "Scales by producer". */
struct ig_scales_in {
    const struct ig_row *rows; /* ascending by name (memcmp); no views, no shadows */
    uint32_t nrows;
    const json_t *config;                /* config.json, or NULL */
    const json_t *hf_quant;              /* hf_quant_config.json, or NULL */
    uint32_t config_blob, hf_quant_blob; /* their blob indexes, or IG_NONE */
};
struct ig_finding { /* one line of "reported, refused by the engine" */
    char *text;
    uint32_t row; /* or IG_NONE */
};
struct ig_scales {
    struct ig_link *links; /* ascending by (subject, role, stage, object); module links last,
                              by (module, role, stage, object); strings owned by this struct */
    uint32_t nlinks;
    struct ig_finding *findings;
    uint32_t nfindings;
    char *method;  /* "fp8", "compressed-tensors", "gptq", ...: as declared; NULL when none is */
    bool stale;    /* a method is declared, yet no tensor is quantised and none is a scale */
    void *strings; /* private */
};
ingot_status ig_scales_find(const struct ig_scales_in *in, struct ig_scales *out, ingot_error *e);
void ig_scales_free(struct ig_scales *s);

/* cast.c: F16, BF16 and F32 into each other, as DESIGN section 5 rounds. */
struct ig_cast_counts {
    uint64_t rounded;   /* finite, and the result differs in value */
    uint64_t subnormal; /* non-zero results that are subnormal in the target */
    uint64_t vanished;  /* finite and non-zero, became zero */
    uint64_t overflow;  /* finite, would become Inf (saturated when asked) */
};
/* Convert n elements; src and dst may be at any byte alignment and must not overlap.
 * Nearest even, subnormals kept; NaN keeps its sign and top payload bits, quieted; Inf stays.
 * saturate: overflow gives the largest finite value of that sign.  Adds to *counts; sets
 * *first_overflow (index) when overflow occurs and it is UINT64_MAX before. */
void ig_cast(void *dst, uint32_t to, const void *src, uint32_t from, size_t n, bool saturate,
             struct ig_cast_counts *counts, uint64_t *first_overflow);
/* Names of the code paths this CPU can run ("c", "avx2", ...), NULL-ended, fastest last. */
const char *const *ig_cast_paths(void);
/* The same on one named path; for tests and benches.  false: no such path here. */
bool ig_cast_on(const char *path, void *dst, uint32_t to, const void *src, uint32_t from, size_t n,
                bool saturate, struct ig_cast_counts *counts, uint64_t *first_overflow);

/* order.c: where a tensor stands in the weights, and with whom it forms a group.  The one table
 * of `rules`; ingot-pack(5), "Order". */
#define IG_RULES 1
struct ig_place {
    uint32_t stage; /* 0 embedding, 1 layers, 2 final norm, 3 other, 4 head */
    uint64_t layer;
    uint32_t slot;
    uint32_t kind;      /* 0 weight, 1 bias, 2 scale and the like */
    const char *suffix; /* what follows the module: "weight", "weight_scale_inv", ... */
    uint32_t suffix_len;
    uint64_t expert;     /* within a slot; 0 for dense */
    uint32_t member;     /* 0 q, 1 k, 2 v; 0 gate, 1 up; ... */
    uint32_t members;    /* a full group has this many (times experts); 0: never grouped */
    bool experts;        /* expert group: all experts' members form one view */
    const char *view;    /* module name the group's view carries: "qkv_proj"; or NULL */
    uint32_t prefix_len; /* bytes of the tensor name before the member module's name */
};
void ig_place(const char *name, size_t len, uint32_t rules, struct ig_place *out);

/* convert.c: the whole job. */
struct ig_convert {
    const char *source; /* folder, snapshot, models-- root, one file, or a MODEL of the store */
    const char *name;   /* NULL: the hub's org/name or the folder's */
    int dtype;          /* IG_F16, IG_BF16, IG_F32, or -1 to keep the bytes */
    bool saturate, replace, keep_unindexed, accept_stale_quant, no_config, fsverity;
    uint32_t rules;
    uint64_t max_header;
    unsigned threads; /* 0: ig_cpus() */
    struct ig_progress progress;
    uint8_t *digest; /* not NULL: nothing is kept or named, only the new pack's digest set */
};
/* *report: a JSON object that describes what was done; caller decrefs; NULL with `digest`. */
ingot_status ig_convert(const struct ig_store *s, const struct ig_convert *c, json_t **report,
                        ingot_error *e);

/* export.c: the original files into a new folder; or one merged safetensors file. */
struct ig_export {
    const char *folder;      /* or NULL */
    const char *safetensors; /* or NULL */
    unsigned threads;
    struct ig_progress progress;
};
ingot_status ig_export(const struct ig_pack *p, const struct ig_export *x, json_t **report,
                       ingot_error *e);

#endif
