/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can be said of each cluster that the exporter asks: how it is asked, which of its jobs are
 * ours, how long they are kept. Flags where there is but one; where there are several, each has a
 * file of its own with the same keys. */
#ifndef SONDE_CMD_CLUSTER_OPTIONS_H
#define SONDE_CMD_CLUSTER_OPTIONS_H

#include "cmd/source_options.h"
#include "source/keep.h"

struct cluster_options {
    struct source_options source;
    struct str name;                    /* empty: as Slurm calls it */
    struct option_list accounts, users; /* patterns of whose jobs are kept */
    int64_t retention_ns;
    uint64_t max_bytes;
};

enum { CLUSTER_NAME_MAX = 64 };

enum { CLUSTER_OPTIONS = 5 }; /* rows, beside those of its source */

/* Writes the rows of the table, for options that stand at that offset of the settings. */
void cluster_options_rows(size_t offset, struct option rows[CLUSTER_OPTIONS]);

/* -EINVAL with a sentence if they make no sense. */
int cluster_options_check(const struct cluster_options *options, struct err *err);

/* A cluster's own file; the name is by default the file's, without what follows the first dot. Of
 * other flags of the exporter (its table) it is told that they are for all clusters. */
int cluster_options_read(const char *path, const struct option *flags, struct arena *arena,
                         struct cluster_options *ret, struct err *err);

/* Whose jobs of it are kept; *ret is NULL for everybody's. */
int cluster_options_keep(const struct cluster_options *options, struct keep **ret, struct err *err);

/* Whether both ask the same source for the same jobs under the same name. */
bool cluster_options_equal(const struct cluster_options *a, const struct cluster_options *b);

#endif
