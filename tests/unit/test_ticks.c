/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The embedded series in a real file: what is put in comes back, sealed or not, whatever happens in
 * between. */
#include "test.h"

#include "base/buf.h"
#include "files.h"
#include "kill_at_write.h"
#include "store/ticks_writer.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEGIN = 1700006400, STEP = 15, SLOW = 3 * STEP, WINDOW = TICKS_SEAL_SECONDS, HOUR = 3600 };

struct fixture {
    const char *path;
    struct ticks_config config;
    struct ticks_writer *writer;
    struct ticks_reader *reader;
    bool is_clock_wrong;
    struct arena arena;
    struct ticks_line *line;
    size_t n;
    struct err err;
};

#define OK(f, call)                                                                                \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (f)->err.text);                                              \
    } while (0)

static void begin(struct fixture *f)
{
    static unsigned n_files; /* a test may begin anew */

    *f = (struct fixture){ .path = test_path("series-%u.db", n_files++) };
    f->config = (struct ticks_config){ .path = f->path, .retention_seconds = 7 * 24 * HOUR };
    OK(f, ticks_open(&f->config, &f->writer, &f->err));
    OK(f, ticks_reader_open(f->path, &f->reader, &f->err));
}

static void end(struct fixture *f)
{
    ticks_reader_close(f->reader);
    ticks_close(f->writer);
    arena_clear(&f->arena);
}

static void open_again(struct fixture *f)
{
    f->writer = ticks_close(f->writer);
    OK(f, ticks_open(&f->config, &f->writer, &f->err));
}

static void put(struct fixture *f, int64_t time, const char *name, double value)
{
    const struct tick_sample sample = { str_of(name), value };

    OK(f, ticks_put(f->writer, time, &sample, 1, &f->err));
}

/* Counts how many calls it took. */
static size_t tidy(struct fixture *f, int64_t now)
{
    struct ticks_tidied tidied = { .is_more = true };
    size_t calls = 0;

    for (; tidied.is_more; calls++)
        OK(f, ticks_tidy(f->writer, now, !f->is_clock_wrong, &tidied, &f->err));
    return calls;
}

static size_t read_between(struct fixture *f, const char *prefix, int64_t from, int64_t to)
{
    arena_clear(&f->arena);
    OK(f,
       ticks_read(f->reader, str_of(prefix), from, to, 1000, &f->arena, &f->line, &f->n, &f->err));
    return f->n;
}

static size_t read_all(struct fixture *f, const char *prefix)
{
    return read_between(f, prefix, 0, INT64_MAX);
}

static void execute(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t ask(struct fixture *f, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value;
    sqlite3 *db;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* Of some series at some tick; unlike any other. */
static double value_of(size_t series, int64_t tick)
{
    return (double)series * 1e6 + (double)tick + (double)(tick * 7919 % 1000) / 1000;
}

/* Ticks first … last - 1, of so many series. */
static void put_ticks(struct fixture *f, int64_t first, int64_t last, size_t n_series)
{
    struct tick_sample sample[20];
    char name[20][40];

    for (int64_t tick = first; tick < last; tick++) {
        for (size_t i = 0; i < n_series; i++) {
            snprintf(name[i], sizeof(name[i]), "job/7/n%02zu/cpu", i);
            sample[i] = (struct tick_sample){ str_of(name[i]), value_of(i, tick) };
        }
        OK(f, ticks_put(f->writer, BEGIN + tick * STEP, sample, n_series, &f->err));
    }
}

static void assert_ticks(struct fixture *f, int64_t first, int64_t last, size_t n_series)
{
    assert_int_equal(read_all(f, "job/7/"), n_series);
    for (size_t i = 0; i < n_series; i++) {
        assert_int_equal(f->line[i].n, last - first);
        for (int64_t tick = first; tick < last; tick++) {
            assert_int_equal(f->line[i].time[tick - first], BEGIN + tick * STEP);
            assert_true(f->line[i].value[tick - first] == value_of(i, tick));
        }
    }
}

TEST(what_was_put_is_read_in_the_order_of_names)
{
    const struct tick_sample sample[] = { { STR("job/12/b/cpu"), 3 },
                                          { STR("job/1/n/cpu"), 1 },
                                          { STR("job/12/a/cpu"), 2 } };
    struct fixture f;

    begin(&f);
    OK(&f, ticks_put(f.writer, BEGIN, sample, 3, &f.err));
    put(&f, BEGIN + 15, "job/12/a/cpu", 2.5);
    assert_int_equal(read_all(&f, "job/12/"), 2);
    assert_str(f.line[0].name, "job/12/a/cpu");
    assert_int_equal(f.line[0].n, 2);
    assert_int_equal(f.line[0].time[1], BEGIN + 15);
    assert_true(f.line[0].value[1] == 2.5);
    assert_str(f.line[1].name, "job/12/b/cpu");
    assert_int_equal(f.line[1].n, 1);
    assert_int_equal(read_all(&f, ""), 3);
    assert_int_equal(read_all(&f, "job/2"), 0);
    end(&f);
}

TEST(the_end_of_the_time_is_excluded_and_empty_series_are_left_out)
{
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "a", 1);
    put(&f, BEGIN + 15, "b", 2);
    assert_int_equal(read_between(&f, "", BEGIN, BEGIN + 15), 1);
    assert_str(f.line[0].name, "a");
    assert_int_equal(read_between(&f, "", BEGIN + 1, BEGIN + 16), 1);
    assert_str(f.line[0].name, "b");
    tidy(&f, BEGIN + 2 * WINDOW);
    assert_int_equal(read_between(&f, "", BEGIN, BEGIN + 15), 1);
    assert_str(f.line[0].name, "a");
    end(&f);
}

TEST(more_series_than_wanted_are_refused)
{
    struct fixture f;

    begin(&f);
    put_ticks(&f, 0, 3, 5);
    assert_int_equal(
        ticks_read(f.reader, STR("job/"), 0, INT64_MAX, 4, &f.arena, &f.line, &f.n, &f.err),
        -E2BIG);
    OK(&f, ticks_read(f.reader, STR("job/"), 0, INT64_MAX, 5, &f.arena, &f.line, &f.n, &f.err));
    end(&f);
}

/* Ascending, and each once. */
static void assert_times_ascend(const struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 1; k < f->line[i].n; k++)
            assert_true(f->line[i].time[k] > f->line[i].time[k - 1]);
}

