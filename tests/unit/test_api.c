/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The API over the real server and a real store. */
#include "api_fixture.h"

#include "web/api_key.h"
#include "web/api_time.h"

#include <crypt.h>
#include <inttypes.h>

TEST(a_run_has_all_that_is_known_of_it_and_nothing_else)
{
    struct job_record bare;

    open_store(false);
    put_one("one", run(7, BASE));
    job_record_clear(&bare);
    bare.id = 8;
    bare.submit_time = BASE - 1;
    bare.as_of = NOW;
    bare.tasks = 1;
    bare.state = (struct job_state){ JOB_PENDING, 0 };
    put_one("one", bare);
    start();
    struct str body = get("/api/v1/jobs?job=7", 200);
    assert_has(body, "\"cluster\":\"one\",\"job_id\":7,\"submit_time\":1790000000,");
    assert_has(body, "\"user\":\"alice\",\"account\":\"physics\",\"partition\":\"gpu\"");
    assert_has(body, "\"state\":\"COMPLETED\"");
    assert_has(body, "\"wait_seconds\":60,\"elapsed_seconds\":100,");
    assert_has(body, "\"time_limit_seconds\":600,\"exit_code\":0,\"exit_signal\":0,");
    assert_has(body, "\"cpus\":4,");
    assert_has(body, "\"gpus\":2,\"gpus_by_type\":{\"a100\":2},\"billing\":6,");
    assert_has(body, "\"cpu_seconds\":200,");
    assert_has(body, "\"cpu_efficiency\":0.5,");
    assert_has(body, "\"origin\":\"accounted\"");
    assert_has(body, "}],\"next\":null}");
    assert_false(has(body, "simulated"));
    body = get("/api/v1/jobs?job=8", 200);
    assert_has(body, "\"job_id\":8,");
    assert_has(body, "\"origin\":\"seen\"");
    assert_false(has(body, "\"user\""));
    assert_false(has(body, "gpus"));
    assert_false(has(body, "_seconds\":0"));
    assert_false(has(body, "start_time"));
    assert_false(has(body, "efficiency"));
    assert_false(has(body, "exit"));
    assert_false(has(body, "het_offset"));
    assert_false(has(body, "18446744073709551615"));
    assert_false(has(body, "4294967295"));
}

TEST(pages_give_each_run_once_newest_first_while_others_are_added)
{
    struct job_record records[25];
    char path[1200] = "/api/v1/jobs?limit=4&cluster=one,two&from=2026-09-01", key[API_KEY_MAX];
    uint64_t given = 0;
    uint32_t added = 100;

    open_store(false);
    /* All of one moment, so that ids and clusters tell the order. */
    for (uint32_t i = 0; i < COUNT(records); i++)
        records[i] = run(1 + i, BASE);
    put("one", records, COUNT(records));
    put("two", records, COUNT(records));
    start();
    for (size_t page = 0;; page++) {
        struct reply reply = client_get(&client, path);
        struct str body = reply.body;

        assert_int_equal(reply.status, 200);
        for (uint32_t i = 0; i < COUNT(records); i++)
            for (unsigned cluster = 0; cluster < 2; cluster++) {
                char part[60];

                snprintf(part, sizeof(part), "\"cluster\":\"%s\",\"job_id\":%u,",
                         cluster ? "two" : "one", 1 + i);
                if (!has(body, part))
                    continue;
                assert_false(given & UINT64_C(1) << (2 * i + cluster));
                given |= UINT64_C(1) << (2 * i + cluster);
            }
        assert_true(page < 20);
        if (has(body, "\"next\":null")) {
            assert_int_equal(reply_header(&reply, "Link").n, 0);
            break;
        }
        copy_member(body, "next", key, sizeof(key));
        snprintf(path, sizeof(path),
                 "/api/v1/jobs?limit=4&cluster=one%%2Ctwo&from=2026-09-01&after=%s", key);
        struct str link = reply_header(&reply, "Link");
        assert_true(str_starts(link, STR("<")));
        assert_true(str_ends(link, STR(">; rel=\"next\"")));
        assert_true(str_eq(str_of(path), (struct str){ link.p + 1, strlen(path) }));
        put_one("one", run(added++, NOW - 1000));
    }
    assert_int_equal(given, (UINT64_C(1) << 50) - 1);
}

