/* SPDX-License-Identifier: Apache-2.0 */
/* Reading index.mdb: a private copy, its seal, its pages, and only then LMDB. */
#include "store/index_private.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ingot_status damaged(const char *path, const char *why, ingot_error *e)
{
    return ig_fail(e, INGOT_ERR_PACK, "%s: damaged: %s", path, why);
}

static ingot_status check_seal(uint8_t *map, uint64_t all, const char *path, uint64_t *length,
                               ingot_error *e)
{
    uint8_t *seal = map + all - SEAL_BYTES, stored[16], hash[16];
    if (memcmp(seal, INDEX_MAGIC, 8) != 0) return damaged(path, "it does not end in its seal", e);
    memcpy(stored, seal + SEAL_XXH, sizeof stored);
    memset(seal + SEAL_XXH, 0, sizeof stored);
    ig_xxh128(hash, map, (size_t)all);
    if (memcmp(hash, stored, sizeof hash) != 0)
        return damaged(path, "its XXH3-128 does not match", e);
    if (ig_get32(seal + SEAL_VERSION) != INDEX_VERSION)
        return ig_fail(e, INGOT_ERR_UNSUPPORTED, "%s: index version %u, expected %u", path,
                       ig_get32(seal + SEAL_VERSION), INDEX_VERSION);
    *length = ig_get64(seal + SEAL_LENGTH);
    if (*length != all - SEAL_BYTES) return damaged(path, "its length is wrong", e);
    return INGOT_OK;
}

