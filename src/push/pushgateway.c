/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Pushgateway's README, "API": a PUT takes the place of a whole group, a DELETE removes it. The
 * text goes unpacked: Pushgateways before 1.5 (Debian 11) read no gzip. */
#include "push/pushgateway.h"

#include "base/arena.h"
#include "base/thread.h"
#include "push/gateway.h"

#include <sys/random.h>

static const char content_type[] = "text/plain; version=0.0.4; charset=utf-8";

struct text {
    char *bytes; /* NULL: none */
    size_t n;
};

struct group {
    char *instance, *url;
    struct text waiting;
    bool may_exist;  /* on the Pushgateway */
    bool is_failing; /* which was logged */
};

struct pusher {
    struct push_config config; /* without its texts, which need not last */
    struct gateway gateway;
    char *prefix; /* of the groups' URLs */
    pthread_t thread;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t changed;
    struct group groups[PUSH_GROUPS];
    size_t n_groups, next; /* the one whose turn it is */
    int64_t backoff_ns;    /* 0: the last request did not fail */
    int64_t not_before_ns; /* its end */
    bool is_sending, is_stopping, is_full;
    int64_t stop_ns, cancel_ns; /* of all, and of a push that is under way */
    atomic_bool is_cancelled;
    struct push_stats stats;
};

static void text_clear(struct text *text)
{
    free(text->bytes);
    *text = (struct text){ 0 };
}

static char *url_of(const char *base, const char *path, const char *label, const char *value)
{
    struct buf url;

    buf_init(&url, strlen(base) + 4 * strlen(value) + 100);
    buf_printf(&url, "%s%s", base, path);
    gateway_put_label(&url, label, str_of(value));
    return url.p;
}

enum outcome {
    PUSH_TAKEN = GATEWAY_TAKEN,
    PUSH_REFUSED = GATEWAY_REFUSED,
    PUSH_FAILED = GATEWAY_FAILED,
    PUSH_CANCELLED,
};

static int64_t ms_of(int64_t ns)
{
    return (ns + NS_PER_MS - 1) / NS_PER_MS;
}

static enum outcome send_text(struct pusher *pusher, const char *url, const struct text *text,
                              struct gateway_words *ret_words, struct err *err)
{
    struct fetch fetch = {
        .url = url,
        .method = "PUT",
        .body = { text->bytes, text->n },
        .content_type = content_type,
        .timeout_ms = ms_of(pusher->config.timeout_ns),
        .cancelled = &pusher->is_cancelled,
    };
    long status = 0;
    int code = gateway_request(&pusher->gateway, &fetch, ret_words, &status, err);

    if (code == -ECANCELED)
        return PUSH_CANCELLED;
    return code < 0 ? PUSH_FAILED : (enum outcome)gateway_judge(&pusher->gateway, status, err);
}

/* Twice as long after each failure, and up to a quarter shorter, so that the nodes of a cluster do
 * not come back all at once. */
static void back_off(struct pusher *pusher)
{
    int64_t last_ns = pusher->backoff_ns, most_ns = pusher->config.max_backoff_ns;
    int64_t next_ns = last_ns ? last_ns * 2 : pusher->config.retry_ns;
    uint32_t random;

    if (next_ns > most_ns)
        next_ns = most_ns;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = 0;
    pusher->backoff_ns = next_ns;
    pusher->not_before_ns =
        clock_mono(pusher->config.clock) + next_ns - next_ns / 4 * (random % 1024) / 1024;
}

static void settle_text(struct pusher *pusher, struct group *group, enum outcome outcome,
                        struct text *text)
{
    if (outcome == PUSH_FAILED && !group->waiting.bytes) {
        group->waiting = *text;
        return;
    }
    if (outcome == PUSH_FAILED)
        pusher->stats.replaced++;
    text_clear(text);
}

/* True if the group begins or ends to fail by this. */
static bool settle(struct pusher *pusher, struct group *group, enum outcome outcome,
                   int64_t took_ns)
{
    struct push_stats *stats = &pusher->stats;
    bool was_failing = group->is_failing;

    if (outcome == PUSH_CANCELLED)
        return false;
    group->is_failing = outcome != PUSH_TAKEN;
    stats->is_up = outcome == PUSH_TAKEN;
    stats->last_seconds = (double)took_ns / NS_PER_SEC;
    if (outcome == PUSH_TAKEN) {
        stats->pushes++;
        stats->last_success_wall_ns = clock_wall(pusher->config.clock);
    } else {
        stats->failures++;
    }
    if (outcome == PUSH_FAILED)
        back_off(pusher);
    else
        pusher->backoff_ns = 0;
    return was_failing != group->is_failing;
}

