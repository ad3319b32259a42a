/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pages of jobs and people over the real server, a real store and a board made here: what they
 * show, and to whom. */
#include "test.h"

#include "files.h"
#include "http_client.h"
#include "sections.h"

#include "store/store.h"
#include "store/ticks.h"
#include "web/job_find.h"
#include "web/site.h"

#include <fcntl.h>
#include <unistd.h>

enum { BASE = 1790000000, NOW = BASE + 100000 };

int64_t sections_now = NOW;

#define HOSTILE "<script>alert(1)</script>\"'&\x1b[31m"

static const char *series_file, *program;
static char url[300];
static struct store *store;
static struct board *board;
static struct site *site;
static struct http_route routes[SITE_ROUTES + 1];
static struct http_server *server;
static struct log *log_file;
static struct client client;
static struct err err;

static int64_t wall_of_test(const struct clock *clock)
{
    (void)clock;
    return NOW * NS_PER_SEC;
}

static int64_t timeout_ns = TEST_DEADLINE;

/* So far is the clock of the pages behind that of the store. */
static int64_t behind_ns;

static int64_t mono_of_test(const struct clock *clock)
{
    (void)clock;
    return clock_mono(&clock_real) - behind_ns;
}

static const struct clock still_clock = { .wall_ns = wall_of_test, .mono_ns = mono_of_test };

static void must(int code)
{
    if (code < 0)
        fail_msg("%s", err.text);
}

/* ---- what is kept ---- */

static struct job_record run_of(const char *user, const char *account, uint32_t id,
                                int64_t submit_time)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = submit_time;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = NOW - 10;
    record.tasks = 1;
    record.state = (struct job_state){ JOB_COMPLETED, 0 };
    record.user = str_of(user);
    record.user_id = 1000;
    record.account = str_of(account);
    record.partition = STR("long");
    record.name = STR("train");
    record.nodes = STR("n1");
    record.node_count = 1;
    record.tres = STR("cpu=4,mem=8G,node=1,billing=4");
    record.cpus = 4;
    record.memory_bytes = UINT64_C(8) << 30;
    record.eligible_time = submit_time;
    record.start_time = submit_time + 60;
    record.end_time = submit_time + 3660;
    record.time_limit_minutes = 120;
    record.exit_code = 0;
    record.cpu_seconds = 3600; /* one of four */
    return record;
}

static void put_in(const char *cluster, struct job_record record)
{
    must(store_begin(store, &err));
    must(store_put_job(store, str_of(cluster), &record, &err));
    must(store_commit(store, &err));
}

static void put(struct job_record record)
{
    put_in("alpha", record);
}

enum {
    ALICES = 11,
    BOBS = 12,
    CAROLS_ACCOUNT = 13,
    RERUN = 14,
    NASTY = 15,
    ARRAY = 20,
    TWICE = 40,
    MEASURED = 16,
    IDLE = 17,
    WRAPPED = 50,
    LONG_NAME = 90,
    TWIN_ARRAYS = 60,
    STRANGE_TWIN = 70,
};

static void put_array(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct job_record task = run_of("alice", "physics", ARRAY + i, BASE + 2000);

        task.array_job_id = ARRAY;
        task.array_task_id = i;
        if (i == 2) {
            task.state.base = JOB_OUT_OF_MEMORY;
            task.exit_code = 0;
            task.exit_signal = 125;
        }
        put(task);
    }
}

/* Ids begin anew one day: what was alice's job is an array of bob. */
static void put_wrapped(void)
{
    put(run_of("dave", "physics", WRAPPED, BASE + 3000));
    for (uint32_t i = 0; i < 2; i++) {
        struct job_record task = run_of("bob", "maths", WRAPPED + i, BASE + 50000);

        task.array_job_id = WRAPPED;
        task.array_task_id = i;
        put(task);
    }
}

/* Clusters count their ids each for itself. */
static void put_twin(const char *cluster, const char *user, uint32_t id, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct job_record task = run_of(user, "geology", id + i, BASE + 6000);

        task.array_job_id = id;
        task.array_task_id = i;
        put_in(cluster, task);
    }
}

