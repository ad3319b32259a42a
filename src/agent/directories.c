/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the directories of a job, its steps and its tasks say, and what happened in those that have
 * gone. */
#include "agent/agent.h"

#include "base/arena.h"

static void path_of(const struct cgroup_dir *dir, struct buf *path)
{
    buf_init(path, 4096);
    cgroup_dir_path(dir, path);
}

static struct cgroup *open_cgroup(struct agent *agent, const struct cgroup_dir *dir,
                                  struct cgroup_wish wish)
{
    struct cgroup *cgroup;
    struct buf path;

    path_of(dir, &path);
    cgroup = cgroup_open(&agent->mounts, buf_str(&path), wish);
    buf_free(&path);
    return cgroup;
}

void agent_ask_for_notices(struct agent *agent, struct agent_step *step)
{
    struct buf path;

    path_of(step->dir, &path);
    oom_notices_open(&agent->mounts, buf_str(&path), &step->files, &step->oom_notices);
    buf_free(&path);
    if (agent->use.ticks)
        oom_notices_watch_end(&step->oom_notices);
}

static struct task_use *new_task_use(struct agent *agent, const struct cgroup_dir *dir)
{
    struct task_use *use = heap_alloc(sizeof(*use));
    struct cgroup_match match;
    struct buf path;

    path_of(dir, &path);
    if (cgroup_rows_match(agent->config.rows, agent->mounts.is_v2, buf_str(&path), &match))
        snprintf(use->id, sizeof(use->id), "%s", match.task);
    buf_free(&path);
    cgroup_use_clear(&use->cgroup);
    return use;
}

static struct agent_task *new_task(void)
{
    struct agent_task *task = heap_alloc(sizeof(*task));

    task->events = (struct memory_events){ MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64 };
    return task;
}

static void open_task(struct agent *agent, struct agent_step *step, const struct cgroup_dir *dir,
                      struct agent_task *task)
{
    bool is_wanted = agent->needs & USAGE_TASKS;

    task->cgroup = open_cgroup(
        agent, dir, (struct cgroup_wish){ .only_events = !is_wanted, .files = &step->files });
    if (is_wanted && !task->use)
        task->use = new_task_use(agent, dir);
}

void agent_look_at_task(struct agent *agent, struct agent_step *step, struct cgroup_dir *dir)
{
    struct agent_task *task = dir->owner ? dir->owner : new_task();
    struct cgroup_use events = { .limit_hits = task->events.limit_hits,
                                 .oom_kills = task->events.oom_kills };
    struct cgroup_use *use;

    dir->owner = task;
    if (!task->cgroup)
        open_task(agent, step, dir, task);
    use = task->use ? &task->use->cgroup : &events;
    cgroup_read(task->cgroup, use);
    task->events = (struct memory_events){ use->limit_hits, use->oom_kills };
}

static void look_at_tasks(struct agent *agent, struct agent_step *step, struct cgroup_dir *dir)
{
    if (dir->level == CGROUP_TASK)
        agent_look_at_task(agent, step, dir);
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        look_at_tasks(agent, step, child);
}

static void look_at_step(struct agent *agent, struct agent_step *step)
{
    bool is_local = agent->mounts.has_local_events;

    if (!step->dir || step->dir == step->job->dir ||
        (!is_local && !(agent->needs & (USAGE_STEPS | USAGE_TASKS))))
        return;
    if (!step->cgroup)
        step->cgroup =
            open_cgroup(agent, step->dir,
                        (struct cgroup_wish){ .only_events = !(agent->needs & USAGE_STEPS),
                                              .files = &step->files });
    cgroup_read(step->cgroup, &step->use.cgroup);
    if (is_local || agent->needs & USAGE_TASKS)
        look_at_tasks(agent, step, step->dir);
}

static void add_known(uint64_t *to, uint64_t value)
{
    if (value != MODEL_UNKNOWN_U64)
        *to += value;
}

static void add_task_events(const struct cgroup_dir *dir, struct memory_events *to)
{
    const struct agent_task *task = dir->level == CGROUP_TASK ? dir->owner : NULL;

    if (task) {
        add_known(&to->limit_hits, task->events.limit_hits);
        add_known(&to->oom_kills, task->events.oom_kills);
    }
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        add_task_events(child, to);
}

static void look_at_steps(struct agent *agent, struct agent_job *job)
{
    job->below_events = (struct memory_events){ 0 };
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        look_at_step(agent, step);
        if (agent->ends_to_watch && oom_notices_watch_end(&step->oom_notices))
            agent->ends_to_watch--;
        job->has_run_out |= oom_notices_any(&step->oom_notices);
        if (!step->dir || step->dir == job->dir)
            continue;
        add_known(&job->below_events.limit_hits, step->use.cgroup.limit_hits);
        add_known(&job->below_events.oom_kills, step->use.cgroup.oom_kills);
        add_task_events(step->dir, &job->below_events);
    }
}

