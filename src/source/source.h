/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A way of learning what Slurm knows. It fills sections and knows no metric names. Each source is
 * used by one thread at a time. */
#ifndef SONDE_SOURCE_SOURCE_H
#define SONDE_SOURCE_SOURCE_H

#include "base/clock.h"
#include "base/err.h"
#include "model/section.h"

#include <stdatomic.h>

struct source;

enum { SOURCE_WARNING = 300 }; /* bytes of a warning that are kept */

struct source_class {
    const char *name; /* the word before the colon in --source=NAME:SETTINGS */
    unsigned kinds;   /* KIND_BIT of all it can tell */

    /* Looks at one kind. `deadline_ns` is monotonic time of clock_real. On success *ret is a new
     * section with nothing but its time left to be set. *ret_warning gets what the
     * source's own helper said while succeeding, or stays empty. */
    int (*read)(struct source *source, enum kind kind, int64_t deadline_ns, struct section **ret,
                char ret_warning[SOURCE_WARNING], struct err *err);
    void (*close)(struct source *source);

    /* Whether it can work at all, as far as can be told without asking Slurm. May be NULL. */
    int (*probe)(const struct source *source, struct err *err);
};

/* What every source begins with. */
struct source {
    const struct source_class *class;
    const struct clock
        *clock;            /* what time it is for Slurm: the simulation's clock, times in text */
    atomic_bool cancelled; /* set by another thread to end a read early */
    bool simulated;        /* everything made from it must say so */
};

struct source_settings {
    struct str spec;            /* "cli", "sim:nodes=100,jobs=1000,seed=1" */
    struct str bin_path;        /* of the cli source: where Slurm's commands are; empty = in PATH */
    struct str commands[KINDS]; /* command lines to run instead, exactly as given; empty = none */
    bool is_json;               /* ask Slurm's commands for JSON where they have it */
    size_t max_output;          /* ceiling on one command's answer */
};

/* What stands behind the colon of the spec. */
struct str source_details(const struct source_settings *settings);

/* -EINVAL with a sentence if there is no such source or its settings are wrong. */
int source_open(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err);
struct source *source_close(struct source *source);

int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err);
int source_open_sim(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err);

#endif
