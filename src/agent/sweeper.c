/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that deletes the groups of ended steps from a Pushgateway. */
#include "agent/sweeper.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/thread.h"
#include "push/sweep.h"

#include <sys/random.h>

enum {
    MOST_LIST_BYTES = 64 << 20,
    MOST_LISTED = 4096, /* groups of this host; more are found the next time */
    LIST_TIMEOUTS = 6,  /* that reading the list may take */
    LIST_AFTER = 1,     /* rounds after the start, and up to LIST_SPREAD more: all nodes may have
                         * started at once */
    LIST_SPREAD = 2,
};

static const int64_t longest_pause_ns = 300 * NS_PER_SEC;

struct watched {
    pid_t pid;
    uint64_t start_ticks;
    struct sweep_group group;
    bool has_ended; /* found in an earlier round: what it was still sending has arrived */
};

struct sweeper {
    struct sweeper_config config; /* its first three texts are not used */
    struct gateway gateway;
    struct proc *proc;
    pthread_t thread;

    /* the thread's own; monotonic times */
    struct watched *steps;
    size_t n_steps, n_steps_room;
    char names[SWEEPER_NAMES][SWEEP_NODE];
    size_t n_names;
    bool wants_list, is_failing;
    bool is_blind; /* other users' processes are hidden: whoever has pushed seems to have ended */
    int64_t list_at, not_before, pause_ns;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t changed;
    bool is_stopping;
    struct watched *news; /* to be added to the steps */
    size_t n_news, n_news_room;
    bool has_missed_news;
    struct sweeper_stats stats;

    atomic_bool is_cancelled;
};

static int64_t now(const struct sweeper *sweeper)
{
    return clock_mono(sweeper->config.clock);
}

/* Never 0: that time would be up before it has begun. */
static int64_t ms_of(int64_t ns)
{
    return (ns + NS_PER_MS - 1) / NS_PER_MS;
}

/* From 0 up to so much. */
static int64_t random_part(int64_t ns)
{
    uint32_t random;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = UINT32_MAX / 2;
    return (int64_t)((double)ns * random / UINT32_MAX);
}

static bool is_our_name(const struct sweeper *sweeper, const char *name)
{
    for (size_t i = 0; i < sweeper->n_names; i++)
        if (strcmp(sweeper->names[i], name) == 0)
            return true;
    return false;
}

/* Under a name that is new there may be groups from before. */
static void add_name(struct sweeper *sweeper, const char *name)
{
    if (is_our_name(sweeper, name) || sweeper->n_names == SWEEPER_NAMES)
        return;
    snprintf(sweeper->names[sweeper->n_names++], sizeof(sweeper->names[0]), "%s", name);
    sweeper->wants_list = true;
}

/* What has ended and could not be deleted makes room; the list will tell. */
static bool make_room(struct sweeper *sweeper)
{
    for (size_t i = 0; i < sweeper->n_steps; i++)
        if (sweeper->steps[i].has_ended) {
            sweeper->steps[i] = sweeper->steps[--sweeper->n_steps];
            return true;
        }
    return false;
}

static bool is_watched(const struct sweeper *sweeper, const struct watched *step)
{
    for (size_t i = 0; i < sweeper->n_steps; i++)
        if (sweeper->steps[i].pid == step->pid &&
            sweeper->steps[i].start_ticks == step->start_ticks)
            return true;
    return false;
}

/* The sampler may come upon the same one again. */
static void add_step(struct sweeper *sweeper, const struct watched *step)
{
    if (is_watched(sweeper, step))
        return;
    add_name(sweeper, step->group.node);
    if (sweeper->n_steps == SWEEPER_STEPS) {
        sweeper->wants_list = true;
        if (!make_room(sweeper))
            return;
    }
    sweeper->steps = heap_grow(sweeper->steps, sweeper->n_steps, &sweeper->n_steps_room,
                               sizeof(*sweeper->steps));
    sweeper->steps[sweeper->n_steps++] = *step;
}

static void take_news(struct sweeper *sweeper)
{
    struct watched *news;
    size_t n;

    pthread_mutex_lock(&sweeper->lock);
    news = sweeper->news;
    n = sweeper->n_news;
    sweeper->wants_list |= sweeper->has_missed_news;
    sweeper->news = NULL;
    sweeper->n_news = sweeper->n_news_room = 0;
    sweeper->has_missed_news = false;
    pthread_mutex_unlock(&sweeper->lock);
    for (size_t i = 0; i < n; i++)
        add_step(sweeper, &news[i]);
    free(news);
}

static void count(struct sweeper *sweeper, uint64_t *counter)
{
    pthread_mutex_lock(&sweeper->lock);
    ++*counter;
    pthread_mutex_unlock(&sweeper->lock);
}

static void succeeded(struct sweeper *sweeper)
{
    sweeper->pause_ns = 0;
    if (sweeper->is_failing)
        LOG(sweeper->config.log, LOG_INFO,
            "what steps have left on the Pushgateway is deleted again");
    sweeper->is_failing = false;
}

