/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The collectors that are made of nodes, on clusters of a few. */
#include "collected.h"

#include "collector/gpu.h"

#include <math.h>

enum { NODES_MAX = 400, MEMBERSHIPS_MAX = 800, PARTITIONS_MAX = 4 };

static struct section *new_cluster(void)
{
    struct section *section = section_new(KIND_NODES);
    struct nodes *nodes = &section->nodes;

    nodes->node = ARENA_ARRAY(&section->arena, struct node, NODES_MAX);
    nodes->partition = ARENA_ARRAY(&section->arena, struct partition, PARTITIONS_MAX);
    nodes->membership = ARENA_ARRAY(&section->arena, uint32_t, MEMBERSHIPS_MAX);
    return section;
}

static symbol put(struct section *section, const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static struct partition *add_partition(struct section *section, const char *name)
{
    struct partition *partition = &section->nodes.partition[section->nodes.n_partitions++];

    *partition = (struct partition){ .name = put(section, name),
                                     .is_up = true,
                                     .time_limit_minutes = MODEL_UNKNOWN_U32 };
    return partition;
}

/* A node of which nothing but its name and state is known. */
static struct node *add_node(struct section *section, const char *name, const char *state)
{
    struct nodes *nodes = &section->nodes;
    struct node *node = &nodes->node[nodes->n++];

    *node = (struct node){
        .name = put(section, name),
        .cpus = MODEL_UNKNOWN_U32,
        .cpus_alloc = MODEL_UNKNOWN_U32,
        .cpus_idle = MODEL_UNKNOWN_U32,
        .cpus_other = MODEL_UNKNOWN_U32,
        .cpu_load = NAN,
        .memory_bytes = MODEL_UNKNOWN_U64,
        .memory_alloc_bytes = MODEL_UNKNOWN_U64,
        .memory_free_bytes = MODEL_UNKNOWN_U64,
        .weight = MODEL_UNKNOWN_U32,
        .first_partition = (uint32_t)nodes->n_membership,
    };
    assert_true(node_state_parse(str_of(state), &node->state));
    return node;
}

static struct node *add_gpu_node(struct section *section, const char *name, const char *state,
                                 const char *gres, const char *used)
{
    struct node *node = add_node(section, name, state);

    node->gres = put(section, gres);
    node->gres_used = put(section, used);
    return node;
}

/* Of the node that was added last. */
static void join(struct section *section, uint32_t partition)
{
    struct nodes *nodes = &section->nodes;

    nodes->membership[nodes->n_membership++] = partition;
    nodes->node[nodes->n - 1].n_partitions++;
}

TEST(base_states_and_flags_are_counted_apart)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle");
    add_node(section, "n2", "idle+drain");
    add_node(section, "n3", "down+drain+not_responding");
    add_node(section, "n4", "mixed");
    check_family("nodes", section, "slurm_nodes",
                 "slurm_nodes{state=\"unknown\"} 0\n"
                 "slurm_nodes{state=\"down\"} 1\n"
                 "slurm_nodes{state=\"idle\"} 2\n"
                 "slurm_nodes{state=\"allocated\"} 0\n"
                 "slurm_nodes{state=\"error\"} 0\n"
                 "slurm_nodes{state=\"mixed\"} 1\n"
                 "slurm_nodes{state=\"future\"} 0\n");
    check_family("nodes", section, "slurm_nodes_flagged",
                 "slurm_nodes_flagged{flag=\"reserved\"} 0\n"
                 "slurm_nodes_flagged{flag=\"undrain\"} 0\n"
                 "slurm_nodes_flagged{flag=\"cloud\"} 0\n"
                 "slurm_nodes_flagged{flag=\"resume\"} 0\n"
                 "slurm_nodes_flagged{flag=\"drain\"} 2\n"
                 "slurm_nodes_flagged{flag=\"completing\"} 0\n"
                 "slurm_nodes_flagged{flag=\"not_responding\"} 1\n"
                 "slurm_nodes_flagged{flag=\"powered_down\"} 0\n"
                 "slurm_nodes_flagged{flag=\"fail\"} 0\n"
                 "slurm_nodes_flagged{flag=\"powering_up\"} 0\n"
                 "slurm_nodes_flagged{flag=\"maintenance\"} 0\n"
                 "slurm_nodes_flagged{flag=\"reboot_requested\"} 0\n"
                 "slurm_nodes_flagged{flag=\"reboot_canceled\"} 0\n"
                 "slurm_nodes_flagged{flag=\"powering_down\"} 0\n"
                 "slurm_nodes_flagged{flag=\"dynamic_future\"} 0\n"
                 "slurm_nodes_flagged{flag=\"reboot_issued\"} 0\n"
                 "slurm_nodes_flagged{flag=\"planned\"} 0\n"
                 "slurm_nodes_flagged{flag=\"invalid_reg\"} 0\n"
                 "slurm_nodes_flagged{flag=\"power_down\"} 0\n"
                 "slurm_nodes_flagged{flag=\"power_up\"} 0\n"
                 "slurm_nodes_flagged{flag=\"power_drain\"} 0\n"
                 "slurm_nodes_flagged{flag=\"dynamic_norm\"} 0\n"
                 "slurm_nodes_flagged{flag=\"blocked\"} 0\n"
                 "slurm_nodes_flagged{flag=\"external\"} 0\n");
    section_unref(section);
}

