/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the cli source, shared by the cli_*.c files only: answers whose fields end with a
 * token, answers in lines, and every class of answer that the tables in cli_routes.c name. */
#ifndef SONDE_SOURCE_CLI_H
#define SONDE_SOURCE_CLI_H

#include "source/answer.h"
#include "source/frame.h"
#include "source/lines.h"
#include "source/source.h"

/* An answer in a frame begins with this. */
struct framed {
    struct answer answer;
    struct frame frame;
};

/* "JobID:TOKEN,ArrayJobID:TOKEN,…" */
void put_format_of(const char *const *fields, size_t n, const char *token, struct buf *to);
void framed_put_format(const struct answer *answer, const char *const *fields, size_t n,
                       struct buf *to);
int framed_feed(struct answer *answer, struct str piece, struct err *err);
int framed_end(struct answer *answer, struct err *err);

/* An answer in lines begins with this. One that ends in the middle of a line has been cut off. */
struct lined {
    struct answer answer;
    struct lines lines;
};

void lined_begin(struct answer *answer, void (*line)(void *ctx, struct str line));
int lined_feed(struct answer *answer, struct str piece, struct err *err);

/* *n_read is what was made of the lines: -EBADMSG with the first of them if none could be read.
 * NULL: the class knows by itself whether there was something. */
int lined_end(struct answer *answer, const size_t *n_read, struct err *err);
void lined_free(struct answer *answer);

extern const struct answer_class answer_squeue; /* KIND_JOBS */
extern const struct answer_class answer_owners; /* … their numbers, users and accounts only */
extern const struct answer_class answer_sinfo;  /* KIND_NODES */
extern const struct answer_class answer_sinfo_older;  /* … of a release without StateComplete */
extern const struct answer_class answer_reservations; /* KIND_RESERVATIONS */
extern const struct answer_class answer_licenses;     /* KIND_LICENSES */
extern const struct answer_class answer_sdiag;        /* KIND_DIAG */
extern const struct answer_class answer_sshare;       /* KIND_SHARES */
extern const struct answer_class answer_associations; /* KIND_ASSOCIATIONS */
extern const struct answer_class answer_config;       /* KIND_CONFIG */

/* An answer of answer_owners begins with this. */
struct owned {
    struct lined lined;
    char token[FRAME_TOKEN + 1];
};

/* Whose a job is in a line of words, "ID ACCOUNT USER" or, of a job without account, "ID USER":
 * what prometheus-cluster-exporter asks squeue for (-o "%A %a %u"). False: it is no such line. */
bool owner_line_read(struct answer *answer, struct str line, struct job *ret);

/* A second question to the section of nodes, from whatever answer: what scontrol tells of its
 * partitions. */
extern const struct answer_class answer_partitions;

/* A second question to the section of answer_config, if that has found something hidden: whether we
 * are an operator, so that it is not. */
extern const struct answer_class answer_config_user;

/* Says what is hidden from whom, and what to do; nothing if nothing is. `err` is why the second
 * question failed, or NULL. */
void config_warn(const struct section *section, const struct err *err,
                 char ret_warning[SOURCE_WARNING]);

/* Of commands that are not ours: foreign.h. */
extern const struct answer_class answer_foreign_jobs;
extern const struct answer_class answer_foreign_owners; /* … also in words, "ID ACCOUNT USER" */
extern const struct answer_class answer_foreign_nodes;
extern const struct answer_class answer_foreign_licenses;
extern const struct answer_class answer_foreign_diag;
extern const struct answer_class answer_foreign_limits; /* KIND_ASSOCIATIONS */

#endif
