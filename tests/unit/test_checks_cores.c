/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is judged of CPUs, threads and GPUs, on both sides of each threshold. */
#include "judged_job.h"

#include <stdio.h>

static void give_nodes(uint32_t n, uint32_t cpus_each)
{
    char name[16];

    made_row(&job, &arena, n, n * cpus_each, n * 8 * made_gib, 0);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "c%u", (unsigned)i + 1);
        made_use(made_node(&job, &arena, name, cpus_each, 8 * made_gib), 0.95 * cpus_each,
                 6.5 * made_gib);
    }
}

static void give_gpus(uint32_t n, double ratio)
{
    char number[16];

    made_row(&job, &arena, 1, n * 4, 64 * made_gib, n);
    made_use(made_node(&job, &arena, "g1", n * 4, 64 * made_gib), n * 0.1, 50 * made_gib);
    for (uint32_t i = 0; i < n; i++) {
        struct gpu_facts *gpu;

        snprintf(number, sizeof(number), "%u", (unsigned)i);
        gpu = facts_gpu(&job, &arena, STR("g1"), str_of(number));
        gpu->utilization_ratio.mean = ratio;
        gpu->processes_peak = 1;
    }
}

TEST(low_cpu_use_is_told_once_and_by_its_degree)
{
    node->use.busiest_cpus = NAN;
    assert_edge(&node->use.cpu_seconds, 4 * 0.801 * MADE_SECONDS, 4 * 0.799 * MADE_SECONDS,
                "cpu_low");
    node->use.busiest_cpus = NAN;
    node->use.cpu_seconds = 4 * 0.651 * MADE_SECONDS;
    assert_found("cpu_low");
    node->use.cpu_seconds = 4 * 0.649 * MADE_SECONDS;
    assert_found("cpu_very_low");
    assert_says("2.6 of 4 CPUs busy on average (65 %)");
    node->use.cpu_seconds = NAN;
    assert_found("");
}

TEST(a_job_that_did_nothing_is_not_told_to_ask_for_fewer_cpus)
{
    node->use.busiest_cpus = NAN;
    node->use.cpu_seconds = 0.001 * MADE_SECONDS;
    assert_found("cpu_very_low");
    assert_says("The job did nothing: its 4 CPUs were idle but for 3.6 s. Look into its output");
    node->use.cpu_seconds = 0;
    assert_found("cpu_very_low");
    assert_says("its 4 CPUs were idle all the time.");
    made_row(&job, &arena, 1, 1, 8 * made_gib, 0);
    made_use(made_node(&job, &arena, "c1", 1, 8 * made_gib), 0, 6.5 * made_gib);
    assert_found("cpu_very_low");
    assert_says("its CPU was idle");
}

TEST(one_busy_cpu_of_several_is_serial_code)
{
    node->use.busiest_cpus = 1;
    node->use.cpu_seconds = MADE_SECONDS;
    assert_found("serial_code");
    assert_says("1 of its 4 CPUs busy on average");
    node->use.cpu_seconds = 0.84 * MADE_SECONDS;
    assert_found("cpu_very_low");
    node->use.cpu_seconds = 1.02 * MADE_SECONDS;
    assert_found("cpu_very_low");
    settings.check[place_of("serial_code")].threshold = 1.5;
    node->use.cpu_seconds = 1.4 * MADE_SECONDS;
    assert_found("serial_code");
    assert_says("1.4 of its 4 CPUs busy on average");
}

/* Slurm gives both threads of a core to who asks for one CPU. */
TEST(what_slurm_added_to_make_whole_cores_is_not_held_against_the_job)
{
    made_row(&job, &arena, 1, 2, 8 * made_gib, 0);
    made_use(made_node(&job, &arena, "c1", 2, 8 * made_gib), 1, 6.5 * made_gib);
    assert_found("serial_code");
    job.row.record.tres_requested = STR("cpu=1,mem=8G,node=1");
    assert_found("");
    job.row.record.tres_requested = STR("cpu=2,mem=8G,node=1");
    assert_found("serial_code");
    job.total.cpus = 3; /* no core has three threads: it asked for whole nodes */
    job.row.record.tres_requested = STR("cpu=1,mem=8G,node=1");
    assert_found("serial_code");
}

