/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the collectors that are made of jobs say of small queues, sample by sample. */
#include "collected.h"

#include "base/num.h"
#include "source/sim.h"

static struct section *section;

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(NULL, tear_down)

TEST(a_queue_without_jobs_has_no_series_but_those_of_the_cluster)
{
    static const char *const silent[] = { "users",    "accounts", "partition_jobs", "qos",
                                          "features", "waits",    "job_gpus",       "job_gres" };

    section = section_new(KIND_JOBS);
    for (size_t i = 0; i < COUNT(silent); i++)
        assert_string_equal(collect(silent[i], section, ""), "");
    assert_string_equal(collect("pending", section, ""), "slurm_pending_oldest_age_seconds 0\n");
    assert_string_equal(collect("jobs", section, "slurm_pending_reason_total"), "");
    assert_contains(collect("jobs", section, ""),
                    "slurm_job_count_per_state{state=\"RUNNING\"} 0\n");
}

TEST(a_user_has_jobs_cpus_and_memory_by_state)
{
    section = jobs_from("RUNNING cpus=8\n"
                        "RUNNING cpus=4\n"
                        "PENDING tasks=50 cpus=2\n"
                        "COMPLETED user=bob\n");
    assert_string_equal(collect("users", section, ""),
                        "slurm_user_state_total{username=\"ann\",state=\"PENDING\"} 50\n"
                        "slurm_user_state_total{username=\"ann\",state=\"RUNNING\"} 2\n"
                        "slurm_user_state_total{username=\"bob\",state=\"COMPLETED\"} 1\n"
                        "slurm_user_cpu_alloc{username=\"ann\",state=\"PENDING\"} 100\n"
                        "slurm_user_cpu_alloc{username=\"ann\",state=\"RUNNING\"} 12\n"
                        "slurm_user_mem_alloc{username=\"ann\",state=\"PENDING\"} 53687091200\n"
                        "slurm_user_mem_alloc{username=\"ann\",state=\"RUNNING\"} 2147483648\n");
}

/* slurmctld lists ended jobs for MinJobAge, with all that they had. */
TEST(resources_by_state_are_those_of_jobs_that_have_not_ended)
{
    static const struct {
        const char *collector, *family;
    } rows[] = {
        { "users", "slurm_user_cpu_alloc" },
        { "accounts", "slurm_account_job_state_cpu_alloc" },
        { "partition_jobs", "slurm_partition_job_cpus" },
        { "qos", "slurm_qos_job_cpus" },
    };
    static const char *const ended[] = {
        "COMPLETED",     "CANCELLED",           "FAILED",          "TIMEOUT",
        "NODE_FAIL",     "PREEMPTED",           "BOOT_FAIL",       "DEADLINE",
        "OUT_OF_MEMORY", "COMPLETED+STAGE_OUT", "PENDING+REVOKED",
    };
    static const char *const live =
        "PENDING cpus=1\nRUNNING cpus=2\nRUNNING+CONFIGURING cpus=4\nCANCELLED+COMPLETING cpus=8\n"
        "SUSPENDED cpus=16\nRUNNING+STOPPED cpus=32\nPENDING+REQUEUE_HOLD cpus=64\n"
        "SPECIAL_EXIT cpus=128\nPENDING+RESV_DEL_HOLD cpus=256\nREQUEUED cpus=512\n";
    static const struct {
        const char *state;
        unsigned cpus;
    } expected[] = {
        { "PENDING", 1 },       { "RUNNING", 2 },        { "CONFIGURING", 4 },
        { "COMPLETING", 8 },    { "SUSPENDED", 0 },      { "STOPPED", 32 },
        { "REQUEUE_HOLD", 64 }, { "SPECIAL_EXIT", 128 }, { "RESV_DEL_HOLD", 256 },
        { "REQUEUED", 512 },
    };
    char text[64];

    section = jobs_from("%s", live);
    for (size_t i = 0; i < COUNT(ended); i++)
        section_add(section, "%s cpus=1000 tasks=1022\n", ended[i]);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *samples = collect(rows[i].collector, section, rows[i].family);
        size_t n = 0;

        for (size_t k = 0; k < COUNT(expected); k++) {
            snprintf(text, sizeof(text), "state=\"%s\"} %u\n", expected[k].state, expected[k].cpus);
            assert_contains(samples, text);
        }
        for (const char *p = samples; (p = strchr(p, '\n')); p++)
            n++;
        assert_int_equal(n, COUNT(expected));
    }
    assert_contains(collect("users", section, "slurm_user_state_total"),
                    "state=\"CANCELLED\"} 1022\n");
}

TEST(gpus_are_read_in_every_notation)
{
    section = jobs_from(
        "RUNNING user=both tres=cpu=8,mem=64G,node=1,billing=8,gres/gpu=4,gres/gpu:a100=4\n"
        "RUNNING user=both tres=cpu=8,mem=64G,node=1,billing=8,gres/gpu=2,gres/gpu:a100=2\n"
        "RUNNING user=total-only tres=cpu=1,gres/gpu=3\n"
        "RUNNING user=type-only tres=cpu=1,gres/gpu:v100=2\n"
        "RUNNING user=partly tres=cpu=1,gres/gpu=6,gres/gpu:a100=4\n"
        "RUNNING user=two-types tres=cpu=1,gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1\n"
        "RUNNING user=as-asked tres=gres/gpu:2\n"
        "RUNNING user=as-asked-too tres=gres:gpu:a100:2,gres:gpu:1\n"
        "RUNNING user=mig tres=cpu=1,gres/gpu=1,gres/gpu:a100_3g.20gb=1\n"
        "RUNNING user=shards tres=cpu=1,gres/shard=4,gres/shard:a100=3\n"
        "RUNNING user=none-by-name tres=cpu=1,gres/gpu:none=2\n"
        "RUNNING user=none-by-name tres=cpu=1,gres/gpu=3\n"
        "RUNNING user=no-gpu tres=cpu=1,mem=1G,node=1,billing=1\n"
        "RUNNING user=unreadable tres=cpu=1,gres/gpu=many\n");
    assert_string_equal(collect("users", section, "slurm_user_gpu"),
                        "slurm_user_gpus_allocated{user=\"both\",type=\"a100\"} 6\n"
                        "slurm_user_gpus_allocated{user=\"total-only\",type=\"none\"} 3\n"
                        "slurm_user_gpus_allocated{user=\"type-only\",type=\"v100\"} 2\n"
                        "slurm_user_gpus_allocated{user=\"partly\",type=\"none\"} 2\n"
                        "slurm_user_gpus_allocated{user=\"partly\",type=\"a100\"} 4\n"
                        "slurm_user_gpus_allocated{user=\"two-types\",type=\"a100\"} 2\n"
                        "slurm_user_gpus_allocated{user=\"two-types\",type=\"v100\"} 1\n"
                        "slurm_user_gpus_allocated{user=\"as-asked\",type=\"none\"} 2\n"
                        "slurm_user_gpus_allocated{user=\"as-asked-too\",type=\"none\"} 1\n"
                        "slurm_user_gpus_allocated{user=\"as-asked-too\",type=\"a100\"} 2\n"
                        "slurm_user_gpus_allocated{user=\"mig\",type=\"a100_3g.20gb\"} 1\n"
                        "slurm_user_gpus_allocated{user=\"none-by-name\",type=\"none\"} 5\n"
                        "slurm_user_gpu_shards_allocated{user=\"shards\",type=\"none\"} 1\n"
                        "slurm_user_gpu_shards_allocated{user=\"shards\",type=\"a100\"} 3\n");
}

