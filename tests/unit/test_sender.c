/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Against an agent's socket and HTTP servers that are played by the test itself, well or badly. The
 * real Pushgateway: tests/e2e/test_profile_push.py. */
#include "test.h"

#include "certificates.h"
#include "files.h"
#include "http_peer.h"
#include "kernel_time.h"

#include "base/num.h"
#include "loopback.h"
#include "plugin/pace.h"
#include "plugin/sender.h"
#include "plugin/text.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    WITHIN_MS = 100,                         /* what a stop is given beside a server that hangs */
    DEADLINE_MS = TEST_DEADLINE / NS_PER_MS, /* for what must come; nobody waits so long */
    MOST_PAGES = 10000,                      /* more than sockets hold */
};

#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

/* The first turn comes at once. */
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
    (void)flags;
    memset(to, 0, n);
    return (ssize_t)n;
}

/* Turns but the first come when the test says so. */
static struct {
    sem_t next;
    atomic_uint n_pauses;
    atomic_bool is_over; /* there is no other */
} turns;

int64_t __real_pace_next_ns(unsigned frequency_seconds, unsigned failures, uint32_t random);
int64_t __wrap_pace_next_ns(unsigned frequency_seconds, unsigned failures, uint32_t random);
int64_t __wrap_pace_next_ns(unsigned frequency_seconds, unsigned failures, uint32_t random)
{
    (void)frequency_seconds, (void)failures, (void)random;
    atomic_fetch_add(&turns.n_pauses, 1);
    sem_wait(&turns.next);
    /* Since the turn began, which may be before any leap of time. */
    return atomic_load(&turns.is_over) ? 1000 * TEST_DEADLINE : 0;
}

static void take_next_turn(void)
{
    sem_post(&turns.next);
}

/* However long the sender's thread takes to be scheduled, sender_stop sees its end: what is
 * asserted is how long it would have waited. */
static _Thread_local struct {
    bool is_observed, is_cut_short;
    int longest_ms;
} waiting;

/* How often the sender has waited for room in the agent's queue. It is woken now and then, so that
 * it notices a leap of time. */
static atomic_uint n_waits_for_room;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (n && fds->events == POLLOUT) {
        atomic_fetch_add(&n_waits_for_room, 1);
        return __real_poll(fds, n, timeout_ms < 1 ? timeout_ms : 1);
    }
    if (waiting.is_observed && timeout_ms > waiting.longest_ms)
        waiting.longest_ms = timeout_ms;
    return __real_poll(fds, n, waiting.is_observed && !waiting.is_cut_short ? -1 : timeout_ms);
}

/* A name service that knows three names, one of which it never gets to the end of. */
static struct {
    sem_t is_asked, may_end;
    atomic_uint n_asked;
} names;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    atomic_fetch_add(&names.n_asked, 1);
    if (strcmp(node, "gateway.test") == 0)
        return __real_getaddrinfo("127.0.0.1", service, hints, ret);
    if (strcmp(node, "stuck.test") == 0) {
        sem_post(&names.is_asked);
        sem_wait(&names.may_end);
    }
    return EAI_NONAME;
}

/* What the sender has said. */
static struct {
    pthread_mutex_t lock;
    char text[4000];
    size_t n, n_errors, n_others;
} said = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void on_log(bool is_error, const char *sentence)
{
    pthread_mutex_lock(&said.lock);
    said.n += (size_t)snprintf(said.text + said.n, sizeof(said.text) - said.n, "%s\n", sentence);
    if (is_error)
        said.n_errors++;
    else
        said.n_others++;
    pthread_mutex_unlock(&said.lock);
}

static size_t count_said(bool is_error)
{
    size_t n;

    pthread_mutex_lock(&said.lock);
    n = is_error ? said.n_errors : said.n_others;
    pthread_mutex_unlock(&said.lock);
    return n;
}

static void assert_said(const char *part)
{
    char text[sizeof(said.text)];

    pthread_mutex_lock(&said.lock);
    memcpy(text, said.text, sizeof(text));
    pthread_mutex_unlock(&said.lock);
    assert_contains(text, part);
}

