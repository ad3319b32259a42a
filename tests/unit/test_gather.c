/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs that a real store has, or a sacct that plays what a real one said (tests/data/sacct); in
 * place of a Prometheus, the function below. */
#include "store_fixture.h"

#include "report/gather.h"

#include <math.h>

/* The recorded jobs were submitted at 1794841650 … 1794841654. */
enum { NOW = 1794841800, DAY = 86400 };

struct world {
    struct gather gather;
    struct arena arena;
    struct job_facts facts;
    struct err err;

    /* What the stand-in of a Prometheus was asked, and answers. */
    int series_code;
    size_t n_series;
    char matcher[100];
    double cpu_seconds;
};

static struct world *w;

int facts_take_series(struct job_facts *facts, struct arena *arena,
                      const struct series_question *question, struct err *err)
{
    w->n_series++;
    snprintf(w->matcher, sizeof(w->matcher), "%.*s", STR_ARG(question->matcher));
    assert_true(facts->row.key.job_id);
    if (w->series_code < 0)
        return err_set(err, -w->series_code, "http://prometheus:9090: it is away");
    facts->origin.has_series = true;
    facts_node(facts, arena, STR("n1"))->use.cpu_seconds = w->cpu_seconds;
    return 0;
}

static void set_up(void)
{
    w = heap_alloc(sizeof(*w));
    fixture_begin_open();
    if (store_reader_open(str_of(fixture.path), &w->gather.store, &w->err) < 0)
        fail_msg("%s", w->err.text);
    w->gather.now = NOW;
    w->gather.deadline_ns = clock_mono(&clock_real) + TEST_DEADLINE;
    w->gather.earlier_ns = 60 * NS_PER_SEC;
}

static void add_sacct(const char *cluster)
{
    struct source_settings settings = { .max_answer = 64 << 20 };

    setenv("FAKE_SACCT_ANSWER", source_path("tests/data/sacct/24.11.txt"), 1);
    setenv("FAKE_SACCT_LOG", write_file("calls", ""), 1);
    unsetenv("FAKE_SACCT_REFUSAL");
    settings.bin_path = str_of(source_path("tests/data/sacct/bin"));
    if (sacct_new(&settings, &w->gather.sacct, &w->err) < 0)
        fail_msg("%s", w->err.text);
    w->gather.sacct_cluster = str_of(cluster);
}

static bool sacct_was_asked(void)
{
    return read_file("calls").n;
}

static void tear_down(void)
{
    store_reader_close(w->gather.store);
    sacct_free(w->gather.sacct);
    fixture_end();
    arena_clear(&w->arena);
    free(w);
}

FIXTURE(set_up, tear_down)

static struct job_name name_of(const char *text)
{
    struct job_name name;
    struct err err;

    if (job_name_read(str_of(text), &name, &err) < 0)
        fail_msg("%s", err.text);
    return name;
}

static int try(const char *name)
{
    const struct job_name parsed = name_of(name);

    w->err = (struct err){ 0 };
    return gather_job(&w->gather, &parsed, &w->arena, &w->facts, &w->err);
}

static const struct job_record *gather(const char *name)
{
    if (try(name) < 0)
        fail_msg("%s: %s", name, w->err.text);
    return &w->facts.row.record;
}

#define assert_refused(name, code, sentence)                                                       \
    do {                                                                                           \
        assert_int_equal(try(name), -(code));                                                      \
        assert_contains(w->err.text, sentence);                                                    \
    } while (0)

