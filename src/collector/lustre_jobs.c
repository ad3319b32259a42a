/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each job does on Lustre: how much it moves, in pieces of which size, and what it asks of
 * metadata servers. */
#include "base/num.h"
#include "collector/collector.h"
#include "collector/known.h"
#include "collector/top.h"

#include <math.h>

enum {
    READ_BYTES,
    WRITE_BYTES,
    READS,
    WRITES,
    OPERATIONS,
    OPENS,
    CLOSES,
    READ_MEAN,
    WRITE_MEAN,
    SMALL_RATIO,
};

enum { MOST_JOBS = 1000 };

#define PAST_THE_CEILING                                                                           \
    " Of more than 1000 jobs, those that move most bytes, do most I/O or most operations are "     \
    "told, and the rest is added up under the job id other."

static const struct family families[] = {
    [READ_BYTES] = { "sonde_job_lustre_read_bytes_per_second",
                     METRIC_GAUGE,
                     "Bytes per second that the job reads from Lustre." PAST_THE_CEILING,
                     { "job_id" } },
    [WRITE_BYTES] = { "sonde_job_lustre_write_bytes_per_second",
                      METRIC_GAUGE,
                      "Bytes per second that the job writes to Lustre." PAST_THE_CEILING,
                      { "job_id" } },
    [READS] = { "sonde_job_lustre_reads_per_second",
                METRIC_GAUGE,
                "Reads per second of the job, as Lustre's servers see them." PAST_THE_CEILING,
                { "job_id" } },
    [WRITES] = { "sonde_job_lustre_writes_per_second",
                 METRIC_GAUGE,
                 "Writes per second of the job, as Lustre's servers see them." PAST_THE_CEILING,
                 { "job_id" } },
    [OPERATIONS] = { "sonde_job_lustre_operations_per_second",
                     METRIC_GAUGE,
                     "Operations per second of the job that Lustre's servers count by kind: open, "
                     "close, getattr and the like." PAST_THE_CEILING,
                     { "job_id" } },
    [OPENS] = { "sonde_job_lustre_opens_per_second",
                METRIC_GAUGE,
                "Files per second that the job opens on Lustre." PAST_THE_CEILING,
                { "job_id" } },
    [CLOSES] = { "sonde_job_lustre_closes_per_second",
                 METRIC_GAUGE,
                 "Files per second that the job closes on Lustre." PAST_THE_CEILING,
                 { "job_id" } },
    [READ_MEAN] = { "sonde_job_lustre_read_mean_bytes",
                    METRIC_GAUGE,
                    "Mean size of the job's reads from Lustre.",
                    { "job_id" } },
    [WRITE_MEAN] = { "sonde_job_lustre_write_mean_bytes",
                     METRIC_GAUGE,
                     "Mean size of the job's writes to Lustre.",
                     { "job_id" } },
    [SMALL_RATIO] = { "sonde_job_lustre_small_io_ratio",
                      METRIC_GAUGE,
                      "Share of the job's reads and writes that are of at most 32 KiB. An estimate "
                      "where Lustre does not count sizes (before 2.16): there all of a target's "
                      "are taken for small if their mean is.",
                      { "job_id" } },
};

static const struct {
    size_t family;
    enum lustre_rate rate;
} rates[] = {
    { READ_BYTES, LUSTRE_READ_BYTES }, { WRITE_BYTES, LUSTRE_WRITE_BYTES }, { READS, LUSTRE_READS },
    { WRITES, LUSTRE_WRITES },         { OPERATIONS, LUSTRE_OPERATIONS },   { OPENS, LUSTRE_OPENS },
    { CLOSES, LUSTRE_CLOSES },
};

static const struct {
    size_t family;
    enum lustre_rate bytes, pieces;
} means[] = {
    { READ_MEAN, LUSTRE_READ_BYTES, LUSTRE_READS },
    { WRITE_MEAN, LUSTRE_WRITE_BYTES, LUSTRE_WRITES },
};

/* All jobs, and those of them that are shown on their own. */
struct rows {
    const struct lustre_id **job;
    bool *is_top;
    size_t n;
};

/* Of what was not told there was none. */
static double amount(const struct lustre_id *job, enum lustre_rate rate)
{
    return isnan(job->per_second[rate]) ? 0 : job->per_second[rate];
}

static double bytes_moved(const struct lustre_id *job)
{
    return amount(job, LUSTRE_READ_BYTES) + amount(job, LUSTRE_WRITE_BYTES);
}

static double io_done(const struct lustre_id *job)
{
    return amount(job, LUSTRE_READS) + amount(job, LUSTRE_WRITES);
}

static double operations_done(const struct lustre_id *job)
{
    return amount(job, LUSTRE_OPERATIONS);
}