static void tell(const struct pusher *pusher, const struct group *group, enum outcome outcome,
                 const struct err *err, const struct gateway_words *words)
{
    const struct log_field fields[] = {
        LOG_STR("instance", group->instance),
        LOG_STR("err", err->text),
        LOG_VIEW("answer", str_trim((struct str){ words->text, words->n })),
    };

    if (outcome == PUSH_TAKEN)
        log_write(pusher->config.log, LOG_INFO, "the Pushgateway takes what is pushed", fields, 1);
    else
        log_write(pusher->config.log, LOG_WARN,
                  "cannot push to the Pushgateway; the next line about it will say that it works",
                  fields, words->n ? 3 : 2);
}

/* Called and left with the lock held, which is not held during the request. */
static void push(struct pusher *pusher, struct group *group)
{
    const struct clock *clock = pusher->config.clock;
    struct text text = group->waiting;
    struct gateway_words words;
    struct err err = { 0 };
    enum outcome outcome;
    int64_t begin_ns;
    bool is_news;

    group->waiting = (struct text){ 0 };
    group->may_exist = true;
    pusher->is_sending = true;
    pthread_mutex_unlock(&pusher->lock);
    begin_ns = clock_mono(clock);
    outcome = send_text(pusher, group->url, &text, &words, &err);
    pthread_mutex_lock(&pusher->lock);
    pusher->is_sending = false;
    is_news = settle(pusher, group, outcome, clock_mono(clock) - begin_ns);
    settle_text(pusher, group, outcome, &text);
    pthread_cond_broadcast(&pusher->changed);
    if (is_news)
        tell(pusher, group, outcome, &err, &words);
}

static struct group *find_waiting(struct pusher *pusher)
{
    for (size_t i = 0; i < pusher->n_groups; i++) {
        size_t at = (pusher->next + i) % pusher->n_groups;

        if (pusher->groups[at].waiting.bytes) {
            pusher->next = at + 1;
            return &pusher->groups[at];
        }
    }
    return NULL;
}

static bool is_in_backoff(const struct pusher *pusher)
{
    return pusher->backoff_ns && clock_mono(pusher->config.clock) < pusher->not_before_ns;
}

static void push_until_stopped(struct pusher *pusher)
{
    struct group *group;

    pthread_mutex_lock(&pusher->lock);
    while (!pusher->is_stopping) {
        if (is_in_backoff(pusher))
            clock_wait(pusher->config.clock, &pusher->changed, &pusher->lock,
                       pusher->not_before_ns);
        else if ((group = find_waiting(pusher)))
            push(pusher, group);
        else
            pthread_cond_wait(&pusher->changed, &pusher->lock);
    }
    pthread_mutex_unlock(&pusher->lock);
}

static int delete_group(struct pusher *pusher, const char *url, struct err *err)
{
    int64_t left_ns = pusher->stop_ns - clock_mono(pusher->config.clock);
    int64_t timeout_ns = pusher->config.timeout_ns;
    struct fetch fetch = {
        .url = url,
        .method = "DELETE",
        .timeout_ms = (left_ns < timeout_ns ? left_ns : timeout_ns) / NS_PER_MS,
    };
    struct gateway_words words;
    long status = 0;
    int code = gateway_request(&pusher->gateway, &fetch, &words, &status, err);

    if (code == 0 && gateway_judge(&pusher->gateway, status, err) != GATEWAY_TAKEN)
        code = -EREMOTEIO;
    return code;
}

/* The first that fails is the last that is tried: the next would fail in the same way. */
static void delete_groups(struct pusher *pusher)
{
    struct err err = { 0 };
    int64_t n_left = 0;

    for (size_t i = 0; i < pusher->n_groups; i++)
        if (pusher->groups[i].may_exist &&
            (n_left || delete_group(pusher, pusher->groups[i].url, &err) < 0))
            n_left++;
    if (n_left)
        LOG(pusher->config.log, LOG_WARN,
            "what was pushed stays on the Pushgateway, as if it were new",
            LOG_INT("groups", n_left), LOG_STR("err", err.text));
}

static void *run(void *arg)
{
    struct pusher *pusher = arg;

    push_until_stopped(pusher);
    delete_groups(pusher);
    return NULL;
}

static struct pusher *pusher_free(struct pusher *pusher)
{
    for (size_t i = 0; i < pusher->n_groups; i++) {
        free(pusher->groups[i].instance);
        free(pusher->groups[i].url);
        text_clear(&pusher->groups[i].waiting);
    }
    gateway_close(&pusher->gateway);
    free(pusher->prefix);
    pthread_cond_destroy(&pusher->changed);
    pthread_mutex_destroy(&pusher->lock);
    free(pusher);
    return NULL;
}

static int prepare(struct pusher *pusher, const struct push_config *config, struct err *err)
{
    int code;

    if (!config->job[0])
        return err_set(err, EINVAL, "a Pushgateway takes no empty job name");
    if (strlen(config->job) > PUSH_INSTANCE)
        return err_set(err, EINVAL, "the job's name is too long for a Pushgateway");
    code = gateway_open(config->url, config->password_file, config->ca_file, &pusher->gateway, err);
    if (code < 0)
        return code;
    pusher->prefix = url_of(pusher->gateway.base.url, "/metrics", "job", config->job);
    /* Without TLS a new connection costs little, and one that is kept the Pushgateway some
     * kilobytes for each node. */
    if (str_starts(str_of(pusher->gateway.base.url), STR("https:")))
        pusher->gateway.line = fetch_line_new();
    return 0;
}

