/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that writes the built-in time series. */
#include "web/ticker.h"

#include "base/buf.h"
#include "base/clock_watch.h"
#include "base/fetch.h"
#include "base/thread.h"
#include "metric/reader.h"
#include "report/kept_words.h"
#include "web/trends.h"

enum {
    AGENT_ANSWER_MAX = 64 << 20,
    AGENT_TIMEOUT_MS = 2000, /* or a part of the interval: it is late for nobody else */
    AGENT_PART = 4,
    LINKS_MAX = 4096,  /* GPUs that jobs of this node hold */
    TIDIES_A_TICK = 8, /* steps of sealing and deleting: the rest is done after the next tick */
};

static const int64_t board_patience_ns = 5 * NS_PER_SEC;

/* Samples that grow in a heap block of their own. */
struct gathered {
    struct tick_sample *sample;
    size_t n, room;
    size_t left_out; /* there are too many */
};

static void gather(struct gathered *to, const struct tick_sample *sample, size_t n)
{
    size_t room = TICKS_SAMPLES_MAX - to->n, taken = n < room ? n : room;

    for (size_t i = 0; i < taken; i++) {
        to->sample = heap_grow(to->sample, to->n, &to->room, sizeof(*to->sample));
        to->sample[to->n++] = sample[i];
    }
    to->left_out += n - taken;
}

/* ---- what an agent says ---- */

/* A job and a GPU that it holds. */
struct link_of_gpu {
    struct str job, node, gpu, instance;
};

struct agent_answer {
    struct str cluster;
    struct arena *arena;
    struct gathered gathered;
    struct link_of_gpu *link;
    size_t n_links, links_room;
};

static bool is_number(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n > 0;
}

/* What may stand between the slashes of a name. */
static bool is_part(struct str text)
{
    return text.n && str_find(text, '/') == text.n;
}

static void see_link(void *ctx, const struct metric_sample *sample)
{
    struct agent_answer *answer = ctx;
    struct link_of_gpu link = {
        .job = metric_label(sample, "job_id"),
        .node = metric_label(sample, "node"),
        .gpu = metric_label(sample, "gpu"),
        .instance = metric_label(sample, "gpu_instance"),
    };

    if (!str_eq(sample->name, STR("sonde_job_gpu_info")) || answer->n_links == LINKS_MAX)
        return;
    link.job = arena_str(answer->arena, link.job);
    link.node = arena_str(answer->arena, link.node);
    link.gpu = arena_str(answer->arena, link.gpu);
    link.instance = arena_str(answer->arena, link.instance);
    answer->link =
        heap_grow(answer->link, answer->n_links, &answer->links_room, sizeof(*answer->link));
    answer->link[answer->n_links++] = link;
}

/* job/beluga/4711/c1/cpu_seconds, job/beluga/4711/g1/gpu/0/utilization; an instance of a GPU is
 * "0.7". */
static void keep(struct agent_answer *answer, struct link_of_gpu of, const char *word, double value)
{
    struct tick_sample sample = { .value = value };
    struct buf name;

    if (!is_number(of.job) || !is_part(of.node))
        return;
    buf_init(&name, TICKS_NAME_MAX);
    buf_printf(&name, "job/%.*s/%.*s/%.*s/", STR_ARG(answer->cluster), STR_ARG(of.job),
               STR_ARG(of.node));
    if (is_part(of.gpu))
        buf_printf(&name, "gpu/%.*s%s%.*s/", STR_ARG(of.gpu), of.instance.n ? "." : "",
                   STR_ARG(of.instance));
    buf_text(&name, word);
    sample.name = arena_str(answer->arena, buf_str(&name));
    if (!name.over)
        gather(&answer->gathered, &sample, 1);
    buf_free(&name);
}

/* What is told of a GPU is told of whoever holds it. */
static void keep_for_holders(struct agent_answer *answer, const struct link_of_gpu *gpu,
                             const char *word, double value)
{
    for (size_t i = 0; i < answer->n_links; i++) {
        const struct link_of_gpu *link = &answer->link[i];

        if (str_eq(link->node, gpu->node) && str_eq(link->gpu, gpu->gpu) &&
            str_eq(link->instance, gpu->instance))
            keep(answer, *link, word, value);
    }
}