/* It used next to no CPU time. */
static void put_idle(void)
{
    struct job_record idle = run_of("ines", "physics", IDLE, BASE + 7000);

    idle.cpu_seconds = 0.003;
    idle.user_seconds = 0.002;
    idle.system_seconds = 0.001;
    put(idle);
}

static void fill_store(void)
{
    struct job_record nasty = run_of("alice", "physics", NASTY, BASE + 1500);
    struct job_record again = run_of("alice", "physics", RERUN, BASE + 10000);

    put(run_of("alice", "physics", ALICES, BASE));
    put(run_of("bob", "maths", BOBS, BASE + 100));
    put(run_of("bob", "chemistry", CAROLS_ACCOUNT, BASE + 200));
    put(run_of("alice", "physics", RERUN, BASE + 300));
    again.restarts = 1;
    put(again);
    nasty.name = STR(HOSTILE);
    nasty.reason = STR(HOSTILE);
    nasty.qos = STR(HOSTILE);
    nasty.account = STR("physics");
    put(nasty);
    put_array();
    put(run_of("erin", "physics", TWICE, BASE + 4000));
    put_in("beta", run_of("bob", "maths", TWICE, BASE + 4000));
    put_wrapped();
    put_twin("alpha", "gina", TWIN_ARRAYS, 2);
    put_twin("beta", "gina", TWIN_ARRAYS, 3);
    put_twin("alpha", "gina", STRANGE_TWIN, 2);
    put_twin("beta", "hugo", STRANGE_TWIN, 3);
    put(run_of("frank", "physics", MEASURED, BASE + 20000));
    put_idle();
}

/* Two CPUs in use from the beginning, looked at every 15 seconds; a quarter of an hour is missing.
 */
static void fill_series(void)
{
    const struct ticks_config config = { .path = series_file, .retention_seconds = 86400 * 365 };
    int64_t begin = BASE + 20000 + 60;
    struct ticks_writer *writer;

    must(ticks_open(&config, &writer, &err));
    for (int64_t seconds = 0; seconds <= 3600; seconds += 15) {
        const struct tick_sample samples[] = {
            { STR("job/alpha/16/n1/cpu_seconds"), 2.0 * (double)seconds },
            { STR("job/alpha/16/n1/memory_bytes"), 0x1p30 },
        };

        if (seconds < 900 || seconds > 1800)
            must(ticks_put(writer, begin + seconds, samples, COUNT(samples), &err));
    }
    ticks_close(writer);
}

/* ---- what is in the queue ---- */

enum { QUEUED = 31, BOBS_QUEUED = 32 };

/* Those of an account with more users than a page shows. */
enum { SHARES = 45 };

static struct section *make_shares(void)
{
    struct section *section = section_new(KIND_SHARES);

    for (int i = 0; i < SHARES; i++)
        section_add(section,
                    "chemistry user=sharer%d normalised_shares=%.17g effective_usage=0.654 "
                    "factor=0.2029 level=1234\n",
                    i, 1.0 / SHARES);
    return section;
}

static void make_board(void)
{
    struct section *section =
        jobs_from("* partition=long qos= reason=Resources cpus=2 "
                  "tres=cpu=2,mem=1G,node=1,billing=2 submit=-500s eligible=-500s\n"
                  "PENDING id=%d user=alice\n"
                  "PENDING id=%d user=bob name=secret\n",
                  QUEUED, BOBS_QUEUED);

    section->jobs.job[0].name = symbols_put(&section->symbols, STR(HOSTILE));
    board = board_new(1, NOW);
    board->cluster[0].name = STR("alpha");
    board->cluster[0].section[KIND_JOBS] = section;
    board->cluster[0].section[KIND_SHARES] = make_shares();
    board_sum(board);
}

static struct board *take_board(void *ctx, int64_t deadline_ns, struct err *why)
{
    (void)ctx;
    (void)deadline_ns;
    (void)why;
    return board_ref(board);
}

