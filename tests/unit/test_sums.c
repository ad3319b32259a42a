/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/sums: totals of clusters. */
#include "sections.h"

#include "web/sums.h"

#include <math.h>

#define GIB (UINT64_C(1) << 30)

/* Defaults for the lines that follow them. */
#define NODES "* partitions=main memory=64G memory_alloc=32G\n"
#define JOBS  "* user=alice partition=main cpus=4 memory=8G tres=cpu=4,mem=8G,node=1,billing=4\n"

/* "32 16 8 8"; what is not told is "-". */
static const char *shown(const double *amount, size_t n)
{
    static char text[200];
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        at +=
            (size_t)(isnan(amount[i])
                         ? snprintf(text + at, sizeof(text) - at, "%s-", i ? " " : "")
                         : snprintf(text + at, sizeof(text) - at, "%s%g", i ? " " : "", amount[i]));
    return text;
}

#define AMOUNT(of)                                                                                 \
    shown((const double[]){ (of).total, (of).allocated, (of).idle, (of).unusable }, 4)
#define IN_GIB(of)                                                                                 \
    shown((const double[]){ (of).total / GIB, (of).allocated / GIB, (of).idle / GIB,               \
                            (of).unusable / GIB },                                                 \
          4)
#define HELD(of)                                                                                   \
    shown((const double[]){ (of).jobs, (of).cpus, (of).gpus, (of).memory_bytes / GIB }, 4)

static struct section *nodes, *jobs;
static struct cluster_sums sums;
static struct arena arena;

static void tear_down(void)
{
    arena_clear(&arena);
    nodes = section_unref(nodes);
    jobs = section_unref(jobs);
}

FIXTURE(NULL, tear_down)

static void sum(void)
{
    cluster_sums_make(&sums, nodes, jobs, &arena);
}

TEST(what_is_free_on_a_node_that_takes_no_jobs_is_unusable)
{
    nodes = nodes_from(NODES "n1 mixed cpus=32 cpus_alloc=8\n"
                             "n2 idle+drain cpus=16 cpus_alloc=4\n");
    sum();
    assert_string_equal(AMOUNT(sums.cpus), "48 12 24 12");
    assert_string_equal(IN_GIB(sums.memory_bytes), "128 64 32 32");
}

TEST(what_nobody_tells_is_not_0)
{
    nodes = nodes_from("n1 idle cpus=32 partitions=main\n");
    jobs = jobs_from("RUNNING cpus=4 memory=unknown partition=main\n");
    sum();
    assert_string_equal(AMOUNT(sums.cpus), "32 - - -");
    assert_string_equal(AMOUNT(sums.memory_bytes), "- - - -");
    assert_string_equal(HELD(sums.job_state[0].jobs), "1 4 - -");

    tear_down();
    sum();
    assert_string_equal(AMOUNT(sums.cpus), "- - - -");
    assert_true(isnan(sums.stranded_gpus));
    assert_int_equal(sums.n_states, 0);
    assert_int_equal(sums.n_job_states, 0);
}

TEST(gpus_are_told_by_type)
{
    nodes = nodes_from(NODES
                       "g1 mixed cpus=32 cpus_alloc=8 gres=gpu:v100:4 gres_used=gpu:v100:1(IDX:0)\n"
                       "g2 down cpus=32 cpus_alloc=0 gres=gpu:a100:8 gres_used=gpu:a100:0\n"
                       "g3 idle cpus=32 cpus_alloc=0 gres=gpu:2 gres_used=gpu:0\n");
    sum();
    assert_int_equal(sums.n_gpus, 3);
    assert_str(sums.gpu[0].type, "");
    assert_string_equal(AMOUNT(sums.gpu[0].amount), "2 0 2 0");
    assert_str(sums.gpu[1].type, "a100");
    assert_string_equal(AMOUNT(sums.gpu[1].amount), "8 0 0 8");
    assert_str(sums.gpu[2].type, "v100");
    assert_string_equal(AMOUNT(sums.gpu[2].amount), "4 1 3 0");
    assert_true(sums.partition[0].gpus == 14);
    assert_true(sums.partition[0].gpus_allocated == 1);
}

TEST(a_gpu_beside_which_no_cpu_is_left_is_stranded)
{
    nodes =
        nodes_from(NODES "g1 allocated cpus=32 cpus_alloc=32 gres=gpu:a100:4 gres_used=gpu:a100:1\n"
                         "g2 mixed cpus=32 cpus_alloc=8 gres=gpu:a100:4 gres_used=gpu:a100:4\n");
    sum();
    assert_true(sums.stranded_gpus == 3);
    assert_true(sums.stranded_cpus == 24);
}

