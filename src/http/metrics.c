/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "http/metrics.h"

#include "collector/self.h"
#include "http/landing.h"
#include "http/lifecycle.h"
#include "http/negotiate.h"
#include "http/scrape.h"
#include "http/trace.h"

enum {
    TAIL_BYTES = 1 << 20,
    LANDING_BYTES = 64 * 1024,
};

struct metrics {
    struct metrics_config config;
    char *path; /* the configuration it came from may be replaced */
    struct lifecycle lifecycle;
    /* the last one ends the table */
    struct http_route routes[2 + LIFECYCLE_ROUTES + HTTP_TRACE_ROUTES + 1];
    size_t n_routes;
    struct trace *trace;    /* NULL: off */
    int64_t jobs_wanted_at; /* by somebody who posts: once a second is enough */
    const char *trace_path;
    pthread_mutex_t lock; /* guards engine and server; never held for longer than a handler runs */
    struct engine *engine;
    uint64_t engine_number; /* grows with each other engine */
    struct http_server *server;
    bool is_stopping;
    uint64_t answered, refused; /* scrapes */
    unsigned waiting;           /* likewise; the HTTP thread's own, as what follows */
    struct pages pages;
};

struct engine *engine_free(struct engine *engine)
{
    if (engine) {
        refresher_stop(engine->refresher);
        source_close(engine->source);
        free(engine);
    }
    return NULL;
}

/* What became of those that are on, in this format. */
static size_t tell_collectors(const struct engine *engine, const struct snapshot *snapshot,
                              enum metric_format format,
                              struct program_collector to[COLLECTORS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++) {
        const struct edition *edition = snapshot->editions[collectors[i]->kind];

        if (!(engine->collectors & (collector_set)1 << i))
            continue;
        to[n] = (struct program_collector){ .name = collectors[i]->name };
        if (edition && edition->collectors[i].segments[format]) {
            const struct edition_collector *rendered = &edition->collectors[i];

            to[n].is_shown = true;
            to[n].is_over = rendered->is_over;
            to[n].seconds = rendered->seconds;
            to[n].samples = rendered->samples;
            to[n].duplicates = rendered->duplicates;
            to[n].folded = rendered->folded;
        }
        n++;
    }
    return n;
}

/* What sonde says of itself, and the end of the exposition. */
static struct segment *make_tail(struct metrics *metrics, struct engine *engine,
                                 const struct snapshot *snapshot, enum metric_format format)
{
    struct program_collector told[COLLECTORS_MAX];
    struct refresh_stats stats;
    struct trace_stats traces;
    struct metric_writer writer;
    struct segment *tail;
    struct self self;
    struct buf text;

    refresher_stats(engine->refresher, &stats);
    self = (struct self){
        .source = engine->source->class->name,
        .stats = &stats,
        .program = {
            .collectors = told,
            .n_collectors = tell_collectors(engine, snapshot, format, told),
            .scrapes_in_flight = metrics->waiting + 1,
            .scrapes_answered = metrics->answered,
            .scrapes_refused = metrics->refused,
        },
    };
    scrape_tell(metrics->server, &self.program);
    if (metrics->trace) {
        trace_stats(metrics->trace, &traces);
        self.traces = &traces;
    }
    process_read(&self.program.process);
    buf_init(&text, TAIL_BYTES);
    metric_writer_init(&writer, &text, format, str_of(engine->const_labels), self_families,
                       n_self_families);
    writer.excluded = engine->excluded;
    writer.is_unchecked = true;
    self_collect(&self, &writer);
    metric_writer_free(&writer);
    buf_put(&text, metric_eof(format));
    tail = segment_new_stored(&text);
    buf_free(&text);
    return tail;
}

static struct http_body *make_body(struct metrics *metrics, struct engine *engine,
                                   struct snapshot *snapshot, struct scrape scrape)
{
    struct segment *segments[COLLECTORS_MAX + 1];
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++) {
        const struct edition *edition = snapshot->editions[collectors[i]->kind];

        if (edition && scrape.collectors & (collector_set)1 << i &&
            edition->collectors[i].segments[scrape.format])
            segments[n++] = segment_ref(edition->collectors[i].segments[scrape.format]);
    }
    segments[n++] = make_tail(metrics, engine, snapshot, scrape.format);
    return scrape_body(scrape, segments, n);
}

static struct page_version version_of(const struct metrics *metrics,
                                      const struct snapshot *snapshot)
{
    return (struct page_version){ metrics->engine_number, snapshot->serial };
}

