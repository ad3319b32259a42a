/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who gets what from the API: alice and bob are users, carol coordinates physics, root is staff. */
#include "api_fixture.h"
#include "sections.h"

#include "web/api_key.h"

#include <semaphore.h>

static const struct str proxy = STR_INIT("127.0.0.1"), staff = STR_INIT("root"),
                        coordinator = STR_INIT("physics:carol");

int64_t sections_now = NOW;

static struct section *make_jobs(void)
{
    return jobs_from(
        "* name=sim partition=gpu qos= cpus=4 memory=8G tres=cpu=4,mem=8G,node=1,gres/gpu:a100=2 "
        "time_limit=10 user_id=unknown\n"
        "RUNNING user=alice account=physics priority=1 submit=1790000001 eligible=1790000001 "
        "start=1790000011\n"
        "RUNNING user=bob account=physics priority=2 submit=1790000002 eligible=1790000002 "
        "start=1790000012\n"
        "* reason=Resources\n"
        "PENDING user=bob account=chemistry priority=3 submit=1790000003 eligible=1790000003\n"
        "PENDING user=alice account=chemistry priority=4 submit=1790000004 eligible=1790000004\n");
}

static struct section *make_nodes(void)
{
    return nodes_from("partition gpu default=yes time_limit=60\n"
                      "* partitions=gpu memory=32G gres=gpu:a100:4\n"
                      "n1 mixed cpus=8/0/0/8 memory_alloc=16G gres_used=gpu:a100:4\n"
                      "n2 down cpus=0/0/8/8 memory_alloc=0 gres_used=gpu:a100:0 "
                      "reason='ECC errors' reason_time=1790000000\n");
}

static struct section *make_reservations(void)
{
    return reservations_from("course nodes=n2 node_count=1 users=alice,bob "
                             "accounts=chemistry,physics active=yes start=1790000000 end=+100s\n");
}

static struct section *make_shares(void)
{
    return shares_from("* normalised_shares=unknown raw_usage=unknown normalised_usage=unknown "
                       "effective_usage=unknown factor=0.25 level=inf\n"
                       "physics raw_shares=0\n"
                       "physics user=alice raw_shares=1\n"
                       "physics user=bob raw_shares=2\n");
}

/* What slurm.conf says; sonde itself may be an operator, from whom nothing is hidden. */
static struct section *make_config(unsigned private)
{
    struct section *section = section_new(KIND_CONFIG);

    section->config.private = private;
    return section;
}

enum { UNTOLD = 1 << 30 };
static unsigned private_data; /* of the one cluster */

static struct board *give_board(void *ctx, int64_t deadline_ns, struct err *why)
{
    struct board *board = board_new(1, NOW);
    struct board_cluster *cluster = &board->cluster[0];

    (void)ctx;
    (void)deadline_ns;
    (void)why;
    cluster->name = STR("one");
    cluster->section[KIND_JOBS] = make_jobs();
    cluster->section[KIND_NODES] = make_nodes();
    cluster->section[KIND_RESERVATIONS] = make_reservations();
    cluster->section[KIND_SHARES] = make_shares();
    if (private_data != UNTOLD)
        cluster->section[KIND_CONFIG] = make_config(private_data);
    board_sum(board);
    return board;
}

static struct board *give_none(void *ctx, int64_t deadline_ns, struct err *why)
{
    (void)ctx;
    (void)deadline_ns;
    err_set(why, EIO, "slurmctld at 10.0.0.1 is away");
    return NULL;
}

static struct str tell_health(void *ctx, struct arena *arena)
{
    (void)ctx;
    return arena_str(arena, STR("{\"facts\":{\"secret\":1}}"));
}

static void start_for_all(void)
{
    private_data = 0;
    start_api((struct api_config){ .boards = { give_board, NULL },
                                   .health = tell_health,
                                   .viewer = { .auth = VIEWER_PROXY,
                                               .header = STR("X-Remote-User"),
                                               .proxies = &proxy,
                                               .n_proxies = 1,
                                               .staff = &staff,
                                               .n_staff = 1,
                                               .coordinators = &coordinator,
                                               .n_coordinators = 1 } },
              NULL);
}

