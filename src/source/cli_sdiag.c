/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics from sdiag(1), as it prints them for people: blocks with a heading, in
 * them labels and numbers. Both schedulers have a block, and share labels. */
#include "base/num.h"
#include "source/cli.h"
#include "source/pairs.h"

enum block {
    TOP, /* before the first heading, and between blocks: not indented */
    MAIN,
    MAIN_EXITS,
    BACKFILL,
    BACKFILL_EXITS,
    RPC_TYPES,
    RPC_USERS,
    RPC_PENDING,
    UNKNOWN,
};

static const struct {
    struct str heading; /* how it begins */
    enum block block;
} headings[] = {
    { STR_INIT("Main schedule statistics"), MAIN },
    { STR_INIT("Main scheduler exit"), MAIN_EXITS },
    { STR_INIT("Backfilling stats"), BACKFILL },
    { STR_INIT("Backfill exit"), BACKFILL_EXITS },
    { STR_INIT("Remote Procedure Call statistics by message type"), RPC_TYPES },
    { STR_INIT("Remote Procedure Call statistics by user"), RPC_USERS },
    { STR_INIT("Pending RPC statistics"), RPC_PENDING },
};

static const struct number {
    enum block block;
    struct str label;
    size_t offset; /* of a uint64_t in struct diag */
} numbers[] = {
    { TOP, STR_INIT("Server thread count"), offsetof(struct diag, server_threads) },
    { TOP, STR_INIT("Agent queue size"), offsetof(struct diag, agent_queue) },
    { TOP, STR_INIT("Agent count"), offsetof(struct diag, agent_count) },
    { TOP, STR_INIT("Agent thread count"), offsetof(struct diag, agent_threads) },
    { TOP, STR_INIT("DBD Agent queue size"), offsetof(struct diag, dbd_agent_queue) },
    { TOP, STR_INIT("Jobs submitted"), offsetof(struct diag, jobs_submitted) },
    { TOP, STR_INIT("Jobs started"), offsetof(struct diag, jobs_started) },
    { TOP, STR_INIT("Jobs completed"), offsetof(struct diag, jobs_completed) },
    { TOP, STR_INIT("Jobs canceled"), offsetof(struct diag, jobs_canceled) },
    { TOP, STR_INIT("Jobs failed"), offsetof(struct diag, jobs_failed) },
    { TOP, STR_INIT("Jobs pending"), offsetof(struct diag, jobs_pending) },
    { TOP, STR_INIT("Jobs running"), offsetof(struct diag, jobs_running) },
    { TOP, STR_INIT("Latency for 1000 calls to gettimeofday()"),
      offsetof(struct diag, clock_usec) },
    { MAIN, STR_INIT("Last cycle"), offsetof(struct diag, main.last_usec) },
    { MAIN, STR_INIT("Max cycle"), offsetof(struct diag, main.max_usec) },
    { MAIN, STR_INIT("Total cycles"), offsetof(struct diag, main.count) },
    { MAIN, STR_INIT("Mean cycle"), offsetof(struct diag, main.mean_usec) },
    { MAIN, STR_INIT("Mean depth cycle"), offsetof(struct diag, main.mean_depth) },
    { MAIN, STR_INIT("Last queue length"), offsetof(struct diag, main.last_queue) },
    { BACKFILL, STR_INIT("Total backfilled jobs (since last slurm start)"),
      offsetof(struct diag, backfilled_jobs) },
    { BACKFILL, STR_INIT("Total backfilled jobs (since last stats cycle start)"),
      offsetof(struct diag, backfilled_jobs_since_reset) },
    { BACKFILL, STR_INIT("Total backfilled heterogeneous job components"),
      offsetof(struct diag, backfilled_het_components) },
    { BACKFILL, STR_INIT("Total cycles"), offsetof(struct diag, backfill.count) },
    { BACKFILL, STR_INIT("Last cycle"), offsetof(struct diag, backfill.last_usec) },
    { BACKFILL, STR_INIT("Max cycle"), offsetof(struct diag, backfill.max_usec) },
    { BACKFILL, STR_INIT("Mean cycle"), offsetof(struct diag, backfill.mean_usec) },
    { BACKFILL, STR_INIT("Last depth cycle"), offsetof(struct diag, backfill.last_depth) },
    { BACKFILL, STR_INIT("Last depth cycle (try sched)"),
      offsetof(struct diag, backfill_last_depth_tried) },
    { BACKFILL, STR_INIT("Depth Mean"), offsetof(struct diag, backfill.mean_depth) },
    { BACKFILL, STR_INIT("Depth Mean (try depth)"),
      offsetof(struct diag, backfill_mean_depth_tried) },
    { BACKFILL, STR_INIT("Last queue length"), offsetof(struct diag, backfill.last_queue) },
    { BACKFILL, STR_INIT("Queue length mean"), offsetof(struct diag, backfill.mean_queue) },
    { BACKFILL, STR_INIT("Last table size"), offsetof(struct diag, backfill_last_table) },
    { BACKFILL, STR_INIT("Mean table size"), offsetof(struct diag, backfill_mean_table) },
};