TEST(a_hostile_name_is_a_text_and_no_more)
{
    static const char name[] = "a\"b\\c\n\x01</script><script>alert(1)</script>\xff\xfe{\"x\":[";
    struct job_record record = run(7, BASE);

    open_store(false);
    record.name = str_of(name);
    put_one("one", record);
    start();
    struct str body = get("/api/v1/jobs", 200);
    assert_has(body, "\"name\":\"a\\\"b\\\\c\\u000a\\u0001");
    assert_has(body, "\xef\xbf\xbd");
    assert_false(has(body, "\xff"));
}

TEST(one_run_is_told_whole)
{
    const struct record_extra extra[] = { { STR_INIT("WorkDir"), STR_INIT("/home/\"a\"") } };
    const struct final_record final = {
        .job_id = 7,
        .node = STR("n1"),
        .begin_time = BASE + 1060,
        .end_time = BASE + 1160,
        .document = STR("{\"cpu_seconds\": 199.5, \"by\": [1, null, {\"a\": \"\\u00e9\"}]}"),
    };
    struct job_record first = run(7, BASE), second = run(7, BASE + 1000), old = run(7, BASE / 2);
    char key[API_KEY_MAX], path[API_KEY_MAX + 40];

    open_store(false);
    first.state = (struct job_state){ JOB_NODE_FAIL, 0 };
    second.restarts = 1;
    second.extra = extra;
    second.n_extra = 1;
    put_one("one", old);
    put_one("one", first);
    put_one("one", second);
    put_one("two", second);
    must(store_begin(store, &err));
    must(store_put_final(store, STR("one"), &final, &err));
    must(store_commit(store, &err));
    start();
    copy_member(get("/api/v1/jobs?cluster=one&limit=1", 200), "key", key, sizeof(key));
    snprintf(path, sizeof(path), "/api/v1/jobs/%s", key);
    struct str body = get(path, 200);
    assert_true(str_starts(body, STR("{\"job\":{\"key\":\"")));
    assert_has(body, "\"submit_time\":1790001000,");
    assert_has(body, "\"tres\":\"cpu=4,mem=8G,node=2,billing=6,gres/gpu=2,gres/gpu:a100=2\"");
    assert_has(body, "\"extra\":{\"WorkDir\":\"/home/\\\"a\\\"\"}}");
    assert_has(body, "\"life\":[{\"time\":1790001000,\"state\":\"PENDING\"}");
    assert_has(body, "{\"time\":1790001060,\"state\":\"RUNNING\"}");
    assert_has(body, "{\"time\":1790001160,\"state\":\"COMPLETED\"}]");
    assert_has(body, "\"restarts\":1,\"state\":\"COMPLETED\"");
    assert_has(body, "\"agents\":[{\"node\":\"n1\",\"begin_time\":1790001060,"
                     "\"end_time\":1790001160,"
                     "\"counted\":{\"cpu_seconds\":199.5,\"by\":[1,null,{\"a\":\"\xc3\xa9\"}]}}]}");
    assert_has(body, "\"runs\":[");
    assert_has(get("/api/v1/jobs/cjE6MjpjbHVzdGVy", 404), "there is no such run");
    assert_has(get("/api/v1/jobs/nonsense", 404), "this is no key");
    assert_has(get("/api/v1/jobs/", 404), "this is no key");
    assert_has(get("/api/v1/jobs/x/y", 404), "this is no key");
    snprintf(path, sizeof(path), "/api/v1/jobs/%s?cluster=one", key);
    assert_has(get(path, 400), "there is no parameter \\\"cluster\\\" here, nor any other");
}