static struct str get_as(const char *user, const char *path, unsigned status)
{
    char header[100];
    struct reply reply;

    snprintf(header, sizeof(header), "X-Remote-User: %s\r\n", user);
    reply = client_get_with(&client, path, header);
    if (reply.status != status)
        fail_msg("%s of %s: %u and not %u: %.*s", path, user, reply.status, status,
                 STR_ARG(reply.body));
    if (!is_json(reply.body))
        fail_msg("%s: no JSON: %.*s", path, STR_ARG(reply.body));
    return reply.body;
}

/* 30 runs, one of each of three owners in turn; ten of them in an array. */
static void keep_runs(void)
{
    struct job_record records[30];

    open_store(false);
    for (uint32_t i = 0; i < COUNT(records); i++) {
        records[i] = run(100 + i, BASE + i);
        records[i].user = i % 3 == 0 ? STR("alice") : i % 3 == 1 ? STR("bob") : STR("carol");
        records[i].account = i % 2 ? STR("physics") : STR("chemistry");
        records[i].memory_peak_bytes = (i + 1) << 20;
        if (i % 3 == 1) {
            records[i].array_job_id = 101;
            records[i].array_task_id = i / 3;
            records[i].submit_time = BASE + 1; /* all at once */
        }
    }
    put("one", records, COUNT(records));
}

/* Of all pages of a question: rows, which must fill each page but the last. */
static size_t count_rows(const char *user, const char *question)
{
    char path[1400], key[API_KEY_MAX];
    size_t n = 0;

    snprintf(path, sizeof(path), "%s", question);
    for (size_t page = 0; page < 40; page++) {
        struct str body = get_as(user, path, 200);
        size_t here = count(body, "\"key\":");

        n += here;
        if (has(body, "\"next\":null"))
            return n;
        assert_int_equal(here, 4);
        copy_member(body, "next", key, sizeof(key));
        snprintf(path, sizeof(path), "%s&after=%s", question, key);
    }
    fail();
    return 0;
}

TEST(a_user_gets_their_own_runs_in_full_pages_and_nobody_elses)
{
    keep_runs();
    start_for_all();
    assert_int_equal(count_rows("root", "/api/v1/jobs?limit=4"), 30);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4"), 10);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&account=physics"), 5);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&user=bob"), 0);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&user=bob,alice"), 10);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&state=COMPLETED"), 10);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&node=n1"), 10);
    assert_int_equal(count_rows("alice", "/api/v1/jobs?limit=4&job=100,101,102,103"), 2);
    assert_int_equal(count_rows("nobody", "/api/v1/jobs?limit=4"), 0);
    assert_false(has(get_as("alice", "/api/v1/jobs?limit=100", 200), "\"user\":\"bob\""));
}

TEST(a_coordinator_gets_those_of_the_account_and_their_own_each_once)
{
    keep_runs();
    start_for_all();
    /* 15 of physics, and five of carol's own in chemistry. */
    assert_int_equal(count_rows("carol", "/api/v1/jobs?limit=4"), 20);
    assert_int_equal(count_rows("carol", "/api/v1/jobs?limit=4&user=bob"), 5);
    assert_int_equal(count_rows("carol", "/api/v1/jobs?limit=4&account=chemistry"), 5);
    assert_int_equal(count_rows("carol", "/api/v1/jobs?limit=4&from=2026-09-01"), 20);
}

TEST(anothers_run_is_403_and_one_that_is_not_there_404)
{
    char path[API_KEY_MAX + 40] = "/api/v1/jobs/", *key = path + strlen(path);

    keep_runs();
    start_for_all();
    /* bob's, in physics */
    copy_member(get_as("root", "/api/v1/jobs?job=101_0", 200), "key", key, API_KEY_MAX);
    assert_has(get_as("alice", path, 403), "this is another's job");
    assert_has(get_as("bob", path, 200), "\"job_id\":101,");
    assert_has(get_as("carol", path, 200), "\"job_id\":101,");
    assert_has(get_as("root", path, 200), "\"job_id\":101,");
    get_as("alice", "/api/v1/jobs/cjE6MjpjbHVzdGVy", 404);
    /* bob's, in chemistry */
    copy_member(get_as("root", "/api/v1/jobs?job=104", 200), "key", key, API_KEY_MAX);
    get_as("carol", path, 403);
}

