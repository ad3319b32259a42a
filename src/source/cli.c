/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm through the text of its commands: squeue(1) and sinfo(1), with the fields of cli_format.h,
 * framed by source/frame. */
#include "base/num.h"
#include "base/spawn.h"
#include "model/tres.h"
#include "model/units.h"
#include "source/cli_format.h"
#include "source/frame.h"
#include "source/source.h"

#include <math.h>

/* One of Slurm's commands as the settings name it. */
struct command {
    char **words; /* one heap block */
    pid_t stuck;  /* see base/spawn.h */
};

struct cli {
    struct source source;
    struct command squeue, sinfo;
    size_t max_output;
};

_Static_assert((int)SQUEUE_N_FIELDS <= FRAME_FIELDS_MAX && (int)SINFO_N_FIELDS <= FRAME_FIELDS_MAX,
               "a record has more fields than a frame");

/* What a record is read into. */
struct reading {
    struct frame frame;
    struct section *section;
    size_t n_room;         /* of the section's array */
    struct map nodes;      /* of sinfo: name of a node to its index + 1 */
    struct map partitions; /* likewise */
    struct arena names;
    struct pair {
        uint32_t node, partition;
    } * pairs; /* node is in partition, in the order told */
    size_t n_pairs, pairs_room;
};

static symbol text(struct reading *reading, struct str field)
{
    return units_absent(field) ? 0 : symbols_put(&reading->section->symbols, field);
}

/* Of something that somebody has named: a user may be called none, a partition unknown. */
static bool is_nameless(struct str field)
{
    return !field.n || str_eq(field, STR("(null)")) || str_eq(field, STR("N/A"));
}

static symbol name(struct reading *reading, struct str field)
{
    return is_nameless(field) ? 0 : symbols_put(&reading->section->symbols, field);
}

static void leave_out(struct reading *reading, const struct str *fields)
{
    struct section *section = reading->section;

    if (!section->skipped++)
        section->skipped_example = arena_str(&section->arena, str_head(fields[0], 60));
}

static uint32_t u32(struct str field, uint32_t otherwise)
{
    uint64_t value;

    return num_get_u64(field, &value) && value < UINT32_MAX ? (uint32_t)value : otherwise;
}

static uint32_t count(struct str field)
{
    uint64_t value;

    return units_count(field, &value) && value < UINT32_MAX ? (uint32_t)value : MODEL_UNKNOWN_U32;
}

static int64_t timestamp(struct str field)
{
    int64_t seconds;

    return units_timestamp(field, &seconds) ? seconds : 0;
}

static uint32_t limit_minutes(struct str field)
{
    uint64_t seconds;

    return units_time_limit(field, &seconds) && seconds != UNITS_UNLIMITED &&
                   seconds / 60 < UINT32_MAX
               ? (uint32_t)(seconds / 60)
               : MODEL_UNKNOWN_U32;
}

static uint64_t mebibytes(struct str field)
{
    uint64_t bytes;

    return units_memory(field, 1 << 20, &bytes, NULL) ? bytes : MODEL_UNKNOWN_U64;
}

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
    job->array_job_id = u32(fields[SQUEUE_ARRAY_JOB_ID], 0);
    job->array_task_id = u32(task, MODEL_UNKNOWN_U32);
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
    job->cpus = tres.cpus < UINT32_MAX ? (uint32_t)tres.cpus : count(fields[SQUEUE_NUM_CPUS]);
    job->node_count =
        tres.nodes < UINT32_MAX ? (uint32_t)tres.nodes : count(fields[SQUEUE_NUM_NODES]);
}

