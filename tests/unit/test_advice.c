/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What to write next time: never less than was used, and only where it is worth it. */
#include "test.h"

#include "made_job.h"

#include "report/advice.h"

#include <math.h>
#include <stdio.h>

static struct arena arena;
static struct job_facts job;
static struct node_facts *node;
static struct advice advice;

enum { LEAST_SECONDS = 60 };

static void set_up(void)
{
    made_job(&job, &arena);
    node = &job.node[0];
}

static void tear_down(void)
{
    arena_clear(&arena);
}

FIXTURE(set_up, tear_down)

/* Totals never get smaller, so they are made anew. */
static void ask(void)
{
    struct use_facts total = use_facts_unknown;

    total.cpus = job.total.cpus;
    total.memory_bytes = job.total.memory_bytes;
    total.gpus = job.total.gpus;
    job.total = total;
    facts_finish(&job);
    advice_make(&job, LEAST_SECONDS, &arena, &advice);
}

/* All lines, without "#SBATCH ", separated by " | ". */
static void assert_advised(const char *lines)
{
    struct buf got;

    ask();
    buf_init(&got, 2000);
    for (size_t i = 0; i < advice.n_lines; i++) {
        struct str line = advice.line[i].line;

        assert_true(advice.line[i].why.n > 0);
        assert_int_equal(str_find_str(advice.line[i].why, STR("nan")), advice.line[i].why.n);
        buf_text(&got, i ? " | " : "");
        buf_put(&got, str_skip(line, str_starts(line, STR("#SBATCH ")) ? 8 : 0));
    }
    assert_str(buf_str(&got), lines);
    buf_free(&got);
}

static void end_in(enum job_base base)
{
    job.row.record.state.base = (uint8_t)base;
}

static void submit_as(const char *line)
{
    static struct record_extra extra[2];

    extra[0] = (struct record_extra){ STR("Flags"), STR("SchedMain -n 3") };
    extra[1] = (struct record_extra){ STR("SubmitLine"), str_of(line) };
    job.row.record.extra = extra;
    job.row.record.n_extra = COUNT(extra);
}

TEST(nothing_is_advised_where_all_fits)
{
    assert_advised("");
    assert_int_equal(advice.n_jobs, 1);
    assert_true(advice.cores_back == 0 && advice.core_hours_back == 0);
    assert_true(advice.memory_bytes_back == 0 && advice.gpu_hours_back == 0);
}

TEST(nothing_is_advised_where_nothing_is_known)
{
    job_facts_clear(&job);
    assert_advised("");
    made_row(&job, &arena, 2, 64, 64 * made_gib, 4);
    assert_advised("");
    made_row(&job, &arena, 0, 0, 0, 0);
    assert_advised("");
    made_row(&job, &arena, 1, 32, 64 * made_gib, 0); /* only earlier ones are known */
    job.earlier = (struct earlier_facts){ 3, 1, 1e9, 60 };
    assert_advised("");
    made_row(&job, &arena, MODEL_UNKNOWN_U32, MODEL_UNKNOWN_U32, 0, 0);
    job.earlier = (struct earlier_facts){ 3, 1, 1e9, 60 };
    job.row.record.time_limit_minutes = MODEL_UNKNOWN_U32;
    assert_advised("");
}

TEST(serial_code_is_given_one_cpu_and_keeps_its_memory)
{
    made_use(node, 0.97, 6.5 * made_gib);
    node->use.busiest_cpus = 1.02;
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=8G");
    assert_contains(advice.line[0].why.p, "at most 1 of 4 CPUs was in use");
    assert_contains(advice.line[1].why.p, "as before");
    assert_true(advice.cores_back == 3 && advice.core_hours_back == 3);
    assert_true(advice.memory_bytes_back == 0);
    node->use.busiest_cpus = NAN;
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=8G");
    made_use(node, 0.9, 6.5 * made_gib);
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=8G");
    assert_contains(advice.line[0].why.p, "on average 0.9 of 4 CPUs were in use");
    made_use(node, 0.001, 6.5 * made_gib);
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=8G");
    assert_contains(advice.line[0].why.p, "none of 4 CPUs was in use");
}

