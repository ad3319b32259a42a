/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler's thread: it sleeps until a tick, or until the kernel tells of something. */
#include "agent/agent.h"
#include "agent/telling.h"

#include "base/arena.h"
#include "base/privileges.h"
#include "base/thread.h"
#include "base/watchdog.h"

#include <linux/magic.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/vfs.h>

enum {
    WALK_EVERY = 20,  /* ticks: for directories that inotify has not told of */
    SEARCH_EVERY = 4, /* ticks without a job: for jobs that have no directory */
    ENDS_A_TICK = 4,  /* each takes some 20 ms */
    EVENTS = 64,
};

static const int64_t drain_pause_ns = 20 * NS_PER_MS;
static const int64_t young_drain_pause_ns = NS_PER_MS;
static const int64_t publish_pause_ns = NS_PER_SEC;

struct sampler {
    struct agent agent;
    pthread_t thread;
    int wake; /* eventfd: stop, or tune */
    pthread_mutex_t lock;
    bool is_stopping;
    struct sampler_tuning *tuning; /* another to take; NULL: none */
    uint32_t *tuning_skipped;

    /* the thread's own; monotonic times */
    int64_t tick_at, drain_at, publish_at; /* INT64_MAX: not wanted */
    int64_t drained_at;
    struct watchdog watchdog;
    struct telling telling;
};

static int64_t now(const struct sampler *sampler)
{
    return clock_mono(sampler->agent.config.clock);
}

/* All nodes tick together, at whole multiples of the interval by the wall clock: what disturbs an
 * MPI job then disturbs all its ranks at once. */
static int64_t next_tick(const struct sampler *sampler)
{
    int64_t tick = sampler->agent.tuning.tick_ns;
    int64_t wall = clock_wall(sampler->agent.config.clock);

    return now(sampler) + tick - wall % tick;
}

static void take_tuning(struct agent *agent, const struct sampler_tuning *tuning, uint32_t *skipped)
{
    unsigned needs = usage_collectors_need(tuning->publish.collectors);

    if (agent->config.spool)
        needs |= USAGE_CGROUP | USAGE_IO | USAGE_STEPS | USAGE_OWNER;

    free(agent->skipped);
    agent->skipped = skipped;
    agent->tuning = *tuning;
    agent->tuning.skipped = skipped;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        agent_skip_users(agent, PART_OF(link, struct agent_job, link));
        if (needs != agent->needs)
            agent_close_files(PART_OF(link, struct agent_job, link));
    }
    agent->needs = needs;
}

static uint32_t *copy_skipped(const struct sampler_tuning *tuning)
{
    uint32_t *copy = NULL;

    if (tuning->n_skipped) {
        copy = heap_array(tuning->n_skipped, sizeof(*copy));
        memcpy(copy, tuning->skipped, tuning->n_skipped * sizeof(*copy));
    }
    return copy;
}

/* --- the directories --- */

/* v1: which hierarchy has the jobs depends on Slurm's plugins: jobacct_gather/cgroup and
 * task/cgroup use memory, which counts OOM kills by task, so that it comes first. */
static const enum cgroup_controller preferred[] = { CGROUP_MEMORY, CGROUP_CPUACCT, CGROUP_FREEZER,
                                                    CGROUP_CPUSET, CGROUP_DEVICES };

static int open_tree(struct agent *agent, const char *mount, struct err *err)
{
    struct cgroup_tree_events events = agent_tree_events;
    struct epoll_event wish = { .events = EPOLLIN, .data.u64 = (uint64_t)EVENT_TREE << 32 };
    int code;

    events.ctx = agent;
    code =
        cgroup_tree_new(mount, agent->mounts.is_v2, agent->config.rows, &events, &agent->tree, err);
    if (code == 0 && cgroup_tree_fd(agent->tree) >= 0)
        epoll_ctl(agent->epoll, EPOLL_CTL_ADD, cgroup_tree_fd(agent->tree), &wish);
    return code;
}

static void free_jobs(struct agent *agent)
{
    struct link *link;

    while ((link = list_first(&agent->jobs)))
        agent_job_free(agent, PART_OF(link, struct agent_job, link));
}

static bool is_any(struct agent *agent, const char *mount)
{
    (void)agent;
    return mount[0] != '\0';
}

