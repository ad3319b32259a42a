/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The routes of job tracing over the real server. munged is played by a function: a credential is
 * "MUNGE:UID:PAYLOAD". */
#include "sections.h"

#include "files.h"
#include "http_client.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/num.h"
#include "http/trace.h"
#include "http/trace_page.h"
#include "http/unsealer.h"

#include <crypt.h>
#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { ANNA = 1001, BERT = 1002 };

int64_t sections_now = 1700000000;

#define ANNA_SECRET "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n" /* anna:secret */
#define ANNA_WRONG  "Authorization: Basic YW5uYTp3cm9uZw==\r\n" /* anna:wrong */
#define BERT_SECRET "Authorization: Basic YmVydDpzZWNyZXQ=\r\n" /* bert:secret */
#define GOOD_POST                                                                                  \
    "{\"job_id\":7,\"pid\":35642,\"cpus\":150.5,\"write_bytes\":10,"                               \
    "\"read_bytes\":2048,\"threads\":3,\"mem\":1032192,\"username\":\"anna\","                     \
    "\"hostname\":\"node1\"}"

static struct trace *trace;
static struct http_trace *routes_of_trace;
static struct http_route routes[HTTP_TRACE_ROUTES + 1];
static struct http_server *server;
static struct log *log_file;
static struct manual_clock manual;
static struct client client;
static struct section *jobs;
static bool is_simulated;
static sem_t hanging, hang_ended; /* munged: is told when it begins to hang, and when it is over */
static atomic_uint n_unsealed;

static struct section *give_jobs(void *ctx, bool *ret_is_simulated)
{
    assert_ptr_equal(ctx, &jobs);
    *ret_is_simulated = is_simulated;
    return jobs ? section_ref(jobs) : NULL;
}

static int unseal(const char *socket, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err)
{
    struct str rest = str_skip(credential, strlen("MUNGE:"));
    struct str number = str_cut(&rest, ':');
    uint64_t uid;

    assert_string_equal(socket, "/run/munge.test");
    n_unsealed++;
    if (str_eq(number, STR("hang"))) {
        sem_post(&hanging);
        sem_wait(&hang_ended);
        return err_set(err, EIO, "timed out");
    }
    if (str_eq(number, STR("odd")))
        return err_set(err, EIO, "munged has tripped over it");
    if (str_eq(number, STR("away")))
        return err_set(err, ENOENT, "munged is not there");
    if (!num_get_u64(number, &uid))
        return err_set(err, EACCES, "the credential is forged");
    ret->uid = (uid_t)uid;
    buf_put(to, rest);
    return to->over ? err_set(err, EFBIG, "the credential holds too much") : 0;
}

static void make_jobs(void)
{
    jobs = jobs_from("* cpus=4 memory=2G\n"
                     "RUNNING id=7 user_id=%d user=anna\n"
                     "RUNNING id=9 user_id=%d user=bert\n",
                     ANNA, BERT);
}

/* anna and bert, whose password is "secret". */
static const char *make_web_config(void)
{
    static struct crypt_data data;
    char salt[CRYPT_GENSALT_OUTPUT_SIZE], text[300];
    const char *hash;

    crypt_gensalt_rn("$2b$", 4, "0123456789abcdef", 16, salt, sizeof(salt));
    hash = crypt_r("secret", salt, &data);
    snprintf(text, sizeof(text), "basic_auth_users:\n  anna: %s\n  bert: %s\n", hash, hash);
    return write_file("web.yml", text);
}

static void start_server(const char *web_config)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .ctx = &server, /* not theirs: they have their own */
        .listen = &listen,
        .n_listen = 1,
        .web_config = web_config,
        .max_connections = 100,
        .workers = 2,
        .queue = 10,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
        .log = log_file,
    };
    struct err err;

    if (http_start(&config, &server, &err) < 0)
        fail_msg("%s", err.text);
    client_open(&client, http_address(server, 0));
}

static void start(const struct trace_config *wanted, bool is_open, const char *web_config)
{
    struct trace_config config = *wanted;
    struct http_trace_config route_config = {
        .path = "/trace",
        .is_open = is_open,
        .jobs = give_jobs,
        .ctx = &jobs,
        .unseal = unseal,
        .munge_socket = "/run/munge.test",
        .clock = &manual.clock,
        .log = log_file,
    };

    config.clock = &manual.clock;
    route_config.trace = trace = trace_new(&config);
    routes_of_trace = http_trace_new(&route_config);
    http_trace_routes(routes_of_trace, routes);
    start_server(web_config);
}

