/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client for tests of the HTTP server that can misbehave. */
#include "test.h"

#include "http_client.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATIENCE_MS = TEST_DEADLINE / NS_PER_MS };

static void wait_for(int fd, short events)
{
    struct pollfd poll_fd = { .fd = fd, .events = events };

    if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
        fail_msg("the server did not answer within %d ms", PATIENCE_MS);
}

static void bind_to(int fd, const char *source)
{
    struct sockaddr_in four = { .sin_family = AF_INET };

    assert_int_equal(inet_pton(AF_INET, source, &four.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&four, sizeof(four)), 0);
}

static int connect_tcp(struct str place, const char *source)
{
    struct sockaddr_in four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    bool is_six = place.p[0] == '[';
    size_t end = is_six ? str_find(place, ']') : str_find(place, ':');
    char host[100];
    uint64_t port;
    int fd;

    snprintf(host, sizeof(host), "%.*s", (int)(end - is_six), place.p + is_six);
    assert_true(num_get_u64(str_skip(place, end + 1 + is_six), &port));
    if (strcmp(host, "localhost") == 0)
        snprintf(host, sizeof(host), "127.0.0.1");
    four.sin_port = six.sin6_port = htons((uint16_t)port);
    inet_pton(AF_INET, host, &four.sin_addr);
    inet_pton(AF_INET6, host, &six.sin6_addr);
    fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (source)
        bind_to(fd, source);
    /* Or each piece of a handshake waits 40 ms for the server's acknowledgement of the last. */
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
    if (connect(fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof(six) : sizeof(four)) <
        0) {
        int code = errno;

        close(fd);
        return -code;
    }
    return fd;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        int code = errno;

        close(fd);
        return -code;
    }
    return fd;
}

int client_connect_from(const char *address, const char *source)
{
    struct str rest = str_of(address);
    size_t slashes = str_find_str(rest, STR("//"));

    return connect_tcp(slashes < rest.n ? str_skip(rest, slashes + 2) : rest, source);
}

int client_connect(const char *address)
{
    if (str_starts(str_of(address), STR("unix:")))
        return connect_unix(address + 5);
    return client_connect_from(address, NULL);
}

void client_open(struct client *client, const char *address)
{
    client->fd = client_connect(address);
    client->tls = NULL;
    client->n = client->used = 0;
    if (client->fd < 0)
        fail_msg("can't connect to %s: %d", address, client->fd);
}

void client_close(struct client *client)
{
    if (client->tls)
        gnutls_deinit(client->tls);
    if (client->fd >= 0)
        close(client->fd);
    *client = (struct client){ .fd = -1 };
}

int client_handshake(struct client *client, gnutls_certificate_credentials_t credentials,
                     const char *priority)
{
    int r;

    /* Its certificate is shown to everybody, also to those who say that they won't trust it. */
    assert_int_equal(
        gnutls_init(&client->tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL | GNUTLS_FORCE_CLIENT_CERT), 0);
    assert_int_equal(gnutls_priority_set_direct(client->tls, priority, NULL), 0);
    gnutls_credentials_set(client->tls, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(client->tls, client->fd);
    gnutls_handshake_set_timeout(client->tls, PATIENCE_MS);
    do
        r = gnutls_handshake(client->tls);
    while (r < 0 && !gnutls_error_is_fatal(r));
    return r;
}

void client_send(struct client *client, struct str bytes)
{
    while (bytes.n) {
        ssize_t sent = client->tls ? gnutls_record_send(client->tls, bytes.p, bytes.n)
                                   : send(client->fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        /* A server that has had enough may hang up while we talk: what it said is still read. */
        if (sent <= 0)
            return;
        bytes = str_skip(bytes, (size_t)sent);
    }
}

void client_send_text(struct client *client, const char *text)
{
    client_send(client, str_of(text));
}

/* False at the end of the connection. */
static bool receive(struct client *client)
{
    size_t room = sizeof(client->received) - client->n;
    ssize_t got;

    assert_true(room > 0);
    if (client->tls) {
        if (!gnutls_record_check_pending(client->tls))
            wait_for(client->fd, POLLIN);
        do
            got = gnutls_record_recv(client->tls, client->received + client->n, room);
        while (got < 0 && !gnutls_error_is_fatal((int)got));
    } else {
        wait_for(client->fd, POLLIN);
        got = recv(client->fd, client->received + client->n, room, 0);
    }
    if (got <= 0)
        return false;
    client->n += (size_t)got;
    return true;
}

struct str reply_header(const struct reply *reply, const char *name)
{
    struct str rest = reply->head;

    while (rest.p) {
        struct str line = str_cut(&rest, '\n'), key = str_cut(&line, ':');

        if (line.p && str_eq_nocase(key, str_of(name)))
            return str_trim(line);
    }
    return (struct str){ 0 };
}

static struct str received(const struct client *client)
{
    return (struct str){ client->received, client->n };
}

struct reply client_read(struct client *client, bool has_body)
{
    struct reply reply = { 0 };
    uint64_t status, length = 0;
    size_t head;

    memmove(client->received, client->received + client->used, client->n - client->used);
    client->n -= client->used;
    client->used = 0;
    while ((head = str_find_str(received(client), STR("\r\n\r\n"))) == client->n)
        if (!receive(client))
            return reply;
    reply.head = str_head(received(client), head);
    assert_true(num_get_u64(str_head(str_skip(reply.head, 9), 3), &status));
    reply.status = (unsigned)status;
    if (has_body && reply_header(&reply, "Content-Length").n)
        assert_true(num_get_u64(reply_header(&reply, "Content-Length"), &length));
    while (client->n < head + 4 + length)
        if (!receive(client))
            fail_msg("the answer was cut short");
    reply.body = (struct str){ client->received + head + 4, length };
    client->used = head + 4 + length;
    return reply;
}

struct reply client_get_with(struct client *client, const char *path, const char *headers)
{
    char request[20000];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, headers);
    client_send_text(client, request);
    return client_read(client, true);
}

struct reply client_get(struct client *client, const char *path)
{
    return client_get_with(client, path, "");
}

void client_await_close(struct client *client)
{
    do
        client->n = client->used = 0;
    while (receive(client));
}
