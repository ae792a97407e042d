/* SPDX-License-Identifier: Apache-2.0 */
/* Writing index.mdb: LMDB in memory, then copied, sealed and renamed into place. */
#include "store/index_private.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_MOST ((size_t)INDEX_MOST * 4)

static void encode(uint8_t v[SUM_END], const struct ig_summary *s)
{
    memset(v, 0, SUM_END);
    ig_put64(v + SUM_SIZE, s->size);
    ig_put64(v + SUM_SEC, (uint64_t)s->sec);
    ig_put32(v + SUM_NSEC, s->nsec);
    ig_put32(v + SUM_FLAGS, (s->has_from ? SUM_HAS_FROM : 0) | (s->problem ? SUM_DAMAGED : 0));
    ig_put32(v + SUM_RULES, s->rules);
    ig_put32(v + SUM_SOURCES, s->nsources);
    ig_put64(v + SUM_TENSORS, s->tensors);
    ig_put64(v + SUM_VIEWS, s->views);
    ig_put64(v + SUM_SHADOWS, s->shadows);
    ig_put64(v + SUM_BYTES, s->bytes);
    memcpy(v + SUM_CONTENT, s->content, IG_HASH);
    memcpy(v + SUM_FROM, s->from, IG_HASH);
    memcpy(v + SUM_KIND, s->kind, sizeof s->kind);
    for (size_t i = 0; i < IG_DTYPES; i++) {
        ig_put64(v + SUM_DTYPES + 16 * i, s->dtype_tensors[i]);
        ig_put64(v + SUM_DTYPES + 16 * i + 8, s->dtype_bytes[i]);
    }
}

static int put(MDB_txn *txn, MDB_dbi dbi, const void *key, size_t nkey, const void *data, size_t n)
{
    MDB_val k = {.mv_size = nkey, .mv_data = (void *)(uintptr_t)key};
    MDB_val v = {.mv_size = n, .mv_data = (void *)(uintptr_t)data};
    return mdb_put(txn, dbi, &k, &v, 0);
}

static int put_origin(MDB_txn *txn, MDB_dbi dbi, const struct ig_index *index,
                      const struct ig_origin *o, uint32_t number)
{
    uint8_t key[ORIGIN_KEY];
    const size_t name = strlen(o->name);
    uint8_t *value = malloc(ORIGIN_NAME + name);
    if (!value) return ENOMEM;
    memcpy(key, o->sha256, IG_HASH);
    memcpy(key + IG_HASH, index->packs[o->pack].digest, IG_HASH);
    ig_put32(key + 2 * IG_HASH, number);
    ig_put64(value + ORIGIN_BYTES, o->bytes);
    memcpy(value + ORIGIN_NAME, o->name, name);
    const int rc = put(txn, dbi, key, sizeof key, value, ORIGIN_NAME + name);
    free(value);
    return rc;
}

static int put_all(MDB_env *env, const struct ig_index *index)
{
    MDB_txn *txn = NULL;
    MDB_dbi dbi;
    int rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (rc) return rc;
    rc = mdb_dbi_open(txn, NULL, 0, &dbi);
    for (size_t i = 0; i < index->npacks && rc == 0; i++) {
        uint8_t value[SUM_END];
        encode(value, &index->packs[i]);
        rc = put(txn, dbi, index->packs[i].digest, IG_HASH, value, SUM_END);
    }
    uint32_t number = 0;
    for (size_t i = 0; i < index->norigins && rc == 0; i++) {
        const struct ig_origin *o = &index->origins[i], *last = i ? o - 1 : NULL;
        const bool equal =
            last && last->pack == o->pack && memcmp(last->sha256, o->sha256, IG_HASH) == 0;
        number = equal ? number + 1 : 0;
        rc = put_origin(txn, dbi, index, o, number);
    }
    if (rc == 0) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

/* One attempt: everything into an LMDB file behind a descriptor. */
static int build_once(int fd, const struct ig_index *index, size_t map_size)
{
    char path[40];
    MDB_env *env = NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ftruncate(fd, 0) != 0) return errno;
    int rc = mdb_env_create(&env);
    if (rc) return rc;
    rc = mdb_env_set_mapsize(env, map_size);
    /* Nobody else sees the file: no lock, and no sync of what only lives in memory. */
    if (rc == 0) rc = mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600);
    if (rc == 0) rc = put_all(env, index);
    mdb_env_close(env);
    return rc;
}

