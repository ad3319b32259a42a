/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of the exporter about itself. */
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
    STORE_UP,
    STORE_COMMITS,
    STORE_RECORDS,
    STORE_UNCHANGED,
    STORE_SKIPPED,
    STORE_REPLACED,
    STORE_ERRORS,
    STORE_WRITE_SECONDS,
    STORE_BEHIND,
    STORE_BYTES,
    STORE_RUNS,
    STORE_RETENTION,
    INGEST_POSTS,
    SUMMARIES_UP,
    SUMMARIES,
    MAIL_DRAIN_UP,
    HISTORY_UP,
    HISTORY_QUESTIONS,
    HISTORY_RECORDS,
    HISTORY_SINCE,
    HISTORY_UNTIL,
    HISTORY_COMPLETE,
    RECONCILE_LAST_RUN,
    RECONCILE_DIFFERENCES,
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
                    "1 if the last poll of this kind succeeded and the source answers, else 0.",
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
    [STORE_UP] = { "sonde_store_up",
                   METRIC_GAUGE,
                   "1 if the last write into the store of jobs succeeded, else 0: the log says "
                   "why.",
                   { NULL } },
    [STORE_COMMITS] = { "sonde_store_commits_total",
                        METRIC_COUNTER,
                        "Transactions that were written into the store.",
                        { NULL } },
    [STORE_RECORDS] = { "sonde_store_records_total",
                        METRIC_COUNTER,
                        "Records that were written into the store: of jobs, and of what agents "
                        "have "
                        "counted of them.",
                        { "record" } },
    [STORE_UNCHANGED] = { "sonde_store_unchanged_jobs_total",
                          METRIC_COUNTER,
                          "Jobs that were seen and had nothing new to be written.",
                          { NULL } },
    [STORE_SKIPPED] = { "sonde_store_skipped_jobs_total",
                        METRIC_COUNTER,
                        "Jobs that were seen and not recorded, as the source does not tell when "
                        "they were submitted.",
                        { NULL } },
    [STORE_REPLACED] = { "sonde_store_replaced_looks_total",
                         METRIC_COUNTER,
                         "Looks at jobs or nodes that were never written, as a newer one came "
                         "before "
                         "the store was ready.",
                         { NULL } },
    [STORE_ERRORS] = { "sonde_store_errors_total",
                       METRIC_COUNTER,
                       "Writes into the store that failed, by reason.",
                       { "reason" } },
    [STORE_WRITE_SECONDS] = { "sonde_store_write_seconds",
                              METRIC_GAUGE,
                              "What the last transaction took.",
                              { NULL } },
    [STORE_BEHIND] = { "sonde_store_behind_seconds",
                       METRIC_GAUGE,
                       "How long the oldest of what waits to be written has waited.",
                       { NULL } },
    [STORE_BYTES] = { "sonde_store_size_bytes",
                      METRIC_GAUGE,
                      "Size of the store's file and of its log.",
                      { NULL } },
    [STORE_RUNS] = { "sonde_store_runs",
                     METRIC_GAUGE,
                     "Runs of jobs that are in the store.",
                     { NULL } },
    [STORE_RETENTION] = { "sonde_store_retention_paused",
                          METRIC_GAUGE,
                          "1 while recorded jobs are not deleted by age because the clock is in "
                          "doubt: it jumped, differs from slurmctld's or is far ahead of the "
                          "newest "
                          "record, and the log says which. Else 0.",
                          { NULL } },
    [INGEST_POSTS] = { "sonde_ingest_posts_total",
                       METRIC_COUNTER,
                       "Posts of agents that were taken, and that were refused.",
                       { "outcome" } },
    [SUMMARIES_UP] = { "sonde_summaries_up",
                       METRIC_GAUGE,
                       "1 if what finished jobs used could last be asked of Prometheus and kept, "
                       "else 0: the log says why.",
                       { NULL } },
    [SUMMARIES] = { "sonde_summaries_total",
                    METRIC_COUNTER,
                    "Finished jobs whose use was asked of Prometheus: written, empty if it knew "
                    "nothing of them, failed if it could not tell.",
                    { "outcome" } },
    [MAIL_DRAIN_UP] = { "sonde_mail_drain_up",
                        METRIC_GAUGE,
                        "1 while the program runs that sends the mails of jobs, else 0: the log "
                        "says why.",
                        { NULL } },
    [HISTORY_UP] = { "sonde_history_up",
                     METRIC_GAUGE,
                     "1 if slurmdbd has answered the last question for jobs, else 0.",
                     { NULL } },
    [HISTORY_QUESTIONS] = { "sonde_history_questions_total",
                            METRIC_COUNTER,
                            "Questions to slurmdbd, by outcome.",
                            { "outcome" } },
    [HISTORY_RECORDS] = { "sonde_history_records_total",
                          METRIC_COUNTER,
                          "Jobs that slurmdbd told of: those that were read, and those that could "
                          "not be.",
                          { "outcome" } },
    [HISTORY_SINCE] = { "sonde_history_since_timestamp_seconds",
                        METRIC_GAUGE,
                        "From when on the store has all that slurmdbd has.",
                        { NULL } },
    [HISTORY_UNTIL] = { "sonde_history_until_timestamp_seconds",
                        METRIC_GAUGE,
                        "Until when the store has all that slurmdbd has.",
                        { NULL } },
    [HISTORY_COMPLETE] = { "sonde_history_complete",
                           METRIC_GAUGE,
                           "1 if it goes back as far as it shall.",
                           { NULL } },
    [RECONCILE_LAST_RUN] = { "sonde_reconcile_last_run_timestamp_seconds",
                             METRIC_GAUGE,
                             "When sonde admin reconcile last compared the store with slurmdbd.",
                             { NULL } },
    [RECONCILE_DIFFERENCES] = { "sonde_reconcile_differences",
                                METRIC_GAUGE,
                                "Differences that it found, by comparison (runs, usage, ended), "
                                "with a reason (explained true) or without.",
                                { "comparison", "explained" } },
