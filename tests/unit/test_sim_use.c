/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/sim_use: what simulated jobs use. */
#include "test.h"

#include "source/sim_use.h"

#include <math.h>

static const int64_t now = 1794225600;
static const struct sim sim = { .nodes = 64, .jobs = 512, .seed = 1, .users = 20 };

static struct job made_job(uint32_t id)
{
    return (struct job){
        .id = id,
        .state = { .base = JOB_RUNNING },
        .cpus = 16,
        .node_count = 2,
        .memory_bytes = UINT64_C(64) << 30,
        .submit_time = now - 100,
        .start_time = now,
    };
}

static struct sim_use use_of(const struct job *job, size_t node, int64_t time)
{
    struct sim_use use;

    sim_use(&sim, job, STR("cpu=16,mem=64G,node=2,billing=16,gres/gpu=4,gres/gpu:a100=4"), node,
            time, &use);
    return use;
}

TEST(counters_grow_and_stay_within_what_was_given)
{
    for (uint32_t id = 1; id < 300; id++) {
        struct job job = made_job(id);
        struct sim_use before = use_of(&job, 0, now);

        for (int64_t t = 5; t < 20000; t = t * 5 / 4 + 1) {
            struct sim_use use = use_of(&job, 0, now + t);

            assert_true(use.cpu_seconds >= before.cpu_seconds);
            assert_true(use.cpu_seconds <= (double)t * job.cpus / job.node_count);
            assert_true(fabs(use.user_seconds + use.system_seconds - use.cpu_seconds) < 1e-6);
            assert_true(use.memory_bytes <= use.memory_peak_bytes);
            assert_true(use.memory_peak_bytes >= before.memory_peak_bytes);
            assert_true(use.memory_peak_bytes <= (double)job.memory_bytes / job.node_count);
            assert_true(use.read_bytes >= before.read_bytes);
            assert_true(use.written_bytes >= before.written_bytes);
            assert_int_equal(use.n_gpus, 2);
            for (size_t i = 0; i < use.n_gpus; i++)
                assert_true(use.gpu[i].utilization >= 0 && use.gpu[i].utilization <= 1);
            before = use;
        }
    }
}

TEST(nothing_is_used_before_the_start_nor_after_the_end)
{
    struct job job = made_job(7);
    struct sim_use at_end, later;

    assert_true(use_of(&job, 0, now - 1).cpu_seconds == 0);
    assert_true(use_of(&job, 0, now - 1).memory_peak_bytes == 0);
    assert_int_equal(use_of(&job, 0, now - 1).n_gpus, 0);
    job.state.base = JOB_COMPLETED;
    job.end_time = now + 1000;
    at_end = use_of(&job, 0, now + 1000);
    later = use_of(&job, 0, now + 100000);
    assert_true(at_end.cpu_seconds > 0);
    assert_true(at_end.cpu_seconds == later.cpu_seconds);
    assert_true(at_end.read_bytes == later.read_bytes);
}

TEST(a_job_that_waits_uses_nothing)
{
    struct job job = made_job(7);

    job.state.base = JOB_PENDING;
    assert_true(use_of(&job, 0, now + 1000).cpu_seconds == 0);
    job.start_time = 0;
    assert_true(use_of(&job, 0, now + 1000).cpu_seconds == 0);
}

TEST(a_job_that_was_killed_for_its_memory_had_used_it_all)
{
    struct job job = made_job(7);

    job.state.base = JOB_OUT_OF_MEMORY;
    job.end_time = now + 1000;
    assert_true(use_of(&job, 0, now + 1000).memory_peak_bytes == (double)(UINT64_C(32) << 30));
}

/* Every page that tells of waste has some to tell of. */
TEST(some_waste_cores_some_memory_some_gpus_and_most_behave)
{
    unsigned cores = 0, memory = 0, gpus = 0, nodes = 0, good = 0;

    for (uint32_t id = 1; id <= 1000; id++) {
        struct job job = made_job(id);
        struct sim_use first = use_of(&job, 0, now + 7200), second = use_of(&job, 1, now + 7200);
        double cpu = first.cpu_seconds / 7200 / 8;
        double ratio = first.memory_peak_bytes / (double)(UINT64_C(32) << 30);

        cores += cpu < 0.2;
        memory += ratio < 0.1;
        gpus += first.gpu[0].utilization < 0.05;
        nodes += second.cpu_seconds == 0;
        good += cpu > 0.7 && ratio > 0.4 && first.gpu[0].utilization > 0.5;
    }
    assert_in_range(cores, 100, 250);
    assert_in_range(memory, 80, 160);
    assert_in_range(gpus, 50, 120);
    assert_in_range(nodes, 30, 100);
    assert_in_range(good, 450, 700);
}

TEST(the_same_is_told_whenever_it_is_asked)
{
    struct job job = made_job(4711);
    struct sim_use a = use_of(&job, 1, now + 3333), b = use_of(&job, 1, now + 3333);

    assert_true(a.cpu_seconds == b.cpu_seconds && a.memory_bytes == b.memory_bytes &&
                a.gpu[1].power_watts == b.gpu[1].power_watts);
}
