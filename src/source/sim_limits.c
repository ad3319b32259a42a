/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits of the simulated cluster's accounts, users and QOS, with what its jobs use of them,
 * and its configuration: sacctmgr(1). Its jobs do not obey the limits; they are wide enough for
 * most. */
#include "source/sim_sections.h"

enum { DAY = 86400, ACCOUNTS_PER_USER = 2 };

/* What jobs use that hold resources, or wait. */
struct use {
    uint64_t running, submitted, cpus, gpus, memory_bytes, cpu_seconds_left;
};

struct limits {
    const struct sim_cluster *cluster;
    struct section *section;
    int64_t time;
    struct use *account, *user; /* user: ACCOUNTS_PER_USER of each, his first account first */
    struct use qos[SIM_QOSES];
    struct use *qos_user; /* SIM_QOSES of each user */
    uint64_t cpus, gpus;  /* of the whole cluster */
    size_t room, qos_room, limit_room;
};

static void add_job(struct use *use, const struct sim_job *job, int64_t time)
{
    use->submitted += job->tasks;
    if (!job_holds_resources(job->state))
        return;
    use->running++;
    use->cpus += job->cpus;
    use->gpus += job->gpus;
    use->memory_bytes += job->memory_mib << 20;
    if (job->end > time)
        use->cpu_seconds_left += job->cpus * (uint64_t)(job->end - time);
}

static int count_job(void *ctx, const struct sim_job *job)
{
    struct limits *limits = ctx;
    unsigned which = job->account != sim_user_account(limits->cluster, job->user);

    if (job->state.base != JOB_PENDING && !job_holds_resources(job->state))
        return 0;
    add_job(&limits->account[job->account], job, limits->time);
    add_job(&limits->user[job->user * ACCOUNTS_PER_USER + which], job, limits->time);
    add_job(&limits->qos[job->qos], job, limits->time);
    add_job(&limits->qos_user[job->user * SIM_QOSES + job->qos], job, limits->time);
    return 0;
}

static void add_limit(struct limits *limits, uint32_t *n_limits, enum limit_kind kind,
                      const char *tres, uint64_t limit, uint64_t used)
{
    struct associations *all = &limits->section->associations;

    all->limit = heap_grow(all->limit, all->n_limits, &limits->limit_room, sizeof(*all->limit));
    all->limit[all->n_limits++] = (struct limit){
        .kind = (uint8_t)kind,
        .tres = symbols_put(&limits->section->symbols, str_of(tres)),
        .limit = limit,
        .used = used,
    };
    ++*n_limits;
}

static struct association *add_association(struct limits *limits, struct str account,
                                           struct str user)
{
    struct associations *all = &limits->section->associations;

    all->association =
        heap_grow(all->association, all->n, &limits->room, sizeof(*all->association));
    all->association[all->n] = (struct association){
        .account = symbols_put(&limits->section->symbols, account),
        .user = symbols_put(&limits->section->symbols, user),
        .first_limit = (uint32_t)all->n_limits,
    };
    return &all->association[all->n++];
}

static bool is_course(uint32_t account)
{
    return account % SIM_DEPARTMENTS == SIM_DEPARTMENTS - 1;
}

/* Half of the cluster for each; for a course, its jobs are counted as well. */
static void add_account(struct limits *limits, uint32_t account)
{
    const struct use *use = &limits->account[account];
    uint32_t *n = &add_association(limits, limits->cluster->accounts[account], STR(""))->n_limits;

    add_limit(limits, n, LIMIT_TRES, "cpu", limits->cpus / 2 + 1, use->cpus);
    if (limits->gpus)
        add_limit(limits, n, LIMIT_TRES, "gres/gpu", limits->gpus / 2 + 1, use->gpus);
    if (!is_course(account))
        return;
    add_limit(limits, n, LIMIT_JOBS, "", limits->cluster->sim.jobs, use->running);
    add_limit(limits, n, LIMIT_SUBMITTED, "", limits->cluster->sim.jobs * 10, use->submitted);
    add_limit(limits, n, LIMIT_TRES, "mem", limits->cpus << 31, use->memory_bytes);
    add_limit(limits, n, LIMIT_TRES_RUN_SECONDS, "cpu", limits->cpus * 3 * DAY,
              use->cpu_seconds_left);
    add_limit(limits, n, LIMIT_USER_JOBS, "", limits->cluster->sim.jobs / 2, MODEL_UNKNOWN_U64);
}