/* ---- the server ---- */

static void start(const char *store_url)
{
    static const struct str listen = STR_INIT("127.0.0.1:0"), proxy = STR_INIT("127.0.0.1"),
                            staff = STR_INIT("root"), coordinator = STR_INIT("chemistry:carol");
    const struct site_config config = {
        .boards = { take_board, NULL },
        .store = store_url,
        .series_path = series_file,
        .report_program = program,
        .viewer = { .auth = VIEWER_PROXY,
                    .header = STR("X-Remote-User"),
                    .proxies = &proxy,
                    .n_proxies = 1,
                    .staff = &staff,
                    .n_staff = 1,
                    .coordinators = &coordinator,
                    .n_coordinators = 1 },
        .timeout_ns = timeout_ns,
        .clock = &still_clock,
        .log = log_file,
    };
    const struct http_config http = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 100,
        .workers = 3,
        .queue = 20,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 16384,
        .clock = &clock_real,
        .log = log_file,
    };

    must(site_new(&config, &site, &err));
    site_set_access(site, true, false);
    memset(routes, 0, sizeof(routes));
    site_routes(site, routes);
    must(http_start(&http, &server, &err));
    client_open(&client, http_address(server, 0));
}

static void stop(void)
{
    client_close(&client);
    server = http_stop(server);
    site = site_free(site);
}

static void begin(void)
{
    series_file = test_path("series.db");
    snprintf(url, sizeof(url), "sqlite:%s", test_path("store.db"));
    program = write_script("report", "printf 'made'; printf ' %s' \"$@\"");
    log_file = test_log(&clock_real);
    must(store_open(str_of(url), false, &store, &err));
    fill_store();
    fill_series();
    make_board();
    start(url);
}

static void end(void)
{
    stop();
    board_unref(board);
    store_close(store);
    log_free(log_file);
}

PROGRAM_FIXTURE(begin, end)

static struct reply get_as(const char *user, const char *path)
{
    char headers[100];

    snprintf(headers, sizeof(headers), "X-Remote-User: %s\r\n", user);
    return client_get_with(&client, path, headers);
}

static void assert_status(const char *user, const char *path, unsigned status)
{
    struct reply reply = get_as(user, path);

    if (reply.status != status)
        fail_msg("%s of %s: %u, expected %u: %.*s", path, user, reply.status, status,
                 STR_ARG(str_head(reply.body, 2000)));
}

static bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

static void assert_has(struct reply reply, const char *part)
{
    if (!has(reply.body, part))
        fail_msg("no \"%s\" in %.*s", part, STR_ARG(reply.body));
}

static void assert_lacks(struct reply reply, const char *part)
{
    if (has(reply.body, part))
        fail_msg("\"%s\" is in %.*s", part, STR_ARG(reply.body));
}

/* Every form of a job: what stands before and behind its id. */
static const struct {
    const char *before, *after;
} forms[] = {
    { "/job/", "" },
    { "/job/alpha:", "" },
    { "/array/", "" },
    { "/plot/", "/cpu.svg" },
    { "/plot/", "/jobs_rss" },
    { "/pie/", "/" },
    { "/pdf/", "" },
    { "/mail/", "" },
    { "/report/", ".txt" },
    { "/report/", ".json" },
    { "/api/v1/jobs/", "/usage" },
    { "/api/v1/series/", "" },
};

static void put_form(char path[600], size_t form, uint32_t job, struct str key)
{
    snprintf(path, 600, "%s%u%s?plot=cpu%s%.*s", forms[form].before, (unsigned)job,
             forms[form].after, key.n ? "&key=" : "", STR_ARG(key));
}

