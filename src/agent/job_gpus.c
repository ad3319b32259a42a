/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which GPUs a job holds and uses: what its device cgroup lets it open (v1), what the driver says
 * of its processes, and, where neither tells, what its environment claims. Kept for its life. */
#include "agent/agent.h"

#include "base/arena.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>

enum {
    JOB_GPUS = 64,
    MOST_QUESTIONS = 8,
};

static struct job_gpu *find(struct agent_job *job, const char *id)
{
    for (size_t i = 0; i < job->use.n_gpus; i++)
        if (strcmp(job->use.gpus[i].id, id) == 0)
            return &job->use.gpus[i];
    return NULL;
}

static struct job_gpu *add(struct agent_job *job, const char *id)
{
    struct job_gpu *gpu = find(job, id);

    if (gpu || job->use.n_gpus == JOB_GPUS)
        return gpu;
    job->use.gpus =
        heap_grow(job->use.gpus, job->use.n_gpus, &job->n_gpu_room, sizeof(*job->use.gpus));
    gpu = &job->use.gpus[job->use.n_gpus++];
    *gpu = (struct job_gpu){
        .gpu = MODEL_UNKNOWN_U32,
        .processes = MODEL_UNKNOWN_U64,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .utilization = NAN,
        .memory_peak_bytes = MODEL_UNKNOWN_U64,
        .energy_begin_mj = MODEL_UNKNOWN_U64,
        .energy_mj = MODEL_UNKNOWN_U64,
    };
    snprintf(gpu->id, sizeof(gpu->id), "%s", id);
    return gpu;
}

/* "3", "0-3" or a UUID of printable characters; anything else is no GPU's name. */
static void claim(struct agent_job *job, struct str item)
{
    struct str last = item, first = str_cut(&last, '-');
    uint64_t from, to;
    char id[96];

    if (num_get_u64(first, &from) && (!last.p || num_get_u64(last, &to))) {
        for (to = last.p ? to : from; from <= to && from < GPUS_MAX; from++) {
            snprintf(id, sizeof(id), "%u", (unsigned)from);
            add(job, id);
        }
        return;
    }
    if (item.n >= sizeof(id) || (!str_starts(item, STR("GPU-")) && !str_starts(item, STR("MIG-"))))
        return;
    for (size_t i = 0; i < item.n; i++)
        if (item.p[i] <= ' ' || item.p[i] > '~')
            return;
    snprintf(id, sizeof(id), "%.*s", STR_ARG(item));
    add(job, id);
}

void agent_claim_gpus(struct agent_job *job, const char *list)
{
    job->has_told_gpus = true;
    for (struct str rest = str_of(list); rest.p && !job->has_true_gpus;)
        claim(job, str_trim(str_cut(&rest, ',')));
}

static void name_gpu(const struct gpu_use *gpu, char id[96])
{
    if (gpu->instance >= 0)
        snprintf(id, 96, "%s", gpu->uuid);
    else
        snprintf(id, 96, "%u", gpu->index);
}

static bool is_named(const struct gpu_use *gpu, const char *id)
{
    char index[16];

    snprintf(index, sizeof(index), "%u", gpu->index);
    return strcmp(gpu->uuid, id) == 0 || (gpu->instance < 0 && strcmp(index, id) == 0);
}

static int allows(struct agent *agent, const struct agent_job *job, const struct gpu_use *gpu)
{
    struct buf path;
    uint64_t minor;
    int answer;

    if (!job->dir || !num_get_u64(str_of(gpu->minor), &minor))
        return -1;
    buf_init(&path, 4096);
    cgroup_dir_path(job->dir, &path);
    answer = cgroup_allows_device(&agent->mounts, buf_str(&path), gpu->major, (unsigned)minor);
    buf_free(&path);
    return answer;
}

/* The device cgroup cannot be written by the job: where it tells, nothing else counts. Before Slurm
 * has written to it, it does not. */
static void ask_device_cgroup(struct agent *agent, struct agent_job *job,
                              const struct gpu_look *look)
{
    if (job->has_true_gpus || job->n_device_questions++ >= MOST_QUESTIONS)
        return;
    for (size_t i = 0; i < look->n_gpus; i++) {
        int answer = look->gpus[i].instance < 0 ? allows(agent, job, &look->gpus[i]) : -1;
        char id[96];

        if (answer < 0)
            continue;
        if (!job->has_true_gpus)
            job->use.n_gpus = 0;
        job->has_true_gpus = job->has_told_gpus = true;
        name_gpu(&look->gpus[i], id);
        if (answer)
            add(job, id);
    }
}

