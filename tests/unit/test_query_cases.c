/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to stores of a few runs, each about one thing. */
#include "store/query.h"
#include "store/reader.h"
#include "store_fixture.h"

#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const int64_t now = 5000;
static struct store_reader *reader;

static void set_up(void)
{
    fixture_begin_open();
    OK(store_reader_open(str_of(fixture.path), &reader, &fixture.err));
}

static void tear_down(void)
{
    reader = store_reader_close(reader);
    fixture_end();
}

FIXTURE(set_up, tear_down)

/* A run that accounting tells of. */
static struct job_record run(uint32_t id, const char *state, int64_t start, int64_t end)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = 1000;
    record.eligible_time = 1010;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = 4000;
    job_state_parse(str_of(state), &record.state);
    record.user = STR("alice");
    record.account = STR("physics");
    record.partition = STR("long");
    record.tres = STR("billing=5,cpu=4,gres/gpu:a100=2,mem=1G,node=1");
    record.cpus = 4;
    record.node_count = 1;
    record.memory_bytes = 1 << 30;
    record.start_time = start;
    record.end_time = end;
    if (start)
        record.nodes = STR("n1");
    return record;
}

static struct usage_row use_of(int64_t from, int64_t to)
{
    struct usage_row total, *rows;
    struct usage_question question = { .now = now, .most = 10, .total = &total };
    struct arena arena = { 0 };
    size_t n;

    job_filter_clear(&question.filter);
    question.filter.from = from;
    question.filter.to = to;
    OK(store_usage(reader, &question, &arena, &rows, &n, &fixture.err));
    arena_clear(&arena);
    return total;
}

/* The last row that a question gave. */
struct seen {
    struct job_row row;
    char text[200];
    size_t n;
};

static int see(void *ctx, const struct job_row *row)
{
    struct seen *seen = ctx;

    seen->row = *row;
    seen->n++;
    snprintf(seen->text, sizeof(seen->text), "%.*s|%.*s|%.*s|%.*s|%.*s", STR_ARG(row->key.cluster),
             STR_ARG(row->record.name), STR_ARG(row->record.nodes), STR_ARG(row->gpu_types),
             STR_ARG(row->record.tres));
    return 0;
}

static struct seen see_job(uint32_t id, bool wants_extra)
{
    struct job_order order = { .wants_extra = wants_extra };
    struct job_filter filter;
    struct seen seen = { .n = 0 };

    job_filter_clear(&filter);
    filter.ids = &id;
    filter.n_ids = 1;
    OK(store_jobs(reader, &filter, &order, now, see, &seen, &fixture.err));
    return seen;
}

TEST(a_run_counts_to_the_second)
{
    struct usage_row use;

    put(run(1, "COMPLETED", 2000, 3000));
    use = use_of(2000, 3000);
    assert_int_equal(use.cpu_seconds, 4000);
    assert_int_equal(use.gpu_seconds, 2000);
    assert_int_equal(use.billing_seconds, 5000);
    assert_int_equal(use.node_seconds, 1000);
    assert_true(use.memory_byte_seconds == 1000.0 * (1 << 30));
    assert_int_equal(use.jobs, 1);
    assert_int_equal(use.started, 1);
    assert_int_equal(use.ended, 0); /* at the very end, which is not in it */
    use = use_of(2000, 3001);
    assert_int_equal(use.cpu_seconds, 4000);
    assert_int_equal(use.ended, 1);
    assert_int_equal(use.waited, 1);
    assert_int_equal(use.wait_seconds, 990);
    use = use_of(2001, 2999);
    assert_int_equal(use.cpu_seconds, 4 * 998);
    assert_int_equal(use.started, 0);
    assert_int_equal(use.waited, 0);
    assert_int_equal(use_of(2999, 3000).cpu_seconds, 4);
    assert_int_equal(use_of(3000, 4000).jobs, 0);
    assert_int_equal(use_of(1000, 2000).jobs, 0);
}

