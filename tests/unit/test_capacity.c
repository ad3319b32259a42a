/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is allocated, idle, unusable and stranded, on clusters of a few nodes: the collector
 * capacity, and mila_nodes, which tells the same under other names. */
#include "collected.h"

static struct section *section;

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(NULL, tear_down)

/* The samples that are not 0. */
static void check_some(const char *collector, const char *prefix, const char *expected)
{
    struct buf found;

    buf_init(&found, 1 << 20);
    for (struct str rest = str_of(collect(collector, section, prefix)); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (str_ends(line, STR(" 0")))
            continue;
        buf_put(&found, line);
        buf_byte(&found, '\n');
    }
    assert_str(buf_str(&found), expected);
    buf_free(&found);
}

/* The node with which the authors of slurm_monitoring_and_reporting ask, in their README, what is
 * idle: MIXED, 32 of 80 CPUs allocated, all 8 GPUs in use, no TPU. */
static struct section *cn_a006(void)
{
    return nodes_from("cn-a006 MIXED cpus=32/48/0/80 "
                      "gres=gpu:rtx8000:8(S:0-1),tpu:0 gres_used=gpu:rtx8000:8(IDX:0-7),tpu:0\n");
}

TEST(cn_a006_has_48_idle_cpus_which_are_stranded_and_no_idle_gpu)
{
    section = cn_a006();
    check_some("capacity", "slurm_state_cpus{",
               "slurm_state_cpus{state=\"mixed\",use=\"allocated\"} 32\n"
               "slurm_state_cpus{state=\"mixed\",use=\"idle\"} 48\n");
    check_family("capacity", section, "slurm_state_gpus",
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"allocated\"} 8\n"
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"idle\"} 0\n"
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"unusable\"} 0\n");
    check_some("capacity", "slurm_flag_cpus{", "");
    check_some("capacity", "slurm_flag_gpus{", "");
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 48\n");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"rtx8000\"} 0\n");
    check_family("capacity", section, "slurm_node_reservation_info", "");
}

TEST(cn_a006_has_the_same_figures_under_the_names_of_mila)
{
    section = cn_a006();
    check_family("mila_nodes", section, "slurm_cpus_alloc",
                 "slurm_cpus_alloc{reservation=\"None\"} 32\n");
    check_family("mila_nodes", section, "slurm_cpus_idle",
                 "slurm_cpus_idle{reservation=\"None\"} 48\n");
    check_family("mila_nodes", section, "slurm_cpus_drain",
                 "slurm_cpus_drain{reservation=\"None\"} 0\n");
    check_family("mila_nodes", section, "slurm_cpus_total",
                 "slurm_cpus_total{reservation=\"None\"} 80\n");
    check_family("mila_nodes", section, "slurm_gpus_alloc",
                 "slurm_gpus_alloc{type=\"rtx8000\",reservation=\"None\"} 8\n");
    check_family("mila_nodes", section, "slurm_gpus_idle",
                 "slurm_gpus_idle{type=\"rtx8000\",reservation=\"None\"} 0\n");
    check_family("mila_nodes", section, "slurm_gpus_drain",
                 "slurm_gpus_drain{type=\"rtx8000\",reservation=\"None\"} 0\n");
    check_family("mila_nodes", section, "slurm_gpus_total",
                 "slurm_gpus_total{type=\"rtx8000\",reservation=\"None\"} 8\n");
    check_some("mila_nodes", "slurm_node_states{",
               "slurm_node_states{name=\"cn-a006\",slurm_node_states=\"mixed\"} 1\n");
}

TEST(what_is_free_is_idle_only_where_jobs_can_start)
{
    /* sinfo counts n4 to n6 as idle */
    section = nodes_from("n1 idle cpus=0/8/0/8\n"
                         "n2 mixed+drain cpus=3/0/5/8\n"
                         "n3 down* cpus=0/0/8/8\n"
                         "n4 idle+maintenance+reserved cpus=0/8/0/8\n"
                         "n5 idle+not_responding cpus=0/8/0/8\n"
                         "n6 idle+powered_down+cloud cpus=0/8/0/8\n");
    check_some("capacity", "slurm_state_cpus{",
               "slurm_state_cpus{state=\"idle\",use=\"idle\"} 16\n"
               "slurm_state_cpus{state=\"idle\",use=\"unusable\"} 8\n"
               "slurm_state_cpus{state=\"down\",use=\"unusable\"} 8\n"
               "slurm_state_cpus{state=\"draining\",use=\"allocated\"} 3\n"
               "slurm_state_cpus{state=\"draining\",use=\"unusable\"} 5\n"
               "slurm_state_cpus{state=\"maint\",use=\"unusable\"} 8\n");
    check_family("mila_nodes", section, "slurm_cpus_idle",
                 "slurm_cpus_idle{reservation=\"None\"} 16\n"
                 "slurm_cpus_idle{reservation=\"unknown\"} 0\n");
    check_family("mila_nodes", section, "slurm_cpus_drain",
                 "slurm_cpus_drain{reservation=\"None\"} 21\n"
                 "slurm_cpus_drain{reservation=\"unknown\"} 8\n");
}