#include "collector/program.inc"
};

const size_t n_self_families = COUNT(self_families);

static void source_sample(const struct self_cluster *cluster, struct metric_writer *writer,
                          size_t family, int kind)
{
    const typeof(cluster->stats.kinds[0]) *stats = &cluster->stats.kinds[kind];
    const struct str values[2] = { str_of(cluster->sources[kind]), str_of(kind_name(kind)) };

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

static void collect_info(const struct self_cluster *cluster, struct metric_writer *writer,
                         size_t family)
{
    const struct source_about *about = &cluster->stats.about;

    (void)family;
    metric_u64(writer,
               METRIC_VALUES(str_of(cluster->sources[KIND_JOBS]), str_of(about->door),
                             str_of(about->interface), str_of(about->reason)),
               1);
}

static void collect_token(const struct self_cluster *cluster, struct metric_writer *writer,
                          size_t family)
{
    (void)family;
    if (cluster->stats.about.token_expires)
        metric_u64(writer, METRIC_VALUES(str_of(cluster->sources[KIND_JOBS])),
                   (uint64_t)cluster->stats.about.token_expires);
}

static void collect_source(const struct self_cluster *cluster, struct metric_writer *writer,
                           size_t family)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (cluster->stats.kinds[kind].asked)
            source_sample(cluster, writer, family, kind);
}

