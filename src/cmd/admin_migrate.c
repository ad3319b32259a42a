/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde admin migrate: brings a store up to date before the exporter does, or tries that. */
#include "base/option.h"
#include "cmd/admin.h"
#include "store/store.h"

#include <stdio.h>

enum { REPORT_MAX = 1 << 20 };

struct settings {
    struct str store;
    bool is_trial;
};

#define PLACE(member) offsetof(struct settings, member)

static const struct option options[] = {
    { "store", OPTION_STRING, PLACE(store), "URL", "sqlite:/var/lib/sonde/sonde.db", "SONDE_STORE",
      NULL, "Store", "The store: sqlite:/path." },
    { "dry-run", OPTION_BOOL, PLACE(is_trial), NULL, NULL, NULL, NULL, "Store",
      "Do all of it for real, tell what was done, and take it back." },
    { 0 },
};

static const struct option_command command = {
    .name = "sonde admin migrate",
    .summary = "bring a store of jobs up to date, or try that",
    .description =
        "Changes the tables of a store to those that this sonde needs. The exporter does the same "
        "when it starts, in one transaction: either all of it or nothing. Here it can be tried "
        "before, on the store itself, with --dry-run: then nothing stays changed, but while it "
        "lasts the store is locked and the disk needs room for what is written.",
    .exit_status =
        "0 if the store is up to date, or would be; 1 if not, or if there is none; 2 if a flag is "
        "wrong.",
    .options = options,
};

/* A simulated store is opened as such: it takes no real jobs, but here are none. */
static int migrate(struct str url, struct err *err)
{
    struct store *store = NULL;
    int code = store_open(url, false, &store, err);

    if (code == -EINVAL)
        code = store_open(url, true, &store, err);
    store_close(store);
    return code;
}

static int run(const struct settings *settings, struct err *err)
{
    struct buf report;
    int code;

    buf_init(&report, REPORT_MAX);
    code = store_try_migrations(settings->store, &report, err);
    if (code == 0 && !settings->is_trial && report.n)
        code = migrate(settings->store, err);
    if (code == 0 && report.n)
        printf("%s:\n%s", settings->is_trial ? "This would be done" : "This was done", report.p);
    else if (code == 0)
        puts("The store is up to date.");
    buf_free(&report);
    return code;
}

int admin_migrate(int argc, char **argv)
{
    struct settings settings;
    struct arena arena = { 0 };
    struct err err = { 0 };
    char **rest;
    int outcome = option_parse(&command, argc, argv, environ, &arena, &settings, &rest, &err),
        status;

    if (outcome == OPTION_GO_ON)
        status = run(&settings, &err) < 0 ? 1 : 0;
    else
        status = outcome < 0 ? 2 : 0;
    if (status)
        fprintf(stderr, "%s: %s\n", command.name, err.text);
    arena_clear(&arena);
    return status;
}
