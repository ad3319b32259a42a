/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the jobs on one node use. Filled by the agent at each of its ticks, read by the collectors
 * of src/collector/usage.h. A number that the kernel or Slurm does not give is MODEL_UNKNOWN_U64,
 * a ratio NAN: absent, never 0. */
#ifndef SONDE_MODEL_USAGE_H
#define SONDE_MODEL_USAGE_H

#include "base/users.h"
#include "model/job.h"
#include "model/lustre_use.h"
#include "model/profile.h"

enum {
    USAGE_ID = 32, /* bytes of a job's id, a step's or a node's name, with the NUL */
    USAGE_NODE = 65,
    USAGE_COMM = 16,    /* as the kernel keeps a process's name */
    USAGE_DEVICES = 16, /* block devices of one cgroup; more are left out and counted */
};

enum pressure {
    PRESSURE_CPU_SOME,
    PRESSURE_CPU_FULL,
    PRESSURE_MEMORY_SOME,
    PRESSURE_MEMORY_FULL,
    PRESSURE_IO_SOME,
    PRESSURE_IO_FULL,
    PRESSURES,
};

/* What a cgroup did to one block device. */
struct device_use {
    char name[32]; /* "sda", or "8:0" where the kernel does not tell */
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* What the kernel says of one cgroup: of a job, a step or a task. */
struct cgroup_use {
    uint64_t cpu_ns, cpu_user_ns, cpu_system_ns;
    uint64_t periods, throttled_periods, throttled_ns;
    uint64_t memory_bytes, memory_peak_bytes;
    uint64_t memory_limit_bytes; /* unknown: there is none */
    uint64_t anon_bytes, file_bytes, mapped_bytes, shmem_bytes, swap_bytes, kernel_bytes;
    uint64_t page_faults, major_page_faults;
    uint64_t limit_hits, oom_kills;
    uint64_t pressure_ns[PRESSURES];
    uint64_t pids, pids_peak;
    uint64_t cpus;     /* it may run on: of its cpuset; unknown without one */
    uint64_t *core_ns; /* by core, `n_cores` of them; owned by the cgroup's reader */
    size_t n_cores;
    uint64_t *core_set; /* bit i: core i is of its cpuset; (n_cores + 63) / 64 words, or NULL */
    struct device_use *devices; /* likewise owned by the reader */
    size_t n_devices;
};

/* What processes did, those that have ended included. */
struct io_use {
    uint64_t read_bytes, write_bytes; /* from and to storage */
    uint64_t read_chars, write_chars; /* asked for by system calls, the page cache included */
    uint64_t reads, writes;           /* system calls */
};

/* The processes of one job that have one name. */
struct name_use {
    char name[USAGE_COMM]; /* any bytes but NUL */
    uint64_t processes, threads, resident_bytes;
    uint64_t cpu_ns; /* of those that have ended too */
};

/* One GPU, or one instance of a GPU that is shared out (MIG). */
struct gpu_use {
    unsigned index;       /* of the GPU on this node, as Slurm and nvidia-smi number it */
    int instance;         /* MIG: of the GPU instance; -1: the whole GPU */
    char uuid[96];        /* "GPU-…", "MIG-…"; empty: unknown */
    char model[64];       /* "NVIDIA A100-SXM4-40GB" */
    char minor[8];        /* number of its device node, for device cgroups; empty: unknown */
    unsigned major;       /* of that device node: 195 (nvidia) or 226 (drm) */
    bool tells_processes; /* the driver has said which processes are on it, if any */
    double utilization;   /* ratios of the last sample period of its driver */
    double memory_utilization;
    uint64_t memory_used_bytes, memory_total_bytes;
    uint64_t power_mw, power_limit_mw, energy_mj;
    uint64_t temperature_celsius;
    uint64_t sm_clock_mhz, memory_clock_mhz;
    uint64_t ecc_corrected, ecc_uncorrected;
    uint64_t throttle_reasons; /* bits as NVML has them (nvmlClocksThrottleReason*) */
};

/* A process on a GPU. */
struct gpu_process {
    pid_t pid;
    uint32_t gpu;          /* index in usage.gpus */
    uint64_t memory_bytes; /* unknown where the driver does not say */
    double utilization;    /* NAN likewise */
};

/* A GPU that a job holds or uses. */
struct job_gpu {
    uint32_t gpu;       /* index in usage.gpus; MODEL_UNKNOWN_U32: not a GPU that the agent sees */
    char id[96];        /* as Slurm names it: an index ("0") or a UUID */
    uint64_t processes; /* of the job on it, now; unknown without NVML */
    uint64_t memory_bytes;
    double utilization;                  /* by the job's processes */
    char model[64];                      /* empty: the driver has not told */
    uint64_t memory_peak_bytes;          /* of the job's processes, in any look */
    uint64_t energy_begin_mj, energy_mj; /* of the whole GPU, in the first and the last look */
};

struct task_use {
    char id[USAGE_ID]; /* "0", "special" */
    struct cgroup_use cgroup;
    uint64_t processes;
};

struct step_use {
    char id[USAGE_ID]; /* "batch", "extern", "0" */
    struct cgroup_use cgroup;
    uint64_t processes, threads, resident_bytes;
    struct io_use io;
    struct task_use *tasks; /* filled only where a collector wants them */
    size_t n_tasks;
};

struct job_use {
    char id[USAGE_ID]; /* Slurm's job id, or another scheduler's */
    char
        node[USAGE_NODE]; /* the short host name, or the slurmd's name where several share a host */
    uint32_t uid;         /* MODEL_UNKNOWN_U32: not known yet */
    char user[USERS_NAME_MAX]; /* its name, or its number; empty: not known yet */
    char account[64]; /* as slurmstepd told the job's processes; empty: unknown, or they differ */
    bool has_ended;   /* these are its last counters; what is true of a moment is unknown */
    int64_t seen_wall_ns; /* when the agent first saw it */

