/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of what `sonde exporter`, `sonde lustre` and `sonde up` can be told. */
#ifndef SONDE_CMD_EXPORTER_OPTIONS_H
#define SONDE_CMD_EXPORTER_OPTIONS_H

#include "cmd/exporter_settings.h"

enum {
    EXPORTER_OPTIONS_MAX =
        SERVE_OPTIONS + SOURCE_OPTIONS + PROMETHEUS_OPTIONS + CLUSTER_OPTIONS + COLLECTORS_MAX + 80
};

/* The texts are those of rows that are made of the table of collectors. */
struct exporter_options {
    struct option rows[EXPORTER_OPTIONS_MAX];
    bool is_given[EXPORTER_OPTIONS_MAX]; /* as option_command has it */
    size_t n;
    struct serve_collector_texts texts[COLLECTORS_MAX];
};

void exporter_options_make(struct exporter_options *made, const struct exporter_shape *shape);

/* Each behind the last of its group, or at the end. */
void exporter_options_add(struct exporter_options *made, const struct option *rows, size_t n);

/* The row of that name, which must be there. */
struct option *exporter_options_row(struct exporter_options *made, const char *name);

/* The name of one that was given, and has a meaning only with --store, or is of one cluster; NULL:
 * none was. */
const char *exporter_options_of_store(const struct exporter_options *made);
const char *exporter_options_of_cluster(const struct exporter_options *made);

#endif
