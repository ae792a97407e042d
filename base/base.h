/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what every other folder stands on.  Errors, byte order, hashes, the
 * fs-verity tree, file I/O that finishes or fails, JSON, a staged thread pool.
 * Nothing here knows about packs or safetensors.
 */
#ifndef INGOT_BASE_H
#define INGOT_BASE_H

#include "ingot.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define IG_PAGE 4096u
#define IG_HASH 32u    /* bytes of a SHA-256 */
#define IG_FAN  128u   /* hashes in one 4096-byte tree block */
#define IG_SPAN 65536u /* bytes that one XXH3-128 of a pack covers */

#if defined(__GNUC__)
#define IG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define IG_PRINTF(f, a)
#endif

/* Leave the calling function with the status of a failed call. */
#define return_if_error(call)                          \
    do {                                               \
        const ingot_status rie_status = (call);        \
        if (rie_status != INGOT_OK) return rie_status; \
    } while (0)

/* error.c.  All set *e (which may be NULL) and return its status, so that they
 * end a function: `return ig_fail(e, INGOT_ERR_INPUT, "...")`. */
ingot_status ig_fail(ingot_error *e, ingot_status status, const char *format, ...) IG_PRINTF(3, 4);
/* The same for a failed system call: ": strerror" is appended, ENOSPC-like values
 * become INGOT_ERR_NO_SPACE, ENOMEM INGOT_ERR_NO_MEMORY, all others INGOT_ERR_IO. */
ingot_status ig_fail_sys(ingot_error *e, int sys_errno, const char *format, ...) IG_PRINTF(3, 4);
ingot_status ig_no_memory(ingot_error *e);
/* Record where, beside the message.  Return e's status.  tensor may be NULL. */
ingot_status ig_at(ingot_error *e, const char *file, const char *tensor, size_t tensor_len);
ingot_status ig_at_offset(ingot_error *e, const char *file, uint64_t offset);
/* Bytes from outside as one printable line: control bytes, quotes, backslashes and
 * invalid UTF-8 become escapes, the rest past the buffer "...".  Returns buf. */
const char *ig_escape(char *buf, size_t cap, const char *s, size_t len);
/* What quotes such bytes unescaped (paths above all) becomes one printable line of UTF-8. */
void ig_printable(char *text);
#define IG_ESC_MAX 256
struct ig_esc {
    char s[IG_ESC_MAX];
};
struct ig_esc ig_esc(const char *s, size_t len); /* use as ig_esc(...).s inside one call */

/* bytes.c */
uint16_t ig_get16(const void *p);
uint32_t ig_get32(const void *p);
uint64_t ig_get64(const void *p);
void ig_put16(void *p, uint16_t v);
void ig_put32(void *p, uint32_t v);
void ig_put64(void *p, uint64_t v);
uint64_t ig_round_up(uint64_t n, uint64_t power_of_two); /* caller guarantees no wrap */
bool ig_all_zero(const void *p, size_t n);
void ig_hex(char *out, const uint8_t *bytes, size_t n);    /* 2n digits and a NUL */
bool ig_unhex(uint8_t *out, size_t n, const char *digits); /* exactly 2n lower-case digits first */
bool ig_is_hex(const char *s, size_t n);
bool ig_utf8_valid(const char *s, size_t n); /* no surrogates, no overlong forms; NUL is valid */
/* As memcmp, a prefix before what it begins: the order of names in every table. */
int ig_bytes_cmp(const char *a, size_t na, const char *b, size_t nb);
/* A relative path: no empty, "." or ".." components, no leading or trailing slash. */
bool ig_safe_path(const char *s, size_t n);
/* "model-9" before "model-10": runs of digits compare as numbers, then memcmp. */
int ig_natural_cmp(const char *a, size_t na, const char *b, size_t nb);

/* dtype.c: the 22 element types of safetensors, in its own order of width. */
struct ig_dtype {
    const char *name;
    uint32_t bits; /* per element; F4 and F6 are not whole bytes */
};
/* clang-format off */
enum { IG_BOOL, IG_F4, IG_F6_E2M3, IG_F6_E3M2, IG_U8, IG_I8, IG_F8_E5M2, IG_F8_E4M3, IG_F8_E8M0,
       IG_F8_E4M3FNUZ, IG_F8_E5M2FNUZ, IG_I16, IG_U16, IG_F16, IG_BF16, IG_I32, IG_U32, IG_F32,
       IG_C64, IG_F64, IG_I64, IG_U64, IG_DTYPES };
