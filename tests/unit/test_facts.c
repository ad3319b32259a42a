/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts from records, from what agents counted, and from what was kept. */
#include "test.h"

#include "report/facts.h"

#include <math.h>

enum { NOW = 1790000000, GIB = 1 << 30 };

/* A run of an hour on that many nodes with 4 CPUs and 1 GiB each, that has ended well. */
static struct job_row run_on(uint32_t nodes)
{
    struct job_row row = {
        .key = { NOW - 7200, 4711, STR_INIT("alpha") },
        .first_submit_time = NOW - 7200,
        .gpus = MODEL_UNKNOWN_U64,
        .billing = MODEL_UNKNOWN_U64,
        .elapsed_seconds = 3600,
        .wait_seconds = 60,
        .cpu_efficiency = NAN,
    };

    job_record_clear(&row.record);
    row.record.id = 4711;
    row.record.submit_time = NOW - 7200;
    row.record.origin = RECORD_ACCOUNTED;
    row.record.state.base = JOB_COMPLETED;
    row.record.user = STR("alice");
    row.record.name = STR("train");
    row.record.nodes = STR("n[1-9]");
    row.record.cpus = 4 * nodes;
    row.record.node_count = nodes;
    row.record.memory_bytes = (uint64_t)nodes * GIB;
    row.record.time_limit_minutes = 120;
    row.record.start_time = NOW - 7140;
    row.record.end_time = NOW - 3540;
    return row;
}

struct world {
    struct arena arena;
    struct job_facts facts;
    struct err err;
};

static struct world *world_new(const struct job_row *row)
{
    struct world *w = heap_alloc(sizeof(*w));

    job_facts_clear(&w->facts);
    facts_take_row(&w->facts, &w->arena, row, NOW);
    return w;
}

static void world_free(struct world *w)
{
    arena_clear(&w->arena);
    free(w);
}

static int take_document(struct world *w, const char *node, struct str document)
{
    const struct final_record final = { 4711, str_of(node), NOW - 7140, NOW - 3540, document };

    return facts_take_final(&w->facts, &w->arena, &final, &w->err);
}

static void take(struct world *w, const char *node, const char *document)
{
    if (take_document(w, node, str_of(document)) < 0)
        fail_msg("%s", w->err.text);
}

static const struct node_facts *node_of(struct world *w, const char *name)
{
    return facts_node(&w->facts, &w->arena, str_of(name));
}

