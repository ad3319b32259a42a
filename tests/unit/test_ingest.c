/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /ingest over the real server into a real store. */
#include "test.h"

#include "files.h"
#include "http_client.h"
#include "manual_clock.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "http/ingest.h"
#include "http/ingest_body.h"
#include "http/ingest_senders.h"
#include "record/ledger.h"
#include "store/query.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBMIT = 1700000000, MOST_POSTS = 9 };

#define RECORD(id, rest)                                                                           \
    "{\"job_id\":" #id ",\"node\":\"n1\",\"begin_time\":1700000010,\"end_time\":1700000013" rest "}"
#define POST(records) "{\"cluster\":\"north\",\"records\":[" records "]}"

struct fixture {
    struct manual_clock clock;
    const char *store, *token_file;
    uid_t users[2]; /* whose munge credentials are accepted */
    size_t n_users;
    struct log *log;
    struct recorded_cluster clusters[2];
    size_t n_clusters;
    struct recorder *recorder;
    struct http_ingest *ingest;
    struct http_route routes[HTTP_INGEST_ROUTES + 1];
    struct http_server *server;
    struct client client;
};

static struct fixture *f;

/* What the recorder is made to say, 0: its own; and a store that hangs while it is written. */
static struct {
    int code;
    atomic_bool hangs;
    atomic_uint n_hanging, n_submitted;
    atomic_bool token_hangs; /* the disk that its file is on */
    atomic_bool is_lookup_slow;
    atomic_uint n_looking, n_waits, n_unsealed, n_looked_up;
} fault;

int __real_recorder_submit(struct recorder *recorder, const struct record_batch *batch,
                           void (*notify)(void *ctx), void *ctx, struct request **ret,
                           struct err *err);
int __wrap_recorder_submit(struct recorder *recorder, const struct record_batch *batch,
                           void (*notify)(void *ctx), void *ctx, struct request **ret,
                           struct err *err);
int __real_secret_read(const char *path, const char *what, char **ret, struct err *err);
int __wrap_secret_read(const char *path, const char *what, char **ret, struct err *err);
void __real_http_wait_until(struct http_exchange *x, int64_t mono_ns);
void __wrap_http_wait_until(struct http_exchange *x, int64_t mono_ns);
int __real_ledger_write(struct ledger *ledger, struct round *round, struct err *err);
int __wrap_ledger_write(struct ledger *ledger, struct round *round, struct err *err);

int __wrap_recorder_submit(struct recorder *recorder, const struct record_batch *batch,
                           void (*notify)(void *ctx), void *ctx, struct request **ret,
                           struct err *err)
{
    int code = fault.code ? err_set(err, fault.code, "the store is \"full\"")
                          : __real_recorder_submit(recorder, batch, notify, ctx, ret, err);

    atomic_fetch_add(&fault.n_submitted, 1);
    return code;
}

int __wrap_secret_read(const char *path, const char *what, char **ret, struct err *err)
{
    atomic_fetch_add(&fault.n_looking, 1);
    while (atomic_load(&fault.token_hangs))
        sched_yield();
    return __real_secret_read(path, what, ret, err);
}

void __wrap_http_wait_until(struct http_exchange *x, int64_t mono_ns)
{
    __real_http_wait_until(x, mono_ns);
    atomic_fetch_add(&fault.n_waits, 1);
}

int __wrap_ledger_write(struct ledger *ledger, struct round *round, struct err *err)
{
    atomic_fetch_add(&fault.n_hanging, 1);
    while (atomic_load(&fault.hangs))
        sched_yield();
    atomic_fetch_sub(&fault.n_hanging, 1);
    return __real_ledger_write(ledger, round, err);
}

/* A credential is "MUNGE:UID:ADDRESS:CLAIM". */
static int unseal(const char *socket, struct str credential, struct buf *to,
                  struct munge_origin *ret, struct err *err)
{
    struct str rest = str_skip(credential, strlen("MUNGE:")), uid = str_cut(&rest, ':');
    struct str address = str_cut(&rest, ':');
    char text[20];
    uint64_t number;

    assert_string_equal(socket, "/run/munge.test");
    atomic_fetch_add(&fault.n_unsealed, 1);
    if (str_eq(uid, STR("away")))
        return err_set(err, ENOENT, "munged is not there");
    if (!num_get_u64(uid, &number))
        return err_set(err, EACCES, "the credential is forged");
    snprintf(text, sizeof(text), "%.*s", STR_ARG(address));
    *ret = (struct munge_origin){ .uid = (uid_t)number };
    inet_pton(AF_INET, text, &ret->address);
    buf_put(to, rest);
    return to->over ? err_set(err, EFBIG, "too large") : 0;
}

static int look_up(const char *name, struct network *to)
{
    atomic_fetch_add(&fault.n_looked_up, 1);
    if (atomic_load(&fault.is_lookup_slow))
        manual_clock_advance(&f->clock, NODE_LOOKUP_SLOW_NS);
    if (strcmp(name, "n3") == 0)
        return -EAGAIN;
    if (strcmp(name, "n1") == 0)
        return network_read(STR("127.0.0.1"), to);
    if (strcmp(name, "n2") == 0)
        return network_read(STR("fd00::2"), &to[0]) + network_read(STR("10.0.0.2"), &to[1]);
    return 0;
}

