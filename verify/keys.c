/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in PEM files, and where the passphrase of a secret one comes from. */
#include "verify/sign.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_MOST    ((size_t)1 << 20)
#define PHRASE_MOST 1024

/* model_signing names a key by the SHA-256 of its PEM text, as libcrypto writes that. */
static bool make_hint(struct ig_key *k)
{
    uint8_t sha[IG_HASH];
    char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    const bool ok = bio && PEM_write_bio_PUBKEY(bio, k->pkey) == 1;
    const long n = ok ? BIO_get_mem_data(bio, &text) : 0;
    if (ok) ig_sha256(sha, text, (size_t)n);
    if (ok) ig_hex(k->hint, sha, IG_HASH);
    BIO_free(bio);
    return ok;
}

ingot_status ig_key_take(EVP_PKEY *pkey, const char *what, struct ig_key *out, ingot_error *e)
{
    static const struct {
        const char *group, *curve;
        const EVP_MD *(*md)(void);
    } known[] = {{"prime256v1", "P-256", EVP_sha256},
                 {"secp384r1", "P-384", EVP_sha384},
                 {"secp521r1", "P-521", EVP_sha512}};
    char group[64] = "";
    *out = (struct ig_key){.pkey = pkey};
    const bool ec = EVP_PKEY_is_a(pkey, "EC") == 1 &&
                    EVP_PKEY_get_group_name(pkey, group, sizeof group, NULL) == 1;
    for (size_t i = 0; ec && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(group, known[i].group) == 0) {
            out->curve = known[i].curve;
            out->md = known[i].md();
        }
    if (out->curve && make_hint(out)) return INGOT_OK;
    const char *type = EVP_PKEY_get0_type_name(pkey);
    ig_fail(e, INGOT_ERR_UNSUPPORTED,
            "%s: %s%s%s is not a kind of key for models: P-256, P-384 or P-521", what,
            type ? type : "this", *group ? " " : "", group);
    ig_key_free(out);
    return INGOT_ERR_UNSUPPORTED;
}

void ig_key_free(struct ig_key *k)
{
    EVP_PKEY_free(k->pkey);
    *k = (struct ig_key){0};
}

/* ---- passphrases ---- */

static int first_line(char *buf, int cap, int n)
{
    for (int i = 0; i < n && i < cap; i++)
        if (buf[i] == '\n' || buf[i] == '\r') return i;
    return n;
}

static int from_fd(int fd, char *buf, int cap)
{
    int n = 0;
    while (n < cap) {
        const ssize_t k = read(fd, buf + n, (size_t)(cap - n));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) break;
        n += (int)k;
        if (memchr(buf, '\n', (size_t)n)) break;
    }
    return first_line(buf, cap, n);
}

struct asked {
    const struct ig_passphrase *from;
    bool was;
};

/* libcrypto's callback: it is called only for a key that is encrypted. */
static int passphrase(char *buf, int cap, int writing, void *ctx)
{
    struct asked *a = ctx;
    const struct ig_passphrase *p = a->from;
    const char *value = p->name ? getenv(p->name) : NULL;
    (void)writing;
    a->was = true;
    if (p->fd >= 0) return from_fd(p->fd, buf, cap);
    if (value) {
        const size_t n = strlen(value);
        if (n > (size_t)cap) return -1;
        memcpy(buf, value, n);
        return (int)n;
    }
    if (!p->prompt || EVP_read_pw_string(buf, cap, "Passphrase of the key: ", 0) != 0) return -1;
    return (int)strlen(buf);
}

/* ---- files ---- */

static ingot_status read_pem(const char *path, char **text, size_t *n, ingot_error *e)
{
    const ingot_status status = ig_read_file(path, KEY_MOST, text, n, e);
    return status == INGOT_OK ? status : ig_at(e, path, NULL, 0);
}

static ingot_status no_key(const char *path, const char *what, ingot_error *e)
{
    ig_fail(e, INGOT_ERR_INPUT, "%s: expected %s in PEM: %s", ig_esc(path, strlen(path)).s, what,
            ig_ssl_error());
    return ig_at(e, path, NULL, 0);
}

ingot_status ig_key_read_public(const char *path, struct ig_key *out, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    *out = (struct ig_key){0};
    return_if_error(read_pem(path, &text, &n, e));
    BIO *bio = BIO_new_mem_buf(text, (int)n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    free(text);
    return pkey ? ig_key_take(pkey, path, out, e) : no_key(path, "a public key", e);
}

ingot_status ig_key_read_private(const char *path, const struct ig_passphrase *from,
                                 struct ig_key *out, bool *loose, ingot_error *e)
{
    char *text = NULL;
    size_t n = 0;
    struct stat st;
    struct asked asked = {.from = from};
    *out = (struct ig_key){0};
    return_if_error(read_pem(path, &text, &n, e));
    *loose = stat(path, &st) == 0 && (st.st_mode & 077) != 0;
    BIO *bio = BIO_new_mem_buf(text, (int)n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, passphrase, &asked) : NULL;
    BIO_free(bio);
    OPENSSL_cleanse(text, n);
    free(text);
    if (pkey) return ig_key_take(pkey, path, out, e);
    if (!asked.was) return no_key(path, "a private key", e);
    (void)ig_ssl_error(); /* says no more than this, in worse words */
    ig_fail(e, INGOT_ERR_INPUT,
            "%s: the key is encrypted, and the passphrase is wrong or there is none",
            ig_esc(path, strlen(path)).s);
    return ig_at(e, path, NULL, 0);
}
