/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a command can be told, as one table: it makes the flags, the environment variables, the keys
 * of --config.file, --help and the man page. A flag beats the environment, which beats the file. */
#ifndef SONDE_BASE_OPTION_H
#define SONDE_BASE_OPTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum option_type {
    OPTION_BOOL,     /* bool; --x, --x=true, --x=false, --no-x; a dotted name takes no- in front */
    OPTION_STRING,   /* struct str */
    OPTION_LIST,     /* struct option_list: repeatable; also a YAML list */
    OPTION_DURATION, /* int64_t nanoseconds; "10", "10s", "5m" */
    OPTION_BYTES,    /* uint64_t */
    OPTION_UINT,     /* uint64_t */
    OPTION_CHOICE,   /* struct str, one of the words in `choices` */
};

struct option_list {
    struct str *items;
    size_t n;
};

bool option_list_equal(struct option_list a, struct option_list b);

/* A row. Two may share an offset, an old name of a flag beside its new one: the first row's initial
 * value holds. One whose name is a single letter is short for the row before it, whose place it
 * shares: -t for --timer, as "-t 15", "-t=15" or "-t15". */
struct option {
    const char *name; /* as after the dashes: "web.listen-address"; NULL ends the table */
    enum option_type type;
    size_t offset;       /* where its value stands in the command's struct of settings */
    const char *value;   /* the word for its value in --help: "ADDRESS"; NULL: by its type */
    const char *initial; /* as the environment would have it; NULL = empty, 0, false */
    const char *env;     /* name of its environment variable, or NULL */
    const char *choices; /* "debug info warn error" */
    const char *group;   /* headline in --help; rows of one group stand together */
    const char *help;    /* one sentence or a few */
};

struct option_command {
    const char *name;        /* "sonde exporter" */
    const char *summary;     /* one line, lower case, no full stop */
    const char *description; /* paragraphs for the man page, and the first for --help */
    const char *arguments;   /* "JOBID…" or NULL when it takes none */
    bool takes_command;      /* the arguments are a command with flags of its own: ours end at the
                              * first argument */
    const char *end_flag;    /* another way to write "--": "cmd" for --cmd; or NULL */
    bool shares_file;        /* --config.file is another command's: keys that only that one has are
                              * passed over */
    const struct option *elsewhere; /* keys that are none here but are known in another place; or
                                     * NULL */
    const char *elsewhere_is; /* what to do with those: ends "slurm.conf does not belong here:" */
    bool *is_given;           /* by row: set if anybody gave it a value; or NULL */

    /* Sets what nobody gave and has no fixed initial value; or NULL. */
    void (*complete)(const struct option_command *command, void *settings, struct arena *arena);
    const char *exit_status; /* for the man page, if it is not 0, 1 or 2 as usual; or NULL */
    const struct option *options;
};

/* What every table has without listing it: --config.file, --config.print, --help (-h), --version.
 * There is also, hidden, --man, which writes the man page. */
extern const struct option option_common[];

enum option_outcome {
    OPTION_GO_ON = 0,
    OPTION_EXIT_OK = 1 /* --help, --version, --man, --config.print printed */
};

/* Fills `settings` from the table's initial values, then the file that --config.file names, then
 * the environment, then argv (one dash or two; "-x=v", "-x v"; the last one of several holds, and a
 * list collects them). A list is replaced as a whole by whoever gives it; in the environment its
 * items are separated by commas. Keys of the file are the names, flat or nested at their dots. An
 * empty variable and a key without a value count as absent. *ret_rest gets the arguments that are
 * no flags, ended by NULL, in the arena; after "--" all are arguments. Nothing is kept and argv is
 * left alone: call it again, with a fresh arena and struct, to read a changed file; on failure
 * `settings` is half-filled. Returns an option_outcome, or -EINVAL with a sentence that names the
 * flag or key, the file and line, and the nearest valid one (-EIO if standard output did not take
 * what was to be printed). */
int option_parse(const struct option_command *command, int argc, char **argv, char *const *env,
                 struct arena *arena, void *settings, char ***ret_rest, struct err *err);

/* Whether anybody gave the row of that name a value; needs command->is_given. */
bool option_is_given(const struct option_command *command, const char *name);

/* Where a value came from: the first that is set of these, else it is the initial one. */
struct option_origin {
    bool is_flag, is_env, is_file;
    unsigned line; /* of the file; also of a key without a value */
};

/* All settings as --config.print has them: YAML, behind each its origin (by row); passwords in URLs
 * are left out. */
void option_print(const struct option_command *command, const void *settings,
                  const struct option_origin *origins, const char *config_file, struct buf *out);

/* As --help and --man print them. */
void option_help(const struct option_command *command, struct buf *out);
void option_man(const struct option_command *command, struct buf *out);

#endif