static void start_server(void)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    const struct http_config config = {
        .routes = f->routes,
        .listen = &listen,
        .n_listen = 1,
        .max_connections = 100,
        .workers = 2,
        .queue = 10,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = &clock_real,
        .log = f->log,
    };
    struct err err;

    if (http_start(&config, &f->server, &err) < 0)
        fail_msg("%s", err.text);
    client_open(&f->client, http_address(f->server, 0));
}

static void start(void)
{
    const struct recorder_config recording = {
        .url = str_of(f->store),
        .clusters = f->clusters,
        .n_clusters = f->n_clusters,
        .clock = &clock_real,
        .log = f->log,
    };
    struct http_ingest_config config = {
        .token_file = f->token_file,
        .munge = { .credentials = { unseal, "/run/munge.test", &f->clock.clock },
                   .lookup = look_up,
                   .users = f->users,
                   .n_users = f->n_users },
        .max_posts = MOST_POSTS,
        .clock = &f->clock.clock,
        .log = f->log,
    };
    struct err err;

    if (recorder_start(&recording, &f->recorder, &err) < 0)
        fail_msg("%s", err.text);
    config.recorder = f->recorder;
    f->ingest = http_ingest_new(&config);
    http_ingest_routes(f->ingest, f->routes);
    start_server();
}

static void set_up(void)
{
    f = heap_alloc(sizeof(*f));
    *f = (struct fixture){ .store = test_path("store.db"),
                           .token_file = write_file("token", "s3cret\n"),
                           .clusters = { { .name = STR("north") }, { .name = STR("south") } },
                           .n_clusters = 2 };
    manual_clock_init(&f->clock, INT64_C(1700000020) * NS_PER_SEC, NS_PER_SEC);
    f->client.fd = -1;
    fault.code = 0;
    fault.n_submitted = fault.n_looking = fault.n_waits = 0;
    fault.n_unsealed = fault.n_looked_up = 0;
    fault.is_lookup_slow = false;
    f->log = log_new(STDERR_FILENO, LOG_ERROR + 1, &clock_real);
}

static void tear_down(void)
{
    atomic_store(&fault.hangs, false);
    atomic_store(&fault.token_hangs, false);
    client_close(&f->client);
    http_stop(f->server);
    http_ingest_free(f->ingest);
    recorder_stop(f->recorder);
    log_free(f->log);
    manual_clock_destroy(&f->clock);
    free(f);
}

FIXTURE(set_up, tear_down)

/* From 127.0.0.2 on, the i-th. */
static void open_from(struct client *client, size_t i)
{
    struct sockaddr_in own = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)i) };
    struct sockaddr_in server = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    uint64_t port;

    assert_true(num_get_u64(str_of(strrchr(http_address(f->server, 0), ':') + 1), &port));
    server.sin_port = htons((uint16_t)port);
    *client = (struct client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    assert_int_equal(bind(client->fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&server, sizeof(server)), 0);
}

static void send_post(struct client *client, const char *headers, struct str body)
{
    char head[500];

    snprintf(head, sizeof(head),
             "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n%s\r\n", body.n, headers);
    client_send_text(client, head);
    client_send(client, body);
}

static struct reply post_with(const char *headers, const char *body)
{
    send_post(&f->client, headers, str_of(body));
    return client_read(&f->client, true);
}

#define BEARER "Authorization: Bearer s3cret\r\n"
#define JSON   "Content-Type: application/json\r\n"

static struct reply post(const char *body)
{
    return post_with(BEARER JSON, body);
}

static void assert_reply(struct reply reply, unsigned status, const char *part)
{
    char body[3000];

    snprintf(body, sizeof(body), "%.*s", STR_ARG(reply.body));
    if (reply.status != status)
        fail_msg("status %u, expected %u: %s", reply.status, status, body);
    assert_contains(body, part);
}

static struct http_ingest_stats stats_of(void)
{
    struct http_ingest_stats stats;

    http_ingest_stats(f->ingest, &stats);
    return stats;
}

/* The run that the records are of. */
static void put_job(size_t cluster, uint32_t id)
{
    struct record_batch batch = { .cluster = cluster, .n_jobs = 1 };
    static const atomic_bool never;
    struct job_record record;
    struct err err;

    job_record_clear(&record);
    record.id = id;
    record.submit_time = SUBMIT;
    record.as_of = SUBMIT + 1;
    record.state.base = JOB_RUNNING;
    batch.jobs = &record;
    if (recorder_put(f->recorder, &batch, clock_mono(&clock_real) + TEST_DEADLINE, &never, &err) <
        0)
        fail_msg("%s", err.text);
}

static size_t finals_of(const char *cluster, uint32_t id, struct arena *arena,
                        struct final_record **ret)
{
    const struct run_key key = { SUBMIT, id, str_of(cluster) };
    struct store_reader *reader;
    struct err err;
    size_t n;

