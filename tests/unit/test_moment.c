/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/moment: times as people write them. */
#include "test.h"

#include "base/moment.h"

#include <stdlib.h>

static void use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

/* 2026-10-15T13:14:15Z */
static const int64_t now = 1792070055;

static int64_t parse(const char *text)
{
    struct err err = { 0 };
    int64_t moment = 0;

    if (moment_parse(str_of(text), now, &moment, &err) < 0)
        fail_msg("%s", err.text);
    return moment;
}

TEST(the_forms_of_sacct_are_read_in_the_local_zone)
{
    static const struct {
        const char *text;
        int64_t utc; /* in Berlin, two hours before UTC in summer */
    } rows[] = {
        { "2026-10-01", 1790812800 - 7200 },
        { "2026-10", 1790812800 - 7200 },
        { "2026-10-01T12:00", 1790812800 + 36000 },
        { " 2026-10-01T12:00:30 ", 1790812800 + 36030 },
        { "2026-10-01 12:00", 1790812800 + 36000 },
        { "2026-10-01T24:00", 1790812800 + 86400 - 7200 },
        { "2026-10-01T12:00Z", 1790812800 + 43200 },
        { "2026-10-01T12:00:00+02:00", 1790812800 + 36000 },
        { "2026-10-01T12:00-0330", 1790812800 + 43200 + 12600 },
        { "2026-10-01T12:00+14", 1790812800 + 43200 - 14 * 3600 },
        { "now", 1792070055 },
        { "now-1day", 1792070055 - 86400 },
        { "NOW-2weeks", 1792070055 - 14 * 86400 },
        { "now+90", 1792070055 + 90 },
        { "now-3h", 1792070055 - 10800 },
        { "now-5minutes", 1792070055 - 300 },
        { "today", 1792022400 - 7200 },
        { "midnight", 1792022400 - 7200 },
        { "yesterday", 1792022400 - 7200 - 86400 },
        { "tomorrow", 1792022400 - 7200 + 86400 },
        { "noon", 1792022400 - 7200 + 43200 },
        { "teatime", 1792022400 - 7200 + 57600 },
        { "08:30", 1792022400 - 7200 + 30600 },
        { "08:30:01", 1792022400 - 7200 + 30601 },
        { "@1790812800", 1790812800 },
        { "1790812800", 1790812800 },
    };

    use_zone("Europe/Berlin");
    for (size_t i = 0; i < COUNT(rows); i++)
        if (parse(rows[i].text) != rows[i].utc)
            fail_msg("%s: got %lld, expected %lld", rows[i].text, (long long)parse(rows[i].text),
                     (long long)rows[i].utc);
}

TEST(what_is_no_time_is_refused)
{
    static const char *const texts[] = {
        "",
        "yester",
        "2026-13-01",
        "2026-02-29",
        "2026-1-1",
        "26-01-01",
        "2026-10-01T",
        "25:00",
        "2026-10-01T12:60",
        "now-",
        "now-1year",
        "now--1",
        "now 1day",
        "2026-10-01T12:00X",
        "2026-10-01T24:01",
        "@",
        "@-5",
        "@0",
        "20261001",
        "2026-10-01T12:00+99:00",
        "now-99999999999999999999days",
        "now+9999999999days",
        "2026-10-01-12:00",
    };
    struct err err = { 0 };
    int64_t moment = 42;

    use_zone("UTC");
    for (size_t i = 0; i < COUNT(texts); i++)
        if (moment_parse(str_of(texts[i]), now, &moment, &err) != -EINVAL)
            fail_msg("\"%s\" is taken for %lld", texts[i], (long long)moment);
    assert_int_equal(moment, 42);
    moment_parse(STR("never\n"), now, &moment, &err);
    assert_contains(err.text, "\"never\\n\" is no time; write one like 2026-10-01");
}

/* In Berlin clocks went from 02:00 to 03:00 on 2026-03-29 (01:00Z), and back from 03:00 to 02:00 on
 * 2026-10-25 (01:00Z); in Dublin it is winter that has the other time by law. */
TEST(a_change_of_clocks_leaves_no_doubt)
{
    use_zone("Europe/Berlin");
    assert_int_equal(parse("2026-03-29T01:59:59"), 1774745999);
    assert_int_equal(parse("2026-03-29T03:00"), 1774746000);
    assert_int_equal(parse("2026-03-29T02:30"), 1774746000 + 1800);
    assert_int_equal(parse("2026-10-25T01:59:59"), 1792886399);
    assert_int_equal(parse("2026-10-25T02:00"), 1792886400);
    assert_int_equal(parse("2026-10-25T02:30"), 1792886400 + 1800);
    assert_int_equal(parse("2026-10-25T03:00"), 1792886400 + 7200);
    /* That day has 25 hours. */
    assert_int_equal(parse("2026-10-26") - parse("2026-10-25"), 25 * 3600);
    use_zone("Europe/Dublin");
    assert_int_equal(parse("2026-10-25T01:30"), 1792886400 + 1800);
    use_zone("America/St_Johns");
    assert_int_equal(parse("2026-10-01"), 1790812800 + 9000);
    /* Midnight did not come there. */
    use_zone("America/Santiago");
    assert_int_equal(parse("2026-09-06"), parse("2026-09-06T01:00"));
}

TEST(a_day_from_now_is_counted_in_days_of_the_calendar)
{
    struct err err = { 0 };
    int64_t yesterday, today;

    use_zone("Europe/Berlin");
    /* At noon of the day after clocks were put back. */
    assert_int_equal(moment_parse(STR("yesterday"), 1792886400 + 35 * 3600, &yesterday, &err), 0);
    assert_int_equal(moment_parse(STR("today"), 1792886400 + 35 * 3600, &today, &err), 0);
    assert_int_equal(today - yesterday, 25 * 3600);
}

TEST(moments_are_shown_in_the_local_zone)
{
    struct buf out;

    buf_init(&out, 100);
    use_zone("Europe/Berlin");
    moment_put(&out, 1792886399);
    buf_byte(&out, ' ');
    moment_put_zoned(&out, 1792886399 + 3601);
    buf_byte(&out, ' ');
    use_zone("America/St_Johns");
    moment_put_zoned(&out, 1790812800);
    assert_str(buf_str(&out),
               "2026-10-25T01:59:59 2026-10-25T02:00:00+01:00 2026-09-30T21:30:00-02:30");
    buf_free(&out);
}
