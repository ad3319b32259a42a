/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The inside of the simulated cluster, shared by the sim*.c files only.
 *
 * The nodes are cut into units: a few cores or GPUs of a node, or a group of whole nodes. A unit
 * does one job after another, for ever. Units that take about equally long belong to one class, and
 * the jobs of a class are numbered in the order in which they are submitted: job n of a class with
 * S units runs on unit n mod S. So the number alone tells when a job is submitted, where and when
 * it runs, and, with a hash of it, everything else; which jobs can be seen at a moment is a range
 * of numbers, and no unit ever has two jobs at once.
 *
 * Where a queue was asked for that the nodes could not work off in weeks, there is a surplus: only
 * every k-th job gets a turn, and the others are withdrawn when theirs would have come. */
#ifndef SONDE_SOURCE_SIM_CLUSTER_H
#define SONDE_SOURCE_SIM_CLUSTER_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/state.h"
#include "source/sim.h"

enum {
    SIM_NODES_MAX = 200000,
    SIM_JOBS_MAX = 5000000,
    SIM_USERS_MAX = 100000,
    SIM_UID_FIRST = 10001,
    SIM_MIN_JOB_AGE = 300, /* seconds for which a finished job stays visible, as Slurm's default */
    SIM_NONE = UINT32_MAX,
};

/* The nearest time that the simulation can tell of: from 1972 on, so that what waits then was not
 * submitted before 1970, and not past the year 5000. */
int64_t sim_bounded(int64_t time);

uint64_t sim_hash(uint64_t a, uint64_t b);

/* 0 … n-1, from a hash. */
static inline uint64_t sim_below(uint64_t hash, uint64_t n)
{
    return (uint64_t)((unsigned __int128)hash * n >> 64);
}

static inline uint32_t sim_at_least_one(uint32_t count)
{
    return count ? count : 1;
}

static inline uint64_t sim_pick(uint64_t key, uint64_t salt, uint64_t n)
{
    return sim_below(sim_hash(key, salt), n);
}

/* What the salts of sim_pick stand for: each decision of its own is drawn on its own. */
enum sim_salt {
    SIM_SALT_LAYOUT = 1,
    SIM_SALT_WIDTH,
    SIM_SALT_ARRAY,
    SIM_SALT_CLASS,
    SIM_SALT_LICENSE,
    SIM_SALT_JITTER,
    SIM_SALT_WOBBLE,
    SIM_SALT_OUTAGE,
    SIM_SALT_OUTAGE_KIND,
    SIM_SALT_OUTAGE_LENGTH,
    SIM_SALT_OUTAGE_BEGIN,
    SIM_SALT_REASON,
    SIM_SALT_ADMIN,
    SIM_SALT_USER,
    SIM_SALT_ACCOUNT,
    SIM_SALT_SHARES,
    SIM_SALT_NAME,
    SIM_SALT_NAME_NUMBER,
    SIM_SALT_HOSTILE,
    SIM_SALT_PARTITION,
    SIM_SALT_QOS,
    SIM_SALT_CPUS,
    SIM_SALT_MEMORY,
    SIM_SALT_FEATURES,
    SIM_SALT_PRIORITY,
    SIM_SALT_RESTARTS,
    SIM_SALT_TASKS,
    SIM_SALT_FATE,
    SIM_SALT_LENGTH,
    SIM_SALT_LIMIT,
    SIM_SALT_COMPLETING,
    SIM_SALT_WITHDRAWN,
    SIM_SALT_WAIT,
    SIM_SALT_LOAD,
    SIM_SALT_DIAG,
    SIM_SALT_LOGIN,
};

/* The hours of a week have different weight: more is submitted by day than by night or on Sunday. A
 * rhythm maps wall time to work, which grows by a million a second on average, and back. */
enum { SIM_WORK_PER_SECOND = 1000000, SIM_WEEK_HOURS = 168 };

struct sim_rhythm {
    uint64_t work[SIM_WEEK_HOURS + 1]; /* done by the beginning of each hour, Monday first */
};

/* evenness 0: as people work; 1: every hour alike. */
void sim_rhythm_init(struct sim_rhythm *rhythm, double evenness);
uint64_t sim_work_at(const struct sim_rhythm *rhythm, int64_t time);
int64_t sim_time_of(const struct sim_rhythm *rhythm, uint64_t work);
double sim_pace_at(const struct sim_rhythm *rhythm, int64_t time); /* 1 on average */

struct sim_kind {
    struct str prefix, gpu, features;
    uint32_t cpus, sockets, memory_mib, gpus, weight;
    uint32_t most_parts; /* units that one node is cut into at most */
};

enum { SIM_INTEL, SIM_AMD, SIM_A100, SIM_H100, SIM_BIGMEM, SIM_KINDS };
extern const struct sim_kind sim_kinds[SIM_KINDS];

struct sim_region {
    uint32_t first, count;
    uint32_t first_number; /* of the first node's name */
    uint32_t digits;
};

