/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporter_settings.h"

#include "base/pattern.h"
#include "collector/self.h"

#define SETTING(member)     offsetof(struct settings, member)
#define COMMAND_FOR(kind)   (SETTING(commands) + (kind) * sizeof(struct str))
#define POLL_LIMIT_OF(kind) (SETTING(poll_limit_ns) + (kind) * sizeof(int64_t))

static const struct option fixed_options[] = {
    { "web.listen-address", OPTION_LIST, SETTING(listen), "ADDRESS", ":9092", NULL, NULL, "Web",
      "Where to listen: host:port, :port for every interface, or unix:/path. With "
      "sockets passed by systemd, those are used instead." },
    { "web.telemetry-path", OPTION_STRING, SETTING(telemetry_path), "PATH", "/metrics", NULL, NULL,
      "Web", "Path under which the metrics are served." },
    { "web.config.file", OPTION_STRING, SETTING(web_config), "FILE", NULL, NULL, NULL, "Web",
      "TLS, client certificates and passwords, in the format of Prometheus's exporter-toolkit. "
      "Read again when it changes." },
    { "web.max-connections", OPTION_UINT, SETTING(max_connections), "N", "512", NULL, NULL, "Web",
      "Connections held open at once; past it the one longest without a complete request is "
      "closed." },
    { "source", OPTION_STRING, SETTING(source), "SOURCE", NULL, NULL, NULL, "Slurm",
      "Where the facts come from: cli (Slurm's commands; the default), or "
      "sim:nodes=N,jobs=N,seed=N,users=N (a simulated cluster)." },
    { "demo", OPTION_BOOL, SETTING(demo), NULL, NULL, NULL, NULL, "Slurm",
      "Show a simulated cluster, marked as such on every page and metric. Short for "
      "--source=sim." },
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
    { "slurm.timeout", OPTION_DURATION, SETTING(timeout_ns), "DURATION", "10s", "CLI_TIMEOUT", NULL,
      "Slurm", "A Slurm command that takes longer is killed." },
    { "slurm.stale-limit", OPTION_DURATION, SETTING(stale_limit_ns), "DURATION", "5m", NULL, NULL,
      "Slurm",
      "While Slurm does not answer, the last values are shown until they are this old, or twice "
      "their poll limit if that is longer." },
    { "slurm.max-answer", OPTION_BYTES, SETTING(max_answer), "BYTES", "512M", NULL, NULL, "Slurm",
      "A Slurm command that prints more is stopped." },
    { "slurm.bin-path", OPTION_STRING, SETTING(bin_path), "DIRECTORY", NULL, NULL, NULL, "Slurm",
      "Where Slurm's commands are, if not in PATH." },
    { "slurm.cli-fallback", OPTION_BOOL, SETTING(cli_fallback), NULL, "true", NULL, NULL, "Slurm",
      "As in prometheus-slurm-exporter: with =false Slurm's commands are asked for JSON, where "
      "they "
      "have it. Otherwise it has no effect; --source decides." },
    { "slurm.squeue-cli", OPTION_STRING, COMMAND_FOR(KIND_JOBS), "COMMAND", NULL, NULL, NULL,
      "Slurm",
      "A command to run in the place of squeue, exactly as given. It prints what squeue --json "
      "does, or the lines of JSON that prometheus-slurm-exporter asks squeue for." },
    { "slurm.sinfo-cli", OPTION_STRING, COMMAND_FOR(KIND_NODES), "COMMAND", NULL, NULL, NULL,
      "Slurm", "Likewise in the place of sinfo." },
    { "slurm.diag-cli", OPTION_STRING, COMMAND_FOR(KIND_DIAG), "COMMAND", NULL, NULL, NULL, "Slurm",
      "Likewise in the place of sdiag; it prints what sdiag or sdiag --json does." },
    { "slurm.lic-cli", OPTION_STRING, COMMAND_FOR(KIND_LICENSES), "COMMAND", NULL, NULL, NULL,
      "Slurm",
      "Likewise in the place of scontrol show licenses; it prints what that does, also with "
      "--json." },
    { "slurm.sacctmgr-cli", OPTION_STRING, COMMAND_FOR(KIND_ASSOCIATIONS), "COMMAND", NULL, NULL,
      NULL, "Slurm",
      "A command for the limits of accounts; it prints what sacctmgr show assoc "
      "format=User,Account,GrpCPU,GrpMem,GrpJobs,GrpSubmit --noheader --parsable2 does. Without "
      "it, scontrol show assoc_mgr is asked, which also tells what is in use." },
    { "metrics.exclude", OPTION_STRING, SETTING(exclude), "REGEX", NULL, NULL, NULL, "Metrics",
      "Metrics to leave out: every one whose name has a match for this." },
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
    { "log.level", OPTION_CHOICE, SETTING(log_level), "LEVEL", "info", "LOGLEVEL",
      "debug info warn warning error", "Log",
      "Least level of the lines written to standard error." },
    { "web.log-level", OPTION_CHOICE, SETTING(log_level), "LEVEL", NULL, NULL,
      "debug info warn warning error", "Log", "An older name of --log.level." },
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
    struct option rows[COUNT(fixed_options) + COLLECTORS_MAX + COUNT(old_switches) + 1];
    char names[COLLECTORS_MAX][40], helps[COLLECTORS_MAX][160];
};

