/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connections that were answered before their request was read to its end. A socket that is closed
 * with bytes unread is reset, and the client may lose the answer. So what the client still sends is
 * read and dropped until it closes the connection, within limits. */
#include "http/internal.h"

#include "base/arena.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    MOST_DROPPED = 4 << 20, /* bytes of one connection */
    AT_ONCE = 16 * 1024,
};

static const int64_t linger_ns = 2 * NS_PER_SEC;

struct lingering_conn {
    enum watch watch;
    struct http_server *server;
    struct link link; /* in http_server.lingering */
    int fd;
    int64_t since_ns;
    size_t n_dropped;
};

static struct lingering_conn *first_of(const struct http_server *server)
{
    struct link *first = list_first(&server->lingering);

    return first ? PART_OF(first, struct lingering_conn, link) : NULL;
}

static void end(struct lingering_conn *conn)
{
    struct http_server *server = conn->server;

    list_remove(&conn->link);
    server->n_lingering--;
    /* A child between fork and exec may hold the socket open, and with it epoll's memory of it. */
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    close(conn->fd);
    free(conn);
}

void linger_begin(struct http_server *server, int fd)
{
    struct lingering_conn *conn;
    struct epoll_event event = { .events = EPOLLIN };

    if (server->n_lingering >= server->max_lingering && server->n_lingering)
        end(first_of(server));
    fd = server->max_lingering ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return;
    conn = heap_alloc(sizeof(*conn));
    *conn = (struct lingering_conn){
        .watch = WATCH_LINGER, .server = server, .fd = fd, .since_ns = server_now(server)
    };
    event.data.ptr = conn;
    list_append(&server->lingering, &conn->link);
    server->n_lingering++;
    shutdown(fd, SHUT_WR);
    epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void linger_read(struct lingering_conn *conn)
{
    char dropped[AT_ONCE];
    ssize_t n = recv(conn->fd, dropped, sizeof(dropped), MSG_DONTWAIT);

    conn->n_dropped += n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN) || conn->n_dropped >= MOST_DROPPED)
        end(conn);
}

int64_t linger_next_deadline(const struct http_server *server)
{
    const struct lingering_conn *first = first_of(server);

    return first ? first->since_ns + linger_ns : INT64_MAX;
}

void linger_expire(struct http_server *server, int64_t now)
{
    while (linger_next_deadline(server) <= now)
        end(first_of(server));
}

void linger_end_all(struct http_server *server)
{
    while (first_of(server))
        end(first_of(server));
}
