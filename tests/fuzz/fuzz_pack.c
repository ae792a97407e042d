/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target for packs: opening, a full check, and all that a reader offers.  The input is
 * a byte of flags and pieces, each a length (2 bytes) and bytes: the start of page 0, the weights,
 * the tail's first page, the region table, and the regions that are not empty, each of which
 * begins on the next page; tests/fuzz/seeds.py makes them of real packs.  The flags let hashes
 * (REPAIR_*) and offsets and lengths (FIT) follow what was changed, so that the rules behind them
 * are reached.
 */
#include "store/pack_private.h"
#include "tests/fuzz/pack_pieces.h"
#include "tests/fuzz/pack_print.h"
#include "verify/verify.h"

static void check_row(const struct ig_pack *p, uint32_t i)
{
    struct ig_row r;
    struct ig_extent x;
    struct ig_link l;
    ig_pack_row(p, i, &r);
    check(r.name_len && ig_utf8_valid(r.name, r.name_len) && !memchr(r.name, 0, r.name_len));
    unsigned __int128 n = 1;
    for (uint32_t d = 0; d < r.rank; d++) check((n *= r.shape[d]) <= UINT64_MAX);
    check(n * ig_dtypes[r.dtype].bits == (unsigned __int128)r.bytes * 8);
    if (r.bytes) {
        ig_pack_extent(p, r.extent, &x);
        check(r.extent < p->nextents && r.bytes <= x.bytes && r.offset <= x.bytes - r.bytes);
        check(ig_pack_pos(p, &r) >= p->weights && ig_pack_pos(p, &r) + r.bytes <= p->tail);
    }
    if (r.flags & IG_ROW_VIEW) check(r.source == IG_NONE);
    if (r.source != IG_NONE) {
        check(r.source < p->nsources && r.nlinks <= p->nlinks);
        check(ig_pack_find_in(p, r.name, r.name_len, r.source) == i);
    }
    check((r.flags & IG_ROW_SHADOW) || ig_pack_find(p, r.name, r.name_len) == i);
    for (uint32_t k = r.link; k < r.link + r.nlinks; k++) {
        ig_pack_link(p, k, &l);
        check(k < p->nlinks && l.subject == i);
    }
}

static void check_link(const struct ig_pack *p, uint32_t i)
{
    struct ig_link l, before;
    ig_pack_link(p, i, &l);
    if (i) {
        ig_pack_link(p, i - 1, &before);
        check(ig_link_cmp(&before, &l) < 0);
    }
    check(l.object < p->nrows && (l.subject < p->nrows || l.subject == IG_NONE));
    check((l.subject == IG_NONE) == (l.module_len > 0));
    check(ig_utf8_valid(l.module, l.module_len) && ig_utf8_valid(l.pointer, l.pointer_len));
    check(l.role >= IG_ROLE_WEIGHT && l.role <= IG_ROLE_OUTPUT && l.op <= IG_OP_DIVIDE);
    check(l.gran >= IG_GRAN_TENSOR && l.gran <= IG_GRAN_UNKNOWN && l.logical < IG_DTYPES);
    check(l.packing <= IG_PACK_LOW_FIRST && l.encoding <= IG_ENC_E8M0);
    check(l.blob < p->nblobs || l.blob == IG_NONE);
}

/* As a second reader would say it: bytes of all rows that start inside, the tied pair once. */
static void check_view(const struct ig_pack *p, const struct ig_row *view)
{
    const uint64_t at = ig_pack_pos(p, view);
    uint64_t sum = 0;
    bool tied = false, begins = !view->bytes;
    for (uint32_t i = 0; i < p->nrows && view->bytes; i++) {
        struct ig_row r;
        ig_pack_row(p, i, &r);
        const uint64_t pos = ig_pack_pos(p, &r);
        if (r.flags & IG_ROW_VIEW || !r.bytes || pos < at || pos >= at + view->bytes) continue;
        if (r.flags & IG_ROW_TIED && tied) continue;
        tied = tied || r.flags & IG_ROW_TIED;
        begins = begins || pos == at;
        sum += r.bytes;
    }
    check(begins && sum == view->bytes);
}

static void check_dtypes(const struct ig_pack *p)
{
    bool used[IG_DTYPES] = {false};
    struct ig_row r;
    struct ig_link l;
    for (uint32_t i = 0; i < p->nrows; i++) ig_pack_row(p, i, &r), used[r.dtype] = true;
    for (uint32_t i = 0; i < p->nlinks; i++) ig_pack_link(p, i, &l), used[l.logical] = true;
    for (uint32_t i = 0; i < p->t->ndtypes; i++) check(used[p->t->dtypes[i]]);
}

