/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runs that have a name, as the store and sacct tell of them. */
#ifndef SONDE_REPORT_GATHER_RUNS_H
#define SONDE_REPORT_GATHER_RUNS_H

#include "report/gather.h"

/* Who wants them. */
struct run_sink {
    int (*take)(void *ctx, const struct job_row *row); /* as of store_jobs */
    void *ctx;
};

/* Those whose name it is, the newest first; with requeued ones, and with those that had the id when
 * it was used before. */
int runs_of_store(const struct gather *gather, const struct job_name *name, bool wants_extra,
                  const struct run_sink *sink, struct err *err);

/* Likewise, in any order, with extra fields; as of sacct_ask. If whose sacct it is is not known:
 * with `asks_cluster` it is asked of the cluster that the name has. */
int runs_of_sacct(const struct gather *gather, const struct job_name *name, bool asks_cluster,
                  const struct run_sink *sink, struct err *err);

/* Notes who told of the run, whose row was taken last. What a simulated store has said stays
 * simulated, whoever adds to it. */
void runs_note_teller(const struct gather *gather, enum facts_teller teller,
                      struct facts_origin *origin);

/* What the store would tell of a record that it does not have. `types` is where gpu_types stands.
 */
enum { RUN_GPU_TYPES_MAX = 1024 };
void runs_row_of(const struct job_record *record, struct str cluster, int64_t now,
                 char types[RUN_GPU_TYPES_MAX], struct job_row *ret);

/* Whether it can have the runs of that cluster; empty: of any. */
bool runs_has_sacct(const struct gather *gather, struct str cluster);

/* Tasks of one array, or components of one job. */
bool runs_are_kin(const struct job_row *a, const struct job_row *b);

/* Where a run stands among all that have the id of an array or of a heterogeneous job. */
struct run_place {
    uint32_t job_id;
    uint32_t parent; /* the id of the array, or of the job; 0: none */
    uint32_t part;   /* task, or component */
    int64_t submit_time, first_submit_time;
    unsigned end; /* how much is known of it */
    size_t at;    /* whose it is: the caller's */
};
struct run_place runs_place(const struct job_row *row, size_t at);

/* Of all runs of a cluster that have the id: those of the newest job that has it, each part once,
 * with its newest run; in the order of the parts. How many they are. */
size_t runs_keep_newest(struct run_place *place, size_t n);

/* The clusters that have a run of the name: more than one, and it cannot be told which is meant. */
enum { RUN_CLUSTERS_MAX = 8 };
struct run_clusters {
    struct str name[RUN_CLUSTERS_MAX];
    size_t n;
};
void run_clusters_note(struct run_clusters *clusters, struct arena *arena, struct str cluster);
int run_clusters_check(const struct run_clusters *clusters, const struct job_name *name,
                       struct err *err); /* -ENOTUNIQ */

/* -ENOENT with a sentence; `why` is why sacct was of no help, or empty. */
int runs_none(const struct gather *gather, const struct job_name *name, struct str why,
              struct err *err);

/* Adds what agents counted of the run, as the store has it. */
int runs_take_finals(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                     struct err *err);

/* Adds a summary that was kept, or is empty. Samples tell more, while they are there; one that
 * cannot be read is as good as none. */
void runs_take_summary(struct job_facts *facts, struct arena *arena, struct str summary);

/* Adds both. */
int runs_take_kept(const struct gather *gather, struct job_facts *facts, struct arena *arena,
                   struct err *err);

#endif
