/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that copies jobs from slurmdbd into the store. */
#include "record/history.h"

#include "base/arena.h"
#include "base/thread.h"
#include "source/sacct.h"

enum {
    BATCH = 2000,  /* records that are written together */
    FEW = 1000,    /* of fewer, more can be asked for at a time, */
    MANY = 50000,  /* and of more, less */
    PATIENCE = 16, /* questions before more is asked for than was refused */
    OPEN_MOST = 500,
    OPEN_SECONDS = 600, /* that nothing was heard of a run before it is asked for by its id */
    OVERLAP_SECONDS = 3600,
    MINUTE = 60,
    DAY = 24 * 3600,
    YEAR = 365 * DAY,
    BEGINNING = 1009843200, /* 2002-01-01: no Slurm is older */
};

#define NAMELESS_NS NS_PER_SEC
#define PROGRESS_NS (30 * NS_PER_SEC)

/* After the first of several failures, and at most; if there is no accounting, that may be because
 * it is only being set up. */
static const struct {
    int64_t first_ns, most_ns;
} backoff = { 10 * NS_PER_SEC, 300 * NS_PER_SEC },
  backoff_missing = { 60 * NS_PER_SEC, 3600 * NS_PER_SEC };

static const char *const mark_names[] = { "accounted_since", "accounted_until" };

/* What has been asked for without a gap; 0: nothing yet. */
struct span {
    int64_t since, until;
};

struct history {
    struct history_config config;
    struct sacct *sacct;
    pthread_t thread;
    atomic_bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct history_stats stats; /* guarded by the lock; what follows is the thread's own */

    char name[256];          /* of the cluster */
    int64_t width;           /* seconds that are asked for at a time */
    unsigned patience;       /* questions before it may grow */
    bool has_told_less;      /* that less is asked for at a time */
    uint32_t open_after;     /* the run that was asked for last by its id; 0: begin anew */
    int64_t forward_at;      /* monotonic, when what is new is asked for again */
    int64_t progress_at;     /* … when it is next said how far it has got */
    uint64_t progress_count; /* records since it began to be said */
    int64_t backoff_ns;      /* 0: the last question was answered */
    struct err failure;      /* what was logged last */

    /* What has been read and not been written. */
    struct arena arena;
    struct job_record *batch;
    size_t n_batch;
    bool is_store_failing; /* it was not slurmdbd that failed */
};

static int64_t wall_seconds(const struct history *h)
{
    return clock_wall(h->config.clock) / NS_PER_SEC;
}

static int64_t deadline(const struct history *h)
{
    return clock_mono(&clock_real) + h->config.timeout_ns;
}

static int64_t store_deadline(const struct history *h)
{
    return clock_mono(h->config.clock) + h->config.timeout_ns;
}

/* The earliest that is asked for. */
static int64_t floor_of(const struct history *h)
{
    return h->config.first_time > BEGINNING ? h->config.first_time : BEGINNING;
}

static void forget_batch(struct history *h)
{
    arena_clear(&h->arena);
    h->n_batch = 0;
}

static int write_batch(struct history *h, const struct record_mark *marks, size_t n_marks,
                       struct err *err)
{
    const struct record_batch batch = {
        .cluster = h->config.cluster,
        .jobs = h->batch,
        .n_jobs = h->n_batch,
        .marks = marks,
        .n_marks = n_marks,
    };
    int code = h->n_batch || n_marks
                   ? recorder_put(h->config.recorder, &batch, store_deadline(h), &h->stopping, err)
                   : 0;

    h->is_store_failing = code < 0;
    forget_batch(h);
    return code;
}

/* All that it points to lives as long as the batch. */
static struct job_record copy_record(struct arena *arena, const struct job_record *record)
{
    struct job_record copy = *record;
    struct str *texts[] = { &copy.user,      &copy.account,    &copy.qos,  &copy.name,
                            &copy.reason,    &copy.nodes,      &copy.tres, &copy.tres_requested,
                            &copy.partition, &copy.reservation };
    struct record_extra *extra = ARENA_ARRAY(arena, struct record_extra, record->n_extra);

    for (size_t i = 0; i < COUNT(texts); i++)
        *texts[i] = arena_str(arena, *texts[i]);
    for (size_t i = 0; i < record->n_extra; i++)
        extra[i] = (struct record_extra){ arena_str(arena, record->extra[i].name),
                                          arena_str(arena, record->extra[i].value) };
    copy.extra = extra;
    return copy;
}

static int take_record(void *ctx, const struct job_record *record, struct err *err)
{
    struct history *h = ctx;

    if (!keep_has(h->config.keep, record->account, record->user))
        return 0;
    h->batch[h->n_batch++] = copy_record(&h->arena, record);
    return h->n_batch < BATCH ? 0 : write_batch(h, NULL, 0, err);
}

