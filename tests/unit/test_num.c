/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/num: numbers as text. */
#include "test.h"

#include "base/num.h"

#include <locale.h>
#include <math.h>

static struct str text_of(char to[NUM_DOUBLE_MAX + 1], double value)
{
    size_t n = num_put_double(to, value);

    assert_in_range(n, 1, NUM_DOUBLE_MAX);
    to[n] = '\0';
    return (struct str){ to, n };
}

TEST(doubles_have_the_expected_spelling)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -1, "-1" },
        { 0.1, "0.1" },
        { 0.5, "0.5" },
        { 1.0 / 3, "0.3333333333333333" },
        { -2.5, "-2.5" },
        { 100, "100" },
        { 123456789.125, "123456789.125" },
        { 9007199254740991.0, "9007199254740991" },
        { 9007199254740992.0, "9007199254740992" },
        { 9007199254740994.0, "9007199254740994" },
        { 1e15, "1000000000000000" },
        { 1e20, "100000000000000000000" },
        { 123456789012345680000.0, "123456789012345680000" },
        { 1e21, "1e+21" },
        { 1.5e21, "1.5e+21" },
        { 1e22, "1e+22" },
        { 1e23, "1e+23" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 0.000001, "0.000001" },
        { 0.0000015, "0.0000015" },
        { 1e-7, "1e-7" },
        { 1.25e-7, "1.25e-7" },
        { 5e-324, "5e-324" },
        { -5e-324, "-5e-324" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 2.225073858507201e-308, "2.225073858507201e-308" }, /* the largest subnormal */
        { 9.5367431640625e-7, "9.5367431640625e-7" },         /* 2^-20 */
        { INFINITY, "+Inf" },
        { -INFINITY, "-Inf" },
        { NAN, "NaN" },
        { -NAN, "NaN" },
    };
    char text[NUM_DOUBLE_MAX + 1];

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_str(text_of(text, rows[i].value), rows[i].text);
}

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators". */
static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void assert_reads_back(double value)
{
    char text[NUM_DOUBLE_MAX + 1];
    double again;

    text_of(text, value);
    again = strtod(text, NULL);
    if (memcmp(&again, &value, sizeof(value)) != 0)
        fail_msg("%a was written as %s, which is %a", value, text, again);
}

