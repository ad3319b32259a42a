/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the sampler share. All of it belongs to the sampler's thread. */
#ifndef SONDE_AGENT_AGENT_H
#define SONDE_AGENT_AGENT_H

#include "agent/names.h"
#include "agent/processes.h"
#include "agent/profiles.h"
#include "agent/sampler.h"
#include "base/list.h"
#include "source/cgroup.h"
#include "source/cgroup_tree.h"
#include "source/oom_notices.h"
#include "source/stepd.h"

struct exits;

/* Where the kernel counts these in the directory where they happen alone: those of a job are the
 * sum over its own and all below, those that have gone included. */
struct memory_events {
    uint64_t limit_hits, oom_kills;
};

struct agent_job {
    struct link link;
    struct job_use use;
    char sluid[USAGE_ID];   /* as its directory is called, where that is not its id; or empty */
    bool has_supervisor;    /* it lives as long as a slurmstepd of it does */
    bool is_proven;         /* one was seen */
    bool is_skipped;        /* its user is not to be looked at */
    bool is_over;           /* it has ended long ago: only its directory is left */
    struct cgroup_dir *dir; /* NULL: gone, or there are no cgroups */
    struct cgroup *cgroup;
    struct quota files; /* that are kept open for its steps */
    bool has_told_limit;
    struct list steps;
    struct sums past; /* of steps that have ended */
    struct memory_events own_events, below_events, past_events;
    bool has_events;                /* the kernel tells */
    bool has_run_out;               /* of memory: somebody was killed for it */
    int64_t seen_ns, ended_ns;      /* monotonic */
    int64_t looked_ns;              /* at its processes, the last time */
    int64_t look_ns, look_pause_ns; /* the next look between two ticks, and the pause after it */
    unsigned turn;                  /* ticks: what is costly is not looked at in every one */
    int64_t read_ns;                /* when its directory was last read */
    int64_t tick_ns;                /* when its CPU time was last compared, */
    uint64_t tick_cpu_ns;           /* and what it was */
    bool has_refused;               /* some of its processes are past the ceiling */
    bool has_cgroup_cpu;            /* otherwise its CPU time is summed over its processes */
    uint32_t round;                 /* the last in which it was looked at */
    bool has_lost_leader;           /* one of its tasks has just ended */
    bool has_io;                    /* the I/O of some process could be read */
    struct names names;
    uint64_t claimed_cpus;       /* as its environment says */
    bool has_false_account;      /* its processes do not agree */
    bool has_told_gpus;          /* it is known which it has, or that it has none */
    unsigned n_device_questions; /* to its device cgroup */
    bool has_true_gpus;          /* it has answered */
    size_t n_gpu_room;
    struct step_use *past_steps; /* that have ended, for whoever is told at its end */
    size_t n_past_steps, n_past_room;
    size_t n_past_left_out; /* past the ceiling */
};

struct agent_step {
    struct link link; /* among its job's */
    struct agent_job *job;
    struct step_use use;
    struct cgroup_dir *dir; /* NULL as a job's */
    struct cgroup *cgroup;  /* NULL: nobody wants to know */
    struct quota files;     /* that are kept open for it */
    pid_t stepd;            /* 0: not found yet, or ended */
    bool has_told;          /* the environment of one of its processes was read */
    uint8_t n_silent;       /* of those that had none: they were becoming another program */
    uint64_t heard_ticks;   /* processes older than this may have done things before records of it
                             * were listened to */
    struct io_use ended;    /* by exit records, and before the agent saw it */
    struct io_use living;   /* in the last look, or the one under way */
    struct sums total;
    struct sums whole;  /* by what is left to those who wait, and what was seen of the rest */
    struct sums grown;  /* in the look under way: of those that were known, */
    struct sums reaped; /* and what was left to its slurmstepd, so far */
    struct sums vanished, vanished_before; /* in it and the last one: somebody may inherit it */
    bool has_lost_child;                   /* the slurmstepd has, since it was looked at */
    size_t n_processes;                    /* that are known */
    struct memory_events past_events;      /* of tasks that have ended */
    struct oom_notices oom_notices;
};

