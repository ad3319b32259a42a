/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that writes sections and batches of records into the store. */
#include "record/recorder.h"

#include "base/clock_watch.h"
#include "base/thread.h"
#include "record/ledger.h"
#include "record/request.h"

enum {
    MOST_REQUESTS = 4096, /* that wait: posts of agents that share a transaction */
    MOST_REQUEST_BYTES = 64 << 20,
    MOST_RECORDS = 10000, /* of requests in one transaction, about */
};

static const int64_t patience_ns = 100 * NS_PER_MS; /* how often who waits looks whether to go */
static const int64_t upkeep_ns = 60 * NS_PER_SEC;
static const int64_t last_words_ns = 2 * NS_PER_SEC;
static const int64_t retry_ns = NS_PER_SEC, most_retry_ns = 60 * NS_PER_SEC;

/* A section that is to be written. */
struct slot {
    struct section *section;
    int64_t since_ns; /* when it came, or when its turn will come */
};

/* From one that was written to the next, but for jobs: load and free memory of most nodes are other
 * at each look. */
static const int64_t pause_ns = 60 * NS_PER_SEC;

struct cluster {
    struct str name; /* set once, under the lock */
    int64_t retention_ns;
    uint64_t max_bytes;
    struct slot waiting[KINDS]; /* under the lock */
    int64_t not_before[KINDS];  /* likewise, as the next three */
    int64_t slurm_time;         /* slurmctld's, seconds; 0: unknown */
    int64_t slurm_time_mono_ns; /* when it was that */
    bool is_retention_paused;
    bool knows_waits; /* likewise, as the next two */
    struct map waits; /* of each partition: struct wait */
    struct arena waits_arena;
    struct slot taken[KINDS]; /* the thread's own, as what follows */
    int64_t prune_at;
    struct clock_watch watch;
    struct store_pruned pruned; /* and not logged yet */
};

struct recorder {
    char *url;
    bool is_simulated;
    const struct clock *clock;
    struct log *log;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    bool is_stopping, has_ended;
    int64_t stop_by;
    struct cluster *clusters;
    size_t n_clusters;
    struct list requests;
    size_t n_requests, request_bytes;
    int64_t taken_since; /* the oldest that is being written; INT64_MAX: none is */
    struct recorder_stats stats;
    int64_t retry_at; /* while it is not up */
    struct err err;   /* why it is not */

    struct ledger *ledger; /* the thread's own, as what follows */
    struct round_cluster *round_clusters;
    unsigned failures; /* in a row */
    int told;          /* the errno that was logged last, 0 when all is well */
    bool has_told_skipped;
    uint64_t n_dropped; /* records of unknown jobs, not logged yet */
    int64_t say_dropped_at;
    int64_t tidy_at; /* when there is time again */
};

static void count_error(struct recorder_stats *stats, int code)
{
    const char *reason = err_reason(code);

    for (size_t i = 0; i < RECORDER_REASONS; i++) {
        if (!stats->errors[i].reason)
            stats->errors[i].reason = reason;
        if (stats->errors[i].reason == reason) {
            stats->errors[i].count++;
            return;
        }
    }
}

void recorder_name(struct recorder *recorder, size_t cluster, struct str name)
{
    struct cluster *named = &recorder->clusters[cluster];

    pthread_mutex_lock(&recorder->lock);
    if (!named->name.n && name.n) {
        named->name = (struct str){ heap_str(name), name.n };
        pthread_cond_signal(&recorder->work);
    }
    pthread_mutex_unlock(&recorder->lock);
}

static struct str name_of(struct recorder *r, size_t cluster)
{
    struct str name;

    pthread_mutex_lock(&r->lock);
    name = r->clusters[cluster].name;
    pthread_mutex_unlock(&r->lock);
    return name;
}

bool recorder_get_name(struct recorder *recorder, size_t cluster, char *to, size_t room)
{
    struct str name = name_of(recorder, cluster);

    snprintf(to, room, "%.*s", STR_ARG(name));
    return name.n > 0;
}