static void add_user(struct limits *limits, uint32_t user, uint32_t account, const struct use *use)
{
    const struct sim_cluster *cluster = limits->cluster;
    uint32_t *n =
        &add_association(limits, cluster->accounts[account], cluster->users[user])->n_limits;

    if (is_course(account))
        add_limit(limits, n, LIMIT_USER_JOBS, "", cluster->sim.jobs / 2, use->running);
}

/* Of a limit of each user of a QOS the most that one of them uses is told. */
static struct use most_of_one(const struct limits *limits, unsigned qos)
{
    struct use most = { 0 };

    for (uint32_t user = 0; user < limits->cluster->n_users; user++) {
        const struct use *use = &limits->qos_user[user * SIM_QOSES + qos];

        most.running = use->running > most.running ? use->running : most.running;
        most.submitted = use->submitted > most.submitted ? use->submitted : most.submitted;
        most.cpus = use->cpus > most.cpus ? use->cpus : most.cpus;
    }
    return most;
}

static void add_qos(struct limits *limits, unsigned id)
{
    struct associations *all = &limits->section->associations;
    const struct sim *sim = &limits->cluster->sim;
    struct use most = most_of_one(limits, id);
    struct qos *qos;

    all->qos = heap_grow(all->qos, all->n_qos, &limits->qos_room, sizeof(*all->qos));
    qos = &all->qos[all->n_qos++];
    *qos = (struct qos){ .name = symbols_put(&limits->section->symbols, sim_qos[id]),
                         .first_limit = (uint32_t)all->n_limits };
    if (id == SIM_QOS_HIGH)
        add_limit(limits, &qos->n_limits, LIMIT_USER_TRES, "cpu", limits->cpus / 4 + 1, most.cpus);
    if (id == SIM_QOS_LONG)
        add_limit(limits, &qos->n_limits, LIMIT_TRES, "cpu", limits->cpus, limits->qos[id].cpus);
    if (id == SIM_QOS_DEBUG) {
        add_limit(limits, &qos->n_limits, LIMIT_USER_JOBS, "", sim->jobs / 10 + 2, most.running);
        add_limit(limits, &qos->n_limits, LIMIT_USER_SUBMITTED, "", sim->jobs, most.submitted);
    }
}

static void add_all(struct limits *limits)
{
    const struct sim_cluster *cluster = limits->cluster;

    add_association(limits, STR("root"), STR(""));
    for (uint32_t i = 0; i < SIM_DEPARTMENTS; i++)
        add_association(limits, sim_departments[i], STR(""));
    for (uint32_t account = 0; account < cluster->n_accounts; account++)
        add_account(limits, account);
    for (uint32_t user = 0; user < cluster->n_users; user++) {
        uint32_t second = sim_user_second_account(cluster, user);

        add_user(limits, user, sim_user_account(cluster, user),
                 &limits->user[user * ACCOUNTS_PER_USER]);
        if (second != SIM_NONE)
            add_user(limits, user, second, &limits->user[user * ACCOUNTS_PER_USER + 1]);
    }
    for (unsigned qos = 0; qos < SIM_QOSES; qos++)
        add_qos(limits, qos);
}

void sim_fill_associations(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct limits limits = {
        .cluster = cluster,
        .section = section,
        .time = time,
        .account = heap_alloc(cluster->n_accounts * sizeof(struct use)),
        .user = heap_alloc((size_t)cluster->n_users * ACCOUNTS_PER_USER * sizeof(struct use)),
        .qos_user = heap_alloc((size_t)cluster->n_users * SIM_QOSES * sizeof(struct use)),
    };

    for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
        limits.cpus += (uint64_t)cluster->regions[kind].count * sim_kinds[kind].cpus;
        limits.gpus += (uint64_t)cluster->regions[kind].count * sim_kinds[kind].gpus;
    }
    sim_each_job(cluster, time, false, count_job, &limits);
    add_all(&limits);
    arena_adopt(&section->arena, section->associations.association);
    arena_adopt(&section->arena, section->associations.qos);
    arena_adopt(&section->arena, section->associations.limit);
    free(limits.account);
    free(limits.user);
    free(limits.qos_user);
}

/* Nothing is hidden: there is nobody from whom. */
void sim_fill_config(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    (void)cluster;
    (void)time;
    section->config.cluster = symbols_put(&section->symbols, STR("simulated"));
    section->config.version = symbols_put(&section->symbols, STR(SIM_VERSION));
}
