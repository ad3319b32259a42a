/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is judged of a job: memory, time and files on both sides of each threshold, jobs as a whole,
 * and the table itself. CPUs and GPUs are in test_checks_cores.c. */
#include "files.h"
#include "judged_job.h"

#include <stdio.h>
#include <stdlib.h>

TEST(a_well_behaved_job_is_left_in_peace)
{
    assert_found("");
}

TEST(a_job_of_which_nothing_is_known_is_not_judged)
{
    job_facts_clear(&job);
    assert_found("");
    made_row(&job, &arena, 1, 32, 64 * made_gib, 4);
    assert_found("");
    job_facts_clear(&job);
    job.row.elapsed_seconds = 0;
    job.total.cpus = job.total.memory_bytes = job.total.gpus = 0;
    assert_found("");
}

TEST(running_out_of_memory_is_told_however_short_the_job)
{
    job.row.elapsed_seconds = 2;
    end_in(JOB_OUT_OF_MEMORY);
    node->use.memory_peak_bytes = 8 * made_gib;
    node->use.memory_waiting_seconds = 2;
    assert_found("out_of_memory");
    assert_says("ran out of the 8 GiB of memory that it held, and was ended.");
    end_in(JOB_COMPLETED);
    assert_found("");
    node->use.oom_kills = 2;
    assert_found("out_of_memory");
    assert_says("The kernel killed 2 processes.");
}

TEST(swap_is_told)
{
    assert_edge(&node->use.swap_peak_bytes, 99 * 0x1p20, 101 * 0x1p20, "swap");
}

TEST(full_memory_is_noted_unless_it_was_only_cache)
{
    node->use.memory_waiting_seconds = 0.011 * MADE_SECONDS;
    assert_edge(&node->use.memory_peak_bytes, 0.949 * 8 * made_gib, 0.951 * 8 * made_gib,
                "memory_full");
    node->use.memory_peak_bytes = 8 * made_gib;
    node->use.memory_waiting_seconds = 0.009 * MADE_SECONDS;
    assert_found("");
    node->use.memory_waiting_seconds = NAN;
    assert_found("memory_full");
}

TEST(memory_that_was_not_needed_is_told)
{
    assert_edge(&node->use.memory_peak_bytes, 0.701 * 8 * made_gib, 0.699 * 8 * made_gib,
                "memory_low");
    node->use.memory_peak_bytes = 0.5 * made_gib;
    assert_found("memory_low");
    assert_says("at its sampled peak, 512 MiB of the 8 GiB of memory that it held (6.2 %)");
    job.is_running = true;
    assert_found("");
}

TEST(little_memory_is_not_worth_a_word)
{
    made_row(&job, &arena, 1, 4, made_gib, 0);
    made_use(made_node(&job, &arena, "c1", 4, made_gib), 3.9, 1e6);
    assert_found("");
}

TEST(the_peak_of_one_task_does_not_judge_a_job_of_several)
{
    made_row(&job, &arena, 1, 4, 8 * made_gib, 0);
    job.row.record.cpu_seconds = 3.9 * MADE_SECONDS;
    job.row.record.memory_peak_bytes = 1 << 20;
    assert_found("");
    made_row(&job, &arena, 1, 1, 8 * made_gib, 0);
    job.row.record.cpu_seconds = 0.9 * MADE_SECONDS;
    job.row.record.memory_peak_bytes = 1 << 20;
    assert_found("memory_low");
}

TEST(a_time_limit_far_off_is_told_of_jobs_that_completed)
{
    job.row.record.time_limit_minutes = 100;
    assert_found("");
    job.row.record.time_limit_minutes = 101;
    assert_found("time_limit_far");
    job.row.record.time_limit_minutes = 600;
    assert_found("time_limit_far");
    job.row.record.time_limit_minutes = 601;
    assert_found("time_limit_very_far");
    assert_says("01:00:00 of its time limit of 10:01:00 (10 %)");
    job.row.elapsed_seconds = 899;
    node->use.cpu_seconds = 899 * 3.9;
    assert_found("");
    set_up();
    job.row.record.time_limit_minutes = 6000;
    end_in(JOB_FAILED);
    assert_found("");
    end_in(JOB_COMPLETED);
    job.row.record.time_limit_minutes = MODEL_UNKNOWN_U32;
    assert_found("");
    end_in(JOB_RUNNING);
    job.row.record.time_limit_minutes = 6000;
    job.is_running = true;
    assert_found("");
}

TEST(how_a_job_ended_is_told)
{
    job.row.elapsed_seconds = 60;
    end_in(JOB_TIMEOUT);
    assert_found("timeout");
    assert_says("its time limit of 01:30:00");
    job.row.record.time_limit_minutes = MODEL_UNKNOWN_U32;
    assert_found("timeout");
    assert_says("its time limit and was ended");
    end_in(JOB_NODE_FAIL);
    assert_found("node_failed");
    end_in(JOB_BOOT_FAIL);
    assert_found("node_failed");
    end_in(JOB_CANCELLED);
    assert_found("");
}