static void see_sample(void *ctx, const struct metric_sample *sample)
{
    const struct kept_word *word = kept_word_of_sample(sample);
    struct agent_answer *answer = ctx;
    struct link_of_gpu of = {
        .job = metric_label(sample, "job_id"),
        .node = metric_label(sample, "node"),
    };

    if (!word)
        return;
    if (word->is_of_gpu) {
        of.gpu = metric_label(sample, "gpu");
        of.instance = metric_label(sample, "gpu_instance");
        if (!is_part(of.gpu))
            return;
    }
    if (word->is_of_gpu && !of.job.n)
        keep_for_holders(answer, &of, word->word, sample->value);
    else
        keep(answer, of, word->word, sample->value);
}

void ticker_take_agent(struct str text, struct str cluster, struct arena *arena,
                       struct tick_sample **ret, size_t *ret_n, size_t *ret_left_out)
{
    struct agent_answer answer = { .cluster = cluster, .arena = arena };

    metric_read(text, see_link, &answer);
    metric_read(text, see_sample, &answer);
    free(answer.link);
    arena_adopt(arena, answer.gathered.sample);
    *ret = answer.gathered.sample;
    *ret_n = answer.gathered.n;
    *ret_left_out = answer.gathered.left_out;
}

/* An agent has one node, and names it wherever it tells of a job. */
struct agent_node {
    char name[TICKS_NAME_MAX + 1];
};

static void see_node(void *ctx, const struct metric_sample *sample)
{
    struct agent_node *node = ctx;

    if (!node->name[0] && kept_word_of_sample(sample))
        snprintf(node->name, sizeof(node->name), "%.*s", STR_ARG(metric_label(sample, "node")));
}

bool ticker_cluster(const struct board *board, struct str text, struct str *ret)
{
    struct agent_node node = { "" };
    size_t n = 0;

    if (board->n_clusters > 1)
        metric_read(text, see_node, &node);
    for (size_t i = 0; i < board->n_clusters; i++) {
        const struct board_cluster *cluster = &board->cluster[i];

        if (board->n_clusters > 1 && !board_node(cluster, str_of(node.name)))
            continue;
        *ret = n++ ? STR("") : cluster->name;
    }
    return n > 1 || (n && is_part(*ret));
}

/* ---- the thread ---- */

struct ticker {
    struct ticker_config config;
    char *path, *agent_url;
    char *cluster; /* of the agent's jobs, the thread's own; empty: it cannot be told; NULL: not yet
                    */
    struct ticks_writer *writer; /* the thread's own; NULL: it could not be opened yet */
    struct clock_watch watch;    /* likewise */
    int64_t last_time;           /* of its last tick; 0: there was none */
    int last_code;               /* what became of it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_stopping; /* under the lock, as the next */
    struct ticker_stats stats;
    atomic_bool is_cancelled;
};

static int take_piece(void *ctx, struct str piece, struct err *err)
{
    struct buf *text = ctx;

    (void)err;
    buf_put(text, piece);
    return 0;
}

static int64_t agent_timeout_ms(const struct ticker *ticker)
{
    int64_t part_ms = ticker->config.interval_ns / NS_PER_MS / AGENT_PART;

    return part_ms < AGENT_TIMEOUT_MS ? part_ms : AGENT_TIMEOUT_MS;
}

static void see_up(void *ctx, const struct metric_sample *sample)
{
    if (str_eq(sample->name, STR("sonde_agent_up")))
        *(bool *)ctx = sample->value > 0;
}

/* Until its first sample, or when its samples are stale, an agent replies with sonde_agent_up 0. */
static int check_agent_is_up(struct str text, struct err *err)
{
    bool is_up = true;

    metric_read(text, see_up, &is_up);
    return is_up ? 0 : err_set(err, ESTALE, "the agent has no fresh sample");
}

static int ask_agent(struct ticker *ticker, struct buf *text, struct err *err)
{
    const struct str unix_socket = STR("unix:");
    struct fetch fetch = {
        .timeout_ms = agent_timeout_ms(ticker),
        .max_answer = AGENT_ANSWER_MAX,
        .cancelled = &ticker->is_cancelled,
        .sink = take_piece,
        .ctx = text,
    };
    struct fetch_result result;
    char url[1000];
    int code;

    if (str_starts(str_of(ticker->agent_url), unix_socket)) {
        fetch.unix_socket = ticker->agent_url + unix_socket.n;
        snprintf(url, sizeof(url), "http://localhost/metrics");
    } else {
        snprintf(url, sizeof(url), "%s/metrics", ticker->agent_url);
    }
    fetch.url = url;
    code = fetch_run(&fetch, &result, err);
    if (code == 0 && result.status != 200)
        code = err_set(err, EREMOTEIO, "the agent answers with status %ld", result.status);
    return code == 0 ? check_agent_is_up(buf_str(text), err) : code;
}

