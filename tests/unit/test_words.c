/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of report/words: amounts with units. */
#include "report/words.h"

#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static void assert_words(void (*put)(struct buf *to, double value), double value,
                         const char *expected)
{
    struct buf words;

    buf_init(&words, 256);
    put(&words, value);
    assert_str(buf_str(&words), expected);
    buf_free(&words);
}

static void set_zone(void)
{
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
}

PROGRAM_FIXTURE(set_zone, NULL)

TEST(what_is_no_number_is_no_word)
{
    void (*const all[])(struct buf * to, double value) = { words_bytes,    words_duration,
                                                           words_number,   words_percent,
                                                           words_fraction, words_part };

    for (size_t i = 0; i < COUNT(all); i++) {
        assert_words(all[i], NAN, "");
        assert_words(all[i], INFINITY, "");
        assert_words(all[i], -INFINITY, "");
    }
    assert_words(words_percent, 1e307, "");
}

TEST(bytes_are_in_the_unit_that_reads_best)
{
    assert_words(words_bytes, 0, "0 B");
    assert_words(words_bytes, 1, "1 B");
    assert_words(words_bytes, 1023, "1023 B");
    assert_words(words_bytes, 1024, "1 KiB");
    assert_words(words_bytes, 1024 * 1024 - 1, "1 MiB");
    assert_words(words_bytes, 4.8 * 0x1p30, "4.8 GiB");
    assert_words(words_bytes, 99.96 * 0x1p30, "100 GiB");
    assert_words(words_bytes, 32 * 0x1p30, "32 GiB");
    assert_words(words_bytes, 0x1p60 * 5000, "5000 EiB");
    assert_words(words_bytes, -2048, "-2 KiB");
}

TEST(durations_are_clocks_beyond_a_minute)
{
    assert_words(words_duration, 0, "0 s");
    assert_words(words_duration, 0.25, "0.25 s");
    assert_words(words_duration, 45, "45 s");
    assert_words(words_duration, 59.4, "59 s");
    assert_words(words_duration, 59.6, "00:01:00");
    assert_words(words_duration, 9005, "02:30:05");
    assert_words(words_duration, 86400 + 9005, "1 d 02:30:05");
    assert_words(words_duration, -90, "-00:01:30");
    assert_words(words_duration, 1e300, "11574074074 d 01:46:40");
}

TEST(numbers_have_few_digits_and_groups)
{
    assert_words(words_number, 0, "0");
    assert_words(words_number, 0.04, "0.04");
    assert_words(words_number, 3.2, "3.2");
    assert_words(words_number, 32, "32");
    assert_words(words_number, 99.97, "100");
    assert_words(words_number, 999.6, "1,000");
    assert_words(words_number, 1234567, "1,234,567");
    assert_words(words_number, 1000007, "1,000,007");
    assert_words(words_number, 1.5e300, "1.5e+300");
    assert_words(words_number, -12000, "-12,000");
}

TEST(fractions_have_the_digits_of_sshare)
{
    assert_words(words_fraction, 0.2029, "0.2029");
    assert_words(words_fraction, 0.654, "0.6540");
    assert_words(words_fraction, 0, "0.0000");
    assert_words(words_fraction, 1, "1.0000");
    assert_words(words_fraction, 31250, "31,250");
}

TEST(parts_keep_digits_however_small_they_are)
{
    assert_words(words_part, 0, "0");
    assert_words(words_part, 0.001826, "0.00183");
    assert_words(words_part, 0.25, "0.25");
    assert_words(words_part, 0.018, "0.018");
    assert_words(words_part, 1, "1");
    assert_words(words_part, 3.21, "3.2");
    assert_words(words_part, 1e-300, "0");
    assert_words(words_part, -0.0021, "-0.0021");
}

TEST(what_is_told_as_none_is_known)
{
    assert_true(words_are_none(0.004) && words_are_none(0));
    assert_false(words_are_none(0.006) || words_are_none(NAN));
    assert_words(words_number, 0.004, "0");
    assert_true(words_are_no_percent(0.0004));
    assert_words(words_percent, 0.0004, "0 %");
    assert_false(words_are_no_percent(0.0006));
    assert_words(words_percent, 0.0006, "0.1 %");
}

TEST(percents_are_of_one)
{
    assert_words(words_percent, 0, "0 %");
    assert_words(words_percent, 0.004, "0.4 %");
    assert_words(words_percent, 0.0996, "10 %");
    assert_words(words_percent, 0.32, "32 %");
    assert_words(words_percent, 1.5, "150 %");
}

TEST(times_are_those_of_the_reader)
{
    struct buf words;

    buf_init(&words, 256);
    words_time(&words, 0);
    assert_str(buf_str(&words), "");
    buf_text(&words, "Take ");
    words_time(&words, 1790000000);
    assert_str(buf_str(&words), "Take 2026-09-21 16:13:20");
    buf_free(&words);
}
