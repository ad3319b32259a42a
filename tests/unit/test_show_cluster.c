/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages of clusters over the real server, of a cluster that is made for this: three nodes, of
 * which one is broken, and three jobs of two users. */
#include "store_fixture.h"

#include "http_client.h"
#include "sections.h"

#include "source/sim.h"
#include "store/ticks.h"
#include "web/cluster_pages.h"
#include "web/health_facts.h"
#include "web/site_inside.h"

#include <math.h>

enum { NOW = 1790000000 };

int64_t sections_now = NOW;

#define STAFF "X-Remote-User: boss\r\n"
#define ALICE "X-Remote-User: alice\r\n"
#define CAROL "X-Remote-User: carol\r\n"

static struct board *board;
static struct site *site;
static struct http_route routes[SITE_ROUTES + 1];
static struct http_server *server;
static struct log *log_file;
static struct client client;
static const char *health;
static const char *series_path, *allocations_path; /* NULL: there is none */
static struct err err;

/* In place of src/web/site_pages.c. */
const struct site_page *const site_pages[] = {
    &show_overview,     &show_nodes,      &show_node,        &show_partitions,
    &show_reservations, &show_clusters,   &show_allocations, &show_health,
    &show_trend_chart,  &show_trend_data, &site_search,      NULL,
};

static const char *const pages[] = {
    "/",
    "/nodes",
    "/nodes?view=table",
    "/nodes?colour=load",
    "/nodes?colour=gpu",
    "/node/n1",
    "/node/n2",
    "/partitions",
    "/reservations",
    "/clusters",
    "/allocations",
    "/health",
};

/* ---- the cluster ---- */