TEST(the_latest_trouble_comes_first)
{
    nodes = nodes_from(NODES "n1 down cpus=4 reason_time=100\n"
                             "n2 idle cpus=4\n"
                             "n3 mixed+drain cpus=4 cpus_alloc=1 reason_time=200\n"
                             "n5 idle cpus=4\n");
    sum();
    assert_int_equal(sums.n_broken, 2);
    assert_str(section_text(nodes, sums.broken[0]->name), "n3");
    assert_str(section_text(nodes, sums.broken[1]->name), "n1");
    assert_int_equal(sums.n_states, 3);
    assert_str(sums.state[0].word, "idle");
    assert_int_equal(sums.state[0].nodes, 2);
    assert_true(sums.state[0].cpus == 8);
    assert_int_equal(sums.partition[0].nodes, 4);
    assert_int_equal(sums.partition[0].nodes_unusable, 2);
}

TEST(every_task_of_a_waiting_array_asks_for_its_own)
{
    jobs = jobs_from(JOBS "PENDING tasks=10 reason=Priority tres=cpu=4,gres/gpu=2,gres/gpu:a100=2\n"
                          "RUNNING\n");
    sum();
    assert_int_equal(sums.n_job_states, 2);
    assert_str(sums.job_state[0].word, "PENDING");
    assert_string_equal(HELD(sums.job_state[0].jobs), "10 40 20 80");
    assert_str(sums.job_state[1].word, "RUNNING");
    assert_string_equal(HELD(sums.job_state[1].jobs), "1 4 0 8");
    assert_int_equal(sums.n_reasons, 1);
    assert_str(sums.reason[0].word, "Priority");
    assert_string_equal(HELD(sums.reason[0].jobs), "10 40 20 80");
    assert_int_equal(sums.n_users, 1);
    assert_string_equal(HELD(sums.user[0].holding), "1 4 0 8");
    assert_string_equal(HELD(sums.user[0].pending), "10 40 20 80");
}

TEST(a_hidden_state_is_called_no_other)
{
    /* squeue's text has no more of a completing job */
    jobs = jobs_from(JOBS "UNKNOWN\n"
                          "COMPLETED user=bob\n"
                          "COMPLETING user=carol\n");
    sum();
    assert_int_equal(sums.n_job_states, 3);
    assert_str(sums.job_state[0].word, "COMPLETED");
    assert_string_equal(HELD(sums.job_state[0].jobs), "1 0 0 0");
    assert_str(sums.job_state[1].word, "COMPLETING");
    assert_string_equal(HELD(sums.job_state[1].jobs), "1 4 0 8");
    assert_str(sums.job_state[2].word, "UNKNOWN");
    assert_string_equal(HELD(sums.job_state[2].jobs), "1 - - -");
    assert_int_equal(sums.n_users, 1); /* who holds or waits */
    assert_str(sums.user[0].name, "carol");
}

TEST(a_suspended_job_holds_its_memory_but_no_cpus)
{
    jobs = jobs_from(JOBS "SUSPENDED\n");
    sum();
    assert_string_equal(HELD(sums.user[0].holding), "1 0 0 8");
}

TEST(a_waiting_job_counts_in_every_partition_that_it_may_start_in)
{
    nodes = nodes_from("partition main\n"
                       "partition gpu\n"
                       "partition empty\n");
    jobs = jobs_from(JOBS "PENDING partition=gpu,main\n"
                          "RUNNING user=bob\n");
    sum();
    assert_int_equal(sums.n_partitions, 3);
    assert_str(sums.partition[0].jobs.name, "main");
    assert_string_equal(HELD(sums.partition[0].jobs.holding), "1 4 0 8");
    assert_string_equal(HELD(sums.partition[0].jobs.pending), "1 4 0 8");
    assert_string_equal(HELD(sums.partition[1].jobs.holding), "0 0 0 0");
    assert_string_equal(HELD(sums.partition[1].jobs.pending), "1 4 0 8");
    assert_string_equal(HELD(sums.partition[2].jobs.pending), "0 0 0 0");
}

TEST(who_holds_most_comes_first_and_nobody_is_nobody)
{
    jobs = jobs_from(JOBS "RUNNING\n"
                          "RUNNING user=bob account=biology cpus=100\n"
                          "PENDING user=carol account=biology cpus=1000\n"
                          "RUNNING user= account= cpus=10000\n");
    sum();
    assert_int_equal(sums.n_users, 3);
    assert_str(sums.user[0].name, "bob");
    assert_str(sums.user[1].name, "alice");
    assert_str(sums.user[2].name, "carol");
    assert_int_equal(sums.n_accounts, 2);
    assert_str(sums.account[0].name, "biology");
}
