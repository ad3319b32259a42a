/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the collectors that are made of jobs say of small queues, sample by sample. */
#include "test.h"

#include "base/num.h"
#include "collector/collector.h"
#include "source/sim.h"

#include <stdio.h>

enum { NOW = 1794744000, DAY = 86400 };

static const uint64_t GIB = UINT64_C(1) << 30;

static struct section *section;
static struct job jobs[400];
static struct buf out, samples;
static size_t folded, duplicates;

static void set_up(void)
{
    section = section_new(KIND_JOBS);
    section->wall_ns = NOW * NS_PER_SEC;
    section->jobs.job = jobs;
    buf_init(&out, 16 << 20);
    buf_init(&samples, 16 << 20);
}

static void tear_down(void)
{
    section = section_unref(section);
    buf_free(&out);
    buf_free(&samples);
}

FIXTURE(set_up, tear_down)

static symbol put(const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

/* A job of one CPU and one GiB, to be changed as the test likes. */
static struct job *add_job(enum job_base base)
{
    struct job *job = &jobs[section->jobs.n++];

    assert_true(section->jobs.n <= COUNT(jobs));
    *job = (struct job){
        .id = (uint32_t)section->jobs.n,
        .array_task_id = MODEL_UNKNOWN_U32,
        .tasks = 1,
        .state = { .base = (uint8_t)base },
        .user = put("ann"),
        .account = put("physics"),
        .partition = put("cpu"),
        .qos = put("normal"),
        .cpus = 1,
        .memory_bytes = GIB,
        .priority = 1000,
        .submit_time = NOW - 60,
    };
    return job;
}

static struct job *add_pending(const char *reason)
{
    struct job *job = add_job(JOB_PENDING);

    job->reason = put(reason);
    return job;
}

static void add_tres(const char *user, const char *tres)
{
    struct job *job = add_job(JOB_RUNNING);

    job->user = put(user);
    job->tres = put(tres);
}

/* The samples of a collector's families whose name begins so; "" for all. */
static const char *collect(const char *name, const char *family)
{
    const struct collector *collector = collectors[collector_find(str_of(name))];
    struct metric_writer writer;

    buf_reset(&out);
    buf_reset(&samples);
    metric_writer_init(&writer, &out, METRIC_TEXT, STR(""), collector->families,
                       collector->n_families);
    collector->collect(section, &writer);
    folded = writer.folded;
    duplicates = writer.duplicates;
    metric_writer_free(&writer);
    for (struct str rest = buf_str(&out); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (line.p[0] == '#' || !str_starts(line, str_of(family)))
            continue;
        buf_put(&samples, line);
        buf_byte(&samples, '\n');
    }
    return buf_str(&samples).p;
}

TEST(a_queue_without_jobs_has_no_series_but_those_of_the_cluster)
{
    static const char *const silent[] = { "users",    "accounts", "partition_jobs", "qos",
                                          "features", "waits",    "job_gpus" };

    for (size_t i = 0; i < COUNT(silent); i++)
        assert_string_equal(collect(silent[i], ""), "");
    assert_string_equal(collect("pending", ""), "slurm_pending_oldest_age_seconds 0\n");
    assert_string_equal(collect("jobs", "slurm_pending_reason_total"), "");
    assert_contains(collect("jobs", ""), "slurm_job_count_per_state{state=\"RUNNING\"} 0\n");
}

TEST(a_user_has_jobs_cpus_and_memory_by_state)
{
    struct job *array;

    add_job(JOB_RUNNING)->cpus = 8;
    add_job(JOB_RUNNING)->cpus = 4;
    array = add_job(JOB_PENDING);
    array->tasks = 50;
    array->cpus = 2;
    add_job(JOB_COMPLETED)->user = put("bob");
    assert_string_equal(collect("users", ""),
                        "slurm_user_state_total{username=\"ann\",state=\"PENDING\"} 50\n"
                        "slurm_user_state_total{username=\"ann\",state=\"RUNNING\"} 2\n"
                        "slurm_user_state_total{username=\"bob\",state=\"COMPLETED\"} 1\n"
                        "slurm_user_cpu_alloc{username=\"ann\",state=\"PENDING\"} 100\n"
                        "slurm_user_cpu_alloc{username=\"ann\",state=\"RUNNING\"} 12\n"
                        "slurm_user_cpu_alloc{username=\"bob\",state=\"COMPLETED\"} 1\n"
                        "slurm_user_mem_alloc{username=\"ann\",state=\"PENDING\"} 53687091200\n"
                        "slurm_user_mem_alloc{username=\"ann\",state=\"RUNNING\"} 2147483648\n"
                        "slurm_user_mem_alloc{username=\"bob\",state=\"COMPLETED\"} 1073741824\n");
}

TEST(gpus_are_read_in_every_notation)
{
    add_tres("both", "cpu=8,mem=64G,node=1,billing=8,gres/gpu=4,gres/gpu:a100=4");
    add_tres("both", "cpu=8,mem=64G,node=1,billing=8,gres/gpu=2,gres/gpu:a100=2");
    add_tres("total-only", "cpu=1,gres/gpu=3");
    add_tres("type-only", "cpu=1,gres/gpu:v100=2");
    add_tres("partly", "cpu=1,gres/gpu=6,gres/gpu:a100=4");
    add_tres("two-types", "cpu=1,gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1");
    add_tres("as-asked", "gres/gpu:2");
    add_tres("as-asked-too", "gres:gpu:a100:2,gres:gpu:1");
    add_tres("mig", "cpu=1,gres/gpu=1,gres/gpu:a100_3g.20gb=1");
    add_tres("shards", "cpu=1,gres/shard=4,gres/shard:a100=3");
    add_tres("none-by-name", "cpu=1,gres/gpu:none=2");
    add_tres("none-by-name", "cpu=1,gres/gpu=3");
    add_tres("no-gpu", "cpu=1,mem=1G,node=1,billing=1");
    add_tres("unreadable", "cpu=1,gres/gpu=many");
    assert_string_equal(collect("users", "slurm_user_gpu"),
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
    static const struct {
        enum job_base base;
        uint32_t flags, tasks;
    } rows[] = {
        { JOB_RUNNING, 0, 1 },   { JOB_SUSPENDED, 0, 1 }, { JOB_PENDING, 0, 100 },
        { JOB_COMPLETED, 0, 1 }, { JOB_FAILED, 0, 1 },    { JOB_BASE_UNKNOWN, JOB_COMPLETING, 1 },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct job *job = add_job(rows[i].base);

        job->state.flags = rows[i].flags;
        job->tasks = rows[i].tasks;
        job->tres = put("cpu=1,gres/gpu=2");
    }
    assert_string_equal(collect("accounts", "slurm_account_gpus"),
                        "slurm_account_gpus_allocated{account=\"physics\",type=\"none\"} 6\n");
}

TEST(a_suspended_job_holds_memory_and_gpus_but_no_cpus)
{
    struct job *job;

    job = add_job(JOB_SUSPENDED);
    job->cpus = 4;
    job->tres = put("cpu=4,gres/gpu=2");
    assert_string_equal(
        collect("accounts", ""),
        "slurm_account_job_state_total{account=\"physics\",state=\"SUSPENDED\"} 1\n"
        "slurm_account_job_state_cpu_alloc{account=\"physics\",state=\"SUSPENDED\"} 4\n"
        "slurm_account_job_state_mem_alloc{account=\"physics\",state=\"SUSPENDED\"} 1073741824\n"
        "slurm_account_cpu_alloc{account=\"physics\"} 0\n"
        "slurm_account_mem_alloc{account=\"physics\"} 1073741824\n"
        "slurm_account_gpus_allocated{account=\"physics\",type=\"none\"} 2\n");
    assert_string_equal(collect("users", "slurm_user_gpus"),
                        "slurm_user_gpus_allocated{user=\"ann\",type=\"none\"} 2\n");
    add_job(JOB_RUNNING)->state.flags = JOB_STOPPED;
    assert_string_equal(collect("features", ""),
                        "slurm_feature_total{feature=\"\"} 2\n"
                        "slurm_feature_cpu_alloc{feature=\"\"} 1\n"
                        "slurm_feature_mem_alloc{feature=\"\"} 2147483648\n");
}

TEST(more_gpu_types_than_anybody_has_are_one)
{
    char tres[32];

    for (int i = 0; i < 120; i++) {
        snprintf(tres, sizeof(tres), "gres/gpu:t%d=1", i);
        add_tres("ann", tres);
    }
    assert_contains(collect("users", "slurm_user_gpus"),
                    "slurm_user_gpus_allocated{user=\"ann\",type=\"t99\"} 1\n"
                    "slurm_user_gpus_allocated{user=\"ann\",type=\"other\"} 20\n");
}

TEST(an_account_has_what_it_asks_for_by_state_and_what_it_holds_without)
{
    struct job *job;

    job = add_job(JOB_RUNNING);
    job->cpus = 16;
    job->tres = put("cpu=16,gres/gpu=2,gres/gpu:a100=2,gres/shard=1");
    job = add_job(JOB_PENDING);
    job->tasks = 3;
    job->cpus = 5;
    job = add_job(JOB_PENDING);
    job->account = put("waiting");
    assert_string_equal(
        collect("accounts", ""),
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
        "slurm_account_gpu_shards_allocated{account=\"physics\",type=\"none\"} 1\n");
}

TEST(a_job_for_several_partitions_counts_once_in_each)
{
    struct job *job;

    job = add_job(JOB_PENDING);
    job->partition = put("cpu,gpu,cpu,,");
    job->tasks = 10;
    job->cpus = 4;
    job->tres = put("cpu=4,mem=1G,node=1,gres/gpu=1");
    job = add_job(JOB_RUNNING);
    job->partition = put("gpu");
    job->tres = put("cpu=1,mem=1G,node=1,gres/gpu=2,gres/gpu:a100=2");
    job = add_job(JOB_FAILED);
    job->partition = 0;
    assert_string_equal(
        collect("partition_jobs", ""),
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
        "slurm_partition_job_gpus{partition=\"gpu\",type=\"a100\",state=\"RUNNING\"} 2\n");
}

TEST(a_list_of_partitions_without_end_is_cut)
{
    struct buf list;
    size_t partitions = 0;

    buf_init(&list, 1 << 20);
    for (int i = 0; i < 5000; i++)
        buf_printf(&list, "p%d,", i);
    add_job(JOB_PENDING)->partition = put(list.p);
    collect("partition_jobs", "slurm_partition_job_state_total");
    for (struct str rest = buf_str(&samples); rest.n; str_cut(&rest, '\n'))
        partitions++;
    assert_int_equal(partitions, 2 * 1000); /* PENDING and RUNNING of each */
    buf_free(&list);
}

TEST(a_qos_has_jobs_cpus_memory_and_gpus_by_state)
{
    struct job *job;

    job = add_job(JOB_RUNNING);
    job->tres = put("gres/gpu:v100=1");
    job = add_job(JOB_PENDING);
    job->qos = put("high");
    job->cpus = 7;
    assert_string_equal(collect("qos", ""),
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
                        "slurm_qos_job_gpus{qos=\"normal\",type=\"v100\",state=\"RUNNING\"} 1\n");
}

TEST(partitions_and_qos_without_jobs_say_zero)
{
    symbol partitions[] = { put("gpu"), put("cpu"), 0 }, qos[] = { put("high"), put("normal") };

    section->jobs.known_partition = partitions;
    section->jobs.n_known_partitions = COUNT(partitions);
    section->jobs.known_qos = qos;
    section->jobs.n_known_qos = COUNT(qos);
    add_job(JOB_RUNNING);
    assert_string_equal(
        collect("partition_jobs", ""),
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
    assert_string_equal(collect("qos", ""),
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
    assert_string_equal(collect("pending", ""),
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 0\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 0\n"
                        "slurm_pending_oldest_age_seconds 0\n");
    add_pending("Resources");
    assert_string_equal(collect("pending", "slurm_partition_pending"),
                        "slurm_partition_pending_jobs{partition=\"cpu\",reason=\"Resources\"} 1\n"
                        "slurm_partition_pending_cpus{partition=\"cpu\",reason=\"Resources\"} 1\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 60\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 0\n");
}

TEST(qos_that_the_source_does_not_tell_are_absent)
{
    symbol known = put("normal");

    section->jobs.lacks_qos = true;
    section->jobs.known_qos = &known;
    section->jobs.n_known_qos = 1;
    add_pending("Resources")->qos = 0;
    assert_string_equal(collect("qos", ""), "");
    assert_string_equal(collect("pending", "slurm_qos"), "");
    assert_contains(collect("pending", ""), "slurm_account_pending_jobs{account=\"physics\"");
}

static void add_with_features(const char *features, uint32_t cpus)
{
    struct job *job = add_job(JOB_RUNNING);

    job->features = put(features);
    job->cpus = cpus;
}

TEST(features_count_for_jobs_that_hold_resources)
{
    add_with_features("", 1);
    add_with_features("skylake", 2);
    add_with_features("skylake&ib", 4);
    add_with_features("[rack1*2&rack2*4]", 8);
    add_with_features("(a&b)|c", 16);
    add_with_features("skylake&skylake&", 32);
    add_job(JOB_PENDING)->features = put("never");
    assert_string_equal(collect("features", ""),
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
    add_job(JOB_RUNNING);
    section->jobs.lacks_features = true;
    assert_string_equal(collect("features", ""), "");
}

TEST(features_past_the_hundred_most_frequent_are_other)
{
    char name[16];

    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "f%03d", i);
        add_with_features(name, 2);
    }
    add_with_features("f149", 2);
    add_with_features("other", 3);
    collect("features", "");
    /* those with one job each go by name, so that they stay the same from look to look */
    assert_contains(samples.p, "slurm_feature_total{feature=\"f098\"} 1\n"
                               "slurm_feature_total{feature=\"f149\"} 2\n"
                               "slurm_feature_total{feature=\"other\"} 51\n");
    assert_contains(samples.p, "slurm_feature_cpu_alloc{feature=\"other\"} 103\n");
    assert_contains(samples.p, "slurm_feature_mem_alloc{feature=\"other\"} 54760833024\n");
    assert_null(strstr(samples.p, "\"f099\""));
    assert_int_equal(folded, 150); /* of each family 50 */
    assert_int_equal(duplicates, 0);
}

TEST(a_name_that_is_other_already_is_not_counted_as_folded)
{
    char name[24];

    for (int i = 0; i < 101; i++) {
        snprintf(name, sizeof(name), "reason %d", i);
        add_pending(name)->tasks = 2;
    }
    add_pending("other");
    collect("jobs", "slurm_pending_reason_total");
    assert_contains(samples.p, "slurm_pending_reason_total{reason=\"other\"} 3\n");
    assert_int_equal(folded, 1);
    collect("pending", "");
    assert_int_equal(folded, 1);
}

TEST(a_sum_that_does_not_fit_is_absent_from_other_too)
{
    struct job *job;
    char name[16];

    for (int i = 0; i < 100; i++) {
        job = add_job(JOB_RUNNING);
        snprintf(name, sizeof(name), "f%03d", i);
        job->features = put(name);
        job->tasks = 100;
    }
    job = add_job(JOB_RUNNING);
    job->features = put("nonsense");
    job->memory_bytes = UINT64_C(1) << 60;
    job->tasks = 16;
    add_with_features("rare", 1);
    collect("features", "");
    assert_contains(samples.p, "slurm_feature_total{feature=\"other\"} 17\n");
    assert_null(strstr(samples.p, "slurm_feature_mem_alloc{feature=\"other\"}"));
    assert_contains(samples.p, "slurm_feature_mem_alloc{feature=\"f099\"} 107374182400\n");
}

TEST(reasons_are_spelled_as_dashboards_know_them)
{
    add_pending("Priority")->tasks = 7;
    add_pending("ReqNodeNotAvail, UnavailableNodes:n[1-3]");
    add_pending("ReqNodeNotAvail, UnavailableNodes:n4");
    add_pending("(ReqNodeNotAvail, UnavailableNodes)");
    add_pending("ReqNodeNotAvail, Reserved for maintenance");
    add_pending("ReqNodeNotAvail, May be reserved for other job");
    add_pending("ReqNodeNotAvail(Unavailable:n[1-3])");
    add_pending("ReqNodeNotAvail");
    add_pending("ReqNodeNotAvailable");
    add_pending("");
    add_pending("Priority")->state.flags = JOB_REQUEUE_HOLD;
    add_job(JOB_RUNNING)->reason = put("Prolog");
    assert_string_equal(
        collect("jobs", "slurm_pending_reason_total"),
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
    char reason[64];

    for (int i = 0; i < 300; i++) {
        snprintf(reason, sizeof(reason), "ReqNodeNotAvail, Reserved for maintenance cn%d", i);
        add_pending(reason);
    }
    assert_string_equal(
        collect("jobs", "slurm_pending_reason_total"),
        "slurm_pending_reason_total{reason=\"ReqNodeNotAvail, Reserved for maintenance\"} 300\n");
    assert_int_equal(folded, 0);
}

static void add_many_reasons(void)
{
    char reason[64];

    for (int i = 0; i < 149; i++) {
        snprintf(reason, sizeof(reason), "burst_buffer/lua: message %03d", i);
        add_pending(reason);
    }
    add_pending("Priority")->tasks = 9;
    add_pending("other")->tasks = 5;
}

TEST(reasons_past_the_hundred_most_frequent_are_other)
{
    add_many_reasons();
    collect("jobs", "slurm_pending_reason_total");
    assert_contains(samples.p, "slurm_pending_reason_total{reason=\"Priority\"} 9\n");
    assert_contains(samples.p, "{reason=\"burst_buffer/lua: message 097\"} 1\n");
    assert_contains(samples.p, "slurm_pending_reason_total{reason=\"other\"} 56\n");
    assert_null(strstr(samples.p, "message 098"));
    assert_int_equal(folded, 51);
    assert_int_equal(duplicates, 0);
    collect("pending", "");
    assert_contains(samples.p, "pending_jobs{partition=\"cpu\",reason=\"Priority\"} 9\n");
    assert_contains(samples.p, "pending_jobs{partition=\"cpu\",reason=\"other\"} 56\n");
    assert_contains(samples.p,
                    "slurm_account_pending_jobs{account=\"physics\",reason=\"other\"} 56");
    assert_int_equal(folded, 51);
    assert_int_equal(duplicates, 0);
}

TEST(what_waits_is_told_by_reason_for_partition_account_and_qos)
{
    struct job *job;

    job = add_pending("Resources");
    job->partition = put("cpu,gpu");
    job->tasks = 3;
    job->cpus = 4;
    job->tres = put("cpu=4,gres/gpu=2");
    job = add_pending("Priority");
    job->account = put("bio");
    job->tres = put("cpu=1,gres/gpu=1,gres/gpu:a100=1");
    job = add_pending("ReqNodeNotAvail, UnavailableNodes:n1");
    job->qos = put("high");
    job->cpus = MODEL_UNKNOWN_U32;
    add_job(JOB_RUNNING);
    assert_string_equal(
        collect("pending", ""),
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
    struct job *job;

    job = add_pending("Priority");
    job->submit_time = NOW - 3 * DAY;
    job->eligible_time = NOW - 2 * DAY;
    job = add_pending("Resources");
    job->partition = put("gpu");
    job->submit_time = NOW - DAY;
    job->eligible_time = NOW - 4 * DAY;
    job = add_pending("Resources");
    job->partition = put("debug");
    job->submit_time = NOW + 30; /* slurmctld's clock is ahead of ours */
    assert_string_equal(collect("pending", "slurm_partition_pending_oldest"),
                        "slurm_partition_pending_oldest_age_seconds{partition=\"cpu\"} 172800\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"gpu\"} 86400\n"
                        "slurm_partition_pending_oldest_age_seconds{partition=\"debug\"} 0\n");
    assert_string_equal(collect("pending", "slurm_pending_oldest"),
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

    for (size_t i = 0; i < COUNT(own); i++)
        add_pending(own[i])->submit_time = NOW - DAY;
    add_pending("some plugin's message")->priority = 0;
    add_pending("Priority")->eligible_time = NOW + DAY;
    assert_string_equal(collect("pending", "slurm_pending_oldest"),
                        "slurm_pending_oldest_age_seconds 0\n");
    for (size_t i = 0; i < COUNT(of_the_cluster); i++) {
        char expected[64];

        add_pending(of_the_cluster[i])->submit_time = NOW - 1000 - (int64_t)i;
        snprintf(expected, sizeof(expected), "slurm_pending_oldest_age_seconds %zu\n", 1000 + i);
        assert_string_equal(collect("pending", "slurm_pending_oldest"), expected);
    }
}

TEST(an_age_that_nobody_tells_is_absent)
{
    add_pending("Priority")->submit_time = 0;
    assert_string_equal(collect("pending", "slurm_pending_oldest"), "");
    assert_string_equal(collect("pending", "slurm_partition_pending_oldest"), "");
    add_pending("Priority");
    assert_string_equal(collect("pending", "slurm_pending_oldest"),
                        "slurm_pending_oldest_age_seconds 60\n");
}

TEST(waits_are_a_histogram_of_each_partition)
{
    struct wait waits[] = {
        { .partition = put("cpu"), .buckets = { 3, 0, 1, [WAIT_BOUNDS] = 2 }, .sum = 1.5e6 },
        { .partition = put("gpu"), .buckets = { [5] = 1 }, .sum = 250 },
    };

    section->jobs.wait = waits;
    section->jobs.n_waits = COUNT(waits);
    assert_string_equal(collect("waits", "slurm_job_wait_seconds_bucket{partition=\"cpu\""),
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
    assert_contains(collect("waits", ""), "slurm_job_wait_seconds_sum{partition=\"cpu\"} 1500000\n"
                                          "slurm_job_wait_seconds_count{partition=\"cpu\"} 6\n");
    section->jobs.wait = &waits[1];
    section->jobs.n_waits = 1;
    collect("waits", "");
    assert_string_equal(out.p, "# HELP slurm_job_wait_seconds How long the jobs waited that have "
                               "started since sonde began to look, from when they could have run: "
                               "submitted, no longer held, nothing left to depend on.\n"
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
    struct job *job;

    job = add_job(JOB_RUNNING);
    job->cpus = MODEL_UNKNOWN_U32;
    job->memory_bytes = MODEL_UNKNOWN_U64;
    assert_string_equal(collect("accounts", ""),
                        "slurm_account_job_state_total{account=\"physics\",state=\"RUNNING\"} 1\n");
    assert_string_equal(collect("partition_jobs", "slurm_partition_job_cpus"),
                        "slurm_partition_job_cpus{partition=\"cpu\",state=\"PENDING\"} 0\n");
    assert_string_equal(collect("features", ""), "slurm_feature_total{feature=\"\"} 1\n");
    add_job(JOB_RUNNING)->cpus = 5;
    assert_string_equal(collect("accounts", "slurm_account_cpu"),
                        "slurm_account_cpu_alloc{account=\"physics\"} 5\n");
}

TEST(a_sum_that_does_not_fit_is_absent)
{
    static const char *const collector[] = { "users", "accounts", "partition_jobs", "qos" };
    struct job *job;

    add_job(JOB_RUNNING)->memory_bytes = MODEL_UNKNOWN_U64 - 1;
    job = add_job(JOB_RUNNING);
    job->memory_bytes = MODEL_UNKNOWN_U64 - 1;
    job->tres = put("gres/gpu:x=18446744073709551000");
    add_job(JOB_RUNNING)->tres = job->tres;
    job = add_job(JOB_RUNNING);
    job->user = put("bob");
    job->tres = put("gres/gpu:y=9223372036854775807,gres/gpu:y=9223372036854775807,gres/gpu:y=2");
    job = add_job(JOB_RUNNING);
    job->user = put("bob");
    job->tres = put("gres/gpu:y=1");
    job = add_job(JOB_RUNNING);
    job->user = put("carol");
    job->memory_bytes = UINT64_C(1) << 60;
    job->tasks = 16;
    for (size_t i = 0; i < COUNT(collector); i++) {
        assert_null(strstr(collect(collector[i], ""), "physics\"} 18446744073709"));
        assert_null(strstr(samples.p, "mem_alloc{username=\"ann\""));
        assert_null(strstr(samples.p, "mem_alloc{username=\"carol\""));
        assert_null(strstr(samples.p, "type=\"x\",state=\"RUNNING\""));
        assert_null(strstr(samples.p, "type=\"x\"}"));
        assert_null(strstr(samples.p, "type=\"y\"}"));
    }
    assert_string_equal(collect("accounts", "slurm_account_mem"), "");
    assert_string_equal(collect("features", "slurm_feature_mem"), "");
    assert_contains(collect("users", ""),
                    "slurm_user_cpu_alloc{username=\"ann\",state=\"RUNNING\"} 3\n");
}

TEST(names_are_not_structure)
{
    static const char hostile[] = "a\"} 1\nb{c=\"\\";
    struct job *job;

    job = add_pending(hostile);
    job->user = job->account = job->qos = job->partition = put(hostile);
    job->tres = put("gres/gpu:\"\n\\=1");
    job = add_job(JOB_RUNNING);
    job->features = put(hostile);
    job->user = put("\xff\xfe");
    job = add_job(JOB_RUNNING);
    job->user = put("\xfe\xff");
    assert_string_equal(collect("features", "slurm_feature_total"),
                        "slurm_feature_total{feature=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n"
                        "slurm_feature_total{feature=\"\"} 1\n");
    assert_string_equal(collect("jobs", "slurm_pending_reason_total"),
                        "slurm_pending_reason_total{reason=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n");
    assert_string_equal(collect("pending", "slurm_partition_pending_gpus"),
                        "slurm_partition_pending_gpus{partition=\"a\\\"} 1\\nb{c=\\\"\\\\\","
                        "type=\"\\\"\\n\\\\\",reason=\"a\\\"} 1\\nb{c=\\\"\\\\\"} 1\n");
    assert_contains(collect("users", ""), "slurm_user_state_total{username=\"\xef\xbf\xbd\xef\xbf"
                                          "\xbd\",state=\"RUNNING\"} 1\n");
    assert_int_equal(duplicates,
                     3); /* the two that are not UTF-8 look the same, by three families */
    assert_string_equal(collect("qos", "slurm_qos_jobs{qos=\"a"),
                        "slurm_qos_jobs{qos=\"a\\\"} 1\\nb{c=\\\"\\\\\",state=\"PENDING\"} 1\n"
                        "slurm_qos_jobs{qos=\"a\\\"} 1\\nb{c=\\\"\\\\\",state=\"RUNNING\"} 0\n");
}

static uint64_t sum(const char *collector, const char *family, const char *label)
{
    uint64_t total = 0, value;

    collect(collector, family);
    for (struct str rest = buf_str(&samples); rest.n;) {
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

    section = section_unref(section);
    section = sim_section(&sim, KIND_JOBS, NOW);
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

static struct job_gpus gpus[60];

static void add_gpus(uint32_t job_id, const char *node, const char *indexes)
{
    assert_true(section->jobs.n_gpus < COUNT(gpus));
    section->jobs.gpus = gpus;
    gpus[section->jobs.n_gpus++] =
        (struct job_gpus){ .job_id = job_id, .node = put(node), .gpus = put(indexes) };
}

TEST(each_gpu_that_a_job_holds_is_a_series)
{
    add_gpus(7, "g1", "0-1,3");
    add_gpus(7, "g2", "12");
    add_gpus(4294967294, "g1", "2");
    assert_string_equal(collect("job_gpus", ""),
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"0\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"1\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"3\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g2\",gpu=\"12\"} 1\n"
                        "slurm_job_gpu_allocated{job_id=\"4294967294\",node=\"g1\",gpu=\"2\"} 1\n");
    assert_int_equal(folded, 0);
}

TEST(gpus_that_are_told_twice_or_cannot_be_read_are_left_out)
{
    add_gpus(7, "g1", "0");
    add_gpus(7, "g1", "0-7");
    add_gpus(8, "g1", "0,x");
    add_gpus(9, "g1", "0-1024");
    add_gpus(10, "g1", "");
    assert_string_equal(collect("job_gpus", ""),
                        "slurm_job_gpu_allocated{job_id=\"7\",node=\"g1\",gpu=\"0\"} 1\n");
    assert_int_equal(duplicates, 0);
}

TEST(gpus_past_the_ceiling_are_counted_and_not_shown)
{
    size_t n = 0;

    for (uint32_t job = 1; job <= 51; job++)
        add_gpus(job, "g1", "0-999");
    for (struct str rest = str_of(collect("job_gpus", "slurm_job_gpu_allocated{")); rest.n; n++)
        str_cut(&rest, '\n');
    assert_int_equal(n, 50000);
    assert_int_equal(folded, 1000);
}

TEST(mila_has_jobs_by_state_in_small_letters)
{
    add_job(JOB_RUNNING);
    add_job(JOB_OUT_OF_MEMORY);
    add_job(JOB_PENDING)->tasks = 50;
    collect("mila_jobs", "slurm_job_states");
    assert_contains(samples.p, "slurm_job_states{name=\"running\"} 1\n");
    assert_contains(samples.p, "slurm_job_states{name=\"out_of_memory\"} 1\n");
    assert_contains(samples.p, "slurm_job_states{name=\"pending\"} 50\n");
    assert_contains(samples.p, "slurm_job_states{name=\"suspended\"} 0\n");
}

TEST(mila_has_jobs_by_partition_also_zero)
{
    symbol known[] = { put("cpu"), put("idle"), put("gpu") };

    section->jobs.known_partition = known;
    section->jobs.n_known_partitions = COUNT(known);
    add_job(JOB_RUNNING);
    add_job(JOB_PENDING)->partition = put("gpu,cpu");
    add_job(JOB_COMPLETED)->partition = put("gone");
    add_job(JOB_RUNNING)->partition = 0;
    assert_string_equal(collect("mila_jobs", "slurm_partitions"),
                        "slurm_partitions{name=\"cpu\"} 2\n"
                        "slurm_partitions{name=\"idle\"} 0\n"
                        "slurm_partitions{name=\"gpu\"} 1\n"
                        "slurm_partitions{name=\"gone\"} 1\n");
}

TEST(mila_has_jobs_by_the_host_that_they_were_submitted_from)
{
    struct job *array;

    add_job(JOB_RUNNING)->alloc_node = put("login-1");
    array = add_job(JOB_PENDING);
    array->alloc_node = put("login-2");
    array->tasks = 9;
    add_job(JOB_RUNNING)->alloc_node = put("login-1");
    add_job(JOB_RUNNING); /* the source does not tell it */
    assert_string_equal(collect("mila_jobs", "slurm_login_nodes"),
                        "slurm_login_nodes{name=\"login-1\"} 2\n"
                        "slurm_login_nodes{name=\"login-2\"} 9\n");
}

TEST(hosts_that_users_make_up_are_called_other)
{
    char name[16];

    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "h%03u", i);
        add_job(JOB_RUNNING)->alloc_node = put(name);
    }
    add_job(JOB_RUNNING)->alloc_node = put("h299");
    collect("mila_jobs", "slurm_login_nodes");
    assert_contains(samples.p, "slurm_login_nodes{name=\"h299\"} 2\n");
    assert_contains(samples.p, "slurm_login_nodes{name=\"h198\"} 1\n");
    assert_contains(samples.p, "slurm_login_nodes{name=\"other\"} 100\n");
    assert_null(strstr(samples.p, "h199"));
    assert_int_equal(folded, 100);
}
