/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of plugin/samples: a step's samples. */
#include "test.h"

#include "plugin/samples.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* Slurm's NO_VAL and NO_VAL64. */
#define NO_WATTS UINT64_C(0xfffffffe)
#define NO_WHOLE UINT64_C(0xfffffffffffffffe)

/* Counted, and the one that is told fails. */
static atomic_long n_allocations, fail_at = -1;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return atomic_fetch_add(&n_allocations, 1) == fail_at ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
    return atomic_fetch_add(&n_allocations, 1) == fail_at ? NULL : __real_malloc(size);
}

union number {
    uint64_t whole;
    double real;
};

static const struct profile_quirks no_quirks;

/* As in 23.02 and later. */
static const struct samples_field task_fields[] = {
    { "CPUFrequency", false }, { "CPUTime", true },        { "CPUUtilization", true },
    { "GPUMemMB", false },     { "GPUUtilization", true }, { "RSS", false },
    { "VMSize", false },       { "Pages", false },         { "ReadMB", true },
    { "WriteMB", true },
};

struct task_sample {
    uint64_t frequency;
    double cpu_time, utilization;
    uint64_t gpu_mem;
    double gpu_utilization;
    uint64_t rss, vm_size, pages;
    double read, written;
};

static const struct samples_field network_fields[] = {
    { "PacketsIn", false },
    { "PacketsOut", false },
    { "InMB", true },
    { "OutMB", true },
};
static const struct samples_field filesystem_fields[] = {
    { "Reads", false },
    { "ReadMB", true },
    { "Writes", false },
    { "WriteMB", true },
};

static int add_task(struct samples *samples, uint32_t task)
{
    return samples_dataset(samples, PROFILE_OF_TASK, task, task_fields, COUNT(task_fields));
}

/* NaN: it says nothing of that. */
static double value_in(const struct samples_view *view, const char *name, const char *sensor)
{
    double found = NAN;

    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->values[i].metric->name, name) == 0 &&
            strcmp(view->values[i].sensor, sensor) == 0) {
            assert_true(isnan(found));
            found = view->values[i].value;
        }
    return found;
}

static double value_of(const struct samples *samples, size_t dataset, const char *name)
{
    struct samples_view view;

    if (!samples_read(samples, dataset, PROFILE_NAMES_BOTH, &view))
        return NAN;
    return value_in(&view, name, "");
}

#define assert_value(samples, dataset, name, expected)                                             \
    do {                                                                                           \
        double actual_ = value_of(samples, dataset, name);                                         \
        if (actual_ != (expected))                                                                 \
            fail_msg("%s is %.17g, expected %.17g", name, actual_, (double)(expected));            \
    } while (0)

#define assert_unknown(samples, dataset, name)                                                     \
    do {                                                                                           \
        double actual_ = value_of(samples, dataset, name);                                         \
        if (!isnan(actual_))                                                                       \
            fail_msg("%s is %.17g, expected none", name, actual_);                                 \
    } while (0)

TEST(a_sample_is_told_in_base_units_and_as_it_came)
{
    static const struct profile_quirks quirks = { .has_gpu_fields = true };
    static const struct task_sample first = { .rss = 1 };
    static const struct task_sample sample = { 2445, 1.5, 150.5, 3, 25, 4728, 7280, 7, 0.5, 2 };
    struct samples *samples = samples_new(&quirks);
    int task = add_task(samples, 5);

    assert_int_equal(task, 0);
    samples_add(samples, task, &first);
    samples_add(samples, task, &sample);
    assert_value(samples, 0, "slurm_profile_task_cpu_frequency_hertz", 2445e6);
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 1.5);
    assert_value(samples, 0, "slurm_profile_task_cpu_utilization_ratio", 1.505);
    assert_value(samples, 0, "slurm_profile_task_gpu_memory_bytes", 3145728);
    assert_value(samples, 0, "slurm_profile_task_gpu_utilization_ratio", 0.25);
    assert_value(samples, 0, "slurm_profile_task_resident_memory_bytes", 4841472);
    assert_value(samples, 0, "slurm_profile_task_virtual_memory_bytes", 7454720);
    assert_value(samples, 0, "slurm_profile_task_major_page_faults_total", 7);
    assert_value(samples, 0, "slurm_profile_task_read_bytes_total", 524288);
    assert_value(samples, 0, "slurm_profile_task_written_bytes_total", 2097152);
    assert_value(samples, 0, "CPUFrequency", 2445);
    assert_value(samples, 0, "CPUTime", 1.5);
    assert_value(samples, 0, "CPUUtilization", 150.5);
    assert_value(samples, 0, "GPUMemMB", 3);
    assert_value(samples, 0, "GPUUtilization", 25);
    assert_value(samples, 0, "RSS", 4728);
    assert_value(samples, 0, "VMSize", 7280);
    assert_value(samples, 0, "Pages", 7);
    assert_value(samples, 0, "ReadMB", 0.5);
    assert_value(samples, 0, "WriteMB", 2);
    samples_free(samples);
}

