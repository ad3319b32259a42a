/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporter's routes, and the engine that answers scrapes. */
#include "http/metrics.h"

#include "base/quote.h"
#include "http/landing.h"
#include "http/lifecycle.h"
#include "http/negotiate.h"
#include "http/scrape.h"
#include "http/trace.h"

enum {
    TAIL_BYTES = 4 << 20,
    LANDING_BYTES = 64 * 1024,
    MORE_ROUTES = 100, /* of metrics_add_route */
};

struct metrics {
    struct metrics_config config;
    char *path; /* the configuration it came from may be replaced */
    struct lifecycle lifecycle;
    /* the last one ends the table */
    struct http_route routes[2 + LIFECYCLE_ROUTES + HTTP_TRACE_ROUTES + MORE_ROUTES + 1];
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
    for (size_t i = 0; i < engine->n_clusters; i++)
        for (size_t feed = 0; feed < FEEDS; feed++)
            refresher_end(engine->clusters[i].feeds[feed].refresher);
    for (size_t i = 0; i < engine->n_clusters; i++) {
        struct engine_cluster *cluster = &engine->clusters[i];

        /* A later one may ask an earlier one. */
        for (size_t feed = FEEDS; feed-- > 0;) {
            refresher_stop(cluster->feeds[feed].refresher);
            if (cluster->feeds[feed].source)
                source_close(cluster->feeds[feed].source);
        }
        keep_free(cluster->keep);
        free(cluster->const_labels);
        free(cluster->name);
    }
    free(engine);
    return NULL;
}

/* Of whom a kind comes: Slurm's own also what jobs post. */
static size_t feed_of(const struct engine_cluster *cluster, enum kind kind)
{
    for (size_t i = FEEDS - 1; i > FEED_SLURM; i--)
        if (cluster->feeds[i].source && cluster->feeds[i].source->class->kinds & KIND_BIT(kind))
            return i;
    return FEED_SLURM;
}

static bool is_told(const struct engine_cluster *cluster, enum kind kind)
{
    return kind == KIND_TRACES ||
           cluster->feeds[feed_of(cluster, kind)].source->class->kinds & KIND_BIT(kind);
}

/* The newest snapshot of every feed of every cluster, taken together. */
struct view {
    size_t n_clusters;
    struct cluster_view {
        struct snapshot *snapshots[FEEDS]; /* NULL: there is no such feed */
        const struct edition *editions[KINDS];
    } clusters[CLUSTERS_MAX];
    uint64_t serial; /* grows when any of them is replaced */
};

static void take_view(const struct engine *engine, struct view *view)
{
    view->n_clusters = engine->n_clusters;
    view->serial = 0;
    for (size_t i = 0; i < engine->n_clusters; i++) {
        const struct engine_cluster *cluster = &engine->clusters[i];
        struct cluster_view *of = &view->clusters[i];

        *of = (struct cluster_view){ 0 };
        for (size_t feed = 0; feed < FEEDS; feed++) {
            if (!cluster->feeds[feed].refresher)
                continue;
            of->snapshots[feed] = refresher_snapshot(cluster->feeds[feed].refresher);
            view->serial += of->snapshots[feed]->serial;
        }
        for (int kind = 0; kind < KINDS; kind++)
            of->editions[kind] = of->snapshots[feed_of(cluster, kind)]->editions[kind];
    }
}

static void drop_view(struct view *view)
{
    for (size_t i = 0; i < view->n_clusters; i++)
        for (size_t feed = 0; feed < FEEDS; feed++)
            if (view->clusters[i].snapshots[feed])
                snapshot_unref(view->clusters[i].snapshots[feed]);
}

/* All of a cluster's feeds' statistics in one, each kind's of whoever tells it. */
static void tell_cluster(const struct engine_cluster *cluster, struct self_cluster *ret)
{
    struct refresh_stats stats;

    ret->const_labels = str_of(cluster->const_labels);
    refresher_stats(cluster->feeds[FEED_SLURM].refresher, &ret->stats);
    for (int kind = 0; kind < KINDS; kind++)
        ret->sources[kind] = cluster->feeds[feed_of(cluster, kind)].source->class->name;
    for (size_t feed = FEED_SLURM + 1; feed < FEEDS; feed++) {
        if (!cluster->feeds[feed].refresher)
            continue;
        refresher_stats(cluster->feeds[feed].refresher, &stats);
        for (int kind = 0; kind < KINDS; kind++)
            if (feed_of(cluster, kind) == feed)
                ret->stats.kinds[kind] = stats.kinds[kind];
    }
}