/* "a" has a sample at each slow step, of that value. */
static void assert_value_between(struct fixture *f, int64_t from, int64_t to, double value)
{
    assert_int_equal(read_between(f, "a", from, to), 1);
    assert_int_equal(f->line[0].n, (to - from) / SLOW);
    assert_times_ascend(f);
    for (size_t i = 0; i < f->line[0].n; i++)
        assert_true(f->line[0].value[i] == value);
}

static void put_value(struct fixture *f, int64_t from, int64_t to, double value)
{
    for (int64_t time = from; time < to; time += SLOW) {
        put(f, time, "a", value);
        tidy(f, time);
    }
}

static void set_back_by_an_hour(bool is_sealed_between)
{
    const int64_t set = BEGIN + WINDOW / 2 + HOUR / 2; /* within a window */
    struct fixture f;

    begin(&f);
    put_value(&f, BEGIN, set, 1);
    if (is_sealed_between) {
        tidy(&f, BEGIN + WINDOW);
        open_again(&f);
    }
    put_value(&f, set - HOUR, set - HOUR / 2, 2);
    assert_value_between(&f, BEGIN, set - HOUR, 1);
    assert_value_between(&f, set - HOUR, set - HOUR / 2, 2);
    assert_int_equal(read_all(&f, "a"), 1); /* with what is still to be replaced */
    assert_int_equal(f.line[0].n, (set - BEGIN) / SLOW);
    assert_times_ascend(&f);
    put_value(&f, set - HOUR / 2, set + 2 * WINDOW, 2);
    assert_value_between(&f, BEGIN, set - HOUR, 1);
    assert_value_between(&f, set - HOUR, set + 2 * WINDOW, 2);
    end(&f);
}

TEST(after_the_clock_was_set_back_an_hour_what_is_written_last_holds)
{
    set_back_by_an_hour(false);
    set_back_by_an_hour(true);
}

TEST(a_clock_that_is_set_back_and_forth_hides_no_more_than_it_went_through)
{
    const int64_t set = BEGIN + WINDOW - 10 * SLOW;
    struct fixture f;

    begin(&f);
    put_value(&f, BEGIN, set, 1);
    put_value(&f, set - HOUR, set - HOUR + 4 * SLOW, 2); /* by mistake, for a minute */
    put_value(&f, set, set + WINDOW, 1);
    assert_value_between(&f, BEGIN, set - HOUR, 1);
    assert_value_between(&f, set - HOUR, set - HOUR + 4 * SLOW, 2);
    assert_value_between(&f, set - HOUR + 4 * SLOW, set + WINDOW, 1);
    end(&f);
}

TEST(a_clock_that_stands_still_or_trembles_keeps_one_sample_of_a_moment)
{
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "a", 1);
    put(&f, BEGIN, "a", 2);
    put(&f, BEGIN + 15, "a", 3);
    put(&f, BEGIN + 14, "a", 4);
    assert_int_equal(read_all(&f, "a"), 1);
    assert_int_equal(f.line[0].n, 2);
    assert_times_ascend(&f);
    assert_true(f.line[0].value[0] == 2);
    assert_true(f.line[0].value[1] == 4);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch"), 0);
    end(&f);
}