TEST(one_that_runs_counts_until_now_and_no_further)
{
    struct usage_row use;

    put(run(1, "RUNNING", 2000, 0));
    use = use_of(1000, 99999);
    assert_int_equal(use.cpu_seconds, 4 * 3000);
    assert_int_equal(use.ended, 0);
    assert_int_equal(use_of(4999, 5001).cpu_seconds, 4);
    assert_int_equal(use_of(5001, 6000).cpu_seconds, 0);
}

TEST(the_end_that_slurm_expects_is_no_end)
{
    struct job_record record = run(1, "RUNNING", 2000, 2500);

    record.origin = RECORD_SEEN;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 3000);
}

TEST(one_whose_end_was_missed_counts_no_longer_than_its_time)
{
    struct job_record record = run(1, "RUNNING", 2000, 0);

    record.time_limit_minutes = 10;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 600);
    assert_int_equal(see_job(1, false).row.elapsed_seconds, 600);
    record.suspended_seconds = 100; /* which does not count, and which its time is longer by */
    record.as_of++;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 600);
    record.time_limit_minutes = 1000;
    record.as_of++;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 2900);
}

TEST(one_that_the_queue_no_longer_shows_counts_until_it_last_did)
{
    const struct run_name gone = { 1, 1000 };
    struct job_record record = run(1, "RUNNING", 2000, 0);

    record.origin = RECORD_SEEN;
    record.as_of = 2100;
    put(record);
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_look(fixture.store, STR("alpha"), 2500, NULL, 0, &fixture.err));
    OK(store_put_look(fixture.store, STR("alpha"), 2530, &gone, 1, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 500);
    assert_int_equal(see_job(1, false).row.elapsed_seconds, 500);
    put(run(1, "COMPLETED", 2000, 2600));
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 600);
}

/* In a page, and in a sum, which are asked for in different ways. */
static void assert_found(const struct str *states, size_t n_states, size_t expected)
{
    struct usage_row total, *rows;
    struct usage_question question = { .now = now, .most = 10, .total = &total };
    struct arena arena = { 0 };
    struct seen seen = { .n = 0 };
    size_t n;

    job_filter_clear(&question.filter);
    question.filter.states = (struct words){ states, n_states };
    OK(store_jobs(reader, &question.filter, &(struct job_order){ 0 }, now, see, &seen,
                  &fixture.err));
    assert_int_equal(seen.n, expected);
    question.filter.to = 99999;
    OK(store_usage(reader, &question, &arena, &rows, &n, &fixture.err));
    assert_int_equal(total.jobs, expected);
    arena_clear(&arena);
}

TEST(a_run_is_found_once_by_its_state_whatever_is_known_of_its_end)
{
    static const struct str states[] = { STR_INIT("FAILED"), STR_INIT("RUNNING"),
                                         STR_INIT("NODE_FAIL") };
    struct job_record endless = run(1, "FAILED", 2000, 0), again = run(2, "NODE_FAIL", 2000, 2100);

    again.origin = RECORD_SEEN;
    again.state.flags = JOB_REQUEUED; /* it has not ended for good */
    put(endless);
    put(again);
    put(run(3, "RUNNING", 2000, 0));
    put(run(4, "FAILED", 2000, 3000));
    put(run(5, "COMPLETED", 2000, 3000));
    assert_found(&states[0], 1, 2);
    assert_found(&states[1], 1, 1);
    assert_found(&states[2], 1, 1);
    assert_found(states, 2, 3);
    assert_found(states, 3, 4);
}

TEST(one_of_which_no_end_is_known_counts_until_it_was_last_heard_of)
{
    struct job_record record = run(1, "RUNNING", 2000, 0);

    record.as_of = 2500;
    put(record);
    record = run(1, "COMPLETED", 2000, 0);
    record.as_of = 3000;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 1000);
}

TEST(what_a_run_was_suspended_does_not_count)
{
    struct job_record record = run(1, "COMPLETED", 2000, 3000);

    record.suspended_seconds = 400;
    put(record);
    assert_int_equal(use_of(1000, 4000).cpu_seconds, 4 * 600);
    assert_int_equal(use_of(1000, 2500).cpu_seconds, 4 * 300);
    record = run(2, "COMPLETED", 2000, 3000);
    record.suspended_seconds = 9999;
    put(record);
    assert_int_equal(use_of(1000, 4000).cpu_seconds, 4 * 600);
}