/* What became of those that are on, in this format. */
static size_t tell_collectors(const struct engine *engine, const struct view *view,
                              struct scrape scrape, collector_set on, struct program_collector *to)
{
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++) {
        for (size_t k = 0; on & (collector_set)1 << i && k < view->n_clusters; k++) {
            const struct edition *edition = view->clusters[k].editions[collectors[i]->kind];

            to[n] = (struct program_collector){
                .name = collectors[i]->name,
                .const_labels = str_of(engine->clusters[k].const_labels),
            };
            if (edition && edition_has(edition, i, scrape.format) &&
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
        for (size_t k = 0; k < view->n_clusters; k++)
            if (!view->clusters[k].editions[kind] || scrape.late & (collector_set)1 << i)
                return SELF_MISSED;
        moment = SELF_SHOWN;
    }
    return moment;
}

/* Of what belongs to no cluster: that all is simulated, where there is but one. */
static struct str own_labels(const struct engine *engine)
{
    return engine->clusters[0].is_labelled ? STR("") : str_of(engine->clusters[0].const_labels);
}

static void put_up_self(struct metrics *metrics, const struct engine *engine,
                        enum metric_format format, struct buf *text)
{
    struct up_self self = { 0 };
    struct metric_writer writer;

    if (!metrics->config.tell_up)
        return;
    metrics->config.tell_up(metrics->config.ctx, &self);
    metric_writer_init(&writer, text, format, own_labels(engine), up_self_families,
                       n_up_self_families);
    writer.excluded = engine->excluded_up;
    up_self_collect(&self, &writer);
    metric_writer_free(&writer);
}

/* What sonde says of itself, and the end of the exposition. */
static struct segment *make_tail(struct metrics *metrics, struct engine *engine,
                                 const struct view *view, struct scrape scrape, collector_set on)
{
    size_t n = engine->n_clusters;
    struct program_collector *told = heap_array(n * COLLECTORS_MAX, sizeof(*told));
    struct self_cluster *clusters = heap_alloc(n * sizeof(*clusters));
    struct self_store store = { 0 };
    struct trace_stats traces;
    struct metric_writer writer;
    struct segment *tail;
    struct self self;
    struct buf text;

    self = (struct self){
        .clusters = clusters,
        .n_clusters = n,
        .moment = tell_moment(view, scrape),
        .drain = metrics->config.tell_drain ? metrics->config.tell_drain(metrics->config.ctx)
                                            : SELF_NO_DRAIN,
        .program = {
            .collectors = told,
            .n_collectors = tell_collectors(engine, view, scrape, on, told),
            .scrapes_in_flight = metrics->waiting + 1,
            .scrapes_answered = metrics->answered,
            .scrapes_refused = metrics->refused,
        },
    };
    for (size_t i = 0; i < n; i++)
        tell_cluster(&engine->clusters[i], &clusters[i]);
    if (metrics->config.tell_store &&
        metrics->config.tell_store(metrics->config.ctx, &store, clusters, n))
        self.store = &store;
    scrape_tell(metrics->server, &self.program);
    if (metrics->trace) {
        trace_stats(metrics->trace, &traces);
        self.traces = &traces;
    }
    process_read(&self.program.process);
    buf_init(&text, TAIL_BYTES);
    metric_writer_init(&writer, &text, scrape.format, own_labels(engine), self_families,
                       n_self_families);
    writer.excluded = engine->excluded;
    writer.is_unchecked = true;
    self_collect(&self, &writer);
    metric_writer_free(&writer);
    put_up_self(metrics, engine, scrape.format, &text);
    buf_put(&text, metric_eof(scrape.format));
    tail = segment_new_stored(&text);
    buf_free(&text);
    free(clusters);
    free(told);
    return tail;
}

/* What all clusters have of one collector. */
static size_t add_collector(const struct view *view, size_t collector, enum metric_format format,
                            struct segment **to)
{
    struct split *splits[CLUSTERS_MAX] = { NULL };
    const struct edition *edition;

    for (size_t i = 0; i < view->n_clusters; i++) {
        edition = view->clusters[i].editions[collectors[collector]->kind];
        if (edition && edition->collectors[collector].segments[format]) {
            to[0] = segment_ref(edition->collectors[collector].segments[format]);
            return 1;
        }
        if (edition)
            splits[i] = edition->collectors[collector].splits[format];
    }
    return split_weave(splits, view->n_clusters, to);
}

/* How many segments there can be at most. */
static size_t segments_max(const struct view *view)
{
    size_t n = 1;

    for (size_t i = 0; collectors[i]; i++)
        n += collectors[i]->n_families * (view->n_clusters + 1);
    return n;
}

static struct http_body *make_body(struct metrics *metrics, struct engine *engine,
                                   const struct view *view, struct scrape scrape, collector_set on)
{
    struct segment **segments = heap_array(segments_max(view), sizeof(struct segment *));
    struct http_body *body;
    size_t n = 0;

    for (size_t i = 0; collectors[i]; i++)
        if (scrape.collectors & ~scrape.late & (collector_set)1 << i)
            n += add_collector(view, i, scrape.format, segments + n);
    segments[n++] = make_tail(metrics, engine, view, scrape, on);
    body = scrape_body(scrape, segments, n);
    free(segments);
    return body;
}

static struct page_version version_of(const struct metrics *metrics, const struct view *view)
{
    return (struct page_version){ metrics->engine_number, view->serial };
}

/* While Slurm hangs, a format that nobody has asked for before cannot be rendered: then the text
 * format, which every scraper reads, is better than nothing. */
static enum metric_format best_format(const struct view *view, enum metric_format wanted)
{
    for (size_t i = 0; i < view->n_clusters; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            const struct edition *edition = view->clusters[i].editions[kind];

            if (edition && !(edition->formats & FORMAT_BIT(wanted)) &&
                edition->formats & FORMAT_BIT(METRIC_TEXT))
                return METRIC_TEXT;
        }
    }
    return wanted;
}

