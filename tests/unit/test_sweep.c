/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is read in a Pushgateway's list, and what the agent deletes there: against a server in this
 * process. The real ones: tests/e2e/test_sweep.py. */
#include "test.h"

#include "manual_clock.h"

#include "agent/sweeper.h"
#include "base/arena.h"
#include "push/sweep.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PUSHED(seconds)                                                                            \
    "\"push_time_seconds\":{\"type\":\"GAUGE\",\"metrics\":[{\"labels\":{},\"value\":\"" seconds   \
    "\"}]}"
#define LIST(groups)   "{\"status\":\"success\",\"data\":[" groups "]}"
#define LABELS(labels) "\"labels\":{" labels "}"
#define METRIC(name, labels)                                                                       \
    "\"" name "\":{\"metrics\":[{\"labels\":{" labels "},\"value\":\"1\"}]}"
#define OF_STEP(job, node, step)                                                                   \
    "\"instance\":\"" node "\",\"job\":\"" job "\",\"step\":\"" step "\""
#define STEP_OF(job, node, step)                                                                   \
    "{" METRIC("RSS", "") "," LABELS(OF_STEP(job, node, step)) "," PUSHED("1700000000") "}"
#define NEW_NAME "slurm_profile_task_cpu_seconds_total"

static bool want_all(void *ctx, const struct sweep_group *group)
{
    (void)ctx;
    (void)group;
    return true;
}

static const struct sweep_wishes all = { want_all, NULL, 100 };

static int read_pieces(struct str text, size_t piece, const struct sweep_wishes *wishes,
                       struct sweep_list *list, struct err *err)
{
    struct sweep_reader *reader = sweep_reader_new(wishes, list);
    int code = 0;

    for (; text.n && code == 0; text = str_skip(text, piece))
        code = sweep_reader_add(reader, str_head(text, piece), err);
    if (code == 0)
        code = sweep_reader_end(reader, err);
    sweep_reader_free(reader);
    return code;
}

static struct sweep_list read_list(const char *text)
{
    struct sweep_list list = { 0 };
    struct err err = { 0 };

    if (read_pieces(str_of(text), SIZE_MAX, &all, &list, &err) < 0)
        fail_msg("%s", err.text);
    return list;
}

/* As version 1.5 wrote it, but for its HELP. */
static const char real_answer[] = LIST(
    "{\"RSS\":{\"time_stamp\":\"2026-11-16T09:35:07.17Z\",\"type\":\"UNTYPED\",\"help\":\"x\","
    "\"metrics\":[{\"labels\":{\"instance\":\"c1\",\"job\":\"123\",\"step\":\"batch\",\"task\":"
    "\"0\"},\"value\":\"1\"}]},\"labels\":{\"instance\":\"c1\",\"job\":\"123\",\"step\":\"batch\"},"
    "\"last_push_successful\":true,\"push_failure_time_seconds\":{\"time_stamp\":"
    "\"2026-11-16T09:35:07.17Z\",\"type\":\"GAUGE\",\"help\":\"\",\"metrics\":[{\"labels\":"
    "{\"instance\":\"c1\",\"job\":\"123\",\"step\":\"batch\"},\"value\":\"0\"}]},"
    "\"push_time_seconds\":{\"time_stamp\":\"2026-11-16T09:35:07.17Z\",\"type\":\"GAUGE\",\"help\":"
    "\"\",\"metrics\":[{\"labels\":{\"instance\":\"c1\",\"job\":\"123\",\"step\":\"batch\"},"
    "\"value\":\"1.7948217071743982e+09\"}]},\"" NEW_NAME "\":{\"time_stamp\":"
    "\"2026-11-16T09:35:07.17Z\",\"type\":\"COUNTER\",\"metrics\":[{\"labels\":{\"cluster\":"
    "\"fake\",\"instance\":\"c1\",\"job\":\"123\",\"step\":\"batch\",\"task\":\"0\"},\"value\":"
    "\"4\"},{\"labels\":{\"cluster\":\"fake\",\"instance\":\"c1\",\"job\":\"123\",\"step\":"
    "\"batch\",\"task\":\"1\"},\"value\":\"5\"}]}},"
    "{\"a\":{\"type\":\"UNTYPED\",\"metrics\":[{\"labels\":{\"instance\":\"c1\",\"job\":\"127\","
    "\"labels\":\"x\"},\"value\":\"1\"}]},\"labels\":{\"instance\":\"c1\",\"job\":\"127\"},"
    "\"last_push_successful\":true," PUSHED("1.794821707224608e+09") "}");

