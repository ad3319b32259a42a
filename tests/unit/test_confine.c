/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of http/confine: what threads that handle requests cannot do. */
#include "test.h"

#include "files.h"
#include "http_client.h"

#include "http/confine.h"
#include "http/pool.h"
#include "http/server.h"

#include <semaphore.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* Calls that cannot succeed, with what any user is told if nothing is refused; 0: that depends. */
static const struct {
    const char *name;
    long number;
    long arguments[5];
    int otherwise;
} calls[] = {
    { "execve", SYS_execve, { (long)"/nonexistent" }, ENOENT },
    { "execveat", SYS_execveat, { -1, (long)"/nonexistent" }, ENOENT },
    { "ptrace", SYS_ptrace, { PTRACE_ATTACH, INT32_MAX }, ESRCH },
    { "process_vm_readv", SYS_process_vm_readv, { INT32_MAX }, 0 },
    { "mount", SYS_mount, { 0, (long)"/nonexistent" }, 0 },
    { "unshare", SYS_unshare, { 1 }, EINVAL },
    { "setns", SYS_setns, { -1 }, EBADF },
    { "bpf", SYS_bpf, { -1 }, 0 },
    { "init_module", SYS_init_module, { 0 }, 0 },
    { "keyctl", SYS_keyctl, { -1 }, EOPNOTSUPP },
    { "add_key", SYS_add_key, { 0 }, EFAULT },
};

static int errno_of(size_t i)
{
    const long *arguments = calls[i].arguments;

    errno = 0;
    syscall(calls[i].number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
    return errno;
}

static int start_a_program(void)
{
    return errno_of(0);
}

struct outcome {
    int code;
    int errors[COUNT(calls)];
};

static void *call_confined(void *arg)
{
    struct outcome *outcome = arg;
    struct err err;

    outcome->code = confine_thread(&err);
    for (size_t i = 0; i < COUNT(calls); i++)
        outcome->errors[i] = errno_of(i);
    return NULL;
}

TEST(a_confined_thread_is_refused_what_others_may_do)
{
    struct outcome outcome;
    pthread_t thread;
    struct err err;

    assert_int_equal(thread_start(&thread, "confined", call_confined, &outcome, &err), 0);
    pthread_join(thread, NULL);
    assert_int_equal(outcome.code, 0);
    for (size_t i = 0; i < COUNT(calls); i++) {
        int error = errno_of(i);

        if (outcome.errors[i] != EPERM)
            fail_msg("%s: %s", calls[i].name, err_words(outcome.errors[i]));
        if (calls[i].otherwise && error != calls[i].otherwise)
            fail_msg("%s of another thread: %s", calls[i].name, err_words(error));
    }
}

TEST(it_can_be_tried_without_being_confined)
{
    struct err err;

    assert_int_equal(confine_try(&err), 0);
    assert_int_equal(start_a_program(), ENOENT);
}

struct probe {
    struct pool_job job;
    sem_t ended;
    int error;
};

static void run_probe(struct pool_job *job)
{
    struct probe *probe = (struct probe *)((char *)job - offsetof(struct probe, job));

    probe->error = start_a_program();
    sem_post(&probe->ended);
}

static int error_on_pool(bool is_unconfined)
{
    const struct pool_config config = {
        .name = "workers",
        .threads = 1,
        .most_queued = 1,
        .is_unconfined = is_unconfined,
    };
    struct probe probe = { .job.run = run_probe };
    struct pool *pool;
    struct err err;

    assert_int_equal(pool_new(&config, &pool, &err), 0);
    sem_init(&probe.ended, 0, 0);
    assert_true(pool_push(pool, &probe.job));
    sem_wait(&probe.ended);
    pool_free(pool);
    return probe.error;
}

TEST(jobs_run_confined_unless_their_pool_is_not)
{
    assert_int_equal(error_on_pool(false), EPERM);
    assert_int_equal(error_on_pool(true), ENOENT);
}

static void reply_error(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_reply(x, 200, "text/plain", str_of(err_words(start_a_program())));
}

static enum http_verdict reply_at_once(void *ctx, struct http_exchange *x)
{
    reply_error(ctx, x);
    return HTTP_DONE;
}

static enum http_verdict reply_later(void *ctx, struct http_exchange *x)
{
    (void)ctx, (void)x;
    return HTTP_WORK;
}

static enum http_verdict reply_unconfined(void *ctx, struct http_exchange *x)
{
    (void)ctx, (void)x;
    return HTTP_WORK_UNCONFINED;
}

TEST(requests_are_handled_by_confined_threads_except_those_that_reload)
{
    static const struct http_route routes[] = {
        { .method = "GET", .path = "/thread", .handle = reply_at_once },
        { .method = "GET", .path = "/worker", .handle = reply_later, .work = reply_error },
        { .method = "GET", .path = "/reload", .handle = reply_unconfined, .work = reply_error },
        { 0 },
    };
    const struct str address = STR("127.0.0.1:0");
    struct log *log = test_log(&clock_real);
    const struct http_config config = {
        .routes = routes,
        .listen = &address,
        .n_listen = 1,
        .max_connections = 8,
        .workers = 1,
        .queue = 8,
        .request_ns = TEST_DEADLINE,
        .response_ns = TEST_DEADLINE,
        .max_header = 4096,
        .clock = &clock_real,
        .log = log,
    };
    struct http_server *server;
    struct client client;
    struct err err;

    assert_int_equal(http_start(&config, &server, &err), 0);
    client_open(&client, http_address(server, 0));
    assert_str(client_get(&client, "/thread").body, "Operation not permitted");
    assert_str(client_get(&client, "/worker").body, "Operation not permitted");
    assert_str(client_get(&client, "/reload").body, "No such file or directory");
    client_close(&client);
    http_stop(server);
    log_free(log);
    assert_int_equal(logged().n, 0);
}
