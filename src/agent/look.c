/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job uses now: its directory, and its processes one by one. */
#include "agent/agent.h"

#include "base/arena.h"

#include <math.h>

/* Ticks: names of open files cost as much as all the rest together, and what only an end changes is
 * looked at there. */
enum {
    COSTLY_EVERY = 4,
    FEW = 4,
};

static const int64_t proof_ns = 60 * NS_PER_SEC; /* its slurmstepd is known by then */

void sums_add(struct sums *to, const struct sums *what)
{
    io_add(&to->io, &what->io);
    to->user_ns += what->user_ns;
    to->system_ns += what->system_ns;
}

static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least)
        *value = least;
}

static void raise_io(struct io_use *to, const struct io_use *least)
{
    raise_to(&to->read_bytes, least->read_bytes);
    raise_to(&to->write_bytes, least->write_bytes);
    raise_to(&to->read_chars, least->read_chars);
    raise_to(&to->write_chars, least->write_chars);
    raise_to(&to->reads, least->reads);
    raise_to(&to->writes, least->writes);
}

static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* What a process has used goes to the one that waits for it, in the end to the slurmstepd: there it
 * is no growth. Who waits after he was read shows it in the next look; what is not seen by then was
 * left to nobody, and others' growth may have been taken for it. */
static void settle_whole(struct agent_step *step)
{
    uint64_t *whole = (uint64_t *)&step->whole, *grown = (uint64_t *)&step->grown;
    uint64_t *vanished = (uint64_t *)&step->vanished;
    uint64_t *before = (uint64_t *)&step->vanished_before;

    for (size_t i = 0; i < sizeof(struct sums) / sizeof(uint64_t); i++) {
        uint64_t old = grown[i] < before[i] ? grown[i] : before[i];
        uint64_t new = grown[i] - old < vanished[i] ? grown[i] - old : vanished[i];

        whole[i] += grown[i] - old - new;
        before[i] = vanished[i] - new;
        vanished[i] = grown[i] = 0;
    }
}

static void sums_subtract(struct sums *from, const struct sums *what)
{
    io_subtract(&from->io, &what->io);
    from->user_ns = growth(what->user_ns, from->user_ns);
    from->system_ns = growth(what->system_ns, from->system_ns);
}

/* Threads that end are told by records; those that live are read. A thread that has ended since the
 * records were read is missing for once, which must not show. The kernel rounds down to 1024 in
 * them whatever it is, the number of calls too: there the other sum is nearer, if it is larger. */
static void sum_by_records(struct agent_step *step)
{
    const struct io_use *whole = &step->whole.io;
    struct io_use now = step->ended;

    io_add(&now, &step->living);
    raise_to(&now.read_chars, whole->read_chars);
    raise_to(&now.write_chars, whole->write_chars);
    raise_to(&now.reads, whole->reads);
    raise_to(&now.writes, whole->writes);
    raise_io(&step->total.io, &now);
}

static void sum_step(struct agent *agent, struct agent_step *step)
{
    if (agent->exits)
        sum_by_records(step);
    else
        step->total.io = step->whole.io;
    step->total.user_ns = step->whole.user_ns;
    step->total.system_ns = step->whole.system_ns;
    step->use.io = step->total.io;
}

void agent_sum_up(struct agent *agent, struct agent_job *job)
{
    struct sums total = job->past;

    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        sum_step(agent, step);
        sums_add(&total, &step->total);
    }
    if (job->has_io)
        job->use.io = total.io;
    if (!job->has_cgroup_cpu) {
        job->use.cgroup.cpu_ns = total.user_ns + total.system_ns;
        job->use.cgroup.cpu_user_ns = total.user_ns;
        job->use.cgroup.cpu_system_ns = total.system_ns;
    }
}

static void pids_below(struct agent *agent, struct cgroup_dir *dir)
{
    const struct agent_task *task = dir->level == CGROUP_TASK ? dir->owner : NULL;
    size_t before = agent->pids.n;

    if (dir->level != CGROUP_STEPD)
        cgroup_dir_pids(dir, &agent->pids);
    if (task && task->use)
        task->use->processes = agent->pids.n - before;
    for (struct cgroup_dir *child = dir->first_child; child; child = child->next_sibling)
        if (child->level != CGROUP_STEP)
            pids_below(agent, child);
}

static int by_number(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

    return (left > right) - (left < right);
}

/* Parents, which have smaller numbers nearly always, before their children: who ends in between is
 * missing for once, but never counted with his parent and by himself. v2 may list one twice. */