static symbol add(struct section *section, const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static struct section *make_nodes(void)
{
    return nodes_from(
        "partition long default=yes time_limit=1440\n"
        "partition q\"&<b> up=no\n"
        "* partitions=long cpu_load=0.5 memory=256G memory_alloc=0 memory_free=256G\n"
        "n1 mixed cpus=32/32/0/64 cpu_load=48 memory_alloc=64G gres=gpu:a100:4,tpu:v4:8,nic:2 "
        "gres_used=gpu:a100:1,tpu:v4:3,nic:0 features=avx,ib\n"
        "n2 idle+drain cpus=0/0/64/64 reason='<script>bad</script> disk' reason_user=adminbert "
        "reason_time=-1h\n"
        "n3 idle cpus=0/64/0/64\n");
}

/* Defaults for the lines that follow. */
#define JOBS "* name=jobname partition=long qos= cpus=16 memory=32G submit=-1000s eligible=-1000s\n"

static struct section *make_jobs(void)
{
    return jobs_from(JOBS "RUNNING id=101 user=alice account=physics nodes=n1 start=-500s\n"
                          "RUNNING id=102 user=bobby account=chemistry nodes=n1 start=-500s\n"
                          "PENDING id=103 user=bobby account=chemistry reason=Priority\n");
}

static struct section *make_reservations(void)
{
    return reservations_from("course nodes=n[1-2] users=alice,bobby accounts=-chemistry "
                             "node_count=2 active=yes start=-60s end=+60s\n");
}

static struct section *make_allocations(void)
{
    static const char *const accounts[] = { "physics", "chemistry" };
    const double year = (double)ALLOCATION_YEAR_SECONDS;
    struct section *section = section_new(KIND_ALLOCATIONS);

    section->allocations.row = ARENA_ARRAY(&section->arena, struct allocation, 2);
    section->allocations.n = 2;
    section->allocations.now = NOW;
    for (size_t i = 0; i < 2; i++)
        section->allocations.row[i] = (struct allocation){
            .account = add(section, accounts[i]),
            .from = NOW - ALLOCATION_YEAR_SECONDS / 2,
            .to = NOW + ALLOCATION_YEAR_SECONDS / 2,
            .seconds = { 20 * year, NAN },
            .used = { i ? 25 * year : 5 * year, NAN },
            .rate = { i ? 30 : 10, NAN },
            .storage_bytes = NAN,
            .students = NAN,
        };
    return section;
}

/* As an operator is told it, from whom nothing is hidden. */
static struct section *make_config(unsigned private)
{
    struct section *section = section_new(KIND_CONFIG);

    section->config.version = add(section, "24.11.5");
    section->config.private = private;
    return section;
}

static void make_board(void)
{
    struct board_cluster *cluster;

    board = board_new(1, NOW);
    cluster = board->cluster;
    cluster->name = STR("beluga");
    cluster->section[KIND_NODES] = make_nodes();
    cluster->section[KIND_JOBS] = make_jobs();
    cluster->section[KIND_RESERVATIONS] = make_reservations();
    cluster->section[KIND_ALLOCATIONS] = make_allocations();
    cluster->section[KIND_CONFIG] = make_config(0);
}

static void tell_config(unsigned private)
{
    section_unref(board->cluster->section[KIND_CONFIG]);
    board->cluster->section[KIND_CONFIG] = make_config(private);
}

static void withdraw(enum kind kind)
{
    section_unref(board->cluster->section[kind]);
    board->cluster->section[kind] = NULL;
}

/* ---- the server ---- */

static struct board *take(void *ctx, int64_t deadline_ns, struct err *why)
{
    (void)ctx, (void)deadline_ns, (void)why;
    return board_ref(board);
}

static struct str tell_health(void *ctx, struct arena *arena)
{
    (void)ctx;
    return arena_str(arena, str_of(health));
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

static void start(void)
{
    static const struct clock still_clock = { .wall_ns = wall_of_test, .mono_ns = mono_of_test };
    static const struct str listen = STR_INIT("127.0.0.1:0"), proxy = STR_INIT("127.0.0.1"),
                            staff = STR_INIT("boss"), coordinator = STR_INIT("physics:carol");
    const struct site_config config = {
        .boards = { take, NULL },
        .viewer = { VIEWER_PROXY, STR("X-Remote-User"), &proxy, 1, &staff, 1, &coordinator, 1 },
        .health = health ? tell_health : NULL,
        .store = fixture.store ? fixture.path : NULL,
        .series_path = series_path,
        .allocations_file = allocations_path,
        .timeout_ns = TEST_DEADLINE,
        .clock = &still_clock,
        .log = log_file,
    };
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

    board_sum(board);
    if (site_new(&config, &site, &err) < 0)
        fail_msg("%s", err.text);
    site_set_access(site, true, false);
    memset(routes, 0, sizeof(routes));
    site_routes(site, routes);
    if (http_start(&http, &server, &err) < 0)
        fail_msg("%s", err.text);
    client_open(&client, http_address(server, 0));
}

static void set_up(void)
{
    log_file = log_new(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG, &clock_real);
    health = NULL;
    fixture_begin();
    series_path = allocations_path = NULL;
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
    fixture_end();
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

#define assert_lacks(text, part)                                                                   \
    do {                                                                                           \
        struct str text__ = (text);                                                                \
        if (has(text__, part))                                                                     \
            fail_msg("\"%.*s\" has \"%s\"", STR_ARG(text__), part);                                \
    } while (0)

/* What stands in <main>: the frame around it is another's. */
static struct str get(const char *path, const char *who, unsigned status)
{
    struct reply reply = client_get_with(&client, path, who);
    size_t begin = str_find_str(reply.body, STR("<main"));
    struct str rest = str_skip(reply.body, begin);

    if (reply.status != status)
        fail_msg("%s: %u and not %u: %.*s", path, reply.status, status, STR_ARG(reply.body));
    return begin < reply.body.n ? str_head(rest, str_find_str(rest, STR("</main>"))) : reply.body;
}

/* ---- */

/* Whether a link is open there. */
static bool is_in_link(struct str page, size_t at)
{
    struct str before = str_head(page, at);
    size_t begin = 0, end = 0;

    for (size_t i = 0; i < before.n; i++) {
        struct str rest = str_skip(before, i);

        begin = str_starts(rest, STR("<a ")) ? i + 1 : begin;
        end = str_starts(rest, STR("</a>")) ? i + 1 : end;
    }
    return begin > end;
}

/* Those that begin so, but for 0; returns how many there are. */
static size_t assert_linked(struct str page, struct str begin)
{
    size_t n = 0;

    for (size_t i = 0; i < page.n; i++) {
        struct str here = str_skip(page, i);

        if (!str_starts(here, begin) || str_starts(str_skip(here, begin.n), STR("0")))
            continue;
        n++;
        if (!is_in_link(page, i))
            fail_msg("no link: %.*s", STR_ARG(str_head(here, 100)));
    }
    return n;
}

TEST(every_number_of_the_overview_links_to_what_it_is_made_of)
{
    struct str page;

    start();
    page = get("/", STAFF, 200);
    assert_true(assert_linked(page, STR("<b>")) >= 12);
    assert_true(assert_linked(page, STR("<span data-value=\"")) >= 20);
    assert_has(page, "<a href=\"/nodes?view=table&amp;sort=-cpus\">CPUs <b>192</b></a>");
    assert_has(page, "<a href=\"/jobs?state=RUNNING%2CSUSPENDED%2CCOMPLETING%2CCONFIGURING%2C"
                     "RESIZING%2CSIGNALING%2CSTOPPED&amp;sort=-cpus\">"
                     "allocated <b>32</b></a>");
    assert_has(page, "<a href=\"/nodes?state=free&amp;view=table&amp;sort=-cpus\">idle <b>96</b>");
    assert_has(page, "<a href=\"/nodes?state=unusable&amp;view=table&amp;sort=-cpus\">unusable "
                     "<b>64</b></a>");
    assert_has(page,
               "<a href=\"/nodes?gpu=a100&amp;view=table&amp;sort=-gpus\">GPUs a100 <b>4</b>");
    assert_has(page,
               "<a href=\"/nodes?gpu=a100&amp;view=table&amp;sort=-gpus\">allocated <b>1</b>");
    assert_has(page,
               "<a href=\"/nodes?state=free-gpus&amp;gpu=a100&amp;view=table&amp;sort=-gpus\">"
               "idle <b>3</b></a>");
    assert_has(page, "<a href=\"/nodes?state=free-memory&amp;view=table&amp;sort=-memory\">idle ");
    assert_has(page, "<a href=\"/nodes?state=drained\">drained <b>1</b></a>");
    assert_has(page, "<a href=\"/jobs?state=PENDING\">PENDING</a>");
    assert_has(page, "<a href=\"/jobs?state=PENDING&amp;reason=Priority\">Priority</a>");
    assert_has(page, "<a href=\"/jobs?state=PENDING&amp;reason=Priority&amp;sort=-memory\">"
                     "<span data-value=\"34359738368\">32 GiB</span></a>");
    assert_has(page, "<a href=\"/jobs?user=bobby&amp;state=PENDING\"><span data-value=\"1\">");
    assert_has(page, "<figure class=\"chart\" data-goes-on>");
    assert_has(page, "<img src=\"/chart/cpus.svg?cluster=beluga&amp;hours=6\" "
                     "data-series=\"/api/v1/trends/cpus?cluster=beluga&amp;hours=6\"");
}

TEST(what_is_stranded_leads_to_the_nodes_where_it_is)
{
    struct node *node = board->cluster->section[KIND_NODES]->nodes.node;

    node[0].cpus_alloc = 64;
    node[0].cpus_idle = 0;
    start();
    assert_has(get("/", STAFF, 200), "<a href=\"/nodes?state=stranded-gpus&amp;view=table\">"
                                     "<span data-value=\"3\">3</span></a> GPUs are free, but");
    assert_has(get("/nodes?state=stranded-gpus", STAFF, 200), "href=\"/node/n1\"");
    assert_lacks(get("/nodes?state=stranded-gpus", STAFF, 200), "href=\"/node/n3\"");
    assert_lacks(get("/nodes?state=stranded-cpus", STAFF, 200), "href=\"/node/n1\"");
}

/* As many jobs as users, all of which run. */
static void have_users(uint32_t n)
{
    struct section *section = section_new(KIND_JOBS);

    for (uint32_t i = 0; i < n; i++)
        section_add(section, JOBS "RUNNING id=%u user=someone%u nodes=n1 start=-500s\n", 1000 + i,
                    i);
    section_unref(board->cluster->section[KIND_JOBS]);
    board->cluster->section[KIND_JOBS] = section;
}

static size_t count(struct str page, const char *part)
{
    size_t n = 0;

    for (size_t at; (at = str_find_str(page, str_of(part))) < page.n; n++)
        page = str_skip(page, at + strlen(part));
    return n;
}

TEST(a_long_list_is_cut_and_leads_to_all_of_it)
{
    struct str page;

    have_users(300);
    start();
    page = get("/", STAFF, 200);
    assert_int_equal(count(page, "href=\"/user/someone"), 10);
    assert_has(page, "<a href=\"/?full=users#full\">All 300 users</a>");
    assert_lacks(page, "id=\"full\"");
    page = get("/?full=users", STAFF, 200);
    assert_int_equal(count(page, "href=\"/user/someone"), 200);
    assert_int_equal(count(page, "id=\"full\""), 1);
    assert_has(page, "The first 200 of 300 users");
    page = get("/node/n1", STAFF, 200);
    assert_int_equal(count(page, "href=\"/user/someone"), 20);
    assert_has(page,
               "<a href=\"/jobs?node=n1&amp;state=RUNNING%2CSUSPENDED%2CCOMPLETING%2CCONFIGURING%2C"
               "RESIZING%2CSIGNALING%2CSTOPPED\">"
               "All 300 jobs that run there</a>");
    assert_lacks(get("/?full=users", ALICE, 200), "someone");
}

TEST(what_is_broken_is_told_with_its_reason)
{
    struct str page;

    start();
    page = get("/", STAFF, 200);
    assert_has(page, "<a href=\"/node/n2\">n2</a>");
    assert_has(page, "&lt;script&gt;bad&lt;/script&gt; disk");
    assert_has(page, "adminbert");
    assert_has(page, "<a href=\"/user/bobby\">bobby</a>");
    assert_has(page, "<a href=\"/account/physics\">physics</a>");
}

TEST(nobody_sees_names_of_others_on_any_page)
{
    static const char *const hidden[] = { "bobby", "chemistry", "adminbert", "102", "103" };

    start();
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct str page = get(pages[i], ALICE, 200);

        for (size_t k = 0; k < COUNT(hidden); k++)
            if (has(page, hidden[k]))
                fail_msg("%s: alice sees %s: %.*s", pages[i], hidden[k], STR_ARG(page));
    }
    assert_lacks(get("/allocations", ALICE, 200), "physics"); /* whose it is, but not hers to see */
    assert_has(get("/", ALICE, 200), "disk");
    assert_has(get("/", ALICE, 200), "<a href=\"/user/alice\">alice</a>");
}

TEST(a_text_is_never_markup_on_any_page)
{
    start();
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct str page = get(pages[i], STAFF, 200);

        assert_lacks(page, "<script");
        assert_lacks(page, "<b>\"");
        assert_lacks(page, "q\"&");
    }
    assert_has(get("/partitions", STAFF, 200),
               "<a href=\"/nodes?partition=q%22%26%3Cb%3E\">q&quot;&amp;&lt;b&gt;</a>");
}

TEST(a_coordinator_sees_their_account)
{
    struct str page;

    start();
    assert_has(get("/", CAROL, 200), "physics");
    assert_lacks(get("/", CAROL, 200), "chemistry");
    page = get("/allocations", CAROL, 200);
    assert_has(page, "<a href=\"/account/physics\">physics</a>");
    assert_lacks(page, "chemistry");
}

TEST(nodes_are_found_by_the_words_that_the_overview_counts)
{
    static const struct {
        const char *query, *nodes;
    } cases[] = {
        { "state=idle", "3" },
        { "state=drained", "2" },
        { "state=drain", "2" },
        { "state=IDLE", "3" },
        { "state=free", "13" },
        { "state=unusable", "2" },
        { "state=mixed", "1" },
        { "feature=ib", "1" },
        { "feature=i", "" },
        { "text=DISK", "2" },
        { "text=n", "123" },
        { "partition=long", "123" },
        { "partition=other", "" },
        { "reservation=x", "" },
        { "state=drain&text=n3", "" },
        { "state=nonsense", "" },
        { "name=n%5B2-3%5D", "23" },
        { "name=n1,n7", "1" },
        { "gpu=a100", "1" },
        { "gpu=h100", "" },
        { "gpu=h100,a100", "1" },
        { "gpu=any", "1" },
        { "state=free-gpus", "1" },
        { "state=free-memory", "13" },
        { "state=free-gpus&gpu=h100", "" },
    };

    start();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[100], link[40];
        struct str page;

        snprintf(path, sizeof(path), "/nodes?%s", cases[i].query);
        page = get(path, STAFF, 200);
        for (char node = '1'; node <= '3'; node++) {
            snprintf(link, sizeof(link), "href=\"/node/n%c\"", node);
            if (has(page, link) != (strchr(cases[i].nodes, node) != NULL))
                fail_msg("%s: %s", path, link);
        }
    }
    assert_has(get("/nodes?feature=i", STAFF, 200), "No node is like this");
}

