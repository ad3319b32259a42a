/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated past, put into a recorder whose answers the test decides. */
#include "test.h"

#include "cmd/up_demo.h"

#include <fcntl.h>

/* Batches of an hour each. */
enum { DAY_BATCHES = 24 };

static struct {
    int code;           /* that a batch gets instead of being taken */
    unsigned n_refused; /* so many times, after the first batch */
    atomic_uint n_taken;
    uint32_t refused_id; /* of the first job of the batch */
    size_t refused_jobs;
    bool is_repeated;
} store;

int __wrap_recorder_put(struct recorder *recorder, const struct record_batch *batch,
                        int64_t deadline_ns, const atomic_bool *cancelled, struct err *err);

int __wrap_recorder_put(struct recorder *recorder, const struct record_batch *batch,
                        int64_t deadline_ns, const atomic_bool *cancelled, struct err *err)
{
    (void)recorder;
    (void)deadline_ns;
    (void)cancelled;
    if (!batch->n_jobs)
        return err_set(err, EINVAL, "an hour without jobs");
    if (store.n_taken && store.n_refused) {
        store.n_refused--;
        store.refused_id = batch->jobs[0].id;
        store.refused_jobs = batch->n_jobs;
        return err_set(err, store.code, "not now");
    }
    if (store.n_taken == 1)
        store.is_repeated =
            store.refused_id == batch->jobs[0].id && store.refused_jobs == batch->n_jobs;
    atomic_fetch_add(&store.n_taken, 1);
    return 0;
}

static int go_on(void *ctx, struct err *err)
{
    (void)ctx;
    (void)err;
    return 0;
}

static void check_repeated(int code)
{
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct log *log = log_new(null_fd, LOG_INFO, &clock_real);
    const struct up_demo_config config = {
        .sim = { .nodes = 16, .jobs = 100, .seed = 1, .users = 3 },
        .recorder = (struct recorder *)&store, /* only the function above gets it */
        .then = go_on,
        .clock = &clock_real,
        .log = log,
    };
    struct up_demo *demo;
    struct err err;

    store.code = code;
    store.n_refused = 2;
    store.n_taken = 0;
    store.is_repeated = false;
    assert_int_equal(up_demo_start(&config, &demo, &err), 0);
    wait_until_true(store.n_taken >= DAY_BATCHES);
    up_demo_stop(demo);
    assert_true(store.is_repeated);
    log_free(log);
    close(null_fd);
}

TEST(a_batch_is_put_again_when_too_many_wait_for_the_store)
{
    check_repeated(EAGAIN);
}

TEST(a_batch_is_put_again_when_the_store_was_not_written_in_time)
{
    check_repeated(ETIMEDOUT);
}
