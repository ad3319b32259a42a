/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of the simulated cluster at a moment: goes through the numbers of the jobs that can be
 * seen then, and tells of each what squeue would. */
#include "source/sim_cluster.h"

enum {
    MINUTE = 60,
    NOTICING = 30,     /* seconds from a job's limit to its end, at most */
    AFTERMATH = 45,    /* seconds before a unit's next job in which the last one ends */
    SHORTEST_RUN = 60, /* a start that is later than this before the next is given up */
    SHORTEST_TASK = 120,
    IMMINENT = 15 * MINUTE,
    ABOUT_TO_START = 30 * MINUTE,
    CONFIGURING = 20,
    SCHEDULER_WAKES = 15, /* from the end of an outage to the first start */
    BURST = 4,            /* jobs in a row of one class that one user submits */
};

struct walk {
    const struct sim_cluster *cluster;
    int64_t time;
    bool only_started;
    sim_visit *visit;
    void *ctx;
    uint32_t *nodes; /* of the job being told */
};

/* A job by its number, and what the number decides before anything can come in its way. */
struct draft {
    const struct sim_class *class;
    const struct sim_unit *unit;
    unsigned id;
    uint64_t n, key;
    int64_t submit, start, next; /* next: when the unit's next job is due to start */
    enum job_base fate;
    int64_t length; /* seconds that it runs, or that the whole array takes */
    uint32_t tasks;
    uint32_t limit_minutes;
};

/* What happens to it. */
struct plan {
    bool starts;
    int64_t start, end; /* if it never starts, end is when it is given up */
    int64_t full_end;   /* of an array: when it would have ended without the node's failure */
    int64_t released;
    enum job_base fate;
    uint32_t n_nodes;
    uint32_t missing_node; /* that made it wait, or SIM_NONE */
};

static bool is_array(const struct draft *draft)
{
    return draft->unit->lanes > 0;
}

static const struct {
    enum job_base base;
    uint32_t permille;
} fates[] = {
    { JOB_FAILED, 60 },        { JOB_CANCELLED, 30 }, { JOB_TIMEOUT, 30 },
    { JOB_OUT_OF_MEMORY, 12 }, { JOB_DEADLINE, 1 },   { JOB_COMPLETED, 1000 },
};

static enum job_base draw_fate(uint64_t key)
{
    uint64_t drawn = sim_pick(key, SIM_SALT_FATE, 1000);
    size_t i = 0;

    for (; drawn >= fates[i].permille; i++)
        drawn -= fates[i].permille;
    return fates[i].base;
}

/* Of `room` seconds on a unit, what a job with that fate uses. `slack` is left over at most. */
static int64_t draw_length(enum job_base fate, int64_t room, double slack, uint64_t key)
{
    double drawn = (double)sim_pick(key, SIM_SALT_LENGTH, 1000) / 1000;

    switch (fate) {
    case JOB_FAILED:
    case JOB_OUT_OF_MEMORY:
        drawn = 0.01 + 0.6 * drawn * drawn;
        break;
    case JOB_CANCELLED:
        drawn = 0.02 + 0.9 * drawn;
        break;
    default:
        drawn = 1 - slack * drawn * drawn;
        break;
    }
    return room > 10 ? (int64_t)((double)room * drawn) + 1 : room;
}

static const uint32_t usual_limits[] = { 5,   10,  15,   30,   60,   120,   240,
                                         480, 720, 1440, 2880, 5760, 10080, 20160 };

/* People ask for a round time that is longer than they need. */
static uint32_t draw_limit(int64_t length, uint32_t most, uint64_t key)
{
    const size_t n = COUNT(usual_limits);
    size_t i = 0;

    while (i + 1 < n && usual_limits[i] * (int64_t)MINUTE < length + length / 8)
        i++;
    if (i + 1 < n && sim_pick(key, SIM_SALT_LIMIT, 100) < 35)
        i++;
    return usual_limits[i] < most ? usual_limits[i] : most;
}

