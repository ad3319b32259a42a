/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every counter is the integral of a rate that is never negative, so that a plot of any two moments
 * agrees with what is told at the end. */
#include "source/sim_use.h"

#include "model/tres.h"
#include "source/sim_cluster.h"

#include <math.h>

/* How a job behaves. Ratios are of what it was allocated on a node. */
struct habit {
    uint32_t weight; /* of a hundred jobs, so many */
    struct {
        double least, most;
    } cpu, memory, gpu;
    double kernel;                   /* of its CPU time */
    double read_rate, write_rate;    /* bytes a second for each of its CPUs */
    bool has_one_core, has_one_node; /* it uses no more, whatever it was given */
    bool leaks;                      /* its memory grows as long as it runs */
};

static const struct habit habits[] = {
    { 52, { 0.82, 0.97 }, { 0.45, 0.85 }, { 0.70, 0.97 }, 0.03, 40e3, 60e3, false, false, false },
    { 12, { 0.90, 0.98 }, { 0.10, 0.40 }, { 0.40, 0.70 }, 0.02, 20e3, 10e3, true, false, false },
    { 12, { 0.75, 0.95 }, { 0.02, 0.09 }, { 0.50, 0.90 }, 0.03, 30e3, 20e3, false, false, false },
    { 8, { 0.10, 0.30 }, { 0.15, 0.40 }, { 0.00, 0.04 }, 0.08, 30e3, 10e3, false, false, false },
    { 6, { 0.70, 0.90 }, { 0.30, 0.60 }, { 0.60, 0.90 }, 0.04, 30e3, 30e3, false, true, false },
    { 5, { 0.60, 0.85 }, { 0.85, 0.98 }, { 0.50, 0.80 }, 0.06, 20e3, 20e3, false, false, true },
    { 5, { 0.20, 0.40 }, { 0.20, 0.50 }, { 0.10, 0.30 }, 0.35, 8e6, 5e6, false, false, false },
};

enum use_salt {
    USE_SALT_HABIT = 1000,
    USE_SALT_CPU,
    USE_SALT_MEMORY,
    USE_SALT_GPU,
    USE_SALT_PERIOD,
    USE_SALT_IO,
    USE_SALT_THREADS,
};

static const struct habit *habit_of(uint64_t key)
{
    uint64_t drawn = sim_pick(key, USE_SALT_HABIT, 100);
    const struct habit *habit = habits;

    while (drawn >= habit->weight)
        drawn -= (habit++)->weight;
    return habit;
}

/* least … most, the same for the same key. */
static double draw(uint64_t key, uint64_t salt, double least, double most)
{
    return least + (most - least) * (double)sim_pick(key, salt, 1 << 20) / (1 << 20);
}

/* What the moments of a job's life are told by. */
struct life {
    uint64_t key;    /* of the job on that node */
    double seconds;  /* since its start */
    double period;   /* of its ups and downs */
    double busy;     /* seconds of work at full pace: it takes a while to get going */
    double phase;    /* sine of where it is in its period */
    double integral; /* of that sine since the start, in seconds */
};

static const double get_going_seconds = 20;

static struct life life_of(uint64_t key, double seconds)
{
    struct life life = { .key = key, .seconds = seconds };
    double angle;

    life.period = draw(key, USE_SALT_PERIOD, 240, 1800);
    angle = 2 * M_PI * seconds / life.period;
    life.busy = seconds - get_going_seconds * (1 - exp(-seconds / get_going_seconds));
    life.phase = sin(angle);
    life.integral = life.period / (2 * M_PI) * (1 - cos(angle));
    return life;
}

static void use_cpus(const struct habit *habit, const struct life *life, double cpus,
                     struct sim_use *ret)
{
    double ratio = draw(life->key, USE_SALT_CPU, habit->cpu.least, habit->cpu.most);
    double swing = fmin(1 - ratio, ratio) / 2; /* never below 0, never above 1 */
    double busy = life->busy * ratio;