/* Made anew when the snapshot has changed or the tail has aged. */
static struct http_body *ready_body(struct metrics *metrics, struct engine *engine,
                                    struct scrape scrape, collector_set on)
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
                         make_body(metrics, engine, &view, scrape, on));
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

/* What a scrape waits for. */
struct awaited {
    bool has_slurm;          /* families of Slurm are among what is shown */
    bool slurm;              /* something of Slurm is not there yet */
    int64_t others_until_ns; /* when other feeds are given up; INT64_MIN: they have told all */
    unsigned late_kinds;     /* that must not be shown to an asker that goes ahead */
};

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static unsigned kinds_of_feed(const struct engine_cluster *cluster, size_t feed, unsigned kinds)
{
    unsigned own = 0;

    for (int kind = 0; kind < KINDS; kind++)
        if (feed_of(cluster, kind) == feed && is_told(cluster, kind))
            own |= kinds & KIND_BIT(kind);
    return own;
}

/* Whether any of them is made of what Slurm tells. Its configuration does not count: it stands
 * beside the families of every feed, to say what Slurm hides. */
static bool shows_slurm(const struct engine_cluster *cluster, collector_set set)
{
    for (size_t i = 0; collectors[i]; i++) {
        enum kind kind = collectors[i]->kind;

        if (set & (collector_set)1 << i && kind != KIND_CONFIG &&
            feed_of(cluster, kind) == FEED_SLURM)
            return true;
    }
    return false;
}

/* Tells a cluster's feeds what is wanted. */
static void want_of(const struct engine_cluster *cluster, const struct scrape *scrape,
                    int64_t since_ns, struct awaited *awaited)
{
    int64_t slurm_ns = since_ns;

    awaited->has_slurm |= shows_slurm(cluster, scrape->collectors);
    for (size_t feed = 0; feed < FEEDS; feed++) {
        struct refresher *refresher = cluster->feeds[feed].refresher;
        unsigned own = kinds_of_feed(cluster, feed, collector_kinds(scrape->collectors));
        bool is_ready = !own || refresher_want(refresher, own, scrape->format, since_ns);

        if (own && feed == FEED_SLURM) {
            awaited->slurm |= !is_ready;
            slurm_ns = latest(slurm_ns, refresher_told_ns(refresher, own));
        } else if (!is_ready) {
            awaited->late_kinds |= own & MOMENTARY_KINDS;
            awaited->others_until_ns = latest(
                awaited->others_until_ns, refresher_patience(refresher, own, since_ns, slurm_ns));
        }
    }
}