/* What was written then stays until its time has come and gone; nothing else waits for that. */
TEST(a_clock_that_was_a_year_ahead_stops_nothing)
{
    const int64_t year = 365 * 24 * HOUR, now = BEGIN + 4 * WINDOW;
    struct ticks_stats stats;
    struct fixture f;

    begin(&f);
    f.config.retention_seconds = 6 * WINDOW;
    open_again(&f);
    put_value(&f, BEGIN, BEGIN + 4 * SLOW, 1);
    f.is_clock_wrong = true;
    put_value(&f, BEGIN + year, BEGIN + year + HOUR, 9);
    f.is_clock_wrong = false;
    open_again(&f);
    put_value(&f, BEGIN + 4 * SLOW, now, 1);
    assert_value_between(&f, BEGIN, now, 1);
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_int_equal(stats.last_time, now - SLOW);
    assert_true(ask(&f, "SELECT count(*) FROM head") <= WINDOW / SLOW);
    put_value(&f, now, now + f.config.retention_seconds, 1);
    assert_true(ask(&f, "SELECT min(begin_time) FROM batch") > BEGIN + WINDOW);
    assert_int_equal(read_between(&f, "a", BEGIN + year, BEGIN + year + HOUR), 1);
    assert_int_equal(f.line[0].n, HOUR / SLOW);
    put_value(&f, BEGIN + year, BEGIN + year + HOUR, 1);
    assert_value_between(&f, BEGIN + year, BEGIN + year + HOUR, 1);
    end(&f);
}

TEST(names_of_a_time_to_come_outlive_what_is_older)
{
    struct fixture f;

    begin(&f);
    f.config.retention_seconds = 2 * WINDOW;
    open_again(&f);
    put(&f, BEGIN + 1000 * HOUR, "future", 1);
    put(&f, BEGIN, "future", 2);
    put_value(&f, BEGIN + SLOW, BEGIN + 6 * WINDOW, 1);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch WHERE begin_time = 1700006400"), 0);
    assert_int_equal(read_all(&f, "future"), 1);
    assert_int_equal(f.line[0].n, 1);
    assert_int_equal(f.line[0].time[0], BEGIN + 1000 * HOUR);
    end(&f);
}

TEST(a_clock_that_is_known_to_be_wrong_costs_nothing_of_the_past)
{
    const int64_t year = 365 * 24 * HOUR, now = BEGIN + 2 * WINDOW;
    struct fixture f;

    begin(&f);
    put_value(&f, BEGIN, now, 1);
    f.is_clock_wrong = true;
    put_value(&f, BEGIN + year, BEGIN + year + 3 * WINDOW, 9);
    f.is_clock_wrong = false;
    put_value(&f, now, now + HOUR, 1);
    assert_value_between(&f, BEGIN, now + HOUR, 1);
    end(&f);
}

TEST(a_machine_that_was_off_for_long_forgets_what_is_old)
{
    const int64_t later = BEGIN + 30 * 24 * HOUR;
    struct fixture f;

    begin(&f);
    put_value(&f, BEGIN, BEGIN + WINDOW, 1);
    open_again(&f);
    put_value(&f, later, later + 2 * WINDOW, 2);
    assert_int_equal(ask(&f, "SELECT min(begin_time) FROM batch"), later);
    end(&f);
}

TEST(ticks_that_are_hours_apart_are_forgotten_like_others)
{
    struct fixture f;

    begin(&f);
    for (int64_t time = BEGIN; time < BEGIN + 10 * 24 * HOUR; time += 3 * HOUR) {
        put(&f, time, "a", 1);
        tidy(&f, time);
    }
    assert_true(ask(&f, "SELECT min(begin_time) FROM batch") >= BEGIN + 2 * 24 * HOUR);
    end(&f);
}

TEST(unknown_values_are_absent_and_bad_names_are_counted)
{
    char longest[TICKS_NAME_MAX + 2];
    const struct tick_sample sample[] = {
        { STR("unknown"), NAN },
        { STR(""), 1 },
        { { longest, sizeof(longest) }, 1 },
        { { longest, TICKS_NAME_MAX }, 2 },
        { STR("twice"), 3 },
        { STR("twice"), 4 },
        { STR("endless"), INFINITY },
        { STR("minus"), -0.0 },
    };
    struct ticks_stats stats;
    struct fixture f;

    memset(longest, 'x', sizeof(longest));
    begin(&f);
    OK(&f, ticks_put(f.writer, BEGIN, sample, COUNT(sample), &f.err));
    for (int i = 0; i < 2; i++) {
        OK(&f, ticks_stats(f.writer, &stats, &f.err));
        assert_int_equal(stats.skipped, 3);
        assert_int_equal(stats.series, 4);
        assert_int_equal(read_all(&f, ""), 4);
        assert_true(isinf(f.line[0].value[0]));
        assert_true(f.line[1].value[0] == 0 && signbit(f.line[1].value[0]));
        assert_true(f.line[2].value[0] == 3);
        assert_int_equal(f.line[3].name.n, TICKS_NAME_MAX);
        tidy(&f, BEGIN + 2 * WINDOW);
    }
    end(&f);
}