static void forget_said(void)
{
    pthread_mutex_lock(&said.lock);
    said.n = said.n_errors = said.n_others = 0;
    said.text[0] = '\0';
    pthread_mutex_unlock(&said.lock);
}

/* Of a sender, by another thread: the test answers meanwhile. */
struct stop {
    struct sender *sender; /* NULL: there is none */
    pthread_t thread;
    int within_ms, longest_ms;
    bool is_cut_short, has_ended;
};

struct fixture {
    struct samples *samples;
    struct profile_step step;
    struct profile_settings settings;
    struct sender *sender;
    struct stop stop;
    int server; /* a listening socket, or the agent's; -1 */
    unsigned short port;
    uint64_t rss_kib; /* of the last sample */
};

static struct fixture *fixture;

static void add_sample(void)
{
    const struct samples_field fields[] = { { "RSS", false } };
    int dataset = samples_dataset(fixture->samples, PROFILE_OF_TASK, 0, fields, COUNT(fields));

    assert_int_equal(dataset, 0);
    fixture->rss_kib++;
    samples_add(fixture->samples, dataset, &fixture->rss_kib);
}

static void set_up(void)
{
    static const struct profile_quirks quirks;

    fixture = calloc(1, sizeof(*fixture));
    fixture->samples = samples_new(&quirks);
    fixture->step = (struct profile_step){ .job_id = 7, .step = "0", .node = "n1" };
    fixture->settings = (struct profile_settings){ .names = PROFILE_NAMES_BOTH,
                                                   .frequency_seconds = 1,
                                                   .timeout_ms = DEADLINE_MS };
    fixture->server = -1;
    forget_said();
    sem_init(&turns.next, 0, 0);
    atomic_store(&turns.n_pauses, 0);
    atomic_store(&turns.is_over, false);
    atomic_store(&n_waits_for_room, 0);
    add_sample();
}

static void start(void)
{
    char why[200] = "";

    fixture->sender = sender_start(fixture->samples, &fixture->step, &fixture->settings, on_log,
                                   why, sizeof(why));
    assert_string_equal(why, "");
    assert_non_null(fixture->sender);
}

static void *run_stop(void *arg)
{
    struct stop *stop = arg;

    waiting.is_observed = true;
    waiting.is_cut_short = stop->is_cut_short;
    stop->has_ended = sender_stop(stop->sender, (unsigned)stop->within_ms);
    stop->longest_ms = waiting.longest_ms;
    return NULL;
}

static void begin_stop(int within_ms)
{
    fixture->stop.sender = fixture->sender;
    fixture->stop.within_ms = within_ms;
    fixture->sender = NULL;
    atomic_store(&turns.is_over, true);
    sem_post(&turns.next);
    assert_int_equal(pthread_create(&fixture->stop.thread, NULL, run_stop, &fixture->stop), 0);
}

static void end_stop(bool has_ended)
{
    pthread_join(fixture->stop.thread, NULL);
    fixture->stop.sender = NULL;
    assert_in_range(fixture->stop.longest_ms, 0, fixture->stop.within_ms);
    assert_int_equal(fixture->stop.has_ended, has_ended);
}

/* With all the time that the sender needs. */
static void stop(void)
{
    begin_stop(DEADLINE_MS);
    end_stop(true);
}

/* Beside a server that hangs until the test ends: what the sender waits for is its own deadline. */
static void stop_in_time(void)
{
    begin_stop(WITHIN_MS);
    end_stop(true);
}

static void tear_down(void)
{
    if (fixture->stop.sender)
        pthread_join(fixture->stop.thread, NULL);
    if (fixture->sender)
        stop_in_time();
    if (fixture->server >= 0)
        close(fixture->server);
    samples_free(fixture->samples);
    free(fixture);
}

FIXTURE(set_up, tear_down)

static void set_up_names(void)
{
    sem_init(&names.is_asked, 0, 0);
    sem_init(&names.may_end, 0, 0);
}

PROGRAM_FIXTURE(set_up_names, NULL)

static bool is_readable(int fd, int within_ms)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

    return poll(&poll_fd, 1, within_ms) == 1;
}

/* The agent. */

