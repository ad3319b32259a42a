/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the collectors lustre and lustre_jobs say of sections made by hand, sample by sample. */
#include "collected.h"

#include "base/num.h"
#include "metric/convert.h"

#include <math.h>
#include <stdio.h>

enum { CEILING = 1000, ROOM = 4 * CEILING };

static const struct {
    const char *collector, *families[11];
} tables[] = {
    { "lustre",
      { "cluster_exporter_stage_execution_seconds", "cluster_job_read_throughput_bytes",
        "cluster_job_write_throughput_bytes", "cluster_proc_read_throughput_bytes",
        "cluster_proc_write_throughput_bytes", "cluster_job_metadata_operations",
        "cluster_proc_metadata_operations", "sonde_lustre_unattributed_ids",
        "sonde_lustre_unattributed_throughput_bytes",
        "sonde_lustre_unattributed_metadata_operations" } },
    { "lustre_jobs",
      { "sonde_job_lustre_read_bytes_per_second", "sonde_job_lustre_write_bytes_per_second",
        "sonde_job_lustre_reads_per_second", "sonde_job_lustre_writes_per_second",
        "sonde_job_lustre_operations_per_second", "sonde_job_lustre_opens_per_second",
        "sonde_job_lustre_closes_per_second", "sonde_job_lustre_read_mean_bytes",
        "sonde_job_lustre_write_mean_bytes", "sonde_job_lustre_small_io_ratio" } },
};

static struct section *section;
static struct lustre_id ids[ROOM];
static struct lustre_metadata metadata[ROOM];

static void set_up(void)
{
    section = section_new(KIND_LUSTRE);
    section->lustre.id = ids;
    section->lustre.metadata = metadata;
    section->lustre.has_details = true;
}

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(set_up, tear_down)

