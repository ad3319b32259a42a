/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Prometheus in this process that notes what it is asked, and answers what the test has put up.
 * A real one is asked by tests/e2e/test_series.py. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "http_peer.h"
#include "report/facts_series.h"

#include <math.h>

enum { BEGIN = 1700000000, ANSWERS_MAX = 20, ANSWER_ROOM = 4 << 20 };

struct answer {
    const char *word; /* of the query that it is for */
    unsigned status;
    char *body;
};

struct fixture {
    struct http_peer *peer;
    struct answer answer[ANSWERS_MAX];
    size_t n_answers;

    struct arena arena;
    struct job_facts facts;
    struct series_question question;
    atomic_bool cancelled;
    struct err err;
};

static struct fixture *fixture;

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    const char *query = peer_argument(request, "query");

    ret->type = "application/json";
    ret->body = STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
    for (size_t i = 0; i < fixture->n_answers; i++) {
        if (strstr(query, fixture->answer[i].word)) {
            ret->status = fixture->answer[i].status;
            ret->body = str_of(fixture->answer[i].body);
            break;
        }
    }
}

/* An argument of a request, from 0. */
static const char *argument(size_t request, const char *name)
{
    return peer_argument(peer_request(fixture->peer, request + 1), name);
}

static const char *query_of(size_t request)
{
    return argument(request, "query");
}

/* Job 4711, which ended after so many seconds on so many nodes. */
static void set_run(int64_t seconds, uint32_t nodes)
{
    struct job_row row = { .gpus = MODEL_UNKNOWN_U64, .elapsed_seconds = seconds };

    job_record_clear(&row.record);
    row.record.id = 4711;
    row.record.start_time = BEGIN;
    row.record.end_time = BEGIN + seconds;
    row.record.node_count = nodes;
    row.record.state.base = JOB_COMPLETED;
    job_facts_clear(&fixture->facts);
    facts_take_row(&fixture->facts, &fixture->arena, &row, BEGIN + 10 * 86400);
}

static void setup(void)
{
    struct prometheus_settings settings = { .max_answer = ANSWER_ROOM };

    fixture = heap_alloc(sizeof(*fixture));
    fixture->peer = peer_open(NULL);
    peer_reply_by(fixture->peer, reply);
    settings.url = str_of(peer_url(fixture->peer));
    assert_int_equal(prometheus_open(&settings, &fixture->question.prometheus, &fixture->err), 0);
    fixture->question.matcher = STR("cluster=\"a\"");
    fixture->question.cancelled = &fixture->cancelled;
    set_run(3600, 1);
}

static void teardown(void)
{
    prometheus_close(fixture->question.prometheus);
    peer_free(fixture->peer);
    for (size_t i = 0; i < fixture->n_answers; i++)
        free(fixture->answer[i].body);
    arena_clear(&fixture->arena);
    free(fixture);
}

FIXTURE(setup, teardown)

static void put_up(const char *word, unsigned status, struct str body)
{
    assert_true(fixture->n_answers < ANSWERS_MAX);
    fixture->answer[fixture->n_answers++] = (struct answer){ word, status, heap_str(body) };
}

/* Elements as "labels|value", apart by line breaks; in labels ' stands for quotes. */
static void put_up_result(const char *word, const char *type, const char *elements)
{
    struct buf body;
    bool is_matrix = strcmp(type, "matrix") == 0;

    buf_init(&body, ANSWER_ROOM);
    buf_printf(&body, "{\"status\":\"success\",\"data\":{\"resultType\":\"%s\",\"result\":[", type);
    for (struct str line, rest = str_of(elements); rest.p && rest.n;) {
        struct str labels;
        const char *bar;

        line = str_cut(&rest, '\n');
        bar = memrchr(line.p, '|', line.n);
        labels = str_span(line.p, bar);
        line = str_skip(line, labels.n + 1);
        buf_text(&body, "{\"metric\":{");
        for (size_t i = 0; i < labels.n; i++)
            buf_byte(&body, labels.p[i] == '\'' ? '"' : labels.p[i]);
        buf_printf(&body, is_matrix ? "},\"values\":[%.*s]}%s" : "},\"value\":[1,\"%.*s\"]}%s",
                   STR_ARG(line), rest.p && rest.n ? "," : "");
    }
    buf_text(&body, "]}}");
    assert_false(body.over);
    put_up(word, 200, buf_str(&body));
    buf_free(&body);
}

static void put_up_vector(const char *word, const char *elements)
{
    put_up_result(word, "vector", elements);
}

