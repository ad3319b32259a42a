/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde: runs `sonde X …` as the program sonde-X, so that each command links only what it needs.
 * Called by the name of a program that a command takes the place of, it runs that command. */
#include "base/err.h"
#include "base/str.h"
#include "cmd/commands.h"

#include <limits.h>
#include <sys/stat.h>

static const struct command table[] = {
    { "up", "show a cluster and its jobs in a browser: everything on one machine", NULL, NULL },
    { "exporter", "export what a Slurm cluster is doing to Prometheus", "prometheus-slurm-exporter",
      NULL },
    { "agent", "export what each job on this node is doing to Prometheus", "jobs_exporter", NULL },
    { "lustre", "export who reads from and writes to Lustre to Prometheus",
      "prometheus-cluster-exporter", NULL },
    { "run", "run a command of a job, and trace what it uses", NULL, NULL },
    { "jobs", "list jobs that are kept", NULL, NULL },
    { "usage", "tell what jobs held of a time", NULL, NULL },
    { "report", "tell what a job used, what it wasted, and what to write next time", NULL, NULL },
    { "web", "serve the jobs that are kept over HTTP", NULL, NULL },
    { "mail", "keep a mail of Slurm's until it is sent: its MailProg", "sonde-mail", NULL },
    { "admin", "check a site, record a cluster", NULL, NULL },
};

static const struct commands commands = {
    "sonde",
    "sonde tells what a Slurm cluster, its nodes and each of its jobs are doing, and how well.",
    table,
    COUNT(table),
};

static const struct command *find_alias(const char *path)
{
    const char *slash = strrchr(path, '/');

    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].alias && strcmp(table[i].alias, slash ? slash + 1 : path) == 0)
            return &table[i];
    return NULL;
}

/* A link beside us that has a program's name, as sonde-mail is: running it would lead back here. */
static bool is_us(const char *path)
{
    struct stat there, here;

    return stat(path, &there) == 0 && stat("/proc/self/exe", &here) == 0 &&
           there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/* Tries one place; returns only on failure. */
static void try(const char *directory, const char *below, const struct command *command,
                char **argv)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s%s/sonde-%s", directory, below, command->name);
    if (is_us(path))
        errno = ENOENT;
    else
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

int main(int argc, char **argv)
{
    const struct command *command = find_alias(argv[0]);
    int status;

    if (command)
        return run(command, argv);
    command = commands_choose(&commands, argc, argv, &status);
    return command ? run(command, argv + 1) : status;
}
