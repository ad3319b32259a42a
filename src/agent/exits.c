/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What threads had used when they ended, by the kernel's records, given to the step that they were
 * of. The process may be one that nobody has seen: then its parent tells, and if that has ended
 * too, the record waits for that one's. */
#include "agent/agent.h"

#include "base/arena.h"
#include "source/taskstats.h"

#include <sys/epoll.h>
#include <time.h>

enum {
    WAITING = 1024,  /* records whose parents are not known; the oldest make room */
    STRANGERS = 256, /* parents that are known to be of no job, until the next tick */
    WAIT_TICKS = 2,
    FEW_PROCESSES = 32, /* so many are looked at whenever a task has ended */
};

struct waiting {
    struct exit_record record;
    uint64_t tick; /* in which it came */
};

struct exits {
    struct agent *agent;
    struct taskstats *taskstats;
    uint64_t began_ticks;
    struct waiting *waiting;
    size_t n_waiting;
    pid_t strangers[STRANGERS];
};

uint64_t exits_began_ticks(const struct exits *exits)
{
    return exits->began_ticks;
}

uint64_t exits_now_ticks(void)
{
    struct timespec since_boot;

    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return ((uint64_t)since_boot.tv_sec * NS_PER_SEC + (uint64_t)since_boot.tv_nsec) /
           (uint64_t)(NS_PER_SEC / sysconf(_SC_CLK_TCK));
}

struct exits *exits_new(struct agent *agent, struct err *err)
{
    struct exits *exits = heap_alloc(sizeof(*exits));
    struct epoll_event wish = { .events = EPOLLIN | EPOLLONESHOT,
                                .data.u64 = (uint64_t)EVENT_EXITS << 32 };

    if (taskstats_open(&exits->taskstats, err) < 0) {
        free(exits);
        return NULL;
    }
    epoll_ctl(agent->epoll, EPOLL_CTL_ADD, taskstats_fd(exits->taskstats), &wish);
    exits->began_ticks = exits_now_ticks() + 1;
    exits->agent = agent;
    return exits;
}

struct exits *exits_free(struct exits *exits)
{
    if (exits) {
        taskstats_close(exits->taskstats);
        free(exits->waiting);
        free(exits);
    }
    return NULL;
}

void exits_arm(struct exits *exits)
{
    struct epoll_event wish = { .events = EPOLLIN | EPOLLONESHOT,
                                .data.u64 = (uint64_t)EVENT_EXITS << 32 };

    epoll_ctl(exits->agent->epoll, EPOLL_CTL_MOD, taskstats_fd(exits->taskstats), &wish);
}

static pid_t pid_of(const struct exit_record *record)
{
    return record->process ? record->process : record->thread;
}

enum whose { OF_A_STEP, OF_NOBODY, NOT_KNOWN };

/* A process that nobody has seen, by the cgroup that it is in. */
static enum whose by_cgroup(struct exits *exits, pid_t pid, struct agent_step **ret)
{
    pid_t *stranger = &exits->strangers[(uint32_t)pid % STRANGERS];

    if (pid <= 1 || *stranger == pid)
        return OF_NOBODY;
    if (!agent_find_step(exits->agent, pid, ret))
        return NOT_KNOWN;
    if (*ret)
        return OF_A_STEP;
    *stranger = pid;
    return OF_NOBODY;
}

static enum whose find_step(struct exits *exits, const struct exit_record *record,
                            struct agent_step **ret)
{
    const struct process *process = processes_find(exits->agent->processes, pid_of(record));

    if (!process)
        process = processes_find(exits->agent->processes, record->parent);
    if (!process)
        return by_cgroup(exits, record->parent, ret);
    *ret = process->step;
    return OF_A_STEP;
}

/* Before 6.0 the kernel does not tell the process of a thread: any of the parent's children may be
 * it. */
static void read_by_thread(void *ctx, struct process *process)
{
    const struct exit_record *record = ctx;

    if (process->parent == record->parent)
        process->is_by_thread = true;
}

/* It may have been another program when it was last looked at. */
static void take_last_name(struct agent *agent, const struct exit_record *record,
                           struct process *process)
{
    if (!process->has_name || record->thread != process->pid)
        return;
    agent_name_process(agent, process, record->comm);
    agent_show_names(agent, process->step->job);
}

/* /proc/PID/io has what this thread did with the process's own from now on, and with its parent's.
 */
static void tell_processes(struct exits *exits, const struct exit_record *record,
                           struct agent_job *job)
{
    struct agent *agent = exits->agent;
    struct process *process = processes_find(agent->processes, pid_of(record));
    struct process *parent = processes_find(agent->processes, record->parent);

    if (parent)
        parent->is_by_thread = true;
    if (parent && parent->is_stepd)
        parent->step->has_lost_child = true;
    if (process) {
        process->parent = record->parent; /* its first may have ended before it */
        process->is_by_thread = true;
        process->exit_cpu_ns += record->cpu_ns;
        take_last_name(agent, record, process);
    } else if (agent->needs & USAGE_NAMES) {
        names_end(&job->names, names_place(&job->names, agent->tuning.max_names, record->comm),
                  record->cpu_ns);
        agent_show_names(agent, job); /* they may have moved */
    }
    if (!process && !record->process)
        processes_each(agent->processes, read_by_thread, (void *)record);
}

