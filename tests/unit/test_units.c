/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/units: Slurm's amounts and durations. */
#include "test.h"

#include "model/units.h"

#include <locale.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

TEST(memory_is_read_exactly_and_says_per_what)
{
    static const struct {
        const char *text;
        uint64_t unit, bytes;
        char per;
    } rows[] = {
        { "0", 1, 0, 0 },
        { "4000", 1, 4000, 0 },
        { "4000", MIB, 4000 * MIB, 0 },
        { "32000M", 1, 32000 * MIB, 0 },
        { "32000M", MIB, 32000 * MIB, 0 },
        { "512K", 1, 512 * 1024, 0 },
        { "1.50G", 1, GIB + GIB / 2, 0 },
        { "2.5T", 1, 2 * TIB + TIB / 2, 0 },
        { "3P", 1, 3 * 1024 * TIB, 0 },
        { "15E", 1, 15 * 1024 * 1024 * TIB, 0 },
        { "150Mc", 1, 150 * MIB, 'c' },
        { "4Gn", 1, 4 * GIB, 'n' },
        { "0n", 1, 0, 'n' },
        { "0.1K", 1, 102, 0 }, /* 102.4 */
        { "0.9999999999999999999999999K", 1, 1024, 0 },
        { "9007199254740993", 1, UINT64_C(9007199254740993), 0 }, /* 2^53 + 1 */
        { "18446744073709551615", 1, UINT64_MAX, 0 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t bytes = 1;
        char per = '?';

        if (!units_memory(str_of(rows[i].text), rows[i].unit, &bytes, &per))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(bytes, rows[i].bytes);
        assert_int_equal(per, rows[i].per);
        assert_true(units_memory(str_of(rows[i].text), rows[i].unit, &bytes, NULL));
    }
}

TEST(what_is_no_memory_is_refused_and_nothing_written)
{
    static const char *const texts[] = {
        "",
        "N/A",
        "(null)",
        "M",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.",
        ".5G",
        "1.G",
        "1..2",
        "1e3",
        "4GB",
        "4GiB",
        "16?",
        "4g",
        "4Gx",
        "4Gcc",
        "0x10",
        "1,5G",
        "inf",
        "nan",
        "16E",
        "18446744073709551616",
        "18014398509481984K",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        uint64_t bytes = 77;
        char per = 'x';

        if (units_memory(str_of(texts[i]), 1, &bytes, &per))
            fail_msg("\"%s\" was read as %llu", texts[i], (unsigned long long)bytes);
        assert_int_equal(bytes, 77);
        assert_int_equal(per, 'x');
    }
    assert_false(units_memory((struct str){ NULL, 0 }, 1, &(uint64_t){ 0 }, NULL));
    assert_false(units_memory(STR("18446744073709551615"), 2, &(uint64_t){ 0 }, NULL));
}

TEST(the_locale_does_not_matter)
{
    uint64_t bytes;
    double seconds;

    setlocale(LC_ALL, "de_DE.UTF-8"); /* "1,5" where it exists; nothing to see where it does not */
    assert_true(units_memory(STR("1.50K"), 1, &bytes, NULL));
    assert_int_equal(bytes, 1536);
    assert_true(units_elapsed(STR("00:01.500"), &seconds));
    assert_true(seconds == 1.5);
    setlocale(LC_ALL, "C");
}

TEST(a_time_limit_is_in_seconds)
{
    static const struct {
        const char *text;
        uint64_t seconds;
    } rows[] = {
        { "1-02:03:04", 93784 },
        { "02:03:04", 7384 },
        { "2:03:04", 7384 },
        { "03:04", 184 },
        { "5:00", 300 },
        { "0:00", 0 },
        { "45", 45 * 60 },
        { "1-00:00:00", 86400 },
        { "1-02", 93600 },
        { "1-02:03", 93780 },
        { "365-00:00:00", 31536000 },
        { "120:00", 7200 },
        { "100:00:00", 360000 },
        { "UNLIMITED", UNITS_UNLIMITED },
        { "infinite", UNITS_UNLIMITED },
        { "INFINITE", UNITS_UNLIMITED },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t seconds;

        if (!units_time_limit(str_of(rows[i].text), &seconds))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(seconds, rows[i].seconds);
    }
}

TEST(what_is_no_time_limit_is_refused)
{
    static const char *const texts[] = {
        "",
        "NOT_SET",
        "Partition_Limit",
        "INVALID",
        "N/A",
        "-1",
        "1-",
        "1:",
        ":1",
        "1:2:3:4",
        "1-1:2:3:4",
        "00:60",
        "00:60:00",
        "1-24",
        "1--2",
        "1.5",
        "00:01.500",
        "1 2",
        "18446744073709551615",
        "999999999999999999-00:00:00",
        "UNLIMITED ",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        uint64_t seconds = 77;

        if (units_time_limit(str_of(texts[i]), &seconds))
            fail_msg("\"%s\" was read as %llu", texts[i], (unsigned long long)seconds);
        assert_int_equal(seconds, 77);
    }
    assert_false(units_time_limit((struct str){ NULL, 0 }, &(uint64_t){ 0 }));
}

TEST(elapsed_time_counts_seconds_and_may_have_a_fraction)
{
    double seconds = 0;

    assert_true(units_elapsed(STR("45"), &seconds) && seconds == 45);
    assert_true(units_elapsed(STR("01:02.345"), &seconds) && seconds == 62.345);
    assert_true(units_elapsed(STR("1-02:03:04"), &seconds) && seconds == 93784);
    assert_true(units_elapsed(STR("2-00:00:01.250"), &seconds) && seconds == 172801.25);
    assert_true(units_elapsed(STR("00:00.000"), &seconds) && seconds == 0);
    assert_true(units_elapsed(STR("12.5"), &seconds) && seconds == 12.5);
    seconds = 77;
    assert_false(units_elapsed(STR(""), &seconds));
    assert_false(units_elapsed(STR("UNLIMITED"), &seconds));
    assert_false(units_elapsed(STR("INVALID"), &seconds));
    assert_false(units_elapsed(STR("01:02."), &seconds));
    assert_false(units_elapsed(STR("01.5:02"), &seconds));
    assert_false(units_elapsed(STR(".5"), &seconds));
    assert_false(units_elapsed(STR("1.2.3"), &seconds));
    assert_true(seconds == 77);
}

TEST(a_timestamp_is_utc_seconds_or_iso)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        { "1794767119", 1794767119 },
        { "0", 0 },
        { "1970-01-01T00:00:00", 0 },
        { "2026-11-15T20:24:05", 1794774245 },
        { "2000-02-29T12:00:00", 951825600 },
        { "2000-03-01T00:00:00", 951868800 },
        { "2100-03-01T00:00:00", INT64_C(4107542400) },
        { "2024-12-31T23:59:60", 1735689600 },
        { "9999-12-31T23:59:59", INT64_C(253402300799) },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t seconds;

        if (!units_timestamp(str_of(rows[i].text), &seconds))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(seconds, rows[i].seconds);
    }
}

