/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real servers in this process: http_peer.h for what is HTTP, a socket for what only pretends. */
#include "test.h"

#include "certificates.h"
#include "files.h"
#include "http_peer.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fetch.h"
#include "loopback.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <zlib.h>

static bool libraries_are_missing;
static struct buf looked_for; /* while they are */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    if (!libraries_are_missing)
        return __real_dlopen(name, flags);
    buf_printf(&looked_for, "%s ", name);
    return NULL;
}

/* What holds the name service back until the test lets it go on. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_shut;
    unsigned n_inside;
};

static struct gate gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };

static void set_shut(bool is_shut)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_shut = is_shut;
    pthread_cond_broadcast(&gate.changed);
    while (!is_shut && gate.n_inside)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void pass_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.n_inside++;
    while (gate.is_shut)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.n_inside--;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static unsigned count_inside(void)
{
    unsigned n;

    pthread_mutex_lock(&gate.lock);
    n = gate.n_inside;
    pthread_mutex_unlock(&gate.lock);
    return n;
}

/* Takes the place of the C library's, for libcurl too, so that no test needs a name server. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **res)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    if (node && strcmp(node, "hangs.example") == 0)
        pass_gate();
    if (node && strstr(node, ".example"))
        return EAI_NONAME;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, res);
}

struct fixture {
    struct http_peer *peer; /* NULL: not yet */
    struct buf answer, bomb;
    struct fetch fetch;
    struct fetch_result result;
    struct err err;
    char url[200];
    atomic_bool cancelled;
};

static struct fixture *fixture;

static void reply(const struct peer_request *request, struct peer_reply *ret)
{
    const struct str xs = STR("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    const struct {
        const char *path;
        struct peer_reply reply;
    } routes[] = {
        { "/error", { .status = 500, .body = STR("it broke") } },
        { "/moved", { .status = 302, .headers = "Location: /error", .body = STR("elsewhere") } },
        { "/endless", { .manner = PEER_ENDLESS, .body = xs } },
        { "/cut", { .manner = PEER_HALF, .body = xs } },
        { "/cut-chunks", { .manner = PEER_HALF, .is_chunked = true, .body = xs } },
        { "/bomb", { .headers = "Content-Encoding: gzip", .body = buf_str(&fixture->bomb) } },
        { "/bare", { .body = STR("0123456789") } },
    };

    *ret = (struct peer_reply){ .type = "text/plain; charset=utf-8", .body = STR("0123456789") };
    for (size_t i = 0; i < COUNT(routes); i++)
        if (strcmp(request->path, routes[i].path) == 0)
            *ret = routes[i].reply;
}

/* 16 MB of zeros as 16 KB. */
static void make_bomb(struct buf *bomb)
{
    static char zeros[64 * 1024];
    z_stream stream = { 0 };

    buf_init(bomb, 1 << 20);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_out = (unsigned char *)buf_room(bomb, 1 << 16);
    stream.avail_out = 1 << 16;
    for (int i = 0; i < 256; i++) {
        stream.next_in = (unsigned char *)zeros;
        stream.avail_in = sizeof(zeros);
        deflate(&stream, i < 255 ? Z_NO_FLUSH : Z_FINISH);
    }
    bomb->n = stream.total_out;
    buf_end(bomb);
    deflateEnd(&stream);
}

static int collect(void *ctx, struct str piece, struct err *err)
{
    struct buf *answer = ctx;

    (void)err;
    buf_put(answer, piece);
    return 0;
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    buf_init(&fixture->answer, 32 << 20);
    fixture->fetch = (struct fetch){
        .url = fixture->url,
        .timeout_ms = TEST_DEADLINE / NS_PER_MS,
        .max_answer = 1 << 20,
        .sink = collect,
        .ctx = &fixture->answer,
    };
}

static void teardown(void)
{
    set_shut(false);
    peer_free(fixture->peer);
    buf_free(&fixture->answer);
    buf_free(&fixture->bomb);
    free(fixture);
}

