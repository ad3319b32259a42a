/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde exporter: what the cluster is doing, for Prometheus. */
#include "base/log.h"
#include "base/option.h"
#include "base/process.h"
#include "http/metrics.h"
#include "http/server.h"

#include <signal.h>
#include <sys/resource.h>

struct settings {
    struct option_list listen;
    struct str web_config, telemetry_path;
    uint64_t max_connections;
    struct str log_level;
    struct str source;
    bool demo;
    int64_t poll_limit_ns, timeout_ns, stale_limit_ns;
    struct str bin_path;
    struct str commands[KINDS];
    bool cli_fallback;
    uint64_t max_answer;
    bool collectors[COLLECTORS_MAX];
};

static const struct option fixed_options[] = {
    { "web.listen-address", OPTION_LIST, offsetof(struct settings, listen), "ADDRESS", ":9092",
      NULL, NULL, "Web",
      "Where to listen: host:port, :port for every interface, or unix:/path. With "
      "sockets passed by systemd, those are used instead." },
    { "web.telemetry-path", OPTION_STRING, offsetof(struct settings, telemetry_path), "PATH",
      "/metrics", NULL, NULL, "Web", "Path under which the metrics are served." },
    { "web.config.file", OPTION_STRING, offsetof(struct settings, web_config), "FILE", NULL, NULL,
      NULL, "Web",
      "TLS, client certificates and passwords, in the format of Prometheus's exporter-toolkit. "
      "Read "
      "again when it changes." },
    { "web.max-connections", OPTION_UINT, offsetof(struct settings, max_connections), "N", "512",
      NULL, NULL, "Web",
      "Connections held open at once; past it the one longest without a complete request is "
      "closed." },
    { "source", OPTION_STRING, offsetof(struct settings, source), "SOURCE", NULL, NULL, NULL,
      "Slurm",
      "Where the facts come from: cli (squeue and sinfo; the default), or "
      "sim:nodes=N,jobs=N,seed=N,users=N (a simulated cluster)." },
    { "demo", OPTION_BOOL, offsetof(struct settings, demo), NULL, NULL, NULL, NULL, "Slurm",
      "Show a simulated cluster, marked as such on every page and metric. Short for "
      "--source=sim." },
    { "slurm.poll-limit", OPTION_DURATION, offsetof(struct settings, poll_limit_ns), "DURATION",
      "10s", "POLL_LIMIT", NULL, "Slurm",
      "Slurm is asked at most once in this time, however many scrapers there are." },
    { "slurm.timeout", OPTION_DURATION, offsetof(struct settings, timeout_ns), "DURATION", "10s",
      "CLI_TIMEOUT", NULL, "Slurm", "A Slurm command that takes longer is killed." },
    { "slurm.stale-limit", OPTION_DURATION, offsetof(struct settings, stale_limit_ns), "DURATION",
      "5m", NULL, NULL, "Slurm",
      "While Slurm does not answer, the last values are shown until they are this old." },
    { "slurm.max-answer", OPTION_BYTES, offsetof(struct settings, max_answer), "BYTES", "512M",
      NULL, NULL, "Slurm", "A Slurm command that prints more is stopped." },
    { "slurm.bin-path", OPTION_STRING, offsetof(struct settings, bin_path), "DIRECTORY", NULL, NULL,
      NULL, "Slurm", "Where Slurm's commands are, if not in PATH." },
    { "slurm.cli-fallback", OPTION_BOOL, offsetof(struct settings, cli_fallback), NULL, "true",
      NULL, NULL, "Slurm",
      "As in prometheus-slurm-exporter: with =false squeue and sinfo are asked for JSON. Otherwise "
      "it has no effect; --source decides." },
    { "slurm.squeue-cli", OPTION_STRING,
      offsetof(struct settings, commands) + KIND_JOBS * sizeof(struct str), "COMMAND", NULL, NULL,
      NULL, "Slurm",
      "A command to run instead of squeue, exactly as given. It prints what squeue --json does, or "
      "the lines of JSON that prometheus-slurm-exporter asks squeue for." },
    { "slurm.sinfo-cli", OPTION_STRING,
      offsetof(struct settings, commands) + KIND_NODES * sizeof(struct str), "COMMAND", NULL, NULL,
      NULL, "Slurm", "Likewise for sinfo." },
    { "log.level", OPTION_CHOICE, offsetof(struct settings, log_level), "LEVEL", "info", "LOGLEVEL",
      "debug info warn error", "Log", "Least level of the lines written to standard error." },
};