    if (store_reader_open(str_of(f->store), &reader, &err) < 0 ||
        store_finals(reader, &key, arena, ret, &n, &err) < 0)
        fail_msg("%s", err.text);
    store_reader_close(reader);
    return n;
}

static size_t count_finals(const char *cluster, uint32_t id)
{
    struct arena arena = { 0 };
    struct final_record *finals;
    size_t n = finals_of(cluster, id, &arena, &finals);

    arena_clear(&arena);
    return n;
}

/* --- */

TEST(an_acknowledged_record_is_in_the_store)
{
    struct final_record *finals;
    struct arena arena = { 0 };

    start();
    put_job(0, 7);
    assert_reply(post(POST(RECORD(7, ",\"cpu_seconds\":2.5,\"io\":{\"reads\":[1,-2e3]},"
                                     "\"a\":null , \"b\":[true,false,{}]"))),
                 200, "{\"records\":1}\n");
    assert_int_equal(finals_of("north", 7, &arena, &finals), 1);
    assert_int_equal(finals[0].begin_time, 1700000010);
    assert_int_equal(finals[0].end_time, 1700000013);
    assert_str(finals[0].node, "n1");
    assert_str(finals[0].document, "{\"cpu_seconds\":2.5,\"io\":{\"reads\":[1,-2e3]},"
                                   "\"a\":null,\"b\":[true,false,{}]}");
    arena_clear(&arena);
    assert_int_equal(stats_of().posts, 1);
    assert_int_equal(stats_of().records, 1);
    assert_int_equal(stats_of().refused, 0);
}

TEST(posting_twice_changes_nothing)
{
    start();
    put_job(0, 7);
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
    assert_reply(post(POST(RECORD(7, "") "," RECORD(7, ""))), 200, "2");
    assert_int_equal(count_finals("north", 7), 1);
}

TEST(what_is_written_anew_is_json_whatever_came)
{
    struct final_record *finals;
    struct arena arena = { 0 };

    start();
    put_job(0, 7);
    assert_reply(post(POST(RECORD(7, ",\"na\\u0000me\":\"\\ud800 <\xff> \\\"\\u000a\""))), 200,
                 "1");
    assert_int_equal(finals_of("north", 7, &arena, &finals), 1);
    assert_contains(finals[0].document.p, "<\xef\xbf\xbd> \\\"\\u000a\"}");
    arena_clear(&arena);
}

TEST(without_the_token_nobody_gets_in)
{
    static const char *const headers[] = {
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer s3cre\r\n",
        "Authorization: Bearer s3crets\r\n",
        "Authorization: Bearer S3cret\r\n",
        "Authorization: Bearer s3crets3cret\r\n",
        "Authorization: Basic czNjcmV0\r\n",
        "Authorization: s3cret\r\n",
    };
    struct reply reply;

    start();
    put_job(0, 7);
    for (size_t i = 0; i < COUNT(headers); i++) {
        char all[200];

        snprintf(all, sizeof(all), "%s%s", headers[i], JSON);
        reply = post_with(all, POST(RECORD(7, "")));
        assert_str(reply_header(&reply, "WWW-Authenticate"), "Bearer realm=\"sonde\"");
        assert_reply(reply, 401, "token");
    }
    assert_int_equal(stats_of().refused, COUNT(headers));
    assert_int_equal(count_finals("north", 7), 0);
    assert_reply(post_with("Authorization: bearer  s3cret \r\n" JSON, POST(RECORD(7, ""))), 200,
                 "1");
}

/* With a munge credential that user `uid` has made for `claimed` on the host of that address. */
static struct reply post_claiming(const char *uid, const char *address, const char *claimed,
                                  const char *body)
{
    char claim[INGEST_CLAIM_SIZE], headers[300];

    assert_int_equal(ingest_claim(str_of(claimed), claim, NULL), 0);
    snprintf(headers, sizeof(headers), JSON "Authorization: Munge MUNGE:%s:%s:%s\r\n", uid, address,
             claim);
    return post_with(headers, body);
}

static struct reply post_as(const char *uid, const char *address, const char *body)
{
    return post_claiming(uid, address, body, body);
}

static void accept_munge(void)
{
    f->users[0] = 0;
    f->users[1] = 990;
    f->n_users = 2;
}

#define AT_N2 "{\"job_id\":7,\"node\":\"n2\",\"begin_time\":1700000010,\"end_time\":1700000013}"
#define AT_N3 "{\"job_id\":7,\"node\":\"n3\",\"begin_time\":1700000010,\"end_time\":1700000013}"
#define AT_N9 "{\"job_id\":7,\"node\":\"n9\",\"begin_time\":1700000010,\"end_time\":1700000013}"

