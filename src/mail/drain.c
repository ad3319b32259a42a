/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends the mails in the spool, with retries and rate limits. */
#include "mail/drain.h"

#include "mail/compose.h"
#include "mail/outage.h"
#include "mail/queue.h"
#include "mail/rate.h"

#include <pthread.h>

enum {
    LOOK_MS = 500, /* from one look into the spool to the next */
    SEND_TIMEOUT_MS = 60 * 1000,
    /* Seconds until an entry is tried again: half its age, within these. */
    SHORTEST_PAUSE = 60,
    LONGEST_PAUSE = 3600,
    /* Likewise until accounting is asked again: a quarter of its age. */
    SHORTEST_WAIT = 3,
    LONGEST_WAIT = 20,
    /* What is old is given up only if it could have been sent since. */
    GIVE_UP_OUTAGE = 3600,
    MOST_REFUSED = 5, /* in a row, to whomever: then it is the server */
    MOST_WHOS = 10000,
};

struct drain {
    const struct drain_config *config;
    struct queue *queue;
    struct rate rate;
    size_t n_whos_kept; /* when they were last read anew */
    int64_t look_time;  /* of the last */
    struct drain_result result;
    struct outage outage;
    const struct queue_item *suspect; /* while all are tried: the server failed at it; or NULL */
    unsigned n_refused;
    struct buf document, message;
};