FIXTURE(setup, teardown)

static void serve(struct http_peer *peer)
{
    fixture->peer = peer;
    peer_reply_by(peer, reply);
}

/* Starts the server if there is none yet, and asks it for `path`. */
static int ask(const char *path)
{
    if (!fixture->peer)
        serve(peer_open(NULL));
    snprintf(fixture->url, sizeof(fixture->url), "%s%s", peer_url(fixture->peer), path);
    buf_reset(&fixture->answer);
    fixture->err = (struct err){ 0 };
    memset(&fixture->result, 0xa5, sizeof(fixture->result));
    return fetch_run(&fixture->fetch, &fixture->result, &fixture->err);
}

/* The last one. */
static const struct peer_request *asked(void)
{
    return peer_request(fixture->peer, peer_requests(fixture->peer));
}

static void assert_answered(int code)
{
    if (code)
        fail_msg("%d: %s", code, fixture->err.text);
}

static void assert_sentence(const char *format)
{
    char expected[500], origin[100];

    snprintf(origin, sizeof(origin), "%.*s", (int)strcspn(fixture->url + 7, "/") + 7, fixture->url);
    snprintf(expected, sizeof(expected), "%.*s%s%s", (int)strcspn(format, "@"), format, origin,
             format + strcspn(format, "@") + 1);
    assert_string_equal(fixture->err.text, expected);
}

static bool names_the_package(int code, const struct err *err)
{
    return code == -ENOENT && strstr(err->text, "Debian: libcurl3-gnutls");
}

static bool does_without_the_library(void)
{
    const struct fetch fetch = { .url = "http://127.0.0.1:1/", .timeout_ms = 1000 };
    struct fetch_result result;
    struct fetch_base base;
    char origin[FETCH_ORIGIN];
    struct err err = { 0 };
    struct fetch_line *line = fetch_line_new();
    bool ok;

    libraries_are_missing = true;
    buf_init(&looked_for, 1000);
    ok = names_the_package(fetch_run(&fetch, &result, &err), &err) &&
         names_the_package(fetch_origin(fetch.url, NULL, origin, &err), &err) &&
         names_the_package(fetch_base_of(fetch.url, &base, &err), &err) &&
         str_eq(buf_str(&looked_for), STR("libcurl-gnutls.so.4 libcurl.so.4 "));
    fetch_line_free(line);
    buf_free(&looked_for);
    return ok;
}

/* In a process of its own, and before anything else, since the library is looked for once. */
TEST(without_the_library_its_package_is_named)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(does_without_the_library() ? 0 : 1);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void *find_origin(void *arg)
{
    return fetch_origin("http://a:1", NULL, arg, NULL) == 0 ? arg : NULL;
}

TEST(several_threads_may_be_the_first)
{
    pthread_t threads[4];
    char origins[COUNT(threads)][FETCH_ORIGIN];

    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_origin, origins[i]), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *ok;

        pthread_join(threads[i], &ok);
        assert_non_null(ok);
        assert_string_equal(origins[i], "http://a:1");
    }
}

TEST(an_answer_comes_whole_with_its_status_and_type)
{
    assert_answered(ask("/"));
    assert_int_equal(fixture->result.status, 200);
    assert_int_equal(fixture->result.bytes, 10);
    assert_string_equal(fixture->result.content_type, "text/plain; charset=utf-8");
    assert_str(buf_str(&fixture->answer), "0123456789");
    fixture->fetch.sink = NULL;
    assert_answered(ask("/"));
    assert_int_equal(fixture->result.bytes, 10);
}

