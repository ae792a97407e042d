/* SPDX-License-Identifier: Apache-2.0 */
/* Options in, errors and exit codes out. */
#include "base/cli.h"
#include "base/help.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_usage(const struct ig_cli *c, FILE *out)
{
    fprintf(out, "usage: ingot %s%s%s\n", c->command, *c->usage ? " " : "", c->usage);
}

/* A command's own options and those that every command has. */
#define MAX_OPTS 32
struct parser {
    struct ig_opt opts[MAX_OPTS];
    struct option longs[MAX_OPTS + 1];
    char shorts[2 * MAX_OPTS + 2];
    size_t n;
};
#define FIRST_VALUE 256 /* getopt_long's value for opts[0]: above every letter */

static void add_opt(struct parser *p, const struct ig_opt *o)
{
    if (p->n == MAX_OPTS) return;
    const int takes = o->type == IG_OPT_FLAG ? no_argument : required_argument;
    p->longs[p->n] = (struct option){o->name, takes, NULL, FIRST_VALUE + (int)p->n};
    if (o->letter) {
        char *end = p->shorts + strlen(p->shorts);
        *end++ = o->letter;
        if (takes == required_argument) *end = ':';
    }
    p->opts[p->n++] = *o;
}

static const struct ig_opt *opt_of(const struct parser *p, int value)
{
    for (size_t i = 0; i < p->n; i++)
        if (value == FIRST_VALUE + (int)i || (value && value == p->opts[i].letter))
            return &p->opts[i];
    return NULL;
}

/* An integer of decimal digits and an optional unit: K, M, G, T are powers of 1000, Ki (KiB)
 * and so on of 1024.  NULL, or what is wrong. */
static const char *parse_count(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    uint64_t n = 0;
    const char *s = text;
    if (*s < '0' || *s > '9') return "a number is wanted";
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return "the number is too large";
    const char *unit = *s ? strchr(units, *s == 'k' ? 'K' : *s) : NULL;
    if (unit) {
        const uint64_t step = s[1] == 'i' ? 1024 : 1000;
        s += step == 1024 ? 2 : 1;
        for (const char *u = units; u <= unit; u++)
            if (__builtin_mul_overflow(n, step, &n)) return "the number is too large";
    }
    if (*s == 'B' && s > text) s++;
    if (*s) return "a number is wanted, with a unit such as K, M, KiB or MiB at most";
    *out = n;
    return NULL;
}

static const char *set_value(const struct ig_opt *o, const char *text)
{
    switch (o->type) {
    case IG_OPT_FLAG:
        *(bool *)o->value = true;
        return NULL;
    case IG_OPT_TEXT:
        *(const char **)o->value = text;
        return NULL;
    case IG_OPT_LIST: {
        struct ig_texts *t = o->value;
        if (t->n == IG_TEXTS) return "is given too often";
        t->list[t->n++] = text;
        return NULL;
    }
    case IG_OPT_COUNT:
        return parse_count(text, o->value);
    }
    return NULL;
}

/* What getopt_long means by '?' and ':', in words. */
static int bad_option(const struct ig_cli *c, const struct parser *p, int ret, int opt,
                      const char *word)
{
    const struct ig_opt *o = opt_of(p, opt);
    if (ret == ':' && o) return ig_cli_usage(c, "option '--%s' needs a value", o->name);
    if (o && opt >= FIRST_VALUE) return ig_cli_usage(c, "option '--%s' takes no value", o->name);
    if (opt) {
        const char letter = (char)opt;
        return ig_cli_usage(c, "unknown option '-%s'", ig_esc(&letter, 1).s);
    }
    unsigned starts = 0;
    const size_t len = strcspn(word, "=");
    for (size_t i = 0; i < p->n; i++)
        starts += len > 2 && !strncmp(p->opts[i].name, word + 2, len - 2);
    return ig_cli_usage(c, "%s option '%s'", starts > 1 ? "ambiguous" : "unknown",
                        ig_esc(word, len).s);
}

static int parse_opts(struct ig_cli *c, const struct parser *p, int argc, char **argv)
{
    optind = 0; /* glibc: start anew, and read the option string's first letters again */
    opterr = 0;
    for (;;) {
        optopt = 0;
        const int ret = getopt_long(argc, argv, p->shorts, p->longs, NULL);
        if (ret == -1) break;
        if (ret == '?' || ret == ':') return bad_option(c, p, ret, optopt, argv[optind - 1]);
        const struct ig_opt *o = opt_of(p, ret);
        const char *wrong = set_value(o, optarg);
        if (wrong)
            return ig_cli_usage(c, "--%s %s: %s", o->name, ig_esc(optarg, strlen(optarg)).s, wrong);
    }
    c->argc = argc - optind;
    c->argv = argv + optind;
    return -1;
}

