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
    if (!engine)
        return NULL;
    /* A later one may ask an earlier one. */
    for (size_t i = FEEDS; i-- > 0;) {
        refresher_stop(engine->feeds[i].refresher);
        if (engine->feeds[i].source)
            source_close(engine->feeds[i].source);
    }
    free(engine);
    return NULL;
}

/* Of whom a kind comes: Slurm's own also what jobs post. */
static size_t feed_of(const struct engine *engine, enum kind kind)
{
    for (size_t i = FEEDS - 1; i > FEED_SLURM; i--)
        if (engine->feeds[i].source && engine->feeds[i].source->class->kinds & KIND_BIT(kind))
            return i;
    return FEED_SLURM;
}

/* The newest snapshot of every feed, taken together. */
struct view {
    struct snapshot *snapshots[FEEDS]; /* NULL: there is no such feed */
    const struct edition *editions[KINDS];
    uint64_t serial; /* grows when any of them is replaced */
};

static void take_view(const struct engine *engine, struct view *view)
{
    *view = (struct view){ 0 };
    for (size_t i = 0; i < FEEDS; i++) {
        if (!engine->feeds[i].refresher)
            continue;
        view->snapshots[i] = refresher_snapshot(engine->feeds[i].refresher);
        view->serial += view->snapshots[i]->serial;
    }
    for (int kind = 0; kind < KINDS; kind++)
        view->editions[kind] = view->snapshots[feed_of(engine, kind)]->editions[kind];
}

static void drop_view(struct view *view)
{
    for (size_t i = 0; i < FEEDS; i++)
        if (view->snapshots[i])
            snapshot_unref(view->snapshots[i]);
}

/* All feeds' statistics in one, each kind's of whoever tells it. */
static void merge_stats(const struct engine *engine, struct self *self, struct refresh_stats *ret)
{
    struct refresh_stats stats;

    refresher_stats(engine->feeds[FEED_SLURM].refresher, ret);
    for (int kind = 0; kind < KINDS; kind++)
        self->sources[kind] = engine->feeds[feed_of(engine, kind)].source->class->name;
    for (size_t i = FEED_SLURM + 1; i < FEEDS; i++) {
        if (!engine->feeds[i].refresher)
            continue;
        refresher_stats(engine->feeds[i].refresher, &stats);
        for (int kind = 0; kind < KINDS; kind++)
            if (feed_of(engine, kind) == i)
                ret->kinds[kind] = stats.kinds[kind];
    }
}

