/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of snapshot/refresh: when a source is polled. */
#include "test.h"

#include "manual_clock.h"
#include "snapshot/refresh.h"

#include <fcntl.h>

/* A source whose answers the test decides, and which waits for the test's permission to answer. */
struct scripted {
    struct source source;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned reads;     /* begun */
    enum kind kinds[4]; /* of the first ones */
    unsigned permitted; /* how many may finish */
    int fail_with;      /* errno, 0 = succeed */
    const char *warning;
    bool leaves_out;      /* a record at every other look, and has nothing new in between */
    struct section *kept; /* what was said then */
};

/* Under its lock. */
static struct section *scripted_section(struct scripted *scripted, enum kind kind)
{
    struct section *section = scripted->kept ? section_again(scripted->kept) : section_new(kind);

    scripted->kept = section_unref(scripted->kept);
    if (scripted->leaves_out && !section->same_as) {
        section->skipped = 1;
        scripted->kept = section_ref(section);
    }
    section->bytes_read = 100;
    return section;
}

static int scripted_read(struct source *source, enum kind kind, int64_t deadline_ns,
                         struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct scripted *scripted = (struct scripted *)source;
    unsigned mine;
    int code;

    (void)deadline_ns;
    pthread_mutex_lock(&scripted->lock);
    if (scripted->reads < COUNT(scripted->kinds))
        scripted->kinds[scripted->reads] = kind;
    mine = ++scripted->reads;
    pthread_cond_broadcast(&scripted->cond);
    while (scripted->permitted < mine && !atomic_load(&source->cancelled))
        pthread_cond_wait(&scripted->cond, &scripted->lock);
    code = scripted->fail_with;
    if (scripted->warning)
        snprintf(ret_warning, SOURCE_WARNING, "%s", scripted->warning);
    if (!code)
        *ret = scripted_section(scripted, kind);
    pthread_mutex_unlock(&scripted->lock);
    return code ? err_set(err, code, "scripted failure") : 0;
}

static const struct source_class scripted_class = {
    .name = "scripted", .kinds = ~0u, .read = scripted_read, .close = NULL
};

struct fixture {
    struct manual_clock clock;
    struct scripted scripted;
    int log_fds[2]; /* a pipe */
    struct log *log;
    struct refresh_tuning tuning;
    struct refresher *refresher;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned changes;
};

static struct fixture f;

static void changed(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&f.lock);
    f.changes++;
    pthread_cond_broadcast(&f.cond);
    pthread_mutex_unlock(&f.lock);
}

static void set_up(void)
{
    struct refresh_config config;
    struct err err;

    f = (struct fixture){ .scripted.source = { .class = &scripted_class } };
    manual_clock_init(&f.clock, 1000 * NS_PER_SEC, 50 * NS_PER_SEC);
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.cond, NULL);
    pthread_mutex_init(&f.scripted.lock, NULL);
    pthread_cond_init(&f.scripted.cond, NULL);
    f.scripted.permitted = 1000;
    assert_int_equal(pipe2(f.log_fds, O_CLOEXEC | O_NONBLOCK), 0);
    f.log = log_new(f.log_fds[1], LOG_INFO, &f.clock.clock);
    config = (struct refresh_config){
        .source = &f.scripted.source,
        .tuning = {
            .timeout_ns = 10 * NS_PER_SEC,
            .stale_limit_ns = 300 * NS_PER_SEC,
            .retry_ns = 10 * NS_PER_SEC,
            .max_backoff_ns = 60 * NS_PER_SEC,
            .publish = { .collectors = ~0u, .max_segment = 1 << 20, .clock = &f.clock.clock },
        },
        .clock = &f.clock.clock,
        .log = f.log,
        .changed = changed,
        .ctx = &f,
    };
    for (int kind = 0; kind < KINDS; kind++)
        config.tuning.poll_limit_ns[kind] = 10 * NS_PER_SEC;
    f.tuning = config.tuning;
    assert_int_equal(refresher_start(&config, &f.refresher, &err), 0);
}

static void tear_down(void)
{
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 1000;
    pthread_cond_broadcast(&f.scripted.cond);
    pthread_mutex_unlock(&f.scripted.lock);
    refresher_stop(f.refresher);
    section_unref(f.scripted.kept);
    log_free(f.log);
    close(f.log_fds[0]);
    close(f.log_fds[1]);
    manual_clock_destroy(&f.clock);
}

