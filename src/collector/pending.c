/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What waits, where and why, and since when. A job that may start in several partitions counts in
 * each of them, and once for its account and its QOS. */
#include "base/clock.h"
#include "collector/collector.h"
#include "collector/reasons.h"
#include "collector/tally.h"

enum {
    PARTITION_JOBS,
    PARTITION_CPUS,
    PARTITION_GPUS,
    ACCOUNT_JOBS,
    QOS_JOBS,
    PARTITION_OLDEST,
    OLDEST,
};

#define OF_THE_CLUSTER                                                                             \
    " could have started, of those that only the cluster keeps back: not held, no dependency or "  \
    "begin time to wait for, within the limits of account, QOS, partition and job array. 0 if "    \
    "there is none."

static const struct family families[] = {
    [PARTITION_JOBS] = { "slurm_partition_pending_jobs",
                         METRIC_GAUGE,
                         "Pending jobs of a partition by reason, past the 100 most frequent ones "
                         "by other; every task of a job array counts, and a job that may start in "
                         "several partitions in each of them. Reasons without jobs are left out; "
                         "slurm_partition_job_state_total says 0.",
                         { "partition", "reason" } },
    [PARTITION_CPUS] = { "slurm_partition_pending_cpus",
                         METRIC_GAUGE,
                         "CPUs that a partition's pending jobs ask for, by the reason of their "
                         "waiting.",
                         { "partition", "reason" } },
    [PARTITION_GPUS] = { "slurm_partition_pending_gpus",
                         METRIC_GAUGE,
                         "GPUs that a partition's pending jobs ask for, by type and by the reason "
                         "of their waiting; of type none where any will do.",
                         { "partition", "type", "reason" } },
    [ACCOUNT_JOBS] = { "slurm_account_pending_jobs",
                       METRIC_GAUGE,
                       "Pending jobs of an account by reason; every task of a job array counts.",
                       { "account", "reason" } },
    [QOS_JOBS] = { "slurm_qos_pending_jobs",
                   METRIC_GAUGE,
                   "Pending jobs of a QOS by reason; every task of a job array counts.",
                   { "qos", "reason" } },
    [PARTITION_OLDEST] = { "slurm_partition_pending_oldest_age_seconds",
                           METRIC_GAUGE,
                           "Seconds since the longest waiting of a partition's pending "
                           "jobs" OF_THE_CLUSTER,
                           { "partition" } },
    [OLDEST] = { "slurm_pending_oldest_age_seconds",
                 METRIC_GAUGE,
                 "Seconds since the longest waiting of all pending jobs" OF_THE_CLUSTER,
                 { NULL } },
};

/* The longest wait among some jobs. */
struct oldest {
    size_t n_waiting, n_told; /* how many wait for the cluster, and tell since when */
    int64_t age_seconds;
};

struct pending {
    const struct section *section;
    struct reasons reasons;
    bool *is_the_cluster; /* by reason */
    uint32_t *column_of;  /* by reason: in every tally below */
    struct str *columns;
    size_t n_columns;
    struct groups partitions, accounts, qos;
    struct tally by_partition, by_account, by_qos;
    struct gres_tally gpus;   /* by partition */
    struct oldest *oldest_of; /* by partition */
    size_t n_oldest, oldest_room;
    struct oldest oldest;
};

/* One column for each of the most frequent reasons; the others share one. */
static size_t make_columns(struct pending *pending)
{
    const struct reasons *reasons = &pending->reasons;
    bool *is_shown = heap_alloc(reasons->n * sizeof(*is_shown));
    size_t n_folded = 0, other = 0;

    pending->column_of = heap_array(reasons->n, sizeof(*pending->column_of));
    pending->is_the_cluster = heap_array(reasons->n, sizeof(*pending->is_the_cluster));
    pending->columns = heap_array(reasons->n + 1, sizeof(*pending->columns));
    top_mark(reasons->rows, reasons->n, REASONS_MOST, is_shown);
    pending->columns[pending->n_columns++] = STR("other");
    for (size_t i = 0; i < reasons->n; i++) {
        struct str name = reasons->rows[i].name;

        pending->is_the_cluster[i] = reason_is_the_cluster(name);
        if (is_shown[i] && !str_eq(name, pending->columns[other])) {
            pending->columns[pending->n_columns] = name;
            pending->column_of[i] = (uint32_t)pending->n_columns++;
        } else {
            pending->column_of[i] = (uint32_t)other;
            n_folded += !str_eq(name, pending->columns[other]);
        }
    }
    free(is_shown);
    return n_folded;
}