TEST(names_of_any_bytes_stay_apart)
{
    const struct tick_sample sample[] = {
        { STR("a\0b"), 1 },
        { STR("a\0c"), 2 },
        { STR("a"), 3 },
        { STR("\xff\xff"), 4 },
        { STR("'; DROP TABLE name; --"), 5 },
    };
    struct fixture f;

    begin(&f);
    OK(&f, ticks_put(f.writer, BEGIN, sample, COUNT(sample), &f.err));
    OK(&f, ticks_put(f.writer, BEGIN + 1, sample, COUNT(sample), &f.err));
    assert_int_equal(read_all(&f, ""), 5);
    assert_int_equal(f.line[4].n, 2);
    assert_true(f.line[4].value[0] == 4);
    assert_int_equal(read_all(&f, "\xff"), 1);
    OK(&f, ticks_read(f.reader, STR("a\0"), 0, INT64_MAX, 9, &f.arena, &f.line, &f.n, &f.err));
    assert_int_equal(f.n, 2);
    end(&f);
}

TEST(a_window_is_sealed_when_it_is_over_and_reads_the_same)
{
    struct fixture f;

    begin(&f);
    put_ticks(&f, 0, 1000, 3);
    tidy(&f, BEGIN + WINDOW - 1);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch"), 0);
    tidy(&f, BEGIN + WINDOW);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch"), 1);
    assert_int_equal(ask(&f, "SELECT count(*) FROM head"), 1000 - WINDOW / STEP);
    assert_int_equal(ask(&f, "SELECT min(time) FROM head"), BEGIN + WINDOW);
    assert_ticks(&f, 0, 1000, 3);
    tidy(&f, BEGIN + 1000 * STEP + WINDOW);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch"), 3);
    assert_int_equal(ask(&f, "SELECT count(*) FROM head"), 0);
    assert_ticks(&f, 0, 1000, 3);
    assert_int_equal(read_between(&f, "job/7/n01/", BEGIN + WINDOW - STEP, BEGIN + WINDOW + STEP),
                     1);
    assert_int_equal(f.line[0].n, 2);
    end(&f);
}

TEST(a_call_seals_no_more_than_a_window)
{
    struct ticks_tidied tidied;
    struct fixture f;

    begin(&f);
    put_ticks(&f, 0, 1000, 1);
    OK(&f, ticks_tidy(f.writer, BEGIN + 10 * WINDOW, true, &tidied, &f.err));
    assert_true(tidied.is_more);
    assert_int_equal(ask(&f, "SELECT count(*) FROM batch"), 1);
    assert_int_equal(tidy(&f, BEGIN + 10 * WINDOW), 3);
    OK(&f, ticks_tidy(f.writer, BEGIN + 10 * WINDOW, true, &tidied, &f.err));
    assert_false(tidied.is_more);
    end(&f);
}

TEST(a_series_with_gaps_keeps_them)
{
    struct fixture f;

    begin(&f);
    for (int64_t tick = 0; tick < 200; tick++)
        put(&f, BEGIN + tick * STEP, tick % 7 && tick > 20 && tick < 150 ? "a" : "b", (double)tick);
    tidy(&f, BEGIN + WINDOW);
    read_all(&f, "a");
    for (size_t i = 0; i < f.line[0].n; i++) {
        int64_t tick = (int64_t)f.line[0].value[i];

        assert_int_equal(f.line[0].time[i], BEGIN + tick * STEP);
        assert_true(tick % 7 && tick > 20 && tick < 150);
    }
    assert_int_equal(f.line[0].n, 129 - 19);
    end(&f);
}

/* Seals all that there is, unless it is killed at that write. */
_Noreturn static void seal_or_die(struct fixture *f, unsigned writes)
{
    struct ticks_tidied tidied = { .is_more = true };

    if (ticks_open(&f->config, &f->writer, &f->err) < 0)
        _exit(1);
    kill_at_write(writes);
    while (tidied.is_more)
        if (ticks_tidy(f->writer, BEGIN + 600 * STEP, true, &tidied, &f->err) < 0)
            _exit(2);
    _exit(0);
}

