/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks first what there is, then for all numbers, and takes them when all have come; then for
 * plots, each of which may be missing. */
#include "report/series.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/quote.h"
#include "source/promql.h"

#include <math.h>

enum {
    DEFAULT_INTERVAL = 15,
    LONGEST_INTERVAL = 3600,
    RECENT_SECONDS = 600,
    LISTED_NODES = 256, /* with more GPU nodes, all that begin alike are asked for */
};

static int64_t at_least(int64_t value, int64_t least)
{
    return value < least ? least : value;
}

struct str series_host(struct str instance)
{
    size_t i = instance.n;

    while (i && instance.p[i - 1] >= '0' && instance.p[i - 1] <= '9')
        i--;
    if (i < 2 || i == instance.n || instance.p[i - 1] != ':')
        return instance;
    /* An address of version 6 has colons too, and is in brackets if a port follows. */
    if (instance.p[i - 2] == ']')
        return *instance.p == '[' ? (struct str){ instance.p + 1, i - 3 } : instance;
    return memchr(instance.p, ':', i - 1) ? instance : str_head(instance, i - 1);
}

static void put_matcher(const struct series *series, struct buf *to)
{
    if (series->question->matcher.n) {
        buf_byte(to, ',');
        buf_put(to, series->question->matcher);
    }
}

static void put_job(const struct series *series, struct buf *to, const char *label)
{
    buf_text(to, label);
    buf_byte(to, '=');
    promql_string(to, str_of(series->job_id));
    put_matcher(series, to);
}

void series_put(const struct series *series, const struct series_times *times, struct buf *to,
                const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '$':
            put_job(series, to, "job_id");
            break;
        case '&':
            put_job(series, to, "slurm_job");
            break;
        case '?':
            put_job(series, to, "jobid");
            break;
        case '#':
            buf_put(to, series->gpu_nodes);
            break;
        case '@':
            buf_printf(to, "[%llds]", (long long)times->range_seconds);
            break;
        case '^':
            buf_printf(to, "[%llds]", (long long)times->rate_seconds);
            break;
        case '\'':
            buf_printf(to, "[%llds]", (long long)times->gauge_seconds);
            break;
        case ';':
            buf_printf(to, "[%llds:%llds]", (long long)times->range_seconds,
                       (long long)times->step_seconds);
            break;
        case '!':
            buf_i64(to, times->step_seconds);
            break;
        case '<':
            buf_printf(to, " offset %llds", (long long)times->range_seconds);
            break;
        case '%':
            if (series->last > series->end)
                buf_printf(to, " offset %llds", (long long)(series->last - series->end));
            break;
        default:
            buf_byte(to, *text);
        }
    }
}

int64_t series_timeout_ms(const struct series *series)
{
    int64_t left_ns = series->question->deadline_ns - clock_mono(&clock_real);

    return at_least(left_ns / NS_PER_MS, 1);
}

void series_note_warning(struct series *series, const char *warning)
{
    struct facts_origin *origin = &series->facts->origin;

    if (warning[0] && !origin->why_no_series.n)
        origin->why_no_series = arena_str(series->arena, str_of(warning));
}

static void take_reading(void *ctx, const struct prometheus_sample *sample)
{
    struct series *series = ctx;
    struct series_reading *reading;

    if (!isfinite(sample->value) || sample->value < 0)
        return;
    series->reading =
        heap_grow(series->reading, series->n_readings, &series->room, sizeof(*series->reading));
    reading = &series->reading[series->n_readings++];
    reading->value = sample->value;
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        reading->label[i] = arena_str(&series->scratch, sample->label[i]);
}

int series_ask(struct series *series, const struct series_query *query, struct err *err)
{
    struct prometheus_query question = {
        .text = query->text->p,
        .time = query->time,
        .timeout_ms = series_timeout_ms(series),
        .cancelled = series->question->cancelled,
        .sink = take_reading,
        .ctx = series,
    };
    struct prometheus_result result;
    int code;

    if (query->text->over)
        return err_set(err, EINVAL, "the query for the samples of job %s is longer than %d bytes",
                       series->job_id, SERIES_QUERY);
    for (size_t i = 0; i < PROMETHEUS_LABELS; i++)
        question.labels[i] = query->labels[i];
    code = prometheus_query(series->question->prometheus, &question, &result, err);
    if (code == 0)
        series_note_warning(series, result.warning);
    return code;
}

