/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small HTTP client for tests: it sends exactly the bytes it is told to and reads whole answers,
 * plain or through TLS. Every wait ends after TEST_DEADLINE with a failed test. */
#ifndef SONDE_TESTS_HTTP_CLIENT_H
#define SONDE_TESTS_HTTP_CLIENT_H

#include "base/str.h"

#include <gnutls/gnutls.h>

struct client {
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    size_t n;             /* bytes received … */
    size_t used;          /* … of which the answer read last takes these */
    char received[256 * 1024];
};

struct reply {
    unsigned status;       /* 0: the connection ended without an answer */
    struct str head, body; /* in client->received, until the next read */
};

/* address as http_address gives it; the scheme does not matter. */
int client_connect(const char *address);
/* The same over TCP, from another IPv4 address of this machine, such as "127.0.0.2". */
int client_connect_from(const char *address, const char *source);
void client_open(struct client *client, const char *address);
void client_close(struct client *client); /* also one that was closed before */

/* Puts TLS on an open connection. Returns GnuTLS's code: 0 if the handshake was done. */
int client_handshake(struct client *client, gnutls_certificate_credentials_t credentials,
                     const char *priority);
void client_send(struct client *client, struct str bytes);
void client_send_text(struct client *client, const char *text);

/* The next answer; has_body false after HEAD. */
struct reply client_read(struct client *client, bool has_body);

/* GET of a path, on an open connection. */
struct reply client_get(struct client *client, const char *path);
struct reply client_get_with(struct client *client, const char *path, const char *headers);

/* Returns when the server has closed the connection; bytes before that are dropped. */
void client_await_close(struct client *client);

/* The value of a header, empty if absent. */
struct str reply_header(const struct reply *reply, const char *name);

#endif