static void open_agent(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_path("socket"));
    snprintf(fixture->settings.socket, sizeof(fixture->settings.socket), "%s", address.sun_path);
    fixture->server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fixture->server, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void close_agent(void)
{
    close(fixture->server);
    fixture->server = -1;
    unlink(fixture->settings.socket);
}

static struct str hear(char message[PROFILE_MESSAGE + 1])
{
    ssize_t n;

    assert_true(is_readable(fixture->server, DEADLINE_MS));
    n = recv(fixture->server, message, PROFILE_MESSAGE, 0);
    assert_true(n > 0);
    message[n] = '\0';
    return (struct str){ message, (size_t)n };
}

/* With messages of somebody else, until no other has room. Gives how many. */
static size_t fill_queue(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    size_t n = 0;

    memcpy(address.sun_path, fixture->settings.socket, sizeof(address.sun_path));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    while (send(fd, "x", 1, MSG_DONTWAIT) == 1)
        n++;
    close(fd);
    return n;
}

/* Takes those out again, and leaves what has come behind them. */
static void drain_queue(size_t n)
{
    char byte;

    while (n--)
        assert_int_equal(recv(fixture->server, &byte, 1, MSG_DONTWAIT), 1);
}

/* While the sender waits for room, all of its time passes. */
static void let_time_pass_without_room(void)
{
    wait_until_true(atomic_load(&n_waits_for_room) > 0);
    time_leap(TEST_DEADLINE);
}

TEST(the_agent_gets_the_values_each_turn)
{
    char first[PROFILE_MESSAGE + 1], second[PROFILE_MESSAGE + 1];

    open_agent();
    start();
    hear(first);
    assert_contains(first, "sonde-profile 1\nstep 7 0 n1\n");
    assert_contains(first, "slurm_profile_task_resident_memory_bytes 1024\n");
    take_next_turn();
    assert_str(hear(second), first);
    assert_int_equal(count_said(true) + count_said(false), 0);
    stop();
}

TEST(the_agent_gets_the_last_values_and_a_farewell_at_the_end)
{
    char message[PROFILE_MESSAGE + 1];

    open_agent();
    start();
    hear(message);
    add_sample();
    stop();
    hear(message);
    assert_contains(message, "slurm_profile_task_resident_memory_bytes 2048\n");
    assert_str(hear(message), "sonde-profile 1\nstep 7 0 n1\nend\n");
    assert_false(is_readable(fixture->server, 0));
}

/* Of a thousand tasks and more; one message has room for two hundred. */
static void add_many_tasks(uint32_t n)
{
    const struct samples_field fields[] = { { "RSS", false } };

    for (uint32_t task = 1; task < n; task++)
        samples_add(fixture->samples,
                    samples_dataset(fixture->samples, PROFILE_OF_TASK, task, fields, 1),
                    &(uint64_t){ 1 });
}

/* The first of a message, or the last. */
static uint64_t task_in(const char *message, bool is_last)
{
    static const char word[] = "dataset task ";
    const char *at = strstr(message, word), *next;
    uint64_t task;

    assert_non_null(at);
    while (is_last && (next = strstr(at + 1, word)))
        at = next;
    at += strlen(word);
    assert_true(num_get_u64(str_span(at, strchr(at, '\n')), &task));
    return task;
}

TEST(more_than_a_message_holds_is_told_in_several)
{
    char message[PROFILE_MESSAGE + 1];
    uint64_t next = 0;

    add_many_tasks(1000);
    open_agent();
    start();
    do {
        hear(message);
        assert_int_equal(task_in(message, false), next);
        next = task_in(message, true) + 1;
    } while (next < 1000);
}

TEST(a_turn_goes_on_where_the_last_was_cut_short)
{
    char message[PROFILE_MESSAGE + 1];
    uint64_t last;

    add_many_tasks(SAMPLES_DATASETS);
    open_agent();
    start();
    let_time_pass_without_room();
    wait_until_true(count_said(true) == 1);
    do
        hear(message);
    while (is_readable(fixture->server, 0));
    last = task_in(message, true);
    assert_true(last + 1 < SAMPLES_DATASETS);
    take_next_turn();
    hear(message);
    assert_int_equal(task_in(message, false), last + 1);
}