static void failed(struct sweeper *sweeper, const struct err *err)
{
    if (err->code == ECANCELED)
        return;
    count(sweeper, &sweeper->stats.failures);
    sweeper->pause_ns = sweeper->pause_ns ? 2 * sweeper->pause_ns : sweeper->config.round_ns;
    if (sweeper->pause_ns > longest_pause_ns)
        sweeper->pause_ns = longest_pause_ns;
    sweeper->not_before = now(sweeper) + sweeper->pause_ns - random_part(sweeper->pause_ns / 4);
    if (!sweeper->is_failing)
        LOG(sweeper->config.log, LOG_WARN,
            "what steps have left on the Pushgateway cannot be deleted; the next line about it "
            "will say that it works",
            LOG_STR("error", err->text));
    sweeper->is_failing = true;
}

static bool delete_group(struct sweeper *sweeper, const struct sweep_group *group)
{
    const struct sweep_limits limits = {
        .timeout_ms = ms_of(sweeper->config.timeout_ns),
        .cancelled = &sweeper->is_cancelled,
    };
    struct err err = { 0 };

    if (sweep_delete(&sweeper->gateway, group, &limits, &err) < 0) {
        failed(sweeper, &err);
        return false;
    }
    count(sweeper, &sweeper->stats.swept);
    succeeded(sweeper);
    return true;
}

static bool lives(const struct sweeper *sweeper, const struct watched *step)
{
    struct proc_stat stat;

    return proc_stat(sweeper->proc, step->pid, &stat) && stat.threads &&
           stat.start_ticks == step->start_ticks;
}

/* The first that fails is the last that is tried: the next would fail in the same way. */
static void delete_ended(struct sweeper *sweeper)
{
    bool may_delete = now(sweeper) >= sweeper->not_before;
    size_t n_kept = 0;

    for (size_t i = 0; i < sweeper->n_steps; i++) {
        struct watched *step = &sweeper->steps[i];

        if (step->has_ended && may_delete && (may_delete = delete_group(sweeper, &step->group)))
            continue;
        if (!step->has_ended)
            step->has_ended = !lives(sweeper, step);
        sweeper->steps[n_kept++] = *step;
    }
    sweeper->n_steps = n_kept;
}

static bool is_ours(void *ctx, const struct sweep_group *group)
{
    return is_our_name(ctx, group->node);
}

/* A node that cannot be found out may be any. */
static bool is_of(const struct sweep_group *group, const struct stepd *stepd)
{
    uint64_t job;

    return num_get_u64(str_of(stepd->job), &job) && job == group->job_id &&
           (!stepd->node[0] || strcmp(stepd->node, group->node) == 0) &&
           (!group->step[0] || strcmp(stepd->step, group->step) == 0);
}

static bool has_stepd(const struct stepds *stepds, const struct sweep_group *group)
{
    for (size_t i = 0; i < stepds->n; i++)
        if (is_of(group, &stepds->item[i]))
            return true;
    return false;
}

static bool delete_listed(struct sweeper *sweeper, const struct sweep_list *list,
                          const struct stepds *stepds)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct sweep_group *group = &list->groups[i];

        if (has_stepd(stepds, group))
            continue;
        if (!delete_group(sweeper, group))
            return false;
        LOG(sweeper->config.log, LOG_INFO, "deleted what a step had left on the Pushgateway",
            LOG_INT("job", group->job_id), LOG_STR("step", group->step),
            LOG_STR("node", group->node));
    }
    return true;
}

/* The processes are looked at after the list: whoever had pushed by then is among them. */
static int read_list(struct sweeper *sweeper, struct sweep_list *list, struct stepds *stepds,
                     struct err *err)
{
    const struct sweep_limits limits = {
        .timeout_ms = LIST_TIMEOUTS * ms_of(sweeper->config.timeout_ns),
        .max_answer = MOST_LIST_BYTES,
        .cancelled = &sweeper->is_cancelled,
    };
    const struct sweep_wishes wishes = { is_ours, sweeper, MOST_LISTED };
    int code = sweep_read(&sweeper->gateway, &limits, &wishes, list, err);

    return code < 0 ? code : stepds_find(sweeper->proc, sweeper->config.slurmd_uid, stepds, err);
}

static void sweep_listed(struct sweeper *sweeper)
{
    struct sweep_list list = { 0 };
    struct stepds stepds = { 0 };
    struct err err = { 0 };
    int code = read_list(sweeper, &list, &stepds, &err);

    if (code == 0) {
        succeeded(sweeper);
        sweeper->wants_list = !delete_listed(sweeper, &list, &stepds) || list.n_left_out;
    } else {
        failed(sweeper, &err);
    }
    if (code == -EFBIG) {
        sweeper->wants_list = false;
        LOG(sweeper->config.log, LOG_WARN,
            "the Pushgateway's list of groups is too large for an agent; what was left there "
            "before is for \"sonde admin sweep-pushgateway\"");
    }
    sweep_list_clear(&list);
    free(stepds.item);
}