/* A job that runs into its limit has one that fits its unit's time, with what Slurm takes to
 * notice: whole minutes or half hours. */
static uint32_t limit_reached_within(int64_t length)
{
    uint32_t minutes = (uint32_t)((length - NOTICING) / MINUTE);

    return minutes > 60 ? minutes - minutes % 30 : minutes;
}

static uint32_t partition_limit(uint32_t partition)
{
    uint32_t limit = sim_partitions[partition].limit_minutes;

    return limit == SIM_NONE ? usual_limits[COUNT(usual_limits) - 1] : limit;
}

static uint32_t draw_partition(const struct draft *draft)
{
    static const uint8_t by_kind[SIM_KINDS] = {
        [SIM_INTEL] = SIM_PART_CPU, [SIM_AMD] = SIM_PART_CPU,       [SIM_A100] = SIM_PART_GPU,
        [SIM_H100] = SIM_PART_GPU,  [SIM_BIGMEM] = SIM_PART_BIGMEM,
    };

    if (draft->id == SIM_DEBUG)
        return SIM_PART_DEBUG;
    if (draft->id == SIM_LONG)
        return SIM_PART_LONG;
    if (sim_pick(draft->key, SIM_SALT_PARTITION, 100) < 6)
        return SIM_PART_PREEMPT;
    return by_kind[draft->unit->kind];
}

static uint32_t draw_tasks(const struct draft *draft, int64_t room)
{
    uint32_t lanes = draft->unit->lanes;
    uint32_t steps =
        4 + (uint32_t)sim_pick(draft->key, SIM_SALT_TASKS, draft->class->ids / lanes - 4);
    uint32_t most = (uint32_t)(room / SHORTEST_TASK);

    if (steps > most)
        steps = most ? most : 1;
    /* The last step need not be full. */
    return steps * lanes - (steps > 1 ? (uint32_t)(draft->key % lanes) : 0);
}

/* Decides what needs the room on the unit: how the job ends, when, and its limit. */
static void fit(const struct walk *walk, struct draft *draft, uint32_t most_minutes)
{
    int64_t room = draft->next - draft->start - AFTERMATH;
    /* By night and on Sundays units stand idle for longer. */
    double slack = 0.45 - 0.22 * sim_pace_at(&walk->cluster->submits, draft->start);

    if (room > most_minutes * (int64_t)MINUTE)
        room = most_minutes * (int64_t)MINUTE;
    draft->fate = is_array(draft) ? JOB_COMPLETED : draw_fate(draft->key);
    if (draft->fate == JOB_TIMEOUT && room < 5 * MINUTE)
        draft->fate = JOB_COMPLETED;
    draft->length = draw_length(draft->fate, room, slack, draft->key);
    if (is_array(draft)) {
        draft->tasks = draw_tasks(draft, room);
        draft->limit_minutes = draw_limit(
            draft->length / ((draft->tasks + draft->unit->lanes - 1) / draft->unit->lanes),
            most_minutes, draft->key);
    } else if (draft->fate == JOB_TIMEOUT) {
        draft->limit_minutes = limit_reached_within(draft->length);
        draft->length = draft->limit_minutes * (int64_t)MINUTE + (int64_t)(draft->key % NOTICING);
    } else {
        draft->limit_minutes = draw_limit(draft->length, most_minutes, draft->key);
    }
}

/* The time from which no outage of the unit's first nodes hinders a start any more. */
static int64_t start_after_outages(const struct walk *walk, const struct draft *draft,
                                   struct plan *plan)
{
    enum { TRIES = 4 };
    uint32_t n = draft->id == SIM_HET ? 2 : 1;
    int64_t start = draft->start;