size_t recorder_n_clusters(const struct recorder *recorder)
{
    return recorder->n_clusters;
}

int recorder_find(struct recorder *recorder, struct str name)
{
    for (size_t i = 0; name.n && i < recorder->n_clusters; i++)
        if (str_eq(name_of(recorder, i), name))
            return (int)i;
    return -1;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A simulated slurmctld has our own clock. With the lock held. */
static void note_slurm_time(const struct recorder *r, struct cluster *cluster,
                            const struct section *section)
{
    if (r->is_simulated || !section->diag.time)
        return;
    cluster->slurm_time = section->diag.time;
    cluster->slurm_time_mono_ns = section->mono_ns;
}

void recorder_note(struct recorder *recorder, size_t cluster, struct section *section)
{
    enum kind k = section->kind;
    struct slot *slot = &recorder->clusters[cluster].waiting[k];
    const int64_t *not_before = &recorder->clusters[cluster].not_before[k];
    int64_t now = clock_mono(recorder->clock);
    struct section *old;

    if (!(RECORDED_KINDS & KIND_BIT(k)))
        return;
    section_ref(section);
    pthread_mutex_lock(&recorder->lock);
    if (k == KIND_DIAG)
        note_slurm_time(recorder, &recorder->clusters[cluster], section);
    old = slot->section;
    slot->section = section;
    /* What has yet to wait for its turn is not late. */
    if (!old || slot->since_ns > now)
        slot->since_ns = later(now, *not_before);
    else
        recorder->stats.replaced++;
    pthread_cond_signal(&recorder->work);
    pthread_mutex_unlock(&recorder->lock);
    section_unref(old);
}

/* With the lock held. */
static struct wait *wait_of(struct cluster *cluster, struct str partition)
{
    void **place = map_put(&cluster->waits, partition);

    if (!*place)
        *place = ARENA_NEW(&cluster->waits_arena, struct wait);
    return *place;
}

/* A partition has its series before its first job starts, so that this one is an increase. */
void recorder_put_waits(struct recorder *recorder, size_t cluster, struct section *jobs)
{
    struct cluster *of = &recorder->clusters[cluster];

    pthread_mutex_lock(&recorder->lock);
    for (size_t i = 0; i < jobs->jobs.n_known_partitions && of->knows_waits; i++)
        wait_of(of, section_text(jobs, jobs->jobs.known_partition[i]));
    jobs->jobs.n_waits = of->waits.n;
    jobs->jobs.wait = ARENA_ARRAY(&jobs->arena, struct wait, of->waits.n);
    for (size_t i = 0; i < of->waits.n; i++) {
        jobs->jobs.wait[i] = *(const struct wait *)of->waits.entries[i].value;
        jobs->jobs.wait[i].partition = symbols_put(&jobs->symbols, of->waits.entries[i].key);
    }
    pthread_mutex_unlock(&recorder->lock);
}

/* With the lock held. */
static int enqueue(struct recorder *r, struct request *request, struct err *err)
{
    if (!r->stats.is_up && clock_mono(r->clock) < r->retry_at) {
        *err = r->err;
        return -err->code;
    }
    if (r->is_stopping)
        return err_set(err, ECANCELED, "the recorder is about to end");
    if (!r->clusters[request->batch.cluster].name.n)
        return err_set(err, EAGAIN, "the cluster has not told its name yet: try again later");
    if (r->n_requests == MOST_REQUESTS ||
        (r->n_requests && r->request_bytes + request->arena.total_bytes > MOST_REQUEST_BYTES))
        return err_set(err, EAGAIN, "too many wait for the store: try again later");
    request->since_ns = clock_mono(r->clock);
    list_append(&r->requests, &request->link);
    r->n_requests++;
    r->request_bytes += request->arena.total_bytes;
    pthread_cond_signal(&r->work);
    return 0;
}

/* Likewise. */
static void dequeue(struct recorder *r, struct request *request)
{
    list_remove(&request->link);
    r->n_requests--;
    r->request_bytes -= request->arena.total_bytes;
}

/* Likewise. NULL: it is no longer the caller's. */
static struct request *give_up(struct recorder *r, struct request *request)
{
    if (request->is_taken) {
        request->is_abandoned = true;
        return NULL;
    }
    dequeue(r, request);
    return request;
}

/* The request, done; or NULL, and err says why not. The lock is held. */
static struct request *await(struct recorder *r, struct request *request, int64_t deadline_ns,
                             const atomic_bool *cancelled, struct err *err)
{
    int64_t now = clock_mono(r->clock);

    while (!atomic_load(&request->is_done) && now < deadline_ns && !atomic_load(cancelled)) {
        clock_wait(r->clock, &r->done, &r->lock, earlier(now + patience_ns, deadline_ns));
        now = clock_mono(r->clock);
    }
    if (atomic_load(&request->is_done))
        return request;
    if (atomic_load(cancelled))
        err_set(err, ECANCELED, "cancelled");
    else
        err_set(err, ETIMEDOUT, "the store was not written in time");
    request_free(give_up(r, request));
    return NULL;
}

/* The answer to a request, to be freed; or NULL. */
static struct request *ask(struct recorder *r, struct request *request, int64_t deadline_ns,
                           const atomic_bool *cancelled, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    if (enqueue(r, request, err) < 0)
        request = request_free(request);
    else
        request = await(r, request, deadline_ns, cancelled, err);
    pthread_mutex_unlock(&r->lock);
    if (request && request->code < 0) {
        *err = request->err;
        request = request_free(request);
    }
    return request;
}

int recorder_put(struct recorder *recorder, const struct record_batch *batch, int64_t deadline_ns,
                 const atomic_bool *cancelled, struct err *err)
{
    struct request *answer = ask(recorder, request_put(batch), deadline_ns, cancelled, err);

    if (!answer)
        return -err->code;
    request_free(answer);
    return 0;
}

int recorder_submit(struct recorder *recorder, const struct record_batch *batch,
                    void (*notify)(void *ctx), void *ctx, struct request **ret, struct err *err)
{
    struct request *request = request_put(batch);
    int code;

    request->notify = notify;
    request->notify_ctx = ctx;
    pthread_mutex_lock(&recorder->lock);
    code = enqueue(recorder, request, err);
    pthread_mutex_unlock(&recorder->lock);
    *ret = code < 0 ? request_free(request) : request;
    return code;
}

int recorder_check(const struct request *request, struct err *err)
{
    if (!atomic_load(&request->is_done))
        return -EINPROGRESS;
    if (request->code < 0)
        *err = request->err;
    return request->code;
}

void recorder_forget(struct recorder *recorder, struct request *request)
{
    if (!request)
        return;
    pthread_mutex_lock(&recorder->lock);
    if (!atomic_load(&request->is_done))
        request = give_up(recorder, request);
    pthread_mutex_unlock(&recorder->lock);
    request_free(request);
}

int recorder_get_marks(struct recorder *recorder, size_t cluster, const char *const *names,
                       int64_t *values, size_t n, int64_t deadline_ns, const atomic_bool *cancelled,
                       struct err *err)
{
    struct request *answer =
        ask(recorder, request_marks(cluster, names, n), deadline_ns, cancelled, err);

    if (!answer)
        return -err->code;
    memcpy(values, answer->values, n * sizeof(*values));
    request_free(answer);
    return 0;
}

int recorder_open_runs(struct recorder *recorder, size_t cluster, int64_t as_of, uint32_t after,
                       uint32_t *ids, size_t most, size_t *ret_n, int64_t deadline_ns,
                       const atomic_bool *cancelled, struct err *err)
{
    struct request *answer =
        ask(recorder, request_open_runs(cluster, as_of, after, most), deadline_ns, cancelled, err);

    if (!answer)
        return -err->code;
    memcpy(ids, answer->ids, answer->n * sizeof(*ids));
    *ret_n = answer->n;
    request_free(answer);
    return 0;
}

/* Of what waits and what is being written; INT64_MAX: nothing. With the lock held. */
static int64_t oldest_since(const struct recorder *r)
{
    const struct link *first = list_first(&r->requests);
    int64_t since = r->taken_since;

    if (first)
        since = earlier(since, PART_OF(first, struct request, link)->since_ns);
    for (size_t i = 0; i < r->n_clusters; i++)
        for (int k = 0; k < KINDS; k++)
            if (r->clusters[i].waiting[k].section)
                since = earlier(since, r->clusters[i].waiting[k].since_ns);
    return since;
}

void recorder_stats(struct recorder *recorder, struct recorder_stats *ret)
{
    int64_t since;

    pthread_mutex_lock(&recorder->lock);
    *ret = recorder->stats;
    for (size_t i = 0; i < recorder->n_clusters; i++)
        ret->is_retention_paused |= recorder->clusters[i].is_retention_paused;
    since = oldest_since(recorder);
    pthread_mutex_unlock(&recorder->lock);
    ret->behind_seconds = (double)later(0, clock_mono(recorder->clock) - since) / NS_PER_SEC;
}

/* What follows is the thread's. When it can write what waits; INT64_MAX: nothing does. With the
 * lock held. */
static int64_t next_work(const struct recorder *r)
{
    int64_t at = r->n_requests ? INT64_MIN : INT64_MAX;

    for (size_t i = 0; i < r->n_clusters; i++)
        for (int k = 0; k < KINDS && r->clusters[i].name.n; k++)
            if (r->clusters[i].waiting[k].section)
                at = earlier(at, r->is_stopping ? INT64_MIN : r->clusters[i].waiting[k].since_ns);
    return at == INT64_MAX || r->stats.is_up ? at : later(at, r->retry_at);
}

static bool can_work(const struct recorder *r)
{
    return clock_mono(r->clock) >= next_work(r);
}

static void take_requests(struct recorder *r, struct list *to)
{
    size_t records = 0;

    for (struct link *link; records < MOST_RECORDS && (link = list_first(&r->requests));) {
        struct request *request = PART_OF(link, struct request, link);

        dequeue(r, request);
        request->is_taken = true;
        list_append(to, &request->link);
        records += request->batch.n_jobs + request->batch.n_finals;
    }
}

static void take_sections(struct cluster *cluster, int64_t until, struct round_cluster *to)
{
    *to = (struct round_cluster){ .name = cluster->name };
    for (int k = 0; k < KINDS && cluster->name.n; k++) {
        if (cluster->waiting[k].since_ns > until)
            continue;
        cluster->taken[k] = cluster->waiting[k];
        cluster->waiting[k] = (struct slot){ 0 };
    }
    to->jobs = cluster->taken[KIND_JOBS].section;
    to->nodes = cluster->taken[KIND_NODES].section;
    for (int k = 0; k < KINDS; k++)
        to->kept[k] = k != KIND_JOBS ? cluster->taken[k].section : NULL;
}

/* With the lock held. */
static void take(struct recorder *r, struct round *round)
{
    *round = (struct round){ .clusters = r->round_clusters };
    list_init(&round->requests);
    list_init(&round->refused);
    r->taken_since = oldest_since(r);
    take_requests(r, &round->requests);
    for (size_t i = 0; i < r->n_clusters; i++)
        take_sections(&r->clusters[i], r->is_stopping ? INT64_MAX : clock_mono(r->clock),
                      &round->clusters[i]);
}

/* Each keeps the code that it has, or gets this error. With the lock held. */
static void answer_all(struct recorder *r, struct list *requests, const struct err *err)
{
    for (struct link *link; (link = list_first(requests));) {
        struct request *request = PART_OF(link, struct request, link);

        list_remove(link);
        if (err) {
            request->code = -err->code;
            request->err = *err;
        }
        atomic_store(&request->is_done, true);
        if (request->is_abandoned)
            request_free(request);
        else if (request->notify)
            request->notify(request->notify_ctx);
    }
    pthread_cond_broadcast(&r->done);
}

static void refuse_waiting(struct recorder *r, const struct err *err)
{
    answer_all(r, &r->requests, err);
    r->n_requests = r->request_bytes = 0;
}

/* To where it was taken from, unless there is a newer one. With the lock held. */
static bool put_back(struct cluster *cluster, int k)
{
    struct slot *waiting = &cluster->waiting[k], *taken = &cluster->taken[k];

    if (waiting->section) {
        waiting->since_ns = earlier(waiting->since_ns, taken->since_ns);
        return false;
    }
    *waiting = *taken;
    *taken = (struct slot){ 0 };
    return true;
}

/* What has been written, or is known better by now. Without the lock: it may be large. */
static void drop_taken(struct recorder *r)
{
    for (size_t i = 0; i < r->n_clusters; i++) {
        for (int k = 0; k < KINDS; k++) {
            section_unref(r->clusters[i].taken[k].section);
            r->clusters[i].taken[k] = (struct slot){ 0 };
        }
    }
}

/* With the lock held, as the four that follow. */
static void note_failure(struct recorder *r, const struct err *err)
{
    int64_t pause = retry_ns;

    for (unsigned i = 0; i < r->failures && pause < most_retry_ns; i++)
        pause *= 2;
    r->failures++;
    r->stats.is_up = false;
    r->err = *err;
    r->retry_at = clock_mono(r->clock) + earlier(pause, most_retry_ns);
    count_error(&r->stats, err->code);
    refuse_waiting(r, err);
}

static void settle_failure(struct recorder *r, struct round *round, const struct err *err)
{
    note_failure(r, err);
    answer_all(r, &round->requests, err);
    for (size_t i = 0; i < r->n_clusters; i++)
        for (int k = 0; k < KINDS; k++)
            if (r->clusters[i].taken[k].section && !put_back(&r->clusters[i], k))
                r->stats.replaced++;
}

/* Of each that was written, the next has to wait, also if it has come meanwhile. */
static void pause_slots(struct cluster *cluster, int64_t now)
{
    for (int k = 0; k < KINDS; k++) {
        if (!cluster->taken[k].section || k == KIND_JOBS)
            continue;
        cluster->not_before[k] = now + pause_ns;
        cluster->waiting[k].since_ns = later(cluster->waiting[k].since_ns, cluster->not_before[k]);
    }
}

static void note_waits(struct recorder *r)
{
    for (size_t i = 0; i < r->n_clusters; i++) {
        struct cluster *cluster = &r->clusters[i];
        const struct partition_wait *waits;
        size_t n;

        if (!ledger_waits(r->ledger, i, &waits, &n))
            continue;
        cluster->knows_waits = true;
        for (size_t k = 0; k < n; k++)
            *wait_of(cluster, waits[k].partition) = waits[k].wait;
    }
}

static void settle_success(struct recorder *r, struct round *round)
{
    answer_all(r, &round->requests, NULL);
    for (size_t i = 0; i < r->n_clusters; i++) {
        pause_slots(&r->clusters[i], clock_mono(r->clock));
        if (round->clusters[i].has_more)
            put_back(&r->clusters[i], KIND_JOBS);
    }
    r->stats.jobs += round->jobs;
    r->stats.finals += round->finals;
    r->stats.unchanged += round->unchanged;
    r->stats.skipped += round->skipped;
    if (!round->is_written)
        return;
    note_waits(r);
    r->failures = 0;
    r->stats.is_up = true;
    r->stats.commits++;
}

static void settle(struct recorder *r, struct round *round, int code, const struct err *err)
{
    answer_all(r, &round->refused, NULL);
    for (uint64_t i = 0; i < round->refusals; i++)
        count_error(&r->stats, round->refusal.code);
    if (round->was_gone)
        count_error(&r->stats, ENOENT);
    if (code < 0)
        settle_failure(r, round, err);
    else
        settle_success(r, round);
    r->taken_since = INT64_MAX;
}

static void say_failure(struct recorder *r, const struct err *err)
{
    if (r->told == err->code)
        return;
    r->told = err->code;
    LOG(r->log, LOG_ERROR, "the store cannot be written; it is tried again and again",
        LOG_STR("store", r->url), LOG_STR("error", err->text));
}

static void say_success(struct recorder *r, const struct round *round)
{
    if (r->told && round->is_written) {
        r->told = 0;
        LOG(r->log, LOG_INFO, "the store is written again", LOG_STR("store", r->url));
    }
    if (round->skipped && !r->has_told_skipped) {
        r->has_told_skipped = true;
        LOG(r->log, LOG_WARN,
            "jobs are not recorded whose source does not tell when they were submitted",
            LOG_INT("jobs", round->skipped));
    }
}

/* Once a minute at most: a sender that makes up jobs can have records dropped in every round. */
static void say_dropped(struct recorder *r, uint64_t n)
{
    int64_t now = clock_mono(r->clock);

    r->n_dropped += n;
    if (!r->n_dropped || now < r->say_dropped_at)
        return;
    LOG(r->log, LOG_WARN,
        "dropped records of agents: too many are of jobs that Slurm does not know",
        LOG_INT("records", r->n_dropped));
    r->n_dropped = 0;
    r->say_dropped_at = now + upkeep_ns;
}

static void say_losses(struct recorder *r, const struct round *round)
{
    if (round->was_gone)
        LOG(r->log, LOG_WARN,
            "the store's file or its log was removed or replaced; it is opened anew",
            LOG_STR("store", r->url));
    say_dropped(r, round->dropped);
    if (round->refusals)
        LOG(r->log, LOG_ERROR, "the store does not take some records; they are left out",
            LOG_INT("records", round->refusals), LOG_STR("error", round->refusal.text));
}

/* Without the lock. */
static void write_round(struct recorder *r, struct round *round)
{
    int64_t began = clock_mono(r->clock);
    struct err err = { 0 };
    int code = ledger_write(r->ledger, round, &err);
    double seconds = (double)(clock_mono(r->clock) - began) / NS_PER_SEC;

    pthread_mutex_lock(&r->lock);
    settle(r, round, code, &err);
    if (code >= 0 && round->is_written)
        r->stats.last_seconds = seconds;
    pthread_mutex_unlock(&r->lock);
    drop_taken(r);
    say_losses(r, round);
    if (code < 0)
        say_failure(r, &err);
    else
        say_success(r, round);
}

/* When something is to be done that nobody has asked for. */
static int64_t next_upkeep(const struct recorder *r)
{
    int64_t at = r->tidy_at;

    for (size_t i = 0; i < r->n_clusters; i++)
        if (r->clusters[i].retention_ns || r->clusters[i].max_bytes)
            at = earlier(at, r->clusters[i].prune_at);
    return r->stats.is_up ? at : INT64_MAX;
}

static bool may_expire(struct recorder *r, struct cluster *cluster)
{
    int64_t time, mono_ns;
    bool may;

    pthread_mutex_lock(&r->lock);
    time = cluster->slurm_time;
    mono_ns = cluster->slurm_time_mono_ns;
    pthread_mutex_unlock(&r->lock);
    if (time)
        clock_watch_hear(&cluster->watch, time, mono_ns);
    may = clock_watch_allows(&cluster->watch, r->log);
    pthread_mutex_lock(&r->lock);
    cluster->is_retention_paused = clock_watch_is_paused(&cluster->watch);
    pthread_mutex_unlock(&r->lock);
    return may;
}

static void say_pruned(struct recorder *r, struct cluster *cluster)
{
    const struct store_pruned *pruned = &cluster->pruned;

    if (pruned->by_age)
        LOG(r->log, LOG_INFO, "deleted recorded jobs past their retention",
            LOG_VIEW("cluster", cluster->name), LOG_INT("runs", pruned->by_age));
    if (pruned->by_size)
        LOG(r->log, LOG_INFO,
            "deleted the oldest recorded jobs: the store exceeds --store.max-size",
            LOG_VIEW("cluster", cluster->name), LOG_INT("runs", pruned->by_size));
    if (pruned->finals)
        LOG(r->log, LOG_INFO, "deleted what agents sent about jobs of that age",
            LOG_VIEW("cluster", cluster->name), LOG_INT("records", pruned->finals));
    cluster->pruned = (struct store_pruned){ 0 };
}

/* Logged when it is done, not at each of its many steps. */
static void note_pruned(struct recorder *r, struct cluster *cluster,
                        const struct store_pruned *pruned)
{
    if (pruned->by_age || pruned->by_size || pruned->finals) {
        cluster->pruned.by_age += pruned->by_age;
        cluster->pruned.by_size += pruned->by_size;
        cluster->pruned.finals += pruned->finals;
    } else {
        cluster->prune_at = clock_mono(r->clock) + upkeep_ns;
        say_pruned(r, cluster);
    }
}

static int prune(struct recorder *r, size_t i, struct err *err)
{
    struct cluster *cluster = &r->clusters[i];
    struct store_retention retention = { .max_bytes = cluster->max_bytes };
    struct str name = name_of(r, i);
    struct store_pruned pruned = { 0 };
    int code = 0;

    if (cluster->retention_ns && may_expire(r, cluster))
        retention.oldest_end = (clock_wall(r->clock) - cluster->retention_ns) / NS_PER_SEC;
    if (name.n)
        code = ledger_prune(r->ledger, name, &retention, &pruned, err);
    if (code >= 0)
        note_pruned(r, cluster, &pruned);
    return code;
}

static int prune_all(struct recorder *r, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < r->n_clusters && code >= 0; i++) {
        const struct cluster *cluster = &r->clusters[i];

        if ((cluster->retention_ns || cluster->max_bytes) &&
            clock_mono(r->clock) >= cluster->prune_at)
            code = prune(r, i, err);
    }
    return code;
}