/* A child of its slurmstepd: what the job's directory says now is nearly its last word. */
static bool is_leader(struct exits *exits, const struct exit_record *record)
{
    const struct process *parent = processes_find(exits->agent->processes, record->parent);

    return !parent || parent->is_stepd;
}

/* The record has what was seen of it while it lived: there may be no other look before the sum. */
static void move_from_living(struct agent_step *step, struct process *process,
                             const struct io_use *ended)
{
    struct io_use rest = process->io; /* of its other threads */

    io_subtract(&rest, ended);
    io_subtract(&step->living, &process->io);
    io_add(&step->living, &rest);
    process->io = rest;
}

static void give(struct exits *exits, const struct exit_record *record, struct agent_step *step)
{
    struct process *process = processes_find(exits->agent->processes, pid_of(record));

    tell_processes(exits, record, step->job);
    exits->agent->use.exits++;
    step->job->has_lost_leader |= is_leader(exits, record);
    if (process && process->is_stepd)
        return;
    if (process)
        move_from_living(step, process, &record->io);
    io_add(&step->ended, &record->io);
    step->job->has_io = true;
}

static void drop_waiting(struct exits *exits, size_t i)
{
    exits->n_waiting--;
    memmove(&exits->waiting[i], &exits->waiting[i + 1],
            (exits->n_waiting - i) * sizeof(*exits->waiting));
}

/* Children of a process that has just been found out, and their children. */
static void give_children(struct exits *exits, pid_t parent, struct agent_step *step)
{
    for (size_t i = 0; i < exits->n_waiting;) {
        const struct exit_record record = exits->waiting[i].record;

        if (record.parent != parent) {
            i++;
            continue;
        }
        drop_waiting(exits, i);
        give(exits, &record, step);
        give_children(exits, pid_of(&record), step);
        i = 0;
    }
}

static void keep_waiting(struct exits *exits, const struct exit_record *record)
{
    if (!exits->waiting)
        exits->waiting = heap_array(WAITING, sizeof(*exits->waiting));
    if (exits->n_waiting == WAITING) {
        exits->agent->use.exits_unattributed++;
        drop_waiting(exits, 0);
    }
    exits->waiting[exits->n_waiting++] =
        (struct waiting){ .record = *record, .tick = exits->agent->use.ticks };
}

/* One that its parent has left to init or to another reaper, whoever that parent was: perhaps a
 * user's with a job. Who has it now is another user's, unlike the shell of one who has logged in.
 */
static bool is_orphan_of_job(const struct agent *agent, const struct exit_record *record)
{
    uint32_t uid;

    if (record->parent > 1 && proc_uid(agent->proc, record->parent, &uid) && uid == record->uid)
        return false;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        const struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (agent_job_is_live(job) && job->use.uid == record->uid)
            return true;
    }
    return false;
}

static void exited(void *ctx, const struct exit_record *record)
{
    struct exits *exits = ctx;
    struct agent_step *step;

    if (exits->agent->n_jobs == exits->agent->n_ended)
        return;
    switch (find_step(exits, record, &step)) {
    case OF_A_STEP:
        give(exits, record, step);
        give_children(exits, pid_of(record), step);
        break;
    case NOT_KNOWN:
        keep_waiting(exits, record);
        break;
    case OF_NOBODY:
        exits->agent->use.exits_unattributed += is_orphan_of_job(exits->agent, record);
        break;
    }
}

/* At once, but not again and again at a job that starts one task after another. */
static void look_at_few(const struct agent *agent, struct agent_job *job)
{
    const int64_t pause_ns = NS_PER_SEC / 2;
    int64_t at = job->looked_ns + pause_ns;

    if (at < agent->now)
        at = agent->now;
    if (job->look_ns > at)
        job->look_ns = at;
}

void exits_drain(struct exits *exits)
{
    struct agent *agent = exits->agent;

    taskstats_read(exits->taskstats, exited, exits);
    agent->use.exits_lost = taskstats_lost(exits->taskstats);
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (job->has_lost_leader && !job->use.has_ended) {
            agent->use.events++;
            agent_look_at_cgroup(agent, job);
            if (job->use.processes <= FEW_PROCESSES)
                look_at_few(agent, job);
        }
        job->has_lost_leader = false;
    }
}

void exits_settle(struct exits *exits)
{
    memset(exits->strangers, 0, sizeof(exits->strangers));
    for (size_t i = 0; i < exits->n_waiting;) {
        const struct waiting waiting = exits->waiting[i];
        const struct process *parent =
            processes_find(exits->agent->processes, waiting.record.parent);

        if (parent) {
            drop_waiting(exits, i);
            give(exits, &waiting.record, parent->step);
            give_children(exits, pid_of(&waiting.record), parent->step);
            i = 0;
        } else if (exits->agent->use.ticks > waiting.tick + WAIT_TICKS) {
            exits->agent->use.exits_unattributed++;
            drop_waiting(exits, i);
        } else {
            i++;
        }
    }
    if (!exits->n_waiting) {
        free(exits->waiting);
        exits->waiting = NULL;
    }
}
