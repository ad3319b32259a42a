/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How Slurm's commands are run: with the settings' slurm.conf, from the settings' directory, here
 * or through a prefix on another host. */
#ifndef SONDE_SOURCE_SLURM_COMMAND_H
#define SONDE_SOURCE_SLURM_COMMAND_H

#include "base/spawn.h"
#include "source/source.h"

struct slurm_commands {
    char **prefix; /* words of the command that runs all of them elsewhere; NULL: they run here */
    char *conf;    /* "SLURM_CONF=…"; NULL: their own */
};

/* -EINVAL with a sentence if the prefix is not a command line. */
int slurm_commands_open(const struct source_settings *settings, struct slurm_commands *ret,
                        struct err *err);
void slurm_commands_close(struct slurm_commands *commands);

/* The command's place as the only word, ended by NULL, in one heap block (free it). */
char **slurm_command_words(const struct source_settings *settings, const char *command);

/* As spawn_run. spawn's env must not be NULL; `secret`, "NAME=value", comes on top of it where no
 * other user can see it; NULL: there is none. */
int slurm_command_run(const struct slurm_commands *commands, const struct spawn *spawn,
                      const char *secret, struct spawn_result *ret, struct err *err);

#endif
