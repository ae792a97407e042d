/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales, inside.  Four steps, a file or two each: scales_config.c reads what the
 * configs declare into one shape for every producer; scales_match.c finds the subject
 * of each scale by its name; scales_rules.c and scales_shape.c decide what the link
 * says, from declaration, dtypes and shapes; scales_check.c looks at what is missing.
 * A failed allocation sets `oom` and work goes on with harmless values; ig_scales_find
 * looks at it at the end of each step.
 */
#ifndef INGOT_SCALES_PRIVATE_H
#define INGOT_SCALES_PRIVATE_H

#include "convert/convert.h"

/* Who wrote the checkpoint, as quant_method or the presence of hf_quant_config.json says. */
enum ig_sc_family {
    IG_FAM_NONE,     /* nothing declared */
    IG_FAM_FP8,      /* AutoFP8, vLLM fp8, DeepSeek, finegrained_fp8 */
    IG_FAM_CT,       /* compressed-tensors */
    IG_FAM_MODELOPT, /* NVIDIA ModelOpt */
    IG_FAM_FBGEMM,
    IG_FAM_MXFP4, /* gpt-oss */
    IG_FAM_QUARK,
    IG_FAM_OPAQUE, /* gptq, awq, bitsandbytes, ...: stored, no links */
    IG_FAM_OTHER   /* a method that is not known */
};

enum ig_sc_format {
    IG_FMT_UNKNOWN,
    IG_FMT_FP8,
    IG_FMT_INT8,
    IG_FMT_NVFP4,
    IG_FMT_MXFP4,
    IG_FMT_MXFP8,
    IG_FMT_PACKED_INT /* 4-bit (or other) integers in I32 words */
};

/* What is declared for the weights of one set of modules. */
struct ig_sc_scheme {
    enum ig_sc_format format;
    uint64_t block[2]; /* 0, 0: none declared */
    uint64_t group;    /* 0: none declared */
    uint32_t bits;     /* of a packed integer; 0: not declared */
    /* JSON pointers, or NULL */
    const char *at_weight, *at_block, *at_input, *at_global, *at_output;
};

struct ig_sc_group { /* of compressed-tensors */
    struct ig_sc_scheme scheme;
    const json_t *targets;
};
#define IG_SC_MAX_GROUPS 64
#define IG_SC_MAX_IGNORE 5

/* One file's declaration. */
struct ig_sc_decl {
    const char *file; /* "config.json" */
    uint32_t blob;
    enum ig_sc_family family;
    const char *method;         /* as written, or NULL */
    const char *at_method;      /* pointer of it */
    const char *algo, *at_algo; /* ModelOpt's quant_algo, or NULL */
    struct ig_sc_scheme scheme; /* of all modules, unless there are groups or layers */
    struct ig_sc_group *groups; /* owned */
    uint32_t ngroups;
    const json_t *layers; /* ModelOpt's quantized_layers, or NULL */
    const char *at_layers;
    bool ue8m0;            /* scale_fmt ue8m0 */
    const char *at_expert; /* pointer of expert_dtype fp4, or NULL */
    struct {
        bool stated;      /* the key is there, even if null */
        bool declared;    /* a quantised KV cache is declared */
        bool known;       /* in a form whose operation is known */
        bool dynamic;     /* scales are made at run time: none is stored */
        uint32_t logical; /* dtype of the cache's elements */
        const char *at;
    } kv;
    const json_t *ignore[IG_SC_MAX_IGNORE]; /* arrays of module names and patterns */
};

/* What a tensor's name makes of it. */
enum ig_sc_kind {
    IG_KIND_NONE,
    IG_KIND_SCALE,        /* weight_scale */
    IG_KIND_SCALE_INV,    /* <weight>_scale_inv, <weight>_scales_inv */
    IG_KIND_DOT_SCALE,    /* <module>.scale */
    IG_KIND_BLOCK_SCALES, /* <x>_scales beside <x>_blocks */
    IG_KIND_SCALE_2,
    IG_KIND_GLOBAL,
    IG_KIND_ZERO,
    IG_KIND_INPUT,
    IG_KIND_ACT, /* AutoFP8's older name of input_scale */
    IG_KIND_INPUT_GLOBAL,
    IG_KIND_INPUT_ZERO,
    IG_KIND_OUTPUT,
    IG_KIND_FOREIGN, /* looks like a scale; no producer we know writes it */
    /* From here on the subject is a module. */
    IG_KIND_KV_K,
    IG_KIND_KV_V,
    IG_KIND_KV_BOTH,
    IG_KIND_Q,
    IG_KIND_PROB,
    IG_KIND_KV_ZERO,
    IG_KIND_KV_BIAS
};