TEST(cells_are_coloured_by_what_is_asked_for)
{
    struct str page;

    start();
    page = get("/nodes", STAFF, 200);
    assert_has(page, "<a class=\"mixed\" href=\"/node/n1\" title=\"mixed\">n1</a>");
    assert_has(page, "<a class=\"drain\" href=\"/node/n2\" title=\"drained\">n2</a>");
    page = get("/nodes?colour=load", STAFF, 200);
    assert_has(page, "<a class=\"r4\" href=\"/node/n1\" title=\"mixed 75 %\">n1</a>");
    page = get("/nodes?colour=gpu", STAFF, 200);
    assert_has(page, "<a class=\"r2\" href=\"/node/n1\" title=\"mixed 25 %\">n1</a>");
    assert_has(page, "<a class=\"unknown\" href=\"/node/n3\" title=\"idle\">n3</a>");
    assert_has(page, "<i class=\"unknown\"></i>no GPUs</li>");
    page = get("/nodes?colour=memory", STAFF, 200);
    assert_has(page, "<a class=\"r0\" href=\"/node/n3\" title=\"idle 0 %\">n3</a>");
}

/* The nodes in the order in which they stand. */
static void assert_order(const char *path, const char *expected)
{
    struct str page = get(path, STAFF, 200);
    char order[4] = "";
    size_t n = 0;

    for (size_t at; n < 3 && (at = str_find_str(page, STR("href=\"/node/n"))) < page.n; n++) {
        order[n] = page.p[at + 13];
        page = str_skip(page, at + 13);
    }
    assert_string_equal(order, expected);
}