TEST(what_is_no_timestamp_is_refused)
{
    static const char *const texts[] = {
        "",
        "N/A",
        "Unknown",
        "NONE",
        "(null)",
        "-1",
        "2026-11-15",
        "2026-11-15 20:24:05",
        "2026-13-01T00:00:00",
        "2026-00-01T00:00:00",
        "2026-02-29T00:00:00",
        "2100-02-29T00:00:00",
        "2026-04-31T00:00:00",
        "2026-11-15T24:00:00",
        "2026-11-15T20:60:00",
        "2026-11-15T20:24:61",
        "2026-11-15T20:24:05Z",
        "1969-12-31T23:59:59",
        "9223372036854775808",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        int64_t seconds = 77;

        if (units_timestamp(str_of(texts[i]), &seconds))
            fail_msg("\"%s\" was read as %lld", texts[i], (long long)seconds);
        assert_int_equal(seconds, 77);
    }
}

TEST(each_day_of_four_centuries_follows_the_one_before)
{
    static const int days_in_month[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t expected = 0;

    for (int year = 1970; year < 2400; year++) {
        bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        for (int month = 1; month <= 12; month++) {
            int days = days_in_month[month - 1] + (month == 2 && is_leap);

            for (int day = 1; day <= days; day++, expected += 86400) {
                char text[64];
                int64_t seconds;

                snprintf(text, sizeof(text), "%04d-%02d-%02dT00:00:00", year, month, day);
                assert_true(units_timestamp(str_of(text), &seconds));
                assert_int_equal(seconds, expected);
            }
        }
    }
}

TEST(a_count_may_be_shortened_by_powers_of_1024)
{
    uint64_t count = 77;

    assert_false(units_count(STR(""), &count));
    assert_false(units_count(STR("64+"), &count));
    assert_false(units_count(STR("N/A"), &count));
    assert_false(units_count(STR("1Kc"), &count));
    assert_false(units_count(STR("18446744073709551616"), &count));
    assert_int_equal(count, 77);
    assert_true(units_count(STR("8"), &count));
    assert_int_equal(count, 8);
    assert_true(units_count(STR("1.50K"), &count));
    assert_int_equal(count, 1536);
    assert_true(units_count(STR("1.5K"), &count));
    assert_int_equal(count, 1536);
    assert_true(units_count(STR("12M"), &count));
    assert_int_equal(count, 12 * MIB);
}

TEST(aiot_has_four_numbers)
{
    static const char *const bad[] = {
        "",       "1",       "1/2/3",    "1/2/3/4/5", "1/2/3/",
        "1//3/4", "a/2/3/4", "1/2/3/4 ", "-1/2/3/4",  "1/2/3/18446744073709551616"
    };
    uint64_t counts[4] = { 7, 7, 7, 7 };

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(units_aiot(str_of(bad[i]), counts));
        assert_int_equal(counts[0], 7);
    }
    assert_true(units_aiot(STR("4/28/0/32"), counts));
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[1], 28);
    assert_int_equal(counts[2], 0);
    assert_int_equal(counts[3], 32);
}

