/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The scheduler's statistics and the fair-share tree of the simulated cluster, with the meaning
 * that sdiag(1) and sshare(1) give their columns. */
#include "source/sim_sections.h"

#include <math.h>

enum { DAY = 86400, HOUR = 3600 };

struct counts {
    uint64_t submitted, started, ended;
};

/* Tasks that a job of the class has on average. */
static uint64_t tasks_per_job(const struct sim_class *class)
{
    return class->ids > 2 ? class->ids / 2 : class->ids;
}

static uint64_t turns(const struct sim_class *class, int64_t time, uint64_t delay)
{
    uint64_t work = sim_work_at(&class->starts, time);

    return work > delay ? (work - delay) / class->turn : 0;
}

/* Since the beginning of time. */
static struct counts count_until(const struct sim_cluster *cluster, int64_t time)
{
    struct counts counts = { 0 };

    for (unsigned id = 0; id < SIM_CLASSES; id++) {
        const struct sim_class *class = &cluster->classes[id];
        uint64_t tasks = tasks_per_job(class);

        if (!class->n_units)
            continue;
        counts.submitted += tasks * sim_submitted(class, sim_work_at(&cluster->submits, time + 1));
        counts.started += tasks * turns(class, time, class->lead + class->period / 4);
        counts.ended += tasks * turns(class, time, class->lead + class->period / 4 * 5);
    }
    return counts;
}

struct queue {
    uint64_t pending_records, pending, running;
};

static int count_job(void *ctx, const struct sim_job *job)
{
    struct queue *queue = ctx;

    if (job->state.base == JOB_PENDING) {
        queue->pending_records++;
        queue->pending += job->tasks;
    }
    queue->running += job->state.base == JOB_RUNNING;
    return 0;
}

static const struct rpc_row {
    struct str name;
    uint32_t id;
    bool from_daemons; /* asked by slurmd or the daemons' user, not by people */
    double per_hour, per_node_hour, per_submit, per_end;
    uint32_t mean_usec;
} rpc_rows[] = {
    { STR_INIT("REQUEST_PARTITION_INFO"), 2009, false, 1200, 0, 0.5, 0, 190 },
    { STR_INIT("REQUEST_JOB_INFO"), 2003, false, 900, 0, 0.4, 0, 2400 },
    { STR_INIT("REQUEST_NODE_INFO"), 2007, false, 400, 0, 0, 0, 1700 },
    { STR_INIT("REQUEST_JOB_INFO_SINGLE"), 2021, false, 60, 0, 1.5, 0, 310 },
    { STR_INIT("REQUEST_SUBMIT_BATCH_JOB"), 4003, false, 0, 0, 1, 0, 1600 },
    { STR_INIT("REQUEST_KILL_JOB"), 5032, false, 2, 0, 0, 0.04, 1030 },
    { STR_INIT("REQUEST_PRIORITY_FACTORS"), 2026, false, 20, 0, 0, 0, 900 },
    { STR_INIT("REQUEST_SHARE_INFO"), 2022, false, 30, 0, 0, 0, 1400 },
    { STR_INIT("REQUEST_STATS_INFO"), 2035, true, 240, 0, 0, 0, 210 },
    { STR_INIT("REQUEST_PING"), 1008, true, 60, 0, 0, 0, 90 },
    { STR_INIT("MESSAGE_NODE_REGISTRATION_STATUS"), 1002, true, 0, 2, 0, 0, 420 },
    { STR_INIT("REQUEST_COMPLETE_BATCH_SCRIPT"), 5018, true, 0, 0, 0, 1, 1040 },
    { STR_INIT("REQUEST_STEP_COMPLETE"), 5016, true, 0, 0, 0, 2.2, 600 },
    { STR_INIT("MESSAGE_EPILOG_COMPLETE"), 6012, true, 0, 0, 0, 1, 150 },
};
enum { RPC_TYPES = COUNT(rpc_rows), RPC_PEOPLE = 12 };