TEST(a_node_counts_once_in_each_of_its_features)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle")->features = put(section, "avx2,ib");
    add_node(section, "n2", "idle")->features = put(section, "ib,ib,,icelake");
    add_node(section, "n3", "idle");
    check_family("nodes", section, "slurm_feature_nodes",
                 "slurm_feature_nodes{feature=\"avx2\"} 1\n"
                 "slurm_feature_nodes{feature=\"ib\"} 2\n"
                 "slurm_feature_nodes{feature=\"icelake\"} 1\n");
    section_unref(section);
}

TEST(a_feature_for_each_node_does_not_make_a_series_for_each_node)
{
    struct section *section = new_cluster();
    char name[32];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "n%03u,common", i);
        add_node(section, name, "idle")->features = put(section, name);
    }
    collect("nodes", section, "");
    assert_int_equal(collected.folded, 101);
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"common\"} 300\n");
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"n198\"} 1\n");
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"other\"} 101\n");
    assert_null(strstr(collected.text.p, "feature=\"n199\""));
    section_unref(section);
}

TEST(a_partition_tells_its_weights_state_and_limit)
{
    struct section *section = new_cluster();
    struct partition *partition;

    add_partition(section, "cpu");
    partition = add_partition(section, "a\"b");
    partition->is_up = false;
    partition->time_limit_minutes = 90;
    add_node(section, "n1", "idle")->weight = 10;
    join(section, 0);
    add_node(section, "n2", "idle")->weight = 3;
    join(section, 0);
    add_node(section, "n3", "idle"); /* does not tell its weight */
    join(section, 0);
    join(section, 1);
    check_family("partitions", section, "slurm_partition_weight",
                 "slurm_partition_weight{partition=\"cpu\"} 13\n");
    check_family("partitions", section, "slurm_partition_weight_min",
                 "slurm_partition_weight_min{partition=\"cpu\"} 3\n");
    check_family("partitions", section, "slurm_partition_weight_max",
                 "slurm_partition_weight_max{partition=\"cpu\"} 10\n");
    check_family("partitions", section, "slurm_partition_up",
                 "slurm_partition_up{partition=\"cpu\"} 1\n"
                 "slurm_partition_up{partition=\"a\\\"b\"} 0\n");
    check_family("partitions", section, "slurm_partition_time_limit_seconds",
                 "slurm_partition_time_limit_seconds{partition=\"a\\\"b\"} 5400\n");
    section_unref(section);
}

