/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes reports for tests of their views. */
#include "made_report.h"

#include <math.h>
#include <stdlib.h>

static const double gib = 0x1p30;
enum { SUBMITTED = 1790000000 };

static void begin(struct job_report *to)
{
    struct job_facts *facts = &to->facts;
    struct job_record *record = &facts->row.record;

    *to = (struct job_report){ 0 };
    job_facts_clear(facts);
    facts->row.key = (struct run_key){ SUBMITTED, 4711, STR("beluga") };
    facts->now = SUBMITTED + 100000;
    facts->origin.asked_time = facts->now;
    record->id = 4711;
    record->submit_time = SUBMITTED;
    record->user = STR("alice");
    record->account = STR("def-alice");
    record->name = STR("train.sh");
    record->state = (struct job_state){ JOB_COMPLETED, 0 };
}

/* What any job has that ran. */
static void run(struct job_report *to, int64_t waited, int64_t seconds, uint32_t limit_minutes)
{
    struct job_facts *facts = &to->facts;
    struct job_record *record = &facts->row.record;

    record->eligible_time = SUBMITTED;
    record->start_time = SUBMITTED + waited;
    record->end_time = record->start_time + seconds;
    record->time_limit_minutes = limit_minutes;
    record->exit_code = record->exit_signal = 0;
    record->partition = STR("compute");
    record->qos = STR("normal");
    facts->row.wait_seconds = waited;
    facts->row.elapsed_seconds = seconds;
    facts->time_ratio = (double)seconds / (limit_minutes * 60.0);
    facts->origin.has_accounting = true;
    facts->origin.teller = TOLD_BY_STORE;
    record->origin = RECORD_ACCOUNTED;
}

void add_finding(struct job_report *to, struct arena *arena, const char *check,
                 const char *sentence)
{
    struct finding *more = ARENA_ARRAY(arena, struct finding, to->n_findings + 1);

    for (size_t i = 0; i < to->n_findings; i++)
        more[i] = to->finding[i];
    to->finding = more;
    for (size_t i = 0; i < n_checks; i++)
        if (strcmp(checks[i].name, check) == 0) {
            more[to->n_findings++] =
                (struct finding){ &checks[i], checks[i].severity, str_of(sentence),
                                  STR("https://docs.example/jobs") };
            return;
        }
    abort();
}

static void add_process(struct job_report *to, struct arena *arena, const char *name, double n,
                        double threads, double seconds)
{
    struct process_facts *process = facts_process(&to->facts, arena, str_of(name));

    process->instances_peak = n;
    process->threads_peak = threads;
    process->cpu_seconds = seconds;
}

void make_good(struct job_report *to, struct arena *arena)
{
    struct job_facts *facts = &to->facts;
    struct node_facts *node;

    begin(to);
    run(to, 95, 9005, 180);
    facts->row.record.nodes = STR("node07");
    facts->row.record.node_count = 1;
    facts->row.record.tres = STR("billing=8,cpu=8,mem=16G,node=1");
    facts->total = (struct use_facts){
        .cpus = 8,
        .memory_bytes = 16 * gib,
        .gpus = 0,
        .cpu_seconds = 68438,
        .user_seconds = 66000,
        .system_seconds = 2438,
        .busiest_cpus = 8,
        .throttled_seconds = 0,
        .memory_peak_bytes = 13.25 * gib,
        .memory_counted_bytes = 13.25 * gib,
        .swap_peak_bytes = 0,
        .read_bytes = 3.5 * gib,
        .written_bytes = 1.2 * gib,
        .read_calls = 34000,
        .write_calls = 1,
        .files_peak = 12,
        .processes_peak = 9,
        .threads_peak = 17,
        .oom_kills = 0,
        .limit_hits = 0,
        .cpu_waiting_seconds = 1.5,
        .memory_waiting_seconds = 0,
        .io_waiting_seconds = 12,
        .uses_scratch = 1,
    };
    node = facts_node(facts, arena, STR("node07"));
    node->use = facts->total;
    node->core = ARENA_ARRAY(arena, struct core_facts, 8);
    node->n_cores = 8;
    for (uint32_t i = 0; i < 8; i++)
        node->core[i] = (struct core_facts){ i, 8554.75 };
    add_process(to, arena, "solver", 8, 16, 68400);
    add_process(to, arena, "bash", 1, 1, 0.25);
    facts->cpu_seconds_held = 8.0 * 9005;
    facts->cpu_ratio = 0.95;
    facts->mean_cpus = 7.6;
    facts->memory_ratio = 13.25 / 16;
    facts->cores_used = 8;
    facts->origin.has_agents = facts->origin.has_series = true;
    facts->origin.series = STR("http://prometheus.example:9090");
    to->more_url = STR("https://portal.example/job/4711");
}

