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
    int sys_errno;         /* errno of the failing call, or 0 */
    int has_offset;        /* offset is meaningful */
    uint64_t offset;       /* byte offset inside file */
    char message[4096];    /* the whole line, no newline, names everything below */
    char file[512];        /* the file concerned, or "" */
    char tensor[256];      /* the tensor concerned, or "" */
} ingot_error;

/* Version of the library that runs, "MAJOR.MINOR.PATCH"; static storage. */
INGOT_API const char *ingot_version(void);

/* Lower-case name of a status, such as "bad_input"; static storage. */
INGOT_API const char *ingot_status_name(ingot_status status);

/* Exit code of the command line for a status: 0, 1, 2, 3 or 4 (ingot(1)). */
INGOT_API int ingot_exit_code(ingot_status status);

#ifdef __cplusplus
}
#endif
#endif