static int64_t now_of(const struct drain *drain)
{
    return clock_wall(drain->config->clock) / NS_PER_SEC;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static bool is_stopped(const struct drain *drain)
{
    return atomic_load(drain->config->stopped);
}

/* --- what is in the spool --- */

static int load_summary(struct drain *drain, struct str document, struct queue_item *item,
                        struct err *err)
{
    struct arena arena = { 0 };
    struct summary summary;
    int code = summary_read(document, &arena, &summary, err);

    if (code == 0) {
        item->written_time = summary.written_time;
        item->who = rate_who(&drain->rate, summary.to);
        /* In case that whoever wrote it could not do so any more. */
        for (size_t i = 0; i < summary.n_files; i++)
            queue_remove_entry(drain->queue, summary.files[i]);
    }
    arena_clear(&arena);
    return code;
}

static int load_entry(struct drain *drain, struct str document, struct queue_item *item,
                      struct err *err)
{
    struct arena arena = { 0 };
    struct mail_entry entry;
    struct buf address;
    int code = mail_entry_read(document, &arena, &entry, err);

    buf_init(&address, 2 * MAIL_ADDRESS_MAX);
    if (code == 0)
        code = message_address(&address, entry.to, drain->config->domain, err);
    if (code == 0) {
        item->written_time = entry.written_time;
        item->who = rate_who(&drain->rate, buf_str(&address));
    }
    buf_free(&address);
    arena_clear(&arena);
    return code;
}

static int load(void *ctx, struct str document, struct queue_item *item, struct err *err)
{
    struct drain *drain = ctx;
    int64_t now = now_of(drain);
    int code = (item->is_summary ? load_summary : load_entry)(drain, document, item, err);

    /* A clock that was wrong when it was written or postponed must not keep it here. */
    item->written_time = clamp(item->written_time, 0, now);
    if (item->next_time > now + LONGEST_PAUSE)
        item->next_time = now;
    return code;
}

/* All that is known of addresses is in the spool too: what nobody needs any more goes when it is
 * read anew. So do moments of a clock that has been put back. */
static int look(struct drain *drain, struct err *err)
{
    int64_t now = now_of(drain);
    bool is_anew = (drain->rate.n >= MOST_WHOS && drain->rate.n >= 2 * drain->n_whos_kept) ||
                   now < drain->look_time;
    int code;

    drain->look_time = now;
    if (is_anew) {
        rate_close(&drain->rate);
        rate_open(&drain->rate, drain->queue->directory, drain->config->mails_per_hour, now);
        queue_forget(drain->queue);
    }
    code = queue_scan(drain->queue, load, drain, err);
    if (is_anew)
        drain->n_whos_kept = drain->rate.n;
    return code;
}

static void count_waiting(struct drain *drain)
{
    for (size_t i = 0; i < drain->rate.n; i++) {
        struct rate_who *who = &drain->rate.whos[i];

        who->n_waiting = 0;
        who->has_summary = false;
        who->oldest_time = INT64_MAX;
    }
    for (size_t i = 0; i < drain->queue->n; i++) {
        const struct queue_item *item = &drain->queue->items[i];
        struct rate_who *who;

        if (!queue_is_waiting(item))
            continue;
        who = &drain->rate.whos[item->who];
        if (item->is_summary) {
            who->has_summary = true;
            continue;
        }
        who->n_waiting++;
        if (item->written_time < who->oldest_time)
            who->oldest_time = item->written_time;
    }
}

/* --- what could not be sent --- */

static void give_up(struct drain *drain, struct queue_item *item, const char *why)
{
    LOG(drain->config->log, LOG_ERROR, "a mail is given up and moved to given-up",
        LOG_VIEW("to", drain->rate.whos[item->who].address), LOG_STR("file", item->name),
        LOG_STR("err", why));
    queue_set_aside(drain->queue, item, QUEUE_GIVEN_UP);
    drain->result.given_up++;
}

static bool is_old(const struct drain *drain, const struct queue_item *item)
{
    return now_of(drain) - item->written_time >= drain->config->give_up_ns / NS_PER_SEC;
}

/* One that has waited for long because nobody sent it is tried twice. */
static void postpone(struct drain *drain, struct queue_item *item, const struct err *err)
{
    int64_t now = now_of(drain);
    int64_t next = now + clamp((now - item->written_time) / 2, SHORTEST_PAUSE, LONGEST_PAUSE);

    if (item->was_tried && is_old(drain, item)) {
        give_up(drain, item, err->text);
        return;
    }
    LOG(drain->config->log, LOG_WARN, "a mail was not taken and will be tried again",
        LOG_VIEW("to", drain->rate.whos[item->who].address), LOG_INT("seconds", next - now),
        LOG_STR("err", err->text));
    queue_postpone(drain->queue, item, next);
    drain->rate.whos[item->who].pause_until = next;
}

/* At which the server failed last; or NULL. */
static struct queue_item *find_suspect(const struct drain *drain)
{
    struct str id = str_of(drain->outage.at);

    for (size_t i = 0; id.n && i < drain->queue->n; i++)
        if (queue_is_waiting(&drain->queue->items[i]) &&
            str_eq(queue_id(&drain->queue->items[i]), id))
            return &drain->queue->items[i];
    return NULL;
}

static void end_outage(struct drain *drain)
{
    drain->n_refused = 0;
    if (outage_end(&drain->outage))
        LOG(drain->config->log, LOG_INFO, "mail goes again", LOG_INT("waiting", drain->queue->n));
}

/* One failure of the server is everybody's: nothing else is tried for a while. */
static void pause_all(struct drain *drain, const struct queue_item *item, const struct err *err)
{
    int64_t seconds = outage_note(&drain->outage, queue_id(item));

    drain->n_refused = 0;
    LOG(drain->config->log, LOG_ERROR, "no mail can be sent", LOG_INT("waiting", drain->queue->n),
        LOG_INT("retry_seconds", seconds), LOG_STR("err", err->text));
    if (now_of(drain) - drain->outage.since < GIVE_UP_OUTAGE)
        return;
    for (size_t i = 0; i < drain->queue->n; i++)
        if (queue_is_waiting(&drain->queue->items[i]) && is_old(drain, &drain->queue->items[i]))
            give_up(drain, &drain->queue->items[i], err->text);
}

/* --- one mail --- */

static void note_mail(struct drain *drain, const struct queue_item *item)
{
    struct err err;

    if (rate_note(&drain->rate, item->who, item->is_summary, now_of(drain), &err) < 0)
        LOG(drain->config->log, LOG_WARN, "mails are not counted", LOG_STR("err", err.text));
}

static void take_outcome(struct drain *drain, struct queue_item *item, int code,
                         const struct err *err)
{
    if (code == 0) {
        end_outage(drain);
        note_mail(drain, item);
        LOG(drain->config->log, LOG_DEBUG, "mail sent",
            LOG_VIEW("to", drain->rate.whos[item->who].address), LOG_STR("file", item->name));
        drain->result.sent += !item->is_summary;
        queue_remove(drain->queue, item);
    } else if (code == -EPERM) {
        end_outage(drain);
        note_mail(drain, item);
        give_up(drain, item, err->text);
    } else if (code == -EAGAIN && ++drain->n_refused < MOST_REFUSED) {
        postpone(drain, item, err);
    } else if (code == -EAGAIN) {
        postpone(drain, item, err);
        pause_all(drain, item, err);
    } else if (code != -ECANCELED && item == drain->suspect && !drain->outage.since) {
        postpone(drain, item, err); /* others were taken since it failed */
    } else if (code != -ECANCELED) {
        pause_all(drain, item, err);
    }
}

static int compose(struct drain *drain, const struct queue_item *item, struct arena *arena,
                   struct err *err)
{
    const struct compose compose = {
        .config = drain->config,
        .address = drain->rate.whos[item->who].address,
        .id = queue_id(item),
        .now = now_of(drain),
        .arena = arena,
    };
    struct mail_entry entry;
    struct summary summary;
    int code;

    if (item->is_summary) {
        code = summary_read(buf_str(&drain->document), arena, &summary, err);
        return code < 0 ? code : compose_summary(&compose, &summary, &drain->message, err);
    }
    code = mail_entry_read(buf_str(&drain->document), arena, &entry, err);
    return code < 0 ? code : compose_entry(&compose, &entry, &drain->message, err);
}

/* False: there is nothing to send now. */
static bool make_mail(struct drain *drain, struct queue_item *item)
{
    struct arena arena = { 0 };
    int64_t now = now_of(drain);
    struct err err = { 0 };
    int code;

    buf_reset(&drain->document);
    buf_reset(&drain->message);
    code = queue_read(drain->queue, item, &drain->document, &err);
    if (code == -ENOENT) {
        item->name[0] = '\0';
        return false;
    }
    if (code == 0)
        code = compose(drain, item, &arena, &err);
    arena_clear(&arena);
    if (code == -EAGAIN) {
        item->next_time = now + clamp((now - item->written_time) / 4, SHORTEST_WAIT, LONGEST_WAIT);
    } else if (code < 0) {
        LOG(drain->config->log, LOG_WARN,
            "no mail could be made of an entry, which was moved to bad",
            LOG_STR("file", item->name), LOG_STR("err", err.text));
        queue_set_aside(drain->queue, item, QUEUE_BAD);
    }
    return code == 0;
}

static void send_mail(struct drain *drain, struct queue_item *item)
{
    const struct drain_config *config = drain->config;
    struct err err = { 0 };
    int code;

    if (!make_mail(drain, item))
        return;
    code = post_send(config->post, config->from, drain->rate.whos[item->who].address,
                     buf_str(&drain->message), SEND_TIMEOUT_MS, config->stopped, &err);
    take_outcome(drain, item, code, &err);
}

static bool is_due(const struct drain *drain, const struct queue_item *item, int64_t now)
{
    if (!queue_is_waiting(item) || item->next_time > now ||
        drain->rate.whos[item->who].pause_until > now)
        return false;
    return item->is_summary || rate_next(&drain->rate, item->who, now) <= now;
}

static bool can_send(const struct drain *drain, int64_t now)
{
    return !is_stopped(drain) && !outage_is_paused(&drain->outage) &&
           rate_next_of_all(&drain->rate, now) <= now;
}

/* Whether it was looked at. */
static bool send_if_due(struct drain *drain, struct queue_item *item)
{
    int64_t now = now_of(drain);

    if (!can_send(drain, now) || !is_due(drain, item, now))
        return false;
    send_mail(drain, item);
    return true;
}

/* Returns how many were looked at. The suspect keeps no other waiting. */
static size_t send_due(struct drain *drain)
{
    struct queue_item *suspect = find_suspect(drain);
    size_t n = 0;

    drain->suspect = suspect;
    for (size_t i = 0; i < drain->queue->n && can_send(drain, now_of(drain)); i++)
        if (&drain->queue->items[i] != suspect)
            n += send_if_due(drain, &drain->queue->items[i]);
    return suspect ? n + send_if_due(drain, suspect) : n;
}

/* --- many mails --- */

static bool add_to_summary(struct drain *drain, struct summary_maker *maker,
                           const struct queue_item *item)
{
    struct arena arena = { 0 };
    struct mail_entry entry;
    struct err err;
    bool ok;

    buf_reset(&drain->document);
    ok = queue_read(drain->queue, item, &drain->document, &err) == 0 &&
         mail_entry_read(buf_str(&drain->document), &arena, &entry, &err) == 0;
    if (ok)
        summary_add(maker, item->name, &entry);
    arena_clear(&arena);
    return ok;
}

static int write_summary(struct drain *drain, struct summary_maker *maker, struct str address,
                         struct err *err)
{
    bool is_empty = !maker->n;
    struct buf document;
    int code;

    buf_init(&document, QUEUE_SUMMARY_MAX);
    summary_end(maker, address, now_of(drain), &document);
    code = is_empty        ? err_set(err, ENOENT, "none of them can be read")
           : document.over ? err_set(err, EFBIG, "it would be too large")
                           : queue_add_summary(drain->queue, buf_str(&document), err);
    buf_free(&document);
    return code;
}

/* Whatever happens in between: once it is written it stands for all that it names. */
static void summarise(struct drain *drain, size_t who)
{
    struct queue *queue = drain->queue;
    struct queue_item **merged = heap_array(queue->n, sizeof(struct queue_item *));
    struct summary_maker maker;
    struct err err = { 0 };
    size_t n = 0;

    summary_begin(&maker);
    for (size_t i = 0; i < queue->n; i++) {
        struct queue_item *item = &queue->items[i];

        if (queue_is_waiting(item) && item->who == who && !item->is_summary &&
            add_to_summary(drain, &maker, item))
            merged[n++] = item;
    }
    if (write_summary(drain, &maker, drain->rate.whos[who].address, &err) == 0) {
        for (size_t i = 0; i < n; i++)
            queue_remove(queue, merged[i]);
        drain->result.summarised += n;
        LOG(drain->config->log, LOG_INFO, "mails become one",
            LOG_VIEW("to", drain->rate.whos[who].address), LOG_INT("mails", n));
    } else {
        drain->rate.whos[who].summary_time = now_of(drain); /* not again at once */
        LOG(drain->config->log, LOG_ERROR, "no summary of mails could be written",
            LOG_STR("err", err.text));
    }
    free(merged);
}

static bool is_summary_due(const struct drain *drain, size_t i, int64_t now)
{
    const struct rate_who *who = &drain->rate.whos[i];
    int64_t since = who->summary_time > who->oldest_time ? who->summary_time : who->oldest_time;

    return who->n_waiting && !who->has_summary && rate_next(&drain->rate, i, now) > now &&
           since <= now - RATE_SUMMARY_SECONDS;
}

static size_t summarise_due(struct drain *drain)
{
    int64_t now = now_of(drain);
    size_t n = 0;

    count_waiting(drain);
    for (size_t i = 0; i < drain->rate.n && !is_stopped(drain); i++)
        if (is_summary_due(drain, i, now)) {
            summarise(drain, i);
            n++;
        }
    return n;
}

/* --- all of it --- */

static void wait_a_moment(const struct drain *drain)
{
    const struct clock *clock = drain->config->clock;
    int64_t until = clock_mono(clock) + LOOK_MS * NS_PER_MS;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t nobody;

    clock_cond_init(&nobody);
    pthread_mutex_lock(&lock);
    while (clock_wait(clock, &nobody, &lock, until) && !is_stopped(drain))
        continue;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&nobody);
}