TEST(gpus_are_held_by_running_suspended_and_completing_jobs_only)
{
    section = jobs_from("* tres=cpu=1,gres/gpu=2\n"
                        "RUNNING\n"
                        "SUSPENDED\n"
                        "PENDING tasks=100\n"
                        "COMPLETED\n"
                        "FAILED\n"
                        "COMPLETING\n");
    assert_string_equal(collect("accounts", section, "slurm_account_gpus"),
                        "slurm_account_gpus_allocated{account=\"physics\",type=\"none\"} 6\n");
}

TEST(a_suspended_job_holds_memory_and_gpus_but_no_cpus)
{
    section = jobs_from("SUSPENDED cpus=4 tres=cpu=4,gres/gpu=2\n");
    assert_string_equal(
        collect("accounts", section, ""),
        "slurm_account_job_state_total{account=\"physics\",state=\"SUSPENDED\"} 1\n"
        "slurm_account_job_state_cpu_alloc{account=\"physics\",state=\"SUSPENDED\"} 0\n"
        "slurm_account_job_state_mem_alloc{account=\"physics\",state=\"SUSPENDED\"} 1073741824\n"
        "slurm_account_cpu_alloc{account=\"physics\"} 0\n"
        "slurm_account_mem_alloc{account=\"physics\"} 1073741824\n"
        "slurm_account_gpus_allocated{account=\"physics\",type=\"none\"} 2\n"
        "slurm_account_gres_allocated{account=\"physics\",gres=\"gpu\",type=\"none\"} 2\n");
    assert_string_equal(collect("users", section, "slurm_user_gpus"),
                        "slurm_user_gpus_allocated{user=\"ann\",type=\"none\"} 2\n");
    section_add(section, "RUNNING+STOPPED\n");
    assert_string_equal(collect("features", section, ""),
                        "slurm_feature_total{feature=\"\"} 2\n"
                        "slurm_feature_cpu_alloc{feature=\"\"} 1\n"
                        "slurm_feature_mem_alloc{feature=\"\"} 2147483648\n");
}

TEST(more_gpu_types_than_anybody_has_are_one)
{
    section = section_new(KIND_JOBS);
    for (int i = 0; i < 120; i++)
        section_add(section, "RUNNING tres=gres/gpu:t%d=1\n", i);
    assert_contains(collect("users", section, "slurm_user_gpus"),
                    "slurm_user_gpus_allocated{user=\"ann\",type=\"t99\"} 1\n"
                    "slurm_user_gpus_allocated{user=\"ann\",type=\"other\"} 20\n");
}

TEST(an_account_has_what_it_asks_for_by_state_and_what_it_holds_without)
{
    section = jobs_from("RUNNING cpus=16 tres=cpu=16,gres/gpu=2,gres/gpu:a100=2,gres/shard=1\n"
                        "PENDING tasks=3 cpus=5\n"
                        "PENDING account=waiting\n");
    assert_string_equal(
        collect("accounts", section, ""),
        "slurm_account_job_state_total{account=\"physics\",state=\"PENDING\"} 3\n"
        "slurm_account_job_state_total{account=\"physics\",state=\"RUNNING\"} 1\n"
        "slurm_account_job_state_total{account=\"waiting\",state=\"PENDING\"} 1\n"
        "slurm_account_job_state_cpu_alloc{account=\"physics\",state=\"PENDING\"} 15\n"
        "slurm_account_job_state_cpu_alloc{account=\"physics\",state=\"RUNNING\"} 16\n"
        "slurm_account_job_state_cpu_alloc{account=\"waiting\",state=\"PENDING\"} 1\n"
        "slurm_account_job_state_mem_alloc{account=\"physics\",state=\"PENDING\"} 3221225472\n"
        "slurm_account_job_state_mem_alloc{account=\"physics\",state=\"RUNNING\"} 1073741824\n"
        "slurm_account_job_state_mem_alloc{account=\"waiting\",state=\"PENDING\"} 1073741824\n"
        "slurm_account_cpu_alloc{account=\"physics\"} 16\n"
        "slurm_account_cpu_alloc{account=\"waiting\"} 0\n"
        "slurm_account_mem_alloc{account=\"physics\"} 1073741824\n"
        "slurm_account_mem_alloc{account=\"waiting\"} 0\n"
        "slurm_account_gpus_allocated{account=\"physics\",type=\"a100\"} 2\n"
        "slurm_account_gpu_shards_allocated{account=\"physics\",type=\"none\"} 1\n"
        "slurm_account_gres_allocated{account=\"physics\",gres=\"gpu\",type=\"a100\"} 2\n"
        "slurm_account_gres_allocated{account=\"physics\",gres=\"shard\",type=\"none\"} 1\n");
}