/* What the first query of all finds. */
static const char look_word[] = "recent_samples";
static const char one_node[] = "'fact':'nodes'|1\n'fact':'samples'|240\n'fact':'recent_samples'|40";

static int take(void)
{
    fixture->err = (struct err){ 0 };
    fixture->question.deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE;
    return facts_take_series(&fixture->facts, &fixture->arena, &fixture->question, &fixture->err);
}

static void assert_taken(void)
{
    if (take() != 0)
        fail_msg("%s", fixture->err.text);
    assert_true(peer_requests(fixture->peer) <= SERIES_QUERIES);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* Each is one run's of one cluster: all selectors have the matcher, and no time is open. */
static void assert_bounded(void)
{
    for (size_t i = 0; i < peer_requests(fixture->peer); i++) {
        const char *query = query_of(i);

        assert_int_equal(count(query, "{"), count(query, "cluster=\"a\""));
        assert_int_equal(count(query, "job_id=\"4711\"") + count(query, "slurm_job=\"4711\"") +
                             count(query, "jobid=\"4711\"") + count(query, "{node=~\""),
                         count(query, "{"));
        assert_true(argument(i, "time")[0] || (argument(i, "start")[0] && argument(i, "end")[0]));
        assert_true(strlen(query) < 6000);
    }
}

TEST(a_run_that_nobody_has_samples_of_is_told)
{
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 2);
    assert_false(fixture->facts.origin.has_series);
    assert_contains(fixture->facts.origin.why_no_series.p,
                    "has no samples of job 4711 from the time of this run (cluster=\"a\")");
    assert_bounded();
    assert_string_equal(
        query_of(0),
        "label_replace(count(max by(node)(last_over_time({__name__=~\"sonde_job_(info|"
        "cpu_seconds_total)\",job_id=\"4711\",cluster=\"a\"}[3660s]))),\"fact\",\"nodes\",\"\","
        "\"\") or label_replace(count(max by(instance,exported_instance)(last_over_time("
        "jobs_cpu_time_total{slurm_job=\"4711\",cluster=\"a\"}[3660s]))),\"fact\",\"old_nodes\","
        "\"\",\"\") or label_replace(max(count_over_time(sonde_job_cpu_seconds_total{job_id="
        "\"4711\",cluster=\"a\"}[3660s]) or count_over_time(jobs_cpu_time_total{slurm_job=\"4711\","
        "cluster=\"a\"}[3660s])),\"fact\",\"samples\",\"\",\"\") or label_replace(max("
        "count_over_time(sonde_job_cpu_seconds_total{job_id=\"4711\",cluster=\"a\"}[600s] offset "
        "60s) or count_over_time(jobs_cpu_time_total{slurm_job=\"4711\",cluster=\"a\"}[600s] "
        "offset "
        "60s)),\"fact\",\"recent_samples\",\"\",\"\") or label_replace(max by(node,gpu,"
        "gpu_instance)(last_over_time(sonde_job_gpu_info{job_id=\"4711\",cluster=\"a\"}[3660s])),"
        "\"fact\",\"gpu\",\"\",\"\")");
    assert_string_equal(peer_request(fixture->peer, 0 + 1)->path, "/api/v1/query");
    assert_string_equal(argument(0, "time"), "1700003660");
}

TEST(a_run_that_has_not_begun_is_not_asked_for)
{
    fixture->facts.row.record.start_time = 0;
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 0);
    assert_int_equal(fixture->facts.origin.why_no_series.n, 0);
}

TEST(one_that_runs_is_asked_for_until_the_end_of_this_second)
{
    fixture->facts.is_running = true;
    fixture->facts.row.record.end_time = 0;
    fixture->facts.now = BEGIN + 1000;
    put_up_vector(look_word, one_node);
    assert_taken();
    assert_string_equal(argument(0, "time"), "1700001001");
    assert_contains(query_of(0), "[1001s]");
    assert_null(strstr(query_of(0), "offset"));
}