/* Tells all feeds. Returns how long the asker may wait, at most until `until_ns`; INT64_MIN: there
 * is nothing to wait for. Families of Slurm that are there do not wait for another feed that hangs.
 * `late` gets what must not be shown if the asker goes ahead. */
static int64_t want(const struct engine *engine, struct http_exchange *x,
                    const struct scrape *scrape, int64_t until_ns, collector_set *ret_late)
{
    struct awaited awaited = { .others_until_ns = INT64_MIN };

    for (size_t i = 0; i < engine->n_clusters; i++)
        want_of(&engine->clusters[i], scrape, http_started(x), &awaited);
    *ret_late = 0;
    for (size_t i = 0; collectors[i]; i++)
        if (awaited.late_kinds & KIND_BIT(collectors[i]->kind))
            *ret_late |= scrape->collectors & (collector_set)1 << i;
    if (awaited.slurm || (!awaited.has_slurm && awaited.others_until_ns != INT64_MIN))
        return until_ns;
    return awaited.others_until_ns < until_ns ? awaited.others_until_ns : until_ns;
}

/* The collectors that are on of the profile that is asked for, or else of the usual one. False if
 * there are none: it has been answered. */
static bool read_profile(const struct engine *engine, struct http_exchange *x, collector_set *ret)
{
    struct str asked = http_query(x, "profile", 0);
    char sentence[400];

    *ret = engine->collectors & collector_profile(asked.p ? asked : engine->profile);
    if (*ret)
        return true;
    snprintf(sentence, sizeof(sentence),
             "there is no profile \"%s\", or its collectors are switched off\n", quote(asked).text);
    http_reply(x, 400, "text/plain; charset=utf-8", str_of(sentence));
    return false;
}

/* What is not of the usual profile is rendered from when it is first asked for. */
static void have_rendered(const struct engine *engine, collector_set wanted)
{
    for (size_t i = 0; i < engine->n_clusters; i++)
        for (size_t feed = 0; feed < FEEDS; feed++)
            if (engine->clusters[i].feeds[feed].refresher)
                refresher_add_collectors(engine->clusters[i].feeds[feed].refresher, wanted);
}

static enum http_verdict answer(struct metrics *metrics, struct http_exchange *x)
{
    struct engine *engine = metrics->engine;
    int64_t now = clock_mono(metrics->config.clock);
    int64_t until = http_started(x) +
                    negotiate_patience_ns(http_header(x, "X-Prometheus-Scrape-Timeout-Seconds"),
                                          engine->patience_ns);
    struct scrape scrape;
    collector_set on, late;

    if (!metrics->server) {
        http_wait_until(x, now + 10 * NS_PER_MS);
        return HTTP_WAIT;
    }
    if (!read_profile(engine, x, &on) || !scrape_read(x, collector_find, on, &scrape)) {
        metrics->refused++;
        return HTTP_DONE;
    }
    have_rendered(engine, scrape.collectors);
    until = want(engine, x, &scrape, until, &late);
    if (now < until && !metrics->is_stopping)
        return wait_until(metrics, x, until);
    stop_waiting(metrics, x);
    scrape.late = late;
    if (late)
        LOG(metrics->config.log, LOG_WARN, "Collect is still active... - Skipping now");
    metrics->answered++;
    http_reply_body(x, ready_body(metrics, engine, scrape, on));
    return HTTP_DONE;
}

static enum http_verdict serve_metrics(void *ctx, struct http_exchange *x)
{
    struct metrics *metrics = ctx;
    enum http_verdict verdict;

