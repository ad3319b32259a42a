/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Computes a day of history for the simulated cluster of `sonde up --demo`. */
#include "cmd/up_demo.h"

#include "base/thread.h"
#include "cmd/up_demo_jobs.h"
#include "web/sums.h"
#include "web/trends.h"

#include <fcntl.h>

enum {
    DAY = 86400,
    STEP = 300,         /* as long as Slurm shows a job that has ended: none is missed */
    BATCH_STEPS = 12,   /* that are put into the store together; of a large one, one by one */
    LARGE_NODES = 1024, /* of more than so many, only hours are computed */
    LARGE_HOURS = 1,
    PROMISED_ACCOUNTS = 6,
    PROMISED_DAYS = 7,
};

static const int64_t write_ns = 10 * NS_PER_SEC;  /* for one batch */
static const int64_t follow_ns = 60 * NS_PER_SEC; /* how often it looks what has ended */
static const struct str cluster_name = STR_INIT("simulated");

struct up_demo {
    struct up_demo_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool is_stopping; /* set under the lock */
};

void up_demo_more(void *ctx, int64_t now, struct arena *arena, struct tick_sample **ret,
                  size_t *ret_n)
{
    const struct sim *sim = ctx;
    struct section *jobs = sim_section(sim, KIND_JOBS, now);

    up_demo_samples(sim, cluster_name, jobs, now, arena, ret, ret_n);
    section_unref(jobs);
}

/* One tick of the past. */
static int put_tick(const struct sim *sim, struct ticks_writer *writer, int64_t time,
                    struct err *err)
{
    struct section *nodes = sim_section(sim, KIND_NODES, time);
    struct section *jobs = sim_section(sim, KIND_JOBS, time);
    struct tick_sample *of_cluster, *of_jobs, *all;
    size_t n_cluster, n_jobs;
    struct arena arena = { 0 };
    struct cluster_sums sums;
    int code;

    cluster_sums_make(&sums, nodes, jobs, &arena);
    trends_samples(&sums, cluster_name, nodes, &arena, &of_cluster, &n_cluster);
    up_demo_samples(sim, cluster_name, jobs, time, &arena, &of_jobs, &n_jobs);
    all = ARENA_ARRAY(&arena, struct tick_sample, n_cluster + n_jobs);
    if (n_cluster)
        memcpy(all, of_cluster, n_cluster * sizeof(*all));
    if (n_jobs)
        memcpy(all + n_cluster, of_jobs, n_jobs * sizeof(*all));
    code = ticks_put(writer, time, all, n_cluster + n_jobs, err);
    section_unref(nodes);
    section_unref(jobs);
    arena_clear(&arena);
    return code;
}

static int64_t seconds_of_past(const struct up_demo *demo)
{
    return demo->config.sim.nodes > LARGE_NODES ? LARGE_HOURS * 3600 : DAY;
}

/* In the order of time, as series are written; the present follows. */
static int put_series(struct up_demo *demo, int64_t now, struct err *err)
{
    struct ticks_writer *writer;
    int code = ticks_open(demo->config.series, &writer, err);

    if (code < 0)
        return code;
    for (int64_t t = now - seconds_of_past(demo); code == 0 && t < now; t += STEP) {
        if (atomic_load(&demo->is_stopping))
            break;
        code = put_tick(&demo->config.sim, writer, t, err);
    }
    ticks_close(writer);
    return code;
}

/* Jobs that ended within some steps before that time. */
static int put_ended(struct up_demo *demo, int64_t time, size_t steps, struct err *err)
{
    struct section *sections[BATCH_STEPS];
    struct job_record *all = NULL;
    struct record_batch batch = { 0 };
    struct arena arena = { 0 };
    size_t room = 0;
    int code;

    for (size_t i = 0; i < steps; i++) {
        int64_t at = time - (int64_t)i * STEP;
        struct job_record *some;
        size_t n;

        sections[i] = sim_section(&demo->config.sim, KIND_JOBS, at);
        up_demo_ended(&demo->config.sim, sections[i], at, &arena, &some, &n);
        for (size_t k = 0; k < n; k++) {
            all = heap_grow(all, batch.n_jobs, &room, sizeof(*all));
            all[batch.n_jobs++] = some[k];
        }
    }
    batch.jobs = all;
    code = recorder_put(demo->config.recorder, &batch, clock_mono(demo->config.clock) + write_ns,
                        &demo->is_stopping, err);
    for (size_t i = 0; i < steps; i++)
        section_unref(sections[i]);
    free(all);
    arena_clear(&arena);
    return code;
}

/* True: it is time to end. */
static bool wait_for(struct up_demo *demo, int64_t ns)
{
    int64_t until_ns = clock_mono(demo->config.clock) + ns;

    pthread_mutex_lock(&demo->lock);
    while (!atomic_load(&demo->is_stopping) && clock_mono(demo->config.clock) < until_ns)
        clock_wait(demo->config.clock, &demo->wake, &demo->lock, until_ns);
    pthread_mutex_unlock(&demo->lock);
    return atomic_load(&demo->is_stopping);
}