TEST(numbers_of_a_node_need_three_queries)
{
    const struct use_facts *use;

    put_up_vector(look_word, one_node);
    put_up_vector(
        "memory_peak_bytes",
        "'fact':'cpu_seconds','node':'n1'|100\n'fact':'cpus','node':'n1'|4\n"
        "'fact':'memory_counted_bytes','node':'n1'|7\n"
        "'fact':'memory_peak_bytes','node':'n1'|9\n"
        "'fact':'io_waiting_seconds','node':'n1'|3\n'fact':'busiest_cpus'|3.5\n"
        "'fact':'busiest_cpus','node':'n1'|3\n'fact':'uses_scratch','instance':'n1:9798'|1\n"
        "'fact':'no such fact','node':'n1'|1");
    put_up_vector("lustre_opens", "'fact':'process_threads','process':'R'|12\n"
                                  "'fact':'core_seconds','instance':'n1:9798','core':'11'|5\n"
                                  "'fact':'core_seconds','instance':'n1:9798','core':'2'|6\n"
                                  "'fact':'core_seconds','instance':'n1:9798','core':'x'|6\n"
                                  "'fact':'lustre_opens'|8");
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 3);
    assert_bounded();
    assert_true(fixture->facts.origin.has_series);
    assert_str(fixture->facts.origin.series, peer_url(fixture->peer));
    assert_int_equal(fixture->facts.n_nodes, 1);
    use = &fixture->facts.node[0].use;
    assert_true(use->cpu_seconds == 100 && use->cpus == 4 && use->memory_peak_bytes == 9);
    assert_true(use->memory_counted_bytes == 7);
    assert_true(use->io_waiting_seconds == 3 && use->busiest_cpus == 3 && use->uses_scratch == 1);
    assert_true(isnan(use->swap_peak_bytes) && isnan(fixture->facts.total.swap_peak_bytes));
    assert_true(fixture->facts.total.busiest_cpus == 3.5);
    assert_int_equal(fixture->facts.n_processes, 1);
    assert_true(fixture->facts.process[0].threads_peak == 12);
    assert_true(isnan(fixture->facts.process[0].cpu_seconds));
    assert_int_equal(fixture->facts.node[0].n_cores, 2);
    assert_int_equal(fixture->facts.node[0].core[0].core, 2);
    assert_int_equal(fixture->facts.node[0].core[1].core, 11);
    assert_true(fixture->facts.lustre.opens == 8 && isnan(fixture->facts.lustre.read_bytes));
    assert_contains(query_of(1),
                    "label_replace(max by(node)(max_over_time(sonde_job_cpu_seconds_total{job_id="
                    "\"4711\",cluster=\"a\"}[3660s])),\"fact\",\"cpu_seconds\",\"\",\"\")");
    assert_contains(query_of(1),
                    "max_over_time(sum(max by(node)(rate(sonde_job_cpu_seconds_total{job_id="
                    "\"4711\",cluster=\"a\"}[60s])))[3660s:15s])");
}

TEST(known_numbers_never_become_smaller)
{
    struct node_facts *node = facts_node(&fixture->facts, &fixture->arena, STR("n1"));

    node->use.cpu_seconds = 120;
    node->use.oom_kills = 0;
    put_up_vector(look_word, one_node);
    put_up_vector("memory_peak_bytes",
                  "'fact':'cpu_seconds','node':'n1'|100\n'fact':'oom_kills','node':'n1'|2");
    assert_taken();
    assert_int_equal(fixture->facts.n_nodes, 1);
    assert_true(fixture->facts.node[0].use.cpu_seconds == 120);
    assert_true(fixture->facts.node[0].use.oom_kills == 2);
}

TEST(what_is_no_number_reaches_no_fact)
{
    fixture->question.wants_plots = true;
    put_up_vector(look_word, one_node);
    put_up_vector("memory_peak_bytes",
                  "'fact':'cpu_seconds','node':'n1'|NaN\n'fact':'cpus','node':'n1'|+Inf\n"
                  "'fact':'gpus','node':'n1'|-1\n'fact':'oom_kills','node':'n1'|0");
    put_up_result("max by(node)(rate(sonde_job_cpu_seconds_total", "matrix",
                  "'node':'n1'|[1700000000,\"NaN\"],[1700000015,\"2\"],[1700000030,\"+Inf\"],"
                  "[1700000045,\"-1\"],[1699999000,\"5\"],[1700900000,\"5\"]\n"
                  "'node':'n2'|[1700000000,\"NaN\"]");
    assert_taken();
    assert_true(isnan(fixture->facts.node[0].use.cpu_seconds));
    assert_true(isnan(fixture->facts.node[0].use.cpus));
    assert_true(isnan(fixture->facts.node[0].use.gpus));
    assert_true(fixture->facts.node[0].use.oom_kills == 0);
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_lines, 1);
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_points, 241);
    for (size_t i = 0; i < 241; i++)
        assert_true(i == 1 ? fixture->facts.plot[PLOT_CPU].line[0].value[i] == 2
                           : isnan(fixture->facts.plot[PLOT_CPU].line[0].value[i]));
    assert_true(fixture->facts.total.busiest_cpus == 2);
    assert_int_equal(fixture->facts.plot[PLOT_MEMORY].n_points, 0);
}

