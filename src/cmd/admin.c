/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin: what an administrator does once, or when something is wrong. */
#include "cmd/admin.h"

#include "base/process.h"
#include "base/str.h"
#include "cmd/commands.h"

static const struct command table[] = {
    { "backup", "copy a store of jobs to a file", NULL, admin_backup },
    { "create-view", "make a user of slurmdbd's database who reads whose jobs are which", NULL,
      admin_create_view },
    { "doctor", "check which doors into Slurm work here, and what to do", NULL, admin_doctor },
    { "drop-view", "take away what create-view has made", NULL, admin_drop_view },
    { "migrate", "bring a store of jobs up to date, or try that", NULL, admin_migrate },
    { "plugin-check", "check whether Slurm here will load a plugin", NULL, admin_plugin_check },
    { "reconcile", "compare a store of jobs with slurmdbd", NULL, admin_reconcile },
    { "record", "write down what Slurm tells, to be played back later", NULL, admin_record },
    { "restore", "put a backup in the place of a store of jobs", NULL, admin_restore },
    { "sweep-pushgateway", "delete what ended jobs have left on a Pushgateway", NULL,
      admin_sweep_pushgateway },
};

static const struct commands commands = {
    "sonde admin",
    "What an administrator does once, or when something is wrong.",
    table,
    COUNT(table),
};

void admin_block_signals(sigset_t *ret)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

    sigemptyset(ret);
    sigaddset(ret, SIGUSR1);
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct sigaction action;

        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(ret, ends[i]);
    }
    pthread_sigmask(SIG_BLOCK, ret, NULL);
}

int main(int argc, char **argv)
{
    const struct command *command;
    int status;

    process_keep_standard_fds();
    command = commands_choose(&commands, argc, argv, &status);
    return command ? command->run(argc - 1, argv + 1) : status;
}
