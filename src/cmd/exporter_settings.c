/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporter_settings.h"

#include "base/num.h"
#include "base/quote.h"
#include "collector/self.h"
#include "model/units.h"
#include "source/lustre_ids.h"
#include "store/store.h"

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
      "Store",
      "A file with the token by which agents hand in what jobs have used, at /ingest. Without it, "
      "nothing is taken." },
    { "allocations.file", OPTION_STRING, SETTING(store.allocations_file), "FILE", NULL, NULL, NULL,
      "Store", "What accounts were promised of the clusters, to be compared with what they use." },
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

/* Kinds that have a poll limit of their own. */
static const unsigned asked_rarely = KIND_BIT(KIND_SHARES) | KIND_BIT(KIND_ASSOCIATIONS) |
                                     KIND_BIT(KIND_RESERVATIONS) | KIND_BIT(KIND_LICENSES) |
                                     KIND_BIT(KIND_CONFIG);

/* What jobs post must not be older than the scrape that shows it. */
static const int64_t traces_poll_limit_ns = NS_PER_SEC;

/* Adding up what was used of them costs some ten milliseconds, and nobody plots it by the second.
 */
static const int64_t allocations_poll_limit_ns = 60 * NS_PER_SEC;

/* The rows, and the texts of those that are made of the table of collectors. */
struct made_options {
    struct option rows[SERVE_OPTIONS + SOURCE_OPTIONS + PROMETHEUS_OPTIONS + CLUSTER_OPTIONS +
                       COLLECTORS_MAX + 50];
    size_t n;
    struct serve_collector_texts texts[COLLECTORS_MAX];
};

static void add_rows(struct made_options *made, const struct option *rows, size_t n)
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

static void add_collectors(struct made_options *made, const struct exporter_shape *shape)
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

static void make_options(struct made_options *made, const struct exporter_shape *shape)
{
    if (shape->is_lustre)
        ADD_ROWS(made, port_options);
    serve_options_rows(SETTING(serve), shape->address, "512", made->rows + made->n);
    made->n += SERVE_OPTIONS;
    if (shape->is_lustre)
        ADD_ROWS(made, lustre_log_options);
    else
        ADD_ROWS(made, exporter_log_options);
    prometheus_options_rows(SETTING(prometheus), made->rows + made->n);
    made->n += PROMETHEUS_OPTIONS;
    if (shape->is_lustre)
        ADD_ROWS(made, lustre_old_options);
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
        ADD_ROWS(made, profile_options);
        ADD_ROWS(made, trace_options);
    }
    add_collectors(made, shape);
}

/* What the older flags mean in terms of the others. */
static void translate(struct arena *arena, struct settings *settings)
{
    char *level = (char *)arena_str(arena, settings->serve.log_level).p;

    for (size_t i = 0; level[i]; i++)
        if (level[i] >= 'A' && level[i] <= 'Z')
            level[i] = (char)(level[i] - 'A' + 'a');
    settings->serve.log_level = str_of(strcmp(level, "trace") == 0 ? "debug" : level);
    if (settings->port.n) {
        struct str *address = ARENA_NEW(arena, struct str);
        char text[32];

        snprintf(text, sizeof(text), ":%.*s", STR_ARG(str_head(settings->port, 20)));
        *address = arena_str(arena, str_of(text));
        settings->serve.listen = (struct option_list){ address, 1 };
    }
}

/* As every server that answers as Prometheus understands it. */
static bool is_range(struct str text)
{
    uint64_t number;

    return text.n > 1 && memchr("smhd", text.p[text.n - 1], 4) &&
           num_get_u64(str_head(text, text.n - 1), &number) && number > 0 && number <= 9999;
}

static int check_formats(const struct settings *settings, struct err *err)
{
    for (size_t i = 0; i < settings->lustre.formats.n; i++) {
        struct lustre_format *format;

        if (lustre_format_new(settings->lustre.formats.items[i], &format, err) < 0)
            return err_prefix(err, "--lustre.jobid-format");
        lustre_format_free(format);
    }
    return 0;
}

