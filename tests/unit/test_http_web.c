/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server with a --web.config.file: TLS, client certificates, passwords, and changes of them. */
#include "test.h"

#include "certificates.h"
#include "files.h"
#include "http_client.h"
#include "manual_clock.h"

#include "http/server.h"

#include <crypt.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/epoll.h>

#define ANY_TLS     "NORMAL"
#define TLS_12      "NORMAL:-VERS-ALL:+VERS-TLS1.2"
#define TLS_13      "NORMAL:-VERS-ALL:+VERS-TLS1.3"
#define SERVER_PAIR "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"

enum { MOST_CONNECTIONS = 100 };

static struct certificate authority, stranger_authority, old_server, new_server;
static struct certificate good_client, other_client, expired_client, wrong_purpose_client;
static struct http_server *server;
static struct http_body *body;
static struct log *log_file;
static struct client client, other;
static atomic_int n_waiting;
static atomic_bool is_ready;

static enum http_verdict say_who(void *ctx, struct http_exchange *x)
{
    char text[100];

    (void)ctx;
    snprintf(text, sizeof(text), "user=%.*s", STR_ARG(http_user(x)));
    http_reply(x, 200, "text/plain", str_of(text));
    return HTTP_DONE;
}

static const char *_Atomic stands_for_peer; /* or NULL */

/* Every address of a test is of this machine. */
struct str __real_http_peer(const struct http_exchange *x);
struct str __wrap_http_peer(const struct http_exchange *x);
struct str __wrap_http_peer(const struct http_exchange *x)
{
    return stands_for_peer ? str_of(stands_for_peer) : __real_http_peer(x);
}

static enum http_verdict say_whether_trusted(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, http_is_trusted(x) ? 200 : 403, "text/plain", STR(""));
    return HTTP_DONE;
}

static enum http_verdict wait_for_ready(void *ctx, struct http_exchange *x)
{
    if (atomic_load(&is_ready))
        return say_who(ctx, x);
    atomic_fetch_add(&n_waiting, 1);
    return HTTP_WAIT;
}

static enum http_verdict give_body(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply_body(x, body);
    return HTTP_DONE;
}

static const struct http_route routes[] = {
    { "GET", "/who", 0, HTTP_WITH_PASSWORD, say_who, NULL, NULL, NULL, false },
    { "POST", "/who", 10 << 20, HTTP_WITH_PASSWORD, say_who, NULL, NULL, NULL, false },
    { "GET", "/body", 0, HTTP_WITH_PASSWORD, give_body, NULL, NULL, NULL, false },
    { "GET", "/wait", 0, HTTP_WITH_PASSWORD, wait_for_ready, NULL, NULL, NULL, false },
    { "GET", "/open", 0, HTTP_OPEN, say_who, NULL, NULL, NULL, false },
    { "GET", "/trusted", 0, HTTP_OTHER_PROOF, say_whether_trusted, NULL, NULL, NULL, false },
    { 0 },
};