TEST(the_table_sorts_and_what_is_unknown_comes_last)
{
    start();
    assert_order("/nodes?view=table", "123");
    assert_order("/nodes?view=table&sort=-node", "321");
    assert_order("/nodes?view=table&sort=-cpus", "123");
    assert_order("/nodes?view=table&sort=-load", "123");
    assert_order("/nodes?view=table&sort=load", "231");
    assert_order("/nodes?view=table&sort=state", "231");
    assert_order("/nodes?view=table&sort=-gpus", "123");
    assert_order("/nodes?view=table&sort=gpus", "123");
    assert_order("/nodes?view=table&sort=since", "213");
    assert_order("/nodes?view=table&sort=nonsense", "123");
    get("/nodes?view=table&offset=3", STAFF, 404);
    get("/nodes?view=table&offset=x", STAFF, 400);
    get("/nodes?name=n%5B1", STAFF, 400);
    get("/nodes?name=n%5B0-99999999%5D", STAFF, 400);
}

TEST(a_node_says_how_it_is_and_what_runs_there)
{
    struct str page;

    start();
    page = get("/node/n1", STAFF, 200);
    assert_has(page, "<h1>n1</h1>");
    assert_has(page, "takes jobs");
    assert_has(page, "32 of 64");
    assert_has(page, "64 GiB of 256 GiB");
    assert_has(page, "GPUs allocated, a100");
    assert_has(page, "<dt>tpu allocated, v4</dt>");
    assert_has(page, "3 of 8");
    assert_has(page, "<dt>nic allocated</dt>");
    assert_has(page, "/chart/node_cpus.svg?cluster=beluga&amp;node=n1&amp;hours=24");
    assert_has(page, "101");
    assert_has(page, "102");
    assert_lacks(page, "of others");
    page = get("/node/n1", ALICE, 200);
    assert_has(page, "101");
    assert_has(page, "1 job of others runs there too");
    page = get("/node/n2", STAFF, 200);
    assert_has(page, "takes no jobs");
    assert_has(page, "No job runs there.");
    get("/node/n9", STAFF, 404);
}