static const char *first_mount(struct agent *agent, enum cgroup_controller *ret,
                               bool (*is_right)(struct agent *agent, const char *mount))
{
    for (size_t i = 0; i < COUNT(preferred); i++) {
        const char *mount = agent->mounts.controller[preferred[i]];

        *ret = preferred[i];
        if (mount[0] && is_right(agent, mount))
            return mount;
    }
    return NULL;
}

/* v1: the first that Slurm has made a directory in, leftovers or none; but where a job lives
 * without one in there, the first that has its. */
static void choose_tree(struct agent *agent)
{
    const char *mount = agent->mounts.is_v2 ? agent->mounts.unified : NULL;
    enum cgroup_controller hierarchy = agent->hierarchy;
    struct err err;

    if (!mount && agent->is_by_stepd)
        mount = first_mount(agent, &hierarchy, agent_has_missed);
    if (!mount)
        mount = first_mount(agent, &hierarchy, agent_has_scope);
    if (!mount)
        mount = first_mount(agent, &hierarchy, is_any);
    if (!mount || !mount[0] || (agent->tree && hierarchy == agent->hierarchy))
        return;
    if (agent->tree) {
        free_jobs(agent);
        agent->tree = cgroup_tree_free(agent->tree);
    }
    agent->hierarchy = hierarchy;
    if (open_tree(agent, mount, &err) < 0)
        LOG(agent->config.log, LOG_WARN, "cgroups cannot be watched", LOG_STR("error", err.text));
}

static bool has_job_in_tree(const struct agent *agent)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->dir && agent_job_is_live(job))
            return true;
    }
    return false;
}

static void publish(struct sampler *sampler)
{
    telling_publish(&sampler->telling, &sampler->agent);
    sampler->publish_at = INT64_MAX;
}

/* --- a tick: nobody waits for it, unlike for what a job's directory says in its last milliseconds
 * --- */

static double thread_cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static bool has_unproven(const struct agent *agent)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->has_supervisor && !job->is_proven && !job->is_skipped)
            return true;
    }
    return false;
}

/* What inotify has told, and now and then, or where it cannot, everything. */
static void look_at_tree(struct agent *agent)
{
    struct cgroup_tree_stats stats;

    cgroup_tree_read(agent->tree);
    cgroup_tree_stats(agent->tree, &stats);
    if (agent->use.ticks % WALK_EVERY == 0 || stats.unwatched || cgroup_tree_fd(agent->tree) < 0)
        cgroup_tree_walk(agent->tree);
}

static void find_jobs(struct agent *agent)
{
    bool is_empty = agent->n_jobs == agent->n_ended;
    bool is_turn = agent->use.ticks % SEARCH_EVERY == 0;

    if (is_turn && !has_job_in_tree(agent))
        choose_tree(agent);
    if (agent->tree)
        look_at_tree(agent);
    if (agent->is_by_stepd || ((is_empty || has_unproven(agent)) && is_turn))
        agent_find_by_stepd(agent);
    if (is_turn)
        agent_count_leftovers(agent);
}

static void forget_old_jobs(struct agent *agent)
{
    for (struct link *link = list_first(&agent->jobs), *next; link; link = next) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        next = list_next(&agent->jobs, link);
        if (!job->use.has_ended || agent->now - job->ended_ns < agent->tuning.linger_ns)
            continue;
        job->is_over = true;
        if (!job->dir)
            agent_job_free(agent, job);
    }
}

static void look_at_gpus(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;
    struct gpu_look *look = gpus_latest(agent->config.gpus, telling_stale_ns(agent));

    telling_take_gpus(&sampler->telling, agent, look);
    agent_use_gpus(agent, look);
    gpus_ask(agent->config.gpus);
}

static void look_at_lustre(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;

    telling_take_lustre(&sampler->telling, agent);
    if (agent->needs & USAGE_LUSTRE)
        lustre_targets_ask(agent->config.lustre);
}

