/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags that say how Slurm is asked, for every command that asks it. */
#ifndef SONDE_CMD_SOURCE_OPTIONS_H
#define SONDE_CMD_SOURCE_OPTIONS_H

#include "base/option.h"
#include "source/source.h"

/* A command's settings have one of these somewhere. */
struct source_options {
    struct str source;
    bool demo;
    struct str conf, bin_path, prefix, helper_dir;
    struct str rest_url, rest_user, rest_token_file;
    struct str commands[KINDS]; /* of the site's own, in place of Slurm's */
    bool cli_fallback;
    int64_t timeout_ns;
    uint64_t max_answer;
};

enum { SOURCE_OPTIONS = 17 }; /* rows */

/* Writes the rows of the table, for options that stand at that offset of the settings. */
void source_options_rows(size_t offset, struct option rows[SOURCE_OPTIONS]);

/* -EINVAL with a sentence if they contradict each other. */
int source_options_check(const struct source_options *options, struct err *err);

struct source_settings source_options_settings(const struct source_options *options);

/* Whether both mean the same source. */
bool source_options_equal(const struct source_options *a, const struct source_options *b);

#endif
