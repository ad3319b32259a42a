/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP routes of the agent. */
#include "http/bulletins.h"

#include "base/arena.h"
#include "http/landing.h"
#include "http/lifecycle.h"
#include "http/scrape.h"
#include "metric/convert.h"

enum {
    TAIL_BYTES = 256 * 1024,
    LANDING_BYTES = 64 * 1024,
    /* Plain texts that are being sent, all together: each is a copy, and whoever reads slowly holds
     * on to it. */
    PLAIN_BYTES = 32 << 20,
};

struct bulletins {
    struct bulletins_config config;
    char *path, *node; /* the configuration they came from may be replaced */
    struct lifecycle lifecycle;
    struct http_route routes[2 + LIFECYCLE_ROUTES + 1]; /* the last one ends the table */
    int64_t began_ns; /* before there is a sample, its age counts from here */
    atomic_size_t plain_bytes;
    atomic_uint scrapes_in_flight;
    pthread_mutex_t lock; /* guards what follows */
    struct bulletins_tuning tuning;
    uint64_t tunings; /* how often it was tuned */
    struct http_server *server;
    uint64_t answered, refused; /* scrapes */
    struct pages pages;         /* the HTTP thread's own */
};

/* What one answer is made of; nothing in it changes while it is made. */
struct view {
    struct bulletin *bulletin; /* NULL: none yet */
    struct bulletins_tuning tuning;
    struct page_version version;
    int64_t now, age_ns; /* age_ns: of the newest sample */
    bool is_stale;
};

static struct view take_view(struct bulletins *bulletins)
{
    struct view view = {
        .bulletin = bulletin_board_take(bulletins->config.board),
        .now = clock_mono(bulletins->config.clock),
    };

    pthread_mutex_lock(&bulletins->lock);
    view.tuning = bulletins->tuning;
    view.version.generation = bulletins->tunings;
    pthread_mutex_unlock(&bulletins->lock);
    view.age_ns = view.now - bulletins->began_ns;
    if (view.bulletin) {
        view.version.serial = view.bulletin->serial;
        view.age_ns = view.now - view.bulletin->agent.sampled_mono_ns;
    }
    view.is_stale = view.age_ns > view.tuning.stale_ns;
    return view;
}

/* The segment of that collector, in any format if not in that one; NULL: there is none. */
static struct segment *find_segment(const struct view *view, const struct scrape *scrape, size_t i,
                                    enum metric_format *ret_format)
{
    struct segment *const *packed;

    if (!view->bulletin || view->is_stale || !(scrape->collectors & UINT32_C(1) << i))
        return NULL;
    packed = view->bulletin->collectors[i].packed;
    *ret_format = scrape->format;
    for (unsigned format = 0; !packed[*ret_format] && format < METRIC_FORMATS; format++)
        *ret_format = format;
    return packed[*ret_format];
}

static size_t tell_collectors(const struct view *view,
                              struct program_collector to[USAGE_COLLECTORS_MAX])
{
    const struct scrape all = { .collectors = view->tuning.collectors };
    size_t n = 0;

