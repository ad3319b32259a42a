/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines over time from the embedded series. A point stands for the time since the one before it. */
#include "report/kept_lines.h"

#include <math.h>
#include <stdlib.h>

/* Whether a gauge's points are the highest of what falls into their time, or its mean. */
static const bool shows_highest[FACTS_PLOTS] = { [PLOT_MEMORY] = true, [PLOT_GPU_MEMORY] = true };

struct drawing {
    const struct kept_lines *lines;
    enum facts_plot_kind kind;
    struct facts_plot plot;
    struct plot_line *member; /* each node or GPU, in the scratch arena */
    size_t n_members;
};

static struct arena *scratch_of(const struct drawing *drawing)
{
    return &drawing->lines->run->scratch;
}

/* The point in whose time this falls; what is earlier falls into the first. */
static size_t point_at(const struct facts_plot *plot, int64_t time)
{
    int64_t seconds = time - plot->begin;
    size_t at =
        seconds <= 0 ? 0 : (size_t)((seconds + plot->step_seconds - 1) / plot->step_seconds);

    return at < plot->n_points ? at : plot->n_points;
}

/* How much was added in each point's time, and of how much of it that is known. */
struct rates {
    double *added, *seconds;
};

static void spread_growth(const struct facts_plot *plot, struct rates *rates, int64_t from,
                          int64_t to, double added)
{
    size_t last = point_at(plot, to);

    for (size_t i = point_at(plot, from + 1); i <= last && i < plot->n_points; i++) {
        int64_t end = plot->begin + (int64_t)i * plot->step_seconds;
        int64_t begin = i ? end - plot->step_seconds : from;
        int64_t seconds = (to < end ? to : end) - (from > begin ? from : begin);

        rates->added[i] += added * (double)seconds / (double)(to - from);
        rates->seconds[i] += (double)seconds;
    }
}

/* A counter that is less than before has begun anew: what was added then is not known. */
static void draw_rate(const struct drawing *drawing, const struct kept_line *line, double *point)
{
    const struct facts_plot *plot = &drawing->plot;
    struct rates rates = {
        .added = ARENA_ARRAY(scratch_of(drawing), double, plot->n_points),
        .seconds = ARENA_ARRAY(scratch_of(drawing), double, plot->n_points),
    };

    for (size_t i = 0; i + 1 < line->n; i++)
        if (!kept_is_gap(line, i) && line->value[i + 1] >= line->value[i])
            spread_growth(plot, &rates, line->time[i], line->time[i + 1],
                          line->value[i + 1] - line->value[i]);
    for (size_t i = 0; i < plot->n_points; i++)
        point[i] = rates.seconds[i] > 0 ? rates.added[i] / rates.seconds[i] : NAN;
}

/* Points without a sample, up to the next one's: as the last was. */
static void hold(const struct drawing *drawing, const struct kept_line *line, size_t i,
                 double *point)
{
    size_t end = point_at(&drawing->plot, line->time[i + 1]);

    for (size_t at = point_at(&drawing->plot, line->time[i]) + 1; at < end; at++)
        point[at] = line->value[i];
}

static void draw_gauge(const struct drawing *drawing, const struct kept_line *line, double *point)
{
    const struct facts_plot *plot = &drawing->plot;
    double *n = ARENA_ARRAY(scratch_of(drawing), double, plot->n_points);

    for (size_t i = 0; i < line->n; i++) {
        size_t at = point_at(plot, line->time[i]);

        if (at == plot->n_points)
            break;
        n[at]++;
        if (n[at] == 1)
            point[at] = line->value[i];
        else if (shows_highest[drawing->kind])
            point[at] = fmax(point[at], line->value[i]);
        else
            point[at] += (line->value[i] - point[at]) / n[at];
        if (i + 1 < line->n && !kept_is_gap(line, i))
            hold(drawing, line, i, point);
    }
}

/* ---- members ---- */

static struct str name_of(const struct drawing *drawing, const struct kept_line *line)
{
    struct buf name;
    struct str copy;

    buf_init(&name, 2 * TICKS_NAME_MAX);
    buf_put(&name, line->node);
    if (line->gpu.n) {
        buf_byte(&name, ' ');
        buf_put(&name, line->gpu);
    }
    copy = arena_str(scratch_of(drawing), buf_str(&name));
    buf_free(&name);
    return copy;
}

static void draw_member(struct drawing *drawing, const struct kept_line *line)
{
    size_t n = drawing->plot.n_points;
    double *point = ARENA_ARRAY(scratch_of(drawing), double, n);
    bool is_known = false;

    for (size_t i = 0; i < n; i++)
        point[i] = NAN;
    if (line->word->meaning == KEPT_COUNTER)
        draw_rate(drawing, line, point);
    else
        draw_gauge(drawing, line, point);
    for (size_t i = 0; i < n; i++)
        is_known = is_known || !isnan(point[i]);
    if (is_known)
        drawing->member[drawing->n_members++] = (struct plot_line){ name_of(drawing, line), point };
}

/* Of several lines that may be shown, that whose word comes first in the table. Lines of a member
 * lie near one another, but not side by side. */
static const struct kept_line *best_of_member(const struct drawing *drawing, size_t i)
{
    const struct kept_lines *lines = drawing->lines;
    const struct kept_line *best = NULL;

    for (size_t k = i; k < lines->n && str_eq(lines->line[k].node, lines->line[i].node); k++) {
        const struct kept_line *line = &lines->line[k];

        if (line->word->plot == (int)drawing->kind && str_eq(line->gpu, lines->line[i].gpu) &&
            (!best || line->word < best->word))
            best = line;
    }
    return best;
}

