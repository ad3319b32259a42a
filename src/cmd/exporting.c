/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts the parts of an exporter, serves until a signal arrives, and stops them. */
#include "cmd/exporting.h"

#include "base/log.h"
#include "base/munge.h"
#include "base/process.h"
#include "base/stop_guard.h"
#include "cmd/drain_child.h"
#include "cmd/keeping.h"
#include "http/trace.h"

#include <malloc.h>

struct exporter {
    const struct exporter_shape *shape;
    const struct clock *clock;
    int argc;
    char **argv;
    struct arena arena; /* of the settings below */
    struct settings *settings;
    struct log *log;
    struct metrics *metrics;
    struct engine *engine; /* that metrics has */
    struct http_server *server;
    struct users *users; /* NULL until somebody's name is needed */
    struct trace *trace; /* this and the next: NULL unless jobs are traced */
    struct http_trace *trace_routes;
    char *trace_path, *munge_socket; /* the settings they came from may be replaced */
    struct keeping keeping;
    struct drain_child *drain; /* NULL: mails are none of ours */
    struct stop_guard *guard;  /* NULL: not started yet */
    pthread_mutex_t reloading; /* one at a time: a signal and a request may both ask */
};

static struct section *traces(void *trace, const struct section *jobs)
{
    return trace_section(trace, jobs);
}

static struct users *users_of(struct exporter *exporter)
{
    if (!exporter->users)
        exporter->users = users_new(&users_system, exporter->clock);
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

static int open_lustre(struct exporter *exporter, const struct settings *settings,
                       struct engine_cluster *cluster, struct err *err)
{
    struct lustre_settings lustre = settings_lustre(settings);

    lustre.users = users_of(exporter);
    lustre.jobs = jobs_for_lustre;
    lustre.ctx = cluster->feeds[FEED_SLURM].refresher;
    return source_open_lustre(&lustre, exporter->clock, &cluster->feeds[FEED_LUSTRE].source, err);
}

/* `cluster="a",simulated="true"`, as far as it has to be said. */
static char *make_labels(const struct settings *settings, struct str name, bool is_simulated)
{
    char text[CLUSTER_NAME_MAX + 40] = "";
    int n = 0;

    if (settings->cluster_files.n)
        n = snprintf(text, sizeof(text), "cluster=\"%.*s\"", STR_ARG(name));
    if (is_simulated)
        snprintf(text + n, sizeof(text) - (size_t)n, "%ssimulated=\"true\"", n ? "," : "");
    return heap_str(str_of(text));
}

static int open_cluster(struct exporter *exporter, const struct settings *settings, size_t i,
                        struct engine_cluster *cluster, struct err *err)
{
    const struct cluster_options *options = &settings->clusters[i];
    const struct source_settings source_settings = source_options_settings(&options->source);
    struct feed *slurm = &cluster->feeds[FEED_SLURM];
    int code = source_open(&source_settings, exporter->clock, &slurm->source, err);

    if (code < 0)
        return code;
    if (exporter->shape->is_lustre)
        slurm->source->depth = SOURCE_OWNERS; /* what it needs to work is less */
    if (options->name.n)
        cluster->name = heap_str(options->name);
    cluster->is_labelled = settings->cluster_files.n > 0;
    cluster->const_labels = make_labels(settings, options->name, slurm->source->simulated);
    return cluster_options_keep(options, &cluster->keep, err);
}

static int start_cluster(struct exporter *exporter, const struct settings *settings, size_t i,
                         struct engine_cluster *cluster, struct err *err)
{
    struct refresh_tuning tunings[FEEDS];
    struct refresh_config config = {
        .clock = exporter->clock,
        .log = exporter->log,
        .cluster = cluster->name,
        .changed = metrics_changed,
        .ctx = exporter->metrics,
        .traces = exporter->trace ? traces : NULL,
        .traces_ctx = exporter->trace,
        .keep = cluster->keep,
    };
    int code;

    keeping_watch(&exporter->keeping, i, &config);
    settings_tunings(settings, i, cluster, tunings);
    code = start_feed(&cluster->feeds[FEED_SLURM], &config, &tunings[FEED_SLURM], err);
    config.noted = NULL;
    config.waits = NULL;
    if (code == 0 && settings_want_lustre(settings)) {
        code = open_lustre(exporter, settings, cluster, err);
        if (code == 0)
            code = start_feed(&cluster->feeds[FEED_LUSTRE], &config, &tunings[FEED_LUSTRE], err);
    }
    if (code == 0 && exporter->keeping.recorder) {
        code = keeping_open_source(&exporter->keeping, settings, i, cluster, err);
        if (code == 0)
            code = start_feed(&cluster->feeds[FEED_STORE], &config, &tunings[FEED_STORE], err);
    }
    return code;
}
static int make_engine(struct exporter *exporter, const struct settings *settings,
                       struct engine **ret, struct err *err)
{
    struct engine *engine = heap_alloc(sizeof(*engine));
    int code = 0;