TEST(a_node_tells_what_it_has_and_what_is_allocated)
{
    struct section *section = new_cluster();
    struct node *node = add_gpu_node(section, "gpu1", "mixed", "gpu:rtx8000:8(S:0-1),tpu:0",
                                     "gpu:rtx8000:8(IDX:0-7),tpu:0");

    node->cpus = 80;
    node->cpus_alloc = 32;
    node->cpu_load = 31.87;
    node->memory_bytes = UINT64_C(384000) << 20;
    node->memory_alloc_bytes = UINT64_C(1024) << 20;
    node->features = put(section, "turing,nvlink");
    node->version = put(section, "24.11.5");
    check_family("node", section, "slurm_node_info",
                 "slurm_node_info{node=\"gpu1\",features=\"turing,nvlink\",version=\"24.11.5\"} "
                 "1\n");
    check_family("node", section, "slurm_node_state",
                 "slurm_node_state{node=\"gpu1\",state=\"mixed\"} 1\n");
    check_family("node", section, "slurm_node_flag", "");
    check_family("node", section, "slurm_node_reason_info", "");
    check_family("node", section, "slurm_node_cpus", "slurm_node_cpus{node=\"gpu1\"} 80\n");
    check_family("node", section, "slurm_node_cpus_allocated",
                 "slurm_node_cpus_allocated{node=\"gpu1\"} 32\n");
    check_family("node", section, "slurm_node_cpu_load",
                 "slurm_node_cpu_load{node=\"gpu1\"} 31.87\n");
    check_family("node", section, "slurm_node_memory_bytes",
                 "slurm_node_memory_bytes{node=\"gpu1\"} 402653184000\n");
    check_family("node", section, "slurm_node_memory_allocated_bytes",
                 "slurm_node_memory_allocated_bytes{node=\"gpu1\"} 1073741824\n");
    check_family("node", section, "slurm_node_gpus",
                 "slurm_node_gpus{node=\"gpu1\",type=\"rtx8000\"} 8\n");
    check_family("node", section, "slurm_node_gpus_allocated",
                 "slurm_node_gpus_allocated{node=\"gpu1\",type=\"rtx8000\"} 8\n");
    section_unref(section);
}

TEST(a_drained_node_tells_why_who_and_when)
{
    struct section *section = new_cluster();
    struct node *node = add_node(section, "n1", "idle+drain+not_responding");

    node->reason = put(section, "disk \"sda\" | bad\\\nslurm_forged 1\xff");
    node->reason_user = put(section, "root");
    node->reason_time = 1794744000;
    add_node(section, "n2", "down")->reason = put(section, "Not responding");
    check_family("node", section, "slurm_node_state",
                 "slurm_node_state{node=\"n1\",state=\"idle\"} 1\n"
                 "slurm_node_state{node=\"n2\",state=\"down\"} 1\n");
    check_family("node", section, "slurm_node_flag",
                 "slurm_node_flag{node=\"n1\",flag=\"drain\"} 1\n"
                 "slurm_node_flag{node=\"n1\",flag=\"not_responding\"} 1\n");
    check_family("node", section, "slurm_node_reason_info",
                 "slurm_node_reason_info{node=\"n1\",reason=\"disk \\\"sda\\\" | bad\\\\\\n"
                 "slurm_forged 1\xef\xbf\xbd\",user=\"root\"} 1\n"
                 "slurm_node_reason_info{node=\"n2\",reason=\"Not responding\",user=\"\"} 1\n");
    check_family("node", section, "slurm_node_reason_time_seconds",
                 "slurm_node_reason_time_seconds{node=\"n1\"} 1794744000\n");
    check_family("node", section, "slurm_forged", "");
    section_unref(section);
}

TEST(what_a_node_does_not_tell_is_absent)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "n1", "down", "gpu:a100:4", "");
    collect("node", section, "");
    assert_int_equal(collected.samples, 3); /* info, state, GPUs */
    check_family("node", section, "slurm_node_gpus",
                 "slurm_node_gpus{node=\"n1\",type=\"a100\"} 4\n");
    check_family("node", section, "slurm_node_gpus_allocated", "");
    section_unref(section);
}

