/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The collectors that are made of nodes, on clusters of a few. */
#include "collected.h"

#include "collector/gres.h"

static struct section *section;

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(NULL, tear_down)

TEST(base_states_and_flags_are_counted_apart)
{
    section = nodes_from("n1 idle\n"
                         "n2 idle+drain\n"
                         "n3 down+drain+not_responding\n"
                         "n4 mixed\n");
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
}

TEST(a_node_counts_once_in_each_of_its_features)
{
    section = nodes_from("n1 idle features=avx2,ib\n"
                         "n2 idle features=ib,ib,,icelake\n"
                         "n3 idle\n");
    check_family("nodes", section, "slurm_feature_nodes",
                 "slurm_feature_nodes{feature=\"avx2\"} 1\n"
                 "slurm_feature_nodes{feature=\"ib\"} 2\n"
                 "slurm_feature_nodes{feature=\"icelake\"} 1\n");
}

TEST(a_feature_for_each_node_does_not_make_a_series_for_each_node)
{
    section = section_new(KIND_NODES);
    for (unsigned i = 0; i < 300; i++)
        section_add(section, "n%03u idle features=n%03u,common\n", i, i);
    collect("nodes", section, "");
    assert_int_equal(collected.folded, 101);
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"common\"} 300\n");
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"n198\"} 1\n");
    assert_contains(collected.text.p, "slurm_feature_nodes{feature=\"other\"} 101\n");
    assert_null(strstr(collected.text.p, "feature=\"n199\""));
}

TEST(a_partition_tells_its_weights_state_and_limit)
{
    section = nodes_from("partition cpu\n"
                         "partition a\"b up=no time_limit=90\n"
                         "n1 idle weight=10 partitions=cpu\n"
                         "n2 idle weight=3 partitions=cpu\n"
                         "n3 idle weight=unknown partitions=cpu,a\"b\n");
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
}

TEST(a_node_tells_what_it_has_and_what_is_allocated)
{
    section = nodes_from(
        "gpu1 mixed cpus=80 cpus_alloc=32 cpu_load=31.87 memory=384000M memory_alloc=1024M "
        "gres=gpu:rtx8000:8(S:0-1),tpu:0 gres_used=gpu:rtx8000:8(IDX:0-7),tpu:0 "
        "features=turing,nvlink version=24.11.5\n");
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
}

TEST(a_drained_node_tells_why_who_and_when)
{
    section = nodes_from("n1 idle+drain+not_responding reason_user=root reason_time=1794744000 "
                         "reason='disk \"sda\" | bad\\\nslurm_forged 1\xff'\n"
                         "n2 down reason='Not responding'\n");
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
}

TEST(what_a_node_does_not_tell_is_absent)
{
    section = nodes_from("n1 down gres=gpu:a100:4 gres_used=\n");
    collect("node", section, "");
    assert_int_equal(collected.samples, 4); /* info, state, GPUs, GRES */
    check_family("node", section, "slurm_node_gpus",
                 "slurm_node_gpus{node=\"n1\",type=\"a100\"} 4\n");
    check_family("node", section, "slurm_node_gpus_allocated", "");
}

TEST(a_load_that_no_node_can_have_is_absent)
{
    section = nodes_from("n1 idle cpu_load=-0.01\n"
                         "n2 idle cpu_load=-inf\n"
                         "n3 idle cpu_load=inf\n"
                         "n4 idle cpu_load=unknown\n"
                         "n5 idle cpu_load=1e9\n"
                         "n9 idle cpu_load=0\n");
    check_family("node", section, "slurm_node_cpu_load", "slurm_node_cpu_load{node=\"n9\"} 0\n");
}

TEST(a_node_told_twice_is_shown_once)
{
    section = nodes_from("n1 idle cpus=4\n"
                         "n1 idle cpus=8\n");
    collect("node", section, "");
    assert_int_equal(collected.duplicates, 3);
    check_family("node", section, "slurm_node_cpus", "slurm_node_cpus{node=\"n1\"} 4\n");
}

