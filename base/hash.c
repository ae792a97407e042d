/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The EVP interface costs as much as a tenth of a 4096-byte hash in set-up; a tree is
 * nothing but such hashes, so libcrypto's plain SHA256_* functions are used although
 * OpenSSL 3 calls them deprecated.  They run the same assembly.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/base.h"

#include <openssl/sha.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct ig_sha), "ig_sha holds libcrypto's state");
_Static_assert(_Alignof(SHA256_CTX) <= _Alignof(struct ig_sha), "and is aligned for it");

static SHA256_CTX *ctx(struct ig_sha *h)
{
    return (SHA256_CTX *)(void *)h->state;
}

void ig_sha_init(struct ig_sha *h)
{
    SHA256_Init(ctx(h));
}

void ig_sha_update(struct ig_sha *h, const void *data, size_t n)
{
    SHA256_Update(ctx(h), data, n);
}

void ig_sha_final(struct ig_sha *h, uint8_t out[IG_HASH])
{
    SHA256_Final(out, ctx(h));
}

void ig_sha256(uint8_t out[IG_HASH], const void *data, size_t n)
{
    struct ig_sha h;
    ig_sha_init(&h);
    ig_sha_update(&h, data, n);
    ig_sha_final(&h, out);
}

void ig_leaf(uint8_t out[IG_HASH], const void *data, size_t n)
{
    static const uint8_t zeros[IG_PAGE];
    struct ig_sha h;
    ig_sha_init(&h);
    ig_sha_update(&h, data, n);
    ig_sha_update(&h, zeros, IG_PAGE - n);
    ig_sha_final(&h, out);
}

void ig_xxh128(uint8_t out[16], const void *data, size_t n)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, n));
    memcpy(out, canonical.digest, 16);
}

uint64_t ig_xxh64(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}

static XXH3_state_t *state(struct ig_xxh *x)
{
    return (XXH3_state_t *)(void *)x;
}

struct ig_xxh *ig_xxh_new(void)
{
    XXH3_state_t *s = XXH3_createState();
    if (s) XXH3_128bits_reset(s);
    return (struct ig_xxh *)(void *)s;
}

void ig_xxh_update(struct ig_xxh *x, const void *data, size_t n)
{
    XXH3_128bits_update(state(x), data, n);
}

void ig_xxh_final(struct ig_xxh *x, uint8_t out[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state(x)));
    memcpy(out, canonical.digest, 16);
    XXH3_128bits_reset(state(x));
}

void ig_xxh_free(struct ig_xxh *x)
{
    XXH3_freeState(state(x));
}