TEST(the_request_is_what_was_asked_for)
{
    assert_answered(ask("/bare"));
    assert_string_equal(asked()->method, "GET");
    assert_string_equal(peer_header(asked(), "User-Agent"), "sonde/" SONDE_VERSION);
    assert_string_equal(peer_header(asked(), "Accept-Encoding"), "gzip");
    assert_string_equal(fixture->result.content_type, "");

    fixture->fetch.body = STR("a 1\n");
    fixture->fetch.content_type = "text/x-y";
    fixture->fetch.headers = (const char *const[]){ "X-One: 1", "X-Two: 2", NULL };
    assert_answered(ask("/"));
    assert_string_equal(asked()->method, "POST");
    assert_string_equal(peer_header(asked(), "X-One"), "1");
    assert_string_equal(peer_header(asked(), "X-Two"), "2");
    assert_string_equal(peer_header(asked(), "Content-Type"), "text/x-y");
    assert_string_equal(peer_header(asked(), "Content-Length"), "4");
    assert_str(asked()->body, "a 1\n");
    assert_string_equal(peer_header(asked(), "Expect"), "");
}

TEST(any_method_goes_with_and_without_a_body)
{
    fixture->fetch.method = "PUT";
    assert_answered(ask("/"));
    assert_string_equal(asked()->method, "PUT");
    assert_string_equal(peer_header(asked(), "Content-Length"), "0");
    assert_string_equal(peer_header(asked(), "Content-Type"), "");
    fixture->fetch.method = "DELETE";
    assert_answered(ask("/"));
    assert_string_equal(asked()->method, "DELETE");
    fixture->fetch.method = "HEAD";
    assert_answered(ask("/"));
    assert_int_equal(fixture->result.status, 200);
    assert_int_equal(fixture->result.bytes, 0);
}

TEST(credentials_reach_the_server)
{
    fixture->fetch.user = "alice";
    fixture->fetch.password = "secret";
    assert_answered(ask("/"));
    assert_string_equal(peer_header(asked(), "Authorization"), "Basic YWxpY2U6c2VjcmV0");
    fixture->fetch.user = NULL;
    fixture->fetch.bearer = "eyJh.x";
    assert_answered(ask("/"));
    assert_string_equal(peer_header(asked(), "Authorization"), "Bearer eyJh.x");
}

TEST(an_error_status_is_an_answer)
{
    assert_answered(ask("/error"));
    assert_int_equal(fixture->result.status, 500);
    assert_str(buf_str(&fixture->answer), "it broke");
}

TEST(a_redirect_is_not_followed)
{
    assert_answered(ask("/moved"));
    assert_int_equal(fixture->result.status, 302);
    assert_str(buf_str(&fixture->answer), "elsewhere");
}

TEST(the_ceiling_is_the_last_byte_that_passes)
{
    fixture->fetch.max_answer = 10;
    assert_answered(ask("/"));
    fixture->fetch.max_answer = 9;
    assert_int_equal(ask("/"), -EFBIG);
    assert_sentence("the answer of @ is larger than 9 bytes; raise the ceiling if it has "
                    "to be");
    assert_int_equal(fixture->result.status, (long)0xa5a5a5a5a5a5a5a5);
}

TEST(an_endless_answer_ends_at_the_ceiling)
{
    assert_int_equal(ask("/endless"), -EFBIG);
    assert_true(fixture->answer.n <= fixture->fetch.max_answer);
}

TEST(gzip_is_asked_for_and_unpacked)
{
    fixture->fetch.max_answer = 16 << 20;
    make_bomb(&fixture->bomb);
    assert_answered(ask("/bomb"));
    assert_int_equal(fixture->result.bytes, 16 << 20);
    assert_int_equal(fixture->answer.n, 16 << 20);
}

TEST(a_gzip_bomb_ends_at_the_ceiling)
{
    make_bomb(&fixture->bomb);
    assert_int_equal(ask("/bomb"), -EFBIG);
    assert_true(fixture->answer.n <= fixture->fetch.max_answer);
}

TEST(garbled_gzip_is_no_answer)
{
    make_bomb(&fixture->bomb);
    memset(fixture->bomb.p + 10, 0xff, 100);
    assert_int_equal(ask("/bomb"), -EREMOTEIO);
}

