/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What commands that serve metrics can be told alike, and do alike. */
#ifndef SONDE_CMD_SERVE_H
#define SONDE_CMD_SERVE_H

#include "base/option.h"
#include "base/pattern.h"
#include "http/server.h"
#include "metric/family.h"

#include <signal.h>

/* A command's settings have one of these somewhere. */
struct serve_options {
    struct option_list listen;
    struct str web_config, telemetry_path;
    uint64_t max_connections;
    struct str exclude, log_level;
};

enum { SERVE_OPTIONS = 6 }; /* rows; the last of the group "Log" */

/* Writes the rows of the table, for options that stand at that offset of the settings. */
void serve_options_rows(size_t offset, const char *address, const char *max_connections,
                        struct option rows[SERVE_OPTIONS]);

/* -EINVAL with a sentence if one cannot be used. */
int serve_options_check(const struct serve_options *options, struct err *err);

/* The name of an option that differs and cannot be changed under way; NULL: none. */
const char *serve_options_changed(const struct serve_options *old, const struct serve_options *new);

/* --metrics.exclude; *ret is NULL without one. */
int serve_exclude(const struct serve_options *options, struct pattern **ret, struct err *err);

/* Bit i: the name of family i has a match. */
family_set serve_excluded(const struct pattern *exclude, const struct family *families, size_t n);

/* The row --[no-]collector.NAME. `texts` must live as long as the row. */
struct serve_collector_texts {
    char name[40], help[160];
};
struct option serve_collector_row(const char *name, const char *help, bool is_on, size_t offset,
                                  struct serve_collector_texts *texts);

/* What the server is told; routes and ctx are the caller's. */
struct http_config serve_http_config(const struct serve_options *options, const struct clock *clock,
                                     struct log *log);

void serve_use_log_level(struct log *log, const struct serve_options *options);

/* The lines on standard output that tell people what to open. */
void serve_say_where(const char *command, const struct http_server *server, struct str path);

/* Before any thread is started: signals (left to sigwait), the limit on descriptors. */
void serve_prepare(sigset_t *ret_signals);

/* The end of a command's description. */
#define SERVE_STOPS                                                                                \
    "\n\nSIGTERM or SIGINT ends it within 2 seconds, even if a part hangs: the log then names "    \
    "that part. Writing data to disk may take up to 8 seconds."

/* What to exit with. */
int serve_exit_status(int code);

#endif