TEST(gpus_are_allocated_idle_or_unusable)
{
    /* c1 has none, as real Slurm tells it */
    section = nodes_from(
        "g1 mixed gres=gpu:a100:4(S:0-1) gres_used=gpu:a100:3(IDX:0-2)\n"
        "g2 idle gres=gpu:v100:2,gpu:a100:2 gres_used=gpu:v100:1(IDX:0),gpu:a100:0(IDX:N/A)\n"
        "g3 mixed+drain gres=gpu:a100:4 gres_used=gpu:a100:1(IDX:2)\n"
        "g4 idle gres=gpu:8 gres_used=gpu:2(IDX:0-1)\n"
        "g5 idle gres=gpu:a100_1g.5gb:14(S:0) gres_used=gpu:a100_1g.5gb:5(IDX:0-4)\n"
        "c1 idle gres= gres_used=gpu:0\n");
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

        section = nodes_from("g1 %s gres=gpu:a100:4 gres_used=gpu:a100:1(IDX:0)\n",
                             is_usable ? usable[i - COUNT(unusable)] : unusable[i]);
        check_family("gpus", section, "slurm_gpus_allocated",
                     "slurm_gpus_allocated{type=\"a100\"} 1\n");
        check_family("gpus", section, "slurm_gpus_idle",
                     is_usable ? "slurm_gpus_idle{type=\"a100\"} 3\n"
                               : "slurm_gpus_idle{type=\"a100\"} 0\n");
        check_family("gpus", section, "slurm_gpus_unusable",
                     is_usable ? "slurm_gpus_unusable{type=\"a100\"} 0\n"
                               : "slurm_gpus_unusable{type=\"a100\"} 3\n");
        section = section_unref(section);
    }
}

TEST(a_gpu_node_counts_in_each_of_its_partitions_and_once_in_all)
{
    section =
        nodes_from("g1 mixed partitions=gpu,debug gres=gpu:a100:4 gres_used=gpu:a100:1(IDX:0)\n"
                   "g2 down partitions=gpu gres=gpu:a100:4 gres_used=gpu:a100:0(IDX:N/A)\n"
                   "c1 idle partitions=cpu gres_used=gpu:0\n");
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
}

TEST(shards_have_families_of_their_own)
{
    section = nodes_from("g1 mixed partitions=gpu gres=gpu:a100:2(S:0),shard:a100:16(S:0),mps:200 "
                         "gres_used=gpu:a100:1(IDX:0),shard:a100:3(3/8,0/8)\n");
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
}

TEST(allocated_gpus_that_nobody_tells_are_absent)
{
    section = nodes_from("g1 idle gres=gpu:a100:4 gres_used=\n");
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"a100\"} 4\n");
    check_family("gpus", section, "slurm_gpus_allocated", "");
    check_family("gpus", section, "slurm_gpus_idle", "");
    check_family("gpus", section, "slurm_gpus_unusable", "");
}

TEST(gpus_in_use_find_their_type_where_only_one_side_names_it)
{
    section = nodes_from("g1 mixed gres=gpu:8 gres_used=gpu:a100:3(IDX:0-2)\n"
                         "g2 mixed gres=gpu:h100:4 gres_used=gpu:(null):1(IDX:0)\n"
                         "g3 mixed gres= gres_used=gpu:l40:2(IDX:0-1)\n");
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
}

TEST(more_gpus_in_use_than_there_are_leave_none_free)
{
    section = nodes_from("g1 allocated gres=gpu:a100:1 gres_used=gpu:a100:2\n");
    check_family("gpus", section, "slurm_gpus_idle", "slurm_gpus_idle{type=\"a100\"} 0\n");
}

TEST(gpus_beyond_64_bits_are_absent)
{
    section = nodes_from("g idle gres=gpu:a:9223372036854775808,gpu:b:1 gres_used=gpu:a:0\n"
                         "g idle gres=gpu:a:9223372036854775808,gpu:b:1 gres_used=gpu:a:0\n");
    check_family("gpus", section, "slurm_gpus", "slurm_gpus{type=\"b\"} 2\n");
}