TEST(usage_is_counted_within_what_may_be_seen)
{
    static const char path[] = "/api/v1/usage?group_by=user&from=2026-09-01";

    keep_runs();
    start_for_all();
    struct str body = get_as("alice", path, 200);
    assert_has(body, "\"rows\":[{\"user\":\"alice\",\"jobs\":10,");
    assert_has(body, "\"total\":{\"jobs\":10,");
    assert_false(has(body, "bob"));
    body = get_as("carol", path, 200);
    assert_has(body, "\"total\":{\"jobs\":20,");
    assert_has(body, "{\"user\":\"bob\",\"jobs\":5,");
    assert_has(get_as("root", path, 200), "\"total\":{\"jobs\":30,");
    assert_has(get_as("nobody", path, 200), "\"rows\":[],");
}

TEST(an_array_is_its_owners)
{
    keep_runs();
    start_for_all();
    assert_has(get_as("alice", "/api/v1/arrays/101", 403), "this is another's array");
    struct str body = get_as("bob", "/api/v1/arrays/101?limit=3", 200);
    assert_has(body, "{\"array_job_id\":101,\"tasks\":10,"
                     "\"states\":[{\"state\":\"COMPLETED\",\"tasks\":10}],");
    assert_has(body, "\"elapsed_seconds\":{\"least\":100,\"median\":100,\"most\":100}");
    assert_has(body, "\"cpu_efficiency\":{\"least\":0.5,\"median\":0.5,\"most\":0.5}");
    /* 2, 5, … 29 MiB: the median lies between two */
    assert_has(body, "\"memory_peak_bytes\":{\"least\":2097152,\"median\":16252928,"
                     "\"most\":30408704}");
    assert_int_equal(count(body, "\"array_task_id\":"), 3);
    assert_int_equal(count_rows("bob", "/api/v1/arrays/101?limit=4"), 10);
    assert_has(get_as("bob", "/api/v1/arrays/100", 404), "there is no array of this id");
    assert_has(get_as("bob", "/api/v1/arrays/x", 404), "this is no id of an array");
    assert_has(get_as("bob", "/api/v1/arrays/4294967295", 404), "this is no id of an array");
}

static void put_array(const char *cluster, const char *user, uint32_t n, int64_t submit_time)
{
    for (uint32_t i = 0; i < n; i++) {
        struct job_record task = run(500 + i, submit_time);

        task.user = str_of(user);
        task.array_job_id = 500;
        task.array_task_id = i;
        put_one(cluster, task);
    }
}

/* Of the array with the id 500: a task again, after it had failed. */
static void requeue(uint32_t task_id, int64_t submit_time)
{
    struct job_record task = run(500 + task_id, submit_time);

    task.user = STR("bob");
    task.array_job_id = 500;
    task.array_task_id = task_id;
    task.restarts = 1;
    task.state = (struct job_state){ JOB_FAILED, 0 };
    put_one("one", task);
}

TEST(a_requeued_task_counts_once)
{
    struct str body;

    open_store(false);
    put_array("one", "bob", 23, BASE + 1000);
    for (uint32_t i = 0; i < 3; i++)
        requeue(i, BASE + 5000 + i);
    start_for_all();
    body = get_as("bob", "/api/v1/arrays/500?limit=100", 200);
    assert_has(body, "\"tasks\":23,");
    assert_has(body, "{\"state\":\"COMPLETED\",\"tasks\":20}");
    assert_has(body, "{\"state\":\"FAILED\",\"tasks\":3}");
    assert_int_equal(count(body, "\"key\":"), 23);
    assert_int_equal(count(body, "\"state\":\"FAILED\""), 1 + 3);
    assert_has(body, "\"next\":null");
    assert_int_equal(count_rows("bob", "/api/v1/arrays/500?limit=4"), 23);
}

TEST(an_array_of_before_with_the_same_id_is_not_counted)
{
    open_store(false);
    put_array("one", "alice", 9, BASE);
    put_array("one", "bob", 4, BASE + 50000);
    start_for_all();
    assert_has(get_as("root", "/api/v1/arrays/500", 200), "\"tasks\":4,");
    assert_int_equal(count_rows("root", "/api/v1/arrays/500?limit=4"), 4);
    assert_has(get_as("alice", "/api/v1/arrays/500", 403), "this is another's array");
}