#define assert_about(actual, expected)                                                             \
    do {                                                                                           \
        double actual_ = (actual), expected_ = (expected);                                         \
        if (!(fabs(actual_ - expected_) <= 1e-9 * fabs(expected_)))                                \
            fail_msg("%s is %g, not %g", #actual, actual_, expected_);                             \
    } while (0)

#define assert_unknown(actual)                                                                     \
    do {                                                                                           \
        if (!isnan(actual))                                                                        \
            fail_msg("%s is %g", #actual, (double)(actual));                                       \
    } while (0)

TEST(a_row_is_copied_with_all_its_texts)
{
    struct job_row row = run_on(1);
    char user[] = "alice", value[] = "sbatch x";
    struct record_extra extra = { STR("SubmitLine"), str_of(value) };
    struct world *w;

    row.record.user = str_of(user);
    row.record.extra = &extra;
    row.record.n_extra = 1;
    w = world_new(&row);
    memset(user, 'x', sizeof(user));
    memset(value, 'x', sizeof(value));
    memset(&extra, 0, sizeof(extra));
    assert_str(w->facts.row.record.user, "alice");
    assert_int_equal(w->facts.row.record.n_extra, 1);
    assert_str(w->facts.row.record.extra[0].name, "SubmitLine");
    assert_str(w->facts.row.record.extra[0].value, "sbatch x");
    assert_true(w->facts.origin.has_accounting);
    assert_false(w->facts.is_running);
    assert_about(w->facts.total.cpus, 4);
    assert_about(w->facts.total.memory_bytes, GIB);
    assert_unknown(w->facts.total.gpus);
    world_free(w);
}

TEST(a_running_job_has_no_end_and_no_final_record)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.state.base = JOB_RUNNING;
    row.record.origin = RECORD_SEEN;
    row.record.end_time = NOW + 3600; /* at the latest, as Slurm tells */
    w = world_new(&row);
    facts_finish(&w->facts);
    assert_true(w->facts.is_running);
    assert_int_equal(w->facts.row.record.end_time, 0);
    assert_false(w->facts.origin.has_accounting);
    assert_int_equal(w->facts.now, NOW);
    assert_about(w->facts.cpu_seconds_held, 4 * 3600);
    assert_unknown(w->facts.cpu_ratio);
    world_free(w);
}

static const char whole_document[] =
    "{\"uid\":2001,\"user\":\"alice\",\"allocated\":{\"cpus\":4,\"memory_bytes\":1073741824,"
    "\"gpus\":1},\"cpu_seconds\":7200.5,\"user_seconds\":7000,\"system_seconds\":200.5,"
    "\"throttled_seconds\":3,\"periods\":10,\"memory_peak_bytes\":536870912,\"limit_hits\":2,"
    "\"oom_kills\":1,\"pressure_seconds\":{\"cpu_some\":5,\"cpu_full\":1,\"memory_some\":6,"
    "\"io_some\":7},\"io\":{\"read_bytes\":100,\"write_bytes\":200,\"read_chars\":1000,\"reads\":3,"
    "\"writes\":4},\"devices\":[{\"name\":\"sda\",\"read_bytes\":1}],\"processes_peak\":8,"
    "\"threads_peak\":16,\"files_peak\":32,\"uses_scratch\":true,"
    "\"names\":[{\"name\":\"python3\",\"cpu_seconds\":7000},{\"name\":\"bash\",\"cpu_seconds\":1}],"
    "\"gpus\":[{\"id\":\"0\",\"model\":\"A100\",\"memory_peak_bytes\":4096,"
    "\"energy_joules\":12.5}],\"steps\":[{\"id\":\"batch\",\"cpu_seconds\":9999}],"
    "\"steps_left_out\":3}";

TEST(all_that_an_agent_counted_is_taken)
{
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);
    const struct use_facts *use;

    take(w, "n1", whole_document);
    use = &node_of(w, "n1")->use;
    assert_true(w->facts.origin.has_agents);
    assert_about(use->cpus, 4);
    assert_about(use->memory_bytes, GIB);
    assert_about(use->gpus, 1);
    assert_about(use->cpu_seconds, 7200.5);
    assert_about(use->user_seconds, 7000);
    assert_about(use->system_seconds, 200.5);
    assert_about(use->throttled_seconds, 3);
    assert_about(use->memory_counted_bytes, GIB / 2);
    assert_about(use->limit_hits, 2);
    assert_about(use->oom_kills, 1);
    assert_about(use->cpu_waiting_seconds, 5);
    assert_about(use->memory_waiting_seconds, 6);
    assert_about(use->io_waiting_seconds, 7);
    assert_about(use->read_bytes, 100);
    assert_about(use->written_bytes, 200);
    assert_about(use->read_calls, 3);
    assert_about(use->write_calls, 4);
    assert_about(use->processes_peak, 8);
    assert_about(use->threads_peak, 16);
    assert_about(use->files_peak, 32);
    assert_about(use->uses_scratch, 1);
    assert_unknown(use->swap_peak_bytes);
    assert_unknown(use->busiest_cpus);
    assert_int_equal(w->facts.n_processes, 2);
    assert_about(facts_process(&w->facts, &w->arena, STR("python3"))->cpu_seconds, 7000);
    assert_int_equal(w->facts.n_gpus, 1);
    assert_str(w->facts.gpu[0].node, "n1");
    assert_str(w->facts.gpu[0].gpu, "0");
    assert_str(w->facts.gpu[0].model, "A100");
    assert_about(w->facts.gpu[0].memory_used_bytes.max, 4096);
    assert_about(w->facts.gpu[0].energy_joules, 12.5);
    assert_unknown(w->facts.gpu[0].processes_peak);
    world_free(w);
}

