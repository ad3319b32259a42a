/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that writes records of ended jobs to disk and posts them to the exporter. */
#include "agent/spool.h"

#include "agent/final.h"
#include "agent/spool_post.h"
#include "base/arena.h"
#include "base/clock_watch.h"
#include "base/list.h"
#include "base/thread.h"

#include <stdlib.h>
#include <sys/random.h>

enum {
    MEMORY_RECORDS = 2000, /* that are not on disk */
    MEMORY_BYTES = 4 << 20,
    MOST_SEGMENT_TEXT = 16 << 20,
};

/* A record that is not on disk. */
struct entry {
    struct link link;
    int64_t seconds;
    size_t n;
    char text[];
};

struct spool {
    struct spool_config config; /* without its texts, which need not last */
    char *directory;
    struct spool_post *post;
    pthread_t thread;
    atomic_bool is_cancelled;

    /* used by the thread, and while it posts (is_sending) by the saver (is_saving) */
    struct spool_disk *disk; /* NULL: it cannot be used */
    struct list kept;        /* entries that the disk did not take */
    size_t n_kept_sent;      /* of these, the first ones, which are being posted */
    uint64_t disk_dropped;   /* of disks that were closed, and what of this one is counted */
    bool is_disk_failing, is_failing; /* which was logged */
    int64_t backoff_ns;               /* 0: the last post did not fail */
    int64_t not_before_ns;
    struct clock_watch watch;
    struct buf text;
    struct spool_record *records;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t changed;
    struct list added; /* entries */
    size_t n_memory, n_memory_bytes;
    bool is_stopping, is_sending, is_saving, is_full; /* is_full was logged */
    pthread_t saver;                                  /* writes to disk while the thread posts */
    bool has_saver;                                   /* to be joined */
    int64_t stop_ns;
    uint64_t saves_wanted, saves_done; /* calls of spool_save */
    struct spool_stats stats;
};

/* --- keeping --- */

static void free_entry(struct spool *spool, struct entry *entry)
{
    list_remove(&entry->link);
    pthread_mutex_lock(&spool->lock);
    spool->n_memory--;
    spool->n_memory_bytes -= entry->n;
    pthread_mutex_unlock(&spool->lock);
    free(entry);
}

static void free_entries(struct spool *spool, size_t most)
{
    struct link *link;

    while (most-- && (link = list_first(&spool->kept)))
        free_entry(spool, PART_OF(link, struct entry, link));
    spool->n_kept_sent = 0;
}

static void drop(struct spool *spool, uint64_t n)
{
    pthread_mutex_lock(&spool->lock);
    spool->stats.dropped += n;
    pthread_mutex_unlock(&spool->lock);
}

static void show_waiting(struct spool *spool)
{
    struct spool_disk_stats disk = { 0 };

    if (spool->disk)
        spool_disk_stats(spool->disk, &disk);
    if (disk.dropped > spool->disk_dropped) {
        LOG(spool->config.log, LOG_WARN, "the spool is full: what the oldest jobs used is dropped",
            LOG_INT("records", disk.dropped - spool->disk_dropped));
        drop(spool, disk.dropped - spool->disk_dropped);
        spool->disk_dropped = disk.dropped;
    }
    pthread_mutex_lock(&spool->lock);
    spool->stats.waiting_bytes = disk.bytes;
    spool->stats.waiting = disk.records;
    pthread_mutex_unlock(&spool->lock);
}

static void open_disk(struct spool *spool, struct err *err)
{
    const uint64_t segment = spool->config.max_bytes / 4;
    const struct spool_disk_config config = {
        .directory = spool->directory,
        .max_bytes = spool->config.max_bytes,
        .segment_bytes = segment < SPOOL_POST_BYTES ? (size_t)segment : SPOOL_POST_BYTES,
        .segment_records = SPOOL_POST_RECORDS,
    };

    spool->disk_dropped = 0;
    if (spool_disk_open(&config, &spool->disk, err) < 0)
        spool->disk = NULL;
}

static int write_kept(struct spool *spool, struct err *err)
{
    int code = 0;

    if (!spool->disk)
        open_disk(spool, err);
    if (!spool->disk)
        return -err->code;
    for (struct link *link = list_first(&spool->kept); link && code == 0;
         link = list_next(&spool->kept, link)) {
        const struct entry *entry = PART_OF(link, struct entry, link);

        code =
            spool_disk_put(spool->disk, (struct str){ entry->text, entry->n }, entry->seconds, err);
    }
    if (code == 0)
        code = spool_disk_sync(spool->disk, err);
    if (code == -ENOENT) /* somebody has removed it: the next time it is made again */
        spool->disk = spool_disk_close(spool->disk);
    return code;
}