TEST(a_suspended_run_keeps_all_but_its_cpus)
{
    struct job_record record = run(1, "COMPLETED", 2000, 3000);
    struct usage_row use;

    record.suspended_seconds = 400;
    put(record);
    use = use_of(1000, 4000);
    assert_int_equal(use.cpu_seconds, 4 * 600);
    assert_int_equal(use.gpu_seconds, 2 * 1000);
    assert_int_equal(use.billing_seconds, 5 * 1000);
    assert_int_equal(use.node_seconds, 1000);
    assert_true(use.memory_byte_seconds == 1000.0 * (1 << 30));
}

/* The first poll of it: it has been suspended for 1,500 of its 2,000 seconds. */
TEST(what_polls_have_not_shown_of_it_came_before)
{
    struct job_record record = run(1, "SUSPENDED", 2000, 0);

    record.suspended_seconds = 1500;
    put(record);
    assert_int_equal(use_of(2000, 2500).cpu_seconds, 4 * 500);
    assert_int_equal(use_of(2500, 3600).cpu_seconds, 0);
    assert_int_equal(use_of(2000, 3600).gpu_seconds, 2 * 1600);
}

/* slurmdbd was last polled at 4000, and it is 5000. */
TEST(a_run_that_is_suspended_now_has_been_since_it_was_last_polled)
{
    struct job_record record = run(1, "SUSPENDED", 2000, 0);

    record.suspended_seconds = 500;
    record.time_limit_minutes = 40;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 1500);
    assert_int_equal(use_of(1000, 99999).gpu_seconds, 2 * 3000);
    assert_int_equal(see_job(1, false).row.elapsed_seconds, 1500);
    /* The queue shows it again, and gives no suspended time. */
    record.origin = RECORD_SEEN;
    record.suspended_seconds = MODEL_UNKNOWN_U64;
    record.as_of = 4500;
    put(record);
    assert_string_equal(ask("SELECT suspended_seconds, as_of FROM job"), "1000|4500");
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 1500);
    /* It is resumed. */
    record = run(1, "RUNNING", 2000, 0);
    record.origin = RECORD_SEEN;
    record.as_of = 4600;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * (3000 - 1100));
    assert_int_equal(see_job(1, false).row.elapsed_seconds, 3000 - 1100);
}

TEST(one_that_ends_while_it_is_suspended_was_so_until_its_end)
{
    struct job_record record = run(1, "SUSPENDED", 2000, 0);

    record.origin = RECORD_SEEN;
    record.as_of = 2600;
    put(record);
    record = run(1, "CANCELLED", 2000, 3000);
    record.origin = RECORD_SEEN;
    record.as_of = 3100;
    put(record);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 600);
}

TEST(suspended_time_lies_where_polls_have_shown_it)
{
    struct job_record record = run(1, "RUNNING", 2000, 0);

    record.origin = RECORD_SEEN;
    record.as_of = 2100;
    put(record);
    job_state_parse(STR("SUSPENDED"), &record.state);
    record.as_of = 3010; /* ten seconds late */
    put(record);
    record = run(1, "SUSPENDED", 2000, 0);
    record.suspended_seconds = 1000;
    put(record);
    assert_int_equal(use_of(2000, 3000).cpu_seconds, 4 * 1000);
    assert_int_equal(use_of(3000, 99999).cpu_seconds, 0);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * 1000);
    /* It is resumed at 4200 and ends at 4800. */
    record = run(1, "RUNNING", 2000, 0);
    record.origin = RECORD_SEEN;
    record.as_of = 4200;
    put(record);
    record = run(1, "COMPLETED", 2000, 4800);
    record.as_of = 4900;
    record.suspended_seconds = 1190; /* as long as polls have shown */
    put(record);
    assert_int_equal(use_of(3010, 4200).cpu_seconds, 0);
    assert_int_equal(use_of(4200, 4800).cpu_seconds, 4 * 600);
    assert_int_equal(use_of(1000, 99999).cpu_seconds, 4 * (2800 - 1190));
}