static void sort_pids(struct pid_list *pids)
{
    size_t n = 0;

    if (pids->n)
        qsort(pids->pid, pids->n, sizeof(*pids->pid), by_number);
    for (size_t i = 0; i < pids->n; i++)
        if (!n || pids->pid[n - 1] != pids->pid[i])
            pids->pid[n++] = pids->pid[i];
    pids->n = n;
}

void agent_step_pids(struct agent *agent, struct agent_step *step)
{
    if (step->dir)
        pids_below(agent, step->dir);
    else if (step->stepd)
        proc_descendants(agent->proc, step->stepd, PROC_DESCENDANTS_MAX, &agent->pids);
    sort_pids(&agent->pids);
}

static void set_times(struct sums *to, const struct proc_stat *stat)
{
    to->user_ns = stat->user_ns + stat->reaped_user_ns;
    to->system_ns =
        growth(stat->user_ns, stat->cpu_ns) + growth(stat->reaped_user_ns, stat->reaped_cpu_ns);
}

/* What it adds to the sums of its step. */
static int add_use(struct agent *agent, struct process *process, const struct proc_stat *stat,
                   bool is_new)
{
    struct agent_step *step = process->step;
    struct sums now = process->whole, grown;
    int code = proc_io(agent->proc, stat->pid, &now.io);

    set_times(&now, stat);
    grown = now;
    sums_subtract(&grown, &process->whole);
    sums_add(is_new ? &step->whole : &step->grown, &grown);
    process->whole = now;
    return code;
}

/* Of threads that are exiting, the records may have come already. */
static int io_of_living(struct agent *agent, const struct proc_stat *stat, struct io_use *ret)
{
    struct io_use exiting;
    int code;

    if (stat->threads == 1 && !stat->is_exiting)
        return proc_io_of_thread(agent->proc, stat->pid, stat->pid, ret);
    code = proc_io_of_threads(agent->proc, stat->pid, ret, &exiting);
    if (code == 0)
        io_subtract(ret, &exiting);
    return code;
}

static int add_living(struct agent *agent, struct process *process, const struct proc_stat *stat)
{
    int code = 0;

    process->io = process->whole.io;
    if (agent->exits && process->is_by_thread)
        code = io_of_living(agent, stat, &process->io);
    if (code == 0)
        io_add(&process->step->living, &process->io);
    return code;
}

/* /proc/PID/io also has what threads that have ended and children that were waited for had done:
 * records tell of those, unless they ended before anybody listened. */
static void part_from_past(struct agent *agent, struct process *process)
{
    struct io_use all, own, exiting;

    if (proc_io(agent->proc, process->pid, &all) < 0 ||
        proc_io_of_threads(agent->proc, process->pid, &own, &exiting) < 0)
        return;
    io_subtract(&all, &own);
    process->is_by_thread = !io_is_none(&all) || !io_is_none(&exiting);
    if (process->start_ticks < process->step->heard_ticks)
        io_add(&process->step->ended, &all);
}

static struct process *meet(struct agent *agent, struct agent_step *step,
                            const struct proc_stat *stat)
{
    struct process *process = processes_find(agent->processes, stat->pid);

    if (process && process->start_ticks == stat->start_ticks)
        return process->is_stepd ? NULL : process;
    if (process)
        agent_forget_process(agent, process);
    process = processes_add(agent->processes, stat->pid);
    if (!process) {
        agent->use.processes_refused++;
        step->job->has_refused = true;
        return NULL;
    }
    process->start_ticks = stat->start_ticks;
    process->step = step;
    step->n_processes++;
    process->parent = stat->parent;
    if (agent->exits)
        part_from_past(agent, process);
    agent_watch_leader(agent, process);
    return process;
}

/* exec gives it another name; what it has used until then stays with the first. */
void agent_name_process(struct agent *agent, struct process *process, const char *comm)
{
    struct names *names = &process->step->job->names;
    uint8_t place = names_place(names, agent->tuning.max_names, comm);

    if (process->has_name && process->name != place) {
        names_end(names, process->name, growth(process->unnamed_cpu_ns, process->cpu_ns));
        process->unnamed_cpu_ns = process->cpu_ns;
    }
    process->has_name = true;
    process->name = place;
}

static void add_name(struct agent *agent, struct process *process, const struct proc_stat *stat)
{
    agent_name_process(agent, process, stat->comm);
    names_add(&process->step->job->names, process->name, stat->threads, stat->resident_bytes,
              growth(process->unnamed_cpu_ns, stat->cpu_ns));
}