TEST(cpus_that_sinfo_calls_other_are_unusable_on_any_node)
{
    section = nodes_from("n1 mixed cpus=4/10/2/16\n");
    check_some("capacity", "slurm_state_cpus{",
               "slurm_state_cpus{state=\"mixed\",use=\"allocated\"} 4\n"
               "slurm_state_cpus{state=\"mixed\",use=\"idle\"} 10\n"
               "slurm_state_cpus{state=\"mixed\",use=\"unusable\"} 2\n");
}

TEST(zero_is_said_of_every_state_and_flag)
{
    section = nodes_from(
        "g1 idle cpus=0/8/0/8 gres=gpu:a100:4,gpu:v100:1 gres_used=gpu:a100:0,gpu:v100:0\n"
        "c1 down cpus=0/0/8/8\n");
    assert_int_equal(count_samples("capacity", section, "slurm_state_cpus{"),
                     n_node_state_words * 3);
    assert_int_equal(count_samples("capacity", section, "slurm_flag_cpus{"), NODE_FLAGS);
    assert_int_equal(count_samples("capacity", section, "slurm_flag_gpus{"), NODE_FLAGS * 2);
    /* of the states that occur, as many types and uses */
    assert_int_equal(count_samples("capacity", section, "slurm_state_gpus{"), 2 * 2 * 3);
}

TEST(a_node_counts_in_each_flag_that_it_has)
{
    section = nodes_from(
        "g1 down+drain+not_responding cpus=2/0/6/8 gres=gpu:a100:4 gres_used=gpu:a100:1(IDX:0)\n"
        "g2 idle+drain cpus=0/0/16/16 gres=gpu:a100:2,gpu:v100:1 "
        "gres_used=gpu:a100:0,gpu:v100:0\n");
    check_some("capacity", "slurm_flag_cpus{",
               "slurm_flag_cpus{flag=\"drain\"} 24\n"
               "slurm_flag_cpus{flag=\"not_responding\"} 8\n");
    check_some("capacity", "slurm_flag_gpus{",
               "slurm_flag_gpus{flag=\"drain\",type=\"a100\"} 6\n"
               "slurm_flag_gpus{flag=\"drain\",type=\"v100\"} 1\n"
               "slurm_flag_gpus{flag=\"not_responding\",type=\"a100\"} 4\n");
}

TEST(free_gpus_without_a_free_cpu_or_memory_are_stranded)
{
    /* nobody can use those of the last, but not for want of CPUs */
    section =
        nodes_from("no-cpu allocated cpus=8/0/0/8 gres=gpu:a100:4 gres_used=gpu:a100:1(IDX:0)\n"
                   "no-memory mixed cpus=4/4/0/8 gres=gpu:a100:4 gres_used=gpu:a100:3(IDX:0-2) "
                   "memory=64000M memory_alloc=63999.5M\n"
                   "some-memory mixed cpus=4/4/0/8 gres=gpu:v100:4 gres_used=gpu:v100:2(IDX:0-1) "
                   "memory=64000M memory_alloc=63999M\n"
                   "drained drained cpus=0/0/8/8 gres=gpu:a100:4 gres_used=gpu:a100:0\n");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"a100\"} 4\n"
                 "slurm_stranded_gpus{type=\"v100\"} 0\n");
    check_some("capacity", "slurm_state_gpus{",
               "slurm_state_gpus{state=\"mixed\",type=\"a100\",use=\"allocated\"} 3\n"
               "slurm_state_gpus{state=\"mixed\",type=\"a100\",use=\"idle\"} 1\n"
               "slurm_state_gpus{state=\"mixed\",type=\"v100\",use=\"allocated\"} 2\n"
               "slurm_state_gpus{state=\"mixed\",type=\"v100\",use=\"idle\"} 2\n"
               "slurm_state_gpus{state=\"allocated\",type=\"a100\",use=\"allocated\"} 1\n"
               "slurm_state_gpus{state=\"allocated\",type=\"a100\",use=\"idle\"} 3\n"
               "slurm_state_gpus{state=\"drained\",type=\"a100\",use=\"unusable\"} 4\n");
}

TEST(cpus_of_a_node_with_a_free_gpu_of_any_type_are_not_stranded)
{
    /* no free GPU is expected on the last two: one has none, the other takes no jobs */
    section =
        nodes_from("g1 mixed cpus=4/4/0/8 gres=gpu:a100:2,gpu:v100:2 "
                   "gres_used=gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)\n"
                   "g2 mixed cpus=4/3/0/7 gres=gpu:a100:2,gpu:v100:2 "
                   "gres_used=gpu:a100:2(IDX:0-1),gpu:v100:2(IDX:2-3)\n"
                   "c1 idle cpus=0/16/0/16 gres=(null) gres_used=gpu:0\n"
                   "g3 mixed+drain cpus=4/0/4/8 gres=gpu:a100:1 gres_used=gpu:a100:1(IDX:0)\n");
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 3\n");
}