    for (unsigned i = 0; i < TRIES * n; i++) {
        uint32_t node = draft->unit->node + i % n;
        struct sim_outage outage;

        if (sim_outage_at(walk->cluster, node, start, &outage)) {
            plan->missing_node = node;
            start = outage.end + SCHEDULER_WAKES;
        }
    }
    return start;
}

static void end_at_failure(const struct walk *walk, struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        int64_t failure =
            sim_failure_between(walk->cluster, walk->nodes[i], plan->start, plan->released + 1);

        if (failure) {
            plan->end = plan->released = failure;
            plan->fate = JOB_NODE_FAIL;
        }
    }
}

static void plan_on_few(const struct walk *walk, const struct draft *draft, struct plan *plan)
{
    int64_t least = is_array(draft) ? (int64_t)draft->tasks * 20 : SHORTEST_RUN;

    plan->start = start_after_outages(walk, draft, plan);
    plan->end = plan->start + draft->length;
    if (plan->start + least > draft->next - AFTERMATH) {
        plan->end = draft->next;
        return;
    }
    plan->starts = true;
    if (plan->end > draft->next - AFTERMATH) {
        plan->end = draft->next - AFTERMATH;
        plan->fate = JOB_COMPLETED;
    }
    plan->n_nodes = draft->unit->width;
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        walk->nodes[i] = draft->unit->node + i;
}

/* A group of nodes does without those that are out of order, or will be before the job ends. */
static void plan_on_many(const struct walk *walk, const struct draft *draft, struct plan *plan)
{
    const struct sim_unit *unit = draft->unit;

    plan->start = draft->start;
    plan->end = draft->start + draft->length;
    for (uint32_t node = unit->node; node < unit->node + unit->width; node++) {
        struct sim_outage outage;

        if (sim_outage_at(walk->cluster, node, plan->start, &outage) ||
            sim_failure_between(walk->cluster, node, plan->start, plan->end + AFTERMATH))
            plan->missing_node = node;
        else
            walk->nodes[plan->n_nodes++] = node;
    }
    plan->starts = plan->n_nodes > 0;
    if (!plan->starts)
        plan->end = draft->next;
}

static int64_t draw_completing(uint64_t key)
{
    uint64_t drawn = sim_pick(key, SIM_SALT_COMPLETING, 1000);

    return (int64_t)(drawn < 850 ? drawn % 4 : 5 + drawn % 36);
}

static void make_plan(const struct walk *walk, const struct draft *draft, struct plan *plan)
{
    *plan = (struct plan){ .fate = draft->fate, .missing_node = SIM_NONE };
    if (draft->unit->width > 1 && draft->id != SIM_HET)
        plan_on_many(walk, draft, plan);
    else
        plan_on_few(walk, draft, plan);
    plan->full_end = plan->end;
    if (!plan->starts)
        return;
    plan->released = plan->end + (is_array(draft) ? 0 : draw_completing(draft->key));
    end_at_failure(walk, plan);
}

static uint32_t draw_qos(uint32_t partition, uint64_t burst)
{
    uint64_t drawn = sim_pick(burst, SIM_SALT_QOS, 100);

    switch (partition) {
    case SIM_PART_DEBUG:
        return SIM_QOS_DEBUG;
    case SIM_PART_LONG:
        return SIM_QOS_LONG;
    case SIM_PART_PREEMPT:
        return SIM_QOS_SCAVENGER;
    default:
        return drawn < 75 ? SIM_QOS_NORMAL : drawn < 90 ? SIM_QOS_HIGH : SIM_QOS_LOW;
    }
}

/* A few people submit most jobs. */
static uint32_t draw_user(const struct sim_cluster *cluster, uint64_t burst)
{
    double drawn = (double)sim_pick(burst, SIM_SALT_USER, 1 << 20) / (1 << 20);

    return (uint32_t)(drawn * drawn * cluster->n_users);
}