TEST(both_forms_of_an_instance_mean_the_node)
{
    put_up_vector(look_word, "'fact':'old_nodes'|5");
    put_up_vector("memory_peak_bytes",
                  "'fact':'cpu_seconds','instance':'n1:9798'|1\n"
                  "'fact':'user_seconds','instance':'n1'|2\n"
                  "'fact':'cpu_seconds','instance':'gate:9091','exported_instance':'n2'|1\n"
                  "'fact':'cpu_seconds','instance':'[fe80::1]:9798'|1\n"
                  "'fact':'cpu_seconds','instance':'fe80::1:9798'|1\n"
                  "'fact':'cpu_seconds','instance':'n3:'|1");
    assert_taken();
    assert_bounded();
    assert_int_equal(fixture->facts.n_nodes, 5);
    assert_str(fixture->facts.node[0].name, "n1");
    assert_true(fixture->facts.node[0].use.user_seconds == 2);
    assert_str(fixture->facts.node[1].name, "n2");
    assert_str(fixture->facts.node[2].name, "fe80::1");
    assert_str(fixture->facts.node[3].name, "fe80::1:9798");
    assert_str(fixture->facts.node[4].name, "n3:");
    assert_null(strstr(query_of(1), "sonde_"));
    assert_contains(query_of(1),
                    "label_replace(max by(instance,exported_instance)(max_over_time(jobs_rss{"
                    "slurm_job=\"4711\",cluster=\"a\"}[3660s]))*1048576,\"fact\","
                    "\"memory_peak_bytes\",\"\",\"\")");
}

TEST(gpus_are_asked_for_by_their_nodes_and_joined_with_the_job)
{
    const struct gpu_facts *gpu;

    put_up_vector(look_word, "'fact':'nodes'|1\n'fact':'gpu','node':'a.b','gpu':'0'|1\n"
                             "'fact':'gpu','node':'a.b','gpu':'1','gpu_instance':'7'|1\n"
                             "'fact':'gpu','node':'x\\\"}|y','gpu':'0'|1");
    put_up_vector(
        "gpu_power_watts_max",
        "'fact':'gpu_power_watts_min','node':'a.b','gpu':'0'|10\n"
        "'fact':'gpu_power_watts_mean','node':'a.b','gpu':'0'|20\n"
        "'fact':'gpu_power_watts_max','node':'a.b','gpu':'0'|30\n"
        "'fact':'gpu_processes_peak','node':'a.b','gpu':'0'|0\n"
        "'fact':'gpu_info','node':'a.b','gpu':'1','gpu_instance':'7','uuid':'MIG-1',"
        "'model':'A100'|1\n"
        "'fact':'gpu_utilization_ratio_mean','node':'a.b','gpu':'1','gpu_instance':'7'|0.5");
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 4);
    assert_bounded();
    assert_string_equal(argument(3, "time"), "1700003600");
    assert_contains(query_of(3),
                    "max by(node,gpu,gpu_instance)(max_over_time(sonde_gpu_power_watts{node=~"
                    "\"(a\\\\.b|x\\\"\\\\}\\\\|y)\",cluster=\"a\"}[3600s]))");
    assert_contains(query_of(3),
                    ") and on(node,gpu,gpu_instance) last_over_time(sonde_job_gpu_info{job_id="
                    "\"4711\",cluster=\"a\"}[3600s])");
    assert_int_equal(fixture->facts.n_gpus, 3);
    gpu = facts_gpu(&fixture->facts, &fixture->arena, STR("a.b"), STR("0"));
    assert_true(gpu->power_watts.min == 10 && gpu->power_watts.mean == 20);
    assert_true(gpu->power_watts.max == 30 && gpu->processes_peak == 0);
    assert_true(isnan(gpu->utilization_ratio.mean));
    gpu = facts_gpu(&fixture->facts, &fixture->arena, STR("a.b"), STR("MIG-1"));
    assert_true(gpu->utilization_ratio.mean == 0.5);
    assert_str(gpu->model, "A100");
    assert_int_equal(fixture->facts.n_gpus, 3);
}

