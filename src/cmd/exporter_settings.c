/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporter_settings.h"

#include "base/num.h"
#include "base/quote.h"
#include "collector/self.h"
#include "source/lustre_ids.h"

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

/* The rows, and the texts of those that are made of the table of collectors. */
struct made_options {
    struct option rows[SERVE_OPTIONS + SOURCE_OPTIONS + PROMETHEUS_OPTIONS + COLLECTORS_MAX + 40];
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
    source_options_rows(SETTING(source), made->rows + made->n);
    made->n += SOURCE_OPTIONS;
    ADD_ROWS(made, poll_options);
    if (!shape->is_lustre) {
        ADD_ROWS(made, rare_poll_options);
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
    return source_options_check(&settings->source, err);
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
        outcome = exclude(settings, err);
    return outcome;
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

collector_set settings_collectors(const struct settings *settings, const struct source *source)
{
    unsigned kinds = source->class->kinds |
                     (settings->trace.is_enabled ? KIND_BIT(KIND_TRACES) : 0) |
                     (settings_want_lustre(settings) ? KIND_BIT(KIND_LUSTRE) : 0);
    collector_set set = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (settings->collectors[i] && kinds & KIND_BIT(collectors[i]->kind))
            set |= (collector_set)1 << i;
    return set;
}

bool settings_same_sources(const struct settings *a, const struct settings *b)
{
    return source_options_equal(&a->source, &b->source) &&
           settings_want_lustre(a) == settings_want_lustre(b) &&
           prometheus_options_equal(&a->prometheus, &b->prometheus) &&
           str_eq(a->lustre.time_range, b->lustre.time_range) &&
           str_eq(a->lustre.matchers, b->lustre.matchers) &&
           serve_same_list(a->lustre.formats, b->lustre.formats);
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

static int64_t poll_limit_of(const struct settings *settings, enum kind kind)
{
    int64_t ns = settings->poll_limit_ns[KIND_JOBS];

    if (kind == KIND_TRACES)
        return ns < traces_poll_limit_ns ? ns : traces_poll_limit_ns;
    return asked_rarely & KIND_BIT(kind) ? settings->poll_limit_ns[kind] : ns;
}

void settings_tunings(const struct settings *settings, const struct source *source,
                      const char *const_labels, struct refresh_tuning ret[FEEDS])
{
    int64_t poll_limit_ns = settings->poll_limit_ns[KIND_JOBS];
    int64_t retry_ns = poll_limit_ns > NS_PER_SEC ? poll_limit_ns : NS_PER_SEC;
    struct refresh_tuning tuning = {
        .timeout_ns = settings->source.timeout_ns,
        .stale_limit_ns = settings->stale_limit_ns,
        .retry_ns = retry_ns,
        .max_backoff_ns = 2 * retry_ns,
        .publish = {
            .collectors = settings_collectors(settings, source),
            .const_labels = str_of(const_labels),
            /* Who posts is compared with the queue, and Lustre's ids are. */
            .keeps_facts = settings->trace.is_enabled || settings_want_lustre(settings),
            .max_segment = (size_t)256 << 20,
            .clock = &clock_real,
        },
    };

    memcpy(tuning.publish.excluded, settings->excluded, sizeof(tuning.publish.excluded));
    for (int kind = 0; kind < KINDS; kind++)
        tuning.poll_limit_ns[kind] = poll_limit_of(settings, kind);
    for (size_t i = 0; i < FEEDS; i++)
        ret[i] = tuning;
    /* It waits for Slurm's jobs, and then asks several questions. */
    ret[FEED_LUSTRE].timeout_ns += LUSTRE_QUERIES * settings->prometheus.timeout_ns;
    ret[FEED_LUSTRE].publish.keeps_facts = false;
}
