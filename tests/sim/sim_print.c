/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cluster as squeue -O and sinfo -N -O print it, with the fields of cli_format.h, and
 * as squeue -o and sinfo -o print it, with the formats of foreign.h; in the spellings of squeue(1)
 * and sinfo(1) in Slurm 22.05 and 24.11. */
#include "sim_view.h"

#include "source/cli_format.h"
#include "source/foreign.h"

#include <math.h>

enum { PIECE = 64 << 10, MIB = 1 << 20 };

static void pass_all(struct sim_out *out)
{
    if (out->code >= 0 && out->buf.n)
        out->code = out->sink(out->ctx, buf_str(&out->buf));
    buf_reset(&out->buf);
}

int sim_out_pass(struct sim_out *out)
{
    if (out->buf.n >= PIECE)
        pass_all(out);
    return out->code;
}

struct job_viewer {
    struct sim_out *out;
    const struct sim_cluster *cluster;
    int64_t time;
    sim_put_job *put;
    void *ctx;
    struct buf
        text; /* the texts of one view; it never moves, as it is made as large as it may get */
};

/* What has been written since `begin`. */
static struct str since(const struct buf *buf, size_t begin)
{
    return (struct str){ buf->p + begin, buf->n - begin };
}

static struct str view_limit(struct buf *buf, uint32_t minutes)
{
    size_t begin = buf->n;

    if (minutes == SIM_NONE)
        return STR("UNLIMITED");
    if (minutes >= 1440)
        buf_printf(buf, "%u-%02u:%02u:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
    else if (minutes >= 60)
        buf_printf(buf, "%u:%02u:00", minutes / 60, minutes % 60);
    else
        buf_printf(buf, "%u:00", minutes);
    return since(buf, begin);
}

static void view_array(const struct sim_job *job, struct buf *buf, struct sim_job_view *view)
{
    size_t begin = buf->n;

    view->array_id = job->array_id;
    view->array_id_or_id = job->array_id ? job->array_id : job->id;
    view->task = job->task == SIM_NONE ? SIM_ABSENT : job->task;
    view->throttle = job->throttle;
    if (!job->array_id)
        return;
    if (job->task != SIM_NONE) {
        buf_u64(buf, job->task);
        view->task_text = since(buf, begin);
        return;
    }
    buf_u64(buf, job->first_task);
    if (job->tasks > 1)
        buf_printf(buf, "-%u", job->first_task + job->tasks - 1);
    buf_printf(buf, "%%%u", job->throttle);
    view->task_text = view->task_list = since(buf, begin);
}

static void view_het(const struct sim_job *job, struct buf *buf, struct sim_job_view *view)
{
    size_t begin = buf->n;

    view->het_id = job->het_id;
    view->het_offset = job->het_offset;
    view->het_id_or_absent = job->het_id ? job->het_id : SIM_ABSENT;
    view->het_offset_or_absent = job->het_id ? job->het_offset : SIM_ABSENT;
    if (!job->het_id)
        return;
    buf_printf(buf, "%u-%u", job->het_id, job->het_id + 1);
    view->het_ids = since(buf, begin);
}

static void view_gpus(const struct sim_job *job, struct buf *buf, struct sim_job_view *view)
{
    uint32_t gpus = job->gpus / job->node_count;
    const char *type = sim_kinds[job->kind].gpu.p;
    size_t begin = buf->n;

    if (!gpus)
        return;
    buf_text(buf, "gres:gpu:");
    if (job->asks_gpu_type)
        buf_printf(buf, "%s:", type);
    buf_u64(buf, gpus);
    view->gres_request = since(buf, begin);
    if (!job->nodes)
        return;
    begin = buf->n;
    buf_printf(buf, "gpu:%s:%u(IDX:%u", type, gpus, job->first_gpu);
    if (gpus > 1)
        buf_printf(buf, "-%u", job->first_gpu + gpus - 1);
    buf_byte(buf, ')');
    view->gres_detail = since(buf, begin);
}

static void view_resources(const struct sim_cluster *cluster, const struct sim_job *job,
                           struct buf *buf, struct sim_job_view *view)
{
    size_t begin = buf->n;