TEST(every_form_of_a_job_is_for_its_owner_coordinators_and_staff)
{
    static const struct {
        const char *user;
        uint32_t job;
        unsigned status;
    } cases[] = {
        { "alice", ALICES, 200 },         { "bob", ALICES, 403 },         { "carol", ALICES, 403 },
        { "root", ALICES, 200 },          { "alice", BOBS, 403 },         { "carol", BOBS, 403 },
        { "carol", CAROLS_ACCOUNT, 200 }, { "bob", CAROLS_ACCOUNT, 200 },
    };
    struct arena arena = { 0 };
    char path[600];

    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t j = 0; j < COUNT(forms); j++) {
            const struct run_key key = { BASE + (cases[i].job - ALICES) * 100, cases[i].job,
                                         STR("alpha") };

            put_form(path, j, cases[i].job, STR(""));
            assert_status(cases[i].user, path, cases[i].status);
            put_form(path, j, cases[i].job, job_key(&arena, &key));
            assert_status(cases[i].user, path, cases[i].status);
        }
    arena_clear(&arena);
}

TEST(a_job_that_is_not_there_is_404_for_everybody)
{
    char path[600];

    for (size_t i = 0; i < COUNT(forms); i++) {
        put_form(path, i, 4711, STR(""));
        assert_status("alice", path, 404);
        assert_status("root", path, 404);
    }
    assert_status("alice", "/job/nonsense", 404);
    assert_status("alice", "/job/?key=nonsense", 404);
    assert_status("alice", "/plot/11/nonsense", 404);
    assert_status("alice", "/api/v1/series/11?plot=time", 404);
}

TEST(pages_of_people_are_for_themselves_and_staff)
{
    assert_status("alice", "/user/alice", 200);
    assert_status("alice", "/user/bob", 403);
    assert_status("alice", "/api/v1/users/bob", 403);
    assert_status("alice", "/account/maths", 403);
    assert_status("carol", "/account/chemistry", 200);
    assert_status("alice", "/jobs?user=bob", 403);
    assert_status("alice", "/jobs?kept=1&user=bob", 403);
    assert_status("root", "/user/bob", 200);
    assert_status("root", "/user/nobody-here", 404);
    assert_status("root", "/account/nothing-here", 404);
}

static size_t count(struct str page, const char *part)
{
    size_t n = 0;

    for (size_t at; (at = str_find_str(page, str_of(part))) < page.n; n++)
        page = str_skip(page, at + strlen(part));
    return n;
}

TEST(a_long_list_of_an_account_is_cut_and_leads_to_all_of_it)
{
    struct reply reply = get_as("root", "/account/chemistry");

    assert_int_equal(reply.status, 200);
    assert_int_equal(count(reply.body, "href=\"/user/sharer"), 20);
    assert_has(reply, "<a href=\"/account/chemistry?full=shares#full\">All 45 shares</a>");
    reply = get_as("root", "/account/chemistry?full=shares");
    assert_int_equal(count(reply.body, "href=\"/user/sharer"), SHARES);
    assert_has(reply, "<section id=\"full\"><h2>Fair share</h2>");
}

TEST(shares_are_told_with_the_digits_that_matter)
{
    assert_has(get_as("root", "/account/chemistry"), ">0.0222</span>"); /* of all */
    assert_has(get_as("root", "/account/chemistry"), ">0.6540</span>");
    assert_has(get_as("root", "/account/chemistry"), ">0.2029</span>");
    assert_has(get_as("root", "/account/chemistry"), ">1,234</span>");
}

TEST(what_people_used_leads_to_the_jobs_that_did)
{
    struct reply reply = get_as("root", "/account/physics");

    assert_has(reply, "<a href=\"/jobs?kept=1&amp;account=physics&amp;from=");
    assert_has(reply, "<a href=\"/jobs?kept=1&amp;account=physics&amp;user=alice&amp;from=");
}

TEST(lists_have_only_what_may_be_seen)
{
    struct reply reply = get_as("alice", "/jobs");

    assert_int_equal(reply.status, 200);
    assert_has(reply, "/job/31");
    assert_lacks(reply, "/job/32");
    assert_lacks(reply, "secret");
    reply = get_as("alice", "/jobs?kept=1");
    assert_has(reply, "/job/11");
    assert_lacks(reply, "/job/12");
    assert_lacks(reply, "bob");
    reply = get_as("carol", "/jobs?kept=1");
    assert_has(reply, "/job/13");
    assert_lacks(reply, "/job/12");
    reply = get_as("root", "/jobs?kept=1");
    assert_has(reply, "/job/11");
    assert_has(reply, "/job/12");
}