TEST(a_query_that_cannot_be_read_is_refused_with_what_to_write)
{
    static const struct {
        const char *query, *sentence;
    } mistakes[] = {
        { "jobs?acount=x",
          "there is no parameter \\\"acount\\\" here; did you mean \\\"account\\\"?" },
        { "jobs?whatever=x", "there are cluster, user, account" },
        { "jobs?cluster=", "cluster has an empty value: leave it out, or write cluster=NAME" },
        { "jobs?user", "user has an empty value" },
        { "jobs?user=a,,b", "user has an empty value" },
        { "jobs?limit=0", "limit: \\\"0\\\" is not a number from 1 to 1000" },
        { "jobs?limit=1001", "is not a number from 1 to 1000" },
        { "jobs?limit=5&limit=6", "limit is given twice" },
        { "jobs?state=COMPLETE", "did you mean \\\"COMPLETED\\\"?" },
        { "jobs?state=%1b%5b2J", "there is no \\\"\\\\x1b[2J\\\"" },
        { "jobs?from=yesterday", "is not a time: write 2026-10-01" },
        { "jobs?from=2026-02-30", "is not a time" },
        { "jobs?from=2026-10-02&to=2026-10-01", "from must lie before to" },
        { "jobs?ended=yes", "is not true or false" },
        { "jobs?ended=true", "ended=true needs a time" },
        { "jobs?efficiency_below=25", "is not a number from 0 to 1" },
        { "jobs?efficiency_above=nan", "is not a number from 0 to 1" },
        { "jobs?min_gpus=-1", "is not a whole number" },
        { "jobs?min_seconds=1h", "is not a number of whole seconds" },
        { "jobs?job=x", "\\\"x\\\" is no job: write 123" },
        { "jobs?job=0", "is no job" },
        { "jobs?job=1,2_3", "only by their plain ids" },
        { "jobs?job=1_2&job=3", "only by their plain ids" },
        { "jobs?job=1-2", "is no job" },
        { "jobs?job=4294967295", "is no job" },
        { "jobs?after=abc", "is not a key" },
        { "jobs?node=n%5b1-", "node: " },
        { "jobs?node=n%5b0-99999999%5d", "node: " },
        { "nodes?after=cjE6MjpjbHVzdGVy", "is not a key" },
        { "nodes?state=drian", "did you mean \\\"drain\\\"?" },
        { "usage?group_by=acount", "\\\"acount\\\" is none of cluster, account, user" },
        { "usage?group_by=user,user", "twice" },
        { "usage?from=2100-01-01", "not in the future" },
        { "usage?limit=5", "there is no parameter \\\"limit\\\" here" },
        { "clusters?name=x", "nor any other" },
        { "constants?user=x", "there is no parameter" },
    };
    char path[200];

    open_store(false);
    start();
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        snprintf(path, sizeof(path), "/api/v1/%s", mistakes[i].query);
        struct str body = get(path, 400);
        assert_true(str_starts(body, STR("{\"error\":\"")));
        assert_has(body, mistakes[i].sentence);
    }
}

TEST(filters_let_pass_what_they_name)
{
    struct job_record other = run(8, BASE + 1), task = run(20, BASE + 2), part = run(31, BASE + 3);
    static const struct {
        const char *query;
        size_t n;
    } questions[] = {
        { "cluster=one", 3 },
        { "cluster=one,two", 4 },
        { "cluster=one&cluster=two", 4 },
        { "user=bob", 1 },
        { "user=alice,bob", 4 },
        { "account=maths", 1 },
        { "partition=cpu", 1 },
        { "qos=high", 1 },
        { "state=FAILED", 1 },
        { "state=f,CD", 4 },
        { "node=n%5b1-3%5d", 3 },
        { "node=m9", 1 },
        { "gpu_type=a100", 3 },
        { "gpu_type=h100", 0 },
        { "name=a,%20b", 1 },
        { "name=a", 0 },
        { "reservation=res", 1 },
        { "job=8", 1 },
        { "job=19", 1 },
        { "job=19_7", 1 },
        { "job=19_8", 0 },
        { "job=30%2B1", 1 },
        { "job=30+1", 1 },
        { "job=30%2B2", 0 },
        { "job=7,8", 2 },
        { "min_cpus=5", 1 },
        { "min_gpus=1", 3 },
        { "min_seconds=101", 1 },
        { "efficiency_below=0.3", 1 },
        { "efficiency_above=0.3", 3 },
        { "to=1790000000", 0 },
        { "from=1790000163", 2 },
        { "from=1790000163&to=1790000200&ended=true", 1 },
        { "user=bob&account=physics", 0 },
    };
    char path[200];

    open_store(false);
    put_one("one", run(7, BASE));
    other.user = STR("bob");
    other.account = STR("maths");
    other.partition = STR("cpu");
    other.qos = STR("high");
    other.state = (struct job_state){ JOB_FAILED, 0 };
    other.nodes = STR("m9");
    other.name = STR("a, b");
    other.reservation = STR("res");
    other.tres = STR("cpu=8,mem=8G,node=1,billing=8");
    other.cpus = 8;
    other.end_time += 100;
    put_one("one", other);
    task.array_job_id = 19;
    task.array_task_id = 7;
    put_one("one", task);
    part.het_job_id = 30;
    part.het_offset = 1;
    put_one("two", part);
    start();
    for (size_t i = 0; i < COUNT(questions); i++) {
        snprintf(path, sizeof(path), "/api/v1/jobs?%s", questions[i].query);
        struct str body = get(path, 200);
        if (count(body, "\"job_id\":") != questions[i].n)
            fail_msg("%s: %.*s", questions[i].query, STR_ARG(body));
    }
}