/* How many nodes tell of the run and how often, and which GPUs it had. */
static const char look_text[] =
    "label_replace(count(max by(node)(last_over_time("
    "{__name__=~\"sonde_job_(info|cpu_seconds_total)\",$}@))),\"fact\",\"nodes\",\"\",\"\")"
    " or label_replace(count(max by(instance,exported_instance)(last_over_time("
    "jobs_cpu_time_total{&}@))),\"fact\",\"old_nodes\",\"\",\"\")"
    " or label_replace(max(count_over_time(sonde_job_cpu_seconds_total{$}@)"
    " or count_over_time(jobs_cpu_time_total{&}@)),\"fact\",\"samples\",\"\",\"\")"
    " or label_replace(max(count_over_time(sonde_job_cpu_seconds_total{$}^%)"
    " or count_over_time(jobs_cpu_time_total{&}^%)),\"fact\",\"recent_samples\",\"\",\"\")"
    " or label_replace(max by(node,gpu,gpu_instance)(last_over_time(sonde_job_gpu_info{$}@)),"
    "\"fact\",\"gpu\",\"\",\"\")";

/* Of a number of samples in a time. Where some are missing it comes out too long: the shortest of
 * several is right. */
static void learn_interval(struct series *series, int64_t seconds, double samples)
{
    double interval = samples >= 2 ? (double)seconds / samples : LONGEST_INTERVAL;

    if (interval < (double)series->interval_seconds)
        series->interval_seconds = at_least(llround(interval), 1);
}

static void learn_gpu(struct series *series, const struct series_reading *reading)
{
    series->gpu[series->n_gpus++] = (struct series_gpu){
        .node = reading->label[1],
        .gpu = reading->label[2],
        .instance = reading->label[3],
    };
}

/* Of many nodes the pattern would be longer than what servers take: others that it matches are left
 * out by the join with the job. */
static void learn_gpu_nodes(struct series *series)
{
    struct str *nodes = ARENA_ARRAY(&series->scratch, struct str, series->n_gpus);
    struct map seen;
    struct buf text;

    map_init(&seen, &series->scratch);
    for (size_t i = 0; i < series->n_gpus; i++)
        nodes[map_index(&seen, series->gpu[i].node)] = series->gpu[i].node;
    buf_init(&text, SERIES_QUERY);
    buf_text(&text, "node=~");
    if (seen.n <= LISTED_NODES)
        promql_one_of(&text, nodes, seen.n);
    else
        promql_beginning(&text, nodes, seen.n);
    put_matcher(series, &text);
    series->gpu_nodes = arena_str(&series->scratch, buf_str(&text));
    buf_free(&text);
    map_free(&seen);
}

static void learn(struct series *series, const struct series_times *times)
{
    double nodes = 0, old_nodes = 0;

    series->interval_seconds = LONGEST_INTERVAL;
    series->gpu = ARENA_ARRAY(&series->scratch, struct series_gpu, series->n_readings);
    for (size_t i = 0; i < series->n_readings; i++) {
        const struct series_reading *reading = &series->reading[i];
        struct str fact = reading->label[0];

        if (str_eq(fact, STR("nodes")))
            nodes = reading->value;
        else if (str_eq(fact, STR("old_nodes")))
            old_nodes = reading->value;
        else if (str_eq(fact, STR("samples")))
            learn_interval(series, times->range_seconds, reading->value);
        else if (str_eq(fact, STR("recent_samples")))
            learn_interval(series, times->rate_seconds, reading->value);
        else if (str_eq(fact, STR("gpu")) && series->n_gpus < SERIES_NODES_MAX)
            learn_gpu(series, reading);
    }
    series->has_agents = nodes > 0;
    series->has_old_names = old_nodes > 0;
    series->n_nodes = (size_t)fmin(nodes > 0 ? nodes : old_nodes, SERIES_NODES_MAX);
    if (series->interval_seconds == LONGEST_INTERVAL)
        series->interval_seconds = DEFAULT_INTERVAL;
    if (series->n_gpus)
        learn_gpu_nodes(series);
    series->n_readings = 0;
}

