/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from a command of the site's own: the lines that prometheus-slurm-exporter asks squeue(1)
 * for (FOREIGN_SQUEUE), those of prometheus-cluster-exporter (owner_line_read), or squeue --json.
 */
#include "model/hostlist.h"
#include "model/units.h"
#include "source/cli.h"
#include "source/foreign.h"
#include "source/json_line.h"

/* In the order of FOREIGN_SQUEUE. */
enum {
    ACCOUNT,
    ID,
    END_TIME,
    USER,
    STATE,
    PARTITION,
    CPUS,
    MEMORY,
    ARRAY_TASKS,
    NODES_OR_REASON,
    FIELDS,
};

struct job_lines {
    struct lined lined;
    struct json_line form;
    size_t room;      /* of the section's array */
    bool takes_words; /* also lines of an id, an account and a user */
};

/* With squeue -r each task has a line and a number of its own, without it those that wait together
 * have a list ("1-50%2"). Only of these is the id known to be the array's. */
static bool read_array(struct job *job, struct str field)
{
    job->array_task_id = MODEL_UNKNOWN_U32;
    job->tasks = 1;
    if (units_absent(field))
        return true;
    job->array_task_id = answer_u32(field, MODEL_UNKNOWN_U32);
    if (job->array_task_id != MODEL_UNKNOWN_U32)
        return true;
    if (!answer_array_tasks(field, &job->tasks))
        return false;
    job->array_job_id = job->id;
    return true;
}

/* squeue %R: nodes, or a reason in parentheses, which may be of a job that has failed. What waits
 * has no nodes: a format of the site's own may tell its reason without them. */
static void read_nodes_or_reason(struct answer *answer, struct job *job, struct str field)
{
    uint64_t nodes;

    job->node_count = MODEL_UNKNOWN_U32;
    if (units_absent(field))
        return;
    if (field.p[0] == '(') {
        field = str_skip(field, 1);
        field.n -= str_ends(field, STR(")"));
        job->reason = answer_text(answer, field);
        return;
    }
    if (job->state.base == JOB_PENDING) {
        job->reason = answer_text(answer, field);
        return;
    }
    job->nodes = answer_text(answer, field);
    if (hostlist_count(field, &nodes, NULL) == 0 && nodes < UINT32_MAX)
        job->node_count = (uint32_t)nodes;
}

/* squeue %m: what a node or a CPU must have. Which of them it is only some releases tell; without
 * that it is one node's. "0" stands for all that the node has. */
static uint64_t read_memory(const struct job *job, struct str field)
{
    uint32_t count = 1;
    uint64_t bytes;
    char per;

    if (!units_memory(field, 1 << 20, &bytes, &per) || bytes == 0)
        return MODEL_UNKNOWN_U64;
    if (per == 'c')
        count = job->cpus;
    else if (per == 'n' && job->node_count != MODEL_UNKNOWN_U32)
        count = job->node_count;
    return count != MODEL_UNKNOWN_U32 && !__builtin_mul_overflow(bytes, count, &bytes)
               ? bytes
               : MODEL_UNKNOWN_U64;
}

static void add_job(struct job_lines *all, const struct job *job)
{
    struct jobs *jobs = &all->lined.answer.section->jobs;

    jobs->job =
        section_grow(all->lined.answer.section, jobs->job, jobs->n, &all->room, sizeof(*jobs->job));
    jobs->job[jobs->n++] = *job;
}

static bool read_job(struct answer *answer, const struct str *fields, struct job *job)
{
    *job = (struct job){
        .id = answer_u32(fields[ID], 0),
        .user_id = MODEL_UNKNOWN_U32,
        .state = JOB_STATE_NONE,
        .cpus = answer_count(fields[CPUS]),
        .time_limit_minutes = MODEL_UNKNOWN_U32,
        .priority = MODEL_UNKNOWN_U64,
        .end_time = answer_timestamp(fields[END_TIME]),
    };
    if (job->id == 0 || (fields[CPUS].n && job->cpus == MODEL_UNKNOWN_U32) ||
        !read_array(job, fields[ARRAY_TASKS]))
        return false;
    /* A word that a newer Slurm has thought of leaves the state unknown, and the job is there. */
    job_state_add(&job->state, fields[STATE]);
    job->user = answer_name(answer, fields[USER]);
    job->account = answer_name(answer, fields[ACCOUNT]);
    job->partition = answer_name(answer, fields[PARTITION]);
    read_nodes_or_reason(answer, job, fields[NODES_OR_REASON]);
    job->memory_bytes = read_memory(job, fields[MEMORY]);
    return true;
}

static void read_line(void *ctx, struct str line)
{
    struct job_lines *all = ctx;
    struct str fields[FIELDS];
    struct job job;

    line = str_trim(line);
    if (!line.n)
        return;
    if (line.p[0] == '{'
            ? json_line_read(&all->form, line, fields) && read_job(&all->lined.answer, fields, &job)
            : all->takes_words && owner_line_read(&all->lined.answer, line, &job))
        add_job(all, &job);
    else
        answer_leave_out(&all->lined.answer, line);
}

static void begin_lines(struct answer *answer)
{
    struct job_lines *all = (struct job_lines *)answer;

    lined_begin(answer, read_line);
    json_line_init(&all->form, STR(FOREIGN_SQUEUE));
    answer->section->jobs.lacks_features = true;
    answer->section->jobs.lacks_qos = true;
}

static int end_lines(struct answer *answer, struct err *err)
{
    return lined_end(answer, &answer->section->jobs.n, err);
}

static void free_lines(struct answer *answer)
{
    struct job_lines *all = (struct job_lines *)answer;

    lined_free(answer);
    json_line_free(&all->form);
    arena_adopt(&answer->section->arena, answer->section->jobs.job);
}

static const struct answer_class job_lines = {
    .size = sizeof(struct job_lines),
    .begin = begin_lines,
    .feed = lined_feed,
    .end = end_lines,
    .free = free_lines,
};

static void begin_owner_lines(struct answer *answer)
{
    begin_lines(answer);
    ((struct job_lines *)answer)->takes_words = true;
}

static const struct answer_class owner_lines = {
    .size = sizeof(struct job_lines),
    .begin = begin_owner_lines,
    .feed = lined_feed,
    .end = end_lines,
    .free = free_lines,
};

static void begin(struct answer *answer)
{
    foreign_begin(answer, &job_lines, &answer_json_jobs);
}

static void begin_owners(struct answer *answer)
{
    foreign_begin(answer, &owner_lines, &answer_json_jobs);
}

const struct answer_class answer_foreign_jobs = FOREIGN_CLASS(begin);
const struct answer_class answer_foreign_owners = FOREIGN_CLASS(begin_owners);
