/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of metrics and of fields: _record_profile() of jobacct_gather's common_jag.c, and what
 * the plugins acct_gather_energy, _interconnect and _filesystem give to create_dataset(). */
#include "model/profile.h"

#include "base/num.h"

/* The number of a metric in profile_metrics. */
enum {
#define TASK(number, name, type, help)                   number,
#define NODE(number, kind, name, type, has_sensor, help) number,
#define ORIGINAL(number, kind, name, help)               number,
#include "model/profile_metrics.inc"
#undef TASK
#undef NODE
#undef ORIGINAL
    NONE, /* no original */
};

const struct profile_metric profile_metrics[] = {
#define TASK(number, name, type, help)                                                             \
    { "slurm_profile_task_" name, #type, help, PROFILE_OF_TASK, false, false },
#define NODE(number, kind, name, type, has_sensor, help)                                           \
    { "slurm_profile_node_" name, #type, help, kind, false, has_sensor },
#define ORIGINAL(number, kind, name, help) { name, "untyped", help, kind, true, false },
#include "model/profile_metrics.inc"
#undef TASK
#undef NODE
#undef ORIGINAL
};
const size_t n_profile_metrics = COUNT(profile_metrics);

const struct profile_metric *profile_metric_find(struct str name)
{
    for (size_t i = 0; i < n_profile_metrics; i++)
        if (str_eq(name, str_of(profile_metrics[i].name)))
            return &profile_metrics[i];
    return NULL;
}

enum trait { PLAIN, MEMORY, LATE }; /* is_memory and is_late of struct profile_field */
enum when { ALWAYS, WITH_GPUS, AS_NAMED, SWAPPED, SINCE_MOUNT, CUMULATIVE };

static bool applies(enum when when, const struct profile_quirks *quirks)
{
    const bool answers[] = {
        [ALWAYS] = true,
        [WITH_GPUS] = quirks->has_gpu_fields,
        [AS_NAMED] = !quirks->has_swapped_network,
        [SWAPPED] = quirks->has_swapped_network,
        [SINCE_MOUNT] = !quirks->is_filesystem_cumulative,
        [CUMULATIVE] = quirks->is_filesystem_cumulative,
    };

    return answers[when];
}

/* Of nothing that is real: 1e15 bytes in one interval; more than Slurm's NO_VAL watts, which is
 * what acct_gather_energy/ipmi says of sensors that it cannot read. What goes up for days may be
 * larger than what is told of one interval. */
static const double most_of_interval = 1e15, most_watts = 4294967293, most_of_all = 1e18;

static const struct row {
    enum profile_kind kind;
    const char *name;
    int original, metric;
    enum profile_conversion conversion;
    enum when when;
    enum trait trait;
} rows[] = {
    { PROFILE_OF_TASK, "CPUFrequency", CPU_FREQUENCY, TASK_CPU_FREQUENCY, PROFILE_FREQUENCY, ALWAYS,
      PLAIN },
    { PROFILE_OF_TASK, "CPUTime", CPU_TIME, TASK_CPU_SECONDS, PROFILE_SUM, ALWAYS, PLAIN },
    { PROFILE_OF_TASK, "CPUUtilization", CPU_UTILIZATION, TASK_CPU_UTILIZATION, PROFILE_PERCENT,
      ALWAYS, LATE },
    { PROFILE_OF_TASK, "GPUMemMB", GPU_MEM_MB, TASK_GPU_MEMORY, PROFILE_MIB, WITH_GPUS, LATE },
    { PROFILE_OF_TASK, "GPUUtilization", GPU_UTILIZATION, TASK_GPU_UTILIZATION, PROFILE_PERCENT,
      WITH_GPUS, LATE },
    { PROFILE_OF_TASK, "RSS", RSS, TASK_RESIDENT_MEMORY, PROFILE_KIB, ALWAYS, MEMORY },
    { PROFILE_OF_TASK, "VMSize", VM_SIZE, TASK_VIRTUAL_MEMORY, PROFILE_KIB, ALWAYS, MEMORY },
    { PROFILE_OF_TASK, "Pages", PAGES, TASK_MAJOR_FAULTS, PROFILE_AS_IS, ALWAYS, PLAIN },
    { PROFILE_OF_TASK, "ReadMB", READ_MB, TASK_READ_BYTES, PROFILE_SUM_MIB, ALWAYS, PLAIN },
    { PROFILE_OF_TASK, "WriteMB", WRITE_MB, TASK_WRITTEN_BYTES, PROFILE_SUM_MIB, ALWAYS, PLAIN },
    { PROFILE_OF_ENERGY, "Power", POWER, NODE_POWER, PROFILE_AS_IS, ALWAYS, PLAIN },
    { PROFILE_OF_ENERGY, "CurrPower", NONE, NODE_POWER, PROFILE_AS_IS, ALWAYS, PLAIN },
    { PROFILE_OF_ENERGY, "Energy", NONE, NODE_ENERGY, PROFILE_AS_IS, ALWAYS, PLAIN },
    { PROFILE_OF_NETWORK, "PacketsIn", PACKETS_IN, NODE_RECEIVE_PACKETS, PROFILE_SUM, AS_NAMED,
      PLAIN },
    { PROFILE_OF_NETWORK, "PacketsOut", PACKETS_OUT, NODE_TRANSMIT_PACKETS, PROFILE_SUM, AS_NAMED,
      PLAIN },
    { PROFILE_OF_NETWORK, "InMB", IN_MB, NODE_RECEIVE_BYTES, PROFILE_SUM_MIB, AS_NAMED, PLAIN },
    { PROFILE_OF_NETWORK, "OutMB", OUT_MB, NODE_TRANSMIT_BYTES, PROFILE_SUM_MIB, AS_NAMED, PLAIN },
    { PROFILE_OF_NETWORK, "PacketsIn", PACKETS_IN, NODE_RECEIVE_BYTES, PROFILE_SUM, SWAPPED,
      PLAIN },
    { PROFILE_OF_NETWORK, "PacketsOut", PACKETS_OUT, NODE_TRANSMIT_BYTES, PROFILE_SUM, SWAPPED,
      PLAIN },
    { PROFILE_OF_NETWORK, "InMB", IN_MB, NODE_RECEIVE_PACKETS, PROFILE_SUM_PACKETS, SWAPPED,
      PLAIN },
    { PROFILE_OF_NETWORK, "OutMB", OUT_MB, NODE_TRANSMIT_PACKETS, PROFILE_SUM_PACKETS, SWAPPED,
      PLAIN },
    { PROFILE_OF_FILESYSTEM, "Reads", READS, NODE_READS, PROFILE_GROWTH, SINCE_MOUNT, PLAIN },
    { PROFILE_OF_FILESYSTEM, "Writes", WRITES, NODE_WRITES, PROFILE_GROWTH, SINCE_MOUNT, PLAIN },
    { PROFILE_OF_FILESYSTEM, "ReadMB", NONE, NODE_READ_BYTES, PROFILE_GROWTH_MIB, SINCE_MOUNT,
      PLAIN },
    { PROFILE_OF_FILESYSTEM, "WriteMB", NONE, NODE_WRITTEN_BYTES, PROFILE_GROWTH_MIB, SINCE_MOUNT,
      PLAIN },
    { PROFILE_OF_FILESYSTEM, "Reads", READS, NODE_READS, PROFILE_AS_IS, CUMULATIVE, PLAIN },
    { PROFILE_OF_FILESYSTEM, "Writes", WRITES, NODE_WRITES, PROFILE_AS_IS, CUMULATIVE, PLAIN },
    { PROFILE_OF_FILESYSTEM, "ReadMB", NONE, NODE_READ_BYTES, PROFILE_MIB, CUMULATIVE, PLAIN },
    { PROFILE_OF_FILESYSTEM, "WriteMB", NONE, NODE_WRITTEN_BYTES, PROFILE_MIB, CUMULATIVE, PLAIN },
};

bool profile_is_sum(enum profile_conversion conversion)
{
    return conversion == PROFILE_SUM || conversion == PROFILE_SUM_MIB ||
           conversion == PROFILE_SUM_PACKETS || conversion == PROFILE_GROWTH ||
           conversion == PROFILE_GROWTH_MIB;
}

static void fill(const struct row *row, struct profile_field *ret)
{
    *ret = (struct profile_field){
        .original = row->original == NONE ? NULL : &profile_metrics[row->original],
        .metric = &profile_metrics[row->metric],
        .conversion = row->conversion,
        .times = 1,
        .most = profile_is_sum(row->conversion) ? most_of_interval
                : row->metric == NODE_POWER     ? most_watts
                                                : most_of_all,
        .is_gauge = str_eq(str_of(profile_metrics[row->metric].type), STR("gauge")),
        .is_memory = row->trait == MEMORY,
        .is_late = row->trait == LATE,
    };
}

bool profile_field_of(enum profile_kind kind, const char *name, const struct profile_quirks *quirks,
                      struct profile_field *ret)
{
    static const struct row sensor = { .original = NONE, .metric = NODE_POWER };
    struct str text = str_of(name);

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].kind == kind && str_eq(text, str_of(rows[i].name)) &&
            applies(rows[i].when, quirks)) {
            fill(&rows[i], ret);
            if (kind == PROFILE_OF_NETWORK && quirks->network_times > 1)
                ret->times = quirks->network_times;
            return true;
        }
    if (kind != PROFILE_OF_ENERGY || !str_ends(text, STR("Power")))
        return false;
    fill(&sensor, ret);
    str_copy_printable(ret->sensor, sizeof(ret->sensor) - 1,
                       str_head(text, text.n - STR("Power").n));
    return true;
}

bool profile_kind_of(const char *dataset, bool has_parent, enum profile_kind *ret)
{
    static const struct {
        enum profile_kind kind;
        struct str name;
    } of_nodes[] = {
        { PROFILE_OF_ENERGY, STR_INIT("Energy") },
        { PROFILE_OF_NETWORK, STR_INIT("Network") },
        { PROFILE_OF_FILESYSTEM, STR_INIT("Filesystem") },
    };
    uint64_t task;

    if (has_parent) {
        if (!num_get_u64(str_of(dataset), &task) || task > UINT32_MAX)
            return false;
        *ret = PROFILE_OF_TASK;
        return true;
    }
    for (size_t i = 0; i < COUNT(of_nodes); i++)
        if (str_eq(str_of(dataset), of_nodes[i].name)) {
            *ret = of_nodes[i].kind;
            return true;
        }
    return false;
}