/* clang-format on */
extern const struct ig_dtype ig_dtypes[IG_DTYPES];
int ig_dtype_find(const char *name, size_t len); /* -1 when unknown */

/* hash.c.  ig_sha is plain SHA-256, streaming; no allocation, no failure. */
struct ig_sha {
    uint64_t state[16]; /* opaque, large enough for libcrypto's context */
};
void ig_sha_init(struct ig_sha *h);
void ig_sha_update(struct ig_sha *h, const void *data, size_t n);
void ig_sha_final(struct ig_sha *h, uint8_t out[IG_HASH]);
void ig_sha256(uint8_t out[IG_HASH], const void *data, size_t n);
/* sha_pair.c: two streams as ig_sha_update takes them; with SHA extensions in the time of one. */
void ig_sha_update_pair(struct ig_sha *a, const void *da, size_t na, struct ig_sha *b,
                        const void *db, size_t nb);
/* hash_file.c: what is left to read of an open file. */
ingot_status ig_sha256_fd(int fd, const char *path, uint8_t out[IG_HASH], uint64_t *bytes,
                          ingot_error *e);
/* Leaf hash of n <= 4096 bytes, zero-padded to a whole block as fs-verity does. */
void ig_leaf(uint8_t out[IG_HASH], const void *data, size_t n);
void ig_xxh128(uint8_t out[16], const void *data, size_t n); /* canonical (big-endian) */
uint64_t ig_xxh64(const void *data, size_t n);               /* XXH3-64 */
struct ig_xxh; /* streaming XXH3-128; ig_xxh_new returns NULL when memory is short */
struct ig_xxh *ig_xxh_new(void);
void ig_xxh_update(struct ig_xxh *x, const void *data, size_t n);
void ig_xxh_final(struct ig_xxh *x, uint8_t out[16]); /* x starts anew */
void ig_xxh_free(struct ig_xxh *x);

/* leaves.c: the ceil(n / 4096) leaf hashes of n bytes, several at once.  One ig_lanes a thread; the
 * first measures which way is the fastest, those made `like` it take that.  NULL is libcrypto. */
struct ig_lanes *ig_lanes_new(const struct ig_lanes *like);
void ig_lanes_free(struct ig_lanes *l);
void ig_leaves(struct ig_lanes *l, uint8_t *out, const void *data, size_t n);

/* tree.c: the fs-verity Merkle tree, fed leaf by leaf, in constant memory.
 * https://docs.kernel.org/filesystems/fsverity.html#merkle-tree */
#define IG_TREE_LEVELS 9
/* Called with each finished block of 128 hashes (level 0: of leaves), the last filled with zeros.
 */
typedef ingot_status ig_tree_sink(void *ctx, unsigned level, uint64_t index,
                                  const uint8_t block[IG_PAGE], ingot_error *e);
struct ig_tree {
    uint64_t count[IG_TREE_LEVELS]; /* hashes seen so far, a level */
    uint8_t block[IG_TREE_LEVELS][IG_PAGE];
    ig_tree_sink *sink; /* or NULL */
    void *ctx;
};
void ig_tree_init(struct ig_tree *t);
ingot_status ig_tree_add(struct ig_tree *t, const uint8_t *leaves, uint64_t n, ingot_error *e);
/* The same with hashes of a level above the leaves; below it nothing is open. */
ingot_status ig_tree_add_nodes(struct ig_tree *t, unsigned level, const uint8_t *nodes, uint64_t n,
                               ingot_error *e);
/* Digest (SHA-256 of the descriptor) of a file of `size` bytes whose
 * ceil(size / 4096) leaves were added.  Flushes the last blocks into the sink. */
