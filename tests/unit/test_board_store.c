/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/board_store: boards made from a store. */
#include "made_board.h"
#include "manual_clock.h"
#include "store_fixture.h"

#include "base/thread.h"
#include "source/record.h"
#include "web/board_store.h"

int64_t sections_now = MADE_NOW;

struct boards {
    struct manual_clock clock;
    struct board_store *boards;
    struct board_source source;
    struct err err;
};

static struct boards b;

static void set_up(void)
{
    b = (struct boards){ 0 };
    fixture_begin_open();
    manual_clock_init(&b.clock, MADE_NOW * NS_PER_SEC, 1000 * NS_PER_SEC);
    OK(board_store_open(fixture.path, &b.clock.clock, &b.boards, &b.err));
    b.source = board_store_source(b.boards);
}

static void tear_down(void)
{
    board_store_close(b.boards);
    fixture_end();
    manual_clock_destroy(&b.clock);
}

FIXTURE(set_up, tear_down)

static struct board *try_to_take(void)
{
    return b.source.take(b.source.ctx, clock_mono(&clock_real) + TEST_DEADLINE, &b.err);
}

static struct board *take(void)
{
    struct board *board = try_to_take();

    if (!board)
        fail_msg("%s", b.err.text);
    return board;
}

static struct job_record record_in(const char *state, uint32_t id)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = MADE_NOW - 10000;
    record.as_of = MADE_NOW - 10;
    record.tasks = 1;
    record.user = STR("alice");
    record.account = STR("physics");
    record.partition = STR("main");
    record.nodes = STR("n1");
    record.tres = STR("cpu=4,gres/gpu=2");
    record.cpus = 4;
    assert_true(job_state_parse(str_of(state), &record.state));
    return record;
}