TEST(a_munge_credential_is_good_for_the_node_that_it_comes_from)
{
    accept_munge();
    start();
    put_job(0, 7);
    assert_reply(post_as("0", "0.0.0.0", POST(RECORD(7, ""))), 200, "{\"records\":1}");
    assert_reply(post_as("990", "10.0.0.2", POST(AT_N2)), 200, "{\"records\":1}");
    assert_reply(post_as("990", "10.0.0.2", POST(RECORD(7, "") "," AT_N2)), 200, "2");
    assert_int_equal(count_finals("north", 7), 2);
    assert_int_equal(atomic_load(&fault.n_looked_up), 2);
    assert_reply(post(POST(AT_N9)), 200, "1"); /* the token is good for all nodes */
}

TEST(a_munge_credential_is_no_good_for_other_nodes)
{
    accept_munge();
    start();
    put_job(0, 7);
    assert_reply(post_as("0", "10.0.0.3", POST(RECORD(7, "") "," AT_N2)), 403,
                 "another address than the sender");
    assert_reply(post_as("0", "10.0.0.3", POST(AT_N2)), 403, "\"record\":0");
    assert_reply(post_as("0", "127.0.0.1", POST(AT_N9)), 403, "node n9 has no address");
    assert_int_equal(count_finals("north", 7), 0);
    assert_int_equal(stats_of().refused, 3);
}

TEST(a_munge_credential_is_no_good_for_another_post_or_of_another_user)
{
    accept_munge();
    start();
    put_job(0, 7);
    assert_reply(post_claiming("0", "127.0.0.1", POST(""), POST(RECORD(7, ""))), 403,
                 "made for another post");
    assert_reply(post_as("1000", "127.0.0.1", POST(RECORD(7, ""))), 403,
                 "user 1000, who is not in --ingest.users");
    assert_int_equal(count_finals("north", 7), 0);
}

TEST(a_forged_munge_credential_is_refused_before_the_body_comes)
{
    char head[] = "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n" JSON
                  "Authorization: Munge MUNGE:x:y:z\r\n\r\n";
    struct reply reply;

    accept_munge();
    start();
    client_send_text(&f->client, head);
    reply = client_read(&f->client, true);
    assert_reply(reply, 401, "forged");
    assert_true(reply_header(&reply, "WWW-Authenticate").n > 0);
}

TEST(munged_is_not_asked_about_every_credential_of_an_address_that_forges_them)
{
    enum { TRIED = 50 };
    struct reply reply;

    accept_munge();
    f->token_file = NULL;
    start();
    for (unsigned i = 0; i < TRIED; i++)
        assert_reply(post_as("forged", "", POST("")), 401, "forged");
    reply = post_as("0", "127.0.0.1", POST(""));
    assert_str(reply_header(&reply, "Retry-After"), "1");
    assert_reply(reply, 429, "try again later");
    assert_int_equal(atomic_load(&fault.n_unsealed), TRIED);
    manual_clock_advance(&f->clock, NS_PER_SEC);
    assert_reply(post_as("0", "127.0.0.1", POST("")), 200, "0");
}

TEST(credentials_of_other_users_keep_nobody_out)
{
    accept_munge();
    start();
    for (unsigned i = 0; i < 100; i++)
        assert_reply(post_as("1000", "127.0.0.1", POST("")), 403, "user 1000");
    assert_reply(post_as("0", "127.0.0.1", POST("")), 200, "0");
}

TEST(names_that_cannot_be_resolved_now_are_no_fault_of_the_sender)
{
    struct reply reply;

    accept_munge();
    start();
    put_job(0, 7);
    reply = post_as("0", "10.0.0.2", POST(AT_N3));
    assert_str(reply_header(&reply, "Retry-After"), "10");
    assert_reply(reply, 503, "cannot be resolved on the exporter's host now");
    assert_reply(post_as("0", "10.0.0.2", POST(AT_N2)), 503, "cannot be resolved");
    assert_int_equal(atomic_load(&fault.n_looked_up), 1);
    manual_clock_advance(&f->clock, NODE_LOOKUP_PAUSE_NS);
    assert_reply(post_as("0", "10.0.0.2", POST(AT_N2)), 200, "1");
}

TEST(after_a_slow_lookup_there_is_none_for_a_while)
{
    accept_munge();
    start();
    put_job(0, 7);
    fault.is_lookup_slow = true;
    assert_reply(post_as("0", "0.0.0.0", POST(RECORD(7, ""))), 200, "1");
    assert_reply(post_as("0", "10.0.0.2", POST(AT_N2)), 503, "cannot be resolved");
    assert_reply(post_as("0", "0.0.0.0", POST(RECORD(7, ""))), 200, "1"); /* cached */
    assert_int_equal(atomic_load(&fault.n_looked_up), 1);
}

TEST(an_address_is_no_name_of_a_node)
{
    struct network found[NODE_ADDRESSES_MAX];

    assert_int_equal(node_lookup_system("127.0.0.1", found), 0);
    assert_int_equal(node_lookup_system("127.1", found), 0);
    assert_int_equal(node_lookup_system("0x7f000001", found), 0);
    assert_int_equal(node_lookup_system("::1", found), 0);
}

TEST(without_munged_a_token_is_asked_for)
{
    accept_munge();
    start();
    assert_reply(post_as("away", "", POST("")), 401, "munged does not answer");
    assert_reply(post(POST("")), 200, "0");
}