TEST(no_markup_of_a_user_gets_into_a_page)
{
    static const char *const paths[] = {
        "/jobs",
        "/jobs?kept=1",
        "/job/15",
        "/job/31",
        "/user/alice",
        "/array/20",
        "/jobs?text=%3Cscript%3Ealert(1)%3C/script%3E%22%27",
        "/jobs?name=%3Cscript%3Ealert(1)%3C/script%3E%22%27&sort=-cpus",
        "/jobs?kept=1&name=%3Cscript%3Ealert(1)%3C/script%3E",
        "/jobs?state=%3Cscript%3Ealert(1)%3C/script%3E",
        "/job/%3Cscript%3Ealert(1)%3C/script%3E",
        "/user/%3Cscript%3Ealert(1)%3C/script%3E",
        "/account/%3Cscript%3Ealert(1)%3C/script%3E",
    };

    for (size_t i = 0; i < COUNT(paths); i++) {
        struct reply reply = get_as("root", paths[i]);

        assert_true(reply.status < 500);
        assert_lacks(reply, "<script>alert");
        assert_lacks(reply, "\x1b");
    }
    assert_has(get_as("root", "/job/15"), "&lt;script&gt;alert(1)");
}

TEST(a_long_name_is_cut_in_tables_and_whole_in_its_title)
{
    static char name[1000], part[1200];
    struct job_record record = run_of("greta", "physics", LONG_NAME, BASE + 30000);

    memset(name, 'x', sizeof(name));
    name[500] = '"';
    record.name = (struct str){ name, sizeof(name) };
    put(record);
    snprintf(part, sizeof(part), "<td><span title=\"%.500s&quot;%.499s\">%.39s…</span></td>", name,
             name + 501, name);
    assert_has(get_as("root", "/jobs?kept=1&user=greta"), part);
}

TEST(a_page_past_the_end_says_so_and_leads_back)
{
    struct reply reply = get_as("root", "/jobs?offset=500&partition=long");

    assert_int_equal(reply.status, 200);
    assert_has(reply, "past the last page");
    assert_has(reply, "<a href=\"/jobs?partition=long\">Back to the first page</a>");
    assert_has(get_as("root", "/array/20?offset=500"), "past the last page");
    assert_has(get_as("root", "/jobs?partition=short"), "Leave out a filter");
}

/* The address of a link with these words; empty: there is none. */
static struct str find_link(struct str text, const char *words)
{
    char end[100];
    size_t at, from;

    snprintf(end, sizeof(end), "\">%s</a>", words);
    at = str_find_str(text, str_of(end));
    if (at == text.n)
        return STR("");
    for (from = at; from && text.p[from - 1] != '"';)
        from--;
    return str_span(text.p + from, text.p + at);
}

TEST(kept_jobs_are_paged_by_key_each_of_them_once)
{
    char path[1000] = "/jobs?kept=1&user=alice&limit=2";
    size_t n_pages = 0, n_rows = 0;

    while (path[0]) {
        struct reply reply = get_as("alice", path);
        struct str rest = reply.body, next;
        size_t n = 0;

        assert_int_equal(reply.status, 200);
        for (size_t at; (at = str_find_str(rest, STR("<th scope=\"row\">"))) < rest.n; n_rows++)
            rest = str_skip(rest, at + 1);
        next = find_link(reply.body, "Next");
        for (size_t i = 0; i < next.n; i++) {
            path[n++] = next.p[i];
            if (str_starts(str_skip(next, i), STR("&amp;")))
                i += 4;
        }
        path[n] = '\0';
        assert_true(++n_pages < 10);
    }
    assert_int_equal(n_rows, 7); /* 11, 14 twice, 15, three tasks */
    assert_int_equal(n_pages, 4);
}