static int run(struct drain *drain, bool follow, struct err *err)
{
    int code = 0;

    while (code == 0 && !is_stopped(drain)) {
        size_t n_done;

        code = look(drain, err);
        if (code < 0)
            break;
        n_done = send_due(drain) + summarise_due(drain);
        if (!follow && (!n_done || outage_is_paused(&drain->outage)))
            break;
        if (follow)
            wait_a_moment(drain);
    }
    return code;
}

static uint64_t count_left(const struct drain *drain)
{
    uint64_t n = 0;

    for (size_t i = 0; i < drain->queue->n; i++)
        n += queue_is_waiting(&drain->queue->items[i]) && !drain->queue->items[i].is_summary;
    return n;
}

static int check_settings(const struct drain_config *config, struct err *err)
{
    struct buf address;
    int code = post_settings_check(config->post, err);

    buf_init(&address, 2 * MAIL_ADDRESS_MAX);
    if (code == 0 && message_address(&address, config->from, STR(""), err) < 0)
        code = err_prefix(err, "the sender of mails");
    buf_reset(&address);
    if (code == 0 && message_address(&address, STR("user"), config->domain, err) < 0)
        code = err_prefix(err, "the domain of users");
    buf_free(&address);
    return code;
}

int drain_run(const struct drain_config *config, bool follow, struct drain_result *ret,
              struct err *err)
{
    struct drain drain = { .config = config };
    int code = check_settings(config, err);

    *ret = (struct drain_result){ 0 };
    if (code == 0)
        code = queue_open(config->directory, config->log, &drain.queue, err);
    if (code < 0)
        return code;
    rate_open(&drain.rate, drain.queue->directory, config->mails_per_hour, now_of(&drain));
    outage_open(&drain.outage, drain.queue->directory, config->clock);
    buf_init(&drain.document, QUEUE_SUMMARY_MAX);
    buf_init(&drain.message, COMPOSE_MAX);
    code = run(&drain, follow, err);
    drain.result.left = count_left(&drain);
    *ret = drain.result;
    buf_free(&drain.document);
    buf_free(&drain.message);
    rate_close(&drain.rate);
    queue_close(drain.queue);
    return code;
}
