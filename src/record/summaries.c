/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that stores summaries of finished jobs from Prometheus. */
#include "record/summaries.h"

#include "base/thread.h"
#include "report/gather.h"

enum {
    MOST_RUNS = 50, /* that are asked for and written together */
    NAME_MAX_BYTES = 256,
    DAY = 86400,
    SETTLE_SECONDS = 120, /* after its end: the last samples, and what agents counted, have come */
    LATE_SECONDS = 3600,  /* an end may become known so late, */
    CONTACT_TIMEOUT_MS = 5000,
};

static const int64_t idle_ns = 10 * NS_PER_SEC;   /* until it is looked for more */
static const int64_t whole_ns = 600 * NS_PER_SEC; /* … of the whole day, for what came even later */
static const int64_t first_backoff_ns = 5 * NS_PER_SEC, most_backoff_ns = 300 * NS_PER_SEC;
static const int64_t write_ns = 30 * NS_PER_SEC;

struct summaries {
    struct summaries_config config;
    struct arena texts; /* of the configuration */
    struct prometheus *prometheus;
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct summaries_stats stats; /* guarded by the lock; what follows is the thread's own */

    struct store_reader *reader; /* NULL: not open */
    int64_t whole_at;            /* monotonic: when all of the day is looked at again */
    int64_t backoff_ns;          /* 0: all is well */
    struct err failure;          /* what was logged last, of all and of a single run */
    struct err run_failure;
};

/* Of one cluster, to be written together. */
struct batch {
    struct arena arena;
    struct summary_record record[MOST_RUNS];
    size_t n;
    uint64_t written, empty, failures;
};

static int64_t wall_seconds(const struct summaries *s)
{
    return clock_wall(s->config.clock) / NS_PER_SEC;
}

static void wait_for(struct summaries *s, int64_t ns)
{
    int64_t until_ns = clock_mono(s->config.clock) + ns;

    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stopping) && clock_mono(s->config.clock) < until_ns)
        clock_wait(s->config.clock, &s->wake, &s->lock, until_ns);
    pthread_mutex_unlock(&s->lock);
}

static void ignore(void *ctx, const struct prometheus_sample *sample)
{
    (void)ctx;
    (void)sample;
}

/* Whether it answers at all: if so, it was about the one run that it could not tell of. */
static int contact(const struct summaries *s, struct err *err)
{
    const struct prometheus_query query = {
        .text = "vector(1)",
        .timeout_ms = CONTACT_TIMEOUT_MS,
        .cancelled = &s->stopping,
        .sink = ignore,
    };
    struct prometheus_result result;

    return prometheus_query(s->prometheus, &query, &result, err);
}

static int gather(const struct summaries *s, const struct run_key *run, struct arena *arena,
                  struct job_facts *ret, struct err *err)
{
    const struct gather question = {
        .store = s->reader,
        .prometheus = s->prometheus,
        .matcher = s->config.matcher,
        .n_matchers = s->config.n_matchers,
        .now = wall_seconds(s),
        .deadline_ns = clock_mono(&clock_real) + s->config.timeout_ns,
        .earlier_ns = 1, /* a report looks for them anew */
        .cancelled = &s->stopping,
    };

    return gather_run(&question, run, arena, ret, err);
}

static void add(struct batch *batch, const struct run_key *run, const struct job_facts *facts)
{
    struct str document = STR("");
    struct buf text;

    buf_init(&text, SUMMARY_MAX);
    if (facts->origin.has_series)
        facts_put_summary(&text, facts);
    if (!text.over)
        document = arena_str(&batch->arena, buf_str(&text));
    buf_free(&text);
    batch->record[batch->n++] = (struct summary_record){ run->job_id, run->submit_time, document };
    batch->written += document.n > 0;
    batch->empty += !document.n;
}

/* What ails many runs, as a cluster without a matcher does, is told of the first. */
static void tell_of_run(struct summaries *s, const struct run_key *run, struct str why)
{
    struct err failure;

    err_set(&failure, EIO, "%.*s", STR_ARG(why));
    if (strcmp(failure.text, s->run_failure.text) == 0)
        return;
    s->run_failure = failure;
    LOG(s->config.log, LOG_WARN, "what a job used is not kept", LOG_INT("job_id", run->job_id),
        LOG_STR("error", failure.text));
}

/* Negative: nothing can be done now. */
static int summarise(struct summaries *s, const struct run_key *run, struct batch *batch,
                     struct err *err)
{
    struct arena scratch = { 0 };
    struct job_facts facts;
    int code = gather(s, run, &scratch, &facts, err);

    if (code == -ENOENT) { /* it was deleted meanwhile */
        arena_clear(&scratch);
        return 0;
    }
    if (code == 0 && facts.origin.has_failed_series) {
        code = contact(s, err);
        batch->failures += code == 0;
        if (code == 0)
            tell_of_run(s, run, facts.origin.why_no_series);
    }
    if (code == 0)
        add(batch, run, &facts);
    arena_clear(&scratch);
    return code;
}

static int write_batch(struct summaries *s, size_t cluster, const struct batch *batch,
                       struct err *err)
{
    const struct record_batch records = {
        .cluster = cluster,
        .summaries = batch->record,
        .n_summaries = batch->n,
    };
    int code = batch->n ? recorder_put(s->config.recorder, &records,
                                       clock_mono(s->config.clock) + write_ns, &s->stopping, err)
                        : 0;