static void name_owner(const struct sim_cluster *cluster, struct sim_job *job, uint64_t burst)
{
    uint32_t second;

    job->user = draw_user(cluster, burst);
    job->account = sim_user_account(cluster, job->user);
    second = sim_user_second_account(cluster, job->user);
    if (second != SIM_NONE && sim_pick(burst, SIM_SALT_ACCOUNT, 100) < 25)
        job->account = second;
}

/* What it asks for of one node; size_for multiplies. */
static void draw_request(const struct sim_unit *unit, struct sim_job *job, uint64_t key)
{
    static const uint16_t per_cpu[] = { 500, 1000, 1024, 2000, 2000, 2048, 3000, 3800, 4000, 4000 };
    const struct sim_kind *kind = &sim_kinds[unit->kind];
    uint32_t scale = kind->memory_mib / kind->cpus / 4000;
    uint64_t drawn = sim_pick(key, SIM_SALT_MEMORY, 100);
    uint64_t frugal = sim_pick(key, SIM_SALT_CPUS, 100);

    job->cpus = unit->cpus;
    if (unit->width == 1 && unit->cpus >= 4 && frugal < 20)
        job->cpus = frugal < 10 ? unit->cpus / 2u : unit->cpus * 3u / 4;
    /* People like even numbers. */
    job->cpus -= job->cpus % (job->cpus >= 16 ? 4 : job->cpus >= 4 ? 2 : 1);
    job->gpus = unit->gpus;
    job->memory_mib_per_cpu = per_cpu[drawn % 10] * scale;
    job->memory_mib = (uint64_t)job->memory_mib_per_cpu * job->cpus;
    if (drawn < 30) {
        job->memory_mib_per_node = (uint32_t)job->memory_mib;
        job->memory_mib_per_cpu = 0;
    }
    job->kind = unit->kind;
    job->asks_gpu_type = unit->gpus && drawn % 2;
    job->has_features = sim_pick(key, SIM_SALT_FEATURES, 100) < 8;
    job->license = unit->license;
    job->license_count = unit->license_count;
}

static void size_for(struct sim_job *job, uint32_t n_nodes)
{
    job->cpus *= n_nodes;
    job->gpus *= n_nodes;
    job->memory_mib *= n_nodes;
    job->node_count = n_nodes;
}

/* Grows with the time that the job has waited. */
static uint32_t priority_at(const struct draft *draft, uint32_t qos, int64_t time)
{
    static const uint16_t by_qos[SIM_QOSES] = {
        [SIM_QOS_NORMAL] = 2000, [SIM_QOS_HIGH] = 6000,  [SIM_QOS_LOW] = 500,
        [SIM_QOS_LONG] = 1500,   [SIM_QOS_DEBUG] = 9000, [SIM_QOS_SCAVENGER] = 1,
    };
    const int64_t full = 7 * 86400;
    int64_t age = time - draft->submit;

    return (uint32_t)(by_qos[qos] + sim_pick(draft->key, SIM_SALT_PRIORITY, 3000) +
                      (uint64_t)((age < full ? age : full) * 10000 / full));
}

/* What is the same for the job throughout its life; sizes are of one node. */
static void describe(const struct walk *walk, const struct draft *draft, uint32_t partition,
                     struct sim_job *job)
{
    const struct sim_cluster *cluster = walk->cluster;
    uint64_t burst = sim_hash(draft->class->key, draft->n / BURST);
    uint64_t restarts = sim_pick(draft->key, SIM_SALT_RESTARTS, 300);