TEST(a_frequency_is_in_khz_or_mhz_or_not_known)
{
    struct samples *samples = samples_new(&no_quirks);
    struct task_sample sample = { .rss = 1 };

    add_task(samples, 0);
    samples_add(samples, 0, &sample);
    assert_unknown(samples, 0, "slurm_profile_task_cpu_frequency_hertz");
    assert_value(samples, 0, "CPUFrequency", 0);
    sample.frequency = 2445312;
    samples_add(samples, 0, &sample);
    assert_value(samples, 0, "slurm_profile_task_cpu_frequency_hertz", 2445312000.0);
    sample.frequency = 99999;
    samples_add(samples, 0, &sample);
    assert_value(samples, 0, "slurm_profile_task_cpu_frequency_hertz", 99999e6);
    samples_free(samples);
}

TEST(what_is_told_by_interval_is_added_up)
{
    struct samples *samples = samples_new(&no_quirks);
    struct task_sample sample = { .cpu_time = 0.25, .rss = 10, .read = 1, .written = 0.5 };

    add_task(samples, 0);
    for (int i = 0; i < 3; i++)
        samples_add(samples, 0, &sample);
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 0.75);
    assert_value(samples, 0, "slurm_profile_task_read_bytes_total", 3145728);
    assert_value(samples, 0, "slurm_profile_task_written_bytes_total", 1572864);
    assert_value(samples, 0, "CPUTime", 0.25);
    samples_free(samples);
}

TEST(the_sample_of_a_task_that_has_ended_counts_but_changes_no_gauge)
{
    static const struct task_sample last = { .cpu_time = 0.5, .read = 1, .written = 2 };
    struct task_sample sample = { 2445, 1, 100, 0, 0, 20, 30, 4, 1, 1 };
    struct samples *samples = samples_new(&no_quirks);

    add_task(samples, 0);
    samples_add(samples, 0, &sample);
    samples_add(samples, 0, &sample);
    samples_add(samples, 0, &last);
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 2.5);
    assert_value(samples, 0, "slurm_profile_task_read_bytes_total", 3 * 1048576);
    assert_value(samples, 0, "slurm_profile_task_written_bytes_total", 4 * 1048576);
    assert_value(samples, 0, "slurm_profile_task_resident_memory_bytes", 20480);
    assert_value(samples, 0, "slurm_profile_task_virtual_memory_bytes", 30720);
    assert_value(samples, 0, "slurm_profile_task_cpu_utilization_ratio", 1);
    assert_value(samples, 0, "slurm_profile_task_cpu_frequency_hertz", 2445e6);
    assert_value(samples, 0, "slurm_profile_task_major_page_faults_total", 4);
    assert_value(samples, 0, "RSS", 20);
    assert_value(samples, 0, "Pages", 4);
    assert_value(samples, 0, "CPUTime", 0.5);
    samples_free(samples);
}