    if (code < 0)
        return code;
    pthread_mutex_lock(&s->lock);
    s->stats.written += batch->written;
    s->stats.empty += batch->empty;
    s->stats.failures += batch->failures;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* Some runs of one cluster; what could be made of them is written, whatever happens then. */
static int work_on(struct summaries *s, size_t cluster, int64_t from, size_t *n_found,
                   struct err *err)
{
    struct batch *batch = heap_alloc(sizeof(*batch));
    char name[NAME_MAX_BYTES];
    struct run_key *runs;
    struct err trouble;
    size_t n = 0;
    int code = 0, written;

    if (recorder_get_name(s->config.recorder, cluster, name, sizeof(name)))
        code = store_unsummarised(s->reader, str_of(name), from, wall_seconds(s) - SETTLE_SECONDS,
                                  MOST_RUNS, &batch->arena, &runs, &n, err);
    for (size_t i = 0; i < n && code == 0 && !atomic_load(&s->stopping); i++) {
        if (i)
            wait_for(s, s->config.pause_ns);
        code = summarise(s, &runs[i], batch, err);
    }
    written = write_batch(s, cluster, batch, &trouble);
    if (code == 0 && written < 0) {
        *err = trouble;
        code = written;
    }
    *n_found += n;
    arena_clear(&batch->arena);
    free(batch);
    return code;
}

static int open_reader(struct summaries *s, struct err *err)
{
    if (s->reader)
        return 0;
    return store_reader_open(s->config.store, &s->reader, err);
}

/* *ret_n is how many runs there were. */
static int work(struct summaries *s, size_t *ret_n, struct err *err)
{
    bool is_whole = clock_mono(s->config.clock) >= s->whole_at;
    int64_t from = wall_seconds(s) - (is_whole ? DAY : LATE_SECONDS);
    size_t n_clusters = recorder_n_clusters(s->config.recorder);
    int code = open_reader(s, err);

    *ret_n = 0;
    for (size_t i = 0; i < n_clusters && code == 0 && !atomic_load(&s->stopping); i++)
        code = work_on(s, i, from, ret_n, err);
    if (code == 0 && is_whole && !*ret_n)
        s->whole_at = clock_mono(s->config.clock) + whole_ns;
    return code;
}

static void set_up(struct summaries *s, bool is_up)
{
    pthread_mutex_lock(&s->lock);
    s->stats.is_up = is_up;
    pthread_mutex_unlock(&s->lock);
}

/* The same is said once, however often it fails. */
static void fail(struct summaries *s, const struct err *err)
{
    if (atomic_load(&s->stopping))
        return;
    if (strcmp(s->failure.text, err->text) != 0)
        LOG(s->config.log, LOG_WARN, "what jobs used cannot be kept; it is tried again and again",
            LOG_STR("error", err->text));
    s->failure = *err;
    s->reader = store_reader_close(s->reader);
    set_up(s, false);
    s->backoff_ns = 2 * s->backoff_ns > first_backoff_ns ? 2 * s->backoff_ns : first_backoff_ns;
    if (s->backoff_ns > most_backoff_ns)
        s->backoff_ns = most_backoff_ns;
    wait_for(s, s->backoff_ns);
}

static void succeed(struct summaries *s)
{
    if (s->backoff_ns)
        LOG(s->config.log, LOG_INFO, "what jobs used is kept again");
    s->backoff_ns = 0;
    s->failure.text[0] = '\0';
    set_up(s, true);
}

static void *run(void *arg)
{
    struct summaries *s = arg;

    s->whole_at = clock_mono(s->config.clock);
    while (!atomic_load(&s->stopping)) {
        struct err err;
        size_t n;

        if (work(s, &n, &err) < 0) {
            fail(s, &err);
            continue;
        }
        succeed(s);
        wait_for(s, n ? s->config.pause_ns : idle_ns);
    }
    return NULL;
}

static void copy_texts(struct summaries *s, const struct summaries_config *config)
{
    struct series_matcher *matcher =
        ARENA_ARRAY(&s->texts, struct series_matcher, config->n_matchers);

    for (size_t i = 0; i < config->n_matchers; i++)
        matcher[i] = (struct series_matcher){ arena_str(&s->texts, config->matcher[i].cluster),
                                              arena_str(&s->texts, config->matcher[i].matcher) };
    s->config = *config;
    s->config.matcher = matcher;
    s->config.store = arena_str(&s->texts, config->store);
    s->config.prometheus = (struct prometheus_settings){ 0 }; /* it has been opened */
}

static void free_summaries(struct summaries *s)
{
    prometheus_close(s->prometheus);
    store_reader_close(s->reader);
    arena_clear(&s->texts);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    free(s);
}

int summaries_start(const struct summaries_config *config, struct summaries **ret, struct err *err)
{
    struct summaries *s = heap_alloc(sizeof(*s));
    int code;

    copy_texts(s, config);
    s->stats.is_up = true;
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->wake);
    code = prometheus_open(&config->prometheus, &s->prometheus, err);
    if (code == 0)
        code = thread_start(&s->thread, "summaries", run, s, err);
    if (code < 0) {
        free_summaries(s);
        return code;
    }
    *ret = s;
    return 0;
}

void summaries_end(struct summaries *summaries)
{
    if (!summaries)
        return;
    pthread_mutex_lock(&summaries->lock);
    atomic_store(&summaries->stopping, true);
    pthread_cond_signal(&summaries->wake);
    pthread_mutex_unlock(&summaries->lock);
}

struct summaries *summaries_stop(struct summaries *summaries)
{
    if (!summaries)
        return NULL;
    summaries_end(summaries);
    pthread_join(summaries->thread, NULL);
    free_summaries(summaries);
    return NULL;
}

void summaries_stats(struct summaries *summaries, struct summaries_stats *ret)
{
    pthread_mutex_lock(&summaries->lock);
    *ret = summaries->stats;
    pthread_mutex_unlock(&summaries->lock);
}
