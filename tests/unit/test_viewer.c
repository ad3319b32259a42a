/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who looks, over the real server. */
#include "test.h"

#include "files.h"
#include "http_client.h"

#include "base/arena.h"
#include "base/buf.h"
#include "web/viewer.h"

#include <crypt.h>
#include <fcntl.h>

static char socket_path[300];
static struct viewer_config config;
static struct http_server *server;
static struct log *log_file;
static struct client client;
static struct err err;

static const struct str staff[] = { STR_INIT("root"), STR_INIT("anna") };
static const struct str coordinators[] = { STR_INIT("physics:bob"), STR_INIT("chem:bob"),
                                           STR_INIT("bio:eve") };
static const struct str x_remote_user = STR_INIT("X-Remote-User");

/* "bob staff=0 accounts=2 peer=127.0.0.1", or why not. */
static enum http_verdict tell(void *ctx, struct http_exchange *x)
{
    struct arena arena = { 0 };
    struct viewer viewer;
    struct err why = { 0 };
    struct buf out;

    (void)ctx;
    buf_init(&out, 4096);
    if (viewer_of(&config, x, &arena, &viewer, &why) < 0) {
        http_reply(x, 403, "text/plain", str_of(why.text));
    } else {
        buf_printf(&out, "%.*s staff=%d accounts=%zu peer=%.*s", STR_ARG(viewer.user),
                   viewer.is_staff, viewer.accounts.n, STR_ARG(http_peer(x)));
        http_reply(x, 200, "text/plain", buf_str(&out));
    }
    buf_free(&out);
    arena_clear(&arena);
    return HTTP_DONE;
}

static const struct http_route routes[] = { { .method = "GET", .path = "/", .handle = tell },
                                            { .path = NULL } };

static void start(struct str listen, const char *web)
{
    const struct http_config http = {
        .routes = routes,
        .listen = &listen,
        .n_listen = 1,
        .web_config = web,
        .max_connections = 10,
        .workers = 1,
        .queue = 10,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 16384,
        .clock = &clock_real,
        .log = log_file = log_new(STDERR_FILENO, LOG_ERROR, &clock_real),
    };

    if (http_start(&http, &server, &err) < 0)
        fail_msg("%s", err.text);
    client_open(&client, http_address(server, 0));
}

static void clear_config(void)
{
    config = (struct viewer_config){ .header = x_remote_user,
                                     .staff = staff,
                                     .n_staff = COUNT(staff),
                                     .coordinators = coordinators,
                                     .n_coordinators = COUNT(coordinators) };
}

static void set_up(void)
{
    snprintf(socket_path, sizeof(socket_path), "unix:%s", test_path("socket"));
    clear_config();
}

static void tear_down(void)
{
    client_close(&client);
    server = http_stop(server);
    log_file = log_free(log_file);
}

FIXTURE(set_up, tear_down)

static void trust(const struct str *proxies, size_t n)
{
    config.auth = VIEWER_PROXY;
    config.proxies = proxies;
    config.n_proxies = n;
}

static void assert_told(const char *headers, unsigned status, const char *part)
{
    struct reply reply = client_get_with(&client, "/", headers);

    if (reply.status != status || str_find_str(reply.body, str_of(part)) == reply.body.n)
        fail_msg("%u: %.*s", reply.status, STR_ARG(reply.body));
}

TEST(without_proof_everybody_is_staff)
{
    start(STR("127.0.0.1:0"), NULL);
    assert_told("", 200, " staff=1 accounts=0 peer=127.0.0.1");
    assert_told("X-Remote-User: eve\r\n", 200, " staff=1 accounts=0");
}

TEST(a_password_proves_a_name_and_nothing_else_does)
{
    static struct crypt_data data;
    char salt[64], text[200];

    crypt_gensalt_rn("$2b$", 4, "0123456789abcdef", 16, salt, sizeof(salt));
    snprintf(text, sizeof(text), "basic_auth_users:\n  anna: %s\n  bob: %s\n",
             crypt_r("secret", salt, &data), crypt_r("secret", salt, &data));
    config.auth = VIEWER_BASIC;
    start(STR("127.0.0.1:0"), write_file("web.yml", text));
    assert_told("Authorization: Basic YW5uYTpzZWNyZXQ=\r\n", 200, "anna staff=1 accounts=0");
    assert_told("Authorization: Basic Ym9iOnNlY3JldA==\r\nX-Remote-User: root\r\n", 200,
                "bob staff=0 accounts=2");
    assert_int_equal(client_get_with(&client, "/", "X-Remote-User: root\r\n").status, 401);
    config.auth = VIEWER_NONE; /* the users came later, by a reload */
    assert_told("Authorization: Basic Ym9iOnNlY3JldA==\r\n", 200, "bob staff=0 accounts=2");
}

