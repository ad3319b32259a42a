/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Against a server in this process that does what a Pushgateway does, or what one must not. The
 * real one: tests/e2e/test_push.py. */
#include "test.h"

#include "certificates.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/thread.h"
#include "push/pushgateway.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { MOST_REQUESTS = 200, MOST_TEXT = 1000 };

struct request {
    char method[8], url[1024], body[64];
    char authorization[100], content_type[100];
    bool is_packed;
    bool was_answered; /* whole */
};

struct gateway {
    struct MHD_Daemon *daemon;
    struct certificate *certificate; /* NULL: no TLS */
    unsigned short port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct request requests[MOST_REQUESTS];
    size_t n_requests, n_connections;
    bool is_shut; /* requests come in and are held */
    unsigned n_inside;
    unsigned status;
    const char *words;
    const char *failing; /* part of the URLs that get 500, or NULL */
};

struct fixture {
    struct gateway gateway;
    struct manual_clock manual;
    struct push_config config;
    struct pusher *pusher;
    struct err err;
    char url[200], path[64];
    int log_fd;
};

static struct fixture *fixture;

struct upload {
    struct request request;
    size_t n;
    struct request *kept;
    unsigned status; /* of the answer */
    const char *words;
};

static void copy_header(struct MHD_Connection *connection, const char *name, char *to, size_t size)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    snprintf(to, size, "%s", value ? value : "");
}

static void keep_request(struct gateway *gateway, struct upload *upload)
{
    bool is_failing;

    pthread_mutex_lock(&gateway->lock);
    if (gateway->n_requests < MOST_REQUESTS) {
        upload->kept = &gateway->requests[gateway->n_requests++];
        *upload->kept = upload->request;
    }
    gateway->n_inside++;
    pthread_cond_broadcast(&gateway->changed);
    while (gateway->is_shut)
        pthread_cond_wait(&gateway->changed, &gateway->lock);
    gateway->n_inside--;
    pthread_cond_broadcast(&gateway->changed);
    is_failing = gateway->failing && strstr(upload->request.url, gateway->failing);
    upload->status = is_failing ? 500 : gateway->status;
    upload->words = gateway->words;
    pthread_mutex_unlock(&gateway->lock);
}