/* Times are printed for people, with the seconds in brackets after them. */
static const struct moment {
    enum block block;
    struct str label; /* the first two have no colon */
    size_t offset;    /* of an int64_t in struct diag */
} moments[] = {
    { TOP, STR_INIT("sdiag output at "), offsetof(struct diag, time) },
    { TOP, STR_INIT("Data since "), offsetof(struct diag, reset_time) },
    { TOP, STR_INIT("Job states ts:"), offsetof(struct diag, jobs_time) },
    { BACKFILL, STR_INIT("Last cycle when:"), offsetof(struct diag, backfill_last_time) },
};

/* What sdiag prints in JSON only. */
static const size_t untold[] = {
    offsetof(struct diag, main.total_usec),
    offsetof(struct diag, main.last_depth),
    offsetof(struct diag, main.total_depth),
    offsetof(struct diag, main.mean_queue),
    offsetof(struct diag, main.total_queue),
    offsetof(struct diag, backfill.total_usec),
    offsetof(struct diag, backfill.total_depth),
    offsetof(struct diag, backfill.total_queue),
    offsetof(struct diag, backfill_total_depth_tried),
    offsetof(struct diag, backfill_total_table),
};

struct sdiag {
    struct lined lined;
    enum block block;
    size_t type_room, user_room, pending_room, main_exit_room, backfill_exit_room;
};

static void *member_at(struct diag *diag, size_t offset)
{
    return (char *)diag + offset;
}

static bool read_moment(struct diag *diag, enum block block, struct str line)
{
    for (size_t i = 0; i < COUNT(moments); i++) {
        int64_t *time = member_at(diag, moments[i].offset);
        struct str seconds;

        if (block != moments[i].block || !str_starts(line, moments[i].label))
            continue;
        pairs_name(line, &seconds);
        if (!*time)
            *time = answer_timestamp(seconds);
        return true;
    }
    return false;
}

/* "Last cycle:   250", "… gettimeofday(): 30 microseconds" */
static void read_number(struct diag *diag, enum block block, struct str line)
{
    struct str value = line, label = str_cut(&value, ':');

    value = str_trim(value);
    value = str_head(value, str_find(value, ' '));
    for (size_t i = 0; i < COUNT(numbers); i++) {
        uint64_t *number = member_at(diag, numbers[i].offset);

        if (block == numbers[i].block && str_eq(label, numbers[i].label) &&
            *number == MODEL_UNKNOWN_U64)
            *number = answer_u64(value);
    }
}

/* "Hit table size limit (bf_node_space_size): 0" */
static void read_exit(struct sdiag *sdiag, struct cycle *cycle, size_t *room, struct str line)
{
    struct answer *answer = &sdiag->lined.answer;
    struct str count = line, reason = str_cut(&count, ':');

    if (!reason.n || !count.p) {
        answer_leave_out(answer, line);
        return;
    }
    cycle->exit =
        section_grow(answer->section, cycle->exit, cycle->n_exits, room, sizeof(*cycle->exit));
    cycle->exit[cycle->n_exits++] = (struct cycle_exit){
        .reason = symbols_put(&answer->section->symbols, reason),
        .count = answer_u64(str_trim(count)),
    };
}

/* What follows a message type or a user: "count:61     ave_time:421    total_time:25692". */
static void read_counts(struct str text, struct rpc *rpc)
{
    const struct {
        struct str label;
        uint64_t *value;
    } counts[] = {
        { STR_INIT("count"), &rpc->count },           { STR_INIT("total_time"), &rpc->total_usec },
        { STR_INIT("queued"), &rpc->queued },         { STR_INIT("dropped"), &rpc->dropped },
        { STR_INIT("cycle_last"), &rpc->last_cycle }, { STR_INIT("cycle_max"), &rpc->max_cycle },
    };

    for (size_t i = 0; i < COUNT(counts); i++)
        *counts[i].value = MODEL_UNKNOWN_U64;
    for (struct str rest = text; rest.p;) {
        struct str value = str_cut(&rest, ' '), label = str_cut(&value, ':');

        for (size_t i = 0; i < COUNT(counts); i++)
            if (str_eq(label, counts[i].label))
                *counts[i].value = answer_u64(value);
    }
}

/* "REQUEST_PING             ( 1008) count:6      ave_time:325    total_time:1952" */
static bool read_rpc(struct answer *answer, struct str line, struct rpc *ret)
{
    size_t end = str_find_str(line, STR(") count:"));
    struct str number, name = str_trim(pairs_name(str_head(line, end + 1), &number));

    if (end == line.n || !name.n) {
        answer_leave_out(answer, line);
        return false;
    }
    ret->name = symbols_put(&answer->section->symbols, name);
    ret->id = answer_u32(str_trim(number), MODEL_UNKNOWN_U32);
    read_counts(str_skip(line, end + 2), ret);
    return true;
}

