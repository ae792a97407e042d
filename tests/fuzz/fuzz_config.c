/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the JSON files of a checkpoint.  The first byte chooses what the rest is:
 * config.json ('0'), hf_quant_config.json ('1'), model.safetensors.index.json ('2'), or the names
 * of weight files, a line each, of a folder without index ('3').  The configs are read beside
 * tensors of every producer; what a link says must be in range, and where it says it is declared
 * there is something.
 */
#include "convert/scales_private.h"
#include "convert/source.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>

enum { CONFIG_BLOB, HF_BLOB, BLOBS };

static const struct {
    const char *name;
    uint32_t dtype, rank;
    uint64_t shape[4];
} tensors[] = {
    {"a.scale", IG_F8_E8M0, 2, {64, 32}},
    {"a.weight", IG_F8_E4M3, 2, {8192, 4096}},
    {"g.qweight", IG_I32, 2, {32, 64}},
    {"lm_head.weight", IG_BF16, 2, {300, 260}},
    {"m.layers.0.mlp.experts.down_proj", IG_F8_E4M3, 3, {4, 256, 128}},
    {"m.layers.0.mlp.experts.down_proj_scales_inv", IG_F32, 3, {4, 2, 1}},
    {"m.layers.0.mlp.experts.gate_up_proj_blocks", IG_U8, 4, {4, 96, 3, 16}},
    {"m.layers.0.mlp.experts.gate_up_proj_scales", IG_U8, 3, {4, 96, 3}},
    {"m.layers.0.self_attn.k_proj.weight", IG_BF16, 2, {64, 128}},
    {"m.layers.0.self_attn.k_scale", IG_BF16, 3, {4, 1, 1}},
    {"m.layers.0.self_attn.k_zero_point", IG_F8_E4M3, 1, {1}},
    {"m.layers.0.self_attn.q_scale", IG_BF16, 3, {8, 1, 1}},
    {"m.layers.0.self_attn.v_scale", IG_F32, 0, {0}},
    {"m.layers.1.self_attn.k_proj.output_scale", IG_F32, 0, {0}},
    {"m.layers.1.self_attn.k_proj.weight", IG_BF16, 2, {64, 128}},
    {"m.layers.2.self_attn.kv_scale", IG_F32, 1, {1}},
    {"m.layers.2.self_attn.qkv_proj.weight", IG_BF16, 2, {64, 128}},
    {"m.layers.3.mlp.up_proj.weight", IG_F8_E4M3, 2, {8, 8}},
    {"n.input_scale", IG_F32, 0, {0}},
    {"n.weight", IG_U8, 2, {64, 128}},
    {"n.weight_scale", IG_F8_E4M3, 2, {64, 16}},
    {"n.weight_scale_2", IG_F32, 0, {0}},
    {"o.weight_scale", IG_F32, 0, {0}},
    {"p.weight_packed", IG_I32, 2, {256, 64}},
    {"p.weight_scale", IG_BF16, 2, {256, 4}},
    {"p.weight_zero_point", IG_I32, 2, {32, 4}},
    {"q.input_scale", IG_F32, 1, {1}},
    {"q.output_scale", IG_F32, 0, {0}},
    {"q.weight", IG_F8_E4M3, 2, {300, 256}},
    {"q.weight_scale", IG_F32, 2, {300, 1}},
    {"r.weight", IG_F8_E4M3, 2, {300, 260}},
    {"r.weight_scale", IG_F32, 2, {3, 3}},
    {"r.weight_scale_inv", IG_F32, 2, {3, 3}},
    {"s.input_global_scale", IG_F32, 1, {1}},
    {"s.weight_global_scale", IG_F32, 1, {1}},
    {"s.weight_packed", IG_U8, 2, {64, 128}},
    {"s.weight_scale", IG_F8_E4M3, 2, {64, 16}},
    {"t.weight", IG_F8_E4M3, 2, {8, 8}},
    {"x8", IG_F8_E8M0, 1, {8}},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

/* Beside an input that is hf_quant_config.json. */
static const char other[] = "{\"quantization_config\":{\"quant_method\":\"modelopt\","
                            "\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":\"FP8\"}}";

static char here[] = ".", config_name[] = "config.json", hf_name[] = "hf_quant_config.json",
            shard_a[] = "a.safetensors", shard_b[] = "b/c.safetensors";
static int fds[BLOBS] = {-1, -1}, index_fd = -1;

/* RFC 6901. */
static const json_t *follow(const json_t *v, const char *pointer, size_t n)
{
    const char *end = pointer + n;
    while (v && pointer < end) {
        char key[1024];
        size_t k = 0;
        check(*pointer++ == '/');
        for (; pointer < end && *pointer != '/'; pointer++) {
            check(k < sizeof key);
            key[k++] = *pointer;
            if (*pointer != '~') continue;
            check(++pointer < end && (*pointer == '0' || *pointer == '1'));
            key[k - 1] = *pointer == '0' ? '~' : '/';
        }
        v = json_object_getn(v, key, k);
    }
    return v;
}

static void check_link(const struct ig_link *l, const struct ig_src *s)
{
    check(l->object < TENSORS && (l->subject < TENSORS || l->subject == IG_NONE));
    check((l->subject == IG_NONE) == (l->module_len > 0));
    check(l->role >= IG_ROLE_WEIGHT && l->role <= IG_ROLE_OUTPUT && l->stage < 8);
    check(l->op <= IG_OP_DIVIDE && l->gran >= IG_GRAN_TENSOR && l->gran <= IG_GRAN_UNKNOWN);
    check(l->logical < IG_DTYPES && l->packing <= IG_PACK_LOW_FIRST && l->encoding <= IG_ENC_E8M0);
    check(l->blob == IG_NONE || l->blob < BLOBS);
    if (l->blob == IG_NONE) {
        check(l->op == IG_OP_UNKNOWN && l->pointer_len == 0);
        return;
    }
    check(strlen(l->pointer) == l->pointer_len);
    check(follow(l->blob == CONFIG_BLOB ? s->config : s->hf_quant, l->pointer, l->pointer_len) !=
          NULL);
}

static void find_scales(const struct ig_src *s)
{
    struct ig_row rows[TENSORS];
    struct ig_scales found;
    for (uint32_t i = 0; i < TENSORS; i++) {
        rows[i] = (struct ig_row){.name = tensors[i].name,
                                  .name_len = (uint32_t)strlen(tensors[i].name),
                                  .rank = tensors[i].rank,
                                  .shape = tensors[i].shape,
                                  .dtype = tensors[i].dtype,
                                  .bytes = 1};
        check(!i || strcmp(rows[i - 1].name, rows[i].name) < 0);
    }
    const struct ig_scales_in in = {.rows = rows,
                                    .nrows = TENSORS,
                                    .config = s->config,
                                    .hf_quant = s->hf_quant,
                                    .config_blob = s->config_blob,
                                    .hf_quant_blob = s->hf_quant_blob};
    check(ig_scales_find(&in, &found, NULL) == INGOT_OK);
    for (uint32_t i = 0; i < found.nlinks; i++) {
        check_link(&found.links[i], s);
        check(!i || ig_link_cmp(&found.links[i - 1], &found.links[i]) < 0);
    }
    for (uint32_t i = 0; i < found.nfindings; i++) {
        check_line(found.findings[i].text);
        check(found.findings[i].row < TENSORS || found.findings[i].row == IG_NONE);
    }
    ig_scales_free(&found);
}

static void try_configs(const char *config, size_t n, const char *hf, size_t hf_size)
{
    char paths[BLOBS][40];
    ingot_error e;
    fill_file(&fds[CONFIG_BLOB], paths[CONFIG_BLOB], config, n);
    if (hf) fill_file(&fds[HF_BLOB], paths[HF_BLOB], hf, hf_size);
    struct ig_src_file blobs[BLOBS] = {{.name = config_name, .path = paths[0]},
                                       {.name = hf_name, .path = paths[1]}};
    const struct ig_convert job = {.source = "."};
    struct ig_src s = {.root = here, .blobs = blobs, .nblobs = hf ? 2 : 1};
    s.warnings = json_array();
    const ingot_status status = ig_src_read_config(&s, &job, &e);
    if (status == INGOT_OK) {
        const int tied = ig_config_tied(s.config);
        check(s.config_blob == CONFIG_BLOB && tied >= -1 && tied <= 1);
        find_scales(&s);
    } else {
        check(status == INGOT_ERR_INPUT);
        check_error(&e, status);
    }
    json_decref(s.warnings);
    json_decref(s.config);
    json_decref(s.hf_quant);
}

static struct ig_src with_shards(struct ig_src_file *files, uint32_t n)
{
    return (struct ig_src){.root = here, .weights = files, .nweights = n};
}

static bool is_there(const struct ig_src *s, const char *name)
{
    for (uint32_t i = 0; i < s->nweights; i++)
        if (strcmp(s->weights[i].name, name) == 0) return true;
    return false;
}

static void try_index(const char *text, size_t n)
{
    struct ig_src_file files[] = {{.name = shard_a}, {.name = shard_b}};
    struct ig_src s = with_shards(files, 2);
    const char *tensor;
    json_t *shard;
    char path[40];
    ingot_error e;
    fill_file(&index_fd, path, text, n);
    ingot_status status = ig_src_read_index(&s, path, &e);
    if (status == INGOT_OK) {
        bool all = true;
        json_object_foreach(s.index, tensor, shard)
        {
            const char *file = json_string_value(shard);
            check(file && ig_safe_path(file, strlen(file)));
            all = all && is_there(&s, file);
        }
        status = ig_src_check_shards(&s, &e);
        check(all == (status == INGOT_OK));
    }
    if (status != INGOT_OK) {
        check(status == INGOT_ERR_INPUT);
        check_error(&e, status);
    }
    json_decref(s.index);
    json_decref(s.total_size);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct ig_src_file *)a)->name, ((const struct ig_src_file *)b)->name);
}

static void try_numbers(char *text)
{
    struct ig_src_file files[32];
    uint32_t n = 0;
    ingot_error e;
    for (char *line = strtok(text, "\n"); line && n < 32; line = strtok(NULL, "\n"))
        if (ig_safe_path(line, strlen(line))) files[n++] = (struct ig_src_file){.name = line};
    if (n) qsort(files, n, sizeof files[0], by_name);
    struct ig_src s = with_shards(files, n);
    const ingot_status status = ig_src_check_shards(&s, &e);
    if (status == INGOT_OK) return;
    check(status == INGOT_ERR_INPUT);
    check_error(&e, status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    char *text = malloc(size);
    check(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        try_configs(text, size - 1, NULL, 0);
        break;
    case 1:
        try_configs(other, sizeof other - 1, text, size - 1);
        break;
    case 2:
        try_index(text, size - 1);
        break;
    default:
        try_numbers(text);
    }
    free(text);
    return 0;
}
