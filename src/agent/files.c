/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of the files that are kept open for jobs. A job decides how many directories, steps and
 * processes it has, so each step, each job and all steps have a limit. The last quarter is for what
 * Slurm makes: the directories of jobs and their slurmstepds. Past a limit nothing is lost: files
 * are opened for each read, and ends of processes are noticed at ticks. */
#include "agent/agent.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

enum {
    JOBS_A_NODE = 8, /* that may reach their limits at the same time */
    STEPS_A_JOB = 2, /* likewise */
};

void agent_limit_files(struct agent *agent)
{
    uint64_t *hits = agent->use.file_limit_hits;
    size_t max = agent->config.max_files;

    agent->kept_files = (struct quota){ .max = max, .refusals = &hits[FILE_LIMIT_ALL] };
    agent->step_files = (struct quota){ .within = &agent->kept_files,
                                        .max = max / 4 * 3,
                                        .refusals = &hits[FILE_LIMIT_ALL] };
}

void agent_limit_job_files(struct agent *agent, struct agent_job *job)
{
    job->files = (struct quota){ .within = &agent->step_files,
                                 .max = agent->step_files.max / JOBS_A_NODE,
                                 .refusals = &agent->use.file_limit_hits[FILE_LIMIT_JOB] };
}

void agent_limit_step_files(struct agent *agent, struct agent_step *step)
{
    step->files = (struct quota){ .within = &step->job->files,
                                  .max = step->job->files.max / STEPS_A_JOB,
                                  .refusals = &agent->use.file_limit_hits[FILE_LIMIT_STEP] };
}

uint64_t agent_limit_hits(const struct agent *agent)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < FILE_LIMITS; i++)
        sum += agent->use.file_limit_hits[i];
    return sum;
}

void agent_tell_limit(struct agent *agent, struct agent_job *job)
{
    if (job->has_told_limit || agent->limit_told_tick == agent->use.ticks)
        return;
    job->has_told_limit = true;
    agent->limit_told_tick = agent->use.ticks;
    LOG(agent->config.log, LOG_WARN,
        "a job has reached its limit of open files; the other files of its cgroups are opened for "
        "each sample",
        LOG_STR("job", job->use.id), LOG_INT("open", job->files.n),
        LOG_INT("limit", job->files.max),
        LOG_STR("hint", "it has many steps, tasks or cgroups of its own; a higher LimitNOFILE= "
                        "raises all limits"));
}

int agent_watch_end(struct agent *agent, pid_t pid, enum agent_event event, struct quota *files)
{
    struct epoll_event wish = { .events = EPOLLIN,
                                .data.u64 = (uint64_t)event << 32 | (uint32_t)pid };
    int fd;

    if (agent->is_recorded || !quota_take(files, 1))
        return -1;
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &wish) < 0) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        quota_give(files, 1);
    return fd;
}

void agent_unwatch_end(struct agent *agent, struct process *process)
{
    if (process->pidfd < 0)
        return;
    close(process->pidfd); /* leaves the epoll with it */
    process->pidfd = -1;
    quota_give(process->is_stepd ? &agent->kept_files : &process->step->files, 1);
}