TEST(usage_is_grouped_and_its_total_counts_each_run_once)
{
    struct job_record both = run(8, BASE);

    open_store(false);
    put_one("one", run(7, BASE));
    both.tres = STR("cpu=4,mem=8G,node=1,billing=4,gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1");
    put_one("one", both);
    start();
    struct str body = get("/api/v1/usage?group_by=account,gpu_type&from=1790000000", 200);
    assert_true(str_starts(body, STR("{\"from\":1790000000,\"to\":1790100000,\"rows\":[{"
                                     "\"account\":\"physics\",\"gpu_type\":\"a100\",\"jobs\":2,")));
    assert_has(body, "\"gpu_type\":\"v100\",\"jobs\":1,");
    assert_has(body, "\"total\":{\"jobs\":2,\"started\":2,\"ended\":2,\"cpu_seconds\":800,"
                     "\"gpu_seconds\":500,\"billing_seconds\":1000,");
    assert_has(body, "\"mean_wait_seconds\":60,\"cpu_efficiency\":0.5}}");
    /* The part that lies in the time; without groups, one row. */
    body = get("/api/v1/usage?from=1790000110&to=1790000120&job=7", 200);
    assert_has(body, "\"from\":1790000110,\"to\":1790000120,");
    assert_int_equal(count(body, "\"cpu_seconds\":40,\"gpu_seconds\":20,"), 2);
    assert_false(has(body, "mean_wait_seconds"));
    /* The time that is used if none is told. */
    body = get("/api/v1/usage?to=2100-01-01", 200);
    assert_has(body, "\"from\":1787508000,\"to\":1790100000,");
    body = get("/api/v1/usage?account=nobody&group_by=user", 200);
    assert_has(body, "\"rows\":[],\"total\":{\"jobs\":0,");
}

static void put_nodes(size_t n)
{
    struct node_record records[10];
    char names[10][10];

    assert_true(n <= COUNT(records));
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof(names[i]), "n%zu", i);
        records[i] = (struct node_record){
            .name = str_of(names[i]),
            .state = i % 2 ? STR("idle+drain") : STR("mixed"),
            .partitions = STR("gpu,cpu"),
            .reason = i % 2 ? STR("bad \"disk\"") : STR(""),
            .cpus = 8,
            .cpus_alloc = MODEL_UNKNOWN_U32,
            .cpus_idle = MODEL_UNKNOWN_U32,
            .cpus_other = 0,
            .cpu_load = NAN,
            .memory_bytes = 1 << 30,
            .memory_alloc_bytes = MODEL_UNKNOWN_U64,
            .memory_free_bytes = MODEL_UNKNOWN_U64,
        };
    }
    must(store_begin(store, &err));
    must(store_put_nodes(store, STR("one"), BASE, records, n, &err));
    must(store_commit(store, &err));
}

TEST(a_node_has_its_gres_by_name_and_type)
{
    const struct node_record record = {
        .name = STR("cn-a006"),
        .state = STR("mixed"),
        .gres = STR("gpu:rtx8000:8(S:0-1),tpu:0"),
        .gres_used = STR("gpu:rtx8000:6(IDX:0-5),tpu:0"),
    };

    open_store(false);
    must(store_begin(store, &err));
    must(store_put_nodes(store, STR("one"), BASE, &record, 1, &err));
    must(store_commit(store, &err));
    start();
    assert_has(get("/api/v1/nodes", 200),
               "\"gres_by_type\":["
               "{\"name\":\"gpu\",\"type\":\"rtx8000\",\"total\":8,\"allocated\":6},"
               "{\"name\":\"tpu\",\"total\":0,\"allocated\":0}]}");
}