static void put_final(const char *cluster, uint32_t id, const char *node, int64_t begin_time,
                      const char *document)
{
    const struct final_record final = { id, str_of(node), begin_time, begin_time + 1,
                                        str_of(document) };

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_final(fixture.store, str_of(cluster), &final, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static struct job_record task_in(enum job_base base, uint32_t id, uint32_t array, uint32_t task,
                                 int64_t submit_time)
{
    struct job_record record = job_in(base, id, submit_time, NOW);

    record.array_job_id = array;
    record.array_task_id = task;
    return record;
}

static struct job_record component_in(uint32_t id, uint32_t het, uint32_t offset)
{
    struct job_record record = job_in(JOB_COMPLETED, id, NOW - 1000, NOW);

    record.het_job_id = het;
    record.het_offset = offset;
    return record;
}

TEST(a_run_comes_with_its_life_and_what_agents_counted)
{
    struct job_record record = job_in(JOB_PENDING, 100, NOW - 1000, NOW - 995);

    put(record);
    record = job_in(JOB_COMPLETED, 100, NOW - 1000, NOW - 800);
    record.cpus = 2;
    record.node_count = 2;
    record.extra = &(struct record_extra){ STR("SubmitLine"), STR("sbatch x") };
    record.n_extra = 1;
    put(record);
    put_final("alpha", 100, "n1", NOW - 990, "{\"cpu_seconds\":60}");
    put_final("alpha", 100, "n2", NOW - 990, "{\"cpu_seconds\":30}");
    put_final("alpha", 100, "n3", NOW - 990, "{\"cpu_seconds\":\"of no use\"}");
    put_final("alpha", 101, "n4", NOW - 990, "{\"cpu_seconds\":1}");
    gather("100");
    assert_str(w->facts.row.key.cluster, "alpha");
    assert_str(w->facts.row.record.extra[0].value, "sbatch x");
    assert_int_equal(w->facts.n_life, 3);
    assert_str(w->facts.life[0].state, "PENDING");
    assert_str(w->facts.life[2].state, "COMPLETED");
    assert_true(w->facts.origin.has_agents);
    assert_int_equal(w->facts.n_nodes, 2);
    assert_true(w->facts.total.cpu_seconds == 90);
    assert_true(w->facts.mean_cpus == 1);
    assert_true(w->facts.cpu_ratio == 0.5);
    assert_false(w->facts.origin.has_series);
    assert_int_equal(w->n_series, 0);
    assert_int_equal(w->facts.origin.why_no_series.n, 0);
}

TEST(what_a_simulated_store_tells_is_simulated)
{
    struct job_facts *tasks;
    size_t n;

    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW - 800));
    gather("100");
    assert_false(w->facts.origin.is_simulated);
    store_reader_close(w->gather.store);
    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    OK(store_open(str_of(fixture.path), true, &fixture.store, &fixture.err));
    OK(store_reader_open(str_of(fixture.path), &w->gather.store, &fixture.err));
    put(task_in(JOB_COMPLETED, 100, 100, 1, NOW - 1000));
    gather("100");
    assert_true(w->facts.origin.is_simulated);
    OK(gather_array(&w->gather,
                    &(struct job_name){ STR(""), 100, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32 }, 10,
                    &w->arena, &tasks, &n, &fixture.err));
    assert_true(tasks[0].origin.is_simulated);
    add_sacct("sandbox");
    gather("sandbox:5435009"); /* which is real, whatever the store is */
    assert_false(w->facts.origin.is_simulated);
}

TEST(the_newest_run_is_meant)
{
    put(job_in(JOB_NODE_FAIL, 100, NOW - 3000, NOW - 2800));
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW - 800));
    put(job_in(JOB_FAILED, 100, NOW - 2000, NOW - 1800));
    assert_int_equal(gather("100")->state.base, JOB_COMPLETED);
}

TEST(a_running_job_is_told_until_now)
{
    struct job_record record = job_in(JOB_RUNNING, 100, NOW - 1000, NOW - 30);

    record.cpus = 4;
    put(record);
    gather("100");
    assert_true(w->facts.is_running);
    assert_int_equal(w->facts.origin.teller, TOLD_BY_STORE);
    assert_int_equal(w->facts.now, NOW);
    assert_int_equal(w->facts.row.elapsed_seconds, 990);
    assert_true(w->facts.cpu_seconds_held == 4 * 990);
}