TEST(phases_are_told_apart_from_low_use)
{
    node->use.cpu_seconds = 2.9 * MADE_SECONDS;
    node->use.busiest_cpus = 4;
    assert_found("cpu_uneven");
    assert_says("4 CPUs busy at its best, but 2.9 of 4 on average");
    node->use.cpu_seconds = 3.01 * MADE_SECONDS;
    assert_found("cpu_low");
    node->use.cpu_seconds = 2 * MADE_SECONDS;
    node->use.busiest_cpus = 3.1;
    assert_found("cpu_very_low");
    /* On one CPU nothing is parallel. */
    made_row(&job, &arena, 1, 1, 8 * made_gib, 0);
    node = made_node(&job, &arena, "c1", 1, 8 * made_gib);
    made_use(node, 0.5, 6.5 * made_gib);
    node->use.busiest_cpus = 1;
    assert_found("cpu_very_low");
    assert_says("0.5 of 1 CPU busy on average");
}

TEST(an_idle_node_is_named)
{
    give_nodes(4, 32);
    assert_found("");
    job.node[2].use.cpu_seconds = 32 * 0.009 * MADE_SECONDS;
    assert_found("node_idle");
    assert_says("1 of its 4 nodes did next to nothing (c3)");
    job.node[3].use.cpu_seconds = 0;
    assert_found("node_idle");
    assert_says("(c3 and 1 more)");
    for (size_t i = 0; i < 4; i++)
        job.node[i].use.cpu_seconds = 0;
    assert_found("cpu_very_low");
}

/* Its agent was away for most of the time: accounting knows of more than all nodes told. */
TEST(a_node_that_did_not_tell_to_the_end_is_not_idle)
{
    give_nodes(2, 32);
    job.node[1].use.cpu_seconds = 10;
    assert_found("node_idle");
    job.row.record.cpu_seconds = 60 * MADE_SECONDS;
    assert_found("");
    job.node[1].use.cpu_seconds = 0.3 * 32 * MADE_SECONDS;
    assert_found("");
    job.row.record.cpu_seconds = 1.26 * 32 * MADE_SECONDS;
    assert_found("nodes_uneven");
}

TEST(uneven_nodes_are_told_with_the_two_that_differ_most)
{
    give_nodes(3, 32);
    job.node[1].use.cpu_seconds = 32 * 0.476 * MADE_SECONDS;
    assert_found("cpu_low");
    job.node[1].use.cpu_seconds = 32 * 0.474 * MADE_SECONDS;
    assert_found("nodes_uneven");
    assert_says("c1 used 95 % of its CPUs, c2 47 %");
    job.node[1].use.cpu_seconds = NAN;
    assert_found("");
    for (size_t i = 0; i < 3; i++) /* next to no work, of which one did the more */
        job.node[i].use.cpu_seconds = 32 * (i ? 0.02 : 0.09) * MADE_SECONDS;
    assert_found("cpu_very_low");
}

TEST(a_core_with_less_than_its_share_is_noted)
{
    static struct core_facts cores[] = { { 0, 1000 }, { 1, 1000 }, { 2, 1000 }, { 3, 874 } };

    node->core = cores;
    node->n_cores = COUNT(cores);
    cores[3].seconds = 880;
    assert_found("");
    cores[3].seconds = 870;
    assert_found("core_uneven");
    assert_says("core 3 of c1 did 90 % of an even share");
    cores[3].seconds = 0;
    assert_found("core_uneven");
    assert_says("did 0 % of");
    for (size_t i = 0; i < COUNT(cores); i++)
        cores[i].seconds = i % 2 ? 0 : NAN;
    assert_found("");
}

TEST(threads_are_counted_by_name_against_the_cpus)
{
    assert_edge(&job.process[0].threads_peak, 8, 9, "threads_many");
    job.process[0].threads_peak = 128;
    assert_found("threads_many");
    assert_says("solver had 128 threads on 4 CPUs");
    job.process[0].threads_peak = NAN;
    assert_found("");
}

TEST(threads_of_slurm_and_of_helpers_are_not_counted)
{
    facts_process(&job, &arena, STR("srun"))->threads_peak = 20;
    facts_process(&job, &arena, STR("slurmstepd"))->threads_peak = 20;
    facts_process(&job, &arena, STR("other"))->threads_peak = 20; /* of many names */
    assert_found("");
    for (size_t i = 0; i < job.n_processes; i++)
        job.process[i].threads_peak = 4;
    facts_process(&job, &arena, STR("monitor"))->threads_peak = 20;
    facts_process(&job, &arena, STR("monitor"))->cpu_seconds = 3;
    assert_found("");
    facts_process(&job, &arena, STR("monitor"))->cpu_seconds = 1000;
    assert_found("threads_many");
}

