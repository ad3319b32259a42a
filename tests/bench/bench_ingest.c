/* SPDX-License-Identifier: GPL-2.0-or-later */
/* POST /ingest as agents use it. A job on 8,000 nodes ends: each agent posts one record within a
 * second, comes again when it is refused, and a scraper goes on beside them. Then a few agents
 * deliver what they have spooled, in batches. The exporter's limits are its defaults. */
#include "base/arena.h"
#include "base/buf.h"
#include "http/ingest.h"

#include "bench.h"

#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AGENTS = 8000,
    CONNECTIONS = 4096,
    FIRST_JOB = 4711,
    BATCH = 500,
    SENDERS = 8,
    BATCHES = 15, /* of each */
    MOST_EVENTS = 256,
    MOST_REPLY = 4096,
    SCRAPE_PAUSE_MS = 20,
};

static const double give_up_seconds = 60;

/* An agent, or the scraper. */
struct client {
    int fd;         /* -1: not connected */
    double due;     /* when it connects */
    double backoff; /* seconds, after a failure */
    size_t n_sent, n_got;
    struct str *posts;
    size_t n_posts, at;
    char reply[MOST_REPLY];
};

static struct {
    struct log *log;
    struct http_server *server;
    struct http_ingest *ingest;
    struct recorder *recorder;
    char directory[40], store[80], token[80];
    struct sockaddr_in address;
    int epoll_fd;
    struct client *clients;
    size_t n_clients, n_posts, n_done, n_closed, n_refused;
    size_t scrapes_lost;
} bench;

static enum http_verdict scrape(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", STR("up 1\n"));
    return HTTP_DONE;
}

static void start_recorder(void)
{
    static const struct recorded_cluster cluster = { .name = STR_INIT("north") };
    const struct recorder_config config = {
        .url = str_of(bench.store),
        .clusters = &cluster,
        .n_clusters = 1,
        .clock = &clock_real,
        .log = bench.log,
    };
    struct err err;

    if (recorder_start(&config, &bench.recorder, &err) < 0)
        bench_give_up("%s", err.text);
}

/* Whose records are posted: those of unknown jobs would be held apart. */
static void put_jobs(void)
{
    struct record_batch batch = { .n_jobs = BATCHES * BATCH };
    struct job_record *jobs = heap_array(batch.n_jobs, sizeof(*jobs));
    static const atomic_bool never;
    struct err err;

    for (size_t i = 0; i < batch.n_jobs; i++) {
        job_record_clear(&jobs[i]);
        jobs[i].id = FIRST_JOB + (uint32_t)i;
        jobs[i].submit_time = 1700000000;
        jobs[i].as_of = 1700000001;
        jobs[i].state.base = JOB_RUNNING;
    }
    batch.jobs = jobs;
    if (recorder_put(bench.recorder, &batch, INT64_MAX, &never, &err) < 0)
        bench_give_up("%s", err.text);
    free(jobs);
}

static void start_server(void)
{
    static struct http_route routes[HTTP_INGEST_ROUTES + 2];
    static const struct str listen = STR_INIT("127.0.0.1:0");
    const struct http_config config = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = CONNECTIONS,
        .workers = 2,
        .queue = CONNECTIONS / 4 + 1,
        .request_ns = 10 * NS_PER_SEC,
        .response_ns = 60 * NS_PER_SEC,
        .max_header = 16384,
        .clock = &clock_real,
        .log = bench.log,
    };
    const struct http_ingest_config ingest = {
        .recorder = bench.recorder,
        .token_file = bench.token,
        .max_posts = CONNECTIONS / 2 + 1,
        .clock = &clock_real,
        .log = bench.log,
    };
    struct err err;

    bench.ingest = http_ingest_new(&ingest);
    http_ingest_routes(bench.ingest, routes);
    routes[HTTP_INGEST_ROUTES] = (struct http_route){
        .method = "GET", .path = "/metrics", .is_urgent = true, .handle = scrape
    };
    if (http_start(&config, &bench.server, &err) < 0)
        bench_give_up("%s", err.text);
    bench.address = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port =
            htons((uint16_t)strtoul(strrchr(http_address(bench.server, 0), ':') + 1, NULL, 10)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static void start(void)
{
    struct rlimit limit;
    FILE *token;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < AGENTS + 2 * CONNECTIONS)
        bench_give_up("%d descriptors are needed (ulimit -n)", AGENTS + 2 * CONNECTIONS);
    snprintf(bench.directory, sizeof(bench.directory), "/tmp/bench_ingest.XXXXXX");
    if (!mkdtemp(bench.directory))
        bench_give_up("cannot make a directory in /tmp");
    snprintf(bench.store, sizeof(bench.store), "%s/store.db", bench.directory);
    snprintf(bench.token, sizeof(bench.token), "%s/token", bench.directory);
    token = fopen(bench.token, "we");
    if (!token || fputs("s3cret\n", token) < 0 || fclose(token) != 0)
        bench_give_up("cannot write %s", bench.token);
    bench.log = log_new(STDERR_FILENO, LOG_WARN, &clock_real);
    start_recorder();
    put_jobs();
    start_server();
    bench.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
}

