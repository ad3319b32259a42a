/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin backup, sonde admin restore: copies of a store. */
#include "base/option.h"
#include "cmd/admin.h"
#include "store/copy.h"

#include <inttypes.h>
#include <stdio.h>

struct settings {
    struct str store;
};

static const struct option options[] = {
    { "store", OPTION_STRING, offsetof(struct settings, store), "URL",
      "sqlite:/var/lib/sonde/sonde.db", "SONDE_STORE", NULL, "Store", "The store: sqlite:/path." },
    { 0 },
};

#define EXIT_STATUS "0 if the copy was made and checked; 1 if not; 2 if a flag is wrong."

static const struct option_command backup = {
    .name = "sonde admin backup",
    .summary = "copy a store of jobs to a file",
    .description = "Copies a store to FILE while it is in use: the exporter goes on writing, and "
                   "the copy is the "
                   "store as it was at one moment. FILE must not exist. It gets its name when the "
                   "copy is complete "
                   "and has passed SQLite's integrity check.\n\n"
                   "Examples:\n\n"
                   "sonde admin backup /backup/sonde.db\n\n"
                   "sonde admin backup --store=sqlite:/srv/sonde.db /backup/sonde-$(date +%F).db",
    .arguments = "FILE",
    .exit_status = EXIT_STATUS,
    .options = options,
};

static const struct option_command restore = {
    .name = "sonde admin restore",
    .summary = "put a backup in the place of a store of jobs",
    .description =
        "Copies FILE, a backup of a store, to the path of --store. Stop the exporter or sonde up "
        "first: "
        "a store that is in use is refused. The store that was there is kept as PATH.replaced. The "
        "copy takes its place when it is complete and has passed SQLite's integrity check; until "
        "then "
        "nothing is changed.\n\n"
        "Examples:\n\n"
        "systemctl stop sonde-exporter && sonde admin restore /backup/sonde.db\n\n"
        "sonde admin restore --store=sqlite:/srv/sonde.db /backup/sonde.db",
    .arguments = "FILE",
    .exit_status = EXIT_STATUS,
    .options = options,
};

static atomic_bool is_cancelled;

static void cancel(int number)
{
    (void)number;
    atomic_store(&is_cancelled, true);
}

/* So that no half of a copy is left behind. */
static void catch_signals(void)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction action = { .sa_handler = cancel };

    for (size_t i = 0; i < COUNT(ends); i++) {
        struct sigaction old;

        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
}

typedef int copy_function(struct str url, const char *file, const atomic_bool *cancelled,
                          struct store_copied *ret, struct err *err);

static int parse(const struct option_command *command, int argc, char **argv, struct arena *arena,
                 struct settings *settings, char ***ret_rest, struct err *err)
{
    int outcome = option_parse(command, argc, argv, environ, arena, settings, ret_rest, err);

    if (outcome == OPTION_GO_ON && (!(*ret_rest)[0] || (*ret_rest)[1]))
        return err_set(err, EINVAL, "name one file; see --help");
    return outcome;
}

static int run(const struct option_command *command, copy_function *copy, int argc, char **argv)
{
    struct settings settings;
    struct store_copied copied;
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **rest;
    int outcome = parse(command, argc, argv, &arena, &settings, &rest, &err), status;

    status = outcome < 0 ? 2 : 0;
    if (outcome == OPTION_GO_ON) {
        catch_signals();
        status = copy(settings.store, rest[0], &is_cancelled, &copied, &err) < 0;
        if (!status)
            printf("Copied and checked %" PRIu64 " runs of jobs, %" PRIu64 " bytes.\n", copied.runs,
                   copied.bytes);
    }
    if (status)
        fprintf(stderr, "%s: %s\n", command->name, err.text);
    arena_clear(&arena);
    return status;
}

int admin_backup(int argc, char **argv)
{
    return run(&backup, store_backup, argc, argv);
}

int admin_restore(int argc, char **argv)
{
    return run(&restore, store_restore, argc, argv);
}
