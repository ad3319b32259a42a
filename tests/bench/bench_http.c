/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scrapes of a ready body on kept connections: our server's one thread against one thread of a
 * client, beside a server that does nothing but write the same bytes again. */
#include "base/clock.h"
#include "base/str.h"
#include "http/server.h"

#include "bench.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    BODY_BYTES = 20000,
    PIECES = 10,
    MOST_CONNECTIONS = 64,
    ANSWER_MAX = 2 * BODY_BYTES,
    ROUNDS = 3
};

static const double seconds_each = 0.4;

static const char request[] =
    "GET /metrics HTTP/1.1\r\n"
    "Host: 127.0.0.1:9092\r\n"
    "User-Agent: Prometheus/2.42.0\r\n"
    "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n"
    "Accept-Encoding: gzip\r\n"
    "X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n";

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        bench_give_up("cannot connect to port %u", port);
    return fd;
}

static void send_request(int fd)
{
    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1)
        bench_give_up("a request could not be sent");
}

/* One whole answer, whose length is then that of all others. */
static size_t read_first(int fd, char answer[ANSWER_MAX])
{
    size_t n = 0, head;

    send_request(fd);
    do {
        ssize_t got = recv(fd, answer + n, ANSWER_MAX - n, 0);

        if (got <= 0)
            bench_give_up("there was no answer");
        n += (size_t)got;
        head = str_find_str((struct str){ answer, n }, STR("\r\n\r\n"));
    } while (head == n || n < head + 4 + BODY_BYTES);
    if (!str_starts((struct str){ answer, n }, STR("HTTP/1.1 200")))
        bench_give_up("the answer was \"%.*s\"", 40, answer);
    return n;
}

struct connection {
    int fd;
    size_t received;
};

/* Answers per second over n connections, each of which asks again when it has its answer. */
static double measure(uint16_t port, size_t n, size_t answer_bytes)
{
    static char sink[1 << 20];
    struct connection connections[MOST_CONNECTIONS] = { 0 };
    struct epoll_event events[MOST_CONNECTIONS];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    size_t answers = 0;
    double began, lasted;

    for (size_t i = 0; i < n; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &connections[i] };

        connections[i].fd = connect_to(port);
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, connections[i].fd, &event);
        send_request(connections[i].fd);
    }
    began = bench_wall_seconds();
    while ((lasted = bench_wall_seconds() - began) < seconds_each) {
        int ready = epoll_wait(epoll_fd, events, MOST_CONNECTIONS, 1000);

        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            ssize_t got = recv(c->fd, sink, sizeof(sink), 0);

            if (got <= 0)
                bench_give_up("a connection was closed");
            c->received += (size_t)got;
            if (c->received == answer_bytes) {
                c->received = 0;
                answers++;
                send_request(c->fd);
            }
        }
    }
    for (size_t i = 0; i < n; i++)
        close(connections[i].fd);
    close(epoll_fd);
    return (double)answers / lasted;
}

/* The floor: one thread that writes a fixed answer for each request it has read whole. */
struct floor {
    int listen_fd, epoll_fd;
    char answer[ANSWER_MAX];
    size_t answer_bytes;
    atomic_bool is_over;
};

static void *run_floor(void *arg)
{
    struct floor *floor = arg;
    char received[4096];

    while (!atomic_load(&floor->is_over)) {
        struct epoll_event events[MOST_CONNECTIONS];
        int ready = epoll_wait(floor->epoll_fd, events, MOST_CONNECTIONS, 100);

        for (int i = 0; i < ready; i++) {
            struct epoll_event event = { .events = EPOLLIN };
            int fd = events[i].data.fd;

            if (fd == floor->listen_fd) {
                event.data.fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
                epoll_ctl(floor->epoll_fd, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (recv(fd, received, sizeof(received), 0) <= 0) {
                close(fd);
            } else if (send(fd, floor->answer, floor->answer_bytes, MSG_NOSIGNAL) < 0) {
                close(fd);
            }
        }
    }
    return NULL;
}

static uint16_t start_floor(struct floor *floor, pthread_t *ret)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    struct epoll_event event = { .events = EPOLLIN };

    floor->listen_fd = event.data.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    floor->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (bind(floor->listen_fd, (struct sockaddr *)&address, size) < 0 ||
        listen(floor->listen_fd, MOST_CONNECTIONS) < 0 ||
        epoll_ctl(floor->epoll_fd, EPOLL_CTL_ADD, floor->listen_fd, &event) < 0 ||
        getsockname(floor->listen_fd, (struct sockaddr *)&address, &size) < 0 ||
        pthread_create(ret, NULL, run_floor, floor) != 0)
        bench_give_up("the reference server does not start");
    return ntohs(address.sin_port);
}

static enum http_verdict give_body(void *ctx, struct http_exchange *x)
{
    http_reply_body(x, ctx);
    return HTTP_DONE;
}

static struct http_server *start_server(struct http_body *body)
{
    static const struct http_route routes[] = {
        { "GET", "/metrics", 0, HTTP_WITH_PASSWORD, give_body, NULL, NULL, NULL, false }, { 0 }
    };
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .ctx = body,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 512,
        .workers = 1,
        .queue = 1,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 10 * NS_PER_SEC,
        .max_header = 16384,
        .clock = &clock_real,
    };
    struct http_server *server;
    struct err err;

    if (http_start(&config, &server, &err) < 0)
        bench_give_up("%s", err.text);
    return server;
}

static uint16_t port_of(const struct http_server *server)
{
    const char *colon = strrchr(http_address(server, 0), ':');

    return (uint16_t)strtoul(colon + 1, NULL, 10);
}

int main(int argc, char **argv)
{
    static const struct {
        size_t connections;
        const char *name;
        enum bench_goal goal;
    } rows[] = {
        { 1, "http: scrapes of 20 KB, 1 connection", BENCH_NO_GOAL },
        { 4, "http: scrapes of 20 KB, 4 connections", BENCH_AT_LEAST },
        { 64, "http: scrapes of 20 KB, 64 connections", BENCH_AT_LEAST },
    };
    static char text[BODY_BYTES];
    static struct floor floor;
    struct iovec pieces[PIECES];
    struct http_body *body;
    struct http_server *server;
    pthread_t floor_thread;
    uint16_t port, floor_port;
    int fd;

    bench_begin(argc, argv);
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (struct iovec){ text + i * BODY_BYTES / PIECES, BODY_BYTES / PIECES };
    body = http_body_new(pieces, PIECES, "text/plain; version=0.0.4", "gzip", NULL, NULL);
    server = start_server(body);
    port = port_of(server);
    fd = connect_to(port);
    floor.answer_bytes = read_first(fd, floor.answer);
    close(fd);
    floor_port = start_floor(&floor, &floor_thread);
    for (size_t i = 0; i < COUNT(rows); i++)
        bench_row(&(struct bench_row){
            rows[i].name, "1/s", measure(port, rows[i].connections, floor.answer_bytes),
            measure(floor_port, rows[i].connections, floor.answer_bytes), rows[i].goal, 30000 });
    atomic_store(&floor.is_over, true);
    pthread_join(floor_thread, NULL);
    close(floor.listen_fd);
    close(floor.epoll_fd);
    http_body_unref(body);
    http_stop(server);
    return 0;
}