/* The file's bytes, checked and without the seal, in a memory file that nobody can change. */
static ingot_status private_copy(int from, const char *path, int *out, ingot_error *e)
{
    struct stat st;
    uint64_t length = 0;
    if (fstat(from, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot stat", path);
    const uint64_t all = (uint64_t)st.st_size;
    if (!S_ISREG(st.st_mode) || all <= SEAL_BYTES || all > INDEX_MOST)
        return damaged(path, "impossible size", e);
    *out = memfd_create("ingot-index", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*out < 0 || ftruncate(*out, (off_t)all) != 0)
        return ig_fail_sys(e, errno, "%s: no memory file of %llu bytes", path,
                           (unsigned long long)all);
    uint8_t *map = mmap(NULL, (size_t)all, PROT_READ | PROT_WRITE, MAP_SHARED, *out, 0);
    if (map == MAP_FAILED)
        return ig_fail_sys(e, errno, "%s: cannot map %llu bytes", path, (unsigned long long)all);
    ingot_status status = ig_pread(from, path, map, (size_t)all, 0, e);
    if (status == INGOT_OK) status = check_seal(map, all, path, &length, e);
    if (status == INGOT_OK) status = ig_index_walk(map, length, path, e);
    munmap(map, (size_t)all);
    if (status != INGOT_OK) return status;
    if (ftruncate(*out, (off_t)length) != 0 ||
        fcntl(*out, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return ig_fail_sys(e, errno, "%s: cannot seal its copy", path);
    return INGOT_OK;
}

/* As summarise() leaves it: it goes to terminals as it is. */
static bool is_printable(const char *kind)
{
    char shown[sizeof((struct ig_summary *)NULL)->kind];
    snprintf(shown, sizeof shown, "%s", kind);
    ig_printable(shown);
    return strcmp(shown, kind) == 0;
}

static bool decode(struct ig_summary *s, const MDB_val *key, const MDB_val *value)
{
    const uint8_t *v = value->mv_data;
    if (value->mv_size != SUM_END) return false;
    *s = (struct ig_summary){0};
    memcpy(s->digest, key->mv_data, IG_HASH);
    s->size = ig_get64(v + SUM_SIZE);
    s->sec = (int64_t)ig_get64(v + SUM_SEC);
    s->nsec = ig_get32(v + SUM_NSEC);
    s->rules = ig_get32(v + SUM_RULES);
    s->nsources = ig_get32(v + SUM_SOURCES);
    s->has_from = ig_get32(v + SUM_FLAGS) & SUM_HAS_FROM;
    s->tensors = ig_get64(v + SUM_TENSORS);
    s->views = ig_get64(v + SUM_VIEWS);
    s->shadows = ig_get64(v + SUM_SHADOWS);
    s->bytes = ig_get64(v + SUM_BYTES);
    memcpy(s->content, v + SUM_CONTENT, IG_HASH);
    memcpy(s->from, v + SUM_FROM, IG_HASH);
    memcpy(s->kind, v + SUM_KIND, sizeof s->kind - 1);
    if (!is_printable(s->kind)) return false;
    for (size_t i = 0; i < IG_DTYPES; i++) {
        s->dtype_tensors[i] = ig_get64(v + SUM_DTYPES + 16 * i);
        s->dtype_bytes[i] = ig_get64(v + SUM_DTYPES + 16 * i + 8);
    }
    return true;
}

struct reading {
    MDB_cursor *cursor;
    struct ig_index *out;
    size_t packs_cap, origins_cap;
    const char *path;
};

static ingot_status take_summary(struct reading *r, const MDB_val *key, const MDB_val *value,
                                 ingot_error *e)
{
    struct ig_index *index = r->out;
    if (index->npacks == r->packs_cap) {
        const size_t cap = r->packs_cap ? 2 * r->packs_cap : 64;
        struct ig_summary *more = reallocarray(index->packs, cap, sizeof *more);
        if (!more) return ig_no_memory(e);
        index->packs = more;
        r->packs_cap = cap;
    }
    struct ig_summary *s = &index->packs[index->npacks];
    if (!decode(s, key, value)) return damaged(r->path, "a summary is malformed", e);
    if (ig_get32((const uint8_t *)value->mv_data + SUM_FLAGS) & SUM_DAMAGED)
        if (!(s->problem = strdup(""))) return ig_no_memory(e);
    index->npacks++;
    return INGOT_OK;
}

static ingot_status take_origin(struct reading *r, const MDB_val *key, const MDB_val *value,
                                ingot_error *e)
{
    const uint8_t *k = key->mv_data, *v = value->mv_data;
    const struct ig_summary *pack = ig_index_find(r->out, k + IG_HASH);
    if (value->mv_size < ORIGIN_NAME || !pack)
        return damaged(r->path, "a source file without its pack", e);
    const char *name = (const char *)v + ORIGIN_NAME;
    const size_t len = value->mv_size - ORIGIN_NAME;
    if (!ig_safe_path(name, len) || !ig_utf8_valid(name, len) || memchr(name, 0, len))
        return damaged(r->path, "a source file without a name", e);
    return ig_index_add_origin(r->out, &r->origins_cap, k, (uint32_t)(pack - r->out->packs),
                               ig_get64(v + ORIGIN_BYTES), name, len, e);
}

/* All entries whose keys are as long as asked: summaries come before what refers to them. */
static ingot_status pass(struct reading *r, size_t key_size, ingot_error *e)
{
    MDB_val key, value;
    int rc = mdb_cursor_get(r->cursor, &key, &value, MDB_FIRST);
    for (; rc == 0; rc = mdb_cursor_get(r->cursor, &key, &value, MDB_NEXT)) {
        if (key.mv_size != IG_HASH && key.mv_size != ORIGIN_KEY)
            return damaged(r->path, "a key of the wrong size", e);
        if (key.mv_size != key_size) continue;
        return_if_error(key_size == IG_HASH ? take_summary(r, &key, &value, e)
                                            : take_origin(r, &key, &value, e));
    }
    return rc == MDB_NOTFOUND ? INGOT_OK : damaged(r->path, mdb_strerror(rc), e);
}

static ingot_status read_entries(int fd, const char *path, struct ig_index *out, ingot_error *e)
{
    char self[40];
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    MDB_dbi dbi;
    struct reading r = {.out = out, .path = path};
    ingot_status status = INGOT_OK;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    int rc = mdb_env_create(&env);
    if (rc == 0) rc = mdb_env_open(env, self, MDB_RDONLY | MDB_NOLOCK | MDB_NOSUBDIR, 0);
    if (rc == 0) rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc == 0) rc = mdb_dbi_open(txn, NULL, 0, &dbi);
    if (rc == 0) rc = mdb_cursor_open(txn, dbi, &r.cursor);
    if (rc != 0) {
        status = rc > 0 ? ig_fail_sys(e, rc, "%s: cannot use it", path)
                        : damaged(path, mdb_strerror(rc), e);
        goto out;
    }
    status = pass(&r, IG_HASH, e);
    if (status == INGOT_OK) status = pass(&r, ORIGIN_KEY, e);
    if (status == INGOT_OK) ig_index_sort_origins(out);
out:
    if (r.cursor) mdb_cursor_close(r.cursor);
    if (txn) mdb_txn_abort(txn);
    if (env) mdb_env_close(env);
    return status;
}

ingot_status ig_index_read(const struct ig_store *s, struct ig_index *out, ingot_error *e)
{
    ingot_status status;
    int from = -1, copy = -1;
    *out = (struct ig_index){0};
    char *path = ig_store_path(s, INDEX_FILE, NULL);
    if (!path) return ig_no_memory(e);
    from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0) {
        status = ig_fail_sys(e, errno, "%s: cannot open", path);
        goto out;
    }
    if ((status = private_copy(from, path, &copy, e)) != INGOT_OK) goto out;
    status = read_entries(copy, path, out, e);
out:
    if (status != INGOT_OK) ig_index_free(out);
    if (from >= 0) close(from);
    if (copy >= 0) close(copy);
    free(path);
    return status;
}