TEST(array_tasks_are_counted)
{
    static const struct {
        const char *text;
        uint64_t count;
    } rows[] = {
        { "7", 1 },
        { "0", 1 },
        { "1-19%1", 19 },
        { "0-15:4%2", 4 },
        { "1,3,5-9", 7 },
        { "0-16:4", 5 },
        { "1,3,5%10", 3 },
        { "5-5", 1 },
        { "0-100000", 100001 },
        { "1-3,7-20:2", 10 },
        { "0-18446744073709551614", UINT64_MAX },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t count;

        if (!units_array_tasks(str_of(rows[i].text), &count))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(count, rows[i].count);
    }
}

TEST(a_task_list_that_is_cut_short_has_no_count)
{
    static const char *const texts[] = {
        "",
        "N/A",
        "1,3,...",
        "1-5,...",
        "1,3,..",
        "5-1",
        "1-",
        "-1",
        "1,,2",
        "1,",
        ",1",
        "1:2",
        "1-5:0",
        "1-5:",
        "1-5%",
        "1%x",
        "0x1FF",
        "1-2-3",
        "%5",
        "[1-5]",
        "0-18446744073709551615",
        "0-18446744073709551614,1",
        "1-5:2:3",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        uint64_t count = 77;

        if (units_array_tasks(str_of(texts[i]), &count))
            fail_msg("\"%s\" was counted as %llu", texts[i], (unsigned long long)count);
        assert_int_equal(count, 77);
    }
    assert_false(units_array_tasks((struct str){ NULL, 0 }, &(uint64_t){ 0 }));
}

TEST(slurms_words_for_nothing_are_known)
{
    static const char *const absent[] = { "",     "N/A",     "n/a",     "(null)",  "none",   "None",
                                          "NONE", "Unknown", "UNKNOWN", "NOT_SET", "INVALID" };
    static const char *const present[] = { "0", "null", "(none)", "nobody", " ", "N/A " };

    for (size_t i = 0; i < COUNT(absent); i++)
        assert_true(units_absent(str_of(absent[i])));
    for (size_t i = 0; i < COUNT(present); i++)
        assert_false(units_absent(str_of(present[i])));
}
