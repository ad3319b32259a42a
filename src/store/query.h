/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to a store. A reader sees one state of it, never half of a write, and disturbs nobody:
 * it opens the file read-only. Each struct store_reader is used by one thread at a time. */
#ifndef SONDE_STORE_QUERY_H
#define SONDE_STORE_QUERY_H

#include "base/arena.h"
#include "base/err.h"
#include "model/record.h"

struct store_reader;

/* As store_open, but -ENOENT if there is no file. */
int store_reader_open(struct str url, struct store_reader **ret, struct err *err);
struct store_reader *store_reader_close(struct store_reader *reader); /* returns NULL */

/* After this time (monotonic, clock_real) a question ends with -ETIMEDOUT. 0: never. */
void store_reader_deadline(struct store_reader *reader, int64_t deadline_ns);

bool store_reader_is_simulated(const struct store_reader *reader);

/* A run, or rather where it stands in the order of jobs: newest submit time first, then highest
 * id, then the cluster that the store knows for the shortest time. */
struct run_key {
    int64_t submit_time; /* 0: no key */
    uint32_t job_id;
    struct str cluster;
};

/* Words: any of them; without, all. More than STORE_WORDS_MAX of one kind, or of ids, or more nodes
 * in all lists: -E2BIG. */
enum { STORE_WORDS_MAX = 1000, STORE_NODES_MAX = 20000 };
struct words {
    const struct str *word;
    size_t n;
};

/* Which runs; an unset member lets all pass. A state is one word of "RUNNING+COMPLETING", long or
 * short ("R"); a partition one of "a,b"; a node may be a host list. */
struct job_filter {
    struct words clusters, users, accounts, partitions, qos, states, nodes, gpu_types, names,
        reservations;
    struct words visible_users, visible_accounts; /* … and of any of these users, or in any of these
                                                   * accounts: what who asks may see */
    const uint32_t *ids; /* job ids, array job ids or ids of heterogeneous jobs: with all theirs */
    size_t n_ids;
    uint32_t array_task_id, het_offset; /* of those; MODEL_UNKNOWN_U32: all */
    int64_t from, to; /* that waited, ran or ended in this time; 0: open; to: itself excluded */
    bool by_end;      /* … that ended in it */
    double efficiency_below, efficiency_above; /* CPU time used by CPU time held, 0…1; NAN: any */
    uint64_t min_gpus, min_cpus;
    int64_t min_seconds; /* that it ran, at least */
};

/* Nobody's: all pass. */
void job_filter_clear(struct job_filter *filter);

/* What is told of a run beside its record. */
struct job_row {
    struct run_key key;
    struct job_record record;  /* tres, tres_requested and extra only with wants_extra */
    int64_t first_submit_time; /* of the job's first run */
    uint64_t gpus;             /* MODEL_UNKNOWN_U64: not told */
    struct str gpu_types;      /* as tres_gpu_types */
    uint64_t billing;
    int64_t elapsed_seconds; /* without what it was suspended; of one that runs: so far; -1: none */
    int64_t wait_seconds;    /* from eligible to start; so far; -1: unknown */
    double cpu_efficiency;   /* of one that has ended; NAN: unknown */
    int64_t last_seen;       /* by the queue, which no longer shows it, while nobody tells of its
                              * end; else 0 */
};

struct job_order {
    struct run_key after; /* the last of the page before */
    size_t limit;         /* rows; 0: no limit */
    bool wants_extra;
};

/* Gives rows in order; texts are valid during the call. `now` is for what still runs. A negative
 * answer of `row` ends it and is passed on. `row` may ask the same reader for more, and is told of
 * the same state of the store. */
int store_jobs(struct store_reader *reader, const struct job_filter *filter,
               const struct job_order *order, int64_t now,
               int (*row)(void *ctx, const struct job_row *row), void *ctx, struct err *err);

/* The life of one run: (time, state, reason), in order; the array lives in the arena. */
struct job_moment {
    int64_t time;
    struct str state, reason;
};
int store_life(struct store_reader *reader, const struct run_key *key, struct arena *arena,
               struct job_moment **ret, size_t *ret_n, struct err *err);

/* What agents counted of one run, node by node. */
int store_finals(struct store_reader *reader, const struct run_key *key, struct arena *arena,
                 struct final_record **ret, size_t *ret_n, struct err *err);

/* What was kept of what it used; empty if there is nothing. */
int store_summary(struct store_reader *reader, const struct run_key *key, struct arena *arena,
                  struct str *ret, struct err *err);

/* Runs of a cluster that ran, ended in that time (`to` itself excluded), and have no summary yet:
 * at most `most`, those that ended last first. */
int store_unsummarised(struct store_reader *reader, struct str cluster, int64_t from, int64_t to,
                       size_t most, struct arena *arena, struct run_key **ret, size_t *ret_n,
                       struct err *err);