static void stop(void)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };

    http_stop(bench.server);
    http_ingest_free(bench.ingest);
    recorder_stop(bench.recorder);
    log_free(bench.log);
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        char path[100];

        snprintf(path, sizeof(path), "%s%s", bench.store, suffixes[i]);
        unlink(path);
    }
    unlink(bench.token);
    rmdir(bench.directory);
    close(bench.epoll_fd);
}

/* --- what is posted --- */

static void put_record(struct buf *to, size_t job, size_t node)
{
    buf_printf(to,
               "{\"job_id\":%zu,\"node\":\"cn%05zu\",\"begin_time\":1700000010,"
               "\"end_time\":1700003610,\"uid\":2001,\"user\":\"user2001\",\"account\":\"physics\","
               "\"allocated\":{\"cpus\":64,\"memory_bytes\":274877906944},"
               "\"cpu_seconds\":%zu.25,\"user_seconds\":%zu.5,\"system_seconds\":812.75,"
               "\"memory_peak_bytes\":%zu,\"limit_hits\":0,\"oom_kills\":0,"
               "\"io\":{\"read_bytes\":%zu,\"write_bytes\":67108864,\"read_chars\":99,"
               "\"write_chars\":67108900,\"reads\":1200,\"writes\":4400},"
               "\"processes_peak\":65,\"threads_peak\":130,"
               "\"names\":[{\"name\":\"lmp\",\"cpu_seconds\":220000},{\"name\":\"bash\","
               "\"cpu_seconds\":0.01}],\"steps\":[{\"id\":\"batch\",\"cpu_seconds\":0.3},"
               "{\"id\":\"0\",\"cpu_seconds\":219999.9}]}",
               job, node, 220000 + node, 219000 + node, (size_t)12345678 * (node % 97 + 1),
               node * 4096);
}

/* What n jobs used on one node. */
static struct str make_post(size_t first_job, size_t node, size_t n)
{
    struct buf body, post;

    buf_init(&body, 1 << 20);
    buf_text(&body, "{\"cluster\":\"\",\"records\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_byte(&body, ',');
        put_record(&body, first_job + i, node);
    }
    buf_text(&body, "]}");
    buf_init(&post, body.n + 400);
    buf_printf(&post,
               "POST /ingest HTTP/1.1\r\nHost: monitor:9092\r\nAuthorization: Bearer s3cret\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               body.n);
    buf_put(&post, buf_str(&body));
    buf_free(&body);
    return buf_str(&post);
}

/* --- clients --- */

static double random_part(double seconds)
{
    return seconds * drand48();
}

/* From an address of its own, as nodes have. */
static void open_client(struct client *client, size_t i)
{
    const struct sockaddr_in own = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl((127U << 24) + (unsigned)(i / 250 + 1) * 256 + i % 250 + 1),
    };
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client };

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0 || bind(client->fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
        bench_give_up("cannot make a socket");
    client->n_sent = client->n_got = 0;
    (void)connect(client->fd, (struct sockaddr *)&bench.address, sizeof(bench.address));
    epoll_ctl(bench.epoll_fd, EPOLL_CTL_ADD, client->fd, &event);
}

static void close_client(struct client *client)
{
    close(client->fd);
    client->fd = -1;
}

/* As agent/spool.c: later and later, up to a quarter earlier. */
static void fail_client(struct client *client)
{
    bench.n_closed++;
    client->backoff = client->backoff > 0 ? client->backoff * 2 : 1;
    client->due = bench_wall_seconds() + client->backoff - random_part(client->backoff / 4);
    close_client(client);
}

static double header_value(struct str reply, const char *name, double otherwise)
{
    size_t at = str_find_str(reply, str_of(name));

    return at < reply.n ? strtod(reply.p + at + strlen(name), NULL) : otherwise;
}

/* As it says in the answer, and up to as much later. */
static void delay_client(struct client *client, struct str reply)
{
    double pause = header_value(reply, "Retry-After: ", 1);

    bench.n_refused++;
    client->due = bench_wall_seconds() + pause + random_part(pause);
    close_client(client);
}

static void end_client(struct client *client)
{
    struct str reply = { client->reply, client->n_got };

    if (str_starts(reply, STR("HTTP/1.1 503"))) {
        delay_client(client, reply);
    } else if (str_starts(reply, STR("HTTP/1.1 200"))) {
        bench.n_done++;
        client->backoff = 0;
        client->due = ++client->at < client->n_posts ? 0 : (double)INFINITY;
        close_client(client);
    } else {
        bench_give_up("the answer was \"%.*s\"", 60, client->reply);
    }
}

static bool is_whole(struct str reply)
{
    static const struct str end = STR_INIT("\r\n\r\n");
    size_t at = str_find_str(reply, end);

    return at < reply.n &&
           reply.n >= at + end.n + (size_t)header_value(reply, "Content-Length: ", 0);
}