    *job = (struct sim_job){
        .id = sim_job_id(cluster, draft->id, draft->n),
        .task = SIM_NONE,
        .tasks = 1,
        .partition = partition,
        .partition2 = SIM_NONE,
        .qos = draw_qos(partition, burst),
        .name = sim_pick_name(cluster, draft->key, burst),
        .login = (uint32_t)sim_pick(burst, SIM_SALT_LOGIN, SIM_LOGINS),
        .missing_node = SIM_NONE,
        .reservation = SIM_NONE,
        .limit_minutes = draft->limit_minutes,
        .restarts = restarts < 3 ? (uint32_t)restarts + 1 : 0,
        .first_cpu = draft->unit->first_cpu,
        .first_gpu = draft->unit->first_gpu,
        .first_node = draft->unit->node,
        .width = draft->unit->width,
        .submit = draft->submit,
        .eligible = draft->submit,
    };
    if (partition == SIM_PART_PREEMPT && draft->fate != JOB_TIMEOUT && draft->key % 4 == 0)
        job->limit_minutes = SIM_NONE;
    name_owner(cluster, job, burst);
    draw_request(draft->unit, job, draft->key);
}

static int tell_components(const struct walk *walk, const struct draft *draft, struct sim_job *job)
{
    const uint32_t *nodes = job->nodes;
    uint32_t license_count = job->license_count;
    int code = 0;

    if (draft->id != SIM_HET)
        return walk->visit(walk->ctx, job);
    size_for(job, 1);
    job->het_id = job->id;
    for (uint32_t i = 0; i < 2 && code >= 0; i++) {
        job->id = job->het_id + i;
        job->het_offset = i;
        job->nodes = nodes ? nodes + i : NULL;
        job->first_node = draft->unit->node + i;
        job->width = 1;
        job->license_count = i ? 0 : license_count;
        code = walk->visit(walk->ctx, job);
    }
    return code;
}

static const struct {
    enum sim_reason reason;
    uint32_t permille;
    bool is_hold; /* not eligible until it is over */
} waits[] = {
    { SIM_REASON_HELD_USER, 20, true },   { SIM_REASON_HELD_ADMIN, 6, true },
    { SIM_REASON_DEPENDENCY, 60, true },  { SIM_REASON_BEGIN_TIME, 20, true },
    { SIM_REASON_QOS_CPUS, 50, false },   { SIM_REASON_ASSOC_CPUS, 35, false },
    { SIM_REASON_ASSOC_JOBS, 12, false }, { SIM_REASON_PRIORITY, 1000, false },
};

/* Some jobs have a reason of their own for a part of their wait, and then stand in line. */
static void tell_wait(const struct walk *walk, const struct draft *draft, int64_t start,
                      struct sim_job *job)
{
    uint64_t key = sim_hash(draft->key, SIM_SALT_WAIT);
    uint64_t drawn = sim_below(key, 1000);
    int64_t until = draft->submit + (start - draft->submit) * (int64_t)(30 + key % 65) / 100;
    size_t i = 0;

    for (; drawn >= waits[i].permille; i++)
        drawn -= waits[i].permille;
    job->reason = start - walk->time < ABOUT_TO_START ? SIM_REASON_RESOURCES : SIM_REASON_PRIORITY;
    if (waits[i].is_hold)
        job->eligible = until;
    if (walk->time >= until)
        return;
    if (waits[i].reason != SIM_REASON_PRIORITY)
        job->reason = waits[i].reason;
    else if (job->license_count && key % 2)
        job->reason = SIM_REASON_LICENSES;
    if (job->reason == SIM_REASON_QOS_CPUS && job->gpus)
        job->reason = SIM_REASON_QOS_GRES;
    if (waits[i].is_hold && job->reason != SIM_REASON_BEGIN_TIME)
        job->eligible = 0;
}

static void tell_array_as_waiting(const struct draft *draft, uint32_t first_task,
                                  struct sim_job *job)
{
    job->array_id = job->id;
    job->first_task = first_task;
    job->tasks = draft->tasks - first_task;
    job->throttle = draft->unit->lanes;
}

/* One job in twelve names a second partition that would do as well. */
static void offer_second_partition(const struct walk *walk, const struct draft *draft,
                                   struct sim_job *job)
{
    const uint32_t both = 1u << SIM_PART_CPU | 1u << SIM_PART_LONG;