static void make_options(struct made_options *made)
{
    struct option *row = made->rows + COUNT(fixed_options);

    memcpy(made->rows, fixed_options, sizeof(fixed_options));
    for (size_t i = 0; collectors[i]; i++) {
        snprintf(made->names[i], sizeof(made->names[i]), "collector.%s", collectors[i]->name);
        snprintf(made->helps[i], sizeof(made->helps[i]), "Give %s.", collectors[i]->help);
        *row++ = (struct option){
            .name = made->names[i],
            .type = OPTION_BOOL,
            .offset = SETTING(collectors) + i * sizeof(bool),
            .initial = "true",
            .group = "Collectors",
            .help = made->helps[i],
        };
    }
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

static int check_path(const char *flag, struct str path, struct err *err)
{
    return path.n && path.p[0] == '/' ? 0 : err_set(err, EINVAL, "--%s must begin with /", flag);
}

static int check(const struct settings *settings, struct err *err)
{
    int code = check_path("web.telemetry-path", settings->telemetry_path, err);

    if (code == 0)
        code = check_path("trace.path", settings->trace.path, err);
    if (code < 0)
        return code;
    if (settings->trace.is_enabled && str_eq(settings->trace.path, settings->telemetry_path))
        return err_set(err, EINVAL,
                       "--trace.path and --web.telemetry-path are the same: change one");
    if (settings->timeout_ns <= 0 || settings->stale_limit_ns <= 0)
        return err_set(err, EINVAL, "--slurm.timeout and --slurm.stale-limit must be more than 0");
    if (settings->demo && settings->source.n)
        return err_set(err, EINVAL, "--demo and --source exclude each other: leave one out");
    if (settings->max_connections < 1 || settings->max_connections > 100000)
        return err_set(err, EINVAL, "--web.max-connections must be from 1 to 100000");
    return 0;
}

static uint64_t excluded_of(const struct pattern *pattern, const struct family *families, size_t n)
{
    uint64_t excluded = 0;

    for (size_t i = 0; i < n; i++)
        if (pattern_finds(pattern, str_of(families[i].name)))
            excluded |= UINT64_C(1) << i;
    return excluded;
}

static int exclude(struct settings *settings, struct err *err)
{
    struct pattern *pattern;
    int code;

    if (!settings->exclude.n)
        return 0;
    code = pattern_new(settings->exclude, &pattern, err);
    if (code < 0)
        return err_prefix(err, "--metrics.exclude");
    for (size_t i = 0; collectors[i]; i++)
        settings->excluded[i] =
            excluded_of(pattern, collectors[i]->families, collectors[i]->n_families);
    settings->excluded_self = excluded_of(pattern, self_families, n_self_families);
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

struct str settings_source(const struct settings *settings)
{
    if (settings->demo)
        return STR("sim");
    return settings->source.n ? settings->source : STR("cli");
}

struct source_settings settings_of_source(const struct settings *settings)
{
    struct source_settings source = {
        .spec = settings_source(settings),
        .bin_path = settings->bin_path,
        .is_json = !settings->cli_fallback,
        .max_output = settings->max_answer,
    };

    memcpy(source.commands, settings->commands, sizeof(source.commands));
    return source;
}

bool settings_same_source(const struct settings *a, const struct settings *b)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!str_eq(a->commands[kind], b->commands[kind]))
            return false;
    return str_eq(settings_source(a), settings_source(b)) && str_eq(a->bin_path, b->bin_path) &&
           a->cli_fallback == b->cli_fallback && a->max_answer == b->max_answer;
}

static bool same_list(struct option_list a, struct option_list b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (!str_eq(a.items[i], b.items[i]))
            return false;
    return true;
}

int settings_check_reload(const struct settings *old, const struct settings *new, struct err *err)
{
    const char *changed = NULL;

    if (!same_list(old->listen, new->listen))
        changed = "web.listen-address";
    else if (!str_eq(old->web_config, new->web_config))
        changed = "web.config.file";
    else if (!str_eq(old->telemetry_path, new->telemetry_path))
        changed = "web.telemetry-path";
    else if (old->max_connections != new->max_connections)
        changed = "web.max-connections";
    else if (old->trace.is_enabled != new->trace.is_enabled)
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
    struct refresh_tuning tuning = {
        .timeout_ns = settings->timeout_ns,
        .stale_limit_ns = settings->stale_limit_ns,
        .retry_ns = settings->poll_limit_ns[KIND_JOBS] > NS_PER_SEC
                        ? settings->poll_limit_ns[KIND_JOBS]
                        : NS_PER_SEC,
        .max_backoff_ns = 60 * NS_PER_SEC,
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
