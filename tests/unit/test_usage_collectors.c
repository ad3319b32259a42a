/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's collectors, on nodes with a few jobs. */
#include "test.h"

#include "base/arena.h"
#include "base/map.h"
#include "collector/usage.h"
#include "metric/convert.h"

#include <math.h>

enum { JOBS_MAX = 4, METRICS_MAX = 64 };

/* A node, and what its jobs consist of, in view. */
struct host {
    struct usage usage;
    struct job_use job[JOBS_MAX];
    struct job_use *jobs[JOBS_MAX];
    struct gpu_use gpus[3];
    struct job_gpu job_gpus[3];
    struct name_use names[3];
    struct step_use step;
    struct task_use task;
    struct device_use devices[2];
    uint64_t core_ns[4], core_set[1];
    struct profile_use profile;
    const struct profile_use *profiles[1];
    struct profile_dataset datasets[PROFILE_KINDS];
    struct profile_value values[PROFILE_KINDS][METRICS_MAX];
    struct lustre_use lustre;
    struct lustre_id_use lustre_ids[2];
    struct lustre_operation lustre_operations[3];
};

static void free_host(struct host *host)
{
    symbols_free(&host->lustre.symbols);
    arena_clear(&host->lustre.arena);
    free(host);
}

static struct host *new_host(void)
{
    struct host *host = heap_alloc(sizeof(*host));

    host->usage.jobs = host->jobs;
    host->usage.gpus = host->gpus;
    host->usage.gpu_up = -1;
    host->usage.lustre_up = -1;
    host->usage.host = "c1";
    return host;
}

/* A step of which every metric of a profile is told: its number. */
static void add_profile(struct host *host)
{
    struct profile_use *use = &host->profile;

    *use = (struct profile_use){
        .id = { 7, "batch", "c1" },
        .labels = { "alice", "physics", "cpu", "big" },
        .datasets = host->datasets,
        .n_datasets = PROFILE_KINDS,
    };
    for (unsigned kind = 0; kind < PROFILE_KINDS; kind++)
        host->datasets[kind] =
            (struct profile_dataset){ .kind = kind, .values = host->values[kind] };
    host->datasets[PROFILE_OF_TASK].task = 3;
    for (size_t i = 0; i < n_profile_metrics; i++) {
        struct profile_dataset *dataset = &host->datasets[profile_metrics[i].kind];

        dataset->values[dataset->n_values++] =
            (struct profile_value){ .metric = &profile_metrics[i], .value = (double)i };
    }
    host->profiles[0] = use;
    host->usage.profiles = host->profiles;
    host->usage.n_profiles = 1;
}

/* A Lustre server with an OST that counts by size and an MDT that only opens. */
static void add_lustre(struct host *host)
{
    struct lustre_use *use = &host->lustre;

    symbols_init(&use->symbols, &use->arena);
    host->lustre_ids[0] = (struct lustre_id_use){
        .target = symbols_put(&use->symbols, STR("scratch-OST0001")),
        .id = symbols_put(&use->symbols, STR("4711")),
        .read = { .is_there = true,
                  .has_sizes = true,
                  .samples = 10,
                  .bytes = 81920,
                  .least_bytes = 4096,
                  .most_bytes = 16384 },
        .write = { .is_there = true,
                   .has_sizes = true,
                   .samples = 5,
                   .bytes = 5242880,
                   .least_bytes = 512,
                   .most_bytes = 2097152,
                   .small_samples = 2 },
        .n_operations = 2,
    };
    host->lustre_ids[1] = (struct lustre_id_use){
        .target = symbols_put(&use->symbols, STR("scratch-MDT0000")),
        .id = symbols_put(&use->symbols, STR("rm.0")),
        .is_mdt = true,
        .first_operation = 2,
        .n_operations = 1,
    };
    host->lustre_operations[0].name = symbols_put(&use->symbols, STR("read"));
    host->lustre_operations[0].samples = 10;
    host->lustre_operations[1].name = symbols_put(&use->symbols, STR("punch"));
    host->lustre_operations[2].name = symbols_put(&use->symbols, STR("unlink"));
    host->lustre_operations[2].samples = 7;
    use->id = host->lustre_ids;
    use->n = 2;
    use->operation = host->lustre_operations;
    use->n_operations = 3;
    use->n_targets = 3;
    use->n_unread = 1;
    use->ids_left_out = 4;
    use->ids_merged = 5;
    use->lines_left_out = 6;
    use->seconds = 0.5;
    use->bytes_read = 8192;
    host->usage.lustre = use;
    host->usage.lustre_up = 0;
}

/* A job of which nothing but its id and node is known. */
static struct job_use *add_job(struct host *host, const char *id, const char *node)
{
    struct job_use *job = &host->job[host->usage.n_jobs];

    host->jobs[host->usage.n_jobs++] = job;
    job_use_clear(job);
    snprintf(job->id, sizeof(job->id), "%s", id);
    snprintf(job->node, sizeof(job->node), "%s", node);
    return job;
}

static struct gpu_use *add_gpu(struct host *host, unsigned index, int instance)
{
    struct gpu_use *gpu = &host->gpus[host->usage.n_gpus++];

    *gpu = (struct gpu_use){
        .index = index,
        .instance = instance,
        .utilization = NAN,
        .memory_utilization = NAN,
        .memory_used_bytes = MODEL_UNKNOWN_U64,
        .memory_total_bytes = MODEL_UNKNOWN_U64,
        .power_mw = MODEL_UNKNOWN_U64,
        .power_limit_mw = MODEL_UNKNOWN_U64,
        .energy_mj = MODEL_UNKNOWN_U64,
        .temperature_celsius = MODEL_UNKNOWN_U64,
        .sm_clock_mhz = MODEL_UNKNOWN_U64,
        .memory_clock_mhz = MODEL_UNKNOWN_U64,
        .ecc_corrected = MODEL_UNKNOWN_U64,
        .ecc_uncorrected = MODEL_UNKNOWN_U64,
        .throttle_reasons = MODEL_UNKNOWN_U64,
    };
    return gpu;
}