static void make_certificates(void)
{
    static const unsigned char ip[] = { 10, 0, 0, 1 };

    certificate_make(&authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(&stranger_authority,
                     &(struct certificate_wish){ .name = "stranger", .is_authority = true });
    certificate_make(&old_server,
                     &(struct certificate_wish){ .name = "old", .signer = &authority });
    certificate_make(&new_server,
                     &(struct certificate_wish){ .name = "new", .signer = &authority });
    certificate_make(&good_client, &(struct certificate_wish){ .name = "good.example",
                                                               .signer = &authority,
                                                               .is_for_clients = true,
                                                               .email = "good@example",
                                                               .uri = "spiffe://example/good",
                                                               .ip = ip });
    certificate_make(&other_client, &(struct certificate_wish){ .name = "good.example",
                                                                .signer = &stranger_authority,
                                                                .is_for_clients = true });
    certificate_make(&expired_client, &(struct certificate_wish){ .name = "good.example",
                                                                  .signer = &authority,
                                                                  .is_for_clients = true,
                                                                  .is_expired = true });
    certificate_make(&wrong_purpose_client,
                     &(struct certificate_wish){ .name = "good.example", .signer = &authority });
}

static void set_up_all(void)
{
    make_certificates();
}

static void tear_down_all(void)
{
    certificate_free(&authority);
    certificate_free(&stranger_authority);
    certificate_free(&old_server);
    certificate_free(&new_server);
    certificate_free(&good_client);
    certificate_free(&other_client);
    certificate_free(&expired_client);
    certificate_free(&wrong_purpose_client);
}

PROGRAM_FIXTURE(set_up_all, tear_down_all)

static void set_up(void)
{
    static char text[30000];
    struct iovec piece = { text, sizeof(text) };

    memset(text, 'x', sizeof(text));
    body = http_body_new(&piece, 1, "text/plain", NULL, NULL, NULL);
    log_file = log_new(STDERR_FILENO, LOG_ERROR + 1, &clock_real);
    client.fd = other.fd = -1;
    stands_for_peer = NULL;
    atomic_store(&is_ready, false);
    atomic_store(&n_waiting, 0);
    replace_file("cert.pem", old_server.cert_pem);
    replace_file("key.pem", old_server.key_pem);
    replace_file("ca.pem", authority.cert_pem);
}

/* Checks of passwords take as long as the test says. */
static struct {
    atomic_bool are_held;
    atomic_uint n_begun;
} checks;

char *__real_crypt_r(const char *password, const char *hash, struct crypt_data *data);
char *__wrap_crypt_r(const char *password, const char *hash, struct crypt_data *data);
char *__wrap_crypt_r(const char *password, const char *hash, struct crypt_data *data)
{
    atomic_fetch_add(&checks.n_begun, 1);
    while (atomic_load(&checks.are_held))
        poll(NULL, 0, 1);
    return __real_crypt_r(password, hash, data);
}

static void hold_checks(void)
{
    atomic_store(&checks.n_begun, 0);
    atomic_store(&checks.are_held, true);
}

static void tear_down(void)
{
    atomic_store(&checks.are_held, false);
    client_close(&client);
    client_close(&other);
    server = http_stop(server);
    body = http_body_unref(body);
    log_file = log_free(log_file);
}

FIXTURE(set_up, tear_down)

static void start_with_clock(const char *web_config, const struct clock *clock)
{
    static const struct str listen = STR_INIT("127.0.0.1:0");
    struct http_config config = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .web_config = test_path("web.yml"),
        .max_connections = MOST_CONNECTIONS,
        .workers = 1,
        .queue = 10,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 8192,
        .clock = clock,
        .log = log_file,
    };
    struct err err;

    replace_file("web.yml", web_config);
    if (http_start(&config, &server, &err) < 0)
        fail_msg("%s", err.text);
}

static void start(const char *web_config)
{
    start_with_clock(web_config, &clock_real);
}

static int reload(const char *web_config, struct err *err)
{
    replace_file("web.yml", web_config);
    return http_reload(server, err);
}

static struct http_stats stats(void)
{
    struct http_stats now;

    http_stats(server, &now);
    return now;
}

/* The status of one GET over a new TLS connection; 0 when it was not let in. */
static unsigned ask(const char *path, const struct certificate *own, const char *priority)
{
    gnutls_certificate_credentials_t credentials = certificate_credentials(own);
    static struct client c;
    struct reply reply = { 0 };

    client_open(&c, http_address(server, 0));
    if (client_handshake(&c, credentials, priority) == 0)
        reply = client_get(&c, path);
    client_close(&c);
    gnutls_certificate_free_credentials(credentials);
    return reply.status;
}

static bool serves(const struct certificate *expected)
{
    gnutls_certificate_credentials_t credentials = certificate_credentials(NULL);
    const gnutls_datum_t *chain;
    static struct client c;
    gnutls_x509_crt_t got;
    unsigned n = 0;
    bool same;

    client_open(&c, http_address(server, 0));
    assert_int_equal(client_handshake(&c, credentials, ANY_TLS), 0);
    chain = gnutls_certificate_get_peers(c.tls, &n);
    assert_true(n >= 1);
    gnutls_x509_crt_init(&got);
    gnutls_x509_crt_import(got, &chain[0], GNUTLS_X509_FMT_DER);
    same = gnutls_x509_crt_equals(got, expected->cert);
    gnutls_x509_crt_deinit(got);
    client_close(&c);
    gnutls_certificate_free_credentials(credentials);
    return same;
}

TEST(tls_serves_whole_answers_on_a_kept_connection)
{
    static const char *const priorities[] = { TLS_12, TLS_13 };
    gnutls_certificate_credentials_t credentials = certificate_credentials(NULL);

    start(SERVER_PAIR);
    assert_contains(http_address(server, 0), "https://127.0.0.1:");
    for (int i = 0; i < 2; i++) {
        client_open(&client, http_address(server, 0));
        assert_int_equal(client_handshake(&client, credentials, priorities[i]), 0);
        for (int k = 0; k < 3; k++) {
            struct reply reply = client_get(&client, "/body");

            assert_int_equal(reply.status, 200);
            assert_int_equal(reply.body.n, 30000);
        }
        client_close(&client);
    }
    gnutls_certificate_free_credentials(credentials);
}

