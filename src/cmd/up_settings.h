/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde up` can be told beside what the exporter can, and what follows from it. */
#ifndef SONDE_CMD_UP_SETTINGS_H
#define SONDE_CMD_UP_SETTINGS_H

#include "cmd/exporter_options.h"
#include "cmd/web_options.h"

struct up_settings {
    struct settings exporter; /* first: the exporter knows no more than this */
    struct web_options web;
    struct str state_dir;
    struct {
        struct str path; /* empty: none are kept */
        int64_t interval_ns, retention_ns;
        uint64_t max_bytes;
    } series;
    bool has_agent;
    struct str user;

    /* made from the above */
    bool is_demo;
    bool has_own_directory; /* nobody has named another */
};

/* As exporter_hooks has them. */
void up_settings_make_options(struct exporter_options *made);
void up_settings_complete(const struct option_command *command, void *settings,
                          struct arena *arena);
int up_settings_read(struct settings *settings, struct err *err);
const char *up_settings_changed(const struct settings *old, const struct settings *new);

static inline const struct up_settings *up_settings_of(const struct settings *settings)
{
    return (const struct up_settings *)(const void *)settings;
}

/* Whom root becomes, if nothing else is said: "sonde" if there is one, else "nobody". */
const char *up_settings_user(const struct up_settings *settings);

#endif