struct ig_sc_match {
    enum ig_sc_kind kind;
    uint32_t object;
    uint32_t subject;   /* IG_NONE: a module, or nothing found */
    const char *module; /* of the subject; inside a row's name */
    uint32_t module_len;
    bool shifted; /* a zero point comes first in the chain */
};

/* Why an operation is unknown. The second group is reported once, with a count. */
enum ig_sc_why {
    IG_WHY_KNOWN,
    IG_WHY_NAME,  /* the declared producer writes no such tensor */
    IG_WHY_DTYPE, /* the dtypes contradict the declaration */
    IG_WHY_UNDECLARED,
    IG_WHY_METHOD,
    IG_WHY_FORMAT,
    IG_WHY_DISAGREE,
    IG_WHY_OFFSET,
    IG_WHY_PACKED,
    IG_WHY_KV_UNDECLARED,
    IG_WHY_KV_UNKNOWN,
    IG_WHYS
};

/* Bits of ig_scan.flags, one byte a row. */
enum {
    IG_SCF_SCALED = 1,
    IG_SCF_GLOBAL = 2,
    IG_SCF_OBJECT = 4,
    IG_SCF_NAMED = 8,
    IG_SCF_NVFP4 = 16
};

#define IG_SC_MAX_FINDINGS 1000u
#define IG_SC_BUDGET       (1u << 27) /* steps that matching of patterns may take in all */

struct ig_scan {
    const struct ig_scales_in *in;
    struct ig_scales *out;
    struct ig_sc_decl decl[2];   /* config.json, hf_quant_config.json */
    const struct ig_sc_decl *w;  /* that speaks for the weights; never NULL */
    const struct ig_sc_decl *kv; /* that speaks for the KV cache, or NULL */
    uint64_t kv_heads;           /* of config.json, or 0 */
    uint8_t *flags;
    uint32_t cap_links, cap_findings;
    uint64_t unlisted; /* findings past IG_SC_MAX_FINDINGS */
    struct {
        uint32_t count, first;
    } tally[IG_WHYS];
    uint64_t budget;
    struct {
        uint32_t row; /* IG_NONE: empty */
        struct ig_sc_scheme scheme;
    } last[2];           /* the scheme of the weight looked at last, a declaration */
    bool pattern_unread; /* a pattern was not understood, or the budget is spent */
    char *buf;           /* a module's name as a C string */
    size_t buf_cap;
    bool oom;
};

/* scales_store.c: strings, findings and links of the result. */
const char *ig_sc_text(struct ig_scan *s, const char *format, ...) IG_PRINTF(2, 3); /* never NULL */
const char *ig_sc_copy(struct ig_scan *s, const char *text, size_t n);
void ig_sc_finding(struct ig_scan *s, uint32_t row, const char *format, ...) IG_PRINTF(3, 4);
void ig_sc_link(struct ig_scan *s, const struct ig_link *l);
struct ig_sc_shape {
    char s[128];
};
struct ig_sc_shape ig_sc_shape(const struct ig_row *row); /* "[2,3]", cut with ... */
void ig_sc_strings_free(void *strings);

/* scales_config.c and scales_config_*.c */
void ig_sc_config(struct ig_scan *s); /* fills decl, w, kv, kv_heads */
/* JSON helpers: a member that is not null; a string equal to text; an integer in 1..2^31-1, else 0;
 * an array of two of them, else a finding and zeros. */
const json_t *ig_sc_member(const json_t *object, const char *key);
bool ig_sc_is(const json_t *v, const char *text);
uint64_t ig_sc_positive(const json_t *v);
void ig_sc_pair(struct ig_scan *s, const struct ig_sc_decl *d, const json_t *v, const char *at,
                uint64_t out[2]);
/* Where a key of any kind stands; NULL when it is too long to be said. */
const char *ig_sc_pointer_key(struct ig_scan *s, const char *base, const char *key);
/* Where the object that base points to has this (plain) key; otherwise, when it has not. */
const char *ig_sc_pointer_to(struct ig_scan *s, const char *base, const json_t *object,
                             const char *key, const char *otherwise);
void ig_sc_config_ct(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base);
void ig_sc_config_modelopt(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q,
                           const char *base);
void ig_sc_config_hf(struct ig_scan *s, struct ig_sc_decl *d);
void ig_sc_config_ignore(struct ig_sc_decl *d, const json_t *q);
void ig_sc_config_kv(struct ig_scan *s, struct ig_sc_decl *d, const json_t *q, const char *base);
enum ig_sc_format ig_sc_algo(const char *algo, uint64_t group_size, struct ig_sc_scheme *scheme);
/* What d declares for a weight. */
struct ig_sc_scheme ig_sc_scheme_of(struct ig_scan *s, const struct ig_sc_decl *d,
                                    const struct ig_row *w);

