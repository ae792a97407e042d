/* SPDX-License-Identifier: Apache-2.0 */
#include "base/help.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pages that are not in section 1. */
static char section(const char *topic)
{
    if (!strcmp(topic, "pack") || !strcmp(topic, "store")) return '5';
    return '1';
}

/* The page beside this very program: in an installed tree, or in a build tree that is, or lies
 * one or two folders deep in, the source tree.  NULL: left to man's own search path.  Caller frees.
 */
static char *find_page(const char *page, char sec)
{
    char exe[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0) return NULL;
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    char *const places[] = {ig_format("%s/../share/man/man%c/%s.%c", exe, sec, page, sec),
                            ig_format("%s/man/%s.%c", exe, page, sec),
                            ig_format("%s/../man/%s.%c", exe, page, sec),
                            ig_format("%s/../../man/%s.%c", exe, page, sec)};
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!found && places[i] && !access(places[i], R_OK))
            found = places[i];
        else
            free(places[i]);
    }
    return found;
}

/* Runs man and waits.  The reader's interrupts are for the pager. */
static bool run_man(const char *section_arg, const char *page)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) return false;
    if (!pid) {
        signal(SIGPIPE, SIG_DFL); /* main ignores them */
        signal(SIGXFSZ, SIG_DFL);
        execlp("man", "man", section_arg ? section_arg : page, section_arg ? page : NULL,
               (char *)NULL);
        _exit(127);
    }
    void (*const on_int)(int) = signal(SIGINT, SIG_IGN);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return false;
    signal(SIGINT, on_int);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool ig_help_page(const char *topic)
{
    const char sec = section(topic), section_arg[] = {sec, '\0'};
    char *page = *topic ? ig_format("ingot-%s", topic) : ig_format("ingot");
    if (!page) return false;
    char *path = find_page(page, sec);
    const bool shown = path ? run_man(NULL, path) : run_man(section_arg, page);
    free(path);
    free(page);
    return shown;
}