static const struct trace_config usual = {
    .life_ns = 10 * NS_PER_SEC,
    .max_senders = 100,
    .max_senders_per_user = 100,
    .max_senders_per_job = 2,
    .max_posts_per_second = 100,
    .max_posts_per_second_per_user = 1,
};

static void set_up(void)
{
    log_file = log_new(STDERR_FILENO, LOG_ERROR + 1, &clock_real);
    manual_clock_init(&manual, 1700000005 * NS_PER_SEC, 0);
    client.fd = -1;
    is_simulated = false;
    n_unsealed = 0;
    sem_init(&hanging, 0, 0);
    sem_init(&hang_ended, 0, 0);
    make_jobs();
}

static void tear_down(void)
{
    client_close(&client);
    for (int i = 0; i < 10; i++)
        sem_post(&hang_ended); /* where a test has failed, the server must stop nevertheless */
    server = http_stop(server);
    routes_of_trace = http_trace_free(routes_of_trace);
    trace = trace_free(trace);
    jobs = section_unref(jobs);
    log_file = log_free(log_file);
    manual_clock_destroy(&manual);
    sem_destroy(&hanging);
    sem_destroy(&hang_ended);
}

FIXTURE(set_up, tear_down)

static void begin_request(struct client *from, const char *method, const char *headers,
                          struct str body)
{
    char head[600];

    snprintf(head, sizeof(head), "%s /trace HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n",
             method, body.n, headers);
    client_send_text(from, head);
    client_send(from, body);
}

static struct reply send_request(const char *method, const char *headers, struct str body)
{
    begin_request(&client, method, headers, body);
    return client_read(&client, strcmp(method, "HEAD") != 0);
}

static struct reply post(const char *headers, const char *body)
{
    return send_request("POST", headers, str_of(body));
}

/* That status, with one sentence on one line that says this. */
static void assert_reply(struct reply reply, unsigned status, const char *part)
{
    char text[500];

    snprintf(text, sizeof(text), "%.*s", STR_ARG(reply.body));
    if (reply.status != status)
        fail_msg("%u, not %u: %s", reply.status, status, text);
    assert_contains(text, part);
    assert_int_equal(str_find(reply.body, '\n'), reply.body.n - 1);
}

static const char *get_page(const char *headers)
{
    static char page[100000];
    struct reply reply = client_get_with(&client, "/trace", headers);

    assert_int_equal(reply.status, 200);
    assert_str(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
    snprintf(page, sizeof(page), "%.*s", STR_ARG(reply.body));
    return page;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

TEST(a_post_in_a_credential_is_shown_on_the_page)
{
    const char *page;

    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    page = get_page("");
    assert_contains(page, "<th scope=\"row\">7</th><td><bdi>anna</bdi></td>"
                          "<td><bdi>node1</bdi> (pid 35642)</td><td class=\"number\">1.50</td>"
                          "<td class=\"number\">4</td><td class=\"number\">1008.0 KiB</td>"
                          "<td class=\"number\">2.0 GiB</td><td class=\"number\">2.0 KiB</td>"
                          "<td class=\"number\">10 B</td><td class=\"number\">3</td></tr>");
    assert_contains(page, "2023-11-14 22:13:25 UTC");
    assert_contains(page, "the queue is that of <time datetime=\"2023-11-14 22:13:20Z\">");
    assert_contains(page, "</html>\n");
    assert_int_equal(count(page, "scope=\"col\""), 10);
    assert_int_equal(count(page, "<td") + count(page, "scope=\"row\""), 10);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "Simulated"));
}

TEST(white_space_around_a_credential_does_not_matter)
{
    start(&usual, false, NULL);
    assert_reply(post("Content-Type: text/plain\r\n", "\nMUNGE:1001:" GOOD_POST "\n"), 200,
                 "shown");
}

TEST(a_post_is_kept_until_its_job_is_in_the_queue)
{
    struct section *queue;

    start(&usual, false, NULL);
    queue = jobs;
    jobs = NULL;
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 202, "as soon as the job");
    assert_contains(get_page(""), "The queue is not known now");
    jobs = queue;
    assert_contains(get_page(""), "anna");
    manual_clock_advance(&manual, 11 * NS_PER_SEC);
    assert_contains(get_page(""), "No job of the queue is traced");
}

