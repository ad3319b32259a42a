/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of all pages, over the real server, around pages that are made for this. */
#include "http_client.h"
#include "sections.h"

#include "web/site_inside.h"
#include "web/site_names.h"

#include <fcntl.h>
#include <semaphore.h>
#include <zlib.h>

enum { NOW = 1790000000 };

int64_t sections_now = NOW;

static struct board *board;
static const char *why_no_board;
static struct site *site;
static struct http_route routes[SITE_ROUTES + 1];
static struct http_server *server;
static struct log *log_file;
static struct client client;
static struct err err;
static sem_t gate_reached, gate_opened;

/* ---- the pages ---- */

static int show_words(struct site_call *call)
{
    call->title = STR("Words <&>");
    buf_text(&call->out, "<h1>Words</h1>\n<p>rest=");
    html_text(&call->out, call->rest);
    buf_text(&call->out, " next=");
    html_text(&call->out, site_address(call, "offset", STR("50")));
    buf_text(&call->out, " none=");
    html_text(&call->out, site_address(call, "offset", STR("")));
    buf_text(&call->out, "</p>\n");
    for (int i = 0; i < 100; i++)
        html_empty(&call->out, "The same sentence, again and again.");
    return 0;
}

static int show_refusal(struct site_call *call)
{
    uint64_t status = (uint64_t)strtoul(call->rest.p, NULL, 10);

    buf_text(&call->out, "what was written before");
    return site_refuse(call, (unsigned)status, "because of <%.*s>", STR_ARG(call->rest));
}

static int show_failure(struct site_call *call)
{
    return err_set(&call->err, str_eq(call->rest, STR("slow")) ? ETIMEDOUT : EIO,
                   "/secret/path is broken");
}

static int show_node(struct site_call *call)
{
    return site_not_found(call, "node", call->rest);
}

static int show_stored(struct site_call *call)
{
    html_text(&call->out, call->why_no_store);
    return 0;
}

static int make_numbers(struct site_call *call, const char **ret_type)
{
    if (!site_argument(call, "ok").n)
        return site_refuse(call, 404, "no <numbers>");
    *ret_type = "application/json";
    buf_text(&call->out, "{}");
    return 0;
}

static int show_large(struct site_call *call)
{
    while (call->out.n < 100000)
        buf_text(&call->out, "much and more and ");
    return 0;
}

static int show_gate(struct site_call *call)
{
    (void)call;
    sem_post(&gate_reached);
    sem_wait(&gate_opened);
    return 0;
}

static int show_too_much(struct site_call *call)
{
    while (!call->out.over)
        buf_text(&call->out, "much and more and ");
    return 0;
}

static const struct site_page
    page_words = { .path = "/words/*", .nav = "Words", .show = show_words },
    page_refusal = { .path = "/refusal/*", .show = show_refusal },
    page_failure = { .path = "/failure/*", .show = show_failure },
    page_node = { .path = "/node/*", .needs = SITE_BOARD, .show = show_node },
    page_store = { .path = "/store", .needs = SITE_STORE, .show = show_stored },
    page_may_store = { .path = "/maystore", .needs = SITE_MAY_STORE, .show = show_stored },
    page_numbers = { .path = "/api/v1/numbers", .make = make_numbers },
    page_image = { .path = "/image", .make = make_numbers },
    page_large = { .path = "/large", .show = show_large },
    page_gate = { .path = "/gate", .show = show_gate },
    page_too_much = { .path = "/much", .show = show_too_much };

/* In place of src/web/site_pages.c. */
const struct site_page *const site_pages[] = {
    &page_words,     &page_refusal, &page_failure, &page_node, &page_store,
    &page_may_store, &page_numbers, &page_image,   &page_gate, &page_large,
    &page_too_much,  &site_search,  NULL,
};

/* ---- a cluster, and the server ---- */

static struct board *take(void *ctx, int64_t deadline_ns, struct err *why)
{
    (void)ctx;
    (void)deadline_ns;
    if (why_no_board) {
        err_set(why, EAGAIN, "%s", why_no_board);
        return NULL;
    }
    return board_ref(board);
}

static struct section *make_config(unsigned hidden)
{
    struct section *section = section_new(KIND_CONFIG);

    section->config.hidden = hidden;
    return section;
}

static struct section *aged(struct section *section, int64_t seconds)
{
    section->wall_ns -= seconds * NS_PER_SEC;
    return section;
}