TEST(cpus_are_never_fewer_than_were_in_use)
{
    made_row(&job, &arena, 1, 32, 8 * made_gib, 0);
    node = made_node(&job, &arena, "c1", 32, 8 * made_gib);
    made_use(node, 3.1, 6.5 * made_gib);
    assert_advised("--ntasks=1 --cpus-per-task=4 | --mem=8G");
    assert_contains(advice.line[0].why.p, "on average 3.1 of 32 CPUs were in use; of a program");
    node->use.busiest_cpus = 5.3;
    assert_advised("--ntasks=1 --cpus-per-task=6 | --mem=8G");
    node->use.busiest_cpus = 24;
    assert_advised("--ntasks=1 --cpus-per-task=24 | --mem=8G");
    node->use.busiest_cpus = 25;
    assert_advised("");
    node->use.busiest_cpus = NAN;
    node->use.cpu_seconds = NAN;
    assert_advised("");
}

TEST(tasks_are_counted_where_the_job_was_submitted_by_tasks)
{
    static const struct {
        const char *submitted, *line;
    } cases[] = {
        { "sbatch -n 4 job.sh", "--ntasks=2" },
        { "sbatch --ntasks=4 --time 5 job.sh", "--ntasks=2" },
        { "sbatch  -n4 job.sh", "--ntasks=2" },
        { "sbatch --ntasks-per-node=4 job.sh", "--ntasks=2" },
        { "sbatch --ntasks=1 -c 4 job.sh", "--ntasks=1 --cpus-per-task=2" },
        { "sbatch -n1 --cpus-per-task=4 job.sh", "--ntasks=1 --cpus-per-task=2" },
        { "sbatch job.sh -n 4", "--ntasks=1 --cpus-per-task=2" },
        { "sbatch -N1 job.sh -n 4", "--ntasks=1 --cpus-per-task=2" },
        { "sbatch --mem=8G job.sh --ntasks=4", "--ntasks=1 --cpus-per-task=2" },
        { "sbatch", "--ntasks=1 --cpus-per-task=2" },
        { "", "--ntasks=1 --cpus-per-task=2" },
        { "-", "--ntasks=1 --cpus-per-task=2" },
    };

    made_use(node, 1.9, 6.5 * made_gib);
    node->use.busiest_cpus = 2;
    for (size_t i = 0; i < COUNT(cases); i++) {
        submit_as(cases[i].submitted);
        ask();
        assert_int_equal(advice.n_lines, 2);
        assert_str(str_skip(advice.line[0].line, 8), cases[i].line);
    }
}

TEST(nodes_that_did_nothing_are_left_out)
{
    char name[16];

    made_row(&job, &arena, 4, 64, 32 * made_gib, 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        made_use(made_node(&job, &arena, name, 16, 8 * made_gib), i ? 0 : 15.5,
                 i ? 1e6 : 7 * made_gib);
    }
    job.node[0].use.busiest_cpus = 16;
    assert_advised("--nodes=1 | --ntasks=1 --cpus-per-task=16 | --mem=8G");
    assert_contains(advice.line[0].why.p, "1 of 4 nodes did the work");
    assert_true(advice.memory_bytes_back == 24 * made_gib);
    job.node[1].use.cpu_seconds = 15.5 * MADE_SECONDS;
    assert_advised("--nodes=2 | --mem=8G");
    assert_contains(advice.line[0].why.p, "fewer tasks");
    assert_true(advice.cores_back == 32 && advice.core_hours_back == 32);
    job.node[2].use.cpu_seconds = NAN; /* may have worked */
    assert_advised("--nodes=3 | --mem=8G");
    job.node[2].use.cpu_seconds = job.node[3].use.cpu_seconds = 15.5 * MADE_SECONDS;
    assert_advised("");
}