TEST(an_agent_that_was_restarted_is_not_counted_twice)
{
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);

    take(w, "n1",
         "{\"cpu_seconds\":100,\"memory_peak_bytes\":50,"
         "\"names\":[{\"name\":\"a\",\"cpu_seconds\":90}]}");
    take(w, "n1",
         "{\"cpu_seconds\":300,\"memory_peak_bytes\":40,"
         "\"names\":[{\"name\":\"a\",\"cpu_seconds\":60}]}");
    take(w, "n1", "{\"cpu_seconds\":200,\"names\":[{\"name\":\"a\",\"cpu_seconds\":95}]}");
    facts_finish(&w->facts);
    assert_int_equal(w->facts.n_nodes, 1);
    assert_about(w->facts.total.cpu_seconds, 300);
    assert_about(w->facts.total.memory_peak_bytes, 50);
    assert_int_equal(w->facts.n_processes, 1);
    assert_about(w->facts.process[0].cpu_seconds, 95);
    world_free(w);
}

TEST(totals_are_sums_over_nodes_and_waits_the_longest)
{
    struct job_row row = run_on(2);
    struct world *w = world_new(&row);

    take(w, "n2",
         "{\"cpu_seconds\":100,\"memory_peak_bytes\":1000,\"files_peak\":3,"
         "\"pressure_seconds\":{\"io_some\":9},\"uses_scratch\":false,"
         "\"names\":[{\"name\":\"a\",\"cpu_seconds\":1},{\"name\":\"b\","
         "\"cpu_seconds\":50}]}");
    take(w, "n1",
         "{\"cpu_seconds\":14300,\"memory_peak_bytes\":2000,"
         "\"pressure_seconds\":{\"io_some\":7},\"uses_scratch\":true,"
         "\"names\":[{\"name\":\"a\",\"cpu_seconds\":2}]}");
    facts_finish(&w->facts);
    assert_about(w->facts.total.cpu_seconds, 14400);
    assert_about(w->facts.total.memory_peak_bytes, 3000);
    assert_about(w->facts.total.files_peak, 3);
    assert_about(w->facts.total.io_waiting_seconds, 9);
    assert_about(w->facts.total.uses_scratch, 1);
    assert_about(w->facts.cpu_seconds_held, 8 * 3600);
    assert_about(w->facts.cpu_ratio, 0.5);
    assert_about(w->facts.mean_cpus, 4);
    assert_about(w->facts.memory_ratio, 3000.0 / (2.0 * GIB));
    assert_about(w->facts.time_ratio, 0.5);
    assert_str(w->facts.node[0].name, "n1");
    assert_str(w->facts.process[0].name, "b");
    assert_about(w->facts.process[1].cpu_seconds, 3);
    world_free(w);
}

TEST(half_of_the_nodes_are_not_taken_for_an_idle_job)
{
    struct job_row row = run_on(4);
    struct world *w = world_new(&row);

    take(w, "n1", "{\"cpu_seconds\":100,\"memory_peak_bytes\":1000,\"oom_kills\":2}");
    facts_finish(&w->facts);
    assert_unknown(w->facts.total.cpu_seconds);
    assert_unknown(w->facts.total.memory_peak_bytes);
    assert_unknown(w->facts.cpu_ratio);
    assert_unknown(w->facts.memory_ratio);
    assert_about(w->facts.total.oom_kills, 2);
    world_free(w);
}

TEST(accounting_tells_cpu_time_if_not_all_agents_did)
{
    struct job_row row = run_on(4);
    struct world *w;

    row.record.cpu_seconds = 28800;
    row.record.user_seconds = 50;
    w = world_new(&row);
    take(w, "n1", "{\"cpu_seconds\":100,\"user_seconds\":90}");
    facts_finish(&w->facts);
    assert_about(w->facts.total.cpu_seconds, 28800);
    assert_about(w->facts.total.user_seconds, 90); /* at least */
    assert_about(w->facts.cpu_ratio, 0.5);
    world_free(w);
}

/* An agent that was away at the end, or samples with a gap there, tell less than it was. */
TEST(cpu_time_is_what_accounting_has_if_that_is_more)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.cpu_seconds = 7200;
    row.record.user_seconds = 10;
    w = world_new(&row);
    take(w, "n1", "{\"cpu_seconds\":100,\"user_seconds\":90}");
    facts_finish(&w->facts);
    assert_about(w->facts.total.cpu_seconds, 7200);
    assert_about(w->facts.total.user_seconds, 90);
    assert_about(w->facts.node[0].use.cpu_seconds, 100);
    world_free(w);
}