static symbol put(const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static struct lustre_id *add_id(enum lustre_who who, double read, double write)
{
    struct lustre_id *id = &ids[section->lustre.n++];

    assert_true(section->lustre.n <= ROOM);
    *id = (struct lustre_id){ .who = who };
    for (size_t i = 0; i < LUSTRE_RATES; i++)
        id->per_second[i] = NAN;
    id->per_second[LUSTRE_READ_BYTES] = read;
    id->per_second[LUSTRE_WRITE_BYTES] = write;
    return id;
}

static struct lustre_id *add_job(uint32_t job_id, const char *account, const char *user,
                                 double read, double write)
{
    struct lustre_id *id = add_id(LUSTRE_JOB, read, write);

    id->job_id = job_id;
    id->account = put(account);
    id->user = put(user);
    return id;
}

static struct lustre_id *add_process(const char *name, const char *group, const char *user,
                                     double read, double write)
{
    struct lustre_id *id = add_id(LUSTRE_PROCESS, read, write);

    id->process = put(name);
    id->group = put(group);
    id->user = put(user);
    return id;
}

static void add_metadata(const struct lustre_id *id, const char *target, double per_second)
{
    assert_true(section->lustre.n_metadata < ROOM);
    metadata[section->lustre.n_metadata++] =
        (struct lustre_metadata){ (uint32_t)(id - ids), put(target), per_second };
}

static void check(const char *family, const char *expected)
{
    bool is_of_jobs = str_starts(str_of(family), STR("sonde_job_"));

    check_family(is_of_jobs ? "lustre_jobs" : "lustre", section, family, expected);
}

static void check_collected(const char *collector, size_t samples, size_t folded)
{
    collect(collector, section, "");
    assert_int_equal(collected.samples, samples);
    assert_int_equal(collected.folded, folded);
    assert_int_equal(collected.duplicates, 0);
}

/* The value of the series, or NAN. */
static double value_of(const char *collector, const char *series)
{
    double value = NAN;

    for (struct str rest = str_of(collect(collector, section, series)); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        assert_true(num_get_double(str_skip(line, strlen(series) + 1), &value));
    }
    return value;
}

TEST(each_family_of_the_tables_is_the_one_that_is_tested)
{
    for (size_t i = 0; i < COUNT(tables); i++) {
        const struct collector *collector = collectors[collector_find(str_of(tables[i].collector))];

        for (size_t k = 0; k < collector->n_families; k++) {
            assert_string_equal(collector->families[k].name, tables[i].families[k]);
            assert_int_equal(collector->families[k].type, METRIC_GAUGE);
        }
        assert_null(tables[i].families[collector->n_families]);
        assert_int_equal(collector->is_of_details, i == 1);
    }
}

TEST(a_quiet_filesystem_is_an_answer)
{
    check_collected("lustre", LUSTRE_STAGES + 5 + 2, 0);
    check_collected("lustre_jobs", 0, 0);
    check("sonde_lustre_unattributed_ids",
          "sonde_lustre_unattributed_ids{reason=\"unknown_job\"} 0\n"
          "sonde_lustre_unattributed_ids{reason=\"unknown_user\"} 0\n"
          "sonde_lustre_unattributed_ids{reason=\"unreadable\"} 0\n"
          "sonde_lustre_unattributed_ids{reason=\"other_user\"} 0\n"
          "sonde_lustre_unattributed_ids{reason=\"too_many\"} 0\n");
    check("sonde_lustre_unattributed_throughput_bytes",
          "sonde_lustre_unattributed_throughput_bytes{direction=\"read\"} 0\n"
          "sonde_lustre_unattributed_throughput_bytes{direction=\"write\"} 0\n");
}

TEST(the_stages_have_the_names_that_they_always_had)
{
    for (size_t i = 0; i < LUSTRE_STAGES; i++)
        section->lustre.stage_seconds[i] = 0.5 + (double)i;
    check("cluster_exporter_stage_execution_seconds",
          "cluster_exporter_stage_execution_seconds{name=\"retrieve_running_jobs\"} 0.5\n"
          "cluster_exporter_stage_execution_seconds{name=\"retrieve_user_name_info\"} 1.5\n"
          "cluster_exporter_stage_execution_seconds{name=\"retrieve_group_name_info\"} 2.5\n"
          "cluster_exporter_stage_execution_seconds{name=\"build_metadata_metrics\"} 3.5\n"
          "cluster_exporter_stage_execution_seconds{name=\"build_read_throughput_metrics\"} 4.5\n"
          "cluster_exporter_stage_execution_seconds{name=\"build_write_throughput_metrics\"} "
          "5.5\n");
}

TEST(jobs_of_one_account_and_user_are_added_up_in_the_order_met)
{
    add_job(1, "physics", "zoe", 100, 1);
    add_job(2, "physics", "ann", 1000, NAN);
    add_job(3, "physics", "zoe", 20.5, 2);
    add_job(4, "chemistry", "zoe", 3, NAN);
    add_job(5, "physics", "zoe", NAN, 4);
    add_process("physics", "", "zoe", 7, 7);
    check("cluster_job_read_throughput_bytes",
          "cluster_job_read_throughput_bytes{account=\"physics\",user=\"zoe\"} 120.5\n"
          "cluster_job_read_throughput_bytes{account=\"physics\",user=\"ann\"} 1000\n"
          "cluster_job_read_throughput_bytes{account=\"chemistry\",user=\"zoe\"} 3\n");
    check("cluster_job_write_throughput_bytes",
          "cluster_job_write_throughput_bytes{account=\"physics\",user=\"zoe\"} 7\n");
}

TEST(what_nobody_told_of_a_pair_is_absent_and_not_zero)
{
    add_job(1, "physics", "ann", NAN, NAN);
    add_job(2, "physics", "bob", NAN, 8);
    add_process("rsync", "staff", "ann", NAN, NAN);
    check("cluster_job_read_throughput_bytes", "");
    check("cluster_job_write_throughput_bytes",
          "cluster_job_write_throughput_bytes{account=\"physics\",user=\"bob\"} 8\n");
    check("cluster_proc_read_throughput_bytes", "");
    check("cluster_proc_write_throughput_bytes", "");
    check("cluster_job_metadata_operations", "");
    check("sonde_job_lustre_read_bytes_per_second", "");
    check("sonde_job_lustre_write_bytes_per_second",
          "sonde_job_lustre_write_bytes_per_second{job_id=\"2\"} 8\n");
}

TEST(processes_are_added_up_by_name_group_and_user)
{
    add_process("rsync", "staff", "ann", 1, 10);
    add_process("rsync", "guests", "ann", 2, NAN);
    add_process("rsync", "staff", "1234", 4, NAN);
    add_process("rsync", "staff", "ann", 8, 80);
    add_process("cp", "staff", "ann", NAN, 5);
    add_process("", "", "", 16, NAN);
    check("cluster_proc_read_throughput_bytes",
          "cluster_proc_read_throughput_bytes{proc_name=\"rsync\",group_name=\"staff\","
          "user_name=\"ann\"} 9\n"
          "cluster_proc_read_throughput_bytes{proc_name=\"rsync\",group_name=\"guests\","
          "user_name=\"ann\"} 2\n"
          "cluster_proc_read_throughput_bytes{proc_name=\"rsync\",group_name=\"staff\","
          "user_name=\"1234\"} 4\n"
          "cluster_proc_read_throughput_bytes{proc_name=\"\",group_name=\"\",user_name=\"\"} 16\n");
    check("cluster_proc_write_throughput_bytes",
          "cluster_proc_write_throughput_bytes{proc_name=\"rsync\",group_name=\"staff\","
          "user_name=\"ann\"} 90\n"
          "cluster_proc_write_throughput_bytes{proc_name=\"cp\",group_name=\"staff\","
          "user_name=\"ann\"} 5\n");
}

TEST(metadata_operations_are_added_up_by_target)
{
    struct lustre_id *job = add_job(1, "physics", "ann", NAN, NAN);
    struct lustre_id *other = add_job(2, "physics", "ann", NAN, NAN);
    struct lustre_id *process = add_process("find", "staff", "bob", NAN, NAN);
    struct lustre_id *nobody = add_id(LUSTRE_NOBODY, NAN, NAN);

    add_metadata(job, "scratch-MDT0000", 3);
    add_metadata(process, "scratch-MDT0000", 50);
    add_metadata(job, "scratch-MDT0001", 4);
    add_metadata(other, "scratch-MDT0000", 5);
    add_metadata(process, "scratch-MDT0000", 25);
    add_metadata(nobody, "scratch-MDT0000", 999);
    check("cluster_job_metadata_operations",
          "cluster_job_metadata_operations{account=\"physics\",user=\"ann\","
          "target=\"scratch-MDT0000\"} 8\n"
          "cluster_job_metadata_operations{account=\"physics\",user=\"ann\","
          "target=\"scratch-MDT0001\"} 4\n");
    check("cluster_proc_metadata_operations",
          "cluster_proc_metadata_operations{proc_name=\"find\",group_name=\"staff\","
          "user_name=\"bob\",target=\"scratch-MDT0000\"} 75\n");
}

TEST(what_counts_for_nobody_is_told_apart)
{
    section->lustre.unknown_jobs = 3;
    section->lustre.unknown_users = 2;
    section->lustre.unreadable = 1;
    section->lustre.forged = 4;
    section->lustre.left_out = 5;
    add_metadata(add_id(LUSTRE_NOBODY, 100, NAN), "fs-MDT0000", 30);
    add_metadata(add_id(LUSTRE_NOBODY, 20, 7), "fs-MDT0000", 12);
    add_job(1, "physics", "ann", 5000, 5000);
    check("sonde_lustre_unattributed_ids",
          "sonde_lustre_unattributed_ids{reason=\"unknown_job\"} 3\n"
          "sonde_lustre_unattributed_ids{reason=\"unknown_user\"} 2\n"
          "sonde_lustre_unattributed_ids{reason=\"unreadable\"} 1\n"
          "sonde_lustre_unattributed_ids{reason=\"other_user\"} 4\n"
          "sonde_lustre_unattributed_ids{reason=\"too_many\"} 5\n");
    check("sonde_lustre_unattributed_throughput_bytes",
          "sonde_lustre_unattributed_throughput_bytes{direction=\"read\"} 120\n"
          "sonde_lustre_unattributed_throughput_bytes{direction=\"write\"} 7\n");
    check("sonde_lustre_unattributed_metadata_operations",
          "sonde_lustre_unattributed_metadata_operations{target=\"fs-MDT0000\"} 42\n");
    check("cluster_job_read_throughput_bytes",
          "cluster_job_read_throughput_bytes{account=\"physics\",user=\"ann\"} 5000\n");
    check("sonde_job_lustre_read_bytes_per_second",
          "sonde_job_lustre_read_bytes_per_second{job_id=\"1\"} 5000\n");
}

TEST(names_are_only_ever_values)
{
    add_process("a\"} 1\nforged{x=\"", "g\\", "u\nv", 1, NAN);
    add_process("\xff", "", "", 2, NAN);
    add_process("other", "", "", 4, NAN);
    add_job(1, "", "", 3, NAN);
    check("cluster_proc_read_throughput_bytes",
          "cluster_proc_read_throughput_bytes{proc_name=\"a\\\"} 1\\nforged{x=\\\"\","
          "group_name=\"g\\\\\",user_name=\"u\\nv\"} 1\n"
          "cluster_proc_read_throughput_bytes{proc_name=\"\xef\xbf\xbd\",group_name=\"\","
          "user_name=\"\"} 2\n"
          "cluster_proc_read_throughput_bytes{proc_name=\"other\",group_name=\"\","
          "user_name=\"\"} 4\n");
    check("cluster_job_read_throughput_bytes",
          "cluster_job_read_throughput_bytes{account=\"\",user=\"\"} 3\n");
}

/* Numbers that are all different, in no order. */
static double scattered(size_t i, size_t n)
{
    return (double)(i * 2741 % n + 1);
}

static void add_processes(size_t n, double (*amount)(size_t i, size_t n))
{
    char name[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "p%04.0f", amount(i, n));
        add_process(name, "staff", "ann", amount(i, n), NAN);
    }
}