static int print_help(const struct ig_cli *c)
{
    if (!ig_help_page(c->command)) print_usage(c, stdout);
    return ig_cli_finish(c, 0);
}

int ig_cli_parse(struct ig_cli *c, int argc, char **argv, const struct ig_opt *opts, int min_args,
                 int max_args)
{
    bool help = false;
    c->command = argv[0];
    const struct ig_opt common[] = {{"store", 's', IG_OPT_TEXT, &c->store},
                                    {"json", 0, IG_OPT_FLAG, &c->json},
                                    {"quiet", 'q', IG_OPT_FLAG, &c->quiet},
                                    {"help", 'h', IG_OPT_FLAG, &help}};
    struct parser p = {.shorts = ":"};
    for (; opts && opts->name; opts++) add_opt(&p, opts);
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) add_opt(&p, &common[i]);

    /* An error in the first option is reported as the last one, --json, asks for. */
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--json")) c->json = true;
    const int code = parse_opts(c, &p, argc, argv);
    if (code >= 0) return code;
    if (help) return print_help(c);
    if (c->argc < min_args)
        return ig_cli_usage(c, c->argc ? "one argument more is wanted" : "an argument is wanted");
    if (max_args >= 0 && c->argc > max_args)
        return ig_cli_usage(c, "unexpected argument '%s'",
                            ig_esc(c->argv[max_args], strlen(c->argv[max_args])).s);
    return -1;
}

static void print_error_json(const ingot_error *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "status", json_string(ingot_status_name(e->status)));
    json_object_set_new(o, "message", json_string(e->message));
    if (*e->file) json_object_set_new(o, "file", json_string(e->file));
    if (*e->tensor) json_object_set_new(o, "tensor", json_string(e->tensor));
    if (e->has_offset) json_object_set_new(o, "offset", json_integer((json_int_t)e->offset));
    if (e->sys_errno) json_object_set_new(o, "errno", json_integer(e->sys_errno));
    ig_cli_json(json_pack("{s:o}", "error", o));
}

int ig_cli_fail(const struct ig_cli *c, const ingot_error *e)
{
    const bool stopped = e->status == INGOT_ERR_CANCELLED;
    fprintf(stderr, "ingot %s: %s\n", c->command,
            stopped ? "cancelled; nothing was left behind" : e->message);
    if (c->json) print_error_json(e);
    return ig_cli_finish(c, ingot_exit_code(e->status));
}

int ig_cli_usage(const struct ig_cli *c, const char *format, ...)
{
    ingot_error e = {.status = INGOT_ERR_USAGE};
    va_list args;
    va_start(args, format);
    vsnprintf(e.message, sizeof e.message, format, args);
    va_end(args);
    const int code = ig_cli_fail(c, &e);
    print_usage(c, stderr);
    return code;
}

void ig_cli_json(json_t *report)
{
    /* ASCII only: no byte of a file's making reaches a terminal as itself. */
    const size_t flags = JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_ENCODE_ANY;
    char *text = json_dumps(report, flags);
    if (text)
        puts(text);
    else
        ig_cli_no_memory();
    free(text);
    json_decref(report);
}

void ig_cli_no_memory(void)
{
    fputs("ingot: out of memory\n", stderr);
    fflush(stdout);
    _exit(4);
}

void ig_cli_notice(const struct ig_cli *c, const char *format, ...)
{
    if (c->quiet) return;
    fprintf(stderr, "ingot %s: ", c->command);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Everything printed has reached the file: the kernel's answer to the last write, and, for file
 * systems that answer only then, to a close. */
static int flush_stdout(void)
{
    const bool failed_before = ferror(stdout);
    clearerr(stdout);
    if (fflush(stdout)) return errno;
    if (failed_before) return EIO;
    const int copy = dup(STDOUT_FILENO);
    return copy >= 0 && close(copy) ? errno : 0;
}

int ig_cli_finish(const struct ig_cli *c, int code)
{
    const int err = flush_stdout();
    if (!err) return code;
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    const bool reader_gone = err == EPIPE || (poll(&out, 1, 0) == 1 && out.revents & POLLERR);
    if (!reader_gone)
        fprintf(stderr, "ingot %s: cannot write to standard output: %s\n", c->command,
                strerror(err));
    return code ? code : 4;
}

int ig_cli_report(const struct ig_cli *c, json_t *report, ig_cli_print *print, int code)
{
    if (c->json) {
        ig_cli_json(report);
    } else {
        print(c, report);
        json_decref(report);
    }
    return ig_cli_finish(c, code);
}
