/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of the fields of every kind of section. */
#include "model/fields.h"

#include <math.h>

#define PLAIN(record, member, type)                                                                \
    {                                                                                              \
#member, type, SENSE_PUBLIC, offsetof(struct record, member)                               \
    }
#define NAMING(record, member, type, sense)                                                        \
    {                                                                                              \
#member, type, sense, offsetof(struct record, member)                                      \
    }
#define ARRAY(name, record, place, count)                                                          \
    {                                                                                              \
        name, &(record), offsetof(struct section, place), offsetof(struct section, count)          \
    }
#define RECORD(type, fields)                                                                       \
    {                                                                                              \
        sizeof(struct type), fields, COUNT(fields)                                                 \
    }
#define HEAD(fields)                                                                               \
    {                                                                                              \
        sizeof(struct section), fields, COUNT(fields)                                              \
    }

static const struct field job_fields[] = {
    PLAIN(job, id, FIELD_U32),
    PLAIN(job, array_job_id, FIELD_U32),
    PLAIN(job, array_task_id, FIELD_U32),
    PLAIN(job, tasks, FIELD_U32),
    PLAIN(job, het_job_id, FIELD_U32),
    PLAIN(job, het_offset, FIELD_U32),
    NAMING(job, user_id, FIELD_U32, SENSE_USER_ID),
    PLAIN(job, restarts, FIELD_U32),
    PLAIN(job, state, FIELD_JOB_STATE),
    NAMING(job, user, FIELD_SYMBOL, SENSE_USER),
    NAMING(job, account, FIELD_SYMBOL, SENSE_ACCOUNT),
    PLAIN(job, qos, FIELD_SYMBOL),
    NAMING(job, name, FIELD_SYMBOL, SENSE_JOB_NAME),
    NAMING(job, reservation, FIELD_SYMBOL, SENSE_RESERVATIONS),
    NAMING(job, licenses, FIELD_SYMBOL, SENSE_LICENSES),
    PLAIN(job, features, FIELD_SYMBOL),
    PLAIN(job, partition, FIELD_SYMBOL),
    NAMING(job, reason, FIELD_SYMBOL, SENSE_REASON),
    NAMING(job, nodes, FIELD_SYMBOL, SENSE_NODES),
    NAMING(job, alloc_node, FIELD_SYMBOL, SENSE_NODE),
    NAMING(job, tres, FIELD_SYMBOL, SENSE_TRES),
    PLAIN(job, cpus, FIELD_U32),
    PLAIN(job, node_count, FIELD_U32),
    PLAIN(job, memory_bytes, FIELD_U64),
    PLAIN(job, time_limit_minutes, FIELD_U32),
    PLAIN(job, gres, FIELD_SYMBOL),
    PLAIN(job, priority, FIELD_U64),
    PLAIN(job, submit_time, FIELD_TIME),
    PLAIN(job, eligible_time, FIELD_TIME),
    PLAIN(job, start_time, FIELD_TIME),
    PLAIN(job, end_time, FIELD_TIME),
};
static const struct field_record job_record = RECORD(job, job_fields);

static const struct field job_gpus_fields[] = {
    PLAIN(job_gpus, job_id, FIELD_U32),
    NAMING(job_gpus, node, FIELD_SYMBOL, SENSE_NODE),
    PLAIN(job_gpus, gpus, FIELD_SYMBOL),
};
static const struct field_record job_gpus_record = RECORD(job_gpus, job_gpus_fields);

static const struct field jobs_fields[] = {
    PLAIN(section, jobs.lacks_features, FIELD_BOOL),
    PLAIN(section, jobs.lacks_qos, FIELD_BOOL),
};
static const struct field_array jobs_arrays[] = {
    ARRAY("jobs", job_record, jobs.job, jobs.n),
    ARRAY("job_gpus", job_gpus_record, jobs.gpus, jobs.n_gpus),
};