TEST(without_munged_and_a_token_a_credential_is_to_be_sent_again)
{
    struct reply reply;

    accept_munge();
    f->token_file = NULL;
    start();
    for (unsigned i = 0; i < 2; i++) {
        reply = post_as("away", "", POST(""));
        assert_str(reply_header(&reply, "Retry-After"), "10");
        assert_reply(reply, 503, "munged");
    }
    assert_int_equal(atomic_load(&fault.n_unsealed), 1);
}

TEST(proofs_of_a_kind_that_is_not_configured_are_refused)
{
    start();
    assert_reply(post_as("0", "127.0.0.1", POST("")), 401,
                 "munge credentials are not accepted here");
    assert_int_equal(atomic_load(&fault.n_unsealed), 0);
}

TEST(without_a_token_file_no_token_is_accepted)
{
    struct reply reply;

    accept_munge();
    f->token_file = NULL;
    start();
    reply = post(POST(""));
    assert_str(reply_header(&reply, "WWW-Authenticate"), "Munge");
    assert_reply(reply, 401, "there is no --ingest.token-file");
    assert_reply(post_with(JSON, POST("")), 401, "Authorization: Munge CREDENTIAL");
    assert_reply(post_as("0", "127.0.0.1", POST("")), 200, "0");
}

static void change_token(const char *text)
{
    if (text)
        write_file(f->token_file, text);
    else
        unlink(f->token_file);
    manual_clock_advance(&f->clock, NS_PER_SEC);
}

TEST(a_changed_token_holds_after_a_second)
{
    start();
    assert_reply(post(POST("")), 200, "{\"records\":0}");
    change_token("another\n");
    assert_reply(post(POST("")), 401, "token");
    assert_reply(post_with("Authorization: Bearer another\r\n" JSON, POST("")), 200, "0");
    change_token(NULL);
    assert_reply(post_with("Authorization: Bearer another\r\n" JSON, POST("")), 503,
                 "cannot read its token");
    change_token("");
    assert_reply(post_with("Authorization: Bearer another\r\n" JSON, POST("")), 503, "token");
    change_token("s3cret");
    assert_reply(post(POST("")), 200, "0");
}

/* The first has its file looked at, on a disk that hangs; the second waits for that. */
static void post_while_the_token_hangs(struct client clients[2])
{
    atomic_store(&fault.token_hangs, true);
    open_from(&clients[0], 0);
    send_post(&clients[0], BEARER JSON, str_of(POST("")));
    wait_until_true(atomic_load(&fault.n_looking) == 1);
    open_from(&clients[1], 1);
    send_post(&clients[1], BEARER JSON, str_of(POST("")));
    wait_until_true(atomic_load(&fault.n_waits) >= 1);
}

TEST(posts_that_come_together_wait_for_one_look_at_the_token)
{
    static struct client clients[2];

    start();
    post_while_the_token_hangs(clients);
    atomic_store(&fault.token_hangs, false);
    for (size_t i = 0; i < COUNT(clients); i++) {
        assert_reply(client_read(&clients[i], true), 200, "0");
        client_close(&clients[i]);
    }
    assert_int_equal(atomic_load(&fault.n_looking), 1);
}

TEST(a_token_that_cannot_be_looked_at_is_waited_for_no_longer_than_five_seconds)
{
    static struct client clients[2];
    struct reply reply;

    start();
    post_while_the_token_hangs(clients);
    manual_clock_advance(&f->clock, 5 * NS_PER_SEC);
    reply = client_read(&clients[1], true);
    assert_str(reply_header(&reply, "Retry-After"), "2");
    assert_reply(reply, 503, "busy");
    for (size_t i = 0; i < COUNT(clients); i++)
        client_close(&clients[i]);
}

TEST(what_is_refused_is_refused_before_its_body_is_read)
{
    static const struct {
        const char *headers;
        unsigned status;
        const char *answer;
    } rows[] = {
        { JSON, 401, "a token is needed" },
        { "Authorization: Bearer guess\r\n" JSON, 401, "token is not the one" },
        { BEARER, 415, "application/json" },
        { BEARER JSON "Origin: http://evil\r\n", 403, "web page" },
    };

    start();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct client client;
        char head[500];

        client_open(&client, http_address(f->server, 0));
        snprintf(head, sizeof(head),
                 "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n",
                 INGEST_BODY_MAX, rows[i].headers);
        client_send_text(&client, head);
        assert_reply(client_read(&client, true), rows[i].status, rows[i].answer);
        client_close(&client);
    }
}

TEST(only_json_and_not_from_a_web_page)
{
    start();
    assert_reply(post_with(BEARER, POST("")), 415, "application/json");
    assert_reply(post_with(BEARER "Content-Type: text/plain\r\n", POST("")), 415, "json");
    assert_reply(post_with(BEARER "Content-Type: Application/JSON ; charset=utf-8\r\n", POST("")),
                 200, "0");
    assert_reply(post_with(BEARER JSON "Origin: http://evil\r\n", POST("")), 403, "web page");
    assert_reply(client_get(&f->client, "/ingest"), 405, "");
}

