/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for index.mdb.  The input spoils a real one: a byte of flags, then edits of
 * four bytes and what they say (see spoil).  With REPAIR the seal's hash is made right again, as
 * somebody who may write the store could do; LMDB itself would crash on many such files.
 *
 * Without REPAIR every answer must be the packs' own.  With it an entry may lie, for entries
 * are derived from packs and not checked against them; what is known without them may not.
 */
#include "store/index_private.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/mini_pack.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { REPAIR = 1, LARGE = 2 };
enum { PACKS = 3, MANY = 40, LONG_NAME = 9000 };
enum { EDIT = 4, EDIT_HEAD = 2, EDIT_NODE = 4, EDIT_COPY = 6, EDIT_SIZE = 7 };

struct store {
    struct ig_store s;
    bool packs;           /* its packs are there; else only the index is */
    struct ig_index want; /* what they say */
    uint8_t *image;       /* a good index.mdb */
    size_t size;
    char *path;
};

static void open_store(struct store *t)
{
    char *folder = fuzz_folder();
    check(ig_store_open(folder, true, &t->s, NULL) == INGOT_OK);
    free(folder);
    t->path = ig_store_path(&t->s, INDEX_FILE, NULL);
    check(t->path != NULL);
}

static void read_image(struct store *t)
{
    char *text;
    ingot_error e;
    check(ig_index_write(&t->s, &t->want, 0, &e) == INGOT_OK);
    check(ig_read_file(t->path, 1 << 20, &text, &t->size, &e) == INGOT_OK);
    check(t->size % IG_PAGE == 0);
    t->image = (uint8_t *)text;
}

