/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads all series of a job at once, and takes of each what its row of kept_words says. */
#include "report/facts_kept.h"

#include "report/kept_lines.h"

#include <math.h>
#include <stdlib.h>

enum {
    LINES_MAX = 50000,
    LONGEST_GAP = 3600,
    GAP_STEPS = 4, /* times as long as those beside it */
    DEFAULT_INTERVAL = 15,
};

static int64_t step_of(const struct kept_line *line, size_t i)
{
    return line->time[i + 1] - line->time[i];
}

bool kept_is_gap(const struct kept_line *line, size_t i)
{
    int64_t step = step_of(line, i), before = i ? step_of(line, i - 1) : 0;
    int64_t after = i + 2 < line->n ? step_of(line, i + 1) : 0;
    int64_t usual = before > after ? before : after;

    return step > LONGEST_GAP || (usual && step > GAP_STEPS * usual);
}

/* ---- which line is whose ---- */

/* What follows job/CLUSTER/ID/: NODE/WORD, NODE/gpu/GPU/WORD. False: what is unknown to this sonde.
 */
static bool read_name(struct str rest, struct kept_line *line)
{
    struct str word;

    line->node = str_cut(&rest, '/');
    word = str_cut(&rest, '/');
    line->gpu = STR("");
    if (rest.p && str_eq(word, STR("gpu"))) {
        line->gpu = str_cut(&rest, '/');
        word = rest;
        if (!line->gpu.n)
            return false;
    }
    line->word = kept_word_of(word, line->gpu.n > 0);
    return line->word && line->node.n;
}

/* What no counter or gauge of the agent can be is left out. */
static void take_line(struct kept_lines *lines, const struct ticks_line *from, size_t prefix,
                      struct arena *arena)
{
    struct kept_line *line = &lines->line[lines->n];
    double *value;
    int64_t *time;

    if (!read_name(str_skip(from->name, prefix), line))
        return;
    time = ARENA_ARRAY(arena, int64_t, from->n);
    value = ARENA_ARRAY(arena, double, from->n);
    for (size_t i = 0; i < from->n; i++) {
        if (!isfinite(from->value[i]) || from->value[i] < 0)
            continue;
        time[line->n] = from->time[i];
        value[line->n++] = from->value[i];
    }
    line->time = time;
    line->value = value;
    lines->n += line->n > 0;
}

/* The shortest time between two samples. */
static int64_t find_interval(const struct kept_lines *lines)
{
    int64_t shortest = INT64_MAX;

    for (size_t i = 0; i < lines->n; i++)
        for (size_t k = 0; k + 1 < lines->line[i].n; k++)
            if (step_of(&lines->line[i], k) < shortest)
                shortest = step_of(&lines->line[i], k);
    return shortest == INT64_MAX ? DEFAULT_INTERVAL : shortest;
}

static bool is_same_member(const struct kept_line *a, const struct kept_line *b)
{
    return str_eq(a->node, b->node) && str_eq(a->gpu, b->gpu);
}

/* Another line of the same node or GPU goes to the same place and comes before it in the table.
 * Lines of a node lie together. */
static bool is_outdone(const struct kept_lines *lines, size_t i)
{
    const struct kept_line *line = &lines->line[i];
    size_t begin = i, end = i;

    while (begin && str_eq(lines->line[begin - 1].node, line->node))
        begin--;
    while (end < lines->n && str_eq(lines->line[end].node, line->node))
        end++;
    for (size_t k = begin; k < end; k++)
        if (is_same_member(&lines->line[k], line) && lines->line[k].word < line->word &&
            lines->line[k].word->offset == line->word->offset)
            return true;
    return false;
}

/* ---- amounts ---- */

static double highest(const struct kept_line *line)
{
    double most = NAN;

    for (size_t i = 0; i < line->n; i++)
        most = fmax(most, line->value[i]);
    return most;
}

/* Where it is less than before it has begun anew, and how much is lost is not known. */
static double growth(const struct kept_line *line)
{
    double sum = NAN;

    for (size_t i = 0; i + 1 < line->n; i++) {
        double more = line->value[i + 1] - line->value[i];

        if (more >= 0)
            sum = isnan(sum) ? more : sum + more;
    }
    return sum;
}