    if (job->partition == SIM_PART_CPU && draft->key % 12 == 0 &&
        (sim_partitions_of(walk->cluster, draft->unit->node) & both) == both)
        job->partition2 = SIM_PART_LONG;
}

static int tell_pending(const struct walk *walk, const struct draft *draft, int64_t start,
                        uint32_t missing_node, struct sim_job *job)
{
    job->state.base = JOB_PENDING;
    offer_second_partition(walk, draft, job);
    tell_wait(walk, draft, start, job);
    if (missing_node != SIM_NONE) {
        job->reason = SIM_REASON_NODES;
        job->missing_node = missing_node;
        job->eligible = job->submit;
    }
    if (job->reason == SIM_REASON_RESOURCES) {
        job->start = start - start % MINUTE;
        job->end = job->limit_minutes == SIM_NONE ? 0 : job->start + job->limit_minutes * MINUTE;
    }
    if (job->reason != SIM_REASON_HELD_USER && job->reason != SIM_REASON_HELD_ADMIN)
        job->priority = priority_at(draft, job->qos, walk->time);
    if (is_array(draft))
        tell_array_as_waiting(draft, 0, job);
    size_for(job, draft->id == SIM_HET ? 1 : draft->unit->width);
    return tell_components(walk, draft, job);
}

/* Cancelled before it ever started. */
static int tell_withdrawn(const struct walk *walk, const struct draft *draft, int64_t when,
                          struct sim_job *job)
{
    if (walk->only_started || walk->time >= when + SIM_MIN_JOB_AGE)
        return 0;
    job->state.base = JOB_CANCELLED;
    job->start = job->end = when;
    job->priority = priority_at(draft, job->qos, when);
    if (is_array(draft))
        tell_array_as_waiting(draft, 0, job);
    size_for(job, draft->id == SIM_HET ? 1 : draft->unit->width);
    return tell_components(walk, draft, job);
}

static const struct {
    uint32_t exit_code; /* as wait(2) has it */
    enum sim_reason reason;
} ends[JOB_BASES] = {
    [JOB_FAILED] = { 1 << 8, SIM_REASON_EXIT_CODE },
    [JOB_CANCELLED] = { 15, SIM_REASON_NONE },
    [JOB_TIMEOUT] = { 15, SIM_REASON_TIME_LIMIT },
    [JOB_DEADLINE] = { 15, SIM_REASON_NONE },
    [JOB_OUT_OF_MEMORY] = { 125, SIM_REASON_OUT_OF_MEMORY },
    [JOB_NODE_FAIL] = { 1, SIM_REASON_NODE_DOWN },
};

/* Fills in how far a run has come that began at `start`. */
static void tell_run(const struct walk *walk, int64_t start, int64_t end, int64_t released,
                     enum job_base fate, struct sim_job *job)
{
    job->start = start;
    if (walk->time < end) {
        job->state.base = JOB_RUNNING;
        job->end =
            job->limit_minutes == SIM_NONE ? 0 : start + job->limit_minutes * (int64_t)MINUTE;
        return;
    }
    job->end = end;
    job->state.base = (uint8_t)fate;
    job->exit_code = ends[fate].exit_code;
    job->reason = ends[fate].reason;
    if (walk->time < released)
        job->state.flags |= JOB_COMPLETING;
}

static bool is_visible(const struct walk *walk, int64_t released)
{
    return walk->time < (walk->only_started ? released : released + SIM_MIN_JOB_AGE);
}