static struct job_gpu *add_job_gpu(struct host *host, struct job_use *job, uint32_t gpu,
                                   const char *id)
{
    struct job_gpu *held = &host->job_gpus[job->n_gpus++];

    job->gpus = host->job_gpus;
    *held = (struct job_gpu){ .gpu = gpu,
                              .processes = MODEL_UNKNOWN_U64,
                              .memory_bytes = MODEL_UNKNOWN_U64,
                              .utilization = NAN };
    snprintf(held->id, sizeof(held->id), "%s", id);
    return held;
}

static void add_name(struct host *host, struct job_use *job, struct name_use name)
{
    job->names = host->names;
    host->names[job->n_names++] = name;
}

/* Of job 7 everything is known, of what a moment has and of what is counted. */
static struct host *busy_host(void)
{
    struct host *host = new_host();
    struct job_use *job = add_job(host, "7", "c1");
    struct gpu_use *gpu = add_gpu(host, 0, -1);
    struct job_gpu *held;

    host->core_ns[0] = 1500000000;
    host->core_ns[2] = 2500000000;
    host->devices[0] = (struct device_use){ "sda", 4096, 8192, 1, 2 };
    host->devices[1] = (struct device_use){ "8:16", 512, 0, 1, 0 };
    job->cgroup = (struct cgroup_use){
        .cpu_ns = 90123456789,
        .cpu_user_ns = 80000000000,
        .cpu_system_ns = 10120000000,
        .periods = 100,
        .throttled_periods = 7,
        .throttled_ns = 350000000,
        .memory_bytes = 314572800,
        .memory_peak_bytes = 419430400,
        .memory_limit_bytes = 536870912,
        .anon_bytes = 104857600,
        .file_bytes = 209715200,
        .mapped_bytes = 1048576,
        .shmem_bytes = 2097152,
        .swap_bytes = 0,
        .kernel_bytes = 65536,
        .page_faults = 5000,
        .major_page_faults = 3,
        .limit_hits = 12,
        .oom_kills = 1,
        .pressure_ns = { 1000000000, 2000000000, 3000000000, 4000000000, 5000000000, 6000000000 },
        .pids = 45,
        .pids_peak = 50,
        .cpus = 2,
        .core_ns = host->core_ns,
        .n_cores = 4,
        .devices = host->devices,
        .n_devices = 2,
    };
    job->cpu_ratio = 1.5;
    job->allocated_cpus = 2;
    job->allocated_memory_bytes = 536870912;
    job->allocated_gpus = 1;
    snprintf(job->user, sizeof(job->user), "alice");
    snprintf(job->account, sizeof(job->account), "physics");
    job->seen_wall_ns = 1800000000123456789;
    job->processes = 3;
    job->threads = 45;
    job->resident_bytes = 314572800;
    job->descriptors = 20;
    job->files = 5;
    job->uses_scratch = 1;
    job->io = (struct io_use){ 1572864, 1073741824, 3000000, 1073741900, 11, 1025 };
    add_name(host, job, (struct name_use){ "python3", 2, 44, 300 << 20, 89000000000 });
    add_name(host, job, (struct name_use){ "sleep", 1, 1, 1 << 20, 1000000 });
    add_name(host, job, (struct name_use){ "sed", 0, 0, 0, 2000000 });
    job->n_names_folded = 4;
    host->task = (struct task_use){ .id = "0", .processes = 2 };
    cgroup_use_clear(&host->task.cgroup);
    host->task.cgroup.cpu_ns = 5000000000;
    host->task.cgroup.memory_bytes = 7;
    host->task.cgroup.memory_peak_bytes = 8;
    host->task.cgroup.oom_kills = 0;
    host->step = (struct step_use){ .id = "batch",
                                    .processes = 3,
                                    .threads = 4,
                                    .resident_bytes = 5,
                                    .io = { 1, 2, 3, 4, 5, 6 },
                                    .tasks = &host->task,
                                    .n_tasks = 1 };
    host->step.cgroup = host->task.cgroup;
    job->steps = &host->step;
    job->n_steps = 1;

    host->usage.gpu_up = 1;
    *gpu = (struct gpu_use){ .index = 0,
                             .instance = -1,
                             .uuid = "GPU-1",
                             .model = "NVIDIA A100",
                             .utilization = 0.25,
                             .memory_utilization = 0.125,
                             .memory_used_bytes = 1 << 30,
                             .memory_total_bytes = UINT64_C(40) << 30,
                             .power_mw = 250500,
                             .power_limit_mw = 400000,
                             .energy_mj = 1234567,
                             .temperature_celsius = 61,
                             .sm_clock_mhz = 1410,
                             .memory_clock_mhz = 1215,
                             .ecc_corrected = 2,
                             .ecc_uncorrected = 0,
                             .throttle_reasons = 4 };
    held = add_job_gpu(host, job, 0, "0");
    held->processes = 1;
    held->memory_bytes = 1 << 29;
    held->utilization = 0.2;
    add_profile(host);
    add_lustre(host);
    return host;
}

struct rendered {
    struct buf text;
    size_t samples, duplicates, folded;
};

static struct rendered render(const char *name, const struct usage *usage,
                              enum metric_format format)
{
    const struct usage_collector *collector = usage_collectors[usage_collector_find(str_of(name))];
    struct rendered rendered;
    struct metric_writer writer;

    buf_init(&rendered.text, 1 << 20);
    metric_writer_init(&writer, &rendered.text, format, STR(""), collector->families,
                       collector->n_families);
    collector->collect(usage, &writer);
    assert_false(rendered.text.over);
    rendered.samples = writer.samples;
    rendered.duplicates = writer.duplicates;
    rendered.folded = writer.folded;
    metric_writer_free(&writer);
    return rendered;
}

/* The samples of a collector, without HELP and TYPE; of all families or of one. */
static void check(const char *collector, const struct host *host, const char *family,
                  const char *expected)
{
    struct rendered rendered = render(collector, &host->usage, METRIC_TEXT);
    struct buf found;

    assert_int_equal(rendered.duplicates, 0);
    buf_init(&found, 1 << 20);
    for (struct str rest = buf_str(&rendered.text); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (line.p[0] == '#' ||
            (family && !str_eq(str_head(line, str_find(line, '{')), str_of(family))))
            continue;
        buf_put(&found, line);
        buf_byte(&found, '\n');
    }
    if (!str_eq(buf_str(&found), str_of(expected)))
        fail_msg("%s gives:\n%.*sand not:\n%s", collector, STR_ARG(buf_str(&found)), expected);
    buf_free(&found);
    buf_free(&rendered.text);
}