TEST(without_proof_it_is_401)
{
    struct trace_stats stats;
    struct reply reply;

    start(&usual, false, NULL);
    reply = post("", GOOD_POST);
    assert_int_equal(reply_header(&reply, "WWW-Authenticate").n, 0);
    assert_reply(reply, 401, "munge credential");
    assert_reply(post("", ""), 401, "munge credential");
    assert_reply(post(ANNA_SECRET, GOOD_POST), 401, "munge credential");
    trace_stats(trace, &stats);
    assert_int_equal(stats.refused[TRACE_UNPROVED], 3);
    assert_int_equal(stats.posts, 0);
}

TEST(where_there_are_passwords_the_owners_will_do_and_a_credential_too)
{
    struct reply reply;

    start(&usual, false, make_web_config());
    assert_reply(post(ANNA_SECRET, GOOD_POST), 200, "shown");
    assert_reply(post(BERT_SECRET, GOOD_POST), 403, "job 7 is not yours");
    assert_reply(post(ANNA_WRONG, GOOD_POST), 401, "password");
    reply = post("", GOOD_POST);
    assert_true(str_starts(reply_header(&reply, "WWW-Authenticate"), STR("Basic ")));
    assert_reply(reply, 401, "name and password");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    /* the page is as any other */
    reply = client_get(&client, "/trace");
    assert_int_equal(reply.status, 401);
    assert_contains(get_page(BERT_SECRET), "anna");
}

TEST(open_means_that_anybody_is_taken_at_his_word)
{
    start(&usual, true, make_web_config());
    assert_reply(post("", GOOD_POST), 200, "shown");
    assert_reply(post(BERT_SECRET, GOOD_POST), 200, "shown");
    /* but not against his own proof */
    assert_reply(post("", "MUNGE:1002:" GOOD_POST), 403, "not yours");
    http_trace_set_open(routes_of_trace, false);
    assert_reply(post("", GOOD_POST), 401, "prove");
    assert_reply(post(BERT_SECRET, GOOD_POST), 403, "not yours");
}

TEST(a_credential_that_proves_nothing_is_403_and_a_missing_munged_503)
{
    struct trace_stats stats;
    struct reply reply;

    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:forged:" GOOD_POST), 403, "forged");
    assert_reply(post("", "MUNGE:1002:" GOOD_POST), 403, "job 7 is not yours");
    reply = post("", "MUNGE:away:" GOOD_POST);
    assert_str(reply_header(&reply, "Retry-After"), "10");
    assert_reply(reply, 503, "munged is not there");
    trace_stats(trace, &stats);
    assert_int_equal(stats.refused[TRACE_DENIED], 2);
    assert_int_equal(stats.refused[TRACE_UNPROVED], 1);
}

TEST(root_may_post_for_every_job)
{
    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:0:" GOOD_POST), 200, "shown");
}

TEST(what_is_wrong_with_a_post_is_said)
{
    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:1001:{\"job_id\":0}"), 400, "job_id must be");
    assert_reply(post("", "MUNGE:1001:"), 400, "no JSON");
    assert_reply(post("", "MUNGE:1001:{\"job_id\":7,\"cpus\":\"\x1b[2J\n\"}"), 400, "no JSON");
    assert_reply(post("", "MUNGE:1001:{\"job_id\":7,\"cpus\":\"\\u001b[2J\\n\"}"), 400,
                 "cpus must be a number from 0 to 1e18, not \"\\x1b[2J\\n\"");
}

TEST(a_large_body_is_413_and_another_method_405)
{
    char *large = heap_alloc(TRACE_BODY_MAX + 100);
    struct reply reply;

    start(&usual, false, NULL);
    memset(large, 'x', TRACE_BODY_MAX + 1);
    memcpy(large, "MUNGE:1001:", 11);
    assert_reply(send_request("POST", "", (struct str){ large, TRACE_BODY_MAX }), 400, "no JSON");
    reply = send_request("PUT", "", STR(GOOD_POST));
    assert_str(reply_header(&reply, "Allow"), "GET, HEAD, POST");
    assert_reply(reply, 405, "method");
    assert_int_equal(send_request("HEAD", "", STR("")).status, 200);
    assert_reply(send_request("POST", "", (struct str){ large, TRACE_BODY_MAX + 1 }), 413,
                 "too large");
    free(large);
}

