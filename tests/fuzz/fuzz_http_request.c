/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes on a connection of the real server, which has users: each 0x1e begins another piece,
 * sent by itself. Only who gives the name and the password of a user gets to what needs one; a body
 * is no longer than its route takes; each connection is closed when the client has nothing more to
 * say, and what comes back begins as an HTTP answer. */
#include "http/server.h"

#include "base/num.h"

#include "scratch.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MOST_BYTES = 16 * 1024, MOST_BODY = 1000, MOST_HEADER = 8192, HANG_SECONDS = 300 };

/* Cost 4, the cheapest. Passwords are "secret" and "". */
#define WEB_CONFIG                                                                                 \
    "basic_auth_users:\n"                                                                          \
    "  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"                      \
    "  bob: $2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq\n"

/* RFC 4648, 4; padding may be missing. -1: it is none. */
static int decode_base64(struct str text, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int n = 0;

    while (text.n && text.p[text.n - 1] == '=')
        text.n--;
    for (size_t i = 0; i < text.n; i++) {
        const char *digit = memchr(digits, text.p[i], sizeof(digits) - 1);

        if (!digit)
            return -1;
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (i % 4)
            to[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return n;
}

/* Whom the header of a request proves. */
static struct str user_in(struct str header)
{
    static char pair[MOST_BYTES];
    int n;

    if (!str_eq_nocase(str_head(header, 6), STR("Basic ")))
        return STR("");
    n = decode_base64(str_trim(str_skip(header, 6)), pair);
    if (n < 0)
        return STR("");
    if (str_eq((struct str){ pair, (size_t)n }, STR("alice:secret")))
        return STR("alice");
    return str_eq((struct str){ pair, (size_t)n }, STR("bob:")) ? STR("bob") : STR("");
}

static void check_user(struct http_exchange *x, bool is_needed)
{
    struct str user = http_user(x);

    if (user.n || is_needed) {
        FUZZ_CHECK(http_header_count(x, "Authorization") == 1);
        FUZZ_CHECK(user.n && str_eq(user, user_in(http_header(x, "Authorization"))), "%.*s",
                   STR_ARG(user));
    }
}

static enum http_verdict answer(struct http_exchange *x)
{
    struct str body = http_request_body(x), argument = http_query(x, "a", 0);
    uint64_t length;

    FUZZ_CHECK(body.n <= MOST_BODY && http_path(x).n > 0 && http_path(x).p[0] == '/');
    if (http_body_length(x, &length))
        FUZZ_CHECK(body.n == length);
    http_reply(x, 200, "text/plain", argument.p ? argument : body);
    return HTTP_DONE;
}

static enum http_verdict answer_user(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    check_user(x, true);
    return answer(x);
}

static enum http_verdict answer_anyone(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    check_user(x, false);
    return answer(x);
}

static const struct http_route routes[] = {
    { .method = "GET", .path = "/user", .handle = answer_user },
    { .method = "POST", .path = "/user", .max_body = MOST_BODY, .handle = answer_user },
    { .method = "GET", .path = "/user/*", .handle = answer_user },
    { .method = "GET", .path = "/open", .access = HTTP_OPEN, .handle = answer_anyone },
    { .method = "POST",
      .path = "/other",
      .max_body = MOST_BODY,
      .access = HTTP_OTHER_PROOF,
      .handle = answer_anyone },
    { 0 },
};

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static void start_server(void)
{
    static struct http_server *server;
    static char listen_on[sizeof(address.sun_path) + sizeof("unix:")];
    struct str listen;
    struct http_config config = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 64,
        .workers = 1,
        .queue = 8,
        .request_ns = 600 * NS_PER_SEC,
        .response_ns = 600 * NS_PER_SEC,
        .max_header = MOST_HEADER,
        .clock = &clock_real,
    };
    struct err err;

    if (server)
        return;
    config.log = log_new(STDERR_FILENO, LOG_ERROR + 1, &clock_real);
    config.web_config = scratch_write("web.yml", STR(WEB_CONFIG));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/http", scratch());
    snprintf(listen_on, sizeof(listen_on), "unix:%s", address.sun_path);
    listen = str_of(listen_on);
    FUZZ_CHECK(http_start(&config, &server, &err) == 0, "%s", err.text);
}

/* A connection, and the beginning of what came back on it. */
struct exchange {
    int fd;
    bool is_closed; /* by the server */
    char text[64 * 1024];
    size_t n;
};

/* Takes what is there; waits for more only if it must. */
static void receive(struct exchange *exchange, bool must_wait)
{
    char more[16 * 1024];
    ssize_t got = recv(exchange->fd, more, sizeof(more), must_wait ? 0 : MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        FUZZ_CHECK(!must_wait, "the connection stays open");
        return;
    }
    exchange->is_closed = got <= 0;
    for (ssize_t i = 0; i < got && exchange->n < sizeof(exchange->text) - 1; i++)
        exchange->text[exchange->n++] = more[i];
}

/* Sends it, and waits until the server has read it: libmicrohttpd misses the end of a stream that
 * comes together with its last bytes, and closes the connection only at the deadline. */
static void send_piece(struct exchange *exchange, struct str piece)
{
    int unread = 1;

    while (piece.n && !exchange->is_closed) {
        ssize_t n = send(exchange->fd, piece.p, piece.n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n > 0)
            piece = str_skip(piece, (size_t)n);
        receive(exchange, false);
    }
    while (unread && !exchange->is_closed) {
        FUZZ_CHECK(ioctl(exchange->fd, SIOCOUTQ, &unread) == 0);
        receive(exchange, false);
        sched_yield();
    }
}

/* RFC 9112: a status line, and header lines without control characters. */
static void check_answer(struct str text)
{
    struct str line = str_cut(&text, '\n');
    uint64_t status = 0;

    FUZZ_CHECK(str_starts(line, STR("HTTP/1.")), "%.*s", STR_ARG(line));
    FUZZ_CHECK(num_get_u64(str_head(str_skip(line, 9), 3), &status), "%.*s", STR_ARG(line));
    FUZZ_CHECK(status >= 100 && status < 600, "%.*s", STR_ARG(line));
    for (; line.n > 1 && text.p; line = str_cut(&text, '\n')) {
        FUZZ_CHECK(line.p[line.n - 1] == '\r');
        for (size_t i = 0; i + 1 < line.n; i++)
            FUZZ_CHECK((unsigned char)line.p[i] >= ' ' && line.p[i] != '\x7f');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct exchange exchange;
    const struct timeval hang = { .tv_sec = HANG_SECONDS };
    struct str rest = { (const char *)data, size };

    if (size == 0 || size > MOST_BYTES)
        return 0;
    start_server();
    exchange.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    exchange.is_closed = false;
    exchange.n = 0;
    FUZZ_CHECK(connect(exchange.fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    setsockopt(exchange.fd, SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof(hang));
    while (rest.p)
        send_piece(&exchange, str_cut(&rest, '\x1e'));
    shutdown(exchange.fd, SHUT_WR);
    while (!exchange.is_closed)
        receive(&exchange, true);
    if (exchange.n)
        check_answer((struct str){ exchange.text, exchange.n });
    close(exchange.fd);
    return 0;
}