TEST(many_small_files_are_told)
{
    node->use.files_peak = 1000;
    node->use.written_bytes = 0;
    assert_edge(&node->use.read_bytes, 1000 * 5 * 0x1p20, 999 * 5 * 0x1p20, "files_small");
    node->use.read_bytes = 0x1p20;
    node->use.written_bytes = 0;
    assert_edge(&node->use.files_peak, 999, 1000, "files_small");
    node->use.files_peak = 4096;
    node->use.read_bytes = node->use.written_bytes = 0;
    assert_found("files_small");
    assert_says("had 4,096 files open at once and moved 0 B to or from each");
    node->use.read_bytes = NAN;
    assert_found("");
    job.lustre = (struct lustre_facts){ 1e6, 1e6, 1e5, 50000 };
    assert_found("files_small");
    assert_says("opened 50,000 files on Lustre");
}

TEST(waiting_for_storage_is_told_unless_small_files_explain_it)
{
    assert_edge(&node->use.io_waiting_seconds, 0.199 * MADE_SECONDS, 0.201 * MADE_SECONDS,
                "io_waiting");
    node->use.io_waiting_seconds = 2.0 * MADE_SECONDS;
    assert_found("io_waiting");
    assert_says("100 % of its time");
    node->use.files_peak = 5000;
    node->use.read_bytes = node->use.written_bytes = 0;
    assert_found("files_small");
}

TEST(scratch_is_judged_only_where_a_site_wants_it)
{
    node->use.uses_scratch = 0;
    assert_found("");
    settings.check[place_of("scratch_unused")].severity = SEVERITY_WARNING;
    assert_found("scratch_unused");
    assert_says("25 GiB");
    job.is_running = true;
    assert_found("");
    job.is_running = false;
    node->use.uses_scratch = 1;
    assert_found("");
    node->use.uses_scratch = NAN;
    assert_found("");
    node->use.uses_scratch = 0;
    node->use.read_bytes = node->use.written_bytes = 0x1p28;
    assert_found("");
}

TEST(a_short_job_is_not_judged_by_its_use)
{
    node->use.swap_peak_bytes = made_gib;
    node->use.cpu_seconds = 4 * 299;
    job.row.elapsed_seconds = 299;
    assert_found("");
    settings.least_seconds = 299;
    assert_found("swap");
}

TEST(whole_jobs_get_exactly_theirs)
{
    node->use.cpu_seconds = MADE_SECONDS;
    node->use.busiest_cpus = 1;
    assert_found("serial_code");
    set_up();
    node->use.memory_peak_bytes = 1e8;
    assert_found("memory_low");
    set_up();
    node->use.memory_peak_bytes = 8 * made_gib;
    node->use.oom_kills = 1;
    node->use.memory_waiting_seconds = 500;
    end_in(JOB_OUT_OF_MEMORY);
    assert_found("out_of_memory");
    set_up();
    node->use.files_peak = 2000;
    node->use.read_bytes = node->use.written_bytes = 1e6;
    node->use.io_waiting_seconds = 1000;
    assert_found("files_small");
    set_up();
    job.process[0].threads_peak = 64;
    assert_found("threads_many");
}

TEST(the_gravest_stands_first)
{
    node->use.memory_peak_bytes = 1e8;          /* a warning */
    job.row.record.time_limit_minutes = 200;    /* a note */
    node->use.cpu_seconds = 1.0 * MADE_SECONDS; /* critical */
    node->use.busiest_cpus = 1;
    job.process[0].threads_peak = 64; /* a warning, earlier in the table */
    assert_found("serial_code threads_many memory_low time_limit_far");
    settings.check[place_of("time_limit_far")].severity = SEVERITY_CRITICAL;
    settings.check[place_of("serial_code")].severity = SEVERITY_OFF;
    assert_found("cpu_very_low time_limit_far threads_many memory_low");
    assert_int_equal(finding[1].severity, SEVERITY_CRITICAL);
}

TEST(names_are_unique_and_every_row_is_whole)
{
    for (size_t i = 0; i < n_checks; i++) {
        assert_int_equal(place_of(checks[i].name), i);
        assert_true(str_ends(str_of(checks[i].about), STR(".")));
        assert_int_equal(isnan(checks[i].threshold), !checks[i].unit);
        assert_non_null(checks[i].is_met);
    }
}

static void put_row(struct buf *to, const struct check *check)
{
    buf_printf(to, "| `%s` | %s | ", check->name, severity_words[check->severity]);
    if (check->unit) {
        buf_double(to, check->threshold);
        buf_printf(to, " %s", check->unit);
    }
    buf_printf(to, "%s| %s |\n", check->unit ? " " : "", check->about);
}

TEST(the_documentation_has_this_table)
{
    const char *documentation = read_file(source_path("docs/report.md")).p;
    struct buf table;

    buf_init(&table, 100000);
    for (size_t i = 0; i < n_checks; i++)
        put_row(&table, &checks[i]);
    if (!strstr(documentation, table.p))
        fail_msg("docs/report.md does not have this table:\n%s", table.p);
    buf_free(&table);
}