TEST(plots_need_seven_more_at_most)
{
    fixture->question.wants_plots = true;
    set_run(86400, 1);
    put_up_vector(look_word,
                  "'fact':'nodes'|2\n'fact':'samples'|5760\n'fact':'gpu','node':'n1','gpu':'0'|1");
    put_up_result("max by(node)(rate(sonde_job_cpu_seconds_total", "matrix",
                  "'node':'n1'|[1700000000,\"1\"],[1700000087,\"3\"]\n"
                  "'node':'n2'|[1700000000,\"2\"],[1700000174,\"4\"]");
    put_up_vector("gpu_energy_joules", "");
    put_up_result("(avg_over_time(sonde_gpu_power_watts", "matrix",
                  "'node':'n1','gpu':'0'|[1700000000,\"100\"]");
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 11);
    assert_bounded();
    for (size_t i = 4; i < 11; i++) {
        assert_string_equal(peer_request(fixture->peer, i + 1)->path, "/api/v1/query_range");
        assert_string_equal(argument(i, "start"), "1700000000");
        assert_string_equal(argument(i, "end"), "1700086391");
        assert_string_equal(argument(i, "step"), "87");
    }
    assert_string_equal(query_of(4),
                        "(max by(node)(rate(sonde_job_cpu_seconds_total{job_id=\"4711\",cluster="
                        "\"a\"}[87s])))");
    assert_string_equal(
        query_of(9),
        "(max by(node,gpu,gpu_instance)(max_over_time(sonde_job_gpu_memory_used_bytes{job_id="
        "\"4711\",cluster=\"a\"}[87s])) or max by(node,gpu,gpu_instance)(max_over_time("
        "sonde_gpu_memory_used_bytes{node=~\"n1\",cluster=\"a\"}[87s]))) and on(node,gpu,"
        "gpu_instance) sonde_job_gpu_info{job_id=\"4711\",cluster=\"a\"}");
    assert_null(strstr(query_of(1), "busiest"));
    assert_true(fixture->facts.total.busiest_cpus == 4);
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_members, 2);
    assert_str(fixture->facts.plot[PLOT_GPU_POWER].line[0].name, "n1 0");
    assert_int_equal(fixture->facts.plot[PLOT_GPU].n_points, 0);
}

/* As many nodes as there may be, each with two numbers; and 1,000 GPUs. */
static void put_up_many(void)
{
    struct buf look, nodes;

    buf_init(&look, ANSWER_ROOM);
    buf_init(&nodes, ANSWER_ROOM);
    buf_text(&look, "'fact':'nodes'|4096\n'fact':'samples'|5760");
    buf_text(&nodes, "'fact':'read_bytes'|77\n'fact':'user_seconds'|55");
    for (int i = 0; i < 1000; i++)
        buf_printf(&look, "\n'fact':'gpu','node':'cn%d','gpu':'%d'|1", i / 2, i % 2);
    for (int i = 0; i < 4096; i++)
        buf_printf(&nodes, "\n'fact':'cpu_seconds','node':'cn%d'|%d", i, i);
    put_up_vector(look_word, look.p);
    put_up_vector("memory_peak_bytes", nodes.p);
    buf_free(&look);
    buf_free(&nodes);
}

TEST(four_thousand_nodes_need_no_more)
{
    fixture->question.wants_plots = true;
    set_run(86400, 4096);
    put_up_many();
    put_up_result("quantile(0.5,(max by(node)(rate(", "matrix",
                  "'fact':'median'|[1700000000,\"2\"]\n'fact':'lowest'|[1700000000,\"1\"]\n"
                  "'fact':'highest'|[1700000000,\"3\"]\n'fact':'all'|[1700000000,\"8000\"]");
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 11);
    assert_bounded();
    assert_int_equal(fixture->facts.n_nodes, 4096);
    assert_true(facts_node(&fixture->facts, &fixture->arena, STR("cn4095"))->use.cpu_seconds ==
                4095);
    assert_true(fixture->facts.total.read_bytes == 77 && fixture->facts.total.user_seconds == 55);
    assert_int_equal(fixture->facts.n_gpus, 1000);
    assert_contains(query_of(1),
                    "label_replace(sum(max by(node)(max_over_time(sonde_job_read_bytes_total{");
    assert_contains(query_of(1),
                    "label_replace(max by(node)(max_over_time(sonde_job_memory_bytes{");
    assert_contains(query_of(1), "label_replace(max(max by(node)(max_over_time("
                                 "sonde_job_pressure_waiting_seconds_total{");
    assert_contains(query_of(3), "sonde_gpu_power_watts{node=~\"cn.*\",cluster=");
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_lines, 3);
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_members, 4096);
    assert_int_equal(fixture->facts.plot[PLOT_CPU].n_points, 99);
    assert_true(fixture->facts.total.busiest_cpus == 8000);
}