static void fill_rpc_types(const struct sim_cluster *cluster, double hours, struct section *section)
{
    struct diag *diag = &section->diag;

    diag->n_rpc_by_type = RPC_TYPES;
    diag->rpc_by_type = ARENA_ARRAY(&section->arena, struct rpc, RPC_TYPES);
    for (size_t i = 0; i < RPC_TYPES; i++) {
        const struct rpc_row *row = &rpc_rows[i];
        double ended = (double)(diag->jobs_completed + diag->jobs_failed + diag->jobs_canceled);
        double count = row->per_hour * hours + row->per_node_hour * cluster->n_nodes * hours +
                       row->per_submit * (double)diag->jobs_submitted + row->per_end * ended;

        diag->rpc_by_type[i] = (struct rpc){
            .name = symbols_put(&section->symbols, row->name),
            .id = row->id,
            .count = (uint64_t)count,
            .total_usec = (uint64_t)count * row->mean_usec,
            .queued = MODEL_UNKNOWN_U64, /* its slurmctld has no queue of RPCs */
            .dropped = MODEL_UNKNOWN_U64,
            .last_cycle = MODEL_UNKNOWN_U64,
            .max_cycle = MODEL_UNKNOWN_U64,
        };
    }
}

/* The daemons ask as root; of the rest each of the busiest people takes a share of what the ones
 * before left, and root, who is the monitoring as well, what remains. */
static void fill_rpc_users(const struct sim_cluster *cluster, struct section *section)
{
    struct diag *diag = &section->diag;
    uint64_t left = 0, left_usec = 0;
    uint32_t people = cluster->n_users < RPC_PEOPLE ? cluster->n_users : RPC_PEOPLE;
    struct rpc *root;

    diag->n_rpc_by_user = people + 1;
    diag->rpc_by_user = ARENA_ARRAY(&section->arena, struct rpc, people + 1);
    for (uint32_t i = 0; i <= people; i++)
        diag->rpc_by_user[i] = (struct rpc){ .queued = MODEL_UNKNOWN_U64,
                                             .dropped = MODEL_UNKNOWN_U64,
                                             .last_cycle = MODEL_UNKNOWN_U64,
                                             .max_cycle = MODEL_UNKNOWN_U64 };
    root = &diag->rpc_by_user[0];
    root->name = symbols_put(&section->symbols, STR("root"));
    for (size_t i = 0; i < RPC_TYPES; i++) {
        struct rpc *type = &diag->rpc_by_type[i];

        *(rpc_rows[i].from_daemons ? &root->count : &left) += type->count;
        *(rpc_rows[i].from_daemons ? &root->total_usec : &left_usec) += type->total_usec;
    }
    for (uint32_t i = 0; i < people; i++) {
        struct rpc *user = &diag->rpc_by_user[i + 1];

        user->name = symbols_put(&section->symbols, cluster->users[i]);
        user->id = SIM_UID_FIRST + i;
        user->count = left / 6;
        user->total_usec = left_usec / 6;
        left -= user->count;
        left_usec -= user->total_usec;
    }
    root->count += left;
    root->total_usec += left_usec;
}

/* Counters grow evenly since the reset; the last cycle is as long as the queue. */
static void fill_cycle(struct cycle *cycle, uint64_t count, uint64_t usec, uint64_t usec_per_job,
                       uint64_t queue, uint64_t usual_queue, uint64_t deepest, uint64_t noise)
{
    uint64_t usual = usec + usec_per_job * usual_queue;

    cycle->count = count;
    cycle->last_usec = (usec + usec_per_job * queue) * (80 + noise % 40) / 100;
    cycle->max_usec = usual * 4;
    cycle->mean_usec = usual;
    cycle->total_usec = count * usual;
    cycle->last_queue = queue;
    cycle->mean_queue = usual_queue;
    cycle->total_queue = count * usual_queue;
    cycle->last_depth = queue < deepest ? queue : deepest;
    cycle->mean_depth = usual_queue < deepest ? usual_queue : deepest;
    cycle->total_depth = count * cycle->mean_depth;
}