    sim_put_tres(buf, job, true);
    view->tres = view->tres_requested = since(buf, begin);
    begin = buf->n;
    sim_put_memory(buf,
                   job->memory_mib_per_cpu ? job->memory_mib_per_cpu : job->memory_mib_per_node);
    view->memory = since(buf, begin);
    view_gpus(job, buf, view);
    if (!job->nodes)
        return;
    begin = buf->n;
    sim_put_tres(buf, job, false);
    view->tres = view->tres_allocated = since(buf, begin);
    begin = buf->n;
    sim_put_nodes(buf, cluster, job->nodes, job->node_count);
    view->nodes = since(buf, begin);
    begin = buf->n;
    sim_put_node(buf, cluster, job->nodes[0]);
    view->first_host = since(buf, begin);
}

static void view_words(const struct sim_cluster *cluster, const struct sim_job *job,
                       struct buf *buf, struct sim_job_view *view)
{
    size_t begin;

    view->user = cluster->users[job->user];
    view->account = cluster->accounts[job->account];
    view->name = cluster->names[job->name];
    view->qos = sim_qos[job->qos];
    view->login = sim_logins[job->login];
    view->state = job_state_word(job->state);
    view->features = sim_job_features(job);
    view->reason_word = sim_reasons[job->reason];
    view->limit = view_limit(buf, job->limit_minutes);
    if (job->reservation != SIM_NONE)
        view->reservation = sim_reservation_names[job->reservation];
    begin = buf->n;
    sim_put_partitions(buf, job);
    view->partition = since(buf, begin);
    begin = buf->n;
    sim_put_reason(buf, cluster, job);
    view->reason = since(buf, begin);
    if (!str_eq(view->reason, view->reason_word))
        view->description = view->reason;
    begin = buf->n;
    if (job->license_count)
        sim_put_licenses(buf, job);
    view->licenses = since(buf, begin);
    begin = buf->n;
    buf_printf(buf, "/home/%s", view->user.p);
    view->work_dir = since(buf, begin);
    buf_printf(buf, "/home/%s/slurm-%u.out", view->user.p, job->id);
    view->std_out = since(buf, begin + view->work_dir.n);
}

static int64_t or_absent(uint32_t value)
{
    return value ? value : SIM_ABSENT;
}

static int view_job(void *ctx, const struct sim_job *job)
{
    struct job_viewer *viewer = ctx;
    struct sim_job_view view = {
        .job = job,
        .id = job->id,
        .user_id = SIM_UID_FIRST + job->user,
        .association = 20 + job->user,
        .cpus = job->cpus,
        .node_count = job->node_count,
        .tasks = job->node_count,
        .memory_per_node = or_absent(job->memory_mib_per_node),
        .memory_per_cpu = or_absent(job->memory_mib_per_cpu),
        .limit_minutes = job->limit_minutes == SIM_NONE ? SIM_INFINITE : job->limit_minutes,
        .priority = job->priority,
        .restarts = job->restarts,
        .exit_code = job->exit_code,
        .billing = job->nodes ? job->cpus + 16 * (int64_t)job->gpus : SIM_ABSENT,
        .submit = job->submit,
        .eligible = job->eligible,
        .accrue = job->eligible <= viewer->time ? job->eligible : 0,
        .start = job->start,
        .end = job->end,
        .evaluated = job->nodes ? job->start : viewer->time - viewer->time % 30,
    };

    buf_reset(&viewer->text);
    view_array(job, &viewer->text, &view);
    view_het(job, &viewer->text, &view);
    view_resources(viewer->cluster, job, &viewer->text, &view);
    view_words(viewer->cluster, job, &viewer->text, &view);
    viewer->put(viewer->out, viewer->cluster, &view, viewer->ctx);
    return sim_out_pass(viewer->out);
}

void sim_view_jobs(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                   sim_put_job *put, void *ctx)
{
    struct job_viewer viewer = {
        .out = out, .cluster = cluster, .time = time, .put = put, .ctx = ctx
    };
    size_t longest = (size_t)cluster->n_nodes * 16 + 8192;

    buf_init(&viewer.text, longest);
    buf_room(&viewer.text, longest);
    sim_each_job(cluster, time, false, view_job, &viewer);
    buf_free(&viewer.text);
}

static void view_node_tres(const struct sim_node_view *view, const struct sim_kind *kind,
                           struct buf *buf, struct str *ret_tres, struct str *ret_used)
{
    const struct node *node = view->node;
    struct str used = view->gres_used;
    size_t begin = buf->n;