TEST(agents_are_believed_if_all_of_them_told)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.cpu_seconds = 99;
    row.record.memory_peak_bytes = 9999;
    row.record.read_bytes = 9999;
    w = world_new(&row);
    take(w, "n1", "{\"cpu_seconds\":100,\"memory_peak_bytes\":1000,\"io\":{\"read_bytes\":5}}");
    facts_finish(&w->facts);
    assert_about(w->facts.total.cpu_seconds, 100);
    assert_about(w->facts.total.memory_peak_bytes, 1000);
    assert_about(w->facts.total.read_bytes, 5);
    assert_false(w->facts.origin.has_task_peak);
    world_free(w);
}

/* The kernel's peak was read before the job ran out of memory: Slurm saw more of it, and what it
 * used at the end is not known. */
TEST(of_a_job_that_ran_out_of_memory_the_highest_peak_counts_and_is_a_sample)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.state.base = JOB_OUT_OF_MEMORY;
    row.record.memory_peak_bytes = (uint64_t)GIB * 3 / 4;
    w = world_new(&row);
    take(w, "n1", "{\"memory_peak_bytes\":504658657}"); /* 47 % */
    facts_finish(&w->facts);
    facts_finish(&w->facts);
    assert_about(w->facts.memory_ratio, 0.75);
    assert_true(facts_has_sampled_peak(&w->facts));
    take(w, "n1", "{\"memory_peak_bytes\":1073741824}");
    facts_finish(&w->facts);
    assert_about(w->facts.memory_ratio, 1);
    assert_false(facts_has_sampled_peak(&w->facts));
    world_free(w);
}

TEST(slurms_peak_counts_where_the_other_is_of_samples)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.memory_peak_bytes = 9999;
    w = world_new(&row);
    facts_node(&w->facts, &w->arena, STR("n1"))->use.memory_peak_bytes = 5000;
    facts_finish(&w->facts);
    assert_about(w->facts.total.memory_peak_bytes, 9999);
    assert_true(facts_has_sampled_peak(&w->facts));
    world_free(w);
}

TEST(accounting_alone_makes_a_report)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.cpus = 1;
    row.record.cpu_seconds = 1800;
    row.record.memory_peak_bytes = GIB / 4;
    row.record.read_bytes = 11;
    row.record.write_bytes = 12;
    w = world_new(&row);
    facts_finish(&w->facts);
    assert_about(w->facts.cpu_ratio, 0.5);
    assert_about(w->facts.memory_ratio, 0.25);
    assert_about(w->facts.total.read_bytes, 11);
    assert_about(w->facts.total.written_bytes, 12);
    assert_false(w->facts.origin.has_task_peak);
    assert_false(w->facts.origin.has_agents);
    world_free(w);
}

/* Slurm's MaxRSS is one task's: four of a hundred megabytes hold four times that. */
TEST(a_peak_of_one_task_of_several_is_shown_but_not_judged)
{
    struct job_row row = run_on(1);
    struct world *w;

    row.record.memory_peak_bytes = 1000;
    w = world_new(&row);
    facts_finish(&w->facts);
    assert_about(w->facts.total.memory_peak_bytes, 1000);
    assert_true(w->facts.origin.has_task_peak);
    assert_unknown(w->facts.memory_ratio);
    take(w, "n1", "{\"memory_peak_bytes\":900}");
    facts_finish(&w->facts);
    assert_about(w->facts.total.memory_peak_bytes, 900);
    assert_false(w->facts.origin.has_task_peak);
    assert_about(w->facts.memory_ratio, 900.0 / GIB);
    world_free(w);
}

TEST(nothing_is_divided_by_zero)
{
    struct job_row row = run_on(0);
    struct world *w;

    row.elapsed_seconds = 0;
    row.record.cpu_seconds = 0;
    row.record.time_limit_minutes = 0;
    row.record.memory_peak_bytes = 0;
    row.gpus = 0;
    w = world_new(&row);
    facts_finish(&w->facts);
    assert_about(w->facts.cpu_seconds_held, 0);
    assert_unknown(w->facts.cpu_ratio);
    assert_unknown(w->facts.mean_cpus);
    assert_unknown(w->facts.memory_ratio);
    assert_unknown(w->facts.time_ratio);
    assert_unknown(w->facts.gpu_ratio);
    assert_unknown(w->facts.gpu_memory_ratio);
    assert_unknown(w->facts.cores_used);
    world_free(w);
}

