/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread of `sonde run` that measures the command and posts the numbers. */
#include "cmd/run_trace.h"

#include "base/arena.h"
#include "base/fetch.h"
#include "base/munge.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/thread.h"
#include "source/process_tree.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>

enum {
    MOST_JSON = 4096,
    LONGEST_TEXT = 255,
    MOST_ANSWER = 64 * 1024,
    MOST_WORDS = 200, /* of the answer, when it is a refusal */
    POST_MS = 5000,
    FIRST_MS = 1000, /* until the first sample; a check is for somebody who waits */
    FIRST_CHECK_MS = 100,
    LAST_MS = 50, /* that we wait for the last post, if the one before has arrived */
    LAST_PRINT_MS = 1000,
    MERCY_MS = 5000, /* that a checked command has for ending */
};

struct tracer {
    struct tracer_config config;
    char *url;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_ended;   /* the command */
    bool is_posting;  /* the thread */
    bool has_arrived; /* the last post */
    bool is_done;     /* the thread */

    /* The thread's own. */
    struct process_tree tree;
    struct process_use used; /* at the last sample */
    int64_t sampled_ns;
    size_t n_samples;
    bool has_warned;
};

void say(const char *format, ...)
{
    struct pollfd standard_error = { .fd = STDERR_FILENO, .events = POLLOUT };
    char line[800];
    size_t n;
    va_list args;

    va_start(args, format);
    n = (size_t)snprintf(line, sizeof(line), "sonde run: ");
    vsnprintf(line + n, sizeof(line) - n - 1, format, args);
    va_end(args);
    n = strlen(line);
    line[n++] = '\n';
    /* Fewer bytes than a pipe takes at once, so that a ready one does not wait. */
    if (poll(&standard_error, 1, 0) == 1 && write(STDERR_FILENO, line, n) < 0)
        return;
}

/* "host", "host:port", "http://host": what lacks a scheme or a path gets http, port 9092 and
 * /trace. A whole URL is taken as it is. */
static char *complete_url(struct str endpoint)
{
    struct str scheme = STR("http"), rest = str_trim(endpoint), path, host;
    size_t n = str_find_str(rest, STR("://"));
    bool has_scheme = n < rest.n, has_path;
    struct buf url;

    if (has_scheme) {
        scheme = str_head(rest, n);
        rest = str_skip(rest, n + strlen("://"));
    }
    n = str_find(rest, '/');
    path = str_skip(rest, n);
    has_path = path.n > 1;
    rest = str_head(rest, n);
    host = rest;
    /* Past user:password@ and the colons of [::1]. */
    for (size_t i = host.n; i; i--)
        if (host.p[i - 1] == '@' || host.p[i - 1] == ']') {
            host = str_skip(host, i);
            break;
        }
    buf_init(&url, endpoint.n + 100);
    buf_put(&url, scheme);
    buf_text(&url, "://");
    buf_put(&url, rest);
    if (str_find(host, ':') == host.n && !(has_scheme && has_path))
        buf_text(&url, ":9092");
    buf_put(&url, has_path ? path : STR("/trace"));
    return url.p;
}

static void put_key(struct buf *json, const char *key)
{
    buf_byte(json, json->n ? ',' : '{');
    buf_json(json, str_of(key));
    buf_byte(json, ':');
}

static void put_u64(struct buf *json, const char *key, uint64_t value)
{
    put_key(json, key);
    buf_u64(json, value);
}

static void put_double(struct buf *json, const char *key, double value)
{
    put_key(json, key);
    buf_double(json, round(value * 1000) / 1000);
}

static void put_text(struct buf *json, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    put_key(json, key);
    buf_json(json, str_head(str_of(value), LONGEST_TEXT));
}

/* Slurm's numbers in the environment, where it has set them. */
static void put_variable(struct buf *json, const char *key, const char *variable)
{
    uint64_t value;

    if (num_get_u64(str_of(getenv(variable)), &value))
        put_u64(json, key, value);
}

static void put_sample(struct tracer *tracer, const struct process_tree_sample *sample, double cpus,
                       bool is_last, struct buf *json)
{
    char host[HOST_NAME_MAX + 1] = "";

    gethostname(host, sizeof(host) - 1);
    if (tracer->config.job_id)
        put_u64(json, "job_id", tracer->config.job_id);
    put_u64(json, "pid", (uint64_t)tracer->config.pid);
    if (!isnan(cpus))
        put_double(json, "cpus", cpus);
    put_u64(json, "threads", sample->threads);
    put_u64(json, "mem", sample->resident_bytes);
    if (sample->has_io) {
        put_u64(json, "read_bytes", sample->used.read_bytes);
        put_u64(json, "write_bytes", sample->used.write_bytes);
    }
    put_text(json, "username", getenv("USER"));
    put_text(json, "hostname", host);
    put_variable(json, "step", "SLURM_STEP_ID");
    put_variable(json, "task", "SLURM_PROCID");
    /* 0: nobody need wait for another one. */
    put_double(json, "period", is_last ? 0 : (double)tracer->config.period_ns / NS_PER_SEC);
    buf_byte(json, '}');
}

