/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Embedded series are called cluster/NAME/cpus/allocated and node/CLUSTER/NAME/load; what a
 * Prometheus is asked for are the exporter's own families, docs/metrics.md. */
#include "web/trends.h"

#include "base/clock.h"
#include "source/promql.h"
#include "store/ticks.h"

#include <math.h>

enum {
    LINES_MAX = 64,     /* that are read */
    LINES_SHOWN = 7,    /* that can be told apart; of more, the lowest are added up */
    HOLD_SECONDS = 300, /* a sample stands for so long, as in a Prometheus */
    QUERY_MAX = 4096,   /* bytes */
    WAIT_MAX_MS = 3000, /* for a Prometheus, however late the deadline is */
};

static const int64_t pause_ns =
    15 * NS_PER_SEC; /* in which a Prometheus that did not answer is not asked */
static const int64_t latest_time = INT64_C(1) << 40; /* so that times can be added up */

const struct trend_row trend_rows[TRENDS] = {
    [TREND_CPUS] = { "cpus", "CPUs", AXIS_NUMBER, false },
    [TREND_GPUS] = { "gpus", "GPUs", AXIS_NUMBER, false },
    [TREND_MEMORY] = { "memory", "Memory", AXIS_BYTES, false },
    [TREND_NODES] = { "nodes", "Nodes by state", AXIS_NUMBER, false },
    [TREND_JOBS] = { "jobs", "Jobs by state", AXIS_NUMBER, false },
    [TREND_NODE_CPUS] = { "node_cpus", "CPUs and load", AXIS_NUMBER, true },
};

/* $ stands for the matchers of the cluster, # for the name of the node. Two Prometheis or two
 * exporters may tell the same: the highest, not the sum, is what is there. */
#define NAMED(family, word) "label_replace(max(" family "),\"use\",\"" word "\",\"\",\"\")"
static const struct asked {
    const char *query, *label;
    bool is_by_state; /* a state that is not told of beside others has nothing in it */
} asked[TRENDS] = {
    [TREND_CPUS] = { "sum by(use)(max by(state,use)(slurm_state_cpus{$}))", "use", false },
    [TREND_GPUS] = { "sum by(use)(max by(state,type,use)(slurm_state_gpus{$}))", "use", false },
    [TREND_MEMORY] = { NAMED("slurm_mem_alloc{$}", "allocated") " or " NAMED("slurm_mem_real{$}",
                                                                             "total"),
                       "use", false },
    [TREND_NODES] = { "max by(state)(slurm_node_count_per_state{$})", "state", true },
    [TREND_JOBS] = { "max by(state)(slurm_job_count_per_state{$})", "state", true },
    [TREND_NODE_CPUS] = { NAMED("slurm_node_cpus_allocated{node=#,$}",
                                "allocated") " or " NAMED("slurm_node_cpu_load{node=#,$}", "load"),
                          "use", false },
};

struct trends {
    struct trends_config config;
    atomic_llong asked_from; /* monotonic: not before */
};

int trends_open(const struct trends_config *config, struct trends **ret, struct err *err)
{
    if (!config->series_path && !config->prometheus)
        return err_set(err, ENOENT,
                       "nothing keeps numbers over time: `sonde up` does, and `sonde web` shows "
                       "those of a Prometheus, --prometheus.url");
    *ret = heap_alloc(sizeof(**ret));
    (*ret)->config = *config;
    return 0;
}

struct trends *trends_close(struct trends *trends)
{
    free(trends);
    return NULL;
}

/* What the names of all series of a trend begin with. */
static void put_prefix(struct buf *to, enum trend trend, struct str cluster, struct str node)
{
    const struct trend_row *row = &trend_rows[trend];

    buf_text(to, row->is_of_node ? "node/" : "cluster/");
    buf_put(to, cluster);
    buf_byte(to, '/');
    buf_put(to, row->is_of_node ? node : str_of(row->name));
    buf_byte(to, '/');
}

/* ---- reading ---- */

/* One question, as it is answered. */
struct answer {
    const struct trend_question *question;
    struct arena *arena;
    struct facts_plot *plot;
    struct plot_line line[LINES_MAX];
    size_t n;
};

/* The shortest of these, in seconds, that gives no more points than are wanted. */
static int64_t choose_step(int64_t span, size_t most)
{
    static const int64_t steps[] = { 15,   30,   60,   120,   300,   600,   900,
                                     1800, 3600, 7200, 14400, 21600, 43200, 86400 };
    const int64_t day = 86400;

    for (size_t i = 0; i < COUNT(steps); i++)
        if (span / steps[i] < (int64_t)most)
            return steps[i];
    return (span / (int64_t)most / day + 1) * day;
}