TEST(the_groups_of_steps_are_found_in_a_list_in_any_pieces)
{
    for (size_t piece = 1; piece <= sizeof(real_answer); piece++) {
        struct sweep_list list = { 0 };
        struct err err = { 0 };

        assert_int_equal(read_pieces(str_of(real_answer), piece, &all, &list, &err), 0);
        assert_int_equal(list.n, 1);
        assert_int_equal(list.n_all, 2);
        assert_int_equal(list.groups[0].job_id, 123);
        assert_string_equal(list.groups[0].node, "c1");
        assert_string_equal(list.groups[0].step, "batch");
        assert_string_equal(list.groups[0].cluster, "fake");
        assert_true(list.groups[0].pushed_seconds == 1.7948217071743982e+09);
        sweep_list_clear(&list);
    }
}

TEST(an_empty_list_has_no_groups)
{
    struct sweep_list list = read_list(LIST(""));

    assert_int_equal(list.n_all, 0);
    assert_int_equal(list.n, 0);
}

TEST(groups_of_others_are_not_seen)
{
    static const char *const groups[] = {
        /* a job that is no number, or none that Slurm gives */
        STEP_OF("node", "c1", "batch"),
        STEP_OF("0", "c1", "batch"),
        STEP_OF("0123", "c1", "batch"),
        STEP_OF("123 ", "c1", "batch"),
        STEP_OF("-1", "c1", "batch"),
        STEP_OF("4294967296", "c1", "batch"),
        STEP_OF("", "c1", "batch"),
        /* nodes and steps that no slurmstepd has */
        STEP_OF("123", "", "batch"),
        STEP_OF("123", "c1", "a/b"),
        STEP_OF("123", "c1", "a\\n"),
        STEP_OF("123", "c1", "abcdefghijklmnopqrstuvwxyz"),
        STEP_OF("123", "c\\u0000", "batch"),
        /* other labels, or too few */
        "{" METRIC("RSS",
                   "") "," LABELS(OF_STEP("123", "c1", "batch") ",\"x\":\"y\"") "," PUSHED("1") "}",
        "{" METRIC("RSS", "") "," LABELS("\"job\":\"123\"") "," PUSHED("1") "}",
        "{" METRIC("RSS", "") "," LABELS("\"instance\":\"c1\"") "," PUSHED("1") "}",
        "{" METRIC("RSS", "") "," PUSHED("1") "}",
        /* no name that the plugin gives; without a step, none that the original gave */
        "{" METRIC("rss", "") "," LABELS(OF_STEP("123", "c1", "batch")) "," PUSHED("1") "}",
        "{" LABELS(OF_STEP("123", "c1", "batch")) "," PUSHED("1") "}",
        "{" METRIC(NEW_NAME,
                   "") "," LABELS("\"job\":\"123\",\"instance\":\"c1\"") "," PUSHED("1") "}",
        /* a metric that is called "labels" */
        "{" METRIC("RSS", "") ",\"labels\":{\"time_stamp\":\"\",\"type\":\"\",\"metrics\":[{"
                              "\"labels\":{" OF_STEP("123", "c1", "batch") "}}]}," PUSHED("1") "}",
        /* nobody knows when it was pushed */
        "{" METRIC("RSS", "") "," LABELS(OF_STEP("123", "c1", "batch")) "}",
        "{" METRIC("RSS", "") "," LABELS(OF_STEP("123", "c1", "batch")) "," PUSHED("NaN") "}",
        "{" METRIC("RSS", "") "," LABELS(OF_STEP("123", "c1", "batch")) "," PUSHED("soon") "}",
        /* of two clusters at once */
        "{" METRIC("RSS", "\"cluster\":\"a\"") "," METRIC(NEW_NAME, "\"cluster\":\"b\"") "," LABELS(
            OF_STEP("123", "c1", "batch")) "," PUSHED("1") "}",
        /* what no Pushgateway writes */
        "{" METRIC("RSS", "") "," LABELS(OF_STEP("123", "c1", "batch")) "," LABELS(
            OF_STEP("124", "c1", "batch")) "," PUSHED("1") "}",
        "{" METRIC("RSS", "") ",\"labels\":[]," PUSHED("1") "}",
        "{" METRIC("RSS", "") "," LABELS("\"job\":123,\"instance\":\"c1\"") "," PUSHED("1") "}",
        "{\"RSS\":1," LABELS(OF_STEP("123", "c1", "batch")) "," PUSHED("1") "}",
        "{}",
        "[]",
        "1",
        "[" STEP_OF("123", "c1", "batch") "]",
    };

    for (size_t i = 0; i < COUNT(groups); i++) {
        char text[4096];
        struct sweep_list list;

        snprintf(text, sizeof(text), LIST("%s,%s"), groups[i], STEP_OF("9", "c9", "9"));
        list = read_list(text);
        if (list.n != 1 || list.groups[0].job_id != 9)
            fail_msg("%zu groups in %s", list.n, text);
        sweep_list_clear(&list);
    }
}

