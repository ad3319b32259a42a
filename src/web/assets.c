/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Caching as RFC 9111 and RFC 8246 (immutable) have it. */
#include "web/assets.h"

#include "base/arena.h"
#include "http/negotiate.h"

#include <zlib.h>

struct packed {
    const char *address; /* NULL: left out */
    const char *etag, *type;
    size_t n_plain, n_packed;
    const char *bytes; /* gzip */
};

static const struct packed table[ASSETS] = {
#include "assets.inc"
};

struct assets {
    struct http_body *packed[ASSETS];
};

struct assets *assets_new(void)
{
    struct assets *assets = heap_alloc(sizeof(*assets));

    for (size_t i = 0; i < ASSETS; i++)
        if (table[i].address)
            assets->packed[i] =
                http_body_new(&(struct iovec){ (void *)table[i].bytes, table[i].n_packed }, 1,
                              table[i].type, "gzip", NULL, NULL);
    return assets;
}

struct assets *assets_free(struct assets *assets)
{
    for (size_t i = 0; assets && i < ASSETS; i++)
        http_body_unref(assets->packed[i]);
    free(assets);
    return NULL;
}

const char *asset_address(enum asset asset)
{
    return table[asset].address;
}

/* For the few that take no gzip. */
static void reply_plain(const struct packed *packed, struct http_exchange *x)
{
    char *plain = heap_array(packed->n_plain, 1);
    z_stream stream = {
        .next_in = (unsigned char *)packed->bytes,
        .avail_in = (unsigned)packed->n_packed,
        .next_out = (unsigned char *)plain,
        .avail_out = (unsigned)packed->n_plain,
    };

    if (inflateInit2(&stream, MAX_WBITS + 16) == Z_OK)
        inflate(&stream, Z_FINISH);
    http_reply(x, 200, packed->type, (struct str){ plain, stream.total_out });
    inflateEnd(&stream);
    free(plain);
}

static void reply(const struct assets *assets, size_t i, struct http_exchange *x)
{
    http_add_header(x, "Cache-Control", "public, max-age=31536000, immutable");
    http_add_header(x, "ETag", table[i].etag);
    if (str_eq(http_header(x, "If-None-Match"), str_of(table[i].etag)))
        http_reply(x, 304, table[i].type, STR(""));
    else if (negotiate_gzip(http_header(x, "Accept-Encoding")))
        http_reply_body(x, assets->packed[i]);
    else
        reply_plain(&table[i], x);
}

void assets_serve(const struct assets *assets, struct http_exchange *x)
{
    for (size_t i = 0; i < ASSETS; i++)
        if (table[i].address && str_eq(http_path(x), str_of(table[i].address))) {
            reply(assets, i, x);
            return;
        }
    http_reply(x, 404, "text/plain; charset=utf-8",
               STR("there is no such file: load the page again, sonde was renewed\n"));
}