TEST(a_cut_answer_is_no_answer)
{
    assert_int_equal(ask("/cut"), -EREMOTEIO);
    assert_sentence("@ closed the connection before its answer was whole");
    assert_int_equal(ask("/cut-chunks"), -EREMOTEIO);
    assert_sentence("@ closed the connection before its answer was whole");
}

static int refuse_all(void *ctx, struct str piece, struct err *err)
{
    (void)ctx;
    (void)piece;
    return err_set(err, EBADMSG, "that is no JSON");
}

TEST(what_the_sink_says_is_passed_on)
{
    fixture->fetch.sink = refuse_all;
    assert_int_equal(ask("/"), -EBADMSG);
    assert_string_equal(fixture->err.text, "that is no JSON");
}

struct beginning {
    struct buf *answer;
    unsigned calls;
    size_t bytes_before;
    struct fetch_result result;
    int code;
};

static int note_beginning(void *ctx, const struct fetch_result *so_far, struct err *err)
{
    struct beginning *beginning = ctx;

    beginning->calls++;
    beginning->bytes_before = beginning->answer->n;
    beginning->result = *so_far;
    return beginning->code ? err_set(err, -beginning->code, "not wanted") : 0;
}

static int collect_after_beginning(void *ctx, struct str piece, struct err *err)
{
    return collect(((struct beginning *)ctx)->answer, piece, err);
}

TEST(status_and_type_are_known_before_the_body)
{
    struct beginning beginning = { .answer = &fixture->answer };

    fixture->fetch.begin = note_beginning;
    fixture->fetch.sink = collect_after_beginning;
    fixture->fetch.ctx = &beginning;
    assert_answered(ask("/"));
    assert_int_equal(beginning.calls, 1);
    assert_int_equal(beginning.bytes_before, 0);
    assert_int_equal(beginning.result.status, 200);
    assert_string_equal(beginning.result.content_type, "text/plain; charset=utf-8");
    assert_str(buf_str(&fixture->answer), "0123456789");

    /* Also where there is no body, */
    fixture->fetch.method = "HEAD";
    assert_answered(ask("/"));
    assert_int_equal(beginning.calls, 2);

    /* and who does not like them gets none. */
    fixture->fetch.method = NULL;
    beginning.code = -ENOTSUP;
    assert_int_equal(ask("/"), -ENOTSUP);
    assert_string_equal(fixture->err.text, "not wanted");
    assert_int_equal(fixture->answer.n, 0);
}

TEST(a_line_carries_one_request_after_another)
{
    fixture->fetch.line = fetch_line_new();
    fixture->fetch.bearer = "secret";
    assert_answered(ask("/"));
    assert_string_equal(peer_header(asked(), "Authorization"), "Bearer secret");
    fixture->fetch.bearer = NULL;
    assert_answered(ask("/"));
    assert_string_equal(peer_header(asked(), "Authorization"), "");
    fixture->fetch.max_answer = 5;
    assert_int_equal(ask("/"), -EFBIG);
    fixture->fetch.max_answer = 1 << 20;
    assert_answered(ask("/"));
    assert_int_equal(fixture->result.status, 200);
    assert_answered(ask("/error"));
    assert_int_equal(fixture->result.status, 500);
    fixture->fetch.line = fetch_line_free(fixture->fetch.line);
    assert_null(fetch_line_free(NULL));
}

TEST(a_slow_answer_ends_at_the_deadline)
{
    serve(peer_open(NULL));
    peer_hold(fixture->peer, "");
    fixture->fetch.timeout_ms = 100;
    assert_int_equal(ask("/"), -ETIMEDOUT);
    assert_sentence("@ did not answer in time");
    fixture->fetch.timeout_ms = 0;
    assert_int_equal(ask("/"), -ETIMEDOUT);
    fixture->fetch.timeout_ms = -5;
    assert_int_equal(ask("/"), -ETIMEDOUT);
    assert_string_equal(fixture->err.text, "no time is left for a request");
}

static void *cancel_when_asked(void *arg)
{
    peer_request(fixture->peer, 1);
    atomic_store(&fixture->cancelled, true);
    return arg;
}