TEST(too_often_and_too_many_are_429)
{
    struct reply reply;

    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:1001:{\"job_id\":7,\"pid\":1}"), 200, "shown");
    assert_reply(post("", "MUNGE:1001:{\"job_id\":7,\"pid\":2}"), 200, "shown");
    reply = post("", "MUNGE:1001:{\"job_id\":7,\"pid\":3}");
    assert_str(reply_header(&reply, "Retry-After"), "60");
    assert_reply(reply, 429, "no more can");
    for (int i = 3; i < 10; i++)
        assert_reply(post("", "MUNGE:1001:{\"job_id\":7,\"pid\":1}"), 200, "shown");
    reply = post("", "MUNGE:1001:{\"job_id\":7,\"pid\":1}");
    assert_str(reply_header(&reply, "Retry-After"), "1");
    assert_reply(reply, 429, "try again");
    assert_reply(post("", "MUNGE:1002:{\"job_id\":9,\"pid\":1}"), 200, "shown");
}

TEST(credentials_that_prove_nothing_use_up_nothing_but_their_addresss_patience)
{
    struct trace_config config = usual;
    struct trace_stats stats;
    struct reply reply;

    config.max_posts_per_second = 1;
    start(&config, true, NULL);
    for (int i = 0; i < 20; i++)
        assert_reply(post("", "MUNGE:forged:" GOOD_POST), 403, "forged");
    for (int i = 0; i < 3; i++) {
        reply = post("", "\nMUNGE:1001:" GOOD_POST);
        assert_str(reply_header(&reply, "Retry-After"), "60");
        assert_reply(reply, 429, "from your address");
    }
    assert_int_equal(n_unsealed, 20);
    trace_stats(trace, &stats);
    assert_int_equal(stats.refused[TRACE_DENIED], 20);
    assert_int_equal(stats.refused[TRACE_TOO_OFTEN], 3);
    /* all that may be posted at once is left to those who need no credential */
    for (int i = 0; i < 10; i++)
        assert_reply(post("", GOOD_POST), 200, "shown");
    assert_reply(post("", GOOD_POST), 429, "too many posts");
    manual_clock_advance(&manual, 60 * NS_PER_SEC);
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
}

TEST(a_post_in_a_credential_counts_once)
{
    struct trace_config config = usual;

    config.max_posts_per_second = 1;
    start(&config, false, NULL);
    for (int i = 0; i < 10; i++)
        assert_reply(post("", i % 2 ? "MUNGE:1001:" GOOD_POST : "MUNGE:0:" GOOD_POST), 200,
                     "shown");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 429, "try again");
    assert_int_equal(n_unsealed, 10);
    manual_clock_advance(&manual, 2 * NS_PER_SEC);
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 429, "try again");
}

static void assert_away(struct reply reply)
{
    assert_str(reply_header(&reply, "Retry-After"), "10");
    assert_reply(reply, 503, "munged does not answer");
}

TEST(a_munged_that_hangs_holds_up_one_worker_and_one_post)
{
    static struct client others[2];

    start(&usual, false, NULL);
    for (size_t i = 0; i < COUNT(others); i++)
        client_open(&others[i], http_address(server, 0));
    begin_request(&others[0], "POST", "", STR("MUNGE:hang:" GOOD_POST));
    sem_wait(&hanging);
    /* it may just be slow */
    begin_request(&others[1], "POST", "", STR("MUNGE:1001:" GOOD_POST));
    assert_true(manual_clock_await_waiters(&manual, 1));
    manual_clock_advance(&manual, UNSEALER_PATIENCE_NS);
    assert_away(client_read(&others[1], true));
    assert_away(post("", "MUNGE:1001:" GOOD_POST));
    assert_contains(get_page(""), "No job");
    sem_post(&hang_ended);
    assert_reply(client_read(&others[0], true), 503, "timed out");
    /* then it is left alone for a while, … */
    assert_away(post("", "MUNGE:1001:" GOOD_POST));
    manual_clock_advance(&manual, UNSEALER_PAUSE_NS);
    /* … and one post finds out how it is, for which no other waits */
    begin_request(&others[0], "POST", "", STR("MUNGE:hang:" GOOD_POST));
    sem_wait(&hanging);
    assert_away(post("", "MUNGE:1001:" GOOD_POST));
    manual_clock_advance(&manual, UNSEALER_PATIENCE_NS);
    sem_post(&hang_ended);
    assert_reply(client_read(&others[0], true), 503, "timed out");
    assert_int_equal(n_unsealed, 2);
    manual_clock_advance(&manual, UNSEALER_PAUSE_NS);
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
    for (size_t i = 0; i < COUNT(others); i++)
        client_close(&others[i]);
}