/* While Slurm hangs, a format that nobody has asked for before cannot be rendered: then the text
 * format, which every scraper reads, is better than nothing. */
static enum metric_format best_format(const struct snapshot *snapshot, enum metric_format wanted)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (snapshot->editions[kind] && !(snapshot->editions[kind]->formats & FORMAT_BIT(wanted)) &&
            snapshot->editions[kind]->formats & FORMAT_BIT(METRIC_TEXT))
            return METRIC_TEXT;
    return wanted;
}

/* Made anew when the snapshot has changed or the tail has aged. */
static struct http_body *ready_body(struct metrics *metrics, struct engine *engine,
                                    struct scrape scrape)
{
    struct snapshot *snapshot = refresher_snapshot(engine->refresher);
    struct page_version version = version_of(metrics, snapshot);
    int64_t now = clock_mono(metrics->config.clock);
    struct http_body *body;

    scrape.format = best_format(snapshot, scrape.format);
    body = pages_get(&metrics->pages, scrape, version, now);
    if (!body)
        body = pages_put(&metrics->pages, scrape, version, now,
                         make_body(metrics, engine, snapshot, scrape));
    snapshot_unref(snapshot);
    return body;
}

static void leave_queue(void *metrics)
{
    ((struct metrics *)metrics)->waiting--;
}

/* For new data, until then at most. Pages of what has been replaced meanwhile only take memory. */
static enum http_verdict wait_until(struct metrics *metrics, struct http_exchange *x, int64_t until)
{
    struct snapshot *snapshot = refresher_snapshot(metrics->engine->refresher);
    void **state = http_state(x, leave_queue);

    pages_drop_old(&metrics->pages, version_of(metrics, snapshot));
    snapshot_unref(snapshot);
    metrics->waiting += !*state;
    *state = metrics;
    http_wait_until(x, until);
    return HTTP_WAIT;
}

static void stop_waiting(struct metrics *metrics, struct http_exchange *x)
{
    void **state = http_state(x, leave_queue);

    metrics->waiting -= *state != NULL;
    *state = NULL;
}

static enum http_verdict answer(struct metrics *metrics, struct http_exchange *x)
{
    struct engine *engine = metrics->engine;
    int64_t now = clock_mono(metrics->config.clock);
    int64_t until = http_started(x) +
                    negotiate_patience_ns(http_header(x, "X-Prometheus-Scrape-Timeout-Seconds"),
                                          engine->patience_ns);
    struct scrape scrape;

    if (!metrics->server) {
        http_wait_until(x, now + 10 * NS_PER_MS);
        return HTTP_WAIT;
    }
    if (!scrape_read(x, collector_find, engine->collectors, &scrape)) {
        metrics->refused++;
        return HTTP_DONE;
    }
    if (!refresher_want(engine->refresher, collector_kinds(scrape.collectors), scrape.format,
                        http_started(x)) &&
        now < until && !metrics->is_stopping)
        return wait_until(metrics, x, until);
    stop_waiting(metrics, x);
    metrics->answered++;
    http_reply_body(x, ready_body(metrics, engine, scrape));
    return HTTP_DONE;
}

static enum http_verdict serve_metrics(void *ctx, struct http_exchange *x)
{
    struct metrics *metrics = ctx;
    enum http_verdict verdict;

    pthread_mutex_lock(&metrics->lock);
    verdict = answer(metrics, x);
    pthread_mutex_unlock(&metrics->lock);
    return verdict;
}

static void put_landing(const struct metrics *metrics, struct buf *out)
{
    const struct engine *engine = metrics->engine;
    struct landing_row rows[COLLECTORS_MAX];
    struct landing landing = {
        .program = "sonde exporter",
        .what = "What this cluster is doing",
        .metrics_path = metrics->config.path,
        .trace_path = metrics->trace_path,
        .is_simulated = engine->source->simulated,
        .rows = rows,
    };
    char about[100];

    snprintf(about, sizeof(about), "source %s", engine->source->class->name);
    landing.about = about;
    for (size_t i = 0; collectors[i]; i++)
        if (engine->collectors & (collector_set)1 << i)
            rows[landing.n_rows++] =
                (struct landing_row){ collectors[i]->name, collectors[i]->help };
    landing_page(out, &landing);
}

static enum http_verdict serve_landing(void *ctx, struct http_exchange *x)
{
    struct metrics *metrics = ctx;
    struct buf page;

