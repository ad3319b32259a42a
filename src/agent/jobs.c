/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs and steps come and go, as their directories do, or their slurmstepds where there are none.
 */
#include "agent/agent.h"
#include "agent/spool.h"

#include "base/arena.h"

#include <math.h>

/* The first looks at a job come soon, so that one of three seconds is seen too. */
static const int64_t first_pause_ns = 10 * NS_PER_MS;

enum {
    MOST_ENDED = 1024, /* jobs whose last counters are kept */
    PAST_STEPS = 32,   /* of one job that are told one by one at its end */
};

bool agent_job_is_live(const struct agent_job *job)
{
    return !job->use.has_ended && !job->is_skipped && (job->is_proven || !job->has_supervisor);
}

bool agent_job_is_shown(const struct agent *agent, const struct agent_job *job)
{
    if (agent->tuning.n_skipped && job->use.uid == MODEL_UNKNOWN_U32)
        return false; /* it may be of one of these */
    return agent_job_is_live(job) || (job->use.has_ended && !job->is_skipped && !job->is_over);
}

bool agent_job_is_young(const struct agent *agent, const struct agent_job *job)
{
    return job->look_pause_ns < agent->tuning.tick_ns;
}

struct agent_job *agent_job_find(struct agent *agent, const char *id, const char *node)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (strcmp(job->use.id, id) == 0 && strcmp(job->use.node, node) == 0)
            return job;
    }
    return NULL;
}

struct agent_step *agent_step_find(struct agent_job *job, const char *id)
{
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        if (strcmp(step->use.id, id) == 0)
            return step;
    }
    return NULL;
}

static void free_oldest_ended(struct agent *agent)
{
    struct agent_job *oldest = NULL;

    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->use.has_ended && !job->dir && (!oldest || job->ended_ns < oldest->ended_ns))
            oldest = job;
    }
    if (oldest)
        agent_job_free(agent, oldest);
}

/* What Slurm leaves behind shuts no job out: its directories have a ceiling of their own. */
static bool is_full(const struct agent *agent)
{
    size_t n = 0;

    if (agent->n_jobs - agent->n_ended < agent->config.max_jobs)
        return false;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link))
        n += agent_job_is_live(PART_OF(link, struct agent_job, link));
    return n >= agent->config.max_jobs;
}

struct agent_job *agent_job_begin(struct agent *agent, const struct cgroup_match *match,
                                  struct cgroup_dir *dir)
{
    struct agent_job *job;

    if (is_full(agent)) {
        agent->use.jobs_refused++;
        return NULL;
    }
    job = heap_alloc(sizeof(*job));
    job_use_clear(&job->use);
    snprintf(job->use.id, sizeof(job->use.id), "%s", match->job);
    snprintf(job->use.node, sizeof(job->use.node), "%s",
             match->node[0] ? match->node : agent->config.host);
    snprintf(job->sluid, sizeof(job->sluid), "%s", match->sluid);
    job->use.uid = match->uid;
    job->use.seen_wall_ns = clock_wall(agent->config.clock);
    job->has_supervisor = match->row ? match->row->has_stepd : true;
    job->claimed_cpus = MODEL_UNKNOWN_U64;
    job->dir = dir;
    job->seen_ns = agent->now;
    job->look_pause_ns = first_pause_ns;
    /* Those that were there before the agent are not young. */
    job->look_ns = agent->use.ticks ? agent->now + first_pause_ns : INT64_MAX;
    job->tick_cpu_ns = MODEL_UNKNOWN_U64;
    agent_limit_job_files(agent, job);
    list_init(&job->steps);
    list_append(&agent->jobs, &job->link);
    agent->n_jobs++;
    agent_skip_users(agent, job);
    return job;
}

void agent_look_soon(const struct agent *agent, struct agent_job *job)
{
    if (job->look_ns <= agent->now + first_pause_ns)
        return;
    job->look_pause_ns = first_pause_ns;
    job->look_ns = agent->now + first_pause_ns;
}

struct agent_step *agent_step_begin(struct agent *agent, struct agent_job *job, const char *id,
                                    struct cgroup_dir *dir)
{
    struct agent_step *step = heap_alloc(sizeof(*step));