static void tick(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;
    double cpu_seconds = thread_cpu_seconds();
    int64_t began = agent->now;

    privileges_hurry(false);
    agent_check_stepds(agent);
    find_jobs(agent);
    if (agent->exits)
        exits_drain(agent->exits);
    agent->round++;
    agent->ends_to_watch = ENDS_A_TICK;
    agent->use.processes_refused = 0;
    /* A look may free other jobs, but never its own. */
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link))
        agent_look_at_job(agent, PART_OF(link, struct agent_job, link), true);
    agent_forget_unseen(agent);
    if (agent->exits)
        exits_settle(agent->exits);
    look_at_gpus(sampler);
    look_at_lustre(sampler);
    forget_old_jobs(agent);
    processes_trim(agent->processes);
    agent->use.ticks++;
    agent->use.sampled_mono_ns = began;
    agent->use.sampled_wall_ns = clock_wall(agent->config.clock);
    agent->use.tick_seconds = (double)(now(sampler) - began) / NS_PER_SEC;
    publish(sampler);
    if (agent->config.pusher)
        telling_push(&sampler->telling, agent);
    telling_complain(&sampler->telling, agent);
    /* What a tick builds and frees leaves holes below what stays: a tenth of the memory. */
    malloc_trim(0);
    privileges_hurry(true);
    agent->use.tick_cpu_seconds = thread_cpu_seconds() - cpu_seconds;
}

/* --- between ticks --- */

static void want_publish(struct sampler *sampler)
{
    if (sampler->publish_at == INT64_MAX)
        sampler->publish_at = sampler->agent.now + publish_pause_ns;
}

static void look_between(struct sampler *sampler, struct agent_job *job)
{
    struct agent *agent = &sampler->agent;

    if (agent->exits)
        exits_drain(agent->exits);
    agent->round++;
    agent->use.events++;
    agent_look_at_job(agent, job, false);
    agent_forget_unseen(agent);
}

/* The looks at a young job, at growing distances until the ticks are often enough. */
static void look_at_young_jobs(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;

    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->look_ns > agent->now)
            continue;
        look_between(sampler, job);
        if (agent_job_is_young(agent, job))
            job->look_pause_ns *= 2;
        job->look_ns = agent_job_is_young(agent, job) ? agent->now + job->look_pause_ns : INT64_MAX;
        want_publish(sampler);
    }
}

/* A task has ended: what its job's directory says now is nearly its last word, or else what it
 * leaves to its slurmstepd. */
static void leader_ended(struct sampler *sampler, pid_t pid)
{
    struct agent *agent = &sampler->agent;
    struct process *process = processes_find(agent->processes, pid);
    struct agent_job *job;

    if (!process || process->pidfd < 0)
        return;
    job = process->step->job;
    agent_unwatch_end(agent, process);
    if (agent->exits && job->has_cgroup_cpu)
        agent_look_at_cgroup(agent, job);
    else
        look_between(sampler, job);
    want_publish(sampler);
}

/* Soon while a job is young: its first process may be its last, and nobody waits for that one yet.
 */
static int64_t next_drain(const struct sampler *sampler)
{
    const struct agent *agent = &sampler->agent;

    if (agent->n_jobs == agent->n_ended)
        return sampler->tick_at;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link))
        if (PART_OF(link, struct agent_job, link)->look_ns != INT64_MAX)
            return sampler->drained_at + young_drain_pause_ns;
    return sampler->drained_at + drain_pause_ns;
}

static void handle(struct sampler *sampler, uint64_t what)
{
    struct agent *agent = &sampler->agent;
    pid_t pid = (pid_t)(uint32_t)what;

    switch ((enum agent_event)(what >> 32)) {
    case EVENT_TREE:
        cgroup_tree_read(agent->tree);
        want_publish(sampler);
        break;
    case EVENT_EXITS:
        sampler->drain_at = next_drain(sampler);
        break;
    case EVENT_STEPD:
        agent_stepd_ended(agent, pid);
        want_publish(sampler);
        break;
    case EVENT_LEADER:
        leader_ended(sampler, pid);
        break;
    case EVENT_PROFILE:
        if (profiles_hear(agent->profiles, agent->now))
            want_publish(sampler);
        break;
    case EVENT_STOP:
        break;
    }
}