TEST(nodes_and_clusters_are_listed)
{
    char key[API_KEY_MAX], path[API_KEY_MAX + 60];

    open_store(false);
    put_one("one", run(7, BASE));
    put_nodes(5);
    start();
    struct str body = get("/api/v1/nodes?limit=2", 200);
    assert_int_equal(count(body, "\"name\":"), 2);
    assert_has(body, "{\"cluster\":\"one\",\"name\":\"n0\",\"seen_time\":1790000000,"
                     "\"state\":\"mixed\",\"partitions\":\"gpu,cpu\",\"cpus\":8,\"cpus_other\":0,"
                     "\"memory_bytes\":1073741824}");
    assert_has(body, "\"reason\":\"bad \\\"disk\\\"\"");
    copy_member(body, "next", key, sizeof(key));
    snprintf(path, sizeof(path), "/api/v1/nodes?limit=3&after=%s", key);
    body = get(path, 200);
    assert_int_equal(count(body, "\"name\":"), 3);
    assert_has(body, "\"name\":\"n2\"");
    assert_has(body, "\"next\":null}");
    assert_int_equal(count(get("/api/v1/nodes?state=DRAIN", 200), "\"name\":"), 2);
    assert_int_equal(count(get("/api/v1/nodes?name=n%5b1-2%5d", 200), "\"name\":"), 2);
    assert_int_equal(count(get("/api/v1/nodes?cluster=two", 200), "\"name\":"), 0);
    assert_int_equal(count(get("/api/v1/nodes?partition=cpu", 200), "\"name\":"), 5);
    body = get("/api/v1/clusters", 200);
    assert_has(body, "{\"clusters\":[{\"name\":\"one\",\"runs\":1,\"nodes\":5,");
    assert_has(body, "\"first_submit_time\":1790000000");
    assert_false(has(body, "accounted"));
}

TEST(constants_are_those_of_the_file_at_the_moment)
{
    start(); /* without a store */
    assert_has(get("/api/v1/constants", 503), "the file of allocations cannot be read");
    write_file(allocations, "clusters:\n  one:\n    physics: { gpu_years: 12, students: 3 }\n"
                            "    maths: { cpu_years: 1.5 }\n");
    struct str body = get("/api/v1/constants", 200);
    assert_has(body, "{\"cluster\":\"one\",\"account\":\"physics\",\"gpu_years\":12,"
                     "\"students\":3}");
    assert_has(body, "\"cpu_years\":1.5}");
    body = get("/api/v1/constants?account=maths", 200);
    assert_int_equal(count(body, "\"account\":"), 1);
    assert_int_equal(count(get("/api/v1/constants?cluster=two", 200), "\"account\":"), 0);
    open_store(true);
    assert_true(
        str_starts(get("/api/v1/constants", 200), STR("{\"simulated\":true,\"constants\"")));
}

TEST(a_store_that_goes_is_told_and_one_that_comes_is_used)
{
    start();
    struct reply reply = client_get(&client, "/api/v1/jobs");
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "10");
    /* Where it should be is for the log. */
    assert_false(has(reply.body, test_dir()));
    open_store(false);
    put_one("one", run(7, BASE));
    assert_has(get("/api/v1/jobs", 200), "\"job_id\":7,");
    remove_store();
    assert_has(get("/api/v1/jobs", 503), "the store cannot be read at the moment");
    /* Another in its place: nothing of the first is told. */
    open_store(true);
    put_one("one", run(8, BASE));
    struct str body = get("/api/v1/jobs", 200);
    assert_true(str_starts(body, STR("{\"simulated\":true,\"jobs\":[")));
    assert_has(body, "\"job_id\":8,");
    assert_false(has(body, "\"job_id\":7,"));
    remove_store();
    write_file(store_file, "this is no database, whatever its name says; it is a text\n");
    assert_has(get("/api/v1/clusters", 503), "the store cannot be read");
}

TEST(an_answer_that_takes_too_long_is_given_up)
{
    open_store(false);
    put_one("one", run(7, BASE));
    start_with(1, NULL);
    assert_has(get("/api/v1/jobs", 504), "this took too long");
    assert_has(get("/api/v1/usage", 504), "this took too long");
}

TEST(an_answer_that_would_be_too_large_is_refused, .is_bulk = true)
{
    struct job_record record;
    char bytes[4000];
    const struct str text = { bytes, sizeof(bytes) };

    open_store(false);
    memset(bytes, '\x01', sizeof(bytes)); /* six each, escaped */
    for (uint32_t id = 1; id <= 120; id++) {
        record = run(id, BASE);
        record.name = record.user = record.account = record.partition = record.qos =
            record.reservation = record.reason = text;
        put_one("one", record);
    }
    start();
    assert_has(get("/api/v1/jobs?limit=1000", 413), "smaller limit");
    assert_has(get("/api/v1/jobs?limit=1", 200), "\"job_id\":120,");
}