static void read_job(void *ctx, const struct str *fields)
{
    struct reading *reading = ctx;
    struct jobs *jobs = &reading->section->jobs;
    uint64_t priority;
    struct job job = {
        .id = u32(fields[SQUEUE_JOB_ID], 0),
        .het_job_id = u32(fields[SQUEUE_HET_JOB_ID], 0),
        .het_offset = u32(fields[SQUEUE_HET_JOB_OFFSET], 0),
        .user_id = u32(fields[SQUEUE_USER_ID], MODEL_UNKNOWN_U32),
        .restarts = u32(fields[SQUEUE_RESTART_COUNT], 0),
        .state = JOB_STATE_NONE,
    };

    if (job.id == 0 || !read_array(&job, fields)) {
        leave_out(reading, fields);
        return;
    }
    /* A word that a newer Slurm has thought of leaves the state unknown, and the job is there. */
    job_state_add(&job.state, fields[SQUEUE_STATE]);
    job.user = name(reading, is_nameless(fields[SQUEUE_USER_NAME]) ? fields[SQUEUE_USER_ID]
                                                                   : fields[SQUEUE_USER_NAME]);
    job.account = name(reading, fields[SQUEUE_ACCOUNT]);
    job.partition = name(reading, fields[SQUEUE_PARTITION]);
    job.qos = name(reading, fields[SQUEUE_QOS]);
    job.reason = text(reading, fields[SQUEUE_REASON]);
    job.nodes = text(reading, fields[SQUEUE_NODE_LIST]);
    job.reservation = name(reading, fields[SQUEUE_RESERVATION]);
    job.licenses = text(reading, fields[SQUEUE_LICENSES]);
    job.features = text(reading, fields[SQUEUE_FEATURE]);
    job.tres = text(reading, fields[SQUEUE_TRES_ALLOC]);
    job.name = symbols_put(&reading->section->symbols, fields[SQUEUE_NAME]);
    read_tres(&job, fields);
    job.priority = num_get_u64(fields[SQUEUE_PRIORITY], &priority) ? priority : MODEL_UNKNOWN_U64;
    job.time_limit_minutes = limit_minutes(fields[SQUEUE_TIME_LIMIT]);
    job.submit_time = timestamp(fields[SQUEUE_SUBMIT_TIME]);
    job.eligible_time = timestamp(fields[SQUEUE_ELIGIBLE_TIME]);
    job.start_time = timestamp(fields[SQUEUE_START_TIME]);
    job.end_time = timestamp(fields[SQUEUE_END_TIME]);
    jobs->job = heap_grow(jobs->job, jobs->n, &reading->n_room, sizeof(*jobs->job));
    jobs->job[jobs->n++] = job;
}

static void read_cpus(struct node *node, struct str field)
{
    uint64_t aiot[4];

    node->cpus = node->cpus_alloc = node->cpus_idle = node->cpus_other = MODEL_UNKNOWN_U32;
    if (units_aiot(field, aiot) && aiot[3] < UINT32_MAX) {
        node->cpus_alloc = (uint32_t)aiot[0];
        node->cpus_idle = (uint32_t)aiot[1];
        node->cpus_other = (uint32_t)aiot[2];
        node->cpus = (uint32_t)aiot[3];
    }
}

static void add_node(struct reading *reading, const struct str *fields, struct node_state state)
{
    struct nodes *nodes = &reading->section->nodes;
    struct node node = {
        .name = name(reading, fields[SINFO_NODE]),
        .state = state,
        .memory_bytes = mebibytes(fields[SINFO_MEMORY]),
        .memory_alloc_bytes = mebibytes(fields[SINFO_ALLOC_MEMORY]),
        .memory_free_bytes = mebibytes(fields[SINFO_FREE_MEMORY]),
        .gres = text(reading, fields[SINFO_GRES]),
        .gres_used = text(reading, fields[SINFO_GRES_USED]),
        .features = text(reading, fields[SINFO_FEATURES]),
        .version = text(reading, fields[SINFO_VERSION]),
        .reason = text(reading, fields[SINFO_REASON]),
        .reason_user = text(reading, fields[SINFO_REASON_USER]),
        .reason_time = timestamp(fields[SINFO_REASON_TIME]),
        .weight = u32(fields[SINFO_WEIGHT], MODEL_UNKNOWN_U32),
    };

    read_cpus(&node, fields[SINFO_CPUS]);
    if (!num_get_double(fields[SINFO_CPU_LOAD], &node.cpu_load))
        node.cpu_load = NAN;
    nodes->node = heap_grow(nodes->node, nodes->n, &reading->n_room, sizeof(*nodes->node));
    nodes->node[nodes->n++] = node;
}

static void add_partition(struct reading *reading, struct str partition, bool is_default,
                          const struct str *fields)
{
    struct nodes *nodes = &reading->section->nodes;

    /* There are few: growing by one is cheap enough. */
    nodes->partition =
        heap_resize(nodes->partition, nodes->n_partitions + 1, sizeof(*nodes->partition));
    nodes->partition[nodes->n_partitions++] = (struct partition){
        .name = name(reading, partition),
        .is_default = is_default,
        .is_up = str_eq_nocase(fields[SINFO_AVAILABLE], STR("up")),
        .time_limit_minutes = limit_minutes(fields[SINFO_TIME_LIMIT]),
    };
}

static void add_pair(struct reading *reading, uint32_t node, uint32_t partition)
{
    reading->pairs =
        heap_grow(reading->pairs, reading->n_pairs, &reading->pairs_room, sizeof(*reading->pairs));
    reading->pairs[reading->n_pairs++] = (struct pair){ node, partition };
}