static void tell_disk(struct spool *spool, int code, const struct err *err)
{
    bool was_failing = spool->is_disk_failing;

    spool->is_disk_failing = code < 0;
    if (code < 0 && !was_failing)
        LOG(spool->config.log, LOG_WARN,
            "what ended jobs used cannot be spooled on disk and is kept in memory; the next line "
            "about it will say that it can",
            LOG_STR("error", err->text));
    else if (code == 0 && was_failing)
        LOG(spool->config.log, LOG_INFO, "what ended jobs used is spooled on disk again");
}

/* All that is in memory, to disk. */
static void keep(struct spool *spool)
{
    struct err err = { 0 };
    int code = write_kept(spool, &err);

    tell_disk(spool, code, &err);
    show_waiting(spool); /* first: nobody is to miss them in between */
    if (code == 0)
        free_entries(spool, SIZE_MAX);
}

/* --- posting --- */

static int64_t part_of(int64_t ns)
{
    uint32_t random;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = 0;
    return ns / 1024 * (random % 1024);
}

/* Twice as long after each failure, and up to a quarter shorter, so that the nodes of a cluster do
 * not come back all at once. */
static void back_off(struct spool *spool)
{
    int64_t next_ns = spool->backoff_ns ? spool->backoff_ns * 2 : spool->config.retry_ns;

    if (next_ns > spool->config.max_backoff_ns)
        next_ns = spool->config.max_backoff_ns;
    spool->backoff_ns = next_ns;
    spool->not_before_ns = clock_mono(spool->config.clock) + next_ns - part_of(next_ns / 4);
}

/* As long as an exporter that is busy asks for, and up to as long again, so that the nodes of a
 * cluster do not come back all at once. */
static void come_again(struct spool *spool, int64_t retry_ns)
{
    spool->backoff_ns = spool->backoff_ns ? spool->backoff_ns : spool->config.retry_ns;
    spool->not_before_ns = clock_mono(spool->config.clock) + retry_ns + part_of(retry_ns);
}

static void tell_post(struct spool *spool, bool is_taken, const struct spool_batch *batch)
{
    bool was_failing = spool->is_failing;

    spool->is_failing = !is_taken;
    if (!is_taken && !was_failing)
        LOG(spool->config.log, LOG_WARN,
            "cannot hand in what ended jobs used, it is kept; the next line about it will say that "
            "it works",
            LOG_STR("error", batch->err.text), LOG_STR("answer", batch->words));
    else if (is_taken && was_failing)
        LOG(spool->config.log, LOG_INFO, "the exporter takes what ended jobs used");
    if (is_taken && batch->n_refused)
        LOG(spool->config.log, LOG_WARN,
            "the exporter refuses what it was told of some ended jobs, which is dropped",
            LOG_INT("records", batch->n_refused), LOG_STR("answer", batch->words));
}

static void count_post(struct spool *spool, bool is_taken, const struct spool_batch *batch)
{
    pthread_mutex_lock(&spool->lock);
    while (spool->is_saving)
        pthread_cond_wait(&spool->changed, &spool->lock);
    spool->is_sending = false;
    spool->stats.is_up = is_taken;
    spool->stats.failures += !is_taken;
    if (is_taken) {
        spool->stats.posted += batch->n_taken;
        spool->stats.dropped += batch->n_refused;
        spool->stats.last_success_wall_ns = clock_wall(spool->config.clock);
        spool->stats.is_retention_paused = false;
    }
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
}

/* What there is for a request. */
static int64_t begin_sending(struct spool *spool)
{
    int64_t timeout_ns = spool->config.timeout_ns;

    pthread_mutex_lock(&spool->lock);
    spool->is_sending = true;
    pthread_cond_broadcast(&spool->changed); /* spool_save may be waiting for that */
    if (spool->is_stopping) {
        int64_t left_ns = spool->stop_ns - clock_mono(spool->config.clock);

        timeout_ns = left_ns < timeout_ns ? left_ns : timeout_ns;
    }
    pthread_mutex_unlock(&spool->lock);
    return timeout_ns;
}