    buf_init(&page, LANDING_BYTES);
    pthread_mutex_lock(&metrics->lock);
    put_landing(metrics, &page);
    pthread_mutex_unlock(&metrics->lock);
    http_reply(x, 200, "text/html; charset=utf-8", buf_str(&page));
    buf_free(&page);
    return HTTP_DONE;
}

struct metrics *metrics_new(const struct metrics_config *config)
{
    struct metrics *metrics = heap_alloc(sizeof(*metrics));
    struct http_route *const first = metrics->routes, *route = first;

    metrics->config = *config;
    metrics->config.path = metrics->path = heap_str(str_of(config->path));
    pthread_mutex_init(&metrics->lock, NULL);
    *route++ =
        (struct http_route){ .method = "GET", .path = metrics->path, .handle = serve_metrics };
    if (strcmp(metrics->path, "/") != 0)
        *route++ = (struct http_route){ .method = "GET", .path = "/", .handle = serve_landing };
    metrics->lifecycle = (struct lifecycle){ .reload = config->reload, .ctx = config->ctx };
    lifecycle_routes(&metrics->lifecycle, route);
    route += LIFECYCLE_ROUTES;
    metrics->n_routes = (size_t)(route - first);
    return metrics;
}

void metrics_add_trace(struct metrics *metrics, struct trace *trace, struct http_trace *routes,
                       const char *path)
{
    http_trace_routes(routes, metrics->routes + metrics->n_routes);
    metrics->n_routes += HTTP_TRACE_ROUTES;
    metrics->trace = trace;
    metrics->trace_path = path;
}

struct section *metrics_jobs(void *ctx, bool *ret_is_simulated)
{
    struct metrics *metrics = ctx;
    int64_t now = clock_mono(metrics->config.clock);
    struct section *jobs = NULL;
    struct snapshot *snapshot;

    pthread_mutex_lock(&metrics->lock);
    if (now - metrics->jobs_wanted_at >= NS_PER_SEC) {
        refresher_want(metrics->engine->refresher, KIND_BIT(KIND_JOBS), METRIC_TEXT, now);
        metrics->jobs_wanted_at = now;
    }
    snapshot = refresher_snapshot(metrics->engine->refresher);
    if (snapshot->editions[KIND_JOBS] && snapshot->editions[KIND_JOBS]->section)
        jobs = section_ref(snapshot->editions[KIND_JOBS]->section);
    *ret_is_simulated = metrics->engine->source->simulated;
    snapshot_unref(snapshot);
    pthread_mutex_unlock(&metrics->lock);
    return jobs;
}

struct metrics *metrics_free(struct metrics *metrics)
{
    if (metrics) {
        pages_clear(&metrics->pages);
        engine_free(metrics->engine);
        free(metrics->path);
        pthread_mutex_destroy(&metrics->lock);
        free(metrics);
    }
    return NULL;
}

const struct http_route *metrics_routes(const struct metrics *metrics)
{
    return metrics->routes;
}

void metrics_set_engine(struct metrics *metrics, struct engine *engine)
{
    struct engine *old;

    pthread_mutex_lock(&metrics->lock);
    old = metrics->engine;
    metrics->engine = engine;
    metrics->engine_number++;
    /* Who waits for the old one would wait in vain. */
    if (metrics->server && !metrics->is_stopping)
        http_wake(metrics->server);
    pthread_mutex_unlock(&metrics->lock);
    engine_free(old);
}

void metrics_tune_engine(struct metrics *metrics, int64_t patience_ns, uint64_t excluded,
                         const struct refresh_tuning *tuning)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->engine->collectors = tuning->publish.collectors;
    metrics->engine->patience_ns = patience_ns;
    metrics->engine->excluded = excluded;
    refresher_tune(metrics->engine->refresher, tuning);
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_stop(struct metrics *metrics)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->is_stopping = true;
    if (metrics->server)
        http_wake(metrics->server);
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_set_server(struct metrics *metrics, struct http_server *server)
{
    pthread_mutex_lock(&metrics->lock);
    metrics->server = server;
    pthread_mutex_unlock(&metrics->lock);
}

void metrics_changed(void *ctx)
{
    struct metrics *metrics = ctx;

    pthread_mutex_lock(&metrics->lock);
    /* Once it stops, the server may be gone. */
    if (metrics->server && !metrics->is_stopping)
        http_wake(metrics->server);
    pthread_mutex_unlock(&metrics->lock);
}