TEST(a_long_label_is_no_node)
{
    static char node[10001], text[12000];
    struct sweep_list list;

    memset(node, 'n', sizeof(node) - 1);
    snprintf(text, sizeof(text), LIST("%s%s%s"),
             "{" METRIC("RSS", "") "," PUSHED("1") ",\"labels\":{\"job\":\"1\",\"step\":\"0\","
                                                   "\"instance\":\"",
             node, "\"}}");
    list = read_list(text);
    assert_int_equal(list.n, 0);
    assert_int_equal(list.n_all, 1);
    snprintf(text, sizeof(text), LIST("%s%s%s"),
             "{" METRIC("RSS", "") "," PUSHED("1") ",\"labels\":{\"job\":\"1\",\"step\":\"0\","
                                                   "\"instance\":\"",
             node + sizeof(node) - 256, "\"}}");
    sweep_list_clear(&list);
    list = read_list(text);
    assert_int_equal(list.n, 1);
    assert_int_equal(strlen(list.groups[0].node), 255);
    sweep_list_clear(&list);
}

TEST(the_original_plugin_tells_no_steps_apart)
{
    struct sweep_list list = read_list(LIST("{" METRIC("RSS", "") "," LABELS(
        "\"job\":\"4294967295\",\"instance\":\"a/b \\\"c\\\"\"") "," PUSHED("1e9") "}"));

    assert_int_equal(list.n, 1);
    assert_int_equal(list.groups[0].job_id, UINT32_MAX);
    assert_string_equal(list.groups[0].node, "a/b \"c\"");
    assert_string_equal(list.groups[0].step, "");
    assert_string_equal(list.groups[0].cluster, "");
    assert_true(list.groups[0].pushed_seconds == 1e9);
    sweep_list_clear(&list);
}

static bool want_odd(void *ctx, const struct sweep_group *group)
{
    ++*(unsigned *)ctx;
    return group->job_id % 2;
}

TEST(no_more_are_kept_than_are_wanted)
{
    static const char text[] = LIST(STEP_OF("1", "c1", "0") "," STEP_OF("2", "c1", "0") "," STEP_OF(
        "3", "c1", "0") "," STEP_OF("5", "c1", "0"));
    unsigned n_asked = 0;
    const struct sweep_wishes wishes = { want_odd, &n_asked, 2 };
    struct sweep_list list = { 0 };
    struct err err;

    assert_int_equal(read_pieces(str_of(text), 7, &wishes, &list, &err), 0);
    assert_int_equal(n_asked, 4);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.groups[1].job_id, 3);
    assert_int_equal(list.n_left_out, 1);
    assert_int_equal(list.n_all, 4);
    sweep_list_clear(&list);
}

TEST(what_is_no_list_is_an_error)
{
    static const char *const texts[] = {
        "",
        "<html>",
        "{}",
        "[]",
        "{\"status\":\"success\"}",
        "{\"status\":\"success\",\"data\":null}",
        "{\"status\":\"success\",\"data\":{}}",
        "{\"status\":\"error\",\"data\":[]}",
        "{\"data\":[" STEP_OF("1", "c1", "0") "]}",
        "{\"status\":\"success\",\"data\":[" STEP_OF("1", "c1", "0"),
        "{\"status\":\"success\",\"data\":[]}{}",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct sweep_list list = { 0 };
        struct err err = { 0 };

        if (read_pieces(str_of(texts[i]), SIZE_MAX, &all, &list, &err) != -EBADMSG)
            fail_msg("%s", texts[i]);
        assert_true(err.text[0]);
        sweep_list_clear(&list);
    }
}

enum { MOST_REQUESTS = 50 };