static void look_at_process(struct agent *agent, struct agent_step *step, pid_t pid)
{
    struct agent_job *job = step->job;
    struct process *process;
    struct proc_stat stat;
    bool is_new;
    int code;

    if (!proc_stat(agent->proc, pid, &stat) || !stat.threads)
        return;
    process = meet(agent, step, &stat);
    if (!process)
        return;
    is_new = !process->round;
    process->round = agent->round;
    agent_identify(agent, step, &stat);
    if (agent->needs & USAGE_NAMES)
        add_name(agent, process, &stat);
    process->cpu_ns = stat.cpu_ns;
    code = add_use(agent, process, &stat, is_new);
    if (code == 0)
        code = add_living(agent, process, &stat);
    job->has_io |= code == 0;
    if (code == -EACCES)
        agent->may_read = false;
    step->use.processes++;
    step->use.threads += stat.threads;
    step->use.resident_bytes += stat.resident_bytes;
}

/* The slurmstepd has what those had used that it has waited for. */
static void look_at_stepd(struct agent *agent, struct agent_step *step)
{
    struct sums now = step->reaped, grown;
    struct proc_stat stat;
    struct io_use own;

    if (step->stepd && !step->job->has_cgroup_cpu && proc_stat(agent->proc, step->stepd, &stat)) {
        stat.cpu_ns = stat.user_ns = 0; /* its own is not the job's */
        set_times(&now, &stat);
    }
    if (step->stepd && (!agent->exits || step->has_lost_child) &&
        proc_io_of_threads(agent->proc, step->stepd, &own, NULL) == 0 &&
        proc_io(agent->proc, step->stepd, &now.io) == 0) {
        io_subtract(&now.io, &own);
        step->has_lost_child = false;
    }
    grown = now;
    sums_subtract(&grown, &step->reaped);
    sums_add(&step->grown, &grown);
    sums_add(&step->reaped, &grown);
}

static bool look_at_files(struct agent *agent, pid_t pid)
{
    int code = proc_files_add(agent->files, agent->proc, pid);

    if (code == -EACCES)
        agent->may_read = false;
    return code == 0;
}

struct search {
    struct agent *agent;
    struct agent_step *step;
};

/* One that no directory lists any more: as long as nobody has waited for it, what it has used is
 * nobody else's. */
static void look_at_ended(void *ctx, struct process *process)
{
    const struct search *search = ctx;
    struct agent *agent = search->agent;
    struct proc_stat stat;

    if (process->step != search->step || process->is_stepd || process->round == agent->round)
        return;
    if (proc_stat(agent->proc, process->pid, &stat) && !stat.threads &&
        stat.start_ticks == process->start_ticks) {
        process->round = agent->round;
        process->has_ended = true;
        add_use(agent, process, &stat, false);
    } else {
        agent_give_up_use(process);
    }
}

/* Their open files at once: another list of the processes would have to be made and sorted anew.
 * True if any could be read. */
static bool look_at_processes(struct agent *agent, struct agent_step *step, bool with_files)
{
    bool has_files = false;

    agent->pids.n = 0;
    step->living = (struct io_use){ 0 };
    step->use.processes = step->use.threads = step->use.resident_bytes = 0;
    look_at_stepd(agent, step);
    agent_step_pids(agent, step);
    for (size_t i = 0; i < agent->pids.n; i++) {
        look_at_process(agent, step, agent->pids.pid[i]);
        if (with_files)
            has_files |= look_at_files(agent, agent->pids.pid[i]);
    }
    if (step->use.processes < step->n_processes)
        processes_each(agent->processes, look_at_ended, &(struct search){ agent, step });
    settle_whole(step);
    return has_files;
}

static void raise_peak(uint64_t *peak, uint64_t now)
{
    if (now != MODEL_UNKNOWN_U64 && (*peak == MODEL_UNKNOWN_U64 || *peak < now))
        *peak = now;
}

static void show_files(struct agent *agent, struct agent_job *job)
{
    job->use.descriptors = proc_files_descriptors(agent->files);
    job->use.files = proc_files_distinct(agent->files);
    if (job->use.uses_scratch != 1)
        job->use.uses_scratch = proc_files_found(agent->files);
    raise_peak(&job->use.files_peak, job->use.files);
}

