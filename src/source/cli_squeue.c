/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from squeue(1) with the fields of cli_format.h, framed by source/frame. */
#include "model/tres.h"
#include "model/units.h"
#include "source/cli.h"
#include "source/cli_format.h"

_Static_assert((int)SQUEUE_N_FIELDS <= FRAME_FIELDS_MAX, "more fields than a frame has");

struct squeue {
    struct framed framed;
    size_t room; /* of the section's array */
};

/* squeue tells an array in three ways: a task that has started has a number, tasks that wait
 * together have a list ("1-50%2"), and a job that is no array has "N/A". */
static bool read_array(struct job *job, const struct str *fields)
{
    struct str task = fields[SQUEUE_ARRAY_TASK_ID];
    uint64_t tasks;

    job->array_task_id = MODEL_UNKNOWN_U32;
    job->tasks = 1;
    if (units_absent(task))
        return true;
    job->array_job_id = answer_u32(fields[SQUEUE_ARRAY_JOB_ID], 0);
    job->array_task_id = answer_u32(task, MODEL_UNKNOWN_U32);
    if (job->array_task_id != MODEL_UNKNOWN_U32)
        return true;
    if (!units_array_tasks(task, &tasks) || tasks > UINT32_MAX)
        return false;
    job->tasks = (uint32_t)tasks;
    return true;
}

static void read_tres(struct job *job, const struct str *fields)
{
    struct tres tres;

    tres_parse(fields[SQUEUE_TRES_ALLOC], &tres);
    job->memory_bytes = tres.memory_bytes;
    job->cpus =
        tres.cpus < UINT32_MAX ? (uint32_t)tres.cpus : answer_count(fields[SQUEUE_NUM_CPUS]);
    job->node_count =
        tres.nodes < UINT32_MAX ? (uint32_t)tres.nodes : answer_count(fields[SQUEUE_NUM_NODES]);
}

static void read_texts(struct answer *answer, struct job *job, const struct str *fields)
{
    job->user = answer_user(answer, fields[SQUEUE_USER_NAME], job->user_id);
    job->account = answer_name(answer, fields[SQUEUE_ACCOUNT]);
    job->partition = answer_name(answer, fields[SQUEUE_PARTITION]);
    job->qos = answer_name(answer, fields[SQUEUE_QOS]);
    job->reason = answer_text(answer, fields[SQUEUE_REASON]);
    job->nodes = answer_text(answer, fields[SQUEUE_NODE_LIST]);
    job->alloc_node = answer_name(answer, fields[SQUEUE_ALLOC_NODE]);
    job->reservation = answer_name(answer, fields[SQUEUE_RESERVATION]);
    job->licenses = answer_text(answer, fields[SQUEUE_LICENSES]);
    job->features = answer_text(answer, fields[SQUEUE_FEATURE]);
    job->tres = answer_text(answer, fields[SQUEUE_TRES_ALLOC]);
    job->name = symbols_put(&answer->section->symbols, fields[SQUEUE_NAME]);
}

static void read_job(void *ctx, const struct str *fields)
{
    struct squeue *squeue = ctx;
    struct answer *answer = &squeue->framed.answer;
    struct jobs *jobs = &answer->section->jobs;
    struct job job = {
        .id = answer_u32(fields[SQUEUE_JOB_ID], 0),
        .het_job_id = answer_u32(fields[SQUEUE_HET_JOB_ID], 0),
        .het_offset = answer_u32(fields[SQUEUE_HET_JOB_OFFSET], 0),
        .user_id = answer_u32(fields[SQUEUE_USER_ID], MODEL_UNKNOWN_U32),
        .restarts = answer_u32(fields[SQUEUE_RESTART_COUNT], 0),
        .state = JOB_STATE_NONE,
        .priority = answer_u64(fields[SQUEUE_PRIORITY]),
        .time_limit_minutes = answer_limit_minutes(fields[SQUEUE_TIME_LIMIT]),
        .submit_time = answer_timestamp(fields[SQUEUE_SUBMIT_TIME]),
        .eligible_time = answer_timestamp(fields[SQUEUE_ELIGIBLE_TIME]),
        .start_time = answer_timestamp(fields[SQUEUE_START_TIME]),
        .end_time = answer_timestamp(fields[SQUEUE_END_TIME]),
    };

    if (job.id == 0 || !read_array(&job, fields)) {
        answer_leave_out(answer, fields[0]);
        return;
    }
    /* A word that a newer Slurm has thought of leaves the state unknown, and the job is there. */
    job_state_add(&job.state, fields[SQUEUE_STATE]);
    read_texts(answer, &job, fields);
    read_tres(&job, fields);
    jobs->job =
        section_grow(answer->section, jobs->job, jobs->n, &squeue->room, sizeof(*jobs->job));
    jobs->job[jobs->n++] = job;
}

static void begin(struct answer *answer)
{
    struct squeue *squeue = (struct squeue *)answer;

    frame_init(&squeue->framed.frame, SQUEUE_N_FIELDS, read_job, squeue);
}

static void put_format(const struct answer *answer, struct buf *to)
{
    framed_put_format(answer, squeue_fields, SQUEUE_N_FIELDS, to);
}

static void release(struct answer *answer)
{
    struct squeue *squeue = (struct squeue *)answer;

    frame_free(&squeue->framed.frame);
    arena_adopt(&answer->section->arena, answer->section->jobs.job);
}

const struct answer_class answer_squeue = {
    .size = sizeof(struct squeue),
    .begin = begin,
    .put_format = put_format,
    .feed = framed_feed,
    .end = framed_end,
    .free = release,
};