TEST(an_array_needs_a_task_to_be_one_run)
{
    put(task_in(JOB_COMPLETED, 101, 103, 7, NOW - 1000));
    put(task_in(JOB_FAILED, 102, 103, 8, NOW - 1000));
    put(task_in(JOB_COMPLETED, 103, 103, 9, NOW - 1000));
    assert_refused("103", ENOTUNIQ, "name one as 103_TASK, as in 103_7");
    assert_contains(w->err.text, "--array");
    assert_int_equal(gather("103_8")->id, 102);
    assert_int_equal(gather("103_9")->id, 103);
    assert_int_equal(gather("102")->id, 102);
    assert_refused("103_10", ENOENT, "there is no job 103_10 in the store");
    assert_refused("102_8", ENOENT, "there is no job 102_8");
}

TEST(an_array_of_one_task_is_one_run)
{
    put(task_in(JOB_FAILED, 101, 101, 7, NOW - 2000));
    put(task_in(JOB_COMPLETED, 101, 101, 7, NOW - 1000));
    assert_int_equal(gather("101")->state.base, JOB_COMPLETED);
}

TEST(tasks_that_wait_together_are_several)
{
    struct job_record record = task_in(JOB_PENDING, 101, 101, MODEL_UNKNOWN_U32, NOW - 1000);

    record.tasks = 5;
    put(record);
    assert_refused("101", ENOTUNIQ, "101_TASK");
}

TEST(a_component_is_one_of_several)
{
    put(component_in(200, 200, 0));
    put(component_in(201, 200, 1));
    assert_refused("200", ENOTUNIQ, "has several components: name one, as in 200+0");
    assert_int_equal(gather("200+0")->id, 200);
    assert_int_equal(gather("200+1")->id, 201);
    assert_refused("200+2", ENOENT, "there is no job 200+2");
}

TEST(a_job_of_two_clusters_must_say_of_which)
{
    struct job_record record = job_in(JOB_COMPLETED, 100, NOW - 1000, NOW);

    put_in("alpha", &record);
    record.submit_time -= 5000;
    put_in("beta", &record);
    assert_refused("100", ENOTUNIQ, "several clusters: alpha, beta; say which, as in alpha:100");
    gather("beta:100");
    assert_str(w->facts.row.key.cluster, "beta");
    assert_refused("gamma:100", ENOENT, "there is no job gamma:100 in the store");
}

TEST(an_id_that_was_used_before_is_the_newest_job)
{
    for (uint32_t i = 0; i < 3; i++)
        put(task_in(JOB_COMPLETED, 500 + i, 100, i, NOW - 2000 * (int64_t)DAY));
    put(job_in(JOB_FAILED, 100, NOW - 1000, NOW - 800));
    assert_int_equal(gather("100")->state.base, JOB_FAILED);
}

TEST(accounting_tells_the_end_that_the_store_has_not_seen)
{
    struct job_record record = job_in(JOB_RUNNING, 5435002, 1794841650, 1794841651);

    add_sacct("");
    put(record);
    put_final("alpha", 5435002, "c4", 1794841651, "{\"cpu_seconds\":1}");
    gather("5435002");
    assert_int_equal(w->facts.row.record.state.base, JOB_COMPLETED);
    assert_str(w->facts.row.record.name, "completed-steps");
    assert_int_equal(w->facts.row.elapsed_seconds, 2);
    assert_int_equal(w->facts.row.wait_seconds, 1);
    assert_true(w->facts.row.record.n_extra > 5);
    assert_true(w->facts.origin.has_accounting);
    assert_int_equal(w->facts.origin.teller, TOLD_BY_SACCT);
    /* What the store knows goes with it. */
    assert_str(w->facts.row.key.cluster, "alpha");
    assert_true(w->facts.origin.has_agents);
    assert_true(w->facts.n_life > 0);
}