static int set_times(const struct trend_question *question, struct facts_plot *ret, struct err *err)
{
    size_t most = question->most_points < PLOT_POINTS_MAX ? question->most_points : PLOT_POINTS_MAX;
    int64_t step;

    if (question->from < 0 || question->to <= question->from || question->to > latest_time ||
        most < 2)
        return err_set(err, EINVAL, "that is no time to show");
    step = choose_step(question->to - question->from, most);
    *ret = (struct facts_plot){
        .begin = (question->from + step - 1) / step * step,
        .step_seconds = step,
    };
    if (ret->begin <= question->to)
        ret->n_points = (size_t)((question->to - ret->begin) / step + 1);
    return 0;
}

static int64_t time_of(const struct facts_plot *plot, size_t point)
{
    return plot->begin + plot->step_seconds * (int64_t)point;
}

static struct plot_line *add_line(struct answer *answer, struct str name)
{
    struct plot_line *line = &answer->line[answer->n++];

    line->name = arena_str(answer->arena, name);
    line->value = ARENA_ARRAY(answer->arena, double, answer->plot->n_points);
    for (size_t i = 0; i < answer->plot->n_points; i++)
        line->value[i] = NAN;
    return line;
}

/* All lines are of the same ticks: what has no sample at the latest is not told by it. */
static void take_ticks(struct answer *answer, const struct ticks_line *from, size_t n)
{
    const struct facts_plot *plot = answer->plot;
    int64_t hold = plot->step_seconds > HOLD_SECONDS ? plot->step_seconds : HOLD_SECONDS;
    size_t passed[LINES_MAX] = { 0 }; /* samples until the point at hand */

    for (size_t i = 0; i < plot->n_points; i++) {
        int64_t now = time_of(plot, i), latest = now - hold;

        for (size_t k = 0; k < n; k++) {
            while (passed[k] < from[k].n && from[k].time[passed[k]] <= now)
                passed[k]++;
            if (passed[k] && from[k].time[passed[k] - 1] > latest)
                latest = from[k].time[passed[k] - 1];
        }
        for (size_t k = 0; k < n; k++)
            if (passed[k] && latest > now - hold && from[k].time[passed[k] - 1] == latest)
                answer->line[k].value[i] = from[k].value[passed[k] - 1];
    }
}

static int read_ticks(struct ticks_reader *reader, struct str prefix, struct answer *answer,
                      struct arena *scratch, struct err *err)
{
    const struct facts_plot *plot = answer->plot;
    int64_t hold = plot->step_seconds > HOLD_SECONDS ? plot->step_seconds : HOLD_SECONDS;
    struct ticks_line *from;
    size_t n;
    int code;

    ticks_reader_deadline(reader, answer->question->deadline_ns);
    code = ticks_read(reader, prefix, plot->begin - hold, time_of(plot, plot->n_points - 1) + 1,
                      LINES_MAX, scratch, &from, &n, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++)
        add_line(answer, str_skip(from[i].name, prefix.n));
    take_ticks(answer, from, n);
    return 0;
}

static int ask_series(const char *path, struct answer *answer, struct err *err)
{
    const struct trend_question *question = answer->question;
    struct ticks_reader *reader;
    struct arena scratch = { 0 };
    struct buf prefix;
    int code = ticks_reader_open(path, &reader, err);

    if (code < 0)
        return code;
    buf_init(&prefix, TICKS_NAME_MAX);
    put_prefix(&prefix, question->trend, question->cluster, question->node);
    if (!prefix.over) /* else there is no series of such a name */
        code = read_ticks(reader, buf_str(&prefix), answer, &scratch, err);
    buf_free(&prefix);
    ticks_reader_close(reader);
    arena_clear(&scratch);
    return code;
}

static void take_series(void *ctx, const struct prometheus_series *series)
{
    struct answer *answer = ctx;
    const struct facts_plot *plot = answer->plot;
    struct plot_line *line;

    if (answer->n == LINES_MAX || !series->label[0].n)
        return;
    line = add_line(answer, series->label[0]);
    for (size_t i = 0; i < series->n_points; i++) {
        double at =
            round((series->point[i].time - (double)plot->begin) / (double)plot->step_seconds);

        if (at >= 0 && at < (double)plot->n_points && isfinite(series->point[i].value))
            line->value[(size_t)at] = series->point[i].value;
    }
}

static void put_query(const struct trends *trends, const struct trend_question *question,
                      struct buf *to)
{
    const struct trends_config *config = &trends->config;

