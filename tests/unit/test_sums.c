/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of web/sums: totals of clusters. */
#include "made_board.h"

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

struct summed {
    struct cluster_sums sums;
    struct arena arena;
    struct section *nodes, *jobs;
};

static struct summed sum(struct section *nodes, struct section *jobs)
{
    struct summed summed = { .nodes = nodes, .jobs = jobs };

    cluster_sums_make(&summed.sums, nodes, jobs, &summed.arena);
    return summed;
}

static void end(struct summed *summed)
{
    arena_clear(&summed->arena);
    section_unref(summed->nodes);
    section_unref(summed->jobs);
}

TEST(what_is_free_on_a_node_that_takes_no_jobs_is_unusable)
{
    struct section *nodes = made_nodes();
    struct summed summed;

    made_partition(nodes, "main");
    made_node(nodes, "n1", "mixed", 32, 8, 0);
    made_node(nodes, "n2", "idle+drain", 16, 4, 0);
    summed = sum(nodes, NULL);
    assert_string_equal(AMOUNT(summed.sums.cpus), "48 12 24 12");
    assert_string_equal(IN_GIB(summed.sums.memory_bytes), "128 64 32 32");
    end(&summed);
}

TEST(what_nobody_tells_is_not_0)
{
    struct section *nodes = made_nodes(), *jobs = made_jobs();
    struct node *node;
    struct job *job;
    struct summed summed;

    made_partition(nodes, "main");
    node = made_node(nodes, "n1", "idle", 32, 0, 0);
    node->cpus_alloc = MODEL_UNKNOWN_U32;
    node->memory_bytes = node->memory_alloc_bytes = MODEL_UNKNOWN_U64;
    job = made_job(jobs, 1, "RUNNING", "alice", "physics");
    job->tres = 0;
    job->memory_bytes = MODEL_UNKNOWN_U64;
    summed = sum(nodes, jobs);
    assert_string_equal(AMOUNT(summed.sums.cpus), "32 - - -");
    assert_string_equal(AMOUNT(summed.sums.memory_bytes), "- - - -");
    assert_string_equal(HELD(summed.sums.job_state[0].jobs), "1 4 - -");
    end(&summed);

    summed = sum(NULL, NULL);
    assert_string_equal(AMOUNT(summed.sums.cpus), "- - - -");
    assert_true(isnan(summed.sums.stranded_gpus));
    assert_int_equal(summed.sums.n_states, 0);
    assert_int_equal(summed.sums.n_job_states, 0);
    end(&summed);
}

TEST(gpus_are_told_by_type)
{
    struct section *nodes = made_nodes();
    struct node *node;
    struct summed summed;

    made_partition(nodes, "gpu");
    node = made_node(nodes, "g1", "mixed", 32, 8, 0);
    node->gres = made_text(nodes, "gpu:v100:4");
    node->gres_used = made_text(nodes, "gpu:v100:1(IDX:0)");
    node = made_node(nodes, "g2", "down", 32, 0, 0);
    node->gres = made_text(nodes, "gpu:a100:8");
    node->gres_used = made_text(nodes, "gpu:a100:0");
    node = made_node(nodes, "g3", "idle", 32, 0, 0);
    node->gres = made_text(nodes, "gpu:2");
    node->gres_used = made_text(nodes, "gpu:0");
    summed = sum(nodes, NULL);
    assert_int_equal(summed.sums.n_gpus, 3);
    assert_str(summed.sums.gpu[0].type, "");
    assert_string_equal(AMOUNT(summed.sums.gpu[0].amount), "2 0 2 0");
    assert_str(summed.sums.gpu[1].type, "a100");
    assert_string_equal(AMOUNT(summed.sums.gpu[1].amount), "8 0 0 8");
    assert_str(summed.sums.gpu[2].type, "v100");
    assert_string_equal(AMOUNT(summed.sums.gpu[2].amount), "4 1 3 0");
    assert_true(summed.sums.partition[0].gpus == 14);
    assert_true(summed.sums.partition[0].gpus_allocated == 1);
    end(&summed);
}

TEST(a_gpu_beside_which_no_cpu_is_left_is_stranded)
{
    struct section *nodes = made_nodes();
    struct node *node;
    struct summed summed;

    made_partition(nodes, "gpu");
    node = made_node(nodes, "g1", "allocated", 32, 32, 0);
    node->gres = made_text(nodes, "gpu:a100:4");
    node->gres_used = made_text(nodes, "gpu:a100:1");
    node = made_node(nodes, "g2", "mixed", 32, 8, 0);
    node->gres = made_text(nodes, "gpu:a100:4");
    node->gres_used = made_text(nodes, "gpu:a100:4");
    summed = sum(nodes, NULL);
    assert_true(summed.sums.stranded_gpus == 3);
    assert_true(summed.sums.stranded_cpus == 24);
    end(&summed);
}

TEST(the_latest_trouble_comes_first)
{
    struct section *nodes = made_nodes();
    struct summed summed;

    made_partition(nodes, "main");
    made_node(nodes, "n1", "down", 4, 0, 0)->reason_time = 100;
    made_node(nodes, "n2", "idle", 4, 0, 0);
    made_node(nodes, "n3", "mixed+drain", 4, 1, 0)->reason_time = 200;
    made_node(nodes, "n5", "idle", 4, 0, 0);
    summed = sum(nodes, NULL);
    assert_int_equal(summed.sums.n_broken, 2);
    assert_str(section_text(nodes, summed.sums.broken[0]->name), "n3");
    assert_str(section_text(nodes, summed.sums.broken[1]->name), "n1");
    assert_int_equal(summed.sums.n_states, 3);
    assert_str(summed.sums.state[0].word, "idle");
    assert_int_equal(summed.sums.state[0].nodes, 2);
    assert_true(summed.sums.state[0].cpus == 8);
    assert_int_equal(summed.sums.partition[0].nodes, 4);
    assert_int_equal(summed.sums.partition[0].nodes_unusable, 2);
    end(&summed);
}