static const struct field node_fields[] = {
    NAMING(node, name, FIELD_SYMBOL, SENSE_NODE),
    PLAIN(node, state, FIELD_NODE_STATE),
    PLAIN(node, cpus, FIELD_U32),
    PLAIN(node, cpus_alloc, FIELD_U32),
    PLAIN(node, cpus_idle, FIELD_U32),
    PLAIN(node, cpus_other, FIELD_U32),
    PLAIN(node, cpu_load, FIELD_DOUBLE),
    PLAIN(node, memory_bytes, FIELD_U64),
    PLAIN(node, memory_alloc_bytes, FIELD_U64),
    PLAIN(node, memory_free_bytes, FIELD_U64),
    PLAIN(node, gres, FIELD_SYMBOL),
    PLAIN(node, gres_used, FIELD_SYMBOL),
    PLAIN(node, features, FIELD_SYMBOL),
    NAMING(node, reservation, FIELD_SYMBOL, SENSE_RESERVATION),
    PLAIN(node, version, FIELD_SYMBOL),
    NAMING(node, reason, FIELD_SYMBOL, SENSE_REMARK),
    NAMING(node, reason_user, FIELD_SYMBOL, SENSE_USER),
    PLAIN(node, reason_time, FIELD_TIME),
    PLAIN(node, weight, FIELD_U32),
    PLAIN(node, first_partition, FIELD_U32),
    PLAIN(node, n_partitions, FIELD_U32),
};
static const struct field_record node_record = RECORD(node, node_fields);

static const struct field partition_fields[] = {
    PLAIN(partition, name, FIELD_SYMBOL),
    PLAIN(partition, is_default, FIELD_BOOL),
    PLAIN(partition, is_up, FIELD_BOOL),
    PLAIN(partition, time_limit_minutes, FIELD_U32),
};
static const struct field_record partition_record = RECORD(partition, partition_fields);

static const struct field membership_fields[] = {
    { "partition", FIELD_U32, SENSE_PUBLIC, 0 },
};
static const struct field_record membership_record = {
    sizeof(uint32_t),
    membership_fields,
    COUNT(membership_fields),
};

static const struct field nodes_fields[] = {
    PLAIN(section, nodes.lacks_settings, FIELD_BOOL),
};
static const struct field_array nodes_arrays[] = {
    ARRAY("nodes", node_record, nodes.node, nodes.n),
    ARRAY("partitions", partition_record, nodes.partition, nodes.n_partitions),
    ARRAY("memberships", membership_record, nodes.membership, nodes.n_membership),
};

static const struct field reservation_fields[] = {
    NAMING(reservation, name, FIELD_SYMBOL, SENSE_RESERVATION),
    NAMING(reservation, nodes, FIELD_SYMBOL, SENSE_NODES),
    NAMING(reservation, users, FIELD_SYMBOL, SENSE_USERS),
    NAMING(reservation, accounts, FIELD_SYMBOL, SENSE_ACCOUNTS),
    PLAIN(reservation, partition, FIELD_SYMBOL),
    PLAIN(reservation, flags, FIELD_SYMBOL),
    NAMING(reservation, tres, FIELD_SYMBOL, SENSE_TRES),
    PLAIN(reservation, node_count, FIELD_U32),
    PLAIN(reservation, core_count, FIELD_U32),
    PLAIN(reservation, is_active, FIELD_BOOL),
    PLAIN(reservation, start_time, FIELD_TIME),
    PLAIN(reservation, end_time, FIELD_TIME),
};
static const struct field_record reservation_record = RECORD(reservation, reservation_fields);
static const struct field_array reservations_arrays[] = {
    ARRAY("reservations", reservation_record, reservations.reservation, reservations.n),
};

static const struct field license_fields[] = {
    NAMING(license, name, FIELD_SYMBOL, SENSE_LICENSE),
    PLAIN(license, is_remote, FIELD_BOOL),
    PLAIN(license, total, FIELD_U64),
    PLAIN(license, used, FIELD_U64),
    PLAIN(license, free, FIELD_U64),
    PLAIN(license, reserved, FIELD_U64),
    PLAIN(license, last_consumed, FIELD_U64),
    PLAIN(license, last_deficit, FIELD_U64),
};
static const struct field_record license_record = RECORD(license, license_fields);
static const struct field_array licenses_arrays[] = {
    ARRAY("licenses", license_record, licenses.license, licenses.n),
};