TEST(without_samples_the_agent_hears_nothing)
{
    samples_free(fixture->samples);
    fixture->samples = samples_new(&(struct profile_quirks){ 0 });
    open_agent();
    start();
    stop();
    assert_false(is_readable(fixture->server, 0));
}

TEST(an_agent_that_comes_late_is_told_and_both_are_said_once)
{
    char message[PROFILE_MESSAGE + 1];

    open_agent();
    close_agent();
    start();
    wait_until_true(count_said(true) == 1);
    assert_said("cannot reach the agent's socket /");
    assert_said("No such file or directory; is sonde agent running on this node?");
    open_agent();
    take_next_turn();
    hear(message);
    wait_until_true(count_said(false) == 1);
    assert_said("again, after 1 turns that did not");
    assert_int_equal(count_said(true), 1);
}

TEST(an_agent_that_was_started_again_is_told)
{
    char message[PROFILE_MESSAGE + 1];

    open_agent();
    start();
    hear(message);
    close_agent();
    open_agent();
    take_next_turn();
    hear(message);
    assert_int_equal(count_said(true), 0);
}

TEST(an_agent_that_has_gone_does_not_hold_up_the_end)
{
    char message[PROFILE_MESSAGE + 1];

    open_agent();
    start();
    hear(message);
    close_agent();
    stop();
    assert_said("is sonde agent running on this node?");
}

TEST(a_full_queue_drops_a_turn_and_is_told_of)
{
    char message[PROFILE_MESSAGE + 1];
    size_t n;

    open_agent();
    n = fill_queue();
    start();
    let_time_pass_without_room();
    wait_until_true(count_said(true) == 1);
    assert_said("does not read what it is told");
    drain_queue(n);
    take_next_turn();
    hear(message);
    assert_contains(message, "step 7 0 n1\n");
    wait_until_true(count_said(false) == 1);
}

TEST(a_message_waits_for_room_in_a_full_queue)
{
    char message[PROFILE_MESSAGE + 1];
    size_t n;

    open_agent();
    n = fill_queue();
    start();
    wait_until_true(atomic_load(&n_waits_for_room) > 0);
    drain_queue(n);
    hear(message);
    assert_int_equal(count_said(true), 0);
}

TEST(a_full_queue_does_not_hold_up_the_end)
{
    open_agent();
    fill_queue();
    start();
    wait_until_true(atomic_load(&n_waits_for_room) > 0);
    stop_in_time();
}

/* The Pushgateway. */

struct request {
    char text[4000];
};

static void listen_with_backlog(int backlog)
{
    fixture->server = listen_on_loopback(backlog, &fixture->port);
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://127.0.0.1:%u",
             fixture->port);
}

static void open_server(void)
{
    listen_with_backlog(16);
}