struct server {
    struct MHD_Daemon *daemon;
    unsigned short port;
    pthread_mutex_t lock;
    struct {
        char method[8], url[1024], authorization[64];
    } requests[MOST_REQUESTS];
    size_t n_requests;
    unsigned status;
    const char *list;
};

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *n_bytes, void **state)
{
    const char *authorization =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    bool is_list = strcmp(method, "GET") == 0;
    struct server *server = ctx;
    struct MHD_Response *response;
    enum MHD_Result result;
    unsigned status;
    struct str text;

    (void)version;
    (void)bytes;
    (void)n_bytes;
    (void)state;
    pthread_mutex_lock(&server->lock);
    if (server->n_requests < MOST_REQUESTS) {
        size_t at = server->n_requests++;

        snprintf(server->requests[at].method, sizeof(server->requests[0].method), "%s", method);
        snprintf(server->requests[at].url, sizeof(server->requests[0].url), "%s", url);
        snprintf(server->requests[at].authorization, sizeof(server->requests[0].authorization),
                 "%s", authorization ? authorization : "");
    }
    status = server->status ? server->status : is_list ? 200 : 202;
    text = str_of(is_list ? server->list : "");
    pthread_mutex_unlock(&server->lock);
    response =
        MHD_create_response_from_buffer(text.n, (void *)(uintptr_t)text.p, MHD_RESPMEM_MUST_COPY);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static void server_start(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    pthread_mutex_init(&server->lock, NULL);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    getsockname(fd, (struct sockaddr *)&address, &size);
    server->port = ntohs(address.sin_port);
    server->list = LIST("");
    server->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request,
                                      server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_END);
    assert_non_null(server->daemon);
}

static void answer_with(struct server *server, unsigned status, const char *list)
{
    pthread_mutex_lock(&server->lock);
    server->status = status;
    server->list = list;
    pthread_mutex_unlock(&server->lock);
}

static size_t count_requests(struct server *server, const char *method, const char *url)
{
    size_t n = 0;

    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < server->n_requests; i++)
        n += strcmp(server->requests[i].method, method) == 0 &&
             (!url || strcmp(server->requests[i].url, url) == 0);
    pthread_mutex_unlock(&server->lock);
    return n;
}

struct fixture {
    struct server server;
    struct manual_clock manual;
    struct sweeper_config config;
    struct sweeper *sweeper;
    struct gateway gateway;
    struct err err;
    char url[100];
    int log_fd;
    pid_t child;
    int child_pipe;
};