    snprintf(step->use.id, sizeof(step->use.id), "%s", id);
    cgroup_use_clear(&step->use.cgroup);
    step->job = job;
    step->dir = dir;
    /* Without a directory, nobody knew whose the records were until now. */
    if (agent->exits)
        step->heard_ticks = dir ? exits_began_ticks(agent->exits) : exits_now_ticks() + 1;
    agent_limit_step_files(agent, step);
    step->oom_notices = oom_notices_none;
    if (dir && !job->is_skipped)
        agent_ask_for_notices(agent, step);
    list_append(&job->steps, &step->link);
    if (agent->use.ticks)
        agent_look_soon(agent, job);
    return step;
}

static void end_name(struct process *process)
{
    uint64_t cpu_ns =
        process->exit_cpu_ns > process->cpu_ns ? process->exit_cpu_ns : process->cpu_ns;

    if (process->has_name && cpu_ns > process->unnamed_cpu_ns)
        names_end(&process->step->job->names, process->name, cpu_ns - process->unnamed_cpu_ns);
    process->has_name = false;
}

/* Who has waited for it has it now. A slurmstepd did not yet when the record came. */
void agent_give_up_use(struct process *process)
{
    struct agent_step *step = process->step;

    sums_add(&step->vanished, &process->whole);
    process->whole = (struct sums){ 0 };
    step->has_lost_child |= process->parent == step->stepd;
}

void agent_forget_process(struct agent *agent, struct process *process)
{
    agent_give_up_use(process);
    agent_unwatch_end(agent, process);
    end_name(process);
    if (process->is_stepd)
        process->step->stepd = 0;
    else
        process->step->n_processes--;
    processes_remove(agent->processes, process);
}

struct search {
    struct agent *agent;
    const struct agent_step *step;
};

static void forget_if_unseen(void *ctx, struct process *process)
{
    struct agent *agent = ctx;

    if (process->step->job->round != agent->round || process->is_stepd)
        return;
    if (process->round != agent->round)
        agent_forget_process(agent, process);
    else if (process->has_ended)
        end_name(process);
}

/* The records of those that are no longer there have come, and belong to processes that are still
 * known. */
void agent_forget_unseen(struct agent *agent)
{
    if (agent->exits)
        exits_drain(agent->exits);
    processes_each(agent->processes, forget_if_unseen, agent);
}

static void forget_if_of_step(void *ctx, struct process *process)
{
    const struct search *search = ctx;

    if (process->step == search->step)
        agent_forget_process(search->agent, process);
}

static void move_known(uint64_t value, uint64_t *from, uint64_t *to)
{
    if (value == MODEL_UNKNOWN_U64)
        return;
    *from -= value < *from ? value : *from;
    *to += value;
}

/* What happened in a directory that goes stays the job's. */
static void end_events(struct agent_job *job, uint64_t limit_hits, uint64_t oom_kills)
{
    move_known(limit_hits, &job->below_events.limit_hits, &job->past_events.limit_hits);
    move_known(oom_kills, &job->below_events.oom_kills, &job->past_events.oom_kills);
}

static void task_end(struct agent_step *step, struct agent_task *task)
{
    end_events(step->job, task->events.limit_hits, task->events.oom_kills);
    if (task->events.limit_hits != MODEL_UNKNOWN_U64)
        step->past_events.limit_hits += task->events.limit_hits;
    if (task->events.oom_kills != MODEL_UNKNOWN_U64)
        step->past_events.oom_kills += task->events.oom_kills;
    cgroup_close(task->cgroup);
    free(task->use);
    free(task);
}

static void end_tasks_below(struct agent_step *step, struct cgroup_dir *dir)
{
    if (dir->level == CGROUP_TASK && dir->owner) {
        task_end(step, dir->owner);
        dir->owner = NULL;
    }
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        end_tasks_below(step, child);
}

/* Its last counters, for the end of its job. */
static void remember_step(struct agent_job *job, const struct agent_step *step)
{
    struct step_use *past;

    if (job->n_past_steps == PAST_STEPS) {
        job->n_past_left_out++;
        return;
    }
    job->past_steps =
        heap_grow(job->past_steps, job->n_past_steps, &job->n_past_room, sizeof(*job->past_steps));
    past = &job->past_steps[job->n_past_steps++];
    *past = step->use;
    past->tasks = NULL;
    past->n_tasks = 0;
    past->cgroup.core_ns = past->cgroup.core_set = NULL;
    past->cgroup.devices = NULL;
    past->cgroup.n_cores = past->cgroup.n_devices = 0;
    if (!job->has_io)
        io_use_clear(&past->io);
}