TEST(a_bad_record_is_named_and_nothing_of_its_post_is_kept)
{
    static const struct {
        const char *body, *answer;
    } rows[] = {
        { POST(RECORD(7, "") ",{\"job_id\":8}"), "\"record 1: node is missing\",\"record\":1}" },
        { POST("[]"), "record 0: a record must be an object\",\"record\":0}" },
        { POST(RECORD(0, "")), "from 1 to 4294967293\",\"record\":0}" },
        { POST(RECORD(4294967294, "")), "from 1 to 4294967293" },
        { POST(RECORD(1.5, "")), "from 1 to 4294967293" },
        { POST(RECORD("7", "")), "job_id must be a number" },
        { POST(RECORD(7, ",\"job_id\":7")), "job_id is there twice" },
        { POST(RECORD(7, ",\"node\":\"n2\"")), "node is there twice" },
        { POST("{\"job_id\":7,\"node\":\"\",\"begin_time\":1,\"end_time\":2}"), "printable name" },
        { POST("{\"job_id\":7,\"node\":\"a\\u0007\",\"begin_time\":1,\"end_time\":2}"),
          "printable" },
        { POST("{\"job_id\":7,\"node\":null,\"begin_time\":1,\"end_time\":2}"), "must be a text" },
        { POST("{\"job_id\":7,\"node\":\"n\",\"begin_time\":3,\"end_time\":2}"), "ends before" },
        { POST("{\"job_id\":7,\"node\":\"n\",\"begin_time\":0,\"end_time\":2}"), "since 1970" },
        { POST("{\"job_id\":7,\"node\":\"n\",\"begin_time\":1,\"end_time\":999999999999999}"),
          "since 1970" },
        { POST(RECORD(7, ",\"x\":NaN")), "none that JSON knows" },
        { POST(RECORD(7, ",\"x\":1e999")), "none that JSON knows" },
        { POST(RECORD(7, ",\"x\":11111111112222222222333333333344444444445")), "too long" },
        { POST(RECORD(7, ",\"\":1")), "from 1 to 64 bytes" },
        { POST(RECORD(7, ",\"x\":[[[[[[[[1]]]]]]]]")), "deeper than 8" },
        { POST(RECORD(7, ",\"x\":tru")), "\"record\":0}" },
        { POST(RECORD(7, "") ",{\"job_id\""), "\"record\":1}" },
    };

    start();
    put_job(0, 7);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_reply(post(rows[i].body), 400, rows[i].answer);
    assert_int_equal(count_finals("north", 7), 0);
    assert_int_equal(stats_of().refused, COUNT(rows));
    assert_reply(post(POST(RECORD(7, ",\"x\":[[[[[[[1]]]]]]]"))), 200, "1");
}

TEST(a_post_that_is_wrong_as_a_whole_blames_no_record)
{
    static const struct {
        const char *body, *answer;
    } rows[] = {
        { "", "no JSON" },
        { "[]", "must be an object" },
        { "{}", "records is missing" },
        { "{\"records\":{}}", "must be an array" },
        { "{\"records\":[],\"records\":[]}", "records is there twice" },
        { "{\"cluster\":1,\"records\":[]}", "cluster must be" },
        { "{\"cluster\":\"a\",\"cluster\":\"b\",\"records\":[]}", "cluster is there twice" },
        { POST("") "x", "no JSON" },
        { "{\"records\":[]", "no JSON" },
    };

    start();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct reply reply = post(rows[i].body);

        assert_int_equal(str_find_str(reply.body, STR("\"record\":")), reply.body.n);
        assert_reply(reply, 400, rows[i].answer);
    }
    assert_reply(post("{\"x\":{\"records\":1},\"cluster\":\"north\",\"records\":[],\"y\":2}"), 200,
                 "0");
}

TEST(everything_has_a_ceiling)
{
    struct buf body;

    start();
    buf_init(&body, 8 << 20);
    buf_text(&body, "{\"cluster\":\"north\",\"records\":[");
    for (size_t i = 0; i <= INGEST_RECORDS_MAX; i++)
        buf_printf(&body, "%s%s", i ? "," : "", RECORD(7, ""));
    buf_text(&body, "]}");
    assert_reply(post(body.p), 400, "more than 2000");
    buf_reset(&body);
    buf_text(&body, "{\"cluster\":\"north\",\"records\":[" RECORD(7, "") ",");
    buf_text(&body, "{\"job_id\":8,\"x\":[1");
    for (size_t i = 0; i < 40000; i++)
        buf_text(&body, ",1");
    buf_text(&body, "]}]}");
    assert_reply(post(body.p), 400, "longer than 64 KB\",\"record\":1}");
    buf_reset(&body);
    buf_text(&body, "{\"cluster\":\"north\",\"records\":[{\"x\":\"");
    for (size_t i = 0; i < 4097; i++)
        buf_byte(&body, 'x');
    buf_text(&body, "\"}]}");
    assert_reply(post(body.p), 400, "longer than 4096");
    while (body.n <= INGEST_BODY_MAX)
        buf_text(&body, "                                                                ");
    assert_reply(post(body.p), 413, "");
    buf_free(&body);
}

