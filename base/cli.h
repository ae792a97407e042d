/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plumbing of the `ingot` program: option tables, errors, tables for people.
 * Only files of the program include this; the library never does.
 */
#ifndef INGOT_CLI_H
#define INGOT_CLI_H

#include "base/base.h"

/* A command: `run` gets its own argv (argv[0] is the command) and returns the exit code. */
struct ig_cmd {
    const char *name;
    const char *summary; /* one line for `ingot help` */
    int (*run)(int argc, char **argv);
};
extern const struct ig_cmd ig_cmds[]; /* main.c, ends with a NULL name */

/* One option.  Its value goes to *value: bool for FLAG, const char * for TEXT,
 * uint64_t for COUNT (decimal, with optional K, M, G, KiB, ... suffix), struct ig_texts for LIST,
 * which may be given several times. */
enum ig_opt_type { IG_OPT_FLAG, IG_OPT_TEXT, IG_OPT_COUNT, IG_OPT_LIST };
#define IG_TEXTS 64u
struct ig_texts {
    const char *list[IG_TEXTS];
    size_t n;
};
struct ig_opt {
    const char *name; /* long name without dashes */
    char letter;      /* or 0 */
    enum ig_opt_type type;
    void *value;
};
#define IG_OPT_END                 \
    {                              \
        NULL, 0, IG_OPT_FLAG, NULL \
    }

/* State of one command run.  Every command has -s/--store DIR, --json, -q/--quiet and
 * -h/--help (opens the man page); they need no entry in its table. */
struct ig_cli {
    const char *command; /* set by ig_cli_parse */
    const char *usage;   /* "[-n NAME] SRC": printed after a usage error */
    const char *store;   /* -s, or NULL */
    bool json, quiet;
    int argc; /* what is left after the options */
    char **argv;
};
/* Parse argv.  Returns -1 to go on, or an exit code to return at once (2 after a usage
 * error, which is printed; 0 after --help). */
int ig_cli_parse(struct ig_cli *c, int argc, char **argv, const struct ig_opt *opts, int min_args,
                 int max_args);
/* Print "ingot CMD: message" to stderr (with --json also {"error":{...}} to stdout) and return
 * the exit code of e. */
int ig_cli_fail(const struct ig_cli *c, const ingot_error *e);
int ig_cli_usage(const struct ig_cli *c, const char *format, ...) IG_PRINTF(2, 3); /* returns 2 */
/* Print a report as JSON (indented, sorted keys) to stdout; consumes the reference. */
void ig_cli_json(json_t *report);
/* Print a report, as JSON with --json, else through `print`; consume the reference; return what
 * ig_cli_finish says. */
typedef void ig_cli_print(const struct ig_cli *c, const json_t *report);
int ig_cli_report(const struct ig_cli *c, json_t *report, ig_cli_print *print, int code);
void ig_cli_notice(const struct ig_cli *c, const char *format, ...)
    IG_PRINTF(2, 3); /* stderr; not with -q */
/* For what prints: says so and exits 4.  Commands print when there is nothing left to clean up. */
_Noreturn void ig_cli_no_memory(void);
/* Exit code, or 4 when stdout could not be written (disk full, closed pipe). */
int ig_cli_finish(const struct ig_cli *c, int code);

/* A table on stdout: columns as wide as their widest cell.  Cells are copied. */
struct ig_table;
struct ig_table *ig_table_new(const char *const *heads,
                              const char *align); /* "lrl": a letter a column */
void ig_table_row(struct ig_table *t, const char *const *cells);
void ig_table_print(struct ig_table *t); /* prints and frees */

/* "7.64 GB", "512 B": decimal units as disks and networks use them. */
struct ig_text {
    char s[48];
};
struct ig_text ig_human(uint64_t bytes);
struct ig_text ig_when(int64_t unix_seconds); /* local time, ISO 8601 without zone */
struct ig_text ig_shape(const uint64_t *dims, uint32_t rank); /* "[2,3]", cut with ... */

/* progress.c: a bar on stderr when it is a terminal, nothing otherwise; SIGINT and SIGTERM
 * set a flag that cancels the job (the command then cleans up and exits 4; a second signal kills).
 */
struct ig_progress ig_progress_start(const struct ig_cli *c, const char *what);
void ig_progress_stop(void);

#endif