void agent_step_end(struct agent *agent, struct agent_step *step)
{
    struct agent_job *job = step->job;

    processes_each(agent->processes, forget_if_of_step, &(struct search){ agent, step });
    sums_add(&job->past, &step->total);
    if (step->dir)
        end_tasks_below(step, step->dir);
    end_events(job, step->use.cgroup.limit_hits, step->use.cgroup.oom_kills);
    job->has_run_out |= oom_notices_any(&step->oom_notices);
    oom_notices_close(&step->oom_notices);
    if (step->dir && step->dir->owner == step)
        step->dir->owner = NULL;
    if (agent->config.spool && !job->use.has_ended && !job->is_skipped)
        remember_step(job, step);
    cgroup_close(step->cgroup);
    list_remove(&step->link);
    free(step->use.tasks);
    free(step);
}

/* Of a job that has ended, what is true of a moment is no longer. */
static void keep_last_counters(struct job_use *use)
{
    const struct cgroup_use last = use->cgroup;

    use->has_ended = true;
    use->cpu_ratio = NAN;
    use->processes = use->threads = use->resident_bytes = MODEL_UNKNOWN_U64;
    use->descriptors = use->files = MODEL_UNKNOWN_U64;
    use->cgroup.memory_bytes = use->cgroup.anon_bytes = use->cgroup.file_bytes = MODEL_UNKNOWN_U64;
    use->cgroup.mapped_bytes = use->cgroup.shmem_bytes = MODEL_UNKNOWN_U64;
    use->cgroup.swap_bytes = use->cgroup.kernel_bytes = use->cgroup.pids = MODEL_UNKNOWN_U64;
    use->cgroup.core_ns = NULL;
    use->cgroup.core_set = NULL;
    use->cgroup.n_cores = 0;
    use->cgroup.devices = NULL;
    use->cgroup.n_devices = 0;
    if (last.n_cores) {
        use->cgroup.core_ns = heap_array(last.n_cores, sizeof(*last.core_ns));
        memcpy(use->cgroup.core_ns, last.core_ns, last.n_cores * sizeof(*last.core_ns));
        use->cgroup.n_cores = last.n_cores;
        if (last.core_set) {
            size_t words = (last.n_cores + 63) / 64;

            use->cgroup.core_set = heap_array(words, sizeof(*last.core_set));
            memcpy(use->cgroup.core_set, last.core_set, words * sizeof(*last.core_set));
        }
    }
    if (last.n_devices) {
        use->cgroup.devices = heap_array(last.n_devices, sizeof(*last.devices));
        memcpy(use->cgroup.devices, last.devices, last.n_devices * sizeof(*last.devices));
        use->cgroup.n_devices = last.n_devices;
    }
    for (size_t i = 0; i < use->n_names; i++)
        use->names[i].processes = use->names[i].threads = use->names[i].resident_bytes = 0;
    use->n_steps = 0;
}

/* To whoever keeps it for good. Jobs of another scheduler are none of Slurm's. */
static void tell_end(struct agent *agent, const struct agent_job *job)
{
    struct job_use use = job->use;

    if (!agent->config.spool || job->is_skipped || !job->has_supervisor ||
        (agent->tuning.n_skipped && use.uid == MODEL_UNKNOWN_U32))
        return;
    use.steps = job->past_steps;
    use.n_steps = job->n_past_steps;
    spool_add(agent->config.spool, &use, job->n_past_left_out, clock_wall(agent->config.clock));
}

void agent_job_end(struct agent *agent, struct agent_job *job)
{
    struct link *link;

    if (job->use.has_ended)
        return;
    if (agent->exits)
        exits_drain(agent->exits);
    agent_sum_up(agent, job);
    while ((link = list_first(&job->steps)))
        agent_step_end(agent, PART_OF(link, struct agent_step, link));
    agent_show_events(job);
    agent_show_names(agent, job);
    tell_end(agent, job);
    keep_last_counters(&job->use);
    job->cgroup = cgroup_close(job->cgroup);
    job->ended_ns = agent->now;
    job->look_ns = INT64_MAX;
    agent->n_ended++;
    if (agent->n_ended > MOST_ENDED)
        free_oldest_ended(agent);
}

void agent_job_free(struct agent *agent, struct agent_job *job)
{
    struct link *link;

    while ((link = list_first(&job->steps)))
        agent_step_end(agent, PART_OF(link, struct agent_step, link));
    if (job->dir)
        job->dir->owner = NULL;
    if (job->use.has_ended) {
        free(job->use.cgroup.core_ns);
        free(job->use.cgroup.core_set);
        free(job->use.cgroup.devices);
        agent->n_ended--;
    }
    cgroup_close(job->cgroup);
    list_remove(&job->link);
    agent->n_jobs--;
    names_free(&job->names);
    free(job->use.gpus);
    free(job->use.steps);
    free(job->past_steps);
    free(job);
}

