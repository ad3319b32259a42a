/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The API over the real server and a real store, for tests of it. */
#ifndef SONDE_TESTS_API_FIXTURE_H
#define SONDE_TESTS_API_FIXTURE_H

#include "test.h"

#include "files.h"
#include "http_client.h"

#include "base/json.h"
#include "store/store.h"
#include "web/api_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { BASE = 1790000000, NOW = BASE + 100000 };

static const char *store_file, *allocations;
static char url[300];
static struct store *store;
static struct api *api;
static struct http_route routes[API_ROUTES + 1];
static struct http_server *server;
static struct log *log_file;
static struct client client;
static struct err err;

static inline int64_t wall_of_test(const struct clock *clock)
{
    (void)clock;
    return NOW * NS_PER_SEC;
}

static inline int64_t mono_of_test(const struct clock *clock)
{
    (void)clock;
    return clock_mono(&clock_real);
}

static const struct clock still_clock = { .wall_ns = wall_of_test, .mono_ns = mono_of_test };

static inline void must(int code)
{
    if (code < 0)
        fail_msg("%s", err.text);
}

static inline void open_store(bool is_simulated)
{
    must(store_open(str_of(url), is_simulated, &store, &err));
}

static inline struct job_record run(uint32_t id, int64_t submit_time)
{
    struct job_record record;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = submit_time;
    record.origin = RECORD_ACCOUNTED;
    record.as_of = NOW - 10;
    record.tasks = 1;
    record.state = (struct job_state){ JOB_COMPLETED, 0 };
    record.user = STR("alice");
    record.account = STR("physics");
    record.partition = STR("gpu");
    record.name = STR("sim");
    record.nodes = STR("n[1-2]");
    record.tres = STR("cpu=4,mem=8G,node=2,billing=6,gres/gpu=2,gres/gpu:a100=2");
    record.cpus = 4;
    record.eligible_time = submit_time;
    record.start_time = submit_time + 60;
    record.end_time = submit_time + 160;
    record.time_limit_minutes = 10;
    record.exit_code = 0;
    record.exit_signal = 0;
    record.cpu_seconds = 200;
    return record;
}

static inline void put(const char *cluster, const struct job_record *records, size_t n)
{
    must(store_begin(store, &err));
    for (size_t i = 0; i < n; i++)
        must(store_put_job(store, str_of(cluster), &records[i], &err));
    must(store_commit(store, &err));
}

static inline void put_one(const char *cluster, struct job_record record)
{
    put(cluster, &record, 1);
}

/* What is not set of the config is as in most tests. */
static inline void start_api(struct api_config config, const char *web_config)
{
    static const struct str listen = STR_INIT("127.0.0.1:0"), host = STR_INIT("portal.site");
    const struct http_config http = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .web_config = web_config,
        .max_connections = 100,
        .workers = 3,
        .queue = 20,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 16384,
        .clock = &clock_real,
        .log = log_file,
    };

    config.store = url;
    config.allocations_file = allocations;
    config.hosts = &host;
    config.n_hosts = 1;
    config.timeout_ns = config.timeout_ns ? config.timeout_ns : TEST_DEADLINE;
    config.clock = &still_clock;
    config.log = log_file;
    api = api_new(&config);
    api_set_access(api, true, false);
    memset(routes, 0, sizeof(routes));
    api_routes(api, routes);
    must(http_start(&http, &server, &err));
    client_open(&client, http_address(server, 0));
}

static inline void start_with(int64_t timeout_ns, const char *web_config)
{
    start_api((struct api_config){ .timeout_ns = timeout_ns }, web_config);
}

static inline void start(void)
{
    start_api((struct api_config){ 0 }, NULL);
}

static inline void set_up(void)
{
    store_file = test_path("sonde.db");
    snprintf(url, sizeof(url), "sqlite:%s", store_file);
    allocations = test_path("allocations.yml");
    log_file = test_log(&clock_real);
}

static inline void remove_store(void)
{
    store = store_close(store);
    remove_all("sonde.db");
    remove_all("sonde.db-wal");
    remove_all("sonde.db-shm");
}

static inline void tear_down(void)
{
    if (server)
        client_close(&client);
    server = http_stop(server);
    api = api_free(api);
    store = store_close(store);
    log_file = log_free(log_file);
}

FIXTURE(set_up, tear_down)

/* A whole document, as another reader would want it. */
static inline bool is_json(struct str text)
{
    struct json *json = json_new();
    enum json_event event;

    json_feed(json, text);
    while ((event = json_next(json)) > JSON_END)
        ;
    if (event == JSON_MORE) {
        json_finish(json);
        while ((event = json_next(json)) > JSON_END)
            ;
    }
    json_free(json);
    return event == JSON_END;
}

/* The body; it ends with a newline, which is left out. */
static inline struct str get(const char *path, unsigned status)
{
    struct reply reply = client_get(&client, path);

    if (reply.status != status)
        fail_msg("%s: %u and not %u: %.*s", path, reply.status, status, STR_ARG(reply.body));
    assert_str(reply_header(&reply, "Content-Type"), "application/json");
    assert_str(reply_header(&reply, "Cache-Control"), "no-store");
    assert_str(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
    if (!is_json(reply.body))
        fail_msg("%s: no JSON: %.*s", path, STR_ARG(reply.body));
    return str_head(reply.body, reply.body.n - 1);
}

static inline bool has(struct str text, const char *part)
{
    return str_find_str(text, str_of(part)) < text.n;
}

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        struct str text__ = (text);                                                                \
        if (!has(text__, part))                                                                    \
            fail_msg("\"%.*s\" does not have \"%s\"", STR_ARG(text__), part);                      \
    } while (0)

static inline size_t count(struct str text, const char *part)
{
    size_t n = 0;

    for (; has(text, part); n++)
        text = str_skip(text, str_find_str(text, str_of(part)) + strlen(part));
    return n;
}

/* The text behind "name":" up to the next quotation mark. */
static inline void copy_member(struct str body, const char *name, char *to, size_t room)
{
    char before[60];
    size_t at;
    struct str rest;

    snprintf(before, sizeof(before), "\"%s\":\"", name);
    at = str_find_str(body, str_of(before));
    assert_true(at < body.n);
    rest = str_skip(body, at + strlen(before));
    rest = str_cut(&rest, '"');
    assert_true(rest.n < room);
    memcpy(to, rest.p, rest.n);
    to[rest.n] = '\0';
}

#endif