TEST(a_task_of_which_there_is_only_the_last_sample_has_no_memory)
{
    static const struct task_sample last = { .cpu_time = 0 };
    struct samples *samples = samples_new(&no_quirks);

    add_task(samples, 0);
    samples_add(samples, 0, &last);
    assert_unknown(samples, 0, "slurm_profile_task_resident_memory_bytes");
    assert_unknown(samples, 0, "RSS");
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 0);
    samples_free(samples);
}

TEST(counters_never_fall_and_take_nothing_absurd)
{
    static const double wrong[] = { -1, NAN, INFINITY, -INFINITY, 1.1e15 };
    struct samples *samples = samples_new(&no_quirks);
    struct task_sample sample = { .cpu_time = 2, .rss = 1, .pages = 10, .read = 1 };

    add_task(samples, 0);
    samples_add(samples, 0, &sample);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sample =
            (struct task_sample){ .cpu_time = wrong[i], .rss = 1, .pages = i, .read = wrong[i] };
        samples_add(samples, 0, &sample);
        assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 2);
        assert_value(samples, 0, "slurm_profile_task_read_bytes_total", 1048576);
        assert_value(samples, 0, "slurm_profile_task_major_page_faults_total", 10);
    }
    sample = (struct task_sample){ .rss = 1, .pages = NO_WHOLE };
    samples_add(samples, 0, &sample);
    assert_value(samples, 0, "slurm_profile_task_major_page_faults_total", 10);
    sample = (struct task_sample){ .cpu_time = 1, .rss = 1, .pages = 11 };
    samples_add(samples, 0, &sample);
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 3);
    assert_value(samples, 0, "slurm_profile_task_major_page_faults_total", 11);
    samples_free(samples);
}

TEST(a_number_that_slurm_does_not_know_is_not_told)
{
    static const struct samples_field fields[] = { { "Energy", false }, { "CurrPower", false } };
    uint64_t data[] = { NO_WHOLE, NO_WATTS };
    struct samples *samples = samples_new(&no_quirks);

    samples_dataset(samples, PROFILE_OF_ENERGY, 0, fields, 2);
    samples_add(samples, 0, data);
    assert_unknown(samples, 0, "slurm_profile_node_energy_joules_total");
    assert_unknown(samples, 0, "slurm_profile_node_power_watts");
    data[0] = 5000;
    data[1] = 250;
    samples_add(samples, 0, data);
    data[1] = 3 * NO_WATTS;
    samples_add(samples, 0, data);
    assert_value(samples, 0, "slurm_profile_node_energy_joules_total", 5000);
    assert_value(samples, 0, "slurm_profile_node_power_watts", 250);
    samples_free(samples);
}

TEST(what_the_first_sample_has_not_measured_is_not_told)
{
    static const struct profile_quirks quirks = { .has_gpu_fields = true };
    static const struct task_sample first = { .gpu_mem = 0x7ffd,
                                              .gpu_utilization = 3e-310,
                                              .rss = 1 };
    static const struct task_sample second = { .gpu_mem = 2, .utilization = 50, .rss = 1 };
    struct samples *samples = samples_new(&quirks);

    add_task(samples, 0);
    samples_add(samples, 0, &first);
    assert_unknown(samples, 0, "slurm_profile_task_gpu_memory_bytes");
    assert_unknown(samples, 0, "slurm_profile_task_gpu_utilization_ratio");
    assert_unknown(samples, 0, "slurm_profile_task_cpu_utilization_ratio");
    assert_unknown(samples, 0, "GPUMemMB");
    samples_add(samples, 0, &second);
    assert_value(samples, 0, "slurm_profile_task_gpu_memory_bytes", 2097152);
    assert_value(samples, 0, "slurm_profile_task_gpu_utilization_ratio", 0);
    assert_value(samples, 0, "slurm_profile_task_cpu_utilization_ratio", 0.5);
    assert_value(samples, 0, "GPUMemMB", 2);
    samples_free(samples);
}