/* One cycle in eleven ends before it has seen the whole queue. */
static void fill_exits(struct section *section, struct cycle *cycle, struct str early)
{
    cycle->n_exits = 2;
    cycle->exit = ARENA_ARRAY(&section->arena, struct cycle_exit, cycle->n_exits);
    cycle->exit[1].reason = symbols_put(&section->symbols, early);
    cycle->exit[1].count = cycle->count / 11;
    cycle->exit[0].reason = symbols_put(&section->symbols, STR("End of job queue"));
    cycle->exit[0].count = cycle->count - cycle->exit[1].count;
}

static void fill_cycles(const struct sim_cluster *cluster, const struct queue *queue,
                        uint64_t started, struct diag *diag)
{
    uint64_t since = (uint64_t)(diag->time - diag->reset_time);
    uint64_t usual = cluster->sim.jobs / 2;
    uint64_t noise = sim_hash(cluster->key ^ SIM_SALT_DIAG, (uint64_t)diag->time / 3);

    diag->server_threads = 1 + noise % 4;
    diag->clock_usec = 20 + noise / 64 % 15;
    diag->agent_count = noise / 4 % 3;
    diag->agent_threads = diag->agent_count * 3;
    diag->agent_queue = noise / 16 % 8 == 0 ? noise / 128 % 10 : 0;
    diag->dbd_agent_queue = noise / 2048 % 16 == 0 ? noise / 32768 % 5 : 0;
    fill_cycle(&diag->main, since * 2 / 5, 180, 3, queue->pending_records, usual, 100, noise >> 20);
    fill_cycle(&diag->backfill, since / 30, 20000, 60, queue->pending_records, usual, 1000,
               noise >> 30);
    diag->backfilled_jobs_since_reset = started * 2 / 5;
    diag->backfilled_jobs = diag->backfilled_jobs_since_reset + 100 * cluster->sim.jobs;
    diag->backfilled_het_components = started / 200 * 2;
    diag->backfill_last_depth_tried = diag->backfill.last_depth / 3;
    diag->backfill_mean_depth_tried = diag->backfill.mean_depth / 3;
    diag->backfill_total_depth_tried = diag->backfill.count * diag->backfill_mean_depth_tried;
    diag->backfill_last_table = 1 + diag->backfill.last_depth / 8;
    diag->backfill_mean_table = 1 + diag->backfill.mean_depth / 8;
    diag->backfill_total_table = diag->backfill.count * diag->backfill_mean_table;
    diag->backfill_last_time = diag->time - (int64_t)(since % 30);
}

void sim_fill_diag(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    struct diag *diag = &section->diag;
    struct queue queue = { 0 };
    struct counts now, reset;
    uint64_t ended;

    diag->time = time;
    diag->reset_time = time - time % DAY;
    sim_each_job(cluster, time, false, count_job, &queue);
    now = count_until(cluster, time);
    reset = count_until(cluster, diag->reset_time);
    ended = now.ended - reset.ended;
    diag->jobs_submitted = now.submitted - reset.submitted;
    diag->jobs_started = now.started - reset.started;
    diag->jobs_canceled = ended * 4 / 100;
    diag->jobs_failed = ended * 7 / 100;
    diag->jobs_completed = ended - diag->jobs_canceled - diag->jobs_failed;
    diag->jobs_time = time;
    diag->jobs_pending = queue.pending;
    diag->jobs_running = queue.running;
    fill_cycles(cluster, &queue, diag->jobs_started, diag);
    fill_exits(section, &diag->main, STR("Hit default_queue_depth"));
    fill_exits(section, &diag->backfill, STR("Hit bf_max_job_test"));
    fill_rpc_types(cluster, (double)(time - diag->reset_time) / HOUR, section);
    fill_rpc_users(cluster, section);
}

/* The tree as an array: what belongs to a row follows it, one level deeper. */
struct tree {
    const struct sim_cluster *cluster;
    struct section *section;
    int64_t time;
    struct share *rows;
    uint8_t *depths;
    size_t n, n_users;
    uint32_t *first_user; /* of each account, in users; one more at the end */
    uint32_t *users;
};