static bool send_records(struct spool *spool, size_t n)
{
    int64_t timeout_ns = begin_sending(spool);
    struct spool_batch batch;
    bool is_taken = spool_post_send(spool->post, spool->records, n, timeout_ns, &batch);

    count_post(spool, is_taken, &batch);
    if (is_taken)
        spool->backoff_ns = 0;
    else if (batch.retry_ns)
        come_again(spool, batch.retry_ns);
    else
        back_off(spool);
    tell_post(spool, is_taken, &batch);
    return is_taken;
}

static bool are_old(const struct spool *spool, size_t n)
{
    int64_t oldest = (clock_wall(spool->config.clock) - spool->config.max_age_ns) / NS_PER_SEC;
    size_t n_old = 0;

    while (n_old < n && spool->records[n_old].seconds < oldest)
        n_old++;
    return n_old == n;
}

static void show_retention(struct spool *spool, bool is_paused)
{
    pthread_mutex_lock(&spool->lock);
    spool->stats.is_retention_paused = is_paused;
    pthread_mutex_unlock(&spool->lock);
}

/* Records that could not be delivered, all of them too old by a clock that can be trusted. */
static bool give_up_old(struct spool *spool, size_t n)
{
    bool is_old = !atomic_load(&spool->is_cancelled) && are_old(spool, n);
    bool may_drop = is_old && clock_watch_allows(&spool->watch, spool->config.log);

    show_retention(spool, is_old && clock_watch_is_paused(&spool->watch));
    if (!may_drop)
        return false;
    LOG(spool->config.log, LOG_WARN,
        "records of ended jobs could not be delivered and are dropped: they are too old",
        LOG_INT("records", n));
    drop(spool, n);
    return true;
}

/* True if nothing of it is to be posted again. */
static bool post_records(struct spool *spool, size_t n)
{
    return send_records(spool, n) || give_up_old(spool, n);
}

static bool is_passing(int code)
{
    return code == -EMFILE || code == -ENFILE || code == -ENOMEM;
}

/* A file that can never be read must not keep the others back. */
static void give_up_oldest(struct spool *spool, const struct err *err)
{
    struct spool_disk_stats before, after;

    LOG(spool->config.log, LOG_WARN, "a file of the spool cannot be read and is removed",
        LOG_STR("error", err->text));
    spool_disk_stats(spool->disk, &before);
    spool_disk_remove_oldest(spool->disk);
    spool_disk_stats(spool->disk, &after);
    drop(spool, before.records - after.records);
}

static void post_oldest_file(struct spool *spool)
{
    struct err err = { 0 };
    int n = spool_disk_oldest(spool->disk, &spool->text, spool->records, &err);

    if (is_passing(n)) {
        back_off(spool);
        return;
    }
    if (n < 0)
        give_up_oldest(spool, &err);
    else if ((!n || post_records(spool, (size_t)n)) && spool->disk)
        spool_disk_remove_oldest(spool->disk);
}

/* A copy: the entries may be written to disk and freed meanwhile. Returns how many. */
static size_t copy_kept(struct spool *spool)
{
    size_t n = 0, at = 0;

    buf_reset(&spool->text);
    for (struct link *link = list_first(&spool->kept); link && n < SPOOL_POST_RECORDS;
         link = list_next(&spool->kept, link)) {
        const struct entry *entry = PART_OF(link, struct entry, link);

        if (n && spool->text.n + entry->n > SPOOL_POST_BYTES)
            break;
        buf_put(&spool->text, (struct str){ entry->text, entry->n });
        spool->records[n++] = (struct spool_record){ { NULL, entry->n }, entry->seconds };
    }
    for (size_t i = 0; i < n; at += spool->records[i++].text.n)
        spool->records[i].text.p = spool->text.p + at;
    return n;
}

static void post_kept(struct spool *spool)
{
    size_t n = copy_kept(spool);

    spool->n_kept_sent = n;
    if (post_records(spool, n))
        free_entries(spool, spool->n_kept_sent);
}

static bool has_files(const struct spool *spool)
{
    struct spool_disk_stats stats = { 0 };

    if (spool->disk)
        spool_disk_stats(spool->disk, &stats);
    return stats.bytes > 0;
}

static bool has_something(const struct spool *spool)
{
    return has_files(spool) || list_first(&spool->kept);
}

/* What an earlier agent has left is the oldest. */
static void post_some(struct spool *spool)
{
    if (has_files(spool))
        post_oldest_file(spool);
    else
        post_kept(spool);
    buf_free(&spool->text); /* it may be large, and the next is far */
    buf_init(&spool->text, MOST_SEGMENT_TEXT);
    /* The disk may have room again. */
    if (list_first(&spool->kept))
        keep(spool);
    show_waiting(spool);
}

