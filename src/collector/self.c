/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collector/self.h"

enum {
    SOURCE_INFO,
    SOURCE_TOKEN_EXPIRY,
    SOURCE_UP,
    SOURCE_AGE,
    SOURCE_DURATION,
    SOURCE_ERRORS,
    SOURCE_WARNINGS,
    SOURCE_BYTES,
    SOURCE_SKIPPED,
    JOB_SCRAPE_DURATION,
    JOB_SCRAPE_ERRORS,
    JOB_SCRAPE_ERROR,
    NODE_SCRAPE_DURATION,
    NODE_SCRAPE_ERROR,
    DIAG_SCRAPE_DURATION,
    DIAG_SCRAPE_ERROR,
    LICENSE_SCRAPE_ERROR,
    LIMIT_SCRAPE_DURATION,
    LIMIT_SCRAPE_ERROR,
    LUSTRE_SCRAPE_OK,
    TRACE_SENDERS_NOW,
    TRACE_POSTS,
    TRACE_REFUSED,
    TRACE_DISPLACED,
    PROGRAM,
};

const struct family self_families[] = {
    [SOURCE_INFO] = { "sonde_source_info",
                      METRIC_GAUGE,
                      "Always 1; the labels tell which door into Slurm is taken, which version of "
                      "it, and why that one.",
                      { "source", "door", "interface", "reason" } },
    [SOURCE_TOKEN_EXPIRY] = { "sonde_source_token_expiry_timestamp_seconds",
                              METRIC_GAUGE,
                              "When the token for slurmrestd expires.",
                              { "source" } },
    [SOURCE_UP] = { "sonde_source_up",
                    METRIC_GAUGE,
                    "1 if the last look at this kind of facts succeeded, else 0.",
                    { "source", "kind" } },
    [SOURCE_AGE] = { "sonde_source_age_seconds",
                     METRIC_GAUGE,
                     "Seconds since Slurm was asked for what is shown of this kind, or was last "
                     "shown.",
                     { "source", "kind" } },
    [SOURCE_DURATION] = { "sonde_source_refresh_duration_seconds",
                          METRIC_HISTOGRAM,
                          "How long looks at this kind of facts took, rendering included, whether "
                          "they succeeded or not.",
                          { "source", "kind" } },
    [SOURCE_ERRORS] = { "sonde_source_errors_total",
                        METRIC_COUNTER,
                        "Looks that failed, by reason.",
                        { "source", "kind", "reason" } },
    [SOURCE_WARNINGS] = { "sonde_source_warnings_total",
                          METRIC_COUNTER,
                          "Looks that succeeded with a warning: a Slurm command wrote to standard "
                          "error, or sonde found data hidden from its user, or no associations.",
                          { "source", "kind" } },
    [SOURCE_BYTES] = { "sonde_source_read_bytes_total",
                       METRIC_COUNTER,
                       "Bytes of Slurm's answers in looks that succeeded.",
                       { "source", "kind" } },
    [SOURCE_SKIPPED] = { "sonde_source_skipped_records_total",
                         METRIC_COUNTER,
                         "Records of Slurm's answers that could not be read and were left out.",
                         { "source", "kind" } },
    [JOB_SCRAPE_DURATION] = { "slurm_job_scrape_duration",
                              METRIC_GAUGE,
                              "Milliseconds that the last look at the jobs took.",
                              { NULL } },
    [JOB_SCRAPE_ERRORS] = { "job_scrape_errors",
                            METRIC_COUNTER,
                            "Looks at the jobs that failed, and jobs that could not be read.",
                            { NULL } },
    [JOB_SCRAPE_ERROR] = { "slurm_job_scrape_error",
                           METRIC_COUNTER,
                           "The same as job_scrape_errors, under the name that the manual of "
                           "prometheus-slurm-exporter has.",
                           { NULL } },
    [NODE_SCRAPE_DURATION] = { "slurm_node_scrape_duration",
                               METRIC_GAUGE,
                               "Milliseconds that the last look at the nodes took.",
                               { NULL } },
    [NODE_SCRAPE_ERROR] = { "slurm_node_scrape_error",
                            METRIC_COUNTER,
                            "Looks at the nodes that failed, and nodes that could not be read.",
                            { NULL } },
    [DIAG_SCRAPE_DURATION] = { "slurm_diag_scrape_duration",
                               METRIC_GAUGE,
                               "Milliseconds that the last look at the scheduler's statistics "
                               "took.",
                               { NULL } },
    [DIAG_SCRAPE_ERROR] = { "slurm_diag_scrape_error",
                            METRIC_COUNTER,
                            "Looks at the scheduler's statistics that failed.",
                            { NULL } },
    [LICENSE_SCRAPE_ERROR] = { "slurm_lic_scrape_error",
                               METRIC_COUNTER,
                               "Looks at the licences that failed, and licences that could not be "
                               "read.",
                               { NULL } },
    [LIMIT_SCRAPE_DURATION] = { "slurm_limit_scrape_duration",
                                METRIC_GAUGE,
                                "Milliseconds that the last look at the limits took.",
                                { NULL } },
    [LIMIT_SCRAPE_ERROR] = { "slurm_account_collect_error",
                             METRIC_COUNTER,
                             "Looks at the limits that failed, and associations that could not be "
                             "read.",
                             { NULL } },
    [LUSTRE_SCRAPE_OK] = { "cluster_exporter_scrape_ok",
                           METRIC_GAUGE,
                           "Indicates if the scrape of the exporter was successful or not: 0 where "
                           "what is told of Lustre is missing from this answer.",
                           { NULL } },
    [TRACE_SENDERS_NOW] = { "sonde_trace_senders",
                            METRIC_GAUGE,
                            "Processes that have posted what their job uses and are still fresh.",
                            { NULL } },
    [TRACE_POSTS] = { "sonde_trace_posts_total",
                      METRIC_COUNTER,
                      "Posts of traced jobs that were taken.",
                      { NULL } },
    [TRACE_REFUSED] = { "sonde_trace_refused_total",
                        METRIC_COUNTER,
                        "Posts of traced jobs that were refused, by reason.",
                        { "reason" } },
    [TRACE_DISPLACED] = { "sonde_trace_displaced_total",
                          METRIC_COUNTER,
                          "Senders dropped while they were fresh, to make room for those of "
                          "another "
                          "user.",
                          { NULL } },
#include "collector/program.inc"
};

