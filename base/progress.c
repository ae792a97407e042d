/* SPDX-License-Identifier: Apache-2.0 */
/* A bar on stderr, and signals that ask a job to stop. */
#include "base/cli.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REDRAW 0.1 /* seconds between two pictures of the bar */

/* One job runs at a time in the program; a signal handler can reach nothing but statics. */
static volatile sig_atomic_t stop_asked;
static struct sigaction old_actions[3];
static const int stop_signals[3] = {SIGINT, SIGTERM, SIGHUP};

static struct bar {
    const char *what;
    bool drawn;
    double last, rate; /* seconds; bytes a second, smoothed */
    uint64_t done;     /* at `last` */
} bar;

static void on_stop(int sig)
{
    (void)sig;
    stop_asked = 1;
    /* Whoever asks twice gets what the signal does by itself. */
    for (size_t i = 0; i < 3; i++)
        if (old_actions[i].sa_handler != SIG_IGN) signal(stop_signals[i], SIG_DFL);
}

static void catch_signals(void)
{
    struct sigaction act = {.sa_handler = on_stop}; /* no SA_RESTART: waits end early */
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < 3; i++) {
        sigaction(stop_signals[i], NULL, &old_actions[i]);
        /* nohup and background jobs ignore some on purpose. */
        if (old_actions[i].sa_handler != SIG_IGN) sigaction(stop_signals[i], &act, NULL);
    }
}

static bool cancelled(void *ctx)
{
    (void)ctx;
    return stop_asked;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int columns(void)
{
    struct winsize w;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 20 ? w.ws_col : 80;
}

/* "1:02:03", "0:09". */
static struct ig_text duration(double seconds)
{
    struct ig_text t;
    const unsigned long s = seconds < 359999 ? (unsigned long)(seconds + 0.5) : 359999;
    if (s >= 3600)
        snprintf(t.s, sizeof t.s, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(t.s, sizeof t.s, "%lu:%02lu", s / 60, s % 60);
    return t;
}

static void draw(uint64_t done, uint64_t total)
{
    char numbers[240], cells[256];
    const int percent = total ? (int)((double)done / (double)total * 100) : 0;
    const double left = bar.rate > 0 ? (double)(total - done) / bar.rate : -1;
    snprintf(numbers, sizeof numbers, " %3d%%  %s of %s  %s/s  %s left", percent, ig_human(done).s,
             ig_human(total).s, ig_human((uint64_t)bar.rate).s,
             left < 0 ? "-:--" : duration(left).s);
    const int width = columns() - 1;
    int room = width - (int)strlen(bar.what) - (int)strlen(numbers) - 3;
    if (room > (int)sizeof cells - 1) room = sizeof cells - 1;
    if (room < 5) {
        fprintf(stderr, "\r%.*s\033[K", width, numbers + 1);
        return;
    }
    memset(cells, '.', (size_t)room);
    memset(cells, '#', (size_t)(room * percent / 100));
    fprintf(stderr, "\r%s [%.*s]%s\033[K", bar.what, room, cells, numbers);
}

static void update(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    const double t = now(), passed = t - bar.last;
    if (passed < REDRAW && done < total) return;
    if (done > total) total = done;
    if (passed > 0 && done >= bar.done) {
        const double rate = (double)(done - bar.done) / passed;
        bar.rate = bar.rate > 0 ? 0.9 * bar.rate + 0.1 * rate : rate;
    }
    bar.last = t;
    bar.done = done;
    draw(done, total);
    bar.drawn = true;
}

struct ig_progress ig_progress_start(const struct ig_cli *c, const char *what)
{
    stop_asked = 0;
    catch_signals();
    bar = (struct bar){.what = what, .last = now()};
    const bool visible = !c->quiet && !c->json && isatty(STDERR_FILENO);
    return (struct ig_progress){.update = visible ? update : NULL, .cancelled = cancelled};
}

void ig_progress_stop(void)
{
    for (size_t i = 0; i < 3; i++) sigaction(stop_signals[i], &old_actions[i], NULL);
    if (bar.drawn) fputs("\r\033[K", stderr);
    bar.drawn = false;
}