TEST(a_core_is_used_that_has_most_of_its_share)
{
    struct core_facts cores[] = { { 0, 100 }, { 1, 81 }, { 2, 79 }, { 3, 140 }, { 4, 0 } };
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);
    struct node_facts *node = facts_node(&w->facts, &w->arena, STR("n1"));

    node->core = cores;
    node->n_cores = COUNT(cores);
    facts_finish(&w->facts);
    assert_about(w->facts.cores_used, 3);
    for (size_t i = 0; i < COUNT(cores); i++)
        cores[i].seconds = 0;
    facts_finish(&w->facts);
    assert_about(w->facts.cores_used, 0);
    world_free(w);
}

TEST(gpus_are_judged_together_only_if_all_are_known)
{
    struct job_row row = run_on(1);
    struct world *w;
    struct gpu_facts *gpu;

    row.gpus = 2;
    w = world_new(&row);
    gpu = facts_gpu(&w->facts, &w->arena, STR("n1"), STR("10"));
    gpu->utilization_ratio.mean = 0.5;
    gpu->memory_used_bytes.max = 10;
    gpu->memory_bytes = 100;
    facts_finish(&w->facts);
    assert_unknown(w->facts.gpu_ratio);
    assert_unknown(w->facts.gpu_memory_ratio);
    gpu = facts_gpu(&w->facts, &w->arena, STR("n1"), STR("9"));
    gpu->utilization_ratio.mean = 0;
    gpu->memory_used_bytes.max = 50;
    gpu->memory_bytes = 100;
    facts_finish(&w->facts);
    assert_about(w->facts.gpu_ratio, 0.25);
    assert_about(w->facts.gpu_memory_ratio, 0.3);
    assert_str(w->facts.gpu[0].gpu, "9");
    world_free(w);
}

TEST(a_document_that_no_agent_writes_changes_nothing)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "17",
        "{\"cpu_seconds\":1",
        "{\"cpu_seconds\":\"1\"}",
        "{\"cpu_seconds\":-1}",
        "{\"cpu_seconds\":NaN}",
        "{\"cpu_seconds\":Infinity}",
        "{\"cpu_seconds\":1e999}",
        "{\"cpu_seconds\":{}}",
        "{\"uses_scratch\":1}",
        "{\"io\":[]}",
        "{\"names\":{}}",
        "{\"names\":[1]}",
        "{\"names\":[{\"name\":1}]}",
        "{\"oom_kills\":1}{}",
        "{\"names\":[{\"name\":\"a\",\"cpu_seconds\":1}],\"gpus\":[{\"id\":\"0\"}],\"cpu_seconds\":"
        "[]}",
    };
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);

    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (take_document(w, "n1", str_of(wrong[i])) != -EBADMSG)
            fail_msg("%s was taken", wrong[i]);
        assert_contains(w->err.text, "what the agent of n1 counted of job 4711: ");
    }
    assert_int_equal(w->facts.n_nodes, 0);
    assert_int_equal(w->facts.n_gpus, 0);
    assert_int_equal(w->facts.n_processes, 0);
    assert_false(w->facts.origin.has_agents);
    world_free(w);
}

TEST(a_document_past_its_ceiling_is_refused)
{
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);
    struct buf text;

    buf_init(&text, 200 * 1024);
    buf_text(&text, "{\"cpu_seconds\":1,\"x\":\"");
    while (text.n < 100 * 1024)
        buf_text(&text, "xxxxxxxxxxxxxxxx");
    buf_text(&text, "\"}");
    assert_int_equal(take_document(w, "n1", buf_str(&text)), -EBADMSG);
    assert_contains(w->err.text, "longer than 64 KB");
    buf_reset(&text);
    buf_text(&text, "{\"names\":[");
    for (size_t i = 0; i < 1500; i++)
        buf_printf(&text, "%s{\"name\":\"n%zu\",\"cpu_seconds\":1}", i ? "," : "", i);
    buf_text(&text, "]}");
    assert_int_equal(take_document(w, "n1", buf_str(&text)), 0);
    assert_true(w->facts.n_processes > 9 && w->facts.n_processes < 100);
    buf_free(&text);
    world_free(w);
}

