/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporter_settings.h"

#include "collector/self.h"

#define SETTING(member)     offsetof(struct settings, member)
#define POLL_LIMIT_OF(kind) (SETTING(poll_limit_ns) + (kind) * sizeof(int64_t))

/* Of the last group of serve_options_rows. */
static const struct option log_options[] = {
    { "web.log-level", OPTION_CHOICE, SETTING(serve.log_level), "LEVEL", NULL, NULL,
      "debug info warn warning error", "Log", "An older name of --log.level." },
};

static const struct option other_options[] = {
    { "slurm.poll-limit", OPTION_DURATION, POLL_LIMIT_OF(KIND_JOBS), "DURATION", "10s",
      "POLL_LIMIT", NULL, "Slurm",
      "Slurm is asked at most once in this time, however many scrapers there are." },
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
    { "slurm.stale-limit", OPTION_DURATION, SETTING(stale_limit_ns), "DURATION", "5m", NULL, NULL,
      "Slurm",
      "While Slurm does not answer, the last values are shown until they are this old, or twice "
      "their poll limit if that is longer." },
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

/* The texts of the rows that are made of the table of collectors. */
struct made_options {
    struct option rows[SERVE_OPTIONS + COUNT(log_options) + SOURCE_OPTIONS + COUNT(other_options) +
                       COLLECTORS_MAX + COUNT(old_switches) + 1];
    struct serve_collector_texts texts[COLLECTORS_MAX];
};

static void make_options(struct made_options *made)
{
    struct option *row = made->rows;

    serve_options_rows(SETTING(serve), ":9092", "512", row);
    row += SERVE_OPTIONS;
    memcpy(row, log_options, sizeof(log_options));
    row += COUNT(log_options);
    source_options_rows(SETTING(source), row);
    row += SOURCE_OPTIONS;
    memcpy(row, other_options, sizeof(other_options));
    row += COUNT(other_options);
    for (size_t i = 0; collectors[i]; i++)
        *row++ = serve_collector_row(collectors[i]->name, collectors[i]->help, true,
                                     SETTING(collectors) + i * sizeof(bool), &made->texts[i]);
    for (size_t i = 0; i < COUNT(old_switches); i++)
        *row++ = (struct option){
            .name = old_switches[i].name,
            .type = OPTION_BOOL,
            .offset = SETTING(collectors) +
                      (size_t)collector_find(str_of(old_switches[i].collector)) * sizeof(bool),
            .group = "Collectors",
            .help = old_switches[i].help,
        };
}

static int check(const struct settings *settings, struct err *err)
{
    int code = serve_options_check(&settings->serve, err);

    if (code < 0)
        return code;
    if (!str_starts(settings->trace.path, STR("/")))
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

int settings_parse(int argc, char **argv, struct arena *arena, struct settings *settings,
                   struct err *err)
{
    struct made_options made = { 0 };
    const struct option_command command = {
        .name = "sonde exporter",
        .summary = "export what a Slurm cluster is doing to Prometheus",
        .description =
            "Serves the state of a Slurm cluster as metrics on /metrics, in the Prometheus text "
            "format or OpenMetrics, as the scraper prefers.\n\n"
            "Slurm is asked only when somebody scrapes, at most once per poll limit, and all "
            "scrapers share the answer. While Slurm does not answer, the last values are served "
            "together with their age, and withdrawn after the stale limit.\n\n"
            "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, "
            "or, if there is a mistake in it, nothing changes and the log says why.",
        .options = made.rows,
    };
    char **rest;
    int outcome;

    make_options(&made);
    outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);
    if (outcome == OPTION_GO_ON)
        outcome = check(settings, err);
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

collector_set settings_collectors(const struct settings *settings, const struct source *source)
{
    unsigned kinds =
        source->class->kinds | (settings->trace.is_enabled ? KIND_BIT(KIND_TRACES) : 0);
    collector_set set = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (settings->collectors[i] && kinds & KIND_BIT(collectors[i]->kind))
            set |= (collector_set)1 << i;
    return set;
}

static int64_t poll_limit_of(const struct settings *settings, enum kind kind)
{
    int64_t ns = settings->poll_limit_ns[KIND_JOBS];

    if (kind == KIND_TRACES)
        return ns < traces_poll_limit_ns ? ns : traces_poll_limit_ns;
    return asked_rarely & KIND_BIT(kind) ? settings->poll_limit_ns[kind] : ns;
}

struct refresh_tuning settings_tuning(const struct settings *settings, const struct source *source,
                                      const char *const_labels)
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
            .keeps_facts = settings->trace.is_enabled, /* who posts is compared with the queue */
            .max_segment = (size_t)256 << 20,
            .clock = &clock_real,
        },
    };

    memcpy(tuning.publish.excluded, settings->excluded, sizeof(tuning.publish.excluded));
    for (int kind = 0; kind < KINDS; kind++)
        tuning.poll_limit_ns[kind] = poll_limit_of(settings, kind);
    return tuning;
}