TEST(a_request_can_be_cancelled)
{
    pthread_t thread;

    serve(peer_open(NULL));
    peer_hold(fixture->peer, "");
    fixture->fetch.cancelled = &fixture->cancelled;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_asked, NULL), 0);
    assert_int_equal(ask("/"), -ECANCELED);
    assert_sentence("the request to @ was stopped");
    pthread_join(thread, NULL);
}

TEST(a_closed_port_is_refused)
{
    uint16_t port;

    close(listen_on_loopback(16, &port));
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d/x", port);
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -ECONNREFUSED);
    assert_sentence("cannot connect to @: Connection refused; is it running, and "
                    "listening there?");
}

TEST(an_unknown_host_name_is_named)
{
    fixture->fetch.url = "http://nowhere.example:9090/api";
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -ENOENT);
    assert_string_equal(fixture->err.text, "the host name of http://nowhere.example:9090 is not "
                                           "known; check its spelling and the name service");
}

/* An older curl waits for its resolver. */
#if CURL_AT_LEAST_VERSION(7, 87, 0)
TEST(a_name_service_that_hangs_is_not_waited_for)
{
    set_shut(true);
    fixture->fetch.timeout_ms = 100;
    fixture->fetch.url = "http://hangs.example/";
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -ETIMEDOUT);
    wait_until_true(count_inside() == 1); /* and it still hangs there */
}
#endif

TEST(sentences_hold_no_credential_and_no_path)
{
    uint16_t port;

    close(listen_on_loopback(16, &port));
    snprintf(fixture->url, sizeof(fixture->url),
             "http://alice:secret@127.0.0.1:%d/secret?token=secret#secret", port);
    fixture->fetch.bearer = "secret";
    fixture->fetch.headers = (const char *const[]){ "X-SLURM-USER-TOKEN: secret", NULL };
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -ECONNREFUSED);
    assert_contains(fixture->err.text, "http://127.0.0.1:");
    assert_null(strstr(fixture->err.text, "secret"));
    assert_null(strstr(fixture->err.text, "alice"));
    fixture->fetch.bearer = "secret\n";
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EINVAL);
    assert_null(strstr(fixture->err.text, "secret"));
    fixture->fetch.bearer = NULL;
    fixture->fetch.headers = (const char *const[]){ "A: b", "X: secret\r\nY: z", NULL };
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EINVAL);
    assert_string_equal(fixture->err.text,
                        "a header or token holds a line break; remove it where it comes from");
}

TEST(only_http_urls_are_taken)
{
    static const char *const urls[] = {
        "",
        "example.com",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://",
        "http://a b/",
        "http://127.0.0.1:99999/",
        "gopher://",
        "HTTPx://127.0.0.1",
        "http://[::1/",
        "/etc/passwd",
    };

    for (size_t i = 0; i < COUNT(urls); i++) {
        fixture->fetch.url = urls[i];
        if (fetch_run(&fixture->fetch, &fixture->result, &fixture->err) != -EINVAL)
            fail_msg("%s: %s", urls[i], fixture->err.text);
    }
    assert_string_equal(fixture->err.text,
                        "the URL is not of the form http://HOST:PORT/PATH or https://…");
}

TEST(an_origin_is_what_may_be_shown)
{
    char origin[FETCH_ORIGIN];

    assert_int_equal(
        fetch_origin("https://alice:secret@host:6820/secret", NULL, origin, &fixture->err), 0);
    assert_string_equal(origin, "https://host:6820");
    assert_int_equal(fetch_origin("http://localhost/", "/run/socket", origin, &fixture->err), 0);
    assert_string_equal(origin, "unix:/run/socket");
    assert_int_equal(fetch_origin("host:6820", NULL, origin, &fixture->err), -EINVAL);
}