TEST(more_types_of_gpu_than_anybody_has_are_called_other)
{
    section = section_new(KIND_NODES);
    for (unsigned i = 0; i < 150; i++)
        section_add(section, "g%u idle gres=gpu:t%03u:2 gres_used=gpu:0\n", i, i);
    collect("gpus", section, "");
    assert_contains(collected.text.p, "slurm_gpus{type=\"t099\"} 2\n");
    assert_contains(collected.text.p, "slurm_gpus{type=\"other\"} 100\n");
    assert_null(strstr(collected.text.p, "t100"));
}

TEST(a_cluster_without_gpus_has_no_gpu_series)
{
    section = nodes_from("c1 idle gres=tpu:2,mps:100 gres_used=gpu:0,tpu:1\n");
    collect("gpus", section, "");
    assert_int_equal(collected.samples, 0);
}

/* g1 as Slurm 24.11 prints it, g2 as 22.05 does, cn-a006 as it is at Mila */
#define ALL_KINDS_OF_GRES                                                                          \
    "g1 mixed partitions=gpu "                                                                     \
    "gres=gpu:a100:4(S:0-1),tpu:v4:8,craynetwork:4,mps:400,bandwidth:lustre:no_consume:4G "        \
    "gres_used=gpu:a100:2(IDX:0-1),tpu:v4:3,craynetwork:1,mps:100,bandwidth:lustre:0\n"            \
    "g2 idle+drain partitions=gpu,debug gres=tpu:(null):2 "                                        \
    "gres_used=tpu:(null):1,bandwidth:0\n"                                                         \
    "cn-a006 mixed partitions=debug gres=gpu:rtx8000:8(S:0-1),tpu:0 "                              \
    "gres_used=gpu:rtx8000:8(IDX:0-7),tpu:0\n"                                                     \
    "c1 idle gres=(null) gres_used=(null)\n"

TEST(gres_of_any_name_are_counted_by_name_and_type)
{
    section = nodes_from(ALL_KINDS_OF_GRES);
    check_family("gres", section, "slurm_gres",
                 "slurm_gres{gres=\"gpu\",type=\"a100\"} 4\n"
                 "slurm_gres{gres=\"tpu\",type=\"v4\"} 8\n"
                 "slurm_gres{gres=\"craynetwork\",type=\"none\"} 4\n"
                 "slurm_gres{gres=\"mps\",type=\"none\"} 400\n"
                 "slurm_gres{gres=\"bandwidth\",type=\"lustre\"} 4294967296\n"
                 "slurm_gres{gres=\"tpu\",type=\"none\"} 2\n"
                 "slurm_gres{gres=\"gpu\",type=\"rtx8000\"} 8\n");
    check_family("gres", section, "slurm_gres_allocated",
                 "slurm_gres_allocated{gres=\"gpu\",type=\"a100\"} 2\n"
                 "slurm_gres_allocated{gres=\"tpu\",type=\"v4\"} 3\n"
                 "slurm_gres_allocated{gres=\"craynetwork\",type=\"none\"} 1\n"
                 "slurm_gres_allocated{gres=\"mps\",type=\"none\"} 100\n"
                 "slurm_gres_allocated{gres=\"bandwidth\",type=\"lustre\"} 0\n"
                 "slurm_gres_allocated{gres=\"tpu\",type=\"none\"} 1\n"
                 "slurm_gres_allocated{gres=\"gpu\",type=\"rtx8000\"} 8\n");
    check_family("gres", section, "slurm_gres_unusable",
                 "slurm_gres_unusable{gres=\"gpu\",type=\"a100\"} 0\n"
                 "slurm_gres_unusable{gres=\"tpu\",type=\"v4\"} 0\n"
                 "slurm_gres_unusable{gres=\"craynetwork\",type=\"none\"} 0\n"
                 "slurm_gres_unusable{gres=\"mps\",type=\"none\"} 0\n"
                 "slurm_gres_unusable{gres=\"bandwidth\",type=\"lustre\"} 0\n"
                 "slurm_gres_unusable{gres=\"tpu\",type=\"none\"} 1\n"
                 "slurm_gres_unusable{gres=\"gpu\",type=\"rtx8000\"} 0\n");
    check_family("gpus", section, "slurm_gpus",
                 "slurm_gpus{type=\"a100\"} 4\n"
                 "slurm_gpus{type=\"rtx8000\"} 8\n");
}