TEST(of_arrays_of_several_clusters_one_is_to_be_named)
{
    open_store(false);
    put_array("one", "bob", 5, BASE);
    put_array("two", "bob", 6, BASE);
    put_array("three", "alice", 7, BASE);
    start_for_all();
    assert_has(get_as("root", "/api/v1/arrays/500", 400), "several clusters have an array 500");
    struct str body = get_as("bob", "/api/v1/arrays/500", 400);
    assert_has(body, "say which cluster: ?cluster=");
    assert_has(body, "?cluster=one");
    assert_has(body, "?cluster=two");
    assert_false(has(body, "three"));
    assert_has(get_as("bob", "/api/v1/arrays/500?cluster=one", 200), "\"tasks\":5,");
    assert_has(get_as("bob", "/api/v1/arrays/500?cluster=two", 200), "\"tasks\":6,");
    get_as("bob", "/api/v1/arrays/500?cluster=three", 403);
    get_as("bob", "/api/v1/arrays/500?cluster=four", 404);
    /* the only one that may be seen */
    assert_has(get_as("alice", "/api/v1/arrays/500", 200), "\"tasks\":7,");
    get_as("carl", "/api/v1/arrays/500", 403);
}

TEST(nobody_without_a_name_is_answered)
{
    keep_runs();
    start_for_all();
    for (size_t i = 0; i < API_RESOURCES; i++)
        assert_has(get(api_resources[i]->path, 403), "the proxy does not say who you are");
    assert_has(get("/api/v1/openapi.json", 403), "the proxy does not say who you are");
}

TEST(all_get_totals_but_names_only_those_who_may_see_them)
{
    struct str body;

    keep_runs();
    start_for_all();
    body = get_as("alice", "/api/v1/overview", 200);
    assert_has(body, "\"name\":\"one\",\"simulated\":false,");
    assert_has(body, "\"cpus\":{\"total\":16,\"allocated\":8,\"idle\":0,\"unusable\":8}");
    assert_has(body, "\"type\":\"a100\",\"total\":8,");
    assert_has(body, "{\"state\":\"RUNNING\",\"jobs\":2,\"cpus\":8,\"gpus\":4,");
    assert_has(body, "{\"reason\":\"Resources\",\"jobs\":2,");
    assert_has(body, "\"broken_nodes\":1,\"broken\":[{\"name\":\"n2\",\"state\":\"down\","
                     "\"reason\":\"ECC errors\",\"reason_time\":1790000000}]");
    assert_has(body, "\"users\":[{\"name\":\"alice\",\"holding\":{\"jobs\":1,\"cpus\":4,");
    assert_has(body, "\"accounts\":[]");
    assert_false(has(body, "bob"));
    assert_false(has(body, "chemistry"));
    assert_has(get_as("carol", "/api/v1/overview", 200), "\"accounts\":[{\"name\":\"physics\",");
    body = get_as("root", "/api/v1/overview", 200);
    assert_has(body, "{\"name\":\"bob\",");
    assert_has(body, "{\"name\":\"chemistry\",");
    assert_has(get_as("root", "/api/v1/overview?cluster=two", 200), "\"clusters\":[]}");
    body = get_as("nobody", "/api/v1/partitions", 200);
    assert_has(body, "\"cluster\":\"one\",\"name\":\"gpu\",\"nodes\":2,\"nodes_unusable\":1,");
    assert_has(body, "\"time_limit_seconds\":3600,\"is_default\":true,\"is_up\":true,");
    get_as("nobody", "/api/v1/clusters", 200);
    get_as("nobody", "/api/v1/nodes", 200);
}