static void check_process(unsigned number, bool is_shown)
{
    char series[200];

    snprintf(series, sizeof(series),
             "cluster_proc_read_throughput_bytes{proc_name=\"p%04u\",group_name=\"staff\","
             "user_name=\"ann\"}",
             number);
    if (is_shown)
        assert_true(value_of("lustre", series) == number);
    else
        assert_true(isnan(value_of("lustre", series)));
}

static double other_processes(void)
{
    return value_of("lustre", "cluster_proc_read_throughput_bytes{proc_name=\"other\","
                              "group_name=\"\",user_name=\"\"}");
}

TEST(the_ceiling_itself_is_not_crossed)
{
    add_processes(CEILING, scattered);
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + CEILING, 0);
    assert_true(isnan(other_processes()));
}

static double ascending(size_t i, size_t n)
{
    (void)n;
    return (double)(i + 1);
}

static double descending(size_t i, size_t n)
{
    return (double)(n - i);
}

/* n processes that move 1 to n bytes. */
static void check_largest(size_t n, double (*amount)(size_t i, size_t n))
{
    size_t rest = n - CEILING;

    tear_down();
    set_up();
    add_processes(n, amount);
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + CEILING + 1, rest);
    assert_true(other_processes() == (double)(rest * (rest + 1) / 2));
    check_process(1, false);
    check_process((unsigned)rest, false);
    check_process((unsigned)rest + 1, true);
    check_process((unsigned)n, true);
}