/* What feeds a GPU needs few of a node's CPUs. */
TEST(a_node_whose_gpus_worked_is_not_left_out)
{
    static const char *const names[] = { "g1", "g2" };

    made_row(&job, &arena, 2, 128, 64 * made_gib, 2);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct gpu_facts *gpu = facts_gpu(&job, &arena, str_of(names[i]), STR("0"));

        made_use(made_node(&job, &arena, names[i], 64, 32 * made_gib), i ? 0.5 : 2, 30 * made_gib);
        gpu->utilization_ratio.mean = 0.9;
        gpu->processes_peak = 1;
    }
    assert_advised("");
    job.gpu[1].utilization_ratio.mean = 0;
    assert_advised("--nodes=1 | --gpus=1 | --mem=32G");
}

TEST(memory_is_what_was_used_and_a_margin)
{
    node->use.memory_peak_bytes = 4.8 * made_gib;
    assert_advised("--mem=6G");
    assert_contains(advice.line[0].why.p, "at most 4.8 GiB of 8 GiB were in use");
    assert_true(advice.memory_bytes_back == 2 * made_gib);
    node->use.memory_peak_bytes = 5.1 * made_gib; /* 7 GiB: not worth it */
    assert_advised("");
    node->use.memory_peak_bytes = 1e6;
    assert_advised("--mem=512M");
    node->use.memory_peak_bytes = 0.5 * made_gib;
    assert_advised("--mem=768M");
    job.total.memory_bytes = 1000 * made_gib;
    node->use.memory_peak_bytes = 300.5 * made_gib;
    assert_advised("--mem=368G");
    node->use.memory_peak_bytes = NAN;
    assert_advised("");
}

TEST(memory_is_of_each_node_and_fits_the_largest)
{
    made_row(&job, &arena, 2, 8, 64 * made_gib, 0);
    made_use(made_node(&job, &arena, "c1", 4, 32 * made_gib), 3.9, 9 * made_gib);
    made_use(made_node(&job, &arena, "c2", 4, 32 * made_gib), 3.9, 1 * made_gib);
    assert_advised("--mem=11G");
    assert_contains(advice.line[0].why.p, "on any node");
    assert_true(advice.memory_bytes_back == 42 * made_gib);
}

TEST(the_peak_of_one_task_is_no_ground_for_less_memory)
{
    made_row(&job, &arena, 1, 4, 64 * made_gib, 0);
    job.row.record.memory_peak_bytes = 1 << 20;
    assert_advised("");
}

TEST(after_running_out_of_memory_it_is_more)
{
    end_in(JOB_OUT_OF_MEMORY);
    node->use.memory_peak_bytes = 1e6;
    assert_advised("--mem=12G");
    assert_contains(advice.line[0].why.p, "8 GiB were not enough; it may need more still");
    assert_true(advice.line[0].is_guess);
    assert_true(advice.memory_bytes_back == 0);
    end_in(JOB_COMPLETED);
    node->use.oom_kills = 1;
    assert_advised("--mem=12G");
}

TEST(time_is_what_it_took_and_a_margin)
{
    job.row.record.time_limit_minutes = 119; /* 90 are advised */
    assert_advised("");
    job.row.record.time_limit_minutes = 120;
    assert_advised("--time=01:30:00");
    assert_contains(advice.line[0].why.p, "it took 01:00:00 of 02:00:00");
    assert_false(advice.line[0].is_guess);
    job.row.record.time_limit_minutes = 7 * 24 * 60;
    job.row.elapsed_seconds = 2 * 86400;
    node->use.cpu_seconds = 3.9 * 2 * 86400;
    assert_advised("--time=2-18:00:00");
    job.row.elapsed_seconds = 3;
    assert_advised("--time=00:10:00");
    job.row.record.time_limit_minutes = MODEL_UNKNOWN_U32;
    assert_advised("");
}