TEST(the_queue_shows_ones_own_jobs_in_the_order_that_is_asked_for)
{
    struct str body;

    keep_runs();
    start_for_all();
    body = get_as("alice", "/api/v1/queue?sort=-priority", 200);
    assert_has(body, "\"matches\":2,\"tasks\":2,\"offset\":0,\"jobs\":[");
    assert_false(has(body, "bob"));
    assert_true(str_find_str(body, STR("\"job_id\":4,")) <
                str_find_str(body, STR("\"job_id\":1,")));
    assert_has(body, "\"gpus\":2,\"gpus_by_type\":{\"a100\":2}");
    body = get_as("root", "/api/v1/queue?sort=priority&offset=1&limit=2", 200);
    assert_has(body, "\"matches\":4,\"tasks\":4,\"offset\":1,");
    assert_false(has(body, "\"job_id\":1,"));
    assert_true(str_find_str(body, STR("\"job_id\":2,")) <
                str_find_str(body, STR("\"job_id\":3,")));
    assert_has(get_as("root", "/api/v1/queue?offset=100", 200), "\"matches\":4,\"tasks\":4,"
                                                                "\"offset\":100,\"jobs\":[]}");
    assert_has(get_as("carol", "/api/v1/queue", 200), "\"matches\":2,");
    assert_has(get_as("root", "/api/v1/queue?reason=Resources&q=BOB", 200), "\"matches\":1,");
    assert_has(get_as("root", "/api/v1/queue?sort=cpu", 400), "did you mean \\\"cpus\\\"?");
    assert_has(get_as("root", "/api/v1/queue?offset=-1", 400), "is not a whole number from 0");
    assert_has(get_as("root", "/api/v1/queue?efficiency_below=0.5", 400), "there is no parameter");
}

TEST(a_summary_is_of_oneself_or_of_an_account_that_one_coordinates)
{
    struct str body;

    keep_runs();
    start_for_all();
    body = get_as("alice", "/api/v1/users/alice/summary", 200);
    assert_has(body, "{\"user\":\"alice\",\"now\":[{\"cluster\":\"one\",\"holding\":{\"jobs\":1,");
    assert_has(body, "\"pending\":{\"jobs\":1,");
    assert_has(body, "{\"days\":1,");
    assert_has(body, "{\"days\":30,");
    assert_has(body, "\"used\":{\"jobs\":10,");
    assert_has(body,
               "\"fairshare\":[{\"cluster\":\"one\",\"account\":\"physics\",\"user\":\"alice\","
               "\"raw_shares\":1,\"factor\":0.25}]}");
    assert_has(get_as("alice", "/api/v1/users/bob/summary", 403), "this is another user");
    assert_has(get_as("alice", "/api/v1/accounts/physics/summary", 403), "this is another account");
    body = get_as("carol", "/api/v1/accounts/physics/summary", 200);
    assert_has(body, "{\"account\":\"physics\",\"now\":[");
    assert_has(body, "\"used\":{\"jobs\":15,");
    assert_has(body,
               "\"fairshare\":[{\"cluster\":\"one\",\"account\":\"physics\",\"raw_shares\":0,");
    assert_has(get_as("root", "/api/v1/users/nemo%22/summary", 404),
               "nobody has told of the user \\\"nemo\\\"\\\"");
    get_as("root", "/api/v1/users//summary", 404);
    get_as("root", "/api/v1/users/a/b/summary", 404);
}

TEST(a_search_finds_what_may_be_seen_the_best_first)
{
    struct str body;

    keep_runs();
    start_for_all();
    body = get_as("root", "/api/v1/search?q=B", 200);
    assert_has(body, "{\"kind\":\"user\",\"name\":\"bob\",\"path\":\"/user/bob\"}");
    assert_has(get_as("alice", "/api/v1/search?q=bob", 200), "{\"results\":[]}");
    body = get_as("alice", "/api/v1/search?q=n", 200);
    assert_has(body, "{\"kind\":\"node\",\"name\":\"n1\",\"path\":\"/node/n1\"}");
    assert_true(str_find_str(body, STR("\"n2\"")) < str_find_str(body, STR("\"one\"")));
    assert_has(get_as("alice", "/api/v1/search?q=1", 200),
               "{\"results\":[{\"kind\":\"job\",\"name\":\"1\",\"path\":\"/job/1\"}");
    assert_false(has(get_as("alice", "/api/v1/search?q=2", 200), "\"job\""));
    /* kept, but no longer in the queue */
    assert_has(get_as("alice", "/api/v1/search?q=100", 200), "\"path\":\"/job/100\"");
    assert_has(get_as("carol", "/api/v1/search?q=100", 200), "{\"results\":[]}");
    assert_int_equal(count(get_as("root", "/api/v1/search?q=n&limit=1", 200), "\"kind\""), 1);
    assert_has(get_as("root", "/api/v1/search", 400), "what is looked for?");
    assert_has(get_as("root", "/api/v1/search?q=%20", 400), "what is looked for?");
}