TEST(only_reading_methods_are_answered)
{
    open_store(false);
    start();
    client_send_text(&client, "HEAD /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n");
    struct reply reply = client_read(&client, false);
    assert_int_equal(reply.status, 200);
    client_send_text(&client, "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 405);
    assert_str(reply_header(&reply, "Allow"), "GET, HEAD");
    assert_has(get("/api/v2/jobs", 404), "there is nothing at this path");
    assert_has(get("/api/v1/job", 404), "there is nothing at this path");
}

TEST(nobody_is_answered_without_a_name_unless_that_was_allowed)
{
    static struct crypt_data data;
    char salt[CRYPT_GENSALT_OUTPUT_SIZE], text[300];

    open_store(false);
    start();
    api_set_access(api, false, false);
    assert_has(get("/api/v1/jobs", 403), "this is not for everybody");
    assert_has(get("/api", 403), "this is not for everybody");
    client_close(&client);
    http_stop(server);
    api_free(api);

    crypt_gensalt_rn("$2b$", 4, "0123456789abcdef", 16, salt, sizeof(salt));
    snprintf(text, sizeof(text), "basic_auth_users:\n  anna: %s\n", crypt_r("secret", salt, &data));
    start_with(TEST_DEADLINE, write_file("web.yml", text));
    api_set_access(api, false, false);
    assert_int_equal(client_get(&client, "/api/v1/jobs").status, 401);
    assert_int_equal(
        client_get_with(&client, "/api/v1/jobs", "Authorization: Basic YW5uYTpzZWNyZXQ=\r\n")
            .status,
        200);
}

TEST(only_who_calls_it_by_a_name_of_its_own_is_answered_where_that_is_checked)
{
    static const struct {
        const char *host;
        unsigned status;
    } cases[] = {
        { "localhost", 200 },
        { "LocalHost:8080", 200 },
        { "127.0.0.1", 200 },
        { "127.0.0.1:8080", 200 },
        { "127.0.0.2:1", 200 },
        { "[::1]:8080", 200 },
        { "[::1]", 200 },
        { "portal.site", 200 },
        { "PORTAL.site:443", 200 },
        { "", 200 },
        { "evil.example", 421 },
        { "evil.example:8080", 421 },
        { "localhost.evil", 421 },
        { "127.0.0.1.evil", 421 },
        { "128.0.0.1", 421 },
        { "[::1].evil", 421 },
        { "[::2]", 421 },
        { "xlocalhost", 421 },
        { "portal.site.evil", 421 },
        { "[::1", 421 },
        { "127.0.0.1@evil:80", 421 },
        { "127.0.0.1:8080.evil", 421 },
    };

    open_store(false);
    start();
    api_set_access(api, true, true);
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char *const paths[] = { "/api", "/api/v1/jobs" };
        char request[200];
        struct reply reply;

        for (size_t k = 0; k < COUNT(paths); k++) {
            snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", paths[k],
                     cases[i].host);
            client_send_text(&client, request);
            reply = client_read(&client, true);
            if (reply.status != cases[i].status)
                fail_msg("%s of \"%s\" is %u", paths[k], cases[i].host, reply.status);
            if (reply.status == 421)
                assert_has(reply.body, "--web.host");
        }
    }
    api_set_access(api, true, false);
    assert_int_equal(client_get(&client, "/api/v1/jobs").status, 200); /* as "x" */
}

TEST(whether_the_store_can_be_read_is_told_and_why_not_is_logged_once)
{
    start();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api_check_store(api, &err), -ENOENT);
        assert_contains(err.text, "the store cannot be read at the moment");
        assert_null(strstr(err.text, test_dir()));
    }
    assert_int_equal(count(logged(), "answers are 503 until it can"), 1);
    open_store(false);
    assert_int_equal(api_check_store(api, &err), 0);
    remove_store();
    assert_int_equal(api_check_store(api, &err), -ENOENT);
    assert_int_equal(count(logged(), "answers are 503 until it can"), 2);
}

static void *ask_often(void *arg)
{
    struct client *own = heap_alloc(sizeof(*own));
    size_t *n_right = arg;

    client_open(own, http_address(server, 0));
    for (size_t i = 0; i < 30; i++)
        *n_right += client_get(own, "/api/v1/jobs?limit=3").status == 200;
    client_close(own);
    free(own);
    return NULL;
}