TEST(a_load_that_no_node_can_have_is_absent)
{
    static const double loads[] = { -0.01, -INFINITY, INFINITY, NAN, 1e9 };
    struct section *section = new_cluster();

    for (size_t i = 0; i < COUNT(loads); i++) {
        const char name[] = { 'n', (char)('1' + i), 0 };

        add_node(section, name, "idle")->cpu_load = loads[i];
    }
    add_node(section, "n9", "idle")->cpu_load = 0;
    check_family("node", section, "slurm_node_cpu_load", "slurm_node_cpu_load{node=\"n9\"} 0\n");
    section_unref(section);
}

TEST(a_node_told_twice_is_shown_once)
{
    struct section *section = new_cluster();

    add_node(section, "n1", "idle")->cpus = 4;
    add_node(section, "n1", "idle")->cpus = 8;
    collect("node", section, "");
    assert_int_equal(collected.duplicates, 3);
    check_family("node", section, "slurm_node_cpus", "slurm_node_cpus{node=\"n1\"} 4\n");
    section_unref(section);
}

TEST(gpus_are_allocated_idle_or_unusable)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "g1", "mixed", "gpu:a100:4(S:0-1)", "gpu:a100:3(IDX:0-2)");
    add_gpu_node(section, "g2", "idle", "gpu:v100:2,gpu:a100:2",
                 "gpu:v100:1(IDX:0),gpu:a100:0(IDX:N/A)");
    add_gpu_node(section, "g3", "mixed+drain", "gpu:a100:4", "gpu:a100:1(IDX:2)");
    add_gpu_node(section, "g4", "idle", "gpu:8", "gpu:2(IDX:0-1)");
    add_gpu_node(section, "g5", "idle", "gpu:a100_1g.5gb:14(S:0)", "gpu:a100_1g.5gb:5(IDX:0-4)");
    add_gpu_node(section, "c1", "idle", "", "gpu:0"); /* has none, as real Slurm tells it */
    check_family("gpus", section, "slurm_gpus",
                 "slurm_gpus{type=\"none\"} 8\n"
                 "slurm_gpus{type=\"a100\"} 10\n"
                 "slurm_gpus{type=\"v100\"} 2\n"
                 "slurm_gpus{type=\"a100_1g.5gb\"} 14\n");
    check_family("gpus", section, "slurm_gpus_allocated",
                 "slurm_gpus_allocated{type=\"none\"} 2\n"
                 "slurm_gpus_allocated{type=\"a100\"} 4\n"
                 "slurm_gpus_allocated{type=\"v100\"} 1\n"
                 "slurm_gpus_allocated{type=\"a100_1g.5gb\"} 5\n");
    check_family("gpus", section, "slurm_gpus_idle",
                 "slurm_gpus_idle{type=\"none\"} 6\n"
                 "slurm_gpus_idle{type=\"a100\"} 3\n"
                 "slurm_gpus_idle{type=\"v100\"} 1\n"
                 "slurm_gpus_idle{type=\"a100_1g.5gb\"} 9\n");
    check_family("gpus", section, "slurm_gpus_unusable",
                 "slurm_gpus_unusable{type=\"none\"} 0\n"
                 "slurm_gpus_unusable{type=\"a100\"} 3\n"
                 "slurm_gpus_unusable{type=\"v100\"} 0\n"
                 "slurm_gpus_unusable{type=\"a100_1g.5gb\"} 0\n");
    check_family("gpus", section, "slurm_gpus_per_state",
                 "slurm_gpus_per_state{state=\"idle\",type=\"none\"} 8\n"
                 "slurm_gpus_per_state{state=\"idle\",type=\"a100\"} 2\n"
                 "slurm_gpus_per_state{state=\"idle\",type=\"v100\"} 2\n"
                 "slurm_gpus_per_state{state=\"idle\",type=\"a100_1g.5gb\"} 14\n"
                 "slurm_gpus_per_state{state=\"mixed\",type=\"none\"} 0\n"
                 "slurm_gpus_per_state{state=\"mixed\",type=\"a100\"} 4\n"
                 "slurm_gpus_per_state{state=\"mixed\",type=\"v100\"} 0\n"
                 "slurm_gpus_per_state{state=\"mixed\",type=\"a100_1g.5gb\"} 0\n"
                 "slurm_gpus_per_state{state=\"draining\",type=\"none\"} 0\n"
                 "slurm_gpus_per_state{state=\"draining\",type=\"a100\"} 4\n"
                 "slurm_gpus_per_state{state=\"draining\",type=\"v100\"} 0\n"
                 "slurm_gpus_per_state{state=\"draining\",type=\"a100_1g.5gb\"} 0\n");
    check_family("gpus", section, "slurm_gpu_shards", "");
    section_unref(section);
}

