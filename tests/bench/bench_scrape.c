/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a scrape of fresh sections costs the one thread that answers: the CPU time of its handler,
 * when the page is ready, and when what sonde says of itself has to be made anew, as it is once a
 * second. */
#include "base/arena.h"
#include "base/log.h"
#include "http/metrics.h"

#include "bench.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SCRAPES = 2000 };

static const char request[] = "GET /metrics HTTP/1.1\r\n"
                              "Host: 127.0.0.1\r\n"
                              "Accept-Encoding: gzip\r\n\r\n";

static enum http_verdict (*handle)(void *ctx, struct http_exchange *x);
static double spent[SCRAPES];
static size_t n_spent;

static double thread_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum http_verdict timed(void *ctx, struct http_exchange *x)
{
    double began = thread_seconds();
    enum http_verdict verdict = handle(ctx, x);

    if (n_spent < SCRAPES)
        spent[n_spent++] = thread_seconds() - began;
    return verdict;
}

static int connect_to(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        bench_give_up("cannot connect to %s", address);
    return fd;
}

/* Takes one whole answer. */
static void scrape(int fd)
{
    static char answer[4 << 20];
    size_t n = 0, head = 0, length = 0;

    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1)
        bench_give_up("a request could not be sent");
    while (!length || n < length) {
        ssize_t got = recv(fd, answer + n, sizeof(answer) - n, 0);
        const char *field;

        if (got <= 0)
            bench_give_up("there was no answer");
        n += (size_t)got;
        head = str_find_str((struct str){ answer, n }, STR("\r\n\r\n"));
        field = head < n ? memmem(answer, head, "Content-Length: ", 16) : NULL;
        if (field)
            length = head + 4 + strtoul(field + 16, NULL, 10);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(int fd, const char *name, enum bench_goal goal)
{
    n_spent = 0;
    for (size_t i = 0; i < SCRAPES; i++)
        scrape(fd);
    if (n_spent != SCRAPES)
        bench_give_up("a scrape had to wait");
    qsort(spent, SCRAPES, sizeof(*spent), ascending);
    bench_row(&(struct bench_row){ name, "us", spent[SCRAPES * 99 / 100] * 1e6, 0, goal, 50 });
}

/* Time that goes on by two seconds each time that somebody looks, once it has been told to. */
static bool hurries;
static int64_t hurried_ns;

static int64_t hurried_mono(const struct clock *clock)
{
    (void)clock;
    hurried_ns += hurries ? 2 * NS_PER_SEC : 0;
    return clock_mono(&clock_real) + hurried_ns;
}

static struct engine *make_engine(struct metrics *metrics, struct log *log)
{
    const struct source_settings settings = { .spec =
                                                  STR_INIT("sim:nodes=10000,jobs=100000,seed=1") };
    struct engine *engine = heap_alloc(sizeof(*engine));
    struct refresh_config config = {
        .tuning = { .timeout_ns = 60 * NS_PER_SEC,
                    .stale_limit_ns = 3600 * NS_PER_SEC,
                    .publish = { .max_segment = 256 << 20, .clock = &clock_real } },
        .clock = &clock_real,
        .log = log,
        .changed = metrics_changed,
        .ctx = metrics,
    };
    struct feed *slurm = &engine->clusters[0].feeds[FEED_SLURM];
    collector_set usual = collector_profile(STR(""));
    struct err err;

    engine->n_clusters = 1;
    if (source_open(&settings, &clock_real, &slurm->source, &err) < 0)
        bench_give_up("%s", err.text);
    for (size_t i = 0; collectors[i]; i++)
        if (slurm->source->class->kinds & KIND_BIT(collectors[i]->kind))
            engine->collectors |= usual & (collector_set)1 << i;
    for (int kind = 0; kind < KINDS; kind++)
        config.tuning.poll_limit_ns[kind] = 3600 * NS_PER_SEC;
    config.tuning.publish.collectors = engine->collectors;
    config.source = slurm->source;
    engine->patience_ns = 60 * NS_PER_SEC;
    if (refresher_start(&config, &slurm->refresher, &err) < 0)
        bench_give_up("%s", err.text);
    return engine;
}

static struct http_server *start_server(struct metrics *metrics)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    static struct http_route routes[2];
    const struct http_config config = {
        .routes = routes,
        .ctx = metrics,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 10,
        .workers = 1,
        .queue = 1,
        .request_ns = 60 * NS_PER_SEC,
        .response_ns = 60 * NS_PER_SEC,
        .max_header = 16384,
        .clock = &clock_real,
    };
    struct http_server *server;
    struct err err;

    routes[0] = metrics_routes(metrics)[0];
    handle = routes[0].handle;
    routes[0].handle = timed;
    if (http_start(&config, &server, &err) < 0)
        bench_give_up("%s", err.text);
    return server;
}

int main(int argc, char **argv)
{
    const struct clock clock = { .wall_ns = clock_real.wall_ns, .mono_ns = hurried_mono };
    const struct metrics_config config = { .path = "/metrics", .clock = &clock };
    struct log *log = log_new(STDERR_FILENO, LOG_ERROR, &clock_real);
    struct metrics *metrics = metrics_new(&config);
    struct http_server *server;
    int fd;

    bench_begin(argc, argv);
    metrics_set_engine(metrics, make_engine(metrics, log));
    server = start_server(metrics);
    metrics_set_server(metrics, server);
    fd = connect_to(http_address(server, 0));
    scrape(fd);
    measure(fd, "scrape: handler, p99, ready", BENCH_AT_MOST);
    hurries = true;
    measure(fd, "scrape: handler, p99, remade each time", BENCH_NO_GOAL);
    close(fd);
    metrics_stop(metrics);
    http_stop(server);
    metrics_free(metrics);
    log_free(log);
    return 0;
}
