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
struct source_about;

enum { SOURCE_WARNING = 600 }; /* bytes of a warning that are kept */

struct source_class {
    const char *name; /* the word before the colon in --source=NAME:SETTINGS */
    unsigned kinds;   /* KIND_BIT of all it can tell */

    /* Looks at one kind. `deadline_ns` is monotonic time of clock_real. On success *ret is a new
     * section with nothing but its time left to be set. *ret_warning gets what the
     * source's own helper said while succeeding, or stays empty. `err` must not be NULL. -EAGAIN:
     * it waits for another source to tell something first, and of that one's troubles is told. */
    int (*read)(struct source *source, enum kind kind, int64_t deadline_ns, struct section **ret,
                char ret_warning[SOURCE_WARNING], struct err *err);
    void (*cancel)(struct source *source); /* also those that it asks itself; may be NULL */
    void (*close)(struct source *source);

    /* Whether it can work at all, as far as can be told without asking Slurm. May be NULL. */
    int (*probe)(const struct source *source, struct err *err);

    /* May be NULL: there is nothing to say but its name. By the thread that reads. */
    void (*tell)(const struct source *source, struct source_about *about);
};

/* What a source says of itself. */
struct source_about {
    const char *door;            /* the name of the class that answers: what "auto" has chosen */
    char reason[SOURCE_WARNING]; /* why that one; empty if it was asked for by its name */
    char interface[40];          /* which of its versions is spoken, "v0.0.42", "22.05"; or empty */
    int64_t token_expires;       /* UTC seconds; 0: it has no token, or one without an end */
};

/* How much anybody wants to know; a door tells more if that costs it nothing. */
enum source_depth {
    SOURCE_DETAILS, /* all, also which GPUs a job holds */
    SOURCE_PLAIN,   /* not what costs some doors more to ask */
    SOURCE_OWNERS,  /* of jobs: their numbers, users and accounts */
};

/* What every source begins with. */
struct source {
    const struct source_class *class;
    const struct clock
        *clock;            /* what time it is for Slurm: the simulation's clock, times in text */
    atomic_bool cancelled; /* see source_cancel */
    bool simulated;        /* everything made from it must say so */
    /* To be set before a read. Another thread may probe meanwhile. */
    _Atomic enum source_depth depth;
};

/* Texts need to last only while the source is opened. */
struct source_settings {
    struct str spec;            /* "auto", "cli", "sim:nodes=100,jobs=1000,seed=1" */
    struct str conf;            /* slurm.conf for Slurm's commands and library; empty: their own */
    struct str bin_path;        /* of cli and json: where Slurm's commands are; empty = in PATH */
    struct str prefix;          /* of cli and json: what is given the commands as one shell command
                                 * line to run, "ssh -oBatchMode=yes cedar"; empty = they run here */
    struct str commands[KINDS]; /* of cli: command lines to run instead, exactly as given */
    struct str rest_url;        /* of rest: "http://host:6820", "unix:/run/slurmrestd/socket" */
    struct str rest_user;       /* of rest: empty = whom the token names */
    struct str rest_token_file; /* of rest: a JSON web token; empty = the socket tells who we are */
    struct str helper_dir; /* of libslurm: where sonde-libslurm-RELEASE is; empty = beside us */
    size_t max_answer;     /* ceiling on the memory that one answer takes; of sacct and replay, on
                            * its length */
};

/* What stands behind the colon of the spec. */
struct str source_details(const struct source_settings *settings);

/* -EINVAL with a sentence: there is no such way. Before anything is started. */
int source_check(const struct source_settings *settings, struct err *err);

/* -EINVAL with a sentence if there is no such source or its settings are wrong. */
int source_open(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err);
void source_cancel(
    struct source *source); /* by any thread: ends a read early, and all that follow */
struct source *source_close(struct source *source);

/* What is said of it now; without tell(), its name. */
void source_tell(const struct source *source, struct source_about *ret);

/* Each in a file of its name. */
int source_open_auto(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err);
int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err);
int source_open_json(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err); /* in cli.c */
int source_open_libslurm(const struct source_settings *settings, const struct clock *clock,
                         struct source **ret, struct err *err);
int source_open_replay(const struct source_settings *settings, const struct clock *clock,
                       struct source **ret, struct err *err);
int source_open_rest(const struct source_settings *settings, const struct clock *clock,
                     struct source **ret, struct err *err);
int source_open_sim(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err);

#endif