TEST(free_gpus_of_nodes_that_take_no_jobs_are_unusable)
{
    static const char *const unusable[] = {
        "down",
        "error",
        "future",
        "unknown",
        "idle+drain",
        "mixed+drain",
        "idle+fail",
        "idle+drain+powered_down",
        "down+powered_down",
        "idle+power_down",
        "idle!",
        "idle%",
        "idle*",
        "idle$",
        "idle+maintenance",
        "idle^",
        "idle+blocked",
        "idle+invalid_reg",
        "idle+external",
    };
    static const char *const usable[] = {
        "idle",
        "mixed",
        "allocated",
        "idle+reserved",
        "idle+planned",
        "idle-",
        "idle+completing",
        "idle#",
        "idle+reboot_requested",
        "idle+powered_down", /* Slurm powers it up */
        "idle~",
        "idle+cloud+powered_down",
        "idle+cloud",
        "idle+dynamic_future",
    };

    for (size_t i = 0; i < COUNT(unusable) + COUNT(usable); i++) {
        bool is_usable = i >= COUNT(unusable);
        struct section *section = new_cluster();

        add_gpu_node(section, "g1", is_usable ? usable[i - COUNT(unusable)] : unusable[i],
                     "gpu:a100:4", "gpu:a100:1(IDX:0)");
        check_family("gpus", section, "slurm_gpus_allocated",
                     "slurm_gpus_allocated{type=\"a100\"} 1\n");
        check_family("gpus", section, "slurm_gpus_idle",
                     is_usable ? "slurm_gpus_idle{type=\"a100\"} 3\n"
                               : "slurm_gpus_idle{type=\"a100\"} 0\n");
        check_family("gpus", section, "slurm_gpus_unusable",
                     is_usable ? "slurm_gpus_unusable{type=\"a100\"} 0\n"
                               : "slurm_gpus_unusable{type=\"a100\"} 3\n");
        section_unref(section);
    }
}

TEST(a_gpu_node_counts_in_each_of_its_partitions_and_once_in_all)
{
    struct section *section = new_cluster();

    add_partition(section, "gpu");
    add_partition(section, "debug");
    add_partition(section, "cpu");
    add_gpu_node(section, "g1", "mixed", "gpu:a100:4", "gpu:a100:1(IDX:0)");
    join(section, 0);
    join(section, 1);
    add_gpu_node(section, "g2", "down", "gpu:a100:4", "gpu:a100:0(IDX:N/A)");
    join(section, 0);
    add_gpu_node(section, "c1", "idle", "", "gpu:0");
    join(section, 2);
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"a100\"} 8\n");
    check_family("gpus", section, "slurm_partition_gpus",
                 "slurm_partition_gpus{partition=\"gpu\",type=\"a100\"} 8\n"
                 "slurm_partition_gpus{partition=\"debug\",type=\"a100\"} 4\n");
    check_family("gpus", section, "slurm_partition_gpus_allocated",
                 "slurm_partition_gpus_allocated{partition=\"gpu\",type=\"a100\"} 1\n"
                 "slurm_partition_gpus_allocated{partition=\"debug\",type=\"a100\"} 1\n");
    check_family("gpus", section, "slurm_partition_gpus_idle",
                 "slurm_partition_gpus_idle{partition=\"gpu\",type=\"a100\"} 3\n"
                 "slurm_partition_gpus_idle{partition=\"debug\",type=\"a100\"} 3\n");
    check_family("gpus", section, "slurm_partition_gpus_unusable",
                 "slurm_partition_gpus_unusable{partition=\"gpu\",type=\"a100\"} 4\n"
                 "slurm_partition_gpus_unusable{partition=\"debug\",type=\"a100\"} 0\n");
    section_unref(section);
}

