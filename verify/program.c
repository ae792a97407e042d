/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs.  The files are those that the kernel has mapped, whatever their paths lead to by now:
 * the executable through /proc/self/exe, a shared library by the device and inode in
 * /proc/self/maps.
 */
#include "config.h"

#include "verify/receipt.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the build id, from the notes in memory ---- */

struct wanted {
    uintptr_t address;
    char id[2 * 64 + 1];
};

static void read_notes(const uint8_t *at, size_t n, char id[2 * 64 + 1])
{
    while (n >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) h;
        memcpy(&h, at, sizeof h);
        const size_t name = ig_round_up(h.n_namesz, 4), desc = ig_round_up(h.n_descsz, 4);
        if (name > n - sizeof h || desc > n - sizeof h - name) return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && h.n_descsz <= 64 &&
            memcmp(at + sizeof h, "GNU", 4) == 0)
            ig_hex(id, at + sizeof h + name, h.n_descsz);
        at += sizeof h + name + desc;
        n -= sizeof h + name + desc;
    }
}

static int find_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct wanted *w = ctx;
    bool here = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + h->p_vaddr;
        here |= h->p_type == PT_LOAD && w->address >= from && w->address < from + h->p_memsz;
    }
    for (int i = 0; here && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            read_notes((const uint8_t *)(info->dlpi_addr + h->p_vaddr), h->p_memsz, w->id);
    }
    return here;
}

/* ---- the file that an address is mapped from ---- */

struct mapped {
    unsigned long inode;
    char path[4096];
};

static bool find_map(uintptr_t address, struct mapped *out)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    while (f && !found && getline(&line, &cap, f) > 0) {
        uintptr_t from, to;
        unsigned long inode;
        int at = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %n", &from, &to, &inode, &at) != 3 || !at)
            continue;
        if (address < from || address >= to) continue;
        line[strcspn(line, "\n")] = '\0';
        out->inode = inode;
        snprintf(out->path, sizeof out->path, "%s", line + at);
        found = true;
    }
    free(line);
    if (f) fclose(f);
    return found;
}

static json_t *object_json(const char *path, const uint8_t *sha256, uintptr_t address)
{
    struct wanted w = {.address = address};
    const char *slash = strrchr(path, '/');
    dl_iterate_phdr(find_object, &w);
    return json_pack("{s:o,s:o,s:s?}", "name", ig_text_json(slash ? slash + 1 : path), "sha256",
                     sha256 ? ig_digest_json("", sha256) : json_null(), "build_id",
                     *w.id ? w.id : NULL);
}

/* NULL where this code is part of the executable. */
static ingot_status library_json(ino_t executable, json_t **out, ingot_error *e)
{
    const uintptr_t address = (uintptr_t)&ig_program_json;
    uint8_t sha256[IG_HASH];
    struct mapped m;
    struct stat st;
    *out = json_null();
    if (!find_map(address, &m) || m.inode == executable) return INGOT_OK;
    const int fd = open(m.path, O_RDONLY | O_CLOEXEC);
    /* Replaced since it was mapped: then what runs cannot be hashed any more. */
    const bool same = fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == m.inode;
    ingot_status status = same ? ig_sha256_fd(fd, m.path, sha256, NULL, e) : INGOT_OK;
    if (fd >= 0) close(fd);
    if (status == INGOT_OK && !(*out = object_json(m.path, same ? sha256 : NULL, address)))
        status = ig_no_memory(e);
    return status;
}

/* An address inside the executable; the kernel's word for its entry is one. */
static uintptr_t executable_address(void)
{
    FILE *f = fopen("/proc/self/auxv", "re");
    ElfW(auxv_t) a;
    uintptr_t entry = 0;
    while (f && fread(&a, sizeof a, 1, f) == 1)
        if (a.a_type == AT_ENTRY) entry = a.a_un.a_val;
    if (f) fclose(f);
    return entry;
}

ingot_status ig_program_json(json_t **out, ingot_error *e)
{
    uint8_t sha256[IG_HASH];
    struct stat st = {0};
    char path[4096] = "";
    json_t *library = NULL;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ig_fail_sys(e, errno, "/proc/self/exe: cannot open");
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    ingot_status status =
        fstat(fd, &st) == 0 ? INGOT_OK : ig_fail_sys(e, errno, "/proc/self/exe: cannot stat");
    if (status == INGOT_OK) status = ig_sha256_fd(fd, "/proc/self/exe", sha256, NULL, e);
    close(fd);
    if (status == INGOT_OK) status = library_json(st.st_ino, &library, e);
    if (status != INGOT_OK) return status;
    *out = json_pack("{s:s,s:o,s:o}", "version", PACKAGE_VERSION, "executable",
                     object_json(n > 0 ? path : "?", sha256, executable_address()), "library",
                     library);
    return *out ? INGOT_OK : ig_no_memory(e);
}