static int accept_connection(void)
{
    int fd;

    assert_true(is_readable(fixture->server, DEADLINE_MS));
    fd = accept4(fixture->server, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* How long the request will be; 0: not known yet. */
static size_t request_length(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n"), *header = strstr(text, "Content-Length: ");
    uint64_t n_body = 0;

    if (!end)
        return 0;
    if (header) {
        header += strlen("Content-Length: ");
        assert_true(num_get_u64(str_span(header, strchr(header, '\r')), &n_body));
    }
    return (size_t)(end - text) + 4 + n_body;
}

static void read_request(int fd, struct request *ret)
{
    size_t n = 0, length = 0;

    while (!length || n < length) {
        ssize_t got;

        assert_true(is_readable(fd, DEADLINE_MS));
        got = recv(fd, ret->text + n, sizeof(ret->text) - 1 - n, 0);
        assert_true(got > 0);
        n += (size_t)got;
        ret->text[n] = '\0';
        length = request_length(ret->text);
    }
    assert_int_equal(n, length);
}

static void answer(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All of the sender's time passes; what wakes it to notice that is no answer. */
static void let_time_pass(int fd)
{
    time_leap(TEST_DEADLINE);
    answer(fd, "H");
}

static unsigned short port_of(int fd, int (*name)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_in address = { 0 };
    socklen_t size = sizeof(address);

    if (name(fd, (struct sockaddr *)&address, &size) < 0 || address.sin_family != AF_INET)
        return 0;
    return ntohs(address.sin_port);
}

/* The other end of a connection is this process's too. */
static int other_end(int fd)
{
    unsigned short port = port_of(fd, getpeername);
    int end = 0;

    while (port_of(end, getsockname) != port)
        end++;
    return end;
}

static void answer_and_wait_until_read(int fd, const char *text)
{
    int end = other_end(fd), n_under_way, n_unread;

    answer(fd, text);
    wait_until_true(ioctl(fd, TIOCOUTQ, &n_under_way) == 0 && n_under_way == 0);
    wait_until_true(ioctl(end, FIONREAD, &n_unread) == 0 && n_unread == 0);
}

static void assert_starts(const struct request *request, const char *start)
{
    if (!str_starts(str_of(request->text), str_of(start)))
        fail_msg("\"%s\" does not start with \"%s\"", request->text, start);
}

TEST(values_are_put_and_deleted_over_one_connection)
{
    struct request request;
    int fd;

    open_server();
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://127.0.0.1:%u/under/",
             fixture->port);
    start();
    fd = accept_connection();
    read_request(fd, &request);
    assert_starts(&request, "PUT /under/metrics/job/7/instance/n1/step/0 HTTP/1.1\r\n");
    assert_contains(request.text, "\r\nContent-Type: text/plain; version=0.0.4");
    assert_contains(request.text, "slurm_profile_task_resident_memory_bytes{");
    assert_contains(request.text, "} 1024\n");
    assert_null(strstr(request.text, "Authorization"));
    answer(fd, ACCEPTED);
    add_sample();
    take_next_turn();
    read_request(fd, &request);
    assert_contains(request.text, "} 2048\n");
    answer_and_wait_until_read(fd, ACCEPTED);
    begin_stop(DEADLINE_MS);
    read_request(fd, &request);
    assert_starts(&request, "DELETE /under/metrics/job/7/instance/n1/step/0 HTTP/1.1\r\n");
    answer(fd, ACCEPTED);
    end_stop(true);
    close(fd);
    assert_int_equal(count_said(true) + count_said(false), 0);
}

TEST(the_same_values_are_not_pushed_again)
{
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    read_request(fd, &request);
    answer(fd, ACCEPTED);
    take_next_turn();
    wait_until_true(atomic_load(&turns.n_pauses) == 2);
    assert_false(is_readable(fd, 0));
    close(fd);
}

TEST(user_and_password_of_the_url_are_sent_and_not_shown)
{
    struct request request;
    int fd;

    open_server();
    snprintf(fixture->settings.url, sizeof(fixture->settings.url),
             "http://push%%40er:pass%%3Aword@127.0.0.1:%u", fixture->port);
    start();
    fd = accept_connection();
    read_request(fd, &request);
    assert_starts(&request, "PUT /metrics/job/7/instance/n1/step/0 HTTP/1.1\r\n");
    assert_contains(request.text, "\r\nAuthorization: Basic cHVzaEBlcjpwYXNzOndvcmQ=\r\n");
    answer(fd, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    wait_until_true(count_said(true) == 1);
    assert_said("status 401; are the user and the password right?");
    assert_null(strstr(said.text, "push@er"));
    assert_null(strstr(said.text, "push%40er"));
    assert_null(strstr(said.text, "word@"));
    close(fd);
}

TEST(a_url_that_cannot_be_pushed_to_is_refused_without_its_password)
{
    static const char *const urls[] = {
        "ftp://u:secret@h",
        "file:///etc/passwd",
        "http://u:secret@h/?query",
        "http://u:secret@h/#at",
        "http://u:secret@h:x",
        "http://",
        "u:secret@h",
        "http://u:secret@h h",
    };

    for (size_t i = 0; i < COUNT(urls); i++) {
        char why[200] = "";

        snprintf(fixture->settings.url, sizeof(fixture->settings.url), "%s", urls[i]);
        if (sender_start(fixture->samples, &fixture->step, &fixture->settings, on_log, why,
                         sizeof(why)))
            fail_msg("%s was taken", urls[i]);
        assert_contains(why, "http://HOST:PORT/PATH");
        assert_null(strstr(why, "secret"));
    }
}

TEST(proxies_of_the_environment_are_not_used)
{
    struct request request;
    int fd;

    open_server();
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://gateway.test:%u",
             fixture->port);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    start();
    fd = accept_connection();
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    read_request(fd, &request);
    assert_starts(&request, "PUT /metrics/job/7");
    close(fd);
}

TEST(a_name_is_resolved_once_as_long_as_pushes_succeed)
{
    struct request request;
    unsigned before = atomic_load(&names.n_asked);
    int fd;

    open_server();
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://gateway.test:%u",
             fixture->port);
    start();
    fd = accept_connection();
    read_request(fd, &request);
    assert_contains(request.text, "\r\nHost: gateway.test:");
    answer(fd, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    close(fd);
    add_sample();
    take_next_turn();
    fd = accept_connection();
    assert_int_equal(atomic_load(&names.n_asked), before + 1);
    close(fd);
    wait_until_true(count_said(true) == 1);
    add_sample();
    take_next_turn();
    fd = accept_connection();
    assert_int_equal(atomic_load(&names.n_asked), before + 2);
    close(fd);
}

TEST(a_name_that_nobody_knows_is_told_of)
{
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://nowhere.test:9091");
    start();
    wait_until_true(count_said(true) == 1);
    assert_said("the host name of the Pushgateway http://nowhere.test:9091 cannot be resolved");
    stop();
}

static bool has_sender_thread(void)
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    bool is_there = false;

    while ((entry = readdir(directory))) {
        char path[300], comm[20] = "";
        int fd;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        is_there |= read(fd, comm, sizeof(comm) - 1) > 0 && strcmp(comm, "sonde-profile\n") == 0;
        close(fd);
    }
    closedir(directory);
    return is_there;
}

/* What it frees then is for the leak sanitizer to see. */
TEST(a_thread_that_is_stuck_is_left_behind_and_ends_by_itself)
{
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://stuck.test:9091");
    start();
    sem_wait(&names.is_asked);
    fixture->stop.is_cut_short = true;
    begin_stop(WITHIN_MS);
    end_stop(false);
    assert_true(has_sender_thread());
    sem_post(&names.may_end);
    wait_until_true(!has_sender_thread());
    assert_int_equal(count_said(true), 0);
}

TEST(nothing_is_deleted_that_was_not_pushed)
{
    samples_free(fixture->samples);
    fixture->samples = samples_new(&(struct profile_quirks){ 0 });
    open_server();
    start();
    stop();
    assert_false(is_readable(fixture->server, 0));
}

TEST(a_server_that_refuses_connections_is_told_of)
{
    listen_with_backlog(-1);
    start();
    wait_until_true(count_said(true) == 1);
    assert_said("takes no connection; is it running, and listening there?");
    stop();
    assert_int_equal(count_said(true), 1);
}

/* Connections of this process, the sender's among them, that nobody has taken yet. */
static unsigned count_attempts(void)
{
    unsigned n_attempts = 0;

    for (int fd = 0; fd < 256; fd++) {
        struct tcp_info info;
        socklen_t size = sizeof(info);

        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
            info.tcpi_state == TCP_SYN_SENT)
            n_attempts++;
    }
    return n_attempts;
}