TEST(nodes_that_are_known_by_name_are_found_again)
{
    enum { NODES = 4096 };
    struct job_row row = run_on(NODES);
    struct world *w = world_new(&row);
    char name[16];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < NODES; i++) {
            snprintf(name, sizeof(name), "n%u", NODES - i);
            facts_node(&w->facts, &w->arena, str_of(name))->use.cpu_seconds = NODES - i;
            facts_gpu(&w->facts, &w->arena, str_of(name), STR("0"))->energy_joules = 1;
        }
        assert_int_equal(w->facts.n_nodes, NODES);
        assert_int_equal(w->facts.n_gpus, NODES);
        facts_finish(&w->facts);
    }
    assert_str(w->facts.node[0].name, "n1");
    assert_str(w->facts.node[9].name, "n10");
    assert_str(w->facts.node[NODES - 1].name, "n4096");
    assert_about(w->facts.total.cpu_seconds, NODES * (NODES + 1.0) / 2);
    world_free(w);
}

static struct str summary_of(struct world *w, struct buf *to)
{
    buf_init(to, SUMMARY_MAX);
    facts_put_summary(to, &w->facts);
    assert_false(to->over);
    return buf_str(to);
}

/* Facts of the same run, of which nothing but this is known. */
static struct world *world_of_summary(struct world *from)
{
    struct world *w = world_new(&from->facts.row);
    struct buf text;

    if (facts_take_summary(&w->facts, &w->arena, summary_of(from, &text), &w->err) < 0)
        fail_msg("%s: %s", w->err.text, text.p);
    facts_finish(&w->facts);
    buf_free(&text);
    return w;
}

TEST(what_was_kept_is_what_was_known)
{
    static struct core_facts cores[] = { { 0, 1.5 }, { 7, 2.5 } };
    struct job_row row = run_on(2);
    struct world *w, *kept;
    struct gpu_facts *gpu;

    row.gpus = 1;
    w = world_new(&row);
    take(w, "n1", whole_document);
    take(w, "n2", whole_document);
    for (size_t i = 0; i < 2; i++) {
        w->facts.node[i].core = cores;
        w->facts.node[i].n_cores = COUNT(cores);
    }
    facts_gpu(&w->facts, &w->arena, STR("n1"), STR("0"))->utilization_ratio =
        (struct spread){ 0.1, 0.25, 0.5 };
    gpu = facts_gpu(&w->facts, &w->arena, STR("n2"), STR("0"));
    gpu->utilization_ratio = (struct spread){ 0, 0.75, 1 };
    gpu->power_watts = (struct spread){ 50, 60, 70 };
    gpu->memory_bytes = 8192;
    gpu->processes_peak = 0;
    w->facts.lustre = (struct lustre_facts){ 1, 2, 3, NAN };
    w->facts.earlier = (struct earlier_facts){ 3, 1.5, 4096, 60 };
    w->facts.total.busiest_cpus = 6.5;
    facts_finish(&w->facts);

    kept = world_of_summary(w);
    assert_true(kept->facts.origin.has_summary);
    assert_false(kept->facts.origin.has_agents);
    assert_memory_equal(&kept->facts.total, &w->facts.total, sizeof(w->facts.total));
    assert_int_equal(kept->facts.n_nodes, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct node_facts *node = &kept->facts.node[i];

        assert_true(str_eq(node->name, w->facts.node[i].name));
        assert_memory_equal(&node->use, &w->facts.node[i].use, sizeof(node->use));
        assert_int_equal(node->n_cores, 2);
        assert_int_equal(node->core[1].core, 7);
        assert_about(node->core[1].seconds, 2.5);
    }
    assert_int_equal(kept->facts.n_gpus, 2);
    gpu = &kept->facts.gpu[1];
    assert_str(gpu->node, "n2");
    assert_str(gpu->model, "A100");
    assert_about(gpu->utilization_ratio.mean, 0.75);
    assert_about(gpu->utilization_ratio.min, 0);
    assert_about(gpu->power_watts.max, 70);
    assert_about(gpu->memory_bytes, 8192);
    assert_about(gpu->processes_peak, 0);
    assert_unknown(gpu->temperature_celsius.mean);
    assert_unknown(kept->facts.gpu[0].processes_peak);
    assert_int_equal(kept->facts.n_processes, 2);
    assert_str(kept->facts.process[0].name, "python3");
    assert_about(kept->facts.process[0].cpu_seconds, 14000);
    assert_about(kept->facts.lustre.operations, 3);
    assert_unknown(kept->facts.lustre.opens);
    assert_int_equal(kept->facts.earlier.n, 3);
    assert_about(kept->facts.earlier.cpus_used, 1.5);
    assert_about(kept->facts.cpu_ratio, w->facts.cpu_ratio);
    assert_about(kept->facts.gpu_ratio, 0.5);
    world_free(kept);
    world_free(w);
}