static void assert_base(const char *of, const char *url, const char *user, const char *password)
{
    struct fetch_base base;
    struct err err = { 0 };

    if (fetch_base_of(of, &base, &err) < 0)
        fail_msg("%s: %s", of, err.text);
    assert_string_equal(base.url, url);
    assert_string_equal(base.user ? base.user : "none", user);
    assert_string_equal(base.password ? base.password : "none", password);
    assert_null(strstr(base.origin, "@"));
    fetch_base_clear(&base);
}

TEST(a_url_to_add_to_loses_its_credentials)
{
    static const char *const wrong[] = { "http://a/?b", "http://a#b", "a:9091", "",
                                         "ftp://a/",    "http://a b" };
    struct fetch_base base = { .url = NULL };

    assert_base("http://gateway:9091", "http://gateway:9091", "none", "none");
    assert_base("https://g/prefix//", "https://g/prefix", "none", "none");
    assert_base("http://u:p@g:1/x/", "http://g:1/x", "u", "p");
    assert_base("http://u@g/", "http://g", "u", "none");
    assert_base("http://u%40x:p%2f%3a@g/", "http://g", "u@x", "p/:");
    assert_base("http://[::1]:9091/", "http://[::1]:9091", "none", "none");
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(fetch_base_of(wrong[i], &base, NULL), -EINVAL);
    assert_null(base.url);
}

TEST(a_proxy_is_not_used_for_this_machine)
{
    int code;

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("all_proxy", "http://127.0.0.1:1", 1);
    code = ask("/");
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    assert_answered(code);
}

TEST(a_unix_socket_takes_the_place_of_the_host)
{
    const char *path = test_path("socket");

    fixture->fetch.url = "http://nowhere.example/";
    fixture->fetch.unix_socket = path;
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -ENOENT);
    assert_contains(fixture->err.text, "cannot connect to unix:/");
    assert_contains(fixture->err.text, "/socket: No such file or directory; is it running");

    serve(peer_open_unix(path));
    assert_answered(fetch_run(&fixture->fetch, &fixture->result, &fixture->err));
    assert_str(buf_str(&fixture->answer), "0123456789");
}

TEST(tls_is_trusted_by_its_certificate_and_name_alone)
{
    struct certificate *authority = heap_alloc(sizeof(*authority));
    struct certificate *own = heap_alloc(sizeof(*own));
    const char *ca_file;

    certificate_make(authority, &(struct certificate_wish){ .name = "ca", .is_authority = true });
    certificate_make(own, &(struct certificate_wish){ .name = "localhost", .signer = authority });
    ca_file = write_file("ca", authority->cert_pem);
    serve(peer_open(own));
    snprintf(fixture->url, sizeof(fixture->url), "https://localhost:%d/", peer_port(fixture->peer));
    fixture->fetch.ca_file = ca_file;
    assert_answered(fetch_run(&fixture->fetch, &fixture->result, &fixture->err));
    assert_str(buf_str(&fixture->answer), "0123456789");

    fixture->fetch.ca_file = NULL;
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EACCES);
    assert_contains(fixture->err.text, "no trusted TLS connection to https://localhost:");
    assert_contains(fixture->err.text, "certificate verification failed");

    fixture->fetch.ca_file = "/nowhere/ca.pem";
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EACCES);
    assert_string_equal(fixture->err.text, "cannot read certificates from /nowhere/ca.pem");

    fixture->fetch.ca_file = ca_file;
    snprintf(fixture->url, sizeof(fixture->url), "%s/", peer_url(fixture->peer));
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EACCES);
    assert_contains(fixture->err.text, "does not match");
    fixture->peer = peer_free(fixture->peer);
    certificate_free(own);
    certificate_free(authority);
    free(own);
    free(authority);
}

TEST(tls_with_a_server_that_has_none_is_denied)
{
    assert_answered(ask("/"));
    memmove(fixture->url + 5, fixture->url + 4, strlen(fixture->url + 4) + 1);
    fixture->url[4] = 's';
    assert_int_equal(fetch_run(&fixture->fetch, &fixture->result, &fixture->err), -EACCES);
}

/* Accepts one connection, reads the request and says `begin`, then `more` again and again. */
struct pretender {
    int fd;
    const char *begin, *more;
};