static void warn_once(struct tracer *tracer, const char *why)
{
    if (!tracer->has_warned || tracer->config.is_verbose)
        say("a sample is lost%s: %s", tracer->config.is_verbose ? "" : " (told once)", why);
    tracer->has_warned = true;
}

static int keep_words(void *ctx, struct str piece, struct err *err)
{
    struct buf *words = ctx;

    (void)err;
    buf_put(words, str_head(piece, words->max - words->n));
    return 0;
}

/* True if it has arrived and was taken. */
static bool post(struct tracer *tracer, struct str json, int64_t until_ns)
{
    struct buf words;
    struct err err = { 0 };
    struct fetch_result result = { 0 };
    char *credential = NULL;
    struct fetch fetch = {
        .url = tracer->url,
        .method = "POST",
        .body = json,
        .content_type = "application/json",
        .max_answer = MOST_ANSWER,
        .clock = tracer->config.clock,
        .sink = keep_words,
        .ctx = &words,
    };
    int64_t left_ms;
    int code;

    buf_init(&words, MOST_WORDS);
    if (munge_seal(tracer->config.munge_socket, json, &credential, &err) == 0) {
        fetch.body = str_of(credential);
        fetch.content_type = "text/plain";
    } else if (tracer->config.is_verbose) {
        say("posting without proof of who we are: %s", err.text);
    }
    left_ms = (until_ns - clock_mono(tracer->config.clock)) / NS_PER_MS;
    fetch.timeout_ms = left_ms < POST_MS ? left_ms : POST_MS;
    code = fetch_run(&fetch, &result, &err);
    if (code == 0 && result.status / 100 != 2)
        code = err_set(&err, EREMOTEIO, "the exporter refuses it with status %ld: %s",
                       result.status, quote(str_trim(buf_str(&words))).text);
    if (code < 0)
        warn_once(tracer, err.text);
    else if (tracer->config.is_verbose)
        say("posted, answered with status %ld: %.*s", result.status, STR_ARG(json));
    free(credential);
    buf_free(&words);
    return code == 0;
}

static bool prints(const struct tracer *tracer)
{
    return tracer->config.is_dry || tracer->config.is_check;
}

static void set_posting(struct tracer *tracer, bool is_posting, bool has_arrived)
{
    pthread_mutex_lock(&tracer->lock);
    tracer->is_posting = is_posting;
    if (!is_posting)
        tracer->has_arrived = has_arrived;
    pthread_mutex_unlock(&tracer->lock);
}

static void deliver(struct tracer *tracer, struct buf *json, int64_t until_ns)
{
    bool has_arrived;

    if (prints(tracer)) {
        buf_byte(json, '\n');
        if (write(STDOUT_FILENO, json->p, json->n) < 0)
            warn_once(tracer, "cannot write to standard output");
        return;
    }
    set_posting(tracer, true, false);
    has_arrived = post(tracer, buf_str(json), until_ns);
    set_posting(tracer, false, has_arrived);
}

/* Of a shorter time than this the processors' use cannot be told: the kernel counts in ticks of
 * 10 ms, several of them for each process. */
static int64_t first_delay(const struct tracer_config *config)
{
    int64_t delay = (config->is_check ? FIRST_CHECK_MS : FIRST_MS) * NS_PER_MS;

    return config->period_ns < delay ? config->period_ns : delay;
}

static double cpu_percent(const struct tracer *tracer, const struct process_tree_sample *sample,
                          int64_t now, bool is_last)
{
    int64_t elapsed = now - tracer->sampled_ns;

    if (elapsed <= 0 || (is_last && tracer->n_samples && elapsed < first_delay(&tracer->config)))
        return NAN;
    return 100.0 * (double)(sample->used.cpu_ns - tracer->used.cpu_ns) / (double)elapsed;
}

/* Measures and tells; `until_ns` is when the next one is due. */
static void take_sample(struct tracer *tracer, int64_t until_ns, bool is_last)
{
    struct process_tree_sample sample;
    struct err err = { 0 };
    int64_t now = clock_mono(tracer->config.clock);
    struct buf json;

    if (process_tree_read(&tracer->tree, &sample, &err) < 0) {
        warn_once(tracer, err.text);
        return;
    }
    buf_init(&json, MOST_JSON);
    put_sample(tracer, &sample, cpu_percent(tracer, &sample, now, is_last), is_last, &json);
    tracer->used = sample.used;
    tracer->sampled_ns = now;
    tracer->n_samples++;
    deliver(tracer, &json, until_ns);
    buf_free(&json);
}