TEST(gpu_fields_that_are_never_set_are_not_told)
{
    static const struct task_sample sample = { .gpu_mem = 0x7ffd, .gpu_utilization = 5, .rss = 1 };
    struct samples *samples = samples_new(&no_quirks);

    add_task(samples, 0);
    samples_add(samples, 0, &sample);
    samples_add(samples, 0, &sample);
    assert_unknown(samples, 0, "slurm_profile_task_gpu_memory_bytes");
    assert_unknown(samples, 0, "GPUMemMB");
    assert_unknown(samples, 0, "GPUUtilization");
    assert_value(samples, 0, "RSS", 1);
    samples_free(samples);
}

TEST(fields_go_by_their_names_not_by_their_place)
{
    static const struct samples_field fields[] = {
        { "New", true },
        { "WriteMB", true },
        { "RSS", false },
        { "CPUTime", true },
    };
    const union number data[] = { { .real = 9 }, { .real = 2 }, { .whole = 3 }, { .real = 4 } };
    struct samples *samples = samples_new(&no_quirks);

    samples_dataset(samples, PROFILE_OF_TASK, 0, fields, COUNT(fields));
    samples_add(samples, 0, data);
    assert_value(samples, 0, "slurm_profile_task_written_bytes_total", 2097152);
    assert_value(samples, 0, "slurm_profile_task_resident_memory_bytes", 3072);
    assert_value(samples, 0, "slurm_profile_task_cpu_seconds_total", 4);
    samples_free(samples);
}

TEST(the_network_is_told_as_it_is)
{
    const union number data[] = {
        { .whole = 143 }, { .whole = 10 }, { .real = 1.5 }, { .real = 0.25 }
    };
    struct samples *samples = samples_new(&no_quirks);

    samples_dataset(samples, PROFILE_OF_NETWORK, 7, network_fields, COUNT(network_fields));
    samples_add(samples, 0, data);
    samples_add(samples, 0, data);
    assert_value(samples, 0, "slurm_profile_node_network_receive_packets_total", 286);
    assert_value(samples, 0, "slurm_profile_node_network_transmit_packets_total", 20);
    assert_value(samples, 0, "slurm_profile_node_network_receive_bytes_total", 3145728);
    assert_value(samples, 0, "slurm_profile_node_network_transmit_bytes_total", 524288);
    samples_free(samples);
}

/* Seen of Slurm 22.05.8: PacketsIn 89743, InMB 0.00218, which were 143 packets. */
TEST(what_sysfs_has_swapped_is_put_right_but_under_the_original_names)
{
    static const struct profile_quirks quirks = { .has_swapped_network = true };
    const union number data[] = {
        { .whole = 89743 }, { .whole = 2000 }, { .real = 143.0 / 65536 }, { .real = 3.0 / 65536 }
    };
    struct samples *samples = samples_new(&quirks);

    samples_dataset(samples, PROFILE_OF_NETWORK, 0, network_fields, COUNT(network_fields));
    samples_add(samples, 0, data);
    samples_add(samples, 0, data);
    assert_value(samples, 0, "slurm_profile_node_network_receive_bytes_total", 179486);
    assert_value(samples, 0, "slurm_profile_node_network_transmit_bytes_total", 4000);
    assert_value(samples, 0, "slurm_profile_node_network_receive_packets_total", 286);
    assert_value(samples, 0, "slurm_profile_node_network_transmit_packets_total", 6);
    assert_value(samples, 0, "PacketsIn", 89743);
    assert_value(samples, 0, "InMB", 143.0 / 65536);
    samples_free(samples);
}