TEST(sacct_is_not_asked_of_what_has_ended_or_is_of_another_cluster)
{
    add_sacct("sandbox");
    put(job_in(JOB_COMPLETED, 5435002, 1794841650, NOW));
    put(job_in(JOB_RUNNING, 5435004, 1794841650, NOW));
    gather("5435002");
    assert_int_equal(gather("5435004")->state.base, JOB_RUNNING);
    assert_refused("alpha:5435005", ENOENT, "there is no job alpha:5435005 in the store");
    assert_false(sacct_was_asked());
    assert_int_equal(gather("sandbox:5435005")->state.base, JOB_FAILED);
    assert_true(sacct_was_asked());
}

/* Whose sacct it is is not known: it may tell of another cluster's job with the same id. */
TEST(another_run_is_taken_only_from_the_same_cluster)
{
    add_sacct("");
    put(job_in(JOB_RUNNING, 5435002, 1794841600, 1794841601));
    assert_int_equal(gather("5435002")->state.base, JOB_RUNNING);
    w->gather.sacct_cluster = STR("alpha");
    assert_int_equal(gather("5435002")->state.base, JOB_COMPLETED);
}

TEST(a_job_that_only_accounting_knows_is_found)
{
    add_sacct("sandbox");
    assert_int_equal(gather("5435009")->state.base, JOB_OUT_OF_MEMORY);
    assert_str(w->facts.row.key.cluster, "sandbox");
    assert_true(w->facts.row.key.submit_time == 1794841650);
    assert_true(w->facts.total.cpu_seconds == 0.046);
    gather("5435020");
    assert_true(w->facts.is_running);
    assert_int_equal(w->facts.origin.teller, TOLD_BY_SACCT);
    assert_int_equal(w->facts.row.gpus, 2);
    assert_str(w->facts.row.gpu_types, "a100");
    assert_int_equal(w->facts.row.elapsed_seconds, NOW - 1794841653);
    /* Requeued: the second run waits. */
    assert_int_equal(gather("5435025")->state.base, JOB_PENDING);
    assert_int_equal(w->facts.row.elapsed_seconds, -1);
}

/* The real one tells all tasks of an array by its id; the stand-in must be told which. */
TEST(tasks_and_components_are_found_in_accounting)
{
    add_sacct("sandbox");
    setenv("FAKE_SACCT_REFUSAL", "ids=$ids,5435028,5435029,5435018,5435026,5435027", 1);
    assert_int_equal(gather("5435018_2")->id, 5435029);
    assert_refused("5435018", ENOTUNIQ, "5435018_TASK");
    assert_int_equal(gather("5435026+1")->id, 5435027);
    assert_refused("5435026", ENOTUNIQ, "components");
    assert_refused("5435018_5", ENOENT, "there is no job 5435018_5");
}

TEST(a_sacct_that_fails_leaves_what_the_store_has)
{
    add_sacct("alpha");
    setenv("FAKE_SACCT_REFUSAL", "echo 'sacct: error: Connection refused' >&2; exit 1", 1);
    put(job_in(JOB_RUNNING, 5435002, 1794841650, NOW));
    assert_int_equal(gather("5435002")->state.base, JOB_RUNNING);
    assert_refused("5435004", ENOENT,
                   "there is no job 5435004 in the store; sacct could not be asked: ");
    assert_contains(w->err.text, "is slurmdbd running?");
    w->gather.store = store_reader_close(w->gather.store);
    assert_refused("5435004", EREMOTEIO, "is slurmdbd running?");
}

TEST(an_unknown_job_is_told_with_where_it_was_looked_for)
{
    assert_refused("100", ENOENT, "there is no job 100 in the store");
    add_sacct("sandbox");
    assert_refused("100", ENOENT, "there is no job 100 in the store or in Slurm's accounting");
    w->gather.store = store_reader_close(w->gather.store);
    assert_refused("100", ENOENT, "there is no job 100 in Slurm's accounting");
}