static enum MHD_Result answer(const struct upload *upload, struct MHD_Connection *connection)
{
    struct str words = str_of(upload->words);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(words.n, (void *)(uintptr_t)words.p, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    MHD_add_response_header(response, "Location", "/elsewhere");
    result = MHD_queue_response(connection, upload->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n_bytes, void **state)
{
    struct upload *upload = *state;
    struct request *request;

    (void)version;
    if (!upload) {
        *state = heap_alloc(sizeof(*upload));
        return MHD_YES;
    }
    request = &upload->request;
    if (*n_bytes) {
        if (*n_bytes >= sizeof(request->body) - upload->n)
            return MHD_NO;
        memcpy(request->body + upload->n, bytes, *n_bytes);
        upload->n += *n_bytes;
        *n_bytes = 0;
        return MHD_YES;
    }
    snprintf(request->method, sizeof(request->method), "%s", method);
    snprintf(request->url, sizeof(request->url), "%s", url);
    copy_header(connection, "Authorization", request->authorization,
                sizeof(request->authorization));
    copy_header(connection, "Content-Type", request->content_type, sizeof(request->content_type));
    request->is_packed =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Encoding");
    keep_request(ctx, upload);
    return answer(upload, connection);
}

static void on_end(void *ctx, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    struct gateway *gateway = ctx;
    struct upload *upload = *state;

    (void)connection;
    if (upload && upload->kept) {
        pthread_mutex_lock(&gateway->lock);
        upload->kept->was_answered = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
        pthread_mutex_unlock(&gateway->lock);
    }
    free(upload);
}

static int listen_on_loopback(unsigned short *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(*port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    getsockname(fd, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode what)
{
    struct gateway *gateway = ctx;

    (void)connection;
    (void)state;
    pthread_mutex_lock(&gateway->lock);
    gateway->n_connections += what == MHD_CONNECTION_NOTIFY_STARTED;
    pthread_mutex_unlock(&gateway->lock);
}

/* On the same port each time. */
static void open_gateway(struct gateway *gateway)
{
    struct certificate *certificate = gateway->certificate;
    const struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_KEY, 0, certificate ? certificate->key_pem : NULL },
        { MHD_OPTION_HTTPS_MEM_CERT, 0, certificate ? certificate->cert_pem : NULL },
        { MHD_OPTION_END, 0, NULL },
    };

    gateway->daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                             (certificate ? MHD_USE_TLS : 0),
                         0, NULL, NULL, on_request, gateway, MHD_OPTION_LISTEN_SOCKET,
                         listen_on_loopback(&gateway->port), MHD_OPTION_NOTIFY_COMPLETED, on_end,
                         gateway, MHD_OPTION_NOTIFY_CONNECTION, on_connection, gateway,
                         MHD_OPTION_ARRAY, certificate ? tls : &tls[2], MHD_OPTION_END);
    assert_non_null(gateway->daemon);
}

static void set_shut(struct gateway *gateway, bool is_shut)
{
    pthread_mutex_lock(&gateway->lock);
    gateway->is_shut = is_shut;
    pthread_cond_broadcast(&gateway->changed);
    while (!is_shut && gateway->n_inside)
        pthread_cond_wait(&gateway->changed, &gateway->lock);
    pthread_mutex_unlock(&gateway->lock);
}

static void close_gateway(struct gateway *gateway)
{
    set_shut(gateway, false);
    if (gateway->daemon)
        MHD_stop_daemon(gateway->daemon);
    gateway->daemon = NULL;
}

static void set_status(struct gateway *gateway, unsigned status, const char *words)
{
    pthread_mutex_lock(&gateway->lock);
    gateway->status = status;
    gateway->words = words;
    pthread_mutex_unlock(&gateway->lock);
}

static size_t count_requests(struct gateway *gateway)
{
    size_t n;

    pthread_mutex_lock(&gateway->lock);
    n = gateway->n_requests;
    pthread_mutex_unlock(&gateway->lock);
    return n;
}

/* The n-th, from 1, when it is there. */
static struct request await_request(struct gateway *gateway, size_t n)
{
    int64_t deadline = clock_mono(&clock_real) + TEST_DEADLINE;
    struct request request = { .method = "none" };
    bool in_time = true;

    pthread_mutex_lock(&gateway->lock);
    while (gateway->n_requests < n && in_time)
        in_time = clock_wait(&clock_real, &gateway->changed, &gateway->lock, deadline);
    if (gateway->n_requests >= n)
        request = gateway->requests[n - 1];
    pthread_mutex_unlock(&gateway->lock);
    return request;
}

static struct push_stats stats_of(void)
{
    struct push_stats stats;