TEST(many_ask_at_once_while_jobs_are_written)
{
    pthread_t threads[6];
    size_t n_right[COUNT(threads)] = { 0 };

    open_store(false);
    put_one("one", run(7, BASE));
    start();
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &n_right[i]), 0);
    for (uint32_t id = 100; id < 120; id++)
        put_one("one", run(id, BASE + id));
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(n_right[i], 30);
    }
}

TEST(keys_have_one_spelling)
{
    static const char *const wrong[] = {
        "",        "r",      "cg",         "abc=", "cjE6Mjpj=", "cjA6Mjpj",  "cjE6MDpj",
        "cjE6Mjo", "cjE6Mg", "cjAxOjI6Yw", "bmM",  "!",         "cj E6Mjpj", "ci0xOjI6Yw"
    };
    const struct run_key keys[] = {
        { 1790000000, 42, STR_INIT("mila") },
        { 1, 1, STR_INIT("c:d\xff/é") },
        { INT64_C(253402300799), UINT32_MAX - 1, STR_INIT("x") },
    };
    const struct api_node_key node = { STR_INIT("mila"), STR_INIT("cn-a001") };
    struct arena arena = { 0 };
    struct api_node_key node_back;
    struct run_key back;
    struct buf text;

    buf_init(&text, API_KEY_MAX);
    for (size_t i = 0; i < COUNT(keys); i++) {
        buf_reset(&text);
        api_key_put_run(&text, &keys[i]);
        assert_true(api_key_read_run(buf_str(&text), &arena, &back));
        assert_int_equal(back.submit_time, keys[i].submit_time);
        assert_int_equal(back.job_id, keys[i].job_id);
        assert_true(str_eq(back.cluster, keys[i].cluster));
        assert_false(api_key_read_node(buf_str(&text), &arena, &node_back));
    }
    buf_reset(&text);
    api_key_put_node(&text, &node);
    assert_true(api_key_read_node(buf_str(&text), &arena, &node_back));
    assert_str(node_back.cluster, "mila");
    assert_str(node_back.name, "cn-a001");
    assert_false(api_key_read_run(buf_str(&text), &arena, &back));
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (api_key_read_run(str_of(wrong[i]), &arena, &back))
            fail_msg("\"%s\" was taken", wrong[i]);
    buf_free(&text);
    arena_clear(&arena);
}

TEST(times_are_utc_or_say_their_zone)
{
    static const struct {
        const char *text;
        int64_t time;
    } right[] = {
        { "2026-10-01", 1790812800 },
        { "2026-10-01T00:00Z", 1790812800 },
        { "2026-10-01T12:30:05Z", 1790857805 },
        { "2026-10-01t12:30:05z", 1790857805 },
        { "2026-10-01T14:30:05+02:00", 1790857805 },
        { "2026-10-01T14:30:05 02:00", 1790857805 },
        { "2026-10-01T07:00:05-05:30", 1790857805 },
        { "2028-02-29", 1835395200 },
        { "1790857805", 1790857805 },
    };
    static const char *const wrong[] = {
        "",
        "2026",
        "20261001",
        "2026-13-01",
        "2026-02-29",
        "2026-10-1",
        "2026-10-00",
        "2026-10-01T",
        "2026-10-01T12:30",
        "2026-10-01T24:00Z",
        "2026-10-01 ",
        "-1",
        "2026-10-01T1:30Z",
        "1970-01-01",
        "99999999999999",
        "now",
        "+026-10-01",
        "2026-10-01T12:30:60Z",
    };
    int64_t time;

    for (size_t i = 0; i < COUNT(right); i++) {
        assert_true(api_time_read(str_of(right[i].text), &time));
        assert_int_equal(time, right[i].time);
    }
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (api_time_read(str_of(wrong[i]), &time))
            fail_msg("\"%s\" was taken for %" PRId64, wrong[i], time);
}

TEST(a_document_comes_out_as_json_or_not_at_all)
{
    static const struct {
        const char *in, *out;
    } documents[] = {
        { "{}", "{}" },
        { " { \"a\" : [ 1 , -2.5e3 , true, false, null, \"\\ud83d\" ] } ",
          "{\"a\":[1,-2.5e3,true,false,null,\"\xef\xbf\xbd\"]}" },
        { "{\"a\":NaN,\"b\":-Infinity,\"c\":{\"d\":[]}}",
          "{\"a\":null,\"b\":null,\"c\":{\"d\":[]}}" },
        { "[]", NULL },
        { "1", NULL },
        { "", NULL },
        { "{\"a\":", NULL },
        { "{} {}", NULL },
        { "{\"a\":1}}", NULL },
        { "{\"a\":\"</script>", NULL },
    };
    struct buf out;

    buf_init(&out, 1000);
    for (size_t i = 0; i < COUNT(documents); i++) {
        buf_reset(&out);
        buf_text(&out, "[");
        assert_int_equal(api_json_object(&out, str_of(documents[i].in)), documents[i].out != NULL);
        assert_str(str_skip(buf_str(&out), 1), documents[i].out ? documents[i].out : "");
    }
    buf_free(&out);
}