enum {
    SIM_PART_CPU,
    SIM_PART_LONG,
    SIM_PART_GPU,
    SIM_PART_BIGMEM,
    SIM_PART_DEBUG,
    SIM_PART_PREEMPT,
    SIM_PART_LEGACY,
    SIM_PARTS,
};

struct sim_partition {
    struct str name;
    bool is_default, is_up;
    uint32_t limit_minutes; /* SIM_NONE: unlimited */
};
extern const struct sim_partition sim_partitions[SIM_PARTS];

enum { SIM_LICENSES = 4 };

struct sim_unit {
    uint32_t node, width;     /* whole nodes if width > 1 */
    uint16_t cpus, first_cpu; /* on each node, for each lane */
    uint8_t gpus, first_gpu;
    uint8_t lanes; /* of an array: tasks that run side by side */
    uint8_t kind, class;
    uint8_t license, license_count; /* count 0: none */
};

enum sim_class_id {
    SIM_DEBUG,
    SIM_SHORT,
    SIM_HOURS,
    SIM_HALF_DAY,
    SIM_DAY,
    SIM_DAYS,
    SIM_LONG,
    SIM_HET,
    SIM_ARRAY_SHORT,
    SIM_ARRAY_LONG,
    SIM_CLASSES,
};

struct sim_class {
    const struct sim_unit *units;
    uint32_t n_units;
    uint32_t ids; /* that each job takes */
    uint64_t key;
    uint32_t surplus; /* jobs submitted for each that gets to run */
    uint64_t spacing; /* work from one submission to the next; 0: the class has no units */
    uint64_t turn;    /* work from one start to the next: spacing * surplus */
    uint64_t period;  /* work from one start on a unit to the next: turn * n_units */
    uint64_t lead;    /* work from a job's turn to be submitted to its turn to start */
    uint64_t jitter;
    struct sim_rhythm starts;
};

struct sim_cluster {
    struct arena arena;
    struct sim sim;
    uint64_t key;
    uint32_t n_nodes;
    struct sim_region regions[SIM_KINDS];
    uint32_t debug_nodes, debug_gpu_nodes; /* how many of the first ones of the first regions */
    uint32_t long_first, long_count, legacy_first, legacy_count;
    struct sim_unit *units;
    uint32_t n_units;
    struct sim_class classes[SIM_CLASSES];
    struct sim_rhythm submits;
    uint64_t id_offset;
    uint64_t license_total[SIM_LICENSES];

    struct str *users, *accounts, *names;
    uint32_t n_users, n_accounts, n_names;
};

/* Fills in what is 0: those that were left out grow with the cluster. */
void sim_set_defaults(struct sim *sim);

void sim_cluster_init(struct sim_cluster *cluster, const struct sim *sim);
void sim_cluster_free(struct sim_cluster *cluster);

unsigned sim_kind_of(const struct sim_cluster *cluster, uint32_t node);
unsigned sim_partitions_of(const struct sim_cluster *cluster, uint32_t node); /* a bit each */
void sim_put_node(struct buf *buf, const struct sim_cluster *cluster, uint32_t node);

/* Of nodes in rising order, all of one prefix. */
void sim_put_nodes(struct buf *buf, const struct sim_cluster *cluster, const uint32_t *nodes,
                   size_t n);

/* How many jobs of a class were submitted before this much work was done. */
uint64_t sim_submitted(const struct sim_class *class, uint64_t work);
uint64_t sim_submit_work(const struct sim_class *class, uint64_t n);
uint64_t sim_start_work(const struct sim_class *class, uint64_t turn);
uint32_t sim_job_id(const struct sim_cluster *cluster, unsigned class, uint64_t n);
const struct sim_unit *sim_unit_of(const struct sim_class *class, uint64_t turn);

/* Why a node takes no new job at a time. */
enum sim_outage_kind {
    SIM_OUTAGE_DRAIN,
    SIM_OUTAGE_DOWN,
    SIM_OUTAGE_REBOOT,
    SIM_OUTAGE_POWER,
    SIM_OUTAGE_MAINT,
};

enum {
    SIM_SLURMD_TIMEOUT = 300, /* seconds from a node's last word until it is DOWN */
    SIM_UNNOTICED = 2 * 3600, /* until somebody says why */
    SIM_REBOOT_TAKES = 1200,  /* at the end of an outage for it */
};

struct sim_outage {
    enum sim_outage_kind kind;
    int64_t begin, end;
    uint64_t key;
};

bool sim_outage_at(const struct sim_cluster *cluster, uint32_t node, int64_t time,
                   struct sim_outage *ret);

/* When the node fails with the jobs on it, in [from, to); 0 if it does not. */
int64_t sim_failure_between(const struct sim_cluster *cluster, uint32_t node, int64_t from,
                            int64_t to);

enum { SIM_RESV_MAINT, SIM_RESV_COURSE, SIM_RESV_CAMPAIGN, SIM_RESVS };