/* The child is ended at each write of sealing, as if the power had failed. */
TEST(a_writer_that_dies_while_sealing_loses_nothing)
{
    struct fixture f;
    unsigned writes = 1;
    int status;

    begin(&f);
    put_ticks(&f, 0, 600, 3);
    f.reader = ticks_reader_close(f.reader);
    f.writer = ticks_close(f.writer);
    do {
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0)
            seal_or_die(&f, writes);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        OK(&f, ticks_reader_open(f.path, &f.reader, &f.err));
        assert_ticks(&f, 0, 600, 3);
        f.reader = ticks_reader_close(f.reader);
        writes++;
    } while (WIFSIGNALED(status));
    assert_true(writes > 10);
    OK(&f, ticks_open(&f.config, &f.writer, &f.err));
    tidy(&f, BEGIN + 600 * STEP);
    OK(&f, ticks_reader_open(f.path, &f.reader, &f.err));
    assert_ticks(&f, 0, 600, 3);
    end(&f);
}

TEST(another_process_reads_while_it_is_written)
{
    struct fixture f;
    int status, ready[2];
    pid_t child;
    char byte;

    begin(&f);
    put_ticks(&f, 0, 100, 5);
    f.reader = ticks_reader_close(f.reader);
    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        size_t last = 0;

        close(ready[1]);
        if (ticks_reader_open(f.path, &f.reader, &f.err) < 0)
            _exit(1);
        while (last < 1000) {
            struct arena arena = { 0 };

            if (ticks_read(f.reader, STR("job/7/"), 0, INT64_MAX, 9, &arena, &f.line, &f.n,
                           &f.err) < 0 ||
                f.n != 5 || f.line[4].n < last || f.line[0].n != f.line[4].n)
                _exit(2);
            last = f.line[4].n;
            arena_clear(&arena);
        }
        _exit(read(ready[0], &byte, 1) == 0 ? 0 : 3);
    }
    close(ready[0]);
    for (int64_t tick = 100; tick < 1000; tick += 50) {
        put_ticks(&f, tick, tick + 50, 5);
        tidy(&f, BEGIN + (tick + 50) * STEP);
    }
    close(ready[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end(&f);
}

TEST(what_is_old_goes_with_its_names)
{
    struct ticks_stats stats;
    struct fixture f;

    begin(&f);
    f.config.retention_seconds = 10 * HOUR;
    open_again(&f);
    put(&f, BEGIN, "old", 1);
    put(&f, BEGIN + 15, "lives", 1);
    put(&f, BEGIN + 30, "comes back", 1);
    tidy(&f, BEGIN + WINDOW);
    put(&f, BEGIN + WINDOW, "lives", 2);
    tidy(&f, BEGIN + 2 * WINDOW);
    put(&f, BEGIN + 8 * HOUR, "comes back", 2);
    tidy(&f, BEGIN + 30 + 10 * HOUR);
    assert_int_equal(read_all(&f, ""), 3);
    tidy(&f, BEGIN + 31 + 10 * HOUR);
    assert_int_equal(read_all(&f, ""), 2);
    assert_str(f.line[0].name, "comes back");
    assert_int_equal(f.line[0].n, 1);
    assert_true(f.line[0].value[0] == 2);
    assert_str(f.line[1].name, "lives");
    assert_int_equal(f.line[1].n, 1);
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_int_equal(stats.series, 2);
    assert_int_equal(stats.first_time, BEGIN + WINDOW);
    assert_int_equal(stats.last_time, BEGIN + 8 * HOUR);
    put(&f, BEGIN + 11 * HOUR, "old", 3);
    put(&f, BEGIN + 11 * HOUR + 1, "comes back", 3);
    assert_int_equal(read_all(&f, "old"), 1);
    assert_int_equal(f.line[0].n, 1);
    assert_int_equal(read_all(&f, "comes back"), 1);
    assert_int_equal(f.line[0].n, 2);
    tidy(&f, BEGIN + 100 * HOUR);
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_int_equal(stats.series, 0);
    assert_int_equal(ask(&f, "SELECT count(*) FROM sealed"), 0);
    end(&f);
}

TEST(what_is_too_much_goes_oldest_first)
{
    struct ticks_stats stats;
    struct fixture f;

    begin(&f);
    f.config.max_bytes = 75000;
    open_again(&f);
    for (int64_t tick = 0; tick < 3000; tick += 100) {
        put_ticks(&f, tick, tick + 100, 20);
        tidy(&f, BEGIN + (tick + 100) * STEP);
    }
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_true(stats.first_time > BEGIN);
    assert_int_equal(stats.last_time, BEGIN + 2999 * STEP);
    assert_true(ask(&f, "SELECT (SELECT page_count FROM pragma_page_count)"
                        " - (SELECT freelist_count FROM pragma_freelist_count)") *
                    4096 <=
                75000);
    assert_ticks(&f, (stats.first_time - BEGIN) / STEP, 3000, 20);
    end(&f);
}

TEST(even_a_head_that_is_too_much_goes)
{
    struct ticks_stats stats;
    struct fixture f;

    begin(&f);
    f.config.max_bytes = 60000;
    open_again(&f);
    put_ticks(&f, 0, 400, 20);
    tidy(&f, BEGIN + 400 * STEP);
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_ticks(&f, (stats.first_time - BEGIN) / STEP, 400, 20);
    assert_true(ask(&f, "SELECT count(*) FROM head") < 400);
    end(&f);
}

TEST(what_is_simulated_is_not_mixed_with_what_is_real)
{
    struct fixture f;

    begin(&f);
    f.writer = ticks_close(f.writer);
    f.config.is_simulated = true;
    assert_int_equal(ticks_open(&f.config, &f.writer, &f.err), -EINVAL);
    assert_contains(f.err.text, "are of real jobs");
    end(&f);
}

TEST(the_file_is_readable_by_its_group_only)
{
    struct stat file;
    struct fixture f;

    begin(&f);
    assert_int_equal(stat(f.path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0640);
    end(&f);
}

TEST(jobs_of_a_file_without_clusters_are_given_one)
{
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "job/7/c1/cpu", 1);
    tidy(&f, BEGIN + WINDOW);
    put(&f, BEGIN + WINDOW, "job/7/c1/cpu", 2);
    put(&f, BEGIN + WINDOW + 15, "cluster/x/jobs/running", 3);
    execute(&f, "PRAGMA user_version = 1");
    open_again(&f);
    put(&f, BEGIN + WINDOW + 30, "cluster/x/jobs/running", 4);
    assert_int_equal(ask(&f, "PRAGMA user_version"), 1);
    OK(&f, ticks_name_cluster(f.writer, STR("beluga"), &f.err));
    OK(&f, ticks_name_cluster(f.writer, STR("mila"), &f.err));
    put(&f, BEGIN + WINDOW + 45, "job/beluga/7/c1/cpu", 5);
    assert_int_equal(read_all(&f, "job/"), 1);
    assert_str(f.line[0].name, "job/beluga/7/c1/cpu");
    assert_int_equal(f.line[0].n, 3);
    assert_int_equal(read_all(&f, "cluster/x/"), 1);
    assert_int_equal(f.line[0].n, 2);
    open_again(&f);
    OK(&f, ticks_name_cluster(f.writer, STR("mila"), &f.err));
    assert_int_equal(read_all(&f, "job/beluga/7/"), 1);
    end(&f);
}

TEST(a_file_that_is_none_of_ours_is_left_alone)
{
    struct ticks_writer *writer;
    struct ticks_reader *reader;
    struct fixture f;
    int fd;

    begin(&f);
    f.writer = ticks_close(f.writer);
    f.reader = ticks_reader_close(f.reader);
    execute(&f, "PRAGMA application_id = 7");
    assert_int_equal(ticks_open(&f.config, &writer, &f.err), -EBADMSG);
    assert_int_equal(ticks_reader_open(f.path, &reader, &f.err), -EBADMSG);
    assert_contains(f.err.text, "is not a file of series");
    execute(&f, "PRAGMA application_id = 1936682612; PRAGMA user_version = 99");
    assert_int_equal(ticks_open(&f.config, &writer, &f.err), -EPROTO);
    fd = open(f.path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "this is text, and not a database, whoever asks\n", 47), 47);
    close(fd);
    assert_int_equal(ticks_open(&f.config, &writer, &f.err), -EBADMSG);
    assert_int_equal(ticks_reader_open(f.path, &reader, &f.err), -EBADMSG);
    unlink(f.path);
    assert_int_equal(ticks_reader_open(f.path, &reader, &f.err), -ENOENT);
    end(&f);
}