TEST(samples_are_asked_for_with_the_matcher_of_the_cluster)
{
    static const struct series_matcher matchers[] = {
        { STR_INIT("beta"), STR_INIT("cluster=\"beta\"") },
        { STR_INIT(""), STR_INIT("site=\"x\"") },
        { STR_INIT("alpha"), STR_INIT("cluster=\"alpha\"") },
    };
    struct job_record record = job_in(JOB_COMPLETED, 100, NOW - 1000, NOW);

    w->gather.prometheus = (struct prometheus *)(void *)w;
    w->gather.matcher = matchers;
    w->gather.n_matchers = COUNT(matchers);
    w->cpu_seconds = 45;
    record.node_count = 1;
    record.cpus = 1;
    put_in("alpha", &record);
    record.id = 101;
    put_in("gamma", &record);
    gather("100");
    assert_string_equal(w->matcher, "cluster=\"alpha\"");
    assert_true(w->facts.origin.has_series);
    assert_true(w->facts.total.cpu_seconds == 45);
    assert_true(w->facts.cpu_ratio == 0.5);
    gather("101");
    assert_string_equal(w->matcher, "site=\"x\"");
}

/* Without one, samples of another cluster's job with the same id would be taken for its own. */
TEST(a_cluster_that_has_no_matcher_is_not_asked_for)
{
    static const struct series_matcher matcher = { STR_INIT("beta"), STR_INIT("cluster=\"beta\"") };
    w->gather.prometheus = (struct prometheus *)(void *)w;
    w->gather.matcher = &matcher;
    w->gather.n_matchers = 1;
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW));
    gather("100");
    assert_int_equal(w->n_series, 0);
    assert_contains(w->facts.origin.why_no_series.p,
                    "--prometheus.match has none for cluster alpha");
    w->gather.n_matchers = 0;
    gather("100");
    assert_int_equal(w->n_series, 1);
    /* Nor is one whose cluster is not known. */
    w->gather.store = store_reader_close(w->gather.store);
    w->gather.n_matchers = 1;
    add_sacct("");
    gather("5435002");
    assert_int_equal(w->n_series, 1);
    assert_contains(w->facts.origin.why_no_series.p, "--cluster");
}

TEST(a_prometheus_that_fails_is_no_error)
{
    w->gather.prometheus = (struct prometheus *)(void *)w;
    w->series_code = -ETIMEDOUT;
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW));
    put(job_in(JOB_PENDING, 101, NOW - 1000, NOW));
    gather("100");
    assert_false(w->facts.origin.has_series);
    assert_str(w->facts.origin.why_no_series, "http://prometheus:9090: it is away");
    assert_int_equal(w->n_series, 1);
    /* One that has not begun has none. */
    gather("101");
    assert_int_equal(w->n_series, 1);
    assert_int_equal(w->facts.origin.why_no_series.n, 0);
}

static struct ticks_writer *open_series(void)
{
    struct ticks_config config = { .path = test_path("series.db"), .retention_seconds = DAY };
    struct ticks_writer *writer;

    OK(ticks_open(&config, &writer, &fixture.err));
    OK(ticks_reader_open(config.path, &w->gather.kept, &fixture.err));
    return writer;
}

static void close_series(struct ticks_writer *writer)
{
    ticks_close(writer);
    ticks_reader_close(w->gather.kept);
}

TEST(the_embedded_series_are_asked_if_there_is_no_prometheus)
{
    const struct tick_sample sample = { STR("job/alpha/100/n1/cpu_seconds"), 40 };
    struct ticks_writer *writer;

    writer = open_series();
    OK(ticks_put(writer, NOW - 950, &sample, 1, &fixture.err));
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW));
    gather("100");
    assert_true(w->facts.origin.has_series);
    assert_str(w->facts.origin.series, "the embedded series");
    assert_true(w->facts.node[0].use.cpu_seconds == 40);
    w->gather.prometheus = (struct prometheus *)(void *)w;
    w->cpu_seconds = 30;
    gather("100");
    assert_int_equal(w->n_series, 1);
    assert_true(w->facts.node[0].use.cpu_seconds == 30);
    close_series(writer);
}