static size_t first_map_size(const struct ig_index *index)
{
    size_t n = (size_t)1 << 20;
    n += index->npacks * 2 * (SUM_END + IG_HASH + 16);
    for (size_t i = 0; i < index->norigins; i++)
        n += 2 * (strlen(index->origins[i].name) + ORIGIN_KEY + ORIGIN_NAME + 16);
    return (size_t)ig_round_up(n, IG_PAGE);
}

static ingot_status build(int fd, const struct ig_index *index, size_t map_size, ingot_error *e)
{
    int rc;
    if (!map_size) map_size = first_map_size(index);
    while ((rc = build_once(fd, index, map_size)) == MDB_MAP_FULL && map_size < MAP_MOST)
        map_size *= 2;
    if (rc == 0) return INGOT_OK;
    if (rc > 0)
        return ig_fail_sys(e, rc, "cannot build an index of %zu packs in a map of %zu bytes",
                           index->npacks, map_size);
    return ig_fail(e, INGOT_ERR_NO_SPACE, "cannot build an index of %zu packs in %zu bytes: %s",
                   index->npacks, map_size, mdb_strerror(rc));
}

static void seal_page(uint8_t page[SEAL_BYTES], uint64_t length, const struct ig_index *index)
{
    memset(page, 0, SEAL_BYTES);
    memcpy(page, INDEX_MAGIC, 8);
    ig_put32(page + SEAL_VERSION, INDEX_VERSION);
    ig_put64(page + SEAL_LENGTH, length);
    ig_put64(page + SEAL_ENTRIES, index->npacks);
}

/* Hash the image with its seal behind it, and write both. */
static ingot_status copy_sealed(int fd, int to, const char *path, const struct ig_index *index,
                                ingot_error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return ig_fail_sys(e, errno, "%s: cannot stat its image", path);
    const uint64_t length = (uint64_t)st.st_size;
    const size_t all = (size_t)length + SEAL_BYTES;
    if (ftruncate(fd, (off_t)all) != 0)
        return ig_fail_sys(e, errno, "%s: cannot grow its image to %zu bytes", path, all);
    uint8_t *map = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return ig_fail_sys(e, errno, "%s: cannot map its image of %zu bytes", path, all);
    seal_page(map + length, length, index);
    uint8_t hash[16];
    ig_xxh128(hash, map, all);
    memcpy(map + length + SEAL_XXH, hash, sizeof hash);
    const ingot_status status = ig_pwrite(to, path, map, all, 0, e);
    munmap(map, all);
    return status;
}

ingot_status ig_index_write(const struct ig_store *s, const struct ig_index *index, size_t map_size,
                            ingot_error *e)
{
    struct ig_temp temp = {.fd = -1};
    ingot_status status;
    char *path = ig_store_path(s, INDEX_FILE, NULL);
    const int fd = memfd_create("ingot-index", MFD_CLOEXEC);
    if (!path) {
        status = ig_no_memory(e);
        goto out;
    }
    if (fd < 0) {
        status = ig_fail_sys(e, errno, "%s: cannot create a memory file", path);
        goto out;
    }
    /* The folder says no before the work is done. */
    if ((status = ig_temp_open_in(s->root, false, &temp, e)) != INGOT_OK) goto out;
    if ((status = build(fd, index, map_size, e)) != INGOT_OK) goto out;
    if ((status = copy_sealed(fd, temp.fd, path, index, e)) != INGOT_OK) goto out;
    status = ig_temp_place(&temp, path, 0644, true, e);
out:
    ig_temp_discard(&temp);
    if (fd >= 0) close(fd);
    free(path);
    return status;
}