TEST(after_a_timeout_it_is_more_time)
{
    end_in(JOB_TIMEOUT);
    assert_advised("--time=02:30:00");
    assert_contains(advice.line[0].why.p, "01:30:00 were not enough; it may need more still");
    assert_true(advice.line[0].is_guess);
    job.row.record.time_limit_minutes = UINT32_MAX - 1;
    ask();
    assert_int_equal(advice.n_lines, 1);
    job.row.record.time_limit_minutes = 0; /* --time=0 is no limit at all */
    assert_advised("");
}

TEST(a_job_that_failed_or_runs_has_not_shown_what_it_needs)
{
    static const enum job_base bases[] = { JOB_FAILED, JOB_CANCELLED, JOB_NODE_FAIL,
                                           JOB_PREEMPTED };

    made_use(node, 1, 1e6);
    node->use.busiest_cpus = 1;
    job.row.record.time_limit_minutes = 6000;
    for (size_t i = 0; i < COUNT(bases); i++) {
        end_in(bases[i]);
        assert_advised("");
    }
    end_in(JOB_RUNNING);
    job.is_running = true;
    assert_advised("");
}

static void give_gpus(uint32_t n)
{
    made_row(&job, &arena, 1, 16, 64 * made_gib, n);
    made_use(made_node(&job, &arena, "g1", 16, 64 * made_gib), 3, 55 * made_gib);
    for (uint32_t i = 0; i < n; i++) {
        char number[16];
        struct gpu_facts *gpu;

        snprintf(number, sizeof(number), "%u", (unsigned)i);
        gpu = facts_gpu(&job, &arena, STR("g1"), str_of(number));
        gpu->utilization_ratio.mean = 0.9;
        gpu->processes_peak = 1;
    }
}

TEST(gpus_that_did_nothing_are_left_out)
{
    give_gpus(4);
    assert_advised("");
    job.gpu[0].utilization_ratio.mean = 0;
    job.gpu[2].utilization_ratio.mean = NAN;
    job.gpu[2].processes_peak = 0;
    assert_advised("--gpus=2 | --mem=64G");
    assert_contains(advice.line[0].why.p, "2 of 4 GPUs did nothing");
    assert_true(advice.gpu_hours_back == 2);
    job.row.gpu_types = STR("a100");
    assert_advised("--gpus=a100:2 | --mem=64G");
    job.row.gpu_types = STR("a100=2,v100=2");
    assert_advised("--gpus=2 | --mem=64G");
    for (size_t i = 0; i < 4; i++)
        job.gpu[i].utilization_ratio.mean = 0;
    assert_advised("# no --gpus, --gpus-per-node or --gres=gpu | --mem=64G");
    assert_true(advice.gpu_hours_back == 4);
}

TEST(cpus_beside_gpus_are_judged_by_their_peak_only)
{
    give_gpus(1);
    assert_advised("");
    job.node[0].use.busiest_cpus = 6;
    assert_advised("--ntasks=1 --cpus-per-task=6 | --mem=64G");
}

TEST(earlier_jobs_of_its_name_count_as_well)
{
    made_use(node, 1, 0.5 * made_gib);
    node->use.busiest_cpus = 1;
    job.row.record.time_limit_minutes = 6000;
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=768M | --time=01:30:00");
    job.earlier = (struct earlier_facts){ 5, 1.9, 3 * made_gib, 10 * 3600 };
    assert_advised("--ntasks=1 --cpus-per-task=3 | --mem=4G | --time=13:00:00");
    assert_int_equal(advice.n_jobs, 6);
    assert_contains(advice.line[0].why.p, "1 of 4 CPUs was in use, 1.9 by an earlier job");
    assert_contains(advice.line[1].why.p, "of 8 GiB were in use, 3 GiB by an earlier job");
    assert_contains(advice.line[2].why.p, "01:00:00 of 4 d 04:00:00, 10:00:00 by an earlier job");
    job.earlier = (struct earlier_facts){ 5, NAN, NAN, NAN };
    assert_advised("--ntasks=1 --cpus-per-task=1 | --mem=768M | --time=01:30:00");
    job.earlier = (struct earlier_facts){ 5, 4, 8 * made_gib, 6000 * 60 };
    assert_advised("");
}
