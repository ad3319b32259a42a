/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which jobs of a board are asked for. A text is looked at once for each symbol, not for each job
 * that has it. */
#ifndef SONDE_WEB_QUEUE_FILTER_H
#define SONDE_WEB_QUEUE_FILTER_H

#include "collector/gres.h"
#include "collector/reasons.h"
#include "web/queue.h"
#include "web/queue_index.h"

/* What a question names, made ready to be looked up; for all clusters. */
struct queue_words {
    const struct queue_question *question;
    struct map partitions, hosts, gpu_types, reasons; /* nothing but keys */
    struct str text;                                  /* in small letters */
    bool is_text_of_id;                               /* it can be part of an id */
    uint32_t *ids;                                    /* ascending */
    bool *states;                                     /* by job_state_index: asked for */
    struct arena arena;
};

int queue_words_init(struct queue_words *words, const struct queue_question *question,
                     struct err *err);
void queue_words_free(struct queue_words *words);

/* Nothing is left out of any cluster. */
bool queue_words_are_none(const struct queue_words *words);

struct queue_filter;
typedef bool queue_judge(struct queue_filter *filter, symbol s);

/* A symbol of a job that must do. */
struct queue_test {
    size_t offset; /* in struct job */
    queue_judge *judge;
    uint8_t *verdict; /* by symbol */
};

/* The same for the jobs of one cluster. */
struct queue_filter {
    const struct queue_words *words;
    const struct queue_cluster *cluster;
    struct queue_test tests[10];
    size_t n_tests;
    struct queue_test has_text;                      /* of any of its columns; no verdict: off */
    struct queue_test may_see_user, may_see_account; /* one of them must do; likewise */
    struct queue_test asked_user, asked_account;     /* likewise */
    struct gres_reader gpus;
    struct reasons reasons;
    struct buf id;
    struct arena arena, lists; /* the second: of one list of nodes */
};

/* False: none of its jobs is asked for, and there is nothing to be freed. */
bool queue_filter_init(struct queue_filter *filter, const struct queue_words *words,
                       const struct board_cluster *cluster, const struct queue_cluster *jobs);
void queue_filter_free(struct queue_filter *filter);

bool queue_filter_takes(struct queue_filter *filter, const struct job *job);

/* How long it has run; -1: it has not started, or nobody told. */
int64_t queue_elapsed(const struct job *job, int64_t now);

#endif