void agent_drop_namesake(struct agent *agent, const struct agent_job *of)
{
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job != of && job->use.has_ended && strcmp(job->use.id, of->use.id) == 0 &&
            strcmp(job->use.node, of->use.node) == 0) {
            agent_job_free(agent, job);
            return;
        }
    }
}

static struct agent_job *job_above(const struct cgroup_dir *dir)
{
    while (dir && dir->level != CGROUP_JOB)
        dir = dir->parent;
    return dir ? dir->owner : NULL;
}

void agent_job_go_on(struct agent_job *job, struct agent_job *old)
{
    job->past = old->past;
    job->use.seen_wall_ns = old->use.seen_wall_ns;
    job->past_steps = old->past_steps;
    job->n_past_steps = old->n_past_steps;
    job->n_past_room = old->n_past_room;
    job->n_past_left_out = old->n_past_left_out;
    old->past_steps = NULL;
    old->n_past_steps = old->n_past_room = old->n_past_left_out = 0;
}

/* A directory whose slurmstepds had all gone gets another: the job goes on. */
static struct agent_job *begin_again(struct agent *agent, struct agent_job *old,
                                     const struct cgroup_match *match)
{
    struct cgroup_dir *dir = old->dir;
    struct agent_job *job = agent_job_begin(agent, match, dir);

    old->dir = NULL;
    dir->owner = job;
    if (job) {
        job->past_events = old->past_events;
        job->has_run_out = old->has_run_out;
        agent_job_go_on(job, old);
        agent_look_at_cgroup(agent, job);
    }
    return job;
}

static struct agent_step *step_above(const struct cgroup_dir *dir)
{
    while (dir && dir->level != CGROUP_STEP)
        dir = dir->parent;
    return dir ? dir->owner : NULL;
}

static void entered(void *ctx, struct cgroup_dir *dir, const struct cgroup_match *match)
{
    struct agent *agent = ctx;
    struct agent_step *step;
    struct agent_job *job;

    switch (dir->level) {
    case CGROUP_JOB:
        dir->owner = job = agent_job_begin(agent, match, dir);
        /* Another scheduler's jobs need not have steps. */
        if (job && !job->has_supervisor)
            agent_step_begin(agent, job, "", dir);
        if (job)
            agent_look_at_cgroup(agent, job);
        break;
    case CGROUP_STEP:
        job = job_above(dir);
        if (job && job->use.has_ended)
            job = begin_again(agent, job, match);
        if (job)
            dir->owner = agent_step_begin(agent, job, match->step, dir);
        break;
    case CGROUP_TASK:
        /* It may be killed for want of memory before anybody looks. */
        job = job_above(dir);
        step = step_above(dir);
        if (job && !job->is_skipped && step && agent->mounts.has_local_events)
            agent_look_at_task(agent, step, dir);
        break;
    default:
        break;
    }
}

static void job_left(struct agent *agent, struct agent_job *job)
{
    job->dir = NULL;
    if (agent_job_is_live(job))
        agent_job_end(agent, job);
    else if (!job->use.has_ended)
        agent_job_free(agent, job);
}

static void step_left(struct agent *agent, struct agent_step *step)
{
    struct agent_job *job = step->job;

    step->dir = NULL;
    if (agent->exits)
        exits_drain(agent->exits);
    agent_sum_up(agent, job);
    agent_step_end(agent, step);
}

static void left(void *ctx, struct cgroup_dir *dir)
{
    struct agent *agent = ctx;
    void *owner = dir->owner;

    dir->owner = NULL;
    if (!owner)
        return;
    if (dir->level == CGROUP_JOB) {
        job_left(agent, owner);
    } else if (dir->level == CGROUP_STEP) {
        step_left(agent, owner);
    } else {
        task_end(step_above(dir), owner);
    }
}

/* A step's processes have all ended: its directory is still there, but not for long. */
static void changed(void *ctx, struct cgroup_dir *dir)
{
    struct agent_job *job = job_above(dir);

    if (job && agent_job_is_live(job))
        agent_look_at_cgroup(ctx, job);
}

const struct cgroup_tree_events agent_tree_events = {
    .entered = entered,
    .left = left,
    .changed = changed,
};