static void tell_left_out(const struct history *h, const struct sacct_counts *counts)
{
    if (counts->skipped)
        LOG(h->config.log, LOG_WARN, "records of sacct that cannot be read are left out",
            LOG_STR("cluster", h->name), LOG_INT("count", counts->skipped),
            LOG_STR("first", counts->skipped_example));
}

/* Asks, and writes what comes but for the last of it. */
static int ask(struct history *h, struct sacct_question *question, uint64_t *ret_records,
               struct err *err)
{
    struct sacct_result result;
    int code;

    question->as_of = wall_seconds(h);
    question->deadline_ns = deadline(h);
    question->cancelled = &h->stopping;
    question->record = take_record;
    question->ctx = h;
    h->is_store_failing = false;
    code = sacct_ask(h->sacct, question, &result, err);
    if (code == -ETIMEDOUT && !h->is_store_failing)
        err_prefix(err, "no answer within --store.history-timeout (%lld s), is slurmdbd down?",
                   (long long)((h->config.timeout_ns + NS_PER_SEC - 1) / NS_PER_SEC));
    if (code < 0)
        forget_batch(h);
    else
        tell_left_out(h, &result.counts);
    pthread_mutex_lock(&h->lock);
    h->stats.questions++;
    h->stats.failures += code < 0;
    h->stats.records += result.counts.records;
    h->stats.skipped += result.counts.skipped;
    pthread_mutex_unlock(&h->lock);
    h->progress_count += result.counts.records;
    *ret_records = result.counts.records;
    return code;
}

static void ask_for_less(struct history *h, int64_t asked_seconds)
{
    h->width = asked_seconds / 2 > MINUTE ? asked_seconds / 2 : MINUTE;
}

/* How much is asked for at a time follows from what came. */
static void adapt(struct history *h, int64_t asked_seconds, uint64_t records)
{
    if (records > MANY)
        ask_for_less(h, asked_seconds);
    else if (h->patience)
        h->patience--;
    else if (records < FEW && asked_seconds >= h->width)
        h->width = h->width * 2 < YEAR ? h->width * 2 : YEAR;
}

/* After a failure: whether to ask again at once. A timeout counts as a failure of slurmdbd, which
 * may hang: the shorter window waits for the back-off. */
static bool can_ask_for_less(struct history *h, int64_t asked_seconds, int code,
                             const struct err *err)
{
    if ((code != -E2BIG && code != -ETIMEDOUT) || h->is_store_failing || asked_seconds <= MINUTE)
        return false;
    ask_for_less(h, asked_seconds);
    h->patience = PATIENCE;
    if (code == -ETIMEDOUT)
        return false;
    if (!h->has_told_less)
        LOG(h->config.log, LOG_INFO, "slurmdbd was asked for too much at a time: less is asked for",
            LOG_STR("cluster", h->name), LOG_INT("seconds", h->width), LOG_STR("error", err->text));
    h->has_told_less = true;
    return !atomic_load(&h->stopping);
}

/* A window was answered, and its records are written. */
static void publish(struct history *h, const struct span *span)
{
    pthread_mutex_lock(&h->lock);
    h->stats.is_up = true;
    h->stats.since = span->since;
    h->stats.until = span->until;
    h->stats.is_complete = span->since && span->since <= floor_of(h);
    pthread_mutex_unlock(&h->lock);
}

static int read_span(struct history *h, struct span *ret, struct err *err)
{
    int64_t marks[COUNT(mark_names)] = { 0 };
    int code = recorder_get_marks(h->config.recorder, h->config.cluster, mark_names, marks,
                                  COUNT(marks), store_deadline(h), &h->stopping, err);

    if (code < 0) {
        h->is_store_failing = true;
        return code;
    }
    *ret = (struct span){ marks[0], marks[1] };
    return 0;
}

/* One question for [from, to), written with the marks that make `after` true. */
static int read_window(struct history *h, int64_t from, int64_t to, const struct span *after,
                       struct err *err)
{
    struct sacct_question question = { .from = from, .to = to };
    const struct record_mark marks[] = {
        { mark_names[0], after->since },
        { mark_names[1], after->until },
    };
    uint64_t records;
    int code = ask(h, &question, &records, err);

    if (code == 0)
        code = write_batch(h, marks, COUNT(marks), err);
    if (code < 0)
        return code;
    publish(h, after);
    adapt(h, to - from, records);
    return 0;
}

struct moment {
    char text[24];
};

static struct moment moment_of(int64_t seconds)
{
    time_t time = (time_t)seconds;
    struct moment moment = { "" };
    struct tm tm;