TEST(one_that_never_ran_is_no_job_of_the_time)
{
    struct job_record record = run(1, "CANCELLED", 2000, 2000);

    record.nodes = STR("");
    put(record);
    put(run(2, "PENDING", 0, 0));
    assert_int_equal(use_of(1000, 4000).jobs, 0);
    /* but one that ended within a second is */
    put(run(3, "FAILED", 2000, 2000));
    assert_int_equal(use_of(2000, 2001).jobs, 1);
    assert_int_equal(use_of(2001, 2002).jobs, 0);
}

TEST(amounts_past_all_bounds_stay_at_the_largest)
{
    struct job_record record = run(1, "COMPLETED", 2000, 3000);

    record.tres = STR("billing=9000000000000000000,cpu=4");
    put(record);
    assert_true(use_of(1000, 4000).billing_seconds == UINT64_MAX);
}

TEST(efficiency_is_of_those_that_ended_and_whose_use_is_known)
{
    struct job_record record = run(1, "COMPLETED", 2000, 3000);
    struct usage_row use;

    record.cpu_seconds = 1000;
    put(record);
    put(run(2, "COMPLETED", 2000, 3000));
    record = run(3, "RUNNING", 2000, 0);
    record.cpu_seconds = 77;
    put(record);
    use = use_of(1000, 4000);
    assert_true(use.used_cpu_seconds == 1000 && use.of_cpu_seconds == 4000);
}

TEST(a_row_has_all_that_was_put)
{
    struct record_extra extra = { STR("WorkDir"), STR("/home/alice") };
    struct job_record record = run(7, "FAILED", 2000, 3000);
    struct seen seen;

    record.array_job_id = 5;
    record.array_task_id = 2;
    record.user_id = 1001;
    record.restarts = 0;
    record.name = STR("a'b\n\"c");
    record.nodes = STR("n[1-2]");
    record.priority = 4294901760;
    record.suspended_seconds = 100;
    record.exit_code = 1;
    record.exit_signal = 9;
    record.cpu_seconds = 1800;
    record.memory_peak_bytes = 4096;
    record.energy_joules = 77;
    record.time_limit_minutes = 60;
    record.extra = &extra;
    record.n_extra = 1;
    put(record);
    seen = see_job(5, true);
    assert_int_equal(seen.n, 1);
    assert_string_equal(seen.text, "alpha|a'b\n\"c|n[1-2]|a100|"
                                   "billing=5,cpu=4,gres/gpu:a100=2,mem=1G,node=1");
    assert_int_equal(seen.row.key.job_id, 7);
    assert_int_equal(seen.row.record.array_task_id, 2);
    assert_int_equal(seen.row.record.exit_signal, 9);
    assert_int_equal(seen.row.record.priority, 4294901760);
    assert_int_equal(seen.row.record.state.base, JOB_FAILED);
    assert_int_equal(seen.row.record.origin, RECORD_ACCOUNTED);
    assert_int_equal(seen.row.record.n_extra, 1);
    assert_int_equal(seen.row.gpus, 2);
    assert_int_equal(seen.row.billing, 5);
    assert_int_equal(seen.row.elapsed_seconds, 900);
    assert_int_equal(seen.row.wait_seconds, 990);
    assert_true(seen.row.cpu_efficiency == 0.5);
    assert_int_equal(see_job(7, false).row.record.n_extra, 0);
}

