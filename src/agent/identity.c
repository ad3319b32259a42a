/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose job it is: the directory says, and the slurmstepd, which runs as root. What a job can
 * write, its environment, only ever adds what is marked as its own claim: account, GPUs, cores. */
#include "agent/agent.h"
#include "agent/sweeper.h"

#include "base/arena.h"
#include "base/num.h"

enum {
    MOST_ANCESTORS = 64,
    YOUNG_SECONDS = 2, /* a step that began before the agent, but not long */
    MOST_SILENT_PROCESSES = 8,
};

/* Its past: what tasks that it has waited for had done before anybody listened. */
static void add_past(struct agent *agent, struct agent_step *step, pid_t stepd,
                     uint64_t start_ticks)
{
    struct io_use all, own;

    if (!agent->exits || start_ticks >= step->heard_ticks ||
        proc_io(agent->proc, stepd, &all) < 0 ||
        proc_io_of_threads(agent->proc, stepd, &own, NULL) < 0)
        return;
    io_subtract(&all, &own);
    io_add(&step->ended, &all);
}

/* False if it is not to be had: a job's own process, whatever it calls itself, or another step's.
 * A job that was found without its directory makes room for the one that has it. */
static bool give_up(struct agent *agent, const struct process *process)
{
    struct agent_job *job = process->step->job;

    if (!process->is_stepd || job->dir)
        return false;
    agent_job_free(agent, job);
    return true;
}

/* The name of a v1 hierarchy in /proc/PID/cgroup; v2 has none. */
static const char *const controller_names[CGROUP_CONTROLLERS] = {
    [CGROUP_CPUACCT] = "cpuacct", [CGROUP_MEMORY] = "memory",   [CGROUP_CPUSET] = "cpuset",
    [CGROUP_CPU] = "cpu",         [CGROUP_BLKIO] = "blkio",     [CGROUP_PIDS] = "pids",
    [CGROUP_DEVICES] = "devices", [CGROUP_FREEZER] = "freezer",
};

bool agent_is_called(const struct agent *agent, const struct agent_job *job,
                     const struct cgroup_match *match)
{
    const char *node = match->node[0] ? match->node : agent->config.host;

    /* Ids are used again, and what Slurm has left of an older job may be there still. */
    if (job->dir && job->dir->uid != match->uid)
        return false;
    return strcmp(job->use.node, node) == 0 &&
           (match->sluid[0] ? strcmp(job->sluid, match->sluid) == 0
                            : strcmp(job->use.id, match->job) == 0);
}

/* The directory that a process is in; CGROUP_ABOVE: that of no job. False: it has gone. */
static bool match_process(struct agent *agent, pid_t pid, struct cgroup_match *ret)
{
    struct buf path;
    bool is_known;

    buf_init(&path, 4096);
    is_known = proc_cgroup(agent->proc, pid,
                           agent->mounts.is_v2 ? "" : controller_names[agent->hierarchy], &path);
    if (is_known &&
        !cgroup_rows_match(agent->config.rows, agent->mounts.is_v2, buf_str(&path), ret))
        ret->level = CGROUP_ABOVE;
    buf_free(&path);
    return is_known;
}

static bool differs(const char *a, const char *b)
{
    return a[0] && b[0] && strcmp(a, b) != 0;
}

/* A process of another job's, known already or not: one of slurmd's own user may call itself what
 * it likes. */
static bool is_of_other(struct agent *agent, const struct agent_job *job, pid_t pid)
{
    struct cgroup_match match;

    if (!agent->tree || !match_process(agent, pid, &match) || match.level < CGROUP_JOB)
        return false;
    return differs(match.job, job->use.id) || differs(match.sluid, job->sluid) ||
           (job->dir && job->dir->uid != match.uid);
}