/* By when it was read: a tick may last, and at one job earlier than at the next. */
static void compare_cpu(struct agent *agent, struct agent_job *job)
{
    int64_t now = job->has_cgroup_cpu ? job->read_ns : clock_mono(agent->config.clock);
    uint64_t cpu_ns = job->use.cgroup.cpu_ns;

    if (cpu_ns == MODEL_UNKNOWN_U64)
        return;
    if (job->tick_cpu_ns != MODEL_UNKNOWN_U64 && cpu_ns >= job->tick_cpu_ns && now > job->tick_ns)
        job->use.cpu_ratio = (double)(cpu_ns - job->tick_cpu_ns) / (double)(now - job->tick_ns);
    job->tick_cpu_ns = cpu_ns;
    job->tick_ns = now;
}

static void sum_processes(const struct agent *agent, struct agent_job *job)
{
    struct job_use *use = &job->use;

    use->processes = use->threads = use->resident_bytes = 0;
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        const struct step_use *step = &PART_OF(link, struct agent_step, link)->use;

        use->processes += step->processes;
        use->threads += step->threads;
        use->resident_bytes += step->resident_bytes;
    }
    if (job->has_refused || agent->is_blind)
        use->processes = use->threads = use->resident_bytes = MODEL_UNKNOWN_U64;
    raise_peak(&use->processes_peak, use->processes);
    raise_peak(&use->threads_peak, use->threads);
}

void agent_show_names(const struct agent *agent, struct agent_job *job)
{
    bool is_wanted = agent->needs & USAGE_NAMES;

    job->use.names = job->names.item;
    job->use.n_names = is_wanted ? job->names.n : 0;
    job->use.n_names_folded = is_wanted ? job->names.n_folded : 0;
}

static uint64_t first_known(uint64_t a, uint64_t b)
{
    return a != MODEL_UNKNOWN_U64 ? a : b;
}

static void look_at_all_processes(struct agent *agent, struct agent_job *job, bool with_files)
{
    bool has_files = false;

    job->has_refused = false;
    names_begin(&job->names);
    if (with_files)
        proc_files_begin(agent->files);
    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link))
        has_files |= look_at_processes(agent, PART_OF(link, struct agent_step, link), with_files);
    if (has_files)
        show_files(agent, job);
    agent_sum_up(agent, job);
    sum_processes(agent, job);
}

/* Where nobody asks for processes, the first of each step tell all that is needed. */
static void identify_by_few(struct agent *agent, struct agent_job *job)
{
    struct proc_stat stat;

    for (struct link *link = list_first(&job->steps); link; link = list_next(&job->steps, link)) {
        struct agent_step *step = PART_OF(link, struct agent_step, link);

        if (step->has_told && job->use.uid != MODEL_UNKNOWN_U32)
            continue;
        agent->pids.n = 0;
        agent_step_pids(agent, step);
        for (size_t i = 0; i < agent->pids.n && i < FEW; i++)
            if (proc_stat(agent->proc, agent->pids.pid[i], &stat) && stat.threads)
                agent_identify(agent, step, &stat);
    }
}

void agent_look_at_job(struct agent *agent, struct agent_job *job, bool is_tick)
{
    bool is_turn = is_tick ? job->turn++ % COSTLY_EVERY == 0 : agent_job_is_young(agent, job);
    uint64_t limit_hits = agent_limit_hits(agent);

    agent_prove(agent, job);
    /* One that begins together with the agent may have no process yet. */
    if (!agent->use.ticks && !job->is_proven)
        agent_look_soon(agent, job);
    if (!agent_job_is_live(job)) {
        if (is_tick && !job->is_proven && agent->now - job->seen_ns > proof_ns)
            agent_close_files(job); /* most likely a leftover, and there may be thousands */
        return;
    }
    job->round = agent->round;
    job->looked_ns = agent->now;
    if (job->dir)
        agent_look_at_directories(agent, job, is_turn);
    if (agent->needs & (USAGE_PROCESSES | USAGE_NAMES | USAGE_IO | USAGE_FILES))
        look_at_all_processes(agent, job, agent->needs & USAGE_FILES && is_turn);
    else if (agent->needs & USAGE_OWNER || agent->tuning.n_skipped)
        identify_by_few(agent, job);
    if (agent_limit_hits(agent) != limit_hits)
        agent_tell_limit(agent, job);
    if (is_tick)
        compare_cpu(agent, job);
    job->use.allocated_cpus = first_known(job->use.cgroup.cpus, job->claimed_cpus);
    job->use.allocated_memory_bytes = job->use.cgroup.memory_limit_bytes;
    if (job->use.uid != MODEL_UNKNOWN_U32)
        users_user(agent->config.users, job->use.uid, job->use.user);
}
