/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the command that the first argument names. */
#include "cmd/commands.h"

#include "base/quote.h"

#include <stdio.h>

static void print_help(const struct commands *commands, FILE *to)
{
    fprintf(to, "%s\n\nusage: %s COMMAND [FLAGS]\n\nCommands:\n", commands->about,
            commands->program);
    for (size_t i = 0; i < commands->n; i++)
        fprintf(to, "  %-17s %s\n", commands->command[i].name, commands->command[i].summary);
    fprintf(to, "\n%s COMMAND --help tells more; %s --version tells the version.\n",
            commands->program, commands->program);
}

static const struct command *find(const struct commands *commands, struct str name)
{
    for (size_t i = 0; i < commands->n; i++)
        if (str_eq(str_of(commands->command[i].name), name))
            return &commands->command[i];
    return NULL;
}

static void refuse(const struct commands *commands, struct str name)
{
    const struct command *nearest = NULL;
    size_t best = 4; /* more edits than that is another word */

    for (size_t i = 0; i < commands->n; i++) {
        size_t distance = str_distance(str_of(commands->command[i].name), name);

        if (distance < best) {
            best = distance;
            nearest = &commands->command[i];
        }
    }
    fprintf(stderr, "%s: there is no command \"%s\"", commands->program, quote(name).text);
    if (nearest)
        fprintf(stderr, "; did you mean \"%s\"?\n", nearest->name);
    else
        fprintf(stderr, "; %s --help lists them\n", commands->program);
}

const struct command *commands_choose(const struct commands *commands, int argc, char **argv,
                                      int *ret_status)
{
    const struct command *command;

    *ret_status = 0;
    if (argc < 2) {
        print_help(commands, stderr);
        *ret_status = 2;
        return NULL;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(commands, stdout);
        return NULL;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("sonde " SONDE_VERSION);
        return NULL;
    }
    command = find(commands, str_of(argv[1]));
    if (!command) {
        refuse(commands, str_of(argv[1]));
        *ret_status = 2;
    }
    return command;
}
