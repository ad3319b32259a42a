/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is allocated, idle, unusable and stranded, on clusters of a few nodes: the collector
 * capacity, and mila_nodes, which tells the same under other names. */
#include "collected.h"

#include <math.h>

enum { NODES_MAX = 8 };

#define MIB (UINT64_C(1) << 20)

static struct section *new_cluster(void)
{
    struct section *section = section_new(KIND_NODES);

    section->nodes.node = ARENA_ARRAY(&section->arena, struct node, NODES_MAX);
    return section;
}

static symbol put(struct section *section, const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

/* With sinfo's A/I/O/T; nothing else is known of it. */
static struct node *add_node(struct section *section, const char *name, const char *state,
                             uint32_t allocated, uint32_t idle, uint32_t other)
{
    struct node *node = &section->nodes.node[section->nodes.n++];

    assert_true(section->nodes.n <= NODES_MAX);
    *node = (struct node){
        .name = put(section, name),
        .cpus = allocated + idle + other,
        .cpus_alloc = allocated,
        .cpus_idle = idle,
        .cpus_other = other,
        .cpu_load = NAN,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .memory_alloc_bytes = MODEL_UNKNOWN_U64,
        .memory_free_bytes = MODEL_UNKNOWN_U64,
        .weight = MODEL_UNKNOWN_U32,
    };
    assert_true(node_state_parse(str_of(state), &node->state));
    return node;
}

static void add_gpus(struct section *section, struct node *node, const char *gres, const char *used)
{
    node->gres = put(section, gres);
    node->gres_used = put(section, used);
}

/* The samples that are not 0. */
static void check_some(const char *collector, const struct section *section, const char *prefix,
                       const char *expected)
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
    struct section *section = new_cluster();
    struct node *node = add_node(section, "cn-a006", "MIXED", 32, 48, 0);

    add_gpus(section, node, "gpu:rtx8000:8(S:0-1),tpu:0", "gpu:rtx8000:8(IDX:0-7),tpu:0");
    return section;
}

TEST(cn_a006_has_48_idle_cpus_which_are_stranded_and_no_idle_gpu)
{
    struct section *section = cn_a006();

    check_some("capacity", section, "slurm_state_cpus{",
               "slurm_state_cpus{state=\"mixed\",use=\"allocated\"} 32\n"
               "slurm_state_cpus{state=\"mixed\",use=\"idle\"} 48\n");
    check_family("capacity", section, "slurm_state_gpus",
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"allocated\"} 8\n"
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"idle\"} 0\n"
                 "slurm_state_gpus{state=\"mixed\",type=\"rtx8000\",use=\"unusable\"} 0\n");
    check_some("capacity", section, "slurm_flag_cpus{", "");
    check_some("capacity", section, "slurm_flag_gpus{", "");
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 48\n");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"rtx8000\"} 0\n");
    check_family("capacity", section, "slurm_node_reservation_info", "");
    section_unref(section);
}

TEST(cn_a006_has_the_same_figures_under_the_names_of_mila)
{
    struct section *section = cn_a006();

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
    check_some("mila_nodes", section, "slurm_node_states{",
               "slurm_node_states{name=\"cn-a006\",slurm_node_states=\"mixed\"} 1\n");
    section_unref(section);
}

TEST(what_is_free_is_idle_only_where_jobs_can_start)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle", 0, 8, 0);
    add_node(section, "n2", "mixed+drain", 3, 0, 5);
    add_node(section, "n3", "down*", 0, 0, 8);
    /* sinfo counts these as idle */
    add_node(section, "n4", "idle+maintenance+reserved", 0, 8, 0);
    add_node(section, "n5", "idle+not_responding", 0, 8, 0);
    add_node(section, "n6", "idle+powered_down+cloud", 0, 8, 0);
    check_some("capacity", section, "slurm_state_cpus{",
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
    section_unref(section);
}

TEST(cpus_that_sinfo_calls_other_are_unusable_on_any_node)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "mixed", 4, 10, 2);
    check_some("capacity", section, "slurm_state_cpus{",
               "slurm_state_cpus{state=\"mixed\",use=\"allocated\"} 4\n"
               "slurm_state_cpus{state=\"mixed\",use=\"idle\"} 10\n"
               "slurm_state_cpus{state=\"mixed\",use=\"unusable\"} 2\n");
    section_unref(section);
}