TEST(damaged_samples_are_told)
{
    static const char *const damages[] = {
        "UPDATE head SET samples = x'05ffff'",
        "UPDATE sealed SET samples = x'0100ff7f00'",
        "UPDATE sealed SET samples = substr(samples, 1, length(samples) - 1)",
        "UPDATE batch SET times = x''",
    };
    struct fixture f;

    for (size_t i = 0; i < COUNT(damages); i++) {
        begin(&f);
        put_ticks(&f, 0, 600, 2);
        tidy(&f, BEGIN + WINDOW);
        execute(&f, damages[i]);
        assert_int_equal(
            ticks_read(f.reader, STR(""), 0, INT64_MAX, 9, &f.arena, &f.line, &f.n, &f.err),
            -EBADMSG);
        assert_contains(f.err.text, "are damaged");
        end(&f);
    }
}

TEST(damaged_ticks_do_not_keep_others_from_being_sealed_or_forgotten)
{
    struct ticks_stats stats;
    struct fixture f;

    begin(&f);
    put_ticks(&f, 0, 10, 2);
    execute(&f, "UPDATE head SET samples = x'05ffff' WHERE time % 2 = 0");
    tidy(&f, BEGIN + WINDOW);
    assert_int_equal(ask(&f, "SELECT count(*) FROM head"), 0);
    assert_int_equal(read_all(&f, "job/7/"), 2);
    assert_int_equal(f.line[0].n, 5);
    assert_true(f.line[1].value[2] == value_of(1, 5));
    OK(&f, ticks_stats(f.writer, &stats, &f.err));
    assert_int_equal(stats.skipped, 5);
    put(&f, BEGIN + WINDOW, "b", 1);
    put_value(&f, BEGIN + WINDOW + SLOW, BEGIN + WINDOW + HOUR, 1);
    execute(&f, "UPDATE head SET samples = x'05ffff' WHERE time % 2 = 1");
    tidy(&f, BEGIN + 1000 * HOUR);
    assert_int_equal(ask(&f, "SELECT count(*) FROM name"), 0);
    end(&f);
}