TEST(a_sum_of_some_nodes_is_not_that_of_all)
{
    set_run(86400, 5000);
    put_up_many();
    assert_taken();
    assert_true(fixture->facts.total.read_bytes == 77);
    assert_true(isnan(fixture->facts.total.user_seconds));
}

TEST(a_failure_leaves_the_facts_as_they_were)
{
    put_up_vector(look_word, one_node);
    put_up_vector("memory_peak_bytes", "'fact':'cpu_seconds','node':'n1'|100");
    put_up("lustre_opens", 503,
           STR("{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}"));
    assert_int_equal(take(), -EREMOTEIO);
    assert_contains(fixture->err.text, "query timed out");
    assert_str(fixture->facts.origin.why_no_series, fixture->err.text);
    assert_false(fixture->facts.origin.has_series);
    assert_int_equal(fixture->facts.n_nodes, 0);
}

TEST(a_plot_that_cannot_be_had_costs_only_plots)
{
    fixture->question.wants_plots = true;
    put_up_vector(look_word, one_node);
    put_up_vector("memory_peak_bytes", "'fact':'cpu_seconds','node':'n1'|100");
    put_up("max by(node)(max_over_time(sonde_job_memory_bytes{job_id=\"4711\",cluster=\"a\"}[30s]",
           422, STR("{\"status\":\"error\",\"error\":\"too many samples\"}"));
    assert_taken();
    assert_int_equal(peer_requests(fixture->peer), 5);
    assert_true(fixture->facts.node[0].use.cpu_seconds == 100);
    assert_true(fixture->facts.origin.has_series);
    assert_contains(fixture->facts.origin.why_no_series.p, "too many samples");
}

TEST(a_warning_of_missing_data_is_passed_on)
{
    put_up(
        look_word, 200,
        STR("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":"
            "{\"fact\":\"nodes\"},\"value\":[1,\"1\"]}]},\"warnings\":[\"a store is away\"]}"));
    assert_taken();
    assert_true(fixture->facts.origin.has_series);
    assert_contains(fixture->facts.origin.why_no_series.p, "a store is away");
}

TEST(one_deadline_holds_for_all_queries)
{
    peer_hold(fixture->peer, "lustre_opens");
    put_up_vector(look_word, one_node);
    fixture->question.deadline_ns = clock_mono(&clock_real) + 300 * NS_PER_MS;
    assert_int_equal(
        facts_take_series(&fixture->facts, &fixture->arena, &fixture->question, &fixture->err),
        -ETIMEDOUT);
    assert_str(fixture->facts.origin.why_no_series, fixture->err.text);
}

TEST(it_can_be_cancelled)
{
    peer_hold(fixture->peer, look_word);
    atomic_store(&fixture->cancelled, true);
    assert_int_equal(take(), -ECANCELED);
}

TEST(a_matcher_may_be_of_one_cluster)
{
    static const struct {
        const char *text, *cluster, *matcher;
    } cases[] = {
        { "cluster=\"beluga\"", "", "cluster=\"beluga\"" },
        { "beluga=cluster=\"beluga\"", "beluga", "cluster=\"beluga\"" },
        { " my-cluster = site=~\"a|b\",env!=\"test\" ", "my-cluster",
          "site=~\"a|b\",env!=\"test\"" },
        { "site=~\"a=b\"", "", "site=~\"a=b\"" },
        { "site!=\"a\",b=\"c\"", "", "site!=\"a\",b=\"c\"" },
        { "site = 'a'", "", "site = 'a'" },
    };
    static const char *const bad[] = {
        "", "beluga", "beluga=", "beluga=up", "a=\"b\"} or up{c=\"d\"", "beluga=a=\"b"
    };
    struct series_matcher matcher;
    struct err err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (series_matcher_read(str_of(cases[i].text), &matcher, &err) < 0)
            fail_msg("%s", err.text);
        assert_str(matcher.cluster, cases[i].cluster);
        assert_str(matcher.matcher, cases[i].matcher);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(series_matcher_read(str_of(bad[i]), &matcher, &err), -EINVAL);
    assert_string_equal(err.text, "of cluster beluga: a=\"b are no PromQL label matchers: write "
                                  "them as cluster=\"name\"");
}
