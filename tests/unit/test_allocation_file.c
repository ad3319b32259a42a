/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of allocations: what it may say, and that a mistake is named with its line. */
#include "test.h"

#include "base/buf.h"
#include "files.h"
#include "source/allocation_file.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static struct arena arena;
static struct allocation_list list;
static struct err err;
static char path[64];

/* As a file; what messages call it is in `path`. */
static int read_text(struct str text)
{
    int fd = memfd_create("allocations", MFD_CLOEXEC);
    int code;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.n), text.n);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    list = (struct allocation_list){ 0 };
    err = (struct err){ 0 };
    code = allocation_file_read(path, &arena, &list, &err);
    close(fd);
    return code;
}

static void read_well(const char *text)
{
    if (read_text(str_of(text)) < 0)
        fail_msg("%s", err.text);
}

/* The sentence must begin with the file and this line, and hold this. */
static void assert_refused(const char *text, unsigned line, const char *why)
{
    char begin[100];

    assert_int_equal(read_text(str_of(text)), -EINVAL);
    assert_int_equal(err.code, EINVAL);
    assert_int_equal(list.n, 0);
    snprintf(begin, sizeof(begin), "%s:%u: ", path, line);
    if (!str_starts(str_of(err.text), str_of(begin)))
        fail_msg("\"%s\" does not begin with \"%s\"", err.text, begin);
    assert_contains(err.text, why);
}

static void tear_down(void)
{
    arena_clear(&arena);
}

PROGRAM_FIXTURE(NULL, tear_down)

/* One account of one cluster with these members. */
static const char *entry(const char *members)
{
    static char text[500];

    snprintf(text, sizeof(text), "clusters: {c: {a: {%s}}}", members);
    return text;
}

TEST(all_that_can_be_said_is_read)
{
    read_well("clusters:\n"
              "  cedar:\n"
              "    def-anna:\n"
              "      gpu_years: 12.5\n"
              "      cpu_years: 1e3\n"
              "      storage: 10TB\n"
              "      students: 14\n"
              "      from: 2026-04-01\n"
              "      to: \"2027-04-01\"\n"
              "      includes: [def-bert, rrg-anna]\n");
    assert_int_equal(list.n, 1);
    assert_str(list.entry[0].cluster, "cedar");
    assert_str(list.entry[0].account, "def-anna");
    assert_true(list.entry[0].gpu_years == 12.5);
    assert_true(list.entry[0].cpu_years == 1000);
    assert_true(list.entry[0].storage_bytes == 1e13);
    assert_true(list.entry[0].students == 14);
    assert_int_equal(list.entry[0].from, 1775001600);
    assert_int_equal(list.entry[0].to, 1806537600);
    assert_int_equal(list.entry[0].n_includes, 2);
    assert_str(list.entry[0].includes[0], "def-bert");
    assert_str(list.entry[0].includes[1], "rrg-anna");
    assert_int_equal(list.entry[0].line, 3);
}

