/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is read in a Pushgateway's list, and what the agent deletes there: against a server in this
 * process. The real ones: tests/e2e/test_sweep.py. */
#include "test.h"

#include "files.h"
#include "http_peer.h"
#include "manual_clock.h"

#include "agent/sweeper.h"
#include "base/arena.h"
#include "push/sweep.h"

#include <signal.h>
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

struct fixture {
    struct http_peer *server;
    const char *list; /* its answer to GET, under its lock */
    unsigned status;  /* of all answers, or 0 */
    struct manual_clock manual;
    struct sweeper_config config;
    struct sweeper *sweeper;
    struct gateway gateway;
    struct err err;
    char url[100];
    pid_t child;
    int child_pipe;
};

static struct fixture *fixture;

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    bool is_list = strcmp(request->method, "GET") == 0;

    ret->status = fixture->status ? fixture->status : is_list ? 200 : 202;
    ret->body = str_of(is_list ? fixture->list : "");
}

static void answer_with(unsigned status, const char *list)
{
    peer_lock(fixture->server);
    fixture->status = status;
    fixture->list = list;
    peer_unlock(fixture->server);
}

static size_t count_requests(const char *method, const char *target)
{
    size_t n = 0;

    for (size_t i = 1; i <= peer_requests(fixture->server); i++) {
        const struct peer_request *request = peer_request(fixture->server, i);

        n += strcmp(request->method, method) == 0 &&
             (!target || strcmp(request->target, target) == 0);
    }
    return n;
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    fixture->list = LIST("");
    fixture->server = peer_open(NULL);
    peer_reply_by(fixture->server, reply);
    manual_clock_init(&fixture->manual, 1700000000 * NS_PER_SEC, 1000 * NS_PER_SEC);
    fixture->child_pipe = -1;
    snprintf(fixture->url, sizeof(fixture->url), "http://u:p@127.0.0.1:%d/prefix",
             peer_port(fixture->server));
    fixture->config = (struct sweeper_config){
        .url = fixture->url,
        .proc = "/proc",
        .host = "host",
        .slurmd_uid = 2147480000, /* nobody's: no slurmstepd of this machine counts */
        .timeout_ns = TEST_DEADLINE,
        .round_ns = 10 * NS_PER_SEC,
        .clock = &fixture->manual.clock,
        .log = test_log(&clock_real),
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
    peer_free(fixture->server);
    log_free(fixture->config.log);
    manual_clock_destroy(&fixture->manual);
    free(fixture);
}

FIXTURE(setup, teardown)

static const struct sweep_limits limits = { .timeout_ms = TEST_DEADLINE / NS_PER_MS,
                                            .max_answer = 1000 };

TEST(a_list_is_asked_for_below_the_prefix_with_the_password)
{
    struct sweep_list list = { 0 };

    answer_with(0, LIST(STEP_OF("1", "c1", "0")));
    assert_int_equal(sweep_read(&fixture->gateway, &limits, &all, &list, &fixture->err), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(count_requests("GET", "/prefix/api/v1/metrics"), 1);
    assert_string_equal(peer_header(peer_request(fixture->server, 1), "Authorization"),
                        "Basic dTpw");
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

        answer_with(cases[i].status, cases[i].text);
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
        if (count_requests("DELETE", url) != 1)
            fail_msg("%s", peer_request(fixture->server, i + 1)->target);
    }
    answer_with(500, "");
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
#define go_until(condition)                                                                        \
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
    go_until(count_requests("GET", NULL) == 1);
    assert_int_equal(count_requests("DELETE", NULL), 0);
    end_child();
    go_until(count_requests("DELETE", path_of_child) == 1);
    for (int i = 0; i < 10; i++)
        go_round();
    assert_int_equal(count_requests("DELETE", NULL), 1);
    assert_int_equal(stats_of().swept, 1);
    assert_int_equal(stats_of().failures, 0);
}

TEST(another_process_of_its_number_is_not_the_slurmstepd)
{
    struct stepd stepd = begin_child();

    start();
    stepd.start_ticks++;
    sweeper_watch(fixture->sweeper, &stepd);
    go_until(count_requests("DELETE", path_of_child) == 1);
}

TEST(what_is_refused_is_tried_again_until_it_is_taken)
{
    struct stepd stepd = begin_child();

    answer_with(503, "");
    start();
    sweeper_watch(fixture->sweeper, &stepd);
    end_child();
    go_until(stats_of().failures >= 3);
    answer_with(0, LIST(""));
    go_until(stats_of().swept == 1);
    assert_contains(logged().p, "cannot be deleted");
    assert_contains(logged().p, "status 503");
    wait_until_true(count_logged("is deleted again") == 1);
}

TEST(what_was_left_before_is_found_in_the_list_once)
{
    answer_with(0, LIST(STEP_OF("1", "host", "0") "," STEP_OF("2", "other", "0") "," STEP_OF(
                       "nightly", "host", "0") "," STEP_OF("3", "host", "extern")));
    start();
    go_until(stats_of().swept == 2);
    for (int i = 0; i < 10; i++)
        go_round();
    assert_int_equal(count_requests("GET", NULL), 1);
    assert_int_equal(count_requests("DELETE", NULL), 2);
    assert_int_equal(count_requests("DELETE", "/prefix/metrics/job/1/instance/host/step/0"), 1);
    assert_int_equal(count_requests("DELETE", "/prefix/metrics/job/3/instance/host/step/extern"),
                     1);
}

TEST(another_name_of_the_host_is_looked_for_in_the_list)
{
    struct stepd stepd = begin_child();

    answer_with(0, LIST(STEP_OF("9", "c1", "batch")));
    start();
    go_until(count_requests("GET", NULL) == 1);
    assert_int_equal(stats_of().swept, 0);
    sweeper_watch(fixture->sweeper, &stepd);
    go_until(stats_of().swept == 1);
    assert_int_equal(count_requests("DELETE", "/prefix/metrics/job/9/instance/c1/step/batch"), 1);
}

TEST(a_list_that_cannot_be_read_deletes_nothing_and_is_tried_again)
{
    answer_with(0, "{\"status\":\"success\",\"data\":[" STEP_OF("1", "host", "0"));
    start();
    go_until(stats_of().failures >= 2);
    assert_int_equal(count_requests("DELETE", NULL), 0);
    answer_with(0, LIST(STEP_OF("1", "host", "0")));
    go_until(stats_of().swept == 1);
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