TEST(a_job_for_several_partitions_counts_once_in_each)
{
    section = jobs_from(
        "PENDING partition=cpu,gpu,cpu,, tasks=10 cpus=4 tres=cpu=4,mem=1G,node=1,gres/gpu=1\n"
        "RUNNING partition=gpu tres=cpu=1,mem=1G,node=1,gres/gpu=2,gres/gpu:a100=2\n"
        "FAILED partition=\n");
    assert_string_equal(
        collect("partition_jobs", section, ""),
        "slurm_partition_job_state_total{partition=\"cpu\",state=\"PENDING\"} 10\n"
        "slurm_partition_job_state_total{partition=\"cpu\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_state_total{partition=\"cpu\",state=\"FAILED\"} 0\n"
        "slurm_partition_job_state_total{partition=\"gpu\",state=\"PENDING\"} 10\n"
        "slurm_partition_job_state_total{partition=\"gpu\",state=\"RUNNING\"} 1\n"
        "slurm_partition_job_state_total{partition=\"gpu\",state=\"FAILED\"} 0\n"
        "slurm_partition_job_state_total{partition=\"\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_state_total{partition=\"\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_state_total{partition=\"\",state=\"FAILED\"} 1\n"
        "slurm_partition_job_cpus{partition=\"cpu\",state=\"PENDING\"} 40\n"
        "slurm_partition_job_cpus{partition=\"cpu\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_cpus{partition=\"gpu\",state=\"PENDING\"} 40\n"
        "slurm_partition_job_cpus{partition=\"gpu\",state=\"RUNNING\"} 1\n"
        "slurm_partition_job_cpus{partition=\"\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_cpus{partition=\"\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"cpu\",state=\"PENDING\"} 10737418240\n"
        "slurm_partition_job_memory_bytes{partition=\"cpu\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"gpu\",state=\"PENDING\"} 10737418240\n"
        "slurm_partition_job_memory_bytes{partition=\"gpu\",state=\"RUNNING\"} 1073741824\n"
        "slurm_partition_job_memory_bytes{partition=\"\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_gpus{partition=\"cpu\",type=\"none\",state=\"PENDING\"} 10\n"
        "slurm_partition_job_gpus{partition=\"cpu\",type=\"none\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_gpus{partition=\"gpu\",type=\"none\",state=\"PENDING\"} 10\n"
        "slurm_partition_job_gpus{partition=\"gpu\",type=\"none\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_gpus{partition=\"gpu\",type=\"a100\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_gpus{partition=\"gpu\",type=\"a100\",state=\"RUNNING\"} 2\n"
        "slurm_partition_job_gres{partition=\"cpu\",gres=\"gpu\",type=\"none\","
        "state=\"PENDING\"} 10\n"
        "slurm_partition_job_gres{partition=\"cpu\",gres=\"gpu\",type=\"none\","
        "state=\"RUNNING\"} 0\n"
        "slurm_partition_job_gres{partition=\"gpu\",gres=\"gpu\",type=\"none\","
        "state=\"PENDING\"} 10\n"
        "slurm_partition_job_gres{partition=\"gpu\",gres=\"gpu\",type=\"none\","
        "state=\"RUNNING\"} 0\n"
        "slurm_partition_job_gres{partition=\"gpu\",gres=\"gpu\",type=\"a100\","
        "state=\"PENDING\"} 0\n"
        "slurm_partition_job_gres{partition=\"gpu\",gres=\"gpu\",type=\"a100\","
        "state=\"RUNNING\"} 2\n");
}

TEST(a_list_of_partitions_without_end_is_cut)
{
    struct buf list;

    buf_init(&list, 1 << 20);
    for (int i = 0; i < 5000; i++)
        buf_printf(&list, "p%d,", i);
    section = jobs_from("PENDING partition=%s\n", list.p);
    /* PENDING and RUNNING of each */
    assert_int_equal(count_samples("partition_jobs", section, "slurm_partition_job_state_total"),
                     2 * 1000);
    buf_free(&list);
}

TEST(a_qos_has_jobs_cpus_memory_and_gpus_by_state)
{
    section = jobs_from("RUNNING tres=gres/gpu:v100=1\n"
                        "PENDING qos=high cpus=7\n");
    assert_string_equal(collect("qos", section, ""),
                        "slurm_qos_jobs{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_jobs{qos=\"normal\",state=\"RUNNING\"} 1\n"
                        "slurm_qos_jobs{qos=\"high\",state=\"PENDING\"} 1\n"
                        "slurm_qos_jobs{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"normal\",state=\"RUNNING\"} 1\n"
                        "slurm_qos_job_cpus{qos=\"high\",state=\"PENDING\"} 7\n"
                        "slurm_qos_job_cpus{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"normal\",state=\"RUNNING\"} 1073741824\n"
                        "slurm_qos_job_memory_bytes{qos=\"high\",state=\"PENDING\"} 1073741824\n"
                        "slurm_qos_job_memory_bytes{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_gpus{qos=\"normal\",type=\"v100\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_gpus{qos=\"normal\",type=\"v100\",state=\"RUNNING\"} 1\n"
                        "slurm_qos_job_gres{qos=\"normal\",gres=\"gpu\",type=\"v100\","
                        "state=\"PENDING\"} 0\n"
                        "slurm_qos_job_gres{qos=\"normal\",gres=\"gpu\",type=\"v100\","
                        "state=\"RUNNING\"} 1\n");
}