TEST(a_reservation_is_for_whom_one_may_see)
{
    struct str body;

    open_store(false);
    start_for_all();
    body = get_as("alice", "/api/v1/reservations", 200);
    assert_has(body, "\"cluster\":\"one\",\"name\":\"course\",\"is_active\":true,");
    assert_has(body, "\"users\":\"alice\"}");
    assert_has(get_as("carol", "/api/v1/reservations", 200), "\"accounts\":\"physics\"}");
    assert_has(get_as("root", "/api/v1/reservations", 200),
               "\"users\":\"alice,bob\",\"accounts\":\"chemistry,physics\"}");
}

static void put_node(void)
{
    struct node_record record = { .name = STR("n2"),
                                  .state = STR("down"),
                                  .partitions = STR("gpu"),
                                  .reservation = STR("course"),
                                  .cpus = 8 };

    must(store_begin(store, &err));
    must(store_put_nodes(store, STR("one"), BASE, &record, 1, &err));
    must(store_commit(store, &err));
}

TEST(what_slurm_conf_keeps_private_is_for_staff)
{
    static const struct {
        enum private_data what;
        const char *path, *text;
        unsigned status;
    } rows[] = {
        { PRIVATE_NODES, "/api/v1/nodes", "\"n2\"", 403 },
        { PRIVATE_NODES, "/api/v1/overview", "\"n2\"", 200 },
        { PRIVATE_NODES, "/api/v1/reservations", "\"n2\"", 200 },
        { PRIVATE_NODES, "/api/v1/search?q=n2", "\"n2\"", 200 },
        { PRIVATE_PARTITIONS, "/api/v1/partitions", "\"gpu\"", 200 },
        { PRIVATE_PARTITIONS, "/api/v1/search?q=gpu", "\"gpu\"", 200 },
        { PRIVATE_RESERVATIONS, "/api/v1/reservations", "\"course\"", 200 },
        { PRIVATE_RESERVATIONS, "/api/v1/search?q=course", "\"course\"", 200 },
    };

    open_store(false);
    put_node();
    start_for_all();
    for (size_t i = 0; i < COUNT(rows); i++) {
        private_data = 0;
        assert_has(get_as("alice", rows[i].path, 200), rows[i].text);
        private_data = 1u << rows[i].what;
        assert_has(get_as("root", rows[i].path, 200), rows[i].text);
        assert_false(has(get_as("alice", rows[i].path, rows[i].status), rows[i].text));
    }
    get_as("alice", "/api/v1/nodes?cluster=two", 403); /* of which nobody knows what it keeps */
    private_data = 1u << PRIVATE_PARTITIONS | 1u << PRIVATE_RESERVATIONS;
    assert_has(get_as("root", "/api/v1/nodes", 200), "\"partitions\":\"gpu\"");
    assert_has(get_as("root", "/api/v1/nodes", 200), "\"reservation\":\"course\"");
    assert_false(has(get_as("alice", "/api/v1/nodes", 200), "\"gpu\""));
    assert_false(has(get_as("alice", "/api/v1/nodes", 200), "course"));
    get_as("alice", "/api/v1/nodes?partition=gpu", 403);
}

TEST(until_it_is_known_what_is_private_only_staff_is_told)
{
    open_store(false);
    put_node();
    start_for_all();
    private_data = UNTOLD;
    get_as("alice", "/api/v1/nodes", 403);
    assert_has(get_as("alice", "/api/v1/partitions", 200), "\"partitions\":[]");
    assert_has(get_as("root", "/api/v1/nodes", 200), "\"n2\"");
}

