/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags that say where a Prometheus is, and who asks it, for every command that does. */
#ifndef SONDE_CMD_PROMETHEUS_OPTIONS_H
#define SONDE_CMD_PROMETHEUS_OPTIONS_H

#include "base/option.h"
#include "report/facts_series.h"
#include "source/prometheus.h"

/* A command's settings have one of these somewhere. */
struct prometheus_options {
    struct str url, user, password_file, bearer_file, ca_file;
    int64_t timeout_ns;
    uint64_t max_answer;
};

enum { PROMETHEUS_OPTIONS = 7 }; /* rows */

/* Writes the rows of the table, for options that stand at that offset of the settings. */
void prometheus_options_rows(size_t offset, struct option rows[PROMETHEUS_OPTIONS]);

/* The row of a list of matchers, for commands that ask it about jobs. */
struct option prometheus_matcher_row(size_t offset);
int prometheus_matchers_read(const struct option_list *list, struct arena *arena,
                             struct series_matcher **ret, struct err *err);

/* -EINVAL with a sentence if one cannot be used. */
int prometheus_options_check(const struct prometheus_options *options, struct err *err);

struct prometheus_settings prometheus_options_settings(const struct prometheus_options *options);

/* Whether both mean the same server, asked in the same way. */
bool prometheus_options_equal(const struct prometheus_options *a,
                              const struct prometheus_options *b);

#endif