/* As of a node that does not respond: its CPUs are known, its load is not. */
TEST(an_unknown_load_is_not_shown_as_all_cpus)
{
    struct node *node = &board->cluster->section[KIND_NODES]->nodes.node[2];

    node->cpu_load = NAN;
    start();
    assert_has(get("/node/n3", STAFF, 200), "<dt>Load</dt><dd><span class=\"meter\">unknown of 64");
    assert_has(get("/node/n1", STAFF, 200), "48 of 64");
}

TEST(private_nodes_are_for_staff)
{
    static const char *const paths[] = { "/", "/nodes", "/nodes?view=table" };

    tell_config(1u << PRIVATE_NODES);
    start();
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_lacks(get(paths[i], ALICE, 200), "/node/n");
        assert_has(get(paths[i], ALICE, 200), "rivate");
        assert_has(get(paths[i], STAFF, 200), "/node/n");
    }
    assert_lacks(get("/reservations", ALICE, 200), "n[1-2]");
    assert_lacks(get("/reservations", ALICE, 200), "n%5B1-2%5D");
    assert_has(get("/reservations", STAFF, 200), "n[1-2]");
    get("/node/n1", ALICE, 403);
    get("/node/n9", ALICE, 403);
    get("/node/n1", STAFF, 200);
    get("/chart/node_cpus.svg?node=n1", ALICE, 403);
    get("/api/v1/trends/node_cpus?node=n1", ALICE, 403);
}

TEST(private_partitions_and_reservations_are_for_staff)
{
    tell_config(1u << PRIVATE_PARTITIONS | 1u << PRIVATE_RESERVATIONS);
    start();
    assert_lacks(get("/partitions", ALICE, 200), "long");
    assert_has(get("/partitions", STAFF, 200), "long");
    assert_lacks(get("/reservations", ALICE, 200), "course");
    assert_has(get("/reservations", STAFF, 200), "course");
    /* … nor does a node tell of them, or how many nodes are left when they are asked for. */
    assert_lacks(get("/node/n1", ALICE, 200), "/nodes?partition=long");
    assert_lacks(get("/node/n1", ALICE, 200), "course");
    assert_has(get("/node/n1", STAFF, 200), "/nodes?partition=long");
    assert_lacks(get("/nodes?partition=long", ALICE, 200), "/node/n");
    assert_has(get("/nodes?partition=long", STAFF, 200), "/node/n");
    assert_lacks(get("/nodes?reservation=course", ALICE, 200), "/node/n");
}

TEST(what_may_be_private_is_not_shown_until_that_is_known)
{
    withdraw(KIND_CONFIG);
    start();
    get("/node/n1", ALICE, 403);
    get("/node/n1", STAFF, 200);
    assert_has(get("/nodes", ALICE, 200), "until Slurm has told whether they are private");
    assert_lacks(get("/partitions", ALICE, 200), "long");
    assert_lacks(get("/reservations", ALICE, 200), "course");
}

TEST(of_what_nobody_has_told_nothing_is_said)
{
    withdraw(KIND_JOBS);
    start();
    assert_has(get("/node/n1", STAFF, 200), "What runs there is not known");
    assert_lacks(get("/node/n1", STAFF, 200), "No job runs there");
    withdraw(KIND_NODES);
    assert_lacks(get("/", STAFF, 200), "every node takes jobs");
}

TEST(why_slurm_does_not_answer_is_for_staff)
{
    board->cluster->trouble = STR("Cannot reach Slurm");
    board->cluster->trouble_in_full = STR("Cannot reach Slurm: ctl1.secret.example is away");
    start();
    assert_has(get("/health", ALICE, 200), "Cannot reach Slurm");
    assert_lacks(get("/health", ALICE, 200), "ctl1.secret");
    assert_has(get("/health", STAFF, 200), "ctl1.secret");
    assert_has(get("/clusters", STAFF, 200), "Cannot reach Slurm");
    assert_lacks(get("/clusters", STAFF, 200), "ctl1.secret"); /* a cell has no room for it */
}