TEST(empty_fields_of_the_form_are_not_asked_for)
{
    assert_status("alice", "/jobs?user=&state=&min_cpus=&text=&job=", 200);
    assert_status("alice", "/jobs?state=NONSENSE", 400);
    assert_status("alice", "/jobs?nonsense=1", 400);
    assert_status("alice", "/jobs?kept=1&reason=Resources", 400);
    assert_status("alice", "/jobs?sort=nonsense", 400);
    assert_has(get_as("alice", "/jobs?state=PENDING&state=RUNNING"), "value=\"RUNNING\"");
}

TEST(a_job_shows_its_life_use_and_other_forms)
{
    struct reply reply = get_as("alice", "/job/11");

    assert_has(reply, "<h1>Job 11 on alpha: train</h1>");
    assert_has(reply, "<ol class=\"life\">");
    assert_has(reply, "25 %: 1 of 4 CPUs");
    assert_has(reply, "/pdf/11?key=");
    assert_has(reply, "/report/11.json?key=");
    assert_has(reply, "<a href=\"/node/n1?cluster=alpha\">n1</a>");
    assert_has(reply, "<a href=\"/user/alice\">alice</a>");
    assert_has(reply, "No series");
    assert_has(reply, "<div id=\"job-head\">"); /* it has ended: nothing of it changes */
}

TEST(a_job_in_the_queue_only_is_shown_from_the_board)
{
    struct reply reply = get_as("alice", "/job/31");

    assert_int_equal(reply.status, 200);
    assert_has(reply, "is waiting");
    assert_has(reply, "Resources");
    assert_has(reply, "It waits until as much as it asked for is free.");
    assert_has(reply, "<dt>Requested</dt>");
    assert_lacks(reply, "<h2>CPU</h2>");
    assert_lacks(reply, "No measurements");
    assert_has(reply, "<div id=\"job-head\" data-live>");
    assert_status("alice", "/job/32", 403);
    assert_status("alice", "/job/4711", 404);
}

TEST(a_simulated_job_in_the_queue_is_marked)
{
    assert_lacks(get_as("alice", "/job/31"), "(simulated)");
    board->cluster[0].is_simulated = true;
    assert_has(get_as("alice", "/job/31"), "Job 31 on alpha (simulated): ");
    board->cluster[0].is_simulated = false;
}

TEST(a_run_of_before_is_found_by_its_key_and_has_no_pdf)
{
    const struct run_key old = { BASE + 300, RERUN, STR("alpha") };
    struct arena arena = { 0 };
    char path[300];

    snprintf(path, sizeof(path), "/job/14?key=%s", job_key(&arena, &old).p);
    assert_status("alice", path, 200);
    assert_has(get_as("alice", "/job/14"), "Other runs of this job");
    snprintf(path, sizeof(path), "/pdf/14?key=%s", job_key(&arena, &old).p);
    assert_status("alice", path, 404);
    assert_status("alice", "/pdf/14", 200);
    arena_clear(&arena);
}

TEST(an_old_key_does_not_open_what_its_id_stands_for_now)
{
    const struct run_key old = { BASE + 3000, WRAPPED, STR("alpha") };
    struct arena arena = { 0 };
    char path[600];

    for (size_t i = 0; i < COUNT(forms); i++) {
        struct reply reply;

        put_form(path, i, WRAPPED, job_key(&arena, &old));
        reply = get_as("dave", path);
        assert_true(reply.status == 200 || reply.status == 403 || reply.status == 404);
        assert_lacks(reply, "bob");
        assert_lacks(reply, "made --"); /* by sonde-report, which takes the newest */
    }
    assert_status("dave", "/job/50", 403);
    assert_status("dave", "/array/50", 403);
    arena_clear(&arena);
}