/* Hangs on the directory of a task. */
struct agent_task {
    struct cgroup *cgroup;
    struct memory_events events; /* MODEL_UNKNOWN_U64 where the kernel does not tell */
    struct task_use *use;        /* NULL: nobody wants to know more */
};

struct agent {
    struct sampler_config config;
    struct sampler_tuning tuning;
    uint32_t *skipped;
    unsigned needs; /* enum usage_need: of the collectors that are on */
    struct cgroup_mounts mounts;
    enum cgroup_controller hierarchy; /* v1: whose directories are watched */
    struct cgroup_tree *tree;         /* NULL: there are no cgroups */
    struct quota kept_files;          /* all that are kept open for jobs */
    struct quota step_files;          /* within these, of all steps */
    uint64_t limit_told_tick;
    struct proc *proc;
    struct proc_files *files;
    struct processes *processes;
    struct exits *exits;       /* NULL: the kernel does not tell */
    struct profiles *profiles; /* NULL: nobody is heard */
    struct list jobs;          /* in the order in which they were seen */
    size_t n_jobs, n_ended;
    struct pid_list pids; /* room for one step's */
    uint32_t round;
    unsigned ends_to_watch; /* in this tick, of steps that were there before the agent */
    int epoll;
    int64_t now;      /* monotonic, of what is being done */
    bool is_by_stepd; /* jobs are found by their slurmstepd, for want of directories */
    bool is_recorded; /* the processes are not this host's: nobody can wait for their end */
    bool is_blind;    /* processes of others are hidden: nobody can tell a slurmstepd */
    bool may_read;    /* as agent_use.may_read_processes */
    struct agent_use use;
};

/* What an epoll event is about: the kind in the upper half, a process id in the lower. */
enum agent_event {
    EVENT_STOP = 1,
    EVENT_TREE,
    EVENT_EXITS,
    EVENT_STEPD,
    EVENT_LEADER,
    EVENT_PROFILE
};

/* jobs.c: jobs and steps come and go. */
extern const struct cgroup_tree_events agent_tree_events; /* ctx is the agent; copied */
struct agent_job *agent_job_begin(struct agent *agent, const struct cgroup_match *match,
                                  struct cgroup_dir *dir);
struct agent_step *agent_step_begin(struct agent *agent, struct agent_job *job, const char *id,
                                    struct cgroup_dir *dir);
void agent_look_soon(const struct agent *agent, struct agent_job *job);
void agent_step_end(struct agent *agent, struct agent_step *step);
void agent_job_end(struct agent *agent, struct agent_job *job); /* its last counters stay */
/* What was thought to have ended: what is told at its end takes the place of what was told. */
void agent_job_go_on(struct agent_job *job, struct agent_job *old);
void agent_job_free(struct agent *agent, struct agent_job *job);
struct agent_job *agent_job_find(struct agent *agent, const char *id, const char *node);
struct agent_step *agent_step_find(struct agent_job *job, const char *id);
/* An older run of the same job, kept for its last counters, would say other numbers under the same
 * labels. */
void agent_drop_namesake(struct agent *agent, const struct agent_job *of);
bool agent_job_is_live(const struct agent_job *job); /* to be looked at and shown */
bool agent_job_is_shown(const struct agent *agent, const struct agent_job *job); /* that, or its
                                                                                  * last counters */
bool agent_job_is_young(const struct agent *agent, const struct agent_job *job); /* looked at more
                                                                                  * than at ticks */
void agent_forget_unseen(struct agent *agent); /* of jobs looked at in this round */
void agent_give_up_use(struct process *process);
void agent_forget_process(struct agent *agent, struct process *process); /* it has ended */