TEST(a_file_system_is_counted_since_the_first_true_sample_or_since_the_start)
{
    static const struct profile_quirks by_version[] = { { 0 },
                                                        { .is_filesystem_cumulative = true } };
    /* As Slurm before 25.11 tells it: nothing, then all since the mount; and after a new mount. */
    static const struct {
        uint64_t number;
        double grown; /* since the first true one */
    } told[] = { { 0, 0 }, { 1000, 0 }, { 1003, 3 }, { 1003, 3 }, { 10, 3 }, { 14, 7 } };

    for (unsigned i = 0; i < COUNT(by_version); i++) {
        struct samples *samples = samples_new(&by_version[i]);
        double most = 0;

        samples_dataset(samples, PROFILE_OF_FILESYSTEM, 0, filesystem_fields, 4);
        for (size_t k = 0; k < COUNT(told); k++) {
            const union number data[] = { { .whole = told[k].number },
                                          { .real = (double)told[k].number },
                                          { .whole = 0 },
                                          { .real = 0 } };
            double expected;

            most = (double)told[k].number > most ? (double)told[k].number : most;
            expected = by_version[i].is_filesystem_cumulative ? most : told[k].grown;
            samples_add(samples, 0, data);
            assert_value(samples, 0, "slurm_profile_node_filesystem_reads_total", expected);
            assert_value(samples, 0, "slurm_profile_node_filesystem_read_bytes_total",
                         1048576 * expected);
            assert_value(samples, 0, "Reads", (double)told[k].number);
        }
        assert_unknown(samples, 0, "ReadMB");
        samples_free(samples);
    }
}

TEST(a_network_that_slurm_counts_twice_is_counted_once)
{
    static const struct profile_quirks twice = { .has_swapped_network = true, .network_times = 2 };
    struct samples *samples = samples_new(&twice);
    const union number data[] = {
        { .whole = 400 }, { .whole = 0 }, { .real = 4. / 65536 }, { .real = 0 }
    };

    samples_dataset(samples, PROFILE_OF_NETWORK, 0, network_fields, 4);
    samples_add(samples, 0, data);
    samples_add(samples, 0, data);
    assert_value(samples, 0, "slurm_profile_node_network_receive_bytes_total", 400);
    assert_value(samples, 0, "slurm_profile_node_network_receive_packets_total", 4);
    assert_value(samples, 0, "PacketsIn", 400);
    samples_free(samples);
}

TEST(power_has_a_sensor_where_there_are_several)
{
    static const struct samples_field fields[] = {
        { "NodePower", false }, { "CPUPower", false }, { "Power", false }, { "CPUPower", false }
    };
    const uint64_t data[] = { 300, 200, 500, 1 };
    struct samples *samples = samples_new(&no_quirks);
    struct samples_view view;

    samples_dataset(samples, PROFILE_OF_ENERGY, 0, fields, COUNT(fields));
    samples_add(samples, 0, data);
    assert_true(samples_read(samples, 0, PROFILE_NAMES_BOTH, &view));
    assert_int_equal(view.n, 4);
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "Node") == 300);
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "CPU") == 200);
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "") == 500);
    assert_true(value_in(&view, "Power", "") == 500);
    samples_free(samples);
}

TEST(one_set_of_names_can_be_wanted)
{
    static const struct task_sample sample = { .rss = 1, .frequency = 5 };
    struct samples *samples = samples_new(&no_quirks);
    struct samples_view original, new, both;

    add_task(samples, 3);
    samples_add(samples, 0, &sample);
    samples_add(samples, 0, &sample);
    assert_true(samples_read(samples, 0, PROFILE_NAMES_ORIGINAL, &original));
    assert_true(samples_read(samples, 0, PROFILE_NAMES_NEW, &new));
    assert_true(samples_read(samples, 0, PROFILE_NAMES_BOTH, &both));
    assert_int_equal(original.n, 8);
    assert_int_equal(new.n, 8);
    assert_int_equal(both.n, 16);
    for (size_t i = 0; i < 8; i++) {
        assert_true(original.values[i].metric->is_original);
        assert_false(new.values[i].metric->is_original);
    }
    assert_int_equal(both.kind, PROFILE_OF_TASK);
    assert_int_equal(both.task, 3);
    samples_free(samples);
}

TEST(a_dataset_is_made_once)
{
    struct samples *samples = samples_new(&no_quirks);

    assert_int_equal(add_task(samples, 0), 0);
    assert_int_equal(add_task(samples, 7), 1);
    assert_int_equal(add_task(samples, 0), 0);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_NETWORK, 1, network_fields, 4), 2);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_NETWORK, 2, network_fields, 4), 2);
    assert_int_equal(samples_count(samples), 3);
    samples_free(samples);
}