const size_t n_self_families = COUNT(self_families);

static void source_sample(const struct self *self, struct metric_writer *writer, size_t family,
                          const struct str values[2], int kind)
{
    const typeof(self->stats->kinds[0]) *stats = &self->stats->kinds[kind];

    switch (family) {
    case SOURCE_UP:
        metric_u64(writer, values, stats->up);
        break;
    case SOURCE_AGE:
        if (stats->age_seconds >= 0)
            metric_double(writer, values, stats->age_seconds);
        break;
    case SOURCE_DURATION:
        metric_histogram(writer, values, histogram_view(&stats->durations));
        break;
    case SOURCE_ERRORS:
        for (size_t i = 0; i < REFRESH_REASONS && stats->errors[i].reason; i++)
            metric_u64(writer, METRIC_VALUES(values[0], values[1], str_of(stats->errors[i].reason)),
                       stats->errors[i].count);
        break;
    case SOURCE_WARNINGS:
        metric_u64(writer, values, stats->warnings);
        break;
    case SOURCE_BYTES:
        metric_u64(writer, values, stats->bytes);
        break;
    case SOURCE_SKIPPED:
        metric_u64(writer, values, stats->skipped);
        break;
    }
}

static void collect_about(const struct self *self, struct metric_writer *writer)
{
    const struct source_about *about = &self->stats->about;

    metric_begin(writer, SOURCE_INFO);
    metric_u64(writer,
               METRIC_VALUES(str_of(self->sources[KIND_JOBS]), str_of(about->door),
                             str_of(about->interface), str_of(about->reason)),
               1);
    metric_begin(writer, SOURCE_TOKEN_EXPIRY);
    if (about->token_expires)
        metric_u64(writer, METRIC_VALUES(str_of(self->sources[KIND_JOBS])),
                   (uint64_t)about->token_expires);
}

