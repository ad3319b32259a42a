/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of the simulated cluster taken apart into texts and numbers, of which the printers of
 * every format choose by tables; shared by sim_print.c and the sim_json*.c files only. */
#ifndef SONDE_TESTS_SIM_VIEW_H
#define SONDE_TESTS_SIM_VIEW_H

#include "sim_print.h"
#include "source/sim_sections.h"

/* Collects what is printed and hands it on in large pieces. */
struct sim_out {
    struct buf buf;
    sim_sink *sink;
    void *ctx;
    int code; /* negative once the sink wants no more */
};

/* Hands on what there is, if it is enough; to be called often enough that the buffer stays small.
 * Returns the code. */
int sim_out_pass(struct sim_out *out);

#define SIM_ABSENT   INT64_MIN /* "N/A", null */
#define SIM_INFINITE INT64_MAX /* "UNLIMITED" */

struct sim_job_view {
    const struct sim_job *job;
    struct str user, account, partition, qos, name, licenses, features, reservation;
    struct str state, reason, reason_word, login;
    struct str description; /* the reason, where it is more than a word */
    struct str nodes, first_host, tres, tres_requested, tres_allocated, gres_request, gres_detail;
    struct str task_text; /* "7", "5-40%4" or empty */
    struct str task_list; /* the second of these only */
    struct str het_ids, memory, limit, work_dir, std_out;
    int64_t id, array_id, array_id_or_id, task, throttle;
    int64_t het_id, het_id_or_absent, het_offset, het_offset_or_absent;
    int64_t user_id, association, cpus, node_count, tasks, memory_per_node, memory_per_cpu;
    int64_t limit_minutes, priority, restarts, exit_code, billing;
    int64_t submit, eligible, accrue, start, end, evaluated;
};

struct sim_node_view {
    const struct section *section;
    const struct node *node;
    struct str name, gres, gres_used, features, version, reason, reason_user, reservation;
    struct str architecture, kernel, tres, tres_used;
    int64_t cpus, cpus_alloc, cpus_free, cores, memory_mib, memory_alloc_mib, memory_free_mib;
    int64_t load_percent, weight, reason_time, port, boot_time, started, last_busy;
};

void sim_json_jobs(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                   bool is_42);
void sim_json_nodes(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                    bool is_42);

/* Calls `put` with each job in turn. */
typedef void sim_put_job(struct sim_out *out, const struct sim_cluster *cluster,
                         const struct sim_job_view *view, void *ctx);
void sim_view_jobs(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                   sim_put_job *put, void *ctx);

typedef void sim_put_node_view(struct sim_out *out, const struct sim_node_view *view, void *ctx);
void sim_view_nodes(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                    sim_put_node_view *put, void *ctx);

#endif
