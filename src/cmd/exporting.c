/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporting.h"

#include "base/log.h"
#include "base/munge.h"
#include "base/process.h"
#include "http/trace.h"

#include <malloc.h>

struct exporter {
    const struct exporter_shape *shape;
    const struct clock *clock;
    int argc;
    char **argv;
    struct arena arena; /* of the settings below */
    struct settings settings;
    struct log *log;
    struct metrics *metrics;
    struct engine *engine; /* that metrics has */
    struct http_server *server;
    struct users *users; /* NULL until somebody's name is needed */
    struct trace *trace; /* this and the next: NULL unless jobs are traced */
    struct http_trace *trace_routes;
    char *trace_path, *munge_socket; /* the settings they came from may be replaced */
    pthread_mutex_t reloading;       /* one at a time: a signal and a request may both ask */
};

static struct section *traces(void *trace, const struct section *jobs)
{
    return trace_section(trace, jobs);
}

static struct users *users_of(struct exporter *exporter)
{
    if (!exporter->users)
        exporter->users = users_new(&users_system, &clock_real);
    return exporter->users;
}

/* For the feed of Lustre, whose thread may wait. */
static struct section *jobs_for_lustre(void *refresher, int64_t deadline_ns,
                                       const atomic_bool *cancelled, struct err *err)
{
    return refresher_wait(refresher, KIND_JOBS, deadline_ns, cancelled, err);
}

static int start_feed(struct feed *feed, const struct refresh_config *of,
                      const struct refresh_tuning *tuning, struct err *err)
{
    struct refresh_config config = *of;

    config.source = feed->source;
    config.tuning = *tuning;
    return refresher_start(&config, &feed->refresher, err);
}

static int start_lustre(struct exporter *exporter, const struct settings *settings,
                        struct engine *engine, struct err *err)
{
    struct lustre_settings lustre = settings_lustre(settings);

    lustre.users = users_of(exporter);
    lustre.jobs = jobs_for_lustre;
    lustre.ctx = engine->feeds[FEED_SLURM].refresher;
    return source_open_lustre(&lustre, exporter->clock, &engine->feeds[FEED_LUSTRE].source, err);
}

static int make_engine(struct exporter *exporter, const struct settings *settings,
                       struct engine **ret, struct err *err)
{
    const struct source_settings source_settings = source_options_settings(&settings->source);
    struct engine *engine = heap_alloc(sizeof(*engine));
    struct feed *slurm = &engine->feeds[FEED_SLURM], *lustre = &engine->feeds[FEED_LUSTRE];
    struct refresh_tuning tunings[FEEDS];
    struct refresh_config config = {
        .clock = exporter->clock,
        .log = exporter->log,
        .changed = metrics_changed,
        .ctx = exporter->metrics,
        .traces = exporter->trace ? traces : NULL,
        .traces_ctx = exporter->trace,
    };
    int code = source_open(&source_settings, exporter->clock, &slurm->source, err);

    if (code == 0) {
        if (exporter->shape->is_lustre)
            slurm->source->depth = SOURCE_OWNERS; /* what it needs to work is less */
        if (slurm->source->simulated)
            snprintf(engine->const_labels, sizeof(engine->const_labels), "simulated=\"true\"");
        engine->collectors = settings_collectors(settings, slurm->source);
        engine->excluded = settings->excluded_self;
        engine->patience_ns = settings->source.timeout_ns;
        settings_tunings(settings, slurm->source, engine->const_labels, tunings);
        code = start_feed(slurm, &config, &tunings[FEED_SLURM], err);
    }
    if (code == 0 && settings_want_lustre(settings)) {
        code = start_lustre(exporter, settings, engine, err);
        if (code == 0)
            code = start_feed(lustre, &config, &tunings[FEED_LUSTRE], err);
    }
    if (code < 0)
        engine_free(engine);
    else
        *ret = engine;
    return code;
}

/* Everything or nothing: whatever can fail comes before whatever takes effect. */
static int reload_all(struct exporter *exporter, struct err *err)
{
    struct arena arena = { 0 };
    struct settings settings = { 0 };
    struct engine *engine = NULL;
    int code =
        settings_parse(exporter->shape, exporter->argc, exporter->argv, &arena, &settings, err);

    if (code == 0)
        code = settings_check_reload(&exporter->settings, &settings, err);
    if (code == 0 && !settings_same_sources(&exporter->settings, &settings))
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
        struct refresh_tuning tunings[FEEDS];

        settings_tunings(&settings, exporter->engine->feeds[FEED_SLURM].source,
                         exporter->engine->const_labels, tunings);
        metrics_tune_engine(exporter->metrics, settings.source.timeout_ns, settings.excluded_self,
                            tunings);
    }
    serve_use_log_level(exporter->log, &settings.serve);
    if (exporter->trace) {
        const struct trace_config config = settings_trace(&settings, exporter->users);

        trace_tune(exporter->trace, &config);
        http_trace_set_open(exporter->trace_routes, settings.trace.is_open);
    }
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

