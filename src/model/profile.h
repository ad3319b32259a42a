/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's profiling says of a step on a node: which dataset's field becomes which metric, for
 * the plugin that takes the samples and for the agent that exports them. The fields are those of
 * jobacct_gather, acct_gather_energy, _interconnect and _filesystem in Slurm's sources. */
#ifndef SONDE_MODEL_PROFILE_H
#define SONDE_MODEL_PROFILE_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile_kind {
    PROFILE_OF_TASK,
    PROFILE_OF_ENERGY,
    PROFILE_OF_NETWORK,
    PROFILE_OF_FILESYSTEM,
    PROFILE_KINDS
};

enum profile_names { PROFILE_NAMES_ORIGINAL = 1, PROFILE_NAMES_NEW = 2, PROFILE_NAMES_BOTH = 3 };

/* One metric, of either set of names. Its place in the table is its number in this program. */
struct profile_metric {
    const char *name; /* "slurm_profile_task_cpu_seconds_total", "CPUTime" */
    const char *type; /* "counter", "gauge"; "untyped": an original */
    const char *help;
    enum profile_kind kind;
    bool is_original;
    bool has_sensor; /* PROFILE_OF_ENERGY: a label `sensor` tells one of several */
};

extern const struct profile_metric profile_metrics[];
extern const size_t n_profile_metrics;

/* NULL: there is none of that name. */
const struct profile_metric *profile_metric_find(struct str name);

/* How a field's value becomes that of its new metric. */
enum profile_conversion {
    PROFILE_AS_IS,
    PROFILE_SUM,         /* of one interval: added up */
    PROFILE_SUM_MIB,     /* likewise, in MiB, to bytes */
    PROFILE_GROWTH,      /* from sample to sample: added up */
    PROFILE_GROWTH_MIB,  /* likewise, in MiB, to bytes */
    PROFILE_SUM_PACKETS, /* likewise, what sysfs calls MB: packets / 65536 */
    PROFILE_MIB,         /* cumulative or a gauge, in MiB, to bytes */
    PROFILE_KIB,         /* to bytes */
    PROFILE_PERCENT,     /* to a ratio */
    PROFILE_FREQUENCY,   /* kHz, or MHz where it is less than 100,000: to hertz */
};

bool profile_is_sum(enum profile_conversion conversion);

/* What must be known of the Slurm that takes the samples. */
struct profile_quirks {
    bool has_swapped_network; /* AcctGatherInterconnectType is sysfs: it says bytes in Packets* and
                               * packets in *MB, in 22.05.8, 24.11.5 and 26.05 alike; ofed does not
                               */
    unsigned network_times;   /* so often sysfs has read its interfaces' names, and so often it
                               * counts each: twice from 23.11 on; 0 is once */
    bool is_filesystem_cumulative; /* since the step began: from 25.11 on; before, since the mount,
                                    * after a first sample of 0 */
    bool has_gpu_fields; /* AccountingStorageTRES has gres/gpumem and gres/gpuutil; without
                          * them the fields are whatever was in memory */
};

enum { PROFILE_SENSOR = 32 }; /* bytes of a sensor's name, with its NUL; a longer one is cut */

struct profile_field {
    const struct profile_metric *original; /* NULL: has none that would not collide */
    const struct profile_metric *metric;
    enum profile_conversion conversion;
    unsigned times; /* Slurm tells it so often too large */
    double most;    /* what is more, of the metric's unit, is not believed */
    bool is_gauge;  /* it may fall */
    bool is_memory; /* 0 in all of these: the task is over, and its gauges say nothing */
    bool is_late;   /* the first sample has not measured it: 0, or whatever was in memory */
    char sensor[PROFILE_SENSOR]; /* of "CPUPower": "CPU"; empty otherwise. UTF-8 without control
                                  * characters */
};

/* What becomes of a field of a dataset. False: it is dropped (unknown, or not to be believed). */
bool profile_field_of(enum profile_kind kind, const char *name, const struct profile_quirks *quirks,
                      struct profile_field *ret);

/* "Energy", "Network", "Filesystem" for the node's; a task's is called by its number, and has a
 * parent. False: neither. */
bool profile_kind_of(const char *dataset, bool has_parent, enum profile_kind *ret);

#endif