    if (habit->has_one_core && cpus > 1)
        cpus = 1;
    /* The swing begins when the work does. */
    if (life->seconds > 0)
        busy += swing * life->integral * life->busy / life->seconds;
    ret->cpu_seconds = fmin(busy, life->seconds) * cpus;
    ret->system_seconds = ret->cpu_seconds * habit->kernel;
    ret->user_seconds = ret->cpu_seconds - ret->system_seconds;
    ret->processes = 1 + (habit->has_one_core ? 0 : fmin(cpus, 64));
    ret->threads = ret->processes + (double)sim_pick(life->key, USE_SALT_THREADS, 8);
    ret->files = 6 + (double)sim_pick(life->key, USE_SALT_IO, 40);
}

static void use_memory(const struct habit *habit, const struct life *life, double bytes,
                       struct sim_use *ret)
{
    double ratio = draw(life->key, USE_SALT_MEMORY, habit->memory.least, habit->memory.most);
    double filled = 1 - exp(-life->seconds / (habit->leaks ? 7200 : 90));

    ret->memory_peak_bytes = floor(bytes * ratio * filled);
    ret->memory_bytes =
        habit->leaks ? ret->memory_peak_bytes
                     : floor(ret->memory_peak_bytes * (0.94 + 0.06 * life->phase * life->phase));
}

static void use_storage(const struct habit *habit, const struct life *life, double cpus,
                        struct sim_use *ret)
{
    double pace = draw(life->key, USE_SALT_IO, 0.5, 2);

    /* Input is read at the beginning, results are written all the while. */
    ret->read_bytes = floor(pace * habit->read_rate * cpus * life->busy +
                            pace * 2e8 * (1 - exp(-life->seconds / 60)));
    ret->written_bytes = floor(pace * habit->write_rate * cpus * life->busy);
}

static void use_gpus(const struct habit *habit, const struct life *life, size_t n,
                     struct sim_use *ret)
{
    ret->n_gpus = n < SIM_GPUS_MAX ? n : SIM_GPUS_MAX;
    for (size_t i = 0; i < ret->n_gpus; i++) {
        uint64_t key = sim_hash(life->key, i);
        double ratio = draw(key, USE_SALT_GPU, habit->gpu.least, habit->gpu.most);
        double going = life->seconds > 0 ? life->busy / life->seconds : 0;

        /* One core feeds one GPU: the others have nothing to do. */
        if (habit->has_one_core && i > 0)
            ratio = 0;
        ret->gpu[i].utilization = ratio * going * (0.9 + 0.1 * life->phase);
        ret->gpu[i].memory_bytes = floor(ratio > 0 ? going * ratio * 36e9 + 4e8 : 0);
        ret->gpu[i].power_watts = 55 + 260 * ret->gpu[i].utilization;
    }
}

static double seconds_of(const struct job *job, int64_t time)
{
    if (job->end_time > 0 && time > job->end_time)
        time = job->end_time;
    return job->start_time > 0 && time > job->start_time ? (double)(time - job->start_time) : 0;
}

void sim_use(const struct sim *sim, const struct job *job, struct str tres, size_t node,
             int64_t time, struct sim_use *ret)
{
    uint64_t key = sim_hash(sim_hash(sim->seed, job->id), (uint64_t)job->submit_time);
    const struct habit *habit = habit_of(key);
    double seconds = seconds_of(job, time);
    double nodes = sim_at_least_one(job->node_count);
    struct life life = life_of(sim_hash(key, node), seconds);
    struct tres told;

    *ret = (struct sim_use){ 0 };
    if (seconds <= 0 || job->state.base == JOB_PENDING)
        return;
    tres_parse(tres, &told);
    if (told.gpus != TRES_UNKNOWN)
        use_gpus(habit, &life, (size_t)((double)told.gpus / nodes), ret);
    if (habit->has_one_node && node > 0)
        return;
    use_cpus(habit, &life, job->cpus / nodes, ret);
    use_memory(habit, &life, (double)job->memory_bytes / nodes, ret);
    use_storage(habit, &life, job->cpus / nodes, ret);
    /* What it had when it was killed. */
    if (job->state.base == JOB_OUT_OF_MEMORY && job->end_time > 0 && time >= job->end_time)
        ret->memory_bytes = ret->memory_peak_bytes = (double)job->memory_bytes / nodes;
}