/* Until nothing moves. */
static void run_client(struct client *client)
{
    struct str post = client->posts[client->at];
    ssize_t n;

    while (client->n_sent < post.n && (n = send(client->fd, post.p + client->n_sent,
                                                post.n - client->n_sent, MSG_NOSIGNAL)) > 0)
        client->n_sent += (size_t)n;
    n = recv(client->fd, client->reply + client->n_got, MOST_REPLY - 1 - client->n_got, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN)) {
        fail_client(client);
        return;
    }
    client->n_got += n > 0 ? (size_t)n : 0;
    client->reply[client->n_got] = '\0';
    if (is_whole((struct str){ client->reply, client->n_got }))
        end_client(client);
}

static void open_due(void)
{
    double now = bench_wall_seconds();

    for (size_t i = 0; i < bench.n_clients; i++)
        if (bench.clients[i].fd < 0 && bench.clients[i].due <= now)
            open_client(&bench.clients[i], i);
}

/* A thread of its own, as Prometheus's would be: a connection for each, which is the harder case.
 */
static void *run_scraper(void *arg)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const atomic_bool *is_over = arg;

    while (!atomic_load(is_over)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char reply[1000];
        bool is_good = connect(fd, (struct sockaddr *)&bench.address, sizeof(bench.address)) == 0 &&
                       send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0 &&
                       recv(fd, reply, sizeof(reply), 0) > 12 &&
                       memcmp(reply, "HTTP/1.1 200", 12) == 0;

        close(fd);
        bench.scrapes_lost += !is_good;
        poll(NULL, 0, SCRAPE_PAUSE_MS);
    }
    return NULL;
}

/* Seconds until all are done. */
static double run_clients(void)
{
    double began = bench_wall_seconds();
    atomic_bool is_over = false;
    pthread_t scraper;

    bench.n_done = bench.n_closed = bench.n_refused = bench.scrapes_lost = 0;
    pthread_create(&scraper, NULL, run_scraper, &is_over);
    while (bench.n_done < bench.n_posts && bench_wall_seconds() - began < give_up_seconds) {
        struct epoll_event events[MOST_EVENTS];
        int n = epoll_wait(bench.epoll_fd, events, MOST_EVENTS, 10);

        for (int i = 0; i < n; i++)
            run_client(events[i].data.ptr);
        open_due();
    }
    began = bench_wall_seconds() - began;
    atomic_store(&is_over, true);
    pthread_join(scraper, NULL);
    return began;
}

static void make_clients(size_t n, size_t n_posts, size_t n_records, double spread)
{
    double now = bench_wall_seconds();

    bench.n_clients = n;
    bench.n_posts = n * n_posts;
    bench.clients = heap_alloc(n * sizeof(*bench.clients));
    for (size_t i = 0; i < n; i++) {
        struct client *client = &bench.clients[i];

        *client = (struct client){ .fd = -1, .due = now + random_part(spread), .n_posts = n_posts };
        client->posts = heap_array(n_posts, sizeof(*client->posts));
        for (size_t k = 0; k < n_posts; k++)
            client->posts[k] = make_post(FIRST_JOB + k * n_records, i, n_records);
    }
}

static void free_clients(void)
{
    for (size_t i = 0; i < bench.n_clients; i++) {
        struct client *client = &bench.clients[i];

        if (client->fd >= 0)
            close(client->fd);
        for (size_t k = 0; k < client->n_posts; k++)
            free((char *)client->posts[k].p);
        free(client->posts);
    }
    free(bench.clients);
}

static void measure_burst(const char *name, double spread)
{
    double seconds;

    make_clients(AGENTS, 1, 1, spread);
    seconds = run_clients();
    bench_row(&(struct bench_row){ name, "s", bench.n_done == AGENTS ? seconds : (double)INFINITY,
                                   0, BENCH_AT_MOST, 15 });
    bench_row(&(struct bench_row){ "ingest: scrapes lost meanwhile", "scrapes",
                                   (double)bench.scrapes_lost, 0, BENCH_AT_MOST, 0 });
    bench_row(&(struct bench_row){ "ingest: posts closed unanswered, and sent again", "posts",
                                   (double)bench.n_closed, 0, BENCH_AT_MOST, 0 });
    bench_row(&(struct bench_row){ "ingest: posts answered with 503, and sent again", "posts",
                                   (double)bench.n_refused, 0, BENCH_NO_GOAL, 0 });
    free_clients();
}

static void measure_batches(void)
{
    double seconds, cpu_seconds, n_records;

    make_clients(SENDERS, BATCHES, BATCH, 0);
    cpu_seconds = -bench_cpu_seconds();
    seconds = run_clients();
    cpu_seconds += bench_cpu_seconds();
    n_records = (double)bench.n_done * BATCH;
    bench_row(&(struct bench_row){ "ingest: records in posts of 500, by CPU time", "1/s",
                                   n_records / cpu_seconds, 0, BENCH_AT_LEAST, 20000 });
    bench_row(&(struct bench_row){ "ingest: records in posts of 500, by wall time", "1/s",
                                   n_records / seconds, 0, BENCH_AT_LEAST, 20000 });
    free_clients();
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    start();
    measure_burst("ingest: 8,000 agents post within 1 s", 1);
    measure_burst("ingest: 8,000 agents post at once", 0);
    measure_batches();
    stop();
    return 0;
}