static bool is_new_member(const struct drawing *drawing, size_t i)
{
    const struct kept_lines *lines = drawing->lines;

    if (lines->line[i].word->plot != (int)drawing->kind)
        return false;
    for (size_t k = i; k-- && str_eq(lines->line[k].node, lines->line[i].node);)
        if (lines->line[k].word->plot == (int)drawing->kind &&
            str_eq(lines->line[k].gpu, lines->line[i].gpu))
            return false;
    return true;
}

static size_t count_members(const struct drawing *drawing)
{
    size_t n = 0;

    for (size_t i = 0; i < drawing->lines->n; i++)
        n += is_new_member(drawing, i);
    return n;
}

static void draw_members(struct drawing *drawing)
{
    for (size_t i = 0; i < drawing->lines->n; i++)
        if (is_new_member(drawing, i))
            draw_member(drawing, best_of_member(drawing, i));
}

/* ---- of many, what lies in the middle and at the ends ---- */

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static size_t known_at(const struct drawing *drawing, size_t at, double *value)
{
    size_t n = 0;

    for (size_t i = 0; i < drawing->n_members; i++)
        if (!isnan(drawing->member[i].value[at]))
            value[n++] = drawing->member[i].value[at];
    return n;
}

static void sum_up(struct drawing *drawing, struct arena *arena)
{
    static const char *const names[] = { "median", "lowest", "highest" };
    struct facts_plot *plot = &drawing->plot;
    double *value = ARENA_ARRAY(scratch_of(drawing), double, drawing->n_members);

    plot->n_lines = COUNT(names);
    plot->line = ARENA_ARRAY(arena, struct plot_line, plot->n_lines);
    for (size_t i = 0; i < plot->n_lines; i++)
        plot->line[i] =
            (struct plot_line){ str_of(names[i]), ARENA_ARRAY(arena, double, plot->n_points) };
    for (size_t at = 0; at < plot->n_points; at++) {
        size_t n = known_at(drawing, at, value);

        if (n)
            qsort(value, n, sizeof(*value), by_value);
        plot->line[0].value[at] = n ? (value[(n - 1) / 2] + value[n / 2]) / 2 : NAN;
        plot->line[1].value[at] = n ? value[0] : NAN;
        plot->line[2].value[at] = n ? value[n - 1] : NAN;
    }
}

static void keep_members(struct drawing *drawing, struct arena *arena)
{
    struct facts_plot *plot = &drawing->plot;

    plot->n_lines = drawing->n_members;
    plot->line = ARENA_ARRAY(arena, struct plot_line, plot->n_lines);
    for (size_t i = 0; i < plot->n_lines; i++) {
        double *value = ARENA_ARRAY(arena, double, plot->n_points);

        memcpy(value, drawing->member[i].value, plot->n_points * sizeof(*value));
        plot->line[i] = (struct plot_line){ arena_str(arena, drawing->member[i].name), value };
    }
}

/* The most CPUs that were in use at once, on each node and on all. */
static void take_busiest(const struct drawing *drawing)
{
    const struct series *run = drawing->lines->run;
    struct job_facts *facts = run->facts;

    for (size_t at = 0; at < drawing->plot.n_points; at++) {
        double sum = NAN;

        for (size_t i = 0; i < drawing->n_members; i++) {
            double value = drawing->member[i].value[at];

            if (!isnan(value))
                sum = isnan(sum) ? value : sum + value;
        }
        facts->total.busiest_cpus = fmax(facts->total.busiest_cpus, sum);
    }
    for (size_t i = 0; i < drawing->n_members; i++) {
        struct use_facts *use = &facts_node(facts, run->arena, drawing->member[i].name)->use;

        for (size_t at = 0; at < drawing->plot.n_points; at++)
            use->busiest_cpus = fmax(use->busiest_cpus, drawing->member[i].value[at]);
    }
}

static void take_plot(const struct kept_lines *lines, enum facts_plot_kind kind, bool is_wanted)
{
    struct drawing drawing = { .lines = lines, .kind = kind };
    const struct series *run = lines->run;
    size_t n = count_members(&drawing);

    if (!n)
        return;
    drawing.plot.begin = run->begin;
    drawing.plot.step_seconds = series_step(run, n);
    drawing.plot.n_points = (size_t)((run->end - run->begin) / drawing.plot.step_seconds) + 1;
    drawing.member = ARENA_ARRAY(scratch_of(&drawing), struct plot_line, n);
    draw_members(&drawing);
    if (kind == PLOT_CPU)
        take_busiest(&drawing);
    if (!is_wanted || !drawing.n_members)
        return;
    drawing.plot.n_members = drawing.n_members;
    if (drawing.n_members > PLOT_LINES_MAX)
        sum_up(&drawing, run->arena);
    else
        keep_members(&drawing, run->arena);
    run->facts->plot[kind] = drawing.plot;
}

void kept_take_plots(const struct kept_lines *lines, bool wants_plots)
{
    for (size_t kind = 0; kind < FACTS_PLOTS; kind++)
        if (wants_plots || kind == PLOT_CPU)
            take_plot(lines, (enum facts_plot_kind)kind, wants_plots);
}