/* AcctGatherEnergyType may list several plugins, and each makes a dataset "Energy". */
TEST(two_energy_plugins_complete_each_other)
{
    static const struct samples_field ipmi[] = { { "Power", false }, { "GPU0Power", false } };
    static const struct samples_field gpu[] = { { "GPU0Power", false }, { "GPU1Power", false } };
    const uint64_t first[] = { 500, 100 }, second[] = { 90, 80 };
    struct samples *samples = samples_new(&no_quirks);
    struct samples_view view;

    assert_int_equal(samples_dataset(samples, PROFILE_OF_ENERGY, 0, ipmi, 2), 0);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_ENERGY, 0, gpu, 2), 1);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_ENERGY, 0, gpu, 2), 1);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_ENERGY, 0, gpu, 1), -1);
    samples_add(samples, 0, first);
    samples_add(samples, 1, second);
    assert_true(samples_read(samples, 0, PROFILE_NAMES_NEW, &view));
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "GPU0") == 100);
    assert_true(samples_read(samples, 1, PROFILE_NAMES_NEW, &view));
    assert_int_equal(view.n, 1);
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "GPU1") == 80);
    samples_free(samples);
}

TEST(what_is_not_known_makes_no_dataset)
{
    static const struct samples_field unknown[] = { { "Cats", false }, { "", true } };
    struct samples *samples = samples_new(&no_quirks);

    assert_int_equal(samples_dataset(samples, PROFILE_OF_TASK, 0, unknown, 2), -1);
    assert_int_equal(samples_dataset(samples, PROFILE_OF_TASK, 0, unknown, 0), -1);
    assert_int_equal(samples_count(samples), 0);
    samples_free(samples);
}

TEST(fields_beyond_the_ceiling_are_left_out)
{
    enum { N = 2 * SAMPLES_FIELDS };
    static char names[N][16];
    struct samples_field fields[N];
    uint64_t data[N];
    struct samples *samples = samples_new(&no_quirks);
    struct samples_view view;

    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "GPU%zuPower", i);
        fields[i] = (struct samples_field){ names[i], false };
        data[i] = i;
    }
    assert_int_equal(samples_dataset(samples, PROFILE_OF_ENERGY, 0, fields, N), 0);
    samples_add(samples, 0, data);
    assert_true(samples_read(samples, 0, PROFILE_NAMES_BOTH, &view));
    assert_int_equal(view.n, SAMPLES_FIELDS);
    assert_true(value_in(&view, "slurm_profile_node_power_watts", "GPU31") == 31);
    samples_free(samples);
}

TEST(a_dataset_that_nobody_made_is_passed_over)
{
    static const struct task_sample sample = { .rss = 1 };
    struct samples *samples = samples_new(&no_quirks);
    struct samples_view view;

    add_task(samples, 0);
    samples_add(samples, -1, &sample);
    samples_add(samples, 1, &sample);
    samples_add(samples, INT64_MAX, &sample);
    samples_add(samples, INT64_MIN, &sample);
    assert_int_equal(samples_serial(samples), 0);
    assert_false(samples_read(samples, 0, PROFILE_NAMES_BOTH, &view));
    assert_false(samples_read(samples, 1, PROFILE_NAMES_BOTH, &view));
    samples_free(samples);
}

TEST(there_is_a_ceiling_of_tasks, .is_bulk = true)
{
    struct samples *samples = samples_new(&no_quirks);
    struct task_sample sample = { .rss = 1 };

    for (uint32_t task = 0; task < SAMPLES_DATASETS; task++)
        assert_int_equal(add_task(samples, task), task);
    assert_int_equal(add_task(samples, SAMPLES_DATASETS), -1);
    assert_int_equal(add_task(samples, 17), 17);
    samples_add(samples, SAMPLES_DATASETS - 1, &sample);
    assert_value(samples, SAMPLES_DATASETS - 1, "RSS", 1);
    samples_free(samples);
}