TEST(past_the_ceiling_the_largest_processes_are_shown_and_the_rest_added_up)
{
    static double (*const orders[])(size_t, size_t) = { scattered, ascending, descending };

    for (size_t i = 0; i < COUNT(orders); i++) {
        check_largest(CEILING + 1, orders[i]);
        check_largest(2 * CEILING, orders[i]);
        check_largest(ROOM, orders[i]);
    }
}

TEST(of_equally_large_processes_the_first_by_name_are_shown)
{
    char name[32];

    for (size_t i = 0; i < ROOM; i++) {
        snprintf(name, sizeof(name), "p%04.0f", scattered(i, ROOM));
        add_process(name, "staff", "ann", 1, NAN);
    }
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + CEILING + 1, ROOM - CEILING);
    assert_true(other_processes() == ROOM - CEILING);
    assert_true(value_of("lustre", "cluster_proc_read_throughput_bytes{proc_name=\"p1000\","
                                   "group_name=\"staff\",user_name=\"ann\"}") == 1);
    assert_true(isnan(value_of("lustre", "cluster_proc_read_throughput_bytes{proc_name=\"p1001\","
                                         "group_name=\"staff\",user_name=\"ann\"}")));
}

TEST(a_process_called_other_is_part_of_the_rest)
{
    add_process("other", "", "", 1e6, NAN);
    add_process("other", "staff", "ann", 2e6, NAN);
    add_processes(CEILING - 1, scattered);
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + CEILING, 1);
    assert_true(other_processes() == 1e6 + 1);
    assert_true(value_of("lustre", "cluster_proc_read_throughput_bytes{proc_name=\"other\","
                                   "group_name=\"staff\",user_name=\"ann\"}") == 2e6);
}

TEST(the_ceiling_is_that_of_each_family)
{
    add_processes(CEILING + 1, scattered);
    add_process("writer", "staff", "ann", NAN, 1);
    check("cluster_proc_write_throughput_bytes",
          "cluster_proc_write_throughput_bytes{proc_name=\"writer\",group_name=\"staff\","
          "user_name=\"ann\"} 1\n");
}

