/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from squeue --json and slurmrestd's /jobs of any release: the JOB_INFO parser of Slurm's
 * data_parser plugins, and dump_job_info() of its older openapi plugins. */
#include "model/job_gpus.h"
#include "model/job_gres.h"
#include "model/tres.h"
#include "source/json_answers.h"
#include "source/json_table.h"

/* A job, with what its fields are found out from at the end. */
struct job_draft {
    struct job job;
    symbol array_tasks; /* "1-50%2" of tasks that wait together */
    symbol description; /* of the reason: squeue prints it in its place */
    symbol tres_requested;
    uint64_t memory_per_node, memory_per_cpu;
};

struct json_jobs {
    struct json_answer json;
    size_t room; /* of the section's array */
    struct job_draft draft;
    struct job_gpus_reader gpus;
    struct job_gres gres;
};

#define JOB(key, shape, field)   MEMBER(struct job_draft, key, shape, job.field)
#define DRAFT(key, shape, field) MEMBER(struct job_draft, key, shape, field)

static const struct json_member job_members[] = {
    JOB("job_id", SHAPE_U32, id),
    JOB("array_job_id", SHAPE_U32, array_job_id),
    JOB("array_task_id", SHAPE_U32, array_task_id),
    DRAFT("array_task_string", SHAPE_TEXT, array_tasks),
    JOB("het_job_id", SHAPE_U32, het_job_id),
    JOB("het_job_offset", SHAPE_U32, het_offset),
    JOB("user_id", SHAPE_U32, user_id),
    JOB("user_name", SHAPE_NAME, user),
    JOB("account", SHAPE_NAME, account),
    JOB("partition", SHAPE_NAME, partition),
    JOB("qos", SHAPE_NAME, qos),
    MEMBER_WORDS("job_state"),
    JOB("state_reason", SHAPE_TEXT, reason),
    DRAFT("state_description", SHAPE_TEXT, description),
    JOB("cpus", SHAPE_U32, cpus),
    JOB("node_count", SHAPE_U32, node_count),
    JOB("tres_alloc_str", SHAPE_TEXT, tres),
    DRAFT("tres_req_str", SHAPE_TEXT, tres_requested),
    DRAFT("memory_per_node", SHAPE_MEBIBYTES, memory_per_node),
    DRAFT("memory_per_cpu", SHAPE_MEBIBYTES, memory_per_cpu),
    JOB("nodes", SHAPE_TEXT, nodes),
    JOB("allocating_node", SHAPE_NAME, alloc_node),
    MEMBER_TEXTS("gres_detail"),
    JOB("resv_name", SHAPE_NAME, reservation),
    JOB("licenses", SHAPE_TEXT, licenses),
    JOB("features", SHAPE_TEXT, features),
    JOB("priority", SHAPE_U64, priority),
    JOB("time_limit", SHAPE_U32, time_limit_minutes),
    JOB("submit_time", SHAPE_TIME, submit_time),
    JOB("eligible_time", SHAPE_TIME, eligible_time),
    JOB("start_time", SHAPE_TIME, start_time),
    JOB("end_time", SHAPE_TIME, end_time),
    JOB("restart_cnt", SHAPE_U32, restarts),
    JOB("name", SHAPE_AS_IS, name),
};

static void *begin_job(struct answer *answer)
{
    struct json_jobs *jobs = (struct json_jobs *)answer;

    jobs->draft = (struct job_draft){
        .job = {
            .array_task_id = MODEL_UNKNOWN_U32,
            .tasks = 1,
            .user_id = MODEL_UNKNOWN_U32,
            .state = JOB_STATE_NONE,
            .cpus = MODEL_UNKNOWN_U32,
            .node_count = MODEL_UNKNOWN_U32,
            .memory_bytes = MODEL_UNKNOWN_U64,
            .time_limit_minutes = MODEL_UNKNOWN_U32,
            .priority = MODEL_UNKNOWN_U64,
        },
        .memory_per_node = MODEL_UNKNOWN_U64,
        .memory_per_cpu = MODEL_UNKNOWN_U64,
    };
    job_gpus_begin(&jobs->gpus);
    job_gres_begin(&jobs->gres, answer->section);
    return &jobs->draft;
}