/* What is told of it when the job has ended. */
static void remember(struct job_gpu *gpu, const struct gpu_use *use)
{
    snprintf(gpu->model, sizeof(gpu->model), "%s", use->model);
    if (use->energy_mj == MODEL_UNKNOWN_U64)
        return;
    /* It begins anew with the driver. */
    if (gpu->energy_begin_mj == MODEL_UNKNOWN_U64 || use->energy_mj < gpu->energy_mj)
        gpu->energy_begin_mj = use->energy_mj;
    gpu->energy_mj = use->energy_mj;
}

static void resolve(struct agent_job *job, const struct gpu_look *look)
{
    for (size_t i = 0; i < job->use.n_gpus; i++) {
        struct job_gpu *gpu = &job->use.gpus[i];

        gpu->gpu = MODEL_UNKNOWN_U32;
        gpu->processes = MODEL_UNKNOWN_U64;
        gpu->memory_bytes = MODEL_UNKNOWN_U64;
        gpu->utilization = NAN;
        for (size_t k = 0; k < look->n_gpus; k++)
            if (is_named(&look->gpus[k], gpu->id)) {
                gpu->gpu = (uint32_t)k;
                /* By its number from now on, also while the driver does not answer. */
                name_gpu(&look->gpus[k], gpu->id);
                if (!job->use.has_ended)
                    remember(gpu, &look->gpus[k]);
                if (look->gpus[k].tells_processes)
                    gpu->processes = gpu->memory_bytes = 0;
            }
    }
}

/* Slurm may name one GPU by its number in one variable and by its UUID in another. */
static void merge(struct agent_job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < job->use.n_gpus; i++) {
        size_t k = 0;

        while (k < n && (job->use.gpus[i].gpu == MODEL_UNKNOWN_U32 ||
                         job->use.gpus[k].gpu != job->use.gpus[i].gpu))
            k++;
        if (k == n)
            job->use.gpus[n++] = job->use.gpus[i];
    }
    job->use.n_gpus = n;
}

static struct agent_job *job_of(struct agent *agent, pid_t pid)
{
    const struct process *process = processes_find(agent->processes, pid);
    struct agent_step *step = process ? process->step : NULL;

    if (!process && !agent_find_step(agent, pid, &step))
        return NULL;
    return step ? step->job : NULL;
}

static void add_process(struct agent *agent, const struct gpu_look *look,
                        const struct gpu_process *process)
{
    struct agent_job *job = job_of(agent, process->pid);
    struct job_gpu *gpu;
    char id[96];

    if (!job || process->gpu >= look->n_gpus)
        return;
    name_gpu(&look->gpus[process->gpu], id);
    gpu = find(job, id);
    for (size_t i = 0; i < job->use.n_gpus && !gpu; i++)
        if (job->use.gpus[i].gpu == process->gpu)
            gpu = &job->use.gpus[i];
    if (!gpu)
        gpu = add(job, id);
    if (!gpu)
        return;
    gpu->gpu = process->gpu;
    gpu->processes = gpu->processes == MODEL_UNKNOWN_U64 ? 1 : gpu->processes + 1;
    if (process->memory_bytes == MODEL_UNKNOWN_U64)
        gpu->memory_bytes = MODEL_UNKNOWN_U64;
    else if (gpu->memory_bytes != MODEL_UNKNOWN_U64)
        gpu->memory_bytes += process->memory_bytes;
    if (!isnan(process->utilization))
        gpu->utilization = (isnan(gpu->utilization) ? 0 : gpu->utilization) + process->utilization;
}

static void raise_peaks(struct agent_job *job)
{
    for (size_t i = 0; i < job->use.n_gpus; i++) {
        struct job_gpu *gpu = &job->use.gpus[i];

        if (gpu->memory_bytes != MODEL_UNKNOWN_U64 &&
            (gpu->memory_peak_bytes == MODEL_UNKNOWN_U64 ||
             gpu->memory_bytes > gpu->memory_peak_bytes))
            gpu->memory_peak_bytes = gpu->memory_bytes;
    }
}

void agent_use_gpus(struct agent *agent, const struct gpu_look *look)
{
    static const struct gpu_look nothing;

    if (!look)
        look = &nothing;
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link)) {
        struct agent_job *job = PART_OF(link, struct agent_job, link);

        if (agent_job_is_live(job) && look->n_gpus)
            ask_device_cgroup(agent, job, look);
        resolve(job, look);
        merge(job);
        if (job->use.n_gpus || job->has_told_gpus)
            job->use.allocated_gpus = job->use.n_gpus;
    }
    for (size_t i = 0; i < look->n_processes; i++)
        add_process(agent, look, &look->processes[i]);
    for (struct link *link = list_first(&agent->jobs); link; link = list_next(&agent->jobs, link))
        raise_peaks(PART_OF(link, struct agent_job, link));
}
