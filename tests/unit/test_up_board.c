/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A refresher over a source whose answers the test decides. */
#include "test.h"

#include "cmd/up_board.h"
#include "source/sim.h"

#include <fcntl.h>
#include <math.h>

static const struct sim sim = { .nodes = 4, .jobs = 10, .seed = 1, .users = 3 };
static const int64_t now = 1794225600;

struct made_source {
    struct source source;                        /* first */
    atomic_bool is_failing, is_hanging, is_slow; /* slow: slower than people wait */
    _Atomic unsigned reads;
};

static int read_made(struct source *source, enum kind kind, int64_t deadline_ns,
                     struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct made_source *made = (struct made_source *)source;
    int64_t slowly_ns = clock_mono(&clock_real) + 300 * NS_PER_MS;

    (void)ret_warning;
    made->reads++;
    while (made->is_slow && clock_mono(&clock_real) < slowly_ns)
        sched_yield();
    while (made->is_hanging && !source->cancelled && clock_mono(&clock_real) < deadline_ns)
        sched_yield();
    if (made->is_failing || source->cancelled)
        return err_set(err, EREMOTEIO, "squeue says no");
    *ret = sim_section(&sim, kind, now);
    return 0;
}

static void close_made(struct source *source)
{
    (void)source;
}

static const struct source_class made_class = {
    .name = "made",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_CONFIG),
    .read = read_made,
    .close = close_made,
};

struct fixture {
    struct made_source source;
    struct engine *engine;
    struct up_board *boards;
    struct board_source from;
    struct log *log;
    int null_fd;
};

static struct fixture *f;

static void ignore_change(void *ctx)
{
    (void)ctx;
}

static struct engine *make_engine(int64_t poll_limit_ns)
{
    struct engine *engine = heap_alloc(sizeof(*engine));
    struct engine_cluster *cluster = &engine->clusters[0];
    struct refresh_config config = {
        .source = &f->source.source,
        .clock = &clock_real,
        .log = f->log,
        .changed = ignore_change,
        .tuning = { .timeout_ns = 20 * NS_PER_SEC,
                    .stale_limit_ns = 300 * NS_PER_SEC,
                    .retry_ns = 60 * NS_PER_SEC,
                    .max_backoff_ns = 60 * NS_PER_SEC,
                    .publish = { .keeps_facts = true,
                                 .max_segment = 1 << 20,
                                 .const_labels = STR(""),
                                 .clock = &clock_real } },
    };
    struct err err;

    for (int kind = 0; kind < KINDS; kind++)
        config.tuning.poll_limit_ns[kind] = poll_limit_ns;
    engine->n_clusters = 1;
    cluster->feeds[FEED_SLURM].source = &f->source.source;
    assert_int_equal(refresher_start(&config, &cluster->feeds[FEED_SLURM].refresher, &err), 0);
    return engine;
}

static void set_up(void)
{
    f = heap_alloc(sizeof(*f));
    f->source.source.class = &made_class;
    f->source.source.clock = &clock_real;
    f->source.source.simulated = true;
    f->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    f->log = log_new(f->null_fd, LOG_INFO, &clock_real);
    f->boards = up_board_new(&clock_real, NULL);
    f->from = up_board_source(f->boards);
}

static void tear_down(void)
{
    up_board_use(f->boards, NULL);
    engine_free(f->engine);
    up_board_free(f->boards);
    log_free(f->log);
    close(f->null_fd);
    free(f);
}

FIXTURE(set_up, tear_down)

static void use(int64_t poll_limit_ns)
{
    f->engine = make_engine(poll_limit_ns);
    up_board_use(f->boards, f->engine);
}

static struct board *take(int64_t patience_ns)
{
    struct err err = { 0 };
    struct board *board = f->from.take(f->from.ctx, clock_mono(&clock_real) + patience_ns, &err);

    if (!board)
        fail_msg("%s", err.text);
    return board;
}

TEST(the_first_who_looks_waits_for_the_first_answer)
{
    struct board *board;

    use(60 * NS_PER_SEC);
    board = take(20 * NS_PER_SEC);
    assert_int_equal(board->n_clusters, 1);
    assert_str(board->cluster[0].name, "simulated");
    assert_true(board->cluster[0].is_simulated);
    assert_int_equal(board->cluster[0].section[KIND_NODES]->nodes.n, 4);
    assert_true(board->cluster[0].sums.cpus.total > 0);
    assert_int_equal(board->cluster[0].trouble.n, 0);
    board_unref(board);
}

