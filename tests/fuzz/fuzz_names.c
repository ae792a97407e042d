/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for the names of a store.  The first byte chooses what the rest is: a name
 * ('0'), what stands in a file under names/ ('1'), or a MODEL argument ('2').  A name that is
 * accepted lies in names/, nowhere else, and can be written, listed, resolved and removed; a name
 * file is accepted only as it would be written; what MODEL means is a pack of the store, or the
 * path that it says it is.
 */
#include "store/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/mini_pack.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#define KNOWN "org/model-7b"

static struct ig_store store;
static uint8_t digest[IG_HASH];
static char *pack, *known, *names;

static void clean_up(void)
{
    fuzz_folder_remove(store.root);
}

static void set_up(void)
{
    static const char *const tensors[] = {"a", "b"};
    struct mini_pack m = {.tensors = tensors, .ntensors = 2, .source = "m.safetensors"};
    char *folder = fuzz_folder();
    check(ig_store_open(folder, true, &store, NULL) == INGOT_OK);
    free(folder);
    atexit(clean_up);
    for (uint8_t i = 0; i < 2; i++) {
        m.content[0] = i;
        m.sha256[0] = 0xab;
        m.sha256[4] = i;
        check(mini_pack_publish(&store, &m, digest, NULL) == INGOT_OK);
    }
    check(ig_name_write(&store, KNOWN, digest, false, NULL) == INGOT_OK);
    pack = ig_store_pack_path(&store, digest);
    names = ig_store_path(&store, "names", NULL);
    known = ig_store_path(&store, "names", KNOWN);
    check(pack && names && known);
}

/* The rules of ingot-store(5), said once more. */
static bool is_name(const char *s)
{
    const size_t n = strlen(s);
    size_t hex = 0, slashes = 0;
    if (n < 1 || n > 255) return false;
    for (size_t i = 0; i < n; i++) {
        const bool first = i == 0 || s[i - 1] == '/', word = isascii(s[i]) && isalnum(s[i]);
        if (!word && (first || !strchr("._-/", s[i]))) return false;
        slashes += s[i] == '/';
        hex += isascii(s[i]) && isxdigit(s[i]);
    }
    return s[n - 1] != '/' && slashes < 4 && !(hex == n && n >= 8) &&
           !(n >= 6 && memcmp(s + n - 6, ".ingot", 6) == 0);
}

static void resolves_to_pack(const char *model, const char *name)
{
    struct ig_ref ref;
    ingot_error e;
    check(ig_store_resolve(&store, model, &ref, &e) == INGOT_OK);
    check(ref.has_digest && memcmp(ref.digest, digest, IG_HASH) == 0);
    check(strcmp(ref.path, pack) == 0 && ref.name && strcmp(ref.name, name) == 0);
    ig_ref_free(&ref);
}

static void is_listed(const char *name)
{
    struct ig_name *list;
    size_t n, seen = 0;
    check(ig_names_list(&store, &list, &n, NULL) == INGOT_OK);
    for (size_t i = 0; i < n; i++) {
        check(ig_name_check(list[i].name, NULL) == INGOT_OK);
        if (strcmp(list[i].name, name) != 0) continue;
        check(list[i].has_digest && !list[i].problem);
        check(memcmp(list[i].digest, digest, IG_HASH) == 0);
        seen++;
    }
    check(seen == 1);
    ig_names_free(list, n);
}

/* Beside KNOWN no name can stand that differs only in case, or would be its folder. */
static bool clashes(const char *name)
{
    const size_t n = strlen(name), k = strlen(KNOWN);
    const size_t least = n < k ? n : k;
    if (strcmp(name, KNOWN) == 0 || strncasecmp(name, KNOWN, least) != 0) return false;
    return n == k || (n < k ? KNOWN[n] : name[k]) == '/';
}

static void try_name(const char *name)
{
    ingot_error e;
    uint8_t found[IG_HASH];
    ingot_status status = ig_name_check(name, &e);
    check((status == INGOT_OK) == is_name(name));
    if (status != INGOT_OK) {
        check_error(&e, status);
        check(status == INGOT_ERR_USAGE);
        check(ig_name_write(&store, name, digest, true, NULL) == INGOT_ERR_USAGE);
        check(ig_name_read(&store, name, found, NULL) == INGOT_ERR_USAGE);
        check(ig_name_remove(&store, name, NULL) == INGOT_ERR_USAGE);
        return;
    }
    check(ig_safe_path(name, strlen(name)));
    status = ig_name_write(&store, name, digest, false, &e);
    if (clashes(name)) {
        check(status == INGOT_ERR_EXISTS);
        check_error(&e, status);
        return;
    }
    check(status == INGOT_OK && ig_name_read(&store, name, found, &e) == INGOT_OK);
    check(memcmp(found, digest, IG_HASH) == 0);
    resolves_to_pack(name, name);
    is_listed(name);
    if (strcmp(name, KNOWN) == 0) return;
    check(ig_name_remove(&store, name, &e) == INGOT_OK);
    check(ig_name_read(&store, name, found, &e) == INGOT_ERR_NOT_FOUND);
}

/* What KNOWN's file says; only the one text is right. */
static void try_content(const uint8_t *data, size_t n)
{
    uint8_t found[IG_HASH];
    char hex[2 * IG_HASH + 1];
    ingot_error e;
    struct ig_name *list;
    size_t count;
    const int fd = open(known, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
    check(fd >= 0 && ig_pwrite(fd, known, data, n, 0, NULL) == INGOT_OK);
    close(fd);
    const ingot_status status = ig_name_read(&store, KNOWN, found, &e);
    check(ig_names_list(&store, &list, &count, NULL) == INGOT_OK && count == 1);
    check((status == INGOT_OK) == !list[0].problem);
    if (list[0].problem) check_line(list[0].problem);
    if (status == INGOT_OK) {
        ig_hex(hex, found, IG_HASH);
        char *want = ig_format("fsverity-sha256:%s %s\n", hex, KNOWN);
        check(want && strlen(want) == n && memcmp(want, data, n) == 0);
        check(list[0].has_digest && memcmp(list[0].digest, found, IG_HASH) == 0);
        free(want);
    } else {
        check(status == INGOT_ERR_PACK);
        check_error(&e, status);
    }
    ig_names_free(list, count);
    check(ig_name_write(&store, KNOWN, digest, true, &e) == INGOT_OK);
    resolves_to_pack(KNOWN, KNOWN);
}

static void try_model(const char *model)
{
    struct ig_ref ref;
    ingot_error e;
    const size_t n = strlen(model);
    const bool path =
        model[0] == '/' || model[0] == '.' || (n >= 6 && memcmp(model + n - 6, ".ingot", 6) == 0);
    const ingot_status status = ig_store_resolve(&store, model, &ref, &e);
    if (status != INGOT_OK) {
        check_error(&e, status);
        check(!ref.path && !ref.name);
        return;
    }
    if (path) {
        check(strcmp(ref.path, model) == 0 && !ref.name);
    } else {
        char *file = ig_store_pack_path(&store, ref.digest);
        check(file && ref.has_digest && strcmp(ref.path, file) == 0 && access(file, F_OK) == 0);
        check(!ref.name || (strcmp(ref.name, model) == 0 && is_name(model)));
        free(file);
    }
    ig_ref_free(&ref);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!store.root) set_up();
    if (!size) return 0;
    char *text = malloc(size);
    check(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        try_name(text);
        break;
    case 1:
        try_content(data + 1, size - 1);
        break;
    default:
        try_model(text);
    }
    free(text);
    return 0;
}
