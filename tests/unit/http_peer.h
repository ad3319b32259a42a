/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An HTTP server in the process of the test, for what sonde asks or tells over HTTP. It keeps each
 * request, replies what the test says, and holds requests until the test lets them go. */
#ifndef SONDE_TESTS_HTTP_PEER_H
#define SONDE_TESTS_HTTP_PEER_H

#include "base/str.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct certificate;
struct http_peer;

struct peer_request {
    char *method;
    char *target;               /* as it came, with its query */
    char *path;                 /* decoded, without the query */
    char *arguments, *headers;  /* for the functions below */
    struct str body;            /* with a NUL behind it */
    atomic_bool was_replied_to; /* the client has got all of it */
};

/* Of that name, decoded; "" if there is none. */
const char *peer_header(const struct peer_request *request, const char *name);
const char *peer_argument(const struct peer_request *request, const char *name);

enum peer_manner {
    PEER_AT_ONCE,
    PEER_BYTE_BY_BYTE,
    PEER_TRICKLE, /* byte by byte, one every 2 ms, and then spaces without end */
    PEER_HALF,    /* half of it, then the connection is closed */
    PEER_ENDLESS, /* again and again */
    PEER_NEVER,   /* the header, and then nothing */
};

struct peer_reply {
    unsigned status;     /* 0: 200 */
    const char *type;    /* Content-Type; NULL: none */
    struct str body;     /* copied if it is sent at once; else it lives until the peer is freed */
    const char *headers; /* more of them, as lines "Name: value"; NULL: none */
    enum peer_manner manner;
    bool is_chunked; /* its length is not told in the header */
};

/* Listens on a port of the loopback interface; NULL: no TLS. */
struct http_peer *peer_open(const struct certificate *certificate);
struct http_peer *peer_open_unix(const char *path);
struct http_peer *peer_free(struct http_peer *peer);

/* "http://127.0.0.1:PORT", or https. */
const char *peer_url(const struct http_peer *peer);
unsigned short peer_port(const struct http_peer *peer);

/* Goes away, letting go what is held; comes back at the same place. */
void peer_close(struct http_peer *peer);
void peer_reopen(struct http_peer *peer);

/* What all are replied to; or each by a function, which is called by one thread at a time and may
 * use what the test changes between peer_lock() and peer_unlock(). */
void peer_reply_with(struct http_peer *peer, struct peer_reply reply);
void peer_reply_by(struct http_peer *peer,
                   void (*reply)(const struct peer_request *request, struct peer_reply *ret));
void peer_lock(struct http_peer *peer);
void peer_unlock(struct http_peer *peer);

/* Requests whose target has this part come in and get no reply until they are let go; "": all. */
void peer_hold(struct http_peer *peer, const char *part);
void peer_release(struct http_peer *peer);
size_t peer_held(struct http_peer *peer);

/* How many requests have come, and the n-th, from 1, when it is there. */
size_t peer_requests(struct http_peer *peer);
const struct peer_request *peer_request(struct http_peer *peer, size_t n);
/* Begins to count anew. */
void peer_forget(struct http_peer *peer);

/* How many connections were made. */
size_t peer_connections(struct http_peer *peer);

#endif