TEST(the_families_of_jobs_exporter_have_its_names_labels_and_units)
{
    struct host *host = busy_host();

    check("jobs", host, NULL,
          "jobs_spawned_processes{slurm_job=\"7\",instance=\"c1\"} 3\n"
          "jobs_opened_files{slurm_job=\"7\",instance=\"c1\"} 5\n"
          "jobs_system_time{slurm_job=\"7\",instance=\"c1\"} 10.12\n"
          "jobs_user_time{slurm_job=\"7\",instance=\"c1\"} 80\n"
          "jobs_uses_scratch{slurm_job=\"7\",instance=\"c1\"} 1\n"
          "jobs_cpu_time_total{slurm_job=\"7\",instance=\"c1\"} 90.123456789\n"
          "jobs_read_mb{slurm_job=\"7\",instance=\"c1\"} 1.5\n"
          "jobs_write_mb{slurm_job=\"7\",instance=\"c1\"} 1024\n"
          "jobs_read_count{slurm_job=\"7\",instance=\"c1\"} 11\n"
          "jobs_write_count{slurm_job=\"7\",instance=\"c1\"} 1025\n"
          "jobs_rss{slurm_job=\"7\",instance=\"c1\"} 300\n"
          "jobs_cpu_percent{slurm_job=\"7\",instance=\"c1\"} 150\n"
          "jobs_cpu_percent_per_core{slurm_job=\"7\",instance=\"c1\"} 75\n"
          "jobs_thread_count{slurm_job=\"7\",instance=\"c1\",proc_name=\"python3\"} 44\n"
          "jobs_thread_count{slurm_job=\"7\",instance=\"c1\",proc_name=\"sleep\"} 1\n"
          "jobs_cpu_time_core{slurm_job=\"7\",instance=\"c1\",core=\"0\"} 1.5\n"
          "jobs_cpu_time_core{slurm_job=\"7\",instance=\"c1\",core=\"2\"} 2.5\n"
          "jobs_gpus_used{slurm_job=\"7\",instance=\"c1\",gpuid=\"0\"} 1\n");
    free_host(host);
}

TEST(the_cores_of_a_cpuset_are_told_idle_ones_too_and_no_others)
{
    struct host *host = busy_host();

    host->core_set[0] = 1 << 1 | 1 << 2;
    host->job[0].cgroup.core_set = host->core_set;
    check("jobs", host, "jobs_cpu_time_core",
          "jobs_cpu_time_core{slurm_job=\"7\",instance=\"c1\",core=\"1\"} 0\n"
          "jobs_cpu_time_core{slurm_job=\"7\",instance=\"c1\",core=\"2\"} 2.5\n");
    free_host(host);
}

TEST(without_the_time_by_core_there_is_no_such_family)
{
    struct host *host = busy_host();

    host->job[0].cgroup.core_ns = NULL;
    check("jobs", host, "jobs_cpu_time_core", "");
    free_host(host);
}

TEST(a_percentage_per_core_needs_the_number_of_cores)
{
    static const uint64_t useless[] = { 0, MODEL_UNKNOWN_U64 };
    struct host *host = busy_host();

    for (size_t i = 0; i < COUNT(useless); i++) {
        host->job[0].allocated_cpus = useless[i];
        check("jobs", host, "jobs_cpu_percent_per_core", "");
        check("jobs", host, "jobs_cpu_percent",
              "jobs_cpu_percent{slurm_job=\"7\",instance=\"c1\"} 150\n");
    }
    free_host(host);
}

TEST(each_number_of_a_cgroup_has_its_family)
{
    struct host *host = busy_host();

    check("cgroup", host, NULL,
          "sonde_job_cpu_seconds_total{job_id=\"7\",node=\"c1\"} 90.123456789\n"
          "sonde_job_cpu_user_seconds_total{job_id=\"7\",node=\"c1\"} 80\n"
          "sonde_job_cpu_system_seconds_total{job_id=\"7\",node=\"c1\"} 10.12\n"
          "sonde_job_cpu_periods_total{job_id=\"7\",node=\"c1\"} 100\n"
          "sonde_job_cpu_throttled_periods_total{job_id=\"7\",node=\"c1\"} 7\n"
          "sonde_job_cpu_throttled_seconds_total{job_id=\"7\",node=\"c1\"} 0.35\n"
          "sonde_job_memory_bytes{job_id=\"7\",node=\"c1\"} 314572800\n"
          "sonde_job_memory_peak_bytes{job_id=\"7\",node=\"c1\"} 419430400\n"
          "sonde_job_memory_limit_bytes{job_id=\"7\",node=\"c1\"} 536870912\n"
          "sonde_job_memory_anonymous_bytes{job_id=\"7\",node=\"c1\"} 104857600\n"
          "sonde_job_memory_file_bytes{job_id=\"7\",node=\"c1\"} 209715200\n"
          "sonde_job_memory_mapped_bytes{job_id=\"7\",node=\"c1\"} 1048576\n"
          "sonde_job_memory_shared_bytes{job_id=\"7\",node=\"c1\"} 2097152\n"
          "sonde_job_memory_swap_bytes{job_id=\"7\",node=\"c1\"} 0\n"
          "sonde_job_memory_kernel_bytes{job_id=\"7\",node=\"c1\"} 65536\n"
          "sonde_job_page_faults_total{job_id=\"7\",node=\"c1\"} 5000\n"
          "sonde_job_major_page_faults_total{job_id=\"7\",node=\"c1\"} 3\n"
          "sonde_job_memory_limit_hits_total{job_id=\"7\",node=\"c1\"} 12\n"
          "sonde_job_oom_kills_total{job_id=\"7\",node=\"c1\"} 1\n"
          "sonde_job_pids{job_id=\"7\",node=\"c1\"} 45\n"
          "sonde_job_pids_peak{job_id=\"7\",node=\"c1\"} 50\n"
          "sonde_job_pressure_waiting_seconds_total{job_id=\"7\",node=\"c1\",resource=\"cpu\"} 1\n"
          "sonde_job_pressure_waiting_seconds_total{job_id=\"7\",node=\"c1\",resource=\"memory\"} "
          "3\n"
          "sonde_job_pressure_waiting_seconds_total{job_id=\"7\",node=\"c1\",resource=\"io\"} 5\n"
          "sonde_job_pressure_stalled_seconds_total{job_id=\"7\",node=\"c1\",resource=\"cpu\"} 2\n"
          "sonde_job_pressure_stalled_seconds_total{job_id=\"7\",node=\"c1\",resource=\"memory\"} "
          "4\n"
          "sonde_job_pressure_stalled_seconds_total{job_id=\"7\",node=\"c1\",resource=\"io\"} 6\n"
          "sonde_job_device_read_bytes_total{job_id=\"7\",node=\"c1\",device=\"sda\"} 4096\n"
          "sonde_job_device_read_bytes_total{job_id=\"7\",node=\"c1\",device=\"8:16\"} 512\n"
          "sonde_job_device_written_bytes_total{job_id=\"7\",node=\"c1\",device=\"sda\"} 8192\n"
          "sonde_job_device_written_bytes_total{job_id=\"7\",node=\"c1\",device=\"8:16\"} 0\n"
          "sonde_job_device_reads_total{job_id=\"7\",node=\"c1\",device=\"sda\"} 1\n"
          "sonde_job_device_reads_total{job_id=\"7\",node=\"c1\",device=\"8:16\"} 1\n"
          "sonde_job_device_writes_total{job_id=\"7\",node=\"c1\",device=\"sda\"} 2\n"
          "sonde_job_device_writes_total{job_id=\"7\",node=\"c1\",device=\"8:16\"} 0\n");
    free_host(host);
}

