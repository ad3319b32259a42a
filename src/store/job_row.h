/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run as a row of the table `job`: what the files that write runs share. */
#ifndef SONDE_STORE_JOB_ROW_H
#define SONDE_STORE_JOB_ROW_H

#include "store/writer.h"

/* A value as it is kept. */
struct cell {
    enum { CELL_UNKNOWN, CELL_NUMBER, CELL_REAL } is;
    int64_t number;
    double real;
};

enum column {
    FIRST_SUBMIT_TIME,
    RESTARTS,
    ARRAY_JOB_ID,
    ARRAY_TASK_ID,
    HET_JOB_ID,
    HET_OFFSET,
    TASKS,
    USER_ID,
    USER,
    ACCOUNT,
    PARTITION,
    QOS,
    NAME,
    RESERVATION,
    STATE,
    REASON,
    NODE_LIST,
    EXIT_CODE,
    EXIT_SIGNAL,
    PRIORITY,
    ELIGIBLE_TIME,
    START_TIME,
    END_TIME,
    SUSPENDED_SECONDS,
    TIME_LIMIT_MINUTES,
    CPUS,
    NODE_COUNT,
    MEMORY_BYTES,
    GPUS,
    GPU_TYPES,
    BILLING,
    CPU_SECONDS,
    USER_SECONDS,
    SYSTEM_SECONDS,
    MEMORY_PEAK_BYTES,
    READ_BYTES,
    WRITE_BYTES,
    ENERGY_JOULES,
    AS_OF,
    ORIGIN,
    IS_COUNTED,
    LAST_SEEN,
    IS_WAIT_COUNTED,
    COLUMNS,
};

/* What IS_COUNTED can be: an end that was seen has yet to be told by accounting, if there is any.
 */
enum { RUN_OPEN, RUN_COUNTED, RUN_UNCOUNTED };

/* A row of the table. */
struct row {
    int64_t id; /* 0: it is not there */
    struct cell cells[COLUMNS];
    struct str rest; /* packed */
};

static inline struct cell number(int64_t value)
{
    return (struct cell){ .is = CELL_NUMBER, .number = value };
}

static inline struct cell number_if(bool is_known, int64_t value)
{
    return is_known ? number(value) : (struct cell){ .is = CELL_UNKNOWN };
}

static inline struct cell text_cell(int64_t id)
{
    return number_if(id, id);
}

static inline bool is_known(const struct row *row, enum column column)
{
    return row->cells[column].is != CELL_UNKNOWN;
}

/* 0 if it is unknown. */
static inline int64_t value_of(const struct row *row, enum column column)
{
    return row->cells[column].number;
}

static inline bool is_same(struct cell a, struct cell b)
{
    return a.is == b.is && (a.is == CELL_REAL ? a.real == b.real : a.number == b.number);
}

static inline bool is_changed(const struct row *now, const struct row *before, enum column column)
{
    return !is_same(now->cells[column], before->cells[column]);
}

/* Writes the texts of a record, and says what its row would be if nothing else were known. */
int job_row_of_record(struct store *store, const struct job_record *record, struct row *ret,
                      struct err *err);

/* ret->id stays 0 if it is not there. Its rest is in the scratch arena. Returns 1 if there is any
 * run with that id, on any cluster. */
int job_row_find(struct store *store, int64_t cluster, const struct job_record *record,
                 struct row *ret, struct err *err);

int job_row_add(struct store *store, int64_t cluster, const struct job_record *record,
                struct row *row, struct err *err); /* sets row->id */

/* Nothing is written if they are the same. */
int job_row_change(struct store *store, const struct row *before, const struct row *now,
                   struct err *err);

/* Adds what this look tells of the life of a run: before->id is 0 if it is the first. */
int job_life_note(struct store *store, const struct job_record *record, const struct row *before,
                  const struct row *now, struct err *err);
int job_life_add(struct store *store, int64_t job, int64_t time, int64_t state, int64_t reason,
                 struct err *err);

/* Counts how long it was pending when it has started, once: *now says whether that is done. */
void job_count_wait(struct store *store, const struct store_cluster *cluster,
                    const struct job_record *record, struct row *now);

/* Sets first_submit_time, here and where it follows from this run, and ends the run that was
 * requeued to be this one. */
int job_link_runs(struct store *store, const struct store_cluster *cluster,
                  const struct job_record *record, const struct row *before, struct row *now,
                  struct err *err);

#endif