/* Better told now than at the first scrape: that there is no Slurm, and what Slurm hides. */
static void warn_early(const struct exporter *exporter)
{
    const struct feed *slurm = &exporter->engine->feeds[FEED_SLURM];
    const struct source *source = slurm->source;
    unsigned kinds = collector_kinds(exporter->engine->collectors);
    struct err err;

    refresher_want(slurm->refresher, kinds & KIND_BIT(KIND_CONFIG), METRIC_TEXT,
                   clock_mono(&clock_real));
    if (source->class->probe && source->class->probe(source, &err) < 0)
        LOG(exporter->log, LOG_WARN, "the source cannot work",
            LOG_STR("source", source->class->name), LOG_STR("error", err.text));
}

static int start_server(struct exporter *exporter, struct err *err)
{
    struct http_config config = serve_http_config(&exporter->settings.serve, exporter->log);

    config.routes = metrics_routes(exporter->metrics);
    config.ctx = exporter->metrics;
    return http_start(&config, &exporter->server, err);
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

static void start_trace(struct exporter *exporter)
{
    const struct settings *settings = &exporter->settings;
    struct http_trace_config config = {
        .is_open = settings->trace.is_open,
        .jobs = metrics_jobs,
        .ctx = exporter->metrics,
        .unseal = munge_unseal,
        .clock = &clock_real,
        .log = exporter->log,
    };
    struct trace_config trace_config;

    trace_config = settings_trace(settings, users_of(exporter));
    exporter->trace = trace_new(&trace_config);
    exporter->trace_path = heap_str(settings->trace.path);
    if (settings->trace.munge_socket.n)
        exporter->munge_socket = heap_str(settings->trace.munge_socket);
    config.path = exporter->trace_path;
    config.munge_socket = exporter->munge_socket;
    config.trace = exporter->trace;
    exporter->trace_routes = http_trace_new(&config);
    metrics_add_trace(exporter->metrics, exporter->trace, exporter->trace_routes,
                      exporter->trace_path);
}

static int start(struct exporter *exporter, struct err *err)
{
    const struct metrics_config config = {
        .path = exporter->settings.serve.telemetry_path.p,
        .program = exporter->shape->name,
        .what = exporter->shape->what,
        .log = exporter->log,
        .clock = &clock_real,
        .reload = reload,
        .ctx = exporter,
    };
    struct engine *engine;
    int code;

    exporter->metrics = metrics_new(&config);
    if (exporter->settings.trace.is_enabled)
        start_trace(exporter);
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

/* A refresh builds megabytes and frees megabytes. With the threshold that grows by itself these
 * would soon come from the heap and leave holes in it; as mappings they go back at once. */
static void tame_malloc(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_ARENA_MAX, 2);
}

int exporter_main(const struct exporter_shape *shape, int argc, char **argv)
{
    struct exporter exporter = {
        .shape = shape, .clock = clock_of_environment(), .argc = argc, .argv = argv
    };
    struct err err = { 0 };
    sigset_t signals;
    int outcome, code;

    tame_malloc();
    process_keep_standard_fds();
    outcome = settings_parse(shape, argc, argv, &exporter.arena, &exporter.settings, &err);
    if (outcome != OPTION_GO_ON) {
        if (outcome < 0)
            fprintf(stderr, "%s: %s\n", shape->name, err.text);
        arena_clear(&exporter.arena);
        return outcome < 0 ? 2 : 0;
    }
    serve_prepare(&signals);
    pthread_mutex_init(&exporter.reloading, NULL);
    exporter.log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    serve_use_log_level(exporter.log, &exporter.settings.serve);

    /* A request to reload may come as soon as there is a server. */
    pthread_mutex_lock(&exporter.reloading);
    code = start(&exporter, &err);
    if (code == 0) {
        serve_say_where(shape->name, exporter.server, exporter.settings.serve.telemetry_path);
        warn_early(&exporter);
    }
    pthread_mutex_unlock(&exporter.reloading);
    if (code == 0)
        serve(&exporter, &signals);
    else
        fprintf(stderr, "%s: %s\n", shape->name, err.text);
    metrics_stop(exporter.metrics);
    http_stop(exporter.server);
    http_trace_free(exporter.trace_routes);
    metrics_free(exporter.metrics);
    trace_free(exporter.trace);
    users_free(exporter.users);
    free(exporter.trace_path);
    free(exporter.munge_socket);
    log_free(exporter.log);
    arena_clear(&exporter.arena);
    pthread_mutex_destroy(&exporter.reloading);
    return serve_exit_status(code);
}