TEST(the_owner_is_a_label_of_one_family_beside_what_was_allocated)
{
    struct host *host = busy_host();

    check("allocation", host, NULL,
          "sonde_job_info{job_id=\"7\",node=\"c1\",user=\"alice\",account=\"physics\"} 1\n"
          "sonde_job_first_seen_timestamp_seconds{job_id=\"7\",node=\"c1\"} 1800000000.123\n"
          "sonde_job_cpus_allocated{job_id=\"7\",node=\"c1\"} 2\n"
          "sonde_job_memory_allocated_bytes{job_id=\"7\",node=\"c1\"} 536870912\n"
          "sonde_job_gpus_allocated{job_id=\"7\",node=\"c1\"} 1\n");
    free_host(host);
}

TEST(what_processes_do_is_told_without_their_names)
{
    struct host *host = busy_host();

    check("activity", host, NULL,
          "sonde_job_processes{job_id=\"7\",node=\"c1\"} 3\n"
          "sonde_job_threads{job_id=\"7\",node=\"c1\"} 45\n"
          "sonde_job_resident_bytes{job_id=\"7\",node=\"c1\"} 314572800\n"
          "sonde_job_open_descriptors{job_id=\"7\",node=\"c1\"} 20\n"
          "sonde_job_open_files{job_id=\"7\",node=\"c1\"} 5\n"
          "sonde_job_read_bytes_total{job_id=\"7\",node=\"c1\"} 1572864\n"
          "sonde_job_written_bytes_total{job_id=\"7\",node=\"c1\"} 1073741824\n"
          "sonde_job_requested_read_bytes_total{job_id=\"7\",node=\"c1\"} 3000000\n"
          "sonde_job_requested_written_bytes_total{job_id=\"7\",node=\"c1\"} 1073741900\n"
          "sonde_job_read_calls_total{job_id=\"7\",node=\"c1\"} 11\n"
          "sonde_job_write_calls_total{job_id=\"7\",node=\"c1\"} 1025\n");
    free_host(host);
}

TEST(a_name_without_processes_keeps_its_counter_alone)
{
    struct host *host = busy_host();

    check("processes", host, NULL,
          "sonde_job_process_instances{job_id=\"7\",node=\"c1\",process=\"python3\"} 2\n"
          "sonde_job_process_instances{job_id=\"7\",node=\"c1\",process=\"sleep\"} 1\n"
          "sonde_job_process_threads{job_id=\"7\",node=\"c1\",process=\"python3\"} 44\n"
          "sonde_job_process_threads{job_id=\"7\",node=\"c1\",process=\"sleep\"} 1\n"
          "sonde_job_process_resident_bytes{job_id=\"7\",node=\"c1\",process=\"python3\"} "
          "314572800\n"
          "sonde_job_process_resident_bytes{job_id=\"7\",node=\"c1\",process=\"sleep\"} 1048576\n"
          "sonde_job_process_cpu_seconds_total{job_id=\"7\",node=\"c1\",process=\"python3\"} 89\n"
          "sonde_job_process_cpu_seconds_total{job_id=\"7\",node=\"c1\",process=\"sleep\"} 0.001\n"
          "sonde_job_process_cpu_seconds_total{job_id=\"7\",node=\"c1\",process=\"sed\"} 0.002\n");
    free_host(host);
}

TEST(names_that_were_folded_are_counted)
{
    static const char *const with_names[] = { "jobs", "processes" };
    struct host *host = busy_host();

    for (size_t i = 0; i < COUNT(with_names); i++) {
        struct rendered rendered = render(with_names[i], &host->usage, METRIC_TEXT);

        assert_int_equal(rendered.folded, 4);
        buf_free(&rendered.text);
    }
    free_host(host);
}

TEST(a_process_name_with_any_bytes_is_a_label_value_and_no_more)
{
    struct host *host = new_host();
    struct job_use *job = add_job(host, "7", "c1");

    add_name(host, job, (struct name_use){ "a\"} 1\nb\\)", 1, 2, 3, MODEL_UNKNOWN_U64 });
    add_name(host, job, (struct name_use){ "\xff", 1, 2, 3, MODEL_UNKNOWN_U64 });
    check("processes", host, "sonde_job_process_threads",
          "sonde_job_process_threads{job_id=\"7\",node=\"c1\",process=\"a\\\"} 1\\nb\\\\)\"} 2\n"
          "sonde_job_process_threads{job_id=\"7\",node=\"c1\",process=\"\xef\xbf\xbd\"} 2\n");
    check("jobs", host, "jobs_thread_count",
          "jobs_thread_count{slurm_job=\"7\",instance=\"c1\",proc_name=\"a\\\"} 1\\nb\\\\)\"} 2\n"
          "jobs_thread_count{slurm_job=\"7\",instance=\"c1\",proc_name=\"\xef\xbf\xbd\"} 2\n");
    free_host(host);
}