    for (size_t i = 0; code == 0 && i < settings->n_clusters; i++) {
        engine->n_clusters = i + 1;
        code = open_cluster(exporter, settings, i, &engine->clusters[i], err);
    }
    if (code == 0 && settings_want_store(settings) && !exporter->keeping.recorder)
        code = keeping_start_recorder(&exporter->keeping, settings, engine, err);
    for (size_t i = 0; code == 0 && i < settings->n_clusters; i++)
        code = start_cluster(exporter, settings, i, &engine->clusters[i], err);
    engine->collectors = settings_collectors(settings, engine);
    engine->profile = settings->profile;
    engine->excluded = settings->excluded_self;
    engine->excluded_up = settings->excluded_up;
    engine->patience_ns = settings_patience(settings);
    if (code < 0)
        engine_free(engine);
    else
        *ret = engine;
    return code;
}

static void tune_engine(struct exporter *exporter, const struct settings *settings)
{
    struct refresh_tuning(*tunings)[FEEDS] = heap_array(settings->n_clusters, sizeof(*tunings));
    const struct engine_tuning tuning = {
        .collectors = settings_collectors(settings, exporter->engine),
        .profile = settings->profile,
        .patience_ns = settings_patience(settings),
        .excluded = settings->excluded_self,
        .excluded_up = settings->excluded_up,
        .tunings = tunings,
    };

    for (size_t i = 0; i < settings->n_clusters; i++)
        settings_tunings(settings, i, &exporter->engine->clusters[i], tunings[i]);
    metrics_tune_engine(exporter->metrics, &tuning);
    free(tunings);
}

/* What a reload has made so far. */
struct reloaded {
    struct arena arena;
    struct settings *settings;
    struct engine *engine; /* NULL: the old one goes on, with other tuning */
    bool has_summaries;
    struct summaries *summaries;
};

static int read_again(struct exporter *exporter, struct reloaded *new, struct err *err)
{
    const struct settings *old = exporter->settings;
    int code = settings_parse(exporter->shape, exporter->argc, exporter->argv, &new->arena,
                              new->settings, err);

    if (code == 0)
        code = settings_check_reload(exporter->shape, old, new->settings, err);
    if (code == 0 && !settings_same_sources(old, new->settings))
        code = make_engine(exporter, new->settings, &new->engine, err);
    new->has_summaries =
        code == 0 && exporter->keeping.recorder && !settings_same_summaries(old, new->settings);
    if (new->has_summaries)
        code = keeping_make_summaries(&exporter->keeping, new->settings,
                                      new->engine ? new->engine : exporter->engine, &new->summaries,
                                      err);
    return code < 0 ? code : http_reload(exporter->server, err);
}

static void use_engine(struct exporter *exporter, const struct reloaded *new)
{
    const struct exporter_hooks *hooks = exporter->shape->hooks;

    if (!new->engine) {
        tune_engine(exporter, new->settings);
        return;
    }
    if (hooks)
        hooks->use_engine(hooks->ctx, new->engine);
    metrics_set_engine(exporter->metrics, new->engine);
    exporter->engine = new->engine;
}

/* Everything or nothing: whatever can fail comes before whatever takes effect. */
static int reload_all(struct exporter *exporter, struct err *err)
{
    struct reloaded new = { .settings = heap_alloc(settings_size(exporter->shape)) };
    int code = read_again(exporter, &new, err);

    if (code < 0) {
        summaries_stop(new.summaries);
        engine_free(new.engine);
        arena_clear(&new.arena);
        free(new.settings);
        return code;
    }
    use_engine(exporter, &new);
    if (new.has_summaries)
        keeping_use_summaries(&exporter->keeping, new.summaries);
    serve_use_log_level(exporter->log, &new.settings->serve);
    if (exporter->trace) {
        const struct trace_config config = settings_trace(new.settings, exporter->users);

        trace_tune(exporter->trace, &config);
        http_trace_set_open(exporter->trace_routes, new.settings->trace.is_open);
    }
    arena_clear(&exporter->arena);
    free(exporter->settings);
    exporter->arena = new.arena;
    exporter->settings = new.settings;
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
    unsigned kinds = collector_kinds(exporter->engine->collectors);
    struct err err;

    for (size_t i = 0; i < exporter->engine->n_clusters; i++) {
        const struct feed *slurm = &exporter->engine->clusters[i].feeds[FEED_SLURM];
        const struct source *source = slurm->source;

        refresher_want(slurm->refresher, kinds & KIND_BIT(KIND_CONFIG), METRIC_TEXT,
                       clock_mono(exporter->clock));
        if (source->class->probe && source->class->probe(source, &err) < 0)
            LOG(exporter->log, LOG_WARN, "the source cannot work",
                LOG_STR("source", source->class->name),
                LOG_STR("cluster", exporter->engine->clusters[i].name), LOG_STR("error", err.text));
    }
}

static int start_server(struct exporter *exporter, struct err *err)
{
    struct http_config config =
        serve_http_config(&exporter->settings->serve, exporter->clock, exporter->log);

    config.routes = metrics_routes(exporter->metrics);
    config.ctx = exporter->metrics;
    if (exporter->shape->hooks)
        exporter->shape->hooks->configure(exporter->settings, &config);
    return http_start(&config, &exporter->server, err);
}

/* Until a signal ends it. */
static void serve(struct exporter *exporter)
{
    while (stop_guard_wait(exporter->guard, -1) == SIGHUP) {
        stop_guard_part(exporter->guard, "reload");
        reload(exporter, &(struct err){ 0 });
    }
}

static bool may_scrape(void *ctx, const struct http_exchange *x)
{
    const struct exporter *exporter = ctx;

    return exporter->shape->hooks->may_scrape(exporter->shape->hooks->ctx, x);
}

static void tell_up(void *ctx, struct up_self *up_self)
{
    const struct exporter *exporter = ctx;

    exporter->shape->hooks->tell_up(exporter->shape->hooks->ctx, up_self);
}

static void start_trace(struct exporter *exporter)
{
    const struct settings *settings = exporter->settings;
    struct http_trace_config config = {
        .is_open = settings->trace.is_open,
        .jobs = metrics_jobs,
        .ctx = exporter->metrics,
        .may_look = exporter->shape->hooks ? may_scrape : NULL,
        .look_ctx = exporter,
        .unseal = munge_unseal,
        .clock = exporter->clock,
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

static bool tell_store(void *ctx, struct self_store *store, struct self_cluster *clusters, size_t n)
{
    struct exporter *exporter = ctx;

    return keeping_tell(&exporter->keeping, store, clusters, n);
}

static enum self_drain tell_drain(void *ctx)
{
    const struct exporter *exporter = ctx;

    if (!exporter->drain)
        return SELF_NO_DRAIN;
    return drain_child_is_up(exporter->drain) ? SELF_DRAIN_UP : SELF_DRAIN_DOWN;
}

static int start_drain(struct exporter *exporter, struct err *err)
{
    const struct drain_child_config config = {
        .config_file = exporter->settings->report_config.p,
        .clock = exporter->clock,
        .log = exporter->log,
    };

    return drain_child_start(&config, &exporter->drain, err);
}

static int start(struct exporter *exporter, struct err *err)
{
    const struct metrics_config config = {
        .path = exporter->settings->serve.telemetry_path.p,
        .program = exporter->shape->name,
        .what = exporter->shape->what,
        .has_pages = exporter->shape->hooks != NULL,
        .log = exporter->log,
        .clock = exporter->clock,
        .reload = reload,
        .tell_store = tell_store,
        .tell_drain = tell_drain,
        .tell_up = exporter->shape->hooks ? tell_up : NULL,
        .may_scrape = exporter->shape->hooks ? may_scrape : NULL,
        .ctx = exporter,
    };
    const struct exporter_hooks *hooks = exporter->shape->hooks;
    struct engine *engine;
    int code;

    exporter->metrics = metrics_new(&config);
    if (exporter->settings->trace.is_enabled)
        start_trace(exporter);
    code = make_engine(exporter, exporter->settings, &engine, err);
    if (code < 0)
        return code;
    metrics_set_engine(exporter->metrics, engine);
    exporter->engine = engine;
    if (exporter->keeping.recorder)
        code =
            keeping_start(&exporter->keeping, exporter->settings, engine, exporter->metrics, err);
    if (code == 0 && exporter->settings->report_config.n)
        code = start_drain(exporter, err);
    if (code == 0 && hooks)
        code = hooks->start(hooks->ctx, engine, exporter->keeping.recorder, exporter->metrics, err);
    if (code == 0)
        code = start_server(exporter, err);
    if (code == 0 && hooks)
        code = hooks->serve(hooks->ctx, exporter->server, err);
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

/* What Slurm said last is written; what agents posted and was not acknowledged, they post again. */
static void save(void *ctx, int64_t until_ns)
{
    struct exporter *exporter = ctx;

    recorder_save(exporter->keeping.recorder, until_ns);
}

static void clean(void *ctx)
{
    const struct exporter *exporter = ctx;

    if (exporter->shape->hooks)
        exporter->shape->hooks->clean(exporter->shape->hooks->ctx);
}

static void guard_data(struct exporter *exporter, void (*save_data)(void *ctx, int64_t until_ns))
{
    stop_guard_use(exporter->guard, &(struct stop_guard_hooks){
                                        .save = save_data, .clean = clean, .ctx = exporter });
}

/* What takes its time is begun first, so that all of it stops at the same time. */
static void begin_stop(struct exporter *exporter)
{
    const struct exporter_hooks *hooks = exporter->shape->hooks;

    if (exporter->metrics)
        metrics_stop(exporter->metrics);
    keeping_cancel_askers(&exporter->keeping);
    drain_child_end(exporter->drain);
    if (hooks)
        hooks->end(hooks->ctx);
}

static void stop_parts(struct exporter *exporter)
{
    const struct exporter_hooks *hooks = exporter->shape->hooks;
    struct stop_guard *guard = exporter->guard;

    stop_guard_part(guard, "HTTP server");
    begin_stop(exporter);
    http_stop(exporter->server);
    if (hooks)
        hooks->stop(hooks->ctx, guard);
    stop_guard_part(guard, "slurmdbd, Prometheus");
    http_trace_free(exporter->trace_routes);
    keeping_stop_askers(&exporter->keeping);
    stop_guard_part(guard, "sonde report --drain");
    drain_child_stop(exporter->drain);
    stop_guard_part(guard, "Slurm, Prometheus, store");
    metrics_free(exporter->metrics);
    guard_data(exporter, NULL);
    stop_guard_writer(guard, "store");
    keeping_end(&exporter->keeping);
    stop_guard_part(guard, "lookup of users");
    trace_free(exporter->trace);
    users_free(exporter->users);
    stop_guard_end(guard);
}

static void stop(struct exporter *exporter)
{
    stop_parts(exporter);
    free(exporter->trace_path);
    free(exporter->munge_socket);
    log_free(exporter->log);
    pthread_mutex_destroy(&exporter->reloading);
}

/* From the settings to a signal; what to exit with. */
static int run(struct exporter *exporter)
{
    const struct exporter_shape *shape = exporter->shape;
    struct err err = { 0 };
    sigset_t signals;
    int code = 0;

    serve_prepare(&signals);
    pthread_mutex_init(&exporter->reloading, NULL);
    exporter->log = log_new(STDERR_FILENO, LOG_INFO, &clock_real);
    keeping_init(&exporter->keeping, exporter->clock, exporter->log);
    serve_use_log_level(exporter->log, &exporter->settings->serve);

    /* A request to reload may come as soon as there is a server. */
    pthread_mutex_lock(&exporter->reloading);
    if (shape->hooks)
        code = shape->hooks->prepare(shape->hooks->ctx, exporter->settings, exporter->log, &err);
    if (code == 0)
        code = stop_guard_start(&signals, exporter->clock, exporter->log, &exporter->guard, &err);
    if (code == 0) {
        guard_data(exporter, save);
        code = start(exporter, &err);
    }
    if (code == 0) {
        serve_say_where(shape->name, exporter->server,
                        shape->hooks ? STR("/") : exporter->settings->serve.telemetry_path);
        warn_early(exporter);
    }
    pthread_mutex_unlock(&exporter->reloading);
    if (code == 0) {
        serve(exporter);
    } else {
        fprintf(stderr, "%s: %s\n", shape->name, err.text);
        stop_guard_fail(exporter->guard, serve_exit_status(code));
    }
    stop(exporter);
    return serve_exit_status(code);
}

int exporter_main(const struct exporter_shape *shape, int argc, char **argv)
{
    struct exporter exporter = {
        .shape = shape,
        .clock = clock_of_environment(),
        .argc = argc,
        .argv = argv,
        .settings = heap_alloc(settings_size(shape)),
    };
    struct err err = { 0 };
    int outcome, status;

    tame_malloc();
    process_keep_standard_fds();
    outcome = settings_parse(shape, argc, argv, &exporter.arena, exporter.settings, &err);
    if (outcome < 0)
        fprintf(stderr, "%s: %s\n", shape->name, err.text);
    status = outcome < 0 ? 2 : 0;
    if (outcome == OPTION_GO_ON)
        status = run(&exporter);
    arena_clear(&exporter.arena);
    free(exporter.settings);
    return status;
}