static struct fixture *fixture;

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    server_start(&fixture->server);
    manual_clock_init(&fixture->manual, 1700000000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    fixture->log_fd = memfd_create("log", MFD_CLOEXEC);
    fixture->child_pipe = -1;
    snprintf(fixture->url, sizeof(fixture->url), "http://u:p@127.0.0.1:%d/prefix",
             fixture->server.port);
    fixture->config = (struct sweeper_config){
        .url = fixture->url,
        .proc = "/proc",
        .host = "host",
        .slurmd_uid = 2147480000, /* nobody's: no slurmstepd of this machine counts */
        .timeout_ns = 20 * NS_PER_SEC,
        .round_ns = 10 * NS_PER_SEC,
        .clock = &fixture->manual.clock,
        .log = log_new(fixture->log_fd, LOG_DEBUG, &clock_real),
    };
    if (gateway_open(fixture->url, NULL, NULL, &fixture->gateway, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void end_child(void)
{
    if (fixture->child) {
        close(fixture->child_pipe);
        waitpid(fixture->child, NULL, 0);
    }
    fixture->child = 0;
}

static void teardown(void)
{
    sweeper_stop(fixture->sweeper);
    end_child();
    gateway_close(&fixture->gateway);
    MHD_stop_daemon(fixture->server.daemon);
    pthread_mutex_destroy(&fixture->server.lock);
    log_free(fixture->config.log);
    close(fixture->log_fd);
    manual_clock_destroy(&fixture->manual);
    free(fixture);
}

FIXTURE(setup, teardown)

static const char *log_of(void)
{
    static char text[16 * 1024];
    ssize_t n = pread(fixture->log_fd, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static const struct sweep_limits limits = { .timeout_ms = 20000, .max_answer = 1000 };

TEST(a_list_is_asked_for_below_the_prefix_with_the_password)
{
    struct sweep_list list = { 0 };

    answer_with(&fixture->server, 0, LIST(STEP_OF("1", "c1", "0")));
    assert_int_equal(sweep_read(&fixture->gateway, &limits, &all, &list, &fixture->err), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(count_requests(&fixture->server, "GET", "/prefix/api/v1/metrics"), 1);
    assert_string_equal(fixture->server.requests[0].authorization, "Basic dTpw");
    sweep_list_clear(&list);
}

TEST(an_answer_that_is_no_list_is_told)
{
    static char too_large[2000];
    const struct {
        unsigned status;
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        { 200, "<html>", -EBADMSG, "is not a Pushgateway's" },
        { 200, "{\"status\":", -EBADMSG, "is not a Pushgateway's" },
        { 404, "404 page not found", -EREMOTEIO, "status 404; is the path right" },
        { 401, "", -EREMOTEIO, "are the user and the password right?" },
        { 503, LIST(STEP_OF("1", "c1", "0")), -EREMOTEIO, "status 503" },
        { 200, too_large, -EFBIG, "1000" },
    };

    memset(too_large, ' ', sizeof(too_large) - 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sweep_list list = { 0 };
        int code;

        answer_with(&fixture->server, cases[i].status, cases[i].text);
        code = sweep_read(&fixture->gateway, &limits, &all, &list, &fixture->err);
        if (code != cases[i].code)
            fail_msg("case %zu: %d, %s", i, code, fixture->err.text);
        assert_contains(fixture->err.text, cases[i].words);
        assert_int_equal(list.n, 0);
    }
}

TEST(a_group_is_deleted_by_its_path)
{
    const struct {
        struct sweep_group group;
        const char *url;
    } cases[] = {
        { { .job_id = 123, .node = "c1", .step = "batch" }, "/job/123/instance/c1/step/batch" },
        { { .job_id = 123, .node = "c1" }, "/job/123/instance/c1" },
        { { .job_id = 7, .node = "a/b", .step = "0" }, "/job/7/instance@base64/YS9i/step/0" },
        { { .job_id = 7, .node = "\"\n", .step = "0" }, "/job/7/instance@base64/Igo/step/0" },
        { { .job_id = 7, .node = "..", .step = "0" }, "/job/7/instance@base64/Li4/step/0" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char url[200];

        snprintf(url, sizeof(url), "/prefix/metrics%s", cases[i].url);
        assert_int_equal(sweep_delete(&fixture->gateway, &cases[i].group, &limits, &fixture->err),
                         0);
        if (count_requests(&fixture->server, "DELETE", url) != 1)
            fail_msg("%s", fixture->server.requests[i].url);
    }
    answer_with(&fixture->server, 500, "");
    assert_int_equal(sweep_delete(&fixture->gateway, &cases[0].group, &limits, &fixture->err),
                     -EREMOTEIO);
}

static void start(void)
{
    if (sweeper_start(&fixture->config, &fixture->sweeper, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void go_round(void)
{
    assert_true(manual_clock_await_waiters(&fixture->manual, 1));
    manual_clock_advance(&fixture->manual, fixture->config.round_ns);
}

static struct sweeper_stats stats_of(void)
{
    struct sweeper_stats stats;

    sweeper_stats(fixture->sweeper, &stats);
    return stats;
}

/* The clock may run ahead of the sweeper, which does not mind. */
#define go_until(fixture, condition)                                                               \
    do {                                                                                           \
        int64_t deadline_ = clock_mono(&clock_real) + TEST_DEADLINE;                               \
        while (!(condition) && clock_mono(&clock_real) < deadline_)                                \
            go_round();                                                                            \
        assert_true(condition);                                                                    \
    } while (0)

/* A process to be taken for a slurmstepd. */
static struct stepd begin_child(void)
{
    struct stepd stepd = { .job = "123", .step = "0+1", .node = "c1" };
    struct proc_stat stat;
    struct proc *proc;
    int ends[2];
    char byte;

    assert_int_equal(pipe(ends), 0);
    fixture->child = fork();
    if (!fixture->child) {
        close(ends[1]);
        while (read(ends[0], &byte, 1) > 0)
            continue;
        _exit(0);
    }
    close(ends[0]);
    fixture->child_pipe = ends[1];
    assert_int_equal(proc_open("/proc", &proc, &fixture->err), 0);
    assert_true(proc_stat(proc, fixture->child, &stat));
    proc_close(proc);
    stepd.pid = fixture->child;
    stepd.start_ticks = stat.start_ticks;
    return stepd;
}

static const char path_of_child[] = "/prefix/metrics/job/123/instance/c1/step@base64/MCsx";

TEST(the_group_of_a_slurmstepd_goes_when_that_has_ended)
{
    struct stepd stepd = begin_child();

    start();
    sweeper_watch(fixture->sweeper, &stepd);
    sweeper_watch(fixture->sweeper, &stepd);
    go_until(fixture, count_requests(&fixture->server, "GET", NULL) == 1);
    assert_int_equal(count_requests(&fixture->server, "DELETE", NULL), 0);
    end_child();
    go_until(fixture, count_requests(&fixture->server, "DELETE", path_of_child) == 1);
    for (int i = 0; i < 10; i++)
        go_round();
    assert_int_equal(count_requests(&fixture->server, "DELETE", NULL), 1);
    assert_int_equal(stats_of().swept, 1);
    assert_int_equal(stats_of().failures, 0);
}

TEST(another_process_of_its_number_is_not_the_slurmstepd)
{
    struct stepd stepd = begin_child();

    start();
    stepd.start_ticks++;
    sweeper_watch(fixture->sweeper, &stepd);
    go_until(fixture, count_requests(&fixture->server, "DELETE", path_of_child) == 1);
}

TEST(what_is_refused_is_tried_again_until_it_is_taken)
{
    struct stepd stepd = begin_child();

    answer_with(&fixture->server, 503, "");
    start();
    sweeper_watch(fixture->sweeper, &stepd);
    end_child();
    go_until(fixture, stats_of().failures >= 3);
    answer_with(&fixture->server, 0, LIST(""));
    go_until(fixture, stats_of().swept == 1);
    assert_contains(log_of(), "cannot be deleted");
    assert_contains(log_of(), "status 503");
    assert_contains(log_of(), "is deleted again");
}

TEST(what_was_left_before_is_found_in_the_list_once)
{
    answer_with(&fixture->server, 0,
                LIST(STEP_OF("1", "host", "0") "," STEP_OF("2", "other", "0") "," STEP_OF(
                    "nightly", "host", "0") "," STEP_OF("3", "host", "extern")));
    start();
    go_until(fixture, stats_of().swept == 2);
    for (int i = 0; i < 10; i++)
        go_round();
    assert_int_equal(count_requests(&fixture->server, "GET", NULL), 1);
    assert_int_equal(count_requests(&fixture->server, "DELETE", NULL), 2);
    assert_int_equal(
        count_requests(&fixture->server, "DELETE", "/prefix/metrics/job/1/instance/host/step/0"),
        1);
    assert_int_equal(count_requests(&fixture->server, "DELETE",
                                    "/prefix/metrics/job/3/instance/host/step/extern"),
                     1);
}

TEST(another_name_of_the_host_is_looked_for_in_the_list)
{
    struct stepd stepd = begin_child();

    answer_with(&fixture->server, 0, LIST(STEP_OF("9", "c1", "batch")));
    start();
    go_until(fixture, count_requests(&fixture->server, "GET", NULL) == 1);
    assert_int_equal(stats_of().swept, 0);
    sweeper_watch(fixture->sweeper, &stepd);
    go_until(fixture, stats_of().swept == 1);
    assert_int_equal(
        count_requests(&fixture->server, "DELETE", "/prefix/metrics/job/9/instance/c1/step/batch"),
        1);
}

TEST(a_list_that_cannot_be_read_deletes_nothing_and_is_tried_again)
{
    answer_with(&fixture->server, 0,
                "{\"status\":\"success\",\"data\":[" STEP_OF("1", "host", "0"));
    start();
    go_until(fixture, stats_of().failures >= 2);
    assert_int_equal(count_requests(&fixture->server, "DELETE", NULL), 0);
    answer_with(&fixture->server, 0, LIST(STEP_OF("1", "host", "0")));
    go_until(fixture, stats_of().swept == 1);
}

TEST(a_url_that_cannot_be_used_is_refused)
{
    fixture->config.url = "ftp://gateway";
    assert_int_equal(sweeper_start(&fixture->config, &fixture->sweeper, &fixture->err), -EINVAL);
    fixture->config.url = "http://gateway";
    fixture->config.password_file = "/nonexistent";
    assert_int_equal(sweeper_start(&fixture->config, &fixture->sweeper, &fixture->err), -EINVAL);
    assert_contains(fixture->err.text, "no user in the URL");
}