static int tidy(struct recorder *r, struct err *err)
{
    struct store_size size;
    int code;

    if (clock_mono(r->clock) < r->tidy_at)
        return 0;
    code = ledger_tidy(r->ledger, &size, err);
    if (code < 0)
        return code;
    r->tidy_at = clock_mono(r->clock) + upkeep_ns;
    pthread_mutex_lock(&r->lock);
    r->stats.size = size;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

/* Without the lock. */
static void keep_up(struct recorder *r)
{
    bool was_gone;
    struct err err;
    int code = ledger_open(r->ledger, &was_gone, &err);

    if (code >= 0)
        code = prune_all(r, &err);
    if (code >= 0)
        code = tidy(r, &err);
    pthread_mutex_lock(&r->lock);
    if (was_gone)
        count_error(&r->stats, ENOENT);
    if (code < 0)
        note_failure(r, &err);
    pthread_mutex_unlock(&r->lock);
    say_losses(r, &(struct round){ .was_gone = was_gone });
    if (code < 0)
        say_failure(r, &err);
}

/* With the lock held, which is let go while anything is done. False: there was nothing. */
static bool work_once(struct recorder *r)
{
    bool can_write = can_work(r);
    bool is_due = !r->is_stopping && clock_mono(r->clock) >= next_upkeep(r);
    struct round round;

    if (can_write)
        take(r, &round);
    if (!can_write && !is_due)
        return false;
    pthread_mutex_unlock(&r->lock);
    if (can_write)
        write_round(r, &round);
    if (is_due && r->stats.is_up)
        keep_up(r);
    pthread_mutex_lock(&r->lock);
    return true;
}

static bool is_over(const struct recorder *r)
{
    return r->is_stopping && (!can_work(r) || clock_mono(r->clock) >= r->stop_by);
}

static void *recorder_main(void *arg)
{
    struct recorder *r = arg;
    struct err err;

    pthread_mutex_lock(&r->lock);
    while (!is_over(r))
        if (!work_once(r))
            clock_wait(r->clock, &r->work, &r->lock, earlier(next_work(r), next_upkeep(r)));
    err_set(&err, ECANCELED, "the recorder has ended");
    r->has_ended = true;
    refuse_waiting(r, &err);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->n_clusters; i++)
        say_pruned(r, &r->clusters[i]);
    return NULL;
}