TEST(the_rest_of_metadata_operations_is_told_by_target)
{
    size_t n = CEILING + 5;
    char name[32];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "p%04zu", i);
        add_metadata(add_process(name, "staff", "ann", NAN, NAN), "scratch-MDT0000",
                     (double)(i + 10));
    }
    add_metadata(&ids[0], "scratch-MDT0001", 1);
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + CEILING + 2, 6);
    assert_true(value_of("lustre", "cluster_proc_metadata_operations{proc_name=\"other\","
                                   "group_name=\"\",user_name=\"\",target=\"scratch-MDT0000\"}") ==
                10 + 11 + 12 + 13 + 14);
    assert_true(value_of("lustre",
                         "cluster_proc_metadata_operations{proc_name=\"other\","
                         "group_name=\"\",user_name=\"\",target=\"scratch-MDT0001\"}") == 1);
}

TEST(accounts_and_users_have_no_ceiling)
{
    char user[32];

    for (uint32_t i = 0; i < ROOM; i++) {
        snprintf(user, sizeof(user), "u%u", i);
        add_job(i, "physics", user, 1, 1);
    }
    check_collected("lustre", LUSTRE_STAGES + 5 + 2 + 2 * ROOM, 0);
}

TEST(a_job_tells_what_it_does_in_each_second)
{
    struct lustre_id *job = add_job(4711, "physics", "ann", 1 << 20, 3 << 20);

    job->per_second[LUSTRE_READS] = 16;
    job->per_second[LUSTRE_WRITES] = 4;
    job->per_second[LUSTRE_SMALL_READS] = 5;
    job->per_second[LUSTRE_OPERATIONS] = 9.5;
    job->per_second[LUSTRE_OPENS] = 2;
    job->per_second[LUSTRE_CLOSES] = 1.5;
    add_process("rsync", "staff", "ann", 1, 1)->per_second[LUSTRE_READS] = 1;
    check("sonde_job_lustre_read_bytes_per_second",
          "sonde_job_lustre_read_bytes_per_second{job_id=\"4711\"} 1048576\n");
    check("sonde_job_lustre_write_bytes_per_second",
          "sonde_job_lustre_write_bytes_per_second{job_id=\"4711\"} 3145728\n");
    check("sonde_job_lustre_reads_per_second",
          "sonde_job_lustre_reads_per_second{job_id=\"4711\"} 16\n");
    check("sonde_job_lustre_writes_per_second",
          "sonde_job_lustre_writes_per_second{job_id=\"4711\"} 4\n");
    check("sonde_job_lustre_operations_per_second",
          "sonde_job_lustre_operations_per_second{job_id=\"4711\"} 9.5\n");
    check("sonde_job_lustre_opens_per_second",
          "sonde_job_lustre_opens_per_second{job_id=\"4711\"} 2\n");
    check("sonde_job_lustre_closes_per_second",
          "sonde_job_lustre_closes_per_second{job_id=\"4711\"} 1.5\n");
    check("sonde_job_lustre_read_mean_bytes",
          "sonde_job_lustre_read_mean_bytes{job_id=\"4711\"} 65536\n");
    check("sonde_job_lustre_write_mean_bytes",
          "sonde_job_lustre_write_mean_bytes{job_id=\"4711\"} 786432\n");
    check("sonde_job_lustre_small_io_ratio",
          "sonde_job_lustre_small_io_ratio{job_id=\"4711\"} 0.25\n");
}

TEST(without_reads_and_writes_there_are_no_means_and_no_ratio)
{
    struct lustre_id *silent = add_job(1, "physics", "ann", 100, 100);
    struct lustre_id *idle = add_job(2, "physics", "ann", 100, 100);
    struct lustre_id *sizeless = add_job(3, "physics", "ann", NAN, 100);

    silent->per_second[LUSTRE_OPENS] = 1;
    idle->per_second[LUSTRE_READS] = idle->per_second[LUSTRE_WRITES] = 0;
    sizeless->per_second[LUSTRE_READS] = 10;
    check("sonde_job_lustre_read_mean_bytes", "");
    check("sonde_job_lustre_write_mean_bytes", "");
    check("sonde_job_lustre_small_io_ratio", "sonde_job_lustre_small_io_ratio{job_id=\"3\"} 0\n");
}

TEST(more_small_reads_than_reads_are_all_of_them)
{
    struct lustre_id *job = add_job(1, "physics", "ann", NAN, NAN);

    job->per_second[LUSTRE_READS] = 10;
    job->per_second[LUSTRE_SMALL_READS] = 12;
    check("sonde_job_lustre_small_io_ratio", "sonde_job_lustre_small_io_ratio{job_id=\"1\"} 1\n");
}