TEST(each_sample_changes_the_serial_and_allocates_nothing)
{
    static const struct task_sample sample = { .rss = 1 };
    struct samples *samples = samples_new(&no_quirks);
    uint64_t serial = samples_serial(samples);
    long before;

    add_task(samples, 0);
    before = n_allocations;
    for (int i = 0; i < 1000; i++) {
        samples_add(samples, 0, &sample);
        assert_true(samples_serial(samples) != serial);
        serial = samples_serial(samples);
    }
    assert_int_equal(n_allocations, before);
    samples_free(samples);
}

TEST(a_want_of_memory_is_survived_at_every_point)
{
    static const struct task_sample sample = { .rss = 1 };
    enum { ALLOCATIONS = 4 }; /* itself, a layout, a chunk, a dataset */

    for (long nth = 0; nth <= ALLOCATIONS; nth++) {
        long begin = n_allocations;
        struct samples *samples;

        fail_at = begin + nth;
        samples = samples_new(&no_quirks);
        assert_int_equal(samples == NULL, nth == 0);
        if (samples) {
            assert_int_equal(add_task(samples, 0), nth == ALLOCATIONS ? 0 : -1);
            fail_at = -1;
            assert_int_equal(add_task(samples, 0), 0);
            samples_add(samples, 0, &sample);
            assert_value(samples, 0, "RSS", 1);
        }
        fail_at = -1;
        samples_free(samples);
    }
}

enum { HAMMERED = 300000 };

struct hammer {
    struct samples *samples;
    atomic_bool is_done;
};

/* All numbers of a sample are the same, or follow from it. */
static void *hammer(void *ctx)
{
    struct hammer *hammer = ctx;

    for (uint64_t i = 1; i <= HAMMERED; i++) {
        struct task_sample sample = {
            .cpu_time = 1, .rss = i, .vm_size = i, .pages = i, .read = 1, .written = (double)i
        };

        samples_add(hammer->samples, 0, &sample);
        if (i % 1000 == 0)
            samples_add(hammer->samples, add_task(hammer->samples, (uint32_t)i / 1000), &sample);
    }
    hammer->is_done = true;
    return NULL;
}

static void check_view(const struct samples_view *view, double least)
{
    double n = value_in(view, "RSS", "");

    assert_true(n >= least);
    assert_true(value_in(view, "VMSize", "") == n);
    assert_true(value_in(view, "Pages", "") == n);
    assert_true(value_in(view, "WriteMB", "") == n);
    assert_true(value_in(view, "slurm_profile_task_resident_memory_bytes", "") == n * 1024);
    if (view->task == 0) {
        assert_true(value_in(view, "slurm_profile_task_cpu_seconds_total", "") == n);
        assert_true(value_in(view, "slurm_profile_task_read_bytes_total", "") == n * 1048576);
    }
}

/* Returns how often it could read. */
static size_t read_until_done(struct hammer *hammered)
{
    struct samples_view view;
    size_t n_read = 0;
    double last = 0;
    bool is_done;

    do {
        size_t n;

        is_done = hammered->is_done;
        n = samples_count(hammered->samples);
        if (samples_read(hammered->samples, 0, PROFILE_NAMES_BOTH, &view)) {
            check_view(&view, last);
            last = value_in(&view, "RSS", "");
            n_read++;
        }
        if (samples_read(hammered->samples, n - 1, PROFILE_NAMES_BOTH, &view))
            check_view(&view, 0);
    } while (!is_done);
    assert_true(last == HAMMERED);
    return n_read;
}

static void *take_time_from_others(void *ctx)
{
    struct hammer *hammer = ctx;

    while (!hammer->is_done)
        ;
    return NULL;
}

/* More threads than cores: the reader loses its own in the middle of a read. */
TEST(a_reader_never_sees_two_samples_mixed)
{
    static struct hammer hammered; /* which the threads also have if this fails */
    pthread_t threads[3];

    hammered.samples = samples_new(&no_quirks);
    add_task(hammered.samples, 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i ? take_time_from_others : hammer, &hammered), 0);
    assert_true(read_until_done(&hammered) > 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    samples_free(hammered.samples);
}