    for (size_t i = 0; usage_collectors[i]; i++) {
        enum metric_format format;

        if (!(all.collectors & UINT32_C(1) << i))
            continue;
        to[n] = (struct program_collector){ .name = usage_collectors[i]->name };
        if (find_segment(view, &all, i, &format)) {
            const struct bulletin_collector *rendered = &view->bulletin->collectors[i];

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

/* What the agent says of itself, and the end of the exposition. */
static void put_tail(struct bulletins *bulletins, const struct view *view,
                     enum metric_format format, struct buf *to)
{
    struct program_collector told[USAGE_COLLECTORS_MAX];
    struct agent_self self = {
        .node = bulletins->node,
        .bulletin = view->bulletin,
        .is_stale = view->is_stale,
        .mono_ns = view->now,
        .program = {
            .collectors = told,
            .n_collectors = tell_collectors(view, told),
            .scrapes_in_flight = atomic_load(&bulletins->scrapes_in_flight),
        },
    };
    struct metric_writer writer;

    pthread_mutex_lock(&bulletins->lock);
    scrape_tell(bulletins->server, &self.program);
    self.program.scrapes_answered = bulletins->answered;
    self.program.scrapes_refused = bulletins->refused;
    pthread_mutex_unlock(&bulletins->lock);
    if (bulletins->config.tell_pushes)
        bulletins->config.tell_pushes(bulletins->config.ctx, &self);
    process_read(&self.program.process);
    metric_writer_init(&writer, to, format, STR(""), agent_self_families, n_agent_self_families);
    writer.excluded = view->tuning.excluded;
    writer.is_unchecked = true;
    agent_self_collect(&self, &writer);
    metric_writer_free(&writer);
    buf_put(to, metric_eof(format));
}

static struct http_body *packed_body(struct bulletins *bulletins, const struct view *view,
                                     struct scrape scrape)
{
    struct segment *segments[USAGE_COLLECTORS_MAX + 1];
    struct buf tail;
    size_t n = 0;

    for (size_t i = 0; usage_collectors[i]; i++) {
        enum metric_format format;
        struct segment *segment = find_segment(view, &scrape, i, &format);

        if (segment)
            segments[n++] = segment_ref(segment);
    }
    buf_init(&tail, TAIL_BYTES);
    put_tail(bulletins, view, scrape.format, &tail);
    segments[n++] = segment_new_stored(&tail);
    buf_free(&tail);
    return scrape_body(scrape, segments, n);
}

/* A text that is being sent. */
struct plain {
    struct bulletins *bulletins;
    size_t reserved;
    struct buf text;
};

static void release_plain(void *ctx)
{
    struct plain *plain = ctx;

    atomic_fetch_sub(&plain->bulletins->plain_bytes, plain->reserved);
    buf_free(&plain->text);
    free(plain);
}

/* How long the text can be at most. In another format a bound grows by two bytes, a header by less
 * than its own length. */
static size_t plain_bound(const struct view *view, const struct scrape *scrape)
{
    size_t bytes = TAIL_BYTES;

    for (size_t i = 0; usage_collectors[i]; i++) {
        enum metric_format format;
        const struct segment *segment = find_segment(view, scrape, i, &format);

        if (segment)
            bytes += format == scrape->format ? segment->text_bytes : 2 * segment->text_bytes + 64;
    }
    return bytes;
}

static void put_plain(const struct view *view, const struct scrape *scrape, size_t i,
                      struct buf *to)
{
    enum metric_format format;
    const struct segment *segment = find_segment(view, scrape, i, &format);
    struct buf other;

    if (!segment)
        return;
    if (format == scrape->format) {
        segment_inflate(segment, to);
        return;
    }
    buf_init(&other, segment->text_bytes);
    segment_inflate(segment, &other);
    metric_convert(usage_collectors[i]->families, usage_collectors[i]->n_families, STR(""),
                   buf_str(&other), format, scrape->format, to);
    buf_free(&other);
}

/* NULL: there is no room for it. */
static struct http_body *plain_body(struct bulletins *bulletins, const struct view *view,
                                    struct scrape scrape)
{
    size_t bound = plain_bound(view, &scrape);
    size_t before = atomic_fetch_add(&bulletins->plain_bytes, bound);
    struct plain *plain;

    if (before && before + bound > PLAIN_BYTES) {
        atomic_fetch_sub(&bulletins->plain_bytes, bound);
        return NULL;
    }
    plain = heap_alloc(sizeof(*plain));
    plain->bulletins = bulletins;
    plain->reserved = bound;
    buf_init(&plain->text, bound);
    for (size_t i = 0; usage_collectors[i]; i++)
        put_plain(view, &scrape, i, &plain->text);
    put_tail(bulletins, view, scrape.format, &plain->text);
    return http_body_new(&(struct iovec){ plain->text.p, plain->text.n }, 1,
                         metric_content_type(scrape.format), NULL, release_plain, plain);
}

static bool read_scrape(struct bulletins *bulletins, struct http_exchange *x,
                        const struct view *view, struct scrape *ret)
{
    bool is_good = scrape_read(x, usage_collector_find, view->tuning.collectors, ret);

    pthread_mutex_lock(&bulletins->lock);
    bulletins->refused += !is_good;
    pthread_mutex_unlock(&bulletins->lock);
    return is_good;
}

static void answer(struct bulletins *bulletins, struct http_exchange *x, struct http_body *body)
{
    pthread_mutex_lock(&bulletins->lock);
    bulletins->answered++;
    pthread_mutex_unlock(&bulletins->lock);
    http_reply_body(x, body);
}

static bool is_rendered(const struct view *view, enum metric_format format)
{
    return !view->bulletin || view->bulletin->formats & FORMAT_BIT(format);
}

/* What is compressed is ready; what is not, or not in that format yet, is a worker's. */
static enum http_verdict serve_metrics(void *ctx, struct http_exchange *x)
{
    struct bulletins *bulletins = ctx;
    struct view view = take_view(bulletins);
    enum http_verdict verdict = HTTP_DONE;
    struct http_body *body;
    struct scrape scrape;

    atomic_fetch_add(&bulletins->scrapes_in_flight, 1);
    if (read_scrape(bulletins, x, &view, &scrape)) {
        bulletin_board_want(bulletins->config.board, scrape.format, view.now);
        if (scrape.gzip && is_rendered(&view, scrape.format)) {
            body = pages_get(&bulletins->pages, scrape, view.version, view.now);
            if (!body)
                body = pages_put(&bulletins->pages, scrape, view.version, view.now,
                                 packed_body(bulletins, &view, scrape));
            answer(bulletins, x, body);
        } else {
            verdict = HTTP_WORK;
        }
    }
    atomic_fetch_sub(&bulletins->scrapes_in_flight, 1);
    bulletin_unref(view.bulletin);
    return verdict;
}

static void answer_plain(struct bulletins *bulletins, struct http_exchange *x,
                         const struct view *view)
{
    struct scrape scrape;
    struct http_body *body;

    if (!read_scrape(bulletins, x, view, &scrape))
        return;
    body = plain_body(bulletins, view, scrape);
    if (body) {
        answer(bulletins, x, body);
        http_body_unref(body);
        return;
    }
    http_add_header(x, "Retry-After", "1");
    http_reply(x, 503, "text/plain; charset=utf-8",
               STR("too many are reading the uncompressed text; ask with Accept-Encoding: gzip, or "
                   "try again\n"));
}

static void work_on_metrics(void *ctx, struct http_exchange *x)
{
    struct bulletins *bulletins = ctx;
    struct view view = take_view(bulletins);

    atomic_fetch_add(&bulletins->scrapes_in_flight, 1);
    answer_plain(bulletins, x, &view);
    atomic_fetch_sub(&bulletins->scrapes_in_flight, 1);
    bulletin_unref(view.bulletin);
}

static enum http_verdict serve_landing(void *ctx, struct http_exchange *x)
{
    struct bulletins *bulletins = ctx;
    struct view view = take_view(bulletins);
    struct landing_row rows[USAGE_COLLECTORS_MAX];
    struct landing landing = {
        .program = "sonde agent",
        .what = "What the jobs on this node are doing",
        .metrics_path = bulletins->path,
        .rows = rows,
    };
    char about[200];
    struct buf page;

    snprintf(about, sizeof(about), "node %s", bulletins->node);
    landing.about = about;
    for (size_t i = 0; usage_collectors[i]; i++)
        if (view.tuning.collectors & UINT32_C(1) << i)
            rows[landing.n_rows++] =
                (struct landing_row){ usage_collectors[i]->name, usage_collectors[i]->help };
    buf_init(&page, LANDING_BYTES);
    landing_page(&page, &landing);
    http_reply(x, 200, "text/html; charset=utf-8", buf_str(&page));
    buf_free(&page);
    bulletin_unref(view.bulletin);
    return HTTP_DONE;
}

static bool is_ready(void *ctx)
{
    struct bulletins *bulletins = ctx;
    struct bulletin *bulletin = bulletin_board_take(bulletins->config.board);

    bulletin_unref(bulletin);
    return bulletin != NULL;
}

static int check_healthy(void *ctx, struct err *err)
{
    struct view view = take_view(ctx);
    int code = 0;

    if (view.is_stale)
        code = err_set(err, EIO,
                       "the last sample is %lld s old: the sampler hangs, in a file system or a "
                       "driver of this node",
                       (long long)(view.age_ns / NS_PER_SEC));
    bulletin_unref(view.bulletin);
    return code;
}

static int reload(void *ctx, struct err *err)
{
    struct bulletins *bulletins = ctx;

    return bulletins->config.reload(bulletins->config.ctx, err);
}

struct bulletins *bulletins_new(const struct bulletins_config *config,
                                const struct bulletins_tuning *tuning)
{
    struct bulletins *bulletins = heap_alloc(sizeof(*bulletins));
    struct http_route *route = bulletins->routes;

    bulletins->config = *config;
    bulletins->path = heap_str(str_of(config->path));
    bulletins->node = heap_str(str_of(config->node));
    bulletins->tuning = *tuning;
    bulletins->began_ns = clock_mono(config->clock);
    pthread_mutex_init(&bulletins->lock, NULL);
    *route++ = (struct http_route){ .method = "GET",
                                    .path = bulletins->path,
                                    .is_urgent = true,
                                    .handle = serve_metrics,
                                    .work = work_on_metrics };
    if (strcmp(bulletins->path, "/") != 0)
        *route++ = (struct http_route){ .method = "GET", .path = "/", .handle = serve_landing };
    bulletins->lifecycle = (struct lifecycle){
        .is_ready = is_ready, .check_healthy = check_healthy, .reload = reload, .ctx = bulletins
    };
    lifecycle_routes(&bulletins->lifecycle, route);
    return bulletins;
}

struct bulletins *bulletins_free(struct bulletins *bulletins)
{
    if (bulletins) {
        pages_clear(&bulletins->pages);
        pthread_mutex_destroy(&bulletins->lock);
        free(bulletins->path);
        free(bulletins->node);
        free(bulletins);
    }
    return NULL;
}

const struct http_route *bulletins_routes(const struct bulletins *bulletins)
{
    return bulletins->routes;
}

void bulletins_set_server(struct bulletins *bulletins, struct http_server *server)
{
    pthread_mutex_lock(&bulletins->lock);
    bulletins->server = server;
    pthread_mutex_unlock(&bulletins->lock);
}

void bulletins_tune(struct bulletins *bulletins, const struct bulletins_tuning *tuning)
{
    pthread_mutex_lock(&bulletins->lock);
    bulletins->tuning = *tuning;
    bulletins->tunings++;
    pthread_mutex_unlock(&bulletins->lock);
}
