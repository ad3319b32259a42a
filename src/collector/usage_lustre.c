/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What job ids do on the Lustre targets of this server, by the names of HPE's lustre_exporter, so
 * that its dashboards and queries work; and how many of their reads and writes were small. */
#include "collector/usage.h"

#define LABELS "component", "target", "jobid"

enum {
    READ_SAMPLES,
    READ_LEAST,
    READ_MOST,
    READ_BYTES,
    READ_SMALL,
    WRITE_SAMPLES,
    WRITE_LEAST,
    WRITE_MOST,
    WRITE_BYTES,
    WRITE_SMALL,
    OPERATIONS,
    UP,
    TARGETS,
    UNREAD,
    IDS,
    IDS_LEFT_OUT,
    IDS_MERGED,
    LINES_LEFT_OUT,
    DURATION,
    BYTES_READ,
};

static const struct family families[] = {
    [READ_SAMPLES] = { "lustre_job_read_samples_total",
                       METRIC_COUNTER,
                       "Reads that a target did for a job id.",
                       { LABELS } },
    [READ_LEAST] = { "lustre_job_read_minimum_size_bytes",
                     METRIC_GAUGE,
                     "The smallest read of a job id on a target.",
                     { LABELS } },
    [READ_MOST] = { "lustre_job_read_maximum_size_bytes",
                    METRIC_GAUGE,
                    "The largest read of a job id on a target.",
                    { LABELS } },
    [READ_BYTES] = { "lustre_job_read_bytes_total",
                     METRIC_COUNTER,
                     "Bytes that a target read for a job id. It begins anew when Lustre clears or "
                     "drops what it has counted.",
                     { LABELS } },
    [READ_SMALL] = { "lustre_job_read_small_samples_total",
                     METRIC_COUNTER,
                     "Reads of at most 32 KiB; absent where Lustre does not count by size, before "
                     "2.16.",
                     { LABELS } },
    [WRITE_SAMPLES] = { "lustre_job_write_samples_total",
                        METRIC_COUNTER,
                        "Writes that a target did for a job id.",
                        { LABELS } },
    [WRITE_LEAST] = { "lustre_job_write_minimum_size_bytes",
                      METRIC_GAUGE,
                      "The smallest write of a job id on a target.",
                      { LABELS } },
    [WRITE_MOST] = { "lustre_job_write_maximum_size_bytes",
                     METRIC_GAUGE,
                     "The largest write of a job id on a target.",
                     { LABELS } },
    [WRITE_BYTES] = { "lustre_job_write_bytes_total",
                      METRIC_COUNTER,
                      "Bytes that a target wrote for a job id. It begins anew when Lustre clears "
                      "or drops what it has counted.",
                      { LABELS } },
    [WRITE_SMALL] = { "lustre_job_write_small_samples_total",
                      METRIC_COUNTER,
                      "Writes of at most 32 KiB; absent where Lustre does not count by size, "
                      "before 2.16.",
                      { LABELS } },
    [OPERATIONS] = { "lustre_job_stats_total",
                     METRIC_COUNTER,
                     "Operations other than reads and writes that a target did for a job id: open, "
                     "close, getattr, punch and what else its release counts.",
                     { LABELS, "operation" } },
    [UP] = { "sonde_agent_lustre_up",
             METRIC_GAUGE,
             "1 if all Lustre targets of this server could be read, 0 if one could not or a look "
             "at them does not end; absent without any.",
             { NULL } },
    [TARGETS] = { "sonde_agent_lustre_targets",
                  METRIC_GAUGE,
                  "Lustre targets of this server.",
                  { NULL } },
    [UNREAD] = { "sonde_agent_lustre_unread_targets",
                 METRIC_GAUGE,
                 "Lustre targets of this server whose job_stats could not be read.",
                 { NULL } },
    [IDS] = { "sonde_agent_lustre_ids", METRIC_GAUGE, "Job ids shown, of all targets.", { NULL } },
    [IDS_LEFT_OUT] = { "sonde_agent_lustre_ids_left_out",
                       METRIC_GAUGE,
                       "Job ids not shown because others have moved more: of their target, beyond "
                       "--lustre.max-ids, or of all, beyond what an answer can hold.",
                       { NULL } },
    [IDS_MERGED] = { "sonde_agent_lustre_ids_merged",
                     METRIC_GAUGE,
                     "Entries added to an earlier one of the same target and job id.",
                     { NULL } },
    [LINES_LEFT_OUT] = { "sonde_agent_lustre_lines_left_out",
                         METRIC_GAUGE,
                         "Lines of job_stats that could not be read.",
                         { NULL } },
    [DURATION] = { "sonde_agent_lustre_look_duration_seconds",
                   METRIC_GAUGE,
                   "How long the last look at all targets took.",
                   { NULL } },
    [BYTES_READ] = { "sonde_agent_lustre_read_bytes",
                     METRIC_GAUGE,
                     "Text of job_stats that was read in the last look.",
                     { NULL } },
};