/* What only a full check can know. */
static void check_good(const struct ig_pack *p)
{
    uint32_t tied = 0, headers = 0;
    for (uint32_t i = 0; i < p->nrows; i++) {
        struct ig_row r;
        ig_pack_row(p, i, &r);
        tied += (r.flags & IG_ROW_TIED) != 0;
        if (r.flags & IG_ROW_VIEW) check_view(p, &r);
        check(!(r.flags & IG_ROW_SHADOW) || !ig_pack_is_derived(p));
    }
    for (uint32_t i = 0; i < p->nblobs; i++) {
        struct ig_blob b;
        ig_pack_blob(p, i, &b);
        headers += b.kind == IG_BLOB_HEADER;
    }
    check(tied == 0 || tied == 2);
    check(headers == (ig_pack_is_derived(p) ? 0 : p->nsources));
}

static void check_blob(const struct ig_pack *p, uint32_t i, bool good)
{
    struct ig_blob b;
    char *data, name[8192];
    size_t n;
    ingot_error e;
    ig_pack_blob(p, i, &b);
    check(ig_safe_path(b.name, b.name_len) && ig_utf8_valid(b.name, b.name_len));
    const ingot_status status = ig_pack_read_blob(p, i, &data, &n, &e);
    check(!good || status == INGOT_OK);
    if (status == INGOT_OK) {
        check(n == b.bytes && data[n] == '\0');
        free(data);
    } else {
        check_error(&e, status);
    }
    if (b.name_len >= sizeof name || memchr(b.name, 0, b.name_len)) return;
    memcpy(name, b.name, b.name_len);
    name[b.name_len] = '\0';
    check(ig_pack_find_blob(p, name, b.kind) == i);
}

static char *folder; /* for exports */

static void clean_up(void)
{
    fuzz_folder_remove(folder);
}

static void export_all(const struct ig_pack *p, bool good)
{
    if (!folder) {
        folder = fuzz_folder();
        atexit(clean_up);
    }
    export_to(p, folder, good);
}

/* All that a reader offers; digest: of a pack in which a full check found nothing wrong. */
static void walk(const char *path, const uint8_t *digest, unsigned flags)
{
    struct ig_pack p;
    ingot_error e;
    const ingot_status status = ig_pack_open(path, &p, &e);
    if (status != INGOT_OK) {
        check_error(&e, status);
        check(!digest && !p.t);
        return;
    }
    for (uint32_t i = 0; i < p.nrows; i++) check_row(&p, i);
    for (uint32_t i = 0; i < p.nlinks; i++) check_link(&p, i);
    check_dtypes(&p);
    for (uint32_t i = 0; i < p.nblobs; i++) check_blob(&p, i, digest);
    ig_pack_find(&p, "model.layers.0.self_attn.q_proj.weight", 38);
    if (flags & SHOW) show_all(&p);
    if (flags & EXPORT) export_all(&p, digest);
    if (digest) {
        check_good(&p);
        uint8_t wrong[IG_HASH];
        memcpy(wrong, digest, IG_HASH);
        wrong[0] ^= 1;
        check(ig_pack_prove(&p, digest, &e) == INGOT_OK);
        check(ig_pack_prove(&p, wrong, &e) == INGOT_ERR_CHECK);
    } else {
        const uint8_t none[IG_HASH] = {0};
        check(ig_pack_prove(&p, none, &e) != INGOT_OK);
    }
    ig_pack_close(&p);
}

static bool verify(const char *path, enum ig_level level, bool sources, uint8_t digest[IG_HASH])
{
    static const char prefix[] = "fsverity-sha256:";
    struct ig_verify v = {.level = level, .self = true, .threads = 1};
    if (sources) v.source = "/nonexistent";
    json_t *report;
    ingot_error e;
    size_t i;
    json_t *bad;
    check(ig_verify_pack(path, "fuzz", NULL, &v, &report, &e) == INGOT_OK);
    json_t *list = json_object_get(report, "bad");
    const bool good = json_is_true(json_object_get(report, "ok"));
    check(good == (json_array_size(list) == 0));
    json_array_foreach(list, i, bad)
    {
        const char *text = json_string_value(json_object_get(bad, "text"));
        check(json_is_string(json_object_get(bad, "kind")));
        if (text) check_line(text);
    }
    const char *hex = json_string_value(json_object_get(report, "digest"));
    if (good && level == IG_LEVEL_FULL)
        check(hex && ig_unhex(digest, IG_HASH, hex + sizeof prefix - 1));
    json_decref(report);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct pieces p;
    uint8_t digest[IG_HASH];
    char path[40];
    if (!size) return 0;
    cut(&p, data + 1, size - 1);
    lay_out(&p);
    if (data[0] & FIT) fit(&p);
    if (data[0] & (REPAIR_SUPERBLOCK | REPAIR_ALL)) repair(&p, data[0]);
    fill_file(&fd, path, image, image_size);
    const bool sources = data[0] & SOURCES;
    const bool good = verify(path, IG_LEVEL_FULL, sources, digest);
    /* What the longest check accepts, the shorter ones do. */
    if (good) check(verify(path, IG_LEVEL_FAST, false, NULL));
    if (good) check(verify(path, IG_LEVEL_QUICK, false, NULL));
    walk(path, good ? digest : NULL, data[0]);
    return 0;
}
