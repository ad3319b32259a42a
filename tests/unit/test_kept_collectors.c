/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the collectors ended and allocations say of sections made by hand, sample by sample. */
#include "collected.h"

#include "base/num.h"
#include "metric/convert.h"

#include <math.h>
#include <stdio.h>

enum { CEILING = 20000, ROOM = 3 * CEILING };

static struct section *section;
static struct ended_jobs rows[ROOM];
static struct allocation allocations[4];

static void begin(enum kind kind)
{
    section_unref(section);
    section = section_new(kind);
}

static void tear_down(void)
{
    section = section_unref(section);
}

PROGRAM_FIXTURE(NULL, tear_down)

static symbol put(const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static void add_ended(const char *state, const char *partition, const char *account, uint64_t count)
{
    struct ended *ended = &section->ended;

    assert_true(ended->n < ROOM);
    ended->row = rows;
    rows[ended->n++] = (struct ended_jobs){ put(state), put(partition), put(account), count };
}

TEST(jobs_that_have_ended_are_told_as_they_were_counted)
{
    begin(KIND_ENDED);
    add_ended("COMPLETED", "gpu", "physics", 7);
    add_ended("COMPLETED", "gpu", "chemistry", 2);
    add_ended("FAILED", "cpu", "physics", 1);
    add_ended("CANCELLED", "cpu", "", 3);
    check_family(
        "ended", section, "slurm_jobs_ended_total",
        "slurm_jobs_ended_total{state=\"COMPLETED\",partition=\"gpu\",account=\"physics\"} "
        "7\n"
        "slurm_jobs_ended_total{state=\"COMPLETED\",partition=\"gpu\",account="
        "\"chemistry\"} 2\n"
        "slurm_jobs_ended_total{state=\"FAILED\",partition=\"cpu\",account=\"physics\"} "
        "1\n"
        "slurm_jobs_ended_total{state=\"CANCELLED\",partition=\"cpu\",account=\"\"} 3\n");
}

TEST(the_counter_is_one_in_both_formats)
{
    struct buf open;

    begin(KIND_ENDED);
    add_ended("COMPLETED", "gpu", "physics", 7);
    collect("ended", section, "");
    assert_contains(collected.text.p, "# TYPE slurm_jobs_ended_total counter\n");
    buf_init(&open, 1 << 20);
    metric_convert(collectors[collector_find(STR("ended"))]->families, 1, STR(""),
                   buf_str(&collected.text), METRIC_TEXT, METRIC_OPENMETRICS, &open);
    assert_contains(open.p, "# TYPE slurm_jobs_ended counter\n");
    buf_free(&open);
}

/* Accounts and partitions by number, one row each. */
static void add_crowd(size_t n_accounts, size_t n_partitions)
{
    char account[32], partition[32];

    for (size_t i = 0; i < n_accounts; i++) {
        for (size_t k = 0; k < n_partitions; k++) {
            snprintf(account, sizeof(account), "a%zu", i);
            snprintf(partition, sizeof(partition), "p%zu", k);
            add_ended("COMPLETED", partition, account, i + 1);
        }
    }
}

TEST(up_to_the_ceiling_every_account_is_told)
{
    begin(KIND_ENDED);
    add_crowd(CEILING / 2, 2);
    collect("ended", section, "");
    assert_int_equal(collected.samples, CEILING);
    assert_int_equal(collected.folded, 0);
}

TEST(past_it_accounts_are_added_up_and_partitions_stay_exact)
{
    begin(KIND_ENDED);
    add_crowd(CEILING / 2, 2);
    add_ended("FAILED", "p1", "a0", 5);
    collect("ended", section, "");
    assert_int_equal(collected.samples, 3);
    assert_int_equal(collected.folded, CEILING + 1 - 3);
    check_family("ended", section, "slurm_jobs_ended_total",
                 "slurm_jobs_ended_total{state=\"COMPLETED\",partition=\"p0\",account=\"other\"} "
                 "50005000\n"
                 "slurm_jobs_ended_total{state=\"COMPLETED\",partition=\"p1\",account=\"other\"} "
                 "50005000\n"
                 "slurm_jobs_ended_total{state=\"FAILED\",partition=\"p1\",account=\"other\"} 5\n");
}

TEST(past_it_with_partitions_alone_these_are_added_up_too)
{
    begin(KIND_ENDED);
    add_crowd(1, CEILING + 1);
    add_crowd(2, CEILING / 2 + 1);
    check_family("ended", section, "slurm_jobs_ended_total",
                 "slurm_jobs_ended_total{state=\"COMPLETED\",partition=\"other\",account=\"other\"}"
                 " 50004\n");
}

/* The last of a line is its value. */
static uint64_t value_of(struct str text, struct str series)
{
    uint64_t value = 0;

    while (text.n) {
        struct str line = str_cut(&text, '\n');

        if (str_starts(line, series) && line.n > series.n && line.p[series.n] == ' ')
            assert_true(num_get_u64(str_skip(line, series.n + 1), &value));
    }
    return value;
}

/* Whatever comes, a series that is told before and after has not become smaller. */
static void assert_none_goes_back(struct str before, struct str after)
{
    while (before.n) {
        struct str line = str_cut(&before, '\n'), value = line;
        uint64_t was, is;

        if (line.p[0] == '#')
            continue;
        value = str_skip(line, str_find_str(line, STR("} ")) + 2);
        assert_true(num_get_u64(value, &was));
        is = value_of(after, str_head(line, line.n - value.n - 1));
        if (is && is < was)
            fail_msg("%.*s goes back to %llu", STR_ARG(line), (unsigned long long)is);
    }
}

TEST(no_counter_goes_back_when_the_ceiling_is_passed)
{
    const struct collector *ended = collectors[collector_find(STR("ended"))];
    struct collected before, after;

    begin(KIND_ENDED);
    add_ended("COMPLETED", "p0", "other", 9); /* a real account of that name */
    add_crowd(CEILING - 1, 1);
    before = collect_as(METRIC_TEXT, ended, section);
    for (size_t step = 0; step < 3; step++) {
        add_ended("FAILED", "p0", step ? "a1" : "a0", 1 + step);
        rows[7].count += 100;
        after = collect_as(METRIC_TEXT, ended, section);
        assert_none_goes_back(buf_str(&before.text), buf_str(&after.text));
        buf_free(&before.text);
        before = after;
    }
    buf_free(&before.text);
}

static struct allocation *add_allocation(const char *account)
{
    struct allocation *of = &allocations[section->allocations.n++];

    section->allocations.row = allocations;
    section->allocations.now = 1780000000;
    *of = (struct allocation){
        .account = put(account),
        .seconds = { NAN, NAN },
        .used = { NAN, NAN },
        .rate = { NAN, NAN },
        .storage_bytes = NAN,
        .students = NAN,
    };
    return of;
}

static void check_allocations(const char *expected)
{
    assert_string_equal(collect("allocations", section, ""), expected);
}

TEST(an_allocation_is_told_with_what_is_left_and_when_it_is_empty)
{
    struct allocation *of;

    begin(KIND_ALLOCATIONS);
    of = add_allocation("physics");
    *of = (struct allocation){
        .account = of->account,
        .from = 1770000000,
        .to = 1790000000,
        .seconds = { 200000000, 40000000 },
        .used = { 50000000, 35000000 },
        .rate = { 10, 2 },
        .storage_bytes = 1e13,
        .students = 14,
    };
    check_allocations("sonde_allocation_cpus{account=\"physics\"} 10\n"
                      "sonde_allocation_gpus{account=\"physics\"} 2\n"
                      "sonde_allocation_cpu_seconds{account=\"physics\"} 200000000\n"
                      "sonde_allocation_gpu_seconds{account=\"physics\"} 40000000\n"
                      "sonde_allocation_used_cpu_seconds{account=\"physics\"} 50000000\n"
                      "sonde_allocation_used_gpu_seconds{account=\"physics\"} 35000000\n"
                      "sonde_allocation_left_cpu_seconds{account=\"physics\"} 150000000\n"
                      "sonde_allocation_left_gpu_seconds{account=\"physics\"} 5000000\n"
                      "sonde_allocation_gpu_empty_timestamp_seconds{account=\"physics\"} "
                      "1782500000\n"
                      "sonde_allocation_start_timestamp_seconds{account=\"physics\"} 1770000000\n"
                      "sonde_allocation_end_timestamp_seconds{account=\"physics\"} 1790000000\n"
                      "sonde_allocation_storage_bytes{account=\"physics\"} 10000000000000\n"
                      "sonde_allocation_students{account=\"physics\"} 14\n");
}

TEST(what_was_promised_for_good_is_a_threshold_only)
{
    struct allocation *of;

    begin(KIND_ALLOCATIONS);
    of = add_allocation("a");
    of->seconds[ALLOCATION_GPUS] = 8. * ALLOCATION_YEAR_SECONDS;
    check_allocations("sonde_allocation_gpus{account=\"a\"} 8\n");
}

TEST(of_what_was_not_promised_nothing_is_told)
{
    struct allocation *of;

    begin(KIND_ALLOCATIONS);
    of = add_allocation("a");
    of->from = 1770000000;
    of->to = 1790000000;
    of->used[ALLOCATION_CPUS] = of->used[ALLOCATION_GPUS] = 5;
    of->rate[ALLOCATION_CPUS] = of->rate[ALLOCATION_GPUS] = 5;
    of->students = 1;
    check_allocations("sonde_allocation_start_timestamp_seconds{account=\"a\"} 1770000000\n"
                      "sonde_allocation_end_timestamp_seconds{account=\"a\"} 1790000000\n"
                      "sonde_allocation_students{account=\"a\"} 1\n");
}

TEST(what_is_used_may_be_unknown)
{
    struct allocation *of;

    begin(KIND_ALLOCATIONS);
    of = add_allocation("a");
    of->from = 1770000000;
    of->to = 1790000000;
    of->seconds[ALLOCATION_CPUS] = 20000000;
    of->rate[ALLOCATION_CPUS] = 5;
    check_allocations("sonde_allocation_cpus{account=\"a\"} 1\n"
                      "sonde_allocation_cpu_seconds{account=\"a\"} 20000000\n"
                      "sonde_allocation_start_timestamp_seconds{account=\"a\"} 1770000000\n"
                      "sonde_allocation_end_timestamp_seconds{account=\"a\"} 1790000000\n");
}