enum known {
    IF_THERE,
    IF_ANY,   /* of none there is no size */
    IF_SIZED, /* only where Lustre counts by size */
};

#define IO(family, io, number, known)                                                              \
    {                                                                                              \
        family, offsetof(struct lustre_id_use, io), offsetof(struct lustre_io, number), known      \
    }

static const struct {
    size_t family;
    size_t io;     /* offset of a struct lustre_io in struct lustre_id_use */
    size_t number; /* offset of a uint64_t in that */
    enum known known;
} numbers[] = {
    IO(READ_SAMPLES, read, samples, IF_THERE),     IO(READ_LEAST, read, least_bytes, IF_ANY),
    IO(READ_MOST, read, most_bytes, IF_ANY),       IO(READ_BYTES, read, bytes, IF_THERE),
    IO(READ_SMALL, read, small_samples, IF_SIZED), IO(WRITE_SAMPLES, write, samples, IF_THERE),
    IO(WRITE_LEAST, write, least_bytes, IF_ANY),   IO(WRITE_MOST, write, most_bytes, IF_ANY),
    IO(WRITE_BYTES, write, bytes, IF_THERE),       IO(WRITE_SMALL, write, small_samples, IF_SIZED),
};

#define VALUES(use, of)                                                                            \
    (of)->is_mdt ? STR("mdt") : STR("ost"), symbols_get(&(use)->symbols, (of)->target),            \
        symbols_get(&(use)->symbols, (of)->id)

static bool is_known(const struct lustre_io *io, enum known known)
{
    if (!io->is_there)
        return false;
    return known == IF_ANY ? io->samples > 0 : known == IF_SIZED ? io->has_sizes : true;
}

static void write_numbers(const struct lustre_use *use, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(numbers); k++) {
        metric_begin(writer, numbers[k].family);
        for (size_t i = 0; i < use->n; i++) {
            const char *of = (const char *)&use->id[i];
            const struct lustre_io *io = (const void *)(of + numbers[k].io);
            const void *number = (const char *)io + numbers[k].number;

            if (is_known(io, numbers[k].known))
                metric_u64(writer, METRIC_VALUES(VALUES(use, &use->id[i])),
                           *(const uint64_t *)number);
        }
    }
}

/* From 2.15 on Lustre lists them among the others as well; who adds those up wants metadata. */
static bool is_io(struct str operation)
{
    return str_eq(operation, STR("read")) || str_eq(operation, STR("write"));
}

static void write_operations(const struct lustre_use *use, struct metric_writer *writer)
{
    metric_begin(writer, OPERATIONS);
    for (size_t i = 0; i < use->n; i++) {
        const struct lustre_id_use *id = &use->id[i];
        const struct lustre_operation *operations = use->operation + id->first_operation;

        for (size_t k = 0; k < id->n_operations; k++) {
            struct str name = symbols_get(&use->symbols, operations[k].name);

            if (!is_io(name))
                metric_u64(writer, METRIC_VALUES(VALUES(use, id), name), operations[k].samples);
        }
    }
}

static void write_look(const struct lustre_use *use, struct metric_writer *writer)
{
    const struct {
        size_t family;
        uint64_t number;
    } rows[] = {
        { TARGETS, use->n_targets },
        { UNREAD, use->n_unread },
        { IDS, use->n },
        { IDS_LEFT_OUT, use->ids_left_out },
        { IDS_MERGED, use->ids_merged },
        { LINES_LEFT_OUT, use->lines_left_out },
        { BYTES_READ, use->bytes_read },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        metric_begin(writer, rows[i].family);
        metric_u64(writer, NULL, rows[i].number);
    }
    metric_begin(writer, DURATION);
    metric_double(writer, NULL, use->seconds);
}

static void collect(const struct usage *usage, struct metric_writer *writer)
{
    const struct lustre_use *use = usage->lustre;
    bool has_targets = use && use->n_targets;

    metric_begin(writer, UP);
    if (usage->lustre_up >= 0)
        metric_u64(writer, NULL, usage->lustre_up > 0);
    if (!has_targets)
        return;
    write_look(use, writer);
    write_numbers(use, writer);
    write_operations(use, writer);
    writer->folded += use->ids_left_out;
}

const struct usage_collector usage_collector_lustre = {
    .name = "lustre",
    .help = "what job ids do on the Lustre targets of this server, those that move most",
    .needs = USAGE_LUSTRE,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
