/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `sonde exporter` can be told, and what follows from it. */
#ifndef SONDE_CMD_EXPORTER_SETTINGS_H
#define SONDE_CMD_EXPORTER_SETTINGS_H

#include "cmd/serve.h"
#include "cmd/source_options.h"
#include "http/metrics.h"
#include "source/trace.h"

struct settings {
    struct serve_options serve;
    struct source_options source;
    int64_t poll_limit_ns[KINDS]; /* that of KIND_JOBS holds for all that have none of their own */
    int64_t stale_limit_ns;
    bool collectors[COLLECTORS_MAX];
    struct {
        bool is_enabled, is_open;
        struct str path, munge_socket;
        int64_t rate_ns;
    } trace;

    /* made from the above */
    uint64_t excluded[COLLECTORS_MAX]; /* bit i: family i of the collector is not wanted */
    uint64_t excluded_self;
};

/* Reads flags, environment and file; an option_outcome, or -EINVAL with a sentence. */
int settings_parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                   struct err *err);

/* -EINVAL with a sentence if something differs that cannot be changed under way. */
int settings_check_reload(const struct settings *old, const struct settings *new, struct err *err);

/* Those that are on, of what the source can tell. */
collector_set settings_collectors(const struct settings *settings, const struct source *source);

struct trace_config settings_trace(const struct settings *settings, struct users *users);

struct refresh_tuning settings_tuning(const struct settings *settings, const struct source *source,
                                      const char *const_labels);

#endif
