/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics from sdiag --json (from Slurm 23.02 on) and slurmrestd's /diag: the
 * STATS_MSG parser of Slurm's data_parser plugins. */
#include "source/json_answers.h"
#include "source/json_table.h"

enum { EXITS = 6 };

struct json_diag {
    struct json_answer json;
    struct diag diag; /* becomes the section's at the end */
    size_t types_room, users_room, pending_room;
    uint64_t main_exits[EXITS], backfill_exits[EXITS];
    struct rpc rpc; /* the one being read */
    struct pending_rpc pending;
};

static struct json_diag *of(struct answer *answer)
{
    return (struct json_diag *)answer;
}

static void *begin_rpc(struct answer *answer)
{
    struct rpc *rpc = &of(answer)->rpc;

    *rpc = (struct rpc){
        .id = MODEL_UNKNOWN_U32,
        .count = MODEL_UNKNOWN_U64,
        .total_usec = MODEL_UNKNOWN_U64,
        .queued = MODEL_UNKNOWN_U64,
        .dropped = MODEL_UNKNOWN_U64,
        .last_cycle = MODEL_UNKNOWN_U64,
        .max_cycle = MODEL_UNKNOWN_U64,
    };
    return rpc;
}

static void add_rpc(struct answer *answer, struct rpc **rpcs, size_t *n, size_t *room)
{
    const struct rpc *rpc = &of(answer)->rpc;

    if (!rpc->name) {
        answer_leave_out(answer, STR("an RPC without a name"));
        return;
    }
    *rpcs = section_grow(answer->section, *rpcs, *n, room, sizeof(**rpcs));
    (*rpcs)[(*n)++] = *rpc;
}

static void end_type(struct answer *answer, void *record)
{
    struct json_diag *all = of(answer);

    (void)record;
    add_rpc(answer, &all->diag.rpc_by_type, &all->diag.n_rpc_by_type, &all->types_room);
}

static void end_user(struct answer *answer, void *record)
{
    struct json_diag *all = of(answer);
    struct rpc *rpc = record;

    rpc->name = answer_user(answer, section_text(answer->section, rpc->name), rpc->id);
    add_rpc(answer, &all->diag.rpc_by_user, &all->diag.n_rpc_by_user, &all->users_room);
}

static void *begin_pending(struct answer *answer)
{
    struct pending_rpc *pending = &of(answer)->pending;

    *pending = (struct pending_rpc){ .id = MODEL_UNKNOWN_U32, .count = MODEL_UNKNOWN_U64 };
    return pending;
}

static void end_pending(struct answer *answer, void *record)
{
    const struct pending_rpc *pending = record;
    struct json_diag *all = of(answer);
    struct diag *diag = &all->diag;

    if (!pending->name) {
        answer_leave_out(answer, STR("a pending RPC without a name"));
        return;
    }
    diag->rpc_pending = section_grow(answer->section, diag->rpc_pending, diag->n_rpc_pending,
                                     &all->pending_room, sizeof(*diag->rpc_pending));
    diag->rpc_pending[diag->n_rpc_pending++] = *pending;
}

/* The average is left alone: it may be unset, and follows from the others. */
static const struct json_member type_members[] = {
    MEMBER(struct rpc, "message_type", SHAPE_NAME, name),
    MEMBER(struct rpc, "type_id", SHAPE_U32, id),
    MEMBER(struct rpc, "count", SHAPE_U64, count),
    MEMBER(struct rpc, "total_time", SHAPE_U64, total_usec),
    MEMBER(struct rpc, "queued", SHAPE_U64, queued),
    MEMBER(struct rpc, "dropped", SHAPE_U64, dropped),
    MEMBER(struct rpc, "cycle_last", SHAPE_U64, last_cycle),
    MEMBER(struct rpc, "cycle_max", SHAPE_U64, max_cycle),
};

static const struct json_member user_members[] = {
    MEMBER(struct rpc, "user", SHAPE_NAME, name),
    MEMBER(struct rpc, "user_id", SHAPE_U32, id),
    MEMBER(struct rpc, "count", SHAPE_U64, count),
    MEMBER(struct rpc, "total_time", SHAPE_U64, total_usec),
};

static const struct json_member pending_members[] = {
    MEMBER(struct pending_rpc, "message_type", SHAPE_NAME, name),
    MEMBER(struct pending_rpc, "type_id", SHAPE_U32, id),
    MEMBER(struct pending_rpc, "count", SHAPE_U64, count),
};

static const struct json_table type_table = {
    .members = type_members, .n = COUNT(type_members), .begin = begin_rpc, .end = end_type
};
static const struct json_table user_table = {
    .members = user_members, .n = COUNT(user_members), .begin = begin_rpc, .end = end_user
};
static const struct json_table pending_table = {
    .members = pending_members,
    .n = COUNT(pending_members),
    .begin = begin_pending,
    .end = end_pending,
};

#define EXIT(key, i)                                                                               \
    {                                                                                              \
        STR_INIT(key), SHAPE_U64, (i) * sizeof(uint64_t), NULL                                     \
    }

