/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of model/profile: metrics of the profile plugin. */
#include "test.h"

#include "model/profile.h"

static const struct profile_quirks none, gpus = { .has_gpu_fields = true },
                                         sysfs = { .has_swapped_network = true },
                                         newer = { .is_filesystem_cumulative = true };

static const struct {
    enum profile_kind kind;
    const char *field;
    const struct profile_quirks *quirks;
    const char *original; /* NULL: none */
    const char *metric;   /* without slurm_profile_; NULL: the field is dropped */
    enum profile_conversion conversion;
    const char *sensor;
} expected[] = {
    { PROFILE_OF_TASK, "CPUFrequency", &none, "CPUFrequency", "task_cpu_frequency_hertz",
      PROFILE_FREQUENCY, "" },
    { PROFILE_OF_TASK, "CPUTime", &none, "CPUTime", "task_cpu_seconds_total", PROFILE_SUM, "" },
    { PROFILE_OF_TASK, "CPUUtilization", &none, "CPUUtilization", "task_cpu_utilization_ratio",
      PROFILE_PERCENT, "" },
    { PROFILE_OF_TASK, "GPUMemMB", &gpus, "GPUMemMB", "task_gpu_memory_bytes", PROFILE_MIB, "" },
    { PROFILE_OF_TASK, "GPUMemMB", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_TASK, "GPUUtilization", &gpus, "GPUUtilization", "task_gpu_utilization_ratio",
      PROFILE_PERCENT, "" },
    { PROFILE_OF_TASK, "GPUUtilization", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_TASK, "RSS", &none, "RSS", "task_resident_memory_bytes", PROFILE_KIB, "" },
    { PROFILE_OF_TASK, "VMSize", &none, "VMSize", "task_virtual_memory_bytes", PROFILE_KIB, "" },
    { PROFILE_OF_TASK, "Pages", &none, "Pages", "task_major_page_faults_total", PROFILE_AS_IS, "" },
    { PROFILE_OF_TASK, "ReadMB", &none, "ReadMB", "task_read_bytes_total", PROFILE_SUM_MIB, "" },
    { PROFILE_OF_TASK, "ReadMB", &newer, "ReadMB", "task_read_bytes_total", PROFILE_SUM_MIB, "" },
    { PROFILE_OF_TASK, "WriteMB", &none, "WriteMB", "task_written_bytes_total", PROFILE_SUM_MIB,
      "" },
    { PROFILE_OF_TASK, "Power", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_TASK, "CPUTime2", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_TASK, "", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_ENERGY, "Power", &none, "Power", "node_power_watts", PROFILE_AS_IS, "" },
    { PROFILE_OF_ENERGY, "CurrPower", &none, NULL, "node_power_watts", PROFILE_AS_IS, "" },
    { PROFILE_OF_ENERGY, "Energy", &none, NULL, "node_energy_joules_total", PROFILE_AS_IS, "" },
    { PROFILE_OF_ENERGY, "GPU3Power", &none, NULL, "node_power_watts", PROFILE_AS_IS, "GPU3" },
    { PROFILE_OF_ENERGY, "NodePower", &none, NULL, "node_power_watts", PROFILE_AS_IS, "Node" },
    { PROFILE_OF_ENERGY, "a b\n\"\xffPower", &none, NULL, "node_power_watts", PROFILE_AS_IS,
      "a b?\"?" },
    { PROFILE_OF_ENERGY, "0123456789012345678901234567890123456789Power", &none, NULL,
      "node_power_watts", PROFILE_AS_IS, "0123456789012345678901234567890" },
    { PROFILE_OF_ENERGY, "012345678901234567890123456789\xc3\xa4Power", &none, NULL,
      "node_power_watts", PROFILE_AS_IS, "012345678901234567890123456789" },
    { PROFILE_OF_ENERGY, "RSS", &none, NULL, NULL, 0, "" },
    { PROFILE_OF_NETWORK, "PacketsIn", &none, "PacketsIn", "node_network_receive_packets_total",
      PROFILE_SUM, "" },
    { PROFILE_OF_NETWORK, "PacketsOut", &none, "PacketsOut", "node_network_transmit_packets_total",
      PROFILE_SUM, "" },
    { PROFILE_OF_NETWORK, "InMB", &none, "InMB", "node_network_receive_bytes_total",
      PROFILE_SUM_MIB, "" },
    { PROFILE_OF_NETWORK, "OutMB", &none, "OutMB", "node_network_transmit_bytes_total",
      PROFILE_SUM_MIB, "" },
    { PROFILE_OF_NETWORK, "PacketsIn", &sysfs, "PacketsIn", "node_network_receive_bytes_total",
      PROFILE_SUM, "" },
    { PROFILE_OF_NETWORK, "PacketsOut", &sysfs, "PacketsOut", "node_network_transmit_bytes_total",
      PROFILE_SUM, "" },
    { PROFILE_OF_NETWORK, "InMB", &sysfs, "InMB", "node_network_receive_packets_total",
      PROFILE_SUM_PACKETS, "" },
    { PROFILE_OF_NETWORK, "OutMB", &sysfs, "OutMB", "node_network_transmit_packets_total",
      PROFILE_SUM_PACKETS, "" },
    { PROFILE_OF_FILESYSTEM, "Reads", &none, "Reads", "node_filesystem_reads_total", PROFILE_GROWTH,
      "" },
    { PROFILE_OF_FILESYSTEM, "Writes", &none, "Writes", "node_filesystem_writes_total",
      PROFILE_GROWTH, "" },
    { PROFILE_OF_FILESYSTEM, "ReadMB", &none, NULL, "node_filesystem_read_bytes_total",
      PROFILE_GROWTH_MIB, "" },
    { PROFILE_OF_FILESYSTEM, "WriteMB", &none, NULL, "node_filesystem_written_bytes_total",
      PROFILE_GROWTH_MIB, "" },
    { PROFILE_OF_FILESYSTEM, "Reads", &newer, "Reads", "node_filesystem_reads_total", PROFILE_AS_IS,
      "" },
    { PROFILE_OF_FILESYSTEM, "Writes", &newer, "Writes", "node_filesystem_writes_total",
      PROFILE_AS_IS, "" },
    { PROFILE_OF_FILESYSTEM, "ReadMB", &newer, NULL, "node_filesystem_read_bytes_total",
      PROFILE_MIB, "" },
    { PROFILE_OF_FILESYSTEM, "WriteMB", &newer, NULL, "node_filesystem_written_bytes_total",
      PROFILE_MIB, "" },
};