TEST(a_partition_says_what_it_has)
{
    struct str page;

    start();
    page = get("/partitions", STAFF, 200);
    assert_has(page, "up, default");
    assert_has(page, "<a href=\"/nodes?partition=long\"><span data-value=\"3\">3</span></a>");
    assert_has(page,
               "<a href=\"/nodes?partition=long&amp;state=unusable\"><span data-value=\"1\">");
    assert_has(page, "<a href=\"/jobs?partition=long&amp;state=PENDING\"><span data-value=\"1\">");
    assert_has(page, "unlimited");
}

TEST(a_reservation_says_for_whom)
{
    struct str page;

    start();
    page = get("/reservations", STAFF, 200);
    assert_has(page, "<a href=\"/jobs?reservation=course\">course</a>");
    assert_has(page, "<a href=\"/nodes?name=n%5B1-2%5D\">");
    assert_has(page, "<a href=\"/user/alice\">alice</a>, <a href=\"/user/bobby\">bobby</a>, "
                     "not <a href=\"/account/chemistry\">chemistry</a>");
    page = get("/reservations", ALICE, 200);
    assert_has(page, "<a href=\"/user/alice\">alice</a>, 2 that you may not see");
}

TEST(an_allocation_says_what_is_left_and_when_it_runs_out)
{
    struct str page;

    start();
    page = get("/allocations", STAFF, 200);
    assert_has(page, "40 CPUs are promised at all times; of late 40 were in use");
    assert_has(page, "> 5 (25 %)<");
    assert_has(page, "not before its end");
    assert_has(page, "> 25 (125 %)<");
    assert_has(page, "nothing is left");
    page = get("/allocations", ALICE, 200);
    assert_has(page, "40 CPUs are promised");
    assert_has(page, "None of these accounts is yours to see.");
}

TEST(without_anybody_who_knows_a_page_says_so)
{
    for (enum kind i = 0; i < KINDS; i++)
        board->cluster->section[i] = section_unref(board->cluster->section[i]);
    start();
    assert_has(get("/", STAFF, 200), "Nothing is known of the nodes");
    assert_has(get("/", STAFF, 200), "Nothing is known of the queue");
    assert_has(get("/nodes", STAFF, 200), "Nothing is known of the nodes");
    assert_has(get("/partitions", STAFF, 200), "Nothing is known of the partitions");
    assert_has(get("/reservations", STAFF, 200), "Nothing is known of reservations");
    assert_has(get("/allocations", STAFF, 200), "--allocations.file");
    assert_has(get("/clusters", STAFF, 200), "no data");
    get("/health", STAFF, 200);
    get("/node/n1", STAFF, 404);
}

TEST(what_sonde_says_of_itself_is_for_staff)
{
    struct str page;

    health = "{\"facts\":{\"uptime_seconds\":90,\"store\":{\"path\":\"/x/<i>\",\"size_bytes\":2048,"
             "\"is_open\":true,\"lost\":null}},\"stages\":[{\"name\":\"render <b>\","
             "\"seconds\":[0.25,0.001,0.002]}],\"more\":[{}]}";
    start();
    page = get("/health", STAFF, 200);
    assert_has(page, "<dt>uptime</dt><dd><span data-value=\"90\">00:01:30</span></dd>");
    assert_has(page, "<h3>store</h3>");
    assert_has(page, "<dd>/x/&lt;i&gt;</dd>");
    assert_has(page, "2 KiB");
    assert_has(page, "<dt>is open</dt><dd>yes</dd>");
    assert_lacks(page, "lost");
    assert_has(page, "<h3>render &lt;b&gt;</h3>");
    assert_has(page, "last 2 ms, usually 2 ms, at most 250 ms");
    page = get("/health", ALICE, 200);
    assert_lacks(page, "uptime");
    assert_lacks(page, "render");
    assert_has(page, "jobs");
}

TEST(facts_that_are_no_json_are_told_so)
{
    static const char *const documents[] = {
        "", "[]", "{\"stages\":[", "{\"facts\":{\"a\":1}} x", "{\"stages\":[{\"seconds\":[1,2]", "7"
    };
    struct health_facts facts;
    struct arena arena = { 0 };

    for (size_t i = 0; i < COUNT(documents); i++) {
        err.text[0] = '\0';
        if (health_facts_read(str_of(documents[i]), &arena, &facts, &err) == 0)
            fail_msg("%s was read", documents[i]);
        assert_true(err.text[0] != '\0');
    }
    health = documents[2];
    start();
    get("/health", STAFF, 200);
    arena_clear(&arena);
}