    pusher_stats(fixture->pusher, &stats);
    return stats;
}

static const char *log_of(void)
{
    static char text[64 * 1024];
    ssize_t n = pread(fixture->log_fd, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static size_t count_in_log(const char *part)
{
    const char *text = log_of();
    size_t n = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        n++;
    }
    return n;
}

static void setup(void)
{
    struct gateway *gateway;

    fixture = heap_alloc(sizeof(*fixture));
    gateway = &fixture->gateway;
    pthread_mutex_init(&gateway->lock, NULL);
    clock_cond_init(&gateway->changed);
    gateway->status = 200;
    gateway->words = "";
    open_gateway(gateway);
    manual_clock_init(&fixture->manual, 1700000000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    fixture->log_fd = memfd_create("log", MFD_CLOEXEC);
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d", gateway->port);
    fixture->config = (struct push_config){
        .url = fixture->url,
        .job = "jobs_exporter",
        .timeout_ns = 20 * NS_PER_SEC,
        .retry_ns = 4 * NS_PER_SEC,
        .max_backoff_ns = 10 * NS_PER_SEC,
        .max_text = MOST_TEXT,
        .clock = &clock_real,
        .log = log_new(fixture->log_fd, LOG_DEBUG, &clock_real),
    };
}

static void teardown(void)
{
    set_shut(&fixture->gateway, false);
    pusher_stop(fixture->pusher, 20 * NS_PER_SEC);
    close_gateway(&fixture->gateway);
    if (fixture->gateway.certificate)
        certificate_free(fixture->gateway.certificate);
    free(fixture->gateway.certificate);
    manual_clock_destroy(&fixture->manual);
    log_free(fixture->config.log);
    close(fixture->log_fd);
    if (fixture->path[0])
        unlink(fixture->path);
    pthread_cond_destroy(&fixture->gateway.changed);
    pthread_mutex_destroy(&fixture->gateway.lock);
    free(fixture);
}

FIXTURE(setup, teardown)

static void start(void)
{
    if (pusher_start(&fixture->config, &fixture->pusher, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void put(const char *instance, const char *text)
{
    pusher_put(fixture->pusher, instance, str_of(text));
}

static void stop(int64_t within_ns)
{
    fixture->pusher = pusher_stop(fixture->pusher, within_ns);
}

TEST(a_text_is_put_in_its_place)
{
    struct request request;

    start();
    put("n1", "a 1\n");
    request = await_request(&fixture->gateway, 1);
    assert_string_equal(request.method, "PUT");
    assert_string_equal(request.url, "/metrics/job/jobs_exporter/instance/n1");
    assert_string_equal(request.body, "a 1\n");
    assert_string_equal(request.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(request.authorization, "");
    assert_false(request.is_packed);
    wait_until_true(stats_of().pushes == 1);
    assert_true(stats_of().is_up);
    assert_true(stats_of().last_success_wall_ns > 0);
    assert_true(stats_of().last_seconds > 0);
    assert_string_equal(log_of(), "");
}

TEST(what_cannot_stand_in_a_path_is_put_there_in_base64)
{
    static const struct {
        const char *instance, *path;
    } rows[] = {
        { "node-1.cluster_a", "/instance/node-1.cluster_a" },
        { "", "/instance@base64/=" },
        { "a/b", "/instance@base64/YS9i" },
        { ".", "/instance@base64/Lg" },
        { "..", "/instance@base64/Li4" },
        { "a b?#%2F\r\n", "/instance@base64/YSBiPyMlMkYNCg" },
        { "\xc3\xbc", "/instance@base64/w7w" },
        /* What is no UTF-8 becomes U+FFFD. */
        { "\xff", "/instance@base64/77-9" },
        { "a\xc3", "/instance@base64/Ye-_vQ" },
    };

    fixture->config.job = "a job";
    start();
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[200];

        put(rows[i].instance, "a 1\n");
        snprintf(expected, sizeof(expected), "/metrics/job@base64/YSBqb2I%s", rows[i].path);
        assert_string_equal(await_request(&fixture->gateway, i + 1).url, expected);
    }
}

TEST(a_prefix_stays_and_the_user_goes_into_a_header)
{
    struct request request;

    snprintf(fixture->url, sizeof(fixture->url), "http://alice:s%%65cret@127.0.0.1:%d/push/",
             fixture->gateway.port);
    start();
    put("n1", "a 1\n");
    request = await_request(&fixture->gateway, 1);
    assert_string_equal(request.url, "/push/metrics/job/jobs_exporter/instance/n1");
    assert_string_equal(request.authorization, "Basic YWxpY2U6c2VjcmV0");
    stop(20 * NS_PER_SEC);
    request = await_request(&fixture->gateway, 2);
    assert_string_equal(request.method, "DELETE");
    assert_string_equal(request.authorization, "Basic YWxpY2U6c2VjcmV0");
}

static void write_file(const char *text)
{
    int fd;

    snprintf(fixture->path, sizeof(fixture->path), "/tmp/sonde-push-%d", (int)getpid());
    fd = open(fixture->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void write_password(const char *text)
{
    write_file(text);
    fixture->config.password_file = fixture->path;
}

TEST(a_password_may_change_in_its_file)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://alice@127.0.0.1:%d",
             fixture->gateway.port);
    write_password("secret\n");
    start();
    put("n1", "a 1\n");
    assert_string_equal(await_request(&fixture->gateway, 1).authorization,
                        "Basic YWxpY2U6c2VjcmV0");
    write_password("other");
    put("n1", "a 2\n");
    assert_string_equal(await_request(&fixture->gateway, 2).authorization,
                        "Basic YWxpY2U6b3RoZXI=");
}

TEST(a_password_is_never_told)
{
    snprintf(fixture->url, sizeof(fixture->url), "http://alice:secret@127.0.0.1:%d/secret",
             fixture->gateway.port);
    close_gateway(&fixture->gateway);
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().failures == 1);
    stop(NS_PER_SEC);
    assert_int_equal(count_in_log("\n"), 2);
    assert_int_equal(count_in_log("cannot connect to http://127.0.0.1:"), 2);
    assert_int_equal(count_in_log("secret"), 0);
    assert_int_equal(count_in_log("alice"), 0);
}

static void assert_refused(int code, const char *sentence)
{
    fixture->err.text[0] = '\0';
    assert_int_equal(pusher_start(&fixture->config, &fixture->pusher, &fixture->err), code);
    assert_null(fixture->pusher);
    assert_contains(fixture->err.text, sentence);
}

TEST(what_cannot_be_used_is_refused_at_the_start)
{
    static const char *const urls[] = { "", "gateway:9091", "ftp://gateway", "http://gateway/?a=b",
                                        "http://gateway/#a" };

    for (size_t i = 0; i < COUNT(urls); i++) {
        fixture->config.url = urls[i];
        assert_refused(-EINVAL, "http://HOST:PORT");
    }
    fixture->config.url = fixture->url;
    fixture->config.job = "";
    assert_refused(-EINVAL, "empty job name");
    fixture->config.job = "x";
    write_password("secret");
    assert_refused(-EINVAL, "http://USER@127.0.0.1:");
    fixture->config.url = "http://alice@127.0.0.1:1";
    write_password("\n");
    assert_refused(-EINVAL, "one line is expected");
    write_password("secret\nand more\n");
    assert_refused(-EINVAL, "one line is expected");
    assert_null(strstr(fixture->err.text, "secret"));
    fixture->config.password_file = "/nowhere/password";
    assert_refused(-ENOENT, "cannot read the password file /nowhere/password");
}

TEST(the_newest_text_takes_the_place_of_one_that_waits)
{
    start();
    set_shut(&fixture->gateway, true);
    put("n1", "a 1\n");
    assert_string_equal(await_request(&fixture->gateway, 1).body, "a 1\n");
    put("n1", "a 2\n");
    put("n2", "b 1\n");
    put("n1", "a 3\n");
    set_shut(&fixture->gateway, false);
    wait_until_true(stats_of().pushes == 3);
    assert_int_equal(count_requests(&fixture->gateway), 3);
    assert_string_equal(await_request(&fixture->gateway, 2).body, "b 1\n");
    assert_string_equal(await_request(&fixture->gateway, 3).body, "a 3\n");
    assert_int_equal(stats_of().replaced, 1);
}

/* Waits until it is in back-off, then lets less time pass than that can take, and then all of it.
 */
static void pass_backoff(int64_t seconds)
{
    size_t n = count_requests(&fixture->gateway);

    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, seconds * NS_PER_SEC * 3 / 4 - 1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_requests(&fixture->gateway), n);
    manual_clock_advance(&fixture->manual, seconds * NS_PER_SEC / 4 + 1);
    assert_string_not_equal(await_request(&fixture->gateway, n + 1).method, "none");
}

TEST(a_failure_is_tried_again_after_longer_and_longer_times)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(&fixture->gateway, 503, "overloaded");
    put("n1", "a 1\n");
    await_request(&fixture->gateway, 1);
    pass_backoff(4);
    pass_backoff(8);
    pass_backoff(10);
    set_status(&fixture->gateway, 202, "");
    pass_backoff(10);
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(stats_of().failures, 4);
    assert_int_equal(stats_of().replaced, 0);
    assert_string_equal(await_request(&fixture->gateway, 5).body, "a 1\n");

    /* From the beginning again. */
    set_status(&fixture->gateway, 507, "");
    put("n1", "a 2\n");
    await_request(&fixture->gateway, 6);
    set_status(&fixture->gateway, 200, "");
    pass_backoff(4);
}

TEST(each_failing_is_told_once_and_so_is_its_end)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(&fixture->gateway, 503, "over\nloaded\x1b[2J");
    put("n1", "a 1\n");
    await_request(&fixture->gateway, 1);
    pass_backoff(4);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_in_log("\n"), 1);
    assert_int_equal(count_in_log("cannot push to the Pushgateway"), 1);
    assert_int_equal(count_in_log("answered with status 503; see its log"), 1);
    assert_int_equal(count_in_log("answer=\"over\\u000aloaded\\u001b[2J\""), 1);
    set_status(&fixture->gateway, 200, "");
    pass_backoff(8);
    wait_until_true(count_in_log("\n") == 2);
    assert_int_equal(count_in_log("msg=\"the Pushgateway takes what is pushed\""), 1);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 2);
    assert_int_equal(count_in_log("\n"), 2);
}