/* What can be grouped by. */
enum usage_key {
    USAGE_CLUSTER,
    USAGE_ACCOUNT,
    USAGE_USER,
    USAGE_PARTITION,
    USAGE_QOS,
    USAGE_GPU_TYPE, /* a run with GPUs of two types counts in both, each with its own GPUs */
    USAGE_STATE,
    USAGE_KEYS,
};
extern const struct str usage_key_words[USAGE_KEYS];
bool usage_key_find(struct str word, enum usage_key *ret);

/* What runs had allocated in a period, as sreport counts it: a run that began before or ends after
 * counts with the part that lies in it. While it is suspended its CPUs do not count, but all else
 * does. When it was suspended is known from polls; where they have shown nothing, the suspended
 * time is spread evenly over the run. Idle time of reservations, which sreport adds to the accounts
 * that may use them, is not included. One that runs counts until now, if the queue still shows it
 * and its time is not over: the end of others was missed. One of which only the start is known
 * counts until it was last heard of. */
struct usage_row {
    struct str keys[USAGE_KEYS]; /* of those that are grouped by, in their order */
    uint64_t jobs;               /* that ran in it */
    uint64_t started, ended;     /* of them, in it */
    uint64_t cpu_seconds, gpu_seconds, billing_seconds, node_seconds; /* allocated */
    double memory_byte_seconds;
    double used_cpu_seconds, of_cpu_seconds; /* of those that ended in it and whose use is known */
    uint64_t wait_seconds, waited;           /* sum over the jobs that started in it; how many */
};

struct usage_question {
    struct job_filter filter; /* its from and to are those of the question: both are set */
    const enum usage_key *keys;
    size_t n_keys;
    int64_t now;
    size_t most;             /* rows: -EFBIG past it */
    struct usage_row *total; /* of all together, each run once, whatever the keys; or NULL */
};

/* Rows in the order of their keys; the array lives in the arena. The order, for qsort_r(3); ctx is
 * a size_t, how many keys there are. */
int usage_row_compare(const void *a, const void *b, void *ctx);
int store_usage(struct store_reader *reader, const struct usage_question *question,
                struct arena *arena, struct usage_row **ret, size_t *ret_n, struct err *err);

/* One way to add up the runs of a question. */
struct usage_sum {
    int64_t from; /* later than that of the question, whose `to` it has; 0: the same */
    const enum usage_key *keys;
    size_t n_keys;
    struct usage_row *row; /* the answer, as of store_usage */
    size_t n;
};

/* Several sums at once: to read the runs takes longest, and is done once. Of the question, its keys
 * and its total are not looked at. */
int store_usage_sums(struct store_reader *reader, const struct usage_question *question,
                     struct usage_sum *sums, size_t n, struct arena *arena, struct err *err);

/* Runs that have ended since the store was begun, those that were deleted included. */
struct ended_row {
    struct str state, partition, account;
    uint64_t count;
};
int store_ended(struct store_reader *reader, struct str cluster, struct arena *arena,
                struct ended_row **ret, size_t *ret_n, struct err *err);

/* Runs in the store whose end is counted, by state as it is recorded; partition and account are
 * empty. Tasks of an array that ended together count each. It reads the whole table. */
int store_ended_runs(struct store_reader *reader, struct str cluster, struct arena *arena,
                     struct ended_row **ret, size_t *ret_n, struct err *err);

struct cluster_row {
    struct str name;
    uint64_t runs, nodes;
    int64_t first_submit_time, last_seen_time; /* of any run; 0: none */
    int64_t accounted_since, accounted_until;  /* what slurmdbd was asked for; 0: nothing yet */
    int64_t pruned_end; /* of what ended until then, something has been deleted; 0: nothing has */
    int64_t pruned_before, pruned_submit; /* ended before, or submitted until then: all has been */
};
int store_clusters(struct store_reader *reader, struct arena *arena, struct cluster_row **ret,
                   size_t *ret_n, struct err *err);

/* Clusters as a page of the present needs them, without what it takes long to count. */
struct look_row {
    struct str cluster;
    int64_t jobs_seen; /* when the queue was last looked at; 0: never */
};
int store_looks(struct store_reader *reader, struct arena *arena, struct look_row **ret,
                size_t *ret_n, struct err *err);

/* What was last kept by store_put_section, and as of when; 0: nothing. If that is `known_time`, the
 * document is not read. It lives in the arena. */
int store_section(struct store_reader *reader, struct str cluster, const char *kind,
                  int64_t known_time, struct arena *arena, int64_t *ret_time, struct str *ret,
                  struct err *err);

/* A number that is another one after somebody has written, or in another file. */
int store_reader_version(struct store_reader *reader, int64_t *ret, struct err *err);

struct node_row {
    struct str cluster;
    int64_t seen_time;
    struct node_record record;
};
struct node_filter {
    struct words clusters, names, states, partitions; /* a state: any word of "idle+drain" */
    struct str after_cluster, after_name;             /* the last of the page before; or empty */
    size_t limit;
};
int store_nodes(struct store_reader *reader, const struct node_filter *filter, struct arena *arena,
                struct node_row **ret, size_t *ret_n, struct err *err);

#endif