TEST(odd_health_facts_are_passed_over)
{
    static const char document[] =
        "{\"stages\":[1,{\"name\":[],\"seconds\":{\"a\":1}},{\"seconds\":[-1,\"x\",[2],3,1e999]}],"
        "\"facts\":{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":1}}}},\"f\":[1,2],\"g\":2}}";
    struct health_facts facts;
    struct arena arena = { 0 };

    assert_int_equal(health_facts_read(str_of(document), &arena, &facts, &err), 0);
    assert_int_equal(facts.n_stages, 2);
    assert_int_equal(facts.stage[1].n, 1);
    assert_true(facts.stage[1].second[0] == 3);
    assert_int_equal(facts.n_facts, 1);
    assert_str(facts.fact[0].name, "g");
    arena_clear(&arena);
}

TEST(a_chart_without_data_says_so_and_its_data_is_refused)
{
    struct reply reply;

    start();
    reply = client_get_with(&client, "/chart/cpus.svg?cluster=beluga", STAFF);
    assert_int_equal(reply.status, 200);
    assert_str(reply_header(&reply, "Content-Type"), "image/svg+xml");
    assert_has(reply.body, "no data: nothing keeps numbers over time here");
    assert_has(get("/api/v1/trends/cpus", STAFF, 200), "\"points\":[]");
    get("/chart/nonsense.svg", STAFF, 404);
    get("/chart/cpus.svg?hours=0", STAFF, 400);
    get("/chart/cpus.svg?hours=x", STAFF, 400);
    get("/chart/cpus.svg?hours=99999999999999999999", STAFF, 400);
    get("/chart/node_cpus.svg?node=n9", STAFF, 404);
}

/* Ten minutes of 32 allocated CPUs, a tick every minute. */
static void put_series(void)
{
    struct ticks_config config = { .path = test_path("series.db"), .retention_seconds = 86400 };
    struct ticks_writer *writer;

    series_path = config.path;
    OK(ticks_open(&config, &writer, &fixture.err));
    for (int64_t time = NOW - 600; time <= NOW; time += 60)
        OK(ticks_put(writer, time,
                     &(struct tick_sample){ STR("cluster/beluga/cpus/allocated"), 32 }, 1,
                     &fixture.err));
    ticks_close(writer);
}

TEST(a_chart_has_what_was_kept_and_what_was_promised)
{
    struct str data;

    put_series();
    start();
    data = get("/chart/cpus.svg?hours=1", ALICE, 200);
    assert_has(data, "<svg ");
    assert_has(data, "promised: 40");
    assert_has(data, "@media screen and (prefers-color-scheme:dark){");
    assert_lacks(data, "no data");
    assert_has(data, " viewBox=\"0 0 510 180\"");
    assert_has(get("/chart/cpus.svg?hours=1&narrow=1", ALICE, 200), " viewBox=\"0 0 285 180\"");
    data = get("/api/v1/trends/cpus?hours=1", ALICE, 200);
    assert_has(data, "{\"title\":\"CPUs\",\"unit\":\"number\","
                     "\"labels\":[\"time\",\"allocated\",\"promised: 40\"],\"colours\":[1,0],");
    assert_has(data, "[1789999980,32,40]");
    assert_has(data, ",null,40]");
    assert_has(get("/chart/memory.svg", ALICE, 200), "no data: none was kept of this time");
}

TEST(why_there_is_no_chart_is_for_staff)
{
    series_path = test_path("none.db");
    start();
    assert_has(get("/chart/cpus.svg", STAFF, 200), "none.db");
    assert_lacks(get("/chart/cpus.svg", ALICE, 200), "none.db");
    assert_has(get("/chart/cpus.svg", ALICE, 200), "no data: they cannot be read");
    assert_lacks(get("/api/v1/trends/cpus", ALICE, 503), "none.db");
}

/* A run of an hour on n1, 4 CPUs, that ended an hour ago. */
static void put_run(uint32_t id, const char *user, const char *account)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.tasks = 1;
    record.submit_time = NOW - 8000;
    record.start_time = NOW - 7200;
    record.end_time = NOW - 3600;
    record.as_of = NOW;
    record.origin = RECORD_ACCOUNTED;
    record.state = (struct job_state){ JOB_COMPLETED, 0 };
    record.user = str_of(user);
    record.account = str_of(account);
    record.nodes = STR("n1");
    record.node_count = 1;
    record.cpus = 4;
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_put_job(fixture.store, STR("beluga"), &record, &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
}

TEST(a_node_tells_what_ran_there_before)
{
    struct str page;

    fixture_open();
    put_run(90, "alice", "physics");
    put_run(91, "bobby", "chemistry");
    start();
    page = get("/node/n1", STAFF, 200);
    assert_has(page, ">90</a>");
    assert_has(page, ">91</a>");
    page = get("/node/n1", ALICE, 200);
    assert_has(page, ">90</a>");
    assert_lacks(page, ">91</a>");
    assert_lacks(page, "bobby");
    assert_has(get("/node/n2", STAFF, 200), "No job that ran there is kept.");
    assert_has(get("/clusters", STAFF, 200), "/jobs?kept=1&amp;cluster=beluga");
}