TEST(zero_is_said_of_every_state_and_flag)
{
    struct section *section = new_cluster();

    add_gpus(section, add_node(section, "g1", "idle", 0, 8, 0), "gpu:a100:4,gpu:v100:1",
             "gpu:a100:0,gpu:v100:0");
    add_node(section, "c1", "down", 0, 0, 8);
    assert_int_equal(count_samples("capacity", section, "slurm_state_cpus{"),
                     n_node_state_words * 3);
    assert_int_equal(count_samples("capacity", section, "slurm_flag_cpus{"), NODE_FLAGS);
    assert_int_equal(count_samples("capacity", section, "slurm_flag_gpus{"), NODE_FLAGS * 2);
    /* of the states that occur, as many types and uses */
    assert_int_equal(count_samples("capacity", section, "slurm_state_gpus{"), 2 * 2 * 3);
    section_unref(section);
}

TEST(a_node_counts_in_each_flag_that_it_has)
{
    struct section *section = new_cluster();

    add_gpus(section, add_node(section, "g1", "down+drain+not_responding", 2, 0, 6), "gpu:a100:4",
             "gpu:a100:1(IDX:0)");
    add_gpus(section, add_node(section, "g2", "idle+drain", 0, 0, 16), "gpu:a100:2,gpu:v100:1",
             "gpu:a100:0,gpu:v100:0");
    check_some("capacity", section, "slurm_flag_cpus{",
               "slurm_flag_cpus{flag=\"drain\"} 24\n"
               "slurm_flag_cpus{flag=\"not_responding\"} 8\n");
    check_some("capacity", section, "slurm_flag_gpus{",
               "slurm_flag_gpus{flag=\"drain\",type=\"a100\"} 6\n"
               "slurm_flag_gpus{flag=\"drain\",type=\"v100\"} 1\n"
               "slurm_flag_gpus{flag=\"not_responding\",type=\"a100\"} 4\n");
    section_unref(section);
}

TEST(free_gpus_without_a_free_cpu_or_memory_are_stranded)
{
    struct section *section = new_cluster();
    struct node *node;

    add_gpus(section, add_node(section, "no-cpu", "allocated", 8, 0, 0), "gpu:a100:4",
             "gpu:a100:1(IDX:0)");
    node = add_node(section, "no-memory", "mixed", 4, 4, 0);
    add_gpus(section, node, "gpu:a100:4", "gpu:a100:3(IDX:0-2)");
    node->memory_bytes = 64000 * MIB;
    node->memory_alloc_bytes = 64000 * MIB - MIB / 2;
    node = add_node(section, "some-memory", "mixed", 4, 4, 0);
    add_gpus(section, node, "gpu:v100:4", "gpu:v100:2(IDX:0-1)");
    node->memory_bytes = 64000 * MIB;
    node->memory_alloc_bytes = 63999 * MIB;
    /* nobody can use these, but not for want of CPUs */
    add_gpus(section, add_node(section, "drained", "drained", 0, 0, 8), "gpu:a100:4", "gpu:a100:0");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"a100\"} 4\n"
                 "slurm_stranded_gpus{type=\"v100\"} 0\n");
    check_some("capacity", section, "slurm_state_gpus{",
               "slurm_state_gpus{state=\"mixed\",type=\"a100\",use=\"allocated\"} 3\n"
               "slurm_state_gpus{state=\"mixed\",type=\"a100\",use=\"idle\"} 1\n"
               "slurm_state_gpus{state=\"mixed\",type=\"v100\",use=\"allocated\"} 2\n"
               "slurm_state_gpus{state=\"mixed\",type=\"v100\",use=\"idle\"} 2\n"
               "slurm_state_gpus{state=\"allocated\",type=\"a100\",use=\"allocated\"} 1\n"
               "slurm_state_gpus{state=\"allocated\",type=\"a100\",use=\"idle\"} 3\n"
               "slurm_state_gpus{state=\"drained\",type=\"a100\",use=\"unusable\"} 4\n");
    section_unref(section);
}