/* One row of sinfo -N: a node in one of its partitions. */
static void read_node(void *ctx, const struct str *fields)
{
    struct reading *reading = ctx;
    struct nodes *nodes = &reading->section->nodes;
    struct str partition = fields[SINFO_PARTITION];
    bool is_default = str_ends(partition, STR("*"));
    struct node_state state;
    size_t node_index, partition_index;

    if (is_nameless(fields[SINFO_NODE])) {
        leave_out(reading, fields);
        return;
    }
    /* A flag that a newer Slurm has thought of is left out, and the node is there. */
    node_state_parse(fields[SINFO_STATE], &state);
    node_index = map_index(&reading->nodes, fields[SINFO_NODE]);
    if (node_index == nodes->n)
        add_node(reading, fields, state);
    partition.n -= is_default;
    if (is_nameless(partition))
        return;
    partition_index = map_index(&reading->partitions, partition);
    if (partition_index == nodes->n_partitions)
        add_partition(reading, partition, is_default, fields);
    add_pair(reading, (uint32_t)node_index, (uint32_t)partition_index);
}

/* Turns the pairs into a run of partitions for each node (a counting sort). */
static void build_membership(struct reading *reading)
{
    struct nodes *nodes = &reading->section->nodes;
    uint32_t next = 0;

    nodes->membership = ARENA_ARRAY(&reading->section->arena, uint32_t, reading->n_pairs);
    nodes->n_membership = reading->n_pairs;
    for (size_t i = 0; i < reading->n_pairs; i++)
        nodes->node[reading->pairs[i].node].n_partitions++;
    for (size_t i = 0; i < nodes->n; i++) {
        nodes->node[i].first_partition = next;
        next += nodes->node[i].n_partitions;
        nodes->node[i].n_partitions = 0;
    }
    for (size_t i = 0; i < reading->n_pairs; i++) {
        struct node *node = &nodes->node[reading->pairs[i].node];

        nodes->membership[node->first_partition + node->n_partitions++] =
            reading->pairs[i].partition;
    }
}

static int feed(void *ctx, struct str piece, struct err *err)
{
    struct reading *reading = ctx;

    return frame_feed(&reading->frame, piece, err);
}

/* "JobID:TOKEN,ArrayJobID:TOKEN,…" */
static void put_format(struct buf *to, const char *const *fields, size_t n, const char *token)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(to, "%s%s:%s", i ? "," : "", fields[i], token);
}

/* The words of `words`, then `more`, ended by NULL. */
static const char **join_argv(char *const *words, const char *const *more)
{
    const char **argv;
    size_t n = 0, n_more = 0;

    while (words[n])
        n++;
    while (more[n_more])
        n_more++;
    argv = heap_array(n + n_more + 1, sizeof(*argv));
    memcpy(argv, words, n * sizeof(*argv));
    memcpy(argv + n, more, (n_more + 1) * sizeof(*argv));
    return argv;
}

/* Says what the administrator can do about it. */
static void explain(int code, const char *command, const struct spawn *spawn, int64_t began,
                    struct err *err)
{
    if (code == -EBADMSG)
        err_prefix(err, "cannot read what %s printed", command);
    else if (code == -ETIMEDOUT)
        err_prefix(err, "no answer within --slurm.timeout (%d s), is slurmctld busy or down?",
                   (int)((spawn->deadline_ns - began + NS_PER_SEC - 1) / NS_PER_SEC));
    else if (code == -EFBIG)
        err_prefix(err, "if the cluster is that large, raise --slurm.max-answer");
}

/* Runs the command and reads its records. Nothing of our user's own SQUEUE_ and SINFO_ settings may
 * change what it prints. */
static int run(struct cli *cli, struct command *command, const char *const *flags,
               const char *format_variable, struct reading *reading, int64_t deadline_ns,
               char ret_warning[SOURCE_WARNING], struct err *err)
{
    const char *const env[] = { "SQUEUE_*", "SINFO_*", "SLURM_TIME_FORMAT=%s", format_variable,
                                NULL };
    const char **argv = join_argv(command->words, flags);
    const struct spawn spawn = {
        .argv = argv,
        .env = env,
        .deadline_ns = deadline_ns,
        .max_output = cli->max_output,
        .cancelled = &cli->source.cancelled,
        .stuck = &command->stuck,
        .sink = feed,
        .ctx = reading,
    };
    int64_t began = clock_mono(&clock_real);
    struct spawn_result result;
    int code = spawn_run(&spawn, &result, err);

    if (code == 0)
        code = frame_finish(&reading->frame, err);
    if (code < 0)
        explain(code, argv[0], &spawn, began, err);
    reading->section->bytes_read = result.output_bytes;
    reading->section->skipped += reading->frame.records_skipped;
    snprintf(ret_warning, SOURCE_WARNING, "%s", code == 0 ? result.warning : "");
    free(argv);
    return code;
}