struct sim_reservation {
    struct str name;
    uint32_t first, count; /* nodes; count 0: the cluster has none of this sort now */
    int64_t begin, end;
};

/* The reservation of that sort that is active at a time or comes next. */
void sim_reservation_at(const struct sim_cluster *cluster, unsigned which, int64_t time,
                        struct sim_reservation *ret);

/* The one that a job on that node would run under, or SIM_NONE. */
uint32_t sim_reserved_at(const struct sim_cluster *cluster, uint32_t node, int64_t time);

extern const struct str sim_reservation_names[SIM_RESVS];
extern const struct str sim_license_names[SIM_LICENSES];

enum { SIM_DEPARTMENTS = 8 };
extern const struct str sim_departments[SIM_DEPARTMENTS];

enum sim_qos {
    SIM_QOS_NORMAL,
    SIM_QOS_HIGH,
    SIM_QOS_LOW,
    SIM_QOS_LONG,
    SIM_QOS_DEBUG,
    SIM_QOS_SCAVENGER,
    SIM_QOSES
};
extern const struct str sim_qos[SIM_QOSES];

/* The hosts that jobs are submitted from. */
enum { SIM_LOGINS = 3 };
extern const struct str sim_logins[SIM_LOGINS];

/* Names of people, accounts and jobs, in the cluster's arena. */
void sim_words_init(struct sim_cluster *cluster);
uint32_t sim_user_account(const struct sim_cluster *cluster, uint32_t user);
uint32_t sim_user_second_account(const struct sim_cluster *cluster,
                                 uint32_t user); /* or SIM_NONE */
uint32_t sim_pick_name(const struct sim_cluster *cluster, uint64_t key, uint64_t burst);
struct str sim_outage_reason(const struct sim_outage *outage, int64_t time);
struct str sim_outage_admin(const struct sim_outage *outage, int64_t time);

enum sim_reason {
    SIM_REASON_NONE,
    SIM_REASON_PRIORITY,
    SIM_REASON_RESOURCES,
    SIM_REASON_DEPENDENCY,
    SIM_REASON_HELD_USER,
    SIM_REASON_HELD_ADMIN,
    SIM_REASON_BEGIN_TIME,
    SIM_REASON_QOS_CPUS,
    SIM_REASON_QOS_GRES,
    SIM_REASON_ASSOC_CPUS,
    SIM_REASON_ASSOC_JOBS,
    SIM_REASON_LICENSES,
    SIM_REASON_NODES,
    SIM_REASON_ARRAY_LIMIT,
    SIM_REASON_EXIT_CODE,
    SIM_REASON_TIME_LIMIT,
    SIM_REASON_OUT_OF_MEMORY,
    SIM_REASON_NODE_DOWN,
    SIM_REASONS,
};
extern const struct str sim_reasons[SIM_REASONS];

/* A record of the queue, before it is put into words. */
struct sim_job {
    uint32_t id, array_id, task, het_id, het_offset;
    uint32_t first_task, tasks, throttle; /* of tasks that wait together; tasks 1: a single job */
    struct job_state state;
    enum sim_reason reason;
    uint32_t missing_node; /* of SIM_REASON_NODES */
    uint32_t user, account, name, qos, login;
    uint32_t partition, partition2; /* 2: SIM_NONE, or where it may start too */
    uint32_t kind;
    uint32_t cpus, gpus, node_count; /* in all */
    uint32_t memory_mib_per_node,
        memory_mib_per_cpu; /* one of these was asked for, the other is 0 */
    uint64_t memory_mib;
    bool asks_gpu_type, has_features;
    uint32_t license, license_count;
    uint32_t reservation;
    uint32_t limit_minutes; /* SIM_NONE: unlimited */
    uint32_t priority, restarts, exit_code;
    uint32_t first_cpu, first_gpu;        /* on each node */
    uint32_t first_node, width;           /* of its unit, also while it waits */
    const uint32_t *nodes;                /* node_count of them once it has started, else NULL */
    int64_t submit, eligible, start, end; /* as squeue tells them: 0 unknown, end by the limit */
};

/* What can be seen at a time, or only those of it that have started and those that start within a
 * quarter of an hour. A negative return of visit stops and is returned. */
typedef int sim_visit(void *ctx, const struct sim_job *job);
int sim_each_job(const struct sim_cluster *cluster, int64_t time, bool only_started,
                 sim_visit *visit, void *ctx);

void sim_put_partitions(struct buf *buf, const struct sim_job *job);
void sim_put_reason(struct buf *buf, const struct sim_cluster *cluster, const struct sim_job *job);
void sim_put_licenses(struct buf *buf, const struct sim_job *job);
void sim_put_memory(struct buf *buf, uint64_t mib); /* "4000M", "4G", as Slurm shortens it */
void sim_put_tres(struct buf *buf, const struct sim_job *job, bool as_requested);
struct str sim_job_features(const struct sim_job *job);

#endif