TEST(shards_have_families_of_their_own)
{
    struct section *section = new_cluster();

    add_partition(section, "gpu");
    add_gpu_node(section, "g1", "mixed", "gpu:a100:2(S:0),shard:a100:16(S:0),mps:200",
                 "gpu:a100:1(IDX:0),shard:a100:3(3/8,0/8)");
    join(section, 0);
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"a100\"} 2\n");
    check_family("gpus", section, "slurm_gpu_shards", "slurm_gpu_shards{type=\"a100\"} 16\n");
    check_family("gpus", section, "slurm_gpu_shards_allocated",
                 "slurm_gpu_shards_allocated{type=\"a100\"} 3\n");
    check_family("gpus", section, "slurm_gpu_shards_idle",
                 "slurm_gpu_shards_idle{type=\"a100\"} 13\n");
    check_family("gpus", section, "slurm_gpu_shards_unusable",
                 "slurm_gpu_shards_unusable{type=\"a100\"} 0\n");
    check_family("gpus", section, "slurm_partition_gpu_shards_allocated",
                 "slurm_partition_gpu_shards_allocated{partition=\"gpu\",type=\"a100\"} 3\n");
    check_family("gpus", section, "slurm_gpu_shards_per_state",
                 "slurm_gpu_shards_per_state{state=\"mixed\",type=\"a100\"} 16\n");
    section_unref(section);
}

TEST(allocated_gpus_that_nobody_tells_are_absent)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "g1", "idle", "gpu:a100:4", "");
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"a100\"} 4\n");
    check_family("gpus", section, "slurm_gpus_allocated", "");
    check_family("gpus", section, "slurm_gpus_idle", "");
    check_family("gpus", section, "slurm_gpus_unusable", "");
    section_unref(section);
}

TEST(gpus_in_use_find_their_type_where_only_one_side_names_it)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "g1", "mixed", "gpu:8", "gpu:a100:3(IDX:0-2)");
    add_gpu_node(section, "g2", "mixed", "gpu:h100:4", "gpu:(null):1(IDX:0)");
    add_gpu_node(section, "g3", "mixed", "", "gpu:l40:2(IDX:0-1)");
    check_family("gpus", section, "slurm_gpus",
                 "slurm_gpus{type=\"none\"} 8\n"
                 "slurm_gpus{type=\"h100\"} 4\n");
    check_family("gpus", section, "slurm_gpus_allocated",
                 "slurm_gpus_allocated{type=\"none\"} 3\n"
                 "slurm_gpus_allocated{type=\"h100\"} 1\n"
                 "slurm_gpus_allocated{type=\"l40\"} 2\n");
    check_family("gpus", section, "slurm_gpus_idle",
                 "slurm_gpus_idle{type=\"none\"} 5\n"
                 "slurm_gpus_idle{type=\"h100\"} 3\n");
    section_unref(section);
}

TEST(more_gpus_in_use_than_there_are_leave_none_free)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "g1", "allocated", "gpu:a100:1", "gpu:a100:2");
    check_family("gpus", section, "slurm_gpus_idle", "slurm_gpus_idle{type=\"a100\"} 0\n");
    section_unref(section);
}