TEST(nothing_is_told_of_jobs_where_details_were_not_asked_for)
{
    add_job(1, "physics", "ann", 100, 100);
    section->lustre.has_details = false;
    check_collected("lustre_jobs", 0, 0);
    check("cluster_job_read_throughput_bytes",
          "cluster_job_read_throughput_bytes{account=\"physics\",user=\"ann\"} 100\n");
}

TEST(past_the_ceiling_the_jobs_that_move_or_do_most_are_shown_and_the_rest_added_up)
{
    enum { THIRD = CEILING / 3, REST = CEILING - THIRD };
    static const struct {
        const char *series;
        double value; /* NAN: there is none */
    } expected[] = {
        { "sonde_job_lustre_read_bytes_per_second{job_id=\"1\"}", 100 },
        { "sonde_job_lustre_read_bytes_per_second{job_id=\"333\"}", 100 },
        { "sonde_job_lustre_read_bytes_per_second{job_id=\"334\"}", NAN },
        { "sonde_job_lustre_read_bytes_per_second{job_id=\"5000\"}", 30 },
        { "sonde_job_lustre_reads_per_second{job_id=\"5000\"}", 2 },
        { "sonde_job_lustre_write_bytes_per_second{job_id=\"5001\"}", 100 },
        { "sonde_job_lustre_read_bytes_per_second{job_id=\"other\"}", 100 * REST },
        { "sonde_job_lustre_write_bytes_per_second{job_id=\"other\"}", NAN },
        { "sonde_job_lustre_reads_per_second{job_id=\"other\"}", REST },
        { "sonde_job_lustre_operations_per_second{job_id=\"5001\"}", 1e6 },
        { "sonde_job_lustre_operations_per_second{job_id=\"other\"}", NAN },
        { "sonde_job_lustre_read_mean_bytes{job_id=\"other\"}", NAN },
        { "sonde_job_lustre_small_io_ratio{job_id=\"other\"}", NAN },
    };

    for (uint32_t i = CEILING; i > 0; i--)
        add_job(i, "physics", "ann", 100, NAN)->per_second[LUSTRE_READS] = 1;
    add_job(5000, "physics", "ann", 30, NAN)->per_second[LUSTRE_READS] = 2;
    add_job(5001, "physics", "ann", NAN, 100)->per_second[LUSTRE_OPERATIONS] = 1e6;

    for (size_t i = 0; i < COUNT(expected); i++) {
        double value = value_of("lustre_jobs", expected[i].series);

        if (isnan(expected[i].value) ? !isnan(value) : value != expected[i].value)
            fail_msg("%s is %g and not %g", expected[i].series, value, expected[i].value);
    }
}

static struct buf render(const struct collector *collector, enum metric_format format)
{
    struct metric_writer writer;
    struct buf out;

    buf_init(&out, 1 << 20);
    metric_writer_init(&writer, &out, format, STR("simulated=\"true\""), collector->families,
                       collector->n_families);
    collector->collect(section, &writer);
    assert_true(writer.samples > 0);
    metric_writer_free(&writer);
    return out;
}

TEST(both_formats_tell_the_same)
{
    struct lustre_id *job = add_job(1, "a\"b", "ann\n", 1.25, 1e300);
    struct lustre_id *process = add_process("a b:c", "", "0", 3, NAN);

    for (size_t i = 0; i < LUSTRE_RATES; i++)
        job->per_second[i] = 0.1 * (double)(i + 1);
    add_metadata(job, "scratch-MDT0000", 1);
    add_metadata(process, "scratch-MDT0000", 1);
    for (size_t i = 0; i < COUNT(tables); i++) {
        const struct collector *collector = collectors[collector_find(str_of(tables[i].collector))];
        struct buf text = render(collector, METRIC_TEXT);
        struct buf open = render(collector, METRIC_OPENMETRICS);
        struct buf made;

        buf_init(&made, 1 << 20);
        metric_convert(collector->families, collector->n_families, STR(""), buf_str(&text),
                       METRIC_TEXT, METRIC_OPENMETRICS, &made);
        assert_true(str_eq(buf_str(&made), buf_str(&open)));
        buf_reset(&made);
        metric_convert(collector->families, collector->n_families, STR(""), buf_str(&open),
                       METRIC_OPENMETRICS, METRIC_TEXT, &made);
        assert_true(str_eq(buf_str(&made), buf_str(&text)));
        buf_free(&made);
        buf_free(&open);
        buf_free(&text);
    }
}