static void collect_source(const struct self *self, struct metric_writer *writer)
{
    for (size_t family = SOURCE_UP; family <= SOURCE_SKIPPED; family++) {
        metric_begin(writer, family);
        for (int kind = 0; kind < KINDS; kind++)
            if (self->stats->kinds[kind].asked)
                source_sample(self, writer, family,
                              METRIC_VALUES(str_of(self->sources[kind]), str_of(kind_name(kind))),
                              kind);
    }
}

/* What prometheus-slurm-exporter says of its looks at each kind. */
static const struct {
    size_t family;
    enum kind kind;
    bool is_duration; /* else errors */
} scrape_rows[] = {
    { JOB_SCRAPE_DURATION, KIND_JOBS, true },
    { JOB_SCRAPE_ERRORS, KIND_JOBS, false },
    { JOB_SCRAPE_ERROR, KIND_JOBS, false },
    { NODE_SCRAPE_DURATION, KIND_NODES, true },
    { NODE_SCRAPE_ERROR, KIND_NODES, false },
    { DIAG_SCRAPE_DURATION, KIND_DIAG, true },
    { DIAG_SCRAPE_ERROR, KIND_DIAG, false },
    { LICENSE_SCRAPE_ERROR, KIND_LICENSES, false },
    { LIMIT_SCRAPE_DURATION, KIND_ASSOCIATIONS, true },
    { LIMIT_SCRAPE_ERROR, KIND_ASSOCIATIONS, false },
};

static void collect_scrapes(const struct self *self, struct metric_writer *writer)
{
    for (size_t i = 0; i < COUNT(scrape_rows); i++) {
        const typeof(self->stats->kinds[0]) *stats = &self->stats->kinds[scrape_rows[i].kind];
        uint64_t errors = stats->skipped;

        if (!stats->looks)
            continue;
        for (size_t k = 0; k < REFRESH_REASONS && stats->errors[k].reason; k++)
            errors += stats->errors[k].count;
        metric_begin(writer, scrape_rows[i].family);
        if (scrape_rows[i].is_duration)
            metric_double(writer, NULL, stats->last_seconds * 1000);
        else
            metric_u64(writer, NULL, errors);
    }
}

static void collect_traces(const struct trace_stats *traces, struct metric_writer *writer)
{
    metric_begin(writer, TRACE_SENDERS_NOW);
    metric_u64(writer, NULL, traces->senders);
    metric_begin(writer, TRACE_POSTS);
    metric_u64(writer, NULL, traces->posts);
    metric_begin(writer, TRACE_REFUSED);
    for (size_t i = 0; i < TRACE_REFUSALS; i++)
        metric_u64(writer, METRIC_VALUES(str_of(trace_refusal_words[i])), traces->refused[i]);
    metric_begin(writer, TRACE_DISPLACED);
    metric_u64(writer, NULL, traces->displaced);
}

void self_collect(const struct self *self, struct metric_writer *writer)
{
    collect_about(self, writer);
    collect_source(self, writer);
    collect_scrapes(self, writer);
    metric_begin(writer, LUSTRE_SCRAPE_OK);
    if (self->moment != SELF_NOT_ASKED)
        metric_u64(writer, NULL, self->moment == SELF_SHOWN);
    if (self->traces)
        collect_traces(self->traces, writer);
    program_collect(&self->program, writer, PROGRAM);
}