TEST(only_the_collector_of_processes_has_names_found_out)
{
    for (size_t i = 0; usage_collectors[i]; i++)
        assert_int_equal(!!(usage_collectors[i]->needs & USAGE_NAMES),
                         str_eq(str_of(usage_collectors[i]->name), STR("processes")));
    assert_int_equal(usage_collectors_need(0), 0);
    assert_int_equal(usage_collectors_need(1u << usage_collector_find(STR("cgroup")) |
                                           1u << usage_collector_find(STR("gpu"))),
                     USAGE_CGROUP | USAGE_GPUS);
}

TEST(without_names_no_name_is_published)
{
    struct host *host = busy_host();

    host->job[0].n_names = host->job[0].n_names_folded = 0;
    for (size_t i = 0; usage_collectors[i]; i++) {
        struct rendered rendered = render(usage_collectors[i]->name, &host->usage, METRIC_TEXT);

        assert_int_equal(str_find_str(buf_str(&rendered.text), STR("python3")), rendered.text.n);
        assert_int_equal(str_find_str(buf_str(&rendered.text), STR("proc_name")), rendered.text.n);
        buf_free(&rendered.text);
    }
    free_host(host);
}

TEST(each_number_of_a_gpu_has_its_family)
{
    struct host *host = busy_host();

    host->gpus[0].throttle_reasons = MODEL_UNKNOWN_U64;
    check("gpu", host, NULL,
          "sonde_gpu_info{node=\"c1\",gpu=\"0\",gpu_instance=\"\",uuid=\"GPU-1\",model=\"NVIDIA "
          "A100\"} 1\n"
          "sonde_gpu_utilization_ratio{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 0.25\n"
          "sonde_gpu_memory_access_ratio{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 0.125\n"
          "sonde_gpu_memory_used_bytes{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1073741824\n"
          "sonde_gpu_memory_total_bytes{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 42949672960\n"
          "sonde_gpu_power_watts{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 250.5\n"
          "sonde_gpu_power_limit_watts{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 400\n"
          "sonde_gpu_energy_joules_total{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1234.567\n"
          "sonde_gpu_temperature_celsius{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 61\n"
          "sonde_gpu_sm_clock_hertz{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1410000000\n"
          "sonde_gpu_memory_clock_hertz{node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1215000000\n"
          "sonde_gpu_ecc_errors_total{node=\"c1\",gpu=\"0\",gpu_instance=\"\",type=\"corrected\"} "
          "2\n"
          "sonde_gpu_ecc_errors_total{node=\"c1\",gpu=\"0\",gpu_instance=\"\",type="
          "\"uncorrected\"} 0\n"
          "sonde_job_gpu_info{job_id=\"7\",node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1\n"
          "sonde_job_gpu_processes{job_id=\"7\",node=\"c1\",gpu=\"0\",gpu_instance=\"\"} 1\n"
          "sonde_job_gpu_memory_used_bytes{job_id=\"7\",node=\"c1\",gpu=\"0\",gpu_instance=\"\"} "
          "536870912\n"
          "sonde_job_gpu_utilization_ratio{job_id=\"7\",node=\"c1\",gpu=\"0\",gpu_instance=\"\"} "
          "0.2\n");
    free_host(host);
}

TEST(every_reason_for_throttling_is_told_1_or_0)
{
    struct host *host = busy_host();
    struct rendered rendered = render("gpu", &host->usage, METRIC_TEXT);

    assert_contains(rendered.text.p, "sonde_gpu_throttled{node=\"c1\",gpu=\"0\",gpu_instance=\"\","
                                     "reason=\"sw_power_cap\"} 1\n");
    assert_contains(rendered.text.p, "\",reason=\"hw_slowdown\"} 0\n");
    buf_free(&rendered.text);
    free_host(host);
}

TEST(a_gpu_that_is_held_and_idle_has_0_processes_and_an_unknown_one_none)
{
    struct host *host = new_host();
    struct job_use *job = add_job(host, "7", "c1");

    add_gpu(host, 0, -1);
    add_gpu(host, 3, -1);
    add_job_gpu(host, job, 1, "3")->processes = 0;
    add_job_gpu(host, job, MODEL_UNKNOWN_U32, "5");
    check("gpu", host, "sonde_job_gpu_processes",
          "sonde_job_gpu_processes{job_id=\"7\",node=\"c1\",gpu=\"3\",gpu_instance=\"\"} 0\n");
    check("gpu", host, "sonde_job_gpu_info",
          "sonde_job_gpu_info{job_id=\"7\",node=\"c1\",gpu=\"3\",gpu_instance=\"\"} 1\n"
          "sonde_job_gpu_info{job_id=\"7\",node=\"c1\",gpu=\"5\",gpu_instance=\"\"} 1\n");
    check("gpu", host, "sonde_gpu_throttled", "");
    check("jobs", host, "jobs_gpus_used",
          "jobs_gpus_used{slurm_job=\"7\",instance=\"c1\",gpuid=\"3\"} 1\n"
          "jobs_gpus_used{slurm_job=\"7\",instance=\"c1\",gpuid=\"5\"} 1\n");
    free_host(host);
}