static bool attach(struct agent *agent, struct agent_step *step, const struct stepd *stepd)
{
    struct agent_job *job = step->job;
    struct process *process = processes_find(agent->processes, stepd->pid);

    if ((job->use.id[0] && strcmp(job->use.id, stepd->job) != 0) ||
        is_of_other(agent, job, stepd->pid))
        return false;
    if (process && process->start_ticks == stepd->start_ticks && !give_up(agent, process))
        return false;
    process = processes_find(agent->processes, stepd->pid);
    if (process) /* another, that had its number */
        agent_forget_process(agent, process);
    process = processes_add(agent->processes, stepd->pid);
    if (!process)
        return false;
    process->start_ticks = stepd->start_ticks;
    process->step = step;
    process->is_stepd = true;
    process->pidfd = agent_watch_end(agent, stepd->pid, EVENT_STEPD, &agent->kept_files);
    step->stepd = stepd->pid;
    if (!job->use.id[0])
        snprintf(job->use.id, sizeof(job->use.id), "%s", stepd->job);
    if (!job->is_proven)
        agent_drop_namesake(agent, job);
    job->is_proven = true;
    if (job->dir)
        agent->is_by_stepd = false;
    if (agent->config.sweeper)
        sweeper_watch(agent->config.sweeper, stepd);
    add_past(agent, step, stepd->pid, stepd->start_ticks);
    if (stepd->start_ticks + YOUNG_SECONDS * (uint64_t)sysconf(_SC_CLK_TCK) > exits_now_ticks())
        agent_look_soon(agent, job);
    return true;
}

/* v2: it has a directory of its own beside the tasks'. */
static bool prove_by_directory(struct agent *agent, struct agent_step *step)
{
    struct stepd stepd;

    for (struct cgroup_dir *dir = step->dir->first_child; dir; dir = dir->next_sibling) {
        if (dir->level != CGROUP_STEPD)
            continue;
        agent->pids.n = 0;
        cgroup_dir_pids(dir, &agent->pids);
        for (size_t i = 0; i < agent->pids.n; i++)
            if (stepd_read(agent->proc, agent->pids.pid[i], agent->config.slurmd_uid, &stepd) &&
                attach(agent, step, &stepd))
                return true;
    }
    return false;
}

/* v1: it has started the step's first process, and may be in the step's directory itself. */
static bool prove_by_process(struct agent *agent, struct agent_step *step)
{
    uint32_t uid = agent->config.slurmd_uid;
    struct stepd stepd;

    agent->pids.n = 0;
    agent_step_pids(agent, step);
    for (size_t i = 0; i < agent->pids.n && i < 4; i++)
        if ((stepd_read(agent->proc, agent->pids.pid[i], uid, &stepd) ||
             stepd_above(agent->proc, agent->pids.pid[i], uid, &stepd)) &&
            strcmp(stepd.step, step->use.id) == 0 && attach(agent, step, &stepd))
            return true;
    return false;
}

/* Where processes are hidden: a directory with any is of a job until it goes. */
static void take_for_proven(struct agent *agent, struct agent_job *job)
{
    if (job->is_proven || !job->use.id[0])
        return;
    agent->pids.n = 0;
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link))
        agent_step_pids(agent, PART_OF(link, struct agent_step, link));
    if (!agent->pids.n)
        return;
    agent_drop_namesake(agent, job);
    job->is_proven = true;
}

void agent_prove(struct agent *agent, struct agent_job *job)
{
    if (agent->is_blind)
        take_for_proven(agent, job);
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        if (!step->stepd && step->dir && !prove_by_directory(agent, step))
            prove_by_process(agent, step);
    }
}

static struct agent_job *job_of(struct agent *agent, const struct stepd *stepd)
{
    struct agent_job *job = NULL;

    if (stepd->node[0])
        job = agent_job_find(agent, stepd->job, stepd->node);
    if (!job)
        job = agent_job_find(agent, stepd->job, agent->config.host);
    if (stepd->node[0])
        return job;
    for (struct link *link = list_first(&agent->jobs); link && !job;
         link = list_next(&agent->jobs, link)) {
        struct agent_job *any = PART_OF(link, struct agent_job, link);

        if (strcmp(any->use.id, stepd->job) == 0)
            job = any;
    }
    return job;
}

/* Another directory of the same id: which it is of, only its processes can tell. */
static bool has_namesake(struct agent *agent, const struct agent_job *of)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job != of && job->dir && strcmp(job->use.id, of->use.id) == 0 &&
            strcmp(job->use.node, of->use.node) == 0)
            return true;
    }
    return false;
}

/* A site without cgroups: the slurmstepd is all there is. A job that had none for a while between
 * two of its steps goes on. */