    if (gmtime_r(&time, &tm))
        strftime(moment.text, sizeof(moment.text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return moment;
}

static void tell_progress(struct history *h, int64_t got_to)
{
    int64_t now = clock_mono(h->config.clock);

    if (now < h->progress_at)
        return;
    h->progress_at = now + PROGRESS_NS;
    LOG(h->config.log, LOG_INFO, "reading what slurmdbd has kept", LOG_STR("cluster", h->name),
        LOG_STR("got_to", moment_of(got_to).text), LOG_INT("records", h->progress_count));
}

/* Runs that have not ended as far as is known, and of which nobody has said anything for a while:
 * Slurm has forgotten them, or they lie outside of what was asked for. They take turns, as slurmdbd
 * may never have heard of some, and of these nothing changes. */
static int ask_of_open_runs(struct history *h, struct err *err)
{
    uint32_t ids[OPEN_MOST];
    struct sacct_question question = { .ids = ids };
    uint64_t records;
    int code = recorder_open_runs(h->config.recorder, h->config.cluster,
                                  wall_seconds(h) - OPEN_SECONDS, h->open_after, ids, OPEN_MOST,
                                  &question.n_ids, store_deadline(h), &h->stopping, err);

    h->is_store_failing = code < 0;
    if (code < 0)
        return code;
    h->open_after = question.n_ids == OPEN_MOST ? ids[OPEN_MOST - 1] : 0;
    if (!question.n_ids)
        return 0;
    code = ask(h, &question, &records, err);
    return code < 0 ? code : write_batch(h, NULL, 0, err);
}

/* What has happened since the last time, from a little before: slurmdbd is told late. */
static int64_t forward_from(const struct history *h, const struct span *span, int64_t now)
{
    int64_t overlap = h->config.interval_ns / NS_PER_SEC;
    int64_t until = span->until && span->until < now ? span->until : now;
    int64_t from;

    if (overlap < OVERLAP_SECONDS)
        overlap = OVERLAP_SECONDS;
    from = until - overlap;
    return from > floor_of(h) ? from : floor_of(h);
}

/* The oldest first, so that what has been asked for has no gap. Where the clock has gone back, what
 * was asked for goes back with it. */
static int go_forward(struct history *h, struct err *err)
{
    int64_t now = wall_seconds(h), from;
    struct span span;
    int code = read_span(h, &span, err);

    if (code < 0)
        return code;
    from = forward_from(h, &span, now);
    if (!span.since || span.since > from)
        span.since = from;
    while (from < now && !atomic_load(&h->stopping)) {
        span.until = now - from > h->width ? from + h->width : now;
        code = read_window(h, from, span.until, &span, err);
        if (code == 0)
            from = span.until;
        else if (!can_ask_for_less(h, span.until - from, code, err))
            return code;
        if (from < now)
            tell_progress(h, from);
    }
    return ask_of_open_runs(h, err);
}

/* One step further back. */
static int go_back(struct history *h, struct err *err)
{
    struct span span, after;
    int64_t from;
    int code = read_span(h, &span, err);

    if (code < 0)
        return code;
    if (!span.since) /* another store is in the place of the last: it is begun from now */
        h->forward_at = clock_mono(h->config.clock);
    if (!span.since || span.since <= floor_of(h))
        return 0;
    do {
        from = span.since - h->width > floor_of(h) ? span.since - h->width : floor_of(h);
        after = (struct span){ from, span.until };
        code = read_window(h, from, span.since, &after, err);
    } while (code < 0 && can_ask_for_less(h, span.since - from, code, err));
    if (code < 0)
        return code;
    tell_progress(h, from);
    if (from <= floor_of(h))
        LOG(h->config.log, LOG_INFO, "all that slurmdbd has kept is in the store",
            LOG_STR("cluster", h->name), LOG_STR("since", moment_of(from).text),
            LOG_INT("records", h->progress_count));
    return 0;
}

static void wait_until(struct history *h, int64_t until_ns)
{
    pthread_mutex_lock(&h->lock);
    while (!atomic_load(&h->stopping) && clock_mono(h->config.clock) < until_ns)
        clock_wait(h->config.clock, &h->wake, &h->lock, until_ns);
    pthread_mutex_unlock(&h->lock);
}

static bool is_missing(int code)
{
    return code == -ENOENT || code == -EOPNOTSUPP;
}

/* The same is said once, however often it fails. */
static void tell_failure(struct history *h, int code, const struct err *err)
{
    if (strcmp(h->failure.text, err->text) == 0)
        return;
    h->failure = *err;
    if (h->is_store_failing)
        LOG(h->config.log, LOG_WARN, "what slurmdbd has kept cannot be written into the store",
            LOG_STR("cluster", h->name), LOG_STR("error", err->text));
    else if (is_missing(code))
        LOG(h->config.log, LOG_WARN,
            "the store is not completed from slurmdbd: jobs are known as far as they are seen",
            LOG_STR("cluster", h->name), LOG_STR("error", err->text));
    else
        LOG(h->config.log, LOG_WARN, "slurmdbd cannot be asked", LOG_STR("cluster", h->name),
            LOG_STR("error", err->text));
}

static int64_t next_backoff(int64_t last_ns, bool is_missing_now)
{
    const typeof(backoff) *of = is_missing_now ? &backoff_missing : &backoff;
    int64_t next_ns = 2 * last_ns > of->first_ns ? 2 * last_ns : of->first_ns;

    return next_ns < of->most_ns ? next_ns : of->most_ns;
}

static void fail(struct history *h, int code, const struct err *err)
{
    if (atomic_load(&h->stopping))
        return;
    tell_failure(h, code, err);
    pthread_mutex_lock(&h->lock);
    h->stats.is_up = false;
    pthread_mutex_unlock(&h->lock);
    h->backoff_ns = next_backoff(h->backoff_ns, is_missing(code) && !h->is_store_failing);
    wait_until(h, clock_mono(h->config.clock) + h->backoff_ns);
}

static void succeed(struct history *h)
{
    if (h->backoff_ns)
        LOG(h->config.log, LOG_INFO, "slurmdbd is asked again", LOG_STR("cluster", h->name));
    h->backoff_ns = 0;
    h->failure.text[0] = '\0';
    pthread_mutex_lock(&h->lock);
    h->stats.is_up = true;
    pthread_mutex_unlock(&h->lock);
}

static bool is_complete(struct history *h)
{
    bool complete;

    pthread_mutex_lock(&h->lock);
    complete = h->stats.is_complete;
    pthread_mutex_unlock(&h->lock);
    return complete;
}

static void read_reconciled(struct history *h)
{
    struct reconcile_summary summary = { 0 };

    if (!reconcile_file_read(h->config.store, str_of(h->name), &summary))
        return;
    pthread_mutex_lock(&h->lock);
    h->stats.reconciled = summary;
    pthread_mutex_unlock(&h->lock);
}

/* What is new comes before what is old; and slurmdbd is left alone for as long as it has worked. */
static void work(struct history *h)
{
    int64_t began = clock_mono(h->config.clock), ended;
    bool is_forward = began >= h->forward_at;
    struct err err;
    int code = is_forward ? go_forward(h, &err) : go_back(h, &err);

    read_reconciled(h);
    ended = clock_mono(h->config.clock);
    if (code < 0) {
        fail(h, code, &err);
        return;
    }
    succeed(h);
    if (is_forward)
        h->forward_at = ended + h->config.interval_ns;
    wait_until(h, is_complete(h) || ended + (ended - began) > h->forward_at
                      ? h->forward_at
                      : ended + (ended - began));
}

static void *run(void *arg)
{
    struct history *h = arg;

    h->progress_at = clock_mono(h->config.clock) + PROGRESS_NS;
    while (!atomic_load(&h->stopping)) {
        if (recorder_get_name(h->config.recorder, h->config.cluster, h->name, sizeof(h->name)))
            work(h);
        else
            wait_until(h, clock_mono(h->config.clock) + NAMELESS_NS);
    }
    return NULL;
}

static void free_history(struct history *h)
{
    sacct_free(h->sacct);
    arena_clear(&h->arena);
    free(h->batch);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    free(h);
}

int history_start(const struct history_config *config, struct history **ret, struct err *err)
{
    struct history *h = heap_alloc(sizeof(*h));
    int code;

    h->config = *config;
    h->width = DAY;
    h->forward_at = clock_mono(config->clock);
    h->batch = heap_array(BATCH, sizeof(*h->batch));
    pthread_mutex_init(&h->lock, NULL);
    clock_cond_init(&h->wake);
    code = sacct_new(&config->source, &h->sacct, err);
    if (code == 0)
        code = thread_start(&h->thread, "history", run, h, err);
    if (code < 0) {
        free_history(h);
        return code;
    }
    *ret = h;
    return 0;
}

void history_end(struct history *history)
{
    if (!history)
        return;
    pthread_mutex_lock(&history->lock);
    atomic_store(&history->stopping, true);
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->lock);
}

struct history *history_stop(struct history *history)
{
    if (!history)
        return NULL;
    history_end(history);
    pthread_join(history->thread, NULL);
    free_history(history);
    return NULL;
}

void history_stats(struct history *history, struct history_stats *ret)
{
    pthread_mutex_lock(&history->lock);
    *ret = history->stats;
    pthread_mutex_unlock(&history->lock);
}