TEST(a_new_text_does_not_end_the_backoff)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    set_status(&fixture->gateway, 413, "");
    put("n1", "a 1\n");
    await_request(&fixture->gateway, 1);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    put("n1", "a 2\n");
    put("n1", "a 3\n");
    set_status(&fixture->gateway, 200, "");
    pass_backoff(4);
    wait_until_true(stats_of().pushes == 1);
    assert_string_equal(await_request(&fixture->gateway, 2).body, "a 3\n");
    assert_int_equal(stats_of().replaced, 2);
}

TEST(a_text_that_was_refused_is_not_sent_again)
{
    static const unsigned statuses[] = { 400, 401, 404, 302 };

    fixture->config.retry_ns = fixture->config.max_backoff_ns = 1;
    start();
    for (size_t i = 0; i < COUNT(statuses); i++) {
        set_status(&fixture->gateway, statuses[i], "it is not good");
        put("n1", "a 1\n");
        wait_until_true(stats_of().failures == i + 1);
    }
    set_status(&fixture->gateway, 200, "");
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(count_requests(&fixture->gateway), COUNT(statuses) + 1);
    for (size_t i = 0; i < COUNT(statuses) + 1; i++)
        assert_string_equal(await_request(&fixture->gateway, i + 1).method, "PUT");
    assert_int_equal(count_in_log("\n"), 2);
    assert_int_equal(count_in_log("answer=\"it is not good\""), 1);
}