static int check_lustre(const struct exporter_shape *shape, const struct settings *settings,
                        struct err *err)
{
    if (shape->is_lustre && !settings->prometheus.url.n)
        return err_set(err, EINVAL,
                       "where is the Prometheus that has Lustre's job stats? Give its URL by "
                       "--prometheus.url (-promserver)");
    if (shape->is_lustre && !settings_want_lustre(settings))
        return err_set(err, EINVAL,
                       "nothing is left to export: leave --collector.lustre or "
                       "--collector.lustre_jobs on");
    if (!is_range(settings->lustre.time_range))
        return err_set(err, EINVAL,
                       "--lustre.time-range is a number with s, m, h or d, like 1m: \"%s\" is not",
                       quote(settings->lustre.time_range).text);
    return prometheus_options_check(&settings->prometheus, err);
}

/* Before they are translated. */
static int check_port(const struct exporter_shape *shape, const struct settings *settings,
                      struct err *err)
{
    uint64_t port;

    if (!settings->port.n)
        return 0;
    if (!num_get_u64(settings->port, &port) || port < 1 || port > 65535)
        return err_set(err, EINVAL, "-port must be from 1 to 65535");
    if (settings->serve.listen.n != 1 ||
        !str_eq(settings->serve.listen.items[0], str_of(shape->address)))
        return err_set(err, EINVAL,
                       "-port and --web.listen-address exclude each other: leave one out");
    return 0;
}

static int check_store(const struct settings *settings, struct err *err)
{
    char path[STORE_PATH_MAX];

    if (!settings->store.url.n)
        return settings->store.token_file.n || settings->store.allocations_file.n
                   ? err_set(err, EINVAL,
                             "--ingest.token-file and --allocations.file need a --store")
                   : 0;
    if (settings->store.interval_ns <= 0 || settings->store.history.interval_ns <= 0 ||
        settings->store.history.timeout_ns <= 0)
        return err_set(err, EINVAL,
                       "--store.interval, --store.history-interval and --store.history-timeout "
                       "must be more than 0");
    return store_path(settings->store.url, path, err);
}

/* What a metric's name may begin with: prometheus.io, "Data model". */
static bool is_prefix(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (i && c >= '0' && c <= '9')))
            return false;
    }
    return text.n <= METRIC_PREFIX_MAX;
}

static int check_profile(const struct settings *settings, struct err *err)
{
    if (settings->profile.n && !collector_profile(settings->profile))
        return err_set(err, EINVAL, "--metrics.profile: there is no profile \"%s\"; there is: mila",
                       quote(settings->profile).text);
    if (!is_prefix(settings->prefix))
        return err_set(err, EINVAL,
                       "--metrics.prefix has letters, digits and \"_\", and does not begin with a "
                       "digit: \"%s\" does not do",
                       quote(settings->prefix).text);
    return 0;
}

static int check(const struct exporter_shape *shape, const struct settings *settings,
                 struct err *err)
{
    int code = serve_options_check(&settings->serve, err);

    if (code == 0)
        code = check_lustre(shape, settings, err);
    if (code == 0)
        code = check_formats(settings, err);
    if (code < 0)
        return code;
    if (!shape->is_lustre && !str_starts(settings->trace.path, STR("/")))
        return err_set(err, EINVAL, "--trace.path must begin with /");
    if (settings->trace.is_enabled && str_eq(settings->trace.path, settings->serve.telemetry_path))
        return err_set(err, EINVAL,
                       "--trace.path and --web.telemetry-path are the same: change one");
    if (settings->stale_limit_ns <= 0)
        return err_set(err, EINVAL, "--slurm.stale-limit must be more than 0");
    code = check_store(settings, err);
    return code < 0 ? code : check_profile(settings, err);
}