TEST(every_task_of_a_waiting_array_asks_for_its_own)
{
    struct section *jobs = made_jobs();
    struct summed summed;
    struct job *job;

    job = made_job(jobs, 1, "PENDING", "alice", "physics");
    job->tasks = 10;
    job->reason = made_text(jobs, "Priority");
    job->tres = made_text(jobs, "cpu=4,gres/gpu=2,gres/gpu:a100=2");
    made_job(jobs, 2, "RUNNING", "alice", "physics");
    summed = sum(NULL, jobs);
    assert_int_equal(summed.sums.n_job_states, 2);
    assert_str(summed.sums.job_state[0].word, "PENDING");
    assert_string_equal(HELD(summed.sums.job_state[0].jobs), "10 40 20 80");
    assert_str(summed.sums.job_state[1].word, "RUNNING");
    assert_string_equal(HELD(summed.sums.job_state[1].jobs), "1 4 0 8");
    assert_int_equal(summed.sums.n_reasons, 1);
    assert_str(summed.sums.reason[0].word, "Priority");
    assert_string_equal(HELD(summed.sums.reason[0].jobs), "10 40 20 80");
    assert_int_equal(summed.sums.n_users, 1);
    assert_string_equal(HELD(summed.sums.user[0].holding), "1 4 0 8");
    assert_string_equal(HELD(summed.sums.user[0].pending), "10 40 20 80");
    end(&summed);
}

TEST(a_hidden_state_is_called_no_other)
{
    struct section *jobs = made_jobs();
    struct summed summed;

    made_job(jobs, 1, "UNKNOWN", "alice", "physics");
    made_job(jobs, 2, "COMPLETED", "bob", "physics");
    made_job(jobs, 3, "COMPLETING", "carol", "physics"); /* squeue's text has no more */
    summed = sum(NULL, jobs);
    assert_int_equal(summed.sums.n_job_states, 3);
    assert_str(summed.sums.job_state[0].word, "COMPLETED");
    assert_string_equal(HELD(summed.sums.job_state[0].jobs), "1 0 0 0");
    assert_str(summed.sums.job_state[1].word, "COMPLETING");
    assert_string_equal(HELD(summed.sums.job_state[1].jobs), "1 4 0 8");
    assert_str(summed.sums.job_state[2].word, "UNKNOWN");
    assert_string_equal(HELD(summed.sums.job_state[2].jobs), "1 - - -");
    assert_int_equal(summed.sums.n_users, 1); /* who holds or waits */
    assert_str(summed.sums.user[0].name, "carol");
    end(&summed);
}

TEST(a_suspended_job_holds_its_memory_but_no_cpus)
{
    struct section *jobs = made_jobs();
    struct summed summed;

    made_job(jobs, 1, "SUSPENDED", "alice", "physics");
    summed = sum(NULL, jobs);
    assert_string_equal(HELD(summed.sums.user[0].holding), "1 0 0 8");
    end(&summed);
}

TEST(a_waiting_job_counts_in_every_partition_that_it_may_start_in)
{
    struct section *nodes = made_nodes(), *jobs = made_jobs();
    struct summed summed;

    made_partition(nodes, "main");
    made_partition(nodes, "gpu");
    made_partition(nodes, "empty");
    made_job(jobs, 1, "PENDING", "alice", "physics")->partition = made_text(jobs, "gpu,main");
    made_job(jobs, 2, "RUNNING", "bob", "physics");
    summed = sum(nodes, jobs);
    assert_int_equal(summed.sums.n_partitions, 3);
    assert_str(summed.sums.partition[0].jobs.name, "main");
    assert_string_equal(HELD(summed.sums.partition[0].jobs.holding), "1 4 0 8");
    assert_string_equal(HELD(summed.sums.partition[0].jobs.pending), "1 4 0 8");
    assert_string_equal(HELD(summed.sums.partition[1].jobs.holding), "0 0 0 0");
    assert_string_equal(HELD(summed.sums.partition[1].jobs.pending), "1 4 0 8");
    assert_string_equal(HELD(summed.sums.partition[2].jobs.pending), "0 0 0 0");
    end(&summed);
}

TEST(who_holds_most_comes_first_and_nobody_is_nobody)
{
    struct section *jobs = made_jobs();
    struct summed summed;

    made_job(jobs, 1, "RUNNING", "alice", "physics");
    made_job(jobs, 2, "RUNNING", "bob", "biology")->cpus = 100;
    made_job(jobs, 3, "PENDING", "carol", "biology")->cpus = 1000;
    made_job(jobs, 4, "RUNNING", "", "")->cpus = 10000;
    summed = sum(NULL, jobs);
    assert_int_equal(summed.sums.n_users, 3);
    assert_str(summed.sums.user[0].name, "bob");
    assert_str(summed.sums.user[1].name, "alice");
    assert_str(summed.sums.user[2].name, "carol");
    assert_int_equal(summed.sums.n_accounts, 2);
    assert_str(summed.sums.account[0].name, "biology");
    end(&summed);
}