TEST(each_cluster_has_its_own_records)
{
    start();
    put_job(0, 7);
    put_job(1, 7);
    assert_reply(post("{\"cluster\":\"south\",\"records\":[" RECORD(7, "") "]}"), 200, "1");
    assert_int_equal(count_finals("south", 7), 1);
    assert_int_equal(count_finals("north", 7), 0);
    assert_reply(post("{\"records\":[]}"), 404, "say which");
    assert_reply(post("{\"cluster\":\"\",\"records\":[]}"), 404, "say which");
    assert_reply(post("{\"cluster\":\"\\\"east\",\"records\":[]}"), 404,
                 "no cluster called \\\"\\\"east\\\" is recorded here");
}

TEST(a_single_cluster_needs_no_name)
{
    f->n_clusters = 1;
    start();
    put_job(0, 7);
    assert_reply(post("{\"cluster\":\"\",\"records\":[" RECORD(7, "") "]}"), 200, "1");
    assert_int_equal(count_finals("north", 7), 1);
}

TEST(what_comes_before_a_name_is_known_is_to_come_again)
{
    struct reply reply;

    f->n_clusters = 1;
    f->clusters[0].name = STR("");
    start();
    reply = post(POST(RECORD(7, "")));
    assert_str(reply_header(&reply, "Retry-After"), "10");
    assert_reply(reply, 503, "has not told yet");
    assert_reply(post("{\"records\":[" RECORD(7, "") "]}"), 503, "has not told yet");
    recorder_name(f->recorder, 0, STR("north"));
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
    assert_reply(post("{\"records\":[" RECORD(7, "") "]}"), 200, "1");
}

TEST(while_the_store_cannot_be_written_nothing_is_acknowledged)
{
    static const int codes[] = { ENOSPC, ETIMEDOUT, EAGAIN, EIO, EACCES };

    start();
    for (size_t i = 0; i < COUNT(codes); i++) {
        struct reply reply;

        fault.code = codes[i];
        reply = post(POST(RECORD(7, "")));
        assert_str(reply_header(&reply, "Retry-After"), "10");
        assert_reply(reply, 503, "{\"error\":\"the store is \\\"full\\\"\"}");
    }
    fault.code = 0;
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
}

/* Posts that wait for the store, which hangs: one is being written, the others come after it. */
static void post_while_it_hangs(struct client *clients, size_t n)
{
    atomic_store(&fault.hangs, true);
    for (size_t i = 0; i < n; i++) {
        open_from(&clients[i], i);
        send_post(&clients[i], BEARER JSON, str_of(POST(RECORD(7, ""))));
        if (i == 0)
            wait_until_true(atomic_load(&fault.n_hanging) == 1);
    }
    wait_until_true(atomic_load(&fault.n_submitted) == n);
}

TEST(posts_that_wait_share_a_commit)
{
    static struct client clients[MOST_POSTS];
    struct recorder_stats before, after;

    start();
    put_job(0, 7);
    recorder_stats(f->recorder, &before);
    post_while_it_hangs(clients, COUNT(clients));
    /* the HTTP thread serves others, and so do the workers */
    assert_reply(post_with(JSON, POST("")), 401, "token");
    atomic_store(&fault.hangs, false);
    for (size_t i = 0; i < COUNT(clients); i++) {
        assert_reply(client_read(&clients[i], true), 200, "1");
        client_close(&clients[i]);
    }
    assert_int_equal(stats_of().posts, COUNT(clients));
    recorder_stats(f->recorder, &after);
    assert_int_equal(after.commits - before.commits, 2);
}

TEST(posts_past_the_limit_are_told_when_to_come_again)
{
    static struct client clients[MOST_POSTS];
    struct reply reply;

    start();
    put_job(0, 7);
    post_while_it_hangs(clients, COUNT(clients));
    reply = post(POST(RECORD(7, "")));
    assert_str(reply_header(&reply, "Retry-After"), "2");
    assert_reply(reply, 503, "too many agents");
    atomic_store(&fault.hangs, false);
    for (size_t i = 0; i < COUNT(clients); i++) {
        assert_reply(client_read(&clients[i], true), 200, "1");
        client_close(&clients[i]);
    }
    wait_until_true(stats_of().waiting == 0);
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
}

static void send_head(struct client *client, size_t bytes)
{
    char head[300];

    snprintf(head, sizeof(head),
             "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n" BEARER JSON "\r\n",
             bytes);
    client_send_text(client, head);
}