/* What one process does for one cluster only: whose jobs would these be? */
static int check_several(const struct settings *settings, struct err *err)
{
    const struct cluster_options none = { .source = settings->own.source };

    if (settings->own.source.demo || settings->own.source.source.n || settings->own.retention_ns ||
        settings->own.max_bytes || !cluster_options_equal(&settings->own, &none))
        return err_set(err, EINVAL,
                       "with --cluster.file each cluster has its own settings: put --source, "
                       "--cluster.name, --jobs.accounts, --jobs.users, --store.retention and "
                       "--store.max-size into these files");
    if (settings->trace.is_enabled || settings->prometheus.url.n)
        return err_set(err, EINVAL,
                       "--trace.enabled and --prometheus.url are for one cluster: run another "
                       "sonde exporter, or sonde lustre, for each");
    if (settings->cluster_files.n > CLUSTERS_MAX)
        return err_set(err, EINVAL, "one exporter asks at most %d clusters", CLUSTERS_MAX);
    return 0;
}

static int read_cluster(const struct settings *settings, size_t i, struct arena *arena,
                        struct err *err)
{
    const char *path = arena_str(arena, settings->cluster_files.items[i]).p;
    int code = cluster_options_read(path, arena, &settings->clusters[i], err);

    for (size_t k = 0; code == 0 && k < i; k++)
        if (str_eq(settings->clusters[k].name, settings->clusters[i].name))
            code = err_set(err, EINVAL,
                           "%s: there is another cluster \"%s\": give one of them "
                           "another cluster.name",
                           path, quote(settings->clusters[i].name).text);
    return code;
}

/* The one, or those that have files. */
static int make_clusters(struct arena *arena, struct settings *settings, struct err *err)
{
    int code = 0;

    settings->n_clusters = settings->cluster_files.n ? settings->cluster_files.n : 1;
    settings->clusters = ARENA_ARRAY(arena, struct cluster_options, settings->n_clusters);
    if (!settings->cluster_files.n) {
        settings->clusters[0] = settings->own;
        return cluster_options_check(&settings->own, err);
    }
    code = check_several(settings, err);
    for (size_t i = 0; code == 0 && i < settings->n_clusters; i++)
        code = read_cluster(settings, i, arena, err);
    return code;
}

static int read_history_from(struct settings *settings, struct err *err)
{
    struct str text = settings->store.history.from;
    char midnight[40];

    snprintf(midnight, sizeof(midnight), "%.*sT00:00:00", STR_ARG(str_head(text, 20)));
    if (text.n && !units_timestamp(str_of(midnight), &settings->history_from))
        return err_set(err, EINVAL, "--store.history-from is a day, as 2026-01-01: \"%s\" is none",
                       quote(text).text);
    return 0;
}

static int exclude(struct settings *settings, struct err *err)
{
    struct pattern *pattern;
    int code = serve_exclude(&settings->serve, &pattern, err);

    if (code < 0)
        return code;
    for (size_t i = 0; collectors[i]; i++)
        settings->excluded[i] =
            serve_excluded(pattern, collectors[i]->families, collectors[i]->n_families);
    settings->excluded_self = serve_excluded(pattern, self_families, n_self_families);
    pattern_free(pattern);
    return 0;
}

int settings_parse(const struct exporter_shape *shape, int argc, char **argv, struct arena *arena,
                   struct settings *settings, struct err *err)
{
    struct made_options made = { 0 };
    const struct option_command command = {
        .name = shape->name,
        .summary = shape->summary,
        .description = shape->description,
        .options = made.rows,
    };
    char **rest;
    int outcome;

    make_options(&made, shape);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome == OPTION_GO_ON)
        outcome = check_port(shape, settings, err);
    if (outcome == OPTION_GO_ON) {
        translate(arena, settings);
        outcome = check(shape, settings, err);
    }
    if (outcome == OPTION_GO_ON)
        outcome = make_clusters(arena, settings, err);
    if (outcome == OPTION_GO_ON)
        outcome = read_history_from(settings, err);
    if (outcome == OPTION_GO_ON)
        outcome = exclude(settings, err);
    return outcome;
}