/* A few packs, always the same bytes and times. */
static void make_small(struct store *t)
{
    static const char *const tensors[] = {"a", "b", "c"};
    const struct timespec times[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    open_store(t);
    t->packs = true;
    for (uint32_t i = 0; i < PACKS; i++) {
        struct mini_pack m = {.tensors = tensors, .ntensors = i + 1, .source = "m.safetensors"};
        uint8_t digest[IG_HASH];
        ig_put32(m.content, i);
        ig_put32(m.sha256, i / 2);
        m.derived = i == 2;
        if (i == 0) m.second = "n.safetensors";
        check(mini_pack_publish(&t->s, &m, digest, NULL) == INGOT_OK);
        char *path = ig_store_pack_path(&t->s, digest);
        check(path && utimensat(AT_FDCWD, path, times, 0) == 0);
        free(path);
    }
    check(ig_index_load(&t->s, false, &t->want, NULL) == INGOT_OK);
    read_image(t);
}

/* An index with a branch page and overflow pages, of packs that are not there. */
static void make_large(struct store *t)
{
    open_store(t);
    t->want.packs = ig_array(MANY, sizeof *t->want.packs);
    t->want.origins = ig_array(MANY, sizeof *t->want.origins);
    check(t->want.packs && t->want.origins);
    t->want.npacks = t->want.norigins = MANY;
    for (uint32_t i = 0; i < MANY; i++) {
        struct ig_summary *p = &t->want.packs[i];
        struct ig_origin *o = &t->want.origins[i];
        *p = (struct ig_summary){.digest = {(uint8_t)(i + 1)}, .size = 1000, .kind = "identity"};
        *o = (struct ig_origin){.sha256 = {(uint8_t)(3 * i + 1)}, .pack = i, .bytes = i};
        o->name = i % 16 ? strdup("model.safetensors") : malloc(LONG_NAME + 1);
        check(o->name != NULL);
        if (i % 16 == 0) memset(o->name, 'x', LONG_NAME), o->name[LONG_NAME] = '\0';
    }
    read_image(t);
}

static struct store stores[2];

static void clean_up(void)
{
    for (int i = 0; i < 2; i++) fuzz_folder_remove(stores[i].s.root);
}

static void same(const struct ig_index *a, const struct ig_index *b)
{
    check(a->npacks == b->npacks && a->norigins == b->norigins);
    for (size_t i = 0; i < a->npacks; i++) {
        const struct ig_summary *x = &a->packs[i], *y = &b->packs[i];
        check(!x->problem && !y->problem && !strcmp(x->kind, y->kind));
        check(memcmp(x->digest, y->digest, IG_HASH) == 0 && x->size == y->size);
        check(x->sec == y->sec && x->nsec == y->nsec && x->rules == y->rules);
        check(x->nsources == y->nsources && x->has_from == y->has_from);
        check(x->tensors == y->tensors && x->views == y->views && x->shadows == y->shadows);
        check(x->bytes == y->bytes && memcmp(x->content, y->content, IG_HASH) == 0);
        check(memcmp(x->from, y->from, IG_HASH) == 0);
        check(memcmp(x->dtype_tensors, y->dtype_tensors, sizeof x->dtype_tensors) == 0);
        check(memcmp(x->dtype_bytes, y->dtype_bytes, sizeof x->dtype_bytes) == 0);
    }
    for (size_t i = 0; i < a->norigins; i++) {
        const struct ig_origin *x = &a->origins[i], *y = &b->origins[i];
        check(memcmp(x->sha256, y->sha256, IG_HASH) == 0 && x->pack == y->pack);
        check(x->bytes == y->bytes && strcmp(x->name, y->name) == 0);
    }
}

/* What holds of any answer, whatever the index says. */
static void check_answer(const struct ig_index *index)
{
    for (size_t i = 0; i < index->npacks; i++) {
        const struct ig_summary *p = &index->packs[i];
        check(!i || memcmp(p[-1].digest, p->digest, IG_HASH) < 0);
        check(memchr(p->kind, 0, sizeof p->kind) != NULL);
        check_line(p->kind);
        check(ig_index_find(index, p->digest) == p);
    }
    for (size_t i = 0; i < index->norigins; i++) {
        const struct ig_origin *o = &index->origins[i];
        check(o->pack < index->npacks && ig_safe_path(o->name, strlen(o->name)));
        check(ig_utf8_valid(o->name, strlen(o->name)));
        check(!i || memcmp(o[-1].sha256, o->sha256, IG_HASH) <= 0);
    }
}

/* Where an edit goes: anywhere in the page, into its head, or into one of its nodes. */
static size_t place(const uint8_t *page, size_t offset, unsigned kind)
{
    if (kind < EDIT_HEAD) return offset;
    if (kind < EDIT_NODE) return offset % 192;
    return (ig_get16(page + 16 + 2 * (offset / 16 % 64)) + offset % 16) % IG_PAGE;
}

/*
 * Edits: offset in a page (2 bytes), page, kind and length (3 and 5 bits), then so many bytes to
 * stand there.  Or copy that page over the one whose number is in the offset; or make the file as
 * long as to end at that place.
 */
static uint8_t *spoil(const struct store *t, const uint8_t *data, size_t n, size_t *size)
{
    const size_t cap = t->size + 8 * IG_PAGE, pages = t->size / IG_PAGE;
    uint8_t *image = calloc(1, cap);
    check(image != NULL);
    memcpy(image, t->image, t->size);
    *size = t->size;
    while (n >= EDIT) {
        const size_t offset = ig_get16(data) % IG_PAGE, page = data[2] % pages;
        const unsigned kind = data[3] >> 5;
        size_t len = data[3] & 31;
        data += EDIT;
        n -= EDIT;
        if (kind == EDIT_COPY) {
            memmove(image + offset % pages * IG_PAGE, image + page * IG_PAGE, IG_PAGE);
        } else if (kind == EDIT_SIZE) {
            *size = (len & 8 ? page : page + 8) * IG_PAGE + (len & 1 ? offset : 0);
        } else {
            uint8_t *p = image + page * IG_PAGE;
            if (len > n) len = n;
            memcpy(p + place(p, offset, kind), data, len);
            data += len;
            n -= len;
        }
    }
    return image;
}

static void repair(const struct store *t, uint8_t *image, size_t size)
{
    uint8_t hash[16];
    if (size <= SEAL_BYTES) return;
    uint8_t *seal = image + size - SEAL_BYTES;
    if (size != t->size) {
        memcpy(seal, t->image + t->size - SEAL_BYTES, SEAL_BYTES);
        ig_put64(seal + SEAL_LENGTH, size - SEAL_BYTES);
    }
    memset(seal + SEAL_XXH, 0, sizeof hash);
    ig_xxh128(hash, image, size);
    memcpy(seal + SEAL_XXH, hash, sizeof hash);
}

/* Packs that are there: the index fails never, and says what it had to do. */
static void load(const struct store *t, bool repaired, bool intact)
{
    struct ig_index got;
    ingot_error e;
    check(ig_index_load(&t->s, false, &got, &e) == INGOT_OK);
    check_answer(&got);
    check(got.npacks == t->want.npacks);
    for (size_t i = 0; i < got.npacks; i++) {
        const struct ig_summary *x = &got.packs[i], *y = &t->want.packs[i];
        check(memcmp(x->digest, y->digest, IG_HASH) == 0 && x->size == y->size);
        check(x->sec == y->sec && x->nsec == y->nsec && !x->problem);
    }
    if (!repaired || got.opened == got.npacks) same(&t->want, &got);
    if (intact) check(got.opened == 0 && !got.notice);
    if (!repaired && !intact) check(got.opened == got.npacks && got.notice);
    if (got.notice) check_line(got.notice);
    ig_index_free(&got);
}

static void read_only(const struct store *t, bool repaired, bool intact)
{
    struct ig_index got;
    ingot_error e;
    const ingot_status status = ig_index_read(&t->s, &got, &e);
    if (status == INGOT_OK) {
        check_answer(&got);
        check(repaired || intact);
        if (intact) same(&t->want, &got);
    } else {
        check_error(&e, status);
        check(!intact && (status == INGOT_ERR_PACK || status == INGOT_ERR_UNSUPPORTED));
        check(!got.packs && !got.origins);
    }
    ig_index_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    if (!stores[0].path) {
        make_small(&stores[0]);
        make_large(&stores[1]);
        atexit(clean_up);
    }
    if (!size) return 0;
    const struct store *t = &stores[data[0] & LARGE ? 1 : 0];
    uint8_t *image = spoil(t, data + 1, size - 1, &n);
    if (data[0] & REPAIR) repair(t, image, n);
    const bool intact = n == t->size && memcmp(image, t->image, n) == 0;
    const int fd = open(t->path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0 && ig_pwrite(fd, t->path, image, n, 0, NULL) == INGOT_OK);
    close(fd);
    free(image);
    if (t->packs)
        load(t, data[0] & REPAIR, intact);
    else
        read_only(t, data[0] & REPAIR, intact);
    return 0;
}