static void release(struct recorder *r)
{
    ledger_free(r->ledger);
    for (size_t i = 0; i < r->n_clusters; i++) {
        for (int k = 0; k < KINDS; k++)
            section_unref(r->clusters[i].waiting[k].section);
        free((char *)r->clusters[i].name.p);
        map_free(&r->clusters[i].waits);
        arena_clear(&r->clusters[i].waits_arena);
    }
    free(r->clusters);
    free(r->round_clusters);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->done);
    free(r->url);
    free(r);
}

static struct recorder *recorder_new(const struct recorder_config *config)
{
    struct recorder *r = heap_alloc(sizeof(*r));

    r->url = heap_str(config->url);
    r->is_simulated = config->is_simulated;
    r->clock = config->clock;
    r->log = config->log;
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->work);
    clock_cond_init(&r->done);
    list_init(&r->requests);
    r->taken_since = INT64_MAX;
    r->tidy_at = INT64_MIN;
    r->n_clusters = config->n_clusters;
    r->clusters = heap_alloc(config->n_clusters * sizeof(*r->clusters));
    r->round_clusters = heap_alloc(config->n_clusters * sizeof(*r->round_clusters));
    for (size_t i = 0; i < config->n_clusters; i++) {
        r->clusters[i].retention_ns = config->clusters[i].retention_ns;
        r->clusters[i].max_bytes = config->clusters[i].max_bytes;
        r->clusters[i].prune_at = INT64_MIN;
        map_init(&r->clusters[i].waits, &r->clusters[i].waits_arena);
        clock_watch_init(&r->clusters[i].watch, config->clock, "job history");
        recorder_name(r, i, config->clusters[i].name);
    }
    r->ledger = ledger_new(config->url, config->is_simulated, config->n_clusters);
    return r;
}