TEST(what_is_not_known_is_neither_idle_nor_stranded)
{
    section = nodes_from("g1 idle gres=gpu:a100:4\n");
    assert_int_equal(count_samples("capacity", section, "slurm_state_cpus{"),
                     (n_node_state_words - 1) * 3);
    check_family("capacity", section, "slurm_state_gpus", "");
    check_family("capacity", section, "slurm_stranded_cpus", "");
    check_family("capacity", section, "slurm_stranded_gpus", "");
    check_family("mila_nodes", section, "slurm_cpus_idle", "");
    check_family("mila_nodes", section, "slurm_gpus_idle", "");
    check_family("mila_nodes", section, "slurm_gpus_total",
                 "slurm_gpus_total{type=\"a100\",reservation=\"None\"} 4\n");
    /* that the GPUs are free is known then; what there is beside them is not */
    section = section_unref(section);
    section = nodes_from("g1 idle gres=gpu:a100:4 gres_used=gpu:a100:0\n");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"a100\"} 0\n");
}

TEST(a_cluster_without_gpus_strands_nothing)
{
    section = nodes_from("n1 idle cpus=0/8/0/8\n");
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 0\n");
    check_family("capacity", section, "slurm_stranded_gpus", "");
    check_family("capacity", section, "slurm_flag_gpus", "");
}

TEST(a_reserved_node_tells_its_reservation)
{
    /* the source does not name that of n1 */
    section = nodes_from("g1 mixed+reserved cpus=2/6/0/8 gres=gpu:a100:4 "
                         "gres_used=gpu:a100:1(IDX:0) reservation='course \"2\"'\n"
                         "n1 idle+reserved cpus=0/8/0/8\n"
                         "n2 idle cpus=0/8/0/8 gres=gpu:8 gres_used=gpu:0\n");
    check_family("capacity", section, "slurm_node_reservation_info",
                 "slurm_node_reservation_info{node=\"g1\",reservation=\"course \\\"2\\\"\"} 1\n");
    check_family("mila_nodes", section, "slurm_cpus_total",
                 "slurm_cpus_total{reservation=\"course \\\"2\\\"\"} 8\n"
                 "slurm_cpus_total{reservation=\"unknown\"} 8\n"
                 "slurm_cpus_total{reservation=\"None\"} 8\n");
    check_family("mila_nodes", section, "slurm_gpus_idle",
                 "slurm_gpus_idle{type=\"a100\",reservation=\"course \\\"2\\\"\"} 3\n"
                 "slurm_gpus_idle{type=\"none\",reservation=\"None\"} 8\n");
}

TEST(a_node_is_in_one_of_the_eighteen_states_of_mila)
{
    static const struct {
        const char *slurm, *mila;
    } words[] = {
        { "idle", "idle" },
        { "allocated", "allocated" },
        { "mixed", "mixed" },
        { "allocated+completing", "allocated" },
        { "completing", "completing" },
        { "down", "down" },
        { "down+drain", "down" },
        { "down+not_responding", "down" },
        { "idle+drain", "drained" },
        { "mixed+drain", "drained" },
        { "idle+drain+not_responding", "drained" },
        { "idle+not_responding", "not_responding" },
        { "idle*", "not_responding" },
        { "idle+maintenance+reserved", "maint" },
        { "idle+reserved", "reserved" },
        { "mixed+reserved", "mixed" },
        { "idle+planned", "idle" },
        { "idle#", "idle" },
        { "idle+powered_down", "idle" },
        { "powering_up", "power_up" },
        { "powered_down", "power_down" },
        { "idle+reboot_issued", "reboot" },
        { "idle+fail", "fail" },
        { "allocated+fail", "failing" },
        { "future", "future" },
        { "idle+invalid_reg", "unknown" },
        { "unknown", "unknown" },
    };
    char expected[200];

    for (size_t i = 0; i < COUNT(words); i++) {
        section = nodes_from("n1 %s cpus=0/8/0/8\n", words[i].slurm);
        snprintf(expected, sizeof(expected),
                 "slurm_node_states{name=\"n1\",slurm_node_states=\"%s\"} 1\n", words[i].mila);
        check_some("mila_nodes", "slurm_node_states{", expected);
        assert_int_equal(count_samples("mila_nodes", section, "slurm_node_states{"), 18);
        section = section_unref(section);
    }
}

TEST(a_node_told_twice_is_in_one_state)
{
    section = nodes_from("n1 idle cpus=0/8/0/8\n"
                         "n1 down cpus=0/0/8/8\n");
    check_some("mila_nodes", "slurm_node_states{",
               "slurm_node_states{name=\"n1\",slurm_node_states=\"idle\"} 1\n");
}
