/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A refresher over a source whose answers the test decides. */
#include "test.h"

#include "cmd/up_board.h"
#include "source/sim.h"

#include <fcntl.h>
#include <math.h>

static const struct sim sim = { .nodes = 4, .jobs = 10, .seed = 1, .users = 3 };
static const int64_t now = 1794225600;

/* Nobody lives to see the end of it: who waits so long hangs. */
#define FOREVER (1000 * TEST_DEADLINE)

struct made_source {
    struct source source; /* first */
    atomic_bool is_failing, is_hanging;
    _Atomic unsigned reads;
};

static int read_made(struct source *source, enum kind kind, int64_t deadline_ns,
                     struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct made_source *made = (struct made_source *)source;

    (void)deadline_ns;
    (void)ret_warning;
    made->reads++;
    while (made->is_hanging && !source->cancelled)
        poll(NULL, 0, 1);
    if (made->is_failing || source->cancelled)
        return err_set(err, EREMOTEIO, "squeue says no, %0400d", 0);
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
        .tuning = { .timeout_ns = TEST_DEADLINE,
                    .stale_limit_ns = FOREVER,
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

    use(FOREVER);
    board = take(TEST_DEADLINE);
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

    use(FOREVER);
    first = take(TEST_DEADLINE);
    second = take(TEST_DEADLINE);
    assert_ptr_equal(first, second);
    assert_int_equal(f->source.reads, 3); /* one for each kind */
    board_unref(first);
    board_unref(second);
}

/* Waits for the news, however long the machine needs for them. */
static struct board *take_news(void)
{
    struct board_source patient = up_board_patient(f->boards);
    struct err err = { 0 };
    struct board *board = patient.take(patient.ctx, clock_mono(&clock_real) + TEST_DEADLINE, &err);

    if (!board)
        fail_msg("%s", err.text);
    return board;
}

TEST(what_is_older_than_the_poll_limit_is_asked_again)
{
    struct board *first, *second;

    use(1);
    first = take(TEST_DEADLINE);
    second = take_news();
    assert_ptr_not_equal(first, second);
    assert_true(f->source.reads >= 6);
    board_unref(first);
    board_unref(second);
}

TEST(who_looks_while_slurm_hangs_is_shown_the_last_that_was_told)
{
    struct board *board;

    use(1);
    board_unref(take(TEST_DEADLINE));
    f->source.is_hanging = true;
    board = take(FOREVER); /* returns although it hangs */
    assert_non_null(board->cluster[0].section[KIND_JOBS]);
    board_unref(board);
    f->source.is_hanging = false;
}

static void *look_for_news(void *ctx)
{
    atomic_bool *has_ended = ctx;
    struct board *board = take_news();

    atomic_store(has_ended, true);
    return board;
}

TEST(who_wants_news_waits_for_them)
{
    struct board *first, *second;
    atomic_bool has_ended = false;
    pthread_t thread;
    unsigned reads;
    void *news;

    use(1);
    first = take(TEST_DEADLINE);
    f->source.is_hanging = true;
    reads = f->source.reads;
    assert_int_equal(pthread_create(&thread, NULL, look_for_news, &has_ended), 0);
    wait_until_true(f->source.reads > reads);
    second = take(FOREVER); /* who does not want them comes and goes meanwhile */
    assert_false(has_ended);
    f->source.is_hanging = false;
    pthread_join(thread, &news);
    assert_true(((struct board *)news)->cluster[0].section[KIND_JOBS]->mono_ns >
                first->cluster[0].section[KIND_JOBS]->mono_ns);
    board_unref(first);
    board_unref(second);
    board_unref(news);
}

TEST(that_slurm_fails_is_told_with_its_reason)
{
    struct board *board;

    f->source.is_failing = true;
    use(FOREVER);
    board = take(TEST_DEADLINE);
    assert_null(board->cluster[0].section[KIND_JOBS]);
    assert_true(board->cluster[0].is_empty);
    assert_string_equal(board->cluster[0].trouble.p, "Cannot reach Slurm");
    assert_contains(board->cluster[0].trouble_in_full.p, "Cannot reach Slurm: squeue says no, 00");
    assert_contains(board->cluster[0].trouble_in_full.p + 200, "0…"); /* not all of it */
    assert_true(board->cluster[0].trouble_in_full.n < 300);
    assert_true(isnan(board->cluster[0].sums.cpus.total));
    board_unref(board);
}

TEST(that_slurm_has_stopped_answering_is_told_beside_what_it_told)
{
    struct board *board;

    use(1);
    board_unref(take(TEST_DEADLINE));
    f->source.is_failing = true;
    board = take_news();
    assert_non_null(board->cluster[0].section[KIND_JOBS]);
    assert_false(board->cluster[0].is_empty);
    assert_contains(board->cluster[0].trouble.p, "No reply from Slurm since 20");
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
    use(FOREVER);
    old = f->engine;
    assert_int_equal(pthread_create(&thread, NULL, look, f), 0);
    wait_until_true(f->source.reads > 0);
    up_board_use(f->boards, NULL); /* returns although it hangs */
    pthread_join(thread, &board);
    board_unref(board);
    f->source.is_hanging = false;
    f->engine = engine_free(old);
    f->source.source.cancelled = false;
    use(FOREVER);
    board_unref(take(TEST_DEADLINE));
}

TEST(who_asks_at_the_end_is_told_so)
{
    struct err err;

    assert_null(f->from.take(f->from.ctx, clock_mono(&clock_real) + NS_PER_SEC, &err));
    assert_contains(err.text, "about to end");
}