TEST(of_several_clusters_one_is_to_be_chosen)
{
    struct reply reply = get_as("erin", "/job/40");

    assert_int_equal(reply.status, 200);
    assert_has(reply, "<a href=\"/job/alpha%3A40\">alpha:40</a>");
    assert_has(reply, "<a href=\"/job/beta%3A40\">beta:40</a>");
    assert_status("erin", "/job/alpha:40", 200);
    assert_status("erin", "/job/beta:40", 403);
    assert_status("erin", "/mail/40", 404);
    assert_status("erin", "/mail/beta:40", 403);
}

TEST(an_array_has_a_page_of_its_tasks)
{
    struct reply reply = get_as("alice", "/job/20");

    assert_int_equal(reply.status, 303);
    assert_str(reply_header(&reply, "Location"), "/array/alpha:20");
    reply = get_as("alice", "/array/alpha:20");
    assert_int_equal(reply.status, 200);
    assert_has(reply, "<h1>Array 20: train</h1>");
    assert_has(reply, "20_2</a>");
    assert_has(reply, "<td>out of memory</td>"); /* Slurm's 0:125 is no signal */
    assert_lacks(reply, "125");
    assert_has(reply, "Where tasks failed");
    assert_status("alice", "/job/20_1", 200);
    assert_status("bob", "/array/20", 403);
}

TEST(of_arrays_of_several_clusters_one_is_to_be_chosen)
{
    struct reply reply = get_as("gina", "/array/60");

    assert_int_equal(reply.status, 200);
    assert_has(reply, "Several clusters have this array");
    assert_has(reply, "<a href=\"/array/alpha%3A60\">alpha:60</a>");
    assert_has(reply, "<a href=\"/array/beta%3A60\">beta:60</a>");
    assert_has(get_as("gina", "/array/alpha:60"), "2 tasks of");
    assert_has(get_as("gina", "/array/beta:60"), "3 tasks of");
}

TEST(of_arrays_of_several_clusters_that_which_may_be_seen_is_meant)
{
    struct reply reply = get_as("gina", "/array/70");

    assert_int_equal(reply.status, 303);
    assert_str(reply_header(&reply, "Location"), "/array/alpha:70");
    reply = get_as("hugo", "/array/70");
    assert_str(reply_header(&reply, "Location"), "/array/beta:70");
    assert_status("gina", "/array/beta:70", 403);
    assert_status("alice", "/array/70", 403);
    assert_has(get_as("root", "/array/70"), "Several clusters have this array");
}

TEST(a_user_sees_use_and_waste)
{
    struct reply reply = get_as("alice", "/user/alice");

    assert_has(reply, "<h1>User alice</h1>");
    assert_has(reply, "Last 30 days");
    assert_has(reply, "By account, last 30 days");
    /* seven runs of an hour with four CPUs, of which one was used */
    assert_has(reply, "Of 7 jobs that ended in the last 30 days: 21 CPU-hours");
    assert_has(reply, "/job/31");
}

/* There is time for a page, but when it comes to ask the store that is over. */
static void set_time(int64_t timeout, int64_t behind)
{
    stop();
    timeout_ns = timeout;
    behind_ns = behind;
    start(url);
}

TEST(a_page_of_people_outlives_a_store_that_takes_too_long)
{
    static const char *const paths[] = { "/user/alice", "/account/physics" };

    set_time(1, 60 * NS_PER_SEC);
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct reply reply = get_as("root", paths[i]);

        assert_int_equal(reply.status, 200);
        assert_has(reply, "it took too long to add up what was used");
        assert_has(reply, "/job/31");
        assert_has(reply, "All jobs that are kept");
        assert_lacks(reply, "Last 30 days");
    }
    set_time(TEST_DEADLINE, 0);
    assert_has(get_as("root", "/user/alice"), "Last 30 days");
}