TEST(the_bytes_of_all_posts_together_have_a_ceiling)
{
    static struct client clients[8];
    struct reply reply;

    start();
    put_job(0, 7);
    for (size_t i = 0; i < COUNT(clients); i++) {
        open_from(&clients[i], i);
        send_head(&clients[i], INGEST_BODY_MAX);
    }
    wait_until_true(stats_of().waiting == COUNT(clients));
    reply = post(POST(RECORD(7, "")));
    assert_str(reply_header(&reply, "Retry-After"), "2");
    assert_reply(reply, 503, "too many agents");
    client_close(&clients[0]);
    wait_until_true(stats_of().waiting == COUNT(clients) - 1);
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
    for (size_t i = 1; i < COUNT(clients); i++)
        client_close(&clients[i]);
}

static void assert_sender_refused(struct client *client, const char *retry_after)
{
    struct reply reply;

    send_post(client, BEARER JSON, str_of(POST(RECORD(7, ""))));
    reply = client_read(client, true);
    assert_str(reply_header(&reply, "Retry-After"), retry_after);
    assert_reply(reply, 429, "your address posts too much");
}

TEST(one_sender_has_a_share_of_the_posts_in_progress)
{
    static struct client clients[MOST_POSTS / 4 + 1], next;

    start();
    put_job(0, 7);
    for (size_t i = 0; i < COUNT(clients); i++) {
        open_from(&clients[i], 0);
        send_head(&clients[i], 100);
    }
    wait_until_true(stats_of().waiting == COUNT(clients));
    open_from(&next, 0);
    assert_sender_refused(&next, "2");
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
    client_close(&clients[0]);
    wait_until_true(stats_of().waiting == COUNT(clients) - 1);
    send_post(&next, BEARER JSON, str_of(POST(RECORD(7, ""))));
    assert_reply(client_read(&next, true), 200, "1");
    client_close(&next);
    for (size_t i = 1; i < COUNT(clients); i++)
        client_close(&clients[i]);
}

TEST(one_sender_has_a_share_of_the_bytes)
{
    static struct client clients[2], next;

    start();
    put_job(0, 7);
    for (size_t i = 0; i < COUNT(clients); i++) {
        open_from(&clients[i], 0);
        send_head(&clients[i], INGEST_BODY_MAX);
    }
    wait_until_true(stats_of().waiting == COUNT(clients));
    open_from(&next, 0);
    assert_sender_refused(&next, "2");
    assert_reply(post(POST(RECORD(7, ""))), 200, "1");
    client_close(&next);
    for (size_t i = 0; i < COUNT(clients); i++)
        client_close(&clients[i]);
}

TEST(a_sender_that_has_posted_too_many_records_waits)
{
    struct buf body;
    struct client other;

    start();
    put_job(0, 7);
    buf_init(&body, 1 << 20);
    buf_text(&body, "{\"cluster\":\"north\",\"records\":[");
    for (size_t i = 0; i < INGEST_RECORDS_MAX; i++)
        buf_printf(&body, "%s%s", i ? "," : "", RECORD(7, ""));
    buf_text(&body, "]}");
    /* Each is counted before the next one on its connection. */
    for (size_t n = 0; n < SENDERS_BURST; n += INGEST_RECORDS_MAX)
        assert_reply(post(body.p), 200, "{\"records\":2000}");
    assert_sender_refused(&f->client, "1");
    open_from(&other, 0);
    send_post(&other, BEARER JSON, buf_str(&body));
    assert_reply(client_read(&other, true), 200, "{\"records\":2000}");
    client_close(&other);
    manual_clock_advance(&f->clock, NS_PER_SEC);
    assert_reply(post(body.p), 200, "{\"records\":2000}");
    assert_sender_refused(&f->client, "2");
    buf_free(&body);
}

TEST(a_post_of_unknown_length_is_refused)
{
    start();
    client_send_text(
        &f->client, "POST /ingest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" BEARER JSON
                    "\r\n0\r\n\r\n");
    assert_reply(client_read(&f->client, true), 411, "Content-Length");
}

TEST(a_store_that_hangs_is_waited_for_no_longer_than_five_seconds)
{
    static struct client clients[2];
    struct reply reply;

    start();
    put_job(0, 7);
    post_while_it_hangs(clients, COUNT(clients));
    manual_clock_advance(&f->clock, 5 * NS_PER_SEC);
    for (size_t i = 0; i < COUNT(clients); i++) {
        reply = client_read(&clients[i], true);
        assert_str(reply_header(&reply, "Retry-After"), "10");
        assert_reply(reply, 503, "not written in time");
        client_close(&clients[i]);
    }
}

/* Read on a worker, not on the HTTP thread. */
TEST(a_large_post_is_acknowledged_when_it_is_in_the_store)
{
    struct buf body;

    start();
    put_job(0, 7);
    buf_init(&body, 1 << 20);
    buf_text(&body, "{\"cluster\":\"north\",\"records\":[");
    for (size_t i = 0; i < 500; i++)
        buf_printf(&body,
                   "%s{\"job_id\":7,\"node\":\"n%zu\",\"begin_time\":1700000010,"
                   "\"end_time\":1700000013}",
                   i ? "," : "", i);
    buf_text(&body, "]}");
    assert_reply(post(body.p), 200, "{\"records\":500}");
    assert_int_equal(count_finals("north", 7), 500);
    buf_free(&body);
}
