/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of the options of `sonde exporter`, `sonde lustre` and `sonde up`. */
#include "cmd/exporter_options.h"

#define SETTING(member)     offsetof(struct settings, member)
#define POLL_LIMIT_OF(kind) (SETTING(poll_limit_ns) + (kind) * sizeof(int64_t))

/* Older names; of the last group of serve_options_rows. */
static const struct option exporter_log_options[] = {
    { "web.log-level", OPTION_CHOICE, SETTING(serve.log_level), "LEVEL", NULL, NULL,
      "debug info warn warning error", "Log", "An older name of --log.level." },
};
static const struct option lustre_log_options[] = {
    { "log", OPTION_CHOICE, SETTING(serve.log_level), "LEVEL", NULL, NULL,
      "ERROR WARNING INFO DEBUG TRACE", "Log",
      "As in prometheus-cluster-exporter: --log.level in capitals." },
};

static const struct option poll_options[] = {
    { "slurm.poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_JOBS), "DURATION", "10s",
      "POLL_LIMIT", NULL, "Slurm",
      "Slurm is asked at most once in this time, however many scrapers there are." },
    { "slurm.stale-limit", OPTION_DURATION, SETTING(stale_limit_ns), "DURATION", "5m", NULL, NULL,
      "Slurm",
      "While Slurm does not answer, the last values are shown until they are this old, or twice "
      "their poll limit if that is longer." },
};

static const struct option rare_poll_options[] = {
    { "slurm.shares-poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_SHARES), "DURATION", "5m",
      NULL, NULL, "Slurm", "The same for fair shares, which cost more." },
    { "slurm.associations-poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_ASSOCIATIONS),
      "DURATION", "5m", NULL, NULL, "Slurm", "The same for limits of accounts, users and QOS." },
    { "slurm.reservations-poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_RESERVATIONS),
      "DURATION", "1m", NULL, NULL, "Slurm", "The same for reservations." },
    { "slurm.licenses-poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_LICENSES), "DURATION", "30s",
      NULL, NULL, "Slurm", "The same for licences." },
    { "slurm.config-poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_CONFIG), "DURATION", "1h",
      NULL, NULL, "Slurm", "The same for Slurm's configuration, and what it hides from sonde." },
};

static const struct option clusters_options[] = {
    { "cluster.file", OPTION_LIST, SETTING(cluster_files), "FILE", NULL, NULL, NULL, "Cluster",
      "A file of settings for one of several clusters: source, slurm.*, cluster.name, jobs.* and "
      "store.*, as keys. With any such file, these clusters are shown, each with its name in the "
      "label cluster, and none other." },
};

static const struct option store_options[] = {
    { "store", OPTION_STRING, SETTING(store.url), "URL", NULL, "SONDE_STORE", NULL, "Store",
      "Keep every job that is seen in this file: sqlite:/var/lib/sonde/sonde.db. Empty: keep "
      "none." },
    { "store.interval", OPTION_DURATION, SETTING(store.interval_ns), "DURATION", "30s", NULL, NULL,
      "Store", "How often Slurm is asked for what is kept, whoever else asks." },
    { "store.history", OPTION_BOOL, SETTING(store.history.is_on), NULL, "true", NULL, NULL, "Store",
      "Complete the store from slurmdbd, by sacct." },
    { "store.history-from", OPTION_STRING, SETTING(store.history.from), "DATE", NULL, NULL, NULL,
      "Store",
      "How far back slurmdbd is asked, as 2026-01-01. Without it, all that it has is kept." },
    { "store.history-interval", OPTION_DURATION, SETTING(store.history.interval_ns), "DURATION",
      "5m", NULL, NULL, "Store", "How often it is asked for what is new." },
    { "store.history-timeout", OPTION_DURATION, SETTING(store.history.timeout_ns), "DURATION", "2m",
      NULL, NULL, "Store", "It has this long to answer one question." },
    { "ingest.token-file", OPTION_STRING, SETTING(store.token_file), "FILE", NULL, NULL, NULL,
      "Store", "Accept what jobs used from agents that send the token in this file, at /ingest." },
    { "ingest.users", OPTION_STRING, SETTING(store.ingest_users), "LIST", INGEST_USERS, NULL, NULL,
      "Store",
      "Accept it without a token from agents that these users run, by name or number, on the node "
      "that it is about; munge proves who they are. Empty: a token is needed." },
    { "ingest.munge-socket", OPTION_STRING, SETTING(store.munge_socket), "PATH", NULL, NULL, NULL,
      "Store", "The socket of munged, if not the usual one." },
    { "store.summaries", OPTION_UINT, SETTING(store.summaries_per_second), "NUMBER", "5", NULL,
      NULL, "Store",
      "With --prometheus.url: keep what each finished job used, as that Prometheus tells it, of so "
      "many jobs a second; 0: of none." },
    { "allocations.file", OPTION_STRING, SETTING(store.allocations_file), "FILE", NULL, NULL, NULL,
      "Store", "What accounts were promised of the clusters, to be compared with what they use." },
};