TEST(instances_of_a_gpu_are_told_apart_but_are_one_gpu_to_jobs_exporter)
{
    struct host *host = new_host();
    struct job_use *job = add_job(host, "7", "c1");

    add_gpu(host, 1, -1);
    add_gpu(host, 1, 3)->memory_used_bytes = 30;
    add_gpu(host, 1, 4)->memory_used_bytes = 40;
    add_job_gpu(host, job, 1, "MIG-a")->processes = 1;
    add_job_gpu(host, job, 2, "MIG-b")->processes = 0;
    check("gpu", host, "sonde_gpu_memory_used_bytes",
          "sonde_gpu_memory_used_bytes{node=\"c1\",gpu=\"1\",gpu_instance=\"3\"} 30\n"
          "sonde_gpu_memory_used_bytes{node=\"c1\",gpu=\"1\",gpu_instance=\"4\"} 40\n");
    check("gpu", host, "sonde_job_gpu_processes",
          "sonde_job_gpu_processes{job_id=\"7\",node=\"c1\",gpu=\"1\",gpu_instance=\"3\"} 1\n"
          "sonde_job_gpu_processes{job_id=\"7\",node=\"c1\",gpu=\"1\",gpu_instance=\"4\"} 0\n");
    check("jobs", host, "jobs_gpus_used",
          "jobs_gpus_used{slurm_job=\"7\",instance=\"c1\",gpuid=\"1\"} 1\n");
    free_host(host);
}

TEST(steps_and_tasks_have_labels_of_their_own)
{
    struct host *host = busy_host();

    check("steps", host, NULL,
          "sonde_job_step_cpu_seconds_total{job_id=\"7\",node=\"c1\",step=\"batch\"} 5\n"
          "sonde_job_step_memory_bytes{job_id=\"7\",node=\"c1\",step=\"batch\"} 7\n"
          "sonde_job_step_memory_peak_bytes{job_id=\"7\",node=\"c1\",step=\"batch\"} 8\n"
          "sonde_job_step_oom_kills_total{job_id=\"7\",node=\"c1\",step=\"batch\"} 0\n"
          "sonde_job_step_processes{job_id=\"7\",node=\"c1\",step=\"batch\"} 3\n"
          "sonde_job_step_threads{job_id=\"7\",node=\"c1\",step=\"batch\"} 4\n"
          "sonde_job_step_resident_bytes{job_id=\"7\",node=\"c1\",step=\"batch\"} 5\n"
          "sonde_job_step_read_bytes_total{job_id=\"7\",node=\"c1\",step=\"batch\"} 1\n"
          "sonde_job_step_written_bytes_total{job_id=\"7\",node=\"c1\",step=\"batch\"} 2\n");
    check("tasks", host, NULL,
          "sonde_job_task_cpu_seconds_total{job_id=\"7\",node=\"c1\",step=\"batch\",task=\"0\"} 5\n"
          "sonde_job_task_memory_bytes{job_id=\"7\",node=\"c1\",step=\"batch\",task=\"0\"} 7\n"
          "sonde_job_task_memory_peak_bytes{job_id=\"7\",node=\"c1\",step=\"batch\",task=\"0\"} 8\n"
          "sonde_job_task_oom_kills_total{job_id=\"7\",node=\"c1\",step=\"batch\",task=\"0\"} 0\n"
          "sonde_job_task_processes{job_id=\"7\",node=\"c1\",step=\"batch\",task=\"0\"} 2\n");
    free_host(host);
}

TEST(steps_and_tasks_are_off_unless_asked_for)
{
    for (size_t i = 0; usage_collectors[i]; i++) {
        struct str name = str_of(usage_collectors[i]->name);

        assert_int_equal(usage_collectors[i]->is_off,
                         str_eq(name, STR("steps")) || str_eq(name, STR("tasks")));
    }
}

/* Whatever the sampler may have left in the numbers of a moment. */
TEST(of_a_job_that_has_ended_counters_peaks_limits_and_its_owner_remain)
{
    static const char *const remaining[] = {
        "jobs_system_time",
        "jobs_user_time",
        "jobs_uses_scratch",
        "jobs_cpu_time_core",
        "jobs_cpu_time_total",
        "jobs_read_mb",
        "jobs_write_mb",
        "jobs_read_count",
        "jobs_write_count",
        "sonde_job_info",
        "sonde_job_first_seen_timestamp_seconds",
        "sonde_job_cpus_allocated",
        "sonde_job_memory_allocated_bytes",
        "sonde_job_gpus_allocated",
        "sonde_job_memory_peak_bytes",
        "sonde_job_memory_limit_bytes",
        "sonde_job_pids_peak",
        "sonde_job_step_memory_peak_bytes",
        "sonde_job_task_memory_peak_bytes",
    };
    struct host *host = busy_host();

    host->job[0].has_ended = host->profile.has_ended = true;
    host->usage.n_gpus = 0;
    for (size_t i = 0; usage_collectors[i]; i++) {
        const struct usage_collector *collector = usage_collectors[i];
        struct rendered rendered;

        if (collector->needs & USAGE_LUSTRE) /* is about a server, and not its jobs */
            continue;
        rendered = render(collector->name, &host->usage, METRIC_TEXT);
        for (size_t k = 0; k < collector->n_families; k++) {
            const struct family *family = &collector->families[k];
            bool remains = family->type == METRIC_COUNTER;
            struct buf start;
            bool is_there;

            if (str_starts(str_of(family->name), STR("sonde_gpu_")))
                continue;
            for (size_t j = 0; j < COUNT(remaining); j++)
                remains |= str_eq(str_of(family->name), str_of(remaining[j]));
            buf_init(&start, 256);
            buf_printf(&start, "\n%s{", family->name);
            is_there = str_find_str(buf_str(&rendered.text), buf_str(&start)) < rendered.text.n;
            if (is_there != remains)
                fail_msg("%s is %s", family->name, is_there ? "still there" : "missing");
            buf_free(&start);
        }
        buf_free(&rendered.text);
    }
    free_host(host);
}

TEST(what_is_unknown_is_absent)
{
    struct host *host = new_host();
    struct step_use *step = &host->step;
    struct job_use *job = add_job(host, "7", "c1");

    *step = (struct step_use){ .id = "0",
                               .processes = MODEL_UNKNOWN_U64,
                               .threads = MODEL_UNKNOWN_U64,
                               .resident_bytes = MODEL_UNKNOWN_U64 };
    cgroup_use_clear(&step->cgroup);
    io_use_clear(&step->io);
    job->steps = step;
    job->n_steps = 1;
    add_gpu(host, 0, -1);
    for (size_t i = 0; usage_collectors[i]; i++) {
        const char *name = usage_collectors[i]->name;

        if (!str_eq(str_of(name), STR("allocation")) && !str_eq(str_of(name), STR("gpu")))
            check(name, host, NULL, "");
    }
    check("allocation", host, NULL,
          "sonde_job_info{job_id=\"7\",node=\"c1\",user=\"\",account=\"\"} 1\n");
    check("gpu", host, NULL,
          "sonde_gpu_info{node=\"c1\",gpu=\"0\",gpu_instance=\"\",uuid=\"\",model=\"\"} 1\n");
    free_host(host);
}

