/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint of any size for benchmarks: Llama's names and proportions, F16, random bytes, in
 * shards with an index.  Or, with `tensors`, one file of that many tiny tensors.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIDDEN 2048u
#define HEADER ((size_t)256 << 20)

struct shape {
    const char *name; /* behind "model.layers.N." */
    uint32_t rows, columns;
};
static const struct shape layer_shapes[] = {
    {"input_layernorm.weight", 1, HIDDEN},
    {"self_attn.q_proj.weight", HIDDEN, HIDDEN},
    {"self_attn.k_proj.weight", HIDDEN / 4, HIDDEN},
    {"self_attn.v_proj.weight", HIDDEN / 4, HIDDEN},
    {"self_attn.o_proj.weight", HIDDEN, HIDDEN},
    {"post_attention_layernorm.weight", 1, HIDDEN},
    {"mlp.gate_proj.weight", 4 * HIDDEN, HIDDEN},
    {"mlp.up_proj.weight", 4 * HIDDEN, HIDDEN},
    {"mlp.down_proj.weight", HIDDEN, 4 * HIDDEN},
};
#define SHAPES (sizeof layer_shapes / sizeof *layer_shapes)

static void write_file(const char *dir, const char *name, const void *data, size_t n)
{
    char *path = ig_format("%s/%s", dir, name);
    FILE *f = path ? fopen(path, "wb") : NULL;
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) bench_die("%s: cannot write", path);
    free(path);
}

/* Header, then n random bytes: xorshift64*, so that no two pages are alike. */
static void write_shard(const char *dir, const char *name, char *header, size_t len, uint64_t n)
{
    static uint64_t words[1 << 16], x = 88172645463325252ull;
    char *path = ig_format("%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) bench_die("%s: %s", path, strerror(errno));
    ingot_error e = {0};
    uint8_t size[8];
    while (len % 8) header[len++] = ' ';
    ig_put64(size, len);
    if (ig_pwrite(fd, path, size, 8, 0, &e) || ig_pwrite(fd, path, header, len, 8, &e))
        bench_die("%s", e.message);
    for (uint64_t at = 0; at < n; at += sizeof words) {
        for (size_t i = 0; i < sizeof words / 8; i++) {
            x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
            words[i] = x * 2685821657736338717ull;
        }
        const size_t k = n - at < sizeof words ? (size_t)(n - at) : sizeof words;
        if (ig_pwrite(fd, path, words, k, 8 + len + at, &e)) bench_die("%s", e.message);
    }
    if (fsync(fd) != 0 || close(fd) != 0) bench_die("%s: %s", path, strerror(errno));
    free(path);
}

static void make_config(const char *dir, uint32_t layers)
{
    char text[512];
    const int n =
        snprintf(text, sizeof text,
                 "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", "
                 "\"hidden_size\": %u, \"num_hidden_layers\": %u, \"num_attention_heads\": "
                 "16, \"num_key_value_heads\": 4, \"intermediate_size\": %u, "
                 "\"torch_dtype\": \"float16\", \"tie_word_embeddings\": false}\n",
                 HIDDEN, layers, 4 * HIDDEN);
    write_file(dir, "config.json", text, (size_t)n);
}

/* Layers of the shard in one header; returns the bytes of its data. */
static uint64_t shard_header(char *header, size_t *len, json_t *map, const char *file,
                             uint32_t first, uint32_t end)
{
    uint64_t at = 0;
    size_t n = 0;
    for (uint32_t layer = first; layer < end; layer++)
        for (size_t i = 0; i < SHAPES; i++) {
            const struct shape *s = &layer_shapes[i];
            const uint64_t bytes = 2ull * s->rows * s->columns;
            char name[100], shape[40];
            snprintf(name, sizeof name, "model.layers.%u.%s", layer, s->name);
            snprintf(shape, sizeof shape, "%u", s->columns);
            if (s->rows > 1) snprintf(shape, sizeof shape, "%u,%u", s->rows, s->columns);
            n += (size_t)snprintf(
                header + n, HEADER - n,
                "%c\"%s\":{\"dtype\":\"F16\",\"shape\":[%s],\"data_offsets\":[%llu,"
                "%llu]}",
                n ? ',' : '{', name, shape, (unsigned long long)at,
                (unsigned long long)(at + bytes));
            json_object_set_new(map, name, json_string(file));
            at += bytes;
        }
    header[n++] = '}';
    *len = n;
    return at;
}

static void make_layers(const char *dir, uint64_t bytes, uint32_t shards, char *header)
{
    uint64_t per_layer = 0;
    for (size_t i = 0; i < SHAPES; i++)
        per_layer += 2ull * layer_shapes[i].rows * layer_shapes[i].columns;
    const uint32_t layers = (uint32_t)((bytes + per_layer - 1) / per_layer);
    json_t *index = json_object(), *map = json_object();
    for (uint32_t k = 0; k < shards; k++) {
        char file[64];
        size_t len;
        snprintf(file, sizeof file, "model-%05u-of-%05u.safetensors", k + 1, shards);
        const uint64_t n =
            shard_header(header, &len, map, file, layers * k / shards, layers * (k + 1) / shards);
        write_shard(dir, file, header, len, n);
    }
    json_object_set_new(index, "weight_map", map);
    char *text = json_dumps(index, 0);
    write_file(dir, "model.safetensors.index.json", text, strlen(text));
    free(text);
    json_decref(index);
    make_config(dir, layers);
}

/* As many as a header of 100 MB holds: short names, a byte each. */
static void make_many(const char *dir, uint32_t tensors, char *header)
{
    size_t n = 0;
    for (uint32_t i = 0; i < tensors; i++)
        n += (size_t)snprintf(header + n, HEADER - n,
                              "%c\"t%u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                              n ? ',' : '{', i, i, i + 1);
    header[n++] = '}';
    if (n > 100000000) bench_die("%u tensors do not fit in a header", tensors);
    write_shard(dir, "model.safetensors", header, n, tensors);
    make_config(dir, 1);
}

void bench_checkpoint(const char *dir, uint64_t bytes, uint32_t shards, uint32_t tensors)
{
    char *header = malloc(HEADER);
    if (!header) bench_die("out of memory");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST) bench_die("%s: %s", dir, strerror(errno));
    if (tensors)
        make_many(dir, tensors, header);
    else
        make_layers(dir, bytes, shards, header);
    free(header);
}