TEST(a_munged_that_is_slow_is_waited_for)
{
    static struct client other;

    start(&usual, false, NULL);
    client_open(&other, http_address(server, 0));
    begin_request(&client, "POST", "", STR("MUNGE:hang:" GOOD_POST));
    sem_wait(&hanging);
    begin_request(&other, "POST", "", STR("MUNGE:1001:" GOOD_POST));
    assert_true(manual_clock_await_waiters(&manual, 1));
    manual_clock_advance(&manual, UNSEALER_PATIENCE_NS / 2);
    sem_post(&hang_ended);
    assert_reply(client_read(&client, true), 503, "timed out");
    assert_reply(client_read(&other, true), 200, "shown");
    client_close(&other);
}

TEST(a_missing_munged_is_not_asked_again_at_once)
{
    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:away:" GOOD_POST), 503, "munged is not there");
    assert_away(post("", "MUNGE:1001:" GOOD_POST));
    manual_clock_advance(&manual, UNSEALER_PAUSE_NS);
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
}

TEST(no_credential_keeps_out_the_others)
{
    start(&usual, false, NULL);
    assert_reply(post("", "MUNGE:odd:" GOOD_POST), 503, "has tripped");
    assert_reply(post("", "MUNGE:forged:" GOOD_POST), 403, "forged");
    assert_reply(post("", "MUNGE:1001:" GOOD_POST), 200, "shown");
}

TEST(a_web_page_in_somebodys_browser_cannot_post)
{
    start(&usual, true, NULL);
    assert_reply(post("Origin: http://elsewhere\r\n", GOOD_POST), 403, "web page");
    assert_contains(get_page(""), "No job");
}

TEST(what_a_job_says_is_text_on_the_page_and_never_markup)
{
    const char *page;

    start(&usual, true, NULL);
    assert_reply(post("", "{\"job_id\":7,\"pid\":1,"
                          "\"hostname\":\"<script>alert('x')</script>\\\"&\","
                          "\"username\":\"<b>\"}"),
                 200, "shown");
    page = get_page("");
    assert_contains(page, "<bdi>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;</bdi>");
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<b>"));
}

TEST(a_simulated_queue_is_called_one)
{
    is_simulated = true;
    start(&usual, true, NULL);
    assert_contains(get_page(""), "Simulated cluster");
}

/* Traces of so many jobs, of which each has so many hosts. */
static struct section *make_traces(size_t n_jobs, uint32_t n_hosts, struct str host)
{
    struct section *section = section_new(KIND_TRACES);
    struct traces *traces = &section->traces;

    traces->job = ARENA_ARRAY(&section->arena, struct traced_job, n_jobs);
    traces->host = ARENA_ARRAY(&section->arena, struct traced_host, n_hosts);
    traces->n_hosts = n_hosts;
    for (uint32_t i = 0; i < n_hosts; i++)
        traces->host[i] = (struct traced_host){ symbols_put(&section->symbols, host), 1 + i };
    for (; traces->n < n_jobs; traces->n++)
        traces->job[traces->n] = (struct traced_job){
            .id = 1 + (uint32_t)traces->n,
            .cpu_percent = NAN,
            .memory_bytes = NAN,
            .read_bytes = NAN,
            .write_bytes = NAN,
            .threads = NAN,
            .allocated_cpus = MODEL_UNKNOWN_U32,
            .allocated_memory_bytes = MODEL_UNKNOWN_U64,
            .n_hosts = n_hosts,
        };
    return section;
}

TEST(a_page_has_an_end_and_says_so)
{
    struct section *traces = make_traces(TRACE_PAGE_ROWS + 234, 5, STR("n"));
    struct buf page;

    buf_init(&page, TRACE_PAGE_BYTES);
    trace_page(&page, traces, jobs, false);
    assert_false(page.over);
    assert_int_equal(count(page.p, "scope=\"row\""), TRACE_PAGE_ROWS);
    assert_contains(page.p, "the first 1000 of 1234 traced jobs");
    assert_contains(page.p, "(pid 3) and 2 more");
    assert_int_equal(count(page.p, "(pid 4)"), 0);
    /* what is unknown is not 0 */
    assert_contains(page.p, "<td class=\"number\">–</td><td class=\"number\">–</td></tr>");
    buf_free(&page);
    section_unref(traces);
}

TEST(the_longest_names_do_not_break_the_page_off)
{
    char host[255];
    struct section *traces;
    struct buf page;

    memset(host, '"', sizeof(host));
    traces = make_traces(5000, 3, (struct str){ host, sizeof(host) });
    buf_init(&page, TRACE_PAGE_BYTES);
    trace_page(&page, traces, NULL, false);
    assert_false(page.over);
    assert_contains(page.p, "of 5000 traced jobs");
    assert_contains(page.p, "</html>\n");
    buf_free(&page);
    section_unref(traces);
}