/* What prometheus-slurm-exporter says of its looks at each kind; by family. */
#define SCRAPE_ROW(family) [(family)-JOB_SCRAPE_DURATION]
static const struct {
    enum kind kind;
    bool is_duration; /* else errors */
} scrape_rows[] = {
    SCRAPE_ROW(JOB_SCRAPE_DURATION) = { KIND_JOBS, true },
    SCRAPE_ROW(JOB_SCRAPE_ERRORS) = { KIND_JOBS, false },
    SCRAPE_ROW(JOB_SCRAPE_ERROR) = { KIND_JOBS, false },
    SCRAPE_ROW(NODE_SCRAPE_DURATION) = { KIND_NODES, true },
    SCRAPE_ROW(NODE_SCRAPE_ERROR) = { KIND_NODES, false },
    SCRAPE_ROW(DIAG_SCRAPE_DURATION) = { KIND_DIAG, true },
    SCRAPE_ROW(DIAG_SCRAPE_ERROR) = { KIND_DIAG, false },
    SCRAPE_ROW(LICENSE_SCRAPE_ERROR) = { KIND_LICENSES, false },
    SCRAPE_ROW(LIMIT_SCRAPE_DURATION) = { KIND_ASSOCIATIONS, true },
    SCRAPE_ROW(LIMIT_SCRAPE_ERROR) = { KIND_ASSOCIATIONS, false },
};

static void collect_scrape(const struct self_cluster *cluster, struct metric_writer *writer,
                           size_t family)
{
    const typeof(scrape_rows[0]) *row = &scrape_rows[family - JOB_SCRAPE_DURATION];
    const typeof(cluster->stats.kinds[0]) *stats = &cluster->stats.kinds[row->kind];
    uint64_t errors = stats->skipped;

    if (!stats->looks)
        return;
    for (size_t k = 0; k < REFRESH_REASONS && stats->errors[k].reason; k++)
        errors += stats->errors[k].count;
    if (row->is_duration)
        metric_double(writer, NULL, stats->last_seconds * 1000);
    else
        metric_u64(writer, NULL, errors);
}

static void collect_history(const struct self_cluster *cluster, struct metric_writer *writer,
                            size_t family)
{
    const struct self_history *history = &cluster->history;

    if (!cluster->has_history)
        return;
    switch (family) {
    case HISTORY_UP:
        metric_u64(writer, NULL, history->is_up);
        break;
    case HISTORY_QUESTIONS:
        metric_u64(writer, METRIC_VALUES(STR("answered")), history->questions - history->failures);
        metric_u64(writer, METRIC_VALUES(STR("failed")), history->failures);
        break;
    case HISTORY_RECORDS:
        metric_u64(writer, METRIC_VALUES(STR("read")), history->records);
        metric_u64(writer, METRIC_VALUES(STR("skipped")), history->skipped);
        break;
    case HISTORY_SINCE:
        if (history->since)
            metric_u64(writer, NULL, (uint64_t)history->since);
        break;
    case HISTORY_UNTIL:
        if (history->until)
            metric_u64(writer, NULL, (uint64_t)history->until);
        break;
    case HISTORY_COMPLETE:
        metric_u64(writer, NULL, history->is_complete);
        break;
    }
}

static void collect_reconciled(const struct self_cluster *cluster, struct metric_writer *writer,
                               size_t family)
{
    static const struct str comparisons[SELF_COMPARISONS] = { STR_INIT("runs"), STR_INIT("usage"),
                                                              STR_INIT("ended") };
    const struct self_reconciled *found = &cluster->reconciled;

    if (!found->time)
        return;
    if (family == RECONCILE_LAST_RUN) {
        metric_u64(writer, NULL, (uint64_t)found->time);
        return;
    }
    for (int i = 0; i < SELF_COMPARISONS; i++) {
        metric_u64(writer, METRIC_VALUES(comparisons[i], STR("true")), found->explained[i]);
        metric_u64(writer, METRIC_VALUES(comparisons[i], STR("false")), found->unexplained[i]);
    }
}