/* What it said, or nothing. That it fell silent is told once. */
static void hear_agent(struct ticker *ticker, struct buf *text)
{
    struct err err;
    bool was_silent;
    int code;

    if (!ticker->agent_url)
        return;
    code = ask_agent(ticker, text, &err);
    if (code < 0)
        buf_reset(text);
    pthread_mutex_lock(&ticker->lock);
    was_silent = ticker->stats.agent_failures > 0;
    ticker->stats.is_agent_up = code == 0;
    ticker->stats.agent_failures = code == 0 ? 0 : ticker->stats.agent_failures + 1;
    pthread_mutex_unlock(&ticker->lock);
    if (code < 0 && !was_silent && code != -ECANCELED)
        LOG(ticker->config.log, LOG_WARN, "the agent does not tell what jobs use",
            LOG_STR("error", err.text));
    else if (code == 0 && was_silent)
        LOG(ticker->config.log, LOG_INFO, "the agent tells what jobs use again");
}

/* Once said it holds, for times in which Slurm does not answer. */
static void note_cluster(struct ticker *ticker, const struct board *board, struct str text)
{
    struct str cluster;

    if (!ticker_cluster(board, text, &cluster) ||
        (ticker->cluster && str_eq(str_of(ticker->cluster), cluster)))
        return;
    free(ticker->cluster);
    ticker->cluster = heap_str(cluster);
    if (cluster.n)
        LOG(ticker->config.log, LOG_INFO, "what the agent tells is of jobs of this cluster",
            LOG_VIEW("cluster", cluster));
    else
        LOG(ticker->config.log, LOG_WARN,
            "several clusters have a node of this machine's name: whose jobs run here cannot be "
            "told, and what they use is not kept");
}

static bool has_cluster(const struct ticker *ticker)
{
    return ticker->cluster && ticker->cluster[0];
}

static void take_agent(struct ticker *ticker, struct str text, struct arena *arena,
                       struct gathered *to)
{
    struct tick_sample *sample;
    size_t n, left_out;

    if (!has_cluster(ticker))
        return;
    ticker_take_agent(text, str_of(ticker->cluster), arena, &sample, &n, &left_out);
    gather(to, sample, n);
    to->left_out += left_out;
}

static struct board *take_board(struct ticker *ticker)
{
    struct board_source *boards = &ticker->config.boards;
    struct err err;
    struct board *board =
        boards->take(boards->ctx, clock_mono(&clock_real) + board_patience_ns, &err);

    if (!board)
        LOG(ticker->config.log, LOG_WARN, "nothing to be kept is told of the clusters",
            LOG_STR("error", err.text));
    return board;
}

static void take_clusters(const struct board *board, struct arena *arena, struct gathered *to)
{
    for (size_t i = 0; i < board->n_clusters; i++) {
        const struct board_cluster *cluster = &board->cluster[i];
        struct tick_sample *sample;
        size_t n;

        /* Without either, nothing is known of it now: a gap is true, a line would not be. */
        if (!cluster->section[KIND_NODES] && !cluster->section[KIND_JOBS])
            continue;
        trends_samples(&cluster->sums, cluster->name, cluster->section[KIND_NODES], arena, &sample,
                       &n);
        gather(to, sample, n);
    }
}

/* Of the first cluster that has told it: each further one could have another clock. */
static void hear_slurm(struct ticker *ticker, const struct board *board)
{
    for (size_t i = 0; i < board->n_clusters; i++) {
        const struct section *diag = board->cluster[i].section[KIND_DIAG];

        if (!diag || !diag->diag.time || board->cluster[i].is_simulated)
            continue;
        clock_watch_hear(&ticker->watch, diag->diag.time, diag->mono_ns);
        return;
    }
}