static size_t significant_digits(const char *text)
{
    size_t n = 0, zeros = 0;

    for (; *text && *text != 'e'; text++) {
        if (*text == '-' || *text == '.' || (*text == '0' && n == 0))
            continue;
        n++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

/* With one digit less no value reads back, and with as many none is nearer. */
static void assert_is_shortest(double value)
{
    char text[NUM_DOUBLE_MAX + 1], other[400];
    int digits;

    text_of(text, value);
    digits = (int)significant_digits(text);
    snprintf(other, sizeof(other), "%.*g", digits - 1, value);
    if (digits > 1 && strtod(other, NULL) == value)
        fail_msg("%s is longer than %s", text, other);
    snprintf(other, sizeof(other), "%.*g", digits, value);
    if (strtod(other, NULL) == value &&
        fabsl(strtold(text, NULL) - value) > fabsl(strtold(other, NULL) - value))
        fail_msg("%s is less near than %s", text, other);
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

TEST(a_million_doubles_read_back_and_are_shortest)
{
    uint64_t seed = 1;

    for (int i = 0; i < 1000000; i++) {
        uint64_t bits = next_random(&seed);
        double value;

        switch (i % 4) {
        case 0: /* any bits */
            value = double_of(bits);
            break;
        case 1: /* a subnormal */
            value = double_of(bits >> 12 >> bits % 52);
            break;
        case 2: /* few decimals, as loads and ratios have */
            value = (double)(bits >> 40) / 100;
            break;
        default: /* an everyday size */
            value = ldexp((double)(bits >> 11), (int)(bits % 100) - 80);
        }
        if (!isfinite(value))
            continue;
        assert_reads_back(value);
        if (i % 64 < 4 && value != 0)
            assert_is_shortest(value);
    }
}

TEST(all_powers_of_two_and_their_neighbours_read_back)
{
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        double value = ldexp(1, exponent);

        assert_reads_back(value);
        assert_reads_back(-value);
        assert_reads_back(nextafter(value, 0));
        assert_reads_back(nextafter(value, INFINITY));
        assert_is_shortest(nextafter(value, INFINITY));
    }
    for (int exponent = -323; exponent <= 308; exponent++) {
        char text[16];

        snprintf(text, sizeof(text), "1e%d", exponent);
        assert_reads_back(strtod(text, NULL));
        assert_is_shortest(strtod(text, NULL));
    }
}

TEST(whole_numbers_are_written_and_read_up_to_their_limits)
{
    static const uint64_t numbers[] = { 0,          1,         9,         10,
                                        99,         100,       999,       1000,
                                        9999,       10000,     65535,     99999,
                                        UINT32_MAX, 100000000, INT64_MAX, UINT64_MAX - 1,
                                        UINT64_MAX };
    char text[NUM_U64_MAX + 1], expected[32];
    uint64_t number, ten = 1;

    for (size_t i = 0; i < COUNT(numbers); i++) {
        text[num_put_u64(text, numbers[i])] = '\0';
        snprintf(expected, sizeof(expected), "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(text, expected);
        assert_true(num_get_u64(str_of(text), &number));
        assert_int_equal(number, numbers[i]);
    }
    for (int i = 0; i < 20; i++, ten *= 10) {
        assert_int_equal(num_put_u64(text, ten), i + 1);
        if (i)
            assert_int_equal(num_put_u64(text, ten - 1), i);
    }
}

TEST(what_is_no_whole_number_is_refused)
{
    static const char *const bad[] = { "",
                                       " 1",
                                       "1 ",
                                       "+1",
                                       "1.0",
                                       "0x1",
                                       "1e3",
                                       "a",
                                       "-",
                                       "--1",
                                       "1,000",
                                       "18446744073709551616",
                                       "99999999999999999999999999" };
    int64_t number = 77;
    uint64_t positive = 77;

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(num_get_u64(str_of(bad[i]), &positive));
        assert_false(num_get_i64(str_of(bad[i]), &number));
    }
    assert_false(num_get_u64(STR("-1"), &positive));
    assert_false(num_get_u64(STR("1\0"), &positive));
    assert_false(num_get_i64(STR("9223372036854775808"), &number));
    assert_false(num_get_i64(STR("-9223372036854775809"), &number));
    assert_int_equal(positive, 77);
    assert_int_equal(number, 77);
    assert_true(num_get_i64(STR("-9223372036854775808"), &number) && number == INT64_MIN);
    assert_true(num_get_i64(STR("9223372036854775807"), &number) && number == INT64_MAX);
    assert_true(num_get_i64(STR("-1"), &number) && number == -1);
    assert_true(num_get_u64(STR("007"), &positive) && positive == 7);
}

TEST(doubles_are_read_whole_and_in_any_locale)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "\t1", "1x", "1,5", "1.5.2", "e5", ".", "-"
    };
    double value = 77;
    char longer[200];

    setlocale(LC_ALL, "de_DE.UTF-8");
    for (size_t i = 0; i < COUNT(bad); i++)
        if (num_get_double(str_of(bad[i]), &value))
            fail_msg("\"%s\" was read as %g", bad[i], value);
    assert_false(num_get_double(STR("1\0"), &value));
    memset(longer, '1', sizeof(longer));
    assert_false(num_get_double((struct str){ longer, sizeof(longer) }, &value));
    assert_true(value == 77);
    assert_true(num_get_double(STR("1.5"), &value) && value == 1.5);
    assert_true(num_get_double(STR("-1e-3"), &value) && value == -1e-3);
    assert_true(num_get_double(STR("inf"), &value) && isinf(value));
    assert_true(num_get_double(STR("nan"), &value) && isnan(value));
    assert_true(num_get_double(str_head(STR("12345"), 2), &value) && value == 12);
    setlocale(LC_ALL, "C");
}