/* What is told of each cluster: its families stand together, whatever their number. */
static const struct {
    size_t first, last;
    void (*collect)(const struct self_cluster *cluster, struct metric_writer *writer,
                    size_t family);
} cluster_rows[] = {
    { SOURCE_INFO, SOURCE_INFO, collect_info },
    { SOURCE_TOKEN_EXPIRY, SOURCE_TOKEN_EXPIRY, collect_token },
    { SOURCE_UP, SOURCE_SKIPPED, collect_source },
    { JOB_SCRAPE_DURATION, LIMIT_SCRAPE_ERROR, collect_scrape },
    { HISTORY_UP, HISTORY_COMPLETE, collect_history },
    { RECONCILE_LAST_RUN, RECONCILE_DIFFERENCES, collect_reconciled },
};

static void collect_clusters(const struct self *self, struct metric_writer *writer)
{
    struct str const_labels = writer->const_labels;

    for (size_t row = 0; row < COUNT(cluster_rows); row++) {
        for (size_t family = cluster_rows[row].first; family <= cluster_rows[row].last; family++) {
            metric_begin(writer, family);
            for (size_t i = 0; i < self->n_clusters; i++) {
                metric_const_labels(writer, self->clusters[i].const_labels);
                cluster_rows[row].collect(&self->clusters[i], writer, family);
            }
        }
    }
    metric_const_labels(writer, const_labels);
}

static void collect_store(const struct self_store *store, struct metric_writer *writer)
{
    const struct {
        size_t family;
        double value;
    } rows[] = {
        { STORE_UP, store->is_up },
        { STORE_COMMITS, (double)store->commits },
        { STORE_UNCHANGED, (double)store->unchanged },
        { STORE_SKIPPED, (double)store->skipped },
        { STORE_REPLACED, (double)store->replaced },
        { STORE_WRITE_SECONDS, store->last_seconds },
        { STORE_BEHIND, store->behind_seconds },
        { STORE_BYTES, (double)store->bytes },
        { STORE_RUNS, (double)store->runs },
        { STORE_RETENTION, store->is_retention_paused },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        metric_begin(writer, rows[i].family);
        metric_double(writer, NULL, rows[i].value);
    }
    metric_begin(writer, STORE_RECORDS);
    metric_u64(writer, METRIC_VALUES(STR("job")), store->jobs);
    metric_u64(writer, METRIC_VALUES(STR("final")), store->finals);
    metric_begin(writer, STORE_ERRORS);
    for (size_t i = 0; i < REFRESH_REASONS && store->errors[i].reason; i++)
        metric_u64(writer, METRIC_VALUES(str_of(store->errors[i].reason)), store->errors[i].count);
    metric_begin(writer, INGEST_POSTS);
    if (store->takes_posts) {
        metric_u64(writer, METRIC_VALUES(STR("taken")), store->posts);
        metric_u64(writer, METRIC_VALUES(STR("refused")), store->posts_refused);
    }
}

static void collect_summaries(const struct self_store *store, struct metric_writer *writer)
{
    metric_begin(writer, SUMMARIES_UP);
    if (store->keeps_summaries)
        metric_u64(writer, NULL, store->is_summarising);
    metric_begin(writer, SUMMARIES);
    if (!store->keeps_summaries)
        return;
    metric_u64(writer, METRIC_VALUES(STR("written")), store->summaries);
    metric_u64(writer, METRIC_VALUES(STR("empty")), store->summaries_empty);
    metric_u64(writer, METRIC_VALUES(STR("failed")), store->summaries_failed);
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
    collect_clusters(self, writer);
    metric_begin(writer, LUSTRE_SCRAPE_OK);
    if (self->moment != SELF_NOT_ASKED)
        metric_u64(writer, NULL, self->moment == SELF_SHOWN);
    if (self->traces)
        collect_traces(self->traces, writer);
    if (self->store) {
        collect_store(self->store, writer);
        collect_summaries(self->store, writer);
    }
    metric_begin(writer, MAIL_DRAIN_UP);
    if (self->drain != SELF_NO_DRAIN)
        metric_u64(writer, NULL, self->drain == SELF_DRAIN_UP);
    program_collect(&self->program, writer, PROGRAM);
}