TEST(petricores_paths_answer_in_its_shapes)
{
    struct reply reply = get_as("alice", "/mail/11");

    assert_has(reply, "----------General Data----------");
    assert_true(str_ends(reply.body, STR("WARNING=true")) ||
                str_ends(reply.body, STR("WARNING=false")));
    reply = get_as("alice", "/api/v1/jobs/11/usage");
    assert_has(reply, "\"username\":\"alice\"");
    reply = get_as("alice", "/api/v1/users/alice");
    assert_has(reply, "{\"user\":{\"username\":\"alice\",\"uid\":1000},\"jobs\":[14,");
    assert_status("root", "/api/v1/users/nobody", 404);
    assert_has(get_as("root", "/api/v1/users/nobody"), "User nobody does not exist");
    assert_str(get_as("alice", "/plot/11/jobs_rss").body, "made --chart=memory --png -- alpha:11");
    assert_str(get_as("alice", "/pdf/11").body, "made --pdf=- -- alpha:11");
    assert_str(get_as("alice", "/pdf/20_0").body, "made --pdf=- -- alpha:20_0");
    reply = get_as("alice", "/pie/11/");
    assert_str(reply_header(&reply, "Content-Type"), "image/png");
}

TEST(a_chart_without_data_says_so_and_its_numbers_are_none)
{
    struct reply reply = get_as("alice", "/plot/11/cpu.svg");

    assert_str(reply_header(&reply, "Content-Type"), "image/svg+xml");
    assert_has(reply, "There is nothing to draw.");
    reply = get_as("alice", "/api/v1/series/11?plot=cpu");
    assert_str(reply.body, "{\"title\":\"CPUs in use by node\",\"unit\":\"number\","
                           "\"labels\":[\"time\"],\"colours\":[],\"points\":[]}\n");
}

TEST(a_job_page_has_no_pie_of_0_s)
{
    struct reply reply = get_as("ines", "/job/17");

    assert_has(reply, "<h2>Charts</h2>");
    assert_lacks(reply, "/plot/17/time.svg");
}

TEST(a_measured_job_has_charts_and_their_numbers)
{
    struct reply reply = get_as("frank", "/job/16");

    assert_has(reply, "src=\"/plot/16/cpu.svg?key=");
    assert_has(reply, "data-series=\"/api/v1/series/16?plot=cpu&amp;key=");
    assert_has(reply, "50 %: 2 of 4 CPUs");
    assert_lacks(reply, "plot=gpu"); /* it had none */
    assert_lacks(reply, "No series");
    reply = get_as("frank", "/plot/16/cpu.svg");
    assert_has(reply, "CPUs in use by node");
    assert_lacks(reply, "nothing to draw");
    assert_has(get_as("frank", "/plot/16/cpu.svg?narrow=1"), " viewBox=\"0 0 285 180\"");
    reply = get_as("frank", "/api/v1/series/16?plot=cpu");
    assert_has(reply, "\"unit\":\"number\",\"labels\":[\"time\",\"n1\",\"80 % of 4 CPUs\"],"
                      "\"colours\":[1,0],\"points\":[[1790020");
    assert_has(reply, ",2,3.2],[");
    assert_has(reply, ",null,3.2],[");
    reply = get_as("frank", "/api/v1/series/16?plot=memory");
    assert_has(reply, "\"unit\":\"bytes\"");
    assert_has(reply, ",1073741824");
}

TEST(without_a_store_the_queue_is_still_there)
{
    stop();
    start("sqlite:/nonexistent/store.db");
    assert_status("alice", "/jobs", 200);
    assert_status("alice", "/job/31", 200);
    assert_status("alice", "/job/32", 403);
    assert_status("alice", "/user/alice", 200);
    assert_status("alice", "/jobs?kept=1", 503);
    assert_status("alice", "/job/11", 404);
    stop();
    start(url);
}

TEST(jobs_that_nobody_has_told_are_not_none)
{
    struct reply reply;

    assert_has(get_as("root", "/jobs?user=nobody"), "0 jobs.");
    board_unref(board);
    board = board_new(1, NOW);
    board->cluster[0].name = STR("alpha");
    board_sum(board);
    reply = get_as("root", "/jobs");
    assert_int_equal(reply.status, 200);
    assert_has(reply, "What is in the queue of alpha is not known");
    assert_lacks(reply, "0 jobs");
    board_unref(board);
    make_board();
}