/* --- the thread --- */

/* Under the lock. */
static bool take_added(struct spool *spool)
{
    struct link *link = list_first(&spool->added);
    bool was_idle = !has_something(spool);

    if (!link)
        return false;
    for (; link; link = list_first(&spool->added))
        list_append(&spool->kept, link);
    /* The nodes of a job that has just ended do not all come at once. */
    if (was_idle && !spool->backoff_ns)
        spool->not_before_ns = clock_mono(spool->config.clock) + part_of(spool->config.retry_ns);
    return true;
}

static bool is_due(const struct spool *spool)
{
    return clock_mono(spool->config.clock) >= spool->not_before_ns;
}

/* Called and left with the lock held, which is not held meanwhile. */
static void keep_for_callers(struct spool *spool)
{
    uint64_t wanted = spool->saves_wanted;

    take_added(spool);
    pthread_mutex_unlock(&spool->lock);
    if (list_first(&spool->kept))
        keep(spool);
    pthread_mutex_lock(&spool->lock);
    spool->saves_done = wanted;
    pthread_cond_broadcast(&spool->changed);
}

static void *save_meanwhile(void *arg)
{
    struct spool *spool = arg;

    pthread_mutex_lock(&spool->lock);
    keep_for_callers(spool);
    spool->is_saving = false;
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
    return NULL;
}

static void join_saver(struct spool *spool)
{
    if (spool->has_saver)
        pthread_join(spool->saver, NULL);
    spool->has_saver = false;
}

/* Under the lock. If the thread is posting: that can take long, in munged or a name service, and
 * cannot always be canceled. On another thread: the caller must not wait for a disk that hangs.
 * False if there is none. */
static bool save_beside_post(struct spool *spool)
{
    struct err err;

    if (!spool->is_sending || spool->is_saving)
        return true;
    join_saver(spool); /* it has nothing left to do */
    spool->has_saver = spool->is_saving =
        thread_start(&spool->saver, "spool-save", save_meanwhile, spool, &err) == 0;
    if (!spool->has_saver)
        LOG(spool->config.log, LOG_ERROR, "what ended jobs used cannot be written to disk now",
            LOG_STR("error", err.text));
    return spool->has_saver;
}

static void work_until_stopped(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    while (!spool->is_stopping) {
        if (list_first(&spool->added) || spool->saves_done < spool->saves_wanted) {
            keep_for_callers(spool);
        } else if (has_something(spool) && is_due(spool)) {
            pthread_mutex_unlock(&spool->lock);
            post_some(spool);
            pthread_mutex_lock(&spool->lock);
        } else if (has_something(spool)) {
            clock_wait(spool->config.clock, &spool->changed, &spool->lock, spool->not_before_ns);
        } else {
            pthread_cond_wait(&spool->changed, &spool->lock);
        }
    }
    pthread_mutex_unlock(&spool->lock);
}

static void say_goodbye(struct spool *spool)
{
    size_t n_lost;

    pthread_mutex_lock(&spool->lock);
    keep_for_callers(spool);
    pthread_mutex_unlock(&spool->lock);
    while (has_something(spool) && !spool->backoff_ns &&
           clock_mono(spool->config.clock) < spool->stop_ns)
        post_some(spool);
    pthread_mutex_lock(&spool->lock);
    n_lost = spool->n_memory;
    pthread_mutex_unlock(&spool->lock);
    if (n_lost)
        LOG(spool->config.log, LOG_WARN, "what some ended jobs used is lost: it was not on disk",
            LOG_INT("records", n_lost));
}

static void *run(void *arg)
{
    struct spool *spool = arg;

    keep(spool);
    work_until_stopped(spool);
    say_goodbye(spool);
    return NULL;
}

/* --- from outside --- */

/* Under the lock. */
static bool has_room(const struct spool *spool, size_t n)
{
    return spool->n_memory < MEMORY_RECORDS && spool->n_memory_bytes + n <= MEMORY_BYTES;
}

static bool add_entry(struct spool *spool, struct entry *entry)
{
    bool is_taken, is_news;

    pthread_mutex_lock(&spool->lock);
    is_taken = has_room(spool, entry->n);
    is_news = !is_taken && !spool->is_full;
    spool->is_full = !is_taken;
    spool->stats.records++;
    if (is_taken) {
        list_append(&spool->added, &entry->link);
        spool->n_memory++;
        spool->n_memory_bytes += entry->n;
        pthread_cond_broadcast(&spool->changed);
    } else {
        spool->stats.dropped++;
    }
    pthread_mutex_unlock(&spool->lock);
    if (is_news)
        LOG(spool->config.log, LOG_WARN,
            "too much of what ended jobs used waits in memory: more is dropped, and counted");
    return is_taken;
}