static int put_quietly(struct fixture *f, int64_t tick)
{
    struct tick_sample sample[200];
    char name[COUNT(sample)][40];

    for (size_t i = 0; i < COUNT(sample); i++) {
        snprintf(name[i], sizeof(name[i]), "job/7/n%03zu/cpu", i);
        sample[i] = (struct tick_sample){ str_of(name[i]), value_of(i, tick) };
    }
    return ticks_put(f->writer, BEGIN + tick * STEP, sample, COUNT(sample), &f->err);
}

static void spoil(const struct fixture *f, off_t from)
{
    char rubbish[4096];
    struct stat file;
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);

    memset(rubbish, 0xff, sizeof(rubbish));
    assert_int_equal(fstat(fd, &file), 0);
    assert_true(file.st_size > from);
    for (; from < file.st_size; from += (off_t)sizeof(rubbish))
        assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), from), sizeof(rubbish));
    close(fd);
}

/* Wherever the damage begins, whoever writes comes to an end with a sentence, or goes on. */
TEST(a_file_with_damaged_pages_is_told)
{
    size_t told = 0;

    for (off_t page = 1; page < 24; page += 3) {
        struct fixture f;
        struct ticks_tidied tidied = { .is_more = true };
        int r;

        begin(&f);
        put_ticks(&f, 0, 600, 20);
        tidy(&f, BEGIN + WINDOW);
        f.writer = ticks_close(f.writer);
        spoil(&f, page * 4096);
        r = ticks_open(&f.config, &f.writer, &f.err);
        if (r == 0)
            r = put_quietly(&f, 600);
        while (r == 0 && tidied.is_more)
            r = ticks_tidy(f.writer, BEGIN + 1000 * HOUR, true, &tidied, &f.err);
        if (r < 0) {
            assert_int_equal(r, -EBADMSG);
            assert_contains(f.err.text, "damaged");
            told++;
        }
        end(&f);
    }
    assert_true(told > 2);
}

/* Jobs come and go: 5,000 a day with 20 series each would be 10 MB a day. */
TEST(names_of_what_has_ended_do_not_stay_in_memory)
{
    struct fixture f;
    char name[40];

    begin(&f);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "job/beluga/%d/c1/cpu_seconds", i);
        put(&f, BEGIN + i * STEP, name, i);
        tidy(&f, BEGIN + i * STEP);
        assert_true(f.writer->names.n <= WINDOW / STEP + 1);
    }
    assert_int_equal(ask(&f, "SELECT count(*) FROM name"), 1000);
    end(&f);
}

/* As on a disk without room. */
static void limit_files_to(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(a_full_disk_is_told_and_when_there_is_room_again_nothing_is_lost)
{
    int64_t tick = 0, kept;
    struct fixture f;
    int r;

    begin(&f);
    signal(SIGXFSZ, SIG_IGN);
    limit_files_to(200000);
    while ((r = put_quietly(&f, tick)) == 0 && tick < 1000)
        tick++;
    kept = tick;
    limit_files_to(RLIM_INFINITY);
    assert_int_equal(r, -ENOSPC);
    assert_contains(f.err.text, "no room");
    assert_true(kept > 10);
    OK(&f, put_quietly(&f, ++tick));
    tidy(&f, BEGIN + WINDOW);
    assert_int_equal(read_all(&f, "job/7/n199/"), 1);
    assert_int_equal(f.line[0].n, kept + 1);
    for (int64_t i = 0; i < kept; i++)
        assert_true(f.line[0].value[i] == value_of(199, i));
    end(&f);
}

TEST(a_reader_past_its_deadline_says_so)
{
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "a", 1);
    ticks_reader_deadline(f.reader, 1);
    assert_int_equal(
        ticks_read(f.reader, STR(""), 0, INT64_MAX, 9, &f.arena, &f.line, &f.n, &f.err),
        -ETIMEDOUT);
    ticks_reader_deadline(f.reader, 0);
    assert_int_equal(read_all(&f, ""), 1);
    end(&f);
}