static void make_board(void)
{
    board = board_new(2, NOW);
    board->cluster[0].name = STR("beluga");
    board->cluster[0].section[KIND_NODES] = aged(nodes_from("partition long\n"
                                                            "c1 idle\n"
                                                            "c2 idle\n"
                                                            "gpu-node-17 idle\n"
                                                            "<b>n</b> idle\n"),
                                                 7);
    board->cluster[0].section[KIND_JOBS] = aged(jobs_from("RUNNING user=alice\n"), 9);
    board->cluster[1].name = STR("narval");
    board->cluster[1].section[KIND_NODES] = aged(nodes_from("partition long\nc1 idle\n"), 7);
    board->cluster[1].section[KIND_JOBS] = aged(jobs_from("RUNNING user=bob account=chem\n"), 9);
}

static int64_t wall_of_test(const struct clock *clock)
{
    (void)clock;
    return NOW * NS_PER_SEC;
}

static int64_t mono_of_test(const struct clock *clock)
{
    (void)clock;
    return clock_mono(&clock_real);
}

static const struct clock still_clock = { .wall_ns = wall_of_test, .mono_ns = mono_of_test };

static struct site_config plain_config(void)
{
    return (struct site_config){
        .boards = { take, NULL },
        .timeout_ns = TEST_DEADLINE,
        .clock = &still_clock,
        .log = log_file,
    };
}

static void start(const struct site_config *config)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    const struct http_config http = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 100,
        .workers = 2,
        .queue = 20,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 16384,
        .clock = &clock_real,
        .log = log_file,
    };

    if (site_new(config, &site, &err) < 0)
        fail_msg("%s", err.text);
    site_set_access(site, true, false);
    memset(routes, 0, sizeof(routes));
    assert_int_equal(site_routes(site, routes), COUNT(site_pages) - 1 + 2);
    if (http_start(&http, &server, &err) < 0)
        fail_msg("%s", err.text);
    client_open(&client, http_address(server, 0));
}

static void start_plain(void)
{
    struct site_config config = plain_config();

    board_sum(board);
    start(&config);
}

static void set_up(void)
{
    log_file = log_new(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG, &clock_real);
    why_no_board = NULL;
    make_board();
}

static void tear_down(void)
{
    if (server)
        client_close(&client);
    server = http_stop(server);
    site = site_free(site);
    board = board_unref(board);
    log_file = log_free(log_file);
}

FIXTURE(set_up, tear_down)

static bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        struct str text__ = (text);                                                                \
        if (!has(text__, part))                                                                    \
            fail_msg("\"%.*s\" does not have \"%s\"", STR_ARG(text__), part);                      \
    } while (0)

static struct str get_with(const char *path, const char *headers, unsigned status)
{
    struct reply reply = client_get_with(&client, path, headers);

    if (reply.status != status)
        fail_msg("%s: %u and not %u: %.*s", path, reply.status, status, STR_ARG(reply.body));
    return reply.body;
}

static struct str get(const char *path, unsigned status)
{
    return get_with(path, "", status);
}

/* ---- */

TEST(a_page_stands_in_its_frame)
{
    struct str page;

    start_plain();
    page = get("/words/a%20b?offset=10&user=x%26y&cluster=beluga", 200);
    assert_has(page, "<title>Words &lt;&amp;&gt; · sonde</title>");
    assert_has(page, "<a aria-current=\"page\" href=\"/words/*?cluster=beluga\">Words</a>");
    assert_has(page, "rest=a b ");
    assert_has(page, "next=/words/a%20b?user=x%26y&amp;cluster=beluga&amp;offset=50 ");
    assert_has(page, "none=/words/a%20b?user=x%26y&amp;cluster=beluga</p>");
    assert_has(page, "<option selected>beluga</option><option>narval</option>");
    assert_has(page, "<input type=\"hidden\" name=\"user\" value=\"x&amp;y\">");
    assert_has(page, "<span data-value=\"9\">9 s</span> old");
    assert_has(page, "href=\"/health\"");
    assert_false(has(page, "class=\"banner"));
}