    if (metrics->config.may_scrape && !metrics->config.may_scrape(metrics->config.ctx, x)) {
        http_reply(x, 403, "text/plain; charset=utf-8",
                   STR("metrics name users and accounts: they are for staff (--web.staff)\n"));
        return HTTP_DONE;
    }
    pthread_mutex_lock(&metrics->lock);
    verdict = answer(metrics, x);
    pthread_mutex_unlock(&metrics->lock);
    return verdict;
}

/* Which door is taken, or to which clusters. */
static void tell_sources(const struct engine *engine, char *to, size_t room)
{
    size_t n;

    if (engine->n_clusters == 1) {
        snprintf(to, room, "source %s", engine->clusters[0].feeds[FEED_SLURM].source->class->name);
        return;
    }
    n = (size_t)snprintf(to, room, "%zu clusters:", engine->n_clusters);
    for (size_t i = 0; i < engine->n_clusters && n < room; i++)
        n += (size_t)snprintf(to + n, room - n, "%s %s", i ? "," : "", engine->clusters[i].name);
}

static bool is_simulated(const struct engine *engine)
{
    for (size_t i = 0; i < engine->n_clusters; i++)
        if (engine->clusters[i].feeds[FEED_SLURM].source->simulated)
            return true;
    return false;
}

static void put_landing(const struct metrics *metrics, struct buf *out)
{
    const struct engine *engine = metrics->engine;
    collector_set on = engine->collectors & collector_profile(engine->profile);
    struct landing_row rows[COLLECTORS_MAX];
    struct landing landing = {
        .program = metrics->config.program,
        .what = metrics->config.what,
        .metrics_path = metrics->config.path,
        .trace_path = metrics->trace_path,
        .is_simulated = is_simulated(engine),
        .rows = rows,
    };
    char about[1000];

    tell_sources(engine, about, sizeof(about));
    landing.about = about;
    for (size_t i = 0; collectors[i]; i++)
        if (on & (collector_set)1 << i)
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
    *route++ = (struct http_route){
        .method = "GET", .path = metrics->path, .is_urgent = true, .handle = serve_metrics
    };
    if (strcmp(metrics->path, "/") != 0 && !config->has_pages)
        *route++ = (struct http_route){ .method = "GET", .path = "/", .handle = serve_landing };
    metrics->lifecycle = (struct lifecycle){ .reload = config->reload,
                                             .may_reload = config->may_scrape,
                                             .ctx = config->ctx };
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

void metrics_add_route(struct metrics *metrics, const struct http_route *route)
{
    metrics->routes[metrics->n_routes++] = *route;
}

struct section *metrics_jobs(void *ctx, bool *ret_is_simulated)
{
    struct metrics *metrics = ctx;
    int64_t now = clock_mono(metrics->config.clock);
    struct section *jobs = NULL;
    struct snapshot *snapshot;
    const struct feed *slurm;

    pthread_mutex_lock(&metrics->lock);
    /* Where jobs are traced there is but one cluster. */
    slurm = &metrics->engine->clusters[0].feeds[FEED_SLURM];
    if (now - metrics->jobs_wanted_at >= NS_PER_SEC) {
        refresher_want(slurm->refresher, KIND_BIT(KIND_JOBS), METRIC_TEXT, now);
        metrics->jobs_wanted_at = now;
    }
    snapshot = refresher_snapshot(slurm->refresher);
    if (snapshot->editions[KIND_JOBS] && snapshot->editions[KIND_JOBS]->section)
        jobs = section_ref(snapshot->editions[KIND_JOBS]->section);
    *ret_is_simulated = slurm->source->simulated;
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

void metrics_tune_engine(struct metrics *metrics, const struct engine_tuning *tuning)
{
    struct engine *engine = metrics->engine;

    pthread_mutex_lock(&metrics->lock);
    engine->collectors = tuning->collectors;
    engine->profile = tuning->profile;
    engine->patience_ns = tuning->patience_ns;
    engine->excluded = tuning->excluded;
    engine->excluded_up = tuning->excluded_up;
    for (size_t i = 0; i < engine->n_clusters; i++)
        for (size_t feed = 0; feed < FEEDS; feed++)
            if (engine->clusters[i].feeds[feed].refresher)
                refresher_tune(engine->clusters[i].feeds[feed].refresher,
                               &tuning->tunings[i][feed]);
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