TEST(what_is_unknown_stays_unknown)
{
    struct job_record record;
    struct seen seen;

    job_record_clear(&record);
    record.id = 7;
    record.submit_time = 1000;
    record.as_of = 1000;
    record.state.base = JOB_PENDING;
    put(record);
    seen = see_job(7, true);
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.row.record.array_job_id, 0);
    assert_int_equal(seen.row.record.het_offset, 0);
    assert_int_equal(seen.row.record.tasks, 1);
    assert_true(seen.row.record.cpus == MODEL_UNKNOWN_U32);
    assert_true(seen.row.record.exit_code == MODEL_UNKNOWN_U32);
    assert_true(seen.row.record.memory_bytes == MODEL_UNKNOWN_U64);
    assert_true(seen.row.gpus == MODEL_UNKNOWN_U64 && seen.row.billing == MODEL_UNKNOWN_U64);
    assert_true(isnan(seen.row.record.cpu_seconds) && isnan(seen.row.cpu_efficiency));
    assert_int_equal(seen.row.elapsed_seconds, -1);
    assert_int_equal(seen.row.wait_seconds, -1);
}

TEST(times_of_one_that_waits_or_runs_go_on)
{
    struct job_row row;

    put(run(1, "PENDING", 0, 0));
    put(run(2, "RUNNING", 2000, 0));
    row = see_job(1, false).row;
    assert_int_equal(row.wait_seconds, now - 1010);
    assert_int_equal(row.elapsed_seconds, -1);
    row = see_job(2, false).row;
    assert_int_equal(row.wait_seconds, 990);
    assert_int_equal(row.elapsed_seconds, 3000);
}

TEST(a_life_is_told_in_its_order)
{
    const struct run_key key = { 1000, 1, STR("alpha") };
    struct job_moment *moments;
    struct arena arena = { 0 };
    struct job_record record = run(1, "PENDING", 0, 0);
    size_t n;

    record.origin = RECORD_SEEN;
    record.as_of = 1500;
    record.reason = STR("Resources");
    put(record);
    put(run(1, "COMPLETED", 2000, 2000));
    OK(store_life(reader, &key, &arena, &moments, &n, &fixture.err));
    assert_true(n >= 3);
    assert_str(moments[0].state, "PENDING");
    assert_int_equal(moments[0].time, 1000);
    assert_str(moments[n - 2].state, "RUNNING");
    assert_int_equal(moments[n - 2].time, 2000);
    assert_str(moments[n - 1].state, "COMPLETED");
    OK(store_life(reader, &(struct run_key){ 1001, 1, STR("alpha") }, &arena, &moments, &n,
                  &fixture.err));
    assert_int_equal(n, 0);
    arena_clear(&arena);
}