static int tell_task(const struct walk *walk, const struct draft *draft, const struct plan *plan,
                     uint32_t task, int64_t start, int64_t step, const struct sim_job *master)
{
    uint64_t key = sim_hash(draft->key, task);
    enum job_base fate = draw_fate(key);
    int64_t end = start + draw_length(JOB_COMPLETED, step * 93 / 100, 0.5, key), released;
    uint32_t lane = task % draft->unit->lanes;
    struct sim_job job = *master;

    if (fate == JOB_TIMEOUT || fate == JOB_DEADLINE)
        fate = JOB_COMPLETED; /* tasks are too short to reach their limit */
    released = end + (int64_t)(key % 4 < (uint64_t)step / 20 ? key % 4 : 0);
    if (released > plan->end) {
        end = released = plan->end;
        fate = plan->fate;
    }
    if (!is_visible(walk, released))
        return 0;
    job.array_id = master->id;
    job.task = task;
    if (task + 1 < draft->tasks)
        job.id = master->id + 1 + task;
    job.first_cpu += lane * draft->unit->cpus;
    job.first_gpu += lane * draft->unit->gpus;
    tell_run(walk, start, end, released, fate, &job);
    return walk->visit(walk->ctx, &job);
}

static int tell_remaining(const struct walk *walk, const struct draft *draft, uint32_t first_task,
                          struct sim_job job)
{
    job.nodes = NULL;
    job.reservation = SIM_NONE;
    job.state.base = JOB_PENDING;
    job.reason = SIM_REASON_ARRAY_LIMIT;
    tell_array_as_waiting(draft, first_task, &job);
    return walk->visit(walk->ctx, &job);
}

/* Each lane does one task after another; the tasks of one step start together. */
static int tell_array(const struct walk *walk, const struct draft *draft, const struct plan *plan,
                      struct sim_job *job)
{
    uint32_t lanes = draft->unit->lanes, steps = (draft->tasks + lanes - 1) / lanes;
    int64_t step = (plan->full_end - plan->start) / steps;
    int64_t now = walk->time < plan->end ? walk->time : plan->end - 1;
    int64_t current = (now - plan->start) / step, first;
    int code = 0;

    if (current >= steps)
        current = steps - 1;
    if (walk->time < plan->end && (current + 1) * lanes < draft->tasks && !walk->only_started)
        code = tell_remaining(walk, draft, (uint32_t)(current + 1) * lanes, *job);
    first = current - SIM_MIN_JOB_AGE / step - 1;
    for (int64_t i = first > 0 ? first : 0; i <= current; i++)
        for (uint32_t task = (uint32_t)i * lanes;
             task < draft->tasks && task < (uint32_t)(i + 1) * lanes && code >= 0; task++)
            code = tell_task(walk, draft, plan, task, plan->start + i * step, step, job);
    return code;
}

static int tell_started(const struct walk *walk, const struct draft *draft, const struct plan *plan,
                        struct sim_job *job)
{
    if (!is_visible(walk, plan->released))
        return 0;
    job->nodes = walk->nodes;
    job->reservation = sim_reserved_at(walk->cluster, walk->nodes[0], plan->start);
    job->priority = priority_at(draft, job->qos, plan->start);
    size_for(job, draft->id == SIM_HET ? 1 : plan->n_nodes);
    if (is_array(draft))
        return tell_array(walk, draft, plan, job);
    tell_run(walk, plan->start, plan->end, plan->released, plan->fate, job);
    if (draft->unit->width > 1 && job->state.base == JOB_RUNNING &&
        walk->time < plan->start + CONFIGURING)
        job->state.flags |= JOB_CONFIGURING;
    return tell_components(walk, draft, job);
}

/* When its owner gives up before it starts; most never do. */
static int64_t withdrawn_at(const struct draft *draft)
{
    uint64_t drawn = sim_pick(draft->key, SIM_SALT_WITHDRAWN, 10000);

    if (draft->n % draft->class->surplus)
        return draft->start;
    if (drawn >= 150)
        return INT64_MAX;
    return draft->submit + (draft->start - draft->submit) * (int64_t)(drawn + 1) / 160;
}