TEST(while_nothing_is_newer_the_same_board_is_given)
{
    struct board *first, *second;

    use(60 * NS_PER_SEC);
    first = take(20 * NS_PER_SEC);
    second = take(20 * NS_PER_SEC);
    assert_ptr_equal(first, second);
    assert_int_equal(f->source.reads, 3); /* one for each kind */
    board_unref(first);
    board_unref(second);
}

TEST(what_is_older_than_the_poll_limit_is_asked_again)
{
    struct board *first, *second;

    use(1);
    first = take(20 * NS_PER_SEC);
    second = take(20 * NS_PER_SEC);
    assert_ptr_not_equal(first, second);
    assert_true(f->source.reads >= 6);
    board_unref(first);
    board_unref(second);
}

TEST(who_looks_while_slurm_hangs_is_shown_the_last_that_was_told)
{
    int64_t began_ns;
    struct board *board;

    use(1);
    board_unref(take(20 * NS_PER_SEC));
    f->source.is_hanging = true;
    began_ns = clock_mono(&clock_real);
    board = take(60 * NS_PER_SEC);
    assert_true(clock_mono(&clock_real) - began_ns < 30 * NS_PER_SEC);
    assert_non_null(board->cluster[0].section[KIND_JOBS]);
    board_unref(board);
    f->source.is_hanging = false;
}

TEST(who_wants_news_waits_for_them)
{
    struct board_source patient = up_board_patient(f->boards);
    struct board *first, *second;
    struct err err;

    use(1);
    first = take(20 * NS_PER_SEC);
    f->source.is_slow = true;
    second = patient.take(patient.ctx, clock_mono(&clock_real) + TEST_DEADLINE, &err);
    assert_non_null(second);
    assert_true(second->cluster[0].section[KIND_JOBS]->mono_ns >
                first->cluster[0].section[KIND_JOBS]->mono_ns);
    board_unref(first);
    board_unref(second);
}

TEST(that_slurm_fails_is_told_with_its_reason)
{
    struct board *board;

    f->source.is_failing = true;
    use(60 * NS_PER_SEC);
    board = take(20 * NS_PER_SEC);
    assert_null(board->cluster[0].section[KIND_JOBS]);
    assert_string_equal(board->cluster[0].trouble.p, "Slurm does not answer");
    assert_contains(board->cluster[0].trouble_in_full.p, "squeue says no");
    assert_true(isnan(board->cluster[0].sums.cpus.total));
    board_unref(board);
}

TEST(that_slurm_has_stopped_answering_is_told_beside_what_it_told)
{
    struct board *board;

    use(1);
    board_unref(take(20 * NS_PER_SEC));
    f->source.is_failing = true;
    board = take(20 * NS_PER_SEC);
    assert_non_null(board->cluster[0].section[KIND_JOBS]);
    assert_contains(board->cluster[0].trouble.p, "Slurm has not answered since 20");
    board_unref(board);
}

static void *look(void *ctx)
{
    struct err err;

    (void)ctx;
    return f->from.take(f->from.ctx, clock_mono(&clock_real) + TEST_DEADLINE, &err);
}

TEST(another_engine_takes_the_place_while_somebody_waits_for_the_first)
{
    struct engine *old;
    pthread_t thread;
    void *board;

    f->source.is_hanging = true;
    use(60 * NS_PER_SEC);
    old = f->engine;
    assert_int_equal(pthread_create(&thread, NULL, look, f), 0);
    wait_until_true(f->source.reads > 0);
    up_board_use(f->boards, NULL); /* returns although it hangs */
    pthread_join(thread, &board);
    board_unref(board);
    f->source.is_hanging = false;
    f->engine = engine_free(old);
    f->source.source.cancelled = false;
    use(60 * NS_PER_SEC);
    board_unref(take(20 * NS_PER_SEC));
}

TEST(who_asks_at_the_end_is_told_so)
{
    struct err err;

    assert_null(f->from.take(f->from.ctx, clock_mono(&clock_real) + NS_PER_SEC, &err));
    assert_contains(err.text, "about to end");
}