TEST(a_slow_gateway_is_not_waited_for)
{
    fixture->config.timeout_ns = NS_PER_SEC / 10;
    fixture->config.max_backoff_ns = fixture->config.retry_ns = NS_PER_MS;
    start();
    set_shut(&fixture->gateway, true);
    put("n1", "a 1\n");
    wait_until_true(stats_of().failures >= 2);
    assert_false(stats_of().is_up);
    assert_int_equal(count_in_log("did not answer in time"), 1);
    set_shut(&fixture->gateway, false);
    wait_until_true(stats_of().is_up);
}

TEST(a_gateway_may_go_and_come_back)
{
    fixture->config.clock = &fixture->manual.clock;
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    close_gateway(&fixture->gateway);
    put("n1", "a 2\n");
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, 4 * NS_PER_SEC);
    wait_until_true(stats_of().failures == 2);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    open_gateway(&fixture->gateway);
    manual_clock_advance(&fixture->manual, 10 * NS_PER_SEC);
    assert_string_equal(await_request(&fixture->gateway, 2).body, "a 2\n");
    wait_until_true(stats_of().is_up);
}

TEST(a_group_that_fails_does_not_hold_up_the_others)
{
    fixture->config.max_backoff_ns = fixture->config.retry_ns = NS_PER_MS;
    fixture->gateway.failing = "n1";
    start();
    put("n1", "a 1\n");
    put("n2", "b 1\n");
    put("n3", "c 1\n");
    wait_until_true(stats_of().pushes == 2);
    assert_int_equal(count_in_log("\n"), 1);
}