    buf_printf(buf, "cpu=%u,mem=%uM,billing=%u", kind->cpus, kind->memory_mib,
               kind->cpus + 16 * kind->gpus);
    if (kind->gpus)
        buf_printf(buf, ",gres/gpu=%u,gres/gpu:%s=%u", kind->gpus, kind->gpu.p, kind->gpus);
    *ret_tres = since(buf, begin);
    begin = buf->n;
    if (node->cpus_alloc)
        buf_printf(buf, "cpu=%u,mem=%lluM", node->cpus_alloc,
                   (unsigned long long)(node->memory_alloc_bytes / MIB));
    /* "gpu:a100:3(IDX:0-2)" */
    str_cut(&used, ':');
    str_cut(&used, ':');
    used = str_cut(&used, '(');
    if (node->cpus_alloc && used.n && !str_eq(used, STR("0")))
        buf_printf(buf, ",gres/gpu=%.*s,gres/gpu:%s=%.*s", STR_ARG(used), kind->gpu.p,
                   STR_ARG(used));
    *ret_used = since(buf, begin);
}

static void view_node(const struct section *section, const struct sim_cluster *cluster,
                      uint32_t index, int64_t time, struct buf *buf, struct sim_node_view *view)
{
    const struct node *node = &section->nodes.node[index];
    const struct sim_kind *kind = &sim_kinds[sim_kind_of(cluster, index)];
    bool is_silent = isnan(node->cpu_load);
    int64_t booted = time - time % 86400 - 86400 * (int64_t)(10 + index % 40);

    *view = (struct sim_node_view){
        .section = section,
        .node = node,
        .name = section_text(section, node->name),
        .gres = section_text(section, node->gres),
        .gres_used = section_text(section, node->gres_used),
        .features = section_text(section, node->features),
        .version = is_silent ? STR("") : section_text(section, node->version),
        .reason = section_text(section, node->reason),
        .reason_user = section_text(section, node->reason_user),
        .reservation = section_text(section, node->reservation),
        .architecture = is_silent ? STR("") : STR("x86_64"),
        .kernel = is_silent ? STR("") : STR("Linux 6.1.0-40-amd64 #1 SMP PREEMPT_DYNAMIC"),
        .cpus = node->cpus,
        .cpus_alloc = node->cpus_alloc,
        .cpus_free = node->cpus - node->cpus_alloc,
        .cores = kind->cpus / kind->sockets,
        .memory_mib = (int64_t)(node->memory_bytes / MIB),
        .memory_alloc_mib = (int64_t)(node->memory_alloc_bytes / MIB),
        .memory_free_mib = is_silent ? SIM_ABSENT : (int64_t)(node->memory_free_bytes / MIB),
        .load_percent = is_silent ? SIM_ABSENT : (int64_t)round(node->cpu_load * 100),
        .weight = node->weight,
        .reason_time = node->reason_time,
        .port = 6818,
        .boot_time = is_silent ? 0 : booted,
        .started = is_silent ? 0 : booted + 90,
        .last_busy = node->cpus_alloc ? time - time % 60 : booted + 3600,
    };
    buf_reset(buf);
    view_node_tres(view, kind, buf, &view->tres, &view->tres_used);
}

void sim_view_nodes(struct sim_out *out, const struct sim_cluster *cluster, int64_t time,
                    sim_put_node_view *put, void *ctx)
{
    struct section *section = section_new(KIND_NODES);
    struct buf text;

    buf_init(&text, 4096);
    buf_room(&text, 4096);
    sim_fill_nodes(cluster, time, section);
    for (uint32_t i = 0; i < cluster->n_nodes && out->code >= 0; i++) {
        struct sim_node_view view;

        view_node(section, cluster, i, time, &text, &view);
        put(out, &view, ctx);
        sim_out_pass(out);
    }
    buf_free(&text);
    section_unref(section);
}

/* How a field is told, and with which word where there is no value. */
struct text_field {
    enum { TEXT, NUMBER, TIME } shape;
    size_t offset;
    struct str absent;
};

#define VIEW(shape, member, absent)                                                                \
    {                                                                                              \
        shape, offsetof(struct sim_job_view, member), absent                                       \
    }

static const struct text_field squeue_row[SQUEUE_N_FIELDS] = {
    [SQUEUE_JOB_ID] = VIEW(NUMBER, id, STR_INIT("")),
    [SQUEUE_ARRAY_JOB_ID] = VIEW(NUMBER, array_id_or_id, STR_INIT("")),
    [SQUEUE_ARRAY_TASK_ID] = VIEW(TEXT, task_text, STR_INIT("N/A")),
    [SQUEUE_HET_JOB_ID] = VIEW(NUMBER, het_id_or_absent, STR_INIT("N/A")),
    [SQUEUE_HET_JOB_OFFSET] = VIEW(NUMBER, het_offset_or_absent, STR_INIT("N/A")),
    [SQUEUE_USER_ID] = VIEW(NUMBER, user_id, STR_INIT("")),
    [SQUEUE_USER_NAME] = VIEW(TEXT, user, STR_INIT("")),
    [SQUEUE_ACCOUNT] = VIEW(TEXT, account, STR_INIT("(null)")),
    [SQUEUE_PARTITION] = VIEW(TEXT, partition, STR_INIT("")),
    [SQUEUE_QOS] = VIEW(TEXT, qos, STR_INIT("(null)")),
    [SQUEUE_STATE] = VIEW(TEXT, state, STR_INIT("")),
    [SQUEUE_REASON] = VIEW(TEXT, reason, STR_INIT("None")),
    [SQUEUE_NUM_CPUS] = VIEW(NUMBER, cpus, STR_INIT("")),
    [SQUEUE_NUM_NODES] = VIEW(NUMBER, node_count, STR_INIT("")),
    [SQUEUE_TRES_ALLOC] = VIEW(TEXT, tres, STR_INIT("N/A")),
    [SQUEUE_NODE_LIST] = VIEW(TEXT, nodes, STR_INIT("")),
    [SQUEUE_RESERVATION] = VIEW(TEXT, reservation, STR_INIT("(null)")),
    [SQUEUE_LICENSES] = VIEW(TEXT, licenses, STR_INIT("(null)")),
    [SQUEUE_FEATURE] = VIEW(TEXT, features, STR_INIT("(null)")),
    [SQUEUE_PRIORITY] = VIEW(NUMBER, priority, STR_INIT("")),
    [SQUEUE_TIME_LIMIT] = VIEW(TEXT, limit, STR_INIT("")),
    [SQUEUE_SUBMIT_TIME] = VIEW(TIME, submit, STR_INIT("N/A")),
    [SQUEUE_ELIGIBLE_TIME] = VIEW(TIME, eligible, STR_INIT("N/A")),
    [SQUEUE_START_TIME] = VIEW(TIME, start, STR_INIT("N/A")),
    [SQUEUE_END_TIME] = VIEW(TIME, end, STR_INIT("N/A")),
    [SQUEUE_RESTART_COUNT] = VIEW(NUMBER, restarts, STR_INIT("")),
    [SQUEUE_ALLOC_NODE] = VIEW(TEXT, login, STR_INIT("")),
    [SQUEUE_NAME] = VIEW(TEXT, name, STR_INIT("")),
};

#undef VIEW
#define VIEW(shape, member, absent)                                                                \
    {                                                                                              \
        shape, offsetof(struct sim_node_view, member), absent                                      \
    }

/* Those that are left out here depend on the partition or are made of several numbers. */
static const struct text_field sinfo_row[SINFO_N_FIELDS] = {
    [SINFO_NODE] = VIEW(TEXT, name, STR_INIT("")),
    [SINFO_MEMORY] = VIEW(NUMBER, memory_mib, STR_INIT("")),
    [SINFO_ALLOC_MEMORY] = VIEW(NUMBER, memory_alloc_mib, STR_INIT("")),
    [SINFO_FREE_MEMORY] = VIEW(NUMBER, memory_free_mib, STR_INIT("N/A")),
    [SINFO_GRES] = VIEW(TEXT, gres, STR_INIT("(null)")),
    [SINFO_GRES_USED] = VIEW(TEXT, gres_used, STR_INIT("gpu:0")),
    [SINFO_FEATURES] = VIEW(TEXT, features, STR_INIT("(null)")),
    [SINFO_WEIGHT] = VIEW(NUMBER, weight, STR_INIT("")),
    [SINFO_VERSION] = VIEW(TEXT, version, STR_INIT("N/A")),
    [SINFO_REASON_TIME] = VIEW(TIME, reason_time, STR_INIT("Unknown")),
    [SINFO_REASON_USER] = VIEW(TEXT, reason_user, STR_INIT("Unknown")),
    [SINFO_REASON] = VIEW(TEXT, reason, STR_INIT("none")),
};

#undef VIEW

static void put_text_field(struct buf *buf, const void *view, const struct text_field *field)
{
    const void *at = (const char *)view + field->offset;
    struct str text = field->absent;
    int64_t number;

    if (field->shape == TEXT) {
        memcpy(&text, at, sizeof(text));
        buf_put(buf, text.n ? text : field->absent);
        return;
    }
    memcpy(&number, at, sizeof(number));
    if (number == SIM_ABSENT || (field->shape == TIME && number == 0))
        buf_put(buf, field->absent);
    else
        buf_i64(buf, number);
}

static void put_squeue_line(struct sim_out *out, const struct sim_cluster *cluster,
                            const struct sim_job_view *view, void *ctx)
{
    const struct str *token = ctx;

    (void)cluster;
    for (size_t i = 0; i < SQUEUE_N_FIELDS; i++) {
        /* A running job without a limit never ends. */
        if (i == SQUEUE_END_TIME && view->limit_minutes == SIM_INFINITE && view->start &&
            !view->end)
            buf_text(&out->buf, "NONE");
        else
            put_text_field(&out->buf, view, &squeue_row[i]);
        buf_put(&out->buf, *token);
    }
    buf_byte(&out->buf, '\n');
}

static void put_sinfo_field(struct buf *buf, const struct sim_node_view *view,
                            const struct partition *partition, unsigned field)
{
    const struct node *node = view->node;

    switch (field) {
    case SINFO_PARTITION:
        buf_put(buf, section_text(view->section, partition->name));
        if (partition->is_default)
            buf_byte(buf, '*');
        break;
    case SINFO_STATE:
        node_state_put(buf, node->state);
        break;
    case SINFO_CPUS:
        buf_printf(buf, "%u/%u/%u/%u", node->cpus_alloc, node->cpus_idle, node->cpus_other,
                   node->cpus);
        break;
    case SINFO_CPU_LOAD:
        if (view->load_percent == SIM_ABSENT)
            buf_text(buf, "N/A");
        else
            buf_printf(buf, "%lld.%02lld", (long long)view->load_percent / 100,
                       (long long)view->load_percent % 100);
        break;
    case SINFO_TIME_LIMIT:
        if (partition->time_limit_minutes == SIM_NONE)
            buf_text(buf, "infinite");
        else
            view_limit(buf, partition->time_limit_minutes);
        break;
    case SINFO_AVAILABLE:
        buf_text(buf, partition->is_up ? "up" : "down");
        break;
    default:
        put_text_field(buf, view, &sinfo_row[field]);
        break;
    }
}

static void put_sinfo_lines(struct sim_out *out, const struct sim_node_view *view, void *ctx)
{
    const struct nodes *nodes = &view->section->nodes;
    const struct str *token = ctx;

    for (uint32_t k = 0; k < view->node->n_partitions; k++) {
        uint32_t partition = nodes->membership[view->node->first_partition + k];

        for (unsigned i = 0; i < SINFO_N_FIELDS; i++) {
            put_sinfo_field(&out->buf, view, &nodes->partition[partition], i);
            buf_put(&out->buf, *token);
        }
        buf_byte(&out->buf, '\n');
    }
}

/* Local time, as Slurm prints it: UTC here. */
static void put_date(struct buf *buf, int64_t time)
{
    time_t seconds = time;
    char text[32];
    struct tm parts;

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    buf_text(buf, text);
}

/* As convert_num_unit() does it: 1536 is 1.50K, 1500 stays. */
static void put_count(struct buf *buf, int64_t count)
{
    if (count < 1024 || count % 512)
        buf_i64(buf, count);
    else
        buf_printf(buf, count % 1024 ? "%lld.50K" : "%lldK", (long long)count / 1024);
}

/* Nodes, or why there are none; also why some jobs have ended. */
static void put_nodes_or_reason(struct buf *buf, const struct sim_job_view *view)
{
    const unsigned told = 1 << JOB_PENDING | 1 << JOB_TIMEOUT | 1 << JOB_OUT_OF_MEMORY |
                          1 << JOB_DEADLINE | 1 << JOB_FAILED;
    struct job_state state = view->job->state;

    if (state.flags & JOB_COMPLETING || !(told >> state.base & 1))
        buf_put(buf, view->nodes);
    else
        buf_printf(buf, "(%.*s)", STR_ARG(view->reason.n ? view->reason : STR("None")));
}

/* Either sort of record, one field of it by its letter in squeue -o or sinfo -o. */
struct lettered {
    const struct sim_job_view *job;
    int64_t task;
    const struct sim_node_view *node;
    const struct partition *partition;
};

static void put_squeue_letter(struct buf *buf, const struct lettered *from, char letter)
{
    const struct sim_job_view *view = from->job;

    switch (letter) {
    case 'a':
        buf_put(buf, view->account);
        break;
    case 'A':
        buf_i64(buf, view->id);
        break;
    case 'e':
        if (view->end)
            put_date(buf, view->end);
        else
            buf_text(buf, view->start && view->limit_minutes == SIM_INFINITE ? "NONE" : "N/A");
        break;
    case 'u':
        buf_put(buf, view->user);
        break;
    case 'T':
        buf_put(buf, view->state);
        break;
    case 'P':
        buf_put(buf, view->partition);
        break;
    case 'C':
        put_count(buf, view->cpus);
        break;
    case 'm':
        buf_put(buf, view->memory);
        break;
    case 'K':
        if (from->task == SIM_ABSENT)
            buf_text(buf, "N/A");
        else
            buf_i64(buf, from->task);
        break;
    case 'R':
        put_nodes_or_reason(buf, view);
        break;
    }
}

/* The word, and the suffixes of node_state_string(): the first that applies. */
static void put_long_state(struct buf *buf, struct node_state state)
{
    static const struct {
        uint32_t flag, bases; /* 0: any */
        char suffix;
    } suffixes[] = {
        { NODE_POWERING_DOWN, 0, '%' },
        { NODE_POWERED_DOWN, 0, '~' },
        { NODE_POWERING_UP, 0, '#' },
        { NODE_NOT_RESPONDING, 0, '*' },
        { NODE_REBOOT_ISSUED, 0, '^' },
        { NODE_MAINTENANCE, 1 << NODE_ALLOCATED | 1 << NODE_MIXED | 1 << NODE_DOWN, '$' },
        { NODE_PLANNED, 1 << NODE_MIXED, '-' },
    };

    buf_put(buf, node_state_word(state));
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        if (state.flags & suffixes[i].flag &&
            (!suffixes[i].bases || suffixes[i].bases >> state.base & 1)) {
            buf_byte(buf, suffixes[i].suffix);
            return;
        }
    }
}

