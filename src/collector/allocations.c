/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What accounts were promised, have used, and when it runs out: docs/allocations.md. */
#include "collector/collector.h"
#include "collector/known.h"

#include <math.h>

/* Those of CPUs and GPUs stand side by side, as in enum allocation_of. */
enum {
    STEADY_CPUS,
    STEADY_GPUS,
    CPU_SECONDS,
    GPU_SECONDS,
    USED_CPU_SECONDS,
    USED_GPU_SECONDS,
    LEFT_CPU_SECONDS,
    LEFT_GPU_SECONDS,
    CPU_EMPTY,
    GPU_EMPTY,
    START,
    END,
    STORAGE,
    STUDENTS,
};

#define AS_FAR " Absent if the allocation began before the store reaches back, or holds for good."

#define EMPTY(of)                                                                                  \
    "When the " of " of the account's allocation are used up, if it goes on as in the last 7 "     \
    "days; in the past, roughly when they were. Absent if they last until it ends."

static const struct family families[] = {
    [STEADY_CPUS] = { "sonde_allocation_cpus",
                      METRIC_GAUGE,
                      "CPUs that the account may use all the time: what it was promised, spread "
                      "evenly over the time of its allocation.",
                      { "account" } },
    [STEADY_GPUS] = { "sonde_allocation_gpus",
                      METRIC_GAUGE,
                      "GPUs that the account may use all the time: what it was promised, spread "
                      "evenly over the time of its allocation.",
                      { "account" } },
    [CPU_SECONDS] = { "sonde_allocation_cpu_seconds",
                      METRIC_GAUGE,
                      "CPU time that the account was promised for all the time of its allocation.",
                      { "account" } },
    [GPU_SECONDS] = { "sonde_allocation_gpu_seconds",
                      METRIC_GAUGE,
                      "GPU time that the account was promised for all the time of its allocation.",
                      { "account" } },
    [USED_CPU_SECONDS] = { "sonde_allocation_used_cpu_seconds",
                           METRIC_GAUGE,
                           "CPU time that the account's jobs have held since its allocation "
                           "began." AS_FAR,
                           { "account" } },
    [USED_GPU_SECONDS] = { "sonde_allocation_used_gpu_seconds",
                           METRIC_GAUGE,
                           "GPU time that the account's jobs have held since its allocation "
                           "began." AS_FAR,
                           { "account" } },
    [LEFT_CPU_SECONDS] = { "sonde_allocation_left_cpu_seconds",
                           METRIC_GAUGE,
                           "CPU time that is left of the account's allocation; negative if more "
                           "was used." AS_FAR,
                           { "account" } },
    [LEFT_GPU_SECONDS] = { "sonde_allocation_left_gpu_seconds",
                           METRIC_GAUGE,
                           "GPU time that is left of the account's allocation; negative if more "
                           "was used." AS_FAR,
                           { "account" } },
    [CPU_EMPTY] = { "sonde_allocation_cpu_empty_timestamp_seconds",
                    METRIC_GAUGE,
                    EMPTY("CPUs"),
                    { "account" } },
    [GPU_EMPTY] = { "sonde_allocation_gpu_empty_timestamp_seconds",
                    METRIC_GAUGE,
                    EMPTY("GPUs"),
                    { "account" } },
    [START] = { "sonde_allocation_start_timestamp_seconds",
                METRIC_GAUGE,
                "When the account's allocation began.",
                { "account" } },
    [END] = { "sonde_allocation_end_timestamp_seconds",
              METRIC_GAUGE,
              "When the account's allocation ends.",
              { "account" } },
    [STORAGE] = { "sonde_allocation_storage_bytes",
                  METRIC_GAUGE,
                  "Storage that the account was promised.",
                  { "account" } },
    [STUDENTS] = { "sonde_allocation_students",
                   METRIC_GAUGE,
                   "Students that the account has, as the file of allocations says.",
                   { "account" } },
};

/* What is told of one, by family; NAN: nothing. */
struct told {
    double value[COUNT(families)];
};

/* For good there is no sum of what was promised; of what was not, nobody asks how much is used. */
static void tell_of(const struct allocation *of, enum allocation_of what, int64_t now,
                    struct told *told)
{
    double promised = of->from ? of->seconds[what] : NAN;

    told->value[STEADY_CPUS + what] = allocation_steady(of, what);
    told->value[CPU_SECONDS + what] = promised;
    told->value[USED_CPU_SECONDS + what] = isnan(promised) ? NAN : of->used[what];
    told->value[LEFT_CPU_SECONDS + what] = allocation_left(of, what);
    told->value[CPU_EMPTY + what] = allocation_empty_at(of, what, now);
}

static void tell(const struct allocation *of, int64_t now, struct told *told)
{
    for (enum allocation_of what = 0; what < ALLOCATION_KINDS; what++)
        tell_of(of, what, now, told);
    told->value[START] = of->from ? (double)of->from : NAN;
    told->value[END] = of->to ? (double)of->to : NAN;
    told->value[STORAGE] = of->storage_bytes;
    told->value[STUDENTS] = of->students;
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    const struct allocations *allocations = &section->allocations;
    struct told *told = heap_array(allocations->n, sizeof(*told));

    for (size_t i = 0; i < allocations->n; i++)
        tell(&allocations->row[i], allocations->now, &told[i]);
    for (size_t family = 0; family < COUNT(families); family++) {
        metric_begin(writer, family);
        for (size_t i = 0; i < allocations->n; i++)
            known_write_double(writer,
                               METRIC_VALUES(section_text(section, allocations->row[i].account)),
                               told[i].value[family]);
    }
    free(told);
}

const struct collector collector_allocations = {
    .name = "allocations",
    .help = "what accounts were promised, what is left of it and until when it lasts",
    .kind = KIND_ALLOCATIONS,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