FIXTURE(set_up, tear_down)

static void wait_for_changes(unsigned changes)
{
    pthread_mutex_lock(&f.lock);
    while (f.changes < changes)
        pthread_cond_wait(&f.cond, &f.lock);
    pthread_mutex_unlock(&f.lock);
}

static void wait_for_reads(unsigned reads)
{
    pthread_mutex_lock(&f.scripted.lock);
    while (f.scripted.reads < reads)
        pthread_cond_wait(&f.scripted.cond, &f.scripted.lock);
    pthread_mutex_unlock(&f.scripted.lock);
}

/* Lets so many reads finish, of all that were begun. */
static void permit(unsigned reads)
{
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = reads;
    pthread_cond_broadcast(&f.scripted.cond);
    pthread_mutex_unlock(&f.scripted.lock);
}

static void script(int fail_with, const char *warning)
{
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.fail_with = fail_with;
    f.scripted.warning = warning;
    pthread_mutex_unlock(&f.scripted.lock);
}

/* As an asker who has just come. */
static bool want(unsigned kinds, enum metric_format format)
{
    return refresher_want(f.refresher, kinds, format, clock_mono(&f.clock.clock));
}

static bool want_jobs(void)
{
    return want(KIND_BIT(KIND_JOBS), METRIC_TEXT);
}

/* Asks and waits for the one refresh that this starts. */
static void refresh_jobs(void)
{
    unsigned before = f.changes;

    assert_false(want_jobs());
    wait_for_changes(before + 1);
}

static bool shows_jobs(void)
{
    struct snapshot *snapshot = refresher_snapshot(f.refresher);
    bool shown = snapshot->editions[KIND_JOBS] != NULL;

    snapshot_unref(snapshot);
    return shown;
}

static struct refresh_stats stats_of(void)
{
    struct refresh_stats stats;

    refresher_stats(f.refresher, &stats);
    return stats;
}

TEST(nobody_asks_slurm_until_somebody_wants_to_know)
{
    assert_false(shows_jobs());
    assert_int_equal(f.scripted.reads, 0);
    refresh_jobs();
    assert_true(want_jobs());
    assert_true(shows_jobs());
    assert_int_equal(f.scripted.reads, 1);
}

TEST(within_the_poll_limit_slurm_is_not_asked_again)
{
    refresh_jobs();
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC - 1);
    for (int i = 0; i < 100; i++)
        assert_true(want_jobs());
    assert_int_equal(f.scripted.reads, 1);
    manual_clock_advance(&f.clock, 1);
    refresh_jobs();
    assert_int_equal(f.scripted.reads, 2);
}

TEST(concurrent_askers_share_one_refresh)
{
    f.scripted.permitted = 0;
    assert_false(want_jobs());
    wait_for_reads(1);
    for (int i = 0; i < 100; i++)
        assert_false(want_jobs());
    permit(1000);
    /* The second round finds that what the hundred wanted is there. */
    wait_for_changes(2);
    assert_true(want_jobs());
    assert_int_equal(f.scripted.reads, 1);
}

TEST(a_slow_answer_counts_as_fresh_from_its_arrival)
{
    struct refresh_stats stats;

    permit(0);
    assert_false(want_jobs());
    wait_for_reads(1);
    manual_clock_advance(&f.clock, 30 * NS_PER_SEC);
    permit(1000);
    wait_for_changes(1);
    assert_true(want_jobs());
    stats = stats_of();
    assert_true(stats.kinds[KIND_JOBS].age_seconds == 30);
}

TEST(an_asker_is_content_with_looks_begun_since_it_came)
{
    const unsigned both = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES);
    int64_t came = clock_mono(&f.clock.clock);

    assert_false(refresher_want(f.refresher, both, METRIC_TEXT, came));
    wait_for_changes(2);
    /* Jobs and nodes take so long that neither is fresh any more when the asker is woken. */
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    assert_true(refresher_want(f.refresher, both, METRIC_TEXT, came));
    assert_int_equal(f.scripted.reads, 2);
    assert_false(refresher_want(f.refresher, both, METRIC_TEXT, came + NS_PER_SEC));
}

static int64_t patience(int64_t since_ns, int64_t then_ns)
{
    return refresher_patience(f.refresher, KIND_BIT(KIND_JOBS), since_ns, then_ns);
}

