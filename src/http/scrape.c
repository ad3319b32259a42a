/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads what a scrape asks for, and keeps responses ready. */
#include "http/scrape.h"

#include "base/arena.h"
#include "base/quote.h"
#include "http/negotiate.h"

/* How long the part that a program says of itself may be shown again. */
static const int64_t tail_lives_ns = NS_PER_SEC;

static void refuse(struct http_exchange *x, struct str name)
{
    char sentence[400];

    snprintf(sentence, sizeof(sentence),
             "there is no collector \"%s\", or it is switched off; / lists those that are on\n",
             quote(name).text);
    http_reply(x, 400, "text/plain; charset=utf-8", str_of(sentence));
}

bool scrape_read(struct http_exchange *x, int (*find)(struct str name), uint64_t on,
                 struct scrape *ret)
{
    struct str name;

    *ret = (struct scrape){
        .format = negotiate_format(http_header(x, "Accept")),
        .gzip = negotiate_gzip(http_header(x, "Accept-Encoding")),
    };
    for (size_t i = 0; (name = http_query(x, "collect[]", i)).p; i++) {
        int found = find(name);

        if (found < 0 || !(on & UINT64_C(1) << found)) {
            refuse(x, name);
            return false;
        }
        ret->collectors |= UINT64_C(1) << found;
    }
    if (!ret->collectors)
        ret->collectors = on;
    return true;
}

/* What an answer holds on to while it is being sent. */
struct holding {
    size_t n;
    unsigned char trailer[GZIP_TRAILER];
    struct segment *segments[];
};

static void release_holding(void *ctx)
{
    struct holding *holding = ctx;

    for (size_t i = 0; i < holding->n; i++)
        segment_unref(holding->segments[i]);
    free(holding);
}

struct http_body *scrape_body(struct scrape scrape, struct segment *const *segments, size_t n)
{
    struct holding *holding = heap_alloc(sizeof(*holding) + n * sizeof(segments[0]));
    struct segment_list list = { segments, n };
    struct iovec *iov = heap_array(n + 2, sizeof(*iov));
    struct http_body *body;
    size_t n_iov;

    holding->n = n;
    memcpy(holding->segments, segments, n * sizeof(segments[0]));
    n_iov = scrape.gzip ? segment_iov_gzip(list, iov, holding->trailer) : segment_iov(list, iov);
    body = http_body_new(iov, n_iov, metric_content_type(scrape.format),
                         scrape.gzip ? "gzip" : NULL, release_holding, holding);
    free(iov);
    return body;
}

void scrape_tell(const struct http_server *server, struct program *to)
{
    struct http_stats stats = { 0 };

    if (server)
        http_stats(server, &stats);
    to->http_requests = stats.requests;
    to->http_connections = stats.connections;
    to->http_busy = stats.refused_busy;
    to->http_unauthorized = stats.refused_auth;
    to->http_timed_out = stats.timed_out;
    to->http_evicted = stats.evicted;
}

static void drop(struct page *page)
{
    http_body_unref(page->body);
    *page = (struct page){ 0 };
}

static bool is_same_version(struct page_version a, struct page_version b)
{
    return a.generation == b.generation && a.serial == b.serial;
}

static bool is_same_scrape(struct scrape a, struct scrape b)
{
    return a.collectors == b.collectors && a.late == b.late && a.format == b.format &&
           a.gzip == b.gzip;
}

void pages_drop_old(struct pages *pages, struct page_version version)
{
    for (size_t i = 0; i < PAGES; i++)
        if (!is_same_version(pages->page[i].version, version))
            drop(&pages->page[i]);
}

struct http_body *pages_get(struct pages *pages, struct scrape scrape, struct page_version version,
                            int64_t now)
{
    pages_drop_old(pages, version);
    for (size_t i = 0; i < PAGES; i++) {
        struct page *page = &pages->page[i];

        if (!page->body || !is_same_scrape(page->scrape, scrape))
            continue;
        if (now - page->made_at < tail_lives_ns) {
            page->used_at = now;
            return page->body;
        }
        drop(page);
    }
    return NULL;
}

struct http_body *pages_put(struct pages *pages, struct scrape scrape, struct page_version version,
                            int64_t now, struct http_body *body)
{
    struct page *oldest = &pages->page[0];

    for (size_t i = 1; i < PAGES; i++)
        if (pages->page[i].used_at < oldest->used_at)
            oldest = &pages->page[i];
    drop(oldest);
    *oldest = (struct page){
        .scrape = scrape, .version = version, .made_at = now, .used_at = now, .body = body
    };
    return body;
}

void pages_clear(struct pages *pages)
{
    for (size_t i = 0; i < PAGES; i++)
        drop(&pages->page[i]);
}