TEST(embedded_series_that_fail_are_no_error)
{
    struct ticks_writer *writer;

    writer = open_series();
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW));
    put(job_in(JOB_PENDING, 101, NOW - 1000, NOW));
    assert_int_equal(unlink(test_path("series.db")), 0);
    gather("100");
    assert_true(w->facts.origin.has_failed_series);
    assert_contains(w->facts.origin.why_no_series.p, "is not there");
    gather("101");
    assert_false(w->facts.origin.has_failed_series);
    close_series(writer);
}

static struct job_record earlier_run(uint32_t id, int64_t submit_time, double cpu_seconds)
{
    struct job_record record = job_in(JOB_COMPLETED, id, submit_time, NOW);

    record.cpus = 8;
    record.node_count = 1;
    record.cpu_seconds = cpu_seconds;
    return record;
}

TEST(earlier_runs_of_the_same_name_tell_what_to_ask_for)
{
    struct job_record other;

    put(earlier_run(100, NOW - 1000, 720)); /* itself */
    put(earlier_run(101, NOW - 2000, 90));  /* 1 CPU */
    put(earlier_run(102, NOW - 3000, 180)); /* 2 */
    put_final("alpha", 102, "n1", NOW - 2990, "{\"cpu_seconds\":270,\"memory_peak_bytes\":512}");
    other = earlier_run(103, NOW - 4000, 630);
    other.user = STR("bob");
    put(other);
    other = earlier_run(104, NOW - 4000, 630);
    other.name = STR("eval");
    put(other);
    other = earlier_run(105, NOW - 4000, 630);
    other.state.base = JOB_FAILED;
    put(other);
    other = earlier_run(106, NOW - 4000, 630);
    put_in("beta", &other);
    put(earlier_run(107, NOW - 2000 - 90 * (int64_t)DAY, 630));
    put(earlier_run(108, NOW - 900, 630)); /* later */
    gather("100");
    assert_int_equal(w->facts.earlier.n, 2);
    assert_true(w->facts.earlier.cpus_used == 3);
    assert_true(w->facts.earlier.memory_peak_bytes == 512);
    assert_true(w->facts.earlier.elapsed_seconds == 90);
    w->gather.now = NOW + 100 * (int64_t)DAY;
    gather("100");
    assert_int_equal(w->facts.earlier.n, 2);
}

TEST(of_many_earlier_runs_the_newest_count)
{
    for (uint32_t i = 0; i < 40; i++)
        put(earlier_run(100 + i, NOW - 1000 * (int64_t)(i + 1), 90 * (i / 10 + 1)));
    gather("100");
    assert_int_equal(w->facts.earlier.n, 20);
    assert_true(w->facts.earlier.cpus_used == 3);
}

TEST(nobody_waits_for_earlier_runs)
{
    OK(store_begin(fixture.store, &fixture.err));
    for (uint32_t i = 0; i < 5000; i++) {
        struct job_record record = earlier_run(100 + i, NOW - 1000 - (int64_t)i, 90);

        if (i && i < 4990)
            record.name = STR("eval");
        OK(store_put_job(fixture.store, STR("alpha"), &record, &fixture.err));
    }
    OK(store_commit(fixture.store, &fixture.err));
    w->gather.earlier_ns = 1;
    assert_int_equal(gather("100")->id, 100);
    assert_int_equal(w->facts.earlier.n, 0);
    w->gather.earlier_ns = 60 * NS_PER_SEC;
    gather("100");
    assert_int_equal(w->facts.earlier.n, 10);
}

