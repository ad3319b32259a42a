/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Settings of `sonde exporter`, `sonde lustre` and `sonde up`, made from their options. */
#include "cmd/exporter_settings.h"

#include "base/num.h"
#include "base/quote.h"
#include "cmd/exporter_options.h"
#include "collector/self.h"
#include "model/units.h"
#include "record/recorder.h"
#include "source/lustre_ids.h"
#include "store/store.h"

enum { SUMMARIES_MAX = 100 }; /* a second */

/* Kinds that have a poll limit of their own. */
static const unsigned asked_rarely = KIND_BIT(KIND_SHARES) | KIND_BIT(KIND_ASSOCIATIONS) |
                                     KIND_BIT(KIND_RESERVATIONS) | KIND_BIT(KIND_LICENSES) |
                                     KIND_BIT(KIND_CONFIG);

/* What jobs post must not be older than the scrape that shows it. */
static const int64_t traces_poll_limit_ns = NS_PER_SEC;

/* Adding up what was used of them costs some ten milliseconds, and nobody plots it by the second.
 */
static const int64_t allocations_poll_limit_ns = 60 * NS_PER_SEC;

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
        return 0;
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

static int check_source(const struct settings *settings, struct err *err)
{
    struct source_settings source = source_options_settings(&settings->own.source);

    return settings->cluster_files.n ? 0 : source_check(&source, err);
}

static int check(const struct exporter_shape *shape, const struct settings *settings,
                 struct err *err)
{
    int code = serve_options_check(&settings->serve, err);

    if (code == 0)
        code = check_source(settings, err);
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
    if (settings->store.summaries_per_second > SUMMARIES_MAX)
        return err_set(err, EINVAL, "--store.summaries is at most %d", SUMMARIES_MAX);
    code = check_store(settings, err);
    return code < 0 ? code : check_profile(settings, err);
}

/* What would have no effect beside what else there is, or is not. */
static int check_given(const struct exporter_options *made, const struct settings *settings,
                       struct err *err)
{
    const char *of_store = exporter_options_of_store(made);
    const char *of_cluster = exporter_options_of_cluster(made);

    if (settings->cluster_files.n && of_cluster)
        return err_set(err, EINVAL,
                       "--%s is of one cluster: with --cluster.file, put it into the file of each, "
                       "as the key %s",
                       of_cluster, of_cluster);
    if (!settings->store.url.n && of_store)
        return err_set(err, EINVAL,
                       "--%s is for a store, and there is none: say where with --store, as "
                       "sqlite:/var/lib/sonde/sonde.db",
                       of_store);
    return 0;
}

/* What one process does for one cluster only: whose jobs would these be? */
static int check_several(const struct settings *settings, struct err *err)
{
    if (settings->trace.is_enabled)
        return err_set(err, EINVAL,
                       "--trace.enabled is for one cluster: run another sonde exporter for each");
    if (settings_want_lustre(settings))
        return err_set(err, EINVAL,
                       "what --prometheus.url tells of Lustre is for one cluster: run sonde lustre "
                       "for each, and say --no-collector.lustre and --no-collector.lustre_jobs");
    if (settings->cluster_files.n > CLUSTERS_MAX)
        return err_set(err, EINVAL, "one exporter asks at most %d clusters", CLUSTERS_MAX);
    return 0;
}

static int read_cluster(const struct settings *settings, const struct option *flags, size_t i,
                        struct arena *arena, struct err *err)
{
    const char *path = arena_str(arena, settings->cluster_files.items[i]).p;
    struct cluster_options *cluster = &settings->clusters[i];
    int code = cluster_options_read(path, flags, arena, cluster, err);

    if (code == 0 && !settings->store.url.n && (cluster->retention_ns || cluster->max_bytes))
        code = err_set(err, EINVAL,
                       "%s: store.retention and store.max-size are for a store, and there is none: "
                       "give sonde exporter a --store",
                       path);
    for (size_t k = 0; code == 0 && k < i; k++)
        if (str_eq(settings->clusters[k].name, settings->clusters[i].name))
            code = err_set(err, EINVAL,
                           "%s: there is another cluster \"%s\": give one of them "
                           "another cluster.name",
                           path, quote(settings->clusters[i].name).text);
    return code;
}