/* Each sample counts for the time until the next; the last as the one before it. */
static double mean(const struct kept_line *line)
{
    double sum = 0, seconds = 0, step = 1;

    for (size_t i = 0; i < line->n; i++) {
        if (i + 1 < line->n && !kept_is_gap(line, i))
            step = (double)step_of(line, i);
        sum += line->value[i] * step;
        seconds += step;
    }
    return sum / seconds;
}

static void take_spread(struct spread *spread, const struct kept_line *line)
{
    double least = line->value[0];

    for (size_t i = 1; i < line->n; i++)
        least = fmin(least, line->value[i]);
    spread->min = isnan(spread->min) ? least : spread->min;
    spread->mean = isnan(spread->mean) ? mean(line) : spread->mean;
    spread->max = fmax(spread->max, highest(line));
}

static void take_amount(void *place, const struct kept_line *line)
{
    double *amount = place;

    switch (line->word->meaning) {
    case KEPT_COUNTER:
    case KEPT_GAUGE:
        *amount = fmax(*amount, highest(line));
        break;
    case KEPT_SPREAD:
        take_spread(place, line);
        break;
    case KEPT_GROWTH:
        *amount = fmax(*amount, growth(line));
        break;
    }
}

static void take_amounts(const struct kept_lines *lines)
{
    struct series *run = lines->run;
    struct job_facts *facts = run->facts;

    for (size_t i = 0; i < lines->n; i++) {
        const struct kept_line *line = &lines->line[i];
        bool is_full = (line->gpu.n ? facts->n_gpus : facts->n_nodes) >= SERIES_NODES_MAX;
        char *of;

        if (is_full || is_outdone(lines, i))
            continue;
        of = line->gpu.n ? (char *)facts_gpu(facts, run->arena, line->node, line->gpu)
                         : (char *)&facts_node(facts, run->arena, line->node)->use;
        take_amount(of + line->word->offset, line);
    }
}

/* ---- all of it ---- */

/* Names begin with so many bytes that are the same for all. */
static void take_lines(struct series *run, const struct ticks_line *from, size_t n, size_t prefix,
                       bool wants_plots)
{
    struct kept_lines lines = { .run = run,
                                .line = ARENA_ARRAY(&run->scratch, struct kept_line, n + 1) };

    for (size_t i = 0; i < n; i++)
        take_line(&lines, &from[i], prefix, &run->scratch);
    if (!lines.n) {
        struct err why;

        err_set(&why, ENODATA,
                "the embedded series have no samples of job %s from the time of "
                "this run",
                run->job_id);
        run->facts->origin.why_no_series = arena_str(run->arena, str_of(why.text));
        return;
    }
    run->interval_seconds = find_interval(&lines);
    run->facts->origin.has_series = true;
    run->facts->origin.series = STR("the embedded series");
    take_amounts(&lines);
    kept_take_plots(&lines, wants_plots);
}

int facts_take_kept(struct job_facts *facts, struct arena *arena, struct ticks_reader *series,
                    bool wants_plots, struct err *err)
{
    struct series run = { .facts = facts, .arena = arena };
    struct str cluster = facts->row.key.cluster;
    struct ticks_line *line = NULL;
    struct buf prefix;
    size_t n = 0;
    int code = 0;

    if (!series_find_times(&run))
        return 0;
    if (!cluster.n)
        return err_set(err, EINVAL,
                       "the embedded series are by cluster, and which this job's is is not known: "
                       "name it with --cluster");
    snprintf(run.job_id, sizeof(run.job_id), "%u", facts->row.record.id);
    buf_init(&prefix, TICKS_NAME_MAX);
    buf_printf(&prefix, "job/%.*s/%s/", STR_ARG(cluster), run.job_id);
    if (!prefix.over) /* else there is no series of such a name */
        code = ticks_read(series, buf_str(&prefix), run.clean, run.last + 1, LINES_MAX,
                          &run.scratch, &line, &n, err);
    if (code == 0)
        take_lines(&run, line, n, prefix.n, wants_plots);
    buf_free(&prefix);
    arena_clear(&run.scratch);
    return code;
}