/* What became of those that are on, in this format. */
static size_t tell_collectors(const struct engine *engine, const struct view *view,
                              struct scrape scrape, struct program_collector to[COLLECTORS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++) {
        const struct edition *edition = view->editions[collectors[i]->kind];

        if (!(engine->collectors & (collector_set)1 << i))
            continue;
        to[n] = (struct program_collector){ .name = collectors[i]->name };
        if (edition && edition->collectors[i].segments[scrape.format] &&
            !(scrape.late & (collector_set)1 << i)) {
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

/* Whether what is true of a moment was asked for, and is there. */
static enum self_moment tell_moment(const struct view *view, struct scrape scrape)
{
    enum self_moment moment = SELF_NOT_ASKED;

    for (size_t i = 0; collectors[i]; i++) {
        enum kind kind = collectors[i]->kind;

        if (!(scrape.collectors & (collector_set)1 << i) || !(MOMENTARY_KINDS & KIND_BIT(kind)))
            continue;
        if (!view->editions[kind] || scrape.late & (collector_set)1 << i)
            return SELF_MISSED;
        moment = SELF_SHOWN;
    }
    return moment;
}

/* What sonde says of itself, and the end of the exposition. */
static struct segment *make_tail(struct metrics *metrics, struct engine *engine,
                                 const struct view *view, struct scrape scrape)
{
    struct program_collector told[COLLECTORS_MAX];
    struct refresh_stats stats;
    struct trace_stats traces;
    struct metric_writer writer;
    struct segment *tail;
    struct self self;
    struct buf text;

    self = (struct self){
        .stats = &stats,
        .moment = tell_moment(view, scrape),
        .program = {
            .collectors = told,
            .n_collectors = tell_collectors(engine, view, scrape, told),
            .scrapes_in_flight = metrics->waiting + 1,
            .scrapes_answered = metrics->answered,
            .scrapes_refused = metrics->refused,
        },
    };
    merge_stats(engine, &self, &stats);
    scrape_tell(metrics->server, &self.program);
    if (metrics->trace) {
        trace_stats(metrics->trace, &traces);
        self.traces = &traces;
    }
    process_read(&self.program.process);
    buf_init(&text, TAIL_BYTES);
    metric_writer_init(&writer, &text, scrape.format, str_of(engine->const_labels), self_families,
                       n_self_families);
    writer.excluded = engine->excluded;
    writer.is_unchecked = true;
    self_collect(&self, &writer);
    metric_writer_free(&writer);
    buf_put(&text, metric_eof(scrape.format));
    tail = segment_new_stored(&text);
    buf_free(&text);
    return tail;
}

static struct http_body *make_body(struct metrics *metrics, struct engine *engine,
                                   const struct view *view, struct scrape scrape)
{
    struct segment *segments[COLLECTORS_MAX + 1];
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++) {
        const struct edition *edition = view->editions[collectors[i]->kind];

        if (edition && scrape.collectors & ~scrape.late & (collector_set)1 << i &&
            edition->collectors[i].segments[scrape.format])
            segments[n++] = segment_ref(edition->collectors[i].segments[scrape.format]);
    }
    segments[n++] = make_tail(metrics, engine, view, scrape);
    return scrape_body(scrape, segments, n);
}

static struct page_version version_of(const struct metrics *metrics, const struct view *view)
{
    return (struct page_version){ metrics->engine_number, view->serial };
}

/* While Slurm hangs, a format that nobody has asked for before cannot be rendered: then the text
 * format, which every scraper reads, is better than nothing. */
static enum metric_format best_format(const struct view *view, enum metric_format wanted)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (view->editions[kind] && !(view->editions[kind]->formats & FORMAT_BIT(wanted)) &&
            view->editions[kind]->formats & FORMAT_BIT(METRIC_TEXT))
            return METRIC_TEXT;
    return wanted;
}

/* Made anew when the snapshot has changed or the tail has aged. */
static struct http_body *ready_body(struct metrics *metrics, struct engine *engine,
                                    struct scrape scrape)
{
    int64_t now = clock_mono(metrics->config.clock);
    struct page_version version;
    struct http_body *body;
    struct view view;

    take_view(engine, &view);
    version = version_of(metrics, &view);
    scrape.format = best_format(&view, scrape.format);
    body = pages_get(&metrics->pages, scrape, version, now);
    if (!body)
        body = pages_put(&metrics->pages, scrape, version, now,
                         make_body(metrics, engine, &view, scrape));
    drop_view(&view);
    return body;
}

static void leave_queue(void *metrics)
{
    ((struct metrics *)metrics)->waiting--;
}

/* For new data, until then at most. Pages of what has been replaced meanwhile only take memory. */
static enum http_verdict wait_until(struct metrics *metrics, struct http_exchange *x, int64_t until)
{
    void **state = http_state(x, leave_queue);
    struct view view;

    take_view(metrics->engine, &view);
    pages_drop_old(&metrics->pages, version_of(metrics, &view));
    drop_view(&view);
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

/* Tells the feeds what is wanted; true when the asker may go ahead. `late` gets what must not be
 * shown to who goes ahead all the same. */
static bool want(const struct engine *engine, struct http_exchange *x, const struct scrape *scrape,
                 collector_set *ret_late)
{
    unsigned kinds = collector_kinds(scrape->collectors), late_kinds = 0;
    bool ready = true;

    for (size_t i = 0; i < FEEDS; i++) {
        unsigned own = 0;

        for (int kind = 0; kind < KINDS; kind++)
            if (feed_of(engine, kind) == i)
                own |= kinds & KIND_BIT(kind);
        if (own &&
            !refresher_want(engine->feeds[i].refresher, own, scrape->format, http_started(x))) {
            late_kinds |= own & MOMENTARY_KINDS;
            ready = false;
        }
    }
    *ret_late = 0;
    for (size_t i = 0; collectors[i]; i++)
        if (late_kinds & KIND_BIT(collectors[i]->kind))
            *ret_late |= scrape->collectors & (collector_set)1 << i;
    return ready;
}

static enum http_verdict answer(struct metrics *metrics, struct http_exchange *x)
{
    struct engine *engine = metrics->engine;
    int64_t now = clock_mono(metrics->config.clock);
    int64_t until = http_started(x) +
                    negotiate_patience_ns(http_header(x, "X-Prometheus-Scrape-Timeout-Seconds"),
                                          engine->patience_ns);
    struct scrape scrape;
    collector_set late;

    if (!metrics->server) {
        http_wait_until(x, now + 10 * NS_PER_MS);
        return HTTP_WAIT;
    }
    if (!scrape_read(x, collector_find, engine->collectors, &scrape)) {
        metrics->refused++;
        return HTTP_DONE;
    }
    if (!want(engine, x, &scrape, &late) && now < until && !metrics->is_stopping)
        return wait_until(metrics, x, until);
    stop_waiting(metrics, x);
    scrape.late = late;
    if (late)
        LOG(metrics->config.log, LOG_WARN, "Collect is still active... - Skipping now");
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
        .program = metrics->config.program,
        .what = metrics->config.what,
        .metrics_path = metrics->config.path,
        .trace_path = metrics->trace_path,
        .is_simulated = engine->feeds[FEED_SLURM].source->simulated,
        .rows = rows,
    };
    char about[100];

    snprintf(about, sizeof(about), "source %s", engine->feeds[FEED_SLURM].source->class->name);
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
        refresher_want(metrics->engine->feeds[FEED_SLURM].refresher, KIND_BIT(KIND_JOBS),
                       METRIC_TEXT, now);
        metrics->jobs_wanted_at = now;
    }
    snapshot = refresher_snapshot(metrics->engine->feeds[FEED_SLURM].refresher);
    if (snapshot->editions[KIND_JOBS] && snapshot->editions[KIND_JOBS]->section)
        jobs = section_ref(snapshot->editions[KIND_JOBS]->section);
    *ret_is_simulated = metrics->engine->feeds[FEED_SLURM].source->simulated;
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
                         const struct refresh_tuning tunings[FEEDS])
{
    pthread_mutex_lock(&metrics->lock);
    metrics->engine->collectors = tunings[FEED_SLURM].publish.collectors;
    metrics->engine->patience_ns = patience_ns;
    metrics->engine->excluded = excluded;
    for (size_t i = 0; i < FEEDS; i++)
        if (metrics->engine->feeds[i].refresher)
            refresher_tune(metrics->engine->feeds[i].refresher, &tunings[i]);
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