static bool say(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) >= 0;
}

static void *pretend(void *arg)
{
    struct pretender *pretender = arg;
    int fd = accept(pretender->fd, NULL, NULL);
    char request[4096];

    if (recv(fd, request, sizeof(request), 0) > 0 && say(fd, pretender->begin))
        while (pretender->more && say(fd, pretender->more))
            continue;
    close(fd);
    return NULL;
}

static int ask_pretender(const char *begin, const char *more)
{
    struct pretender pretender = { .begin = begin, .more = more };
    uint16_t port;
    pthread_t thread;
    int code;

    pretender.fd = listen_on_loopback(16, &port);
    assert_int_equal(pthread_create(&thread, NULL, pretend, &pretender), 0);
    snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%d/", port);
    code = fetch_run(&fixture->fetch, &fixture->result, &fixture->err);
    shutdown(pretender.fd, SHUT_RDWR); /* if no connection was made in time, none is waited for */
    pthread_join(thread, NULL);
    close(pretender.fd);
    return code;
}

TEST(a_server_that_only_pretends_is_found_out)
{
    assert_int_equal(ask_pretender("SSH-2.0-OpenSSH_9.2\r\n", NULL), -EREMOTEIO);
    assert_int_equal(ask_pretender("", NULL), -EREMOTEIO);
    assert_sentence("@ closed the connection before its answer was whole");
    assert_int_equal(ask_pretender("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", NULL),
                     -EREMOTEIO);
    assert_int_equal(
        ask_pretender("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", NULL),
        -EREMOTEIO);
}

TEST(endless_headers_end_at_a_ceiling)
{
    assert_int_equal(ask_pretender("HTTP/1.1 200 OK\r\n", "X-Header: value\r\n"), -EREMOTEIO);
    assert_sentence("@ sent more than 262144 bytes of headers");
    assert_true(ask_pretender("HTTP/1.1 200 OK\r\nX: ", "xxxxxxxxxxxxxxxxxxxxxxxxx") < 0);
    assert_true(ask_pretender("", "HTTP/1.1 100 Continue\r\n\r\n") < 0);
}

TEST(an_answer_is_unpacked_once_and_no_more)
{
    static const char *const headers[] = {
        "Content-Encoding: gzip, gzip\r\n",
        "content-encoding:gzip\r\nContent-Encoding: deflate\r\n",
        "Transfer-Encoding: gzip, gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
    };
    char answer[200];

    for (size_t i = 0; i < COUNT(headers); i++) {
        snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n%s\r\nx", headers[i]);
        assert_int_equal(ask_pretender(answer, NULL), -EREMOTEIO);
        assert_sentence("@ has packed its answer more than once");
    }
}

TEST(an_answer_that_trickles_ends_at_the_deadline)
{
    struct beginning beginning = { .answer = &fixture->answer };

    fixture->fetch.timeout_ms = 200;
    fixture->fetch.max_answer = SIZE_MAX;
    fixture->fetch.begin = note_beginning;
    fixture->fetch.sink = NULL;
    fixture->fetch.ctx = &beginning;
    assert_int_equal(ask_pretender("HTTP/1.1 200 OK\r\n\r\n", "x"), -ETIMEDOUT);
    /* Whether it had begun until then is up to the machine. */
    assert_sentence(beginning.calls ? "@ had not sent the whole of its answer in time"
                                    : "@ did not answer in time");
}

static void *ask_once(void *arg)
{
    const struct fetch *fetch = arg;
    struct fetch_result result;

    return fetch_run(fetch, &result, NULL) == 0 ? arg : NULL;
}

TEST(any_number_of_threads_may_ask)
{
    pthread_t threads[8];

    fixture->fetch.sink = NULL;
    assert_answered(ask("/"));
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_once, &fixture->fetch), 0);
    for (size_t i = 0; i < 8; i++) {
        void *ok;

        pthread_join(threads[i], &ok);
        assert_non_null(ok);
    }
}