/* The one, or those that have files. */
static int make_clusters(struct arena *arena, const struct option *flags, struct settings *settings,
                         struct err *err)
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
        code = read_cluster(settings, flags, i, arena, err);
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
    settings->excluded_up = serve_excluded(pattern, up_self_families, n_up_self_families);
    pattern_free(pattern);
    return 0;
}

size_t settings_size(const struct exporter_shape *shape)
{
    return shape->hooks ? shape->hooks->settings_size : sizeof(struct settings);
}

int settings_parse(const struct exporter_shape *shape, int argc, char **argv, struct arena *arena,
                   struct settings *settings, struct err *err)
{
    struct exporter_options made = { 0 };
    const struct option_command command = {
        .name = shape->name,
        .summary = shape->summary,
        .description = shape->description,
        .is_given = made.is_given,
        .complete = shape->hooks ? shape->hooks->complete : NULL,
        .options = made.rows,
    };
    char **rest;
    int outcome;

    exporter_options_make(&made, shape);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome == OPTION_GO_ON && shape->hooks)
        outcome = shape->hooks->read(settings, err);
    if (outcome == OPTION_GO_ON)
        outcome = check_port(shape, settings, err);
    if (outcome == OPTION_GO_ON) {
        translate(arena, settings);
        outcome = check(shape, settings, err);
    }
    if (outcome == OPTION_GO_ON)
        outcome = check_given(&made, settings, err);
    if (outcome == OPTION_GO_ON)
        outcome = make_clusters(arena, made.rows, settings, err);
    if (outcome == OPTION_GO_ON)
        outcome = prometheus_matchers_read(&settings->matchers, arena, &settings->matcher, err);
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

bool settings_want_summaries(const struct settings *settings)
{
    return settings_want_store(settings) && settings->prometheus.url.n &&
           settings->store.summaries_per_second;
}

bool settings_same_summaries(const struct settings *a, const struct settings *b)
{
    return settings_want_summaries(a) == settings_want_summaries(b) &&
           prometheus_options_equal(&a->prometheus, &b->prometheus) &&
           option_list_equal(a->matchers, b->matchers) &&
           a->store.summaries_per_second == b->store.summaries_per_second;
}

int settings_check_reload(const struct exporter_shape *shape, const struct settings *old,
                          const struct settings *new, struct err *err)
{
    const char *changed = serve_options_changed(&old->serve, &new->serve);

    if (!changed && shape->hooks)
        changed = shape->hooks->changed(old, new);
    if (old->trace.is_enabled != new->trace.is_enabled)
        changed = "trace.enabled";
    else if (!str_eq(old->trace.path, new->trace.path))
        changed = "trace.path";
    else if (!str_eq(old->trace.munge_socket, new->trace.munge_socket))
        changed = "trace.munge-socket";
    else if (!str_eq(old->store.url, new->store.url))
        changed = "store";
    else if (!str_eq(old->report_config, new->report_config))
        changed = "report.config";
    else if (!str_eq(old->store.token_file, new->store.token_file))
        changed = "ingest.token-file";
    else if (!str_eq(old->store.ingest_users, new->store.ingest_users))
        changed = "ingest.users";
    else if (!str_eq(old->store.munge_socket, new->store.munge_socket))
        changed = "ingest.munge-socket";
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
            .keeps_facts = settings->keeps_facts || settings->trace.is_enabled ||
                           settings_want_lustre(settings),
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
        ret[FEED_SLURM].pace_kinds = of->feeds[FEED_SLURM].source->class->kinds & RECORDED_KINDS;
        ret[FEED_SLURM].pace_ns = settings->store.interval_ns;
    }
    /* It waits for Slurm's jobs, and then asks several questions. */
    ret[FEED_LUSTRE].timeout_ns += LUSTRE_QUERIES * settings->prometheus.timeout_ns;
    ret[FEED_LUSTRE].publish.keeps_facts = false;
}
