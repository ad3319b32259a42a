/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/log: log lines. */
#include "test.h"

#include "manual_clock.h"

#include "base/log.h"

#include <fcntl.h>

/* 2026-11-15T20:24:05.678Z */
#define START_NS (INT64_C(1794774245) * NS_PER_SEC + 678 * NS_PER_MS)

struct fixture {
    struct manual_clock clock;
    struct log *log;
    int read_fd, write_fd;
    char text[65536];
};

static struct fixture *begin(enum log_level least)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int fds[2];

    assert_non_null(f);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    f->read_fd = fds[0];
    f->write_fd = fds[1];
    manual_clock_init(&f->clock, START_NS, 0);
    f->log = log_new(f->write_fd, least, &f->clock.clock);
    return f;
}

static void end(struct fixture *f)
{
    assert_null(log_free(f->log));
    manual_clock_destroy(&f->clock);
    close(f->read_fd);
    close(f->write_fd);
    free(f);
}

/* What was written since the last call. */
static struct str written(struct fixture *f)
{
    ssize_t n = read(f->read_fd, f->text, sizeof(f->text) - 1);

    f->text[n > 0 ? n : 0] = '\0';
    return str_of(f->text);
}

static size_t count_lines(struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

TEST(a_line_has_time_level_message_and_fields)
{
    struct fixture *f = begin(LOG_INFO);

    LOG(f->log, LOG_WARN, "refresh failed", LOG_STR("source", "cli"), LOG_INT("jobs", -5),
        LOG_DOUBLE("seconds", 0.25), LOG_VIEW("reason", STR("timed out")));
    assert_str(written(f),
               "ts=2026-11-15T20:24:05.678Z level=warn msg=\"refresh failed\" source=cli "
               "jobs=-5 seconds=0.25 reason=\"timed out\"\n");
    end(f);
}

TEST(a_hostile_value_cannot_forge_a_line_or_a_field)
{
    struct fixture *f = begin(LOG_INFO);

    LOG(f->log, LOG_INFO, "job",
        LOG_VIEW("name", STR("x\nts=0 level=error msg=\"forged\"\r\t\0\x1b[2J")),
        LOG_VIEW("equals", STR("a=b")), LOG_VIEW("quote", STR("\"")), LOG_VIEW("back", STR("\\")),
        LOG_VIEW("bytes", STR("\xff\xc3\xa9")), LOG_VIEW("empty", STR("")));
    assert_str(
        written(f),
        "ts=2026-11-15T20:24:05.678Z level=info msg=job "
        "name=\"x\\u000ats=0 level=error msg=\\\"forged\\\"\\u000d\\u0009\\u0000\\u001b[2J\" "
        "equals=\"a=b\" quote=\"\\\"\" back=\"\\\\\" bytes=\"\xef\xbf\xbd\xc3\xa9\" empty=\"\"\n");
    end(f);
}

TEST(a_line_ends_however_long_its_values_are)
{
    struct fixture *f = begin(LOG_INFO);
    char value[100000];
    struct str line;

    memset(value, '\1', sizeof(value));
    LOG(f->log, LOG_INFO, "long", LOG_VIEW("a", ((struct str){ value, sizeof(value) })),
        LOG_VIEW("b", ((struct str){ value, sizeof(value) })),
        LOG_VIEW("c", ((struct str){ value, sizeof(value) })),
        LOG_VIEW("d", ((struct str){ value, sizeof(value) })));
    line = written(f);
    assert_true(line.n <= 8192);
    assert_int_equal(count_lines(line), 1);
    assert_true(str_ends(line, STR("\\u0001\" cut=true\n")));
    LOG(f->log, LOG_INFO, "next");
    assert_str(written(f), "ts=2026-11-15T20:24:05.678Z level=info msg=next\n");
    end(f);
}

TEST(lines_below_the_level_are_not_written)
{
    struct fixture *f = begin(LOG_WARN);
    enum log_level level = LOG_ERROR;

    LOG(f->log, LOG_DEBUG, "quiet");
    LOG(f->log, LOG_INFO, "quiet");
    assert_str(written(f), "");
    LOG(f->log, LOG_ERROR, "loud");
    assert_contains(written(f).p, "level=error msg=loud");
    log_set_level(f->log, LOG_DEBUG);
    LOG(f->log, LOG_DEBUG, "now");
    assert_contains(written(f).p, "level=debug msg=now");
    assert_true(log_level_parse(STR("Info"), &level) && level == LOG_INFO);
    assert_true(log_level_parse(STR("debug"), &level) && level == LOG_DEBUG);
    assert_false(log_level_parse(STR("verbose"), &level));
    assert_false(log_level_parse(STR(""), &level));
    assert_int_equal(level, LOG_DEBUG);
    end(f);
}

TEST(a_message_that_repeats_is_limited_and_then_counted)
{
    struct fixture *f = begin(LOG_INFO);

    for (int i = 0; i < 100; i++)
        LOG(f->log, LOG_INFO, "again", LOG_INT("i", i));
    assert_int_equal(count_lines(written(f)), 10);
    LOG(f->log, LOG_INFO, "another");
    assert_int_equal(count_lines(written(f)), 1);
    manual_clock_advance(&f->clock, 60 * NS_PER_SEC);
    LOG(f->log, LOG_INFO, "again");
    assert_contains(written(f).p, "msg=again left_out=90\n");
    LOG(f->log, LOG_INFO, "again");
    assert_true(str_ends(written(f), STR("msg=again\n")));
    end(f);
}

TEST(more_messages_than_are_counted_share_one_limit)
{
    static const char many[80][8]; /* only the addresses count: a message is a literal */
    struct fixture *f = begin(LOG_INFO);

    for (size_t i = 0; i < 80; i++)
        log_write(f->log, LOG_INFO, many[i], NULL, 0);
    written(f);
    for (int round = 0; round < 50; round++)
        for (size_t i = 70; i < 80; i++)
            log_write(f->log, LOG_INFO, many[i], NULL, 0);
    assert_str(written(f), "");
    log_write(f->log, LOG_INFO, many[3], NULL, 0);
    assert_int_equal(count_lines(written(f)), 1);
    end(f);
}

TEST(a_reader_that_has_stopped_reading_stops_nobody)
{
    char bytes[65536];
    int ends[2];
    struct log *log;
    ssize_t n;

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    memset(bytes, 'x', sizeof(bytes));
    while (write(ends[1], bytes, sizeof(bytes)) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0); /* from now on a write would wait */
    log = log_new(ends[1], LOG_INFO, &clock_real);
    LOG(log, LOG_INFO, "lost");
    LOG(log, LOG_INFO, "lost too");
    while (read(ends[0], bytes, sizeof(bytes)) > 0)
        continue;
    LOG(log, LOG_INFO, "written");
    n = read(ends[0], bytes, sizeof(bytes) - 1);
    assert_true(n > 0);
    bytes[n] = '\0';
    assert_contains(bytes, "msg=written lost=2\n");
    log_free(log);
    close(ends[0]);
    close(ends[1]);
}