TEST(a_file_that_was_replaced_is_noticed)
{
    const struct tick_sample sample = { STR("a"), 1 };
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "a", 1);
    assert_int_equal(rename(f.path, test_path("old.db")), 0);
    assert_int_equal(ticks_put(f.writer, BEGIN + 1, &sample, 1, &f.err), -ENOENT);
    open_again(&f);
    put(&f, BEGIN + 1, "b", 1);
    assert_int_equal(read_all(&f, ""), 1);
    assert_str(f.line[0].name, "b");
    end(&f);
}

TEST(a_second_writer_does_no_harm)
{
    const struct tick_sample sample = { STR("other"), 1 };
    struct ticks_writer *other;
    struct ticks_tidied tidied = { .is_more = true };
    struct fixture f;

    begin(&f);
    put(&f, BEGIN, "a", 1);
    OK(&f, ticks_open(&f.config, &other, &f.err));
    OK(&f, ticks_put(other, BEGIN + 15, &sample, 1, &f.err));
    put(&f, BEGIN + 30, "b", 2);
    OK(&f, ticks_put(other, BEGIN + 30, &sample, 1, &f.err)); /* of a moment, the last counts */
    assert_int_equal(read_all(&f, ""), 2);
    while (tidied.is_more) /* names go, too */
        OK(&f, ticks_tidy(other, BEGIN + 1000 * HOUR, true, &tidied, &f.err));
    ticks_close(other);
    assert_int_equal(read_all(&f, ""), 0);
    put(&f, BEGIN + 45, "b", 3);
    assert_int_equal(read_all(&f, ""), 1);
    assert_str(f.line[0].name, "b");
    end(&f);
}

/* Through the bytes and back. */
static size_t seal(const double *value, size_t n)
{
    uint32_t *tick = heap_array(n, sizeof(*tick)), *tick_again = heap_array(n, sizeof(*tick));
    double *again = heap_array(n, sizeof(*again));
    struct buf blob;
    size_t n_again, bytes;

    for (size_t i = 0; i < n; i++)
        tick[i] = (uint32_t)i;
    buf_init(&blob, 1 << 20);
    sealed_put(&blob, tick, value, n);
    assert_true(sealed_get(buf_str(&blob), n, tick_again, again, &n_again));
    assert_int_equal(n_again, n);
    assert_memory_equal(again, value, n * sizeof(*value));
    bytes = blob.n;
    buf_free(&blob);
    free(tick);
    free(tick_again);
    free(again);
    return bytes;
}

TEST(values_of_all_kinds_are_sealed_exactly_and_small)
{
    double value[480];
    uint64_t counter = 0;

    for (size_t i = 0; i < 480; i++)
        value[i] = 48;
    assert_true(seal(value, 480) <= 30);
    for (size_t i = 0; i < 480; i++) /* CPU time in microseconds */
        value[i] = (double)(counter += 58000000 + i * 7919 % 100000) / 1e6;
    assert_true(seal(value, 480) <= 480 * 3);
    for (size_t i = 0; i < 480; i++) /* pages */
        value[i] = (double)((1 << 20) + i * 7919 % 1024) * 4096;
    assert_true(seal(value, 480) <= 480 * 2);
    for (size_t i = 0; i < 480; i++) /* a counter that began anew */
        value[i] = (double)(i < 240 ? i * 1000 : i);
    seal(value, 480);
    for (size_t i = 0; i < 480; i++) /* with all their digits */
        value[i] = sin((double)i);
    assert_true(seal(value, 480) <= 480 * 9);
    memcpy(value,
           (double[]){ 0, -0.0, INFINITY, -INFINITY, 1e300, -1e-300, 5e-324, 9007199254740991.0,
                       9007199254740993.0, -9007199254740991.0, 0.1, 1e9 + 1e-9 },
           12 * sizeof(double));
    for (size_t i = 0; i < 12; i++)
        seal(value + i, 1);
    seal(value, 12);
    seal(value + 7, 1);
    seal((double[]){ -9007199254740991.0, 9007199254740991.0, 0 }, 3);
    seal((double[]){ 9007199254740991.0, 0.1 }, 2);
}