enum { N_FIXED = COUNT(fixed_options) };

static struct option options[N_FIXED + COLLECTORS_MAX + 1];

static const struct option_command command = {
    .name = "sonde exporter",
    .summary = "export what a Slurm cluster is doing to Prometheus",
    .description =
        "Serves the state of a Slurm cluster as metrics on /metrics, in the Prometheus text format "
        "or OpenMetrics, as the scraper prefers.\n\n"
        "Slurm is asked only when somebody scrapes, at most once per poll limit, and all scrapers "
        "share the answer. While Slurm does not answer, the last values are served together with "
        "their age, and withdrawn after the stale limit.\n\n"
        "SIGHUP, or POST to /-/reload, reads the configuration again: all of it takes effect, or, "
        "if there is a mistake in it, nothing changes and the log says why.",
    .options = options,
};

/* The fixed rows, and one for each collector. */
static void make_options(void)
{
    static char names[COLLECTORS_MAX][40], helps[COLLECTORS_MAX][160];

    memcpy(options, fixed_options, sizeof(fixed_options));
    for (size_t i = 0; collectors[i]; i++) {
        snprintf(names[i], sizeof(names[i]), "collector.%s", collectors[i]->name);
        snprintf(helps[i], sizeof(helps[i]), "Give %s.", collectors[i]->help);
        options[N_FIXED + i] = (struct option){
            names[i], OPTION_BOOL,  offsetof(struct settings, collectors) + i * sizeof(bool),
            NULL,     "true",       NULL,
            NULL,     "Collectors", helps[i]
        };
    }
}

struct exporter {
    int argc;
    char **argv;
    struct arena arena; /* of the settings below */
    struct settings settings;
    struct log *log;
    struct metrics *metrics;
    struct engine *engine; /* that metrics has */
    struct http_server *server;
    pthread_mutex_t reloading; /* one at a time: a signal and a request may both ask */
};

static int check_settings(const struct settings *settings, struct err *err)
{
    if (!settings->telemetry_path.n || settings->telemetry_path.p[0] != '/')
        return err_set(err, EINVAL, "--web.telemetry-path must begin with /");
    if (settings->poll_limit_ns <= 0 || settings->timeout_ns <= 0 || settings->stale_limit_ns <= 0)
        return err_set(err, EINVAL,
                       "--slurm.poll-limit, --slurm.timeout and --slurm.stale-limit must be more "
                       "than 0");
    if (settings->demo && settings->source.n)
        return err_set(err, EINVAL, "--demo and --source exclude each other: leave one out");
    if (settings->max_connections < 1 || settings->max_connections > 100000)
        return err_set(err, EINVAL, "--web.max-connections must be from 1 to 100000");
    return 0;
}

static collector_set wanted_collectors(const struct settings *settings, const struct source *source)
{
    collector_set set = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (settings->collectors[i] && source->class->kinds & KIND_BIT(collectors[i]->kind))
            set |= (collector_set)1 << i;
    return set;
}

static struct str source_spec(const struct settings *settings)
{
    if (settings->demo)
        return STR("sim");
    return settings->source.n ? settings->source : STR("cli");
}

static struct refresh_tuning make_tuning(const struct settings *settings,
                                         const struct engine *engine)
{
    struct refresh_tuning tuning = {
        .timeout_ns = settings->timeout_ns,
        .stale_limit_ns = settings->stale_limit_ns,
        .max_backoff_ns = 60 * NS_PER_SEC,
        .publish = {
            .collectors = wanted_collectors(settings, engine->source),
            .const_labels = str_of(engine->const_labels),
            .max_segment = (size_t)256 << 20,
            .clock = &clock_real,
        },
    };

    for (int kind = 0; kind < KINDS; kind++)
        tuning.poll_limit_ns[kind] = settings->poll_limit_ns;
    return tuning;
}