/* scales_pattern.c: module names against lists; linear in the name, bounded by the budget. */
int ig_sc_regex(const char *pattern, size_t n, const char *text, size_t len, uint64_t *budget);
int ig_sc_glob(const char *pattern, size_t n, const char *text, size_t len, uint64_t *budget);
bool ig_sc_ignored(struct ig_scan *s, const char *module, size_t len);

/* scales_match.c */
uint32_t ig_sc_find(const struct ig_scan *s, const char *prefix, size_t n, const char *mid,
                    size_t mid_len, const char *tail); /* row of the three joined, or IG_NONE */
struct ig_sc_match ig_sc_match(struct ig_scan *s, uint32_t row);
bool ig_sc_quantised(uint32_t dtype); /* F8 (not E8M0), F6, F4 */
const char *ig_sc_leaf(const struct ig_row *row, size_t *len);
bool ig_sc_leaf_is(const struct ig_row *row, const char *leaf);
size_t ig_sc_module_of(const struct ig_row *weight); /* bytes of its name that are the module's */

/* scales_shape.c */
struct ig_sc_dims { /* of the subject, in logical elements */
    bool matrix;    /* n, k (and lead) mean something */
    bool stacked;   /* a leading dimension of experts */
    uint64_t lead, n, k;
};
struct ig_sc_dims ig_sc_dims(const struct ig_row *w, bool packed, bool blocks);
struct ig_sc_fit {
    uint64_t block[2], group; /* what is declared; zeros: nothing */
    uint64_t guess;           /* a group worth trying when nothing is declared; or 0 */
    bool strict;              /* only the declared block or group fits */
    bool single;              /* only one value (a stack: one for each) fits */
};
/* Granularity of the scale, IG_GRAN_UNKNOWN when its shape fits nothing. */
uint32_t ig_sc_granularity(const struct ig_sc_dims *d, const struct ig_row *o,
                           const struct ig_sc_fit *fit, uint64_t block[2]);
uint32_t ig_sc_head_granularity(const struct ig_row *o, uint64_t heads);

/* scales_rules.c */
void ig_sc_apply(struct ig_scan *s, const struct ig_sc_match *m); /* adds the links of a match */
void ig_sc_apply_module(struct ig_scan *s, const struct ig_sc_match *m); /* scales_rules_kv.c */
void ig_sc_tally(struct ig_scan *s, enum ig_sc_why why, uint32_t row);
/* Is a weight stored as the format stores it? experts: I8 bytes may hold FP4. */
bool ig_sc_weight_fits(const struct ig_row *w, enum ig_sc_format format, bool experts);

/* scales_check.c, scales_check_config.c, scales_check_kv.c */
void ig_sc_check_config(struct ig_scan *s); /* before the links: method, disagreement */
void ig_sc_check(struct ig_scan *s);        /* after: what is missing, stale */
void ig_sc_check_kv(struct ig_scan *s);     /* part of it */

/* scales_value.c: what only the bytes can tell.  Feed a scale's bytes in pieces of whole
 * elements, in order; stats start zeroed. */
struct ig_scale_stats {
    uint64_t n;           /* elements seen */
    uint64_t nonfinite;   /* NaN or infinite */
    uint64_t nonpositive; /* zero or below */
    uint64_t ones;        /* exactly 1 */
    uint64_t first_bad;   /* index of the first of the two above, when there is one */
};
/* bytes: n elements of dtype (the object row's), encoding as in its link.
 * INGOT_ERR_UNSUPPORTED for a dtype that cannot be a scale; stats are then unchanged. */
ingot_status ig_scales_values(const void *bytes, uint32_t dtype, uint64_t n, uint32_t encoding,
                              struct ig_scale_stats *stats);
/* False for links whose object is an offset (zero point, bias): any value is right there. */
bool ig_scales_wants_values(const struct ig_link *link);
/* Add the findings that follow from values.  stats has one entry a row of the rows that
 * ig_scales_find saw; n = 0: not looked at. */
ingot_status ig_scales_judge(struct ig_scales *scales, const struct ig_row *rows, uint32_t nrows,
                             const struct ig_scale_stats *stats, ingot_error *e);

/* scales_file.c: the same for scales that lie in an open pack. */
struct ig_scales_file {
    const struct ig_row *rows; /* those that the links speak of */
    uint32_t nrows;
    int fd;
    const char *path;
    uint64_t (*pos)(const void *ctx, uint32_t row); /* file offset of a row */
    const void *ctx;
};
ingot_status ig_scales_judge_file(struct ig_scales *s, const struct ig_scales_file *f,
                                  ingot_error *e);

#endif