ingot_status ig_tree_digest(struct ig_tree *t, uint64_t size, uint8_t out[IG_HASH], ingot_error *e);
uint64_t ig_tree_nodes(uint64_t size, unsigned level); /* hashes on a level; 0 past the root */
void ig_verity_digest(uint8_t out[IG_HASH], uint64_t size, const uint8_t root[IG_HASH]);

/* Takes the bytes of something in order, a piece at a time. */
typedef ingot_status ig_sink(void *ctx, const void *data, size_t n, ingot_error *e);

/* io.c: whole transfers, EINTR and short counts handled.  `path` is for messages. */
ingot_status ig_pread(int fd, const char *path, void *buf, size_t n, uint64_t off, ingot_error *e);
ingot_status ig_pwrite(int fd, const char *path, const void *buf, size_t n, uint64_t off,
                       ingot_error *e);
ingot_status ig_truncate(int fd, const char *path, uint64_t size, ingot_error *e);
ingot_status ig_fsync(int fd, const char *path, ingot_error *e);
ingot_status ig_close(int *fd, const char *path, ingot_error *e); /* sets *fd = -1; -1 is fine */
ingot_status ig_fsync_dir(const char *path, ingot_error *e);
ingot_status ig_mkdirs(const char *path, ingot_error *e); /* like mkdir -p, mode 0777 & ~umask */
/* A regular file whole, NUL-terminated; INGOT_ERR_INPUT past max.  Caller frees. */
ingot_status ig_read_file(const char *path, size_t max, char **data, size_t *n, ingot_error *e);
/* A file that is not there yet, whole and on disk; after a failure it is not there. */
ingot_status ig_write_new(const char *path, mode_t mode, const void *data, size_t n,
                          ingot_error *e);
/* Call fn for each entry of a folder but "." and "..", in no order, until it fails.  An absent
 * folder has none when absent_ok. */
typedef ingot_status ig_entry_fn(void *ctx, const char *name, ingot_error *e);
ingot_status ig_each_entry(const char *path, bool absent_ok, ig_entry_fn *fn, void *ctx,
                           ingot_error *e);
/* stat.c: is there something at path?  Only the file system's word that there is not makes it
 * absent; any other failure is one. */
struct stat;
ingot_status ig_stat(const char *path, struct stat *st, bool *there, ingot_error *e);
ingot_status ig_lstat(const char *path, struct stat *st, bool *there, ingot_error *e);

char *ig_format(const char *format, ...) IG_PRINTF(1, 2); /* asprintf; NULL on failure */
void *ig_array(size_t count, size_t size); /* zeroed, overflow-checked, never NULL for 0 items */
void *ig_pages(size_t n); /* for I/O: starts on a page.  free() takes it, as all of these */

/* json.c: one strict reader for every JSON text, iterative, with line and column. */
enum {
    IG_JSON_NONFINITE = 1, /* allow bare NaN, Infinity, -Infinity: see ig_json_is_nonfinite */
    IG_JSON_BOM = 2,       /* skip a UTF-8 byte-order mark */
    IG_JSON_LAST_WINS = 4  /* duplicate keys: keep the last, as Python does; else refused */
};
/* Parse into a new jansson value (caller decrefs).  Depth is capped at 128. */
ingot_status ig_json_load(const char *text, size_t n, const char *path, unsigned flags,
                          json_t **out, ingot_error *e);
bool ig_json_is_nonfinite(const json_t *v);
/* UTF-8, no white space, keys in byte order: canonical bytes.  Caller frees. */
ingot_status ig_json_dump(const json_t *v, char **text, size_t *n, ingot_error *e);
/* A path or other text that may not be UTF-8; then escaped, for JSON holds nothing else. */
json_t *ig_text_json(const char *text);
json_t *ig_digest_json(const char *prefix, const uint8_t digest[IG_HASH]); /* "PREFIX<hex>" */

/* cpus.c */
unsigned ig_cpus(void); /* affinity mask and cgroup quota, at least 1 */

/* Progress and cancellation, passed down by whoever has a terminal; all may be NULL. */
struct ig_progress {
    void (*update)(void *ctx, uint64_t done, uint64_t total); /* any thread, one at a time */
    bool (*cancelled)(void *ctx);                             /* any thread */
    void *ctx;
};

#endif