/* The agent comes first: what follows waits for Slurm, more or less. */
static void take_all(struct ticker *ticker, struct arena *arena, struct gathered *to)
{
    struct board *board;
    struct buf text;

    buf_init(&text, AGENT_ANSWER_MAX);
    hear_agent(ticker, &text);
    board = take_board(ticker);
    if (board && text.n)
        note_cluster(ticker, board, buf_str(&text));
    if (board)
        hear_slurm(ticker, board);
    if (board) /* before jobs, of which there may be too many */
        take_clusters(board, arena, to);
    take_agent(ticker, buf_str(&text), arena, to);
    board_unref(board);
    buf_free(&text);
}

static void take_more(struct ticker *ticker, int64_t now, struct arena *arena, struct gathered *to)
{
    struct tick_sample *sample;
    size_t n;

    if (!ticker->config.more)
        return;
    ticker->config.more(ticker->config.ctx, now, arena, &sample, &n);
    gather(to, sample, n);
}

static int open_series(struct ticker *ticker, struct err *err)
{
    struct ticks_config config = ticker->config.series;

    config.path = ticker->path;
    return ticker->writer ? 0 : ticks_open(&config, &ticker->writer, err);
}

static void tell_deleted(const struct ticker *ticker, uint64_t expired, uint64_t evicted)
{
    if (expired)
        LOG(ticker->config.log, LOG_INFO, "deleted time series past their retention",
            LOG_STR("path", ticker->path), LOG_INT("windows", expired));
    if (evicted)
        LOG(ticker->config.log, LOG_INFO,
            "deleted the oldest time series: the file exceeds --series.max-size",
            LOG_STR("path", ticker->path), LOG_INT("windows", evicted));
}

/* What is left is done after the next tick. */
static int tidy(struct ticker *ticker, int64_t now, struct err *err)
{
    bool may_expire = ticker->config.series.retention_seconds &&
                      clock_watch_allows(&ticker->watch, ticker->config.log);
    struct ticks_tidied tidied = { .is_more = true };
    uint64_t expired = 0, evicted = 0;
    int code = 0;

    for (int i = 0; code == 0 && tidied.is_more && i < TIDIES_A_TICK; i++) {
        code = ticks_tidy(ticker->writer, now, may_expire, &tidied, err);
        expired += code == 0 ? tidied.expired : 0;
        evicted += code == 0 ? tidied.evicted : 0;
    }
    tell_deleted(ticker, expired, evicted);
    return code;
}

static int write_tick(struct ticker *ticker, int64_t now, const struct gathered *gathered,
                      struct ticks_stats *ret, struct err *err)
{
    int code = open_series(ticker, err);

    if (code == 0 && has_cluster(ticker))
        code = ticks_name_cluster(ticker->writer, str_of(ticker->cluster), err);
    if (code == 0)
        code = ticks_put(ticker->writer, now, gathered->sample, gathered->n, err);
    if (code == 0)
        code = tidy(ticker, now, err);
    if (code == 0)
        code = ticks_stats(ticker->writer, ret, err);
    /* It may have been moved away, or made writable meanwhile: the next tick opens it anew. */
    if (code < 0)
        ticker->writer = ticks_close(ticker->writer);
    return code;
}

static void note_tick(struct ticker *ticker, int code, const struct gathered *gathered,
                      int64_t began_ns, const struct ticks_stats *series)
{
    pthread_mutex_lock(&ticker->lock);
    ticker->stats.left_out += gathered->left_out;
    ticker->stats.is_up = code == 0;
    ticker->stats.is_retention_paused = clock_watch_is_paused(&ticker->watch);
    ticker->stats.last_seconds = (double)(clock_mono(&clock_real) - began_ns) / NS_PER_SEC;
    if (code == 0) {
        ticker->stats.ticks++;
        ticker->stats.samples += gathered->n;
        ticker->stats.series = *series;
    } else {
        ticker->stats.failures++;
    }
    pthread_mutex_unlock(&ticker->lock);
}

/* The same at each tick would bury everything else. */
static void tell_change(struct ticker *ticker, int code, const struct err *err)
{
    if (code == ticker->last_code)
        return;
    if (code < 0)
        LOG(ticker->config.log, LOG_ERROR, "the series are not written",
            LOG_STR("path", ticker->path), LOG_STR("error", err->text));
    else
        LOG(ticker->config.log, LOG_INFO, "the series are written again",
            LOG_STR("path", ticker->path));
    ticker->last_code = code;
}

