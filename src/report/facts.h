/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All that is known of one run of a job: what it was given, what it used, where, and when. Views
 * show it, checks judge it; neither computes more. Numbers are doubles, so that unknown is NAN
 * everywhere: what was not measured is not shown, and not judged. */
#ifndef SONDE_REPORT_FACTS_H
#define SONDE_REPORT_FACTS_H

#include "store/query.h"

/* What was given to and used by a job on one node, or on all of them: then sums, where nothing else
 * is said. report/use_members.h has a table of them. */
struct use_facts {
    double cpus, memory_bytes, gpus; /* allocated */
    double cpu_seconds, user_seconds, system_seconds;
    double busiest_cpus; /* the most CPUs in use at once, between two samples */
    double throttled_seconds;
    double memory_peak_bytes;    /* of all nodes: the sum of each one's peak; see has_task_peak */
    double memory_counted_bytes; /* the kernel's own peak, where it counts one; samples miss what
                                  * lies between them: facts_has_sampled_peak */
    double swap_peak_bytes;
    double read_bytes, written_bytes; /* from and to storage */
    double read_calls, write_calls;
    double files_peak, processes_peak, threads_peak; /* the most in any look */
    double oom_kills, limit_hits;
    /* Pressure: some of it waited; of all nodes: the longest, to be held against the elapsed time.
     */
    double cpu_waiting_seconds, memory_waiting_seconds, io_waiting_seconds;
    double uses_scratch; /* 1, 0 */
};

/* Unknown, all of it. */
extern const struct use_facts use_facts_unknown;

/* By core, where the kernel counts it so (cgroup v1). */
struct core_facts {
    uint32_t core;
    double seconds;
};

struct process_facts {
    struct str name;
    double instances_peak, threads_peak, cpu_seconds; /* over all nodes */
};

struct node_facts {
    struct str name;
    struct use_facts use;
    struct core_facts *core;
    size_t n_cores;
    struct process_facts *process; /* as its agent told at the end: CPU time only */
    size_t n_processes;
};

struct spread {
    double min, mean, max;
};

struct gpu_facts {
    struct str node, gpu; /* its number or UUID, as the agent calls it */
    struct str model;
    struct spread utilization_ratio, memory_used_bytes, power_watts, temperature_celsius;
    double memory_bytes, energy_joules;
    double processes_peak; /* of the job, on it: 0 for one that it held and never used */
};

/* On Lustre, as its servers tell. */
struct lustre_facts {
    double read_bytes, written_bytes, operations, opens;
};

/* What is drawn over time. */
enum facts_plot_kind {
    PLOT_CPU,    /* CPUs in use */
    PLOT_MEMORY, /* bytes */
    PLOT_READ,   /* bytes per second */
    PLOT_WRITTEN,
    PLOT_GPU,        /* ratio in use */
    PLOT_GPU_MEMORY, /* bytes */
    PLOT_GPU_POWER,  /* watts */
    FACTS_PLOTS,
};

enum { PLOT_LINES_MAX = 50, PLOT_POINTS_MAX = 1000 };

struct plot_line {
    struct str name; /* a node, "node gpu"; of many: "median", "lowest", "highest" */
    double *value;   /* as many as the plot has points; NAN: a gap */
};

struct facts_plot {
    int64_t begin, step_seconds; /* of the first point, UTC seconds; */
    size_t n_points;             /* 0: nothing to draw */
    struct plot_line *line;
    size_t n_lines;
    size_t n_members; /* that the lines stand for; more than n_lines: they are median and range */
};

/* Earlier runs of the same user and job name that ended well, for what to ask for next time. */
struct earlier_facts {
    size_t n;
    double cpus_used;         /* the highest mean number of CPUs in use */
    double memory_peak_bytes; /* the highest */
    double elapsed_seconds;   /* the longest */
};

/* Who was asked for the run's record. */
enum facts_teller { TOLD_BY_QUEUE, TOLD_BY_STORE, TOLD_BY_SACCT };
enum { FACTS_TELLERS = 3 };
extern const char *const facts_teller_words[FACTS_TELLERS]; /* "store" */

