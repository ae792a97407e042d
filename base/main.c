/* SPDX-License-Identifier: Apache-2.0 */
/* The program: picks the command, and says what there is to pick from. */
#include "config.h"

#include "base/cli.h"
#include "base/cmds.h"
#include "base/help.h"

#include <fcntl.h>
#include <lmdb.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

const struct ig_cmd ig_cmds[] = {
    {"convert", "make a pack from a safetensors checkpoint", ig_cmd_convert},
    {"export", "get the original files back from a pack", ig_cmd_export},
    {"pin", "keep evaluation inputs as a set with a digest", ig_cmd_pin},
    {"verify", "prove that packs hold what they should", ig_cmd_verify},
    {"sign", "sign a model for OpenSSF Model Signing", ig_cmd_sign},
    {"lineage", "show what a model was made from, down to files", ig_cmd_lineage},
    {"manifest", "list the files of a model for other tools", ig_cmd_manifest},
    {"show", "describe a pack: tensors, scales, files, config", ig_cmd_show},
    {"ls", "list the models of the store", ig_cmd_ls},
    {"find", "find models by tensor name, digest or file hash", ig_cmd_find},
    {"load", "bring a model into GPU memory, every byte proven", ig_cmd_load},
    {"tag", "give a model one more name", ig_cmd_tag},
    {"rm", "remove names", ig_cmd_rm},
    {"gc", "delete packs that no name needs", ig_cmd_gc},
    {"reindex", "rebuild the index of the store", ig_cmd_reindex},
    {"devices", "list CUDA devices", ig_cmd_devices},
    {NULL, NULL, NULL},
};

/* Headings of the list, each above the command that it names. */
static const struct {
    const char *before, *title;
} groups[] = {
    {"convert", "Make and give back"}, {"verify", "Look and prove"}, {"load", "Load"},
    {"tag", "Keep the store"},         {"devices", "This machine"},
};

static const struct ig_cmd *find_cmd(const char *name)
{
    const struct ig_cmd *c = ig_cmds;
    while (c->name && strcmp(c->name, name)) c++;
    return c->name ? c : NULL;
}

static void list_cmds(FILE *out)
{
    fputs("usage: ingot COMMAND [OPTION]... [ARGUMENT]...\n"
          "       ingot help [COMMAND]\n"
          "       ingot --version\n",
          out);
    for (const struct ig_cmd *c = ig_cmds; c->name; c++) {
        for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
            if (!strcmp(groups[g].before, c->name)) fprintf(out, "\n%s\n", groups[g].title);
        fprintf(out, "  %-9s %s\n", c->name, c->summary);
    }
    fputs("\n'ingot help COMMAND' opens the manual page of a command, 'ingot help pack' and\n"
          "'ingot help store' those of the formats.\n",
          out);
}

static int print_list(void)
{
    static const struct ig_cli self = {.command = "help"};
    list_cmds(stdout);
    return ig_cli_finish(&self, 0);
}

static int print_version(void)
{
    static const struct ig_cli self = {.command = "--version"};
    const unsigned xxh = XXH_versionNumber();
    int lmdb[3];
    mdb_version(&lmdb[0], &lmdb[1], &lmdb[2]);
    printf("ingot %s\n", ingot_version());
    printf("jansson %s, xxHash %u.%u.%u, LMDB %d.%d.%d, OpenSSL %s\n", jansson_version_str(),
           xxh / 10000, xxh / 100 % 100, xxh % 100, lmdb[0], lmdb[1], lmdb[2],
           OpenSSL_version(OPENSSL_VERSION_STRING));
#ifdef HAVE_CUDA
    puts("CUDA: yes");
#else
    puts("CUDA: no");
#endif
    return ig_cli_finish(&self, 0);
}

static int unknown(const char *name)
{
    char near[128];
    const unsigned n = ig_suggest(ig_cmds, name, near, sizeof near);
    fprintf(stderr, "ingot: '%s' is not an ingot command.", ig_esc(name, strlen(name)).s);
    if (n)
        fprintf(stderr, " The most similar command%s %s\n", n > 1 ? "s are" : " is", near);
    else
        fputs(" See 'ingot --help'.\n", stderr);
    return 2;
}

static int help(int argc, char **argv)
{
    if (argc > 2) {
        fputs("ingot help: one command at a time\nusage: ingot help [COMMAND]\n", stderr);
        return 2;
    }
    if (argc < 2) return print_list();
    const char *topic = argv[1];
    const struct ig_cmd *cmd = find_cmd(topic);
    if (cmd) { /* the command knows its own usage, should there be no man page to show */
        char name[64], option[] = "--help", *args[] = {name, option, NULL};
        snprintf(name, sizeof name, "%s", cmd->name);
        return cmd->run(2, args);
    }
    if (!strcmp(topic, "ingot")) topic = "";
    if (*topic && strcmp(topic, "help") && strcmp(topic, "pack") && strcmp(topic, "store"))
        return unknown(topic);
    return ig_help_page(topic) ? 0 : print_list();
}

/* A descriptor of a pack must never be 0, 1 or 2: what is printed would be written into it.
 * A closed one is replaced by one on which the matching transfers fail. */
static void guard_streams(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd) _exit(4);
    }
    /* A reader that goes away, and a limit on file sizes, show as failed writes: errors like
     * others, after which the command cleans up. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    guard_streams();
    if (argc < 2) {
        list_cmds(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) return print_version();
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return print_list();
    if (!strcmp(name, "help")) return help(argc - 1, argv + 1);
    if (name[0] == '-') {
        fprintf(stderr, "ingot: unknown option '%s' before a command. See 'ingot --help'.\n",
                ig_esc(name, strlen(name)).s);
        return 2;
    }
    const struct ig_cmd *cmd = find_cmd(name);
    return cmd ? cmd->run(argc - 1, argv + 1) : unknown(name);
}