static const struct option report_options[] = {
    { "report.config", OPTION_STRING, SETTING(report_config), "FILE", NULL, NULL, NULL, "Reports",
      "Send the mails that sonde-mail keeps, with reports of their jobs: runs sonde report --drain "
      "--follow with this file of settings." },
};

static const struct option profile_options[] = {
    { "metrics.profile", OPTION_STRING, SETTING(profile), "NAME", NULL, NULL, NULL, "Metrics",
      "Show the metrics of another exporter under its names, in the place of the usual ones: mila "
      "(slurm_monitoring_and_reporting). ?profile=NAME asks for them once." },
    { "metrics.prefix", OPTION_STRING, SETTING(prefix), "PREFIX", NULL, NULL, NULL, "Metrics",
      "What that exporter has before the names of some: of mila its --endpoint_prefix, as "
      "beluga_." },
};

/* Of the first group of serve_options_rows. */
static const struct option port_options[] = {
    { "port", OPTION_STRING, SETTING(port), "PORT", NULL, NULL, NULL, "Web",
      "As in prometheus-cluster-exporter: short for --web.listen-address=:PORT." },
};

/* Older names; of the group of prometheus_options_rows. */
static const struct option lustre_old_options[] = {
    { "promserver", OPTION_STRING, SETTING(prometheus.url), "URL", NULL, NULL, NULL, "Prometheus",
      "As in prometheus-cluster-exporter: --prometheus.url." },
    { "timeout", OPTION_DURATION, SETTING(prometheus.timeout_ns), "SECONDS", NULL, NULL, NULL,
      "Prometheus", "Likewise: --prometheus.timeout." },
};

static const struct option lustre_options[] = {
    { "lustre.time-range", OPTION_STRING, SETTING(lustre.time_range), "RANGE", "1m", NULL, NULL,
      "Lustre",
      "What rates are taken over, like 90s, 5m or 1h: at least twice the interval at which "
      "Prometheus scrapes the Lustre servers." },
    { "lustre.matchers", OPTION_STRING, SETTING(lustre.matchers), "MATCHERS", NULL, NULL, NULL,
      "Lustre",
      "Labels that the series must have, where one Prometheus has those of several clusters: "
      "cluster=\"a\",filesystem=~\"scratch.*\"." },
    { "lustre.jobid-format", OPTION_LIST, SETTING(lustre.formats), "FORMAT", NULL, NULL, NULL,
      "Lustre",
      "How Lustre writes its job ids, as its parameter jobid_name has it: \"%j:%e:%H\". Ids that "
      "are a number, or a name and a user id with a dot between them, are understood anyway." },
};

static const struct option range_option[] = {
    { "timerange", OPTION_STRING, SETTING(lustre.time_range), "RANGE", NULL, NULL, NULL, "Lustre",
      "As in prometheus-cluster-exporter: --lustre.time-range." },
};

static const struct option trace_options[] = {
    { "trace.enabled", OPTION_BOOL, SETTING(trace.is_enabled), NULL, NULL, NULL, NULL, "Tracing",
      "Let jobs post what their processes use, as sonde run does." },
    { "trace.path", OPTION_STRING, SETTING(trace.path), "PATH", "/trace", NULL, NULL, "Tracing",
      "Where they post it, and a table of it is shown." },
    { "trace.rate", OPTION_DURATION, SETTING(trace.rate_ns), "DURATION", "10s", NULL, NULL,
      "Tracing",
      "What was posted is shown for this long, or for 2.5 times its sender's period if that is "
      "longer." },
    { "trace.open", OPTION_BOOL, SETTING(trace.is_open), NULL, NULL, NULL, NULL, "Tracing",
      "Take posts from anybody for any job. Otherwise a sender proves with munge, or with a "
      "password of --web.config.file, that the job is his." },
    { "trace.munge-socket", OPTION_STRING, SETTING(trace.munge_socket), "PATH", NULL, NULL, NULL,
      "Tracing", "Where munged listens, if not in its usual place." },
};

/* Older names of collectors' flags. */
static const struct {
    const char *name, *collector, *help;
} old_switches[] = {
    { "slurm.collect-licenses", "licenses", "An older name of --collector.licenses." },
    { "slurm.collect-diags", "diag", "An older name of --collector.diag." },
    { "slurm.collect-limits", "limits", "An older name of --collector.limits." },
};