/* Of the listener: connections that wait to be accepted, in tcpi_unacked, and the backlog, in
 * tcpi_sacked. */
static struct tcp_info backlog_info(void)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    assert_int_equal(getsockopt(fixture->server, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info;
}

/* Connections until the queue of those that nobody accepts is full: no other will be made. */
static size_t fill_backlog(int *ret, size_t room)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(fixture->port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    for (size_t n = 0; n < room; n++) {
        ret[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(ret[n], (const struct sockaddr *)&address, sizeof(address)), 0);
        wait_until_true(backlog_info().tcpi_unacked == n + 1);
        if (backlog_info().tcpi_unacked > backlog_info().tcpi_sacked)
            return n + 1;
    }
    fail_msg("the queue is never full");
    return 0;
}

TEST(a_server_that_swallows_connections_does_not_hold_up_the_end)
{
    int others[8];
    size_t n_others;

    listen_with_backlog(0);
    n_others = fill_backlog(others, COUNT(others));
    start();
    wait_until_true(count_attempts() == 1);
    stop_in_time();
    assert_int_equal(count_said(true), 0);
    while (n_others)
        close(others[--n_others]);
}

TEST(a_server_that_never_answers_does_not_hold_up_the_end)
{
    struct request request;
    int first, second;

    open_server();
    start();
    first = accept_connection();
    read_request(first, &request);
    begin_stop(DEADLINE_MS);
    second = accept_connection();
    read_request(second, &request);
    assert_starts(&request, "DELETE /metrics/job/7/instance/n1/step/0 ");
    let_time_pass(second);
    end_stop(true);
    assert_said("did not answer in time (what was told of this step stays there");
    close(first);
    close(second);
}

TEST(a_server_that_did_not_answer_before_gets_but_a_moment_at_the_end)
{
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    read_request(fd, &request);
    let_time_pass(fd);
    wait_until_true(count_said(true) == 1);
    stop(); /* whose patience nobody would live to see the end of */
    close(fd);
}

TEST(a_late_answer_is_told_of_once_and_then_that_it_is_over)
{
    struct request request;
    int fd;

    open_server();
    start();
    for (int i = 0; i < 2; i++) {
        fd = accept_connection();
        read_request(fd, &request);
        let_time_pass(fd);
        assert_true(is_readable(fd, DEADLINE_MS)); /* that it was closed */
        close(fd);
        take_next_turn();
    }
    fd = accept_connection();
    read_request(fd, &request);
    answer(fd, ACCEPTED);
    wait_until_true(count_said(false) == 1);
    close(fd);
    assert_said("did not answer in time");
    assert_said("again, after ");
    assert_int_equal(count_said(true), 1);
}

TEST(a_failure_is_not_tried_again_before_the_next_turn)
{
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    read_request(fd, &request);
    answer(fd, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops");
    wait_until_true(count_said(true) == 1);
    assert_said("answered with status 500; see its log");
    wait_until_true(atomic_load(&turns.n_pauses) == 1);
    assert_false(is_readable(fd, 0));
    take_next_turn();
    read_request(fd, &request);
    answer(fd, ACCEPTED);
    close(fd);
}

TEST(an_answer_may_come_byte_by_byte)
{
    static const char chunked[] =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
    read_request(fd, &request);
    for (size_t i = 0; i + 1 < sizeof(chunked); i++)
        assert_int_equal(send(fd, chunked + i, 1, MSG_NOSIGNAL), 1);
    add_sample();
    take_next_turn();
    read_request(fd, &request);
    assert_starts(&request, "PUT ");
    assert_int_equal(count_said(true), 0);
    close(fd);
}

TEST(an_answer_that_never_ends_is_given_up_in_time)
{
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    read_request(fd, &request);
    answer(fd, "HTTP/1.1 200 OK\r\nX: ");
    time_leap(TEST_DEADLINE);
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && !is_readable(fd, 1))
        continue;
    wait_until_true(count_said(true) == 1);
    assert_said("did not answer in time");
    close(fd);
}

/* Until the sender has closed the connection. */
static void flood(int fd, const char *head)
{
    static const char page[4096];

    answer(fd, head);
    for (size_t i = 0; i < MOST_PAGES; i++)
        if (send(fd, page, sizeof(page), MSG_NOSIGNAL) < 0)
            return;
    fail_msg("all of %d pages were read", MOST_PAGES);
}

TEST(more_than_a_pushgateway_answers_is_not_read)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    };

    for (size_t i = 0; i < COUNT(heads); i++) {
        struct request request;
        int fd;

        open_server();
        start();
        fd = accept_connection();
        read_request(fd, &request);
        flood(fd, heads[i]);
        wait_until_true(count_said(true) == 1);
        assert_said("answered what no Pushgateway answers");
        close(fd);
        stop();
        atomic_store(&turns.is_over, false);
        close(fixture->server);
        forget_said();
    }
}