static void note_clock(struct ticker *ticker, int64_t now)
{
    if (now < ticker->last_time)
        LOG(ticker->config.log, LOG_WARN,
            "the clock was set back: series go on from there, and replace what they had",
            LOG_INT("seconds", ticker->last_time - now));
    ticker->last_time = now;
}

static void tick(struct ticker *ticker)
{
    int64_t now = clock_wall(ticker->config.clock) / NS_PER_SEC;
    int64_t began_ns = clock_mono(&clock_real);
    struct gathered gathered = { 0 };
    struct arena arena = { 0 };
    struct ticks_stats series = { 0 };
    struct err err;
    int code;

    note_clock(ticker, now);
    take_all(ticker, &arena, &gathered);
    take_more(ticker, now, &arena, &gathered);
    code = write_tick(ticker, now, &gathered, &series, &err);
    tell_change(ticker, code, &err);
    note_tick(ticker, code, &gathered, began_ns, &series);
    free(gathered.sample);
    arena_clear(&arena);
}

/* True: it is time to end. */
static bool wait_until(struct ticker *ticker, int64_t until_ns)
{
    const struct clock *clock = ticker->config.clock;
    bool is_stopping;

    pthread_mutex_lock(&ticker->lock);
    while (!ticker->is_stopping && clock_mono(clock) < until_ns)
        clock_wait(clock, &ticker->wake, &ticker->lock, until_ns);
    is_stopping = ticker->is_stopping;
    pthread_mutex_unlock(&ticker->lock);
    return is_stopping;
}

/* A tick that took longer than the interval leaves others out, but does not shift them. */
static void *run(void *arg)
{
    struct ticker *ticker = arg;
    int64_t interval_ns = ticker->config.interval_ns;
    int64_t next_ns = clock_mono(ticker->config.clock);

    while (!wait_until(ticker, next_ns)) {
        int64_t now_ns;

        tick(ticker);
        now_ns = clock_mono(ticker->config.clock);
        next_ns += interval_ns;
        if (now_ns > next_ns)
            next_ns += (now_ns - next_ns) / interval_ns * interval_ns;
    }
    return NULL;
}

static struct ticker *free_ticker(struct ticker *ticker)
{
    ticks_close(ticker->writer);
    pthread_mutex_destroy(&ticker->lock);
    pthread_cond_destroy(&ticker->wake);
    free(ticker->path);
    free(ticker->agent_url);
    free(ticker->cluster);
    free(ticker);
    return NULL;
}

/* What an earlier process has written last. */
static int recall_newest(struct ticker *ticker, struct err *err)
{
    struct ticks_stats stats;
    int code = ticks_stats(ticker->writer, &stats, err);

    if (code == 0)
        clock_watch_recall(&ticker->watch, stats.last_time);
    return code;
}

int ticker_start(const struct ticker_config *config, struct ticker **ret, struct err *err)
{
    struct ticker *ticker = heap_alloc(sizeof(*ticker));
    int code;

    ticker->config = *config;
    ticker->path = heap_str(str_of(config->series.path));
    ticker->agent_url = config->agent_url ? heap_str(str_of(config->agent_url)) : NULL;
    pthread_mutex_init(&ticker->lock, NULL);
    clock_cond_init(&ticker->wake);
    /* What is wrong for good is told now; what may mend is tried again at each tick. */
    clock_watch_init(&ticker->watch, config->clock, "time series");
    code = open_series(ticker, err);
    if (code == 0)
        code = recall_newest(ticker, err);
    if (code != -EINVAL)
        code = thread_start(&ticker->thread, "ticker", run, ticker, err);
    if (code < 0) {
        free_ticker(ticker);
        return code;
    }
    *ret = ticker;
    return 0;
}

void ticker_end(struct ticker *ticker)
{
    if (!ticker)
        return;
    atomic_store(&ticker->is_cancelled, true);
    pthread_mutex_lock(&ticker->lock);
    ticker->is_stopping = true;
    pthread_cond_signal(&ticker->wake);
    pthread_mutex_unlock(&ticker->lock);
}

struct ticker *ticker_stop(struct ticker *ticker)
{
    if (!ticker)
        return NULL;
    ticker_end(ticker);
    pthread_join(ticker->thread, NULL);
    return free_ticker(ticker);
}

void ticker_stats(struct ticker *ticker, struct ticker_stats *ret)
{
    pthread_mutex_lock(&ticker->lock);
    *ret = ticker->stats;
    pthread_mutex_unlock(&ticker->lock);
}