TEST(each_field_has_its_metrics)
{
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct profile_field field;
        bool is_known =
            profile_field_of(expected[i].kind, expected[i].field, expected[i].quirks, &field);

        if (is_known != (expected[i].metric != NULL))
            fail_msg("%s is %sknown", expected[i].field, is_known ? "" : "not ");
        if (!is_known)
            continue;
        assert_string_equal(field.metric->name + strlen("slurm_profile_"), expected[i].metric);
        assert_int_equal(field.metric->kind, expected[i].kind);
        assert_int_equal(field.conversion, expected[i].conversion);
        assert_string_equal(field.sensor, expected[i].sensor);
        assert_int_equal(field.original != NULL, expected[i].original != NULL);
        if (field.original)
            assert_string_equal(field.original->name, expected[i].original);
    }
}

TEST(each_metric_comes_from_a_field)
{
    for (size_t m = 0; m < n_profile_metrics; m++) {
        const struct profile_metric *metric = &profile_metrics[m];
        bool is_found = false;

        for (size_t i = 0; i < COUNT(expected); i++) {
            const char *name = metric->is_original ? expected[i].original : expected[i].metric;
            size_t prefix = metric->is_original ? 0 : strlen("slurm_profile_");

            is_found |= name && strcmp(metric->name + prefix, name) == 0;
        }
        if (!is_found)
            fail_msg("%s comes from nowhere", metric->name);
    }
}

TEST(names_follow_the_conventions)
{
    for (size_t i = 0; i < n_profile_metrics; i++) {
        const struct profile_metric *metric = &profile_metrics[i];
        struct str name = str_of(metric->name), help = str_of(metric->help);
        bool is_total = str_ends(name, STR("_total"));

        assert_true(profile_metric_find(name) == metric);
        assert_true(help.n > 10 && str_ends(help, STR(".")));
        assert_true(str_find(help, '\n') == help.n && str_find(help, '\\') == help.n);
        if (metric->is_original) {
            assert_string_equal(metric->type, "untyped");
            continue;
        }
        assert_string_equal(metric->type, is_total ? "counter" : "gauge");
        assert_true(str_starts(name, metric->kind == PROFILE_OF_TASK ? STR("slurm_profile_task_")
                                                                     : STR("slurm_profile_node_")));
        assert_int_equal(str_find_str(help, STR("do not add them up")) < help.n,
                         metric->kind != PROFILE_OF_TASK);
    }
    assert_null(profile_metric_find(STR("slurm_profile_task_cpu_seconds")));
    assert_null(profile_metric_find(STR("")));
}

TEST(gauges_may_fall_and_what_no_interval_has_is_late)
{
    struct profile_field field;

    assert_true(profile_field_of(PROFILE_OF_TASK, "RSS", &gpus, &field));
    assert_true(field.is_gauge && field.is_memory && !field.is_late);
    assert_true(profile_field_of(PROFILE_OF_TASK, "VMSize", &gpus, &field));
    assert_true(field.is_gauge && field.is_memory && !field.is_late);
    assert_true(profile_field_of(PROFILE_OF_TASK, "Pages", &gpus, &field));
    assert_true(!field.is_gauge && !field.is_memory && !field.is_late);
    assert_true(profile_field_of(PROFILE_OF_TASK, "GPUMemMB", &gpus, &field));
    assert_true(field.is_gauge && !field.is_memory && field.is_late);
    assert_true(profile_field_of(PROFILE_OF_TASK, "CPUUtilization", &gpus, &field));
    assert_true(field.is_gauge && field.is_late);
}

TEST(a_dataset_is_of_a_task_or_of_the_node)
{
    static const struct {
        const char *name;
        bool has_parent;
        int kind; /* -1: neither */
    } cases[] = {
        { "0", true, PROFILE_OF_TASK },
        { "4294967295", true, PROFILE_OF_TASK },
        { "4294967296", true, -1 },
        { "-1", true, -1 },
        { "", true, -1 },
        { "Energy", true, -1 },
        { "Energy", false, PROFILE_OF_ENERGY },
        { "Network", false, PROFILE_OF_NETWORK },
        { "Filesystem", false, PROFILE_OF_FILESYSTEM },
        { "0", false, -1 },
        { "energy", false, -1 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum profile_kind kind = PROFILE_KINDS;
        bool is_known = profile_kind_of(cases[i].name, cases[i].has_parent, &kind);

        assert_int_equal(is_known, cases[i].kind >= 0);
        assert_int_equal(kind, is_known ? cases[i].kind : PROFILE_KINDS);
    }
}