TEST(gres_are_counted_of_partitions_and_node_states)
{
    section = nodes_from(ALL_KINDS_OF_GRES);
    collect("gres", section, "");
    assert_contains(collected.text.p, "slurm_partition_gres_allocated{partition=\"gpu\","
                                      "gres=\"tpu\",type=\"v4\"} 3\n");
    assert_contains(collected.text.p, "slurm_partition_gres_idle{partition=\"debug\",gres=\"tpu\","
                                      "type=\"none\"} 0\n");
    assert_contains(collected.text.p,
                    "slurm_gres_per_state{state=\"drained\",gres=\"tpu\",type=\"none\"} 2\n");
}

TEST(a_node_has_gres_of_any_name_also_zero_of_one)
{
    section = nodes_from(ALL_KINDS_OF_GRES);
    check_family("node", section, "slurm_node_gres",
                 "slurm_node_gres{node=\"g1\",gres=\"gpu\",type=\"a100\"} 4\n"
                 "slurm_node_gres{node=\"g1\",gres=\"tpu\",type=\"v4\"} 8\n"
                 "slurm_node_gres{node=\"g1\",gres=\"craynetwork\",type=\"none\"} 4\n"
                 "slurm_node_gres{node=\"g1\",gres=\"mps\",type=\"none\"} 400\n"
                 "slurm_node_gres{node=\"g1\",gres=\"bandwidth\",type=\"lustre\"} 4294967296\n"
                 "slurm_node_gres{node=\"g2\",gres=\"tpu\",type=\"none\"} 2\n"
                 "slurm_node_gres{node=\"cn-a006\",gres=\"gpu\",type=\"rtx8000\"} 8\n"
                 "slurm_node_gres{node=\"cn-a006\",gres=\"tpu\",type=\"none\"} 0\n");
    check_family("node", section, "slurm_node_gres_allocated",
                 "slurm_node_gres_allocated{node=\"g1\",gres=\"gpu\",type=\"a100\"} 2\n"
                 "slurm_node_gres_allocated{node=\"g1\",gres=\"tpu\",type=\"v4\"} 3\n"
                 "slurm_node_gres_allocated{node=\"g1\",gres=\"craynetwork\",type=\"none\"} 1\n"
                 "slurm_node_gres_allocated{node=\"g1\",gres=\"mps\",type=\"none\"} 100\n"
                 "slurm_node_gres_allocated{node=\"g1\",gres=\"bandwidth\",type=\"lustre\"} 0\n"
                 "slurm_node_gres_allocated{node=\"g2\",gres=\"tpu\",type=\"none\"} 1\n"
                 "slurm_node_gres_allocated{node=\"cn-a006\",gres=\"gpu\",type=\"rtx8000\"} 8\n"
                 "slurm_node_gres_allocated{node=\"cn-a006\",gres=\"tpu\",type=\"none\"} 0\n");
}

/* What is in use of one name is not put down to another. */
TEST(gres_in_use_find_their_type_among_those_of_their_name)
{
    section = nodes_from("g1 mixed gres=nic:2,tpu:8 gres_used=tpu:v4:3,nic:connectx:1\n"
                         "g2 mixed gres=nic:connectx:2 gres_used=tpu:1\n");
    check_family("gres", section, "slurm_gres_allocated",
                 "slurm_gres_allocated{gres=\"nic\",type=\"none\"} 1\n"
                 "slurm_gres_allocated{gres=\"tpu\",type=\"none\"} 4\n"
                 "slurm_gres_allocated{gres=\"nic\",type=\"connectx\"} 0\n");
}