/* Each user in the one or two accounts that he has, sorted by account. */
static void list_users(struct tree *tree)
{
    const struct sim_cluster *cluster = tree->cluster;
    uint32_t *next = heap_alloc((cluster->n_accounts + 1) * sizeof(*next));

    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint32_t user = 0; user < cluster->n_users; user++) {
            uint32_t accounts[2] = { sim_user_account(cluster, user),
                                     sim_user_second_account(cluster, user) };

            for (unsigned i = 0; i < 2 && accounts[i] != SIM_NONE; i++) {
                if (pass)
                    tree->users[next[accounts[i]]++] = user;
                else
                    tree->first_user[accounts[i] + 1]++;
            }
        }
        for (uint32_t i = 0; i < cluster->n_accounts && !pass; i++)
            tree->first_user[i + 1] += tree->first_user[i];
        memcpy(next, tree->first_user, (cluster->n_accounts + 1) * sizeof(*next));
    }
    free(next);
}

/* Drawn anew for every day, and passing from one to the next in between. */
static double slowly_varying(uint64_t key, int64_t time)
{
    uint64_t day = (uint64_t)(time / DAY);
    double passed = (double)(time % DAY) / DAY;
    double from = (double)sim_pick(key, day, 1000), to = (double)sim_pick(key, day + 1, 1000);

    return (from * (1 - passed) + to * passed) / 1000;
}

/* CPU seconds, with a half-life of a week: his part of what the cluster does. */
static double usage_of(const struct tree *tree, uint32_t user, uint32_t account)
{
    const struct sim_cluster *cluster = tree->cluster;
    double n = cluster->n_users, cpus = 0;
    double part = sqrt((user + 1) / n) - sqrt(user / n); /* as sim_walk.c draws users */
    uint64_t key = sim_hash(cluster->key ^ SIM_SALT_SHARES, user);

    for (unsigned kind = 0; kind < SIM_KINDS; kind++)
        cpus += (double)cluster->regions[kind].count * sim_kinds[kind].cpus;
    if (sim_user_second_account(cluster, user) != SIM_NONE)
        part *= account == sim_user_account(cluster, user) ? 0.75 : 0.25;
    return floor(cpus * 0.8 * 7 * DAY / 0.693 * part * (0.5 + slowly_varying(key, tree->time)));
}

static struct share *add_row(struct tree *tree, unsigned depth, struct str account,
                             struct str parent, uint64_t raw_shares)
{
    struct share *row = &tree->rows[tree->n];

    tree->depths[tree->n++] = (uint8_t)depth;
    row->account = symbols_put(&tree->section->symbols, account);
    row->parent = symbols_put(&tree->section->symbols, parent);
    row->raw_shares = raw_shares;
    row->factor = row->level = NAN;
    return row;
}

static void add_users(struct tree *tree, uint32_t account, struct share *parent)
{
    const struct sim_cluster *cluster = tree->cluster;
    struct str name = cluster->accounts[account];
    bool is_course = account % SIM_DEPARTMENTS == SIM_DEPARTMENTS - 1;

    for (uint32_t i = tree->first_user[account]; i < tree->first_user[account + 1]; i++) {
        uint32_t user = tree->users[i];
        struct share *row = add_row(tree, 3, name, name, user % 5 ? 1 : 10);

        row->user = symbols_put(&tree->section->symbols, cluster->users[user]);
        row->raw_usage = usage_of(tree, user, account);
        row->is_parent = is_course;
        if (is_course)
            row->raw_shares = MODEL_UNKNOWN_U64;
        parent->raw_usage += row->raw_usage;
        tree->n_users++;
    }
}

static void add_department(struct tree *tree, uint32_t department, struct share *root)
{
    const struct sim_cluster *cluster = tree->cluster;
    struct str name = sim_departments[department];
    struct share *row = add_row(tree, 1, name, STR("root"), 20 + department * 10);

    for (uint32_t account = department; account < cluster->n_accounts; account += SIM_DEPARTMENTS) {
        struct share *child =
            add_row(tree, 2, cluster->accounts[account], name, 10 + account * 7 % 40);

        add_users(tree, account, child);
        row->raw_usage += child->raw_usage;
    }
    root->raw_usage += row->raw_usage;
}

