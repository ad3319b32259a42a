/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/exporting.h"

#include "base/log.h"
#include "base/munge.h"
#include "base/process.h"
#include "http/ingest.h"
#include "http/trace.h"
#include "record/history.h"
#include "record/kept.h"

#include <malloc.h>

struct exporter;

/* Hands what is seen of a cluster to the recorder. */
struct watched {
    struct exporter *exporter;
    size_t cluster;
};

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
    struct recorder *recorder;       /* NULL: nothing is kept; as the next ones */
    struct watched watched[CLUSTERS_MAX];
    struct history *histories[CLUSTERS_MAX];
    struct keep *keeps[CLUSTERS_MAX]; /* of the histories */
    struct http_ingest *ingest;
    char *token_file;
    pthread_mutex_t reloading; /* one at a time: a signal and a request may both ask */
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

/* On the refresher's thread. */
static void note(void *ctx, struct section *section)
{
    const struct watched *watched = ctx;
    struct recorder *recorder = watched->exporter->recorder;

    if (section->kind == KIND_CONFIG)
        recorder_name(recorder, watched->cluster, section_text(section, section->config.cluster));
    else if (section->kind == KIND_JOBS || section->kind == KIND_NODES)
        recorder_note(recorder, watched->cluster, section);
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

static int open_kept(struct exporter *exporter, const struct settings *settings, size_t i,
                     struct engine_cluster *cluster, struct err *err)
{
    const struct kept_settings kept = {
        .url = settings->store.url,
        .allocations_file = settings->store.allocations_file,
        .recorder = exporter->recorder,
        .cluster = i,
        .is_simulated = cluster->feeds[FEED_SLURM].source->simulated,
    };

    return source_open_kept(&kept, exporter->clock, &cluster->feeds[FEED_STORE].source, err);
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

static int open_keep(const struct cluster_options *options, struct keep **ret, struct err *err)
{
    return keep_new(options->accounts.items, options->accounts.n, options->users.items,
                    options->users.n, ret, err);
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
    return open_keep(options, &cluster->keep, err);
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
        .noted = exporter->recorder ? note : NULL,
        .noted_ctx = &exporter->watched[i],
    };
    int code;

    settings_tunings(settings, i, cluster, tunings);
    code = start_feed(&cluster->feeds[FEED_SLURM], &config, &tunings[FEED_SLURM], err);
    config.noted = NULL;
    if (code == 0 && settings_want_lustre(settings)) {
        code = open_lustre(exporter, settings, cluster, err);
        if (code == 0)
            code = start_feed(&cluster->feeds[FEED_LUSTRE], &config, &tunings[FEED_LUSTRE], err);
    }
    if (code == 0 && exporter->recorder) {
        code = open_kept(exporter, settings, i, cluster, err);
        if (code == 0)
            code = start_feed(&cluster->feeds[FEED_STORE], &config, &tunings[FEED_STORE], err);
    }
    return code;
}
/* What is simulated and what is real are never in one store. */
static int start_recorder(struct exporter *exporter, const struct settings *settings,
                          const struct engine *engine, struct err *err)
{
    struct recorded_cluster clusters[CLUSTERS_MAX];
    const struct recorder_config config = {
        .url = settings->store.url,
        .is_simulated = engine->clusters[0].feeds[FEED_SLURM].source->simulated,
        .clusters = clusters,
        .n_clusters = engine->n_clusters,
        .clock = exporter->clock,
        .log = exporter->log,
    };

    for (size_t i = 0; i < engine->n_clusters; i++) {
        if (engine->clusters[i].feeds[FEED_SLURM].source->simulated != config.is_simulated)
            return err_set(err, EINVAL,
                           "one store does not take simulated and real clusters: run an exporter "
                           "for each");
        clusters[i] = (struct recorded_cluster){ .name = settings->clusters[i].name,
                                                 .retention_ns = settings->clusters[i].retention_ns,
                                                 .max_bytes = settings->clusters[i].max_bytes };
        exporter->watched[i] = (struct watched){ exporter, i };
    }
    return recorder_start(&config, &exporter->recorder, err);
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
    if (code == 0 && settings_want_store(settings) && !exporter->recorder)
        code = start_recorder(exporter, settings, engine, err);
    for (size_t i = 0; code == 0 && i < settings->n_clusters; i++)
        code = start_cluster(exporter, settings, i, &engine->clusters[i], err);
    engine->collectors = settings_collectors(settings, engine);
    engine->profile = settings->profile;
    engine->excluded = settings->excluded_self;
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
        .tunings = tunings,
    };

    for (size_t i = 0; i < settings->n_clusters; i++)
        settings_tunings(settings, i, &exporter->engine->clusters[i], tunings[i]);
    metrics_tune_engine(exporter->metrics, &tuning);
    free(tunings);
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
        tune_engine(exporter, &settings);
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
    unsigned kinds = collector_kinds(exporter->engine->collectors);
    struct err err;

    for (size_t i = 0; i < exporter->engine->n_clusters; i++) {
        const struct feed *slurm = &exporter->engine->clusters[i].feeds[FEED_SLURM];
        const struct source *source = slurm->source;

        refresher_want(slurm->refresher, kinds & KIND_BIT(KIND_CONFIG), METRIC_TEXT,
                       clock_mono(&clock_real));
        if (source->class->probe && source->class->probe(source, &err) < 0)
            LOG(exporter->log, LOG_WARN, "the source cannot work",
                LOG_STR("source", source->class->name),
                LOG_STR("cluster", exporter->engine->clusters[i].name), LOG_STR("error", err.text));
    }
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

/* A recording or a simulation has no slurmdbd. */
static bool has_history(const struct settings *settings, const struct source *source)
{
    return settings->store.history.is_on && !source->simulated &&
           strcmp(source->class->name, "replay") != 0;
}

static int start_histories(struct exporter *exporter, struct err *err)
{
    const struct settings *settings = &exporter->settings;
    const struct engine *engine = exporter->engine;
    int code = 0;

    for (size_t i = 0; code == 0 && i < engine->n_clusters; i++) {
        struct history_config config = {
            .recorder = exporter->recorder,
            .cluster = i,
            .name = engine->clusters[i].name ? engine->clusters[i].name : "",
            .source = source_options_settings(&settings->clusters[i].source),
            .interval_ns = settings->store.history.interval_ns,
            .timeout_ns = settings->store.history.timeout_ns,
            .first_time = settings->history_from,
            .clock = exporter->clock,
            .log = exporter->log,
        };

        if (!has_history(settings, engine->clusters[i].feeds[FEED_SLURM].source))
            continue;
        code = open_keep(&settings->clusters[i], &exporter->keeps[i], err);
        config.keep = exporter->keeps[i];
        if (code == 0)
            code = history_start(&config, &exporter->histories[i], err);
    }
    return code;
}

static void start_ingest(struct exporter *exporter)
{
    struct http_ingest_config config = {
        .recorder = exporter->recorder,
        .clock = exporter->clock,
        .log = exporter->log,
    };
    struct http_route routes[HTTP_INGEST_ROUTES];

    exporter->token_file = heap_str(exporter->settings.store.token_file);
    config.token_file = exporter->token_file;
    exporter->ingest = http_ingest_new(&config);
    http_ingest_routes(exporter->ingest, routes);
    for (size_t i = 0; i < HTTP_INGEST_ROUTES; i++)
        metrics_add_route(exporter->metrics, &routes[i]);
}

static void tell_history(struct history *history, struct self_cluster *cluster)
{
    struct history_stats stats;

    history_stats(history, &stats);
    cluster->has_history = true;
    cluster->history = (struct self_history){
        .is_up = stats.is_up,
        .questions = stats.questions,
        .failures = stats.failures,
        .records = stats.records,
        .skipped = stats.skipped,
        .since = stats.since,
        .until = stats.until,
        .is_complete = stats.is_complete,
    };
}

static bool tell_store(void *ctx, struct self_store *store, struct self_cluster *clusters, size_t n)
{
    struct exporter *exporter = ctx;
    struct http_ingest_stats ingest;
    struct recorder_stats stats;

    if (!exporter->recorder)
        return false;
    recorder_stats(exporter->recorder, &stats);
    *store = (struct self_store){
        .is_up = stats.is_up,
        .commits = stats.commits,
        .jobs = stats.jobs,
        .finals = stats.finals,
        .unchanged = stats.unchanged,
        .replaced = stats.replaced,
        .last_seconds = stats.last_seconds,
        .behind_seconds = stats.behind_seconds,
        .bytes = stats.size.bytes,
        .runs = stats.size.runs,
        .takes_posts = exporter->ingest != NULL,
    };
    for (size_t i = 0; i < RECORDER_REASONS && stats.errors[i].reason; i++) {
        store->errors[i].reason = stats.errors[i].reason;
        store->errors[i].count = stats.errors[i].count;
    }
    if (exporter->ingest) {
        http_ingest_stats(exporter->ingest, &ingest);
        store->posts = ingest.posts;
        store->posts_refused = ingest.refused;
    }
    for (size_t i = 0; i < n; i++)
        if (exporter->histories[i])
            tell_history(exporter->histories[i], &clusters[i]);
    return true;
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
        .tell_store = tell_store,
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
    if (exporter->recorder)
        code = start_histories(exporter, err);
    if (exporter->recorder && exporter->settings.store.token_file.n)
        start_ingest(exporter);
    if (code == 0)
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
    http_ingest_free(exporter.ingest);
    for (size_t i = 0; i < CLUSTERS_MAX; i++)
        history_stop(exporter.histories[i]);
    metrics_free(exporter.metrics);
    recorder_stop(exporter.recorder);
    for (size_t i = 0; i < CLUSTERS_MAX; i++)
        keep_free(exporter.keeps[i]);
    free(exporter.token_file);
    trace_free(exporter.trace);
    users_free(exporter.users);
    free(exporter.trace_path);
    free(exporter.munge_socket);
    log_free(exporter.log);
    arena_clear(&exporter.arena);
    pthread_mutex_destroy(&exporter.reloading);
    return serve_exit_status(code);
}