TEST(who_has_all_else_waits_twice_as_long_as_the_last_look_took)
{
    int64_t now = clock_mono(&f.clock.clock);

    assert_true(refresher_told_ns(f.refresher, KIND_BIT(KIND_JOBS)) == INT64_MIN);
    assert_int_equal(patience(now, now + 5), now + 5 + NS_PER_SEC);
    permit(0);
    assert_false(want_jobs());
    wait_for_reads(1);
    manual_clock_advance(&f.clock, 3 * NS_PER_SEC);
    assert_int_equal(patience(now, now + 5), now + 5 + NS_PER_SEC);
    assert_int_equal(patience(now + 1, now + 5), now + NS_PER_SEC);
    permit(1);
    wait_for_changes(1);
    assert_int_equal(refresher_told_ns(f.refresher, KIND_BIT(KIND_JOBS)), now + 3 * NS_PER_SEC);
    assert_int_equal(patience(now, now + 5), now + 5 + 6 * NS_PER_SEC);

    script(ETIMEDOUT, NULL);
    permit(1000);
    manual_clock_advance(&f.clock, 60 * NS_PER_SEC);
    refresh_jobs();
    assert_int_equal(patience(now, now + 5), now + 5 + NS_PER_SEC);
}

TEST(a_source_that_hangs_is_down_for_all_kinds_that_are_wanted)
{
    const unsigned kinds = KIND_BIT(KIND_NODES) | KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_DIAG);

    assert_false(want(kinds | KIND_BIT(KIND_SHARES), METRIC_TEXT));
    wait_for_changes(4);
    permit(5);
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    assert_false(want(kinds, METRIC_TEXT));
    wait_for_changes(5); /* the nodes have been told */
    wait_for_reads(6);
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
    assert_true(stats_of().kinds[KIND_JOBS].up);
    assert_true(stats_of().kinds[KIND_DIAG].up);

    permit(7);
    wait_for_changes(7);
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    assert_false(want(kinds, METRIC_TEXT));
    wait_for_reads(8);
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC - 1);
    assert_true(stats_of().kinds[KIND_JOBS].up);
    manual_clock_advance(&f.clock, 1);
    assert_false(stats_of().kinds[KIND_NODES].up);
    assert_false(stats_of().kinds[KIND_JOBS].up);
    assert_false(stats_of().kinds[KIND_DIAG].up);
    assert_true(stats_of().kinds[KIND_SHARES].up);

    permit(1000);
    wait_for_changes(10);
    assert_true(stats_of().kinds[KIND_JOBS].up);
    assert_true(stats_of().kinds[KIND_DIAG].up);
}

TEST(an_answer_that_took_the_whole_timeout_does_not_show_that_the_source_is_up)
{
    const unsigned kinds = KIND_BIT(KIND_NODES) | KIND_BIT(KIND_JOBS);

    assert_false(want(kinds, METRIC_TEXT));
    wait_for_changes(2);
    permit(2);
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    assert_false(want(kinds, METRIC_TEXT));
    wait_for_reads(3);
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
    permit(3);
    wait_for_changes(3);
    wait_for_reads(4);
    assert_true(stats_of().kinds[KIND_NODES].up);
    assert_false(stats_of().kinds[KIND_JOBS].up);
}

TEST(a_failure_keeps_the_last_snapshot_and_says_so)
{
    struct refresh_stats stats;

    refresh_jobs();
    stats = stats_of();
    assert_true(stats.kinds[KIND_JOBS].up);
    script(ETIMEDOUT, NULL);
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    refresh_jobs();
    assert_true(shows_jobs());
    stats = stats_of();
    assert_false(stats.kinds[KIND_JOBS].up);
    assert_true(stats.kinds[KIND_JOBS].age_seconds == 20);
    assert_string_equal(stats.kinds[KIND_JOBS].errors[0].reason, "timeout");
    assert_int_equal(stats.kinds[KIND_JOBS].errors[0].count, 1);
}

TEST(facts_are_not_kept_for_nobody)
{
    struct snapshot *snapshot;

    refresh_jobs();
    snapshot = refresher_snapshot(f.refresher);
    assert_null(snapshot->editions[KIND_JOBS]->section);
    assert_non_null(snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_TEXT]);
    snapshot_unref(snapshot);
}

static struct section *make_traces(void *ctx, const struct section *jobs)
{
    const struct section **seen = ctx;

    *seen = jobs;
    return section_new(KIND_TRACES);
}

