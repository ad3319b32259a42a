/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "http/metrics.h"

#include "base/quote.h"
#include "collector/self.h"
#include "http/landing.h"
#include "http/negotiate.h"
#include "http/trace.h"

enum {
    CACHED_PAGES = 16, /* combinations of collectors, format and encoding that are kept ready */
    TAIL_BYTES = 1 << 20,
    LANDING_BYTES = 64 * 1024,
};

/* How long the part that sonde says of itself may be shown again. */
static const int64_t tail_lives_ns = NS_PER_SEC;

/* What a scrape asks for. */
struct wish {
    collector_set collectors;
    enum metric_format format;
    bool gzip;
};

/* A ready response and what it was made of. */
struct page {
    struct wish wish;
    uint64_t engine, snapshot; /* numbers */
    int64_t made_at;
    struct http_body *body; /* NULL: the place is free */
    int64_t used_at;
};

struct metrics {
    struct metrics_config config;
    char *path; /* the configuration it came from may be replaced */
    struct http_route routes[6 + HTTP_TRACE_ROUTES]; /* the last one ends the table */
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
    struct page pages[CACHED_PAGES];
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

/* ?collect[]=NAME, any number of them; all that are on without. False with a sentence if there is
 * no such collector. */
static bool read_collectors(struct http_exchange *x, const struct engine *engine,
                            collector_set *ret, struct err *err)
{
    struct str name;

    *ret = 0;
    for (size_t i = 0; (name = http_query(x, "collect[]", i)).p; i++) {
        int found = collector_find(name);

        if (found < 0 || !(engine->collectors & (collector_set)1 << found)) {
            err_set(
                err, EINVAL,
                "there is no collector \"%s\", or it is switched off; / lists those that are on\n",
                quote(name).text);
            return false;
        }
        *ret |= (collector_set)1 << found;
    }
    if (!*ret)
        *ret = engine->collectors;
    return true;
}

/* What sonde says of itself, and the end of the exposition. */
static struct segment *make_tail(struct metrics *metrics, struct engine *engine,
                                 const struct snapshot *snapshot, enum metric_format format)
{
    struct http_stats http = { 0 };
    struct refresh_stats stats;
    struct trace_stats traces;
    struct metric_writer writer;
    struct segment *tail;
    struct self self;
    struct buf text;

    refresher_stats(engine->refresher, &stats);
    http_stats(metrics->server, &http);
    self = (struct self){
        .source = engine->source->class->name,
        .stats = &stats,
        .snapshot = snapshot,
        .format = format,
        .collectors = engine->collectors,
        .scrapes_in_flight = metrics->waiting + 1,
        .scrapes_answered = metrics->answered,
        .scrapes_refused = metrics->refused,
        .http_requests = http.requests,
        .http_connections = http.connections,
        .http_busy = http.refused_busy,
        .http_unauthorized = http.refused_auth,
        .http_timed_out = http.timed_out,
        .http_evicted = http.evicted,
    };
    if (metrics->trace) {
        trace_stats(metrics->trace, &traces);
        self.traces = &traces;
    }
    process_read(&self.process);
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

/* What a response holds on to while it is being sent. Not the snapshot, which has all the facts. */
struct holding {
    struct segment *segments[COLLECTORS_MAX + 1];
    size_t n;
    unsigned char trailer[GZIP_TRAILER];
};

static void release_holding(void *ctx)
{
    struct holding *holding = ctx;

    for (size_t i = 0; i < holding->n; i++)
        segment_unref(holding->segments[i]);
    free(holding);
}

static struct http_body *make_body(struct metrics *metrics, struct engine *engine,
                                   struct snapshot *snapshot, struct wish wish)
{
    struct holding *holding = heap_alloc(sizeof(*holding));
    struct iovec iov[COLLECTORS_MAX + 3];
    struct segment_list list;
    size_t n;

    for (size_t i = 0; collectors[i]; i++) {
        const struct edition *edition = snapshot->editions[collectors[i]->kind];

        if (edition && wish.collectors & (collector_set)1 << i &&
            edition->collectors[i].segments[wish.format])
            holding->segments[holding->n++] =
                segment_ref(edition->collectors[i].segments[wish.format]);
    }
    holding->segments[holding->n++] = make_tail(metrics, engine, snapshot, wish.format);
    list = (struct segment_list){ holding->segments, holding->n };
    n = wish.gzip ? segment_iov_gzip(list, iov, holding->trailer) : segment_iov(list, iov);
    return http_body_new(iov, n, metric_content_type(wish.format), wish.gzip ? "gzip" : NULL,
                         release_holding, holding);
}

static void drop_page(struct page *page)
{
    http_body_unref(page->body);
    *page = (struct page){ 0 };
}

static bool is_current(const struct metrics *metrics, const struct page *page,
                       const struct snapshot *snapshot)
{
    return page->engine == metrics->engine_number && page->snapshot == snapshot->serial;
}

/* Nobody will ask for pages of an older snapshot. */
static void drop_old_pages(struct metrics *metrics, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < CACHED_PAGES; i++)
        if (!is_current(metrics, &metrics->pages[i], snapshot))
            drop_page(&metrics->pages[i]);
}

/* The place of that wish, or else the one used longest ago. */
static struct page *find_page(struct metrics *metrics, struct wish wish)
{
    struct page *oldest = &metrics->pages[0];