TEST(two_jobs_of_one_id_differ_by_node)
{
    struct host *host = new_host();

    add_job(host, "7", "c1")->processes = 1;
    add_job(host, "7", "c2")->processes = 2;
    check("activity", host, NULL,
          "sonde_job_processes{job_id=\"7\",node=\"c1\"} 1\n"
          "sonde_job_processes{job_id=\"7\",node=\"c2\"} 2\n");
    check("jobs", host, NULL,
          "jobs_spawned_processes{slurm_job=\"7\",instance=\"c1\"} 1\n"
          "jobs_spawned_processes{slurm_job=\"7\",instance=\"c2\"} 2\n");
    free_host(host);
}

/* The number of a metric, as its value in busy_host(). */
static int number_of(const char *name)
{
    const struct profile_metric *metric = profile_metric_find(str_of(name));

    assert_non_null(metric);
    return (int)(metric - profile_metrics);
}

static void check_profile(const struct host *host, const char *family, const char *labels)
{
    char expected[400];

    snprintf(expected, sizeof(expected), "%s{%s} %d\n", family, labels, number_of(family));
    check("profile", host, family, expected);
}

TEST(a_profile_is_told_by_both_names_with_their_labels)
{
    struct host *host = busy_host();

    check_profile(host, "slurm_profile_task_cpu_seconds_total",
                  "slurm_job=\"7\",step=\"batch\",task=\"3\",instance=\"c1\",user=\"alice\","
                  "account=\"physics\",partition=\"cpu\",cluster=\"big\"");
    check_profile(host, "slurm_profile_node_network_receive_bytes_total",
                  "slurm_job=\"7\",step=\"batch\",instance=\"c1\",user=\"alice\","
                  "account=\"physics\",partition=\"cpu\",cluster=\"big\"");
    check_profile(host, "CPUTime", "job=\"7\",instance=\"c1\",step=\"batch\",task=\"3\"");
    check_profile(host, "InMB", "job=\"7\",instance=\"c1\",step=\"batch\"");
    free_host(host);
}

TEST(sensors_of_a_node_are_told_apart)
{
    char cpu[] = "CPU", dram[] = "DRAM";
    struct host *host = busy_host();
    struct profile_value *values = host->values[PROFILE_OF_ENERGY];

    values[0] = values[1] = (struct profile_value){
        .metric = profile_metric_find(STR("slurm_profile_node_power_watts")), .value = 5
    };
    values[0].sensor = cpu;
    values[1].sensor = dram;
    host->profile.labels = (struct profile_labels){ .user = "alice" };
    check("profile", host, "slurm_profile_node_power_watts",
          "slurm_profile_node_power_watts{slurm_job=\"7\",step=\"batch\",sensor=\"CPU\","
          "instance=\"c1\",user=\"alice\",account=\"\",partition=\"\",cluster=\"\"} 5\n"
          "slurm_profile_node_power_watts{slurm_job=\"7\",step=\"batch\",sensor=\"DRAM\","
          "instance=\"c1\",user=\"alice\",account=\"\",partition=\"\",cluster=\"\"} 5\n");
    free_host(host);
}

TEST(the_families_of_a_profile_are_the_metrics_that_there_are)
{
    static const char *const types[] = {
        [METRIC_GAUGE] = "gauge", [METRIC_COUNTER] = "counter", [METRIC_UNTYPED] = "untyped"
    };
    const struct usage_collector *collector =
        usage_collectors[usage_collector_find(STR("profile"))];

    assert_int_equal(collector->n_families, n_profile_metrics);
    for (size_t i = 0; i < n_profile_metrics; i++) {
        assert_string_equal(collector->families[i].name, profile_metrics[i].name);
        assert_string_equal(types[collector->families[i].type], profile_metrics[i].type);
        assert_string_equal(collector->families[i].help, profile_metrics[i].help);
    }
}

TEST(the_families_of_hpes_lustre_exporter_have_its_names_and_labels)
{
#define OST "{component=\"ost\",target=\"scratch-OST0001\",jobid=\"4711\"} "
    struct host *host = busy_host();

    check("lustre", host, NULL,
          "sonde_agent_lustre_up 0\n"
          "sonde_agent_lustre_targets 3\n"
          "sonde_agent_lustre_unread_targets 1\n"
          "sonde_agent_lustre_ids 2\n"
          "sonde_agent_lustre_ids_left_out 4\n"
          "sonde_agent_lustre_ids_merged 5\n"
          "sonde_agent_lustre_lines_left_out 6\n"
          "sonde_agent_lustre_read_bytes 8192\n"
          "sonde_agent_lustre_look_duration_seconds 0.5\n"
          "lustre_job_read_samples_total" OST "10\n"
          "lustre_job_read_minimum_size_bytes" OST "4096\n"
          "lustre_job_read_maximum_size_bytes" OST "16384\n"
          "lustre_job_read_bytes_total" OST "81920\n"
          "lustre_job_read_small_samples_total" OST "0\n"
          "lustre_job_write_samples_total" OST "5\n"
          "lustre_job_write_minimum_size_bytes" OST "512\n"
          "lustre_job_write_maximum_size_bytes" OST "2097152\n"
          "lustre_job_write_bytes_total" OST "5242880\n"
          "lustre_job_write_small_samples_total" OST "2\n"
          "lustre_job_stats_total{component=\"ost\",target=\"scratch-OST0001\",jobid=\"4711\","
          "operation=\"punch\"} 0\n"
          "lustre_job_stats_total{component=\"mdt\",target=\"scratch-MDT0000\",jobid=\"rm.0\","
          "operation=\"unlink\"} 7\n");
    free_host(host);
#undef OST
}