TEST(traces_are_made_with_the_jobs_in_hand)
{
    const struct section *seen = NULL;
    struct refresh_config config = {
        .source = &f.scripted.source,
        .tuning = f.tuning,
        .traces = make_traces,
        .traces_ctx = &seen,
        .clock = &f.clock.clock,
        .log = f.log,
        .changed = changed,
        .ctx = &f,
    };
    struct snapshot *snapshot;
    struct err err;

    config.tuning.publish.keeps_facts = true;
    refresher_stop(f.refresher);
    atomic_store(&f.scripted.source.cancelled, false);
    assert_int_equal(refresher_start(&config, &f.refresher, &err), 0);
    assert_false(want(KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_TRACES), METRIC_TEXT));
    wait_for_changes(2);
    snapshot = refresher_snapshot(f.refresher);
    assert_non_null(snapshot->editions[KIND_TRACES]);
    assert_ptr_equal(seen, snapshot->editions[KIND_JOBS]->section);
    snapshot_unref(snapshot);
}

TEST(in_back_off_askers_are_answered_at_once_and_slurm_is_left_alone)
{
    /* 10 s, then doubled up to the ceiling of 60 s */
    static const int pauses[] = { 10, 20, 40, 60, 60 };

    script(EREMOTEIO, NULL);
    for (unsigned i = 0; i < 5; i++) {
        refresh_jobs();
        assert_true(want_jobs());
        manual_clock_advance(&f.clock, pauses[i] * NS_PER_SEC - 1);
        assert_true(want_jobs());
        assert_int_equal(f.scripted.reads, i + 1);
        manual_clock_advance(&f.clock, 1);
    }
    script(0, NULL);
    refresh_jobs();
    assert_true(shows_jobs());
    script(EREMOTEIO, NULL);
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
    refresh_jobs();
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
    assert_false(want_jobs()); /* back-off starts small again */
}

TEST(stale_values_are_withdrawn_and_their_age_remains)
{
    struct refresh_stats stats;

    refresh_jobs();
    script(EREMOTEIO, NULL);
    manual_clock_advance(&f.clock, 300 * NS_PER_SEC);
    assert_true(shows_jobs());
    manual_clock_advance(&f.clock, 1);
    assert_false(shows_jobs());
    refresh_jobs();
    assert_false(shows_jobs());
    stats = stats_of();
    assert_true(stats.kinds[KIND_JOBS].age_seconds > 300);
    assert_false(stats.kinds[KIND_JOBS].up);
}

TEST(a_warning_is_counted_and_is_no_failure)
{
    struct refresh_stats stats;

    script(0, "squeue: warning: slow");
    refresh_jobs();
    stats = stats_of();
    assert_true(stats.kinds[KIND_JOBS].up);
    assert_int_equal(stats.kinds[KIND_JOBS].warnings, 1);
    assert_int_equal(stats.kinds[KIND_JOBS].bytes, 100);
}

TEST(kinds_succeed_and_fail_by_themselves)
{
    struct refresh_stats stats;

    refresh_jobs();
    script(ENOENT, NULL);
    assert_false(want(KIND_BIT(KIND_NODES), METRIC_TEXT));
    wait_for_changes(2);
    assert_true(want(KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES), METRIC_TEXT));
    stats = stats_of();
    assert_true(stats.kinds[KIND_JOBS].up);
    assert_false(stats.kinds[KIND_NODES].up);
    assert_false(stats.kinds[KIND_DIAG].asked);
}

TEST(another_format_is_rendered_without_asking_slurm)
{
    struct snapshot *snapshot;
    struct segment *before;

    refresh_jobs();
    snapshot = refresher_snapshot(f.refresher);
    before = snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_TEXT];
    assert_non_null(before);
    assert_null(snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_OPENMETRICS]);
    assert_false(want(KIND_BIT(KIND_JOBS), METRIC_OPENMETRICS));
    wait_for_changes(2);
    snapshot_unref(snapshot);
    snapshot = refresher_snapshot(f.refresher);
    assert_ptr_equal(snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_TEXT], before);
    assert_non_null(snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_OPENMETRICS]);
    snapshot_unref(snapshot);
    assert_int_equal(f.scripted.reads, 1);
}