    for (size_t i = 0; i < CACHED_PAGES; i++) {
        struct page *page = &metrics->pages[i];

        if (page->body && page->wish.collectors == wish.collectors &&
            page->wish.format == wish.format && page->wish.gzip == wish.gzip)
            return page;
        if (page->used_at < oldest->used_at)
            oldest = page;
    }
    drop_page(oldest);
    return oldest;
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

/* The response for that wish, made anew when the snapshot has changed or the tail has aged. */
static struct http_body *ready_body(struct metrics *metrics, struct engine *engine,
                                    struct wish wish)
{
    struct snapshot *snapshot = refresher_snapshot(engine->refresher);
    int64_t now = clock_mono(metrics->config.clock);
    struct page *page;

    wish.format = best_format(snapshot, wish.format);
    drop_old_pages(metrics, snapshot);
    page = find_page(metrics, wish);
    if (!page->body || now - page->made_at >= tail_lives_ns) {
        drop_page(page);
        *page = (struct page){ .wish = wish,
                               .engine = metrics->engine_number,
                               .snapshot = snapshot->serial,
                               .made_at = now,
                               .body = make_body(metrics, engine, snapshot, wish) };
    }
    page->used_at = now;
    snapshot_unref(snapshot);
    return page->body;
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

    drop_old_pages(metrics, snapshot);
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
    struct wish wish = {
        .format = negotiate_format(http_header(x, "Accept")),
        .gzip = negotiate_gzip(http_header(x, "Accept-Encoding")),
    };
    struct err err;

    if (!metrics->server) {
        http_wait_until(x, now + 10 * NS_PER_MS);
        return HTTP_WAIT;
    }
    if (!read_collectors(x, engine, &wish.collectors, &err)) {
        metrics->refused++;
        http_reply(x, 400, "text/plain; charset=utf-8", str_of(err.text));
        return HTTP_DONE;
    }
    if (!refresher_want(engine->refresher, collector_kinds(wish.collectors), wish.format,
                        http_started(x)) &&
        now < until && !metrics->is_stopping)
        return wait_until(metrics, x, until);
    stop_waiting(metrics, x);
    metrics->answered++;
    http_reply_body(x, ready_body(metrics, engine, wish));
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

static enum http_verdict serve_landing(void *ctx, struct http_exchange *x)
{
    struct metrics *metrics = ctx;
    struct buf page;

    buf_init(&page, LANDING_BYTES);
    pthread_mutex_lock(&metrics->lock);
    landing_page(&page, metrics->config.path, metrics->engine->source->class->name,
                 metrics->engine->source->simulated, metrics->engine->collectors,
                 metrics->trace_path);
    pthread_mutex_unlock(&metrics->lock);
    http_reply(x, 200, "text/html; charset=utf-8", buf_str(&page));
    buf_free(&page);
    return HTTP_DONE;
}

static enum http_verdict serve_healthy(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain; charset=utf-8", STR("sonde is healthy.\n"));
    return HTTP_DONE;
}

static enum http_verdict serve_ready(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain; charset=utf-8", STR("sonde is ready.\n"));
    return HTTP_DONE;
}

/* A page of another site in somebody's browser has no business here. */
static enum http_verdict begin_reload(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    if (!http_header(x, "Origin").n)
        return HTTP_WORK;
    http_reply(x, 403, "text/plain; charset=utf-8", STR("not from a web page, please\n"));
    return HTTP_DONE;
}

static void reload(void *ctx, struct http_exchange *x)
{
    struct metrics *metrics = ctx;
    struct err err = { 0 };

    if (metrics->config.reload(metrics->config.ctx, &err) < 0)
        http_reply(x, 500, "text/plain; charset=utf-8", str_of(err.text));
    else
        http_reply(x, 200, "text/plain; charset=utf-8", STR("reloaded\n"));
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
    *route++ = (struct http_route){
        .method = "GET", .path = "/-/healthy", .access = HTTP_OPEN, .handle = serve_healthy
    };
    *route++ = (struct http_route){
        .method = "GET", .path = "/-/ready", .access = HTTP_OPEN, .handle = serve_ready
    };
    *route++ = (struct http_route){
        .method = "POST", .path = "/-/reload", .handle = begin_reload, .work = reload
    };
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
        for (size_t i = 0; i < CACHED_PAGES; i++)
            drop_page(&metrics->pages[i]);
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