static int look(struct series *series, struct err *err)
{
    const struct series_times times = {
        .range_seconds = series->last - series->clean,
        .rate_seconds = RECENT_SECONDS,
    };
    struct buf text;
    int code;

    buf_init(&text, SERIES_QUERY);
    series_put(series, &times, &text, look_text);
    code = series_ask(series,
                      &(struct series_query){ .text = &text,
                                              .time = series->last,
                                              .labels = { "fact", "node", "gpu", "gpu_instance" } },
                      err);
    buf_free(&text);
    if (code == 0)
        learn(series, &times);
    return code;
}

static void say_no_samples(struct series *series)
{
    struct str matcher = series->question->matcher;
    struct buf sentence;

    buf_init(&sentence, 1000);
    buf_printf(&sentence, "%s has no samples of job %s from the time of this run",
               prometheus_origin(series->question->prometheus), series->job_id);
    if (matcher.n)
        buf_printf(&sentence, " (%.*s)", STR_ARG(matcher));
    series_note_warning(series, buf_str(&sentence).p);
    buf_free(&sentence);
}

/* A plot that cannot be had is not worth losing the rest for. */
static void take_plots(struct series *series)
{
    struct err err;

    if (series->question->wants_plots && series_take_plots(series, &err) < 0)
        series_note_warning(series, err.text);
}

static int take_all(struct series *series, struct err *err)
{
    int code = look(series, err);

    if (code == 0)
        code = series_ask_numbers(series, err);
    if (code == 0 && series->n_gpus)
        code = series_ask_gpus(series, err);
    if (code < 0)
        return code;
    if (!series->n_readings && !series->n_gpus && !series->n_nodes) {
        say_no_samples(series);
        return 0;
    }
    series->facts->origin.has_series = true;
    series->facts->origin.series =
        arena_str(series->arena, str_of(prometheus_origin(series->question->prometheus)));
    series_take_numbers(series);
    series_take_gpus(series);
    take_plots(series);
    return 0;
}

int facts_take_series(struct job_facts *facts, struct arena *arena,
                      const struct series_question *question, struct err *err)
{
    struct series series = { .question = question, .facts = facts, .arena = arena };
    struct err why;
    int code;

    if (!series_find_times(&series))
        return 0;
    snprintf(series.job_id, sizeof(series.job_id), "%u", facts->row.record.id);
    code = take_all(&series, &why);
    if (code < 0) {
        facts->origin.why_no_series = arena_str(arena, str_of(why.text));
        err_set(err, -code, "%s", why.text);
    }
    arena_clear(&series.scratch);
    free(series.reading);
    return code;
}

/* What stands before the first "=" of cluster=label="value": not a label, whose "=" a quote
 * follows. */
static bool has_cluster(struct str text)
{
    size_t at = str_find(text, '=');
    struct str after = str_trim(str_skip(text, at + 1));

    return at < text.n && at > 0 && text.p[at - 1] != '!' &&
           (!after.n || !memchr("~\"'`", *after.p, 4));
}

int series_matcher_read(struct str text, struct series_matcher *ret, struct err *err)
{
    struct series_matcher matcher = { .cluster = STR("") };
    int code;

    text = str_trim(text);
    if (has_cluster(text))
        matcher.cluster = str_trim(str_cut(&text, '='));
    matcher.matcher = str_trim(text);
    code = promql_check_matchers(matcher.matcher, err);
    if (code < 0 && matcher.cluster.n)
        return err_prefix(err, "of cluster %s", quote(matcher.cluster).text);
    if (code == 0)
        *ret = matcher;
    return code;
}