static void put_sinfo_letter(struct buf *buf, const struct lettered *from, char letter)
{
    const struct sim_node_view *view = from->node;

    switch (letter) {
    case 'T':
        put_long_state(buf, view->node->state);
        break;
    case 'm':
        buf_i64(buf, view->memory_mib);
        break;
    case 'n':
        buf_put(buf, view->name);
        break;
    case 'O':
        put_sinfo_field(buf, view, from->partition, SINFO_CPU_LOAD);
        break;
    case 'R':
        buf_put(buf, section_text(view->section, from->partition->name));
        break;
    case 'e':
        put_text_field(buf, view, &sinfo_row[SINFO_FREE_MEMORY]);
        break;
    case 'C':
        put_sinfo_field(buf, view, from->partition, SINFO_CPUS);
        break;
    case 'w':
        buf_i64(buf, view->weight);
        break;
    }
}

static void put_line(struct buf *buf, struct str format, const struct lettered *from,
                     void (*put)(struct buf *, const struct lettered *, char))
{
    for (;;) {
        size_t at = str_find(format, '%');

        buf_put(buf, str_head(format, at));
        if (at == format.n)
            break;
        put(buf, from, format.p[at + 1]);
        format = str_skip(format, at + sizeof("%a") - 1);
    }
    buf_byte(buf, '\n');
}