TEST(a_process_name_cannot_break_the_sentence)
{
    struct process_facts *process;
    char *name = arena_alloc(&arena, 1 << 20);

    memset(name, 'x', 1 << 20);
    memcpy(name, "a\r\nBcc: x\x1b[2J\xff", 15);
    process = facts_process(&job, &arena, (struct str){ name, 1 << 20 });
    process->threads_peak = 100;
    assert_found("threads_many");
    assert_says("a\\r\\nBcc: x\\x1b[2J\\xff");
    assert_true(finding[0].sentence.n < 400);
}

TEST(a_quota_that_held_it_back_is_told)
{
    double held = 4.0 * MADE_SECONDS;

    assert_edge(&node->use.throttled_seconds, held * 0.049, held * 0.051, "throttled");
}

TEST(a_gpu_without_a_process_is_named)
{
    give_gpus(4, 0.9);
    assert_found("");
    job.gpu[1].processes_peak = 0;
    assert_found("");
    job.gpu[1].utilization_ratio.mean = NAN;
    assert_found("gpu_without_process");
    job.gpu[1].utilization_ratio.mean = 0;
    assert_found("gpu_without_process");
    assert_says("1 of its 4 GPUs never had a process of the job (GPU 1 of g1).");
    job.gpu[1].processes_peak = NAN;
    assert_found("gpu_idle");
}

TEST(idle_and_lazy_gpus_are_told_by_their_degree)
{
    give_gpus(2, 0.251);
    assert_found("");
    give_gpus(2, 0.249);
    assert_found("gpu_low");
    give_gpus(2, 0.151);
    assert_found("gpu_low");
    give_gpus(2, 0.149);
    assert_found("gpu_very_low");
    assert_says("Its GPUs were busy 15 % of the time");
    give_gpus(2, 0.9);
    job.gpu[1].utilization_ratio.mean = 0.011;
    assert_found("");
    job.gpu[1].utilization_ratio.mean = 0.009;
    assert_found("gpu_idle");
    assert_says("1 of its 2 GPUs did next to nothing (GPU 1 of g1).");
    give_gpus(2, NAN);
    assert_found("");
}

/* Without a measurement of its GPUs, what is known is that no CPU did anything. */
TEST(a_gpu_job_that_used_no_cpu_is_found_where_its_gpus_were_not_measured)
{
    give_gpus(2, NAN);
    job.node[0].use.cpu_seconds = 2;
    assert_found("cpu_very_low");
    assert_says("CPUs were idle but for 2 s; GPU use was not measured. Look into its output");
    job.node[0].use.cpu_seconds = 0.5 * MADE_SECONDS; /* CPUs that feed GPUs are seldom busy */
    assert_found("");
    give_gpus(2, 0.9);
    job.node[0].use.cpu_seconds = 2;
    assert_found("");
}

TEST(an_idle_node_with_gpus_is_told_by_its_gpus)
{
    give_gpus(4, 0.9);
    job.row.record.node_count = 2;
    made_use(made_node(&job, &arena, "g2", 8, 32 * made_gib), 0, 2 * made_gib);
    job.gpu[2].utilization_ratio.mean = job.gpu[3].utilization_ratio.mean = 0;
    assert_found("gpu_idle");
}

TEST(what_is_held_beside_gpus_is_noted)
{
    give_gpus(1, 0.9);
    job.total.cpus = 12;
    assert_found("");
    job.total.cpus = 13;
    assert_found("cpus_per_gpu");
    assert_says("13 CPUs and kept 0.1 busy");
    job.node[0].use.cpu_seconds = 12.5 * MADE_SECONDS;
    assert_found("");
    give_gpus(1, 0.9);
    job.node[0].use.memory_peak_bytes = 200 * made_gib;
    job.total.memory_bytes = 240 * made_gib;
    assert_found("");
    job.total.memory_bytes = 241 * made_gib;
    assert_found("memory_per_gpu");
    job.is_running = true;
    assert_found("");
    job.is_running = false;
    job.node[0].use.memory_peak_bytes = 100 * made_gib;
    assert_found("memory_low");
}

TEST(a_job_in_small_pieces_over_nodes_is_noted)
{
    give_nodes(2, 8);
    assert_found("");
    give_nodes(2, 7);
    assert_found("cpus_scattered");
    assert_says("Its 14 CPUs were spread over 2 nodes.");
    give_gpus(4, 0.9);
    job.row.record.node_count = 2;
    job.total.cpus = 8;
    assert_found("");
    job.total.gpus = 3;
    assert_found("gpus_scattered");
    give_gpus(1, 0.9); /* on one of its nodes */
    job.row.record.node_count = 2;
    assert_found("");
}

TEST(a_job_without_cpus_is_not_judged_by_them)
{
    give_nodes(2, 0);
    facts_process(&job, &arena, STR("solver"))->threads_peak = 9;
    assert_found("");
}