static void begin_by_stepd(struct agent *agent, const struct stepd *stepd, struct agent_job *job)
{
    struct cgroup_match match = { .uid = MODEL_UNKNOWN_U32 };
    struct agent_step *step;

    if (!job || job->use.has_ended) {
        struct agent_job *old = job;

        snprintf(match.job, sizeof(match.job), "%s", stepd->job);
        snprintf(match.node, sizeof(match.node), "%s", stepd->node);
        job = agent_job_begin(agent, &match, NULL);
        if (job && old)
            agent_job_go_on(job, old);
        agent->is_by_stepd = true;
    }
    if (!job)
        return;
    step = agent_step_begin(agent, job, stepd->step, NULL);
    if (!attach(agent, step, stepd))
        agent_step_end(agent, step);
}

static void place(struct agent *agent, const struct stepd *stepd)
{
    struct process *known = processes_find(agent->processes, stepd->pid);
    struct agent_job *job;
    struct agent_step *step;

    if (known && known->start_ticks == stepd->start_ticks)
        return;
    job = job_of(agent, stepd);
    step = job && !job->use.has_ended ? agent_step_find(job, stepd->step) : NULL;
    if (job && job->dir && has_namesake(agent, job))
        return;
    if (step && !step->stepd)
        attach(agent, step, stepd);
    else if (!step && (!job || !job->dir))
        begin_by_stepd(agent, stepd, job);
}

static struct agent_step *step_of_match(struct agent *agent, const struct cgroup_match *match)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (!job->use.has_ended && !job->is_skipped && agent_is_called(agent, job, match))
            return agent_step_find(job, match->step);
    }
    return NULL;
}

/* The step of its nearest ancestor that is known. */
static bool find_by_ancestor(struct agent *agent, pid_t pid, struct agent_step **ret)
{
    struct proc_stat stat;

    for (int i = 0; i < MOST_ANCESTORS && pid > 1; i++) {
        const struct process *process = processes_find(agent->processes, pid);

        if (!proc_stat(agent->proc, pid, &stat))
            return false;
        if (process && process->start_ticks == stat.start_ticks) {
            *ret = process->step;
            return true;
        }
        pid = stat.parent;
    }
    return true;
}

static bool find_by_cgroup(struct agent *agent, pid_t pid, struct agent_step **ret)
{
    struct cgroup_match match;
    bool is_known = match_process(agent, pid, &match);

    if (is_known && match.level >= CGROUP_JOB)
        *ret = step_of_match(agent, &match);
    return is_known;
}

bool agent_find_step(struct agent *agent, pid_t pid, struct agent_step **ret)
{
    *ret = NULL;
    if (agent->tree && (!find_by_cgroup(agent, pid, ret) || *ret))
        return *ret != NULL;
    return agent->is_by_stepd ? find_by_ancestor(agent, pid, ret) : true;
}

/* Those whose directories are called by something else do not have an id before. */
static void prove_all(struct agent *agent)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->dir && !job->is_proven)
            agent_prove(agent, job);
    }
}

void agent_find_by_stepd(struct agent *agent)
{
    struct stepds stepds = { 0 };
    struct err err;

    /* What has ended before a job is found is part of what its parents tell. */
    if (agent->exits)
        exits_drain(agent->exits);
    prove_all(agent);
    if (stepds_find(agent->proc, agent->config.slurmd_uid, &stepds, &err) == 0)
        for (size_t i = 0; i < stepds.n; i++)
            place(agent, &stepds.item[i]);
    free(stepds.item);
}

static bool has_stepd(const struct agent_job *job)
{
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link))
        if (PART_OF(link, struct agent_step, link)->stepd)
            return true;
    return false;
}

static bool has_step_beside(const struct agent_job *job, const struct agent_step *step)
{
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link))
        if (PART_OF(link, struct agent_step, link) != step)
            return true;
    return false;
}

/* Its last words may still wait to be heard. */
static void end_profile(struct agent *agent, const struct agent_step *step)
{
    const struct job_use *job = &step->job->use;

    if (!agent->profiles)
        return;
    profiles_hear(agent->profiles, agent->now);
    profiles_stepd_ended(agent->profiles, job->id, step->use.id, job->node,
                         strcmp(job->node, agent->config.host) == 0);
}

void agent_stepd_ended(struct agent *agent, pid_t pid)
{
    struct process *process = processes_find(agent->processes, pid);
    struct agent_step *step;
    struct agent_job *job;

    if (!process || !process->is_stepd)
        return;
    step = process->step;
    job = step->job;
    end_profile(agent, step);
    agent_forget_process(agent, process);
    if (!step->dir) {
        agent_sum_up(agent, job);
        agent_step_end(agent, step);
        step = NULL;
    }
    /* Another step may have begun whose slurmstepd has not been seen yet. */
    if (!has_stepd(job))
        agent_prove(agent, job);
    if (!has_stepd(job) && has_step_beside(job, step))
        agent_find_by_stepd(agent);
    if (has_stepd(job))
        return;
    agent_look_at_cgroup(agent, job);
    agent_job_end(agent, job);
}

