/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde: runs `sonde X …` as the program sonde-X, so that each command links only what it needs.
 * Called by the name of a program that a command takes the place of, it runs that command. */
#include "base/err.h"
#include "base/quote.h"
#include "base/str.h"

#include <limits.h>

struct command {
    const char *name, *summary;
    const char *alias; /* the older program that it is a drop-in for, or NULL */
};

static const struct command commands[] = {
    { "exporter", "export what a Slurm cluster is doing to Prometheus",
      "prometheus-slurm-exporter" },
    { "run", "run a command of a job, and trace what it uses", NULL },
};

enum { N_COMMANDS = COUNT(commands) };

static void print_help(FILE *to)
{
    fputs("sonde tells what a Slurm cluster, its nodes and each of its jobs are doing, and how "
          "well.\n\n"
          "usage: sonde COMMAND [FLAGS]\n\n"
          "Commands:\n",
          to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs("\nsonde COMMAND --help tells more; sonde --version tells the version.\n", to);
}

static const struct command *find_command(struct str name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (str_eq(str_of(commands[i].name), name))
            return &commands[i];
    return NULL;
}

static const struct command *find_alias(const char *path)
{
    const char *slash = strrchr(path, '/');

    for (size_t i = 0; i < N_COMMANDS; i++)
        if (commands[i].alias && strcmp(commands[i].alias, slash ? slash + 1 : path) == 0)
            return &commands[i];
    return NULL;
}

/* Tries one place; returns only on failure. */
static void try(const char *directory, const char *below, const struct command *command,
                char **argv)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s%s/sonde-%s", directory, below, command->name);
    execv(path, argv);
}

/* Beside us, as in a build directory, or where it is installed. Returns only on failure. */
static int run(const struct command *command, char **argv)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0) {
        fprintf(stderr, "sonde: cannot find where sonde is installed: %s\n", err_words(errno));
        return 1;
    }
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    try(self, "", command, argv);
    if (errno == ENOENT)
        try(self, "/../libexec/sonde", command, argv);
    fprintf(stderr, "sonde: cannot run sonde-%s: %s; is sonde installed whole?\n", command->name,
            err_words(errno));
    return 1;
}

static int unknown_command(struct str name)
{
    const struct command *nearest = NULL;
    size_t best = 4; /* more edits than that is another word */

    for (size_t i = 0; i < N_COMMANDS; i++) {
        size_t distance = str_distance(str_of(commands[i].name), name);

        if (distance < best) {
            best = distance;
            nearest = &commands[i];
        }
    }
    fprintf(stderr, "sonde: there is no command \"%s\"", quote(name).text);
    if (nearest)
        fprintf(stderr, "; did you mean \"%s\"?\n", nearest->name);
    else
        fputs("; sonde --help lists them\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const struct command *command = find_alias(argv[0]);

    if (command)
        return run(command, argv);
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("sonde " SONDE_VERSION);
        return 0;
    }
    command = find_command(str_of(argv[1]));
    return command ? run(command, argv + 1) : unknown_command(str_of(argv[1]));
}