TEST(a_text_over_the_ceiling_is_refused_and_counted)
{
    static char large[MOST_TEXT + 1];

    start();
    pusher_put(fixture->pusher, "n1", (struct str){ large, sizeof(large) });
    pusher_put(fixture->pusher, "n1", (struct str){ large, sizeof(large) });
    assert_int_equal(stats_of().refused, 2);
    assert_int_equal(count_in_log("\n"), 1);
    assert_int_equal(count_in_log("bytes=1001 most_bytes=1000"), 1);
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    assert_int_equal(count_requests(&fixture->gateway), 1);
    wait_until_true(count_in_log("\n") == 2);
}

TEST(no_more_instances_are_kept_than_there_are_places_for)
{
    char name[PUSH_INSTANCE + 2];

    start();
    for (unsigned i = 0; i < PUSH_GROUPS + 3; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        put(name, "a 1\n");
    }
    assert_int_equal(stats_of().refused, 3);
    assert_int_equal(count_in_log("\n"), 1);
    wait_until_true(stats_of().pushes == PUSH_GROUPS);
    put("n0", "a 2\n");
    wait_until_true(stats_of().pushes == PUSH_GROUPS + 1);
    stop(20 * NS_PER_SEC);
    assert_int_equal(count_requests(&fixture->gateway), 2 * PUSH_GROUPS + 1);
}

TEST(a_name_that_is_too_long_is_refused)
{
    char name[PUSH_INSTANCE + 2];

    memset(name, '\xff', sizeof(name));
    name[PUSH_INSTANCE + 1] = '\0';
    start();
    put(name, "a 1\n");
    assert_int_equal(stats_of().refused, 1);
    name[PUSH_INSTANCE] = '\0';
    put(name, "a 1\n");
    wait_until_true(stats_of().pushes == 1);
}

TEST(each_group_is_deleted_once_at_the_end)
{
    start();
    put("n1", "a 1\n");
    put("a/b", "b 1\n");
    wait_until_true(stats_of().pushes == 2);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 3);
    stop(20 * NS_PER_SEC);
    assert_int_equal(count_requests(&fixture->gateway), 5);
    assert_string_equal(await_request(&fixture->gateway, 4).method, "DELETE");
    assert_string_equal(await_request(&fixture->gateway, 4).url,
                        "/metrics/job/jobs_exporter/instance/n1");
    assert_string_equal(await_request(&fixture->gateway, 5).method, "DELETE");
    assert_string_equal(await_request(&fixture->gateway, 5).url,
                        "/metrics/job/jobs_exporter/instance@base64/YS9i");
    assert_string_equal(log_of(), "");
}

TEST(what_was_never_pushed_is_not_deleted)
{
    start();
    stop(20 * NS_PER_SEC);
    assert_int_equal(count_requests(&fixture->gateway), 0);
}

TEST(a_group_is_deleted_although_pushes_fail)
{
    start();
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    set_status(&fixture->gateway, 500, "");
    put("n1", "a 2\n");
    wait_until_true(stats_of().failures == 1);
    set_status(&fixture->gateway, 202, "");
    stop(20 * NS_PER_SEC);
    assert_int_equal(count_requests(&fixture->gateway), 3);
    assert_string_equal(await_request(&fixture->gateway, 3).method, "DELETE");
}