static void do_what_is_due(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;

    if (agent->now >= sampler->drain_at) {
        exits_drain(agent->exits);
        exits_arm(agent->exits);
        sampler->drain_at = INT64_MAX;
        sampler->drained_at = agent->now;
    }
    look_at_young_jobs(sampler);
    if (agent->profiles && agent->now >= profiles_due(agent->profiles) &&
        profiles_expire(agent->profiles, agent->now, agent->tuning.linger_ns))
        want_publish(sampler);
    if (agent->now >= sampler->tick_at) {
        tick(sampler);
        sampler->tick_at = next_tick(sampler);
    } else if (agent->now >= sampler->publish_at) {
        publish(sampler);
    }
}

static int64_t next_due(struct sampler *sampler)
{
    int64_t due = sampler->tick_at;

    due = sampler->drain_at < due ? sampler->drain_at : due;
    due = sampler->publish_at < due ? sampler->publish_at : due;
    due = sampler->watchdog.due_ns < due ? sampler->watchdog.due_ns : due;
    if (sampler->agent.profiles && profiles_due(sampler->agent.profiles) < due)
        due = profiles_due(sampler->agent.profiles);
    for (struct link *link = list_first(&sampler->agent.jobs); link;
         link = list_next(&sampler->agent.jobs, link)) {
        int64_t look = PART_OF(link, struct agent_job, link)->look_ns;

        due = look < due ? look : due;
    }
    return due;
}

/* False: it is over. */
static bool take_orders(struct sampler *sampler)
{
    struct sampler_tuning *tuning;
    uint32_t *skipped;
    uint64_t times;
    bool is_stopping;

    if (read(sampler->wake, &times, sizeof(times)) < 0)
        return true;
    pthread_mutex_lock(&sampler->lock);
    tuning = sampler->tuning;
    skipped = sampler->tuning_skipped;
    sampler->tuning = NULL;
    is_stopping = sampler->is_stopping;
    pthread_mutex_unlock(&sampler->lock);
    if (tuning) {
        take_tuning(&sampler->agent, tuning, skipped);
        sampler->tick_at = next_tick(sampler);
        sampler->publish_at = 0; /* what must not be told any longer goes at once */
    }
    free(tuning);
    return !is_stopping;
}

static void *run(void *arg)
{
    struct sampler *sampler = arg;
    struct epoll_event events[EVENTS];
    struct agent *agent = &sampler->agent;

    agent->now = now(sampler);
    choose_tree(agent);
    tick(sampler);
    sampler->tick_at = next_tick(sampler);
    while (take_orders(sampler)) {
        int64_t pause = clock_nap(agent->config.clock, next_due(sampler) - now(sampler));
        int n = epoll_wait(agent->epoll, events, EVENTS,
                           pause > 0 ? (int)((pause + NS_PER_MS - 1) / NS_PER_MS) : 0);

        agent->now = now(sampler);
        for (int i = 0; i < n; i++)
            handle(sampler, events[i].data.u64);
        do_what_is_due(sampler);
        watchdog_feed(&sampler->watchdog, agent->now);
    }
    return NULL;
}

static void free_sampler(struct sampler *sampler)
{
    struct agent *agent = &sampler->agent;

    free_jobs(agent);
    cgroup_tree_free(agent->tree);
    exits_free(agent->exits);
    profiles_free(agent->profiles);
    processes_free(agent->processes);
    proc_files_free(agent->files);
    proc_close(agent->proc);
    telling_free(&sampler->telling);
    watchdog_close(&sampler->watchdog);
    free(agent->pids.pid);
    free(agent->skipped);
    if (agent->epoll >= 0)
        close(agent->epoll);
    if (sampler->wake >= 0)
        close(sampler->wake);
    if (sampler->tuning) {
        free(sampler->tuning_skipped);
        free(sampler->tuning);
    }
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}

/* Nothing else depends on it: without one the agent does all the rest. */
static void open_profiles(struct agent *agent)
{
    struct epoll_event wish = { .events = EPOLLIN, .data.u64 = (uint64_t)EVENT_PROFILE << 32 };
    const char *path = agent->config.profile_socket;
    struct profile_socket *socket;
    struct err err;
    int code;

    if (!path)
        return;
    code = profile_socket_open(path, agent->config.slurmd_uid, &socket, &err);
    if (code == -ENOENT)
        LOG(agent->config.log, LOG_INFO, "the profile plugin is not heard",
            LOG_STR("error", err.text),
            LOG_STR("hint", "the directory is missing: sonde-agent.service makes it, or mkdir; "
                            "--profile.socket= (empty) does without"));
    else if (code < 0)
        LOG(agent->config.log, LOG_WARN, "the profile plugin is not heard",
            LOG_STR("error", err.text));
    if (code < 0)
        return;
    agent->profiles = profiles_new(socket);
    epoll_ctl(agent->epoll, EPOLL_CTL_ADD, profile_socket_fd(socket), &wish);
}