/* A job's owner decides its name, and can see the arguments of every process on this host. So that
 * the token stays unknown until squeue has asked for the names, it is told the format by its
 * environment, which only we and root can read. */
static int read_jobs(struct cli *cli, struct reading *reading, int64_t deadline_ns,
                     char ret_warning[SOURCE_WARNING], struct err *err)
{
    /* Each task of an array that waits has a reason of its own; without --array they are told as
     * one, with the reasons of all. */
    static const char *const flags[] = { "--noheader", "--all", "--states=all", "--array", NULL };
    struct buf format;
    int code;

    frame_init(&reading->frame, SQUEUE_N_FIELDS, read_job, reading);
    buf_init(&format, 8192);
    buf_text(&format, "SQUEUE_FORMAT2=");
    put_format(&format, squeue_fields, SQUEUE_N_FIELDS, reading->frame.token);
    code = run(cli, &cli->squeue, flags, format.p, reading, deadline_ns, ret_warning, err);
    buf_free(&format);
    arena_adopt(&reading->section->arena, reading->section->jobs.job);
    return code;
}

/* sinfo takes no format from its environment; what it prints is written by administrators only. */
static int read_nodes(struct cli *cli, struct reading *reading, int64_t deadline_ns,
                      char ret_warning[SOURCE_WARNING], struct err *err)
{
    const char *flags[] = { "--noheader", "--all", "--Node", "--Format", NULL, NULL };
    struct buf format;
    int code;

    frame_init(&reading->frame, SINFO_N_FIELDS, read_node, reading);
    map_init(&reading->nodes, &reading->names);
    map_init(&reading->partitions, &reading->names);
    buf_init(&format, 8192);
    put_format(&format, sinfo_fields, SINFO_N_FIELDS, reading->frame.token);
    flags[4] = format.p;
    code = run(cli, &cli->sinfo, flags, NULL, reading, deadline_ns, ret_warning, err);
    if (code == 0)
        build_membership(reading);
    arena_adopt(&reading->section->arena, reading->section->nodes.node);
    arena_adopt(&reading->section->arena, reading->section->nodes.partition);
    buf_free(&format);
    map_free(&reading->nodes);
    map_free(&reading->partitions);
    arena_clear(&reading->names);
    free(reading->pairs);
    return code;
}

static int cli_read(struct source *source, enum kind kind, int64_t deadline_ns,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct cli *cli = (struct cli *)source;
    struct reading reading = { .section = section_new(kind) };
    int code = kind == KIND_JOBS ? read_jobs(cli, &reading, deadline_ns, ret_warning, err)
                                 : read_nodes(cli, &reading, deadline_ns, ret_warning, err);

    frame_free(&reading.frame);
    if (code < 0) {
        section_unref(reading.section);
        return code;
    }
    *ret = reading.section;
    return 0;
}

static int cli_probe(const struct source *source, struct err *err)
{
    const struct cli *cli = (const struct cli *)source;
    const char *squeue = cli->squeue.words[0], *sinfo = cli->sinfo.words[0];

    if (spawn_exists(squeue) && spawn_exists(sinfo))
        return 0;
    return err_set(err, ENOENT,
                   "%s is not to be found; name its place with --slurm.%s-cli, or see a simulated "
                   "cluster with --demo",
                   spawn_exists(squeue) ? sinfo : squeue,
                   spawn_exists(squeue) ? "sinfo" : "squeue");
}

static void cli_close(struct source *source)
{
    struct cli *cli = (struct cli *)source;

    free(cli->squeue.words);
    free(cli->sinfo.words);
    free(cli);
}

static const struct source_class cli_class = {
    .name = "cli",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES),
    .read = cli_read,
    .close = cli_close,
    .probe = cli_probe,
};

int source_open_cli(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err)
{
    struct cli *cli = heap_alloc(sizeof(*cli));

    cli->source.class = &cli_class;
    cli->source.clock = clock;
    cli->max_output = settings->max_output;
    cli->squeue.words = spawn_split(settings->squeue);
    cli->sinfo.words = spawn_split(settings->sinfo);
    if (!cli->squeue.words || !cli->sinfo.words) {
        struct str bad = cli->squeue.words ? settings->sinfo : settings->squeue;

        cli_close(&cli->source);
        return err_set(err, EINVAL,
                       "\"%.*s\" is not a command line: it is empty or a quote is "
                       "not closed",
                       STR_ARG(str_head(bad, 80)));
    }
    *ret = &cli->source;
    return 0;
}