/* What a job can be large in. One that moves few bytes may be the one that everybody waits for. */
static double (*const sizes[])(const struct lustre_id *job) = { bytes_moved, io_done,
                                                                operations_done };

/* The rows, by one of the sizes. */
struct order {
    const struct rows *rows;
    double (*size)(const struct lustre_id *job);
};

static int larger_first(const void *ctx, size_t a, size_t b)
{
    const struct order *order = ctx;
    const struct lustre_id *x = order->rows->job[a], *y = order->rows->job[b];
    double more = order->size(x), less = order->size(y);

    if (more != less)
        return more > less ? -1 : 1;
    return (x->job_id > y->job_id) - (x->job_id < y->job_id);
}

/* Of each size so many that all together are within the ceiling. */
static void pick_top(struct rows *rows)
{
    bool *is_top = heap_array(rows->n, sizeof(*is_top));

    memset(rows->is_top, rows->n <= MOST_JOBS, rows->n);
    for (size_t i = 0; i < COUNT(sizes) && rows->n > MOST_JOBS; i++) {
        const struct order order = { rows, sizes[i] };

        top_pick(rows->n, MOST_JOBS / COUNT(sizes), larger_first, &order, is_top);
        for (size_t k = 0; k < rows->n; k++)
            rows->is_top[k] |= is_top[k];
    }
    free(is_top);
}

static void rows_init(struct rows *rows, const struct lustre *lustre)
{
    *rows = (struct rows){
        .job = heap_array(lustre->n, sizeof(*rows->job)),
        .is_top = heap_array(lustre->n, sizeof(*rows->is_top)),
    };
    for (size_t i = 0; i < lustre->n; i++)
        if (lustre->id[i].who == LUSTRE_JOB)
            rows->job[rows->n++] = &lustre->id[i];
    pick_top(rows);
}

static void rows_free(struct rows *rows)
{
    free(rows->job);
    free(rows->is_top);
}

/* A sample of the family that has been begun, unless it is not known. */
static void write_job(const struct lustre_id *job, double value, struct metric_writer *writer)
{
    char digits[NUM_U64_MAX];

    known_write_double(
        writer, METRIC_VALUES(((struct str){ digits, num_put_u64(digits, job->job_id) })), value);
}

static void write_rate(const struct rows *rows, enum lustre_rate rate, struct metric_writer *writer)
{
    double other = 0;
    size_t n_others = 0;

    for (size_t i = 0; i < rows->n; i++) {
        double value = rows->job[i]->per_second[rate];

        if (rows->is_top[i]) {
            write_job(rows->job[i], value, writer);
        } else if (!isnan(value)) {
            other += value;
            n_others++;
        }
    }
    if (n_others)
        metric_double(writer, METRIC_VALUES(STR("other")), other);
    writer->folded += n_others;
}

static double mean_of(const struct lustre_id *job, enum lustre_rate bytes, enum lustre_rate pieces)
{
    return job->per_second[pieces] > 0 ? job->per_second[bytes] / job->per_second[pieces] : NAN;
}

/* Each rate is asked for on its own, and a scrape may lie between two of them: small ones may seem
 * to be more than all. */
static double small_ratio(const struct lustre_id *job)
{
    double all = amount(job, LUSTRE_READS) + amount(job, LUSTRE_WRITES);
    double small = amount(job, LUSTRE_SMALL_READS) + amount(job, LUSTRE_SMALL_WRITES);

    return all > 0 ? fmin(small / all, 1) : NAN;
}

static void write_means(const struct rows *rows, struct metric_writer *writer)
{
    for (size_t k = 0; k < COUNT(means); k++) {
        metric_begin(writer, means[k].family);
        for (size_t i = 0; i < rows->n; i++)
            if (rows->is_top[i])
                write_job(rows->job[i], mean_of(rows->job[i], means[k].bytes, means[k].pieces),
                          writer);
    }
    metric_begin(writer, SMALL_RATIO);
    for (size_t i = 0; i < rows->n; i++)
        if (rows->is_top[i])
            write_job(rows->job[i], small_ratio(rows->job[i]), writer);
}

static void collect(const struct section *section, struct metric_writer *writer)
{
    struct rows rows;

    if (!section->lustre.has_details)
        return;
    rows_init(&rows, &section->lustre);
    for (size_t k = 0; k < COUNT(rates); k++) {
        metric_begin(writer, rates[k].family);
        write_rate(&rows, rates[k].rate, writer);
    }
    write_means(&rows, writer);
    rows_free(&rows);
}

const struct collector collector_lustre_jobs = {
    .name = "lustre_jobs",
    .help = "what each job does on Lustre: throughput, operations, sizes",
    .kind = KIND_LUSTRE,
    .is_off = true,
    .is_of_details = true,
    .families = families,
    .n_families = COUNT(families),
    .collect = collect,
};
