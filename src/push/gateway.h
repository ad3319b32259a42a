/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A Prometheus Pushgateway, and how it is spoken to: the Pushgateway's README, "API". */
#ifndef SONDE_PUSH_GATEWAY_H
#define SONDE_PUSH_GATEWAY_H

#include "base/buf.h"
#include "base/fetch.h"

enum {
    GATEWAY_URL = 1024,  /* bytes of a base URL */
    GATEWAY_WORDS = 300, /* of an answer that are kept for a log */
};

struct gateway {
    struct fetch_base base;
    char *password_file, *ca_file; /* NULL: none */
    struct fetch_line *line;       /* NULL: a connection for each request */
};

/* user:password@ is taken out of the URL and sent as basic auth; the file, or NULL, has the
 * password of the URL's user and is read for each request. -EINVAL for a URL that cannot be used,
 * or a file without a user; -ENOENT with a sentence that names the package when libcurl is not
 * installed; what open(2) says of the file. */
int gateway_open(const char *url, const char *password_file, const char *ca_file,
                 struct gateway *ret, struct err *err);
void gateway_close(struct gateway *gateway);

/* "/NAME/VALUE", or "/NAME@base64/BASE64" for what cannot stand in a path. */
void gateway_put_label(struct buf *to, const char *name, struct str value);

/* fetch_run with the credentials, the certificates and the line of this one. */
int gateway_fetch(const struct gateway *gateway, struct fetch *fetch, struct fetch_result *ret,
                  struct err *err);

/* The first words of an answer, for whoever reads the log. */
struct gateway_words {
    char text[GATEWAY_WORDS];
    size_t n;
};

/* The same for a request whose answer is nothing but words: `sink` and `ctx` are set here. */
int gateway_request(const struct gateway *gateway, struct fetch *fetch,
                    struct gateway_words *ret_words, long *ret_status, struct err *err);

enum gateway_verdict {
    GATEWAY_TAKEN,
    GATEWAY_REFUSED, /* and would be again */
    GATEWAY_FAILED,  /* and may be taken later */
};

/* What a status means; a sentence unless it was taken. */
enum gateway_verdict gateway_judge(const struct gateway *gateway, long status, struct err *err);

#endif