static void add_gpu(struct job_report *to, struct arena *arena, const char *node, const char *id,
                    double use)
{
    struct gpu_facts *gpu = facts_gpu(&to->facts, arena, str_of(node), str_of(id));

    gpu->model = STR("NVIDIA A100-SXM4-40GB");
    gpu->utilization_ratio = (struct spread){ 0, use, use > 0 ? 0.98 : 0 };
    gpu->memory_used_bytes = (struct spread){ 0, use * 30 * gib, use * 38 * gib };
    gpu->power_watts = (struct spread){ 52, 60 + use * 300, 60 + use * 340 };
    gpu->temperature_celsius = (struct spread){ 31, 35, 62 };
    gpu->memory_bytes = 40 * gib;
    gpu->energy_joules = (60 + use * 300) * 9005;
    gpu->processes_peak = use > 0;
}

static void add_plot(struct job_report *to, struct arena *arena, const char *name,
                     const char *other)
{
    struct facts_plot *plot = &to->facts.plot[PLOT_CPU];

    *plot = (struct facts_plot){ to->facts.row.record.start_time, 60, 100, NULL, 2, 2 };
    plot->line = ARENA_ARRAY(arena, struct plot_line, 2);
    plot->line[0].name = str_of(name);
    plot->line[1].name = str_of(other);
    for (size_t i = 0; i < 2; i++) {
        plot->line[i].value = ARENA_ARRAY(arena, double, 100);
        for (size_t j = 0; j < 100; j++)
            plot->line[i].value[j] = j == 50 ? NAN : (double)(j % 7);
    }
}

static void advise(struct job_report *to)
{
    to->advice = (struct advice){
        .line = {
            { STR("#SBATCH --nodes=1"), STR("node18 was idle") },
            { STR("#SBATCH --gpus-per-node=1"), STR("1.2 of 8 GPUs were in use on average") },
            { STR("#SBATCH --mem=12G"), STR("at most 9.6 GiB of 256 GiB were in use") },
        },
        .n_lines = 3,
        .n_jobs = 4,
        .cores_back = 56,
        .memory_bytes_back = 244 * gib,
        .gpu_hours_back = 17.5,
        .core_hours_back = 140.08,
    };
}

void make_wasteful(struct job_report *to, struct arena *arena)
{
    static const char *const nodes[] = { "node17", "node18" };
    static const char *const gpus[] = { "0", "1", "2", "3" };
    struct job_facts *facts = &to->facts;
    struct job_moment life[] = {
        { SUBMITTED, STR("PENDING"), STR("Priority") },
        { SUBMITTED + 3600, STR("PENDING"), STR("Resources") },
        { SUBMITTED + 90000, STR("RUNNING"), STR("") },
        { SUBMITTED + 99005, STR("COMPLETED"), STR("") },
    };

    begin(to);
    run(to, 90000, 9005, 1440);
    facts->row.record.nodes = STR("node[17-18]");
    facts->row.record.node_count = 2;
    facts->row.record.tres = STR("billing=64,cpu=64,gres/gpu:a100=8,mem=256G,node=2");
    facts->row.gpu_types = STR("a100");
    facts->row.gpus = 8;
    facts->life = ARENA_ARRAY(arena, struct job_moment, COUNT(life));
    memcpy(facts->life, life, sizeof(life));
    facts->n_life = COUNT(life);
    facts->total.cpus = 64;
    facts->total.memory_bytes = 256 * gib;
    facts->total.gpus = 8;
    facts->total.cpu_seconds = 28816;
    facts->total.memory_peak_bytes = 9.6 * gib;
    facts->total.uses_scratch = 0;
    for (size_t i = 0; i < 2; i++) {
        struct node_facts *node = facts_node(facts, arena, str_of(nodes[i]));

        node->use = use_facts_unknown;
        node->use.cpus = 32;
        node->use.memory_bytes = 128 * gib;
        node->use.cpu_seconds = i ? 12 : 28804;
        node->use.memory_peak_bytes = i ? 0x1p20 * 12.34 : 9.59 * gib;
        for (size_t j = 0; j < 4; j++)
            add_gpu(to, arena, nodes[i], gpus[j], i || j > 1 ? 0 : j ? 0.25 : 0.95);
    }
    facts->cpu_seconds_held = 64.0 * 9005;
    facts->cpu_ratio = 0.05;
    facts->mean_cpus = 3.2;
    facts->memory_ratio = 0.0375;
    facts->gpu_ratio = 0.15;
    facts->gpu_memory_ratio = 0.14;
    facts->origin.has_agents = facts->origin.has_series = true;
    facts->origin.series = STR("http://prometheus.example:9090");
    add_plot(to, arena, "node17", "node18");
    add_finding(to, arena, "gpu_idle",
                "6 of 8 GPUs did nothing: node17 2 and 3, node18 0 to 3. Check that the program is "
                "told how many it has, or ask for fewer.");
    add_finding(to, arena, "cpu_low", "3.2 of 64 CPUs were in use on average.");
    add_finding(to, arena, "time_limit_far",
                "It took 02:30:05 of 1 d 00:00:00: shorter limits start sooner.");
    advise(to);
}