/* One word of a state, of which what a newer Slurm has thought of leaves it as it was; or what the
 * job holds of one of its nodes. */
static void add_word(struct answer *answer, void *record, const struct json_member *member,
                     struct str word)
{
    struct json_jobs *jobs = (struct json_jobs *)answer;
    struct job_draft *draft = record;

    if (str_eq(member->key, STR("gres_detail"))) {
        job_gpus_detail(&jobs->gpus, word);
        job_gres_add(&jobs->gres, word);
    } else {
        job_state_add(&draft->job.state, word);
    }
}

static bool count_tasks(struct section *section, struct job_draft *draft)
{
    struct str tasks = section_text(section, draft->array_tasks);

    if (!tasks.n || draft->job.array_task_id != MODEL_UNKNOWN_U32)
        return true;
    section->jobs.n_cut += str_find_str(tasks, STR("...")) < tasks.n;
    return answer_array_tasks(tasks, &draft->job.tasks);
}

static uint64_t times(uint64_t amount, uint32_t count)
{
    uint64_t product;

    return amount && amount != MODEL_UNKNOWN_U64 && count != MODEL_UNKNOWN_U32 &&
                   !__builtin_mul_overflow(amount, count, &product)
               ? product
               : MODEL_UNKNOWN_U64;
}

/* What is allocated, or requested while nothing is; without either, what was asked for memory. Zero
 * stands for all that a node has. */
static void settle_resources(const struct section *section, struct job_draft *draft)
{
    struct job *job = &draft->job;
    struct tres tres;

    if (!job->tres)
        job->tres = draft->tres_requested;
    tres_parse(section_text(section, job->tres), &tres);
    if (tres.cpus < UINT32_MAX)
        job->cpus = (uint32_t)tres.cpus;
    if (tres.nodes < UINT32_MAX)
        job->node_count = (uint32_t)tres.nodes;
    job->memory_bytes = tres.memory_bytes;
    if (job->memory_bytes == TRES_UNKNOWN)
        job->memory_bytes = times(draft->memory_per_node, job->node_count);
    if (job->memory_bytes == MODEL_UNKNOWN_U64)
        job->memory_bytes = times(draft->memory_per_cpu, job->cpus);
}

static void end_job(struct answer *answer, void *record)
{
    struct json_jobs *all = (struct json_jobs *)answer;
    struct section *section = answer->section;
    struct jobs *jobs = &section->jobs;
    struct job_draft *draft = record;

    if (!draft->job.id) {
        answer_leave_out(answer, STR("a job without a job_id"));
        return;
    }
    if (!count_tasks(section, draft)) {
        answer_leave_out(answer, section_text(section, draft->array_tasks));
        return;
    }
    if (draft->description)
        draft->job.reason = draft->description;
    settle_resources(section, draft);
    draft->job.user =
        answer_user(answer, section_text(section, draft->job.user), draft->job.user_id);
    draft->job.gres = job_gres_end(&all->gres, &draft->job);
    if (!job_gpus_end(&all->gpus, &draft->job))
        answer_leave_out(answer, STR("a gres_detail that does not fit its job's nodes"));
    jobs->job = section_grow(section, jobs->job, jobs->n, &all->room, sizeof(*jobs->job));
    jobs->job[jobs->n++] = draft->job;
}

static const struct json_table job_table = {
    .members = job_members,
    .n = COUNT(job_members),
    .begin = begin_job,
    .word = add_word,
    .end = end_job,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("jobs", &job_table),
    MEMBER(struct json_answer, "last_update", SHAPE_TIME, last_update),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    job_gpus_init(&((struct json_jobs *)answer)->gpus, answer->section);
    json_answer_begin(answer, &document);
}

static void release(struct answer *answer)
{
    json_answer_free(answer);
    job_gpus_free(&((struct json_jobs *)answer)->gpus);
    arena_adopt(&answer->section->arena, answer->section->jobs.job);
}

const struct answer_class answer_json_jobs = {
    .size = sizeof(struct json_jobs),
    .begin = begin,
    .feed = json_answer_feed,
    .end = json_answer_end,
    .free = release,
};
