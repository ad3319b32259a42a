/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags that say which runs are asked for, and of which store: those of sacct(1), and more. */
#ifndef SONDE_CMD_QUESTION_H
#define SONDE_CMD_QUESTION_H

#include "base/option.h"
#include "store/query.h"

/* A command's settings have one of these somewhere. */
struct question_options {
    struct str store;
    struct option_list clusters, users, accounts, partitions, qos, states, nodes, gpu_types, names,
        reservations;
    bool all_users;
    struct str from, to;
    struct str efficiency_below, efficiency_above;
    uint64_t min_cpus, min_gpus;
    int64_t min_elapsed_ns;
};

enum { QUESTION_OPTIONS = 31 }; /* rows */

void question_options_rows(size_t offset, struct option rows[QUESTION_OPTIONS]);

/* What they mean at this time (UTC seconds). What the filter points to lives in the arena. -EINVAL
 * with a sentence that names the flag. */
int question_filter(const struct question_options *options, int64_t now, struct arena *arena,
                    struct job_filter *ret, struct err *err);

/* "a,b" and repeated flags as words. */
struct words question_words(const struct option_list *list, struct arena *arena);

/* Whether rows are grouped by it, and as which of the keys. */
bool question_has_key(const struct usage_question *question, enum usage_key key, size_t *ret_at);

/* Whose jobs are meant if nobody's are named: those of who asks; empty: everybody's, for root. */
struct str question_own_user(struct arena *arena);

/* For a failure: 2 if something was asked for that cannot be, 1 otherwise. */
int question_exit_status(int code);

#endif