/* identity.c: whose job it is. */
void agent_prove(struct agent *agent, struct agent_job *job);
void agent_find_by_stepd(struct agent *agent); /* looks at all processes of the host */

/* Whether a directory is called as that of the job is. */
bool agent_is_called(const struct agent *agent, const struct agent_job *job,
                     const struct cgroup_match *match);

/* The step of any process, by its cgroup; NULL: of none. False: it has gone, nobody can tell. */
bool agent_find_step(struct agent *agent, pid_t pid, struct agent_step **ret);
void agent_stepd_ended(struct agent *agent, pid_t pid);
void agent_check_stepds(struct agent *agent); /* those whose end the kernel does not tell */
void agent_identify(struct agent *agent, struct agent_step *step, const struct proc_stat *stat);
void agent_watch_leader(struct agent *agent, struct process *process); /* one that ends a task */
void agent_skip_users(struct agent *agent, struct agent_job *job);

/* directories.c: what the directories of a job, its steps and its tasks say. */
void agent_look_at_directories(struct agent *agent, struct agent_job *job, bool with_steps);
void agent_look_at_cgroup(struct agent *agent,
                          struct agent_job *job); /* all, where there are any */
void agent_look_at_task(struct agent *agent, struct agent_step *step, struct cgroup_dir *dir);
void agent_ask_for_notices(struct agent *agent, struct agent_step *step);
void agent_show_events(struct agent_job *job);
/* In its use, until a step comes or goes. */
void agent_show_steps(struct agent_job *job, bool is_local);
void agent_close_files(struct agent_job *job); /* the next look opens what it needs */

/* files.c: how many files are kept open for whom. */
void agent_limit_files(struct agent *agent);
void agent_limit_job_files(struct agent *agent, struct agent_job *job);
void agent_limit_step_files(struct agent *agent, struct agent_step *step);
uint64_t agent_limit_hits(const struct agent *agent);
/* Logs it once for each job, and one job in each tick. */
void agent_tell_limit(struct agent *agent, struct agent_job *job);
/* The end of a process as an epoll event; -1: cannot be watched. */
int agent_watch_end(struct agent *agent, pid_t pid, enum agent_event event, struct quota *files);
void agent_unwatch_end(struct agent *agent, struct process *process);

/* look.c: what a job uses now. */
void agent_look_at_job(struct agent *agent, struct agent_job *job, bool is_tick);
void agent_step_pids(struct agent *agent, struct agent_step *step); /* adds to agent->pids */
/* The name that it has now, whose the CPU time is that it uses from now on. */
void agent_name_process(struct agent *agent, struct process *process, const char *comm);
/* In its use, until there is another. */
void agent_show_names(const struct agent *agent, struct agent_job *job);
void agent_sum_up(struct agent *agent, struct agent_job *job);
void sums_add(struct sums *to, const struct sums *what);

/* leftovers.c: job directories, in one hierarchy or all. */
bool agent_has_scope(struct agent *agent, const char *mount); /* Slurm's own directory */
bool agent_has_missed(struct agent *agent,
                      const char *mount); /* that of a job that lives without */
void agent_count_leftovers(struct agent *agent);

/* job_gpus.c: which GPUs a job holds and uses. */
void agent_claim_gpus(struct agent_job *job, const char *list);
void agent_use_gpus(struct agent *agent, const struct gpu_look *look);

/* exits.c: what processes had used when they ended, by the kernel's records. */
struct exits *exits_new(struct agent *agent, struct err *err); /* NULL, and why */
struct exits *exits_free(struct exits *exits);
void exits_arm(struct exits *exits); /* an epoll event when there are some */
void exits_drain(struct exits *exits);
void exits_settle(struct exits *exits); /* at a tick: those whose parents are known by now */
uint64_t exits_began_ticks(const struct exits *exits); /* since boot: when they were first heard */
uint64_t exits_now_ticks(void);

#endif