TEST(a_first_run_has_no_earlier_ones)
{
    put(earlier_run(100, NOW - 1000, 720));
    gather("100");
    assert_int_equal(w->facts.earlier.n, 0);
    assert_true(isnan(w->facts.earlier.cpus_used));
}

static void put_summary(uint32_t id, int64_t submit_time, const char *document)
{
    const struct summary_record record = { id, submit_time, str_of(document) };

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_summary(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

TEST(what_was_kept_is_told_when_samples_are_gone)
{
    struct job_record record = job_in(JOB_COMPLETED, 100, NOW - 1000, NOW);

    record.cpus = 1;
    record.node_count = 1;
    put(record);
    put_summary(100, NOW - 1000,
                "{\"version\":1,\"total\":{\"cpu_seconds\":45,\"busiest_cpus\":0.75}}");
    gather("100");
    assert_true(w->facts.origin.has_summary);
    assert_false(w->facts.origin.has_series);
    assert_true(w->facts.total.busiest_cpus == 0.75);
    assert_true(w->facts.cpu_ratio == 0.5);
    w->gather.prometheus = (struct prometheus *)(void *)w;
    w->cpu_seconds = 9;
    gather("100");
    assert_false(w->facts.origin.has_summary);
    assert_true(w->facts.total.cpu_seconds == 9);
    w->series_code = -ETIMEDOUT;
    gather("100");
    assert_true(w->facts.origin.has_summary);
    assert_str(w->facts.origin.why_no_series, "http://prometheus:9090: it is away");
    put_summary(100, NOW - 1000, "of no use");
    gather("100");
    assert_false(w->facts.origin.has_summary);
}

TEST(what_was_kept_of_earlier_runs_counts)
{
    put(earlier_run(100, NOW - 1000, 720));
    put(earlier_run(101, NOW - 2000, 90));
    put_summary(101, NOW - 2000, "{\"version\":1,\"total\":{\"memory_peak_bytes\":4096}}");
    gather("100");
    assert_true(w->facts.earlier.memory_peak_bytes == 4096);
}

TEST(a_run_is_found_by_its_key)
{
    struct run_key key = { NOW - 3000, 100, STR("alpha") };

    put(job_in(JOB_NODE_FAIL, 100, NOW - 3000, NOW - 2800));
    put(job_in(JOB_COMPLETED, 100, NOW - 1000, NOW - 800));
    assert_int_equal(gather_run(&w->gather, &key, &w->arena, &w->facts, &w->err), 0);
    assert_int_equal(w->facts.row.record.state.base, JOB_NODE_FAIL);
    assert_true(w->facts.n_life > 0);
    key.submit_time = NOW - 2000;
    assert_int_equal(gather_run(&w->gather, &key, &w->arena, &w->facts, &w->err), -ENOENT);
}

/* Only accounting tells what it used. */
TEST(accounting_is_asked_of_an_end_that_was_only_seen)
{
    struct job_record record = job_in(JOB_COMPLETED, 5435002, 1794841650, NOW);

    add_sacct("");
    put(record);
    gather("5435002");
    assert_true(w->facts.origin.has_accounting);
    assert_str(w->facts.row.record.name, "completed-steps");
    write_file("calls", "");
    record.origin = RECORD_ACCOUNTED;
    put(record);
    gather("5435002");
    assert_false(sacct_was_asked());
}

static bool sacct_was_told(const char *words)
{
    return strstr(read_file("calls").p, words);
}

/* It would tell of a job of its own that has the same id. */
TEST(a_cluster_that_is_named_is_the_one_that_is_asked)
{
    add_sacct("");
    gather("5435009");
    assert_true(sacct_was_told("--local"));
    gather("beta:5435009");
    assert_true(sacct_was_told("--clusters=beta "));
    assert_refused("all:5435009", ENOENT, "no cluster is called \"all\"");
    assert_refused("a,b:5435009", ENOENT, "no cluster is called \"a,b\"");
}

static size_t gather_all(const char *name, struct job_facts **ret)
{
    const struct job_name parsed = name_of(name);
    size_t n;

    if (gather_array(&w->gather, &parsed, 100, &w->arena, ret, &n, &w->err) < 0)
        fail_msg("%s: %s", name, w->err.text);
    return n;
}

TEST(an_array_is_told_in_the_order_of_its_tasks)
{
    struct job_facts *task;
    struct job_record again;

    put(task_in(JOB_COMPLETED, 103, 103, 9, NOW - 1000));
    put(task_in(JOB_COMPLETED, 101, 103, 10, NOW - 1000));
    put(task_in(JOB_NODE_FAIL, 102, 103, 2, NOW - 1000));
    again = task_in(JOB_COMPLETED, 102, 103, 2, NOW - 500);
    again.restarts = 1;
    put(again);
    /* The id was an array's years ago, too. */
    put(task_in(JOB_FAILED, 77, 103, 3, NOW - 2000 * (int64_t)DAY));
    put_final("alpha", 101, "n1", NOW - 990, "{\"cpu_seconds\":60}");
    put_summary(103, NOW - 1000, "{\"version\":1,\"gpu_ratio\":0.25}");
    assert_int_equal(gather_all("103", &task), 3);
    assert_true(task[1].gpu_ratio == 0.25);
    assert_int_equal(task[0].row.record.array_task_id, 2);
    assert_int_equal(task[0].row.record.state.base, JOB_COMPLETED);
    assert_int_equal(task[1].row.record.array_task_id, 9);
    assert_int_equal(task[2].row.record.array_task_id, 10);
    assert_true(task[2].total.cpu_seconds == 60);
    assert_int_equal(task[2].row.elapsed_seconds, 90);
    assert_int_equal(w->n_series, 0);
}

TEST(all_components_are_told)
{
    struct job_facts *part;

    put(component_in(201, 200, 1));
    put(component_in(200, 200, 0));
    assert_int_equal(gather_all("alpha:200", &part), 2);
    assert_int_equal(part[0].row.key.job_id, 200);
    assert_int_equal(part[1].row.key.job_id, 201);
}

TEST(accounting_completes_an_array)
{
    struct job_facts *task;

    add_sacct("");
    setenv("FAKE_SACCT_REFUSAL", "ids=$ids,5435028,5435029,5435018", 1);
    put(task_in(JOB_RUNNING, 5435028, 5435018, 1, 1794841653));
    assert_int_equal(gather_all("5435018", &task), 3);
    assert_int_equal(task[0].row.key.job_id, 5435028);
    assert_str(task[1].row.key.cluster, "alpha");
    assert_int_equal(task[2].row.record.tasks, 6);
    setenv("FAKE_SACCT_REFUSAL", "echo no >&2; exit 1", 1);
    assert_int_equal(gather_all("5435018", &task), 1);
}

TEST(an_array_past_the_ceiling_or_unknown_is_refused)
{
    struct job_name name = name_of("100"), unknown = name_of("99");
    struct job_facts *task = NULL;
    struct job_record record;
    size_t n = 77;

    for (uint32_t i = 0; i < 11; i++)
        put(task_in(JOB_COMPLETED, 100 + i, 100, i, NOW - 1000));
    assert_int_equal(gather_array(&w->gather, &name, 10, &w->arena, &task, &n, &w->err), -E2BIG);
    assert_contains(w->err.text, "job 100 has more than 10 tasks");
    assert_int_equal(gather_array(&w->gather, &unknown, 10, &w->arena, &task, &n, &w->err),
                     -ENOENT);
    record = task_in(JOB_COMPLETED, 100, 100, 1, NOW - 900);
    put_in("beta", &record);
    assert_int_equal(gather_array(&w->gather, &name, 100, &w->arena, &task, &n, &w->err),
                     -ENOTUNIQ);
    assert_contains(w->err.text, "beta, alpha");
    assert_int_equal(n, 77);
}