void make_accounted(struct job_report *to, struct arena *arena)
{
    struct job_record *record = &to->facts.row.record;

    (void)arena;
    begin(to);
    run(to, 3, 754, MODEL_UNKNOWN_U32);
    to->facts.time_ratio = NAN;
    record->state = (struct job_state){ JOB_FAILED, 0 };
    record->exit_code = 2;
    record->array_job_id = 4700;
    record->array_task_id = 11;
    record->nodes = STR("node01");
    record->node_count = 1;
    to->facts.total.cpus = 4;
    to->facts.total.cpu_seconds = 1508;
    to->facts.cpu_seconds_held = 3016;
    to->facts.cpu_ratio = 0.5;
    to->facts.mean_cpus = 2;
    to->facts.origin.why_no_series =
        STR("http://prometheus.example:9090 has no samples of this time");
}

void make_waiting(struct job_report *to, struct arena *arena, const char *reason)
{
    struct job_record *record = &to->facts.row.record;

    (void)arena;
    begin(to);
    record->state = (struct job_state){ JOB_PENDING, 0 };
    record->eligible_time = SUBMITTED;
    record->reason = str_of(reason);
    record->partition = STR("compute");
    record->tres = STR("billing=64,cpu=64,mem=256G,node=2");
    record->node_count = 2;
    record->time_limit_minutes = 60;
    to->facts.row.wait_seconds = 100000;
    to->facts.total.cpus = 64;
    to->facts.total.memory_bytes = 256 * gib;
}

void make_hostile(struct job_report *to, struct arena *arena, struct str text)
{
    struct job_facts *facts = &to->facts;
    struct job_record *record = &facts->row.record;
    struct str *texts[] = { &record->user,
                            &record->account,
                            &record->qos,
                            &record->name,
                            &record->nodes,
                            &record->reservation,
                            &record->partition,
                            &record->reason,
                            &record->tres,
                            &facts->row.key.cluster,
                            &facts->row.gpu_types,
                            &facts->origin.series,
                            &facts->origin.why_no_series,
                            &to->more_url };

    make_wasteful(to, arena);
    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = text;
    for (size_t i = 0; i < facts->n_nodes; i++)
        facts->node[i].name = text;
    for (size_t i = 0; i < facts->n_gpus; i++)
        facts->gpu[i].node = facts->gpu[i].gpu = facts->gpu[i].model = text;
    for (size_t i = 0; i < facts->n_life; i++)
        facts->life[i].state = facts->life[i].reason = text;
    for (size_t i = 0; i < facts->plot[PLOT_CPU].n_lines; i++)
        facts->plot[PLOT_CPU].line[i].name = text;
    add_process(to, arena, "bash", 1, 1, 1);
    facts->process[0].name = text;
    for (size_t i = 0; i < to->n_findings; i++)
        to->finding[i].sentence = to->finding[i].link = text;
    for (size_t i = 0; i < to->advice.n_lines; i++)
        to->advice.line[i].line = to->advice.line[i].why = text;
}