static void add_rows(struct tree *tree)
{
    struct share *root = add_row(tree, 0, STR("root"), STR(""), MODEL_UNKNOWN_U64);
    struct share *admin = add_row(tree, 1, STR("root"), STR("root"), 1);

    admin->user = symbols_put(&tree->section->symbols, STR("root"));
    tree->n_users++;
    for (uint32_t i = 0; i < SIM_DEPARTMENTS; i++)
        add_department(tree, i, root);
}

static size_t after_subtree(const struct tree *tree, size_t row)
{
    size_t i = row + 1;

    while (i < tree->n && tree->depths[i] > tree->depths[row])
        i++;
    return i;
}

/* Shares are a part of the siblings' shares, usage of the parent's usage. */
static void weigh_children(struct tree *tree, size_t parent)
{
    const struct share *above = &tree->rows[parent];
    size_t end = after_subtree(tree, parent);
    double shares = 0;

    for (size_t i = parent + 1; i < end; i = after_subtree(tree, i))
        if (!tree->rows[i].is_parent)
            shares += (double)tree->rows[i].raw_shares;
    for (size_t i = parent + 1; i < end; i = after_subtree(tree, i)) {
        struct share *row = &tree->rows[i];

        row->normalised_usage =
            tree->rows[0].raw_usage > 0 ? row->raw_usage / tree->rows[0].raw_usage : 0;
        if (row->is_parent) {
            row->normalised_shares = above->normalised_shares;
            row->effective_usage = above->effective_usage;
            row->level = above->level;
        } else {
            row->normalised_shares = (double)row->raw_shares / shares;
            row->effective_usage = above->raw_usage > 0 ? row->raw_usage / above->raw_usage : 0;
            row->level = row->normalised_shares / row->effective_usage;
        }
        if (!row->user)
            weigh_children(tree, i);
    }
}

static int by_falling_level(const void *a, const void *b)
{
    double left = (*(const struct share *const *)a)->level;
    double right = (*(const struct share *const *)b)->level;

    return (left < right) - (left > right);
}

/* Fair Tree: the better of two siblings ranks before the other, with everything below it. */
static void rank_children(struct tree *tree, size_t parent, size_t *rank)
{
    size_t end = after_subtree(tree, parent), n = 0;
    struct share **children = heap_array(end - parent, sizeof(*children));

    for (size_t i = parent + 1; i < end; i = after_subtree(tree, i))
        children[n++] = &tree->rows[i];
    qsort(children, n, sizeof(*children), by_falling_level);
    for (size_t i = 0; i < n; i++) {
        if (children[i]->user)
            children[i]->factor = (double)(*rank)-- / (double)tree->n_users;
        else
            rank_children(tree, (size_t)(children[i] - tree->rows), rank);
    }
    free(children);
}

void sim_fill_shares(const struct sim_cluster *cluster, int64_t time, struct section *section)
{
    size_t most = 2 + SIM_DEPARTMENTS + cluster->n_accounts + 2 * (size_t)cluster->n_users;
    struct tree tree = {
        .cluster = cluster,
        .section = section,
        .time = time,
        .rows = ARENA_ARRAY(&section->arena, struct share, most),
        .depths = heap_alloc(most),
        .first_user = heap_alloc((cluster->n_accounts + 1) * sizeof(uint32_t)),
        .users = heap_alloc(2 * (size_t)cluster->n_users * sizeof(uint32_t)),
    };
    size_t rank;

    list_users(&tree);
    add_rows(&tree);
    tree.rows[0].effective_usage = 1;
    tree.rows[0].normalised_usage = NAN;
    weigh_children(&tree, 0);
    rank = tree.n_users;
    rank_children(&tree, 0, &rank);
    section->shares.share = tree.rows;
    section->shares.n = tree.n;
    free(tree.depths);
    free(tree.first_user);
    free(tree.users);
}