static void add_rows(struct exporter_options *made, const struct option *rows, size_t n)
{
    memcpy(made->rows + made->n, rows, n * sizeof(*rows));
    made->n += n;
}
#define ADD_ROWS(made, rows) add_rows(made, rows, COUNT(rows))

static bool has_collector(const struct exporter_shape *shape, size_t i)
{
    /* What Slurm hides matters to both: jobs that are hidden have no owner. */
    return !shape->is_lustre ||
           (KIND_BIT(collectors[i]->kind) & (KIND_BIT(KIND_LUSTRE) | KIND_BIT(KIND_CONFIG)));
}

static void add_collectors(struct exporter_options *made, const struct exporter_shape *shape)
{
    for (size_t i = 0; collectors[i]; i++) {
        struct option row =
            serve_collector_row(collectors[i]->name, collectors[i]->help, !collectors[i]->is_off,
                                SETTING(collectors) + i * sizeof(bool), &made->texts[i]);

        if (has_collector(shape, i))
            add_rows(made, &row, 1);
    }
    for (size_t i = 0; i < COUNT(old_switches) && !shape->is_lustre; i++) {
        size_t of = (size_t)collector_find(str_of(old_switches[i].collector));
        const struct option row = { .name = old_switches[i].name,
                                    .type = OPTION_BOOL,
                                    .offset = SETTING(collectors) + of * sizeof(bool),
                                    .group = "Collectors",
                                    .help = old_switches[i].help };

        add_rows(made, &row, 1);
    }
}

void exporter_options_make(struct exporter_options *made, const struct exporter_shape *shape)
{
    const struct option matcher = prometheus_matcher_row(SETTING(matchers));

    if (shape->is_lustre)
        ADD_ROWS(made, port_options);
    serve_options_rows(SETTING(serve), shape->address, shape->connections, made->rows + made->n);
    made->n += SERVE_OPTIONS;
    if (shape->is_lustre)
        ADD_ROWS(made, lustre_log_options);
    else
        ADD_ROWS(made, exporter_log_options);
    prometheus_options_rows(SETTING(prometheus), made->rows + made->n);
    made->n += PROMETHEUS_OPTIONS;
    if (shape->is_lustre)
        ADD_ROWS(made, lustre_old_options);
    else
        add_rows(made, &matcher, 1);
    ADD_ROWS(made, lustre_options);
    if (shape->is_lustre)
        ADD_ROWS(made, range_option);
    source_options_rows(SETTING(own.source), made->rows + made->n);
    made->n += SOURCE_OPTIONS;
    ADD_ROWS(made, poll_options);
    if (!shape->is_lustre) {
        ADD_ROWS(made, rare_poll_options);
        cluster_options_rows(SETTING(own), made->rows + made->n);
        made->n += CLUSTER_OPTIONS;
        ADD_ROWS(made, clusters_options);
        ADD_ROWS(made, store_options);
        ADD_ROWS(made, report_options);
        ADD_ROWS(made, profile_options);
        ADD_ROWS(made, trace_options);
    }
    add_collectors(made, shape);
    if (shape->hooks)
        shape->hooks->make_options(made);
}

static size_t end_of_group(const struct exporter_options *made, const char *group)
{
    size_t i = made->n;

    while (i > 0 && strcmp(made->rows[i - 1].group, group) != 0)
        i--;
    return i ? i : made->n;
}

void exporter_options_add(struct exporter_options *made, const struct option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = end_of_group(made, rows[i].group);

        memmove(made->rows + at + 1, made->rows + at, (made->n - at) * sizeof(*rows));
        made->rows[at] = rows[i];
        made->n++;
    }
}

struct option *exporter_options_row(struct exporter_options *made, const char *name)
{
    struct option *row = made->rows;

    while (strcmp(row->name, name) != 0)
        row++;
    return row;
}

static bool is_of_store(const struct option *row)
{
    return (row->offset - SETTING(store) < sizeof(((struct settings *)NULL)->store) &&
            row->offset != SETTING(store.url)) ||
           str_starts(str_of(row->name), STR("store."));
}

static bool is_of_cluster(const struct option *row)
{
    return row->offset - SETTING(own) < sizeof(((struct settings *)NULL)->own);
}

static const char *find_given(const struct exporter_options *made,
                              bool (*is_meant)(const struct option *row))
{
    for (size_t i = 0; i < made->n; i++)
        if (made->is_given[i] && is_meant(&made->rows[i]))
            return made->rows[i].name;
    return NULL;
}

const char *exporter_options_of_store(const struct exporter_options *made)
{
    return find_given(made, is_of_store);
}

const char *exporter_options_of_cluster(const struct exporter_options *made)
{
    return find_given(made, is_of_cluster);
}