TEST(what_is_asked_for_rarely_is_withdrawn_after_two_poll_limits)
{
    f.tuning.poll_limit_ns[KIND_JOBS] = 600 * NS_PER_SEC;
    refresher_tune(f.refresher, &f.tuning);
    refresh_jobs();
    manual_clock_advance(&f.clock, 500 * NS_PER_SEC);
    assert_true(want_jobs());
    assert_true(shows_jobs());
    script(EREMOTEIO, NULL);
    manual_clock_advance(&f.clock, 100 * NS_PER_SEC);
    assert_true(shows_jobs()); /* nobody could have asked again before */
    manual_clock_advance(&f.clock, 601 * NS_PER_SEC);
    assert_false(shows_jobs());
    refresh_jobs();
}

TEST(details_are_skipped_when_no_collector_is_made_of_them)
{
    refresh_jobs();
    assert_int_equal(f.scripted.source.depth, SOURCE_DETAILS);
    f.tuning.publish.collectors = ~((collector_set)1 << collector_find(STR("job_gpus")) |
                                    (collector_set)1 << collector_find(STR("lustre_jobs")));
    refresher_tune(f.refresher, &f.tuning);
    refresh_jobs();
    assert_int_equal(f.scripted.source.depth, SOURCE_PLAIN);
    f.tuning.publish.collectors = 0;
    refresher_tune(f.refresher, &f.tuning);
    refresh_jobs();
    assert_int_equal(f.scripted.source.depth, SOURCE_OWNERS);
}

/* An exporter that starts before slurmctld must not be without its costly kinds for hours. */
TEST(after_a_failure_what_is_asked_for_rarely_is_soon_tried_again)
{
    static const int pauses[] = { 10, 20, 40, 80, 160, 320, 600, 600 };

    f.tuning.poll_limit_ns[KIND_JOBS] = 600 * NS_PER_SEC;
    refresher_tune(f.refresher, &f.tuning);
    script(EREMOTEIO, NULL);
    for (unsigned i = 0; i < COUNT(pauses); i++) {
        refresh_jobs();
        manual_clock_advance(&f.clock, pauses[i] * NS_PER_SEC - 1);
        assert_true(want_jobs());
        assert_int_equal(f.scripted.reads, i + 1);
        manual_clock_advance(&f.clock, 1);
    }
}

TEST(a_look_that_hangs_lets_nodes_and_jobs_pass)
{
    unsigned all = KIND_BIT(KIND_TRACES) - 1;
    int64_t now = clock_mono(&f.clock.clock);

    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 2;
    pthread_mutex_unlock(&f.scripted.lock);
    assert_false(refresher_want(f.refresher, all, METRIC_TEXT, now));
    wait_for_reads(3); /* which hangs */
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    assert_false(want_jobs());
    permit(3);
    wait_for_reads(4);
    assert_int_equal(f.scripted.kinds[0], KIND_NODES);
    assert_int_equal(f.scripted.kinds[1], KIND_JOBS);
    assert_int_equal(f.scripted.kinds[2], KIND_RESERVATIONS);
    assert_int_equal(f.scripted.kinds[3], KIND_JOBS);
}

/* Otherwise one that is wanted again and again would keep the others out. */
TEST(the_kinds_take_turns)
{
    unsigned both = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES);
    int64_t now = clock_mono(&f.clock.clock);

    for (int kind = 0; kind < KINDS; kind++)
        f.tuning.poll_limit_ns[kind] = 0;
    refresher_tune(f.refresher, &f.tuning);
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 0;
    pthread_mutex_unlock(&f.scripted.lock);
    assert_false(refresher_want(f.refresher, both, METRIC_TEXT, now));
    wait_for_reads(1); /* of the jobs, which are wanted again already */
    manual_clock_advance(&f.clock, NS_PER_SEC);
    assert_false(refresher_want(f.refresher, KIND_BIT(KIND_JOBS), METRIC_TEXT, now + NS_PER_SEC));
    permit(2);
    wait_for_changes(2);
    assert_true(stats_of().kinds[KIND_NODES].up);
}

TEST(nobody_waits_for_a_format_that_somebody_else_wants)
{
    refresh_jobs();
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 1;
    pthread_mutex_unlock(&f.scripted.lock);
    assert_false(want(KIND_BIT(KIND_NODES), METRIC_TEXT));
    wait_for_reads(2); /* the nodes, which hang */
    assert_false(want(KIND_BIT(KIND_JOBS), METRIC_OPENMETRICS));
    assert_true(want_jobs());
}