TEST(where_no_passwords_are_asked_for_basic_auth_lets_nobody_in)
{
    config.auth = VIEWER_BASIC;
    start(STR("127.0.0.1:0"), NULL);
    assert_told("", 403, "password");
    assert_told("Authorization: Basic YW5uYTpzZWNyZXQ=\r\n", 403, "password");
}

TEST(a_listed_proxy_says_who_looks)
{
    static const struct str proxies[] = { STR_INIT("10.1.2.3"), STR_INIT("127.0.0.0/8") };

    trust(proxies, COUNT(proxies));
    start(STR("127.0.0.1:0"), NULL);
    assert_told("X-Remote-User: bob\r\n", 200, "bob staff=0 accounts=2 peer=127.0.0.1");
    assert_told("x-remote-user:  root \r\n", 200, "root staff=1");
    assert_told("", 403, "X-Remote-User");
    assert_told("X-Remote-User: \r\n", 403, "X-Remote-User");
    assert_told("X-Remote-User: a\xff z\r\n", 403, "X-Remote-User");
}

TEST(a_header_from_an_address_that_is_not_listed_is_refused)
{
    static const struct str proxies[] = { STR_INIT("127.0.0.2"), STR_INIT("127.0.0.128/25"),
                                          STR_INIT("::1"), STR_INIT("unix") };

    trust(proxies, COUNT(proxies));
    start(STR("127.0.0.1:0"), NULL);
    assert_told("X-Remote-User: root\r\n", 403, "none of its proxies");
    assert_told("X-Remote-User: root\r\nX-Forwarded-For: 127.0.0.2\r\n", 403,
                "none of its proxies");
}

TEST(two_headers_are_refused_as_one_may_be_the_clients_own)
{
    static const struct str proxies[] = { STR_INIT("127.0.0.1") };

    trust(proxies, COUNT(proxies));
    start(STR("127.0.0.1:0"), NULL);
    assert_told("X-Remote-User: root\r\nX-REMOTE-USER: bob\r\n", 403, "more than one");
}

TEST(a_proxy_may_come_through_a_unix_socket)
{
    static const struct str proxies[] = { STR_INIT("unix") };

    trust(proxies, COUNT(proxies));
    start(str_of(socket_path), NULL);
    assert_told("X-Remote-User: eve\r\n", 200, "eve staff=0 accounts=1 peer=unix");
}

TEST(a_user_sees_their_own_and_a_coordinator_their_accounts)
{
    const struct str account = STR_INIT("physics");
    const struct viewer alice = { .user = STR("alice") }, nobody = { 0 },
                        bob = { .user = STR("bob"), .accounts = { &account, 1 } },
                        root = { .user = STR("root"), .is_staff = true };

    assert_true(viewer_may_see(&alice, STR("alice"), STR("chem")));
    assert_false(viewer_may_see(&alice, STR("bob"), STR("chem")));
    assert_false(viewer_may_see(&alice, STR("Alice"), STR("")));
    assert_false(viewer_may_see_account(&alice, STR("chem")));
    assert_true(viewer_may_see(&bob, STR("alice"), STR("physics")));
    assert_false(viewer_may_see_user(&bob, STR("alice")));
    assert_true(viewer_may_see_account(&bob, STR("physics")));
    assert_false(viewer_may_see(&nobody, STR(""), STR("")));
    assert_true(viewer_may_see(&root, STR(""), STR("")));
}

static void assert_refused(const char *part)
{
    assert_int_equal(viewer_config_check(&config, &err), -EINVAL);
    assert_contains(err.text, part);
}

TEST(a_setting_that_means_nothing_is_refused)
{
    static const char *const bad[] = { "10.0.0.0/33", "10.0.0", "::1/129", "host",
                                       "10.0.0.1/",   "unix/8", "",        "10.0.0.1/-1" };
    struct str proxy, coordinator = STR("physics");

    clear_config();
    assert_int_equal(viewer_config_check(&config, &err), 0);
    trust(NULL, 0);
    assert_refused("no address of a proxy is listed");
    trust(&proxy, 1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        proxy = str_of(bad[i]);
        assert_refused("is no address of a proxy");
    }
    proxy = STR("fe80::/10");
    assert_int_equal(viewer_config_check(&config, &err), 0);
    config.header = STR("X Remote");
    assert_refused("is no name of a header");
    config.header = x_remote_user;
    config.coordinators = &coordinator;
    config.n_coordinators = 1;
    assert_refused("account:user");
}