TEST(a_handler_can_wait_over_tls)
{
    gnutls_certificate_credentials_t credentials = certificate_credentials(NULL);
    struct reply reply;

    start(SERVER_PAIR);
    client_open(&client, http_address(server, 0));
    assert_int_equal(client_handshake(&client, credentials, ANY_TLS), 0);
    client_send_text(&client, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until_true(n_waiting == 1);
    atomic_store(&is_ready, true);
    http_wake(server);
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
    client_close(&client);
    gnutls_certificate_free_credentials(credentials);
}

TEST(who_loses_its_place_before_the_handshake_is_told_to_retry)
{
    gnutls_certificate_credentials_t credentials = certificate_credentials(NULL);
    struct manual_clock manual;
    struct reply reply;
    int others[MOST_CONNECTIONS];

    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    start_with_clock(SERVER_PAIR, &manual.clock);
    client_open(&client, http_address(server, 0));
    wait_until_true(stats().connections == 1);
    for (unsigned i = 0; i < COUNT(others); i++)
        others[i] = client_connect(http_address(server, 0));
    wait_until_true(stats().evicted == 1);
    assert_int_equal(client_handshake(&client, credentials, ANY_TLS), 0);
    reply = client_get(&client, "/who");
    assert_int_equal(reply.status, 503);
    assert_str(reply_header(&reply, "Retry-After"), "1");
    client_close(&client);
    for (unsigned i = 0; i < COUNT(others); i++)
        close(others[i]);
    server = http_stop(server);
    manual_clock_destroy(&manual);
    gnutls_certificate_free_credentials(credentials);
}

TEST(a_new_certificate_serves_new_connections)
{
    gnutls_certificate_credentials_t credentials = certificate_credentials(NULL);
    struct manual_clock manual;
    struct reply reply;

    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    start_with_clock(SERVER_PAIR, &manual.clock);
    client_open(&client, http_address(server, 0));
    assert_int_equal(client_handshake(&client, credentials, ANY_TLS), 0);
    assert_true(serves(&old_server));
    replace_file("cert.pem", new_server.cert_pem); /* for a moment, the key does not fit */
    manual_clock_advance(&manual, NS_PER_SEC);
    http_wake(server);
    assert_true(serves(&old_server));
    replace_file("key.pem", new_server.key_pem);
    do { /* the files are looked at once a second, if the look before has ended */
        manual_clock_advance(&manual, NS_PER_SEC);
        reply = client_get(&client, "/who"); /* the old one goes on */
        assert_int_equal(reply.status, 200);
    } while (!serves(&new_server));
    client_close(&client);
    server = http_stop(server);
    manual_clock_destroy(&manual);
    gnutls_certificate_free_credentials(credentials);
}

TEST(a_broken_configuration_changes_nothing)
{
    struct err err;

    start(SERVER_PAIR "  min_version: TLS13\n");
    assert_int_equal(ask("/who", NULL, TLS_12), 0);
    assert_int_equal(reload(SERVER_PAIR "  min_versoin: TLS12\n", &err), -EINVAL);
    assert_contains(err.text, "web.yml:4: unknown key \"min_versoin\"");
    assert_int_equal(ask("/who", NULL, TLS_12), 0);
    assert_int_equal(ask("/who", NULL, TLS_13), 200);
    assert_int_equal(reload(SERVER_PAIR "  min_version: TLS12\n", &err), 0);
    assert_int_equal(ask("/who", NULL, TLS_12), 200);
}

TEST(tls_can_not_be_switched_while_running)
{
    struct err err;

    start(SERVER_PAIR);
    assert_int_equal(reload("", &err), -EINVAL);
    assert_contains(err.text, "TLS can't be switched off while running: restart");
    assert_int_equal(ask("/who", NULL, ANY_TLS), 200);
    server = http_stop(server);
    start("");
    assert_int_equal(reload(SERVER_PAIR, &err), -EINVAL);
    assert_contains(err.text, "TLS can't be switched on while running: restart");
}

TEST(client_certificates_are_checked_as_configured)
{
    static const struct {
        const char *type;
        unsigned none, good, other, expired, wrong_purpose;
    } rows[] = {
        { "NoClientCert", 200, 200, 200, 200, 200 },
        { "RequestClientCert", 200, 200, 200, 200, 200 },
        { "RequireAnyClientCert", 0, 200, 200, 200, 200 },
        { "VerifyClientCertIfGiven", 200, 200, 0, 0, 0 },
        { "RequireAndVerifyClientCert", 0, 200, 0, 0, 0 },
    };
    static const char *const priorities[] = { TLS_12, TLS_13 };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[500];

        snprintf(text, sizeof(text), SERVER_PAIR "  client_auth_type: %s\n%s", rows[i].type,
                 i ? "  client_ca_file: ca.pem\n" : "");
        start(text);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(ask("/who", NULL, priorities[k]), rows[i].none);
            assert_int_equal(ask("/who", &good_client, priorities[k]), rows[i].good);
            assert_int_equal(ask("/who", &other_client, priorities[k]), rows[i].other);
            assert_int_equal(ask("/who", &expired_client, priorities[k]), rows[i].expired);
            assert_int_equal(ask("/who", &wrong_purpose_client, priorities[k]),
                             rows[i].wrong_purpose);
        }
        server = http_stop(server);
    }
}