/* A line for each task, as squeue -r has it. */
static void put_task_lines(struct sim_out *out, const struct sim_cluster *cluster,
                           const struct sim_job_view *view, void *ctx)
{
    struct lettered from = { .job = view, .task = view->task };
    uint32_t tasks = view->task_list.n ? view->job->tasks : 1;

    (void)cluster;
    (void)ctx;
    for (uint32_t i = 0; i < tasks; i++) {
        if (view->task_list.n)
            from.task = view->job->first_task + i;
        put_line(&out->buf, STR(FOREIGN_SQUEUE), &from, put_squeue_letter);
        sim_out_pass(out);
    }
}

static void put_partition_lines(struct sim_out *out, const struct sim_node_view *view, void *ctx)
{
    const struct nodes *nodes = &view->section->nodes;

    (void)ctx;
    for (uint32_t k = 0; k < view->node->n_partitions; k++) {
        uint32_t partition = nodes->membership[view->node->first_partition + k];
        struct lettered from = { .node = view, .partition = &nodes->partition[partition] };

        put_line(&out->buf, STR(FOREIGN_SINFO), &from, put_sinfo_letter);
    }
}

static void print(struct sim_out *out, const struct sim_cluster *cluster, enum sim_format format,
                  struct str token, int64_t time)
{
    switch (format) {
    case SIM_SQUEUE_TEXT:
        sim_view_jobs(out, cluster, time, put_squeue_line, &token);
        break;
    case SIM_SINFO_TEXT:
        sim_view_nodes(out, cluster, time, put_sinfo_lines, &token);
        break;
    case SIM_SQUEUE_JSON_38:
    case SIM_SQUEUE_JSON_42:
        sim_json_jobs(out, cluster, time, format == SIM_SQUEUE_JSON_42);
        break;
    case SIM_NODES_JSON_38:
    case SIM_NODES_JSON_42:
        sim_json_nodes(out, cluster, time, format == SIM_NODES_JSON_42);
        break;
    case SIM_SQUEUE_LINES:
        sim_view_jobs(out, cluster, time, put_task_lines, NULL);
        break;
    case SIM_SINFO_LINES:
        sim_view_nodes(out, cluster, time, put_partition_lines, NULL);
        break;
    }
}

int sim_print(const struct sim *sim, enum sim_format format, struct str token, int64_t time,
              sim_sink *sink, void *ctx)
{
    struct sim_out out = { .sink = sink, .ctx = ctx };
    struct sim_cluster cluster;

    sim_cluster_init(&cluster, sim);
    /* Far above what is in it between two passes: one record, with a list of all nodes. */
    buf_init(&out.buf, (size_t)64 << 20);
    print(&out, &cluster, format, token, sim_bounded(time));
    pass_all(&out);
    buf_free(&out.buf);
    sim_cluster_free(&cluster);
    return out.code < 0 ? out.code : 0;
}