static void put_record(const char *cluster, struct job_record record)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_job(fixture.store, str_of(cluster), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static void put_look_without(const char *cluster, int64_t time, const struct run_name *gone,
                             size_t n)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_look(fixture.store, str_of(cluster), time, gone, n, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

static void put_look(const char *cluster, int64_t time)
{
    put_look_without(cluster, time, NULL, 0);
}

/* Takes the section over. */
static void put_kept(const char *cluster, struct section *section, int64_t time)
{
    const struct record_about about = { .kind = section->kind,
                                        .door = "test",
                                        .wall_ns = time * NS_PER_SEC };
    struct buf document;

    buf_init(&document, 1 << 20);
    record_put(&document, section, &about);
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_section(fixture.store, str_of(cluster), kind_name(section->kind), time,
                         buf_str(&document), &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    buf_free(&document);
    section_unref(section);
}

static struct section *one_node(const char *name)
{
    return nodes_from("%s mixed cpus=32 cpus_alloc=4 partitions=main\n", name);
}

TEST(a_board_has_the_jobs_and_nodes_of_the_store)
{
    struct job_record record = record_in("RUNNING", 7);
    const struct record_extra extra[] = { { STR("Constraints"), STR("skylake") } };
    const struct section *jobs;
    const struct job *job;
    struct board *board;

    record.start_time = MADE_NOW - 500;
    record.extra = extra;
    record.n_extra = 1;
    put_record("north", record);
    put_look("north", MADE_NOW - 20);
    put_kept("north", one_node("n1"), MADE_NOW - 30);
    board = take();
    assert_int_equal(board->n_clusters, 1);
    assert_str(board->cluster[0].name, "north");
    assert_str(board->cluster[0].trouble, "");
    assert_false(board->cluster[0].is_simulated);
    jobs = board->cluster[0].section[KIND_JOBS];
    assert_int_equal(jobs->jobs.n, 1);
    job = &jobs->jobs.job[0];
    assert_int_equal(job->id, 7);
    assert_int_equal(job->start_time, MADE_NOW - 500);
    assert_str(section_text(jobs, job->user), "alice");
    assert_str(section_text(jobs, job->tres), "cpu=4,gres/gpu=2");
    assert_str(section_text(jobs, job->features), "skylake");
    assert_int_equal(jobs->wall_ns, (MADE_NOW - 20) * NS_PER_SEC);
    assert_int_equal(jobs->mono_ns, (1000 - 20) * NS_PER_SEC);
    assert_non_null(board_node(&board->cluster[0], STR("n1")));
    assert_int_equal(board->cluster[0].section[KIND_NODES]->wall_ns, (MADE_NOW - 30) * NS_PER_SEC);
    assert_true(board->cluster[0].sums.cpus.total == 32);
    assert_true(board->cluster[0].sums.job_state[0].jobs.gpus == 2);
    board_unref(board);
}

TEST(jobs_that_ended_a_while_ago_are_not_shown)
{
    struct job_record recent = record_in("COMPLETED", 1), old = record_in("FAILED", 2);
    struct board *board;

    recent.start_time = old.start_time = MADE_NOW - 5000;
    recent.end_time = MADE_NOW - 299;
    old.end_time = MADE_NOW - 301;
    put_record("north", recent);
    put_record("north", old);
    put_record("north", record_in("PENDING", 3));
    put_look("north", MADE_NOW);
    board = take();
    assert_int_equal(board->cluster[0].section[KIND_JOBS]->jobs.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_not_equal(board->cluster[0].section[KIND_JOBS]->jobs.job[i].id, 2);
    board_unref(board);
}

TEST(what_the_queue_no_longer_shows_does_not_run)
{
    const struct run_name gone = { 1, MADE_NOW - 10000 };
    struct board *board;

    put_record("north", record_in("RUNNING", 1));
    put_record("north", record_in("RUNNING", 2));
    put_look_without("north", MADE_NOW - 5, &gone, 1);
    board = take();
    assert_int_equal(board->cluster[0].section[KIND_JOBS]->jobs.n, 1);
    assert_int_equal(board->cluster[0].section[KIND_JOBS]->jobs.job[0].id, 2);
    board_unref(board);
}

TEST(clusters_have_their_own_jobs)
{
    struct board *board;

    put_record("south", record_in("RUNNING", 1));
    put_record("north", record_in("RUNNING", 2));
    put_look("north", MADE_NOW);
    put_look("south", MADE_NOW);
    board = take();
    assert_int_equal(board->n_clusters, 2);
    assert_str(board->cluster[0].name, "north");
    assert_int_equal(board->cluster[0].section[KIND_JOBS]->jobs.job[0].id, 2);
    assert_str(board->cluster[1].name, "south");
    assert_int_equal(board->cluster[1].section[KIND_JOBS]->jobs.job[0].id, 1);
    board_unref(board);
}

TEST(the_store_is_looked_at_every_ten_seconds_and_read_if_it_has_changed)
{
    struct board *first, *second, *third, *fourth;

    put_look("north", MADE_NOW);
    put_kept("north", one_node("n1"), MADE_NOW);
    first = take();
    put_record("north", record_in("RUNNING", 1));
    manual_clock_advance(&b.clock, 9 * NS_PER_SEC);
    second = take();
    assert_ptr_equal(second, first);
    manual_clock_advance(&b.clock, NS_PER_SEC);
    third = take();
    assert_ptr_not_equal(third, first);
    assert_int_equal(third->cluster[0].section[KIND_JOBS]->jobs.n, 1);
    /* The nodes have not been written since: they are the same. */
    assert_ptr_equal(third->cluster[0].section[KIND_NODES], first->cluster[0].section[KIND_NODES]);
    manual_clock_advance(&b.clock, 10 * NS_PER_SEC);
    fourth = take();
    assert_ptr_equal(fourth, third);
    board_unref(first);
    board_unref(second);
    board_unref(third);
    board_unref(fourth);
}

TEST(what_is_old_is_withdrawn_with_its_time)
{
    struct board *board;

    setenv("TZ", "UTC", 1);
    put_look("north", MADE_NOW - 300);
    put_kept("north", one_node("n1"), MADE_NOW - 200);
    board = take();
    assert_non_null(board->cluster[0].section[KIND_JOBS]);
    assert_str(board->cluster[0].trouble, "");
    board_unref(board);
    manual_clock_advance(&b.clock, 10 * NS_PER_SEC); /* nobody writes */
    board = take();
    assert_null(board->cluster[0].section[KIND_JOBS]);
    assert_int_equal(board->cluster[0].sums.n_job_states, 0);
    assert_non_null(board->cluster[0].section[KIND_NODES]);
    assert_str(board->cluster[0].trouble,
               "Nothing was recorded of jobs since 2023-11-14T22:08:20+00:00");
    board_unref(board);
    manual_clock_advance(&b.clock, 100 * NS_PER_SEC);
    board = take();
    assert_null(board->cluster[0].section[KIND_NODES]);
    assert_str(board->cluster[0].trouble,
               "Nothing was recorded of jobs since 2023-11-14T22:08:20+00:00; of nodes since "
               "2023-11-14T22:10:00+00:00");
    board_unref(board);
}

TEST(what_is_asked_for_rarely_may_be_older)
{
    struct section *config = section_new(KIND_CONFIG);
    struct board *board;

    config->config.cluster = symbols_put(&config->symbols, STR("north"));
    put_look("north", MADE_NOW);
    put_kept("north", config, MADE_NOW - 4000);
    board = take();
    assert_non_null(board->cluster[0].section[KIND_CONFIG]);
    board_unref(board);
}

TEST(a_store_that_is_not_there_is_told_until_it_is)
{
    struct board *board;

    fixture.store = store_close(fixture.store);
    fixture_remove_files();
    assert_null(try_to_take());
    assert_int_equal(b.err.code, ENOENT);
    assert_contains(b.err.text, "there is no store");
    fixture_open();
    put_look("north", MADE_NOW);
    board = take();
    assert_int_equal(board->n_clusters, 1);
    board_unref(board);
}

TEST(a_damaged_section_is_told)
{
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_section(fixture.store, STR("north"), "nodes", MADE_NOW,
                         STR("{\"sonde\": \"of another kind\"}"), &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    assert_null(try_to_take());
    assert_int_equal(b.err.code, EBADMSG);
    assert_contains(b.err.text, "what the store has of nodes");
}

TEST(a_url_that_names_no_store_is_refused)
{
    struct board_store *boards;
    struct err err;

    assert_int_equal(board_store_open("mysql://host/db", &clock_real, &boards, &err), -EINVAL);
}

static void *take_many(void *arg)
{
    for (int i = 0; i < 200; i++) {
        struct err err;
        struct board *board =
            b.source.take(b.source.ctx, clock_mono(&clock_real) + TEST_DEADLINE, &err);

        if (!board || board->n_clusters != 1)
            return arg;
        board_unref(board);
    }
    return NULL;
}

TEST(many_may_ask_at_once)
{
    pthread_t threads[4];

    put_look("north", MADE_NOW);
    for (size_t i = 0; i < COUNT(threads); i++)
        OK(thread_start(&threads[i], "asker", take_many, &b, &b.err));
    for (int i = 0; i < 50; i++) {
        manual_clock_advance(&b.clock, 10 * NS_PER_SEC / 4);
        put_look("north", MADE_NOW + i);
    }
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}