TEST(a_verified_certificate_is_trusted_from_anywhere)
{
    static const struct {
        const char *type;
        unsigned none, good;
    } rows[] = {
        { "RequestClientCert", 403, 403 },
        { "RequireAnyClientCert", 0, 403 },
        { "VerifyClientCertIfGiven", 403, 200 },
        { "RequireAndVerifyClientCert", 0, 200 },
    };

    stands_for_peer = "10.1.2.3";
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[500];

        snprintf(text, sizeof(text),
                 SERVER_PAIR "  client_auth_type: %s\n  client_ca_file: ca.pem\n", rows[i].type);
        start(text);
        assert_int_equal(ask("/trusted", NULL, ANY_TLS), rows[i].none);
        assert_int_equal(ask("/trusted", &good_client, ANY_TLS), rows[i].good);
        server = http_stop(server);
    }
}

TEST(only_the_allowed_names_are_let_in)
{
    static const char *const allowed[] = { "good.example", "good@example", "spiffe://example/good",
                                           "10.0.0.1" };
    static const char *const refused[] = { "example", "*.example", "10.0.0.2", "GOOD.example" };
#define SANS                                                                                       \
    SERVER_PAIR "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"       \
                "  client_allowed_sans: [ nobody, '%s' ]\n"
    char text[500];
    struct err err;

    snprintf(text, sizeof(text), SANS, "x");
    start(text);
    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof(text), SANS, allowed[i]);
        assert_int_equal(reload(text, &err), 0);
        assert_int_equal(ask("/who", &good_client, ANY_TLS), 200);
        assert_int_equal(ask("/who", &other_client, ANY_TLS), 0);
        snprintf(text, sizeof(text), SANS, refused[i]);
        assert_int_equal(reload(text, &err), 0);
        assert_int_equal(ask("/who", &good_client, ANY_TLS), 0);
    }
    assert_true(stats().refused_auth >= 8);
}

/* How often the server's loop has waited for events, and how often it has only looked for them. */
static atomic_uint n_loop_waits, n_loop_looks;

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
    atomic_fetch_add(timeout_ms ? &n_loop_waits : &n_loop_looks, 1);
    return __real_epoll_wait(fd, events, most, timeout_ms);
}

TEST(a_handshake_that_stops_half_way_does_not_keep_a_processor_busy)
{
    static const char half[] = "\x16\x03\x01\x02\x00\x01\x00\x01";

    start(SERVER_PAIR);
    client_open(&client, http_address(server, 0));
    client_send(&client, (struct str){ half, sizeof(half) - 1 });
    assert_int_equal(ask("/who", NULL, ANY_TLS), 200);
    atomic_store(&n_loop_waits, 0);
    atomic_store(&n_loop_looks, 0);
    wait_until_true(n_loop_waits + n_loop_looks >= 20);
    assert_true(n_loop_looks < 10); /* the end of the connection before takes a few */
    assert_int_equal(ask("/who", NULL, ANY_TLS), 200);
}

TEST(garbage_instead_of_tls_is_cut_off)
{
    start(SERVER_PAIR);
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "GET /who HTTP/1.1\r\nHost: x\r\n\r\n");
    client_await_close(&client);
    assert_int_equal(ask("/who", NULL, ANY_TLS), 200);
}