TEST(a_summary_makes_no_known_number_smaller)
{
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);

    take(w, "n1", "{\"cpu_seconds\":100}");
    facts_finish(&w->facts);
    if (facts_take_summary(&w->facts, &w->arena,
                           STR("{\"version\":1,\"total\":{\"cpu_seconds\":50,\"cpus\":99,"
                               "\"memory_peak_bytes\":7},\"nodes\":[{\"name\":\"n1\","
                               "\"cpu_seconds\":50,\"files_peak\":3}],\"from_a_newer_one\":[[1]]}"),
                           &w->err) < 0)
        fail_msg("%s", w->err.text);
    facts_finish(&w->facts);
    assert_about(w->facts.total.cpu_seconds, 100);
    assert_about(w->facts.total.memory_peak_bytes, 7);
    assert_about(w->facts.total.cpus, 4);
    assert_about(w->facts.node[0].use.files_peak, 3);
    world_free(w);
}

TEST(a_summary_that_is_none_changes_nothing)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "{\"version\":2,\"total\":{\"cpu_seconds\":1}}",
        "{\"version\":1,\"total\":{\"cpu_seconds\":-1}}",
        "{\"version\":1,\"nodes\":[{\"name\":\"n1\"},[]]}",
        "{\"version\":1,\"nodes\":[{\"name\":\"n1\"}]",
        "{\"version\":1,\"gpus\":[{\"utilization_ratio\":0.5}]}",
    };
    struct job_row row = run_on(1);
    struct world *w = world_new(&row);

    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (facts_take_summary(&w->facts, &w->arena, str_of(wrong[i]), &w->err) != -EBADMSG)
            fail_msg("%s was taken", wrong[i]);
        assert_contains(w->err.text, "what was kept of job 4711: ");
    }
    assert_int_equal(w->facts.n_nodes, 0);
    assert_unknown(w->facts.total.cpu_seconds);
    assert_false(w->facts.origin.has_summary);
    world_free(w);
}

/* 4,000 nodes with 16 cores each, 1,000 GPUs, and as many names as there can be. */
static struct world *world_of_many(void)
{
    struct job_row row = run_on(4000);
    struct world *w;
    char name[40];

    row.gpus = 1000;
    w = world_new(&row);
    for (unsigned i = 0; i < 4000; i++) {
        struct node_facts *node;

        snprintf(name, sizeof(name), "n%u", i);
        take(w, name, whole_document);
        node = facts_node(&w->facts, &w->arena, str_of(name));
        node->use.cpu_seconds = 1000 + (i * 7919) % 4000;
        node->core = ARENA_ARRAY(&w->arena, struct core_facts, 16);
        node->n_cores = 16;
    }
    w->facts.n_gpus = 0;
    w->facts.gpu_index = (struct facts_index){ 0 };
    for (unsigned i = 0; i < 1000; i++) {
        struct gpu_facts *gpu;

        snprintf(name, sizeof(name), "GPU-%08x-0000-0000-0000", i);
        gpu = facts_gpu(&w->facts, &w->arena, STR("n1"), str_of(name));
        gpu->utilization_ratio = (struct spread){ 0, (double)i / 1000, 1 };
    }
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "p%u", i);
        facts_process(&w->facts, &w->arena, str_of(name))->cpu_seconds = i;
    }
    facts_finish(&w->facts);
    return w;
}