void spool_add(struct spool *spool, const struct job_use *use, size_t steps_left_out,
               int64_t end_wall_ns)
{
    int64_t end_time = end_wall_ns / NS_PER_SEC;
    struct entry *entry = NULL;
    struct buf text;

    buf_init(&text, FINAL_MAX);
    if (final_put(&text, use, steps_left_out, end_time)) {
        entry = heap_alloc(sizeof(*entry) + text.n);
        entry->seconds = end_time;
        entry->n = text.n;
        memcpy(entry->text, text.p, text.n);
    }
    buf_free(&text);
    if (entry && !add_entry(spool, entry))
        free(entry);
}

static struct spool *spool_free(struct spool *spool)
{
    free_entries(spool, SIZE_MAX);
    spool_disk_close(spool->disk);
    spool_post_free(spool->post);
    free(spool->records);
    free(spool->directory);
    buf_free(&spool->text);
    pthread_cond_destroy(&spool->changed);
    pthread_mutex_destroy(&spool->lock);
    free(spool);
    return NULL;
}

static void copy_config(struct spool *spool, const struct spool_config *config)
{
    spool->config = *config;
    spool->config.directory = spool->config.url = spool->config.cluster = NULL;
    spool->config.token_file = spool->config.munge_socket = spool->config.ca_file = NULL;
    spool->directory = heap_str(str_of(config->directory));
}

int spool_start(const struct spool_config *config, struct spool **ret, struct err *err)
{
    struct spool *spool = heap_alloc(sizeof(*spool));
    const struct spool_post_config post = {
        .url = config->url,
        .token_file = config->token_file,
        .munge_socket = config->munge_socket,
        .ca_file = config->ca_file,
        .cluster = config->cluster,
        .cancelled = &spool->is_cancelled,
        .clock = config->clock,
    };
    int code;

    copy_config(spool, config);
    clock_watch_init(&spool->watch, config->clock, "records of ended jobs");
    list_init(&spool->added);
    list_init(&spool->kept);
    spool->records = heap_array(SPOOL_POST_RECORDS, sizeof(*spool->records));
    buf_init(&spool->text, MOST_SEGMENT_TEXT);
    spool->stats.is_up = true;
    pthread_mutex_init(&spool->lock, NULL);
    clock_cond_init(&spool->changed);
    code = spool_post_new(&post, &spool->post, err);
    if (code == 0)
        code = thread_start(&spool->thread, "spool", run, spool, err);
    if (code < 0)
        spool_free(spool);
    else
        *ret = spool;
    return code;
}

bool spool_save(struct spool *spool, int64_t until_ns)
{
    bool in_time = true, is_saved;
    uint64_t goal;

    if (!spool)
        return true;
    pthread_mutex_lock(&spool->lock);
    goal = ++spool->saves_wanted;
    pthread_cond_broadcast(&spool->changed);
    while (spool->n_memory && spool->saves_done < goal && in_time && save_beside_post(spool))
        in_time = clock_wait(spool->config.clock, &spool->changed, &spool->lock, until_ns);
    is_saved = !spool->n_memory;
    pthread_mutex_unlock(&spool->lock);
    return is_saved;
}

/* A post that is under way may end by itself for a third of the time. */
struct spool *spool_stop(struct spool *spool, int64_t within_ns)
{
    bool in_time = true;

    if (!spool)
        return NULL;
    pthread_mutex_lock(&spool->lock);
    spool->stop_ns = clock_mono(spool->config.clock) + within_ns;
    spool->is_stopping = true;
    pthread_cond_broadcast(&spool->changed);
    while (spool->is_sending && in_time)
        in_time = clock_wait(spool->config.clock, &spool->changed, &spool->lock,
                             spool->stop_ns - within_ns * 2 / 3);
    if (spool->is_sending)
        atomic_store(&spool->is_cancelled, true);
    pthread_mutex_unlock(&spool->lock);
    pthread_join(spool->thread, NULL);
    join_saver(spool);
    return spool_free(spool);
}

void spool_stats(struct spool *spool, struct spool_stats *ret)
{
    pthread_mutex_lock(&spool->lock);
    *ret = spool->stats;
    ret->in_memory = spool->n_memory;
    ret->waiting += spool->n_memory;
    pthread_mutex_unlock(&spool->lock);
}
