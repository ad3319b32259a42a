/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a scrape asks for, and answers that are kept ready for it: what the routes of every program
 * that serves metrics have in common. */
#ifndef SONDE_HTTP_SCRAPE_H
#define SONDE_HTTP_SCRAPE_H

#include "collector/program.h"
#include "http/server.h"
#include "metric/segment.h"

struct scrape {
    uint64_t collectors; /* bit i: the program's collector i */
    uint64_t late;       /* of them, those that are left out: they could not be waited for */
    enum metric_format format;
    bool gzip;
};

/* From its headers and ?collect[]=NAME, any number of them; all that are `on` without. False if one
 * is not: it has been answered. */
bool scrape_read(struct http_exchange *x, int (*find)(struct str name), uint64_t on,
                 struct scrape *ret);

/* An answer made of segments, in the format of `scrape`. Takes the references over. The gzip form
 * needs no text of them; the plain one does. */
struct http_body *scrape_body(struct scrape scrape, struct segment *const *segments, size_t n);

/* What the server counts; NULL: it is about to start. */
void scrape_tell(const struct http_server *server, struct program *to);

enum { PAGES = 16 }; /* combinations of collectors, format and encoding that are kept ready */

/* What an answer was made of: whoever replaces any of it has another number. */
struct page_version {
    uint64_t generation, serial;
};

struct page {
    struct scrape scrape;
    struct page_version version;
    int64_t made_at, used_at;
    struct http_body *body; /* NULL: the place is free */
};

/* The HTTP thread's own. A zeroed one is empty. */
struct pages {
    struct page page[PAGES];
};

/* The ready answer; NULL if there is none, or what the program says of itself in it has aged: then
 * make one and put it. */
struct http_body *pages_get(struct pages *pages, struct scrape scrape, struct page_version version,
                            int64_t now);

/* In the place of the one used longest ago. Takes the body over, and returns it. */
struct http_body *pages_put(struct pages *pages, struct scrape scrape, struct page_version version,
                            int64_t now, struct http_body *body);

/* Nobody will ask for pages of an older version. */
void pages_drop_old(struct pages *pages, struct page_version version);
void pages_clear(struct pages *pages);

#endif