static bool has_node(const struct world *w, double cpu_seconds)
{
    for (size_t i = 0; i < w->facts.n_nodes; i++)
        if (w->facts.node[i].use.cpu_seconds == cpu_seconds)
            return true;
    return false;
}

TEST(of_many_nodes_and_gpus_those_are_kept_that_stand_out)
{
    struct world *w = world_of_many(), *kept;
    struct buf text;
    bool has_least = false, has_most = false;

    summary_of(w, &text);
    assert_true(text.n <= SUMMARY_MAX);
    assert_contains(text.p, "\"nodes_left_out\":");
    assert_contains(text.p, "\"gpus_left_out\":");
    assert_contains(text.p, "\"cores_left_out\":");
    assert_contains(text.p, "\"processes_left_out\":");
    buf_free(&text);

    kept = world_of_summary(w);
    assert_true(kept->facts.n_nodes > 5 && kept->facts.n_nodes < 4000);
    assert_true(has_node(kept, 1000));
    assert_true(has_node(kept, 4999));
    assert_false(has_node(kept, 3000));
    for (size_t i = 0; i < kept->facts.n_gpus; i++) {
        has_least |= kept->facts.gpu[i].utilization_ratio.mean == 0;
        has_most |= kept->facts.gpu[i].utilization_ratio.mean == 0.999;
    }
    assert_true(has_least && has_most);
    assert_true(kept->facts.n_gpus < 1000);
    for (size_t i = 0; i < kept->facts.n_nodes; i++)
        assert_true(kept->facts.node[i].n_cores == 0 || kept->facts.node[i].n_cores == 16);
    /* What is true of all of them is not lost with those that are left out. */
    assert_about(kept->facts.total.cpu_seconds, w->facts.total.cpu_seconds);
    assert_about(kept->facts.gpu_ratio, w->facts.gpu_ratio);
    assert_about(kept->facts.cores_used, w->facts.cores_used);
    world_free(kept);
    world_free(w);
}

TEST(hostile_names_are_kept_within_the_ceiling)
{
    static const char hostile[] = "</script><h1>\"\\\r\nBcc: x\x1b[31m\xff\xfe\t{}[],:";
    struct job_row row = run_on(3);
    struct world *w = world_new(&row), *kept;
    char *huge = heap_array(1 << 20, 1);

    memset(huge, 1, 1 << 20); /* six bytes each in JSON */
    take(w, hostile, "{\"cpu_seconds\":5}");
    take(w, "n1", "{\"cpu_seconds\":6}");
    facts_node(&w->facts, &w->arena, (struct str){ huge, 1 << 20 })->use.cpu_seconds = 7;
    facts_gpu(&w->facts, &w->arena, str_of(hostile), str_of(hostile))->model = str_of(hostile);
    facts_gpu(&w->facts, &w->arena, STR("n1"), STR("1"))->model = (struct str){ huge, 1 << 20 };
    facts_process(&w->facts, &w->arena, (struct str){ huge, 4000 })->cpu_seconds = 9;
    facts_process(&w->facts, &w->arena, str_of(hostile))->cpu_seconds = 8;
    facts_finish(&w->facts);

    kept = world_of_summary(w);
    assert_int_equal(kept->facts.n_nodes, 2);
    assert_int_equal(kept->facts.n_gpus, 1);
    assert_int_equal(kept->facts.n_processes, 1);
    assert_contains(kept->facts.process[0].name.p, "</script><h1>\"\\\r\nBcc: x\x1b[31m");
    assert_about(kept->facts.process[0].cpu_seconds, 8);
    assert_about(kept->facts.total.cpu_seconds, 18);
    world_free(kept);
    world_free(w);
    free(huge);
}

TEST(a_summary_of_nothing_is_one)
{
    struct job_row row = run_on(1);
    struct world *w, *kept;

    row.record.memory_peak_bytes = 1000;
    w = world_new(&row);
    facts_finish(&w->facts);
    kept = world_of_summary(w);
    assert_int_equal(kept->facts.n_nodes, 0);
    assert_unknown(kept->facts.total.cpu_seconds);
    /* A task's peak does not become the job's by being kept. */
    assert_true(kept->facts.origin.has_task_peak);
    assert_unknown(kept->facts.memory_ratio);
    world_free(kept);
    world_free(w);
}