static const struct field rpc_fields[] = {
    PLAIN(rpc, name, FIELD_SYMBOL),    PLAIN(rpc, id, FIELD_U32),
    PLAIN(rpc, count, FIELD_U64),      PLAIN(rpc, total_usec, FIELD_U64),
    PLAIN(rpc, queued, FIELD_U64),     PLAIN(rpc, dropped, FIELD_U64),
    PLAIN(rpc, last_cycle, FIELD_U64), PLAIN(rpc, max_cycle, FIELD_U64),
};
static const struct field_record rpc_record = RECORD(rpc, rpc_fields);

static const struct field user_rpc_fields[] = {
    NAMING(rpc, name, FIELD_SYMBOL, SENSE_USER),
    NAMING(rpc, id, FIELD_U32, SENSE_USER_ID),
    PLAIN(rpc, count, FIELD_U64),
    PLAIN(rpc, total_usec, FIELD_U64),
    PLAIN(rpc, queued, FIELD_U64),
    PLAIN(rpc, dropped, FIELD_U64),
    PLAIN(rpc, last_cycle, FIELD_U64),
    PLAIN(rpc, max_cycle, FIELD_U64),
};
static const struct field_record user_rpc_record = RECORD(rpc, user_rpc_fields);

static const struct field pending_rpc_fields[] = {
    PLAIN(pending_rpc, name, FIELD_SYMBOL),
    PLAIN(pending_rpc, id, FIELD_U32),
    PLAIN(pending_rpc, count, FIELD_U64),
};
static const struct field_record pending_rpc_record = RECORD(pending_rpc, pending_rpc_fields);

static const struct field exit_fields[] = {
    PLAIN(cycle_exit, reason, FIELD_SYMBOL),
    PLAIN(cycle_exit, count, FIELD_U64),
};
static const struct field_record exit_record = RECORD(cycle_exit, exit_fields);

#define CYCLE_FIELDS(cycle)                                                                        \
    PLAIN(section, diag.cycle.count, FIELD_U64), PLAIN(section, diag.cycle.last_usec, FIELD_U64),  \
        PLAIN(section, diag.cycle.max_usec, FIELD_U64),                                            \
        PLAIN(section, diag.cycle.mean_usec, FIELD_U64),                                           \
        PLAIN(section, diag.cycle.total_usec, FIELD_U64),                                          \
        PLAIN(section, diag.cycle.last_depth, FIELD_U64),                                          \
        PLAIN(section, diag.cycle.mean_depth, FIELD_U64),                                          \
        PLAIN(section, diag.cycle.total_depth, FIELD_U64),                                         \
        PLAIN(section, diag.cycle.last_queue, FIELD_U64),                                          \
        PLAIN(section, diag.cycle.mean_queue, FIELD_U64),                                          \
        PLAIN(section, diag.cycle.total_queue, FIELD_U64)