static symbol put(const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static void know_partitions(symbol *partitions, size_t n)
{
    section->jobs.known_partition = partitions;
    section->jobs.n_known_partitions = n;
}

static void know_qos(symbol *qos, size_t n)
{
    section->jobs.known_qos = qos;
    section->jobs.n_known_qos = n;
}

TEST(partitions_and_qos_without_jobs_say_zero)
{
    section = jobs_from("RUNNING\n");
    know_partitions((symbol[]){ put("gpu"), put("cpu"), 0 }, 3);
    know_qos((symbol[]){ put("high"), put("normal") }, 2);
    assert_string_equal(
        collect("partition_jobs", section, ""),
        "slurm_partition_job_state_total{partition=\"cpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_state_total{partition=\"cpu\",state=\"RUNNING\"} 1\n"
        "slurm_partition_job_state_total{partition=\"gpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_state_total{partition=\"gpu\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_cpus{partition=\"cpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_cpus{partition=\"cpu\",state=\"RUNNING\"} 1\n"
        "slurm_partition_job_cpus{partition=\"gpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_cpus{partition=\"gpu\",state=\"RUNNING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"cpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"cpu\",state=\"RUNNING\"} 1073741824\n"
        "slurm_partition_job_memory_bytes{partition=\"gpu\",state=\"PENDING\"} 0\n"
        "slurm_partition_job_memory_bytes{partition=\"gpu\",state=\"RUNNING\"} 0\n");
    section->jobs.n = 0;
    assert_string_equal(collect("qos", section, ""),
                        "slurm_qos_jobs{qos=\"high\",state=\"PENDING\"} 0\n"
                        "slurm_qos_jobs{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_jobs{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_jobs{qos=\"normal\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"high\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_cpus{qos=\"normal\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"high\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"high\",state=\"RUNNING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"normal\",state=\"PENDING\"} 0\n"
                        "slurm_qos_job_memory_bytes{qos=\"normal\",state=\"RUNNING\"} 0\n");
    assert_string_equal(collect("pending", section, ""),
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 0\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 0\n"
                        "slurm_pending_oldest_age_seconds 0\n");
    section_add(section, "PENDING reason=Resources\n");
    assert_string_equal(collect("pending", section, "slurm_partition_pending"),
                        "slurm_partition_pending_jobs{partition=\"cpu\",reason=\"Resources\"} 1\n"
                        "slurm_partition_pending_cpus{partition=\"cpu\",reason=\"Resources\"} 1\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 60\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 0\n");
}

TEST(qos_that_the_source_does_not_tell_are_absent)
{
    section = jobs_from("PENDING qos= reason=Resources\n");
    section->jobs.lacks_qos = true;
    know_qos((symbol[]){ put("normal") }, 1);
    assert_string_equal(collect("qos", section, ""), "");
    assert_string_equal(collect("pending", section, "slurm_qos"), "");
    assert_contains(collect("pending", section, ""),
                    "slurm_account_pending_jobs{account=\"physics\"");
}

TEST(features_count_for_jobs_that_hold_resources)
{
    section = jobs_from("RUNNING features= cpus=1\n"
                        "RUNNING features=skylake cpus=2\n"
                        "RUNNING features=skylake&ib cpus=4\n"
                        "RUNNING features=[rack1*2&rack2*4] cpus=8\n"
                        "RUNNING features=(a&b)|c cpus=16\n"
                        "RUNNING features=skylake&skylake& cpus=32\n"
                        "PENDING features=never\n");
    assert_string_equal(collect("features", section, ""),
                        "slurm_feature_total{feature=\"\"} 1\n"
                        "slurm_feature_total{feature=\"skylake\"} 3\n"
                        "slurm_feature_total{feature=\"ib\"} 1\n"
                        "slurm_feature_total{feature=\"[rack1*2&rack2*4]\"} 1\n"
                        "slurm_feature_total{feature=\"(a&b)|c\"} 1\n"
                        "slurm_feature_cpu_alloc{feature=\"\"} 1\n"
                        "slurm_feature_cpu_alloc{feature=\"skylake\"} 38\n"
                        "slurm_feature_cpu_alloc{feature=\"ib\"} 4\n"
                        "slurm_feature_cpu_alloc{feature=\"[rack1*2&rack2*4]\"} 8\n"
                        "slurm_feature_cpu_alloc{feature=\"(a&b)|c\"} 16\n"
                        "slurm_feature_mem_alloc{feature=\"\"} 1073741824\n"
                        "slurm_feature_mem_alloc{feature=\"skylake\"} 3221225472\n"
                        "slurm_feature_mem_alloc{feature=\"ib\"} 1073741824\n"
                        "slurm_feature_mem_alloc{feature=\"[rack1*2&rack2*4]\"} 1073741824\n"
                        "slurm_feature_mem_alloc{feature=\"(a&b)|c\"} 1073741824\n");
}

TEST(features_that_the_source_does_not_tell_are_absent)
{
    section = jobs_from("RUNNING\n");
    section->jobs.lacks_features = true;
    assert_string_equal(collect("features", section, ""), "");
}

TEST(features_past_the_hundred_most_frequent_are_other)
{
    const char *samples;

    section = section_new(KIND_JOBS);
    for (int i = 0; i < 150; i++)
        section_add(section, "RUNNING features=f%03d cpus=2\n", i);
    section_add(section, "RUNNING features=f149 cpus=2\n"
                         "RUNNING features=other cpus=3\n");
    samples = collect("features", section, "");
    /* those with one job each go by name, so that they stay the same from look to look */
    assert_contains(samples, "slurm_feature_total{feature=\"f098\"} 1\n"
                             "slurm_feature_total{feature=\"f149\"} 2\n"
                             "slurm_feature_total{feature=\"other\"} 51\n");
    assert_contains(samples, "slurm_feature_cpu_alloc{feature=\"other\"} 103\n");
    assert_contains(samples, "slurm_feature_mem_alloc{feature=\"other\"} 54760833024\n");
    assert_null(strstr(samples, "\"f099\""));
    assert_int_equal(collected.folded, 150); /* of each family 50 */
    assert_int_equal(collected.duplicates, 0);
}

TEST(a_name_that_is_other_already_is_not_counted_as_folded)
{
    section = section_new(KIND_JOBS);
    for (int i = 0; i < 101; i++)
        section_add(section, "PENDING reason='reason %d' tasks=2\n", i);
    section_add(section, "PENDING reason=other\n");
    assert_contains(collect("jobs", section, "slurm_pending_reason_total"),
                    "slurm_pending_reason_total{reason=\"other\"} 3\n");
    assert_int_equal(collected.folded, 1);
    collect("pending", section, "");
    assert_int_equal(collected.folded, 1);
}

TEST(a_sum_that_does_not_fit_is_absent_from_other_too)
{
    const char *samples;

    section = section_new(KIND_JOBS);
    for (int i = 0; i < 100; i++)
        section_add(section, "RUNNING features=f%03d tasks=100\n", i);
    section_add(section, "RUNNING features=nonsense memory=1048576T tasks=16\n"
                         "RUNNING features=rare\n");
    samples = collect("features", section, "");
    assert_contains(samples, "slurm_feature_total{feature=\"other\"} 17\n");
    assert_null(strstr(samples, "slurm_feature_mem_alloc{feature=\"other\"}"));
    assert_contains(samples, "slurm_feature_mem_alloc{feature=\"f099\"} 107374182400\n");
}

TEST(reasons_are_spelled_as_dashboards_know_them)
{
    section = jobs_from("PENDING reason=Priority tasks=7\n"
                        "PENDING reason='ReqNodeNotAvail, UnavailableNodes:n[1-3]'\n"
                        "PENDING reason='ReqNodeNotAvail, UnavailableNodes:n4'\n"
                        "PENDING reason='(ReqNodeNotAvail, UnavailableNodes)'\n"
                        "PENDING reason='ReqNodeNotAvail, Reserved for maintenance'\n"
                        "PENDING reason='ReqNodeNotAvail, May be reserved for other job'\n"
                        "PENDING reason=ReqNodeNotAvail(Unavailable:n[1-3])\n"
                        "PENDING reason=ReqNodeNotAvail\n"
                        "PENDING reason=ReqNodeNotAvailable\n"
                        "PENDING reason=\n"
                        "PENDING+REQUEUE_HOLD reason=Priority\n"
                        "RUNNING reason=Prolog\n");
    assert_string_equal(
        collect("jobs", section, "slurm_pending_reason_total"),
        "slurm_pending_reason_total{reason=\"Priority\"} 7\n"
        "slurm_pending_reason_total{reason=\"(ReqNodeNotAvail, UnavailableNodes)\"} 3\n"
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvail, Reserved for maintenance\"} 1\n"
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvail, May be reserved for other job\"} 1\n"
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvail\"} 2\n"
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvailable\"} 1\n"
        "slurm_pending_reason_total{reason=\"None\"} 1\n");
}

TEST(three_hundred_maintenances_are_one_reason)
{
    section = section_new(KIND_JOBS);
    for (int i = 0; i < 300; i++)
        section_add(section, "PENDING reason='ReqNodeNotAvail, Reserved for maintenance cn%d'\n",
                    i);
    assert_string_equal(
        collect("jobs", section, "slurm_pending_reason_total"),
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvail, Reserved for maintenance\"} 300\n");
    assert_int_equal(collected.folded, 0);
}

TEST(reasons_past_the_hundred_most_frequent_are_other)
{
    const char *samples;

    section = section_new(KIND_JOBS);
    for (int i = 0; i < 149; i++)
        section_add(section, "PENDING reason='burst_buffer/lua: message %03d'\n", i);
    section_add(section, "PENDING reason=Priority tasks=9\n"
                         "PENDING reason=other tasks=5\n");
    samples = collect("jobs", section, "slurm_pending_reason_total");
    assert_contains(samples, "slurm_pending_reason_total{reason=\"Priority\"} 9\n");
    assert_contains(samples, "{reason=\"burst_buffer/lua: message 097\"} 1\n");
    assert_contains(samples, "slurm_pending_reason_total{reason=\"other\"} 56\n");
    assert_null(strstr(samples, "message 098"));
    assert_int_equal(collected.folded, 51);
    assert_int_equal(collected.duplicates, 0);
    samples = collect("pending", section, "");
    assert_contains(samples, "pending_jobs{partition=\"cpu\",reason=\"Priority\"} 9\n");
    assert_contains(samples, "pending_jobs{partition=\"cpu\",reason=\"other\"} 56\n");
    assert_contains(samples, "slurm_account_pending_jobs{account=\"physics\",reason=\"other\"} 56");
    assert_int_equal(collected.folded, 51);
    assert_int_equal(collected.duplicates, 0);
}

TEST(what_waits_is_told_by_reason_for_partition_account_and_qos)
{
    section = jobs_from(
        "PENDING reason=Resources partition=cpu,gpu tasks=3 cpus=4 tres=cpu=4,gres/gpu=2\n"
        "PENDING reason=Priority account=bio tres=cpu=1,gres/gpu=1,gres/gpu:a100=1\n"
        "PENDING reason='ReqNodeNotAvail, UnavailableNodes:n1' qos=high cpus=unknown\n"
        "RUNNING\n");
    assert_string_equal(
        collect("pending", section, ""),
        "slurm_partition_pending_jobs{partition=\"cpu\",reason=\"Resources\"} 3\n"
        "slurm_partition_pending_jobs{partition=\"cpu\",reason=\"Priority\"} 1\n"
        "slurm_partition_pending_jobs{partition=\"cpu\","
        "reason=\"ReqNodeNotAvail, UnavailableNodes\"} 1\n"
        "slurm_partition_pending_jobs{partition=\"gpu\",reason=\"Resources\"} 3\n"
        "slurm_partition_pending_cpus{partition=\"cpu\",reason=\"Resources\"} 12\n"
        "slurm_partition_pending_cpus{partition=\"cpu\",reason=\"Priority\"} 1\n"
        "slurm_partition_pending_cpus{partition=\"gpu\",reason=\"Resources\"} 12\n"
        "slurm_partition_pending_gpus{partition=\"cpu\",type=\"none\",reason=\"Resources\"} 6\n"
        "slurm_partition_pending_gpus{partition=\"cpu\",type=\"a100\",reason=\"Priority\"} 1\n"
        "slurm_partition_pending_gpus{partition=\"gpu\",type=\"none\",reason=\"Resources\"} 6\n"
        "slurm_account_pending_jobs{account=\"physics\",reason=\"Resources\"} 3\n"
        "slurm_account_pending_jobs{account=\"physics\","
        "reason=\"ReqNodeNotAvail, UnavailableNodes\"} 1\n"
        "slurm_account_pending_jobs{account=\"bio\",reason=\"Priority\"} 1\n"
        "slurm_qos_pending_jobs{qos=\"normal\",reason=\"Resources\"} 3\n"
        "slurm_qos_pending_jobs{qos=\"normal\",reason=\"Priority\"} 1\n"
        "slurm_qos_pending_jobs{qos=\"high\",reason=\"ReqNodeNotAvail, UnavailableNodes\"} 1\n"
        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 60\n"
        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 60\n"
        "slurm_pending_oldest_age_seconds 60\n");
}

TEST(the_oldest_is_as_old_as_it_could_have_run)
{
    /* of the last, slurmctld's clock is ahead of ours */
    section = jobs_from("PENDING reason=Priority submit=-3d eligible=-2d\n"
                        "PENDING reason=Resources partition=gpu submit=-1d eligible=-4d\n"
                        "PENDING reason=Resources partition=debug submit=+30s\n");
    assert_string_equal(collect("pending", section, "slurm_partition_pending_oldest"),
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 172800\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 86400\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"debug\"} 0\n");
    assert_string_equal(collect("pending", section, "slurm_pending_oldest"),
                        "slurm_pending_oldest_age_seconds 172800\n");
}

TEST(jobs_that_something_else_than_the_cluster_keeps_back_have_no_age)
{
    static const char *const own[] = {
        "JobHeldUser",        "JobHeldAdmin",
        "JobHoldMaxRequeue",  "job requeued in held state",
        "Dependency",         "DependencyNeverSatisfied",
        "BeginTime",          "JobArrayTaskLimit",
        "AssocGrpCpuLimit",   "AssociationJobLimit",
        "AccountingPolicy",   "QOSMaxJobsPerUserLimit",
        "InvalidQOS",         "MaxGRESPerAccount",
        "PartitionTimeLimit", "MaxMemPerLimit",
    };
    static const char *const of_the_cluster[] = {
        "",
        "Priority",
        "Resources",
        "Licenses",
        "Reservation",
        "ReqNodeNotAvail, UnavailableNodes:n1",
        "NodeDown",
        "PartitionDown",
        "ReqNodeNotAvail, Reserved for maintenance",
        "MaxPoweredUpNodes",
    };

    section = jobs_from("PENDING reason='message of a plugin' priority=0\n"
                        "PENDING reason=Priority eligible=+1d\n");
    for (size_t i = 0; i < COUNT(own); i++)
        section_add(section, "PENDING reason='%s' submit=-1d\n", own[i]);
    assert_string_equal(collect("pending", section, "slurm_pending_oldest"),
                        "slurm_pending_oldest_age_seconds 0\n");
    for (size_t i = 0; i < COUNT(of_the_cluster); i++) {
        char expected[64];

        section_add(section, "PENDING reason='%s' submit=-%zus\n", of_the_cluster[i], 1000 + i);
        snprintf(expected, sizeof(expected), "slurm_pending_oldest_age_seconds %zu\n", 1000 + i);
        assert_string_equal(collect("pending", section, "slurm_pending_oldest"), expected);
    }
}

TEST(an_age_that_nobody_tells_is_absent)
{
    section = jobs_from("PENDING reason=Priority submit=0\n");
    assert_string_equal(collect("pending", section, "slurm_pending_oldest"), "");
    assert_string_equal(collect("pending", section, "slurm_partition_pending_oldest"), "");
    section_add(section, "PENDING reason=Priority\n");
    assert_string_equal(collect("pending", section, "slurm_pending_oldest"),
                        "slurm_pending_oldest_age_seconds 60\n");
}

TEST(waits_are_a_histogram_of_each_partition)
{
    struct wait waits[] = {
        { .buckets = { 3, 0, 1, [WAIT_BOUNDS] = 2 }, .sum = 1.5e6 },
        { .buckets = { [5] = 1 }, .sum = 250 },
    };

    section = section_new(KIND_JOBS);
    waits[0].partition = put("cpu");
    waits[1].partition = put("gpu");
    section->jobs.wait = waits;
    section->jobs.n_waits = COUNT(waits);
    assert_string_equal(
        collect("waits", section, "slurm_job_wait_seconds_bucket{partition=\"cpu\""),
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"1\"} 3\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"5\"} 3\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"15\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"30\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"60\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"300\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"900\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"1800\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"3600\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"14400\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"43200\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"86400\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"259200\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"604800\"} 4\n"
        "slurm_job_wait_seconds_bucket{partition=\"cpu\",le=\"+Inf\"} 6\n");
    assert_contains(collect("waits", section, ""),
                    "slurm_job_wait_seconds_sum{partition=\"cpu\"} 1500000\n"
                    "slurm_job_wait_seconds_count{partition=\"cpu\"} 6\n");
    section->jobs.wait = &waits[1];
    section->jobs.n_waits = 1;
    collect("waits", section, "");
    assert_string_equal(collected.text.p,
                        "# HELP slurm_job_wait_seconds How long jobs were pending before they "
                        "started, from when they could have run: submitted, not held, no "
                        "dependency left. With a store: every job that has started since the store "
                        "was begun and that the queue or slurmdbd has shown. Without: jobs that "
                        "the queue has shown since sonde was started; a job that starts and leaves "
                        "the queue between two polls is missing.\n"
                        "# TYPE slurm_job_wait_seconds histogram\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"1\"} 0\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"5\"} 0\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"15\"} 0\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"30\"} 0\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"60\"} 0\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"300\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"900\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"1800\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"3600\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"14400\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"43200\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"86400\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"259200\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"604800\"} 1\n"
                        "slurm_job_wait_seconds_bucket{partition=\"gpu\",le=\"+Inf\"} 1\n"
                        "slurm_job_wait_seconds_sum{partition=\"gpu\"} 250\n"
                        "slurm_job_wait_seconds_count{partition=\"gpu\"} 1\n");
}

TEST(what_no_job_tells_is_absent_and_what_some_tell_is_added_up)
{
    section = jobs_from("RUNNING cpus=unknown memory=unknown\n");
    assert_string_equal(collect("accounts", section, ""),
                        "slurm_account_job_state_total{account=\"physics\",state=\"RUNNING\"} 1\n");
    assert_string_equal(collect("partition_jobs", section, "slurm_partition_job_cpus"),
                        "slurm_partition_job_cpus{partition=\"cpu\",state=\"PENDING\"} 0\n");
    assert_string_equal(collect("features", section, ""), "slurm_feature_total{feature=\"\"} 1\n");
    section_add(section, "RUNNING cpus=5\n");
    assert_string_equal(collect("accounts", section, "slurm_account_cpu"),
                        "slurm_account_cpu_alloc{account=\"physics\"} 5\n");
}

TEST(a_sum_that_does_not_fit_is_absent)
{
    static const char *const collector[] = { "users", "accounts", "partition_jobs", "qos" };
    const char *samples;

    section = jobs_from(
        "RUNNING memory=18446744073709551614\n"
        "RUNNING memory=18446744073709551614 tres=gres/gpu:x=18446744073709551000\n"
        "RUNNING tres=gres/gpu:x=18446744073709551000\n"
        "RUNNING user=bob "
        "tres=gres/gpu:y=9223372036854775807,gres/gpu:y=9223372036854775807,gres/gpu:y=2\n"
        "RUNNING user=bob tres=gres/gpu:y=1\n"
        "RUNNING user=carol memory=1048576T tasks=16\n");
    for (size_t i = 0; i < COUNT(collector); i++) {
        samples = collect(collector[i], section, "");
        assert_null(strstr(samples, "physics\"} 18446744073709"));
        assert_null(strstr(samples, "mem_alloc{username=\"ann\""));
        assert_null(strstr(samples, "mem_alloc{username=\"carol\""));
        assert_null(strstr(samples, "type=\"x\",state=\"RUNNING\""));
        assert_null(strstr(samples, "type=\"x\"}"));
        assert_null(strstr(samples, "type=\"y\"}"));
    }
    assert_string_equal(collect("accounts", section, "slurm_account_mem"), "");
    assert_string_equal(collect("features", section, "slurm_feature_mem"), "");
    assert_contains(collect("users", section, ""),
                    "slurm_user_cpu_alloc{username=\"ann\",state=\"RUNNING\"} 3\n");
}

#define HOSTILE "'a\"} 1\nb{c=\"\\'"

TEST(names_are_not_structure)
{
    section = jobs_from("PENDING reason=" HOSTILE " user=" HOSTILE " account=" HOSTILE
                        " qos=" HOSTILE " partition=" HOSTILE " tres='gres/gpu:\"\n\\=1'\n"
                        "RUNNING features=" HOSTILE " user=\xff\xfe\n"
                        "RUNNING user=\xfe\xff\n");
    assert_string_equal(collect("features", section, "slurm_feature_total"),
                        "slurm_feature_total{feature=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n"
                        "slurm_feature_total{feature=\"\"} 1\n");
    assert_string_equal(collect("jobs", section, "slurm_pending_reason_total"),
                        "slurm_pending_reason_total{reason=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n");
    assert_string_equal(collect("pending", section, "slurm_partition_pending_gpus"),
                        "slurm_partition_pending_gpus{partition=\"a\\\"} 1\\nb{c=\\\"\\\\\","
                        "type=\"\\\"\\n\\\\\",reason=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n");
    assert_contains(collect("users", section, ""),
                    "slurm_user_state_total{username=\"\xef\xbf\xbd\xef\xbf"
                    "\xbd\",state=\"RUNNING\"} 1\n");
    assert_int_equal(collected.duplicates,
                     3); /* the two that are not UTF-8 look the same, by three families */
    assert_string_equal(collect("qos", section, "slurm_qos_jobs{qos=\"a"),
                        "slurm_qos_jobs{qos=\"a\\\"} 1\\nb{c=\\\"\\\\\",state=\"PENDING\"} 1\n"
                        "slurm_qos_jobs{qos=\"a\\\"} 1\\nb{c=\\\"\\\\\",state=\"RUNNING\"} 0\n");
}

static uint64_t sum(const char *collector, const char *family, const char *label)
{
    uint64_t total = 0, value;

    for (struct str rest = str_of(collect(collector, section, family)); rest.n;) {
        struct str line = str_cut(&rest, '\n');
        size_t end = line.n;

        if (str_find_str(line, str_of(label)) == line.n)
            continue;
        while (line.p[end - 1] != ' ')
            end--;
        assert_true(num_get_u64(str_skip(line, end), &value));
        total += value;
    }
    return total;
}

TEST(the_collectors_agree_with_each_other)
{
    static const struct sim sim = { .nodes = 500, .jobs = 10000, .seed = 3, .users = 200 };
    const char *pending = "state=\"PENDING\"";
    uint64_t jobs_pending, cpus_held;

    section = sim_section(&sim, KIND_JOBS, sections_now);
    jobs_pending = sum("jobs", "slurm_job_count", pending);
    cpus_held = sum("accounts", "slurm_account_cpu", "");
    assert_true(jobs_pending > 1000 && cpus_held > 1000);
    assert_int_equal(sum("jobs", "slurm_pending_reason_total", ""), jobs_pending);
    assert_int_equal(sum("users", "slurm_user_state_total", pending), jobs_pending);
    assert_int_equal(sum("accounts", "slurm_account_job_state_total", pending), jobs_pending);
    assert_int_equal(sum("qos", "slurm_qos_jobs", pending), jobs_pending);
    assert_int_equal(sum("pending", "slurm_account_pending_jobs", ""), jobs_pending);
    assert_int_equal(sum("pending", "slurm_qos_pending_jobs", ""), jobs_pending);
    assert_int_equal(sum("pending", "slurm_partition_pending_jobs", ""),
                     sum("partition_jobs", "slurm_partition_job_state_total", pending));
    assert_int_equal(sum("pending", "slurm_partition_pending_cpus", ""),
                     sum("partition_jobs", "slurm_partition_job_cpus", pending));
    assert_int_equal(sum("pending", "slurm_partition_pending_gpus", ""),
                     sum("partition_jobs", "slurm_partition_job_gpus", pending));
    assert_int_equal(sum("features", "slurm_feature_cpu_alloc", ""), cpus_held);
    assert_int_equal(sum("users", "slurm_user_gpus_allocated", ""),
                     sum("accounts", "slurm_account_gpus_allocated", ""));
    assert_int_equal(sum("users", "slurm_user_cpu_alloc", "state=\"RUNNING\""),
                     sum("partition_jobs", "slurm_partition_job_cpus", "state=\"RUNNING\""));
}

TEST(each_gpu_that_a_job_holds_is_a_series)
{
    section = jobs_from("gpus 7 g1 0-1,3\n"
                        "gpus 7 g2 12\n"
                        "gpus 4294967294 g1 2\n");
    assert_string_equal(collect("job_gpus", section, ""),
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"0\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"1\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"3\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g2\",gpu=\"12\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"4294967294\",node=\"g1\",gpu=\"2\"} 1\n");
    assert_int_equal(collected.folded, 0);
}

TEST(gpus_that_are_told_twice_or_cannot_be_read_are_left_out)
{
    section = jobs_from("gpus 7 g1 0\n"
                        "gpus 7 g1 0-7\n"
                        "gpus 8 g1 0,x\n"
                        "gpus 9 g1 0-1024\n"
                        "gpus 10 g1 ''\n");
    assert_string_equal(collect("job_gpus", section, ""),
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"0\"} 1\n");
    assert_int_equal(collected.duplicates, 0);
}

TEST(gpus_past_the_ceiling_are_counted_and_not_shown)
{
    section = section_new(KIND_JOBS);
    for (int job = 1; job <= 51; job++)
        section_add(section, "gpus %d g1 0-999\n", job);
    assert_int_equal(count_samples("job_gpus", section, "slurm_job_gpu_allocated{"), 50000);
    assert_int_equal(collected.folded, 1000);
}

#define JOBS_WITH_GRES                                                                             \
    "RUNNING id=1 tres=cpu=1,gres/gpu=2,gres/gpu:a100=2,gres/tpu=3,gres/tpu:v4=1 gres=nic:2\n"     \
    "SUSPENDED id=2 tres=cpu=1,gres/tpu=4\n"                                                       \
    "PENDING id=3 tasks=5 tres=cpu=1,gres/tpu=1 qos=high\n"                                        \
    "COMPLETED id=4 tres=cpu=1,gres/tpu=64\n"                                                      \
    "RUNNING id=5 tres=cpu=1 user=bob\n"

TEST(a_job_has_gres_by_name_and_type_while_it_holds_them)
{
    section = jobs_from(JOBS_WITH_GRES);
    assert_string_equal(collect("job_gres", section, ""),
                        "slurm_job_gres_allocated{job_id=\"1\",gres=\"gpu\",type=\"a100\"} 2\n"
                        "slurm_job_gres_allocated{job_id=\"1\",gres=\"tpu\",type=\"none\"} 2\n"
                        "slurm_job_gres_allocated{job_id=\"1\",gres=\"tpu\",type=\"v4\"} 1\n"
                        "slurm_job_gres_allocated{job_id=\"1\",gres=\"nic\",type=\"none\"} 2\n"
                        "slurm_job_gres_allocated{job_id=\"2\",gres=\"tpu\",type=\"none\"} 4\n");
}

TEST(gres_of_jobs_are_added_up_by_user_account_partition_and_qos)
{
    section = jobs_from(JOBS_WITH_GRES);
    assert_string_equal(collect("users", section, "slurm_user_gres"),
                        "slurm_user_gres_allocated{user=\"ann\",gres=\"gpu\",type=\"a100\"} 2\n"
                        "slurm_user_gres_allocated{user=\"ann\",gres=\"tpu\",type=\"none\"} 6\n"
                        "slurm_user_gres_allocated{user=\"ann\",gres=\"tpu\",type=\"v4\"} 1\n"
                        "slurm_user_gres_allocated{user=\"ann\",gres=\"nic\",type=\"none\"} 2\n");
    assert_contains(
        collect("accounts", section, "slurm_account_gres"),
        "slurm_account_gres_allocated{account=\"physics\",gres=\"tpu\",type=\"none\"} 6\n");
    assert_contains(collect("partition_jobs", section, "slurm_partition_job_gres"),
                    "slurm_partition_job_gres{partition=\"cpu\",gres=\"tpu\",type=\"none\","
                    "state=\"PENDING\"} 5\n");
    assert_contains(collect("qos", section, "slurm_qos_job_gres"),
                    "slurm_qos_job_gres{qos=\"high\",gres=\"tpu\",type=\"none\","
                    "state=\"PENDING\"} 5\n");
}

TEST(gres_of_jobs_past_the_ceiling_are_counted_and_not_shown)
{
    section = section_new(KIND_JOBS);
    for (int job = 1; job <= 25001; job++)
        section_add(section, "RUNNING id=%d tres=gres/tpu=1,gres/nic=1\n", job);
    assert_int_equal(count_samples("job_gres", section, "slurm_job_gres_allocated{"), 50000);
    assert_int_equal(collected.folded, 2);
}

TEST(mila_has_jobs_by_state_in_small_letters)
{
    const char *samples;

    section = jobs_from("RUNNING\n"
                        "OUT_OF_MEMORY\n"
                        "PENDING tasks=50\n");
    samples = collect("mila_jobs", section, "slurm_job_states");
    assert_contains(samples, "slurm_job_states{name=\"running\"} 1\n");
    assert_contains(samples, "slurm_job_states{name=\"out_of_memory\"} 1\n");
    assert_contains(samples, "slurm_job_states{name=\"pending\"} 50\n");
    assert_contains(samples, "slurm_job_states{name=\"suspended\"} 0\n");
}

TEST(mila_has_jobs_by_partition_also_zero)
{
    section = jobs_from("RUNNING\n"
                        "PENDING partition=gpu,cpu\n"
                        "COMPLETED partition=gone\n"
                        "RUNNING partition=\n");
    know_partitions((symbol[]){ put("cpu"), put("idle"), put("gpu") }, 3);
    assert_string_equal(collect("mila_jobs", section, "slurm_partitions"),
                        "slurm_partitions{name=\"cpu\"} 2\n"
                        "slurm_partitions{name=\"idle\"} 0\n"
                        "slurm_partitions{name=\"gpu\"} 1\n"
                        "slurm_partitions{name=\"gone\"} 1\n");
}

TEST(mila_has_jobs_by_the_host_that_they_were_submitted_from)
{
    /* the source does not tell it of the last */
    section = jobs_from("RUNNING alloc_node=login-1\n"
                        "PENDING alloc_node=login-2 tasks=9\n"
                        "RUNNING alloc_node=login-1\n"
                        "RUNNING\n");
    assert_string_equal(collect("mila_jobs", section, "slurm_login_nodes"),
                        "slurm_login_nodes{name=\"login-1\"} 2\n"
                        "slurm_login_nodes{name=\"login-2\"} 9\n");
}

TEST(hosts_that_users_make_up_are_called_other)
{
    const char *samples;

    section = section_new(KIND_JOBS);
    for (unsigned i = 0; i < 300; i++)
        section_add(section, "RUNNING alloc_node=h%03u\n", i);
    section_add(section, "RUNNING alloc_node=h299\n");
    samples = collect("mila_jobs", section, "slurm_login_nodes");
    assert_contains(samples, "slurm_login_nodes{name=\"h299\"} 2\n");
    assert_contains(samples, "slurm_login_nodes{name=\"h198\"} 1\n");
    assert_contains(samples, "slurm_login_nodes{name=\"other\"} 100\n");
    assert_null(strstr(samples, "h199"));
    assert_int_equal(collected.folded, 100);
}