TEST(after_tuning_that_renders_otherwise_slurm_is_asked_again)
{
    struct snapshot *snapshot;

    refresh_jobs();
    refresher_tune(f.refresher, &f.tuning);
    assert_true(want_jobs()); /* nothing has changed */
    f.tuning.publish.collectors = 1;
    refresher_tune(f.refresher, &f.tuning);
    assert_true(shows_jobs());
    assert_false(want_jobs());
    wait_for_changes(2);
    assert_true(want_jobs());
    assert_int_equal(f.scripted.reads, 2);
    snapshot = refresher_snapshot(f.refresher);
    assert_non_null(snapshot->editions[KIND_JOBS]->collectors[0].segments[METRIC_TEXT]);
    assert_null(snapshot->editions[KIND_JOBS]->collectors[1].segments[METRIC_TEXT]);
    snapshot_unref(snapshot);
}

/* Lines that have been logged so far. */
static int count_lines(void)
{
    static char text[65536];
    ssize_t n = read(f.log_fds[0], text, sizeof(text));
    int lines = 0;

    for (ssize_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

TEST(a_look_that_was_under_way_while_it_was_tuned_is_not_fresh)
{
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 0;
    pthread_mutex_unlock(&f.scripted.lock);
    assert_false(want_jobs());
    wait_for_reads(1);
    f.tuning.publish.collectors = 1;
    refresher_tune(f.refresher, &f.tuning);
    permit(1000);
    wait_for_changes(1);
    assert_false(refresher_want(f.refresher, KIND_BIT(KIND_JOBS), METRIC_TEXT,
                                clock_mono(&f.clock.clock) + 1));
    wait_for_changes(2);
    assert_int_equal(f.scripted.reads, 2);
}

TEST(a_look_under_way_needs_nothing_of_the_tuning_it_began_with)
{
    struct snapshot *snapshot;

    snprintf(f.tuning.publish.prefix, sizeof(f.tuning.publish.prefix), "old_");
    refresher_tune(f.refresher, &f.tuning);
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.permitted = 0;
    pthread_mutex_unlock(&f.scripted.lock);
    assert_false(want_jobs());
    wait_for_reads(1);
    snprintf(f.tuning.publish.prefix, sizeof(f.tuning.publish.prefix), "new_");
    refresher_tune(f.refresher, &f.tuning);
    permit(1000);
    wait_for_changes(1);
    snapshot = refresher_snapshot(f.refresher);
    assert_string_equal(snapshot->editions[KIND_JOBS]->prefix, "old_");
    snapshot_unref(snapshot);
}

TEST(what_stays_the_same_is_logged_once_an_hour)
{
    int lines = 0;

    script(0, "squeue: option CryptoType is defunct");
    for (int i = 0; i < 300; i++) {
        refresh_jobs();
        manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
        lines += count_lines();
    }
    assert_int_equal(lines, 1);
    script(0, "squeue: something else");
    refresh_jobs();
    manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
    script(0, NULL);
    refresh_jobs(); /* once this look has ended, the lines of the one before are written */
    assert_int_equal(count_lines(), 1);
    script(0, "squeue: something else");
    for (int i = 0; i < 400; i++) {
        manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
        refresh_jobs();
        lines += count_lines();
    }
    assert_int_equal(lines, 3); /* at first, and an hour later */
}

TEST(what_only_has_to_wait_for_another_source_is_no_news)
{
    script(EAGAIN, NULL);
    refresh_jobs();
    assert_false(stats_of().kinds[KIND_JOBS].up);
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    script(0, NULL);
    refresh_jobs();
    manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    refresh_jobs(); /* once this look has ended, the lines of the one before are written */
    assert_int_equal(count_lines(), 0);
}

TEST(an_outage_of_all_kinds_is_one_line_and_its_end_another)
{
    unsigned kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_DIAG);
    unsigned looks = 0;

    for (int fail_with = ECONNREFUSED;; fail_with = 0) {
        script(fail_with, NULL);
        assert_false(want(kinds, METRIC_TEXT));
        wait_for_changes(looks += 3);
        manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
        refresh_jobs(); /* once this look has ended, the lines of those before are written */
        looks++;
        assert_int_equal(count_lines(), 1);
        manual_clock_advance(&f.clock, 60 * NS_PER_SEC);
        if (!fail_with)
            break;
    }
}

TEST(records_that_are_left_out_of_what_is_said_again_are_no_news)
{
    int lines = 0;

    f.scripted.leaves_out = true;
    for (int i = 0; i < 20; i++) {
        refresh_jobs();
        manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
        lines += count_lines();
    }
    assert_int_equal(lines, 1);
    assert_int_equal(stats_of().kinds[KIND_JOBS].skipped, 10);
}

TEST(what_is_of_a_moment_is_withdrawn_when_a_later_look_fails)
{
    struct snapshot *snapshot;

    for (int fails = 0; fails < 2; fails++) {
        script(fails ? ECONNREFUSED : 0, NULL);
        assert_false(want(KIND_BIT(KIND_LUSTRE), METRIC_TEXT));
        wait_for_changes((unsigned)fails + 1);
        snapshot = refresher_snapshot(f.refresher);
        assert_int_equal(snapshot->editions[KIND_LUSTRE] != NULL, !fails);
        snapshot_unref(snapshot);
        manual_clock_advance(&f.clock, 20 * NS_PER_SEC);
    }
}

static const atomic_bool never = false;

static struct section *wait_for_jobs(const atomic_bool *cancelled, struct err *err)
{
    return refresher_wait(f.refresher, KIND_JOBS, clock_mono(&clock_real) + TEST_DEADLINE,
                          cancelled, err);
}

static void keep_facts(void)
{
    f.tuning.publish.keeps_facts = true;
    refresher_tune(f.refresher, &f.tuning);
}

TEST(a_thread_that_waits_gets_the_section_that_it_had_asked_for)
{
    struct section *first, *second;
    struct err err;

    keep_facts();
    first = wait_for_jobs(&never, &err);
    assert_non_null(first);
    second = wait_for_jobs(&never, &err);
    assert_ptr_equal(second, first); /* within the poll limit */
    assert_int_equal(f.scripted.reads, 1);
    section_unref(first);
    section_unref(second);
}

TEST(a_thread_that_waits_in_vain_is_told_why)
{
    struct err err;

    keep_facts();
    script(EACCES, NULL);
    assert_null(wait_for_jobs(&never, &err));
    assert_int_equal(err.code, EACCES);
    assert_string_equal(err.text, "scripted failure");
}

static void *advance_the_clock(void *arg)
{
    (void)arg;
    wait_for_reads(1);
    manual_clock_advance(&f.clock, TEST_DEADLINE);
    return NULL;
}

TEST(a_thread_waits_no_longer_than_its_deadline)
{
    pthread_t other;
    struct err err;

    keep_facts();
    f.scripted.permitted = 0;
    assert_int_equal(pthread_create(&other, NULL, advance_the_clock, &f), 0);
    assert_null(wait_for_jobs(&never, &err));
    assert_int_equal(err.code, ETIMEDOUT);
    pthread_join(other, NULL);
}

TEST(a_thread_that_is_cancelled_waits_no_longer)
{
    static const atomic_bool always = true;
    struct err err;

    f.scripted.permitted = 0;
    assert_null(wait_for_jobs(&always, &err));
    assert_int_equal(err.code, ECANCELED);
}

static void *take_snapshots(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        struct snapshot *snapshot = refresher_snapshot(f.refresher);
        const struct edition *edition = snapshot->editions[KIND_JOBS];

        if (edition && !edition->collectors[0].segments[METRIC_TEXT])
            return arg;
        want_jobs();
        snapshot_unref(snapshot);
    }
    return NULL;
}

TEST(readers_never_meet_a_half_made_snapshot)
{
    pthread_t readers[4];
    void *broken;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, take_snapshots, &f), 0);
    for (int i = 0; i < 200; i++) {
        manual_clock_advance(&f.clock, 10 * NS_PER_SEC);
        want_jobs();
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(readers[i], &broken);
        assert_null(broken);
    }
}

TEST(stopping_ends_a_look_that_hangs)
{
    f.scripted.permitted = 0;
    want_jobs();
    wait_for_reads(1);
    /* The look only ends because it is cancelled: the source is woken to see that, as a command is
     * by the 100 ms tick of base/spawn. */
    atomic_store(&f.scripted.source.cancelled, true);
    pthread_mutex_lock(&f.scripted.lock);
    f.scripted.fail_with = ECANCELED;
    pthread_cond_broadcast(&f.scripted.cond);
    pthread_mutex_unlock(&f.scripted.lock);
    wait_for_changes(1);
    assert_null(stats_of().kinds[KIND_JOBS].errors[0].reason);
}