    for (const char *from = asked[question->trend].query; *from; from++) {
        if (*from == '#')
            promql_string(to, question->node);
        else if (*from != '$')
            buf_byte(to, *from);
        else if (config->matcher)
            buf_put(to, config->matcher(config->ctx, question->cluster));
    }
}

static int64_t timeout_ms(int64_t deadline_ns)
{
    int64_t left = (deadline_ns - clock_mono(&clock_real)) / NS_PER_MS;

    return left < WAIT_MAX_MS ? left : WAIT_MAX_MS;
}

static int ask_range(struct prometheus *prometheus, const struct trends *trends,
                     struct answer *answer, struct err *err)
{
    const struct facts_plot *plot = answer->plot;
    struct prometheus_range range = {
        .begin = plot->begin,
        .end = time_of(plot, plot->n_points - 1),
        .step_seconds = plot->step_seconds,
        .labels = { asked[answer->question->trend].label },
        .timeout_ms = timeout_ms(answer->question->deadline_ns),
        .sink = take_series,
        .ctx = answer,
    };
    struct prometheus_result result;
    struct buf query;
    int code;

    if (range.timeout_ms <= 0)
        return err_set(err, ETIMEDOUT, "%s was not asked: there was no time left",
                       prometheus_origin(prometheus));
    buf_init(&query, QUERY_MAX);
    put_query(trends, answer->question, &query);
    range.text = query.p;
    code = query.over ? err_set(err, E2BIG, "the query is longer than %d bytes", QUERY_MAX)
                      : prometheus_range(prometheus, &range, &result, err);
    buf_free(&query);
    return code;
}

static int ask_prometheus(struct trends *trends, struct answer *answer, struct err *err)
{
    struct prometheus *prometheus;
    int code;

    if (clock_mono(&clock_real) < atomic_load(&trends->asked_from))
        return err_set(err, EAGAIN, "the Prometheus did not answer a moment ago: try again");
    code = prometheus_open(trends->config.prometheus, &prometheus, err);
    if (code < 0)
        return code;
    code = ask_range(prometheus, trends, answer, err);
    prometheus_close(prometheus);
    if (code == -ETIMEDOUT)
        atomic_store(&trends->asked_from, clock_mono(&clock_real) + pause_ns);
    return code;
}

static void fill_in_zeros(struct answer *answer)
{
    for (size_t i = 0; i < answer->plot->n_points; i++) {
        bool is_told = false;

        for (size_t k = 0; k < answer->n; k++)
            is_told |= !isnan(answer->line[k].value[i]);
        for (size_t k = 0; k < answer->n && is_told; k++)
            if (isnan(answer->line[k].value[i]))
                answer->line[k].value[i] = 0;
    }
}

/* NAN: nothing is known. */
static double highest(const struct plot_line *line, size_t n_points)
{
    double most = NAN;

    for (size_t i = 0; i < n_points; i++)
        most = fmax(most, line->value[i]);
    return most;
}

/* States in which nothing was at any time need no line. */
static void leave_out_empty(struct answer *answer)
{
    bool is_by_state = asked[answer->question->trend].is_by_state;
    size_t n = 0;

    for (size_t i = 0; i < answer->n; i++) {
        double most = highest(&answer->line[i], answer->plot->n_points);

        if (!isnan(most) && (most != 0 || !is_by_state))
            answer->line[n++] = answer->line[i];
    }
    answer->n = n;
}

static int by_height(const void *a, const void *b, void *ctx)
{
    size_t n_points = *(const size_t *)ctx;
    double x = highest(a, n_points), y = highest(b, n_points);

    return (x < y) - (x > y);
}

static void add_up_lowest(struct answer *answer)
{
    size_t n_points = answer->plot->n_points;
    struct plot_line *others = &answer->line[LINES_SHOWN - 1];

    if (answer->n <= LINES_SHOWN)
        return;
    qsort_r(answer->line, answer->n, sizeof(answer->line[0]), by_height, &n_points);
    others->name = STR("others");
    for (size_t i = 0; i < n_points; i++)
        for (size_t k = LINES_SHOWN; k < answer->n; k++)
            others->value[i] += answer->line[k].value[i];
    answer->n = LINES_SHOWN;
}

static void keep_lines(struct answer *answer)
{
    struct facts_plot *plot = answer->plot;

    if (asked[answer->question->trend].is_by_state)
        fill_in_zeros(answer);
    leave_out_empty(answer);
    if (asked[answer->question->trend].is_by_state)
        add_up_lowest(answer);
    plot->n_lines = plot->n_members = answer->n;
    plot->line = ARENA_ARRAY(answer->arena, struct plot_line, answer->n);
    for (size_t i = 0; i < answer->n; i++)
        plot->line[i] = answer->line[i];
    if (!answer->n)
        plot->n_points = 0;
}