static int open_all(struct sampler *sampler, struct err *err)
{
    struct agent *agent = &sampler->agent;
    struct epoll_event wish = { .events = EPOLLIN, .data.u64 = (uint64_t)EVENT_STOP << 32 };
    struct statfs proc;
    struct err why;
    int code;

    agent->epoll = epoll_create1(EPOLL_CLOEXEC);
    sampler->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (agent->epoll < 0 || sampler->wake < 0 ||
        epoll_ctl(agent->epoll, EPOLL_CTL_ADD, sampler->wake, &wish) < 0)
        return err_set(err, errno, "cannot wait for events: %s", err_words(errno));
    code = proc_open(agent->config.proc, &agent->proc, err);
    if (code < 0)
        return code;
    if (cgroup_mounts_read(agent->config.proc, agent->config.sys, &agent->mounts, &why) < 0)
        LOG(agent->config.log, LOG_WARN, "cgroups cannot be found", LOG_STR("error", why.text));
    agent->is_blind = proc_sight(agent->proc) == PROC_SEES_OWN;
    agent->may_read = proc_sight(agent->proc) == PROC_READS_ALL;
    agent->files = proc_files_new(agent->config.scratch);
    agent->processes = processes_new(agent->config.max_processes);
    open_profiles(agent);
    agent->is_recorded = statfs(agent->config.proc, &proc) == 0 && proc.f_type != PROC_SUPER_MAGIC;
    if (agent->is_recorded)
        return 0;
    agent->exits = exits_new(agent, &why);
    if (!agent->exits)
        LOG(agent->config.log, LOG_WARN, "the kernel does not tell of processes that end",
            LOG_STR("lost", "what they read and wrote after the last sample, in part"),
            LOG_STR("error", why.text));
    return 0;
}

int sampler_start(const struct sampler_config *config, struct sampler **ret, struct err *err)
{
    struct sampler *sampler = heap_alloc(sizeof(*sampler));
    struct agent *agent = &sampler->agent;
    int code;

    agent->config = *config;
    agent->epoll = sampler->wake = -1;
    agent_limit_files(agent);
    list_init(&agent->jobs);
    telling_init(&sampler->telling);
    watchdog_open(&sampler->watchdog);
    pthread_mutex_init(&sampler->lock, NULL);
    sampler->drain_at = sampler->publish_at = INT64_MAX;
    take_tuning(agent, &config->tuning, copy_skipped(&config->tuning));
    code = open_all(sampler, err);
    if (code == 0)
        code = thread_start(&sampler->thread, "sampler", run, sampler, err);
    if (code < 0)
        free_sampler(sampler);
    else
        *ret = sampler;
    return code;
}

static void wake(struct sampler *sampler)
{
    const uint64_t once = 1;

    if (write(sampler->wake, &once, sizeof(once)) < 0)
        return; /* it is full: awake already */
}

struct sampler *sampler_stop(struct sampler *sampler)
{
    if (sampler) {
        pthread_mutex_lock(&sampler->lock);
        sampler->is_stopping = true;
        pthread_mutex_unlock(&sampler->lock);
        wake(sampler);
        pthread_join(sampler->thread, NULL);
        free_sampler(sampler);
    }
    return NULL;
}

void sampler_tune(struct sampler *sampler, const struct sampler_tuning *tuning)
{
    struct sampler_tuning *copy = heap_alloc(sizeof(*copy));

    *copy = *tuning;
    pthread_mutex_lock(&sampler->lock);
    if (sampler->tuning) {
        free(sampler->tuning_skipped);
        free(sampler->tuning);
    }
    sampler->tuning = copy;
    sampler->tuning_skipped = copy_skipped(tuning);
    pthread_mutex_unlock(&sampler->lock);
    wake(sampler);
}