TEST(of_many_jobs_of_before_a_node_tells_the_last_and_leads_to_all)
{
    struct str page;

    fixture_open();
    for (uint32_t id = 200; id < 220; id++)
        put_run(id, "alice", "physics");
    start();
    assert_lacks(get("/node/n1", STAFF, 200), "All jobs that ran there");
    put_run(220, "alice", "physics");
    page = get("/node/n1", STAFF, 200);
    assert_int_equal(count(page, "href=\"/job/2"), 20);
    assert_has(page, "<a href=\"/jobs?kept=1&amp;node=n1\">All jobs that ran there</a>");
}

/* NOW is on 21 September 2026. The store knows of jobs from NOW - 8000 on. */
TEST(without_a_board_that_tells_it_an_allocation_is_counted_from_the_store)
{
    struct str page;

    board->cluster->section[KIND_ALLOCATIONS] =
        section_unref(board->cluster->section[KIND_ALLOCATIONS]);
    fixture_open();
    put_run(90, "alice", "physics");
    OK(store_begin(fixture.store, &fixture.err));
    OK(store_set_mark(fixture.store, STR("beluga"), "accounted_since", NOW - 100 * 86400,
                      &fixture.err));
    OK(store_commit(fixture.store, &fixture.err));
    allocations_path = write_file(
        "allocations.yml", "clusters:\n  beluga:\n    physics:\n      cpu_years: 0.001\n"
                           "      from: 2026-09-01\n      to: 2027-09-01\n"
                           "    chemistry:\n      cpu_years: 1\n      from: 2026-01-01\n"
                           "      to: 2027-01-01\n  other:\n    astro:\n      gpu_years: 1\n");
    start();
    page = get("/allocations", STAFF, 200);
    assert_has(page, ">physics</a>");
    /* 4 CPU-hours of a thousandth of a year */
    assert_has(page, ">0.001</span>");
    assert_has(page, "> 0.000456 (46 %)<");
    assert_has(page, "<p>1 CPU is promised at all times.</p>");
    assert_has(page, ">chemistry</a>"); /* the store does not reach back to its beginning */
    assert_lacks(page, "astro");
    assert_has(get("/chart/cpus.svg", STAFF, 200), "no data");
}

TEST(a_file_of_allocations_that_cannot_be_read_is_said)
{
    board->cluster->section[KIND_ALLOCATIONS] =
        section_unref(board->cluster->section[KIND_ALLOCATIONS]);
    allocations_path = write_file("allocations.yml", "clusters: [");
    start();
    assert_has(get("/allocations", STAFF, 200), "cannot be read");
    assert_lacks(get("/allocations", STAFF, 200), "allocations.yml");
}

TEST(of_several_clusters_each_link_says_which)
{
    struct board_cluster *second;
    struct board *one = board;
    struct str page;

    board = board_new(2, NOW);
    board->cluster[0] = one->cluster[0];
    one->n_clusters = 0;
    board_unref(one);
    second = &board->cluster[1];
    second->name = STR("x&\"<i>");
    second->section[KIND_NODES] = make_nodes();
    start();
    page = get("/", STAFF, 200);
    assert_has(page, "<h2><a href=\"/?cluster=x%26%22%3Ci%3E\">x&amp;&quot;&lt;i&gt;</a></h2>");
    assert_has(page,
               "/nodes?state=unusable&amp;view=table&amp;sort=-cpus&amp;cluster=x%26%22%3Ci%3E");
    assert_has(page, "/chart/cpus.svg?cluster=x%26%22%3Ci%3E&amp;hours=6");
    page = get("/nodes", STAFF, 200);
    assert_has(page, "href=\"/node/n1?cluster=beluga\"");
    assert_has(page, "href=\"/node/n1?cluster=x%26%22%3Ci%3E\"");
    page = get("/node/n1?cluster=beluga", STAFF, 200);
    assert_has(page, "<h1>n1 of beluga</h1>");
    assert_lacks(page, "x&amp;");
    get("/chart/cpus.svg", STAFF, 400);
    get("/nodes?cluster=none", STAFF, 404);
}

/* gzip ends with the length of what was packed (RFC 1952). */
static size_t whole_size(struct str packed)
{
    const unsigned char *end = (const unsigned char *)packed.p + packed.n;

    assert_true(packed.n > 18);
    return end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

TEST(ten_thousand_nodes_are_less_than_a_megabyte)
{
    const struct sim sim = { .nodes = 10000, .jobs = 1000, .seed = 1 };
    struct reply reply;

    section_unref(board->cluster->section[KIND_NODES]);
    board->cluster->section[KIND_NODES] = sim_section(&sim, KIND_NODES, NOW);
    assert_true(board->cluster->section[KIND_NODES]->nodes.n >= 10000);
    start();
    reply = client_get_with(&client, "/nodes?colour=load", STAFF "Accept-Encoding: gzip\r\n");
    assert_int_equal(reply.status, 200);
    assert_in_range(whole_size(reply.body), 500 * 1000, 1000 * 1000);
}