static int make_engine(struct exporter *exporter, const struct settings *settings,
                       struct engine **ret, struct err *err)
{
    struct source_settings source_settings = {
        .spec = source_spec(settings),
        .bin_path = settings->bin_path,
        .is_json = !settings->cli_fallback,
        .max_output = settings->max_answer,
    };
    struct engine *engine = heap_alloc(sizeof(*engine));
    struct refresh_config config = {
        .clock = &clock_real,
        .log = exporter->log,
        .changed = metrics_changed,
        .ctx = exporter->metrics,
    };
    int code;

    memcpy(source_settings.commands, settings->commands, sizeof(settings->commands));
    code = source_open(&source_settings, &clock_real, &engine->source, err);

    if (code == 0) {
        if (engine->source->simulated)
            snprintf(engine->const_labels, sizeof(engine->const_labels), "simulated=\"true\"");
        engine->collectors = wanted_collectors(settings, engine->source);
        engine->patience_ns = settings->timeout_ns;
        config.source = engine->source;
        config.tuning = make_tuning(settings, engine);
        code = refresher_start(&config, &engine->refresher, err);
    }
    if (code < 0)
        engine_free(engine);
    else
        *ret = engine;
    return code;
}

/* Whether the same source goes on; then so does what it has told, and its pauses. */
static bool same_source(const struct settings *a, const struct settings *b)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!str_eq(a->commands[kind], b->commands[kind]))
            return false;
    return str_eq(source_spec(a), source_spec(b)) && str_eq(a->bin_path, b->bin_path) &&
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

/* What is bound at start and cannot be changed under way. */
static int check_unchanged(const struct settings *old, const struct settings *new, struct err *err)
{
    if (!same_list(old->listen, new->listen))
        return err_set(err, EINVAL, "web.listen-address has changed: restart sonde for that");
    if (!str_eq(old->web_config, new->web_config))
        return err_set(err, EINVAL, "web.config.file names another file: restart sonde for that");
    if (!str_eq(old->telemetry_path, new->telemetry_path))
        return err_set(err, EINVAL, "web.telemetry-path has changed: restart sonde for that");
    if (old->max_connections != new->max_connections)
        return err_set(err, EINVAL, "web.max-connections has changed: restart sonde for that");
    return 0;
}

static int parse_settings(int argc, char **argv, struct arena *arena, struct settings *settings,
                          struct err *err)
{
    char **rest;
    int outcome = option_parse(&command, argc, argv, environ, arena, settings, &rest, err);

    if (outcome != OPTION_GO_ON)
        return outcome;
    return check_settings(settings, err);
}

static void use_log_level(struct log *log, const struct settings *settings)
{
    enum log_level level = LOG_INFO;

    log_level_parse(settings->log_level, &level);
    log_set_level(log, level);
}

/* Everything or nothing: whatever can fail comes before whatever takes effect. */
static int reload_all(struct exporter *exporter, struct err *err)
{
    struct arena arena = { 0 };
    struct settings settings = { 0 };
    struct engine *engine = NULL;
    int code = parse_settings(exporter->argc, exporter->argv, &arena, &settings, err);

    if (code == 0)
        code = check_unchanged(&exporter->settings, &settings, err);
    if (code == 0 && !same_source(&exporter->settings, &settings))
        code = make_engine(exporter, &settings, &engine, err);
    if (code == 0)
        code = http_reload(exporter->server, err);
    if (code < 0) {
        engine_free(engine);
        arena_clear(&arena);
        return code;
    }
    if (engine) {
        metrics_set_engine(exporter->metrics, engine);
        exporter->engine = engine;
    } else {
        struct refresh_tuning tuning = make_tuning(&settings, exporter->engine);

        metrics_tune_engine(exporter->metrics, tuning.publish.collectors, settings.timeout_ns,
                            &tuning);
    }
    use_log_level(exporter->log, &settings);
    arena_clear(&exporter->arena);
    exporter->arena = arena;
    exporter->settings = settings;
    return 0;
}