struct facts_origin {
    enum facts_teller teller;
    bool is_simulated;        /* the cluster does not exist: every view says so */
    bool has_accounting;      /* slurmdbd's final record */
    bool has_agents;          /* agents' final counters */
    bool has_series;          /* samples of a Prometheus, or of the store */
    bool has_summary;         /* what was kept of them, as they themselves are gone */
    bool has_task_peak;       /* total.memory_peak_bytes is of the largest task, as accounting has
                               * it: of a job with several it is less than what they all held */
    bool has_failed_series;   /* they were asked for, and whether there are any was not told */
    struct str series;        /* of which server, "http://host:9090" */
    struct str why_no_series; /* a sentence, if it should have some; else empty */
    int64_t asked_time;
};

/* Where a name is found among many: facts.c's own. */
struct facts_index {
    uint32_t *slot;
    size_t n_slots;
};

struct job_facts {
    struct job_row row; /* with its extra fields; texts in the arena; end_time is 0 while it runs */
    bool is_running;
    int64_t now;
    struct job_moment *life;
    size_t n_life;
    struct use_facts total;
    struct node_facts *node;
    size_t n_nodes; /* of which something is known; row.record.node_count is how many it had */
    struct gpu_facts *gpu;
    size_t n_gpus;
    struct process_facts *process;
    size_t n_processes;
    struct lustre_facts lustre;
    struct facts_plot plot[FACTS_PLOTS];
    struct earlier_facts earlier;
    struct facts_origin origin;
    struct facts_index node_index, gpu_index, process_index;

    /* Derived, by facts_finish. */
    double cpu_seconds_held; /* CPUs times the time they were held */
    double cpu_ratio;        /* used of that */
    double mean_cpus;        /* in use */
    double memory_ratio;     /* peak of what was allocated; NAN if it is one task's of several */
    double time_ratio;       /* elapsed of the time limit */
    double gpu_ratio;        /* mean utilization of all GPUs */
    double gpu_memory_ratio; /* peaks of what they have */
    double cores_used;       /* those with at least 80 % of their share of the time; NAN on v2 */
};

void job_facts_clear(struct job_facts *facts);

/* A node of that name, added if it is not there. Valid until the next is added. */
struct node_facts *facts_node(struct job_facts *facts, struct arena *arena, struct str name);
struct gpu_facts *facts_gpu(struct job_facts *facts, struct arena *arena, struct str node,
                            struct str gpu);
struct process_facts *facts_process(struct job_facts *facts, struct arena *arena, struct str name);

/* What the run's record says: the beginning of all facts. Copies into the arena. */
void facts_take_row(struct job_facts *facts, struct arena *arena, const struct job_row *row,
                    int64_t now);

/* What an agent counted (agent/final.h has the document). Never makes a known number smaller.
 * -EBADMSG for one that is not what an agent writes; nothing is taken of it then. */
int facts_take_final(struct job_facts *facts, struct arena *arena, const struct final_record *final,
                     struct err *err);

/* Totals of what nodes have, then all that is derived. Call it last; again, if more was taken. Of
 * CPU time and memory there is a total only if all nodes told theirs, or accounting did: otherwise
 * half a job would look like an idle one. Other sums are of those that told. */
void facts_finish(struct job_facts *facts);

/* Whether the peak of memory is the highest of samples: the job may have used more between them. So
 * is the kernel's own peak where the job ran out of memory after it was last read. */
bool facts_has_sampled_peak(const struct job_facts *facts);

/* What is kept for good of a finished run, as JSON, and back: all but plots, life and record. At
 * most SUMMARY_MAX bytes: of many nodes, GPUs and names those that stand out, and how many more. */
enum { SUMMARY_MAX = 32 * 1024 };
void facts_put_summary(struct buf *to, const struct job_facts *facts);
int facts_take_summary(struct job_facts *facts, struct arena *arena, struct str document,
                       struct err *err);

#endif