static bool same_clusters(const struct settings *a, const struct settings *b)
{
    if (a->n_clusters != b->n_clusters)
        return false;
    for (size_t i = 0; i < a->n_clusters; i++)
        if (!cluster_options_equal(&a->clusters[i], &b->clusters[i]) ||
            a->clusters[i].retention_ns != b->clusters[i].retention_ns ||
            a->clusters[i].max_bytes != b->clusters[i].max_bytes)
            return false;
    return true;
}

static bool same_history(const struct settings *a, const struct settings *b)
{
    return a->store.history.is_on == b->store.history.is_on &&
           a->store.history.interval_ns == b->store.history.interval_ns &&
           a->store.history.timeout_ns == b->store.history.timeout_ns &&
           a->history_from == b->history_from;
}

bool settings_want_store(const struct settings *settings)
{
    return settings->store.url.n > 0;
}

int settings_check_reload(const struct settings *old, const struct settings *new, struct err *err)
{
    const char *changed = serve_options_changed(&old->serve, &new->serve);

    if (old->trace.is_enabled != new->trace.is_enabled)
        changed = "trace.enabled";
    else if (!str_eq(old->trace.path, new->trace.path))
        changed = "trace.path";
    else if (!str_eq(old->trace.munge_socket, new->trace.munge_socket))
        changed = "trace.munge-socket";
    else if (!str_eq(old->store.url, new->store.url))
        changed = "store";
    else if (!str_eq(old->store.token_file, new->store.token_file))
        changed = "ingest.token-file";
    else if (settings_want_store(old) && !same_history(old, new))
        changed = "how slurmdbd is asked (--store.history and those that begin so)";
    else if (settings_want_store(old) && !same_clusters(old, new))
        changed = "what the store keeps (the clusters, --store.retention or --store.max-size)";
    if (!changed)
        return 0;
    return err_set(err, EINVAL, "%s has changed: restart sonde for that", changed);
}

struct trace_config settings_trace(const struct settings *settings, struct users *users)
{
    return (struct trace_config){
        .life_ns = settings->trace.rate_ns,
        .max_senders = TRACE_SENDERS,
        .max_senders_per_user = TRACE_SENDERS_PER_USER,
        .max_senders_per_job = TRACE_SENDERS_PER_JOB,
        .max_posts_per_second = TRACE_POSTS_PER_SECOND,
        .max_posts_per_second_per_user = TRACE_POSTS_PER_SECOND_PER_USER,
        .users = users,
        .clock = &clock_real,
    };
}

bool settings_want_lustre(const struct settings *settings)
{
    for (size_t i = 0; collectors[i]; i++)
        if (collectors[i]->kind == KIND_LUSTRE && settings->collectors[i])
            return settings->prometheus.url.n > 0;
    return false;
}

collector_set settings_collectors(const struct settings *settings, const struct engine *engine)
{
    unsigned kinds = settings->trace.is_enabled ? KIND_BIT(KIND_TRACES) : 0;
    collector_set set = 0;

    for (size_t i = 0; i < engine->n_clusters; i++)
        for (size_t feed = 0; feed < FEEDS; feed++)
            if (engine->clusters[i].feeds[feed].source)
                kinds |= engine->clusters[i].feeds[feed].source->class->kinds;
    for (size_t i = 0; collectors[i]; i++)
        if (settings->collectors[i] && kinds & KIND_BIT(collectors[i]->kind))
            set |= (collector_set)1 << i;
    return set;
}