static void init(struct pending *pending, const struct section *section)
{
    *pending = (struct pending){ .section = section };
    reasons_init(&pending->reasons, section);
    groups_init(&pending->partitions, section, groups_cut_at_commas);
    groups_init(&pending->accounts, section, NULL);
    groups_init(&pending->qos, section, NULL);
}

static void clear(struct pending *pending)
{
    reasons_free(&pending->reasons);
    groups_free(&pending->partitions);
    groups_free(&pending->accounts);
    groups_free(&pending->qos);
    tally_free(&pending->by_partition);
    tally_free(&pending->by_account);
    tally_free(&pending->by_qos);
    gres_tally_free(&pending->gpus);
    free(pending->is_the_cluster);
    free(pending->column_of);
    free(pending->columns);
    free(pending->oldest_of);
}

/* Since when it could have run, 0 if it does not tell. */
static int64_t waiting_since(const struct job *job)
{
    return job->eligible_time > job->submit_time ? job->eligible_time : job->submit_time;
}

/* Slurm gives a held job the priority 0, whatever reason it then shows. */
static bool waits_for_the_cluster(const struct pending *pending, size_t reason,
                                  const struct job *job)
{
    return pending->is_the_cluster[reason] && job->priority != 0;
}

/* A moment that has not come yet, such as a job's begin time, makes no age. */
static void add_age(struct oldest *oldest, int64_t since, int64_t now)
{
    oldest->n_waiting++;
    if (since <= 0)
        return;
    oldest->n_told++;
    if (now - since > oldest->age_seconds)
        oldest->age_seconds = now - since;
}

static struct oldest *oldest_of(struct pending *pending, size_t partition)
{
    while (pending->n_oldest <= partition) {
        pending->oldest_of = heap_grow(pending->oldest_of, pending->n_oldest, &pending->oldest_room,
                                       sizeof(*pending->oldest_of));
        pending->oldest_of[pending->n_oldest++] = (struct oldest){ .n_waiting = 0 };
    }
    return &pending->oldest_of[partition];
}

static void add(struct pending *pending, const struct job *job, int64_t now)
{
    size_t reason = groups_first(&pending->reasons.groups, job->reason);
    size_t column = pending->column_of[reason];
    struct group_list partitions = groups_of(&pending->partitions, job->partition);
    bool waits = waits_for_the_cluster(pending, reason, job);

    for (size_t i = 0; i < partitions.n; i++) {
        size_t partition = partitions.group[i];
        struct oldest *oldest;

        tally_add(tally_at(&pending->by_partition, partition, column), job);
        gres_tally_add(&pending->gpus, partition, column, job);
        oldest = oldest_of(pending, partition);
        if (waits)
            add_age(oldest, waiting_since(job), now);
    }
    if (waits)
        add_age(&pending->oldest, waiting_since(job), now);
    tally_at(&pending->by_account, groups_first(&pending->accounts, job->account), column)->jobs +=
        job->tasks;
    tally_at(&pending->by_qos, groups_first(&pending->qos, job->qos), column)->jobs += job->tasks;
}

static void add_all(struct pending *pending)
{
    const struct jobs *jobs = &pending->section->jobs;
    int64_t now = pending->section->wall_ns / NS_PER_SEC;

    tally_init(&pending->by_partition, pending->n_columns);
    tally_init(&pending->by_account, pending->n_columns);
    tally_init(&pending->by_qos, pending->n_columns);
    gres_tally_init(&pending->gpus, pending->section, STR("gpu"), pending->n_columns);
    for (size_t i = 0; i < jobs->n; i++)
        if (reasons_is_pending(&jobs->job[i]))
            add(pending, &jobs->job[i], now);
    for (size_t i = 0; i < jobs->n_known_partitions; i++)
        if (jobs->known_partition[i])
            oldest_of(pending, groups_first(&pending->partitions, jobs->known_partition[i]));
}