TEST(a_server_that_closes_at_once_is_told_of)
{
    open_server();
    start();
    close(accept_connection());
    wait_until_true(count_said(true) == 1);
    assert_said("closed the connection before its answer was whole");
}

TEST(a_redirection_is_not_followed)
{
    struct request request;
    int fd;

    open_server();
    start();
    fd = accept_connection();
    read_request(fd, &request);
    answer(fd, "HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\n"
               "Content-Length: 0\r\n\r\n");
    wait_until_true(count_said(true) == 1);
    assert_said("answered with status 307");
    take_next_turn();
    read_request(fd, &request);
    assert_starts(&request, "PUT /metrics/job/7/");
    close(fd);
}

TEST(a_certificate_that_is_not_trusted_gets_no_request)
{
    static const unsigned char loopback[] = { 127, 0, 0, 1 };
    struct certificate certificate;
    struct http_peer *peer;

    certificate_make(&certificate,
                     &(struct certificate_wish){ .name = "localhost", .ip = loopback });
    peer = peer_open(&certificate);
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "https://u:p@127.0.0.1:%u",
             peer_port(peer));
    start();
    wait_until_true(count_said(true) == 1);
    assert_said("has no certificate that this node trusts");
    stop();
    assert_int_equal(peer_requests(peer), 0);
    peer_free(peer);
    certificate_free(&certificate);
}

