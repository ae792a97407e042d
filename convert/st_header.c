/* SPDX-License-Identifier: Apache-2.0 */
/* The header as a whole: one JSON object of entries and at most one __metadata__. */
#include "convert/st_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Not guessable from outside; where the kernel refuses randomness, hard to guess. */
static uint64_t random_seed(const void *somewhere)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) return seed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t mix[] = {(uint64_t)(uintptr_t)somewhere, (uint64_t)now.tv_sec,
                            (uint64_t)now.tv_nsec};
    return ig_xxh64(mix, sizeof mix);
}

const char *ig_st_string(struct ig_st_reader *r, struct ig_st_block **list)
{
    if (!r->lx.escaped) return r->lx.text + r->lx.at + 1;
    char *text = ig_st_alloc(list, r->lx.length);
    if (text) ig_lex_string(&r->lx, text);
    return text;
}

static ingot_status read_metadata(struct ig_st_reader *r, ingot_error *e)
{
    enum ig_lex_event event;
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_OBJECT)
        return ig_lex_fail(&r->lx, r->lx.at, e,
                           "__metadata__ is no object (expected one of strings)");
    for (;;) {
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event == IG_LEX_OBJECT_END) break;
        const char *key = ig_st_string(r, &r->scratch);
        if (!key) return ig_no_memory(e);
        const size_t len = r->lx.length;
        return_if_error(ig_st_keys_add(&r->inner, &r->lx, key, len, e));
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event != IG_LEX_STRING)
            return ig_lex_fail(&r->lx, r->lx.at, e,
                               "__metadata__ value of \"%s\" is no string (expected strings only)",
                               ig_esc(key, len).s);
    }
    ig_st_keys_clear(&r->inner);
    return INGOT_OK;
}

/* The key at hand, which is a tensor's name or __metadata__, and its value. */
static ingot_status read_member(struct ig_st_reader *r, ingot_error *e)
{
    static const char metadata[] = "__metadata__";
    const char *name = ig_st_string(r, &r->names);
    if (!name) return ig_no_memory(e);
    const struct ig_st_tensor t = {.name = name, .name_len = (uint32_t)r->lx.length};
    const ingot_status status = ig_st_keys_add(&r->keys, &r->lx, name, t.name_len, e);
    if (status == INGOT_ERR_INPUT) ig_at(e, r->lx.path, name, t.name_len);
    if (status != INGOT_OK) return status;
    if (t.name_len == sizeof metadata - 1 && memcmp(name, metadata, t.name_len) == 0)
        return read_metadata(r, e);
    if (!t.name_len) return ig_st_fail(r, &t, r->lx.at, e, "empty name");
    if (memchr(name, 0, t.name_len))
        return ig_st_fail(r, &t, r->lx.at, e, "NUL in a name, which would hide what follows it");
    return ig_st_read_entry(r, name, t.name_len, e);
}

static ingot_status read_header(struct ig_st_reader *r, ingot_error *e)
{
    enum ig_lex_event event;
    return_if_error(ig_lex_next(&r->lx, &event, e));
    if (event != IG_LEX_OBJECT)
        return ig_lex_fail(&r->lx, r->lx.at, e, "the header is no JSON object (expected '{')");
    for (;;) {
        return_if_error(ig_lex_next(&r->lx, &event, e));
        if (event == IG_LEX_OBJECT_END) break;
        return_if_error(read_member(r, e));
    }
    return ig_lex_next(&r->lx, &event, e); /* refuses whatever follows */
}

ingot_status ig_st_parse_header(struct ig_st *out, const char *path, ingot_error *e)
{
    struct ig_st_reader r = {.out = out};
    ig_lex_init(&r.lx, out->header + 8, (size_t)out->header_len, path, 8, 0);
    r.keys.seed = r.inner.seed = random_seed(out->header);
    const ingot_status status = read_header(&r, e);
    ig_st_keys_clear(&r.keys);
    ig_st_keys_clear(&r.inner);
    ig_st_free_blocks(r.scratch);
    free(r.dims);
    out->arena[0] = r.names;
    return status;
}