/* "name: hash" lines for the configuration. */
static const char *user_line(const char *name, const char *password, unsigned cost)
{
    static struct crypt_data data;
    static char line[2][200];
    static int turn;
    char salt[CRYPT_GENSALT_OUTPUT_SIZE];

    turn = !turn;
    assert_non_null(crypt_gensalt_rn("$2b$", cost, "0123456789abcdef", 16, salt, sizeof(salt)));
    snprintf(line[turn], sizeof(line[turn]), "basic_auth_users:\n  %s: %s\n", name,
             crypt_r(password, salt, &data));
    return line[turn];
}

#define ALICE_SECRET "Authorization: Basic YWxpY2U6c2VjcmV0\r\n" /* alice:secret */
#define ALICE_WRONG  "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n" /* alice:wrong */
#define BOB_SECRET   "Authorization: Basic Ym9iOnNlY3JldA==\r\n" /* bob:secret */

TEST(a_password_is_asked_for_except_on_open_paths)
{
    struct reply reply;

    start(user_line("alice", "secret", 4));
    client_open(&client, http_address(server, 0));
    reply = client_get(&client, "/who");
    assert_int_equal(reply.status, 401);
    assert_str(reply_header(&reply, "WWW-Authenticate"),
               "Basic realm=\"sonde\", charset=\"UTF-8\"");
    reply = client_get(&client, "/missing");
    assert_int_equal(reply.status, 401);
    reply = client_get(&client, "/open");
    assert_int_equal(reply.status, 200);
    for (int i = 0; i < 2; i++) { /* checked, then remembered */
        reply = client_get_with(&client, "/who", ALICE_SECRET);
        assert_int_equal(reply.status, 200);
        assert_str(reply.body, "user=alice");
        reply = client_get_with(&client, "/who", ALICE_WRONG);
        assert_int_equal(reply.status, 401);
        reply = client_get_with(&client, "/who", BOB_SECRET);
        assert_int_equal(reply.status, 401);
    }
    reply = client_get_with(&client, "/missing", ALICE_SECRET);
    assert_int_equal(reply.status, 404);
    assert_int_equal(stats().refused_auth, 6);
    assert_int_equal(stats().connections, 1);
}

TEST(a_password_is_trusted_from_anywhere_and_without_one_this_machine)
{
    static const struct {
        const char *peer;
        unsigned status;
    } rows[] = {
        { "127.0.0.1", 200 }, { "127.9.8.7", 200 }, { "::1", 200 },   { "unix", 200 },
        { "10.1.2.3", 403 },  { "128.0.0.1", 403 }, { "::2", 403 },   { "", 403 },
        { "126.0.0.1", 403 }, { "fe80::1", 403 },   { "unixx", 403 },
    };

    start(user_line("alice", "secret", 4));
    client_open(&client, http_address(server, 0));
    for (size_t i = 0; i < COUNT(rows); i++) {
        stands_for_peer = rows[i].peer;
        assert_int_equal(client_get(&client, "/trusted").status, rows[i].status);
        assert_int_equal(client_get_with(&client, "/trusted", ALICE_SECRET).status, 200);
    }
}

TEST(a_changed_password_takes_the_place_of_the_old_one)
{
    struct reply reply;
    struct err err;

    start(user_line("alice", "secret", 4));
    client_open(&client, http_address(server, 0));
    reply = client_get_with(&client, "/who", ALICE_SECRET);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reload(user_line("alice", "wrong", 4), &err), 0);
    reply = client_get_with(&client, "/who", ALICE_SECRET);
    assert_int_equal(reply.status, 401);
    reply = client_get_with(&client, "/who", ALICE_WRONG);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reload("", &err), 0);
    reply = client_get(&client, "/who");
    assert_str(reply.body, "user=");
}

TEST(a_large_body_is_not_taken_from_a_stranger)
{
    struct reply reply;

    start(user_line("alice", "secret", 4));
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "POST /who HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    reply = client_read(&client, true); /* without a byte of it having been sent */
    assert_int_equal(reply.status, 401);
    client_close(&client);
    client_open(&client, http_address(server, 0));
    client_send_text(&client, "POST /who HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n" ALICE_SECRET
                              "\r\nhello");
    reply = client_read(&client, true);
    assert_int_equal(reply.status, 200);
}

/* Requests with passwords that all differ, each from a connection of its own. */
static void send_guesses(int *fds, int n)
{
    for (int i = 0; i < n; i++) {
        char request[300];
        int length = snprintf(request, sizeof(request),
                              "GET /who HTTP/1.1\r\nHost: x\r\n"
                              "Authorization: Basic YWxpY2U6e%c%cA\r\n\r\n",
                              'A' + i % 26, 'A' + i / 26);

        fds[i] = client_connect(http_address(server, 0));
        assert_int_equal(write(fds[i], request, (size_t)length), length);
    }
}

