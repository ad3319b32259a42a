/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of facts_series share: one run's questions, and what was answered. Its times and
 * steps are those of the embedded series, too. */
#ifndef SONDE_REPORT_SERIES_H
#define SONDE_REPORT_SERIES_H

#include "report/facts_series.h"

enum {
    SERIES_QUERY = 200 * 1024, /* bytes of one */
    SERIES_MANY_NODES = 50,    /* with more, of most numbers only the sum is asked for */
    SERIES_NODES_MAX = 8192,   /* more of them, or of GPUs or names, are passed over */
    SERIES_NAMES_MAX = 300,
};

/* One number, as told. */
struct series_reading {
    struct str label[PROMETHEUS_LABELS]; /* the first: the word of what it is */
    double value;                        /* finite, not negative */
};

struct series_gpu {
    struct str node, gpu, instance; /* instance: of one that is shared out (MIG), or empty */
};

struct series {
    const struct series_question *question;
    struct job_facts *facts;
    struct arena *arena;  /* of the facts */
    struct arena scratch; /* of what is asked and answered */
    char job_id[16];
    int64_t begin, end; /* of the run, or now */
    int64_t clean;      /* from then on no agent shows what it counted of the run before */
    int64_t last;       /* until when the agent may still show its counters */

    /* What was learned first. */
    bool has_agents;        /* their names are there; else those of jobs_exporter may be */
    bool has_old_names;     /* those of jobs_exporter are */
    size_t n_nodes;         /* that tell of the run */
    struct series_gpu *gpu; /* that it held */
    size_t n_gpus;
    struct str gpu_nodes;     /* matchers of their nodes; or empty */
    int64_t interval_seconds; /* between two samples */

    struct series_reading *reading;
    size_t n_readings, room;
};

/* One query, answered by readings that are added. Its labels begin with that of the word. */
struct series_query {
    const struct buf *text;
    int64_t time;
    const char *labels[PROMETHEUS_LABELS];
};
int series_ask(struct series *series, const struct series_query *query, struct err *err);

/* For the next query. */
int64_t series_timeout_ms(const struct series *series);

/* That the server says part of the data is missing, if it does. */
void series_note_warning(struct series *series, const char *warning);

/* Seconds between two points of a plot, or of a subquery that stands for one, of so many members.
 */
int64_t series_step(const struct series *series, size_t n_members);

/* When the run of the facts was: sets begin, end, clean and last. False if it has not begun. */
bool series_find_times(struct series *series);

/* There was a run before. */
bool series_is_requeued(const struct series *series);

/* Over how many seconds a rate, or a gauge, is taken at each. */
int64_t series_rate_seconds(const struct series *series, int64_t step);
int64_t series_gauge_seconds(const struct series *series, int64_t step);

/* Writes PromQL in which stand for what is the same all over:
 *     $   job_id="4711",cluster="beluga"      the job, as agents label it
 *     &   slurm_job="4711",cluster="beluga"   as jobs_exporter does
 *     ?   jobid="4711",cluster="beluga"       as Lustre does
 *     #   node=~"g1|g2",cluster="beluga"      nodes with GPUs of the job
 *     @   [3600s]                             the time of the run, `range_seconds`
 *     ^   [60s]                               time for a rate
 *     '   [30s]                               time for a gauge
 *     ;   [3600s:15s]                         all steps of the run
 *     !   15                                  seconds of these
 *     <    offset 3600s                       to the beginning of the run
 *     %    offset 60s                         from the end of the run to `last`, if that is later
 */
struct series_times {
    int64_t range_seconds, rate_seconds, gauge_seconds, step_seconds;
};
void series_put(const struct series *series, const struct series_times *times, struct buf *to,
                const char *text);

/* "n1" of "n1:9798"; also of "[::1]:9798". */
struct str series_host(struct str instance);

/* series_numbers.c: numbers of nodes, process names, cores, Lustre. */
int series_ask_numbers(struct series *series, struct err *err);
void series_take_numbers(struct series *series);

/* series_gpus.c */
int series_ask_gpus(struct series *series, struct err *err);
void series_take_gpus(struct series *series);

void series_put_gpu(struct buf *to, struct str gpu, struct str instance); /* "0", "0:3" */

/* series_plots.c: also what is read from them. */
int series_take_plots(struct series *series, struct err *err);

#endif