/* A connection lasts for a round: one that is kept costs the Pushgateway some kilobytes for each
 * node. */
static void go_round(struct sweeper *sweeper)
{
    take_news(sweeper);
    sweeper->gateway.line = fetch_line_new();
    delete_ended(sweeper);
    if (sweeper->wants_list && !sweeper->is_blind && now(sweeper) >= sweeper->list_at &&
        now(sweeper) >= sweeper->not_before)
        sweep_listed(sweeper);
    sweeper->gateway.line = fetch_line_free(sweeper->gateway.line);
}

/* False: it is to stop. */
static bool wait_until(struct sweeper *sweeper, int64_t until_ns)
{
    bool is_stopping;

    pthread_mutex_lock(&sweeper->lock);
    while (!sweeper->is_stopping &&
           clock_wait(sweeper->config.clock, &sweeper->changed, &sweeper->lock, until_ns))
        continue;
    is_stopping = sweeper->is_stopping;
    pthread_mutex_unlock(&sweeper->lock);
    return !is_stopping;
}

static void *run(void *arg)
{
    struct sweeper *sweeper = arg;
    int64_t round_ns = sweeper->config.round_ns;
    int64_t next = now(sweeper) + random_part(round_ns);

    sweeper->list_at = next + LIST_AFTER * round_ns + random_part(LIST_SPREAD * round_ns);
    while (wait_until(sweeper, next)) {
        go_round(sweeper);
        next = now(sweeper) + round_ns;
    }
    return NULL;
}

static void sweeper_free(struct sweeper *sweeper)
{
    gateway_close(&sweeper->gateway);
    proc_close(sweeper->proc);
    pthread_cond_destroy(&sweeper->changed);
    pthread_mutex_destroy(&sweeper->lock);
    free(sweeper->steps);
    free(sweeper->news);
    free(sweeper);
}

static void look_around(struct sweeper *sweeper)
{
    add_name(sweeper, sweeper->config.host);
    sweeper->is_blind = proc_sight(sweeper->proc) == PROC_SEES_OWN;
    if (sweeper->is_blind)
        LOG(sweeper->config.log, LOG_WARN,
            "the processes of other users are hidden: what steps had left on the Pushgateway "
            "before the agent started stays there");
}

int sweeper_start(const struct sweeper_config *config, struct sweeper **ret, struct err *err)
{
    struct sweeper *sweeper = heap_alloc(sizeof(*sweeper));
    int code;

    sweeper->config = *config;
    pthread_mutex_init(&sweeper->lock, NULL);
    clock_cond_init(&sweeper->changed);
    code =
        gateway_open(config->url, config->password_file, config->ca_file, &sweeper->gateway, err);
    if (code == 0)
        code = proc_open(config->proc, &sweeper->proc, err);
    if (code == 0) {
        look_around(sweeper);
        code = thread_start(&sweeper->thread, "sweep", run, sweeper, err);
    }
    if (code < 0)
        sweeper_free(sweeper);
    else
        *ret = sweeper;
    return code;
}

struct sweeper *sweeper_stop(struct sweeper *sweeper)
{
    if (sweeper) {
        pthread_mutex_lock(&sweeper->lock);
        sweeper->is_stopping = true;
        pthread_cond_broadcast(&sweeper->changed);
        pthread_mutex_unlock(&sweeper->lock);
        atomic_store(&sweeper->is_cancelled, true);
        pthread_join(sweeper->thread, NULL);
        sweeper_free(sweeper);
    }
    return NULL;
}

static struct watched watched_of(const struct sweeper *sweeper, const struct stepd *stepd,
                                 uint64_t job)
{
    struct watched step = {
        .pid = stepd->pid,
        .start_ticks = stepd->start_ticks,
        .group.job_id = (uint32_t)job,
    };

    snprintf(step.group.node, sizeof(step.group.node), "%s",
             stepd->node[0] ? stepd->node : sweeper->config.host);
    snprintf(step.group.step, sizeof(step.group.step), "%.*s", (int)sizeof(step.group.step) - 1,
             stepd->step);
    return step;
}

void sweeper_watch(struct sweeper *sweeper, const struct stepd *stepd)
{
    uint64_t job;

    if (!num_get_u64(str_of(stepd->job), &job) || job > UINT32_MAX)
        return;
    pthread_mutex_lock(&sweeper->lock);
    if (sweeper->n_news == SWEEPER_STEPS) {
        sweeper->has_missed_news = true;
    } else {
        sweeper->news = heap_grow(sweeper->news, sweeper->n_news, &sweeper->n_news_room,
                                  sizeof(*sweeper->news));
        sweeper->news[sweeper->n_news++] = watched_of(sweeper, stepd, job);
    }
    pthread_mutex_unlock(&sweeper->lock);
}

void sweeper_stats(struct sweeper *sweeper, struct sweeper_stats *ret)
{
    pthread_mutex_lock(&sweeper->lock);
    *ret = sweeper->stats;
    pthread_mutex_unlock(&sweeper->lock);
}
