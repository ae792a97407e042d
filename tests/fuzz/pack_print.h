/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program makes of an open pack: its lines for people, which must not drive a terminal,
 * its JSON, which must be JSON, and exported files.  These sources belong to the program and are in
 * no library.
 */
#ifndef INGOT_FUZZ_PACK_PRINT_H
#define INGOT_FUZZ_PACK_PRINT_H

#include "base/cli_table.c"
#include "convert/show_findings.c"
#include "convert/show_json.c"
#include "convert/show_text.c"
#include "store/cmd_common.c"
#include "tests/fuzz/fuzz.h"
#include "verify/verify.h"

#include <fcntl.h>
#include <sys/stat.h>

void ig_cli_no_memory(void)
{
    abort();
}

/* What `print` says on stdout; caller frees. */
static char *captured(void (*print)(const struct ig_show *), const struct ig_show *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *before = stdout;
    stdout = open_memstream(&text, &n);
    check(stdout != NULL);
    print(s);
    check(fclose(stdout) == 0 && strlen(text) == n);
    stdout = before;
    return text;
}

static void check_lines(void (*print)(const struct ig_show *), const struct ig_show *s)
{
    char *text = captured(print, s), *rest = text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) check_line(line);
    free(text);
}

static void show_all(const struct ig_pack *p)
{
    struct ig_show s = {.pack = *p, .tensors = true, .scales = true};
    ingot_error e;
    json_t *again;
    const ingot_status status = ig_show_findings(p, &s.findings, &e);
    if (status != INGOT_OK) {
        check_error(&e, status);
        s.findings = json_array();
    }
    check_lines(ig_show_summary, &s);
    check_lines(ig_show_tensors, &s);
    check_lines(ig_show_scales, &s);
    char *text = captured(ig_show_json, &s);
    check(ig_json_load(text, strlen(text), "show", 0, &again, &e) == INGOT_OK);
    json_decref(again);
    free(text);
    json_decref(s.findings);
}

/* What was exported is what a comparison with the sources wants; good: nothing else is wrong. */
static void compare_with(const struct ig_pack *p, const char *folder, bool good)
{
    const struct ig_verify v = {
        .level = IG_LEVEL_QUICK, .source = folder, .self = true, .threads = 1};
    ingot_error e;
    json_t *report;
    check(ig_verify_pack(p->path, "fuzz", NULL, &v, &report, &e) == INGOT_OK);
    if (good && !ig_pack_is_derived(p)) check(json_is_true(json_object_get(report, "ok")));
    json_decref(report);
}

/* Into this folder, which is empty before and after. */
static void export_to(const struct ig_pack *p, const char *dir, bool whole)
{
    char *folder = ig_format("%s/x", dir), *merged = ig_format("%s/m", dir);
    struct stat st;
    struct ig_st header;
    ingot_error e;
    json_t *report;
    check(folder && merged);
    struct ig_export job = {.folder = folder, .threads = 1};
    ingot_status status = ig_export(p, &job, &report, &e);
    const bool good = status == INGOT_OK;
    if (good)
        json_decref(report);
    else
        check_error(&e, status);
    check(good == (access(folder, F_OK) == 0));
    if (good) compare_with(p, folder, whole);
    job = (struct ig_export){.safetensors = merged, .threads = 1};
    status = ig_export(p, &job, &report, &e);
    if (status == INGOT_OK) {
        json_decref(report);
        const int fd = open(merged, O_RDONLY | O_CLOEXEC);
        check(fd >= 0 && fstat(fd, &st) == 0);
        check(ig_st_read(fd, merged, (uint64_t)st.st_size, IG_ST_MAX_HEADER, &header, &e) ==
              INGOT_OK);
        ig_st_free(&header);
        close(fd);
        unlink(merged);
    } else {
        check_error(&e, status);
    }
    if (good) fuzz_folder_remove(folder);
    check(rmdir(dir) == 0 && mkdir(dir, 0700) == 0); /* and nothing else is left */
    free(folder);
    free(merged);
}

#endif