static int recall_newest(struct recorder *r, struct err *err)
{
    int64_t newest;
    int code = ledger_newest(r->ledger, &newest, err);

    for (size_t i = 0; code >= 0 && i < r->n_clusters; i++)
        clock_watch_recall(&r->clusters[i].watch, newest);
    return code;
}

/* A failure that passes is none: the thread will try again. */
static int open_first(struct recorder *r, struct err *err)
{
    bool was_gone;
    int code = ledger_open(r->ledger, &was_gone, err);

    if (code == -EINVAL || code == -EPROTO || code == -EALREADY)
        return code;
    r->stats.is_up = code >= 0;
    if (code >= 0)
        code = recall_newest(r, err);
    if (code < 0) {
        note_failure(r, err);
        say_failure(r, err);
    }
    return 0;
}

int recorder_start(const struct recorder_config *config, struct recorder **ret, struct err *err)
{
    struct recorder *r = recorder_new(config);
    int code = open_first(r, err);

    if (code >= 0)
        code = thread_start(&r->thread, "recorder", recorder_main, r, err);
    if (code < 0) {
        release(r);
        return code;
    }
    *ret = r;
    return 0;
}

/* With the lock held. */
static void begin_end(struct recorder *r)
{
    if (r->is_stopping)
        return;
    r->is_stopping = true;
    r->stop_by = clock_mono(r->clock) + last_words_ns;
    pthread_cond_signal(&r->work);
}

void recorder_save(struct recorder *recorder, int64_t until_ns)
{
    bool in_time = true;

    if (!recorder)
        return;
    pthread_mutex_lock(&recorder->lock);
    begin_end(recorder);
    while (!recorder->has_ended && in_time)
        in_time = clock_wait(recorder->clock, &recorder->done, &recorder->lock, until_ns);
    pthread_mutex_unlock(&recorder->lock);
}

struct recorder *recorder_stop(struct recorder *recorder)
{
    if (!recorder)
        return NULL;
    pthread_mutex_lock(&recorder->lock);
    begin_end(recorder);
    pthread_mutex_unlock(&recorder->lock);
    pthread_join(recorder->thread, NULL);
    release(recorder);
    return NULL;
}