bool settings_same_sources(const struct settings *a, const struct settings *b)
{
    return same_clusters(a, b) && settings_want_lustre(a) == settings_want_lustre(b) &&
           prometheus_options_equal(&a->prometheus, &b->prometheus) &&
           str_eq(a->store.allocations_file, b->store.allocations_file) &&
           str_eq(a->lustre.time_range, b->lustre.time_range) &&
           str_eq(a->lustre.matchers, b->lustre.matchers) &&
           option_list_equal(a->lustre.formats, b->lustre.formats);
}

struct lustre_settings settings_lustre(const struct settings *settings)
{
    return (struct lustre_settings){
        .prometheus = prometheus_options_settings(&settings->prometheus),
        .time_range = settings->lustre.time_range,
        .matchers = settings->lustre.matchers,
        .formats = settings->lustre.formats.items,
        .n_formats = settings->lustre.formats.n,
        .query_timeout_ns = settings->prometheus.timeout_ns,
    };
}

int64_t settings_patience(const struct settings *settings)
{
    int64_t longest_ns = 0;

    for (size_t i = 0; i < settings->n_clusters; i++)
        if (settings->clusters[i].source.timeout_ns > longest_ns)
            longest_ns = settings->clusters[i].source.timeout_ns;
    return longest_ns;
}

static int64_t poll_limit_of(const struct settings *settings, enum kind kind)
{
    int64_t ns = settings->poll_limit_ns[KIND_JOBS];

    if (kind == KIND_TRACES)
        return ns < traces_poll_limit_ns ? ns : traces_poll_limit_ns;
    if (kind == KIND_ALLOCATIONS)
        return ns > allocations_poll_limit_ns ? ns : allocations_poll_limit_ns;
    return asked_rarely & KIND_BIT(kind) ? settings->poll_limit_ns[kind] : ns;
}

void settings_tunings(const struct settings *settings, size_t cluster,
                      const struct engine_cluster *of, struct refresh_tuning ret[FEEDS])
{
    int64_t poll_limit_ns = settings->poll_limit_ns[KIND_JOBS];
    int64_t retry_ns = poll_limit_ns > NS_PER_SEC ? poll_limit_ns : NS_PER_SEC;
    struct refresh_tuning tuning = {
        .timeout_ns = settings->clusters[cluster].source.timeout_ns,
        .stale_limit_ns = settings->stale_limit_ns,
        .retry_ns = retry_ns,
        .max_backoff_ns = 2 * retry_ns,
        .publish = {
            .const_labels = str_of(of->const_labels),
            .is_split = settings->n_clusters > 1,
            /* Who posts is compared with the queue, and Lustre's ids are. */
            .keeps_facts = settings->trace.is_enabled || settings_want_lustre(settings),
            .max_segment = (size_t)256 << 20,
            .clock = &clock_real,
        },
    };

    snprintf(tuning.publish.prefix, sizeof(tuning.publish.prefix), "%.*s",
             STR_ARG(settings->prefix));
    for (size_t i = 0; collectors[i]; i++)
        if (settings->collectors[i] && collector_profile(settings->profile) & (collector_set)1 << i)
            tuning.publish.collectors |= (collector_set)1 << i;
    memcpy(tuning.publish.excluded, settings->excluded, sizeof(tuning.publish.excluded));
    for (int kind = 0; kind < KINDS; kind++)
        tuning.poll_limit_ns[kind] = poll_limit_of(settings, kind);
    for (size_t i = 0; i < FEEDS; i++)
        ret[i] = tuning;
    if (settings_want_store(settings)) {
        ret[FEED_SLURM].pace_kinds =
            of->feeds[FEED_SLURM].source->class->kinds &
            (KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_CONFIG));
        ret[FEED_SLURM].pace_ns = settings->store.interval_ns;
    }
    /* It waits for Slurm's jobs, and then asks several questions. */
    ret[FEED_LUSTRE].timeout_ns += LUSTRE_QUERIES * settings->prometheus.timeout_ns;
    ret[FEED_LUSTRE].publish.keeps_facts = false;
}