static const struct field diag_fields[] = {
    PLAIN(section, diag.time, FIELD_TIME),
    PLAIN(section, diag.reset_time, FIELD_TIME),
    PLAIN(section, diag.server_threads, FIELD_U64),
    PLAIN(section, diag.agent_queue, FIELD_U64),
    PLAIN(section, diag.agent_count, FIELD_U64),
    PLAIN(section, diag.agent_threads, FIELD_U64),
    PLAIN(section, diag.dbd_agent_queue, FIELD_U64),
    PLAIN(section, diag.clock_usec, FIELD_U64),
    PLAIN(section, diag.jobs_submitted, FIELD_U64),
    PLAIN(section, diag.jobs_started, FIELD_U64),
    PLAIN(section, diag.jobs_completed, FIELD_U64),
    PLAIN(section, diag.jobs_canceled, FIELD_U64),
    PLAIN(section, diag.jobs_failed, FIELD_U64),
    PLAIN(section, diag.jobs_pending, FIELD_U64),
    PLAIN(section, diag.jobs_running, FIELD_U64),
    PLAIN(section, diag.jobs_time, FIELD_TIME),
    CYCLE_FIELDS(main),
    CYCLE_FIELDS(backfill),
    PLAIN(section, diag.backfill_is_active, FIELD_BOOL),
    PLAIN(section, diag.backfilled_jobs, FIELD_U64),
    PLAIN(section, diag.backfilled_jobs_since_reset, FIELD_U64),
    PLAIN(section, diag.backfilled_het_components, FIELD_U64),
    PLAIN(section, diag.backfill_last_depth_tried, FIELD_U64),
    PLAIN(section, diag.backfill_mean_depth_tried, FIELD_U64),
    PLAIN(section, diag.backfill_total_depth_tried, FIELD_U64),
    PLAIN(section, diag.backfill_last_table, FIELD_U64),
    PLAIN(section, diag.backfill_mean_table, FIELD_U64),
    PLAIN(section, diag.backfill_total_table, FIELD_U64),
    PLAIN(section, diag.backfill_last_time, FIELD_TIME),
};
static const struct field_array diag_arrays[] = {
    ARRAY("main_exits", exit_record, diag.main.exit, diag.main.n_exits),
    ARRAY("backfill_exits", exit_record, diag.backfill.exit, diag.backfill.n_exits),
    ARRAY("rpc_by_type", rpc_record, diag.rpc_by_type, diag.n_rpc_by_type),
    ARRAY("rpc_by_user", user_rpc_record, diag.rpc_by_user, diag.n_rpc_by_user),
    ARRAY("rpc_pending", pending_rpc_record, diag.rpc_pending, diag.n_rpc_pending),
};

static const struct field share_fields[] = {
    NAMING(share, account, FIELD_SYMBOL, SENSE_ACCOUNT),
    NAMING(share, user, FIELD_SYMBOL, SENSE_USER),
    PLAIN(share, partition, FIELD_SYMBOL),
    NAMING(share, parent, FIELD_SYMBOL, SENSE_ACCOUNT),
    PLAIN(share, is_parent, FIELD_BOOL),
    PLAIN(share, raw_shares, FIELD_U64),
    PLAIN(share, normalised_shares, FIELD_DOUBLE),
    PLAIN(share, raw_usage, FIELD_DOUBLE),
    PLAIN(share, normalised_usage, FIELD_DOUBLE),
    PLAIN(share, effective_usage, FIELD_DOUBLE),
    PLAIN(share, factor, FIELD_DOUBLE),
    PLAIN(share, level, FIELD_DOUBLE),
};
static const struct field_record share_record = RECORD(share, share_fields);
static const struct field_array shares_arrays[] = {
    ARRAY("shares", share_record, shares.share, shares.n),
};

static const struct field association_fields[] = {
    NAMING(association, account, FIELD_SYMBOL, SENSE_ACCOUNT),
    NAMING(association, user, FIELD_SYMBOL, SENSE_USER),
    PLAIN(association, partition, FIELD_SYMBOL),
    PLAIN(association, first_limit, FIELD_U32),
    PLAIN(association, n_limits, FIELD_U32),
};
static const struct field_record association_record = RECORD(association, association_fields);

static const struct field qos_fields[] = {
    PLAIN(qos, name, FIELD_SYMBOL),
    PLAIN(qos, first_limit, FIELD_U32),
    PLAIN(qos, n_limits, FIELD_U32),
};
static const struct field_record qos_record = RECORD(qos, qos_fields);

static const struct field limit_fields[] = {
    PLAIN(limit, kind, FIELD_U8),
    NAMING(limit, tres, FIELD_SYMBOL, SENSE_TRES),
    PLAIN(limit, limit, FIELD_U64),
    PLAIN(limit, used, FIELD_U64),
};
static const struct field_record limit_record = RECORD(limit, limit_fields);

static const struct field_array associations_arrays[] = {
    ARRAY("associations", association_record, associations.association, associations.n),
    ARRAY("qos", qos_record, associations.qos, associations.n_qos),
    ARRAY("limits", limit_record, associations.limit, associations.n_limits),
};