/* Whether the same batch may be put again: the recorder does not know what the cluster is called
 * until Slurm's first answer, or it did not write the batch in time. One that was written after all
 * changes nothing when it is written twice. */
static bool is_passing(int code)
{
    return code == -EAGAIN || code == -ETIMEDOUT;
}

/* The newest first: that is what people look at. */
static int put_past(struct up_demo *demo, int64_t now, struct err *err)
{
    int64_t oldest = now - seconds_of_past(demo);
    size_t steps = demo->config.sim.nodes > LARGE_NODES ? 1 : BATCH_STEPS;
    int code = 0;

    for (int64_t t = now; code == 0 && t > oldest; t -= (int64_t)steps * STEP) {
        while (is_passing(code = put_ended(demo, t, steps, err)))
            if (wait_for(demo, 20 * NS_PER_MS))
                return -ECANCELED;
    }
    return code;
}

static void tell(struct up_demo *demo, int code, const char *what, const struct err *err)
{
    if (code < 0 && code != -ECANCELED)
        LOG(demo->config.log, LOG_ERROR, "the simulated past is not complete", LOG_STR("of", what),
            LOG_STR("error", err->text));
}

static void *run(void *arg)
{
    struct up_demo *demo = arg;
    int64_t now = clock_wall(demo->config.clock) / NS_PER_SEC;
    struct err err;
    int code;

    if (demo->config.series)
        tell(demo, put_series(demo, now, &err), "series", &err);
    if (!atomic_load(&demo->is_stopping))
        tell(demo, demo->config.then(demo->config.ctx, &err), "series", &err);
    if (!demo->config.recorder)
        return NULL;
    code = put_past(demo, now, &err);
    tell(demo, code, "jobs", &err);
    if (code == 0)
        LOG(demo->config.log, LOG_INFO, "the simulated past is complete");
    while (!wait_for(demo, follow_ns)) {
        code = put_ended(demo, clock_wall(demo->config.clock) / NS_PER_SEC, 1, &err);
        tell(demo, code, "jobs", &err);
    }
    return NULL;
}

static void free_demo(struct up_demo *demo)
{
    pthread_mutex_destroy(&demo->lock);
    pthread_cond_destroy(&demo->wake);
    free(demo);
}

int up_demo_start(const struct up_demo_config *config, struct up_demo **ret, struct err *err)
{
    struct up_demo *demo = heap_alloc(sizeof(*demo));
    int code;

    demo->config = *config;
    pthread_mutex_init(&demo->lock, NULL);
    clock_cond_init(&demo->wake);
    code = thread_start(&demo->thread, "demo", run, demo, err);
    if (code < 0) {
        free_demo(demo);
        return code;
    }
    *ret = demo;
    return 0;
}

struct up_demo *up_demo_stop(struct up_demo *demo)
{
    if (!demo)
        return NULL;
    pthread_mutex_lock(&demo->lock);
    atomic_store(&demo->is_stopping, true);
    pthread_cond_signal(&demo->wake);
    pthread_mutex_unlock(&demo->lock);
    pthread_join(demo->thread, NULL);
    free_demo(demo);
    return NULL;
}

static int write_file(const char *path, struct str text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    ssize_t n = fd < 0 ? -1 : write(fd, text.p, text.n);
    int code = n == (ssize_t)text.n ? 0 : errno;

    if (fd >= 0)
        close(fd);
    return code ? err_set(err, code, "cannot write %s: %s", path, err_words(code)) : 0;
}

static void put_day(struct buf *to, const char *key, int64_t moment)
{
    time_t seconds = moment;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    buf_printf(to, "      %s: %04d-%02d-%02d\n", key, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}

/* What so many of them are in the week that is promised, in years. */
static void put_years(struct buf *to, const char *key, double count, double factor)
{
    if (count > 0)
        buf_printf(to, "      %s: %.3f\n", key, count * factor * PROMISED_DAYS / 365.25);
}

/* Of the accounts that hold most now, some will be used up before the week is over and some will
 * not. */
int up_demo_promise(const struct sim *sim, int64_t now, const char *path, struct err *err)
{
    struct section *jobs = sim_section(sim, KIND_JOBS, now);
    struct arena arena = { 0 };
    struct cluster_sums sums;
    struct buf text;
    int code;

    cluster_sums_make(&sums, NULL, jobs, &arena);
    buf_init(&text, 1 << 16);
    buf_printf(&text, "clusters:\n  %s:\n", cluster_name.p);
    for (size_t i = 0; i < sums.n_accounts && i < PROMISED_ACCOUNTS; i++) {
        const struct sums_group *account = &sums.account[i];

        buf_printf(&text, "    %.*s:\n      students: %zu\n", STR_ARG(account->name), i + 2);
        put_years(&text, "cpu_years", account->holding.cpus, i % 2 ? 0.6 : 1.5);
        put_years(&text, "gpu_years", account->holding.gpus, i % 2 ? 1.4 : 0.7);
        put_day(&text, "from", now - DAY);
        put_day(&text, "to", now + (PROMISED_DAYS - 1) * DAY);
    }
    code = write_file(path, buf_str(&text), err);
    buf_free(&text);
    section_unref(jobs);
    arena_clear(&arena);
    return code;
}