TEST(the_end_is_not_held_up_by_a_gateway_that_hangs)
{
    int64_t begin;

    start();
    put("n1", "a 1\n");
    put("n2", "a 1\n");
    wait_until_true(stats_of().pushes == 2);
    set_shut(&fixture->gateway, true);
    begin = clock_mono(&clock_real);
    stop(NS_PER_SEC / 5);
    assert_true(clock_mono(&clock_real) - begin < 10 * NS_PER_SEC);
    assert_string_equal(await_request(&fixture->gateway, 3).method, "DELETE");
    assert_int_equal(count_requests(&fixture->gateway), 3);
    assert_int_equal(count_in_log("stays on the Pushgateway"), 1);
    assert_int_equal(count_in_log("groups=2"), 1);
}

TEST(the_end_is_not_held_up_by_a_push_that_hangs)
{
    int64_t begin;

    start();
    set_shut(&fixture->gateway, true);
    put("n1", "a 1\n");
    await_request(&fixture->gateway, 1);
    begin = clock_mono(&clock_real);
    stop(NS_PER_SEC / 5);
    assert_true(clock_mono(&clock_real) - begin < 10 * NS_PER_SEC);
    assert_int_equal(count_in_log("\n"), 1);
    assert_int_equal(count_in_log("stays on the Pushgateway"), 1);
}

static void *stop_it(void *arg)
{
    (void)arg;
    stop(20 * NS_PER_SEC);
    return NULL;
}

TEST(a_push_under_way_is_not_overtaken_by_its_delete)
{
    pthread_t thread;

    fixture->config.clock = &fixture->manual.clock;
    start();
    set_shut(&fixture->gateway, true);
    put("n1", "a 1\n");
    await_request(&fixture->gateway, 1);
    assert_int_equal(thread_start(&thread, "stop", stop_it, fixture, NULL), 0);
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    assert_int_equal(count_requests(&fixture->gateway), 1);
    set_shut(&fixture->gateway, false);
    pthread_join(thread, NULL);
    assert_int_equal(count_requests(&fixture->gateway), 2);
    assert_string_equal(await_request(&fixture->gateway, 2).method, "DELETE");
    wait_until_true(await_request(&fixture->gateway, 1).was_answered);
}

static size_t count_connections(void)
{
    put("n1", "a 1\n");
    wait_until_true(stats_of().pushes == 1);
    put("n1", "a 2\n");
    wait_until_true(stats_of().pushes == 2);
    stop(20 * NS_PER_SEC);
    assert_int_equal(count_requests(&fixture->gateway), 3);
    return fixture->gateway.n_connections;
}

TEST(a_connection_is_kept_only_where_it_has_tls)
{
    struct gateway *gateway = &fixture->gateway;
    struct certificate *authority = heap_alloc(sizeof(*authority));

    start();
    assert_int_equal(count_connections(), 3);

    close_gateway(gateway);
    gateway->n_requests = gateway->n_connections = 0;
    gateway->certificate = heap_alloc(sizeof(*gateway->certificate));
    certificate_make(authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(gateway->certificate,
                     &(struct certificate_wish){ .name = "localhost", .signer = authority });
    write_file(authority->cert_pem);
    certificate_free(authority);
    free(authority);
    open_gateway(gateway);
    snprintf(fixture->url, sizeof(fixture->url), "https://localhost:%d", gateway->port);
    fixture->config.ca_file = fixture->path;
    start();
    assert_int_equal(count_connections(), 1);
}

static void *put_many(void *arg)
{
    char text[30];

    (void)arg;
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof(text), "a %d\n", i);
        put(i % 2 ? "n1" : "n2", text);
        stats_of();
    }
    return NULL;
}

TEST(any_number_of_threads_may_put)
{
    pthread_t threads[4];

    start();
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(thread_start(&threads[i], "put", put_many, fixture, NULL), 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    wait_until_true(stats_of().pushes + stats_of().replaced == 20 * COUNT(threads));
    assert_int_equal(stats_of().failures, 0);
}