static const struct field config_fields[] = {
    NAMING(section, config.cluster, FIELD_SYMBOL, SENSE_CLUSTER),
    PLAIN(section, config.version, FIELD_SYMBOL),
    NAMING(section, config.user_id, FIELD_U32, SENSE_USER_ID),
    NAMING(section, config.user, FIELD_SYMBOL, SENSE_USER),
    PLAIN(section, config.hidden, FIELD_U32),
    PLAIN(section, config.private, FIELD_U32),
};

const struct field_kind field_kinds[KINDS] = {
    [KIND_NODES] = { HEAD(nodes_fields), nodes_arrays, COUNT(nodes_arrays) },
    [KIND_JOBS] = { HEAD(jobs_fields), jobs_arrays, COUNT(jobs_arrays) },
    [KIND_RESERVATIONS] = { .arrays = reservations_arrays, .n_arrays = COUNT(reservations_arrays) },
    [KIND_LICENSES] = { .arrays = licenses_arrays, .n_arrays = COUNT(licenses_arrays) },
    [KIND_DIAG] = { HEAD(diag_fields), diag_arrays, COUNT(diag_arrays) },
    [KIND_SHARES] = { .arrays = shares_arrays, .n_arrays = COUNT(shares_arrays) },
    [KIND_ASSOCIATIONS] = { .arrays = associations_arrays, .n_arrays = COUNT(associations_arrays) },
    [KIND_CONFIG] = { HEAD(config_fields), NULL, 0 },
};

bool field_is_told(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_U32:
        return *(const uint32_t *)at != MODEL_UNKNOWN_U32;
    case FIELD_U64:
        return *(const uint64_t *)at != MODEL_UNKNOWN_U64;
    case FIELD_TIME:
        return *(const int64_t *)at != 0;
    case FIELD_DOUBLE:
        return !isnan(*(const double *)at);
    case FIELD_SYMBOL:
        return *(const symbol *)at != 0;
    default:
        return true; /* cannot be absent */
    }
}

/* A run of an array of n, of which the runs before it have left `left`: each item is in one at
 * most, or a few bytes could stand for endless work. */
static bool take_run(uint32_t first, uint32_t count, size_t n, size_t *left)
{
    if (count > *left || first > n || count > n - first)
        return false;
    *left -= count;
    return true;
}

static int check_nodes(const struct nodes *nodes, struct err *err)
{
    size_t left = nodes->n_membership;

    for (size_t i = 0; i < nodes->n_membership; i++)
        if (nodes->membership[i] >= nodes->n_partitions)
            return err_set(err, EBADMSG, "membership %zu is in partition %lu, and there are %zu", i,
                           (unsigned long)nodes->membership[i], nodes->n_partitions);
    for (size_t i = 0; i < nodes->n; i++)
        if (!take_run(nodes->node[i].first_partition, nodes->node[i].n_partitions,
                      nodes->n_membership, &left))
            return err_set(err, EBADMSG, "node %zu has more partitions than there are memberships",
                           i);
    return 0;
}

static int check_associations(const struct associations *associations, struct err *err)
{
    size_t n = associations->n_limits, left = n;

    for (size_t i = 0; i < n; i++)
        if (associations->limit[i].kind >= LIMITS)
            return err_set(err, EBADMSG, "limit %zu is of a kind that is not known, %d", i,
                           associations->limit[i].kind);
    for (size_t i = 0; i < associations->n; i++)
        if (!take_run(associations->association[i].first_limit,
                      associations->association[i].n_limits, n, &left))
            return err_set(err, EBADMSG, "association %zu has more limits than there are", i);
    for (size_t i = 0; i < associations->n_qos; i++)
        if (!take_run(associations->qos[i].first_limit, associations->qos[i].n_limits, n, &left))
            return err_set(err, EBADMSG, "QOS %zu has more limits than there are", i);
    return 0;
}

int fields_check(const struct section *section, struct err *err)
{
    if (section->kind == KIND_NODES)
        return check_nodes(&section->nodes, err);
    if (section->kind == KIND_ASSOCIATIONS)
        return check_associations(&section->associations, err);
    return 0;
}