int pusher_start(const struct push_config *config, struct pusher **ret, struct err *err)
{
    struct pusher *pusher = heap_alloc(sizeof(*pusher));
    int code;

    pusher->config = *config;
    pusher->config.url = pusher->config.job = NULL;
    pusher->config.password_file = pusher->config.ca_file = NULL;
    pthread_mutex_init(&pusher->lock, NULL);
    clock_cond_init(&pusher->changed);
    code = prepare(pusher, config, err);
    if (code == 0)
        code = thread_start(&pusher->thread, "push", run, pusher, err);
    if (code < 0) {
        pusher_free(pusher);
        return code;
    }
    *ret = pusher;
    return 0;
}

static struct group *find_group(struct pusher *pusher, const char *instance)
{
    struct group *group;

    for (size_t i = 0; i < pusher->n_groups; i++)
        if (strcmp(pusher->groups[i].instance, instance) == 0)
            return &pusher->groups[i];
    if (pusher->n_groups == PUSH_GROUPS || strlen(instance) > PUSH_INSTANCE)
        return NULL;
    group = &pusher->groups[pusher->n_groups++];
    group->instance = heap_str(str_of(instance));
    group->url = url_of(pusher->prefix, "", "instance", instance);
    return group;
}

/* True if this has not been told before. */
static bool refuse_text(struct pusher *pusher, struct group *group)
{
    bool *is_told = group ? &group->is_failing : &pusher->is_full;
    bool is_news = !*is_told;

    *is_told = true;
    pusher->stats.refused++;
    return is_news;
}

static bool take_text(struct pusher *pusher, const char *instance, struct text *text)
{
    struct group *group;

    if (pusher->is_stopping)
        return false; /* the thread deletes the groups */
    group = find_group(pusher, instance);
    if (!group || !text->bytes)
        return refuse_text(pusher, group);
    if (group->waiting.bytes)
        pusher->stats.replaced++;
    text_clear(&group->waiting);
    group->waiting = *text;
    *text = (struct text){ 0 };
    pthread_cond_broadcast(&pusher->changed);
    return false;
}

void pusher_put(struct pusher *pusher, const char *instance, struct str text)
{
    struct text copy = { 0 };
    bool is_refused;

    if (text.n <= pusher->config.max_text)
        copy = (struct text){ heap_array(text.n, 1), text.n };
    if (text.n && copy.bytes)
        memcpy(copy.bytes, text.p, text.n);
    pthread_mutex_lock(&pusher->lock);
    is_refused = take_text(pusher, instance, &copy);
    pthread_mutex_unlock(&pusher->lock);
    text_clear(&copy);
    if (is_refused)
        LOG(pusher->config.log, LOG_WARN,
            "not pushed: too large, or the instance is one too many; this is told once",
            LOG_STR("instance", instance), LOG_INT("bytes", text.n),
            LOG_INT("most_bytes", pusher->config.max_text), LOG_INT("most_instances", PUSH_GROUPS));
}

/* A push that is under way may end by itself for a third of the time: after one that is cut off,
 * the Pushgateway could still do it, behind the DELETE. */
static void end_sending(struct pusher *pusher, int64_t until_ns)
{
    bool in_time = true;

    while (pusher->is_sending && in_time)
        in_time = clock_wait(pusher->config.clock, &pusher->changed, &pusher->lock, until_ns);
    atomic_store(&pusher->is_cancelled, true);
}

void pusher_end(struct pusher *pusher, int64_t within_ns)
{
    if (!pusher)
        return;
    pthread_mutex_lock(&pusher->lock);
    if (!pusher->is_stopping) {
        pusher->stop_ns = clock_mono(pusher->config.clock) + within_ns;
        pusher->cancel_ns = pusher->stop_ns - within_ns * 2 / 3;
        pusher->is_stopping = true;
        pthread_cond_broadcast(&pusher->changed);
    }
    pthread_mutex_unlock(&pusher->lock);
}

struct pusher *pusher_stop(struct pusher *pusher, int64_t within_ns)
{
    if (!pusher)
        return NULL;
    pusher_end(pusher, within_ns);
    pthread_mutex_lock(&pusher->lock);
    end_sending(pusher, pusher->cancel_ns);
    pthread_mutex_unlock(&pusher->lock);
    pthread_join(pusher->thread, NULL);
    return pusher_free(pusher);
}

void pusher_stats(struct pusher *pusher, struct push_stats *ret)
{
    pthread_mutex_lock(&pusher->lock);
    *ret = pusher->stats;
    pthread_mutex_unlock(&pusher->lock);
}