TEST(cpus_of_a_node_with_a_free_gpu_of_any_type_are_not_stranded)
{
    struct section *section = new_cluster();

    add_gpus(section, add_node(section, "g1", "mixed", 4, 4, 0), "gpu:a100:2,gpu:v100:2",
             "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)");
    add_gpus(section, add_node(section, "g2", "mixed", 4, 3, 0), "gpu:a100:2,gpu:v100:2",
             "gpu:a100:2(IDX:0-1),gpu:v100:2(IDX:2-3)");
    /* nobody expects GPUs there, or jobs */
    add_gpus(section, add_node(section, "c1", "idle", 0, 16, 0), "(null)", "gpu:0");
    add_gpus(section, add_node(section, "g3", "mixed+drain", 4, 0, 4), "gpu:a100:1",
             "gpu:a100:1(IDX:0)");
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 3\n");
    section_unref(section);
}

TEST(what_is_not_known_is_neither_idle_nor_stranded)
{
    struct section *section = new_cluster();
    struct node *node = add_node(section, "g1", "idle", 0, 8, 0);

    node->cpus = node->cpus_alloc = node->cpus_idle = node->cpus_other = MODEL_UNKNOWN_U32;
    node->gres = put(section, "gpu:a100:4");
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
    node->gres_used = put(section, "gpu:a100:0");
    check_family("capacity", section, "slurm_stranded_gpus",
                 "slurm_stranded_gpus{type=\"a100\"} 0\n");
    section_unref(section);
}

TEST(a_cluster_without_gpus_strands_nothing)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle", 0, 8, 0);
    check_family("capacity", section, "slurm_stranded_cpus", "slurm_stranded_cpus 0\n");
    check_family("capacity", section, "slurm_stranded_gpus", "");
    check_family("capacity", section, "slurm_flag_gpus", "");
    section_unref(section);
}

TEST(a_reserved_node_tells_its_reservation)
{
    struct section *section = new_cluster();
    struct node *node;

    node = add_node(section, "g1", "mixed+reserved", 2, 6, 0);
    node->reservation = put(section, "course \"2\"");
    add_gpus(section, node, "gpu:a100:4", "gpu:a100:1(IDX:0)");
    add_node(section, "n1", "idle+reserved", 0, 8, 0); /* the source does not name it */
    node = add_node(section, "n2", "idle", 0, 8, 0);
    add_gpus(section, node, "gpu:8", "gpu:0");
    check_family("capacity", section, "slurm_node_reservation_info",
                 "slurm_node_reservation_info{node=\"g1\",reservation=\"course \\\"2\\\"\"} 1\n");
    check_family("mila_nodes", section, "slurm_cpus_total",
                 "slurm_cpus_total{reservation=\"course \\\"2\\\"\"} 8\n"
                 "slurm_cpus_total{reservation=\"unknown\"} 8\n"
                 "slurm_cpus_total{reservation=\"None\"} 8\n");
    check_family("mila_nodes", section, "slurm_gpus_idle",
                 "slurm_gpus_idle{type=\"a100\",reservation=\"course \\\"2\\\"\"} 3\n"
                 "slurm_gpus_idle{type=\"none\",reservation=\"None\"} 8\n");
    section_unref(section);
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
        struct section *section = new_cluster();

        add_node(section, "n1", words[i].slurm, 0, 8, 0);
        snprintf(expected, sizeof(expected),
                 "slurm_node_states{name=\"n1\",slurm_node_states=\"%s\"} 1\n", words[i].mila);
        check_some("mila_nodes", section, "slurm_node_states{", expected);
        assert_int_equal(count_samples("mila_nodes", section, "slurm_node_states{"), 18);
        section_unref(section);
    }
}

TEST(a_node_told_twice_is_in_one_state)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle", 0, 8, 0);
    add_node(section, "n1", "down", 0, 0, 8);
    check_some("mila_nodes", section, "slurm_node_states{",
               "slurm_node_states{name=\"n1\",slurm_node_states=\"idle\"} 1\n");
    section_unref(section);
}