static void put_final(int64_t begin, const char *document)
{
    const struct final_record record = { 1, STR("n1"), begin, begin + 50, str_of(document) };

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_final(fixture.store, STR("alpha"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

TEST(what_agents_counted_belongs_to_the_run_that_they_saw)
{
    struct run_key first = { 1000, 1, STR("alpha") }, second = { 3000, 1, STR("alpha") };
    struct job_record record = run(1, "COMPLETED", 3100, 3200);
    struct final_record *finals;
    struct arena arena = { 0 };
    size_t n;

    put(run(1, "FAILED", 2000, 2900));
    record.submit_time = 3000;
    put(record);
    put_final(2000, "{\"cpu_seconds\":1}");
    put_final(3100, "{\"cpu_seconds\":2}");
    /* by a clock that is late */
    put_final(990, "{\"cpu_seconds\":3}");
    OK(store_finals(reader, &first, &arena, &finals, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_int_equal(finals[0].begin_time, 990);
    assert_str(finals[1].document, "{\"cpu_seconds\":1}");
    assert_str(finals[1].node, "n1");
    OK(store_finals(reader, &second, &arena, &finals, &n, &fixture.err));
    assert_int_equal(n, 1);
    assert_str(finals[0].document, "{\"cpu_seconds\":2}");
    arena_clear(&arena);
}

TEST(clusters_and_ends_are_counted)
{
    struct cluster_row *clusters;
    struct ended_row *ended;
    struct arena arena = { 0 };
    struct job_record record = run(1, "FAILED", 2000, 3000);
    size_t n;

    put(record);
    put(run(2, "RUNNING", 2000, 0));
    record.submit_time = 900;
    put_in("beta", &record);
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_set_mark(fixture.store, STR("beta"), "accounted_until", 4711, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    OK(store_clusters(reader, &arena, &clusters, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_str(clusters[0].name, "alpha");
    assert_int_equal(clusters[0].runs, 2);
    assert_int_equal(clusters[0].first_submit_time, 1000);
    assert_int_equal(clusters[0].last_seen_time, 4000);
    assert_str(clusters[1].name, "beta");
    assert_int_equal(clusters[1].runs, 1);
    assert_int_equal(clusters[1].first_submit_time, 900);
    assert_int_equal(clusters[1].accounted_until, 4711);
    OK(store_ended(reader, STR("alpha"), &arena, &ended, &n, &fixture.err));
    assert_int_equal(n, 1);
    assert_str(ended[0].state, "FAILED");
    assert_str(ended[0].partition, "long");
    assert_int_equal(ended[0].count, 1);
    OK(store_ended(reader, STR("gamma"), &arena, &ended, &n, &fixture.err));
    assert_int_equal(n, 0);
    arena_clear(&arena);
}

static struct node_record node(const char *name, const char *state)
{
    return (struct node_record){ .name = str_of(name),
                                 .state = str_of(state),
                                 .partitions = STR("long,short"),
                                 .cpus = 8,
                                 .cpus_alloc = MODEL_UNKNOWN_U32,
                                 .cpus_idle = 3,
                                 .cpus_other = 0,
                                 .cpu_load = NAN,
                                 .memory_bytes = 1 << 20,
                                 .memory_alloc_bytes = MODEL_UNKNOWN_U64,
                                 .memory_free_bytes = MODEL_UNKNOWN_U64 };
}

TEST(nodes_come_in_pages_and_by_any_word_of_their_state)
{
    const struct node_record nodes[] = { node("n1", "idle"), node("n2", "idle+drain"),
                                         node("n3", "mixed") };
    struct node_filter filter = { .limit = 2 };
    struct node_row *rows;
    struct arena arena = { 0 };
    size_t n;

    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("alpha"), 1500, nodes, 3, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("beta"), 1600, nodes, 1, &fixture.err));
    OK(store_put_nodes(fixture.store, STR("alpha"), 1700, nodes, 3, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    OK(store_nodes(reader, &filter, &arena, &rows, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_str(rows[1].record.name, "n2");
    assert_int_equal(rows[0].seen_time, 1700);
    assert_true(rows[0].record.cpus_alloc == MODEL_UNKNOWN_U32 && rows[0].record.cpus_idle == 3);
    filter.after_cluster = rows[1].cluster;
    filter.after_name = rows[1].record.name;
    OK(store_nodes(reader, &filter, &arena, &rows, &n, &fixture.err));
    assert_int_equal(n, 2);
    assert_str(rows[0].record.name, "n3");
    assert_str(rows[1].cluster, "beta");
    filter =
        (struct node_filter){ .states = { &STR("DRAIN"), 1 }, .partitions = { &STR("short"), 1 } };
    OK(store_nodes(reader, &filter, &arena, &rows, &n, &fixture.err));
    assert_int_equal(n, 1);
    assert_str(rows[0].record.name, "n2");
    filter = (struct node_filter){ .clusters = { &STR("beta"), 1 }, .names = { &STR("n1"), 1 } };
    OK(store_nodes(reader, &filter, &arena, &rows, &n, &fixture.err));
    assert_int_equal(n, 1);
    arena_clear(&arena);
}

/* A question inside of another. */
struct nested {
    size_t n, of_life;
};

static int write_and_look(void *ctx, const struct job_row *row)
{
    struct nested *nested = ctx;
    struct job_moment *moments;
    struct arena arena = { 0 };

    put(run(100 + (uint32_t)nested->n, "FAILED", 2000, 3000));
    OK(store_life(reader, &row->key, &arena, &moments, &nested->of_life, &fixture.err));
    arena_clear(&arena);
    nested->n++;
    return 0;
}

TEST(a_question_sees_one_state_of_the_store_while_it_is_written)
{
    struct nested nested = { 0, 0 };
    struct job_filter filter;

    put(run(1, "COMPLETED", 2000, 3000));
    put(run(2, "COMPLETED", 2000, 3000));
    job_filter_clear(&filter);
    OK(store_jobs(reader, &filter, &(struct job_order){ 0 }, now, write_and_look, &nested,
                  &fixture.err));
    assert_int_equal(nested.n, 2);
    assert_true(nested.of_life >= 2);
    assert_int_equal(see_job(101, false).n, 1);
}

static int try_open(const char *path, struct err *err)
{
    struct store_reader *tried = NULL;
    int r = store_reader_open(str_of(path), &tried, err);

    store_reader_close(tried);
    return r;
}

static void change_file(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(fixture.path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

TEST(what_is_no_store_is_told_apart, .set_up = fixture_begin)
{
    struct err err = { 0 };
    int file;

    assert_int_equal(try_open(fixture.path, &err), -ENOENT);
    assert_contains(err.text, "there is no store");
    assert_int_equal(try_open("mysql://host/jobs", &err), -EINVAL);
    assert_int_equal(try_open(test_dir(), &err), -EBADMSG);
    assert_contains(err.text, "name a file in it");
    assert_int_equal(mkfifo(fixture.path, 0600), 0);
    assert_int_equal(try_open(fixture.path, &err), -EBADMSG); /* and nobody waits for it */
    unlink(fixture.path);
    file = open(fixture.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(try_open(fixture.path, &err), -EBADMSG);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(write(file, "no database at all\n", 19), 19);
    close(file);
    assert_int_equal(try_open(fixture.path, &err), -EBADMSG);
    unlink(fixture.path);
    change_file("CREATE TABLE other(a)");
    assert_int_equal(try_open(fixture.path, &err), -EBADMSG);
    unlink(fixture.path);
    fixture_open();
    fixture.store = store_close(fixture.store);
    change_file("PRAGMA user_version = 999");
    assert_int_equal(try_open(fixture.path, &err), -EPROTO);
    assert_contains(err.text, "newer sonde");
}

TEST(a_store_that_nobody_writes_is_read_without_the_right_to_write, .set_up = fixture_begin_open)
{
    struct err err = { 0 };
    pid_t child;
    int status;

    put(run(1, "COMPLETED", 2000, 3000));
    fixture.store = store_close(fixture.store);
    assert_int_equal(chmod(fixture.path, 0444), 0);
    assert_int_equal(chmod(test_dir(), 0555), 0);
    child = fork();
    if (child == 0) {
        int r;

        lower_capabilities();
        r = store_reader_open(str_of(fixture.path), &reader, &err);
        if (r < 0)
            fprintf(stderr, "%s\n", err.text);
        else
            r = (int)see_job(1, false).n - 1;
        store_reader_close(reader);
        _exit(r == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(test_dir(), 0755), 0);
    assert_int_equal(status, 0);
}

TEST(a_long_question_is_cut_off_by_its_deadline)
{
    struct job_filter filter;
    struct seen seen = { .n = 0 };
    struct err err = { 0 };

    OK(store_begin(fixture.store, &fixture.err));
    for (uint32_t i = 1; i <= 3000; i++) {
        struct job_record record = run(i, "COMPLETED", 2000, 3000);

        OK(store_put_job(fixture.store, STR("alpha"), &record, &fixture.err));
    }
    OK(store_commit(fixture.store, &fixture.err));
    job_filter_clear(&filter);
    filter.gpu_types = (struct words){ &STR("none"), 1 };
    /* Begun in time: it is the look at the clock inside of SQLite that ends it. */
    OK(reader_begin(reader, &fixture.err));
    store_reader_deadline(reader, 1);
    assert_int_equal(store_jobs(reader, &filter, &(struct job_order){ 0 }, now, see, &seen, &err),
                     -ETIMEDOUT);
    assert_contains(err.text, "did not answer in time");
    reader_end(reader);
    store_reader_deadline(reader, 0);
    assert_int_equal(see_job(3000, false).n, 1);
}