TEST(health_needs_no_store_and_tells_staff_more)
{
    struct str body;

    start_for_all();
    body = get_as("alice", "/api/v1/health", 200);
    assert_has(body, "\"store_is_readable\":false,");
    assert_has(body, "{\"kind\":\"jobs\",\"time\":1790100000,\"age_seconds\":0,");
    assert_false(has(body, "secret"));
    assert_has(get_as("root", "/api/v1/health", 200), "\"sonde\":{\"facts\":{\"secret\":1}}");
    /* What needs no store is there without one. */
    get_as("alice", "/api/v1/overview", 200);
    get_as("alice", "/api/v1/users/alice/summary", 200);
    get_as("alice", "/api/v1/jobs", 503);
}

TEST(without_boards_the_present_is_404_and_while_slurm_is_away_503)
{
    static const char *const paths[] = { "/api/v1/overview", "/api/v1/queue", "/api/v1/partitions",
                                         "/api/v1/reservations", "/api/v1/search?q=x" };

    open_store(false);
    put_one("one", run(7, BASE));
    start();
    for (size_t i = 0; i < COUNT(paths); i++)
        assert_has(get(paths[i], 404), "nothing is told here of what the clusters do");
    assert_has(get("/api/v1/users/alice/summary", 200), "{\"user\":\"alice\",\"periods\":[");
    get("/api/v1/health", 200);
    client_close(&client);
    http_stop(server);
    api_free(api);
    start_api((struct api_config){ .boards = { give_none, NULL } }, NULL);
    for (size_t i = 0; i < COUNT(paths); i++)
        assert_false(has(get(paths[i], 503), "10.0.0.1"));
    get("/api/v1/users/alice/summary", 200);
}

static sem_t gate_reached, gate_opened;

static struct board *give_board_at_gate(void *ctx, int64_t deadline_ns, struct err *why)
{
    sem_post(&gate_reached);
    sem_wait(&gate_opened);
    return give_board(ctx, deadline_ns, why);
}

static uint64_t count_requests(void)
{
    struct http_stats stats;

    http_stats(server, &stats);
    return stats.requests;
}

/* Of three workers a viewer gets two, of twenty places seven. */
TEST(who_asks_for_too_much_at_once_is_told_so_and_others_are_not)
{
    enum { SERVED = 9 };
    static struct client many[SERVED];

    sem_init(&gate_reached, 0, 0);
    sem_init(&gate_opened, 0, 0);
    keep_runs();
    start_api((struct api_config){ .boards = { give_board_at_gate, NULL },
                                   .viewer = { .auth = VIEWER_PROXY,
                                               .header = STR("X-Remote-User"),
                                               .proxies = &proxy,
                                               .n_proxies = 1 } },
              NULL);
    for (int i = 0; i < SERVED; i++) {
        client_open(&many[i], http_address(server, 0));
        client_send_text(&many[i], "GET /api/v1/overview HTTP/1.1\r\nHost: x\r\n"
                                   "X-Remote-User: alice\r\n\r\n");
        if (i < 2)
            sem_wait(&gate_reached);
        wait_until_true(count_requests() == (uint64_t)i + 1);
    }
    assert_has(get_as("alice", "/api/v1/overview", 503), "{\"error\":\"too much is asked for");
    get_as("bob", "/api/v1/jobs", 200);
    for (int i = 0; i < SERVED; i++)
        sem_post(&gate_opened);
    for (int i = 0; i < SERVED; i++) {
        assert_int_equal(client_read(&many[i], true).status, 200);
        client_close(&many[i]);
    }
    get_as("alice", "/api/v1/jobs", 200);
}

TEST(promises_are_told_to_who_coordinates_the_account)
{
    open_store(false);
    write_file(allocations, "clusters:\n  one:\n    physics: { cpu_years: 5 }\n"
                            "    chemistry: { cpu_years: 6 }\n");
    start_for_all();
    assert_int_equal(count(get_as("root", "/api/v1/constants", 200), "\"account\""), 2);
    assert_has(get_as("carol", "/api/v1/constants", 200), "\"constants\":[{\"cluster\":\"one\","
                                                          "\"account\":\"physics\",");
    assert_int_equal(count(get_as("carol", "/api/v1/constants", 200), "\"account\""), 1);
    assert_has(get_as("alice", "/api/v1/constants", 200), "{\"constants\":[]}");
}