static int count_unanswered(const int *fds, int n)
{
    int unanswered = 0;
    char byte;

    for (int i = 0; i < n; i++)
        unanswered += recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    return unanswered;
}

TEST(a_flood_of_guesses_holds_up_nobody_who_is_known)
{
    struct reply reply;
    int guesses[50];

    start(user_line("alice", "secret", 4));
    client_open(&client, http_address(server, 0));
    reply = client_get_with(&client, "/who", ALICE_SECRET);
    assert_int_equal(reply.status, 200);
    hold_checks();
    send_guesses(guesses, 50);
    wait_until_true(stats().refused_busy >= 42 && checks.n_begun == 1);
    for (int i = 0; i < 20; i++) {
        reply = client_get_with(&client, "/who", ALICE_SECRET);
        assert_int_equal(reply.status, 200);
        reply = client_get(&client, "/open");
        assert_int_equal(reply.status, 200);
    }
    assert_int_equal(checks.n_begun, 1); /* and has not ended yet */
    assert_true(count_unanswered(guesses, 50) > 0);
    for (int i = 0; i < 50; i++) /* those that wait for a verdict leave */
        close(guesses[i]);
    reply = client_get(&client, "/open");
    assert_int_equal(reply.status, 200);
}

/* A connection on which nothing was asked is closed when the server begins to stop. */
static void *end_checks_when_it_stops(void *arg)
{
    client_await_close(&other);
    atomic_store(&checks.are_held, false);
    return arg;
}

TEST(it_stops_while_passwords_are_being_checked)
{
    int guesses[9];
    pthread_t thread;

    start(user_line("alice", "secret", 4));
    client_open(&other, http_address(server, 0));
    hold_checks();
    send_guesses(guesses, 9);
    /* One is being checked, seven wait, and the last was one too many: all have been read. */
    wait_until_true(stats().refused_busy == 1 && checks.n_begun == 1);
    assert_int_equal(pthread_create(&thread, NULL, end_checks_when_it_stops, NULL), 0);
    server = http_stop(server);
    pthread_join(thread, NULL);
    for (int i = 0; i < 9; i++) {
        char status[13] = "";

        assert_int_equal(recv(guesses[i], status, 12, MSG_WAITALL), 12);
        if (strcmp(status, "HTTP/1.1 401") != 0)
            assert_string_equal(status, "HTTP/1.1 503");
        close(guesses[i]);
    }
}

TEST(configured_headers_are_on_every_answer_at_once)
{
    struct reply reply;
    struct err err;

    start("");
    client_open(&client, http_address(server, 0));
    reply = client_get(&client, "/body");
    assert_str(reply_header(&reply, "X-Frame-Options"), "DENY");
    assert_int_equal(reload("http_server_config:\n  headers:\n    X-Frame-Options: sameorigin\n"
                            "    Strict-Transport-Security: max-age=1\n"
                            "    Content-Security-Policy: ''\n",
                            &err),
                     0);
    for (int i = 0; i < 2; i++) {
        reply = client_get(&client, i ? "/who" : "/body");
        assert_str(reply_header(&reply, "X-Frame-Options"), "sameorigin");
        assert_str(reply_header(&reply, "Strict-Transport-Security"), "max-age=1");
        assert_int_equal(reply_header(&reply, "Content-Security-Policy").n, 0);
        assert_str(reply_header(&reply, "X-Content-Type-Options"), "nosniff");
    }
}

TEST(the_rate_of_requests_can_be_limited)
{
    struct manual_clock manual;
    struct reply reply;

    manual_clock_init(&manual, 0, 1000 * NS_PER_SEC);
    start_with_clock("rate_limit: { interval: 1s, burst: 3 }\n", &manual.clock);
    client_open(&client, http_address(server, 0));
    for (int i = 0; i < 3; i++) {
        reply = client_get(&client, "/who");
        assert_int_equal(reply.status, 200);
    }
    reply = client_get(&client, "/who");
    assert_int_equal(reply.status, 429);
    manual_clock_advance(&manual, NS_PER_SEC);
    reply = client_get(&client, "/who");
    assert_int_equal(reply.status, 200);
    reply = client_get(&client, "/who");
    assert_int_equal(reply.status, 429);
    server = http_stop(server);
    manual_clock_destroy(&manual);
}
