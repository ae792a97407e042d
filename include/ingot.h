/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libingot: hashed, page-aligned packs of safetensors checkpoints.
 *
 * Every function that can fail returns an ingot_status and, when the caller
 * passes an ingot_error, fills it.  The library never prints, never exits,
 * installs no signal handler and keeps no global state; handles may be used
 * from any thread, one thread at a time.
 */
#ifndef INGOT_H
#define INGOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define INGOT_API __attribute__((visibility("default")))
#else
#define INGOT_API
#endif

#define INGOT_DIGEST_BYTES 32

/* What happened.  The text form is ingot_status_name(). */
typedef enum ingot_status {
    INGOT_OK = 0,
    INGOT_ERR_CHECK,       /* a verification or comparison failed */
    INGOT_ERR_USAGE,       /* the call itself is wrong: option, name, argument */
    INGOT_ERR_INPUT,       /* a source file or folder is malformed or incomplete */
    INGOT_ERR_PACK,        /* a pack, tree or index violates ingot-pack(5) */
    INGOT_ERR_UNSUPPORTED, /* well-formed, but a feature this build does not know */
    INGOT_ERR_NOT_FOUND,   /* no such model, name, tensor or file */
    INGOT_ERR_EXISTS,      /* would replace something it was not told to replace */
    INGOT_ERR_BUSY,        /* another process holds what this one needs */
    INGOT_ERR_IO,          /* the system refused a read, write or sync; see sys_errno */
    INGOT_ERR_NO_SPACE,    /* ENOSPC, EDQUOT, EFBIG, or too little free space */
    INGOT_ERR_NO_MEMORY,   /* an allocation failed */
    INGOT_ERR_CANCELLED    /* the caller asked to stop */
} ingot_status;

/*
 * One failure, in one line.  Plain data: no ownership, copy it freely.
 * Untrusted text inside is escaped and, past the sizes below, cut with "...".
 */
typedef struct ingot_error {
    ingot_status status;
    int sys_errno;      /* errno of the failing call, or 0 */
    int has_offset;     /* offset is meaningful */
    uint64_t offset;    /* byte offset inside file */
    char message[4096]; /* the whole line, no newline, names everything below */
    char file[512];     /* the file concerned, or "" */
    char tensor[256];   /* the tensor concerned, or "" */
} ingot_error;

/* Version of the library that runs, "MAJOR.MINOR.PATCH"; static storage. */
INGOT_API const char *ingot_version(void);

/* Lower-case name of a status, such as "bad_input"; static storage. */
INGOT_API const char *ingot_status_name(ingot_status status);

/* Exit code of the command line for a status: 0, 1, 2, 3 or 4 (ingot(1)). */
INGOT_API int ingot_exit_code(ingot_status status);

/*
 * Models.  `store` is the folder that keeps packs, NULL for the default of ingot-store(5);
 * `model` is a name, a digest or a path, as on the command line.
 *
 * Reports are JSON texts, the same that the commands print with --json; free them with
 * ingot_free.  Pass NULL for a report that is not wanted.
 */
INGOT_API void ingot_free(void *memory);

/* Convert a folder, hub snapshot or safetensors file and give it a name (NULL: its own). */
INGOT_API ingot_status ingot_convert(const char *store, const char *source, const char *name,
                                     char **report, ingot_error *e);

/* Check a model, hashing every byte by SHA-256.  INGOT_ERR_CHECK when it is not what its digest
 * says; the report then lists every bad place. */
INGOT_API ingot_status ingot_verify(const char *store, const char *model, char **report,
                                    ingot_error *e);

/* Write the original files into a new folder. */
INGOT_API ingot_status ingot_export(const char *store, const char *model, const char *folder,
                                    ingot_error *e);

/* An open pack.  Its tables are private memory, proven against the digest where one is known
 * (a name, a digest, a path that ends in <64 hex>.ingot); weights are read when asked for. */
typedef struct ingot_pack ingot_pack;

/* A tensor or view of a pack; pointers live as long as the pack is open. */
typedef struct ingot_tensor {
    const char *name;      /* not NUL-terminated */
    size_t name_len;       /* bytes */
    const char *dtype;     /* "F16", "BF16", ...: the names of safetensors */
    uint32_t rank;         /* 0 is a scalar */
    const uint64_t *shape; /* rank dimensions, row-major, the slowest first */
    uint64_t bytes;
    uint64_t offset;                    /* of the first byte in the pack file; 0 when bytes is 0 */
    int is_view;                        /* several tensors as one, such as a fused q, k, v */
    uint8_t digest[INGOT_DIGEST_BYTES]; /* fs-verity SHA-256 of the bytes */
} ingot_tensor;

INGOT_API ingot_status ingot_pack_open(const char *store, const char *model, ingot_pack **out,
                                       ingot_error *e);
INGOT_API void ingot_pack_close(ingot_pack *pack); /* NULL is fine */
/* 1 and the pack's digest when the tables were proven against one, else 0. */
INGOT_API int ingot_pack_digest(const ingot_pack *pack, uint8_t digest[INGOT_DIGEST_BYTES]);
INGOT_API uint32_t ingot_pack_count(const ingot_pack *pack); /* tensors and views */
/* The i-th in ascending order of names; INGOT_ERR_USAGE when there are not as many. */
INGOT_API ingot_status ingot_pack_tensor(const ingot_pack *pack, uint32_t i, ingot_tensor *out,
                                         ingot_error *e);
/* By name (NUL-terminated); INGOT_ERR_NOT_FOUND. */
INGOT_API ingot_status ingot_pack_find(const ingot_pack *pack, const char *name, ingot_tensor *out,
                                       ingot_error *e);
/* Read a tensor into buffer (tensor->bytes of room) and hash what was read: INGOT_ERR_CHECK, and
 * zeros in the buffer, when it is not what the tensor's digest says. */
INGOT_API ingot_status ingot_pack_read(const ingot_pack *pack, const ingot_tensor *tensor,
                                       void *buffer, ingot_error *e);

#ifdef __cplusplus
}
#endif

#include "ingot_load.h"
#include "ingot_trust.h"

#endif