/* A directory that went before its kills were read leaves its notices. All steps get them for what
 * their job does, and while a victim dies others run out again: they say that, not how many. */
void agent_show_events(struct agent_job *job)
{
    struct cgroup_use *use = &job->use.cgroup;

    if (!job->has_events)
        return;
    use->oom_kills =
        job->own_events.oom_kills + job->below_events.oom_kills + job->past_events.oom_kills;
    use->limit_hits =
        job->own_events.limit_hits + job->below_events.limit_hits + job->past_events.limit_hits;
    if (job->has_run_out && !use->oom_kills)
        use->oom_kills = 1;
}

/* Reads the job's own directory. */
static void look_at_job_directory(struct agent *agent, struct agent_job *job)
{
    struct cgroup_use *use = &job->use.cgroup;
    bool is_local = agent->mounts.has_local_events;

    if (!job->cgroup)
        job->cgroup = open_cgroup(agent, job->dir,
                                  (struct cgroup_wish){ .cores = agent->needs & USAGE_CORES,
                                                        .details = agent->needs & USAGE_CGROUP,
                                                        .files = &agent->kept_files });
    if (!job->has_cgroup_cpu)
        use->cpu_ns = use->cpu_user_ns = use->cpu_system_ns = MODEL_UNKNOWN_U64;
    if (is_local)
        use->limit_hits = use->oom_kills = MODEL_UNKNOWN_U64;
    cgroup_read(job->cgroup, use);
    job->read_ns = clock_mono(agent->config.clock);
    job->has_cgroup_cpu = use->cpu_ns != MODEL_UNKNOWN_U64;
    if (!is_local)
        return;
    job->has_events |= use->oom_kills != MODEL_UNKNOWN_U64;
    if (use->oom_kills != MODEL_UNKNOWN_U64)
        job->own_events.oom_kills = use->oom_kills;
    if (use->limit_hits != MODEL_UNKNOWN_U64)
        job->own_events.limit_hits = use->limit_hits;
    agent_show_events(job);
}

void agent_look_at_directories(struct agent *agent, struct agent_job *job, bool with_steps)
{
    if (with_steps)
        look_at_steps(agent, job);
    look_at_job_directory(agent, job);
}

void agent_look_at_cgroup(struct agent *agent, struct agent_job *job)
{
    if (!job->is_skipped && job->dir)
        agent_look_at_directories(agent, job, true);
}

static void close_tasks(struct cgroup_dir *dir)
{
    struct agent_task *task = dir->level == CGROUP_TASK ? dir->owner : NULL;

    if (task) {
        task->cgroup = cgroup_close(task->cgroup);
        free(task->use);
        task->use = NULL;
    }
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        close_tasks(child);
}

static struct cgroup *close_cgroup(struct cgroup *cgroup, struct cgroup_use *use)
{
    use->core_ns = use->core_set = NULL;
    use->devices = NULL;
    use->n_cores = use->n_devices = 0;
    return cgroup_close(cgroup);
}

void agent_close_files(struct agent_job *job)
{
    if (!job->use.has_ended)
        job->cgroup = close_cgroup(job->cgroup, &job->use.cgroup);
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        step->cgroup = close_cgroup(step->cgroup, &step->use.cgroup);
        if (step->dir)
            close_tasks(step->dir);
    }
}

/* Counts them, and copies them where there is room. */
static size_t show_tasks_below(const struct cgroup_dir *dir, struct task_use *to)
{
    const struct agent_task *task = dir->level == CGROUP_TASK ? dir->owner : NULL;
    size_t n = 0;

    if (task && task->use) {
        if (to)
            to[n] = *task->use;
        n++;
    }
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        n += show_tasks_below(child, to ? to + n : NULL);
    return n;
}

static void show_tasks(struct agent_step *step)
{
    size_t n = step->dir ? show_tasks_below(step->dir, NULL) : 0;

    if (n != step->use.n_tasks || !n) {
        free(step->use.tasks);
        step->use.tasks = n ? heap_array(n, sizeof(*step->use.tasks)) : NULL;
        step->use.n_tasks = n;
    }
    if (n)
        show_tasks_below(step->dir, step->use.tasks);
}

static void add_tasks_events(const struct agent_step *step, struct cgroup_use *to)
{
    struct memory_events events = step->past_events;

    if (step->dir)
        add_task_events(step->dir, &events);
    if (to->limit_hits != MODEL_UNKNOWN_U64)
        to->limit_hits += events.limit_hits;
    if (to->oom_kills != MODEL_UNKNOWN_U64)
        to->oom_kills += events.oom_kills;
}

void agent_show_steps(struct agent_job *job, bool is_local)
{
    size_t n = 0;

    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link))
        n++;
    job->use.steps = heap_resize(job->use.steps, n + 1, sizeof(*job->use.steps));
    job->use.n_steps = n;
    n = 0;
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        show_tasks(step);
        job->use.steps[n] = step->use;
        if (is_local)
            add_tasks_events(step, &job->use.steps[n].cgroup);
        n++;
    }
}