int trends_read(struct trends *trends, const struct trend_question *question, struct arena *arena,
                struct facts_plot *ret, struct err *err)
{
    struct facts_plot plot;
    struct answer answer = { .question = question, .arena = arena, .plot = &plot };
    int code = set_times(question, &plot, err);

    if (code == 0 && plot.n_points)
        code = trends->config.series_path ? ask_series(trends->config.series_path, &answer, err)
                                          : ask_prometheus(trends, &answer, err);
    if (code < 0)
        return code;
    keep_lines(&answer);
    *ret = plot;
    return 0;
}

/* ---- writing ---- */

struct sampling {
    struct str cluster, node;
    struct arena *arena;
    struct tick_sample *sample;
    size_t n;
};

/* What is unknown is not written. */
static void add_sample(struct sampling *to, enum trend trend, struct str word, double value)
{
    struct buf name;

    if (!isfinite(value))
        return;
    buf_init(&name, TICKS_NAME_MAX);
    put_prefix(&name, trend, to->cluster, to->node);
    buf_put(&name, word);
    if (!name.over)
        to->sample[to->n++] = (struct tick_sample){ arena_str(to->arena, buf_str(&name)), value };
    buf_free(&name);
}

static void add_amount(struct sampling *to, enum trend trend, const struct sums_amount *amount)
{
    add_sample(to, trend, STR("allocated"), amount->allocated);
    add_sample(to, trend, STR("idle"), amount->idle);
    add_sample(to, trend, STR("unusable"), amount->unusable);
}

static void add_gpus(struct sampling *to, const struct cluster_sums *sums)
{
    struct sums_amount all = { 0 };

    for (size_t i = 0; i < sums->n_gpus; i++) {
        all.allocated += sums->gpu[i].amount.allocated;
        all.idle += sums->gpu[i].amount.idle;
        all.unusable += sums->gpu[i].amount.unusable;
    }
    if (sums->n_gpus)
        add_amount(to, TREND_GPUS, &all);
}

static void add_nodes(struct sampling *to, const struct section *section)
{
    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];
        bool is_known = node->cpus_alloc != MODEL_UNKNOWN_U32;

        to->node = section_text(section, node->name);
        add_sample(to, TREND_NODE_CPUS, STR("allocated"), is_known ? node->cpus_alloc : NAN);
        add_sample(to, TREND_NODE_CPUS, STR("load"), node->cpu_load);
    }
}

/* An empty queue is told too: the two that it is asked for most are always there. */
static void add_job_states(struct sampling *to, const struct cluster_sums *sums)
{
    const struct str always[] = { job_state_words[JOB_RUNNING], job_state_words[JOB_PENDING] };

    for (size_t i = 0; i < sums->n_job_states; i++)
        add_sample(to, TREND_JOBS, sums->job_state[i].word, sums->job_state[i].jobs.jobs);
    for (size_t k = 0; k < COUNT(always) && sums->has_jobs; k++) {
        bool is_there = false;

        for (size_t i = 0; i < sums->n_job_states; i++)
            is_there |= str_eq(sums->job_state[i].word, always[k]);
        if (!is_there)
            add_sample(to, TREND_JOBS, always[k], 0);
    }
}

void trends_samples(const struct cluster_sums *sums, struct str cluster,
                    const struct section *nodes, struct arena *arena, struct tick_sample **ret,
                    size_t *ret_n)
{
    enum { OF_AMOUNT = 3, AMOUNTS = 3, OF_NODE = 2, ALWAYS = 2 };
    bool has_nodes = nodes && nodes->nodes.n <= TRENDS_NODES_MAX;
    struct sampling to = { .cluster = cluster, .arena = arena };
    size_t most = OF_AMOUNT * AMOUNTS + sums->n_states + sums->n_job_states + ALWAYS +
                  (has_nodes ? OF_NODE * nodes->nodes.n : 0);

    to.sample = ARENA_ARRAY(arena, struct tick_sample, most);
    add_amount(&to, TREND_CPUS, &sums->cpus);
    add_gpus(&to, sums);
    add_amount(&to, TREND_MEMORY, &sums->memory_bytes);
    for (size_t i = 0; i < sums->n_states; i++)
        add_sample(&to, TREND_NODES, sums->state[i].word, (double)sums->state[i].nodes);
    add_job_states(&to, sums);
    if (has_nodes)
        add_nodes(&to, nodes);
    *ret = to.sample;
    *ret_n = to.n;
}