void make_zero(struct job_report *to, struct arena *arena)
{
    struct job_facts *facts = &to->facts;
    struct node_facts *node;

    begin(to);
    run(to, 0, 0, 0);
    facts->time_ratio = NAN;
    facts->row.record.node_count = 0;
    facts->row.record.tres = STR("");
    facts->row.gpus = facts->row.billing = 0;
    facts->total = (struct use_facts){ 0 };
    node = facts_node(facts, arena, STR("node07"));
    node->use = facts->total;
    node->core = ARENA_ARRAY(arena, struct core_facts, 1);
    node->n_cores = 1;
    facts_gpu(facts, arena, STR("node07"), STR("0"));
    add_process(to, arena, "bash", 0, 0, 0);
    facts->lustre = (struct lustre_facts){ 0 };
    facts->cpu_seconds_held = 0;
    facts->origin.has_agents = true;
}

void make_huge(struct job_report *to, struct arena *arena)
{
    struct job_facts *facts = &to->facts;
    struct buf name;

    make_good(to, arena);
    facts->row.record.node_count = 4000;
    buf_init(&name, 64);
    for (size_t i = 0; i < 4000; i++) {
        struct node_facts *node;

        buf_reset(&name);
        buf_printf(&name, "node%04zu", i);
        node = facts_node(facts, arena, arena_str(arena, buf_str(&name)));
        node->use = facts->total;
        node->use.cpu_seconds = (double)i;
        node->use.memory_peak_bytes = (double)i * 0x1p20;
        node->core = ARENA_ARRAY(arena, struct core_facts, 64);
        node->n_cores = 64;
        for (uint32_t j = 0; j < 64; j++)
            node->core[j] = (struct core_facts){ j, (double)(i + j) };
        if (i < 1000)
            add_gpu(to, arena, node->name.p, "0", (double)i / 1000);
    }
    for (size_t i = 0; i < 5000; i++) {
        buf_reset(&name);
        buf_printf(&name, "program%04zu", i);
        add_process(to, arena, arena_str(arena, buf_str(&name)).p, 1, 1, (double)i);
    }
    buf_free(&name);
}

static void fail_task(struct job_facts *task, enum job_base state, uint32_t code)
{
    task->row.record.state = (struct job_state){ (uint8_t)state, 0 };
    task->row.record.exit_code = code;
    task->row.record.nodes = STR("node03");
}

struct job_facts *make_array(struct arena *arena, size_t n_tasks)
{
    struct job_facts *task = ARENA_ARRAY(arena, struct job_facts, n_tasks);

    for (size_t i = 0; i < n_tasks; i++) {
        struct job_report report;

        begin(&report);
        run(&report, (int64_t)(i % 100) * 10, 1800 + (int64_t)(i % 100) * 3, 60);
        task[i] = report.facts;
        task[i].row.record.id = (uint32_t)(4711 + i);
        task[i].row.record.array_job_id = 4711;
        task[i].row.record.array_task_id = (uint32_t)i;
        task[i].row.record.tasks = 1;
        task[i].row.record.nodes = i % 2 ? STR("node02") : STR("node01");
        task[i].total.cpus = 1;
        task[i].total.memory_bytes = 4 * gib;
        task[i].total.memory_peak_bytes = (2 + (double)(i % 100) / 400) * gib;
        task[i].memory_ratio = task[i].total.memory_peak_bytes / (4 * gib);
        task[i].cpu_ratio = 0.9 + (double)(i % 10) / 100;
        task[i].cpu_seconds_held = (double)task[i].row.elapsed_seconds;
        task[i].mean_cpus = task[i].cpu_ratio;
        task[i].total.cpu_seconds = task[i].cpu_ratio * task[i].cpu_seconds_held;
    }
    for (size_t i = 0; i + 10 <= n_tasks; i += 100) {
        fail_task(&task[i + 3], JOB_FAILED, 1);
        fail_task(&task[i + 4], JOB_FAILED, 1);
        fail_task(&task[i + 7], JOB_OUT_OF_MEMORY, 0);
        task[i + 7].row.record.exit_signal = 125; /* as Slurm marks it */
        task[i + 7].total.memory_peak_bytes = 4 * gib;
        task[i + 7].memory_ratio = 1;
        task[i + 9].row.elapsed_seconds = 3590;
    }
    return task;
}