static void write_jobs(const struct pending *pending, size_t family, const struct groups *groups,
                       const struct tally *tally, struct metric_writer *writer)
{
    metric_begin(writer, family);
    for (size_t row = 0; row < groups->names.n; row++) {
        for (size_t i = 0; i < pending->n_columns; i++) {
            uint64_t jobs = tally_get(tally, row, i)->jobs;

            if (jobs)
                metric_u64(writer, METRIC_VALUES(groups_name(groups, row), pending->columns[i]),
                           jobs);
        }
    }
}

static void write_cpus(const struct pending *pending, struct metric_writer *writer)
{
    metric_begin(writer, PARTITION_CPUS);
    for (size_t row = 0; row < pending->partitions.names.n; row++) {
        struct str partition = groups_name(&pending->partitions, row);

        for (size_t i = 0; i < pending->n_columns; i++) {
            const struct tally_cell *cell = tally_get(&pending->by_partition, row, i);

            if (cell->jobs)
                known_sum_write(writer, &cell->cpus, cell->jobs, 0,
                                METRIC_VALUES(partition, pending->columns[i]));
        }
    }
}

static void write_gpus_of(const struct pending *pending, size_t partition, size_t type,
                          struct metric_writer *writer)
{
    struct str labels[] = { groups_name(&pending->partitions, partition),
                            gres_type_label(&pending->gpus.reader, type), STR("") };

    for (size_t i = 0; i < pending->n_columns; i++) {
        const struct known_sum *sum = gres_tally_get(&pending->gpus, type, partition, i);

        labels[2] = pending->columns[i];
        if (sum->n)
            known_sum_write(writer, sum, 0, 0, labels);
    }
}

static void write_gpus(const struct pending *pending, struct metric_writer *writer)
{
    metric_begin(writer, PARTITION_GPUS);
    for (size_t partition = 0; partition < pending->partitions.names.n; partition++)
        for (size_t type = 0; type < pending->gpus.reader.n_types; type++)
            write_gpus_of(pending, partition, type, writer);
}

/* Absent if jobs wait and none tells since when. */
static void write_age(struct metric_writer *writer, const struct oldest *oldest,
                      const struct str *labels)
{
    if (oldest->n_told || !oldest->n_waiting)
        metric_u64(writer, labels, (uint64_t)oldest->age_seconds);
}

static void write_ages(const struct pending *pending, struct metric_writer *writer)
{
    metric_begin(writer, PARTITION_OLDEST);
    for (size_t i = 0; i < pending->n_oldest; i++)
        write_age(writer, &pending->oldest_of[i],
                  METRIC_VALUES(groups_name(&pending->partitions, i)));
    metric_begin(writer, OLDEST);
    write_age(writer, &pending->oldest, NULL);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct pending pending;

    init(&pending, section);
    for (size_t i = 0; i < section->jobs.n; i++)
        reasons_add(&pending.reasons, &section->jobs.job[i]);
    writer->folded += make_columns(&pending);
    add_all(&pending);
    write_jobs(&pending, PARTITION_JOBS, &pending.partitions, &pending.by_partition, writer);
    write_cpus(&pending, writer);
    write_gpus(&pending, writer);
    write_jobs(&pending, ACCOUNT_JOBS, &pending.accounts, &pending.by_account, writer);
    if (!section->jobs.lacks_qos)
        write_jobs(&pending, QOS_JOBS, &pending.qos, &pending.by_qos, writer);
    write_ages(&pending, writer);
    clear(&pending);
}

const struct collector collector_pending = {
    .name = "pending",
    .help = "what waits, by reason in each partition, account and QOS, and for how long",
    .kind = KIND_JOBS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