    struct cgroup_use cgroup;
    double cpu_ratio; /* cores in use since the last tick; NAN: not known yet */
    uint64_t allocated_cpus, allocated_memory_bytes;
    uint64_t allocated_gpus; /* as Slurm told its processes; unknown: nobody could be asked */

    uint64_t processes, threads, resident_bytes;
    uint64_t descriptors;  /* open ones, of any kind */
    uint64_t files;        /* distinct regular files among them, by name */
    uint64_t uses_scratch; /* 0, or 1 for the rest of its life; unknown: nobody has looked */
    uint64_t processes_peak, threads_peak, files_peak; /* the most in any look */
    struct io_use io;
    struct name_use *names; /* at most the ceiling; the last may be "other". None where names must
                             * not be published (USAGE_NAMES) */
    size_t n_names;
    size_t n_names_folded; /* names that are part of "other" */

    struct job_gpu *gpus;
    size_t n_gpus;
    struct step_use *steps;
    size_t n_steps;
};

/* The step of a job on a node, as its slurmstepd calls it. */
struct profile_id {
    uint32_t job_id;
    char step[24]; /* "batch", "extern", "interactive", or its number */
    char node[256];
};

/* What else it says of the step; "": nothing. */
struct profile_labels {
    char user[64];
    char account[128], partition[64]; /* from the job's environment: a claim */
    char cluster[64];
};

struct profile_value {
    const struct profile_metric *metric;
    char *sensor; /* NULL: has none */
    double value;
};

/* What is told of a task, or under one of the kinds of things that the node has. */
struct profile_dataset {
    enum profile_kind kind;
    uint32_t task; /* of PROFILE_OF_TASK */
    uint32_t n_values;
    struct profile_value *values;
};

/* What Slurm's profiling says of a step. */
struct profile_use {
    struct profile_id id;
    struct profile_labels labels;
    bool has_ended; /* these are its last counters, as job_use.has_ended */
    struct profile_dataset *datasets;
    size_t n_datasets;
};

/* Why a message of the profile plugin was not taken. */
enum profile_refusal {
    PROFILE_FOREIGN, /* sent by a user who is neither root nor slurmd's */
    PROFILE_GARBLED,
    PROFILE_NEWER, /* of another version of the format */
    PROFILE_FULL,  /* past a ceiling, in part or as a whole */
    PROFILE_REFUSALS,
};

/* What the agent says of itself. */
/* Limits of the files that the agent keeps open for jobs. */
enum file_limit { FILE_LIMIT_STEP, FILE_LIMIT_JOB, FILE_LIMIT_ALL, FILE_LIMITS };

struct agent_use {
    uint64_t ticks, events;  /* samples taken at a tick, and because something happened */
    double tick_seconds;     /* what the last tick took */
    double tick_cpu_seconds; /* of it, CPU time */
    uint64_t jobs, ended_jobs, processes;
    uint64_t leftover_cgroups;
    uint64_t watched_directories;
    uint64_t directories_refused; /* past a ceiling, in the last walk and since */
    uint64_t open_files, open_files_limit;
    uint64_t file_limit_hits[FILE_LIMITS]; /* files that were not kept open, by the limit */
    uint64_t jobs_refused;                 /* past the ceiling on jobs */
    uint64_t processes_refused;            /* past the ceiling on processes, at the last tick */
    uint64_t scans, scan_overflows; /* whole walks; those that inotify's overflow made necessary */
    bool has_exit_records;          /* the kernel tells of processes that end (taskstats) */
    uint64_t exits, exits_lost, exits_unattributed;
    bool may_read_processes; /* /proc/PID/io and fd of others can be read */
    bool has_cgroups;
    bool hears_profiles; /* the plugin's messages; otherwise the next ones mean nothing */
    uint64_t profile_messages, profile_refused[PROFILE_REFUSALS];
    uint64_t profile_steps, profile_values; /* kept */
    int64_t sampled_wall_ns, sampled_mono_ns;
};

struct usage {
    struct job_use *const *jobs; /* in the order in which they were seen; ended ones too */
    size_t n_jobs;
    const struct gpu_use *gpus;
    size_t n_gpus;
    int gpu_up;       /* 1: the driver answers; 0: it does not; -1: there is none */
    const char *host; /* short host name */
    const struct profile_use *const *profiles;
    size_t n_profiles;
    const struct lustre_use *lustre; /* NULL: no look at targets, or an old one */
    int lustre_up; /* 1: all targets could be read; 0: not so; -1: there are none */
    struct agent_use agent;
};

/* All unknown. */
void cgroup_use_clear(struct cgroup_use *use);
void io_use_clear(struct io_use *use);
void io_add(struct io_use *to, const struct io_use *io);
void io_subtract(struct io_use *from, const struct io_use *io); /* not below 0 */
bool io_is_none(const struct io_use *io);
void job_use_clear(struct job_use *use);

#endif