TEST(no_page_may_run_or_load_what_is_not_its_own)
{
    static const char *const paths[] = { "/words/", "/refusal/404", "/none",
                                         "/image",  "/image?ok=1",  "/search?q=4711" };
    struct reply reply;

    start_plain();
    for (size_t i = 0; i < COUNT(paths); i++) {
        reply = client_get(&client, paths[i]);
        assert_str(reply_header(&reply, "Content-Security-Policy"),
                   "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                   "connect-src 'self'; style-src-attr 'unsafe-inline'; form-action 'self'; "
                   "base-uri 'none'; frame-ancestors 'none'");
        assert_str(reply_header(&reply, "Cache-Control"), "no-store");
        assert_str(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
        assert_str(reply_header(&reply, "Set-Cookie"), "");
    }
}

TEST(a_refusal_is_a_page_that_says_what_to_do)
{
    static const unsigned statuses[] = { 400, 403, 404, 503, 504 };

    start_plain();
    for (size_t i = 0; i < COUNT(statuses); i++) {
        char path[40], part[80];
        struct str page;

        snprintf(path, sizeof(path), "/refusal/%u", statuses[i]);
        snprintf(part, sizeof(part), "<p>Because of &lt;%u&gt;</p>", statuses[i]);
        page = get(path, statuses[i]);
        assert_has(page, part);
        assert_has(page, "</html>");
        assert_false(has(page, "what was written before"));
    }
}

TEST(a_path_that_nobody_has_is_a_page_too)
{
    start_plain();
    assert_has(get("/none/%3Cscript%3E", 404), "There is nothing at this address");
    assert_has(get("/", 404), "<form class=\"search\"");
}

TEST(what_is_no_page_is_refused_in_its_own_form)
{
    start_plain();
    assert_str(get("/api/v1/numbers", 404), "{\"error\":\"no <numbers>\"}\n");
    assert_str(get("/image", 404), "no <numbers>\n");
    assert_str(get("/api/v1/numbers?ok=1", 200), "{}");
}

TEST(why_something_failed_is_not_told_to_whoever_asks)
{
    start_plain();
    assert_false(has(get("/failure/broken", 503), "secret"));
    assert_has(get("/failure/slow", 504), "too long");
    assert_has(get("/much", 413), "too much");
}

TEST(without_a_board_only_what_needs_none_is_shown)
{
    why_no_board = "slurmctld does not answer";
    start_plain();
    assert_has(get("/node/c1", 503), "slurmctld does not answer");
    assert_has(get("/words/", 200), "No data from Slurm");
}

TEST(without_a_store_only_what_needs_none_is_shown)
{
    struct site_config config = plain_config();

    config.store = "sqlite:/nonexistent/sonde.db";
    start(&config);
    assert_has(get("/store", 503), "The store cannot be read");
    assert_has(get("/maystore", 200), "the store cannot be read");
    assert_false(has(get("/maystore", 200), "nonexistent"));
}

TEST(what_must_be_said_stands_on_every_page)
{
    board->cluster[0].is_simulated = true;
    board->cluster[0].section[KIND_CONFIG] = make_config(1u << PRIVATE_JOBS | 1u << PRIVATE_USAGE);
    board->cluster[1].trouble = STR("no answer");
    board->cluster[1].trouble_in_full = STR("no answer <since> 12:00");
    start_plain();
    assert_has(get("/words/?cluster=narval", 200), "Stale data.");
    assert_has(get("/words/", 200), "Simulated cluster.");
    assert_has(get("/words/", 200), "hides from sonde its jobs, usage.");
    assert_has(get("/words/", 200), "no answer &lt;since&gt; 12:00");
    assert_has(get("/refusal/404?cluster=beluga", 404), "Simulated cluster.");
    assert_false(has(get("/words/?cluster=narval", 200), "Simulated cluster."));
}

TEST(a_cluster_of_which_nothing_was_ever_read_has_no_stale_data)
{
    struct str page;

    board->cluster[1].trouble = board->cluster[1].trouble_in_full = STR("Cannot reach Slurm");
    board->cluster[1].is_empty = true;
    start_plain();
    page = get("/words/?cluster=narval", 200);
    assert_has(page, "<strong>No data yet.</strong> narval: Cannot reach Slurm</p>");
    assert_false(has(page, "Stale data."));
}

TEST(a_cluster_that_is_not_there_is_told_with_those_that_are)
{
    struct str page;

    start_plain();
    page = get("/words/?cluster=belugo", 404);
    assert_has(page, "There is no cluster belugo");
    assert_has(page, "<a href=\"/?cluster=beluga\">beluga</a>");
}

TEST(the_nearest_names_are_offered)
{
    struct str page;

    start_plain();
    page = get("/node/gpu-node-71", 404);
    assert_has(page, "There is no node gpu-node-71");
    assert_has(page, "<a href=\"/node/gpu-node-17?cluster=beluga\">gpu-node-17</a>");
    page = get("/node/%3Cb%3Em%3C%2Fb%3E", 404);
    assert_has(page, "&lt;b&gt;m&lt;/b&gt;");
    assert_has(page, "&lt;b&gt;n&lt;/b&gt;</a>");
}

static void assert_goes(const char *path, const char *to)
{
    struct reply reply = client_get(&client, path);

    assert_int_equal(reply.status, 303);
    assert_str(reply_header(&reply, "Location"), to);
}

TEST(search_leads_to_what_is_meant)
{
    start_plain();
    assert_goes("/search?q=4711", "/job/4711");
    assert_goes("/search?q=%204711_7%20", "/job/4711_7");
    assert_goes("/search?q=4711%2B1&cluster=beluga", "/job/4711%2B1?cluster=beluga");
    assert_goes("/search?q=beluga:4711", "/job/beluga%3A4711");
    assert_goes("/search?q=alice", "/user/alice?cluster=beluga");
    assert_goes("/search?q=chem", "/account/chem?cluster=narval");
    assert_goes("/search?q=c2", "/node/c2?cluster=beluga");
    assert_goes("/search?q=long", "/jobs?partition=long&cluster=beluga");
    assert_goes("/search?q=narval", "/?cluster=narval");
    assert_goes("/search?q=%3Cb%3En%3C/b%3E", "/node/%3Cb%3En%3C%2Fb%3E?cluster=beluga");
}

TEST(search_lists_what_has_a_part_of_the_name)
{
    struct str page;

    start_plain();
    page = get("/search?q=NODE-", 200);
    assert_has(page, "<h2>Nodes</h2>");
    assert_has(page, "<a href=\"/node/gpu-node-17?cluster=beluga\">gpu-node-17</a> "
                     "<small>beluga</small>");
    assert_has(get("/search?q=%3Cscript%3E", 200), "value=\"&lt;script&gt;\"");
    assert_has(get("/search?q=%3Cscript%3E", 200), "Nothing has such a name");
    assert_has(get("/search", 200), "Write a job&#39;s id");
}

static const struct str proxy = STR_INIT("127.0.0.1"), other = STR_INIT("192.0.2.1"),
                        header = STR_INIT("X-Remote-User");

static struct site_config proxy_config(const struct str *from)
{
    struct site_config config = plain_config();

    config.viewer = (struct viewer_config){
        .auth = VIEWER_PROXY, .header = header, .proxies = from, .n_proxies = 1
    };
    return config;
}

TEST(a_user_finds_no_names_of_others)
{
    struct site_config config = proxy_config(&proxy);
    struct str page;

    board_sum(board);
    start(&config);
    page = get_with("/search?q=b", "X-Remote-User: alice\r\n", 200);
    assert_false(has(page, "bob"));
    page = get_with("/search?q=lic", "X-Remote-User: alice\r\n", 200);
    assert_has(page, "<a href=\"/user/alice?cluster=beluga\">alice</a>");
    page = get_with("/search?q=bob", "X-Remote-User: alice\r\n", 200);
    assert_has(page, "Nothing has such a name");
    assert_has(page, "<p class=\"viewer\"><a href=\"/user/alice\">alice</a></p>");
}

TEST(a_proxys_word_from_an_unlisted_address_is_refused)
{
    struct site_config config = proxy_config(&other);
    struct str page;

    board_sum(board);
    start(&config);
    page = get_with("/words/", "X-Remote-User: alice\r\n", 403);
    assert_has(page, "none of its proxies");
    assert_false(has(page, "Words</h1>"));
    assert_false(has(page, "narval"));
    get_with("/api/v1/numbers?ok=1", "X-Remote-User: alice\r\n", 403);
}

static uint64_t count_requests(void)
{
    struct http_stats stats;

    http_stats(server, &stats);
    return stats.requests;
}

/* Of two workers a viewer gets one, of twenty places seven. */
TEST(who_asks_for_too_much_is_told_so_in_a_page_and_others_are_not)
{
    enum { SERVED = 8 };
    static struct client many[SERVED];
    struct site_config config = proxy_config(&proxy);
    struct reply reply;

    sem_init(&gate_reached, 0, 0);
    sem_init(&gate_opened, 0, 0);
    board_sum(board);
    start(&config);
    for (int i = 0; i < SERVED; i++) {
        client_open(&many[i], http_address(server, 0));
        client_send_text(&many[i], "GET /gate HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\n\r\n");
        if (i == 0)
            sem_wait(&gate_reached);
        wait_until_true(count_requests() == (uint64_t)i + 1);
    }
    reply = client_get_with(&client, "/gate", "X-Remote-User: alice\r\n");
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "5");
    assert_str(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
    assert_has(reply.body, "<p>Too much is asked for at once");
    reply = client_get_with(&client, "/api/v1/numbers?ok=1", "X-Remote-User: alice\r\n");
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Content-Type"), "application/json");
    get_with("/words/", "X-Remote-User: bob\r\n", 200);
    for (int i = 0; i < SERVED; i++)
        sem_post(&gate_opened);
    for (int i = 0; i < SERVED; i++) {
        assert_int_equal(client_read(&many[i], true).status, 200);
        client_close(&many[i]);
    }
    get_with("/words/", "X-Remote-User: alice\r\n", 200);
}

TEST(strangers_are_refused_until_they_may_look)
{
    static const struct str host = STR_INIT("portal.site");
    struct site_config config = plain_config();

    board_sum(board);
    config.hosts = &host;
    config.n_hosts = 1;
    start(&config);
    site_set_access(site, false, false);
    assert_has(get("/words/", 403), "not for everybody");
    site_set_access(site, true, true);
    client_send_text(&client, "GET /words/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_int_equal(client_read(&client, true).status, 421);
    client_send_text(&client, "GET /words/ HTTP/1.1\r\nHost: portal.site:8080\r\n\r\n");
    assert_int_equal(client_read(&client, true).status, 200);
    client_send_text(&client, "GET /words/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(client_read(&client, true).status, 200);
}

static size_t unpack(struct str packed, char *to, size_t room)
{
    z_stream stream = { .next_in = (unsigned char *)packed.p,
                        .avail_in = (unsigned)packed.n,
                        .next_out = (unsigned char *)to,
                        .avail_out = (unsigned)room };

    assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    return stream.total_out;
}

TEST(a_page_is_packed_for_who_takes_it)
{
    static char plain[100000];
    struct reply reply;
    size_t n;

    start_plain();
    reply = client_get_with(&client, "/words/", "Accept-Encoding: gzip, br\r\n");
    assert_str(reply_header(&reply, "Content-Encoding"), "gzip");
    assert_str(reply_header(&reply, "Vary"), "Accept-Encoding");
    n = unpack(reply.body, plain, sizeof(plain));
    assert_true(reply.body.n < n / 2);
    reply = client_get(&client, "/words/");
    assert_str(reply_header(&reply, "Content-Encoding"), "");
    assert_true(str_eq(reply.body, (struct str){ plain, n }));
    reply = client_get_with(&client, "/image?ok=1", "Accept-Encoding: gzip\r\n");
    assert_str(reply_header(&reply, "Content-Encoding"), "");
}

TEST(answers_that_nobody_reads_keep_large_ones_away_and_no_others)
{
    start_plain();
    get_with("/large", "", 200);
    atomic_fetch_add(&site->sending_bytes, 1 << 30);
    get_with("/large", "", 503);
    get_with("/words/", "", 200);
    atomic_fetch_sub(&site->sending_bytes, 1 << 30);
    get_with("/large", "", 200);
}

TEST(a_file_is_kept_for_good_under_its_name)
{
    static char plain[300000];
    char ask[200];
    struct reply reply;

    start_plain();
    for (size_t i = 0; i < ASSETS; i++) {
        const char *address = asset_address((enum asset)i);
        size_t n;

        if (!address)
            continue;
        reply = client_get_with(&client, address, "Accept-Encoding: gzip\r\n");
        assert_int_equal(reply.status, 200);
        assert_str(reply_header(&reply, "Cache-Control"), "public, max-age=31536000, immutable");
        assert_str(reply_header(&reply, "Content-Encoding"), "gzip");
        snprintf(ask, sizeof(ask), "If-None-Match: %.*s\r\n",
                 STR_ARG(reply_header(&reply, "ETag")));
        n = unpack(reply.body, plain, sizeof(plain));
        assert_int_equal(client_get_with(&client, address, ask).status, 304);
        reply = client_get(&client, address);
        assert_str(reply_header(&reply, "Content-Encoding"), "");
        assert_true(str_eq(reply.body, (struct str){ plain, n }));
    }
    assert_int_equal(client_get(&client, "/static/sonde-0000000000.css").status, 404);
    assert_int_equal(client_get(&client, "/static/../site.c").status, 404);
}

TEST(a_page_names_the_files_that_there_are)
{
    struct str page;

    start_plain();
    page = get("/words/", 200);
    assert_has(page, asset_address(ASSET_STYLE));
    assert_has(page, asset_address(ASSET_SCRIPT));
    assert_has(page, asset_address(ASSET_ICON));
}