/* What every process has that this one starts. */
enum { MOST_DESCRIPTORS = 256 };

static void note_descriptors(bool ret[MOST_DESCRIPTORS])
{
    for (int fd = 0; fd < MOST_DESCRIPTORS; fd++)
        ret[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void assert_new_ones_close_on_exec(const bool before[MOST_DESCRIPTORS])
{
    unsigned n_new = 0;

    for (int fd = 0; fd < MOST_DESCRIPTORS; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags < 0 || before[fd])
            continue;
        n_new++;
        if (!(flags & FD_CLOEXEC))
            fail_msg("descriptor %d stays open in other programs", fd);
    }
    assert_true(n_new > 1);
}

TEST(no_other_program_gets_its_descriptors)
{
    bool before[MOST_DESCRIPTORS];
    char message[PROFILE_MESSAGE + 1];
    struct request request;
    int fd;

    open_server();
    snprintf(fixture->settings.url, sizeof(fixture->settings.url), "http://gateway.test:%u",
             fixture->port);
    note_descriptors(before);
    start();
    fd = accept_connection();
    read_request(fd, &request);
    assert_new_ones_close_on_exec(before);
    close(fd);
    stop_in_time();
    atomic_store(&turns.is_over, false);
    close(fixture->server);

    open_agent();
    note_descriptors(before);
    start();
    hear(message);
    assert_new_ones_close_on_exec(before);
}

TEST(no_signal_is_taken_by_its_thread)
{
    sigset_t signals, before;
    char message[PROFILE_MESSAGE + 1];

    open_agent();
    start();
    hear(message);
    /* With the other threads out of the way, whoever takes it is the sender's, and dies of it. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGALRM);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    kill(getpid(), SIGALRM);
    kill(getpid(), SIGTERM);
    stop();
    assert_int_equal(sigwaitinfo(&signals, NULL), SIGALRM);
    assert_int_equal(sigwaitinfo(&signals, NULL), SIGTERM);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

TEST(pauses_grow_with_failures_up_to_five_minutes)
{
    const uint32_t latest = 0, soonest = 1023;

    assert_int_equal(__real_pace_next_ns(10, 0, soonest), 10 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(10, 1, soonest), 10 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(10, 2, latest), 20 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(10, 3, latest), 40 * NS_PER_SEC);
    assert_in_range(__real_pace_next_ns(10, 3, soonest), 30 * NS_PER_SEC, 31 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(10, 6, latest), 300 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(10, UINT32_MAX, latest), 300 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(600, 0, latest), 600 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(600, 5, soonest), 600 * NS_PER_SEC);
    assert_int_equal(__real_pace_next_ns(250, 2, soonest), 250 * NS_PER_SEC);
}

TEST(the_first_turn_comes_at_a_random_moment_of_the_first_interval)
{
    assert_int_equal(pace_first_ns(10, 0), 0);
    assert_in_range(pace_first_ns(10, 512), 4 * NS_PER_SEC, 6 * NS_PER_SEC);
    assert_in_range(pace_first_ns(10, UINT32_MAX), 9 * NS_PER_SEC, 10 * NS_PER_SEC);
}