TEST(gres_that_cannot_be_read_are_left_out_and_the_others_are_there)
{
    section = nodes_from("g1 idle gres='tpu:many,:3,nic:2,tpu:v4:99999999999999999999,(' "
                         "gres_used='nic:1,tpu:\"\n:0,)'\n"
                         "g2 idle gres='\"\n\\:1' gres_used=nic:0\n");
    check_family("gres", section, "slurm_gres",
                 "slurm_gres{gres=\"tpu\",type=\"many\"} 1\n"
                 "slurm_gres{gres=\"nic\",type=\"none\"} 2\n"
                 "slurm_gres{gres=\"\\\"\\n\\\\\",type=\"none\"} 1\n");
    check_family("gres", section, "slurm_gres_allocated",
                 "slurm_gres_allocated{gres=\"tpu\",type=\"many\"} 0\n"
                 "slurm_gres_allocated{gres=\"nic\",type=\"none\"} 1\n"
                 "slurm_gres_allocated{gres=\"\\\"\\n\\\\\",type=\"none\"} 0\n");
}

TEST(more_names_and_types_of_gres_than_anybody_has_are_called_other)
{
    section = section_new(KIND_NODES);
    for (unsigned i = 0; i < 150; i++)
        section_add(section, "g%u idle gres=name%03u:2,tpu:t%03u:1 gres_used=tpu:0\n", i, i, i);
    collect("gres", section, "");
    assert_contains(collected.text.p, "slurm_gres{gres=\"name049\",type=\"none\"} 2\n");
    assert_contains(collected.text.p, "slurm_gres{gres=\"tpu\",type=\"t048\"} 1\n");
    assert_contains(collected.text.p, "slurm_gres{gres=\"tpu\",type=\"other\"} 101\n");
    assert_contains(collected.text.p, "slurm_gres{gres=\"other\",type=\"other\"} 200\n");
    assert_null(strstr(collected.text.p, "name050"));
    collect("node", section, "");
    assert_contains(collected.text.p,
                    "slurm_node_gres{node=\"g149\",gres=\"other\",type=\"other\"} 2\n");
}

TEST(no_nodes_give_zeros_for_the_cluster_and_nothing_else)
{
    section = section_new(KIND_NODES);
    collect("node", section, "");
    assert_int_equal(collected.samples, 0);
    check_family("nodes", section, "slurm_cpus_total", "slurm_cpus_total 0\n");
    check_family("nodes", section, "slurm_feature_nodes", "");
    check_family("gpus", section, "slurm_gpus", "");
    check_family("partitions", section, "slurm_partition_up", "");
}

static void check_gpus(const char *text, const char *name, const char *expected)
{
    struct section *jobs = jobs_from("RUNNING tres='%s'\n", text);
    symbol s = jobs->jobs.job[0].tres;
    struct gres_reader reader;
    const struct gres_list *list;
    struct buf found;

    gres_reader_init(&reader, jobs, str_of(name));
    list = gres_read(&reader, s);
    assert_ptr_equal(gres_read(&reader, s), list);
    buf_init(&found, 4096);
    for (size_t i = 0; i < list->n; i++)
        buf_printf(&found, "%.*s=%llu ", STR_ARG(gres_type_label(&reader, list->item[i].type)),
                   (unsigned long long)list->item[i].count);
    assert_str(buf_str(&found), expected);
    buf_free(&found);
    gres_reader_free(&reader);
    section_unref(jobs);
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
    check_gpus("cpu=1,gres/gpu=4,gres/gpu:a100=3,gres/gpu:v100=1", "gpu", "a100=3 v100=1 ");
    check_gpus("cpu=1,gres/gpu=4,gres/gpu:a100=1", "gpu", "none=3 a100=1 ");
    check_gpus("cpu=1,gres/gpu:a100=3", "gpu", "a100=3 ");
    check_gpus("gres/gpu=1,gres/gpu:a=18446744073709551615", "gpu", "none=1 ");
    check_gpus("gres/shard=3,gres/gpu=1", "shard", "none=3 ");
}
