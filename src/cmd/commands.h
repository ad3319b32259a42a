/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that is several: which it is comes from its first argument. */
#ifndef SONDE_CMD_COMMANDS_H
#define SONDE_CMD_COMMANDS_H

#include <stddef.h>

struct command {
    const char *name, *summary;
    const char *alias;                 /* the older program that it is a drop-in for, or NULL */
    int (*run)(int argc, char **argv); /* NULL: it is a program of its own */
};

struct commands {
    const char *program; /* "sonde admin" */
    const char *about;   /* one sentence for --help */
    const struct command *command;
    size_t n;
};

/* The one that argv asks for; NULL if it asked for something else, which has been done, and then
 * *ret_status is what to exit with. */
const struct command *commands_choose(const struct commands *commands, int argc, char **argv,
                                      int *ret_status);

#endif