/* Why cycles ended, and the words of sdiag's text for it. */
static const struct json_member main_exits[EXITS] = {
    EXIT("end_job_queue", 0), EXIT("default_queue_depth", 1), EXIT("max_job_start", 2),
    EXIT("licenses", 3),      EXIT("max_rpc_cnt", 4),         EXIT("max_sched_time", 5),
};
static const struct str main_exit_words[EXITS] = {
    STR_INIT("End of job queue"),        STR_INIT("Hit default_queue_depth"),
    STR_INIT("Hit sched_max_job_start"), STR_INIT("Blocked on licenses"),
    STR_INIT("Hit max_rpc_cnt"),         STR_INIT("Timeout (max_sched_time)"),
};

static const struct json_member backfill_exits[EXITS] = {
    EXIT("end_job_queue", 0), EXIT("bf_max_job_start", 1),   EXIT("bf_max_job_test", 2),
    EXIT("state_changed", 3), EXIT("bf_node_space_size", 4), EXIT("bf_max_time", 5),
};
static const struct str backfill_exit_words[EXITS] = {
    STR_INIT("End of job queue"),
    STR_INIT("Hit bf_max_job_start"),
    STR_INIT("Hit bf_max_job_test"),
    STR_INIT("System state changed"),
    STR_INIT("Hit table size limit (bf_node_space_size)"),
    STR_INIT("Timeout (bf_max_time)"),
};

static const struct json_table main_exit_table = { .members = main_exits, .n = EXITS };
static const struct json_table backfill_exit_table = { .members = backfill_exits, .n = EXITS };

#define DIAG(key, shape, field) MEMBER(struct json_diag, key, shape, diag.field)
#define EXIT_OBJECT(key, field, table)                                                             \
    {                                                                                              \
        STR_INIT(key), SHAPE_OBJECT, offsetof(struct json_diag, field), table                      \
    }

static const struct json_member statistics_members[] = {
    DIAG("req_time", SHAPE_TIME, time),
    DIAG("req_time_start", SHAPE_TIME, reset_time),
    DIAG("server_thread_count", SHAPE_U64, server_threads),
    DIAG("agent_queue_size", SHAPE_U64, agent_queue),
    DIAG("agent_count", SHAPE_U64, agent_count),
    DIAG("agent_thread_count", SHAPE_U64, agent_threads),
    DIAG("dbd_agent_queue_size", SHAPE_U64, dbd_agent_queue),
    DIAG("gettimeofday_latency", SHAPE_U64, clock_usec),
    DIAG("jobs_submitted", SHAPE_U64, jobs_submitted),
    DIAG("jobs_started", SHAPE_U64, jobs_started),
    DIAG("jobs_completed", SHAPE_U64, jobs_completed),
    DIAG("jobs_canceled", SHAPE_U64, jobs_canceled),
    DIAG("jobs_failed", SHAPE_U64, jobs_failed),
    DIAG("jobs_pending", SHAPE_U64, jobs_pending),
    DIAG("jobs_running", SHAPE_U64, jobs_running),
    DIAG("job_states_ts", SHAPE_TIME, jobs_time),
    DIAG("schedule_cycle_total", SHAPE_U64, main.count),
    DIAG("schedule_cycle_last", SHAPE_U64, main.last_usec),
    DIAG("schedule_cycle_max", SHAPE_U64, main.max_usec),
    DIAG("schedule_cycle_mean", SHAPE_U64, main.mean_usec),
    DIAG("schedule_cycle_sum", SHAPE_U64, main.total_usec),
    DIAG("schedule_cycle_mean_depth", SHAPE_U64, main.mean_depth),
    DIAG("schedule_cycle_depth", SHAPE_U64, main.total_depth),
    DIAG("schedule_queue_length", SHAPE_U64, main.last_queue),
    EXIT_OBJECT("schedule_exit", main_exits, &main_exit_table),
    DIAG("bf_active", SHAPE_TRUTH, backfill_is_active),
    DIAG("bf_backfilled_jobs", SHAPE_U64, backfilled_jobs),
    DIAG("bf_last_backfilled_jobs", SHAPE_U64, backfilled_jobs_since_reset),
    DIAG("bf_backfilled_het_jobs", SHAPE_U64, backfilled_het_components),
    DIAG("bf_cycle_counter", SHAPE_U64, backfill.count),
    DIAG("bf_cycle_last", SHAPE_U64, backfill.last_usec),
    DIAG("bf_cycle_max", SHAPE_U64, backfill.max_usec),
    DIAG("bf_cycle_mean", SHAPE_U64, backfill.mean_usec),
    DIAG("bf_cycle_sum", SHAPE_U64, backfill.total_usec),
    DIAG("bf_last_depth", SHAPE_U64, backfill.last_depth),
    DIAG("bf_depth_mean", SHAPE_U64, backfill.mean_depth),
    DIAG("bf_depth_sum", SHAPE_U64, backfill.total_depth),
    DIAG("bf_last_depth_try", SHAPE_U64, backfill_last_depth_tried),
    DIAG("bf_depth_mean_try", SHAPE_U64, backfill_mean_depth_tried),
    DIAG("bf_depth_try_sum", SHAPE_U64, backfill_total_depth_tried),
    DIAG("bf_queue_len", SHAPE_U64, backfill.last_queue),
    DIAG("bf_queue_len_mean", SHAPE_U64, backfill.mean_queue),
    DIAG("bf_queue_len_sum", SHAPE_U64, backfill.total_queue),
    DIAG("bf_table_size", SHAPE_U64, backfill_last_table),
    DIAG("bf_table_size_mean", SHAPE_U64, backfill_mean_table),
    DIAG("bf_table_size_sum", SHAPE_U64, backfill_total_table),
    DIAG("bf_when_last_cycle", SHAPE_TIME, backfill_last_time),
    EXIT_OBJECT("bf_exit", backfill_exits, &backfill_exit_table),
    MEMBER_LIST("rpcs_by_message_type", &type_table),
    MEMBER_LIST("rpcs_by_user", &user_table),
    MEMBER_LIST("pending_rpcs", &pending_table),
};