static int reload(void *ctx, struct err *err)
{
    struct exporter *exporter = ctx;
    int code;

    pthread_mutex_lock(&exporter->reloading);
    code = reload_all(exporter, err);
    pthread_mutex_unlock(&exporter->reloading);
    if (code < 0)
        LOG(exporter->log, LOG_ERROR, "configuration not reloaded, the old one stays",
            LOG_STR("error", err->text));
    else
        LOG(exporter->log, LOG_INFO, "configuration reloaded");
    return code;
}

/* Better told now than at the first scrape. */
static void warn_early(const struct exporter *exporter)
{
    const struct source *source = exporter->engine->source;
    struct err err;

    if (source->class->probe && source->class->probe(source, &err) < 0)
        LOG(exporter->log, LOG_WARN, "the source cannot work",
            LOG_STR("source", source->class->name), LOG_STR("error", err.text));
}

static int start_server(struct exporter *exporter, struct err *err)
{
    const struct settings *settings = &exporter->settings;
    const struct http_config config = {
        .routes = metrics_routes(exporter->metrics),
        .ctx = exporter->metrics,
        .listen = settings->listen.items,
        .n_listen = settings->listen.n,
        .web_config = settings->web_config.n ? settings->web_config.p : NULL,
        .max_connections = (unsigned)settings->max_connections,
        .workers = 2,
        .queue = 64,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 60 * NS_PER_SEC,
        .max_header = 16 * 1024,
        .clock = &clock_real,
        .log = exporter->log,
    };

    return http_start(&config, &exporter->server, err);
}

static void say_where(const struct exporter *exporter)
{
    const struct str unix_socket = STR("unix:");
    const char *address;

    for (size_t i = 0; (address = http_address(exporter->server, i)); i++)
        printf("sonde exporter: %s%s%s\n", address,
               str_starts(str_of(address), unix_socket) ? " " : "",
               exporter->settings.telemetry_path.p);
    fflush(stdout);
}

/* Until a signal ends it. */
static void serve(struct exporter *exporter, const sigset_t *signals)
{
    for (;;) {
        struct err err = { 0 };
        int signal;

        if (sigwait(signals, &signal) != 0)
            continue;
        if (signal != SIGHUP)
            return;
        reload(exporter, &err);
    }
}

static int start(struct exporter *exporter, struct err *err)
{
    const struct metrics_config config = {
        .path = exporter->settings.telemetry_path.p,
        .clock = &clock_real,
        .reload = reload,
        .ctx = exporter,
    };
    struct engine *engine;
    int code;

    exporter->metrics = metrics_new(&config);
    code = make_engine(exporter, &exporter->settings, &engine, err);
    if (code < 0)
        return code;
    metrics_set_engine(exporter->metrics, engine);
    exporter->engine = engine;
    code = start_server(exporter, err);
    if (code < 0)
        return code;
    metrics_set_server(exporter->metrics, exporter->server);
    return 0;
}

/* Every connection is a descriptor: ask for as many as the system gives. */
static void raise_fd_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct exporter exporter = { .argc = argc, .argv = argv };
    struct err err = { 0 };
    sigset_t signals;
    int outcome, code;

    process_keep_standard_fds();
    make_options();
    outcome = parse_settings(argc, argv, &exporter.arena, &exporter.settings, &err);
    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            fprintf(stderr, "sonde exporter: %s\n", err.text);
        arena_clear(&exporter.arena);
        return outcome < 0 ? 2 : 0;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    raise_fd_limit();
    pthread_mutex_init(&exporter.reloading, NULL);
    exporter.log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    use_log_level(exporter.log, &exporter.settings);

    /* A request to reload may come as soon as there is a server. */
    pthread_mutex_lock(&exporter.reloading);
    code = start(&exporter, &err);
    if (code == 0) {
        say_where(&exporter);
        warn_early(&exporter);
    }
    pthread_mutex_unlock(&exporter.reloading);
    if (code == 0)
        serve(&exporter, &signals);
    else
        fprintf(stderr, "sonde exporter: %s\n", err.text);
    metrics_stop(exporter.metrics);
    http_stop(exporter.server);
    metrics_free(exporter.metrics);
    log_free(exporter.log);
    arena_clear(&exporter.arena);
    pthread_mutex_destroy(&exporter.reloading);
    return code == 0 ? 0 : code == -EINVAL ? 2 : 1;
}