TEST(plain_decimals_are_read_as_exactly_as_any)
{
    static const char *const fixed[] = { "0",
                                         "0.0",
                                         "00.10",
                                         "9007199254740993",
                                         "0.1",
                                         "123.456789",
                                         "9007199254740.99",
                                         "999999999999999",
                                         "1.0000",
                                         "0.000000001" };
    unsigned random = 1;

    for (size_t i = 0; i < 20000 + COUNT(fixed); i++) {
        char text[40];
        double value;

        random = random * 1103515245 + 12345;
        snprintf(text, sizeof(text), "%u.%0*u", random >> (random % 31), (int)(random % 9) + 1,
                 random / 7 % 1000);
        if (i < COUNT(fixed))
            snprintf(text, sizeof(text), "%s", fixed[i]);
        if (!num_get_double(str_of(text), &value) || value != strtod(text, NULL))
            fail_msg("%s was read as %.17g", text, value);
    }
}

TEST(a_double_that_overflows_is_refused)
{
    double value = 77;

    assert_false(num_get_double(STR("1e999"), &value));
    assert_false(num_get_double(STR("-1e999"), &value));
    assert_true(value == 77);
    assert_true(num_get_double(STR("1e-999"), &value) && value == 0);
    assert_true(num_get_double(STR("5e-324"), &value) && value == 5e-324);
}

TEST(durations_add_up_and_a_bare_number_counts_seconds)
{
    static const struct {
        const char *text;
        int64_t ns;
    } rows[] = {
        { "0", 0 },
        { "10", INT64_C(10000000000) },
        { "10s", INT64_C(10000000000) },
        { "1.5", INT64_C(1500000000) },
        { "250ms", 250000000 },
        { "5m", INT64_C(300000000000) },
        { "1h30m", INT64_C(5400000000000) },
        { "1d", INT64_C(86400000000000) },
        { "1w", INT64_C(604800000000000) },
        { "3y", INT64_C(94608000000000000) },
        { "1m500ms", INT64_C(60500000000) },
        { "0.5h", INT64_C(1800000000000) },
        { "4.35s", INT64_C(4350000000) },
    };
    static const char *const bad[] = {
        "",    "s",   "10x",    "10 s", " 10", "-1s", "1h 30m",
        "1s5", "0s5", "1.2.3s", ".",    "1e3", "+1",  "99999999999w"
    };
    int64_t ns = 77;

    for (size_t i = 0; i < COUNT(bad); i++)
        if (num_get_duration_ns(str_of(bad[i]), &ns))
            fail_msg("\"%s\" was read as %lld", bad[i], (long long)ns);
    assert_int_equal(ns, 77);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!num_get_duration_ns(str_of(rows[i].text), &ns))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(ns, rows[i].ns);
    }
}

TEST(bytes_are_exact_and_letters_are_powers_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        { "0", 0 },
        { "512", 512 },
        { "512B", 512 },
        { "64K", 65536 },
        { "64KB", 65536 },
        { "16M", UINT64_C(16) << 20 },
        { "2G", UINT64_C(2) << 30 },
        { "2GiB", UINT64_C(2) << 30 },
        { "1.5G", UINT64_C(3) << 29 },
        { "3T", UINT64_C(3) << 40 },
        { "1P", UINT64_C(1) << 50 },
        { "9007199254740993", UINT64_C(9007199254740993) }, /* 2^53 + 1 */
        { "18446744073709551615", UINT64_MAX },
    };
    static const char *const bad[] = { "",
                                       "K",
                                       "-1",
                                       "1 K",
                                       "1k",
                                       "1iB",
                                       "1KiBx",
                                       "1KK",
                                       "1Z",
                                       "1.2.3",
                                       "18446744073709551616",
                                       "16384P",
                                       "99999P" };
    uint64_t bytes = 77;

    for (size_t i = 0; i < COUNT(bad); i++)
        if (num_get_bytes(str_of(bad[i]), &bytes))
            fail_msg("\"%s\" was read as %llu", bad[i], (unsigned long long)bytes);
    assert_int_equal(bytes, 77);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!num_get_bytes(str_of(rows[i].text), &bytes))
            fail_msg("\"%s\" was not read", rows[i].text);
        assert_int_equal(bytes, rows[i].bytes);
    }
}