TEST(how_many_reads_were_small_is_absent_where_lustre_does_not_count_by_size)
{
    struct host *host = busy_host();

    host->lustre_ids[0].read.has_sizes = host->lustre_ids[0].write.has_sizes = false;
    check("lustre", host, "lustre_job_read_small_samples_total", "");
    check("lustre", host, "lustre_job_write_small_samples_total", "");
    free_host(host);
}

TEST(what_was_never_read_has_no_size)
{
    struct host *host = busy_host();

    host->lustre_ids[0].read = (struct lustre_io){ .is_there = true };
    check("lustre", host, "lustre_job_read_minimum_size_bytes", "");
    check("lustre", host, "lustre_job_read_maximum_size_bytes", "");
    check("lustre", host, "lustre_job_read_samples_total",
          "lustre_job_read_samples_total{component=\"ost\",target=\"scratch-OST0001\","
          "jobid=\"4711\"} 0\n");
    free_host(host);
}

/* By that source/movers leaves out so many ids that the rest has room. */
TEST(no_sample_of_a_lustre_id_takes_more_text_than_is_reckoned)
{
    static const struct str hostile = STR_INIT("a\"b\\c\nd\xff\xc3\xa4");
    const uint64_t most = UINT64_MAX;
    struct host *host = busy_host();
    struct lustre_id_use *id = &host->lustre_ids[0];
    struct rendered rendered;
    size_t n = 0;

    host->lustre.n = 1;
    id->target = id->id = symbols_put(&host->lustre.symbols, hostile);
    id->read = id->write = (struct lustre_io){ true, true, most, most, most, most, most };
    host->lustre_operations[1].samples = most; /* "punch" */
    rendered = render("lustre", &host->usage, METRIC_TEXT);
    for (struct str rest = buf_str(&rendered.text); rest.n;) {
        struct str line = str_cut(&rest, '\n');

        if (!str_starts(line, STR("lustre_job_")))
            continue;
        assert_true(line.n < lustre_sample_bytes(hostile, hostile) + strlen("punch"));
        n++;
    }
    assert_int_equal(n, 11);
    buf_free(&rendered.text);
    free_host(host);
}

TEST(a_lustre_id_of_any_bytes_is_a_label_value_and_no_more)
{
    struct host *host = busy_host();

    host->lustre_ids[0].id = symbols_put(&host->lustre.symbols, STR("a\"} 1\nb\\\xff"));
    check("lustre", host, "lustre_job_read_bytes_total",
          "lustre_job_read_bytes_total{component=\"ost\",target=\"scratch-OST0001\","
          "jobid=\"a\\\"} 1\\nb\\\\\xef\xbf\xbd\"} 81920\n");
    free_host(host);
}

TEST(ids_that_lustre_tells_beyond_the_ceiling_are_folded)
{
    struct host *host = busy_host();
    struct rendered rendered = render("lustre", &host->usage, METRIC_TEXT);

    assert_int_equal(rendered.folded, 4);
    buf_free(&rendered.text);
    free_host(host);
}

TEST(a_look_at_lustre_that_does_not_end_is_told_and_no_server_is_not)
{
    struct host *host = busy_host();

    host->usage.lustre = NULL;
    check("lustre", host, NULL, "sonde_agent_lustre_up 0\n");
    host->usage.lustre = &host->lustre;
    host->usage.lustre_up = -1;
    host->lustre.n_targets = 0;
    check("lustre", host, NULL, "");
    free_host(host);
}

TEST(every_family_occurs_and_can_be_converted_to_the_other_format)
{
    struct host *host = busy_host();

    for (size_t i = 0; usage_collectors[i]; i++) {
        const struct usage_collector *collector = usage_collectors[i];
        struct rendered text = render(collector->name, &host->usage, METRIC_TEXT);
        struct rendered open = render(collector->name, &host->usage, METRIC_OPENMETRICS);
        size_t headers = 0;
        struct buf out;

        for (struct str rest = buf_str(&text.text); rest.n;)
            headers += str_starts(str_cut(&rest, '\n'), STR("# TYPE "));
        assert_int_equal(headers, collector->n_families);
        assert_int_equal(text.duplicates, 0);
        buf_init(&out, 1 << 20);
        metric_convert(collector->families, collector->n_families, STR(""), buf_str(&text.text),
                       METRIC_TEXT, METRIC_OPENMETRICS, &out);
        assert_true(str_eq(buf_str(&out), buf_str(&open.text)));
        buf_free(&out);
        buf_free(&text.text);
        buf_free(&open.text);
    }
    free_host(host);
}

TEST(a_node_without_jobs_gives_nothing)
{
    struct host *host = new_host();

    for (size_t i = 0; usage_collectors[i]; i++)
        check(usage_collectors[i]->name, host, NULL, "");
    free_host(host);
}

static void check_family(struct map *names, const struct family *family)
{
    struct str name = str_of(family->name);

    if (map_get(names, name))
        fail_msg("%s is in two tables", family->name);
    map_put(names, name);
    assert_true(family_labels(family) <= METRIC_LABELS_MAX);
    if (!str_ends(str_of(family->help), STR(".")))
        fail_msg("the help of %s is no sentence", family->name);
    if (!str_starts(name, STR("sonde_")))
        return;
    if ((family->type == METRIC_COUNTER) != str_ends(name, STR("_total")))
        fail_msg("%s: counters end in _total, and nothing else does", family->name);
    /* honor_labels, which jobs_exporter's names need, would let it take the target's place */
    for (size_t i = 0; family->labels[i]; i++)
        if (str_eq(str_of(family->labels[i]), STR("instance")))
            fail_msg("%s has the label instance", family->name);
}

TEST(our_own_names_follow_the_conventions_and_none_occurs_twice)
{
    struct arena arena = { 0 };
    struct map names;

    map_init(&names, &arena);
    for (size_t i = 0; usage_collectors[i]; i++) {
        assert_int_equal(usage_collector_find(str_of(usage_collectors[i]->name)), i);
        assert_true(usage_collectors[i]->n_families <= METRIC_FAMILIES_MAX);
        for (size_t k = 0; k < usage_collectors[i]->n_families; k++)
            check_family(&names, &usage_collectors[i]->families[k]);
    }
    assert_int_equal(usage_collector_find(STR("nobody")), -1);
    map_free(&names);
    arena_clear(&arena);
}