struct search {
    struct agent *agent;
    pid_t ended; /* 0: none */
};

static void find_ended_stepd(void *ctx, struct process *process)
{
    struct search *search = ctx;
    struct proc_stat stat;

    if (search->ended || !process->is_stepd || process->pidfd >= 0)
        return;
    if (!proc_stat(search->agent->proc, process->pid, &stat) || !stat.threads ||
        stat.start_ticks != process->start_ticks)
        search->ended = process->pid;
}

void agent_check_stepds(struct agent *agent)
{
    struct search search = { .agent = agent };

    do {
        search.ended = 0;
        processes_each(agent->processes, find_ended_stepd, &search);
        if (search.ended)
            agent_stepd_ended(agent, search.ended);
    } while (search.ended);
}

void agent_skip_users(struct agent *agent, struct agent_job *job)
{
    job->is_skipped = false;
    for (size_t i = 0; i < agent->tuning.n_skipped; i++)
        job->is_skipped |= agent->skipped[i] == job->use.uid;
}

/* Two steps that say different things: one of them lies, and nobody knows which. */
static void take_account(struct agent_job *job, const char *account)
{
    if (!account[0] || job->has_false_account)
        return;
    if (!job->use.account[0])
        snprintf(job->use.account, sizeof(job->use.account), "%s", account);
    job->has_false_account = strcmp(job->use.account, account) != 0;
    if (job->has_false_account)
        job->use.account[0] = '\0';
}

/* Whether there was anything to read, whatever it said. */
static bool read_claims(struct agent *agent, struct agent_job *job, pid_t pid)
{
    char account[64], job_gpus[512], step_gpus[512], cpus[16];
    struct proc_variable variables[] = {
        { "SLURM_JOB_ACCOUNT", account, sizeof(account) },
        { "SLURM_JOB_GPUS", job_gpus, sizeof(job_gpus) },
        { "SLURM_STEP_GPUS", step_gpus, sizeof(step_gpus) },
        { "SLURM_CPUS_ON_NODE", cpus, sizeof(cpus) },
    };
    uint64_t n;
    int code = proc_environ(agent->proc, pid, variables, COUNT(variables));

    if (code == -EACCES)
        agent->may_read = false;
    if (code == -EAGAIN || code == -ESRCH)
        return false;
    if (code < 0 && code != -ENOENT)
        return true;
    take_account(job, account);
    agent_claim_gpus(job, job_gpus[0] ? job_gpus : step_gpus);
    if (job->claimed_cpus == MODEL_UNKNOWN_U64 && num_get_u64(str_of(cpus), &n) && n)
        job->claimed_cpus = n;
    return true;
}

/* slurmstepd's child before it has become the user's program. */
static bool is_unborn(const struct proc_stat *stat)
{
    return strcmp(stat->comm, "slurmstepd") == 0;
}

/* So does the process run by which Slurm holds the step of what is outside all steps open. */
static bool runs_as_slurmd(const struct agent_step *step, const struct proc_stat *stat)
{
    return is_unborn(stat) || strcmp(step->use.id, "extern") == 0;
}

void agent_identify(struct agent *agent, struct agent_step *step, const struct proc_stat *stat)
{
    struct agent_job *job = step->job;
    uint32_t uid;

    if (job->use.uid == MODEL_UNKNOWN_U32 && proc_uid(agent->proc, stat->pid, &uid) &&
        (uid != agent->config.slurmd_uid || !runs_as_slurmd(step, stat))) {
        job->use.uid = uid;
        agent_skip_users(agent, job);
    }
    if (step->has_told || is_unborn(stat))
        return;
    step->has_told =
        read_claims(agent, job, stat->pid) || ++step->n_silent == MOST_SILENT_PROCESSES;
}

void agent_watch_leader(struct agent *agent, struct process *process)
{
    /* v2 tells by cgroup.events. */
    if (process->pidfd < 0 && process->step->stepd && process->parent == process->step->stepd &&
        !(process->step->dir && process->step->dir->row->is_v2))
        process->pidfd = agent_watch_end(agent, process->pid, EVENT_LEADER, &process->step->files);
}