static void add_rpc(struct sdiag *sdiag, struct rpc **rpcs, size_t *n, size_t *room,
                    struct str line)
{
    struct rpc rpc;

    if (!read_rpc(&sdiag->lined.answer, line, &rpc))
        return;
    *rpcs = section_grow(sdiag->lined.answer.section, *rpcs, *n, room, sizeof(**rpcs));
    (*rpcs)[(*n)++] = rpc;
}

static void add_user_rpc(struct sdiag *sdiag, struct diag *diag, struct str line)
{
    struct answer *answer = &sdiag->lined.answer;
    size_t before = diag->n_rpc_by_user;
    struct rpc *rpc;

    add_rpc(sdiag, &diag->rpc_by_user, &diag->n_rpc_by_user, &sdiag->user_room, line);
    if (diag->n_rpc_by_user == before)
        return;
    rpc = &diag->rpc_by_user[before];
    rpc->name = answer_user(answer, section_text(answer->section, rpc->name), rpc->id);
}

static void add_pending(struct sdiag *sdiag, struct diag *diag, struct str line)
{
    struct rpc rpc;

    if (!read_rpc(&sdiag->lined.answer, line, &rpc))
        return;
    diag->rpc_pending =
        section_grow(sdiag->lined.answer.section, diag->rpc_pending, diag->n_rpc_pending,
                     &sdiag->pending_room, sizeof(*diag->rpc_pending));
    diag->rpc_pending[diag->n_rpc_pending++] =
        (struct pending_rpc){ .name = rpc.name, .id = rpc.id, .count = rpc.count };
}

static void read_member(struct sdiag *sdiag, struct diag *diag, struct str line)
{
    switch (sdiag->block) {
    case MAIN_EXITS:
        read_exit(sdiag, &diag->main, &sdiag->main_exit_room, line);
        break;
    case BACKFILL_EXITS:
        read_exit(sdiag, &diag->backfill, &sdiag->backfill_exit_room, line);
        break;
    case RPC_TYPES:
        add_rpc(sdiag, &diag->rpc_by_type, &diag->n_rpc_by_type, &sdiag->type_room, line);
        break;
    case RPC_USERS:
        add_user_rpc(sdiag, diag, line);
        break;
    case RPC_PENDING:
        add_pending(sdiag, diag, line);
        break;
    default:
        if (!read_moment(diag, sdiag->block, line))
            read_number(diag, sdiag->block, line);
    }
}

/* A heading that is not known begins a block of which nothing is read. */
static enum block block_of(struct str line)
{
    for (size_t i = 0; i < COUNT(headings); i++)
        if (str_starts(line, headings[i].heading))
            return headings[i].block;
    return UNKNOWN;
}

static void read_line(void *ctx, struct str line)
{
    struct sdiag *sdiag = ctx;
    struct diag *diag = &sdiag->lined.answer.section->diag;

    if (!line.n || str_eq(line, STR("\tNo pending RPCs")) ||
        str_eq(line, STR("\tNo RPCs recorded yet.")))
        return;
    if (line.p[0] == '\t') {
        if (sdiag->block != UNKNOWN)
            read_member(sdiag, diag, str_trim(line));
        return;
    }
    sdiag->block = TOP;
    read_member(sdiag, diag, line);
    sdiag->block = block_of(line);
    if (sdiag->block == BACKFILL)
        diag->backfill_is_active = str_find_str(line, STR("WARNING")) < line.n;
}

static void begin(struct answer *answer)
{
    struct diag *diag = &answer->section->diag;

    for (size_t i = 0; i < COUNT(numbers); i++)
        *(uint64_t *)member_at(diag, numbers[i].offset) = MODEL_UNKNOWN_U64;
    for (size_t i = 0; i < COUNT(untold); i++)
        *(uint64_t *)member_at(diag, untold[i]) = MODEL_UNKNOWN_U64;
    lined_begin(answer, read_line);
}

static int end(struct answer *answer, struct err *err)
{
    int code = lined_end(answer, NULL, err);

    if (code == 0 && !answer->section->diag.time)
        return err_set(err, EBADMSG, "there are no statistics in it");
    return code;
}

static void release(struct answer *answer)
{
    struct diag *diag = &answer->section->diag;
    struct arena *arena = &answer->section->arena;

    lined_free(answer);
    arena_adopt(arena, diag->main.exit);
    arena_adopt(arena, diag->backfill.exit);
    arena_adopt(arena, diag->rpc_by_type);
    arena_adopt(arena, diag->rpc_by_user);
    arena_adopt(arena, diag->rpc_pending);
}

const struct answer_class answer_sdiag = {
    .size = sizeof(struct sdiag),
    .begin = begin,
    .feed = lined_feed,
    .end = end,
    .free = release,
};
