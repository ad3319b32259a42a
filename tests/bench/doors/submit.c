/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit run|wait COUNT: as root, gives a Slurm cluster jobs of many users, as different as those
 * of a real queue: slurm.h. Those that run are allocations, which need no slurmd to answer. */
#include <errno.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { USERS = 200, FIRST_UID = 3001, ACCOUNTS = 25 }; /* as tests/bench/doors/run makes them */

/* Large jobs wait more often than they run. */
static const struct shape {
    unsigned waiting, running; /* of a thousand jobs */
    const char *partition;
    uint32_t nodes, tasks, cpus_per_task;
    uint64_t memory; /* MiB of a CPU */
    const char *gpus, *features, *licenses;
} shapes[] = {
    { 400, 700, "batch", 1, 1, 1, 2000, NULL, NULL, NULL },
    { 200, 160, "batch", 1, 16, 1, 3800, NULL, "zen3", NULL },
    { 100, 40, "batch,long", 1, 64, 1, 3900, NULL, "zen3&ib", NULL },
    { 60, 8, "batch", 4, 256, 1, 3900, NULL, "ib", NULL },
    { 20, 2, "long", 16, 1024, 1, 3900, NULL, "zen3|zen4", NULL },
    { 60, 40, "batch", 1, 4, 4, 1000, NULL, NULL, "matlab:1" },
    { 100, 40, "accel", 1, 1, 16, 4000, "gres:gpu:a100:1", NULL, NULL },
    { 40, 8, "accel", 1, 4, 8, 8000, "gres:gpu:a100:4", NULL, NULL },
    { 20, 2, "accel", 2, 8, 8, 8000, "gres:gpu:a100:4", "zen4", NULL },
};

static const char *const names[] = {
    "relax_%" PRIu32,        "md-npt.%" PRIu32,      "train-resnet50", "jupyter",
    "align_sample_%" PRIu32, "interactive",          "wrf_d0%" PRIu32, "bash",
    "cfd mesh %" PRIu32,     "sweep-lr=1e-%" PRIu32,
};

static uint32_t state = 1;

static uint32_t pick(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)state * n >> 32);
}

static const struct shape *pick_shape(bool runs)
{
    const struct shape *shape = shapes;
    uint32_t at = pick(1000);

    for (;; shape++) {
        uint32_t share = runs ? shape->running : shape->waiting;

        if (at < share)
            return shape;
        at -= share;
    }
}

/* Texts of one job. libslurm does not change them, but says so by no const. */
struct texts {
    char name[40], account[16], partition[32], features[32], gpus[32], licenses[32], comment[64],
        depends[32];
};

static char *text(char *to, size_t room, const char *from)
{
    if (!from)
        return NULL;
    snprintf(to, room, "%s", from);
    return to;
}

static void describe(job_desc_msg_t *job, struct texts *texts, bool runs)
{
    const struct shape *shape = pick_shape(runs);
    uint32_t user = pick(USERS) * pick(USERS) / USERS; /* few users have most of the jobs */

    slurm_init_job_desc_msg(job);
    snprintf(texts->name, sizeof(texts->name), names[pick(COUNT(names))], pick(10000));
    snprintf(texts->account, sizeof(texts->account), "account%02" PRIu32, user % ACCOUNTS + 1);
    job->name = texts->name;
    job->account = texts->account;
    job->user_id = job->group_id = FIRST_UID + user;
    job->partition = text(texts->partition, sizeof(texts->partition), shape->partition);
    job->features = text(texts->features, sizeof(texts->features), shape->features);
    job->licenses = text(texts->licenses, sizeof(texts->licenses), shape->licenses);
    job->tres_per_node = text(texts->gpus, sizeof(texts->gpus), shape->gpus);
    if (pick(4) == 0)
        job->comment =
            text(texts->comment, sizeof(texts->comment), "campaign 7, run by the pipeline");
    job->min_nodes = job->max_nodes = shape->nodes;
    job->num_tasks = shape->tasks;
    job->cpus_per_task = (uint16_t)shape->cpus_per_task;
    job->min_cpus = shape->tasks * shape->cpus_per_task;
    job->pn_min_memory = shape->memory | MEM_PER_CPU;
    job->time_limit = 60 * (1 + pick(7 * 24)); /* minutes */
    job->work_dir = "/tmp";
}

static int allocate(job_desc_msg_t *job, uint32_t *ret_id)
{
    resource_allocation_response_msg_t *answer;

    job->partition[strcspn(job->partition, ",")] = '\0';
    job->licenses = NULL; /* there are too few for all */
    job->time_limit = 7 * 24 * 60;
    job->alloc_node = "sonde";
    if (slurm_allocate_resources(job, &answer) != 0)
        return -1;
    *ret_id = answer->job_id;
    slurm_free_resource_allocation_response_msg(answer);
    return 0;
}

static int submit(job_desc_msg_t *job, uint32_t *id, struct texts *texts)
{
    char *environment[] = { "PATH=/usr/bin:/bin", NULL };
    submit_response_msg_t *answer;

    if (*id && pick(10) == 0) {
        snprintf(texts->depends, sizeof(texts->depends), "afterok:%" PRIu32, *id);
        job->dependency = texts->depends;
    } else if (pick(10) == 0) {
        job->begin_time = time(NULL) + 30 * 24 * 3600;
    } else if (pick(20) == 0) {
        job->priority = 0; /* held */
    }
    job->script = "#!/bin/sh\nsleep 60\n";
    job->environment = environment;
    job->env_size = 1;
    job->std_in = job->std_out = job->std_err = "/dev/null";
    if (slurm_submit_batch_job(job, &answer) != 0)
        return -1;
    *id = answer->job_id;
    slurm_free_submit_response_response_msg(answer);
    return 0;
}

int main(int argc, char **argv)
{
    bool runs = argc == 3 && strcmp(argv[1], "run") == 0;
    unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    uint32_t id = 0;

    if (!count || (!runs && strcmp(argv[1], "wait") != 0)) {
        fprintf(stderr, "usage: submit run|wait COUNT\n");
        return 2;
    }
    slurm_init(NULL);
    for (unsigned long i = 0; i < count; i++) {
        struct texts texts;
        job_desc_msg_t job;

        describe(&job, &texts, runs);
        if ((runs ? allocate(&job, &id) : submit(&job, &id, &texts)) < 0) {
            fprintf(stderr, "submit: job %lu of %lu: %s\n", i + 1, count, slurm_strerror(errno));
            return 1;
        }
    }
    return 0;
}