static int tell(const struct walk *walk, struct draft *draft)
{
    uint32_t partition = draw_partition(draft);
    int64_t withdrawn = withdrawn_at(draft);
    struct sim_job job;
    struct plan plan;

    fit(walk, draft, partition_limit(partition));
    if (partition == SIM_PART_PREEMPT && draft->fate == JOB_CANCELLED)
        draft->fate = JOB_PREEMPTED;
    describe(walk, draft, partition, &job);
    if (walk->time >= withdrawn)
        return tell_withdrawn(walk, draft, withdrawn, &job);
    if (walk->time < draft->start)
        return tell_pending(walk, draft, draft->start, SIM_NONE, &job);
    make_plan(walk, draft, &plan);
    if (!plan.starts)
        return walk->time < plan.end ? tell_pending(walk, draft, plan.end, plan.missing_node, &job)
                                     : tell_withdrawn(walk, draft, plan.end, &job);
    if (walk->time < plan.start)
        return tell_pending(walk, draft, plan.start, plan.missing_node, &job);
    return tell_started(walk, draft, &plan, &job);
}

/* Takes the nth job of a class, unless it is plain from its times that it cannot be seen. */
static int visit_nth(const struct walk *walk, unsigned id, uint64_t n)
{
    const struct sim_class *class = &walk->cluster->classes[id];
    struct draft draft = { .class = class, .id = id, .n = n };
    int64_t last = walk->only_started ? walk->time + IMMINENT : INT64_MAX;
    uint64_t turn = n / class->surplus;

    draft.submit = sim_time_of(&walk->cluster->submits, sim_submit_work(class, n));
    draft.start = sim_time_of(&class->starts, sim_start_work(class, turn));
    if (draft.submit > walk->time || draft.start > last)
        return 0;
    draft.next = sim_time_of(&class->starts, sim_start_work(class, turn + class->n_units));
    if (walk->time >= draft.next + SIM_MIN_JOB_AGE)
        return 0;
    draft.key = sim_hash(class->key, n);
    draft.unit = sim_unit_of(class, turn);
    return tell(walk, &draft);
}

/* The first job that can have ended so late that it is still seen. */
static uint64_t first_visible(const struct sim_class *class, int64_t time)
{
    uint64_t ended = sim_work_at(&class->starts, time - SIM_MIN_JOB_AGE);
    uint64_t since = class->lead + class->period / 2 + class->period;

    return ended > since ? (ended - since) / class->turn * class->surplus : 0;
}

/* One past the last job that is submitted, or, of those that matter, due to start soon. */
static uint64_t end_of_visible(const struct walk *walk, const struct sim_class *class)
{
    uint64_t due = sim_work_at(&class->starts, walk->time + IMMINENT);
    uint64_t started = due > class->lead ? (due - class->lead) / class->turn + 1 : 0;
    uint64_t submitted = sim_submitted(class, sim_work_at(&walk->cluster->submits, walk->time + 1));

    if (walk->only_started && started * class->surplus < submitted)
        return started * class->surplus;
    return submitted;
}

static int visit_class(const struct walk *walk, unsigned id)
{
    const struct sim_class *class = &walk->cluster->classes[id];
    uint64_t end, step;
    int code = 0;

    if (!class->n_units)
        return 0;
    end = end_of_visible(walk, class);
    step = walk->only_started ? class->surplus : 1;
    for (uint64_t n = first_visible(class, walk->time); n < end && code >= 0; n += step)
        code = visit_nth(walk, id, n);
    return code;
}

int sim_each_job(const struct sim_cluster *cluster, int64_t time, bool only_started,
                 sim_visit *visit, void *ctx)
{
    struct walk walk = {
        .cluster = cluster,
        .time = time,
        .only_started = only_started,
        .visit = visit,
        .ctx = ctx,
        .nodes = heap_array(cluster->n_nodes, sizeof(*walk.nodes)),
    };
    int code = 0;

    for (unsigned id = 0; id < SIM_CLASSES && code >= 0; id++)
        code = visit_class(&walk, id);
    free(walk.nodes);
    return code < 0 ? code : 0;
}