TEST(the_example_is_read)
{
    if (allocation_file_read(source_path("packaging/examples/allocations.yml"), &arena, &list,
                             &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(list.n, 4);
    assert_str(list.entry[2].includes[0], "rrg-anna-ad");
}

TEST(what_is_not_said_is_unknown)
{
    read_well(entry("students: 3"));
    assert_true(isnan(list.entry[0].gpu_years));
    assert_true(isnan(list.entry[0].cpu_years));
    assert_true(isnan(list.entry[0].storage_bytes));
    assert_int_equal(list.entry[0].from, 0);
    assert_int_equal(list.entry[0].to, 0);
    assert_int_equal(list.entry[0].n_includes, 0);
}

TEST(an_empty_file_promises_nothing)
{
    read_well("");
    assert_int_equal(list.n, 0);
    read_well("clusters:\n");
    assert_int_equal(list.n, 0);
    read_well("clusters:\n  mila:\n  cedar: {}\n");
    assert_int_equal(list.n, 0);
}

TEST(periods_of_one_account_come_in_the_order_of_time)
{
    read_well("clusters:\n"
              "  c:\n"
              "    a:\n"
              "      - {gpu_years: 2, from: 2027-04-01, to: 2028-04-01}\n"
              "      - {gpu_years: 1, from: 2026-04-01, to: 2027-04-01}\n"
              "    b: {gpu_years: 3}\n"
              "  d:\n"
              "    a: {gpu_years: 4}\n");
    assert_int_equal(list.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(list.entry[i].gpu_years == (double)(i + 1));
    assert_str(list.entry[3].cluster, "d");
}

TEST(an_account_may_be_called_anything)
{
    read_well("clusters: {c: {\"a \\\"b\\\"\\n{}\": {students: 1}, 'é=,': {students: 2}, 007: "
              "{students: 3}, clusters: {students: 4}}}");
    assert_int_equal(list.n, 4);
    assert_str(list.entry[0].account, "a \"b\"\n{}");
    assert_str(list.entry[1].account, "é=,");
    assert_str(list.entry[2].account, "007");
    assert_str(list.entry[3].account, "clusters");
}

TEST(storage_has_decimal_and_binary_units)
{
    static const struct {
        const char *text;
        double bytes;
    } cases[] = {
        { "storage: 4096", 4096 },
        { "storage: 4096 B", 4096 },
        { "storage: 1.5kB", 1500 },
        { "storage: 10 TB", 1e13 },
        { "storage: 1tb", 1e12 },
        { "storage: 1TiB", 1099511627776. },
        { "storage: 1.5 TiB", 1649267441664. },
        { "storage: 2PB", 2e15 },
        { "storage: 0", 0 },
        { "storage: 1000EB", 1e21 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        read_well(entry(cases[i].text));
        if (list.entry[0].storage_bytes != cases[i].bytes)
            fail_msg("%s is read as %f", cases[i].text, list.entry[0].storage_bytes);
    }
}

TEST(days_begin_at_midnight_utc)
{
    setenv("TZ", "America/Montreal", 1);
    tzset();
    read_well(entry("students: 1, from: 2028-02-29, to: 2028-03-01"));
    assert_int_equal(list.entry[0].from, 1835395200);
    assert_int_equal(list.entry[0].to - list.entry[0].from, 24 * 3600);
    unsetenv("TZ");
    tzset();
}

TEST(a_wrong_value_is_refused_with_its_line)
{
    static const struct {
        const char *member, *why;
    } cases[] = {
        { "gpu_years: -1", "gpu_years is a number from 0 to 100000000" },
        { "gpu_years: nan", "\"nan\" is not" },
        { "gpu_years: inf", "\"inf\" is not" },
        { "gpu_years: 1e9", "\"1e9\" is not" },
        { "gpu_years: 1e999", "\"1e999\" is not" },
        { "gpu_years: 0x10", "\"0x10\" is not" },
        { "gpu_years: many", "\"many\" is not" },
        { "gpu_years: \"\"", "\"\" is not" },
        { "gpu_years: ~", "gpu_years has no value" },
        { "gpu_years: [1]", "gpu_years is one value" },
        { "gpu_years: {a: 1}", "gpu_years is one value" },
        { "cpu_years: -0.1", "cpu_years is a number" },
        { "students: 1.5", "students is a whole number from 0 to 1000000" },
        { "students: -1", "\"-1\" is not" },
        { "students: 1000001", "is not" },
        { "storage: 10T", "\"10T\" is not" },
        { "storage: TB", "\"TB\" is not" },
        { "storage: -1TB", "\"-1TB\" is not" },
        { "storage: 1e3TB", "\"1e3TB\" is not" },
        { "storage: 1.2.3TB", "is not" },
        { "storage: 1001EB", "storage is at most 1000 EB" },
        { "from: 2026-02-29", "\"2026-02-29\" is not" },
        { "from: 2026-13-01", "is not" },
        { "from: 2026-00-10", "is not" },
        { "from: 2026-01-00", "is not" },
        { "from: 2026-1-1", "as YYYY-MM-DD" },
        { "from: 20260101", "is not" },
        { "from: 2026-01-01T00:00", "is not" },
        { "from: 1999-12-31", "from 2000-01-01 on" },
        { "to: tomorrow", "to is a day" },
        { "includes: b", "includes is a list" },
        { "includes: {b: 1}", "includes is a list" },
        { "includes: [[b]]", "includes is a list" },
        { "includes: [\"\"]", "1 to 255 bytes" },
        { "includes: [a]", "account a is already counted" },
        { "includes: [b, c, b]", "account b is already counted" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[300];

        snprintf(text, sizeof(text), "clusters:\n  c:\n    a:\n      %s\n", cases[i].member);
        assert_refused(text, 4, cases[i].why);
    }
}

TEST(an_unknown_key_is_refused_with_the_one_that_was_meant)
{
    assert_refused("clusters:\n  c:\n    a:\n      gpu_year: 1\n", 4,
                   "unknown key gpu_year; did you mean gpu_years?");
    assert_refused("clusters:\n  c:\n    a:\n      form: 2026-01-01\n", 4, "did you mean from?");
    assert_refused("clusters:\n  c:\n    a:\n      price: 1\n", 4,
                   "there are gpu_years, cpu_years");
    assert_refused("\ncluster: {}\n", 2, "unknown key cluster; did you mean clusters?");
}

TEST(what_is_not_of_that_shape_is_refused)
{
    assert_refused("[1]", 1, "the file is a mapping");
    assert_refused("clusters: [a]", 1, "clusters is a mapping");
    assert_refused("clusters:\n  c: 1\n", 2, "cluster c is a mapping");
    assert_refused("clusters:\n  c:\n    a: 1\n", 3, "account a has one mapping");
    assert_refused("clusters:\n  c:\n    a: []\n", 3, "account a has one mapping");
    assert_refused("clusters:\n  c:\n    a:\n", 3, "account a is given nothing");
    assert_refused("clusters:\n  c:\n    a:\n    - {students: 1}\n    - 7\n", 5, "one mapping");
    assert_refused("clusters:\n  c:\n    a: {from: 2026-01-01, to: 2027-01-01}\n", 3,
                   "account a is given nothing");
}

TEST(a_period_has_both_ends_and_they_are_in_order)
{
    assert_refused(entry("students: 1, from: 2026-01-01"), 1, "from is there without to");
    assert_refused(entry("students: 1, to: 2026-01-01"), 1, "to is there without from");
    assert_refused(entry("students: 1, from: 2026-01-01, to: 2026-01-01"), 1, "later than from");
    assert_refused(entry("students: 1, from: 2026-01-02, to: 2026-01-01"), 1, "later than from");
}

TEST(periods_of_one_account_must_not_overlap)
{
    assert_refused("clusters:\n"
                   "  c:\n"
                   "    a:\n"
                   "      - {students: 1, from: 2026-01-01, to: 2027-01-01}\n"
                   "      - {students: 2, from: 2028-01-01, to: 2029-01-01}\n"
                   "      - {students: 3, from: 2026-12-31, to: 2028-01-01}\n",
                   6, "account a overlaps that of line 4");
    assert_refused("clusters:\n"
                   "  c:\n"
                   "    a:\n"
                   "      - {students: 1, from: 2026-01-01, to: 2027-01-01}\n"
                   "      - {students: 2}\n",
                   5, "overlaps that of line 4");
    assert_refused("clusters:\n"
                   "  c:\n"
                   "    a:\n"
                   "      - {students: 1}\n"
                   "      - {students: 2}\n",
                   5, "overlaps that of line 4");
}

TEST(names_and_lists_have_ceilings)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text, "clusters: {c: {%0256d: {students: 1}}}", 0);
    assert_refused(text.p, 1, "1 to 255 bytes");
    buf_reset(&text);
    buf_text(&text, "clusters: {c: {a: {students: 1, includes: [");
    for (unsigned i = 0; i <= 1000; i++)
        buf_printf(&text, "x%u, ", i);
    buf_text(&text, "]}}}");
    assert_refused(text.p, 1, "more than 1000 accounts are included");
    buf_reset(&text);
    buf_text(&text, "clusters: {c: {");
    for (unsigned i = 0; i <= 10000; i++)
        buf_printf(&text, "a%u: {students: 1}, ", i);
    buf_text(&text, "}}");
    assert_false(text.over);
    assert_refused(text.p, 1, "more than 10000 allocations");
    buf_free(&text);
}

TEST(what_is_no_yaml_or_no_file_is_refused)
{
    assert_int_equal(read_text(STR("clusters: [")), -EINVAL);
    assert_int_equal(read_text(STR("clusters: {c: {a: {students: 1}, a: {students: 2}}}")),
                     -EINVAL);
    assert_contains(err.text, "already given");
    assert_int_equal(allocation_file_read("/nonexistent/file", &arena, &list, &err), -EINVAL);
    assert_contains(err.text, "/nonexistent/file");
}

TEST(an_entry_holds_from_its_first_second_to_before_its_last)
{
    const struct allocation_entry *of;

    read_well(entry("students: 1, from: 2026-01-01, to: 2027-01-01"));
    of = &list.entry[0];
    assert_false(allocation_entry_holds(of, of->from - 1));
    assert_true(allocation_entry_holds(of, of->from));
    assert_true(allocation_entry_holds(of, of->to - 1));
    assert_false(allocation_entry_holds(of, of->to));
    read_well(entry("students: 1"));
    assert_true(allocation_entry_holds(&list.entry[0], 0));
    assert_true(allocation_entry_holds(&list.entry[0], INT64_MAX));
}

TEST(years_are_promised_in_seconds)
{
    struct allocation of;

    read_well(entry("gpu_years: 2, storage: 1, from: 2026-01-01, to: 2027-01-01"));
    of = allocation_entry_promise(&list.entry[0]);
    assert_true(of.seconds[ALLOCATION_GPUS] == 2. * ALLOCATION_YEAR_SECONDS);
    assert_true(isnan(of.seconds[ALLOCATION_CPUS]));
    assert_true(isnan(of.used[ALLOCATION_GPUS]) && isnan(of.rate[ALLOCATION_GPUS]));
    assert_true(of.storage_bytes == 1 && isnan(of.students));
    assert_int_equal(of.from, list.entry[0].from);
    assert_int_equal(of.to, list.entry[0].to);
}