TEST(gpus_beyond_64_bits_are_absent)
{
    struct section *section = new_cluster();

    for (int i = 0; i < 2; i++)
        add_gpu_node(section, "g", "idle", "gpu:a:9223372036854775808,gpu:b:1", "gpu:a:0");
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"b\"} 2\n");
    section_unref(section);
}

TEST(more_types_of_gpu_than_anybody_has_are_called_other)
{
    struct section *section = new_cluster();
    char gres[32];

    for (unsigned i = 0; i < 150; i++) {
        snprintf(gres, sizeof(gres), "gpu:t%03u:2", i);
        add_gpu_node(section, gres, "idle", gres, "gpu:0");
    }
    collect("gpus", section, "");
    assert_contains(collected.text.p, "slurm_gpus{type=\"t099\"} 2\n");
    assert_contains(collected.text.p, "slurm_gpus{type=\"other\"} 100\n");
    assert_null(strstr(collected.text.p, "t100"));
    section_unref(section);
}

TEST(a_cluster_without_gpus_has_no_gpu_series)
{
    struct section *section = new_cluster();

    add_gpu_node(section, "c1", "idle", "tpu:2,mps:100", "gpu:0,tpu:1");
    collect("gpus", section, "");
    assert_int_equal(collected.samples, 0);
    section_unref(section);
}

TEST(no_nodes_give_zeros_for_the_cluster_and_nothing_else)
{
    struct section *section = section_new(KIND_NODES);
    collect("node", section, "");
    assert_int_equal(collected.samples, 0);
    check_family("nodes", section, "slurm_cpus_total", "slurm_cpus_total 0\n");
    check_family("nodes", section, "slurm_feature_nodes", "");
    check_family("gpus", section, "slurm_gpus", "");
    check_family("partitions", section, "slurm_partition_up", "");
    section_unref(section);
}

static void check_gpus(const char *text, const char *name, const char *expected)
{
    struct section *section = section_new(KIND_JOBS);
    symbol s = put(section, text);
    struct gpu_reader reader;
    const struct gpu_list *list;
    struct buf found;

    gpu_reader_init(&reader, section, str_of(name));
    list = gpu_read(&reader, s);
    assert_ptr_equal(gpu_read(&reader, s), list);
    buf_init(&found, 4096);
    for (size_t i = 0; i < list->n; i++)
        buf_printf(&found, "%.*s=%llu ", STR_ARG(gpu_type(&reader, list->item[i].type)),
                   (unsigned long long)list->item[i].count);
    assert_str(buf_str(&found), expected);
    buf_free(&found);
    gpu_reader_free(&reader);
    section_unref(section);
}

TEST(gpus_are_read_from_gres_and_tres)
{
    check_gpus("", "gpu", "");
    check_gpus("(null)", "gpu", "");
    check_gpus("gpu:8", "gpu", "none=8 ");
    check_gpus("gpu:a100:4,gpu:v100:2,gpu:a100:1", "gpu", "a100=5 v100=2 ");
    check_gpus("gpu:2,gpu:a100:4", "gpu", "none=2 a100=4 ");
    check_gpus("cpu=16,mem=32000M,node=1,billing=16", "gpu", "");
    check_gpus("cpu=1,gres/gpu=2", "gpu", "none=2 ");
    check_gpus("cpu=1,gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1", "gpu", "v100=1 a100=3 ");
    check_gpus("cpu=1,gres/gpu=4,gres/gpu:a100=1", "gpu", "none=3 a100=1 ");
    check_gpus("cpu=1,gres/gpu:a100=3", "gpu", "a100=3 ");
    check_gpus("gres/gpu=1,gres/gpu:a=18446744073709551615", "gpu", "none=1 ");
    check_gpus("gres/shard=3,gres/gpu=1", "shard", "none=3 ");
}