/* What the docs say of a resource: from its headline to the next. */
static struct str section_of(const char *docs, const struct api_resource *resource)
{
    char headline[100];
    struct str rest = str_of(docs);
    size_t at;

    snprintf(headline, sizeof(headline), "\n## `%s`\n", resource->shown);
    at = str_find_str(rest, str_of(headline));
    if (at == rest.n)
        fail_msg("docs/api.md has no headline \"%s\"", resource->shown);
    rest = str_skip(rest, at + strlen(headline));
    return str_head(rest, str_find_str(rest, STR("\n## ")));
}

static void assert_told(struct str section, const char *of, const char *name)
{
    char code[100];

    snprintf(code, sizeof(code), "`%s`", name);
    if (!has(section, code))
        fail_msg("docs/api.md does not tell of %s of %s", code, of);
}

/* An example of it will do. */
static void assert_shown(struct str section, const char *of, const char *name)
{
    char member[100];

    snprintf(member, sizeof(member), "\"%s\": ", name);
    if (!has(section, member))
        assert_told(section, of, name);
}

static void assert_shape_told(struct str section, const char *of, const struct api_shape *shape)
{
    for (size_t i = 0; i < shape->n_fields; i++)
        assert_told(section, of, shape->fields[i].name);
    for (size_t i = 0; i < shape->n_members; i++) {
        const struct api_member *member = &shape->members[i];

        assert_shown(section, of, member->name);
        /* Told where it is a resource's own. */
        if (member->shape && member->shape != &api_row_shape && member->shape != &api_whole_shape &&
            member->shape != &api_usage_shape)
            assert_shape_told(section, of, member->shape);
    }
}

TEST(the_docs_tell_every_path_parameter_and_field)
{
    const char *docs = read_file(source_path("docs/api.md")).p;

    for (size_t i = 0; i < API_RESOURCES; i++) {
        const struct api_resource *resource = api_resources[i];
        struct str section = section_of(docs, resource);

        for (size_t p = 0; p < resource->n_params; p++)
            assert_told(section, resource->shown, resource->params[p].name);
        assert_shape_told(section, resource->shown, resource->shape);
    }
    assert_shape_told(section_of(docs, &api_jobs), api_jobs.shown, &api_row_shape);
    assert_shape_told(section_of(docs, &api_usage), api_usage.shown, &api_usage_shape);
    for (size_t i = 0; i < USAGE_KEYS; i++) {
        char word[40];

        snprintf(word, sizeof(word), "%.*s", STR_ARG(usage_key_words[i]));
        assert_told(section_of(docs, &api_usage), "group_by", word);
    }
}

static struct board *give_board(void *ctx, int64_t deadline_ns, struct err *why)
{
    struct board *board = board_new(1, NOW);

    (void)ctx;
    (void)deadline_ns;
    (void)why;
    board->cluster[0].name = STR("one");
    board->cluster[0].section[KIND_JOBS] = section_new(KIND_JOBS);
    board->cluster[0].section[KIND_NODES] = section_new(KIND_NODES);
    board_sum(board);
    return board;
}

TEST(the_page_lists_every_path_and_its_examples_work)
{
    open_store(false);
    write_file(allocations, "clusters: {}\n");
    start_api((struct api_config){ .boards = { give_board, NULL } }, NULL);
    for (size_t i = 0; i < API_RESOURCES; i++) {
        const struct api_resource *resource = api_resources[i];
        struct reply reply = client_get(&client, "/api");
        char path[200];

        assert_int_equal(reply.status, 200);
        assert_str(reply_header(&reply, "Content-Type"), "text/html; charset=utf-8");
        assert_has(reply.body, resource->shown);
        for (size_t p = 0; p < resource->n_params; p++)
            assert_has(reply.body, resource->params[p].name);
        if (!resource->example)
            continue;
        snprintf(path, sizeof(path), "%s%s", resource->path, resource->example);
        assert_has(reply.body, resource->path);
        get(path, 200);
    }
}