/* False if the command has ended before. */
static bool wait_until(struct tracer *tracer, int64_t until_ns)
{
    bool has_ended;

    pthread_mutex_lock(&tracer->lock);
    while (!tracer->has_ended &&
           clock_wait(tracer->config.clock, &tracer->changed, &tracer->lock, until_ns))
        continue;
    has_ended = tracer->has_ended;
    pthread_mutex_unlock(&tracer->lock);
    return !has_ended;
}

/* The tasks of a large job start in the same moment: from the second post on, theirs are spread
 * over the period. */
static int64_t spread(int64_t period_ns)
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = (uint32_t)getpid();
    return period_ns / 2 + (int64_t)((double)(period_ns / 2) * random / UINT32_MAX);
}

/* What could not be done in its time, while all were stopped or munged hung, is left out. */
static int64_t next_due(const struct tracer *tracer, int64_t due)
{
    int64_t period = tracer->config.period_ns, late = clock_mono(tracer->config.clock) - due;

    if (tracer->n_samples == 0)
        return due + spread(period);
    return due + period * (late > 0 ? late / period + 1 : 1);
}

static void end_command(struct tracer *tracer)
{
    /* While it has not been waited for, its number is its own. */
    kill(tracer->config.pid, SIGTERM);
    kill(tracer->config.pid, SIGCONT);
    if (wait_until(tracer, clock_mono(tracer->config.clock) + MERCY_MS * NS_PER_MS))
        kill(tracer->config.pid, SIGKILL);
}

static bool wants_last(struct tracer *tracer)
{
    bool has_arrived;

    if (prints(tracer))
        return tracer->config.is_dry || tracer->n_samples == 0;
    pthread_mutex_lock(&tracer->lock);
    has_arrived = tracer->has_arrived;
    pthread_mutex_unlock(&tracer->lock);
    return has_arrived;
}

static void *run(void *arg)
{
    struct tracer *tracer = arg;
    int64_t due = tracer->config.began_ns + first_delay(&tracer->config);

    while (wait_until(tracer, due)) {
        due = next_due(tracer, due);
        take_sample(tracer, due, false);
        if (tracer->config.is_check) {
            end_command(tracer);
            break;
        }
    }
    if (wants_last(tracer))
        take_sample(tracer, clock_mono(tracer->config.clock) + POST_MS * NS_PER_MS, true);
    pthread_mutex_lock(&tracer->lock);
    tracer->is_done = true;
    pthread_cond_broadcast(&tracer->changed);
    pthread_mutex_unlock(&tracer->lock);
    return NULL;
}

static void tracer_free(struct tracer *tracer)
{
    pthread_cond_destroy(&tracer->changed);
    pthread_mutex_destroy(&tracer->lock);
    free(tracer->url);
    free(tracer);
}

int tracer_start(const struct tracer_config *config, struct tracer **ret, struct err *err)
{
    struct tracer *tracer = heap_alloc(sizeof(*tracer));
    int code;

    tracer->config = *config;
    tracer->tree = (struct process_tree){
        .proc = "/proc",
        .ancestor = getpid(),
        .reaped = process_reaped,
    };
    tracer->sampled_ns = config->began_ns;
    tracer->url = complete_url(config->endpoint);
    pthread_mutex_init(&tracer->lock, NULL);
    clock_cond_init(&tracer->changed);
    code = thread_start(&tracer->thread, "trace", run, tracer, err);
    if (code < 0)
        tracer_free(tracer);
    else
        *ret = tracer;
    return code;
}

bool tracer_finish(struct tracer *tracer)
{
    int64_t patience_ms = LAST_MS;
    int64_t until;
    bool is_done;

    pthread_mutex_lock(&tracer->lock);
    tracer->has_ended = true;
    pthread_cond_broadcast(&tracer->changed);
    if (prints(tracer))
        patience_ms = LAST_PRINT_MS;
    else if (tracer->is_posting && !tracer->has_arrived)
        patience_ms = 0;
    until = clock_mono(tracer->config.clock) + patience_ms * NS_PER_MS;
    while (!tracer->is_done &&
           clock_wait(tracer->config.clock, &tracer->changed, &tracer->lock, until))
        continue;
    is_done = tracer->is_done;
    pthread_mutex_unlock(&tracer->lock);
    if (!is_done) {
        pthread_detach(tracer->thread);
        return false;
    }
    pthread_join(tracer->thread, NULL);
    tracer_free(tracer);
    return true;
}