/* Nothing is known: every number of the table is made so, and what only backfill has. */
static void *begin_statistics(struct answer *answer)
{
    struct json_diag *all = of(answer);

    for (size_t i = 0; i < COUNT(statistics_members); i++)
        if (statistics_members[i].shape == SHAPE_U64)
            *(uint64_t *)((char *)all + statistics_members[i].offset) = MODEL_UNKNOWN_U64;
    for (size_t i = 0; i < EXITS; i++)
        all->main_exits[i] = all->backfill_exits[i] = MODEL_UNKNOWN_U64;
    all->diag.main.last_depth = all->diag.main.mean_queue = all->diag.main.total_queue =
        MODEL_UNKNOWN_U64;
    return all;
}

static void settle_cycle(struct section *section, struct cycle *cycle, const uint64_t *exits,
                         const struct str *words)
{
    cycle->exit = ARENA_ARRAY(&section->arena, struct cycle_exit, EXITS);
    for (size_t i = 0; i < EXITS; i++)
        if (exits[i] != MODEL_UNKNOWN_U64)
            cycle->exit[cycle->n_exits++] =
                (struct cycle_exit){ .reason = symbols_put(&section->symbols, words[i]),
                                     .count = exits[i] };
    if (cycle->count == 0)
        cycle->mean_usec = cycle->mean_depth = cycle->mean_queue = MODEL_UNKNOWN_U64;
}

/* The document has zeros where slurmctld does not queue RPCs. Where it does, some RPC has been
 * taken. */
static void settle_queues(struct diag *diag)
{
    bool has_queues = false;

    for (size_t i = 0; i < diag->n_rpc_by_type; i++)
        has_queues |= diag->rpc_by_type[i].max_cycle != MODEL_UNKNOWN_U64 &&
                      diag->rpc_by_type[i].max_cycle > 0;
    for (size_t i = 0; i < diag->n_rpc_by_type && !has_queues; i++) {
        struct rpc *rpc = &diag->rpc_by_type[i];

        rpc->queued = rpc->dropped = rpc->last_cycle = rpc->max_cycle = MODEL_UNKNOWN_U64;
    }
}

/* From v0.0.39 on the mean size of the table is that of the queue; v0.0.38 has no sum of either. */
static void settle_table(struct diag *diag)
{
    uint64_t count = diag->backfill.count, total = diag->backfill_total_table;

    if (total != MODEL_UNKNOWN_U64 && count != MODEL_UNKNOWN_U64 && count > 0)
        diag->backfill_mean_table = total / count;
    else if (diag->backfill.total_queue != MODEL_UNKNOWN_U64)
        diag->backfill_mean_table = MODEL_UNKNOWN_U64;
}

static const struct json_table statistics_table = {
    .members = statistics_members,
    .n = COUNT(statistics_members),
    .begin = begin_statistics,
};

static const struct json_member document_members[] = {
    { STR_INIT("statistics"), SHAPE_OBJECT, 0, &statistics_table },
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
}

static int end(struct answer *answer, struct err *err)
{
    struct json_diag *all = of(answer);
    struct diag *diag = &all->diag;
    int code = json_answer_end(answer, err);

    if (code < 0)
        return code;
    settle_cycle(answer->section, &diag->main, all->main_exits, main_exit_words);
    settle_cycle(answer->section, &diag->backfill, all->backfill_exits, backfill_exit_words);
    settle_table(diag);
    if (diag->backfill.count == 0)
        diag->backfill_mean_depth_tried = diag->backfill_mean_table = MODEL_UNKNOWN_U64;
    settle_queues(diag);
    answer->section->diag = *diag;
    return 0;
}

static void release(struct answer *answer)
{
    const struct diag *diag = &of(answer)->diag;
    struct arena *arena = &answer->section->arena;

    json_answer_free(answer);
    arena_adopt(arena, diag->rpc_by_type);
    arena_adopt(arena, diag->rpc_by_user);
    arena_adopt(arena, diag->rpc_pending);
}

const struct answer_class answer_json_diag = {
    .size = sizeof(struct json_diag),
    .begin = begin,
    .feed = json_answer_feed,
    .end = end,
    .free = release,
};
